//! Images, which are sent to the model as bytes.

use std::os::fd::AsFd as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use journeyman_protocol::{ImageData, RelPath};
use journeyman_root_fs::{LinkPolicy, open_regular, open_root, read_up_to};
use journeyman_workspace::Workspace;

use crate::ToolError;

/// The file name extensions of images. Contents don't decide: a text file may begin with any bytes.
const IMAGE_EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The reason for refusing other files.
pub const NOT_IMAGE_REASON: &str = "its content is not PNG, JPEG, GIF or WebP";

/// Returns true if `path` has the extension of an image.
#[must_use]
pub fn is_image_name(path: &Path) -> bool {
    let found = path.extension().and_then(|extension| extension.to_str());
    found.is_some_and(|found| IMAGE_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(found)))
}

/// Reads an image of at most `most` bytes.
pub(crate) fn read_image(workspace: &Workspace, path: &RelPath, most: u64) -> Result<ImageData, ToolError> {
    let not_image = || ToolError::Image { path: path.clone(), reason: NOT_IMAGE_REASON.to_owned() };
    encode_image(&read_bytes(workspace, path, most)?).ok_or_else(not_image)
}

/// Returns a file's bytes as an image; [`None`] if they are not PNG, JPEG, GIF or WebP.
#[must_use]
pub fn encode_image(bytes: &[u8]) -> Option<ImageData> {
    let media_type = media_type(bytes)?.to_owned();
    Some(ImageData { media_type, data: STANDARD.encode(bytes) })
}

/// Reads a file's bytes. The kernel keeps the path beneath the root; a pipe is refused, not waited
/// for.
fn read_bytes(workspace: &Workspace, path: &RelPath, most: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |reason: String| ToolError::Image { path: path.clone(), reason };
    let root = open_root(&workspace.access_path()).map_err(|error| failed(error.to_string()))?;
    let opened = open_regular(root.as_fd(), path.as_bytes(), LinkPolicy::Follow);
    let (file, stat) = opened.map_err(|error| failed(error.to_string()))?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let read = read_up_to(&file, size, most).map_err(|error| failed(error.to_string()))?;
    read.ok_or_else(|| failed(format!("it has {size} bytes; at most {most} are sent")))
}

/// Returns the media type by the first bytes of a file.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
