//! Standard error, which nobody may read any more.

use std::io::Write as _;

/// Prints a line for people as `eprintln!` does, without its panic where nobody reads any more (`jm
/// map 2>&1 | head`).
macro_rules! tell {
    () => { $crate::stderr::write("\n") };
    ($($part:tt)*) => { $crate::stderr::write(&format!("{}\n", format_args!($($part)*))) };
}

/// The same without the line's end.
macro_rules! tell_part {
    ($($part:tt)*) => { $crate::stderr::write(&format!($($part)*)) };
}

/// Writes a text. Where that fails, there is nobody to be told.
pub(crate) fn write(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok();
}
