//! Reading edits out of a model's reply, in any of the formats models write.

pub(crate) mod announced_paths;
mod argument_keys;
mod argument_places;
mod argument_values;
mod bare_file;
pub(crate) mod block;
pub(crate) mod blocks;
mod detect;
pub(crate) mod edit_block;
pub(crate) mod hunks;
mod labelled_texts;
mod lenient_json;
pub(crate) mod markers;
mod nested_edits;
pub(crate) mod paths;
mod recap;
mod reply;
pub(crate) mod search_replace;
mod tag_dialects;
pub(crate) mod tags;
mod text_calls;
pub(crate) mod text_pairs;
mod thinking;
pub(crate) mod tool_arguments;
pub(crate) mod udiff;
pub(crate) mod v4a;
pub(crate) mod whole_files;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp};
use crate::lines::BYTE_ORDER_MARK;
use block::{BlockProblem, ProblemKind};
use blocks::{MAX_REPLY_BYTES, parse_blocks};
pub use detect::{detect, detect_in};
pub use reply::{Format, ParsedReply, ReplySource};
pub(crate) use reply::{ReplyLine, ReplyLines};
pub use text_calls::{NamedCall, read_named_calls};
pub use thinking::blank_thinking;
pub use whole_files::strip_fence;

/// Reads a reply in a format, or in the one that it seems to be written in.
///
/// The text decides over the named format: a reply that has nothing of the named format and is
/// plainly in another is read in the other format. If no format is named, edits in a second format
/// are not read, and the reading has a problem that says so; but whole files beside other edits are
/// read too. Thinking in the text is left out ([`blank_thinking`]).
#[must_use]
pub fn read_reply(source: &ReplySource<'_>, format: Option<Format>) -> ParsedReply {
    if source.reply.len() > MAX_REPLY_BYTES {
        let message = format!("the reply has more than {MAX_REPLY_BYTES} bytes; no longer one is read");
        let problem = BlockProblem { kind: ProblemKind::TooMuch, line: 1, subject: None, message };
        return ParsedReply { format, problems: vec![problem], ..ParsedReply::default() };
    }
    let reply = blank_thinking(source.reply);
    let reply = reply.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&reply);
    let source = &ReplySource { reply, ..*source };
    let Some(chosen) = format.or_else(|| detect_in(source)) else {
        return ParsedReply { prose: source.reply.trim().to_owned(), ..ParsedReply::default() };
    };
    let mut reading = read_as(source, chosen, format.is_none());
    let nothing = reading.edits.is_empty() && reading.problems.is_empty();
    if nothing
        && let Some(usual) = tag_dialects::with_usual_tags(reply)
        && let Some(renamed) = detect::detect_renamed(source)
    {
        return read_reply(&ReplySource { reply: &usual, ..*source }, format.map(|_| renamed));
    }
    if nothing
        && let Some(other) = detect_in(source)
        && other != chosen
        && !matches!(other, Format::Whole | Format::Lazy)
    {
        return read_as(source, other, false);
    }
    if format.is_none() && matches!(chosen, Format::Whole | Format::Lazy) {
        let doubtful: Vec<BlockProblem> =
            reading.edits.iter().filter_map(|edit| whole_files::partial_file_problem(source, edit)).collect();
        reading.problems.extend(doubtful);
    }
    if format.is_none() {
        if !matches!(chosen, Format::Whole | Format::Lazy) {
            read_whole_files(&mut reading, source);
        }
        refuse_second_format(&mut reading, source, chosen);
    }
    reading
}

fn read_as(source: &ReplySource<'_>, format: Format, detected: bool) -> ParsedReply {
    match format {
        Format::Edit => {
            let blocks = parse_blocks(source.reply);
            ParsedReply {
                format: Some(Format::Edit),
                edits: blocks.edits,
                problems: blocks.problems,
                prose: blocks.prose,
            }
        }
        Format::Blocks => search_replace::read(source),
        Format::Udiff => udiff::read(source),
        Format::Patch => v4a::read(source),
        Format::Whole => whole_files::read(source, false, detected),
        Format::Lazy => whole_files::read(source, true, detected),
        Format::Tool => tool_arguments::read(source),
    }
}

/// Reads the whole files that stand beside edits in another format: new ones, and those of which a
/// block has most. What else stands in a named fence there explains the edits.
fn read_whole_files(reading: &mut ParsedReply, source: &ReplySource<'_>) {
    let prose = reading.prose.clone();
    let beside = ReplySource { reply: &prose, ..*source };
    let Some(format @ (Format::Whole | Format::Lazy)) = detect_in(&beside) else { return };
    let files = read_as(&beside, format, true);
    let named: Vec<RelPath> = reading.edits.iter().map(|edit| edit.path.clone()).collect();
    for edit in files.edits {
        let has_text = |op: &EditOp| match op {
            EditOp::Rewrite { content, .. } | EditOp::Lazy { content, .. } => !content.trim().is_empty(),
            _ => false,
        };
        let whole =
            edit.ops.iter().all(has_text) && whole_files::partial_file_problem(&beside, &edit).is_none();
        if whole && !named.contains(&edit.path) {
            reading.edits.push(edit);
        }
    }
    let is_other = |subject: &String| !named.iter().any(|path| path.to_string() == *subject);
    let cut_off = files.problems.into_iter().filter(|problem| {
        problem.kind == ProblemKind::Incomplete && problem.subject.as_ref().is_some_and(is_other)
    });
    reading.problems.extend(cut_off);
    reading.prose = files.prose;
}

/// Says that the text around the edits has edits in another format.
fn refuse_second_format(reading: &mut ParsedReply, source: &ReplySource<'_>, chosen: Format) {
    let second = detect(&reading.prose).filter(|other| match other {
        Format::Whole | Format::Lazy => false,
        // JSON with words of edits may be anything; with a file and both texts it is one.
        Format::Tool => {
            has_named_edit(&ReplySource { reply: &reading.prose, path: None, ..*source }, &reading.edits)
        }
        // A hunk that no patch of the reply has.
        Format::Patch => true,
        Format::Udiff if *other != chosen => {
            let shown = udiff::read(&ReplySource { reply: &reading.prose, path: None, ..*source });
            !shown.problems.is_empty() || !recap::repeats_edits(&shown.edits, &reading.edits)
        }
        other => *other != chosen,
    });
    let beside = ReplySource { reply: &reading.prose, ..*source };
    let has_labelled_texts = || {
        let shown = labelled_texts::read_all(&beside);
        !shown.problems.is_empty()
            || (!shown.edits.is_empty() && !recap::repeats_edits(&shown.edits, &reading.edits))
    };
    let has_block =
        || search_replace::has_named_conflict(&beside) || search_replace::has_stray_mark(beside.reply);
    let second = second
        .or_else(|| detect::detect_renamed(&beside))
        .or_else(|| (has_block() || has_labelled_texts()).then_some(Format::Blocks))
        .or_else(|| text_calls::has_unread_edit(&reading.prose).then_some(Format::Tool));
    if let Some(other) = second {
        let message = if other == chosen {
            format!(
                "the reply has further edits in the format `{chosen}`, which were not read: send all in one form"
            )
        } else {
            format!(
                "the reply has edits in the format `{chosen}` and also in `{other}`, which were not read: send all in one"
            )
        };
        let problem = BlockProblem { kind: ProblemKind::Malformed, line: 1, subject: None, message };
        reading.problems.push(problem);
    }
}

/// Returns true if a text has the arguments of a tool that name a file and what is done to it. A
/// file with the content that it has, or that one of the `edits` is for, is only quoted, and a
/// content without a line break is what somebody else returned.
fn has_named_edit(source: &ReplySource<'_>, edits: &[Edit]) -> bool {
    let is_quoted = |edit: &Edit, op: &EditOp| match op {
        EditOp::Rewrite { content, .. } => {
            let own = source.files.text(&edit.path).ok().flatten();
            !content.contains('\n')
                || edits.iter().any(|other| other.path == edit.path)
                || own.is_some_and(|own| own.trim_end() == content.trim_end())
        }
        EditOp::Lazy { .. } => true,
        _ => false,
    };
    tool_arguments::read(source).edits.iter().any(|edit| edit.ops.iter().any(|op| !is_quoted(edit, op)))
}
