//! Outlines of texts in each language.

use journeyman_syntax::analysis::{analyse, analyse_tree};
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::{check_query, outline};
use journeyman_syntax::parse::parse;

/// Renders a text's symbols as lines: kind, path and lines.
fn symbols(language: Language, text: &str) -> Vec<String> {
    analyse(language, text)
        .unwrap()
        .symbols
        .iter()
        .map(|symbol| {
            format!(
                "{} {} {}-{}",
                symbol.kind.name(),
                symbol.path(),
                symbol.lines.start,
                symbol.lines.end - 1
            )
        })
        .collect()
}

#[test]
fn every_query_fits_its_grammar() {
    for language in Language::ALL {
        assert_eq!(check_query(*language), Ok(()), "{language:?}");
        let plain = [Language::Sql, Language::Markdown, Language::Rst, Language::AsciiDoc].contains(language);
        assert!(language.is_built_in() != plain, "{language:?}: the tests need all languages");
        assert_eq!(Language::from_name(language.name()), Some(*language));
    }
}

/// A language, a text, and its symbols as [`symbols`] renders them.
const TEXTS: &[(Language, &str, &[&str])] = &[
    (
        Language::Rust,
        "//! Top.\n\n/// Doc.\n#[test]\npub fn a<T>(x: T) {\n    fn inner() {}\n}\n\nmod m {\n    struct S<'a> {\n        f: u8,\n    }\n    impl<'a> Clone for S<'a> {\n        // why\n        fn clone(&self) -> Self { S }\n    }\n}\nconst C: u8 = 1;\nmacro_rules! mm { () => {} }\n",
        &[
            "function a 3-7",
            "function a.inner 6-6",
            "module m 9-17",
            "struct m.S 10-12",
            "field m.S.f 11-11",
            "impl m.S 13-16",
            "method m.S.clone 14-15",
            "constant C 18-18",
            "macro mm 19-19",
        ],
    ),
    (
        Language::Python,
        "import os\n\nX = 1\n\n# about f\n@dec\ndef f(a):\n    \"\"\"Doc.\"\"\"\n    return a\n\nclass A(B):\n    y = 2\n\n    def g(self):\n        pass\n",
        &["variable X 3-3", "function f 5-9", "class A 11-15", "field A.y 12-12", "method A.g 14-15"],
    ),
    (
        Language::JavaScript,
        "/** Doc. */\nexport default function f() {}\nexport const g = async () => {\n};\nclass A {\n  #x = 1;\n  constructor() {}\n  static b() {}\n}\nmodule.exports.h = function () {};\nlet v = 2;\n",
        &[
            "function f 1-2",
            "function g 3-4",
            "class A 5-9",
            "field A.#x 6-6",
            "method A.constructor 7-7",
            "method A.b 8-8",
            "function h 10-10",
            "variable v 11-11",
        ],
    ),
    (
        Language::JavaScript,
        "module.exports = function (Posts) {\n  Posts.add = async function () {};\n  const own = () => 1;\n};\nFoo.prototype.bar = function* () {};\nfunction Foo() {\n  this.baz = () => 1;\n}\nconst o = {\n  m() {},\n  'a b': function () {},\n  get g() { return 1; },\n};\nclass A {\n  static z = () => {};\n  constructor() { this.w = function () {}; }\n}\ndefine('x', () => {\n  Info.init = function () {};\n});\n",
        &[
            "function exports 1-4",
            "function Posts.add 2-2",
            "method Foo.bar 5-5",
            "function Foo 6-8",
            "method Foo.baz 7-7",
            "variable o 9-13",
            "method o.m 10-10",
            "method o.a b 11-11",
            "method o.g 12-12",
            "class A 14-17",
            "method A.z 15-15",
            "method A.constructor 16-16",
            "method A.w 16-16",
            "function Info.init 19-19",
        ],
    ),
    (
        Language::TypeScript,
        "export interface I {\n  a: string;\n  b(): void;\n}\n@Dec()\nexport class C<T> {\n  private x = 1;\n  m(): void {}\n}\nnamespace N {\n  export type T = string;\n  export enum E { A, B = 2 }\n}\ndeclare function d(): void;\n",
        &[
            "interface I 1-4",
            "field I.a 2-2",
            "method I.b 3-3",
            "class C 5-9",
            "field C.x 7-7",
            "method C.m 8-8",
            "module N 10-13",
            "type N.T 11-11",
            "enum N.E 12-12",
            "variant N.E.A 12-12",
            "variant N.E.B 12-12",
            "function d 14-14",
        ],
    ),
    (
        Language::Tsx,
        "export function App(props: P) {\n  return <div>{props.x}</div>;\n}\nconst B = () => <p/>;\n",
        &["function App 1-3", "function B 4-4"],
    ),
    (
        Language::Go,
        "package p\n\n// F does.\nfunc F() {}\n\ntype S struct {\n\ta int\n}\n\nfunc (s *S) M() {}\n\ntype (\n\tI interface {\n\t\tM()\n\t}\n\tA int\n)\n\nconst K = 1\n\nvar V = 2\n",
        &[
            "function F 3-4",
            "struct S 6-8",
            "field S.a 7-7",
            "method S.M 10-10",
            "interface I 13-15",
            "method I.M 14-14",
            "type A 16-16",
            "constant K 19-19",
            "variable V 21-21",
        ],
    ),
    (
        Language::Java,
        "package p;\n\n/** Doc. */\n@Ann\npublic class A {\n  int x;\n  A() {}\n  @Override\n  void m() {}\n  enum E { P, Q }\n  interface I { void n(); }\n}\nrecord R(int a) {}\n",
        &[
            "class A 3-12",
            "field A.x 6-6",
            "constructor A.A 7-7",
            "method A.m 8-9",
            "enum A.E 10-10",
            "variant A.E.P 10-10",
            "variant A.E.Q 10-10",
            "interface A.I 11-11",
            "method A.I.n 11-11",
            "class R 13-13",
        ],
    ),
    (
        Language::Kotlin,
        "package p\n\n/** Doc. */\nfun f(a: Int): Int = a\n\nclass A(val x: Int) {\n    val y = 1\n    fun m() {}\n}\nobject O {}\nenum class E { P, Q }\ninterface I { fun n() }\ntypealias T = Int\nval top = 1\n",
        &[
            "function f 3-4",
            "class A 6-9",
            "field A.x 6-6",
            "field A.y 7-7",
            "method A.m 8-8",
            "class O 10-10",
            "enum E 11-11",
            "variant E.P 11-11",
            "variant E.Q 11-11",
            "interface I 12-12",
            "method I.n 12-12",
            "type T 13-13",
            "variable top 14-14",
        ],
    ),
    (
        Language::C,
        "#include <x.h>\n#define M 1\n\n/* about */\nstatic int f(int a) {\n  return a;\n}\nstruct S {\n  int a;\n};\nenum E { P, Q };\ntypedef unsigned u;\nint g(void);\nint *h(void) { return 0; }\nint v = 1;\n",
        &[
            "macro M 2-2",
            "function f 4-7",
            "struct S 8-10",
            "field S.a 9-9",
            "enum E 11-11",
            "variant E.P 11-11",
            "variant E.Q 11-11",
            "type u 12-12",
            "function g 13-13",
            "function h 14-14",
            "variable v 15-15",
        ],
    ),
    (
        Language::Cpp,
        "namespace n {\ntemplate <typename T>\nclass A {\n public:\n  int f();\n  void g() {}\n  int x;\n};\n}\nint n::A::f() { return 1; }\nusing T = int;\n",
        &[
            "module n 1-9",
            "class n.A 2-8",
            "method n.A.f 5-5",
            "method n.A.g 6-6",
            "field n.A.x 7-7",
            "method n.A.f 10-10",
            "type T 11-11",
        ],
    ),
    (
        Language::CSharp,
        "namespace N {\n  /// <summary>x</summary>\n  [Attr]\n  public class A {\n    int f;\n    public int P { get; set; }\n    public A() {}\n    void M() {}\n  }\n  enum E { X }\n}\n",
        &[
            "module N 1-11",
            "class N.A 2-9",
            "field N.A.f 5-5",
            "property N.A.P 6-6",
            "constructor N.A.A 7-7",
            "method N.A.M 8-8",
            "enum N.E 10-10",
            "variant N.E.X 10-10",
        ],
    ),
    (
        Language::Ruby,
        "module M\n  K = 1\n  # Doc.\n  class A < B\n    def m(a)\n      a\n    end\n    def self.s; end\n  end\nend\n",
        &["module M 1-10", "constant M.K 2-2", "class M.A 3-9", "method M.A.m 5-7", "method M.A.s 8-8"],
    ),
    (
        Language::Php,
        "<?php\nnamespace N;\n/** Doc. */\nclass A {\n  const K = 1;\n  private $x = 1;\n  public function m() {}\n}\nfunction f() {}\ninterface I {}\ntrait T {}\n",
        &[
            "module N 2-2",
            "class A 3-8",
            "constant A.K 5-5",
            "field A.x 6-6",
            "method A.m 7-7",
            "function f 9-9",
            "interface I 10-10",
            "trait T 11-11",
        ],
    ),
    (
        Language::Swift,
        "/// Doc.\nstruct S {\n    var x = 1\n    init() {}\n    func m() {}\n}\nclass C: B {}\nenum E { case a }\nprotocol P { func n() }\nextension S { func o() {} }\nfunc f() {}\n",
        &[
            "struct S 1-6",
            "field S.x 3-3",
            "constructor S.init 4-4",
            "method S.m 5-5",
            "class C 7-7",
            "enum E 8-8",
            "variant E.a 8-8",
            "interface P 9-9",
            "method P.n 9-9",
            "impl S 10-10",
            "method S.o 10-10",
            "function f 11-11",
        ],
    ),
    (
        Language::Scala,
        "package p\n\nclass A(x: Int) {\n  val y = 1\n  def m(): Int = {\n    1\n  }\n}\nobject O {\n  def n = 2\n}\ntrait T\n",
        &[
            "class A 3-8",
            "field A.y 4-4",
            "method A.m 5-7",
            "class O 9-11",
            "method O.n 10-10",
            "trait T 12-12",
        ],
    ),
    (
        Language::Lua,
        "local x = 1\n-- Doc.\nlocal function f(a)\n  return a\nend\nfunction M.g() end\nfunction M:h() end\n",
        &["variable x 1-1", "function f 2-5", "function M.g 6-6", "method M.h 7-7"],
    ),
    (
        Language::Bash,
        "#!/bin/sh\nX=1\n# Doc.\nf() {\n  echo a\n}\nfunction g { :; }\n",
        &["variable X 2-2", "function f 3-6", "function g 7-7"],
    ),
    (Language::Html, "<div id=\"main\">\n  <p>a</p>\n</div>\n", &["element main 1-3"]),
    (
        Language::Css,
        ".a, b {\n  color: red;\n}\n@media print {\n  .c { top: 0 }\n}\n",
        &["rule .a, b 1-3", "module print 4-6", "rule print..c 5-5"],
    ),
    (Language::Json, "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", &["key a 2-4", "key a.b 3-3"]),
    (Language::Yaml, "a:\n  b: 1\nc: [1]\n", &["key a 1-2", "key a.b 2-2", "key c 3-3"]),
    (
        Language::Sql,
        "-- People.\nCREATE TABLE IF NOT EXISTS shop.person (\n  id INT PRIMARY KEY,\n  \"full name\" TEXT,\n  CONSTRAINT x UNIQUE (id)\n);\ncreate or replace function f(a int) returns int as $$\nbegin\n  select 1;\nend;\n$$ language plpgsql;\nCREATE VIEW v AS SELECT id FROM person;\n",
        &[
            "table person 1-6",
            "field person.id 3-3",
            "field person.full name 4-4",
            "function f 7-11",
            "table v 12-12",
        ],
    ),
    (
        Language::Markdown,
        "---\n# no: 1\n---\n# A\n\ntext\n\n```sh\n# no\n```\n\nB\n---\n\n### C #\n\n    # no\n\n# D\n",
        &["heading A 4-17", "heading A.B 12-17", "heading A.B.C 15-17", "heading D 19-19"],
    ),
    (
        Language::Rst,
        "====\nTop\n====\n\nText::\n\n    No\n    --\n\nA\n-\n\nPart\n----\n\nInner\n~~~~~\n\nLast\n----\n",
        &[
            "heading Top 1-20",
            "heading Top.A 10-11",
            "heading Top.Part 13-17",
            "heading Top.Part.Inner 16-17",
            "heading Top.Last 19-20",
        ],
    ),
    (
        Language::AsciiDoc,
        "= Top\n\n== A\n\n----\n== no\n----\n\n=== B\n\n== C\n",
        &["heading Top 1-11", "heading Top.A 3-9", "heading Top.A.B 9-9", "heading Top.C 11-11"],
    ),
    (Language::Toml, "x = 1\n[a]\nb = 1\n", &["key x 1-1", "table a 2-3", "key a.b 3-3"]),
];

#[test]
fn texts_and_their_symbols() {
    for (language, text, expected) in TEXTS {
        assert_eq!(symbols(*language, text), *expected, "{language:?}");
    }
    for language in Language::ALL {
        assert!(TEXTS.iter().any(|(tested, ..)| tested == language), "{language:?} has no text");
    }
}

#[test]
fn valid_parts_of_broken_texts_are_found() {
    let text = "fn a() {\n    1\n}\n\nfn broken( {\n\nfn c() {}\n";
    assert!(symbols(Language::Rust, text).contains(&"function a 1-3".to_owned()));
    let text = "class A {\n  m() {\n    return (;\n  }\n\n  n() {}\n}\n";
    assert!(symbols(Language::JavaScript, text).iter().any(|symbol| symbol.starts_with("method A.n")));
}

#[test]
fn symbols_end_before_line_breaks() {
    let text = "/// Doc.\r\nfn a() {\r\n}\r\n\r\nfn b() {}";
    let tree = parse(Language::Rust, text).unwrap();
    let symbols = outline(&tree, text);
    assert_eq!(&text[symbols[0].full.clone()], "/// Doc.\r\nfn a() {\r\n}");
    assert_eq!(&text[symbols[0].definition.clone()], "fn a() {\r\n}");
    assert_eq!(&text[symbols[1].full.clone()], "fn b() {}");
}

#[test]
fn languages_by_name_and_content() {
    let cases: &[(&str, &str, Option<Language>)] = &[
        ("a/b.RS", "", Some(Language::Rust)),
        ("Rakefile", "", Some(Language::Ruby)),
        ("bin/run", "#!/usr/bin/env -S python3.12 -u\n", Some(Language::Python)),
        ("bin/run", "#!/bin/bash\n", Some(Language::Bash)),
        ("bin/run", "#!/usr/bin/perl\n", None),
        ("x.h", "int a;\n", Some(Language::C)),
        ("x.h", "#pragma once\nnamespace a {\n", Some(Language::Cpp)),
        ("x.txt", "#!/bin/sh\n", None),
        ("index", "<!DOCTYPE html>\n", Some(Language::Html)),
        ("", "", None),
        ("a.vue", "<template>", None),
    ];
    for (path, text, expected) in cases {
        assert_eq!(Language::detect(path, text), *expected, "{path} {text:?}");
    }
}

#[test]
fn c_has_no_keywords_as_names_and_keeps_what_macros_surround() {
    if !Language::C.is_built_in() {
        return;
    }
    let text = "typedef void *(*alloc_fn)(size_t size);\ntypedef int plain_fn(void);\n\
                typedef struct node **(*walk_fn)(void), *other;\ntypedef void (*done_fn)(int);\n\
                EXPORT RETURN_ALIAS\nvoid NO_THROW *\nATTR(malloc) je_malloc(size_t size) {\n}\n\
                int broken(void) {\n#ifdef A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }\n}\n\
                int last(\n    int a, /* the first */\n    int b);\n";
    let tree = parse(Language::C, text).unwrap();
    let symbols = outline(&tree, text);
    let names: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    for name in ["alloc_fn", "plain_fn", "walk_fn", "done_fn", "je_malloc", "last"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"if") && !names.contains(&"void"), "{names:?}");
    let last = symbols.iter().find(|symbol| symbol.name == "last").unwrap();
    assert_eq!(last.signature, "int last( int a, int b);");
    let used = analyse_tree(&tree, text).references;
    assert!(used.iter().any(|used| used.name(text) == "NO_THROW" && used.line == 6));
}

#[test]
fn signatures_are_whole_and_without_comments() {
    if Language::Python.is_built_in() {
        let text = "def load(  # type: ignore[no-untyped-def]\n    a: int,  # the first\n    b,\n):  # type: ignore\n    pass\n";
        let symbols = outline(&parse(Language::Python, text).unwrap(), text);
        assert_eq!(symbols[0].signature, "def load( a: int, b, )");
    }
    if Language::TypeScript.is_built_in() {
        let text = "export declare function open(\n  path: string,\n): File;\n";
        let symbols = outline(&parse(Language::TypeScript, text).unwrap(), text);
        assert_eq!(symbols[0].signature, "export declare function open( path: string, ): File;");
    }
}

#[test]
fn statements_of_sql_end_where_they_end() {
    let table = "CREATE TABLE t (price NUMERIC(10, 2) NOT NULL, kind ENUM('a', 'b'), id INT);";
    let body = "begin\n  case a when 1 then select 1; end case;\nend;";
    let functions = format!("create function f() {body}\ncreate procedure g() as $$\n{body}\n$$;\nselect 2;");
    for (text, expected) in [
        (
            table,
            &[&table[..table.len() - 1], "price NUMERIC(10, 2) NOT NULL", "kind ENUM('a', 'b')", "id INT"][..],
        ),
        (
            &functions,
            &[
                &format!("create function f() {}", body.trim_end_matches(';')),
                &format!("create procedure g() as $$\n{body}\n$$"),
            ],
        ),
    ] {
        let symbols = analyse(Language::Sql, text).unwrap().symbols;
        let found: Vec<&str> = symbols.iter().map(|symbol| &text[symbol.definition.clone()]).collect();
        assert_eq!(found, expected);
    }
}
