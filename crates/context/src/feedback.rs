//! The feedback to the model when checks fail.

use std::fmt::Write as _;

use journeyman_protocol::{
    CheckOutcome, Diagnostic, Evidence, HonestyFinding, Severity, TokenCounter as _, Tokens, clip_to_bytes,
};

use crate::TokenEstimator;
use crate::check_rounds::{CheckedRound, better_round, has_same_cause};
use crate::cut::cut_to_budget;
use crate::fence::fence_text;

/// Maximum tokens of the whole message: it stays in the transcript for the rest of the session.
pub const FEEDBACK_BUDGET: Tokens = Tokens(2_500);
/// Diagnostics shown a check; the first are the worst, and the rest often follow from them.
const MAX_DIAGNOSTICS: usize = 12;
/// A longer message is cut, in bytes.
const MAX_DIAGNOSTIC_MESSAGE_BYTES: usize = 400;
/// A longer command or reason is cut, in bytes.
const MAX_COMMAND_BYTES: usize = 300;
/// Maximum number of quoted source lines a diagnostic.
const MAX_SOURCE_LINES: usize = 5;
/// Checks that are shown one by one.
const MAX_CHECKS: usize = 6;
/// Maximum number of failures that are named as fixed, new or old, and of findings.
const MAX_NAMED_FAILURES: usize = 8;
/// Maximum tokens of the summary of edits.
const EDITS_BUDGET: Tokens = Tokens(500);
/// Approximate tokens of the fixed words.
const FRAME_TOKENS: Tokens = Tokens(350);

/// The results of a failed verification.
#[derive(Debug, Clone, Copy)]
pub struct Feedback<'a> {
    /// Every check of this round, also those that passed or didn't run.
    pub evidence: &'a [Evidence],
    /// The failures of this round.
    pub round: &'a CheckedRound,
    /// The earlier rounds of the task, oldest first, to see what an attempt changed.
    pub earlier: &'a [CheckedRound],
    /// Where the change makes tests or checks say less.
    pub findings: &'a [HonestyFinding],
    /// The number of the attempt, 1-based.
    pub attempt: u32,
    /// Of how many.
    pub of: u32,
    /// The edits so far, one line each.
    pub edits_summary: &'a str,
    /// Tells how to change a file, where nothing was changed since the attempt before.
    pub unchanged: Option<&'a str>,
}

/// The message for a failed verification: [`Feedback`] without a round before.
#[must_use]
pub fn describe_failed_checks(evidence: &[Evidence], attempt: u32, of: u32, edits_summary: &str) -> String {
    let round = &CheckedRound::new(attempt, evidence, &[]);
    let (earlier, findings) = (&[], &[]);
    Feedback { evidence, round, earlier, findings, attempt, of, edits_summary, unchanged: None }.to_message()
}

impl Feedback<'_> {
    /// The message, within about [`FEEDBACK_BUDGET`]: which checks failed, with diagnostics first
    /// and an excerpt of the output, what was edited, and how to go on.
    #[must_use]
    pub fn to_message(&self) -> String {
        let mut failed: Vec<&Evidence> =
            self.evidence.iter().filter(|check| check.outcome.has_failed()).collect();
        failed.sort_by_key(|check| check.diagnostics.is_empty());
        let mut out = self.heading(failed.len());
        self.describe_progress(&mut out);
        if self.attempt >= self.of {
            out.push_str("No attempt is left after the next answer, so make it count.\n");
        }
        self.describe_findings(&mut out);
        let edits = cut_to_budget(self.edits_summary.trim(), EDITS_BUDGET, None).text;
        let spent = FRAME_TOKENS + TokenEstimator.count(&edits);
        let shown = failed.len().clamp(1, MAX_CHECKS) as u64;
        let share = Tokens(FEEDBACK_BUDGET.0.saturating_sub(spent.0) / shown);
        for check in failed.iter().take(MAX_CHECKS) {
            push_failure(&mut out, check, share);
        }
        let further: Vec<&str> = failed.iter().skip(MAX_CHECKS).map(|check| check.command.as_str()).collect();
        push_commands(&mut out, "Failed too", &further);
        let of = |wanted: fn(&CheckOutcome) -> bool| -> Vec<&str> {
            let chosen = self.evidence.iter().filter(|check| wanted(&check.outcome));
            chosen.map(|check| check.command.as_str()).collect()
        };
        push_commands(&mut out, "Passed", &of(CheckOutcome::has_passed));
        push_commands(
            &mut out,
            "Could not run (says nothing of your change)",
            &of(|outcome| !outcome.has_passed() && !outcome.has_failed()),
        );
        if !edits.is_empty() {
            let _infallible = write!(out, "\n## Your edits so far\n{}\n", edits.trim_end());
        }
        out.push_str(ADVICE);
        out
    }

    /// The first lines: the number of checks that failed.
    fn heading(&self, failed: usize) -> String {
        let ran = match self.unchanged {
            Some(_) => "The project's checks ran again, though no file was changed since the attempt before",
            None => "The project's checks ran on your change",
        };
        let (attempt, of, all) = (self.attempt, self.of, self.evidence.len());
        match failed {
            0 => format!(
                "{ran} and passed, but the change is not accepted. This was attempt {attempt} of {of}.\n"
            ),
            _ => format!("{ran}, and {failed} of {all} failed. This was attempt {attempt} of {of}.\n"),
        }
    }

    /// Says how the failures changed since the attempt before, and what follows from that.
    fn describe_progress(&self, out: &mut String) {
        let old: Vec<String> = self
            .evidence
            .iter()
            .filter_map(|check| check.baseline.as_ref())
            .flat_map(|baseline| baseline.old.iter().cloned())
            .collect();
        name_failures(out, "Failed already before the task, so leave them alone", &old);
        if let Some(how_to_edit) = self.unchanged {
            let _infallible = writeln!(out, "{how_to_edit}");
            return;
        }
        let Some(last) = self.earlier.last() else { return };
        let changes = self.round.compare(last);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        if last.partial || self.round.partial {
            out.push_str("Not all failures are listed, so that those that are fixed or new can't be told.\n");
        } else {
            let _infallible = writeln!(
                out,
                "Since the attempt before: {} fixed, {} new, {} the same.",
                changes.fixed.len(),
                changes.new.len(),
                changes.same.len()
            );
            name_failures(out, "Fixed", &changes.fixed);
            name_failures(out, "New, so your last change caused them", &owned(&changes.new));
        }
        let is_same = !changes.same.is_empty() && self.round.words == last.words;
        if has_same_cause(self.earlier, self.round) {
            let cause = self.round.failures.first().map(String::as_str).unwrap_or_default();
            let _infallible = writeln!(
                out,
                "`{}` has been the first failure three times running: stop refining this approach. Before you edit \
                 again, list what you tried and what each attempt showed, state two different hypotheses about the \
                 cause, and read the failing test, the code that it calls and its callers to tell which one holds.",
                one_line(cause)
            );
        } else if is_same {
            out.push_str(
                "These are the same failures as after the attempt before: that change didn't touch their cause. Don't \
                 refine it; go back to what the failure says and take another approach.\n",
            );
        }
        if let Some(best) = better_round(self.earlier, self.round) {
            let _infallible = writeln!(
                out,
                "There are more failures than before: attempt {} had {}, now there are {}. Consider taking back what \
                 you changed since attempt {} and going on from there.",
                best.attempt, best.count, self.round.count, best.attempt
            );
            if let Some(checkpoint) = best.checkpoint {
                let _infallible = writeln!(
                    out,
                    "That state is checkpoint {checkpoint}; the user can bring it back with \
                     `jm undo --to {checkpoint}`."
                );
            }
        }
    }

    /// Names the places that keep the change from being accepted though checks pass.
    fn describe_findings(&self, out: &mut String) {
        let blocking: Vec<String> = self
            .findings
            .iter()
            .filter(|finding| finding.is_blocking())
            .map(|finding| clip_to_bytes(&one_line(&finding.to_string()), MAX_COMMAND_BYTES).to_owned())
            .collect();
        if blocking.is_empty() {
            return;
        }
        out.push_str("\n## Your change makes tests or checks say less\n");
        for finding in blocking.iter().take(MAX_NAMED_FAILURES) {
            let _infallible = writeln!(out, "- {finding}");
        }
        if let Some(more) = blocking.len().checked_sub(MAX_NAMED_FAILURES).filter(|more| *more > 0) {
            let _infallible = writeln!(out, "- … and {more} more");
        }
        out.push_str(
            "Put these back as they were and make the code pass instead. If the task itself asks for such a change, \
             leave it and say why in your answer: only the user can accept it.\n",
        );
    }
}

/// A line that names failures, or nothing.
fn name_failures(out: &mut String, what: &str, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMED_FAILURES)
        .map(|name| format!("`{}`", clip_to_bytes(&one_line(name), 100)))
        .collect();
    let more = names.len().saturating_sub(MAX_NAMED_FAILURES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let _infallible = writeln!(out, "{what}: {}{more}.", shown.join(", "));
}

const ADVICE: &str = "
## How to go on
- Find the root cause first: read the failing code and the test, not only the message.
- Fix the cause. Don't suppress, skip or weaken a check, and don't catch the error away.
- If your approach was wrong, say so, take it back and choose another.
- Make the smallest fix, and break nothing that passes now.
- If a failure was there before your change or isn't caused by it, say so instead of working around it.
When you stop, the checks run again.
";

/// One failed check within its share of the budget.
pub(crate) fn push_failure(out: &mut String, check: &Evidence, share: Tokens) {
    let directory = check.directory.as_ref().map(|path| format!(" in {path}")).unwrap_or_default();
    let CheckOutcome::Failed { reason, .. } = &check.outcome else { return };
    let heading = format!(
        "\n## {}: `{}`{directory}: {}\n",
        check.kind,
        clip_to_bytes(&one_line(&check.command), MAX_COMMAND_BYTES),
        clip_to_bytes(&one_line(reason), MAX_COMMAND_BYTES)
    );
    let mut spent = TokenEstimator.count(&heading);
    out.push_str(&heading);
    let mut left_out = 0;
    // What was there before the task is named above.
    let found: Vec<&Diagnostic> = check.diagnostics.iter().filter(|one| !one.before_task).collect();
    for (index, found) in found.iter().enumerate() {
        let line = describe_diagnostic(found);
        let cost = TokenEstimator.count(&line);
        // Half of the share is for the output, which has what the finding leaves out.
        if index > 0 && (index >= MAX_DIAGNOSTICS || spent + cost > Tokens(share.0 / 2)) {
            left_out = check.diagnostics.iter().filter(|one| !one.before_task).count() - index;
            break;
        }
        spent += cost;
        out.push_str(&line);
    }
    if left_out > 0 {
        let _infallible = writeln!(out, "- … and {left_out} more");
    }
    let output = check.output.trim();
    if !output.is_empty() {
        let room = Tokens(share.0.saturating_sub(spent.0));
        let kept =
            if TokenEstimator.count(output) <= room { output.to_owned() } else { excerpt(output, room) };
        out.push_str(&fence_text("output", &[], kept.trim_end()));
        out.push('\n');
    }
}

/// Head and tail of an output. What explains a failure stands at the end of most tools' output, so
/// that a small room goes to the tail alone.
fn excerpt(output: &str, room: Tokens) -> String {
    if room >= crate::cut::MIN_CUT_TOKENS {
        return cut_to_budget(output, room, None).text;
    }
    let mut kept = Vec::new();
    let mut spent = 0;
    for line in output.lines().rev() {
        let line = clip_to_bytes(line, MAX_COMMAND_BYTES);
        spent += TokenEstimator.count(line).0 + 1;
        if spent > room.0.max(100) {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    format!("[… the beginning is left out]\n{}", kept.join("\n"))
}

/// `- src/lib.rs:12:5 error[E0308]: mismatched types`
fn describe_diagnostic(found: &Diagnostic) -> String {
    let mut out = String::from("- ");
    if let Some(path) = &found.path {
        let _infallible = write!(out, "{path}");
        for number in [found.line, found.column].into_iter().map_while(|number| number) {
            let _infallible = write!(out, ":{number}");
        }
        out.push(' ');
    }
    out.push_str(match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    });
    if let Some(test) = &found.test {
        let _infallible = write!(out, " in test `{}`", clip_to_bytes(&one_line(test), MAX_COMMAND_BYTES));
    }
    if let Some(code) = &found.code {
        let _infallible = write!(out, "[{}]", clip_to_bytes(&one_line(code), MAX_COMMAND_BYTES));
    }
    let message = found.message.trim();
    let _infallible =
        writeln!(out, ": {}", clip_to_bytes(message, MAX_DIAGNOSTIC_MESSAGE_BYTES).replace('\n', "\n  "));
    if let (Some(expected), Some(actual)) = (&found.expected, &found.actual) {
        let _infallible = writeln!(
            out,
            "  expected `{}`, got `{}`",
            clip_to_bytes(&one_line(expected), MAX_COMMAND_BYTES),
            clip_to_bytes(&one_line(actual), MAX_COMMAND_BYTES)
        );
    }
    if let Some(source) = &found.source {
        for line in source.lines().take(MAX_SOURCE_LINES) {
            let _infallible = writeln!(out, "  {}", clip_to_bytes(line, MAX_COMMAND_BYTES));
        }
    }
    out
}

/// A line that names commands, or nothing.
fn push_commands(out: &mut String, what: &str, commands: &[&str]) {
    if !commands.is_empty() {
        let named: Vec<String> = commands
            .iter()
            .take(MAX_CHECKS)
            .map(|command| format!("`{}`", clip_to_bytes(&one_line(command), 100)))
            .collect();
        let more = commands.len().saturating_sub(MAX_CHECKS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _infallible = writeln!(out, "\n{what}: {}{more}", named.join(", "));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
