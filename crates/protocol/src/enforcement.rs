//! The guarantees of a sandbox, and the needs of a command.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of sandbox, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxTier {
    /// Linux namespaces that the program sets up itself.
    Namespaces,
    /// The distribution's Bubblewrap (`bwrap`).
    Bubblewrap,
    /// Landlock and seccomp without namespaces.
    Landlock,
    /// A Docker or Podman container.
    Container,
    /// No sandbox.
    Unconfined,
}

impl SandboxTier {
    /// Returns the strongest needs that the tier can meet. A user who allows a tier by name accepts
    /// these.
    #[must_use]
    pub fn max_needs(self) -> SandboxNeeds {
        match self {
            Self::Namespaces | Self::Bubblewrap | Self::Container => SandboxNeeds::ALL,
            // Without a mount namespace, every file of the writable project can be changed. Without
            // a process namespace, outside processes are visible; only signals to them are refused.
            Self::Landlock => SandboxNeeds {
                protected_kept: false,
                processes_confined: false,
                resources_bounded: false,
                ..SandboxNeeds::ALL
            },
            Self::Unconfined => SandboxNeeds::NONE,
        }
    }
}

impl fmt::Display for SandboxTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Container => "container",
            Self::Unconfined => "none",
        })
    }
}

/// The guarantees of a sandbox on this machine, measured by a probe and never assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// The kind of sandbox.
    pub tier: SandboxTier,
    /// Nothing outside the writable paths can be changed.
    pub writes_confined: bool,
    /// The home directory and other projects can't be read.
    pub reads_confined: bool,
    /// Protected paths in the writable project can't be changed.
    pub protected_kept: bool,
    /// No network is reachable but the sandbox's own loopback.
    pub network_off: bool,
    /// A command can be allowed some hosts only, through a proxy that is its only way out.
    pub network_filtered: bool,
    /// Processes outside can be neither seen nor signalled, and ending the command ends its whole
    /// tree.
    pub processes_confined: bool,
    /// The command has no capability and cannot gain one.
    pub privileges_dropped: bool,
    /// The memory of a command's whole tree and the number of its processes are bounded.
    pub resources_bounded: bool,
    /// The mechanisms in use, such as "Landlock 7" or "cgroup (memory, pids)", for `jm doctor` and
    /// the status line.
    #[serde(default)]
    pub layers: Vec<String>,
    /// The missing guarantees, one line each, for `jm doctor` and the status line.
    pub gaps: Vec<String>,
}

impl Enforcement {
    /// Returns the value for no sandbox: nothing is enforced.
    #[must_use]
    pub fn none() -> Self {
        Self {
            gaps: vec!["commands run unconfined, with your rights".to_owned()],
            ..Self::from_needs(SandboxTier::Unconfined, SandboxNeeds::NONE)
        }
    }

    /// Creates a value that meets exactly `needs`, without layers and gaps.
    #[must_use]
    pub fn from_needs(tier: SandboxTier, needs: SandboxNeeds) -> Self {
        Self {
            tier,
            writes_confined: needs.writes_confined,
            reads_confined: needs.reads_confined,
            protected_kept: needs.protected_kept,
            network_off: needs.network_off,
            network_filtered: false,
            processes_confined: needs.processes_confined,
            privileges_dropped: needs.privileges_dropped,
            resources_bounded: needs.resources_bounded,
            layers: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Returns the name of the first need that is not met, if any.
    #[must_use]
    pub fn first_unmet(&self, needs: &SandboxNeeds) -> Option<&'static str> {
        let table = [
            (needs.writes_confined, self.writes_confined, "confined writes"),
            (needs.reads_confined, self.reads_confined, "confined reads"),
            (needs.protected_kept, self.protected_kept, "protected paths"),
            (needs.network_off, self.network_off, "no network"),
            (needs.processes_confined, self.processes_confined, "confined processes"),
            (needs.privileges_dropped, self.privileges_dropped, "dropped privileges"),
            (needs.resources_bounded, self.resources_bounded, "bounded memory and processes"),
        ];
        table.into_iter().find(|(needed, met, _)| *needed && !*met).map(|(_, _, name)| name)
    }
}

/// The guarantees that a command requires of its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxNeeds {
    /// See [`Enforcement::writes_confined`].
    pub writes_confined: bool,
    /// See [`Enforcement::reads_confined`].
    pub reads_confined: bool,
    /// See [`Enforcement::protected_kept`].
    pub protected_kept: bool,
    /// See [`Enforcement::network_off`]. For a command that is allowed some hosts, this applies to
    /// all others.
    pub network_off: bool,
    /// See [`Enforcement::processes_confined`].
    pub processes_confined: bool,
    /// See [`Enforcement::privileges_dropped`].
    pub privileges_dropped: bool,
    /// See [`Enforcement::resources_bounded`].
    pub resources_bounded: bool,
}

impl SandboxNeeds {
    /// All guarantees: the default for commands of a model.
    pub const ALL: Self = Self {
        writes_confined: true,
        reads_confined: true,
        protected_kept: true,
        network_off: true,
        processes_confined: true,
        privileges_dropped: true,
        resources_bounded: true,
    };
    /// No guarantee: only if the user allowed an unconfined run by name.
    pub const NONE: Self = Self {
        writes_confined: false,
        reads_confined: false,
        protected_kept: false,
        network_off: false,
        processes_confined: false,
        privileges_dropped: false,
        resources_bounded: false,
    };

    /// Returns the needs that both have.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            writes_confined: self.writes_confined && other.writes_confined,
            reads_confined: self.reads_confined && other.reads_confined,
            protected_kept: self.protected_kept && other.protected_kept,
            network_off: self.network_off && other.network_off,
            processes_confined: self.processes_confined && other.processes_confined,
            privileges_dropped: self.privileges_dropped && other.privileges_dropped,
            resources_bounded: self.resources_bounded && other.resources_bounded,
        }
    }
}
