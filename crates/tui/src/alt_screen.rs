//! The alternate screen: rows that fill the terminal, drawn by difference at known places.

use std::rc::Rc;

use journeyman_terminal::StyledLine;
use journeyman_terminal::wrap::{clean_line, cut_line};

use crate::hyperlinks::{Linker, paint_row};
use crate::screen::Size;
use crate::theme::Theme;

/// Enters the alternate screen; the terminal keeps what was on the other one.
const ENTER_SEQUENCE: &str = "\x1b[?1049h\x1b[2J\x1b[?25l";
/// Leaves it.
const LEAVE_SEQUENCE: &str = "\x1b[?25h\x1b[?1049l";

/// The alternate screen of a terminal.
#[derive(Debug)]
pub(crate) struct AltScreen {
    theme: Theme,
    links: Option<Rc<Linker>>,
    size: Size,
    rows: Vec<Option<StyledLine>>,
}

impl AltScreen {
    /// Makes the screen, and the bytes that enter it.
    #[must_use]
    pub(crate) fn enter(theme: Theme, links: Option<Rc<Linker>>, size: Size) -> (Self, String) {
        (
            Self { theme, links, size, rows: vec![Some(StyledLine::default()); size.rows] },
            ENTER_SEQUENCE.to_owned(),
        )
    }

    /// Returns the bytes that leave the screen.
    #[must_use]
    pub(crate) fn leave(self) -> String {
        LEAVE_SEQUENCE.to_owned()
    }

    /// Returns the size of the terminal.
    #[must_use]
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Sets other colours. Everything is drawn anew.
    pub(crate) fn set_theme(&mut self, theme: Theme) {
        (self.theme, self.rows) = (theme, vec![None; self.size.rows]);
    }

    /// Sets another size. Everything is drawn anew.
    pub(crate) fn resize(&mut self, size: Size) {
        (self.size, self.rows) = (size, vec![None; size.rows]);
    }

    /// Draws rows from the top; the rest is empty. Returns the bytes, none if nothing is different.
    /// The cursor is shown at its row and column, or not at all.
    #[must_use]
    pub(crate) fn draw(&mut self, rows: &[StyledLine], cursor: Option<(usize, usize)>) -> String {
        let mut out = String::new();
        for (place, before) in self.rows.iter_mut().enumerate() {
            let row = rows.get(place).map(clean_line).unwrap_or_default();
            let row = cut_line(&row, self.size.columns);
            if before.as_ref() == Some(&row) {
                continue;
            }
            out.push_str(&format!("\x1b[{};1H\x1b[2K", place + 1));
            let links = self.links.as_ref().map(|linker| linker.find(&row)).unwrap_or_default();
            paint_row(self.theme, &row, 0, &links, &mut out);
            *before = Some(row);
        }
        if out.is_empty() && cursor.is_none() {
            return out;
        }
        let shown = match cursor {
            Some((row, column)) => format!("\x1b[{};{}H\x1b[?25h", row + 1, column + 1),
            None => "\x1b[?25l".to_owned(),
        };
        format!("\x1b[?2026h{out}{shown}\x1b[?2026l")
    }
}
