//! `jm run --isolate`, `jm land`, `jm discard`: work in a copy, and what becomes of it.

use std::path::PathBuf;
use std::process::Command;

use journeyman_protocol::{CopyState, Event, RunOutcome, RunReport};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    House, Jm, KEY, POLITE, Ran, Seen, Server, Step, call, has_program, needs, needs_mounts, needs_sandbox,
    polite_edit, say,
};

/// The greeting before the run.
fn rude(house: &House) -> String {
    house.read("greet.sh")
}

/// A model that makes the greeting polite and says so, while `meanwhile` happens before its second
/// reply.
fn polite_while(house: &House, meanwhile: impl Fn(PathBuf) + Send + Sync + 'static) -> Server {
    let project = house.project();
    Server::answering(move |nth, _: &Seen| match nth {
        1 => call("edit_file", polite_edit()).into(),
        2 => {
            meanwhile(project.clone());
            say("Polite now.").into()
        }
        _ => say("Still polite.").into(),
    })
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}\n{}", ran.stdout))
}

/// A run whose work is kept, for nothing verified it.
fn kept(house: &House) -> String {
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
    let report =
        server.run(house, &["--isolate", "--no-check", "--json", "be polite"]).run().expect(4).report();
    assert_eq!(report.copy.unwrap().state, CopyState::Kept);
    report.session.to_string()
}

#[test]
fn verified_work_is_landed_in_one_step_and_can_be_taken_back() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let unchanged = before.clone();
    let project = house.project();
    let server = polite_while(&house, move |_| {
        assert_eq!(
            crate::support::snapshot(&project),
            unchanged,
            "nothing reaches the project before the end"
        );
    });
    let ran = server.run(&house, &["--isolate", "--json", "be polite"]).run().expect(0);
    let report = ran.report();
    let copy = report.copy.clone().unwrap();
    assert_eq!((report.outcome, copy.state), (RunOutcome::Verified, CopyState::Landed));
    assert!(["overlay", "reflink", "worktree", "copy"].contains(&copy.tier.as_str()), "{}", copy.tier);
    assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
    assert!(report.diff.contains("+    echo \"Hello, $1!\""), "{}", report.diff);
    ran.says(&["isolated", &copy.tier, "landed  1 file"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    assert_eq!(house.sessions()[0]["copy"], Value::Null);

    let events = house.jm(&["show", "--json"]).run().expect(0).events();
    let kinds: Vec<&str> = events.iter().map(|envelope| envelope.event.kind()).collect();
    let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap_or_else(|| panic!("{kind}"));
    assert!(place("isolated") < place("tool_start"));
    assert!(place("done") < place("landed"), "it is landed when the session is over");

    house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn what_it_prints_into_the_project_is_nobodys_change() {
    if !needs(&["make"]) || !needs_sandbox() {
        return;
    }
    for place in ["--isolate", "--in-place"] {
        let house = House::with_greeter();
        let log = house.project().join("err.log");
        let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
        let mut command = server.run(&house, &[place, "--json", "be polite"]).command();
        let ran = command.stderr(std::fs::File::create(&log).unwrap()).output().unwrap();
        let report: RunReport = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{place}: {}", report.summary);
        let changed: Vec<String> = report.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(changed, ["greet.sh"], "{place}");
        let printed = house.read("err.log");
        assert!(printed.contains("verifying round 1") && !printed.contains("round 2"), "{printed}");
        house.jm(&["undo"]).run().expect(0).prints(&["1 file taken back"]);
        assert_eq!(house.read("err.log"), printed, "{place}");
    }
}

#[test]
fn unverified_work_is_kept_until_somebody_decides() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let session = kept(&house);
    assert_eq!(house.tree(), before);
    assert_ne!(house.sessions()[0]["copy"], Value::Null);
    house.jm(&["sessions"]).run().expect(0).prints(&["kept in its copy"]);
    house.jm(&["delete", "--yes", &session]).run().expect(2).says(&["jm land", "jm discard"]);

    for undo in [&["undo"][..], &["undo", &session]] {
        house.jm(undo).run().expect(2).says(&["is in a copy", "jm discard"]);
    }

    let dry = house.jm(&["land", "--dry-run"]).run().expect(0);
    dry.prints(&["+    echo \"Hello, $1!\"", "1 file would be landed; nothing verified it"]);
    let refused = house.jm(&["land"]).run().expect(6);
    refused.prints(&["nothing verified it"]);
    // The command that was just refused is no advice.
    let advice: Vec<&str> = refused.stdout.lines().filter(|line| line.contains("land it")).collect();
    assert_eq!(advice, [format!("land it with: jm land {session} --unverified")]);
    assert_eq!(house.tree(), before);

    let landed = json_of(&house.jm(&["land", &session, "--unverified", "--json"]).run().expect(0));
    assert_eq!((&landed["end"], &landed["copy"]["state"]), (&json!("landed"), &json!("landed")));
    assert_eq!(landed["exit_code"], 0);
    assert_eq!(house.read("greet.sh"), POLITE);
    assert_eq!(house.sessions()[0]["copy"], Value::Null);
    house.jm(&["land"]).run().expect(2).says(&["no session's work is kept"]);
    house.jm(&["land", &session]).run().expect(2).says(&["is landed already"]);

    house.jm(&["undo", &session]).run().expect(0);
    assert_eq!(house.tree(), before);
    house.jm(&["delete", "--yes", &session]).run().expect(0);
}

#[test]
fn discarded_work_is_gone() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let session = kept(&house);
    house.jm(&["discard"]).run().expect(2).says(&["--yes"]);
    house.jm(&["discard", "--yes"]).run().expect(0).prints(&["discarded 1 changed file", &session]);
    assert_eq!(house.tree(), before);
    house.jm(&["discard", "--yes", &session]).run().expect(2).says(&["has no copy"]);
    let left = std::fs::read_dir(house.state().join("projects")).unwrap();
    for project in left.map(Result::unwrap) {
        let work = project.path().join("work");
        let copies =
            std::fs::read_dir(&work).map(|all| all.filter_map(Result::ok).count()).unwrap_or_default();
        assert_eq!(copies, 0, "{}", work.display());
    }
}

#[test]
fn a_run_that_changes_nothing_leaves_no_copy() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("There is nothing to do.")]);
    let report = server.run(&house, &["--isolate", "--json", "look"]).run().expect(4).report();
    assert_eq!(report.copy.unwrap().state, CopyState::Discarded);
    assert_eq!(house.sessions()[0]["copy"], Value::Null);
}

/// Everything that a kill between the landing and the copy's removal leaves: the tree and the
/// journal as they are after the landing, the copy and the session log as they were before it.
fn landed_and_cut_off(house: &House, id: &str) {
    let dirs = |from: &std::path::Path, ends: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(from).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(ends)).collect()
    };
    let project = dirs(&house.state().join("projects"), "").remove(0);
    let mut saved = dirs(house.at(".").as_path(), ".journeyman-work-");
    saved.push(project.join("work"));
    saved.extend(dirs(&house.state(), "sessions.db"));
    let copied = |from: &std::path::Path, to: &std::path::Path| {
        let status = std::process::Command::new("cp").arg("-aT").arg(from).arg(to).status().unwrap();
        assert!(status.success());
    };
    let aside = house.at("aside");
    std::fs::create_dir(&aside).unwrap();
    for (number, path) in saved.iter().enumerate() {
        copied(path, &aside.join(number.to_string()));
    }
    house.jm(&["land", id, "--unverified"]).run().expect(0).prints(&["landed: 1 file"]);
    for (number, path) in saved.iter().enumerate() {
        let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        removed.or_else(|error| if path.exists() { Err(error) } else { Ok(()) }).unwrap();
        copied(&aside.join(number.to_string()), path);
    }
    std::fs::remove_dir_all(&aside).unwrap();
    assert!(project.join("work").join(id).is_dir());
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn work_that_is_landed_is_never_said_to_be_in_its_copy() {
    let already = "is landed already";
    // Each command as the first one after the kill.
    type Look = fn(&House, &str);
    let looks: &[Look] = &[
        |house, _| assert_eq!(house.sessions()[0]["copy"], Value::Null),
        |house, _| {
            let listed = house.jm(&["sessions"]).run().expect(0).stdout;
            assert!(!listed.contains("kept in its copy"), "{listed}");
        },
        |house, id| {
            house.jm(&["land", id, "--dry-run"]).run().expect(2).says(&["is landed already", "jm undo"]);
        },
        |house, _| {
            house.jm(&["land", "--dry-run"]).run().expect(2).says(&["no session's work is kept in a copy"]);
        },
        |house, id| {
            house.jm(&["discard", id, "--yes"]).run().expect(2).says(&["is landed already", "jm undo"]);
        },
        |house, id| {
            house.jm(&["resume", id]).run().expect(2).says(&["nothing to finish"]);
        },
    ];
    for look in looks {
        let house = House::with_greeter();
        let before = house.tree();
        let id = kept(&house);
        landed_and_cut_off(&house, &id);
        look(&house, &id);
        assert_eq!(house.read("greet.sh"), POLITE);
        house.jm(&["discard", &id, "--yes"]).run().expect(2).says(&[already]);
        house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
        assert_eq!(house.tree(), before);
    }
    let house = House::with_greeter();
    let before = house.tree();
    let id = kept(&house);
    landed_and_cut_off(&house, &id);
    house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn what_the_user_changes_meanwhile_is_verified_along_and_stays() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    house.write("greet.sh", format!("{}\n\n\n# The end.\n", rude(&house)));
    let server = polite_while(&house, |project| {
        let text = std::fs::read_to_string(project.join("greet.sh")).unwrap();
        std::fs::write(project.join("greet.sh"), text.replace("# The end.", "# My end.")).unwrap();
        std::fs::write(project.join("mine.txt"), "mine\n").unwrap();
    });
    let ran = server.run(&house, &["--isolate", "--json", "be polite"]).run().expect(0);
    let report = ran.report();
    ran.says(&["mine.txt: taken over", "greet.sh: merged with your own changes"]);
    assert_eq!(report.copy.unwrap().state, CopyState::Landed);
    let text = house.read("greet.sh");
    assert!(text.contains("Hello, $1!") && text.contains("# My end."), "{text}");
    assert_eq!(house.read("mine.txt"), "mine\n");
    let paths: Vec<String> = report.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["greet.sh"], "what is the user's own isn't the run's change");
}

#[test]
fn a_conflict_lands_nothing_and_names_the_files() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let mine = rude(&house).replace("hello $1", "good day $1");
    let theirs = mine.clone();
    let server =
        polite_while(&house, move |project| std::fs::write(project.join("greet.sh"), &theirs).unwrap());
    let ran = server.run(&house, &["--isolate", "--json", "be polite"]).run().expect(9);
    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Conflict);
    let copy = report.copy.unwrap();
    assert_eq!(copy.state, CopyState::Kept);
    let paths: Vec<String> = copy.conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
    assert_eq!(paths, ["greet.sh"]);
    assert_eq!(house.read("greet.sh"), mine);
    assert_eq!(house.sessions()[0]["status"], "conflict");

    let session = report.session.to_string();
    house.jm(&["land", &session]).run().expect(9).prints(&["conflict greet.sh", "--on-conflict"]);
    assert_eq!(house.read("greet.sh"), mine);
    house.jm(&["land", &session, "--on-conflict", "theirs"]).run().expect(0).prints(&["landed"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    house.jm(&["undo", &session]).run().expect(0);
    assert_eq!(house.read("greet.sh"), mine);
}

#[test]
fn markers_are_written_only_where_they_are_asked_for() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = polite_while(&house, |project| {
        let text = std::fs::read_to_string(project.join("greet.sh")).unwrap();
        std::fs::write(project.join("greet.sh"), text.replace("hello $1", "good day $1")).unwrap();
    });
    server.run(&house, &["--isolate", "be polite"]).run().expect(9);
    assert!(!rude(&house).contains("<<<<<<<"));
    house.jm(&["land", "--on-conflict", "markers"]).run().expect(0);
    let text = house.read("greet.sh");
    for part in ["<<<<<<<", "good day $1", "Hello, $1!", ">>>>>>>"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn kept_work_is_proven_again_before_it_is_landed_on_other_files() {
    if !needs(&["make"]) {
        return;
    }
    // What the user does to the file below the greeting; whether the checks pass on both together.
    for (added, code) in [("# My own words.\n", 0), ("greet() { echo rude; }\n", 9)] {
        let house = House::with_greeter();
        house.write("greet.sh", format!("{}\n\n\n\n# The end.\n", rude(&house)));
        let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
        let ran = server.run(&house, &["--isolate", "--no-land", "--json", "be polite"]).run().expect(0);
        let report = ran.report();
        assert_eq!(report.copy.unwrap().state, CopyState::Kept);

        house.write("greet.sh", format!("{}{added}", rude(&house)));
        let mine = rude(&house);
        let landed = json_of(&house.jm(&["land", "--json"]).run().expect(code));
        assert_eq!(landed["evidence"].as_array().map(Vec::len), Some(1), "{landed}");
        let text = house.read("greet.sh");
        if code == 0 {
            assert_eq!(landed["end"], "landed");
            assert!(text.contains("Hello, $1!") && text.contains(added), "{text}");
        } else {
            assert_eq!((&landed["end"], &landed["copy"]["state"]), (&json!("checks_fail"), &json!("kept")));
            assert_eq!(text, mine);
        }
    }
}

#[test]
fn a_session_that_was_killed_goes_on_in_its_copy() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let steps: [Step; 3] = [call("edit_file", polite_edit()).into(), Step::Stall, say("Polite now.").into()];
    let server = Server::start(crate::support::Wire::Chat, steps);
    let running = server.run(&house, &["--isolate", "be polite"]).start();
    server.wait_for(2);
    running.signal(Signal::KILL);
    running.gone();
    assert_eq!(house.tree(), before);
    assert_ne!(house.sessions()[0]["copy"], Value::Null);
    let resumed = house.jm(&["resume", "--in-place"]).env("JM_API_KEY", KEY).run().expect(2);
    resumed.says(&["is in a copy"]);

    let ran = house.jm(&["resume"]).env("JM_API_KEY", KEY).run().expect(0);
    ran.says(&["opened again", "landed  1 file"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    let events = house.jm(&["show", "--json"]).run().expect(0).events();
    let again =
        events.iter().any(|envelope| matches!(envelope.event, Event::Isolated { reopened: true, .. }));
    assert!(again, "the copy was opened again");
}

#[test]
fn configuration_makes_it_the_rule_and_names_the_ways() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    house.configure("isolate = true\nisolation = [\"copy\"]\n");
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
    let report = server.run(&house, &["--json", "be polite"]).without("JM_ISOLATE").run().expect(0).report();
    assert_eq!(report.copy.unwrap().tier, "copy");

    let server = Server::chat([say("Nothing.")]);
    let report = server.run(&house, &["--json", "--in-place", "look"]).run().expect(4).report();
    assert_eq!(report.copy, None);

    house.configure("isolation = [\"magic\"]\n");
    server.run(&house, &["look"]).run().expect(2).says(&["isolation", "magic", "overlay"]);
    house.configure("isolate = true\n");
    house.write(".journeyman/config.toml", "isolate = false\n");
    server.run(&house, &["look"]).without("JM_ISOLATE").run().expect(2).says(&["isolate"]);
}

#[test]
fn without_a_flag_a_run_lands_only_what_is_verified() {
    if !needs(&["make"]) || !needs_mounts() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let polite = || Server::chat([call("edit_file", polite_edit()), say("Polite now."), say("It stays so.")]);

    let server = polite();
    let kept = server.run(&house, &["--check", "false", "--max-iterations", "1", "be polite"]);
    let kept = kept.without("JM_ISOLATE").run().expect(3);
    kept.prints(&["kept in its copy", "land it with: jm land ", "drop it with: jm discard "]);
    assert_eq!(house.tree(), before, "work that isn't verified stays in its copy");
    house.jm(&["discard", "--yes", "1"]).run().expect(0);

    let server = polite();
    let in_place = server.run(&house, &["--in-place", "--no-check", "be polite"]);
    in_place.without("JM_ISOLATE").run().expect(4);
    assert_eq!(house.read("greet.sh"), POLITE, "--in-place works in the user's files");
    house.jm(&["undo"]).run().expect(0);

    let server = polite();
    let verified = server.run(&house, &["be polite"]).without("JM_ISOLATE").run().expect(0);
    verified.says(&["isolated", "landed  1 file"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    house.jm(&["undo", "1"]).run().expect(0);
    assert_eq!(house.tree(), before);

    let server = Server::chat([say("It greets.")]);
    let asked = server.run(&house, &["--mode", "plan", "--json", "what is it?"]).without("JM_ISOLATE");
    assert_eq!(asked.run().expect(0).report().copy, None, "a question needs no copy");
}

#[test]
fn where_no_copy_is_cheap_a_run_works_in_the_users_files_and_says_so() {
    let house = House::with_greeter();
    house.configure("isolation = [\"copy\"]\n");
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now."), say("Done.")]);
    let ran = server.run(&house, &["--no-check", "be polite"]).without("JM_ISOLATE").run().expect(4);
    ran.says(&["works in your files: no copy is cheap here"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    // The session goes on where it began.
    let url = server.url();
    let again = house.jm(&["resume", "1", "go on", "--base-url", &url, "--wire", "chat", "--model", "tiny"]);
    again.env("JM_API_KEY", KEY).without("JM_ISOLATE").run().expect(4);
    assert_eq!(house.sessions()[0]["copy"], Value::Null);
}

#[test]
fn what_a_command_destroys_in_a_copy_needs_nobody() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write(".gitignore", "target/\n.env\n");
    house.write(".env", "KEY=1\n");
    house.write("target/made", "1\n");
    let before = house.tree();
    let remove = || call("run_command", json!({"command": "rm -rf .env target && touch made"}));
    let server = Server::chat([remove(), say("Clean."), remove(), say("Clean.")]);
    let run = server.run(&house, &["--isolate", "--no-check", "clean up"]).run().expect(4);
    run.prints(&["diff --git a/made b/made", "\nland it with: jm land ", "\ndrop it with: jm discard "]);
    house.jm(&["land", "1", "--unverified"]).run().expect(0);
    assert!(house.project().join("made").exists());
    std::fs::remove_file(house.project().join("made")).unwrap();
    assert_eq!(house.tree(), before, "what is ignored stays as it is");
    // In the files themselves it is tried out, and `undo` has what is small.
    server.run(&house, &["--in-place", "--no-check", "clean up"]).run().expect(4);
    assert!(!house.project().join(".env").exists());
}

#[test]
fn a_tree_of_several_owners_is_worked_on_where_it_can_be_changed() {
    const NOBODY: u32 = 65534;
    if !needs_sandbox() || !rustix::process::geteuid().is_root() || !has_program("setpriv") {
        eprintln!("skipped: files of other owners need root and setpriv");
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
    let inner = server.run(&house, &["be polite"]).without("JM_ISOLATE").command();
    let chown = |path: &str| {
        let owner = format!("{NOBODY}:0");
        let ran = Command::new("chown").args(["-R", &owner, path]).status().unwrap();
        assert!(ran.success());
    };
    for name in ["", "state", "config", "tmp", "home"] {
        std::fs::create_dir_all(house.at(name)).unwrap();
    }
    chown(house.at("").to_str().unwrap());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(house.project()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Jm::new(command).run().expect(0);
    ran.says(&["works in your files: no copy is cheap here", "which belongs to another user or group"]);
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn flags_that_make_no_sense_together_are_refused() {
    let house = House::with_greeter();
    let server = Server::chat([say("")]);
    for (flags, word) in [
        (&["--no-land"][..], "--in-place"),
        (&["--message", "x"], "--commit"),
        (&["--isolate", "--no-land", "--commit"], "jm land --commit"),
        (&["--isolate", "--in-place"], "cannot be used"),
        (&["--land"], "--candidates"),
        (&["--candidates", "1"], "2..=8"),
        (&["--candidates", "9"], "2..=8"),
    ] {
        let all: Vec<&str> = flags.iter().copied().chain(["task"]).collect();
        server.run(&house, &all).run().expect(2).says(&[word]);
    }
    assert!(server.seen().is_empty());
}

#[test]
fn what_a_command_may_not_change_is_not_landed() {
    if !needs_sandbox() || !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let command = "ln -s ../up out";
    let server = Server::chat([
        call("run_command", json!({ "command": command })),
        call("edit_file", polite_edit()),
        say("Polite now."),
    ]);
    let ran = server.run(&house, &["--isolate", "--mode", "auto", "--json", "be polite"]).run().expect(9);
    let report = ran.report();
    let copy = report.copy.clone().unwrap();
    assert_eq!(copy.state, CopyState::Kept);
    let conflicts: Vec<String> = copy.conflicts.iter().map(|it| it.path.to_string()).collect();
    assert_eq!(conflicts, ["out"]);
    let by_whom = "not landed: a command in the copy made or changed out, which only you may land";
    assert!(report.summary.contains(by_whom) && !report.summary.contains("you changed"), "{report:?}");
    assert_eq!(house.tree(), before);
    // The rest of it can be had without it.
    let id = report.session.to_string();
    house.jm(&["land", &id, "--on-conflict", "mine"]).run().expect(0);
    assert_eq!(house.read("greet.sh"), POLITE);
    assert!(!house.project().join("out").is_symlink());
}

#[test]
fn what_a_command_plants_in_a_copy_does_not_land_and_is_called_the_commands() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write(".gitignore", "hidden/\n");
    let plant = "e=rc; echo evil > .env$e; mkdir -p hidden; echo evil > hidden/.env$e; \
                 echo 'echo polite' > greet.sh";
    let server = Server::chat([call("run_command", json!({ "command": plant })), say("Polite now.")]);
    let args = ["--isolate", "--json", "--mode", "auto", "--check", "true", "be polite"];
    let ran = server.run(&house, &args).run().expect(4);
    let report = ran.report();
    assert_eq!(report.copy.as_ref().unwrap().state, CopyState::Kept);
    let found: Vec<String> = report.violations.iter().map(|one| one.path.to_string()).collect();
    assert_eq!(found, [".envrc", "hidden/.envrc"]);
    assert!(
        report
            .violations
            .iter()
            .all(|one| { one.moved_to.as_ref().is_some_and(|place| std::path::Path::new(place).exists()) })
    );
    assert!(!report.summary.contains("you changed") && report.summary.contains("a command"), "{report:?}");
    // What is honest of it may be landed by the person, and the plants aren't among it.
    house.jm(&["land", &report.session.to_string(), "--unverified"]).run().expect(0);
    assert_eq!(rude(&house), "echo polite\n");
    assert!(!house.project().join(".envrc").exists() && !house.project().join("hidden").exists());
}

#[test]
fn work_is_dropped_whatever_the_project_configures() {
    let house = House::with_greeter();
    let session = kept(&house);
    house.write(".journeyman/config.toml", "checks = [\"sh -n greet.sh\"]\n");
    house.jm(&["land", &session]).run().expect(2).says(&["--trust-project"]);
    house.jm(&["discard", &session, "--yes"]).run().expect(0).prints(&["discarded 1 changed file"]);
    assert_eq!(house.sessions()[0]["copy"], Value::Null);
}

#[test]
fn a_word_that_names_no_one_session_drops_and_deletes_nothing() {
    let house = House::with_greeter();
    let session = kept(&house);
    house.jm(&["fork", &session]).run().expect(0);
    house.jm(&["discard", "0", "--yes"]).run().expect(2).says(&["is the beginning of 2 sessions"]);
    house.jm(&["delete", "1", "--yes"]).run().expect(0);
    for command in ["discard", "delete"] {
        house.jm(&[command, "", "--yes"]).run().expect(2).says(&["the session's id is empty"]);
    }
    assert_eq!(house.sessions()[0]["copy_changes"], 1);
    house.jm(&["discard", "0", "--yes"]).run().expect(0).prints(&[&session]);
}
