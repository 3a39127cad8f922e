//! Caches that checks of a session keep from one round to the next.

mod bytecode;
mod go_build;

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytecode::LibraryBytecode;
use journeyman_sandbox::{Base, Request, Toolchains};
use journeyman_workspace::{Workspace, remove_tree, remove_trees_of_ended_processes};

/// The directory of all sessions' caches, in the project's state directory.
const DIRECTORY: &str = "check-caches";
/// Directories beneath the root with programs of others, whose bytecode is kept.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// A directory that only the checks of one session write, removed with this value. The project and
/// the host's own caches have no part of it.
#[derive(Debug)]
pub struct CheckCaches {
    path: PathBuf,
    /// Directories with the bytecode of Python's library, which checks only read.
    libraries: Vec<PathBuf>,
    /// Set once Go's build cache has what the host's has.
    go_build: OnceLock<bool>,
}

impl CheckCaches {
    /// Creates the directory, with the bytecode of the library of the toolchains' Python. What
    /// processes left that were killed is removed.
    ///
    /// # Errors
    /// Failures of the file system; an error where the state directory lies in the project.
    pub fn create(workspace: &Workspace, toolchains: &Toolchains, unique: u64) -> io::Result<Self> {
        let all = workspace.state_dir().join(DIRECTORY);
        if all.starts_with(workspace.root()) {
            return Err(io::Error::other("the state directory lies in the project"));
        }
        remove_trees_of_ended_processes(&all);
        let path = all.join(format!("{}-{unique:x}", std::process::id()));
        DirBuilder::new().recursive(true).mode(0o700).create(path.join("python"))?;
        let mut caches = Self { path, libraries: Vec::new(), go_build: OnceLock::new() };
        if let Some(path) = toolchains.env.get(OsStr::new("PATH")) {
            caches.libraries = caches.use_libraries(LibraryBytecode::find(path, &all));
        }
        Ok(caches)
    }

    /// Drops the bytecode of the project's own sources, before checks that use these caches: it is
    /// compared with the sources by whole seconds and size, and an edit may keep both. In a copy
    /// that is no mount, commands run at the copy's own path.
    pub(crate) fn drop_bytecode_of(&self, workspace: &Workspace) -> io::Result<()> {
        let copy = match workspace.base() {
            Some(Base::Directory { path, .. }) => Some(path),
            _ => None,
        };
        for root in [Some(workspace.root()), copy.as_deref()].into_iter().flatten() {
            remove_project_bytecode(&self.python().join(root.strip_prefix("/").unwrap_or(root)))?;
        }
        Ok(())
    }

    /// Puts the bytecode of libraries into these caches. What isn't there yet is made in the
    /// background, for sessions to come. Returns the directories that checks have to see.
    fn use_libraries(&self, libraries: Vec<LibraryBytecode>) -> Vec<PathBuf> {
        let mut used = Vec::new();
        for library in libraries {
            if !library.is_made() {
                let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // Without them Python compiles what it needs.
                std::thread::spawn(move || library.make(&name).ok());
            } else if library.put_into(&self.python()).is_ok() {
                used.push(library.links);
            }
        }
        used
    }

    fn python(&self) -> PathBuf {
        self.path.join("python")
    }

    /// Makes a check write its caches here.
    pub(crate) fn add_to(&self, request: &mut Request) {
        request.env.remove(OsStr::new("PYTHONDONTWRITEBYTECODE"));
        request.env.insert(OsString::from("PYTHONPYCACHEPREFIX"), self.python().into_os_string());
        self.add_go_build(request);
        request.writable.push(self.path.clone());
        request.read_only.extend(self.libraries.iter().cloned());
    }
}

impl CheckCaches {
    /// Gives a check that may call Go a build cache that keeps what it writes. The host's, if there
    /// is one, is only read.
    fn add_go_build(&self, request: &mut Request) {
        let own = self.path.join("go-build");
        let host = request.layered.iter().position(|path| path.ends_with("go-build"));
        let linked = match host.and_then(|at| request.layered.get(at)) {
            // Links to the host's entries take a moment.
            Some(host) if calls_go(request) => {
                *self.go_build.get_or_init(|| go_build::link_entries(host, &own).is_ok())
            }
            Some(_) => false,
            None => !request.env.contains_key(OsStr::new("GOCACHE")),
        };
        if !linked {
            return;
        }
        if let Some(at) = host {
            let host = request.layered.remove(at);
            request.read_only.push(host);
        }
        request.env.insert(OsString::from("GOCACHE"), own.into_os_string());
    }
}

/// Returns true if a command has Go's name as a word.
fn calls_go(request: &Request) -> bool {
    let words = request.argv.iter().flat_map(|word| word.as_encoded_bytes().split(u8::is_ascii_whitespace));
    words.into_iter().any(|word| word == b"go" || word.ends_with(b"/go"))
}

impl Drop for CheckCaches {
    fn drop(&mut self) {
        // The next session removes what can't be removed now.
        remove_tree(&self.path).ok();
    }
}

fn remove_project_bytecode(own: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(own) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if !ENVIRONMENTS.iter().any(|name| entry.file_name() == OsStr::new(name)) {
            remove_tree(&entry.path()).map_err(io::Error::other)?;
        }
    }
    Ok(())
}
