//! Standard input of a CLI that stays open for the replies of its conversation.
//!
//! It is a named pipe in the CLI's own home, which a shell makes the standard input. So it needs
//! nothing of any sandbox. This end is open before the CLI begins: what becomes of the name later
//! doesn't matter.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::CommandLine;

/// Connects standard input of a program to a named pipe. The pipe is the first argument, the
/// program and its arguments follow.
const CONNECT_INPUT_SCRIPT: &str = "exec \"$@\" <\"$0\"";

/// Opens the standard input of an interactive command; `None` for other commands. The pipe is made
/// in `directory`.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn open_input(command: &mut CommandLine, directory: &Path) -> io::Result<Option<CliInput>> {
    if !command.interactive {
        return Ok(None);
    }
    CliInput::create(directory, std::mem::take(&mut command.stdin)).map(Some)
}

/// The writing end of a CLI's standard input, which is closed when this value is dropped.
#[derive(Debug)]
pub(crate) struct CliInput {
    path: PathBuf,
    waiting: mpsc::UnboundedSender<Vec<u8>>,
}

impl CliInput {
    /// Creates a pipe with a unique name in a directory, and writes `first` into it. Must be called
    /// within a Tokio runtime.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn create(directory: &Path, first: Vec<u8>) -> io::Result<Self> {
        let path = directory.join(format!(".input-{:x}", fastrand::u64(..)));
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Opened for reading, too: otherwise opening fails until a reader exists.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::empty())?;
        let mut pipe = pipe::Sender::from_owned_fd_unchecked(file)?;
        let (waiting, mut bytes) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(next) = bytes.recv().await {
                let next: Vec<u8> = next;
                if pipe.write_all(&next).await.is_err() {
                    break;
                }
            }
        });
        let input = Self { path, waiting };
        input.write(first);
        Ok(input)
    }

    /// Returns a command that runs `argv` with this standard input.
    pub(crate) fn wrap_command(&self, argv: Vec<OsString>) -> Vec<OsString> {
        let shell =
            ["/bin/sh".into(), "-c".into(), CONNECT_INPUT_SCRIPT.into(), self.path.clone().into_os_string()];
        shell.into_iter().chain(argv).collect()
    }

    /// Queues bytes for writing.
    pub(crate) fn write(&self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            // Fails only if the CLI has closed its input, which its output will show.
            self.waiting.send(bytes).ok();
        }
    }
}

impl Drop for CliInput {
    fn drop(&mut self) {
        // The removal of the directory removes the pipe otherwise.
        std::fs::remove_file(&self.path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_reads_what_is_written_meanwhile_until_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let input = CliInput::create(directory.path(), b"one\n".to_vec()).unwrap();
        let argv = input.wrap_command(["/bin/cat".into()].to_vec());
        let running = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        input.write(b"two\n".to_vec());
        input.write(vec![b'x'; 200_000]);
        let ended = tokio::task::spawn_blocking(move || running.wait_with_output().unwrap());
        // The pipe is opened by name, so the name has to be there until then.
        while std::fs::read_dir(directory.path()).unwrap().next().is_none() {}
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        drop(input);
        let output = ended.await.unwrap().stdout;
        assert!(output.starts_with(b"one\ntwo\nxxx"));
        assert_eq!(output.len(), 200_008);
        assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
    }
}
