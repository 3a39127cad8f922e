//! A replacement that repeats what stands next to the place: writing it would double those lines.

use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::{Refusal, Strategy};
use crate::placement::already_made;
use crate::placement::hunk::Hunk;

/// Lines with fewer characters that aren't blank (closing brackets, `end`) stand next to each other
/// by chance.
const MIN_DISTINCTIVE_CHARS: usize = 8;
/// Maximum number of lines compared on either side.
const MAX_COMPARED_LINES: usize = 200;

/// Refuses a replacement whose last lines are the ones that follow the place, or whose first are
/// those before it, where the search text doesn't have them: either it was cut off, or the edit was
/// made before.
pub(super) fn refuse_duplicates(
    text: &str,
    span: &Range<usize>,
    hunk: &Hunk<'_>,
    strategy: Strategy,
) -> Result<(), Refusal> {
    let (before, after) =
        (text.get(..span.start).unwrap_or_default(), text.get(span.end..).unwrap_or_default());
    let (search, replacement) = (hunk.search, hunk.replace);
    if already_made::stands_around(text, span, hunk, strategy) {
        return Err(Refusal::for_applied_edit());
    }
    let below = LinesAtMatchEnd::at_match_end(text, span, after, hunk, strategy);
    let (below, filled_below) = below.map_or((0, 0), |below| {
        let (all, filled) = (below.count_repeated(), below.count_repeated_nonblank());
        (all.max(filled), below.count_nonblank(all).max(filled))
    });
    let opens = before.is_empty() || before.ends_with('\n');
    let lines = |text| nonblank_lines(str::lines(text).take(MAX_COMPARED_LINES));
    let lines_back = |text| nonblank_lines(str::lines(text).rev().take(MAX_COMPARED_LINES));
    let above = if opens {
        count_repeated_lines(&lines(search), &lines(replacement), &lines_back(before))
    } else {
        0
    };
    if below == 0 && above == 0 {
        return Ok(());
    }
    let (added, searched) = (lines(replacement).len(), lines(search).len());
    let telling_below =
        lines_back(replacement).into_iter().take(filled_below).filter(|line| is_distinctive(line)).count();
    let is_made = |repeated: usize| repeated > 0 && added == searched + repeated;
    // To the last blank: an edit that takes blanks away from the ends of lines as well isn't made.
    let same_start = || replacement.lines().zip(search.lines()).all(|(one, other)| one == other);
    let same_end = || replacement.lines().rev().zip(search.lines().rev()).all(|(one, other)| one == other);
    let made_below =
        || already_made::begins_with_replacement(text.get(span.start..).unwrap_or_default(), hunk);
    let made_above = || already_made::ends_with_replacement(text.get(..span.end).unwrap_or_default(), hunk);
    if (telling_below > 0 && is_made(filled_below) && same_start() && made_below())
        || (is_made(above) && same_end() && made_above())
    {
        return Err(Refusal::for_applied_edit());
    }
    let (which, place) = if below > 0 { ("last", "after") } else { ("first", "before") };
    let difference = format!(
        "the replacement's {which} lines stand {place} the place already and would be doubled; the search text was \
         perhaps cut off"
    );
    Err(Refusal::GuardedMismatch { line: line_at(text, span.start), difference })
}

/// The lines that meet at the end of a match, each list starting there: the last lines of both
/// texts backwards, the file's next.
struct LinesAtMatchEnd<'a> {
    search: Vec<&'a str>,
    replacement: Vec<&'a str>,
    next: Vec<&'a str>,
    /// All of the search text's lines are found to the last byte and stay, and others follow that a
    /// blank line sets apart: so does one after them.
    inserts_paragraph: bool,
}

impl<'a> LinesAtMatchEnd<'a> {
    /// `None` where the place ends within a line, or the replacement does.
    fn at_match_end(
        text: &str,
        span: &Range<usize>,
        after: &'a str,
        hunk: &Hunk<'a>,
        strategy: Strategy,
    ) -> Option<Self> {
        let closed = text.get(span.clone())?.ends_with('\n');
        let (mut search, mut replacement) = (hunk.search, hunk.replace);
        // Blank lines in the place of something are what was asked for.
        if replacement.trim().is_empty() {
            return None;
        }
        let next = if closed && (strategy != Strategy::Exact || replacement.ends_with('\n')) {
            // After a loose match a replacement always ends its last line.
            search = search.strip_suffix('\n').unwrap_or(search);
            replacement = replacement.strip_suffix('\n').unwrap_or(replacement);
            after
        } else if after.is_empty() || after.starts_with(['\n', '\r']) {
            after.split_once('\n').map_or("", |(_, rest)| rest)
        } else {
            return None;
        };
        let inserts_paragraph = (closed || hunk.whole_lines)
            && strategy == Strategy::Exact
            && replacement
                .strip_prefix(search)
                .is_some_and(|more| more.starts_with("\n\n") && !more.trim().is_empty());
        let back = |text: &'a str| text.rsplit('\n').map(str::trim_end).take(MAX_COMPARED_LINES).collect();
        let next = next.lines().map(str::trim_end).take(MAX_COMPARED_LINES).collect();
        Some(Self { search: back(search), replacement: back(replacement), next, inserts_paragraph })
    }

    /// Returns the number of the replacement's last lines that already follow the match. Where the
    /// search text ends as the replacement does, one line more or less tells nothing.
    fn count_repeated(&self) -> usize {
        let ends_alike = self.replacement.first() == self.search.first();
        let most = self.replacement.len().min(self.next.len());
        let is_repeated = |count: &usize| {
            let own = || self.replacement.iter().take(*count);
            let distinctive = own().any(|line| is_distinctive(line));
            let kept = own().eq(self.search.iter().take(*count));
            let blank = own().all(|line| line.is_empty());
            !(blank && self.inserts_paragraph)
                && (!ends_alike || (*count > 1 && distinctive && !kept))
                && own().rev().eq(self.next.iter().take(*count))
        };
        (1..=most).rev().find(is_repeated).unwrap_or(0).max(self.count_repeated_last_line())
    }

    /// Returns how many more times than the search text the replacement repeats the common last
    /// line, where so many of it follow the place and nothing else comes.
    fn count_repeated_last_line(&self) -> usize {
        let Some(last) = self.search.first().filter(|line| !line.is_empty()) else { return 0 };
        let run = |lines: &[&str]| lines.iter().take_while(|line| *line == last).count();
        let more = run(&self.replacement).saturating_sub(run(&self.search));
        let only = self.replacement.len() == self.search.len() + more;
        if only && more <= run(&self.next) { more } else { 0 }
    }

    /// Returns the number of non-blank lines among the replacement's last `count` lines.
    fn count_nonblank(&self, count: usize) -> usize {
        self.replacement.iter().take(count).filter(|line| !line.is_empty()).count()
    }

    /// The same where blank lines don't count.
    fn count_repeated_nonblank(&self) -> usize {
        let filled = |lines: &[&'a str]| nonblank_lines(lines.iter().copied());
        count_repeated_lines(&filled(&self.search), &filled(&self.replacement), &filled(&self.next))
    }
}

/// The lines that aren't blank, without their indentation's end.
fn nonblank_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines.map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// Returns the number of the replacement's outermost lines that equal the nearest lines beside the
/// match, in order; all three lists begin at the border between them. None where the search text
/// has the outermost one too.
fn count_repeated_lines(search: &[&str], replacement: &[&str], beside: &[&str]) -> usize {
    if replacement.first() == search.first() {
        return 0;
    }
    let most = replacement.len().min(beside.len()).min(MAX_COMPARED_LINES);
    (1..=most)
        .rev()
        .find(|count| {
            let own = replacement.iter().take(*count).rev();
            let distinctive = replacement.iter().take(*count).any(|line| is_distinctive(line));
            distinctive && own.eq(beside.iter().take(*count))
        })
        .unwrap_or(0)
}

fn is_distinctive(line: &str) -> bool {
    line.chars().filter(|c| !c.is_whitespace()).take(MIN_DISTINCTIVE_CHARS).count() == MIN_DISTINCTIVE_CHARS
}
