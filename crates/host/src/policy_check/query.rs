//! Judging calls by the rules of a project without making them.

use std::path::Path;

use journeyman_policy::{Call, MAIN_AGENT, PartExplanation, Policy, check_tool_name};
use journeyman_protocol::{Decision, Effects, Enforcement, Mode, RelPath, SandboxNeeds, Verdict};
use journeyman_tools::Registry;
use journeyman_workspace::ListOptions;
use serde_json::{Value, json};

use crate::checks::MAX_SEARCHED_FILES;
use crate::config::{Config, Environment, ProjectTrust, load_config, load_policy};
use crate::state::StateDirs;
use crate::{ADMIN_CONFIG, ADMIN_POLICY, Context as _, HostError};

/// The exit code for a call that a person has to permit.
const EXIT_ASK: u8 = 6;
/// The exit code for a call that is denied.
const EXIT_DENY: u8 = 7;

/// The tool of a call that names none.
const DEFAULT_TOOL: &str = "run_command";

/// A call as a person describes it.
#[derive(Debug, Clone, Default)]
pub struct CallDescription {
    /// The words of a shell command; a single word is a command line.
    pub words: Vec<String>,
    /// The tool; `run_command` without it.
    pub tool: Option<String>,
    /// Paths from the project's root that the tool works on.
    pub paths: Vec<String>,
    /// Hosts that the call reaches.
    pub hosts: Vec<String>,
    /// The sub-agent that makes the call.
    pub agent: Option<String>,
}

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
    /// Makes the query for a call; `origin` is what named its tool, for an error.
    ///
    /// # Errors
    /// [`HostError::Usage`] for an unknown tool, and for a path that leads out of the project.
    pub fn new(call: CallDescription, origin: &str) -> Result<Self, HostError> {
        let tool = call.tool.unwrap_or_else(|| DEFAULT_TOOL.to_owned());
        check_tool_name(&tool, &|_| false)
            .map_err(|unknown| HostError::usage(format_args!("{origin}: {unknown}")))?;
        let effects = Effects {
            command: quote_command(&call.words),
            hosts: call.hosts,
            ..effects_on_paths(&tool, &call.paths)?
        };
        Ok(Self { tool, agent: call.agent, effects })
    }

    /// Judges the call in a mode.
    pub(super) fn judge(&self, policy: &Policy, mode: Mode, sandbox: Option<&Enforcement>) -> Verdict {
        policy.judge(&self.to_call(mode, sandbox))
    }

    /// Returns the call as `policy` judges it.
    fn to_call<'a>(&'a self, mode: Mode, sandbox: Option<&'a Enforcement>) -> Call<'a> {
        let confined = sandbox.is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        // As in a session: `auto` holds while commands are confined.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        let agent = self.agent.as_deref().filter(|agent| *agent != MAIN_AGENT);
        Call { tool: &self.tool, agent: agent.map(Into::into), mode, effects: &self.effects, sandbox }
    }
}

/// Returns the effects of a call of `tool` on these paths: a tool that only reads reads them.
fn effects_on_paths(tool: &str, given: &[String]) -> Result<Effects, HostError> {
    let paths = parse_paths(given)?;
    let reads = Registry::with_builtin().get(tool).is_ok_and(|tool| tool.is_read_only());
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
fn quote_command(words: &[String]) -> Option<String> {
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

/// Returns the commands of the project's checks, as a session finds them.
pub(crate) fn list_check_commands(
    environment: &Environment,
    state: &StateDirs,
    root: &Path,
    config: &Config,
) -> Result<Vec<String>, HostError> {
    if let Some(checks) = &config.checks {
        return Ok(checks.clone());
    }
    let workspace = state.open_workspace(root)?;
    let options = ListOptions { limit: MAX_SEARCHED_FILES, ..ListOptions::default() };
    let listing = workspace.list(options).context("the project")?;
    let programs = environment.clone();
    let found = journeyman_agent::verify::find_project_checks(&workspace, &listing, &move |name: &str| {
        programs.find_program(name)
    });
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

/// The verdicts of a call, and the reasons for them.
#[derive(Debug)]
pub struct PolicyAnswer {
    /// The call.
    pub query: PolicyQuery,
    /// The verdict in each mode that was asked about.
    pub verdicts: Vec<(Mode, Verdict)>,
    /// The verdict in the mode that would hold here.
    pub verdict: Verdict,
    /// The parts of the command with the rules that match them.
    pub parts: Vec<PartExplanation>,
    /// True if all of the command is understood.
    pub is_understood: bool,
}

/// Judges a call by the rules and in the sandbox of the project at `root`, in one mode or in all.
///
/// # Errors
/// [`HostError`] where a configuration file or the project can't be read.
pub async fn judge_call(
    environment: &Environment,
    state: &StateDirs,
    root: &Path,
    query: PolicyQuery,
    mode: Option<Mode>,
) -> Result<PolicyAnswer, HostError> {
    let loaded = load_policy(environment, root, Some(Path::new(ADMIN_POLICY)), &[])?;
    let config =
        load_config(environment, root, &[], ProjectTrust::ThisRun, Some(Path::new(ADMIN_CONFIG)))?.config;
    let sandbox = state.sandbox(&config)?.enforcement(&SandboxNeeds::ALL).await.ok();
    let policy = loaded.policy.with_checks(list_check_commands(environment, state, root, &config)?);
    let judge = |mode| query.judge(&policy, mode, sandbox.as_ref());
    let modes = mode.map_or_else(|| Mode::ALL.to_vec(), |mode| vec![mode]);
    let verdicts = modes.into_iter().map(|mode| (mode, judge(mode))).collect();
    let mode = mode.unwrap_or_else(|| config.mode_or(Mode::Edit));
    let verdict = judge(mode);
    let (parts, is_understood) = policy.explain_call(&query.to_call(mode, sandbox.as_ref()));
    Ok(PolicyAnswer { query, verdicts, verdict, parts, is_understood })
}

impl PolicyAnswer {
    /// Returns the parts without those that repeat an earlier one: the rough parse of unsupported
    /// syntax mostly repeats reasons.
    pub fn distinct_parts(&self) -> impl Iterator<Item = &PartExplanation> {
        self.parts.iter().enumerate().filter_map(|(place, part)| {
            let repeats = |one: &PartExplanation| {
                one.words == part.words && one.level >= part.level && one.rules == part.rules
            };
            (!self.parts.iter().take(place).any(repeats)).then_some(part)
        })
    }

    /// Returns the exit code of `jm policy check`: 6 for a call that a person has to permit, 7 for
    /// one that is denied.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.verdict.decision {
            Decision::Allow => 0,
            Decision::Ask => EXIT_ASK,
            Decision::Deny => EXIT_DENY,
        }
    }

    /// Returns the verdicts as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parts = self.parts.iter().map(|part| {
            let rules = part.rules.iter().map(
                |(rule, decision)| json!({ "rule": rule.to_string(), "decision": decision_name(*decision) }),
            );
            json!({
                "words": part.words, "level": part.level.number(), "reason": part.reason,
                "rules": rules.collect::<Vec<_>>(),
            })
        });
        let modes = self.verdicts.iter().map(|(mode, verdict)| {
            json!({
                "mode": mode, "decision": verdict.decision, "level": verdict.level.number(),
                "reason": verdict.reason, "destroys": verdict.destroys, "rules": verdict.rules,
            })
        });
        json!({
            "tool": self.query.tool, "command": self.query.effects.command, "understood": self.is_understood,
            "parts": parts.collect::<Vec<_>>(), "modes": modes.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_know_every_tool_by_name() {
        for spec in super::Registry::with_builtin().specs() {
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
