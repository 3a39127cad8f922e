//! A call between the model and its execution: what it would do, what policy says, what a person is asked.

use std::time::Duration;

use journeyman_policy::Rules;
use journeyman_protocol::{Effects, Enforcement, Mode, RelPath, ToolUse, Verdict};
use journeyman_workspace::Trial;

use crate::calls::finished::Finished;

/// A call that may run.
pub(crate) struct Ready {
    pub(crate) call: ToolUse,
    pub(crate) effects: Effects,
    pub(crate) read_only: bool,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// What is to be said beside its result: hooks' and people's notes.
    pub(crate) context: Vec<String>,
    /// For one that is tried out in a layer first: what is said of it if nothing is lost.
    pub(crate) trial: Option<Box<Judged>>,
    /// That layer.
    pub(crate) layer: Option<Trial>,
}

impl Ready {
    /// The same call, to be asked about.
    pub(crate) fn again(&self) -> Self {
        let (call, effects) = (self.call.clone(), self.effects.clone());
        let (read_only, limit) = (self.read_only, self.limit);
        Self { call, effects, read_only, limit, context: Vec::new(), trial: None, layer: None }
    }

    /// Whether the two may not overlap: one of them may change what the other looks at or changes.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        if self.read_only && other.read_only {
            return false;
        }
        let anywhere = |ready: &Self| {
            ready.effects.command.is_some()
                || (ready.effects.writes.is_empty() && ready.effects.reads.is_empty())
        };
        if anywhere(self) || anywhere(other) {
            return true;
        }
        let touches = |ready: &Self, path: &RelPath| {
            ready.effects.reads.contains(path) || ready.effects.writes.contains(path)
        };
        self.effects.writes.iter().any(|path| touches(other, path))
            || other.effects.writes.iter().any(|path| touches(self, path))
    }
}

/// What becomes of a call before it runs.
pub(crate) enum Assessed {
    /// It may run.
    Run(Ready),
    /// A person decides.
    Ask(Ready, Question),
    /// It has its result already.
    Done(Finished),
}

/// A call that a person, or the lack of one, refused.
pub(crate) struct Refused {
    pub(crate) call: ToolUse,
    pub(crate) finished: Finished,
}

/// What policy says of a call, and what that rests on.
#[derive(Clone)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// The mode it was judged in.
    pub(crate) mode: Mode,
    /// What confines it.
    pub(crate) sandbox: Option<Enforcement>,
}

/// What a person is asked.
pub(crate) struct Question {
    pub(crate) judged: Judged,
    /// The rules that «from now on» would make; `None` where that is never offered.
    pub(crate) rules: Option<Rules>,
}
