//! The images that a person sends with a message.

use std::fs::File;
use std::path::{Path, PathBuf};

use journeyman_context::counting::image_size;
use journeyman_protocol::ImageData;
pub use journeyman_tools::is_image_name;
use journeyman_tools::{NOT_IMAGE_REASON, ToolLimits, encode_image};
use percent_encoding::percent_decode_str;

use crate::HostError;
use crate::config::Environment;
use crate::format::preview;
use crate::input::read_bytes;

/// Reads a file of PNG, JPEG, GIF or WebP. It has at most as many bytes as the images that a model
/// may look at by itself (5 MiB, the least of the providers' own limits).
///
/// # Errors
/// [`HostError::Usage`] where the file can't be read, is larger, or is no such image.
pub fn read_image(path: &Path) -> Result<ImageData, HostError> {
    let shown = path.display();
    let failed =
        |reason: &dyn std::fmt::Display| HostError::usage(format_args!("cannot send {shown}: {reason}"));
    // A pipe would be waited for when it is opened.
    let found = path.metadata().map_err(|error| failed(&error))?;
    if !found.is_file() {
        return Err(failed(&"it is no file"));
    }
    let file = File::open(path).map_err(|error| failed(&error))?;
    let bytes = read_bytes("image", file, &shown.to_string(), ToolLimits::default().image_bytes)?;
    encode_image(&bytes).ok_or_else(|| failed(&NOT_IMAGE_REASON))
}

/// Reads images, whose paths are relative to the current directory.
///
/// # Errors
/// As [`read_image`].
pub fn read_images(environment: &Environment, paths: &[PathBuf]) -> Result<Vec<ImageData>, HostError> {
    paths.iter().map(|path| read_image(&environment.cwd.join(path))).collect()
}

/// Maximum bytes of a text that may be the path of a file.
const MAX_PATH_BYTES: usize = 4_096;

/// Returns the path of an image that was dragged onto the terminal: quoted, with backslashes, as a
/// `file:` address, or plain. Relative paths begin at `directory`, `~/` at `home`. `None` for any
/// other text.
#[must_use]
pub fn find_image_path(text: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_PATH_BYTES || text.contains(['\n', '\0']) {
        return None;
    }
    let is_quoted = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    let name = if is_quoted('\'') || is_quoted('"') {
        text.get(1..text.len() - 1)?.to_owned()
    } else if let Some(address) = text.strip_prefix("file://") {
        percent_decode_str(address.get(address.find('/')?..)?).decode_utf8().ok()?.into_owned()
    } else {
        unescape_backslashes(text)
    };
    let path = match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(&name),
    };
    (is_image_name(&path) && path.metadata().is_ok_and(|found| found.is_file())).then_some(path)
}

/// Returns the label of an image in a message, such as `[image chart.png 800x600]`.
#[must_use]
pub fn image_label(path: &Path, image: &ImageData) -> String {
    let name = path.file_name().map(|name| preview(name.to_string_lossy())).unwrap_or_default();
    match image_size(image) {
        Some((width, height)) => format!("[image {name} {width}x{height}]"),
        None => format!("[image {name}]"),
    }
}

fn unescape_backslashes(text: &str) -> String {
    let mut name = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let kept = if letter == '\\' { letters.next() } else { Some(letter) };
        name.extend(kept);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dragged_file_is_an_image_and_other_texts_are_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a b.PNG");
        std::fs::write(&path, "").unwrap();
        std::fs::write(place.path().join("notes.txt"), "").unwrap();
        let shown = path.display().to_string();
        let find = |text: &str| find_image_path(text, place.path(), Some(place.path()));
        for text in [
            shown.clone(),
            format!("'{shown}' "),
            format!("\"{shown}\""),
            shown.replace(' ', "\\ "),
            format!("file://{}", shown.replace(' ', "%20")),
            format!("file://host{}", shown.replace(' ', "%20")),
            "a b.PNG".to_owned(),
            "~/a b.PNG".to_owned(),
        ] {
            assert_eq!(find(&text).as_deref(), Some(path.as_path()), "{text}");
        }
        for text in
            ["", "notes.txt", "none.png", "see a b.PNG", "a b.PNG\nmore", "file://", "file:///%zz.png", "'"]
        {
            assert_eq!(find(text), None, "{text:?}");
        }
    }
}
