//! New text in the file's own indentation and line endings.

use std::collections::HashMap;

use journeyman_text_diff::{DiffOp, diff_within};

use super::refusal::refuse_rewrite;
use crate::lines::{first_line_break, split_indent, split_with_breaks};
use crate::lost_lines::is_distinctive;
use crate::outcome::Refusal;
use crate::placement::indent::{IndentMap, IndentStyles};

/// Lines on both sides that are aligned to keep the file's own bytes of those that stay; of more,
/// only the first and last ones.
const MAX_ALIGNED_LINES: usize = 4_000;

/// The style in which text is carried over into the file.
pub(super) struct FileStyle {
    indents: IndentMap,
    /// Two depths of the new text are one of the file's.
    merges_levels: bool,
    line_break: &'static str,
}

impl FileStyle {
    /// Learns from lines (new text's, file's) that are one.
    pub(super) fn learn_from(lines: &[(&str, &str)], given: &str, file: &str) -> Self {
        let styles = IndentStyles::learn_styles(given.lines(), file);
        let mut lines = lines.to_vec();
        // Lines that are all outermost don't show how the two indent.
        let level = given
            .lines()
            // The lines of a comment are a blank deeper than its first.
            .filter(|line| !line.starts_with(" *"))
            .map(|line| split_indent(line).0)
            .filter(|indent| !indent.is_empty())
            .min_by_key(|indent| indent.len());
        let outermost = |lines: &[(&str, &str)]| {
            lines.iter().all(|(from, to)| split_indent(from).0.is_empty() && split_indent(to).0.is_empty())
        };
        if level.is_some() && outermost(&lines) {
            lines.extend(reindented_lines(given, file));
        }
        let (one, other) = (format!("{}x", level.unwrap_or_default()), styles.indent_unit() + "x");
        let tabs = |line: &str| line.starts_with('\t');
        if level.is_some() && tabs(&one) != tabs(&other) && outermost(&lines) {
            lines.push((&one, &other));
        }
        Self {
            indents: IndentMap::learn_map(lines.iter().copied(), &[], styles),
            merges_levels: merges_levels(&lines),
            line_break: first_line_break(file),
        }
    }

    pub(super) fn line_break(&self) -> &'static str {
        self.line_break
    }

    /// The file's indentation for one of the new text.
    pub(super) fn file_indent(&self, given: &str) -> Result<String, Refusal> {
        let own = self.indents.map_indent(given, None);
        own.filter(|_| !self.merges_levels || self.indents.is_identity())
            .ok_or_else(|| refuse_rewrite("its indentation doesn't fit the file's; indent it as the file is"))
    }

    /// A new text whose first line begins within a line.
    pub(super) fn reindent_following_lines(&self, text: &str) -> Result<String, Refusal> {
        let mut out = String::with_capacity(text.len());
        for (at, (line, _)) in split_with_breaks(text).into_iter().enumerate() {
            if at == 0 {
                out.push_str(line);
                continue;
            }
            out.push_str(self.line_break);
            let (indent, rest) = split_indent(line);
            if rest.is_empty() {
                // Blanks on a blank line mean nothing; where nothing is carried over they stay.
                out.push_str(if self.indents.is_identity() { indent } else { "" });
                continue;
            }
            out.push_str(&self.file_indent(indent)?);
            out.push_str(rest);
        }
        Ok(out)
    }

    /// A new version of a text of the file: lines that stay are the file's own bytes.
    pub(super) fn rewrite_text(&self, was: &str, is: &str) -> Result<String, Refusal> {
        let new = self.reindent_following_lines(is)?;
        let (old_lines, new_lines) = (split_with_breaks(was), split_with_breaks(&new));
        let plain = |lines: &[(&str, &str)]| -> Vec<String> {
            lines.iter().map(|(line, _)| line.trim_end().to_owned()).collect()
        };
        let (old, fresh) = (plain(&old_lines), plain(&new_lines));
        if old == fresh {
            return Ok(was.to_owned());
        }
        let ops = diff_within(&old, &fresh, MAX_ALIGNED_LINES);
        let mut lines: Vec<(&str, &str)> = Vec::with_capacity(fresh.len());
        for op in &ops {
            match *op {
                DiffOp::Equal { old_index, len, .. } => {
                    lines.extend(old_lines.iter().skip(old_index).take(len))
                }
                _ => lines.extend(
                    new_lines
                        .iter()
                        .skip(op.new_range().start)
                        .take(op.new_range().len())
                        .map(|(line, _)| (*line, "")),
                ),
            }
        }
        let last = lines.len().saturating_sub(1);
        let mut out = String::with_capacity(new.len());
        for (at, (line, own)) in lines.iter().enumerate() {
            out.push_str(line);
            if at < last {
                out.push_str(if own.is_empty() { self.line_break } else { own });
            }
        }
        Ok(out)
    }
}

/// Lines of the new text that the file has at another depth alone, with the file's, if it has none
/// of the indented ones as they are.
pub(super) fn reindented_lines<'t>(given: &'t str, file: &'t str) -> Vec<(&'t str, &'t str)> {
    let mut own: HashMap<&str, Option<&str>> = HashMap::new();
    for line in file.lines().filter(|line| is_distinctive(line)) {
        own.entry(line.trim())
            .and_modify(|known| *known = known.filter(|known| split_indent(known).0 == split_indent(line).0))
            .or_insert(Some(line));
    }
    let shallowest = given
        .lines()
        .map(|line| split_indent(line).0)
        .filter(|indent| !indent.is_empty())
        .min_by_key(|indent| indent.len());
    let mut moved = Vec::new();
    for line in given.lines().filter(|line| is_distinctive(line) && line.starts_with([' ', '\t'])) {
        match own.get(line.trim()) {
            Some(Some(found)) if split_indent(found).0 != split_indent(line).0 => moved.push((line, *found)),
            Some(Some(_)) => return Vec::new(),
            _ => {}
        }
    }
    // Lines in a new block are deeper, and the block's own aren't the file's.
    let begins = moved.iter().any(|(line, _): &(&str, &str)| Some(split_indent(line).0) == shallowest);
    if begins { moved } else { Vec::new() }
}

/// Returns true if lines at two depths of the new text are at one of the file's.
fn merges_levels(lines: &[(&str, &str)]) -> bool {
    let mut given: HashMap<&str, &str> = HashMap::new();
    lines.iter().filter(|(from, to)| !from.trim().is_empty() && !to.trim().is_empty()).any(|(from, to)| {
        let (from, to) = (split_indent(from).0, split_indent(to).0);
        *given.entry(to).or_insert(from) != from
    })
}
