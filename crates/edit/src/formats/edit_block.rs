//! One `<edit>` block: its tags, their literal content, and what they come to.

use std::ops::Range;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, Replace};
use crate::formats::block::{BlockFault, ProblemKind, ReadBlock};
use crate::formats::tags::{self, EDIT_BLOCK_TAGS, Tag, skip_blanks, trim_content_breaks};

/// A fence is a word, not a text.
const MAX_FENCE_BYTES: usize = 64;
/// Attributes of `<edit>` that name its file, where a model puts it there.
const FILE_ATTRIBUTES: [&str; 6] = ["path", "file", "filename", "file_path", "filepath", "name"];

/// Reads the block that begins with `<edit` at `at`; `None` where that is prose.
pub(crate) fn read(reply: &str, at: usize) -> Option<ReadBlock> {
    let tag = tags::parse_opening_tag(reply, at, "edit").filter(|tag| !tag.closed)?;
    let first = skip_blanks(reply, tag.end);
    let rest = reply.get(first..)?;
    if rest.is_empty() || "<file>".starts_with(rest) {
        return Some(ReadBlock::Fault(BlockFault::incomplete(None, "</edit>")));
    }
    if !tags::begins_edit_block(reply, at) {
        return None;
    }
    let attributes = reply.get(at + "<edit".len()..tag.end - ">".len()).unwrap_or_default();
    let attribute =
        FILE_ATTRIBUTES.iter().find_map(|name| tags::attribute_value(attributes, name)).map(str::trim);
    let mut body = BlockReader {
        reply,
        file: None,
        attribute,
        search: None,
        ops: Vec::new(),
        deletes: false,
        description: None,
    };
    Some(match body.read_body(first) {
        Ok(end) => match body.into_edit(end) {
            Ok(edit) => ReadBlock::Edit(edit, end),
            Err(fault) => ReadBlock::Fault(fault),
        },
        Err(fault) => ReadBlock::Fault(fault),
    })
}

/// A block half read.
struct BlockReader<'a> {
    reply: &'a str,
    file: Option<&'a str>,
    search: Option<&'a str>,
    /// A file that an attribute of `<edit>` names.
    attribute: Option<&'a str>,
    ops: Vec<EditOp>,
    deletes: bool,
    description: Option<&'a str>,
}

impl<'a> BlockReader<'a> {
    /// Reads to `</edit>` and gives the position after it.
    fn read_body(&mut self, mut at: usize) -> Result<usize, BlockFault> {
        loop {
            at = skip_blanks(self.reply, at);
            if let Some(end) = tags::closing_tag_end(self.reply, at, "edit") {
                return Ok(end);
            }
            let known = EDIT_BLOCK_TAGS
                .iter()
                .find_map(|name| Some((*name, tags::parse_opening_tag(self.reply, at, name)?)));
            let Some((name, tag)) = known else {
                return Err(
                    self.malformed_fault(at, "there is text between its tags that belongs to none of them")
                );
            };
            at = self.read_element(name, &tag)?;
        }
    }

    /// Takes in one element and gives the position after it.
    fn read_element(&mut self, name: &'static str, tag: &Tag) -> Result<usize, BlockFault> {
        let (inner, end) = if tag.closed { ("", tag.end) } else { self.read_content(name, tag)? };
        match name {
            "file" if self.file.is_some() => return Err(self.malformed_fault(end, "it names two files")),
            "file" => self.file = Some(inner.trim()),
            "search" if self.search.is_some() => {
                return Err(self.malformed_fault(end, "two <search> follow each other without a <replace>"));
            }
            "search" => self.search = Some(inner),
            "replace" => {
                let mut content = inner;
                if let Some(search) = self.search
                    && let Some(file) = self.file.or(self.attribute)
                    && let Some((old, new)) = tags::literal_texts(file, search, inner)
                {
                    (self.search, content) = (Some(old), new);
                }
                let content = content.to_owned();
                self.ops.push(match self.search.take() {
                    Some(search) => EditOp::Replace(Replace {
                        search: search.to_owned(),
                        replace: content,
                        whole_lines: true,
                        ..Replace::default()
                    }),
                    None => EditOp::Rewrite { content, exact: false },
                });
            }
            "delete" => self.deletes = true,
            "rename" => {
                let to = self.parse_path(inner.trim(), end)?;
                self.ops.push(EditOp::Rename { to });
            }
            _ => self.description = Some(inner.trim()),
        }
        Ok(end)
    }

    /// The content of an element and the position after its closing tag.
    fn read_content(&self, name: &'static str, tag: &Tag) -> Result<(&'a str, usize), BlockFault> {
        let fence = tags::attribute_value(&tag.attributes, "fence");
        let raw = match fence {
            Some("") => return Err(self.malformed_fault(tag.end, "a fence is empty")),
            Some(fence) if fence.len() > MAX_FENCE_BYTES => {
                return Err(self.malformed_fault(tag.end, "a fence has more than 64 bytes"));
            }
            Some(fence) => self.find_fenced_end(name, tag.end, fence),
            None => self.find_unfenced_end(name, tag.end),
        };
        let Some(raw) = raw else {
            let advice = if fence.is_some() {
                ""
            } else {
                " (content that itself has such tags has to be fenced: <replace fence=\"EOT\"> … EOT</replace>)"
            };
            let missing = format!("{}</{name}> and </edit>{advice}", fence.unwrap_or_default());
            return Err(BlockFault::incomplete(self.subject(), &missing));
        };
        let inner = self.reply.get(tag.end..raw.start).unwrap_or_default();
        let foreign = name == "replace"
            && fence.is_none()
            && inner.matches("</search>").count() > inner.matches("<search").count();
        if foreign {
            return Err(self.malformed_fault(raw.end, "the replacement has a </search> that nothing opens"));
        }
        Ok((trim_content_breaks(inner), raw.end))
    }

    /// Returns the end of a fenced content: (the fence's position, the position after the closing
    /// tag).
    fn find_fenced_end(&self, name: &str, from: usize, fence: &str) -> Option<Range<usize>> {
        let rest = self.reply.get(from..)?;
        rest.match_indices(fence).find_map(|(offset, _)| {
            let end = tags::closing_tag_end(self.reply, from + offset + fence.len(), name)?;
            Some(from + offset..end)
        })
    }

    /// The closing tag of an unfenced content: the first after which the block can go on. A closing
    /// tag that is followed by anything else is content.
    fn find_unfenced_end(&self, name: &'static str, from: usize) -> Option<Range<usize>> {
        let follows = |after: &[&str], at: usize| {
            let at = skip_blanks(self.reply, at);
            after.iter().any(|name| tags::parse_opening_tag(self.reply, at, name).is_some())
        };
        let ends =
            |at: usize| tags::closing_tag_end(self.reply, skip_blanks(self.reply, at), "edit").is_some();
        let mut second_best = None;
        for found in tags::closing_tags(self.reply, from, name) {
            match name {
                "search" if follows(&["replace"], found.end) => return Some(found),
                "replace" if ends(found.end) => return Some(self.extend_to_later_tag(found)),
                "search" | "replace" => {
                    let goes_on = follows(&["search", "file", "rename", "description", "delete"], found.end);
                    if goes_on && name == "replace" {
                        return Some(found);
                    }
                    if second_best.is_none() && (goes_on || ends(found.end)) {
                        second_best = Some(found);
                    }
                }
                _ => return Some(found),
            }
        }
        second_best
    }

    /// The block seems to end with this closing tag. If, before any other block begins, text goes
    /// on and is closed once more, the first closing tags were content.
    fn extend_to_later_tag(&self, first: Range<usize>) -> Range<usize> {
        let end_of = |found: &Range<usize>| {
            tags::closing_tag_end(self.reply, skip_blanks(self.reply, found.end), "edit")
        };
        let Some(mut from) = end_of(&first) else { return first };
        let region = self.reply.get(..next_block(self.reply, from)).unwrap_or(self.reply);
        let mut last = first;
        for found in tags::closing_tags(region, from, "replace") {
            let between = region.get(from..found.start).unwrap_or_default();
            match end_of(&found) {
                // Closing tags merely written twice are no content.
                Some(_) if between.trim().is_empty() => break,
                Some(end) => (last, from) = (found, end),
                None => {}
            }
        }
        last
    }

    /// The edit that a whole block comes to.
    fn into_edit(mut self, end: usize) -> Result<Edit, BlockFault> {
        let named = self.attribute.filter(|name| !name.is_empty() && name.contains(['/', '.']));
        if let (Some(file), Some(named)) = (self.file, named)
            && file != named
        {
            return Err(self.malformed_fault_at(end, "it names two files"));
        }
        let Some(file) = self.file.or(named) else {
            return Err(self.malformed_fault_at(end, "it has no <file>"));
        };
        let path = self.parse_path(file, end)?;
        if self.search.is_some() {
            return Err(self.malformed_fault_at(
                end,
                "a <search> has no <replace>; to delete the text write <replace/>",
            ));
        }
        let count = |wanted: fn(&EditOp) -> bool| self.ops.iter().filter(|op| wanted(op)).count();
        let rewrites = count(|op| matches!(op, EditOp::Rewrite { .. }));
        let renames = count(|op| matches!(op, EditOp::Rename { .. }));
        if self.deletes && !self.ops.is_empty() {
            return Err(self.malformed_fault_at(end, "it both deletes the file and changes it"));
        }
        if rewrites > 1 || (rewrites == 1 && self.ops.len() > 1 + renames) {
            return Err(self.malformed_fault_at(
                end,
                "it has a <replace> without <search> (the whole file) beside others",
            ));
        }
        if renames > 1 {
            return Err(self.malformed_fault_at(end, "it renames the file twice"));
        }
        if self.deletes {
            self.ops.push(EditOp::Delete);
        }
        if self.ops.is_empty() {
            return Err(
                self.malformed_fault_at(end, "it changes nothing: give <search> and <replace>, or <delete/>")
            );
        }
        let description = self.description.filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Edit { path, ops: self.ops, description })
    }

    /// A path that the format names.
    fn parse_path(&self, given: &str, end: usize) -> Result<RelPath, BlockFault> {
        let wrapped = given.strip_prefix('`').and_then(|inner| inner.strip_suffix('`'));
        let given = wrapped.unwrap_or(given);
        let fault = |message: String| BlockFault {
            kind: ProblemKind::Path,
            subject: Some(given.escape_debug().to_string()),
            message,
            end: self.block_end(end),
        };
        if given.chars().any(char::is_control) {
            return Err(fault("the path has control characters".to_owned()));
        }
        RelPath::parse(given).map_err(|error| fault(error.to_string()))
    }

    fn subject(&self) -> Option<String> {
        self.file.map(|file| file.escape_debug().to_string())
    }

    /// Returns the offset at which reading continues after an unusable block.
    fn block_end(&self, from: usize) -> Option<usize> {
        let before = self.reply.get(..from).unwrap_or_default().trim_end();
        // `from` may be the very end of the block.
        if before.ends_with("</edit>") && from > 0 {
            return Some(from);
        }
        tags::closing_tags(self.reply, from, "edit").next().map(|found| found.end)
    }

    fn malformed_fault(&self, from: usize, what: &str) -> BlockFault {
        match self.block_end(from) {
            Some(end) => self.malformed_fault_at(end, what),
            None => BlockFault::incomplete(self.subject(), "</edit>"),
        }
    }

    fn malformed_fault_at(&self, end: usize, what: &str) -> BlockFault {
        let kind = ProblemKind::Malformed;
        BlockFault { kind, subject: self.subject(), message: what.to_owned(), end: Some(end) }
    }
}

/// Returns the offset of the next block, or the end of the reply.
fn next_block(reply: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = reply.get(at..).and_then(|rest| rest.find('<')).map(|offset| at + offset) {
        let call = tags::parse_opening_tag(reply, found, "call")
            .is_some_and(|tag| tag.attributes.starts_with("tool"));
        if call || tags::begins_edit_block(reply, found) {
            return found;
        }
        at = found + 1;
    }
    reply.len()
}
