//! Detection of remarks that stand in for code in a replacement.

use std::cell::OnceCell;
use std::collections::HashSet;

/// Openers of comments in common languages.
const COMMENT_OPENERS: [&str; 12] =
    ["//", "#", "--", "/*", "<!--", ";", "%", "{/*", "*", "'", "REM ", "\"\"\""];
/// Openers of comments that stand for code if they have nothing but dots. Others open lines of
/// longer comments, and texts.
const BARE_OPENERS: [&str; 6] = ["//", "#", "--", "/*", "<!--", "{/*"];
/// Openers of remarks outside of comments.
const REMARK_OPENERS: [&str; 5] = ["(", "[", "<", "...", "…"];
/// Words that, next to dots, stand for omitted code.
const REMARK_WORDS: [&str; 26] = [
    "existing code",
    "existing",
    "rest of",
    "rest unchanged",
    "rest is unchanged",
    "unchanged",
    "no change",
    "remains the same",
    "remains unchanged",
    "remain the same",
    "stays the same",
    "remaining",
    "same as before",
    "same as above",
    "as before",
    "previous code",
    "omitted",
    "other methods",
    "other functions",
    "other code",
    "other existing",
    "previous methods",
    "previous functions",
    "more code",
    "for brevity",
    "code here",
];
/// Remarks that stand for code without any dots: all that the comment says.
const WHOLE_REMARKS: [&str; 22] = [
    "existing code",
    "existing code here",
    "existing code unchanged",
    "keep existing code",
    "rest of code",
    "rest of the code",
    "rest of the code here",
    "rest of your code",
    "rest of file",
    "rest of the file",
    "rest of function",
    "rest of the function",
    "rest of class",
    "rest of the class",
    "rest of method",
    "rest of the method",
    "rest of the methods",
    "rest of implementation",
    "rest of the implementation",
    "remaining code",
    "same code as before",
    "code omitted for brevity",
];
/// Beginnings of remarks that stand for code without dots, if they end with one of
/// [`REMARK_ENDINGS`].
const REMARK_BEGINNINGS: [&str; 7] =
    ["rest ", "the rest ", "remaining ", "other ", "existing ", "all other ", "everything else "];
/// Ends of such remarks.
const REMARK_ENDINGS: [&str; 11] = [
    " unchanged",
    " unmodified",
    " the same",
    " as before",
    " as is",
    " omitted",
    " omitted for brevity",
    " not shown",
    " goes here",
    " go here",
    " stays here",
];
/// Maximum number of remarks compared with the search text, since each is searched in all of it.
/// Further remarks count as new.
const MAX_COMPARED_REMARKS: usize = 64;
/// Remarks are short; a longer line is code or prose.
const MAX_REMARK_BYTES: usize = 120;

/// The first line of `replacement` that stands for code instead of being code, such as
/// `// ... rest unchanged ...`, unless the search text has it too.
pub(crate) fn find_placeholder<'a>(search: &str, replacement: &'a str) -> Option<&'a str> {
    // Most remarks that stay are lines of the search text; only others are looked for within its
    // lines.
    let kept: OnceCell<HashSet<&str>> = OnceCell::new();
    let kept = || kept.get_or_init(|| search.lines().map(str::trim).collect());
    let mut within = 0;
    replacement.lines().map(str::trim).find(|line| {
        stands_for_code(line) && !kept().contains(line) && {
            within += 1;
            within > MAX_COMPARED_REMARKS || !search.contains(line)
        }
    })
}

/// Returns true if a remark can begin with a byte.
fn may_begin_remark(byte: u8) -> bool {
    matches!(
        byte,
        b'/' | b'#'
            | b'-'
            | b'<'
            | b';'
            | b'%'
            | b'{'
            | b'*'
            | b'\''
            | b'R'
            | b'"'
            | b'('
            | b'['
            | b'.'
            | 0xe2
    )
}

fn stands_for_code(line: &str) -> bool {
    // Nearly every line is none, and its first character says so.
    if line.len() > MAX_REMARK_BYTES || !line.bytes().next().is_some_and(may_begin_remark) {
        return false;
    }
    let is_comment = COMMENT_OPENERS.iter().any(|opener| line.starts_with(opener));
    if !(is_comment || REMARK_OPENERS.iter().any(|opener| line.starts_with(opener))) {
        return false;
    }
    // The dots stand at an edge of the remark: in its middle they belong to a sentence.
    let words = line.trim_matches(|c: char| !c.is_alphanumeric() && c != '.' && c != '…');
    let inner = words.trim_matches(['.', '…']);
    let (opens, closes) = (
        words.starts_with(['…']) || words.starts_with("..."),
        words.ends_with('…') || words.ends_with("..."),
    );
    let lower = inner.trim().to_lowercase();
    if opens && lower.is_empty() && BARE_OPENERS.iter().any(|opener| line.starts_with(opener)) {
        return true;
    }
    // Dots right before a name spread what it holds.
    let spreads =
        opens && !closes && !is_comment && inner.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if (opens || closes) && !spreads && REMARK_WORDS.iter().any(|remark| lower.contains(remark)) {
        return true;
    }
    let lower = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    is_comment
        && (WHOLE_REMARKS.contains(&lower)
            || (REMARK_BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
                && REMARK_ENDINGS.iter().any(|ending| lower.ends_with(ending))))
}

/// Returns true if a line stands for lines that were left out: dots alone, in a comment or not, or
/// with words that say so.
pub(crate) fn is_gap_line(line: &str) -> bool {
    let line = line.trim();
    let inner = line.trim_start_matches(['/', '#', '-', '*', '<', '!', '{', ';', '%', '(']);
    let inner = inner.trim_end_matches(['/', '*', '-', '>', '}', ')']).trim();
    let dots =
        !inner.is_empty() && ((inner.len() >= 3 && inner.trim_matches('.').is_empty()) || inner == "…");
    dots || stands_for_code(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_begin_with_what_opens_them() {
        assert!(
            COMMENT_OPENERS
                .iter()
                .chain(&REMARK_OPENERS)
                .all(|opener| opener.bytes().next().is_some_and(may_begin_remark))
        );
    }

    #[test]
    fn many_remarks_within_lines_are_not_all_looked_for() {
        let remarks = |begin: &str, count: usize| -> String {
            (0..count).map(|n| format!("{begin}// ... rest of {n} ...\n")).collect()
        };
        assert_eq!(find_placeholder(&remarks("", 5_000), &remarks("", 5_000)), None);
        assert_eq!(
            find_placeholder(&remarks("x ", MAX_COMPARED_REMARKS), &remarks("", MAX_COMPARED_REMARKS)),
            None
        );
        assert!(find_placeholder(&remarks("x ", 5_000), &remarks("", 5_000)).is_some());
    }

    #[test]
    fn placeholder_table() {
        let cases = [
            ("fn a() {\n    // ... existing code ...\n}", true),
            ("# rest of the function unchanged...", true),
            ("(rest of methods ...)", true),
            ("/* … unchanged … */", true),
            ("... rest of file ...", true),
            ("// wait for the rest... then go on", false),
            ("let rest = [...existing];", false),
            ("# Loading...", false),
            ("print(\"... existing code ...\")", false),
            ("# Rest of the code", true),
            ("<!-- rest of the page remains unchanged -->", true),
            ("-- other columns unchanged", true),
            ("{/* existing code */}", true),
            ("[... remaining items ...]", true),
            ("' existing code here", true),
            ("    ...existing,", false),
            ("    [...existing, more]", false),
            ("// the rest of the bytes is padding", false),
            ("# existing users keep their theme", false),
            ("# the same as in C", false),
            ("rest of the code", false),
            ("// ... other code ...", true),
            ("# ... (previous methods remain unchanged)", true),
            ("/* ... */", true),
            ("// ...", true),
            ("# …", true),
            ("...", false),
            (" * ...", false),
            ("\"\"\"...\"\"\"", false),
        ];
        for (replacement, expected) in cases {
            assert_eq!(find_placeholder("x", replacement).is_some(), expected, "{replacement:?}");
        }
        let gaps = ["...", "  …", "// ...", "# ...", "/* ... */", "<!-- ... -->", "// ... existing code ..."];
        assert!(gaps.into_iter().all(is_gap_line));
        assert!(!["", "--", "// a", "a...", "..", "// wait..."].into_iter().any(is_gap_line));
        assert_eq!(find_placeholder("// ... existing code ...\nx", "// ... existing code ...\ny"), None);
    }
}
