//! Rewrites with remarks as models write them for longer files: aligned with the file as a whole.

use journeyman_edit::Format;

use crate::slips::text;

const FILE: &str = "// Copyright of somebody.
// All rights reserved.

package shop

import (
\t\"fmt\"
\t\"os\"
)

/*
 * The shop.
 * It sells things.
 */
type Shop struct {
\titems []string
}

func (s *Shop) Open() error {
\tif s.items == nil {
\t\treturn fmt.Errorf(\"empty\")
\t}
\treturn nil
}

func (s *Shop) helper() int {
\treturn len(s.items)
}

func (s *Shop) Close() {
\tos.Exit(0)
}
";

/// The file after a reply with this block and these words below it.
fn after(block: &str, words: &str) -> Result<String, String> {
    text(Format::Lazy, FILE, &format!("```go\n{block}```\n\n{words}\n"))
}

/// Holds a result against the expected text where it isn't refused.
fn assert_right_or_refused(new: &Result<String, String>, expected: &str) {
    assert!(new.is_err() || new.as_deref() == Ok(expected), "{new:?}");
}

/// The file without the lines from one on to another.
fn without(first: &str, last: &str) -> String {
    let from = FILE.find(first).unwrap();
    let to = FILE[from..].find(last).unwrap() + from;
    format!("{}{}", &FILE[..from], &FILE[to..])
}

#[test]
fn what_is_left_out_goes_only_if_the_reply_says_so() {
    let block = "// ... existing code ...\n\nfunc (s *Shop) Open() error {\n\t// ... unchanged ...\n}\n\nfunc (s *Shop) Close() {\n\tos.Exit(0)\n}\n";
    let expected = without("func (s *Shop) helper", "func (s *Shop) Close");
    assert_eq!(after(block, "I removed `helper`, which nobody called.").as_deref(), Ok(expected.as_str()));
    let kept = after(block, "Everything else is untouched.");
    assert!(kept.is_err() || kept.as_deref() == Ok(FILE), "it may have been forgotten");
    // A comment in its place says so, too, and is none of the file.
    let noted =
        block.replace("func (s *Shop) Close", "// helper removed: use len instead\n\nfunc (s *Shop) Close");
    assert_eq!(after(&noted, "").as_deref(), Ok(expected.as_str()));
}

#[test]
fn a_first_line_with_the_files_name_is_no_line_of_it() {
    let path = journeyman_protocol::RelPath::parse("src/shop.go").unwrap();
    let block = |first: &str| {
        format!(
            "```go\n{first}\n\n// ... existing code ...\n\nfunc (s *Shop) Close() {{\n\tos.Exit(1)\n}}\n```\n"
        )
    };
    for first in ["// src/shop.go", "// shop.go", "// File: src/shop.go", "// `./src/shop.go`"] {
        let files = crate::slips::after(Some(Format::Lazy), &[("src/shop.go", FILE)], &block(first)).unwrap();
        assert_eq!(files[&path], FILE.replace("Exit(0)", "Exit(1)"), "{first}");
    }
}

#[test]
fn the_files_head_may_be_left_out_without_a_remark() {
    let block = "package shop\n\n// ... imports unchanged ...\n\n/*\n * The shop.\n * ...\n */\ntype Shop struct {\n\titems []string\n\topen  bool\n}\n\n// ... methods unchanged ...\n";
    assert_eq!(
        after(block, "").as_deref(),
        Ok(FILE.replace("\titems []string\n", "\titems []string\n\topen  bool\n").as_str())
    );
}

#[test]
fn a_blank_line_less_between_lines_that_are_shown_goes() {
    let block = "// ... existing code ...\n\nfunc (s *Shop) helper() int {\n\treturn len(s.items)\n}\nfunc (s *Shop) Close() {\n\tos.Exit(2)\n}\n";
    let expected =
        FILE.replace("Exit(0)", "Exit(2)").replace("}\n\nfunc (s *Shop) Close", "}\nfunc (s *Shop) Close");
    assert_eq!(after(block, "").as_deref(), Ok(expected.as_str()));
}

#[test]
fn a_line_that_moves_leaves_the_blank_line_in_its_place() {
    let file = "import (\n\t\"a/first\"\n\t\"c/third\"\n\t\"b/second\"\n\n\t\"d/fourth\"\n)\n\nvar one = 1\nvar two = 2\n";
    let block = "import (\n\t\"a/first\"\n\n\t\"b/second\"\n\n\t\"c/third\"\n\t\"d/fourth\"\n)\n\n// ... unchanged ...\n";
    let expected = file.replace("\t\"c/third\"\n\t\"b/second\"\n\n", "\n\t\"b/second\"\n\n\t\"c/third\"\n");
    assert_eq!(text(Format::Lazy, file, &format!("```go\n{block}```\n")).as_deref(), Ok(expected.as_str()));
}

#[test]
fn what_a_remark_may_stand_for_is_not_written_again() {
    // Nothing tells if the new function replaces the one that the remark may stand for.
    let block = "// ... existing code ...\n\nfunc (s *Shop) Open() (bool, error) {\n\treturn true, nil\n}\n\nfunc (s *Shop) Close() {\n\tos.Exit(0)\n}\n";
    match after(block, "") {
        Ok(new) => assert_eq!(new.matches(") Open()").count(), 1, "{new}"),
        Err(refusal) => assert!(refusal.contains("can't be merged"), "{refusal}"),
    }
    // A statement right below a remark may be one of those that it stands for.
    let block = "// ... existing code ...\n\nfunc (s *Shop) Close() {\n\t// ... existing code ...\n\tos.Remove(\"lock\")\n}\n";
    if let Ok(new) = after(block, "") {
        assert!(new.contains("Exit(0)") && new.contains("Remove"), "{new}");
    }
}

#[test]
fn one_of_several_alike_is_not_taken_for_another() {
    let file = "ignore:\n  - os: linux\n    arch: arm\n  - os: windows\n    arch: arm64\n  - os: freebsd\n    arch: arm\nflags:\n  - -trimpath\n";
    let block = "ignore:\n  # ... linux entries ...\n  - os: windows\n    arch: arm64\n  - os: windows\n    arch: x86\n  # ... freebsd entries ...\nflags:\n  - -trimpath\n";
    let new = text(Format::Lazy, file, &format!("```yaml\n{block}```\n\nI dropped windows on x86.\n"));
    let expected = file.replace("    arch: arm64\n", "    arch: arm64\n  - os: windows\n    arch: x86\n");
    assert_right_or_refused(&new, &expected);
}

#[test]
fn blank_lines_below_the_last_remark_end() {
    let block = "package shop\n\n// ... existing code ...\n\n\n";
    assert!(after(block, "I removed nothing.").is_err());
}

/// A file of a function for each of these words, which are alike but for them.
fn functions(words: &[&str]) -> String {
    let function = |word: &&str| {
        format!("func get{word}() int {{\n\tlock()\n\tdefer unlock()\n\treturn find(\"{word}\")\n}}\n")
    };
    let functions: Vec<String> = words.iter().map(function).collect();
    format!("package store\n\n{}", functions.join("\n"))
}

#[test]
fn a_definition_like_the_one_before_it_doesnt_replace_it() {
    let file = functions(&["First", "Second", "Third", "Fourth"]);
    let whole = functions(&["First", "Second", "New", "Third", "Fourth"]);
    let from = whole.find("func getNew").unwrap();
    // It begins with the end of what is above, which is that of every function.
    let block = format!("// ... existing code ...\n}}\n\n{}", &whole[from..]);
    let reply = |words: &str| text(Format::Lazy, &file, &format!("```go\n{block}```\n\n{words}\n"));
    for words in ["", "The dead key is replaced by a new one."] {
        let new = reply(words);
        assert_right_or_refused(&new, &whole);
    }
}

#[test]
fn what_is_above_the_first_line_of_a_reply_stays() {
    let block = "func (s *Shop) helper() int {\n\treturn len(s.items) + 1\n}\n\n// ... existing code ...\n";
    let expected = FILE.replace("len(s.items)", "len(s.items) + 1");
    for words in ["", "The count is no longer wrong."] {
        assert_eq!(after(block, words).as_deref(), Ok(expected.as_str()), "{words}");
    }
    // What is below its last one isn't taken away either.
    let block = "// ... existing code ...\n\nfunc (s *Shop) helper() int {\n\treturn len(s.items) + 1\n}\n";
    let new = after(block, "The count is no longer wrong.");
    assert_right_or_refused(&new, &expected);
}

#[test]
fn lines_between_two_that_are_shown_side_by_side_go() {
    let file = FILE.replace("\tos.Exit(0)\n", "\tfirst(s)\n\tsecond(s)\n\tthird(s)\n\tos.Exit(0)\n");
    let block = "// ... existing code ...\n\nfunc (s *Shop) Close() {\n\tos.Exit(0)\n}\n";
    assert_eq!(text(Format::Lazy, &file, &format!("```go\n{block}```\n")).as_deref(), Ok(FILE));
}

#[test]
fn the_end_of_a_block_that_is_shown_anew_does_not_stay_below_it() {
    let file = "def first(a):\n    if a:\n        return one(a)\n    else:\n        return other(a, 1)\n\n\ndef last():\n    pass\n";
    let block = "# ...\n\ndef first(a):\n    if a:\n        return one(a)\n    else:\n        return another_thing(a)\n\n\n# ...\n";
    let new = text(Format::Lazy, file, &format!("```python\n{block}```\n"));
    let expected = file.replace("other(a, 1)", "another_thing(a)");
    assert_right_or_refused(&new, &expected);
}

#[test]
fn a_comment_of_the_file_that_speaks_of_a_removal_is_no_remark() {
    let file = FILE.replace("\tos.Exit(0)\n", "\t// The owner may have dropped\n\tos.Exit(0)\n");
    let block = "// ... existing code ...\n\nfunc (s *Shop) Close() {\n\t// The owner may have been dropped.\n\tos.Exit(0)\n}\n";
    let expected = file.replace("have dropped", "have been dropped.");
    let new = text(Format::Lazy, &file, &format!("```go\n{block}```\n"));
    assert_eq!(new.as_deref(), Ok(expected.as_str()));
}
