//! A hunk without any header, in a fenced block that says that it is a diff.

use crate::formats::announced_paths::announced_path;
use crate::formats::markers::{Mark, parse_mark};
use crate::formats::{ReplyLines, ReplySource, paths};

/// Beginnings of lines that say what follows them: a hunk's header, a file's, a patch's, a table of
/// a version control system.
const HEADERS: [&str; 4] = ["@@", "diff --git ", "*** ", "Index: "];

/// Returns true if the fence with this info string says that its text is a diff.
pub(in crate::formats) fn is_diff_fence(info: &str) -> bool {
    let language = info.split([' ', '\t', ':', '{']).next().unwrap_or_default();
    ["diff", "patch", "udiff"].iter().any(|name| language.eq_ignore_ascii_case(name))
}

/// Returns true if a fence says that it is a diff, and the text from its first line on has changed
/// lines without anything that says where they stand.
pub(in crate::formats) fn is_headless_diff(info: &str, body: &str) -> bool {
    if !is_diff_fence(info) {
        return false;
    }
    let mut rows =
        ReplyLines::new(body).map(|row| row.text).skip_while(|line| line.trim().is_empty()).peekable();
    let mut changes = false;
    while let Some(line) = rows.next() {
        let text = line.trim_start();
        if text.starts_with("```") || text.starts_with("~~~") {
            break;
        }
        let names =
            text.starts_with("--- ") && rows.peek().is_some_and(|next| next.trim_start().starts_with("+++ "));
        let marks = parse_mark(text).is_some_and(|marked| {
            !matches!(marked.mark, Mark::Divider | Mark::MergedDivider(_) | Mark::Merged(_))
        });
        if names || marks || HEADERS.iter().any(|header| text.starts_with(header)) {
            return false;
        }
        changes |= line.starts_with(['+', '-']);
    }
    changes
}

/// Returns the file that such a fence names, its first line (at `body`, if it begins as none of a
/// diff does), or the lines between `from` and the fence at `at`: a name, or words that end with a
/// colon. A file of patches holds a diff.
pub(in crate::formats) fn name_of_headless_diff<'a>(
    source: &ReplySource<'a>,
    info: &'a str,
    (from, at): (usize, usize),
    body: usize,
) -> Option<&'a str> {
    let above = paths::find_name_above(source, from, at);
    let first = || name_on_first_line(source, body).map(|(name, _)| name);
    let named = paths::path_on_fence(info).or_else(first).or(above.name);
    let named = named.or_else(|| announced_path(above.prose?));
    named.filter(|name| !name.ends_with(".diff") && !name.ends_with(".patch"))
}

/// Returns the file that the first line of a fence's text names, and which line that is, from 0 on.
pub(super) fn name_on_first_line<'a>(source: &ReplySource<'a>, body: usize) -> Option<(&'a str, usize)> {
    let mut lines = source.reply.get(body..)?.lines().enumerate();
    let (nth, line) = lines.find(|(_, line)| !line.trim().is_empty())?;
    let name = paths::path_on_line(line, source).filter(|_| !line.starts_with([' ', '+', '-']))?;
    Some((name, nth))
}
