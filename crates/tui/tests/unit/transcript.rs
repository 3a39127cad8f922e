//! The transcript: every tool's whole output, wrapped at any width, found by words, folded.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_protocol::CallId;
use journeyman_terminal::StyledLine;
use journeyman_terminal::markdown::MarkerDisplay;
use journeyman_terminal::wrap::line_width;

use super::player::{Player, command, started, streamed};
use crate::screen::Size;
use crate::viewer::Viewer;

struct Transcript {
    player: Player,
    viewer: Viewer,
}

impl Transcript {
    /// Two commands, whose events have only the ends of what they printed.
    fn new() -> Self {
        let mut player = Player::new(80, 24);
        player.play([started("go on")]);
        player.play(command("c1", "make", "short\n"));
        player.play(command("c2", "make all", "short too\n"));
        player.play(streamed("The end.", 8));
        Self { player, viewer: Viewer::new("transcript", MarkerDisplay::Dropped, true) }
    }

    fn with_results(mut self) -> Self {
        let lines: String =
            (1..=3_000).map(|line| format!("line {line} with some words behind it\n")).collect();
        let results = [("c1", "nothing special".to_owned()), ("c2", lines)];
        let results: HashMap<CallId, String> =
            results.map(|(call, text)| (CallId::new(call), text)).into_iter().collect();
        self.viewer.set_results(results);
        self
    }

    fn press(&mut self, keys: &str) {
        for letter in keys.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                letter => KeyCode::Char(letter),
            };
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            self.viewer.handle_key(key, self.player.conversation.entries());
        }
    }

    fn rows(&mut self, columns: usize, rows: usize) -> Vec<String> {
        let (shown, _) = self.viewer.render(self.player.conversation.entries(), Size { columns, rows });
        assert!(shown.iter().all(|row| line_width(row) <= columns), "a row is wider than {columns}");
        shown.iter().map(StyledLine::to_text).collect()
    }
}

#[test]
fn an_opened_call_shows_its_whole_output_at_any_width() {
    let mut transcript = Transcript::new().with_results();
    transcript.rows(80, 24);
    transcript.press("a");
    for columns in [24, 60, 100, 200] {
        let text = transcript.rows(columns, 40_000).join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let has = |line: u32| {
            let (number, expected) = (line.to_string(), ["line", "with", "some"]);
            words.windows(4).any(|four| {
                four[0] == expected[0]
                    && four[1] == number
                    && four[2] == expected[1]
                    && four[3] == expected[2]
            })
        };
        assert!((1..=3_000).all(has), "a line is missing at {columns} columns");
    }
    transcript.press("a");
    assert!(!transcript.rows(80, 40_000).concat().contains("line 1500"), "it is folded again");
}

#[test]
fn words_are_found_in_outputs_that_are_folded() {
    let mut transcript = Transcript::new().with_results();
    assert!(!transcript.rows(80, 24).concat().contains("line 1500"));
    transcript.press("/line 1500 with\n");
    assert!(transcript.rows(80, 24)[0].contains("line 1500 with"));
    assert!(!transcript.rows(80, 40_000).concat().contains("nothing special"), "others stay folded");
}

#[test]
fn a_call_whose_result_is_not_read_yet_shows_its_ends_and_asks_for_the_rest() {
    let mut transcript = Transcript::new();
    transcript.rows(80, 24);
    assert!(!transcript.viewer.needs_results(transcript.player.conversation.entries()));
    transcript.press("a");
    assert!(transcript.rows(80, 100).concat().contains("short too"));
    assert!(transcript.viewer.needs_results(transcript.player.conversation.entries()));
    let mut transcript = transcript.with_results();
    assert!(!transcript.viewer.needs_results(transcript.player.conversation.entries()));
    assert!(transcript.rows(80, 100).concat().contains("line 2990"));
}

#[test]
fn a_search_goes_on_from_each_match_and_has_no_end() {
    let mut transcript = Transcript::new();
    let results = (1..=100).map(|line| format!("line {line}{}\n", if line % 30 > 27 { " here" } else { "" }));
    let results = HashMap::from([(CallId::new("c2"), results.collect())]);
    transcript.viewer.set_results(results);
    transcript.rows(80, 24);
    // All matches of the last page are on it: those are passed one after the other.
    transcript.press("/here\n");
    let mut seen = Vec::new();
    for _ in 0..12 {
        let rows = transcript.rows(80, 24);
        seen.push(
            rows.iter()
                .find_map(|row| row.trim().strip_prefix("line ")?.split(' ').next()?.parse::<u32>().ok())
                .unwrap(),
        );
        transcript.press("n");
    }
    for first in [28, 58] {
        assert!(seen.iter().filter(|one| **one == first).count() >= 2, "{seen:?}");
    }
}

#[test]
fn a_key_with_control_is_no_letter_of_a_search() {
    let mut transcript = Transcript::new();
    transcript.press("/a");
    let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    transcript.viewer.handle_key(key, transcript.player.conversation.entries());
    let rows = transcript.rows(80, 24);
    assert!(rows[23].contains("/ searches"), "{}", rows[23]);
}
