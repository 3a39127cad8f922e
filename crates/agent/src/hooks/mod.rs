//! Hooks: what a program or a user wants to know of, or to have a say in, while a session works.
//!
//! A hook is a Rust closure ([`HooksBuilder`]) or a command that a configuration names ([`HookCommand`]), which gets
//! JSON on its standard input and answers with its exit code and output as Claude Code's hooks do. docs/hooks.md
//! is for those who write one.
//!
//! The rules, for closures and commands alike:
//!
//! * Closures run one after the other in the order in which they were added, then the commands, all of an event at
//!   once. What the commands say is put together in the order of the configuration, whichever ended first.
//! * Before a call, deny beats ask beats approve. Of several that decide the same, the first one's reason is given.
//!   A closure that denies or gives the result ends the matter; one that asks ends it for the other closures, and a
//!   command can still deny.
//! * Only what comes before something ([`HookEvent::may_deny`]) is refused by a hook, and is refused too by one that
//!   hangs, dies or can't be started. Anything else that goes wrong with a hook is a warning.
//! * Commands run in the sandbox, unless their configuration says otherwise; then they run only as long as the session
//!   changed nothing that decides what they do ([`Unseen`]).
//! * A hook never allows what policy denies. [`PreTool::Approve`] only spares a question below level 3.
//! * Amended input is an offer: whoever called checks it against the schema and judges it anew.
//!
//! Nothing here writes the log or asks a person. The session does, with what it gets back.

mod answer;
mod builder;
mod closures;
mod command;
mod configured;
mod confined;
pub(crate) mod dispatch;
mod event;
mod home;
mod interface;
mod matcher;
mod names;
mod payload;
mod run;
pub(crate) mod unseen;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use journeyman_protocol::RelPath;

pub use answer::HOOK_TEXT_CHARS;
pub use builder::HooksBuilder;
pub use command::HOOK_OUTPUT_BYTES;
pub use configured::{DEFAULT_HOOK_TIMEOUT, HookCommand, script_hashes};
pub use event::{Dialect, EventName, HookEvent, Results};
pub use interface::{
    Gate, GateSaid, HookContext, HookNotes, HookResult, HookSandbox, PreTool, PreToolAnswer, PreToolSaid,
    StartedBy, TurnEnd, TurnEndSaid, Unseen,
};
pub use matcher::Matcher;

use closures::Closures;
use configured::Armed;

/// The hooks of a session. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<Inner>,
}

struct Inner {
    closures: Closures,
    commands: Vec<Armed>,
    variables: BTreeMap<OsString, OsString>,
}

impl Hooks {
    /// No hooks.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Closures::default(), Vec::new(), BTreeMap::new())
    }

    fn new(closures: Closures, commands: Vec<Armed>, variables: BTreeMap<OsString, OsString>) -> Self {
        Self { inner: Arc::new(Inner { closures, commands, variables }) }
    }

    /// The files that keep commands of an event outside of the sandbox from being run.
    #[must_use]
    pub fn kept_by(&self, event: HookEvent, unseen: &Unseen) -> Vec<RelPath> {
        let mut found: Vec<RelPath> =
            self.outside(event).flat_map(|armed| armed.obeyed(&unseen.files)).cloned().collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns true where commands run outside of the sandbox at an event.
    #[must_use]
    pub fn has_outside(&self, event: HookEvent) -> bool {
        self.outside(event).next().is_some()
    }

    /// Returns true where commands run at an event.
    #[must_use]
    pub fn has_commands(&self, event: HookEvent) -> bool {
        self.inner.commands.iter().any(|armed| armed.hook.event == event)
    }

    fn outside(&self, event: HookEvent) -> impl Iterator<Item = &Armed> {
        self.inner.commands.iter().filter(move |armed| armed.hook.event == event && !armed.hook.sandbox)
    }

    /// Whether nothing runs at an event.
    #[must_use]
    pub fn is_empty(&self, event: HookEvent) -> bool {
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
        // Variables are somebody's secrets.
        let commands = self.inner.commands.iter().map(|command| &command.hook);
        f.debug_struct("Hooks").field("commands", &commands.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
