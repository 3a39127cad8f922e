//! Reads test runners that print one block per failure: RSpec, minitest, Test::Unit, PHPUnit,
//! ExUnit, `dotnet test`, GoogleTest, Catch2, Perl's Test::More, clojure.test, Julia's Test,
//! busted, Dart.

use journeyman_protocol::Diagnostic;

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number};

/// Maximum lines of a matcher's message, which has two to four.
const MAX_MESSAGE_LINES: usize = 6;

/// Bytes of the rules that Catch2 draws.
const CATCH2_RULE_BYTES: usize = 79;

/// Reads blocks of a heading, a message and a place.
#[derive(Default)]
pub(super) struct FailureBlockReader {
    block: Option<FailureBlock>,
    /// The title of the newest test of Catch2, and true while it is expected.
    title: (String, bool),
    /// True below a rule of `=`, by which Test::Unit begins each block.
    is_below_rule: bool,
    /// True within a list of tests that don't fail: PHPUnit's risky ones, RSpec's pending ones.
    in_passed_list: bool,
}

struct FailureBlock {
    runner: BlockTestRunner,
    test: String,
    lines: Vec<String>,
    place: Option<(String, u32)>,
    duration_ms: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockTestRunner {
    /// `  1) Calc adds` of RSpec, told from Mocha's by the line after it.
    RSpec,
    /// `  1) Failure:` with the test on the next line.
    Minitest,
    /// `1) Tests\CalcTest::testAdds`.
    PhpUnit,
    /// `  1) test adds (CalcTest)`.
    ExUnit,
    /// `  Failed Calc.Tests.Adds [12 ms]`.
    Dotnet,
    /// `[ RUN      ] Calc.Adds`, of which the failure comes before its end.
    GoogleTest,
    /// `#   Failed test 'adds'`, within comments of TAP.
    Perl,
    /// `FAIL in (adds) (calc_test.clj:5)`.
    Clojure,
    /// `adds: Test Failed at /p/test/runtests.jl:5`.
    Julia,
    /// `Failure → spec/a_spec.lua @ 3` with the test on the next line.
    Busted,
    /// `00:01 +0 -1: adds [E]`.
    Dart,
    /// `t.cpp:6: FAILED:` below the title of the test, which stands between rules.
    Catch2,
    /// `Failure: test_adds(CalcTest)` of Ruby's Test::Unit, below a rule.
    TestUnit,
}

impl LineReader for FailureBlockReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        self.read_title(line);
        self.note_list(line);
        let is_below_rule = std::mem::replace(&mut self.is_below_rule, line.starts_with("====="));
        let heading =
            parse_heading(line).filter(|(runner, _)| is_below_rule || *runner != BlockTestRunner::TestUnit);
        if let Some((runner, test)) = heading {
            // GoogleTest begins a test before the end of another one only where a program died.
            let is_google = |block: &FailureBlock| block.runner == BlockTestRunner::GoogleTest;
            let is_cut_off = runner == BlockTestRunner::GoogleTest;
            self.block = self.block.take().filter(|it| !is_google(it) || is_cut_off || it.place.is_some());
            self.flush_block(findings);
            let is_skipped = runner == BlockTestRunner::Minitest && line.ends_with(") Skipped:");
            let is_listed = matches!(runner, BlockTestRunner::PhpUnit | BlockTestRunner::RSpec);
            if is_skipped || is_listed && self.in_passed_list {
                return is_skipped || runner == BlockTestRunner::PhpUnit;
            }
            let (test, duration_ms) = match runner {
                BlockTestRunner::Dotnet => split_duration(test),
                _ => (test, None),
            };
            let mut block =
                FailureBlock { runner, test: test.to_owned(), lines: Vec::new(), place: None, duration_ms };
            match runner {
                BlockTestRunner::Perl => block.set_location(&format!("at {test}."), findings),
                BlockTestRunner::TestUnit => {
                    block.lines.extend(line.split_once("): ").map(|(_, said)| said.to_owned()));
                    false
                }
                BlockTestRunner::Julia => block.set_location(line.rsplit(' ').next().unwrap_or(""), findings),
                BlockTestRunner::Catch2 => {
                    block.test = self.title.0.clone();
                    block.set_location(line.trim_end_matches(" FAILED:"), findings)
                }
                _ => false,
            };
            self.block = Some(block);
            // Mocha's headings look the same, and its reader has to see them too.
            return runner != BlockTestRunner::RSpec;
        }
        let Some(block) = &mut self.block else { return false };
        let text = line.trim();
        if block.is_end_line(text) {
            // A test of GoogleTest's may have printed something, and pass.
            if block.runner != BlockTestRunner::GoogleTest || text.starts_with("[  FAILED  ]") {
                self.flush_block(findings);
            }
            self.block = None;
            return false;
        }
        block.add_line(text, findings);
        block.runner != BlockTestRunner::RSpec
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush_block(findings);
    }
}

impl FailureBlockReader {
    /// Reads the title of a test of Catch2: the line below a rule.
    fn read_title(&mut self, line: &str) {
        let is_rule = line.len() >= CATCH2_RULE_BYTES && line.bytes().all(|byte| byte == b'-');
        if is_rule {
            self.title.1 = true;
        } else if std::mem::take(&mut self.title.1) && parse_location(line).is_none() {
            self.title.0 = line.to_owned();
        }
    }

    /// Notes the headings of PHPUnit's and RSpec's lists.
    fn note_list(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("There was ").or_else(|| line.strip_prefix("There were ")) {
            let passed = ["risky", "skipped", "incomplete", "deprecat", "notice"];
            self.in_passed_list = rest.ends_with(':') && passed.iter().any(|word| rest.contains(word));
        } else if line.starts_with("Pending: (Failures listed here") {
            self.in_passed_list = true;
        } else if line == "Failures:" {
            self.in_passed_list = false;
        }
    }

    fn flush_block(&mut self, findings: &mut Findings<'_>) {
        let Some(block) = self.block.take().filter(FailureBlock::is_failure) else { return };
        let message = match block.lines.is_empty() {
            true => "the test fails".to_owned(),
            false => block.lines.join("; "),
        };
        let error = Diagnostic {
            test: Some(block.test),
            duration_ms: block.duration_ms,
            ..Diagnostic::new(journeyman_protocol::Severity::Error, message)
        };
        let error = match &block.place {
            Some((path, line)) => {
                findings.with_location(error, Location { path, line: *line, column: None, rest: "" })
            }
            None => error,
        };
        findings.push(error);
    }
}

impl FailureBlock {
    /// Returns true if the block is a failure of its runner, and doesn't only look like one.
    fn is_failure(&self) -> bool {
        match self.runner {
            BlockTestRunner::RSpec => self.lines.iter().any(|line| is_rspec_error(line)),
            BlockTestRunner::GoogleTest => true,
            BlockTestRunner::TestUnit => self.place.is_some(),
            BlockTestRunner::Minitest => !self.test.is_empty(),
            _ => !self.lines.is_empty() || self.place.is_some(),
        }
    }

    fn is_end_line(&self, text: &str) -> bool {
        match self.runner {
            BlockTestRunner::GoogleTest => {
                // The last one stands where a part of the output was dropped.
                ["[  FAILED  ]", "[       OK ]", "[  SKIPPED ]", "[… "]
                    .iter()
                    .any(|mark| text.starts_with(mark))
            }
            BlockTestRunner::RSpec => {
                // The last two are of Hspec, whose blocks look the same.
                ["Finished in ", "Failed examples:", "To rerun use: ", "Randomized with seed "]
                    .iter()
                    .any(|start| text.starts_with(start))
            }
            BlockTestRunner::TestUnit => text.starts_with("====="),
            BlockTestRunner::Clojure | BlockTestRunner::Catch2 => text.is_empty(),
            BlockTestRunner::Busted => text.is_empty() || text == "stack traceback:",
            BlockTestRunner::Julia => text.is_empty() || text == "Stacktrace:" || text.starts_with("ERROR: "),
            BlockTestRunner::Dart => is_dart_status(text),
            // Errors and failures are lists of their own, with a line between them.
            BlockTestRunner::PhpUnit => matches!(text, "FAILURES!" | "ERRORS!" | "--"),
            BlockTestRunner::Perl => !text.starts_with('#') || text.starts_with("# Looks like you "),
            BlockTestRunner::ExUnit => text.starts_with("Finished in "),
            BlockTestRunner::Dotnet => text.starts_with("Failed! ") || text.starts_with("Passed "),
            BlockTestRunner::Minitest => text.contains(" runs, ") && text.contains(" assertions, "),
        }
    }

    fn add_line(&mut self, text: &str, findings: &Findings<'_>) {
        if text.is_empty() {
            return;
        }
        if self.runner == BlockTestRunner::Minitest && self.test.is_empty() {
            // `CalcTest#test_adds [test/calc_test.rb:5]:`
            let (test, rest) = text.split_once(" [").unwrap_or((text.trim_end_matches(':'), ""));
            self.test = test.to_owned();
            self.set_location(rest, findings);
            return;
        }
        if self.runner == BlockTestRunner::Busted {
            if self.test.is_empty() {
                self.test = text.to_owned();
                return;
            }
            // The place stands before the message.
            if let Some(found) = parse_location(text).filter(|_| self.place.is_none())
                && let Some(message) = found.rest.strip_prefix(": ")
            {
                self.place = Some((found.path.to_owned(), found.line));
                self.lines.push(message.to_owned());
                return;
            }
        }
        let is_source = self.runner == BlockTestRunner::TestUnit && is_quoted_source(text);
        if is_source || self.set_location(text, findings) || is_label_line(text) {
            return;
        }
        let text = match self.runner {
            BlockTestRunner::Perl => text.trim_start_matches(['#', ' ']),
            _ => text,
        };
        if self.lines.len() < MAX_MESSAGE_LINES {
            self.lines.push(text.to_owned());
        }
    }

    /// Sets the block's location to the first one in the project.
    fn set_location(&mut self, text: &str, findings: &Findings<'_>) -> bool {
        // `in /p/FooTests.cs:line 12`, after `at X() `, is what .NET prints.
        let dotnet = text.rsplit_once(" in ").and_then(|(_, at)| {
            let (path, line) = at.split_once(":line ")?;
            parse_number(line).map(|(line, _)| (path.to_owned(), line))
        });
        let text = text.strip_prefix("# ").unwrap_or(text);
        // `#   at t/a.t line 5.` of Perl.
        let perl = text.trim_start().strip_prefix("at ").and_then(|at| {
            let (path, line) = at.strip_suffix('.')?.rsplit_once(" line ")?;
            parse_number(line).map(|(line, _)| (path.to_owned(), line))
        });
        // `test/a_test.dart 6:5      main.<fn>` of Dart.
        let dart = || {
            let mut words = text.split_whitespace();
            let (path, place, _) = (words.next()?, words.next()?, words.next()?);
            let (line, rest) = parse_number(place)?;
            (path.ends_with(".dart") && rest.starts_with(':')).then(|| (path.to_owned(), line))
        };
        let plain = || {
            let found = parse_location(text).filter(|found| !found.path.contains(char::is_whitespace))?;
            let is_frame = found.rest.is_empty() || found.rest.starts_with([':', ']']);
            is_frame.then(|| (found.path.to_owned(), found.line))
        };
        let Some((path, line)) = dotnet.or(perl).or_else(dart).or_else(plain) else {
            return text.starts_with("at ");
        };
        let is_own = !["/gems/", "vendor/", "/deps/"].iter().any(|part| path.contains(part));
        if self.place.is_none() && is_own && findings.locate(&path).is_some() {
            self.place = Some((path, line));
        }
        true
    }
}

/// Returns true for a line that is only a label of the following ones, or a frame of a library.
fn is_label_line(text: &str) -> bool {
    matches!(text, "Error Message:" | "Stack Trace:" | "stacktrace:" | "Failure")
        || text.starts_with("package:")
}

/// Returns true for `Failure/Error: …` of RSpec, and `1.2) Failure/Error: …` of several failures.
fn is_rspec_error(line: &str) -> bool {
    let numbered =
        line.split_once(") ").filter(|(number, _)| number.starts_with(|c: char| c.is_ascii_digit()));
    numbered.map_or(line, |(_, rest)| rest).starts_with("Failure/Error:")
}

/// Returns true for `=> 3:   def test_adds` of the source that Test::Unit quotes.
fn is_quoted_source(text: &str) -> bool {
    let numbered = text.strip_prefix("=> ").unwrap_or(text);
    parse_number(numbered).is_some_and(|(_, rest)| rest.starts_with(": ") || rest == ":")
}

/// Reads `Failure: test_adds(CalcTest)` and `Error: test_adds(CalcTest): RuntimeError: boom`.
fn parse_test_unit_heading(line: &str) -> Option<&str> {
    let failure = line.strip_prefix("Failure: ").filter(|rest| rest.ends_with(')'));
    let error = || {
        let rest = line.strip_prefix("Error: ")?;
        rest.get(..rest.find("): ")? + 1)
    };
    failure.or_else(error).filter(|test| test.contains('('))
}

/// Returns a test of PHPUnit's without the values of its data set, which may be any.
fn strip_data_values(test: &str) -> &str {
    let marks = ["\" (", "\" with data ("].iter().filter_map(|mark| test.find(mark).map(|at| at + 1));
    let numbered = test.find(" with data set #").and_then(|at| {
        let rest = test.get(at + " with data set #".len()..)?;
        rest.find(' ').map(|end| test.len() - rest.len() + end)
    });
    test.get(..marks.min().or(numbered).unwrap_or(test.len())).unwrap_or(test)
}

/// Reads the heading of a block: the runner, and the test.
fn parse_heading(line: &str) -> Option<(BlockTestRunner, &str)> {
    if let Some(test) = line.strip_prefix("[ RUN      ] ") {
        return Some((BlockTestRunner::GoogleTest, test.trim()));
    }
    if let Some(test) = parse_test_unit_heading(line) {
        return Some((BlockTestRunner::TestUnit, test));
    }
    if let Some(test) = line.strip_prefix("  Failed ").filter(|rest| rest.ends_with(']')) {
        return Some((BlockTestRunner::Dotnet, test));
    }
    if let Some(rest) = line.trim_start().strip_prefix("#   Failed test ") {
        // One without a name has its place here: `#   Failed test at t/a.t line 5.`.
        let name = rest.strip_prefix("at ").map(|place| place.trim_end_matches('.'));
        return Some((BlockTestRunner::Perl, name.unwrap_or(rest.trim_matches('\''))));
    }
    let named = ["FAIL in (", "ERROR in ("].iter().find_map(|mark| line.strip_prefix(mark));
    if let Some((test, _)) = named.and_then(|rest| rest.split_once(") (")) {
        return Some((BlockTestRunner::Clojure, test));
    }
    let julia =
        [": Test Failed at ", ": Error During Test at "].iter().find_map(|mark| line.split_once(mark));
    if let Some((test, _)) = julia {
        return Some((BlockTestRunner::Julia, test.trim()));
    }
    if (line.starts_with("Failure → ") || line.starts_with("Error → ")) && line.contains(" @ ") {
        return Some((BlockTestRunner::Busted, ""));
    }
    if let Some(test) = line.strip_suffix(" [E]").filter(|_| is_dart_status(line)) {
        return Some((BlockTestRunner::Dart, test.split_once(": ")?.1));
    }
    if line.ends_with(": FAILED:") && parse_location(line).is_some() {
        return Some((BlockTestRunner::Catch2, ""));
    }
    let indented = line.starts_with(' ');
    let (_, rest) = parse_number(line.trim_start())?;
    let title = rest.strip_prefix(") ")?.trim();
    if matches!(title, "Failure:" | "Error:" | "Skipped:") {
        return Some((BlockTestRunner::Minitest, ""));
    }
    if let Some(rest) = title.strip_prefix("test ")
        && rest.ends_with(')')
        && rest.contains(" (")
    {
        return Some((BlockTestRunner::ExUnit, title));
    }
    if !indented && title.contains("::") && !title.contains(char::is_whitespace) {
        return Some((BlockTestRunner::PhpUnit, title));
    }
    // A data provider's name comes after the method.
    if !indented && title.split_once(" with data set ").is_some_and(|(name, _)| name.contains("::")) {
        return Some((BlockTestRunner::PhpUnit, strip_data_values(title)));
    }
    (indented && !title.is_empty()).then_some((BlockTestRunner::RSpec, title))
}

/// Returns true for a line of Dart's that begins with the time and the counts: `00:01 +0 -1: …`.
fn is_dart_status(line: &str) -> bool {
    let seconds = parse_number(line).and_then(|(_, rest)| parse_number(rest.strip_prefix(':')?));
    seconds.is_some_and(|(_, rest)| rest.starts_with(" +"))
}

/// Splits `Calc.Tests.Adds [12 ms]` into the test and its duration.
fn split_duration(test: &str) -> (&str, Option<u64>) {
    let Some((name, time)) = test.rsplit_once(" [") else { return (test, None) };
    let milliseconds =
        time.strip_suffix(" ms]").and_then(|count| count.trim_start_matches("< ").parse().ok());
    (name, milliseconds)
}
