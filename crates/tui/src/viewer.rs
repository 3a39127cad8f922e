//! A text in the alternate screen: scrolled, searched, its blocks opened and closed. Pure.

use std::collections::{BTreeSet, HashMap};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use journeyman_protocol::CallId;
use journeyman_terminal::markdown::MarkerDisplay;
use journeyman_terminal::wrap::cut_line;
use journeyman_terminal::{Style, StyledLine};

use crate::blocks::{Block, BlockEntry, Detail, Layout, render_entries, render_entry};
use crate::key_hints::key_hints;
use crate::screen::Size;

/// Rows that the viewer keeps for itself: the line of its keys.
const RESERVED_ROWS: usize = 1;

/// The result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewerEffect {
    /// The view is another, or the same.
    Stay,
    /// The person has seen enough.
    Close,
}

/// A search as it is typed, or as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ViewerSearch {
    query: String,
    is_typing: bool,
}

/// The rendered rows of the blocks, for one width.
#[derive(Debug, Default)]
struct RenderedRows {
    width: usize,
    /// The rows of each block.
    blocks: Vec<Vec<StyledLine>>,
}

/// A view of blocks.
#[derive(Debug)]
pub(crate) struct Viewer {
    title: String,
    marks: MarkerDisplay,
    rendered: RenderedRows,
    /// Blocks that are shown whole.
    opened: BTreeSet<usize>,
    focus: Option<usize>,
    /// The first row that is shown; `None` follows the end.
    top: Option<usize>,
    search: Option<ViewerSearch>,
    /// The row of the search that was gone to by the newest key. It may be below the first one that
    /// is shown.
    found: Option<usize>,
    size: Size,
    /// The whole results of calls, as far as they are known.
    results: HashMap<CallId, String>,
}

impl Viewer {
    /// Makes a view that shows the end, as of a conversation, or the beginning.
    #[must_use]
    pub(crate) fn new(title: impl Into<String>, marks: MarkerDisplay, from_end: bool) -> Self {
        Self {
            title: title.into(),
            marks,
            rendered: RenderedRows::default(),
            opened: BTreeSet::new(),
            focus: None,
            top: (!from_end).then_some(0),
            search: None,
            found: None,
            size: Size { columns: 80, rows: 24 },
            results: HashMap::new(),
        }
    }

    /// Returns the rows for a terminal's size, and the cursor while words are typed.
    pub(crate) fn render(
        &mut self,
        entries: &[BlockEntry],
        size: Size,
    ) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        self.size = size;
        self.render_new_entries(entries);
        let room = size.rows.saturating_sub(RESERVED_ROWS).max(1);
        let all = self.row_count();
        let last_top = all.saturating_sub(room);
        let top = self.top.unwrap_or(last_top).min(last_top);
        self.top = self.top.map(|_| top);
        let query = self.search.as_ref().map(|search| search.query.to_lowercase()).unwrap_or_default();
        let mut rows: Vec<StyledLine> = Vec::with_capacity(size.rows);
        let mut at = 0;
        for (place, block) in self.rendered.blocks.iter().enumerate() {
            let first_text = block.iter().position(|row| !row.is_empty()).unwrap_or_default();
            for (number, row) in block.iter().enumerate() {
                if at >= top && rows.len() < room {
                    let is_focus = self.focus == Some(place) && number == first_text;
                    rows.push(if is_focus { select_row(row) } else { mark_matches(row, &query) });
                }
                at += 1;
            }
        }
        rows.resize(room, StyledLine::default());
        let percent = (top * 100).checked_div(last_top).unwrap_or(100);
        let place = if last_top == 0 { String::new() } else { format!("{percent}%") };
        let (line, cursor) = self.footer_line(&place, entries.iter().any(can_open));
        rows.push(line);
        (rows, cursor.map(|column| (room, column.min(size.columns.saturating_sub(1)))))
    }

    fn footer_line(&self, place: &str, has_blocks: bool) -> (StyledLine, Option<usize>) {
        match &self.search {
            Some(search) if search.is_typing => {
                let text = format!("/{}", search.query);
                let column = journeyman_terminal::wrap::text_width(&text);
                (cut_line(&StyledLine::new(Style::Plain, text), self.size.columns), Some(column))
            }
            _ => {
                let found = if self.search.is_some() { "n N next" } else { "" };
                let [block, all] =
                    if has_blocks { ["Tab, Enter open a block", "a opens all"] } else { ["", ""] };
                let hints = [&self.title, place, "q closes", found, "/ searches", block, all];
                (key_hints(&hints, self.size.columns), None)
            }
        }
    }

    fn render_new_entries(&mut self, entries: &[BlockEntry]) {
        let width = self.size.columns;
        if self.rendered.width != width || self.rendered.blocks.len() > entries.len() {
            self.rendered = RenderedRows { width, blocks: Vec::new() };
            self.found = None;
        }
        let short = Layout { width, marks: self.marks, detail: Detail::Folded };
        let layout = |place: usize| entries.get(place).map_or(short, |entry| self.layout(place, entry));
        let new = render_entries(entries, self.rendered.blocks.len(), layout);
        self.rendered.blocks.extend(new);
    }

    /// Sets the whole results of calls.
    pub(crate) fn set_results(&mut self, results: HashMap<CallId, String>) {
        self.results = results;
        if !self.opened.is_empty() {
            self.rendered.blocks.clear();
        }
    }

    /// Returns true if a block is opened whose result isn't known.
    #[must_use]
    pub(crate) fn needs_results(&self, entries: &[BlockEntry]) -> bool {
        let calls = self.opened.iter().filter_map(|place| match &entries.get(*place)?.block {
            Block::Call(call) => Some(&call.call),
            _ => None,
        });
        calls.into_iter().any(|call| !self.results.contains_key(call))
    }

    fn result_of(&self, entry: &BlockEntry) -> Option<&str> {
        match &entry.block {
            Block::Call(call) => self.results.get(&call.call).map(String::as_str),
            _ => None,
        }
    }

    fn layout(&self, place: usize, entry: &BlockEntry) -> Layout<'_> {
        let detail = match self.opened.contains(&place) {
            true => Detail::Whole(self.result_of(entry)),
            false => Detail::Folded,
        };
        Layout { width: self.size.columns, marks: self.marks, detail }
    }

    fn row_count(&self) -> usize {
        self.rendered.blocks.iter().map(Vec::len).sum()
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent, entries: &[BlockEntry]) -> ViewerEffect {
        if self.search.as_ref().is_some_and(|search| search.is_typing) {
            self.handle_search_key(key, entries);
            return ViewerEffect::Stay;
        }
        let page = self.size.rows.saturating_sub(RESERVED_ROWS + 2).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let found = self.found.take();
        match key.code {
            KeyCode::Char('t' | 'c') if control => return ViewerEffect::Close,
            KeyCode::Char('q') | KeyCode::Esc => return ViewerEffect::Close,
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1, true),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(1, false),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(page, true),
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll(page, false),
            KeyCode::Char('d') if control => self.scroll(page / 2, true),
            KeyCode::Char('u') if control => self.scroll(page / 2, false),
            KeyCode::Home | KeyCode::Char('g') => self.top = Some(0),
            KeyCode::End | KeyCode::Char('G') => self.top = None,
            KeyCode::Char('/') => {
                self.search = Some(ViewerSearch { is_typing: true, ..ViewerSearch::default() })
            }
            KeyCode::Char('n') => self.find_next(found, true),
            KeyCode::Char('N') => self.find_next(found, false),
            KeyCode::Tab => self.move_focus(entries, true),
            KeyCode::BackTab => self.move_focus(entries, false),
            KeyCode::Enter => self.toggle(entries),
            KeyCode::Char('a') => self.toggle_all(entries),
            _ => {}
        }
        ViewerEffect::Stay
    }

    /// Takes pasted words for the search that is typed, if one is.
    pub(crate) fn paste(&mut self, words: &str) {
        if let Some(search) = self.search.as_mut().filter(|search| search.is_typing) {
            search.query.push_str(words);
        }
    }

    fn handle_search_key(&mut self, key: KeyEvent, entries: &[BlockEntry]) {
        let Some(search) = &mut self.search else { return };
        match key.code {
            KeyCode::Esc => self.search = None,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.search = None,
            KeyCode::Enter => {
                search.is_typing = false;
                self.open_matches(entries);
                self.find_next(None, false);
            }
            KeyCode::Backspace => {
                search.query.pop();
            }
            KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                search.query.push(letter);
            }
            _ => {}
        }
    }

    fn current_top(&self) -> usize {
        let room = self.size.rows.saturating_sub(RESERVED_ROWS).max(1);
        self.top.unwrap_or_else(|| self.row_count().saturating_sub(room))
    }

    fn scroll(&mut self, rows: usize, down: bool) {
        let top = self.current_top();
        let last_top = self.row_count().saturating_sub(self.size.rows.saturating_sub(RESERVED_ROWS).max(1));
        let target = if down { top.saturating_add(rows) } else { top.saturating_sub(rows) };
        // At the end, the view follows what is added.
        self.top = (target < last_top || self.top == Some(0) && target == 0).then_some(target);
    }

    /// Goes from a row, or the first that is shown, to the next one with the words, or the one
    /// before; the search has no ends.
    fn find_next(&mut self, from: Option<usize>, forward: bool) {
        let Some(query) = self.search.as_ref().map(|search| search.query.to_lowercase()) else { return };
        let rows = self.rendered.blocks.iter().flatten();
        let matches: Vec<usize> = rows
            .enumerate()
            .filter(|(_, row)| !query.is_empty() && row.to_text().to_lowercase().contains(&query))
            .map(|(place, _)| place)
            .collect();
        let from = from.unwrap_or_else(|| self.current_top());
        let found = match forward {
            true => matches.iter().find(|place| **place > from).or(matches.first()),
            false => matches.iter().rev().find(|place| **place < from).or(matches.last()),
        };
        if let Some(place) = found {
            (self.top, self.found) = (Some(*place), Some(*place));
        }
    }

    fn move_focus(&mut self, entries: &[BlockEntry], forward: bool) {
        let can_open = |place: &usize| entries.get(*place).is_some_and(can_open);
        let next = match (self.focus, forward) {
            (Some(focus), true) => (focus + 1..entries.len()).find(can_open),
            (Some(focus), false) => (0..focus).rev().find(can_open),
            (None, true) => (self.block_at(self.current_top())..entries.len()).find(can_open),
            (None, false) => (0..entries.len()).rev().find(can_open),
        };
        if next.is_some() {
            self.focus = next;
            self.scroll_to_focus();
        }
    }

    fn block_at(&self, row: usize) -> usize {
        let mut end = 0;
        let position = self.rendered.blocks.iter().position(|block| {
            end += block.len();
            end > row
        });
        position.unwrap_or_default()
    }

    fn scroll_to_focus(&mut self) {
        let Some(focus) = self.focus else { return };
        let start: usize = self.rendered.blocks.iter().take(focus).map(Vec::len).sum();
        let room = self.size.rows.saturating_sub(RESERVED_ROWS).max(1);
        let top = self.current_top();
        if start < top || start >= top + room.saturating_sub(2) {
            self.top = Some(start);
        }
    }

    fn toggle(&mut self, entries: &[BlockEntry]) {
        let Some(focus) = self.focus else { return };
        if !self.opened.remove(&focus) {
            self.opened.insert(focus);
        }
        self.rerender_entry(entries, focus);
        self.scroll_to_focus();
    }

    fn rerender_entry(&mut self, entries: &[BlockEntry], place: usize) {
        let Some(entry) = entries.get(place) else { return };
        let rows = render_entry(entry, self.layout(place, entry));
        if let Some(block) = self.rendered.blocks.get_mut(place) {
            *block = rows;
        }
    }

    /// Opens the calls whose results have the words of the search.
    fn open_matches(&mut self, entries: &[BlockEntry]) {
        let Some(query) = self.search.as_ref().map(|search| search.query.to_lowercase()) else { return };
        let has_words = |entry: &BlockEntry| {
            !query.is_empty()
                && self.result_of(entry).is_some_and(|text| text.to_lowercase().contains(&query))
        };
        let found: Vec<usize> = entries
            .iter()
            .enumerate()
            .filter(|(place, entry)| !self.opened.contains(place) && has_words(entry))
            .map(|(place, _)| place)
            .collect();
        self.opened.extend(&found);
        found.into_iter().for_each(|place| self.rerender_entry(entries, place));
    }

    fn toggle_all(&mut self, entries: &[BlockEntry]) {
        self.opened = if self.opened.is_empty() { (0..entries.len()).collect() } else { BTreeSet::new() };
        self.rendered.blocks.clear();
        self.render_new_entries(entries);
    }
}

/// Returns true for a block that may have more than the conversation shows.
fn can_open(entry: &BlockEntry) -> bool {
    matches!(entry.block, Block::Call(_) | Block::Thinking(_) | Block::Message(_) | Block::Report(_))
}

fn select_row(row: &StyledLine) -> StyledLine {
    StyledLine::new(Style::Selected, row.to_text())
}

/// Marks the places of a row that have the words of a search.
fn mark_matches(row: &StyledLine, query: &str) -> StyledLine {
    let text = row.to_text();
    let lower = text.to_lowercase();
    if query.is_empty() || !lower.contains(query) || lower.len() != text.len() {
        return row.clone();
    }
    let matches: Vec<(usize, usize)> =
        lower.match_indices(query).map(|(at, hit)| (at, at + hit.len())).collect();
    let mut marked = StyledLine::default();
    let mut at = 0;
    for (style, span) in &row.spans {
        for character in span.chars() {
            let is_match = matches.iter().any(|(start, end)| (*start..*end).contains(&at));
            let style = if is_match { Style::Selected } else { *style };
            marked.push(style, character.encode_utf8(&mut [0; 4]));
            at += character.len_utf8();
        }
    }
    marked
}
