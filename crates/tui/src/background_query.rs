//! The question for the colour behind the text, and its answer among the keys.
//!
//! The answer comes by the way of the keys, at any time or never. Nobody waits for it: what looks
//! like its beginning is held back until it is the whole answer, which is none of the keys, or
//! something else, which is passed on.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use crate::theme::BackgroundBrightness;

/// Asks for the colour. Terminals that don't know the question leave it out.
pub(crate) const BACKGROUND_QUERY: &str = "\x1b]11;?\x1b\\";
/// The beginning of an answer as keys: `ESC ]` reads as Alt and a bracket.
const ANSWER_PREFIX: &str = "11;rgb:";
/// Maximum letters of an answer: three numbers of four digits.
const MAX_ANSWER_CHARS: usize = ANSWER_PREFIX.len() + 16;

/// Finds the answer among events.
#[derive(Debug, Default)]
pub(crate) struct BackgroundAnswerFilter {
    is_armed: bool,
    /// The events of an answer as far as it has come.
    held: Vec<Event>,
    letters: String,
}

/// The result of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilterResult {
    /// The event may be a part of the answer.
    Held,
    /// These events are no answer.
    Passed(Vec<Event>),
    /// The answer is complete.
    Answered(BackgroundBrightness),
}

impl BackgroundAnswerFilter {
    /// Begins to look for an answer.
    pub(crate) fn arm(&mut self) {
        self.is_armed = true;
    }

    /// Handles an event.
    pub(crate) fn filter(&mut self, event: Event) -> FilterResult {
        let key = match &event {
            Event::Key(key) if self.is_armed => Some(*key),
            _ => None,
        };
        let Some(KeyEvent { code: KeyCode::Char(letter), modifiers, .. }) = key else {
            return self.pass_events(event);
        };
        let is_end = !self.held.is_empty()
            && (letter == '\\' && modifiers == KeyModifiers::ALT
                || letter == 'g' && modifiers == KeyModifiers::CONTROL);
        if is_end {
            self.is_armed = false;
            let Some(ground) = parse_color(&self.letters) else { return self.pass_events(event) };
            self.held.clear();
            return FilterResult::Answered(ground);
        }
        let is_part = match self.held.is_empty() {
            true => letter == ']' && modifiers == KeyModifiers::ALT,
            false => {
                let place = self.letters.len();
                let is_known = match ANSWER_PREFIX.as_bytes().get(place) {
                    Some(expected) => u32::from(letter) == u32::from(*expected),
                    None => letter.is_ascii_hexdigit() || letter == '/',
                };
                self.letters.push(letter);
                is_known && place < MAX_ANSWER_CHARS
            }
        };
        if !is_part {
            return self.pass_events(event);
        }
        self.held.push(event);
        FilterResult::Held
    }

    fn pass_events(&mut self, event: Event) -> FilterResult {
        self.letters.clear();
        let mut events = std::mem::take(&mut self.held);
        events.push(event);
        FilterResult::Passed(events)
    }
}

/// Parses `11;rgb:RRRR/GGGG/BBBB` with one to four digits for each colour.
fn parse_color(answer: &str) -> Option<BackgroundBrightness> {
    let mut brightness = 0.0;
    let mut parts = answer.strip_prefix(ANSWER_PREFIX)?.split('/');
    // The eye sees green best and blue least (ITU-R BT.601).
    for weight in [0.299, 0.587, 0.114] {
        let digits = parts.next()?;
        let value = u16::from_str_radix(digits, 16).ok()?;
        let max = 16_f64.powi(i32::try_from(digits.len()).ok()?) - 1.0;
        brightness += weight * f64::from(value) / max;
    }
    parts.next().is_none().then_some(if brightness < 0.5 {
        BackgroundBrightness::Dark
    } else {
        BackgroundBrightness::Light
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, end: KeyEvent) -> Vec<Event> {
        let first = KeyEvent::new(KeyCode::Char(']'), KeyModifiers::ALT);
        let letters = text.chars().map(|letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
        std::iter::once(first).chain(letters).chain([end]).map(Event::Key).collect()
    }

    /// Passes events through a filter. Returns the answer, and what is left of the events.
    fn filter(events: &[Event], is_armed: bool) -> (Option<BackgroundBrightness>, Vec<Event>) {
        let mut filter = BackgroundAnswerFilter { is_armed, ..BackgroundAnswerFilter::default() };
        let (mut ground, mut passed) = (None, Vec::new());
        for event in events {
            match filter.filter(event.clone()) {
                FilterResult::Held => {}
                FilterResult::Passed(events) => passed.extend(events),
                FilterResult::Answered(answer) => ground = Some(answer),
            }
        }
        (ground, passed)
    }

    #[test]
    fn an_answer_is_found_and_everything_else_passed_on() {
        let end = KeyEvent::new(KeyCode::Char('\\'), KeyModifiers::ALT);
        let bell = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL);
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        for (text, end, is_armed, expected) in [
            ("11;rgb:1e1e/1e1e/2e2e", end, true, Some(BackgroundBrightness::Dark)),
            ("11;rgb:ffff/ffff/ffff", bell, true, Some(BackgroundBrightness::Light)),
            ("11;rgb:f/f/e", end, true, Some(BackgroundBrightness::Light)),
            ("11;rgb:ff/ff", end, true, None),
            ("11;rgb:12345/1/1", end, true, None),
            ("1 is typed", enter, true, None),
            ("11;rgb:ffff/ffff/ffff/ffff/ffff", end, true, None),
            ("11;rgb:ffff/ffff/ffff", end, false, None),
        ] {
            let mut events = keys(text, end);
            let behind = Event::Key(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE));
            events.push(behind.clone());
            let expected = (expected, if expected.is_some() { vec![behind] } else { events.clone() });
            assert_eq!(filter(&events, is_armed), expected, "{text}");
        }
    }
}
