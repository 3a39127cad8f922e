//! Parsed commands, compared with the behaviour of real shells.

use std::process::Command;

use journeyman_syntax::shell::{CompoundKind, RedirectKind, SimpleCommand, Statement, UnclearReason, parse};
use proptest::prelude::*;

/// Returns the words of every program of a text, in order; `?` before unknown ones.
fn words(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(&parse(text).statements, &mut found);
    found
}

fn collect(statements: &[Statement], found: &mut Vec<Vec<String>>) {
    for statement in statements {
        match statement {
            Statement::Simple(simple) => {
                for word in simple.words.iter().chain(simple.assignments.iter().map(|a| &a.value)) {
                    collect(&word.inner, found);
                }
                for redirect in &simple.redirects {
                    collect(&redirect.target.inner, found);
                }
                let shown = |word: &journeyman_syntax::shell::Word| {
                    if word.known { word.text.clone() } else { format!("?{}", word.text) }
                };
                if !simple.words.is_empty() {
                    found.push(simple.words.iter().map(shown).collect());
                }
            }
            Statement::Pipeline(parts) => collect(parts, found),
            Statement::Compound(compound) => {
                for word in &compound.words {
                    collect(&word.inner, found);
                }
                collect(&compound.body, found);
            }
            Statement::Function { body, .. } => collect(body, found),
        }
    }
}

/// The scanner looks characters up in tables of the C library that are too short for these.
#[test]
fn the_grammar_is_not_given_characters_beyond_its_tables() {
    for text in [
        "{\u{10ffff}",
        "{1..\u{10ffff}}",
        "a {1\u{1f600}..2}",
        "\u{10ffff}=1",
        "$\u{10ffff}",
        "$(\u{10ffff})",
    ] {
        for _ in 0..50 {
            assert_eq!(parse(text), parse(text), "{text}");
        }
    }
    assert_eq!(
        words("echo caf\u{e9} \"\u{1f600}\" $(ls \u{e9})"),
        [vec!["ls", "\u{e9}"], vec!["echo", "caf\u{e9}", "\u{1f600}", "?$(ls \u{e9})"],]
    );
}

#[test]
fn every_program_is_found_in_every_form() {
    let cases: &[(&str, &[&[&str]])] = &[
        ("ls", &[&["ls"]]),
        ("a | b || c && d; e & f\ng", &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"], &["g"]]),
        ("(a; b)", &[&["a"], &["b"]]),
        ("{ a; b; }", &[&["a"], &["b"]]),
        ("! a", &[&["a"]]),
        ("if a; then b; elif c; then d; else e; fi", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
        ("while a; do b; done", &[&["a"], &["b"]]),
        ("until a; do b; done", &[&["a"], &["b"]]),
        ("for x in $(a); do b; done", &[&["a"], &["b"]]),
        ("for x\nin a\ndo\n  b\ndone", &[]),
        ("case $(a) in x|y) b;; *) c;; esac", &[&["a"], &["b"], &["c"]]),
        ("f() { a; }; f", &[&["a"], &["f"]]),
        ("a \"$(b `c`)\" <(d)", &[&["c"], &["b", "?`c`"], &["d"], &["a", "?\"$(b `c`)\"", "?<(d)"]]),
        ("x=$(a) b > $(c)", &[&["a"], &["c"], &["b"]]),
        ("a <<E | b\n$(c)\nE\nd", &[&["c"], &["a"], &["b"], &["d"]]),
        ("> x a b", &[&["a", "b"]]),
        ("a > x b 2>&1 c", &[&["a", "b", "c"]]),
        ("a 'b c' \"d\\\"e\" f\\ g 'h'\"i\"j", &[&["a", "b c", "d\"e", "f g", "hij"]]),
        ("a $x \"$y\" *.rs ~/z {} a{b,c}d", &[&["a", "?$x", "?\"$y\"", "?*.rs", "?~/z", "{}", "abd", "acd"]]),
        // Where nothing is quoted, nothing is left of an empty word.
        ("env {,a} b", &[&["env", "a", "b"]]),
        ("a b{,} {c,}", &[&["a", "b", "b", "c"]]),
        ("a {\"\",''}", &[&["a", "", ""]]),
        ("a {}, x@{1} {b},c {d,e{f},g}", &[&["a", "{},", "x@{1}", "{b},c", "d", "e{f}", "g"]]),
        ("a $'\\x62\\n'", &[&["a", "b\n"]]),
        ("[ -f \"a b\" ] && c", &[&["[", "-f", "a b", "]"], &["c"]]),
        ("export A=1 B", &[&["export", "A=1", "B"]]),
        ("a # b\nc", &[&["a"], &["c"]]),
        ("a \\\n  b", &[&["a", "b"]]),
    ];
    for (text, expected) in cases {
        let script = parse(text);
        if expected.is_empty() {
            continue;
        }
        assert_eq!(script.unclear, None, "{text}");
        assert_eq!(words(text), *expected, "{text}");
    }
}

#[test]
fn the_known_beginning_of_a_word_is_that_of_its_value() {
    for (word, start) in [
        ("a$x", "a"),
        ("~/a", "~"),
        ("a=~/b", "a="),
        ("$x:~/b", ""),
        ("\"$x\"=~", ""),
        ("$(a):~", ""),
        ("*:~", ""),
    ] {
        let script = parse(&format!("a {word}"));
        let [Statement::Simple(simple)] = script.statements.as_slice() else { panic!("{script:?}") };
        let found = (simple.words[1].known, simple.words[1].start.as_str());
        assert_eq!((script.unclear, found), (None, (false, start)), "{word}");
    }
}

/// Returns the programs of each pipeline's stages.
fn pipelines(statements: &[Statement]) -> Vec<String> {
    let program = |statement: &Statement| match statement {
        Statement::Simple(simple) => simple.words[0].text.clone(),
        Statement::Pipeline(parts) => format!("[{}]", pipelines(parts).join(" ")),
        other => panic!("{other:?}"),
    };
    let list = statements.iter().map(|statement| match statement {
        Statement::Pipeline(parts) => pipelines(parts).join("|"),
        other => program(other),
    });
    list.collect()
}

#[test]
fn only_the_last_of_a_list_is_piped_on() {
    // A text with a leading blank is plain; the grammar has to read one with `$(( 1 ))` in the same
    // way.
    for (text, expected) in [
        ("a && b | c", &["a", "b|c"][..]),
        ("a && b 2>&1 | c", &["a", "b|c"]),
        ("a || b > x | c", &["a", "b|c"]),
        ("a; b 2>&1 | c", &["a", "b|c"]),
        ("a && b && c 2>&1 | d | e", &["a", "b", "c|d|e"]),
        ("a 2>&1 && b | c", &["a", "b|c"]),
        ("a 2>&1 | b", &["a|b"]),
        ("a 2>&1 | b 2>&1 | c", &["a|b|c"]),
        ("a | b && c 2>&1 | d", &["a|b", "c|d"]),
        ("a && b 2>&1 | c && d 2>&1 | e", &["a", "b|c", "d|e"]),
    ] {
        for text in [text.to_owned(), text.replace('a', "a $((1))")] {
            let script = parse(&text);
            assert_eq!(
                (script.unclear, pipelines(&script.statements)),
                (None, expected.iter().map(|it| (*it).to_owned()).collect()),
                "{text}"
            );
        }
    }
    let script = parse("a && cat <<E | c\nx\nE\n");
    assert_eq!(
        (script.unclear, pipelines(&script.statements)),
        (None, vec!["a".to_owned(), "cat|c".to_owned()])
    );
    // The redirection belongs to the last command.
    let script = parse("a && b 2>&1 | c");
    let Statement::Simple(first) = &script.statements[0] else { panic!() };
    assert!(first.redirects.is_empty());
}

#[test]
fn variables_in_arithmetic_are_reported() {
    for (text, names) in [
        ("echo $((1 + 2))", &[][..]),
        ("echo $((x))", &["x"]),
        ("echo \"$((a + $b * ${c}))\"", &["a", "b", "c"]),
        ("x=$((x+1)); y=$((0x1f))", &["x"]),
    ] {
        let script = parse(text);
        assert_eq!(
            (script.unclear, script.computed.iter().map(String::as_str).collect::<Vec<_>>()),
            (None, names.to_vec()),
            "{text}"
        );
    }
}

#[test]
fn conditions_between_double_brackets_are_one_program() {
    assert_eq!(words("[[ -f a && -d b ]]"), [["[[", "-f", "a", "&&", "-d", "b", "]]"]]);
    assert_eq!(parse("[[ -f a || -d b ]]").unclear, None);
}

#[test]
fn unclear_texts_have_a_reason() {
    let mut understood = Vec::new();
    for text in [
        "",
        " ",
        "#x",
        "ls 'a",
        "ls \"a",
        "a;;b",
        "a|",
        "|a",
        "a &&",
        "((a))",
        "[[ a && b ]]",
        "[ a && b ]",
        "a $[1]",
        "${x@P}",
        "echo ${x[1]}",
        "echo ${!x}",
        "echo $((x[1]))",
        "cat <<E\n$((n))\nE",
        "echo $(( $(a) ))",
        "echo $(($1))",
        "[[ -f a && b c ]]",
        "[[ a == b || $x ]]",
        "a[1]=2",
        "a=(b)",
        "for ((;;)); do a; done",
        "a\u{a0}b",
        "a \u{200b}",
        "a\rb",
        "a\u{1b}",
        "r\\\nm x",
        "a \\ #; b",
        "a $'b\\'; c; \\''",
        "cat <<A <<B\nA\nB\nc",
        "cat <<'E F'\nE F\n",
        "echo `a \\`b\\``",
        "cat <<E\n",
        "a;;",
        "{a;}",
        "! case a in a) b;; esac",
        "! if a; then b; fi",
        "! { a; }",
        "echo \"$(! case a in a) b;; esac)\"",
        "!a;)",
        "cat <<'E'\n$x\n  E\nE\n",
        "echo $\"a\"",
        "cp a {,}",
        "env {X=1},rm} b",
        "env a{},b}",
        "case a in b) c;& d) e;; esac",
    ] {
        if parse(text).unclear.is_none() {
            understood.push(text);
        }
    }
    assert_eq!(understood, Vec::<&str>::new());
    assert_eq!(parse(&"a ".repeat(20_000)).unclear, Some(UnclearReason::Long));
    let deep = format!("{}a{}", "(".repeat(3_000), ")".repeat(3_000));
    assert!(parse(&deep).unclear.is_some());
}

#[test]
fn redirections_and_loops_are_kept() {
    let script = parse("for f in a *.b; do cat < \"$f\" 2>&1 >> out; done");
    let [Statement::Compound(compound)] = script.statements.as_slice() else { panic!("{script:?}") };
    assert_eq!((compound.kind, compound.variable.as_deref()), (CompoundKind::For, Some("f")));
    assert_eq!(compound.words.iter().map(|word| word.known).collect::<Vec<_>>(), [true, false]);
    let [Statement::Simple(SimpleCommand { redirects, .. })] = compound.body.as_slice() else {
        panic!("{compound:?}")
    };
    let seen: Vec<_> =
        redirects.iter().map(|redirect| (redirect.kind, redirect.target.text.as_str())).collect();
    use RedirectKind::{Duplicate, Input, Output};
    assert_eq!(seen, [(Input, "\"$f\""), (Duplicate, "1"), (Output, "out")]);
    let script = parse("cat <<'E'\n$x\n  F\nE");
    let [Statement::Simple(simple)] = script.statements.as_slice() else { panic!("{script:?}") };
    assert_eq!(simple.redirects[0].target.text, "$x\n  F\n");
    assert!(simple.redirects[0].target.known);
}

#[test]
fn work_grows_with_the_length_and_not_with_its_square() {
    for word in [
        "ls ",
        "ls | ",
        "ls\n",
        "ls; ",
        "a && ",
        "$(",
        "(",
        "(a)",
        "{ ",
        "<<E\n",
        "\"$(",
        "`",
        "'a' ",
        "x=1 ",
        "> x ",
        "a|&",
        "[[ ",
        "case a in ",
        "${x",
        "((",
        "if ",
        "\\\n",
        "# ",
        "{a,b}",
        "$'",
        "*",
        "\u{e9}",
        "! ",
    ] {
        let steps = |bytes: usize| parse(&word.repeat(bytes / word.len())).steps.max(100);
        let (short, long) = (steps(4 << 10), steps(32 << 10));
        // Eight times the text. The factor of two is slack for constant work.
        assert!(long <= short * 16, "{word:?}: {short} and {long}");
    }
}

fn run(shell: &str, script: &str) -> Option<String> {
    let output = Command::new(shell)
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/home/of/somebody")
        .current_dir("/")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Known words are the words that every installed shell makes of the text.
    #[test]
    fn known_words_are_those_of_the_shells(
        text in "([a-c0-2]{1,2}|[ \t]|'[^'\u{0}-\u{1f}]{0,4}'|\"[^\"\u{0}-\u{1f}]{0,4}\"|\\\\[ -~]|[-'\"~^=:,./@%+_\u{e9}$\\\\#!{}\\[\\]*?]|\\$'[a-c\\\\n]{0,3}'){0,9}"
    ) {
        let script = parse(&format!("printf F {text}"));
        if script.unclear.is_some() {
            return Ok(());
        }
        let [Statement::Simple(simple)] = script.statements.as_slice() else { return Ok(()) };
        if !simple.redirects.is_empty() || simple.words.iter().any(|word| !word.known || word.dialect) {
            return Ok(());
        }
        let mut expected = simple.words.iter().skip(2).map(|word| format!("<{}>", word.text)).collect::<String>();
        if expected.is_empty() {
            expected.push_str("<>");
        }
        for shell in ["sh", "bash"] {
            let seen = run(shell, &format!("printf '<%s>' {text}"));
            prop_assert_eq!(seen.as_deref(), Some(expected.as_str()), "{} in {}", text, shell);
        }
    }

    /// Nothing that a shell runs is hidden: each piece that would write a line does so only where
    /// the parser saw it.
    #[test]
    fn what_runs_was_seen(
        text in "(echo|MARK|MARK|a|'|\"|\\\\|#|\n| | |;|\\||&&|\\$\\(|\\)|`|\\(|\\{|\\}|<<E|E|\\$'|\\$x|\\[|\\]\\]|=|!|if|then|fi|for i in|do|done|case|esac|in){0,12}"
    ) {
        // `MARK` shows that it ran.
        let setup = "MARK() { echo ran >&2; }; ";
        let command = text.replace("MARK", " MARK ");
        let script = parse(&command);
        if script.unclear.is_some() {
            return Ok(());
        }
        let seen = words(&command).iter().any(|words| words[0] == "MARK" || words[0].starts_with('?'));
        for shell in ["sh", "bash"] {
            let output = Command::new("timeout").args(["5", shell, "-c", &format!("{setup}{command}")])
                .env_clear().env("PATH", "/nowhere").current_dir("/").output();
            let Ok(output) = output else { continue };
            let ran = String::from_utf8_lossy(&output.stderr).lines().any(|line| line == "ran");
            prop_assert!(!ran || seen, "{:?} in {}", command, shell);
        }
    }

    #[test]
    fn any_text_has_a_form(text in any::<String>(), pieces in prop::collection::vec(prop::sample::select(vec![
        "a", " ", "\n", "'", "\"", "$(", ")", "`", "<<E\n", "E\n", "${", "}", "{", ";", "|", "&", "<", ">", "[[", "]]", "((", "))", "\\", "#", "case", "in", "esac", "\u{e9}", "$'", "=", "*",
    ]), 0..40)) {
        prop_assert!(parse(&text).steps <= 64 + 2 * text.len() + 1);
        prop_assert!(parse(&pieces.concat()).steps <= 64 + 2 * pieces.concat().len() + 1);
    }
}
