//! Remarks that stand for code: `// ... existing code ...`, `# (unchanged)`.

/// The meaning of a remark for the code in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
}

/// Remarks are short; what is longer is prose.
const MAX_PLACEHOLDER_BYTES: usize = 120;
/// Words of a remark without dots at both edges.
const MAX_PLACEHOLDER_WORDS: usize = 9;
/// Words of a comment that may be meant as a remark.
const MAX_DOUBTFUL_WORDS: usize = 14;
/// Openers of comments in common languages, longer ones before their beginnings.
const COMMENT_OPENERS: [&str; 18] = [
    "{/*", "{{!--", "{#", "<!--", "<%#", "///", "//", "/**", "/*", "##", "#", "--[[", "--", "(*", ";;", ";",
    "%", "@*",
];
/// Closers of comments.
const COMMENT_CLOSERS: [&str; 10] = ["*/}", "*/", "--}}", "-->", "--]]", "]]", "*)", "#}", "%>", "*@"];
/// Openers of lines of longer comments, and of texts: these take words.
const TEXT_OPENERS: [&str; 4] = ["*", "'", "REM ", "\"\"\""];
/// Words that say that code stays or is left out, by themselves.
const OMISSION_WORDS: [&str; 9] =
    ["unchanged", "unmodified", "untouched", "omitted", "elided", "snip", "snipped", "truncated", "brevity"];
/// Words that may say so, too, and say it beside dots.
const RETENTION_WORDS: [&str; 22] = [
    "existing",
    "rest",
    "remaining",
    "remains",
    "remain",
    "same",
    "previous",
    "before",
    "above",
    "original",
    "identical",
    "keep",
    "kept",
    "continue",
    "continues",
    "other",
    "others",
    "more",
    "skip",
    "skipped",
    "stays",
    "stay",
];
/// Ends of a remark without dots that has none of [`OMISSION_WORDS`]. In code that isn't known to
/// leave anything out they are comments.
const RETENTION_ENDINGS: [&str; 14] = [
    "same",
    "same as before",
    "same as above",
    "as before",
    "remains the same",
    "stays the same",
    "remain the same",
    "stay the same",
    "as is",
    "no change",
    "no changes",
    "no changes needed",
    "code continues",
    "etc",
];
/// Names of what is left out.
const OMITTED_THINGS: [&str; 64] = [
    "arguments",
    "attributes",
    "block",
    "body",
    "cases",
    "class",
    "classes",
    "code",
    "columns",
    "component",
    "components",
    "config",
    "configuration",
    "constants",
    "content",
    "contents",
    "declarations",
    "definitions",
    "document",
    "elements",
    "entries",
    "exports",
    "fields",
    "file",
    "function",
    "functions",
    "handlers",
    "html",
    "implementation",
    "imports",
    "items",
    "jobs",
    "keys",
    "line",
    "lines",
    "logic",
    "markup",
    "members",
    "method",
    "methods",
    "module",
    "options",
    "page",
    "parameters",
    "part",
    "parts",
    "properties",
    "props",
    "routes",
    "rules",
    "script",
    "section",
    "sections",
    "settings",
    "setup",
    "state",
    "statements",
    "steps",
    "stuff",
    "styles",
    "tests",
    "types",
    "values",
    "variables",
];
/// Words that stand beside those and mean nothing by themselves.
const FILLER_WORDS: [&str; 36] = [
    "the",
    "of",
    "is",
    "are",
    "as",
    "here",
    "this",
    "these",
    "all",
    "your",
    "my",
    "in",
    "it",
    "and",
    "for",
    "exactly",
    "from",
    "to",
    "no",
    "not",
    "change",
    "changes",
    "needed",
    "required",
    "everything",
    "else",
    "goes",
    "go",
    "below",
    "after",
    "with",
    "will",
    "be",
    "shown",
    "that",
    "so",
];
/// Remarks in other languages.
const FOREIGN_PHRASES: [&str; 26] = [
    "不变",
    "其余代码",
    "其他代码",
    "现有代码",
    "省略",
    "変更なし",
    "既存の",
    "残りのコード",
    "기존 코드",
    "나머지 코드",
    "변경 없음",
    "bleibt unverändert",
    "bestehender code",
    "restlicher code",
    "código existente",
    "resto del código",
    "sin cambios",
    "resto do código",
    "sem alterações",
    "inchangé",
    "code existant",
    "reste du code",
    "остальной код",
    "без изменений",
    "существующий код",
    "codice esistente",
];
/// Parts of words in comments that may be remarks.
const DOUBTFUL_WORDS: [&str; 23] = [
    "unchanged",
    "existing",
    "rest of",
    "the rest",
    "remain",
    "omitted",
    "as before",
    "same as",
    "the same",
    "stays as",
    "previous",
    "original",
    "elided",
    "truncated",
    "skipped",
    "snip",
    "brevity",
    "not shown",
    "identical",
    "as is",
    "no change",
    "untouched",
    "goes here",
];
/// Words of a comment that says that things stay.
const MAX_STAYING_WORDS: usize = 16;
/// Beginnings of words, and phrases, of a reply that takes something away.
const REMOVAL_STEMS: [&str; 12] = [
    "remov", "delet", "drop", "gone", "unused", "dead", "replac", "obsolete", "renam", "extract", "merg",
    "mov",
];
const REMOVAL_PHRASES: [&str; 9] = [
    "can go",
    "goes away",
    "get rid",
    "no longer",
    "not needed",
    "any more",
    "anymore",
    "left out",
    "instead of",
];
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

/// Returns the meaning of a line that is only a remark, in a text that may leave code out.
pub(crate) fn placeholder_of_line(line: &str) -> Option<Placeholder> {
    classify_line(line, false)
}

/// Returns the meaning of a line of a lazy rewrite, in which bare dots are a remark, too, and a
/// comment that says that things stay, whatever it names.
pub(crate) fn placeholder_of_rewrite_line(line: &str) -> Option<Placeholder> {
    placeholder_of_line(line)
        .or_else(|| (is_bare_dots(line) || says_that_things_stay(line)).then_some(Placeholder::Keep))
}

/// Returns true for a comment that ends with a word for what stays, or has one in brackets or
/// beside dots.
fn says_that_things_stay(line: &str) -> bool {
    let line = line.trim();
    let Some(comment) = words_of_comment(line).filter(|_| line.len() <= MAX_PLACEHOLDER_BYTES) else {
        return false;
    };
    let own = comment.trim();
    let inner = strip_punctuation(own);
    let is_marked = own.starts_with(['(', '[']) && own.ends_with([')', ']'])
        || begins_with_dots(inner)
        || ends_with_dots(inner);
    let said = normalize_words(inner);
    let count = words_of(&said).count();
    if !(1..=MAX_STAYING_WORDS).contains(&count) || said.contains(['=', ';', '?']) {
        return false;
    }
    let last = words_of(&said).last().unwrap_or_default();
    OMISSION_WORDS.contains(&last)
        || is_marked && words_of(&said).any(|word| OMISSION_WORDS.contains(&word))
        || is_marked && said.contains("no change")
        || is_marked && RETENTION_ENDINGS.iter().any(|words| words.contains(' ') && said.contains(words))
}

/// Returns true if a text speaks of something that goes.
pub(crate) fn says_removal(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = words_of(&text);
    words.any(|word| REMOVAL_STEMS.iter().any(|stem| word.starts_with(stem)))
        || REMOVAL_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Returns true for a comment that says that something was removed.
pub(crate) fn is_removal_note(line: &str) -> bool {
    let line = line.trim();
    line.len() <= MAX_PLACEHOLDER_BYTES
        && words_of_comment(line).is_some_and(|words| {
            let words = words.to_lowercase();
            words_of(&words).any(|word| matches!(word, "removed" | "deleted" | "dropped"))
        })
}

/// Returns true if a line stands for code where nothing says that code is left out: it takes
/// clearer words than in a lazy rewrite.
pub(crate) fn stands_for_code(line: &str) -> bool {
    let line = line.trim();
    if classify_line(line, true) == Some(Placeholder::Keep) {
        return true;
    }
    if line.len() > MAX_PLACEHOLDER_BYTES {
        return false;
    }
    if let Some(rest) = TEXT_OPENERS.iter().find_map(|opener| line.strip_prefix(opener)) {
        let worded = rest.contains(char::is_alphanumeric) && !rest.contains('\'');
        return worded && classify_words(rest, true) == Some(Placeholder::Keep);
    }
    // `(rest of methods ...)`
    let bracketed = [('(', ')'), ('[', ']'), ('<', '>')].into_iter();
    let mut inner = bracketed.filter_map(|(open, close)| line.strip_prefix(open)?.strip_suffix(close));
    inner.next().is_some_and(|inner| {
        ends_with_dots(inner.trim())
            && !begins_with_dots(inner.trim())
            && classify_words(inner, true).is_some()
    })
}

fn classify_line(line: &str, strict: bool) -> Option<Placeholder> {
    let line = line.trim();
    // Nearly every line is none, and its first character says so.
    if line.len() > MAX_PLACEHOLDER_BYTES || !line.bytes().next().is_some_and(may_begin_placeholder) {
        return None;
    }
    match words_of_comment(line) {
        Some(words) => classify_words(words, strict),
        // Without a comment it takes dots, and words: three dots may be code, too.
        None => {
            let inner = strip_punctuation(line);
            let dots = begins_with_dots(inner) && ends_with_dots(inner);
            (dots && has_retention_word(&normalize_words(inner))).then_some(Placeholder::Keep)
        }
    }
}

/// Returns true if a line is nothing but three dots.
fn is_bare_dots(line: &str) -> bool {
    matches!(line.trim(), "..." | "…")
}

/// The comment of a line of code that stands for code: `{ /* ... existing code ... */ }`.
pub(crate) fn placeholder_within_line(line: &str) -> Option<&str> {
    let line = line.trim();
    // Most lines have none, and are many in a whole file.
    if memchr::memchr3(b'/', b'#', b'<', line.as_bytes()).is_none()
        && memchr::memchr(b'-', line.as_bytes()).is_none()
    {
        return None;
    }
    let is_free = |at: &usize| {
        let before = line.get(..*at).unwrap_or_default();
        // Not the middle of an address, nor of a text.
        let free = before.ends_with([' ', '\t', '{', '(', '[', ',', ';', '>']);
        free && before.matches('"').count() % 2 == 0 && before.matches('\'').count() % 2 == 0
    };
    let at = first_openers(line.as_bytes()).find(is_free)?;
    let comment = line.get(at..)?;
    let closed = COMMENT_CLOSERS.iter().filter_map(|closer| Some(comment.find(closer)? + closer.len())).min();
    let (comment, after) =
        comment.split_at(closed.filter(|end| comment.is_char_boundary(*end)).unwrap_or(comment.len()));
    let words = words_of_comment(comment.trim()).unwrap_or_default();
    if classify_words(words, false) != Some(Placeholder::Keep) {
        return None;
    }
    let before = line.get(..at).unwrap_or_default().trim_end();
    let opens = before.ends_with(['{', '(', '[', ':', '>']);
    let closes = after.trim_start().starts_with(['}', ')', ']', '<']);
    let dots = begins_with_dots(strip_punctuation(words)) || ends_with_dots(strip_punctuation(words));
    (dots || opens || closes).then_some(comment)
}

/// The first place of each opener of comments within a line.
fn first_openers(line: &[u8]) -> impl Iterator<Item = usize> {
    let mut seen = [false; 5];
    line.iter().enumerate().filter_map(move |(at, byte)| {
        let rest = || line.get(at..).unwrap_or_default();
        let opener = match byte {
            b'/' if rest().starts_with(b"/*") => 0,
            b'/' if rest().starts_with(b"//") => 1,
            b'#' if rest().starts_with(b"# ") => 2,
            b'<' if rest().starts_with(b"<!--") => 3,
            b'-' if rest().starts_with(b"-- ") => 4,
            _ => return None,
        };
        let seen = seen.get_mut(opener)?;
        (!std::mem::replace(seen, true) && at > 0).then_some(at)
    })
}

/// Returns true if a comment may be meant as a remark, though it may as well speak of the code.
pub(crate) fn may_be_placeholder(line: &str) -> bool {
    let line = line.trim();
    if line.len() > MAX_PLACEHOLDER_BYTES || !line.bytes().next().is_some_and(may_begin_placeholder) {
        return false;
    }
    let Some(comment) = words_of_comment(line) else { return is_bare_dots(line) };
    let own = comment.trim();
    let said = normalize_words(strip_punctuation(own));
    let bracketed = own.starts_with(['[', '<']) && own.ends_with([']', '>']);
    let dots = begins_with_dots(strip_punctuation(own)) || ends_with_dots(strip_punctuation(own));
    let told = DOUBTFUL_WORDS.iter().any(|word| said.contains(word));
    let count = said.split_whitespace().count();
    placeholder_of_line(line).is_some()
        || (bracketed || dots || told) && (1..=MAX_DOUBTFUL_WORDS).contains(&count)
}

/// The first line of a result that is a remark and wasn't there before, or a stand-in for one.
pub(crate) fn first_new_placeholder(result: &str, text: &str) -> Option<String> {
    if result.contains("__jm_remark_") && !text.contains("__jm_remark_") {
        return Some("a remark where code is expected".to_owned());
    }
    let known = |line: &&str| {
        (placeholder_of_line(line) == Some(Placeholder::Keep) || placeholder_within_line(line).is_some())
            && !text.contains(line.trim())
    };
    result.lines().find(known).map(|line| line.trim().to_owned())
}

/// Returns true if a remark can begin with a byte.
fn may_begin_placeholder(byte: u8) -> bool {
    matches!(byte, b'/' | b'#' | b'-' | b'<' | b';' | b'%' | b'{' | b'@' | b'(' | b'[' | b'.' | 0xe2)
}

/// A comment without its signs.
pub(crate) fn words_of_comment(line: &str) -> Option<&str> {
    let rest = COMMENT_OPENERS.iter().find_map(|opener| line.strip_prefix(opener))?;
    Some(COMMENT_CLOSERS.iter().find_map(|closer| rest.strip_suffix(closer)).unwrap_or(rest))
}

fn strip_punctuation(comment: &str) -> &str {
    let signs = ['[', ']', '(', ')', '{', '}', '<', '>', '*', '-', '=', '#', '/', '~', '_', '!', ' '];
    comment.trim().trim_matches(signs).trim()
}

fn normalize_words(comment: &str) -> String {
    comment.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn begins_with_dots(comment: &str) -> bool {
    comment.starts_with("...") || comment.starts_with('…')
}

fn ends_with_dots(comment: &str) -> bool {
    comment.ends_with("...") || comment.ends_with('…')
}

/// Returns the meaning of a comment's words. Strictly, only what can't be a comment on code that is
/// there is a remark.
fn classify_words(comment: &str, strict: bool) -> Option<Placeholder> {
    let bare = comment.trim();
    let bracketed = bare.starts_with(['(', '[', '<', '{']) && bare.ends_with([')', ']', '>', '}']);
    let comment = strip_punctuation(comment);
    let (opens, closes) = (begins_with_dots(comment), ends_with_dots(comment));
    let words = normalize_words(comment);
    if words.is_empty() {
        return opens.then_some(Placeholder::Keep);
    }
    let said = words.strip_prefix("plandex:").unwrap_or(&words).trim();
    if is_removal_phrase(said) {
        return Some(Placeholder::Remove);
    }
    // A sentence asks or says something of its own.
    if words.contains(['?', '=', ';', '{']) {
        return None;
    }
    let kept = (opens && closes)
        || (opens && has_retention_word(said) && said.split_whitespace().count() <= MAX_PLACEHOLDER_WORDS)
        || is_placeholder_phrase(said, closes || bracketed, strict);
    kept.then_some(Placeholder::Keep)
}

fn words_of(said: &str) -> impl Iterator<Item = &str> {
    said.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn is_retention_word(word: &str) -> bool {
    OMISSION_WORDS.contains(&word) || RETENTION_WORDS.contains(&word)
}

fn has_retention_word(said: &str) -> bool {
    words_of(said).any(|word| is_retention_word(word) || OMITTED_THINGS.contains(&word))
        || has_foreign_phrase(said)
}

/// Returns true if words mean a remark without dots before them: all of them are of those that
/// remarks are made of, but for a name. `marked` are those with dots after them or in brackets.
fn is_placeholder_phrase(said: &str, marked: bool, strict: bool) -> bool {
    let (mut names, mut count, mut omits, mut retains) = (0, 0, false, false);
    let mut before = "";
    for word in words_of(said) {
        count += 1;
        omits |= OMISSION_WORDS.contains(&word)
            || (before == "rest" && word == "of")
            || (before == "existing" && OMITTED_THINGS.contains(&word));
        let known = is_retention_word(word) || OMITTED_THINGS.contains(&word) || FILLER_WORDS.contains(&word);
        retains |= is_retention_word(word);
        names += usize::from(!known && !word.bytes().all(|byte| byte.is_ascii_digit()));
        if names > 1 || count > MAX_PLACEHOLDER_WORDS {
            return has_foreign_phrase(said);
        }
        before = word;
    }
    let begins = words_of(said).find(|word| !FILLER_WORDS.contains(word)).is_some_and(is_retention_word);
    let ends = words_of(said).last().is_some_and(|word| is_retention_word(word) || word == "is");
    if names > 0 && !(begins && (ends || marked)) {
        return has_foreign_phrase(said);
    }
    let continues = RETENTION_ENDINGS
        .iter()
        .any(|ending| said.strip_suffix(ending).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric)));
    omits || (marked && retains && begins && count > 1) || (!strict && continues) || has_foreign_phrase(said)
}

fn has_foreign_phrase(said: &str) -> bool {
    !said.is_ascii() && FOREIGN_PHRASES.iter().any(|phrase| said.contains(phrase))
}

fn is_removal_phrase(said: &str) -> bool {
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
pub(crate) fn is_removal_comment(line: &str, most: usize) -> bool {
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
    let names = words.iter().skip(1).filter(|word| !told(word) && !is_filler_word(word)).count();
    words.len() <= most && (edges || asks) && names <= 1
}

/// Returns true if a word is one of those that stand beside a name in such a comment.
pub(crate) fn is_filler_word(word: &str) -> bool {
    let others = [
        "the", "a", "an", "was", "is", "were", "been", "has", "from", "here", "old", "fn", "def", "func",
        "this",
    ];
    others.contains(&word) || REMOVED_THINGS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remark_table() {
        let keep = Some(Placeholder::Keep);
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
            ("// Plandex: removed code", Some(Placeholder::Remove)),
            ("# removed the legacy methods", Some(Placeholder::Remove)),
            ("// ... removed code ...", Some(Placeholder::Remove)),
            ("// code removed", Some(Placeholder::Remove)),
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
            assert_eq!(placeholder_of_line(line), expected, "{line:?}");
        }
    }
}
