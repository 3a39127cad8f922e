//! Images, which travel as bytes and not as text.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use journeyman_protocol::{ImageData, RelPath};
use journeyman_workspace::Workspace;

use crate::ToolError;

/// The file names that are taken for images, and only those: a text file may begin with any bytes.
const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Whether `path` is named as an image.
pub(crate) fn is_image(path: &RelPath) -> bool {
    path.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(found)))
}

/// Reads an image of at most `most` bytes.
pub(crate) fn read(workspace: &Workspace, path: &RelPath, most: u64) -> Result<ImageData, ToolError> {
    let bytes = bytes(workspace, path, most)?;
    let Some(media_type) = media_type(&bytes) else {
        let reason = "its content is not PNG, JPEG, GIF or WebP".to_owned();
        return Err(ToolError::Image { path: path.clone(), reason });
    };
    Ok(ImageData { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) })
}

/// The file's bytes. The kernel keeps the path beneath the root; a pipe is neither waited for nor read.
fn bytes(workspace: &Workspace, path: &RelPath, most: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |reason: String| ToolError::Image { path: path.clone(), reason };
    let file = open(&workspace.reach(), path).map_err(|error| failed(error.to_string()))?;
    let size = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !size.is_file() {
        return Err(failed("it is not a regular file".to_owned()));
    }
    if size.len() > most {
        return Err(failed(format!("it has {} bytes; at most {most} are sent", size.len())));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(most).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    Ok(bytes)
}

#[cfg(target_os = "linux")]
fn open(root: &Path, path: &RelPath) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let root = File::open(root)?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&root, path.as_path(), flags, Mode::empty(), beneath) {
        // Inside a sandbox that has no such call: each name by itself, links refused.
        Err(Errno::NOSYS | Errno::PERM) => path.components().try_fold(root, |directory, name| {
            Ok(openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?.into())
        }),
        opened => Ok(opened?.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(_: &Path, _: &RelPath) -> std::io::Result<File> {
    Err(std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "images can't be read safely on this system yet",
    ))
}

/// The media type by the bytes that the format begins with.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
