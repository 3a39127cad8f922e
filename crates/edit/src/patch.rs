//! Placing a hunk of a patch.

use crate::change::{LineKind, OpContext, PatchHunk};
use crate::outcome::{Placed, Refusal};
use crate::place::{Hunk, find as find_hunk};

/// Finds where a hunk goes. `after` is where the hunk before it ended.
pub(crate) fn find(
    text: &str,
    hunk: &PatchHunk,
    after: Option<usize>,
    context: &OpContext<'_>,
) -> Result<Placed, Refusal> {
    let side = |leave: LineKind| {
        let lines: Vec<&str> =
            hunk.lines.iter().filter(|line| line.kind != leave).map(|line| line.text.as_str()).collect();
        lines.join("\n")
    };
    let (search, replace) = (side(LineKind::Add), side(LineKind::Remove));
    find_hunk(
        text,
        &Hunk {
            near: hunk.near,
            whole_lines: true,
            anchors: &hunk.anchors,
            after,
            at_end: hunk.at_end,
            base: context.shown,
            allow: context.allow,
            ..Hunk::new(&search, &replace)
        },
    )
}
