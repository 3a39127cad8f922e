//! Context diffs, as `diff -c` writes them: each hunk has the old lines and the new ones apart.

use std::fmt::Write as _;
use std::iter::Peekable;

/// A line of a hunk: its sign, and its text behind that and a blank.
type SignedLine<'a> = (u8, &'a str);

/// Returns true if a text has a hunk of a context diff.
pub(in crate::formats) fn has_context_hunk(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b" ****").is_some()
        && text.lines().any(|line| parse_range(line, "*** ", " ****").is_some())
}

/// Returns a text with its context diffs written as unified ones; a hunk whose two sides don't
/// agree stays as it is.
pub(super) fn to_unified(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        let rest = lines.get(at..).unwrap_or_default();
        if is_header(rest) {
            let names = [("*** ", "--- "), ("--- ", "+++ ")];
            for ((given, usual), line) in names.into_iter().zip(rest) {
                out.push_str(usual);
                out.push_str(line.strip_prefix(given).unwrap_or(line));
            }
            at += 2;
        } else if let Some((hunk, taken)) = read_hunk(rest) {
            out.push_str(&hunk);
            at += taken;
        } else {
            // The row of stars above a hunk says nothing.
            let is_row = line.starts_with("*******") && line.trim().bytes().all(|byte| byte == b'*');
            let next = lines.get(at + 1).and_then(|next| parse_range(next, "*** ", " ****"));
            if !is_row || next.is_none() {
                out.push_str(line);
            }
            at += 1;
        }
    }
    out
}

/// Returns true for the two names of a diff, with a hunk below them.
fn is_header(lines: &[&str]) -> bool {
    let [old, new, third, ..] = lines else { return false };
    let is_hunk = third.starts_with("*******") || parse_range(third, "*** ", " ****").is_some();
    old.starts_with("*** ")
        && new.starts_with("--- ")
        && is_hunk
        && parse_range(old, "*** ", " ****").is_none()
}

/// The first line of `*** 1,4 ****`.
fn parse_range(line: &str, start: &str, end: &str) -> Option<u32> {
    let inner = line.trim_end().strip_prefix(start)?.trim_end_matches(['*', '-']);
    let signs = line.trim_end().len() - start.len() - inner.len();
    let numbers = inner.strip_suffix(' ').filter(|_| signs + 1 >= end.len())?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, last) = numbers.split_once(',').unwrap_or((numbers, numbers));
    (is_number(first) && is_number(last)).then(|| first.parse().ok())?
}

/// Reads the lines of one side.
fn read_side<'a>(lines: &[&'a str], signs: &[u8]) -> Vec<SignedLine<'a>> {
    let signed = |line: &&'a str| {
        let text = line.trim_end_matches(['\n', '\r']);
        let mut bytes = text.bytes();
        match (bytes.next(), bytes.next()) {
            (None, _) => Some((b' ', "")),
            (Some(sign), None | Some(b' ')) if signs.contains(&sign) => {
                Some((sign, text.get(2..).unwrap_or_default()))
            }
            _ => None,
        }
    };
    lines.iter().map_while(signed).collect()
}

/// Reads the hunk that begins with the range of its old side: as a unified one, and its lines.
fn read_hunk(lines: &[&str]) -> Option<(String, usize)> {
    let start = parse_range(lines.first()?, "*** ", " ****")?;
    let old = read_side(lines.get(1..)?, b" -!");
    let middle = 1 + old.len();
    let new_start = parse_range(lines.get(middle)?, "--- ", " ----")?;
    let mut new = read_side(lines.get(middle + 1..)?, b" +!");
    // Blank lines below it end the hunk.
    let stays = |side: &[SignedLine<'_>]| side.iter().filter(|(sign, _)| *sign == b' ').count();
    while new.last() == Some(&(b' ', "")) && stays(&new) > stays(&old) {
        new.pop();
    }
    let taken = middle + 1 + new.len();
    let is_changed = |side: &[SignedLine<'_>]| side.iter().any(|(sign, _)| *sign != b' ');
    let merged = match (is_changed(&old), is_changed(&new)) {
        (_, true) if old.is_empty() => to_lines(&new, b'+'),
        (true, false) if new.iter().all(|(_, text)| text.is_empty()) => to_lines(&old, b'-'),
        _ => merge(&old, &new)?,
    };
    let count = |left_out: char| merged.iter().filter(|(sign, _)| *sign != left_out).count();
    let (old_count, new_count) = (count('+'), count('-'));
    let mut hunk = String::new();
    let _infallible = writeln!(hunk, "@@ -{start},{old_count} +{new_start},{new_count} @@");
    for (sign, text) in merged {
        let _infallible = writeln!(hunk, "{sign}{text}");
    }
    Some((hunk, taken))
}

fn to_lines<'a>(side: &[SignedLine<'a>], changed: u8) -> Vec<(char, &'a str)> {
    side.iter().map(|(sign, text)| (if *sign == b' ' { ' ' } else { char::from(changed) }, *text)).collect()
}

/// Both sides as one; `None` where lines that stay differ.
fn merge<'a>(old: &[SignedLine<'a>], new: &[SignedLine<'a>]) -> Option<Vec<(char, &'a str)>> {
    type Side<'i, 'a> = Peekable<std::slice::Iter<'i, SignedLine<'a>>>;
    let (mut old, mut new): (Side<'_, 'a>, Side<'_, 'a>) = (old.iter().peekable(), new.iter().peekable());
    let mut merged = Vec::new();
    while old.peek().is_some() || new.peek().is_some() {
        while let Some((_, text)) = old.next_if(|(sign, _)| *sign != b' ') {
            merged.push(('-', *text));
        }
        while let Some((_, text)) = new.next_if(|(sign, _)| *sign != b' ') {
            merged.push(('+', *text));
        }
        match (old.next_if(|(sign, _)| *sign == b' '), new.next_if(|(sign, _)| *sign == b' ')) {
            (Some((_, one)), Some((_, other))) if one == other => merged.push((' ', *one)),
            (None, None) => {}
            _ => return None,
        }
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_table() {
        let head = "*** a.py\t2024-01-01\n--- a.py\t2024-01-02\n***************\n";
        for (hunk, expected) in [
            (
                "*** 1,3 ****\n  a\n! b\n  c\n--- 1,4 ----\n  a\n! B\n! x\n  c\n",
                "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+x\n c\n",
            ),
            (
                "*** 1,2 ****\n--- 1,3 ----\n  a\n+ x\n  b\n\nDone.\n",
                "@@ -1,2 +1,3 @@\n a\n+x\n b\n\nDone.\n",
            ),
            ("*** 4 ****\n  a\n- b\n--- 4 ----\n```\n", "@@ -4,2 +4,1 @@\n a\n-b\n```\n"),
            ("*** 1,2 ****\n- a\n  b\n--- 1,2 ----\n  b\n+ c\n", "@@ -1,2 +1,2 @@\n-a\n b\n+c\n"),
        ] {
            let text = format!("{head}{hunk}");
            assert!(has_context_hunk(&text));
            let names = "--- a.py\t2024-01-01\n+++ a.py\t2024-01-02\n";
            assert_eq!(to_unified(&text), format!("{names}{expected}"), "{hunk}");
        }
        for other in
            ["*** 1,2 ****\n  a\n! b\n--- 1,2 ----\n  z\n! c\n", "*** Begin Patch\n", "****\n*** a ****\n"]
        {
            assert_eq!(to_unified(other), other);
        }
    }
}
