//! Hostile repositories: something else than a plain file in a place that `jm`, or git for it,
//! reads. Whatever it is, every command ends, within memory for a thousand times the project.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::json;

use crate::support::{House, Server, Step, call, needs, say};

/// Address space of a command in KiB. Reading a device or a sparse file to no end exceeds it within
/// seconds.
const MEMORY_KIB: u64 = 4_000_000;
/// Size of a sparse file that takes no space: twice the memory.
const HUGE: u64 = 8 << 30;

const KINDS: [&str; 7] = ["pipe", "zeros", "outside", "huge", "socket", "directory", "device"];

/// Places whose files are read together. Git's own hide each other's effect, so each is a case of
/// its own.
const PLACES: &[&[&str]] = &[
    &[".gitignore", ".ignore", ".journeymanignore", "src/.gitignore", ".gitattributes", "CACHEDIR.TAG"],
    &["AGENTS.md", "CLAUDE.md", ".env", ".envrc", ".journeyman/hooks.toml", ".journeyman/policy.toml"],
    &[
        "package.json",
        "Cargo.toml",
        "go.mod",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "rust-toolchain.toml",
    ],
    &["Makefile", "justfile", "build.gradle", "CMakeLists.txt", ".python-version", ".nvmrc", "tsconfig.json"],
    &[".journeyman/config.toml"],
    &[".journeyman"],
    &[".git/config"],
    &[".git/HEAD"],
    &[".git/packed-refs", ".git/shallow"],
    &[".git/info/exclude", ".git/info/attributes"],
    &[".git/index"],
    &[".git/refs/heads/main"],
    &[".git/objects/info/alternates"],
    &[".git"],
];

const COMMANDS: &[&[&str]] = &[
    &["index"],
    &["search", "alpha"],
    &["search", "--kind", "text", "alpha"],
    &["map"],
    &["why", "src/b.rs", "alpha"],
    &["refs", "alpha"],
    &["symbols", "a.rs"],
    &["deps", "a.rs"],
    &["impact", "a.rs"],
    &["doctor"],
    &["exec", "--", "true"],
    &["policy", "check", "--command", "ls"],
    &["checkpoints"],
    &["config"],
    &["sessions"],
    &["diff"],
    &["undo"],
];

/// Puts an obstacle at a place of the project; false where this machine can't make one.
fn put(house: &House, kind: &str, place: &str) -> bool {
    let at = house.project().join(place);
    if at.is_dir() {
        std::fs::remove_dir_all(&at).unwrap();
    } else if at.exists() {
        std::fs::remove_file(&at).unwrap();
    }
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    let node = |kind, device| mknodat(CWD, &at, kind, Mode::RUSR | Mode::WUSR, device);
    let huge = |path: &Path| std::fs::File::create(path).unwrap().set_len(HUGE).unwrap();
    match kind {
        "pipe" => node(FileType::Fifo, 0).unwrap(),
        "zeros" => symlink("/dev/zero", &at).unwrap(),
        "outside" => {
            huge(&house.at("huge"));
            symlink(house.at("huge"), &at).unwrap();
        }
        "huge" => huge(&at),
        "directory" => std::fs::create_dir(&at).unwrap(),
        // By a short name: that of a socket has a hundred bytes.
        "socket" => {
            drop(UnixListener::bind(house.at("s")).unwrap());
            std::fs::rename(house.at("s"), &at).unwrap();
        }
        _ => return node(FileType::CharacterDevice, makedev(1, 5)).is_ok(),
    }
    true
}

fn house(kind: &str, places: &[&str]) -> Option<House> {
    let house = House::with_greeter();
    house.write("a.rs", "fn alpha() {}\n");
    house.write("src/b.rs", "fn beta() { alpha() }\n");
    house.git(&["init", "-q", "-b", "main"]);
    house.git(&["add", "."]);
    house.git(&["commit", "-q", "-m", "Two files"]);
    places.iter().all(|place| put(&house, kind, place)).then_some(house)
}

/// Every command ends by itself.
fn all_end(kind: &str, places: &[&str]) {
    let Some(house) = house(kind, places) else { return };
    let check = |what: &str, ran: crate::support::Ran| {
        assert!(!ran.stderr.contains("panicked at"), "{kind} at {places:?}: {what}\n{}", ran.stderr);
        let code = ran.code();
        // `jm exec` has 125 for what it can't do itself.
        assert!(
            (0..10).contains(&code) || code == 125,
            "{kind} at {places:?}: {what} ended with {code}\n{}",
            ran.stderr
        );
    };
    for command in COMMANDS {
        check(&command.join(" "), house.jm(command).within_memory(MEMORY_KIB).run());
    }
    for flags in [&[][..], &["--isolate"], &["--mode", "plan"]] {
        // A model that asks for what reads the tree, and changes something, so that checks are
        // looked for.
        let server = Server::answering(|nth, _| -> Step {
            match nth {
                1 => call("search_code", json!({ "query": "alpha" }))
                    .and("search_text", json!({ "pattern": "alpha" }))
                    .and("list_files", json!({ "path": "." }))
                    .and("write_file", json!({ "path": "new.txt", "content": "new\n" }))
                    .into(),
                _ => say("Done.").into(),
            }
        });
        let all = [flags, &["--max-iterations", "1", "look around"]].concat();
        check(&format!("run {flags:?}"), server.run(&house, &all).within_memory(MEMORY_KIB).run());
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_never_waited_for() {
    if needs(&["git"]) {
        PLACES.iter().for_each(|places| all_end("pipe", places));
    }
}

#[test]
fn an_endless_file_in_the_place_of_another_is_not_read_to_its_end() {
    if needs(&["git"]) {
        PLACES.iter().for_each(|places| all_end("zeros", places));
    }
}

#[test]
fn nothing_else_in_the_place_of_a_file_costs_more_than_the_file_would() {
    if !needs(&["git"]) {
        return;
    }
    let (in_git, in_tree): (Vec<&str>, Vec<&str>) = PLACES
        .iter()
        .copied()
        .flatten()
        .filter(|place| place.len() > 4)
        .partition(|place| place.starts_with(".git/"));
    let in_tree: Vec<&str> = in_tree.into_iter().filter(|place| *place != ".journeyman").collect();
    for kind in KINDS.iter().skip(2) {
        all_end(kind, &in_tree);
        all_end(kind, &in_git);
    }
}
