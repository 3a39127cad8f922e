//! The risk of a task: words, paths, what git tracks, and what `jm classify` prints.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::House;

/// The rule and the exit code for a task whose result goes to `path`.
fn rule(house: &House, text: &str, path: Option<&str>) -> (String, i32) {
    let mut arguments = vec!["classify", text, "--json"];
    arguments.extend(path.iter().flat_map(|path| ["--path", *path]));
    let ran = house.jm(&arguments).run();
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (answer["rule"].as_str().unwrap().to_owned(), ran.status.code().unwrap())
}

/// A new directory outside of the project whose name isn't hidden.
fn visible_directory() -> TempDir {
    tempfile::Builder::new().prefix("fresh").tempdir().unwrap()
}

#[test]
fn a_task_is_classified_with_its_reason() {
    let house = House::with_repository();
    let ran = house.jm(&["classify", "Write a snake game"]).run().expect(0);
    assert_eq!(
        ran.stdout,
        "low  the task asks for a game: `snake`\n     \
         it can run directly, in a fresh directory (word lists en 2, zh 2)\n"
    );
    let ran = house.jm(&["classify", "写一个示例,把旧的删除"]).run().expect(6);
    assert!(ran.stdout.starts_with("high the task "), "{}", ran.stdout);
    let ran = house
        .jm(&["classify", "-", "--json"])
        .input("Write a demo and d\u{435}l\u{435}te it")
        .run()
        .expect(6);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let expected = json!({
        "risk": "high", "rule": "high_word", "evidence": "delete",
        "reason": "the task removes or stops something", "word_lists": "en 2, zh 2",
    });
    assert_eq!(answer, expected);
    house.jm(&["classify"]).run().expect(2).says(&["TEXT"]);
}

#[test]
fn what_git_tracks_makes_a_task_one_of_high_risk() {
    let house = House::with_repository();
    let files = house.git(&["ls-files"]);
    let tracked = files.lines().find(|file| file.contains('.')).unwrap();
    let name = tracked.rsplit('/').next().unwrap();
    let path = ("path".to_owned(), 6);
    assert_eq!(rule(&house, &format!("Write a demo as {tracked}"), None), path);
    assert_eq!(rule(&house, &format!("Write a demo as {}", name.to_uppercase()), None), path);
    assert_eq!(rule(&house, "Write a demo as snake.py", None), ("low_word".to_owned(), 0));
    // Another repository's files, too; what lies beside them is nobody's.
    let other = visible_directory();
    let at = |name: &str| other.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("kept"), "x").unwrap();
    house.git(&["init", "-q", &at("")]);
    house.git(&["-C", &at(""), "add", "kept"]);
    assert_eq!(rule(&house, "Write a demo", Some(&at("kept"))), path);
    assert_eq!(rule(&house, "Write a demo", Some(&at(""))), path);
    assert_eq!(rule(&house, "Write a demo", Some(&at("new"))), ("low_word".to_owned(), 0));
}

#[test]
fn a_target_is_followed_to_where_it_leads() {
    let house = House::with_repository();
    let fresh = visible_directory();
    let at = |name: &str| fresh.path().join(name).to_str().unwrap().to_owned();
    symlink(house.project(), at("link")).unwrap();
    let low = ("low_word".to_owned(), 0);
    let high = ("path".to_owned(), 6);
    assert_eq!(rule(&house, "Write a demo", Some(&at("new/demo.py"))), low);
    let inside = [".", "new", ".."].map(str::to_owned);
    for path in inside.into_iter().chain([at("link"), at("link/new"), at("x/../y"), at(".git/hooks")]) {
        assert_eq!(rule(&house, "Write a demo", Some(&path)), high, "{path}");
    }
}
