//! Messages about refusals for the model: the problem, its position, and the remedy.

use std::fmt;
use std::fmt::Write as _;

use crate::outcome::{
    FailedAttempt, MAX_FEEDBACK_BYTES, MAX_LINES_NAMED, MatchOccurrence, NearestRegion, OtherEditsFate,
    Refusal, Strategy, truncate,
};

/// The file's own lines are repeated to be copied up to this size, in bytes; of more only the
/// numbers are given.
const MAX_COPIED_BYTES: usize = 600;
/// Maximum bytes of the strategies' reasons.
const MAX_REASON_BYTES: usize = 500;
/// Maximum bytes of either side of a conflict.
const MAX_CONFLICT_SIDE_BYTES: usize = 700;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_message(OtherEditsFate::Nothing, MAX_FEEDBACK_BYTES))
    }
}

impl Refusal {
    /// The refusal in words, in at most `limit` bytes.
    pub(crate) fn to_message(&self, fate: OtherEditsFate, limit: usize) -> String {
        let mut out = String::new();
        // Writing to a string doesn't fail.
        let written = match self {
            Self::NotFound { already_applied: true, .. } => write!(
                out,
                "The search text was not found, and the replacement is in the file already, once: the edit was most \
                 likely made before. {fate} Don't send it again; read the file if in doubt."
            ),
            Self::NotFound { closest: Some(near), attempts, .. } => {
                out = describe_not_found(near, attempts, fate, limit);
                Ok(())
            }
            Self::NotFound { closest: None, attempts, .. } => write_no_match(&mut out, attempts, fate),
            Self::Ambiguous { lines, strategy, spots } => {
                write_ambiguous(&mut out, lines, *strategy, spots, fate, limit)
            }
            Self::Symbol { symbol, candidates, ambiguous } => {
                write_no_symbol(&mut out, symbol, candidates, *ambiguous, fate)
            }
            Self::Conflict { line, theirs, ours } => write_conflict(&mut out, *line, theirs, ours, fate),
            other => other.write_sentence(&mut out, fate),
        };
        debug_assert!(written.is_ok());
        out.truncate(truncate(&out, limit).len());
        out
    }

    /// The refusals that need no more than a sentence.
    fn write_sentence(&self, out: &mut String, fate: OtherEditsFate) -> fmt::Result {
        match self {
            Self::EmptySearch => write!(
                out,
                "The search text is empty and the file is not. {fate} To insert, search for the line next to the \
                 place and repeat it in the replacement; to rewrite the file, give its whole content without a \
                 search text."
            ),
            Self::NoChange => out.write_str(
                "Nothing would change: the replacement is what the file already has there. If the file is as you \
                 want it, go on; else send a replacement that differs.",
            ),
            Self::GuardedMismatch { line, difference } => write!(
                out,
                "The nearest place, line {line}, differs from the search text in a way that may have a meaning: {}. \
                 {fate} Read the file around line {line} and copy the search text exactly.",
                truncate(difference, MAX_REASON_BYTES)
            ),
            Self::Placeholder { remark } => write!(
                out,
                "The replacement has a remark in place of code (`{}`), which would delete that code. {fate} Send the \
                 whole new text, or a smaller search text with only the lines that change.",
                truncate(remark, 200),
            ),
            Self::Overlap { with, line } => {
                write!(out, "It changes what edit {with} changes too (line {line}). {fate} Send one edit for both.")
            }
            Self::NoAnchor { anchor } => write!(
                out,
                "The line `{}`, which the hunk says stands before it, is not in the file where it should be. {fate} \
                 Copy such a line from the file, or leave it out and give more context lines.",
                truncate(anchor, 200),
            ),
            Self::SpanTooLarge { line, lines, searched } => write!(
                out,
                "The place at line {line} has {lines} lines and the search text {searched}: that much isn't replaced \
                 by what was not shown. {fate} Send the lines that change, copied from the file."
            ),
            Self::BrokenSyntax { line, message, strategy } => write!(
                out,
                "The file parses now and wouldn't after the edit: {} at line {line}. The place was found by \
                 {strategy}, so it may be the wrong one. {fate} Read the file and send the edit again with the search \
                 text copied from it.",
                truncate(message, MAX_REASON_BYTES)
            ),
            Self::Malformed { message } => {
                let message = truncate(message.trim_end_matches('.'), 4 * MAX_REASON_BYTES);
                write!(out, "{message}. {fate}")
            }
            Self::TooLarge { what, bytes, limit } => write!(
                out,
                "The {what} has {bytes} bytes; at most {limit} are handled. {fate} Make the edit in smaller parts, or \
                 by a command."
            ),
            Self::NotFound { .. } | Self::Ambiguous { .. } | Self::Symbol { .. } | Self::Conflict { .. } => Ok(()),
        }
    }
}

/// The nearest region, what differs there, why no step took it, and the lines to copy. What isn't
/// needed to repair the edit goes first where there is no room.
fn describe_not_found(
    near: &NearestRegion,
    attempts: &[FailedAttempt],
    fate: OtherEditsFate,
    limit: usize,
) -> String {
    let count = near.text.split('\n').count();
    let last = near.line.saturating_add(u32::try_from(count).unwrap_or(u32::MAX).saturating_sub(1));
    let whole = near.text.len() < MAX_FEEDBACK_BYTES;
    let region =
        if whole { describe_line_range(near.line, last) } else { format!("line {} and on", near.line) };
    let alike = (near.similarity * 100.0).floor();
    let head = format!("The search text was not found. {fate} Nearest: {region}, {alike:.0} % alike.\n");
    let why = join_reasons(attempts);
    let shown = format!(
        "Line by line (`-` your search text, `+` the file; · is a space, → a tab where only blanks differ):\n{}\n",
        near.excerpt
    );
    let advice = "Send the edit again with the search text copied from the file's own lines";
    let copy = if whole && near.text.len() <= MAX_COPIED_BYTES {
        format!("{advice}:\n{}", fence_text(&near.text))
    } else {
        format!("{advice}: {region}, or fewer of them that occur once.")
    };
    let short = format!("{advice}.");
    let fits = |parts: &[&str]| parts.iter().map(|part| part.len()).sum::<usize>() <= limit;
    let parts: [&[&str]; 3] =
        [&[&head, &why, &shown, &copy], &[&head, &why, &shown, &short], &[&head, &shown, &short]];
    let chosen = parts.into_iter().find(|parts| fits(parts));
    chosen.map_or_else(|| format!("{head}{short}"), <[&str]>::concat)
}

fn write_no_match(out: &mut String, attempts: &[FailedAttempt], fate: OtherEditsFate) -> fmt::Result {
    write!(out, "The search text was not found, and nothing in the file is like it. {fate}")?;
    if !attempts.is_empty() {
        write!(out, "\n{}", join_reasons(attempts))?;
    } else {
        out.push(' ');
    }
    out.write_str("Check the path, read the file, and copy the search text from it.")
}

fn join_reasons(attempts: &[FailedAttempt]) -> String {
    let mut out = String::new();
    for FailedAttempt { steps, why } in attempts {
        let names: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let row = format!("- {}: {why}\n", names.join(", "));
        if out.len() + row.len() > MAX_REASON_BYTES {
            break;
        }
        out.push_str(&row);
    }
    if out.is_empty() { out } else { format!("Why no step placed it:\n{out}") }
}

fn write_ambiguous(
    out: &mut String,
    lines: &[u32],
    strategy: Strategy,
    spots: &[MatchOccurrence],
    fate: OtherEditsFate,
    limit: usize,
) -> fmt::Result {
    write!(out, "The search text occurs {} times, at lines ", lines.len())?;
    list_line_numbers(out, lines)?;
    if strategy != Strategy::Exact {
        write!(out, " (no exact match; found by {strategy})")?;
    }
    writeln!(out, ". {fate}")?;
    let advice = "Add lines before or after it, copied from the file, until only the place you mean fits, or ask for all \
                  places to be replaced.";
    for spot in spots {
        let mut row = format!("- {}", describe_line_range(spot.first, spot.last));
        if let Some((line, text)) = &spot.within {
            write!(row, ", inside `{text}` (line {line})")?;
        }
        match &spot.distinctive {
            Some((line, text)) if *line < spot.first => {
                write!(row, ": to mean this one, begin the search text at line {line}, `{text}`")?;
            }
            Some((line, text)) => {
                write!(row, ": to mean this one, let the search text go on to line {line}, `{text}`")?;
            }
            None => {}
        }
        if out.len() + row.len() + advice.len() + 1 > limit {
            break;
        }
        writeln!(out, "{row}")?;
    }
    out.write_str(advice)
}

fn write_conflict(
    out: &mut String,
    line: u32,
    theirs: &str,
    ours: &str,
    fate: OtherEditsFate,
) -> fmt::Result {
    write!(
        out,
        "The file changed since you were shown it, in the lines that the edit changes. {fate} From line {line} the file \
         has now:\n{}\nYour edit would have made of what was there:\n{}\nRead the file there and send the edit for what \
         it has now.",
        fence_text(truncate(theirs, MAX_CONFLICT_SIDE_BYTES)),
        fence_text(truncate(ours, MAX_CONFLICT_SIDE_BYTES)),
    )
}

fn write_no_symbol(
    out: &mut String,
    symbol: &str,
    candidates: &[(String, u32)],
    ambiguous: bool,
    fate: OtherEditsFate,
) -> fmt::Result {
    let symbol = truncate(symbol, 200);
    if ambiguous {
        write!(out, "More than one symbol is called `{symbol}`")?;
    } else {
        write!(out, "The file has no symbol `{symbol}`")?;
    }
    for (nth, (path, line)) in candidates.iter().take(MAX_LINES_NAMED).enumerate() {
        let before = match (nth, ambiguous) {
            (0, true) => ": ",
            (0, false) => "; it has ",
            _ => ", ",
        };
        write!(out, "{before}`{}` (line {line})", truncate(path, 120))?;
    }
    write!(out, ". {fate} Name it by its whole path, parts divided by `.`.")
}

/// Some lines between fences that they don't hold themselves, as far as there is one.
pub(crate) fn fence_text(text: &str) -> String {
    let fences = ["```", "````", "`````", "~~~", "~~~~~"];
    let fence = fences.into_iter().find(|fence| !text.contains(fence)).unwrap_or("``````");
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Some lines by their numbers.
pub(crate) fn describe_line_range(first: u32, last: u32) -> String {
    if first >= last { format!("line {first}") } else { format!("lines {first}–{last}") }
}

/// Lists line numbers as people do: `1, 3 and 7`, with a bound.
fn list_line_numbers(out: &mut String, lines: &[u32]) -> fmt::Result {
    let named = lines.get(..MAX_LINES_NAMED).unwrap_or(lines);
    for (nth, line) in named.iter().enumerate() {
        match nth {
            0 => {}
            n if n + 1 == named.len() && named.len() == lines.len() => out.push_str(" and "),
            _ => out.push_str(", "),
        }
        write!(out, "{line}")?;
    }
    if named.len() < lines.len() {
        write!(out, " and {} more", lines.len() - named.len())?;
    }
    Ok(())
}
