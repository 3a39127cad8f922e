//! The lines that an alignment changes, if others beside each change tell where it is.

use std::ops::Range;

use super::line_alignment::{Aligner, Step, Token};
use super::line_kinds::{is_definition, opens_block};
use crate::lost_lines::is_distinctive;

/// A line of the file that has so many bytes, and that the file has once, tells where it is, and so
/// does a version of it.
pub(super) const MIN_TELLING_BYTES: usize = 20;

/// Lines that differ: of the file, and of the rewrite.
pub(super) struct LineChange {
    pub(super) old: Range<usize>,
    pub(super) new: Vec<usize>,
    /// True where a remark that keeps lines is beside it, above and below, blank lines apart.
    pub(super) remarked: (bool, bool),
    /// True where a blank line of the file is beside it.
    pub(super) is_apart: (bool, bool),
    /// True where its first and its last line are versions of the file's that are about the same.
    pub(super) is_version: (bool, bool),
    /// The number of lines below it that are shown and stay.
    pub(super) same_below: usize,
    /// Nothing of the rewrite comes before it.
    pub(super) is_first: bool,
    /// A remark says that lines go here.
    pub(super) removes: bool,
    /// True where a line that the file has once is shown above and below, with no remark between,
    /// or the file's beginning or end is.
    pub(super) is_held: (bool, bool),
}

/// Lines of the file that a remark stands for.
pub(super) struct HiddenLines {
    pub(super) old: Range<usize>,
    /// The remark's own depth; `None` for one that stands for the imports.
    pub(super) depth: Option<usize>,
}

/// The outcome of an alignment.
pub(super) struct AlignedChanges {
    pub(super) changes: Vec<LineChange>,
    /// The number of lines that are shown and stay.
    pub(super) known: usize,
    /// The lines that each remark stands for, in order.
    pub(super) hidden: Vec<HiddenLines>,
}

/// Returns the lines that an alignment changes and those that it doesn't. `None` where lines
/// beside a change are found by chance, or a remark stands for nothing.
pub(super) fn read_changes(aligner: &Aligner<'_>, steps: &[Step]) -> Option<AlignedChanges> {
    let mut reader = ChangeReader {
        aligner,
        row: 0,
        column: 0,
        known: 0,
        changes: Vec::new(),
        is_first: true,
        is_open: false,
        removes: false,
        is_waiting: false,
        is_followed: false,
        is_blank: false,
        is_remarked: false,
        run: RunBetweenRemarks { is_held: true, ..RunBetweenRemarks::default() },
        is_inside_told: false,
        is_in_remark: false,
        kept: 0,
        hidden: Vec::new(),
    };
    for step in steps {
        reader.take_step(*step)?;
    }
    reader.close_run(None)?;
    Some(AlignedChanges { changes: reader.changes, known: reader.known, hidden: reader.hidden })
}

/// The lines between two remarks so far.
#[derive(Default)]
struct RunBetweenRemarks {
    changes: bool,
    /// A line tells where it is, because the file has it once.
    is_told: bool,
    /// A line is the file's and says something.
    is_anchored: bool,
    /// A line that is shown and stays is one that the file has once, or it is the first run.
    is_held: bool,
    /// Changes before this one have lines that hold them below.
    held: usize,
}

struct ChangeReader<'a, 't> {
    aligner: &'a Aligner<'t>,
    row: usize,
    column: usize,
    known: usize,
    changes: Vec<LineChange>,
    /// Nothing was taken yet.
    is_first: bool,
    /// The last step belongs to the last change.
    is_open: bool,
    /// A remark in the change says that lines go.
    removes: bool,
    /// Nothing but blank lines has come after the last change.
    is_waiting: bool,
    /// Nothing but lines that are shown and stay has come after the last change.
    is_followed: bool,
    /// The last step was a blank line that stays.
    is_blank: bool,
    /// The last step was a remark's, blank lines apart.
    is_remarked: bool,
    run: RunBetweenRemarks,
    /// The run before tells where it is, and the remark between stands for a part of one block.
    is_inside_told: bool,
    is_in_remark: bool,
    /// Lines that aren't blank and that the remark stands for.
    kept: usize,
    hidden: Vec<HiddenLines>,
}

impl ChangeReader<'_, '_> {
    fn take_step(&mut self, step: Step) -> Option<()> {
        let token = self.aligner.tokens.get(self.row).copied();
        let (row, column) = (self.row, self.column);
        let moves = match step {
            Step::Same | Step::Version => (1, 1),
            Step::New | Step::Passed => (1, 0),
            Step::Gone | Step::Kept => (0, 1),
        };
        (self.row, self.column) = (row + moves.0, column + moves.1);
        match (step, token) {
            (Step::Passed, Some(Token::End)) => return self.pass_edge(column),
            (Step::Passed, Some(Token::Remove)) | (Step::Version | Step::New | Step::Gone, _) => {
                self.take_change(step, token, column);
                return Some(());
            }
            _ => self.take_rest(step, token, column),
        }
        if step == Step::Passed { self.close_run(token) } else { Some(()) }
    }

    /// Both edges of a remark are passed: it stands for something between them.
    fn pass_edge(&mut self, column: usize) -> Option<()> {
        if self.is_in_remark && (self.kept == 0 || self.is_below_attribute(column)) {
            return None;
        }
        match self.hidden.last_mut().filter(|_| self.is_in_remark) {
            Some(hidden) => hidden.old.end = column,
            None => {
                let depth = match self.aligner.tokens.get(self.row) {
                    Some(Token::Keep { own, .. }) => Some(*own),
                    _ => None,
                };
                self.hidden.push(HiddenLines { old: column..column, depth });
            }
        }
        (self.is_in_remark, self.kept) = (!self.is_in_remark, 0);
        Some(())
    }

    /// Returns true if what stands above a line of the file goes with it and the rewrite shows
    /// another line there, so that a remark that ends there may stand for it or not.
    fn is_below_attribute(&self, old: usize) -> bool {
        let aligner = self.aligner;
        if let Some(Token::Line(at)) = aligner.tokens.get(self.row)
            && old < aligner.old.len()
            && aligner.new.line(*at).trim_end() == aligner.old.line(old).trim_end()
        {
            return false;
        }
        let above = (0..old)
            .rev()
            .find(|at| !self.aligner.old.is_blank(*at))
            .map(|at| self.aligner.old.line(at).trim());
        above.is_some_and(|line| line.starts_with('@') || line.starts_with("#["))
    }

    /// A line that comes, goes or is another version, or a remark that says that lines go.
    fn take_change(&mut self, step: Step, token: Option<Token>, column: usize) {
        let aligner = self.aligner;
        let is_keyed = aligner.is_keyed_version(step, token, column);
        // What is above the first line that is shown is no old version of it.
        let begins_below = step == Step::Version
            && self.changes.last().is_some_and(|change| change.is_first && change.new.is_empty());
        if !self.is_open || begins_below {
            self.changes.push(LineChange {
                old: column..column,
                new: Vec::new(),
                remarked: (self.is_remarked, false),
                is_apart: (self.is_blank, false),
                is_version: (is_keyed, false),
                same_below: 0,
                is_first: self.is_first,
                removes: false,
                is_held: (self.run.is_held, false),
            });
        }
        let is_blank = match (step, token) {
            (Step::New, Some(Token::Line(at))) => aligner.new.is_blank(at),
            (Step::Gone, _) => aligner.old.is_blank(column),
            _ => false,
        };
        self.run.changes |= !is_blank;
        let old = aligner.old.line(column).trim_end();
        self.run.is_told |=
            is_keyed && old.len() >= MIN_TELLING_BYTES && self.aligner.counts.get(old) == Some(&1);
        (self.is_open, self.is_waiting, self.is_first, self.is_blank) = (true, true, false, false);
        self.is_followed = true;
        let is_removal = matches!(token, Some(Token::Remove));
        self.removes |= is_removal && step == Step::Passed;
        let Some(change) = self.changes.last_mut() else { return };
        change.is_version.1 = is_keyed;
        change.removes |= self.removes || is_removal;
        change.old.end = self.column;
        if let (Step::Version | Step::New, Some(Token::Line(at))) = (step, token) {
            change.new.push(at);
            // What a remark below stands for is in the block.
            let line = aligner.new.line(at);
            change.is_version.1 |= step == Step::Version && opens_block(line) && !is_definition(line.trim());
        }
    }

    /// A line that stays, shown or not, or a remark.
    fn take_rest(&mut self, step: Step, token: Option<Token>, column: usize) {
        let is_blank = step == Step::Same && self.aligner.old.is_blank(column);
        self.kept += usize::from(step == Step::Kept && !self.aligner.old.is_blank(column));
        self.is_followed &= step == Step::Same;
        if let (true, Some(change)) = (self.is_followed, self.changes.last_mut()) {
            change.same_below += 1;
        }
        if let (true, Some(change)) = (self.is_waiting, self.changes.last_mut()) {
            change.is_apart.1 |= is_blank;
            change.remarked.1 |= step != Step::Same;
            self.is_waiting = is_blank;
        }
        (self.is_open, self.is_first, self.removes, self.is_blank) = (false, false, false, is_blank);
        self.is_remarked = step != Step::Same || (is_blank && self.is_remarked);
        if let (Step::Same, Some(Token::Line(at))) = (step, token) {
            let line = self.aligner.new.line(at).trim_end();
            if is_distinctive(line) && self.aligner.counts.get(line) == Some(&1) {
                (self.run.is_told, self.run.is_held) = (true, true);
                self.hold_changes();
            }
            self.run.is_anchored |= is_distinctive(line);
            self.known += usize::from(!line.is_empty());
        }
    }

    /// Marks the changes of the run so far: a line below them tells where they end.
    fn hold_changes(&mut self) {
        let from = std::mem::replace(&mut self.run.held, self.changes.len());
        self.changes.iter_mut().skip(from).for_each(|change| change.is_held.1 = true);
    }

    /// The end of a run, at a remark or at the text's.
    fn close_run(&mut self, remark: Option<Token>) -> Option<()> {
        if remark.is_none() {
            self.hold_changes();
        }
        let held = self.changes.len();
        let run =
            std::mem::replace(&mut self.run, RunBetweenRemarks { held, ..RunBetweenRemarks::default() });
        let is_told = run.is_told || (self.is_inside_told && run.is_anchored);
        self.is_inside_told = is_told && matches!(remark, Some(Token::Keep { least, .. }) if least > 0);
        (!run.changes || is_told).then_some(())
    }
}
