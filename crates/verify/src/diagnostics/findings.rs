//! The findings of all readers so far.

use std::collections::HashSet;

use journeyman_protocol::{Diagnostic, RelPath, Severity, TestCounts, clip_to_bytes};

use super::compared_values::parse_compared_values;
use super::location::{Location, resolve_parents};
use super::order::sort_by_cause;
use super::test_names::is_same_test;

/// Maximum number of reported findings: more say nothing new to a reader, and would crowd out the
/// rest of a request.
pub const MAX_DIAGNOSTICS: usize = 50;

/// Finds the file that a tool means by a path, or `None` when it is not the project's.
pub type LocateFile<'a> = dyn Fn(&str) -> Option<RelPath> + 'a;

/// Maximum number of collected findings: enough for all errors behind many warnings, and small
/// enough for memory.
const MAX_COLLECTED_FINDINGS: usize = 2_000;
/// Maximum number of failures of structured reports that are compared with those of the output:
/// each is compared with each.
const MAX_MERGED_FAILURES: usize = 500;
/// Maximum bytes of a message: a longer one is a dump of values, and the output has the rest.
const MAX_MESSAGE_BYTES: usize = 600;
/// Maximum bytes of a code, the name of a test or a compared value.
const MAX_SHORT_TEXT_BYTES: usize = 300;

/// The identity of a finding: place, code, test and message.
type FindingKey = (Option<RelPath>, Option<u32>, Option<u32>, String);

/// Maximum depth of directories that make enters.
const MAX_ENTERED_DIRECTORIES: usize = 64;
/// Maximum components of a copy's path before the project's own.
const MAX_COPY_COMPONENTS: usize = 8;

/// Collects diagnostics without duplicates.
pub(super) struct Findings<'a> {
    locate: &'a LocateFile<'a>,
    /// The directories that make and ninja have entered.
    directories: Vec<String>,
    found: Vec<Diagnostic>,
    /// Failed tests of structured reports, which the output may mention as well.
    reported: Vec<Diagnostic>,
    known: HashSet<FindingKey>,
    tests: HashSet<String>,
    tests_in: HashSet<(Option<RelPath>, String)>,
    counts: Option<TestCounts>,
    left_out: usize,
}

impl<'a> Findings<'a> {
    pub(super) fn new(locate: &'a LocateFile<'a>) -> Self {
        Self {
            locate,
            directories: Vec::new(),
            found: Vec::new(),
            reported: Vec::new(),
            known: HashSet::new(),
            tests: HashSet::new(),
            tests_in: HashSet::new(),
            counts: None,
            left_out: 0,
        }
    }

    /// Returns an empty collection for a part of a report.
    pub(super) fn new_nested(&self) -> Self {
        Self::new(self.locate)
    }

    /// Returns the project's file that a tool means by `path`, which may be relative to the
    /// directory that make has entered. That may be one of a copy of the project.
    pub(super) fn locate(&self, path: &str) -> Option<RelPath> {
        let entered = self.directories.last().filter(|_| !path.starts_with('/') && !path.contains("://"));
        let from_there = entered.and_then(|directory| {
            let whole = format!("/{}", resolve_parents(&format!("{directory}/{path}"))?);
            (self.locate)(&whole).or_else(|| {
                let within = whole.match_indices('/').map(|(at, _)| whole.get(at + 1..).unwrap_or_default());
                within.skip(1).take(MAX_COPY_COMPONENTS).find_map(self.locate)
            })
        });
        from_there.or_else(|| (self.locate)(path))
    }

    /// Notes the directory that `make[1]: Entering directory '/p/src'` names, and its end.
    pub(super) fn note_directory(&mut self, line: &str) {
        let named = |mark: &str| {
            let (program, rest) = line.split_once(mark)?;
            let is_make = !program.contains(char::is_whitespace) && program.ends_with(':');
            is_make.then(|| rest.trim_matches(['\'', '`']).to_owned())
        };
        if let Some(directory) = named(" Entering directory ") {
            if self.directories.len() < MAX_ENTERED_DIRECTORIES {
                self.directories.push(directory);
            }
        } else if let Some(directory) = named(" Leaving directory ")
            && let Some(at) = self.directories.iter().rposition(|entered| *entered == directory)
        {
            self.directories.remove(at);
        }
    }

    /// Adds an error at `place`, whose file may lie outside the project.
    pub(super) fn add_error_at(&mut self, place: Location<'_>, test: Option<&str>, message: &str) {
        let error = Diagnostic::new(Severity::Error, message);
        let error = self.with_location(error, place);
        self.push(Diagnostic { test: test.map(str::to_owned), ..error });
    }

    /// Adds an error that has no place.
    pub(super) fn add_error(&mut self, test: Option<&str>, message: &str) {
        self.push(Diagnostic { test: test.map(str::to_owned), ..Diagnostic::new(Severity::Error, message) });
    }

    /// Puts a diagnostic at `place`, if its file is the project's.
    pub(super) fn with_location(&self, diagnostic: Diagnostic, place: Location<'_>) -> Diagnostic {
        let path = self.locate(place.path);
        let (line, column) = if path.is_some() { (Some(place.line), place.column) } else { (None, None) };
        Diagnostic { path, line, column, ..diagnostic }
    }

    /// Adds a finding unless it is known; bounds its texts.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        let Some(diagnostic) = truncate_texts(diagnostic) else { return };
        let mut named = diagnostic.message.clone();
        for word in [&diagnostic.code, &diagnostic.test].into_iter().flatten() {
            named.push('\n');
            named.push_str(word);
        }
        let key = (diagnostic.path.clone(), diagnostic.line, diagnostic.column, named);
        if self.found.len() >= MAX_COLLECTED_FINDINGS {
            self.left_out = self.left_out.saturating_add(1);
        } else if self.known.insert(key) {
            if let Some(test) = &diagnostic.test {
                self.tests.insert(test.clone());
                self.tests_in.insert((diagnostic.path.clone(), test.clone()));
            }
            self.found.push(diagnostic);
        }
    }

    /// Adds a failed test of a structured report, which replaces the output's finding about the
    /// same test.
    pub(super) fn add_failed_test(&mut self, diagnostic: Diagnostic) {
        if self.reported.len() >= MAX_MERGED_FAILURES {
            self.push(diagnostic);
        } else if let Some(diagnostic) = truncate_texts(diagnostic) {
            self.reported.push(diagnostic);
        }
    }

    /// Adds the tests that a structured report counts.
    pub(super) fn add_test_counts(&mut self, more: TestCounts) {
        let counts = self.counts.get_or_insert_default();
        counts.passed = counts.passed.saturating_add(more.passed);
        counts.failed = counts.failed.saturating_add(more.failed);
        counts.skipped = counts.skipped.saturating_add(more.skipped);
    }

    /// Returns the tests that structured reports counted, if there were any.
    pub(super) fn test_counts(&self) -> Option<TestCounts> {
        self.counts
    }

    /// Adds to the newest finding's message, within bounds.
    pub(super) fn extend_last(&mut self, more: &str) {
        let Some(last) = self.found.last_mut() else { return };
        let room = MAX_MESSAGE_BYTES.saturating_sub(last.message.len() + 2);
        let more = clip_to_bytes(more.trim(), room);
        if !more.is_empty() && last.message.split("; ").all(|part| part != more) {
            last.message.push_str("; ");
            last.message.push_str(more);
        }
    }

    /// Sets how long the newest failure of a test took.
    pub(super) fn set_duration(&mut self, test: &str, duration_ms: u64) {
        if let Some(found) = self.found.iter_mut().rev().find(|one| one.test.as_deref() == Some(test)) {
            found.duration_ms.get_or_insert(duration_ms);
        }
    }

    /// Removes the findings about a test that passed after all.
    pub(super) fn forget_test(&mut self, test: &str) {
        self.found.retain(|one| one.test.as_deref() != Some(test));
    }

    /// Returns true if a finding is about this test.
    pub(super) fn has_test(&self, test: &str) -> bool {
        self.tests.contains(test)
    }

    /// Returns true if a finding lies in `path` and is about this test.
    pub(super) fn has_test_in(&self, path: Option<&RelPath>, test: &str) -> bool {
        self.tests_in.contains(&(path.cloned(), test.to_owned()))
    }

    /// Returns true if an error outside of tests lies in `path`.
    pub(super) fn has_error_in(&self, path: &RelPath) -> bool {
        self.found.iter().any(|one| one.test.is_none() && one.path.as_ref() == Some(path))
    }

    /// Returns the first finding with a place in the project, or else the first one.
    pub(super) fn into_first_located(mut self) -> Option<Diagnostic> {
        match self.found.iter().position(|one| one.line.is_some()) {
            Some(at) => Some(self.found.swap_remove(at)),
            None => self.found.into_iter().next(),
        }
    }

    /// Returns all findings ordered by likely cause, cut to [`MAX_DIAGNOSTICS`].
    pub(super) fn into_ordered(mut self) -> Vec<Diagnostic> {
        self.merge_reported();
        for one in &mut self.found {
            if one.expected.is_none()
                && may_compare_values(one)
                && let Some(values) = parse_compared_values(&one.message)
            {
                one.expected = Some(clip_to_bytes(&values.expected, MAX_SHORT_TEXT_BYTES).to_owned());
                one.actual = Some(clip_to_bytes(&values.actual, MAX_SHORT_TEXT_BYTES).to_owned());
            }
        }
        sort_by_cause(&mut self.found, &[]);
        let all = self.found.len() + self.left_out;
        if all > MAX_DIAGNOSTICS {
            self.found.truncate(MAX_DIAGNOSTICS - 1);
            let more = all - self.found.len();
            self.found.push(Diagnostic::unlisted(more));
        }
        self.found
    }

    /// Replaces the output's findings about a test by the failures of structured reports, and adds
    /// to these what only the output has.
    fn merge_reported(&mut self) {
        for mut report in std::mem::take(&mut self.reported) {
            let name = report.test.clone().unwrap_or_default();
            let same = |one: &Diagnostic| one.test.as_deref().is_some_and(|test| is_same_test(test, &name));
            let first = self.found.iter().position(&same);
            let has_place = |one: &&Diagnostic| same(one) && one.line.is_some();
            if let Some(printed) =
                self.found.iter().find(has_place).or_else(|| first.and_then(|at| self.found.get(at)))
            {
                if report.line.is_none() && printed.line.is_some() {
                    (report.path, report.line, report.column) =
                        (printed.path.clone(), printed.line, printed.column);
                }
                if report.message.is_empty() || printed.message.starts_with(&report.message) {
                    report.message.clone_from(&printed.message);
                }
            }
            self.found.retain(|one| !same(one));
            if self.found.len() < MAX_COLLECTED_FINDINGS {
                self.found.insert(first.unwrap_or(self.found.len()).min(self.found.len()), report);
            }
        }
    }
}

/// Returns true if the diagnostic may have compared values; a compiler's "expected" is about types.
fn may_compare_values(diagnostic: &Diagnostic) -> bool {
    diagnostic.test.is_some() || diagnostic.message.contains("assert")
}

/// Limits the length of a diagnostic's texts; `None` if all are empty.
fn truncate_texts(mut diagnostic: Diagnostic) -> Option<Diagnostic> {
    if diagnostic.expected.is_none()
        && may_compare_values(&diagnostic)
        && let Some(values) = parse_compared_values(&diagnostic.message)
    {
        // The message is cut below, and a long value may push the other one out of it.
        diagnostic.expected = Some(values.expected);
        diagnostic.actual = Some(values.actual);
    }
    // Lines and columns are counted from 1; some tools print 0 for none.
    diagnostic.line = diagnostic.line.filter(|line| *line > 0);
    diagnostic.column = diagnostic.column.filter(|column| *column > 0);
    diagnostic.message = clip_to_bytes(diagnostic.message.trim(), MAX_MESSAGE_BYTES).to_owned();
    for word in [&mut diagnostic.code, &mut diagnostic.test, &mut diagnostic.expected, &mut diagnostic.actual]
    {
        *word = word.take().map(|word| clip_to_bytes(word.trim(), MAX_SHORT_TEXT_BYTES).to_owned());
    }
    (!diagnostic.message.is_empty() || diagnostic.code.is_some() || diagnostic.test.is_some())
        .then_some(diagnostic)
}
