//! The composer: a message as it is written, its history, and large pastes in their place. Pure: a
//! key leads to another state and at most one effect.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_protocol::ImageData;
use journeyman_terminal::wrap::char_width;
use journeyman_terminal::{Style, StyledLine};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::buffer::{Buffer, Motion};
use crate::vi::{ViEffect, ViKeys};

/// Lines of a paste above which it is folded.
const MAX_SHOWN_PASTE_LINES: usize = 8;
/// Bytes of a paste above which it is folded.
const MAX_SHOWN_PASTE_BYTES: usize = 1_000;
/// Maximum images that are remembered beside those of the message that is written.
const MAX_IMAGES: usize = 16;
/// The mark before the first row.
const PROMPT: &str = "› ";
/// The mark in normal mode of vi.
const NORMAL_PROMPT: &str = "‹ ";
/// Columns of the mark.
const PROMPT_COLUMNS: usize = 2;

/// The result of a key that is more than another text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComposerEffect {
    /// The text is as before, and the key means nothing here.
    Ignored,
    /// The text or the cursor is another.
    Changed,
    /// The message is complete, with what was pasted in its place.
    Submitted(String),
}

/// A search through the history.
#[derive(Debug, Clone, Default)]
struct HistorySearch {
    query: String,
    /// The number of matches to pass over.
    skipped: usize,
    /// The text before the search.
    before: String,
}

/// The rows of the composer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComposerRows {
    /// The rows.
    pub(crate) rows: Vec<StyledLine>,
    /// The cursor's row and column.
    pub(crate) cursor: (usize, usize),
}

/// A message that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Composer {
    buffer: Buffer,
    /// Pasted texts with the words that stand for them.
    pastes: Vec<(String, String)>,
    /// Images with the words that stand for them, also of messages that were sent: those may come
    /// back. The newest are last.
    images: Vec<(String, ImageData)>,
    /// Earlier messages, the newest last.
    history: Vec<String>,
    /// The place in the history that is shown, from its end.
    recalled: Option<usize>,
    /// The text that was written before the history was looked at.
    draft: String,
    search: Option<HistorySearch>,
    /// The mode of vi, for those who want its keys.
    vi: Option<ViKeys>,
}

impl Composer {
    /// Makes a composer with earlier messages, the newest last.
    #[must_use]
    pub(crate) fn new(history: Vec<String>) -> Self {
        Self { history, ..Self::default() }
    }

    /// Enables the keys of vi.
    pub(crate) fn use_vi_keys(&mut self) {
        self.vi = Some(ViKeys::default());
    }

    /// Returns true if Esc goes to normal mode, and means nothing else.
    #[must_use]
    pub(crate) fn uses_escape(&self) -> bool {
        self.vi.is_some_and(|vi| !vi.is_normal()) && !self.buffer.text().is_empty()
    }

    /// Returns the text as it is shown.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        self.buffer.text()
    }

    /// Returns the text before the cursor.
    #[must_use]
    pub(crate) fn before_cursor(&self) -> &str {
        self.buffer.text_before_cursor()
    }

    /// Returns true if nothing is written.
    #[must_use]
    pub(crate) fn is_blank(&self) -> bool {
        self.buffer.is_blank()
    }

    /// Returns true if no message is being written or looked for.
    #[must_use]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_blank() && !self.is_searching()
    }

    /// Returns true while the history is searched.
    #[must_use]
    pub(crate) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Replaces the text.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.buffer.set_text(text);
        (self.recalled, self.search) = (None, None);
    }

    /// Removes the text.
    pub(crate) fn clear(&mut self) {
        // What was pasted stays until the message is sent: the text may be taken back.
        self.buffer.set_text("");
        (self.recalled, self.search) = (None, None);
    }

    /// Replaces the text from a byte position to the cursor, such as by a completion.
    pub(crate) fn complete(&mut self, start: usize, text: &str) {
        self.buffer.replace_before(start, text);
    }

    /// Inserts pasted text. A large one is folded: words stand for it until it is sent.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = clean_paste(text);
        self.search = None;
        let lines = text.lines().count();
        if lines <= MAX_SHOWN_PASTE_LINES && text.len() <= MAX_SHOWN_PASTE_BYTES {
            return self.buffer.insert(&text);
        }
        let number = self.pastes.len() + 1;
        let stand_in = format!("[paste {number}: {lines} lines]");
        self.buffer.insert(&stand_in);
        self.pastes.push((stand_in, text));
    }
}

impl Composer {
    /// Inserts the words that stand for an image, which goes with the message.
    pub(crate) fn insert_image(&mut self, label: &str, image: ImageData) {
        let is_other = |name: &str| self.images.iter().any(|(known, had)| known == name && *had != image);
        let mut stand_in = label.to_owned();
        for number in 2.. {
            if !is_other(&stand_in) {
                break;
            }
            stand_in = format!("{} ({number})]", label.trim_end_matches(']'));
        }
        self.search = None;
        self.buffer.insert(&stand_in);
        self.buffer.insert(" ");
        self.images.retain(|(known, _)| *known != stand_in);
        let text = self.buffer.text();
        let oldest = self.images.iter().position(|(known, _)| !text.contains(known.as_str()));
        if let Some(oldest) = oldest.filter(|_| self.images.len() >= MAX_IMAGES) {
            self.images.remove(oldest);
        }
        self.images.push((stand_in, image));
    }

    /// Returns the images that words of a message stand for, in their order.
    #[must_use]
    pub(crate) fn images_in(&self, message: &str) -> Vec<ImageData> {
        let found = self.images.iter().filter_map(|(stand_in, image)| Some((message.find(stand_in)?, image)));
        let mut found: Vec<(usize, &ImageData)> = found.collect();
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, image)| image.clone()).collect()
    }

    /// Returns the words that stand for something else.
    fn placeholders(&self) -> impl Iterator<Item = &str> {
        let pastes = self.pastes.iter().map(|(stand_in, _)| stand_in.as_str());
        pastes.chain(self.images.iter().map(|(stand_in, _)| stand_in.as_str()))
    }

    /// Returns the message with what was pasted in its place.
    #[must_use]
    pub(crate) fn expanded_text(&self) -> String {
        let text = self.buffer.text();
        let pastes = self.pastes.iter();
        let found =
            pastes.filter_map(|(stand_in, pasted)| Some((text.find(stand_in)?, stand_in.len(), pasted)));
        let mut found: Vec<(usize, usize, &String)> = found.collect();
        found.sort_unstable();
        let (mut expanded, mut passed) = (String::new(), 0);
        for (start, length, pasted) in found {
            expanded.push_str(text.get(passed..start).unwrap_or_default());
            expanded.push_str(pasted);
            passed = start + length;
        }
        expanded.push_str(text.get(passed..).unwrap_or_default());
        expanded
    }

    /// Adds a message to the history, once.
    pub(crate) fn add_to_history(&mut self, message: &str) {
        if !message.trim().is_empty() && self.history.last().is_none_or(|last| last != message) {
            self.history.push(message.to_owned());
        }
    }

    /// Handles a key. `width` is that of the rows, for keys that go to another row.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, width: usize) -> ComposerEffect {
        if self.search.is_some() {
            return self.handle_search_key(key, width);
        }
        if let Some(vi) = &mut self.vi {
            match vi.handle_key(key, &mut self.buffer) {
                ViEffect::Passed => {}
                ViEffect::Changed => return ComposerEffect::Changed,
                ViEffect::Row(KeyCode::Up) => return self.go_up(width),
                ViEffect::Row(_) => return self.go_down(width),
            }
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.buffer.insert("\n"),
            KeyCode::Enter if self.buffer.text_before_cursor().ends_with('\\') => {
                let start = self.buffer.cursor() - 1;
                self.buffer.replace_before(start, "\n");
            }
            KeyCode::Enter => return self.submit(),
            KeyCode::Char(letter) if control => return self.handle_control(letter, width),
            KeyCode::Char(letter) if alt => match letter {
                'b' => self.buffer.move_by(Motion::WordLeft),
                'f' => self.buffer.move_by(Motion::WordRight),
                'd' => self.buffer.delete(Motion::WordRight),
                _ => return ComposerEffect::Ignored,
            },
            KeyCode::Char(letter) => {
                self.recalled = None;
                self.buffer.insert(letter.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace if control || alt => self.buffer.delete(Motion::WordLeft),
            KeyCode::Backspace => self.delete_left(),
            KeyCode::Delete if control => self.buffer.delete(Motion::WordRight),
            KeyCode::Delete => self.buffer.delete(Motion::Right),
            KeyCode::Left if control || alt => self.buffer.move_by(Motion::WordLeft),
            KeyCode::Right if control || alt => self.buffer.move_by(Motion::WordRight),
            KeyCode::Left => self.buffer.move_by(Motion::Left),
            KeyCode::Right => self.buffer.move_by(Motion::Right),
            KeyCode::Home => self.buffer.move_by(if control { Motion::Start } else { Motion::LineStart }),
            KeyCode::End => self.buffer.move_by(if control { Motion::End } else { Motion::LineEnd }),
            KeyCode::Up => return self.go_up(width),
            KeyCode::Down => return self.go_down(width),
            _ => return ComposerEffect::Ignored,
        }
        ComposerEffect::Changed
    }

    fn handle_control(&mut self, letter: char, width: usize) -> ComposerEffect {
        match letter {
            'a' => self.buffer.move_by(Motion::LineStart),
            'e' => self.buffer.move_by(Motion::LineEnd),
            'b' => self.buffer.move_by(Motion::Left),
            'f' => self.buffer.move_by(Motion::Right),
            'd' => self.buffer.delete(Motion::Right),
            'h' => self.delete_left(),
            'k' => self.buffer.delete(Motion::LineEnd),
            'u' => self.buffer.delete(Motion::LineStart),
            'w' => self.buffer.delete(Motion::WordLeft),
            'y' => self.buffer.yank(),
            'j' => self.buffer.insert("\n"),
            '_' | '7' | '/' => self.buffer.undo(),
            'p' => return self.go_up(width),
            'n' => return self.go_down(width),
            'r' => {
                let before = self.buffer.text().to_owned();
                self.search = Some(HistorySearch { before, ..HistorySearch::default() });
            }
            _ => return ComposerEffect::Ignored,
        }
        ComposerEffect::Changed
    }

    /// Deletes the character before the cursor, or the whole of a folded paste.
    fn delete_left(&mut self) {
        let folded =
            self.placeholders().find(|stand_in| self.buffer.text_before_cursor().ends_with(stand_in));
        match folded.map(|stand_in| self.buffer.cursor() - stand_in.len()) {
            Some(start) => self.buffer.replace_before(start, ""),
            None => self.buffer.delete(Motion::Left),
        }
    }

    fn submit(&mut self) -> ComposerEffect {
        if self.buffer.is_blank() {
            return ComposerEffect::Ignored;
        }
        let message = self.expanded_text();
        self.buffer.take_text();
        self.pastes.clear();
        self.recalled = None;
        if let Some(vi) = &mut self.vi {
            vi.reset();
        }
        self.add_to_history(&message);
        ComposerEffect::Submitted(message)
    }

    fn go_up(&mut self, width: usize) -> ComposerEffect {
        let (rows, (row, column)) = self.wrap_rows(width);
        if row > 0 {
            self.go_to_row(&rows, row - 1, column);
            return ComposerEffect::Changed;
        }
        let place = self.recalled.map_or(0, |place| place + 1);
        let Some(earlier) = self.history.iter().rev().nth(place).cloned() else {
            return ComposerEffect::Ignored;
        };
        if self.recalled.is_none() {
            self.draft = self.buffer.text().to_owned();
        }
        self.recalled = Some(place);
        self.buffer.set_text(earlier);
        ComposerEffect::Changed
    }

    fn go_down(&mut self, width: usize) -> ComposerEffect {
        let (rows, (row, column)) = self.wrap_rows(width);
        if row + 1 < rows.len() {
            self.go_to_row(&rows, row + 1, column);
            return ComposerEffect::Changed;
        }
        let Some(place) = self.recalled else { return ComposerEffect::Ignored };
        self.recalled = place.checked_sub(1);
        let later = self.recalled.and_then(|place| self.history.iter().rev().nth(place).cloned());
        let text = later.unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.buffer.set_text(text);
        ComposerEffect::Changed
    }

    fn go_to_row(&mut self, rows: &[(usize, String)], row: usize, column: usize) {
        let Some((start, text)) = rows.get(row) else { return };
        let (mut at, mut passed) = (*start, 0);
        for character in text.graphemes(true) {
            passed += grapheme_width(character);
            if passed > column {
                break;
            }
            at += character.len();
        }
        // The end of a row that is wrapped is the beginning of the next one.
        let is_next = rows.get(row + 1).is_some_and(|(next, _)| *next == at);
        let last = text.graphemes(true).next_back().map_or(0, str::len);
        self.buffer.move_to(if is_next { at - last } else { at });
    }

    fn handle_search_key(&mut self, key: KeyEvent, width: usize) -> ComposerEffect {
        let Some(search) = &mut self.search else { return ComposerEffect::Ignored };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => search.skipped += 1,
            KeyCode::Char('g' | 'c') if control => return self.end_search(false),
            KeyCode::Esc => return self.end_search(false),
            KeyCode::Backspace => {
                search.query.pop();
                search.skipped = 0;
            }
            KeyCode::Char(letter) if !control => {
                search.query.push(letter);
                search.skipped = 0;
            }
            _ => {
                self.end_search(true);
                return match key.code {
                    KeyCode::Tab => ComposerEffect::Changed,
                    _ => self.handle_key(key, width),
                };
            }
        }
        self.show_match();
        ComposerEffect::Changed
    }

    fn end_search(&mut self, is_taken: bool) -> ComposerEffect {
        if let Some(search) = self.search.take().filter(|_| !is_taken) {
            self.buffer.set_text(search.before);
        }
        ComposerEffect::Changed
    }

    fn show_match(&mut self) {
        let Some(search) = &mut self.search else { return };
        let query = search.query.to_lowercase();
        let mut matches = self.history.iter().rev().filter(|text| text.to_lowercase().contains(&query));
        match matches.nth(search.skipped) {
            Some(found) if !query.is_empty() => self.buffer.set_text(found.clone()),
            // The oldest match stays.
            _ => search.skipped = search.skipped.saturating_sub(1),
        }
    }
}

impl Composer {
    /// Renders the text within a width, and at most `max_rows` rows around the cursor.
    #[must_use]
    pub(crate) fn render(&self, width: usize, max_rows: usize, hint: &str) -> ComposerRows {
        let (rows, (row, column)) = self.wrap_rows(width);
        if self.buffer.text().is_empty() && self.search.is_none() {
            let line = StyledLine::new(Style::Accent, PROMPT).with(Style::Dim, hint);
            return ComposerRows { rows: vec![line], cursor: (0, PROMPT_COLUMNS) };
        }
        let max_rows = max_rows.max(1);
        let first = row.saturating_sub(max_rows - 1).min(rows.len().saturating_sub(max_rows));
        let prompt = if self.vi.is_some_and(ViKeys::is_normal) { NORMAL_PROMPT } else { PROMPT };
        let draw = |(place, (_, text)): (usize, &(usize, String))| {
            let mark = if place == 0 { prompt } else { "  " };
            self.style_row(StyledLine::new(Style::Accent, mark), text)
        };
        let mut shown: Vec<StyledLine> =
            rows.iter().enumerate().skip(first).take(max_rows).map(draw).collect();
        if let Some(search) = &self.search {
            let text = format!("  search the history: {}", search.query);
            shown.push(StyledLine::new(Style::Dim, text));
        }
        ComposerRows {
            rows: shown,
            cursor: (row - first, (PROMPT_COLUMNS + column).min(width.saturating_sub(1))),
        }
    }

    /// Marks what stands for folded pastes and images.
    fn style_row(&self, mut line: StyledLine, text: &str) -> StyledLine {
        let mut rest = text;
        while let Some((at, length)) =
            self.placeholders().filter_map(|stand_in| Some((rest.find(stand_in)?, stand_in.len()))).min()
        {
            let (before, from) = rest.split_at(at);
            let (stand_in, behind) = from.split_at(length);
            line.push(Style::Plain, before);
            line.push(Style::Accent, stand_in);
            rest = behind;
        }
        line.push(Style::Plain, rest);
        line
    }

    /// Breaks the text into rows between words, each with the byte position of its start, and finds
    /// the cursor.
    fn wrap_rows(&self, width: usize) -> (Vec<(usize, String)>, (usize, usize)) {
        // A column stays free for the cursor behind the last character, or a space between rows.
        let room = width.saturating_sub(PROMPT_COLUMNS + 1).max(1);
        let text = self.buffer.text();
        let mut rows: Vec<(usize, String)> = Vec::new();
        let (mut start, mut column, mut word) = (0, 0, 0);
        let mut end_row = |start: &mut usize, end: usize, next: usize| {
            rows.push((*start, text.get(*start..end).unwrap_or_default().to_owned()));
            *start = next;
        };
        for (at, character) in text.grapheme_indices(true) {
            let columns = grapheme_width(character);
            if character.starts_with(['\n', '\r']) {
                end_row(&mut start, at, at + character.len());
                (column, word) = (0, start);
                continue;
            }
            if column + columns > room && at > start {
                if character == " " {
                    end_row(&mut start, at + 1, at + 1);
                    (column, word) = (0, start);
                    continue;
                }
                let end = if word > start { word } else { at };
                end_row(&mut start, end, end);
                column = text.get(end..at).unwrap_or_default().graphemes(true).map(grapheme_width).sum();
                word = start;
            }
            column += columns;
            if character == " " {
                word = at + 1;
            }
        }
        end_row(&mut start, text.len(), text.len());
        let cursor = self.buffer.cursor();
        let row = rows.iter().rposition(|(start, _)| *start <= cursor).unwrap_or_default();
        let before = rows.get(row).and_then(|(start, _)| text.get(*start..cursor)).unwrap_or_default();
        let column = before.graphemes(true).map(grapheme_width).sum();
        (rows, (row, column))
    }
}

/// Returns the columns of a character as people see it.
fn grapheme_width(character: &str) -> usize {
    // Terminals draw joined pictures in the columns of the first, or of all: two is what most do.
    let mut widths = character.chars().map(char_width);
    match character.contains('\u{200d}') {
        true => widths.next().unwrap_or_default(),
        false => widths.sum::<usize>().min(2).max(usize::from(character == "\t") * 4),
    }
}

/// Removes control characters from pasted text, and makes all line ends the same.
pub(crate) fn clean_paste(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    text.chars().filter(|character| *character == '\n' || !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) -> ComposerEffect {
        composer.handle_key(KeyEvent::new(code, modifiers), 20)
    }

    fn write(composer: &mut Composer, text: &str) {
        text.chars().for_each(|letter| {
            press(composer, KeyCode::Char(letter), KeyModifiers::NONE);
        });
    }

    fn rows(composer: &Composer) -> Vec<String> {
        composer.render(20, 9, "").rows.iter().map(StyledLine::to_text).collect()
    }

    #[test]
    fn a_message_is_wrapped_between_words() {
        let mut composer = Composer::default();
        write(&mut composer, "one two three four five");
        assert_eq!(rows(&composer), ["› one two three ", "  four five"]);
        assert_eq!(composer.render(20, 9, "").cursor, (1, 11));
        write(&mut composer, " andaverylongwordthatisbroken");
        assert_eq!(
            rows(&composer),
            ["› one two three ", "  four five ", "  andaverylongwordt", "  hatisbroken"]
        );
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        write(&mut composer, "X");
        assert_eq!(rows(&composer)[1], "  four fiveX ", "the column is kept");
    }

    #[test]
    fn lines_are_ended_by_more_than_one_key() {
        let mut composer = Composer::default();
        write(&mut composer, "a");
        press(&mut composer, KeyCode::Enter, KeyModifiers::ALT);
        write(&mut composer, "b");
        press(&mut composer, KeyCode::Char('j'), KeyModifiers::CONTROL);
        write(&mut composer, "c\\");
        press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        write(&mut composer, "d");
        let sent = press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(sent, ComposerEffect::Submitted("a\nb\nc\nd".to_owned()));
        assert!(composer.is_blank());
    }

    #[test]
    fn a_large_paste_is_folded_and_sent_whole() {
        let mut composer = Composer::default();
        let pasted: String = (0..50).map(|line| format!("line {line}\r\n")).collect();
        write(&mut composer, "see ");
        composer.paste(&pasted);
        composer.paste("\x1b[31msmall");
        assert_eq!(composer.text(), "see [paste 1: 50 lines][31msmall");
        let sent = press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        let ComposerEffect::Submitted(sent) = sent else { panic!("{sent:?}") };
        assert!(sent.starts_with("see line 0\nline 1\n") && sent.ends_with("line 49\n[31msmall"), "{sent}");
        composer.paste(&pasted);
        press(&mut composer, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(composer.text(), "", "it goes as one");
    }

    #[test]
    fn a_paste_with_the_words_of_another_one_is_sent_as_it_is() {
        let mut composer = Composer::default();
        let [first, second] = ["see [paste 2: 20 lines]\n", "other\n"].map(|line| line.repeat(20));
        composer.paste(&first);
        composer.paste(&second);
        assert_eq!(composer.text(), "[paste 1: 20 lines][paste 2: 20 lines]");
        assert_eq!(composer.expanded_text(), format!("{first}{second}"));
    }

    #[test]
    fn a_folded_paste_that_was_cleared_comes_back_whole() {
        let mut composer = Composer::default();
        let pasted: String = (0..50).map(|line| format!("line {line}\n")).collect();
        composer.paste(&pasted);
        composer.clear();
        composer.paste(&pasted.replace("line", "row"));
        press(&mut composer, KeyCode::Char('_'), KeyModifiers::CONTROL);
        press(&mut composer, KeyCode::Char('_'), KeyModifiers::CONTROL);
        let sent = press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(sent, ComposerEffect::Submitted(pasted));
    }

    #[test]
    fn no_image_of_the_message_is_forgotten() {
        let mut composer = Composer::default();
        let image =
            |number: usize| ImageData { media_type: "image/png".to_owned(), data: number.to_string() };
        for number in 0..MAX_IMAGES {
            composer.insert_image(&format!("[image {number}.png]"), image(number));
        }
        press(&mut composer, KeyCode::Enter, KeyModifiers::NONE);
        let all = MAX_IMAGES + 3;
        (0..all).for_each(|number| composer.insert_image(&format!("[image new{number}.png]"), image(number)));
        assert_eq!(composer.images_in(composer.text()).len(), all);
        assert_eq!(composer.images.len(), all, "those of the earlier message are");
    }

    #[test]
    fn earlier_messages_come_back() {
        let mut composer = Composer::new(vec!["fix the parser".to_owned(), "fix the lexer".to_owned()]);
        write(&mut composer, "draft");
        let up = |composer: &mut Composer| press(composer, KeyCode::Up, KeyModifiers::NONE);
        up(&mut composer);
        assert_eq!(composer.text(), "fix the lexer");
        up(&mut composer);
        up(&mut composer);
        assert_eq!(composer.text(), "fix the parser", "there is no earlier one");
        press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
        press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(composer.text(), "draft");
        press(&mut composer, KeyCode::Char('r'), KeyModifiers::CONTROL);
        write(&mut composer, "fix");
        assert_eq!(composer.text(), "fix the lexer");
        press(&mut composer, KeyCode::Char('r'), KeyModifiers::CONTROL);
        assert_eq!(composer.text(), "fix the parser");
        press(&mut composer, KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(composer.text(), "draft");
    }
}
