//! Names of files in the words around a block: in a heading, in a line that announces the block,
//! in the comment that it begins with.

use journeyman_syntax::language::Language;

use crate::formats::paths::{looks_like_path, path_on_line, split_comment, strip_markup};
use crate::formats::{ReplyLines, ReplySource};

/// A longer line announces nothing.
const MAX_ANNOUNCING_LINE_BYTES: usize = 400;
/// Words that say that a file follows.
const ANNOUNCING_WORDS: [&str; 32] = [
    "create",
    "creates",
    "creating",
    "created",
    "add",
    "adding",
    "added",
    "new",
    "save",
    "write",
    "update",
    "updates",
    "updating",
    "updated",
    "modify",
    "modified",
    "replace",
    "replaced",
    "rewrite",
    "rewritten",
    "rewrote",
    "here",
    "here's",
    "contents",
    "content",
    "complete",
    "full",
    "final",
    "corrected",
    "revised",
    "fixed",
    "file",
];
/// Words that tell of a file rather than give it.
const DESCRIBING_WORDS: [&str; 13] = [
    "run", "runs", "running", "print", "prints", "output", "outputs", "returns", "usage", "example", "calls",
    "import", "imports",
];

/// The one path that a line announces: in backticks or bold before a colon (`Create
/// `a/b.rs`:`), or in a line that says in words that a file follows.
pub(crate) fn announced_path(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.len() > MAX_ANNOUNCING_LINE_BYTES {
        return None;
    }
    let ends = line.trim_end_matches(['*', '_']).ends_with(':');
    // Between a pair of marks stands every other piece.
    let marked = |mark: &'static str| line.split(mark).skip(1).step_by(2).map(str::trim);
    let names = marked("`").chain(marked("**")).map(strip_markup);
    let in_marks = only_item(names.filter(|name| looks_like_path(name)));
    match in_marks {
        Ok(Some(name)) if ends || announces_file(line) => Some(name),
        Ok(None) if announces_file(line) => {
            let words = line.split_whitespace().map(|word| word.trim_matches([',', ':', '`', '*', '(', ')']));
            only_item(words.filter(|word| is_plain_path(word))).ok().flatten()
        }
        _ => None,
    }
}

/// Returns the only one of some names; an error where there are several.
fn only_item<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<Option<&'a str>, ()> {
    let first = names.next();
    match names.all(|name| Some(name) == first) {
        true => Ok(first),
        false => Err(()),
    }
}

/// A path without marks around it: with a directory or the ending of a language, because other
/// words have dots as well.
fn is_plain_path(word: &str) -> bool {
    looks_like_path(word) && (word.contains('/') || Language::from_path(word).is_some())
}

/// Returns true for a line that says that a file follows: a heading, or a line with a word for it
/// that doesn't end as a sentence does.
pub(crate) fn announces_file(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("# ") || line.starts_with("##") {
        return true;
    }
    let words = || {
        line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '.' | '/' | '_' | '-')))
            .map(|word| word.trim_end_matches('.').to_ascii_lowercase())
    };
    if line.ends_with(['.', '!', '?']) || words().any(|word| DESCRIBING_WORDS.contains(&word.as_str())) {
        return false;
    }
    let few = words().filter(|word| word.contains(char::is_alphabetic)).count() <= 2
        && !words().any(|word| ["in", "from", "see", "like", "of"].contains(&word.as_str()));
    few || words().any(|word| ANNOUNCING_WORDS.contains(&word.as_str()))
}

/// The path in the comment that a block begins with, where the comment has nothing else: with a
/// directory, or of a file that is there, because comments name other things.
pub(crate) fn path_in_first_comment<'a>(body: &'a str, source: &ReplySource<'_>) -> Option<&'a str> {
    let mut rows = ReplyLines::new(body).map(|row| row.text.trim()).filter(|line| !line.is_empty());
    let mut first = rows.next()?;
    if first.starts_with("#!") || first == "<?php" {
        first = rows.next()?;
    }
    let (_, comment) = split_comment(first)?;
    // A heading of a document, a directive.
    if comment.is_empty() || first.starts_with("##") {
        return None;
    }
    let name = path_on_line(comment, source)?;
    let known = || {
        journeyman_protocol::RelPath::parse(name).is_ok_and(|path| crate::files::exists(source.files, &path))
    };
    (looks_like_path(name) && name.contains('.') && (name.contains('/') || known())).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use journeyman_protocol::RelPath;

    use super::*;

    #[test]
    fn lines_that_announce_a_file() {
        for line in [
            "Create `src/a.py`:",
            "Here's `src/a.py`:",
            "Here is the updated `src/a.py`:",
            "I'll create a new file called src/a.py with the following content:",
            "The new src/a.py:",
            "### File 1: `src/a.py`",
            "## 📁 `src/a.py`",
            "Contents of src/a.py",
            "Updated file src/a.py:",
            "And `src/a.py`:",
            "Step 1: Create `src/a.py`",
            "1. **src/a.py** - the new constant",
        ] {
            assert_eq!(announced_path(line), Some("src/a.py"), "{line}");
            assert!(announces_file(line), "{line}");
        }
        for line in [
            "In `src/a.py`:",
            "Then `src/a.py` prints:",
            "Run `src/a.py` like this:",
            "Save it and run `python src/a.py`:",
        ] {
            assert!(!announces_file(line), "{line}");
        }
        for line in ["I created `src/a.py` and `src/b.py`:", "Use version 3.11 here:", "See e.g. this:"] {
            assert_eq!(announced_path(line), None, "{line}");
        }
    }

    #[test]
    fn comments_that_name_a_file() {
        let files: BTreeMap<RelPath, String> = [(RelPath::parse("calc.py").unwrap(), String::new())].into();
        let source = ReplySource { reply: "", path: None, finished: true, files: &files };
        for (body, name) in [
            ("# src/a.py\nA = 1\n", Some("src/a.py")),
            ("#!/usr/bin/env python\n# File: src/a.py\n", Some("src/a.py")),
            ("\"\"\"src/a.py\"\"\"\n", Some("src/a.py")),
            ("// src/a.ts\n", Some("src/a.ts")),
            ("/* css/a.css */\n", Some("css/a.css")),
            ("<!-- web/a.html -->\n", Some("web/a.html")),
            ("# calc.py\n", Some("calc.py")),
            ("# other.py\n", None),
            ("# see src/a.py for more\n", None),
            ("A = 1\n# src/a.py\n", None),
            ("#include <sys/stat.h>\n", None),
        ] {
            assert_eq!(path_in_first_comment(body, &source), name, "{body}");
        }
    }
}
