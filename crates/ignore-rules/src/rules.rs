//! Ignore rules of one directory, as git reads and matches them.
//!
//! A general glob library compiles patterns to automata, which costs more than it saves: most rules
//! are names or endings, and many walks have only a few thousand paths. On redis it was a third of
//! the work of a search. So names, endings and the literal beginnings of patterns are compared as
//! bytes, and only what is left is matched as a glob, in bounded time.

use crate::glob::Glob;

/// The rules of one directory, those that count more later.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// The effect of the last rule that a path matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleMatch {
    /// Matched by a rule without `!`.
    Ignored,
    /// Matched by a rule with `!`.
    Kept,
}

#[derive(Debug)]
struct Rule {
    verdict: RuleMatch,
    /// The rule ended in a slash.
    only_directories: bool,
    /// It has a slash within, so it is matched against the path instead of the name.
    is_path: bool,
    shape: PatternShape,
}

#[derive(Debug)]
enum PatternShape {
    Literal(Vec<u8>),
    /// A star and then a literal, in a rule for names.
    Ending(Vec<u8>),
    /// A literal and then a glob that begins with its first special character.
    Glob(Vec<u8>, Glob),
}

impl Rules {
    /// Adds the rules of a rule file, which count more than those added before.
    pub fn add(&mut self, text: &[u8]) {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let lines = text.split(|&byte| byte == b'\n');
        self.rules.extend(lines.filter_map(|line| Rule::parse(line.strip_suffix(b"\r").unwrap_or(line))));
    }

    /// Returns true if there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the effect of the last rule that matches `path`, which begins at the rules'
    /// directory, given that no directory above it is ignored; `None` if no rule matches.
    #[must_use]
    pub fn match_path(&self, path: &[u8], is_dir: bool) -> Option<RuleMatch> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let matching = self.rules.iter().rev().find(|rule| {
            (is_dir || !rule.only_directories) && rule.shape.matches(if rule.is_path { path } else { name })
        });
        matching.map(|rule| rule.verdict)
    }
}

impl Rule {
    /// Parses a line; `None` if it holds no rule.
    fn parse(line: &[u8]) -> Option<Self> {
        if line.starts_with(b"#") {
            return None;
        }
        let line = trim_trailing_spaces(line);
        let (verdict, line) = match line.strip_prefix(b"!") {
            Some(rest) => (RuleMatch::Kept, rest),
            None => (RuleMatch::Ignored, line),
        };
        let (only_directories, line) = match line.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let is_path = line.contains(&b'/');
        // Only the first slash anchors the rule; git expects a path after a second one.
        let line = line.strip_prefix(b"/").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        Some(Self { verdict, only_directories, is_path, shape: PatternShape::parse(line, is_path)? })
    }
}

impl PatternShape {
    fn parse(pattern: &[u8], is_path: bool) -> Option<Self> {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let Some(special) = pattern.iter().position(is_special) else {
            return Some(Self::Literal(pattern.to_vec()));
        };
        let (literal, glob) = pattern.split_at_checked(special)?;
        match glob.strip_prefix(b"*") {
            Some(ending) if !is_path && literal.is_empty() && !ending.iter().any(is_special) => {
                Some(Self::Ending(ending.to_vec()))
            }
            _ => Some(Self::Glob(literal.to_vec(), Glob::parse(glob)?)),
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => text == literal,
            Self::Ending(ending) => text.ends_with(ending),
            Self::Glob(literal, glob) => text.strip_prefix(&**literal).is_some_and(|rest| glob.matches(rest)),
        }
    }
}

/// Removes spaces at the end of a line that no backslash stands before.
fn trim_trailing_spaces(line: &[u8]) -> &[u8] {
    let (mut kept, mut at) = (0, 0);
    while let Some(byte) = line.get(at) {
        at = (at + if *byte == b'\\' { 2 } else { 1 }).min(line.len());
        if *byte != b' ' {
            kept = at;
        }
    }
    line.get(..kept).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    fn verdict(rules: &str, path: &str) -> Option<RuleMatch> {
        let mut parsed = Rules::default();
        parsed.add(rules.as_bytes());
        let is_dir = path.ends_with('/');
        parsed.match_path(path.trim_end_matches('/').as_bytes(), is_dir)
    }

    #[test]
    fn the_last_rule_that_matches_counts() {
        assert_eq!(verdict("*.o\n!keep.o\n", "a/keep.o"), Some(RuleMatch::Kept));
        assert_eq!(verdict("!keep.o\n*.o\n", "a/keep.o"), Some(RuleMatch::Ignored));
        assert_eq!(verdict("*.o\n", "a/keep.c"), None);
    }

    #[test]
    fn comments_blank_lines_and_lines_without_a_name_are_no_rules() {
        for text in ["", "\n\n", "# a\n", "   \n", "/\n", "!\n", "!/\n", "\u{feff}\n", "\r\n"] {
            let mut rules = Rules::default();
            rules.add(text.as_bytes());
            assert!(rules.is_empty(), "{text:?}");
        }
    }

    /// Parts of rules and of lines that aren't any.
    const PARTS: [&str; 30] = [
        "a",
        "b",
        "ab",
        ".o",
        "a b",
        "/",
        "/",
        "*",
        "*",
        "**",
        "**/",
        "/**",
        "?",
        "[",
        "]",
        "!",
        "-",
        "\\",
        " ",
        "#",
        "[ab]",
        "[!a]",
        "[^b-]",
        "[a-]",
        "[]a]",
        "[[:alpha:]]",
        "[[:punct:]x]",
        "[[:no:]]",
        "[--/]",
        "\u{e9}",
    ];

    fn any_rules() -> impl Strategy<Value = String> {
        let line = vec(proptest::sample::select(&PARTS[..]), 0..7).prop_map(|parts| parts.concat());
        vec(line, 1..6).prop_map(|lines| lines.join("\n"))
    }

    /// Directories, two deep, with files that the rules may mean.
    fn make_tree(root: &Path) -> Vec<String> {
        let (dirs, files) = (["a", "b", "ab", "a b"], ["a.o", "b", "-", "a]", "[a", "\u{e9}", "#a", "x "]);
        let mut paths = Vec::new();
        for outer in ["", "a/", "ab/", "a/b/", "a/a b/", "b/a/ab/"] {
            std::fs::create_dir_all(root.join(outer)).unwrap();
            paths.extend(files.iter().map(|name| format!("{outer}{name}")));
        }
        for path in &paths {
            // A directory may have the name.
            std::fs::write(root.join(path), "").ok();
        }
        paths.extend(dirs.iter().map(|name| (*name).to_owned()));
        paths.retain(|path| root.join(path).exists());
        paths
    }

    /// Returns the paths that git ignores.
    fn ignored_by_git(root: &Path, paths: &[String]) -> Vec<String> {
        let mut git = Command::new("git");
        git.args(["-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"])
            .current_dir(root);
        let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        git.stdin.take().unwrap().write_all(paths.join("\0").as_bytes()).unwrap();
        let told = git.wait_with_output().unwrap().stdout;
        let told = told.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        told.map(|path| String::from_utf8_lossy(path).into_owned()).collect()
    }

    fn is_ignored(rules: &Rules, root: &Path, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.map(|end| &path[..end]).any(|path| {
            rules.match_path(path.as_bytes(), root.join(path).is_dir()) == Some(RuleMatch::Ignored)
        })
    }

    #[test]
    fn git_ignores_the_same_paths() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let made = Command::new("git").args(["init", "-q"]).current_dir(root).status().unwrap();
        assert!(made.success());
        let paths = make_tree(root);
        let mut runner =
            TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
        let total = Cell::new(0);
        let outcome = runner.run(&any_rules(), |text| {
            std::fs::write(root.join(".gitignore"), &text).unwrap();
            let mut rules = Rules::default();
            rules.add(text.as_bytes());
            let ignored: Vec<String> =
                paths.iter().filter(|path| is_ignored(&rules, root, path)).cloned().collect();
            total.set(total.get() + ignored.len());
            prop_assert_eq!(ignored, ignored_by_git(root, &paths), "{:?}", text);
            Ok(())
        });
        outcome.unwrap();
        assert!(total.get() > 1_000, "{} ignored paths", total.get());
    }

    #[test]
    fn a_pattern_made_to_waste_time_ends() {
        let path = ["a"; 2_000].join("/");
        for pattern in ["**/a/".repeat(300) + "b", "*a".repeat(1_000) + "b", "**/*a*a*a*a*a*a*b*".repeat(100)]
        {
            let mut rules = Rules::default();
            rules.add(pattern.as_bytes());
            assert_eq!(rules.match_path(path.as_bytes(), false), None, "{pattern}");
            assert_eq!(rules.match_path("a".repeat(255).as_bytes(), false), None, "{pattern}");
        }
    }
}
