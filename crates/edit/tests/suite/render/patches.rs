//! Diffs as git writes them, and V4A patches.

use super::diff::{Hunk, hunks, unique_hunks};
use super::named::Named;

/// Number of context lines around a change, as in git.
const CONTEXT: usize = 3;
const NO_NEWLINE: &str = "\\ No newline at end of file\n";

/// The diff, in the one way there is.
pub(super) fn udiff(named: &Named<'_>) -> Vec<String> {
    let change = named.change;
    let (old, new) = (quoted("a/", named.path), quoted("b/", named.to.unwrap_or(named.path)));
    let mut out = format!("diff --git {old} {new}\n");
    match (&change.before, &change.after) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => out.push_str("new file mode 100644\n"),
        (Some(_), None) => out.push_str("deleted file mode 100644\n"),
        (Some(_), Some(_)) => {}
    }
    if let Some(to) = named.to {
        let (from, to) = (quoted("", named.path), quoted("", to));
        out.push_str(&format!("rename from {from}\nrename to {to}\n"));
    }
    let (before, after) = (change.before.as_deref().unwrap_or(""), change.after.as_deref().unwrap_or(""));
    let hunks = hunks(before, after, CONTEXT);
    if !hunks.is_empty() {
        let old = if change.before.is_some() { name(&old) } else { "/dev/null".to_owned() };
        let new = if change.after.is_some() { name(&new) } else { "/dev/null".to_owned() };
        out.push_str(&format!("--- {old}\n+++ {new}\n"));
    }
    for hunk in &hunks {
        let (old, new) = (range(hunk.old, hunk.count('-')), range(hunk.new, hunk.count('+')));
        out.push_str(&format!("@@ -{old} +{new} @@\n"));
        lines(&mut out, hunk);
    }
    vec![out]
}

/// The patch of one file, without the envelope.
pub(super) fn v4a(named: &Named<'_>) -> Vec<String> {
    let change = named.change;
    if [Some(named.path), named.to].into_iter().flatten().any(|name| name.chars().any(char::is_control)) {
        return Vec::new();
    }
    let path = named.path;
    let (before, after) = match (&change.before, &change.after) {
        (None, None) => return Vec::new(),
        (None, Some(after)) => return vec![added(path, after)],
        (Some(_), None) => return vec![format!("*** Delete File: {path}\n")],
        (Some(before), Some(after)) => (before, after),
    };
    let mut out = format!("*** Update File: {path}\n");
    if let Some(to) = named.to {
        out.push_str(&format!("*** Move to: {to}\n"));
    }
    for hunk in unique_hunks(before, after) {
        out.push_str("@@\n");
        lines(&mut out, &hunk);
    }
    vec![out]
}

fn added(path: &str, content: &str) -> String {
    let mut out = format!("*** Add File: {path}\n");
    for line in content.split_inclusive('\n') {
        out.push('+');
        out.push_str(line);
    }
    if !content.is_empty() && !content.ends_with('\n') {
        out.push('\n');
        out.push_str(NO_NEWLINE);
    }
    out
}

fn lines(out: &mut String, hunk: &Hunk<'_>) {
    for (prefix, text) in &hunk.lines {
        out.push(*prefix);
        out.push_str(text);
        if !text.ends_with('\n') {
            out.push('\n');
            out.push_str(NO_NEWLINE);
        }
    }
}

/// A side's range. One without lines is named by the line before it.
fn range(first: usize, count: usize) -> String {
    match count {
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{count}", first + 1),
    }
}

/// A name after `---` or `+++`: where it has blanks, a tab says where it ends.
fn name(quoted: &str) -> String {
    if quoted.contains(' ') && !quoted.starts_with('"') { format!("{quoted}\t") } else { quoted.to_owned() }
}

/// A name as git writes it: quoted as in C where it has to be.
fn quoted(side: &str, path: &str) -> String {
    let special = |c: char| c.is_control() || c == '"' || c == '\\';
    let edges = path.starts_with(char::is_whitespace) || path.ends_with(char::is_whitespace);
    if !path.contains(special)
        && !edges
        && !path.contains(" b/")
        && !path.contains('`')
        && !path.contains(" 1")
        && !path.contains(" 2")
    {
        return format!("{side}{path}");
    }
    let mut out = format!("\"{side}");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                out.push_str(&format!("\\{byte:03o}"));
            }
        }
    }
    out.push('"');
    out
}
