//! A project and its directories, as the finders see them.

use std::path::PathBuf;

use journeyman_protocol::{CheckKind, RelPath};

use super::shell::quote_word;
use crate::Check;

/// Returns the last component of a path.
pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// Files that make their directory a project.
pub(crate) const MANIFESTS: [&str; 72] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "go.mod",
    "CMakeLists.txt",
    "pom.xml",
    "settings.gradle",
    "settings.gradle.kts",
    "build.gradle",
    "build.gradle.kts",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "requirements.txt",
    "noxfile.py",
    "Gemfile",
    "gems.rb",
    "Rakefile",
    "rakefile",
    ".rspec",
    "composer.json",
    "phpunit.xml",
    "phpunit.xml.dist",
    "mix.exs",
    "meson.build",
    "configure.ac",
    "configure",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yml",
    "taskfile.yaml",
    "Taskfile.dist.yml",
    "taskfile.dist.yml",
    "Taskfile.dist.yaml",
    "taskfile.dist.yaml",
    "biome.json",
    "biome.jsonc",
    "deno.json",
    "deno.jsonc",
    "dune-project",
    "build.zig",
    "Package.swift",
    "build.sbt",
    "build.mill",
    "build.sc",
    "stack.yaml",
    "cabal.project",
    "rebar.config",
    "gleam.toml",
    "project.clj",
    "pubspec.yaml",
    "shard.yml",
    "dub.json",
    "dub.sdl",
    "Project.toml",
    "MODULE.bazel",
    "WORKSPACE",
    "WORKSPACE.bazel",
    "build.xml",
    "Makefile.PL",
    "Build.PL",
    "cpanfile",
    "dist.ini",
    ".busted",
    "SConstruct",
];

/// Directories whose manifests are third-party code, or fixtures of tests.
const FOREIGN_DIRECTORIES: [&[u8]; 8] = [
    b"node_modules",
    b"vendor",
    b"third_party",
    b"testdata",
    b"fixtures",
    b"target",
    b"site-packages",
    b".venv",
];

/// Returns true for a path in a directory whose manifests are third-party code, or fixtures of
/// tests.
pub(crate) fn is_foreign(path: &RelPath) -> bool {
    path.components().any(|name| FOREIGN_DIRECTORIES.contains(&name))
}

/// The questions that finders ask about a project.
pub(crate) trait Project {
    /// Returns true if there is a file at `path`, relative to the root.
    fn has_file(&self, path: &RelPath) -> bool;

    /// Returns true if there is a directory at `path`.
    fn has_directory(&self, path: &RelPath) -> bool;

    /// Returns true if `path` is neither a file nor a directory, such as a link that leads out of
    /// the project, which finders don't follow.
    fn has_link(&self, path: &RelPath) -> bool;

    /// Returns the text of the file at `path`; `None` if it is missing, too large or no text.
    fn read(&self, path: &RelPath) -> Option<String>;

    /// Returns the file that a command of this name starts. For a program's absolute path, returns
    /// the path if the program exists.
    fn find_program(&self, name: &str) -> Option<PathBuf>;

    /// Returns the project's files, sorted.
    fn files(&self) -> &[RelPath];

    /// Returns the changed files, if they are known.
    fn changed_files(&self) -> &[RelPath];
}

/// A directory of a project, for the finders.
pub(crate) struct ProjectDirectory<'a> {
    pub(crate) project: &'a dyn Project,
    pub(crate) directory: Option<&'a RelPath>,
}

impl ProjectDirectory<'_> {
    /// Returns the path of `name` in this directory, from the root.
    pub(crate) fn path(&self, name: &str) -> Option<RelPath> {
        match self.directory {
            Some(directory) => directory.join(name).ok(),
            None => RelPath::parse(name).ok(),
        }
    }

    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_file(&path))
    }

    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has_file(name))
    }

    pub(crate) fn has_directory(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_directory(&path))
    }

    pub(crate) fn has_link(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_link(&path))
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        self.project.read(&self.path(name)?)
    }

    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.find_program(name).is_some()
    }

    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.project.find_program(name)
    }

    /// Returns the project's files beneath this directory, by their path from it.
    pub(crate) fn files(&self) -> impl Iterator<Item = &[u8]> {
        paths_beneath(self.project.files(), self.directory)
    }

    /// Returns the changed files beneath this directory, by their path from it.
    pub(crate) fn changed_paths(&self) -> impl Iterator<Item = &[u8]> {
        paths_beneath(self.project.changed_files(), self.directory)
    }

    /// Returns the changed files with this ending that still exist, as words of a shell, up to
    /// `limit`.
    pub(crate) fn quoted_changed_files(&self, ending: &str, limit: usize) -> Vec<String> {
        self.changed_paths()
            .filter(|path| path.ends_with(ending.as_bytes()))
            .filter_map(|path| std::str::from_utf8(path).ok())
            .filter(|path| self.has_file(path))
            .take(limit)
            .map(quote_word)
            .collect()
    }

    /// Returns `check`, blocked if `program` isn't installed; `source` says where to get the
    /// program.
    pub(crate) fn block_without_program(&self, program: &str, source: &str, check: Check) -> Check {
        if check.blocked.is_some() || self.has_program(program) {
            return check;
        }
        let how = if source.starts_with('`') { "installs it" } else { "has it" };
        check.with_blocked(format!("{program} is not installed; {source} {how}"))
    }

    /// Returns the root, where workspaces keep their lock files and modules.
    pub(crate) fn root_directory(&self) -> ProjectDirectory<'_> {
        ProjectDirectory { project: self.project, directory: None }
    }

    /// Creates a check in this directory.
    pub(crate) fn new_check(
        &self,
        kind: CheckKind,
        ecosystem: &'static str,
        command: impl Into<String>,
        why: impl Into<String>,
    ) -> Check {
        Check::new(kind, ecosystem, command, why).with_directory(self.directory)
    }
}

/// Returns the paths beneath `directory`, relative to it.
fn paths_beneath<'p>(paths: &'p [RelPath], directory: Option<&RelPath>) -> impl Iterator<Item = &'p [u8]> {
    let prefix: Vec<u8> =
        directory.map(|directory| [directory.as_bytes(), b"/"].concat()).unwrap_or_default();
    paths.iter().filter_map(move |path| path.as_bytes().strip_prefix(prefix.as_slice()))
}
