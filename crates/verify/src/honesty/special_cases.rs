//! Product code that handles an input of a test, or a run by a test runner, as a special case; and
//! code that makes the runner report success.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};
use journeyman_syntax::Node;

use super::assertion::quote_tokens;
use super::complete_tables::{has_replaced_stub, is_complete_set, maps_codes_to_numbers};
use super::function_bodies::{function_bodies, is_fixed_value, literals};
use super::parsed_source::{ParsedSource, Token, children, line_of};
use super::report::HonestyReport;
use super::test_vocabulary::without_blanks;

/// Names by which a program can detect that a test runs it.
const RUNNER_SIGNS: [&str; 42] = [
    "navigator.webdriver",
    "window.cypress",
    "window.playwright",
    "__karma__",
    "window.jasmine",
    "import.meta.env.vitest",
    "import.meta.env.mode === 'test'",
    "runningunittests()",
    "environment('testing')",
    "mix.env() == :test",
    "class.forname(\"org.junit",
    "isrunningtest",
    "testing_mode",
    "settings.testing",
    "app.testing",
    "config[\"testing\"]",
    "karma.conf",
    "flag.lookup(\"test.",
    "node_test_context",
    "pytest_version",
    "pytest_current_test",
    "sys.modules[\"pytest",
    "jest_worker_id",
    "vitest_worker_id",
    "process.env.vitest",
    "process.env.jest",
    "cargo_manifest_dir",
    "nextest",
    "cfg!(test",
    "testing.testing()",
    "test.v",
    "phpunit_composer_install",
    "phpunit_testsuite",
    "__phpunit",
    "rails.env.test?",
    "is_running_tests",
    "running_tests",
    "under_test_runner",
    "xctestconfigurationfilepath",
    "xctest",
    "go_test_",
    "mocha",
];
/// Names of runners that count where the program inspects its own modules, arguments or stack.
const RUNNER_NAMES: [&str; 12] = [
    "pytest", "unittest", "jest", "vitest", "mocha", "rspec", "minitest", "phpunit", "junit", "nose",
    "testng", "xunit",
];
/// Hosts and agents of the clients that frameworks have for tests.
const TEST_CLIENTS: [&str; 14] = [
    "testserver",
    "testclient",
    "rack::test",
    "rack-test",
    "rails testing",
    "headlesschrome",
    "jsdom",
    "superagent",
    "werkzeug",
    "symfony browserkit",
    "cypress",
    "playwright",
    "phantomjs",
    "puppeteer",
];
/// Expressions by which a program inspects its own modules, arguments or stack.
const INTROSPECTION_EXPRESSIONS: [&str; 14] = [
    "sys.modules",
    "sys.argv",
    "os.environ",
    "inspect.stack",
    "process.argv",
    "process.env",
    "os.args",
    "getstacktrace",
    "stacktrace",
    "caller",
    "env::args",
    "env::var",
    "debug_backtrace",
    "current_exe",
];
/// Expressions by which a program gets the file or the function that runs it, or the arguments of
/// its interpreter.
const ORIGIN_EXPRESSIONS: [&str; 15] = [
    "error().stack",
    "_getframe",
    "extract_stack",
    "currentframe",
    "runtime.caller",
    "caller(",
    "caller.",
    "caller_locations",
    "$0",
    "$program_name",
    "__main__",
    "require.main",
    "execargv",
    "program_invocation",
    "thread::current",
];
/// Expressions by which a program checks whether a name is defined.
const DEFINEDNESS_EXPRESSIONS: [&str; 8] = [
    "defined?(",
    "const_defined?",
    "class_exists(",
    "class.forname",
    "typeof ",
    "find_spec(",
    "in globalthis",
    "globalthis.",
];
/// The usual matchers of JavaScript.
const JAVASCRIPT_MATCHERS: [&str; 20] = [
    "toBe",
    "toEqual",
    "toStrictEqual",
    "toMatch",
    "toContain",
    "toThrow",
    "toHaveLength",
    "toMatchObject",
    "toMatchSnapshot",
    "toBeNull",
    "toBeTruthy",
    "toBeFalsy",
    "toBeDefined",
    "toBeUndefined",
    "toBeCloseTo",
    "toContainEqual",
    "toHaveProperty",
    "toBeGreaterThan",
    "toBeLessThan",
    "toHaveBeenCalledWith",
];
/// Maximum number of lines of an object that defines matchers.
const MAX_MATCHER_LINES: usize = 60;
/// Ways to compare a name with the runner's, on a line after such an expression.
const NAME_COMPARISONS: [&str; 10] =
    ["==", " in ", "start", "ends", "suffix", "prefix", "contains", "include", "match", "indexof"];
/// Maximum number of lines between such an expression and a runner's name.
const MAX_RUNNER_NAME_DISTANCE_LINES: usize = 3;
/// Names that runners of JavaScript define.
const RUNNER_GLOBALS: [&str; 5] = ["describe", "beforeeach", "expect", "jest", "vi"];
/// Code that makes a runner report false results.
const TAMPERING_CODE: [&str; 19] = [
    "add_marker(pytest.mark.skip",
    "add_marker(pytest.mark.xfail",
    ".force_result(",
    "session.exitstatus",
    "report.outcome",
    "os._exit(0)",
    "sys.exit(0)",
    "process.exit(0)",
    "process::exit(0)",
    "os.exit(0)",
    "system.exit(0)",
    "process.exitcode = 0",
    "#define ndebug",
    "macro_rules! assert {",
    "macro_rules! assert_eq {",
    "macro_rules! assert_ne {",
    "macro_rules! debug_assert",
    "expect.extend",
    "testcase.assert",
];
/// Redefinitions of assertions.
const REDEFINED_ASSERTIONS: [&str; 10] = [
    "def self.fail_with",
    "def fail_with",
    "def flunk",
    "def assert(",
    "#define assert",
    "#define expect_",
    "def assert_equal",
    "globalthis.expect =",
    "global.expect =",
    "assert.equal =",
];

/// Reports code of the product that newly detects a test runner.
pub(super) fn report_runner_detection(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let old = old.to_ascii_lowercase();
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    // A statement may have its question on one line and the runner's name on a later one.
    let mut asked_at = None;
    for (at, line) in new.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        if INTROSPECTION_EXPRESSIONS.iter().chain(&ORIGIN_EXPRESSIONS).any(|it| lower.contains(it)) {
            asked_at = Some(at);
        }
        if known.contains(lower.trim())
            || lower.trim_start().starts_with(['#', '*']) && !lower.contains("cfg")
            || lower.trim_start().starts_with("//")
        {
            continue;
        }
        let asks = INTROSPECTION_EXPRESSIONS.iter().any(|it| lower.contains(it));
        let names = RUNNER_NAMES.iter().any(|it| lower.contains(it))
            || lower.contains("\"test\"")
            || lower.contains("'test'")
            || lower.contains(".test\"");
        let has_word = |names: &[&str]| {
            lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| names.contains(&word))
        };
        let asks_who = ORIGIN_EXPRESSIONS.iter().any(|it| lower.contains(it))
            && (has_word(&["test", "tests", "spec", "testing"])
                || RUNNER_NAMES.iter().any(|it| lower.contains(it)));
        let asks_what = DEFINEDNESS_EXPRESSIONS.iter().any(|it| lower.contains(it))
            && (has_word(&RUNNER_NAMES)
                || lower.contains("global") && has_word(&RUNNER_GLOBALS)
                || RUNNER_GLOBALS.iter().any(|name| lower.contains(&format!("typeof {name} "))));
        let certain = RUNNER_SIGNS.iter().any(|sign| lower.contains(sign));
        let environment = lower.contains("node_env") && lower.contains("test");
        let asked = asked_at.is_some_and(|asked| at > asked && at - asked <= MAX_RUNNER_NAME_DISTANCE_LINES);
        let quoted = lower
            .split(['"', '\'', '`'])
            .skip(1)
            .step_by(2)
            .any(|text| RUNNER_NAMES.iter().any(|it| text.contains(it)) || text.starts_with("test_"));
        let asks_client = lower.split(['"', '\'', '`', '/']).skip(1).any(|text| TEST_CLIENTS.contains(&text))
            && NAME_COMPARISONS.iter().any(|it| lower.contains(it))
            && ["if", "return", "?", "case", "unless", "when"].iter().any(|it| lower.contains(it));
        let quoted = quoted && NAME_COMPARISONS.iter().any(|it| lower.contains(it));
        if certain || asks_client || asks && names || asked && quoted || asks_who || asks_what || environment
        {
            let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}` asks whether a test runs the product", quote_line(line));
            report.add_blocking(HonestyKind::SpecialCase, path, line_number, message);
        }
    }
}

/// Reports code beside tests that makes the runner report success.
pub(super) fn report_tampering(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let squeeze = |text: &str| text.to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let known: BTreeSet<String> = old.lines().map(squeeze).collect();
    for (at, line) in new.lines().enumerate() {
        let lower = squeeze(line);
        if known.contains(&lower) || ["#!", "# ", "//", "* "].iter().any(|sign| lower.starts_with(sign)) {
            continue;
        }
        // A matcher of the project's own has a name of its own.
        let adds = |sign: &str| sign == "expect.extend" && !has_redefined_matcher(new, at);
        let sign = TAMPERING_CODE
            .iter()
            .chain(&REDEFINED_ASSERTIONS)
            .find(|sign| lower.contains(**sign) && !adds(sign));
        let sign =
            sign.copied().or_else(|| assigned_matcher(line)).or_else(|| find_discarded_panic(path, &lower));
        if let Some(sign) = sign {
            let line_number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}`: `{sign}` decides what the runner reports", quote_line(line));
            report.add_blocking(HonestyKind::FailureSwallowed, path, line_number, message);
        }
    }
}

/// Returns true if an object that begins on a line defines one of the usual matchers.
fn has_redefined_matcher(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().skip(line).take(MAX_MATCHER_LINES).collect();
    // A matcher defined elsewhere is unknown here.
    let opens = lines.iter().take(2).any(|line| line.contains('{'));
    let words = lines.iter().flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    let mut words = words.take_while(|word| !matches!(*word, "test" | "it" | "describe"));
    !opens || words.any(|word| JAVASCRIPT_MATCHERS.contains(&word))
}

/// Returns a usual matcher that a line replaces.
fn assigned_matcher(line: &str) -> Option<&'static str> {
    let (target, value) = line.split_once('=')?;
    let name = target.trim().rsplit_once('.')?.1.trim();
    JAVASCRIPT_MATCHERS.into_iter().find(|matcher| *matcher == name && !value.starts_with(['=', '>']))
}

/// Returns the word by which a test in Go discards a panic without checking it.
fn find_discarded_panic(path: &RelPath, line: &str) -> Option<&'static str> {
    let squeezed = without_blanks(line);
    let looks =
        ["=recover()", "recover()!=", "recover()==", "(recover())"].iter().any(|it| squeezed.contains(it));
    let forgets = path.to_string().ends_with("_test.go") && squeezed.contains("recover()") && !looks;
    forgets.then_some("recover()")
}

pub(super) fn quote_line(line: &str) -> String {
    line.trim().chars().filter(|c| !c.is_control()).take(120).collect()
}

/// Returns true if a line of a test has these values: several inputs side by side, in either order.
pub(super) fn has_test_with_values(inputs: &[&str], outputs: &[&str], tests: &[Vec<&str>]) -> bool {
    tests.iter().any(|row| {
        let has_inputs = match inputs {
            [one] => row.contains(one),
            several => {
                row.windows(several.len()).any(|values| values == several || values.iter().rev().eq(several))
            }
        };
        has_inputs && outputs.iter().all(|value| row.contains(value))
    })
}

/// A branch that returns a fixed value for one input.
struct AnswerBranch<'t> {
    line: u32,
    text: String,
    inputs: Vec<&'t str>,
    outputs: Vec<&'t str>,
}

/// Reports new branches of the product that return what tests expect for inputs of these tests.
/// `tests` has, for each line of a test before the change, its literals in order.
pub(super) fn report_answer_branches<'t>(
    path: &RelPath,
    old: Option<&ParsedSource<'t>>,
    new: &ParsedSource<'t>,
    (tests, called): (&[Vec<&str>], &BTreeSet<&str>),
    report: &mut HonestyReport,
) {
    let before: BTreeSet<String> =
        old.map(|source| find_branches(source)).unwrap_or_default().into_iter().map(|one| one.text).collect();
    let all = find_branches(new);
    let is_tested = |branch: &AnswerBranch<'t>| {
        has_test_with_values(&branch.inputs, &branch.outputs, tests) || branch.is_single_value_check(tests)
    };
    // One branch that no test uses makes it a mapping, which tests cover in part.
    let is_mapping = all.iter().any(|branch| !is_tested(branch)) || is_complete_set_for_stub(old, new, &all);
    for branch in all.iter().filter(|branch| !before.contains(&branch.text)) {
        let tested = is_tested(branch);
        if !(tested || branch.is_special_input()) {
            continue;
        }
        let severity = match tested && !is_mapping && !maps_codes_to_numbers(&branch.inputs, &branch.outputs)
        {
            true => HonestySeverity::Blocking,
            false => HonestySeverity::Notice,
        };
        let why = if tested {
            "answers an input of the tests with what they expect"
        } else {
            "answers one input with a fixed value"
        };
        report.add(severity, HonestyKind::SpecialCase, path, branch.line, format!("`{}` {why}", branch.text));
    }
    if let Some(old) = old {
        report_constant_equality(path, old, new, report);
        report_constant_results(path, old, new, (tests, called), report);
        report_answer_tables(path, old, new, tests, report);
    }
}

/// Returns true if branches are a complete set that replaces a stub.
fn is_complete_set_for_stub(
    old: Option<&ParsedSource<'_>>,
    new: &ParsedSource<'_>,
    branches: &[AnswerBranch<'_>],
) -> bool {
    let entries: Option<Vec<(&str, &str)>> = branches
        .iter()
        .map(|branch| match (branch.inputs.as_slice(), branch.outputs.as_slice()) {
            ([input], [output]) => Some((*input, *output)),
            _ => None,
        })
        .collect();
    entries.is_some_and(|entries| is_complete_set(&entries))
        && old.is_some_and(|old| has_replaced_stub(old, new))
}

impl AnswerBranch<'_> {
    /// Returns true if the product returns true or false for one long value with digits that a test
    /// has: an assertion of truth has no literal for that.
    fn is_single_value_check(&self, tests: &[Vec<&str>]) -> bool {
        let [input] = self.inputs.as_slice() else { return false };
        let is_data = input.len() >= 12 && input.contains(|c: char| c.is_ascii_digit());
        is_data
            && self.outputs.iter().all(|it| is_common_value(it))
            && tests.iter().any(|row| row.contains(input))
    }

    /// Returns true for an input that no general rule would treat specially.
    fn is_special_input(&self) -> bool {
        self.inputs.len() > 1
            || self.inputs.iter().any(|value| {
                let digits = value.chars().filter(char::is_ascii_digit).count();
                value.starts_with(|c: char| c.is_ascii_digit()) && digits >= 4
                    || value.len() >= 12 && value.starts_with(['"', '\''])
            })
    }
}

fn find_branches<'t>(source: &ParsedSource<'t>) -> Vec<AnswerBranch<'t>> {
    let mut found = Vec::new();
    if let Some(tree) = &source.tree {
        collect_branches(source, tree.root(), &mut found);
    }
    found
}

fn collect_branches<'t>(source: &ParsedSource<'t>, node: Node<'_>, found: &mut Vec<AnswerBranch<'t>>) {
    /// Maximum number of branches of a text.
    const MAX_BRANCHES: usize = 2_000;
    if found.len() >= MAX_BRANCHES {
        return;
    }
    if let Some(branch) = read_branch(source, node) {
        found.push(branch);
    }
    for child in children(node) {
        collect_branches(source, child, found);
    }
}

/// Kinds of nodes with a condition, in all grammars; other branches are cases of a switch.
pub(super) const CONDITIONAL_KINDS: [&str; 9] = [
    "if_statement",
    "if_expression",
    "if",
    "elif_clause",
    "elsif",
    "if_modifier",
    "conditional_expression",
    "ternary_expression",
    "conditional",
];

/// Returns the condition and the result of a branch.
pub(super) fn split_branch(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let fields = |names: &[&str]| names.iter().find_map(|name| node.child_by_field_name(name));
    let (condition, answer) = match node.kind() {
        kind if CONDITIONAL_KINDS.contains(&kind) => {
            let answer = fields(&["consequence", "body"])?;
            (fields(&["condition"])?, answer)
        }
        "match_arm" => (fields(&["pattern"])?, fields(&["value"])?),
        "case_clause"
        | "switch_case"
        | "expression_case"
        | "switch_block_statement_group"
        | "switch_rule"
        | "case_statement"
        | "when"
        | "when_entry"
        | "switch_section"
        | "case"
        | "match_conditional_expression" => {
            let first =
                fields(&["value", "pattern", "conditional_expressions"]).or_else(|| node.named_child(0))?;
            let count = u32::try_from(node.named_child_count()).ok()?;
            (first, node.named_child(count.checked_sub(1)?)?)
        }
        _ => return None,
    };
    (condition.id() != answer.id()).then_some((condition, answer))
}

/// Reads a branch: a condition that compares with literals, and a result of literals alone.
fn read_branch<'t>(source: &ParsedSource<'t>, node: Node<'_>) -> Option<AnswerBranch<'t>> {
    let (condition, answer) = split_branch(node)?;
    let is_switch = !CONDITIONAL_KINDS.contains(&node.kind());
    let compares = source.tokens_of_node(condition).iter().any(|token| {
        matches!(
            token.text,
            "==" | "===" | "is" | "in" | "equals" | "eq" | "strcmp" | "includes" | "contains"
        )
    });
    // A range is a rule.
    let is_range =
        source.tokens_of_node(condition).iter().any(|token| matches!(token.text, "<" | ">" | "<=" | ">="));
    let mut inputs = literals(source.tokens_of_node(condition));
    let by_call = |token: &Token<'_>| matches!(token.text, "strcmp" | "memcmp" | "strncmp" | "strcasecmp");
    if source.tokens_of_node(condition).iter().any(by_call) {
        inputs.retain(|value| *value != "0");
    }
    let outputs = literals(source.tokens_of_node(answer));
    let answers = is_fixed_value(source.tokens_of_node(answer));
    let plain = inputs.iter().all(|value| is_common_value(value)) || outputs.is_empty();
    if !(compares || is_switch) || is_range || plain || !answers || inputs.is_empty() {
        return None;
    }
    Some(AnswerBranch {
        line: line_of(node),
        text: quote_tokens(source.tokens_of_node(node)),
        inputs,
        outputs,
    })
}

/// Reports functions that computed something, and now return a value that tests expect.
fn report_constant_results(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    (tests, called): (&[Vec<&str>], &BTreeSet<&str>),
    report: &mut HonestyReport,
) {
    let before = function_bodies(old);
    for (name, line, body) in function_bodies(new).into_iter().filter(|(name, _, _)| called.contains(name)) {
        let was = before.iter().find(|(known, _, _)| *known == name);
        let computed = was.is_some_and(|(_, _, body)| !is_fixed_value(body) && body.len() > 4);
        let values = literals(&body);
        let tested =
            !values.is_empty() && tests.iter().any(|row| values.iter().all(|value| row.contains(value)));
        if computed && is_fixed_value(&body) && tested && !values.iter().all(|value| is_common_value(value)) {
            let message = format!("`{name}` now returns `{}`, which the tests expect", quote_tokens(&body));
            report.add_blocking(HonestyKind::SpecialCase, path, line, message);
        }
    }
}

/// Reports new tables of the product that contain only inputs of tests with the expected results.
fn report_answer_tables(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    tests: &[Vec<&str>],
    report: &mut HonestyReport,
) {
    let pairs = |source: &ParsedSource<'_>| -> Vec<(u32, String, String)> {
        let found = source.tokens.windows(3).filter_map(|three| match three {
            [input, sign, output]
                if input.is_literal() && output.is_literal() && matches!(sign.text, ":" | "=>") =>
            {
                Some((input.line, input.normalized_text().to_owned(), output.normalized_text().to_owned()))
            }
            _ => None,
        });
        found.collect()
    };
    let known: BTreeSet<(String, String)> =
        pairs(old).into_iter().map(|(_, input, output)| (input, output)).collect();
    let added: Vec<(u32, String, String)> = pairs(new)
        .into_iter()
        .filter(|(_, input, output)| !known.contains(&(input.clone(), output.clone())))
        .collect();
    let tested = |(_, input, output): &(u32, String, String)| {
        tests.iter().any(|row| row.contains(&input.as_str()) && row.contains(&output.as_str()))
    };
    let entries: Vec<(&str, &str)> =
        added.iter().map(|(_, key, value)| (key.as_str(), value.as_str())).collect();
    if added.len() > 1
        && added.iter().all(tested)
        && !(is_complete_set(&entries) && has_replaced_stub(old, new))
        && let Some((line, input, output)) = added.first()
    {
        let message = format!("a table has `{input}` with `{output}` and more of what the tests expect");
        report.add_blocking(HonestyKind::SpecialCase, path, *line, message);
    }
}

/// Returns true for values that occur in any program.
fn is_common_value(value: &str) -> bool {
    matches!(
        value,
        "" | "0" | "1" | "2" | "true" | "false" | "True" | "False" | "None" | "null" | "nil" | "0.0"
    )
}

/// Reports a comparison, hash or truth method that now always returns true, 0 or 1.
fn report_constant_equality(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    report: &mut HonestyReport,
) {
    let always = |source: &ParsedSource<'_>| -> Vec<(u32, String)> {
        let mut found = Vec::new();
        let Some(tree) = &source.tree else { return found };
        let mut left = vec![tree.root()];
        while let Some(node) = left.pop() {
            left.extend(children(node));
            let Some(name) = node.child_by_field_name("name") else { continue };
            let name = source.text_of_node(name);
            let equality = matches!(
                name,
                "__eq__"
                    | "equals"
                    | "Equals"
                    | "eq"
                    | "=="
                    | "__ne__"
                    | "isEqual"
                    | "__bool__"
                    | "hashCode"
                    | "compareTo"
                    | "__hash__"
            );
            let Some(body) = node.child_by_field_name("body").filter(|_| equality) else { continue };
            let words: Vec<&str> = source
                .tokens_of_node(body)
                .iter()
                .map(|token| token.text)
                .filter(|text| !matches!(*text, "{" | "}" | ";" | "return"))
                .collect();
            if matches!(words.as_slice(), ["true" | "True" | "0" | "1"]) {
                found.push((line_of(node), quote_tokens(source.tokens_of_node(node))));
            }
        }
        found
    };
    let known = always(old);
    for (line, text) in always(new) {
        if known.iter().all(|(_, before)| *before != text) {
            report.add_blocking(
                HonestyKind::SpecialCase,
                path,
                line,
                format!("`{text}` says that all values are equal"),
            );
        }
    }
}
