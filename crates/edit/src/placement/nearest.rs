//! Finding what a search text that isn't there was most likely meant to be.

use std::collections::HashSet;

use journeyman_text_diff::DiffOp;

use crate::lines::{Line, split_with_breaks};
use crate::outcome::{MAX_FEEDBACK_BYTES, NearestRegion, Refusal, truncate};
use crate::placement::already_made;
use crate::placement::attempts::explain_attempts;
use crate::placement::explain::excerpt_region;
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::line_profiles::{
    LineProfile, LineProfiles, MAX_KEPT_LINE_BYTES, MAX_PROFILED_LINES, MIN_VOTE_SIMILARITY,
};
use crate::placement::occurrences::has_blank_lines_at_edges;
use crate::placement::region::{Region, diff_trimmed_lines};

/// Only this many lines of the search text vote for a place; the longest tell most.
const MAX_VOTERS: usize = 8;
/// A longer search text is compared by its beginning.
const MAX_COMPARED_LINES: usize = 200;
/// Maximum number of extra lines of a region on either side, for lines that only the file has.
const MAX_EXTRA_LINES: usize = 8;
/// Maximum number of regions compared line by line.
const MAX_CANDIDATES: usize = 4;
/// A region less like the search text than this isn't worth showing.
const MIN_SHOWN_SIMILARITY: f32 = 0.35;
/// A replacement with fewer characters that aren't blank may stand anywhere by chance.
const MIN_DISTINCTIVE_CHARS: usize = 8;
/// Minimum lead in similarity of another region over the replacement's lines. With this lead the
/// other region was meant, and the replacement's text is in the file for another reason.
const MIN_SIMILARITY_LEAD: f32 = 0.1;

/// The refusal for a hunk that no step could place.
pub(super) fn not_found_refusal(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Refusal {
    let text = haystack.text;
    let LineProfiles { lines, profiles } = haystack.line_profiles();
    let wanted = compared_search_lines(hunk.search);
    let region = nearest_region(lines, profiles, &wanted);
    let already_applied = find_applied_replacement(text, &haystack.lines, lines, hunk).is_some_and(|at| {
        let there = at..at + hunk.replace.lines().count();
        let around = hunk.search.lines().take(MAX_COMPARED_LINES).count();
        let window = lines.iter().take(there.end + around).skip(at.saturating_sub(around));
        if already_made::has_removed_lines(hunk, window.copied()) {
            return false;
        }
        match &region {
            Some(near) if near.start < there.end && there.start < near.end => true,
            Some(near) => {
                Region::align(lines, &wanted, at, at + wanted.len()).similarity + MIN_SIMILARITY_LEAD
                    >= near.similarity
            }
            None => true,
        }
    });
    let attempts = explain_attempts(text, hunk, &wanted, lines, region.as_ref());
    let closest = region.map(|near| {
        let window = lines.get(near.start..near.end).unwrap_or_default();
        let text = truncate(&window.join("\n"), MAX_FEEDBACK_BYTES).to_owned();
        let line = u32::try_from(near.start + 1).unwrap_or(u32::MAX);
        let excerpt = excerpt_region(&wanted, window, near.start + 1, &near.ops);
        NearestRegion { line, text, similarity: near.similarity, excerpt }
    });
    Refusal::NotFound { closest, already_applied, attempts }
}

/// The search text's lines as far as they are compared.
fn compared_search_lines(search: &str) -> Vec<&str> {
    let mut wanted: Vec<&str> = search
        .split('\n')
        .take(MAX_COMPARED_LINES + 1)
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    if wanted.len() > 1 && wanted.last().is_some_and(|last| last.is_empty()) {
        wanted.pop();
    }
    wanted.truncate(MAX_COMPARED_LINES);
    wanted.into_iter().map(|line| truncate(line, MAX_KEPT_LINE_BYTES)).collect()
}

/// The 0-based line where the replacement stands, if it stands there exactly once, perhaps indented
/// otherwise, and can't well have stood there before the edit.
fn find_applied_replacement(text: &str, all: &[Line], lines: &[&str], hunk: &Hunk<'_>) -> Option<usize> {
    let replacement = hunk.replace;
    let distinctive = replacement.chars().filter(|c| !c.is_whitespace()).take(MIN_DISTINCTIVE_CHARS).count()
        >= MIN_DISTINCTIVE_CHARS;
    if !distinctive || !deletion_may_be_applied(lines, hunk) {
        return None;
    }
    // A replacement that only removes lines is in the file before the edit too.
    let old: HashSet<&str> = hunk.search.lines().map(str::trim).collect();
    if replacement.lines().map(str::trim).all(|line| line.is_empty() || old.contains(line)) {
        return None;
    }
    // Then a last blank line of the replacement is one, and not the end of the line before it.
    let lines_end_open = hunk.whole_lines || !hunk.search.ends_with('\n');
    let mut places = text.match_indices(replacement);
    match (places.next(), places.next()) {
        (Some(_), Some(_)) => return None,
        (Some((at, _)), None)
            if is_at_word_edges(text, at, replacement)
                && (!lines_end_open || has_blank_lines_at_edges(text, at, replacement)) =>
        {
            return Some(all.partition_point(|line| line.next_start() <= at));
        }
        (Some(_), None) => return None,
        _ => {}
    }
    let new: Vec<&str> =
        split_with_breaks(replacement.trim_end()).into_iter().map(|(line, _)| line.trim()).collect();
    let first = new.first()?;
    let ends = replacement.get(replacement.trim_end().len()..).unwrap_or_default().matches('\n').count();
    let blank_last = ends.saturating_sub(usize::from(!lines_end_open));
    let mut found = None;
    let mut work = 0;
    for (index, line) in lines.iter().enumerate() {
        if line.trim() != *first {
            continue;
        }
        let window = lines.iter().skip(index).take(new.len());
        let same = window.zip(&new).take_while(|(line, new)| line.trim() == **new).count();
        work += same + 1;
        // A file of equal lines would make this quadratic; what is that repetitive tells nothing
        // anyway.
        if work > MAX_PROFILED_LINES {
            return None;
        }
        if same == new.len() && (blank_last == 0 || has_blank_lines(lines, index + same, blank_last)) {
            if found.is_some() {
                return None;
            }
            found = Some(index);
        }
    }
    found
}

/// Returns true if so many blank lines stand there.
fn has_blank_lines(lines: &[&str], from: usize, count: usize) -> bool {
    let there = lines.iter().skip(from).take(count);
    there.filter(|line| line.trim().is_empty()).count() == count
}

/// Returns true if what is found begins and ends where words do: `sum(rows)` isn't in
/// `checksum(rows)`.
fn is_at_word_edges(text: &str, at: usize, found: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(at + found.len()..).and_then(|after| after.chars().next());
    let splits =
        |inner: Option<char>, outer: Option<char>| inner.is_some_and(is_word) && outer.is_some_and(is_word);
    !splits(found.chars().next(), before) && !splits(found.chars().next_back(), after)
}

/// Returns true if an edit that only deletes can have been made: what is left of the search text
/// can be in the file by chance, so none of the lines that go may be there, unless lines on both
/// sides of them are left and stand together now.
fn deletion_may_be_applied(lines: &[&str], hunk: &Hunk<'_>) -> bool {
    let (old, new) = (compared_search_lines(hunk.search), compared_search_lines(hunk.replace));
    let mut rest = old.iter().map(|line| line.trim());
    let only_deletes = new.len() < old.len() && new.iter().all(|line| rest.any(|old| old == line.trim()));
    if !only_deletes {
        return true;
    }
    let kept = |line: Option<&&str>, new: Option<&&str>| matches!((line, new), (Some(line), Some(new)) if line.trim() == new.trim());
    if new.len() > 1 && kept(old.first(), new.first()) && kept(old.last(), new.last()) {
        return true;
    }
    let stays: HashSet<&str> = new.iter().map(|line| line.trim()).collect();
    let goes: HashSet<&str> =
        old.iter().map(|line| line.trim()).filter(|line| !line.is_empty() && !stays.contains(line)).collect();
    !goes.is_empty() && !lines.iter().any(|line| goes.contains(line.trim()))
}

/// The region most like the search text: its longest lines vote for where it would begin, and the
/// places with most votes are compared line by line. Time is about (lines of the file) ×
/// [`MAX_VOTERS`].
fn nearest_region(lines: &[&str], profiles: &[LineProfile], wanted: &[&str]) -> Option<Region> {
    let lines = lines.get(..MAX_PROFILED_LINES).unwrap_or(lines);
    let mut voters: Vec<(usize, &str)> =
        wanted.iter().copied().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    voters.sort_by_key(|(index, line)| (std::cmp::Reverse(line.trim().len()), *index));
    voters.truncate(MAX_VOTERS);
    if voters.is_empty() || lines.is_empty() {
        return None;
    }
    let mut votes = vec![0.0_f32; lines.len() + wanted.len()];
    for (index, line) in voters {
        let mine = LineProfile::new(line);
        for (at, theirs) in profiles.iter().enumerate() {
            if !mine.is_comparable(*theirs) {
                continue;
            }
            let similarity = mine.similarity(*theirs);
            // Offset by the window's length, so that a window may begin before the file does.
            if let Some(vote) =
                votes.get_mut(at + wanted.len() - index).filter(|_| similarity >= MIN_VOTE_SIMILARITY)
            {
                *vote += similarity;
            }
        }
    }
    slots_with_most_votes(&votes)
        .into_iter()
        .map(|slot| align_region(lines, wanted, slot.saturating_sub(wanted.len())))
        .fold(None, |best: Option<Region>, next| match best {
            Some(best) if best.similarity >= next.similarity => Some(best),
            _ => Some(next),
        })
        .filter(|region| region.similarity >= MIN_SHOWN_SIMILARITY)
}

/// The slots with most votes, first ones first among equals.
fn slots_with_most_votes(votes: &[f32]) -> Vec<usize> {
    let mut best: Vec<(f32, usize)> = Vec::with_capacity(MAX_CANDIDATES + 1);
    for (slot, vote) in votes.iter().enumerate() {
        if *vote > 0.0 && (best.len() < MAX_CANDIDATES || best.last().is_some_and(|(least, _)| vote > least))
        {
            let at = best.partition_point(|(other, _)| other >= vote);
            best.insert(at, (*vote, slot));
            best.truncate(MAX_CANDIDATES);
        }
    }
    best.into_iter().map(|(_, slot)| slot).collect()
}

/// The region that begins about at `start`, with as many lines more as let the search text's first
/// and last line be in it.
fn align_region(lines: &[&str], wanted: &[&str], start: usize) -> Region {
    let from = start.saturating_sub(MAX_EXTRA_LINES);
    let to = (start + wanted.len() + MAX_EXTRA_LINES).min(lines.len());
    let wide = diff_trimmed_lines(wanted, lines.get(from..to).unwrap_or_default());
    let partner = |index: usize| {
        wide.iter().find_map(|op| match *op {
            DiffOp::Equal { old_index, new_index, len } if (old_index..old_index + len).contains(&index) => {
                Some(from + new_index + (index - old_index))
            }
            _ => None,
        })
    };
    let distinctive = |index: &usize| wanted.get(*index).is_some_and(|line| !line.trim().is_empty());
    let first =
        (0..wanted.len()).filter(distinctive).find_map(|index| Some(partner(index)?.saturating_sub(index)));
    let last = (0..wanted.len())
        .rev()
        .filter(distinctive)
        .find_map(|index| Some(partner(index)? + wanted.len() - index));
    let start = first.unwrap_or(start);
    Region::align(lines, wanted, start, last.unwrap_or(start + wanted.len()))
}
