//! Long outputs of a session's commands, so that what a result left out can be read on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use journeyman_protocol::CallId;

use crate::ToolError;

/// Maximum bytes held in all: two outputs of the largest size. The agent itself has 40 MiB.
const HELD_BYTES: usize = 8 * 1024 * 1024;

/// The outputs that were too long for their results, newest last; the oldest give way.
#[derive(Debug, Default)]
pub struct Outputs {
    held: Mutex<VecDeque<(CallId, Arc<str>)>>,
}

impl Outputs {
    /// Holds `text` as the output of `call`.
    pub fn store_output(&self, call: &CallId, text: String) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(other, _)| other != call);
        held.push_back((call.clone(), text.into()));
        while held.len() > 1 && held.iter().map(|(_, text)| text.len()).sum::<usize>() > HELD_BYTES {
            held.pop_front();
        }
    }

    /// The output of `call`.
    ///
    /// # Errors
    /// [`ToolError::NoOutput`] when it is not held.
    pub fn get(&self, call: &str) -> Result<Arc<str>, ToolError> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = held.iter().find(|(id, _)| id.as_str() == call) {
            return Ok(Arc::clone(text));
        }
        let names: Vec<&str> = held.iter().map(|(id, _)| id.as_str()).collect();
        let held = if names.is_empty() { String::new() } else { format!(" (only of {})", names.join(", ")) };
        Err(ToolError::NoOutput { call: call.to_owned(), held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way() {
        let outputs = Outputs::default();
        for call in ["a", "b", "c"] {
            outputs.store_output(&CallId::new(call), call.repeat(HELD_BYTES / 2));
        }
        assert!(outputs.get("c").is_ok() && outputs.get("b").is_ok());
        let error = outputs.get("a").unwrap_err().to_string();
        assert_eq!(error, "no output of a call `a` is held (only of b, c); run the command again");
    }

    #[test]
    fn one_output_is_held_whatever_its_size() {
        let outputs = Outputs::default();
        outputs.store_output(&CallId::new("a"), "x".repeat(HELD_BYTES + 1));
        assert!(outputs.get("a").is_ok());
    }
}
