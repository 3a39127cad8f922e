//! Shows a session's activity in one line with the elapsed time.

use std::time::{Duration, Instant};

use journeyman_protocol::{CallId, Event, group_digits, label_check};

use crate::wrap::cut_line;
use crate::{Style, StyledLine};

/// Time that something takes before it is shown; shorter waits would only flicker.
const SHOW_DELAY: Duration = Duration::from_millis(300);
/// Time between two looks at output that arrives.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum bytes of output that are kept to find its newest line.
const MAX_OUTPUT_BYTES: usize = 2_000;
/// Maximum columns of a command, so that the newest line of its output is seen too.
const MAX_COMMAND_COLUMNS: usize = 40;

/// The present activity of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ActivityState {
    /// Nothing, or a person is asked.
    Nothing,
    /// It prepares the first request.
    Preparing,
    /// The model was asked and says nothing yet.
    Waiting,
    /// The model writes; the kind of its output.
    Writing(String),
    /// Tool calls run.
    Calls,
    /// A check runs: its place among the checks, and its command.
    Check(String),
}

/// Follows a session's events, and describes in one line what the session waits for.
#[derive(Debug)]
pub struct Activity {
    model: String,
    tokens: u64,
    doing: ActivityState,
    since: Instant,
    /// The calls that have not ended, in order, with what they do.
    calls: Vec<(CallId, String)>,
    checks: usize,
    checked: usize,
    output: String,
    has_new_output: bool,
}

impl Activity {
    /// Makes the activity of a session that does nothing yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            model: String::new(),
            tokens: 0,
            doing: ActivityState::Nothing,
            since: now,
            calls: Vec::new(),
            checks: 0,
            checked: 0,
            output: String::new(),
            has_new_output: false,
        }
    }

    /// Updates the activity with an event.
    pub fn handle_event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::RunStarted { model, .. } => {
                self.model.clone_from(model);
                self.tokens = 0;
                self.calls.clear();
                self.set_state(ActivityState::Preparing, now);
            }
            Event::TurnStarted { .. } | Event::Retry { .. } => self.set_state(ActivityState::Waiting, now),
            Event::TextDelta { .. } => self.begin_writing("an answer", now),
            Event::ThinkingDelta { .. } => self.begin_writing("thoughts", now),
            Event::CallDelta { tool, .. } => self.begin_writing(&format!("a call of {tool}"), now),
            Event::TurnFinished { .. } | Event::Done { .. } => {
                self.calls.clear();
                self.set_state(ActivityState::Nothing, now);
            }
            Event::Cost { usage, .. } => self.tokens = usage.total_input().0.saturating_add(usage.output.0),
            Event::ToolStart { call, tool, input, summary } => {
                self.calls.push((call.clone(), call_label(tool, input, summary)));
                if self.calls.len() == 1 {
                    self.set_state(ActivityState::Calls, now);
                }
            }
            Event::ToolEnd { call, .. } => {
                let was_first = self.calls.first().is_some_and(|(first, _)| first == call);
                self.calls.retain(|(open, _)| open != call);
                if was_first || self.calls.is_empty() {
                    let next =
                        if self.calls.is_empty() { ActivityState::Nothing } else { ActivityState::Calls };
                    self.set_state(next, now);
                }
            }
            Event::PermissionRequired { .. } => self.set_state(ActivityState::Nothing, now),
            Event::PermissionDecided { .. } => {
                let next = if self.calls.is_empty() { ActivityState::Nothing } else { ActivityState::Calls };
                self.set_state(next, now);
            }
            Event::VerifyStarted { checks, .. } => (self.checks, self.checked) = (checks.len(), 0),
            Event::CheckStarted { command, directory, .. } => {
                self.checked += 1;
                let command = label_check(command, directory.as_ref());
                let command =
                    format!("check {} of {}: {command}", self.checked, self.checks.max(self.checked));
                self.set_state(ActivityState::Check(command), now);
            }
            Event::CheckResult { .. } => self.set_state(ActivityState::Nothing, now),
            Event::ToolOutput { call, text } => {
                // The newest line is that of the call which is shown.
                if let Some(place) = self.calls.iter().position(|(open, _)| open == call) {
                    let running = self.calls.remove(place);
                    self.calls.insert(0, running);
                    self.push_output(text);
                }
            }
            Event::CheckOutput { text } => self.push_output(text),
            _ => {}
        }
    }

    /// Returns the line for this moment, or `None` if there is nothing to wait for.
    #[must_use]
    pub fn line(&self, now: Instant) -> Option<StyledLine> {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < SHOW_DELAY {
            return None;
        }
        let what = match &self.doing {
            ActivityState::Nothing => return None,
            ActivityState::Preparing => "preparing".to_owned(),
            ActivityState::Waiting => format!("waiting for {}", self.model),
            ActivityState::Writing(what) => format!("{} writes {what}", self.model),
            ActivityState::Calls => {
                let (_, what) = self.calls.first()?;
                let others = self.calls.len() - 1;
                let others = if others > 0 { format!(" (and {others} more)") } else { String::new() };
                format!("{}{others}", cut_command(what))
            }
            ActivityState::Check(command) => cut_command(command),
        };
        let mut text = format!("{what} · {}", format_elapsed(elapsed));
        if matches!(self.doing, ActivityState::Waiting | ActivityState::Writing(_)) && self.tokens > 0 {
            text.push_str(&format!(" · {} tokens so far", group_digits(self.tokens)));
        }
        if let Some(newest) = self.newest_output_line() {
            text.push_str(&format!(" · {newest}"));
        }
        Some(StyledLine::new(Style::Dim, text))
    }

    /// Returns the time since the present activity began, for people.
    #[must_use]
    pub fn elapsed(&self, now: Instant) -> String {
        format_elapsed(now.saturating_duration_since(self.since))
    }

    /// Returns the time until the line may change, or `None` if no line is shown.
    pub fn next_change(&mut self, now: Instant) -> Option<Duration> {
        if self.doing == ActivityState::Nothing {
            return None;
        }
        if std::mem::take(&mut self.has_new_output) {
            return Some(OUTPUT_INTERVAL);
        }
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < SHOW_DELAY {
            return Some(SHOW_DELAY - elapsed);
        }
        Some(Duration::from_millis(1_000 - u64::from(elapsed.subsec_millis())))
    }

    fn set_state(&mut self, doing: ActivityState, now: Instant) {
        (self.doing, self.since) = (doing, now);
        self.output.clear();
    }

    fn begin_writing(&mut self, what: &str, now: Instant) {
        if !matches!(&self.doing, ActivityState::Writing(before) if before == what) {
            self.set_state(ActivityState::Writing(what.to_owned()), now);
        }
    }

    fn push_output(&mut self, text: &str) {
        self.output.push_str(text);
        if let Some(excess) = self.output.len().checked_sub(MAX_OUTPUT_BYTES) {
            self.output.drain(..self.output.ceil_char_boundary(excess));
        }
        self.has_new_output = true;
    }

    fn newest_output_line(&self) -> Option<&str> {
        self.output.lines().rev().map(str::trim).find(|line| !line.is_empty())
    }
}

/// Labels a call: a command as typed, any other call by its summary.
fn call_label(tool: &str, input: &serde_json::Value, summary: &str) -> String {
    let command = input.get("command").and_then(serde_json::Value::as_str);
    match command.and_then(|command| command.lines().find(|line| !line.trim().is_empty())) {
        Some(line) if tool == "run_command" => format!("$ {}", line.trim()),
        _ => summary.to_owned(),
    }
}

fn cut_command(text: &str) -> String {
    cut_line(&StyledLine::new(Style::Plain, text), MAX_COMMAND_COLUMNS).to_text()
}

fn format_elapsed(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallState, CheckKind, Tokens, Usage};
    use serde_json::json;

    use super::*;

    /// Handles each event at its second, and returns the line half a second later.
    fn lines(events: &[(u64, Event)]) -> Vec<String> {
        let start = Instant::now();
        let mut activity = Activity::new(start);
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let line = |(second, event): &(u64, Event)| {
            activity.handle_event(event, at(*second));
            let line = activity.line(at(*second) + Duration::from_millis(500));
            line.map(|line| line.to_text()).unwrap_or_default()
        };
        events.iter().map(line).collect()
    }

    fn started(call: &str, command: &str) -> Event {
        Event::ToolStart {
            call: CallId::new(call),
            tool: "run_command".to_owned(),
            input: json!({ "command": command }),
            summary: format!("run {command}"),
        }
    }

    fn printed(call: &str, text: &str) -> Event {
        Event::ToolOutput { call: CallId::new(call), text: text.to_owned() }
    }

    #[test]
    fn waiting_for_the_model_is_said_with_its_tokens() {
        let usage = Usage { input: Tokens(3_000), output: Tokens(400), ..Usage::default() };
        let said = lines(&[
            (0, Event::TurnStarted { turn: 1 }),
            (12, Event::Cost { usage, usd: None }),
            (13, Event::CallDelta { block: 0, tool: "edit_file".to_owned() }),
        ]);
        assert_eq!(
            said,
            [
                "waiting for  · 0 s",
                "waiting for  · 12 s · 3,400 tokens so far",
                " writes a call of edit_file · 0 s · 3,400 tokens so far"
            ]
        );
    }

    #[test]
    fn a_command_is_shown_with_its_newest_line() {
        let ended = Event::ToolEnd {
            call: CallId::new("a"),
            tool: "run_command".to_owned(),
            state: CallState::Completed,
            preview: String::new(),
            duration_ms: 1,
            output_lines: None,
        };
        let said = lines(&[
            (0, started("a", "make test")),
            (0, started("b", "make lint")),
            (61, printed("a", "one\ntwo\nthr")),
            (62, printed("a", "ee\n\n")),
            (63, ended.clone()),
        ]);
        let expected = [
            "$ make test · 0 s",
            "$ make test (and 1 more) · 0 s",
            "$ make test (and 1 more) · 1 min 01 s · thr",
            "$ make test (and 1 more) · 1 min 02 s · three",
            "$ make lint · 0 s",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn checks_are_counted_and_an_end_is_silent() {
        let check = |command: &str| Event::CheckStarted {
            kind: CheckKind::Test,
            command: command.to_owned(),
            directory: None,
            original_tests: false,
            before_task: false,
        };
        let checks = vec!["cargo test".to_owned(), "cargo clippy".to_owned()];
        let said = lines(&[
            (0, Event::VerifyStarted { checks, round: 1 }),
            (0, check("cargo test")),
            (1, Event::CheckOutput { text: "running 3 tests\n".to_owned() }),
            (9, check("cargo clippy")),
            (
                10,
                Event::TurnFinished {
                    turn: 1,
                    stop: journeyman_protocol::StopReason::EndTurn,
                    usage: Usage::default(),
                    text: String::new(),
                    thinking: String::new(),
                },
            ),
        ]);
        assert_eq!(
            said,
            [
                "",
                "check 1 of 2: cargo test · 0 s",
                "check 1 of 2: cargo test · 1 s · running 3 tests",
                "check 2 of 2: cargo clippy · 0 s",
                ""
            ]
        );
    }

    #[test]
    fn short_waits_are_not_shown() {
        let now = Instant::now();
        let mut activity = Activity::new(now);
        assert_eq!(activity.next_change(now), None);
        activity.handle_event(&Event::TurnStarted { turn: 1 }, now);
        assert_eq!(activity.line(now), None);
        assert_eq!(activity.next_change(now), Some(SHOW_DELAY));
        let later = now + Duration::from_millis(1_200);
        assert_eq!(activity.next_change(later), Some(Duration::from_millis(800)));
    }
}
