//! Edits whose result is in the file already are told as such, and nothing else is.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, Format, plan, replace};
use journeyman_protocol::RelPath;

/// What becomes of an edit in each format that quotes: `unchanged`, `refused`, or the text.
fn outcomes(file: &str, search: &str, new: &str, patch: &str) -> Vec<String> {
    let blocks = format!("f.rs\n<<<<<<< SEARCH\n{search}\n=======\n{new}\n>>>>>>> REPLACE\n");
    let tool = serde_json::json!({"path": "f.rs", "old_string": search, "new_string": new}).to_string();
    let v4a = format!("*** Begin Patch\n*** Update File: f.rs\n@@\n{patch}*** End Patch\n");
    let udiff = format!("--- a/f.rs\n+++ b/f.rs\n@@ ... @@\n{patch}");
    let files = BTreeMap::from([(RelPath::parse("f.rs").unwrap(), file.to_owned())]);
    let replies =
        [(Format::Blocks, blocks), (Format::Tool, tool), (Format::Patch, v4a), (Format::Udiff, udiff)];
    let outcome = |(format, reply): (Format, String)| {
        let plan = plan(&reply, &ApplyOptions { format: Some(format), ..ApplyOptions::default() }, &files);
        match plan.changes_to_write().first() {
            Some(change) => change.after.clone().unwrap_or_default(),
            None if plan.failed.is_empty() => "unchanged".to_owned(),
            None => "refused".to_owned(),
        }
    };
    replies.into_iter().map(outcome).collect()
}

#[test]
fn an_edit_that_is_in_the_file_changes_nothing() {
    let cases = [
        (
            "lines in place of others",
            "fn main() {\n    let sum = add_all(rows);\n    print(sum);\n}\n",
            "    let sum = 0;\n    print(sum);",
            "    let sum = add_all(rows);\n    print(sum);",
            "-    let sum = 0;\n+    let sum = add_all(rows);\n     print(sum);\n",
        ),
        (
            "lines before others that begin as they do",
            "/**\n * Says if it is empty.\n */\nfn is_empty() {}\n\n/**\n * Says if it has a key.\n */\nfn has() {}\n",
            "/**\n * Says if it has a key.",
            "/**\n * Says if it is empty.\n */\nfn is_empty() {}\n\n/**\n * Says if it has a key.",
            " /**\n+ * Says if it is empty.\n+ */\n+fn is_empty() {}\n+\n+/**\n  * Says if it has a key.\n",
        ),
        (
            "a beginning of a line",
            "run();\nObject unused = read_the(json);\n",
            "read_the(json);",
            "Object unused = read_the(json);",
            "-read_the(json);\n+Object unused = read_the(json);\n",
        ),
        (
            "an end of a line, and lines after it",
            "# Set the session with a key, and two old ones\nkeys = (\"0 key\", \"1 key\")\nrun()\n",
            "# Set the session with a key",
            "# Set the session with a key, and two old ones\nkeys = (\"0 key\", \"1 key\")",
            "-# Set the session with a key\n+# Set the session with a key, and two old ones\n+keys = (\"0 key\", \"1 key\")\n",
        ),
        (
            "a longer word",
            "from .globals import _cv_request\nfrom .json import dumps\n",
            "from .globals import _cv_req",
            "from .globals import _cv_request",
            "-from .globals import _cv_req\n+from .globals import _cv_request\n",
        ),
    ];
    for (name, file, search, new, patch) in cases {
        assert_eq!(outcomes(file, search, new, patch), vec!["unchanged"; 4], "{name}");
    }
}

#[test]
fn an_edit_of_which_half_is_in_the_file_is_not_said_to_be_made() {
    let cases = [
        (
            "a line that goes is still there",
            "}\n\npublic class HasMap {\nstatic class HasMap {\n    Map map = new Map();\n}\n",
            "\npublic class HasMap {\n    Map map = new Map();",
            "\nstatic class HasMap {\n    Map map = new Map();",
            " \n-public class HasMap {\n+static class HasMap {\n     Map map = new Map();\n",
        ),
        (
            "a line that comes is missing",
            "begin();\nlet first_one = read();\nfinish();\n",
            "begin();\nlet old_value = read();\nfinish();",
            "begin();\nlet first_one = read();\nlet second_one = read();\nfinish();",
            " begin();\n-let old_value = read();\n+let first_one = read();\n+let second_one = read();\n finish();\n",
        ),
        (
            "only a deletion",
            "alpha(1);\ngamma(3);\n",
            "alpha(1);\nbeta(2);",
            "alpha(1);",
            " alpha(1);\n-beta(2);\n",
        ),
        (
            "neither side",
            "begin();\nfinish();\n",
            "begin();\nlet old_value = read();\nfinish();",
            "begin();\nlet new_value = read();\nfinish();",
            " begin();\n-let old_value = read();\n+let new_value = read();\n finish();\n",
        ),
        (
            "twice in the file",
            "let sum = add_all(rows);\nprint();\nlet sum = add_all(rows);\n",
            "let sum = 0;",
            "let sum = add_all(rows);",
            "-let sum = 0;\n+let sum = add_all(rows);\n",
        ),
    ];
    for (name, file, search, new, patch) in cases {
        let outcomes = outcomes(file, search, new, patch);
        assert!(!outcomes.contains(&"unchanged".to_owned()), "{name}: {outcomes:?}");
    }
}

#[test]
fn a_blank_line_that_is_missing_is_not_made() {
    let cases = [
        ("import os\nimport pytest\n", "import pytest", "import os\n\nimport pytest"),
        (
            "use one::alpha;\nuse two::beta;\nmain();\n",
            "use one::alpha;",
            "use one::alpha;\nuse two::beta;\n",
        ),
        ("new_text(1);\nmain();\n", "old_text(1);", "new_text(1);\n"),
    ];
    for (file, search, new) in cases {
        let refusal = replace(file, search, new, false).expect_err(new);
        assert!(!refusal.is_already_applied(), "{new}: {refusal}");
    }
}

/// A second row that is the first, an insertion of what stands elsewhere, and a name that is part
/// of another: all are edits that are still to be made.
#[test]
fn an_edit_that_only_looks_made_is_written() {
    let cases = [
        ("a(1, 1);\na(1, 1);\nend();\n", "a(1, 1);\nend();", "a(1, 1);\na(1, 1);\nend();"),
        ("fn one() {\n    check();\n}\nfn two() {\n}\n", "fn two() {\n", "fn two() {\n    check();\n"),
        ("let foo = foobar();\n", "foobar", "foobar_all"),
        ("x.clone().run()\n", "x.clone()", "x.clone().clone()"),
    ];
    for (file, search, new) in cases {
        let done = replace(file, search, new, false).map(|applied| applied.text);
        assert_eq!(done, Ok(file.replace(search, new)), "{search} → {new}");
    }
}

/// The quoted lines are one place's but for their blanks, the new ones another's to the byte.
#[test]
fn a_replacement_that_stands_elsewhere_makes_a_loose_place_doubtful() {
    let file = "    switch (kind) {\n        // cut the parameter off\n        case PARAM:\n    }\n\nswitch (kind) {\n    case PARAM:\n}\n";
    let search = "    switch (kind) {\n        case PARAM:";
    let new = "    switch (kind) {\n        // cut the parameter off\n        case PARAM:";
    let refusal = replace(file, search, new, false).unwrap_err();
    assert_eq!(refusal.kind(), "guarded_mismatch", "{refusal}");
}
