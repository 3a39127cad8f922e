//! The keys of vi for the message that is written: a small part, for fingers that know it. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::buffer::{Buffer, Motion};

/// The result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViEffect {
    /// The key means what it means without vi.
    Passed,
    /// The text or the cursor is another.
    Changed,
    /// The cursor goes to another row, or the text to another message of the history.
    Row(KeyCode),
}

/// The mode, and the beginning of a command of two letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ViKeys {
    is_normal: bool,
    pending: Option<char>,
}

impl ViKeys {
    /// Returns true in normal mode, where letters are commands.
    #[must_use]
    pub(crate) fn is_normal(self) -> bool {
        self.is_normal
    }

    /// Goes to insert mode, as for a new message.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, buffer: &mut Buffer) -> ViEffect {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return ViEffect::Passed;
        }
        match (key.code, self.is_normal) {
            (KeyCode::Esc, false) => {
                self.is_normal = true;
                // As vi does: the cursor is on a letter, not behind it.
                if !buffer.text_before_cursor().is_empty() && !buffer.text_before_cursor().ends_with('\n') {
                    buffer.move_by(Motion::Left);
                }
                ViEffect::Changed
            }
            (KeyCode::Char(letter), true) => self.run_normal_command(letter, buffer),
            _ => ViEffect::Passed,
        }
    }

    fn run_normal_command(&mut self, letter: char, buffer: &mut Buffer) -> ViEffect {
        match (self.pending.take(), letter) {
            (Some('d' | 'c'), 'd' | 'c') => delete_line(buffer, letter == 'd'),
            (Some(operator @ ('d' | 'c')), letter) => {
                // A change of a word leaves the space behind it.
                let motion = if operator == 'c' && letter == 'w' {
                    Some(Motion::WordRight)
                } else {
                    motion_of(letter)
                };
                let Some(motion) = motion else { return ViEffect::Changed };
                buffer.delete(motion);
                self.is_normal = operator == 'd';
                return ViEffect::Changed;
            }
            (Some('g'), 'g') => buffer.move_by(Motion::Start),
            (Some(_), _) => {}
            (None, 'd' | 'c' | 'g') => {
                self.pending = Some(letter);
                return ViEffect::Changed;
            }
            (None, 'j') => return ViEffect::Row(KeyCode::Down),
            (None, 'k') => return ViEffect::Row(KeyCode::Up),
            (None, 'x') => buffer.delete(Motion::Right),
            (None, 'X') => buffer.delete(Motion::Left),
            (None, 'D') => delete_to_line_end(buffer),
            (None, 'u') => buffer.undo(),
            (None, 'p') => buffer.yank(),
            (None, 'G') => buffer.move_by(Motion::End),
            (None, letter) => match motion_of(letter) {
                Some(motion) => buffer.move_by(motion),
                None => self.enter_insert_mode(letter, buffer),
            },
        }
        if letter == 'c' {
            self.is_normal = false;
        }
        ViEffect::Changed
    }

    /// Goes to insert mode by a letter that does; others mean nothing.
    fn enter_insert_mode(&mut self, letter: char, buffer: &mut Buffer) {
        match letter {
            'i' => {}
            'a' if buffer.text_after_cursor().starts_with('\n') => {}
            'a' => buffer.move_by(Motion::Right),
            'I' => buffer.move_by(Motion::LineStart),
            'A' => buffer.move_by(Motion::LineEnd),
            'o' => {
                buffer.move_by(Motion::LineEnd);
                buffer.insert("\n");
            }
            'O' => {
                buffer.move_by(Motion::LineStart);
                buffer.insert("\n");
                buffer.move_by(Motion::Left);
            }
            's' => buffer.delete(Motion::Right),
            'C' => delete_to_line_end(buffer),
            'S' => delete_line(buffer, false),
            _ => return,
        }
        self.is_normal = false;
    }
}

fn motion_of(letter: char) -> Option<Motion> {
    Some(match letter {
        'h' => Motion::Left,
        'l' => Motion::Right,
        'b' => Motion::WordLeft,
        'w' => Motion::NextWord,
        'e' => Motion::WordRight,
        '0' | '^' => Motion::LineStart,
        '$' => Motion::LineEnd,
        _ => return None,
    })
}

fn delete_to_line_end(buffer: &mut Buffer) {
    if !buffer.text_after_cursor().is_empty() && !buffer.text_after_cursor().starts_with('\n') {
        buffer.delete(Motion::LineEnd);
    }
}

/// Deletes the text of a line, and the line itself if wanted.
fn delete_line(buffer: &mut Buffer, with_line: bool) {
    buffer.move_by(Motion::LineStart);
    delete_to_line_end(buffer);
    if with_line {
        buffer.delete(if buffer.text_after_cursor().is_empty() { Motion::Left } else { Motion::Right });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after keys, with a bar where the cursor is, and `i` or `n` for the mode.
    fn typed(keys: &str) -> String {
        let (mut vi, mut buffer) = (ViKeys::default(), Buffer::default());
        buffer.insert("one two\nthree four");
        for letter in keys.chars() {
            let code = if letter == '\u{1b}' { KeyCode::Esc } else { KeyCode::Char(letter) };
            if vi.handle_key(KeyEvent::new(code, KeyModifiers::NONE), &mut buffer) == ViEffect::Passed {
                buffer.insert(&letter.to_string());
            }
        }
        format!(
            "{}{}|{}",
            if vi.is_normal() { 'n' } else { 'i' },
            buffer.text_before_cursor(),
            buffer.text_after_cursor()
        )
    }

    #[test]
    fn letters_are_commands_in_normal_mode() {
        for (keys, expected) in [
            ("!", "ione two\nthree four!|"),
            ("\u{1b}", "none two\nthree fou|r"),
            ("\u{1b}ggw", "none |two\nthree four"),
            ("\u{1b}ggdw", "n|two\nthree four"),
            ("\u{1b}ggcw1", "i1| two\nthree four"),
            ("\u{1b}0D", "none two\n|"),
            ("\u{1b}dd", "none two|"),
            ("\u{1b}ggdd", "n|three four"),
            ("\u{1b}cc5", "ione two\n5|"),
            ("\u{1b}ggo-", "ione two\n-|\nthree four"),
            ("\u{1b}ggO-", "i-|\none two\nthree four"),
            ("\u{1b}A!\u{1b}x", "none two\nthree four|"),
            ("\u{1b}bxxu", "none two\nthree |our"),
            ("\u{1b}ggCx", "ix|\nthree four"),
        ] {
            assert_eq!(typed(keys), expected, "{keys:?}");
        }
    }
}
