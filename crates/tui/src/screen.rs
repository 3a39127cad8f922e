//! The live area at the end of the terminal's text, and what goes into the scrollback above it.
//!
//! A frame has rows that are finished and rows that live on. Both are drawn over the live rows of
//! the frame before, by difference; then the finished ones are given up: the terminal moves them
//! into its scrollback as the text grows. So each finished row is written once, and costs nothing
//! if it stood in the live area already. Positions are relative to the cursor: no absolute row is
//! known or asked for, so that nothing is wrong after the terminal has moved its text.

use std::rc::Rc;

use journeyman_terminal::wrap::{char_width, clean_line, cut_line, line_width};
use journeyman_terminal::{Style, StyledLine};

use crate::hyperlinks::{Linker, RowLinks, paint_row};
use crate::theme::Theme;

/// Begins a synchronized update, which terminals that support it show at once.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
/// Ends a synchronized update.
const END_UPDATE: &str = "\x1b[?2026l";
/// Erases from the cursor to the end of the line.
const ERASE_LINE: &str = "\x1b[K";
/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// The rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Characters in a row.
    pub(crate) columns: usize,
    /// Rows.
    pub(crate) rows: usize,
}

/// The way in which a terminal treats lines that no longer fit when it gets narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reflow {
    /// Their end goes into further rows.
    Wraps,
    /// Their end is cut off.
    Cuts,
}

impl Reflow {
    /// Returns the way of the terminal that the environment names. The console of Linux, xterm and
    /// GNU screen cut; others that are in use today wrap.
    #[must_use]
    pub(crate) fn from_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let cuts = variable("TERM") == Some("linux") || is_set("XTERM_VERSION") || is_set("STY");
        if cuts && !is_set("TMUX") { Self::Cuts } else { Self::Wraps }
    }
}

/// The rows of one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Rows that are finished: they are above the live area, and never drawn again.
    pub(crate) finished: Vec<StyledLine>,
    /// Rows of the live area; at least one.
    pub(crate) live: Vec<StyledLine>,
    /// The row of the live area and the column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// The live area as it stands on the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    theme: Theme,
    links: Option<Rc<Linker>>,
    reflow: Reflow,
    size: Size,
    /// The rows, from the top of the live area.
    rows: Vec<StyledLine>,
    /// The row of the live area in which the cursor stands, and its column.
    cursor: (usize, usize),
}

impl Screen {
    /// Makes the screen of a terminal whose cursor stands at the beginning of an empty row.
    #[must_use]
    pub(crate) fn new(theme: Theme, reflow: Reflow, size: Size) -> Self {
        Self { theme, links: None, reflow, size, rows: Vec::new(), cursor: (0, 0) }
    }

    /// Returns the size of the terminal.
    #[must_use]
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Draws a frame. Returns the bytes for the terminal, none if nothing is different.
    #[must_use]
    pub(crate) fn draw(&mut self, frame: &Frame) -> String {
        let cut = |row: &StyledLine| cut_line(&clean_line(row), self.size.columns);
        let mut finished: Vec<StyledLine> = frame.finished.iter().map(cut).collect();
        let mut live: Vec<StyledLine> = frame.live.iter().map(cut).collect();
        // The rows above the terminal's first can't be reached: no frame may have more.
        let hidden = live.len().saturating_sub(self.size.rows.max(1));
        live.drain(..hidden);
        let cursor =
            (frame.cursor.0.saturating_sub(hidden), frame.cursor.1.min(self.size.columns.saturating_sub(1)));
        let room = self.size.rows.saturating_sub(live.len().max(self.rows.len())).max(1);
        let mut out = Pen {
            out: BEGIN_UPDATE.to_owned(),
            row: self.cursor.0,
            theme: self.theme,
            links: self.links.clone(),
        };
        if self.size.rows < 2 {
            // There is no row above the live one: each is written there and goes up by a line feed.
            for row in std::mem::take(&mut finished) {
                self.draw_fitting_rows(Vec::new(), &[row], (0, 0), &mut out);
                out.out.push_str("\r\n");
                self.rows = vec![StyledLine::default()];
            }
        }
        while finished.len() > room {
            let rest = finished.split_off(room);
            self.draw_fitting_rows(finished, &live, cursor, &mut out);
            finished = rest;
        }
        let is_changed =
            self.draw_fitting_rows(finished, &live, cursor, &mut out) || out.out.len() > BEGIN_UPDATE.len();
        if !is_changed {
            return String::new();
        }
        out.out.push_str(END_UPDATE);
        out.out
    }

    /// Draws as many finished rows as there is room for, and the live ones. Returns true if
    /// anything was different.
    fn draw_fitting_rows(
        &mut self,
        finished: Vec<StyledLine>,
        live: &[StyledLine],
        cursor: (usize, usize),
        out: &mut Pen,
    ) -> bool {
        let count = finished.len();
        let rows: Vec<StyledLine> = finished.into_iter().chain(live.iter().cloned()).collect();
        let cursor = (count + cursor.0, cursor.1);
        let is_changed = rows != self.rows || cursor != self.cursor;
        if is_changed {
            let moved = self.shift_rows(&rows, out);
            for (place, row) in rows.iter().enumerate() {
                match moved.get(place) {
                    Some(before) if before == row => {}
                    Some(before) => out.replace_row(place, before, row),
                    None => out.replace_row(place, &StyledLine::default(), row),
                }
            }
            out.move_to(cursor.0, cursor.1);
            (self.rows, self.cursor) = (rows, cursor);
        }
        self.drop_top_rows(count);
        out.row = self.cursor.0;
        is_changed
    }

    /// Makes as many rows as the frame has, by inserting or deleting some above those at the end
    /// that stay the same. Returns the rows that are on the terminal then.
    fn shift_rows(&self, rows: &[StyledLine], out: &mut Pen) -> Vec<StyledLine> {
        let mut moved = self.rows.clone();
        if moved.is_empty() {
            moved.push(StyledLine::default());
        }
        let same_end = rows.iter().rev().zip(moved.iter().rev()).take_while(|(new, old)| new == old).count();
        let kept = moved.len() - same_end;
        if let Some(more) = rows.len().checked_sub(moved.len()).filter(|more| *more > 0) {
            out.move_to(moved.len() - 1, 0);
            for _ in 0..more {
                out.out.push_str("\r\n");
            }
            out.row += more;
            if same_end > 0 {
                out.move_to(kept, 0);
                out.out.push_str(&format!("\x1b[{more}L"));
            }
            moved.splice(kept..kept, std::iter::repeat_n(StyledLine::default(), more));
        } else if let Some(fewer) = moved.len().checked_sub(rows.len()).filter(|fewer| *fewer > 0) {
            let first = rows.len() - same_end;
            out.move_to(first, 0);
            if same_end > 0 {
                out.out.push_str(&format!("\x1b[{fewer}M"));
            } else {
                out.out.push_str(ERASE_BELOW);
            }
            moved.drain(first..first + fewer);
        }
        moved
    }

    /// Forgets rows at the top: they are finished.
    fn drop_top_rows(&mut self, finished: usize) {
        self.rows.drain(..finished.min(self.rows.len()));
        self.cursor.0 = self.cursor.0.saturating_sub(finished);
    }

    /// Sets another size. Returns the bytes that erase the live area as the terminal has it now, so
    /// that no rest of it stays.
    #[must_use]
    pub(crate) fn resize(&mut self, size: Size) -> String {
        let before = std::mem::replace(&mut self.size, size);
        if self.rows.is_empty() {
            return String::new();
        }
        let narrower = size.columns < before.columns && self.reflow == Reflow::Wraps;
        let rows_before = |row: &StyledLine, column| wrapped_row_of(row, column, size.columns);
        let (mut above, mut within) = (self.cursor.0, 0);
        if narrower {
            let whole = self.rows.iter().take(self.cursor.0);
            above += whole.map(|row| rows_before(row, line_width(row).saturating_sub(1))).sum::<usize>();
            within = self.rows.get(self.cursor.0).map_or(0, |row| rows_before(row, self.cursor.1));
        }
        // A terminal keeps the cursor's row on the screen: no more rows than that are above it.
        let up = (above + within).min(size.rows.saturating_sub(1));
        self.clear_from(up)
    }

    /// Erases the live area. Returns the bytes for that.
    #[must_use]
    pub(crate) fn clear(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let up = self.cursor.0;
        self.clear_from(up)
    }

    fn clear_from(&mut self, up: usize) -> String {
        (self.rows, self.cursor) = (Vec::new(), (0, 0));
        let up = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
        format!("\r{up}{ERASE_BELOW}")
    }

    /// Sets other colours, for what is drawn from here on.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
    }

    /// Makes paths links, in what is drawn from here on.
    pub(crate) fn set_links(&mut self, links: Rc<Linker>) {
        self.links = Some(links);
    }

    /// Forgets the live area, which something else has erased or left above.
    pub(crate) fn forget(&mut self) {
        (self.rows, self.cursor) = (Vec::new(), (0, 0));
    }
}

/// Collects bytes for the terminal, and tracks the row of the cursor.
struct Pen {
    out: String,
    row: usize,
    theme: Theme,
    links: Option<Rc<Linker>>,
}

impl Pen {
    fn move_to(&mut self, row: usize, column: usize) {
        if row < self.row {
            self.out.push_str(&format!("\x1b[{}A", self.row - row));
        } else if row > self.row {
            self.out.push_str(&format!("\x1b[{}B", row - self.row));
        }
        self.row = row;
        match column {
            0 => self.out.push('\r'),
            _ => self.out.push_str(&format!("\x1b[{}G", column + 1)),
        }
    }

    /// Writes a row over another one, from the first difference on.
    fn replace_row(&mut self, place: usize, before: &StyledLine, row: &StyledLine) {
        let is_certain = has_certain_width(before) && has_certain_width(row);
        // A row that gets shorter is erased whole: some terminals remember the length of a row
        // whose end was erased, and wrap its emptiness when they get narrower.
        let is_fresh = !is_certain || line_width(before) > line_width(row);
        let find = |row| self.links.as_ref().map(|linker| linker.find(row)).unwrap_or_default();
        let links = find(row);
        let (column, from) =
            if is_fresh { (0, 0) } else { first_difference((before, &find(before)), (row, &links)) };
        self.move_to(place, column);
        if is_fresh && !before.is_empty() {
            self.out.push_str(ERASE_LINE);
        }
        paint_row(self.theme, row, from, &links, &mut self.out);
    }
}

/// Returns the number of rows above a column of a row that a terminal has wrapped at a width. A
/// character of two columns isn't split.
fn wrapped_row_of(row: &StyledLine, column: usize, width: usize) -> usize {
    let (mut rows, mut passed, mut at) = (0, 0, 0);
    for (_, character) in styled_chars(row) {
        let columns = char_width(character);
        if at + columns > width {
            (rows, at) = (rows + 1, 0);
        }
        if passed + columns > column {
            return rows;
        }
        (passed, at) = (passed + columns, at + columns);
    }
    // Behind the text there is a cell for each column.
    rows + (at + column - passed) / width.max(1)
}

/// Returns true if all terminals agree about the columns of a row. They don't about characters
/// that are joined or changed by others.
fn has_certain_width(row: &StyledLine) -> bool {
    styled_chars(row).all(|(_, character)| {
        char_width(character) > 0
            && !matches!(character, '\u{fe0f}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
    })
}

/// Returns the column at which two rows begin to differ in text or links, and the byte of the
/// second one's text.
fn first_difference(
    (before, old_links): (&StyledLine, &RowLinks),
    (row, links): (&StyledLine, &RowLinks),
) -> (usize, usize) {
    let (mut old, mut column, mut at) = (styled_chars(before), 0, 0);
    for (style, character) in styled_chars(row) {
        if old.next() != Some((style, character)) || old_links.target_at(at) != links.target_at(at) {
            break;
        }
        column += char_width(character);
        at += character.len_utf8();
    }
    (column, at)
}

fn styled_chars(line: &StyledLine) -> impl Iterator<Item = (Style, char)> + '_ {
    line.spans.iter().flat_map(|(style, text)| text.chars().map(|character| (*style, character)))
}
