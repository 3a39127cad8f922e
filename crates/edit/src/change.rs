//! Edits of one file: their operations, and applying them all or not at all.

mod carriage_returns;
mod layered_text;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, LineKind, OpContext, PatchHunk, PatchLine, Replace};
use crate::lazy_edits::{self, Rewrite};
use crate::lines::{BYTE_ORDER_MARK, strip_line_break};
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::patch::PrecedingHunk;
use crate::placement::{Hunk, IndexedText, find_place_in, is_whole_lines, placeholders};
use crate::syntax_check::{self, SyntaxFault};
use crate::{lost_lines, patch, symbol};
use layered_text::LayeredText;

/// All that is asked of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOps {
    /// The file as it is named before any of the steps.
    pub path: RelPath,
    /// The steps, in order.
    pub ops: Vec<EditOp>,
}

/// Gathers edits by file, in the order in which files are first named. An edit that names a file by
/// the path that an earlier edit gave it goes to that file.
#[must_use]
pub fn to_ops(edits: &[Edit]) -> Vec<FileOps> {
    let mut files: Vec<(FileOps, RelPath)> = Vec::new();
    let mut by_name: std::collections::HashMap<RelPath, usize> = std::collections::HashMap::new();
    for edit in edits {
        let index = *by_name.entry(edit.path.clone()).or_insert_with(|| {
            files.push((FileOps { path: edit.path.clone(), ops: Vec::new() }, edit.path.clone()));
            files.len() - 1
        });
        let Some((file, name)) = files.get_mut(index) else { continue };
        for op in &edit.ops {
            if let EditOp::Rename { to } = op {
                by_name.remove(name);
                by_name.insert(to.clone(), index);
                *name = to.clone();
            }
            file.ops.push(op.clone());
        }
    }
    files.into_iter().map(|(file, _)| file).collect()
}

/// The placement of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedOp {
    /// The index of the step, 0-based.
    pub op: usize,
    /// The strategy that placed the step; `None` for steps that are not placed.
    pub strategy: Option<Strategy>,
    /// The 1-based line in the text where it was placed.
    pub line: u32,
    /// The number of replaced places; 0 if there was nothing to do.
    pub count: u32,
    /// A note on differences and adaptations.
    pub note: Option<String>,
}

/// The result of a file's steps.
#[derive(Debug, Clone, PartialEq)]
pub struct OpsOutcome {
    /// The new content; `None` when the file is to be removed, or never was.
    pub content: Option<String>,
    /// The new path, if it changes.
    pub rename: Option<RelPath>,
    /// One entry for each step that went well, in order.
    pub notes: Vec<AppliedOp>,
    /// The bytes of the new content that the steps put there, a range a place.
    pub changed: Vec<Range<usize>>,
    /// The steps that could not be done. Who wants all or nothing writes nothing if there is one.
    pub failed: Vec<OpError>,
    /// The first syntax error of the new content, if the old content had none.
    pub broken: Option<SyntaxFault>,
}

impl OpsOutcome {
    /// Returns true if no step changes anything, because the file is as they want it.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.failed.is_empty() && self.notes.iter().all(|note| note.count == 0)
    }
}

/// Why a step for one file was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpError {
    /// It found no place.
    #[error("edit {} of {of}: {refusal}", op + 1)]
    Refused {
        /// The index of the step, 0-based.
        op: usize,
        /// Of how many.
        of: usize,
        /// Why.
        refusal: Refusal,
    },
    /// The file that it needs isn't there.
    #[error(
        "edit {} of {of}: the file does not exist. Nothing was changed. Check the path; to create the file, give \
         its whole content without a search text",
        op + 1
    )]
    Missing {
        /// The index of the step, 0-based.
        op: usize,
        /// Of how many.
        of: usize,
    },
    /// The file that it creates is there already.
    #[error(
        "edit {} of {of}: the file exists already. Nothing was changed. To change it, send what to replace; to replace \
         it whole, send a full rewrite",
        op + 1
    )]
    Exists {
        /// The index of the step, 0-based.
        op: usize,
        /// Of how many.
        of: usize,
    },
    /// There was nothing to do.
    #[error(
        "the edit has no step: give a search and a replacement, the whole content, a deletion or a rename"
    )]
    Nothing,
}

/// Applies the steps to one file.
///
/// Placed steps that follow each other are all looked for in the text as it was before the first of
/// them, because that is the text the model saw; one that isn't there is looked for in what the
/// ones before it left. `text` is the file's content, `None` where it doesn't exist. Conventions of
/// the text formats are followed: deleting whole lines takes their line break too, a new file gets
/// a final line break, and a rewrite keeps the file's own line endings and final line break; each
/// is said in the step's note.
#[must_use]
pub fn apply_ops(text: Option<&str>, ops: &[EditOp], context: &OpContext<'_>) -> OpsOutcome {
    let mut work = OpsApplier {
        of: ops.len(),
        context: *context,
        content: text.map(str::to_owned),
        rename: None,
        notes: Vec::with_capacity(ops.len()),
        changed: Vec::new(),
        failed: Vec::new(),
    };
    if ops.is_empty() {
        work.failed.push(OpError::Nothing);
    }
    let mut at = 0;
    while let Some(op) = ops.get(at) {
        let run = ops.iter().skip(at).take_while(|op| needs_placement(op)).count();
        match (&work.content, run) {
            (Some(_), 1..) => {
                work.place_steps(at, ops.get(at..at + run).unwrap_or_default());
                at += run;
            }
            _ => {
                work.apply_unplaced_step(at, op);
                at += 1;
            }
        }
    }
    let loose = work.notes.iter().filter_map(|note| Some((note.strategy?, note))).max_by_key(|(how, _)| *how);
    let broken = match (text, &work.content) {
        (Some(old), Some(new)) if work.failed.is_empty() => {
            syntax_check::first_new_fault(context.path, old, new)
        }
        _ => None,
    };
    if let (Some(finding), Some((strategy, note))) = (&broken, loose)
        && strategy.is_loose()
        && !context.allow.broken_syntax
    {
        let refusal =
            Refusal::BrokenSyntax { line: finding.line, message: finding.message.clone(), strategy };
        work.failed.push(OpError::Refused { op: note.op, of: ops.len(), refusal });
    }
    let OpsApplier { content, rename, notes, changed, failed, .. } = work;
    OpsOutcome { content, rename, notes, changed, failed, broken }
}

/// Returns true if a step is placed in a text.
fn needs_placement(op: &EditOp) -> bool {
    matches!(op, EditOp::Replace(_) | EditOp::Patch(_) | EditOp::Symbol(_))
}

/// A file being worked on.
struct OpsApplier<'a> {
    of: usize,
    context: OpContext<'a>,
    content: Option<String>,
    rename: Option<RelPath>,
    notes: Vec<AppliedOp>,
    changed: Vec<Range<usize>>,
    failed: Vec<OpError>,
}

impl OpsApplier<'_> {
    fn record_refusal(&mut self, op: usize, refusal: Refusal) {
        self.failed.push(OpError::Refused { op, of: self.of, refusal });
    }

    fn record_note(&mut self, op: usize, count: u32, note: Option<String>) {
        self.notes.push(AppliedOp { op, strategy: None, line: 1, count, note });
    }

    /// A step that isn't placed, or one that is where there is no file yet.
    fn apply_unplaced_step(&mut self, at: usize, op: &EditOp) {
        let of = self.of;
        match op {
            EditOp::Replace(Replace { search, replace: content, near, .. })
                if search.is_empty() && near.is_none_or(|line| line <= 1) =>
            {
                self.rewrite_file(at, content, false);
            }
            EditOp::Patch(hunk) if let Some(content) = patch::created_content(hunk) => {
                self.content = Some(content);
                self.record_note(at, 1, None);
            }
            EditOp::Rewrite { content, exact } => self.rewrite_file(at, content, *exact),
            EditOp::Create { content } if self.content.as_ref() == Some(content) => {
                self.record_note(
                    at,
                    0,
                    Some("the file is there with that content: applied before".to_owned()),
                );
            }
            EditOp::Create { .. } if self.content.as_ref().is_some_and(|old| !old.is_empty()) => {
                self.failed.push(OpError::Exists { op: at, of });
            }
            EditOp::Create { content } => {
                self.content = Some(content.clone());
                self.record_note(at, 1, None);
            }
            EditOp::Replace(_) | EditOp::Patch(_) | EditOp::Symbol(_) => {
                self.failed.push(OpError::Missing { op: at, of });
            }
            EditOp::Lazy { content, says_removal } => match self.content.take() {
                None => match placeholders::find_placeholder("", content) {
                    Some(remark) => {
                        self.record_refusal(at, Refusal::Placeholder { remark: remark.to_owned() })
                    }
                    None => self.rewrite_file(at, content, false),
                },
                Some(old) => {
                    let (mark, body) = split_byte_order_mark(&old);
                    let content = split_byte_order_mark(content).1;
                    let rewrite = Rewrite { content, says_removal: *says_removal };
                    match lazy_edits::merge_rewrite(self.context.path, body, rewrite, self.context.allow) {
                        Ok(placed) => {
                            let new = format!("{mark}{}", placed.apply_to(body));
                            self.changed = std::iter::once(0..new.len()).collect();
                            self.content = Some(new);
                            self.record_placement(at, &placed);
                            return;
                        }
                        Err(Refusal::NoChange) => self.record_unchanged(at, &Refusal::NoChange),
                        Err(refusal) => self.record_refusal(at, refusal),
                    }
                    self.content = Some(old);
                }
            },
            EditOp::Delete if self.has_leftover_lines(at) => {
                let message =
                    "The patch deletes the file but does not remove all of its lines. Delete it without \
                               listing lines, or list all that it has"
                        .to_owned();
                self.record_refusal(at, Refusal::Malformed { message });
            }
            EditOp::Delete => match self.content.take() {
                Some(_) => self.record_note(at, 1, None),
                None => self.failed.push(OpError::Missing { op: at, of }),
            },
            EditOp::Rename { .. } if self.content.is_none() => {
                self.failed.push(OpError::Missing { op: at, of });
            }
            EditOp::Rename { to } => {
                self.rename = Some(to.clone());
                self.record_note(at, 1, None);
            }
        }
    }

    /// Returns true if a patch was to remove all of the file's lines and left some.
    fn has_leftover_lines(&self, at: usize) -> bool {
        let patched = self.notes.last().is_some_and(|note| note.op + 1 == at && note.strategy.is_some());
        patched && self.content.as_ref().is_some_and(|text| !text.trim().is_empty())
    }

    fn rewrite_file(&mut self, at: usize, content: &str, exact: bool) {
        let old = self.content.as_deref().unwrap_or_default();
        let remark = || {
            placeholders::find_placeholder(old, content)
                .or_else(|| lost_lines::first_comment_for_lost_lines(old, content))
        };
        if !(self.context.allow.placeholders || old.trim().is_empty())
            && let Some(remark) = remark()
        {
            self.record_refusal(at, Refusal::Placeholder { remark: remark.trim().to_owned() });
            return;
        }
        if !self.context.allow.spans && lost_lines::is_part_of(old, content) {
            let message = format!(
                "The text has {} lines, most of them of the file's {}, and neither its beginning nor its end: a part isn't written \
                 as the whole. Send the whole file, or put `... existing code ...` in a comment where lines stay",
                content.lines().count(),
                old.lines().count()
            );
            self.record_refusal(at, Refusal::Malformed { message });
            return;
        }
        let (new, note) = rewrite_keeping_line_ends(self.content.as_deref(), content, exact);
        let count = u32::from(self.content.as_deref() != Some(new.as_str()));
        self.changed = std::iter::once(0..new.len()).collect();
        self.content = Some(new);
        self.record_note(at, count, note);
    }

    fn record_placement(&mut self, op: usize, placed: &PlacedEdit) {
        let count = u32::try_from(placed.pieces.len()).unwrap_or(u32::MAX);
        let note = placed.note.clone();
        self.notes.push(AppliedOp { op, strategy: Some(placed.strategy), line: placed.line, count, note });
    }

    /// A step that has nothing to do stops nobody.
    fn record_unchanged(&mut self, op: usize, why: &Refusal) {
        let note = if why.is_already_applied() {
            "the replacement is in the file already, and what it replaces is not: applied before"
        } else {
            "nothing to change: the file has that text already"
        };
        self.record_note(op, 0, Some(note.to_owned()));
    }

    /// Steps that are placed, one after the other.
    fn place_steps(&mut self, first: usize, ops: &[EditOp]) {
        let Some(original) = self.content.take() else { return };
        let file = IndexedText::new(&original, ops.len());
        let mut run = LayeredText::new(&original);
        let mut preceding = PrecedingHunk::default();
        let mut insertions = Insertions::default();
        for (nth, step) in ops.iter().enumerate() {
            let op = first + nth;
            let found = self.find_step(&file, step, preceding);
            let found = found.or_else(|why| self.find_in_turn(&file, ops, nth, why));
            let mut overlap = None;
            if let Ok(placed) = &found {
                match insertions.find_repeated(op, step, placed) {
                    Repetition::None => {}
                    Repetition::SameEdit => {
                        self.record_unchanged(op, &Refusal::NoChange);
                        continue;
                    }
                    Repetition::OtherPlace(with) => {
                        self.record_refusal(op, Refusal::Overlap { with: with + 1, line: placed.line });
                        continue;
                    }
                }
                preceding = preceding.followed_by(step, placed);
                match run.translate_placement(placed) {
                    Ok(here) => {
                        self.write_placement(op, here, &mut run, &file);
                        continue;
                    }
                    Err(with) => overlap = Some((with, placed.line)),
                }
            }
            // The same edit twice in one reply is one edit.
            if let Some((with, _)) = overlap
                && with.checked_sub(first).and_then(|with| ops.get(with)) == Some(step)
            {
                self.record_unchanged(op, &Refusal::NoChange);
                continue;
            }
            if let (Some(_), Ok(placed)) = (&overlap, &found)
                && let Some(here) = run.narrow_overlapping(placed)
            {
                self.write_placement(op, here, &mut run, &file);
                continue;
            }
            // Not where the model looked last: perhaps in what the steps before have written.
            let beside = found.as_ref().is_ok_and(|placed| run.inserts_beside(placed));
            let again = self.find_again(&mut run, step, found);
            match (again, overlap) {
                // A part of a line that another step has written is hardly what was searched.
                (Ok(here), Some((with, line)))
                    if beside || !replaces_whole_lines(run.current_text(), &here) =>
                {
                    self.record_refusal(op, Refusal::Overlap { with: with + 1, line });
                }
                (Ok(here), _) => {
                    self.record_placement(op, &here);
                    run.begin_layer();
                    run.push_replacements(op, here.pieces);
                }
                (Err(why), None) if matches!(why, Refusal::NoChange) || why.is_already_applied() => {
                    self.record_unchanged(op, &why);
                }
                (Err(_), Some((with, line))) => {
                    self.record_refusal(op, Refusal::Overlap { with: with + 1, line })
                }
                (Err(refusal), None) => self.record_refusal(op, refusal),
            }
        }
        let Some((written, ranges)) = run.finish() else {
            self.content = Some(original);
            return;
        };
        // Among other kinds of steps nobody asks for more than that all of it may have changed.
        self.changed =
            if self.changed.is_empty() { ranges } else { std::iter::once(0..written.len()).collect() };
        self.content = Some(written);
    }

    /// Takes a placement in the text before all steps.
    fn write_placement(
        &mut self,
        op: usize,
        placed: PlacedEdit,
        run: &mut LayeredText<'_>,
        file: &IndexedText<'_>,
    ) {
        let line = run.line_number(first_piece_start(&placed), |place| file.line_at(place));
        self.record_placement(op, &PlacedEdit { line, ..placed.clone() });
        run.push_replacements(op, placed.pieces);
    }

    fn find_step(
        &self,
        file: &IndexedText<'_>,
        step: &EditOp,
        preceding: PrecedingHunk,
    ) -> Result<PlacedEdit, Refusal> {
        let found = self.find_step_by_lines(file, step, preceding);
        if !matches!(found, Err(Refusal::NotFound { already_applied: false, .. })) {
            return found;
        }
        let again = carriage_returns::find_with_carriage_returns(file.text(), |file| {
            self.find_step_by_lines(file, step, preceding)
        });
        again.map_or(found, Ok)
    }

    /// Finds a step in what the steps before it have written.
    fn find_again(
        &self,
        run: &mut LayeredText<'_>,
        step: &EditOp,
        found: Result<PlacedEdit, Refusal>,
    ) -> Result<PlacedEdit, Refusal> {
        match run.is_untouched() {
            true => found,
            false => self.find_step(&IndexedText::new(run.current_text(), 1), step, PrecedingHunk::default()),
        }
    }

    /// Finds a step that alone could mean several places: where as many steps look for the same
    /// text as there are places, each means the next one.
    fn find_in_turn(
        &self,
        file: &IndexedText<'_>,
        ops: &[EditOp],
        nth: usize,
        why: Refusal,
    ) -> Result<PlacedEdit, Refusal> {
        let (Refusal::Ambiguous { lines, .. }, Some(step)) = (&why, ops.get(nth)) else { return Err(why) };
        let same: Vec<usize> =
            (0..).zip(ops).filter(|(_, op)| looks_for_same(step, op)).map(|(at, _)| at).collect();
        let turn = same.iter().position(|at| *at == nth);
        // The very same edit again is one that was shown twice, such as in a draft.
        if same.iter().filter_map(|at| ops.get(*at)).filter(|op| *op == step).count() > 1 {
            return Err(why);
        }
        match turn.and_then(|turn| lines.get(turn)).and_then(|line| at_line(step, *line)) {
            Some(step) if same.len() == lines.len() => {
                self.find_step(file, &step, PrecedingHunk::default()).map_err(|_| why)
            }
            _ => Err(why),
        }
    }

    fn find_step_by_lines(
        &self,
        file: &IndexedText<'_>,
        step: &EditOp,
        preceding: PrecedingHunk,
    ) -> Result<PlacedEdit, Refusal> {
        match step {
            EditOp::Replace(wish) => find_place_in(
                file,
                &Hunk {
                    all: wish.all,
                    near: wish.near,
                    whole_lines: wish.whole_lines,
                    // Blocks come in any order: where the last one was tells nothing of this one.
                    after: None,
                    base: self.context.shown,
                    trims_kept_lines: !has_meaningful_line_ends(self.context.path),
                    allow: self.context.allow,
                    ..Hunk::new(&wish.search, &wish.replace)
                },
            ),
            EditOp::Patch(hunk) => patch::find_hunk(file, hunk, preceding, &self.context),
            EditOp::Symbol(wish) => symbol::find_symbol_edit(self.context.path, file.text(), wish),
            _ => Err(Refusal::NoChange),
        }
    }
}

/// Returns true for files in which blanks at the end of a line have a meaning: a line break of
/// Markdown, an empty line of a diff, the expected output of a test.
fn has_meaningful_line_ends(path: &RelPath) -> bool {
    const EXTENSIONS: [&str; 7] = ["md", "markdown", "mdx", "mdown", "patch", "diff", "snap"];
    path.extension().is_some_and(|own| EXTENSIONS.iter().any(|known| own.eq_ignore_ascii_case(known)))
}

/// The lines that steps put in without taking any away.
#[derive(Default)]
struct Insertions {
    /// The step of each, and the line that its header says, by place and text.
    made: HashMap<(usize, String), (usize, Option<u32>)>,
}

/// The relation of a step's insertions to those of earlier steps.
enum Repetition {
    None,
    /// The same edit was sent twice.
    SameEdit,
    /// The header says another line than that of an equal step, and only that step's place is left.
    OtherPlace(usize),
}

impl Insertions {
    fn find_repeated(&mut self, op: usize, step: &EditOp, placed: &PlacedEdit) -> Repetition {
        let stated = match step {
            EditOp::Patch(hunk) => hunk.near,
            _ => None,
        };
        let mut repeated = None;
        for (span, piece) in &placed.pieces {
            if span.start < span.end {
                return Repetition::None;
            }
            match self.made.entry((span.start, piece.clone())) {
                Entry::Occupied(earlier) => repeated = Some(*earlier.get()),
                Entry::Vacant(free) => {
                    free.insert((op, stated));
                    return Repetition::None;
                }
            }
        }
        match repeated {
            Some((with, Some(line))) if stated.is_some_and(|stated| stated != line) => {
                Repetition::OtherPlace(with)
            }
            Some(_) => Repetition::SameEdit,
            None => Repetition::None,
        }
    }
}

/// Returns true if two steps look for the same text, and neither says where.
fn looks_for_same(step: &EditOp, other: &EditOp) -> bool {
    fn old(hunk: &PatchHunk) -> impl Iterator<Item = &PatchLine> {
        hunk.lines.iter().filter(|line| line.kind != LineKind::Add)
    }
    match (step, other) {
        (EditOp::Replace(one), EditOp::Replace(two)) => {
            one.search == two.search && !(one.all || two.all) && one.near.is_none() && two.near.is_none()
        }
        (EditOp::Patch(one), EditOp::Patch(two)) => {
            one.near.is_none() && two.near.is_none() && one.anchors == two.anchors && old(one).eq(old(two))
        }
        _ => false,
    }
}

/// Returns a step that says at which line it is meant.
fn at_line(step: &EditOp, line: u32) -> Option<EditOp> {
    match step {
        EditOp::Replace(replace) => Some(EditOp::Replace(Replace { near: Some(line), ..replace.clone() })),
        EditOp::Patch(hunk) => Some(EditOp::Patch(PatchHunk { near: Some(line), ..hunk.clone() })),
        _ => None,
    }
}

/// Returns true if a placement replaces lines from their beginnings to their ends.
fn replaces_whole_lines(text: &str, placed: &PlacedEdit) -> bool {
    placed.pieces.iter().all(|(span, _)| {
        let found = strip_line_break(text.get(span.clone()).unwrap_or_default());
        is_whole_lines(text, &(span.start..span.start + found.len()))
    })
}

fn first_piece_start(placed: &PlacedEdit) -> usize {
    placed.pieces.first().map_or(0, |(span, _)| span.start)
}

/// Divides a text into its byte order mark, which no model sees, and the rest.
fn split_byte_order_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

/// The content a whole-file rewrite leaves: the file's byte order mark, line endings and final line
/// break survive it.
fn rewrite_keeping_line_ends(old: Option<&str>, new: &str, exact: bool) -> (String, Option<String>) {
    let mut notes = Vec::new();
    let has_crlf_alone = |text: &str| text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let crlf = old.is_some_and(has_crlf_alone);
    // In a reply CRLF throughout is the reply's own.
    let mut content = if !exact && has_crlf_alone(new) { new.replace("\r\n", "\n") } else { new.to_owned() };
    if crlf && content.contains('\n') && !content.contains('\r') {
        notes.push("kept the file's CRLF line endings");
        content = content.replace('\n', "\r\n");
    }
    let wants_break = match old {
        Some(old) if !old.is_empty() => old.ends_with('\n'),
        _ => !exact,
    };
    if wants_break && !content.is_empty() && !content.ends_with('\n') {
        notes.push(if old.is_some() { "kept the final line break" } else { "added a final line break" });
        content.push_str(if crlf { "\r\n" } else { "\n" });
    }
    let mark = old.map_or("", |old| split_byte_order_mark(old).0);
    if !content.is_empty() && !content.starts_with(mark) {
        notes.push("kept the byte order mark");
        content.insert_str(0, mark);
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    (content, note)
}
