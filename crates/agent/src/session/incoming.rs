//! Messages that arrive while a task runs.

use journeyman_protocol::MessageKind;

use super::context::Context;
use super::first_message::blocks;
use crate::approval::ask::Approvals;
use crate::hooks::dispatch::HookDispatch;
use crate::hooks::unseen::ChangeReview;
use crate::isolation::checkpoints::Checkpoints;
use crate::supervision::Supervision;
use crate::transcript::record::MessageId;

/// The queued messages to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuedSelection {
    /// All, because a model request follows in any case.
    All,
    /// All if one of them is from a person, or else none.
    IfAnybodySpoke,
}

/// Takes queued messages into the transcript, after the hooks have seen them.
pub(super) struct IncomingMessages<'a> {
    pub(super) cx: &'a mut Context,
    pub(super) approvals: &'a mut Approvals,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) supervision: &'a mut Supervision,
    pub(super) checkpoints: &'a mut Checkpoints,
}

impl IncomingMessages<'_> {
    /// Takes the selected messages. Returns true if that added content for the model.
    pub(super) async fn take(&mut self, which: QueuedSelection) -> bool {
        let waiting = self.cx.shared.waiting();
        let spoke = waiting.iter().any(|queued| queued.kind == MessageKind::User);
        let context = self.hooks.take_context();
        if which == QueuedSelection::IfAnybodySpoke && !spoke {
            self.hooks.keep_context(context);
            return false;
        }
        let taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        for queued in &waiting {
            self.supervision.observe_message(queued.kind, &queued.text);
        }
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let (kept, more, _denied) = self.hooks.screen(self.cx, review, waiting).await;
        let texts = kept.into_iter().map(|queued| queued.text).chain(context).chain(more);
        let content = blocks(texts);
        let added = !content.is_empty();
        self.cx.transcript.take(content, taken);
        added
    }
}
