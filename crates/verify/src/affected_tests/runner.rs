//! The test runners that accept the names of tests.

use std::path::Path;

use super::cargo;
use super::command::{CheckDirectory, MAX_NAMED_TESTS, append_words, single_command_words, skip_launcher};
use super::go;
use super::javascript::JavaScriptTestRunner;
use crate::check_discovery::quote_word;
use crate::test_files::file_name;

/// A test runner, by how a command calls it.
pub(super) enum NamedTestRunner {
    /// pytest without a path.
    Pytest,
    /// `unittest discover`, with the words that follow the command without a pattern.
    Unittest,
    /// `cargo test` of a whole package or workspace.
    Cargo,
    /// `go test` with a pattern of packages.
    Go,
    /// A JavaScript runner, possibly behind a script.
    JavaScript(JavaScriptTestRunner),
    /// RSpec or ExUnit: files are appended.
    Files(&'static [&'static str]),
    /// PHPUnit: a filter of class names.
    PhpUnit,
    /// Maven: class names.
    Maven,
    /// Gradle: class names.
    Gradle,
    /// .NET: class names.
    DotNet,
}

/// Endings of the names of tests that RSpec and ExUnit run.
const RSPEC_ENDINGS: &[&str] = &["_spec.rb"];
const EX_UNIT_ENDINGS: &[&str] = &["_test.exs"];
impl NamedTestRunner {
    /// Returns the runner if the command runs all of its tests.
    pub(super) fn detect(words: &[String], place: &CheckDirectory<'_>) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (program, rest) = skip_launcher(&words).split_first()?;
        let program = Path::new(program).file_name()?.to_str()?;
        match (program, rest) {
            ("pytest" | "py.test", rest) => has_only_options(rest).then_some(Self::Pytest),
            (python, ["-m", "pytest", rest @ ..]) if is_python(python) => {
                has_only_options(rest).then_some(Self::Pytest)
            }
            (python, ["-m", "unittest", "discover", rest @ ..]) if is_python(python) => {
                (!rest.iter().any(|word| word.starts_with("-p") || *word == "--pattern"))
                    .then_some(Self::Unittest)
            }
            ("cargo", ["test" | "t", rest @ ..]) => {
                let whole = [
                    "--workspace",
                    "--all",
                    "--all-targets",
                    "--all-features",
                    "--offline",
                    "--locked",
                    "-q",
                    "--quiet",
                ];
                rest.iter().all(|word| whole.contains(word)).then_some(Self::Cargo)
            }
            ("go", ["test", rest @ ..]) => {
                (rest.iter().filter(|word| !word.starts_with('-')).copied().eq(["./..."])).then_some(Self::Go)
            }
            ("rspec", rest) => has_only_options(rest).then_some(Self::Files(RSPEC_ENDINGS)),
            ("mix", ["test", rest @ ..]) => has_only_options(rest).then_some(Self::Files(EX_UNIT_ENDINGS)),
            ("phpunit", rest) => has_only_options(rest).then_some(Self::PhpUnit),
            ("php", [script, rest @ ..]) if script.ends_with("/phpunit") => {
                has_only_options(rest).then_some(Self::PhpUnit)
            }
            ("mvn" | "mvnw" | "gradle" | "gradlew", rest) => Self::detect_jvm(program, rest),
            ("sh", [script, rest @ ..]) => Self::detect_jvm(Path::new(script).file_name()?.to_str()?, rest),
            ("dotnet", ["test", rest @ ..]) => {
                (!rest.iter().any(|word| word.starts_with("--filter"))).then_some(Self::DotNet)
            }
            _ => JavaScriptTestRunner::detect(program, rest, place).map(Self::JavaScript),
        }
    }

    fn detect_jvm(program: &str, rest: &[&str]) -> Option<Self> {
        if rest.last() != Some(&"test") {
            return None;
        }
        match program {
            "mvn" | "mvnw" if !rest.iter().any(|word| word.starts_with("-Dtest")) => Some(Self::Maven),
            "gradle" | "gradlew" => Some(Self::Gradle),
            _ => None,
        }
    }

    /// Returns the command narrowed to `files`, which are relative to the check's directory.
    pub(super) fn narrow_command(
        self,
        command: &str,
        files: &[&str],
        place: &CheckDirectory<'_>,
    ) -> Option<String> {
        let named =
            |is_test: fn(&str) -> bool| files.iter().copied().filter(move |path| is_test(file_name(path)));
        match self {
            Self::Pytest => append_words(command, named(is_pytest_file)),
            Self::Unittest => {
                let start = unittest_start(command);
                let found = named(|name| name.ends_with(".py") && name.contains("test"))
                    .filter(|path| is_discovered(path, &start, place));
                let patterns: Vec<&str> = found.map(file_name).collect();
                unittest_for_each_name(command, &patterns)
            }
            Self::Cargo => cargo::narrow_command(command, files, place),
            Self::Go => {
                let packages = go::packages_of(files, place)?;
                append_words(&command.replace(" ./...", ""), packages.iter().map(String::as_str))
            }
            Self::JavaScript(runner) => runner.narrow_command(command, files),
            Self::Files(ends) => append_words(
                command,
                files.iter().copied().filter(|path| ends.iter().any(|end| path.ends_with(end))),
            ),
            Self::PhpUnit => test_class_names(files, ".php").map(|names| {
                let filter = format!("/\\b({})::/", names.join("|"));
                format!("{command} --filter {}", quote_word(&filter))
            }),
            Self::Maven => test_class_names(files, ".java").map(|names| {
                format!(
                    "{command} -Dtest={} -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false",
                    names.join(",")
                )
            }),
            Self::Gradle => {
                let mut names = test_class_names(files, ".java").unwrap_or_default();
                names.extend(test_class_names(files, ".kt").unwrap_or_default());
                let filters: Vec<String> =
                    names.iter().map(|name| format!("--tests {}", quote_word(&format!("*{name}")))).collect();
                (!filters.is_empty()).then(|| format!("{command} {}", filters.join(" ")))
            }
            Self::DotNet => test_class_names(files, ".cs").map(|names| {
                let parts: Vec<String> =
                    names.iter().map(|name| format!("FullyQualifiedName~{name}")).collect();
                format!("{command} --filter {}", quote_word(&parts.join("|")))
            }),
        }
    }
}

/// Returns true if no word names a file: every word is an option without a value of its own.
fn has_only_options(words: &[&str]) -> bool {
    words.iter().all(|word| word.starts_with('-'))
}

fn is_python(program: &str) -> bool {
    program
        .strip_prefix("python")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns true for the names that pytest collects by default.
fn is_pytest_file(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// Returns the directory where the discovery of a command starts.
fn unittest_start(command: &str) -> String {
    let words = single_command_words(command).unwrap_or_default();
    let mut after = words.iter().skip_while(|word| *word != "-s" && *word != "--start-directory").skip(1);
    after.next().map(|start| start.trim_end_matches('/').to_owned()).unwrap_or_default()
}

/// Returns true for a file that discovery comes to: only packages lie between it and the start.
fn is_discovered(path: &str, start: &str, place: &CheckDirectory<'_>) -> bool {
    let beneath = match start {
        "" | "." => Some(path),
        start => path.strip_prefix(start).and_then(|rest| rest.strip_prefix('/')),
    };
    let Some(beneath) = beneath else { return false };
    let above = path.len() - beneath.len();
    let directories = beneath.match_indices('/').filter_map(|(at, _)| path.get(..above + at));
    directories.into_iter().all(|directory| place.read_file(&format!("{directory}/__init__.py")).is_some())
}

/// Runs `unittest discover` for each file name, because it accepts one pattern only. A failure
/// doesn't stop the next one, so that a test that isn't reported as failed did pass.
fn unittest_for_each_name(command: &str, names: &[&str]) -> Option<String> {
    /// Maximum number of patterns, because each start of Python takes as long as many tests.
    const MAX_PATTERNS: usize = 8;
    let mut names: Vec<&str> = names.to_vec();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() || names.len() > MAX_PATTERNS {
        return None;
    }
    let one = |name: &str| format!("{command} -p {}", quote_word(name));
    if let [name] = names[..] {
        return Some(one(name));
    }
    let all: String = names.iter().map(|name| format!("{} || failed=1; ", one(name))).collect();
    Some(format!("failed=0; {all}exit $failed"))
}

/// Returns the names of the test classes that the files define, by the languages' convention that a
/// file has the name of its class.
fn test_class_names(files: &[&str], end: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|path| file_name(path).strip_suffix(end))
        .filter(|name| is_test_class(name) && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty() && names.len() <= MAX_NAMED_TESTS).then_some(names)
}

/// Returns true for the names of classes that Surefire, Gradle and PHPUnit run by default.
fn is_test_class(name: &str) -> bool {
    name.starts_with("Test") || ["Test", "Tests", "TestCase", "Spec"].iter().any(|end| name.ends_with(end))
}
