//! Lines of code, and indentation.

use crate::wrap::char_width;
use crate::{Style, StyledLine};

/// Columns before code.
const CODE_INDENT: usize = 2;
/// Minimum columns that text gets, whatever it is indented by.
pub(super) const MIN_COLUMNS: usize = 8;

/// Renders a line of code, broken where it is wider than the terminal.
pub(super) fn wrap_code_line(line: &StyledLine, width: usize) -> Vec<StyledLine> {
    let indent = CODE_INDENT.min(width.saturating_sub(MIN_COLUMNS));
    let pieces = break_line(line, width.saturating_sub(indent));
    pieces.into_iter().map(|piece| indent_line(piece, indent)).collect()
}

/// Breaks a line wherever it reaches the width.
fn break_line(line: &StyledLine, width: usize) -> Vec<StyledLine> {
    let mut pieces = vec![StyledLine::default()];
    let mut column = 0;
    for (style, text) in &line.spans {
        for character in text.replace('\t', "    ").chars() {
            let columns = char_width(character);
            if column + columns > width && column > 0 {
                pieces.push(StyledLine::default());
                column = 0;
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(*style, character.encode_utf8(&mut [0; 4]));
            }
            column += columns;
        }
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
