//! Sends and receives descriptors over a socket, together with bytes.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors of one message.
pub(super) const MAX_DESCRIPTORS: usize = 4;

/// Sends as many bytes as fit at once, with the descriptors, and returns the number of bytes sent.
pub(super) fn send_descriptors(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL))
}

/// Receives bytes, and puts descriptors that come with them into `descriptors`; they are closed on
/// exec.
pub(super) fn receive_descriptors(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(received.bytes)
}

/// Receives exactly as many bytes as the buffer takes, and what comes with them.
pub(super) fn receive_exact_bytes(
    socket: impl AsFd,
    mut buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match receive_descriptors(&socket, buffer, descriptors)? {
            0 => return Err(Errno::PIPE),
            count => buffer = buffer.get_mut(count..).ok_or(Errno::IO)?,
        }
    }
    Ok(())
}
