//! Test runners that tell the number of tests that they ran, even in their quietest mode.

use journeyman_syntax::shell::{self, SimpleCommand, Statement};

use crate::affected_tests::skip_launcher;
use crate::test_files::file_name;

/// Programs that only run tests.
const TEST_PROGRAMS: [&str; 9] =
    ["pytest", "py.test", "unittest", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest"];
/// Words that start the runner that follows them.
const STARTERS: [&str; 9] = ["npx", "bunx", "pnpm", "yarn", "exec", "--no-install", "php", "ruby", "sh"];
/// Options by which a command chooses what its runner prints.
const FORMAT_OPTIONS: [&str; 7] =
    ["--reporter", "--reporters", "--test-reporter", "-R", "--format", "--formatter", "-f"];
/// Beginnings of the lines by which package managers print the script that they run.
const SCRIPT_MARKS: [&str; 2] = ["> ", "$ "];

/// The way in which a command calls runners that tell numbers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountingCall {
    /// True if a runner is called, whose output is not redirected.
    pub(crate) is_called: bool,
    /// True if a runner prints in its usual form, which has the number of tests.
    pub(crate) has_usual_form: bool,
}

impl CountingCall {
    /// Reads a command, and the scripts that a package manager printed in the `output`.
    pub(crate) fn of_command(command: &str, output: &str) -> Self {
        let scripts = output.lines().filter_map(|line| {
            let calls_script = command.split_whitespace().next().is_some_and(is_package_manager);
            SCRIPT_MARKS.iter().find_map(|mark| line.strip_prefix(mark)).filter(|_| calls_script)
        });
        let calls: Vec<Self> = std::iter::once(command).chain(scripts).map(Self::of_script).collect();
        Self {
            is_called: calls.iter().any(|call| call.is_called),
            has_usual_form: calls.iter().any(|call| call.has_usual_form),
        }
    }

    fn of_script(script: &str) -> Self {
        let mut call = Self::default();
        for statement in shell::parse(script).statements {
            let Statement::Simple(simple) = statement else { continue };
            let words = known_words(&simple);
            let Some(words) = words.filter(|words| simple.redirects.is_empty() && calls_runner(words)) else {
                continue;
            };
            call.is_called = true;
            call.has_usual_form |=
                words.iter().all(|word| !FORMAT_OPTIONS.contains(&word.split('=').next().unwrap_or(word)));
        }
        call
    }
}

/// Returns true if a command does nothing but run tests, with runners that call no linter or type
/// checker by themselves.
pub(crate) fn runs_only_tests(command: &str) -> bool {
    /// Options by which plugins of runners call other tools.
    const TOOL_OPTIONS: [&str; 8] =
        ["mypy", "flake8", "pylint", "ruff", "black", "pycodestyle", "lint", "typecheck"];
    let statements = shell::parse(command).statements;
    let runs_tests = |statement: &Statement| {
        let Statement::Simple(simple) = statement else { return false };
        let words = known_words(simple);
        let calls_tool = |word: &&str| TOOL_OPTIONS.iter().any(|tool| word.contains(tool));
        words.is_some_and(|words| {
            words.first() == Some(&"cd") || calls_runner(&words) && !words.iter().any(calls_tool)
        })
    };
    !statements.is_empty() && statements.iter().all(runs_tests)
}

/// Returns the words of a command, if all are known before it runs.
fn known_words(simple: &SimpleCommand) -> Option<Vec<&str>> {
    simple.words.iter().map(|word| word.known.then_some(word.text.as_str())).collect()
}

fn is_package_manager(word: &str) -> bool {
    matches!(word, "npm" | "pnpm" | "yarn" | "bun")
}

fn calls_runner(words: &[&str]) -> bool {
    let started = skip_launcher(words);
    let at = started.iter().position(|word| !STARTERS.contains(word));
    let Some([program, rest @ ..]) = at.and_then(|at| started.get(at..)) else { return false };
    let has = |word: &str| rest.contains(&word);
    match (file_name(program), rest) {
        (python, ["-m", module, ..]) if python.starts_with("python") => TEST_PROGRAMS.contains(module),
        ("cargo", ["test" | "t" | "nextest", ..]) => !has("--no-run") && !has("list"),
        ("go" | "mix" | "dotnet", ["test", ..]) => true,
        ("node", _) => has("--test"),
        ("mvn" | "mvnw", _) => has("test") || has("verify"),
        (program, _) => TEST_PROGRAMS.contains(&program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_do_more_than_test_are_told() {
        for (command, expected) in [
            ("python3 -m pytest -q", true),
            ("cd api && pytest", true),
            ("go test ./...", true),
            ("pytest --mypy", false),
            ("mypy . && pytest", false),
            ("make test", false),
            ("npm test", false),
            ("tox", false),
            ("pytest; $LINT", false),
            ("", false),
        ] {
            assert_eq!(runs_only_tests(command), expected, "{command}");
        }
    }

    #[test]
    fn calls_of_runners_are_told_from_files_of_their_names() {
        let usual = CountingCall { is_called: true, has_usual_form: true };
        let other = CountingCall { is_called: true, has_usual_form: false };
        let jest = "\n> a@1.0.0 test\n> jest --coverage\n\n";
        for (command, output, expected) in [
            ("python3 -m pytest -q", "", usual),
            ("uv run pytest", "", usual),
            ("npx --no-install jest", "", usual),
            ("php vendor/bin/phpunit", "", usual),
            ("cargo build && cargo test", "", usual),
            ("sh ./mvnw -B -q -o test", "", usual),
            ("npm test", jest, usual),
            ("mocha -R dot", "", other),
            ("node --test --test-reporter=dot", "", other),
            ("make test", jest, CountingCall::default()),
            ("npm run lint", "> eslint jest\n", CountingCall::default()),
            ("ruff check tests/pytest", "", CountingCall::default()),
            ("cargo test --no-run", "", CountingCall::default()),
            ("pytest > log", "", CountingCall::default()),
            ("pytest | tee log", "", CountingCall::default()),
            ("mvn compile", "", CountingCall::default()),
        ] {
            assert_eq!(CountingCall::of_command(command, output), expected, "{command}");
        }
    }
}
