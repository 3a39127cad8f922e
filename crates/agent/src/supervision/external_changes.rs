//! Detection of external changes to files that the session has seen.
//!
//! [`Seen`](journeyman_tools::Seen) keeps the content that the model saw and the last known content
//! of each file. The caller passes in the present hashes. Contents are compared by hash, so
//! touching a file is no change. Each change is reported once. The session's own writes are never
//! reported, since the tools record them.

use journeyman_protocol::{ContentHash, FileChange, FileChangeKind};
use journeyman_tools::SeenFile;

/// Maximum number of files named in one notice.
const MAX_LISTED_FILES: usize = 10;

/// A file that was changed outside of the session, with the hash of its present content, or `None`
/// if the file is gone.
pub(crate) type ExternalChange = (FileChange, Option<ContentHash>);

/// Returns the external changes since the last look. `now` has the hash of each file in `seen`, in
/// the same order.
pub(crate) fn find_external_changes(seen: &[SeenFile], now: &[Option<ContentHash>]) -> Vec<ExternalChange> {
    let different = seen.iter().zip(now).filter(|(file, now)| file.known != **now);
    different
        .map(|(file, now)| {
            let kind = match (file.known, now) {
                (_, None) => FileChangeKind::Deleted,
                (None, Some(_)) => FileChangeKind::Added,
                (Some(_), Some(_)) => FileChangeKind::Modified,
            };
            (FileChange { path: file.path.clone(), kind }, *now)
        })
        .collect()
}

/// Returns the notice of external changes for the model. While a command of the session runs in the
/// background, its changes can't be told from others, and the wording leaves the author open.
pub(crate) fn external_change_notice(changes: &[ExternalChange], background: bool) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let who = if background {
        "by somebody else, or by an agent or a background command of yours"
    } else {
        "by somebody else"
    };
    let mut text =
        format!("Files you have seen were changed {who}; read them again before you rely on them:");
    for (change, _) in changes.iter().take(MAX_LISTED_FILES) {
        let what = match change.kind {
            FileChangeKind::Added => "back",
            FileChangeKind::Modified => "changed",
            FileChangeKind::Deleted => "deleted",
        };
        text.push_str(&format!("\n- {} ({what})", change.path));
    }
    if changes.len() > MAX_LISTED_FILES {
        text.push_str(&format!("\n… and {} more", changes.len() - MAX_LISTED_FILES));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::RelPath;

    use super::*;

    fn file(name: &str, known: Option<&str>) -> SeenFile {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        SeenFile {
            path: RelPath::parse(name).unwrap(),
            seen: hash("seen"),
            known: known.map(hash),
            outside: false,
        }
    }

    #[test]
    fn what_is_as_it_was_known_is_no_change() {
        let hash = |text: &str| Some(ContentHash::of(text.as_bytes()));
        let seen = [
            file("a", Some("1")),
            file("b", Some("1")),
            file("c", Some("1")),
            file("d", None),
            file("e", None),
        ];
        let now = [hash("1"), hash("2"), None, hash("1"), None];
        let told = find_external_changes(&seen, &now);
        let told: Vec<(String, FileChangeKind)> =
            told.iter().map(|(change, _)| (change.path.to_string(), change.kind)).collect();
        let expected = [
            ("b".to_owned(), FileChangeKind::Modified),
            ("c".to_owned(), FileChangeKind::Deleted),
            ("d".to_owned(), FileChangeKind::Added),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_notice_names_ten_and_counts_the_rest() {
        let change = |n: usize| {
            let path = RelPath::parse(format!("f{n}")).unwrap();
            (FileChange { path, kind: FileChangeKind::Modified }, None)
        };
        let changes: Vec<ExternalChange> = (0..12).map(change).collect();
        let text = external_change_notice(&changes, false).unwrap();
        assert!(
            text.contains("- f9 (changed)") && !text.contains("f10") && text.ends_with("and 2 more"),
            "{text}"
        );
        assert_eq!(external_change_notice(&[], true), None);
    }
}
