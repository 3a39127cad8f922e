//! The steps that build a sandbox's root, and their encoding.

use std::ffi::{CStr, CString};

use super::framing::{FrameReader, FrameWriter};

/// One step in building the root. Paths are relative to the new root, sources absolute on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootStep<T> {
    /// Make a directory; its parent exists.
    Directory { path: T },
    /// Make an empty file to mount on.
    File { path: T },
    /// Make a symbolic link.
    Link { path: T, target: T },
    /// Mount a host path, and what is mounted beneath it.
    Bind { path: T, source: T, access: BindAccess },
    /// Mount the copy that came along as a descriptor.
    Base { path: T, access: BindAccess },
    /// Mount an empty private directory.
    Scratch { path: T, mode: u32 },
    /// Mount a host directory under a layer that takes the writes and is thrown away.
    Layer { path: T, source: T },
    /// Mount `/proc`, read-only.
    Proc { path: T },
    /// Mount pseudo-terminals.
    Terminals { path: T },
    /// Make what is at the path read-only, where it is.
    Guard { path: T },
    /// Hide a file behind one that says `text`, or a directory behind an empty one.
    Mask { path: T, directory: bool, text: T },
}

impl<T: Copy> RootStep<T> {
    /// Returns the path if it may be written.
    pub(super) fn writable_path(&self) -> Option<T> {
        match *self {
            Self::Bind { path, access, .. } | Self::Base { path, access }
                if access != BindAccess::ReadOnly =>
            {
                Some(path)
            }
            Self::Scratch { path, .. } | Self::Layer { path, .. } | Self::Terminals { path } => Some(path),
            _ => None,
        }
    }
}

impl RootStep<CString> {
    pub(super) fn encode(&self, out: &mut FrameWriter) {
        let none = CString::default();
        let (kind, number, path, other) = match self {
            Self::Directory { path } => (0, 0, path, &none),
            Self::File { path } => (1, 0, path, &none),
            Self::Link { path, target } => (2, 0, path, target),
            Self::Bind { path, source, access } => (3, *access as u32, path, source),
            Self::Scratch { path, mode } => (4, *mode, path, &none),
            Self::Layer { path, source } => (5, 0, path, source),
            Self::Proc { path } => (6, 0, path, &none),
            Self::Terminals { path } => (7, 0, path, &none),
            Self::Guard { path } => (8, 0, path, &none),
            Self::Mask { path, directory, text } => (9, u32::from(*directory), path, text),
            Self::Base { path, access } => (10, *access as u32, path, &none),
        };
        out.write_u32(kind);
        out.write_u32(number);
        out.write_text(path);
        out.write_text(other);
    }
}

impl<'a> RootStep<&'a CStr> {
    /// Reads a step; `None` if it is cut or malformed.
    pub(super) fn decode(from: &mut FrameReader<'a>) -> Option<Self> {
        let (kind, number) = (from.read_u32()?, from.read_u32()?);
        let (path, other) = (from.read_text()?, from.read_text()?);
        Some(match kind {
            0 => Self::Directory { path },
            1 => Self::File { path },
            2 => Self::Link { path, target: other },
            3 => Self::Bind { path, source: other, access: BindAccess::from_number(number)? },
            4 => Self::Scratch { path, mode: number },
            5 => Self::Layer { path, source: other },
            6 => Self::Proc { path },
            7 => Self::Terminals { path },
            8 => Self::Guard { path },
            9 => Self::Mask { path, directory: number != 0, text: other },
            10 => Self::Base { path, access: BindAccess::from_number(number)? },
            _ => return None,
        })
    }
}

/// The access to a bound path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BindAccess {
    ReadOnly,
    Writable,
    /// Writable, and device files work.
    Device,
}

impl BindAccess {
    fn from_number(number: u32) -> Option<Self> {
        [Self::ReadOnly, Self::Writable, Self::Device].into_iter().find(|access| *access as u32 == number)
    }
}
