//! Files of cases: calls with the decisions that are expected of the rules.

use std::io::Read as _;
use std::path::Path;

use journeyman_policy::Policy;
use journeyman_protocol::{Decision, Enforcement, Mode, SandboxNeeds, SandboxTier, Verdict};
use serde::Deserialize;

use super::query::{CallDescription, PolicyQuery};
use crate::HostError;

/// Maximum size of a file of cases, in bytes.
const MAX_CASE_FILE_BYTES: u64 = 1024 * 1024;

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    #[serde(default)]
    case: Vec<PolicyCase>,
}

/// A call, and the decision that is expected of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyCase {
    command: Option<String>,
    tool: Option<String>,
    path: Option<String>,
    host: Option<String>,
    agent: Option<String>,
    /// The mode; `edit` without it.
    mode: Option<Mode>,
    /// The expected decision.
    decision: Decision,
}

impl PolicyCase {
    /// Returns the call.
    fn to_query(&self) -> Result<PolicyQuery, HostError> {
        let call = CallDescription {
            words: self.command.iter().cloned().collect(),
            tool: self.tool.clone(),
            paths: self.path.iter().cloned().collect(),
            hosts: self.host.iter().cloned().collect(),
            agent: self.agent.clone(),
        };
        PolicyQuery::new(call, "a case")
    }

    /// Describes the call in one line.
    fn describe(&self) -> String {
        let tool = self.command.is_none().then(|| self.tool.clone()).flatten();
        let said = [self.command.clone(), tool, self.path.clone(), self.host.clone()];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A case whose call is judged otherwise than expected.
#[derive(Debug)]
pub struct FailedCase {
    /// The call in one line.
    pub call: String,
    /// The mode.
    pub mode: Mode,
    /// The decision of the rules.
    pub decision: Decision,
    /// The decision that the case expects.
    pub expected: Decision,
    /// The reason of the decision.
    pub reason: String,
}

/// Judges the cases of a file in a sandbox that enforces everything. Returns the number of those
/// that hold, and the others. Errors name the file `shown`.
///
/// # Errors
/// [`HostError::Usage`] for a file that can't be read or parsed, and for a wrong case.
pub fn check_cases(policy: &Policy, path: &Path, shown: &str) -> Result<(usize, Vec<FailedCase>), HostError> {
    let sandbox = Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL);
    let (mut held, mut failed) = (0, Vec::new());
    for case in load_cases(path, shown)? {
        let mode = case.mode.unwrap_or(Mode::Edit);
        let query = case.to_query()?;
        let Verdict { decision, reason, .. } = query.judge(policy, mode, Some(&sandbox));
        if decision == case.decision {
            held += 1;
        } else {
            failed.push(FailedCase {
                call: case.describe(),
                mode,
                decision,
                expected: case.decision,
                reason,
            });
        }
    }
    Ok((held, failed))
}

/// Reads a file of cases; errors name it `shown`.
fn load_cases(path: &Path, shown: &str) -> Result<Vec<PolicyCase>, HostError> {
    let unreadable =
        |error: std::io::Error| HostError::usage(format_args!("cannot read the cases in {shown}: {error}"));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_CASE_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_CASE_FILE_BYTES {
        return Err(HostError::usage(format_args!(
            "{shown} has more than {MAX_CASE_FILE_BYTES} bytes; split it"
        )));
    }
    let cases: CaseFile = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        HostError::usage(format_args!("{shown}:{line}: {}", error.message()))
    })?;
    Ok(cases.case)
}
