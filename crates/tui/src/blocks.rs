//! Finished blocks of a conversation as lines of a width. Pure.

use std::collections::{HashSet, VecDeque};

use journeyman_host::event_text::{describe_event, describe_output};
use journeyman_host::format::{describe_usage, format_count, preview, printable};
use journeyman_host::highlight::find_tokens_of_language;
use journeyman_protocol::{
    CallId, CallState, EditDiff, Event, FileChange, FileChangeKind, RunOutcome, RunReport,
};
use journeyman_terminal::code::{LineTokens, style_tokens};
use journeyman_terminal::diff::style_line;
use journeyman_terminal::markdown::{self, CodeLine, MarkerDisplay};
use journeyman_terminal::wrap::{cut_line, wrap_line};
use journeyman_terminal::{Style, StyledLine};
use serde_json::Value;

use crate::agent_tree::{AgentNode, ended_lines};
use crate::attachments::{name_attachments, split_attachments};
use crate::edits::{diff_lines, edit_lines};

/// Minimum columns that text is rendered for.
pub(crate) const MIN_COLUMNS: usize = 12;
/// Columns by which the further rows of a line are indented beyond its first.
const HANGING_INDENT: usize = 2;
/// Columns before thinking.
pub(crate) const THINKING_INDENT: usize = 2;
/// Maximum lines of an edit in the conversation; the transcript shows all.
const MAX_EDIT_LINES: usize = 16;
/// Maximum lines of thinking in the conversation.
const MAX_THINKING_LINES: usize = 4;
/// Maximum lines of a person's message in the conversation, such as a pasted file.
const MAX_MESSAGE_LINES: usize = 16;
/// Maximum changed files that the end of a run lists.
const MAX_LISTED_FILES: usize = 12;
/// Lines of code before the first one that is shown that are looked at for its colours.
const MAX_CODE_CONTEXT_LINES: usize = 60;
/// Maximum lines of code whose colours are found at once.
const MAX_HIGHLIGHTED_CODE_LINES: usize = 400;
/// The mark of a person's message.
const MESSAGE_MARK: &str = "› ";

/// A tool call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EndedCall {
    /// The call.
    pub(crate) call: CallId,
    /// The event that began it.
    pub(crate) start: Event,
    /// The event that ended it.
    pub(crate) end: Event,
    /// The files that it changed.
    pub(crate) changes: Vec<FileChange>,
    /// The lines that differ in the file that it replaced.
    pub(crate) diff: Option<EditDiff>,
    /// The agents that it gave tasks to.
    pub(crate) agents: Vec<AgentNode>,
}

/// A part of a conversation that no later event changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// A message of the person.
    Message(String),
    /// A block of the model's reply.
    Prose(markdown::Block),
    /// The model's thinking.
    Thinking(String),
    /// A tool call.
    Call(Box<EndedCall>),
    /// Anything that is said in lines.
    Lines(Vec<StyledLine>),
    /// The end of a run.
    Report(Box<RunReport>),
}

/// A block with the distance from the one before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockEntry {
    /// The block.
    pub(crate) block: Block,
    /// True if an empty row comes before it.
    pub(crate) has_gap: bool,
}

/// The amount of a block that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail<'a> {
    /// The conversation: long results are cut.
    Short,
    /// A block of the transcript that isn't opened.
    Folded,
    /// Everything that is on record, with the result of a call if it is known; else its beginning
    /// and its end.
    Whole(Option<&'a str>),
}

/// The form in which blocks are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout<'a> {
    /// Columns.
    pub(crate) width: usize,
    /// The marks of Markdown.
    pub(crate) marks: MarkerDisplay,
    /// The amount.
    pub(crate) detail: Detail<'a>,
}

/// Renders a block with its distance. No row is wider than the layout's width.
#[must_use]
pub(crate) fn render_entry(entry: &BlockEntry, layout: Layout<'_>) -> Vec<StyledLine> {
    let gap = entry.has_gap.then(StyledLine::default);
    gap.into_iter().chain(render_block(&entry.block, layout)).collect()
}

/// Renders blocks from a place on, each as its rows. Lines of code that follow each other get the
/// colours of their language.
#[must_use]
pub(crate) fn render_entries<'a>(
    entries: &[BlockEntry],
    from: usize,
    layout: impl Fn(usize) -> Layout<'a>,
) -> Vec<Vec<StyledLine>> {
    let mut code = VecDeque::new();
    let mut rendered = Vec::with_capacity(entries.len().saturating_sub(from));
    for (place, entry) in entries.iter().enumerate().skip(from) {
        if code.is_empty() {
            code.extend(style_code(entries, place));
        }
        let gap = entry.has_gap.then(StyledLine::default);
        let rows = match (&entry.block, code.pop_front()) {
            (Block::Prose(block), Some(line)) => render_prose(block, Some(&line), layout(place)),
            (block, _) => render_block(block, layout(place)),
        };
        rendered.push(gap.into_iter().chain(rows).collect());
    }
    rendered
}

fn render_prose(block: &markdown::Block, code: Option<&StyledLine>, layout: Layout<'_>) -> Vec<StyledLine> {
    let width = layout.width.max(MIN_COLUMNS);
    match code {
        Some(line) => markdown::render_code_line(line, block.indent, width),
        None => markdown::render_block(block, width, layout.marks),
    }
}

/// Returns the code of a block that is a line of code, and its place in its fence.
fn code_of(entry: &BlockEntry) -> Option<(&str, &CodeLine)> {
    match &entry.block {
        Block::Prose(block) => Some((&block.source, block.code.as_ref()?)),
        _ => None,
    }
}

/// Returns the lines of code from a place on in the colours of their language; none where there is
/// no code or the language isn't known. The lines before, which say what the first ones are, are
/// looked at too.
fn style_code(entries: &[BlockEntry], place: usize) -> Vec<StyledLine> {
    let Some((_, first)) = entries.get(place).and_then(code_of) else { return Vec::new() };
    let before = first.number.min(MAX_CODE_CONTEXT_LINES).min(place);
    let begin = place - before;
    let mut lines: Vec<&str> = Vec::new();
    for (source, line) in entries.iter().skip(begin).map_while(code_of) {
        let is_next = line.number == first.number + lines.len() - before && line.language == first.language;
        if !is_next || lines.len() >= before + MAX_HIGHLIGHTED_CODE_LINES {
            break;
        }
        lines.push(source);
    }
    let tokens = LineTokens::find(lines.iter().copied(), &first.language, &find_tokens_of_language);
    let is_diff = matches!(&*first.language, "diff" | "patch");
    if tokens.is_empty() && !is_diff {
        return Vec::new();
    }
    let style = |(place, line): (usize, &&str)| match is_diff {
        true => style_line(line),
        false => style_tokens(line, &tokens.of_line(place)),
    };
    lines.iter().enumerate().skip(before).map(style).collect()
}

fn render_block(block: &Block, layout: Layout<'_>) -> Vec<StyledLine> {
    let width = layout.width.max(MIN_COLUMNS);
    match block {
        Block::Message(text) => render_message(text, width, layout.detail),
        Block::Prose(block) => render_prose(block, None, layout),
        Block::Thinking(text) => render_thinking(text, width, layout.detail),
        Block::Call(call) => wrap_lines(call_lines(call, layout.detail), width),
        Block::Lines(lines) => wrap_lines(lines.clone(), width),
        Block::Report(report) => wrap_lines(report_lines(report, layout.detail), width),
    }
}

/// Wraps lines; each keeps its indentation and hangs from it.
pub(crate) fn wrap_lines(lines: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    let wrap = |line: StyledLine| {
        let spaces = line.to_text().chars().take_while(|character| *character == ' ').count();
        wrap_line(&line, width, spaces + HANGING_INDENT)
    };
    lines.into_iter().flat_map(wrap).collect()
}

/// Keeps the first lines, and says how many more there are.
fn keep_first(mut lines: Vec<StyledLine>, max: usize, detail: Detail<'_>) -> Vec<StyledLine> {
    let how = match detail {
        Detail::Short => "Ctrl-T shows all",
        Detail::Folded => "Tab, Enter opens",
        Detail::Whole(_) => return lines,
    };
    if lines.len() > max + 1 {
        let more = lines.split_off(max).len();
        lines.push(StyledLine::new(Style::Dim, format!("  … {} ({how})", format_count(more, "more line"))));
    }
    lines
}

fn render_message(text: &str, width: usize, detail: Detail<'_>) -> Vec<StyledLine> {
    let room = width.saturating_sub(MESSAGE_MARK.len());
    let is_whole = matches!(detail, Detail::Whole(_));
    let (own, attached) = if is_whole { (text, "") } else { split_attachments(text) };
    let rows = printable(own);
    let rows = rows.lines().flat_map(|line| wrap_line(&StyledLine::new(Style::Strong, line), room, 0));
    let mark = |(place, row): (usize, StyledLine)| {
        let mut line = StyledLine::new(Style::Accent, if place == 0 { MESSAGE_MARK } else { "  " });
        line.spans.extend(row.spans);
        line
    };
    let mut lines = keep_first(rows.enumerate().map(mark).collect(), MAX_MESSAGE_LINES, detail);
    let names = name_attachments(attached).map(|name| StyledLine::new(Style::Dim, printable(&name)));
    lines.extend(names.map(|name| cut_line(&name, width)));
    lines
}

fn render_thinking(text: &str, width: usize, detail: Detail<'_>) -> Vec<StyledLine> {
    let text = printable(text.trim());
    let lines: Vec<StyledLine> = text.lines().map(thinking_line).collect();
    let wrapped = lines.iter().flat_map(|line| wrap_line(line, width, THINKING_INDENT)).collect();
    keep_first(wrapped, MAX_THINKING_LINES, detail)
}

/// Returns a line of thinking as it is shown, to be wrapped with [`THINKING_INDENT`].
pub(crate) fn thinking_line(line: &str) -> StyledLine {
    StyledLine::new(Style::Dim, format!("{:THINKING_INDENT$}{line}", ""))
}

fn call_lines(call: &EndedCall, detail: Detail<'_>) -> Vec<StyledLine> {
    let EndedCall { start, end, changes, diff, agents, .. } = call;
    let (Event::ToolStart { tool, input, .. }, Event::ToolEnd { state, preview, .. }) = (start, end) else {
        return Vec::new();
    };
    let edit = match (state, diff) {
        (CallState::Completed, Some(diff)) => diff_lines(diff),
        // Its arguments are the whole file, and not what is new in it.
        (CallState::Completed, None) if tool == "write_file" && has_modified_file(changes) => Vec::new(),
        (CallState::Completed, None) => edit_lines(tool, input, preview),
        _ => Vec::new(),
    };
    let size = diff.as_ref().map_or_else(|| count_changed_lines(&edit), |diff| (diff.added, diff.removed));
    let mut lines = vec![call_title(start, *state, size)];
    lines.extend(ended_lines(agents));
    match detail {
        Detail::Short | Detail::Folded => lines.extend(describe_event(end)),
        Detail::Whole(output) => {
            // An edit is its arguments, and a command its title.
            let is_said = edit.is_empty() && call_command(start).is_none_or(|command| command.contains('\n'));
            lines.extend(if is_said { argument_lines(input) } else { Vec::new() });
            lines.extend(match output {
                Some(output) => output_lines(output),
                None => describe_output(end).unwrap_or_else(|| output_lines(preview)),
            });
        }
    }
    if edit.is_empty() {
        let change =
            |change: &FileChange| StyledLine::new(Style::Plain, format!("    {}", describe_change(change)));
        lines.extend(keep_first(changes.iter().map(change).collect(), MAX_LISTED_FILES, detail));
    }
    lines.extend(keep_first(edit, MAX_EDIT_LINES, detail));
    lines
}

/// Describes a changed file with a mark for the way in which it changed.
pub(crate) fn describe_change(change: &FileChange) -> String {
    let mark = match change.kind {
        FileChangeKind::Added => '+',
        FileChangeKind::Modified => '~',
        FileChangeKind::Deleted => '-',
    };
    format!("{mark} {}", printable(&change.path))
}

/// Returns the line that says what a call does, with its size if it is an edit.
fn call_title(start: &Event, state: CallState, (added, removed): (u64, u64)) -> StyledLine {
    let style = match state {
        CallState::Completed => Style::Good,
        CallState::Denied | CallState::Failed | CallState::Interrupted => Style::Bad,
        _ => Style::Accent,
    };
    let mut line = StyledLine::new(style, "●").with_text(format!(" {}", call_label(start)));
    if added + removed > 0 {
        line = line.with(Style::Good, format!("  +{added}")).with(Style::Bad, format!(" −{removed}"));
    }
    line
}

/// Counts the added and the removed lines of an edit.
fn count_changed_lines(edit: &[StyledLine]) -> (u64, u64) {
    let count = |is_kind: fn(&Style) -> bool| {
        let is_side = |line: &&StyledLine| line.spans.iter().any(|(style, _)| is_kind(style));
        u64::try_from(edit.iter().filter(is_side).count()).unwrap_or(u64::MAX)
    };
    let added = count(|style| matches!(style, Style::Added(_) | Style::AddedWord(_)));
    (added, count(|style| matches!(style, Style::Removed(_) | Style::RemovedWord(_))))
}

/// Returns true if a file was there before it was changed.
fn has_modified_file(changes: &[FileChange]) -> bool {
    changes.iter().any(|change| change.kind == FileChangeKind::Modified)
}

/// Says what a call does: a command as it would be typed, anything else by its summary.
pub(crate) fn call_label(start: &Event) -> String {
    match (call_command(start), start) {
        (Some(command), _) => format!("$ {}", preview(command)),
        (None, Event::ToolStart { summary, .. }) => preview(summary),
        _ => String::new(),
    }
}

/// Returns the command that a call runs.
fn call_command(start: &Event) -> Option<&str> {
    match start {
        Event::ToolStart { tool, input, .. } if tool == "run_command" => input.get("command")?.as_str(),
        _ => None,
    }
}

fn argument_lines(input: &Value) -> Vec<StyledLine> {
    let arguments = input.as_object().into_iter().flatten().flat_map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output_lines(&format!("{name}: {text}"))
    });
    arguments.collect()
}

fn output_lines(output: &str) -> Vec<StyledLine> {
    let dim = |line: &str| StyledLine::new(Style::Dim, format!("    {line}"));
    printable(output).lines().map(dim).collect()
}

fn report_lines(report: &RunReport, detail: Detail<'_>) -> Vec<StyledLine> {
    let (style, mark) = match report.outcome {
        RunOutcome::Verified => (Style::Good, "✓"),
        RunOutcome::Answered | RunOutcome::Planned => (Style::Dim, "•"),
        RunOutcome::Unverified
        | RunOutcome::Limit
        | RunOutcome::Conflict
        | RunOutcome::NeedsAnswer
        | RunOutcome::Interrupted => (Style::Warning, "•"),
        RunOutcome::Error | RunOutcome::ChecksFail | RunOutcome::PermissionNeeded => (Style::Bad, "✗"),
    };
    let mut lines = Vec::new();
    if !report.summary.is_empty() {
        lines.push(StyledLine::new(style, format!("{mark} {}", printable(&report.summary))));
    }
    let mut seen = HashSet::new();
    let sized = report.diffstat.iter().map(|file| {
        seen.insert(&file.path);
        StyledLine::new(Style::Plain, format!("  {}", printable(&file.path)))
            .with(Style::Good, format!("  +{}", file.added))
            .with(Style::Bad, format!(" −{}", file.removed))
    });
    let mut files: Vec<StyledLine> = sized.collect();
    let unsized_files = report.changes.iter().filter(|change| !seen.contains(&change.path));
    files.extend(
        unsized_files.map(|change| StyledLine::new(Style::Plain, format!("  {}", describe_change(change)))),
    );
    lines.extend(keep_first(files, MAX_LISTED_FILES, detail));
    lines.push(StyledLine::new(Style::Dim, format!("  {}", describe_usage(&report.usage, report.cost_usd))));
    lines
}
