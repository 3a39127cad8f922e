//! Diffs that show once more what the edits beside them do.

use std::collections::HashSet;

use crate::edit::{Edit, EditOp, LineKind};

/// Returns true if each changed line of `shown` is one that `edits` change in the same file: then
/// it asks for nothing further.
pub(super) fn repeats_edits(shown: &[Edit], edits: &[Edit]) -> bool {
    let is_repeated = |edit: &Edit| {
        let same = || edits.iter().filter(|other| other.path == edit.path).flat_map(|other| &other.ops);
        let gone: HashSet<&str> = same().flat_map(|op| changed_lines(op, LineKind::Remove)).collect();
        let come: HashSet<&str> = same().flat_map(|op| changed_lines(op, LineKind::Add)).collect();
        let is_whole = same().any(|op| matches!(op, EditOp::Rewrite { .. } | EditOp::Create { .. }));
        edit.ops.iter().all(|op| {
            let is_in = |kind, own: &HashSet<&str>| {
                let lines = changed_lines(op, kind);
                // What both texts of a pair have stays.
                let other = if kind == LineKind::Add { LineKind::Remove } else { LineKind::Add };
                let kept = match op {
                    EditOp::Replace(_) => changed_lines(op, other),
                    _ => Vec::new(),
                };
                lines.iter().all(|line| own.contains(line) || kept.contains(line))
            };
            let goes = is_in(LineKind::Remove, &gone) || (is_whole && matches!(op, EditOp::Replace(_)));
            matches!(op, EditOp::Patch(_) | EditOp::Replace(_)) && goes && is_in(LineKind::Add, &come)
        })
    };
    !shown.is_empty() && shown.iter().all(is_repeated)
}

/// The lines that go or come by a step, without the blanks around them.
fn changed_lines(op: &EditOp, kind: LineKind) -> Vec<&str> {
    match op {
        EditOp::Replace(replace) if kind == LineKind::Remove => {
            replace.search.lines().map(str::trim).collect()
        }
        EditOp::Replace(replace) => replace.replace.lines().map(str::trim).collect(),
        EditOp::Patch(hunk) => {
            let lines = hunk.lines.iter().filter(|line| line.kind == kind);
            lines.map(|line| line.text.trim()).collect()
        }
        EditOp::Rewrite { content, .. } | EditOp::Create { content } | EditOp::Lazy { content, .. } => {
            match kind {
                LineKind::Add => content.lines().map(str::trim).collect(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
