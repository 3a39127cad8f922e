//! Python projects.

mod config;
mod environment;

use journeyman_protocol::CheckKind;

use super::hooks;
use super::project::{ProjectDirectory, file_name};
use crate::Check;
use config::Config;
use environment::Environment;

/// The name in evidence.
const NAME: &str = "python";
/// Maximum number of test files that are read to find out which runner they need.
const MAX_PROBED: usize = 20;
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
pub(super) fn find(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let tests: Vec<&[u8]> = place.files().filter(|path| is_test_file(path)).collect();
    if !place.has_any(&PROJECT_MARKERS) && !tests.iter().any(|path| is_near(path)) {
        return Vec::new();
    }
    let environment = Environment::find(place);
    let config = Config::read(place);
    let mut checks: Vec<Check> =
        tools(&config).into_iter().map(|tool| tool_check(place, &environment, &tool)).collect();
    if let Some(test) = test_check(place, &config, &environment, &tests) {
        if test.blocked.is_none() {
            checks.extend(syntax_check(place, &environment));
        }
        checks.push(test);
    }
    checks.extend(hooks::environments(place, &config.pyproject, &config.tox));
    let interpreter = environment.program_needed();
    let missing = !place.has_program(interpreter) && environment.is_outside();
    let block = |check: Check| match check.blocked {
        _ if !missing => check,
        _ => check.blocked(format!("{interpreter} is not installed")),
    };
    checks.into_iter().map(block).collect()
}

/// Returns the tools that the project configures.
fn tools(config: &Config) -> Vec<PythonTool> {
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

fn tool_check(place: &ProjectDirectory<'_>, environment: &Environment, tool: &PythonTool) -> Check {
    let PythonTool { kind, name, arguments, fix } = tool;
    let program = environment.program(place, name);
    let command = |arguments: &str| format!("{}{arguments}", program.as_deref().unwrap_or(name));
    let check = place.check(*kind, NAME, command(arguments), format!("the project configures {name}"));
    let check = match fix {
        Some(fix) => check.fixed_by(command(fix)),
        None => check,
    };
    match program {
        Some(_) => check,
        None => check.blocked(missing_module(environment, name)),
    }
}

fn missing_module(environment: &Environment, name: &str) -> String {
    let python = environment.interpreter();
    format!("{name} is not installed; `{python} -m pip install {name}` installs it")
}

fn syntax_check(place: &ProjectDirectory<'_>, environment: &Environment) -> Option<Check> {
    let changed = place.changed_files(".py", MAX_SYNTAX_FILES);
    if changed.is_empty() {
        return None;
    }
    let command = format!("{} -m py_compile {}", environment.interpreter(), changed.join(" "));
    Some(place.check(CheckKind::Types, NAME, command, "syntax of the changed files"))
}

fn test_check(
    place: &ProjectDirectory<'_>,
    config: &Config,
    environment: &Environment,
    tests: &[&[u8]],
) -> Option<Check> {
    // pytest among the development dependencies is no sign of tests.
    if tests.is_empty() && !config.pytest {
        return None;
    }
    let python = environment.interpreter();
    if let Some(command) = django_command(place, config, &python) {
        return Some(place.check(CheckKind::Test, NAME, command, "manage.py; Django's own test runner"));
    }
    let pytest = |python: &str| format!("{python} -m pytest -q");
    let required = config.pytest || config.depends_on("pytest") || needs_pytest(place, tests);
    // If no test needs pytest, an interpreter without it may well be the project's own.
    let fits = |it: &String| required || (*it == python && !environment.is_managed());
    if let Some(interpreter) = environment.pytest_interpreter(place).filter(fits) {
        let why = environment.why("tests, and pytest is installed");
        return Some(place.check(CheckKind::Test, NAME, pytest(&interpreter), why));
    }
    if required {
        let why = if config.pytest { "the project configures pytest" } else { "the tests need pytest" };
        let check = place.check(CheckKind::Test, NAME, pytest(&python), why);
        return Some(check.blocked(missing_module(environment, "pytest")));
    }
    let command = format!("{python} -m unittest discover{}", unittest_discovery_arguments(place, tests));
    let why = environment.why("tests, by the standard library's runner");
    Some(place.check(CheckKind::Test, NAME, command, why))
}

/// Returns the command for a Django project, whose tests need its settings; pytest-django reads
/// them by itself.
fn django_command(place: &ProjectDirectory<'_>, config: &Config, python: &str) -> Option<String> {
    let manage = place.read("manage.py")?;
    let own = manage.contains("DJANGO_SETTINGS_MODULE") && !config.pytest;
    own.then(|| format!("{python} manage.py test"))
}

/// Returns true if the test files can't be run by unittest: they import pytest, or none imports
/// unittest.
fn needs_pytest(place: &ProjectDirectory<'_>, tests: &[&[u8]]) -> bool {
    let texts: Vec<String> = tests
        .iter()
        .take(MAX_PROBED)
        .filter_map(|path| place.read(std::str::from_utf8(path).ok()?))
        .collect();
    let imports = |text: &String| {
        text.lines().any(|line| line.starts_with("import pytest") || line.starts_with("from pytest"))
    };
    texts.iter().any(imports) || !texts.iter().any(|text| text.contains("unittest"))
}

/// Returns the arguments of unittest's discovery, which doesn't enter directories that aren't
/// packages.
fn unittest_discovery_arguments(place: &ProjectDirectory<'_>, tests: &[&[u8]]) -> String {
    let suffixed = |path: &&[u8]| !file_name(path).starts_with(b"test") && is_test_file(path);
    // The default pattern is `test*.py`. Where the project names its tests otherwise, all of them
    // have to match: `*test*.py` does, and then so does `conftest.py`, which defines no tests.
    let pattern = match (tests.iter().any(suffixed), tests.iter().all(suffixed)) {
        (false, _) => "",
        (true, true) => " -p '*_test.py'",
        (true, false) => " -p '*test*.py'",
    };
    format!("{}{pattern}", unittest_start(place, tests))
}

/// Returns the directory where discovery starts.
fn unittest_start(place: &ProjectDirectory<'_>, tests: &[&[u8]]) -> &'static str {
    let at_top = tests.iter().any(|path| !path.contains(&b'/') && is_test_file(path));
    let beneath = |directory: &str| tests.iter().any(|path| path.starts_with(directory.as_bytes()));
    match () {
        () if at_top => "",
        () if beneath("tests/") && place.has_file("tests/__init__.py") => "",
        () if beneath("tests/") => " -s tests",
        () if beneath("test/") && !place.has_file("test/__init__.py") => " -s test",
        () => "",
    }
}

/// Returns true for `test_x.py` and `x_test.py`.
fn is_test_file(path: &[u8]) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test_") || name.ends_with(b"_test.py"))
}

/// Returns true if a test file lies where a project without a manifest usually keeps its tests.
fn is_near(path: &[u8]) -> bool {
    !path.contains(&b'/') || path.starts_with(b"tests/") || path.starts_with(b"test/")
}
