//! Runs one round of checks and prints the results.

use journeyman_host::HostError;
use journeyman_host::checks::{ProjectCheckRunner, RoundResult, SelectedChecks, describe_round};
use journeyman_host::config::Environment;
use journeyman_host::format::{format_count, printable};
use journeyman_protocol::RelPath;
use journeyman_terminal::stderr_screen;
use tokio_util::sync::CancellationToken;

use super::args::CheckArgs;
use super::progress::RoundProgress;
use crate::output::write_screen;

/// Maximum number of changed files that are named.
const MAX_NAMED_FILES: usize = 10;

/// A round of checks, with what it prints.
pub(super) struct CheckRound<'a> {
    pub(super) environment: &'a Environment,
    pub(super) args: &'a CheckArgs,
    pub(super) project: &'a ProjectCheckRunner,
}

impl CheckRound<'_> {
    /// Finds and runs the checks that `files` affect; all checks for `None`.
    pub(super) async fn run(
        &self,
        files: Option<Vec<RelPath>>,
        stop: &CancellationToken,
    ) -> Result<(RoundResult, SelectedChecks), HostError> {
        let selection = self.args.to_selection();
        let is_about_nothing = files.as_ref().is_some_and(Vec::is_empty);
        let found = match is_about_nothing {
            true => Vec::new(),
            false => self.project.find_affected_checks(files.unwrap_or_default()).await?,
        };
        let selected = selection.select(found);
        let mut progress = RoundProgress::new(!self.args.json, !self.args.quiet);
        let mut observer = |step| progress.observe(step);
        let result = self.project.run(&selected.chosen, selection.fix, stop, &mut observer).await;
        stderr_screen().clear_progress();
        let result = result?;
        if !self.args.json {
            self.print_end(&result, &selected, is_about_nothing);
        }
        Ok((result, selected))
    }

    fn print_end(&self, result: &RoundResult, selected: &SelectedChecks, is_about_nothing: bool) {
        write_screen(|screen| screen.write_line(&describe_round(result, selected, is_about_nothing)));
        if self.args.quiet {
            return;
        }
        let mut names: Vec<String> = result.changed.iter().map(|change| printable(&change.path)).collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            let more = names.len().saturating_sub(MAX_NAMED_FILES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = names.get(..MAX_NAMED_FILES.min(names.len())).unwrap_or_default().join(", ");
            errln!("changed {}: {named}{more}; jm undo takes it back", format_count(names.len(), "file"));
        }
        let fixable = |evidence: &&journeyman_protocol::Evidence| {
            let of = selected
                .chosen
                .iter()
                .find(|check| check.command == evidence.command && check.directory == evidence.directory);
            evidence.outcome.has_failed() && of.is_some_and(|check| check.fix.is_some())
        };
        if !self.args.fix && result.evidence.iter().any(|evidence| fixable(&evidence)) {
            errln!("jm check --fix repairs what the linters' own tools can");
        }
        let left_out = selected.left_out.len();
        if left_out > 0 && self.args.kind.is_empty() {
            errln!("{} left out; jm checks says why", format_count(left_out, "check"));
        }
    }
}
