//! Compilers and test tools with forms of their own: Kotlin, C#, Scala, Swift, Haskell, OCaml,
//! Dart, PHP, Crystal, Nim, D, Zig, Svelte, the sanitizers of C.

use journeyman_protocol::{Diagnostic, Severity};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number, parse_severity};

/// Maximum lines between the two parts of an error: a few lines of source, a few stack frames.
const MAX_LINES_BETWEEN: usize = 12;
/// Maximum further lines of a message.
const MAX_FURTHER_LINES: usize = 3;

/// Reads errors whose place and message stand in an order or on lines of their own.
#[derive(Default)]
pub(super) struct CompilerReader {
    pending: Option<Pending>,
}

/// The first part of an error, with the number of lines that may still come before the second.
struct Pending {
    part: FirstPart,
    left: usize,
}

enum FirstPart {
    /// A place; `Error: message` follows after lines of source.
    Place(Diagnostic),
    /// Everything but the message, which is the next indented line.
    Head(Diagnostic),
    /// As [`FirstPart::Head`], where each line begins with a bar and the source has its number.
    ScalaHead(Diagnostic),
    /// A message; the first frame in the project follows.
    Message(Diagnostic),
    /// A finding that was added; indented lines belong to its message.
    Added,
}

impl LineReader for CompilerReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let plain = ["[error] ", "[warn] ", "[info] "].iter().find_map(|mark| line.strip_prefix(mark));
        let is_marked = plain.is_some();
        let text = plain.unwrap_or(line);
        if let Some(pending) = self.pending.take()
            && let Some(claimed) = self.read_second_part(pending, text, findings)
        {
            return claimed;
        }
        if let Some(part) = read_first_part(text, findings) {
            self.pending = Some(Pending { part, left: MAX_LINES_BETWEEN });
            return true;
        }
        let severity = if line.starts_with("[warn] ") { Severity::Warning } else { Severity::Error };
        let found = read_kotlin(line, findings)
            .or_else(|| read_marked(text, findings).filter(|_| is_marked))
            .map(|found| Diagnostic { severity: found.severity.min(severity), ..found })
            .or_else(|| read_parenthesised(line, findings))
            .or_else(|| read_dart_analysis(line, findings))
            .or_else(|| read_php(line, findings))
            .or_else(|| read_test_issue(text, findings));
        let Some(found) = found else { return false };
        findings.push(found);
        true
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        if let Some(Pending { part: FirstPart::Message(found) | FirstPart::Head(found), .. }) =
            self.pending.take()
        {
            findings.push(found);
        }
    }
}

impl CompilerReader {
    /// Reads a line after the first part; `None` if it belongs to something else.
    fn read_second_part(
        &mut self,
        pending: Pending,
        line: &str,
        findings: &mut Findings<'_>,
    ) -> Option<bool> {
        let Pending { part, left } = pending;
        let left = left.checked_sub(1);
        let indented = line.starts_with("  ");
        let wait = |part| left.map(|left| Pending { part, left });
        let (added, more) = (FirstPart::Added, MAX_FURTHER_LINES);
        match part {
            FirstPart::Place(found) => {
                if let Some((severity, _, message)) = parse_severity(line) {
                    findings.push(Diagnostic { severity, message: message.to_owned(), ..found });
                    self.pending = Some(Pending { part: added, left: more });
                    return Some(true);
                }
                let is_source =
                    line.is_empty() || line.starts_with([' ', '>']) || parse_number(line).is_some();
                self.pending = wait(FirstPart::Place(found)).filter(|_| is_source);
                is_source.then_some(true)
            }
            FirstPart::Head(found) if indented => {
                let message = line.trim_start_matches([' ', '•']).to_owned();
                findings.push(Diagnostic { message, ..found });
                self.pending = Some(Pending { part: added, left: more });
                Some(true)
            }
            FirstPart::ScalaHead(found) => {
                let said = line.trim_start().strip_prefix('|').map(str::trim);
                let is_source = said.is_none() && parse_number(line.trim_start()).is_some();
                match said.filter(|said| said.bytes().any(|byte| byte != b'^')) {
                    Some(said) => findings.push(Diagnostic { message: said.to_owned(), ..found }),
                    None if said.is_some() || is_source => self.pending = wait(FirstPart::ScalaHead(found)),
                    None => {
                        findings.push(found);
                        return None;
                    }
                }
                Some(true)
            }
            FirstPart::Message(found) => {
                let frame = parse_location(line)
                    .filter(|at| !at.path.contains(char::is_whitespace))
                    .or_else(|| parse_location(line.rsplit(' ').next()?))
                    .filter(|at| findings.locate(at.path).is_some());
                if let Some(frame) = frame {
                    findings.push(findings.with_location(found, frame));
                    return Some(true);
                }
                self.pending = wait(FirstPart::Message(found.clone())).filter(|_| !line.is_empty());
                if self.pending.is_none() {
                    findings.push(found);
                }
                Some(true)
            }
            FirstPart::Added if indented && !line.trim_start().starts_with('|') => {
                findings.extend_last(line);
                self.pending = wait(FirstPart::Added);
                Some(true)
            }
            FirstPart::Head(found) => {
                findings.push(found);
                None
            }
            FirstPart::Added => None,
        }
    }
}

/// Reads the first part of an error of two parts.
fn read_first_part(text: &str, findings: &Findings<'_>) -> Option<FirstPart> {
    let error = |message: &str| Diagnostic::new(Severity::Error, message);
    let at = |place: Location<'_>, found: Diagnostic| {
        let found = findings.with_location(found, place);
        found.path.is_some().then_some(found)
    };
    // OCaml: `File "lib/a.ml", line 3, characters 8-9:`.
    if let Some((path, rest)) = text.strip_prefix("File \"").and_then(|rest| rest.split_once("\", line "))
        && let Some((line, rest)) = parse_number(rest)
        && rest.starts_with(", characters ")
    {
        return at(Location { path, line, column: None, rest: "" }, error("")).map(FirstPart::Place);
    }
    // Crystal: `In src/a.cr:3:5`; svelte-check: the place alone.
    let place = parse_location(text.strip_prefix("In ").unwrap_or(text))
        .filter(|place| place.column.is_some() && !place.path.contains(char::is_whitespace));
    if let Some(place) = place.filter(|place| place.rest.is_empty()) {
        return at(place, error("")).map(FirstPart::Place);
    }
    // GHC: `src/A.hs:3:5: error: [GHC-88464]`, and the message on the next line.
    if let Some(place) = place
        && let Some((severity, code, rest)) = place.rest.strip_prefix(": ").and_then(parse_severity)
    {
        let own = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let code = own.map(|(code, _)| code).or(code).map(str::to_owned);
        if rest.is_empty() || own.is_some_and(|(code, _)| code.starts_with("GHC-")) {
            let head = Diagnostic { code, ..Diagnostic::new(severity, "the compiler gives no reason") };
            return at(place, head).map(FirstPart::Head);
        }
    }
    // Scala 3: `-- [E006] Not Found Error: /p/src/A.scala:3:10 `.
    if let Some((head, place)) = text.strip_prefix("-- ").and_then(|rest| rest.rsplit_once(": "))
        && let Some(place) = parse_location(place.trim_end_matches(['-', ' ']))
        && place.rest.is_empty()
    {
        let (code, message) = match head.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((code, message)) => (Some(code.to_owned()), message),
            None => (None, head),
        };
        let severity = if message.contains("Warning") { Severity::Warning } else { Severity::Error };
        let found = Diagnostic { code, ..Diagnostic::new(severity, message) };
        return at(place, found).map(FirstPart::ScalaHead);
    }
    // ScalaTest: `- adds *** FAILED ***`, and the reason on the next line.
    if let Some(test) = text.strip_suffix(" *** FAILED ***").and_then(|rest| rest.trim().strip_prefix("- ")) {
        let found = Diagnostic { test: Some(test.to_owned()), ..error("the test fails") };
        return Some(FirstPart::Head(found));
    }
    // Zig: `error: 'main.test.adds' failed: expected 3, found -1`, and the frames.
    if let Some((test, message)) =
        text.strip_prefix("error: '").and_then(|rest| rest.split_once("' failed: "))
    {
        return Some(FirstPart::Message(Diagnostic { test: Some(test.to_owned()), ..error(message) }));
    }
    let (_, message) = ["ERROR: ", "WARNING: "].iter().find_map(|word| text.split_once(word))?;
    let (tool, _) = message.split_once(": ").filter(|(tool, _)| tool.ends_with("Sanitizer"))?;
    (!tool.contains(' ')).then(|| FirstPart::Message(error(message)))
}

/// Reads `e: file:///p/A.kt:3:5 message`, or `e: /p/A.kt: (3, 5): message` of older compilers.
fn read_kotlin(line: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    let (severity, rest) = [("e: ", Severity::Error), ("w: ", Severity::Warning)]
        .into_iter()
        .find_map(|(mark, severity)| Some((severity, line.strip_prefix(mark)?)))?;
    let place = match rest.split_once(": (") {
        Some((path, _)) if path.ends_with(".kt") || path.ends_with(".kts") => {
            parse_parentheses(rest.get(path.len() + 2..)?).map(|(line, column, rest)| Location {
                path,
                line,
                column,
                rest,
            })
        }
        _ => parse_location(rest),
    }?;
    let message = place.rest.trim_start_matches(':').trim();
    Some(findings.with_location(Diagnostic::new(severity, message), place)).filter(|it| it.path.is_some())
}

/// Reads `path:3:11: message`, to which sbt gives a mark, and `==> X Suite.adds  0.02s message` of
/// munit.
fn read_marked(text: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    if let Some(failed) = text.strip_prefix("==> X ") {
        let (test, message) = failed.split_once("  ").unwrap_or((failed, "the test fails"));
        return Some(Diagnostic {
            test: Some(test.to_owned()),
            ..Diagnostic::new(Severity::Error, message.trim())
        });
    }
    let place = parse_location(text).filter(|place| !place.path.contains(char::is_whitespace))?;
    let found = Diagnostic::new(Severity::Error, place.rest.strip_prefix(": ")?);
    Some(findings.with_location(found, place)).filter(|found| found.path.is_some())
}

/// Reads `a.cs(3,13): error CS0103: message [/p/a.csproj]` of MSBuild, `a.d(3): Error: message`,
/// and `a.nim(6, 22) Error: message`.
fn read_parenthesised(line: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    let text = line.trim_start();
    let path = text.split('(').next()?;
    if path.contains(char::is_whitespace) || line.contains(" TS") {
        return None;
    }
    let (number, column, rest) = parse_parentheses(text.get(path.len()..)?)?;
    let rest = rest.trim_start_matches(':').trim_start();
    let (severity, code, message) = match parse_severity(rest) {
        Some(found) => found,
        None => (Severity::Error, None, rest.strip_prefix("Check failed: ")?),
    };
    let message =
        message.rsplit_once(" [").filter(|(_, end)| end.ends_with("proj]")).map_or(message, |it| it.0);
    let (test, message) = split_boost_test(message);
    let found = Diagnostic {
        code: code.map(str::to_owned),
        test: test.map(str::to_owned),
        ..Diagnostic::new(severity, message)
    };
    let place = Location { path, line: number, column, rest: "" };
    Some(findings.with_location(found, place)).filter(|found| found.path.is_some())
}

/// Splits `in "adds": check x has failed` of Boost's tests.
fn split_boost_test(message: &str) -> (Option<&str>, &str) {
    let split = message.strip_prefix("in \"").and_then(|rest| rest.split_once("\": "));
    split.map_or((None, message), |(test, message)| (Some(test), message))
}

/// Reads `(3)`, `(3,5)` or `(3, 5)` at the beginning; returns what follows, too.
fn parse_parentheses(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (line, rest) = parse_number(text.strip_prefix('(')?)?;
    if let Some(rest) = rest.strip_prefix(')') {
        return Some((line, None, rest));
    }
    let (column, rest) = parse_number(rest.strip_prefix(',')?.trim_start())?;
    Some((line, Some(column), rest.strip_prefix(')')?))
}

/// Reads `  error - lib/a.dart:3:10 - message - code`.
fn read_dart_analysis(line: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    let mut parts = line.trim_start().splitn(3, " - ");
    let (word, place, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let severity = match word {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        "info" => Severity::Note,
        _ => return None,
    };
    let (message, code) = rest.rsplit_once(" - ")?;
    let place = parse_location(place).filter(|place| place.rest.is_empty())?;
    let found = Diagnostic { code: Some(code.to_owned()), ..Diagnostic::new(severity, message) };
    Some(findings.with_location(found, place)).filter(|found| found.path.is_some())
}

/// Reads `PHP Fatal error:  message in /p/a.php:3`, and `Parse error: message in /p/a.php on line
/// 4`.
fn read_php(line: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    let text = line.strip_prefix("PHP ").unwrap_or(line);
    let rest = ["Fatal error: ", "Parse error: "].iter().find_map(|kind| text.strip_prefix(kind))?;
    let (message, place) = rest.trim().rsplit_once(" in ")?;
    let place = match place.split_once(" on line ") {
        Some((path, line)) => Location { path, line: parse_number(line)?.0, column: None, rest: "" },
        None => parse_location(place)?,
    };
    Some(findings.with_location(Diagnostic::new(Severity::Error, message), place))
}

/// Reads an issue of Swift's two test libraries, which has a test: `✘ Test adds() recorded an issue
/// at a.swift:6:5: message`, `a.swift:8: error: -[Calc.Tests testAdds] : message`.
fn read_test_issue(line: &str, findings: &Findings<'_>) -> Option<Diagnostic> {
    let issue = line.split_once("Test ").and_then(|(_, rest)| rest.split_once(" recorded an issue at "));
    let (test, place, message) = match issue {
        Some((test, rest)) => {
            let place = parse_location(rest)?;
            (test.to_owned(), place, place.rest.strip_prefix(": ")?)
        }
        None => {
            let place = parse_location(line)?;
            let rest = place.rest.strip_prefix(": error: ")?;
            if let (Some(test), message) = split_boost_test(rest) {
                (test.to_owned(), place, message)
            } else {
                let (test, message) = rest.split_once(" : ")?;
                let inner = test.strip_prefix("-[").and_then(|rest| rest.strip_suffix(']'));
                let test = inner.map_or(test.to_owned(), |test| test.replace(' ', "."));
                if test.contains(char::is_whitespace) || !test.contains('.') {
                    return None;
                }
                (test, place, message)
            }
        }
    };
    let found = Diagnostic { test: Some(test), ..Diagnostic::new(Severity::Error, message) };
    Some(findings.with_location(found, place))
}
