//! What a replacement must not do.

/// What opens a comment in the languages people edit, and what a bare remark begins with.
const OPENERS: [&str; 12] = ["//", "#", "--", "/*", "<!--", ";", "%", "{/*", "*", "(", "...", "…"];
/// What stands for code that the writer didn't repeat.
const REMARKS: [&str; 14] = [
    "existing code",
    "existing",
    "rest of",
    "rest unchanged",
    "unchanged",
    "remains the same",
    "remains unchanged",
    "remain the same",
    "remaining",
    "same as before",
    "same as above",
    "previous code",
    "omitted",
    "other methods",
];
/// Remarks are short; a longer line is code or prose.
const LONGEST_REMARK: usize = 120;

/// The first line of `replacement` that stands for code instead of being code, such as
/// `// ... rest unchanged ...`, unless the search text has it too.
pub(crate) fn placeholder<'a>(search: &str, replacement: &'a str) -> Option<&'a str> {
    if !replacement.contains("...") && !replacement.contains('…') {
        return None;
    }
    replacement.lines().map(str::trim).find(|line| stands_for_code(line) && !search.contains(line))
}

fn stands_for_code(line: &str) -> bool {
    if line.len() > LONGEST_REMARK || !OPENERS.iter().any(|opener| line.starts_with(opener)) {
        return false;
    }
    // The dots stand at an edge of the remark: in its middle they belong to a sentence.
    let words = line.trim_matches(|c: char| !c.is_alphanumeric() && c != '.' && c != '…');
    let dotted =
        words.starts_with("...") || words.ends_with("...") || words.starts_with('…') || words.ends_with('…');
    let lower = words.to_lowercase();
    dotted && REMARKS.iter().any(|remark| lower.contains(remark))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        for (replacement, expected) in cases {
            assert_eq!(placeholder("x", replacement).is_some(), expected, "{replacement:?}");
        }
        assert_eq!(placeholder("// ... existing code ...\nx", "// ... existing code ...\ny"), None);
    }
}
