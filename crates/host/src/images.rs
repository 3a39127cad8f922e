//! The images that a person sends with a message.

use std::fs::File;
use std::path::Path;

use journeyman_protocol::ImageData;
use journeyman_tools::{NOT_IMAGE, ToolLimits, encode_image};

use crate::HostError;
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
    encode_image(&bytes).ok_or_else(|| failed(&NOT_IMAGE))
}
