//! Events from a tool's arguments while their JSON grows.

use crate::formats::stream::{MAX_SHOWN_NAME, StreamEvent};
use crate::formats::tool;

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Path,
    Old,
    New,
    Other,
}

/// Follows the strings of a JSON text and their keys.
#[derive(Debug)]
pub(crate) struct JsonStream {
    outer: Option<String>,
    edit: usize,
    /// The edit has a text to find or to put.
    begun: bool,
    in_string: bool,
    escape: Escape,
    /// The string that is being read, or that was read last and may be a key.
    text: String,
    /// What the string is that comes after a colon.
    role: Option<Role>,
    depth: usize,
    /// How deep the object of the present edit lies.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// Digits of `\u` read so far, their value, and the high half of a pair before them.
    Unicode(u8, u32),
}

impl JsonStream {
    pub(crate) fn new(outer: Option<String>) -> Self {
        Self {
            outer,
            edit: 0,
            begun: false,
            in_string: false,
            escape: Escape::None,
            text: String::new(),
            role: None,
            depth: 0,
            at: 0,
        }
    }

    pub(crate) fn push(&mut self, chunk: &str, events: &mut Vec<StreamEvent>) {
        let mut rest = chunk;
        loop {
            // The plain part of a string goes over at once.
            if self.in_string && self.escape == Escape::None {
                let plain = memchr::memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
                self.text.push_str(rest.get(..plain).unwrap_or_default());
                rest = rest.get(plain..).unwrap_or_default();
            }
            let mut characters = rest.chars();
            let Some(c) = characters.next() else { break };
            rest = characters.as_str();
            if self.in_string { self.in_string(c, events) } else { self.between(c, events) }
        }
        self.grow(events);
    }

    /// Gives out what has come of a replacement.
    fn grow(&mut self, events: &mut Vec<StreamEvent>) {
        if self.in_string && self.role == Some(Role::New) && !self.text.is_empty() {
            self.begin(events);
            events.push(StreamEvent::Replacement { edit: self.edit, text: std::mem::take(&mut self.text) });
        }
    }

    fn begin(&mut self, events: &mut Vec<StreamEvent>) {
        if !self.begun {
            self.begun = true;
            self.at = self.depth;
            if let Some(path) = self.outer.clone() {
                events.push(StreamEvent::File { edit: self.edit, path });
            }
        }
    }

    fn in_string(&mut self, c: char, events: &mut Vec<StreamEvent>) {
        match self.escape {
            Escape::None => match c {
                '\\' => self.escape = Escape::Begun,
                '"' => self.end_string(events),
                c => self.text.push(c),
            },
            Escape::Begun => {
                self.escape = Escape::None;
                match c {
                    'n' => self.text.push('\n'),
                    't' => self.text.push('\t'),
                    'r' => self.text.push('\r'),
                    'b' => self.text.push('\u{8}'),
                    'f' => self.text.push('\u{c}'),
                    'u' => self.escape = Escape::Unicode(0, 0),
                    c => self.text.push(c),
                }
            }
            Escape::Unicode(count, value) => {
                let value = value * 16 + c.to_digit(16).unwrap_or_default();
                if count < 3 {
                    self.escape = Escape::Unicode(count + 1, value);
                } else {
                    self.escape = Escape::None;
                    // One half of a pair is shown as what it is: unknown.
                    self.text.push(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
            }
        }
    }

    fn end_string(&mut self, events: &mut Vec<StreamEvent>) {
        self.grow(events);
        self.in_string = false;
        match self.role.take() {
            Some(Role::Path) => {
                let path = std::mem::take(&mut self.text);
                self.outer = (path.len() <= MAX_SHOWN_NAME).then_some(path);
                if self.begun && self.outer.is_some() {
                    let path = self.outer.clone().unwrap_or_default();
                    events.push(StreamEvent::File { edit: self.edit, path });
                }
            }
            Some(Role::Old) => {
                self.begin(events);
                events.push(StreamEvent::Search { edit: self.edit, text: std::mem::take(&mut self.text) });
            }
            Some(Role::New) => self.begin(events),
            _ => {}
        }
    }

    fn between(&mut self, c: char, events: &mut Vec<StreamEvent>) {
        match c {
            '"' => {
                self.text.clear();
                self.in_string = true;
            }
            ':' => self.role = Some(role(&self.text)),
            ',' => self.role = None,
            '{' | '[' => {
                self.role = None;
                self.depth += 1;
            }
            '}' | ']' => {
                if c == '}' && self.begun && self.depth <= self.at {
                    events.push(StreamEvent::Complete { edit: self.edit });
                    self.edit += 1;
                    self.begun = false;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }
}

fn role(key: &str) -> Role {
    if tool::PATH.contains(&key) {
        Role::Path
    } else if tool::OLD.contains(&key) {
        Role::Old
    } else if tool::NEW.contains(&key) || tool::WHOLE.contains(&key) || key == "insert_text" {
        Role::New
    } else {
        Role::Other
    }
}
