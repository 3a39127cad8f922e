//! The file that takes a command's whole output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::request::SpillFile;
use crate::{Denial, DenialKind, SandboxError};

/// The file while it is written. A failed write ends the file, and never the command.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    /// Gone once it is full or couldn't be written.
    file: Option<File>,
    path: PathBuf,
    left: u64,
    written: u64,
    trouble: Option<io::Error>,
}

impl SpillWriter {
    /// Creates the file, readable by this user alone.
    pub(crate) fn create(spill: &SpillFile) -> Result<Self, SandboxError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&spill.path).map_err(|source| SandboxError::Path {
            what: "the file for all of the output",
            path: spill.path.clone(),
            source,
        })?;
        let path = spill.path.clone();
        Ok(Self { file: Some(file), path, left: spill.bytes, written: 0, trouble: None })
    }

    /// Writes as much of the next piece as fits.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let mut rest = bytes.get(..room).unwrap_or_default();
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(count) if count > 0 => {
                    rest = rest.get(count..).unwrap_or_default();
                    self.written += count as u64;
                    self.left -= count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) => return self.record_failure(io::ErrorKind::WriteZero.into()),
                Err(error) => return self.record_failure(error),
            }
        }
        if self.left == 0 {
            self.file = None;
        }
    }

    fn record_failure(&mut self, trouble: io::Error) {
        self.trouble = Some(trouble);
        self.file = None;
    }

    /// Returns the number of bytes in the file, and the reason if the file ended early.
    pub(crate) fn finish(self) -> (u64, Option<Denial>) {
        let denial = self.trouble.map(|trouble| Denial {
            kind: DenialKind::Resource,
            what: format!("keeping all of the output in a file: {trouble}"),
            certain: true,
            hint: format!(
                "the command went on; the file has the first {} bytes of its output, free some space for the rest",
                self.written
            ),
        });
        (self.written, denial)
    }

    /// Removes the file of a command that didn't run.
    pub(crate) fn abandon(self) {
        // It is empty, and the caller gets the error of the command.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Refuses a file that the command would find: `shows` says whether it is shown what lies in a
/// directory.
pub(crate) fn check_spill_hidden(
    spill: &SpillFile,
    shows: impl Fn(&Path) -> bool,
) -> Result<(), SandboxError> {
    let error = |source| SandboxError::Path {
        what: "the file for all of the output",
        path: spill.path.clone(),
        source,
    };
    let parent = spill.path.parent().filter(|_| spill.path.is_absolute());
    let real =
        parent.ok_or_else(|| error(io::ErrorKind::InvalidInput.into()))?.canonicalize().map_err(error)?;
    if shows(&real) {
        return Err(SandboxError::Refused(format!(
            "the file for all of the output lies where the command sees it (`{}`); name one elsewhere",
            spill.path.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_new_bounded_and_in_order() {
        let place = tempfile::tempdir().unwrap();
        let spill = SpillFile { path: place.path().join("all"), bytes: 10 };
        let mut spilling = SpillWriter::create(&spill).unwrap();
        for piece in [&b"0123"[..], b"", b"4567", b"89ab", b"cd"] {
            spilling.write(piece);
        }
        assert_eq!(spilling.finish(), (10, None));
        assert_eq!(std::fs::read(&spill.path).unwrap(), b"0123456789");
        assert!(SpillWriter::create(&spill).unwrap_err().to_string().contains("all of the output"));
    }

    #[test]
    fn a_full_disk_ends_the_file_and_says_so() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut spilling =
            SpillWriter { file: Some(file), path: "/dev/full".into(), left: 9, written: 0, trouble: None };
        spilling.write(b"0123");
        spilling.write(b"4567");
        let (bytes, denial) = spilling.finish();
        let denial = denial.unwrap();
        assert_eq!((bytes, denial.certain, denial.kind), (0, true, DenialKind::Resource));
        assert!(denial.what.contains("No space left"), "{denial}");
    }
}
