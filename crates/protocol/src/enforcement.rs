//! What a sandbox enforces.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which back-end runs a command, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The program's own namespaces.
    Namespaces,
    /// The distribution's `bwrap`.
    Bubblewrap,
    /// Landlock and seccomp without namespaces.
    Landlock,
    /// A Docker or Podman container.
    Container,
    /// macOS Seatbelt.
    Seatbelt,
    /// Nothing.
    Unconfined,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Container => "container",
            Self::Seatbelt => "seatbelt",
            Self::Unconfined => "none",
        })
    }
}

/// What a tier was seen to enforce on this machine; measured by a probe, never assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// The back-end.
    pub tier: Tier,
    /// Nothing outside the writable paths can be changed.
    pub writes_confined: bool,
    /// The home directory and other projects can't be read.
    pub reads_confined: bool,
    /// No network but the sandbox's own loopback.
    pub network_off: bool,
    /// Processes outside can be neither seen nor signalled, and ending the command ends its whole tree.
    pub processes_confined: bool,
    /// No capability and no way to gain one.
    pub privileges_dropped: bool,
    /// What is weaker than it should be, one line each, for `jm doctor` and the status line.
    pub gaps: Vec<String>,
}

impl Enforcement {
    /// Nothing is enforced.
    #[must_use]
    pub fn none() -> Self {
        Self {
            tier: Tier::Unconfined,
            writes_confined: false,
            reads_confined: false,
            network_off: false,
            processes_confined: false,
            privileges_dropped: false,
            gaps: vec!["commands run unconfined, with your rights".to_owned()],
        }
    }

    /// Names the first need that isn't met, if any.
    #[must_use]
    pub fn unmet(&self, needs: &Needs) -> Option<&'static str> {
        let table = [
            (needs.writes_confined, self.writes_confined, "confined writes"),
            (needs.reads_confined, self.reads_confined, "confined reads"),
            (needs.network_off, self.network_off, "no network"),
            (needs.processes_confined, self.processes_confined, "confined processes"),
            (needs.privileges_dropped, self.privileges_dropped, "dropped privileges"),
        ];
        table.into_iter().find(|(needed, met, _)| *needed && !*met).map(|(_, _, name)| name)
    }
}

/// What must be enforced for a command to run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// See [`Enforcement::writes_confined`].
    pub writes_confined: bool,
    /// See [`Enforcement::reads_confined`].
    pub reads_confined: bool,
    /// See [`Enforcement::network_off`].
    pub network_off: bool,
    /// See [`Enforcement::processes_confined`].
    pub processes_confined: bool,
    /// See [`Enforcement::privileges_dropped`].
    pub privileges_dropped: bool,
}

impl Needs {
    /// Everything: the default for whatever a model types.
    pub const ALL: Self = Self {
        writes_confined: true,
        reads_confined: true,
        network_off: true,
        processes_confined: true,
        privileges_dropped: true,
    };
    /// Nothing: only when the user allowed an unconfined run by name.
    pub const NONE: Self = Self {
        writes_confined: false,
        reads_confined: false,
        network_off: false,
        processes_confined: false,
        privileges_dropped: false,
    };
}
