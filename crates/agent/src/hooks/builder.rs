//! Collects the hooks of a session: closures of a program, and commands of a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_model::ModelRequest;
use journeyman_protocol::{Effects, Message, ToolUse};

use super::closures::Closures;
use super::hook_command::{HookCommand, PinnedCommand};
use super::{GateDecision, HookCallResult, HookContext, Hooks, PreToolAnswer, TurnEndDecision};

/// Collects hooks. Closures run in the order in which they are added here, before any configured
/// command.
///
/// ```
/// use journeyman_agent::hooks::{HooksBuilder, PreToolDecision};
///
/// let hooks = HooksBuilder::new()
///     .on_pre_tool(|_, call, _| match call.name.as_str() {
///         "run_command" => PreToolDecision::Deny { reason: "no commands today".to_owned() },
///         _ => PreToolDecision::Go,
///     })
///     .on_post_tool_async(|_, call, result| {
///         Box::pin(async move {
///             let advice = format!("{} failed; look before you try again", call.name);
///             if result.is_error { vec![advice] } else { vec![] }
///         })
///     })
///     .build();
/// # let _ = hooks;
/// ```
#[derive(Clone, Default)]
pub struct HooksBuilder {
    closures: Closures,
    commands: Vec<HookCommand>,
    variables: BTreeMap<OsString, OsString>,
    hidden: BTreeSet<OsString>,
    root: Option<Arc<Path>>,
}

/// Defines the two ways to add a closure for one event: one that returns its answer, and one that
/// returns a future.
macro_rules! closure {
    ($what:literal, $now:ident, $later:ident, $field:ident, $life:lifetime,
     ($($arg:ident: $kind:ty),*) -> $answer:ty, $given:ty) => {
        #[doc = concat!("Adds a closure that runs ", $what, " and answers at once.")]
        #[must_use]
        pub fn $now<F, A>(self, hook: F) -> Self
        where
            F: for<$life> Fn($($kind),*) -> A + Send + Sync + 'static,
            A: Into<$given>,
        {
            self.$later(move |$($arg),*| std::future::ready(hook($($arg),*).into()).boxed())
        }

        #[doc = concat!("Adds a closure that runs ", $what, " and may wait; see [`HooksBuilder::closure_timeout`].")]
        #[must_use]
        pub fn $later<F>(mut self, hook: F) -> Self
        where
            F: for<$life> Fn($($kind),*) -> BoxFuture<$life, $answer> + Send + Sync + 'static,
        {
            self.closures.$field.push(Arc::new(hook));
            self
        }
    };
}

impl HooksBuilder {
    /// Creates a builder without hooks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    closure!("before a message of the user is taken", on_prompt, on_prompt_async, prompt, 'a,
        (at: &'a HookContext, text: &'a str) -> GateDecision, GateDecision);
    closure!("before a tool call", on_pre_tool, on_pre_tool_async, pre_tool, 'a,
        (at: &'a HookContext, call: &'a ToolUse, effects: &'a Effects) -> PreToolAnswer, PreToolAnswer);
    closure!("after a tool call; it may change the result, and gives context for the model",
        on_post_tool, on_post_tool_async, post_tool, 'a,
        (at: &'a HookContext, call: &'a ToolUse, result: &'a mut HookCallResult) -> Vec<String>, Vec<String>);
    closure!("before the model is asked; it may change the request", on_pre_model, on_pre_model_async, pre_model, 'a,
        (at: &'a HookContext, request: &'a mut ModelRequest) -> GateDecision, GateDecision);
    closure!("after the model's reply, before it is kept; it may change it",
        on_post_model, on_post_model_async, post_model, 'a,
        (at: &'a HookContext, reply: &'a mut Message) -> (), ());
    closure!("after messages were added to the conversation", on_post_append, on_post_append_async, post_append, 'a,
        (at: &'a HookContext, added: &'a [Message]) -> (), ());
    closure!("before a turn ends", on_turn_end, on_turn_end_async, turn_end, 'a,
        (at: &'a HookContext, text: &'a str) -> TurnEndDecision, TurnEndDecision);
    closure!("when a session starts or goes on; it gives context for the model",
        on_session_start, on_session_start_async, session_start, 'a,
        (at: &'a HookContext) -> Vec<String>, Vec<String>);
    closure!("when a session ends", on_session_end, on_session_end_async, session_end, 'a,
        (at: &'a HookContext) -> (), ());
    closure!("before the conversation is shortened; its context is kept",
        on_pre_compact, on_pre_compact_async, pre_compact, 'a,
        (at: &'a HookContext, messages: &'a [Message]) -> GateDecision, GateDecision);

    /// Sets the timeout of each closure; the default is
    /// [`DEFAULT_HOOK_TIMEOUT`](super::DEFAULT_HOOK_TIMEOUT). A synchronous closure can't be
    /// stopped, so it must not wait for anything.
    #[must_use]
    pub fn closure_timeout(mut self, timeout: Duration) -> Self {
        self.closures.timeout = timeout;
        self
    }

    /// Adds commands, in order.
    #[must_use]
    pub fn commands(mut self, commands: impl IntoIterator<Item = HookCommand>) -> Self {
        self.commands.extend(commands);
        self
    }

    /// Sets the environment of the commands: the user's. By default they get only the two variables
    /// that name the project.
    #[must_use]
    pub fn variables(mut self, variables: BTreeMap<OsString, OsString>) -> Self {
        self.variables = variables;
        self
    }

    /// Hides variables from the commands, such as those that hold providers' keys.
    #[must_use]
    pub fn hide_variables(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.hidden.extend(names.into_iter().map(Into::into));
        self
    }

    /// Pins the commands to the present scripts of this project. A command whose script changes
    /// while the session runs is no longer started, because the model could have changed the
    /// script.
    #[must_use]
    pub fn pin_scripts(mut self, root: &Path) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Builds the hooks.
    #[must_use]
    pub fn build(mut self) -> Hooks {
        self.variables.retain(|name, _| !self.hidden.contains(name));
        let root = self.root.as_deref();
        let commands = self.commands.into_iter().map(|command| PinnedCommand::new(command, root)).collect();
        Hooks::new(self.closures, commands, self.variables)
    }
}
