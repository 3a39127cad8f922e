//! An exchange with the model: one request and its reply.

use std::sync::Arc;

use journeyman_model::{ModelError, ModelRequest, Reply, parse_context_window};
use journeyman_protocol::{
    Block, Event, Evidence, Message, Mode, ReminderCategory, RunOutcome, StopReason, Tokens, ToolSpec,
    ToolUse, TurnPhase, Usage, group_digits,
};
use tokio_util::sync::CancellationToken;

use super::context::SessionContext;
use super::limits::spent_usd;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::compaction::Compactor;
use crate::compaction::compactor::CompactionStages;
use crate::compaction::input_room::InputRoom;
use crate::hooks::HookEvent;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::CopyUpdates;
use crate::request::builder::RequestBuilder;
use crate::request::prose_edits::{AcceptedFormats, ProseRules, edit_instruction};
use crate::request::reply_calls::{assign_call_ids, read_calls_in_text, split_thought, thinking_of};
use crate::request::reply_stream::{BackgroundWork, CutOffReply, StreamEnd, stream_reply};
use crate::transcript::record::Record;

/// Maximum consecutive replies that the output limit may cut off before the run ends.
const MAX_CUT_OFF_REPLIES: u32 = 3;
/// Number of consecutive replies that repeat themselves after which the run ends. The model gets
/// one reminder before.
const MAX_REPETITIVE_REPLIES: u32 = 2;
/// Maximum bytes of a reply, as logged: about a million tokens. The store takes entries of up to 16
/// MiB, and in the text protocol an entry has the reply's calls as well.
const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

/// The end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeEnd {
    /// The reply is recorded.
    Replied,
    /// The request is to be sent again in another form: with the text protocol, because the model
    /// takes no tools, or shortened, because the provider refused it as too long.
    AskAgain,
    /// The user stopped the task.
    Interrupted,
}

/// The replies of the running task.
#[derive(Debug, Default)]
pub(crate) struct ReplyProgress {
    /// Number of consecutive replies that the output limit cut off.
    cut_off: u32,
    /// Output tokens of the last reply that the output limit cut off.
    cut_off_tokens: Tokens,
    /// Number of consecutive replies that repeated themselves.
    repetitive: u32,
    /// The text of the model's last reply that had any.
    last_text: String,
}

impl ReplyProgress {
    /// Returns the text of the model's last reply that had any.
    pub(super) fn last_text(&self) -> &str {
        &self.last_text
    }

    /// Sets the text of the last reply, for a task that was cut off after it.
    pub(super) fn restore_text(&mut self, last_text: String) {
        self.last_text = last_text;
    }

    fn observe_reply(&mut self, stop: &StopReason, usage: &Usage, text: Option<String>) {
        self.cut_off = if *stop == StopReason::MaxTokens { self.cut_off + 1 } else { 0 };
        self.cut_off_tokens = usage.output;
        self.repetitive = if *stop == StopReason::Repetition { self.repetitive + 1 } else { 0 };
        if let Some(text) = text {
            self.last_text = text;
        }
    }

    /// Returns true if the model has more to say although it made no call. Tells the model to
    /// continue if its reply was cut off.
    pub(super) fn continue_reply(&self, cx: &mut SessionContext) -> bool {
        match cx.transcript.state().stop {
            Some(StopReason::Paused) => true,
            Some(StopReason::MaxTokens) if self.cut_off < MAX_CUT_OFF_REPLIES => {
                let text = "Your reply was cut off by the output limit. Go on from where it stopped, in smaller steps.";
                cx.transcript.add_user_text(text);
                true
            }
            Some(StopReason::Repetition) if self.repetitive < MAX_REPETITIVE_REPLIES => {
                let text = "Your last reply repeated the same text again and again, so it was stopped. Go on with the \
                            task without repeating yourself: take the next step, or say in one sentence what is \
                            in the way.";
                cx.transcript.remind_model(ReminderCategory::Progress, text.to_owned());
                true
            }
            // The process ended before it could end the task.
            Some(StopReason::Cancelled | StopReason::Error) => {
                cx.transcript
                    .add_user_text("Your reply was cut off before its end. Go on from where it stopped.");
                true
            }
            _ => false,
        }
    }

    /// Returns the task's end if too many replies were cut off.
    pub(super) fn end_if_cut_off(&self) -> Option<TaskEnd> {
        if self.repetitive >= MAX_REPETITIVE_REPLIES {
            let why = "the model's replies repeated the same text again and again, also after a reminder; another \
                       model may do better";
            return Some(TaskEnd::new(RunOutcome::Limit, why));
        }
        (self.cut_off >= MAX_CUT_OFF_REPLIES).then(|| {
            let why = format!(
                "the reply was cut off at the output limit ({} tokens), {} times in a row; --max-output-tokens \
                 may raise it",
                self.cut_off_tokens, self.cut_off
            );
            TaskEnd::new(RunOutcome::Limit, why)
        })
    }
}

/// The stages that one request and its reply go through.
pub(super) struct ModelExchange<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) requests: &'a mut RequestBuilder,
    pub(super) approvals: &'a mut Approvals,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) checkpoints: &'a mut Checkpoints,
    pub(super) copy_updates: &'a mut CopyUpdates,
    pub(super) replies: &'a mut ReplyProgress,
    pub(super) room: &'a mut Compactor,
    /// The newest results of the project's checks.
    pub(super) evidence: &'a [Evidence],
    /// True if calls changed files since the task began or since checks last failed.
    pub(super) has_new_edits: bool,
}

/// A request, after the hooks that may change it.
struct PreparedRequest {
    request: ModelRequest,
    /// The transcript's messages, where a hook may have changed those of the request.
    lent: Option<Vec<Message>>,
    /// The answer of the hooks.
    allowed: Result<(), AgentError>,
}

impl PreparedRequest {
    /// Returns the messages that the transcript lent to the request.
    fn into_transcript(self) -> Vec<Message> {
        self.lent.unwrap_or(self.request.messages)
    }
}

/// A request that is too long with what hooks added.
struct HookExcess {
    /// The whole request.
    tokens: Tokens,
    /// The part that hooks added.
    added: Tokens,
    /// Maximum tokens of a request.
    room: Tokens,
}

impl HookExcess {
    fn into_error(self) -> AgentError {
        let reason = format!(
            "with the {} tokens that hooks added the request has about {}, and the model's window leaves {} for it",
            group_digits(self.added.0),
            group_digits(self.tokens.0),
            group_digits(self.room.0)
        );
        AgentError::HookDenied { event: HookEvent::PreModel, reason }
    }
}

impl ModelExchange<'_> {
    /// Sends one request, and records the reply.
    pub(super) async fn run(&mut self, stop: &CancellationToken) -> Result<ExchangeEnd, AgentError> {
        let ended = match self.request_reply(stop).await {
            Ok(end) => self.record_stream_end(end).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => Ok(ExchangeEnd::Replied),
            Err(AgentError::Model(ModelError::Cancelled)) => Ok(ExchangeEnd::Interrupted),
            // A hook that was interrupted by the user didn't deny the request.
            Err(AgentError::HookDenied { .. }) if stop.is_cancelled() => Ok(ExchangeEnd::Interrupted),
            Err(AgentError::Model(ModelError::ToolsUnsupported { .. })) if self.requests.tool_calling() => {
                self.requests.fall_back_to_text(self.cx);
                Ok(ExchangeEnd::AskAgain)
            }
            Err(error) if error.is_context_exceeded() && self.make_room_after_refusal(stop).await? => {
                Ok(ExchangeEnd::AskAgain)
            }
            Err(error) => Err(error),
        }
    }

    /// Shortens the conversation after the provider refused it. Returns false if that can't help.
    async fn make_room_after_refusal(&mut self, stop: &CancellationToken) -> Result<bool, AgentError> {
        let (room, stages, tools) = self.split_for_compaction(stop);
        room.make_room_after_refusal(stages, &tools).await
    }

    /// Returns the stages that shortening the conversation needs, and the next request's tools.
    fn split_for_compaction<'s>(
        &'s mut self,
        stop: &'s CancellationToken,
    ) -> (&'s mut Compactor, CompactionStages<'s>, Arc<[ToolSpec]>) {
        let (tools, reporting) = (self.requests.tools_for_request(self.cx), self.requests.reporting_tools());
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let (cx, hooks, evidence) = (&mut *self.cx, &mut *self.hooks, self.evidence);
        (self.room, CompactionStages { cx, hooks, review, evidence, reporting, stop }, tools)
    }

    fn split_for_hooks(&mut self) -> (&mut HookDispatch, &mut SessionContext, ChangeReview<'_>) {
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        (self.hooks, self.cx, review)
    }

    /// Sends one model request and streams the reply to subscribers.
    async fn request_reply(&mut self, stop: &CancellationToken) -> Result<StreamEnd, AgentError> {
        self.cx.transcript.set_phase(TurnPhase::PreModel);
        self.requests.rewrite_calls_as_text(self.cx);
        self.cx.transcript.begin_turn();
        self.cx.meter.start_limits_query(&self.cx.model);
        // A session's first request waits for nothing.
        match self.cx.transcript.state().messages.len() {
            0..=1 => self.cx.meter.apply_arrived_limits(),
            _ => self.cx.meter.wait_for_limits().await,
        }
        let (room, stages, tools) = self.split_for_compaction(stop);
        room.make_room(stages, &tools).await?;
        let mut next = self.prepare_request(stop).await;
        if let Some(excess) = self.excess_of_hooks(&next) {
            self.cx.transcript.return_messages(next.into_transcript());
            let (room, stages, tools) = self.split_for_compaction(stop);
            room.make_room_beside(stages, &tools, excess.added).await?;
            next = self.prepare_request(stop).await;
            if let Some(excess) = self.excess_of_hooks(&next) {
                next.allowed = Err(excess.into_error());
            }
        }
        let PreparedRequest { request, lent, allowed } = next;
        self.cx.transcript.set_phase(TurnPhase::StreamingModel);
        let model = Arc::clone(&self.cx.model);
        let written = self.cx.transcript.flush().await;
        let reply = match allowed.and(written) {
            Ok(()) => {
                let background =
                    BackgroundWork { checkpoints: self.checkpoints, copy_updates: self.copy_updates };
                stream_reply(self.cx, background, &*model, &request, stop).await
            }
            Err(error) => Err(error),
        };
        self.learn_from_usage(&request, &reply);
        self.cx.transcript.return_messages(lent.unwrap_or(request.messages));
        reply
    }

    /// Builds the next request. Hooks may change it, but not the transcript.
    async fn prepare_request(&mut self, stop: &CancellationToken) -> PreparedRequest {
        let mut request = self.requests.build(self.cx);
        let (hooks, cx, review) = self.split_for_hooks();
        let (lent, allowed) = match hooks.run_pre_model(cx, review, &mut request, stop).await {
            Ok(lent) => (lent, Ok(())),
            Err(denied) => (None, Err(denied)),
        };
        PreparedRequest { request, lent, allowed }
    }

    /// Returns how hooks made a request longer than the window allows; `None` if it fits or is long
    /// without them.
    fn excess_of_hooks(&mut self, prepared: &PreparedRequest) -> Option<HookExcess> {
        let lent = prepared.lent.as_ref().filter(|_| prepared.allowed.is_ok())?;
        let request = &prepared.request;
        let room = InputRoom::for_model(self.cx).input;
        let tokens = self.cx.meter.count(request).total();
        let tokens = self.cx.meter.predict(tokens);
        if tokens <= room {
            return None;
        }
        let without = self.cx.meter.count_parts(&self.cx.transcript.state().system, &request.tools, lent);
        let without = self.cx.meter.predict(without.total());
        let added = Tokens(tokens.0.saturating_sub(without.0));
        (without <= room).then_some(HookExcess { tokens, added, room })
    }

    /// Learns from the input that the provider reported or the window that it named in a refusal,
    /// and says once if the window is assumed.
    fn learn_from_usage(&mut self, request: &ModelRequest, reply: &Result<StreamEnd, AgentError>) {
        let usage = match reply {
            Ok(StreamEnd::Complete(reply)) => &reply.usage,
            Ok(StreamEnd::CutOff(reply)) => &reply.usage,
            Err(error) => {
                if let AgentError::Model(error) = error
                    && let ModelError::ContextTooLong { message } = error.root_cause()
                    && let Some(window) = parse_context_window(message)
                {
                    self.cx.meter.set_refused_window(window);
                }
                return;
            }
        };
        if usage.estimated.is_zero()
            && let Some(message) = self.cx.cache_watch.observe(usage)
        {
            self.cx.transcript.emit(Event::Warning { message });
        }
        // An agent's session has been told, or has a model of its own that the user chose.
        if self.cx.role().is_none()
            && let Some(message) = self.cx.meter.assumed_window_warning(&self.cx.model.name())
        {
            self.cx.transcript.emit(Event::Warning { message });
        }
        if self.cx.meter.is_worth_counting(usage.total_input()) {
            let counted = self.cx.meter.count(request).total();
            self.cx.meter.observe(counted, usage);
        }
    }

    /// Records a reply. A planned copy is entered first: what follows a reply happens in it.
    async fn record_stream_end(&mut self, end: StreamEnd) -> Result<(), AgentError> {
        if self.copy_updates.is_planned() {
            self.copy_updates.enter_copy(self.cx).await?;
            self.checkpoints.start_recording(self.cx);
            self.cx.index.refresh_early();
        }
        match end {
            StreamEnd::Complete(reply) => self.record_complete_reply(reply).await,
            StreamEnd::CutOff(reply) => self.record_cut_off_reply(reply).await,
        }
    }

    /// Records a complete reply.
    async fn record_complete_reply(&mut self, reply: Reply) -> Result<(), AgentError> {
        let Reply { mut message, stop, usage, .. } = reply;
        let (hooks, cx, review) = self.split_for_hooks();
        hooks.run_post_model(cx, review, &mut message).await;
        let bytes = serde_json::to_vec(&message).map_or(0, |bytes| bytes.len());
        if bytes > MAX_REPLY_BYTES {
            let why = format!("the reply has {bytes} bytes; no model's output limit allows that");
            return Err(ModelError::Protocol(why).into());
        }
        let tool_calling = self.requests.tool_calling();
        let text = message.text();
        let in_text =
            read_calls_in_text(self.cx, tool_calling, &message, &text, self.prose_rules(&stop)).await?;
        let calls = assign_call_ids(
            (self.cx.transcript.state(), &self.cx.session),
            tool_calling,
            &mut message,
            in_text,
        );
        self.record_message(message, (stop, usage), text, calls);
        self.announce_calls();
        self.run_append_hooks().await;
        Ok(())
    }

    /// Returns the rules for edits in the text of a reply that ended for this reason.
    fn prose_rules(&self, stop: &StopReason) -> ProseRules {
        let tools = self.requests.tool_calling();
        let mode = self.cx.settings.mode;
        let asks = self.cx.asks_question;
        ProseRules {
            accepted: match mode {
                _ if tools && (mode == Mode::Plan || asks) => AcceptedFormats::None,
                Mode::Plan | Mode::Ask => AcceptedFormats::Marked,
                _ if asks => AcceptedFormats::Marked,
                Mode::Edit | Mode::Auto => AcceptedFormats::All,
            },
            finished: matches!(stop, StopReason::EndTurn | StopReason::StopSequence),
            recaps: self.has_new_edits,
            how_to_edit: edit_instruction(tools),
        }
    }

    /// Records the part of a reply that arrived before the reply was cut off. Returns the error
    /// that cut the reply off.
    async fn record_cut_off_reply(&mut self, reply: CutOffReply) -> Result<(), AgentError> {
        let CutOffReply { mut message, stop, usage, error } = reply;
        let (hooks, cx, review) = self.split_for_hooks();
        hooks.run_post_model(cx, review, &mut message).await;
        message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
        let text = message.text();
        self.record_message(message, (stop, usage), text, Vec::new());
        self.run_append_hooks().await;
        error.map_or(Ok(()), Err)
    }

    /// Records a message of the model and its usage.
    fn record_message(
        &mut self,
        message: Message,
        (stop, usage): (StopReason, Usage),
        text: String,
        calls: Vec<ToolUse>,
    ) {
        let mut counters = self.cx.transcript.state().counters;
        counters.usage += usage;
        self.cx.transcript.record(Record::Counters(counters));
        let shown = (!text.trim().is_empty()).then(|| self.cx.redactor.redact(&text).into_owned());
        self.replies.observe_reply(&stop, &usage, shown);
        let thinking = thinking_of(&message);
        if self.cx.role().is_some() && !thinking.is_empty() {
            let (subject, text) = split_thought(&thinking);
            self.cx.transcript.emit(Event::Thought { subject, text });
        }
        // Empty replies are recorded too, for their stop reason. They don't become messages,
        // because no provider takes them.
        let reason = Some(stop.clone());
        self.cx.transcript.record(Record::Message { message, taken: Vec::new(), stop: reason, calls });
        let turn = counters.turns;
        self.cx.transcript.emit(Event::TurnFinished { turn, stop, usage, text, thinking });
        self.cx.transcript.emit(Event::TokenUsage { turn, usage });
        self.record_cost(&usage);
    }

    async fn run_append_hooks(&mut self) {
        let (hooks, cx, review) = self.split_for_hooks();
        hooks.run_post_append(cx, review).await;
    }

    /// Adds the reply's cost to the shared budget, and reports the cost of the task.
    fn record_cost(&mut self, usage: &Usage) {
        let total = self.cx.transcript.state().counters.total_usage();
        let usd = spent_usd(self.cx);
        let price = self.cx.settings.price.as_ref();
        self.cx.record_usage(usage, price.map(|price| price.cost(usage)));
        self.cx.transcript.emit(Event::Cost { usage: total, usd });
    }

    /// Emits the start of each call of the reply.
    fn announce_calls(&mut self) {
        let calls: Vec<ToolUse> =
            self.cx.transcript.state().calls.iter().map(|open| open.call.clone()).collect();
        for call in calls {
            let summary = self.approvals.summarize_call(self.cx, &call);
            let ToolUse { id, name: tool, input, .. } = call;
            self.cx.transcript.emit(Event::ToolStart { call: id, tool, input, summary });
        }
    }
}

#[cfg(test)]
mod tests {
    use journeyman_model::{DeltaStream, Model};
    use journeyman_protocol::{CallId, LimitSource, Message};
    use journeyman_tools::Registry;
    use serde_json::json;

    use super::*;
    use crate::hooks::{GateDecision, Hooks, HooksBuilder};
    use crate::test_context::TestContext;

    /// The stages of exchanges that the tests keep between two requests.
    struct Stages {
        requests: RequestBuilder,
        hooks: HookDispatch,
        copy_updates: CopyUpdates,
        replies: ReplyProgress,
        room: Compactor,
    }

    impl Stages {
        fn new(hooks: Hooks) -> Self {
            let requests = RequestBuilder::new(Arc::new(Registry::default()), true);
            let (hooks, copy_updates) = (HookDispatch::new(hooks), CopyUpdates::default());
            let (replies, room) = (ReplyProgress::default(), Compactor::default());
            Self { requests, hooks, copy_updates, replies, room }
        }

        async fn run(&mut self, test: &mut TestContext) -> Result<ExchangeEnd, AgentError> {
            let mut exchange = ModelExchange {
                cx: &mut test.cx,
                requests: &mut self.requests,
                approvals: &mut test.approvals,
                hooks: &mut self.hooks,
                checkpoints: &mut test.checkpoints,
                copy_updates: &mut self.copy_updates,
                replies: &mut self.replies,
                room: &mut self.room,
                evidence: &[],
                has_new_edits: false,
            };
            exchange.run(&CancellationToken::new()).await
        }
    }

    #[tokio::test]
    async fn a_reply_is_recorded_with_its_calls_and_its_usage() {
        let mut test = TestContext::new(&[]).await;
        test.set_replies(&json!([
            { "text": "I'll look.", "calls": [{ "id": "c1", "name": "read_file", "input": { "path": "a" } }] }
        ]));
        test.cx.transcript.add_user_text("do it");
        let mut stages = Stages::new(Hooks::none());
        assert_eq!(stages.run(&mut test).await.unwrap(), ExchangeEnd::Replied);
        assert_eq!(stages.replies.last_text(), "I'll look.");
        assert!(test.cx.transcript.state().is_open(&CallId::new("c1")));
        assert_eq!(test.cx.transcript.state().messages.len(), 2, "the lent messages are back");
        let reloaded = test.assert_survives_restart().await;
        assert_eq!(reloaded.counters.turns, 1);
        assert!(reloaded.counters.usage.output.0 > 0, "{:?}", reloaded.counters);
    }

    #[tokio::test]
    async fn a_failed_request_leaves_the_transcript_as_it_was() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.add_user_text("do it");
        let failed = Stages::new(Hooks::none()).run(&mut test).await;
        assert!(matches!(failed, Err(AgentError::Model(ModelError::Script(_)))), "{failed:?}");
        let denies = HooksBuilder::new().on_pre_model(|_, request| {
            request.messages.clear();
            GateDecision::Deny { reason: "no".to_owned() }
        });
        let denied = Stages::new(denies.build()).run(&mut test).await;
        assert!(matches!(denied, Err(AgentError::HookDenied { .. })), "{denied:?}");
        assert_eq!(test.cx.transcript.state().messages, [Message::user_text("do it")]);
    }

    struct Refusing;

    impl Model for Refusing {
        fn name(&self) -> String {
            "house/small".to_owned()
        }

        fn stream<'a>(&'a self, _: &'a ModelRequest, _: CancellationToken) -> DeltaStream<'a> {
            let message = "This model's maximum context length is 16000 tokens.".to_owned();
            let refusal = ModelError::ContextTooLong { message };
            Box::pin(futures_util::stream::iter([Err(refusal)]))
        }
    }

    #[tokio::test]
    async fn a_refusal_corrects_the_window() {
        let mut test = TestContext::new(&[]).await;
        test.cx.model = Arc::new(Refusing);
        Stages::new(Hooks::none()).run(&mut test).await.unwrap_err();
        let limits = test.cx.meter.limits();
        assert_eq!((limits.window, limits.source), (Tokens(16_000), LimitSource::Refusal));
    }

    #[tokio::test]
    async fn a_cut_off_reply_is_continued_until_the_third_in_a_row() {
        let mut test = TestContext::new(&[]).await;
        let cut = json!({ "text": "and then", "stop": "max_tokens" });
        test.set_replies(&json!([cut, { "text": "done" }, cut, cut, cut]));
        let mut stages = Stages::new(Hooks::none());
        let mut continued = Vec::new();
        for _ in 0..5 {
            stages.run(&mut test).await.unwrap();
            continued.push(stages.replies.continue_reply(&mut test.cx));
        }
        assert_eq!(continued, [true, false, true, true, false]);
        assert_eq!(stages.replies.end_if_cut_off().unwrap().outcome, RunOutcome::Limit);
    }
}
