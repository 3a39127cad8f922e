//! Descriptions of destructive changes, for questions and results.

use std::fmt::Write as _;

use journeyman_protocol::{FileChange, FileChangeKind, RelPath, group_digits};
use journeyman_workspace::DestructiveChange;

/// Maximum number of items named in one sentence.
const MAX_NAMED_ITEMS: usize = 8;

/// Describes the changes that undo can't revert, such as "removes 3 files that undo can't bring
/// back: .env (1.2 KB), target/ (2 files, 812 MB)". Returns `None` if undo can revert all of them.
pub(crate) fn describe_lost(losses: &[DestructiveChange]) -> Option<String> {
    let mut gone: Vec<&DestructiveChange> = losses.iter().filter(|loss| !loss.undoable).collect();
    if gone.is_empty() {
        return None;
    }
    // Largest first.
    gone.sort_by_key(|loss| std::cmp::Reverse(loss.bytes));
    let verb = match (gone.iter().all(|loss| loss.replaced), gone.iter().any(|loss| loss.replaced)) {
        (true, _) => "replaces",
        (false, true) => "removes or replaces",
        (false, false) => "removes",
    };
    let mut text = format!(
        "{verb} {} that undo can't bring back: {}",
        describe_file_count(&gone),
        list_with_sizes(&gone)
    );
    let kept: Vec<&DestructiveChange> = losses.iter().filter(|loss| loss.undoable).collect();
    if !kept.is_empty() {
        // Writing to a string can't fail.
        write!(
            text,
            "; and {}, which undo brings back: {}",
            describe_file_count(&kept),
            list_with_sizes(&kept)
        )
        .ok();
    }
    Some(text)
}

/// Describes the ignored files that undo can bring back, if there are any, in sentences.
pub(crate) fn describe_recoverable(losses: &[DestructiveChange]) -> Option<String> {
    let kept: Vec<&DestructiveChange> = losses.iter().filter(|loss| loss.undoable).collect();
    let is_one = matches!(kept[..], [DestructiveChange { files: 1, .. }]);
    let (noun, them) = if is_one { ("ignored file", "it") } else { ("ignored files", "them") };
    let verb = match (kept.iter().all(|loss| loss.replaced), kept.iter().any(|loss| loss.replaced)) {
        (true, _) => "replace",
        (false, true) => "delete or replace",
        (false, false) => "delete",
    };
    let (number, names) = (format_file_count(&kept), list_with_sizes(&kept));
    (!kept.is_empty())
        .then(|| format!("It would {verb} {number} {noun}: {names}. `jm undo` can bring {them} back."))
}

/// Returns the number of files, in digits.
fn format_file_count(losses: &[&DestructiveChange]) -> String {
    let files = losses.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.files));
    let more = if losses.iter().any(|loss| loss.more) { "more than " } else { "" };
    format!("{more}{}", group_digits(files))
}

fn describe_file_count(losses: &[&DestructiveChange]) -> String {
    let number = format_file_count(losses);
    let plural = if number == "1" || number == "more than 1" { "" } else { "s" };
    format!("{number} file{plural}")
}

fn list_with_sizes(losses: &[&DestructiveChange]) -> String {
    let each = losses.iter().take(MAX_NAMED_ITEMS).map(|loss| {
        let size = format_size(loss.bytes);
        match (loss.directory, loss.files) {
            (false, _) => format!("{} ({size})", loss.path),
            (true, 1) => format!("{}/ (1 file, {size})", loss.path),
            (true, files) => format!("{}/ ({} files, {size})", loss.path, group_digits(files)),
        }
    });
    let text = each.collect::<Vec<_>>().join(", ");
    append_rest_count(text, losses.len())
}

fn append_rest_count(mut text: String, all: usize) -> String {
    if let Some(more) = all.checked_sub(MAX_NAMED_ITEMS).filter(|more| *more > 0) {
        write!(text, " and {more} more").ok();
    }
    text
}

/// Says what a command would do to files, for a question, deletions first; `None` if nothing.
pub(crate) fn describe_changes(changes: &[FileChange]) -> Option<String> {
    use FileChangeKind::{Added, Deleted, Modified};
    let parts =
        [(Deleted, "delete"), (Modified, "change"), (Added, "add")].into_iter().filter_map(|(kind, verb)| {
            let of_kind: Vec<&RelPath> =
                changes.iter().filter(|change| change.kind == kind).map(|change| &change.path).collect();
            let names =
                of_kind.iter().take(MAX_NAMED_ITEMS).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Some(match of_kind.len() {
                0 => return None,
                1 => format!("{verb} {names}"),
                count => {
                    format!(
                        "{verb} {} files: {}",
                        group_digits(count as u64),
                        append_rest_count(names, count)
                    )
                }
            })
        });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Lists files with the reason for each.
pub(crate) fn list_files_with_reasons(files: &[(RelPath, String)]) -> String {
    let each = files.iter().take(MAX_NAMED_ITEMS).map(|(path, why)| format!("{path}: {why}"));
    append_rest_count(each.collect::<Vec<_>>().join("; "), files.len())
}

/// Formats a size in decimal units, with at most three digits.
fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let (mut whole, mut tenths) = (bytes / 1_000, bytes % 1_000 / 100);
    let mut unit = 0;
    while whole >= 1_000 && unit + 1 < UNITS.len() {
        (whole, tenths) = (whole / 1_000, whole % 1_000 / 100);
        unit += 1;
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    if whole < 10 { format!("{whole}.{tenths} {unit}") } else { format!("{whole} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(path: &str, files: u64, bytes: u64, undoable: bool) -> DestructiveChange {
        let directory = path.ends_with('/');
        let path = RelPath::parse(path).unwrap();
        DestructiveChange { path, files, bytes, directory, replaced: false, undoable, more: false }
    }

    #[test]
    fn what_is_lost_in_one_line() {
        let losses = [loss(".env", 1, 1_234, false), loss("target/", 1_204, 812_345_678, false)];
        let expected =
            "removes 1,205 files that undo can't bring back: target/ (1,204 files, 812 MB), .env (1.2 KB)";
        assert_eq!(describe_lost(&losses).unwrap(), expected);
        let losses = [
            loss(".env", 1, 12, true),
            DestructiveChange { replaced: true, ..loss("big", 1, 20_000_000, false) },
        ];
        let expected = "replaces 1 file that undo can't bring back: big (20 MB); and 1 file, which undo brings back: \
                        .env (12 B)";
        assert_eq!(describe_lost(&losses).unwrap(), expected);
        assert_eq!(describe_lost(&losses[..1]), None);
        let expected = "It would delete 1 ignored file: .env (12 B). `jm undo` can bring it back.";
        assert_eq!(describe_recoverable(&losses).unwrap(), expected);
        let losses = [loss("build/", 40, 80, true), loss(".env", 1, 6, true)];
        let expected = "It would delete 41 ignored files: build/ (40 files, 80 B), .env (6 B). `jm undo` can bring them back.";
        assert_eq!(describe_recoverable(&losses).unwrap(), expected);
        assert_eq!(describe_recoverable(&[]), None);
    }

    #[test]
    fn what_is_done_to_files_is_called_by_its_name() {
        let change = |path: &str, kind| FileChange { path: RelPath::parse(path).unwrap(), kind };
        let changes = [
            change("a", FileChangeKind::Modified),
            change("b", FileChangeKind::Deleted),
            change("c", FileChangeKind::Added),
            change("d", FileChangeKind::Deleted),
        ];
        assert_eq!(describe_changes(&changes).unwrap(), "delete 2 files: b, d; change a; add c");
        assert_eq!(describe_changes(&changes[1..2]).unwrap(), "delete b");
        assert_eq!(describe_changes(&[]), None);
    }

    #[test]
    fn much_is_counted() {
        let losses: Vec<DestructiveChange> =
            (0..12).map(|n| loss(&format!("f{n}"), 1, 1_000, false)).collect();
        let text = describe_lost(&losses).unwrap();
        assert!(
            text.starts_with("removes 12 files that ") && text.ends_with("f7 (1.0 KB) and 4 more"),
            "{text}"
        );
        let losses = [DestructiveChange { more: true, ..loss("all/", 400_000, u64::MAX, false) }];
        assert!(
            describe_lost(&losses).unwrap().contains("more than 400,000 files"),
            "{:?}",
            describe_lost(&losses)
        );
        assert_eq!(
            (format_size(999), format_size(1_000), format_size(9_999), format_size(10_000)),
            ("999 B".into(), "1.0 KB".into(), "9.9 KB".into(), "10 KB".into())
        );
        assert_eq!(format_size(u64::MAX), "18 EB");
    }
}
