//! The configuration files of Python's tools.

use super::super::project::ProjectDirectory;

/// Lock files in which a package is a table with a `name`.
const LOCK_FILES: [&str; 3] = ["uv.lock", "poetry.lock", "pdm.lock"];
/// Files that list requirements, a line each.
const REQUIREMENTS: [&str; 5] = [
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
];

/// Facts from the configuration files.
#[derive(Default)]
pub(super) struct PythonConfig {
    pub(super) pyproject: toml::Table,
    pub(super) tox: String,
    pub(super) pytest: bool,
    pub(super) mypy: bool,
    pub(super) mypy_names_files: bool,
    pub(super) pyright: bool,
    pub(super) ruff: bool,
    pub(super) ruff_format: bool,
    pub(super) black: bool,
    pub(super) flake8: bool,
    pub(super) pylint: bool,
    /// Lock files and lists of requirements, as they are.
    packages: Vec<String>,
}

impl PythonConfig {
    pub(super) fn from_directory(place: &ProjectDirectory<'_>) -> Self {
        let pyproject: toml::Table =
            place.read("pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
        let tool = |name: &str| pyproject.get("tool").and_then(|tool| tool.get(name));
        let setup = place.read("setup.cfg").unwrap_or_default();
        let tox = place.read("tox.ini").unwrap_or_default();
        let section = |name: &str| has_section(&setup, name) || has_section(&tox, name);
        let mypy_ini = ["mypy.ini", ".mypy.ini"].iter().find_map(|name| place.read(name));
        let packages = LOCK_FILES.iter().chain(&REQUIREMENTS).filter_map(|name| place.read(name)).collect();
        Self {
            pytest: tool("pytest").is_some()
                || place.has_any(&["pytest.ini", "conftest.py", "tests/conftest.py"])
                || section("tool:pytest")
                || section("pytest"),
            mypy: tool("mypy").is_some() || mypy_ini.is_some() || section("mypy"),
            mypy_names_files: tool("mypy").is_some_and(|mypy| mypy.get("files").is_some())
                || mypy_ini.is_some_and(|text| has_files_key(&text))
                || (section("mypy") && has_files_key(&setup)),
            pyright: tool("pyright").is_some() || place.has_file("pyrightconfig.json"),
            ruff: tool("ruff").is_some() || place.has_any(&["ruff.toml", ".ruff.toml"]),
            ruff_format: tool("ruff").is_some_and(|ruff| ruff.get("format").is_some()),
            black: tool("black").is_some(),
            flake8: place.has_file(".flake8") || section("flake8"),
            pylint: place.has_any(&[".pylintrc", "pylintrc"]) || tool("pylint").is_some(),
            packages,
            tox,
            pyproject,
        }
    }

    /// Returns true if the project depends on `package`: in a group of its `pyproject.toml`, in a
    /// lock file, or in a list of requirements.
    pub(super) fn depends_on(&self, package: &str) -> bool {
        let locked = format!("name = \"{package}\"");
        let in_text =
            |text: &String| text.lines().map(str::trim).any(|line| line == locked || requires(line, package));
        self.packages.iter().any(in_text)
            || requires_anywhere(&toml::Value::Table(self.pyproject.clone()), package)
    }
}

/// Returns true if a requirement such as `pytest>=8; python_version > "3"` names `package`.
fn requires(requirement: &str, package: &str) -> bool {
    let rest = requirement.strip_prefix(package);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c)))
}

/// Returns true if a list of requirements or a table of dependencies in `value` names `package`.
fn requires_anywhere(value: &toml::Value, package: &str) -> bool {
    match value {
        toml::Value::Array(items) => items.iter().any(|item| match item {
            toml::Value::String(text) => requires(text, package),
            other => requires_anywhere(other, package),
        }),
        toml::Value::Table(table) => table.iter().any(|(key, value)| {
            // `[tool.pytest]` configures; Poetry's tables have packages for keys.
            let poetry = key.ends_with("dependencies") && value.get(package).is_some();
            poetry || requires_anywhere(value, package)
        }),
        _ => false,
    }
}

fn has_section(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name))
}

fn has_files_key(text: &str) -> bool {
    text.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == "files"))
}
