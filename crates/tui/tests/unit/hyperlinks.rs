//! Links to files: the words that become one, and bytes that only a terminal with links
//! understands.

use journeyman_terminal::{Style, StyledLine};

use crate::hyperlinks::{LinkChoice, Linker, paint_row};
use crate::screen::{Frame, Reflow, Screen, Size};
use crate::theme::{BackgroundBrightness, ColorDepth, Theme};

fn project() -> (tempfile::TempDir, Linker) {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("src")).unwrap();
    for path in ["src/lib.rs", "src/a b.rs", "README.md", "ключ.rs"] {
        std::fs::write(root.path().join(path), "").unwrap();
    }
    let linker = Linker::new(root.path(), |name| (name == "KITTY_WINDOW_ID").then_some("1"));
    (root, linker)
}

fn painted(linker: &Linker, row: &StyledLine, from: usize) -> String {
    let mut out = String::new();
    paint_row(
        Theme::new(ColorDepth::None, BackgroundBrightness::Unknown),
        row,
        from,
        &linker.find(row),
        &mut out,
    );
    out
}

/// The links in bytes: each target with its text.
fn links(bytes: &str) -> Vec<(String, String)> {
    let parts = bytes.split("\x1b]8;;").skip(1).filter_map(|part| part.split_once("\x1b\\"));
    parts
        .filter(|(target, _)| !target.is_empty())
        .map(|(target, text)| (target.to_owned(), text.to_owned()))
        .collect()
}

#[test]
fn paths_of_the_project_are_links_and_other_words_are_not() {
    let (root, linker) = project();
    let text =
        "see src/lib.rs:12:3, (README.md) and ключ.rs; not src/none.rs, src, e.g. /etc/passwd or ../x.rs";
    let row = StyledLine::new(Style::Plain, text);
    let bytes = painted(&linker, &row, 0);
    let found = links(&bytes);
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["src/lib.rs:12:3", "README.md", "ключ.rs"]);
    assert!(found[0].0.starts_with("file://"), "{found:?}");
    assert!(found[0].0.ends_with(&format!("{}/src/lib.rs#12", root.path().display())), "{found:?}");
    assert!(found[2].0.ends_with("/%D0%BA%D0%BB%D1%8E%D1%87.rs"), "{found:?}");
    let plain = bytes.replace("\x1b]8;;\x1b\\", "");
    let plain =
        found.iter().fold(plain, |text, (target, _)| text.replace(&format!("\x1b]8;;{target}\x1b\\"), ""));
    assert_eq!(plain, text, "nothing else is written");
}

#[test]
fn a_part_of_a_row_keeps_its_link() {
    let (_root, linker) = project();
    let row = StyledLine::new(Style::Plain, "● edit ").with(Style::Plain, "src/").with_text("lib.rs  +1");
    let from = "● edit src".len();
    assert_eq!(links(&painted(&linker, &row, from))[0].1, "/lib.rs");
    assert_eq!(links(&painted(&linker, &row, 0))[0].1, "src/lib.rs", "styles don't cut it");
    assert_eq!(painted(&linker, &row, row.to_text().len()), "");
}

#[test]
fn no_name_ends_the_sequence() {
    let root = tempfile::tempdir().unwrap();
    let hostile = root.path().join("a\x1b\\b;c\u{7}d");
    std::fs::create_dir_all(&hostile).unwrap();
    std::fs::write(hostile.join("x.rs"), "").unwrap();
    let linker = Linker::new(&hostile, |_| None);
    let bytes = painted(&linker, &StyledLine::new(Style::Plain, "x.rs"), 0);
    assert_eq!(bytes.matches('\x1b').count(), 4, "{bytes:?}");
    assert!(!bytes.contains('\u{7}') && links(&bytes)[0].0.contains("a%1B%5Cb%3Bc%07d/x.rs"), "{bytes:?}");
}

#[test]
fn a_terminal_shows_the_same_text_with_links() {
    let (_root, linker) = project();
    let size = Size { columns: 30, rows: 6 };
    let mut screen =
        Screen::new(Theme::new(ColorDepth::Palette, BackgroundBrightness::Unknown), Reflow::Cuts, size);
    screen.set_links(std::rc::Rc::new(linker));
    let mut terminal =
        vt100::Parser::new(std::num::NonZero::new(6).unwrap(), std::num::NonZero::new(30).unwrap(), 100);
    let mut written = String::new();
    // The words arrive one after the other, so that a path becomes one in the middle of a row.
    for text in ["see src/li", "see src/lib.rs", "see src/lib.rs:7 in 漢字", "see src/lib.rs:7 in README.md"]
    {
        let live = vec![StyledLine::new(Style::Plain, text), StyledLine::new(Style::Dim, "README.md")];
        let bytes = screen.draw(&Frame { finished: Vec::new(), live, cursor: (0, 0) });
        terminal.process(bytes.as_bytes());
        written += &bytes;
        let shown: Vec<String> = terminal.screen().rows(0, 30).take(2).collect();
        assert_eq!(shown[0].trim_end(), text);
        assert_eq!(shown[1].trim_end(), "README.md");
    }
    let found = links(&written);
    assert!(found.iter().any(|(_, text)| text == "src/lib.rs:7"), "the whole path is the link: {found:?}");
}

#[test]
fn only_terminals_that_take_links_get_them() {
    for (choice, variables, expected) in [
        (LinkChoice::Auto, &[("TERM", "xterm-256color")][..], false),
        (LinkChoice::Auto, &[("VTE_VERSION", "7200")], true),
        (LinkChoice::Auto, &[("VTE_VERSION", "4900")], false),
        (LinkChoice::Auto, &[("TERM_PROGRAM", "WezTerm")], true),
        (LinkChoice::Auto, &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], false),
        (LinkChoice::Always, &[("TERM", "xterm")], true),
        (LinkChoice::Never, &[("TERM", "xterm-kitty")], false),
    ] {
        let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        assert_eq!(choice.is_wanted(variable), expected, "{choice:?} {variables:?}");
    }
}
