//! Values as people read them.

use std::fmt::Display;

/// Formats a value without control sequences: names, messages and outputs come from others.
pub(crate) fn printable(value: &(impl Display + ?Sized)) -> String {
    journeyman_sandbox::clean(value.to_string().as_bytes())
}

/// Formats a number with its noun: `1 file`, `3 files`.
pub(crate) fn quantity(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a duration as seconds with a tenth: `0.4 s`.
pub(crate) fn seconds(milliseconds: u64) -> String {
    format!("{:.1} s", std::time::Duration::from_millis(milliseconds).as_secs_f64())
}
