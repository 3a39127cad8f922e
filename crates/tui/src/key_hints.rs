//! The line at the bottom of a page that names its keys. Pure.

use journeyman_terminal::wrap::{cut_line, text_width};
use journeyman_terminal::{Style, StyledLine};

/// The sign between two keys.
const SEPARATOR: &str = " · ";

/// Joins keys with what they do, the most important first. Those that don't fit into the columns
/// are left out whole, because half of one helps nobody.
#[must_use]
pub(crate) fn key_hints<T: AsRef<str>>(hints: &[T], columns: usize) -> StyledLine {
    let mut text = String::new();
    for hint in hints.iter().map(AsRef::as_ref).filter(|hint| !hint.is_empty()) {
        let separator = if text.is_empty() { "" } else { SEPARATOR };
        if !text.is_empty() && text_width(&text) + text_width(separator) + text_width(hint) > columns {
            continue;
        }
        text.push_str(separator);
        text.push_str(hint);
    }
    cut_line(&StyledLine::new(Style::Dim, text), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_do_not_fit_are_left_out_whole() {
        let hints = ["q closes", "", "/ searches", "Tab, Enter open a block", "n next"];
        for (columns, expected) in [
            (80, "q closes · / searches · Tab, Enter open a block · n next"),
            (40, "q closes · / searches · n next"),
            (12, "q closes"),
            (4, "q c…"),
        ] {
            assert_eq!(key_hints(&hints, columns).to_text(), expected, "{columns}");
        }
    }
}
