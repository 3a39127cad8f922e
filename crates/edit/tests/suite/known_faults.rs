//! Faults of other edit tools, each of which is absent here. The numbers are those of the table in
//! the agent's tests (`session/conformance/faults.rs`).

use journeyman_edit::{Refusal, replace};

/// The text after the edit, or the refusal.
fn edit(file: &str, search: &str, replacement: &str) -> Result<String, Refusal> {
    replace(file, search, replacement, false).map(|applied| applied.text)
}

#[test]
fn fault_01_blanks_that_differ_do_not_let_a_match_end_within_a_word() {
    for (file, search, replacement, wrong) in [
        ("timeout = 100\n", "timeout  =  10", "timeout = 5", "timeout = 50\n"),
        ("return valueOf;\n", "return  value", "return x", "return xOf;\n"),
        ("let total = sum(a);\n", "let  total = su", "let all = ma", "let all = mam(a);\n"),
    ] {
        match edit(file, search, replacement) {
            Err(_) => {}
            Ok(text) => assert_ne!(text, wrong, "{search:?}"),
        }
    }
}

#[test]
fn fault_02_a_final_line_break_is_added_and_removed_as_asked() {
    assert_eq!(edit("a\nb", "b", "b\n").unwrap(), "a\nb\n");
    assert_eq!(edit("a\nb\n", "b\n", "b").unwrap(), "a\nb");
    assert_eq!(edit("one\ntwo\n", "two\n", "three\n").unwrap(), "one\nthree\n");
}

#[test]
fn fault_03_a_difference_with_a_meaning_is_not_passed_over() {
    for (file, search, replacement) in [
        ("let next = index + 1;\n", "let next = index + 2;", "let next = index + 3;"),
        ("if count >= limit {\n}\n", "if count <= limit {", "if count == limit {"),
        ("if (!ready) { wait(); }\n", "if (ready) { wait(); }", "if (ready) { go(); }"),
        ("assert_eq!(a.len(), 10);\n", "assert_eq!(a.len(), 11);", "assert_eq!(a.len(), 12);"),
    ] {
        assert!(edit(file, search, replacement).is_err(), "{search:?} was written");
    }
}

#[test]
fn fault_04_blanks_alone_place_nothing_and_a_last_line_break_adds_none() {
    for search in ["   ", "\t", " \n "] {
        assert!(edit("a\n\nb\n\nc\n", search, "x").is_err(), "{search:?}");
    }
    let file = "fn a() {\n    one();\n    two();\n}\n";
    assert_eq!(
        edit(file, "one();\ntwo();\n", "one();\nthree();\n").unwrap(),
        "fn a() {\n    one();\n    three();\n}\n"
    );
}

#[test]
fn fault_05_a_block_takes_the_files_indentation_and_mixes_none() {
    let file = "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\treturn 1\n\t\treturn 2\n";
    let edited = edit(
        file,
        "    def f(self):\n        if x:\n            return 1\n",
        "    def f(self):\n        if y:\n            return 3\n",
    )
    .unwrap();
    assert_eq!(edited, "class A:\n\tdef f(self):\n\t\tif y:\n\t\t\treturn 3\n\t\treturn 2\n");
    assert!(edited.lines().all(|line| !line.contains("    ")), "{edited}");
}

#[test]
fn fault_06_lines_that_an_edit_does_not_touch_keep_their_ends() {
    let mixed = "one\r\ntwo\nthree\r\nfour\n";
    assert_eq!(edit(mixed, "four", "4").unwrap(), "one\r\ntwo\nthree\r\n4\n");
    assert_eq!(edit(mixed, "one\ntwo", "1\n2").unwrap(), "1\r\n2\nthree\r\nfour\n");
}

#[test]
fn fault_07_a_remark_in_place_of_code_is_refused_in_every_spelling() {
    let file = "fn a() {\n    one();\n    two();\n}\n";
    for remark in [
        "// rest of code ...",
        "# rest of code ...",
        "/* ... */",
        "// ... existing code ...",
        "# ... unchanged ...",
    ] {
        let replacement = format!("fn a() {{\n    {remark}\n}}");
        assert!(edit(file, "fn a() {\n    one();\n    two();\n}", &replacement).is_err(), "{remark}");
    }
    let held = "say(\"... existing code ...\");";
    assert!(edit(file, "one();", held).is_ok(), "in a text it is no remark");
}

#[test]
fn fault_09_signs_of_patterns_are_written_as_they_are() {
    for literal in ["$& $1 $' $` $$", "\\1 \\0 ${name}", "{new_string} %s", "\\n \\t"] {
        assert_eq!(edit("a price b\n", "price", literal).unwrap(), format!("a {literal} b\n"));
    }
}
