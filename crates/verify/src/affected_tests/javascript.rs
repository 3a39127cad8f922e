//! JavaScript test runners, called directly or by a script of `package.json`.

use serde_json::Value;

use super::command::{CheckDirectory, append_words, single_command_words};
use crate::test_files::file_name;

/// Parts of the names of JavaScript tests, by which Jest, Vitest, Mocha and `node --test` find
/// them.
const TEST_NAME_MARKS: [&str; 4] = [".test.", ".spec.", "-test.", "_test."];
/// Directories of JavaScript tests.
const TEST_DIRECTORIES: [&str; 3] = ["__tests__", "test", "tests"];
const SCRIPT_ENDINGS: [&str; 8] = [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"];
/// Words that may stand before a runner in a script.
const RUNNER_PREFIXES: [&str; 4] = ["npx", "cross-env", "c8", "env"];

/// A runner that accepts paths of tests.
pub(super) struct JavaScriptTestRunner {
    /// The words between the command and the paths.
    separator: &'static str,
}

impl JavaScriptTestRunner {
    /// Returns the runner if the command runs all of its tests.
    pub(super) fn detect(program: &str, rest: &[&str], place: &CheckDirectory<'_>) -> Option<Self> {
        let script = match (program, rest) {
            ("npm", ["test" | "t"]) | ("pnpm" | "yarn", ["test"]) => "test",
            ("npm" | "pnpm" | "yarn" | "bun", ["run", script]) => script,
            ("npx", ["--no-install", runner, rest @ ..] | [runner, rest @ ..]) => {
                return accepts_test_paths(runner, rest, place).then_some(Self { separator: "" });
            }
            _ => return accepts_test_paths(program, rest, place).then_some(Self { separator: "" }),
        };
        let manifest: Value = serde_json::from_str(&place.read_file("package.json")?).ok()?;
        let words = single_command_words(manifest.get("scripts")?.get(script)?.as_str()?)?;
        let is_before = |word: &&str| RUNNER_PREFIXES.contains(word) || word.contains('=');
        let mut words = words.iter().map(String::as_str).skip_while(is_before);
        let runner = words.next()?;
        let rest: Vec<&str> = words.collect();
        // npm takes options for itself unless they follow `--`.
        let separator = if program == "npm" { " --" } else { "" };
        accepts_test_paths(file_name(runner), &rest, place).then_some(Self { separator })
    }

    /// Returns the command with the tests among `files`.
    pub(super) fn narrow_command(&self, command: &str, files: &[&str]) -> Option<String> {
        append_words(
            &format!("{command}{}", self.separator),
            files.iter().copied().filter(|path| is_test_file(path)),
        )
    }
}

/// Returns true if a runner is called without the name of a test, and accepts the paths of tests.
fn accepts_test_paths(program: &str, rest: &[&str], place: &CheckDirectory<'_>) -> bool {
    match (program, rest) {
        ("jest" | "ava", rest) | ("vitest", ["run", rest @ ..] | rest) | ("bun", ["test", rest @ ..]) => {
            has_only_options(rest)
        }
        // Mocha adds tests on its command line to those that its configuration names.
        ("mocha", rest) => {
            has_only_options(rest)
                && ["js", "cjs", "mjs", "json", "yml", "yaml"]
                    .iter()
                    .all(|end| place.read_file(&format!(".mocharc.{end}")).is_none())
        }
        ("node", rest) => rest.contains(&"--test") && has_only_options(rest),
        _ => false,
    }
}

/// Returns true if all words are options, including `--config` with its file.
fn has_only_options(words: &[&str]) -> bool {
    let mut is_value = false;
    words.iter().all(|word| {
        let is_expected = is_value || word.starts_with('-');
        is_value = matches!(*word, "--config" | "-c" | "--import" | "--require" | "-r" | "--loader");
        is_expected && !word.starts_with("--watch")
    })
}

fn is_test_file(path: &str) -> bool {
    let name = file_name(path);
    let is_script = SCRIPT_ENDINGS.iter().any(|end| name.ends_with(end));
    let is_marked = TEST_NAME_MARKS.iter().any(|mark| name.contains(mark))
        || name.starts_with("test.")
        || name.starts_with("test-");
    let mut directories = path.split('/').rev().skip(1);
    is_script && (is_marked || directories.any(|name| TEST_DIRECTORIES.contains(&name)))
}
