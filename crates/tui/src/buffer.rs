//! A text that is edited, with a cursor between characters as people see them. Pure.

use unicode_segmentation::UnicodeSegmentation as _;

/// Maximum number of steps that can be taken back.
const MAX_UNDO_STEPS: usize = 200;
/// Maximum bytes of the text: more than any model reads at once.
const MAX_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// A movement of the cursor, or the end of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    /// One character back.
    Left,
    /// One character on.
    Right,
    /// To the beginning of the word, or of the one before.
    WordLeft,
    /// To the end of the word, or of the next one.
    WordRight,
    /// To the beginning of the next word.
    NextWord,
    /// To the beginning of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
    /// To the beginning of the text.
    Start,
    /// To the end of the text.
    End,
}

/// The text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffer {
    text: String,
    /// A byte position at the border of a character.
    cursor: usize,
    /// The text that was deleted last, for putting it in again.
    killed: String,
    undo: Vec<(String, usize)>,
    /// True while characters are typed one after the other, which are taken back together.
    is_typing: bool,
}

impl Buffer {
    /// Returns the text.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte position of the cursor.
    #[must_use]
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns the text before the cursor.
    #[must_use]
    pub(crate) fn text_before_cursor(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    /// Returns the text behind the cursor.
    #[must_use]
    pub(crate) fn text_after_cursor(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    /// Returns true if there is nothing but spaces.
    #[must_use]
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Replaces the text; the cursor goes to its end.
    pub(crate) fn set_text(&mut self, text: impl Into<String>) {
        self.save_undo_step(false);
        self.text = text.into();
        self.cursor = self.text.len();
    }

    /// Removes and returns the text.
    pub(crate) fn take_text(&mut self) -> String {
        self.undo.clear();
        (self.cursor, self.is_typing) = (0, false);
        std::mem::take(&mut self.text)
    }

    /// Inserts a text at the cursor, as far as there is room.
    pub(crate) fn insert(&mut self, text: &str) {
        let room = MAX_BUFFER_BYTES.saturating_sub(self.text.len());
        let text = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let is_word =
            text.chars().all(|character| !character.is_whitespace()) && text.graphemes(true).count() == 1;
        self.save_undo_step(is_word);
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // What is inserted may join the character before or behind.
        self.cursor = self.boundary_at_or_after(self.cursor);
    }

    /// Replaces the text from a byte position to the cursor.
    pub(crate) fn replace_before(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.cursor {
            self.save_undo_step(false);
            self.text.replace_range(start..self.cursor, text);
            self.cursor = self.boundary_at_or_after(start + text.len());
        }
    }

    /// Moves the cursor.
    pub(crate) fn move_by(&mut self, motion: Motion) {
        self.is_typing = false;
        self.cursor = self.motion_target(motion);
    }

    /// Moves the cursor to a byte position, or the next border of a character behind it.
    pub(crate) fn move_to(&mut self, position: usize) {
        self.is_typing = false;
        self.cursor = self.boundary_at_or_after(position.min(self.text.len()));
    }

    /// Deletes from the cursor to where the motion leads. Words and lines can be put in again.
    pub(crate) fn delete(&mut self, motion: Motion) {
        let target = self.motion_target(motion);
        let (start, end) = (self.cursor.min(target), self.cursor.max(target));
        // At the end of a line its line feed goes.
        let end =
            if start == end && motion == Motion::LineEnd { self.motion_target(Motion::Right) } else { end };
        if start == end {
            return;
        }
        self.save_undo_step(false);
        let deleted: String = self.text.drain(start..end).collect();
        if !matches!(motion, Motion::Left | Motion::Right) {
            self.killed = deleted;
        }
        self.cursor = self.boundary_at_or_after(start);
    }

    /// Inserts the text that was deleted last.
    pub(crate) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
    }

    /// Takes back the last change.
    pub(crate) fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            (self.text, self.cursor, self.is_typing) = (text, cursor, false);
        }
    }

    fn save_undo_step(&mut self, is_typing: bool) {
        if !(is_typing && self.is_typing) {
            if self.undo.len() >= MAX_UNDO_STEPS {
                self.undo.remove(0);
            }
            self.undo.push((self.text.clone(), self.cursor));
        }
        self.is_typing = is_typing;
    }

    fn motion_target(&self, motion: Motion) -> usize {
        let (before, behind) = (self.text_before_cursor(), self.text_after_cursor());
        match motion {
            Motion::Left => self.cursor - before.graphemes(true).next_back().map_or(0, str::len),
            Motion::Right => self.cursor + behind.graphemes(true).next().map_or(0, str::len),
            Motion::WordLeft => {
                let words = before.unicode_word_indices().next_back();
                words.map_or(0, |(start, _)| start)
            }
            Motion::WordRight => {
                let word = behind.unicode_word_indices().next();
                word.map_or(self.text.len(), |(start, word)| self.cursor + start + word.len())
            }
            Motion::NextWord => {
                let next = behind.unicode_word_indices().find(|(start, _)| *start > 0);
                next.map_or(self.text.len(), |(start, _)| self.cursor + start)
            }
            Motion::LineStart => before.rfind('\n').map_or(0, |end| end + 1),
            Motion::LineEnd => self.cursor + behind.find('\n').unwrap_or(behind.len()),
            Motion::Start => 0,
            Motion::End => self.text.len(),
        }
    }

    /// Returns the first border of a character at or behind a position.
    fn boundary_at_or_after(&self, position: usize) -> usize {
        let mut borders = self.text.grapheme_indices(true).map(|(start, _)| start);
        borders.find(|start| *start >= position).unwrap_or(self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.insert(text);
        buffer
    }

    /// The text with a bar where the cursor is.
    fn shown(buffer: &Buffer) -> String {
        format!("{}|{}", buffer.text_before_cursor(), buffer.text_after_cursor())
    }

    #[test]
    fn the_cursor_moves_by_characters_words_and_lines() {
        let mut buffer = buffer("one, two\nthree");
        for (motion, expected) in [
            (Motion::WordLeft, "one, two\n|three"),
            (Motion::Left, "one, two|\nthree"),
            (Motion::WordLeft, "one, |two\nthree"),
            (Motion::LineEnd, "one, two|\nthree"),
            (Motion::LineStart, "|one, two\nthree"),
            (Motion::WordRight, "one|, two\nthree"),
            (Motion::End, "one, two\nthree|"),
            (Motion::Right, "one, two\nthree|"),
            (Motion::Start, "|one, two\nthree"),
        ] {
            buffer.move_by(motion);
            assert_eq!(shown(&buffer), expected, "{motion:?}");
        }
    }

    #[test]
    fn a_character_is_what_a_person_sees() {
        let mut buffer = buffer("a👨‍👩‍👧é");
        buffer.move_by(Motion::Left);
        assert_eq!(shown(&buffer), "a👨‍👩‍👧|é");
        buffer.delete(Motion::Left);
        assert_eq!(shown(&buffer), "a|é");
        buffer.delete(Motion::Right);
        assert_eq!(shown(&buffer), "a|");
    }

    #[test]
    fn deleted_text_comes_back() {
        let mut buffer = buffer("one two");
        buffer.delete(Motion::WordLeft);
        assert_eq!(shown(&buffer), "one |");
        buffer.yank();
        buffer.yank();
        assert_eq!(shown(&buffer), "one twotwo|");
        buffer.undo();
        assert_eq!(shown(&buffer), "one two|");
        buffer.move_by(Motion::Start);
        buffer.delete(Motion::LineEnd);
        assert_eq!(shown(&buffer), "|");
        buffer.undo();
        assert_eq!(shown(&buffer), "|one two");
    }

    #[test]
    fn typed_words_are_taken_back_together() {
        let mut buffer = Buffer::default();
        "ab cd".chars().for_each(|character| buffer.insert(&character.to_string()));
        buffer.undo();
        assert_eq!(shown(&buffer), "ab |");
        buffer.undo();
        buffer.undo();
        assert_eq!(shown(&buffer), "|");
    }
}
