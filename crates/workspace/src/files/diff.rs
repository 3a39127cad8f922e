//! Unified diffs as git writes and reads them.

use journeyman_protocol::{EditDiff, FileChangeKind, RelPath};
use journeyman_text_diff::format_unified_hunks;

use crate::files::content::FileContent;
use crate::limits::MAX_DIFF_FILE_BYTES;
use crate::snapshot::differences::change_kind;
use crate::snapshot::entry::{FileKind, FileState};

/// Lines around each change, as git shows them.
const CONTEXT_LINES: usize = 3;
/// Mode of a file of which nothing else is known.
const PLAIN_MODE: u32 = 0o100_644;

/// Differences as text, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// The unified diff, of whole files only, so that it applies.
    pub text: String,
    /// True if files were left out for the limit.
    pub truncated: bool,
    /// Lines added in all files, also in those left out.
    pub added: usize,
    /// Lines removed in all files, also in those left out.
    pub removed: usize,
    /// Every file that differs, also those left out.
    pub files: Vec<DiffFileStat>,
    /// Files of which a content isn't kept any more, so that they are only named.
    pub lost: Vec<RelPath>,
}

/// The size of one file's differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFileStat {
    /// The file.
    pub path: RelPath,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// True if lines mean nothing: it is binary, too large, or its content isn't kept.
    pub opaque: bool,
}

impl Diff {
    /// Adds one file's difference, unless the whole would pass the limit.
    pub(crate) fn add(&mut self, path: &RelPath, piece: &FileDiff, max_bytes: usize) {
        let FileDiff { kind, added, removed, opaque, .. } = *piece;
        self.files.push(DiffFileStat { path: path.clone(), kind, added, removed, opaque });
        self.added += piece.added;
        self.removed += piece.removed;
        if self.text.len().saturating_add(piece.text.len()) > max_bytes {
            self.truncated = true;
        } else {
            self.text.push_str(&piece.text);
        }
    }
}

/// One side of a difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffSide<'a> {
    /// Type and permissions as git has them: `100644`, `100755` or `120000`.
    pub(crate) mode: u32,
    /// The content; `None` when it is too large to show, or isn't kept.
    pub(crate) bytes: Option<&'a [u8]>,
}

/// One file's difference.
#[derive(Debug)]
pub(crate) struct FileDiff {
    pub(crate) text: String,
    pub(crate) kind: FileChangeKind,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// True if the contents aren't shown.
    pub(crate) opaque: bool,
}

/// Returns the difference between two contents of one file, where `None` stands for no file; empty
/// if they are the same.
///
/// The headers are git's (`a/`, `b/`, `/dev/null`, `new file mode`), and `git apply` takes the
/// result as long as both contents are UTF-8. Contents in Latin-1 or UTF-16 are shown decoded;
/// binary ones, and those over [`MAX_DIFF_FILE_BYTES`], are only named.
#[must_use]
pub fn unified_diff(path: &RelPath, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let side = |bytes| DiffSide { mode: PLAIN_MODE, bytes: Some(bytes) };
    file_diff(path, old.map(side), new.map(side)).text
}

/// Maximum bytes of an [`edit_diff`]: more lines than anybody reads in a conversation.
const MAX_EDIT_DIFF_BYTES: usize = 64 * 1024;

/// Returns the difference between two texts of one file, with its size; empty when they are the
/// same.
#[must_use]
pub fn edit_diff(path: &RelPath, old: &str, new: &str) -> EditDiff {
    let [old, new] = [old, new].map(|text| DiffSide { mode: PLAIN_MODE, bytes: Some(text.as_bytes()) });
    let FileDiff { mut text, added, removed, .. } = file_diff(path, Some(old), Some(new));
    if text.len() > MAX_EDIT_DIFF_BYTES {
        let head = text.get(..text.floor_char_boundary(MAX_EDIT_DIFF_BYTES)).unwrap_or_default();
        text.truncate(head.rfind('\n').map_or(0, |end| end + 1));
    }
    let size = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
    EditDiff { added: size(added), removed: size(removed), text }
}

/// Returns the difference between two sides.
pub(crate) fn file_diff(path: &RelPath, old: Option<DiffSide<'_>>, new: Option<DiffSide<'_>>) -> FileDiff {
    let kind = change_kind(old.is_some(), new.is_some());
    let mut diff = FileDiff { text: String::new(), kind, added: 0, removed: 0, opaque: false };
    let (mode_line, same_kind) = match (old, new) {
        (None, None) => return diff,
        (None, Some(new)) => (format!("new file mode {:o}\n", new.mode), true),
        (Some(old), None) => (format!("deleted file mode {:o}\n", old.mode), true),
        (Some(old), Some(new)) if old.mode == new.mode => (String::new(), true),
        (Some(old), Some(new)) if is_link(old.mode) == is_link(new.mode) => {
            (format!("old mode {:o}\nnew mode {:o}\n", old.mode, new.mode), true)
        }
        (Some(_), Some(_)) => (String::new(), false),
    };
    if !same_kind {
        // A file that became a link, or the other way round, is two differences to git.
        let (gone, made) = (file_diff(path, old, None), file_diff(path, None, new));
        let opaque = gone.opaque || made.opaque;
        return FileDiff {
            text: gone.text + &made.text,
            kind,
            added: made.added,
            removed: gone.removed,
            opaque,
        };
    }
    let body = diff_body(path, old, new, &mut diff);
    if body.is_empty() && mode_line.is_empty() {
        return diff;
    }
    diff.text =
        format!("diff --git {} {}\n{mode_line}{body}", quote_path("a/", path), quote_path("b/", path));
    diff
}

fn is_link(mode: u32) -> bool {
    mode & 0o170_000 == 0o120_000
}

fn diff_body(
    path: &RelPath,
    old: Option<DiffSide<'_>>,
    new: Option<DiffSide<'_>>,
    diff: &mut FileDiff,
) -> String {
    let name = |prefix, side: Option<DiffSide<'_>>| match side {
        Some(_) => quote_path(prefix, path),
        None => "/dev/null".to_owned(),
    };
    let (from, to) = (name("a/", old), name("b/", new));
    let (old, new) = match (shown_bytes(old), shown_bytes(new)) {
        (Some(old), Some(new)) if old == new => return String::new(),
        (old, new) => (old.and_then(readable_text), new.and_then(readable_text)),
    };
    let (Some(old), Some(new)) = (old, new) else {
        diff.opaque = true;
        return format!("Binary files {from} and {to} differ\n");
    };
    let hunks = format_unified_hunks(&old, &new, CONTEXT_LINES);
    (diff.added, diff.removed) = (hunks.counts.added, hunks.counts.removed);
    // A name with a blank ends at a tab, or a reader couldn't tell it from a date.
    let end = if path.as_bytes().contains(&b' ') { "\t" } else { "" };
    let end = |name: &str| if name == "/dev/null" { "" } else { end };
    format!("--- {from}{}\n+++ {to}{}\n{}", end(&from), end(&to), hunks.text)
}

fn shown_bytes(side: Option<DiffSide<'_>>) -> Option<&[u8]> {
    match side {
        None => Some(&[]),
        Some(side) => side.bytes.filter(|bytes| bytes.len() <= MAX_DIFF_FILE_BYTES),
    }
}

fn readable_text(bytes: &[u8]) -> Option<String> {
    let content = FileContent::from_bytes(bytes.to_vec(), false);
    content.text()?;
    match std::str::from_utf8(bytes) {
        // With its byte order mark, which is part of what a patch has to match.
        Ok(text) => Some(text.to_owned()),
        Err(_) => content.text().map(str::to_owned),
    }
}

/// Returns the name with its prefix, in C's notation where git would need it: control characters,
/// quotes, backslashes, bytes that aren't UTF-8.
pub(crate) fn quote_path(prefix: &str, path: &RelPath) -> String {
    let special = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\');
    if let Some(text) = path.as_str()
        && !path.as_bytes().iter().any(special)
    {
        return format!("{prefix}{text}");
    }
    let mut out = format!("\"{prefix}");
    for byte in path.as_bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x20..=0x7e => out.push(char::from(*byte)),
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out.push('"');
    out
}

pub(crate) fn git_mode(state: &FileState) -> u32 {
    match state.kind {
        FileKind::Link => 0o120_000,
        FileKind::File if state.mode & 0o100 != 0 => 0o100_755,
        FileKind::File => 0o100_644,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: Option<&str>, new: Option<&str>) -> String {
        let path = RelPath::parse("src/a b.rs").unwrap();
        unified_diff(&path, old.map(str::as_bytes), new.map(str::as_bytes))
    }

    #[test]
    fn forms() {
        let table = [
            (Some("a\n"), Some("a\n"), ""),
            (None, None, ""),
            (
                Some("a\nb\nc\n"),
                Some("a\nB\nc"),
                "diff --git a/src/a b.rs b/src/a b.rs\n--- a/src/a b.rs\t\n+++ b/src/a b.rs\t\n@@ -1,3 +1,3 @@\n \
                 a\n-b\n-c\n+B\n+c\n\\ No newline at end of file\n",
            ),
            (
                None,
                Some("x\n"),
                "diff --git a/src/a b.rs b/src/a b.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/a b.rs\t\n\
                 @@ -0,0 +1 @@\n+x\n",
            ),
            (
                Some("x\r\n"),
                None,
                "diff --git a/src/a b.rs b/src/a b.rs\ndeleted file mode 100644\n--- a/src/a b.rs\t\n\
                 +++ /dev/null\n@@ -1 +0,0 @@\n-x\r\n",
            ),
            (None, Some(""), "diff --git a/src/a b.rs b/src/a b.rs\nnew file mode 100644\n"),
            (
                Some("\0"),
                Some("x"),
                "diff --git a/src/a b.rs b/src/a b.rs\nBinary files a/src/a b.rs and b/src/a b.rs differ\n",
            ),
        ];
        for (old, new, expected) in table {
            assert_eq!(diff(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn names_that_need_it_are_quoted() {
        let table: [(&[u8], &str); 4] = [
            (b"plain", "a/plain"),
            ("gr\u{fc}n".as_bytes(), "a/gr\u{fc}n"),
            (b"new\nline\"", "\"a/new\\nline\\\"\""),
            (b"\xff", "\"a/\\377\""),
        ];
        for (path, expected) in table {
            assert_eq!(quote_path("a/", &RelPath::parse(path).unwrap()), expected);
        }
    }
}
