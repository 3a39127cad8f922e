//! Commands: their results, what they change, and the rest of their output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod bench;

use bench::Bench;
use journeyman_protocol::{FileChangeKind, Needs};
use serde_json::json;

fn run(bench: &Bench, command: &str) -> String {
    bench.say("run_command", json!({ "command": command }))
}

#[test]
fn a_result_says_how_it_ended_and_what_it_printed() {
    let bench = Bench::new(&[("sub/x", b"")]);
    let cases = [
        ("true", "exit code 0, no output\n"),
        ("printf hi", "exit code 0\nhi\n"),
        ("echo out; echo err >&2; exit 3", "exit code 3\nout\nerr\n"),
        ("kill -9 $$", "killed by signal 9, no output\n"),
    ];
    for (command, expected) in cases {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        assert_eq!(bench::text(&output), expected, "{command}");
        assert_eq!(output.is_error, !expected.starts_with("exit code 0"), "{command}");
        assert_eq!(output.changes, []);
    }
    let said = bench.say("run_command", json!({"command": "pwd", "directory": "sub"}));
    assert_eq!(said, format!("exit code 0\n{}\n", bench.root.join("sub").display()));
    let said = bench.say("run_command", json!({"command": "pwd", "directory": "sup"}));
    assert!(said.starts_with("error: «sup» doesn't exist"), "{said}");
}

#[test]
fn output_is_shown_as_it_comes() {
    let bench = Bench::new(&[]);
    run(&bench, "echo one; echo two");
    assert_eq!(*bench.live.lock().unwrap(), "one\ntwo\n");
}

#[test]
fn changed_files_are_named_and_can_be_undone() {
    let bench = Bench::new(&[("a", b"1\n"), ("b", b"2\n")]);
    let output = bench.call("run_command", json!({"command": "echo 3 >> a; rm b; echo new > c"})).unwrap();
    assert_eq!(
        bench::text(&output),
        "exit code 0, no output\n[files changed: a (modified), b (deleted), c (added)]\n"
    );
    let kinds: Vec<FileChangeKind> = output.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [FileChangeKind::Modified, FileChangeKind::Deleted, FileChangeKind::Added]);
    let report = bench.context.workspace.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!(report.restored.len(), 3);
    assert_eq!((bench.file("a"), bench.file("b")), (b"1\n".to_vec(), b"2\n".to_vec()));
}

#[test]
fn long_output_keeps_head_and_tail_and_the_rest_is_reachable() {
    let bench = Bench::new(&[]);
    let said = run(&bench, "seq 1 20000");
    assert!(said.len() < 31_000, "{}", said.len());
    assert!(said.starts_with("exit code 0\n1\n2\n") && said.ends_with("\n19999\n20000\n"));
    let note = said.lines().find(|line| line.contains("left out")).unwrap();
    assert!(note.contains("read_file with path output:call_1 and offset "), "{note}");
    let offset: u64 = note.split("offset ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let rest = bench.say("read_file", json!({"path": "output:call_1", "offset": offset, "limit": 2}));
    assert_eq!(
        rest,
        format!(
            "{offset}\t{offset}\n{}\t{}\n[the output has 20000 lines; go on with offset {}]",
            offset + 1,
            offset + 1,
            offset + 2
        )
    );
    assert!(said.contains(&format!("\n{}\n\n[", offset - 1)), "{note}");
    let said = bench.say("read_file", json!({"path": "output:other"}));
    assert_eq!(said, "error: no output of a call «other» is held (only of call_1); run the command again");
}

#[test]
fn a_hung_command_is_killed_with_its_children() {
    let bench = Bench::new(&[]);
    let output = bench
        .call("run_command", json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout_s": 1}))
        .unwrap();
    assert_eq!(bench::text(&output), "killed at its time limit of 1 s (timeout_s may be up to 600)\nbegun\n");
    assert!(output.is_error);
}

#[test]
fn an_interrupt_ends_the_command() {
    let bench = Bench::new(&[]);
    let cancel = bench.context.cancel.clone();
    let mut bench = bench;
    bench.context.output = std::sync::Arc::new(move |_| cancel.cancel());
    let said = run(&bench, "echo begun; sleep 1000");
    assert_eq!(said, "interrupted\nbegun\n");
    assert_eq!(run(&bench, "true"), "error: the call was interrupted");
}

#[test]
fn hostile_output_is_cleaned_and_bounded() {
    let bench = Bench::new(&[]);
    let said = run(&bench, "printf '\\033[31mred\\033[0m\\000\\377end\\n'");
    assert!(
        !said.contains('\u{1b}') && !said.contains('\0') && said.contains("red") && said.contains("end"),
        "{said:?}"
    );
    let said = run(&bench, "head -c 10000000 /dev/zero | tr '\\0' x");
    assert!(said.len() < 31_000, "{}", said.len());
    assert!(bench.live.lock().unwrap().len() <= 600 * 1024);
}

#[test]
fn a_command_that_can_not_be_confined_as_needed_does_not_run() {
    let mut bench = Bench::new(&[("a", b"")]);
    bench.context.needs = Needs::ALL;
    let said = run(&bench, "rm a");
    assert!(said.starts_with("error: the command did not run: refused: "), "{said}");
    assert!(bench.root.join("a").exists());
}

#[test]
fn a_repository_that_a_command_makes_is_moved_away() {
    let bench =
        Bench::new(&[("sub/a", b"1\n"), ("old/.git/HEAD", b"ref: x\n"), ("mod/.git", b"gitdir: ../m\n")]);
    let cases = [
        ("mkdir .git; echo x > .git/config", ".git"),
        ("mkdir -p sub/.git/hooks", "sub/.git"),
        ("mkdir sub/.GIT", "sub/.GIT"),
        ("echo 'gitdir: /tmp/x' > sub/.git", "sub/.git"),
        ("ln -s /tmp/x sub/.git", "sub/.git"),
        ("echo 'gitdir: ../other' > mod/.git", "mod/.git"),
        ("mv old gone; mkdir -p old/.git", "old/.git"),
        ("mkdir -p sub/.git; exit 3", "sub/.git"),
        ("mkdir -p sub/.git; chmod 0 sub/.git", "sub/.git"),
        ("mkdir -p sub/.git; echo sub > .gitignore", "sub/.git"),
    ];
    for (command, path) in cases {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        let said = bench::text(&output);
        let expected = format!("error: a command may not create a repository here: {path} was moved to ");
        assert!(said.contains(&expected) && output.is_error, "{command}: {said}");
        assert!(bench.root.join(path).symlink_metadata().is_err(), "{command}");
        let place = said.split("was moved to ").nth(1).unwrap().split(". Only").next().unwrap();
        assert!(
            std::path::Path::new(place).exists() && !place.starts_with(bench.root.to_str().unwrap()),
            "{said}"
        );
    }
    assert!(bench.root.join("gone/.git/HEAD").exists(), "one that only moved stays");
    assert_eq!(run(&bench, "true"), "exit code 0, no output\n");
}

#[test]
fn changes_that_are_a_persons_to_make_are_named_and_can_be_undone() {
    let bench = Bench::new(&[("a", b""), (".gitignore", b"hidden\n")]);
    let cases = [
        ("echo x > .envrc", ".envrc"),
        ("mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json", "sub/.vscode/tasks.json"),
        ("mkdir .journeyman; echo x > .journeyman/config.toml", ".journeyman/config.toml"),
    ];
    for (command, path) in cases {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        let said = bench::text(&output);
        let expected = format!("error: programs outside the sandbox run or obey {path}, so the person must");
        assert!(said.contains(&expected) && output.is_error, "{command}: {said}");
    }
    bench.context.workspace.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert!(!bench.root.join(".envrc").exists() && !bench.root.join(".journeyman/config.toml").exists());
    std::fs::remove_dir_all(bench.root.join(".journeyman")).ok();
    std::fs::write(bench.root.join(".gitignore"), ".journeyman\n").unwrap();
    let said = run(&bench, "mkdir .journeyman; echo x > .journeyman/config.toml");
    assert!(said.contains("run or obey .journeyman, so"), "{said}");
    std::fs::write(bench.root.join(".gitignore"), ".*\n").unwrap();
    let said = run(&bench, "echo x > .envrc");
    assert!(said.contains("run or obey .envrc, so"), "{said}");
}
