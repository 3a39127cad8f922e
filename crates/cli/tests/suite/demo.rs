//! `jm demo`.

use std::path::PathBuf;

use crate::support::{House, Ran, needs};

/// Runs the demo with this machine's Rust, whose home is not the test's.
fn demo(house: &House, flags: &[&str]) -> Ran {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let place =
        |name: &str, below: &str| std::env::var_os(name).map_or_else(|| home.join(below), PathBuf::from);
    let mut jm = house.jm(&[&["demo"], flags].concat());
    for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if place(name, below).is_dir() {
            jm = jm.env(name, place(name, below));
        }
    }
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        jm = jm.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    jm.run()
}

#[test]
fn the_demo_shows_the_whole_way_and_leaves_nothing() {
    if !needs(&["cargo"]) {
        return;
    }
    let house = House::new();
    let ran = demo(&house, &[]).expect(0);
    ran.says(&[
        "No model is asked: a script that ships with jm plays its part",
        "go back to the model",
        "verifying round 2",
    ]);
    ran.prints(&[
        "+    items.div_ceil(per_page)",
        "passed",
        "verified",
        "1 round of feedback",
        "take it back with: jm undo",
    ]);
    let failed = ran.stderr.find('✗').expect("a check fails first");
    let passed = ran.stderr.rfind('✓').expect("and passes then");
    assert!(failed < passed);
    assert_eq!(std::fs::read_dir(house.at("tmp")).unwrap().count(), 0, "no directory is left behind");
    assert_eq!(std::fs::read_dir(house.project()).unwrap().count(), 0);
}

#[test]
fn a_kept_demo_can_be_undone() {
    if !needs(&["cargo"]) {
        return;
    }
    let house = House::new();
    let ran = demo(&house, &["--keep"]).expect(0);
    let line = ran.stderr.lines().find(|line| line.contains("project:")).unwrap();
    let place = PathBuf::from(line.split_once("project:").unwrap().1.trim());
    let source = || std::fs::read_to_string(place.join("src/lib.rs")).unwrap();
    assert!(source().contains("div_ceil"));
    house.jm(&["undo"]).dir(&place).run().expect(0).prints(&["restored src/lib.rs"]);
    assert!(!source().contains("div_ceil"));
}

#[test]
fn without_cargo_the_demo_says_so() {
    if !crate::support::needs_sandbox() {
        return;
    }
    let house = House::new();
    let ran = house.jm(&["demo"]).env("PATH", "/nowhere").run().expect(8);
    ran.says(&["there is no cargo"]);
    assert_eq!(std::fs::read_dir(house.at("tmp")).unwrap().count(), 0);
}
