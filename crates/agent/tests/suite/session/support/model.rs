//! A model that does as told, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use journeyman_model::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply};
use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, StopReason, Tokens, ToolUse, Usage};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// What every reply costs.
pub(crate) const USAGE: Usage = Usage {
    input: Tokens(100),
    cache_read: Tokens(0),
    cache_write: Tokens(0),
    output: Tokens(10),
    thinking: Tokens(0),
    estimated: Tokens(0),
};

/// One request's answer: some deltas, then an end.
pub(crate) struct Step {
    deltas: Vec<Delta>,
    /// What it waits for before its end.
    gate: Option<Arc<Notify>>,
    end: End,
}

enum End {
    Reply(Reply),
    Error(ModelError),
    /// Waits for the token, then says that it was cancelled.
    Stalls,
    /// Never ends, whatever the token says.
    Deaf,
}

/// Says this and stops.
pub(crate) fn says(text: &str) -> Step {
    stopped(vec![Block::text(text)], StopReason::EndTurn)
}

/// Makes these calls: id, tool, arguments.
pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Step {
    calls_of(calls.iter().map(|(id, name, input)| call(id, name, input.clone())).collect())
}

/// Makes these calls.
pub(crate) fn calls_of(calls: Vec<ToolUse>) -> Step {
    stopped(calls.into_iter().map(Block::ToolUse).collect(), StopReason::ToolUse)
}

/// One call.
pub(crate) fn call(id: &str, name: &str, input: Value) -> ToolUse {
    ToolUse { id: CallId::new(id), name: name.to_owned(), input, malformed: None, signature: None }
}

/// A reply of these blocks that stopped for this reason.
pub(crate) fn stopped(content: Vec<Block>, stop: StopReason) -> Step {
    let message = Message { role: Role::Assistant, content };
    let reply = Reply { message, stop, usage: USAGE, model: "told".to_owned() };
    Step { deltas: Vec::new(), gate: None, end: End::Reply(reply) }
}

/// An error instead of a reply.
pub(crate) fn fails(error: ModelError) -> Step {
    Step { deltas: Vec::new(), gate: None, end: End::Error(error) }
}

/// Waits until it is cancelled.
pub(crate) fn stalls() -> Step {
    Step { deltas: Vec::new(), gate: None, end: End::Stalls }
}

/// Waits for ever, and doesn't hear that it is cancelled.
pub(crate) fn deaf() -> Step {
    Step { deltas: Vec::new(), gate: None, end: End::Deaf }
}

impl Step {
    /// The same after these deltas.
    pub(crate) fn after(self, deltas: Vec<Delta>) -> Self {
        Self { deltas, ..self }
    }

    /// The same with a text before the reply's content.
    pub(crate) fn saying(mut self, text: &str) -> Self {
        if let End::Reply(reply) = &mut self.end {
            reply.message.content.insert(0, Block::text(text));
        }
        self
    }

    /// The same with this input reported.
    pub(crate) fn reporting(mut self, input: Tokens) -> Self {
        if let End::Reply(reply) = &mut self.end {
            reply.usage = Usage { input, ..Usage::default() };
        }
        self
    }

    /// The same once the gate is open.
    pub(crate) fn when(self, gate: &Arc<Notify>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..self }
    }
}

/// A piece of the first text block.
pub(crate) fn piece(text: &str) -> Delta {
    Delta::Text { block: 0, text: text.to_owned() }
}

/// What a model answers whose steps are over.
type Otherwise = dyn Fn(&ModelRequest) -> Step + Send + Sync;

/// Answers each request with the next step; after the last, as it was told to, or with an error.
pub(crate) struct Told {
    steps: Mutex<VecDeque<Step>>,
    otherwise: Box<Otherwise>,
    requests: Mutex<Vec<ModelRequest>>,
    asked: watch::Sender<usize>,
}

impl Told {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        Self::then(steps, |_| fails(ModelError::Script("nothing is left to say".to_owned())))
    }

    /// Answers by what it is asked.
    pub(crate) fn by(answer: impl Fn(&ModelRequest) -> Step + Send + Sync + 'static) -> Arc<Self> {
        Self::then([], answer)
    }

    fn then(
        steps: impl IntoIterator<Item = Step>,
        otherwise: impl Fn(&ModelRequest) -> Step + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (steps, otherwise) = (Mutex::new(steps.into_iter().collect()), Box::new(otherwise));
        Arc::new(Self { steps, otherwise, requests: Mutex::default(), asked: watch::Sender::new(0) })
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests were made and their deltas taken.
    pub(crate) async fn asked(&self, count: usize) {
        self.asked.subscribe().wait_for(|asked| *asked >= count).await.unwrap();
    }

    /// Everything that the model was ever told, as text.
    pub(crate) fn heard(&self) -> String {
        self.requests().iter().map(|request| format!("{request:?}\n")).collect()
    }
}

impl Model for Told {
    fn name(&self) -> String {
        "test/told".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        let begun = stream::once(async move {
            self.requests.lock().unwrap().push(request.clone());
            let step = self.steps.lock().unwrap().pop_front();
            let Step { deltas, gate, end } = step.unwrap_or_else(|| (self.otherwise)(request));
            let last = stream::once(async move {
                self.asked.send_modify(|asked| *asked += 1);
                if let Some(gate) = gate {
                    gate.notified().await;
                }
                match end {
                    End::Reply(reply) => Ok(Delta::Done(Box::new(reply))),
                    End::Error(error) => Err(error),
                    End::Stalls => {
                        cancel.cancelled().await;
                        Err(ModelError::Cancelled)
                    }
                    End::Deaf => std::future::pending().await,
                }
            });
            stream::iter(deltas.into_iter().map(Ok)).chain(last)
        });
        begun.flatten().boxed()
    }
}

/// The text of the one result that answers `id` in what a model is told.
pub(crate) fn result(request: &ModelRequest, id: &str) -> String {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let found: Vec<String> = blocks.filter_map(|block| text_of(block, id)).collect();
    let [text] = found.as_slice() else { panic!("{} results of {id}", found.len()) };
    text.clone()
}

fn text_of(block: &Block, id: &str) -> Option<String> {
    let Block::ToolResult { id: answers, content, .. } = block else { return None };
    let part = |part: &ResultPart| match part {
        ResultPart::Text { text } => text.clone(),
        ResultPart::Image(_) => "[image]".to_owned(),
    };
    (answers.as_str() == id).then(|| content.iter().map(part).collect::<Vec<_>>().join("\n"))
}
