//! A list to choose from, in the alternate screen, narrowed by typed words. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_terminal::wrap::{cut_line, line_width, text_width};
use journeyman_terminal::{Style, StyledLine};

use crate::key_hints::key_hints;
use crate::screen::Size;

/// Rows around the list: title, words, an empty row, details and keys.
const RESERVED_ROWS: usize = 6;

/// An item of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem {
    /// The text in the list.
    pub(crate) label: String,
    /// A few dim words before it.
    pub(crate) note: String,
    /// Lines about the selected item.
    pub(crate) details: Vec<String>,
}

/// The result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerEffect {
    /// The list is another, or the same.
    Stay,
    /// Nothing is chosen.
    Close,
    /// The item at this place is chosen, in the way at another place.
    Chosen(usize, usize),
}

/// The list.
#[derive(Debug)]
pub(crate) struct Picker {
    title: String,
    items: Vec<PickerItem>,
    words: String,
    selected: usize,
    /// The ways in which an item can be chosen; none where there is one alone.
    ways: Vec<&'static str>,
    way: usize,
}

impl Picker {
    /// Makes a list with the first item and the first way selected.
    #[must_use]
    pub(crate) fn new(title: impl Into<String>, items: Vec<PickerItem>, ways: Vec<&'static str>) -> Self {
        Self { title: title.into(), items, words: String::new(), selected: 0, ways, way: 0 }
    }

    /// Returns the title.
    #[must_use]
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Returns the items in one line each.
    #[must_use]
    pub(crate) fn labels(&self) -> Vec<String> {
        let label = |item: &PickerItem| match item.note.trim() {
            "" => item.label.clone(),
            note => format!("{} ({note})", item.label),
        };
        self.items.iter().map(label).collect()
    }

    /// Returns the places of the items that have all words.
    fn matching_items(&self) -> Vec<usize> {
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        let has_all = |item: &PickerItem| {
            let text = format!("{} {} {}", item.label, item.note, item.details.join(" ")).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        self.items.iter().enumerate().filter(|(_, item)| has_all(item)).map(|(place, _)| place).collect()
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PickerEffect {
        let matching = self.matching_items();
        let last = matching.len().saturating_sub(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return PickerEffect::Close,
            KeyCode::Char('c' | 'd') if control => return PickerEffect::Close,
            KeyCode::Enter => {
                return matching
                    .get(self.selected)
                    .map_or(PickerEffect::Stay, |place| PickerEffect::Chosen(*place, self.way));
            }
            KeyCode::Tab => self.way = (self.way + 1) % self.ways.len().max(1),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('p') if control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('n') if control => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Backspace => {
                self.words.pop();
                self.selected = 0;
            }
            KeyCode::Char(letter) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.words.push(letter);
                self.selected = 0;
            }
            _ => {}
        }
        PickerEffect::Stay
    }

    /// Takes pasted words that narrow the list.
    pub(crate) fn paste(&mut self, words: &str) {
        self.words.push_str(words);
        self.selected = 0;
    }

    /// Returns the rows for a terminal's size, and the cursor.
    #[must_use]
    pub(crate) fn render(&self, size: Size) -> (Vec<StyledLine>, (usize, usize)) {
        let matching = self.matching_items();
        let details =
            matching.get(self.selected).and_then(|place| self.items.get(*place)).map(|item| &item.details);
        let detail_rows = details.map_or(0, Vec::len).min(size.rows / 3);
        let room = size.rows.saturating_sub(RESERVED_ROWS + detail_rows).max(1);
        let first = (self.selected + 1).saturating_sub(room);
        let mut rows = vec![
            StyledLine::new(Style::Strong, &self.title)
                .with(Style::Dim, format!("  {} of {}", matching.len(), self.items.len())),
            StyledLine::new(Style::Accent, "› ").with_text(&self.words),
            self.ways_line(size.columns),
        ];
        let shown = matching.iter().enumerate().skip(first).take(room);
        for (number, item) in shown.filter_map(|(number, place)| Some((number, self.items.get(*place)?))) {
            let style = if number == self.selected { Style::Selected } else { Style::Plain };
            rows.push(StyledLine::new(Style::Dim, format!("  {}  ", item.note)).with(style, &item.label));
        }
        if matching.is_empty() {
            rows.push(StyledLine::new(Style::Dim, "  nothing has these words"));
        }
        rows.push(StyledLine::default());
        let details = details.into_iter().flatten().take(detail_rows);
        rows.extend(details.map(|line| StyledLine::new(Style::Dim, format!("  {line}"))));
        rows.resize(size.rows.saturating_sub(1).max(rows.len().min(size.rows)), StyledLine::default());
        let way = if self.ways.is_empty() { "" } else { "Tab changes what" };
        rows.push(key_hints(&["Enter chooses", "Esc closes", way, "type to search"], size.columns));
        let column = (2 + text_width(&self.words)).min(size.columns.saturating_sub(1));
        (rows.iter().map(|row| cut_line(row, size.columns)).collect(), (1, column))
    }

    /// Returns the row of the ways to choose, an empty one without them. Where they don't fit, it
    /// has the selected one.
    fn ways_line(&self, width: usize) -> StyledLine {
        let mut line = StyledLine::default();
        for (place, way) in self.ways.iter().enumerate() {
            line.push(Style::Plain, "  ");
            line.push(if place == self.way { Style::Selected } else { Style::Dim }, way);
        }
        match self.ways.get(self.way) {
            Some(way) if line_width(&line) > width => StyledLine::new(Style::Plain, "  ")
                .with(Style::Selected, *way)
                .with(Style::Dim, format!("  {} of {}", self.way + 1, self.ways.len())),
            _ => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let item =
            |label: &str| PickerItem { label: label.to_owned(), note: "now".to_owned(), details: Vec::new() };
        Picker::new(
            "Sessions",
            ["fix the parser", "fix the lexer", "docs"].map(item).to_vec(),
            vec!["opens", "forks"],
        )
    }

    fn press(picker: &mut Picker, code: KeyCode) -> PickerEffect {
        picker.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn words_narrow_the_list() {
        let mut picker = picker();
        "lex".chars().for_each(|letter| {
            press(&mut picker, KeyCode::Char(letter));
        });
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerEffect::Chosen(1, 0));
        press(&mut picker, KeyCode::Char('?'));
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerEffect::Stay);
    }

    #[test]
    fn the_way_that_is_selected_is_seen_at_any_width() {
        let mut picker = picker();
        let ways = |picker: &Picker, columns| picker.render(Size { columns, rows: 12 }).0[2].to_text();
        assert_eq!(ways(&picker, 20), "  opens  forks");
        assert_eq!(ways(&picker, 13), "  opens  1 o…");
        press(&mut picker, KeyCode::Tab);
        assert_eq!(ways(&picker, 13), "  forks  2 o…");
    }

    #[test]
    fn the_selection_stays_within_the_list() {
        let mut picker = picker();
        (0..9).for_each(|_| {
            press(&mut picker, KeyCode::Down);
        });
        press(&mut picker, KeyCode::Tab);
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerEffect::Chosen(2, 1));
        for rows in 1..12 {
            let (shown, _) = picker.render(Size { columns: 20, rows });
            assert!(rows < 7 || shown.len() == rows, "{rows}: {}", shown.len());
        }
    }
}
