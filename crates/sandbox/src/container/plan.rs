//! Plans a container for a request. Reads the file system, changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::host_files::HostFiles;
use crate::namespaces::root_plan::{
    RESERVED_PATHS, RESERVED_TREE_COUNT, existing_protected, resolve_copy, resolve_masked,
};
use crate::request::{Request, WriteMode};
use crate::toolchain::is_at_or_above;
use crate::{Network, ProjectCopy, SandboxError};

/// Mounts of one container: far above what toolchains need, and quick to make.
const MAX_MOUNTS: usize = 512;
/// The user `nobody`, on every Linux. Root's commands run as this user where they write nothing.
const NOBODY_ID: u32 = 65_534;
/// Private directories besides the home, and their shares in eighths of
/// [`crate::Limits::scratch_bytes`]. Another eighth is `/dev/shm`'s, whose size is a setting of its
/// own.
const SCRATCH_SHARES: [(&str, u64); 2] = [("/tmp", 3), ("/var/tmp", 1)];
const HOME_SHARE: u64 = 3;

/// The contents of a path in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerMount {
    /// The host's file or directory, told by device and inode besides, because a name may come to
    /// stand for another.
    Bind { source: String, identity: (u64, u64), read_only: bool },
    /// Memory: the user's own directory, of so many bytes.
    Scratch { bytes: u64 },
    /// A directory that looks empty.
    Hidden,
}

/// The properties of a container, by which a warm one is found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerPlan {
    /// By path inside; parents sort before what lies in them.
    pub(super) places: BTreeMap<String, ContainerMount>,
    /// User and group of commands.
    pub(super) owner: (u32, u32),
    /// True if there is a network.
    pub(super) network: bool,
    pub(super) shared_memory: u64,
    pub(super) processes: u64,
    pub(super) memory: u64,
    /// The limits of a process: name and value.
    pub(super) limits: Vec<(&'static str, u64)>,
}

/// The user that runs commands: the agent's own user and group, and whether that is root.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentUser {
    pub(super) user: u32,
    pub(super) group: u32,
}

/// Plans a container, and returns the plan with the command's working directory.
pub(super) fn plan_container(
    request: &Request,
    agent: AgentUser,
    memory: u64,
) -> Result<(ContainerPlan, String), SandboxError> {
    let home = request.env_variable("HOME").map(Path::new).filter(|home| home.is_absolute());
    let root = resolve_listed_path("the project's root", &request.root, &HostFiles::default(), home)?;
    let copy = match &request.base {
        None => None,
        Some(ProjectCopy::Directory { path, .. }) => Some(resolve_copy(path, &root)?),
        Some(ProjectCopy::Mounted(_)) => {
            return Err(SandboxError::Refused(
                "the copy is mounted in namespaces of its own, which a container can't see; use another kind of \
                 copy, or the back-end `namespaces`"
                    .to_owned(),
            ));
        }
    };
    let view =
        copy.as_ref().map_or_else(HostFiles::default, |copy| HostFiles::new(root.clone(), copy.clone()));
    if !view.is_dir(&root) {
        return Err(refused_path_error(&request.root, "the project's root is not a directory"));
    }
    let writable = request.write == WriteMode::Direct;
    let owner = command_user(&view.host_path(&root), writable, agent)?;
    let mut places =
        MountTable { view: &view, copied: copy.map(|copy| (root.clone(), copy)), places: BTreeMap::new() };
    places.add_scratch(home, request.limits.scratch_bytes)?;
    places.add_bind(&root, !writable)?;
    for (what, list, read_only) in [
        ("a read-only path", &request.read_only, true),
        ("a layered path", &request.layered, true),
        ("a writable path", &request.writable, false),
    ] {
        for path in list {
            // [`resolve_listed_path`] refuses a relative path.
            if path.is_absolute() && view.resolve(path, |_, _| ()).is_err() {
                continue;
            }
            let real = resolve_listed_path(what, path, &view, home)?;
            if path.starts_with(&request.root) && !real.starts_with(&root) {
                return Err(refused_path_error(
                    path,
                    "a link in the project leads this listed path out of it",
                ));
            }
            if real != root || read_only {
                places.add_bind(&real, read_only)?;
            }
        }
    }
    let cwd = view.resolve(&request.cwd, |_, _| ()).map_err(|source| SandboxError::Path {
        what: "the working directory",
        path: request.cwd.clone(),
        source,
    })?;
    if !places.shows_host(&cwd) {
        let reason = "the working directory lies neither in the project nor in a listed path";
        return Err(refused_path_error(&request.cwd, reason));
    }
    for path in existing_protected(request, &root, &view)? {
        places.add_bind(&path, true)?;
    }
    for path in resolve_masked(&request.masked, &view)? {
        places.add_mask(&path)?;
    }
    if places.places.len() > MAX_MOUNTS {
        return Err(SandboxError::Refused(format!("more than {MAX_MOUNTS} paths are listed")));
    }
    let cwd = path_to_utf8(&cwd)?;
    let limits = resource_limits(request)?;
    let plan = ContainerPlan {
        places: places.places,
        owner,
        network: request.network != Network::Off,
        shared_memory: request.limits.scratch_bytes / 8,
        processes: request.limits.processes,
        memory: request.limits.memory.unwrap_or(memory),
        limits,
    };
    Ok((plan, cwd))
}

/// Returns the limits of each process. The number of processes isn't among them: the kernel counts
/// it by user, over the whole machine.
fn resource_limits(request: &Request) -> Result<Vec<(&'static str, u64)>, SandboxError> {
    let given = &request.limits;
    if given.address_space.is_some() {
        return Err(SandboxError::Refused(
            "a container can't bound the address space of a process; bound its memory instead".to_owned(),
        ));
    }
    let mut limits = vec![("core", 0), ("fsize", given.file_bytes), ("nofile", given.open_files)];
    limits.extend(given.cpu.map(|cpu| ("cpu", cpu.as_secs() + u64::from(cpu.subsec_nanos() > 0))));
    Ok(limits)
}

/// Returns the user and group of commands. Root's commands run as the owner of the project, so that
/// the owner owns what they write.
fn command_user(root: &Path, writable: bool, agent: AgentUser) -> Result<(u32, u32), SandboxError> {
    if agent.user != 0 {
        return Ok((agent.user, agent.group));
    }
    let error = |source| SandboxError::Path { what: "the project's root", path: root.to_owned(), source };
    let found = std::fs::metadata(root).map_err(error)?;
    match (found.uid(), found.gid()) {
        (0, _) if !writable => Ok((NOBODY_ID, NOBODY_ID)),
        (0, _) => Err(refused_path_error(
            root,
            "commands in a container never run as root, and this project belongs to root, so they couldn't write to \
             it: give it to a user (chown -R), whose commands they then are, or use the back-end `namespaces`",
        )),
        (user, 0) => Ok((user, NOBODY_ID)),
        (user, group) => Ok((user, group)),
    }
}

struct MountTable<'a> {
    view: &'a HostFiles,
    /// The root, and the copy that is shown there.
    copied: Option<(PathBuf, PathBuf)>,
    places: BTreeMap<String, ContainerMount>,
}

impl MountTable<'_> {
    /// Adds private directories for temporary files and the home; nothing of the real ones.
    fn add_scratch(&mut self, home: Option<&Path>, bytes: u64) -> Result<(), SandboxError> {
        for (at, share) in SCRATCH_SHARES {
            self.places.insert(at.to_owned(), ContainerMount::Scratch { bytes: bytes / 8 * share });
        }
        let reserved = |home: &Path| {
            RESERVED_PATHS.iter().take(RESERVED_TREE_COUNT).any(|beneath| home.starts_with(beneath))
        };
        if let Some(home) = home.filter(|home| home.parent().is_some() && !reserved(home)) {
            self.places
                .insert(path_to_utf8(home)?, ContainerMount::Scratch { bytes: bytes / 8 * HOME_SHARE });
        }
        Ok(())
    }

    /// Binds the host's file at a path without links. Of two calls for a path, the later one
    /// counts: callers add the stricter last.
    fn add_bind(&mut self, path: &Path, read_only: bool) -> Result<(), SandboxError> {
        let copied =
            self.copied.as_ref().and_then(|(root, copy)| Some(copy.join(path.strip_prefix(root).ok()?)));
        // Joining nothing leaves a slash at the end, which the daemon takes amiss.
        let source = copied.unwrap_or_else(|| path.to_owned()).components().collect::<PathBuf>();
        let error =
            |source| SandboxError::Path { what: "a path that is shown", path: path.to_owned(), source };
        let found = std::fs::symlink_metadata(&source).map_err(error)?;
        if found.is_symlink() {
            return Err(refused_path_error(path, "a link has taken this path's place meanwhile"));
        }
        let place = ContainerMount::Bind {
            source: path_to_utf8(&source)?,
            identity: (found.dev(), found.ino()),
            read_only,
        };
        self.places.insert(path_to_utf8(path)?, place);
        Ok(())
    }

    fn add_mask(&mut self, path: &Path) -> Result<(), SandboxError> {
        let Ok(found) = self.view.metadata(path) else { return Ok(()) };
        if !self.shows_host(path) {
            return Ok(());
        }
        let place = if found.is_dir() {
            ContainerMount::Hidden
        } else {
            let null = std::fs::symlink_metadata("/dev/null").map_err(|source| SandboxError::Path {
                what: "what masks a file",
                path: "/dev/null".into(),
                source,
            })?;
            let identity = (null.dev(), null.ino());
            ContainerMount::Bind { source: "/dev/null".to_owned(), identity, read_only: true }
        };
        self.places.insert(path_to_utf8(path)?, place);
        Ok(())
    }

    fn shows_host(&self, path: &Path) -> bool {
        shows_host(&self.places, path)
    }
}

/// Returns true if the host's files are at a path.
fn shows_host(places: &BTreeMap<String, ContainerMount>, path: &Path) -> bool {
    let covers = path.ancestors().find_map(|above| places.get(above.to_str()?));
    matches!(covers, Some(ContainerMount::Bind { .. }))
}

impl ContainerPlan {
    /// Returns true if a command sees a directory of the host's, under any name.
    pub(super) fn shows_host(&self, path: &Path) -> bool {
        let by_source = |place: &ContainerMount| match place {
            ContainerMount::Bind { source, .. } => path.starts_with(source),
            ContainerMount::Scratch { .. } | ContainerMount::Hidden => false,
        };
        shows_host(&self.places, path) || self.places.values().any(by_source)
    }

    /// Returns the private directories, each with the names that are in it from the beginning: what
    /// is mounted beneath.
    pub(super) fn scratch_entries(&self) -> Vec<&str> {
        let is_scratch = |place: &ContainerMount| matches!(place, ContainerMount::Scratch { .. });
        let mut all: Vec<&str> =
            self.places.iter().filter(|(_, place)| is_scratch(place)).map(|(at, _)| at.as_str()).collect();
        all.extend(["/dev/shm", "/dev/mqueue"]);
        all.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Resolves a path that becomes the command's own, and refuses what would show or change too much.
fn resolve_listed_path(
    what: &'static str,
    path: &Path,
    view: &HostFiles,
    home: Option<&Path>,
) -> Result<PathBuf, SandboxError> {
    if !path.is_absolute() {
        return Err(refused_path_error(path, &format!("{what} must be an absolute path")));
    }
    let error = |source| SandboxError::Path { what, path: path.to_owned(), source };
    let real = view.resolve(path, |_, _| ()).map_err(error)?;
    if RESERVED_PATHS.iter().any(|reserved| real == Path::new(reserved))
        || RESERVED_PATHS.iter().take(RESERVED_TREE_COUNT).any(|whole| real.starts_with(whole))
    {
        return Err(refused_path_error(
            path,
            &format!("{what} is a system directory; name a project beneath it"),
        ));
    }
    if home.is_some_and(|home| home.parent().is_some() && is_at_or_above(&real, home)) {
        let reason = format!(
            "{what} is the home directory or above it, which would show keys and settings to commands; name a \
             project beneath it"
        );
        return Err(refused_path_error(path, &reason));
    }
    Ok(real)
}

/// Returns a path as text, because the daemon takes nothing else.
fn path_to_utf8(path: &Path) -> Result<String, SandboxError> {
    to_utf8("path", path.as_os_str())
}

/// Converts text for the daemon, which takes UTF-8 alone.
pub(super) fn to_utf8(what: &str, given: &OsStr) -> Result<String, SandboxError> {
    match given.to_str() {
        Some(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(SandboxError::Refused(format!(
            "a container takes text alone, and the {what} `{}` isn't; use the back-end `namespaces`",
            given.display()
        ))),
    }
}

fn refused_path_error(path: &Path, reason: &str) -> SandboxError {
    SandboxError::RefusedPath { path: path.to_owned(), reason: reason.to_owned() }
}
