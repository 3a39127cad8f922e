//! The text protocol: what a reply asks for.

use journeyman_edit::{
    AllowedDifferences, EditOp, Item, OpContext, OpError, OpsOutcome, ProblemKind, Replace, parse_blocks,
    to_ops,
};
use journeyman_protocol::RelPath;

/// All of the steps, or the first that can't be done.
fn apply_ops(text: Option<&str>, ops: &[EditOp]) -> Result<OpsOutcome, OpError> {
    let path = RelPath::parse("a.txt").unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let outcome = journeyman_edit::apply_ops(text, ops, &context);
    outcome.failed.first().cloned().map_or(Ok(outcome), Err)
}

fn change(search: &str, replace: &str) -> EditOp {
    EditOp::Replace(Replace {
        search: search.to_owned(),
        replace: replace.to_owned(),
        whole_lines: true,
        ..Replace::default()
    })
}

fn rewrite(content: &str) -> EditOp {
    EditOp::Rewrite { content: content.to_owned(), exact: false }
}

fn rename(to: &str) -> EditOp {
    EditOp::Rename { to: RelPath::parse(to).unwrap() }
}

/// The only edit's steps.
fn ops(reply: &str) -> Vec<EditOp> {
    let blocks = parse_blocks(reply);
    assert!(blocks.problems.is_empty(), "{reply}\n{:?}", blocks.problems);
    assert_eq!(blocks.edits.len(), 1, "{reply}");
    blocks.edits.into_iter().next().unwrap().ops
}

#[test]
fn steps_of_a_block() {
    let block = |inside: &str| format!("<edit>\n<file>a.rs</file>\n{inside}\n</edit>");
    let cases = [
        ("a pair", "<search>\nx\n</search>\n<replace>\ny\n</replace>", vec![change("x", "y")]),
        ("on one line", "<search>x</search><replace>y</replace>", vec![change("x", "y")]),
        (
            "CRLF",
            "<search>\r\nx\r\nz\r\n</search>\r\n<replace>\r\ny\r\n</replace>",
            vec![change("x\r\nz", "y")],
        ),
        (
            "blank lines of content stay",
            "<search>\n\nx\n\n</search>\n<replace>\n\ny\n</replace>",
            vec![change("\nx\n", "\ny")],
        ),
        ("a deletion of text", "<search>\nx\n</search>\n<replace/>", vec![change("x", "")]),
        (
            "an empty pair of tags deletes too",
            "<search>\nx\n</search>\n<replace></replace>",
            vec![change("x", "")],
        ),
        ("a new file", "<replace>\nx\ny\n</replace>", vec![rewrite("x\ny")]),
        ("a deleted file", "<delete/>", vec![EditOp::Delete]),
        ("a renamed file", "<rename>b/c.rs</rename>", vec![rename("b/c.rs")]),
        (
            "renamed and changed",
            "<rename>b.rs</rename>\n<search>\nx\n</search>\n<replace>\ny\n</replace>",
            vec![rename("b.rs"), change("x", "y")],
        ),
        (
            "pairs in order",
            "<search>x</search><replace>y</replace>\n<search>y</search><replace>z</replace>",
            vec![change("x", "y"), change("y", "z")],
        ),
        (
            "no entities",
            "<search>a &lt; b && c</search><replace><![CDATA[x]]></replace>",
            vec![change("a &lt; b && c", "<![CDATA[x]]>")],
        ),
        (
            "other tags are content",
            "<search>\n<b>x</b>\n</search>\n<replace>\n<edit>\n</replace>",
            vec![change("<b>x</b>", "<edit>")],
        ),
        (
            "a closing tag in the content",
            "<search>\nx\n</search>\n<replace>\nwrite </replace> there\n</replace>",
            vec![change("x", "write </replace> there")],
        ),
        (
            "a closing tag in the search text",
            "<search>\nwrite </search>\nhere\n</search>\n<replace>\ny\n</replace>",
            vec![change("write </search>\nhere", "y")],
        ),
        (
            "all the closing tags in the content",
            "<replace>\nend with\n</replace>\n</edit>\nand go on\n</replace>",
            vec![rewrite("end with\n</replace>\n</edit>\nand go on")],
        ),
        (
            "a whole block in the content",
            "<replace>\nLike so:\n<edit>\n<file>x</file>\n<replace>\ny\n</replace>\n</edit>\nDone.\n</replace>",
            vec![rewrite("Like so:\n<edit>\n<file>x</file>\n<replace>\ny\n</replace>\n</edit>\nDone.")],
        ),
        (
            "fenced",
            "<search fence=\"EOT\">\n</search>\n<replace>\nEOT</search>\n<replace fence='E2'>\n</replace>\n</edit>\nE2</replace>",
            vec![change("</search>\n<replace>", "</replace>\n</edit>")],
        ),
        (
            "an indented closing tag",
            "<search>\n  x\n  </search>\n  <replace>\n  y\n  </replace>",
            vec![change("  x", "  y")],
        ),
    ];
    for (name, inside, expected) in cases {
        assert_eq!(ops(&block(inside)), expected, "{name}");
    }
}

#[test]
fn prose_and_order() {
    let reply = "First I read it.\n\n<call tool=\"read_file\">{\"path\": \"a.rs\"}</call>\n\nThen `<edit>` changes it:\n\n\
        ```xml\n<edit>\n<file>a.rs</file>\n<description>Say y</description>\n<search>\nx\n</search>\n<replace>\ny\n</replace>\n</edit>\n```\n\n\
        <call tool=\"run_command\">\n{\"command\": \"echo '</call>'\"}\n</call>\nDone: 1 < 2.";
    let blocks = parse_blocks(reply);
    assert_eq!(blocks.items, [Item::Call(0), Item::Edit(0), Item::Call(1)]);
    assert_eq!(blocks.problems, []);
    assert_eq!(blocks.prose, "First I read it.\n\nThen `<edit>` changes it:\n\nDone: 1 < 2.");
    assert_eq!(blocks.edits[0].description.as_deref(), Some("Say y"));
    let calls: Vec<_> =
        blocks.calls.iter().map(|call| (call.tool.as_str(), call.input_json.as_str())).collect();
    assert_eq!(
        calls,
        [("read_file", "{\"path\": \"a.rs\"}"), ("run_command", "{\"command\": \"echo '</call>'\"}")]
    );
    assert!(reply.contains(&blocks.calls[1].raw));
}

#[test]
fn calls() {
    let cases = [
        ("<call tool=\"t\"/>", "{}", false),
        ("<call tool='t'></call>", "{}", false),
        ("<call tool=\"t\">\n```json\n{\"a\": 1}\n```\n</call>", "{\"a\": 1}", false),
        ("<call tool=\"t\">{\"a\": }</call>", "{\"a\": }", true),
        ("<call tool=\"t\">[1]</call>", "[1]", true),
        ("<call tool=\"t\">{\"a\": 1} and more</call>", "{\"a\": 1} and more", true),
    ];
    for (reply, input, malformed) in cases {
        let blocks = parse_blocks(reply);
        assert_eq!(blocks.calls.len(), 1, "{reply}");
        assert_eq!(blocks.calls[0].input_json, input, "{reply}");
        assert_eq!(blocks.calls[0].malformed.is_some(), malformed, "{reply}");
        assert_eq!(blocks.prose, "", "{reply}");
    }
}

#[test]
fn problems() {
    use ProblemKind::*;
    let cases = [
        ("<edit>\n<file>../a</file>\n<delete/>\n</edit>", Path, ".."),
        ("<edit>\n<file>/etc/passwd</file>\n<delete/>\n</edit>", Path, "absolute"),
        ("<edit>\n<file></file>\n<delete/>\n</edit>", Path, "empty"),
        ("<edit>\n<file>a\u{1b}b</file>\n<delete/>\n</edit>", Path, "control"),
        ("<edit>\n<file>a</file>\n<rename>../b</rename>\n</edit>", Path, ".."),
        ("<edit>\n<search>a</search>\n<replace>b</replace>\n</edit>", Malformed, "no <file>"),
        ("<edit>\n<file>a</file>\n</edit>", Malformed, "changes nothing"),
        ("<edit>\n<file>a</file>\n<search>x</search>\n</edit>", Malformed, "no <replace>"),
        ("<edit>\n<file>a</file>\n<delete/>\n<replace>x</replace>\n</edit>", Malformed, "both"),
        ("<edit>\n<file>a</file>\nsome words\n</edit>", Malformed, "text between"),
        ("<edit>\n<file>a</file>\n<search>x</search>\n<replace>\ny", Incomplete, "</replace>"),
        ("<edit>\n<file>a</file>\n<replace>\ny\n</replace>\n", Incomplete, "</edit>"),
        ("<edit>\n<fi", Incomplete, "</edit>"),
        ("<call tool=\"x\">{\"a\":", Incomplete, "the end of the arguments"),
        ("<call tool=\"x\">{\"a\": 1}", Incomplete, "</call>"),
        ("<call tool=\"x", Incomplete, ">"),
    ];
    for (reply, kind, words) in cases {
        let blocks = parse_blocks(&format!("Well.\n{reply}"));
        assert_eq!(blocks.items, [], "{reply}");
        assert_eq!(blocks.problems.len(), 1, "{reply}: {:?}", blocks.problems);
        assert_eq!(blocks.problems[0].kind, kind, "{reply}");
        assert_eq!(blocks.problems[0].line, 2, "{reply}");
        let shown = blocks.problems[0].to_string();
        assert!(shown.contains(words), "{reply}: {shown}");
        assert_eq!(blocks.prose, "Well.", "{reply}");
    }
}

#[test]
fn a_broken_block_does_not_hide_the_next() {
    let reply = "<edit>\n<file>/abs</file>\n<delete/>\n</edit>\n<edit>\n<file>ok</file>\n<delete/>\n</edit>\n\
        <edit>\n<file>x</file>\nhm\n</edit>\nmiddle\n<edit>\n<file>ok2</file>\n<delete/>\n</edit>";
    let blocks = parse_blocks(reply);
    let paths: Vec<String> = blocks.edits.iter().map(|edit| edit.path.to_string()).collect();
    assert_eq!(paths, ["ok", "ok2"]);
    assert_eq!(blocks.problems.len(), 2);
    assert_eq!(blocks.prose, "middle");
}

#[test]
fn an_example_inside_a_cut_off_block_is_not_applied() {
    let reply = "<edit>\n<file>doc.md</file>\n<replace>\nWrite:\n<edit>\n<file>main.rs</file>\n<delete/>\n</edit>\nand so";
    let blocks = parse_blocks(reply);
    assert_eq!(blocks.items, []);
    assert_eq!(blocks.problems[0].kind, ProblemKind::Incomplete);
}

#[test]
fn words_about_the_format_are_prose() {
    for reply in [
        "Use <edit> to edit.",
        "the `<call>` tag",
        "a <edited> b",
        "<edit/>",
        "x < y > z <edit",
        "<call>x</call>",
    ] {
        let blocks = parse_blocks(reply);
        assert_eq!(
            (blocks.items.len(), blocks.problems.len(), blocks.prose.as_str()),
            (0, 0, reply),
            "{reply}"
        );
    }
}

#[test]
fn applying_to_one_file() {
    let done = |text: Option<&str>, ops: &[EditOp]| apply_ops(text, ops).map(|outcome| outcome.content);
    assert_eq!(
        done(None, &[rewrite("a\nb")]),
        Ok(Some("a\nb\n".to_owned())),
        "a new file ends with a line break"
    );
    assert_eq!(done(Some("x\r\ny\r\n"), &[rewrite("a\nb")]), Ok(Some("a\r\nb\r\n".to_owned())));
    assert_eq!(done(Some("x"), &[rewrite("a")]), Ok(Some("a".to_owned())), "as the file was");
    assert_eq!(done(Some("x\n"), &[EditOp::Delete]), Ok(None));
    assert_eq!(done(Some("a\nb\nc\n"), &[change("b", ""), change("c", "d")]), Ok(Some("a\nd\n".to_owned())));
    assert_eq!(done(Some("a\n"), &[change("a", "b"), change("b", "c")]), Ok(Some("c\n".to_owned())));
    assert_eq!(done(None, &[change("a", "b")]), Err(OpError::Missing { op: 0, of: 1 }));
    assert_eq!(done(None, &[EditOp::Delete]), Err(OpError::Missing { op: 0, of: 1 }));
    assert_eq!(done(Some("a\n"), &[]), Err(OpError::Nothing));
    let refused = done(Some("a\nb\n"), &[change("a", "x"), change("zzz", "y")]).unwrap_err();
    assert!(refused.to_string().starts_with("edit 2 of 2: The search text was not found"), "{refused}");
    let idle = apply_ops(Some("a\nb\n"), &[change("a", "a"), change("b", "c")]).unwrap();
    assert_eq!((idle.content.as_deref(), idle.notes[0].count), (Some("a\nc\n"), 0));
    assert!(apply_ops(Some("a\nb\n"), &[change("a", "a"), change("b", "b")]).unwrap().is_unchanged());
    let renamed = apply_ops(Some("a\n"), &[rename("n"), change("a", "b")]).unwrap();
    assert_eq!((renamed.content.as_deref(), renamed.rename), (Some("b\n"), RelPath::parse("n").ok()));
}

#[test]
fn edits_are_gathered_by_file() {
    let edit = |path: &str, inside: &str| format!("<edit><file>{path}</file>{inside}</edit>\n");
    let pair = "<search>a</search><replace>b</replace>";
    let reply = edit("x", pair)
        + &edit("y", pair)
        + &edit("x", "<rename>z</rename>")
        + &edit("z", pair)
        + &edit("x", "<replace>n</replace>");
    let files: Vec<(String, usize)> = to_ops(&parse_blocks(&reply).edits)
        .iter()
        .map(|file| (file.path.to_string(), file.ops.len()))
        .collect();
    assert_eq!(files, [("x".to_owned(), 3), ("y".to_owned(), 1), ("x".to_owned(), 1)]);
}

#[test]
fn a_block_with_a_strange_beginning_is_no_content_of_the_one_before() {
    let block =
        |file: &str| format!("<edit>\n{file}\n<search>\nx\n</search>\n<replace>\ny\n</replace>\n</edit>\n");
    for file in ["<path>b</path>", "<reason>\nwhy\n</reason>\n<file>b</file>", "File: b", "`b`"] {
        for reply in [block("<file>a</file>") + &block(file), block(file) + &block("<file>a</file>")] {
            let blocks = parse_blocks(&reply);
            assert_eq!(blocks.edits.len(), 1, "{reply}");
            assert_eq!(blocks.edits[0].ops, [change("x", "y")], "{reply}");
            assert_eq!(blocks.problems.len(), 1, "{reply}");
            assert_eq!(blocks.prose, "", "{reply}");
        }
    }
}

#[test]
fn lines_put_in_beside_each_other_have_no_order() {
    for (first, second) in [
        (change("x", "x\nbar"), change("x", "x\nbaz")),
        (change("x", "bar\nx"), change("x", "baz\nx")),
        (change("x\ny", "x\nbar\ny"), change("x\ny", "x\nbaz\ny")),
    ] {
        let refused = apply_ops(Some("x\ny\nz\n"), &[first, second]).unwrap_err();
        assert!(refused.to_string().contains("It changes what edit 1 changes too"), "{refused}");
    }
    // What the first wrote is quoted: the second was meant after it.
    let done = apply_ops(Some("x\ny\n"), &[change("x", "x\nbar"), change("x\nbar", "x\nbaz\nbar")]);
    assert_eq!(done.unwrap().content.as_deref(), Some("x\nbaz\nbar\ny\n"));
}
