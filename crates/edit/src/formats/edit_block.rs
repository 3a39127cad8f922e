//! One `<edit>` block: its tags, their literal content, and what they come to.

use std::ops::Range;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, Replace};
use crate::formats::block::{Fault, ProblemKind, Read};
use crate::formats::tags::{self, TAGS, Tag, content, skip_blanks};

/// A fence is a word, not a text.
const MAX_FENCE: usize = 64;

/// Reads the block that begins with `<edit` at `at`; `None` where that is prose.
pub(crate) fn read(reply: &str, at: usize) -> Option<Read> {
    let tag = tags::opening(reply, at, "edit").filter(|tag| !tag.closed)?;
    let first = skip_blanks(reply, tag.end);
    let rest = reply.get(first..)?;
    if rest.is_empty() || "<file>".starts_with(rest) {
        return Some(Read::Fault(Fault::incomplete(None, "</edit>")));
    }
    if !TAGS.iter().any(|name| tags::opening(reply, first, name).is_some()) {
        return None;
    }
    let mut body =
        Body { reply, file: None, search: None, ops: Vec::new(), deletes: false, description: None };
    Some(match body.read(first) {
        Ok(end) => match body.finish(end) {
            Ok(edit) => Read::Edit(edit, end),
            Err(fault) => Read::Fault(fault),
        },
        Err(fault) => Read::Fault(fault),
    })
}

/// A block half read.
struct Body<'a> {
    reply: &'a str,
    file: Option<&'a str>,
    search: Option<&'a str>,
    ops: Vec<EditOp>,
    deletes: bool,
    description: Option<&'a str>,
}

impl<'a> Body<'a> {
    /// Reads to `</edit>` and gives the position after it.
    fn read(&mut self, mut at: usize) -> Result<usize, Fault> {
        loop {
            at = skip_blanks(self.reply, at);
            if let Some(end) = tags::closing(self.reply, at, "edit") {
                return Ok(end);
            }
            let known = TAGS.iter().find_map(|name| Some((*name, tags::opening(self.reply, at, name)?)));
            let Some((name, tag)) = known else {
                return Err(self.malformed(at, "there is text between its tags that belongs to none of them"));
            };
            at = self.element(name, &tag)?;
        }
    }

    /// Takes in one element and gives the position after it.
    fn element(&mut self, name: &'static str, tag: &Tag) -> Result<usize, Fault> {
        let (inner, end) = if tag.closed { ("", tag.end) } else { self.content(name, tag)? };
        match name {
            "file" if self.file.is_some() => return Err(self.malformed(end, "it names two files")),
            "file" => self.file = Some(inner.trim()),
            "search" if self.search.is_some() => {
                return Err(self.malformed(end, "two <search> follow each other without a <replace>"));
            }
            "search" => self.search = Some(inner),
            "replace" => {
                let content = inner.to_owned();
                self.ops.push(match self.search.take() {
                    Some(search) => EditOp::Replace(Replace {
                        search: search.to_owned(),
                        replace: content,
                        whole_lines: true,
                        ..Replace::default()
                    }),
                    None => EditOp::Rewrite { content },
                });
            }
            "delete" => self.deletes = true,
            "rename" => {
                let to = self.path(inner.trim(), end)?;
                self.ops.push(EditOp::Rename { to });
            }
            _ => self.description = Some(inner.trim()),
        }
        Ok(end)
    }

    /// The content of an element and the position after its closing tag.
    fn content(&self, name: &'static str, tag: &Tag) -> Result<(&'a str, usize), Fault> {
        let fence = tags::attribute(&tag.attributes, "fence");
        let raw = match fence {
            Some("") => return Err(self.malformed(tag.end, "a fence is empty")),
            Some(fence) if fence.len() > MAX_FENCE => {
                return Err(self.malformed(tag.end, "a fence has more than 64 bytes"));
            }
            Some(fence) => self.fenced(name, tag.end, fence),
            None => self.unfenced(name, tag.end),
        };
        let Some(raw) = raw else {
            let advice = if fence.is_some() {
                ""
            } else {
                " (content that itself has such tags has to be fenced: <replace fence=\"EOT\"> … EOT</replace>)"
            };
            let missing = format!("{}</{name}> and </edit>{advice}", fence.unwrap_or_default());
            return Err(Fault::incomplete(self.subject(), &missing));
        };
        let inner = self.reply.get(tag.end..raw.start).unwrap_or_default();
        let foreign = name == "replace"
            && fence.is_none()
            && inner.matches("</search>").count() > inner.matches("<search").count();
        if foreign {
            return Err(self.malformed(raw.end, "the replacement has a </search> that nothing opens"));
        }
        Ok((content(inner), raw.end))
    }

    /// Returns the end of a fenced content: (the fence's position, the position after the closing
    /// tag).
    fn fenced(&self, name: &str, from: usize, fence: &str) -> Option<Range<usize>> {
        let rest = self.reply.get(from..)?;
        rest.match_indices(fence).find_map(|(offset, _)| {
            let end = tags::closing(self.reply, from + offset + fence.len(), name)?;
            Some(from + offset..end)
        })
    }

    /// The closing tag of an unfenced content: the first after which the block can go on. A closing
    /// tag that is followed by anything else is content.
    fn unfenced(&self, name: &'static str, from: usize) -> Option<Range<usize>> {
        let follows = |after: &[&str], at: usize| {
            let at = skip_blanks(self.reply, at);
            after.iter().any(|name| tags::opening(self.reply, at, name).is_some())
        };
        let ends = |at: usize| tags::closing(self.reply, skip_blanks(self.reply, at), "edit").is_some();
        let mut second_best = None;
        for found in tags::closings(self.reply, from, name) {
            match name {
                "search" if follows(&["replace"], found.end) => return Some(found),
                "replace" if ends(found.end) => return Some(self.stretched(found)),
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
    fn stretched(&self, first: Range<usize>) -> Range<usize> {
        let end_of =
            |found: &Range<usize>| tags::closing(self.reply, skip_blanks(self.reply, found.end), "edit");
        let Some(mut from) = end_of(&first) else { return first };
        let region = self.reply.get(..next_block(self.reply, from)).unwrap_or(self.reply);
        let mut last = first;
        for found in tags::closings(region, from, "replace") {
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
    fn finish(mut self, end: usize) -> Result<Edit, Fault> {
        let Some(file) = self.file else {
            return Err(self.malformed_at(end, "it has no <file>"));
        };
        let path = self.path(file, end)?;
        if self.search.is_some() {
            return Err(
                self.malformed_at(end, "a <search> has no <replace>; to delete the text write <replace/>")
            );
        }
        let count = |wanted: fn(&EditOp) -> bool| self.ops.iter().filter(|op| wanted(op)).count();
        let rewrites = count(|op| matches!(op, EditOp::Rewrite { .. }));
        let renames = count(|op| matches!(op, EditOp::Rename { .. }));
        if self.deletes && !self.ops.is_empty() {
            return Err(self.malformed_at(end, "it both deletes the file and changes it"));
        }
        if rewrites > 1 || (rewrites == 1 && self.ops.len() > 1 + renames) {
            return Err(
                self.malformed_at(end, "it has a <replace> without <search> (the whole file) beside others")
            );
        }
        if renames > 1 {
            return Err(self.malformed_at(end, "it renames the file twice"));
        }
        if self.deletes {
            self.ops.push(EditOp::Delete);
        }
        if self.ops.is_empty() {
            return Err(
                self.malformed_at(end, "it changes nothing: give <search> and <replace>, or <delete/>")
            );
        }
        let description = self.description.filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Edit { path, ops: self.ops, description })
    }

    /// A path that the format names.
    fn path(&self, given: &str, end: usize) -> Result<RelPath, Fault> {
        let wrapped = given.strip_prefix('`').and_then(|inner| inner.strip_suffix('`'));
        let given = wrapped.unwrap_or(given);
        let fault = |message: String| Fault {
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
        tags::closings(self.reply, from, "edit").next().map(|found| found.end)
    }

    fn malformed(&self, from: usize, what: &str) -> Fault {
        match self.block_end(from) {
            Some(end) => self.malformed_at(end, what),
            None => Fault::incomplete(self.subject(), "</edit>"),
        }
    }

    fn malformed_at(&self, end: usize, what: &str) -> Fault {
        let kind = ProblemKind::Malformed;
        Fault { kind, subject: self.subject(), message: what.to_owned(), end: Some(end) }
    }
}

/// Returns the offset of the next block, or the end of the reply.
fn next_block(reply: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = reply.get(at..).and_then(|rest| rest.find('<')).map(|offset| at + offset) {
        let call = tags::opening(reply, found, "call").is_some_and(|tag| tag.attributes.starts_with("tool"));
        if call || tags::begins_block(reply, found) {
            return found;
        }
        at = found + 1;
    }
    reply.len()
}
