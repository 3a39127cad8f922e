//! Bounds for the grammars' C code: harmful texts never reach it, and expensive ones are given up.

use journeyman_syntax::analysis::{SyntaxAnalysis, analyse};
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::{ParseError, parse, reparse};
use journeyman_syntax::sections::Section;

/// Languages that are read without a grammar.
const PLAIN: &[Language] = &[Language::Sql, Language::Markdown, Language::Rst, Language::AsciiDoc];

#[test]
fn deep_nesting_is_refused() {
    for language in Language::ALL {
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}")] {
            let text = open.repeat(20_000) + &close.repeat(20_000);
            if !PLAIN.contains(language) {
                assert_eq!(parse(*language, &text).err(), Some(ParseError::TooDeep), "{language:?} {open}");
            }
        }
    }
    // Deep trees without brackets are refused as well.
    let nested = "<a>".repeat(20_000);
    if let Ok(tree) = parse(Language::Html, &nested) {
        assert_eq!(outline(&tree, &nested), []);
    }
    let chain = format!("fn f() {{ {}1 }}", "- ".repeat(20_000));
    assert!(parse(Language::Rust, &chain).is_err());
}

#[test]
fn scanner_faults_are_unreachable() {
    let name = "A".repeat(300);
    let untrusted = [
        (Language::Ruby, format!("x = <<{name}\n{name}\n")),
        (Language::Ruby, format!("x = <<~'{name}'\n")),
        (Language::Ruby, "<<ABCDEFGH\n".repeat(200)),
        (Language::Swift, "#if a\n#else".to_owned()),
        (Language::Swift, "#if a\nb\n#endif".to_owned()),
        (Language::Bash, "echo {\u{10ffff}".to_owned()),
        (Language::Bash, format!("cat <<{name}\n")),
        (Language::Yaml, "- ".repeat(400)),
        (Language::Yaml, (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
        (Language::Rust, "fn a() {}\0".to_owned()),
    ];
    for (language, text) in untrusted {
        assert_eq!(
            parse(language, &text).err(),
            Some(ParseError::UnsafeForScanner),
            "{language:?} {:.40}",
            text
        );
    }
    let trusted = [
        (Language::Ruby, "x = <<~SQL\n  a\nSQL\n"),
        (Language::Swift, "#if a\nb\n#endif\n"),
        (Language::Bash, "echo \u{e9}\u{65e5} ${x}\n"),
        (Language::Yaml, "a:\n  - b: c\n    d: [e]\n"),
    ];
    for (language, text) in trusted {
        assert!(!parse(language, text).unwrap().has_error(), "{language:?} {text}");
    }
}

/// Signs that scanners look for, and that trip them.
const TOKENS: &[&str] = &[
    "a",
    "1",
    " ",
    "\n",
    "    ",
    "\t",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "`",
    "${",
    "#{",
    "r#\"",
    "\"\"\"",
    "<<A",
    "<<~A\n",
    "/*",
    "*/",
    "//",
    "--[[",
    "]]",
    "<!--",
    "<script>",
    "</",
    "<a>",
    "f\"",
    "%w(",
    "=begin\n",
    "__END__",
    "<?php",
    "?>",
    "#else",
    "- ",
    ": ",
    "|\n",
    "&x",
    "!!s ",
    "\u{e9}",
    "\u{1f600}",
    "\r\n",
    "\\",
    "@\"",
    "$\"",
    "def ",
    "class ",
    "fn ",
    "if ",
    "end",
    "=",
    ";",
    ",",
    ".",
    "->",
    "...",
    "use a::{b::",
    "import ",
    "from ..",
    "#include \"",
    "require('",
    "private\n",
    "export {",
    "```\n",
    "# a\n",
    "===\n",
    "CREATE TABLE ",
    "$$",
    "--",
];

/// Checks that every range of an analysis lies in the text.
fn lies_in(language: Language, text: &str, facts: &SyntaxAnalysis) {
    let lines = text.matches('\n').count() + 1;
    let line = |line: u32| (1..=lines).contains(&(line as usize));
    for symbol in &facts.symbols {
        assert_eq!(text.get(symbol.name_range.clone()), Some(symbol.name.as_str()), "{language:?} {text:?}");
        assert!(
            text.get(symbol.full.clone()).is_some() && line(symbol.lines.start) && line(symbol.name_line),
            "{language:?} {text:?}"
        );
    }
    for reference in &facts.references {
        assert!(!reference.name(text).is_empty() && line(reference.line), "{language:?} {text:?}");
        let inside = reference.inside.map(|at| &facts.symbols[at as usize]);
        let start = reference.start as usize;
        assert!(inside.is_none_or(|symbol| symbol.full.contains(&start)), "{language:?} {text:?}");
    }
    assert!(facts.imports.iter().all(|import| line(import.line)), "{language:?} {text:?}");
    let ends = |section: &Section| {
        line(section.first_line) && (section.first_line + section.lines) as usize <= lines + 1
    };
    assert!(facts.sections.iter().all(ends), "{language:?} {text:?}");
}

/// Texts that aren't source have a bounded cost.
#[test]
fn long_lines_and_deep_nesting_are_bounded() {
    let words = "ab ".repeat(5 << 20);
    let line = words.get(..5 << 20).unwrap();
    let many = "# a `b`\n".repeat(10_000);
    let creates = "CREATE TABLE a (b INT, c INT);\n".repeat(10_000);
    for language in PLAIN {
        for text in [line, &many, &creates, &"`".repeat(1 << 17), &"'".repeat(1 << 17), &"(".repeat(100_000)]
        {
            lies_in(*language, text, &analyse(*language, text).unwrap());
        }
    }
    for language in Language::ALL.iter().filter(|language| !PLAIN.contains(language)) {
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}")] {
            let text = open.repeat(100_000) + &close.repeat(100_000);
            assert_eq!(analyse(*language, &text).err(), Some(ParseError::TooDeep), "{language:?}");
        }
    }
    let chain = format!("fn f() {{ {}1 }}", "- ".repeat(20_000));
    assert!(analyse(Language::Rust, &chain).is_err());
    assert_eq!(analyse(Language::Json, &" ".repeat(9 << 20)).err(), Some(ParseError::TooLong));
}

/// Many sibling definitions: looking around from each must not visit all others.
#[test]
fn many_definitions_side_by_side() {
    let pieces = [
        (Language::Rust, "/// A.\nfn a() {}\n"),
        (Language::Python, "# a\na = 1\n"),
        (Language::JavaScript, "export const a = 1;\n"),
        (Language::C, "int a(void);\n"),
        (Language::Ruby, "private\ndef a; end\nprivate :a\n"),
    ];
    for (language, piece) in pieces {
        let text = piece.repeat(4_000);
        let facts = analyse(language, &text).unwrap();
        assert_eq!(facts.symbols.len(), 4_000, "{language:?}");
        lies_in(language, &text, &facts);
    }
}

/// Parsing, outlines and reparsing after a change end for texts of any tokens.
#[test]
fn any_tokens_in_any_order() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 11).unwrap() % most
    };
    for language in Language::ALL {
        for _ in 0..60 {
            let count = next(120);
            let tokens: Vec<&str> = (0..count).map(|_| TOKENS[next(TOKENS.len())]).collect();
            let text = tokens.concat();
            if let Ok(facts) = analyse(*language, &text) {
                lies_in(*language, &text, &facts);
            }
            let Ok(tree) = parse(*language, &text) else { continue };
            for symbol in outline(&tree, &text) {
                assert!(
                    text.get(symbol.full.clone()).is_some() && symbol.full.contains(&symbol.name_range.start),
                    "{language:?} {text:?}"
                );
            }
            let at = text.floor_char_boundary(next(text.len() + 1));
            let changed = format!("{}{}{}", &text[..at], TOKENS[next(TOKENS.len())], &text[at..]);
            if let Ok(again) = reparse(&tree, &text, &changed) {
                assert!(again.root().end_byte() <= changed.len(), "{language:?} {text:?}");
            }
        }
    }
}

#[test]
fn results_are_the_same_in_every_thread() {
    let text = "fn a() {\n    b(1);\n}\n";
    let expected = parse(Language::Rust, text).unwrap().root().to_sexp();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(parse(Language::Rust, text).unwrap().root().to_sexp(), expected));
        }
    });
    let changed = text.replace("b(1)", "c(2, 3)");
    let tree = parse(Language::Rust, text).unwrap();
    assert_eq!(
        reparse(&tree, text, &changed).unwrap().root().to_sexp(),
        parse(Language::Rust, &changed).unwrap().root().to_sexp()
    );
}

/// Large files of ordinary source are well within the bounds.
#[test]
fn ordinary_source_is_within_the_bounds() {
    let pieces = [
        (
            Language::Rust,
            "/// Doc.\npub fn f<T: Clone>(a: &[T]) -> Vec<T> {\n    a.iter().filter(|x| x.ok()).map(|x| x.clone()).collect()\n}\n\n",
        ),
        (
            Language::Python,
            "@dec\ndef f(a, b=1):\n    \"\"\"Doc.\"\"\"\n    return {k: v for k, v in a.items() if v > b}\n\n\n",
        ),
        (
            Language::JavaScript,
            "export const f = async (a, b) => {\n  const { c, ...d } = await g(`x${a}`);\n  return <p a={b}>{c}</p>;\n};\n\n",
        ),
        (
            Language::Cpp,
            "template <typename T>\nstd::vector<T> f(const std::map<std::string, T>& a) {\n  return g<T>(a[\"x\"] < b, c > d);\n}\n\n",
        ),
        (
            Language::Kotlin,
            "fun <T> f(a: List<T>): Map<String, T> = a.filter { it.x > 1 }.associateBy({ it.k }) { it.v }\n\n",
        ),
        (
            Language::Swift,
            "func f<T>(_ a: [T]) -> [String: T] where T: P {\n    return a.filter { $0.x > 1 }.map { g($0) }\n}\n\n",
        ),
        (Language::Json, "[{\"a\": [1, 2.5, true, null], \"b\": {\"c\": \"d\"}}]\n"),
    ];
    for (language, piece) in pieces {
        let text = if language == Language::Json {
            format!("[{}1]", "{\"a\": [1, 2.5, true, null]},\n".repeat(1_000))
        } else {
            piece.repeat(400)
        };
        assert!(parse(language, &text).is_ok(), "{language:?}");
    }
}
