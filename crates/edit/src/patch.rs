//! Placing a hunk of a patch.
//!
//! A hunk says line by line what stays, goes and comes, and that is kept to: only lines that go or
//! come are touched, whatever a comparison of the two sides would make of them. The old side is
//! looked for as it stands first, byte for byte, then with line endings and trailing blanks
//! overlooked, each time also as it reads if the model left the prefix of context lines out. Only
//! if it is nowhere, the placement of all texts ([`crate::place`]) takes over, and at last
//! context at the hunk's edges that the file hasn't got is left out.

mod changed_blocks;
mod damaged_lines;
pub(crate) mod lines;
mod script;
mod tie_breaking;
mod typography;

use std::ops::Range;

use crate::edit::{EditOp, LineKind, OpContext, PatchHunk, PatchLine};
use crate::outcome::{MAX_FILE_BYTES, MAX_SEARCH_BYTES, PlacedEdit, Refusal, Strategy};
use crate::placement::{Hunk, IndexedText, already_made, find_place_in, placeholders};
use lines::{FileLines, LineComparison, is_distinctive};
use script::PatchScript;
use tie_breaking::PlaceHints;
use typography::TypographyMap;

/// Maximum number of context lines at each edge of a hunk that may be missing from the file: GNU
/// patch gives up as many.
const MAX_OMITTED_CONTEXT: usize = 2;

/// Minimum number of letters and digits of a line that doesn't stand twice by chance, where the
/// hunk says that nothing follows it.
const MIN_TELLING_CHARS: usize = 3;
/// Lines that close something, of which several follow each other.
const CLOSING_WORDS: [&str; 6] = ["end", "end;", "fi", "done", "esac", "else"];

/// Where the hunk before another one was placed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrecedingHunk {
    /// Its end in the text, in bytes.
    pub(crate) end: Option<usize>,
    /// The number of lines from where its header says to where it is: later headers are likely to
    /// be as far off.
    pub(crate) shift: i64,
}

impl PrecedingHunk {
    /// The step that comes before the next one.
    pub(crate) fn followed_by(self, step: &EditOp, placed: &PlacedEdit) -> Self {
        let end = placed.pieces.last().map(|(span, _)| span.end);
        let shift = match step {
            EditOp::Patch(PatchHunk { near: Some(near), .. }) if !placed.strategy.is_loose() => {
                i64::from(placed.line) - i64::from(*near)
            }
            _ => self.shift,
        };
        Self { end, shift }
    }
}

/// Finds where a hunk goes.
pub(crate) fn find_hunk(
    file: &IndexedText<'_>,
    hunk: &PatchHunk,
    preceding: PrecedingHunk,
    context: &OpContext<'_>,
) -> Result<PlacedEdit, Refusal> {
    let text = file.text();
    let size: usize = hunk.lines.iter().map(|line| line.text.len() + 1).sum();
    let sizes = [("file", text.len(), MAX_FILE_BYTES), ("hunk", size, MAX_SEARCH_BYTES)];
    if let Some((what, bytes, limit)) = sizes.into_iter().find(|(_, bytes, limit)| bytes > limit) {
        return Err(Refusal::TooLarge { what, bytes, limit });
    }
    if let Some(hunk) = unescape_tabs(text, hunk) {
        let placed = find_hunk(file, &hunk, preceding, context)?;
        let note = "`\\t\\t` at the beginning of new lines was written as tabs".to_owned();
        let note = placed.note.iter().cloned().chain([note]).collect::<Vec<_>>().join("; ");
        return Ok(PlacedEdit { note: Some(note), ..placed });
    }
    let near = hunk.near.map(|near| {
        let shifted = i64::from(near).saturating_add(preceding.shift).max(1);
        u32::try_from(shifted).unwrap_or(u32::MAX)
    });
    let place = HunkPlacer { text, file, hunk, near, after: preceding.end, context };
    let readings = hunk_readings(&hunk.lines);
    let Some(first) = readings.first() else { return Err(Refusal::NoChange) };
    let first_script = PatchScript::new(first);
    if first_script.changes_nothing() && hunk.final_break.is_none_or(|(old, new)| old == new) {
        return Err(Refusal::NoChange);
    }
    place.refuse_placeholder(&first_script)?;
    if first_script.old_lines().is_empty() {
        return place.place_insertion(&first_script);
    }
    let placed = place
        .place_by_lines(&readings)
        .or_else(|| place.place_by_mixed_prefixes(first))
        .unwrap_or_else(|| place.place_loosely(&readings))?;
    let (search, replace) = (first_script.old_text(), first_script.new_text());
    let whole = Hunk { whole_lines: true, allow: context.allow, ..Hunk::new(&search, &replace) };
    already_made::refuse_made_before(text, &whole, &placed)?;
    Ok(placed)
}

/// The content of a file that isn't there yet, from a hunk that only adds and names no place in it.
pub(crate) fn created_content(hunk: &PatchHunk) -> Option<String> {
    let is_new =
        hunk.anchors.iter().all(|anchor| anchor.trim().is_empty()) && hunk.near.is_none_or(|line| line <= 1);
    is_new.then(|| crate::formats::hunks::created_content(hunk, "\n").ok()).flatten()
}

/// Returns the possible interpretations of a hunk's lines, the likeliest first.
fn hunk_readings(lines: &[PatchLine]) -> Vec<Vec<PatchLine>> {
    let trimmed = strip_blank_edges(lines);
    let mut all = vec![lines.to_vec()];
    if trimmed.len() < lines.len() {
        all.push(trimmed.to_vec());
    }
    // Without prefixes on context, what looks like one is the line's own first blank.
    let bare = |lines: &[PatchLine]| -> Vec<PatchLine> {
        let unread = |line: &PatchLine| match line.kind {
            LineKind::Context => PatchLine { kind: LineKind::Bare, text: format!(" {}", line.text) },
            _ => line.clone(),
        };
        lines.iter().map(unread).collect()
    };
    if lines.iter().any(|line| line.kind == LineKind::Context) {
        all.push(bare(lines));
        if trimmed.len() < lines.len() {
            all.push(bare(trimmed));
        }
    }
    all
}

/// The lines without empty ones at the edges that have no prefix: they may only divide hunks.
fn strip_blank_edges(lines: &[PatchLine]) -> &[PatchLine] {
    let solid = |line: &PatchLine| line.kind != LineKind::Bare || !line.text.is_empty();
    let first = lines.iter().position(solid).unwrap_or(lines.len());
    let last = lines.iter().rposition(solid).map_or(first, |last| last + 1);
    lines.get(first..last).unwrap_or_default()
}

/// The hunk with real tabs where its new lines begin with two or more escaped ones, as nothing but
/// a text that was escaped once too often does; a single `\t` may be the beginning of a word
/// (`\textbf`).
fn unescape_tabs(text: &str, hunk: &PatchHunk) -> Option<PatchHunk> {
    const TWO_ESCAPED_TABS: &str = "\\t\\t";
    let escaped = |line: &PatchLine| line.kind == LineKind::Add && line.text.starts_with(TWO_ESCAPED_TABS);
    if !hunk.lines.iter().any(escaped)
        || text.lines().any(|line| line.trim_start().starts_with(TWO_ESCAPED_TABS))
    {
        return None;
    }
    let mut hunk = hunk.clone();
    for line in hunk.lines.iter_mut().filter(|line| escaped(line)) {
        let rest = line.text.trim_start_matches("\\t");
        let tabs = (line.text.len() - rest.len()) / "\\t".len();
        line.text = "\t".repeat(tabs) + rest;
    }
    Some(hunk)
}

/// A hunk and the text that it is to be placed in.
struct HunkPlacer<'a, 't> {
    text: &'a str,
    file: &'a IndexedText<'t>,
    hunk: &'a PatchHunk,
    /// The 1-based line at which the hunk is expected.
    near: Option<u32>,
    /// Where the hunk before it ended, in bytes.
    after: Option<usize>,
    context: &'a OpContext<'a>,
}

impl HunkPlacer<'_, '_> {
    fn refuse_placeholder(&self, script: &PatchScript<'_>) -> Result<(), Refusal> {
        if self.context.allow.placeholders {
            return Ok(());
        }
        let (old, new) = (script.old_text(), script.new_text());
        match placeholders::find_placeholder(&old, &new) {
            Some(remark) => Err(Refusal::Placeholder { remark: remark.to_owned() }),
            None => Ok(()),
        }
    }

    fn hints<'b>(&'b self, file: &'b FileLines<'b>) -> PlaceHints<'b> {
        PlaceHints {
            file,
            anchors: &self.hunk.anchors,
            near: self.near,
            stated: self.hunk.near,
            after: self.after,
            at_end: self.hunk.at_end || matches!(self.hunk.final_break, Some((false, _))),
        }
    }

    /// The steps that compare line by line, strictest first.
    fn place_by_lines(&self, readings: &[Vec<PatchLine>]) -> Option<Result<PlacedEdit, Refusal>> {
        let file = self.file.file_lines();
        for level in LineComparison::ALL {
            for reading in readings {
                let script = PatchScript::new(reading);
                if let Some(done) = self.place_at_level(file, &script, level) {
                    let first = PatchScript::new(readings.first()?);
                    let doubtful = done.is_ok() && script.deepens_context(&first);
                    return Some(if doubtful { Err(refuse_shifted_context()) } else { done });
                }
            }
        }
        None
    }

    /// Where some lines of context have their prefix and some lack it: each is read as the file has
    /// it, if all lines of the hunk are in one place so.
    fn place_by_mixed_prefixes(&self, lines: &[PatchLine]) -> Option<Result<PlacedEdit, Refusal>> {
        let file = self.file.file_lines();
        let lines = strip_blank_edges(lines);
        let start = file.find_mixed_lines(lines)?;
        let mut own = start..;
        let read = lines.iter().map(|line| {
            let kept = line.kind != LineKind::Add;
            let there = if kept { own.next().and_then(|at| file.line(at)) } else { None };
            match line.kind {
                LineKind::Context | LineKind::Bare => {
                    let text = there.map(|text| LineComparison::Trailing.strip_ignored(text));
                    PatchLine { kind: LineKind::Context, text: text.unwrap_or_default().to_owned() }
                }
                _ => line.clone(),
            }
        });
        let read: Vec<PatchLine> = read.collect();
        let script = PatchScript::new(&read);
        let note = "some lines of context lack their first blank".to_owned();
        let done = self.place_at_level(file, &script, LineComparison::Trailing)?;
        Some(done.map(|placed| PlacedEdit { note: Some(note), ..placed }))
    }

    fn place_at_level(
        &self,
        file: &FileLines<'_>,
        script: &PatchScript<'_>,
        level: LineComparison,
    ) -> Option<Result<PlacedEdit, Refusal>> {
        let starts = file.find_lines(script.old_lines(), level);
        if starts.is_empty() {
            return None;
        }
        let count = script.old_lines().len();
        let chosen = self.hints(file).choose_start(&starts, count, level.strategy());
        Some(chosen.and_then(|start| {
            if script.only_adds_at_an_edge() && self.is_applied_at(file, script, start, level) {
                return Err(Refusal::for_applied_edit());
            }
            let (search, replace) = (script.old_text(), script.new_text());
            let (whole, span) = (Hunk::new(&search, &replace), file.span(start..start + count));
            if already_made::stands_around(self.text, &span, &whole, Strategy::Similarity) {
                return Err(Refusal::for_applied_edit());
            }
            self.to_placed(file, script, start, level, None)
        }))
    }

    /// Returns true if the new side is at this place already: an insertion at an edge of its hunk
    /// leaves the old side whole, so that sending it twice would insert it twice.
    fn is_applied_at(
        &self,
        file: &FileLines<'_>,
        script: &PatchScript<'_>,
        start: usize,
        level: LineComparison,
    ) -> bool {
        let new = script.new_lines();
        let (head, tail) = script.count_edge_additions();
        let added = new.iter().take(head).chain(new.iter().rev().take(tail)).copied();
        // Without context on that side a numbered hunk is at the file's edge, and what it adds
        // isn't.
        let telling = |line: &&str| {
            line.chars().filter(|c| c.is_alphanumeric()).take(MIN_TELLING_CHARS).count() == MIN_TELLING_CHARS
                && !CLOSING_WORDS.contains(&line.trim())
        };
        let numbered = self.hunk.near.is_some() && added.clone().any(|line| telling(&line));
        (numbered || is_distinctive(added))
            && start.checked_sub(head).is_some_and(|from| file.has_lines_at(from, &new, level))
    }

    fn to_placed(
        &self,
        file: &FileLines<'_>,
        script: &PatchScript<'_>,
        start: usize,
        level: LineComparison,
        remark: Option<String>,
    ) -> Result<PlacedEdit, Refusal> {
        let carried = match level {
            LineComparison::Typography => Some(self.with_file_typography(file, script, start)?),
            _ => None,
        };
        let carried = carried.as_deref().map(PatchScript::new);
        let script = carried.as_ref().unwrap_or(script);
        let pieces = script.replacements_at(file, start, level, self.hunk.final_break);
        if pieces.iter().all(|(span, piece)| self.text.get(span.clone()) == Some(piece)) {
            return Err(Refusal::NoChange);
        }
        let note = match level {
            LineComparison::Exact => remark,
            _ => Some(remark.unwrap_or_else(|| format!("no exact match; placed by {}", level.strategy()))),
        };
        let line = u32::try_from(start).unwrap_or(u32::MAX).saturating_add(1);
        Ok(PlacedEdit { strategy: level.strategy(), line, note, pieces })
    }

    /// The hunk with new lines in the characters that the file has where the old lines have
    /// typographic ones.
    fn with_file_typography(
        &self,
        file: &FileLines<'_>,
        script: &PatchScript<'_>,
        start: usize,
    ) -> Result<Vec<PatchLine>, Refusal> {
        let writing = TypographyMap::learn_from(file, start, script.old_lines());
        script.map_new_lines(|text| writing.to_file_typography(text, self.text)).map_err(|character| {
            let message = format!(
                "`{character}` in the hunk's old lines stands for different characters of the file, so that nobody can \
                 tell what it is in the new lines; copy the old lines as they are in the file"
            );
            Refusal::Malformed { message }
        })
    }

    /// A hunk that only adds and has no context: after its anchor, where its header says, or at the
    /// end.
    fn place_insertion(&self, script: &PatchScript<'_>) -> Result<PlacedEdit, Refusal> {
        let file = self.file.file_lines();
        let count = file.len();
        // Lines that bring carriage returns along are taken as they are.
        let returns = script.new_lines().iter().any(|line| line.ends_with('\r'));
        let level = if returns { LineComparison::Exact } else { LineComparison::Breaks };
        if count == 0 || self.text == "\u{feff}" {
            let placed = self.to_placed(file, script, count, level, None)?;
            return Ok(PlacedEdit { strategy: Strategy::Exact, note: None, ..placed });
        }
        let hints = self.hints(file);
        let named = self.hunk.anchors.iter().any(|anchor| !anchor.trim().is_empty());
        let (at, remark) = match (named, self.near) {
            (_, Some(near)) => {
                let at = near.saturating_sub(1) as usize;
                if at > count {
                    let message = format!(
                        "The hunk only adds lines, before line {near}, but the file has {count} lines. Add lines of \
                         context to it, copied from the file"
                    );
                    return Err(Refusal::Malformed { message });
                }
                (at, None)
            }
            (true, None) => (hints.line_after_anchors()?, None),
            (false, None) => {
                (count, Some("the hunk has no context: added at the end of the file".to_owned()))
            }
        };
        let new = script.new_lines();
        let there = file.has_lines_at(at, &new, LineComparison::Trailing)
            || at
                .checked_sub(new.len())
                .is_some_and(|from| file.has_lines_at(from, &new, LineComparison::Trailing));
        if there && is_distinctive(new.iter().copied()) {
            return Err(Refusal::for_applied_edit());
        }
        let mut placed = self.to_placed(file, script, at, level, remark.clone())?;
        placed.strategy = Strategy::Exact;
        placed.note = remark;
        Ok(placed)
    }

    /// The strategies for all texts, then the hunk without context that the file hasn't
    /// got.
    fn place_loosely(&self, readings: &[Vec<PatchLine>]) -> Result<PlacedEdit, Refusal> {
        let mut best: Option<PlacedEdit> = None;
        let mut refusal: Option<Refusal> = None;
        for (nth, reading) in readings.iter().enumerate() {
            let so_far = readings.get(..=nth).unwrap_or_default();
            let script = PatchScript::new(reading);
            match self.place_by_text(&script) {
                Ok(placed)
                    if best.is_none()
                        && let Some(line) = self.line_of_unknown_depth(so_far, &script, &placed) =>
                {
                    let message = format!(
                        "the hunk's context indents in several ways what the file indents in one, so that nobody can \
                         tell how deep `{}` is meant; copy the context as it is in the file",
                        crate::outcome::truncate(line.trim(), 80)
                    );
                    return Err(Refusal::Malformed { message });
                }
                Ok(placed) if best.as_ref().is_none_or(|best| placed.strategy < best.strategy) => {
                    best = Some(placed);
                }
                Ok(_) => {}
                Err(why @ (Refusal::NoChange | Refusal::Ambiguous { .. } | Refusal::NoAnchor { .. })) => {
                    if best.is_none() {
                        return Err(why);
                    }
                }
                // A likelier reading found the place: a less likely one says nothing against what
                // is wrong there.
                Err(why @ Refusal::GuardedMismatch { .. }) => {
                    refusal = refusal.or(Some(why));
                    break;
                }
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        if let Some(placed) = best.take_if(|placed| !placed.strategy.is_loose()) {
            return Ok(placed);
        }
        if refusal.as_ref().is_some_and(Refusal::is_already_applied) {
            return refusal.map_or(Err(Refusal::NoChange), Err);
        }
        // A match of all tokens is stronger evidence than a match of a part.
        if let Some(placed) = best.take_if(|placed| placed.strategy < Strategy::Elision) {
            return Ok(placed);
        }
        if let Some(line) = damaged_lines::first_escaped_line(&self.hunk.lines, self.text) {
            let message = format!(
                "`{}` is in the file without its escapes; send the hunk again with all lines as the file would have them",
                crate::outcome::truncate(line.trim(), 80)
            );
            return Err(Refusal::Malformed { message });
        }
        if let Some(done) =
            self.place_with_additions(readings).or_else(|| self.place_with_less_context(readings))
        {
            return done;
        }
        if best.is_none()
            && let Some(placed) = self.place_by_changed_blocks(readings)
        {
            return Ok(placed);
        }
        match (best, refusal) {
            (Some(placed), _) => Ok(placed),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Err(Refusal::NoChange),
        }
    }

    fn place_by_text(&self, script: &PatchScript<'_>) -> Result<PlacedEdit, Refusal> {
        let (mut search, mut replace) = (script.old_text(), script.new_text());
        // Without its line break a new side of one blank line would be none.
        let leaves_blank_line = script.new_lines() == [""];
        if leaves_blank_line {
            search.push('\n');
            replace.push('\n');
        }
        let anchors: Vec<String> =
            self.hunk.anchors.iter().filter(|anchor| !anchor.trim().is_empty()).cloned().collect();
        let placed = find_place_in(
            self.file,
            &Hunk {
                near: self.near,
                whole_lines: !leaves_blank_line,
                anchors: &anchors,
                after: self.after,
                at_end: self.hunk.at_end,
                base: self.context.shown,
                allow: self.context.allow,
                ..Hunk::new(&search, &replace)
            },
        )?;
        if leaves_blank_line && !placed.pieces.iter().all(|(span, _)| self.begins_line(span.start)) {
            let difference = "the hunk's old side is only a part of the line there".to_owned();
            return Err(Refusal::GuardedMismatch { line: placed.line, difference });
        }
        if !placed.pieces.iter().all(|(span, _)| self.leaves_only_blanks(span)) {
            let difference = "a line of the hunk is only a part of the line there".to_owned();
            return Err(Refusal::GuardedMismatch { line: placed.line, difference });
        }
        // A patch's line is one line: an escaped line break in it is text, whatever else is
        // escaped.
        let breaks = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
        let found = placed.pieces.first().and_then(|(span, _)| self.text.get(span.clone()));
        if placed.strategy == Strategy::Escapes && found.is_some_and(|found| breaks(found) > breaks(&search))
        {
            let message =
                "a line of the hunk has escaped line breaks; send each line of the file as a line of its own";
            return Err(Refusal::Malformed { message: message.to_owned() });
        }
        Ok(placed)
    }

    /// Returns true if a range leaves only blanks of the lines in which it begins and ends, as the
    /// lines of a patch do. It may begin or end with a line break.
    fn leaves_only_blanks(&self, span: &Range<usize>) -> bool {
        let breaks = ['\n', '\r'];
        let found = self.text.get(span.clone()).unwrap_or_default();
        let head = self.text.get(..span.start).and_then(|before| before.rsplit(breaks).next());
        let tail = self.text.get(span.end..).and_then(|after| after.split(breaks).next());
        let is_blank = |part: Option<&str>| {
            part.is_none_or(|part| part.trim_start_matches('\u{feff}').trim().is_empty())
        };
        (found.starts_with(breaks) || is_blank(head)) && (found.ends_with(breaks) || is_blank(tail))
    }

    fn begins_line(&self, at: usize) -> bool {
        self.text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'))
    }

    /// A new line whose indentation the old lines say nothing of, because theirs contradict each
    /// other, in the reading that was placed or in a likelier one of the same lines.
    fn line_of_unknown_depth<'b>(
        &self,
        readings: &'b [Vec<PatchLine>],
        script: &PatchScript<'_>,
        placed: &PlacedEdit,
    ) -> Option<&'b str> {
        let even = matches!(placed.strategy, Strategy::Indentation | Strategy::InnerWhitespace);
        let (span, _) = placed.pieces.first().filter(|_| even)?;
        let found = self.text.get(span.clone())?;
        let same = |other: &PatchScript<'_>| other.old_lines().len() == script.old_lines().len();
        readings
            .iter()
            .map(|lines| PatchScript::new(lines))
            .filter(same)
            .find_map(|other| other.line_of_unknown_depth(found))
    }

    /// With a forgotten `+` put back, where the line without it isn't in the file.
    fn place_with_additions(&self, readings: &[Vec<PatchLine>]) -> Option<Result<PlacedEdit, Refusal>> {
        let lines = damaged_lines::restore_additions(strip_blank_edges(readings.first()?), self.text)?;
        let file = self.file.file_lines();
        let script = PatchScript::new(&lines);
        if script.old_lines().is_empty() {
            return None;
        }
        let done =
            LineComparison::ALL.into_iter().find_map(|level| self.place_at_level(file, &script, level))?;
        Some(done.map(|placed| PlacedEdit {
            note: Some("lines without a prefix between added ones were taken as added".to_owned()),
            ..placed
        }))
    }

    /// Where each change stands with the lines next to it, if the other context is mostly around.
    fn place_by_changed_blocks(&self, readings: &[Vec<PatchLine>]) -> Option<PlacedEdit> {
        if self.hunk.final_break.is_some() || self.hunk.anchors.len() > 1 {
            return None;
        }
        let (file, level) = (self.file.file_lines(), LineComparison::Trailing);
        let lines = strip_blank_edges(readings.first()?);
        let blocks = changed_blocks::find_blocks(file, lines, level)?;
        let mut pieces = Vec::new();
        for block in &blocks {
            pieces.extend(PatchScript::new(block.lines).replacements_at(file, block.start, level, None));
        }
        let line = u32::try_from(blocks.first()?.start).unwrap_or(u32::MAX).saturating_add(1);
        let note = "context that the file has otherwise was overlooked; the lines next to each change are the file's";
        Some(PlacedEdit { strategy: Strategy::Similarity, line, note: Some(note.to_owned()), pieces })
    }

    /// Leaves out as few lines of context at the edges as let the rest be found, if the rest is
    /// distinctive and has context next to each insertion.
    fn place_with_less_context(&self, readings: &[Vec<PatchLine>]) -> Option<Result<PlacedEdit, Refusal>> {
        let file = self.file.file_lines();
        for total in 1..=2 * MAX_OMITTED_CONTEXT {
            for reading in readings {
                let lines = strip_blank_edges(reading);
                let (head, tail) = omittable_context(lines);
                for top in total.saturating_sub(tail)..=total.min(head) {
                    let kept = lines.get(top..lines.len() - (total - top)).unwrap_or_default();
                    let script = PatchScript::new(kept);
                    if script.old_lines().len() < total || !is_distinctive(script.old_lines().iter().copied())
                    {
                        continue;
                    }
                    let done = LineComparison::ALL
                        .into_iter()
                        .find_map(|level| self.place_at_level(file, &script, level));
                    if let Some(done) = done {
                        let (above, rest) = lines.split_at(top);
                        let below = rest.get(kept.len()..).unwrap_or_default();
                        if let Ok(placed) = &done {
                            let start = placed.line.saturating_sub(1) as usize;
                            let place = start..start + script.old_lines().len();
                            if [above, below]
                                .into_iter()
                                .any(|lost| has_damaged_context(file, &place, lost, lines))
                            {
                                return None;
                            }
                        }
                        let lost = above.iter().chain(below);
                        return Some(done.map(|placed| note_omitted_context(placed, lost)));
                    }
                }
            }
        }
        None
    }
}

/// Why a hunk isn't taken for one whose context has no prefixes.
fn refuse_shifted_context() -> Refusal {
    let message = "the hunk's context has either no prefixes or one blank of indentation less than the file, so that nobody can \
                   tell how deep its new lines are meant; send each line of context as a blank and the file's line";
    Refusal::Malformed { message: message.to_owned() }
}

/// Returns true if one of the lines that were left out around a place is the file's after all, but
/// for how it is written.
fn has_damaged_context(
    file: &FileLines<'_>,
    place: &Range<usize>,
    lost: &[PatchLine],
    lines: &[PatchLine],
) -> bool {
    let around = 2 * MAX_OMITTED_CONTEXT;
    let near = (place.start.saturating_sub(around)..place.start).chain(place.end..place.end + around);
    let own: Vec<&str> = near.filter_map(|line| file.line(line)).collect();
    lost.iter().any(|line| own.iter().any(|own| damaged_lines::is_written_otherwise(&line.text, own, lines)))
}

/// Says which lines of context were left out.
fn note_omitted_context<'a>(placed: PlacedEdit, lost: impl Iterator<Item = &'a PatchLine>) -> PlacedEdit {
    let lines: Vec<String> =
        lost.map(|line| format!("`{}`", crate::outcome::truncate(line.text.trim(), 80))).collect();
    let note =
        format!("context that the file doesn't have next to the place was left out: {}", lines.join(", "));
    PlacedEdit { strategy: placed.strategy.max(Strategy::Similarity), note: Some(note), ..placed }
}

/// Returns the number of context lines that may be left out at each edge. One next to an insertion
/// stays, unless the insertion has context, or a removed line, on its other side too.
fn omittable_context(lines: &[PatchLine]) -> (usize, usize) {
    let is_context = |line: &&PatchLine| matches!(line.kind, LineKind::Context | LineKind::Bare);
    let edge = |mut lines: Box<dyn Iterator<Item = &PatchLine> + '_>| {
        let mut context = 0_usize;
        let next = loop {
            match lines.next() {
                Some(line) if is_context(&line) => context += 1,
                other => break other,
            }
        };
        // Behind an insertion something has to stand that is looked for.
        let inserts = next.is_some_and(|line| line.kind == LineKind::Add);
        let held = !inserts || lines.find(|line| line.kind != LineKind::Add).is_some();
        if held { context } else { context.saturating_sub(1) }.min(MAX_OMITTED_CONTEXT)
    };
    (edge(Box::new(lines.iter())), edge(Box::new(lines.iter().rev())))
}
