//! Selects the checks to run.

use std::path::PathBuf;

use journeyman_agent::verify::{Check, custom_checks};
use journeyman_protocol::CheckKind;

/// The user's choice of checks.
#[derive(Debug, Clone, Default)]
pub struct CheckSelection {
    /// Only checks of these kinds; empty for all.
    pub kinds: Vec<CheckKind>,
    /// Commands in place of the checks that are found.
    pub commands: Vec<String>,
    /// Also checks that look for known vulnerabilities on the network.
    pub security: bool,
    /// Also checks that are otherwise only listed.
    pub all: bool,
    /// Only checks affected by files that differ from the last commit.
    pub changed: bool,
    /// Only checks affected by these files and directories.
    pub paths: Vec<PathBuf>,
    /// First run the commands that repair what linters find.
    pub fix: bool,
}

/// The checks that run, and the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectedChecks {
    /// The checks that run, in their order.
    pub chosen: Vec<Check>,
    /// The checks that don't run, each with the reason.
    pub left_out: Vec<(Check, String)>,
}

impl CheckSelection {
    /// Selects from the checks that were found.
    #[must_use]
    pub fn select(&self, found: Vec<Check>) -> SelectedChecks {
        let mut selected = SelectedChecks::default();
        let found = if self.commands.is_empty() { found } else { custom_checks(&self.commands) };
        for check in found {
            match self.skip_reason(&check) {
                None => selected.chosen.push(check),
                Some(reason) => selected.left_out.push((check, reason)),
            }
        }
        selected
    }

    /// Returns the reason why a check doesn't run.
    fn skip_reason(&self, check: &Check) -> Option<String> {
        let named = self.kinds.contains(&check.kind);
        let security = self.security && check.kind == CheckKind::Security;
        if !self.kinds.is_empty() && !named && !security {
            return Some(format!("--kind leaves out {}", check.kind));
        }
        // Naming a kind selects its checks, also if none of them runs by default.
        let is_meant = named && matches!(check.kind, CheckKind::Build | CheckKind::Security);
        check.unasked.clone().filter(|_| !self.all && !security && !is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(selection: &CheckSelection) -> Vec<String> {
        let check = |kind, command: &str| Check::new(kind, "x", command, "");
        let found = vec![
            check(CheckKind::Lint, "lint"),
            check(CheckKind::Build, "build").with_unasked("slow"),
            check(CheckKind::Test, "test"),
            check(CheckKind::Test, "e2e").with_unasked("needs a browser"),
            check(CheckKind::Security, "audit").with_unasked("needs a network"),
        ];
        selection.select(found).chosen.into_iter().map(|check| check.command).collect()
    }

    #[test]
    fn what_is_only_listed_runs_when_it_is_asked_for() {
        let default = CheckSelection::default;
        let kinds = |kinds: &[CheckKind]| CheckSelection { kinds: kinds.to_vec(), ..default() };
        let cases = [
            (default(), vec!["lint", "test"]),
            (CheckSelection { all: true, ..default() }, vec!["lint", "build", "test", "e2e", "audit"]),
            (CheckSelection { security: true, ..default() }, vec!["lint", "test", "audit"]),
            (kinds(&[CheckKind::Test]), vec!["test"]),
            (kinds(&[CheckKind::Build, CheckKind::Lint]), vec!["lint", "build"]),
            (kinds(&[CheckKind::Security]), vec!["audit"]),
            (CheckSelection { commands: vec!["make smoke".into()], ..default() }, vec!["make smoke"]),
        ];
        for (selection, expected) in cases {
            assert_eq!(chosen(&selection), expected, "{selection:?}");
        }
    }
}
