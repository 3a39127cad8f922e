//! The live area: what is still moving, the composer and the status line, within a size. Pure.

use std::time::Instant;

use journeyman_host::format::{preview, printable};
use journeyman_protocol::{CallId, Todo, TodoStatus, Tokens};
use journeyman_terminal::markdown::{self, MarkerDisplay};
use journeyman_terminal::wrap::{cut_line, line_width, wrap_line};
use journeyman_terminal::{Style, StyledLine};

use crate::agent_tree::{AgentNode, live_lines};
use crate::blocks::{THINKING_INDENT, call_label, thinking_line};
use crate::completion::Completion;
use crate::composer::Composer;
use crate::conversation_state::{Conversation, OpenCall};
use crate::questions::Questions;
use crate::screen::Size;
use crate::status_facts::{StatusFacts, VerificationState, format_tokens};

/// Maximum rows of a running command's output.
const MAX_OUTPUT_ROWS: usize = 3;
/// Maximum rows of thinking that is being written.
const MAX_THINKING_ROWS: usize = 3;
/// Maximum todos that are shown; those in work come first.
const MAX_TODO_ROWS: usize = 6;
/// Maximum queued messages that are shown.
const MAX_QUEUED_ROWS: usize = 3;
/// Maximum rows of a notice.
const MAX_NOTICE_ROWS: usize = 3;
/// Rows of the live area from which the status line is shown before all else.
const MIN_ROWS_WITH_STATUS: usize = 3;
/// Rows of a terminal from which empty rows separate the parts.
const ROOMY_ROWS: usize = 14;

/// Facts of the status line that come from no event.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusLineContext {
    /// The model, before a run names it.
    pub(crate) model: String,
    /// The permission mode, before a run names it.
    pub(crate) mode: String,
    /// The branch of the project's repository.
    pub(crate) branch: Option<String>,
    /// Tokens of the model's window.
    pub(crate) window: Option<Tokens>,
    /// True if the session works in a copy of the project.
    pub(crate) is_isolated: bool,
    /// True if another process works on the session.
    pub(crate) is_watched: bool,
    /// The words of the person's status command.
    pub(crate) extra: Option<String>,
}

/// The parts of the live area.
pub(crate) struct LiveArea<'a> {
    /// The session.
    pub(crate) conversation: &'a Conversation,
    /// The session's questions.
    pub(crate) questions: &'a Questions,
    /// The message that is being written.
    pub(crate) composer: &'a Composer,
    /// The list below it.
    pub(crate) completion: Option<&'a Completion>,
    /// Messages that were sent and are not taken yet.
    pub(crate) queued: &'a [&'a str],
    /// A word that lasts until the next key.
    pub(crate) notice: Option<&'a str>,
    /// Facts for the status line.
    pub(crate) surroundings: &'a StatusLineContext,
    /// The marks of Markdown.
    pub(crate) marks: MarkerDisplay,
}

impl LiveArea<'_> {
    /// Renders the area in at most all rows but one. Returns the cursor's row and column.
    #[must_use]
    pub(crate) fn render(&self, size: Size, now: Instant) -> (Vec<StyledLine>, (usize, usize)) {
        let width = size.columns;
        let max_rows = size.rows.saturating_sub(1).max(1);
        let is_low = max_rows < MIN_ROWS_WITH_STATUS;
        let is_roomy = size.rows >= ROOMY_ROWS;
        let has_question = self.questions.is_open();
        let status = self.status_line(width);
        let hint = if self.surroundings.is_watched {
            "another process works on this session; /new begins one of your own"
        } else if self.questions.is_note_open() {
            ""
        } else if has_question {
            "answer by a key, or write a message"
        } else if self.conversation.is_working() {
            "say more; it is read at the next step"
        } else {
            "say what to do; / commands, @ files"
        };
        let composer = self.composer.render(width, (size.rows / 3).max(1), hint);
        let used = if is_low { max_rows } else { composer.rows.len() + 1 };
        let (question, note_cursor) = self.questions.render(width, max_rows.saturating_sub(used).max(1), now);
        let mut list = self.completion.map(|list| list.render(width)).unwrap_or_default();
        list.truncate(max_rows.saturating_sub(composer.rows.len() + 1));

        let mut below: Vec<StyledLine> = Vec::new();
        let mut room = max_rows;
        // From the most to the least important: what can't be done without comes first.
        let mut take = |mut rows: Vec<StyledLine>| {
            rows.truncate(room);
            room -= rows.len();
            rows
        };
        // Where there is next to no room, that comes first which keys go to.
        let is_question_first = is_low && self.questions.takes_keys(self.composer);
        let (first, second) =
            if is_question_first { (question, composer.rows) } else { (composer.rows, question) };
        let mut status_rows = if is_low { Vec::new() } else { take(vec![status.clone()]) };
        let (first, second) = (take(first), take(second));
        let (question_rows, composer_rows) =
            if is_question_first { (first, second) } else { (second, first) };
        if is_low {
            status_rows = take(vec![status]);
        }
        let list = take(list);
        let activity = take(self.activity_rows(now, width));
        let queued = take(self.queued_rows(width));
        let gap = take(if is_roomy { vec![StyledLine::default()] } else { Vec::new() });
        let todos = take(self.todo_rows(width));
        let running = keep_last(self.running_rows(width, size.rows / 3, now), &mut room);
        let prose = keep_last(self.prose_rows(width), &mut room);

        let mut above: Vec<StyledLine> = prose;
        above.extend(running);
        above.extend(todos);
        above.extend(gap);
        above.extend(activity);
        above.extend(queued);
        let cursor = match note_cursor {
            Some(cursor) => cursor,
            None => (question_rows.len() + composer.cursor.0, composer.cursor.1),
        };
        let cursor_row = above.len() + cursor.0;
        below.extend(question_rows);
        below.extend(composer_rows);
        below.extend(list);
        below.extend(status_rows);
        above.extend(below);
        let last = above.len().saturating_sub(1);
        (above, (cursor_row.min(last), cursor.1))
    }

    fn activity_rows(&self, now: Instant, width: usize) -> Vec<StyledLine> {
        if let Some(notice) = self.notice {
            let mut rows = wrap_line(&StyledLine::new(Style::Warning, notice), width, 2);
            rows.truncate(MAX_NOTICE_ROWS);
            return rows;
        }
        if self.questions.is_open() || !self.conversation.is_working() {
            return Vec::new();
        }
        // Calls and checks say by themselves what they do.
        let is_running =
            !self.conversation.open_calls().is_empty() || self.conversation.open_check().is_some();
        let line = match (is_running, self.conversation.activity_line(now)) {
            (false, Some(line)) => line,
            _ => StyledLine::new(Style::Dim, format!("working · {}", self.conversation.elapsed(now))),
        };
        let stops = if self.surroundings.is_watched { "" } else { " · Esc interrupts" };
        let line =
            StyledLine::new(Style::Accent, "• ").with(Style::Dim, format!("{}{stops}", line.to_text()));
        vec![cut_line(&line, width)]
    }

    fn queued_rows(&self, width: usize) -> Vec<StyledLine> {
        let skipped = self.queued.len().saturating_sub(MAX_QUEUED_ROWS);
        let shown = self.queued.iter().skip(skipped);
        let row = |text: &&str| {
            cut_line(
                &StyledLine::new(Style::Dim, format!("  queued (Up takes it back): {}", preview(text))),
                width,
            )
        };
        shown.map(row).collect()
    }

    fn todo_rows(&self, width: usize) -> Vec<StyledLine> {
        let todos = self.conversation.open_todos();
        let now = todos.iter().position(|todo| todo.status != TodoStatus::Completed).unwrap_or_default();
        let first = now.saturating_sub(1).min(todos.len().saturating_sub(MAX_TODO_ROWS));
        let row = |todo: &Todo| {
            let (style, mark) = match todo.status {
                TodoStatus::Completed => (Style::Dim, "✓"),
                TodoStatus::InProgress => (Style::Strong, "▸"),
                TodoStatus::Pending => (Style::Plain, "·"),
            };
            cut_line(&StyledLine::new(style, format!("  {mark} {}", preview(&todo.title))), width)
        };
        todos.iter().skip(first).take(MAX_TODO_ROWS).map(row).collect()
    }

    /// Renders the calls and the check that run, each with the end of its output or with the agents
    /// that it gave tasks to, and those in at most `max_agents` rows.
    fn running_rows(&self, width: usize, max_agents: usize, now: Instant) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        let agents = self.conversation.agents();
        let is_shown = |call: &&OpenCall| !self.questions.is_waiting(&call.call);
        let calls: Vec<&OpenCall> = self.conversation.open_calls().iter().filter(is_shown).collect();
        if !self.conversation.ends_in_calls() && !calls.is_empty() {
            rows.push(StyledLine::default());
        }
        let count = calls.len();
        for call in calls {
            let title =
                StyledLine::new(Style::Accent, "○").with_text(format!(" {}", call_label(&call.start)));
            rows.push(cut_line(&title, width));
            rows.extend(output_rows(&call.output, width));
            let own: Vec<&AgentNode> = agents.agents_of_call(&call.call).collect();
            let share = max_agents / count.max(1);
            rows.extend(live_lines(&own, now, width, share.max(1)));
        }
        let known: Vec<&CallId> = self.conversation.open_calls().iter().map(|open| &open.call).collect();
        let others: Vec<&AgentNode> = agents.agents_without_calls(&known).collect();
        rows.extend(live_lines(&others, now, width, max_agents));
        if let Some(check) = self.conversation.open_check() {
            if rows.is_empty() && self.conversation.ends_in_prose() {
                rows.push(StyledLine::default());
            }
            let (place, all) = check.place;
            let title = StyledLine::new(Style::Accent, "○")
                .with(Style::Dim, format!(" check {place} of {all}: "))
                .with_text(format!("$ {}", preview(&check.command)));
            rows.push(cut_line(&title, width));
            rows.extend(output_rows(&check.output, width));
        }
        rows
    }

    fn prose_rows(&self, width: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        if let Some(thinking) = self.conversation.open_thinking() {
            let lines = thinking.trim().lines().map(thinking_line);
            let wrapped: Vec<StyledLine> =
                lines.flat_map(|line| wrap_line(&line, width, THINKING_INDENT)).collect();
            rows.push(StyledLine::default());
            rows.extend(wrapped.iter().skip(wrapped.len().saturating_sub(MAX_THINKING_ROWS)).cloned());
        }
        if let Some((block, has_gap)) = self.conversation.open_prose() {
            if has_gap {
                rows.push(StyledLine::default());
            }
            rows.extend(markdown::render_block(&block, width, self.marks));
        }
        rows
    }

    fn status_line(&self, width: usize) -> StyledLine {
        let StatusFacts { model, mode, sandbox, context, proof, .. } = self.conversation.facts();
        let mode = mode.map_or_else(|| self.surroundings.mode.clone(), |mode| mode.name().to_owned());
        let model = if model.is_empty() { &self.surroundings.model } else { model };
        let usage = self.conversation.facts().usage();
        let tokens = usage.total_input() + usage.output;
        let used = match self.surroundings.window {
            Some(window) if window.0 > 0 && !context.is_zero() => {
                format!("{}% of {}", (context.0 * 100).div_ceil(window.0), format_tokens(window))
            }
            _ => String::new(),
        };
        let (style, proof) = match proof {
            VerificationState::Nothing => (Style::Dim, ""),
            VerificationState::Unverified => (Style::Warning, "unverified"),
            VerificationState::Failing => (Style::Bad, "checks fail"),
            VerificationState::Verified => (Style::Good, "verified"),
        };
        let cost = self.conversation.facts().cost_usd().map(|usd| format!("${usd:.2}")).unwrap_or_default();
        let total =
            if tokens.is_zero() { String::new() } else { format!("{} tokens", format_tokens(tokens)) };
        // In the order of the line, each with its importance: the least important go first where
        // the line is too narrow.
        let mut parts = vec![
            (1, style, proof.to_owned()),
            (2, Style::Dim, mode),
            (2, Style::Dim, if self.surroundings.is_isolated { "in a copy" } else { "" }.to_owned()),
            (3, Style::Dim, printable(model)),
            (5, Style::Dim, self.surroundings.branch.clone().unwrap_or_default()),
            (4, Style::Dim, used),
            (7, Style::Dim, total),
            (6, Style::Dim, cost),
            (4, Style::Dim, self.surroundings.extra.clone().unwrap_or_default()),
            (8, Style::Dim, sandbox.as_ref().map(|tier| format!("sandbox {tier}")).unwrap_or_default()),
        ];
        parts.retain(|(_, _, text)| !text.is_empty());
        loop {
            let line = join_parts(&parts);
            let least = parts.iter().map(|(importance, ..)| *importance).max();
            if line_width(&line) <= width || parts.len() <= 1 {
                return cut_line(&line, width);
            }
            parts.retain(|(importance, ..)| Some(*importance) != least);
        }
    }
}

fn join_parts(parts: &[(u8, Style, String)]) -> StyledLine {
    let mut line = StyledLine::default();
    for (_, style, text) in parts {
        line.push(Style::Dim, if line.is_empty() { "  " } else { " · " });
        line.push(*style, text);
    }
    line
}

/// Keeps as many of the last rows as there is room for.
fn keep_last(mut rows: Vec<StyledLine>, room: &mut usize) -> Vec<StyledLine> {
    rows.drain(..rows.len().saturating_sub(*room));
    *room -= rows.len();
    rows
}

fn output_rows(output: &str, width: usize) -> Vec<StyledLine> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.get(lines.len().saturating_sub(MAX_OUTPUT_ROWS)..).unwrap_or_default();
    let row = |line: &&str| {
        cut_line(&StyledLine::new(Style::Dim, format!("    {}", line.replace('\t', "    "))), width)
    };
    shown.iter().map(row).collect()
}
