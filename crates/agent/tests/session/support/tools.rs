//! Tools that only tests need.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
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

    fn limit(&self) -> Option<std::time::Duration> {
        self.0.limit()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.call(context, input)
    }
}

/// Does nothing. Its calls meet at a barrier, or wait at a gate, if there is one; what begins and ends is noted.
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
