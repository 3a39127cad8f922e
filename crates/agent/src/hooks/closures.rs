//! The closures of each hook event.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journeyman_model::ModelRequest;
use journeyman_protocol::{Effects, Message, ToolUse};

use super::configured::DEFAULT_HOOK_TIMEOUT;
use super::interface::{Gate, HookContext, HookResult, PreToolAnswer, TurnEnd};

/// The future of a closure's answer.
type Later<'a, T> = BoxFuture<'a, T>;

/// A closure for an event that concerns only the session.
type Told<T> = dyn for<'a> Fn(&'a HookContext) -> Later<'a, T> + Send + Sync;
/// A closure for an event with a subject of type `S`.
type Shown<S, T> = dyn for<'a> Fn(&'a HookContext, &'a S) -> Later<'a, T> + Send + Sync;
/// A closure for an event whose subject of type `S` it may change.
type Lent<S, T> = dyn for<'a> Fn(&'a HookContext, &'a mut S) -> Later<'a, T> + Send + Sync;
type PreToolFn =
    dyn for<'a> Fn(&'a HookContext, &'a ToolUse, &'a Effects) -> Later<'a, PreToolAnswer> + Send + Sync;
type PostToolFn =
    dyn for<'a> Fn(&'a HookContext, &'a ToolUse, &'a mut HookResult) -> Later<'a, Vec<String>> + Send + Sync;

/// The closures of each event, in the order in which they were added.
#[derive(Clone)]
pub(super) struct Closures {
    pub(super) prompt: Vec<Arc<Shown<str, Gate>>>,
    pub(super) pre_tool: Vec<Arc<PreToolFn>>,
    pub(super) post_tool: Vec<Arc<PostToolFn>>,
    pub(super) pre_model: Vec<Arc<Lent<ModelRequest, Gate>>>,
    pub(super) post_model: Vec<Arc<Lent<Message, ()>>>,
    pub(super) post_append: Vec<Arc<Shown<[Message], ()>>>,
    pub(super) turn_end: Vec<Arc<Shown<str, TurnEnd>>>,
    pub(super) session_start: Vec<Arc<Told<Vec<String>>>>,
    pub(super) session_end: Vec<Arc<Told<()>>>,
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
            timeout: DEFAULT_HOOK_TIMEOUT,
        }
    }
}
