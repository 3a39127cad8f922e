//! Code that changes the program around it: its exit code, its clock, or the functions that tests
//! call; and product code that reads the tests.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};
use journeyman_syntax::language::Language;

use super::function_bodies::function_bodies;
use super::parsed_source::{ParsedSource, TokenKind};
use super::report::HonestyReport;
use super::special_cases::quote_line;
use super::test_vocabulary::without_blanks;
use crate::test_files::{file_name, is_test_file, is_test_program_name};

/// Code that runs when a program begins or ends, or when something fails, in lower case without
/// blanks.
const LIFECYCLE_HOOKS: [&str; 19] = [
    "atexit.register",
    "atexit(",
    "at_exit",
    "on_exit(",
    "process.on('exit'",
    "process.once('exit'",
    "process.on('beforeexit'",
    "process.on('uncaughtexception'",
    "process.on('unhandledrejection'",
    "register_shutdown_function(",
    "set_exception_handler(",
    "addshutdownhook(",
    "__attribute__((constructor))",
    "__attribute__((destructor))",
    "panic::set_hook(",
    "sys.excepthook=",
    "minitest.after_run",
    "set_terminate(",
    "funcinit(){",
];
/// Calls that exit with success, in lower case without blanks.
const SUCCESS_EXITS: [&str; 10] = [
    "exit(0)",
    "exit!(0)",
    "exit!(true)",
    "exit(true)",
    "exit(exit_success)",
    "_exit,0",
    "exit,0",
    "exitcode=0",
    "halt(0)",
    "exitcode(0)",
];
/// Further such calls of Ruby and PHP, where calls need no arguments.
const ARGUMENTLESS_SUCCESS_EXITS: [(&str, &str); 3] =
    [(".rb", "exit0"), (".rb", "exit!0"), (".php", "exit()")];
/// Maximum number of lines between a fixture's decorator and the replaced name.
const MAX_DECORATOR_DISTANCE_LINES: usize = 6;
/// Maximum number of lines of a hook.
const MAX_HOOK_LINES: usize = 12;
/// Functions of JavaScript's runtimes that return the time or random numbers, in lower case.
const SCRIPT_CLOCKS: [&str; 5] =
    ["date.now", "math.random", "performance.now", "globalthis.date", "global.date"];
/// Modules of Python with such functions.
const PYTHON_CLOCKS: [&str; 10] = [
    "time.time",
    "time.time_ns",
    "time.sleep",
    "time.monotonic",
    "time.perf_counter",
    "random.random",
    "random.randint",
    "random.choice",
    "datetime.datetime",
    "datetime.date",
];
/// Words of code that reads files.
const FILE_READING_WORDS: [&str; 13] = [
    "open",
    "read_text",
    "read_bytes",
    "readFileSync",
    "readFile",
    "read_to_string",
    "include_str",
    "ReadFile",
    "fopen",
    "readAllLines",
    "readString",
    "file_get_contents",
    "getsource",
];

/// Reports code that makes a program exit with success whatever happened.
pub(super) fn report_success_exits(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let squeeze = |text: &str| without_blanks(text).to_ascii_lowercase().replace('"', "'");
    let name = path.to_string();
    let known: BTreeSet<String> = old.lines().map(squeeze).collect();
    let lines: Vec<(String, &str)> = new.lines().map(|line| (squeeze(line), line)).collect();
    for (at, (line, _)) in lines.iter().enumerate() {
        let Some(hook) = LIFECYCLE_HOOKS.iter().find(|hook| line.contains(**hook)) else { continue };
        if ["//", "#", "*"].iter().any(|sign| line.starts_with(sign)) {
            continue;
        }
        let first = line.find(hook).and_then(|from| line.get(from + hook.len()..)).unwrap_or_default();
        let mut depth = bracket_balance(hook) + bracket_balance(first);
        // A decorator, a block of Ruby, or an attribute on a line of its own.
        let mut is_ahead = first.is_empty() || line.starts_with('@') || line.ends_with("do");
        let mut body = vec![(at, first)];
        for (place, (next, text)) in lines.iter().enumerate().skip(at + 1).take(MAX_HOOK_LINES) {
            if text.trim().is_empty() || depth <= 0 && (!is_ahead || body.len() > 3) {
                break;
            }
            depth += bracket_balance(next);
            is_ahead &= depth <= 0;
            body.push((place, next));
        }
        let own = ARGUMENTLESS_SUCCESS_EXITS.iter().filter(|(ending, _)| name.ends_with(ending));
        let signs: Vec<&str> = own.map(|(_, sign)| *sign).chain(SUCCESS_EXITS).collect();
        let trap = body.iter().find(|(_, text)| signs.iter().any(|sign| text.contains(sign)));
        let is_new =
            body.iter().any(|(place, _)| lines.get(*place).is_some_and(|(line, _)| !known.contains(line)));
        if let Some((place, _)) = trap.filter(|_| is_new)
            && let Some((_, text)) = lines.get(*place)
        {
            let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
            let message =
                format!("`{}` makes the program end with success whatever failed in it", quote_line(text));
            report.add_blocking(HonestyKind::FailureSwallowed, path, number, message);
        }
    }
}

#[allow(clippy::cast_possible_wrap, reason = "counts of characters of one line")]
fn bracket_balance(text: &str) -> i64 {
    text.matches(['(', '{', '[']).count() as i64 - text.matches([')', '}', ']']).count() as i64
}

/// Reports code of the product that replaces the clock, or the random numbers, of the whole
/// program.
pub(super) fn report_replaced_clocks(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let lower = path.to_string().to_ascii_lowercase();
    if ["polyfill", "shim", "mock", "fake", "stub", "testing"].iter().any(|word| lower.contains(word)) {
        return;
    }
    let clocks: &[&str] = match Language::from_path(&lower) {
        Some(Language::JavaScript | Language::TypeScript | Language::Tsx) => &SCRIPT_CLOCKS,
        Some(Language::Python) => &PYTHON_CLOCKS,
        _ => return,
    };
    // In Python another thing may have the name of a module.
    let is_module = |name: &str| {
        let module = name.split('.').next().unwrap_or_default();
        clocks != PYTHON_CLOCKS
            || new.lines().any(|line| line.trim().starts_with(&format!("import {module}")))
    };
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line.trim())) {
        let squeezed = without_blanks(&line.to_ascii_lowercase());
        let bare = ["globalthis.", "global.", "window."]
            .iter()
            .find_map(|name| squeezed.strip_prefix(name))
            .unwrap_or(&squeezed);
        let replaces = clocks.iter().filter(|name| is_module(name)).any(|name| {
            [bare, squeezed.as_str()]
                .into_iter()
                .filter_map(|line| line.strip_prefix(name))
                .any(|rest| rest.strip_prefix('=').is_some_and(|value| !value.starts_with(['=', '>'])))
        });
        let supplies = ["||", "??", "?"].iter().any(|sign| squeezed.contains(sign));
        if replaces && !supplies {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}` replaces it for all that runs beside the product", quote_line(line));
            report.add_blocking(HonestyKind::SpecialCase, path, number, message);
        }
    }
}

/// Reports code of the product that replaces assertions of the tests' library.
pub(super) fn report_replaced_assertions(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let targets: &[&str] = match Language::from_path(&path.to_string()) {
        Some(Language::JavaScript | Language::TypeScript | Language::Tsx) => {
            &["assert.", "chai.", "global.expect", "globalThis.expect", "global.assert", "globalThis.assert"]
        }
        Some(Language::Python) => &["unittest.", "pytest."],
        _ => return,
    };
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line.trim())) {
        let Some((target, value)) = line.trim().split_once('=') else { continue };
        let target = target.trim_end();
        let is_name = target.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        let is_theirs = targets.iter().any(|name| target.starts_with(name));
        if is_name && is_theirs && !value.starts_with(['=', '>']) {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!("`{}` replaces what the tests assert with", quote_line(line));
            report.add_blocking(HonestyKind::AssertionWeakened, path, number, message);
        }
    }
}

/// Reports code of the product that newly reads tests.
///
/// `tests` has the paths of the project's tests, and `called` the words that occur in them.
pub(super) fn report_test_reading(
    path: &RelPath,
    old: Option<&ParsedSource<'_>>,
    new: &ParsedSource<'_>,
    (tests, called): (&BTreeSet<&str>, &BTreeSet<&str>),
    report: &mut HonestyReport,
) {
    let known: BTreeSet<&str> =
        old.iter().flat_map(|old| &old.tokens).filter(|it| it.is_literal()).map(|it| it.text).collect();
    let reads = |tokens: &[super::parsed_source::Token<'_>]| {
        tokens.iter().any(|token| token.kind == TokenKind::Word && FILE_READING_WORDS.contains(&token.text))
    };
    let names_program = |text: &str| {
        is_test_program_name(file_name(text)) && tests.iter().any(|test| file_name(test) == file_name(text))
    };
    let is_new = |token: &&super::parsed_source::Token<'_>| {
        token.kind == TokenKind::Text && !known.contains(token.text)
    };
    let program = new.tokens.iter().filter(is_new).find(|token| names_program(token.normalized_text()));
    // A function that tests call reads the directory of tests.
    let called_bodies = function_bodies(new).into_iter().filter(|(name, _, _)| called.contains(name));
    let beneath = called_bodies.filter(|(_, _, body)| reads(body)).find_map(|(_, _, body)| {
        let is_directory = |text: &str| {
            let text = text.trim_matches(['.', '/']);
            matches!(text, "test" | "tests" | "spec" | "__tests__")
                || text.contains('/')
                    && is_test_file(text)
                    && !text.contains("data")
                    && !text.contains("fixture")
        };
        body.iter().filter(is_new).find(|token| is_directory(token.normalized_text())).copied()
    });
    if let Some(token) = program.filter(|_| reads(&new.tokens)).copied().or(beneath) {
        let message = format!("the product reads {}, which is a part of the tests", quote_line(token.text));
        report.add_blocking(HonestyKind::SpecialCase, path, token.line, message);
    }
}

/// Reports a set-up that runs before all tests and replaces functions that the tests call.
///
/// `called` has the words that occur in tests before the change.
pub(super) fn report_replacing_setup(
    path: &RelPath,
    old: &str,
    new: &str,
    called: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    let name = path.to_string().to_ascii_lowercase();
    let name = file_name(&name);
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    let lines: Vec<&str> = new.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !known.contains(line.trim())) {
        let replaced = if name == "conftest.py" {
            let before = lines.get(at.saturating_sub(MAX_DECORATOR_DISTANCE_LINES)..at).unwrap_or_default();
            let for_all = before.iter().any(|line| line.contains("autouse=True"));
            let replaces = ["setattr(", "patch(", "patch.object("].iter().any(|call| line.contains(call));
            let texts = line.split(['"', '\'']).skip(1).step_by(2);
            let mut names = texts.map(|text| text.rsplit('.').next().unwrap_or(text));
            names.find(|name| for_all && replaces && called.contains(name))
        } else if name.contains("setup.")
            && ["jest.mock('.", "vi.mock('."].iter().any(|it| line.replace('"', "'").contains(it))
        {
            let body =
                lines.iter().skip(at + 1).take(MAX_HOOK_LINES).take_while(|line| !line.starts_with('}'));
            let entries =
                body.filter(|line| !line.contains(".fn()")).filter_map(|line| line.split_once([':', '(']));
            entries.map(|(name, _)| name.trim()).find(|name| called.contains(name))
        } else {
            None
        };
        if let Some(replaced) = replaced {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let message = format!(
                "`{}` replaces `{replaced}`, which the tests call, for all of them",
                quote_line(line)
            );
            report.add_blocking(HonestyKind::AssertionWeakened, path, number, message);
        }
    }
}
