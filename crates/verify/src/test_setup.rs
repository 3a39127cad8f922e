//! Set-up of tests: files that run before tests that don't name them, and the test settings of
//! manifests.

use journeyman_syntax::language::Language;
use serde_json::{Map, Value};

use crate::test_files::{file_name, is_runner_configuration, is_test_file};

/// Modules that Python imports by itself at start.
const STARTUP_MODULES: [&str; 2] = ["sitecustomize.py", "usercustomize.py"];
/// Names of runners: a module of the project with such a name runs instead of the runner.
const RUNNER_MODULES: [&str; 7] = ["pytest", "_pytest", "pluggy", "unittest", "nose", "nose2", "coverage"];
/// Tables of `package.json` that configure test runners.
const RUNNER_TABLES: [&str; 8] = ["jest", "vitest", "mocha", "ava", "tap", "nyc", "c8", "jasmine"];
/// Beginnings of names of scripts that run tests.
const TEST_SCRIPTS: [&str; 7] = ["test", "pretest", "posttest", "unit", "spec", "check", "ci"];
/// Sections of Python's manifests that configure test runners.
const RUNNER_SECTIONS: [&str; 5] = ["tool.pytest", "tool:pytest", "pytest", "tool.coverage", "tool.nose2"];

/// Extensions of data that programs read.
const DATA_EXTENSIONS: [&str; 9] = ["json", "jsonl", "csv", "tsv", "txt", "xml", "yml", "yaml", "toml"];

/// Returns true for data that programs may read.
#[must_use]
pub fn is_data_file(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| DATA_EXTENSIONS.contains(&extension))
}

/// Returns true for a source of a program, in a language that is known.
#[must_use]
pub fn is_program_source(path: &str) -> bool {
    let is_document = path.rsplit_once('.').is_some_and(|(_, end)| ["md", "html", "css"].contains(&end));
    Language::from_path(path).is_some() && !is_data_file(path) && !is_document
}

/// Returns true for a file that runs, or is read, before tests that don't name it: the
/// configuration of a runner, the set-up of a directory of tests, or a module that runs instead of
/// the runner.
#[must_use]
pub fn is_test_setup(path: &str) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let first = path.split('/').next().unwrap_or(path);
    let module = first.strip_suffix(".py").unwrap_or(first);
    let is_runner = RUNNER_MODULES.contains(&module) && (first != module || name.starts_with("__"));
    is_runner_configuration(path)
        || STARTUP_MODULES.contains(&name)
        || is_runner
        || name == "__init__.py" && is_test_file(&format!("{directories}/x.py"))
}

/// Returns true for a test program that its runner finds by its name, so that the other tests run
/// without it.
#[must_use]
pub fn is_discovered_test_file(path: &str) -> bool {
    let languages = [
        Language::Python,
        Language::JavaScript,
        Language::TypeScript,
        Language::Tsx,
        Language::Go,
        Language::Ruby,
        Language::Php,
    ];
    is_test_file(path) && Language::from_path(path).is_some_and(|language| languages.contains(&language))
}

/// Returns true if a test program may change the results of others, because it assigns to names
/// that it doesn't define. This is a quick check of the text, for running the others without it.
#[must_use]
pub fn may_change_other_tests(text: &str) -> bool {
    text.lines().any(|line| {
        let is_outside = !line.starts_with(char::is_whitespace);
        let target = line.split_once('=').filter(|(_, value)| !value.starts_with('=')).map(|(name, _)| name);
        let assigns = target.is_some_and(|name| {
            let name = name.trim_end();
            name.contains(['.', '[']) && name.chars().all(|c| c.is_alphanumeric() || "._[]\"'".contains(c))
        });
        let signs = [
            "setattr(",
            "sys.modules",
            "require.cache",
            "Module._load",
            "func init()",
            "func TestMain(",
            ".prototype.",
            "define_method",
            "class_eval",
            "instance_eval",
            "alias_method",
            ".prepend",
            "Object.defineProperty",
            "Object.assign(",
            ").start()",
            "runkit",
            "autouse=True",
        ];
        is_outside && assigns || signs.iter().any(|sign| line.contains(sign))
    })
}

/// Returns a changed manifest with its test settings from before; `None` if they are the same, or
/// the manifest is of no known kind.
#[must_use]
pub fn with_original_test_settings(path: &str, old: &str, new: &str) -> Option<String> {
    match file_name(path) {
        "package.json" => with_original_scripts(old, new),
        "pyproject.toml" | "setup.cfg" => with_original_sections(old, new),
        _ => None,
    }
}

fn with_original_scripts(old: &str, new: &str) -> Option<String> {
    let read = |text: &str| match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(manifest)) => Some(manifest),
        _ => None,
    };
    let (old, mut new) = (read(old)?, read(new)?);
    let mut changed = false;
    let scripts = |manifest: &Map<String, Value>| match manifest.get("scripts") {
        Some(Value::Object(scripts)) => scripts.clone(),
        _ => Map::new(),
    };
    let (before, mut after) = (scripts(&old), scripts(&new));
    let runs_tests = |name: &str| TEST_SCRIPTS.iter().any(|beginning| name.starts_with(beginning));
    for (name, script) in before.iter().filter(|(name, _)| runs_tests(name)) {
        if after.get(name) != Some(script) {
            after.insert(name.clone(), script.clone());
            changed = true;
        }
    }
    // A script that runs before or after is a new part of the command.
    for name in ["pretest", "posttest"] {
        changed |= !before.contains_key(name) && after.remove(name).is_some();
    }
    if changed {
        new.insert("scripts".to_owned(), Value::Object(after));
    }
    for table in RUNNER_TABLES {
        if old.get(table) != new.get(table) {
            changed = true;
            match old.get(table) {
                Some(value) => new.insert(table.to_owned(), value.clone()),
                None => new.remove(table),
            };
        }
    }
    changed.then(|| Value::Object(new).to_string())
}

/// Replaces the sections of test runners in a manifest by those from before.
fn with_original_sections(old: &str, new: &str) -> Option<String> {
    let parts = |text: &str| -> (String, String) {
        let (mut rest, mut runners, mut is_runner) = (String::new(), String::new(), false);
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(section) =
                trimmed.strip_prefix('[').filter(|_| !line.starts_with(char::is_whitespace))
            {
                let section = section.trim_start_matches('[');
                is_runner = RUNNER_SECTIONS.iter().any(|name| {
                    section.strip_prefix(name).is_some_and(|rest| rest.starts_with([']', '.', ':']))
                });
            }
            let part = if is_runner { &mut runners } else { &mut rest };
            part.push_str(line);
            part.push('\n');
        }
        (rest, runners)
    };
    let (_, before) = parts(old);
    let (rest, after) = parts(new);
    (before.trim() != after.trim()).then(|| rest + "\n" + &before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_before_the_tests_are_told_from_others() {
        for path in [
            "conftest.py",
            "pytest.ini",
            "jest.config.js",
            "sitecustomize.py",
            "pytest.py",
            "pytest/__main__.py",
            "unittest/__init__.py",
            "tests/__init__.py",
        ] {
            assert!(is_test_setup(path), "{path}");
        }
        for path in ["calc.py", "pkg/__init__.py", "tests/test_a.py", "unittest/test_a.py", "pkg/pytest.py"] {
            assert!(!is_test_setup(path), "{path}");
        }
    }

    #[test]
    fn tests_that_may_change_others_are_told_from_those_that_only_test() {
        for text in [
            "import calc\n\ncalc.add = lambda a, b: a + b\n",
            "const c = require('./c');\nc.add = (a, b) => a + b;\n",
            "func init() {\n\tAdd = nil\n}\n",
            "def pytest_configure():\n    setattr(calc, 'add', None)\n",
        ] {
            assert!(may_change_other_tests(text), "{text}");
        }
        for text in [
            "from calc import add\n\n\ndef test_add():\n    box = Box()\n    box.size = 3\n    assert add(1, 2) == 3\n",
            "test('add', () => {\n  expect(add(1, 2)).toBe(3);\n});\n",
            "x = 1\nassert a.b == 2\n",
        ] {
            assert!(!may_change_other_tests(text), "{text}");
        }
    }

    #[test]
    fn a_manifest_keeps_all_but_what_it_says_of_tests() {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let old = r#"{"scripts": {"test": "node --test", "build": "a"}}"#;
        let new = r#"{"scripts": {"test": "node --test-name-pattern=x", "build": "b"}, "jest": {"bail": 1}}"#;
        let expected = r#"{"scripts": {"test": "node --test", "build": "b"}}"#;
        let restored = with_original_test_settings("web/package.json", old, new).unwrap();
        assert_eq!(json(&restored), json(expected));
        let other = r#"{"version": "2", "scripts": {"test": "node --test", "build": "b"}}"#;
        assert_eq!(with_original_test_settings("package.json", old, other), None);

        let old = "[project]\nname = 'x'\n\n[tool.pytest.ini_options]\naddopts = '-q'\n";
        let new =
            "[project]\nname = 'y'\n\n[tool.pytest.ini_options]\naddopts = '-q -k a'\n\n[tool.ruff]\na = 1\n";
        let expected =
            "[project]\nname = 'y'\n\n[tool.ruff]\na = 1\n\n[tool.pytest.ini_options]\naddopts = '-q'\n";
        assert_eq!(with_original_test_settings("pyproject.toml", old, new).as_deref(), Some(expected));
        let other = old.replace("'x'", "'z'");
        assert_eq!(with_original_test_settings("pyproject.toml", old, &other), None);
        assert_eq!(with_original_test_settings("Cargo.toml", old, new), None);
    }
}
