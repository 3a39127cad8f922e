//! Findings about a change that make tests or checks say less than before.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RelPath;

/// The kind of a change that makes tests or checks say less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HonestyKind {
    /// An assertion of a test is gone.
    AssertionDeleted,
    /// An assertion accepts more than before, or no longer runs in every case.
    AssertionWeakened,
    /// A test is gone.
    TestDeleted,
    /// A test is skipped, ignored or expected to fail.
    TestSkipped,
    /// A test is still there, and no runner finds it.
    TestUndiscovered,
    /// A table of test cases has fewer of them.
    CasesRemoved,
    /// An expected value is another one.
    ExpectationChanged,
    /// A recorded snapshot is another one.
    SnapshotChanged,
    /// A runner, compiler or linter is told to check less.
    ConfigurationLoosened,
    /// The source tells a compiler or linter to be silent.
    LintSuppressed,
    /// The failure of a check is ignored, or turned into a success.
    FailureSwallowed,
    /// The product treats a test's input or the test runner in a way of its own.
    SpecialCase,
    /// A credential stands in the source.
    SecretAdded,
}

impl HonestyKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::AssertionDeleted,
        Self::AssertionWeakened,
        Self::TestDeleted,
        Self::TestSkipped,
        Self::TestUndiscovered,
        Self::CasesRemoved,
        Self::ExpectationChanged,
        Self::SnapshotChanged,
        Self::ConfigurationLoosened,
        Self::LintSuppressed,
        Self::FailureSwallowed,
        Self::SpecialCase,
        Self::SecretAdded,
    ];

    /// Returns the name under which a user accepts findings of this kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AssertionDeleted => "assertion-deleted",
            Self::AssertionWeakened => "assertion-weakened",
            Self::TestDeleted => "test-deleted",
            Self::TestSkipped => "test-skipped",
            Self::TestUndiscovered => "test-undiscovered",
            Self::CasesRemoved => "cases-removed",
            Self::ExpectationChanged => "expectation-changed",
            Self::SnapshotChanged => "snapshot-changed",
            Self::ConfigurationLoosened => "configuration-loosened",
            Self::LintSuppressed => "lint-suppressed",
            Self::FailureSwallowed => "failure-swallowed",
            Self::SpecialCase => "special-case",
            Self::SecretAdded => "secret-added",
        }
    }
}

impl fmt::Display for HonestyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HonestyKind {
    type Err = UnknownHonestyKind;

    fn from_str(name: &str) -> Result<Self, UnknownHonestyKind> {
        let name = name.trim().replace('_', "-");
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownHonestyKind { name, known: Self::ALL.map(Self::name).join(", ") })
    }
}

/// The error for a name that no kind of finding has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no kind of finding; there are {known}")]
pub struct UnknownHonestyKind {
    name: String,
    known: String,
}

/// Findings that a user accepts by name: `test-skipped`, or `test-skipped:tests/slow.py` for one
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFinding {
    /// The kind.
    pub kind: HonestyKind,
    /// The file; all files if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl AcceptedFinding {
    /// Returns true if the user accepts `finding`.
    #[must_use]
    pub fn covers(&self, finding: &HonestyFinding) -> bool {
        self.kind == finding.kind
            && self.path.as_deref().is_none_or(|path| finding.path.as_str() == Some(path))
    }
}

impl FromStr for AcceptedFinding {
    type Err = UnknownHonestyKind;

    fn from_str(text: &str) -> Result<Self, UnknownHonestyKind> {
        let (kind, path) = match text.split_once(':') {
            Some((kind, path)) => (kind, Some(path.trim().to_owned())),
            None => (text, None),
        };
        Ok(Self { kind: kind.parse()?, path })
    }
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HonestySeverity {
    /// Worth a look; there is a good reason beside it.
    Notice,
    /// The run is not verified until the user accepts the finding.
    Blocking,
}

/// A place where a change makes tests or checks say less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HonestyFinding {
    /// The kind.
    pub kind: HonestyKind,
    /// The weight.
    pub severity: HonestySeverity,
    /// The file.
    pub path: RelPath,
    /// 1-based line: in the new text, or in the old one where the code is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Quotes the code that changed, and says in which way it says less.
    pub message: String,
    /// True if the user accepted the finding by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

impl HonestyFinding {
    /// Returns true if the finding keeps the run from being verified.
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        self.severity == HonestySeverity::Blocking && !self.accepted
    }
}

impl fmt::Display for HonestyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}: {}", self.kind, self.message)
    }
}
