//! Files in the system's directories that are hidden from commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::toolchain::SYSTEM_DIRECTORIES;

/// Sockets of services that build and store files on the host for their clients.
const SERVICE_SOCKETS: [&str; 1] = ["nix/var/nix/daemon-socket"];

/// Paths that only root should read, whatever their mode.
const ROOT_SECRETS: [&str; 7] = [
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/gshadow-",
    "etc/ssl/private",
    "etc/krb5.keytab",
    "etc/journeyman",
];

/// Directories where services keep keys and passwords among files that everybody reads. All of
/// `/etc` would be too much: it is searched before every command of root's.
const KEY_DIRECTORIES: [&str; 8] = [
    "etc",
    "etc/ssl",
    "etc/ssh",
    "etc/pki/tls",
    "etc/postgresql",
    "etc/mysql",
    "etc/NetworkManager",
    "etc/wireguard",
];

/// Entries of one such directory that are looked at; Debian's `/etc` has about 200.
const MAX_DIRECTORY_ENTRIES: usize = 2_000;
/// Maximum files that are hidden by a mount each; a full server has some twenty.
const MAX_HIDDEN_FILES: usize = 512;
/// Read permission for others; for a directory, with the permission to enter it.
const OTHERS_READ: u32 = 0o4;
const OTHERS_ENTER: u32 = 0o5;

/// The files that were hidden from the last command, so that the next one of the same sandbox
/// needn't check some two hundred files again. They are searched anew when an entry of a directory
/// came, went or was renamed.
#[derive(Debug, Default)]
pub(crate) struct HiddenFiles(Mutex<Option<CachedScan>>);

#[derive(Debug)]
struct CachedScan {
    uid: u32,
    changed: Vec<Option<SystemTime>>,
    hidden: Vec<PathBuf>,
}

impl HiddenFiles {
    /// Returns the result of [`find_hidden_files`] beneath `/`.
    pub(super) fn find_cached(&self, uid: u32) -> Vec<PathBuf> {
        let base = Path::new("/");
        let changed: Vec<Option<SystemTime>> = KEY_DIRECTORIES
            .iter()
            .map(|directory| fs::metadata(base.join(directory)).and_then(|found| found.modified()).ok())
            .collect();
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = remembered.as_ref().filter(|known| known.uid == uid && known.changed == changed)
        {
            return known.hidden.clone();
        }
        let hidden = find_hidden_files(base, uid);
        *remembered = Some(CachedScan { uid, changed, hidden: hidden.clone() });
        hidden
    }
}

/// Returns the files to hide from a command of user `uid`, beneath `base`, which is `/` outside of
/// tests. A command of root's could read what others can't, because root owns it.
fn find_hidden_files(base: &Path, uid: u32) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = SERVICE_SOCKETS.iter().map(|path| base.join(path)).collect();
    if uid != 0 {
        return hidden;
    }
    hidden.extend(ROOT_SECRETS.iter().map(|path| base.join(path)));
    let kept = KEY_DIRECTORIES.iter().filter_map(|directory| fs::read_dir(base.join(directory)).ok());
    let closed = kept.flat_map(|entries| entries.flatten().take(MAX_DIRECTORY_ENTRIES)).filter(|entry| {
        entry.metadata().is_ok_and(|found| {
            let wanted = if found.is_dir() { OTHERS_ENTER } else { OTHERS_READ };
            (found.is_dir() || found.is_file()) && found.permissions().mode() & wanted != wanted
        })
    });
    hidden.extend(closed.map(|entry| entry.path()).take(MAX_HIDDEN_FILES));
    hidden.sort();
    hidden.dedup();
    // Mounting in what is hidden already would fail.
    let all = hidden.clone();
    hidden.retain(|path| !path.ancestors().skip(1).any(|above| all.iter().any(|one| one == above)));
    hidden
}

/// Returns the paths of the named sockets in the kernel's list (`/proc/net/unix`), as they were
/// bound. Those bound by a relative name aren't told from others.
pub(super) fn parse_socket_paths(list: &str) -> impl Iterator<Item = &str> {
    // The path is the eighth column, and may have blanks.
    list.lines().filter_map(|line| {
        let column = line.split_ascii_whitespace().nth(7).filter(|path| path.starts_with('/'))?;
        line.find(&format!(" {column}")).and_then(|at| line.get(at + 1..))
    })
}

/// Returns those sockets that lie in the system's directories: a read-only file system keeps nobody
/// from connecting.
pub(super) fn find_reachable_sockets(list: &str) -> Vec<&str> {
    let mut found: Vec<&str> = parse_socket_paths(list)
        .filter(|path| SYSTEM_DIRECTORIES.iter().any(|system| Path::new(path).starts_with(system)))
        .filter(|path| {
            !SERVICE_SOCKETS.iter().any(|service| Path::new(path).starts_with(Path::new("/").join(service)))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_files_are_hidden_from_roots_commands() {
        let base = tempfile::tempdir().unwrap();
        let modes = [
            ("etc/passwd", 0o644),
            ("etc/shadow", 0o644),
            ("etc/.pwd.lock", 0o600),
            ("etc/pgpass", 0o640),
            ("etc/ssh/ssh_config", 0o644),
            ("etc/ssh/ssh_host_key", 0o600),
            ("etc/sudoers.d/x", 0o644),
            ("etc/other/deep", 0o600),
            ("nix/var/nix/daemon-socket/socket", 0o666),
        ];
        for (path, mode) in modes {
            let path = base.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(base.path().join("etc/sudoers.d"), fs::Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("pgpass", base.path().join("etc/link")).unwrap();
        let names = |uid| -> Vec<String> {
            let found = find_hidden_files(base.path(), uid).into_iter().filter(|path| path.exists());
            found.map(|path| path.strip_prefix(base.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(names(1000), ["nix/var/nix/daemon-socket"]);
        let expected = [
            "etc/.pwd.lock",
            "etc/pgpass",
            "etc/shadow",
            "etc/ssh/ssh_host_key",
            "etc/sudoers.d",
            "nix/var/nix/daemon-socket",
        ];
        assert_eq!(names(0), expected);
    }

    #[test]
    fn what_is_remembered_is_what_is_found() {
        let memory = HiddenFiles::default();
        for uid in [0, 1000, 0, 0] {
            assert_eq!(memory.find_cached(uid), find_hidden_files(Path::new("/"), uid));
        }
    }

    #[test]
    fn sockets_in_the_systems_directories_are_found() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20 /run/docker.sock\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 21 /opt/app/a b.sock\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 22\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 22 @/opt/abstract\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 22 @abstract /opt/not\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 23 /nix/var/nix/daemon-socket/socket\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 21 /opt/app/a b.sock\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 21 /optional/x\n";
        assert_eq!(find_reachable_sockets(list), ["/opt/app/a b.sock"]);
        assert_eq!(find_reachable_sockets(""), Vec::<&str>::new());
    }
}
