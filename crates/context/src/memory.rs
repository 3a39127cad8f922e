//! Notes that outlive sessions: what the user asked to keep, or a model proposed and the user
//! accepted.
//!
//! A note may rest on lines of a file. It is checked when it is used, and set aside where the lines
//! are gone: a note about code that has changed misleads.

use journeyman_protocol::{ContentHash, RelPath, TokenCounter as _, Tokens, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::TokenEstimator;

/// Tokens of all notes in a first request.
const MAX_NOTES_TOKENS: Tokens = Tokens(1_000);
/// Maximum characters of a note.
pub const MAX_NOTE_CHARS: usize = 1_000;
/// Maximum lines that a note rests on.
const MAX_ANCHOR_LINES: u32 = 400;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNote {
    /// Its number, by which the user names it; unique among the notes of a file.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// False for a proposal of a model that the user hasn't accepted.
    pub accepted: bool,
    /// The lines that it rests on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<NoteAnchor>,
    /// The time when it was made.
    pub created: UnixMillis,
}

/// Lines of a file that a note rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteAnchor {
    /// The file.
    pub path: RelPath,
    /// The first line, 1-based, when the note was made.
    pub first_line: u32,
    /// The number of lines.
    pub lines: u32,
    /// The hash of the lines, without white space at their ends.
    pub hash: ContentHash,
}

/// The state of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteState {
    /// It holds. The line is where its lines begin now.
    Holds(Option<u32>),
    /// A model proposed it.
    Proposed,
    /// The lines that it rests on have changed or are gone.
    Outdated,
}

impl NoteAnchor {
    /// Returns an anchor on lines of a text; `None` for lines that the text lacks, or too many.
    #[must_use]
    pub fn new(path: RelPath, text: &str, first_line: u32, last_line: u32) -> Option<Self> {
        let lines = last_line.checked_sub(first_line)?.checked_add(1)?;
        let all: Vec<&str> = text.lines().collect();
        let own = line_window(&all, first_line, lines)?;
        (lines <= MAX_ANCHOR_LINES).then(|| Self { path, first_line, lines, hash: hash_lines(own) })
    }

    /// Returns the line where the lines begin in a text: where they were, or else the nearest place
    /// that has the same.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<u32> {
        let all: Vec<&str> = text.lines().collect();
        let last = u32::try_from(all.len()).ok()?.checked_sub(self.lines)?.checked_add(1)?;
        let is_there =
            |line: &u32| line_window(&all, *line, self.lines).is_some_and(|own| hash_lines(own) == self.hash);
        if is_there(&self.first_line) {
            return Some(self.first_line);
        }
        (1..=last).filter(is_there).min_by_key(|line| line.abs_diff(self.first_line))
    }
}

impl MemoryNote {
    /// Checks a note against the files as they are; `read` returns a file's text.
    #[must_use]
    pub fn check(&self, read: &dyn Fn(&RelPath) -> Option<String>) -> NoteState {
        if !self.accepted {
            return NoteState::Proposed;
        }
        match &self.anchor {
            None => NoteState::Holds(None),
            Some(anchor) => match read(&anchor.path).and_then(|text| anchor.find(&text)) {
                Some(line) => NoteState::Holds(Some(line)),
                None => NoteState::Outdated,
            },
        }
    }
}

/// Returns the notes that hold, as lines for the model, the newest ones first where not all fit
/// into `room`.
#[must_use]
pub fn notes_text(notes: &[MemoryNote], room: Tokens, read: &dyn Fn(&RelPath) -> Option<String>) -> String {
    let mut lines = Vec::new();
    let mut left = MAX_NOTES_TOKENS.min(room).0;
    let mut newest: Vec<&MemoryNote> = notes.iter().rev().collect();
    newest.sort_by_key(|note| std::cmp::Reverse(note.created));
    for note in newest {
        let NoteState::Holds(line) = note.check(read) else { continue };
        let text: String = note.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let place = note.anchor.as_ref().zip(line);
        let place = place.map(|(anchor, line)| format!(" ({}:{line})", anchor.path)).unwrap_or_default();
        let line = format!("- {text}{place}\n");
        let cost = TokenEstimator.count(&line).0;
        if cost > left {
            break;
        }
        left -= cost;
        lines.push(line);
    }
    lines.reverse();
    lines.concat()
}

fn line_window<'a, 'b>(all: &'b [&'a str], first_line: u32, lines: u32) -> Option<&'b [&'a str]> {
    let begin = first_line.checked_sub(1)? as usize;
    all.get(begin..begin.checked_add(lines as usize)?).filter(|own| !own.is_empty())
}

fn hash_lines(lines: &[&str]) -> ContentHash {
    let text: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    ContentHash::of(text.join("\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\nb\nretries = 3\nc\nd\n";

    fn note(anchor: Option<NoteAnchor>) -> MemoryNote {
        MemoryNote {
            id: 1,
            text: "retries are\n per host".to_owned(),
            accepted: true,
            anchor,
            created: UnixMillis(1),
        }
    }

    fn anchored() -> MemoryNote {
        let path = RelPath::parse("net.py").unwrap();
        note(NoteAnchor::new(path, TEXT, 2, 3))
    }

    #[test]
    fn a_note_moves_with_its_lines_and_is_set_aside_when_they_change() {
        let check = |text: Option<&str>| anchored().check(&|_| text.map(str::to_owned));
        assert_eq!(check(Some(TEXT)), NoteState::Holds(Some(2)));
        assert_eq!(check(Some(&format!("new\n\n{TEXT}"))), NoteState::Holds(Some(4)));
        assert_eq!(check(Some(&TEXT.replace("b\n", "b  \n"))), NoteState::Holds(Some(2)));
        assert_eq!(check(Some(&TEXT.replace('3', "4"))), NoteState::Outdated);
        assert_eq!(check(Some("")), NoteState::Outdated);
        assert_eq!(check(None), NoteState::Outdated);
        let proposed = MemoryNote { accepted: false, ..note(None) };
        assert_eq!(proposed.check(&|_| None), NoteState::Proposed);
    }

    #[test]
    fn an_anchor_needs_lines() {
        let path = || RelPath::parse("net.py").unwrap();
        for (first, last) in [(0, 1), (3, 2), (4, 9), (1, u32::MAX)] {
            assert_eq!(NoteAnchor::new(path(), TEXT, first, last), None, "{first}-{last}");
        }
    }

    #[test]
    fn only_notes_that_hold_are_told_and_the_newest_win() {
        let read = |_: &RelPath| Some(TEXT.to_owned());
        let proposed = MemoryNote { accepted: false, ..note(None) };
        assert_eq!(
            notes_text(&[anchored(), proposed], MAX_NOTES_TOKENS, &read),
            "- retries are per host (net.py:2)\n"
        );
        let many: Vec<MemoryNote> =
            (0..900).map(|id| MemoryNote { id, text: format!("note {id}"), ..note(None) }).collect();
        let text = notes_text(&many, MAX_NOTES_TOKENS, &read);
        assert!(text.ends_with("- note 899\n") && !text.contains("note 1\n"));
        assert!(TokenEstimator.count(&text) <= MAX_NOTES_TOKENS);
        // The user's notes for every project come before those of the project.
        let own = MemoryNote { text: "the newest".to_owned(), created: UnixMillis(2), ..note(None) };
        let text = notes_text(&[&[own], &many[..]].concat(), MAX_NOTES_TOKENS, &read);
        assert!(text.ends_with("- note 899\n- the newest\n"), "{text}");
    }
}
