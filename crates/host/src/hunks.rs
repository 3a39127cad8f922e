//! Finds the hunks of a session's changes, and reverts single hunks.

use journeyman_protocol::{ContentHash, RelPath, SessionId};
use journeyman_terminal::diff::{HunkLine, Side};
use journeyman_workspace::{
    Change, ChangeSet, ChangedContent, CheckpointId, ExpectedState, FileContent, Workspace, unified_diff,
};

use crate::{Context as _, HostError};

/// A file that was changed.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// The file.
    pub path: RelPath,
    /// The changes, in the order of the file; none for a file that isn't text.
    pub hunks: Vec<Hunk>,
    content: ChangedContent,
}

/// A change of some lines that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The 0-based place of the first line in the file as it is.
    start: usize,
    /// The lines, without their ends.
    pub lines: Vec<HunkLine>,
    /// The lines as they were, with their ends.
    before: String,
    /// The lines as they are, with their ends.
    after: String,
}

/// A reverted hunk, which can be applied again.
#[derive(Debug, Clone)]
pub struct RevertedHunk {
    path: RelPath,
    /// The content that the file had; `None` if it was gone.
    before: Option<Vec<u8>>,
    /// The hash of the content that it has now; `None` if it is gone.
    now: Option<ContentHash>,
}

/// Finds the hunks of all files that differ from a checkpoint.
///
/// # Errors
/// [`HostError::Failed`] where the checkpoint or the tree can't be read.
pub fn find_hunks(workspace: &Workspace, since: &CheckpointId) -> Result<Vec<ChangedFile>, HostError> {
    let contents = workspace.history().contents_since(since).context("the changes")?;
    Ok(contents.into_iter().map(ChangedFile::from).collect())
}

impl From<ChangedContent> for ChangedFile {
    fn from(content: ChangedContent) -> Self {
        let diff = unified_diff(&content.path, content.before.as_deref(), content.after.as_deref());
        Self { path: content.path.clone(), hunks: parse_hunks(&diff), content }
    }
}

impl ChangedFile {
    /// Reverts a hunk, as a separate change in the project's journal.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the file isn't as it was when the hunks were found, or can't be
    /// written.
    pub fn revert_hunk(
        &self,
        hunk: &Hunk,
        workspace: &Workspace,
        session: &SessionId,
    ) -> Result<RevertedHunk, HostError> {
        let ChangedContent { path, before, after } = &self.content;
        let content = match (before, after) {
            // A hunk of a file that is new or gone is all of it.
            (None, _) => None,
            (Some(before), None) => Some(before.clone()),
            (Some(_), Some(after)) => Some(revert_lines(path, after, hunk)?),
        };
        let now = content.as_deref().map(ContentHash::of);
        let expected = after.as_deref().map(ContentHash::of);
        write_content(workspace, session, path, content, expected)?;
        Ok(RevertedHunk { path: path.clone(), before: after.clone(), now })
    }
}

impl RevertedHunk {
    /// Applies the reverted hunk again.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the file was changed since, or can't be written.
    pub fn reapply(self, workspace: &Workspace, session: &SessionId) -> Result<(), HostError> {
        write_content(workspace, session, &self.path, self.before, self.now)
    }
}

/// Writes the content, or removes the file if `content` is `None`, unless the file has changed
/// since.
fn write_content(
    workspace: &Workspace,
    session: &SessionId,
    path: &RelPath,
    content: Option<Vec<u8>>,
    expected: Option<ContentHash>,
) -> Result<(), HostError> {
    let (path, expected) = (path.clone(), expected.map_or(ExpectedState::Absent, ExpectedState::Hash));
    let change = match content {
        Some(content) => Change::Write { path, content, expected },
        None => Change::Delete { path, expected },
    };
    let description = Some("a hunk taken back or kept".to_owned());
    let set = ChangeSet { call: None, session: session.clone(), changes: vec![change], description };
    workspace.apply(set).context("the file stays as it is")?;
    Ok(())
}

/// Returns a file's content with one hunk reverted.
fn revert_lines(path: &RelPath, content: &[u8], hunk: &Hunk) -> Result<Vec<u8>, HostError> {
    let file = FileContent::from_bytes(content.to_vec(), false);
    let changed = || HostError::failed(format_args!("{path} isn't as it was; open the review again"));
    let text = file.text().ok_or_else(changed)?;
    let head: usize = text.split_inclusive('\n').take(hunk.start).map(str::len).sum();
    let rest = text.get(head..).and_then(|rest| rest.strip_prefix(hunk.after.as_str()));
    let whole =
        format!("{}{}{}", text.get(..head).unwrap_or_default(), hunk.before, rest.ok_or_else(changed)?);
    file.encode(&whole).context(path.to_string())
}

/// Parses the hunks of a unified diff of one file.
fn parse_hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut old, mut new) = (0, 0);
    for line in diff.split_inclusive('\n') {
        if let Some((starts, new_count)) = parse_hunk_header(line) {
            (old, new) = starts;
            // Without lines in the new file, the number is that of the line before.
            let start = if new_count == 0 { new } else { new.saturating_sub(1) };
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            hunks.push(Hunk { start, lines: Vec::new(), before: String::new(), after: String::new() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let (sign, text) = line.split_at(line.len().min(1));
        let side = match sign {
            "-" => Side::Old,
            "+" => Side::New,
            "\\" => {
                hunk.drop_last_line_feed();
                continue;
            }
            _ => Side::Both,
        };
        let number = if side == Side::Old { old } else { new };
        if side != Side::New {
            hunk.before.push_str(text);
            old += 1;
        }
        if side != Side::Old {
            hunk.after.push_str(text);
            new += 1;
        }
        let text = text.trim_end_matches(['\n', '\r']).to_owned();
        hunk.lines.push(HunkLine { side, number: Some(number), text });
    }
    hunks
}

impl Hunk {
    /// Removes the line feed of the last line, for a file without a final line feed.
    fn drop_last_line_feed(&mut self) {
        let side = self.lines.last().map(|line| line.side);
        if matches!(side, Some(Side::Old | Side::Both)) {
            self.before.pop();
        }
        if matches!(side, Some(Side::New | Side::Both)) {
            self.after.pop();
        }
    }

    /// Returns the numbers of the hunk's lines in the file as it is.
    #[must_use]
    pub fn new_line_range(&self) -> std::ops::RangeInclusive<u64> {
        let numbers = self.lines.iter().filter(|line| line.side != Side::Old).filter_map(|line| line.number);
        numbers.clone().min().unwrap_or(1)..=numbers.max().unwrap_or_default()
    }
}

/// Parses the header of a hunk: the first lines in both files, and the number of lines in the new.
fn parse_hunk_header(line: &str) -> Option<((u64, u64), u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
    };
    let ((old_start, _), (new_start, new_count)) = (range(old)?, range(new)?);
    Some(((old_start, new_start), new_count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken_back(before: &str, after: &str, place: usize) -> String {
        let path = RelPath::parse("a.txt").unwrap();
        let hunks = parse_hunks(&unified_diff(&path, Some(before.as_bytes()), Some(after.as_bytes())));
        String::from_utf8(revert_lines(&path, after.as_bytes(), &hunks[place]).unwrap()).unwrap()
    }

    #[test]
    fn one_hunk_is_taken_back_and_the_others_stay() {
        let before: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let after = before.replace("3\n4\n", "three\n4\n").replace("20\n", "").replace("30\n", "30\nmore");
        assert_eq!(taken_back(&before, &after, 0), after.replace("three", "3"));
        assert_eq!(taken_back(&before, &after, 1), after.replace("19\n", "19\n20\n"));
        assert_eq!(taken_back(&before, &after, 2), after.replace("30\nmore", "30\n"));
        assert_eq!(taken_back("a\r\nb\r\n", "a\r\nB\r\n", 0), "a\r\nb\r\n", "line endings stay");
        assert_eq!(taken_back("a\nb", "a\nb\n", 0), "a\nb", "and so does a missing end");
    }

    #[test]
    fn a_file_that_changed_since_is_left_alone() {
        let path = RelPath::parse("a.txt").unwrap();
        let hunks = parse_hunks(&unified_diff(&path, Some(b"a\n"), Some(b"b\n")));
        assert!(revert_lines(&path, b"c\n", &hunks[0]).is_err());
    }

    proptest! {
        #[test]
        fn without_all_hunks_a_file_is_as_it_was(
            before in "([a-c]{0,2}\n){0,30}[a-c]{0,2}",
            after in "([a-c]{0,2}\n){0,30}[a-c]{0,2}",
        ) {
            let path = RelPath::parse("a.txt").unwrap();
            let mut text = after.into_bytes();
            let hunks = parse_hunks(&unified_diff(&path, Some(before.as_bytes()), Some(&text)));
            // From the end, so that the places of the others stay.
            for hunk in hunks.iter().rev() {
                text = revert_lines(&path, &text, hunk).unwrap();
            }
            prop_assert_eq!(String::from_utf8(text).unwrap(), before);
        }
    }
}
