//! What read-only means, tried: the commands that are called so are run by `/bin/sh`, and change
//! nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use journeyman_policy::analyse_command;
use journeyman_protocol::Level;

use crate::commands::everyday::EVERYDAY;
use crate::commands::harmless::HARMLESS;

/// Commands that wait for what nobody sends here, or look at all that the machine runs.
const SKIPPED: &[&str] = &["lsof", "ss ", "pgrep", "netstat"];
/// At least so many are run; fewer would be no trial.
const WANTED: usize = 500;
/// Commands that run at once.
const THREADS: usize = 3;

/// Every file beneath a directory, with its content, size, mode and times of change.
fn everything(root: &Path) -> BTreeMap<String, (Vec<u8>, u32, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        // git may write its own index anew when it is asked for the status: that is no change of
        // the project.
        let name = path.display().to_string();
        if !name.contains("/.git") {
            found.insert(name, (content, metadata.mode(), metadata.mtime(), metadata.mtime_nsec()));
        }
    }
    found
}

/// The commands that are called read-only.
fn read_only_commands() -> Vec<&'static str> {
    let everyday = EVERYDAY.iter().map(|(_, command)| *command);
    let all = HARMLESS.iter().copied().chain(everyday);
    all.filter(|command| {
        analyse_command(command, &[]).level == Level::ReadOnly
            && !SKIPPED.iter().any(|skipped| command.contains(skipped))
    })
    .collect()
}

#[test]
fn what_is_called_read_only_changes_nothing_when_it_runs() {
    let commands = read_only_commands();
    assert!(commands.len() >= WANTED, "{}", commands.len());
    // Most of the time is the starting of programs, so each thread has a project of its own.
    std::thread::scope(|scope| {
        for (nth, commands) in commands.chunks(commands.len().div_ceil(THREADS)).enumerate() {
            scope.spawn(move || run_and_compare(nth, commands));
        }
    });
    println!("{} commands that are called read-only were run, and changed nothing", commands.len());
}

/// Runs the commands in a project, and asserts after each that nothing changed.
fn run_and_compare(nth: usize, commands: &[&str]) {
    let place = std::env::temp_dir().join(format!("journeyman-promise-{}-{nth}", std::process::id()));
    let root = place.join("project");
    std::fs::create_dir_all(root.join("src/sub")).unwrap();
    std::fs::create_dir_all(root.join("tests")).unwrap();
    for name in [
        "a",
        "b",
        "x",
        "y",
        "names",
        "names.txt",
        "src/lib.rs",
        "src/main.rs",
        "tests/t.rs",
        "Cargo.toml",
        "data.csv",
        "package.json",
        "notes.txt",
        "README.md",
        "build.log",
        "-o",
        "-delete",
        "--output=z",
    ] {
        std::fs::write(root.join(name), "one two three\nfn main() {}\nTODO foo bar\n").unwrap();
    }
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(&root)
            .env("HOME", &place)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "--allow-empty", "-m", "x"]);
    let before = everything(&place);
    for command in commands {
        let done = Command::new("timeout")
            .args(["20", "/bin/sh", "-c", command])
            .current_dir(&root)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(done.is_ok(), "{command}: {done:?}");
        let after = everything(&place);
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{command}");
        assert!(after == before, "{command} changed a file");
    }
    std::fs::remove_dir_all(&place).unwrap();
}
