//! Actions that the sandbox denied a command, as far as they can be known.

use std::fmt;

mod detect;

pub(crate) use detect::find_denials;

/// The kind of a denied action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DenialKind {
    /// A connection.
    Network,
    /// A change of a file outside the writable paths, or of a protected one.
    Write,
    /// A look at a file that isn't shown.
    Read,
    /// A system call.
    SystemCall,
    /// More memory, processes, disk or processor time than it was given.
    Resource,
    /// Nothing: a protected path was changed all the same, by a back-end that can't keep a command
    /// from it.
    Breach,
}

/// A denied action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The kind of the action.
    pub kind: DenialKind,
    /// The target of the action: a host and port, a path, a limit. Cleaned, and short.
    pub what: String,
    /// True if the sandbox itself saw the denial. A denial that was only read from the command's
    /// output may have other reasons.
    pub certain: bool,
    /// Advice for the command's author, in one line.
    pub hint: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, hint, certain, .. } = self;
        if self.kind == DenialKind::Breach {
            return write!(f, "not kept by the sandbox: {what}; {hint}");
        }
        let denied = if *certain { "denied" } else { "perhaps denied" };
        write!(f, "{denied} by the sandbox: {what}; {hint}")
    }
}
