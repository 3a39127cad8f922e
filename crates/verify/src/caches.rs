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
use journeyman_sandbox::{ProjectCopy, Request, Toolchains};
use journeyman_workspace::{Workspace, remove_tree, remove_trees_of_ended_processes};

/// The directory of all sessions' caches, in the project's state directory.
const CACHES_DIRECTORY: &str = "check-caches";
/// Beginnings of the names of programs that are known to run in Python.
const PYTHON_PROGRAM_PREFIXES: [&str; 4] = ["python", "pytest", "tox", "nox"];
/// Virtual environments beneath the root, whose bytecode is kept because they have no project
/// sources.
const VIRTUAL_ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// A directory that only the checks of one session write, removed with this value. The project and
/// the host's own caches have no part of it.
#[derive(Debug)]
pub struct CheckCaches {
    path: PathBuf,
    /// The library of the toolchains' Python.
    libraries: Vec<LibraryBytecode>,
    /// Set once Go's build cache has what the host's has.
    go_build: OnceLock<bool>,
}

impl CheckCaches {
    /// Creates the directory. What processes left that were killed is removed in the background.
    ///
    /// # Errors
    /// Failures of the file system; an error where the state directory lies in the project.
    pub fn create(workspace: &Workspace, toolchains: &Toolchains, unique: u64) -> io::Result<Self> {
        let all = workspace.state_dir().join(CACHES_DIRECTORY);
        if all.starts_with(workspace.root()) {
            return Err(io::Error::other("the state directory lies in the project"));
        }
        let ended = all.clone();
        std::thread::spawn(move || remove_trees_of_ended_processes(&ended));
        let path = all.join(format!("{}-{unique:x}", std::process::id()));
        DirBuilder::new().recursive(true).mode(0o700).create(path.join("python"))?;
        let search_path = toolchains.env.get(OsStr::new("PATH"));
        let libraries = search_path.map(|search_path| LibraryBytecode::find(search_path, &all));
        let libraries = libraries.unwrap_or_default();
        Ok(Self { path, libraries, go_build: OnceLock::new() })
    }

    /// Drops the bytecode of the project's own sources, before checks that use these caches: it is
    /// compared with the sources by whole seconds and size, and an edit may keep both. In a copy
    /// that is no mount, commands run at the copy's own path.
    pub(crate) fn remove_bytecode_of(&self, workspace: &Workspace) -> io::Result<()> {
        let copy = match workspace.project_copy() {
            Some(ProjectCopy::Directory { path, .. }) => Some(path),
            _ => None,
        };
        for root in [Some(workspace.root()), copy.as_deref()].into_iter().flatten() {
            remove_project_bytecode(&self.python_directory().join(root.strip_prefix("/").unwrap_or(root)))?;
        }
        Ok(())
    }

    /// Gives a check the bytecode of Python's library, which it only reads. A project's first check
    /// in Python waits for the links, which take less time than compiling a test library.
    fn add_library_bytecode(&self, request: &mut Request) {
        let calls_python = calls_program(request, |word| {
            PYTHON_PROGRAM_PREFIXES.iter().any(|known| word.starts_with(known.as_bytes()))
        });
        let python = self.python_directory();
        for library in &self.libraries {
            // Without them Python compiles what it needs.
            let is_linked = library.is_linked() || calls_python && library.create_links().is_ok();
            if is_linked && library.link_into(&python).is_ok() {
                request.read_only.push(library.links.clone());
            }
        }
    }

    fn python_directory(&self) -> PathBuf {
        self.path.join("python")
    }

    /// Makes a check write its caches here.
    pub(crate) fn add_to_request(&self, request: &mut Request) {
        request.env.remove(OsStr::new("PYTHONDONTWRITEBYTECODE"));
        request.env.insert(OsString::from("PYTHONPYCACHEPREFIX"), self.python_directory().into_os_string());
        self.add_go_build(request);
        self.add_library_bytecode(request);
        request.writable.push(self.path.clone());
    }
}

impl CheckCaches {
    /// Gives a check that may call Go a build cache that keeps what it writes. The host's, if there
    /// is one, is only read.
    fn add_go_build(&self, request: &mut Request) {
        let own = self.path.join("go-build");
        let host = request.layered.iter().position(|path| path.ends_with("go-build"));
        let may_call_go =
            || calls_program(request, |word| word == b"go") || request.cwd.join("go.mod").is_file();
        let linked = match host.and_then(|at| request.layered.get(at)) {
            // Links to the host's entries take a moment.
            Some(host) if may_call_go() => {
                *self.go_build.get_or_init(|| go_build::link_entries(host, &own).is_ok())
            }
            Some(_) => false,
            None => !request.env.contains_key(OsStr::new("GOCACHE")),
        };
        if !linked || go_build::expire_test_results(&own).is_err() {
            return;
        }
        if let Some(at) = host {
            let host = request.layered.remove(at);
            request.read_only.push(host);
        }
        request.env.insert(OsString::from("GOCACHE"), own.into_os_string());
    }
}

/// Returns true if a command has the name of a program as a word, without its directory.
fn calls_program(request: &Request, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    let words = request.argv.iter().flat_map(|word| word.as_encoded_bytes().split(u8::is_ascii_whitespace));
    words.into_iter().any(|word| is_wanted(word.rsplit(|byte| *byte == b'/').next().unwrap_or(word)))
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
        if !VIRTUAL_ENVIRONMENTS.iter().any(|name| entry.file_name() == OsStr::new(name)) {
            remove_tree(&entry.path()).map_err(io::Error::other)?;
        }
    }
    Ok(())
}
