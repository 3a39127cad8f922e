//! Conversions between the host's text and strings for the kernel.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;

use crate::SandboxError;

/// Converts text for the kernel, which ends strings with a NUL byte.
///
/// # Errors
/// [`SandboxError::Refused`] where the text has one itself.
pub(super) fn to_c_string(text: &OsStr) -> Result<CString, SandboxError> {
    CString::new(text.as_bytes())
        .map_err(|_| SandboxError::Refused(format!("`{}` has a NUL byte", text.display())))
}

/// Returns a path as text for an error.
pub(super) fn display_path(path: &CString) -> String {
    OsStr::from_bytes(path.as_bytes()).display().to_string()
}
