//! A tool defined by a Rust type for its arguments and a closure.

use std::marker::PhantomData;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec, clip_to_bytes};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::fit_to_schema;
use crate::excerpt::to_one_line;
use crate::schema::{schema_of, type_signature};
use crate::{DEFAULT_CALL_TIME, Tool, ToolContext, ToolError, ToolOutput};

/// Maximum bytes of the arguments in a summary.
const MAX_SUMMARY_BYTES: usize = 160;

/// The function that makes a call.
type RunCall<A> = dyn Fn(A, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;
/// The function that returns the effects of a call.
type CallEffectsFn<A> = dyn Fn(&A) -> Effects + Send + Sync;

/// A tool whose arguments are read into a Rust type, from which the model's schema is made.
///
/// Without [`TypedTool::with_effects`] its calls count as reading the project and changing nothing.
///
/// ```
/// use journeyman_protocol::Effects;
/// use journeyman_tools::{Registry, ToolOutput, TypedTool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Ticket {
///     /// Such as 4711
///     number: u64,
/// }
///
/// let tool = TypedTool::new("read_ticket", "Reads a ticket.", |ticket: Ticket, _| async move {
///     Ok(ToolOutput::text(format!("ticket {} is open", ticket.number)))
/// })
/// .with_effects(|_| {
///     let hosts = vec!["tickets.example.com".to_owned()];
///     Effects { hosts, ..Effects::default() }
/// });
/// let mut tools = Registry::with_builtin();
/// tools.add(Box::new(tool));
/// assert_eq!(tools.get("read_ticket").unwrap().spec().input_schema["required"][0], "number");
/// ```
pub struct TypedTool<A> {
    name: String,
    description: String,
    schema: Value,
    run: Box<RunCall<A>>,
    effects: Option<Box<CallEffectsFn<A>>>,
    limit: Option<Duration>,
    arguments: PhantomData<fn(A)>,
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> TypedTool<A> {
    /// Creates a tool whose calls `run` makes.
    pub fn new<F, Fut>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: description.into(),
            schema: schema_of::<A>(),
            run: Box::new(move |arguments, context| run(arguments, context).boxed()),
            effects: None,
            limit: Some(DEFAULT_CALL_TIME),
            arguments: PhantomData,
        }
    }

    /// Sets the function that returns the effects of a call: files that it writes, hosts that it
    /// reaches, a command that it runs. Policy judges these, and the calls no longer count as
    /// read-only.
    #[must_use]
    pub fn with_effects(mut self, effects: impl Fn(&A) -> Effects + Send + Sync + 'static) -> Self {
        self.effects = Some(Box::new(effects));
        self
    }

    /// Sets the maximum duration of a call; `None` for no limit.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    fn read_arguments(&self, input: &Value) -> Result<A, ToolError> {
        if let Ok(arguments) = serde_json::from_value(input.clone()) {
            return Ok(arguments);
        }
        // Harmless slips are corrected.
        let fitted =
            fit_to_schema(&self.schema, input.clone()).map_err(|problems| self.argument_error(problems))?;
        serde_json::from_value(fitted).map_err(|error| self.argument_error(error.to_string()))
    }

    fn argument_error(&self, problems: String) -> ToolError {
        ToolError::Arguments {
            tool: self.name.clone().into(),
            problems,
            signature: type_signature(&self.schema),
        }
    }
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Tool for TypedTool<A> {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            input_schema: self.schema.clone(),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments = self.read_arguments(input)?;
        Ok(self.effects.as_ref().map(|effects| effects(&arguments)).unwrap_or_default())
    }

    fn summary(&self, input: &Value) -> String {
        let arguments = input.to_string();
        let shown = to_one_line(clip_to_bytes(&arguments, MAX_SUMMARY_BYTES), MAX_SUMMARY_BYTES);
        format!("{} {shown}", self.name)
    }

    fn is_read_only(&self) -> bool {
        self.effects.is_none()
    }

    fn time_limit(&self) -> Option<Duration> {
        self.limit
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match self.read_arguments(&input) {
            Ok(arguments) => (self.run)(arguments, context.clone()),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }
}
