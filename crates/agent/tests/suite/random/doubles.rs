//! A model, tools and a store that do what the driver says, when it says so.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use journeyman_model::{Delta, DeltaStream, Model, ModelError, ModelRequest};
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_store::{NewEntry, StoreError};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::crash::gated::{Gate, Op};
use crate::random::gates::{Gates, Verdict, Who};

/// Answers with what the driver says.
pub(crate) struct Told {
    pub(crate) gates: Gates,
    /// Whether it hears that it is cancelled.
    pub(crate) deaf: bool,
}

impl Model for Told {
    fn name(&self) -> String {
        "test/told".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        let cancel = if self.deaf { CancellationToken::new() } else { cancel };
        stream::unfold(false, move |ended| {
            let cancel = cancel.clone();
            async move {
                if ended {
                    return None;
                }
                let verdict = tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Some((Err(ModelError::Cancelled), true)),
                    verdict = self.gates.wait(Who::Model(request.messages.clone())) => verdict,
                };
                Some(match verdict {
                    Some(Verdict::Say(text)) => (Ok(Delta::Text { block: 0, text }), false),
                    Some(Verdict::Reply(reply)) => (Ok(Delta::Done(reply)), true),
                    Some(Verdict::ModelFails(error)) => (Err(error), true),
                    // A stream that ends without a reply.
                    Some(_) => return None,
                    None => std::future::pending().await,
                })
            }
        })
        .boxed()
    }
}

/// What a tool says that it would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Reads a file.
    Look,
    /// Writes a file, which policy allows.
    Touch,
    /// Writes a file that a person is asked for.
    Ask,
    /// Anything.
    Any,
    /// Writes a file, and doesn't hear that it is cancelled.
    Stubborn,
}

/// A tool that does nothing but wait at its gate.
pub(crate) struct Waits {
    pub(crate) does: Does,
    pub(crate) gates: Gates,
}

impl Does {
    pub(crate) const ALL: [Self; 5] = [Self::Look, Self::Touch, Self::Ask, Self::Any, Self::Stubborn];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Touch => "touch",
            Self::Ask => "ask",
            Self::Any => "any",
            Self::Stubborn => "stubborn",
        }
    }
}

impl Tool for Waits {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        ToolSpec { name: self.does.name().to_owned(), description: "Waits.".to_owned(), input_schema }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let Some(name) = input.get("path").and_then(Value::as_str) else {
            let (tool, problems) = (self.does.name(), "`path` is missing".to_owned());
            return Err(ToolError::Arguments { tool: tool.into(), problems, signature: "path".to_owned() });
        };
        let path = |name: &str| vec![RelPath::parse(name).expect("a path")];
        Ok(match self.does {
            Does::Look => Effects { reads: path(name), ..Effects::default() },
            Does::Touch | Does::Stubborn => Effects { writes: path(name), ..Effects::default() },
            Does::Ask => Effects { writes: path(&format!("{name}/.envrc")), ..Effects::default() },
            Does::Any => Effects::default(),
        })
    }

    fn summary(&self, _: &Value) -> String {
        self.does.name().to_owned()
    }

    fn is_read_only(&self) -> bool {
        self.does == Does::Look
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let never = CancellationToken::new();
            let cancel = if self.does == Does::Stubborn { &never } else { &context.cancel };
            let verdict = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ToolError::Cancelled),
                verdict = self.gates.wait(Who::Tool(context.call.clone())) => verdict,
            };
            match verdict {
                Some(Verdict::Go) => Ok(ToolOutput::text(format!("{} is done", context.call))),
                // Not a word of it on the terminal: there are thousands of them.
                Some(Verdict::Panic) => std::panic::resume_unwind(Box::new("a bug, as the test wants it")),
                Some(_) => Err(ToolError::Stopped("it did not work out".to_owned())),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

/// Holds appends up. A dead one answers nobody.
pub(crate) struct Held {
    pub(crate) gates: Gates,
    pub(crate) dead: Arc<AtomicBool>,
    /// Whether appends wait for the driver; otherwise they go through.
    pub(crate) waits: Arc<AtomicBool>,
}

fn full() -> StoreError {
    let path = PathBuf::from("/log");
    StoreError::DiskFull { action: "append to", path, detail: "as the test wants it".to_owned() }
}

fn uncertain() -> StoreError {
    StoreError::Uncertain { path: PathBuf::from("/log"), detail: "as the test wants it".to_owned() }
}

impl Held {
    async fn at(&self, who: Who) -> Result<(), StoreError> {
        if self.dead.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        if !self.waits.load(Ordering::SeqCst) {
            return Ok(());
        }
        match self.gates.wait(who).await {
            Some(Verdict::Go) => Ok(()),
            Some(Verdict::Doubt) => Err(uncertain()),
            Some(_) => Err(full()),
            None => std::future::pending().await,
        }
    }
}

impl Gate for Held {
    fn before(&self, op: Op, _: &[NewEntry]) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            match op {
                Op::Append => self.at(Who::Append).await,
                _ if self.dead.load(Ordering::SeqCst) => std::future::pending().await,
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn after(&self, op: Op) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { if op == Op::Append { self.at(Who::Appended).await } else { Ok(()) } }.boxed()
    }
}
