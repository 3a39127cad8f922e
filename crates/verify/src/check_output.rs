//! Reads the output and the reports of a check, with the project's files at hand.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_workspace::{ListOptions, StatKind, Workspace};

use crate::Check;
use crate::diagnostics::{ParsedOutput, project_path, quote_sources, read_output};
use crate::package_prefixes::strip_package_prefixes;
use crate::reports::TestReports;
use crate::submodules::missing_submodule_in_output;
use crate::test_counts;

/// Maximum number of different printed paths that are looked up; diagnostics name far fewer.
const MAX_PATH_LOOKUPS: usize = 1_000;
/// Maximum bytes of a file whose lines are quoted.
const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// Reads the diagnostics and the number of tests of a check that ran.
pub(crate) fn read_check_output(
    text: &str,
    reports: &TestReports,
    check: &Check,
    workspace: &Workspace,
) -> ParsedOutput {
    let (known, files) = (RefCell::new(HashMap::new()), OnceCell::new());
    let locate = |printed: &str| {
        if let Some(found) = known.borrow().get(printed) {
            return Option::clone(found);
        }
        if known.borrow().len() >= MAX_PATH_LOOKUPS {
            return None;
        }
        let directory = check.directory.as_ref();
        let found = locate(workspace, directory, printed).or_else(|| {
            let list = || {
                let options = ListOptions { under: directory.cloned(), ..ListOptions::default() };
                workspace.list(options).map(|listing| listing.paths).unwrap_or_default()
            };
            find_by_ending(files.get_or_init(list), printed)
        });
        known.borrow_mut().insert(printed.to_owned(), found.clone());
        found
    };
    let mut readings = read_output(&strip_package_prefixes(text), &reports.read(workspace, check), &locate);
    if matches!(check.kind, CheckKind::Test | CheckKind::Custom) && readings.tests.is_none() {
        readings.tests = test_counts::count_tests(text).exact_counts();
    }
    quote_sources(&mut readings.diagnostics, |path| {
        Some(workspace.read(path, MAX_SOURCE_BYTES).ok()?.text()?.to_owned())
    });
    let missing = missing_submodule_in_output(workspace, text);
    readings.diagnostics.splice(0..0, missing);
    readings
}

/// Returns the existing file that a tool means by `printed`: relative to the tool's directory, or
/// to the root.
fn locate(workspace: &Workspace, directory: Option<&RelPath>, printed: &str) -> Option<RelPath> {
    let is_file =
        |path: &RelPath| matches!(workspace.stat(path), Ok(Some(stat)) if stat.kind == StatKind::File);
    let from_here = project_path(workspace.root(), directory, printed).filter(is_file);
    from_here.or_else(|| project_path(workspace.root(), None, printed).filter(is_file))
}

/// Returns the only file whose path ends with this. The tests of Go, Clojure, Scala and Swift print
/// a file's name alone, and what runs in a package of a workspace the path within it.
fn find_by_ending(files: &[RelPath], printed: &str) -> Option<RelPath> {
    let ends = |path: &&RelPath| {
        let above = path.as_bytes().strip_suffix(printed.as_bytes());
        // A number before a colon is rather a time.
        printed.contains('.') && above.is_some_and(|above| above.ends_with(b"/"))
    };
    let mut found = files.iter().filter(ends);
    found.next().filter(|_| found.next().is_none()).cloned()
}
