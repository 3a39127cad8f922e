//! The sizes of files' differences, drawn with bars as `git diff --stat` does.

use journeyman_protocol::FileChangeKind;

use crate::{Style, StyledLine};

/// Columns of `+` and `-` for the file with the most changed lines.
const MAX_BAR_COLUMNS: usize = 40;

/// The size of one file's difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// The name, without control sequences.
    pub name: String,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// True if lines mean nothing, as in a binary file.
    pub is_opaque: bool,
}

/// Returns one line per file, with a bar of the changed lines.
#[must_use]
pub fn stat_lines(files: &[FileStat]) -> Vec<StyledLine> {
    let width = files.iter().map(|file| file.name.chars().count()).max().unwrap_or_default();
    let most = files.iter().map(|file| file.added + file.removed).max().unwrap_or_default();
    let digits = most.to_string().len().max(3);
    let stat_line = |file: &FileStat| {
        let FileStat { name, kind, added, removed, is_opaque } = file;
        let padding = " ".repeat(width - name.chars().count().min(width));
        let line = StyledLine::default().with_text(format!(" {name}{padding} | "));
        let line = if *is_opaque {
            line.with_text(format!("{:>digits$}", "bin"))
        } else {
            line.with_text(format!("{:>digits$} ", added + removed))
                .with(Style::Good, "+".repeat(scale_to_bar(*added, most)))
                .with(Style::Bad, "-".repeat(scale_to_bar(*removed, most)))
        };
        let note = match kind {
            FileChangeKind::Added => " (new)",
            FileChangeKind::Deleted => " (gone)",
            FileChangeKind::Modified => "",
        };
        line.with(Style::Dim, note)
    };
    files.iter().map(stat_line).collect()
}

/// Returns the columns of so many lines, where `most` lines have the longest bar.
fn scale_to_bar(lines: usize, most: usize) -> usize {
    match lines {
        0 => 0,
        _ if most <= MAX_BAR_COLUMNS => lines,
        _ => (lines * MAX_BAR_COLUMNS / most).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled_to_the_longest() {
        let file = |name: &str, kind, added, removed, is_opaque| FileStat {
            name: name.to_owned(),
            kind,
            added,
            removed,
            is_opaque,
        };
        let files = [
            file("a.rs", FileChangeKind::Modified, 300, 100, false),
            file("image.png", FileChangeKind::Added, 0, 0, true),
            file("b", FileChangeKind::Deleted, 0, 1, false),
        ];
        let lines: Vec<String> = stat_lines(&files).iter().map(StyledLine::to_text).collect();
        let bar = format!("{}{}", "+".repeat(30), "-".repeat(10));
        assert_eq!(
            lines,
            [
                format!(" a.rs      | 400 {bar}"),
                " image.png | bin (new)".to_owned(),
                " b         |   1 - (gone)".to_owned()
            ]
        );
    }
}
