//! The arguments of tools.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditOp, Format, Replace, SymbolAction, SymbolEdit, plan};

use super::{reading, rel};

#[test]
fn tool_arguments() {
    let cases = vec![
        (r#"{"path": "a.rs", "old_string": "x", "new_string": "y"}"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"filePath": "a.rs", "oldString": "x", "newString": "y", "replaceAll": true}"#,
            vec![plain("x", "y", true, None)],
        ),
        (
            r#"{"file_path": "a.rs", "old_string": "x", "new_string": "", "allow_multiple": "true"}"#,
            vec![plain("x", "", true, None)],
        ),
        (
            r#"{"path": "a.rs", "edits": [{"oldText": "x", "newText": "y"}, {"old": "z", "new": "w", "line_hint": 3}]}"#,
            vec![plain("x", "y", false, None), plain("z", "w", false, Some(3))],
        ),
        (r#"{"path": "a.rs", "before": "x", "after": "y"}"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"path": "a.rs", "original_content": "x", "new_content": "y"}"#,
            vec![plain("x", "y", false, None)],
        ),
        (r#"{"path": "a.rs", "find": "x", "replace": "y"}"#, vec![plain("x", "y", false, None)]),
        (r#"{"path": "a.rs", "oldCode": "x", "newCode": "y"}"#, vec![plain("x", "y", false, None)]),
        (r#"{"path": "a.rs", "edit": {"old": "x", "new": "y"}}"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"replacements": [{"filepath": "a.rs", "search": "x", "replace": "y"},],}"#,
            vec![plain("x", "y", false, None)],
        ),
        (r#"[{"path": "a.rs", "old_str": "x", "new_str": "y"}]"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"path": "a.rs", "edits": "[{\"old_string\": \"x\", \"new_string\": \"y\"}]"}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#""{\"path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"y\"}""#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"name": "edit", "arguments": {"path": "a.rs", "old_string": "x", "new_string": "y"}}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            "Here:\n```json\n{\"path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"y\"}\n```\nDone.",
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"functionCall": {"name": "edit", "args": {"path": "a.rs", "old_string": "x", "new_string": "y"}}}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"tool_calls": [{"function": {"name": "edit", "arguments": "{\"path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"y\"}"}}]}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"command": "str_replace", "path": "a.rs", "old_str": "x", "new_str": "y"}"#,
            vec![plain("x", "y", false, None)],
        ),
    ];
    same(cases);
    let pathless = r#"{"old_string": "x", "new_string": "y"}"#;
    assert_eq!(reading(pathless, None, Some("src/b.rs"), true).edits[0].path, rel("src/b.rs"));
}

fn plain(search: &str, replace: &str, all: bool, near: Option<u32>) -> EditOp {
    EditOp::Replace(Replace { search: search.into(), replace: replace.into(), all, near, whole_lines: false })
}

/// Each is read as arguments without a problem, and asks `a.rs` for these steps.
fn same(cases: Vec<(&str, Vec<EditOp>)>) {
    for (reply, expected) in cases {
        let read = reading(reply, Some(Format::Tool), None, true);
        assert_eq!(read.problems, [], "{reply}");
        let ops: Vec<EditOp> = read.edits.iter().flat_map(|edit| edit.ops.clone()).collect();
        assert_eq!(ops, expected, "{reply}");
        assert!(read.edits.iter().all(|edit| edit.path == rel("a.rs")), "{reply}");
    }
}

#[test]
fn whole_files_insertions_and_symbols() {
    let symbol = |action| EditOp::Symbol(SymbolEdit { symbol: "A.b".to_owned(), action });
    let cases = vec![
        (
            r#"{"command": "create", "path": "a.rs", "file_text": "x"}"#,
            vec![EditOp::Create { content: "x".into() }],
        ),
        (r#"{"path": "a.rs", "contents": "x"}"#, vec![EditOp::Rewrite { content: "x".into(), exact: true }]),
        (
            r#"{"command": "insert", "path": "a.rs", "insert_line": 0, "new_str": "x\n"}"#,
            vec![EditOp::Replace(Replace {
                replace: "x".into(),
                near: Some(1),
                whole_lines: true,
                ..Replace::default()
            })],
        ),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "delete"}"#, vec![symbol(SymbolAction::Delete)]),
        (
            r#"{"path": "a.rs", "symbol": "A.b", "action": "rename", "new_name": "c"}"#,
            vec![symbol(SymbolAction::Rename { to: "c".into() })],
        ),
        (
            r#"{"path": "a.rs", "symbol": "A.b", "action": "insert_after", "content": "x"}"#,
            vec![symbol(SymbolAction::InsertAfter { content: "x".into() })],
        ),
        (
            "{\"path\": \"a.rs\", \"old_string\": \"x\n\ty\", \"new_string\": \"\"}",
            vec![plain("x\n\ty", "", false, None)],
        ),
    ];
    same(cases);
}

#[test]
fn edits_are_found_under_keys_of_any_name() {
    let one = || vec![plain("x", "y", false, None)];
    let near = |line| vec![plain("x", "y", false, Some(line))];
    let lines = |search: &str, replace: &str| {
        let (search, replace) = (search.to_owned(), replace.to_owned());
        vec![EditOp::Replace(Replace { search, replace, all: false, near: None, whole_lines: true })]
    };
    let block = r"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n";
    same(vec![
        (r#"{"path": "a.rs", "diffs": [{"oldStr": "x", "newStr": "y"}]}"#, one()),
        (r#"{"path": "a.rs", "diff": [{"search": "x", "replace": "y"}], "explanation": "why"}"#, one()),
        (r#"{"path": "a.rs", "operation": {"command": "update", "oldStr": "x", "newStr": "y"}}"#, one()),
        (r#"{"path": "a.rs", "edits_json": "[{\"old_string\": \"x\", \"new_string\": \"y\"}]"}"#, one()),
        (
            r#"{"path": "a.rs", "oldString": "x", "newString": "y", "shouldReplaceAll": true}"#,
            vec![plain("x", "y", true, None)],
        ),
        (r#"{"path": "a.rs", "edits": [{"old_str": "x", "new_str": "y", "old_StrStartLine": 4}]}"#, near(4)),
        (r#"{"files": [{"path": "a.rs", "edits": [{"search": "x", "replace": "y"}]}]}"#, one()),
        // Never the whole file: the text that is looked for has a name of its own.
        (r#"{"file_path": "a.rs", "match_text": "x", "text": "y", "operation": "replace"}"#, one()),
        (r#"{"path": "a.rs", "search_for": "x", "content": "y"}"#, one()),
        (r#"{"targetPath": "a.rs", "textToFind": "x", "replaceWith": "y"}"#, one()),
        (r#"{"edit_file_name": "a.rs", "changes": [{"matching": "x", "updatedCode": "y"}]}"#, one()),
        (r#"{"path": "a.rs", "old_lines": ["x", "", "z"], "new_lines": ["y"]}"#, lines("x\n\nz", "y")),
        (r#"{"path": "a.rs", "edits": [{"oldLines": ["x"], "newLines": []}]}"#, lines("x", "")),
    ]);
    let besides = [
        r#""folder": "x""#,
        r#""threshold": "x""#,
        r#""match_type": "exact""#,
        r#""old_path": "b.rs""#,
        r#""if_existing": "x""#,
        r#""old_sha": "x""#,
        r#""original_author": "x""#,
        r#""findings": "x""#,
    ];
    for beside in besides {
        let reply = format!(r#"{{"path": "a.rs", "content": "y", {beside}}}"#);
        same(vec![(&reply, vec![EditOp::Rewrite { content: "y".into(), exact: true }])]);
    }
    for all in [
        r#""multiple": 1"#,
        r#""multiple": true"#,
        r#""num_replacements": -1"#,
        r#""occurrence": "all""#,
        r#""count": "-1""#,
    ] {
        let reply = format!(r#"{{"path": "a.rs", "old_string": "x", "new_string": "y", {all}}}"#);
        same(vec![(&reply, vec![plain("x", "y", true, None)])]);
    }
    for not_all in [
        r#""multiple_files": true"#,
        r#""occurrence": "last""#,
        r#""account": -1"#,
        r#""occurrence": -1"#,
        r#""country": "all""#,
        r#""multiple": 0"#,
        r#""replace_all": "no""#,
    ] {
        let reply = format!(r#"{{"path": "a.rs", "old_string": "x", "new_string": "y", {not_all}}}"#);
        same(vec![(&reply, one())]);
    }
    // What an interface returned is no edit.
    let returned = "It returns:\n\n{\"items\": [{\"file\": \"a.rs\", \"content\": \"x\"}]}\n";
    assert_eq!(reading(returned, Some(Format::Tool), None, true).edits, []);
    let reply = format!(r#"{{"path": "a.rs", "percentage": 10, "blocks": "{block}"}}"#);
    let [edit] = &reading(&reply, Some(Format::Tool), None, true).edits[..] else { panic!("{reply}") };
    assert!(
        matches!(&edit.ops[..], [EditOp::Replace(Replace { search, .. })] if search.contains('x')),
        "{edit:?}"
    );
    // Two arguments could be meant.
    let two = format!(r#"{{"path": "a.rs", "blocks": "{block}", "others": "{block}"}}"#);
    assert_eq!(reading(&two, Some(Format::Tool), None, true).edits, []);
}

#[test]
fn what_arguments_are_refused_for() {
    let cases = [
        (r#"{"path": 5, "old_string": "x", "new_string": "y"}"#, "\"path\" has to be a string, not a number"),
        (
            r#"{"path": "a.rs", "old_string": ["x"], "new_string": "y"}"#,
            "\"old_string\" has to be a string, not a list",
        ),
        (r#"{"path": "a.rs", "old_string": "x", "new_string": "y", "replace_all": 2}"#, "true or false"),
        (r#"{"path": "a.rs", "old_string": "x"}"#, "no \"new_string\""),
        (r#"{"path": "a.rs", "new_string": "x"}"#, "no \"old_string\""),
        (r#"{"old_string": "x", "new_string": "y"}"#, "which file"),
        (r#"{"path": "../a", "old_string": "x", "new_string": "y"}"#, ".."),
        (r#"{"path": "/etc/passwd", "old_string": "x", "new_string": "y"}"#, "absolute"),
        (r#"{"path": "a.rs", "edits": []}"#, "empty"),
        (r#"{"path": "a.rs", "edits": 5}"#, "list of edits"),
        (r#"{"command": "view", "path": "a.rs"}"#, "no edit"),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "move"}"#, "\"action\""),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "replace"}"#, "needs \"content\""),
        (r#"{"path": "a.rs", "old_string": "x", "new_"#, "before their JSON is whole"),
        (r#"{"path" "a.rs"}"#, "no JSON"),
        (
            r#"{"path": "long.rs", "old_string": "let a = 1;", "new_string": "", "expected_replacements": 7}"#,
            "there 60 times",
        ),
    ];
    for (reply, words) in cases {
        let read = reading(reply, Some(Format::Tool), None, true);
        assert_eq!(read.edits, [], "{reply}");
        assert!(read.problems[0].to_string().contains(words), "{reply}: {}", read.problems[0]);
    }
}

#[test]
fn a_line_or_a_number_says_which_of_equal_places_is_meant() {
    let file = "a = 1\nfoo()\nb = 2\nfoo()\nc = 3\nfoo()\n";
    let planned = |hint: &str| {
        let files = BTreeMap::from([(rel("f.py"), file.to_owned())]);
        let arguments =
            format!(r#"{{"path": "f.py", "old_string": "foo()", "new_string": "bar()", {hint}}}"#);
        plan(&arguments, &ApplyOptions::default(), &files)
    };
    for hint in [
        r#""line_number": 4"#,
        r#""lineNumber": "4""#,
        r#""line": 4"#,
        r#""lineno": 4"#,
        r#""start_line": 4, "end_line": 4"#,
        r#""line_start": 4"#,
        r#""original_line": "L4""#,
        r#""line_range": [4, 4]"#,
        r#""lines": "4-4""#,
        r#""range": {"start": 4, "end": 4}"#,
        r#""occurrence": 2"#,
        r#""occurrence": "second""#,
        r#""occurrence_number": "2nd""#,
        r#""instance": 2, "line": 4"#,
        r#""nth_match": 2"#,
        r#""match_number": 2, "replace_all": false"#,
    ] {
        let plan = planned(hint);
        assert_eq!(plan.failed, [], "{hint}");
        assert_eq!(
            plan.changes[0].after.as_deref(),
            Some("a = 1\nfoo()\nb = 2\nbar()\nc = 3\nfoo()\n"),
            "{hint}"
        );
    }
    let last = planned(r#""occurrence": "last""#);
    assert_eq!(last.changes[0].after.as_deref(), Some("a = 1\nfoo()\nb = 2\nfoo()\nc = 3\nbar()\n"));
    for (hint, words) in [
        (r#""line": 3"#, "occurs 3 times"),
        (r#""line": 4, "start_line": 2"#, "occurs 3 times"),
        (r#""line": 2, "occurrence": 2"#, "occurs 3 times"),
        (r#""occurrence": 0"#, "occurs 3 times"),
        (r#""occurrence_index": 1"#, "occurs 3 times"),
        (r#""end_line": 4"#, "occurs 3 times"),
        (r#""new_line": 4"#, "occurs 3 times"),
        (r#""line": "foo()""#, "occurs 3 times"),
        (r#""range": {"start": {"line": 3}, "end": {"line": 3}}"#, "occurs 3 times"),
        (r#""occurrence": 4"#, "there 3 times"),
        (r#""occurrence": 2, "replace_all": true"#, "give one of the two"),
    ] {
        let plan = planned(hint);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{hint}");
        assert!(plan.failed[0].message.contains(words), "{hint}: {:?}", plan.failed);
    }
}
