//! The streamed reply: emits its pieces as they arrive, and returns the whole at the end.

use futures_util::StreamExt as _;
use journeyman_model::{Delta, Model, ModelError, ModelRequest, Reply};
use journeyman_protocol::Event;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::isolation::checkpoints::Checkpoints;
use crate::session::context::Context;
use crate::transcript::stream_redactor::{RedactedKind, ReplyRedactor};

/// Sends a request and emits the reply while it is streamed. Meanwhile the tree is recorded and the
/// index reads ahead.
pub(crate) async fn stream_reply(
    cx: &mut Context,
    checkpoints: &mut Checkpoints,
    model: &dyn Model,
    request: &ModelRequest,
    stop: &CancellationToken,
) -> Result<Reply, AgentError> {
    let mut deltas = model.stream(request, stop.clone());
    let mut pieces = ReplyRedactor::default();
    let cancelled = stop.cancelled();
    tokio::pin!(cancelled);
    loop {
        // A model may ignore its cancellation token while it waits. Dropping the stream ends it.
        let delta = tokio::select! {
            biased;
            () = &mut cancelled => return Err(ModelError::Cancelled.into()),
            delta = deltas.next() => delta,
        };
        let Some(delta) = delta else { break };
        // Records the tree while the model works on the request.
        checkpoints.start_recording(cx);
        cx.index.refresh_early();
        match delta? {
            Delta::Done(reply) => {
                for event in pieces.end_all() {
                    cx.transcript.emit(event);
                }
                return Ok(*reply);
            }
            Delta::Restart { attempt, of, wait_ms, reason } => {
                pieces = ReplyRedactor::default();
                cx.transcript.emit(Event::Retry { attempt, of, wait_ms, reason });
                cx.transcript.flush().await?;
            }
            Delta::Text { block, text } => emit_all(cx, pieces.push(block, RedactedKind::Text, &text)),
            Delta::Thinking { block, text } => {
                emit_all(cx, pieces.push(block, RedactedKind::Thinking, &text))
            }
            Delta::BlockEnd { block } => emit_all(cx, pieces.end(block)),
            Delta::CallStart { block, name, .. } => {
                cx.transcript.emit(Event::CallDelta { block, tool: name })
            }
            Delta::MessageStart | Delta::CallArguments { .. } => {}
        }
    }
    Err(ModelError::Protocol("the stream ended without a reply".to_owned()).into())
}

fn emit_all(cx: &Context, events: impl IntoIterator<Item = Event>) {
    for event in events {
        cx.transcript.emit(event);
    }
}
