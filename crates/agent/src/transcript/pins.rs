//! Texts that the user pinned: they stay whole when the conversation is shortened.

use journeyman_protocol::ReminderCategory;

use crate::AgentError;

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

/// Applies a queued message to the pinned texts. Messages of other categories change nothing.
pub(crate) fn apply_pin(pinned: &mut Vec<String>, category: ReminderCategory, message: &str) {
    match category {
        ReminderCategory::Pinned => {
            pinned.extend(message.strip_prefix(PINNED_PREFIX).map(str::to_owned));
        }
        ReminderCategory::Unpinned => {
            let text = message.strip_prefix(UNPINNED_PREFIX);
            pinned.retain(|pin| Some(pin.as_str()) != text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_bounded_and_come_and_go() {
        let mut pins = Vec::new();
        for number in 0..MAX_PINS {
            let message = pinned_message(&format!(" rule {number}\nmore\n"), &pins).unwrap();
            apply_pin(&mut pins, ReminderCategory::General, &message);
            assert_eq!(pins.len(), number, "another message that quotes it");
            apply_pin(&mut pins, ReminderCategory::Pinned, &message);
        }
        assert_eq!(pins[3], "rule 3\nmore");
        for refused in ["one more", " ", "rule 3\nmore", &"x".repeat(MAX_PIN_BYTES + 1)] {
            assert!(matches!(pinned_message(refused, &pins), Err(AgentError::NotPinned { .. })), "{refused}");
        }
        apply_pin(&mut pins, ReminderCategory::Unpinned, &unpinned_message("rule 3\nmore"));
        assert_eq!(pins.len(), MAX_PINS - 1);
        assert!(pinned_message("rule 3\nmore", &pins).is_ok());
    }
}
