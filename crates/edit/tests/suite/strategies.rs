//! The looser steps of placing: what they find, what they write there, and what they refuse.

use journeyman_edit::{AllowedDifferences, Hunk, Refusal, Strategy, apply_hunk, replace};

/// A file, a search text, its replacement, and the file afterwards.
type Case = (&'static str, &'static str, &'static str, &'static str);

fn placed(strategy: Strategy, cases: &[Case]) {
    for (file, search, replacement, expected) in cases {
        let done = replace(file, search, replacement, false)
            .unwrap_or_else(|refusal| panic!("{search:?} in {file:?}: {refusal}"));
        assert_eq!(done.text, *expected, "{search:?} in {file:?}");
        assert_eq!(done.strategy, strategy, "{search:?} in {file:?}");
        assert!(done.note.is_some(), "{search:?}: a loose match must say what differed");
    }
}

fn refused(cases: &[(&str, &str, &str, &str)]) {
    for (file, search, replacement, kind) in cases {
        let refusal = replace(file, search, replacement, false).expect_err(search);
        assert_eq!(refusal.kind(), *kind, "{search:?} in {file:?}: {refusal}");
    }
}

#[test]
fn look_alikes_stay_the_files_own() {
    placed(
        Strategy::Typography,
        &[
            // An ellipsis of one character, and one of three.
            ("wait\u{2026} 1\n", "wait... 1", "wait... 2", "wait\u{2026} 2\n"),
            ("a... \u{201c}x\u{201d}\n", "a\u{2026} \"x\"", "a\u{2026} \"y\"", "a... \u{201c}y\u{201d}\n"),
            // Accents as characters of their own, in the file or in the search text.
            ("cafe\u{301} = 1\n", "caf\u{e9} = 1", "caf\u{e9} = 2", "cafe\u{301} = 2\n"),
            ("nai\u{308}ve\r\nb\r\n", "na\u{ef}ve\nb", "na\u{ef}ve\nc", "nai\u{308}ve\r\nc\r\n"),
        ],
    );
    refused(&[
        // A letter is not found within the one that an accent makes of it.
        ("cafe\u{301}\u{2014}\n", "cafe\u{2014}", "tea", "not_found"),
        ("\u{2026}\u{2026}\n", "....", "x", "not_found"),
    ]);
}

#[test]
fn blank_lines_within_a_text_do_not_count() {
    placed(
        Strategy::BlankLines,
        &[
            ("a();\n\nb();\nc();\n", "a();\nb();\nc();\n", "a();\nb();\nd();\n", "a();\n\nb();\nd();\n"),
            ("  a();\n  b();\n", "a();\n\nb();\n", "a();\n\nc();\n", "  a();\n  c();\n"),
            ("a();\n\n\nb();\n", "a();\n\nb();\n", "x();\n\nb();\n", "x();\n\n\nb();\n"),
        ],
    );
    refused(&[
        ("a();\n\nb();\n--\na();\n\n\nb();\n", "a();\nb();\n", "x();\n", "ambiguous"),
        ("a();\n\n\n\n\n\n\n\n\nb();\n", "a();\nb();", "x();\nb();", "span_too_large"),
    ]);
}

#[test]
fn line_breaks_may_stand_elsewhere_between_the_same_tokens() {
    placed(
        Strategy::LineBreaks,
        &[
            (
                "x\n    call(\n        one,\n        two\n    );\ny\n",
                "call(one, two);",
                "call(two);",
                "x\n    call(two);\ny\n",
            ),
            (
                "let total = first + second;\n",
                "let total =\n    first + second;",
                "let total = 0;",
                "let total = 0;\n",
            ),
        ],
    );
    refused(&[
        ("return value;\nnext\n", "returnvalue;\nnext", "x", "not_found"),
        ("say(\"a\n b\", 12345678)\n", "say(\"a b\", 12345678)", "x", "not_found"),
    ]);
}

#[test]
fn one_layer_of_escapes_is_undone() {
    placed(
        Strategy::Escapes,
        &[
            (
                "if a {\n\tb(\"c\");\n}\n",
                r#"if a {\n\tb(\"c\");\n}"#,
                r#"if a {\n\tb(\"d\");\n}"#,
                "if a {\n\tb(\"d\");\n}\n",
            ),
            ("say(\"a\\n\");\n", r#"say(\"a\n\");"#, r#"say(\"b\n\");"#, "say(\"b\\n\");\n"),
            ("re(\"\\d+\");\n", r#"re("\\d+");"#, r#"re("\\w+");"#, "re(\"\\w+\");\n"),
            ("if (a < b && c) {}\n", "if (a &lt; b &amp;&amp; c) {}", "if (a &lt; d) {}", "if (a < d) {}\n"),
        ],
    );
    refused(&[
        // Some quotes are escaped and some aren't: nothing can be told.
        ("say(\"a\", \"b\");\n", r#"say(\"a\", "b");"#, "x", "not_found"),
        ("if (a < b && c) {}\n", "if (a &lt; b && c) {}", "x", "not_found"),
    ]);
}

#[test]
fn fences_and_diff_prefixes_are_undone() {
    placed(
        Strategy::Prefixes,
        &[
            ("x\na\nb\n", "```rust\na\nb\n```\n", "```rust\na\nc\n```\n", "x\na\nc\n"),
            ("x\na\nb\nc\n", " a\n-b\n c", " a\n+B\n c", "x\na\nB\nc\n"),
        ],
    );
    refused(&[("x\na\nb\n", "-a\n-b", "-c", "not_found")]);
}

#[test]
fn what_is_left_out_stays() {
    let file = "fn a() {\n    one();\n    two();\n    three();\n    four();\n}\n\nfn b() {\n    one();\n}\n";
    placed(
        Strategy::Elision,
        &[
            (
                "fn a() {\n    one();\n    two();\n    three();\n    four();\n}\n",
                "fn a() {\n    one();\n    ...\n    four();\n}\n",
                "fn a() {\n    ONE();\n    ...\n    FOUR();\n}\n",
                "fn a() {\n    ONE();\n    two();\n    three();\n    FOUR();\n}\n",
            ),
            (
                "a = 1\nb = 2\nc = 3\nd = 4\n",
                "a = 1\n# ... existing code ...\nd = 4",
                "a = 0\n# ... existing code ...\nd = 4",
                "a = 0\nb = 2\nc = 3\nd = 4\n",
            ),
        ],
    );
    refused(&[
        // The replacement doesn't leave them out: it would delete what wasn't shown.
        (file, "fn a() {\n    ...\n    four();\n}\n", "fn a() {}\n", "not_found"),
        // It can't be told which of two is changed.
        ("a\nx\nb\nx\nb\n", "a\n...\nb", "a\n...\nc", "ambiguous"),
    ]);
}

#[test]
fn a_stale_context_line_may_stand_where_the_rest_fits() {
    let file = "fn total(rows: &[Row]) -> u32 {\n    // Adds up every row that counts.\n    let mut sum = 0;\n    for row in rows {\n        sum += row.value;\n    }\n    sum\n}\n";
    let stale = "fn total(rows: &[Row]) -> u32 {\n    // Sums up all the rows that count.\n    let mut sum = 0;\n    for row in rows {\n        sum += row.value;\n    }\n    sum\n}\n";
    let done =
        replace(file, stale, &stale.replace("sum += row.value", "sum += row.value * 2"), false).unwrap();
    assert_eq!(done.strategy, Strategy::Similarity);
    assert_eq!(
        done.text,
        file.replace("sum += row.value", "sum += row.value * 2"),
        "the file's remark stays"
    );
    assert!(done.note.unwrap().contains("Adds"), "the note shows what differed");
}

#[test]
fn a_difference_with_a_meaning_never_slips_through() {
    let file =
        "fn a() {\n    let x = b + 2;\n    if x <= limit {\n        run(\"one\");\n    }\n    done()\n}\n";
    let changes = [
        ("b + 2", "b + 1", "b + 3"),
        ("x <= limit", "x >= limit", "x == limit"),
        ("x <= limit", "x < limit", "x == limit"),
        ("\"one\"", "\"two\"", "\"three\""),
        ("b + 2", "c + 2", "d + 2"),
    ];
    for (own, searched, new) in changes {
        let search = file.replace(own, searched);
        let replacement = search.replace(searched, new);
        let refusal = replace(file, &search, &replacement, false).expect_err(searched);
        assert!(matches!(refusal, Refusal::NotFound { .. } | Refusal::GuardedMismatch { .. }), "{refusal}");
        let allow = AllowedDifferences { differences: true, ..AllowedDifferences::default() };
        let done = apply_hunk(file, &Hunk { allow, ..Hunk::new(&search, &replacement) }).unwrap();
        assert_eq!(done.text, file.replace(own, new), "allowed by name");
    }
}

#[test]
fn a_separator_that_is_missing_in_the_search_is_kept() {
    let file = "const config = {\n  enabled: true,\n  retries: 3\n};\n";
    let search = "const config = {\n  enabled: true\n  retries: 3\n};\n";
    for new in ["enabled: false", "enabled: false,"] {
        let done = replace(file, search, &search.replace("enabled: true", new), false).unwrap();
        assert_eq!(done.text, file.replace("true", "false"));
    }
}

#[test]
fn two_places_that_are_alike_are_ambiguous() {
    let block = |name: &str, n: u32| {
        format!("begin {name} {{\n    let a = {n};\n    let common = compute(a);\n    finish(common)\n}}\n")
    };
    let file = format!("{}{}", block("x", 1), block("x", 2));
    let search = block("x", 3);
    let refusal = replace(&file, &search, &search.replace("finish", "end"), false).unwrap_err();
    assert_eq!(refusal.kind(), "ambiguous");
}

#[test]
fn an_edit_without_search_text_goes_before_the_line_it_names() {
    let at = |file: &str, near, new: &str| {
        apply_hunk(file, &Hunk { near: Some(near), whole_lines: true, ..Hunk::new("", new) })
            .map(|done| done.text)
    };
    assert_eq!(at("f() {\n}\n", 2, "x();").unwrap(), "f() {\n    x();\n}\n");
    assert_eq!(at("f() {\n\ta();\n}\n", 3, "x();\ny();").unwrap(), "f() {\n\ta();\n\tx();\n\ty();\n}\n");
    assert_eq!(at("a\r\nb\r\n", 2, "x\ny").unwrap(), "a\r\nx\r\ny\r\nb\r\n");
    assert_eq!(at("a\nb", 3, "x").unwrap(), "a\nb\nx", "no final line break is added");
    assert_eq!(at("a\nb\n", 3, "x\n").unwrap(), "a\nb\nx\n\n", "a blank line comes where one is given");
    assert_eq!(at("a\n", 9, "x").unwrap_err().kind(), "empty_search", "there is no such line");
}

#[test]
fn anchors_choose_and_never_veto() {
    let file = "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        pass\n    def g():\n        pass\n";
    let after = |anchors: &[&str], search: &str| {
        let anchors: Vec<String> = anchors.iter().map(|anchor| (*anchor).to_owned()).collect();
        apply_hunk(
            file,
            &Hunk { anchors: &anchors, whole_lines: true, ..Hunk::new(search, "        return") },
        )
        .map(|done| done.line)
    };
    assert_eq!(after(&["class B:"], "        pass").unwrap(), 6);
    assert_eq!(after(&["class B:", "def g():"], "        pass").unwrap(), 8);
    assert_eq!(after(&["class A:"], "        pass").unwrap(), 3);
    assert_eq!(after(&["class C:"], "        pass").unwrap_err().kind(), "no_anchor");
    assert_eq!(after(&["class C:"], "    def g():").unwrap(), 7, "the only place needs none");
}

#[test]
fn a_replacement_in_the_files_own_indentation_is_not_indented_again() {
    placed(
        Strategy::Indentation,
        &[
            (
                "def f(a):\n    b = 0\n    return b\n",
                "def f(a):\n  b = 0\n  return b\n",
                "def f(a):\n    if a:\n        return 1\n    return 0\n",
                "def f(a):\n    if a:\n        return 1\n    return 0\n",
            ),
            (
                "m {\n    run(1);\n    run(2);\n}\n",
                "run(1);\nrun(2);\n",
                "    run(3);\n    run(2);\n",
                "m {\n    run(3);\n    run(2);\n}\n",
            ),
        ],
    );
}
