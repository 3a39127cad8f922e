//! The streamed reply: emits its pieces as they arrive, and returns the whole at the end.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_model::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply};
use journeyman_protocol::{Event, Message, StopReason, TokenCounter as _, Usage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::partial_reply::PartialReply;
use super::usage_estimate::estimate_usage;
use crate::AgentError;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::CopyUpdates;
use crate::session::context::SessionContext;
use crate::transcript::stream_redactor::{ReplyRedactor, StreamedBlockKind};

/// Number of deltas from which on a reply is long: it is read in batches then, because to wake up
/// for each of hundreds of tokens a second costs more than to handle them.
const LONG_REPLY_DELTAS: usize = 64;
/// Time between two batches of a long reply: a screen shows no more frames.
const BATCH_INTERVAL: Duration = Duration::from_millis(16);

/// The end of a streamed reply.
pub(crate) enum StreamEnd {
    /// The reply is complete.
    Complete(Reply),
    /// The reply was cut off after a part of it had arrived.
    CutOff(CutOffReply),
}

/// A reply that was cut off.
pub(crate) struct CutOffReply {
    /// The texts that had arrived, without calls.
    pub(crate) message: Message,
    /// The reason in the log.
    pub(crate) stop: StopReason,
    /// The usage, estimated where the provider hadn't reported it.
    pub(crate) usage: Usage,
    /// The error that ends the exchange; `None` for a reply that went in circles.
    pub(crate) error: Option<AgentError>,
}

/// The reason for which a stream ends without a reply.
enum StreamBreak {
    Failed(AgentError),
    Repetition,
}

impl<E: Into<AgentError>> From<E> for StreamBreak {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Work that is done in the background while a reply is streamed.
pub(crate) struct BackgroundWork<'a> {
    pub(crate) checkpoints: &'a mut Checkpoints,
    pub(crate) copy_updates: &'a mut CopyUpdates,
}

impl BackgroundWork<'_> {
    /// Starts what hasn't been started yet: making a planned copy, or else recording the tree and
    /// reading ahead for the index.
    fn start(&mut self, cx: &SessionContext) {
        if self.copy_updates.is_planned() {
            self.copy_updates.start_copy(cx);
        } else {
            self.checkpoints.start_recording(cx);
            cx.index.refresh_early();
        }
    }
}

/// Sends a request and emits the reply while it is streamed. Meanwhile `background` works.
///
/// # Errors
/// The error of a reply of which nothing had arrived.
pub(crate) async fn stream_reply(
    cx: &mut SessionContext,
    mut background: BackgroundWork<'_>,
    model: &dyn Model,
    request: &ModelRequest,
    stop: &CancellationToken,
) -> Result<StreamEnd, AgentError> {
    let cancel = stop.child_token();
    let mut stream = ReplyStream::new(model.stream(request, cancel.clone()));
    let broken = match stream.read(cx, &mut background, &cancel).await {
        Ok(reply) => {
            cx.count_usage(&stream.void.usage);
            return Ok(StreamEnd::Complete(reply));
        }
        Err(broken) => broken,
    };
    let (stop, error) = match broken {
        StreamBreak::Repetition => (StopReason::Repetition, None),
        StreamBreak::Failed(error @ AgentError::Model(ModelError::Cancelled)) => {
            (StopReason::Cancelled, Some(error))
        }
        // The request is sent again without tools.
        StreamBreak::Failed(error @ AgentError::Model(ModelError::ToolsUnsupported { .. })) => {
            return Err(error);
        }
        StreamBreak::Failed(error) => (StopReason::Error, Some(error)),
    };
    emit_all(cx, stream.shown.end_cut_off_reply());
    let newest = Attempt { reply: stream.partial, usage: stream.usage };
    let (Attempt { reply: partial, usage }, other) =
        if newest.reply.is_empty() && !stream.void.reply.is_empty() {
            (stream.void, newest)
        } else {
            (newest, stream.void)
        };
    cx.count_usage(&other.usage);
    match error {
        Some(error) if !partial.has_begun() => {
            cx.count_usage(&usage);
            Err(error)
        }
        error => {
            let repeated = cx.meter.counter().count(partial.repeated_text());
            let message = partial.into_message(&cx.redactor);
            let usage = estimate_usage(usage, request, &message, repeated, &mut cx.meter);
            Ok(StreamEnd::CutOff(CutOffReply { message, stop, usage, error }))
        }
    }
}

/// An attempt that broke: the part of its reply that had arrived, and the usage that the provider
/// reported of it.
#[derive(Default)]
struct Attempt {
    reply: PartialReply,
    usage: Usage,
}

/// A stream and the part of its reply that has arrived.
struct ReplyStream<'a> {
    deltas: DeltaStream<'a>,
    shown: ReplyRedactor,
    partial: PartialReply,
    /// The newest attempt that broke after a part of a reply, until the next attempt has one.
    void: Attempt,
    /// The usage that the provider reported of a reply that broke.
    usage: Usage,
    /// Number of deltas that have arrived.
    arrived: usize,
    /// The time when the newest batch of them began.
    batch: Instant,
}

impl<'a> ReplyStream<'a> {
    fn new(deltas: DeltaStream<'a>) -> Self {
        Self {
            deltas,
            shown: ReplyRedactor::default(),
            partial: PartialReply::default(),
            void: Attempt::default(),
            usage: Usage::default(),
            arrived: 0,
            batch: Instant::now(),
        }
    }

    /// Returns the next delta. In a long reply, waits for several deltas at once.
    async fn next_delta(&mut self) -> Option<Result<Delta, ModelError>> {
        self.arrived += 1;
        if self.arrived > LONG_REPLY_DELTAS {
            if let Some(arrived) = self.deltas.next().now_or_never() {
                return arrived;
            }
            tokio::time::sleep_until(self.batch + BATCH_INTERVAL).await;
        }
        let arrived = self.deltas.next().await;
        self.batch = Instant::now();
        arrived
    }

    /// Reads the stream to its end.
    async fn read(
        &mut self,
        cx: &mut SessionContext,
        background: &mut BackgroundWork<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, StreamBreak> {
        loop {
            // A model may ignore its cancellation token while it waits. Dropping the stream ends
            // it.
            let delta = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    self.take_usage();
                    return Err(ModelError::Cancelled.into());
                }
                delta = self.next_delta() => delta,
            };
            let Some(delta) = delta else { break };
            background.start(cx);
            match delta? {
                Delta::Done(reply) => {
                    emit_all(cx, self.shown.end_all());
                    return Ok(*reply);
                }
                Delta::Restart { attempt, of, wait_ms, reason } => {
                    cx.count_usage(&self.restart());
                    cx.transcript.emit(Event::Retry { attempt, of, wait_ms, reason });
                    cx.transcript.flush().await?;
                }
                Delta::Text { block, text } => {
                    self.push(cx, block, StreamedBlockKind::Text, &text, cancel)?
                }
                Delta::Thinking { block, text } => {
                    self.push(cx, block, StreamedBlockKind::Thinking, &text, cancel)?
                }
                Delta::BlockEnd { block } => {
                    self.partial.end(block);
                    emit_all(cx, self.shown.end(block));
                }
                Delta::CallStart { block, name, .. } => {
                    self.partial.begin();
                    cx.transcript.emit(Event::CallDelta { block, tool: name })
                }
                Delta::MessageStart => self.partial.begin(),
                Delta::CallArguments { .. } => {}
                Delta::Usage(usage) => self.usage = usage,
            }
        }
        Err(ModelError::Protocol("the stream ended without a reply".to_owned()).into())
    }

    /// Shows and keeps a piece of a text, and ends a reply that goes in circles.
    fn push(
        &mut self,
        cx: &SessionContext,
        block: u32,
        kind: StreamedBlockKind,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<(), StreamBreak> {
        self.partial.begin();
        emit_all(cx, self.shown.push(block, kind, text));
        if !self.partial.push(block, kind, text, cx.settings.loop_guard) {
            return Ok(());
        }
        cancel.cancel();
        self.take_usage();
        Err(StreamBreak::Repetition)
    }

    /// Sets an attempt that broke aside. Returns the usage of one that is forgotten.
    fn restart(&mut self) -> Usage {
        self.shown = ReplyRedactor::default();
        let broken =
            Attempt { reply: std::mem::take(&mut self.partial), usage: std::mem::take(&mut self.usage) };
        if broken.reply.is_empty() {
            return broken.usage;
        }
        std::mem::replace(&mut self.void, broken).usage
    }

    /// Takes the usage that the provider has reported of a reply that was cancelled.
    fn take_usage(&mut self) {
        // A model that ignores its cancellation token isn't waited for.
        if let Some(Some(Ok(Delta::Usage(usage)))) = self.deltas.next().now_or_never() {
            self.usage = usage;
        }
    }
}

fn emit_all(cx: &SessionContext, events: impl IntoIterator<Item = Event>) {
    for event in events {
        cx.transcript.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_reply_is_read_in_batches_and_whole() {
        const DELTAS: usize = 400;
        let every = Duration::from_millis(5);
        let deltas = futures_util::stream::unfold(Instant::now(), |due| async move {
            tokio::time::sleep_until(due).await;
            Some((Ok(Delta::Text { block: 0, text: format!("{} ", due.elapsed().as_millis()) }), due + every))
        });
        let mut stream = ReplyStream::new(deltas.take(DELTAS).boxed());
        let begin = Instant::now();
        let mut read_at = Vec::new();
        while let Some(delta) = stream.next_delta().await {
            delta.unwrap();
            read_at.push(begin.elapsed());
        }
        assert_eq!(read_at.len(), DELTAS);
        let (short, long) = read_at.split_at(LONG_REPLY_DELTAS);
        let distinct = |times: &[Duration]| times.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(short), LONG_REPLY_DELTAS, "the first words are shown at once");
        let batches = distinct(long);
        assert!((80..=120).contains(&batches), "{batches} batches of {} deltas", long.len());
        // The last one isn't held back for longer than a batch.
        assert!(read_at.last() <= Some(&(every * 400 + BATCH_INTERVAL)), "{:?}", read_at.last());
    }
}
