//! The bytecode of Python's own library, for checks whose caches are empty.
//!
//! Python looks for all bytecode in the directory that `PYTHONPYCACHEPREFIX` names, and so compiles
//! the whole library again for a session whose directory is empty. A [`LibraryBytecode`] has links
//! to the bytecode that was made at installation, in the places where Python then looks for it. It
//! is made once and only by this program; checks read it, and Python compares it with the sources
//! as always.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{DirEntry, create_dir_all, read_dir};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use journeyman_protocol::ContentHash;
use journeyman_workspace::remove_tree;

/// Maximum number of links of a library, which has some 700 modules that a program may import, and
/// of directories that are looked into.
const MAX_LINKS: usize = 3_000;
const MAX_DIRECTORIES: usize = 1_000;
/// Parts of the library that no project imports.
const UNUSED_PACKAGES: [&str; 7] =
    ["test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip", "__pycache__"];
/// The directory beside a module that has its bytecode.
const BYTECODE_DIRECTORY: &str = "__pycache__";
/// The directories of a library whose modification times show that something was installed. Debian
/// has a library of packages alone, `/usr/lib/python3`.
const INSTALL_DIRECTORIES: [&str; 3] = [BYTECODE_DIRECTORY, "dist-packages", "site-packages"];
/// Maximum bytes of the file by which pyenv chooses a version.
const MAX_VERSION_BYTES: usize = 100;

/// The bytecode of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LibraryBytecode {
    /// The library, such as `/usr/lib/python3.12`.
    library: PathBuf,
    /// The directory with the links.
    pub(super) links: PathBuf,
}

impl LibraryBytecode {
    /// Finds the libraries of the interpreter that `path` leads to, which is a `PATH`. Their links
    /// lie in `all`, by a name that changes with the library.
    pub(super) fn find(path: &OsStr, all: &Path) -> Vec<Self> {
        let of = |library: PathBuf| {
            let seen: Vec<String> = INSTALL_DIRECTORIES
                .iter()
                .filter_map(|directory| library.join(directory).metadata().ok())
                .map(|seen| format!("{} {}", seen.mtime(), seen.mtime_nsec()))
                .collect();
            let key = format!("{} {}", library.display(), seen.join(" "));
            let links = all.join(format!("library-{}", ContentHash::of(key.as_bytes())));
            (!seen.is_empty()).then_some(Self { library, links })
        };
        find_libraries(path).into_iter().filter_map(of).collect()
    }

    /// Returns true once all links are made.
    pub(super) fn is_linked(&self) -> bool {
        self.links.is_dir()
    }

    /// Makes the links in a temporary place, and moves them to their own. A process continues where
    /// another one was killed.
    pub(super) fn create_links(&self) -> io::Result<()> {
        let unfinished = self.links.with_extension("unfinished");
        self.link_modules(&unfinished)?;
        std::fs::rename(&unfinished, &self.links).or_else(|_| {
            // Another session was faster.
            remove_tree(&unfinished).map_err(io::Error::other)
        })
    }

    fn link_modules(&self, to: &Path) -> io::Result<()> {
        let mut queue = VecDeque::from([(self.library.clone(), to.to_path_buf())]);
        let (mut links, mut directories) = (0, 0);
        while let Some((from, to)) = queue.pop_front().filter(|_| directories < MAX_DIRECTORIES) {
            directories += 1;
            let bytecode = from.join(BYTECODE_DIRECTORY);
            let packages: Vec<DirEntry> = directory_entries(&from).filter(is_package).collect();
            // Most packages have none within, and then one link stands for all modules.
            if packages.is_empty() && from != self.library {
                if bytecode.is_dir() {
                    create_link(&bytecode, &to)?;
                    links += 1;
                }
                continue;
            }
            create_dir_all(&to)?;
            for module in directory_entries(&bytecode).filter(is_module).take(MAX_LINKS.saturating_sub(links))
            {
                create_link(&module.path(), &to.join(module.file_name()))?;
                links += 1;
            }
            queue.extend(packages.into_iter().map(|entry| (entry.path(), to.join(entry.file_name()))));
        }
        Ok(())
    }

    /// Puts the links in the place in `prefix` where Python looks for this library's bytecode.
    pub(super) fn link_into(&self, prefix: &Path) -> io::Result<()> {
        let Ok(beneath) = self.library.strip_prefix("/") else { return Ok(()) };
        let place = prefix.join(beneath);
        place.parent().map_or(Ok(()), create_dir_all)?;
        create_link(&self.links, &place)
    }
}

/// Makes a link; the same one may be there already, by another process or for an earlier check.
fn create_link(target: &Path, place: &Path) -> io::Result<()> {
    symlink(target, place).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    })
}

fn is_module(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    name.ends_with(".pyc") && !name.contains(".opt-")
}

fn is_package(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_used =
        name.to_str().is_some_and(|name| !UNUSED_PACKAGES.contains(&name) && !name.ends_with("-info"));
    is_used && entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Returns the libraries of the first interpreter in `path`, whose directories are named by their
/// version.
fn find_libraries(path: &OsStr) -> BTreeSet<PathBuf> {
    let programs: Vec<PathBuf> = std::env::split_paths(path).filter(|it| it.is_absolute()).collect();
    let first = programs.iter().find(|programs| programs.join("python3").exists());
    let first = first.map(|programs| match programs.parent().filter(|_| programs.ends_with("shims")) {
        Some(home) => pyenv_version(home).map(|version| home.join("versions").join(version)),
        None => {
            let interpreter = programs.join("python3").canonicalize().ok();
            interpreter.and_then(|it| Some(it.parent()?.parent()?.to_path_buf()))
        }
    });
    let Some(home) = first.flatten() else { return BTreeSet::new() };
    let is_python = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with("python3");
    directory_entries(&home.join("lib")).filter(is_python).map(|entry| entry.path()).collect()
}

/// Returns the version that pyenv's programs start by default.
fn pyenv_version(home: &Path) -> Option<String> {
    let text = std::fs::read_to_string(home.join("version")).ok()?;
    let version = text.lines().next()?.trim();
    let is_name = !version.starts_with('.') && !version.contains('/') && version.len() <= MAX_VERSION_BYTES;
    is_name.then(|| version.to_owned())
}

fn directory_entries(directory: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    read_dir(directory).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str) {
        let path = root.join(name);
        create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }

    #[test]
    fn bytecode_of_the_library_lies_where_python_looks_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in [
            "usr/bin/python3",
            "usr/lib/python3.12/__pycache__/os.cpython-312.pyc",
            "usr/lib/python3.12/__pycache__/os.cpython-312.opt-1.pyc",
            "usr/lib/python3.12/unittest/__pycache__/case.cpython-312.pyc",
            "usr/lib/python3.12/email/__pycache__/parser.cpython-312.pyc",
            "usr/lib/python3.12/email/mime/__pycache__/text.cpython-312.pyc",
            "usr/lib/python3.12/email/tests/__pycache__/no.cpython-312.pyc",
            "usr/lib/python3.12/data/table.txt",
            "usr/lib/python3.12/test/__pycache__/support.cpython-312.pyc",
            "usr/lib/python3/dist-packages/pytest/__pycache__/main.cpython-312.pyc",
            "usr/lib/ruby/__pycache__/no.cpython-312.pyc",
            "later/bin/python3",
            "later/lib/python3.13/__pycache__/os.cpython-313.pyc",
        ] {
            write(&root, name);
        }
        let (all, prefix) = (root.join("all"), root.join("prefix"));
        create_dir_all(&all).unwrap();
        let path = std::env::join_paths([root.join("none"), root.join("usr/bin"), root.join("later/bin")]);
        let found = LibraryBytecode::find(&path.unwrap(), &all);
        assert_eq!(found.len(), 2, "{found:?}");
        for library in &found {
            assert!(!library.is_linked());
            // Another process was ended in the middle.
            let begun = library.links.with_extension("unfinished");
            create_dir_all(&begun).unwrap();
            let module = Path::new("__pycache__/os.cpython-312.pyc");
            symlink(library.library.join(module), begun.join(module.file_name().unwrap())).unwrap();
            library.create_links().unwrap();
            library.create_links().unwrap();
            assert!(library.is_linked());
            library.link_into(&prefix).unwrap();
        }
        assert_eq!(read_dir(&all).unwrap().count(), 2, "what wasn't needed is gone");
        let below = prefix.join(root.strip_prefix("/").unwrap()).join("usr/lib");
        let linked = |name: &str| std::fs::read_to_string(below.join(name)).ok();
        let os = "usr/lib/python3.12/__pycache__/os.cpython-312.pyc";
        assert_eq!(linked("python3.12/os.cpython-312.pyc").as_deref(), Some(os));
        assert!(linked("python3.12/unittest/case.cpython-312.pyc").is_some());
        assert!(linked("python3.12/email/parser.cpython-312.pyc").is_some());
        assert!(linked("python3.12/email/mime/text.cpython-312.pyc").is_some());
        assert!(below.join("python3.12/unittest").is_symlink(), "one link for a package without packages");
        assert!(linked("python3/dist-packages/pytest/main.cpython-312.pyc").is_some());
        for name in [
            "python3.12/os.cpython-312.opt-1.pyc",
            "python3.12/test",
            "python3.12/email/tests",
            "python3.12/data",
            "ruby",
        ] {
            assert!(!below.join(name).exists(), "{name}");
        }
    }

    #[test]
    fn scripts_of_pyenv_lead_to_its_chosen_version() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, "shims/python3");
        std::fs::write(root.join("version"), "3.11.7\n3.12.1\n").unwrap();
        write(&root, "versions/3.11.7/lib/python3.11/os.py");
        write(&root, "versions/3.12.1/lib/python3.12/os.py");
        let library = root.join("versions/3.11.7/lib/python3.11");
        assert_eq!(find_libraries(root.join("shims").as_os_str()), BTreeSet::from([library]));
        std::fs::write(root.join("version"), "../..\n").unwrap();
        assert!(find_libraries(root.join("shims").as_os_str()).is_empty());
    }
}
