//! Questions about tool calls: what would happen, why it is asked, and what would be lost. Pure.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_agent::PermissionAnswer;
use journeyman_host::approvals::{AnsweredRequest, ApprovalQueue, ApprovalReply, ApprovalRequest, RuleScope};
use journeyman_host::format::{preview, printable};
use journeyman_protocol::{CallId, Envelope, Event};
use journeyman_terminal::wrap::{char_width, text_width};
use journeyman_terminal::{Style, StyledLine};

use crate::blocks::wrap_lines;
use crate::buffer::{Buffer, Motion};
use crate::composer::{Composer, clean_paste};

/// Time after a question appears in which keys are no answer: they were meant for something else.
const KEY_GRACE_TIME: Duration = Duration::from_millis(400);
/// Maximum rows of a call's arguments or diff; one key shows all.
const MAX_BODY_ROWS: usize = 12;
/// Rows of it that are shown also below a long question.
const MIN_BODY_ROWS: usize = 4;
/// Maximum further questions that are listed.
const MAX_LISTED_QUESTIONS: usize = 4;

/// The result of a key.
#[derive(Debug)]
pub(crate) enum QuestionEffect {
    /// The key means nothing here.
    Ignored,
    /// The rows are others.
    Changed,
    /// The question is answered; the rule's file is said, if one was written.
    Answered(Box<AnsweredRequest>),
    /// The person wants to see the whole call.
    ShowWhole(Vec<StyledLine>),
}

/// A call that waits for an answer.
struct WaitingCall {
    call: CallId,
    summary: String,
    /// The name of the agent whose call it is; `None` for the session's own.
    agent: Option<String>,
}

/// The open questions of a session, and the note that is written for one.
#[derive(Default)]
pub(crate) struct Questions {
    queue: ApprovalQueue,
    /// All requests, for the list; the queue gives only the first.
    waiting: Vec<WaitingCall>,
    shown: Option<(CallId, Instant)>,
    /// True if the person went to the shown question from the message that they write.
    has_focus: bool,
    /// The note of a refusal or the answer to a question of the model's, while it is written.
    note: Option<Buffer>,
    /// The note for a question that was settled while it was written.
    abandoned_note: Option<String>,
}

impl Questions {
    /// Makes the questions of a session. Rules that are allowed for good are written into
    /// `config_dir`.
    #[must_use]
    pub(crate) fn new(config_dir: Option<PathBuf>) -> Self {
        Self { queue: ApprovalQueue::new(config_dir), ..Self::default() }
    }

    /// Handles an event.
    pub(crate) fn handle_event(&mut self, envelope: &Envelope, now: Instant) {
        let event = &envelope.event;
        self.queue.handle_event(envelope);
        match event {
            Event::PermissionRequired { call, summary, .. } => {
                let agent = envelope.agent.last().map(preview);
                self.waiting.push(WaitingCall { call: call.clone(), summary: preview(summary), agent });
            }
            Event::PermissionDecided { call, .. } => self.waiting.retain(|open| open.call != *call),
            Event::Done { .. } if envelope.agent.is_empty() => self.waiting.clear(),
            _ => {}
        }
        self.show_first_queued(now);
    }

    fn show_first_queued(&mut self, now: Instant) {
        let first = self.queue.first().map(|request| request.call.clone());
        if first.as_ref() != self.shown.as_ref().map(|(call, _)| call) {
            (self.shown, self.has_focus) = (first.map(|call| (call, now)), false);
            let written = self.note.take().map(|mut note| note.take_text());
            self.abandoned_note = written.filter(|text| !text.trim().is_empty());
        }
    }

    /// Removes and returns the note for a question that was settled while it was written.
    pub(crate) fn take_abandoned_note(&mut self) -> Option<String> {
        self.abandoned_note.take()
    }

    /// Returns the answer to a call that is too long for anybody to read, which is refused.
    pub(crate) fn refuse_unreadable(&mut self) -> Option<AnsweredRequest> {
        let refusal = self.queue.first()?.full_arguments().err()?;
        self.queue.answer_first(refusal.into())
    }

    /// Returns true if a question is open.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.shown.is_some()
    }

    /// Returns true if the call waits for an answer.
    #[must_use]
    pub(crate) fn is_waiting(&self, call: &CallId) -> bool {
        self.waiting.iter().any(|waiting| waiting.call == *call)
    }

    /// Returns true if keys go to the open question, and not to the message.
    #[must_use]
    pub(crate) fn takes_keys(&self, composer: &Composer) -> bool {
        self.is_open() && (composer.is_at_rest() || self.has_focus)
    }

    /// Lets keys go to the question although a message is being written, or not any more.
    pub(crate) fn toggle_focus(&mut self) {
        self.has_focus = !self.has_focus;
    }

    /// Hears no key for a moment, as if the question had just appeared: a message was sent or
    /// removed, and whoever goes on typing means the next one; or something else stood before it.
    pub(crate) fn delay_keys(&mut self, now: Instant) {
        if let Some((_, since)) = &mut self.shown {
            *since = now;
        }
    }

    /// Returns the time after which keys are heard, if they aren't yet.
    #[must_use]
    pub(crate) fn time_until_keys_accepted(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.shown.as_ref()?;
        KEY_GRACE_TIME.checked_sub(now.saturating_duration_since(*since)).filter(|rest| !rest.is_zero())
    }

    /// Handles a key for the open question.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, now: Instant) -> QuestionEffect {
        let Some((_, since)) = &mut self.shown else { return QuestionEffect::Ignored };
        if now.saturating_duration_since(*since) < KEY_GRACE_TIME {
            // Whoever goes on typing means the message that they are writing.
            *since = now;
            return QuestionEffect::Ignored;
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return QuestionEffect::Ignored;
        }
        let Some(request) = self.queue.first() else { return QuestionEffect::Ignored };
        if key.code == KeyCode::PageDown {
            return QuestionEffect::ShowWhole(whole_call_lines(request));
        }
        if self.note.is_some() {
            return self.handle_note_key(key);
        }
        if let Some(question) = request.model_question() {
            return self.handle_answer_key(key, question.options.len());
        }
        let allow_rule = |scope| {
            let answer = PermissionAnswer::allow_rule();
            request.rules.is_some().then_some(ApprovalReply { answer, scope })
        };
        let reply = match key.code {
            KeyCode::Char('y') => Some(PermissionAnswer::allow().into()),
            KeyCode::Char('s') => allow_rule(RuleScope::Session),
            KeyCode::Char('r') => allow_rule(RuleScope::Forever),
            KeyCode::Char('n') => {
                self.note = Some(Buffer::default());
                return QuestionEffect::Changed;
            }
            KeyCode::Char('d') => return QuestionEffect::ShowWhole(whole_call_lines(request)),
            _ => return QuestionEffect::Ignored,
        };
        match reply {
            Some(reply) => self.answer_shown(reply),
            None => QuestionEffect::Changed,
        }
    }

    /// Handles a key for a question of the model's: the number of an option, or an answer's first
    /// letter.
    fn handle_answer_key(&mut self, key: KeyEvent, options: usize) -> QuestionEffect {
        let KeyCode::Char(letter) = key.code else { return QuestionEffect::Ignored };
        let place = letter.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
        if place.is_some_and(|place| (1..=options).contains(&place)) {
            return self.answer_line(letter.encode_utf8(&mut [0; 4]));
        }
        self.note.insert(Buffer::default()).insert(letter.encode_utf8(&mut [0; 4]));
        QuestionEffect::Changed
    }

    fn handle_note_key(&mut self, key: KeyEvent) -> QuestionEffect {
        let Some(note) = &mut self.note else { return QuestionEffect::Ignored };
        match key.code {
            KeyCode::Esc => self.note = None,
            KeyCode::Enter
                if self.queue.first().is_some_and(|request| request.model_question().is_some()) =>
            {
                let text = note.take_text();
                self.note = None;
                return self.answer_line(&text);
            }
            KeyCode::Enter => {
                let note = Some(note.take_text().trim().to_owned()).filter(|note| !note.is_empty());
                self.note = None;
                return self.answer_shown(PermissionAnswer::Deny { note }.into());
            }
            KeyCode::Char(letter) => note.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => note.delete(Motion::Left),
            KeyCode::Left => note.move_by(Motion::Left),
            KeyCode::Right => note.move_by(Motion::Right),
            _ => return QuestionEffect::Ignored,
        }
        QuestionEffect::Changed
    }

    /// Inserts pasted text into the note that is written, or begins an answer to the model's
    /// question with it. Returns false if neither can be done.
    pub(crate) fn paste_into_note(&mut self, text: &str, now: Instant) -> bool {
        let is_heard = self.time_until_keys_accepted(now).is_none();
        let request = self.queue.first().filter(|_| is_heard && self.shown.is_some());
        if request.is_some_and(|request| request.model_question().is_some()) {
            self.note.get_or_insert_default();
        }
        let Some(note) = &mut self.note else { return false };
        note.insert(&clean_paste(text).trim_end().replace('\n', " "));
        true
    }

    fn answer_shown(&mut self, reply: ApprovalReply) -> QuestionEffect {
        self.shown = None;
        match self.queue.answer_first(reply) {
            Some(answered) => QuestionEffect::Answered(Box::new(answered)),
            None => QuestionEffect::Changed,
        }
    }

    /// Returns the call that is asked about.
    #[must_use]
    pub(crate) fn shown_call(&self) -> Option<&CallId> {
        self.shown.as_ref().map(|(call, _)| call)
    }

    /// Handles a line as an answer: the letter of a key or its word, a note behind `n`. Other words
    /// are no answer.
    pub(crate) fn answer_line(&mut self, line: &str) -> QuestionEffect {
        let Some(request) = self.queue.first() else { return QuestionEffect::Ignored };
        if request.model_question().is_some() {
            return match request.parse_answer(line) {
                Ok(reply) => self.answer_shown(reply),
                Err(_) => QuestionEffect::Changed,
            };
        }
        let line = line.trim();
        let end = line.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(line.len());
        let (word, note) = line.split_at(end);
        let note = note.trim_start_matches([',', ':', ';', '.', '-', ' ']).trim();
        let scope = match (word.to_lowercase().as_str(), note.is_empty()) {
            ("n" | "no", is_empty) => {
                let note = (!is_empty).then(|| note.to_owned());
                return self.answer_shown(PermissionAnswer::Deny { note }.into());
            }
            ("y" | "yes", true) => return self.answer_shown(PermissionAnswer::allow().into()),
            ("d" | "details", true) => return QuestionEffect::ShowWhole(whole_call_lines(request)),
            ("s" | "session", true) => RuleScope::Session,
            ("r" | "rule" | "always", true) => RuleScope::Forever,
            _ => return QuestionEffect::Ignored,
        };
        match request.rules.is_some() {
            true => self.answer_shown(ApprovalReply { answer: PermissionAnswer::allow_rule(), scope }),
            false => QuestionEffect::Changed,
        }
    }

    /// Answers the first question.
    pub(crate) fn answer_first(&mut self, answer: PermissionAnswer) -> Option<AnsweredRequest> {
        self.shown = None;
        self.queue.answer_first(answer.into())
    }

    /// Returns the rows of the open question for those who read it once.
    #[must_use]
    pub(crate) fn render_whole(&self, width: usize, max_rows: usize) -> Vec<StyledLine> {
        let heard = self.shown.as_ref().map(|(_, since)| *since + KEY_GRACE_TIME);
        // No key shows the rest of a question of the model's.
        let is_question = self.queue.first().is_some_and(|request| request.model_question().is_some());
        let max_rows = if is_question { usize::MAX } else { max_rows };
        heard.map_or_else(Vec::new, |heard| self.render(width, max_rows, heard).0)
    }

    /// Goes to the next question, once the session has received an answer.
    pub(crate) fn show_next_question(&mut self, now: Instant) {
        self.show_first_queued(now);
    }

    /// Returns true while a note is written.
    #[must_use]
    pub(crate) fn is_note_open(&self) -> bool {
        self.note.is_some()
    }

    /// Renders the open question in at most `max_rows` rows. Returns also the cursor, if a note is
    /// written.
    #[must_use]
    pub(crate) fn render(
        &self,
        width: usize,
        max_rows: usize,
        now: Instant,
    ) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let Some(request) = self.queue.first().filter(|_| self.shown.is_some()) else {
            return (Vec::new(), None);
        };
        let asker = self.waiting.iter().find(|waiting| waiting.call == request.call);
        let asker = asker.and_then(|waiting| waiting.agent.as_deref());
        let mut head = wrap_lines(vec![question_title(request, asker, self.waiting.len())], width);
        let keys = match self.time_until_keys_accepted(now) {
            None => self.key_line(request),
            // Until then they belong to what the person was typing.
            Some(_) => StyledLine::new(Style::Dim, "  …"),
        };
        let keys = wrap_lines(vec![keys], width);
        let note_rows = usize::from(self.note.is_some());
        // What would happen comes before why it is asked, and that before what else is asked.
        let mut body = wrap_lines(body_lines(request), width);
        // Each letter begins an answer to a question of the model's.
        let is_question = request.model_question().is_some();
        let how = if is_question { "PageDown shows all" } else { "d shows the whole" };
        let more = StyledLine::new(Style::Dim, format!("  … {how}"));
        let beside = keys.len() + note_rows + body.len().min(MIN_BODY_ROWS);
        let head_room = max_rows.saturating_sub(beside).max(2);
        if head.len() > head_room {
            head.truncate(head_room - 1);
            head.push(more.clone());
        }
        let mut room = max_rows.saturating_sub(head.len() + keys.len() + note_rows);
        let reasons = wrap_lines(reason_lines(request), width);
        let others = wrap_lines(self.queued_question_lines(request), width);
        let max_body = if is_question { usize::MAX } else { MAX_BODY_ROWS };
        let body_room = room.saturating_sub(reasons.len()).clamp(1, max_body);
        if body.len() > body_room {
            body.truncate(body_room.saturating_sub(1));
            body.push(more);
        }
        let mut rows = head;
        for part in [body, reasons, others] {
            let taken = part.len().min(room);
            room -= taken;
            rows.extend(part.into_iter().take(taken));
        }
        rows.extend(keys);
        // The note is written in a row of its own at the end.
        rows.truncate(max_rows.saturating_sub(note_rows));
        let cursor = self.note.as_ref().map(|note| {
            let label = if request.model_question().is_some() { "  answer: " } else { "  no: " };
            // The cursor needs a column of its own.
            let before = last_columns(note.text_before_cursor(), width.saturating_sub(label.len() + 1));
            let text = format!("{before}{}", note.text_after_cursor());
            rows.push(StyledLine::new(Style::Warning, label).with_text(text));
            (rows.len() - 1, (label.len() + text_width(before)).min(width.saturating_sub(1)))
        });
        (rows, cursor)
    }

    fn queued_question_lines(&self, request: &ApprovalRequest) -> Vec<StyledLine> {
        let others = self.waiting.iter().filter(|waiting| waiting.call != request.call);
        let line = |waiting: &WaitingCall| {
            let asker = waiting.agent.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            labeled_line(Style::Dim, "then:", &format!("{asker}{}", waiting.summary))
        };
        others.take(MAX_LISTED_QUESTIONS).map(line).collect()
    }

    fn key_line(&self, request: &ApprovalRequest) -> StyledLine {
        let question = request.model_question();
        if self.note.is_some() {
            let sent = if question.is_some() { "answer" } else { "no" };
            return StyledLine::new(Style::Dim, format!("  Enter sends the {sent} · Esc goes back"));
        }
        if let Some(question) = question {
            let choice = if question.options.is_empty() { "" } else { "a number chooses · " };
            return StyledLine::new(Style::Dim, format!("  {choice}type an answer"));
        }
        let rule =
            if request.rules.is_some() { [("s", "this session"), ("r", "always")].as_slice() } else { &[] };
        let keys = [("y", "yes")].iter().chain(rule).chain(&[("n", "no…"), ("d", "details")]);
        keys.fold(StyledLine::default(), |line, (key, does)| {
            line.with(Style::Strong, format!("  {key}")).with_text(format!(" {does}"))
        })
    }
}

/// Returns as much of the end of a text as fits into a width.
fn last_columns(text: &str, width: usize) -> &str {
    let mut room = width;
    let fits = |(_, letter): &(usize, char)| match room.checked_sub(char_width(*letter)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(start, _)| start);
    text.get(start..).unwrap_or_default()
}

fn labeled_line(style: Style, label: &str, text: &str) -> StyledLine {
    StyledLine::new(style, format!("  {label} ")).with_text(text)
}

/// Returns why it is asked, what would be lost, and what an answer by the rule allows.
fn reason_lines(request: &ApprovalRequest) -> Vec<StyledLine> {
    // The model's own question is its reason.
    if request.model_question().is_some() {
        return Vec::new();
    }
    let verdict = &request.verdict;
    // The reason may say it already.
    let lost = verdict.destroys.as_ref().filter(|lost| !verdict.reason.contains(*lost));
    let mut lines: Vec<StyledLine> =
        lost.map(|lost| labeled_line(Style::Bad, "would be lost:", &printable(lost))).into_iter().collect();
    lines.push(labeled_line(Style::Dim, "why it asks:", &printable(&verdict.reason)));
    if let Some(rules) = &request.rules {
        let rules: Vec<String> = rules.iter().map(|(_, rule)| printable(&rule)).collect();
        lines.push(labeled_line(Style::Dim, "s and r allow:", &rules.join("; ")));
    }
    lines
}

fn question_title(request: &ApprovalRequest, asker: Option<&str>, count: usize) -> StyledLine {
    let question = match request.model_question() {
        Some(question) => question.text.split_whitespace().collect::<Vec<_>>().join(" "),
        None if request.is_edit() => "May I make this change?".to_owned(),
        None => "May I run this?".to_owned(),
    };
    let asker = asker.map(|name| format!("{name} asks: ")).unwrap_or_default();
    let line = StyledLine::new(Style::Warning, format!("? {asker}{question}"));
    let path = request.input.get("path").and_then(serde_json::Value::as_str).filter(|_| request.is_edit());
    let line = match path {
        Some(path) => line.with(Style::Strong, format!(" {}", printable(path))),
        None => line,
    };
    match count {
        0 | 1 => line,
        many => line.with(Style::Dim, format!("  (1 of {many})")),
    }
}

fn body_lines(request: &ApprovalRequest) -> Vec<StyledLine> {
    let indent = |line: StyledLine| {
        let mut indented = StyledLine::new(Style::Plain, "  ");
        indented.spans.extend(line.spans);
        indented
    };
    if let Some(question) = request.model_question() {
        let numbered = (1..).zip(question.options).map(|(number, option)| {
            StyledLine::new(Style::Strong, format!("  {number}")).with_text(format!(" {option}"))
        });
        return numbered.collect();
    }
    let (first, rest) = request.diff_lines();
    let arguments = match request.full_arguments() {
        Ok(text) if !request.is_edit() => {
            text.lines().map(|line| StyledLine::new(Style::Code, line)).collect()
        }
        _ => Vec::new(),
    };
    arguments.into_iter().chain(first).chain(rest).map(indent).collect()
}

/// Returns everything about a call.
fn whole_call_lines(request: &ApprovalRequest) -> Vec<StyledLine> {
    if let Some(question) = request.model_question() {
        let text = question.text.lines().map(|line| StyledLine::new(Style::Strong, line));
        return text.chain([StyledLine::default()]).chain(body_lines(request)).collect();
    }
    let arguments = request.full_arguments().unwrap_or_default();
    let mut lines = vec![StyledLine::new(Style::Strong, printable(&request.summary)), StyledLine::default()];
    lines.extend(arguments.lines().map(|line| StyledLine::new(Style::Code, line)));
    let (first, rest) = request.diff_lines();
    if !first.is_empty() {
        lines.push(StyledLine::default());
    }
    lines.extend(first);
    lines.extend(rest);
    lines
}
