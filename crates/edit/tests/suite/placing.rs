//! Where a search text is found, and what the replacement becomes there.

use journeyman_edit::{Hunk, MAX_FEEDBACK_BYTES, Refusal, Strategy, apply_hunk, replace};

struct Case {
    name: &'static str,
    file: &'static str,
    search: &'static str,
    replacement: &'static str,
    expected: &'static str,
    strategy: Strategy,
}

fn case(
    name: &'static str,
    strategy: Strategy,
    file: &'static str,
    search: &'static str,
    replacement: &'static str,
    expected: &'static str,
) -> Case {
    Case { name, file, search, replacement, expected, strategy }
}

/// What is exact but for line ends, blanks and quotes.
fn nearly_exact() -> Vec<Case> {
    use Strategy::*;
    vec![
        case("within a line", Exact, "let a = 1;\n", "a = 1", "a = 2", "let a = 2;\n"),
        case("dollars and backslashes are literal", Exact, "x\n", "x", "$& $1 \\1 ${0}", "$& $1 \\1 ${0}\n"),
        case("an empty replacement deletes", Exact, "a\nb\nc\n", "b\n", "", "a\nc\n"),
        case("no final line break is added", Exact, "a\nb", "b", "c", "a\nc"),
        case("new lines take CRLF", Exact, "a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        case("an empty file is filled", Exact, "", "", "new\n", "new\n"),
        case(
            "a file with CRLF, a search with LF",
            LineEndings,
            "a\r\nb\r\nc\r\n",
            "a\nb\n",
            "a\nx\ny\n",
            "a\r\nx\r\ny\r\nc\r\n",
        ),
        case(
            "a file with LF, a search with CRLF",
            LineEndings,
            "a\nb\nc",
            "a\r\nb\r\n",
            "a\r\nx\r\n",
            "a\nx\nc",
        ),
        case(
            "mixed line endings stay mixed",
            LineEndings,
            "a\r\nb\nc\r\nd\n",
            "a\nb\nc\n",
            "a\nB\nc\n",
            "a\r\nB\nc\r\nd\n",
        ),
        case(
            "within lines, with CRLF",
            LineEndings,
            "f(a,\r\n  b);\r\n",
            "a,\n  b",
            "a,\n  c",
            "f(a,\r\n  c);\r\n",
        ),
        case(
            "after a byte order mark",
            LineEndings,
            "\u{feff}a\r\nb\r\n",
            "a\nb",
            "A\nb",
            "\u{feff}A\r\nb\r\n",
        ),
        case(
            "trailing blanks in the file stay",
            TrailingWhitespace,
            "a  \nb\nc\n",
            "a\nb\n",
            "a\nB\n",
            "a  \nB\nc\n",
        ),
        case("trailing blanks in the search", TrailingWhitespace, "a\nb\n", "a \nb", "a \nB", "a\nB\n"),
    ]
}

/// What takes a looser reading.
fn looser() -> Vec<Case> {
    use Strategy::*;
    vec![
        case("a last line without a line break", TrailingWhitespace, "a\nb", "b\n", "c\n", "a\nc"),
        case(
            "flush left",
            Indentation,
            "mod m {\n    fn a() {\n        b()\n    }\n}\n",
            "fn a() {\n    b()\n}",
            "fn a() {\n    if c {\n        b()\n    }\n}",
            "mod m {\n    fn a() {\n        if c {\n            b()\n        }\n    }\n}\n",
        ),
        case(
            "no indentation at all in the search text",
            Indentation,
            "mod m {\n    fn a() {\n        b();\n        c();\n    }\n}\n",
            "fn a() {\nb();\nc();\n}",
            "fn a() {\n    b();\n    if d {\n        c();\n    }\n}",
            "mod m {\n    fn a() {\n        b();\n        if d {\n            c();\n        }\n    }\n}\n",
        ),
        case(
            "no indentation of the search text's first line alone",
            Exact,
            "f {\n    a();\n    b();\n}\n",
            "a();\n    b();",
            "    c();",
            "f {\n    c();\n}\n",
        ),
        case(
            "too deep",
            Indentation,
            "a:\n  b: 1\n",
            "    a:\n      b: 1",
            "    a:\n      b: 2\n      c: 3",
            "a:\n  b: 2\n  c: 3\n",
        ),
        case(
            "spaces for tabs",
            Indentation,
            "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n",
            "    if x {\n        y()\n    }",
            "    if x {\n        z()\n        for {\n            y()\n        }\n    }",
            "func f() {\n\tif x {\n\t\tz()\n\t\tfor {\n\t\t\ty()\n\t\t}\n\t}\n}\n",
        ),
        case(
            "four spaces for two",
            Indentation,
            "f {\n  g {\n    h\n  }\n}\n",
            "    g {\n        h\n    }",
            "    g {\n        i {\n            h\n        }\n    }",
            "f {\n  g {\n    i {\n      h\n    }\n  }\n}\n",
        ),
        case(
            "curly quotes",
            Typography,
            "say \u{201c}hi\u{201d}\n",
            "say \"hi\"",
            "say \"ho\"",
            "say \u{201c}ho\u{201d}\n",
        ),
        case("a dash within a line", Typography, "1 \u{2013} 2, 3\n", "1 - 2", "1 - 4", "1 \u{2013} 4, 3\n"),
        case(
            "blanks within a line",
            InnerWhitespace,
            "if  ( a ){\n  b( 1 )\n}\n",
            "if (a) {\n  b(1)\n}",
            "if (a) {\n  b(2)\n}",
            "if  ( a ){\n  b(2)\n}\n",
        ),
        case("a blank line too many", BlankEdges, "a\n  b\nc\n", "\nb\n", "\nd\n", "a\n  d\nc\n"),
        case("line numbers", LineNumbers, "a\nb\nc\n", "2 | b\n3 | c", "2 | B\n3 | c", "a\nB\nc\n"),
        case("line numbers on the search only", LineNumbers, "a\n\tb\n", "     2\t\tb", "\tB", "a\n\tB\n"),
        case("line numbers tell which", LineNumbers, "x\ny\nx\ny\nx\n", "5 | x", "5 | z", "x\ny\nx\ny\nz\n"),
    ]
}

#[test]
fn placed() {
    for case in nearly_exact().into_iter().chain(looser()) {
        let done = replace(case.file, case.search, case.replacement, false)
            .unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name));
        assert_eq!(done.text, case.expected, "{}", case.name);
        assert_eq!(done.strategy, case.strategy, "{}", case.name);
        assert_eq!(done.count, 1, "{}", case.name);
        let silent = done.note.is_none();
        assert!(
            !silent || case.strategy == Strategy::Exact,
            "{}: a loose match must say what differed",
            case.name
        );
    }
}

#[test]
fn refused() {
    let cases = [
        ("nowhere", "a\nb\n", "zzz", "y", "not_found"),
        ("twice", "a\nb\na\n", "a", "c", "ambiguous"),
        ("overlapping", "aaa", "aa", "b", "ambiguous"),
        ("twice when blanks are overlooked", "  a\n    a\n", "a\n\n", "b\n", "ambiguous"),
        ("a looser step isn't tried after two places", "a;\na;\n a;\n", "a;\n", "b;\n", "ambiguous"),
        ("empty", "a\n", "", "b", "empty_search"),
        ("blank only", "a\nb\n", " \n \n", "b", "not_found"),
        ("equal", "a\n", "a", "a", "no_change"),
        (
            "already made",
            "let total = sum(rows);\n",
            "let total = 0;",
            "let total = sum(rows);",
            "already_applied",
        ),
        ("another number", "x = 12\n", "x  =  1", "x = 3", "not_found"),
        ("another operator", "if a >= b {\n", "if a > = b {", "if c {", "not_found"),
        ("another case", "Hello\n", "hello", "x", "not_found"),
        ("part of a line with blanks inside", "before foo = 1 after\n", "foo  =  1", "foo = 2", "not_found"),
        (
            "blanks in a string of a changed line",
            "say(\"a  b\", 1)\n",
            "say(\"a b\",  1)",
            "say(\"c\")",
            "guarded_mismatch",
        ),
        (
            "a remark for code",
            "fn a() {\n  b();\n  c();\n}\n",
            "fn a() {\n  b();\n  c();\n}",
            "fn a() {\n  // ... rest unchanged\n}",
            "placeholder",
        ),
        ("inside a longer number", "timeout = 100\n", "timeout = 10", "timeout = 20", "guarded_mismatch"),
        ("inside a decimal", "wait(10.5)\n", "wait(10", "wait(20", "guarded_mismatch"),
        ("cut off in a word", "a();\nreturn x;\n", "a();\nretu", "b();\nreturn y;", "guarded_mismatch"),
        (
            "lines that follow would be doubled",
            "a();\nb();\nlet c = compute(1);\nd();\n",
            "a();\nb();\n",
            "a();\nB();\nlet c = compute(1);\n",
            "guarded_mismatch",
        ),
        (
            "an insertion made before",
            "use one::alpha;\nuse two::beta;\nfn main() {}\n",
            "use one::alpha;\n",
            "use one::alpha;\nuse two::beta;\n",
            "already_applied",
        ),
        ("the same lines with other line endings", "a\r\nb\r\n--\r\na\nb\n", "a\nb\n", "c\n", "ambiguous"),
        ("numbers on some lines of the replacement", "a\nb\n", "1 | a\n2 | b", "1 | a\nb\nc", "not_found"),
    ];
    for (name, file, search, replacement, kind) in cases {
        let refusal = replace(file, search, replacement, false).expect_err(name);
        assert_eq!(refusal.kind(), kind, "{name}: {refusal}");
    }
}

#[test]
fn blanks_in_a_string_of_a_line_that_stays_are_no_matter() {
    let file = "say(\"a  b\");\nrun( 1 );\n";
    let done = replace(file, "say(\"a b\");\nrun(1);\n", "say(\"a b\");\nrun(2);\n", false).unwrap();
    assert_eq!(done.text, "say(\"a  b\");\nrun(2);\n");
}

#[test]
fn indentation_that_cannot_be_told_is_refused() {
    let file = "a:\n    x\n        x\nb\n";
    let refusal = replace(file, "a:\n  x\n  x\nb\n", "a:\n  x\n  x\n      y\nb\n", false).unwrap_err();
    assert_eq!(refusal.kind(), "guarded_mismatch");
    // Lines without any indentation, of which the replacement still has some.
    let file = "def f():\n    if a:\n        x = 1\n        y = 2\n";
    let new = "if a:\nx = 1\nfor z in w:\n    y += z";
    let refusal = replace(file, "if a:\nx = 1\ny = 2", new, false).unwrap_err();
    assert_eq!(refusal.kind(), "guarded_mismatch");
}

#[test]
fn exact_matches_are_literal_and_warn() {
    let note = |file, search, replacement| {
        replace(file, search, replacement, false).unwrap().note.unwrap_or_default()
    };
    assert!(note("timeouts = 100\n", "timeout", "delay").contains("inside a longer word"));
    assert!(note("if a:\n    go()\nwait()\n", "go()\nwait()", "go()\nn = 3\nwait(n)").contains("`····`"));
    assert_eq!(note("if a:\n    wait()\n", "wait()", "n = 3\nwait(n)"), "", "both are indented");
    assert!(note("a\r\nb\r\n", "b", "b\nc").contains("CRLF"));
    assert_eq!(note("if a:\n    wait()\n", "    wait()", "    n = 3\n    wait(n)"), "");
    assert_eq!(note("if a:\n    wait()\n", "wait()", "n = 3\n    wait(n)"), "");
}

#[test]
fn all_places() {
    let done = replace("foo foo\nfoo\n", "foo", "bar", true).unwrap();
    assert_eq!((done.text.as_str(), done.count, done.line), ("bar bar\nbar\n", 3, 1));
    let done = replace("a {\n\tf( 1 )\n}\nb {\n\t\tf(1)\n}\n", "f(1)\n", "g(1)\n", true).unwrap();
    assert_eq!(done.count, 1, "an exact match keeps looser ones out");
    let done = replace("a {\n\tf( 1 )\n}\nb {\n\t\tf( 1 )\n}\n", "f(1)", "g(1)", true).unwrap();
    assert_eq!((done.text.as_str(), done.count), ("a {\n\tg(1)\n}\nb {\n\t\tg(1)\n}\n", 2));
}

#[test]
fn a_line_hint_chooses_only_between_clear_alternatives() {
    let file = "x\n1\n2\n3\nx\n5\n6\n7\nx\n";
    let at = |near| apply_hunk(file, &Hunk { near: Some(near), ..Hunk::new("x", "y") }).map(|done| done.line);
    assert_eq!(at(5), Ok(5));
    assert_eq!(at(1), Ok(1));
    assert_eq!(at(10), Ok(9));
    assert!(matches!(at(3), Err(Refusal::Ambiguous { .. })));
    let wrong_hint = Hunk { near: Some(9), ..Hunk::new("2\n3", "4") };
    assert_eq!(apply_hunk(file, &wrong_hint).unwrap().line, 3, "a hint doesn't veto the only place");
}

#[test]
fn whole_lines_of_a_text_format() {
    let lines = |file, search, replacement| {
        apply_hunk(file, &Hunk { whole_lines: true, ..Hunk::new(search, replacement) }).map(|done| done.text)
    };
    assert_eq!(lines("a\nb\nc\n", "b", "").unwrap(), "a\nc\n", "a deleted line takes its line break");
    assert_eq!(lines("a\nb", "b", "").unwrap(), "a", "also where the file has no final one");
    assert_eq!(lines("f(a, b)\n", ", b", "").unwrap(), "f(a)\n", "a part of a line doesn't");
    assert_eq!(
        lines("ab\nb\ncb\n", "b", "x").unwrap(),
        "ab\nx\ncb\n",
        "a whole line goes before parts of lines"
    );
    assert_eq!(lines("a\nb\n", "a\n", "x").unwrap(), "x\nb\n", "a blank line too many joins no lines");
    assert_eq!(lines("a\n\nb\n", "a\n", "x").unwrap(), "x\nb\n", "a blank line that is there is replaced");
}

#[test]
fn refusals_teach() {
    let file = "fn one() {\n    let rows = read();\n    sum(rows)\n}\n\nfn two() {}\n";
    let search = "fn one() {\n    let all = read();\n    sum(rows)\n}\n";
    let Err(Refusal::NotFound { closest: Some(near), .. }) = replace(file, search, "fn one() {}\n", false)
    else {
        panic!("a near miss must show the place");
    };
    assert_eq!(near.line, 1);
    assert!(near.similarity > 0.8 && near.similarity < 1.0, "{}", near.similarity);
    assert_eq!(
        near.excerpt,
        "  1 fn one() {\n-     let all = read();\n+ 2     let rows = read();\n  3     sum(rows)\n  4 }"
    );
    let words = replace("a\nb\na\nc\na\n", "a", "x", false).unwrap_err().to_string();
    assert!(words.contains("lines 1, 3 and 5") && words.contains("Add lines"), "{words}");
    let words = replace("say(\"a  b\")\n", "say(\"a b\")", "x()", false).unwrap_err().to_string();
    assert!(words.contains("say(\"a··b\")"), "{words}");
}

#[test]
fn refusals_are_bounded() {
    let long = "x".repeat(5_000);
    let file: String = (0..1_000).map(|line| format!("let {long}{line} = {line};\n")).collect();
    let search: String = (0..100).map(|line| format!("let {long}{line} = {};\n", line + 1)).collect();
    let words = replace(&file, &search, "y", false).unwrap_err().to_string();
    assert!(words.len() <= MAX_FEEDBACK_BYTES && words.contains("copied from the file"), "{}", words.len());
    let words = replace(&"a\n".repeat(100_000), "a\n", "b\n", false).unwrap_err().to_string();
    assert!(words.len() <= MAX_FEEDBACK_BYTES && words.contains("more"), "{words}");
    let too_large = replace(&"x".repeat((8 << 20) + 1), "x", "y", false).unwrap_err();
    assert_eq!(too_large.kind(), "too_large");
}

#[test]
fn numbers_of_empty_lines_alone_are_found_nowhere() {
    for text in ["\u{201c}", "a\n\nb\n", ""] {
        for all in [false, true] {
            let hunk = Hunk { all, ..Hunk::new("12 | ", "a") };
            assert!(apply_hunk(text, &hunk).is_err(), "{text:?}");
        }
    }
}

#[test]
fn all_places_are_all_whatever_ends_their_lines() {
    let done = journeyman_edit::replace("a\r\nb\r\na\nb\n", "a\nb\n", "c\n", true).unwrap();
    assert_eq!((done.text.as_str(), done.count), ("c\r\nc\n", 2));
}

#[test]
fn all_places_are_none_within_longer_numbers() {
    let done = journeyman_edit::replace("t = 100\nu = 10\nv = 10.5\n", "10", "20", true).unwrap();
    assert_eq!((done.text.as_str(), done.count), ("t = 100\nu = 20\nv = 10.5\n", 1));
    assert!(done.note.unwrap().contains("2 places inside longer numbers"));
    let refusal = journeyman_edit::replace("t = 100\n", "10", "20", true).unwrap_err();
    assert_eq!(refusal.kind(), "guarded_mismatch");
}
