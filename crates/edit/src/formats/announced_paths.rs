//! Names of files in the words around a block: in a heading, in a line that announces the block,
//! in the comment that it begins with.

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;

use crate::formats::paths::{
    labelled_path, looks_like_path, path_on_line, split_comment, strip_list_number, strip_markup,
};
use crate::formats::{ReplyLine, ReplyLines, ReplySource};

/// A longer line announces nothing.
const MAX_ANNOUNCING_LINE_BYTES: usize = 400;
/// Lines of prose between a heading and its block.
const MAX_LINES_UNDER_HEADING: usize = 6;
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
pub(crate) fn is_plain_path(word: &str) -> bool {
    looks_like_path(word) && (word.contains('/') || Language::from_path(word).is_some())
}

fn words_of_line(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '.' | '/' | '_' | '-')))
        .map(|word| word.trim_end_matches('.').to_ascii_lowercase())
}

/// Returns true for a line that tells what a file does, or how it is used.
fn describes_use(line: &str) -> bool {
    words_of_line(line).any(|word| DESCRIBING_WORDS.contains(&word.as_str()))
}

/// Returns true for a line that says that a file follows: a heading, or a line with a word for it
/// that doesn't end as a sentence does.
pub(crate) fn announces_file(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("# ") || line.starts_with("##") {
        return true;
    }
    let words = || words_of_line(line);
    if line.ends_with(['.', '!', '?']) || describes_use(line) {
        return false;
    }
    let few = words().filter(|word| word.contains(char::is_alphabetic)).count() <= 2
        && !words().any(|word| ["in", "from", "see", "like", "of"].contains(&word.as_str()));
    few || words().any(|word| ANNOUNCING_WORDS.contains(&word.as_str()))
}

/// The path that the heading above a block's prose names: `2. **a.css**`, a sentence about the
/// file, and the block. A heading without a path ends the search, and so does prose about a use of
/// the file.
pub(crate) fn path_in_heading<'a>(source: &ReplySource<'a>, from: usize, at: usize) -> Option<&'a str> {
    let above = source.reply.get(from..at)?;
    let lines = above.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    for line in lines.take(MAX_LINES_UNDER_HEADING) {
        let marked = |mark: &str| line.len() > mark.len() && line.starts_with(mark) && line.ends_with(mark);
        if line.starts_with('#') || strip_list_number(line).is_some() || marked("**") || marked("`") {
            return path_on_line(line, source).filter(|path| is_plain_path(path));
        }
        if line.starts_with("```") || describes_use(line) {
            return None;
        }
    }
    None
}

/// The path in the comment that a block begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommentPath<'a> {
    pub(crate) path: &'a str,
    pub(crate) kind: CommentPathKind,
}

impl CommentPath<'_> {
    /// Returns true if the comment names the file of an only block: the caller's path goes before a
    /// bare name that isn't its own.
    pub(crate) fn is_name(&self, source: &ReplySource<'_>) -> bool {
        match self.kind {
            CommentPathKind::Certain => true,
            CommentPathKind::Bare => source.path.is_none_or(|path| path.file_name() == self.path.as_bytes()),
            CommentPathKind::Doubtful => false,
        }
    }
}

/// The reason to take a comment for the name of a block's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentPathKind {
    /// It has a directory, or the file is there.
    Certain,
    /// A name alone, in a comment as such files have them.
    Bare,
    /// A name alone, of which nothing else says that the block is this file.
    Doubtful,
}

/// The first line of a file that isn't blank and doesn't say what runs it.
fn first_code_line(body: &str) -> Option<ReplyLine<'_>> {
    let mut rows = ReplyLines::new(body).filter(|row| !row.text.trim().is_empty());
    let first = rows.next()?;
    let opens = first.text.starts_with("#!") || first.text.trim() == "<?php";
    if opens { rows.next() } else { Some(first) }
}

/// A file's new content without the comment at its beginning that only names the file, and without
/// the blank line after that. `None` where there is none, where the file has such a line itself, or
/// where nothing else changes: then the comment is what was asked for.
pub(crate) fn without_name_comment(
    source: &ReplySource<'_>,
    path: &RelPath,
    language: &str,
    content: &str,
) -> Option<String> {
    let old = source.files.text(path).ok().flatten()?;
    let row = first_code_line(content)?;
    let found = path_in_first_comment(content, language, source)?.path;
    let (own, ending) = (path.to_string(), path.extension().unwrap_or_default().to_ascii_lowercase());
    let within = |longer: &str, name: &str| longer.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'));
    let is_own = own == found || within(&own, found) || within(found, &own);
    let is_heading = MARKUP_ENDINGS.contains(&ending.as_str()) && !row.text.trim_start().starts_with("<!--");
    if !is_own || is_heading || old.lines().any(|line| line.trim() == row.text.trim()) {
        return None;
    }
    let (before, after) = (content.get(..row.start)?, content.get(row.start + row.text.len()..)?);
    let next_is_blank = |text: &str| text.lines().next().is_some_and(|line| line.trim().is_empty());
    let blank = after.split_inclusive('\n').next().filter(|_| next_is_blank(after));
    let at = before.split_inclusive('\n').map(str::len).sum::<usize>().min(old.len());
    let kept = old.get(at..).is_some_and(next_is_blank);
    let rest = match blank.filter(|_| !kept) {
        Some(blank) => after.get(blank.len()..)?,
        None => after,
    };
    let without = format!("{before}{rest}");
    (without.trim_end() != old.trim_end()).then_some(without)
}

/// Endings of texts in which the first line may be a heading.
const MARKUP_ENDINGS: [&str; 8] = ["md", "markdown", "mdx", "rst", "txt", "adoc", "org", "tex"];

/// The path in the comment that a block begins with, where the comment has nothing else. `language`
/// is that of the block's fence.
pub(crate) fn path_in_first_comment<'a>(
    body: &'a str,
    language: &str,
    source: &ReplySource<'_>,
) -> Option<CommentPath<'a>> {
    let first = first_code_line(body)?.text.trim();
    let (sign, comment) = split_comment(first)?;
    // A heading of a document, a directive.
    if comment.is_empty() || first.starts_with("##") {
        return None;
    }
    let path = path_on_line(comment, source)?;
    if !looks_like_path(path) || !path.contains('.') {
        return None;
    }
    let known = || RelPath::parse(path).is_ok_and(|path| crate::files::exists(source.files, &path));
    if path.contains('/') || known() {
        return Some(CommentPath { path, kind: CommentPathKind::Certain });
    }
    let alone = strip_markup(comment) == path || labelled_path(first, source).is_some();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let letters = ending.starts_with(|c: char| c.is_ascii_alphabetic());
    if !alone || !letters || is_product_name(path) || MARKUP_LANGUAGES.contains(&language) {
        return None;
    }
    let same_language = match (Language::from_name(language), Language::from_path(path)) {
        (Some(fence), Some(file)) => fence == file || matches!(sign, "//" | "/*"),
        _ => true,
    };
    let usual = same_language && comment_signs(&ending.to_ascii_lowercase()).contains(&sign);
    let kind = if usual { CommentPathKind::Bare } else { CommentPathKind::Doubtful };
    Some(CommentPath { path, kind })
}

/// Languages of fences around texts, in which the first line may be a heading.
const MARKUP_LANGUAGES: [&str; 8] = ["md", "markdown", "mdx", "rst", "text", "txt", "plaintext", "output"];
/// Names of libraries that look like file names.
const PRODUCT_NAMES: [&str; 16] = [
    "alpine.js",
    "asp.net",
    "chart.js",
    "d3.js",
    "discord.js",
    "ember.js",
    "express.js",
    "next.js",
    "node.js",
    "nuxt.js",
    "p5.js",
    "react.js",
    "socket.io",
    "three.js",
    "vb.net",
    "vue.js",
];

/// Returns true for the name of a library as prose has it: `Node.js`, while `node.js` is a file.
fn is_product_name(name: &str) -> bool {
    PRODUCT_NAMES.contains(&name.to_ascii_lowercase().as_str())
        && (name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.ends_with(".js"))
}

/// The signs of comments in source files with an ending, in lower case.
fn comment_signs(ending: &str) -> &'static [&'static str] {
    match ending {
        "py" | "pyi" => &["#", "\"\"\""],
        "rb" | "sh" | "bash" | "zsh" | "fish" | "yml" | "yaml" | "toml" | "pl" | "pm" | "r" | "ex"
        | "exs" | "jl" | "nim" | "tf" | "cfg" | "conf" | "ps1" | "cmake" | "mk" | "gd" | "graphql" => &["#"],
        "html" | "htm" | "xml" | "svg" | "vue" | "svelte" => &["<!--"],
        "css" | "scss" | "less" => &["/*", "//"],
        "php" => &["//", "/*", "#"],
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "cs" | "dart" | "go" | "gradle" | "groovy"
        | "java" | "js" | "jsx" | "cjs" | "mjs" | "kt" | "kts" | "proto" | "rs" | "scala" | "sol"
        | "swift" | "ts" | "tsx" | "cts" | "mts" | "zig" | "cu" | "glsl" => &["//", "/*"],
        "sql" | "lua" | "hs" | "elm" => &["--"],
        "clj" | "el" | "lisp" | "scm" | "asm" | "ini" => &[";"],
        "tex" | "sty" | "erl" => &["%"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn headings_that_name_the_file_of_a_block_under_prose() {
        let files: BTreeMap<RelPath, String> = BTreeMap::new();
        for (above, name) in [
            ("2. **a.css**\nThis file has the style of the plot.\n", Some("a.css")),
            ("### 2. `src/a.rs`\n\nIt reads the file.\nIt is small.\n\n", Some("src/a.rs")),
            ("**src/a.rs**\n\nIt reads the file.\n", Some("src/a.rs")),
            ("## a.css\n## Notes\nIt is small.\n", None),
            ("## a.css\nRun it like this.\n", None),
            ("## a.css\n```\nIt is small.\n", None),
            ("About a.css.\nIt is small.\n", None),
        ] {
            let source = ReplySource { reply: above, path: None, finished: true, files: &files };
            assert_eq!(path_in_heading(&source, 0, above.len()), name, "{above}");
        }
    }

    #[test]
    fn comments_that_name_a_file() {
        let files: BTreeMap<RelPath, String> = [(RelPath::parse("calc.py").unwrap(), String::new())].into();
        let source = ReplySource { reply: "", path: None, finished: true, files: &files };
        use CommentPathKind::*;
        for (body, name) in [
            ("# src/a.py\nA = 1\n", Some(("src/a.py", Certain))),
            ("#!/usr/bin/env python\n# File: src/a.py\n", Some(("src/a.py", Certain))),
            ("\"\"\"src/a.py\"\"\"\n", Some(("src/a.py", Certain))),
            ("// src/a.ts\n", Some(("src/a.ts", Certain))),
            ("/* css/a.css */\n", Some(("css/a.css", Certain))),
            ("<!-- web/a.html -->\n", Some(("web/a.html", Certain))),
            ("# calc.py\n", Some(("calc.py", Certain))),
            ("# other.py\n", Some(("other.py", Bare))),
            ("// File: app.js\n", Some(("app.js", Bare))),
            ("/* main.c */\n", Some(("main.c", Bare))),
            ("<!-- index.html -->\n", Some(("index.html", Bare))),
            ("// other.py\n", Some(("other.py", Doubtful))),
            ("// package.json\n", Some(("package.json", Doubtful))),
            ("# Node.js\n", None),
            ("# 1.2\n", None),
            ("# === other.py ===\n", None),
            ("# other.py (as it was)\n", None),
            ("# see src/a.py for more\n", None),
            ("A = 1\n# src/a.py\n", None),
            ("#include <sys/stat.h>\n", None),
        ] {
            let found = path_in_first_comment(body, "", &source);
            assert_eq!(found.map(|found| (found.path, found.kind)), name, "{body}");
        }
        let kind = |language| path_in_first_comment("# a.py\n", language, &source).map(|found| found.kind);
        assert_eq!([kind("python"), kind("yaml"), kind("md")], [Some(Bare), Some(Doubtful), None]);
    }
}
