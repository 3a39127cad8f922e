//! Landlock: what the kernel grants this process and its children, whatever is mounted where.
//!
//! In a sandbox with namespaces Landlock is a second layer beneath the mounts; without namespaces
//! it is the only confinement. It is permanent: no process that is started from here on can lift
//! it.

use std::ffi::CStr;
use std::os::fd::AsFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::sys;

/// The rights beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Looking at it, and executing.
    Read,
    /// Listing directories alone.
    List,
    /// Changing it besides, but for making devices; and what devices that are there do on request.
    Write,
}

/// The treatment of TCP. Other protocols (UDP, MPTCP) aren't affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpAccess {
    /// Another layer closes the network.
    Free,
    /// Neither connected nor bound, where the kernel knows these rights (version 4).
    Denied,
}

/// Returns the version of Landlock that is in force here, as far as this program knows it; 0 where
/// there is none.
pub(crate) fn landlock_version() -> u32 {
    u32::try_from(ABI::from(sys::landlock_version()) as i32).unwrap_or(0)
}

/// Restricts this process, which must have one thread, to the grants; whatever else version
/// `version` knows is denied: changes, devices made, signals to and abstract sockets of processes
/// outside. Paths are taken from `at`; one that isn't there, or that may not be reached, grants
/// nothing.
///
/// # Errors
/// What the kernel said. `ENOTSUP` where it doesn't enforce all that the version has. Nothing was
/// restricted then.
pub(crate) fn enforce_landlock<'a>(
    version: u32,
    at: impl AsFd,
    grants: impl IntoIterator<Item = (&'a CStr, Grant)>,
    tcp: TcpAccess,
) -> Result<(), Errno> {
    let abi = ABI::from(i32::try_from(version).unwrap_or(0));
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(to_errno)?;
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi)).map_err(to_errno)?;
    }
    if abi >= ABI::V4 && tcp == TcpAccess::Denied {
        rules = rules.handle_access(AccessNet::from_all(abi)).map_err(to_errno)?;
    }
    let mut rules = rules.create().map_err(to_errno)?;
    for (path, grant) in grants {
        let place = match rustix::fs::openat(&at, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => place,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => continue,
            Err(errno) => return Err(errno),
        };
        let mode = rustix::fs::fstat(&place)?.st_mode;
        let mut granted = access_rights(grant, abi);
        if FileType::from_raw_mode(mode) != FileType::Directory {
            granted &= AccessFs::from_file(abi);
        }
        rules = rules.add_rule(PathBeneath::new(place, granted)).map_err(to_errno)?;
    }
    let status = rules.no_new_privs(true).restrict_self().map_err(to_errno)?;
    if status.ruleset == RulesetStatus::FullyEnforced { Ok(()) } else { Err(Errno::NOTSUP) }
}

fn access_rights(grant: Grant, abi: ABI) -> BitFlags<AccessFs> {
    match grant {
        Grant::Read => AccessFs::from_read(abi),
        Grant::List => AccessFs::ReadDir.into(),
        Grant::Write => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
    }
}

/// Returns the kernel's own error, where there was one; else the error for a missing right.
fn to_errno(error: impl std::error::Error + 'static) -> Errno {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(errno) = error.downcast_ref().and_then(Errno::from_io_error) {
            return errno;
        }
        cause = error.source();
    }
    Errno::NOTSUP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_grant_makes_devices_and_only_writing_changes() {
        for abi in [ABI::V1, ABI::V3, ABI::V5, ABI::V7] {
            let write = access_rights(Grant::Write, abi);
            assert!(!write.intersects(AccessFs::MakeChar | AccessFs::MakeBlock), "{abi:?}");
            assert!(write.contains(AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::ReadFile), "{abi:?}");
            assert_eq!(write.contains(AccessFs::Truncate), abi >= ABI::V3);
            assert!(!access_rights(Grant::Read, abi).intersects(AccessFs::from_write(abi)), "{abi:?}");
        }
    }

    #[test]
    fn the_kernels_word_is_found_and_none_is_not_supported() {
        let io = std::io::Error::from(Errno::NOSPC);
        assert_eq!(to_errno(io), Errno::NOSPC);
        // A version that isn't there can't be had: nothing is restricted by asking.
        let asked = enforce_landlock(0, rustix::fs::CWD, [], TcpAccess::Free);
        assert_eq!(asked, Err(Errno::NOTSUP));
    }
}
