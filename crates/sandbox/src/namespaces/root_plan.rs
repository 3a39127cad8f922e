//! Plans the steps that build the root of a request. Reads the file system, changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::c_string::to_c_string;
use super::hidden_files::{self, HiddenFiles};
use super::root_steps::{BindAccess, RootStep};
use crate::credentials::blank_git_settings;
use crate::host_files::HostFiles;
use crate::request::{Request, StdioMode, WriteMode};
use crate::spill::check_spill_hidden;
use crate::toolchain::{SYSTEM_DIRECTORIES, is_at_or_above};
use crate::{MountedTree, Network, ProjectCopy, SandboxError};

/// Mounts of one command; far above what toolchains need, far below the kernel's 100,000.
const MAX_MOUNTS: usize = 512;

/// Paths with links out of the project that are kept read-only by a mount each: 20 ms in all.
const MAX_LINKED_PATHS: usize = 512;

/// Paths that are never a project's root nor writable, whether or not they exist. For the first
/// [`RESERVED_TREE_COUNT`], the same holds for everything beneath.
pub(crate) const RESERVED_PATHS: [&str; 22] = [
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/boot",
    "/",
    "/usr",
    "/usr/local",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/var",
    "/home",
    "/root",
    "/tmp",
    "/var/tmp",
    "/srv",
    "/mnt",
];
/// The number of paths, from the first, that are reserved with everything beneath.
pub(crate) const RESERVED_TREE_COUNT: usize = 5;

const DEVICE_PATHS: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// The mount at a path. Where a request names a path twice, the later variant counts: the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PlannedMount {
    Proc,
    Terminals,
    Device,
    Scratch(u32),
    Writable,
    Layer,
    ReadOnly,
    /// The copy that stands for the root.
    Base(BindAccess),
}

impl PlannedMount {
    /// Returns true if the host's files are there, so that files beneath exist inside too.
    fn shows_host(self) -> bool {
        matches!(self, Self::Writable | Self::Layer | Self::ReadOnly | Self::Base(_))
    }
}

/// The steps, and where the command starts.
#[derive(Debug)]
pub(super) struct RootPlan {
    pub(super) steps: Vec<RootStep<CString>>,
    pub(super) cwd: CString,
}

/// Plans the root of a request that user `uid` runs, in the namespaces of `joined` if it has any.
pub(super) fn plan_root(
    request: &Request,
    joined: Option<&MountedTree>,
    uid: u32,
    memory: &HiddenFiles,
) -> Result<RootPlan, SandboxError> {
    let mut builder = PlanBuilder::default();
    builder.add_system(&request.network)?;
    if matches!(request.streams, StdioMode::Terminal { .. }) {
        // The terminal that whoever opens it is controlled by: the command's own, as its session
        // has no other.
        builder.mounts.insert("/dev/tty".into(), PlannedMount::Device);
    }
    let home = request.env_variable("HOME").map(Path::new).filter(|home| home.is_absolute());
    builder.add_home(home)?;
    let root = builder.add_project(request, joined, home)?;
    builder.add_listed_paths(request, &root, home)?;
    let cwd = builder.view.resolve(&request.cwd, |_, _| ());
    let cwd = cwd.map_err(|source| SandboxError::Path {
        what: "the working directory",
        path: request.cwd.clone(),
        source,
    })?;
    if !builder.shows_host_path(&cwd) {
        return Err(refused_path_error(
            &request.cwd,
            "the working directory lies neither in the project nor in a listed path",
        ));
    }
    if let Some(spill) = &request.spill {
        check_spill_hidden(spill, |directory| builder.shows_host_path(directory))?;
    }
    let protected = existing_protected(request, &root, &builder.view)?;
    let mut masked = resolve_masked(&request.masked, &builder.view)?;
    masked.extend(memory.find_cached(uid));
    masked.extend(layer_directories(request));
    // What lies in one that is hidden isn't there to be hidden.
    let mut sockets = builder.visible_sockets(&read_socket_list());
    sockets.retain(|socket| !masked.iter().any(|hidden| socket.starts_with(hidden)));
    masked.extend(sockets);
    let cwd = to_c_string(cwd.as_os_str())?;
    let blanked = blank_git_settings(&request.protected, &root, &builder.view);
    Ok(RootPlan { steps: builder.into_steps(&protected, &masked, &blanked)?, cwd })
}

#[derive(Default)]
struct PlanBuilder {
    mounts: BTreeMap<PathBuf, PlannedMount>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// The host, and once the root is known, the base in its place.
    view: HostFiles,
    /// A directory that is shown at the root, whose own name means nothing inside.
    copy: Option<(PathBuf, PathBuf)>,
    /// The base comes along as a descriptor.
    joined: bool,
}

impl PlanBuilder {
    fn add_mount(&mut self, at: PathBuf, mount: PlannedMount) {
        let stands = self.mounts.entry(at).or_insert(mount);
        *stands = match (*stands, mount) {
            (PlannedMount::Base(_), PlannedMount::ReadOnly | PlannedMount::Layer) => {
                PlannedMount::Base(BindAccess::ReadOnly)
            }
            (stands, mount) => stands.max(mount),
        };
    }

    fn add_system(&mut self, network: &Network) -> Result<(), SandboxError> {
        for directory in SYSTEM_DIRECTORIES {
            self.add_if_present(Path::new(directory), PlannedMount::ReadOnly)?;
        }
        if *network == Network::Host {
            // Often a link into `/run`, which isn't mounted.
            self.add_if_present(Path::new("/etc/resolv.conf"), PlannedMount::ReadOnly)?;
        }
        self.mounts.insert("/proc".into(), PlannedMount::Proc);
        self.mounts.insert("/tmp".into(), PlannedMount::Scratch(0o1777));
        self.mounts.insert("/dev/shm".into(), PlannedMount::Scratch(0o1777));
        self.mounts.insert("/dev/pts".into(), PlannedMount::Terminals);
        self.mounts.extend(DEVICE_PATHS.map(|device| (device.into(), PlannedMount::Device)));
        self.links.extend(DEVICE_LINKS.map(|(at, to)| (at.into(), to.into())));
        self.links.insert("/var/tmp".into(), "../tmp".into());
        Ok(())
    }

    /// Adds a private directory at the home's path, so that programs find one, and nothing of the
    /// real one.
    fn add_home(&mut self, home: Option<&Path>) -> Result<(), SandboxError> {
        let Some(home) = home.filter(|home| home.parent().is_some()) else { return Ok(()) };
        let real = match self.resolve(home) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => home.to_owned(),
            Err(source) => {
                return Err(SandboxError::Path { what: "the home directory", path: home.into(), source });
            }
        };
        let reserved =
            RESERVED_PATHS.iter().take(RESERVED_TREE_COUNT).any(|beneath| real.starts_with(beneath));
        // Where the system is read-only, a place to mount on can't be made.
        if !reserved
            && (real.is_dir() || self.covering_mount(&real).is_none_or(|(_, mount)| !mount.shows_host()))
        {
            self.add_mount(real, PlannedMount::Scratch(0o700));
        }
        Ok(())
    }

    fn add_project(
        &mut self,
        request: &Request,
        joined: Option<&MountedTree>,
        home: Option<&Path>,
    ) -> Result<PathBuf, SandboxError> {
        let root = self.resolve_listed("the project's root", &request.root, home)?;
        if !self.view.is_dir(&root) {
            return Err(refused_path_error(&request.root, "the project's root is not a directory"));
        }
        let access =
            if request.write == WriteMode::Direct { BindAccess::Writable } else { BindAccess::ReadOnly };
        let mount = match &request.base {
            Some(base) => self.use_project_copy(base, joined, &root, access)?,
            None if access == BindAccess::Writable => PlannedMount::Writable,
            None => PlannedMount::ReadOnly,
        };
        // A home that is the root was refused; a scratch place of the same name gives way.
        self.mounts.remove(&root);
        self.add_mount(root.clone(), mount);
        Ok(root)
    }

    /// Makes the base the source of the files beneath the root from now on.
    fn use_project_copy(
        &mut self,
        base: &ProjectCopy,
        joined: Option<&MountedTree>,
        root: &Path,
        access: BindAccess,
    ) -> Result<PlannedMount, SandboxError> {
        match base {
            ProjectCopy::Directory { path, .. } => {
                let copy = resolve_copy(path, root)?;
                self.view = HostFiles::new(root.to_owned(), copy.clone());
                self.copy = Some((root.to_owned(), copy));
            }
            ProjectCopy::Mounted(mounted) if mounted.path != root => {
                return Err(refused_path_error(
                    &mounted.path,
                    "the mount is one of another directory than the root",
                ));
            }
            ProjectCopy::Mounted(mounted) if joined.is_none() => {
                // The root's own name leads to the real one out there.
                return Err(refused_path_error(&mounted.path, "the mount's namespaces must be joined"));
            }
            ProjectCopy::Mounted(_) => {}
        }
        if let Some(joined) = joined {
            let reach = PathBuf::from(format!("/proc/self/fd/{}", joined.root.as_raw_fd()));
            self.view = HostFiles::new(root.to_owned(), reach);
            self.joined = true;
        }
        Ok(PlannedMount::Base(access))
    }

    /// Resolves a path that becomes the command's own, and refuses what would show or change too
    /// much.
    fn resolve_listed(
        &mut self,
        what: &'static str,
        path: &Path,
        home: Option<&Path>,
    ) -> Result<PathBuf, SandboxError> {
        let error = |source| SandboxError::Path { what, path: path.to_owned(), source };
        if !path.is_absolute() {
            return Err(refused_path_error(path, &format!("{what} must be an absolute path")));
        }
        let real = self.resolve(path).map_err(error)?;
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
                "{what} is the home directory or above it, which would show keys and settings to commands; \
                 name a project beneath it"
            );
            return Err(refused_path_error(path, &reason));
        }
        Ok(real)
    }

    fn add_listed_paths(
        &mut self,
        request: &Request,
        root: &Path,
        home: Option<&Path>,
    ) -> Result<(), SandboxError> {
        let lists = [
            ("a read-only path", &request.read_only, PlannedMount::ReadOnly),
            ("a layered path", &request.layered, PlannedMount::Layer),
            ("a writable path", &request.writable, PlannedMount::Writable),
        ];
        for (what, list, mount) in lists {
            for path in list {
                // A relative path is refused below.
                if path.is_absolute() && self.view.resolve(path, |_, _| ()).is_err() {
                    continue;
                }
                let real = self.resolve_listed(what, path, home)?;
                if path.starts_with(&request.root) && !real.starts_with(root) {
                    return Err(refused_path_error(
                        path,
                        "a link in the project leads this listed path out of it",
                    ));
                }
                let mount = if mount == PlannedMount::Layer && !self.view.is_dir(&real) {
                    PlannedMount::ReadOnly
                } else {
                    mount
                };
                self.add_mount(real, mount);
            }
        }
        if self.mounts.len() > MAX_MOUNTS {
            return Err(SandboxError::Refused(format!("more than {MAX_MOUNTS} paths are listed")));
        }
        Ok(())
    }

    fn add_if_present(&mut self, path: &Path, mount: PlannedMount) -> Result<(), SandboxError> {
        match self.resolve(path) {
            Ok(real) => {
                self.add_mount(real, mount);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(SandboxError::Path { what: "a system path", path: path.to_owned(), source }),
        }
    }

    /// Returns the path without links; links on the way are made inside too, so that both names
    /// work.
    fn resolve(&mut self, path: &Path) -> io::Result<PathBuf> {
        let Self { view, links, .. } = self;
        view.resolve(path, |link, target| drop(links.insert(link.to_owned(), target.to_owned())))
    }

    /// Returns the innermost mount that contains a path.
    fn covering_mount(&self, path: &Path) -> Option<(&Path, PlannedMount)> {
        path.ancestors()
            .find_map(|above| self.mounts.get_key_value(above))
            .map(|(at, mount)| (at.as_path(), *mount))
    }

    /// Returns true if a path of the host is the same inside.
    fn shows_host_path(&self, path: &Path) -> bool {
        self.covering_mount(path).is_some_and(|(_, mount)| mount.shows_host())
    }

    /// Sockets that programs of the host have in what is shown: whoever may look a socket up may
    /// connect to it, however it is mounted. Those of other commands aren't in the list, so that
    /// one in the background can still be talked to.
    fn visible_sockets(&self, list: &str) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = hidden_files::parse_socket_paths(list)
            .filter_map(|bound| {
                let bound = Path::new(bound);
                let by_link =
                    self.links.iter().filter(|(_, target)| target.is_absolute()).find_map(
                        |(link, target)| bound.strip_prefix(link).ok().map(|rest| target.join(rest)),
                    );
                [Some(bound.to_owned()), by_link]
                    .into_iter()
                    .flatten()
                    .find(|path| self.shows_host_path(path))
            })
            .collect();
        found.sort();
        found.dedup();
        found.truncate(MAX_MOUNTS);
        found
    }

    fn into_steps(
        self,
        protected: &[PathBuf],
        masked: &[PathBuf],
        blanked: &[(PathBuf, CString)],
    ) -> Result<Vec<RootStep<CString>>, SandboxError> {
        let mut out = StepBuilder {
            view: &self.view,
            copy: self.copy.as_ref(),
            joined: self.joined,
            done: BTreeMap::new(),
            made: BTreeSet::new(),
            steps: Vec::with_capacity(64),
        };
        // Parents sort before their entries.
        for (at, mount) in &self.mounts {
            let covered = at.parent().and_then(|parent| out.covering_mount(parent));
            if *mount == PlannedMount::ReadOnly && covered == Some(PlannedMount::ReadOnly) {
                continue;
            }
            out.add_mount(at, *mount)?;
        }
        for (at, target) in &self.links {
            let parent = at.parent().unwrap_or(at);
            if !self.shows_host_path(parent) && !self.mounts.contains_key(at) {
                out.add_directories(parent)?;
                let target = to_c_string(target.as_os_str())?;
                out.steps.push(RootStep::Link { path: relative_to_root(at)?, target });
            }
        }
        for path in protected {
            out.steps.push(RootStep::Guard { path: relative_to_root(path)? });
        }
        for path in masked.iter().filter(|path| self.shows_host_path(path)) {
            // A path that is gone or became a link shows no file of the host.
            if let Ok(found) = self.view.metadata(path) {
                let text = CString::default();
                out.steps.push(RootStep::Mask {
                    path: relative_to_root(path)?,
                    directory: found.is_dir(),
                    text,
                });
            }
        }
        for (path, text) in blanked {
            out.steps.push(RootStep::Mask {
                path: relative_to_root(path)?,
                directory: false,
                text: text.clone(),
            });
        }
        Ok(out.steps)
    }
}

struct StepBuilder<'a> {
    view: &'a HostFiles,
    copy: Option<&'a (PathBuf, PathBuf)>,
    joined: bool,
    done: BTreeMap<PathBuf, PlannedMount>,
    made: BTreeSet<PathBuf>,
    steps: Vec<RootStep<CString>>,
}

impl StepBuilder<'_> {
    fn covering_mount(&self, path: &Path) -> Option<PlannedMount> {
        path.ancestors().find_map(|above| self.done.get(above)).copied()
    }

    /// Makes a directory and those above it, where they don't exist by what is mounted.
    fn add_directories(&mut self, path: &Path) -> Result<(), SandboxError> {
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|above| {
                above.parent().is_some() && !self.made.contains(*above) && !self.done.contains_key(*above)
            })
            .collect();
        if self.covering_mount(path).is_some_and(PlannedMount::shows_host) {
            return Ok(());
        }
        for directory in missing.into_iter().rev() {
            self.steps.push(RootStep::Directory { path: relative_to_root(directory)? });
            self.made.insert(directory.to_owned());
        }
        Ok(())
    }

    fn add_mount(&mut self, at: &Path, mount: PlannedMount) -> Result<(), SandboxError> {
        let is_file = mount == PlannedMount::Device || (mount.shows_host() && !self.view.is_dir(at));
        if !is_file {
            self.add_directories(at)?;
        } else if let Some(parent) = at.parent() {
            self.add_directories(parent)?;
            if !self.covering_mount(at).is_some_and(PlannedMount::shows_host) {
                self.steps.push(RootStep::File { path: relative_to_root(at)? });
            }
        }
        let (path, source) = (relative_to_root(at)?, to_c_string(self.source_path(at).as_os_str())?);
        self.steps.push(match mount {
            PlannedMount::Proc => RootStep::Proc { path },
            PlannedMount::Terminals => RootStep::Terminals { path },
            PlannedMount::Scratch(mode) => RootStep::Scratch { path, mode },
            PlannedMount::Layer => RootStep::Layer { path, source },
            PlannedMount::Device => RootStep::Bind { path, source, access: BindAccess::Device },
            PlannedMount::Writable => RootStep::Bind { path, source, access: BindAccess::Writable },
            PlannedMount::ReadOnly => RootStep::Bind { path, source, access: BindAccess::ReadOnly },
            PlannedMount::Base(access) if self.joined => RootStep::Base { path, access },
            PlannedMount::Base(access) => RootStep::Bind { path, source, access },
        });
        self.done.insert(at.to_owned(), mount);
        Ok(())
    }

    /// Returns the host's path of the file that is mounted at a path; for a mounted base, the path
    /// in its namespace.
    fn source_path(&self, at: &Path) -> PathBuf {
        let copied = self.copy.and_then(|(root, copy)| Some(copy.join(at.strip_prefix(root).ok()?)));
        copied.unwrap_or_else(|| at.to_owned())
    }
}

/// Returns the directory that stands for the root, without links.
pub(crate) fn resolve_copy(path: &Path, root: &Path) -> Result<PathBuf, SandboxError> {
    let error = |source| SandboxError::Path { what: "the copy", path: path.to_owned(), source };
    let real = path.canonicalize().map_err(error)?;
    if !path.is_absolute() || !real.is_dir() {
        return Err(refused_path_error(path, "the copy must be a directory, named absolutely"));
    }
    if real.starts_with(root) || root.starts_with(&real) {
        return Err(refused_path_error(path, "the copy may be neither in the project nor above it"));
    }
    Ok(real)
}

/// Returns every socket of the host's network namespace. Where the list can't be read, none is
/// known.
fn read_socket_list() -> String {
    std::fs::read("/proc/net/unix")
        .map(|list| String::from_utf8_lossy(&list).into_owned())
        .unwrap_or_default()
}

/// Returns the directories that a base is made of: nobody inside may reach them by their own names,
/// should a listed path show them.
fn layer_directories(request: &Request) -> Vec<PathBuf> {
    let layers = match &request.base {
        None => Vec::new(),
        Some(ProjectCopy::Directory { path, layers, .. }) => vec![path.clone(), layers.clone()],
        Some(ProjectCopy::Mounted(mounted)) => mounted.layers.clone(),
    };
    let real: Vec<PathBuf> = layers.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    // What lies in one that is hidden isn't there to be hidden.
    let outermost = |path: &&PathBuf| !real.iter().any(|other| other != *path && path.starts_with(other));
    real.iter().filter(outermost).cloned().collect()
}

/// Returns the protected paths that exist, and refuses links: a link's target could be changed, and
/// the link replaced.
pub(crate) fn existing_protected(
    request: &Request,
    root: &Path,
    view: &HostFiles,
) -> Result<Vec<PathBuf>, SandboxError> {
    let mut found = Vec::new();
    if request.write == WriteMode::ReadOnly {
        return Ok(found);
    }
    let linked = request.linked.iter().filter(|_| request.base.is_none());
    if linked.clone().count() > MAX_LINKED_PATHS {
        return Err(SandboxError::Refused(format!(
            "more than {MAX_LINKED_PATHS} files of the project are hard links to files outside of it, which a command that \
             writes would change; copy the project in a way that doesn't link its files"
        )));
    }
    for relative in request.protected.iter().chain(linked) {
        let mut path = root.to_owned();
        let mut exists = true;
        for component in relative.components() {
            path.push(OsStr::from_bytes(component));
            match view.metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    return Err(refused_path_error(
                        &path,
                        "a protected path may not be, or lie beyond, a symbolic link",
                    ));
                }
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    exists = false;
                    break;
                }
                Err(source) => return Err(SandboxError::Path { what: "a protected path", path, source }),
            }
        }
        if exists {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the paths to mask, without links; paths that don't exist are left out.
pub(crate) fn resolve_masked(paths: &[PathBuf], view: &HostFiles) -> Result<Vec<PathBuf>, SandboxError> {
    let mut found = Vec::new();
    for path in paths {
        match view.resolve(path, |_, _| ()) {
            Ok(real) => found.push(real),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(source) => {
                return Err(SandboxError::Path { what: "a masked path", path: path.clone(), source });
            }
        }
    }
    Ok(found)
}

/// Returns an absolute path as the helper names it, from its new root.
fn relative_to_root(path: &Path) -> Result<CString, SandboxError> {
    to_c_string(path.strip_prefix("/").unwrap_or(path).as_os_str())
}

fn refused_path_error(path: &Path, reason: &str) -> SandboxError {
    SandboxError::RefusedPath { path: path.to_owned(), reason: reason.to_owned() }
}
