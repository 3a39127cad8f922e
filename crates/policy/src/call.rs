//! The call that a policy judges.

use journeyman_protocol::{Effects, Enforcement, Mode};

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The sub-agent that makes the call; `None` for the session's own agent, which rules call
    /// [`MAIN_AGENT`](crate::MAIN_AGENT).
    pub agent: Option<&'a str>,
    /// The permission mode.
    pub mode: Mode,
    /// The call's effects.
    pub effects: &'a Effects,
    /// The guarantees of the sandbox for commands; `None` if no sandbox works.
    pub sandbox: Option<&'a Enforcement>,
}
