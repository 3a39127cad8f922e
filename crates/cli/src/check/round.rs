//! Prints the rounds of checks.

use journeyman_agent::verify::Progress;
use journeyman_host::HostError;
use journeyman_host::checks::{CheckRound, RoundView, describe_round};
use journeyman_host::format::{format_count, list_first, printable};
use journeyman_protocol::RelPath;
use journeyman_terminal::stderr_screen;

use super::args::CheckArgs;
use super::progress::RoundProgress;
use crate::output::{print_json_line, write_screen};

/// Maximum number of files changed by checks that are named.
const MAX_NAMED_FILES: usize = 10;
/// Maximum number of files changed by others that are named.
const MAX_NAMED_CAUSES: usize = 5;

/// Prints rounds of checks as the flags say.
pub(super) struct RoundPrinter<'a> {
    args: &'a CheckArgs,
    progress: RoundProgress,
}

impl<'a> RoundPrinter<'a> {
    pub(super) fn new(args: &'a CheckArgs) -> Self {
        Self { args, progress: RoundProgress::new(!args.json, !args.quiet) }
    }

    fn print_end(&self, round: &CheckRound) {
        let CheckRound { result, selected, is_about_nothing } = round;
        write_screen(|screen| screen.write_line(&describe_round(result, selected, *is_about_nothing)));
        if self.args.quiet {
            return;
        }
        let mut names: Vec<String> = result.changed.iter().map(|change| printable(&change.path)).collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            let (files, named) = (format_count(names.len(), "file"), list_first(&names, MAX_NAMED_FILES));
            errln!("changed {files}: {named}; jm undo takes it back");
        }
        if !self.args.fix && round.has_fixable_failure() {
            errln!("jm check --fix repairs what the linters' own tools can");
        }
        let left_out = selected.left_out.len();
        if left_out > 0 && self.args.kind.is_empty() {
            errln!("{} left out; jm checks says why", format_count(left_out, "check"));
        }
    }
}

impl RoundView for RoundPrinter<'_> {
    fn show_progress(&mut self, step: Progress) {
        self.progress.observe(step);
    }

    fn show_round(&mut self, round: &CheckRound) -> Result<(), HostError> {
        stderr_screen().clear_progress();
        // A reason is shortened within one round alone.
        self.progress = RoundProgress::new(!self.args.json, !self.args.quiet);
        if self.args.json {
            return print_json_line(&round.to_answer());
        }
        self.print_end(round);
        Ok(())
    }

    fn show_waiting(&mut self) {
        if !self.args.json && !self.args.quiet {
            errln!("waiting for changes; Ctrl-C ends it");
        }
    }

    fn show_changed_files(&mut self, files: &[RelPath]) {
        if !self.args.json {
            errln!();
            errln!("changed: {}", list_first(files, MAX_NAMED_CAUSES));
        }
    }
}
