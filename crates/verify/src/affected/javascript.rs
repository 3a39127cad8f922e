//! JavaScript test runners, called directly or by a script of `package.json`.

use serde_json::Value;

use super::command::{CheckDirectory, append, words_of};
use crate::test_files::file_name;

/// Parts of the names of JavaScript tests, by which Jest, Vitest, Mocha and `node --test` find
/// them.
const MARKS: [&str; 4] = [".test.", ".spec.", "-test.", "_test."];
/// Directories of JavaScript tests.
const DIRECTORIES: [&str; 3] = ["__tests__", "test", "tests"];
const ENDS: [&str; 8] = [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"];
/// Words that may stand before a runner in a script.
const BEFORE: [&str; 4] = ["npx", "cross-env", "c8", "env"];

/// A runner that accepts paths of tests.
pub(super) struct ScriptRunner {
    /// The words between the command and the paths.
    separator: &'static str,
}

impl ScriptRunner {
    /// Returns the runner if the command runs all of its tests.
    pub(super) fn of(program: &str, rest: &[&str], place: &CheckDirectory<'_>) -> Option<Self> {
        let script = match (program, rest) {
            ("npm", ["test" | "t"]) | ("pnpm" | "yarn", ["test"]) => "test",
            ("npm" | "pnpm" | "yarn" | "bun", ["run", script]) => script,
            ("npx", ["--no-install", runner, rest @ ..] | [runner, rest @ ..]) => {
                return takes_paths(runner, rest, place).then_some(Self { separator: "" });
            }
            _ => return takes_paths(program, rest, place).then_some(Self { separator: "" }),
        };
        let manifest: Value = serde_json::from_str(&place.read("package.json")?).ok()?;
        let words = words_of(manifest.get("scripts")?.get(script)?.as_str()?)?;
        let is_before = |word: &&str| BEFORE.contains(word) || word.contains('=');
        let mut words = words.iter().map(String::as_str).skip_while(is_before);
        let runner = words.next()?;
        let rest: Vec<&str> = words.collect();
        // npm takes options for itself unless they follow `--`.
        let separator = if program == "npm" { " --" } else { "" };
        takes_paths(file_name(runner), &rest, place).then_some(Self { separator })
    }

    /// Returns the command with the tests among `files`.
    pub(super) fn command_for(&self, command: &str, files: &[&str]) -> Option<String> {
        append(&format!("{command}{}", self.separator), files.iter().copied().filter(|path| is_test(path)))
    }
}

/// Returns true if a runner is called without the name of a test, and accepts the paths of tests.
fn takes_paths(program: &str, rest: &[&str], place: &CheckDirectory<'_>) -> bool {
    match (program, rest) {
        ("jest" | "ava", rest) | ("vitest", ["run", rest @ ..] | rest) | ("bun", ["test", rest @ ..]) => {
            names_no_test(rest)
        }
        // Mocha adds tests on its command line to those that its configuration names.
        ("mocha", rest) => {
            names_no_test(rest)
                && ["js", "cjs", "mjs", "json", "yml", "yaml"]
                    .iter()
                    .all(|end| place.read(&format!(".mocharc.{end}")).is_none())
        }
        ("node", rest) => rest.contains(&"--test") && names_no_test(rest),
        _ => false,
    }
}

/// Returns true if all words are options, including `--config` with its file.
fn names_no_test(words: &[&str]) -> bool {
    let mut is_value = false;
    words.iter().all(|word| {
        let is_expected = is_value || word.starts_with('-');
        is_value = matches!(*word, "--config" | "-c" | "--import" | "--require" | "-r" | "--loader");
        is_expected && !word.starts_with("--watch")
    })
}

fn is_test(path: &str) -> bool {
    let name = file_name(path);
    let is_script = ENDS.iter().any(|end| name.ends_with(end));
    let is_marked = MARKS.iter().any(|mark| name.contains(mark))
        || name.starts_with("test.")
        || name.starts_with("test-");
    let mut directories = path.split('/').rev().skip(1);
    is_script && (is_marked || directories.any(|name| DIRECTORIES.contains(&name)))
}
