//! Hooks: closures and commands that observe a session's work and take part in its decisions.
//!
//! A hook is a Rust closure ([`HooksBuilder`]) or a command that a configuration names
//! ([`HookCommand`]). A command gets JSON on its standard input and answers with its exit code and
//! output, as Claude Code's hooks do. `docs/hooks.md` is the guide for hook authors.
//!
//! The rules, for closures and commands alike:
//!
//! - Closures run first, one after another, in the order in which they were added. Then the
//!   commands of the event run, all at once. Their answers are combined in the order of the
//!   configuration, whichever command ends first.
//! - Before a call, deny beats ask beats approve. If several hooks decide the same, the first one's
//!   reason is given. A closure that denies the call or supplies its result ends the decision. A
//!   closure that asks skips the remaining closures, but a command can still deny.
//! - A hook can refuse only an event that precedes an action ([`HookEvent::may_deny`]). A hook for
//!   such an event that hangs, dies or can't be started refuses the action too. Any other failure
//!   of a hook is a warning.
//! - Commands run in the sandbox, unless their configuration says otherwise. A command outside the
//!   sandbox runs only while the session has changed no file that decides what the command does
//!   ([`UnseenChanges`]).
//! - A hook never allows a call that policy denies. [`PreToolDecision::Approve`] only skips the
//!   approval question, and only below level 3.
//! - Amended input is a proposal: the caller checks it against the schema and authorizes it again.
//!
//! This module neither writes the log nor asks a person. The session does both with the results.

mod answer;
mod builder;
pub(crate) mod change_review;
mod closures;
mod command;
mod confined_command;
pub(crate) mod dispatch;
mod event;
mod home_directory;
mod hook_command;
mod interface;
mod matcher;
mod payload;
mod run;
mod tool_names;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use journeyman_protocol::RelPath;

pub use answer::MAX_HOOK_TEXT_CHARS;
pub use builder::HooksBuilder;
pub use command::MAX_HOOK_OUTPUT_BYTES;
pub use event::{Dialect, EventName, HookEvent, ResultFilter};
pub use hook_command::{DEFAULT_HOOK_TIMEOUT, HookCommand, hash_scripts};
pub use interface::{
    GateDecision, GateResult, HookCallResult, HookContext, HookNotes, HookSandbox, PreToolAnswer,
    PreToolDecision, PreToolResult, SessionStartKind, TurnEndDecision, TurnEndResult, UnseenChanges,
};
pub use matcher::Matcher;

use closures::Closures;
use hook_command::PinnedCommand;

/// The hooks of a session. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<HooksInner>,
}

struct HooksInner {
    closures: Closures,
    commands: Vec<PinnedCommand>,
    variables: BTreeMap<OsString, OsString>,
}

impl Hooks {
    /// Creates a value without hooks.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Closures::default(), Vec::new(), BTreeMap::new())
    }

    fn new(
        closures: Closures,
        commands: Vec<PinnedCommand>,
        variables: BTreeMap<OsString, OsString>,
    ) -> Self {
        Self { inner: Arc::new(HooksInner { closures, commands, variables }) }
    }

    /// Returns the files that keep an event's commands outside the sandbox from running.
    #[must_use]
    pub fn find_blocking_files(&self, event: HookEvent, unseen: &UnseenChanges) -> Vec<RelPath> {
        let mut found: Vec<RelPath> = self
            .commands_outside_sandbox(event)
            .flat_map(|armed| armed.find_deciding_files(&unseen.files))
            .cloned()
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns true if commands run outside the sandbox at an event.
    #[must_use]
    pub fn has_commands_outside_sandbox(&self, event: HookEvent) -> bool {
        self.commands_outside_sandbox(event).next().is_some()
    }

    /// Returns true if commands run at an event.
    #[must_use]
    pub fn has_commands(&self, event: HookEvent) -> bool {
        self.inner.commands.iter().any(|armed| armed.hook.event == event)
    }

    fn commands_outside_sandbox(&self, event: HookEvent) -> impl Iterator<Item = &PinnedCommand> {
        self.inner.commands.iter().filter(move |armed| armed.hook.event == event && !armed.hook.sandbox)
    }

    /// Returns true if no hook runs at an event.
    #[must_use]
    pub fn has_no_hook_at(&self, event: HookEvent) -> bool {
        let closures = &self.inner.closures;
        let closures = match event {
            HookEvent::Prompt => closures.prompt.len(),
            HookEvent::PreTool => closures.pre_tool.len(),
            HookEvent::PostTool => closures.post_tool.len(),
            HookEvent::PreModel => closures.pre_model.len(),
            HookEvent::PostModel => closures.post_model.len(),
            HookEvent::TurnEnd => closures.turn_end.len(),
            HookEvent::SessionStart => closures.session_start.len(),
            HookEvent::SessionEnd => closures.session_end.len(),
            HookEvent::PostAppend => closures.post_append.len(),
            HookEvent::PreCompact => closures.pre_compact.len(),
        };
        closures == 0 && self.inner.commands.iter().all(|command| command.hook.event != event)
    }
}

impl Default for Hooks {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables may hold secrets.
        let commands = self.inner.commands.iter().map(|command| &command.hook);
        f.debug_struct("Hooks").field("commands", &commands.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
