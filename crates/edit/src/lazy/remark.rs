//! Remarks that stand for code.

/// The meaning of a remark for the code in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remark {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
}

/// Remarks are short; what is longer is prose.
const MAX_REMARK_BYTES: usize = 120;
/// Openers of comments in common languages.
const COMMENT_OPENERS: [&str; 14] =
    ["{/*", "<!--", "///", "//", "/**", "/*", "##", "#", "--[[", "--", "(*", ";;", ";", "%"];
/// Closers of comments.
const COMMENT_CLOSERS: [&str; 6] = ["*/}", "*/", "-->", "--]]", "]]", "*)"];
/// With dots at an edge, one of these words makes a remark of a comment.
const WORDS_BESIDE_DOTS: [&str; 26] = [
    "existing",
    "rest",
    "unchanged",
    "same",
    "remain",
    "remains",
    "remaining",
    "previous",
    "before",
    "above",
    "omitted",
    "other",
    "others",
    "keep",
    "kept",
    "as is",
    "unmodified",
    "original",
    "truncated",
    "elided",
    "skipped",
    "snip",
    "untouched",
    "more",
    "continue",
    "continues",
];
/// Without dots it takes one of these phrases, at the beginning of the comment …
const OPENING_PHRASES: [&str; 18] = [
    "existing code",
    "existing imports",
    "existing methods",
    "existing functions",
    "existing fields",
    "existing content",
    "rest of",
    "the rest of",
    "remaining code",
    "remaining methods",
    "remaining functions",
    "unchanged code",
    "keep existing",
    "keep the rest",
    "keep the existing",
    "other existing",
    "previous code",
    "code omitted",
];
/// … or at its end.
const CLOSING_PHRASES: [&str; 12] = [
    "unchanged",
    "remains the same",
    "remain the same",
    "remains unchanged",
    "remain unchanged",
    "stays the same",
    "stay the same",
    "same as before",
    "as before",
    "existing code here",
    "existing code",
    "no changes",
];
/// Without dots, the whole of it.
const WHOLE_PHRASES: [&str; 5] = ["same", "unchanged", "no change", "snip", "etc"];
/// Words for removal.
const REMOVAL_WORDS: [&str; 3] = ["removed", "deleted", "remove"];
/// Words that may follow a word for removal.
const REMOVED_THINGS: [&str; 16] = [
    "code",
    "line",
    "lines",
    "block",
    "section",
    "function",
    "functions",
    "method",
    "methods",
    "class",
    "import",
    "imports",
    "field",
    "fields",
    "statement",
    "statements",
];

/// Returns the meaning of a line that is only a remark.
pub(crate) fn remark_of_line(line: &str) -> Option<Remark> {
    let line = line.trim();
    if line.is_empty() || line.len() > MAX_REMARK_BYTES {
        return None;
    }
    match COMMENT_OPENERS.iter().find_map(|opener| line.strip_prefix(opener)) {
        Some(rest) => remark_of_words(
            COMMENT_CLOSERS.iter().find_map(|closer| rest.strip_suffix(closer)).unwrap_or(rest),
            true,
        ),
        // Without a comment it takes dots, and words.
        None => (line.starts_with("...")
            || line.starts_with('…')
            || line.starts_with("[...")
            || line.starts_with("(..."))
        .then(|| remark_of_words(line, false))
        .flatten(),
    }
}

/// The first line of a result that is a remark and wasn't there before, or a stand-in for one.
pub(crate) fn first_new_remark(result: &str, text: &str) -> Option<String> {
    if result.contains("__jm_remark_") && !text.contains("__jm_remark_") {
        return Some("a remark where code is expected".to_owned());
    }
    let known = |line: &&str| remark_of_line(line) == Some(Remark::Keep) && !text.contains(line.trim());
    result.lines().find(known).map(|line| line.trim().to_owned())
}

/// Returns the meaning of a comment's words.
fn remark_of_words(comment: &str, commented: bool) -> Option<Remark> {
    let comment = comment
        .trim()
        .trim_matches(['[', ']', '(', ')', '{', '}', '<', '>', '*', '-', '=', '#', '/', ' '])
        .trim();
    let opens = comment.starts_with("...") || comment.starts_with('…');
    let closes = comment.ends_with("...") || comment.ends_with('…');
    let words = comment.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if words.is_empty() {
        return (opens && commented).then_some(Remark::Keep);
    }
    let said = words.strip_prefix("plandex:").unwrap_or(&words).trim();
    if is_removal(said) {
        return Some(Remark::Remove);
    }
    // A sentence asks or says something of its own.
    if words.contains(['?', '=', ';', '{']) {
        return None;
    }
    let has = |word: &&str| contains_word(said, word);
    // Three dots may be code, too.
    if !(commented || opens && closes) {
        return None;
    }
    let kept = if opens && closes {
        commented || WORDS_BESIDE_DOTS.iter().any(&has)
    } else if opens || closes {
        WORDS_BESIDE_DOTS.iter().any(has) && said.split_whitespace().count() <= 8
    } else {
        commented
            && said.split_whitespace().count() <= 8
            && (OPENING_PHRASES.iter().any(|phrase| starts_with_words(said, phrase))
                || CLOSING_PHRASES.iter().any(|phrase| said.ends_with(phrase))
                || WHOLE_PHRASES.contains(&said))
    };
    kept.then_some(Remark::Keep)
}

fn is_removal(said: &str) -> bool {
    let mut words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    let rest: Vec<&str> = words.collect();
    let ends = rest.last().is_none_or(|last| REMOVED_THINGS.contains(last) || matches!(*last, "here"));
    // `removed the validation code`, not `remove the lock before the code runs`
    (REMOVAL_WORDS.contains(&first) && (first != "remove") && ends && rest.len() <= 5)
        || (REMOVED_THINGS.contains(&first)
            && rest.last().is_some_and(|last| matches!(*last, "removed" | "deleted"))
            && rest.len() <= 3)
}

/// Returns true if a line is a comment that says that something goes, whatever that is.
pub(super) fn is_removal_comment(line: &str, most: usize) -> bool {
    let line = line.trim();
    let Some(said) = COMMENT_OPENERS.iter().find_map(|opener| line.strip_prefix(opener)) else {
        return false;
    };
    let said = said.to_lowercase();
    let words: Vec<&str> =
        said.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let told = |word: &str| matches!(word, "removed" | "deleted");
    let asked = |word: &str| matches!(word, "remove" | "delete");
    let edges = [words.first(), words.last()].into_iter().flatten().any(|word| told(word));
    let asks = words.first().is_some_and(|word| asked(word));
    let names = words.iter().skip(1).filter(|word| !told(word) && !is_plain_word(word)).count();
    words.len() <= most && (edges || (asks && names <= 1))
}

/// Returns true if a word is one of those that stand beside a name in such a comment.
pub(super) fn is_plain_word(word: &str) -> bool {
    let others = [
        "the", "a", "an", "was", "is", "were", "been", "has", "from", "here", "old", "fn", "def", "func",
        "this",
    ];
    others.contains(&word) || REMOVED_THINGS.contains(&word)
}

fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn starts_with_words(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remark_table() {
        let keep = Some(Remark::Keep);
        let cases = [
            ("// ... existing code ...", keep),
            ("    # ... existing code ...  ", keep),
            ("/* … unchanged … */", keep),
            ("<!-- ... rest of the page ... -->", keep),
            ("{/* ... existing props ... */}", keep),
            ("-- ... same as before", keep),
            ("; ... rest ...", keep),
            ("% ... existing sections ...", keep),
            ("// ... same ...", keep),
            ("// ... imports ...", keep),
            ("// existing code", keep),
            ("# rest of the file remains unchanged", keep),
            ("// other methods unchanged", keep),
            ("// ...", keep),
            ("# …", keep),
            ("... existing code ...", keep),
            ("// keep existing handlers", keep),
            ("...", None),
            ("// Plandex: removed code", Some(Remark::Remove)),
            ("# removed the legacy methods", Some(Remark::Remove)),
            ("// ... removed code ...", Some(Remark::Remove)),
            ("// code removed", Some(Remark::Remove)),
            ("// removed in 2.0 because nobody used it", None),
            ("// remove the lock", None),
            ("// wait for the rest... then go on", None),
            ("// Loading...", None),
            ("// the existing code is slow", None),
            ("print(\"... existing code ...\")", None),
            ("let rest = [...existing];", None),
            ("...rest,", None),
            ("// Returns the same value", None),
            ("# keep", None),
            ("", None),
            ("//", None),
        ];
        for (line, expected) in cases {
            assert_eq!(remark_of_line(line), expected, "{line:?}");
        }
    }
}
