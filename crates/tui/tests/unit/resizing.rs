//! A terminal that changes its size: nothing of the live area stays where it was.

use crossterm::event::{KeyCode, KeyModifiers};
use journeyman_terminal::{Style, StyledLine};

use crate::screen::{Frame, Reflow, Screen, Size};
use crate::theme::{BackgroundBrightness, ColorDepth, Theme};

use super::player::{Player, asked, command, decided, started, streamed};

/// The words that stand in the composer, and nowhere else.
const COMPOSER: &str = "› say";

fn composers(player: &mut Player) -> usize {
    player.all_rows().iter().filter(|row| row.contains(COMPOSER)).count()
}

#[test]
fn no_row_of_the_live_area_is_left_behind() {
    let mut player = Player::new(80, 24);
    player.play([started("go on")]);
    let text = "A paragraph that is long enough to be wrapped in every one of the widths. ".repeat(4);
    for (place, event) in streamed(&text, 9).into_iter().enumerate() {
        player.play([event]);
        let columns = [80, 64, 41, 120, 40, 79][place % 6];
        player.resize(columns, 24);
        assert_eq!(composers(&mut player), 1, "at {columns} columns:\n{}", player.all_rows().join("\n"));
    }
}

#[test]
fn a_higher_terminal_loses_nothing() {
    let mut player = Player::new(60, 12);
    player.play([started("go on")]);
    for call in 0..20 {
        player.play(command(&format!("c{call}"), "make", "one\ntwo\nthree\n"));
        player.resize(60, 12 + call);
    }
    let finished = player.finished.clone();
    assert_eq!(player.all_rows()[..finished.len()], finished);
    assert_eq!(composers(&mut player), 1);
}

#[test]
fn a_wide_character_is_wrapped_whole() {
    let theme = Theme::new(ColorDepth::None, BackgroundBrightness::Unknown);
    let line = |text: String| StyledLine::new(Style::Plain, text);
    for (text, columns, up) in [
        // 39 characters of two columns, of which 19 fit into 39 columns.
        ("漢".repeat(39), 39, "\x1b[3A"),
        ("漢".repeat(39), 40, "\x1b[2A"),
        ("a".repeat(78), 39, "\x1b[2A"),
        ("a".repeat(79), 39, "\x1b[3A"),
        (String::new(), 39, "\x1b[1A"),
    ] {
        let mut screen = Screen::new(theme, Reflow::Wraps, Size { columns: 80, rows: 24 });
        let live = vec![line(text.clone()), line("› ".to_owned())];
        let _drawn = screen.draw(&Frame { finished: Vec::new(), live, cursor: (1, 2) });
        let erased = screen.resize(Size { columns, rows: 24 });
        assert_eq!(erased, format!("\r{up}\x1b[J"), "{text} {columns}");
    }
}

#[test]
fn in_a_terminal_of_few_rows_the_message_or_the_question_is_seen() {
    let mut player = Player::new(40, 8);
    player.play([started("go on")]);
    for rows in 1..5 {
        player.resize(40, rows);
        assert!(player.screen().join("\n").contains(COMPOSER), "{rows}: {:?}", player.screen());
        player.play([asked("c1", "make", None)]);
        assert!(player.screen().join("\n").contains("May I run this?"), "{rows}: {:?}", player.screen());
        player.press(KeyCode::Char('n'), KeyModifiers::NONE);
        "not now".chars().for_each(|letter| player.press(KeyCode::Char(letter), KeyModifiers::NONE));
        assert!(player.screen().join("\n").contains("no: not now"), "{rows}: {:?}", player.screen());
        player.play([decided("c1", false)]);
    }
}

#[test]
fn the_cursor_stands_in_the_message_below_a_question() {
    let mut player = Player::new(80, 24);
    player.press(KeyCode::Char('a'), KeyModifiers::NONE);
    player.press(KeyCode::Enter, KeyModifiers::ALT);
    player.press(KeyCode::Char('b'), KeyModifiers::NONE);
    player.play([started("go on"), asked("c1", "make", None)]);
    let (row, column) = player.terminal.screen().cursor_position();
    assert_eq!(player.screen()[usize::from(row)], "  b");
    assert_eq!(column, 3);
}
