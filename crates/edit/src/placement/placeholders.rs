//! Detection of remarks that stand in for code in a replacement.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::placeholder::{placeholder_within_line, stands_for_code};

/// Maximum number of remarks compared with the search text, since each is searched in all of it.
/// Further remarks count as new.
const MAX_COMPARED_PLACEHOLDERS: usize = 64;
/// The first line of `replacement` that stands for code instead of being code, such as
/// `// ... rest unchanged ...`, unless the search text has it too.
pub(crate) fn find_placeholder<'a>(search: &str, replacement: &'a str) -> Option<&'a str> {
    // Most remarks that stay are lines of the search text; only others are looked for within its
    // lines.
    let kept: OnceCell<HashSet<&str>> = OnceCell::new();
    let kept = || kept.get_or_init(|| search.lines().map(str::trim).collect());
    let mut within = 0;
    replacement.lines().map(str::trim).find(|line| {
        (stands_for_code(line) || placeholder_within_line(line).is_some()) && !kept().contains(line) && {
            within += 1;
            within > MAX_COMPARED_PLACEHOLDERS || !search.contains(line)
        }
    })
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
    fn many_remarks_within_lines_are_not_all_looked_for() {
        let remarks = |begin: &str, count: usize| -> String {
            (0..count).map(|n| format!("{begin}// ... rest of {n} ...\n")).collect()
        };
        assert_eq!(find_placeholder(&remarks("", 5_000), &remarks("", 5_000)), None);
        assert_eq!(
            find_placeholder(
                &remarks("x ", MAX_COMPARED_PLACEHOLDERS),
                &remarks("", MAX_COMPARED_PLACEHOLDERS)
            ),
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
