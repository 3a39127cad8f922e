//! The file that a reply means: names on lines of their own, on fences, in prose.

use journeyman_protocol::RelPath;

use crate::files::exists;
use crate::formats::ReplySource;
use crate::formats::block::{BlockProblem, ProblemKind};

/// A line longer than this names no file.
const MAX_NAME_LINE_BYTES: usize = 400;
/// Maximum number of lines above a block that may name its file: a name, a fence, blank lines, and
/// a fence around the name.
const MAX_LINES_ABOVE: usize = 8;
/// Only so many words of a line of prose are looked up.
const MAX_PROSE_WORDS: usize = 40;
/// A longer word is not compared with files' names.
const MAX_WORD_BYTES: usize = 200;
/// Minimum similarity of a file name that is suggested (aider's bound).
const MIN_SUGGESTED_SIMILARITY: f64 = 0.8;

/// Fences that some replies use in place of backticks.
const TAG_FENCES: [&str; 5] = ["<source>", "<code>", "<pre>", "<codeblock>", "<sourcecode>"];
/// Signs around a comment that stands on a line of its own.
const COMMENT_STARTS: [&str; 8] = ["<!--", "//", "/*", "--", "\"\"\"", "#", ";", "%"];
const COMMENT_ENDS: [&str; 3] = ["-->", "*/", "\"\"\""];
/// Names of languages that look like file names.
const DOTTED_LANGUAGES: [&str; 3] = ["asp.net", "vb.net", "node.js"];

/// The path that a text names.
pub(crate) fn resolve_path(given: &str, source: &ReplySource<'_>) -> Result<RelPath, String> {
    let given = given.trim().trim_matches(['`', '"', '\'']).trim();
    if given.chars().any(char::is_control) {
        return Err("the path has control characters".to_owned());
    }
    let parsed = RelPath::parse(given);
    match &parsed {
        Ok(path) if exists(source.files, path) => return parsed.map_err(|error| error.to_string()),
        Ok(_) if given.contains('\\') => {
            if let Ok(path) = RelPath::parse(given.replace('\\', "/")) {
                return Ok(path);
            }
        }
        // Some models believe the project to lie at the root.
        Err(_) if given.starts_with('/') => {
            if let Ok(path) = RelPath::parse(given.trim_start_matches('/'))
                && exists(source.files, &path)
            {
                return Ok(path);
            }
            // A caller that names the file knows better where it lies.
            let named = source
                .path
                .filter(|path| path.as_str().is_some_and(|path| given.ends_with(&format!("/{path}"))));
            if let Some(path) = named {
                return Ok(path.clone());
            }
            if let Some(path) = path_in_checkout(given, source) {
                return Ok(path);
            }
        }
        _ => {}
    }
    parsed.map_err(|error| error.to_string())
}

/// Directories in which tools that models were trained with check a project out.
const CHECKOUT_DIRECTORIES: [&str; 12] = [
    "testbed",
    "workspace",
    "workspaces",
    "repo",
    "app",
    "project",
    "home",
    "root",
    "mnt",
    "tmp",
    "work",
    "Users",
];

/// The file that an absolute path means in another checkout of the project: the one beneath the
/// fewest of its directories that is there. A name alone is taken beneath a known place only.
pub(crate) fn path_in_checkout(given: &str, source: &ReplySource<'_>) -> Option<RelPath> {
    /// No checkout lies deeper.
    const MAX_CHECKOUT_DEPTH: usize = 8;
    let inner = given.strip_prefix('/')?;
    let known = inner.split('/').next().is_some_and(|first| CHECKOUT_DIRECTORIES.contains(&first));
    let mut rest = inner;
    for _ in 0..MAX_CHECKOUT_DEPTH {
        rest = rest.split_once('/')?.1;
        if !rest.contains('/') && !known {
            return None;
        }
        if let Ok(path) = RelPath::parse(rest)
            && exists(source.files, &path)
        {
            return Some(path);
        }
    }
    None
}

/// A path for a file that is written whole: the caller's where the named one isn't there and has
/// the same name with other directories before it.
pub(crate) fn resolve_path_of_whole_file(given: &str, source: &ReplySource<'_>) -> Result<RelPath, String> {
    let path = resolve_path(given, source)?;
    match source.path {
        Some(meant) if path.file_name() == meant.file_name() && !exists(source.files, &path) => {
            Ok(meant.clone())
        }
        _ => Ok(path),
    }
}

/// The problem of a path that can't be one.
pub(crate) fn path_problem(line: u32, given: &str, message: String) -> BlockProblem {
    let subject = Some(crate::outcome::truncate(&given.escape_debug().to_string(), 200).to_owned());
    BlockProblem { kind: ProblemKind::Path, line, subject, message }
}

/// Returns true if a line opens or closes a fence; what stands on it after the marks.
pub(crate) fn parse_fence_line(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) {
        return Some(rest.trim_start_matches(['`', '~']).trim());
    }
    if !line.starts_with('<') {
        return None;
    }
    let tag = |open: &&str| {
        line.strip_prefix(*open).or_else(|| {
            let name = open.strip_prefix('<')?;
            line.strip_prefix("</")?.strip_prefix(name)
        })
    };
    TAG_FENCES.iter().find_map(tag).map(str::trim)
}

/// The file that a fence's first line names: `rust src/a.rs`, `src/a.rs`, `rust:src/a.rs`, `js
/// title="a.js"`.
pub(crate) fn path_on_fence(info: &str) -> Option<&str> {
    if info.len() > MAX_NAME_LINE_BYTES {
        return None;
    }
    let in_braces = info.contains('{');
    for word in info.split_whitespace() {
        let word = word.trim_matches(['{', '}', ',']);
        // `{.python filename="a.py"}`: a class is the language.
        if in_braces && word.starts_with('.') && !word.contains(['/', '=']) {
            continue;
        }
        let (key, value) = match word.split_once(['=', ':']) {
            Some((key, value)) if !key.contains(['.', '/', '\\']) && !value.starts_with('\\') => (key, value),
            _ => ("", word),
        };
        let keys = ["", "title", "path", "file", "filename", "filepath", "name"];
        let language = key.chars().all(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '#'));
        if !keys.contains(&key) && (!language || word.contains('=')) {
            continue;
        }
        let name = value.trim_matches(['"', '\'', '`']);
        if looks_like_path(name) && !DOTTED_LANGUAGES.contains(&name) {
            return Some(name);
        }
    }
    None
}

/// Returns a line of a numbered list behind its number: `2. a.rs`, `2) a.rs`.
pub(crate) fn strip_list_number(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(['.', ')'])?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && rest.starts_with(' ')).then_some(rest)
}

/// The path that a line consists of, without what markdown puts around it.
pub(crate) fn path_on_line<'a>(line: &'a str, source: &ReplySource<'_>) -> Option<&'a str> {
    if line.len() > MAX_NAME_LINE_BYTES {
        return None;
    }
    let mut name = line.trim();
    if let Some(value) = path_in_tag(name) {
        name = value;
    }
    name = name.strip_prefix("<!--").map_or(name, |rest| rest.trim_end_matches("-->")).trim();
    name = name.trim_start_matches("//").trim_start_matches(['#', '>']).trim_start();
    for bullet in ["- ", "* ", "+ "] {
        name = name.strip_prefix(bullet).unwrap_or(name);
    }
    name = strip_list_number(name).unwrap_or(name);
    name = strip_markup(name);
    if let Some((key, rest)) = name.split_once(':') {
        let key = key.trim_matches(['*', '`', ' ']).to_ascii_lowercase();
        if is_path_label(&key) || key == "saw" {
            name = strip_markup(rest);
        }
    }
    // "src/a.rs (new file)"
    if let Some((before, _)) = name.split_once(" (")
        && name.ends_with(')')
        && looks_like_path(strip_markup(before))
    {
        name = strip_markup(before);
    }
    name = strip_decoration(name);
    if name.is_empty() || name.contains(['<', '>', '|', '"', '\n']) {
        return None;
    }
    (looks_like_path(name) || exists_as_file(name, source)).then_some(name)
}

/// The signs that a line of comment begins with, and its text without any signs.
pub(crate) fn split_comment(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim();
    let sign = COMMENT_STARTS.into_iter().find(|sign| line.starts_with(sign))?;
    let text = line.get(sign.len()..)?;
    let text = COMMENT_ENDS.iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    Some((sign, text.trim()))
}

/// Returns true for a word before a colon that says that a path follows.
fn is_path_label(key: &str) -> bool {
    matches!(key, "file" | "filename" | "path" | "file path" | "filepath" | "file name")
}

/// The path in a comment that says that it names a file: `# FILE: src/a.rs`.
pub(crate) fn labelled_path<'a>(line: &'a str, source: &ReplySource<'_>) -> Option<&'a str> {
    if line.len() > MAX_NAME_LINE_BYTES {
        return None;
    }
    let (_, comment) = split_comment(line)?;
    let (key, _) = comment.split_once(':')?;
    is_path_label(&key.trim().to_ascii_lowercase()).then(|| path_on_line(comment, source))?
}

/// The only word of a line that otherwise has signs alone: `=== a.rs ===`, `📄 a.rs`, `[a.rs]`.
fn strip_decoration(name: &str) -> &str {
    let mut words = name.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
    let (Some(only), None) = (words.next(), words.next()) else { return name };
    let within = |open, close| only.strip_prefix(open).and_then(|inner| inner.strip_suffix(close));
    match within('[', ']').or_else(|| within('(', ')')) {
        Some(inner) if !inner.contains(['[', ']', '(', ')']) => inner,
        _ => strip_markup(only),
    }
}

pub(crate) fn strip_markup(name: &str) -> &str {
    name.trim()
        .trim_end_matches(':')
        .trim_matches(['*', '`', '\'', '"', ' ', '\t'])
        .trim_end_matches(':')
        .trim()
}

/// Returns the path in a line like `<file name="a.rs">` or `<path>a.rs</path>` names.
pub(crate) fn path_in_tag(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('<')?;
    let (tag, rest) = inner.split_once('>')?;
    let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
    if !matches!(
        name,
        "file" | "path" | "file_path" | "filepath" | "filename" | "edit" | "edits" | "edit_file"
    ) {
        return None;
    }
    for key in ["path", "name", "file", "file_path", "filename"] {
        if let Some(value) = super::tags::attribute_value(attributes, key) {
            return Some(value);
        }
    }
    rest.split_once("</").map(|(value, _)| value).filter(|value| !value.is_empty())
}

/// Returns true if a text has the form of a path with an ending or a directory.
pub(crate) fn looks_like_path(name: &str) -> bool {
    let plain = !name.is_empty()
        && !name.contains(char::is_whitespace)
        && !name.contains("://")
        && !name.contains(['<', '>', '"', '|', '`', '*', '?', ';', '='])
        && !name.ends_with(['.', '/', ',', ':', '!'])
        && name.contains(char::is_alphanumeric);
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let ending = last.rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=12).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    });
    plain && (ending || (last.len() < name.len() && !name.contains(['(', ')', ','])))
}

fn exists_as_file(name: &str, source: &ReplySource<'_>) -> bool {
    RelPath::parse(name).is_ok_and(|path| exists(source.files, &path))
}

/// The name that stands above a block, and how the block is wrapped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameAbove<'a> {
    /// The path, as it is written.
    pub(crate) name: Option<&'a str>,
    /// The path nearest to the block, where that is another one: no such file is there.
    pub(crate) nearest: Option<&'a str>,
    /// A fence opens right above the block.
    pub(crate) fenced: bool,
    /// The offset at which the block's lines begin.
    pub(crate) start: usize,
    /// The nearest line of prose.
    pub(crate) prose: Option<&'a str>,
}

/// Looks at the lines between `from` and `at`, the nearest first, for the name of the file of the
/// block at `at`.
pub(crate) fn find_name_above<'a>(source: &ReplySource<'a>, from: usize, at: usize) -> NameAbove<'a> {
    let mut found = NameAbove { start: at, ..NameAbove::default() };
    let mut unsure: Option<(&str, usize)> = None;
    let mut end = at;
    for nth in 0..MAX_LINES_ABOVE {
        let Some(before) = source.reply.get(from..end).filter(|before| !before.is_empty()) else { break };
        let text = before.strip_suffix('\n').unwrap_or(before);
        let start = from + memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1);
        let line = source.reply.get(start..end).unwrap_or_default().trim();
        end = start;
        if line.is_empty() {
            continue;
        }
        let info = parse_fence_line(line);
        found.fenced |= nth == 0 && info.is_some();
        let (name, is_fence) = match info {
            Some(info) => (path_on_fence(info), true),
            None => (path_on_line(line, source), false),
        };
        if let Some(name) = name {
            // A comment that says that it names the file is meant, there or not.
            let labelled = !is_fence && unsure.is_none() && labelled_path(line, source).is_some();
            if labelled || exists_as_file(name, source) {
                (found.name, found.start) = (Some(name), start);
                found.nearest = unsure.map(|(name, _)| name);
                return found;
            }
            if unsure.is_none() {
                unsure = Some((name, start));
            }
            continue;
        }
        let ends = line.ends_with('>') || line.ends_with("<![CDATA[");
        let tag = line.starts_with('<') && ends && !line.contains(char::is_whitespace);
        if is_fence || tag {
            if unsure.is_none() {
                found.start = start;
            }
            continue;
        }
        found.prose = Some(line);
        break;
    }
    if let Some((name, start)) = unsure {
        (found.name, found.start) = (Some(name), start);
    }
    found
}

/// The one file that is there and that a line of prose speaks of.
pub(crate) fn path_in_prose(line: &str, source: &ReplySource<'_>) -> Option<RelPath> {
    match paths_in_prose(line, source).as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// The files that are there and that a line of prose speaks of.
pub(crate) fn paths_in_prose(line: &str, source: &ReplySource<'_>) -> Vec<RelPath> {
    let mut found: Vec<RelPath> = Vec::new();
    for word in line
        .split(|c: char| c.is_whitespace() || matches!(c, '`' | '*' | '"' | '(' | ')' | '\''))
        .take(MAX_PROSE_WORDS)
    {
        let word = word.trim_matches([',', '.', ':', ';', '!', '[', ']']);
        if !word.contains(['.', '/']) || word.len() > MAX_NAME_LINE_BYTES {
            continue;
        }
        let Ok(path) = RelPath::parse(word) else { continue };
        if exists(source.files, &path) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// A file that is there and whose name is like a word of a line, in words.
pub(crate) fn suggest_path(line: &str, source: &ReplySource<'_>) -> String {
    let others = source.files.other_paths();
    let mut best: Option<(f64, &RelPath)> = None;
    for word in line.split_whitespace().take(MAX_PROSE_WORDS) {
        let word = word.trim_matches(['`', '*', ',', '.', ':', '"']);
        if !word.contains(['.', '/']) || word.len() > MAX_WORD_BYTES {
            continue;
        }
        for path in others.iter().take(64) {
            let like = path.as_str().map_or(0.0, |path| strsim::normalized_levenshtein(path, word));
            if like >= MIN_SUGGESTED_SIMILARITY && best.is_none_or(|(other, _)| like > other) {
                best = Some((like, path));
            }
        }
    }
    best.map_or_else(String::new, |(_, path)| format!("; did you mean {path}?"))
}
