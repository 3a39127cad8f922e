//! Rewrites that are one remark with new definitions before or after it: `// ... existing code ...`
//! and a function that the file lacks.

use std::collections::HashSet;

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::{is_comment, outline};
use journeyman_syntax::parse::parse;

use crate::lines::line_at;
use crate::lost_lines::is_distinctive;
use crate::outcome::{PlacedEdit, Strategy};
use crate::placeholder::{self, Placeholder};
use crate::syntax_check::first_new_fault;

/// Maximum number of blank lines of the rewrite beside its remark that are kept.
const MAX_BLANK_LINES: usize = 2;
/// Beginnings of a file before which nothing may be put, or which say nothing of what comes first.
pub(super) const FIXED_BEGINNINGS: [&str; 12] =
    ["#", "//", "/*", "<", "package ", "namespace ", "'", "\"", "from __future__", "-- ", ";", "module "];
/// End of a Python program: nothing after it is there when it runs.
pub(super) const PYTHON_MAIN: &str = "if __name__ ==";

/// The new definitions put at the end or the beginning of the file. `None` where the rewrite is
/// anything else, or shows a line of the file.
pub(super) fn add_at_edge(path: &RelPath, text: &str, content: &str) -> Option<PlacedEdit> {
    let lines: Vec<&str> = content.trim_matches(['\r', '\n']).lines().collect();
    let is_remark =
        |line: &&str| placeholder::placeholder_of_line(line).is_some() && !text.contains(line.trim());
    let mut remarks = lines.iter().enumerate().filter(|(_, line)| is_remark(line));
    let ((at, remark), None) = (remarks.next()?, remarks.next()) else { return None };
    if placeholder::placeholder_of_line(remark) != Some(Placeholder::Keep) || remark.starts_with([' ', '\t'])
    {
        return None;
    }
    let (before, after) = (lines.get(..at)?, lines.get(at + 1..)?);
    let blank = |lines: &[&str]| lines.iter().all(|line| line.trim().is_empty());
    let (new, at_end) = match (blank(before), blank(after)) {
        (true, false) => (after, true),
        (false, true) => (before, false),
        _ => return None,
    };
    let filled = |line: &&str| !line.trim().is_empty();
    let (first, last) = (new.iter().position(filled)?, new.iter().rposition(filled)?);
    let distance = if at_end { first } else { new.len() - 1 - last };
    let new = new.get(first..=last)?;
    let own: HashSet<&str> = text.lines().map(str::trim_end).collect();
    let outer = |line: &&&str| !line.starts_with([' ', '\t']) && is_distinctive(line);
    if new.first()?.starts_with([' ', '\t'])
        || new.iter().filter(outer).any(|line| own.contains(line.trim_end()))
    {
        return None;
    }
    let refused = match at_end {
        true => text.contains(PYTHON_MAIN),
        false => FIXED_BEGINNINGS.iter().any(|start| text.trim_start().starts_with(start)),
    };
    if refused || !only_defines_new_names(path, text, &new.join("\n")) {
        return None;
    }
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (new, gap) = (new.join(line_break), line_break.repeat(distance.min(MAX_BLANK_LINES)));
    let (place, piece) = match (at_end, text.ends_with('\n')) {
        (true, true) => (text.len(), format!("{gap}{new}{line_break}")),
        (true, false) => (text.len(), format!("{line_break}{gap}{new}")),
        (false, _) => (0, format!("{new}{line_break}{gap}")),
    };
    let side = if at_end { "end" } else { "beginning" };
    let placed = PlacedEdit {
        strategy: Strategy::Lazy,
        line: line_at(text, place),
        note: Some(format!("the new definitions were put at the file's {side}, where the remark has them")),
        pieces: vec![(place..place, piece)],
    };
    first_new_fault(path, text, &placed.apply_to(text)).is_none().then_some(placed)
}

/// Returns true if code is nothing but imports and definitions of names that the file doesn't
/// define on its outermost level.
fn only_defines_new_names(path: &RelPath, text: &str, code: &str) -> bool {
    let Some(language) = Language::detect(&path.to_string(), text) else { return false };
    let (Ok(old), Ok(new)) = (parse(language, text), parse(language, code)) else { return false };
    if new.has_error() {
        return false;
    }
    let known: HashSet<String> = outline(&old, text).iter().map(|symbol| symbol.path()).collect();
    let symbols = outline(&new, code);
    if symbols.iter().any(|symbol| symbol.inside.is_none() && known.contains(&symbol.path())) {
        return false;
    }
    let root = new.root();
    let mut cursor = root.walk();
    root.named_children(&mut cursor).all(|node| {
        let range = node.byte_range();
        let defines = || {
            symbols.iter().any(|symbol| {
                symbol.inside.is_none()
                    && range.start <= symbol.definition.start
                    && symbol.definition.end <= range.end
            })
        };
        let imports = ["import", "use_declaration", "include"].iter().any(|kind| node.kind().contains(kind));
        is_comment(node) || imports || defines()
    })
}
