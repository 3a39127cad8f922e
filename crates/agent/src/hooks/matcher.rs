//! Selection of the calls that a configured hook runs for.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled pattern in bytes. Matchers name a handful of tools.
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;

/// Selects the tools (or other subjects of an event) that a hook runs for, by Claude Code's rules.
/// An empty text and `*` match everything. Letters, digits, `_`, `-`, spaces, `|` and `,` alone are
/// a list of exact names. Anything else is a regular expression that may match anywhere in a name.
/// Case matters.
#[derive(Clone)]
pub struct Matcher {
    text: String,
    rule: MatchRule,
}

#[derive(Clone)]
enum MatchRule {
    Everything,
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    /// Returns a matcher for every subject.
    #[must_use]
    pub fn everything() -> Self {
        Self { text: String::new(), rule: MatchRule::Everything }
    }

    /// Parses a matcher.
    ///
    /// # Errors
    /// Returns a description of what is wrong with the regular expression. Lookaround and back
    /// references are not supported.
    pub fn new(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_- |,".contains(c);
        let rule = match text.trim() {
            "" | "*" => MatchRule::Everything,
            names if names.chars().all(plain) => MatchRule::Names(
                names
                    .split(['|', ','])
                    .map(str::trim)
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned)
                    .collect(),
            ),
            pattern => MatchRule::Pattern(
                RegexBuilder::new(pattern)
                    .size_limit(MAX_COMPILED_PATTERN_BYTES)
                    .build()
                    .map_err(|error| format!("`{text}` is not a regular expression: {error}"))?,
            ),
        };
        Ok(Self { text: text.to_owned(), rule })
    }

    /// Returns true if the matcher matches any of a subject's names.
    #[must_use]
    pub fn matches(&self, names: &[&str]) -> bool {
        match &self.rule {
            MatchRule::Everything => true,
            MatchRule::Names(wanted) => names.iter().any(|name| wanted.iter().any(|it| it == name)),
            MatchRule::Pattern(pattern) => names.iter().any(|name| pattern.is_match(name)),
        }
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_follow_claude_codes_rules() {
        let cases: &[(&str, &str, bool)] = &[
            ("", "Bash", true),
            ("*", "Bash", true),
            (" * ", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("bash", "Bash", false),
            ("Edit|Write", "Write", true),
            ("Edit | Write", "Write", true),
            ("Edit, Write", "Edit", true),
            ("Edit|Write", "MultiEdit", false),
            ("Notebook.*", "NotebookEdit", true),
            ("mcp__.*", "mcp__memory__create_entities", true),
            ("mcp__.*", "Bash", false),
            ("mcp__memory__.*|Bash", "Bash", true),
            ("mcp__.*__write.*", "mcp__files__write_file", true),
            ("mcp__memory", "mcp__memory__create_entities", false),
            ("^(Edit|Write)$", "MultiEdit", false),
            (".*", "anything", true),
        ];
        for (matcher, name, matched) in cases {
            assert_eq!(Matcher::new(matcher).unwrap().matches(&[name]), *matched, "{matcher} on {name}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["Edit(", "(?!Bash).*", "[", "(a{1000}){1000}.*"] {
            assert!(Matcher::new(bad).is_err(), "{bad}");
        }
    }
}
