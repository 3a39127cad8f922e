//! A conversation played on a terminal in memory, without a session and without a clock.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_protocol::{
    AgentReport, AgentState, CallId, CallState, CheckKind, CheckOutcome, Decision, Enforcement, Envelope,
    Event, Evidence, FileChange, FileChangeKind, Level, Mode, RelPath, RunOutcome, RunReport, SandboxNeeds,
    SandboxTier, Seq, SessionId, StopReason, Termination, Tokens, UnixMillis, Usage, Verdict,
};
use journeyman_terminal::markdown::MarkerDisplay;
use serde_json::{Value, json};

use crate::blocks::{Detail, Layout, render_entries};
use crate::composer::Composer;
use crate::conversation_state::Conversation;
use crate::live_area::{LiveArea, StatusLineContext};
use crate::questions::{QuestionEffect, Questions};
use crate::screen::{Frame, Reflow, Screen, Size};
use crate::theme::{BackgroundBrightness, ColorDepth, Theme};

/// Rows of scrollback that the terminal keeps: more than any test fills.
const SCROLLBACK: usize = 100_000;

/// The player.
pub(crate) struct Player {
    pub(crate) conversation: Conversation,
    pub(crate) questions: Questions,
    pub(crate) composer: Composer,
    screen: Screen,
    pub(crate) terminal: vt100::Parser,
    committed: usize,
    seq: u64,
    pub(crate) now: Instant,
    /// Bytes that were written.
    pub(crate) written: usize,
    /// The rows of finished blocks, as they were rendered when they were finished.
    pub(crate) finished: Vec<String>,
}

impl Player {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let size = Size { columns, rows };
        let mut player = Self {
            conversation: Conversation::new(Instant::now()),
            questions: Questions::default(),
            composer: Composer::new(vec!["an earlier message".to_owned()]),
            screen: Screen::new(
                Theme::new(ColorDepth::Palette, BackgroundBrightness::Unknown),
                Reflow::Cuts,
                size,
            ),
            terminal: vt100::Parser::new(cells(rows), cells(columns), SCROLLBACK),
            committed: 0,
            seq: 0,
            now: Instant::now(),
            written: 0,
            finished: Vec::new(),
        };
        player.draw();
        player
    }

    /// Takes an event without drawing.
    pub(crate) fn take(&mut self, event: Event) {
        self.seq += 1;
        let seq = (!event.is_live_only()).then_some(Seq(self.seq));
        let session = SessionId::new(UnixMillis(0), 7);
        let envelope =
            Envelope { session, seq, at: UnixMillis(0), channel: event.channel(), agent: Vec::new(), event };
        self.take_envelope(&envelope);
    }

    /// Takes an event of the session or of one of its agents without drawing.
    pub(crate) fn take_envelope(&mut self, envelope: &Envelope) {
        self.conversation.apply(envelope, self.now);
        self.questions.handle_event(envelope, self.now);
        self.now += Duration::from_millis(40);
    }

    pub(crate) fn play(&mut self, events: impl IntoIterator<Item = Event>) -> &mut Self {
        for event in events {
            self.take(event);
            self.draw();
        }
        self
    }

    /// Plays events of agents beside those of the session itself.
    pub(crate) fn play_envelopes(&mut self, envelopes: impl IntoIterator<Item = Envelope>) {
        for envelope in envelopes {
            self.take_envelope(&envelope);
            self.draw();
        }
    }

    /// Lets time pass, as while nobody presses a key.
    pub(crate) fn wait(&mut self) {
        self.now += Duration::from_millis(500);
        self.draw();
    }

    pub(crate) fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        // Whoever presses a key has read the question.
        self.now += Duration::from_millis(500);
        self.press_at_once(code, modifiers);
    }

    pub(crate) fn press_at_once(&mut self, code: KeyCode, modifiers: KeyModifiers) -> QuestionEffect {
        let key = KeyEvent::new(code, modifiers);
        let mut effect = QuestionEffect::Ignored;
        if self.questions.takes_keys(&self.composer) {
            effect = self.questions.handle_key(key, self.now);
        }
        if matches!(effect, QuestionEffect::Ignored) {
            let was_at_rest = self.composer.is_at_rest();
            self.composer.handle_key(key, self.screen.size().columns);
            if !was_at_rest && self.composer.is_at_rest() {
                self.questions.delay_keys(self.now);
            }
        }
        self.draw();
        effect
    }

    pub(crate) fn draw(&mut self) {
        let size = self.screen.size();
        let layout = Layout { width: size.columns, marks: MarkerDisplay::Dropped, detail: Detail::Short };
        let entries = self.conversation.entries();
        let finished = render_entries(entries, self.committed, |_| layout).concat();
        self.committed = entries.len();
        self.finished.extend(finished.iter().map(|row| row.to_text().trim_end().to_owned()));
        let surroundings = StatusLineContext {
            model: "test/tiny".to_owned(),
            mode: "edit".to_owned(),
            branch: Some("main".to_owned()),
            window: Some(Tokens(100_000)),
            is_isolated: false,
            is_watched: false,
            extra: None,
        };
        let area = LiveArea {
            conversation: &self.conversation,
            questions: &self.questions,
            composer: &self.composer,
            completion: None,
            queued: &[],
            notice: None,
            surroundings: &surroundings,
            marks: MarkerDisplay::Dropped,
        };
        let (live, cursor) = area.render(size, self.now);
        let bytes = self.screen.draw(&Frame { finished, live, cursor });
        self.written += bytes.len();
        self.terminal.process(bytes.as_bytes());
    }

    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        self.terminal.screen_mut().set_size(cells(rows), cells(columns));
        let bytes = self.screen.resize(Size { columns, rows });
        self.terminal.process(bytes.as_bytes());
        self.draw();
    }

    /// The rows on the screen, without those at the end that are empty.
    pub(crate) fn screen(&self) -> Vec<String> {
        let (_, columns) = self.terminal.screen().size();
        let mut rows: Vec<String> =
            self.terminal.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// All rows, those of the scrollback first.
    pub(crate) fn all_rows(&mut self) -> Vec<String> {
        let (height, columns) = self.terminal.screen().size();
        self.terminal.screen_mut().set_scrollback(usize::MAX);
        let mut left = self.terminal.screen().scrollback();
        let mut rows = Vec::new();
        while left > 0 {
            self.terminal.screen_mut().set_scrollback(left);
            let take = left.min(usize::from(height.get()));
            rows.extend(
                self.terminal.screen().rows(0, columns.get()).take(take).map(|row| row.trim_end().to_owned()),
            );
            left -= take;
        }
        self.terminal.screen_mut().set_scrollback(0);
        rows.extend(self.screen());
        rows
    }
}

fn cells(count: usize) -> std::num::NonZero<u16> {
    u16::try_from(count).ok().and_then(std::num::NonZero::new).unwrap()
}

pub(crate) fn started(task: &str) -> Event {
    Event::RunStarted {
        prompts: None,
        task: task.to_owned(),
        root: "/project".to_owned(),
        model: "test/tiny".to_owned(),
        mode: Mode::Edit,
        enforcement: Some(enforcement()),
    }
}

fn enforcement() -> Enforcement {
    Enforcement::from_needs(SandboxTier::Namespaces, SandboxNeeds::ALL)
}

/// A reply that is streamed in pieces of `size` characters, and its record.
pub(crate) fn streamed(text: &str, size: usize) -> Vec<Event> {
    let characters: Vec<char> = text.chars().collect();
    let mut events = vec![Event::TurnStarted { turn: 1 }, Event::TextStart { block: 0 }];
    let mut offset = 0;
    for piece in characters.chunks(size.max(1)) {
        let text: String = piece.iter().collect();
        let length = text.len() as u64;
        events.push(Event::TextDelta { block: 0, offset, text });
        offset += length;
    }
    events.push(Event::TextEnd { block: 0, text: text.to_owned() });
    events.push(finished(text));
    events
}

pub(crate) fn finished(text: &str) -> Event {
    let usage = Usage { input: Tokens(1_200), output: Tokens(300), ..Usage::default() };
    Event::TurnFinished {
        turn: 1,
        stop: StopReason::EndTurn,
        usage,
        text: text.to_owned(),
        thinking: String::new(),
    }
}

pub(crate) fn call_started(call: &str, tool: &str, input: Value, summary: &str) -> Event {
    Event::ToolStart { call: CallId::new(call), tool: tool.to_owned(), input, summary: summary.to_owned() }
}

pub(crate) fn call_ended(
    call: &str,
    tool: &str,
    state: CallState,
    preview: &str,
    lines: Option<u64>,
) -> Event {
    Event::ToolEnd {
        call: CallId::new(call),
        tool: tool.to_owned(),
        state,
        preview: preview.to_owned(),
        duration_ms: 40,
        output_lines: lines,
    }
}

/// A command that ran, with its output.
pub(crate) fn command(call: &str, command: &str, output: &str) -> Vec<Event> {
    let lines = output.lines().count() as u64;
    vec![
        call_started(call, "run_command", json!({"command": command}), &format!("run {command}")),
        Event::ToolOutput { call: CallId::new(call), text: output.to_owned() },
        call_ended(call, "run_command", CallState::Completed, &format!("exit code 0\n{output}"), Some(lines)),
    ]
}

pub(crate) fn asked(call: &str, command: &str, destroys: Option<&str>) -> Event {
    Event::PermissionRequired {
        call: CallId::new(call),
        tool: "run_command".to_owned(),
        input: json!({"command": command}),
        summary: format!("run {command}"),
        verdict: Verdict {
            decision: Decision::Ask,
            level: Level::Shell,
            reason: "mode edit asks about commands of level 2".to_owned(),
            destroys: destroys.map(str::to_owned),
            rules: Vec::new(),
        },
        rule: Some(format!("[[rule]]\ncommand = ['{}']\ndecision = 'allow'", command.replace(' ', "', '"))),
        diff: None,
    }
}

pub(crate) fn decided(call: &str, allowed: bool) -> Event {
    Event::PermissionDecided { call: CallId::new(call), allowed, by: "user".to_owned(), note: None }
}

pub(crate) fn edited(call: &str, path: &str) -> Event {
    let change = FileChange { path: RelPath::parse(path).unwrap(), kind: FileChangeKind::Modified };
    Event::FileEdited { call: CallId::new(call), change, diff: None }
}

pub(crate) fn checked(command: &str, failure: Option<&str>) -> Vec<Event> {
    let outcome = match failure {
        None => CheckOutcome::Passed,
        Some(_) => CheckOutcome::Failed { exit_code: Some(101), reason: "exit code 101".to_owned() },
    };
    let evidence = Evidence {
        duration_ms: 1_500,
        enforcement: enforcement(),
        output: failure.unwrap_or_default().to_owned(),
        ..Evidence::new(CheckKind::Test, command, outcome)
    };
    vec![
        Event::VerifyStarted { checks: vec![command.to_owned()], round: 1 },
        Event::CheckStarted {
            kind: CheckKind::Test,
            command: command.to_owned(),
            directory: None,
            original_tests: false,
            before_task: false,
        },
        Event::CheckOutput { text: "running 3 tests\n".to_owned() },
        Event::CheckResult { evidence },
        Event::VerifyFinished { round: 1, passed: failure.is_none(), fed_back: failure.is_some() },
    ]
}

pub(crate) fn done(outcome: RunOutcome, summary: &str) -> Vec<Event> {
    let report = json!({
        "session": SessionId::new(UnixMillis(0), 7), "outcome": outcome, "exit_code": outcome.exit_code(),
        "summary": summary, "text": "", "changes": [], "diff": "", "evidence": [], "iterations": 0, "turns": 1,
        "usage": {"input": 1200, "output": 300}, "cost_usd": 0.0123, "model": "test/tiny", "undo": null,
        "duration_ms": 10,
    });
    let report: RunReport = serde_json::from_value(report).unwrap();
    vec![Event::Done { report: Box::new(report) }, Event::StateChanged { state: AgentState::Ready }]
}

/// An event of the session itself (`path` is empty) or of one of its agents, by its number.
pub(crate) fn of_agent(path: &[&str], session: u64, event: Event) -> Envelope {
    Envelope {
        session: SessionId::new(UnixMillis(0), session),
        seq: None,
        at: UnixMillis(0),
        channel: event.channel(),
        agent: path.iter().map(|name| (*name).to_owned()).collect(),
        event,
    }
}

pub(crate) fn agent_started(call: &str, child: u64, name: &str) -> Event {
    Event::AgentStarted {
        call: CallId::new(call),
        child: SessionId::new(UnixMillis(0), child),
        name: name.to_owned(),
        task: "find out".to_owned(),
        background: false,
    }
}

pub(crate) fn agent_finished(call: &str, child: u64, name: &str, termination: Termination) -> Event {
    Event::AgentFinished {
        call: CallId::new(call),
        child: SessionId::new(UnixMillis(0), child),
        report: AgentReport { name: name.to_owned(), termination, recovered: None, output: None },
        summary: "found".to_owned(),
        turns: 3,
        usage: Usage { input: Tokens(8_000), output: Tokens(100), ..Usage::default() },
        usd: Some(0.01),
        duration_ms: 12_300,
    }
}

pub(crate) fn tokens_used(input: u64) -> Event {
    Event::TokenUsage { turn: 1, usage: Usage { input: Tokens(input), ..Usage::default() } }
}

pub(crate) fn task_started(call: &str, agent: &str) -> Event {
    let summary = format!("task {agent}: find out how it is done");
    call_started(call, "task", json!({"agent": agent, "prompt": "find out how it is done"}), &summary)
}
