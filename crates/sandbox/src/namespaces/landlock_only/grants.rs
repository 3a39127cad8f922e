//! Converts the steps that would build a root to Landlock's grants. Reads directories, changes
//! nothing.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::c_string::c_string;
use super::super::restrict::Grant;
use super::super::steps::{Access, Step};
use crate::SandboxError;

/// Rules of one command. A directory with something hidden in it takes one for each of its entries.
const MAX_GRANTS: usize = 8_192;

/// The grants of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Grants {
    /// Paths of the host, absolute, without links.
    pub(super) list: Vec<(PathBuf, Grant)>,
    /// Paths that the plan makes read-only and that lie where the command may write all the same.
    pub(super) kept: Vec<PathBuf>,
    binds: Vec<(PathBuf, PathBuf)>,
}

impl Grants {
    /// Returns the host's path of a path in the plan.
    pub(super) fn on_host(&self, path: &Path) -> PathBuf {
        let above = self
            .binds
            .iter()
            .rev()
            .find_map(|(at, source)| path.strip_prefix(at).ok().map(|rest| (source, rest)));
        match above {
            Some((source, rest)) if rest.as_os_str().is_empty() => source.clone(),
            Some((source, rest)) => source.join(rest),
            None => path.to_owned(),
        }
    }
}

/// Returns the grants for these steps.
///
/// # Errors
/// [`SandboxError::Refused`] where something can't be hidden: without mounts, what lies where a
/// command may write can be read by it.
pub(super) fn grants_for_steps(steps: &[Step<CString>]) -> Result<Grants, SandboxError> {
    let mut out = Grants::default();
    let (mut read, mut written, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Bind { path, source, access } => {
                let (at, source) = (absolute_path(path), host_path(source));
                out.binds.push((at, source.clone()));
                match access {
                    Access::ReadOnly => read.push(source),
                    Access::Writable => written.push(source),
                    Access::Device => out.list.push((source, Grant::Write)),
                }
            }
            Step::Layer { path, source } => {
                out.binds.push((absolute_path(path), host_path(source)));
                read.push(host_path(source));
            }
            Step::Proc { path } => read.push(absolute_path(path)),
            // Without mounts a file can't be shown in part: it is shown whole.
            Step::Mask { text, .. } if !text.is_empty() => {}
            Step::Mask { path, .. } => hidden.push(out.on_host(&absolute_path(path))),
            Step::Guard { path } => out.kept.push(out.on_host(&absolute_path(path))),
            Step::Base { path, .. } => {
                return Err(SandboxError::Refused(format!(
                    "the copy at `/{}` is mounted in namespaces of its own, which a command without any can't see",
                    host_path(path).display()
                )));
            }
            // There are no new places: programs find the host's, which nothing grants.
            Step::Directory { .. }
            | Step::File { .. }
            | Step::Link { .. }
            | Step::Scratch { .. }
            | Step::Terminals { .. } => {}
        }
    }
    if let Some(open) = hidden.iter().find(|path| written.iter().any(|above| path.starts_with(above))) {
        return Err(SandboxError::Refused(format!(
            "`{}` is to be hidden, and lies where the command may write; Landlock alone can't hide it",
            open.display()
        )));
    }
    let within = |path: &&PathBuf| written.iter().any(|above| path.starts_with(above));
    out.kept.extend(read.iter().filter(within).cloned());
    for path in read.iter().filter(|path| !within(path)) {
        grant_except_hidden(path, &hidden, &mut out.list)?;
    }
    out.list.extend(written.into_iter().map(|path| (path, Grant::Write)));
    Ok(out)
}

/// Grants a path except for the hidden files in it: if there are any, each of its entries by
/// itself.
fn grant_except_hidden(
    path: &Path,
    hidden: &[PathBuf],
    list: &mut Vec<(PathBuf, Grant)>,
) -> Result<(), SandboxError> {
    if hidden.iter().any(|one| path == one) {
        return Ok(());
    }
    if list.len() >= MAX_GRANTS {
        return Err(SandboxError::Refused(format!(
            "more than {MAX_GRANTS} rules are needed to hide what is listed in `{}`",
            path.display()
        )));
    }
    let mut beneath = hidden.iter().filter(|one| one.starts_with(path)).peekable();
    if beneath.peek().is_none() {
        list.push((path.to_owned(), Grant::Read));
        return Ok(());
    }
    // Names of files are no secret, what a hidden directory has is.
    if beneath.all(|one| fs::symlink_metadata(one).is_ok_and(|found| !found.is_dir())) {
        list.push((path.to_owned(), Grant::List));
    }
    let entries = fs::read_dir(path).map_err(|source| SandboxError::Path {
        what: "what is readable",
        path: path.to_owned(),
        source,
    })?;
    for entry in entries.flatten() {
        // A link grants nothing: what it leads to counts.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            grant_except_hidden(&entry.path(), hidden, list)?;
        }
    }
    Ok(())
}

fn absolute_path(path: &CString) -> PathBuf {
    Path::new("/").join(OsStr::from_bytes(path.as_bytes()))
}

fn host_path(path: &CString) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path.as_bytes()))
}

/// Converts the grants for the order.
pub(super) fn encode_grants(list: &[(PathBuf, Grant)]) -> Result<Vec<(CString, Grant)>, SandboxError> {
    list.iter().map(|(path, grant)| Ok((c_string(path.as_os_str())?, *grant))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    fn bind(path: &Path, access: Access) -> Step<CString> {
        Step::Bind { path: c(path.strip_prefix("/").unwrap()), source: c(path), access }
    }

    fn mask(path: &Path) -> Step<CString> {
        Step::Mask {
            path: c(path.strip_prefix("/").unwrap()),
            directory: path.is_dir(),
            text: CString::default(),
        }
    }

    #[test]
    fn what_is_hidden_is_left_out_and_the_rest_is_granted() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("listed/deep/inner")).unwrap();
        fs::create_dir_all(at("listed/closed")).unwrap();
        for name in ["listed/shown", "listed/deep/key", "listed/deep/inner/file", "listed/closed/key"] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("shown", at("listed/link")).unwrap();
        let listed = |masks: &[&str]| {
            let masks = masks.iter().map(|name| mask(&at(name)));
            let steps: Vec<_> = [bind(&at("listed"), Access::ReadOnly)].into_iter().chain(masks).collect();
            let mut list = grants_for_steps(&steps).unwrap().list;
            list.sort_by(|a, b| a.0.cmp(&b.0));
            list.into_iter()
                .map(|(path, grant)| (path.strip_prefix(place.path()).unwrap().display().to_string(), grant))
                .collect::<Vec<_>>()
        };
        let read = |name: &str| (name.to_owned(), Grant::Read);
        let list = |name: &str| (name.to_owned(), Grant::List);
        assert_eq!(listed(&[]), [read("listed")]);
        assert_eq!(listed(&["listed"]), []);
        assert_eq!(
            listed(&["listed/deep/key"]),
            [
                list("listed"),
                read("listed/closed"),
                list("listed/deep"),
                read("listed/deep/inner"),
                read("listed/shown"),
            ]
        );
        assert_eq!(listed(&["listed/closed"]), [read("listed/deep"), read("listed/shown")]);
    }

    #[test]
    fn what_cant_be_hidden_is_refused_and_what_cant_be_kept_is_known() {
        let root = Path::new("/w");
        let error = grants_for_steps(&[bind(root, Access::Writable), mask(Path::new("/w/key"))]).unwrap_err();
        assert!(error.to_string().contains("can't hide"), "{error}");
        let steps = [
            bind(root, Access::Writable),
            bind(Path::new("/w/listed"), Access::ReadOnly),
            Step::Guard { path: c(Path::new("w/.git")) },
        ];
        let found = grants_for_steps(&steps).unwrap();
        assert_eq!(found.list, [(root.to_owned(), Grant::Write)]);
        assert_eq!(found.kept, [Path::new("/w/.git"), Path::new("/w/listed")]);
    }

    #[test]
    fn a_copy_is_granted_by_its_own_name() {
        let steps = [
            Step::Bind {
                path: c(Path::new("w")),
                source: c(Path::new("/copies/1")),
                access: Access::Writable,
            },
            Step::Guard { path: c(Path::new("w/.git")) },
        ];
        let found = grants_for_steps(&steps).unwrap();
        assert_eq!(found.list, [(PathBuf::from("/copies/1"), Grant::Write)]);
        assert_eq!(found.kept, [Path::new("/copies/1/.git")]);
        assert_eq!(found.on_host(Path::new("/w/sub")), Path::new("/copies/1/sub"));
        assert_eq!(found.on_host(Path::new("/w")), Path::new("/copies/1"));
        assert_eq!(found.on_host(Path::new("/elsewhere")), Path::new("/elsewhere"));
    }
}
