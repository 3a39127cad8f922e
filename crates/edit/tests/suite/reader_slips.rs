//! Slips of models in the way that a reply names its files and closes its blocks.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditPlan, Format, plan};
use journeyman_protocol::RelPath;

const TEXT: &str = "x = 1\ny = 2\nz = 3\n";

fn planned(format: Option<Format>, reply: &str) -> EditPlan {
    let paths = ["src/app.py", "b.py", "docs/usage.md"];
    let files: BTreeMap<RelPath, String> =
        paths.into_iter().map(|path| (RelPath::parse(path).unwrap(), TEXT.to_owned())).collect();
    plan(reply, &ApplyOptions { format, ..ApplyOptions::default() }, &files)
}

/// The written files with their texts, or the words of the failures.
fn written(format: Option<Format>, reply: &str) -> Result<Vec<(String, String)>, String> {
    let plan = planned(format, reply);
    if !plan.failed.is_empty() {
        return Err(plan.failed.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>().join("\n"));
    }
    let text = |after: &Option<String>| after.clone().unwrap_or_default();
    Ok(plan.changes_to_write().iter().map(|change| (change.path.to_string(), text(&change.after))).collect())
}

#[track_caller]
fn assert_written(format: Option<Format>, reply: &str, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    assert_eq!(written(format, reply), Ok(expected), "{reply}");
}

#[track_caller]
fn assert_refused(format: Option<Format>, reply: &str, words: &str) {
    let refusal = written(format, reply).unwrap_err();
    assert!(refusal.contains(words), "{reply}\n{refusal}");
}

const X: &str = "<<<<\nx = 1\n====\nx = 5\n>>>>\n";
const Z: &str = "<<<<\nz = 3\n====\nz = 7\n>>>>\n";

#[test]
fn blocks_between_bare_marks_with_nothing_beside_them_are_several() {
    let expected = [("b.py", "x = 5\ny = 2\nz = 7\n")];
    for blocks in [format!("{X}{Z}"), format!("{X}\n{Z}"), format!("\n{Z}\n\n{X}\n")] {
        for fence in ["```", "````"] {
            let reply = format!("b.py\n{fence}\n{blocks}{fence}\n");
            assert_written(Some(Format::Blocks), &reply, &expected);
            assert_written(None, &reply, &expected);
        }
    }
    // With lines of the file beside them they are one view, in the file's order.
    assert_written(Some(Format::Blocks), &format!("b.py\n```\n{X}y = 2\n{Z}```\n"), &expected);
    assert_refused(Some(Format::Blocks), &format!("b.py\n```\n{Z}y = 2\n{X}```\n"), "b.py");
}

#[test]
fn a_comment_that_names_a_file_goes_before_a_heading() {
    let expected = [("src/app.py", "x = 5\ny = 2\nz = 3\n")];
    let marks = "<<<<<<< SEARCH\nx = 1\n=======\nx = 5\n>>>>>>> REPLACE\n";
    for comment in ["# FILE: src/app.py", "// FILE: src/app.py", "<!-- File: src/app.py -->"] {
        for fence in ["```", "````", "`````"] {
            for block in [X, marks] {
                for heading in ["", "### b.py\n\n", "**`b.py`**\n"] {
                    let reply = format!("{heading}{fence}python\n{comment}\n{block}{fence}\n");
                    assert_written(Some(Format::Blocks), &reply, &expected);
                    assert_written(None, &reply, &expected);
                }
            }
        }
    }
    // A file that isn't there yet.
    let new = "## b.py\n````python\n# FILE: c.py\n<<<<<<< SEARCH\n=======\nx = 5\n>>>>>>> REPLACE\n````\n";
    assert_written(Some(Format::Blocks), new, &[("c.py", "x = 5\n")]);
    // One above each block.
    let both = format!("```\n# FILE: src/app.py\n{X}\n# FILE: b.py\n{Z}```\n");
    let expected = [("src/app.py", "x = 5\ny = 2\nz = 3\n"), ("b.py", "x = 1\ny = 2\nz = 7\n")];
    assert_written(Some(Format::Blocks), &both, &expected);
}

#[test]
fn a_closing_fence_may_repeat_its_opening_one() {
    for (open, path) in [("src/new.rs\n```rust", "src/new.rs"), ("~~~worksplit:src/lib.rs", "src/lib.rs")] {
        let close = open.lines().last().unwrap();
        let reply = format!("{open}\nfn a() {{}}\n{close}\n");
        assert_written(Some(Format::Whole), &reply, &[(path, "fn a() {}\n")]);
        assert_written(None, &reply, &[(path, "fn a() {}\n")]);
    }
    // Before another block with a name, however that is closed.
    for end in ["```", "```rust"] {
        let reply = format!("n/a.rs\n```rust\na();\n```rust\n\nn/b.rs\n```rust\nb();\n{end}\n");
        assert_written(Some(Format::Whole), &reply, &[("n/a.rs", "a();\n"), ("n/b.rs", "b();\n")]);
    }
    let reply = "```rust n/a.rs\na();\n```rust n/a.rs\n\nRun:\n\n```bash\ncargo test\n```\n";
    assert_written(Some(Format::Whole), reply, &[("n/a.rs", "a();\n")]);
    // A block inside the text that has its own end.
    let nested = "n/a.md\n```md\n```md\nx\n```\n```\n";
    assert_written(Some(Format::Whole), nested, &[("n/a.md", "```md\nx\n```\n")]);
    // A block that isn't closed before the next one is no text of a file.
    let open = "n/a.rs\n```rust\na();\n\nn/b.rs\n```rust\nb();\n```\n";
    assert_refused(Some(Format::Whole), open, "may be the last");
}

#[test]
fn a_bare_name_in_the_first_comment_of_a_block_names_it() {
    for (language, first, path) in [
        ("python", "# main.py", "main.py"),
        ("js", "// app.js", "app.js"),
        ("html", "<!-- index.html -->", "index.html"),
        ("", "/* main.c */", "main.c"),
        ("yaml", "# File: conf.yml", "conf.yml"),
    ] {
        let reply = format!("So:\n\n```{language}\n{first}\nx\n```\n");
        let text = format!("{first}\nx\n");
        assert_written(Some(Format::Whole), &reply, &[(path, &text)]);
        assert_written(None, &reply, &[(path, &text)]);
    }
    for (language, first) in [
        ("markdown", "# main.py"),
        ("js", "// Node.js"),
        ("", "# Node.js"),
        ("yaml", "# main.py"),
        ("python", "# main.py does it"),
        ("python", "# 1.2"),
        ("text", "# main.py"),
    ] {
        let reply = format!("So:\n\n```{language}\n{first}\nx\n```\n");
        assert_refused(None, &reply, "no edit");
        assert_refused(Some(Format::Whole), &reply, "nothing names the file");
    }
    // The project has such a file elsewhere.
    assert_refused(Some(Format::Whole), "```python\n# app.py\nx\n```\n", "nothing names the file");
}

#[test]
fn no_block_of_several_is_left_out_without_a_word() {
    let page = "```html templates/base.html\n<p></p>\n```\n\n";
    let run = "Then:\n\n```bash\npython run.py\n```\n";
    let reply = format!("{page}```python\n# run.py\nx = 1\n```\n\n{run}");
    let expected = [("run.py", "# run.py\nx = 1\n"), ("templates/base.html", "<p></p>\n")];
    for format in [Some(Format::Whole), None] {
        let mut written = written(format, &reply).unwrap();
        written.sort();
        let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(written, expected, "{format:?}");
    }
    for first in ["# app.py", "// package.json", "# main.xyz"] {
        let reply = format!("{page}```\n{first}\nx = 1\n```\n\n{run}");
        for format in [Some(Format::Whole), None] {
            assert_refused(format, &reply, "may name its file");
        }
    }
    let example = format!("{page}Use it so:\n\n```python\nrender()\n```\n");
    assert_written(Some(Format::Whole), &example, &[("templates/base.html", "<p></p>\n")]);
}

const HUNK: &str = "@@ -1,2 +1,2 @@\n-x = 1\n+x = 5\n y = 2\n";

#[test]
fn a_diff_without_a_header_is_named_as_blocks_are() {
    let expected = [("src/app.py", "x = 5\ny = 2\nz = 3\n")];
    let bare = "@@ ... @@\n-x = 1\n+x = 5\n y = 2\n";
    for hunk in [HUNK, bare] {
        for reply in [
            format!("```diff\n// FILE: src/app.py\n{hunk}```\n"),
            format!("```diff\n# src/app.py\n{hunk}```\n"),
            format!("```\n# FILE: src/app.py\n\n{hunk}```\n"),
            format!("### b.py\n\n````diff\n# FILE: src/app.py\n{hunk}````\n"),
            format!("src/app.py\n```diff\n{hunk}```\n"),
            format!("### `src/app.py`\n\n```diff\n{hunk}```\n"),
            format!("**src/app.py**\n\n```diff\n{hunk}```\n"),
            format!("```diff src/app.py\n{hunk}```\n"),
            format!("```diff:src/app.py\n{hunk}```\n"),
            format!("I change `src/app.py`:\n\n```diff\n{hunk}```\n"),
            format!("src/app.py\n{hunk}"),
        ] {
            assert_written(Some(Format::Udiff), &reply, &expected);
            assert_written(None, &reply, &expected);
        }
    }
    // A header's name goes before all others.
    let named = format!("### b.py\n```diff\n--- a/src/app.py\n+++ b/src/app.py\n{HUNK}```\n");
    assert_written(Some(Format::Udiff), &named, &expected);
}

#[test]
fn each_diff_of_several_without_headers_is_named() {
    let second = "@@ -3 +3 @@\n-z = 3\n+z = 7\n";
    let both = [("src/app.py", "x = 5\ny = 2\nz = 3\n"), ("b.py", "x = 1\ny = 2\nz = 7\n")];
    for reply in [
        format!("### src/app.py\n```diff\n{HUNK}```\n\n### b.py\n```diff\n{second}```\n"),
        format!("```diff\n# FILE: src/app.py\n{HUNK}# FILE: b.py\n{second}```\n"),
        format!("src/app.py\n@@\n-x = 1\n+x = 5\n\nb.py\n{second}"),
        format!("```diff\n--- src/app.py\n+++ src/app.py\n{HUNK}```\n\n**b.py**\n```diff\n{second}```\n"),
    ] {
        assert_written(Some(Format::Udiff), &reply, &both);
    }
    let one = format!("### b.py\n```diff\n{HUNK}```\nand\n\n### b.py\n```diff\n{second}```\n");
    assert_written(Some(Format::Udiff), &one, &[("b.py", "x = 5\ny = 2\nz = 7\n")]);
    // The hunk after it is for the file before.
    let one = format!("### b.py\n```diff\n{HUNK}```\nand\n```diff\n{second}```\n");
    assert_written(Some(Format::Udiff), &one, &[("b.py", "x = 5\ny = 2\nz = 7\n")]);
    for refused in [
        format!("```diff\n{HUNK}```\n"),
        format!("I change `b.py` and `src/app.py`:\n\n```diff\n{HUNK}```\n"),
        format!("Done.\n\n```diff\n# the first line\n{HUNK}```\n"),
    ] {
        assert_refused(Some(Format::Udiff), &refused, "no file is named");
    }
    let outside = format!("```diff\n# FILE: ../b.py\n{HUNK}```\n");
    assert_refused(Some(Format::Udiff), &outside, "..");
}

#[test]
fn prose_that_begins_with_two_at_signs_is_no_hunk() {
    let diff = format!("--- a/b.py\n+++ b/b.py\n{HUNK}");
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n")];
    for line in ["@@ - that", "@@ - that is the line.", "@@ - one\nand two"] {
        for reply in [
            format!("{line}\n\n{diff}"),
            format!("{line}\n{diff}"),
            format!("{line}\n```diff\n{diff}```\n"),
            format!("{line}\n\n- a list\n\n{diff}"),
        ] {
            assert_written(Some(Format::Udiff), &reply, &expected);
            assert_written(None, &reply, &expected);
        }
        let block = format!("{line}\n\nb.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 5\n>>>>>>> REPLACE\n");
        assert_written(None, &block, &expected);
    }
    // A hunk whose first line has lost its blank.
    let bare = "```diff\n# FILE: b.py\n@@ ... @@\nx = 1\n-y = 2\n+y = 6\n```\n";
    assert_written(Some(Format::Udiff), bare, &[("b.py", "x = 1\ny = 6\nz = 3\n")]);
    assert_refused(Some(Format::Udiff), "@@ - that\n-x = 1\n+x = 5\n", "no file is named");
}

#[test]
fn a_patch_s_envelope_around_a_diff_is_no_line_of_it() {
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n")];
    for hunk in [HUNK, "@@\n-x = 1\n+x = 5\n y = 2\n"] {
        for reply in [
            format!("b.py\n*** Begin Patch\n{hunk}*** End Patch\n"),
            format!("*** Begin Patch\n--- a/b.py\n+++ b/b.py\n{hunk}*** End Patch\nDone.\n"),
            format!("b.py\n```diff\n*** Begin Patch\n{hunk}*** End Patch\n```\n"),
            format!("```diff\n# FILE: b.py\n{hunk}*** End Patch\n```\n"),
        ] {
            assert_written(Some(Format::Udiff), &reply, &expected);
        }
    }
}

#[test]
fn a_diff_without_headers_is_not_written_as_a_file() {
    let reply = "### src/app.py\n\n```diff\n x = 1\n-y = 2\n+y = 5\n```\n";
    assert_refused(Some(Format::Whole), reply, "it is a diff and not the file");
    let file = "### fix.diff\n\n```diff\n-y = 2\n+y = 5\n```\n";
    assert_written(Some(Format::Whole), file, &[("fix.diff", "-y = 2\n+y = 5\n")]);
}

#[test]
fn an_edit_block_may_name_its_file_in_an_attribute_and_hold_literal_text() {
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n")];
    for reply in [
        "<edit path=\"b.py\"><search>x = 1</search><replace>x = 5</replace></edit>",
        "<edit file='b.py'>\n<search>\nx = 1\n</search>\n<replace>\nx = 5\n</replace>\n</edit>",
        "<edit path=\"b.py\"><search><![CDATA[x = 1]]></search><replace><![CDATA[x = 5]]></replace></edit>",
        "<edit><file>b.py</file><search>\n<![CDATA[\nx = 1\n]]>\n</search><replace><![CDATA[x = 5]]></replace></edit>",
        "<edit path=\"b.py\"><file>b.py</file><search>x = 1</search><replace>x = 5</replace></edit>",
        "<edit file=\"1 of 2\"><file>b.py</file><search>x = 1</search><replace>x = 5</replace></edit>",
    ] {
        assert_written(None, reply, &expected);
    }
    let two =
        "<edit path=\"b.py\"><file>src/app.py</file><search>x = 1</search><replace>x = 5</replace></edit>";
    assert_refused(None, two, "two files");
    // A file of XML has such marks itself.
    let path = RelPath::parse("a.xml").unwrap();
    let files: BTreeMap<RelPath, String> = [(path, "<a><![CDATA[foo]]></a>\n<b>foo</b>\n".to_owned())].into();
    let reply =
        "<edit path=\"a.xml\"><search><![CDATA[foo]]></search><replace><![CDATA[bar]]></replace></edit>";
    let done = plan(reply, &ApplyOptions::default(), &files);
    assert_eq!(done.changes_to_write()[0].after.as_deref(), Some("<a><![CDATA[bar]]></a>\n<b>foo</b>\n"));
}

#[test]
fn marks_of_an_indented_block_may_be_indented_unevenly() {
    let reply = "b.py\n  <<<<<<< SEARCH\nx = 1\n   =======\nx = 5\n  >>>>>>> REPLACE\n";
    assert_written(Some(Format::Blocks), reply, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
    // At the margin it may as well be text.
    let reply = "b.py\n<<<<<<< SEARCH\nx = 1\n   =======\nx = 5\n>>>>>>> REPLACE\n";
    assert_refused(Some(Format::Blocks), reply, "no =======");
}

#[test]
fn a_heading_above_a_sentence_names_the_block_below() {
    let reply = "1. **a.html**\n\n```html\n<p>\n```\n\n2. **a.css**\nThis file has the style of the plot.\n\n\
                 ```css\np {}\n```\n";
    assert_written(Some(Format::Whole), reply, &[("a.html", "<p>\n"), ("a.css", "p {}\n")]);
    // A block in another language is an example.
    let reply = "a.rs\n```rust\nfn a() {}\n```\n\n### b.rs\nIt is as it was, with this in the settings.\n\n```toml\n[x]\n```\n";
    assert_written(Some(Format::Whole), reply, &[("a.rs", "fn a() {}\n")]);
}

#[test]
fn a_reply_without_a_fence_is_the_file_where_it_is_said_to_be_one_and_is_code() {
    let path = RelPath::parse("b.py").unwrap();
    let text = "def compute_all():\n    return 0\n".to_owned();
    let files: BTreeMap<RelPath, String> = [(path.clone(), text)].into();
    let options = |format| ApplyOptions { format, path: Some(path.clone()), ..ApplyOptions::default() };
    let code = "def compute_all():\n    return 1\n";
    let done = plan(code, &options(Some(Format::Whole)), &files);
    assert_eq!(done.changes_to_write()[0].after.as_deref(), Some(code));
    let other = "def f():\n    return 1\n";
    let prose = "Sure, here is the function that returns 1.\n";
    for (format, reply) in [(Some(Format::Whole), prose), (Some(Format::Whole), other), (None, code)] {
        let done = plan(reply, &options(format), &files);
        assert!(done.changes_to_write().is_empty(), "{reply}");
    }
}

#[test]
fn line_breaks_of_the_reply_are_not_those_of_the_file() {
    let reply = "b.py\r\n```python\r\nx = 5\r\ny = 2\r\nz = 3\r\n```\r\n";
    assert_written(Some(Format::Whole), reply, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
}

#[test]
fn arguments_may_say_what_to_find_and_what_to_put_there() {
    let reply = r#"{"path": "b.py", "findText": "x = 1", "withText": "x = 5"}"#;
    assert_written(Some(Format::Tool), reply, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
}

#[test]
fn arguments_around_a_list_of_edits_are_for_each_of_them() {
    let twice = |list: &str| format!(r#"{{"path": "b.py", "{list}": [{{"oldText": " = ", "newText": "="}}]"#);
    let expected = [("b.py", "x=1\ny=2\nz=3\n")];
    for flag in ["replaceAll", "all_occurrences"] {
        for list in ["edits", "patches"] {
            assert_written(Some(Format::Tool), &format!(r#"{}, "{flag}": true}}"#, twice(list)), &expected);
        }
        let not_all = format!(r#"{}, "{flag}": false}}"#, twice("edits"));
        assert_refused(Some(Format::Tool), &not_all, "occurs 3 times");
    }
    // A list that isn't there is none.
    let reply = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5", "edits": null}"#;
    assert_written(Some(Format::Tool), reply, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
    let reply = r#"{"path": "b.py", "patches": {"operation": "overwrite", "newText": "w = 0\n"}}"#;
    assert_written(Some(Format::Tool), reply, &[("b.py", "w = 0\n")]);
}

#[test]
fn content_for_a_place_in_a_file_is_no_whole_file() {
    let beside =
        r#"{"path": "b.py", "content": "w = 0\n", "old_sha": "x9", "title": "y", "description": "x = 3\ny"}"#;
    assert_written(Some(Format::Tool), beside, &[("b.py", "w = 0\n")]);
    let insert = |rest: &str| format!(r#"{{"path": "b.py", "content": "w = 0\n", {rest}}}"#);
    for (rest, expected) in [
        (r#""insert_after": "x = 1\n""#, "x = 1\nw = 0\ny = 2\nz = 3\n"),
        (r#""insert_after": "x = 1""#, "x = 1\nw = 0\ny = 2\nz = 3\n"),
        (r#""insert_before": "z = 3""#, "x = 1\ny = 2\nw = 0\nz = 3\n"),
    ] {
        assert_written(Some(Format::Tool), &insert(rest), &[("b.py", expected)]);
    }
    for (rest, words) in [
        (r#""insert_after": "q = 1\n""#, "not found"),
        (r#""insert_after": " = ""#, "occurs 3 times"),
        (r#""insert_after": """#, "isn't a whole file"),
        (r#""start_line": 2"#, "isn't a whole file"),
        (r#""position": "end""#, "isn't a whole file"),
        (r#""insert_after": "x = 1", "insert_before": "z = 3""#, "isn't a whole file"),
        (r#""old_version": "x = 1""#, r#""old_version", whose text is in the file"#),
        (r#""search_lines": ["x = 1", "y = 2"]"#, r#""search_lines", whose text is in the file"#),
        (r#""existing_text": ["y = 2\n"]"#, r#""existing_text", whose text is in the file"#),
        (r#""find_text": "x = 1", "existing_code": "y = 2""#, "whose text is in the file"),
        (r#""context": "x = 1\ny = 2""#, r#""context", whose text is in the file"#),
        (r#""match_start_line": 2, "existing_text": "y = 2""#, "a content and a line number"),
        (r#""near": 2"#, "a content and a line number"),
    ] {
        assert_refused(Some(Format::Tool), &insert(rest), words);
    }
}

#[test]
fn xml_marks_of_a_literal_text_are_no_part_of_a_file() {
    let reply = |path: &str| format!("<file path=\"{path}\">\n<![CDATA[\nfn a() {{}}\n]]>\n</file>\n");
    assert_written(Some(Format::Whole), &reply("a.rs"), &[("a.rs", "fn a() {}\n")]);
    assert_written(Some(Format::Whole), &reply("a.xml"), &[("a.xml", "<![CDATA[\nfn a() {}\n]]>\n")]);
}

#[test]
fn parts_of_one_file_add_up() {
    let path = RelPath::parse("b.py").unwrap();
    let part = |name: &str, value: u32| format!("def {name}():\n    return {value}\n");
    let text = |a, b| format!("{}\n\n{}", part("a", a), part("b", b));
    let files: BTreeMap<RelPath, String> = [(path.clone(), text(1, 2))].into();
    let options = ApplyOptions { format: Some(Format::Lazy), path: Some(path), ..ApplyOptions::default() };
    let said = |language: &str, other: &str| {
        let block = |language: &str, text: &str| format!("```{language}\n{text}```\n");
        let (first, second) = (block(language, &part("a", 5)), block(other, &part("b", 7)));
        format!("In `a`:\n\n{first}\nAnd in `b`:\n\n{second}")
    };
    let done = plan(&said("python", "python"), &options, &files);
    assert_eq!(done.changes_to_write()[0].after.as_deref(), Some(text(5, 7).as_str()));
    // A block in another language may be no part of it.
    for (one, other) in [("python", "text"), ("text", "text"), ("", "python")] {
        assert!(plan(&said(one, other), &options, &files).changes_to_write().is_empty(), "{one:?} {other:?}");
    }
}

#[test]
fn a_patch_without_its_first_mark_has_no_last_one_either() {
    assert_written(Some(Format::Patch), "*** Add File: new.txt\n+a\n+b\n", &[("new.txt", "a\nb\n")]);
    assert_refused(Some(Format::Patch), "*** Begin Patch\n*** Add File: new.txt\n+a\n", "may lack its end");
}

#[test]
fn edits_of_a_second_format_are_told_beside_arguments_of_a_tool() {
    let arguments = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    let block = "src/app.py\n<<<<<<< SEARCH\ny = 2\n=======\ny = 6\n>>>>>>> REPLACE\n";
    for reply in [
        format!("{arguments}\n\n{block}"),
        format!("{block}\n{arguments}\n"),
        format!("```json\n{arguments}\n```\n\n{block}"),
        format!("{block}\n```json\n{arguments}\n```\n"),
    ] {
        assert_refused(None, &reply, "send all in one");
    }
}

#[test]
fn a_call_in_the_text_that_cannot_be_read_is_told() {
    let call = |path: &str, new: &str| {
        format!(
            "<tool_call>\n{{\"name\": \"edit\", \"arguments\": {{\"path\": \"{path}\", \"old_string\": \"x = 1\", \
             \"new_string\": \"{new}\"}}}}\n</tool_call>\n"
        )
    };
    let good = call("b.py", "x = 5");
    let cut = call("src/app.py", "x = 5").replace("\"}}\n</tool_call>\n", "");
    assert_refused(None, &format!("{good}{cut}"), "block at line 4");
    assert_refused(None, &format!("{good}{}", call("src/app.py", "x = \"5\"")), "block at line 4");
    let function =
        "<function=edit>\n<parameter=path>\nsrc/app.py\n</parameter>\n<parameter=old_str>\nx = 1\n";
    assert_refused(None, &format!("{good}{function}"), "block at line 4");
}

#[test]
fn a_reply_with_carriage_returns_gives_files_their_own_line_ends() {
    let blocks = "new.py\n<<<<<<< SEARCH\n=======\nq = 1\nr = 2\n>>>>>>> REPLACE\n";
    let edit = "<edit>\n<file>new.py</file>\n<replace>\nq = 1\nr = 2\n</replace>\n</edit>\n";
    for reply in [blocks.to_owned(), edit.to_owned(), edit.replace("new.py", "b.py")] {
        let written = written(None, &reply.replace('\n', "\r\n")).unwrap();
        assert_eq!(written[0].1, "q = 1\nr = 2\n", "{reply}");
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    for reply in [
        r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5", "old_string": "y = 2", "new_string": "y = 6"}"#,
        r#"{"path": "b.py", "edits": [{"old_string": "x = 1", "new_string": "x = 5"}], "edits": [{"old_string": "y = 2", "new_string": "y = 6"}]}"#,
    ] {
        assert_refused(None, reply, "twice");
    }
    let same = r#"{"path": "b.py", "path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    assert_written(None, same, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
}

#[test]
fn patches_without_their_first_mark_are_read_beside_whole_ones() {
    let section = |path: &str, old: &str, new: &str| {
        format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n")
    };
    let (first, second) = (section("b.py", "x = 1", "x = 5"), section("src/app.py", "y = 2", "y = 6"));
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 1\ny = 6\nz = 3\n")];
    assert_written(None, &format!("*** Begin Patch\n{first}\nAnd:\n{second}"), &expected);
    assert_written(None, &format!("{first}\nAnd:\n*** Begin Patch\n{second}"), &expected);
}

#[test]
fn a_diff_in_a_fence_of_code_is_read() {
    let diff = |fence: &str, path: &str| {
        format!("```{fence}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x = 1\n+x = 5\n```\n\n")
    };
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 5\ny = 2\nz = 3\n")];
    assert_written(None, &(diff("diff", "b.py") + &diff("python", "src/app.py")), &expected);
}

#[test]
fn edits_that_come_to_nothing_are_told() {
    let reply = "*** Begin Patch\n*** Add File: n.py\n+n = 1\n*** Delete File: n.py\n*** End Patch\n";
    let plan = planned(None, reply);
    assert_eq!((plan.changes.len(), plan.failed.len()), (0, 0), "{:?}", plan.failed);
    assert_eq!(plan.unchanged[0].path.to_string(), "n.py");
}

#[test]
fn the_name_nearest_to_a_block_is_its_file() {
    let block = "```python\nw = 9\nv = 8\nu = 7\n```\n";
    for above in ["b.py\n\nnew.py\n", "## b.py\n\n### new.py\n\n", "Files:\n\n- `b.py`\n- `new.py`\n\n"] {
        assert_written(None, &format!("{above}{block}"), &[("new.py", "w = 9\nv = 8\nu = 7\n")]);
    }
    // A word with a dot in it is no file of code.
    assert_written(None, &format!("b.py\nv1.2\n{block}"), &[("b.py", "w = 9\nv = 8\nu = 7\n")]);
}

#[test]
fn blocks_in_a_list_lose_the_blanks_of_the_list() {
    let block = |language: &str, lines: &str| -> String {
        let fenced = format!("```{language}\n{lines}```\n");
        fenced
            .lines()
            .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("   {line}\n") })
            .collect()
    };
    let whole = block("python", "x = 5\n\nif y:\n    z = 3\n");
    assert_written(None, &format!("1. b.py\n{whole}"), &[("b.py", "x = 5\n\nif y:\n    z = 3\n")]);
    let margin = "1. b.py\n   ```python\nx = 5\n   y\n   ```\n";
    assert_written(None, margin, &[("b.py", "x = 5\n   y\n")]);
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 1\ny = 6\nz = 3\n")];
    let diff = |path: &str, hunk: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n{hunk}");
    let (first, second) =
        (diff("b.py", "-x = 1\n+x = 5\n y = 2\n"), diff("src/app.py", " x = 1\n-y = 2\n+y = 6\n"));
    for reply in [
        format!("```diff\n{first}```\n\n1. Then:\n\n{}", block("diff", &second)),
        format!("1. This:\n\n{}2. Then:\n\n{}", block("diff", &first), block("diff", &second)),
    ] {
        assert_written(None, &reply, &expected);
    }
    let patch = "*** Begin Patch\n*** Update File: b.py\n@@\n-x = 1\n+x = 5\n y = 2\n*** End Patch\n";
    assert_written(None, &format!("1. This:\n\n{}", block("", patch)), &expected[..1]);
}

#[test]
fn marks_in_small_letters_are_marks() {
    let block =
        X.replace("<<<<", "<<<<<<< search").replace("====", "=======").replace(">>>>", ">>>>>>> replace");
    let other = "src/app.py\n<<<<<<< SEARCH\ny = 2\n=======\ny = 6\n>>>>>>> REPLACE\n";
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 1\ny = 6\nz = 3\n")];
    assert_written(None, &format!("b.py\n{block}\n{other}"), &expected);
}

#[test]
fn arguments_beside_others_are_not_left_out() {
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 1\ny = 6\nz = 3\n")];
    let one = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    let two = r#"{"path": "src/app.py", "old_string": "y = 2", "new_string": "y = 6"}"#;
    for reply in [format!("{one}, {two}"), format!("{one},\n{two}"), format!("{one}; {two}\n")] {
        assert_written(None, &reply, &expected);
    }
    for (more, key) in [
        (format!(r#""changes": [{two}]"#), "changes"),
        (r#""content": "all new\n""#.to_owned(), "content"),
        (r#""search": "y = 2""#.to_owned(), "search"),
    ] {
        assert_refused(None, &format!(r#"{{"path": "b.py", "edits": [{one}], {more}}}"#), key);
    }
    // Empty values are none.
    for more in [r#""edits": []"#, r#""edits": null"#] {
        let reply = format!("{}, {more}}}", one.trim_end_matches('}'));
        assert_written(None, &reply, &expected[..1]);
    }
    let filled = format!(r#"{{"path": "b.py", "old_string": "", "content": null, "edits": [{one}]}}"#);
    assert_written(None, &filled, &expected[..1]);
}

#[test]
fn fences_in_documentation_end_no_block() {
    let code = "\"\"\"\nUse:\n\n```\nrun\n```\n\"\"\"\nE = 2\n";
    for more in ["", "\nOutput:\n```\n5\n```\n", "\nsrc/app.py\n```python\nx = 5\n```\n"] {
        let reply = format!("b.py\n```python\n{code}```\n{more}");
        let written = written(None, &reply).unwrap();
        assert_eq!(written[0], ("b.py".to_owned(), code.to_owned()), "{reply}");
    }
    let plain = "b.py\n```python\nx = 5\n```\n\nOutput:\n```\n5\n```\n";
    assert_written(None, plain, &[("b.py", "x = 5\n")]);
}

#[test]
fn arguments_without_a_search_text_are_told_beside_others() {
    let one = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    for other in ["new_string", "new_str", "newText"] {
        let reply = format!("{one}\n\n{{\"path\": \"src/app.py\", \"{other}\": \"x = 2\"}}\n");
        assert_refused(None, &reply, "old_string");
    }
}

#[test]
fn a_list_below_a_diff_without_a_fence_is_no_part_of_it() {
    let diff = "--- a/b.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 5\n y = 2\n\n";
    let expected = [("b.py", "x = 5\ny = 2\nz = 3\n")];
    for list in ["- x is five now.\n- Nothing else.\n", "+ `x` is five.\n", "* x is five.\n"] {
        assert_written(None, &format!("{diff}{list}"), &expected);
    }
    // Counts that are too low: the hunk goes on.
    let longer = "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 5\n y = 2\n-z = 3\n";
    assert_written(None, longer, &[("b.py", "x = 5\ny = 2\n")]);
}

#[test]
fn a_quoted_name_in_a_patch_is_the_file() {
    let patch = "*** Begin Patch\n*** Update File: \"b.py\"\n@@\n-x = 1\n+x = 5\n*** End Patch\n";
    assert_written(None, patch, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
}

#[test]
fn marks_of_a_patch_in_small_letters_are_marks() {
    let patch = "*** begin patch\n*** update file: b.py\n@@\n-x = 1\n+x = 5\n*** end patch\n";
    assert_written(None, patch, &[("b.py", "x = 5\ny = 2\nz = 3\n")]);
}

#[test]
fn nothing_of_a_mixed_reply_is_left_out_without_a_word() {
    let arguments = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    let call = |path: &str, old: &str, new: &str| {
        format!(
            "<function=edit>\n<parameter=path>\n{path}\n</parameter>\n<parameter=old_str>\n{old}\n</parameter>\n\
             <parameter=new_str>\n{new}\n</parameter>\n</function>\n"
        )
    };
    let second = call("src/app.py", "y = 2", "y = 6");
    for reply in [format!("{arguments}\n\n{second}"), format!("{second}\n{arguments}\n")] {
        assert_refused(None, &reply, "further edits");
    }
    let whole = "b.py\n```python\nx = 5\ny = 2\nz = 3\n```\n";
    let mut expected = [("b.py", "x = 5\ny = 2\nz = 3\n"), ("src/app.py", "x = 1\ny = 6\nz = 3\n")];
    expected.reverse();
    assert_written(None, &format!("{whole}\n{second}"), &expected);
    assert_written(None, &format!("{second}\n{whole}"), &expected);
    let patch = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-y = 2\n+y = 6\n*** End Patch\n";
    let bare = "b.py\n```diff\n@@ @@\n-x = 1\n+x = 5\n```\n";
    for reply in [format!("{patch}\n{bare}"), format!("{bare}\n{patch}")] {
        assert_refused(None, &reply, "further edits");
    }
}

#[test]
fn a_new_file_that_is_cut_off_beside_edits_is_told() {
    let block = "b.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 5\n>>>>>>> REPLACE\n";
    let reply = format!("{block}\nnew.py\n```python\nn = 1\nm");
    let files = BTreeMap::from([(RelPath::parse("b.py").unwrap(), TEXT.to_owned())]);
    let plan = plan(&reply, &ApplyOptions { cut_off: true, ..ApplyOptions::default() }, &files);
    assert!(plan.failed.iter().any(|failure| failure.message.contains("new.py")), "{:?}", plan.failed);
}
