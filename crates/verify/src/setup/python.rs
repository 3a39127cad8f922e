//! Environments of Python projects.

use toml::{Table, Value};

use super::step::{SetupStep, new_step};
use crate::Check;
use crate::check_discovery::project::ProjectDirectory;
use crate::check_discovery::shell::quote_word;

/// The name of the checks' ecosystem.
const ECOSYSTEM: &str = "python";
/// Files that list requirements: the first one for the project, the others for its tests.
const REQUIREMENTS: [&str; 6] = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
];
/// Names of the extras and groups that tests need, in order of preference.
const TEST_GROUPS: [&str; 4] = ["test", "tests", "testing", "dev"];
/// Managers of environments: the lock file, the program, the command that makes an environment in
/// the project as the lock file says.
const ENVIRONMENT_MANAGERS: [(&str, &str, &str); 4] = [
    ("uv.lock", "uv", "uv sync --frozen"),
    ("poetry.lock", "poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction"),
    ("pdm.lock", "pdm", "pdm sync"),
    ("Pipfile.lock", "pipenv", "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev"),
];

/// Returns the step that creates a virtual environment in the project with its requirements, or
/// installs what an existing one lacks.
pub(super) fn find_step(place: &ProjectDirectory<'_>, checks: &[Check]) -> Option<SetupStep> {
    let own = [".venv", "venv"].into_iter().find(|path| place.has_file(&format!("{path}/pyvenv.cfg")));
    let lacking = missing_tools(checks);
    if !checks.iter().any(|check| check.ecosystem == ECOSYSTEM) || own.is_some() && lacking.is_empty() {
        return None;
    }
    let manager = ENVIRONMENT_MANAGERS.into_iter().find(|(lock, ..)| place.has_file(lock));
    if let (None, Some((lock, program, command))) = (own, manager) {
        if !place.has_program(program) {
            return None;
        }
        let why = format!("there is no environment in the project as {lock} says");
        let step = new_step(place, ECOSYSTEM, command, why, &[lock, "pyproject.toml"]);
        return Some(SetupStep { network: &["pypi"], ..step });
    }
    let requirements = requirement_arguments(place, &lacking).join(" ");
    if requirements.is_empty() || !place.has_program("python3") {
        return None;
    }
    let install = |python: &str| format!("{python}/bin/python -m pip install --quiet {requirements}");
    let command = match own {
        Some(own) => install(own),
        // An incomplete environment would be taken for a complete one.
        None => format!("python3 -m venv .venv && {} || {{ rm -rf .venv; false; }}", install(".venv")),
    };
    let why = match (lacking.as_slice(), own) {
        ([], _) => "there is no environment with what the project requires".to_owned(),
        (lacking, Some(own)) => format!("{own} lacks {}", lacking.join(", ")),
        (lacking, None) => {
            format!("{} is not installed, and there is no environment in the project", lacking.join(", "))
        }
    };
    let files: Vec<&str> =
        REQUIREMENTS.into_iter().chain(["pyproject.toml", "setup.py", "setup.cfg"]).collect();
    let step = new_step(place, ECOSYSTEM, command, why, &files);
    Some(SetupStep { network: &["pypi"], is_needed: !lacking.is_empty(), ..step })
}

/// Returns the programs whose absence blocks checks.
fn missing_tools(checks: &[Check]) -> Vec<String> {
    let own = checks.iter().filter(|check| check.ecosystem == ECOSYSTEM && check.unasked.is_none());
    let blocked = own.filter_map(|check| check.blocked.as_deref());
    let mut names: Vec<String> = blocked
        .filter(|reason| reason.contains("-m pip install"))
        .filter_map(|reason| reason.split_once(" is not installed").map(|(name, _)| name.to_owned()))
        .collect();
    names.dedup();
    names
}

/// Returns the arguments of `pip install`, as words of a shell: the project's requirements, and the
/// tools that checks lack.
fn requirement_arguments(place: &ProjectDirectory<'_>, lacking: &[String]) -> Vec<String> {
    let files = REQUIREMENTS.iter().filter(|name| place.has_file(name));
    let mut words: Vec<String> = files.map(|name| format!("-r {name}")).collect();
    let pyproject: Table =
        place.read("pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    let extras = pyproject.get("project").and_then(|project| project.get("optional-dependencies"));
    let is_package = pyproject.contains_key("build-system") || place.has_file("setup.py");
    let has_name = pyproject.get("project").is_some_and(|project| project.get("name").is_some());
    if is_package || has_name {
        let extra =
            TEST_GROUPS.into_iter().find(|name| extras.is_some_and(|extras| extras.get(name).is_some()));
        words.push(
            extra.map_or_else(
                || "-e .".to_owned(),
                |extra| format!("-e {}", quote_word(&format!(".[{extra}]"))),
            ),
        );
    }
    let groups = pyproject.get("dependency-groups").and_then(Value::as_table);
    for group in TEST_GROUPS.iter().filter_map(|name| groups?.get(*name)?.as_array()) {
        // A table includes another group.
        words.extend(group.iter().filter_map(Value::as_str).map(quote_word));
    }
    words.extend(
        lacking
            .iter()
            .filter(|name| !words.iter().any(|word| word.starts_with(*name)))
            .map(|name| quote_word(name))
            .collect::<Vec<_>>(),
    );
    words
}
