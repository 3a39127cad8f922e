//! The search for a `bwrap` that only the user or root can have installed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::super::probe::FileIdentity;
use crate::SandboxError;

/// Everybody may write; only the owner may remove or rename.
const STICKY_BIT: u32 = 0o1000;
/// The group or others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The `bwrap` to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BwrapProgram {
    /// Absolute, without links.
    pub(super) path: PathBuf,
    pub(super) identity: FileIdentity,
}

/// Returns the first `bwrap` in these directories that can be trusted.
pub(super) fn find_bwrap(directories: &[PathBuf], uid: u32) -> Result<BwrapProgram, SandboxError> {
    let mut distrusted = None;
    for directory in directories.iter().filter(|directory| directory.is_absolute()) {
        let Ok(path) = directory.join("bwrap").canonicalize() else { continue };
        match check_program(&path, uid) {
            Ok(identity) => return Ok(BwrapProgram { path, identity }),
            Err(reason) => drop(distrusted.get_or_insert(format!("`{}` {reason}", path.display()))),
        }
    }
    Err(SandboxError::Unavailable {
        reason: distrusted.map_or_else(
            || "bubblewrap isn't installed".to_owned(),
            |reason| format!("bubblewrap isn't used: {reason}"),
        ),
        fix: "Install your distribution's package, such as with `sudo apt install bubblewrap`".to_owned(),
    })
}

fn check_program(path: &Path, uid: u32) -> Result<FileIdentity, String> {
    let found = fs::metadata(path).map_err(|error| format!("can't be looked at: {error}"))?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Err("is no program".to_owned());
    }
    for above in path.ancestors() {
        let place = fs::metadata(above).map_err(|error| format!("can't be looked at: {error}"))?;
        if place.uid() != 0 && place.uid() != uid {
            return Err(format!("can be changed by another user, who owns `{}`", above.display()));
        }
        let shared = place.is_dir() && place.mode() & STICKY_BIT != 0;
        if place.mode() & OTHERS_WRITE != 0 && !shared {
            return Err(format!("can be changed by other users, who may write to `{}`", above.display()));
        }
    }
    Ok((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

impl BwrapProgram {
    /// Returns true if a command that may write to these paths could replace the program.
    pub(super) fn lies_in(&self, writable: &[&Path]) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        writable.iter().any(|path| self.path.starts_with(real(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(directory: &Path, mode: u32) {
        let path = directory.join("bwrap");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_a_program_that_nobody_else_can_change_is_used() {
        let uid = rustix::process::geteuid().as_raw();
        let place = tempfile::tempdir().unwrap();
        let [good, open, shared, plain, empty] =
            ["good", "open", "shared", "plain", "empty"].map(|name| place.path().join(name));
        for directory in [&good, &open, &shared, &plain, &empty] {
            fs::create_dir(directory).unwrap();
        }
        program(&good, 0o755);
        program(&open, 0o777);
        program(&shared, 0o755);
        program(&plain, 0o644);
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        let real = good.join("bwrap").canonicalize().unwrap();
        for first in [&open, &shared, &plain, &empty, &PathBuf::from("relative")] {
            assert_eq!(find_bwrap(&[first.clone(), good.clone()], uid).unwrap().path, real);
            assert!(find_bwrap(std::slice::from_ref(first), uid).is_err(), "{}", first.display());
        }
        // Only root and the user may have installed it.
        if uid == 0 {
            std::os::unix::fs::chown(good.join("bwrap"), Some(1000), None).unwrap();
            assert!(
                find_bwrap(std::slice::from_ref(&good), 0).unwrap_err().to_string().contains("another user")
            );
        }
        let found = BwrapProgram { path: real, identity: Default::default() };
        assert!(found.lies_in(&[&good]) && found.lies_in(&[place.path()]) && !found.lies_in(&[&open]));
    }
}
