//! Shortens the conversation so that the next request fits the model's window.

use std::sync::Arc;

use journeyman_context::compaction::{
    CompactedTranscript, CompactionInput, StateFacts, age_results, compact,
};
use journeyman_model::ModelError;
use journeyman_protocol::{
    Block, CheckOutcome, CompressionMethod, CompressionPhase, CompressionReason, ErrorPhase, Event, Evidence,
    ImageTokens, LimitSource, ModelLimits, ResultPart, TodoStatus, TokenCounter as _, Tokens, ToolSpec,
    Usage,
};
use tokio_util::sync::CancellationToken;

use super::input_room::{InputRoom, RequestSize};
use super::summary::{format_conversation, request_summary};
use crate::AgentError;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::request::argument_size::{DELIMITER_BYTES, max_argument_bytes};
use crate::session::context::SessionContext;
use crate::transcript::log_reader::{KeptTexts, read_kept_texts};
use crate::transcript::record::{Compaction, Record};

/// Maximum size of the shortened messages, in hundredths of their former size. If they are longer,
/// the model's summary is left out.
const MAX_SHRUNK_PERCENT: u64 = 70;
/// The window that is assumed after a refusal, in hundredths of the refused request.
const REFUSED_WINDOW_PERCENT: u64 = 90;
/// Minimum number of messages of a conversation that can be shortened: the task, a reply, and one
/// more.
const MIN_SHORTENABLE_MESSAGES: usize = 3;
/// Minimum bytes per token of a longer text, in any language.
const MIN_BYTES_PER_TOKEN: u64 = 2;
/// Bytes of text that have as many tokens as a large image.
const IMAGE_EQUIVALENT_BYTES: usize = 10_000;
/// Part of the input room for the conversation that the model summarizes, in hundredths.
const SUMMARIZED_PERCENT: u64 = 60;
/// Summaries in a row that may fail before no more are asked for.
const MAX_FAILED_SUMMARIES: u32 = 2;
/// Tokens of older messages, as they are counted here, from which a summary is worth a request.
const MIN_SUMMARIZED_TOKENS: Tokens = Tokens(2_000);
/// The newest messages, which a compaction doesn't leave out: a reply and its results.
const KEPT_NEWEST_MESSAGES: usize = 2;
/// Part of the window that an estimated request has to have before it is refused, in hundredths:
/// the estimate may be too high by so much.
const ESTIMATE_PERCENT: u64 = 125;
/// Part of the room after a compaction that pinned texts may have, in hundredths.
const PINNED_PERCENT: u64 = 30;
/// Maximum tokens around a pinned text, with its part of the heading.
const PIN_FRAME_TOKENS: Tokens = Tokens(30);
/// Hexadecimal digits of a file's hash in the state: enough to tell versions apart.
const FILE_HASH_DIGITS: usize = 8;

/// Keeps the requests of a session within the model's window.
#[derive(Debug, Default)]
pub(crate) struct Compactor {
    /// The size of the smallest request that the provider refused as too long.
    refused: Option<Tokens>,
    /// True if results of calls left the transcript and nobody has asked since.
    removed_results: bool,
    /// The turn in which the transcript was last shortened, counted over the session.
    shortened_in: Option<(u64, u32)>,
    /// Summaries in a row that the model failed to write.
    failed_summaries: u32,
}

/// The stages that shortening a conversation needs.
pub(crate) struct CompactionStages<'a> {
    pub(crate) cx: &'a mut SessionContext,
    pub(crate) hooks: &'a mut HookDispatch,
    pub(crate) review: ChangeReview<'a>,
    /// The newest results of the project's checks.
    pub(crate) evidence: &'a [Evidence],
    /// The tools whose results are reports of agents.
    pub(crate) reporting: Vec<String>,
    pub(crate) stop: &'a CancellationToken,
}

impl Compactor {
    /// Makes the next request fit: first old results age, then the conversation is shortened.
    pub(crate) async fn make_room(
        &mut self,
        mut stages: CompactionStages<'_>,
        tools: &[ToolSpec],
    ) -> Result<(), AgentError> {
        let room = InputRoom::for_model(stages.cx);
        if surely_fits(stages.cx, tools, room.aging_start()) {
            return Ok(());
        }
        let mut size = RequestSize::measure_next(stages.cx, tools);
        if size.predicted > room.aging_start() {
            size = self.age_results(stages.cx, room, size, tools);
        }
        let threshold = room.compaction_start(stages.cx.settings.compaction.threshold);
        let is_first = stages.cx.transcript.state().messages.len() < MIN_SHORTENABLE_MESSAGES;
        // The task itself isn't shortened before a provider refuses it, or would have to.
        let is_due = size.predicted > threshold && !is_first || is_impossible(stages.cx, size);
        if is_due && !self.has_shortened_this_turn(stages.cx) {
            let bounded = (room, InputRoom::limit_after_compaction as CompactionLimit);
            size = self.shorten_if_allowed(&mut stages, CompressionReason::Threshold, bounded, tools).await?;
        }
        if is_impossible(stages.cx, size) {
            let tokens = stages.cx.meter.estimate(size.fixed + size.messages);
            let window = stages.cx.meter.limits().window;
            return Err(AgentError::RequestTooLong { tokens, fixed: size.fixed, window });
        }
        Ok(())
    }

    /// Shortens the conversation after a provider refused the last request as too long. Returns
    /// false if that can't help.
    pub(crate) async fn make_room_after_refusal(
        &mut self,
        mut stages: CompactionStages<'_>,
        tools: &[ToolSpec],
    ) -> Result<bool, AgentError> {
        let sent = RequestSize::measure_next(stages.cx, tools);
        if self.refused.is_some_and(|refused| sent.predicted >= refused) {
            return Ok(false);
        }
        self.refused = Some(sent.predicted);
        let (known, input) = (stages.cx.meter.limits(), InputRoom::for_model(stages.cx).input);
        let assumed = assumed_window(known, input, sent.predicted);
        if let Some(window) = assumed {
            stages.cx.meter.set_refused_window(window);
        }
        let room = InputRoom::for_model(stages.cx);
        self.age_results(stages.cx, room, sent, tools);
        let limit = match assumed {
            // The window isn't known well: the request has to become shorter by far.
            Some(_) => InputRoom::target_after_compaction,
            None => InputRoom::limit_after_compaction,
        };
        let after =
            self.shorten_if_allowed(&mut stages, CompressionReason::Overflow, (room, limit), tools).await?;
        Ok(after.predicted < sent.predicted)
    }

    /// Makes room for tokens that hooks add to the request, also if the conversation was shortened
    /// in this turn already.
    pub(crate) async fn make_room_beside(
        &mut self,
        mut stages: CompactionStages<'_>,
        tools: &[ToolSpec],
        added: Tokens,
    ) -> Result<(), AgentError> {
        let input = InputRoom::for_model(stages.cx).input;
        let room = InputRoom { input: Tokens(input.0.saturating_sub(added.0)) };
        let size = RequestSize::measure_next(stages.cx, tools);
        if self.age_results(stages.cx, room, size, tools).predicted <= room.input {
            return Ok(());
        }
        let bounded = (room, InputRoom::limit_after_compaction as CompactionLimit);
        self.shorten_if_allowed(&mut stages, CompressionReason::Threshold, bounded, tools).await.map(drop)
    }

    /// Shortens the conversation because a person asked for it. Returns the tokens of the next
    /// request before and after.
    pub(crate) async fn shorten_on_request(
        &mut self,
        mut stages: CompactionStages<'_>,
        tools: &[ToolSpec],
    ) -> Result<(Tokens, Tokens), AgentError> {
        let before = RequestSize::measure_next(stages.cx, tools);
        // A conversation that is far from the limit is shortened too.
        let room = InputRoom { input: InputRoom::for_model(stages.cx).input.min(before.predicted) };
        let bounded = (room, InputRoom::limit_after_compaction as CompactionLimit);
        let after = self.shorten(&mut stages, CompressionReason::Manual, bounded, tools).await?;
        Ok((before.predicted, after.predicted))
    }

    /// Returns true if results of calls left the transcript since the last call of this function.
    pub(crate) fn take_results_removed(&mut self) -> bool {
        std::mem::take(&mut self.removed_results)
    }

    /// Returns true if the transcript was shortened in this turn already.
    fn has_shortened_this_turn(&self, cx: &SessionContext) -> bool {
        self.shortened_in == Some(step_and_turn(cx))
    }

    /// Shortens the conversation, as [`Compactor::shorten`]. Where a hook forbids it, that is said,
    /// and the request may still fit.
    async fn shorten_if_allowed(
        &mut self,
        stages: &mut CompactionStages<'_>,
        reason: CompressionReason,
        bounded: (InputRoom, CompactionLimit),
        tools: &[ToolSpec],
    ) -> Result<RequestSize, AgentError> {
        match self.shorten(stages, reason, bounded, tools).await {
            Err(AgentError::HookDenied { reason, .. }) => {
                let message = format!("the conversation was not shortened: a hook forbids it: {reason}");
                stages.cx.transcript.emit_nonfatal_error(ErrorPhase::System, message);
                Ok(RequestSize::measure_next(stages.cx, tools))
            }
            other => other,
        }
    }

    /// Shortens the conversation to at most what `limit` says. Returns the size of the next
    /// request.
    async fn shorten(
        &mut self,
        stages: &mut CompactionStages<'_>,
        reason: CompressionReason,
        (room, limit): (InputRoom, CompactionLimit),
        tools: &[ToolSpec],
    ) -> Result<RequestSize, AgentError> {
        // Also if a hook forbids it: it isn't asked again in this turn.
        self.shortened_in = Some(step_and_turn(stages.cx));
        let size = RequestSize::measure_next(stages.cx, tools);
        let before = size.predicted;
        let trigger = if reason == CompressionReason::Manual { "manual" } else { "auto" };
        let review = stages.review.reborrow();
        let notes = stages.hooks.run_pre_compact(stages.cx, review, trigger, stages.stop).await?;
        let cx = &mut *stages.cx;
        cx.transcript.emit(Event::ContextCompression {
            phase: CompressionPhase::Start,
            reason,
            before,
            after: None,
            method: None,
            summary: None,
            failure: None,
        });
        // The user's words and the reports of agents are read from the log.
        cx.transcript.flush().await?;
        let texts = read_kept_texts(&**cx.transcript.log().store(), &cx.session, &stages.reporting).await?;
        let prose = if self.is_summary_worthwhile(cx, reason) {
            let material = size.to_counted(Tokens(room.input.0 * SUMMARIZED_PERCENT / 100));
            self.summarize(cx, material, stages.stop).await
        } else {
            None
        };
        if reason == CompressionReason::Manual && stages.stop.is_cancelled() {
            let reason_of_stop = "it was stopped".to_owned();
            emit_compaction_end(cx, reason, before, (None, None), None, Some(reason_of_stop.clone()));
            return Err(AgentError::NotShortened { reason: reason_of_stop });
        }
        let fixed = size.to_predicted(size.fixed);
        let most = size.to_counted(limit(InputRoom::for_model(cx), fixed));
        let pinned_room = Tokens(most.0 * PINNED_PERCENT / 100);
        // A conversation that is shortened by hand may be smaller than what is pinned, which comes
        // in beside it.
        let beside = match reason {
            CompressionReason::Manual => {
                let cost = |text: &String| cx.meter.counter().count(text) + PIN_FRAME_TOKENS;
                texts.pinned.iter().map(cost).sum::<Tokens>().min(pinned_room)
            }
            _ => Tokens(0),
        };
        let facts = CompactionInputs {
            texts,
            evidence: stages.evidence,
            notes,
            pinned_room,
            room: size.to_counted(room.target_after_compaction(fixed)) + beside,
            limit: size.to_counted(limit(room, fixed)) + beside,
        };
        let plain = facts.compact(cx, None);
        let with_prose = prose.map(|prose| facts.compact(cx, Some(&prose)));
        let helps = |it: &CompactedTranscript| {
            it.shows_prose && it.tokens.0.saturating_mul(100) <= size.messages.0 * MAX_SHRUNK_PERCENT
        };
        let inflated = with_prose.as_ref().is_some_and(|it| !helps(it));
        let (result, method) = match with_prose.filter(helps) {
            Some(result) => (result, CompressionMethod::Summary),
            None => (plain, CompressionMethod::State),
        };
        if result.tokens >= size.messages {
            let failure = Some("there is nothing to leave out".to_owned());
            emit_compaction_end(cx, reason, before, (None, None), None, failure);
            return Ok(size);
        }
        let CompactedTranscript { mut head, opening, kept, tail, state, .. } = result;
        redact_blocks(cx, &mut head);
        let summary = head.get(opening).and_then(|block| match block {
            Block::Text { text } => Some(text.clone()),
            _ => None,
        });
        let compaction = Compaction { head, opening, kept, tail, state, inflated };
        cx.transcript.record(Record::Compacted(Box::new(compaction)));
        self.removed_results = true;
        let after = RequestSize::measure_next(cx, tools);
        emit_compaction_end(cx, reason, before, (Some(after.predicted), Some(method)), summary, None);
        Ok(after)
    }

    /// Returns true if a summary by the model is worth a request.
    fn is_summary_worthwhile(&self, cx: &SessionContext, reason: CompressionReason) -> bool {
        if !cx.settings.compaction.summarize {
            return false;
        }
        let state = cx.transcript.state();
        // A summary that was too long: the next compaction is without one.
        let inflated = state.compaction.as_ref().is_some_and(|last| last.inflated);
        match reason {
            // The model may refuse the material too.
            CompressionReason::Overflow => false,
            CompressionReason::Manual => !inflated,
            CompressionReason::Threshold => {
                let older = state.messages.iter().skip(1).rev().skip(KEPT_NEWEST_MESSAGES);
                let tokens = older.map(|message| cx.meter.counter().count_message(message)).sum::<Tokens>();
                !inflated && self.failed_summaries < MAX_FAILED_SUMMARIES && tokens >= MIN_SUMMARIZED_TOKENS
            }
        }
    }

    /// Asks the model for a summary. If that fails, the conversation is shortened without one.
    async fn summarize(
        &mut self,
        cx: &mut SessionContext,
        material: Tokens,
        stop: &CancellationToken,
    ) -> Option<String> {
        let model = Arc::clone(&cx.model);
        let state = cx.transcript.state();
        let earlier = state.compaction.as_ref().and_then(|last| last.state.prose.as_deref());
        let conversation = format_conversation(earlier, &state.messages, material)?;
        let mut usage = Usage::default();
        let prompt = cx.settings.prompts.compaction();
        let asked = request_summary(&*model, prompt, conversation, &mut usage, stop).await;
        cx.count_usage(&usage);
        match asked {
            Ok(text) => {
                self.failed_summaries = 0;
                Some(cx.redactor.redact(&text).into_owned())
            }
            Err(ModelError::Cancelled) => None,
            Err(error) => {
                self.failed_summaries += 1;
                let from_now_on = if self.failed_summaries == MAX_FAILED_SUMMARIES {
                    "; from now on none is asked for"
                } else {
                    ""
                };
                let message = format!("the model wrote no summary of the conversation: {error}{from_now_on}");
                cx.transcript.emit_nonfatal_error(ErrorPhase::Model, message);
                None
            }
        }
    }

    /// Replaces old results by lines, if that frees enough. Returns the size of the next request.
    fn age_results(
        &mut self,
        cx: &mut SessionContext,
        room: InputRoom,
        size: RequestSize,
        tools: &[ToolSpec],
    ) -> RequestSize {
        let keep = size.to_counted(room.kept_results());
        let (results, freed) = age_results(&cx.transcript.state().messages, keep, cx.meter.counter());
        let freed = size.to_predicted(freed);
        if results.is_empty() || freed < room.min_aging_gain() {
            return size;
        }
        let calls = results.iter().map(|result| result.call.clone()).collect();
        cx.transcript.record(Record::Aged { results });
        self.removed_results = true;
        cx.transcript.emit(Event::ResultsAged { calls, freed });
        RequestSize::measure_next(cx, tools)
    }
}

/// Returns true if a request certainly fits, judged only by lengths of texts, so that the first
/// requests don't wait for a vocabulary to be unpacked.
fn surely_fits(cx: &SessionContext, tools: &[ToolSpec], tokens: Tokens) -> bool {
    let part = |part: &ResultPart| match part {
        ResultPart::Text { text } => text.len(),
        ResultPart::Image(_) => IMAGE_EQUIVALENT_BYTES,
    };
    let block = |block: &Block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolUse(call) => max_argument_bytes(&call.input),
        Block::ToolResult { content, .. } => content.iter().map(part).sum(),
        Block::Image(_) => IMAGE_EQUIVALENT_BYTES,
    };
    let state = cx.transcript.state();
    let messages = state.messages.iter();
    let bytes: usize = messages.flat_map(|message| &message.content).map(block).sum();
    let system: usize = state.system.iter().map(|part| part.text.len()).sum();
    let tool = |tool: &ToolSpec| {
        tool.name.len() + tool.description.len() + max_argument_bytes(&tool.input_schema) + DELIMITER_BYTES
    };
    let tools: usize = tools.iter().map(tool).sum();
    (bytes + system + tools) as u64 / MIN_BYTES_PER_TOKEN <= tokens.0
}

/// Returns true if a request is certainly longer than the model's window: some servers cut such a
/// request without a word.
fn is_impossible(cx: &SessionContext, size: RequestSize) -> bool {
    let limits = cx.meter.limits();
    if !cx.meter.has_certain_window() {
        return false;
    }
    let margin = if limits.tokenizer.is_exact() { 100 } else { ESTIMATE_PERCENT };
    let tokens = cx.meter.estimate(size.fixed + size.messages);
    // A guess about images refuses nothing.
    let guessed = match limits.images {
        ImageTokens::Unknown => image_tokens(cx),
        _ => Tokens(0),
    };
    tokens.0.saturating_sub(guessed.0).saturating_mul(100) > limits.window.0.saturating_mul(margin)
}

/// Returns the tokens that images of the transcript are counted with.
fn image_tokens(cx: &SessionContext) -> Tokens {
    let counter = cx.meter.counter();
    let of_part = |part: &ResultPart| match part {
        ResultPart::Image(image) => counter.count_image(image),
        ResultPart::Text { .. } => Tokens(0),
    };
    let blocks = cx.transcript.state().messages.iter().flat_map(|message| &message.content);
    let of_block = |block: &Block| match block {
        Block::Image(image) => counter.count_image(image),
        Block::ToolResult { content, .. } => content.iter().map(of_part).sum(),
        _ => Tokens(0),
    };
    blocks.map(of_block).sum()
}

/// Returns the window to assume after a refusal; `None` if the window that the refusal named
/// explains it.
fn assumed_window(known: &ModelLimits, input: Tokens, refused: Tokens) -> Option<Tokens> {
    let explains = known.source == LimitSource::Refusal && refused > input;
    (!explains).then(|| Tokens(refused.min(known.window).0 * REFUSED_WINDOW_PERCENT / 100))
}

/// The maximum tokens of the messages after a compaction, for the tokens of system prompt and
/// tools.
type CompactionLimit = fn(InputRoom, Tokens) -> Tokens;

fn step_and_turn(cx: &SessionContext) -> (u64, u32) {
    let counters = &cx.transcript.state().counters;
    (counters.step, counters.turns)
}

/// The parts of a compaction besides the conversation.
struct CompactionInputs<'a> {
    texts: KeptTexts,
    evidence: &'a [Evidence],
    notes: Vec<String>,
    /// Maximum tokens of what the user pinned, as they are counted here.
    pinned_room: Tokens,
    /// Tokens of the messages, as they are counted here.
    room: Tokens,
    /// Maximum tokens of the messages, as they are counted here.
    limit: Tokens,
}

impl CompactionInputs<'_> {
    fn compact(&self, cx: &SessionContext, prose: Option<&str>) -> CompactedTranscript {
        let state = cx.transcript.state();
        let last = state.compaction.as_ref();
        let first = state.messages.first().map_or(0, |message| message.content.len());
        let todos = state.todos.iter().map(|todo| {
            let status = match todo.status {
                TodoStatus::Pending => "pending",
                TodoStatus::InProgress => "in progress",
                TodoStatus::Completed => "done",
            };
            format!("[{status}] {}", todo.title)
        });
        let hashes = state.seen.values().filter_map(|file| {
            let hash = file.known?.to_string();
            Some((file.path.to_string(), hash.get(..FILE_HASH_DIGITS).unwrap_or(&hash).to_owned()))
        });
        let checks = self.evidence.iter().map(|one| {
            let with = if one.original_tests { " with the original tests" } else { "" };
            match &one.outcome {
                CheckOutcome::Passed => format!("`{}`{with} passed", one.command),
                CheckOutcome::Failed { reason, .. } => format!("`{}`{with} failed: {reason}", one.command),
                CheckOutcome::NotRun { reason } => {
                    format!("`{}`{with} could not run: {reason}", one.command)
                }
            }
        });
        let (before, task) = match self.texts.current {
            0 => (self.texts.said.as_slice(), [].as_slice()),
            at => self.texts.said.split_at_checked(at).unwrap_or((&self.texts.said, &[])),
        };
        let facts = StateFacts {
            said: before,
            task,
            pinned: &self.texts.pinned,
            reports: &self.texts.reports,
            todos: todos.collect(),
            evidence: checks.collect(),
            hashes: hashes.collect(),
        };
        compact(CompactionInput {
            messages: &state.messages,
            opening: last.map_or(first, |last| last.opening),
            state: last.map(|last| last.state.clone()).unwrap_or_default(),
            facts,
            prose,
            notes: &self.notes,
            pinned_room: self.pinned_room,
            room: self.room,
            limit: self.limit,
            counter: cx.meter.counter(),
        })
    }
}

fn redact_blocks(cx: &SessionContext, head: &mut [Block]) {
    for block in head {
        if let Block::Text { text } = block
            && let std::borrow::Cow::Owned(clean) = cx.redactor.redact(text)
        {
            *text = clean;
        }
    }
}

fn emit_compaction_end(
    cx: &mut SessionContext,
    reason: CompressionReason,
    before: Tokens,
    (after, method): (Option<Tokens>, Option<CompressionMethod>),
    summary: Option<String>,
    failure: Option<String>,
) {
    let phase = CompressionPhase::End;
    cx.transcript.emit(Event::ContextCompression { phase, reason, before, after, method, summary, failure });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_a_refusal_names_is_taken_as_it_is() {
        let known = |source| ModelLimits {
            window: Tokens(10_000),
            source,
            ..ModelLimits::conservative_default(false)
        };
        let after = |source, refused| assumed_window(&known(source), Tokens(8_000), Tokens(refused));
        assert_eq!(after(LimitSource::Refusal, 9_000), None);
        assert_eq!(after(LimitSource::Refusal, 7_000), Some(Tokens(6_300)), "it doesn't explain the refusal");
        assert_eq!(after(LimitSource::Table, 9_000), Some(Tokens(8_100)));
        assert_eq!(after(LimitSource::Table, 20_000), Some(Tokens(9_000)));
    }
}
