//! Analyses of single files: imports, comments, visibility, references and sections.

use journeyman_syntax::analysis::{analyse, analyse_tree};
use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::{Visibility, outline};
use journeyman_syntax::parse::parse;
use journeyman_syntax::references::UseKind;

/// Renders imports as lines: steps up and `./` for relative ones, the target, the names.
fn imports(language: Language, text: &str) -> Vec<String> {
    to_lines(&analyse(language, text).unwrap().imports)
}

fn to_lines(imports: &[Import]) -> Vec<String> {
    imports
        .iter()
        .map(|import| {
            let up = "../".repeat(import.up as usize);
            let here = if import.relative { "./" } else { "" };
            let names = if import.names.is_empty() {
                String::new()
            } else {
                format!(" {{{}}}", import.names.join(" "))
            };
            format!("{} {up}{here}{}{names}", import.line, import.target)
        })
        .collect()
}

/// Renders names with their visibility and documentation.
fn said(language: Language, text: &str) -> Vec<String> {
    analyse(language, text)
        .unwrap()
        .symbols
        .iter()
        .map(|symbol| {
            let sign = match symbol.visibility {
                Visibility::Public => '+',
                Visibility::Restricted => '~',
                Visibility::Private => '-',
                Visibility::Unknown => '?',
            };
            let doc = if symbol.doc.is_empty() { String::new() } else { format!(": {}", symbol.doc) };
            format!("{sign}{}{doc}", symbol.name)
        })
        .collect()
}

/// Renders references: line, name, and enclosing symbol.
fn uses(language: Language, text: &str) -> Vec<String> {
    let facts = analyse(language, text).unwrap();
    facts
        .references
        .iter()
        .map(|reference| {
            let inside =
                reference.inside.map(|at| facts.symbols[at as usize].name.as_str()).unwrap_or_default();
            format!("{} {} {inside}", reference.line, reference.name(text)).trim_end().to_owned()
        })
        .collect()
}

const IMPORTS: &[(Language, &str, &[&str])] = &[
    (
        Language::Rust,
        "use a::b::{self, C, d::{E, F as G}, h::*};\nuse crate::x::Y;\npub use super::super::z;\nuse self::w::{V};\nmod m;\nextern crate serde;\nmod inner {\n    use super::Q;\n    use super::super::R;\n    use self::s::T;\n    mod deep;\n}\n#[path = \"o/p.rs\"]\nmod p;\nuse tokio;\nconst A: &str = include_str!(\"a.txt\");\nuse {std::fs, std::io as i};\n",
        &[
            "1 a::b::d {E F}",
            "1 a::b::h {*}",
            "1 a::b {self C}",
            "2 crate::x {Y}",
            "3 ../.././ {z}",
            "4 ./w {V}",
            "5 ./m",
            "6 serde",
            "8 ./ {Q}",
            "9 .././ {R}",
            "10 ./inner::s {T}",
            "11 ./inner::deep",
            "14 ././o/p.rs",
            "15 tokio",
            "16 ././a.txt",
            "17 std {fs}",
            "17 std {io}",
        ],
    ),
    (
        Language::Python,
        "import os, a.b as c\nfrom . import x, y as z\nfrom ..p.q import (R,\n    S)\nfrom t import *\ndef f():\n    import late\n",
        &["1 os", "1 a.b", "2 ./ {x y}", "3 .././p.q {R S}", "5 t {*}", "7 late"],
    ),
    (
        Language::JavaScript,
        "import D, { a, b as c } from './m.js';\nimport * as ns from \"pkg/sub\";\nimport 'side';\nexport { q } from '../q';\nexport * from './all';\nconst r = require('r');\nimport('./lazy').then();\nrequire(name);\nconst s = require.resolve('s');\n",
        &[
            "1 ././m.js {default a b}",
            "2 pkg/sub {*}",
            "3 side",
            "4 ./../q {q}",
            "5 ././all {*}",
            "6 r",
            "7 ././lazy",
            "9 s",
        ],
    ),
    (
        Language::TypeScript,
        "import type { T } from '@/types';\nimport fs = require('fs');\nexport * as u from './u';\n",
        &["1 @/types {T}", "2 fs", "3 ././u {*}"],
    ),
    (
        Language::Go,
        "package p\n\nimport (\n\t\"fmt\"\n\tx \"example.org/a/b\"\n\t_ \"c\"\n)\n",
        &["4 fmt", "5 example.org/a/b", "6 c"],
    ),
    (
        Language::Java,
        "package p;\nimport a.b.C;\nimport static a.b.D.e;\nimport a.c.*;\n",
        &["2 a.b {C}", "3 a.b.D {e}", "4 a.c {*}"],
    ),
    (
        Language::Kotlin,
        "package p\nimport a.b.C\nimport a.b.d as e\nimport a.c.*\n",
        &["2 a.b {C}", "3 a.b {d}", "4 a.c {*}"],
    ),
    (
        Language::Scala,
        "import a.b.{C, D => E, _}\nimport a.c._\nimport a.d.F, a.g.H\n",
        &["1 a.b {C D *}", "2 a.c {*}", "3 a.d {F}", "3 a.g {H}"],
    ),
    (
        Language::C,
        "#include <stdio.h>\n#include \"a/b.h\"\n#ifdef X\n#  include \"c.h\"\n#endif\n",
        &["1 stdio.h", "2 ./a/b.h", "4 ./c.h"],
    ),
    (Language::Cpp, "#include <vector>\n#include \"x.hpp\"\n", &["1 vector", "2 ./x.hpp"]),
    (
        Language::CSharp,
        "using System.Text;\nusing static A.B;\nusing X = C.D;\nglobal using E;\n",
        &["1 System.Text", "2 A.B", "3 C.D", "4 E"],
    ),
    (
        Language::Ruby,
        "require 'json'\nrequire_relative 'a/b'\nautoload :Foo, 'foo/bar'\nrequire \"x#{y}\"\nload('./z.rb')\n",
        &["1 json", "2 ./a/b", "3 foo/bar {Foo}", "5 ././z.rb"],
    ),
    (
        Language::Php,
        "<?php\nuse A\\B\\C;\nuse A\\{D, E as F};\nuse function G\\h;\nrequire_once __DIR__ . '/x.php';\ninclude 'y.php';\n",
        &["2 A\\B\\C", "3 A\\D", "3 A\\E", "4 G\\h", "5 ./x.php", "6 ./y.php"],
    ),
    (Language::Swift, "import Foundation\n@testable import struct A.B\n", &["1 Foundation", "2 A {B}"]),
    (
        Language::Lua,
        "local a = require \"x.y\"\nlocal b = require('z')\ndofile(\"w.lua\")\n",
        &["1 x.y", "2 z", "3 ./w.lua"],
    ),
    (
        Language::Bash,
        "source ./lib.sh\n. \"$(dirname \"$0\")/common.sh\"\nsource \"${DIR}/x.sh\"\nsource \"$HERE/y.sh\"\nsourced a\n",
        &["1 ././lib.sh", "2 ./common.sh", "3 ./x.sh", "4 ./y.sh"],
    ),
    (
        Language::Css,
        "@import \"a.css\";\n@import url(b.css);\n@import url('https://x/y.css');\n",
        &["1 ./a.css", "2 ./b.css"],
    ),
    (
        Language::Html,
        "<script src=\"js/a.js\"></script>\n<link href='b.css?v=1'>\n<a href=\"https://x.org\">x</a><a href=\"#top\">t</a>\n",
        &["1 ./js/a.js", "2 ./b.css"],
    ),
    (
        Language::Markdown,
        "See [a](docs/a.md#x) and [b](https://x.org/b).\n\n```\n[no](no.md)\n```\n[ref]: ../c.md\n",
        &["1 ./docs/a.md", "6 ./../c.md"],
    ),
    // Indented text is a part of the list that it stands in, and code elsewhere.
    (
        Language::Markdown,
        "- a\n    - [b](b.md)\n        1. [c](c.md)\n\n    [d](d.md)\n\n          [no](no.md)\n\n1. e\n\n    [f](f.md)\n\ng\n\n    [no](no.md)\n",
        &["2 ./b.md", "3 ./c.md", "5 ./d.md", "11 ./f.md"],
    ),
    (Language::Rst, ".. include:: a.rst\n\nSee `b <c.rst>`_.\n", &["1 ./a.rst", "3 ./c.rst"]),
    (Language::AsciiDoc, "include::a.adoc[]\nlink:b.html[b] <<x>>\n", &["1 ./a.adoc", "2 ./b.html"]),
];

#[test]
fn imports_of_files() {
    for (language, text, expected) in IMPORTS {
        assert_eq!(imports(*language, text), *expected, "{language:?}");
    }
}

const SAID: &[(Language, &str, &[&str])] = &[
    (
        Language::Rust,
        "/// First. Second.\npub fn a() {}\npub(crate) struct S { pub x: u8, y: u8 }\nfn b() {}\n/// It\n/// goes on, e.g. here.\n///\n/// More.\n#[derive(Debug)]\npub enum E { A }\nimpl Clone for S { fn clone(&self) {} }\npub trait T { fn t(); }\n/* Plain. */\nimpl S { pub fn c() {} fn d() {} }\n",
        &[
            "+a: First.",
            "~S",
            "+x",
            "-y",
            "-b",
            "+E: It goes on, e.g. here.",
            "+A",
            "?S",
            "+clone",
            "+T",
            "+t",
            "?S: Plain.",
            "+c",
            "-d",
        ],
    ),
    (
        Language::Python,
        "class A:\n    \"\"\"Does this.\n\n    And that.\n    \"\"\"\n    def _b(self): pass\n    def __init__(self): pass\n\n# Of c.\ndef c():\n    def d(): pass\n    r'''Not it.'''\n",
        &["+A: Does this.", "-_b", "+__init__", "+c: Of c.", "-d"],
    ),
    (
        Language::TypeScript,
        "/**\n * Makes {@link A}s.\n * @param x it\n */\nexport function f() {}\nfunction g() {}\nexport class C {\n  private a = 1;\n  #b = 2;\n  protected c() {}\n  d() {}\n}\nclass D {}\nclass E {}\nexport { D, };\nexport default E;\n",
        &["+f: Makes {@link A}s.", "-g", "+C", "-a", "-#b", "~c", "+d", "+D", "+E"],
    ),
    (Language::JavaScript, "function f() {}\nmodule.exports.g = function () {};\n", &["?f", "+g"]),
    (
        Language::Go,
        "package p\n\n// F does it.\nfunc F() {}\nfunc g() {}\ntype S struct {\n\tA int\n\tb int\n}\n",
        &["+F: F does it.", "~g", "+S", "+A", "~b"],
    ),
    (
        Language::Java,
        "/** A <b>thing</b>. More. */\npublic class A {\n  @X(\"private\") private int a;\n  protected void b() {}\n  void c() {}\n  public A() {}\n}\npublic interface I { void m(); }\n",
        &["+A: A thing.", "-a", "~b", "~c", "+A", "+I", "+m"],
    ),
    (Language::Kotlin, "internal class A {\n  private val x = 1\n  fun m() {}\n}\n", &["~A", "-x", "+m"]),
    (
        Language::Cpp,
        "class A {\n  int a;\n public:\n  int b();\n private:\n  struct N { int c; };\n  int d;\n};\nstruct S { int e; };\nstatic int f() { return 1; }\nint g();\n",
        &["+A", "-a", "+b", "-N", "+c", "-d", "+S", "+e", "-f", "+g"],
    ),
    (
        Language::C,
        "/* Adds two.\n * Fast. */\nstatic int add(int a) { return a; }\nint b(void);\n",
        &["-add: Adds two.", "+b"],
    ),
    (
        Language::CSharp,
        "/// <summary>\n/// Does it.\n/// </summary>\npublic class A {\n  int f;\n  internal void M() {}\n  private protected int P { get; set; }\n}\nclass B {}\n",
        &["+A: Does it.", "-f", "~M", "-P", "~B"],
    ),
    (
        Language::Ruby,
        "class A\n  def a; end\n\n  private\n\n  # Hidden.\n  def b; end\nend\nclass B\n  def c; end\n  def d; end\n  private :d\n  private def e; end\n  def f; end\nend\n",
        &["+A", "+a", "-b: Hidden.", "+B", "+c", "-d", "-e", "+f"],
    ),
    (
        Language::Php,
        "<?php\nclass A {\n  private $x;\n  protected function m() {}\n  function n() {}\n}\n",
        &["+A", "-x", "~m", "+n"],
    ),
    (
        Language::Swift,
        "public struct S {\n  private(set) var a = 1\n  fileprivate func b() {}\n  func c() {}\n}\n",
        &["+S", "-a", "-b", "~c"],
    ),
    (
        Language::Scala,
        "class A {\n  private val x = 1\n  protected def m() = 1\n  def n() = 2\n}\n",
        &["+A", "-x", "~m", "+n"],
    ),
    (Language::Lua, "local function f() end\nfunction M.g() end\n", &["-f", "+g"]),
    (Language::Bash, "# Runs it.\nrun() { :; }\n", &["+run: Runs it."]),
    (Language::Sql, "/* All people. */\nCREATE TABLE p (id INT);\n", &["+p: All people.", "+id"]),
];

#[test]
fn documentation_and_visibility_of_symbols() {
    for (language, text, expected) in SAID {
        assert_eq!(said(*language, text), *expected, "{language:?}");
    }
}

const USES: &[(Language, &str, &[&str])] = &[
    (
        Language::Rust,
        "#[derive(Debug)]\nstruct S { a: T }\nfn f(x: &S) -> u8 {\n    let y = x.a.go::<V>();\n    println!(\"{}\", y);\n    m::h(1, \"no\")\n}\n",
        &[
            "1 derive S",
            "1 Debug S",
            "2 T a",
            "3 x f",
            "3 S f",
            "4 y f",
            "4 x f",
            "4 a f",
            "4 go f",
            "4 V f",
            "5 println f",
            "5 y f",
            "6 m f",
            "6 h f",
        ],
    ),
    (
        Language::Python,
        "@dec.o\nclass A(B):\n    def m(self, x: T = d):\n        return self.n(x) + f\"{q}\"\nA().m()\n",
        &["1 dec A", "1 o A", "2 B A", "3 x m", "3 T m", "3 d m", "4 n m", "4 x m", "4 q m", "5 A", "5 m"],
    ),
    (
        Language::Tsx,
        "function App(p: P) {\n  return <Box.In on={p.go} key=\"k\"><Foo/>{`${t}`}</Box.In>;\n}\n",
        &[
            "1 p App",
            "1 P App",
            "2 Box App",
            "2 In App",
            "2 on App",
            "2 p App",
            "2 go App",
            "2 key App",
            "2 Foo App",
            "2 t App",
            "2 Box App",
            "2 In App",
        ],
    ),
    (
        Language::Go,
        "package p\nfunc (s *S) M() { pkg.F(s.x) }\n",
        &["1 p", "2 s M", "2 S M", "2 pkg M", "2 F M", "2 s M", "2 x M"],
    ),
    (
        Language::Java,
        "@Ann class A extends B<C> { D d() { return E.f(new G()); } }\n",
        &["1 Ann A", "1 B A", "1 C A", "1 D d", "1 E d", "1 f d", "1 G d"],
    ),
    (
        Language::C,
        "int f(struct s *p) { return g(p->q) + K; }\n",
        &["1 s f", "1 p f", "1 g f", "1 p f", "1 q f", "1 K f"],
    ),
    (
        Language::Cpp,
        "int n::A::f() { return std::max(x, 1); }\n",
        &["1 n f", "1 A f", "1 std f", "1 max f", "1 x f"],
    ),
    (
        Language::CSharp,
        "[Attr] class A : B { void M() { C.D(e); } }\n",
        &["1 Attr A", "1 B A", "1 C M", "1 D M", "1 e M"],
    ),
    (
        Language::Ruby,
        "class A < B\n  def m\n    C.new(@x).go :sym\n  end\nend\n",
        &["1 B A", "3 C m", "3 new m", "3 @x m", "3 go m"],
    ),
    (
        Language::Php,
        "<?php\nfunction f(T $x) { return new A($x->b, C::D); }\n",
        &["2 T f", "2 x f", "2 A f", "2 x f", "2 b f", "2 C f", "2 D f"],
    ),
    (Language::Kotlin, "fun f(x: T) = g(x).h\n", &["1 x f", "1 T f", "1 g f", "1 x f", "1 h f"]),
    (
        Language::Swift,
        "func f(x: T) -> U { return g(x).h }\n",
        &["1 x f", "1 T f", "1 U f", "1 g f", "1 x f", "1 h f"],
    ),
    (Language::Scala, "def f(x: T) = g(x).h\n", &["1 x f", "1 T f", "1 g f", "1 x f", "1 h f"]),
    (Language::Lua, "function f(x) return m.g(x) end\n", &["1 x f", "1 m f", "1 g f", "1 x f"]),
    (Language::Bash, "f() { run \"$X\"; }\n", &["1 run f", "1 X f"]),
    (Language::Sql, "SELECT a.x, 'no' FROM \"t\" a -- no\n", &["1 a", "1 x", "1 t", "1 a"]),
    (Language::Json, "{\"a\": \"b\"}\n", &[]),
];

#[test]
fn references_of_texts() {
    for (language, text, expected) in USES {
        assert_eq!(uses(*language, text), *expected, "{language:?}");
    }
}

#[test]
fn kinds_of_uses() {
    let kinds = |language, text: &str| {
        let references = analyse(language, text).unwrap().references;
        let marks = references.iter().map(|one| {
            let mark = match one.kind {
                UseKind::Plain => "",
                UseKind::Annotation => "?",
                UseKind::Member => ".",
                UseKind::ValueMember => "!.",
            };
            format!("{mark}{}", one.name(text))
        });
        marks.collect::<Vec<_>>().join(" ")
    };
    for (language, text, expected) in [
        (
            Language::Python,
            "import a.b as c\n\n\ndef f(x: T[U] = V) -> W:\n    y: Z = c.d.e(x.g)\n",
            "a b c ?x ?T ?U V ?W ?y ?Z c .d .e ?x !.g",
        ),
        (
            Language::Python,
            "import c\n\n\nclass A:\n    def f(self):\n        self.g(super().h, c.C().i, x[0].j)\n        \
             isinstance(c.D(), (k, c.E))\n",
            "c !.g !.h c .C !.i x !.j isinstance c .D ?k ?c ?E",
        ),
        // Arguments' names, parameters and a function's variables mean nothing outside.
        (
            Language::Python,
            "def f(a, *b, c=c, **d):\n    e, (g, h) = a(b, k=k)\n    for i in c: i += d\n    \
             with m as n, o(n): (p := e)\n    return lambda q: q(p, r)\n",
            "?a ?b ?c c ?d ?e ?g ?h ?a ?b ?k k ?i ?c ?i ?d m ?n o ?n ?p ?e ?q ?q ?p r",
        ),
        // But for those of an outer scope, imports, and fixtures.
        (
            Language::Python,
            "import a\n\n\ndef f():\n    global b\n    from a import c\n    b = c = 1\n    def g():\n        \
             b(d)\n    d = 1\n\n\nclass C:\n    e = 1\n    def test_it(self, e): e()\n    @pytest.fixture\n    \
             def h(self, e): e()\n",
            "a b a c b c b ?d ?d e e pytest !.fixture e e",
        ),
        (Language::Rust, "fn f() { a::b(c.d, self.e, g().h, 0..i) }\n", "a b c .d !.e g !.h i"),
        (Language::Cpp, "void f() { a->b(this->c); }\n", "a .b !.c"),
    ] {
        assert_eq!(kinds(language, text), expected, "{text}");
    }
}

#[test]
fn sections_and_their_mentions() {
    let text = "Intro with `Store` and word.\n\n# Use of parse_tree()\n\nCall `run` or openDoor, not a word.\n\n## Deeper\n\n```rust\nlet x = do_it(y);\n```\n\n# End\n";
    let facts = analyse(Language::Markdown, text).unwrap();
    let sections: Vec<(&str, u8, u32, u32, String)> = facts
        .sections
        .iter()
        .map(|one| (one.heading.as_str(), one.level, one.first_line, one.lines, one.mentions.join(" ")))
        .collect();
    assert_eq!(
        sections,
        [
            ("", 1, 1, 2, "Store".to_owned()),
            ("Use of parse_tree()", 1, 3, 10, "parse_tree run openDoor".to_owned()),
            ("Deeper", 2, 7, 6, "do_it".to_owned()),
            ("End", 1, 13, 1, String::new()),
        ]
    );
    assert_eq!(facts.symbols[1].path(), "Use of parse_tree().Deeper");
    assert_eq!(&text[facts.symbols[1].name_range.clone()], "Deeper");
}

/// Renders sections with mentions: first line, heading, names.
fn named(language: Language, text: &str) -> Vec<String> {
    let facts = analyse(language, text).unwrap();
    let line = |one: &journeyman_syntax::sections::Section| {
        format!("{}+{} {}: {}", one.first_line, one.lines, one.heading, one.mentions.join(" "))
    };
    facts.sections.iter().map(line).collect()
}

#[test]
fn every_kind_of_documentation_mentions_symbols() {
    let cases: &[(Language, &str, &[&str])] = &[
        (
            Language::Markdown,
            "# `shop.open()`\n\nSee Shop::close and `Till#add`, not this. Not e.g. that.\n",
            &["1+3 `shop.open()`: shop.open Shop.close Till.add"],
        ),
        (Language::Rst, "Top\n---\n\nUse :func:`~shop.open` and ``Till``.\n", &["1+4 Top: shop.open Till"]),
        (Language::AsciiDoc, "== Top\n\nUse `Till.add` or shop.open().\n", &["1+3 Top: Till.add shop.open"]),
        (
            Language::Rust,
            "//! Uses [`Till`].\n\n/// Opens a [`Shop`],\n/// then `open` again.\n#[x]\nfn open() {}\n\n/// Nothing.\nfn shut() {}\n",
            &["1+1 : Till", "3+2 open: Shop"],
        ),
        (
            Language::Python,
            "\"\"\"About `Till`.\"\"\"\nclass A:\n    def m(self):\n        \"\"\"Calls :meth:`Till.add`.\n\n        And run_it.\n        \"\"\"\n",
            &["1+1 : Till", "4+4 A.m: Till.add run_it"],
        ),
        (
            Language::Java,
            "/** Wraps a {@link Till#add(int) till}; see {@code Shop}. */\nclass A {}\n",
            &["1+1 A: Till.add Shop"],
        ),
        (Language::Go, "package p\n\n// F makes a [Till].\nfunc F() {}\n", &["3+1 F: Till"]),
        (
            Language::CSharp,
            "/// <summary>As <see cref=\"Till.Add\"/>.</summary>\nclass A {}\n",
            &["1+1 A: Till.Add"],
        ),
    ];
    for (language, text, expected) in cases {
        assert_eq!(named(*language, text), *expected, "{language:?}");
    }
}

#[test]
fn outlines_equal_those_of_full_analyses() {
    for (language, text, _) in IMPORTS.iter().chain(SAID).chain(USES) {
        let Ok(tree) = parse(*language, text) else { continue };
        let all = analyse_tree(&tree, text);
        assert_eq!(all.symbols, outline(&tree, text), "{language:?}");
        assert_eq!(all, analyse(*language, text).unwrap(), "{language:?}");
    }
}

/// An analysis of a temporary tree equals that of a kept one, for valid and broken texts, whatever
/// was parsed before and elsewhere.
#[test]
fn temporary_trees_give_the_same_analysis() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/kinds");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(language) = Language::from_path(&name) else {
            continue;
        };
        let cut = |at: usize| text[..text.floor_char_boundary(at)].to_owned();
        texts.extend([cut(text.len() / 3), cut(text.len() * 2 / 3)].map(|text| (language, text)));
        texts.push((language, text.repeat(8)));
        texts.push((language, text));
    }
    assert!(texts.len() > 40);
    std::thread::scope(|scope| {
        for nth in 0..2 {
            let texts = &texts;
            scope.spawn(move || {
                for (language, text) in texts.iter().skip(nth).step_by(2) {
                    let Ok(tree) = parse(*language, text) else { continue };
                    assert_eq!(analyse(*language, text).unwrap(), analyse_tree(&tree, text), "{language:?}");
                }
            });
        }
    });
}

#[test]
fn items_within_macros_are_found() {
    if !Language::Rust.is_built_in() {
        return;
    }
    let text = "cfg_rt! {\n    #[cold]\n    pub fn spawn() {\n        go()\n    }\n\n    cfg_io! {\n        \
                impl Driver {\n            fn park(&self) {}\n        }\n    }\n}\n";
    let analysis = analyse(Language::Rust, text).unwrap();
    let found: Vec<_> = analysis
        .symbols
        .iter()
        .map(|symbol| (symbol.path(), symbol.lines.clone(), symbol.name_line))
        .collect();
    let expected = [("spawn", 2..6, 3), ("Driver", 8..11, 8), ("Driver.park", 9..10, 9)];
    assert_eq!(found, expected.map(|(path, lines, name_line)| (path.to_owned(), lines, name_line)));
    assert!(!analysis.broken);
    let names: Vec<&str> = analysis.references.iter().map(|one| one.name(text)).collect();
    assert!(names.starts_with(&["cfg_rt", "cold"]) && names.contains(&"cfg_io"), "{names:?}");
}

#[test]
fn imports_within_macros_are_found() {
    if !Language::Rust.is_built_in() {
        return;
    }
    let text = "cfg_rt! {\n    use crate::task::{spawn, JoinHandle};\n    pub mod runtime;\n\n    cfg_io! {\n        \
                pub(crate) use self::io::Driver;\n    }\n}\n\nfn f() {\n    cfg_rt! { use std::mem; }\n}\n";
    let imports = analyse(Language::Rust, text).unwrap().imports;
    let found: Vec<(&str, &[String], u32)> =
        imports.iter().map(|import| (import.target.as_str(), &*import.names, import.line)).collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("crate::task", &*names(&["spawn", "JoinHandle"]), 2),
            ("runtime", &[][..], 3),
            ("io", &*names(&["Driver"]), 6)
        ]
    );
}

#[test]
fn paths_in_code_are_found_where_no_import_brings_them_in() {
    if !Language::Rust.is_built_in() {
        return;
    }
    let text = "use a::{fs, shop as store};\nmod inner;\nfn f(x: kit::Tokens) -> Result<(), kit::limits::Error> {\n    \
        kit::open(kit::MAX)?;\n    assert_eq!(kit::till::Till::new::<u8>(1), crate::name());\n    fs::read();\n    \
        inner::go();\n    std::fs::write();\n    u32::from(1);\n    Vec::new();\n    x.kit::y;\n    kit::open(2)\n}\n\
        mod tests {\n    fn g() { super::f(); super::super::h(); self::deep::k(); }\n}\n\
        macro_rules! m { () => { $crate::name() }; }\npub(in crate::a) fn p() { kit::r#do::r#in(); }\n";
    assert_eq!(
        to_lines(&analyse(Language::Rust, text).unwrap().path_uses),
        [
            "3 kit {Tokens}",
            "3 kit::limits {Error}",
            "4 kit {open}",
            "4 kit {MAX}",
            "5 kit::till {Till}",
            "5 crate {name}",
            "15 ./ {f}",
            "15 .././ {h}",
            "15 ./tests::deep {k}",
            "18 kit::do {in}",
        ]
    );
    assert_eq!(to_lines(&analyse(Language::Python, "import a\na.b()\n").unwrap().path_uses), [""; 0]);
    if Language::Php.is_built_in() {
        let text = "<?php\nuse \\App\\Lead;\nclass A extends \\App\\Base implements \\Countable {\n    \
            function f(Sub\\B $b): \\App\\Lead { new \\App\\Base(); return \\App\\Till\\Coin::make(); }\n}\n";
        let found = to_lines(&analyse(Language::Php, text).unwrap().path_uses);
        assert_eq!(found, ["3 App\\Base", "4 App\\Till\\Coin"]);
    }
}
