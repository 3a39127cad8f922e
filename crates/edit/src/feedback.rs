//! Feedback for the model about edits that failed and edits that succeeded.

use std::collections::BTreeSet;

use journeyman_protocol::RelPath;
use memchr::memmem;

use crate::change::{FileOps, OpError};
use crate::edit::{EditOp, LineKind};
use crate::files::Files;
use crate::lines::line_at;
use crate::outcome::messages::{describe_line_range, fence_text};
use crate::outcome::{MAX_FEEDBACK_BYTES, OtherEditsFate, Refusal, truncate};
use crate::plan::{EditFailure, EditPlan};

/// Maximum number of other files searched for a text that isn't in the named file.
const MAX_SEARCHED_FILES: usize = 48;
/// Maximum bytes searched in those files together: one to two milliseconds.
const MAX_SEARCHED_BYTES: usize = 8 << 20;
/// Maximum number of those files that a message names.
const MAX_NAMED_FILES: usize = 4;
/// A shorter search text, in characters that aren't blank, may be in any file by chance.
const MIN_DISTINCTIVE_CHARS: usize = 10;
/// Maximum number of paths compared with a missing path. The caller lists them.
const MAX_COMPARED_PATHS: usize = 2_000;
/// A path less like the one that was named than this isn't worth naming (Jaro and Winkler).
const MIN_SUGGESTED_SIMILARITY: f64 = 0.8;
/// Maximum bytes of a path in a message.
const MAX_SHOWN_PATH_BYTES: usize = 160;
/// The file's lines around a place that are shown where the refusal names only its number.
const CONTEXT_LINES: u32 = 2;
/// Maximum bytes of those lines in a message.
const MAX_CONTEXT_BYTES: usize = 500;
/// Maximum number of occurrences of a piece of the search text examined in another file.
const MAX_EXAMINED_OCCURRENCES: usize = 64;

/// Returns the message about a file's failed edit, within [`MAX_FEEDBACK_BYTES`].
pub(crate) fn describe_failure(
    file: &FileOps,
    text: Option<&str>,
    error: &OpError,
    files: &dyn Files,
    fate: OtherEditsFate,
) -> EditFailure {
    let path = shorten_path(&file.path);
    let (kind, nearest, message) = match error {
        OpError::Refused { op, of, refusal } => {
            let nearest = match refusal {
                Refusal::NotFound { closest: Some(near), .. } => Some((near.line, near.text.clone())),
                _ => None,
            };
            let mut more = String::new();
            if refusal.kind() == "not_found" {
                more.push_str(&name_files_with_text(file, *op, files));
            }
            if let Some(excerpt) = quote_context(text, refusal) {
                more.push_str(&excerpt);
            }
            let head = format!("{path}: edit {} of {of}: ", op + 1);
            let room = MAX_FEEDBACK_BYTES.saturating_sub(head.len() + more.len());
            (refusal.kind(), nearest, format!("{head}{}{more}", refusal.to_message(fate, room)))
        }
        OpError::Missing { op, of } => {
            let mut message = format!("{path}: edit {} of {of}: the file does not exist. {fate} ", op + 1);
            message.push_str(&match similar_paths(&file.path, files).as_slice() {
                [] => "Check the path; to create the file, give its whole content without a search text.".to_owned(),
                names => format!(
                    "There is {}: if that is meant, send the edit for it; to create the file, give its whole content \
                     without a search text.",
                    names.join(", ")
                ),
            });
            message.push_str(&name_files_with_text(file, *op, files));
            ("missing", None, message)
        }
        OpError::Exists { op, of } => {
            let message = format!(
                "{path}: edit {} of {of}: the file exists already. {fate} To change it, send what to replace; to \
                 replace it whole, send a full rewrite.",
                op + 1
            );
            ("exists", None, message)
        }
        OpError::Nothing => ("nothing", None, format!("{path}: {error}")),
    };
    let message = truncate(&message, MAX_FEEDBACK_BYTES).to_owned();
    EditFailure { path: Some(file.path.clone()), kind, message, nearest }
}

fn shorten_path(path: &RelPath) -> String {
    let path = path.to_string();
    let short = truncate(&path, MAX_SHOWN_PATH_BYTES);
    if short.len() < path.len() { format!("{short}…") } else { path }
}

/// The file's own lines around the place that a refusal only names.
fn quote_context(text: Option<&str>, refusal: &Refusal) -> Option<String> {
    let (Refusal::GuardedMismatch { line, .. }
    | Refusal::SpanTooLarge { line, .. }
    | Refusal::Overlap { line, .. }) = refusal
    else {
        return None;
    };
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let count = (line + CONTEXT_LINES).saturating_sub(first) + 1;
    let lines: Vec<&str> = text?.lines().skip(first as usize - 1).take(count as usize).collect();
    let last = first + u32::try_from(lines.len()).ok()?.checked_sub(1)?;
    let lines = lines.join("\n");
    (lines.len() <= MAX_CONTEXT_BYTES)
        .then(|| format!("\nThe file's {}:\n{}", describe_line_range(first, last), fence_text(&lines)))
}

/// The text that a step looks for.
fn search_text_of(file: &FileOps, op: usize) -> Option<String> {
    match file.ops.get(op)? {
        EditOp::Replace(wish) => Some(wish.search.clone()),
        EditOp::Patch(hunk) => {
            let old = hunk.lines.iter().filter(|line| line.kind != LineKind::Add);
            let lines: Vec<&str> = old.map(|line| line.text.as_str()).collect();
            Some(lines.join("\n"))
        }
        _ => None,
    }
}

/// Returns the distance of two paths: by file name first, then by kind of file, then by the
/// directories they share.
fn path_distance(path: &RelPath, other: &RelPath) -> (bool, bool, usize) {
    let shared = path.components().zip(other.components()).take_while(|(one, other)| one == other).count();
    let steps = path.components().count() + other.components().count() - 2 * shared;
    (path.file_name() != other.file_name(), path.extension() != other.extension(), steps)
}

/// The other files that have the search text, in a sentence.
fn name_files_with_text(file: &FileOps, op: usize, files: &dyn Files) -> String {
    let Some(search) = search_text_of(file, op) else { return String::new() };
    let lines: Vec<&str> = search.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_distinctive = search.chars().filter(|c| !c.is_whitespace()).take(MIN_DISTINCTIVE_CHARS).count()
        >= MIN_DISTINCTIVE_CHARS;
    // Looking for the longest line finds the places at which the others are compared.
    let Some(longest) = lines.iter().max_by_key(|line| line.len()).filter(|_| is_distinctive) else {
        return String::new();
    };
    let finder = memmem::Finder::new(longest.as_bytes());
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut others = files.other_paths();
    others.retain(|other| *other != file.path);
    others.sort_by_cached_key(|other| path_distance(&file.path, other));
    for path in others.into_iter().take(MAX_SEARCHED_FILES) {
        let Ok(Some(text)) = files.text(&path) else { continue };
        looked_at += text.len();
        if looked_at > MAX_SEARCHED_BYTES || found.len() > MAX_NAMED_FILES {
            break;
        }
        let mut tried = finder.find_iter(text.as_bytes()).take(MAX_EXAMINED_OCCURRENCES);
        if let Some(line) = tried.find_map(|at| block_start_line(&text, at, &lines, longest)) {
            found.push(format!("{} (line {line})", shorten_path(&path)));
        }
    }
    let more = if found.len() > MAX_NAMED_FILES { " and more" } else { "" };
    found.truncate(MAX_NAMED_FILES);
    match found.as_slice() {
        [] => String::new(),
        names => {
            format!("\nThe search text is in {}{more}: name that file if it is meant.", names.join(", "))
        }
    }
}

/// The line where some lines stand, blanks at their ends and blank lines aside, if the `longest` of
/// them is at `at`.
fn block_start_line(text: &str, at: usize, lines: &[&str], longest: &str) -> Option<u32> {
    let nth = lines.iter().position(|line| line == &longest)?;
    let start = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
    if let [_] = lines {
        return Some(line_at(text, start));
    }
    let own = text.get(start..)?.lines().map(str::trim).filter(|line| !line.is_empty());
    if !own.take(lines.len() - nth).eq(lines.iter().skip(nth).copied()) {
        return None;
    }
    let above = text.get(..start)?.lines().rev().map(str::trim).enumerate();
    let above: Vec<(usize, &str)> = above.filter(|(_, line)| !line.is_empty()).take(nth).collect();
    let same = above.iter().map(|(_, line)| *line).eq(lines.iter().take(nth).rev().copied());
    let up = above.last().map_or(0, |(up, _)| up + 1);
    same.then(|| line_at(text, start).saturating_sub(u32::try_from(up).unwrap_or(u32::MAX)))
}

/// The paths most like one that isn't there.
fn similar_paths(path: &RelPath, files: &dyn Files) -> Vec<String> {
    let wanted = path.to_string();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let wanted = truncate(&wanted, MAX_SHOWN_PATH_BYTES);
    let wanted_name = name(wanted);
    let mut best: Vec<(f64, String)> = files
        .other_paths()
        .into_iter()
        .take(MAX_COMPARED_PATHS)
        .map(|other| shorten_path(&other))
        .filter_map(|other| {
            // The name counts most: files are moved more often than they are renamed.
            let similarity = strsim::jaro_winkler(&name(&other), &wanted_name)
                .max(strsim::normalized_levenshtein(&other, wanted));
            (similarity >= MIN_SUGGESTED_SIMILARITY).then_some((similarity, other))
        })
        .collect();
    best.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    best.truncate(MAX_NAMED_FILES);
    best.into_iter().map(|(_, path)| path).collect()
}

impl EditPlan {
    /// Returns the message about failed edits and the fate of the others; empty where nothing
    /// failed. At most [`MAX_FEEDBACK_BYTES`] for all of it: where several edits failed, the later
    /// ones are told in one line each.
    #[must_use]
    pub fn feedback(&self) -> String {
        let Some((first, others)) = self.failed.split_first() else { return String::new() };
        let rest = self.describe_other_edits();
        let mut out = String::new();
        let mut room = MAX_FEEDBACK_BYTES.saturating_sub(rest.len());
        // The first one in full, as far as the others' first lines leave room for it.
        let line = |failure: &EditFailure| {
            truncate(failure.message.lines().next().unwrap_or_default(), 300).to_owned()
        };
        let brief: Vec<String> = others.iter().map(line).collect();
        let brief_bytes: usize = brief.iter().map(|line| line.len() + 1).sum();
        let full = truncate(&first.message, room.saturating_sub(brief_bytes.min(room / 2) + 1));
        out.push_str(full);
        out.push('\n');
        room -= out.len().min(room);
        for (nth, line) in brief.iter().enumerate() {
            let more = format!("… and {} more that failed\n", brief.len() - nth);
            if line.len() + 1 + more.len() > room {
                out.push_str(truncate(&more, room));
                break;
            }
            room -= line.len() + 1;
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(&rest);
        out.truncate(out.trim_end().len());
        out
    }

    /// Returns a sentence about the edits that could be made.
    fn describe_other_edits(&self) -> String {
        let mut fine = String::new();
        let mut left = 0;
        let failed: BTreeSet<&RelPath> =
            self.failed.iter().filter_map(|failure| failure.path.as_ref()).collect();
        for change in &self.changes {
            let mut name = shorten_path(&change.path);
            if failed.contains(&change.path) {
                let mut edits: Vec<String> =
                    change.notes.iter().map(|note| (note.op + 1).to_string()).collect();
                edits.dedup();
                name.push_str(&format!(" (edit {})", truncate(&edits.join(", "), 60)));
            }
            if fine.len() + name.len() > MAX_CONTEXT_BYTES {
                left += 1;
                continue;
            }
            fine.push_str(if fine.is_empty() { "" } else { ", " });
            fine.push_str(&name);
        }
        if left > 0 {
            fine.push_str(&format!(" and {left} more"));
        }
        match (fine.is_empty(), self.is_partial()) {
            (true, _) if self.failed.len() == 1 => String::new(),
            (true, _) => "Nothing was written.".to_owned(),
            (false, true) => format!("Written: {fine}. Don't send those again, only what failed."),
            (false, false) => format!(
                "Nothing was written, for it is all or nothing. What fits: {fine}. Send those as they were, together with \
                 the corrected ones."
            ),
        }
    }
}
