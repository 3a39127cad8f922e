//! The alignment of a rewrite's lines and remarks with a file's lines, with the least cost.

use std::collections::{BTreeMap, HashSet};

use super::line_kinds::{
    depth, is_comment_remark, is_head_part, is_head_remark, is_version, key_of, opens_block,
};
use super::line_merge::TextLines;
use super::window_merge::is_elided_body;
use crate::lost_lines::is_distinctive;
use crate::placeholder::{self, Placeholder};
use crate::placement::tokens::is_similar;

/// Lines of the rewrite and edges of its remarks, times lines of the file, that are aligned.
const MAX_CELLS: usize = 24_000_000;
/// Costs of a line that is another version of the file's, comes, or goes, and of a blank one that
/// comes or goes.
const VERSION_COST: u32 = 3;
const NEW_COST: u32 = 6;
/// The same for a line that goes, in a reply that says that something does, and in others, where it
/// was rather left out.
const GONE_COST: u32 = 2;
const UNSAID_GONE_COST: u32 = 8;
/// Cost of a line that comes and that the file has once: it is that one, more often.
const KNOWN_COST: u32 = 30;
const BLANK_COST: u32 = 1;
const IMPOSSIBLE: u32 = u32::MAX / 4;

/// A step of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The file's line, shown.
    Same,
    /// A new version of the file's line.
    Version,
    /// A line that comes.
    New,
    /// A line of the file that goes.
    Gone,
    /// A line of the file that a remark stands for.
    Kept,
    /// The remark itself.
    Passed,
}

/// A line of the rewrite.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token {
    Line(usize),
    /// A remark: its own depth, and the least depth of what it stands for.
    Keep {
        own: usize,
        least: usize,
    },
    /// A remark for the imports and what stands above them.
    Head,
    /// A remark in the place of what goes.
    Remove,
    /// An edge of what a remark stands for, beside which lines may go.
    End,
}

pub(super) struct Aligner<'t> {
    pub(super) old: &'t TextLines<'t>,
    pub(super) new: &'t TextLines<'t>,
    pub(super) tokens: Vec<Token>,
    /// The number of the file's lines that are so.
    pub(super) counts: BTreeMap<&'t str, usize>,
    /// Cost of each of the rewrite's lines if it comes.
    costs: Vec<u32>,
    /// The number of the file's lines that are about the same.
    pub(super) keys: BTreeMap<&'t str, usize>,
    /// The number of comments and blank lines at the file's beginning, which models often leave
    /// out without a word.
    head: usize,
    /// The reply speaks of something that goes.
    pub(super) says_removal: bool,
    /// No line of the file goes, nor becomes another one but by a new value for its name.
    pub(super) keeps_all: bool,
}

impl<'t> Aligner<'t> {
    pub(super) fn new(
        old: &'t TextLines<'t>,
        new: &'t TextLines<'t>,
        is_lenient: bool,
        says_removal: bool,
    ) -> Option<Self> {
        let known: HashSet<&str> = (0..old.len()).map(|at| old.line(at).trim()).collect();
        // A comment of the file's own that has such a word is another version of it.
        let own_notes: Vec<&str> =
            known.iter().copied().filter(|line| placeholder::is_removal_note(line)).collect();
        let is_note = |line: &str| {
            placeholder::is_removal_note(line) && !own_notes.iter().any(|own| is_similar(line.trim(), own))
        };
        let remark = |at: usize| {
            let line = new.line(at);
            let kind = placeholder::placeholder_of_rewrite_line(line)
                .or_else(|| is_comment_remark(line).then_some(Placeholder::Keep))
                .or_else(|| is_note(line).then_some(Placeholder::Remove));
            kind.filter(|_| !known.contains(line.trim()))
        };
        let remarks: Vec<Option<Placeholder>> = (0..new.len()).map(remark).collect();
        let is_partly_remark = |(at, remark): (usize, &Option<Placeholder>)| {
            let line = new.line(at);
            remark.is_none()
                && (placeholder::placeholder_within_line(line).is_some() || is_elided_body(line))
                && !known.contains(line.trim())
        };
        // Each remark has an edge on both sides.
        if old.len().checked_mul(3 * new.len())? > MAX_CELLS
            || remarks.iter().enumerate().any(is_partly_remark)
        {
            return None;
        }
        let tokens = tokens_of(new, &remarks, is_lenient);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for at in 0..old.len() {
            *counts.entry(old.line(at).trim_end()).or_default() += 1;
        }
        let cost = |at: usize| match new.line(at).trim_end() {
            line if line.trim().is_empty() => BLANK_COST,
            line if is_distinctive(line) && counts.get(line) == Some(&1) => KNOWN_COST,
            _ => NEW_COST,
        };
        let costs = (0..new.len()).map(cost).collect();
        let is_comment = |at: &usize| {
            let line = old.line(*at).trim();
            line.is_empty()
                || ["//", "/*", "*", "#", "--", "<!--"].iter().any(|start| line.starts_with(start))
        };
        let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
        for at in 0..old.len() {
            *keys.entry(key_of(old.line(at).trim())).or_default() += 1;
        }
        let head = (0..old.len()).take_while(is_comment).count();
        tokens.iter().any(|token| !matches!(token, Token::Line(_))).then_some(Self {
            old,
            new,
            tokens,
            counts,
            costs,
            keys,
            head,
            says_removal,
            keeps_all: false,
        })
    }

    /// The steps of a cheapest alignment, from the beginning on; `late` takes each as late as it
    /// can be.
    pub(super) fn align(&self, late: bool) -> Option<Vec<Step>> {
        let (height, width) = (self.tokens.len(), self.old.len());
        let token = |row: usize| self.tokens.get(if late { height - 1 - row } else { row }).copied();
        let line = |column: usize| if late { width - 1 - column } else { column };
        let mut steps = vec![Step::Gone; (height + 1) * (width + 1)];
        let mut above: Vec<u32> = Vec::with_capacity(width + 1);
        above.push(0);
        for column in 0..width {
            let cost = if late { self.gone_cost(line(column)) } else { self.skip_cost(line(column)) };
            above.push(above.last()?.saturating_add(cost).min(IMPOSSIBLE));
        }
        for row in 0..height {
            let token = token(row)?;
            let mut current: Vec<u32> = Vec::with_capacity(width + 1);
            for column in 0..=width {
                let up = *above.get(column)?;
                let diagonal = column.checked_sub(1).and_then(|column| above.get(column)).copied();
                let left = column.checked_sub(1).and_then(|column| current.get(column)).copied();
                let own = column.checked_sub(1).map(line);
                let (mut cost, mut step) = self.cheapest(token, own, up, diagonal, left)?;
                if let (Some(own), Some(left), true) = (own, left, late && row + 1 == height)
                    && left.saturating_add(self.skip_cost(own)) < cost
                {
                    (cost, step) = (left + self.skip_cost(own), Step::Gone);
                }
                current.push(cost.min(IMPOSSIBLE));
                *steps.get_mut((row + 1) * (width + 1) + column)? = step;
            }
            above = current;
        }
        if above.last().is_none_or(|cost| *cost >= IMPOSSIBLE) {
            return None;
        }
        let (mut row, mut column) = (height, width);
        let mut path = Vec::with_capacity(height + width);
        while row > 0 || column > 0 {
            let step = *steps.get(row * (width + 1) + column)?;
            path.push(step);
            match step {
                Step::Same | Step::Version => (row, column) = (row.checked_sub(1)?, column.checked_sub(1)?),
                Step::New | Step::Passed => row = row.checked_sub(1)?,
                Step::Gone | Step::Kept => column = column.checked_sub(1)?,
            }
        }
        if !late {
            path.reverse();
        }
        Some(path)
    }

    /// The cheapest step to a cell: from above, from the left and above, from the left.
    fn cheapest(
        &self,
        token: Token,
        own: Option<usize>,
        up: u32,
        diagonal: Option<u32>,
        left: Option<u32>,
    ) -> Option<(u32, Step)> {
        let mut options: [Option<(u32, Step)>; 4] = [None; 4];
        let [first, second, third, fourth] = &mut options;
        if let (Some(own), Some(left), false) = (own, left, matches!(token, Token::Keep { .. } | Token::Head))
        {
            *fourth = Some((left.saturating_add(self.gone_cost(own)), Step::Gone));
        }
        match token {
            Token::Line(at) => {
                let cost = self.costs.get(at).copied().unwrap_or(NEW_COST);
                *third = Some((up + cost, Step::New));
                if let (Some(own), Some(diagonal)) = (own, diagonal) {
                    let (mine, theirs) = (self.new.line(at).trim_end(), self.old.line(own).trim_end());
                    if mine == theirs {
                        *first = Some((diagonal, Step::Same));
                    } else if cost < KNOWN_COST
                        && is_version(mine.trim(), theirs.trim())
                        && (!self.keeps_all || self.is_keyed_version(Step::Version, Some(token), own))
                    {
                        *second = Some((diagonal + VERSION_COST, Step::Version));
                    }
                }
            }
            Token::Keep { .. } | Token::Head => {
                let fits = |own: usize| match token {
                    Token::Keep { least, .. } => self.may_stand_for(own, least),
                    _ => is_head_part(self.old.line(own)),
                };
                let cost = |own: usize| if fits(own) { 0 } else { IMPOSSIBLE };
                *third = Some((up, Step::Passed));
                if let (Some(own), Some(left)) = (own, left) {
                    *first = Some((left.saturating_add(cost(own)), Step::Kept));
                }
            }
            Token::End => *third = Some((up, Step::Passed)),
            Token::Remove => {
                *third = Some((up, Step::Passed));
                if let (Some(_), Some(left)) = (own, left) {
                    *first = Some((left, Step::Gone));
                }
            }
        }
        options.into_iter().flatten().min_by_key(|(cost, _)| *cost)
    }

    fn gone_cost(&self, old: usize) -> u32 {
        match self.old.is_blank(old) || old < self.head {
            true => BLANK_COST,
            false if self.keeps_all => IMPOSSIBLE,
            false if self.says_removal => GONE_COST,
            false => UNSAID_GONE_COST,
        }
    }

    /// Cost of a line of the file that is above the first line of the rewrite: it was left out.
    fn skip_cost(&self, old: usize) -> u32 {
        if matches!(self.tokens.first(), Some(Token::Line(_))) { BLANK_COST } else { self.gone_cost(old) }
    }

    /// Returns true if a remark may stand for a line: it is as deep, or one that stands at the
    /// margin anywhere.
    fn may_stand_for(&self, old: usize, least: usize) -> bool {
        let line = self.old.line(old);
        let is_label = || {
            let name = line.trim_end().strip_suffix(':').unwrap_or_default();
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        line.trim().is_empty() || depth(line) >= least || line.starts_with('#') || is_label()
    }

    /// Returns true for a step that takes a version of the file's line that is about the same, as
    /// no other line of the file is.
    pub(super) fn is_keyed_version(&self, step: Step, token: Option<Token>, old: usize) -> bool {
        let Some(Token::Line(at)) = token else { return false };
        let key = key_of(self.old.line(old).trim());
        step == Step::Version && key_of(self.new.line(at).trim()) == key && self.keys.get(key) == Some(&1)
    }
}

/// The lines of a rewrite and its remarks, of which each has its meaning from the lines beside it.
fn tokens_of(new: &TextLines<'_>, remarks: &[Option<Placeholder>], is_lenient: bool) -> Vec<Token> {
    let is_filled = |at: usize| !new.is_blank(at) && remarks.get(at).is_some_and(Option::is_none);
    let mut below = vec![None; new.len()];
    let mut next = None;
    for (at, below) in below.iter_mut().enumerate().rev() {
        *below = next;
        next = if is_filled(at) { Some(new.line(at)) } else { next };
    }
    let (mut tokens, mut above) = (Vec::with_capacity(new.len()), None);
    for ((at, remark), below) in remarks.iter().enumerate().zip(below) {
        match remark {
            None => tokens.push(Token::Line(at)),
            Some(Placeholder::Remove) => tokens.push(Token::Remove),
            Some(Placeholder::Keep) => {
                let line = new.line(at);
                let keep = match is_head_remark(line) && !is_lenient {
                    true => Token::Head,
                    false => {
                        let own = depth(line);
                        // At an edge it stands for all that is there, however deep it is itself.
                        let is_at_edge = above.is_none() || below.is_none();
                        let least = least_depth(own, above, below, is_lenient);
                        Token::Keep { own, least: if is_at_edge { 0 } else { least } }
                    }
                };
                tokens.extend([Token::End, keep, Token::End]);
            }
        }
        above = if is_filled(at) { Some(new.line(at)) } else { above };
    }
    tokens
}

/// The least depth of the lines that a remark stands for, by its own and by the lines beside it.
/// `is_lenient`: by the least of these, but for that of a line that opens a block.
fn least_depth(own: usize, before: Option<&str>, after: Option<&str>, is_lenient: bool) -> usize {
    let opens = opens_block;
    let is_inside =
        |before: &str| own > depth(before) || after.is_some_and(|after| depth(after) > depth(before));
    match before {
        Some(before) if opens(before) && is_inside(before) => depth(before) + 1,
        _ if is_lenient => own.min(before.map_or(own, depth)).min(after.map_or(own, depth)),
        Some(before) if opens(before) => own.max(depth(before)),
        _ => own.min(before.map_or(0, depth).max(after.map_or(own, depth))),
    }
}
