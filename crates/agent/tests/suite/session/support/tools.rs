//! Tools that only tests need.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_tools::{DEFAULT_CALL_TIME, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

/// A tool that several sessions have, one after the other.
pub(crate) struct Lent(pub(crate) Arc<dyn Tool>);

impl Tool for Lent {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        self.0.effects(input)
    }

    fn summary(&self, input: &Value) -> String {
        self.0.summary(input)
    }

    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    fn time_limit(&self) -> Option<Duration> {
        self.0.time_limit()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.call(context, input)
    }
}

/// Does nothing. Its calls meet at a barrier, or wait at a gate, if there is one; what begins and
/// ends is noted.
pub(crate) struct Meet {
    pub(crate) name: &'static str,
    pub(crate) read_only: bool,
    pub(crate) barrier: Option<Arc<Barrier>>,
    pub(crate) gate: Option<Arc<Notify>>,
    pub(crate) trail: Arc<Trail>,
}

/// Who began and ended, in order, and how many were at it at once.
#[derive(Default)]
pub(crate) struct Trail {
    pub(crate) steps: Mutex<Vec<String>>,
    now: AtomicUsize,
    pub(crate) most: AtomicUsize,
}

impl Trail {
    fn begin(&self, who: &str) {
        self.steps.lock().unwrap().push(format!("{who} begins"));
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn end(&self, who: &str) {
        self.steps.lock().unwrap().push(format!("{who} ends"));
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Meet {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: self.name.to_owned(), description: "Meets others.".to_owned(), input_schema }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        self.name.to_owned()
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let who = context.call.to_string();
        async move {
            self.trail.begin(&who);
            match (&self.barrier, &self.gate) {
                (Some(barrier), _) => {
                    barrier.wait().await;
                }
                (None, Some(gate)) => gate.notified().await,
                (None, None) => tokio::task::yield_now().await,
            }
            self.trail.end(&who);
            Ok(ToolOutput::text(format!("{who} was here")))
        }
        .boxed()
    }
}

/// What a tool of the test's own does.
pub(crate) type Work =
    dyn Fn(ToolContext, Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool that does as the test says.
pub(crate) struct Does {
    pub(crate) name: &'static str,
    pub(crate) read_only: bool,
    pub(crate) limit: Option<Duration>,
    pub(crate) work: Arc<Work>,
}

impl Does {
    /// A tool that only reads, with the limit that every tool has.
    pub(crate) fn reading<F, Fut>(name: &'static str, work: F) -> Self
    where
        F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let work: Arc<Work> = Arc::new(move |context, input| work(context, input).boxed());
        Self { name, read_only: true, limit: Some(DEFAULT_CALL_TIME), work }
    }

    /// The same, as one that changes the files that its argument `path` names.
    pub(crate) fn writing(self) -> Self {
        Self { read_only: false, ..self }
    }
}

impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: self.name.to_owned(), description: "Does as it is told.".to_owned(), input_schema }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let path = input["path"].as_str().map(|path| RelPath::parse(path).unwrap());
        match self.read_only {
            true => Ok(Effects { reads: path.into_iter().collect(), ..Effects::default() }),
            false => Ok(Effects { writes: path.into_iter().collect(), ..Effects::default() }),
        }
    }

    fn summary(&self, _input: &Value) -> String {
        self.name.to_owned()
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn time_limit(&self) -> Option<Duration> {
        self.limit
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.work)(context.clone(), input)
    }
}

/// Has a bug.
pub(crate) struct Panics;

impl Tool for Panics {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: "panic".to_owned(), description: "Panics.".to_owned(), input_schema }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        "panic".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async { panic!("a bug, as the test wants it") }.boxed()
    }
}
