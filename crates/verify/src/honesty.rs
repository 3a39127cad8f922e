//! Honesty guards: find where a change weakens the tests and checks that are to prove it.
//!
//! [`find_dishonest_changes`] reads a whole change and returns the places where it makes tests or
//! checks verify less. Tests are read from syntax trees: functions and blocks that runners take for
//! tests, with their assertions, how strict each one is, and whether it still runs. Moved and
//! renamed tests are matched, and values that moved into a table or a helper are followed.
//! Commands, settings, comments and secrets are compared by their text.
//!
//! Changed expectations and snapshots are notices if the product changed too, because then there is
//! a reason for them; otherwise they block.

mod assertion;
mod behaviour;
mod build_modes;
mod commands;
mod complete_tables;
mod deselected_tests;
mod examples_in_docs;
mod function_bodies;
mod input_answers;
mod leniency;
mod loosened_settings;
mod makefiles;
mod narrowed_inputs;
pub(crate) mod node_kinds;
mod original_tests;
mod parsed_source;
mod product_change;
mod report;
mod rewritten_tests;
mod runtime_changes;
mod secrets;
mod setting_entries;
mod shadowed_modules;
mod skip_marks;
mod special_cases;
mod statements;
mod suppressions;
mod swallowed_failures;
mod test_changes;
mod test_discovery;
mod test_helpers;
mod test_units;
mod test_vocabulary;
mod unfailing_assertions;
mod unit_pairs;

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{HonestyFinding, HonestyKind, HonestySeverity, RelPath};
use journeyman_syntax::language::Language;

pub use original_tests::{OriginalTest, translate_original_tests};

use crate::counting_runners::runs_only_tests;
use crate::test_files::{file_name, is_snapshot, is_test_configuration, is_test_file};
use crate::test_sources::{TestSources, classify_test_sources};
use behaviour::ProductBehaviour;
use build_modes::{is_native_build, report_disabled_assertions, report_mode_dependent_results};
use commands::{compare_commands, split_commands};
use deselected_tests::report_deselected_tests;
use examples_in_docs::report_untested_examples;
use input_answers::report_input_answers;
use loosened_settings::{compare_settings, has_version_change, setting_values};
use makefiles::{compare_makefiles, is_makefile};
use parsed_source::ParsedSource;
use report::HonestyReport;
use runtime_changes::{
    report_replaced_assertions, report_replaced_clocks, report_replacing_setup, report_success_exits,
    report_test_reading,
};
use secrets::report_added_secrets;
use shadowed_modules::{imported_modules, report_known_samples, report_shadowing_module};
use special_cases::{report_answer_branches, report_runner_detection, report_tampering};
use suppressions::report_added_suppressions;
use swallowed_failures::{report_snapshot_variables, report_swallowed_failures};
use test_changes::{FileTests, compare_tests};
use test_helpers::{
    is_built_test, is_test_program, report_emptied_helpers, report_lost_failure_exits, report_test_variants,
};
use test_units::find_units;

/// Maximum bytes of a text that is read: longer ones are data or generated.
const MAX_TEXT_BYTES: usize = 512 << 10;
/// Maximum number of files of a change that are read.
const MAX_FILES: usize = 1_000;
/// Maximum bytes of all texts of a change that are read.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// A file of a change, with its text before and after it. A file with equal texts is not part of
/// the change; unchanged tests may be included, because they contain the inputs that tests try.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// The path.
    pub path: RelPath,
    /// The text before the change; `None` for a new file.
    pub old: Option<String>,
    /// The text after the change; `None` for a file that is gone.
    pub new: Option<String>,
}

/// A file of a change with its parsed sources.
struct ReadFile<'t> {
    path: &'t RelPath,
    name: &'t str,
    is_test: bool,
    old: Option<ParsedSource<'t>>,
    new: Option<ParsedSource<'t>>,
}

/// Returns the places where a change makes tests or checks verify less, those that block first.
///
/// `commands` are the checks whose success is judged: a comment that silences a tool which none of
/// them runs is a notice. None are known if it is empty.
///
/// The function is pure, bounded in time and memory, and doesn't panic on any text. Files whose
/// path is not UTF-8, and texts above the maximum length, are left out.
#[must_use]
pub fn find_dishonest_changes(files: &[ChangedFile], commands: &[&str]) -> Vec<HonestyFinding> {
    let mut report = HonestyReport::default();
    let files = read_files(files);
    let mut behaviour = ProductBehaviour::default();
    for file in files.iter().filter(|file| is_product(file)) {
        let ranges = |source: Option<&ParsedSource<'_>>| -> Vec<Range<usize>> {
            let units = source.map(|source| find_units(file.name, source, file.is_test)).unwrap_or_default();
            units.into_iter().map(|unit| unit.range).collect()
        };
        let (old, new) = (file.old.as_ref(), file.new.as_ref());
        behaviour.add_file(file.name, old, new, (&ranges(old), &ranges(new)));
    }
    if files.iter().any(|file| has_version_change(file.name, file.old_text(), file.new_text())) {
        behaviour.note_change();
    }
    let tests: Vec<FileTests<'_, '_>> = files.iter().filter_map(read_tests).collect();
    compare_tests(&tests, &behaviour, &mut report);
    let tests_before = || files.iter().filter(|file| file.is_test);
    let around = ChangeContext {
        rows: literal_rows(&tests),
        tests: files.iter().filter(|file| file.is_test).map(|file| file.name).collect(),
        called: tests.iter().flat_map(|file| &file.old).flat_map(|unit| unit.words.iter().copied()).collect(),
        imported: tests_before().flat_map(|file| imported_modules(file.old_text())).collect(),
        removed: files.iter().filter(|file| file.new.is_none()).map(|file| file_name(file.name)).collect(),
        commands: files
            .iter()
            .filter(|file| file.has_changed())
            .flat_map(|file| split_commands(file.new_text()))
            .collect(),
        settings: files.iter().flat_map(|file| setting_values(file.name, file.new_text())).collect(),
        detector: Redactor::new([]),
        behaviour,
    };
    for file in files.iter().filter(|file| file.has_changed()) {
        compare_file(file, &around, &mut report);
    }
    let sources: Vec<_> =
        files.iter().map(|file| (file.path, file.is_test, file.old.as_ref(), file.new.as_ref())).collect();
    let only_tests = !commands.is_empty() && commands.iter().all(|command| runs_only_tests(command));
    report_added_suppressions(&sources, only_tests, &mut report);
    report.into_findings()
}

fn read_files(files: &[ChangedFile]) -> Vec<ReadFile<'_>> {
    let built = test_sources_of_change(files);
    let mut left = MAX_TOTAL_BYTES;
    let mut read = Vec::new();
    for file in files.iter().take(MAX_FILES) {
        let Some(name) = file.path.as_str() else { continue };
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let (old, new) = (length(&file.old), length(&file.new));
        if old.max(new) > MAX_TEXT_BYTES || old + new > left {
            continue;
        }
        left -= old + new;
        let source = |text| ParsedSource::new(name, text);
        let (old, new) = (file.old.as_deref().map(source), file.new.as_deref().map(source));
        let is_built = || {
            let source = old.as_ref().or(new.as_ref());
            source.zip(built.get(name)).is_some_and(|(source, part)| is_built_test(source, *part))
        };
        let is_test = is_test_file(name) || old.as_ref().is_some_and(is_test_program) || is_built();
        read.push(ReadFile { path: &file.path, name, is_test, old, new });
    }
    read
}

/// Returns the changed sources that are tests because a build compiles them into test programs, not
/// by their names. `files` includes the build files, changed or not.
#[must_use]
pub fn find_changed_test_sources(files: &[ChangedFile]) -> Vec<RelPath> {
    let built = |file: &ReadFile<'_>| file.is_test && file.has_changed() && !is_test_file(file.name);
    let read = read_files(files);
    read.iter().filter(|file| file.old.is_some() && built(file)).map(|file| file.path.clone()).collect()
}

/// Returns the sources that build files compiled into test programs before the change, or after it
/// for a new build file.
fn test_sources_of_change(files: &[ChangedFile]) -> TestSources {
    let texts = files.iter().take(MAX_FILES).filter_map(|file| {
        let text = file.old.as_deref().or(file.new.as_deref())?;
        Some((file.path.as_str()?, text)).filter(|_| text.len() <= MAX_TEXT_BYTES)
    });
    classify_test_sources(texts)
}

impl ReadFile<'_> {
    fn has_changed(&self) -> bool {
        self.old.as_ref().map(|source| source.text) != self.new.as_ref().map(|source| source.text)
    }

    fn old_text(&self) -> &str {
        self.old.as_ref().map_or("", |source| source.text)
    }

    fn new_text(&self) -> &str {
        self.new.as_ref().map_or("", |source| source.text)
    }
}

/// Returns true for a file of the product: neither a test nor a file that only configures tests.
fn is_product(file: &ReadFile<'_>) -> bool {
    !file.is_test && !loosened_settings::is_check_settings_file(file.name) && !is_command_file(file.name)
}

/// Returns true for a shell script or a build file that runs checks.
fn is_command_file(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    [".sh", ".bash", ".mk", ".bat", ".ps1", ".cmd"].iter().any(|ending| name.ends_with(ending))
        || ["makefile", "gnumakefile", "justfile", ".justfile", "dockerfile", "taskfile.yml", "procfile"]
            .contains(&name.as_str())
}

fn read_tests<'t>(file: &ReadFile<'t>) -> Option<FileTests<'t, 't>> {
    let units = |source: &Option<ParsedSource<'t>>| {
        source.as_ref().map(|source| find_units(file.name, source, file.is_test)).unwrap_or_default()
    };
    let (old, new) = (units(&file.old), units(&file.new));
    (!old.is_empty() || !new.is_empty()).then_some(FileTests { path: file.path, old, new })
}

/// Returns the literals of each line of the tests before the change, in order.
fn literal_rows<'t>(tests: &[FileTests<'_, 't>]) -> Vec<Vec<&'t str>> {
    /// Maximum number of lines.
    const MAX_ROWS: usize = 5_000;
    /// Minimum bytes of a value that is significant alone.
    const MIN_LONG_VALUE: usize = 12;
    /// Maximum literals of a test that are taken together: those of a longer test are unrelated.
    const MAX_SHORT_TEST: usize = 4;
    let mut rows = Vec::new();
    let constants = ["true", "false", "True", "False", "None", "null", "nil"];
    for unit in tests.iter().flat_map(|file| &file.old) {
        // A short test has its input on one line and what it expects on another.
        let all: Vec<&str> = unit
            .tokens
            .iter()
            .filter(|token| token.is_literal())
            .map(|token| token.normalized_text())
            .collect();
        if unit.is_test && (2..=MAX_SHORT_TEST).contains(&all.len()) && rows.len() < MAX_ROWS {
            rows.push(all);
        }
        for line in unit.tokens.chunk_by(|one, other| one.line == other.line) {
            let values = line.iter().filter(|token| token.is_literal() || constants.contains(&token.text));
            let row: Vec<&str> = values.map(|token| token.normalized_text()).collect();
            let is_long = row.iter().any(|value| value.len() >= MIN_LONG_VALUE);
            if (row.len() > 1 || is_long) && rows.len() < MAX_ROWS {
                rows.push(row);
            }
        }
    }
    rows
}

/// The facts about the whole change that the comparison of one file needs.
struct ChangeContext<'t> {
    /// The literals of each line of the tests before the change.
    rows: Vec<Vec<&'t str>>,
    /// The paths of tests.
    tests: BTreeSet<&'t str>,
    /// The words that occur in tests before the change.
    called: BTreeSet<&'t str>,
    /// The modules that tests import, before the change.
    imported: BTreeSet<&'t str>,
    /// The names of files that are gone.
    removed: BTreeSet<&'t str>,
    commands: BTreeSet<String>,
    settings: BTreeSet<(String, Vec<String>)>,
    detector: Redactor,
    behaviour: ProductBehaviour<'t>,
}

/// Compares the parts of a file that are not tests.
fn compare_file(file: &ReadFile<'_>, around: &ChangeContext<'_>, report: &mut HonestyReport) {
    let (old, new) = (file.old_text(), file.new_text());
    if is_snapshot(file.name) || file.is_test && is_test_data(file.name) {
        compare_snapshot(file, &around.behaviour, report);
    }
    if is_ignore_list(file.name) {
        compare_ignore_list(file, report);
    }
    let is_settings = loosened_settings::is_check_settings_file(file.name);
    if is_settings {
        compare_settings(file.path, old, new, &around.settings, report);
    }
    if is_settings && !is_code_settings(file.name) || is_command_file(file.name) {
        compare_commands(file.path, old, new, &around.commands, report);
    }
    if is_makefile(file.name) {
        compare_makefiles(file.path, old, new, report);
    }
    if file.is_test && file.old.is_none() {
        report_shadowing_module(file.path, &around.imported, &around.removed, report);
    }
    report_deselected_tests(file.path, old, new, report);
    report_untested_examples(file.path, old, new, report);
    if !behaviour::is_document(file.name) {
        report_snapshot_variables(file.path, old, new, report);
    }
    if is_baseline(file.name) && !file.is_test {
        report_grown_baseline(file, report);
    }
    if is_native_build(file.name) {
        report_disabled_assertions(file.path, old, new, &around.tests, report);
    }
    if let Some(source) = &file.new {
        if !is_command_file(file.name) {
            report_success_exits(file.path, old, new, report);
        }
        if is_product(file) {
            let (tests, called) = (&around.tests, &around.called);
            report_replaced_assertions(file.path, old, new, report);
            report_replaced_clocks(file.path, old, new, report);
            report_test_reading(file.path, file.old.as_ref(), source, (tests, called), report);
            report_mode_dependent_results(file.path, file.old.as_ref(), source, called, report);
            report_answer_branches(file.path, file.old.as_ref(), source, (&around.rows, called), report);
            report_known_samples(file.path, old, source, &around.rows, report);
            report_runner_detection(file.path, old, new, report);
            report_test_variants(file.path, old, new, &around.called, report);
            if let Some(before) = &file.old {
                report_input_answers(file.path, before, source, &around.rows, report);
                report_emptied_helpers(file.path, before, source, &around.called, report);
            }
        } else if let Some(before) = file.old.as_ref().filter(|_| file.is_test && is_c_or_cpp(source)) {
            report_lost_failure_exits(file.path, before, source, report);
        }
        if !is_product(file) && (file.is_test || is_test_configuration(file.name)) {
            report_tampering(file.path, old, new, report);
            report_swallowed_failures(file.path, old, new, report);
            report_replacing_setup(file.path, old, new, &around.called, report);
        }
        report_added_secrets(file.path, file.is_test, old, source, &around.detector, report);
        report_excluded_test_modules(file, report);
    }
}

/// Returns true for a source in a language whose tests are programs that return a failure as their
/// exit code.
fn is_c_or_cpp(source: &ParsedSource<'_>) -> bool {
    matches!(source.language, Some(Language::C | Language::Cpp))
}

/// Returns true for a list of findings that a checker accepts.
fn is_baseline(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    let lists = ["baseline", "rubocop_todo", "suppressions", "known_failures", "known-failures"];
    lists.iter().any(|list| name.contains(list)) && !["bench", "perf"].iter().any(|it| name.contains(it))
}

/// Reports findings that a change adds to those that a checker accepts.
fn report_grown_baseline(file: &ReadFile<'_>, report: &mut HonestyReport) {
    let (Some(old), Some(new)) = (&file.old, &file.new) else { return };
    let entries = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let numbers = |text: &str| -> u64 {
        let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| part.len() < 4);
        parts.filter_map(|part| part.parse::<u64>().ok()).sum()
    };
    let (before, after) = (entries(old.text), entries(new.text));
    let at = new.text.lines().position(|line| !old.text.lines().any(|known| known == line));
    if let Some(at) =
        at.filter(|_| after > before || after == before && numbers(new.text) > numbers(old.text))
    {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let message = "a checker accepts findings that it reported before".to_owned();
        report.add_blocking(HonestyKind::LintSuppressed, file.path, line, message);
    }
}

/// Returns true for a list of files that a checker ignores.
fn is_ignore_list(path: &str) -> bool {
    let name = file_name(path);
    let version_control =
        ["gitignore", "dockerignore", "npmignore", "hgignore", "helmignore", "prettierignore"];
    name.starts_with('.') && name.ends_with("ignore") && !version_control.iter().any(|it| name.ends_with(it))
}

/// Reports files that a checker newly ignores.
fn compare_ignore_list(file: &ReadFile<'_>, report: &mut HonestyReport) {
    let known: BTreeSet<&str> = file.old_text().lines().map(str::trim).collect();
    for (at, line) in file.new_text().lines().enumerate() {
        let line = line.trim();
        if line.is_empty()
            || line.starts_with('#')
            || known.contains(line)
            || loosened_settings::is_generated(line)
        {
            continue;
        }
        let message = format!("`{line}` is left out of a check");
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        report.add_blocking(HonestyKind::ConfigurationLoosened, file.path, number, message);
    }
}

/// Returns true for a settings file that is written as code or in XML, which no reader of plain
/// settings takes apart.
fn is_code_settings(path: &str) -> bool {
    [".js", ".cjs", ".mjs", ".ts", ".mts", ".xml", ".csproj"].iter().any(|ending| path.ends_with(ending))
}

/// Returns true for data beside tests, which may contain their expectations.
fn is_test_data(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, end)| end);
    let code = Language::from_path(path).is_some_and(|language| {
        !matches!(language, Language::Json | Language::Yaml | Language::Toml | Language::Html | Language::Css)
    });
    let expected = ["expected", "golden", "fixture", "snapshot", "approved", "reference", "testdata"]
        .iter()
        .any(|word| path.to_ascii_lowercase().contains(word));
    !code && (expected || matches!(extension, "out" | "golden" | "stdout" | "stderr" | "expected"))
}

/// Reports recorded output that changed.
fn compare_snapshot(file: &ReadFile<'_>, behaviour: &ProductBehaviour<'_>, report: &mut HonestyReport) {
    let Some(old) = &file.old else { return };
    let new = file.new_text();
    let line = old.text.lines().zip(new.lines()).position(|(one, other)| one != other);
    let line = line.unwrap_or_else(|| old.text.lines().count().min(new.lines().count()));
    let shown =
        |text: &str| text.lines().nth(line).unwrap_or_default().trim().chars().take(80).collect::<String>();
    let removed = old.text.lines().count() > new.lines().count() || file.new.is_none();
    let severity = match behaviour.has_changed() {
        true => HonestySeverity::Notice,
        // Added lines alone record new output.
        false if !removed && old.text.lines().all(|line| new.lines().any(|other| other == line)) => return,
        false => HonestySeverity::Blocking,
    };
    let message = match file.new.is_some() {
        true => format!("the recorded `{}` became `{}`", shown(old.text), shown(new)),
        false => "the recorded output is gone".to_owned(),
    };
    let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
    report.add(severity, HonestyKind::SnapshotChanged, file.path, line, message);
}

/// Reports test modules that are no longer part of their program, and directives that exclude a
/// test file from it.
fn report_excluded_test_modules(file: &ReadFile<'_>, report: &mut HonestyReport) {
    let (Some(old), Some(new)) = (&file.old, &file.new) else { return };
    let in_tests = file.is_test || old.text.contains("mod tests;");
    if !in_tests {
        return;
    }
    let module = |line: &str| {
        let line = line.trim();
        let name = line.strip_prefix("mod ").or_else(|| line.strip_prefix("pub mod "))?.strip_suffix(';')?;
        Some(name.trim().to_owned())
    };
    let after: BTreeSet<String> = new.text.lines().filter_map(module).collect();
    let lost: Vec<(usize, String)> = old
        .text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at, module(line)?)))
        .filter(|(_, name)| !after.contains(name))
        .collect();
    let came =
        after.iter().filter(|name| !old.text.lines().filter_map(module).any(|one| one == **name)).count();
    for (at, name) in lost.iter().skip(came) {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let message = format!("`mod {name};` is gone, so its tests are no part of the program");
        report.add_blocking(HonestyKind::TestUndiscovered, file.path, line, message);
    }
    let hides = |line: &str| {
        let line = line.trim();
        line.starts_with("//go:build")
            || line.starts_with("// +build")
            || line.starts_with("#![cfg(")
            || line.starts_with("#if 0")
            || line.starts_with("#![cfg_attr")
    };
    for (at, line) in new.text.lines().enumerate().filter(|(_, line)| hides(line)) {
        let is_known = |known: &str| {
            known == line
                || words_of_constraint(known).is_some_and(|tags| Some(tags) == words_of_constraint(line))
        };
        if !old.text.lines().any(is_known) {
            let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}` leaves tests out of the build", line.trim());
            report.add_blocking(HonestyKind::TestUndiscovered, file.path, line_number, message);
        }
    }
}

/// Returns the tags of a build constraint of Go, in its old or its new form.
fn words_of_constraint(line: &str) -> Option<BTreeSet<&str>> {
    let line = line.trim();
    let tags = line.strip_prefix("//go:build").or_else(|| line.strip_prefix("// +build"))?;
    Some(
        tags.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '!'))
            .filter(|it| !it.is_empty())
            .collect(),
    )
}
