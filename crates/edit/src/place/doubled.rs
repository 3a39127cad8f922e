//! A replacement that repeats what stands next to the place: writing it would double those lines.

use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::Refusal;

/// Lines with fewer characters that aren't blank (closing brackets, `end`) stand next to each other by chance.
const TELLING: usize = 8;
/// How many lines are compared on either side.
const MAX_LINES: usize = 200;

/// Refuses a replacement whose last lines are the ones that follow the place, or whose first are those before it, where
/// the search text doesn't have them: either it was cut off, or the edit was made before.
pub(super) fn check(text: &str, span: &Range<usize>, search: &str, replacement: &str) -> Result<(), Refusal> {
    let (before, after) =
        (text.get(..span.start).unwrap_or_default(), text.get(span.end..).unwrap_or_default());
    let opens = before.is_empty() || before.ends_with('\n');
    let closes = search.ends_with('\n') || after.is_empty() || after.starts_with(['\n', '\r']);
    let after =
        if search.ends_with('\n') { after } else { after.split_once('\n').map_or("", |(_, rest)| rest) };
    let lines = |text| telling_lines(str::lines(text).take(MAX_LINES));
    let lines_back = |text| telling_lines(str::lines(text).rev().take(MAX_LINES));
    let below =
        if closes { repeated(&lines_back(search), &lines_back(replacement), &lines(after)) } else { 0 };
    let above = if opens { repeated(&lines(search), &lines(replacement), &lines_back(before)) } else { 0 };
    if below == 0 && above == 0 {
        return Ok(());
    }
    let (added, searched) = (lines(replacement).len(), lines(search).len());
    let is_made = |repeated: usize| repeated > 0 && added == searched + repeated;
    let same_start = || lines(replacement).iter().zip(lines(search)).all(|(one, other)| *one == other);
    let same_end =
        || lines_back(replacement).iter().zip(lines_back(search)).all(|(one, other)| *one == other);
    if (is_made(below) && same_start()) || (is_made(above) && same_end()) {
        return Err(Refusal::applied_before());
    }
    let (which, place) = if below > 0 { ("last", "after") } else { ("first", "before") };
    let difference = format!(
        "the replacement's {which} lines stand {place} the place already and would be doubled; the search text was \
         perhaps cut off"
    );
    Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference })
}

/// The lines that aren't blank, without their indentation's end.
fn telling_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines.map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// How many of the replacement's outermost lines are the nearest ones beside the place, in order; all three lists begin
/// at the border between them. None where the search text has the outermost one too.
fn repeated(search: &[&str], replacement: &[&str], beside: &[&str]) -> usize {
    if replacement.first() == search.first() {
        return 0;
    }
    let most = replacement.len().min(beside.len()).min(MAX_LINES);
    (1..=most)
        .rev()
        .find(|count| {
            let own = replacement.iter().take(*count).rev();
            let telling = replacement.iter().take(*count).any(|line| is_telling(line));
            telling && own.eq(beside.iter().take(*count))
        })
        .unwrap_or(0)
}

fn is_telling(line: &str) -> bool {
    line.chars().filter(|c| !c.is_whitespace()).take(TELLING).count() == TELLING
}
