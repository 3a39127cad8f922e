//! The program of a CLI on this machine: its path, and the paths that a sandbox has to show.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use journeyman_sandbox::HostEnvironment;

/// Maximum number of links from a program's name to its file.
const MAX_LINKS: usize = 16;
/// The directory of npm packages, which need each other.
const PACKAGES_DIRECTORY: &str = "node_modules";

/// Finds a program in `PATH`, as a shell does. A name with a `/` is a path. Programs in the project
/// at `root` are ignored, because they would get the user's key.
#[must_use]
pub fn find_program(host: &HostEnvironment, name: &str, root: Option<&Path>) -> Option<PathBuf> {
    let is_ours = |path: &PathBuf| {
        path.is_absolute()
            && is_executable(path)
            && root.is_none_or(|root| {
                !path.starts_with(root) && path.canonicalize().is_ok_and(|real| !real.starts_with(root))
            })
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_ours);
    }
    let path = host.vars.get(OsStr::new("PATH"))?;
    std::env::split_paths(path).map(|directory| directory.join(name)).find(is_ours)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the paths that a sandbox has to show for running a program: each link on the way to its
/// file, and the directory of the file, or of all packages if it is in an npm package.
pub(crate) fn visible_paths(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut at = program.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = std::fs::read_link(&at) else { break };
        paths.push(at.clone());
        at = at.parent().map(|parent| parent.join(&target)).unwrap_or(target);
    }
    let Ok(file) = program.canonicalize() else { return paths };
    let packages =
        file.ancestors().filter(|path| path.file_name() == Some(OsStr::new(PACKAGES_DIRECTORY))).last();
    let directory = packages.or_else(|| file.parent()).filter(|directory| excludes_home(directory, home));
    paths.push(directory.unwrap_or(&file).to_owned());
    paths
}

/// Returns true for a directory that contains neither the home directory nor one of its parents.
fn excludes_home(directory: &Path, home: Option<&Path>) -> bool {
    directory.components().count() > 2 && home.is_none_or(|home| !home.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(path: &Path) -> HostEnvironment {
        HostEnvironment { vars: [("PATH".into(), path.into())].into(), home: None }
    }

    fn write_program(path: &Path, mode: u32) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_is_found_if_it_can_be_executed() {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path());
        assert_eq!(find_program(&host, "agent", None), None);
        let path = directory.path().join("agent");
        write_program(&path, 0o644);
        assert_eq!(find_program(&host, "agent", None), None);
        write_program(&path, 0o755);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program(&host, "agent", None), Some(path));
        assert_eq!(find_program(&host, "agent", Some(directory.path())), None, "the project's own");
        assert_eq!(find_program(&host, "./agent", None), None, "relative to what?");
    }

    #[test]
    fn links_and_packages_are_seen_and_no_home() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let file = home.join("lib/node_modules/@a/agent/bin/agent.js");
        write_program(&file, 0o755);
        let link = home.join("bin/agent");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::os::unix::fs::symlink("../lib/node_modules/@a/agent/bin/agent.js", &link).unwrap();
        assert_eq!(visible_paths(&link, Some(&home)), [link.clone(), home.join("lib/node_modules")]);
        let own = home.join("agent");
        write_program(&own, 0o755);
        assert_eq!(visible_paths(&own, Some(&home)), std::slice::from_ref(&own), "not all of the home");
        let elsewhere = home.join("share/agent/2.0/agent");
        write_program(&elsewhere, 0o755);
        assert_eq!(visible_paths(&elsewhere, Some(&home)), [home.join("share/agent/2.0")]);
    }
}
