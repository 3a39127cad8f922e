//! The files that differ from the last commit.

use journeyman_protocol::{RelPath, TokenCounter as _, Tokens};

use crate::TokenEstimator;

/// Maximum number of files that are named.
const MAX_NAMED_FILES: usize = 20;
/// The beginning of the line about them.
const HEADING: &str = "Uncommitted changes from before the task:";

/// A file with an uncommitted change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    /// The file.
    pub path: RelPath,
    /// The kind of its change.
    pub kind: ChangeKind,
}

/// The kind of an uncommitted change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The content or the mode differs.
    Changed,
    /// The last commit doesn't have the file.
    New,
    /// The file is gone.
    Deleted,
    /// A merge left a conflict.
    Unmerged,
}

impl UncommittedFile {
    /// Returns the path, with the kind where the content isn't just different.
    fn text(&self) -> String {
        match self.kind {
            ChangeKind::Changed => self.path.to_string(),
            ChangeKind::New => format!("{} (new)", self.path),
            ChangeKind::Deleted => format!("{} (deleted)", self.path),
            ChangeKind::Unmerged => format!("{} (unmerged)", self.path),
        }
    }
}

/// Returns a line that names the files as far as they fit into `room`, and their number; `None` if
/// not one does.
pub(crate) fn uncommitted_line(files: &[UncommittedFile], room: Tokens) -> Option<(String, usize)> {
    let mut line = HEADING.to_owned();
    let mut count = 0;
    for file in files.iter().take(MAX_NAMED_FILES) {
        let with_it = format!("{line} {}", file.text());
        if TokenEstimator.count(&with_it) > room {
            break;
        }
        line = with_it;
        count += 1;
    }
    if count < files.len() {
        line.push_str(&format!(" and {} more", files.len() - count));
    }
    (count > 0).then_some((line, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, kind: ChangeKind) -> UncommittedFile {
        UncommittedFile { path: RelPath::parse(path).unwrap(), kind }
    }

    #[test]
    fn files_are_named_as_far_as_they_fit() {
        let files = [file("a.rs", ChangeKind::Changed), file("b.rs", ChangeKind::New)];
        let (line, count) = uncommitted_line(&files, Tokens(400)).unwrap();
        assert_eq!((line.as_str(), count), (&*format!("{HEADING} a.rs b.rs (new)"), 2));
        assert_eq!(uncommitted_line(&files, Tokens(5)), None);
        assert_eq!(uncommitted_line(&[], Tokens(400)), None);
        let many: Vec<_> = (0..50).map(|at| file(&format!("src/f{at}.rs"), ChangeKind::Deleted)).collect();
        let (line, count) = uncommitted_line(&many, Tokens(400)).unwrap();
        assert!(count == MAX_NAMED_FILES && line.ends_with("src/f19.rs (deleted) and 30 more"), "{line}");
    }
}
