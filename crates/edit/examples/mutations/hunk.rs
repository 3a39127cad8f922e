//! Real hunks: one change of one commit, quoted as a model would quote it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Everything random follows from this and from the hunk's name, so that every run has the same
/// cases.
const SEED: u64 = 0x6a6d_2d65_6469_7473;
/// A hunk with more changed lines is a rewrite, for which models send the whole file.
const MAX_CHANGED: usize = 30;
/// Changes so near to each other, in lines, are sent as one.
const JOINED: usize = 2;
/// Lines of context above and below, at first.
const CONTEXT: u64 = 4;
/// How many lines of context are added to make a search text unique.
pub(crate) const MAX_CONTEXT: usize = 6;

/// A file before and after a commit.
#[derive(Debug, Deserialize)]
pub(crate) struct Pair {
    pub(crate) repo: String,
    pub(crate) commit: String,
    pub(crate) path: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Common,
    Old,
    New,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// One change, with its place.
#[derive(Debug, Clone)]
pub(crate) struct Hunk {
    pub(crate) id: String,
    pub(crate) commit: String,
    pub(crate) path: String,
    /// The file's lines before.
    pub(crate) file: Vec<String>,
    /// The 0-based line of the file where it begins.
    pub(crate) first: usize,
    pub(crate) lines: Vec<Line>,
}

impl Hunk {
    /// The file with the change and nothing else.
    pub(crate) fn after(&self) -> String {
        let end = self.end();
        let head = self.file.iter().take(self.first).map(String::as_str);
        let tail = self.file.iter().skip(end).map(String::as_str);
        closed(head.chain(new_lines(&self.lines)).chain(tail))
    }

    pub(crate) fn before(&self) -> String {
        closed(self.file.iter().map(String::as_str))
    }

    /// The same change with more of the file's lines around it, as far as the file goes.
    pub(crate) fn wider(&self, above: usize, below: usize) -> Self {
        let above = above.min(self.first);
        let end = self.end();
        let common = |text: &String| Line::new(Kind::Common, text.clone());
        let mut lines: Vec<Line> =
            self.file.iter().skip(self.first - above).take(above).map(common).collect();
        lines.extend(self.lines.iter().cloned());
        lines.extend(self.file.iter().skip(end).take(below).map(common));
        Self { first: self.first - above, lines, ..self.clone() }
    }

    /// The 0-based line of the file behind its last.
    pub(crate) fn end(&self) -> usize {
        self.first + old_lines(&self.lines).count()
    }

    /// With so much context, or the least more that makes the search text unique; `None` where none
    /// does.
    fn quoted(&self, context: usize, file: &str) -> Option<Self> {
        (context..=MAX_CONTEXT).map(|around| self.wider(around, around)).find(|hunk| {
            let search = joined(old_lines(&hunk.lines), "\n");
            let anchored = hunk.lines.iter().any(|line| line.kind == Kind::Common)
                || (old_lines(&hunk.lines).next().is_some() && new_lines(&hunk.lines).next().is_some());
            anchored && !search.trim().is_empty() && is_once(file, &search)
        })
    }

    /// What comes to the file's language.
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Random numbers of its own for each purpose.
    pub(crate) fn dice(&self, purpose: &str) -> Dice {
        Dice::new(&format!("{} {purpose}", self.id))
    }
}

/// Lines as a file has them, each with its line break.
pub(crate) fn closed<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.fold(String::new(), |mut text, line| {
        text.push_str(line);
        text.push('\n');
        text
    })
}

/// The lines to look for.
pub(crate) fn old_lines(lines: &[Line]) -> impl Iterator<Item = &str> {
    lines.iter().filter(|line| line.kind != Kind::New).map(|line| line.text.as_str())
}

/// The lines to put there.
pub(crate) fn new_lines(lines: &[Line]) -> impl Iterator<Item = &str> {
    lines.iter().filter(|line| line.kind != Kind::Old).map(|line| line.text.as_str())
}

pub(crate) fn joined<'a>(lines: impl Iterator<Item = &'a str>, with: &str) -> String {
    lines.collect::<Vec<_>>().join(with)
}

/// One of a pair's changes whose search text is in the file once; `None` where there is none.
pub(crate) fn choose(pair: &Pair) -> Option<Hunk> {
    let (mut dice, changes) = usable(pair)?;
    let nth = dice.below(changes.len());
    let bare = changes.into_iter().nth(nth)?;
    let context = usize::try_from(dice.next() % CONTEXT).unwrap_or_default();
    bare.quoted(context, &pair.before)
}

/// Up to three neighbouring changes of a pair, each with at least a line of context, in order.
pub(crate) fn choose_several(pair: &Pair) -> Vec<Hunk> {
    let Some((mut dice, changes)) = usable(pair) else { return Vec::new() };
    let count = 1 + dice.below(3).min(changes.len().saturating_sub(1));
    let skipped = dice.below(changes.len() + 1 - count.min(changes.len()));
    let mut chosen: Vec<Hunk> = Vec::new();
    for bare in changes.into_iter().skip(skipped).take(count) {
        let context = 1 + dice.below(3);
        let free = chosen.last().map_or(0, Hunk::end);
        chosen.extend(bare.quoted(context, &pair.before).filter(|hunk| hunk.first >= free));
    }
    chosen
}

/// A pair's changes without context, and the random numbers of the pair.
fn usable(pair: &Pair) -> Option<(Dice, Vec<Hunk>)> {
    let plain = |text: &str| text.ends_with('\n') && !text.contains(['\r', '\0']);
    if !plain(&pair.before) || !plain(&pair.after) {
        return None;
    }
    let (before, after): (Vec<&str>, Vec<&str>) =
        (pair.before.lines().collect(), pair.after.lines().collect());
    let id = format!("{}@{}:{}", pair.repo, pair.commit.get(..12)?, pair.path);
    let dice = Dice::new(&id);
    let file: Vec<String> = before.iter().map(|line| (*line).to_owned()).collect();
    let hunk = |(first, lines)| Hunk {
        id: id.clone(),
        commit: pair.commit.clone(),
        path: pair.path.clone(),
        file: file.clone(),
        first,
        lines,
    };
    let mut changes = changes(&before, &after);
    changes.retain(|(_, lines)| is_usable(lines));
    Some((dice, changes.into_iter().map(hunk).collect()))
}

/// Whether a text is in another exactly once.
pub(crate) fn is_once(text: &str, part: &str) -> bool {
    match (text.find(part), text.rfind(part)) {
        (Some(first), Some(last)) => first == last,
        _ => false,
    }
}

/// The changes between two versions: where each begins, and its lines.
fn changes(before: &[&str], after: &[&str]) -> Vec<(usize, Vec<Line>)> {
    let mut found: Vec<(usize, Vec<Line>)> = Vec::new();
    let mut gap: Vec<Line> = Vec::new();
    let mut near = false;
    for op in capture_diff_slices(Algorithm::Patience, before, after) {
        let side = |lines: &[&str], range: std::ops::Range<usize>, kind| -> Vec<Line> {
            lines.iter().skip(range.start).take(range.len()).map(|text| Line::new(kind, *text)).collect()
        };
        if let DiffOp::Equal { len, .. } = op {
            near = len <= JOINED && !found.is_empty();
            gap = if near { side(before, op.old_range(), Kind::Common) } else { Vec::new() };
            continue;
        }
        if !near {
            found.push((op.old_range().start, Vec::new()));
        }
        if let Some((_, lines)) = found.last_mut() {
            lines.append(&mut gap);
            lines.extend(side(before, op.old_range(), Kind::Old));
            lines.extend(side(after, op.new_range(), Kind::New));
        }
        near = true;
    }
    found
}

/// Not too large, not only blank lines, and without what would be a mark of one of the formats.
fn is_usable(lines: &[Line]) -> bool {
    let changed = lines.iter().filter(|line| line.kind != Kind::Common);
    let marks = ["<<<<<<<", "=======", ">>>>>>>", "-------", "+++++++", "*** ", "@@", "```"];
    changed.clone().count() <= MAX_CHANGED
        && changed.clone().any(|line| !line.text.trim().is_empty())
        && !lines.iter().any(|line| marks.iter().any(|mark| line.text.trim_start().starts_with(mark)))
}

/// A patch's lines with their prefixes.
pub(crate) fn prefixed(lines: &[Line]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let prefix = match line.kind {
            Kind::Common => ' ',
            Kind::Old => '-',
            Kind::New => '+',
        };
        // Writing to a string can't fail.
        writeln!(text, "{prefix}{}", line.text).ok();
        text
    })
}

/// Which version of a case is taken; the same in every run (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(name: &str) -> Self {
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(name.bytes().fold(SEED, fnv))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 where that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or_default()
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(from.len());
        from.get(at)
    }
}

/// What every engine gets of a hunk, and what the answer is held against.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) commit: String,
    pub(crate) path: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) cases: Vec<Case>,
}

/// One hunk in one way of damage.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) damage: String,
    pub(crate) variant: String,
    /// As an edit tool's arguments: lines without the last one's line break.
    pub(crate) search: String,
    pub(crate) replace: String,
    /// The same as a patch's lines with their prefixes, where a patch can say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
    /// The file before and after, where it isn't the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<(String, String)>,
}
