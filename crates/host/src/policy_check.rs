//! Judging calls by the rules of a project without making them.

use std::path::Path;

use journeyman_policy::{Call, Explained, MAIN_AGENT, Policy, check_tool_name};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, RelPath, SandboxNeeds, Verdict};
use journeyman_tools::Registry;
use journeyman_workspace::ListOptions;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{Config, Environment};
use crate::state::StateDirs;
use crate::{Context as _, HostError};

/// Maximum number of files that the search for checks reads, as in a session.
const MAX_CHECK_FILES: usize = 20_000;
/// Maximum size of a file of cases, in bytes.
const MAX_CASE_FILE_BYTES: u64 = 1024 * 1024;

/// A call whose verdict a person asks for.
#[derive(Debug)]
pub struct PolicyQuery {
    /// The tool.
    pub tool: String,
    /// The sub-agent that makes the call.
    pub agent: Option<String>,
    /// The effects of the call.
    pub effects: Effects,
}

impl PolicyQuery {
    /// Judges the call in a mode.
    #[must_use]
    pub fn judge(&self, policy: &Policy, mode: Mode, sandbox: Option<&Enforcement>) -> Verdict {
        policy.judge(&self.call(mode, sandbox))
    }

    /// Returns the call as `policy` judges it.
    #[must_use]
    pub fn call<'a>(&'a self, mode: Mode, sandbox: Option<&'a Enforcement>) -> Call<'a> {
        let confined = sandbox.is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        // As in a session: `auto` holds while commands are confined.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        let agent = self.agent.as_deref().filter(|agent| *agent != MAIN_AGENT);
        Call { tool: &self.tool, agent, mode, effects: &self.effects, sandbox }
    }
}

/// Returns the effects of a call of `tool` on these paths: a tool that only reads reads them.
///
/// # Errors
/// [`HostError::Usage`] for a path that leads out of the project.
pub fn effects_on(tool: &str, given: &[String]) -> Result<Effects, HostError> {
    let paths = parse_paths(given)?;
    let reads = Registry::builtin().get(tool).is_ok_and(|tool| tool.is_read_only());
    let (reads, writes) = if reads { (paths, Vec::new()) } else { (Vec::new(), paths) };
    Ok(Effects { reads, writes, ..Effects::default() })
}

fn parse_paths(given: &[String]) -> Result<Vec<RelPath>, HostError> {
    let parse = |path: &String| {
        RelPath::parse(path).map_err(|error| HostError::usage(format_args!("the path `{path}`: {error}")))
    };
    given.iter().map(parse).collect()
}

/// Quotes words for a shell. A single word is a command line already.
#[must_use]
pub fn quote_command(words: &[String]) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    match words {
        [] => None,
        [line] => Some(line.clone()),
        words => Some(words.iter().map(quoted).collect::<Vec<_>>().join(" ")),
    }
}

/// Finds the project's own checks, as a session does.
///
/// # Errors
/// [`HostError::Failed`] where the project can't be read.
pub fn find_checks(
    environment: &Environment,
    state: &StateDirs,
    root: &Path,
    config: &Config,
) -> Result<Vec<String>, HostError> {
    if let Some(checks) = &config.checks {
        return Ok(checks.clone());
    }
    let workspace = state.open_workspace(root)?;
    let options = ListOptions { limit: MAX_CHECK_FILES, ..ListOptions::default() };
    let listing = workspace.list(options).context("the project")?;
    let found =
        journeyman_agent::verify::find(&workspace, &listing, &|name: &str| environment.has_program(name));
    Ok(found.into_iter().map(|check| check.command).collect())
}

/// Returns the name of a decision, as rules write it.
#[must_use]
pub fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// Returns the verdicts of a call as JSON.
#[must_use]
pub fn verdicts_to_json(
    asked: &PolicyQuery,
    verdicts: &[(Mode, Verdict)],
    parts: &[Explained],
    complete: bool,
) -> Value {
    let rules = |part: &Explained| -> Vec<Value> {
        let rule = |(id, decision): &(_, Decision)| json!({ "rule": format!("{id}"), "decision": decision_name(*decision) });
        part.rules.iter().map(rule).collect()
    };
    let parts: Vec<Value> = parts
        .iter()
        .map(|part| {
            let level = part.level.number();
            json!({ "words": part.words, "level": level, "reason": part.reason, "rules": rules(part) })
        })
        .collect();
    let modes: Vec<Value> = verdicts
        .iter()
        .map(|(mode, verdict)| {
            json!({
                "mode": mode, "decision": verdict.decision, "level": verdict.level.number(),
                "reason": verdict.reason, "destroys": verdict.destroys, "rules": verdict.rules,
            })
        })
        .collect();
    json!({
        "tool": asked.tool, "command": asked.effects.command, "understood": complete, "parts": parts, "modes": modes,
    })
}

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
pub struct PolicyCase {
    command: Option<String>,
    tool: Option<String>,
    path: Option<String>,
    host: Option<String>,
    agent: Option<String>,
    /// The mode; `edit` without it.
    pub mode: Option<Mode>,
    /// The expected decision.
    pub decision: Decision,
}

impl PolicyCase {
    /// Returns the call.
    ///
    /// # Errors
    /// [`HostError::Usage`] for an unknown tool or a path that leads out of the project.
    pub fn query(&self) -> Result<PolicyQuery, HostError> {
        let tool = self.tool.clone().unwrap_or_else(|| "run_command".to_owned());
        let hosts = self.host.iter().cloned().collect();
        let on = effects_on(&tool, self.path.as_slice())?;
        let effects = Effects { command: self.command.clone(), hosts, ..on };
        check_tool_name(&tool, &|_| false)
            .map_err(|unknown| HostError::usage(format_args!("a case: {unknown}")))?;
        Ok(PolicyQuery { tool, agent: self.agent.clone(), effects })
    }

    /// Describes the call in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let tool = self.command.is_none().then(|| self.tool.clone()).flatten();
        let said = [self.command.clone(), tool, self.path.clone(), self.host.clone()];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Reads a file of cases; errors name it `shown`.
///
/// # Errors
/// [`HostError::Usage`] for a file that can't be read or parsed.
pub fn load_cases(path: &Path, shown: &str) -> Result<Vec<PolicyCase>, HostError> {
    use std::io::Read as _;
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

#[cfg(test)]
mod tests {
    #[test]
    fn rules_know_every_tool_by_name() {
        for spec in super::Registry::builtin().specs() {
            assert_eq!(journeyman_policy::check_tool_name(&spec.name, &|_| false), Ok(()));
        }
    }

    #[test]
    fn several_words_are_quoted_and_one_is_a_line() {
        let line = |words: &[&str]| {
            super::quote_command(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(line(&["rm -rf x | y"]).as_deref(), Some("rm -rf x | y"));
        assert_eq!(line(&["rm", "-rf", "a b", "it's", ""]).as_deref(), Some("rm -rf 'a b' 'it'\\''s' ''"));
        assert_eq!(line(&[]), None);
    }
}
