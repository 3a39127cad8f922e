//! Whole files, lazy ones, and which format a reply is in.

use journeyman_edit::{Edit, EditOp, Format, detect};

use super::{block, reading, rel};

#[test]
fn whole_files() {
    let whole = |path: &str, content: &str| Edit {
        path: rel(path),
        ops: vec![EditOp::Rewrite { content: content.to_owned(), exact: false }],
        description: None,
    };
    let cases: &[(&str, &str, Option<&str>, &[Edit])] = &[
        ("name above", "a.rs\n```\nx\n```", None, &[whole("a.rs", "x")]),
        ("name on the fence", "```rust src/b.rs\nx\ny\n```\n", None, &[whole("src/b.rs", "x\ny")]),
        ("another directory", "path/to/a.rs\n```\nx\n```", Some("a.rs"), &[whole("path/to/a.rs", "x")]),
        ("the caller's", "```\nx\n```", Some("new.txt"), &[whole("new.txt", "x")]),
        (
            "named in prose, then a command",
            "Here is `a.rs`:\n\n```\nx\n```\n\nRun it:\n\n```\nrun\n```\n",
            Some("a.rs"),
            &[whole("a.rs", "x")],
        ),
        (
            "a shell command is none",
            "```\nx\n```\n\n```bash\nrun\n```\n",
            Some("a.rs"),
            &[whole("a.rs", "x")],
        ),
        (
            "two files and prose",
            "a.rs\n```\nx\n```\nand\n\nsrc/b.rs\n```\ny\n```\n",
            None,
            &[whole("a.rs", "x"), whole("src/b.rs", "y")],
        ),
        ("the last of a name", "a.rs\n```\nx\n```\nno:\n\na.rs\n```\ny\n```\n", None, &[whole("a.rs", "y")]),
        (
            "a longer fence",
            "README.md\n````md\n```\nx\n```\n````\n",
            None,
            &[whole("README.md", "```\nx\n```")],
        ),
        (
            "a fence with a language inside",
            "README.md\n```md\n# T\n```rust\nx\n```\nend\n```\n",
            None,
            &[whole("README.md", "# T\n```rust\nx\n```\nend")],
        ),
        ("fences at both ends", "```\n```\nx\n```\n```", Some("n.md"), &[whole("n.md", "```\nx\n```")]),
        ("no last fence", "a.rs\n```\nx\n", None, &[whole("a.rs", "x")]),
        ("in tags", "<file path=\"n/c.rs\">\nx\n</file>\n", None, &[whole("n/c.rs", "x")]),
    ];
    for (name, reply, path, expected) in cases {
        let read = reading(reply, Some(Format::Whole), *path, true);
        assert_eq!(read.problems, [], "{name}");
        if *name == "another directory" {
            assert_eq!(read.edits[0].path, rel("a.rs"), "{name}");
            continue;
        }
        assert_eq!(read.edits, *expected, "{name}");
    }
}

#[test]
fn what_whole_files_are_refused_for() {
    let cases = [
        ("which fence is the last", "README.md\n```md\n# T\n```\nx\n```\nend\n```\n", true, "longer ones"),
        ("nothing names it", "```\nx\n```", true, "nothing names the file"),
        ("cut off", "a.rs\n```\nx\n", false, "cut off"),
        ("perhaps cut off", "a.rs\n```\nx\n```\n", false, "cut off"),
        ("no last fence after another", "a.rs\n```\nx\n```\nsrc/b.rs\n```\ny\n", true, "isn't closed"),
        ("emptied", "a.rs\n```\n```\n", true, "empty"),
        ("outside", "../a.rs\n```\nx\n```\n", true, ".."),
    ];
    for (name, reply, finished, words) in cases {
        let read = reading(reply, Some(Format::Whole), None, finished);
        let shown: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|text| text.contains(words)), "{name}: {shown:?} {:?}", read.edits);
        assert!(read.edits.iter().all(|edit| edit.path == rel("a.rs") && name.contains("another")), "{name}");
    }
    // A snippet that is shown isn't a file.
    let snippet = "It is in long.rs:\n\nlong.rs\n```rust\nlet a = 2;\n```\n";
    assert!(reading(snippet, None, None, true).problems[0].message.contains("1 lines and the file 60"));
    assert_eq!(reading(snippet, Some(Format::Whole), None, true).problems, []);
}

#[test]
fn lazy_files() {
    let lazy = |content: &str| vec![EditOp::Lazy { content: content.to_owned(), says_removal: false }];
    let ops = |reply: &str, format| reading(reply, format, Some("a.rs"), true).edits[0].ops.clone();
    let remark = "fn a() {\n    // ... existing code ...\n    two();\n}";
    assert_eq!(ops(remark, Some(Format::Lazy)), lazy(remark));
    assert_eq!(ops(&format!("a.rs\n```rust\n{remark}\n```\n"), None), lazy(remark));
    assert_eq!(
        ops(&format!("a.rs\n```rust\n{remark}\n```\n"), Some(Format::Whole)),
        lazy(remark),
        "never written as it is"
    );
    let more = "fn a() {\n    one();\n}\n\nfn c() {}\n";
    assert_eq!(
        ops(more, Some(Format::Lazy)),
        vec![EditOp::Rewrite { content: more.to_owned(), exact: false }],
        "nothing is left out"
    );
    assert_eq!(ops("fn a() {}\n", Some(Format::Lazy)), lazy("fn a() {}\n"), "something is, without a word");
    assert_eq!(reading(remark, Some(Format::Lazy), Some("a.rs"), false).edits, []);
}

#[test]
fn the_format_shows_in_the_text() {
    let edit = "<edit>\n<file>a.rs</file>\n<delete/>\n</edit>";
    let cases = [
        ("Just words about <edit> and `<<<<<<< SEARCH`.", None),
        ("```rust\nlet a = 1;\n```\n", None),
        (edit, Some(Format::Edit)),
        ("a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Some(Format::Blocks)),
        ("text\n<old_text>x</old_text>", Some(Format::Blocks)),
        ("```diff\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n```\n", Some(Format::Udiff)),
        ("@@ ... @@\n-x\n+y\n", Some(Format::Udiff)),
        ("*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\n", Some(Format::Patch)),
        ("@@ class A\n-x\n+y\n", Some(Format::Patch)),
        (
            "{\"path\": \"a.rs\", \"old_string\": \"<<<<<<< SEARCH\", \"new_string\": \"y\"}",
            Some(Format::Tool),
        ),
        (
            "Like so:\n```json\n{\"path\": \"a\", \"old_string\": \"x\", \"new_string\": \"y\"}\n```",
            Some(Format::Tool),
        ),
        ("a.rs\n```rust\nfn a() {}\n```\n", Some(Format::Whole)),
        ("a.rs\n```rust\nfn a() {}\n", Some(Format::Whole)),
        ("a.rs\n```rust\n// ... existing code ...\nfn a() {}\n```\n", Some(Format::Lazy)),
        (
            "doc.md\n````md\nWrite\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n````\n",
            Some(Format::Whole),
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(detect(reply), expected, "{reply}");
    }
    let inside = format!("a.rs\n{}", block("x\n", &format!("{edit}\n")));
    assert_eq!(reading(&inside, None, None, true).problems, [], "marks inside a block are its content");
    let mixed = format!("a.rs\n{}\nand\n{edit}\n", block("x\n", "y\n"));
    let read = reading(&mixed, None, None, true);
    assert_eq!((read.format, read.edits.len()), (Some(Format::Blocks), 1));
    assert!(read.problems[0].message.contains("also in `edit`"), "{}", read.problems[0]);
    let named =
        reading("a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Some(Format::Edit), None, true);
    assert_eq!(named.format, Some(Format::Blocks), "what it is beats what it is called");
}

#[test]
fn a_script_in_a_block_of_its_language_is_a_file() {
    use journeyman_edit::{ApplyOptions, plan};
    let old = "#!/bin/sh\nset -eu\nmkdir -p \"$DIR\"\ncp \"$FILE\" \"$DIR\"\necho done\n";
    let files = std::collections::BTreeMap::from([(rel("run.sh"), old.to_owned())]);
    let paths = |reply: &str| -> Vec<String> {
        let options = ApplyOptions { format: Some(Format::Whole), ..ApplyOptions::default() };
        plan(reply, &options, &files).changes.iter().map(|change| change.path.to_string()).collect()
    };
    let new = old.replace("done", "copied");
    let notes = "And `notes.md`:\n\n```markdown\nCopied.\n```\n";
    let reply = format!("First the code in `run.sh`:\n\n```sh\n{new}```\n\n{notes}");
    assert_eq!(paths(&reply), ["notes.md", "run.sh"]);
    // Commands that run it are prose.
    let reply = format!("Run `run.sh`:\n\n```sh\nDIR=a ./run.sh\n```\n\n{notes}");
    assert_eq!(paths(&reply), ["notes.md"]);
}
