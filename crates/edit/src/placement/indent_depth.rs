//! An exact match of one line that begins within the line's indentation: how deep the replacement's
//! further lines are.

use std::ops::Range;

use crate::lines::{line_at, split_indent};
use crate::outcome::Refusal;
use crate::placement::indent::IndentStyles;
use crate::placement::tokens::is_similar;

/// The widest level of a file's indentation that a line is carried over to.
const MAX_LEVEL_SPACES: usize = 4;
/// Ends of lines after which the next line is indented deeper.
const BLOCK_OPENERS: [char; 4] = ['{', '(', '[', ':'];
/// Beginnings of lines that continue the line before.
const CONTINUATION_STARTS: [&str; 7] = [".", "?", "&&", "||", "+", ":", "=>"];

/// The replacement with its further lines as deep as the file has the first; `None` where they are
/// that already, or where there is nothing to tell.
///
/// # Errors
/// [`Refusal::GuardedMismatch`] where they could be meant either way.
pub(super) fn align_following_lines(
    text: &str,
    span: &Range<usize>,
    search: &str,
    replacement: &str,
) -> Result<Option<String>, Refusal> {
    let before = text.get(..span.start).unwrap_or_default();
    let outer = before.get(before.rfind('\n').map_or(0, |at| at + 1)..).unwrap_or_default();
    let rest = text.get(span.end..).and_then(|after| after.split('\n').next()).unwrap_or_default();
    let one_line = !search.trim_end_matches(['\r', '\n']).contains('\n') && !search.trim().is_empty();
    let ends = rest.trim().is_empty() || search.ends_with('\n');
    if outer.is_empty() || !outer.trim().is_empty() || !one_line || !ends {
        return Ok(None);
    }
    let mut lines = replacement.split('\n').filter(|line| !line.trim().is_empty());
    let head = lines.next().unwrap_or_default();
    let further: Vec<&str> = lines.collect();
    let Some(next) = further.first() else { return Ok(None) };
    let given = split_indent(search).0;
    let own = format!("{outer}{given}");
    let shallowest = further.iter().map(|line| split_indent(line).0).min_by_key(|indent| indent.len());
    let shallowest = shallowest.unwrap_or_default();
    let goes_on = head.trim_end().ends_with(BLOCK_OPENERS)
        || CONTINUATION_STARTS.iter().any(|sign| next.trim_start().starts_with(sign));
    // The search text's visible indentation, or a line at the margin, is the base for the others.
    let relative = !given.is_empty()
        || shallowest.is_empty()
        || (goes_on && split_indent(next).0.len() <= own.len())
        || is_below_open_bracket(head, next);
    let at_margin = given.is_empty() && shallowest.is_empty() && !outer.is_empty();
    let styles = IndentStyles::learn_styles([search].into_iter().chain(replacement.split('\n')), text);
    if at_margin && closes_block_at_margin(replacement) {
        return if outer == styles.indent_unit() { Ok(None) } else { Err(refuse_unclear_depth(text, span)) };
    }
    // The line itself, further down at the margin, has lost as much as the first.
    let comes_back = || further.iter().any(|line| is_similar(line, search.trim()));
    if at_margin && has_paragraph_at_margin(replacement) && !comes_back() {
        return Err(refuse_unclear_depth(text, span));
    }
    if !relative {
        return if further.iter().all(|line| line.starts_with(&own)) {
            Ok(None)
        } else {
            Err(refuse_unclear_depth(text, span))
        };
    }
    let foreign = |line: &str| split_indent(line).0.chars().any(|c| !outer.contains(c));
    if further.iter().any(|line| foreign(line)) {
        return Err(refuse_unclear_depth(text, span));
    }
    // A wider one may be two levels at once.
    let knows_level = styles.indent_unit().len() <= MAX_LEVEL_SPACES;
    let deeper = |(nth, line): (usize, &str)| {
        if nth == 0 || line.trim().is_empty() {
            return line.to_owned();
        }
        let (indent, rest) = split_indent(line);
        // The distance to the search text's line, in the file's levels.
        let distance = styles.file_width(indent.len().abs_diff(given.len()));
        let width = distance.and_then(|distance| match indent.len() < given.len() {
            true => own.len().checked_sub(distance),
            false => Some(own.len() + distance),
        });
        match width.filter(|_| knows_level && own.bytes().all(|byte| byte == b' ')) {
            Some(width) => format!("{}{rest}", " ".repeat(width)),
            None => format!("{outer}{line}"),
        }
    };
    Ok(Some(replacement.split('\n').enumerate().map(deeper).collect::<Vec<_>>().join("\n")))
}

/// The replacement without the indentation of its first line, where that stands before the place
/// already: only the search text's first line has lost it, and the replacement is indented as the
/// file is. `None` where it isn't so.
pub(super) fn without_doubled_indent<'r>(
    text: &str,
    span: &Range<usize>,
    search: &str,
    replacement: &'r str,
) -> Option<&'r str> {
    let (first, further) = search.split_once('\n')?;
    let before = text.get(..span.start)?;
    let outer = before.get(before.rfind('\n').map_or(0, |at| at + 1)..)?;
    if outer.is_empty() || !outer.trim().is_empty() || !split_indent(first).0.is_empty() {
        return None;
    }
    let shallowest = |lines: &str| {
        let indents = lines.lines().filter(|line| !line.trim().is_empty()).map(|line| split_indent(line).0);
        indents.min_by_key(|indent| indent.len()).map(str::to_owned)
    };
    let (new_first, new_further) = replacement.split_once('\n').unwrap_or((replacement, ""));
    let is_so = shallowest(further).as_deref() == Some(outer)
        && split_indent(new_first).0 == outer
        && shallowest(new_further).is_none_or(|indent| indent == outer);
    is_so.then(|| replacement.get(outer.len()..)).flatten()
}

/// Returns true if a line begins below the first character behind a bracket that the line before
/// leaves open, as both are given.
fn is_below_open_bracket(line: &str, next: &str) -> bool {
    let mut open = Vec::new();
    for (column, sign) in (1..).zip(line.chars()) {
        match sign {
            '(' | '[' | '{' => open.push(column),
            ')' | ']' | '}' => drop(open.pop()),
            _ => {}
        }
    }
    open.contains(&split_indent(next).0.chars().count())
}

/// Extends the place over the blanks before it on its line, where the new text begins with a blank
/// line: they would be the blanks of that.
pub(super) fn without_blanks_before(text: &str, span: Range<usize>, new: &str) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let is_indent = before.get(line_start..).is_some_and(|blanks| blanks.trim().is_empty());
    if is_indent && new.starts_with(['\n', '\r']) { line_start..span.end } else { span }
}

/// Returns true if a further line at the margin begins by closing a block that began before the
/// text: it is one level less deep than the first, which therefore has lost its indentation alone.
fn closes_block_at_margin(replacement: &str) -> bool {
    let mut depth = 0_i32;
    for (nth, line) in replacement.lines().skip_while(|line| line.trim().is_empty()).enumerate() {
        if nth > 0 && depth == 0 && line.starts_with(['}', ')', ']']) {
            return true;
        }
        for sign in line.chars() {
            depth += i32::from(matches!(sign, '{' | '(' | '[')) - i32::from(matches!(sign, '}' | ')' | ']'));
        }
    }
    false
}

/// Returns true if the first further line at the margin comes after a blank one: only the first
/// line may have lost its indentation, and what follows be a block of its own at the margin indeed.
fn has_paragraph_at_margin(replacement: &str) -> bool {
    let mut after_blank = false;
    for line in replacement.split('\n').skip_while(|line| line.trim().is_empty()).skip(1) {
        if !line.trim().is_empty() && split_indent(line).0.is_empty() {
            return after_blank;
        }
        after_blank |= line.trim().is_empty();
    }
    false
}

fn refuse_unclear_depth(text: &str, span: &Range<usize>) -> Refusal {
    let difference = "the search text begins after its line's indentation, so how deep the replacement's further lines are \
                      meant to be can't be told; give whole lines"
        .to_owned();
    Refusal::GuardedMismatch { line: line_at(text, span.start), difference }
}
