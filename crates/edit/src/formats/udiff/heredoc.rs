//! Diffs that a command of a shell is to apply: `patch -p1 <<'EOF'`, `git apply <<EOF`.

use std::borrow::Cow;

/// Flags with which the command applies something else than the diff as it stands.
const OTHER_FLAGS: [&str; 5] = ["-R", "--reverse", "--dry-run", "--check", "--stat"];

/// Returns a text without the lines that give a diff to a command, and without those that end it.
pub(super) fn without_commands(text: &str) -> Cow<'_, str> {
    if memchr::memmem::find(text.as_bytes(), b"<<").is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut end: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        match end {
            Some(word) if line.trim() == word => end = None,
            None => match end_of_diff(line) {
                Some(word) => end = Some(word),
                None => out.push_str(line),
            },
            _ => out.push_str(line),
        }
    }
    // A diff without its end was cut off.
    if end.is_some() || out.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Returns the word that ends the diff that begins below a command.
fn end_of_diff(line: &str) -> Option<&str> {
    let (command, rest) = line.trim().split_once("<<")?;
    let word = rest.trim_start_matches('-').trim().trim_matches(['\'', '"', '\\']);
    let flags = command.strip_prefix("patch").or_else(|| command.strip_prefix("git apply"))?;
    let are_flags =
        flags.split_whitespace().all(|flag| flag.starts_with('-') && !OTHER_FLAGS.contains(&flag));
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    (are_flags && is_word && (flags.is_empty() || flags.starts_with(' '))).then_some(word)
}
