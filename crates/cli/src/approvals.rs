//! Approvals at the terminal: questions about tool calls, asked one after the other.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use journeyman_agent::Answer;
use journeyman_host::config::keep_rules;
use journeyman_policy::{Layer, Rules};
use journeyman_protocol::{CallId, Event, Verdict};
use journeyman_sandbox::clean;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{color, prompt};
use journeyman_host::state::now;

/// A tool call that a person has to decide about.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalRequest {
    pub(crate) call: CallId,
    pub(crate) summary: String,
    pub(crate) input: Value,
    pub(crate) verdict: Verdict,
    /// The rules that "always" would add; `None` where that isn't offered.
    pub(crate) rules: Option<Rules>,
}

/// The open requests, with the one that is shown first.
#[derive(Default)]
pub(crate) struct Approvals {
    open: VecDeque<ApprovalRequest>,
    /// True while the first request is on the screen.
    is_shown: bool,
    keyboard: Keyboard,
    /// The directory of the user's configuration, where rules that are allowed for good are
    /// written.
    config_dir: Option<PathBuf>,
}

/// An answer, and how long the rule that it makes holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) scope: RuleScope,
}

/// How long a rule that an answer makes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleScope {
    /// Until the session ends.
    Session,
    /// In every session of the user: the rule is written into their `policy.toml`.
    Forever,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, scope: RuleScope::Session }
    }
}

impl Approvals {
    pub(crate) fn new(config_dir: Option<PathBuf>) -> Self {
        Self { config_dir, ..Self::default() }
    }

    /// Adds the request of an event, or removes one that is decided. Returns true if the screen
    /// changes.
    pub(crate) fn handle_event(&mut self, event: &Event) -> bool {
        match event {
            Event::PermissionRequired { call, summary, input, verdict, rule, .. } => {
                self.open.push_back(ApprovalRequest {
                    call: call.clone(),
                    summary: summary.clone(),
                    input: input.clone(),
                    verdict: verdict.clone(),
                    // Nobody can agree to rules that can't be read.
                    rules: rule
                        .as_ref()
                        .and_then(|text| Rules::parse_with_tools(text, Layer::Session, "", &|_| true).ok()),
                });
                true
            }
            // By a rule, a time-out or an interrupt.
            Event::PermissionDecided { call, .. } => self.remove(call),
            _ => false,
        }
    }

    /// Writes rules into the user's `policy.toml`. They hold in this session either way.
    fn write_rules(&self, rules: &Rules) {
        let Some(dir) = &self.config_dir else { return };
        match keep_rules(dir, rules, &now().to_date()) {
            Ok(path) => tell!("  {}", color::stderr().dim(&format!("written to {}", path.display()))),
            Err(error) => {
                let text = clean(format!("it holds in this session only: {error}").as_bytes());
                tell!("  {} {text}", color::stderr().yellow("not written:"));
            }
        }
    }

    fn remove(&mut self, call: &CallId) -> bool {
        let Some(place) = self.open.iter().position(|request| request.call == *call) else { return false };
        self.open.remove(place);
        if place == 0 && self.is_shown {
            self.is_shown = false;
            tell!();
        }
        true
    }

    /// Waits for the answer to the first request, forever while there is none. Cancel-safe.
    pub(crate) async fn next_answer(&mut self) -> (CallId, Answer) {
        let Some(request) = self.open.front() else { return std::future::pending().await };
        let Reply { answer, scope } = loop {
            if !self.is_shown {
                // A line that was typed for an earlier request is no answer to this one.
                self.keyboard.drop_line();
                match prompt::show(color::stderr(), request) {
                    Some(refusal) => break refusal.into(),
                    None => self.is_shown = true,
                }
            }
            match self.keyboard.next_line().await {
                Ok(line) => match prompt::parse_answer(color::stderr(), request, &line) {
                    Some(answer) => break answer,
                    None => prompt::show_choices(color::stderr(), request),
                },
                Err(_) => {
                    break Answer::Deny { note: Some("the terminal could not be read".to_owned()) }.into();
                }
            }
        };
        let (call, rules) = (request.call.clone(), request.rules.clone());
        self.open.pop_front();
        self.is_shown = false;
        if matches!(answer, Answer::AllowRule { .. }) {
            // The session decides the same requests by the new rule; they must not be asked again
            // before that.
            self.open.retain(|request| request.rules != rules);
            if let (RuleScope::Forever, Some(rules)) = (scope, &rules) {
                self.write_rules(rules);
            }
        }
        (call, answer)
    }
}

/// Lines that the person types, each read on request. A read of a terminal can't be cancelled, so a
/// thread of its own does it; a line that arrives when no request waits for it is dropped.
#[derive(Default)]
struct Keyboard {
    channels: Option<(std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>)>,
    is_reading: bool,
}

impl Keyboard {
    /// Waits for the next line. Cancel-safe.
    async fn next_line(&mut self) -> io::Result<String> {
        let closed = || io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed");
        let (requests, lines) = self.channels.get_or_insert_with(spawn_reader);
        if !self.is_reading {
            requests.send(()).map_err(|_| closed())?;
            self.is_reading = true;
        }
        let line = lines.recv().await;
        self.is_reading = false;
        line.unwrap_or_else(|| Err(closed()))
    }

    /// Drops a line that was typed for an earlier request.
    fn drop_line(&mut self) {
        if let Some((_, lines)) = &mut self.channels
            && lines.try_recv().is_ok()
        {
            self.is_reading = false;
        }
    }
}

fn spawn_reader() -> (std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>) {
    let (requests, requested) = std::sync::mpsc::channel();
    let (sender, lines) = mpsc::unbounded_channel();
    // The thread ends with the process, or when its receiver is dropped.
    std::thread::spawn(move || {
        while requested.recv().is_ok() {
            if sender.send(prompt::read_line()).is_err() {
                break;
            }
        }
    });
    (requests, lines)
}
