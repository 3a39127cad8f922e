//! The review of changes: what it shows, and what its keys ask for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_agent::workspace::{ChangedContent, CheckpointId};
use journeyman_host::hunks::ChangedFile;
use journeyman_protocol::RelPath;
use journeyman_terminal::StyledLine;
use journeyman_terminal::wrap::line_width;

use crate::review::{Review, ReviewEffect};
use crate::screen::Size;

fn file(path: &str, before: &str, after: &str) -> ChangedFile {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let path = RelPath::parse(path).unwrap();
    ChangedContent { path, before: bytes(before), after: bytes(after) }.into()
}

fn review() -> Review {
    let before: String = (1..=40).map(|line| format!("    line({line});\n")).collect();
    let after = before.replace("line(3)", "line(33)").replace("    line(30);\n", "");
    let files = vec![file("a.rs", &before, &after), file("b.txt", "old\n", "new\n")];
    Review::new(CheckpointId(1), files, None)
}

fn press(review: &mut Review, code: KeyCode) -> ReviewEffect {
    review.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn rows(review: &mut Review, columns: usize, rows: usize) -> Vec<String> {
    let shown = review.render(Size { columns, rows });
    assert_eq!(shown.len(), rows);
    assert!(shown.iter().all(|row| line_width(row) <= columns));
    shown.iter().map(StyledLine::to_text).collect()
}

#[test]
fn files_and_hunks_are_listed_with_their_numbers() {
    let text = rows(&mut review(), 60, 60).join("\n");
    for part in [
        "2 files, 3 hunks",
        "a.rs  +1 −2",
        "▌  line 3",
        "  3 +    line(33);",
        " 30 -    line(30);",
        "b.txt  +1 −1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn keys_choose_a_hunk_and_say_what_becomes_of_it() {
    let mut review = review();
    rows(&mut review, 40, 10);
    assert_eq!(press(&mut review, KeyCode::Char('x')), ReviewEffect::TakeBack(0, 0));
    press(&mut review, KeyCode::Tab);
    assert_eq!(press(&mut review, KeyCode::Char('x')), ReviewEffect::TakeBack(0, 1));
    assert!(rows(&mut review, 40, 10).join("\n").contains("line(30)"), "the chosen one is seen");
    press(&mut review, KeyCode::Char(' '));
    assert!(rows(&mut review, 60, 60).join("\n").contains("✓ kept"));
    assert!(rows(&mut review, 60, 60)[59].contains("kept 1 of 3"));
    assert_eq!(
        press(&mut review, KeyCode::Char('x')),
        ReviewEffect::TakeBack(1, 0),
        "the next one is chosen"
    );
    assert_eq!(press(&mut review, KeyCode::Char('u')), ReviewEffect::GiveBack);
    assert_eq!(press(&mut review, KeyCode::Esc), ReviewEffect::Close);
}

#[test]
fn kept_hunks_are_known_again_when_others_are_gone() {
    let mut review = review();
    press(&mut review, KeyCode::Tab);
    press(&mut review, KeyCode::Char(' '));
    let before: String = (1..=40).map(|line| format!("    line({line});\n")).collect();
    review.set_files(vec![file("a.rs", &before, &before.replace("    line(30);\n", ""))]);
    assert!(rows(&mut review, 60, 60)[59].contains("kept 1 of 1"));
    review.set_files(Vec::new());
    assert_eq!(press(&mut review, KeyCode::Char('x')), ReviewEffect::Stay);
    rows(&mut review, 40, 4);
}
