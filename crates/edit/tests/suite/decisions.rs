//! The questions that engines answer differently, answered as docs/edits.md says: one test each,
//! under the name in its table.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, ChangeKind, EditPlan, Format, plan};
use journeyman_protocol::RelPath;

fn path(name: &str) -> RelPath {
    RelPath::parse(name).unwrap()
}

fn tree(files: &[(&str, &str)]) -> BTreeMap<RelPath, String> {
    files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
}

fn patch(files: &[(&str, &str)], body: &str) -> EditPlan {
    let reply = format!("*** Begin Patch\n{body}\n*** End Patch\n");
    plan(&reply, &ApplyOptions { format: Some(Format::Patch), ..ApplyOptions::default() }, &tree(files))
}

fn tool(files: &[(&str, &str)], arguments: &str, partial: bool) -> EditPlan {
    let options = ApplyOptions { format: Some(Format::Tool), partial, ..ApplyOptions::default() };
    plan(arguments, &options, &tree(files))
}

/// The only file's new text.
fn after(plan: &EditPlan) -> &str {
    assert_eq!((plan.changes_to_write().len(), plan.failed.len()), (1, 0), "{plan:?}");
    plan.changes_to_write()[0].after.as_deref().unwrap()
}

#[test]
fn add_on_an_existing_file() {
    let refused = patch(&[("a.txt", "old\n")], "*** Add File: a.txt\n+new");
    assert_eq!(refused.failed[0].kind, "exists");
    assert_eq!(refused.changes_to_write(), []);
}

#[test]
fn a_hunk_that_only_adds() {
    let files = [("a.txt", "one\ntwo\nthree\n")];
    assert_eq!(after(&patch(&files, "*** Update File: a.txt\n@@\n+last")), "one\ntwo\nthree\nlast\n");
    assert_eq!(after(&patch(&files, "*** Update File: a.txt\n@@ two\n+more")), "one\ntwo\nmore\nthree\n");
}

#[test]
fn the_final_line_break() {
    let body = "*** Update File: a.txt\n@@\n-old\n+new";
    assert_eq!(after(&patch(&[("a.txt", "one\nold")], body)), "one\nnew");
    assert_eq!(after(&patch(&[("a.txt", "one\nold\n")], body)), "one\nnew\n");
    let made = "<edit>\n<file>b.txt</file>\n<replace>\nmade\n</replace>\n</edit>";
    assert_eq!(after(&plan(made, &ApplyOptions::default(), &tree(&[]))), "made\n");
    for arguments in
        [r#"{"path": "b", "content": "x"}"#, r#"{"path": "b", "old_string": "", "new_string": "x"}"#]
    {
        assert_eq!(after(&tool(&[], arguments, false)), "x");
        assert_eq!(after(&tool(&[("b", "")], arguments, false)), "x");
    }
    assert_eq!(after(&tool(&[("b", "old\n")], r#"{"path": "b", "content": "x"}"#, false)), "x\n");
}

#[test]
fn an_empty_search_text() {
    let files = [("a.txt", "one\ntwo\n"), ("empty.txt", "")];
    let refused = tool(&files, r#"{"path": "a.txt", "old_string": "", "new_string": "x\n"}"#, false);
    assert_eq!(refused.failed[0].kind, "empty_search");
    let filled = tool(&files, r#"{"path": "empty.txt", "old_string": "", "new_string": "x\n"}"#, false);
    assert_eq!(after(&filled), "x\n");
}

#[test]
fn the_same_text_twice() {
    let files = [("a.txt", "same\nother\nsame\n")];
    let refused = tool(&files, r#"{"path": "a.txt", "old_string": "same", "new_string": "new"}"#, false);
    assert_eq!(refused.failed[0].kind, "ambiguous");
    assert!(refused.failed[0].message.contains("lines 1 and 3"), "{}", refused.failed[0].message);
    // As many edits as places: each means the next one.
    let twice = r#"{"path": "a.txt", "edits": [{"old_string": "same", "new_string": "one"}, {"old_string": "same", "new_string": "two"}]}"#;
    assert_eq!(after(&tool(&files, twice, false)), "one\nother\ntwo\n");
    let in_turn = "*** Update File: a.txt\n@@\n-same\n+one\n@@\n-same\n+two";
    assert_eq!(after(&patch(&files, in_turn)), "one\nother\ntwo\n");
    // The same edit shown twice is one, and nobody says where.
    let again = r#"{"path": "a.txt", "edits": [{"old_string": "same", "new_string": "one"}, {"old_string": "same", "new_string": "one"}]}"#;
    assert_eq!(tool(&files, again, false).failed[0].kind, "ambiguous");
    let thrice = [("a.txt", "same\nother\nsame\nsame\n")];
    assert_eq!(tool(&thrice, twice, false).failed[0].kind, "ambiguous");
    let hinted = tool(
        &files,
        r#"{"path": "a.txt", "old_string": "same", "new_string": "new", "line_hint": 3}"#,
        false,
    );
    assert_eq!(after(&hinted), "same\nother\nnew\n");
}

#[test]
fn one_edit_of_several_fails() {
    let files = [("a.txt", "one\ntwo\n"), ("b.txt", "three\n")];
    let edits = r#"{"edits": [
        {"path": "a.txt", "old_string": "two", "new_string": "2"},
        {"path": "b.txt", "old_string": "nowhere to be found", "new_string": "x"}]}"#;
    let all = tool(&files, edits, false);
    assert_eq!((all.changes_to_write().len(), all.failed.len()), (0, 1));
    let part = tool(&files, edits, true);
    assert_eq!((part.changes_to_write().len(), part.failed.len()), (1, 1));
    assert_eq!(part.changes_to_write()[0].after.as_deref(), Some("one\n2\n"));
}

#[test]
fn a_move_without_hunks() {
    let moved = patch(&[("a.txt", "kept\n")], "*** Update File: a.txt\n*** Move to: b.txt");
    assert_eq!(after(&moved), "kept\n");
    assert_eq!(
        (moved.changes_to_write()[0].kind, &moved.changes_to_write()[0].to),
        (ChangeKind::Rename, &Some(path("b.txt")))
    );
    let taken = patch(&[("a.txt", "a\n"), ("b.txt", "b\n")], "*** Update File: a.txt\n*** Move to: b.txt");
    assert_eq!(taken.failed[0].kind, "exists");
}

#[test]
fn a_path_that_is_renamed_away() {
    let moved = "<edit>\n<file>f.txt</file>\n<rename>b.txt</rename>\n</edit>\n";
    for more in [
        "<replace>\nother\n</replace>",
        "<search>\nx = 1\n</search>\n<replace>\nx = 2\n</replace>",
        "<delete/>",
    ] {
        let reply = format!("{moved}<edit>\n<file>f.txt</file>\n{more}\n</edit>\n");
        let plan = plan(&reply, &ApplyOptions::default(), &tree(&[("f.txt", "x = 1\n")]));
        assert_eq!(plan.changes_to_write(), [], "{reply}");
        assert!(plan.failed[0].message.contains("renamed to b.txt"), "{:?}", plan.failed);
    }
}

#[test]
fn names_that_are_exchanged() {
    let files = [("a.txt", "a\n"), ("b.txt", "b\n")];
    let section = |from: &str, to: &str| format!("*** Update File: {from}\n*** Move to: {to}\n");
    for second in [section("b.txt", "a.txt"), section("b.txt", "c.txt")] {
        let plan = patch(&files, (section("a.txt", "b.txt") + &second).trim_end());
        assert_eq!((plan.changes_to_write(), plan.unchanged.as_slice()), (&[][..], &[][..]), "{second}");
        assert!(plan.failed[0].message.contains("renamed to b.txt"), "{:?}", plan.failed);
    }
    // What lay there goes first.
    let chain = patch(&files, (section("b.txt", "c.txt") + &section("a.txt", "b.txt")).trim_end());
    assert_eq!((chain.changes_to_write().len(), chain.failed.len()), (2, 0), "{:?}", chain.failed);
}

#[test]
fn emptying_a_file() {
    let emptied = patch(&[("a.txt", "one\n")], "*** Update File: a.txt\n@@\n-one");
    assert_eq!(after(&emptied), "");
    assert_eq!(emptied.changes_to_write()[0].kind, ChangeKind::Modify);
}

#[test]
fn two_sections_for_one_file() {
    let body = "*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: a.txt\n@@\n-two\n+2";
    let refused = patch(&[("a.txt", "one\ntwo\n")], body);
    assert_eq!((refused.changes_to_write().len(), refused.failed[0].kind), (0, "malformed"));
}

#[test]
fn carriage_returns_alone() {
    let all = [("a.txt", "one\rtwo\rthree\r")];
    let body = "*** Update File: a.txt\n@@\n-one\n+uno\n@@\n two\n+\n+between\n three";
    assert_eq!(after(&patch(&all, body)), "uno\rtwo\r\rbetween\rthree\r");
    let edit = r#"{"path": "a.txt", "old_string": "two\nthree\n", "new_string": "two\n3\n"}"#;
    assert_eq!(after(&tool(&all, edit, false)), "one\rtwo\r3\r");
    // Among others nobody can say how the new line ends.
    let some = [("a.txt", "one\r\ntwo\rthree\nfour\r\n")];
    let body = "*** Update File: a.txt\n@@\n one\n two\n-three\n+THREE\n four";
    assert_eq!(patch(&some, body).changes_to_write(), []);
}
