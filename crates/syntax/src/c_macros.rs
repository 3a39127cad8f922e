//! Macros of C and C++ around declarations, which their grammars can't parse.
//!
//! A macro that opens or closes a block, or stands for attributes of a function, would be read as
//! the beginning of the declaration, and the function would be lost. Such macros are recognised by
//! their capitals and their position, and blanked before parsing. Only bytes of the macros change,
//! so positions stay the same.

use std::borrow::Cow;
use std::ops::Range;

use crate::language::Language;
use crate::rust_macros::macros_around_items;

/// Maximum bytes of a declaration's head. A longer one is no declaration.
const MAX_DECLARATION_HEAD_BYTES: usize = 2_000;
/// Keywords that stand before a declaration's type, or after its parameters.
const SPECIFIERS: [&str; 10] = [
    "auto",
    "const",
    "constexpr",
    "extern",
    "inline",
    "noexcept",
    "override",
    "register",
    "static",
    "volatile",
];
/// Keywords with a name after them.
const TAG_KEYWORDS: [&str; 4] = ["class", "enum", "struct", "union"];

/// Returns a text with those macros blanked.
pub(crate) fn blank_macros(language: Language, text: &str) -> Cow<'_, str> {
    let ranges = macros_around_declarations(language, text);
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in bytes.get_mut(range).into_iter().flatten() {
            if !byte.is_ascii_whitespace() {
                *byte = b' ';
            }
        }
    }
    // Every range begins and ends at an ASCII character and is blanked as a whole.
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the ranges of the macros, in text order; of Rust those around items.
pub(crate) fn macros_around_declarations(language: Language, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if language == Language::Rust {
        return macros_around_items(text);
    }
    if !matches!(language, Language::C | Language::Cpp) {
        return found;
    }
    let mut at = 0;
    // Only where a new declaration may begin, not inside an expression or a list.
    let mut is_fresh = true;
    for line in text.split_inclusive('\n') {
        let word = line.trim();
        if at >= found.last().map_or(0, |last: &Range<usize>| last.end) && is_fresh {
            if is_block_macro(word) {
                let start = at + (line.len() - line.trim_start().len());
                found.push(start..start + word.len());
                at += line.len();
                continue;
            }
            if line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                attribute_macros(text, at, &mut found);
            }
        }
        if !word.is_empty() {
            is_fresh = word.ends_with([';', '}', '{', '>'])
                || word.starts_with(['#', '/', '*'])
                || word.ends_with("*/");
        }
        at += line.len();
    }
    found
}

/// Returns true for `A_BEGIN`, `BEGIN_A`, `A_END_B` in capitals.
fn is_block_macro(word: &str) -> bool {
    word.len() > 5
        && is_in_capitals(word)
        && word.split('_').any(|part| matches!(part, "BEGIN" | "END"))
        && word.contains('_')
}

fn is_in_capitals(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A word of a declaration's head, with the brackets that may follow it.
struct HeadWord<'a> {
    word: &'a str,
    range: Range<usize>,
    /// The end of its brackets.
    brackets: Option<usize>,
}

/// Adds the macros that stand for attributes in the head of the function that begins at a position.
fn attribute_macros(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let Some(words) = words_of_head(text, start) else { return };
    let is_macro = |at: usize| {
        let after_tag = at.checked_sub(1).and_then(|before| words.get(before));
        words.get(at).is_some_and(|word| word.word.len() > 2 && is_in_capitals(word.word))
            && after_tag.is_none_or(|before| !TAG_KEYWORDS.contains(&before.word))
    };
    // The name is the last word with brackets that isn't in capitals.
    let name = (0..words.len())
        .rev()
        .find(|at| !is_macro(*at) && words.get(*at).is_some_and(|word| word.brackets.is_some()));
    let Some(name) = name else { return };
    let is_type =
        |at: &usize| !is_macro(*at) && words.get(*at).is_some_and(|word| !SPECIFIERS.contains(&word.word));
    // `FILE *open(…)`: without another type, the last word in capitals is the type.
    let own_type = if (0..name).any(|at| is_type(&at)) {
        None
    } else {
        let bare = |at: &usize| is_macro(*at) && words.get(*at).is_some_and(|word| word.brackets.is_none());
        let Some(own_type) = (0..name).rev().find(bare) else { return };
        Some(own_type)
    };
    for (at, word) in words.iter().enumerate().filter(|(at, _)| is_macro(*at) && Some(*at) != own_type) {
        debug_assert!(at != name, "a macro is no function's name");
        found.push(word.range.start..word.brackets.unwrap_or(word.range.end));
    }
}

/// Returns the words before the `{` or `;` of a declaration; `None` for any other text.
fn words_of_head(text: &str, start: usize) -> Option<Vec<HeadWord<'_>>> {
    let bytes = text.as_bytes();
    let end = bytes.len().min(start + MAX_DECLARATION_HEAD_BYTES);
    let mut words: Vec<HeadWord<'_>> = Vec::new();
    let mut at = start;
    while at < end {
        match bytes.get(at)? {
            b'{' | b';' => return Some(words),
            byte if byte.is_ascii_alphanumeric() || *byte == b'_' => {
                let rest = bytes.get(at..end)?;
                let len =
                    rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                words.push(HeadWord { word: text.get(at..at + len)?, range: at..at + len, brackets: None });
                at += len;
                continue;
            }
            b'(' => {
                let close = closing_bracket(bytes.get(at..end)?)?;
                let last = words.last_mut().filter(|last| last.brackets.is_none())?;
                at += close;
                last.brackets = Some(at + 1);
            }
            b'*' | b'&' => {}
            byte if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
        at += 1;
    }
    None
}

/// Returns the position of the bracket that closes the first one.
fn closing_bracket(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    bytes.iter().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_in_capitals_are_blanked() {
        for (before, after) in [
            (
                "JEMALLOC_EXPORT JEMALLOC_RETURN\nvoid JEMALLOC_NOTHROW *\nJEMALLOC_ATTR(malloc) je_malloc(size_t size) {",
                "                               \nvoid                  *\n                      je_malloc(size_t size) {",
            ),
            ("API int f(FOO x);", "    int f(FOO x);"),
            ("static ALWAYS_INLINE bool g(void) NO_THROW {", "static               bool g(void)          {"),
        ] {
            assert_eq!(blank_macros(Language::C, before), after);
        }
        for same in [
            "FILE *open_log(const char *name) {",
            "static BOOL is_open(void) {",
            "struct NODE *next(int a) {",
            "TEST(parser, brackets) {",
            "uint64_t HASH(int a) {",
            "LIST_HEAD(, entry) entries;",
            "int a = CALL(b) c(d);",
            "  X int f(void);",
            "API int f(void",
            "API (int) f(void) {",
        ] {
            assert_eq!(blank_macros(Language::C, same), same);
        }
        assert_eq!(blank_macros(Language::Rust, "API int f(void) {"), "API int f(void) {");
    }
}
