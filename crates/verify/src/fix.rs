//! The repair of changed files by linters.

use std::path::Path;

use journeyman_protocol::RelPath;

use crate::Check;
use crate::affected_tests::{single_command_words, skip_launcher};
use crate::check_discovery::quote_word;

const PYTHON_EXTENSIONS: &[&str] = &["py", "pyi"];
const JAVASCRIPT_EXTENSIONS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"];
/// Tools whose repair takes files in place of a directory, with the endings of these files.
const PER_FILE_FIXERS: [(&str, &[&str]); 6] = [
    ("ruff", PYTHON_EXTENSIONS),
    ("black", PYTHON_EXTENSIONS),
    ("eslint", JAVASCRIPT_EXTENSIONS),
    ("oxlint", JAVASCRIPT_EXTENSIONS),
    ("biome", JAVASCRIPT_EXTENSIONS),
    ("rubocop", &["rb"]),
];

/// Returns the command that repairs what a check finds in these files, as a check of its own; of
/// the whole project where its tool doesn't take files. `None` if its tool repairs nothing, or none
/// of the files is one for it.
#[must_use]
pub fn fix_for_files(check: &Check, files: &[RelPath]) -> Option<Check> {
    let whole = check.to_fix_check()?;
    let Some(endings) = single_command_words(&whole.command).and_then(|words| fixable_extensions(&words))
    else {
        return Some(whole);
    };
    let inside = files.iter().filter_map(|path| {
        let path = path.as_str()?;
        match &check.directory {
            None => Some(path),
            Some(directory) => path.strip_prefix(directory.as_str()?)?.strip_prefix('/'),
        }
    });
    let own: Vec<String> = inside
        .filter(|path| path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending)))
        .map(quote_word)
        .collect();
    let command = whole.command.trim_end().trim_end_matches(" .");
    (!own.is_empty()).then(|| Check { command: format!("{command} {}", own.join(" ")), ..whole.clone() })
}

fn fixable_extensions(words: &[String]) -> Option<&'static [&'static str]> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let started = match skip_launcher(&words) {
        ["npx", "--no-install", started @ ..] | ["pnpm", "exec", started @ ..] => started,
        [python, "-m", started @ ..] if python.contains("python") => started,
        started => started,
    };
    let program = Path::new(started.first()?).file_name()?.to_str()?;
    PER_FILE_FIXERS.iter().find(|(name, _)| *name == program).map(|(_, endings)| *endings)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::CheckKind;

    use super::*;

    #[test]
    fn only_changed_files_are_repaired_where_the_tool_takes_files() {
        let files = ["web/a.ts", "web/x y.js", "b.py", "README.md"];
        let files: Vec<RelPath> = files.iter().map(|path| RelPath::parse(*path).unwrap()).collect();
        let cases = [
            (None, "ruff check --fix .", Some("ruff check --fix b.py")),
            (None, ".venv/bin/ruff format .", Some(".venv/bin/ruff format b.py")),
            (None, "python3 -m black --quiet .", Some("python3 -m black --quiet b.py")),
            (
                Some("web"),
                "npx --no-install eslint --fix .",
                Some("npx --no-install eslint --fix a.ts 'x y.js'"),
            ),
            (Some("web"), "ruff check --fix .", None),
            (None, "bundle exec rubocop -a", None),
            (None, "npm run lint:fix", Some("npm run lint:fix")),
            (
                None,
                "cargo clippy --fix --allow-dirty --allow-staged",
                Some("cargo clippy --fix --allow-dirty --allow-staged"),
            ),
        ];
        for (directory, fix, expected) in cases {
            let directory = directory.map(|path| RelPath::parse(path).unwrap());
            let check = Check::new(CheckKind::Lint, "any", "lint", "")
                .with_directory(directory.as_ref())
                .with_fix(fix);
            let repair = fix_for_files(&check, &files);
            assert_eq!(repair.as_ref().map(|repair| repair.command.as_str()), expected, "{fix}");
            assert!(repair.is_none_or(|repair| repair.repairs));
        }
    }
}
