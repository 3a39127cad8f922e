//! Hard rules of the project's instructions, as rules of a policy and as checks.
//!
//! "Never touch `vendor/`" in an `AGENTS.md` is a request to a model. As a rule it holds whatever
//! the model does.

use std::path::{Path, PathBuf};

use journeyman_policy::{RuleLayer, Rules};
use journeyman_protocol::RelPath;
use journeyman_workspace::Body;

use super::query::find_checks;
use crate::config::{Environment, add_project_line, save_project_rules};
use crate::state::StateDirs;
use crate::{HostError, load_trusted};

/// The instruction files that are read.
const FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Maximum bytes of such a file.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum rules of all files together.
const MAX_RULES: usize = 50;
/// Beginnings of sentences that forbid, and verbs of what they forbid.
const FORBIDDING: [&str; 6] = ["never", "do not", "don't", "must not", "mustn't", "must never"];
const CHANGING: [&str; 9] =
    ["touch", "edit", "modify", "change", "write to", "write", "delete", "remove", "alter"];
/// Words that demand a command.
const DEMANDING: [&str; 3] = ["always run", "must run", "always execute"];
/// The tools that change files.
const WRITING_TOOLS: &str =
    r#"["apply_edit", "apply_patch", "delete_file", "edit_file", "edit_symbol", "move_file", "write_file"]"#;

/// A hard rule that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardRule {
    /// The file that has it.
    pub file: String,
    /// Its line, 1-based.
    pub line: usize,
    /// Its demand.
    pub demand: Demand,
}

/// The demand of a hard rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demand {
    /// These paths may not be changed.
    Protect(Vec<String>),
    /// This command verifies every change.
    Check(String),
}

impl HardRule {
    /// Returns the rule as a `[[rule]]` of a `policy.toml`; `None` for a check.
    #[must_use]
    pub fn to_toml(&self) -> Option<String> {
        let Demand::Protect(paths) = &self.demand else { return None };
        let paths: Vec<String> = paths.iter().map(|path| toml_text(path)).collect();
        Some(format!(
            "[[rule]]\ntools = {WRITING_TOOLS}\npaths = [{}]\ndecision = \"deny\"\nreason = {}\n",
            paths.join(", "),
            toml_text(&format!("{}:{} forbids it", self.file, self.line))
        ))
    }
}

fn toml_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("\"{escaped}\"")
}

/// Finds the hard rules of a text.
#[must_use]
pub fn find_hard_rules(file: &str, text: &str) -> Vec<HardRule> {
    let mut rules = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if in_code || fence || rules.len() >= MAX_RULES {
            continue;
        }
        let lower = line.to_lowercase();
        let quoted = quoted_parts(line);
        let demand = if forbids(&lower) {
            let paths: Vec<String> = quoted.iter().filter_map(|part| path_pattern(part)).collect();
            (!paths.is_empty()).then_some(Demand::Protect(paths))
        } else if DEMANDING.iter().any(|words| lower.contains(words)) {
            quoted
                .first()
                .filter(|command| command.contains(char::is_alphabetic))
                .map(|command| Demand::Check((*command).to_owned()))
        } else {
            None
        };
        if let Some(demand) = demand {
            rules.push(HardRule { file: file.to_owned(), line: number + 1, demand });
        }
    }
    rules
}

fn forbids(lower: &str) -> bool {
    FORBIDDING.iter().any(|no| {
        lower.match_indices(no).any(|(at, _)| {
            let after = lower.get(at + no.len()..).unwrap_or_default().trim_start();
            let after = after.strip_prefix("ever ").unwrap_or(after);
            CHANGING
                .iter()
                .any(|verb| after.strip_prefix(verb).is_some_and(|rest| rest.starts_with([' ', ':'])))
        })
    })
}

/// Returns the parts of a line in backticks.
fn quoted_parts(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns the pattern of a path, with everything beneath a directory; `None` for what is none.
fn path_pattern(text: &str) -> Option<String> {
    let looks = (text.contains('/') || text.contains('.') || text.contains('*'))
        && !text.contains(char::is_whitespace)
        && !text.starts_with(['/', '~'])
        && !text.contains("..");
    let text = text.trim_start_matches("./");
    looks.then(|| match text.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None => text.to_owned(),
    })
}

/// The hard rules of a project's instructions, and where they go.
#[derive(Debug)]
pub struct Promotion {
    root: PathBuf,
    /// The rules, in the order of the files.
    pub rules: Vec<HardRule>,
    /// The checks of the project as it is.
    checks: Vec<String>,
    /// True if the project's configuration names checks already.
    has_own_checks: bool,
}

impl Promotion {
    /// Finds the hard rules of the instructions of the project at `root`.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be opened.
    pub fn find(environment: &Environment, state: &StateDirs, root: &Path) -> Result<Self, HostError> {
        let workspace = state.open_workspace(root)?;
        let mut rules = Vec::new();
        for name in FILES {
            let Ok(path) = RelPath::parse(name) else { continue };
            let Ok(content) = workspace.read(&path, MAX_BYTES) else { continue };
            if let Body::Text(text) = content.body {
                rules.extend(find_hard_rules(name, &text.text));
            }
        }
        rules.truncate(MAX_RULES);
        let config = load_trusted(environment, root)?;
        let has_own_checks = config.checks.is_some();
        let checks = find_checks(environment, state, root, &config)?;
        Ok(Self { root: root.to_owned(), rules, checks, has_own_checks })
    }

    /// Returns the rules for the project's `policy.toml`.
    #[must_use]
    pub fn policy_text(&self) -> String {
        self.rules.iter().filter_map(HardRule::to_toml).collect::<Vec<_>>().join("\n")
    }

    /// Returns the line of the project's `config.toml` with its checks and those that the
    /// instructions demand; `None` if they demand no further one.
    #[must_use]
    pub fn checks_line(&self) -> Option<String> {
        let mut checks = self.checks.clone();
        for rule in &self.rules {
            if let Demand::Check(command) = &rule.demand
                && !checks.contains(command)
            {
                checks.push(command.clone());
            }
        }
        let texts: Vec<String> = checks.iter().map(|check| toml_text(check)).collect();
        (checks.len() > self.checks.len()).then(|| format!("checks = [{}]", texts.join(", ")))
    }

    /// Writes the rules into the project's `policy.toml`, and the checks into its `config.toml`
    /// unless that names checks already. Returns the files that have them.
    ///
    /// # Errors
    /// [`HostError`] where a file can't be read or written.
    pub fn write(&self) -> Result<Vec<PathBuf>, HostError> {
        let mut written = Vec::new();
        let text = self.policy_text();
        if !text.is_empty() {
            let rules = Rules::parse(&text, RuleLayer::Project, "instructions").map_err(HostError::usage)?;
            written.push(save_project_rules(&self.root, &rules)?);
        }
        if let Some(line) = self.checks_line().filter(|_| !self.has_own_checks) {
            written.push(add_project_line(&self.root, &line)?);
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_rules_are_told_from_advice() {
        let text = "# Rules\n\
                    - Never touch `vendor/` or `schema.sql`.\n\
                    - Don't edit generated code.\n\
                    - Always run `make lint` before you stop.\n\
                    - You must not modify `src/*.gen.rs`!\n\
                    - Prefer small changes to `src/lib.rs`.\n\
                    ```\nNever touch `a/b`\n```\n\
                    - never change `/etc/passwd` or `../other`\n";
        let demands: Vec<(usize, Demand)> =
            find_hard_rules("AGENTS.md", text).into_iter().map(|rule| (rule.line, rule.demand)).collect();
        let protect = |paths: &[&str]| Demand::Protect(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(
            demands,
            [
                (2, protect(&["vendor/**", "schema.sql"])),
                (4, Demand::Check("make lint".to_owned())),
                (5, protect(&["src/*.gen.rs"])),
            ]
        );
    }

    #[test]
    fn a_rule_is_one_that_policy_reads() {
        let rules = find_hard_rules("AGENTS.md", "Never edit `a\"b\\/c.rs`.");
        let text = rules[0].to_toml().unwrap();
        assert!(Rules::parse(&text, RuleLayer::Project, "x").is_ok(), "{text}");
    }
}
