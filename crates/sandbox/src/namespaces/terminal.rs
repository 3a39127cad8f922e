//! A pseudo-terminal of the command's own: created by pid 1 inside, with its outer side passed to
//! the agent.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::descriptor_passing;
use super::messages::HelperMessage;

/// The end of the file, as it is typed: the usual `VEOF`.
const END_OF_FILE: u8 = 4;

/// Columns and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalSize {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl TerminalSize {
    pub(super) fn to_number(self) -> u64 {
        u64::from(self.columns) | u64::from(self.rows) << 16
    }

    pub(super) fn from_number(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        Some(Self { columns: (number & 0xffff) as u16, rows: (number >> 16) as u16 })
    }
}

/// Creates a pseudo-terminal of the sandbox's own, and passes its outer side to the agent. What the
/// command gets comes back.
pub(super) fn open_terminal(size: TerminalSize, control: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let outer = rustix::fs::open(c"/dev/pts/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&outer)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let inner = rustix::pty::ioctl_tiocgptpeer(&outer, flags)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&inner, size)?;
    descriptor_passing::send_descriptors(control, &HelperMessage::Terminal.encode(), &[outer.as_fd()])?;
    Ok(inner)
}

/// Makes the terminal the controlling one of a new session, and its standard streams.
pub(super) fn attach_session_terminal(terminal: &OwnedFd) -> Result<(), Errno> {
    rustix::process::ioctl_tiocsctty(terminal)?;
    rustix::stdio::dup2_stdin(terminal)?;
    rustix::stdio::dup2_stdout(terminal)?;
    rustix::stdio::dup2_stderr(terminal)
}

/// Returns the input as it is typed, with the end of the file, which counts only at a line's
/// beginning.
pub(super) fn append_end_of_file(mut input: Vec<u8>) -> Vec<u8> {
    if !matches!(input.last(), None | Some(b'\n')) {
        input.push(END_OF_FILE);
    }
    input.push(END_OF_FILE);
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_file_is_typed_where_it_counts() {
        assert_eq!(append_end_of_file(Vec::new()), [4]);
        assert_eq!(append_end_of_file(b"a\n".to_vec()), b"a\n\x04");
        assert_eq!(append_end_of_file(b"a".to_vec()), b"a\x04\x04");
    }

    #[test]
    fn sizes_survive_the_wire() {
        for size in [TerminalSize { columns: 80, rows: 24 }, TerminalSize { columns: u16::MAX, rows: 0 }] {
            assert_eq!(TerminalSize::from_number(size.to_number()), Some(size));
        }
        assert_eq!(TerminalSize::from_number(u64::MAX), None);
    }
}
