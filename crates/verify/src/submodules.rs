//! The submodules of a project that are not checked out, whose directories are empty.

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use journeyman_workspace::{ListOptions, StatKind, Workspace};

use crate::check_discovery::project::Project;

/// The file in which git keeps the places of submodules.
const GITMODULES: &str = ".gitmodules";
/// Maximum bytes of that file.
const MAX_GITMODULES_BYTES: u64 = 256 * 1024;
/// Maximum number of submodules that are looked at.
const MAX_SUBMODULES: usize = 200;
/// Maximum number of build files that are read for the names of submodules.
const MAX_BUILD_FILES: usize = 50;
/// The files that name what a build in C or C++ needs.
const BUILD_FILES: [&str; 7] =
    ["CMakeLists.txt", "Makefile", "GNUmakefile", "makefile", "meson.build", "configure.ac", "Makefile.am"];

/// Returns the reason why the builds of a project can't work, if its build files name submodules
/// that are not checked out.
pub(crate) fn missing_submodules_reason(project: &dyn Project) -> Option<String> {
    let text = project.read(&RelPath::parse(GITMODULES).ok()?)?;
    let is_missing = |path: &RelPath| {
        let prefix = format!("{path}/");
        let has_git =
            path.join(".git").is_ok_and(|git| project.has_file(&git) || project.has_directory(&git));
        !has_git && !project.files().iter().any(|file| file.as_bytes().starts_with(prefix.as_bytes()))
    };
    let missing: Vec<RelPath> = submodule_paths(&text).into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let is_build_file = |path: &&RelPath| BUILD_FILES.iter().any(|name| path.file_name() == name.as_bytes());
    let build_files = project.files().iter().filter(is_build_file).take(MAX_BUILD_FILES);
    let texts: Vec<String> = build_files.filter_map(|path| project.read(path)).collect();
    let named = missing.iter().filter(|path| texts.iter().any(|text| text.contains(&path.to_string())));
    let named: Vec<String> = named.map(|path| format!("`{path}`")).collect();
    (!named.is_empty()).then(|| describe_missing(&named.join(", ")))
}

/// Returns a diagnostic if the output of a check that failed names a submodule that is not checked
/// out.
pub(crate) fn missing_submodule_in_output(workspace: &Workspace, output: &str) -> Option<Diagnostic> {
    let content = workspace.read(&RelPath::parse(GITMODULES).ok()?, MAX_GITMODULES_BYTES).ok()?;
    let is_missing = |path: &&RelPath| {
        let exists = |path: RelPath, kinds: &[StatKind]| matches!(workspace.stat(&path), Ok(Some(stat)) if kinds.contains(&stat.kind));
        let under = Some((*path).clone());
        let options = ListOptions { under, include_ignored: true, limit: 1, ..ListOptions::default() };
        !path.join(".git").is_ok_and(|git| exists(git, &[StatKind::File, StatKind::Directory]))
            && workspace.list(options).map_or(true, |listing| listing.paths.is_empty())
    };
    let paths = submodule_paths(content.text()?);
    let named = paths.iter().filter(|path| output.contains(&path.to_string())).find(is_missing)?;
    Some(Diagnostic::new(Severity::Error, describe_missing(&format!("`{named}`"))))
}

fn describe_missing(names: &str) -> String {
    format!("not checked out: submodule {names}; `git submodule update --init --recursive` fetches it")
}

/// Reads the lines `path = extern/fmt`.
fn submodule_paths(text: &str) -> Vec<RelPath> {
    let value = |line: &str| {
        let (key, value) = line.trim().split_once('=')?;
        (key.trim() == "path").then(|| value.trim().trim_matches('"').to_owned())
    };
    let paths = text.lines().filter_map(value).filter_map(|path| RelPath::parse(path).ok());
    paths.take(MAX_SUBMODULES).collect()
}
