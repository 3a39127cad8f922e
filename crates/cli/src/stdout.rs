//! Standard output, whose reader may go away before everything is written.

use std::io::Write as _;

/// Prints a line of the result as `println!` does, without its panic where nobody reads any more
/// (`jm show | head`).
macro_rules! say {
    ($($part:tt)*) => { $crate::stdout::write(&format!("{}\n", format_args!($($part)*))) };
}
pub(crate) use say;

/// Writes a text. A reader that went away has what it wanted; any other failure ends the command.
pub(crate) fn write(text: &str) {
    write_bytes(text.as_bytes());
}

/// The same for bytes.
pub(crate) fn write_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            tell!("error: standard output: {error}");
            std::process::exit(1);
        }
        _ => {}
    }
}
