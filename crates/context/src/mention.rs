//! Files that a task names.

use std::collections::HashMap;
use std::path::Path;

use journeyman_protocol::RelPath;
use journeyman_workspace::Listing;

/// More names than this in one task are a log, not a request.
const MAX_NAMES: usize = 64;
/// A task longer than this is read at its beginning only, in bytes.
const MAX_TASK_BYTES: usize = 256 << 10;
/// Files with these names count also without a dot, a slash or quotes.
const WELL_KNOWN_FILE_NAMES: [&str; 6] =
    ["Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile"];

/// A file that the task names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) path: RelPath,
    /// The 1-based line that it names too, as in `parser.rs:12`.
    pub(crate) line: Option<u32>,
}

/// A word of the task that may be a path.
struct PathWord<'a> {
    text: &'a str,
    line: Option<u32>,
    /// The listed files it fits; a second one makes it useless unless one is the path itself.
    fits: Vec<&'a RelPath>,
    exact: Option<&'a RelPath>,
}

/// The listed files that the task names, in the task's order: by their path, also with the
/// project's root before it as in a stack trace, by the end of it, or by their name where only one
/// file has it.
pub(crate) fn find_mentions(task: &str, listing: &Listing, root: &Path) -> Vec<Mention> {
    let mut names = find_path_words(task);
    for name in &mut names {
        let beneath = Path::new(name.text).strip_prefix(root).ok().and_then(Path::to_str);
        name.text = beneath.filter(|path| !path.is_empty()).unwrap_or(name.text);
    }
    if names.is_empty() {
        return Vec::new();
    }
    let mut by_last: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        let last = name.text.rsplit('/').next().unwrap_or(name.text);
        by_last.entry(last.as_bytes()).or_default().push(index);
    }
    for path in &listing.paths {
        for index in by_last.get(path.file_name()).into_iter().flatten() {
            let Some(name) = names.get_mut(*index) else { continue };
            let (given, bytes) = (name.text.as_bytes(), path.as_bytes());
            if bytes == given {
                name.exact = Some(path);
            }
            let before = bytes.strip_suffix(given);
            if name.fits.len() < 2 && before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
            {
                name.fits.push(path);
            }
        }
    }
    let mut found: Vec<Mention> = Vec::new();
    for name in names {
        let path = match (name.exact, name.fits.as_slice()) {
            (Some(path), _) => path,
            (None, [only]) => *only,
            _ => continue,
        };
        match found.iter_mut().find(|known| known.path == *path) {
            Some(known) => known.line = known.line.or(name.line),
            None => found.push(Mention { path: path.clone(), line: name.line }),
        }
    }
    found
}

fn find_path_words(task: &str) -> Vec<PathWord<'_>> {
    let task = task.get(..task.floor_char_boundary(MAX_TASK_BYTES)).unwrap_or(task);
    let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';');
    let mut names = Vec::new();
    add_path_words(task, &|c| quotes(c) || matches!(c, '(' | ')' | '[' | ']' | '<' | '>' | '|'), &mut names);
    // Routes of web frameworks have brackets: `app/[id]/page.tsx`.
    let with_brackets = task.split(quotes).filter(|word| word.contains(['(', '[']) && word.contains('/'));
    for word in with_brackets {
        let inside = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
        add_path_words(inside.unwrap_or(word), &quotes, &mut names);
    }
    names
}

/// Adds the words that may be paths to `names`; `ends` tells what stands between words.
fn add_path_words<'a>(task: &'a str, ends: &dyn Fn(char) -> bool, names: &mut Vec<PathWord<'a>>) {
    let mut before = ' ';
    let mut rest = task;
    while !rest.is_empty() && names.len() < MAX_NAMES {
        let length = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let quoted = matches!((before, after.chars().next()), ('`' | '"' | '\'', Some('`' | '"' | '\'')));
        before = after.chars().next().unwrap_or(' ');
        rest = after.get(before.len_utf8()..).unwrap_or_default();
        let (text, line) = split_line_suffix(word.trim_end_matches(['.', ':', '!', '?', '…']));
        let text = text.trim_start_matches('@');
        let text = text.strip_prefix("./").unwrap_or(text);
        let line = line.or_else(|| stack_frame_line(after));
        let path_like = text.contains('/')
            || text.trim_start_matches('.').contains('.')
            || WELL_KNOWN_FILE_NAMES.contains(&text);
        let url = text.contains("://");
        if text.is_empty() || url || text.ends_with('/') || !(path_like || quoted) {
            continue;
        }
        if !names.iter().any(|known| known.text == text && known.line == line) {
            names.push(PathWord { text, line, fits: Vec::new(), exact: None });
        }
    }
}

/// Returns the line of a stack frame of Python, as in `File "shop.py", line 12, in open`.
fn stack_frame_line(after: &str) -> Option<u32> {
    let rest = after.strip_prefix("\", line ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok().filter(|line| *line > 0)
}

/// Takes `:12`, `:12:5`, `#L12` or `#L12-L20` off the end.
fn split_line_suffix(word: &str) -> (&str, Option<u32>) {
    let number = |text: &str| {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        text.get(..digits).and_then(|digits| digits.parse().ok()).filter(|line| *line > 0)
    };
    if let Some((path, line)) = word.split_once("#L") {
        return (path, number(line));
    }
    match word.split_once(':') {
        Some((path, line)) => match number(line) {
            Some(line) => (path, Some(line)),
            None => (path, None),
        },
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mention_table() {
        let mut paths: Vec<RelPath> = [
            "Makefile",
            "README.md",
            "a/mod.rs",
            "b/mod.rs",
            "src/parser.rs",
            "src/foo/bar.py",
            "test/bar.js",
            "config",
            ".env",
            "app/[id]/page.tsx",
            "app/(shop)/page.tsx",
        ]
        .iter()
        .map(|path| RelPath::parse(path).unwrap())
        .collect();
        paths.sort();
        let listing = Listing { paths, truncated: false };
        type Found = &'static [(&'static str, Option<u32>)];
        let cases: &[(&str, Found)] = &[
            ("fix src/parser.rs", &[("src/parser.rs", None)]),
            ("fix ./src/parser.rs.", &[("src/parser.rs", None)]),
            ("parser.rs crashes", &[("src/parser.rs", None)]),
            ("see foo/bar.py:12: it", &[("src/foo/bar.py", Some(12))]),
            ("error at (src/parser.rs:3:7)", &[("src/parser.rs", Some(3))]),
            ("`bar.js#L5-L9` and 'README.md'", &[("test/bar.js", Some(5)), ("README.md", None)]),
            ("the config is wrong", &[]),
            ("the `config` is wrong", &[("config", None)]),
            ("run the Makefile", &[("Makefile", None)]),
            ("mod.rs is one of two", &[]),
            ("but a/mod.rs is one", &[("a/mod.rs", None)]),
            ("@README.md twice README.md", &[("README.md", None)]),
            ("https://example.org/README.md", &[]),
            ("File \"/home/me/shop/src/foo/bar.py\", line 7, in f", &[("src/foo/bar.py", Some(7))]),
            ("at f (/home/me/shop/test/bar.js:3:1)", &[("test/bar.js", Some(3))]),
            ("/home/me/shop is /home/me/other/src/parser.rs", &[]),
            ("fix app/[id]/page.tsx:7.", &[("app/[id]/page.tsx", Some(7))]),
            (
                "(see `(shop)/page.tsx`, then src/parser.rs)",
                &[("src/parser.rs", None), ("app/(shop)/page.tsx", None)],
            ),
            ("at Page (app/[id]/page.tsx:7:3)", &[("app/[id]/page.tsx", Some(7))]),
            ("see [app/[id]/page.tsx](app/[id]/page.tsx)", &[]),
            ("../../etc/passwd /etc/passwd arser.rs", &[]),
            ("", &[]),
        ];
        for (task, expected) in cases {
            let found = find_mentions(task, &listing, Path::new("/home/me/shop"));
            let found: Vec<(String, Option<u32>)> =
                found.into_iter().map(|mention| (mention.path.to_string(), mention.line)).collect();
            let expected: Vec<(String, Option<u32>)> =
                expected.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect();
            assert_eq!(found, expected, "{task}");
        }
    }
}
