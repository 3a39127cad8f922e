//! The text of single lines of files, as they are now.

use journeyman_index::query::{LineChooser, Passage};

use super::open::CodeIndex;

/// Maximum bytes of a line that is shown: its beginning tells what it is.
const MAX_SHOWN_LINE_BYTES: usize = 240;

/// Reads lines; the file that was read last is kept.
pub(super) struct LineReader<'a> {
    index: &'a CodeIndex,
    open: Option<(u32, String)>,
}

impl<'a> LineReader<'a> {
    pub(super) fn new(index: &'a CodeIndex) -> Self {
        Self { index, open: None }
    }

    /// Returns a line of a file, counted from 1; empty where it can't be read.
    pub(super) fn line(&mut self, file: u32, line: u32) -> String {
        let nth = line.saturating_sub(1) as usize;
        self.text(file).lines().nth(nth).map(to_shown_line).unwrap_or_default()
    }

    /// Returns the lines of a passage that show best why it was found, with their numbers.
    pub(super) fn best_lines(
        &mut self,
        file: u32,
        passage: &Passage,
        chooser: &mut LineChooser,
        limit: usize,
    ) -> Vec<(u32, String)> {
        let lines = chooser.best_lines(self.text(file), passage, limit);
        lines.into_iter().map(|(number, line)| (number, to_shown_line(line))).collect()
    }

    fn text(&mut self, file: u32) -> &str {
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            let path = self.index.snapshot.path_of(file);
            let text = path.and_then(|path| self.index.project.read_text(&path));
            self.open = Some((file, text.unwrap_or_default()));
        }
        self.open.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default()
    }
}

fn to_shown_line(line: &str) -> String {
    let line = line.trim();
    line.get(..line.floor_char_boundary(MAX_SHOWN_LINE_BYTES)).unwrap_or_default().to_owned()
}
