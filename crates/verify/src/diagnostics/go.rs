//! Go: `go test`, `go vet`, `go build`.

use std::collections::HashSet;

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::parse_location;

/// Maximum further lines of a failure: test helpers print several lines, of which the first ones
/// say what differs.
const MAX_FAILURE_LINES: usize = 6;

/// Reads what the go command prints.
#[derive(Default)]
pub(super) struct GoReader {
    test: Option<String>,
    failed: Vec<String>,
    panic: Option<String>,
    more: usize,
}

impl LineReader for GoReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.trim_start();
        if let Some(rest) = text.strip_prefix("--- FAIL: ") {
            let name = rest.split(" (").next().unwrap_or(rest).to_owned();
            self.failed.push(name.clone());
            self.test = Some(name);
            self.more = 0;
            return true;
        }
        // With `-v` the output comes before the result.
        if let Some(name) = line.strip_prefix("=== RUN ").or_else(|| line.strip_prefix("=== CONT ")) {
            self.test = Some(name.trim().to_owned());
            self.more = 0;
            return true;
        }
        if let Some(message) = line.strip_prefix("panic: ") {
            self.panic = Some(message.trim_end_matches(" [recovered]").to_owned());
            return true;
        }
        if self.panic.is_some() && line.starts_with('\t') {
            return self.read_panic_frame(text, findings);
        }
        if line.starts_with("FAIL\t") || line.starts_with("ok  \t") || line.starts_with("# ") {
            self.test = None;
            return line.starts_with("FAIL\t") || line.starts_with("ok  \t");
        }
        let found = parse_location(text.strip_prefix("vet: ").unwrap_or(text))
            .filter(|place| place.path.ends_with(".go") && place.rest.starts_with(':'));
        if let Some(place) = found {
            let indented = line.len() > text.len();
            let message = place.rest.trim_start_matches(':').trim();
            let message = if message.is_empty() { "the test fails" } else { message };
            findings.add_error_at(place, self.test.as_deref().filter(|_| indented), message);
            self.more = if indented { MAX_FAILURE_LINES } else { 0 };
            return true;
        }
        if self.more > 0 && line.starts_with("        ") {
            findings.extend_last(text);
            self.more -= 1;
            return true;
        }
        self.more = 0;
        false
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        if let Some(message) = self.panic.take() {
            findings.add_error(self.test.as_deref(), &format!("panic: {message}"));
        }
        let failed = std::mem::take(&mut self.failed);
        let parents: HashSet<&str> =
            failed.iter().filter_map(|name| name.rsplit_once('/')).map(|(parent, _)| parent).collect();
        for name in &failed {
            if !findings.has_test(name) && !parents.contains(name.as_str()) {
                findings.add_error(Some(name), "the test fails");
            }
        }
    }
}

impl GoReader {
    /// Ends a failed test whose lines were read separately from those of other tests.
    pub(super) fn end_failed_test(&mut self, test: &str) {
        if !self.failed.iter().any(|failed| failed == test) {
            self.failed.push(test.to_owned());
        }
        self.test = None;
        self.more = 0;
    }

    /// Reads a frame such as `\t/p/x.go:12 +0x1d`: the first one in the project is the panic's
    /// location.
    fn read_panic_frame(&mut self, text: &str, findings: &mut Findings<'_>) -> bool {
        let Some(place) = parse_location(text).filter(|place| place.path.ends_with(".go")) else {
            return false;
        };
        if findings.locate(place.path).is_some()
            && let Some(message) = self.panic.take()
        {
            findings.add_error_at(place, self.test.as_deref(), &format!("panic: {message}"));
        }
        true
    }
}
