//! Thinking that stands in a reply's text: servers that don't know a model's tags leave it there.
//! It tries edits and rejects them, so none of it is ever applied.

use std::borrow::Cow;

use memchr::memmem;

use crate::formats::ReplyLines;
use crate::formats::markers::{Mark, parse_mark};
use crate::formats::paths::parse_fence_line;

/// Names of the tags around thinking.
const TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// Returns the text with blanks in place of thinking, so that offsets and line numbers stay.
///
/// Tags count at the beginning of a line and outside of fences and edits: elsewhere they are the
/// content of a file. A closing tag without an opening one ends thinking that began with the
/// reply, because some chat templates write the opening tag themselves.
#[must_use]
pub fn blank_thinking(text: &str) -> Cow<'_, str> {
    let finds = |open: &str, tag: &str| memmem::find(text.as_bytes(), format!("{open}{tag}>").as_bytes());
    if TAGS.iter().all(|tag| finds("<", tag).is_none() && finds("</", tag).is_none()) {
        return Cow::Borrowed(text);
    }
    let mut out = text.to_owned();
    let mut blanked = false;
    let mut within = EnclosingContext::default();
    let mut skipped = 0;
    // Tags that nothing closes further below.
    let mut unclosed: Vec<&str> = Vec::new();
    for row in ReplyLines::new(text) {
        if row.start < skipped {
            continue;
        }
        let line = row.text.trim();
        within.track_hunk(row.text);
        let outside = within.is_outside();
        within.track_line(line);
        if !outside {
            continue;
        }
        let end_of_line = row.start + row.text.len();
        let range = if let Some(tag) = tag_at_start(line) {
            if unclosed.contains(&tag) {
                continue;
            }
            let closing = format!("</{tag}>");
            let rest = text.get(row.start..).unwrap_or_default();
            let end =
                memmem::find(rest.as_bytes(), closing.as_bytes()).map(|at| row.start + at + closing.len());
            let opens_reply = || out.get(..row.start).is_some_and(|before| before.trim().is_empty());
            // Thinking that isn't closed is all of the reply, or no thinking.
            match end.or_else(|| opens_reply().then_some(text.len())) {
                Some(end) => row.start..end,
                None => {
                    unclosed.push(tag);
                    continue;
                }
            }
        } else if ends_thinking(line) {
            // With a tag that is left over, a second look would take all before it for thinking.
            let tag = row.text.rfind("</").unwrap_or_default();
            if blanked { row.start + tag..end_of_line } else { 0..end_of_line }
        } else {
            continue;
        };
        skipped = range.end;
        blanked = true;
        within = EnclosingContext::default();
        let blank: String = text
            .get(range.clone())
            .unwrap_or_default()
            .bytes()
            .map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' })
            .collect();
        out.replace_range(range, &blank);
    }
    if blanked { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

fn tag_at_start(line: &str) -> Option<&'static str> {
    let name = line.strip_prefix('<')?;
    TAGS.into_iter().find(|tag| name.strip_prefix(*tag).is_some_and(|rest| rest.starts_with('>')))
}

fn ends_thinking(line: &str) -> bool {
    let name = line.strip_suffix('>').and_then(|line| line.rsplit_once("</"));
    name.is_some_and(|(_, name)| TAGS.contains(&name))
}

/// The fence, block, patch or hunk that a line stands in.
#[derive(Default)]
struct EnclosingContext {
    fence: Option<u8>,
    in_block: bool,
    in_patch: bool,
    in_edit: bool,
    in_hunk: bool,
}

impl EnclosingContext {
    fn is_outside(&self) -> bool {
        self.fence.is_none() && !self.in_block && !self.in_patch && !self.in_edit && !self.in_hunk
    }

    /// A hunk goes from its header to the first line without a prefix.
    fn track_hunk(&mut self, line: &str) {
        self.in_hunk = line.starts_with("@@") || (self.in_hunk && line.starts_with([' ', '+', '-', '\\']));
    }

    fn track_line(&mut self, line: &str) {
        match line.as_bytes().first() {
            Some(&sign @ (b'`' | b'~')) => {
                let info = parse_fence_line(line);
                match (self.fence, info) {
                    (None, Some(_)) => self.fence = Some(sign),
                    (Some(open), Some("")) if open == sign => self.fence = None,
                    _ => {}
                }
            }
            Some(b'<') => {
                let begins = line.starts_with("<edit>") || (line.starts_with("<edit ") && line.contains('='));
                self.in_edit = (self.in_edit || begins) && !line.ends_with("</edit>");
                self.track_mark(line);
            }
            Some(b'-' | b'>' | b'+') => self.track_mark(line),
            Some(b'*') if line == "*** Begin Patch" => self.in_patch = true,
            Some(b'*') if line == "*** End Patch" => self.in_patch = false,
            _ => {}
        }
    }

    fn track_mark(&mut self, line: &str) {
        match parse_mark(line).map(|marked| marked.mark) {
            Some(Mark::Open(_)) => self.in_block = true,
            Some(Mark::Close) => self.in_block = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "a.py\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";

    #[test]
    fn thinking_is_blank_and_the_rest_stays_where_it_is() {
        for (thinking, rest) in [
            (format!("<think>\nmaybe\n{BLOCK}no\n</think>"), BLOCK),
            (format!("<thinking>{BLOCK}</thinking>"), "\nNothing to change.\n"),
            (format!("maybe\n{BLOCK}no, that is wrong.</think>\n"), BLOCK),
            (format!("<think>\n```python\nhalf of a fence\n{BLOCK}</think>"), BLOCK),
            (format!("<think>\n{BLOCK}"), ""),
        ] {
            let text = format!("{thinking}{rest}");
            let read = blank_thinking(&text);
            assert_eq!(read.len(), text.len(), "{text}");
            assert_eq!(read.trim(), rest.trim(), "{text}");
            assert!(read.ends_with(rest), "{text}");
        }
        let left_over = format!("<think>a</think>\n{BLOCK}\nDone.\n</think>\n");
        let read = blank_thinking(&left_over);
        assert_eq!((read.matches("SEARCH").count(), read.contains("think")), (1, false), "{read}");
        assert_eq!(blank_thinking(&read), read, "a second look changes nothing");
        let two = format!("<think>a</think>\n{BLOCK}<thinking>\n{BLOCK}</thinking>\nb");
        let read = blank_thinking(&two);
        assert_eq!(read.matches("SEARCH").count(), 1, "{read}");
    }

    #[test]
    fn tags_in_content_stay() {
        for text in [
            "a.md\n```\n<think>\nx\n</think>\n```\n",
            "a.md\n<<<<<<< SEARCH\n<think>\n</think>\n=======\n</think>\n>>>>>>> REPLACE\n",
            "*** Begin Patch\n*** Add File: a\n+x\n</think>\n*** End Patch\n",
            "<edit>\n<file>a</file>\n<replace>\n</think>\n</replace>\n</edit>\n",
            "The tag `</think>` ends it.\n",
            "First this.\n<think>\nnever closed",
        ] {
            assert_eq!(blank_thinking(text), text);
        }
    }
}
