//! Finding what a search text that isn't there was most likely meant to be.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::lines::{Line, lines_of, segments};
use crate::outcome::{Candidate, MAX_FEEDBACK_BYTES, Refusal, cut};
use crate::place::Hunk;
use crate::place::normal::Reading;
use crate::place::report::visible;

/// Only this many lines of a file are searched for likeness: time and memory stay small in generated files.
const MAX_LINES: usize = 200_000;
/// Only this many lines of the search text vote for a place; the longest tell most.
const MAX_VOTERS: usize = 8;
/// A longer search text is compared by its beginning.
const MAX_WINDOW: usize = 400;
/// How many places are compared line by line.
const FINALISTS: usize = 4;
/// How much of a line is looked at, in bytes.
const LINE_BYTES: usize = 400;
/// Lines less alike than this don't vote.
const LIKE: f32 = 0.5;
/// A region less like the search text than this isn't worth showing.
const WORTH_SHOWING: f32 = 0.35;
/// How long the excerpt may be, in bytes: the rest of [`MAX_FEEDBACK_BYTES`] is for the advice.
const EXCERPT_BYTES: usize = 1_600;
/// Equal lines shown next to a difference.
const AROUND: usize = 2;
/// A replacement with fewer characters that aren't blank may stand anywhere by chance.
const TELLING: usize = 8;

/// The refusal for a hunk that no step could place.
pub(crate) fn miss(text: &str, hunk: &Hunk<'_>) -> Refusal {
    let lines = lines_of(text);
    let already_applied = is_there_once(text, &lines, hunk.replace);
    Refusal::NotFound { closest: nearest(text, &lines, hunk.search), already_applied }
}

/// Whether the replacement is in the file exactly once, perhaps indented otherwise.
fn is_there_once(text: &str, lines: &[Line], replacement: &str) -> bool {
    let telling = replacement.chars().filter(|c| !c.is_whitespace()).take(TELLING).count() >= TELLING;
    if !telling {
        return false;
    }
    let mut places = text.match_indices(replacement);
    match (places.next(), places.next()) {
        (Some(_), Some(_)) => return false,
        (Some(_), None) => return true,
        _ => {}
    }
    let wanted: Vec<&str> =
        segments(replacement.trim_end()).into_iter().map(|(line, _)| line.trim()).collect();
    let Some(first) = wanted.first() else { return false };
    let own = |line: &Line| text.get(line.content()).unwrap_or_default().trim();
    let mut found = 0;
    let mut work = 0;
    for (index, line) in lines.iter().enumerate() {
        if own(line) != *first {
            continue;
        }
        let window = lines.iter().skip(index).take(wanted.len());
        let same = window.zip(&wanted).take_while(|(line, wanted)| own(line) == **wanted).count();
        found += usize::from(same == wanted.len());
        work += same;
        // A file of equal lines would make this quadratic; what is that repetitive tells nothing anyway.
        if found > 1 || work > MAX_LINES {
            return false;
        }
    }
    found == 1
}

/// A line boiled down to the set of its three-byte pieces, hashed into 128 bits.
fn signature(line: &str) -> u128 {
    let line = line.trim();
    let bytes = line.as_bytes();
    let bytes = bytes.get(..LINE_BYTES).unwrap_or(bytes);
    let bit = |hash: u32| 1_u128 << (hash.wrapping_mul(0x9e37_79b1) >> 25);
    if bytes.len() < 3 {
        return bytes.iter().fold(0, |set, byte| set | bit(u32::from(*byte)));
    }
    bytes
        .windows(3)
        .fold(0, |set, window| set | bit(window.iter().fold(0, |hash, byte| hash << 8 | u32::from(*byte))))
}

/// A signature with the number of its pieces, counted once.
#[derive(Clone, Copy)]
struct Pieces {
    set: u128,
    count: u32,
}

impl Pieces {
    fn of(line: &str) -> Self {
        let set = signature(line);
        Self { set, count: set.count_ones() }
    }

    /// How alike two lines are: Dice's coefficient.
    fn alike(self, other: Self) -> f32 {
        let both = self.count + other.count;
        if both == 0 { 1.0 } else { 2.0 * (self.set & other.set).count_ones() as f32 / both as f32 }
    }

    /// Whether the two can be alike enough to vote, by their numbers alone.
    fn comparable(self, other: Self) -> bool {
        let (few, many) = (self.count.min(other.count), self.count.max(other.count));
        2.0 * few as f32 >= LIKE * (few + many) as f32
    }
}

/// How alike two lines are: by their pieces, or by the beginning and end they share, whichever says more.
fn line_likeness(one: &str, other: &str) -> f32 {
    let (one, other) = (one.trim(), other.trim());
    if one == other {
        return 1.0;
    }
    let (a, b) = (cut(one, LINE_BYTES).as_bytes(), cut(other, LINE_BYTES).as_bytes());
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let tail = a.iter().skip(head).rev().zip(b.iter().skip(head).rev()).take_while(|(x, y)| x == y).count();
    let shared = 2.0 * (head + tail) as f32 / (a.len() + b.len()).max(1) as f32;
    // Never 1: they are not equal.
    shared.max(Pieces::of(one).alike(Pieces::of(other))).min(0.99)
}

/// The region most like the search text: its longest lines vote for where it would begin, and the places with
/// most votes are compared line by line. Time is about (lines of the file) × [`MAX_VOTERS`].
fn nearest(text: &str, lines: &[Line], search: &str) -> Option<Candidate> {
    let lines = lines.get(..MAX_LINES).unwrap_or(lines);
    let own = |line: &Line| text.get(line.content()).unwrap_or_default();
    let mut wanted: Vec<&str> = segments(search).into_iter().map(|(line, _)| line).collect();
    if wanted.len() > 1 && wanted.last().is_some_and(|last| last.is_empty()) {
        wanted.pop();
    }
    wanted.truncate(MAX_WINDOW);
    let mut voters: Vec<(usize, &str)> =
        wanted.iter().copied().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    voters.sort_by_key(|(index, line)| (std::cmp::Reverse(line.trim().len()), *index));
    voters.truncate(MAX_VOTERS);
    if voters.is_empty() || lines.is_empty() {
        return None;
    }
    let pieces: Vec<Pieces> = lines.iter().map(|line| Pieces::of(own(line))).collect();
    let mut votes = vec![0.0_f32; lines.len() + wanted.len()];
    for (index, line) in voters {
        let mine = Pieces::of(line);
        for (at, theirs) in pieces.iter().enumerate() {
            if !mine.comparable(*theirs) {
                continue;
            }
            let likeness = mine.alike(*theirs);
            // Offset by the window's length, so that a window may begin before the file does.
            if let Some(vote) = votes.get_mut(at + wanted.len() - index).filter(|_| likeness >= LIKE) {
                *vote += likeness;
            }
        }
    }
    let start = finalists(&votes)
        .into_iter()
        .map(|slot| slot.saturating_sub(wanted.len()))
        .map(|start| (start, window_likeness(&wanted, lines.get(start..).unwrap_or_default(), own)))
        .fold(None, |best: Option<(usize, f32)>, next| match best {
            Some((_, likeness)) if likeness >= next.1 => best,
            _ => Some(next),
        });
    let (start, similarity) = start.filter(|(_, likeness)| *likeness >= WORTH_SHOWING)?;
    let end = (start + wanted.len()).min(lines.len());
    let window: Vec<&str> = lines.get(start..end)?.iter().map(own).collect();
    let excerpt = excerpt(&wanted, &window, start + 1);
    let text = cut(&window.join("\n"), MAX_FEEDBACK_BYTES).to_owned();
    Some(Candidate { line: u32::try_from(start + 1).unwrap_or(u32::MAX), text, similarity, excerpt })
}

/// The slots with most votes, first ones first among equals.
fn finalists(votes: &[f32]) -> Vec<usize> {
    let mut best: Vec<(f32, usize)> = Vec::with_capacity(FINALISTS + 1);
    for (slot, vote) in votes.iter().enumerate() {
        if *vote > 0.0 && (best.len() < FINALISTS || best.last().is_some_and(|(least, _)| vote > least)) {
            let at = best.partition_point(|(other, _)| other >= vote);
            best.insert(at, (*vote, slot));
            best.truncate(FINALISTS);
        }
    }
    best.into_iter().map(|(_, slot)| slot).collect()
}

/// How alike the wanted lines and the window's are, each weighed by its length.
fn window_likeness<'a>(wanted: &[&str], window: &[Line], own: impl Fn(&Line) -> &'a str) -> f32 {
    let mut sum = 0.0;
    let mut weights = 0.0;
    for (index, line) in wanted.iter().enumerate() {
        let weight = line.trim().len().min(LINE_BYTES) as f32;
        let likeness = window.get(index).map_or(0.0, |other| line_likeness(line, own(other)));
        sum += weight * likeness;
        weights += weight;
    }
    if weights == 0.0 { 0.0 } else { sum / weights }
}

/// The region line by line with line numbers: equal lines plain, the search text's with `-`, the file's with `+`.
fn excerpt(wanted: &[&str], window: &[&str], first_line: usize) -> String {
    let keys = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| Reading::TrailingWhitespace.normal(line).into_owned()).collect()
    };
    let ops = capture_diff_slices(Algorithm::Myers, &keys(wanted), &keys(window));
    let mut rows: Vec<(bool, String)> = Vec::new();
    for op in &ops {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            rows.extend(
                new.filter_map(|at| Some((true, format!("  {} {}", first_line + at, window.get(at)?)))),
            );
            continue;
        }
        let blanks_only = |one: &str, other: &str| {
            Reading::InnerWhitespace.normal(one) == Reading::InnerWhitespace.normal(other)
        };
        let paired = old.len() == new.len()
            && old.clone().zip(new.clone()).all(|(one, other)| {
                matches!((wanted.get(one), window.get(other)), (Some(one), Some(other)) if blanks_only(one, other))
            });
        let show = |line: &str| if paired { visible(line) } else { line.to_owned() };
        rows.extend(old.filter_map(|at| Some((false, format!("- {}", show(wanted.get(at)?))))));
        rows.extend(
            new.filter_map(|at| Some((false, format!("+ {} {}", first_line + at, show(window.get(at)?))))),
        );
    }
    shorten(&rows)
}

/// Joins rows, leaving out equal ones far from a difference, within [`EXCERPT_BYTES`].
fn shorten(rows: &[(bool, String)]) -> String {
    let mut out = String::new();
    let mut left_out = 0;
    for (index, (equal, row)) in rows.iter().enumerate() {
        let around = rows.get(index.saturating_sub(AROUND)..(index + AROUND + 1).min(rows.len()));
        if *equal && around.is_some_and(|rows| rows.iter().all(|(equal, _)| *equal)) {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            out.push_str("  …\n");
            left_out = 0;
        }
        let row = cut(row, 240);
        if out.len() + row.len() > EXCERPT_BYTES {
            out.push_str(&format!("  … {} more lines", rows.len() - index));
            break;
        }
        out.push_str(row);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}
