//! What an edit does to a file's syntax is said.

use journeyman_edit::{AllowedDifferences, EditOp, OpContext, Replace, SyntaxFault, apply_ops};
use journeyman_protocol::RelPath;

fn broken(path: &str, text: &str, search: &str, replace: &str) -> Option<SyntaxFault> {
    let path = RelPath::parse(path).unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let op = EditOp::Replace(Replace {
        search: search.to_owned(),
        replace: replace.to_owned(),
        ..Replace::default()
    });
    let outcome = apply_ops(Some(text), &[op], &context);
    assert_eq!(outcome.failed, []);
    outcome.broken
}

#[test]
fn a_dropped_bracket_is_pointed_at() {
    let text = "fn a() {\n    if x {\n        y();\n    }\n    z();\n}\n\nfn b() {}\n";
    let finding = broken("a.rs", text, "        y();\n    }\n", "        y();\n").unwrap();
    assert_eq!(finding.message, "the edit dropped the `}` that closed line 2");
    let finding = broken("a.rs", text, "    if x {\n", "    if (x {\n").unwrap();
    assert!(finding.message.contains("missing `)` for line 2"), "{finding:?}");
    let finding = broken("a.rs", text, "    if x {\n", "    x;\n").unwrap();
    assert!(finding.message.contains('}') || finding.message.contains("dropped the `{`"), "{finding:?}");
    let finding = broken("a.rs", text, "    z();\n}\n", "    z();\n}\n}\n").unwrap();
    assert!(finding.message.contains('}'), "{finding:?}");
    assert_eq!(finding.line, 7);
}

#[test]
fn many_languages_break_and_dont() {
    let cases: &[(&str, &str, &str, &str, bool)] = &[
        ("a.py", "def f():\n    return 1\n", "return 1", "return (1", true),
        ("a.py", "def f():\n    return 1\n", "return 1", "return [1]", false),
        ("a.js", "const a = { b: 1 };\n", "b: 1 }", "b: 1", true),
        ("a.ts", "interface A { b: string }\n", "string }", "number }", false),
        ("a.tsx", "const a = <p>x</p>;\n", "</p>", "", true),
        ("a.go", "package p\n\nfunc f() {\n\tg(\"x\")\n}\n", "\"x\"", "\"x", true),
        ("A.java", "class A { void f() { g(); } }\n", "g();", "g()", true),
        ("a.c", "int f(void) { return 1; }\n", "return 1;", "return 1", true),
        ("a.rb", "def f\n  if a\n    b\n  end\nend\n", "    b\n  end\n", "    b\n", true),
        ("a.json", "{\"a\": [1, 2]}\n", "2]", "2", true),
        ("a.json", "{\"a\": [1, 2]}\n", "2]", "3]", false),
        ("a.toml", "[a]\nb = 1\n", "b = 1", "b = ", true),
        ("a.sh", "if a; then\n  b\nfi\n", "fi\n", "", true),
        ("a.css", ".a { top: 0 }\n", "0 }", "0", true),
        ("a.txt", "(a\n", "(a", "((a", false),
    ];
    for (path, text, search, replace, expected) in cases {
        assert_eq!(broken(path, text, search, replace).is_some(), *expected, "{path}: {search} → {replace}");
    }
}

#[test]
fn what_was_broken_before_says_nothing() {
    let text = "fn a( {\n}\n\nfn b() {\n    1\n}\n";
    assert_eq!(broken("a.rs", text, "    1\n", "    2\n"), None);
    // A file that isn't what its name says.
    assert_eq!(broken("a.html", "{% if a %}<p>{% endif %}\n", "<p>", "<b>"), None);
    assert_eq!(broken("a.yaml", "a: {{ b }}\n{{- if c }}\nd: 1\n{{- end }}\n", "d: 1", "d: 2"), None);
}

#[test]
fn a_large_file_is_looked_at_too() {
    let text: String = (0..3_000).map(|n| format!("fn f{n}() {{\n    g({n});\n}}\n\n")).collect();
    assert_eq!(broken("a.rs", &text, "g(1500);", "h(1500);"), None);
    let finding = broken("a.rs", &text, "    g(1500);\n}\n", "    g(1500);\n").unwrap();
    assert_eq!(finding.message, "the edit dropped the `}` that closed line 6001");
}
