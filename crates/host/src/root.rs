//! The root of the project that a command works on.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use journeyman_protocol::{InvalidPath, RelPath};

use crate::HostError;
use crate::config::Environment;

/// Returns the root of the project to work on: the directory `given`, or the repository that holds
/// the current directory, or the current directory. Symbolic links are resolved.
///
/// # Errors
/// [`HostError::Usage`] where it is no directory, or holds more than a project: the file system's
/// root, a home directory, or what holds the home directory.
pub fn project_root(environment: &Environment, given: Option<&Path>) -> Result<PathBuf, HostError> {
    let root = find_root(environment, given)?;
    match describe_wide_root(environment, &root) {
        None => Ok(root),
        Some(what) => Err(HostError::usage(format_args!(
            "{} {what} and is not a project; change to the project's directory, or name it with -C",
            root.display()
        ))),
    }
}

/// Returns the root that [`project_root`] would return; `None` in a directory that is no project,
/// for commands that need none.
///
/// # Errors
/// [`HostError::Usage`] where it is no directory.
pub fn find_project(environment: &Environment, given: Option<&Path>) -> Result<Option<PathBuf>, HostError> {
    let root = find_root(environment, given)?;
    Ok(describe_wide_root(environment, &root).is_none().then_some(root))
}

/// Describes a directory that holds more than a project.
fn describe_wide_root(environment: &Environment, root: &Path) -> Option<&'static str> {
    match resolved_home(environment) {
        _ if root.parent().is_none() => Some("is the root of the file system"),
        Some(home) if home == root => Some("is your home directory"),
        // A home of `/` says nothing: some containers have no other.
        Some(home) if home.parent().is_some() && home.starts_with(root) => Some("holds your home directory"),
        _ => None,
    }
}

/// Returns the root that [`project_root`] would return without refusing any: for lists of what
/// happened in a directory.
///
/// # Errors
/// [`HostError::Usage`] where it is no directory.
pub fn find_root(environment: &Environment, given: Option<&Path>) -> Result<PathBuf, HostError> {
    let path = given.map_or_else(|| environment.cwd.clone(), |given| environment.cwd.join(given));
    let root = std::fs::canonicalize(&path).map_err(|error| {
        HostError::usage(format_args!(
            "cannot work in {}: {error}; give another directory with -C",
            path.display()
        ))
    })?;
    if !root.is_dir() {
        return Err(HostError::usage(format_args!("{} is not a directory", path.display())));
    }
    Ok(match given {
        None => enclosing_repository(environment, &root).unwrap_or(root),
        Some(_) => root,
    })
}

/// Returns the path in the project at `root` of a file that a user names: from the current
/// directory, or from the root where only that has it. Names beside `given`, the directory of -C,
/// are from the root.
///
/// # Errors
/// [`InvalidPath`] where the name leads out of the project.
pub fn path_in_project(
    environment: &Environment,
    given: Option<&Path>,
    root: &Path,
    name: &str,
) -> Result<RelPath, InvalidPath> {
    let name = Path::new(name);
    let from_root = RelPath::parse(name.strip_prefix(root).unwrap_or(name).as_os_str().as_bytes());
    let cwd = std::fs::canonicalize(&environment.cwd).ok().filter(|_| given.is_none() && name.is_relative());
    let Some(below) = cwd.as_deref().and_then(|cwd| cwd.strip_prefix(root).ok()) else { return from_root };
    match from_root {
        Ok(path) if !environment.cwd.join(name).exists() && root.join(path.as_path()).exists() => Ok(path),
        _ => RelPath::parse(join_names(below, name).as_os_str().as_bytes()),
    }
}

/// Joins two relative paths, where `..` takes the name before it away.
fn join_names(below: &Path, name: &Path) -> PathBuf {
    let mut joined = below.to_owned();
    for component in name.components() {
        match component {
            Component::ParentDir if joined.file_name().is_some() => drop(joined.pop()),
            component => joined.push(component),
        }
    }
    joined
}

/// Describes a root that isn't the current directory, because that lies in a repository.
#[must_use]
pub fn describe_root(environment: &Environment, given: Option<&Path>, root: &Path) -> Option<String> {
    let cwd = std::fs::canonicalize(&environment.cwd).ok().filter(|_| given.is_none())?;
    let below = cwd.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty())?;
    Some(format!(
        "the project is the repository {}, not {} alone (-C . says so)",
        root.display(),
        below.display()
    ))
}

/// Returns the nearest directory above `directory`, or itself, that is a git repository of the same
/// owner. A repository in the home directory, or above it, is no project.
fn enclosing_repository(environment: &Environment, directory: &Path) -> Option<PathBuf> {
    let home = resolved_home(environment);
    let owner = std::fs::metadata(directory).ok()?.uid();
    directory
        .ancestors()
        .take_while(|above| home.as_deref().is_none_or(|home| !home.starts_with(above)))
        // Another user's repository, such as one in /tmp, has no say over what lies in it.
        .take_while(|above| std::fs::metadata(above).is_ok_and(|found| found.uid() == owner))
        .find(|above| std::fs::symlink_metadata(above.join(".git")).is_ok())
        .map(Path::to_owned)
}

fn resolved_home(environment: &Environment) -> Option<PathBuf> {
    environment.home.as_ref().and_then(|home| std::fs::canonicalize(home).ok())
}
