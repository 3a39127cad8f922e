//! The project that a command works on, from where it is run.

use serde_json::json;

use crate::support::{House, Server, call, needs, polite_edit, say};

#[test]
fn below_a_repositorys_root_the_repository_is_the_project() {
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    house.write("docs/deep/notes.txt", "notes\n");
    let sub = house.project().join("docs/deep");
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now."), say("Nothing.")]);

    let ran = server.run(&house, &["be polite"]).dir(&sub).run().expect(0);
    let root = house.project().canonicalize().unwrap();
    ran.says(&[&format!(
        "the project is the repository {}, not docs/deep alone (-C . says so)",
        root.display()
    )]);
    assert!(server.seen()[0].newest().contains("greet.sh"), "the whole repository is its context");
    house.jm(&["sessions"]).dir(&sub).run().expect(0).prints(&["be polite"]);
    house.jm(&["undo"]).dir(&sub).run().expect(0).prints(&["restored greet.sh"]);

    let report = server.run(&house, &["-C", ".", "--json", "look"]).dir(&sub).run().expect(4).report();
    assert!(!server.seen()[2].newest().contains("greet.sh"), "a directory that is named is the project");
    assert!(report.changes.is_empty());
    // A command is run where it was typed.
    house.jm(&["exec", "--", "pwd"]).dir(&sub).run().expect(0).prints(&["docs/deep"]);
}

#[test]
fn a_file_is_named_from_the_current_directory() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_repository();
    let root = house.project().display().to_string();
    let below = house.project().join("pkg");
    house.write("notes.md", "# Of all\n\none\n");
    house.write("only.md", "# Alone\n\none\n");
    house.write("pkg/notes.md", "# Of the package\n\none\n");
    for (arguments, wanted) in [
        (&["symbols", "notes.md"][..], "Of the package"),
        (&["symbols", "./notes.md"], "Of the package"),
        (&["symbols", "../notes.md"], "Of all"),
        (&["symbols", "pkg/notes.md"], "Of the package"),
        (&["symbols", "only.md"], "Alone"),
        (&["symbols", "-C", &root, "notes.md"], "Of all"),
    ] {
        house.jm(arguments).dir(&below).run().expect(0).prints(&[wanted]);
    }
    for at in ["notes.md:1-2", "../notes.md:1", "only.md:1"] {
        house.jm(&["memory", "add", at, "--at", at]).dir(&below).run().expect(0);
    }
    let ran = house.jm(&["memory"]).run().expect(0);
    ran.prints(&["  pkg/notes.md:1-2\n", "  notes.md:1-1\n", "  only.md:1-1\n"]);

    let edit = "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n";
    for (path, changed) in [("notes.md", "pkg/notes.md"), ("../notes.md", "notes.md"), ("only.md", "only.md")]
    {
        house.jm(&["apply", "--path", path]).dir(&below).input(edit).run().expect(0);
        assert!(house.read(changed).contains("two"), "{path}");
    }
    let new = "<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n";
    house.jm(&["apply", "--path", "new.txt"]).dir(&below).input(new).run().expect(0);
    house
        .jm(&["apply", "--path", "../../up"])
        .dir(&below)
        .input(new)
        .run()
        .expect(2)
        .says(&["--path ../../up"]);
    assert_eq!(house.read("pkg/new.txt"), "new\n");
}

#[test]
fn the_file_systems_root_and_the_home_directory_are_no_projects() {
    let house = House::with_greeter();
    let home = house.at("home");
    let above = home.parent().unwrap();
    let server = Server::chat([say("")]);
    for (dir, what) in [
        ("/", "/ is the root of the file system and is not a project"),
        (home.to_str().unwrap(), "is your home directory and is not a project"),
        (above.to_str().unwrap(), "holds your home directory and is not a project"),
    ] {
        let advice = "change to the project's directory, or name it with -C";
        server.run(&house, &["-C", dir, "look"]).run().expect(2).says(&[what, advice]);
        server.run(&house, &["look"]).dir(dir).run().expect(2).says(&[what, advice]);
        house.jm(&["search", "x", "-C", dir]).run().expect(2).says(&[what]);
    }
    assert!(server.seen().is_empty());
    assert!(!house.at("state").exists());
    // Sessions can be looked at from anywhere.
    house.jm(&["sessions", "--all"]).dir(&home).run().expect(0);
}

#[test]
fn a_repository_in_the_home_directory_is_not_the_project_of_what_lies_in_it() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_greeter();
    let inner = house.at("home/work/tool");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir(house.at("home/.git")).unwrap();
    let server = Server::chat([say("Nothing.")]);
    let ran = server.run(&house, &["look"]).dir(&inner).run().expect(4);
    assert!(!ran.stderr.contains("the project is the repository"), "{}", ran.stderr);
}

#[test]
fn a_sessions_number_is_one_of_the_named_directory() {
    let house = House::with_greeter();
    let other = house.at("other");
    std::fs::create_dir(&other).unwrap();
    let new = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([new, say("Done."), say("Looked."), say("Gone on.")]);
    server.run(&house, &["make a file"]).dir(&other).run().expect(4);
    server.run(&house, &["look here"]).run().expect(4);
    let place = other.to_str().unwrap();
    for word in ["1", "last"] {
        house.jm(&["undo", word, "-C", place]).run().expect(0).prints(&["removed new.txt"]);
        house.jm(&["redo", word, "-C", place]).run().expect(0).prints(&["added new.txt"]);
    }
    server.command(&house, &["resume", "1", "go on"], &["-C", place]).run().expect(4);
    let asked = server.seen().last().unwrap().body.to_string();
    assert!(asked.contains("make a file") && !asked.contains("look here"), "{asked}");
}
