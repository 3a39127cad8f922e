//! Files beside tests that stand in the place of what tests import, and product code that knows the
//! files of samples by their names.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::loosened_settings::is_check_settings_file;
use super::parsed_source::ParsedSource;
use super::report::HonestyReport;
use super::special_cases::quote_line;
use crate::test_files::{file_name, is_test_program_name};

/// Minimum bytes of a sample's name.
const MIN_SAMPLE_NAME: usize = 8;
/// Ways to compare a value on a line of a condition.
const COMPARISONS: [&str; 10] =
    ["==", "case ", "when ", "ends", "end_with", "contains", "include", "equals", "match", " in "];

/// Returns the module that the file at a path defines, if an interpreter finds modules by names.
fn module_of(path: &str) -> Option<&str> {
    let (stem, end) = path.rsplit_once('.')?;
    if !["py", "rb", "js", "cjs", "mjs", "ts", "pm", "lua"].contains(&end) {
        return None;
    }
    let name = file_name(stem);
    match name {
        "__init__" | "index" => stem.rsplit('/').nth(1),
        name => Some(name),
    }
}

/// Returns the modules that a text imports by their bare names.
pub(super) fn imported_modules(text: &str) -> BTreeSet<&str> {
    let imports = text.lines().map(str::trim).filter_map(|line| {
        let python = || {
            let rest = line.strip_prefix("from ").or_else(|| line.strip_prefix("import "))?;
            rest.split([' ', '.', ',']).next()
        };
        let quoted = || {
            let (_, rest) = line.split_once("require").or_else(|| line.split_once("from "))?;
            rest.split(['"', '\'']).nth(1)
        };
        quoted().or_else(python)
    });
    imports.filter(|name| !name.is_empty() && !name.starts_with(['.', '{', '*'])).collect()
}

/// Reports a new file beside tests that has the name of a module which the tests imported before.
pub(super) fn report_shadowing_module(
    path: &RelPath,
    imported: &BTreeSet<&str>,
    removed: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    let Some(name) = path.as_str() else { return };
    let Some(module) = module_of(name).filter(|module| imported.contains(module)) else { return };
    if removed.contains(file_name(name)) || is_test_program_name(file_name(name)) {
        return;
    }
    let message = format!("tests that import `{module}` now get this file in the product's place");
    report.add_blocking(HonestyKind::SpecialCase, path, 1, message);
}

/// Reports new code of the product that compares a name with that of a file which tests read.
pub(super) fn report_known_samples(
    path: &RelPath,
    old: &str,
    new: &ParsedSource<'_>,
    rows: &[Vec<&str>],
    report: &mut HonestyReport,
) {
    let lines: Vec<&str> = new.text.lines().collect();
    for token in new.tokens.iter().filter(|token| token.is_literal()) {
        let name = token.normalized_text();
        let at = usize::try_from(token.line).unwrap_or_default();
        let line = at.checked_sub(1).and_then(|at| lines.get(at)).copied().unwrap_or_default();
        let is_file = name.len() >= MIN_SAMPLE_NAME
            && name.rsplit_once('.').is_some_and(|(stem, end)| {
                !stem.is_empty() && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphanumeric)
            });
        let is_sample =
            || rows.iter().flatten().any(|value| value.contains('/') && file_name(value) == file_name(name));
        if is_file
            && !old.contains(name)
            && !is_check_settings_file(name)
            && COMPARISONS.iter().any(|sign| line.contains(sign))
            && is_sample()
        {
            let message = format!("`{}` knows a file of the tests by its name", quote_line(line));
            report.add_blocking(HonestyKind::SpecialCase, path, token.line, message);
        }
    }
}
