//! Frames between agent and helpers: a header with the body's length, then a flat body.
//!
//! A body is read in place: the helper runs once a command, so a frame must not cost parsing or
//! allocation. Strings end in NUL and go to the kernel as they are.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

/// Maximum bytes of a body. A policy is a few kilobytes, plus arguments and environment, which
/// Linux bounds at a few megabytes.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Bytes before the body: the magic and the body's length.
pub(super) const HEADER_BYTES: usize = 8;

/// Returns the body's length, if the header is one with these first bytes.
pub(super) fn body_length(magic: [u8; 4], header: &[u8; HEADER_BYTES]) -> Option<usize> {
    let [a, b, c, d, length @ ..] = *header;
    let length = u32::from_le_bytes(length) as usize;
    ([a, b, c, d] == magic && length <= MAX_BODY_BYTES).then_some(length)
}

/// A frame under construction; [`finish`](Self::finish) fills in its length.
pub(super) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    pub(super) fn new(magic: [u8; 4]) -> Self {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend_from_slice(&magic);
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    pub(super) fn write_u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn write_u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn write_option(&mut self, value: Option<u64>) {
        self.write_u32(u32::from(value.is_some()));
        self.write_u64(value.unwrap_or(0));
    }

    pub(super) fn write_count(&mut self, count: usize) {
        self.write_u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub(super) fn write_text(&mut self, text: &CString) {
        let bytes = text.as_bytes_with_nul();
        self.write_count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Writes bytes as they are; the reader knows how many they are.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the frame, with the body's length in its header.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let body = u32::try_from(self.0.len() - HEADER_BYTES).unwrap_or(u32::MAX);
        if let Some(length) = self.0.get_mut(4..HEADER_BYTES) {
            length.copy_from_slice(&body.to_le_bytes());
        }
        self.0
    }
}

/// The part of a body that is still to be read.
pub(super) struct FrameReader<'a>(&'a [u8]);

impl<'a> FrameReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn read_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn read_u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*taken))
    }

    pub(super) fn read_u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    pub(super) fn read_option(&mut self) -> Option<Option<u64>> {
        let is_some = self.read_u32()? != 0;
        let value = self.read_u64()?;
        Some(is_some.then_some(value))
    }

    pub(super) fn read_text(&mut self) -> Option<&'a CStr> {
        let length = self.read_u32()? as usize;
        CStr::from_bytes_with_nul(self.read_bytes(length)?).ok()
    }

    pub(super) fn read_list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.read_u32()? as usize;
        // Every element takes four bytes at least: a false count can't reserve more than was sent.
        let mut list = Vec::with_capacity(count.min(self.0.len() / 4));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }
}

/// Reads until the buffer is full.
pub(super) fn read_exact(from: impl AsFd, mut buffer: &mut [u8]) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::read(&from, &mut *buffer))? {
            0 => return Err(Errno::PIPE),
            count => buffer = buffer.get_mut(count..).ok_or(Errno::IO)?,
        }
    }
    Ok(())
}

/// Reads a whole frame with these first bytes, header included.
pub(super) fn read_frame(control: &OwnedFd, magic: [u8; 4]) -> Result<Vec<u8>, Errno> {
    let mut header = [0; HEADER_BYTES];
    read_exact(control, &mut header)?;
    let mut bytes = header.to_vec();
    bytes.resize(HEADER_BYTES + body_length(magic, &header).ok_or(Errno::PROTO)?, 0);
    read_exact(control, bytes.get_mut(HEADER_BYTES..).ok_or(Errno::PROTO)?)?;
    Ok(bytes)
}
