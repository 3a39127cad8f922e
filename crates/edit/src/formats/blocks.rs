//! The text protocol: `<edit>` and `<call>` blocks in a model's reply.

use crate::edit::Edit;
use crate::formats::block::{BlockFault, BlockProblem, ProblemKind, ReadBlock, TextCall};
use crate::formats::edit_block;
use crate::formats::tags::{self, Tag};

/// One thing the reply asks for, in the reply's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An index into [`Blocks::edits`].
    Edit(usize),
    /// An index into [`Blocks::calls`].
    Call(usize),
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blocks {
    /// The edits, in order. Only whole blocks get here.
    pub edits: Vec<Edit>,
    /// The calls, in order.
    pub calls: Vec<TextCall>,
    /// Both, in the reply's order.
    pub items: Vec<Item>,
    /// The text around the blocks.
    pub prose: String,
    /// The blocks that are not applied.
    pub problems: Vec<BlockProblem>,
}

/// A longer reply is not read: no model's output limit is near it.
pub(crate) const MAX_REPLY_BYTES: usize = 16 << 20;
/// More blocks than this in one reply are a loop, not work.
pub(crate) const MAX_BLOCKS: usize = 500;

/// Reads the blocks of a reply. Never fails: what can't be read is a problem, what isn't a block is
/// prose.
///
/// A block counts only when it is whole, so that a reply cut off anywhere yields only edits that
/// were finished. (Content that itself has a line of closing tags can end a block too early: such
/// content has to be fenced.)
#[must_use]
pub fn parse_blocks(reply: &str) -> Blocks {
    let mut blocks = Blocks::default();
    if reply.len() > MAX_REPLY_BYTES {
        let message = format!("the reply has {} bytes; at most {MAX_REPLY_BYTES} are read", reply.len());
        blocks.problems.push(BlockProblem { kind: ProblemKind::TooMuch, line: 1, subject: None, message });
        return blocks;
    }
    let mut prose = Vec::new();
    let (mut at, mut prose_from) = (0, 0);
    let mut starts = BlockStarts::new(reply);
    while let Some(found) = starts.next_from(at) {
        let Some(read) = read_block_at(reply, found) else {
            at = found + 1;
            continue;
        };
        prose.push(reply.get(prose_from..found).unwrap_or_default());
        let end = match read {
            ReadBlock::Edit(edit, end) => {
                blocks.items.push(Item::Edit(blocks.edits.len()));
                blocks.edits.push(edit);
                end
            }
            ReadBlock::Call(call, end) => {
                blocks.items.push(Item::Call(blocks.calls.len()));
                blocks.calls.push(call);
                end
            }
            ReadBlock::Fault(fault) => {
                blocks.problems.push(fault.to_problem(reply, found));
                fault.end.unwrap_or(reply.len())
            }
        };
        at = end.max(found + 1);
        prose_from = at;
        if blocks.items.len() + blocks.problems.len() > MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} blocks; the rest was not read");
            let fault = BlockFault { kind: ProblemKind::TooMuch, subject: None, message, end: None };
            blocks.problems.push(fault.to_problem(reply, at));
            prose_from = reply.len();
            break;
        }
    }
    prose.push(reply.get(prose_from..).unwrap_or_default());
    blocks.prose = join_prose(&mut prose);
    blocks
}

/// Iterator over possible beginnings of blocks. Each of the two words is searched once.
struct BlockStarts<'a> {
    reply: &'a [u8],
    words: [memchr::memmem::Finder<'static>; 2],
    next: [Option<usize>; 2],
}

impl<'a> BlockStarts<'a> {
    fn new(reply: &'a str) -> Self {
        let words = ["<edit", "<call"].map(memchr::memmem::Finder::new);
        let reply = reply.as_bytes();
        let next = words.each_ref().map(|word| word.find(reply));
        Self { reply, words, next }
    }

    /// The first from `at` on.
    fn next_from(&mut self, at: usize) -> Option<usize> {
        for (word, next) in self.words.iter().zip(&mut self.next) {
            if next.is_some_and(|next| next < at) {
                *next = self.reply.get(at..).and_then(|rest| word.find(rest)).map(|offset| at + offset);
            }
        }
        self.next.iter().flatten().min().copied()
    }
}

/// The block that begins at a `<`, or `None` where it is prose.
fn read_block_at(reply: &str, at: usize) -> Option<ReadBlock> {
    let rest = reply.get(at..)?;
    if rest.starts_with("<edit") {
        return edit_block::read(reply, at);
    }
    if !rest.starts_with("<call") {
        return None;
    }
    match tags::parse_opening_tag(reply, at, "call") {
        Some(tag) => {
            let tool = tags::attribute_value(&tag.attributes, "tool")?.trim().to_owned();
            Some(read_call(reply, at, &tag, tool))
        }
        None if rest.starts_with("<call tool=") && rest.get(1..)?.find(['<', '>']).is_none() => {
            Some(ReadBlock::Fault(BlockFault::incomplete(None, "the tag's `>`")))
        }
        None => None,
    }
}

/// Reads a call from its opening tag. JSON is read as JSON, so that a closing tag in one of its
/// strings is text.
fn read_call(reply: &str, at: usize, tag: &Tag, tool: String) -> ReadBlock {
    let done = |input: &str, malformed: Option<String>, end: usize| {
        let input = if input.is_empty() { "{}" } else { input };
        let raw = reply.get(at..end).unwrap_or_default().to_owned();
        ReadBlock::Call(TextCall { tool: tool.clone(), input_json: input.to_owned(), raw, malformed }, end)
    };
    if tag.closed {
        return done("", None, tag.end);
    }
    let start = tags::skip_blanks(reply, tag.end);
    let body = reply.get(start..).unwrap_or_default();
    let mut from = start;
    if body.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(body).into_iter::<serde_json::Value>();
        match values.next() {
            Some(Ok(_)) => {
                let length = values.byte_offset();
                let after = tags::skip_blanks(reply, start + length);
                if let Some(end) = tags::closing_tag_end(reply, after, "call") {
                    return done(body.get(..length).unwrap_or_default(), None, end);
                }
                from = start + length;
            }
            // Any closing tag is still inside the arguments.
            Some(Err(error)) if error.is_eof() => {
                return ReadBlock::Fault(BlockFault::incomplete(Some(tool), "the end of the arguments"));
            }
            _ => {}
        }
    }
    let closing = loop {
        match reply.get(from..).and_then(|rest| rest.find("</call")) {
            None => break None,
            Some(offset) => match tags::closing_tag_end(reply, from + offset, "call") {
                Some(end) => break Some((from + offset, end)),
                None => from += offset + 1,
            },
        }
    };
    let Some((until, end)) = closing else {
        return ReadBlock::Fault(BlockFault::incomplete(Some(tool), "</call>"));
    };
    let input = strip_fence(reply.get(start..until).unwrap_or_default().trim());
    let malformed = match serde_json::from_str::<serde_json::Value>(input) {
        Ok(value) if value.is_object() => None,
        Ok(_) => Some("the arguments are not a JSON object".to_owned()),
        Err(_) if input.is_empty() => None,
        Err(error) => Some(error.to_string()),
    };
    done(input, malformed, end)
}

/// Content without the markdown fence around it.
fn strip_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner.trim())
}

/// The prose between blocks, without the markdown fences that stood around them.
pub(crate) fn join_prose(pieces: &mut [&str]) -> String {
    let mut open: Option<usize> = None;
    for index in 0..pieces.len() {
        let Some(piece) = pieces.get(index).map(|piece| piece.trim()) else { continue };
        let closes = piece.lines().next().is_some_and(|line| line.trim() == "```");
        if let (Some(opener), true) = (open, closes) {
            let before = pieces.get(opener).map_or("", |piece| piece.trim());
            let kept = before.rfind('\n').map_or("", |at| before.get(..at).unwrap_or_default());
            if let Some(slot) = pieces.get_mut(opener) {
                *slot = kept;
            }
            if let Some(slot) = pieces.get_mut(index) {
                *slot = piece.get("```".len()..).unwrap_or_default();
            }
        }
        if !piece.is_empty() {
            let last = piece.lines().next_back().unwrap_or_default().trim();
            let opens = last.strip_prefix("```").is_some_and(|language| {
                language.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '+'))
            });
            // A single line of backticks that just closed a fence doesn't open the next.
            open = (opens && (piece.contains('\n') || !closes)).then_some(index);
        }
    }
    let kept: Vec<&str> = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    kept.join("\n\n")
}
