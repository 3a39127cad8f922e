//! A search text with one slip: a line too few, one too many, a stale one, or one with a typo.
//!
//! All other lines must be the file's, indentation included, in one place only. The slip is put
//! right in search text and replacement alike, and the hunk is placed as if it had been sent so;
//! what the edit changes is never guessed beyond a mistyped word that the new lines don't repeat.

use std::ops::Range;

use journeyman_text_diff::{DiffOp, diff_within};

use crate::lines::split_with_breaks;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::matches::{Match, Matches};
use crate::placement::tokens::{LineParts, is_similar, words};
use crate::placement::{artifacts, resolve};

/// Longer search texts aren't looked over for one slip.
const MAX_SEARCH_LINES: usize = 200;
/// Maximum number of line comparisons; reached only in files that repeat one line.
const MAX_COMPARISONS: usize = 1_000_000;
/// At least so many lines that aren't blank must be the file's.
const MIN_SOUND_LINES: usize = 2;
/// With fewer letters and digits lines are found by chance.
const MIN_DISTINCTIVE_CHARS: usize = 10;
/// Maximum number of characters that a typo adds, drops or exchanges.
const MAX_TYPO_CHARS: usize = 2;
/// A mistyped word is at least so many times as long as its typo.
const MIN_WORD_RATIO: usize = 3;

/// Where search text and file part company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slip {
    /// The search text's line isn't the file's, which has another in its place.
    Differs,
    /// The search text has a line that the file hasn't got.
    TooMany,
    /// The file has a line before it that the search text hasn't got.
    TooFew,
}

/// A place where all lines but one agree.
#[derive(Debug, Clone, Copy)]
struct SlipPlace {
    start: usize,
    /// The index of the search text's line with the slip.
    at: usize,
    slip: Slip,
}

/// The one place that is the search text's but for one slip.
pub(super) fn find_with_one_slip(
    haystack: &Haystack<'_>,
    hunk: &Hunk<'_>,
) -> Option<Result<PlacedEdit, Refusal>> {
    let texts = SlipTexts::from_hunk(hunk)?;
    let found = texts.candidates(haystack)?;
    let [only] = found.as_slice() else { return None };
    let (search, replace, note) = texts.correct_slip(haystack, *only)?;
    let whole = Hunk { search: &search, replace: &replace, ..*hunk };
    let count = search.split('\n').count() - usize::from(search.ends_with('\n'));
    let span = haystack.bytes_of_lines(only.start..only.start + count, search.ends_with('\n'));
    let places = vec![Match::line_by_line(span)];
    // Not as exact: what is written is the same, and the rules for loose matches hold.
    let matches = Matches { strategy: Strategy::Similarity, places, hunk: whole };
    match resolve::resolve_matches(haystack.text, &matches) {
        Err(Refusal::GuardedMismatch { .. } | Refusal::NoChange) => None,
        Err(refusal) => Some(Err(refusal)),
        Ok(placed) => Some(Ok(PlacedEdit { note: Some(note), ..placed })),
    }
}

/// Search text and replacement as lines, with those that they have in common.
struct SlipTexts<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
    closed: (bool, bool),
}

impl<'a> SlipTexts<'a> {
    fn from_hunk(hunk: &Hunk<'a>) -> Option<Self> {
        let lines = |text: &'a str| -> Vec<&'a str> {
            let mut lines: Vec<&str> = split_with_breaks(text).into_iter().map(|(line, _)| line).collect();
            if text.ends_with('\n') || text.is_empty() {
                lines.pop();
            }
            lines
        };
        let (old, new) = (lines(hunk.search), lines(hunk.replace));
        if hunk.all
            || hunk.allow.differences
            || !(MIN_SOUND_LINES + 1..=MAX_SEARCH_LINES).contains(&old.len())
        {
            return None;
        }
        let ops = diff_within(&old, &new, 4 * MAX_SEARCH_LINES);
        let closed = (hunk.search.ends_with('\n'), hunk.replace.ends_with('\n'));
        Some(Self { old, new, ops, closed })
    }

    /// The new line that stands for an old one that is kept.
    fn kept_line(&self, index: usize) -> Option<usize> {
        let keeps = |op: &&DiffOp| matches!(op, DiffOp::Equal { .. }) && op.old_range().contains(&index);
        let op = self.ops.iter().find(keeps)?;
        Some(op.new_range().start + (index - op.old_range().start))
    }

    /// Returns true if lines come between an old line and the one before it, with none going there.
    fn inserts_before(&self, index: usize) -> bool {
        self.ops.iter().any(|op| op.old_range() == (index..index) && !op.new_range().is_empty())
    }

    /// Returns true if a new line is nearly one of the file's that the search text leaves out: that
    /// one was meant to go.
    fn brings_nearly(&self, own: &str) -> bool {
        let nearly = |line: &str| !self.old.contains(&line) && is_similar(line.trim(), own.trim());
        !own.trim().is_empty() && self.new.iter().any(|line| nearly(line))
    }

    /// The places with one slip; `None` where there are too many to look at.
    fn candidates(&self, haystack: &Haystack<'_>) -> Option<Vec<SlipPlace>> {
        let mut found: Vec<SlipPlace> = Vec::new();
        let mut compared = 0_usize;
        let same = |wanted: usize, own: usize| {
            own < haystack.lines.len()
                && self
                    .old
                    .get(wanted)
                    .is_some_and(|line| line.trim_end() == haystack.line_content(own).trim_end())
        };
        let count = self.old.len();
        for start in 0..haystack.lines.len() {
            // The first line may be the one with the typo.
            let agreeing = (0..count).take_while(|at| same(*at, start + at)).count();
            compared += agreeing + 1;
            if agreeing == count || (agreeing == 0 && !same(1, start + 1)) {
                continue;
            }
            let mut rest = |wanted: Range<usize>, own: usize| {
                let from = wanted.start;
                let equal = wanted.clone().take_while(|at| same(*at, own + (at - from))).count();
                compared += equal + 1;
                equal == wanted.len()
            };
            let at = agreeing;
            if rest(at + 1..count, start + at + 1) {
                found.push(SlipPlace { start, at, slip: Slip::Differs });
            }
            // At an edge nothing tells a line too many or too few.
            if at > 0 && at + 1 < count && rest(at + 1..count, start + at) {
                found.push(SlipPlace { start, at, slip: Slip::TooMany });
            }
            if at > 0 && rest(at..count, start + at + 1) {
                found.push(SlipPlace { start, at, slip: Slip::TooFew });
            }
            if compared > MAX_COMPARISONS || found.len() > 1 {
                return None;
            }
        }
        Some(found)
    }

    /// Search text and replacement without the slip, and a note that says what it was.
    fn correct_slip(&self, haystack: &Haystack<'_>, place: SlipPlace) -> Option<(String, String, String)> {
        let SlipPlace { start, at, slip } = place;
        let sound = self
            .old
            .iter()
            .enumerate()
            .filter(|(index, line)| !line.trim().is_empty() && (*index != at || slip == Slip::TooFew));
        let sound: Vec<&str> = sound.map(|(_, line)| *line).collect();
        let distinctive = sound.iter().flat_map(|line| line.chars()).filter(|c| c.is_alphanumeric());
        if sound.len() < MIN_SOUND_LINES || distinctive.count() < MIN_DISTINCTIVE_CHARS {
            return None;
        }
        let own = haystack.line_content(start + at);
        let given = self.old.get(at).copied().unwrap_or_default();
        // Escapes that a line has too many, new lines have too.
        if artifacts::unescaped_readings(given).iter().any(|read| read.trim() == own.trim()) {
            return None;
        }
        let (mut old, mut new) = (self.old.clone(), self.new.clone());
        let note = match slip {
            Slip::Differs => {
                *old.get_mut(at)? = own;
                match self.kept_line(at) {
                    Some(kept) if self.is_stale_line(haystack, at, given, own) => {
                        *new.get_mut(kept)? = own;
                    }
                    Some(_) => return None,
                    None if self.is_typo(haystack, given, own) => {}
                    None => return None,
                }
                format!("its line {} differs from the file's, which was taken", at + 1)
            }
            Slip::TooMany => {
                let kept = self.kept_line(at)?;
                if self.is_elsewhere(haystack, given) || self.touches_insertion(at) {
                    return None;
                }
                old.remove(at);
                new.remove(kept);
                format!("its line {} is not in the file and was left out", at + 1)
            }
            Slip::TooFew => {
                // Between lines that come and the line above them nobody knows where they stand.
                if self.inserts_before(at) || self.brings_nearly(own) {
                    return None;
                }
                let before = at.checked_sub(1).and_then(|before| self.kept_line(before)).map(|kept| kept + 1);
                let kept = before.or_else(|| self.kept_line(at))?;
                old.insert(at, own);
                new.insert(kept, own);
                format!("the file's line {} is missing in it and was kept", start + at + 1)
            }
        };
        let joined = |lines: &[&str], closed: bool| {
            let mut text = lines.join("\n");
            if closed && !lines.is_empty() {
                text.push('\n');
            }
            text
        };
        Some((joined(&old, self.closed.0), joined(&new, self.closed.1), note))
    }

    /// Returns true if a line of context may be an older version of the file's line: like it, or a
    /// remark as it is one, and with no word that the file has elsewhere.
    fn is_stale_line(&self, haystack: &Haystack<'_>, at: usize, given: &str, own: &str) -> bool {
        let edge = at == 0 || at + 1 == self.old.len();
        let code = |line: &str| !LineParts::split_line(line).code.trim().is_empty();
        let alike = match (code(given), code(own)) {
            (true, true) => is_similar(given.trim(), own.trim()),
            (false, false) => true,
            _ => false,
        };
        alike
            && !edge
            && !self.is_elsewhere(haystack, given)
            && !has_word_from_elsewhere(haystack, given, own)
    }

    /// Returns true if a line that isn't at the place is another of the file's.
    fn is_elsewhere(&self, haystack: &Haystack<'_>, line: &str) -> bool {
        let line = line.trim();
        line.is_empty() || (0..haystack.lines.len()).any(|own| haystack.line_content(own).trim() == line)
    }

    /// Returns true if lines come right above or below a line of context.
    fn touches_insertion(&self, at: usize) -> bool {
        self.inserts_before(at) || self.inserts_before(at + 1)
    }

    /// Returns true if a changed line is the file's but for one mistyped word, of letters or with
    /// other underscores or capitals, which neither the file nor the new lines have.
    fn is_typo(&self, haystack: &Haystack<'_>, given: &str, own: &str) -> bool {
        let (mine, theirs): (Vec<&str>, Vec<&str>) = (words(given).collect(), words(own).collect());
        let letters = |word: &str| word.chars().all(|c| c.is_alphabetic() || c == '_');
        // `_x` and `x_` are names of their own.
        let joined =
            |word: &str| (word.starts_with('_'), word.replace('_', "").to_lowercase(), word.ends_with('_'));
        let rest =
            |line: &str| -> String { line.chars().filter(|c| !c.is_alphanumeric() && *c != '_').collect() };
        let differing: Vec<(&&str, &&str)> =
            mine.iter().zip(&theirs).filter(|(one, other)| one != other).collect();
        let ([(one, other)], true) =
            (differing.as_slice(), mine.len() == theirs.len() && rest(given) == rest(own))
        else {
            return false;
        };
        let distance = strsim::damerau_levenshtein(one, other);
        let longest = one.chars().count().max(other.chars().count());
        let known = |text: &str| words(text).any(|word| word == **one);
        // Another digit is another value.
        ((letters(one) && letters(other)) || joined(one) == joined(other))
            && distance <= MAX_TYPO_CHARS
            && distance * MIN_WORD_RATIO < longest
            && !known(haystack.text)
            && !self.new.iter().any(|line| known(line))
    }
}

/// Returns true if a line has a word that the file's line hasn't, but the file has elsewhere: then
/// the other place may be meant.
fn has_word_from_elsewhere(haystack: &Haystack<'_>, given: &str, own: &str) -> bool {
    let there: Vec<&str> = words(own).collect();
    let code = LineParts::split_line(given).code;
    words(code)
        .filter(|word| word.len() > 2 && !there.contains(word))
        .any(|word| words(haystack.text).any(|known| known == word))
}
