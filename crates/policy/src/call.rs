//! The call that a policy judges.

use journeyman_protocol::{Effects, Enforcement, Mode};

/// The sub-agent that makes a call. Rules may name it by either of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallingAgent<'a> {
    /// The name of its definition.
    pub definition: &'a str,
    /// The name that it has in a group of agents, if that is another one.
    pub member: Option<&'a str>,
}

impl<'a> From<&'a str> for CallingAgent<'a> {
    fn from(definition: &'a str) -> Self {
        Self { definition, member: None }
    }
}

impl<'a> CallingAgent<'a> {
    /// Returns its names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        std::iter::once(self.definition).chain(self.member)
    }
}

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The sub-agent that makes the call; `None` for the session's own agent, which rules call
    /// [`MAIN_AGENT`](crate::MAIN_AGENT).
    pub agent: Option<CallingAgent<'a>>,
    /// The permission mode.
    pub mode: Mode,
    /// The call's effects.
    pub effects: &'a Effects,
    /// The guarantees of the sandbox for commands; `None` if no sandbox works.
    pub sandbox: Option<&'a Enforcement>,
}
