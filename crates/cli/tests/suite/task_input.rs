//! Where the task comes from.

use crate::support::{House, Server, say};

#[test]
fn the_task_comes_from_an_argument_standard_input_or_a_file() {
    let house = House::with_greeter();
    let file = house.at("task.txt");
    std::fs::write(&file, "count the sheep\nslowly\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let server = Server::chat([say("One."), say("Two."), say("Three.")]);

    server.run(&house, &["count the sheep\nslowly"]).run().expect(4);
    server.run(&house, &["-"]).input("count the sheep\nslowly").run().expect(4);
    server.run(&house, &["--file", &file]).run().expect(4);

    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for request in seen {
        assert!(request.newest().contains("count the sheep\nslowly"), "{}", request.newest());
    }
}

#[test]
fn standard_input_is_never_read_when_there_is_a_task() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    server.run(&house, &["look around"]).input_held_open().run().expect(4);
}

#[test]
fn no_task_is_a_usage_error_before_anything_happens() {
    let house = House::with_greeter();
    let empty = house.at("empty.txt");
    std::fs::write(&empty, " \n").unwrap();
    let empty = empty.to_str().unwrap().to_owned();
    // Flags, standard input, and what is said.
    let cases: &[(&[&str], &[u8], &str)] = &[
        (&[""], b"", "the task is empty"),
        (&["  \n "], b"", "the task is empty"),
        (&["-"], b"", "the task is empty"),
        (&["-"], b" \n\t", "the task is empty"),
        (&["-"], b"caf\xe9", "not UTF-8"),
        (&["--file", &empty], b"", "the task is empty"),
        (&["--file", "no/such/file"], b"", "no/such/file"),
        (&[], b"", "TASK"),
        (&["--file", &empty, "and a task"], b"", "cannot be used with"),
    ];
    let server = Server::chat([say("Done.")]);
    for (flags, input, wanted) in cases {
        let ran = server.run(&house, flags).input(input).run().expect(2);
        ran.says(&[wanted]);
        assert_eq!(ran.stdout, "", "{flags:?}");
    }
    assert_eq!(server.seen().len(), 0);
    assert!(!house.at("state").exists());
}
