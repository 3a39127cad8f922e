//! `--commit` and `--branch`: a verified change as a commit, by the user's git.

use std::io::Write as _;

use journeyman_protocol::Outcome;

use crate::support::{House, Jm, POLITE, Server, call, needs, polite_edit, say};

fn polite() -> Server {
    Server::chat([
        call("edit_file", polite_edit()),
        say("I made the greeting polite.\n\nNothing else changed."),
    ])
}

/// A person's git: who they are, and nothing of this machine's.
fn with_git(jm: Jm) -> Jm {
    jm.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Jo")
        .env("GIT_AUTHOR_EMAIL", "jo@example.org")
        .env("GIT_COMMITTER_NAME", "Jo")
        .env("GIT_COMMITTER_EMAIL", "jo@example.org")
}

fn is_clean(house: &House) {
    assert_eq!(house.git(&["status", "--porcelain"]), "");
    house.git(&["fsck", "--strict"]);
}

fn hook(house: &House, name: &str, script: &str) {
    let path = house.project().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // By another process: what this one holds open for writing could leak into a test that starts a program at the same
    // time, and couldn't be executed.
    let mut writer = std::process::Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_verified_change_is_committed_and_the_message_says_why() {
    if !needs(&["git", "make"]) {
        return;
    }
    for flags in [&["--commit"][..], &["--isolate", "--commit"]] {
        let house = House::with_repository();
        let all: Vec<&str> = flags.iter().copied().chain(["--json", "make the greeting polite"]).collect();
        let ran = with_git(polite().run(&house, &all)).run().expect(0);
        let commit = ran.report().commit.unwrap();
        assert_eq!(house.read("greet.sh"), POLITE);
        assert_eq!(commit.id, house.git(&["rev-parse", "HEAD"]).trim());
        assert_eq!(
            house.git(&["log", "-1", "--format=%an %B"]),
            "Jo Make the greeting polite\n\nI made the greeting polite.\n\nNothing else changed.\n\nPassed: make test\n\n"
        );
        assert_eq!(house.git(&["rev-list", "--count", "HEAD"]), "2\n");
        is_clean(&house);
        ran.says(&["committed"]);
    }
}

#[test]
fn a_branch_of_its_own_leaves_the_other_where_it_is() {
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    let main = house.git(&["rev-parse", "main"]);
    let flags = ["--isolate", "--branch", "polite", "--message", "Say hello", "--json", "be polite"];
    let report = with_git(polite().run(&house, &flags)).run().expect(0).report();
    assert_eq!(report.commit.unwrap().branch.as_deref(), Some("polite"));
    assert_eq!(house.git(&["rev-parse", "main"]), main);
    assert_eq!(house.git(&["log", "-1", "--format=%s", "polite"]), "Say hello\n");
    house.git(&["fsck", "--strict"]);
}

#[test]
fn a_hook_that_refuses_leaves_the_change_uncommitted_and_is_heard() {
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    hook(&house, "pre-commit", "#!/bin/sh\necho 'no politeness on Fridays' >&2\nexit 1\n");
    let head = house.git(&["rev-parse", "HEAD"]);
    let ran =
        with_git(polite().run(&house, &["--isolate", "--commit", "--json", "be polite"])).run().expect(1);
    let report = ran.report();
    assert_eq!((report.outcome, report.commit), (Outcome::Error, None));
    assert!(report.summary.contains("no politeness on Fridays"), "{}", report.summary);
    assert_eq!(house.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn changes_of_the_user_are_not_mixed_in() {
    if !needs(&["git", "make"]) {
        return;
    }
    for flags in [&["--commit"][..], &["--isolate", "--commit"]] {
        let house = House::with_repository();
        house.write("greet.sh", format!("{}\n\n\n# mine\n", house.read("greet.sh")));
        house.write("other.txt", "mine too\n");
        let head = house.git(&["rev-parse", "HEAD"]);
        let all: Vec<&str> = flags.iter().copied().chain(["--json", "be polite"]).collect();
        let report = with_git(polite().run(&house, &all)).run().expect(1).report();
        assert!(report.summary.contains("greet.sh"), "{}", report.summary);
        assert!(!report.summary.contains("other.txt"), "{}", report.summary);
        assert_eq!(house.git(&["rev-parse", "HEAD"]), head);
        assert!(house.read("greet.sh").contains("# mine"));
    }
}

#[test]
fn nothing_is_committed_that_nothing_verified() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_repository();
    let head = house.git(&["rev-parse", "HEAD"]);
    let ran =
        with_git(polite().run(&house, &["--commit", "--no-check", "--json", "be polite"])).run().expect(4);
    assert!(ran.report().summary.contains("not committed"), "{}", ran.stdout);
    assert_eq!(house.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn without_a_repository_the_run_does_not_begin() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_greeter();
    let server = polite();
    with_git(server.run(&house, &["--commit", "be polite"])).run().expect(1).says(&["no git repository"]);
    assert!(server.seen().is_empty());
}
