//! Keys that the person has given to actions, in place of the usual ones. Pure.
//!
//! A key that is given to an action counts as the usual key of that action wherever keys are read,
//! so that each part of the conversation knows the usual ones alone.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The actions that may have another key: the name, the usual key, and what it does.
pub(crate) const ACTIONS: [(&str, &str, &str); 13] = [
    ("send", "enter", "send"),
    ("newline", "alt-enter", "a further line (also Ctrl-J, or \\ at the end of a line)"),
    ("stop", "esc", "stop the work; twice: go back"),
    ("earlier", "up", "take a queued message back; earlier messages"),
    ("transcript", "ctrl-t", "the transcript: search, open blocks"),
    ("history", "ctrl-r", "search earlier messages"),
    ("editor", "ctrl-g", "write the message in $EDITOR"),
    ("undo", "ctrl-_", "take back the last change of the message"),
    ("complete", "tab", "take the selected completion; go to the question"),
    ("redraw", "ctrl-l", "draw everything anew"),
    ("suspend", "ctrl-z", "stop the program; fg goes on"),
    ("clear", "ctrl-c", "clear the line, or stop the work"),
    ("end", "ctrl-d", "end"),
];

/// The keys in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keymap {
    /// Keys that were given to actions, each with the usual key of its action.
    given: Vec<((KeyCode, KeyModifiers), (KeyCode, KeyModifiers))>,
    names: BTreeMap<&'static str, String>,
}

impl Keymap {
    /// Makes the keys of a configuration. Returns also what is wrong with it.
    #[must_use]
    pub(crate) fn new(configured: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let (mut keymap, mut problems) = (Self::default(), Vec::new());
        for (action, name) in configured {
            let Some((action, usual, _)) = ACTIONS.iter().find(|(known, ..)| known == action) else {
                let known: Vec<&str> = ACTIONS.iter().map(|(name, ..)| *name).collect();
                problems.push(format!(
                    "conversation.keys has no action `{action}`; there are {}",
                    known.join(", ")
                ));
                continue;
            };
            match (parse_key(name), parse_key(usual)) {
                (Some(key), Some(usual)) => {
                    keymap.given.push((key, usual));
                    keymap.names.insert(action, name.clone());
                }
                _ => problems.push(format!(
                    "conversation.keys.{action}: `{name}` is no key; write it like ctrl-t, alt-x, f5, esc or up"
                )),
            }
        }
        (keymap, problems)
    }

    /// Returns the usual key that a pressed one stands for, or a key without a meaning if its own
    /// action has another key now.
    #[must_use]
    pub(crate) fn translate(&self, key: KeyEvent) -> KeyEvent {
        let pressed = (key.code, key.modifiers);
        let stands_for = self.given.iter().find(|(given, _)| *given == pressed).map(|(_, usual)| *usual);
        let is_taken = || self.given.iter().any(|(_, usual)| *usual == pressed);
        match stands_for {
            Some((code, modifiers)) => KeyEvent { code, modifiers, ..key },
            None if is_taken() => KeyEvent { code: KeyCode::Null, ..key },
            None => key,
        }
    }

    /// Returns the keys as people read them, each with its action and what that does.
    #[must_use]
    pub(crate) fn describe(&self) -> Vec<(String, &'static str, &'static str)> {
        let key = |(action, usual, does): &(&'static str, &str, &'static str)| {
            (describe_key(self.names.get(action).map_or(usual, String::as_str)), *action, *does)
        };
        ACTIONS.iter().map(key).collect()
    }
}

/// Parses a key such as `ctrl-t`.
fn parse_key(name: &str) -> Option<(KeyCode, KeyModifiers)> {
    let lower = name.to_lowercase();
    let (mut modifiers, mut rest) = (KeyModifiers::NONE, lower.as_str());
    for (prefix, modifier) in
        [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)]
    {
        if let Some(key) = rest.strip_prefix(prefix) {
            (rest, modifiers) = (key, modifiers | modifier);
        }
    }
    let number = rest.strip_prefix('f').and_then(|number| number.parse::<u8>().ok());
    let code = match (rest, number) {
        (_, Some(number @ 1..=24)) => KeyCode::F(number),
        ("enter", _) => KeyCode::Enter,
        ("esc", _) => KeyCode::Esc,
        ("tab", _) => KeyCode::Tab,
        ("space", _) => KeyCode::Char(' '),
        ("backspace", _) => KeyCode::Backspace,
        ("delete", _) => KeyCode::Delete,
        ("insert", _) => KeyCode::Insert,
        ("home", _) => KeyCode::Home,
        ("end", _) => KeyCode::End,
        ("pageup", _) => KeyCode::PageUp,
        ("pagedown", _) => KeyCode::PageDown,
        ("up", _) => KeyCode::Up,
        ("down", _) => KeyCode::Down,
        ("left", _) => KeyCode::Left,
        ("right", _) => KeyCode::Right,
        (letter, _) => {
            let mut letters = letter.chars();
            let code = letters.next().map(KeyCode::Char)?;
            // A letter alone is a letter of the message.
            let is_key =
                letters.next().is_none() && modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            is_key.then_some(code)?
        }
    };
    Some((code, modifiers))
}

/// Writes a key as people read it: `ctrl-t` as `Ctrl-T`.
fn describe_key(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keymap(keys: &[(&str, &str)]) -> (Keymap, Vec<String>) {
        Keymap::new(&keys.iter().map(|(action, key)| ((*action).to_owned(), (*key).to_owned())).collect())
    }

    #[test]
    fn a_given_key_stands_for_the_usual_one() {
        let (keymap, problems) = keymap(&[("transcript", "Ctrl-O"), ("stop", "f2")]);
        assert_eq!(problems, Vec::<String>::new());
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        let (control, none) = (KeyModifiers::CONTROL, KeyModifiers::NONE);
        for (pressed, code, modifiers) in [
            (key(KeyCode::Char('o'), control), KeyCode::Char('t'), control),
            (key(KeyCode::Char('t'), control), KeyCode::Null, control),
            (key(KeyCode::F(2), none), KeyCode::Esc, none),
            (key(KeyCode::Char('o'), none), KeyCode::Char('o'), none),
            (key(KeyCode::Enter, none), KeyCode::Enter, none),
        ] {
            let translated = keymap.translate(pressed);
            assert_eq!((translated.code, translated.modifiers), (code, modifiers), "{pressed:?}");
        }
        assert!(keymap.describe().contains(&(
            "Ctrl-O".to_owned(),
            "transcript",
            "the transcript: search, open blocks"
        )));
    }

    #[test]
    fn all_usual_keys_are_keys_and_wrong_ones_are_named() {
        assert!(ACTIONS.iter().all(|(_, usual, _)| parse_key(usual).is_some()));
        let (keymap, problems) = keymap(&[("transcipt", "ctrl-o"), ("send", "x"), ("end", "ctrl-nothing")]);
        assert_eq!(keymap, Keymap::default());
        assert_eq!(problems.len(), 3, "{problems:#?}");
    }
}
