//! Readers of the output of compilers, linters and test runners as [`Diagnostic`]s.
//!
//! A document in the output (JSON of a known tool, JUnit's XML) is parsed as a document. Every
//! reader of text is a small state machine over lines; each line goes to the readers in turn until
//! one claims it. All readers run on any output, because a custom check or a `make` target may be
//! any tool.

mod build_tools;
mod compared_values;
mod compilers;
mod documents;
mod failure_blocks;
mod findings;
mod generic;
mod go;
mod go_json;
mod javascript;
mod javascript_titles;
mod json_values;
mod junit;
mod jvm;
mod line_reader;
mod line_readers;
mod lint_json;
mod location;
mod marked_tests;
mod order;
mod python;
mod rust;
mod source_quotes;
mod tap;
mod test_json;
mod test_names;

use std::path::Path;

use journeyman_protocol::{Diagnostic, RelPath, TestCounts};

use documents::DocumentReader;
use findings::Findings;
pub use findings::{LocateFile, MAX_DIAGNOSTICS};
use line_readers::{new_line_readers, read_line};
use location::resolve_parents;
pub use order::sort_by_cause;
pub(crate) use source_quotes::quote_sources;

/// The diagnostics and the test counts of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedOutput {
    /// The findings by likely cause.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of tests, if a structured report counts them.
    pub tests: Option<TestCounts>,
}

/// Reads `output` by likely cause ([`sort_by_cause`]), at most [`MAX_DIAGNOSTICS`]; when there are
/// more, the last one says how many. `locate` turns a printed path into one of the project's files.
#[must_use]
pub fn parse_diagnostics(output: &str, locate: &LocateFile<'_>) -> Vec<Diagnostic> {
    read_output(output, &[], locate).diagnostics
}

/// Reads `output` and the `reports` (JUnit's XML or JSON) of the same run. A test that both mention
/// is one diagnostic. JSON of known tools, JUnit's XML and TAP are found in the output as well.
/// Takes time linear in the texts, except for a bounded number of attempts, and never panics.
#[must_use]
pub fn read_output(output: &str, reports: &[String], locate: &LocateFile<'_>) -> ParsedOutput {
    let mut findings = Findings::new(locate);
    for report in reports {
        let mut documents = DocumentReader::default();
        documents.read(report.trim_start(), &mut findings);
        documents.finish(&mut findings);
    }
    let has_counts = findings.test_counts().is_some();
    let mut documents = DocumentReader::default();
    let mut readers = new_line_readers();
    let mut rest = output;
    while !rest.is_empty() {
        if let Some(length) = documents.read(rest, &mut findings) {
            rest = rest.get(length..).unwrap_or_default();
            rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest = rest.strip_prefix('\n').unwrap_or(rest);
            continue;
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        read_line(line, &mut readers, &mut findings);
        rest = after;
    }
    documents.finish(&mut findings);
    for reader in &mut readers {
        reader.finish(&mut findings);
    }
    let tests = findings.test_counts().filter(|_| has_counts || reports.is_empty());
    ParsedOutput { tests, diagnostics: findings.into_ordered() }
}

/// Turns a path that a tool printed while running in `directory` of the project at `root` into a
/// path beneath the root: by its text alone, without asking the file system. Absolute paths lose
/// the root's prefix; `file://` is dropped; `None` for what lies elsewhere.
#[must_use]
pub fn project_path(root: &Path, directory: Option<&RelPath>, printed: &str) -> Option<RelPath> {
    let printed = printed.strip_prefix("file://").unwrap_or(printed);
    if let Ok(inside) = Path::new(printed).strip_prefix(root) {
        return RelPath::parse(inside.to_str()?).ok();
    }
    if printed.starts_with('/') || printed.contains("://") {
        return None;
    }
    let resolved = match directory {
        Some(directory) => resolve_parents(&format!("{}/{printed}", directory.as_str()?))?,
        None => resolve_parents(printed)?,
    };
    RelPath::parse(resolved).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_paths_come_to_lie_beneath_the_root() {
        let root = Path::new("/home/me/p");
        let sub = RelPath::parse("web/app").unwrap();
        let cases = [
            (None, "src/a.rs", Some("src/a.rs")),
            (None, "./src/a.rs", Some("src/a.rs")),
            (None, "/home/me/p/src/a.rs", Some("src/a.rs")),
            (None, "file:///home/me/p/a.js", Some("a.js")),
            (None, "/home/me/parent/a.rs", None),
            (None, "https://jsr.io/a.ts", None),
            (None, "/rustc/abc/library/core/src/option.rs", None),
            (None, "../other/a.rs", None),
            (None, "", None),
            (Some(&sub), "src/a.ts", Some("web/app/src/a.ts")),
            (Some(&sub), "../lib/b.ts", Some("web/lib/b.ts")),
            (Some(&sub), "../../../x", None),
        ];
        for (directory, printed, expected) in cases {
            let found = project_path(root, directory, printed).map(|path| path.to_string());
            assert_eq!(found.as_deref(), expected, "{printed}");
        }
    }
}
