//! Tables, their columns aligned within a width.

use pulldown_cmark::Alignment;

use crate::wrap::{line_width, wrap_line};
use crate::{Style, StyledLine};

/// The columns between two cells.
const SEPARATOR: &str = " │ ";
const SEPARATOR_COLUMNS: usize = 3;
/// Minimum columns of a cell that had to be narrowed.
const MIN_CELL_COLUMNS: usize = 3;

/// A table that is read row by row; the first is the header.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<StyledLine>>,
}

impl Table {
    /// Formats the table in lines of at most `width` columns.
    pub(super) fn format(&self, width: usize) -> Vec<StyledLine> {
        let Some(widths) = self.column_widths(width) else { return self.format_as_list(width) };
        let mut lines = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            lines.extend(self.format_row(row, &widths));
            if place == 0 {
                let rules: Vec<String> = widths.iter().map(|columns| "─".repeat(*columns)).collect();
                lines.push(StyledLine::new(Style::Dim, rules.join("─┼─")));
            }
        }
        lines
    }

    /// Returns each column's width: as wide as its widest cell, or narrower if the table wouldn't
    /// fit. Returns `None` for more columns than fit.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let mut widths = vec![1; self.rows.iter().map(Vec::len).max()?];
        for row in &self.rows {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = line_width(cell).max(*column);
            }
        }
        let room = width.checked_sub(SEPARATOR_COLUMNS * widths.len().saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().filter(|widest| **widest > MIN_CELL_COLUMNS)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn format_row(&self, row: &[StyledLine], widths: &[usize]) -> Vec<StyledLine> {
        let empty = StyledLine::default();
        let cells: Vec<Vec<StyledLine>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| wrap_line(row.get(column).unwrap_or(&empty), *width, 0))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let mut lines = vec![StyledLine::default(); height];
        for (number, line) in lines.iter_mut().enumerate() {
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(Style::Dim, SEPARATOR);
                }
                let text = cell.get(number).unwrap_or(&empty);
                let spare = width.saturating_sub(line_width(text));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => spare,
                    Some(Alignment::Center) => spare / 2,
                    _ => 0,
                };
                line.push(Style::Plain, &" ".repeat(before));
                for (style, part) in &text.spans {
                    line.push(*style, part);
                }
                if column + 1 < widths.len() {
                    line.push(Style::Plain, &" ".repeat(spare - before));
                }
            }
        }
        lines
    }

    /// Formats a table that has too many columns for the width: a line for each cell.
    fn format_as_list(&self, width: usize) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for row in &self.rows {
            for (place, cell) in row.iter().enumerate() {
                let mut line = StyledLine::new(Style::Dim, if place == 0 { "• " } else { "  " });
                line.spans.extend(cell.spans.iter().cloned());
                lines.extend(wrap_line(&line, width, 2));
            }
        }
        lines
    }
}
