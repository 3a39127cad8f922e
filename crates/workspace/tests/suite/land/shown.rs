//! Diffs and figures of a copy's changes, as git has them.

use journeyman_testkit::skip;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use journeyman_workspace::DiffStat;

use crate::land::copied::Copied;
use crate::support::{Project, set_mode};

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let ran = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "core.quotePath=false", "-C"])
        .arg(root)
        .args(arguments)
        .output()
        .ok()?;
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(ran.status.success(), "git {arguments:?}: {said}");
    Some(said)
}

#[test]
fn figures() {
    // Before, after, lines added and removed.
    let table = [
        (Some("1\n2\n3\n"), Some("1\n2\n3\n4\n"), (1, 0)),
        (Some("1\n2\n3\n"), Some("1\n3\n"), (0, 1)),
        (Some("1\n2\n3"), Some("1\n2\n3\n"), (1, 1)),
        (Some("1"), Some(""), (0, 1)),
        (None, Some("1\n2"), (2, 0)),
        (None, Some(""), (0, 0)),
        (Some("1\r\n2\r\n"), Some("1\n2\n"), (2, 2)),
        (Some("a\nb\nc\nd\n"), Some("d\na\nb\nc\n"), (1, 1)),
        (Some("a\0b\n"), Some("a\0c\n"), (0, 0)),
        (Some("1\n2\n"), None, (0, 2)),
    ];
    for (before, after, (added, removed)) in table {
        let project = Project::with(&[]);
        if let Some(before) = before {
            project.write("f", before);
        }
        let copied = Copied::of(project);
        match after {
            Some(after) => copied.write("f", after),
            None => fs::remove_file(copied.copy_root().join("f")).unwrap(),
        }
        let stat = copied.user.landings().diff_stat(&copied.changes()).unwrap();
        assert_eq!(stat, DiffStat { files: 1, added, removed }, "{before:?} {after:?}");
    }
}

/// A repository, and a copy in which every kind of change was made that a patch can carry.
fn changed() -> Option<Copied> {
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let project = Project::with(&[
        ("edited", &long),
        ("gone", "gone\n"),
        ("run me", "#!/bin/sh\n"),
        ("was/named", &long.repeat(2)),
        ("tolink", "text\n"),
        ("open", "no end"),
        ("dir/x", "x\n"),
    ]);
    git(&project.root(), &["init", "-q"])?;
    git(&project.root(), &["add", "-A"]);
    git(&project.root(), &["commit", "-q", "-m", "base"]);
    let copied = Copied::of(project);
    let root = copied.copy_root();
    copied.write("edited", long.replace("line 3\n", "three\n").replace("line 30\n", ""));
    fs::remove_file(root.join("gone")).unwrap();
    set_mode(&root.join("run me"), 0o755);
    fs::create_dir(root.join("is")).unwrap();
    fs::rename(root.join("was/named"), root.join("is/named \"so\"")).unwrap();
    fs::remove_dir(root.join("was")).unwrap();
    fs::remove_file(root.join("tolink")).unwrap();
    symlink("edited", root.join("tolink")).unwrap();
    copied.write("open", "an end\n");
    copied.write("new/one", "1\n2\n");
    copied.write("empty", "");
    fs::remove_dir_all(root.join("dir")).unwrap();
    copied.write("dir", "a file\n");
    Some(copied)
}

#[test]
fn git_applies_the_diff_and_counts_the_same() {
    let Some(copied) = changed() else {
        skip("no git");
        return;
    };
    let changes = copied.changes();
    let diff = copied.user.landings().diff(&changes, usize::MAX).unwrap();
    assert!(
        diff.text.contains("rename from was/named\nrename to \"is/named \\\"so\\\"\"\n"),
        "{}",
        diff.text
    );
    let patch = copied.project.dir.path().join("patch");
    fs::write(&patch, &diff.text).unwrap();
    git(&copied.project.root(), &["apply", patch.to_str().unwrap()]);
    let (mut tree, mut wanted) = (copied.tree(), copied.copied());
    for model in [&mut tree, &mut wanted] {
        model.retain(|path, _| !path.starts_with(b".git"));
    }
    assert_eq!(tree, wanted);
    git(&copied.copy_root(), &["add", "-A"]);
    let counted = git(&copied.copy_root(), &["diff", "--cached", "--shortstat", "-M100%", "HEAD"]).unwrap();
    let numbers: Vec<usize> = counted.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let stat = copied.user.landings().diff_stat(&changes).unwrap();
    assert_eq!(numbers, [stat.files, stat.added, stat.removed], "{counted}");
    assert_eq!((stat.added, stat.removed), (diff.added, diff.removed));
    git(&copied.copy_root(), &["fsck", "--strict"]);
}

#[test]
fn a_diff_is_bounded_and_its_figures_are_whole() {
    let copied = Copied::with(&[("a", "1\n"), ("b", "1\n")]);
    copied.write("a", "2\n".repeat(100));
    copied.write("b", "2\n");
    let diff = copied.user.landings().diff(&copied.changes(), 150).unwrap();
    assert!(diff.truncated && diff.text.contains("b/b") && !diff.text.contains("b/a"), "{}", diff.text);
    assert_eq!((diff.added, diff.removed), (101, 2));
}
