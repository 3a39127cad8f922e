//! Progress, on standard error, as a person follows it.

use std::collections::HashMap;
use std::io::Write as _;

use journeyman_protocol::{
    CallId, CallState, CheckOutcome, ErrorSeverity, Event, Evidence, FileChangeKind, FileConflict,
    ReminderCategory, ResumeStrategy, Todo, TodoStatus, UnavailableTier,
};

use crate::color::Paint;
use crate::text::{printable, quantity, seconds};

/// Lines of a finished tool's result that are shown.
const PREVIEW_LINES: usize = 4;
/// Characters of a shown line.
const LINE_WIDTH: usize = 160;

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stderr,
    Stdout,
    Nowhere,
}

/// Draws events as lines. Everything from outside is cleaned of control sequences first.
pub(crate) struct Renderer {
    paint: Paint,
    stream: Stream,
    mid_line: bool,
    streamed: bool,
    /// The prefix of each line where several sessions are shown; nothing is streamed then.
    prefix: Option<String>,
    /// Summaries of the calls that await a decision.
    asked: HashMap<CallId, String>,
}

impl Renderer {
    pub(crate) fn new(paint: Paint, quiet: bool) -> Self {
        let stream = if quiet { Stream::Nowhere } else { Stream::Stderr };
        Self { paint, stream, mid_line: false, streamed: false, prefix: None, asked: HashMap::new() }
    }

    /// One of several sessions that are shown together.
    pub(crate) fn numbered(paint: Paint, quiet: bool, number: u32) -> Self {
        Self { prefix: Some(paint.dim(&format!("[{number}] "))), ..Self::new(paint, quiet) }
    }

    /// For `jm show`, where the events are the result.
    pub(crate) fn to_stdout(paint: Paint) -> Self {
        Self { stream: Stream::Stdout, ..Self::new(paint, false) }
    }

    /// A line of our own.
    pub(crate) fn note(&mut self, text: &str) {
        self.line(&self.paint.yellow(text));
    }

    /// Closes an open line.
    pub(crate) fn end(&mut self) {
        if self.mid_line {
            self.write("\n");
        }
    }

    pub(crate) fn show(&mut self, event: &Event) {
        let paint = self.paint;
        match event {
            Event::RunStarted { model, mode, .. } => {
                let head = paint.bold("journeyman");
                self.line(&format!("{head}  {model}  mode {mode}"));
            }
            Event::ContextPacked { tokens, files_listed, instructions, files } => {
                let names: Vec<String> = instructions.iter().chain(files).map(ToString::to_string).collect();
                let with =
                    if names.is_empty() { String::new() } else { format!(", with {}", names.join(", ")) };
                let files = quantity(files_listed, "file");
                self.line(&paint.dim(&format!("context: about {tokens} tokens, {files} listed{with}")));
            }
            Event::TurnStarted { .. } => self.streamed = false,
            Event::TextDelta { text, .. } => {
                self.streamed = true;
                self.text(&printable(&text));
            }
            Event::ThinkingDelta { text, .. } => {
                let text = printable(&text);
                self.text(&paint.dim(&text));
            }
            Event::TurnFinished { text, .. } => {
                if !self.streamed && !text.trim().is_empty() {
                    self.text(&printable(&text));
                }
                self.end();
            }
            Event::Retry { attempt, of, wait_ms, reason } => {
                let text = format!("{reason}; attempt {attempt} of {of} in {}", seconds(*wait_ms));
                self.note(&printable(&text));
            }
            Event::ToolStart { summary, .. } => {
                let summary = cut(&printable(&summary));
                self.line(&format!("{} {summary}", paint.cyan("●")));
            }
            Event::ToolEnd { state, preview, .. } => self.tool_end(*state, preview),
            Event::FileEdited { change, .. } => {
                self.line(&format!("  {} {}", paint.green("✎"), change.path));
            }
            Event::VerifyStarted { checks, round } => {
                let list = cut(&printable(&checks.join(" · ")));
                self.line(&format!("{} round {round}: {list}", paint.bold("verifying")));
            }
            Event::CheckStarted { command, .. } => {
                self.line(&paint.dim(&format!("  $ {}", cut(&printable(&command)))));
            }
            Event::CheckResult { evidence } => self.check(evidence),
            Event::VerifyFinished { fed_back: true, .. } => {
                self.line(&paint.yellow("  the failures go back to the model"));
            }
            Event::Warning { message } => self.note(&printable(&message)),
            Event::Error { severity, message, .. } => self.problem(*severity, message),
            other => self.aside(other),
        }
    }

    fn problem(&mut self, severity: ErrorSeverity, message: &str) {
        let message = printable(&message);
        match severity {
            ErrorSeverity::Error => self.line(&format!("{} {message}", self.paint.red("error:"))),
            ErrorSeverity::Warn => self.line(&format!("{} {message}", self.paint.yellow("warning:"))),
            ErrorSeverity::Info => self.note(&message),
        }
    }

    /// Shows events beside the turns. The events that are left out are for audits, or repeat
    /// another event.
    fn aside(&mut self, event: &Event) {
        let paint = self.paint;
        match event {
            Event::Isolated { .. }
            | Event::CopyRefreshed { .. }
            | Event::Landed { copy: Some(_), .. }
            | Event::CopyKept { .. }
            | Event::CopyDiscarded { .. }
            | Event::Committed { .. }
            | Event::CandidatesStarted { .. } => self.show_copy(event),
            Event::Done { report } if self.prefix.is_some() => self.line(&printable(&report.summary)),
            Event::AgentResumed { strategy, interrupted, changed } => {
                self.resumed(*strategy, interrupted.len(), changed)
            }
            Event::PermissionRequired { call, summary, .. } => {
                let summary = cut(&printable(&summary));
                // Where it is asked, the question itself is shown.
                if self.stream == Stream::Stdout {
                    self.line(&format!("  {} {summary}", paint.yellow("asked:")));
                }
                self.asked.insert(call.clone(), summary);
            }
            Event::PermissionDecided { call, allowed, by, note } => {
                let summary = self.asked.remove(call).unwrap_or_default();
                // Where it was asked, the person has just said so.
                if self.stream == Stream::Stdout || by == "timeout" {
                    let what = if *allowed { paint.green("allowed") } else { paint.red("denied") };
                    let note = note.as_ref().map(|note| format!(" (\"{note}\")")).unwrap_or_default();
                    let by = cut(&printable(&format_args!("by {by}{note}")));
                    self.line(&format!("  {what} {by}: {summary}"));
                }
            }
            Event::GuardViolated { violations, .. } => {
                for one in violations.iter().take(PREVIEW_LINES) {
                    self.problem(ErrorSeverity::Error, &one.to_string());
                }
                if violations.len() > PREVIEW_LINES {
                    self.note(&format!("  … and {} more", violations.len() - PREVIEW_LINES));
                }
            }
            Event::TodoChanged { current, .. } => self.todos(current),
            Event::FileChanged { change } => {
                let how = match change.kind {
                    FileChangeKind::Added => "added",
                    FileChangeKind::Modified => "changed",
                    FileChangeKind::Deleted => "removed",
                };
                self.note(&format!("  {} was {how} by somebody else; the model is told", change.path));
            }
            Event::ReminderSent { category: ReminderCategory::Progress, .. } => {
                self.note("  the run goes in circles; the model is told");
            }

            Event::StorageFailure { message, waiting } => {
                let text = format!("the session log takes nothing ({message}); {waiting} entries wait");
                self.note(&printable(&text));
            }
            _ => {}
        }
    }

    /// Shows an event about the copy that a session works in.
    fn show_copy(&mut self, event: &Event) {
        let paint = self.paint;
        match event {
            Event::Isolated { tier, unavailable, reopened } => {
                let again = if *reopened { ", opened again" } else { "" };
                self.line(&format!(
                    "{}  works in a copy of the project ({tier}{again})",
                    paint.bold("isolated")
                ));
                for UnavailableTier { tier, reason } in unavailable {
                    let text = printable(&format_args!("  no {tier}: {reason}"));
                    self.line(&paint.dim(&cut(&text)));
                }
            }
            Event::CopyRefreshed { taken, merged, conflicts } => {
                for (paths, how) in [
                    (taken, "taken over from your files"),
                    (merged, "merged with your own changes"),
                    (conflicts, "doesn't go together with your own changes"),
                ] {
                    for path in paths.iter().take(PREVIEW_LINES) {
                        self.note(&format!("  {path}: {how}; the model is told"));
                    }
                    if paths.len() > PREVIEW_LINES {
                        self.note(&format!("  … and {} more", paths.len() - PREVIEW_LINES));
                    }
                }
            }
            Event::Landed { changes, copy: Some(copy) } => {
                let merged = match copy.merged.len() {
                    0 => String::new(),
                    some => format!(", {some} of them merged with your own changes"),
                };
                let files = quantity(changes.len(), "file");
                self.line(&format!("{}  {files}{merged}", paint.green("landed")));
            }
            Event::CopyKept { reason, conflicts } => {
                self.note(&cut(&printable(&format_args!("kept in its copy: {reason}"))));
                for FileConflict { path, reason } in conflicts.iter().take(PREVIEW_LINES) {
                    self.note(&cut(&printable(&format_args!("  {path}: {reason}"))));
                }
            }
            Event::CopyDiscarded { files: 0 } => {
                self.line(&paint.dim("nothing was changed in the copy; it is gone"))
            }
            Event::CopyDiscarded { files } => self.note(&format!("discarded, with {files} changed files")),
            Event::Committed { commit } => {
                let on = commit.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
                let short = commit.id.get(..10).unwrap_or(&commit.id);
                let text = format!("{short}{on}: {}", commit.subject);
                self.line(&format!("{}  {}", paint.green("committed"), cut(&printable(&text))));
            }
            Event::CandidatesStarted { sessions } => {
                self.line(&format!(
                    "{}  {} sessions, each in a copy",
                    paint.bold("candidates"),
                    sessions.len()
                ));
            }
            _ => {}
        }
    }

    fn resumed(&mut self, strategy: ResumeStrategy, interrupted: usize, changed: &[String]) {
        let paint = self.paint;
        if strategy == ResumeStrategy::Crash {
            let how = match interrupted {
                0 => "its task was cut off; no call was running".to_owned(),
                1 => "its task was cut off, and one call with it".to_owned(),
                many => format!("its task was cut off, and {many} calls with it"),
            };
            self.line(&format!("{}  {how}", paint.bold("opened again")));
        }
        for what in changed {
            self.note(&format!("  other than before: {}", printable(&what)));
        }
    }

    /// Shows the progress of the todo list, and the item in work.
    fn todos(&mut self, todos: &[Todo]) {
        let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
        let now = todos.iter().find(|todo| todo.status == TodoStatus::InProgress);
        let now = now.map(|todo| format!(": {}", todo.title)).unwrap_or_default();
        let text = match todos.len() {
            0 => "todos: none".to_owned(),
            all => format!("todos: {done} of {all} done{now}"),
        };
        self.line(&self.paint.dim(&format!("  {}", cut(&printable(&text)))));
    }

    fn tool_end(&mut self, state: CallState, preview: &str) {
        let mark = match state {
            CallState::Completed => return,
            CallState::Denied => "denied",
            CallState::Interrupted => "cut off",
            _ => "failed",
        };
        let text = printable(&preview);
        self.line(&format!("  {}", self.paint.red(mark)));
        for line in text.lines().filter(|line| !line.trim().is_empty()).take(PREVIEW_LINES) {
            self.line(&self.paint.dim(&format!("    {}", cut(line))));
        }
    }

    fn check(&mut self, evidence: &Evidence) {
        let paint = self.paint;
        let command = printable(&evidence.command);
        let took = seconds(evidence.duration_ms);
        match &evidence.outcome {
            CheckOutcome::Passed => {
                self.line(&format!("  {} {} ({took})", paint.green("✓"), command));
            }
            CheckOutcome::Failed { reason, .. } => {
                let reason = printable(&reason);
                self.line(&format!("  {} {command}: {reason} ({took})", paint.red("✗")));
                for diagnostic in evidence.diagnostics.iter().take(PREVIEW_LINES) {
                    let place = diagnostic.path.as_ref().map(|path| match diagnostic.line {
                        Some(line) => format!("{path}:{line}: "),
                        None => format!("{path}: "),
                    });
                    let text = format!("{}{}", place.unwrap_or_default(), diagnostic.message);
                    self.line(&paint.dim(&format!("    {}", cut(&printable(&text)))));
                }
            }
            CheckOutcome::NotRun { reason } => {
                let reason = printable(&reason);
                self.line(&format!("  {} {command}: not run: {reason}", paint.yellow("–")));
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.end();
        let prefix = self.prefix.clone().unwrap_or_default();
        self.write(&format!("{prefix}{text}\n"));
    }

    fn text(&mut self, text: &str) {
        // Words of several would run into each other; each has them in its log.
        if self.prefix.is_none() {
            self.write(text);
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.mid_line = !text.ends_with('\n');
        // Progress that nobody can see any more must not stop the work.
        match self.stream {
            Stream::Stderr => std::io::stderr().write_all(text.as_bytes()).ok(),
            Stream::Stdout => std::io::stdout().write_all(text.as_bytes()).ok(),
            Stream::Nowhere => None,
        };
    }
}

/// The first line of a text, bounded.
fn cut(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let more = lines.next().is_some();
    match first.char_indices().nth(LINE_WIDTH) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None if more => format!("{first} …"),
        None => first.to_owned(),
    }
}
