//! Python projects.

mod config;
mod environment;

use std::collections::BTreeSet;

use journeyman_protocol::{CheckKind, RelPath};

use super::check_runners;
use super::project::{ProjectDirectory, file_name, is_foreign};
use super::quote_word;
use crate::Check;
use config::PythonConfig;
use environment::PythonEnvironment;

/// The name in evidence.
const ECOSYSTEM: &str = "python";
/// Maximum number of test files that are read to find out which runner they need.
const MAX_PROBED_FILES: usize = 20;
/// Directories beneath the tests whose files tests read, and which may look like tests.
const DATA_DIRECTORIES: [&[u8]; 8] =
    [b"data", b"examples", b"samples", b"resources", b"inputs", b"cases", b"snippets", b"projects"];
/// Maximum number of directories where the discovery of tests starts, each of which is a check.
const MAX_START_DIRECTORIES: usize = 8;
/// Maximum number of changed files whose syntax one command checks.
const MAX_SYNTAX_FILES: usize = 100;

/// Files that mark a Python project.
const PROJECT_MARKERS: [&str; 8] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    "requirements.txt",
    "Pipfile",
];

/// A tool that checks types or style, with the command that repairs what it finds.
struct PythonTool {
    kind: CheckKind,
    name: &'static str,
    arguments: &'static str,
    fix: Option<&'static str>,
}

/// Finds type checkers and linters where configured, then the tests by pytest, or by unittest if
/// the tests allow it. The syntax of changed files is checked first, but only if tests follow,
/// because it proves nothing by itself.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let tests: Vec<&[u8]> = place.files().filter(|path| is_test_file(path)).collect();
    if !place.has_any(&PROJECT_MARKERS) && !tests.iter().any(|path| is_in_usual_test_directory(path)) {
        return Vec::new();
    }
    let environment = PythonEnvironment::find(place);
    let config = PythonConfig::from_directory(place);
    let mut checks: Vec<Check> =
        configured_tools(&config).into_iter().map(|tool| tool_check(place, &environment, &tool)).collect();
    let tests = test_checks(place, &config, &environment, &tests);
    if tests.iter().any(|test| test.blocked.is_none()) {
        checks.extend(syntax_check(place, &environment));
    }
    checks.extend(tests);
    checks.extend(check_runners::find_tox_and_nox_checks(place, &config.pyproject, &config.tox));
    let interpreter = environment.required_program();
    let missing = !place.has_program(interpreter) && environment.is_outside_project();
    let block = |check: Check| match check.blocked {
        _ if !missing => check,
        _ => check.with_blocked(format!("{interpreter} is not installed")),
    };
    checks.into_iter().map(block).collect()
}

/// Returns the tools that the project configures.
fn configured_tools(config: &PythonConfig) -> Vec<PythonTool> {
    let tool = |kind, name, arguments, fix| PythonTool { kind, name, arguments, fix };
    let (types, lint) = (CheckKind::Types, CheckKind::Lint);
    let mypy_arguments = if config.mypy_names_files { "" } else { " ." };
    let rows = [
        (config.mypy, tool(types, "mypy", mypy_arguments, None)),
        (config.pyright, tool(types, "pyright", "", None)),
        (
            config.ruff,
            tool(lint, "ruff", " check --no-fix --output-format=concise .", Some(" check --fix .")),
        ),
        (config.ruff_format, tool(lint, "ruff", " format --check .", Some(" format ."))),
        (config.black, tool(lint, "black", " --check --quiet .", Some(" --quiet ."))),
        (config.flake8 && !config.ruff, tool(lint, "flake8", "", None)),
        (config.pylint, tool(lint, "pylint", " --recursive=y .", None)),
    ];
    rows.into_iter().filter_map(|(configured, tool)| configured.then_some(tool)).collect()
}

fn tool_check(place: &ProjectDirectory<'_>, environment: &PythonEnvironment, tool: &PythonTool) -> Check {
    let PythonTool { kind, name, arguments, fix } = tool;
    let program = environment.program_command(place, name);
    let command = |arguments: &str| format!("{}{arguments}", program.as_deref().unwrap_or(name));
    let check =
        place.new_check(*kind, ECOSYSTEM, command(arguments), format!("the project configures {name}"));
    let check = match fix {
        Some(fix) => check.with_fix(command(fix)),
        None => check,
    };
    match program {
        Some(_) => check,
        None => check.with_blocked(missing_module_reason(environment, name)),
    }
}

fn missing_module_reason(environment: &PythonEnvironment, name: &str) -> String {
    let python = environment.interpreter();
    format!("{name} is not installed; `{python} -m pip install {name}` installs it")
}

fn syntax_check(place: &ProjectDirectory<'_>, environment: &PythonEnvironment) -> Option<Check> {
    let changed = place.quoted_changed_files(".py", MAX_SYNTAX_FILES);
    if changed.is_empty() {
        return None;
    }
    let command = format!("{} -m py_compile {}", environment.interpreter(), changed.join(" "));
    Some(place.new_check(CheckKind::Types, ECOSYSTEM, command, "syntax of the changed files"))
}

fn test_checks(
    place: &ProjectDirectory<'_>,
    config: &PythonConfig,
    environment: &PythonEnvironment,
    tests: &[&[u8]],
) -> Vec<Check> {
    // pytest among the development dependencies is no sign of tests.
    if tests.is_empty() && !config.pytest {
        return Vec::new();
    }
    let python = environment.interpreter();
    let new_check = |command: String, why: &str| place.new_check(CheckKind::Test, ECOSYSTEM, command, why);
    if let Some(command) = django_command(place, config, &python) {
        return vec![new_check(command, "manage.py; Django's own test runner")];
    }
    let pytest = |python: &str| format!("{python} -m pytest -q");
    let required = config.pytest || config.depends_on("pytest") || needs_pytest(place, tests);
    // If no test needs pytest, an interpreter without it may well be the project's own.
    let fits = |it: &String| required || (*it == python && !environment.is_managed());
    if let Some(interpreter) = environment.pytest_interpreter(place).filter(fits) {
        return vec![new_check(
            pytest(&interpreter),
            &environment.extend_reason("tests, and pytest is installed"),
        )];
    }
    if required {
        let why = if config.pytest { "the project configures pytest" } else { "the tests need pytest" };
        let check = new_check(pytest(&python), why);
        return vec![check.with_blocked(missing_module_reason(environment, "pytest"))];
    }
    let why = environment.extend_reason("tests, by the standard library's runner");
    let pattern = unittest_pattern(tests);
    let starts = unittest_start_directories(place, tests);
    let discover = |start: &String| match start.as_str() {
        "" => format!("{python} -m unittest discover{pattern}"),
        start => format!("{python} -m unittest discover -s {}{pattern}", quote_word(start)),
    };
    starts.iter().map(|start| new_check(discover(start), &why)).collect()
}

/// Returns the command for a Django project, whose tests need its settings; pytest-django reads
/// them by itself.
fn django_command(place: &ProjectDirectory<'_>, config: &PythonConfig, python: &str) -> Option<String> {
    let manage = place.read("manage.py")?;
    let own = manage.contains("DJANGO_SETTINGS_MODULE") && !config.pytest;
    own.then(|| format!("{python} manage.py test"))
}

/// Returns true if the test files can't be run by unittest: they import pytest, or none imports
/// unittest.
fn needs_pytest(place: &ProjectDirectory<'_>, tests: &[&[u8]]) -> bool {
    let texts: Vec<String> = tests
        .iter()
        .take(MAX_PROBED_FILES)
        .filter_map(|path| place.read(std::str::from_utf8(path).ok()?))
        .collect();
    let imports = |text: &String| {
        text.lines().any(|line| line.starts_with("import pytest") || line.starts_with("from pytest"))
    };
    texts.iter().any(imports) || !texts.iter().any(|text| text.contains("unittest"))
}

/// Returns the argument for the pattern of unittest's discovery.
fn unittest_pattern(tests: &[&[u8]]) -> &'static str {
    let suffixed = |path: &&[u8]| !file_name(path).starts_with(b"test") && is_test_file(path);
    // The default pattern is `test*.py`. Where the project names its tests otherwise, all of them
    // have to match: `*test*.py` does, and then so does `conftest.py`, which defines no tests.
    match (tests.iter().any(suffixed), tests.iter().all(suffixed)) {
        (false, _) => "",
        (true, true) => " -p '*_test.py'",
        (true, false) => " -p '*test*.py'",
    }
}

/// Returns the directories where discovery starts, of which the root is empty. It doesn't enter
/// directories that aren't packages, so that each such one with tests is a start of its own.
fn unittest_start_directories(place: &ProjectDirectory<'_>, tests: &[&[u8]]) -> Vec<String> {
    let is_data = |path: &[u8]| {
        let above = path.rsplitn(2, |byte| *byte == b'/').nth(1).unwrap_or_default();
        above.split(|byte| *byte == b'/').any(|name| DATA_DIRECTORIES.contains(&name))
            || RelPath::parse(path).is_ok_and(|path| is_foreign(&path))
    };
    let usual = tests.iter().filter(|path| is_in_usual_test_directory(path) && !is_data(path));
    let mut starts: BTreeSet<String> = usual
        .filter_map(|path| {
            let mut start = std::str::from_utf8(path).ok()?.rsplit_once('/').map_or("", |(above, _)| above);
            while !start.is_empty() && place.has_file(&format!("{start}/__init__.py")) {
                start = start.rsplit_once('/').map_or("", |(above, _)| above);
            }
            Some(start.to_owned())
        })
        .collect();
    if starts.is_empty() {
        starts.insert(String::new());
    }
    starts.into_iter().take(MAX_START_DIRECTORIES).collect()
}

/// Returns true for `test_x.py` and `x_test.py`.
fn is_test_file(path: &[u8]) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test_") || name.ends_with(b"_test.py"))
}

/// Returns true if a test file lies where a project without a manifest usually keeps its tests.
fn is_in_usual_test_directory(path: &[u8]) -> bool {
    !path.contains(&b'/') || path.starts_with(b"tests/") || path.starts_with(b"test/")
}
