//! `--commit` and `--branch`: a verified change as a commit, by the user's git.

use std::io::Write as _;

use journeyman_protocol::RunOutcome;

use serde_json::json;

use crate::support::{House, Jm, POLITE, Person, Server, call, needs, polite_edit, say};

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
    // By another process: what this one holds open for writing could leak into a test that starts a
    // program at the same time, and couldn't be executed.
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
    assert_eq!((report.outcome, report.commit), (RunOutcome::Error, None));
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

/// A model that makes the greeting polite, and changes another file.
fn polite_and(path: &str, search: &str, replace: &str) -> Server {
    Server::chat([
        call("edit_file", polite_edit())
            .and("edit_file", json!({"path": path, "search": search, "replace": replace})),
        say("I made the greeting polite."),
    ])
}

fn executable(house: &House, path: &str) {
    let status = std::process::Command::new("chmod").arg("755").arg(house.project().join(path)).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_hook_that_the_run_decides_about_reads_and_writes_nothing_outside() {
    if !needs(&["git", "make"]) {
        return;
    }
    for flags in [&["--commit"][..], &["--isolate", "--commit"], &["--isolate", "--branch", "polite"]] {
        for (hooks, changed, called) in [
            (Some("scripts/hooks"), "scripts/hooks/pre-commit", ""),
            (None, "scripts/lint.sh", "exec ./scripts/lint.sh"),
            (None, "lint.mk", "exec make -s -f lint.mk"),
        ] {
            let house = House::with_greeter();
            let text = if changed == "lint.mk" { "all:\n\ttrue\n" } else { "#!/bin/sh\ntrue\n" };
            house.write(changed, text);
            executable(&house, changed);
            house.git(&["init", "-q", "-b", "main"]);
            house.git(&["add", "."]);
            house.git(&["commit", "-q", "-m", "A greeter"]);
            if let Some(hooks) = hooks {
                house.git(&["config", "core.hooksPath", hooks]);
            } else {
                hook(&house, "pre-commit", &format!("#!/bin/sh\n{called}\n"));
            }
            let key = house.at("home/.ssh/id_test");
            std::fs::create_dir_all(key.parent().unwrap()).unwrap();
            std::fs::write(&key, "a private key").unwrap();
            let attack = format!(
                "cat {key} >> greet.sh; git add greet.sh; echo ran >&2; (echo x > {out}) 2> /dev/null; true",
                key = key.display(),
                out = house.at("escaped").display()
            );
            let server = polite_and(changed, "true", &attack);
            // Whoever commits has read the finding about the swallowed failure.
            let accepting = ["--accept-finding", "failure-swallowed", "--json", "be polite"];
            let all: Vec<&str> = flags.iter().copied().chain(accepting).collect();
            let report = with_git(server.run(&house, &all)).run().expect(0).report();
            let id = report.commit.unwrap().id;
            assert_eq!(house.git(&["show", &format!("{id}:greet.sh")]), POLITE, "{flags:?} {changed}");
            assert!(!house.at("escaped").exists(), "{flags:?} {changed}");
        }
    }
}

#[test]
fn a_hook_formats_what_is_committed_and_undo_takes_it_back() {
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    let before = house.read("greet.sh");
    hook(&house, "pre-commit", "#!/bin/sh\necho '# formatted' >> greet.sh\ngit add greet.sh\n");
    hook(&house, "commit-msg", "#!/bin/sh\necho 'Ticket: 7' >> \"$1\"\n");
    let report =
        with_git(polite().run(&house, &["--commit", "--json", "be polite"])).run().expect(0).report();
    assert_eq!(house.git(&["show", "HEAD:greet.sh"]), format!("{POLITE}# formatted\n"));
    assert!(house.git(&["log", "-1", "--format=%B"]).ends_with("Ticket: 7\n\n"));
    is_clean(&house);
    let head = house.git(&["rev-parse", "--short=12", "HEAD"]);
    let revert = format!("git revert {}", head.trim());
    let undone = house.jm(&["undo", report.session.as_str()]).run().expect(0);
    assert!(undone.stdout.contains(&revert), "{}", undone.stdout);
    assert_eq!(house.read("greet.sh"), before);
    let redone = house.jm(&["redo"]).run().expect(0);
    assert!(!redone.stdout.contains("git revert"), "{}", redone.stdout);
}

#[test]
fn without_verifying_no_hook_runs() {
    if !needs(&["git", "make"]) {
        return;
    }
    let house = House::with_repository();
    hook(&house, "pre-commit", "#!/bin/sh\nexit 1\n");
    with_git(polite().run(&house, &["--commit", "--no-verify", "--json", "be polite"])).run().expect(0);
    is_clean(&house);
    let server = polite();
    server.run(&house, &["--no-verify", "be polite"]).run().expect(2).says(&["--no-verify", "--commit"]);
    assert!(server.seen().is_empty());
}

/// A repository with a filter whose program is a script of the project, which is about to be
/// changed.
fn with_a_filter() -> (House, Server) {
    let house = House::with_greeter();
    house.write("scripts/clean.sh", "cat\n");
    house.write(".gitattributes", "*.sh filter=x\n");
    house.git(&["init", "-q", "-b", "main"]);
    house.git(&["config", "filter.x.clean", "sh scripts/clean.sh"]);
    house.git(&["add", "."]);
    house.git(&["commit", "-q", "-m", "A greeter"]);
    let ran = house.at("ran");
    let server = polite_and("scripts/clean.sh", "cat", &format!("echo x > {}; cat", ran.display()));
    (house, server)
}

#[test]
fn a_program_of_gits_that_the_run_decides_about_does_not_run_where_nobody_looks() {
    if !needs(&["git", "make"]) {
        return;
    }
    for flags in [&["--commit"][..], &["--isolate", "--commit"], &["--isolate", "--branch", "polite"]] {
        let (house, server) = with_a_filter();
        let all: Vec<&str> = flags.iter().copied().chain(["--json", "be polite"]).collect();
        let ran = with_git(server.run(&house, &all)).run().expect(6);
        let report = ran.report();
        assert_eq!((report.outcome, report.commit), (RunOutcome::PermissionNeeded, None));
        assert!(report.summary.contains("scripts/clean.sh"), "{}", report.summary);
        assert!(!house.at("ran").exists());
        assert_eq!(house.git(&["log", "--format=%s", "--all"]), "A greeter\n");
    }
}

#[test]
fn at_a_terminal_what_would_run_is_shown_before_it_does() {
    if !needs(&["git", "make", "setsid"]) {
        return;
    }
    for (answer, commits) in [("y\n", "2\n"), ("n\n", "1\n")] {
        let (house, server) = with_a_filter();
        let flags = ["--commit", "be polite"];
        let mut person = Person::start(with_git(server.run(&house, &flags)).env("NO_COLOR", "1").command());
        person.sees("Not committed yet:");
        person.sees("scripts/clean.sh");
        person.sees("Have you read it");
        assert!(!house.at("ran").exists());
        person.types(answer);
        let (code, _) = person.ends();
        assert_eq!(code, if answer == "y\n" { 0 } else { 6 });
        assert_eq!(house.git(&["rev-list", "--count", "HEAD"]), commits);
        assert_eq!(house.at("ran").exists(), answer == "y\n");
    }
}
