//! Edits that name a symbol.

use journeyman_edit::{
    AllowedDifferences, EditOp, OpContext, OpError, OpsOutcome, Refusal, SymbolAction, SymbolEdit, apply_ops,
};
use journeyman_protocol::RelPath;

fn apply(path: &str, text: &str, symbol: &str, action: SymbolAction) -> OpsOutcome {
    let path = RelPath::parse(path).unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    apply_ops(Some(text), &[EditOp::Symbol(SymbolEdit { symbol: symbol.to_owned(), action })], &context)
}

fn done(path: &str, text: &str, symbol: &str, action: SymbolAction) -> String {
    let outcome = apply(path, text, symbol, action);
    assert_eq!(outcome.failed, [], "{path} {symbol}");
    outcome.content.unwrap()
}

fn refused(path: &str, text: &str, symbol: &str, action: SymbolAction) -> Refusal {
    match apply(path, text, symbol, action).failed.as_slice() {
        [OpError::Refused { refusal, .. }] => refusal.clone(),
        other => panic!("{other:?}"),
    }
}

fn replace(content: &str) -> SymbolAction {
    SymbolAction::Replace { content: content.to_owned() }
}
fn before(content: &str) -> SymbolAction {
    SymbolAction::InsertBefore { content: content.to_owned() }
}
fn after(content: &str) -> SymbolAction {
    SymbolAction::InsertAfter { content: content.to_owned() }
}
fn rename(to: &str) -> SymbolAction {
    SymbolAction::Rename { to: to.to_owned() }
}

const RUST: &str = "struct A;\n\nimpl A {\n    /// Doc.\n    #[inline]\n    fn f(&self) {\n        1;\n    }\n\n    fn g(&self) {}\n}\n\nfn f() {}\n";

#[test]
fn replacing() {
    // What leaves the doc comment out keeps it.
    assert_eq!(
        done("a.rs", RUST, "A::f", replace("fn f(&self) {\n    2;\n}")),
        RUST.replace("        1;", "        2;")
    );
    // What has one of its own replaces it, with the attributes.
    assert_eq!(
        done("a.rs", RUST, "A.f", replace("        /// New.\n        fn f(&self) {}\n")),
        RUST.replace(
            "    /// Doc.\n    #[inline]\n    fn f(&self) {\n        1;\n    }\n",
            "    /// New.\n    fn f(&self) {}\n"
        )
    );
    let python = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n";
    assert_eq!(
        done("a.py", python, "A.f", replace("def f(self):\n    if x:\n        return 2\n    return 3\n")),
        "class A:\n    def f(self):\n        if x:\n            return 2\n        return 3\n\n    def g(self):\n        pass\n"
    );
    let crlf = "class A {\r\n  f() {\r\n  }\r\n}\r\n";
    assert_eq!(
        done("a.ts", crlf, "A/f", replace("f() {\n  x();\n}\n")),
        "class A {\r\n  f() {\r\n    x();\r\n  }\r\n}\r\n"
    );
    assert_eq!(
        done("a.json", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", replace("\"a\": [3],")),
        "{\n  \"a\": [3],\n  \"b\": 2\n}\n"
    );
}

#[test]
fn inserting() {
    assert_eq!(
        done("a.rs", RUST, "A::g", after("fn h(&self) {}")),
        RUST.replace("    fn g(&self) {}\n", "    fn g(&self) {}\n\n    fn h(&self) {}\n")
    );
    assert_eq!(
        done("a.rs", RUST, "A::f", before("fn e(&self) {}")),
        RUST.replace("    /// Doc.\n", "    fn e(&self) {}\n\n    /// Doc.\n")
    );
    let go = "package p\n\nfunc A() {\n\tb()\n}\n";
    assert_eq!(
        done("a.go", go, "A", after("func C() {\n\td()\n}\n")),
        "package p\n\nfunc A() {\n\tb()\n}\n\nfunc C() {\n\td()\n}\n"
    );
    // Two blank lines between what is outermost in Python.
    assert_eq!(
        done("a.py", "def a():\n    pass\n", "a", after("def b():\n    pass")),
        "def a():\n    pass\n\n\ndef b():\n    pass\n"
    );
    // Members as close as they are.
    let java = "class A {\n    int x;\n    int y;\n}\n";
    assert_eq!(
        done("A.java", java, "x", after("int z;")),
        "class A {\n    int x;\n    int z;\n    int y;\n}\n"
    );
    assert_eq!(
        done("a.json", "{\n  \"a\": 1\n}\n", "a", after("\"b\": 2")),
        "{\n  \"a\": 1,\n  \"b\": 2\n}\n".to_owned()
    );
}

#[test]
fn deleting() {
    assert_eq!(
        done("a.rs", RUST, "A::f", SymbolAction::Delete),
        "struct A;\n\nimpl A {\n    fn g(&self) {}\n}\n\nfn f() {}\n"
    );
    assert_eq!(done("a.rs", RUST, "A::g", SymbolAction::Delete), RUST.replace("\n    fn g(&self) {}\n", ""));
    assert_eq!(
        done("a.rb", "class A\n  def f\n  end\n\n  # Doc.\n  def g\n  end\nend\n", "g", SymbolAction::Delete),
        "class A\n  def f\n  end\nend\n"
    );
    assert_eq!(
        done("a.json", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", SymbolAction::Delete),
        "{\n  \"a\": 1\n}\n"
    );
    assert_eq!(
        done("a.json", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", SymbolAction::Delete),
        "{\n  \"b\": 2\n}\n"
    );
}

#[test]
fn renaming() {
    let text = "fn one() {\n    two(1);\n}\n\n// two in a comment\nfn two(x: u8) {\n    \"two\";\n}\n";
    assert_eq!(
        done("a.rs", text, "two", rename("three")),
        "fn one() {\n    three(1);\n}\n\n// two in a comment\nfn three(x: u8) {\n    \"two\";\n}\n"
    );
    let python =
        "class A:\n    def f(self):\n        return self.g()\n\n    def g(self):\n        return 1\n";
    assert_eq!(
        done("a.py", python, "A.g", rename("h")),
        python.replace("self.g()", "self.h()").replace("def g", "def h")
    );
    // A name that is taken, and one that something else has too.
    assert!(refused("a.rs", text, "two", rename("one")).to_string().contains("line 1"));
    let shadowed = "fn two() {}\n\nfn one() {\n    let two = 1;\n    f(two);\n}\n";
    assert!(refused("a.rs", shadowed, "two", rename("three")).to_string().contains("line 4"));
    let parameter = "def two():\n    pass\n\ndef one(two):\n    return two\n";
    assert!(refused("a.py", parameter, "two", rename("three")).to_string().contains("line 4"));
    assert_eq!(refused("a.rs", text, "two", rename("3x")).kind(), "malformed");
}

#[test]
fn symbols_that_arent_there_or_are_twice() {
    let Refusal::Symbol { candidates, ambiguous, .. } = refused("a.rs", RUST, "A::ff", SymbolAction::Delete)
    else {
        panic!()
    };
    assert!(!ambiguous);
    assert!(candidates.contains(&("A.f".to_owned(), 6)), "{candidates:?}");
    let twice = "mod a {\n    fn f() {}\n}\nmod b {\n    fn f() {}\n}\n";
    let refusal = refused("a.rs", twice, "f", SymbolAction::Delete);
    assert_eq!(
        refusal,
        Refusal::Symbol {
            symbol: "f".to_owned(),
            candidates: vec![("a.f".to_owned(), 2), ("b.f".to_owned(), 5)],
            ambiguous: true
        }
    );
    assert_eq!(done("a.rs", twice, "b/f", SymbolAction::Delete), "mod a {\n    fn f() {}\n}\nmod b {\n}\n");
    // `f` alone is the outermost one.
    assert_eq!(done("a.rs", RUST, "f", SymbolAction::Delete), RUST.replace("\nfn f() {}\n", ""));
}

#[test]
fn what_would_break_the_file_is_refused() {
    assert_eq!(refused("a.rs", RUST, "A::g", replace("fn g(&self) {")).kind(), "broken_syntax");
    assert_eq!(
        refused("a.rs", RUST, "A::f", replace("fn f(&self) {\n    // ... existing code ...\n}")).kind(),
        "placeholder"
    );
    assert_eq!(refused("a.txt", "a\n", "a", SymbolAction::Delete).kind(), "malformed");
    assert_eq!(refused("a.rs", RUST, "", SymbolAction::Delete).kind(), "no_symbol");
}
