//! The JVM: javac, Maven, Gradle and the stack traces of tests.

use journeyman_protocol::{Diagnostic, Severity};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_number};

/// Maximum lines of a message: a cause and its explanation, without the stack trace.
const MAX_MESSAGE_LINES: usize = 4;

/// Reads what Maven, Gradle and JUnit print.
#[derive(Default)]
pub(super) struct JvmReader {
    failure: Option<FailedTest>,
}

/// A failed test whose exception or location has not been printed yet.
struct FailedTest {
    test: String,
    class: String,
    message: Vec<String>,
}

impl LineReader for JvmReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.strip_prefix("[ERROR] ").or_else(|| line.strip_prefix("[WARNING] ")).unwrap_or(line);
        let is_maven = text.len() < line.len();
        if is_maven && read_maven_diagnostic(text, line.starts_with("[WARNING]"), findings) {
            return true;
        }
        if let Some((name, class)) = parse_failed_test(text) {
            self.flush_failure(findings);
            self.failure = Some(FailedTest { test: name, class, message: Vec::new() });
            return true;
        }
        if self.failure.is_none() {
            return false;
        }
        let trimmed = text.trim_start();
        if let Some(frame) = trimmed.strip_prefix("at ") {
            return self.read_frame(frame, findings);
        }
        if trimmed.is_empty() || trimmed.starts_with("[INFO]") {
            // Gradle leaves a line between the heading and the exception.
            if self.failure.as_ref().is_some_and(|failure| !failure.message.is_empty()) {
                self.flush_failure(findings);
            }
            return false;
        }
        if let Some(failure) = self.failure.as_mut().filter(|one| one.message.len() < MAX_MESSAGE_LINES) {
            failure.message.push(trimmed.to_owned());
        }
        true
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush_failure(findings);
    }
}

impl JvmReader {
    /// Reads `com.x.CalcTest.adds(CalcTest.java:12)`: the file is found by its name and its
    /// package.
    fn read_frame(&mut self, frame: &str, findings: &mut Findings<'_>) -> bool {
        let Some((qualified, rest)) = frame.rsplit_once('(') else { return true };
        let Some((file, line)) = rest.trim_end_matches(')').rsplit_once(':') else { return true };
        let Some((line, "")) = parse_number(line) else { return true };
        let qualified = qualified.rsplit('/').next().unwrap_or(qualified);
        let is_own = self.failure.as_ref().is_some_and(|failure| {
            let class = failure.class.split('$').next().unwrap_or_default();
            !class.is_empty() && qualified.split('$').next().is_some_and(|name| name.contains(class))
        });
        if !is_own {
            return true;
        }
        let Some(failure) = self.failure.take() else { return true };
        let class = qualified.rsplit_once('.').map_or("", |(class, _)| class);
        let package =
            class.rsplit_once('.').map_or(String::new(), |(package, _)| package.replace('.', "/") + "/");
        const SOURCE_ROOTS: [&str; 4] = ["src/test/java/", "src/test/kotlin/", "src/main/java/", ""];
        let paths = SOURCE_ROOTS.iter().map(|root| format!("{root}{package}{file}"));
        let path = paths.into_iter().find(|path| findings.locate(path).is_some()).unwrap_or_default();
        let message = failure.text();
        let place = Location { path: &path, line, column: None, rest: "" };
        findings.add_error_at(place, Some(&failure.test), &message);
        true
    }

    fn flush_failure(&mut self, findings: &mut Findings<'_>) {
        if let Some(failure) = self.failure.take()
            && !findings.has_test(&failure.test)
        {
            findings.add_error(Some(&failure.test), &failure.text());
        }
    }
}

impl FailedTest {
    fn text(&self) -> String {
        if self.message.is_empty() { "the test fails".to_owned() } else { self.message.join("; ") }
    }
}

/// Reads `/p/src/A.java:[3,5] cannot find symbol`.
fn read_maven_diagnostic(text: &str, is_warning: bool, findings: &mut Findings<'_>) -> bool {
    let Some((path, rest)) = text.split_once(":[") else { return false };
    let Some((line, rest)) = parse_number(rest) else { return false };
    let (column, rest) = match rest.strip_prefix(',').and_then(parse_number) {
        Some((column, rest)) => (Some(column), rest),
        None => (None, rest),
    };
    let Some(message) = rest.strip_prefix(']') else { return false };
    let severity = if is_warning { Severity::Warning } else { Severity::Error };
    let found = Diagnostic::new(severity, message.trim());
    let found = findings.with_location(found, Location { path, line, column, rest: "" });
    findings.push(found);
    true
}

/// Returns the test and its class: `com.x.CalcTest.adds -- Time elapsed: 0.01 s <<< FAILURE!`,
/// `adds(com.x.CalcTest)  Time elapsed: …` of older Maven, `CalcTest > adds() FAILED` of Gradle.
fn parse_failed_test(text: &str) -> Option<(String, String)> {
    if let Some(gradle) = text.strip_suffix(" FAILED")
        && let Some((class, name)) = gradle.split_once(" > ")
    {
        let name = name.trim_end_matches("()");
        return Some((format!("{class}.{name}"), class.to_owned()));
    }
    let before = text.strip_suffix("<<< FAILURE!").or_else(|| text.strip_suffix("<<< ERROR!"))?;
    let name = before.split("Time elapsed").next()?.trim().trim_end_matches('-').trim();
    if name.starts_with("Tests run:") {
        return None;
    }
    if let Some((name, class)) = name.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        return Some((format!("{class}.{name}"), class.to_owned()));
    }
    let (class, _) = name.rsplit_once('.')?;
    Some((name.to_owned(), class.to_owned()))
}
