//! The strength of a verification: how much of a change its tests would notice.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RelPath;

/// The strength of the tests that passed on a change, the weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Tests ran and passed.
    #[default]
    Ran,
    /// A test also runs each changed statement.
    Covers,
    /// A test also fails for nearly every small mutation of the changed lines.
    Notices,
}

impl Strength {
    /// Returns the name that settings and messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Covers => "covers",
            Self::Notices => "notices",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strength {
    type Err = UnknownStrength;

    fn from_str(name: &str) -> Result<Self, UnknownStrength> {
        let found = [Self::Ran, Self::Covers, Self::Notices].into_iter().find(|it| it.name() == name.trim());
        found.ok_or_else(|| UnknownStrength(name.to_owned()))
    }
}

/// The error for a name that no strength has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no strength of tests; there are ran, covers, notices")]
pub struct UnknownStrength(String);

/// The kind of a small mutation of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MutationKind {
    /// A comparison includes its bound, or no longer does.
    Boundary,
    /// `and` and `or` exchanged.
    Logic,
    /// A condition that is negated, always true or never true.
    Condition,
    /// Another number or truth value.
    Constant,
    /// Another arithmetic operator.
    Arithmetic,
    /// A call that is left out: what it is given is used as it is.
    Call,
    /// A range that ends one element elsewhere, or a loop that ends after its first round.
    Range,
    /// A statement that is left out.
    Removal,
    /// The default value is returned.
    Return,
    /// A failure that is no longer handled or passed on.
    ErrorHandling,
    /// Another text is returned.
    Text,
    /// A branch that is left out.
    Branch,
    /// Two arguments exchanged.
    Arguments,
    /// The program ends at this statement.
    Stop,
}

/// A mutation of a changed line that no test noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    /// The file.
    pub path: RelPath,
    /// 1-based line of the new text.
    pub line: u32,
    /// The function around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The code as the change has it.
    pub before: String,
    /// The mutated code, for which all tests pass as well.
    pub after: String,
    /// The test to add, in words.
    pub proposal: String,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line, before, after) = (&self.path, self.line, &self.before, &self.after);
        write!(f, "{path}:{line}: no test notices `{before}` as `{after}`; test {}", self.proposal)
    }
}

/// A changed statement that no test runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UntestedLine {
    /// The file.
    pub path: RelPath,
    /// 1-based line of the new text.
    pub line: u32,
    /// The function around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

impl fmt::Display for UntestedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: no test runs this line", self.path, self.line)?;
        match &self.function {
            Some(function) => write!(f, " of `{function}`"),
            None => Ok(()),
        }
    }
}

/// The share of a change that its tests would notice, measured by mutations of the changed lines
/// in copies of the project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StrengthReport {
    /// The strength.
    pub strength: Strength,
    /// Changed statements of the product.
    pub statements: u32,
    /// Those that a test is known to run.
    pub run_statements: u32,
    /// Changed statements that no test runs, up to a maximum number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<UntestedLine>,
    /// Mutations that the tests ran with.
    pub tried: u32,
    /// Mutations for which a test failed.
    pub noticed: u32,
    /// Mutations that didn't build, which say nothing.
    pub invalid: u32,
    /// Mutations that were left out: the budget was used up, or the statement isn't run.
    pub left_out: u32,
    /// Mutations that no test noticed, the most telling first, up to a maximum number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<Survivor>,
    /// True if the new or changed tests fail on the product as it was before the change; absent if
    /// there are none, or this can't be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_before: Option<bool>,
    /// Wall time of the measurement in milliseconds.
    pub duration_ms: u64,
    /// The reason why nothing, or not everything, was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl StrengthReport {
    /// Creates a report for a measurement that could not be made.
    #[must_use]
    pub fn unmeasured(reason: impl Into<String>) -> Self {
        Self { limit: Some(reason.into()), ..Self::default() }
    }

    /// Returns the number of mutations that no test noticed.
    #[must_use]
    pub fn count_survivors(&self) -> u32 {
        self.tried.saturating_sub(self.noticed).saturating_sub(self.invalid)
    }
}

impl fmt::Display for StrengthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let valid = self.tried.saturating_sub(self.invalid);
        if valid == 0 {
            let reason = self.limit.as_deref().unwrap_or("nothing in the change could be mutated");
            return write!(f, "the tests ran; what they would notice isn't known: {reason}");
        }
        let means = match self.strength {
            Strength::Ran => "the tests ran, and would not notice every fault in the change",
            Strength::Covers => "the tests run the change, and would not notice every fault in it",
            Strength::Notices => "the tests would notice a fault in the change",
        };
        write!(f, "{means}: {} of {valid} mutations noticed", self.noticed)?;
        if let Some(limit) = &self.limit {
            write!(f, "; {limit}")?;
        }
        match self.failed_before {
            Some(true) => f.write_str("; a new or changed test failed before the change"),
            Some(false) => f.write_str("; no new or changed test failed before the change"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_are_ordered_and_have_names() {
        assert!(Strength::Ran < Strength::Covers && Strength::Covers < Strength::Notices);
        for strength in [Strength::Ran, Strength::Covers, Strength::Notices] {
            assert_eq!(strength.name().parse(), Ok(strength));
        }
        assert!("all".parse::<Strength>().unwrap_err().to_string().contains("ran, covers, notices"));
    }

    #[test]
    fn a_report_says_what_was_and_was_not_measured() {
        let unmeasured = StrengthReport::unmeasured("the tests take too long");
        let said = "the tests ran; what they would notice isn't known: the tests take too long";
        assert_eq!(unmeasured.to_string(), said);
        let report = StrengthReport {
            strength: Strength::Covers,
            tried: 10,
            noticed: 7,
            invalid: 1,
            failed_before: Some(true),
            ..StrengthReport::default()
        };
        assert_eq!(report.count_survivors(), 2);
        assert_eq!(
            report.to_string(),
            "the tests run the change, and would not notice every fault in it: 7 of 9 mutations noticed; a new or \
             changed test failed before the change"
        );
    }
}
