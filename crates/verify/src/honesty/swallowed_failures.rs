//! Code beside tests that lets all of them pass: handlers of every failure, hooks that change
//! outcomes, assertions that are defined again, and selections of tests made in code.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::report::HonestyReport;
use super::special_cases::quote_line;
use super::test_vocabulary::{normalize_name, without_blanks};

/// Maximum number of lines of a handler, hook or function that are read.
const MAX_BODY_LINES: usize = 25;
/// Handlers of failures that nothing else caught, in lower case without blanks.
const FAILURE_HANDLERS: [&str; 8] = [
    "cypress.on('fail'",
    "on('uncaught:exception'",
    "process.on('uncaughtexception'",
    "process.on('unhandledrejection'",
    "setdefaultuncaughtexceptionhandler(",
    "set_exception_handler(",
    "set_error_handler(",
    "window.onerror=",
];
/// Signs that a handler distinguishes failures, or passes them on.
const HANDLING_SIGNS: [&str; 12] = [
    "throw",
    "raise",
    "exit(1)",
    "exitcode=1",
    "fail(",
    "reject(",
    "if(",
    "if ",
    "includes(",
    "match(",
    "?",
    "push(",
];
/// Hooks of pytest and unittest that can change what is reported.
const HOOKS: [&str; 10] = [
    "def pytest_runtest_makereport",
    "def pytest_itemcollected",
    "def pytest_runtest_protocol",
    "def pytest_pyfunc_call",
    "def pytest_report_teststatus",
    "def pytest_sessionfinish",
    "def pytest_collection_modifyitems",
    "def pytest_ignore_collect",
    "def pytest_runtest_call",
    "def pytest_pycollect_makeitem",
];
/// Code by which a hook changes an outcome or the list of tests, in lower case without blanks.
const HOOK_EFFECTS: [&str; 18] = [
    "exitstatus=",
    "outcome=\"",
    "outcome='",
    ".force_result(",
    "_exit(",
    "exit(",
    "items[:]",
    "items.clear(",
    "items.remove(",
    "items.pop(",
    "delitems",
    "mark.skip",
    "mark.xfail",
    ".wasxfail=",
    "longrepr=",
    "excinfo=",
    ".obj=",
    "except",
];
/// Selections of tests in code, in lower case without blanks.
const SELECTIONS: [&str; 17] = [
    "gtest_flag(filter",
    "gtest_flag_set(filter",
    "gtest_filter",
    "flags_gtest_filter",
    ".testsortags",
    "addfilter(\"test-case",
    "flag.set(\"test.run\"",
    "flag.set(\"test.skip\"",
    "unittest.main(exit=false",
    "runnables.clear",
    "defself.runnable_methods",
    "filter_run_excluding",
    ".filter_run(",
    "__test__=false",
    ".invert()",
    "runnable_methods.clear",
    "setenv(\"gtest_",
];
/// Variables by which snapshots pass or are written again.
const SNAPSHOT_VARIABLES: [&str; 9] = [
    "insta_force_pass",
    "insta_update",
    "update_snapshots",
    "update_snapshot",
    "snapshot_update",
    "update_expect",
    "update_golden",
    "trybuild",
    "regenerate_snapshots",
];
/// Beginnings of names of assertions that libraries define, without separators.
const LIBRARY_ASSERTIONS: [&str; 20] = [
    "assert",
    "assertequal",
    "assertequals",
    "asserttrue",
    "assertfalse",
    "assertin",
    "assertsame",
    "asserteq",
    "assertne",
    "assertthat",
    "assertraises",
    "assertthrows",
    "assertnil",
    "assertnotnull",
    "assertnull",
    "expect",
    "should",
    "shouldbe",
    "xctassertequal",
    "expecteq",
];
/// Words of code that can fail.
const FAILING_WORDS: [&str; 13] = [
    "raise", "throw", "fail", "panic", "abort", "exit", "error", "super", "parent::", "die", "expect(", "!=",
    "flunk",
];

/// A changed line in the forms in which it is compared.
struct CodeLine<'t> {
    text: &'t str,
    /// In lower case, without blanks, with one kind of quotes.
    squeezed: String,
}

/// Reports such code in a file of tests, or in a file that configures them.
pub(super) fn report_swallowed_failures(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let known: BTreeSet<String> = old.lines().map(squeeze).collect();
    let lines: Vec<CodeLine<'_>> =
        new.lines().map(|text| CodeLine { text, squeezed: squeeze(text) }).collect();
    for (at, line) in lines.iter().enumerate() {
        let is_comment = ["//", "#!", "*", "/*"].iter().any(|sign| line.squeezed.starts_with(sign))
            || line.text.trim_start().starts_with("# ");
        if is_comment || known.contains(&line.squeezed) {
            continue;
        }
        let body = body_of(&lines, at);
        let why = match () {
            () if swallows_failures(line, &body) => "lets every failure pass",
            () if changes_outcomes(line, &body) => "decides what the runner reports",
            () if replaces_suite(line, &body) => "leaves no test to run",
            () if redefines_assertion(line, &body) => "replaces an assertion by one that can't fail",
            () if discards_result(line) => "doesn't return what the tests found",
            () if SELECTIONS.iter().any(|sign| line.squeezed.replace('\'', "\"").contains(sign)) => {
                "leaves tests out"
            }
            () => continue,
        };
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let message = format!("`{}` {why}", quote_line(line.text));
        report.add_blocking(HonestyKind::FailureSwallowed, path, number, message);
    }
}

/// Reports variables by which snapshots pass whatever they hold.
pub(super) fn report_snapshot_variables(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let known: BTreeSet<String> = old.lines().map(squeeze).collect();
    for (at, line) in new.lines().enumerate() {
        let squeezed = squeeze(line);
        if known.contains(&squeezed) || squeezed.starts_with('#') || squeezed.starts_with("//") {
            continue;
        }
        let sets = SNAPSHOT_VARIABLES.iter().any(|name| {
            let rest = squeezed.split_once(name).map_or("", |(_, rest)| rest);
            let sign = rest.find(['=', ':', ',']).filter(|at| *at < 3);
            let value =
                sign.and_then(|at| rest.get(at + 1..)).unwrap_or_default().trim_start_matches(['\'', '=']);
            !value.is_empty()
                && !["no", "0", "false", "off", "wip", "'"].iter().any(|it| value.starts_with(it))
        });
        if sets {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}` lets snapshots pass whatever they hold", quote_line(line));
            report.add_blocking(HonestyKind::ConfigurationLoosened, path, number, message);
        }
    }
}

fn squeeze(line: &str) -> String {
    without_blanks(line).to_ascii_lowercase().replace(['"', '`'], "'")
}

/// Returns a line and the further lines of its block, by their indentation.
fn body_of<'a, 't>(lines: &'a [CodeLine<'t>], at: usize) -> Vec<&'a CodeLine<'t>> {
    let indent = |line: &CodeLine<'_>| line.text.len() - line.text.trim_start().len();
    let Some(first) = lines.get(at) else { return Vec::new() };
    let rest = lines.iter().skip(at + 1).take(MAX_BODY_LINES);
    let inside = rest.take_while(|line| line.squeezed.is_empty() || indent(line) > indent(first));
    std::iter::once(first).chain(inside.filter(|line| !line.squeezed.is_empty())).collect()
}

fn swallows_failures(line: &CodeLine<'_>, body: &[&CodeLine<'_>]) -> bool {
    let Some(sign) = FAILURE_HANDLERS.iter().find(|sign| line.squeezed.contains(**sign)) else {
        return false;
    };
    let rest = line.squeezed.split_once(sign).map_or("", |(_, rest)| rest);
    // A named handler is unknown here.
    let has_block = body.len() > 1 || rest.contains("=>") || rest.contains("->") || rest.contains('{');
    let handles = std::iter::once(rest)
        .chain(body.iter().skip(1).map(|line| line.squeezed.as_str()))
        .any(|text| HANDLING_SIGNS.iter().any(|sign| text.contains(sign.trim_end())));
    has_block && !handles
}

fn changes_outcomes(line: &CodeLine<'_>, body: &[&CodeLine<'_>]) -> bool {
    let returns = |text: &str| text.starts_with("return") && !matches!(text, "return" | "returnnone");
    HOOKS.iter().any(|hook| line.squeezed.contains(&hook.replace(' ', "")))
        && body.iter().skip(1).any(|line| {
            returns(&line.squeezed) || HOOK_EFFECTS.iter().any(|effect| line.squeezed.contains(effect))
        })
}

/// Returns true for a hook that hands the runner other tests than those that it found.
fn replaces_suite(line: &CodeLine<'_>, body: &[&CodeLine<'_>]) -> bool {
    let Some((_, parameters)) = line.squeezed.split_once("defload_tests(") else { return false };
    let parameters: Vec<&str> = parameters.split([',', ')']).take(2).collect();
    !body
        .iter()
        .skip(1)
        .any(|line| parameters.iter().any(|name| !name.is_empty() && line.squeezed.contains(name)))
}

/// Returns true for a function that has the name of a library's assertion, and can't fail, or only
/// hands some of the values on.
fn redefines_assertion(line: &CodeLine<'_>, body: &[&CodeLine<'_>]) -> bool {
    let text = line.text.trim_start();
    let keywords = [
        "def self.",
        "def ",
        "function ",
        "fun ",
        "fn ",
        "void ",
        "defmacro ",
        "func ",
        "macro_rules! ",
        "#define ",
    ];
    let assigned = ["const expect = (", "globalThis.expect = (", "let expect = ("];
    let rest = keywords.iter().find_map(|keyword| text.split_once(keyword)).map_or("", |(_, rest)| rest);
    // A function of Kotlin has its type parameters and its receiver before its name.
    let head = rest.split('(').next().unwrap_or_default();
    let mut words = head.split(|c: char| !c.is_alphanumeric() && c != '_');
    let name = if head.starts_with('<') { words.next_back() } else { words.next() }.unwrap_or_default();
    let named = LIBRARY_ASSERTIONS.contains(&normalize_name(name).as_str())
        || assigned.iter().any(|beginning| text.starts_with(beginning))
        || text.starts_with("#define ")
            && ["REQUIRE", "CHECK", "EXPECT_", "ASSERT_"].iter().any(|it| name.starts_with(it));
    if !named || text.ends_with(';') && !text.contains('{') && !text.contains('=') {
        return false;
    }
    let own = rest.split_once(['(', ' ']).map_or("", |(_, rest)| rest).to_ascii_lowercase();
    let texts: Vec<String> = std::iter::once(own)
        .chain(body.iter().skip(1).map(|line| line.text.trim().to_ascii_lowercase()))
        .collect();
    let fails = texts.iter().any(|text| FAILING_WORDS.iter().any(|word| text.contains(word)));
    let asserts = texts.iter().skip(1).any(|text| text.contains("assert"));
    let first = texts.get(1).map_or("", String::as_str);
    let is_conditional = ["if ", "if(", "unless "].iter().any(|it| first.starts_with(it));
    let fails_itself = texts.iter().any(|text| {
        ["raise", "throw", "fail", "panic", "error", "exit", "die"].iter().any(|it| text.contains(it))
    });
    !fails && !asserts || is_conditional && !fails_itself
}

/// Returns true for a call that runs all tests and drops what they found.
fn discards_result(line: &CodeLine<'_>) -> bool {
    ["run_all_tests();", "(void)run_all_tests();"].contains(&line.squeezed.as_str())
}
