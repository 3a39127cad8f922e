//! The modes, the fixed rules and the rule files of a project.

use std::path::Path;

use journeyman_policy::{Rule, RuleId};
use journeyman_protocol::Mode;
use serde_json::{Value, json};

use super::query::decision_name;
use crate::config::{Environment, LoadedPolicy, PolicyFile, load_policy};
use crate::{ADMIN_POLICY, HostError};

/// The effect of each mode, in words.
pub(super) const MODE_EFFECTS: [(Mode, &str); 4] = [
    (Mode::Plan, "reads (level 0); everything else is denied"),
    (Mode::Ask, "reads; edits, checks and commands are asked about"),
    (
        Mode::Edit,
        "reads, edits, also by commands, and runs the project's checks (level 1); other commands are asked about",
    ),
    (
        Mode::Auto,
        "also runs other commands (level 2) while the sandbox enforces all it should; without, as edit",
    ),
];

/// The rules that no mode and no rule file changes.
pub(super) const FIXED_RULES: [&str; 4] = [
    "what reaches outside (level 3) is asked about every time, unless a rule names it exactly",
    "so is a command that isn't confined, and one that destroys what undoing can't bring back",
    "tools of MCP servers are asked about, unless a rule allows them",
    "git's own files are changed by git alone",
];

/// The rules that hold in a project, file by file.
pub struct PolicyOverview {
    /// The rules with their files. All their examples hold.
    pub loaded: LoadedPolicy,
}

impl PolicyOverview {
    /// Loads the rules of the project at `root`.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a file that can't be read, and for a rule that can't hold or whose
    /// examples don't.
    pub fn load(environment: &Environment, root: &Path) -> Result<Self, HostError> {
        Ok(Self { loaded: load_policy(environment, root, Some(Path::new(ADMIN_POLICY)), &[])? })
    }

    /// Returns the rules of one file.
    pub fn rules_of(&self, file: &PolicyFile) -> impl Iterator<Item = (&RuleId, &Rule)> {
        let layer = file.layer;
        self.loaded.policy.rules().iter().filter(move |(id, _)| id.layer == layer)
    }

    /// Returns the number of examples of all rules.
    #[must_use]
    pub fn count_examples(&self) -> usize {
        let rules = self.loaded.policy.rules().iter();
        rules.map(|(_, rule)| rule.matches.len() + rule.not_matches.len()).sum()
    }

    /// Returns modes, fixed rules and files as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let files = self.loaded.files.iter().map(|file| {
            let rules = self.rules_of(file).map(|(id, rule)| {
                json!({
                    "line": id.line, "name": rule.name, "decision": decision_name(rule.decision),
                    "on": rule.to_string(), "reason": rule.reason,
                })
            });
            json!({
                "layer": file.layer.name(), "path": file.path, "there": file.rules.is_some(),
                "rules": rules.collect::<Vec<_>>(),
            })
        });
        let modes = MODE_EFFECTS.iter().map(|(mode, effect)| json!({ "mode": mode, "does": effect }));
        json!({
            "modes": modes.collect::<Vec<_>>(), "always": FIXED_RULES, "files": files.collect::<Vec<_>>(),
        })
    }
}
