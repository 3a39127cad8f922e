//! Converts the steps that would build a root to Landlock's grants. Reads directories, changes
//! nothing.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::c_string::to_c_string;
use super::super::landlock_rules::Grant;
use super::super::root_steps::{BindAccess, RootStep};
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
    pub(super) fn to_host_path(&self, path: &Path) -> PathBuf {
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
pub(super) fn grants_for_steps(steps: &[RootStep<CString>]) -> Result<Grants, SandboxError> {
    let mut out = Grants::default();
    let (mut read, mut written, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        match step {
            RootStep::Bind { path, source, access } => {
                let (at, source) = (to_absolute_path(path), to_path_buf(source));
                out.binds.push((at, source.clone()));
                match access {
                    BindAccess::ReadOnly => read.push(source),
                    BindAccess::Writable => written.push(source),
                    BindAccess::Device => out.list.push((source, Grant::Write)),
                }
            }
            RootStep::Layer { path, source } => {
                out.binds.push((to_absolute_path(path), to_path_buf(source)));
                read.push(to_path_buf(source));
            }
            RootStep::Proc { path } => read.push(to_absolute_path(path)),
            // Without mounts a file can't be shown in part: it is shown whole.
            RootStep::Mask { text, .. } if !text.is_empty() => {}
            RootStep::Mask { path, .. } => hidden.push(out.to_host_path(&to_absolute_path(path))),
            RootStep::Guard { path } => out.kept.push(out.to_host_path(&to_absolute_path(path))),
            RootStep::Base { path, .. } => {
                return Err(SandboxError::Refused(format!(
                    "the copy at `/{}` is mounted in namespaces of its own, which a command without any can't see",
                    to_path_buf(path).display()
                )));
            }
            // There are no new places: programs find the host's, which nothing grants.
            RootStep::Directory { .. }
            | RootStep::File { .. }
            | RootStep::Link { .. }
            | RootStep::Scratch { .. }
            | RootStep::Terminals { .. } => {}
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

fn to_absolute_path(path: &CString) -> PathBuf {
    Path::new("/").join(OsStr::from_bytes(path.as_bytes()))
}

fn to_path_buf(path: &CString) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path.as_bytes()))
}

/// Converts the grants for the order.
pub(super) fn encode_grants(list: &[(PathBuf, Grant)]) -> Result<Vec<(CString, Grant)>, SandboxError> {
    list.iter().map(|(path, grant)| Ok((to_c_string(path.as_os_str())?, *grant))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    fn bind(path: &Path, access: BindAccess) -> RootStep<CString> {
        RootStep::Bind { path: c(path.strip_prefix("/").unwrap()), source: c(path), access }
    }

    fn mask(path: &Path) -> RootStep<CString> {
        RootStep::Mask {
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
            let steps: Vec<_> =
                [bind(&at("listed"), BindAccess::ReadOnly)].into_iter().chain(masks).collect();
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
        let error =
            grants_for_steps(&[bind(root, BindAccess::Writable), mask(Path::new("/w/key"))]).unwrap_err();
        assert!(error.to_string().contains("can't hide"), "{error}");
        let steps = [
            bind(root, BindAccess::Writable),
            bind(Path::new("/w/listed"), BindAccess::ReadOnly),
            RootStep::Guard { path: c(Path::new("w/.git")) },
        ];
        let found = grants_for_steps(&steps).unwrap();
        assert_eq!(found.list, [(root.to_owned(), Grant::Write)]);
        assert_eq!(found.kept, [Path::new("/w/.git"), Path::new("/w/listed")]);
    }

    #[test]
    fn a_copy_is_granted_by_its_own_name() {
        let steps = [
            RootStep::Bind {
                path: c(Path::new("w")),
                source: c(Path::new("/copies/1")),
                access: BindAccess::Writable,
            },
            RootStep::Guard { path: c(Path::new("w/.git")) },
        ];
        let found = grants_for_steps(&steps).unwrap();
        assert_eq!(found.list, [(PathBuf::from("/copies/1"), Grant::Write)]);
        assert_eq!(found.kept, [Path::new("/copies/1/.git")]);
        assert_eq!(found.to_host_path(Path::new("/w/sub")), Path::new("/copies/1/sub"));
        assert_eq!(found.to_host_path(Path::new("/w")), Path::new("/copies/1"));
        assert_eq!(found.to_host_path(Path::new("/elsewhere")), Path::new("/elsewhere"));
    }
}
