//! Reads the output and the reports of a check, with the project's files at hand.

use std::cell::RefCell;
use std::collections::HashMap;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_workspace::{ListOptions, StatKind, Workspace};

use crate::Check;
use crate::diagnostics::{ParsedOutput, project_path, quote_sources, read_output};
use crate::reports::TestReports;
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
    let known = RefCell::new(HashMap::new());
    let locate = |printed: &str| {
        if let Some(found) = known.borrow().get(printed) {
            return Option::clone(found);
        }
        if known.borrow().len() >= MAX_PATH_LOOKUPS {
            return None;
        }
        let found = locate(workspace, check.directory.as_ref(), printed);
        known.borrow_mut().insert(printed.to_owned(), found.clone());
        found
    };
    let mut readings = read_output(text, &reports.read(workspace, check), &locate);
    if matches!(check.kind, CheckKind::Test | CheckKind::Custom) && readings.tests.is_none() {
        readings.tests = test_counts::count_tests(text).exact_counts();
    }
    quote_sources(&mut readings.diagnostics, |path| {
        Some(workspace.read(path, MAX_SOURCE_BYTES).ok()?.text()?.to_owned())
    });
    readings
}

/// Returns the existing file that a tool means by `printed`: relative to the tool's directory, or
/// to the root, or, as Go's tests print it, by a name that only one file has.
fn locate(workspace: &Workspace, directory: Option<&RelPath>, printed: &str) -> Option<RelPath> {
    let is_file =
        |path: &RelPath| matches!(workspace.stat(path), Ok(Some(stat)) if stat.kind == StatKind::File);
    let from_here = project_path(workspace.root(), directory, printed).filter(is_file);
    let found = from_here.or_else(|| project_path(workspace.root(), None, printed).filter(is_file));
    if found.is_some() {
        return found;
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    if !printed.ends_with(".go") || !printed.bytes().all(plain) {
        return None;
    }
    let options = ListOptions {
        under: directory.cloned(),
        glob: Some(printed.to_owned()),
        limit: 2,
        ..ListOptions::default()
    };
    let mut paths = workspace.list(options).ok()?.paths.into_iter();
    paths.next().filter(|_| paths.next().is_none())
}
