//! Python projects.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use super::shell::quoted;
use crate::Check;

/// The name in evidence.
const NAME: &str = "python";
/// Maximum number of test files that are read to learn which runner they need.
const MAX_PROBED: usize = 20;
/// A command line longer than this many files is no longer something a person would type.
const MAX_SYNTAX_FILES: usize = 100;

/// Files that mark a Python project.
const PROJECT_MARKERS: [&str; 7] =
    ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "requirements.txt", "Pipfile"];

/// mypy and ruff where configured, then the tests by pytest, or by unittest where the tests allow
/// it. The syntax of changed files is looked at first, but only where tests follow: it proves
/// nothing by itself.
pub(super) fn find(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let tests: Vec<&[u8]> = place.files().filter(|path| is_test_file(path)).collect();
    if !place.has_any(&PROJECT_MARKERS) && !tests.iter().any(|path| is_near(path)) {
        return Vec::new();
    }
    let python = find_interpreter(place);
    let config = Config::read(place);
    let mut checks = Vec::new();
    checks.extend(type_check(place, &config, &python));
    checks.extend(lint_check(place, &config));
    if let Some(test) = test_check(place, &config, &python, &tests) {
        if test.blocked.is_none() {
            checks.extend(syntax_check(place, &python));
        }
        checks.push(test);
    }
    if !place.has_program("python3") && python == "python3" {
        checks = checks.into_iter().map(|check| check.blocked("python3 is not installed")).collect();
    }
    checks
}

/// Facts from the configuration files.
#[derive(Default)]
struct Config {
    pytest: bool,
    mypy: bool,
    mypy_names_files: bool,
    ruff: bool,
    flake8: bool,
}

impl Config {
    fn read(place: &ProjectDirectory<'_>) -> Self {
        let pyproject: toml::Table =
            place.read("pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
        let tool = |name: &str| pyproject.get("tool").and_then(|tool| tool.get(name));
        let setup = place.read("setup.cfg").unwrap_or_default();
        let tox = place.read("tox.ini").unwrap_or_default();
        let section = |name: &str| has_section(&setup, name) || has_section(&tox, name);
        let mypy_ini = ["mypy.ini", ".mypy.ini"].iter().find_map(|name| place.read(name));
        Self {
            pytest: tool("pytest").is_some()
                || place.has_any(&["pytest.ini", "conftest.py", "tests/conftest.py"])
                || section("tool:pytest")
                || section("pytest"),
            mypy: tool("mypy").is_some() || mypy_ini.is_some() || section("mypy"),
            mypy_names_files: tool("mypy").is_some_and(|mypy| mypy.get("files").is_some())
                || mypy_ini.is_some_and(|text| names_files(&text))
                || (section("mypy") && names_files(&setup)),
            ruff: tool("ruff").is_some() || place.has_any(&["ruff.toml", ".ruff.toml"]),
            flake8: place.has_file(".flake8") || section("flake8"),
        }
    }
}

fn has_section(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name))
}

fn names_files(text: &str) -> bool {
    text.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == "files"))
}

/// The project's own environment, if it has one, else what `PATH` has.
fn find_interpreter(place: &ProjectDirectory<'_>) -> String {
    // The environment's own `bin/python` is a link out of the project, which nothing here follows.
    let own = [".venv", "venv"].into_iter().find(|path| place.has_file(&format!("{path}/pyvenv.cfg")));
    own.map_or_else(|| "python3".to_owned(), |own| format!("{own}/bin/python"))
}

/// A program of the project's environment, or of `PATH`.
fn find_program(place: &ProjectDirectory<'_>, name: &str) -> Option<String> {
    let own = [".venv/bin/", "venv/bin/"].map(|bin| format!("{bin}{name}"));
    let own = own.into_iter().find(|path| place.has_file(path));
    own.or_else(|| place.has_program(name).then(|| name.to_owned()))
}

fn type_check(place: &ProjectDirectory<'_>, config: &Config, python: &str) -> Option<Check> {
    if !config.mypy {
        return None;
    }
    let arguments = if config.mypy_names_files { "" } else { " ." };
    let why = "the project configures mypy";
    Some(match find_program(place, "mypy") {
        Some(mypy) => place.check(CheckKind::Types, NAME, format!("{mypy}{arguments}"), why),
        None => place
            .check(CheckKind::Types, NAME, format!("mypy{arguments}"), why)
            .blocked(format!("mypy is not installed; `{python} -m pip install mypy` installs it")),
    })
}

fn lint_check(place: &ProjectDirectory<'_>, config: &Config) -> Option<Check> {
    let (name, arguments) = match config {
        Config { ruff: true, .. } => ("ruff", " check --output-format=concise ."),
        Config { flake8: true, .. } => ("flake8", ""),
        _ => return None,
    };
    let why = format!("the project configures {name}");
    Some(match find_program(place, name) {
        Some(program) => place.check(CheckKind::Lint, NAME, format!("{program}{arguments}"), why),
        None => place
            .check(CheckKind::Lint, NAME, format!("{name}{arguments}"), why)
            .blocked(format!("{name} is not installed; `python3 -m pip install {name}` installs it")),
    })
}

fn syntax_check(place: &ProjectDirectory<'_>, python: &str) -> Option<Check> {
    let changed: Vec<String> = place
        .changed()
        .filter(|path| path.ends_with(b".py"))
        .filter_map(|path| std::str::from_utf8(path).ok())
        .filter(|path| place.has_file(path))
        .take(MAX_SYNTAX_FILES)
        .map(quoted)
        .collect();
    if changed.is_empty() {
        return None;
    }
    let command = format!("{python} -m py_compile {}", changed.join(" "));
    Some(place.check(CheckKind::Types, NAME, command, "syntax of the changed files"))
}

fn test_check(place: &ProjectDirectory<'_>, config: &Config, python: &str, tests: &[&[u8]]) -> Option<Check> {
    if tests.is_empty() && !config.pytest {
        return None;
    }
    if find_program(place, "pytest").is_some() {
        let command = format!("{python} -m pytest -q");
        return Some(place.check(CheckKind::Test, NAME, command, "tests, and pytest is installed"));
    }
    if config.pytest || needs_pytest(place, tests) {
        let check =
            place.check(CheckKind::Test, NAME, format!("{python} -m pytest -q"), "the tests need pytest");
        let reason = format!("pytest is not installed; `{python} -m pip install pytest` installs it");
        return Some(check.blocked(reason));
    }
    let command = format!("{python} -m unittest discover{}", unittest_discovery_arguments(place, tests));
    Some(place.check(CheckKind::Test, NAME, command, "tests, by the standard library's runner"))
}

/// Returns true if the test files can't be run by unittest: they import pytest, or none knows
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

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// `test_x.py` or `x_test.py`.
fn is_test_file(path: &[u8]) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test_") || name.ends_with(b"_test.py"))
}

/// Returns true if a test file is where a project without a manifest keeps its tests.
fn is_near(path: &[u8]) -> bool {
    !path.contains(&b'/') || path.starts_with(b"tests/") || path.starts_with(b"test/")
}
