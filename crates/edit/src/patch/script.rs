//! The line-by-line script of a hunk.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::edit::{LineKind, PatchLine};
use crate::lines::{first_line_break, split_indent};
use crate::patch::lines::{FileLines, LineComparison};

/// The byte order mark that may open a file.
const BOM: &str = "\u{feff}";

/// A hunk's lines in one reading.
pub(super) struct PatchScript<'a> {
    lines: &'a [PatchLine],
    old: Vec<&'a str>,
}

impl<'a> PatchScript<'a> {
    pub(super) fn new(lines: &'a [PatchLine]) -> Self {
        let old =
            lines.iter().filter(|line| line.kind != LineKind::Add).map(|line| line.text.as_str()).collect();
        Self { lines, old }
    }

    /// The lines that the file is said to have.
    pub(super) fn old_lines(&self) -> &[&'a str] {
        &self.old
    }

    pub(super) fn new_lines(&self) -> Vec<&'a str> {
        let kept = self.lines.iter().filter(|line| line.kind != LineKind::Remove);
        kept.map(|line| line.text.as_str()).collect()
    }

    pub(super) fn old_text(&self) -> String {
        self.old.join("\n")
    }

    pub(super) fn new_text(&self) -> String {
        self.new_lines().join("\n")
    }

    /// The lines with the new ones changed.
    pub(super) fn map_new_lines<E>(
        &self,
        change: impl Fn(&str) -> Result<String, E>,
    ) -> Result<Vec<PatchLine>, E> {
        let carry = |line: &PatchLine| match line.kind {
            LineKind::Add => Ok(PatchLine { kind: line.kind, text: change(&line.text)? }),
            _ => Ok(line.clone()),
        };
        self.lines.iter().map(carry).collect()
    }

    /// A new line that is indented as no old line is, where two indentations of old lines stand for
    /// one of the file's. `found` are the file's lines that the old ones stand for, one for one.
    pub(super) fn line_of_unknown_depth(&self, found: &str) -> Option<&'a str> {
        let filled = self.old.iter().zip(found.lines()).filter(|(old, _)| !old.trim().is_empty());
        let pairs: BTreeSet<(&str, &str)> =
            filled.map(|(old, own)| (split_indent(own).0, split_indent(old).0)).collect();
        // None at all says little: lines are often copied from where they begin.
        let uneven = pairs
            .iter()
            .zip(pairs.iter().skip(1))
            .any(|((own, one), (next, other))| own == next && !one.is_empty() && !other.is_empty());
        let unknown = |line: &&str| {
            let indent = split_indent(line).0;
            !line.trim().is_empty() && !pairs.iter().any(|(_, known)| *known == indent)
        };
        let new = self.lines.iter().filter(|line| line.kind == LineKind::Add).map(|line| line.text.as_str());
        if uneven { new.into_iter().find(unknown) } else { None }
    }

    /// Returns true if this reading indents lines of context as no new line is, while the first
    /// reading of the same hunk indents them all as some are, and no line that goes shows which of
    /// the two it is.
    pub(super) fn deepens_context(&self, first: &PatchScript<'_>) -> bool {
        let indents = |lines: &[&'_ str]| -> BTreeSet<String> {
            let filled = lines.iter().filter(|line| !line.trim().is_empty());
            filled.map(|line| split_indent(line).0.to_owned()).collect()
        };
        let of_kind = |kind: LineKind| -> Vec<&str> {
            let lines = self.lines.iter().filter(|line| line.kind == kind);
            lines.map(|line| line.text.as_str()).collect()
        };
        let new = indents(&of_kind(LineKind::Add));
        let goes = of_kind(LineKind::Remove).iter().any(|line| !line.trim().is_empty());
        let (here, there) = (indents(&self.old), indents(&first.old));
        !goes && !new.is_empty() && new.is_subset(&there) && new.is_disjoint(&here)
    }

    pub(super) fn changes_nothing(&self) -> bool {
        let kept = self.lines.iter().filter(|line| line.kind != LineKind::Remove);
        kept.map(|line| line.text.as_str()).eq(self.old.iter().copied())
    }

    /// Returns true if it only adds, and at one of its edges.
    pub(super) fn only_adds_at_an_edge(&self) -> bool {
        let adds = |line: Option<&PatchLine>| line.is_some_and(|line| line.kind == LineKind::Add);
        self.lines.iter().all(|line| line.kind != LineKind::Remove)
            && (adds(self.lines.first()) || adds(self.lines.last()))
    }

    /// Returns the numbers of lines added before its first other line and after its last.
    pub(super) fn count_edge_additions(&self) -> (usize, usize) {
        let adds = |line: &&PatchLine| line.kind == LineKind::Add;
        (self.lines.iter().take_while(adds).count(), self.lines.iter().rev().take_while(adds).count())
    }

    /// Returns the replacements of bytes if the old side begins at this line. Lines that stay
    /// aren't touched.
    pub(super) fn replacements_at(
        &self,
        file: &FileLines<'_>,
        start: usize,
        level: LineComparison,
        final_break: Option<(bool, bool)>,
    ) -> Vec<(Range<usize>, String)> {
        let line_break = self.default_line_break(file, start, level, final_break);
        let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
        let mut at = start;
        let mut rest = self.lines;
        while let Some(first) = rest.first() {
            if matches!(first.kind, LineKind::Context | LineKind::Bare) {
                at += 1;
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let changed = |line: &&PatchLine| matches!(line.kind, LineKind::Add | LineKind::Remove);
            let length = rest.iter().take_while(changed).count();
            let (group, after) = rest.split_at(length);
            let removed = group.iter().filter(|line| line.kind == LineKind::Remove).count();
            pieces.extend(self.to_replacement(file, group, at..at + removed, level, line_break));
            at += removed;
            rest = after;
        }
        finish_final_break(file, start + self.old.len(), at, line_break, final_break, &mut pieces);
        pieces
    }

    /// Returns the line break for new lines without a neighbouring example.
    fn default_line_break(
        &self,
        file: &FileLines<'_>,
        start: usize,
        level: LineComparison,
        final_break: Option<(bool, bool)>,
    ) -> Option<&'static str> {
        if level != LineComparison::Exact {
            return None;
        }
        // The lines are the file's to the byte: where they show how lines end, new ones end as they
        // are given.
        let shown = final_break.is_some()
            || self.lines.iter().any(|line| line.text.ends_with('\r'))
            || (start..start + self.old.len()).any(|line| file.line_break(line) == "\n");
        shown.then_some("\n")
    }

    /// One run of lines that go and come.
    fn to_replacement(
        &self,
        file: &FileLines<'_>,
        group: &[PatchLine],
        removed: Range<usize>,
        level: LineComparison,
        line_break: Option<&'static str>,
    ) -> Option<(Range<usize>, String)> {
        let mut span = file.span(removed.clone());
        let mut keeps_mark = false;
        if level != LineComparison::Exact && span.start == 0 && file.text.starts_with(BOM) {
            // The byte order mark belongs to no line.
            span = BOM.len()..span.end.max(BOM.len());
            keeps_mark = true;
        }
        let mut piece = String::new();
        let mut old = removed.clone();
        let mut went = 0;
        for line in group {
            if line.kind == LineKind::Remove {
                went += 1;
                continue;
            }
            let text = if keeps_mark && piece.is_empty() {
                line.text.strip_prefix(BOM).unwrap_or(&line.text)
            } else {
                &line.text
            };
            piece.push_str(if level == LineComparison::Exact {
                text
            } else {
                text.strip_suffix('\r').unwrap_or(text)
            });
            let partner = old.next().or_else(|| removed.end.checked_sub(1).filter(|_| went > 0));
            let partner = partner.or_else(|| removed.start.checked_sub(1));
            let example = partner.map(|line| file.line_break(line)).filter(|own| !own.is_empty());
            let example = example.unwrap_or_else(|| first_line_break(file.text));
            piece.push_str(line_break.unwrap_or(example));
        }
        if span.start == span.end && piece.is_empty() { None } else { Some((span, piece)) }
    }
}

/// Sees to the end of the file: its final line break stays as it was, unless the patch says
/// otherwise.
fn finish_final_break(
    file: &FileLines<'_>,
    end: usize,
    at: usize,
    line_break: Option<&'static str>,
    final_break: Option<(bool, bool)>,
    pieces: &mut Vec<(Range<usize>, String)>,
) {
    let text = file.text;
    if end < file.len() || at < file.len() {
        return;
    }
    let line_break = line_break.unwrap_or_else(|| first_line_break(text));
    let empty = text.is_empty() || text == BOM;
    let had = empty || text.ends_with('\n');
    let wants = match final_break {
        Some((old, new)) if old != new => new,
        Some((_, new)) if empty => new,
        _ => had,
    };
    let closed =
        |text: &str| text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text).len());
    let last = pieces.last_mut().filter(|(span, _)| span.end == text.len());
    match last {
        Some((span, piece)) if !piece.is_empty() => {
            // After a last line without a line break there has to be one first.
            if !had && span.start == span.end && !empty {
                piece.insert_str(0, line_break);
            }
            if !wants && piece.ends_with('\n') {
                // An exact line keeps a carriage return of its own.
                let keep =
                    if line_break == "\n" { piece.len() - 1 } else { closed(piece).unwrap_or(piece.len()) };
                piece.truncate(keep);
            }
        }
        Some((span, _)) => {
            if !wants && let Some(kept) = text.get(..span.start).and_then(closed) {
                span.start = kept;
            }
        }
        None if wants && !had => pieces.push((text.len()..text.len(), line_break.to_owned())),
        None if !wants && had => {
            if let Some(kept) = closed(text) {
                pieces.push((kept..text.len(), String::new()));
            }
        }
        None => {}
    }
}
