//! Unchanged files of a project that are read to judge the effect of a change on its tests.

use journeyman_protocol::RelPath;
use journeyman_verify::honesty::ChangedFile;
use journeyman_verify::test_files::is_test_file;
use journeyman_verify::test_sources::{find_test_sources, is_supported_build_file};
use journeyman_workspace::{ListOptions, Listing, Workspace};

use super::check_setup::MAX_VISITED_FILES;

/// Maximum number of unchanged tests that are read for the inputs that they try, and their bytes.
const MAX_UNCHANGED_TESTS: usize = 40;
const MAX_UNCHANGED_TEST_BYTES: u64 = 512 << 10;

/// Returns tests that didn't change, which tell the inputs that they try; none where they can't be
/// listed, because they only add to what is found.
///
/// Build files are among them, because they tell which other sources are tests.
pub(super) fn find_unchanged_tests(workspace: &Workspace, changed: &[ChangedFile]) -> Vec<ChangedFile> {
    let options = ListOptions { limit: MAX_VISITED_FILES, ..ListOptions::default() };
    let listing = workspace.list(options).unwrap_or_default();
    let builds = find_unchanged_build_files(workspace, &listing, changed);
    let built = find_test_sources(changed.iter().chain(&builds).filter_map(build_file_text));
    let is_test = |path: &&RelPath| {
        path.as_str().is_some_and(|name| is_test_file(name) || built.contains(name))
            && !changed.iter().any(|file| file.path == **path)
    };
    let mut left = MAX_UNCHANGED_TEST_BYTES;
    let tests = listing.paths.iter().filter(is_test).take(MAX_UNCHANGED_TESTS);
    let mut found: Vec<ChangedFile> =
        tests.filter_map(|path| read_file(workspace, path, &mut left)).collect();
    found.extend(builds);
    found
}

/// Returns the unchanged build files that define which source files are tests.
pub(super) fn find_unchanged_build_files(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[ChangedFile],
) -> Vec<ChangedFile> {
    let is_build = |path: &&RelPath| {
        path.as_str().is_some_and(is_supported_build_file) && !changed.iter().any(|file| file.path == **path)
    };
    let mut left = MAX_UNCHANGED_TEST_BYTES;
    let builds = listing.paths.iter().filter(is_build).take(MAX_UNCHANGED_TESTS);
    builds.filter_map(|path| read_file(workspace, path, &mut left)).collect()
}

/// Returns a build file's text before the change, or the new one where there was none.
fn build_file_text(file: &ChangedFile) -> Option<(&str, &str)> {
    Some((file.path.as_str()?, file.old.as_deref().or(file.new.as_deref())?))
}

fn read_file(workspace: &Workspace, path: &RelPath, left: &mut u64) -> Option<ChangedFile> {
    let content = workspace.read(path, *left).ok()?;
    let text = content.text()?.to_owned();
    *left = left.saturating_sub(u64::try_from(text.len()).unwrap_or(u64::MAX));
    Some(ChangedFile { path: path.clone(), old: Some(text.clone()), new: Some(text) })
}
