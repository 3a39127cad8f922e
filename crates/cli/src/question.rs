//! The questions of a run: one after the other before the person at the terminal, until each is answered or gone.

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

use crate::edge::now;
use crate::{color, prompt};

/// A call that somebody has to decide about.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) call: CallId,
    pub(crate) summary: String,
    pub(crate) input: Value,
    pub(crate) verdict: Verdict,
    /// What «always» would allow; absent where that isn't offered.
    pub(crate) rules: Option<Rules>,
}

/// The open questions, the one that is shown first.
#[derive(Default)]
pub(crate) struct Questions {
    open: VecDeque<Asked>,
    /// Whether the first one is before the person's eyes.
    shown: bool,
    keyboard: Keyboard,
    /// Where what is allowed for good is written; nowhere, where there is no place for it.
    config_dir: Option<PathBuf>,
}

/// An answer, and whether it is for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) answer: Answer,
    pub(crate) kept: Kept,
}

/// How long a rule holds that an answer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// As long as the session.
    Session,
    /// From now on: it goes into the user's `policy.toml`.
    Forever,
}

impl From<Answer> for Said {
    fn from(answer: Answer) -> Self {
        Self { answer, kept: Kept::Session }
    }
}

impl Questions {
    /// `config_dir`: that of the user's configuration.
    pub(crate) fn new(config_dir: Option<PathBuf>) -> Self {
        Self { config_dir, ..Self::default() }
    }

    /// Takes note of an event; true where it asks, or answers what was asked here.
    pub(crate) fn heed(&mut self, event: &Event) -> bool {
        match event {
            Event::PermissionRequired { call, summary, input, verdict, rule, .. } => {
                self.open.push_back(Asked {
                    call: call.clone(),
                    summary: summary.clone(),
                    input: input.clone(),
                    verdict: verdict.clone(),
                    // What can't be read can't be agreed to.
                    rules: rule.as_ref().and_then(|text| Rules::parse(text, Layer::Session, "").ok()),
                });
                true
            }
            // By a rule, a time-out, an interrupt: nobody has to answer it any more.
            Event::PermissionDecided { call, .. } => self.forget(call),
            _ => false,
        }
    }

    /// Writes rules into the user's own file. They hold in this session either way.
    fn keep(&self, rules: &Rules) {
        let Some(dir) = &self.config_dir else { return };
        match keep_rules(dir, rules, &now().to_date()) {
            Ok(path) => tell!("  {}", color::stderr().dim(&format!("written to {}", path.display()))),
            Err(error) => {
                let text = clean(format!("it holds in this session only: {error}").as_bytes());
                tell!("  {} {text}", color::stderr().yellow("not written:"));
            }
        }
    }

    fn forget(&mut self, call: &CallId) -> bool {
        let Some(place) = self.open.iter().position(|asked| asked.call == *call) else { return false };
        self.open.remove(place);
        if place == 0 && self.shown {
            self.shown = false;
            // What follows begins a line of its own.
            tell!();
        }
        true
    }

    /// The answer to the first question; pending for ever while there is none. Safe to drop and call again.
    pub(crate) async fn answered(&mut self) -> (CallId, Answer) {
        let Some(asked) = self.open.front() else { return std::future::pending().await };
        let Said { answer, kept } = loop {
            if !self.shown {
                // A line that was typed for an earlier one is no answer to it.
                self.keyboard.forget();
                match prompt::show(color::stderr(), asked) {
                    Some(refused) => break refused.into(),
                    None => self.shown = true,
                }
            }
            match self.keyboard.line().await {
                Ok(line) => match prompt::answer(color::stderr(), asked, &line) {
                    Some(answer) => break answer,
                    None => prompt::offer(color::stderr(), asked),
                },
                Err(_) => {
                    break Answer::Deny { note: Some("the terminal could not be read".to_owned()) }.into();
                }
            }
        };
        let (call, rules) = (asked.call.clone(), asked.rules.clone());
        self.open.pop_front();
        self.shown = false;
        if matches!(answer, Answer::AllowRule { .. }) {
            // The session answers them with this one, and must not be overtaken by another look at them.
            self.open.retain(|asked| asked.rules != rules);
            if let (Kept::Forever, Some(rules)) = (kept, &rules) {
                self.keep(rules);
            }
        }
        (call, answer)
    }
}

/// Lines that the person types, each read only when it is wanted. A read of a terminal can't be taken back, so it is
/// done by a thread of its own; a line that comes when nobody waits for it any more goes to nobody.
#[derive(Default)]
struct Keyboard {
    ends: Option<(std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>)>,
    reading: bool,
}

impl Keyboard {
    /// The next line. Safe to drop and call again.
    async fn line(&mut self) -> io::Result<String> {
        let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed");
        let (want, lines) = self.ends.get_or_insert_with(listen);
        if !self.reading {
            want.send(()).map_err(|_| gone())?;
            self.reading = true;
        }
        let line = lines.recv().await;
        self.reading = false;
        line.unwrap_or_else(|| Err(gone()))
    }

    /// Forgets a line that was typed for an earlier question.
    fn forget(&mut self) {
        if let Some((_, lines)) = &mut self.ends
            && lines.try_recv().is_ok()
        {
            self.reading = false;
        }
    }
}

fn listen() -> (std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>) {
    let (want, wanted) = std::sync::mpsc::channel();
    let (tell, lines) = mpsc::unbounded_channel();
    // It ends with the process, or when nobody wants a line any more.
    std::thread::spawn(move || {
        while wanted.recv().is_ok() {
            if tell.send(prompt::read_line()).is_err() {
                break;
            }
        }
    });
    (want, lines)
}
