//! Texts that the user pinned: they stay whole when the conversation is shortened.

use journeyman_protocol::ReminderCategory;

use crate::AgentError;
use crate::transcript::record::{MessageId, QueuedMessage, Record};

/// Maximum number of pinned texts of a session.
const MAX_PINS: usize = 20;
/// Maximum bytes of a pinned text.
const MAX_PIN_BYTES: usize = 2_000;
/// The beginnings of the messages that tell the model; the text follows.
const PINNED_PREFIX: &str = "The user pinned this; it holds for the whole session:\n";
const UNPINNED_PREFIX: &str = "The user no longer pins this:\n";

/// Returns the message that pins a text, if it may be pinned beside the others.
pub(crate) fn pinned_message(text: &str, others: &[String]) -> Result<String, AgentError> {
    let refuse = |reason: String| Err(AgentError::NotPinned { reason });
    let text = text.trim();
    if text.is_empty() {
        return refuse("there is no text".to_owned());
    }
    if text.len() > MAX_PIN_BYTES {
        return refuse(format!(
            "it has {} bytes, and a pinned text at most {MAX_PIN_BYTES}, because every request has it",
            text.len()
        ));
    }
    if others.iter().any(|other| other == text) {
        return refuse("it is pinned already".to_owned());
    }
    if others.len() >= MAX_PINS {
        return refuse(format!("{MAX_PINS} texts are pinned, which is the most"));
    }
    Ok(format!("{PINNED_PREFIX}{text}"))
}

/// Returns the message that unpins a text.
pub(crate) fn unpinned_message(text: &str) -> String {
    format!("{UNPINNED_PREFIX}{text}")
}

/// Returns the pinned text of a message that pins one.
pub(crate) fn pinned_text(message: &QueuedMessage) -> Option<&str> {
    (message.category == ReminderCategory::Pinned).then(|| message.text.strip_prefix(PINNED_PREFIX))?
}

/// The pinned texts of a session, oldest first, by the records of its log.
#[derive(Debug, Default)]
pub(crate) struct PinnedTexts(Vec<(MessageId, String)>);

impl PinnedTexts {
    /// The kinds of records that change them.
    pub(crate) const RECORD_KINDS: [&str; 2] = ["queued", "withdrawn"];

    /// Applies a record. Records of other kinds change nothing.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Queued(message) => match message.category {
                ReminderCategory::Pinned => {
                    let text = pinned_text(message).unwrap_or_default();
                    // A fork repeats those that were waiting.
                    if !text.is_empty() && self.0.iter().all(|(id, _)| *id != message.id) {
                        self.0.push((message.id, text.to_owned()));
                    }
                }
                ReminderCategory::Unpinned => {
                    let text = message.text.strip_prefix(UNPINNED_PREFIX);
                    self.0.retain(|(_, pinned)| Some(pinned.as_str()) != text);
                }
                _ => {}
            },
            Record::Withdrawn { id } => self.0.retain(|(pinned, _)| pinned != id),
            _ => {}
        }
    }

    /// Returns the texts.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.0.into_iter().map(|(_, text)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::MessageKind;

    use super::*;

    fn queued(id: u64, category: ReminderCategory, text: String) -> Record {
        let kind = MessageKind::System;
        Record::Queued(QueuedMessage { id: MessageId(id), kind, category, text, images: Vec::new() })
    }

    fn texts(records: &[Record]) -> Vec<String> {
        let mut pinned = PinnedTexts::default();
        records.iter().for_each(|record| pinned.apply(record));
        pinned.into_texts()
    }

    #[test]
    fn pins_are_bounded_and_come_and_go() {
        let mut records = Vec::new();
        for number in 0..MAX_PINS {
            let pins = texts(&records);
            let message = pinned_message(&format!(" rule {number}\nmore\n"), &pins).unwrap();
            let id = 10 + number as u64;
            records.push(queued(100 + id, ReminderCategory::General, message.clone()));
            assert_eq!(texts(&records).len(), number, "another message that quotes it");
            records.push(queued(id, ReminderCategory::Pinned, message));
        }
        let pins = texts(&records);
        assert_eq!(pins[3], "rule 3\nmore");
        for refused in ["one more", " ", "rule 3\nmore", &"x".repeat(MAX_PIN_BYTES + 1)] {
            assert!(matches!(pinned_message(refused, &pins), Err(AgentError::NotPinned { .. })), "{refused}");
        }
        records.push(queued(5, ReminderCategory::Unpinned, unpinned_message("rule 3\nmore")));
        assert_eq!(texts(&records).len(), MAX_PINS - 1);
        assert!(pinned_message("rule 3\nmore", &texts(&records)).is_ok());
        records.push(Record::Withdrawn { id: MessageId(14) });
        assert!(!texts(&records).contains(&"rule 4\nmore".to_owned()), "a hook has refused it");
    }

    #[test]
    fn a_pin_that_a_fork_repeats_is_one() {
        let pin = queued(1, ReminderCategory::Pinned, pinned_message("a", &[]).unwrap());
        assert_eq!(texts(&[pin.clone(), pin]), ["a"]);
    }
}
