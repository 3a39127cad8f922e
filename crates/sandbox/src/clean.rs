//! Output of a command made safe to show to a person and to a model.

/// Where the cleaner is within an escape sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
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

/// Removes what a terminal would act on and what a reader can't see: escape sequences (colours, titles,
/// OSC 52 clipboard writes), control characters except newline and tab, bidirectional overrides, tag
/// characters and supplementary variation selectors. Bytes that aren't UTF-8 become U+FFFD. Of a line that
/// was overwritten by carriage returns, as progress bars do, the last version stays.
///
/// A string sequence ends at a newline even if unterminated, so it can't swallow what follows. Linear in the
/// input; cleaning twice changes nothing.
///
/// ```
/// assert_eq!(journeyman_sandbox::clean(b"\x1b[31mred\x1b[0m 10%\r 20%\r\ndone\0\xff\n"), " 20%\ndone\u{fffd}\n");
/// ```
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let mut cleaner =
        Cleaner { out: String::with_capacity(bytes.len()), line: 0, returned: false, state: State::Text };
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|character| cleaner.feed(character));
        if !chunk.invalid().is_empty() {
            cleaner.feed(char::REPLACEMENT_CHARACTER);
        }
    }
    cleaner.out
}

struct Cleaner {
    out: String,
    /// Where the current line begins in `out`.
    line: usize,
    /// A carriage return was seen and nothing after it yet.
    returned: bool,
    state: State,
}

impl Cleaner {
    fn feed(&mut self, character: char) {
        self.state = match (self.state, character) {
            // ECMA-48: CSI parameters and intermediates, then one final byte.
            (State::Csi, ' '..='?') => State::Csi,
            (State::Csi, '@'..='~') => State::Text,
            (State::Escape, '[') => State::Csi,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String,
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~') => State::Text,
            (State::String | State::StringEscape, '\u{7}' | '\u{9c}') => State::Text,
            (State::String, '\u{1b}') | (State::StringEscape, '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            (State::String | State::StringEscape, other) if other != '\n' => State::String,
            // Text, or a sequence broken off by something that can't be part of it.
            (_, other) => self.text(other),
        };
    }

    fn text(&mut self, character: char) -> State {
        match character {
            '\u{1b}' => return State::Escape,
            '\u{9b}' => return State::Csi,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return State::String,
            '\r' => self.returned = true,
            '\n' => {
                self.returned = false;
                self.out.push('\n');
                self.line = self.out.len();
            }
            hidden if is_hidden(hidden) => {}
            visible => {
                if self.returned {
                    self.out.truncate(self.line);
                    self.returned = false;
                }
                self.out.push(visible);
            }
        }
        State::Text
    }
}

/// Control, direction and tag characters: invisible, and able to make a text read as what it isn't.
fn is_hidden(character: char) -> bool {
    (character.is_control() && character != '\t' && character != '\n')
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}
