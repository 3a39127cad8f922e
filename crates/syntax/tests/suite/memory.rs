//! The grammar is C code in this process: no text may make it read foreign memory. A test fails
//! here by the death of the process.

use std::thread;

use journeyman_syntax::shell::{MAX_BYTES, UnclearReason, parse};

/// The scanner looks the character after a `{` up in a table, and would read far beyond it.
#[test]
fn any_character_may_follow_a_brace() {
    // One for each page of memory of a table with two bytes a character.
    for character in (0x80..=0x0010_ffff).step_by(2048).chain([0x0010_ffff]).filter_map(char::from_u32) {
        for before in ["{", "{1", "{1..", "a {", "a={", "$({", "[ {", "for i in {"] {
            let text = format!("{before}{character}");
            let script = parse(&text);
            assert_eq!(script, parse(&text), "{text:?}");
        }
    }
    for text in
        ["echo {\u{65e5}\u{672c}}", "echo '{\u{1f600}}'", "git commit -m \"{1\u{10fffd}}\"", "echo {\u{e9}}"]
    {
        assert_eq!(parse(text).unclear, None, "{text:?}");
    }
}

/// After too many reads the parser gets no more text; the end must not split a character.
#[test]
fn characters_lie_anywhere_in_a_text() {
    for word in ["\"$(", "`", "<<E\n", "$(", "'", "\"", "((", "${x", "{", "$'", "[[ ", "a|", "case a in "] {
        for character in ["\u{e9}", "\u{65e5}", "\u{1f600}"] {
            for before in 0..character.len() {
                for many in [1, 60] {
                    let piece = format!("{word}{}", character.repeat(many));
                    let text = "a".repeat(before) + &piece.repeat((MAX_BYTES / 8) / piece.len());
                    let script = parse(&text);
                    assert!(script.steps <= 64 + 2 * text.len() + 1, "{piece:?}");
                }
            }
        }
    }
}

/// Nesting up to the maximum, and beyond, needs less than half of a thread's stack.
#[test]
fn no_nesting_needs_much_stack() {
    let nest = || {
        for (open, inside, close) in [
            ("$(", "a", ")"),
            ("a > \"$(", "a", ")\""),
            ("cat <(a ", "a", ")"),
            ("{ ", "a", "; }"),
            ("case a in b) ", "a", ";; esac"),
            ("f() { ", "a", "; }"),
            ("[[ ", "a", " ]]"),
            ("$((", "1", "))"),
            ("${x:-", "a", "}"),
        ] {
            let nested = |depth: usize| parse(&(open.repeat(depth) + inside + &close.repeat(depth))).unclear;
            let most = MAX_BYTES / (open.len() + close.len()) - 1;
            for depth in (1..=64).chain([400, most]) {
                let open_only = parse(&open.repeat(depth)).unclear;
                assert!(open_only.is_some(), "{open:?} {depth}");
                let unclear = nested(depth);
                assert!(depth < 64 || unclear.is_some(), "{open:?} {depth}");
            }
        }
        assert_eq!(parse(&("$(".repeat(29) + "a" + &")".repeat(29))).unclear, None);
        assert_eq!(parse(&("$(".repeat(40) + "a" + &")".repeat(40))).unclear, Some(UnclearReason::Depth));
    };
    thread::Builder::new().stack_size(1 << 20).spawn(nest).unwrap().join().unwrap();
}

/// Each thread has a parser, which is dropped with it.
#[test]
fn threads_come_and_go() {
    let texts = ["ls | head", "cat <<E\n$x\nE\n", "cat <<E\n", "$($(", "echo {\u{10ffff}", "'"];
    let expected = texts.map(parse);
    for _ in 0..50 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(texts.map(parse), expected));
            }
        });
    }
}
