//! Directories that tools create, by name.

use DirectoryKind::{Build, NoProject, Packages, Skipped};

/// A property of directories with a certain name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryKind {
    /// Generated files or another version control system's data, whether or not rules ignore the
    /// directory. It isn't entered unless a rule with `!` includes it.
    Skipped,
    /// Installed packages, maybe hard links to files of the package manager's store.
    Packages,
    /// Build output, if rules ignore the directory.
    Build,
    /// Never opened as a project, if rules ignore the directory, so editors and agents don't obey
    /// the settings in it.
    NoProject,
}

/// Directories such as `target` aren't [`Skipped`] by their names: they are where a rule ignores
/// them or where they carry a `CACHEDIR.TAG`.
const TOOL_DIRECTORIES: [(&[u8], &[DirectoryKind]); 54] = [
    (b"node_modules", &[Skipped, Packages, NoProject]),
    (b"bower_components", &[Skipped, Packages, NoProject]),
    (b"__pycache__", &[Skipped]),
    (b".venv", &[Skipped, Packages, NoProject]),
    (b".tox", &[Skipped, Packages, NoProject]),
    (b".nox", &[Skipped, Packages, NoProject]),
    (b".mypy_cache", &[Skipped]),
    (b".pytest_cache", &[Skipped]),
    (b".ruff_cache", &[Skipped]),
    (b".gradle", &[Skipped, NoProject]),
    (b".terraform", &[Skipped, NoProject]),
    (b".direnv", &[Skipped]),
    (b".hg", &[Skipped]),
    (b".svn", &[Skipped]),
    (b".jj", &[Skipped]),
    (b"venv", &[Packages, Build, NoProject]),
    (b"env", &[Packages, Build]),
    (b".pixi", &[Packages]),
    (b".conda", &[Packages]),
    (b"__pypackages__", &[Packages, NoProject]),
    (b"site-packages", &[NoProject]),
    (b"vendor", &[Build, NoProject]),
    (b"deps", &[Build, NoProject]),
    (b"target", &[Build, NoProject]),
    (b"build", &[Build, NoProject]),
    (b"_build", &[Build, NoProject]),
    (b".build", &[NoProject]),
    (b"dist", &[Build, NoProject]),
    (b"out", &[Build, NoProject]),
    (b"obj", &[Build, NoProject]),
    (b".next", &[Build, NoProject]),
    (b".nuxt", &[Build, NoProject]),
    (b".output", &[Build, NoProject]),
    (b".svelte-kit", &[Build, NoProject]),
    (b".turbo", &[Build, NoProject]),
    (b".cache", &[Build, NoProject]),
    (b".parcel-cache", &[Build, NoProject]),
    (b".dart_tool", &[Build, NoProject]),
    (b".bundle", &[NoProject]),
    (b".yarn", &[NoProject]),
    (b".pnpm-store", &[NoProject]),
    (b"Pods", &[Build, NoProject]),
    (b"dist-newstyle", &[Build]),
    (b"bin", &[Build]),
    (b"tmp", &[Build]),
    (b"log", &[Build]),
    (b"logs", &[Build]),
    (b"coverage", &[Build]),
    (b"htmlcov", &[Build]),
    (b".nyc_output", &[Build]),
    (b".stack-work", &[Build]),
    (b".eggs", &[Build]),
    (b".zig-cache", &[Build]),
    (b"elm-stuff", &[Build]),
];

/// Endings of names of files that builds, tests and editors regenerate.
const BUILD_FILE_ENDINGS: [&[u8]; 22] = [
    b".o",
    b".obj",
    b".a",
    b".so",
    b".lo",
    b".la",
    b".d",
    b".class",
    b".pyc",
    b".pyo",
    b".log",
    b".tmp",
    b".swp",
    b".gcda",
    b".gcno",
    b".profraw",
    b".beam",
    b".hi",
    b".dll",
    b".dylib",
    b".tsbuildinfo",
    b".coverage",
];

fn is_directory_of_kind(name: &[u8], meaning: DirectoryKind) -> bool {
    TOOL_DIRECTORIES.iter().any(|(known, meanings)| *known == name && meanings.contains(&meaning))
}

/// Returns true if a directory of this name is skipped, whether or not rules ignore it.
#[must_use]
pub fn is_skipped_directory(name: &[u8]) -> bool {
    is_directory_of_kind(name, Skipped)
}

/// Returns the names of directories that are skipped.
pub fn skipped_directories() -> impl Iterator<Item = &'static [u8]> {
    TOOL_DIRECTORIES.iter().filter(|(_, meanings)| meanings.contains(&Skipped)).map(|(name, _)| *name)
}

/// Returns true if package managers fill directories of this name.
#[must_use]
pub fn is_dependency_directory(name: &[u8]) -> bool {
    is_directory_of_kind(name, Packages)
}

/// Returns true if a directory of this name, in any letter case, is never opened as a project where
/// rules ignore it.
#[must_use]
pub fn is_never_project(name: &[u8]) -> bool {
    let mut named = TOOL_DIRECTORIES.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    named.any(|(_, meanings)| meanings.contains(&NoProject))
}

/// Returns true if tools regenerate an ignored file or directory of this name.
#[must_use]
pub fn is_regenerated(name: &[u8]) -> bool {
    is_skipped_directory(name)
        || is_directory_of_kind(name, Build)
        || name.starts_with(b"cmake-build-")
        || name.ends_with(b".egg-info")
        || name.starts_with(b".coverage.")
        || BUILD_FILE_ENDINGS.iter().any(|end| name.ends_with(end))
}
