//! Rewrites with remarks in place of what stays.

use journeyman_edit::{AllowedDifferences, EditOp, OpContext, OpError, OpsOutcome, Strategy, apply_ops};
use journeyman_protocol::RelPath;
use proptest::prelude::{prop, prop_assert, proptest};

fn apply(path: &str, text: &str, content: &str) -> OpsOutcome {
    let path = RelPath::parse(path).unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    apply_ops(Some(text), &[EditOp::Lazy { content: content.to_owned(), says_removal: false }], &context)
}

fn merged(path: &str, text: &str, content: &str) -> String {
    let outcome = apply(path, text, content);
    assert_eq!(outcome.failed, [], "{path}\n{content}");
    outcome.content.unwrap()
}

/// The refusal's kind and its words.
fn refused(path: &str, text: &str, content: &str) -> (&'static str, String) {
    let outcome = apply(path, text, content);
    match outcome.failed.as_slice() {
        [OpError::Refused { refusal, .. }] => {
            assert_eq!(outcome.content.as_deref(), Some(text), "nothing is written");
            (refusal.kind(), refusal.to_string())
        }
        other => panic!("{path}: not refused but {other:?}:\n{}", outcome.content.unwrap_or_default()),
    }
}

/// Languages: path, file, rewrite, result.
const CASES: &[(&str, &str, &str, &str)] = &[
    (
        "a.rs",
        "use a::b;\n\n/// Old doc.\nfn one() {\n    1;\n    2;\n}\n\nimpl S {\n    fn x(&self) {}\n\n    fn y(&self) {}\n}\n",
        "// ... existing code ...\n\nfn one() {\n    1;\n    3;\n}\n\nimpl S {\n    // ... existing methods ...\n\n    fn z(&self) {}\n}\n",
        "use a::b;\n\n/// Old doc.\nfn one() {\n    1;\n    3;\n}\n\nimpl S {\n    fn x(&self) {}\n\n    fn y(&self) {}\n\n    fn z(&self) {}\n}\n",
    ),
    (
        "a.py",
        "import os\n\n\nclass A:\n    x = 1\n\n    def f(self):\n        return 1\n\n    def g(self):\n        a = 1\n        return a\n\n\ndef h():\n    pass\n",
        "# ... existing code ...\n\nclass A:\n    # ... existing code ...\n\n    def g(self):\n        # ... existing code ...\n        b = 2\n        return a\n\n\n# ... rest of the file ...\n",
        "import os\n\n\nclass A:\n    x = 1\n\n    def f(self):\n        return 1\n\n    def g(self):\n        a = 1\n        b = 2\n        return a\n\n\ndef h():\n    pass\n",
    ),
    (
        "a.ts",
        "import { a } from 'a';\n\nexport class A {\n  x = 1;\n\n  f(): void {\n    one();\n  }\n\n  g(): void {\n    two();\n  }\n}\n",
        "// ... imports ...\n\nexport class A {\n  // ... existing code ...\n\n  g(): void {\n    three();\n  }\n}\n",
        "import { a } from 'a';\n\nexport class A {\n  x = 1;\n\n  f(): void {\n    one();\n  }\n\n  g(): void {\n    three();\n  }\n}\n",
    ),
    (
        "a.jsx",
        "export function App() {\n  return (\n    <div>\n      <Head/>\n      <Body/>\n    </div>\n  );\n}\n",
        "export function App() {\n  return (\n    <div>\n      {/* ... existing elements ... */}\n      <Foot/>\n    </div>\n  );\n}\n",
        "export function App() {\n  return (\n    <div>\n      <Head/>\n      <Body/>\n      <Foot/>\n    </div>\n  );\n}\n",
    ),
    (
        "a.go",
        "package p\n\nimport (\n\t\"fmt\"\n)\n\nfunc A() {\n\tfmt.Println(1)\n}\n\nfunc (s *S) B() {\n\ts.x()\n\ts.y()\n}\n",
        "package p\n\nimport (\n\t// ... existing imports ...\n\t\"os\"\n)\n\n// ... existing code ...\n\nfunc (s *S) B() {\n\ts.x()\n\tos.Exit(1)\n\t// ... existing code ...\n}\n",
        "package p\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc A() {\n\tfmt.Println(1)\n}\n\nfunc (s *S) B() {\n\ts.x()\n\tos.Exit(1)\n\ts.y()\n}\n",
    ),
    (
        "A.java",
        "class A {\n    private int x;\n\n    /** Doc. */\n    int f() {\n        return x;\n    }\n\n    int g() {\n        return 1;\n    }\n}\n",
        "class A {\n    // ... existing fields ...\n\n    int f() {\n        return x + 1;\n    }\n\n    // rest of the class unchanged\n}\n",
        "class A {\n    private int x;\n\n    /** Doc. */\n    int f() {\n        return x + 1;\n    }\n\n    int g() {\n        return 1;\n    }\n}\n",
    ),
    (
        "a.rb",
        "class A\n  def f\n    one\n    two\n  end\n\n  def g\n    three\n  end\nend\n",
        "class A\n  def f\n    # ... existing code ...\n    more\n  end\n\n  # ... existing code ...\nend\n",
        "class A\n  def f\n    one\n    two\n    more\n  end\n\n  def g\n    three\n  end\nend\n",
    ),
    (
        "a.json",
        "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  },\n  \"d\": 3\n}\n",
        "{\n  // ... existing ...\n  \"b\": {\n    // ... existing ...\n    \"e\": 4\n  },\n  // ... existing ...\n}\n",
        "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2,\n    \"e\": 4\n  },\n  \"d\": 3\n}\n",
    ),
    (
        "a.c",
        "#include <a.h>\n\nstatic int f(int a)\n{\n\treturn a;\n}\n\nint g(void)\n{\n\treturn 1;\n}\n",
        "/* ... existing code ... */\n\nint g(void)\n{\n\treturn 2;\n}\n",
        "#include <a.h>\n\nstatic int f(int a)\n{\n\treturn a;\n}\n\nint g(void)\n{\n\treturn 2;\n}\n",
    ),
    (
        "a.cs",
        "class A\n{\n    int x;\n\n    void F()\n    {\n        One();\n    }\n}\n",
        "class A\n{\n    // ... existing code ...\n\n    void G()\n    {\n        Two();\n    }\n}\n",
        "class A\n{\n    int x;\n\n    void F()\n    {\n        One();\n    }\n\n    void G()\n    {\n        Two();\n    }\n}\n",
    ),
    (
        "a.php",
        "<?php\nclass A {\n    function f() {\n        return 1;\n    }\n\n    function g() {\n        return 2;\n    }\n}\n",
        "<?php\nclass A {\n    // ... existing code ...\n\n    function g() {\n        return 3;\n    }\n}\n",
        "<?php\nclass A {\n    function f() {\n        return 1;\n    }\n\n    function g() {\n        return 3;\n    }\n}\n",
    ),
    (
        "a.css",
        ".a {\n  color: red;\n}\n\n.b {\n  top: 0;\n}\n",
        "/* ... existing styles ... */\n\n.b {\n  top: 1px;\n}\n",
        ".a {\n  color: red;\n}\n\n.b {\n  top: 1px;\n}\n",
    ),
    (
        "a.lua",
        "local a = 1\n\nfunction f()\n  one()\nend\n\nfunction g()\n  two()\nend\n",
        "-- ... existing code ...\n\nfunction g()\n  -- ... existing code ...\n  three()\nend\n",
        "local a = 1\n\nfunction f()\n  one()\nend\n\nfunction g()\n  two()\n  three()\nend\n",
    ),
    (
        "a.kt",
        "class A {\n    val x = 1\n\n    fun f() {\n        one()\n    }\n}\n",
        "class A {\n    // ... existing code ...\n\n    fun g() {\n        two()\n    }\n}\n",
        "class A {\n    val x = 1\n\n    fun f() {\n        one()\n    }\n\n    fun g() {\n        two()\n    }\n}\n",
    ),
    (
        "a.yaml",
        "name: a\non:\n  push: 1\n  pull: 2\njobs:\n  build: x\n",
        "# ... existing ...\non:\n  # ... existing ...\n  tag: 3\njobs:\n  build: y\n",
        "name: a\non:\n  push: 1\n  pull: 2\n  tag: 3\njobs:\n  build: y\n",
    ),
    // Without a grammar, by lines.
    (
        "a.txt",
        "one\ntwo\nthree\nfour\nfive\n",
        "one\n# ... rest unchanged ...\nfour\nfour and a half\nfive\n",
        "one\ntwo\nthree\nfour\nfour and a half\nfive\n",
    ),
    // A remark says that code goes.
    (
        "b.go",
        "package p\n\nfunc f() {\n\ta()\n\tb()\n\tc()\n}\n",
        "package p\n\nfunc f() {\n\ta()\n\t// ... removed code ...\n\tc()\n}\n",
        "package p\n\nfunc f() {\n\ta()\n\tc()\n}\n",
    ),
    // A fragment from inside a class, as it stands there.
    (
        "b.js",
        "class A {\n  f() {\n    one();\n  }\n\n  g() {\n    two();\n  }\n}\n",
        "  // now three\n  g() {\n    three();\n  }\n",
        "class A {\n  f() {\n    one();\n  }\n\n  // now three\n  g() {\n    three();\n  }\n}\n",
    ),
];

#[test]
fn rewrites_in_many_languages() {
    let mut failed = Vec::new();
    for (path, text, content, expected) in CASES {
        let outcome = apply(path, text, content);
        if outcome.failed.is_empty() && outcome.content.as_deref() == Some(expected) {
            assert_eq!(outcome.notes[0].strategy, Some(Strategy::Lazy));
            continue;
        }
        failed.push(format!("{path}: {:?}\n{}", outcome.failed, outcome.content.unwrap_or_default()));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n----\n"));
}

#[test]
fn the_files_own_bytes_stay() {
    // Line endings, blanks at ends of lines and the missing final line break are kept.
    for (path, text, content, expected) in CASES {
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(merged(path, &crlf, content), expected.replace('\n', "\r\n"), "{path}");
    }
    let text = "fn a() {\n    1;   \n}\n\nfn b() {\n    2;\t\n    3;\n}";
    let content = "// ... existing code ...\n\nfn b() {\n    2;\n    4;\n}\n";
    assert_eq!(merged("a.rs", text, content), "fn a() {\n    1;   \n}\n\nfn b() {\n    2;\t\n    4;\n}");
    let text = "class A {\n\tf() {\n\t\tone();\n\t}\n}\n";
    let content = "class A {\n  // ... existing code ...\n\n  g() {\n    two();\n  }\n}\n";
    assert_eq!(
        merged("a.js", text, content),
        "class A {\n\tf() {\n\t\tone();\n\t}\n\n\tg() {\n\t\ttwo();\n\t}\n}\n"
    );
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let text = "fn f() {\n    log();\n    a();\n    log();\n    b();\n}\n";
    let (kind, words) = refused(
        "a.rs",
        text,
        "fn f() {\n    // ... existing code ...\n    log();\n    c();\n    // ... existing code ...\n}\n",
    );
    assert_eq!(kind, "malformed");
    assert!(words.contains("more than one way"), "{words}");
    // New statements between two remarks.
    let (_, words) = refused(
        "a.rs",
        text,
        "fn f() {\n    // ... existing code ...\n    new_one();\n    // ... existing code ...\n}\n",
    );
    assert!(words.contains("could go anywhere"), "{words}");
    // A method that is neither shown nor stood for.
    let text =
        "class A {\n  f() {\n    one();\n  }\n\n  g() {\n    two();\n  }\n\n  h() {\n    three();\n  }\n}\n";
    let (_, words) =
        refused("a.js", text, "class A {\n  // ... existing code ...\n\n  g() {\n    four();\n  }\n}\n");
    assert!(words.contains("`h() {`"), "{words}");
    // Lines without a grammar that are nowhere in the file.
    refused("a.txt", "one\ntwo\n", "// ... existing code ...\nthree\n// ... existing code ...\n");
    // Lines that would go, and others that are unlike them would come.
    refused("a.txt", "a b c\nd e f\ng h i\nj k l\nm n o\n", "a b c\nxyz\nm n o\n");
}

#[test]
fn most_of_a_file_doesnt_vanish() {
    let body: String = (0..40).map(|n| format!("    call_{n}();\n")).collect();
    let text = format!("fn f() {{\n{body}}}\n\nfn g() {{}}\n");
    let (kind, _) = refused("a.rs", &text, "fn f() {\n    call_0();\n}\n\n// ... existing code ...\n");
    assert_eq!(kind, "span_too_large");
}

#[test]
fn pieces_within_one_line_are_counted_without_overflow() {
    let outcome = apply("a.json", "{fn a() {\n}\nfn a() {\n", "fn a() {\n// ... existing code ...\n");
    assert_eq!(outcome.failed.len(), 1);
}

#[test]
fn nothing_to_change_is_no_change() {
    let text = "fn a() {\n    1;\n}\n\nfn b() {}\n";
    let outcome = apply("a.rs", text, "// ... existing code ...\n\nfn b() {}\n");
    assert_eq!(outcome.failed, []);
    assert_eq!(outcome.content.as_deref(), Some(text));
    assert_eq!(outcome.notes[0].count, 0);
}

proptest! {
    /// Whatever stands beside whatever: no panic, and no remark is ever written into a file.
    #[test]
    fn any_text_with_any_rewrite(
        text in prop::collection::vec(prop::sample::select(PIECES), 0..14),
        content in prop::collection::vec(prop::sample::select(PIECES), 0..14),
        path in prop::sample::select(vec!["a.rs", "a.py", "a.js", "a.go", "a.json", "a.yaml", "a.txt", "a.rb", "a.html"]),
    ) {
        let text = text.concat();
        let outcome = apply(path, &text, &content.concat());
        if let Some(new) = outcome.content.filter(|_| outcome.failed.is_empty() && !text.is_empty()) {
            prop_assert!(!new.contains("__jm_"), "{new}");
        }
    }

    /// Replacing one function of many by its own text with a line more leaves all others as they
    /// are, byte for byte.
    #[test]
    fn the_others_stay(
        bodies in prop::collection::vec(prop::collection::vec("[a-z]{1,6}", 1..4), 2..8),
        chosen in 0_usize..8,
        space in prop::sample::select(vec!["\n", "\n\n", "\n\n\n"]),
        end in prop::sample::select(vec!["", "\n"]),
    ) {
        let chosen = chosen % bodies.len();
        let function = |nth: usize, lines: &[String]| {
            let lines: String = lines.iter().map(|line| format!("  {line}_{nth}();  \n")).collect();
            format!("function f{nth}() {{\n{lines}}}")
        };
        let all: Vec<String> = bodies.iter().enumerate().map(|(nth, lines)| function(nth, lines)).collect();
        let text = all.join(space) + end;
        let mut new = bodies[chosen].clone();
        new.push("more".to_owned());
        let content = format!("// ... existing code ...\n\n{}\n\n// ... existing code ...\n", function(chosen, &new));
        let mut expected = all;
        expected[chosen] = function(chosen, &new);
        prop_assert!(merged("a.js", &text, &content) == expected.join(space) + end);
    }
}

const PIECES: &[&str] = &[
    "fn a() {\n",
    "fn b() {\n",
    "}\n",
    "    x();\n",
    "    y();\n",
    "// ... existing code ...\n",
    "# ... existing code ...\n",
    "def f():\n",
    "class A:\n",
    "class A {\n",
    "\n",
    "\r\n",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "\"a\": 1,\n",
    "a: 1\n",
    "  b: 2\n",
    "// removed code\n",
    "é",
    "\u{feff}",
    "...\n",
    "/* ... */",
    "x = 1\n",
    "(",
    "'",
    "\"",
    "end\n",
    "<p>\n",
    "</p>\n",
    "    # ... rest ...\n",
    "import a\n",
    "- a\n",
];

const PYTHON: &str = "import os\n\n\nclass A:\n    def f(self):\n        return 1\n\n    def g(self):\n        a = 1\n        return a\n\n    def h(self):\n        return 3\n\n\ndef main():\n    A().f()\n";
const TYPESCRIPT: &str = "export class Cart {\n  items: Item[] = [];\n\n  add(item: Item) {\n    this.items.push(item);\n  }\n\n  drop(id: string) {\n    this.items = without(this.items, id);\n  }\n\n  total() {\n    return this.items.length;\n  }\n}\n";
const RUST: &str = "pub struct P {\n    x: i32,\n}\n\nimpl P {\n    pub fn new() -> Self {\n        Self { x: 0 }\n    }\n\n    pub fn len(&self) -> i32 {\n        self.x\n    }\n\n    fn debug(&self) {\n        println!(\"{}\", self.x);\n    }\n}\n\nfn main() {}\n";
const JSON: &str = "{\n  \"name\": \"x\",\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"jest\",\n    \"lint\": \"eslint .\"\n  },\n  \"dependencies\": {\n    \"a\": \"1\",\n    \"b\": \"2\"\n  }\n}\n";

#[test]
fn members_that_a_class_leaves_out_stay() {
    let cases = [
        (
            "a.py",
            PYTHON,
            "class A:\n    def g(self):\n        return 5\n",
            PYTHON.replace("        a = 1\n        return a\n", "        return 5\n"),
        ),
        (
            "a.py",
            PYTHON,
            "# ... existing code ...\n\nclass A:\n    def h(self):\n        return 4\n\n# ... existing code ...\n",
            PYTHON.replace("return 3", "return 4"),
        ),
        (
            "a.ts",
            TYPESCRIPT,
            "export class Cart {\n  total() {\n    return sum(this.items);\n  }\n}\n",
            TYPESCRIPT.replace("this.items.length", "sum(this.items)"),
        ),
        (
            "a.ts",
            TYPESCRIPT,
            "export class Cart {\n  add(item: Item) {\n    this.items.push(item, 1);\n  }\n\n  clear() {\n    this.items = [];\n  }\n}\n",
            TYPESCRIPT.replace(
                "push(item);\n  }\n",
                "push(item, 1);\n  }\n\n  clear() {\n    this.items = [];\n  }\n",
            ),
        ),
        (
            "a.rs",
            RUST,
            "impl P {\n    pub fn len(&self) -> i32 {\n        self.x + 1\n    }\n}\n",
            RUST.replace("        self.x\n", "        self.x + 1\n"),
        ),
    ];
    for (path, text, content, expected) in cases {
        assert_eq!(merged(path, text, content), expected, "{content}");
    }
    // All that is shown is as it was: that the rest is left out is the change, and too much of one.
    assert_eq!(refused("a.py", PYTHON, "class A:\n    def f(self):\n        return 1\n").0, "span_too_large");
}

#[test]
fn json_may_leave_out_levels() {
    let test = JSON.replace("jest", "vitest");
    let cases = [
        "{\n  \"scripts\": {\n    \"test\": \"vitest\"\n  }\n}\n",
        "{\n  ...\n  \"scripts\": {\n    ...\n    \"test\": \"vitest\"\n  }\n}\n",
        "{\n  ...,\n  \"scripts\": {\n    \"test\": \"vitest\",\n    ...\n  },\n  ...\n}\n",
        "{\n  \"name\": \"x\",\n  \"scripts\": {\n    // ...\n    \"test\": \"vitest\"\n  },\n  \"dependencies\": { ... }\n}\n",
        "\"scripts\": {\n  \"test\": \"vitest\"\n}\n",
    ];
    for content in cases {
        assert_eq!(merged("package.json", JSON, content), test, "{content}");
    }
    let added = "{\n  \"dependencies\": {\n    \"b\": \"3\"\n  },\n  \"license\": \"MIT\"\n}\n";
    let expected = JSON.replace("\"b\": \"2\"\n  }\n", "\"b\": \"3\"\n  },\n  \"license\": \"MIT\"\n");
    assert_eq!(merged("package.json", JSON, added), expected);
}

#[test]
fn a_comment_says_which_definition_goes() {
    let without_debug =
        RUST.replace("\n    fn debug(&self) {\n        println!(\"{}\", self.x);\n    }\n", "");
    let without_g = PYTHON.replace("    def g(self):\n        a = 1\n        return a\n\n", "");
    let cases = [
        (
            "a.rs",
            RUST,
            "// ... existing code ...\n\nimpl P {\n    // ... existing code ...\n\n    // removed: fn debug\n}\n\n// ... existing code ...\n",
            without_debug.clone(),
        ),
        ("a.rs", RUST, "impl P {\n    // remove debug\n}\n", without_debug),
        (
            "a.py",
            PYTHON,
            "# ... existing code ...\nclass A:\n    # ... existing code ...\n    # (deleted: g)\n",
            without_g.clone(),
        ),
        (
            "a.py",
            PYTHON,
            "# ... existing code ...\nclass A:\n    # ... existing code ...\n\n    # Removed the g method\n\n    def h(self):\n        return 4\n\n# ... existing code ...\n",
            without_g.replace("return 3", "return 4"),
        ),
        (
            "a.ts",
            TYPESCRIPT,
            "// ... existing code ...\nexport class Cart {\n  // ... existing code ...\n  // drop() method removed\n\n  total() {\n    return 0;\n  }\n}\n",
            TYPESCRIPT
                .replace("  drop(id: string) {\n    this.items = without(this.items, id);\n  }\n\n", "")
                .replace("this.items.length", "0"),
        ),
    ];
    for (path, text, content, expected) in cases {
        assert_eq!(merged(path, text, content), expected, "{content}");
    }
    // A comment about code that is shown, and one that names nothing.
    let kept = "impl P {\n    // ... existing code ...\n\n    // removed the lock from len\n    pub fn len(&self) -> i32 {\n        2\n    }\n\n    // ... existing code ...\n}\n";
    let expected = RUST.replace(
        "    pub fn len(&self) -> i32 {\n        self.x\n",
        "    // removed the lock from len\n    pub fn len(&self) -> i32 {\n        2\n",
    );
    assert_eq!(merged("a.rs", RUST, kept), expected);
}

#[test]
fn new_definitions_beside_the_only_remark_go_to_that_end() {
    let file = "import a from 'a';\n\nexport function f() {\n  return 1;\n}\n";
    let new = "export function g() {\n  return 1;\n}";
    assert_eq!(
        merged("a.ts", file, &format!("// ... existing code ...\n\n{new}\n")),
        format!("{file}\n{new}\n")
    );
    assert_eq!(
        merged("a.ts", file, "import b from 'b';\n// ... existing code ..."),
        format!("import b from 'b';\n{file}")
    );
    assert_eq!(merged("a.py", "x = 1", "# ... existing code ...\ny = 2"), "x = 1\ny = 2");
    // Code that defines nothing has its place, and nothing comes after what ends a program.
    refused("a.ts", file, "// ... existing code ...\nstart(2);\n");
    let main = "def f():\n    pass\n\nif __name__ == '__main__':\n    f()\n";
    refused("a.py", main, "# ... existing code ...\n\ndef g():\n    pass\n");
    // What has to come first stays first.
    refused("a.sh", "#!/bin/sh\nf() { :; }\n", "g() { :; }\n# ... existing code ...\n");
}

#[test]
fn a_statement_before_a_remark_takes_nothing_from_what_it_stands_for() {
    let file = "function t() {\n  console.log(\"before\");\n  console.log(\"after\");\n}\n";
    let rewrite = "function t() {\n  console.log(\"before\");\n  console.log(\"new\");\n  // ... existing code ...\n}\n";
    refused("a.js", file, rewrite);
    // A version of the statement, with a remark that stands for nothing.
    let rewrite = rewrite.replace("console.log(\"new\")", "console.log(\"after\", 1)");
    let expected = file.replace("\"after\"", "\"after\", 1");
    assert_eq!(merged("a.js", file, &rewrite), expected);
}

#[test]
fn a_statement_as_much_like_one_that_stays_replaces_none() {
    let call = |name: &str, n: u32| {
        format!("        System.out.println(\"{name} of {n} and 4: \" + calc.{name}({n}, 4));\n")
    };
    let file = |calls: &str| {
        format!(
            "public class Main {{\n    public static void main(String[] args) {{\n        Calculator calc = new Calculator();\n{calls}    }}\n}}\n"
        )
    };
    let text = file(&(call("add", 3) + &call("subtract", 10)));
    let remark = "        // ... (existing calls)\n";
    for calls in [remark.to_owned() + &call("multiply", 2), call("multiply", 2) + remark] {
        refused("Main.java", &text, &file(&calls));
    }
}

#[test]
fn tests_go_by_their_titles() {
    let case = |title: &str, body: &str| {
        format!(
            "  it('{title}', async () => {{\n    expect(\n      screen.getByText({body})\n    ).toBeInTheDocument();\n  }});\n"
        )
    };
    let file = |cases: &str| format!("describe('Foo', () => {{\n{cases}}});\n");
    let (old, new) = (case("tests something", "props.add"), case("tests another thing", "props.bar"));
    let text = file(&old);
    let remark = "  // ... (existing tests)\n";
    for rewrite in [format!("{remark}\n{new}"), format!("{remark}\n{new}\n  // ... (any additional tests)\n")]
    {
        assert_eq!(
            merged("foo.test.js", &text, &file(&rewrite)),
            file(&format!("{old}\n{new}")),
            "{rewrite}"
        );
    }
    let changed = case("tests something", "props.other");
    assert_eq!(merged("foo.test.js", &text, &file(&format!("{changed}{remark}"))), file(&changed));
}

#[test]
fn a_decorator_comes_to_what_has_none() {
    let file =
        "def area(n):\n    if n < 1:\n        return 0\n    return n * n\n\n\ndef other():\n    pass\n";
    let content =
        "@lru_cache(maxsize=8)\ndef area(n):\n    if n < 1:\n        return 0\n    # ... existing code ...\n";
    let decorated = format!("@lru_cache(maxsize=8)\n{file}");
    assert_eq!(merged("area.py", file, content), decorated);
    let without = "def area(n):\n    if n < 2:\n        return 0\n    # ... existing code ...\n";
    assert_eq!(merged("area.py", &decorated, without), decorated.replace("n < 1", "n < 2"), "it stays");
}

#[test]
fn a_remark_at_the_end_stands_for_all_below_however_deep_it_is() {
    let file = "use a;\n\nfn one() {\n    if x {\n        first();\n        second();\n    }\n}\n\nfn two() {\n    third();\n}\n";
    let content = "fn one() {\n    if x {\n        first(1);\n        // ... existing code ...\n";
    assert_eq!(merged("a.rs", file, content), file.replace("first()", "first(1)"));
    let content = "        // ... existing code ...\n        first();\n        second(2);\n    }\n}\n\nfn two() {\n    // ...\n";
    assert_eq!(merged("a.rs", file, content), file.replace("second()", "second(2)"));
}

#[test]
fn a_line_above_the_first_that_is_shown_stays() {
    let file = "import { a } from 'a';\n\nexport const limit = 1;\nexport const other = 2;\n";
    let content = "export const limit = 10;\n// ... existing code ...\n";
    assert_eq!(merged("a.ts", file, content), file.replace("limit = 1;", "limit = 10;"));
}

#[test]
fn lines_of_a_definition_do_not_go_unsaid_with_nothing_in_their_place() {
    let lines = (0..8).map(|nth| format!("    step_{nth}();\n")).collect::<String>();
    let file = format!("fn zero() {{}}\n\nfn one() {{\n    begin();\n{lines}    finish();\n}}\n");
    let content = "// ... existing code ...\n\nfn one() {\n    begin(1);\n    finish();\n}\n";
    refused("a.rs", &file, content);
}
