//! Approvals at the terminal: questions about tool calls, asked one after the other.

use std::io;
use std::path::PathBuf;

use journeyman_agent::PermissionAnswer;
use journeyman_host::approvals::{
    AnsweredRequest, ApprovalQueue, ApprovalReply, ApprovalRequest, InvalidAnswer,
};
use journeyman_host::format::printable;
use journeyman_protocol::{CallId, Envelope};
use journeyman_terminal::StyledLine;
use tokio::sync::mpsc;

use crate::color::{self, Paint};
use crate::terminal_prompts;

/// The open requests, and the keyboard that answers them.
pub(crate) struct ApprovalPrompter {
    queue: ApprovalQueue,
    /// The call whose question is on the screen.
    shown: Option<CallId>,
    /// The answer to a request that is too long to be shown.
    refusal: Option<PermissionAnswer>,
    keyboard: Keyboard,
}

impl ApprovalPrompter {
    pub(crate) fn new(config_dir: Option<PathBuf>) -> Self {
        let (queue, keyboard) = (ApprovalQueue::new(config_dir), Keyboard::default());
        Self { queue, shown: None, refusal: None, keyboard }
    }

    /// Adds the request of an event, or removes one that is decided.
    pub(crate) fn handle_event(&mut self, envelope: &Envelope) {
        self.queue.handle_event(envelope);
        if self.shown.is_some() && self.queue.first().map(|request| &request.call) != self.shown.as_ref() {
            self.shown = None;
            errln!();
        }
    }

    /// Returns true if a question is on the screen.
    pub(crate) fn is_asking(&self) -> bool {
        self.shown.is_some()
    }

    /// Shows the question of the first request, unless it is on the screen.
    pub(crate) fn show_next(&mut self) {
        if let Some(request) = self.queue.first().filter(|_| self.shown.is_none()) {
            // A line that was typed for an earlier request is no answer to this one.
            self.keyboard.drop_line();
            self.refusal = show_request(color::stderr_paint(), request);
            self.shown = self.refusal.is_none().then(|| request.call.clone());
        }
    }

    /// Waits for the answer to the first request, forever while there is none. Cancel-safe.
    pub(crate) async fn next_answer(&mut self) -> (CallId, PermissionAnswer) {
        self.show_next();
        let Some(request) = self.queue.first() else { return std::future::pending().await };
        let paint = color::stderr_paint();
        let reply: ApprovalReply = loop {
            if let Some(refusal) = self.refusal.take() {
                break refusal.into();
            }
            let line = self.keyboard.next_line().await;
            journeyman_terminal::stderr_screen().note_line_end();
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    errln!();
                    break PermissionAnswer::NoAnswer {
                        reason: terminal_prompts::describe_read_error(&error),
                    }
                    .into();
                }
            };
            match request.parse_answer(&line) {
                Ok(reply) => break reply,
                Err(InvalidAnswer::NoRule) => errln!("  {}", paint.yellow("this is asked about every time")),
                Err(InvalidAnswer::RestOfDiff) => write_diff(&request.diff_lines().1),
                Err(InvalidAnswer::Empty) => {}
            }
            show_choices(paint, request);
        };
        self.shown = None;
        let Some(AnsweredRequest { call, answer, rule_file }) = self.queue.answer_first(reply) else {
            return std::future::pending().await;
        };
        match rule_file {
            Some(Ok(path)) => errln!("  {}", paint.dim(&format!("written to {}", path.display()))),
            Some(Err(error)) => {
                let text = printable(&format_args!("it holds in this session only: {error}"));
                errln!("  {} {text}", paint.yellow("not written:"));
            }
            None => {}
        }
        (call, answer)
    }
}

/// Shows a call and the possible answers. Returns a denial for a call that is too long to be
/// reviewed.
fn show_request(paint: Paint, request: &ApprovalRequest) -> Option<PermissionAnswer> {
    let whole = match request.full_arguments() {
        Ok(whole) => whole,
        Err(refusal) => return Some(refusal),
    };
    terminal_prompts::drop_typed_lines();
    journeyman_terminal::stderr_screen().end_line();
    errln!();
    if let Some(question) = request.model_question() {
        let asker = match &request.agent {
            Some(agent) => format!("The agent {agent} asks:"),
            None => "The model asks:".to_owned(),
        };
        errln!("{} {}", paint.yellow(&asker), question.text);
        for (place, option) in question.options.iter().enumerate() {
            errln!("  {} {option}", paint.bold(&format!("[{}]", place + 1)));
        }
        show_choices(paint, request);
        return None;
    }
    if let Some(agent) = &request.agent {
        errln!("{} {agent}", paint.yellow("The agent asks:"));
    }
    if request.is_edit() {
        let path = request.input.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
        errln!("{} {}", paint.yellow("May I make this change?"), paint.bold(&printable(path)));
    } else {
        errln!("{}", paint.yellow("May I run this?"));
        terminal_prompts::show_quoted(paint, &whole);
    }
    let (diff, rest) = request.diff_lines();
    write_diff(&diff);
    if !rest.is_empty() {
        errln!("  {}", paint.dim(&format!("… {} more lines: [d] shows the whole", rest.len())));
    }
    errln!("  {} {}", paint.dim("why it asks:"), printable(&request.verdict.reason));
    // The reason may say it already.
    if let Some(lost) =
        request.verdict.destroys.as_ref().filter(|lost| !request.verdict.reason.contains(*lost))
    {
        errln!("  {} {}", paint.red("would be lost:"), printable(&lost));
    }
    if let Some(rules) = &request.rules {
        let rules: Vec<String> = rules.iter().map(|(_, rule)| rule.to_string()).collect();
        let rules = printable(&rules.join("\n")).replace('\n', "\n    ");
        errln!("  {} {rules}", paint.dim("\"always\" would allow, in this session:"));
        errln!(
            "  {}",
            paint.dim("\"forever\" would allow that in every session of yours (your policy.toml)")
        );
    }
    show_choices(paint, request);
    None
}

/// Writes lines of a diff, which the terminal breaks.
fn write_diff(lines: &[StyledLine]) {
    let mut screen = journeyman_terminal::stderr_screen();
    for line in lines {
        screen.write_unwrapped(line);
    }
}

/// Shows the possible answers.
fn show_choices(paint: Paint, request: &ApprovalRequest) {
    if let Some(question) = request.model_question() {
        let number = if question.options.is_empty() { "" } else { "a number, or " };
        err!("  {} ", paint.bold(&format!("{number}your answer:")));
        return;
    }
    let always = if request.rules.is_some() { "  [a]lways  [f]orever" } else { "" };
    let diff = if request.diff_lines().1.is_empty() { "" } else { "  [d]iff" };
    let choices = format!("[y]es{always}  [n]o{diff}  or say what to do instead:");
    err!("  {} ", paint.bold(&choices));
}

/// Reads lines from the terminal on request. A terminal read can't be cancelled, so a separate
/// thread reads; lines that no request waits for are dropped.
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
            if sender.send(terminal_prompts::read_line()).is_err() {
                break;
            }
        }
    });
    (requests, lines)
}
