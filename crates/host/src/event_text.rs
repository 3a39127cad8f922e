//! The events of a session in words. Texts from outside are cleaned of control sequences.

use std::fmt::Display;

use journeyman_delegate::DELEGATE_TOOL;
use journeyman_protocol::{
    AgentReport, CallState, CheckOutcome, CompressionPhase, ContextCategory, ContextShare, Diagnostic,
    ErrorSeverity, Event, Evidence, FileChangeKind, FileConflict, HonestyFinding, Plan, RelPath,
    ReminderCategory, ResumeStrategy, StopReason, Strength, StrengthReport, Termination, Todo, TodoStatus,
    Tokens, UnavailableTier, Usage, group_digits, label_check,
};
use journeyman_terminal::{Style, StyledLine};
use serde_json::Value;

use crate::format::{format_count, format_seconds, preview, printable};

/// Context categories that the index supplies.
const INDEX_CATEGORIES: [ContextCategory; 3] =
    [ContextCategory::RelatedCode, ContextCategory::Tests, ContextCategory::Docs];
/// Maximum number of lines about one list: paths, conflicts, a tool's result.
const MAX_LISTED_ITEMS: usize = 4;
/// Maximum number of lines of a command's output.
const MAX_OUTPUT_LINES: usize = 10;
/// The ends of denials that are advice to the model.
const DENIAL_ADVICE: [&str; 2] =
    ["; don't try it again another way without asking", " Go on without it if you can."];

/// Describes an event, in no lines if there is nothing to say. What a model writes, questions about
/// tool calls and their answers are not described: each surface shows them in its own way.
#[must_use]
pub fn describe_event(event: &Event) -> Vec<StyledLine> {
    match event {
        Event::RunStarted { model, mode, .. } => {
            vec![heading_line("journeyman", format!("{model}  mode {mode}"))]
        }
        Event::ContextPacked { tokens, files_listed, instructions, files, shares } => {
            let names: Vec<String> = instructions.iter().chain(files).map(ToString::to_string).collect();
            let with = if names.is_empty() { String::new() } else { format!(", with {}", names.join(", ")) };
            let listed = match files_listed {
                0 => String::new(),
                files => format!(", {} listed", format_count(files, "file")),
            };
            let is_code = |share: &&ContextShare| INDEX_CATEGORIES.contains(&share.category);
            let found: Tokens = shares.iter().filter(is_code).map(|share| share.tokens).sum();
            let found = match found.0 {
                0 => String::new(),
                found => format!(", {found} of them code found for the task"),
            };
            vec![dim_line(format!("context: about {tokens} tokens{found}{listed}{with}"))]
        }
        Event::ContextCompression { .. } => describe_compression(event),
        Event::Retry { attempt, of, wait_ms, reason } => {
            let wait = format_seconds(*wait_ms);
            vec![note_line(printable(&format_args!("{reason}; attempt {attempt} of {of} in {wait}")))]
        }
        Event::VerifyStarted { checks, round } => {
            let list = match checks.is_empty() {
                true => "no check can run".to_owned(),
                false => preview(checks.join(" · ")),
            };
            vec![StyledLine::new(Style::Strong, "verifying").with_text(format!(" round {round}: {list}"))]
        }
        Event::CheckStarted { command, directory, original_tests, before_task, .. } => {
            let tree = if *before_task {
                " on the tree before the task"
            } else {
                original_tests_suffix(*original_tests)
            };
            let command = preview(label_check(command, directory.as_ref()));
            vec![dim_line(format!("  $ {command}{tree}"))]
        }
        Event::CheckResult { evidence } => describe_evidence(evidence),
        Event::VerifyFinished { fed_back: true, .. } => {
            vec![note_line("  the failures go back to the model")]
        }
        Event::AgentStarted { name, task, background, .. } => {
            let place = if *background { " (in the background)" } else { "" };
            vec![StyledLine::new(Style::Accent, "↳").with_text(format!(" {name}{place}: {}", preview(task)))]
        }
        Event::AgentFinished { report, turns, usd, duration_ms, .. } => {
            vec![describe_agent_end(report, *turns, *usd, *duration_ms)]
        }
        Event::Planned { plan } => describe_plan(plan),
        Event::Warning { message } => vec![note_line(printable(&message))],
        Event::Error { severity, message, .. } => vec![describe_problem(*severity, message)],
        Event::StorageFailure { message, waiting } => {
            let text = format!("the session log takes nothing ({message}); {waiting} entries wait");
            vec![note_line(printable(&text))]
        }
        Event::AgentResumed { strategy, interrupted, changed } => {
            describe_reopening(*strategy, interrupted.len(), changed)
        }
        Event::ToolStart { .. }
        | Event::ToolEnd { .. }
        | Event::ToolCustomEvent { .. }
        | Event::FileEdited { .. }
        | Event::TurnFinished { .. }
        | Event::FileChanged { .. }
        | Event::GuardViolated { .. }
        | Event::HonestyChecked { .. }
        | Event::StrengthMeasured { .. }
        | Event::TodoChanged { .. }
        | Event::ReminderSent { .. } => describe_step(event),
        // The others are for audits, or repeat another event.
        other => describe_copy(other),
    }
}

fn describe_compression(event: &Event) -> Vec<StyledLine> {
    match event {
        Event::ContextCompression { phase: CompressionPhase::Start, .. } => {
            vec![dim_line("the conversation gets long: shortening it")]
        }
        Event::ContextCompression { before, after: Some(after), .. } => {
            let (before, after) = (group_digits(before.0), group_digits(after.0));
            vec![dim_line(format!(
                "  shortened from about {before} tokens to {after}; the log keeps all of it"
            ))]
        }
        Event::ContextCompression { failure: Some(failure), .. } => {
            vec![note_line(printable(&format_args!("  the conversation was not shortened: {failure}")))]
        }
        _ => Vec::new(),
    }
}

/// Describes a plan: the strategy, and the steps with their files.
fn describe_plan(plan: &Plan) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::new(Style::Strong, "plan")];
    lines.extend(
        plan.to_string()
            .lines()
            .map(|line| StyledLine::default().with_text(format!("  {}", printable(&line)))),
    );
    lines
}

/// Describes the end of an agent.
fn describe_agent_end(report: &AgentReport, turns: u32, usd: Option<f64>, duration_ms: u64) -> StyledLine {
    let style = if report.termination == Termination::Goal { Style::Good } else { Style::Warning };
    let how = match report.recovered {
        Some(limit) => format!("{} in its last turn, after {limit}", report.termination),
        None => report.termination.to_string(),
    };
    let cost = usd.map(|usd| format!(", ${usd:.4}")).unwrap_or_default();
    let (turns, time) = (format_count(turns, "turn"), format_seconds(duration_ms));
    StyledLine::new(style, format!("  {}: {how}", report.name)).with_text(format!(" ({turns}, {time}{cost})"))
}

/// Describes an event of a step, including external changes.
fn describe_step(event: &Event) -> Vec<StyledLine> {
    match event {
        Event::ToolStart { summary, .. } => {
            vec![StyledLine::new(Style::Accent, "●").with_text(format!(" {}", preview(summary)))]
        }
        Event::ToolEnd { state, preview, output_lines, .. } => match output_lines {
            Some(lines) => describe_command_end(*state, preview, *lines),
            None => describe_tool_end(*state, preview),
        },
        Event::ToolCustomEvent { tool, kind, data, .. } if tool == DELEGATE_TOOL => {
            describe_cli_step(kind, data).into_iter().collect()
        }
        Event::TurnFinished { stop, usage, .. } => {
            describe_truncated_message(stop, usage).into_iter().collect()
        }
        Event::FileEdited { change, .. } => vec![marked_line(Style::Good, "✎", format!(" {}", change.path))],
        Event::FileChanged { change } => {
            let how = match change.kind {
                FileChangeKind::Added => "added",
                FileChangeKind::Modified => "changed",
                FileChangeKind::Deleted => "removed",
            };
            vec![note_line(format!("  {} was {how} by somebody else; the model is told", change.path))]
        }
        Event::GuardViolated { violations, .. } => {
            describe_first_items(violations, |violation| describe_problem(ErrorSeverity::Error, violation))
        }
        Event::HonestyChecked { findings } => describe_first_items(findings, describe_finding),
        Event::StrengthMeasured { strength } => describe_strength(strength),
        Event::TodoChanged { current, .. } => vec![describe_todos(current)],
        Event::ReminderSent { category: ReminderCategory::Progress, .. } => {
            vec![note_line("  the run goes in circles; the model is told")]
        }
        _ => Vec::new(),
    }
}

/// Describes a place where a change makes tests or checks say less.
fn describe_finding(finding: &HonestyFinding) -> StyledLine {
    match finding.is_blocking() {
        true => describe_problem(ErrorSeverity::Error, finding),
        false => note_line(printable(&format_args!("  {finding}"))),
    }
}

/// Describes what the tests would notice of a change, and what not.
fn describe_strength(report: &StrengthReport) -> Vec<StyledLine> {
    let style = if report.strength == Strength::Notices { Style::Good } else { Style::Warning };
    let head = StyledLine::new(style, "  strength:").with_text(format!(" {}", printable(&report)));
    let untested =
        describe_first_items(&report.untested, |line| note_line(preview(format_args!("    {line}"))));
    let survivors = describe_first_items(&report.survivors, |survivor| {
        note_line(preview(format_args!("    {survivor}")))
    });
    std::iter::once(head).chain(untested).chain(survivors).collect()
}

/// Describes the reason for which a message ends before its end.
fn describe_truncated_message(stop: &StopReason, usage: &Usage) -> Option<StyledLine> {
    let text = match stop {
        StopReason::MaxTokens => {
            let tokens = group_digits(usage.output.0);
            format!("  the reply was cut off at the output limit ({tokens} tokens)")
        }
        StopReason::Cancelled => "  the reply was cut off here: the run was stopped".to_owned(),
        StopReason::Error => "  the reply was cut off here by an error".to_owned(),
        StopReason::Repetition => "  the reply was stopped here: it repeated the same text".to_owned(),
        _ => return None,
    };
    Some(note_line(text))
}

/// Describes an event about the copy that a session works in, or about what became of its work.
fn describe_copy(event: &Event) -> Vec<StyledLine> {
    match event {
        Event::Isolated { tier, unavailable, reopened } => {
            let again = if *reopened { ", opened again" } else { "" };
            let text = format!("works in a copy of the project ({tier}{again})");
            let others = unavailable.iter().map(|UnavailableTier { tier, reason }| {
                dim_line(preview(format_args!("  no {tier}: {reason}")))
            });
            std::iter::once(heading_line("isolated", text)).chain(others).collect()
        }
        Event::CopyRefreshed { taken, merged, conflicts } => {
            let lists = [
                (taken, "taken over from your files"),
                (merged, "merged with your own changes"),
                (conflicts, "doesn't go together with your own changes"),
            ];
            let describe = |(paths, how): (&Vec<RelPath>, &str)| {
                describe_first_items(paths, |path| note_line(format!("  {path}: {how}; the model is told")))
            };
            lists.into_iter().flat_map(describe).collect()
        }
        Event::Landed { changes, copy: Some(copy) } => {
            let merged = match copy.merged.len() {
                0 => String::new(),
                some => format!(", {some} of them merged with your own changes"),
            };
            let files = format_count(changes.len(), "file");
            vec![StyledLine::new(Style::Good, "landed").with_text(format!("  {files}{merged}"))]
        }
        Event::CopyKept { reason, conflicts } => {
            let conflicts = conflicts.iter().take(MAX_LISTED_ITEMS);
            let conflicts = conflicts
                .map(|FileConflict { path, reason }| note_line(preview(format_args!("  {path}: {reason}"))));
            let kept = note_line(preview(format_args!("kept in its copy: {reason}")));
            std::iter::once(kept).chain(conflicts).collect()
        }
        // A copy without changes needs no line.
        Event::CopyDiscarded { files: 0 } => Vec::new(),
        Event::CopyDiscarded { files } => {
            vec![note_line(format!("discarded, with {}", format_count(files, "changed file")))]
        }
        Event::Committed { commit } => {
            let on = commit.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
            let short = commit.id.get(..10).unwrap_or(&commit.id);
            let text = preview(format_args!("{short}{on}: {}", commit.subject));
            vec![StyledLine::new(Style::Good, "committed").with_text(format!("  {text}"))]
        }
        Event::CandidatesStarted { sessions } => {
            vec![heading_line("candidates", format!("{} sessions, each in a copy", sessions.len()))]
        }
        _ => Vec::new(),
    }
}

fn describe_problem(severity: ErrorSeverity, message: &dyn Display) -> StyledLine {
    let message = printable(&message);
    match severity {
        ErrorSeverity::Error => StyledLine::new(Style::Bad, "error:").with_text(format!(" {message}")),
        ErrorSeverity::Warn => StyledLine::new(Style::Warning, "warning:").with_text(format!(" {message}")),
        ErrorSeverity::Info => note_line(message),
    }
}

fn describe_reopening(strategy: ResumeStrategy, interrupted: usize, changed: &[String]) -> Vec<StyledLine> {
    let how = match interrupted {
        0 => "its task was cut off; no call was running".to_owned(),
        1 => "its task was cut off, and one call with it".to_owned(),
        many => format!("its task was cut off, and {many} calls with it"),
    };
    let opened = (strategy == ResumeStrategy::Crash).then(|| heading_line("opened again", how));
    let changed = changed.iter().map(|what| note_line(format!("  other than before: {}", printable(&what))));
    opened.into_iter().chain(changed).collect()
}

/// Describes the progress of the todo list, and the item in work.
fn describe_todos(todos: &[Todo]) -> StyledLine {
    let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    let now = todos.iter().find(|todo| todo.status == TodoStatus::InProgress);
    let now = now.map(|todo| format!(": {}", todo.title)).unwrap_or_default();
    let text = match todos.len() {
        0 => "todos: none".to_owned(),
        all => format!("todos: {done} of {all} done{now}"),
    };
    dim_line(format!("  {}", preview(text)))
}

/// Describes the end of a command: of a successful one how much it printed, of any other the end of
/// its output, where errors are.
fn describe_command_end(state: CallState, preview_text: &str, output_lines: u64) -> Vec<StyledLine> {
    let text = printable(preview_text);
    let mut lines = text.lines();
    let ended = lines.next().unwrap_or_default();
    // The changed files are shown by events of their own.
    let is_shown = |line: &&str| !line.trim().is_empty() && !line.starts_with("[files changed: ");
    let output: Vec<&str> = lines.filter(is_shown).collect();
    if state == CallState::Completed {
        let Some(last) = last_output_line(&output).filter(|_| output_lines > 0) else { return Vec::new() };
        let count = format_count(group_digits(output_lines), "line");
        let count = if output_lines == 1 { String::new() } else { format!("{count}; last: ") };
        return vec![dim_line(format!("    {count}{}", preview(last)))];
    }
    let mark = if state == CallState::Interrupted { "cut off" } else { "failed" };
    let shown = output.get(output.len().saturating_sub(MAX_OUTPUT_LINES)..).unwrap_or(&output);
    let hidden = output_lines.saturating_sub(u64::try_from(shown.len()).unwrap_or(u64::MAX));
    let hidden = (output.len() > shown.len())
        .then(|| dim_line(format!("    … {} before", format_count(group_digits(hidden), "line"))));
    let tail = shown.iter().map(|line| dim_line(format!("    {}", preview(line))));
    let head = marked_line(Style::Bad, mark, format!(": {ended}"));
    std::iter::once(head).chain(hidden).chain(tail).collect()
}

/// Returns the last line that a command printed. The notes of the tool, in brackets, come after.
fn last_output_line<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let is_note = |line: &&&str| line.starts_with('[') && line.ends_with(']');
    lines.iter().rev().find(|line| !is_note(line)).or(lines.last()).copied()
}

/// Describes the output of a command with its beginning and its end, for those who read a session
/// afterwards. Returns `None` for other events.
#[must_use]
pub fn describe_output(event: &Event) -> Option<Vec<StyledLine>> {
    let Event::ToolEnd { state, preview: text, output_lines: Some(lines), .. } = event else { return None };
    let text = printable(text);
    let mut rest = text.lines();
    let ended = rest.next().unwrap_or_default();
    let head = match state {
        CallState::Completed => {
            dim_line(format!("    {ended}, {}", format_count(group_digits(*lines), "line")))
        }
        CallState::Interrupted => marked_line(Style::Bad, "cut off", format!(": {ended}")),
        _ => marked_line(Style::Bad, "failed", format!(": {ended}")),
    };
    let output: Vec<&str> = rest.collect();
    let mut described = vec![head];
    let line = |line: &&str| dim_line(format!("    {}", preview(line)));
    let hidden = output.len().saturating_sub(2 * MAX_OUTPUT_LINES);
    if hidden == 0 {
        described.extend(output.iter().map(line));
    } else {
        let (first, last) = output.split_at(MAX_OUTPUT_LINES);
        described.extend(first.iter().map(line));
        described.push(dim_line("    …"));
        described.extend(last.iter().skip(hidden).map(line));
    }
    if hidden > 0 || text.contains(" bytes left out …\n") {
        described.push(dim_line("    (the whole: jm export SESSION --format markdown)"));
    }
    Some(described)
}

/// Describes a step of another CLI at work: a tool that it uses, one that failed, a problem.
fn describe_cli_step(kind: &str, data: &Value) -> Option<StyledLine> {
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    match kind {
        "tool_start" => {
            Some(dim_line(format!("  • {}", preview(format_args!("{} {}", text("tool"), text("summary"))))))
        }
        "tool_end" if data.get("failed").and_then(Value::as_bool) == Some(true) => {
            Some(note_line(format!("    failed: {}", preview(text("output").trim_start()))))
        }
        "warning" => Some(note_line(format!("  ! {}", preview(text("text"))))),
        _ => None,
    }
}

fn describe_tool_end(state: CallState, result: &str) -> Vec<StyledLine> {
    let mark = match state {
        CallState::Completed => return Vec::new(),
        CallState::Denied => return describe_denial(result),
        CallState::Interrupted => "cut off",
        _ => "failed",
    };
    let text = printable(&result);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_LISTED_ITEMS);
    let lines = lines.map(|line| dim_line(format!("    {}", preview(line))));
    std::iter::once(marked_line(Style::Bad, mark, "")).chain(lines).collect()
}

/// Describes a denial by its reason, without the advice to the model.
fn describe_denial(result: &str) -> Vec<StyledLine> {
    let text = printable(&result);
    let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let reason = DENIAL_ADVICE.iter().find_map(|advice| reason.strip_suffix(advice)).unwrap_or(reason);
    let reason = match reason.contains("denied") {
        true => reason.to_owned(),
        false => format!("denied: {reason}"),
    };
    vec![marked_line(Style::Bad, &reason, "")]
}

/// Describes the result of a check. A check that was already shown and whose failures were rerun
/// gets only the comparison.
fn describe_evidence(evidence: &Evidence) -> Vec<StyledLine> {
    let compared = describe_comparison(evidence);
    if !compared.is_empty() {
        return compared;
    }
    let command =
        format!("{}{}", printable(&evidence.label()), original_tests_suffix(evidence.original_tests));
    let took = format_seconds(evidence.duration_ms);
    match &evidence.outcome {
        CheckOutcome::Passed => vec![marked_line(Style::Good, "✓", format!(" {command} ({took})"))],
        CheckOutcome::Failed { reason, .. } => {
            let failed = marked_line(Style::Bad, "✗", format!(" {command}: {} ({took})", printable(&reason)));
            let diagnostics = evidence.diagnostics.iter().take(MAX_LISTED_ITEMS).map(describe_diagnostic);
            std::iter::once(failed).chain(diagnostics).collect()
        }
        CheckOutcome::NotRun { reason } => {
            vec![marked_line(Style::Warning, "–", format!(" {command}: not run: {}", printable(&reason)))]
        }
    }
}

/// Says which failures of a check are flaky, old, new or fixed.
fn describe_comparison(evidence: &Evidence) -> Vec<StyledLine> {
    let named = |names: &[String]| {
        let shown: Vec<String> = names.iter().take(MAX_LISTED_ITEMS).map(preview).collect();
        let more = names.len().checked_sub(MAX_LISTED_ITEMS).filter(|more| *more > 0);
        format!("{}{}", shown.join(", "), more.map(|more| format!(" and {more} more")).unwrap_or_default())
    };
    let mut lines = Vec::new();
    let mut line = |what: &str, names: &[String]| {
        if !names.is_empty() {
            lines.push(note_line(format!("  {what}: {}", named(names))));
        }
    };
    line("flaky, passed when it ran again", &evidence.flaky);
    if let Some(baseline) = &evidence.baseline {
        line("fails since the task began", &baseline.new);
        line("failed before the task as well", &baseline.old);
        line("failed before the task, and passes now", &baseline.fixed);
    }
    lines
}

fn original_tests_suffix(original: bool) -> &'static str {
    if original { " with the original tests" } else { "" }
}

fn describe_diagnostic(diagnostic: &Diagnostic) -> StyledLine {
    let place = diagnostic.path.as_ref().map(|path| match diagnostic.line {
        Some(line) => format!("{path}:{line}: "),
        None => format!("{path}: "),
    });
    let test = diagnostic.test.as_ref().filter(|test| !diagnostic.message.contains(test.as_str()));
    let test = test.map(|test| format!("{test}: ")).unwrap_or_default();
    let text = preview(format_args!("{}{test}{}", place.unwrap_or_default(), diagnostic.message));
    dim_line(format!("    {text}"))
}

/// Describes the first items of a list, and says how many more there are.
fn describe_first_items<T>(items: &[T], describe: impl FnMut(&T) -> StyledLine) -> Vec<StyledLine> {
    let more = items.len().checked_sub(MAX_LISTED_ITEMS).filter(|more| *more > 0);
    let more = more.map(|more| note_line(format!("  … and {more} more")));
    items.iter().take(MAX_LISTED_ITEMS).map(describe).chain(more).collect()
}

fn heading_line(label: &str, text: String) -> StyledLine {
    StyledLine::new(Style::Strong, label).with_text(format!("  {text}"))
}

fn marked_line(style: Style, mark: &str, text: impl Into<String>) -> StyledLine {
    StyledLine::new(Style::Plain, "  ").with(style, mark).with_text(text)
}

fn note_line(text: impl Into<String>) -> StyledLine {
    StyledLine::new(Style::Warning, text)
}

fn dim_line(text: impl Into<String>) -> StyledLine {
    StyledLine::new(Style::Dim, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(event: &Event) -> Vec<String> {
        describe_event(event).iter().map(StyledLine::to_text).collect()
    }

    #[test]
    fn events_are_described_in_words() {
        let text = "one\u{1b}[31m\ntwo".to_owned();
        assert_eq!(describe(&Event::Warning { message: text.clone() }), ["one\ntwo"]);
        let failed = describe_tool_end(CallState::Failed, &text);
        let failed: Vec<String> = failed.iter().map(StyledLine::to_text).collect();
        assert_eq!(failed, ["  failed", "    one", "    two"]);
        for (result, said) in [
            ("denied by the user; don't try it again another way without asking", "  denied by the user"),
            ("no answer (end of input): denied", "  no answer (end of input): denied"),
            ("not now", "  denied: not now"),
        ] {
            let denied = describe_tool_end(CallState::Denied, result);
            assert_eq!(denied.iter().map(StyledLine::to_text).collect::<Vec<_>>(), [said]);
        }
        assert!(describe(&Event::CopyDiscarded { files: 0 }).is_empty());
        assert_eq!(describe(&Event::CopyDiscarded { files: 1 }), ["discarded, with 1 changed file"]);
        assert_eq!(describe(&Event::CopyDiscarded { files: 2 }), ["discarded, with 2 changed files"]);
    }

    #[test]
    fn the_tools_of_another_cli_have_a_line_each() {
        let event = |kind: &str, data| Event::ToolCustomEvent {
            call: journeyman_protocol::CallId::new("c"),
            tool: DELEGATE_TOOL.to_owned(),
            kind: kind.to_owned(),
            data,
        };
        let start = serde_json::json!({ "tool": "Bash", "summary": "make\u{1b}[31m test" });
        assert_eq!(describe(&event("tool_start", start)), ["  • Bash make test"]);
        let end = |failed| serde_json::json!({ "failed": failed, "output": "no rule\nto make" });
        assert_eq!(describe(&event("tool_end", end(true))), ["    failed: no rule …"]);
        for (kind, data) in [("tool_end", end(false)), ("unknown", serde_json::json!({ "line": "x" }))] {
            assert!(describe(&event(kind, data)).is_empty());
        }
    }

    fn ended(state: CallState, preview: &str, output_lines: u64) -> Event {
        let (call, tool) = (journeyman_protocol::CallId::new("c"), "run_command".to_owned());
        let (preview, output_lines) = (preview.to_owned(), Some(output_lines));
        Event::ToolEnd { call, tool, state, preview, duration_ms: 1, output_lines }
    }

    #[test]
    fn a_successful_command_says_how_much_it_printed() {
        let said = |preview: &str, lines| describe(&ended(CallState::Completed, preview, lines));
        assert!(said("exit code 0, no output\n", 0).is_empty());
        assert_eq!(said("exit code 0\nhello\n", 1), ["    hello"]);
        let text = "exit code 0\none\n… 9 bytes left out …\n1200\n\n[files changed: a (added)]\n";
        assert_eq!(said(text, 1_200), ["    1,200 lines; last: 1200"]);
    }

    #[test]
    fn a_failed_command_shows_its_end() {
        let output: String = (1..=30).map(|number| format!("{number}\n\n")).collect();
        let event = ended(CallState::Failed, &format!("exit code 2\n{output}"), 60);
        let said = describe(&event);
        assert_eq!(said[..3], ["  failed: exit code 2", "    … 50 lines before", "    21"]);
        assert_eq!(said.last().unwrap(), "    30");
        assert_eq!(
            describe(&ended(CallState::Failed, "exit code 1\nno\n", 1)),
            ["  failed: exit code 1", "    no"]
        );
        let whole: Vec<String> = describe_output(&event).unwrap().iter().map(StyledLine::to_text).collect();
        assert_eq!(whole.len(), 1 + 2 * MAX_OUTPUT_LINES + 2, "{whole:?}");
        assert!(whole.last().unwrap().contains("jm export"), "{whole:?}");
    }

    #[test]
    fn a_failed_test_has_its_name() {
        let shown = |path: Option<&str>, message: &str| {
            let path = path.map(|path| journeyman_protocol::RelPath::parse(path).unwrap());
            let failed = Diagnostic {
                line: path.as_ref().map(|_| 3),
                path,
                test: Some("adds".to_owned()),
                ..Diagnostic::new(journeyman_protocol::Severity::Error, message)
            };
            describe_diagnostic(&failed).to_text()
        };
        assert_eq!(shown(None, "exit status 1"), "    adds: exit status 1");
        assert_eq!(shown(Some("a.c"), "1 is not 2"), "    a.c:3: adds: 1 is not 2");
        assert_eq!(shown(None, "the test `adds` fails"), "    the test `adds` fails");
    }

    #[test]
    fn long_lists_are_cut() {
        let listed = describe_first_items(&[1, 2, 3, 4, 5, 6], |number: &i32| note_line(number.to_string()));
        let listed: Vec<String> = listed.iter().map(StyledLine::to_text).collect();
        assert_eq!(listed, ["1", "2", "3", "4", "  … and 2 more"]);
    }
}
