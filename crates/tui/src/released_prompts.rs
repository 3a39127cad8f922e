//! Questions before a session, for which the terminal is as it was before the conversation.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use crossterm::event::EventStream;
use futures_util::stream::SelectAll;
use journeyman_agent::git::CommitRefusal;
use journeyman_agent::store::SessionSummary;
use journeyman_host::Confirmations;
use journeyman_protocol::SessionId;

use crate::app::open_event_stream;
use crate::presentation::Presentation;

/// Asks by lines, with the terminal and its keys released for as long as that takes: in raw mode
/// Enter ends no line, and the reader of keys takes the answer.
pub(crate) struct ReleasedPrompts<'a> {
    prompts: &'static dyn Confirmations,
    terminal: RefCell<(&'a mut Presentation, &'a mut Option<SelectAll<EventStream>>)>,
}

impl<'a> ReleasedPrompts<'a> {
    /// Makes the prompts of a conversation.
    pub(crate) fn new(
        prompts: &'static dyn Confirmations,
        presentation: &'a mut Presentation,
        keys: &'a mut Option<SelectAll<EventStream>>,
    ) -> Self {
        Self { prompts, terminal: RefCell::new((presentation, keys)) }
    }

    fn ask(&self, ask: impl FnOnce(&dyn Confirmations) -> io::Result<bool>) -> io::Result<bool> {
        let (presentation, keys) = &mut *self.terminal.borrow_mut();
        let has_keys = keys.take().is_some();
        let answer = presentation.with_terminal_restored(|| ask(self.prompts));
        **keys = has_keys.then(open_event_stream);
        answer?
    }
}

impl Confirmations for ReleasedPrompts<'_> {
    fn confirm_trust(&self, path: &Path, keys: &[String], values: &[String]) -> io::Result<bool> {
        self.ask(|prompts| prompts.confirm_trust(path, keys, values))
    }

    fn confirm_commit(&self, refusal: &CommitRefusal, diff: &str) -> io::Result<bool> {
        self.ask(|prompts| prompts.confirm_commit(refusal, diff))
    }

    fn confirm_older_undo(&self, newest: &SessionSummary, older: &SessionSummary) -> io::Result<bool> {
        self.ask(|prompts| prompts.confirm_older_undo(newest, older))
    }

    fn confirm_unverified(&self, session: &SessionId) -> io::Result<bool> {
        self.ask(|prompts| prompts.confirm_unverified(session))
    }
}
