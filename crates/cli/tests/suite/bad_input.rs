//! Trees, places and disks that aren't as one would like: a clear error that names the thing, and
//! nothing harmed.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use journeyman_protocol::RunOutcome;
use serde_json::json;

use crate::support::{House, Reply, Server, call, needs_mounts, needs_sandbox, polite_edit, say};

fn write_new() -> Reply {
    call("write_file", json!({"path": "new.txt", "content": "new\n"}))
}

#[test]
fn a_place_that_is_no_directory_is_named() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    symlink("loop", house.project().join("loop")).unwrap();
    for (place, wanted) in
        [("no/such/place", "cannot work in"), ("greet.sh", "is not a directory"), ("loop", "cannot work in")]
    {
        let ran = server.run(&house, &["look around", "-C", place]).run().expect(2);
        ran.says(&[place, wanted]);
        house.jm(&["config", "-C", place]).run().expect(2).says(&[place]);
        house.jm(&["undo", "-C", place]).run().expect(2).says(&[place]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_directory_that_is_gone_is_said_so() {
    let house = House::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" run 'look around'";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_jm")]).current_dir(house.at("tmp"));
    let ran = crate::support::Jm::new(command).env("HOME", house.at("home")).run();
    assert!([1, 2].contains(&ran.code()));
    ran.says(&["current directory"]);
}

#[test]
fn odd_things_in_the_tree_are_no_obstacle() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let project = house.project();
    // Two gibibytes that take no room, a picture, a pipe, links to nowhere, to everywhere and in a
    // circle, and names that are no text.
    File::create(project.join("huge.bin")).unwrap().set_len(2 * 1024 * 1024 * 1024).unwrap();
    house.write("picture.dat", [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 64], &[0xff; 64]].concat());
    assert!(Command::new("mkfifo").arg(project.join("pipe")).status().unwrap().success());
    symlink("nowhere", project.join("dangling")).unwrap();
    symlink("/", project.join("everywhere")).unwrap();
    symlink(".", project.join("circle")).unwrap();
    for name in [b"caf\xe9.txt".as_slice(), b"line\nbreak.txt", b"\xff\xfe", b"-rf", b"tab\there"] {
        std::fs::write(project.join(OsStr::from_bytes(name)), "odd\n").unwrap();
    }
    let before = |path: &str| std::fs::read(project.join(path)).unwrap();
    let picture = before("picture.dat");

    let read = |path: &str| call("read_file", json!({ "path": path }));
    let server = Server::chat([
        call("list_files", json!({})),
        call("search_text", json!({"pattern": "hello"})),
        read("huge.bin"),
        read("picture.dat"),
        read("pipe"),
        read("dangling"),
        read("everywhere/etc/passwd"),
        call("edit_file", json!({"path": "picture.dat", "search": "PNG", "replace": "GIF"})),
        call("edit_file", polite_edit()),
        say("Done."),
    ]);
    let task = "look at huge.bin, picture.dat, pipe, dangling, everywhere/etc/passwd and make it polite";
    let report = server
        .run(&house, &["--json", "--plan-first", "never", "--check", "true", task])
        .run()
        .expect(0)
        .report();
    assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
    assert_eq!(before("picture.dat"), picture);

    let told: Vec<String> = server.seen().iter().map(|request| request.newest()).collect();
    for (nth, wanted) in [
        (1, "greet.sh"),
        (2, "greet.sh"),
        (3, "2147483648 bytes"),
        (4, "binary"),
        (5, "a named pipe"),
        (6, "dangling"),
        (7, "out of the project"),
        (8, "binary"),
    ] {
        assert!(told[nth].contains(wanted), "{nth}: `{wanted}` is not in\n{}", told[nth]);
    }
    assert!(!told.concat().contains("root:x:0"), "nothing outside was read");
    assert!(told.iter().all(|text| !text.contains('\0')));
    house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
}

#[test]
fn a_file_whose_name_is_no_text_is_changed_reported_and_restored() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let place = house.project().join(OsStr::from_bytes(b"caf\xe9.txt"));
    std::fs::write(&place, "before\n").unwrap();
    let command = call("run_command", json!({"command": "for f in caf*; do echo after > \"$f\"; done"}));
    let server = Server::chat([command, say("Done.")]);
    let report = server.run(&house, &["--json", "--no-check", "change it"]).run().expect(4).report();
    assert_eq!(report.changes[0].path.as_bytes(), b"caf\xe9.txt");
    assert!(report.diff.contains("-before\n+after\n"), "{}", report.diff);
    assert_eq!(std::fs::read(&place).unwrap(), b"after\n");
    house.jm(&["undo"]).run().expect(0);
    assert_eq!(std::fs::read(&place).unwrap(), b"before\n");
}

#[test]
fn a_tree_that_is_not_under_git_is_as_good() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write(".gitignore", "*.log\n");
    house.write("noise.log", "hello noise\n");
    let server = Server::chat([call("search_text", json!({"pattern": "hello"})), write_new(), say("Done.")]);
    let report = server.run(&house, &["--json", "--check", "test -f new.txt", "go"]).run().expect(0).report();
    assert_eq!(report.changes.len(), 1);
    assert!(report.diff.contains("+++ b/new.txt") && report.diff.contains("+new"), "{}", report.diff);
    let found = server.seen()[1].newest();
    assert!(
        found.contains("greet.sh") && !found.contains("noise.log"),
        "ignore rules hold here too\n{found}"
    );
    assert!(!house.project().join(".journeyman").exists() && !house.project().join(".git").exists());
}

#[test]
fn an_empty_project_is_a_project() {
    let house = House::new();
    let server = Server::chat([write_new(), say("Done.")]);
    let report = server.run(&house, &["--json", "begin"]).run().expect(4).report();
    assert_eq!(report.outcome, RunOutcome::Unverified);
    assert_eq!(house.read("new.txt"), "new\n");
}

#[test]
fn a_read_only_tree_is_said_to_be_one() {
    if !needs_mounts() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let server = Server::chat([write_new(), call("edit_file", polite_edit()), say("I can't.")]);
    let jm = server.run(&house, &["--json", "make it polite"]);
    let setup = "mount --bind . . && mount -o remount,ro,bind \"$PWD\" && cd \"$PWD\"";
    let ran = jm.after_mounts(setup).run().expect(4);
    assert!(ran.report().changes.is_empty());
    for request in &server.seen()[1..] {
        let told = request.newest().to_lowercase();
        assert!(told.contains("read-only"), "{told}");
    }
    assert_eq!(house.tree(), before);
    assert_eq!(house.sessions()[0]["status"], "no_changes", "the session is kept");
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let house = House::with_greeter();
    let before = house.tree();
    std::fs::write(house.at("state"), "a file\n").unwrap();
    let server = Server::chat([write_new(), say("Done.")]);
    let ran = server.run(&house, &["make a file"]).run().expect(1);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains(house.at("state").to_str().unwrap()), "{shown}");
    assert_eq!(server.seen().len(), 0, "what can't be kept is not begun");
    assert_eq!(house.tree(), before);
    for arguments in [&["sessions"][..], &["show"], &["undo"]] {
        let ran = house.jm(arguments).run();
        assert_ne!(ran.code(), 0, "{arguments:?}");
        ran.says(&["error"]);
    }
}

#[test]
fn a_read_only_state_directory_is_named() {
    if !needs_mounts() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    std::fs::create_dir(house.at("state")).unwrap();
    let server = Server::chat([write_new(), say("Done.")]);
    let setup = "mount -t tmpfs -o ro none \"$XDG_STATE_HOME\"";
    let ran = server.run(&house, &["make a file"]).after_mounts(setup).run().expect(1);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains(house.at("state").to_str().unwrap()), "{shown}");
    assert!(shown.to_lowercase().contains("read-only"), "{shown}");
    assert_eq!(server.seen().len(), 0);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_disk_that_fills_up_stops_the_run_before_anything_is_changed() {
    full_disk("1m", 1);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_said_to_be() {
    full_disk("16k", 0);
}

/// A run that says much and then writes a file, with so much room for its state.
fn full_disk(size: &str, requests: usize) {
    if !needs_mounts() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    std::fs::create_dir(house.at("state")).unwrap();
    let numbers: String = (0..400_000).map(|number| format!("{number} ")).collect();
    let much = say(numbers).and("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([much, say("Done.")]);
    let setup = format!("mount -t tmpfs -o size={size} none \"$XDG_STATE_HOME\"");
    let ran = server.run(&house, &["--quiet", "make a file"]).after_mounts(&setup).run().expect(1);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    // What the model said comes first; the end is what counts.
    let end = &shown[shown.len().saturating_sub(2_000)..];
    assert!(end.contains("the disk is full"), "{end}");
    assert!(end.contains(house.at("state").to_str().unwrap()), "{end}");
    assert_eq!(server.seen().len(), requests);
    assert_eq!(house.tree(), before, "what isn't on record isn't done");
}

#[test]
fn a_home_that_is_nowhere_is_said_so() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    let jm = server.run(&house, &["look around"]);
    let ran = jm.without("HOME").without("XDG_STATE_HOME").without("XDG_CONFIG_HOME").run().expect(2);
    ran.says(&["HOME", "XDG_STATE_HOME"]);
    assert_eq!(server.seen().len(), 0);
}
