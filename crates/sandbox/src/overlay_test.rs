//! An overlay of nothing, to see whether one can be had.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Mounted, OverlayPlan, SandboxError};

/// Directories for one, removed with it.
pub(crate) struct OverlayTest(PathBuf);

impl OverlayTest {
    pub(crate) fn create(directory: &Path) -> Result<Self, SandboxError> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let place = directory.join(format!(".jm-trial-{}-{count}", std::process::id()));
        let error = |source| test_error(&place, source);
        match fs::create_dir(&place) {
            // Of a process of the same number that was killed.
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                remove(&place);
                fs::create_dir(&place).map_err(error)?;
            }
            made => made.map_err(error)?,
        }
        let trial = Self(place.clone());
        for name in ["lower", "upper", "work"] {
            fs::create_dir(place.join(name)).map_err(error)?;
        }
        fs::write(place.join("lower/file"), "old").map_err(error)?;
        Ok(trial)
    }

    pub(crate) fn plan(&self) -> OverlayPlan {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| self.0.join(name));
        OverlayPlan { lower, upper, work }
    }

    /// Changes the file and looks where the change went.
    pub(crate) fn write(&self, mounted: &Mounted) -> Result<(), SandboxError> {
        use rustix::fs::{Mode, OFlags};
        let error = |source| test_error(&self.0, source);
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::openat(mounted.root(), c"file", flags, Mode::empty());
        file.and_then(|file| rustix::io::write(file, b"new")).map_err(|errno| error(errno.into()))?;
        let read = |name| fs::read(self.0.join(name)).map_err(error);
        if (read("lower/file")?.as_slice(), read("upper/file")?.as_slice()) == (b"old", b"new") {
            return Ok(());
        }
        Err(SandboxError::Unavailable {
            reason: "an overlay was mounted, and what was written to it went elsewhere".to_owned(),
            fix: "Report this with the kernel's version, and use another kind of copy".to_owned(),
        })
    }
}

impl Drop for OverlayTest {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes as much as can be removed. The kernel's own directory in `work` may be entered by
/// nobody, and is empty.
fn remove(place: &Path) {
    fs::remove_dir(place.join("work/work")).ok();
    fs::remove_dir_all(place).ok();
}

fn test_error(path: &Path, source: io::Error) -> SandboxError {
    SandboxError::Path { what: "trying an overlay in", path: path.to_owned(), source }
}
