//! The reasons why strategies did not place a hunk.

use std::collections::HashSet;

use journeyman_text_diff::{DiffOp, diff};

use crate::outcome::{FailedAttempt, Strategy};
use crate::placement::explain::{MAX_NOTED_LINE_BYTES, clip_text, show_blanks};
use crate::placement::hunk::Hunk;
use crate::placement::normalize::{LineReading, StringBlanks, squeeze_blanks};
use crate::placement::region::Region;
use crate::placement::similar_lines;

/// Maximum quoted bytes of a difference within a line.
const MAX_PIECE_BYTES: usize = 60;

/// Why the steps that come near did not place a hunk, strictest first.
pub(super) fn explain_attempts(
    text: &str,
    hunk: &Hunk<'_>,
    wanted: &[&str],
    lines: &[&str],
    region: Option<&Region>,
) -> Vec<FailedAttempt> {
    let mut attempts = Vec::new();
    match region {
        Some(region) => explain_by_region(&mut attempts, hunk, wanted, lines, region),
        None => explain_by_lines(&mut attempts, wanted, lines),
    }
    let elided = wanted.iter().position(|line| is_omission_line(line));
    let after = elided.and_then(|at| wanted.get(at + 1..)?.iter().find(|line| !line.trim().is_empty()));
    if let (Some(at), Some(after)) = (elided, after)
        && !text.contains(after.trim())
    {
        let why = format!(
            "after its line {} comes `{}`, which is not in the file",
            at + 1,
            clip_text(after.trim(), MAX_NOTED_LINE_BYTES)
        );
        attempts.push(FailedAttempt { steps: vec![Strategy::Elision], why });
    }
    if hunk.base.is_some() {
        let why = "it is not in the version that you were shown either".to_owned();
        attempts.push(FailedAttempt { steps: vec![Strategy::Merge], why });
    }
    attempts
}

/// Returns true if a line of a search text stands for others.
fn is_omission_line(line: &str) -> bool {
    let words = line.trim().trim_start_matches(['/', '#', '-', '*', '<', '!', ';', '%']).trim();
    words.starts_with("...") || words.starts_with('…')
}

/// The reasons that the nearest region shows.
fn explain_by_region(
    attempts: &mut Vec<FailedAttempt>,
    hunk: &Hunk<'_>,
    wanted: &[&str],
    lines: &[&str],
    region: &Region,
) {
    let window = lines.get(region.start..region.end).unwrap_or_default();
    let first_line = region.start + 1;
    let normal = |reading: LineReading| {
        move |one: &str, other: &str| reading.normalize_line(one) == reading.normalize_line(other)
    };
    let first =
        |same: &dyn Fn(&str, &str) -> bool| first_difference(wanted, window, first_line, &region.ops, same);
    let exact = |one: &str, other: &str| one == other;
    let mut push = |step: Strategy, why: String| match attempts.last_mut() {
        Some(last) if last.why == why => last.steps.push(step),
        _ => attempts.push(FailedAttempt { steps: vec![step], why }),
    };
    let steps: [(Strategy, Option<String>); 4] = [
        (Strategy::Exact, first(&exact)),
        (Strategy::TrailingWhitespace, first(&normal(LineReading::TrailingWhitespace))),
        (Strategy::Indentation, first(&normal(LineReading::Indentation))),
        (Strategy::InnerWhitespace, first(&normal(LineReading::InnerWhitespace))),
    ];
    for (step, why) in steps {
        if let Some(why) = why {
            push(step, why);
        }
    }
    let percent = (region.similarity * 100.0).floor() as u32;
    let needed = (similar_lines::MIN_SIMILARITY * 100.0).ceil() as u32;
    if wanted.iter().filter(|line| !line.trim().is_empty()).count() < similar_lines::MIN_SEARCH_LINES {
        push(
            Strategy::Similarity,
            format!("less than {} lines are never placed by it", similar_lines::MIN_SEARCH_LINES),
        );
        return;
    }
    if percent < needed {
        push(Strategy::Similarity, format!("{percent} % alike where {needed} are needed"));
        return;
    }
    let touched: HashSet<usize> = changed_lines(hunk, wanted);
    let guarded = changed_line_that_differs(wanted, window, &region.ops, &touched);
    let why = match guarded {
        Some(wanted) => format!("the edit changes its line {}, where nothing may differ", wanted + 1),
        None => "alike enough, but not the only place that is, or its first or last line differs".to_owned(),
    };
    push(Strategy::Similarity, why);
}

/// The search text's lines that the edit changes or deletes.
fn changed_lines(hunk: &Hunk<'_>, wanted: &[&str]) -> HashSet<usize> {
    // As many lines as the search text is compared by, and some for what the edit adds.
    let new: Vec<&str> = hunk.replace.lines().take(wanted.len() * 2).collect();
    let ops = diff(wanted, &new);
    ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).flat_map(DiffOp::old_range).collect()
}

/// The first of the search text's lines that the edit changes and that the file has otherwise.
fn changed_line_that_differs(
    wanted: &[&str],
    window: &[&str],
    ops: &[DiffOp],
    touched: &HashSet<usize>,
) -> Option<usize> {
    ops.iter().flat_map(|op| op.old_range().zip(op.new_range())).find_map(|(mine, theirs)| {
        let (mine_text, own) = (wanted.get(mine)?, window.get(theirs)?);
        let differs =
            squeeze_blanks(mine_text, StringBlanks::Strict) != squeeze_blanks(own, StringBlanks::Strict);
        (differs && touched.contains(&mine)).then_some(mine)
    })
}

/// Adds the attempts that can be explained without a similar region.
fn explain_by_lines(attempts: &mut Vec<FailedAttempt>, wanted: &[&str], lines: &[&str]) {
    let mine: HashSet<&str> = wanted.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let there: HashSet<&str> =
        lines.iter().map(|line| line.trim()).filter(|line| mine.contains(line)).collect();
    let why = match (mine.len(), there.len()) {
        (0, _) => "it has nothing but blanks".to_owned(),
        (1, _) => return,
        (_, 0) => "none of its lines is in the file".to_owned(),
        (all, some) => format!("of its {all} different lines only {some} are in the file, and not together"),
    };
    let steps =
        vec![Strategy::Exact, Strategy::TrailingWhitespace, Strategy::Indentation, Strategy::Similarity];
    attempts.push(FailedAttempt { steps, why });
}

/// Returns the first difference between search text and region, in words; lines are equal if `same`
/// says so.
fn first_difference(
    wanted: &[&str],
    window: &[&str],
    first_line: usize,
    ops: &[DiffOp],
    same: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        let old_len = old.len();
        for (mine, theirs) in old.clone().zip(new.clone()) {
            let (Some(mine_text), Some(own)) = (wanted.get(mine), window.get(theirs)) else { continue };
            if !same(mine_text, own) {
                return Some(describe_difference(mine_text, own, mine + 1, first_line + theirs));
            }
        }
        if let Some((mine, line)) = old.skip(new.len()).find_map(|at| nonblank_line(wanted, at)) {
            let line = clip_text(line.trim(), MAX_NOTED_LINE_BYTES);
            return Some(format!("its line {}, `{line}`, is not there in the file", mine + 1));
        }
        if let Some((theirs, line)) = new.skip(old_len).find_map(|at| nonblank_line(window, at)) {
            let line = clip_text(line.trim(), MAX_NOTED_LINE_BYTES);
            return Some(format!("it leaves out the file's line {}, `{line}`", first_line + theirs));
        }
    }
    None
}

/// A line that isn't blank, with its index.
fn nonblank_line<'a>(lines: &[&'a str], at: usize) -> Option<(usize, &'a str)> {
    lines.get(at).filter(|line| !line.trim().is_empty()).map(|line| (at, *line))
}

/// In what two lines differ, in words.
fn describe_difference(mine: &str, own: &str, mine_number: usize, own_number: usize) -> String {
    if squeeze_blanks(mine, StringBlanks::Loose) == squeeze_blanks(own, StringBlanks::Loose) {
        let (mine, own) = (show_blanks(mine), show_blanks(own));
        return format!("its line {mine_number} is `{mine}`, the file's line {own_number} `{own}`");
    }
    let (mine, own) = differing_middles(mine.trim(), own.trim());
    match (mine.is_empty(), own.is_empty()) {
        (true, _) => {
            format!("its line {mine_number} lacks `{own}`, which the file's line {own_number} has")
        }
        (_, true) => {
            format!("its line {mine_number} has `{mine}`, which the file's line {own_number} hasn't")
        }
        _ => format!("its line {mine_number} has `{mine}` where the file's line {own_number} has `{own}`"),
    }
}

/// Returns the differing middles of two lines, as whole words.
fn differing_middles(one: &str, other: &str) -> (String, String) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let same = |(x, y): &((usize, char), (usize, char))| x.1 == y.1;
    let head = one.char_indices().zip(other.char_indices()).take_while(same).last();
    let mut head = head.map_or(0, |((at, c), _)| at + c.len_utf8());
    let splits = |text: &str, at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        before.is_some_and(is_word)
            && text.get(at..).and_then(|text| text.chars().next()).is_some_and(is_word)
    };
    while head > 0 && (splits(one, head) || splits(other, head)) {
        head -= one.get(..head).and_then(|text| text.chars().next_back()).map_or(head, char::len_utf8);
    }
    let (one, other) = (one.get(head..).unwrap_or_default(), other.get(head..).unwrap_or_default());
    let tail = one.chars().rev().zip(other.chars().rev()).take_while(|(x, y)| x == y);
    let mut tail: usize = tail.map(|(c, _)| c.len_utf8()).sum();
    while tail > 0 && (splits(one, one.len() - tail) || splits(other, other.len() - tail)) {
        let rest = one.get(one.len() - tail..).and_then(|text| text.chars().next());
        tail -= rest.map_or(tail, char::len_utf8);
    }
    let piece =
        |text: &str| clip_text(text.get(..text.len() - tail).unwrap_or_default().trim(), MAX_PIECE_BYTES);
    (piece(one), piece(other))
}
