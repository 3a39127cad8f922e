//! Output is made safe to show, whatever it holds.

use journeyman_sandbox::clean_output;
use proptest::prelude::*;

#[test]
fn cleaning_table() {
    let cases: &[(&[u8], &str)] = &[
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]52;c;c2VjcmV0\x07after", "after"),
        (b"\x1b]52;c;c2VjcmV0\x1b\\after", "after"),
        (b"\x1b]unterminated\nnext", "\nnext"),
        (b"\x1bPdevice\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\!", "xyz!"),
        (b"\x1b(B\x1b=\x1b7x\x1b8\x1bcy", "xy"),
        (b"\x1b[?25l\x1b[2Kx\x1b[?25h", "x"),
        (b"broken \x1b[12", "broken "),
        (b"broken \x1b", "broken "),
        (b"\x1b[1\nnext", "\nnext"),
        ("\u{9b}31mred\u{9d}0;t\u{9c}x".as_bytes(), "redx"),
        (b"a\0b\x7fc\x0cd", "abcd"),
        (b"/\x08-\x08\\\x08|\x08done\n", "done\n"),
        (b"\x08\x08ab\x08\x08\x08c\nd\x08\x08e", "c\ne"),
        (b"kept\x08\x08\n\x08x", "kept\nx"),
        ("ü\x08u\x08\x08".as_bytes(), "u"),
        ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 1 package\n".as_bytes(), "added 1 package\n"),
        (
            b"    Building [=>  ] 1/3\r    Building [==> ] 2/3\r\x1b[K   Compiling a v1\n",
            "   Compiling a v1\n",
        ),
        (b"\x1b[?25l   ---- 10%\r\x1b[2K   ---- 90%\r\x1b[2K\x1b[?25hInstalled\n", "Installed\n"),
        (b"said\n\x1b[1A\x1b[2Kunsaid\n", "said\nunsaid\n"),
        (b"a\x1b[7Gb\x1b[1;1Gc\x1b[>1Gd\x1b[99999999999999999Ge", "abcde"),
        ("a\u{200b}b\u{2060}c\u{feff}d\u{2028}e\u{fe01}f".as_bytes(), "abcdef"),
        (b"  0%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"cut off\r", "cut off"),
        (b"\r\r\r", ""),
        (b"kept\r\x1b[K\n", "kept\n"),
        (b"bad \xff\xfe utf8 \xe2\x82", "bad \u{fffd}\u{fffd} utf8 \u{fffd}"),
        ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e".as_bytes(), "abcde"),
        ("x\u{e0041}\u{e0042}\u{e007f}y\u{e0100}".as_bytes(), "xy"),
        ("👩\u{200d}💻 ❤\u{fe0f} naïve 漢字".as_bytes(), "👩\u{200d}💻 ❤\u{fe0f} naïve 漢字"),
    ];
    for (given, expected) in cases {
        assert_eq!(clean_output(given), *expected, "{:?}", String::from_utf8_lossy(given));
    }
}

/// Bytes that are rich in what the cleaner looks for.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        &b"\x1b["[..],
        b"\x1b]",
        b"\x1bP",
        b"\x1b\\",
        b"\x07",
        b"\r",
        b"\n",
        b"\r\n",
        b"\t",
        b"\0",
        b"\x1b",
        b"0;1m",
        b"K",
        b"1G",
        b"2K",
        b"\x08",
        b"\xc2\x9b",
        b"\xe2\x80\xae",
        b"\xf3\xa0\x81\x81",
        b"\xff",
        b"\xe2",
        b"text",
        b" ",
        "ü".as_bytes(),
    ];
    let piece = prop_oneof![
        4 => prop::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_dangerous_is_left(bytes in hostile()) {
        let text = clean_output(&bytes);
        for character in text.chars() {
            let is_control = character.is_control() && character != '\n' && character != '\t';
            let misleads = matches!(character, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e01ef}');
            prop_assert!(!is_control && !misleads, "{character:?} in {text:?}");
        }
    }

    #[test]
    fn cleaning_twice_changes_nothing(bytes in hostile()) {
        let once = clean_output(&bytes);
        prop_assert_eq!(clean_output(once.as_bytes()), once);
    }

    #[test]
    fn harmless_text_stays(text in "[a-zA-Z0-9äöü漢 \\t\\n.,;:(){}=+-]{0,200}") {
        prop_assert_eq!(clean_output(text.as_bytes()), text);
    }

    #[test]
    fn every_line_end_stays(bytes in hostile()) {
        let lines = |bytes: &[u8]| bytes.iter().filter(|&&b| b == b'\n').count();
        prop_assert_eq!(lines(clean_output(&bytes).as_bytes()), lines(&bytes));
    }

    #[test]
    fn what_is_cut_anywhere_stays_harmless(bytes in hostile(), at in any::<prop::sample::Index>()) {
        let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
        let both = clean_output(first) + &clean_output(second);
        prop_assert!(!both.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{both:?}");
    }

    #[test]
    fn it_is_linear_in_size(piece in hostile()) {
        // Sixteen times the input in at most sixteen times the output, plus what a joined seam may
        // add.
        let once = clean_output(&piece).len();
        let many = clean_output(&piece.repeat(16)).len();
        prop_assert!(many <= 16 * (once + piece.len()));
    }
}
