//! Messages that arrive while a task runs.

use journeyman_protocol::{Event, MessageKind, ReminderCategory};

use super::context::SessionContext;
use super::task_first_message::{is_question, take_images, text_blocks, user_text};
use crate::approval::approvals::Approvals;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::supervision::Supervision;
use crate::transcript::record::MessageId;

/// The queued messages to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuedSelection {
    /// All messages, because a model request follows in any case.
    All,
    /// All messages if one of them is from a person, or is the result of a background agent;
    /// otherwise none.
    IfAwaited,
}

/// Takes queued messages into the transcript, after the hooks have seen them.
pub(super) struct IncomingMessages<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) approvals: &'a mut Approvals,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) supervision: &'a mut Supervision,
    pub(super) checkpoints: &'a mut Checkpoints,
}

impl IncomingMessages<'_> {
    /// Takes the selected messages. Returns true if that added content for the model.
    pub(super) async fn take(&mut self, which: QueuedSelection) -> bool {
        let waiting = self.cx.shared.hold_queued();
        let spoke = waiting.iter().any(|queued| queued.kind == MessageKind::User);
        let context = self.hooks.take_context();
        let is_awaited = spoke || waiting.iter().any(|queued| queued.category == ReminderCategory::Agent);
        if which == QueuedSelection::IfAwaited && !is_awaited {
            self.cx.shared.release_queued();
            self.hooks.keep_context(context);
            return false;
        }
        let taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        for queued in &waiting {
            self.supervision.observe_message(queued.kind, &queued.text);
        }
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let Some((mut kept, more, _denied)) = self.hooks.screen_messages(self.cx, review, waiting).await
        else {
            self.cx.shared.release_queued();
            self.hooks.keep_context(context);
            return false;
        };
        if spoke {
            self.cx.asks_question = is_question(&user_text(&kept));
        }
        let found = if spoke {
            let may_show = self.approvals.visible_file_filter(self.cx);
            let said = user_text(&kept);
            self.supervision.look_up_message(self.cx, may_show, &said).await
        } else {
            None
        };
        for queued in kept.iter().filter(|queued| queued.kind == MessageKind::User) {
            self.cx.transcript.emit(Event::MessageJoined { text: queued.text.clone() });
        }
        let images = take_images(&mut kept);
        let texts = kept.into_iter().map(|queued| queued.text).chain(found).chain(context).chain(more);
        let mut content = text_blocks(texts);
        content.extend(images);
        let added = !content.is_empty();
        self.cx.transcript.take_queued(content, taken);
        added
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::hooks::{GateDecision, Hooks, HooksBuilder};
    use crate::supervision::schedule::Schedule;
    use crate::supervision::todos::SharedTodoList;
    use crate::test_context::{TestContext, user_message};
    use crate::transcript::record::QueuedMessage;

    async fn take(test: &mut TestContext, hooks: &mut HookDispatch, which: QueuedSelection) -> bool {
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let mut supervision = Supervision::new(todos, Arc::new(Schedule::default()), 0);
        let mut incoming = IncomingMessages {
            cx: &mut test.cx,
            approvals: &mut test.approvals,
            hooks,
            supervision: &mut supervision,
            checkpoints: &mut test.checkpoints,
        };
        incoming.take(which).await
    }

    #[tokio::test]
    async fn a_notice_alone_does_not_make_the_model_continue() {
        let mut test = TestContext::new(&[]).await;
        let mut hooks = HookDispatch::new(Hooks::none());
        hooks.keep_context(vec!["from a hook".to_owned()]);
        let notice = QueuedMessage { kind: MessageKind::System, ..user_message(1, "a command ended") };
        test.cx.shared.add_queued(notice);
        assert!(!take(&mut test, &mut hooks, QueuedSelection::IfAwaited).await);
        assert_eq!(test.cx.shared.queued_messages().len(), 1, "the notice stays queued");
        test.cx.shared.add_queued(user_message(2, "and the tests?"));
        assert!(take(&mut test, &mut hooks, QueuedSelection::IfAwaited).await);
        assert_eq!(test.cx.shared.queued_messages(), []);
        let content = &test.cx.transcript.state().messages[0].content;
        assert_eq!(
            *content,
            text_blocks(["a command ended", "and the tests?", "from a hook"].map(str::to_owned))
        );
    }

    #[tokio::test]
    async fn a_message_is_withdrawn_until_a_task_takes_it() {
        let mut test = TestContext::new(&[]).await;
        let send = async |test: &TestContext, text: &str| {
            let category = journeyman_protocol::ReminderCategory::General;
            test.inbox.accept(MessageKind::User, category, text.to_owned()).await.unwrap()
        };
        let (one, two) = (send(&test, "one").await, send(&test, "two").await);
        assert!(test.inbox.withdraw_message(two).await.unwrap());
        assert!(!test.inbox.withdraw_message(two).await.unwrap(), "it is gone");
        assert_eq!(test.cx.shared.newest_sent_message(), Some(one), "nobody waits for its answer");
        let queue = test.reloaded_state().await.queue;
        assert_eq!(queue.iter().map(|queued| queued.text.as_str()).collect::<Vec<_>>(), ["one"]);
        test.cx.shared.hold_queued();
        assert!(!test.inbox.withdraw_message(one).await.unwrap(), "a task is about to take it");
        let mut hooks = HookDispatch::new(Hooks::none());
        assert!(take(&mut test, &mut hooks, QueuedSelection::All).await);
        let joined = Event::MessageJoined { text: "one".to_owned() };
        assert!(test.events().await.contains(&joined));
    }

    #[tokio::test]
    async fn a_message_whose_screening_ends_with_the_session_stays_queued() {
        let mut test = TestContext::new(&[]).await;
        let category = journeyman_protocol::ReminderCategory::General;
        test.inbox.accept(MessageKind::User, category, "and the tests?".to_owned()).await.unwrap();
        let closing = test.cx.shared.closing.clone();
        let hangs = HooksBuilder::new().on_prompt_async(move |_, _| {
            closing.cancel();
            Box::pin(std::future::pending())
        });
        let mut hooks = HookDispatch::new(hangs.build());
        assert!(!take(&mut test, &mut hooks, QueuedSelection::All).await);
        assert_eq!(test.reloaded_state().await.queue.len(), 1, "no hook has refused it");
    }

    #[tokio::test]
    async fn a_refused_message_is_taken_without_content() {
        let mut test = TestContext::new(&[]).await;
        let denies = HooksBuilder::new().on_prompt(|_, _| GateDecision::Deny { reason: "no".to_owned() });
        let mut hooks = HookDispatch::new(denies.build());
        test.cx.shared.add_queued(user_message(1, "bad"));
        assert!(!take(&mut test, &mut hooks, QueuedSelection::All).await);
        assert_eq!(test.cx.shared.queued_messages(), [], "it isn't screened again");
        assert_eq!(test.cx.transcript.state().messages, []);
    }
}
