//! Long outputs and earlier results of the session's calls, which the model can read again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use journeyman_protocol::{CallId, ImageData};

use crate::ToolError;

/// Maximum bytes held in all: two outputs of the largest size. The agent itself has 40 MiB.
const MAX_HELD_BYTES: usize = 8 * 1024 * 1024;
/// Maximum bytes held while outputs of calls that run in parallel are not in the log yet.
const MAX_UNLOGGED_BYTES: usize = 64 * 1024 * 1024;

/// An output, or the result of an earlier call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecalledOutput {
    /// Its texts, with line breaks between them.
    pub text: Arc<str>,
    /// Its images.
    pub images: Vec<ImageData>,
}

impl From<Arc<str>> for RecalledOutput {
    fn from(text: Arc<str>) -> Self {
        Self { text, images: Vec::new() }
    }
}

/// Reads the result of an earlier call from the session's log; `None` if there is none.
pub type RecallCallback = Arc<dyn Fn(CallId) -> BoxFuture<'static, Option<RecalledOutput>> + Send + Sync>;

/// Outputs that were too long for their results; the oldest are dropped first, once they are in the
/// session's log, from which dropped outputs are read.
#[derive(Default)]
pub struct Outputs {
    /// The oldest first.
    held: Mutex<VecDeque<HeldOutput>>,
    recall: Option<RecallCallback>,
}

struct HeldOutput {
    call: CallId,
    text: Arc<str>,
    is_logged: bool,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

impl Outputs {
    /// Creates the outputs of a session. `recall` reads earlier results from its log.
    #[must_use]
    pub fn with_recall(recall: RecallCallback) -> Self {
        Self { recall: Some(recall), ..Self::default() }
    }

    /// Keeps `text` as the output of `call`.
    pub fn store_output(&self, call: &CallId, text: String) {
        let mut held = self.lock();
        held.retain(|other| other.call != *call);
        held.push_back(HeldOutput { call: call.clone(), text: text.into(), is_logged: false });
        drop_oldest(&mut held);
    }

    /// Returns the output of a call that has yet to be logged, once.
    pub fn take_unlogged(&self, call: &CallId) -> Option<Arc<str>> {
        let mut held = self.lock();
        let output = held.iter_mut().find(|other| other.call == *call && !other.is_logged)?;
        output.is_logged = true;
        let text = Arc::clone(&output.text);
        drop_oldest(&mut held);
        Some(text)
    }

    /// Returns the output of `call`, or the result that the model got.
    ///
    /// # Errors
    /// [`ToolError::NoOutput`] if there is none.
    pub async fn read(&self, call: &str) -> Result<RecalledOutput, ToolError> {
        let id = CallId::new(call);
        let found = self.lock().iter().find(|held| held.call == id).map(|held| Arc::clone(&held.text));
        if let Some(text) = found {
            return Ok(text.into());
        }
        let recalled = match &self.recall {
            Some(recall) => recall(id).await,
            None => None,
        };
        recalled.ok_or_else(|| ToolError::NoOutput { call: call.to_owned() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<HeldOutput>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the oldest outputs in the log until the rest has room.
fn drop_oldest(held: &mut VecDeque<HeldOutput>) {
    loop {
        let bytes: usize = held.iter().map(|output| output.text.len()).sum();
        let oldest = match held.iter().position(|output| output.is_logged) {
            Some(oldest) if bytes > MAX_HELD_BYTES => oldest,
            None if bytes > MAX_UNLOGGED_BYTES => 0,
            _ => return,
        };
        if held.len() == 1 {
            return;
        }
        held.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn read(outputs: &Outputs, call: &str) -> Result<Arc<str>, ToolError> {
        outputs.read(call).now_or_never().unwrap().map(|output| output.text)
    }

    #[test]
    fn the_oldest_give_way() {
        let outputs = Outputs::default();
        for call in ["a", "b", "c"] {
            outputs.store_output(&CallId::new(call), call.repeat(MAX_HELD_BYTES / 2));
            outputs.take_unlogged(&CallId::new(call)).unwrap();
        }
        assert!(read(&outputs, "c").is_ok() && read(&outputs, "b").is_ok());
        let error = read(&outputs, "a").unwrap_err().to_string();
        assert_eq!(error, "there is no output of a call `a` in this session; run the command again");
    }

    #[test]
    fn one_output_is_held_whatever_its_size() {
        let outputs = Outputs::default();
        outputs.store_output(&CallId::new("a"), "x".repeat(MAX_HELD_BYTES + 1));
        assert!(read(&outputs, "a").is_ok());
    }

    #[test]
    fn outputs_of_parallel_calls_stay_until_they_are_logged() {
        let outputs = Outputs::default();
        let calls = ["a", "b", "c"].map(CallId::new);
        for call in &calls {
            outputs.store_output(call, call.as_str().repeat(MAX_HELD_BYTES / 2));
        }
        for call in &calls {
            assert!(
                outputs.take_unlogged(call).is_some_and(|text| text.starts_with(call.as_str())),
                "{call}"
            );
        }
        assert!(read(&outputs, "a").is_err() && read(&outputs, "b").is_ok() && read(&outputs, "c").is_ok());
    }

    #[test]
    fn what_gave_way_is_read_from_the_log() {
        let recall: RecallCallback = Arc::new(|call| {
            let text = (call.as_str() == "a").then(|| RecalledOutput::from(Arc::from("from the log")));
            std::future::ready(text).boxed()
        });
        let outputs = Outputs::with_recall(recall);
        assert_eq!(&*read(&outputs, "a").unwrap(), "from the log");
        assert!(read(&outputs, "b").is_err());
        outputs.store_output(&CallId::new("a"), "held".to_owned());
        assert_eq!(&*read(&outputs, "a").unwrap(), "held");
        assert_eq!(outputs.take_unlogged(&CallId::new("a")).as_deref(), Some("held"));
        assert_eq!(outputs.take_unlogged(&CallId::new("a")), None);
    }
}
