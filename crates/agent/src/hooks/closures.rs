//! The closures of each hook event.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journeyman_model::ModelRequest;
use journeyman_protocol::{Effects, Message, ToolUse};

use super::hook_command::DEFAULT_HOOK_TIMEOUT;
use super::interface::{GateDecision, HookCallResult, HookContext, PreToolAnswer, TurnEndDecision};

/// The future of a closure's answer.
type HookFuture<'a, T> = BoxFuture<'a, T>;

/// A closure for an event that concerns only the session.
type SessionHook<T> = dyn for<'a> Fn(&'a HookContext) -> HookFuture<'a, T> + Send + Sync;
/// A closure for an event with a subject of type `S`.
type SubjectHook<S, T> = dyn for<'a> Fn(&'a HookContext, &'a S) -> HookFuture<'a, T> + Send + Sync;
/// A closure for an event whose subject of type `S` it may change.
type MutSubjectHook<S, T> = dyn for<'a> Fn(&'a HookContext, &'a mut S) -> HookFuture<'a, T> + Send + Sync;
type PreToolFn =
    dyn for<'a> Fn(&'a HookContext, &'a ToolUse, &'a Effects) -> HookFuture<'a, PreToolAnswer> + Send + Sync;
type PostToolFn = dyn for<'a> Fn(&'a HookContext, &'a ToolUse, &'a mut HookCallResult) -> HookFuture<'a, Vec<String>>
    + Send
    + Sync;

/// The closures of each event, in the order in which they were added.
#[derive(Clone)]
pub(super) struct Closures {
    pub(super) prompt: Vec<Arc<SubjectHook<str, GateDecision>>>,
    pub(super) pre_tool: Vec<Arc<PreToolFn>>,
    pub(super) post_tool: Vec<Arc<PostToolFn>>,
    pub(super) pre_model: Vec<Arc<MutSubjectHook<ModelRequest, GateDecision>>>,
    pub(super) post_model: Vec<Arc<MutSubjectHook<Message, ()>>>,
    pub(super) post_append: Vec<Arc<SubjectHook<[Message], ()>>>,
    pub(super) turn_end: Vec<Arc<SubjectHook<str, TurnEndDecision>>>,
    pub(super) session_start: Vec<Arc<SessionHook<Vec<String>>>>,
    pub(super) session_end: Vec<Arc<SessionHook<()>>>,
    pub(super) pre_compact: Vec<Arc<SubjectHook<[Message], GateDecision>>>,
    /// Timeout of each closure.
    pub(super) timeout: Duration,
}

impl Default for Closures {
    fn default() -> Self {
        Self {
            prompt: Vec::new(),
            pre_tool: Vec::new(),
            post_tool: Vec::new(),
            pre_model: Vec::new(),
            post_model: Vec::new(),
            post_append: Vec::new(),
            turn_end: Vec::new(),
            session_start: Vec::new(),
            session_end: Vec::new(),
            pre_compact: Vec::new(),
            timeout: DEFAULT_HOOK_TIMEOUT,
        }
    }
}
