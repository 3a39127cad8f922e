//! Lines of code, and indentation.

use crate::wrap::char_width;
use crate::{Style, StyledLine};

/// Columns before code.
const CODE_INDENT: usize = 2;
/// Minimum columns that text gets, whatever it is indented by.
pub(super) const MIN_COLUMNS: usize = 8;

/// Renders lines of code, broken where they are wider than the terminal.
pub(super) fn render_code(source: &str, width: usize) -> Vec<StyledLine> {
    let indent = CODE_INDENT.min(width.saturating_sub(MIN_COLUMNS));
    let room = width.saturating_sub(indent);
    source
        .lines()
        .chain(source.is_empty().then_some(""))
        .flat_map(|line| {
            break_line(line, room)
                .into_iter()
                .map(|piece| {
                    if piece.is_empty() {
                        StyledLine::default()
                    } else {
                        indent_line(StyledLine::new(Style::Code, piece), indent)
                    }
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Breaks a line wherever it reaches the width.
fn break_line(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut column = 0;
    for character in line.replace('\t', "    ").chars() {
        let columns = char_width(character);
        if column + columns > width && column > 0 {
            pieces.push(String::new());
            column = 0;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
        column += columns;
    }
    pieces
}

/// Puts spaces before a line that isn't empty.
pub(super) fn indent_line(line: StyledLine, indent: usize) -> StyledLine {
    if indent == 0 || line.is_empty() {
        return line;
    }
    let mut indented = StyledLine::new(Style::Plain, " ".repeat(indent));
    indented.spans.extend(line.spans);
    indented
}
