//! Output of a command made safe to show to a person and to a model.

/// The cleaner's position within an escape sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapeParserState {
    Text,
    /// After ESC, before its final byte.
    Escape,
    /// In a control sequence, until its final byte.
    Csi,
    /// In a string (OSC, DCS, SOS, PM, APC), until its terminator.
    String,
    /// After ESC within a string: a `\` ends it.
    StringEscape,
}

/// Removes what a terminal would act on and what a reader can't see: escape sequences (colours,
/// titles, OSC 52 clipboard writes), control characters except newline and tab, bidirectional
/// overrides, tag characters, variation selectors but for those of emoji, and what has no width.
/// Bytes that aren't UTF-8 become U+FFFD. Of a line that was overwritten, as progress bars and
/// spinners do by carriage returns, by going to the first column or by erasing the line, the last
/// version stays; a backspace takes back a character once another comes. Moving up never takes back
/// a line: nothing can be hidden so that was said before.
///
/// A string sequence ends at a newline even if unterminated, so it can't swallow what follows.
/// Linear in the input; cleaning twice changes nothing.
///
/// ```
/// let output = b"\x1b[31mred\x1b[0m 10%\r 20%\r\ndone\0\xff\n";
/// assert_eq!(journeyman_sandbox::clean_output(output), " 20%\ndone\u{fffd}\n");
/// ```
#[must_use]
pub fn clean_output(bytes: &[u8]) -> String {
    let mut cleaner = OutputCleaner {
        out: String::with_capacity(bytes.len()),
        line: 0,
        returned: false,
        back: 0,
        number: Some(0),
        state: EscapeParserState::Text,
    };
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(character) = rest.chars().next() {
            let plain = cleaner.push_plain_lines(rest);
            let taken = if plain == 0 { character.len_utf8() } else { plain };
            if plain == 0 {
                cleaner.push_character(character);
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        if !chunk.invalid().is_empty() {
            cleaner.push_character(char::REPLACEMENT_CHARACTER);
        }
    }
    cleaner.out
}

struct OutputCleaner {
    out: String,
    /// The start of the current line in `out`.
    line: usize,
    /// A carriage return was seen and nothing after it yet.
    returned: bool,
    /// The number of backspaces, likewise.
    back: usize,
    /// Of a control sequence that has one number or none as its parameter; `None` if it has
    /// anything else.
    number: Option<u16>,
    state: EscapeParserState,
}

impl OutputCleaner {
    /// Appends the lines of plain ASCII at the beginning of a text, and returns their length in
    /// bytes. Most output is plain.
    fn push_plain_lines(&mut self, text: &str) -> usize {
        if self.state != EscapeParserState::Text || self.returned || self.back > 0 {
            return 0;
        }
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
        let count = text.bytes().position(|byte| !is_plain(&byte)).unwrap_or(text.len());
        let plain = text.get(..count).unwrap_or_default();
        if let Some(end) = plain.rfind('\n') {
            self.line = self.out.len() + end + 1;
        }
        self.out.push_str(plain);
        count
    }

    fn push_character(&mut self, character: char) {
        self.state = match (self.state, character) {
            // ECMA-48: CSI parameters and intermediates, then one final byte.
            (EscapeParserState::Csi, ' '..='?') => self.add_parameter(character),
            (EscapeParserState::Csi, last @ '@'..='~') => self.apply_control_sequence(last),
            (EscapeParserState::Escape, '[') => self.begin_control_sequence(),
            (EscapeParserState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeParserState::String,
            (EscapeParserState::Escape, ' '..='/') => EscapeParserState::Escape,
            (EscapeParserState::Escape, '0'..='~') => EscapeParserState::Text,
            (EscapeParserState::String | EscapeParserState::StringEscape, '\u{7}' | '\u{9c}') => {
                EscapeParserState::Text
            }
            (EscapeParserState::String, '\u{1b}') | (EscapeParserState::StringEscape, '\u{1b}') => {
                EscapeParserState::StringEscape
            }
            (EscapeParserState::StringEscape, '\\') => EscapeParserState::Text,
            (EscapeParserState::String | EscapeParserState::StringEscape, other) if other != '\n' => {
                EscapeParserState::String
            }
            // Text, or a sequence broken off by something that can't be part of it.
            (_, other) => self.push_text_character(other),
        };
    }

    /// Handles the beginning of a control sequence.
    fn begin_control_sequence(&mut self) -> EscapeParserState {
        self.number = Some(0);
        EscapeParserState::Csi
    }

    fn add_parameter(&mut self, character: char) -> EscapeParserState {
        let digit = character.to_digit(10).and_then(|digit| u16::try_from(digit).ok());
        self.number =
            self.number.zip(digit).and_then(|(number, digit)| number.checked_mul(10)?.checked_add(digit));
        EscapeParserState::Csi
    }

    /// Handles the last character of a control sequence, which decides its meaning.
    fn apply_control_sequence(&mut self, last: char) -> EscapeParserState {
        // To the first column; erase all of the line, before it is written anew.
        if matches!((last, self.number), ('G', Some(0 | 1)) | ('K', Some(2))) {
            self.returned = true;
        }
        EscapeParserState::Text
    }

    fn push_text_character(&mut self, character: char) -> EscapeParserState {
        match character {
            '\u{1b}' => return EscapeParserState::Escape,
            '\u{9b}' => return self.begin_control_sequence(),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return EscapeParserState::String,
            '\r' => self.returned = true,
            '\u{8}' => self.back = self.back.saturating_add(1),
            '\n' => {
                self.returned = false;
                self.back = 0;
                self.out.push('\n');
                self.line = self.out.len();
            }
            hidden if is_invisible(hidden) => {}
            visible => {
                if self.returned {
                    self.out.truncate(self.line);
                    self.returned = false;
                    self.back = 0;
                }
                while self.back > 0 && self.out.len() > self.line {
                    self.out.pop();
                    self.back -= 1;
                }
                self.back = 0;
                self.out.push(visible);
            }
        }
        EscapeParserState::Text
    }
}

/// Returns true for control, direction and tag characters, and others without a width: they are
/// invisible, and can change how a text reads or carry hidden text. The joiner and the selectors
/// that emoji need are not among them.
fn is_invisible(character: char) -> bool {
    (character.is_control() && character != '\t' && character != '\n')
        || matches!(character,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn lines_at_once_are_as_one_character_after_the_other(
            text in "([a-z\\n\\t ]{0,9}|[\\r\u{8}\u{7}\u{1b}é\u{9b}]|\u{1b}\\[[0-9;]{0,2}[GKm]|\u{1b}\\][a-z]{0,3}){0,30}"
        ) {
            let mut slow = OutputCleaner { out: String::new(), line: 0, returned: false, back: 0, number: Some(0), state: EscapeParserState::Text };
            text.chars().for_each(|character| slow.push_character(character));
            proptest::prop_assert_eq!(clean_output(text.as_bytes()), slow.out);
        }
    }
}
