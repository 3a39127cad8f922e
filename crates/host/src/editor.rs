//! Opens the user's editor for a long message or a plan.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::process::Command;

use crate::config::Environment;

/// The editor where none is named.
const DEFAULT_EDITOR: &str = "vi";
/// Maximum bytes of a text that is read back.
const MAX_EDITED_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the editor that the person's environment names.
#[must_use]
pub fn find_editor(environment: &Environment) -> String {
    let named = environment.var("VISUAL").or_else(|| environment.var("EDITOR"));
    named.unwrap_or(DEFAULT_EDITOR).to_owned()
}

/// Opens a text in an editor, as a file with this suffix, waits for its end, and returns the text
/// as it is then.
///
/// # Errors
/// The editor doesn't run or fails, or its file can't be read.
pub fn edit_text(editor: &str, text: &str, suffix: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new().prefix("jm-").suffix(suffix).tempfile()?;
    file.write_all(text.as_bytes())?;
    // By a shell, as everybody does: the variable may have arguments.
    let status =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the editor ended with {status}; the text stays as it was")));
    }
    // Many editors write a new file in place of the old one.
    let read = match std::fs::File::open(file.path()) {
        Ok(file) => file,
        Err(_) => {
            file.as_file_mut().seek(SeekFrom::Start(0))?;
            file.as_file().try_clone()?
        }
    };
    let mut edited = String::new();
    read.take(MAX_EDITED_BYTES).read_to_string(&mut edited)?;
    Ok(edited)
}

/// Keeps an edited text that can't be used as a file with this suffix, and returns the file.
///
/// # Errors
/// The file can't be written.
pub fn keep_edited_text(text: &str, suffix: &str) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("jm-").suffix(suffix).tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep()?;
    Ok(path)
}
