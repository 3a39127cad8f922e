//! Reads the output and the reports of a check, with the project's files at hand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_workspace::{ListOptions, StatKind, Workspace};

use crate::Check;
use crate::diagnostics::{ParsedOutput, project_path, quote_sources, read_output};
use crate::package_prefixes::strip_package_prefixes;
use crate::reports::TestReports;
use crate::test_counts;

/// Maximum number of different printed paths that are looked up; diagnostics name far fewer.
const MAX_PATH_LOOKUPS: usize = 1_000;
/// Maximum number of endings of paths that are looked up among all files.
const MAX_ENDING_LOOKUPS: usize = 50;
/// Maximum bytes of a file whose lines are quoted.
const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// Reads the diagnostics and the number of tests of a check that ran.
pub(crate) fn read_check_output(
    text: &str,
    reports: &TestReports,
    check: &Check,
    workspace: &Workspace,
) -> ParsedOutput {
    let (known, looked) = (RefCell::new(HashMap::new()), Cell::new(0));
    let locate = |printed: &str| {
        if let Some(found) = known.borrow().get(printed) {
            return Option::clone(found);
        }
        if known.borrow().len() >= MAX_PATH_LOOKUPS {
            return None;
        }
        let directory = check.directory.as_ref();
        let found = locate(workspace, directory, printed).or_else(|| {
            let may_look = is_plain_path(printed) && looked.replace(looked.get() + 1) < MAX_ENDING_LOOKUPS;
            may_look.then(|| find_by_ending(workspace, directory, printed)).flatten()
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
fn find_by_ending(workspace: &Workspace, directory: Option<&RelPath>, printed: &str) -> Option<RelPath> {
    let options = ListOptions {
        under: directory.cloned(),
        glob: Some(format!("**/{printed}")),
        limit: 2,
        ..ListOptions::default()
    };
    let mut paths = workspace.list(options).ok()?.paths.into_iter();
    paths.next().filter(|_| paths.next().is_none())
}

/// Returns true for a relative path of a file with an ending, of characters that a glob takes as
/// they are.
fn is_plain_path(printed: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/');
    let name = printed.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    ending.is_some_and(|ending| ending.starts_with(|c: char| c.is_ascii_alphabetic()))
        && !printed.starts_with(['/', '.'])
        && printed.bytes().all(plain)
}
