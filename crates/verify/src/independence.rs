//! Decides which checks may run at the same time.
//!
//! A check is known by what it may write. Type checkers and linters read the project and write
//! nothing there but a cache of their own; everything else may write anything in its directory,
//! such as build products and what its tests make. Two checks are independent if at most one of
//! them may write, or if they write in directories of which none lies in the other. The latter
//! holds only for confined checks, each of which has a network and a temporary directory of its
//! own. Checks that the user named keep their order, since one may need what another makes, and so
//! do those that repair, fetch or use the network.

use std::path::Path;

use journeyman_protocol::{CheckKind, RelPath};

use crate::Check;
use crate::affected_tests::{single_command_words, skip_launcher};

/// Programs that read the project, unless a word of [`REPAIRING`] tells them to change it.
const READ_ONLY_PROGRAMS: [&str; 12] = [
    "basedpyright",
    "eslint",
    "flake8",
    "gitleaks",
    "mypy",
    "oxlint",
    "phpcs",
    "phpstan",
    "psalm",
    "pylint",
    "pyright",
    "rubocop",
];
/// Words by which tools that read change what they find.
const REPAIR_WORDS: [&str; 9] =
    ["--fix", "--write", "--apply", "--alter", "--autocorrect", "--autocorrect-all", "-a", "-A", "fix"];

/// The part of the project that a check may write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteFootprint {
    /// The check writes nothing that another check reads.
    Reads,
    /// The check may write anything in this directory; `None` is the root.
    Writes(Option<RelPath>),
    /// The check must run alone.
    Exclusive,
}

impl WriteFootprint {
    pub(crate) fn of_check(check: &Check) -> Self {
        let is_exclusive = check.kind == CheckKind::Custom
            || check.repairs
            || check.fills_caches
            || !check.network.is_empty();
        match () {
            () if check.blocked.is_some() => Self::Reads,
            () if is_exclusive => Self::Exclusive,
            () if single_command_words(&check.command).is_some_and(|words| is_read_only_command(&words)) => {
                Self::Reads
            }
            () => Self::Writes(check.directory.clone()),
        }
    }

    pub(crate) fn may_write(&self) -> bool {
        *self != Self::Reads
    }

    fn is_independent_of(&self, other: &Self, confined: bool) -> bool {
        match (self, other) {
            (Self::Exclusive, _) | (_, Self::Exclusive) => false,
            (Self::Reads, _) | (_, Self::Reads) => true,
            (Self::Writes(Some(one)), Self::Writes(Some(other))) => {
                let (one, other) = (one.as_path(), other.as_path());
                confined && !one.starts_with(other) && !other.starts_with(one)
            }
            // The root has all others in it.
            (Self::Writes(_), Self::Writes(_)) => false,
        }
    }
}

/// Returns the number of checks at the beginning that are independent of each other; at least 1 if
/// there are any.
pub(crate) fn count_leading_independent(footprints: &[WriteFootprint], confined: bool) -> usize {
    let fits = |place: &usize| {
        footprints.get(*place).is_some_and(|footprint| {
            footprints.iter().take(*place).all(|before| footprint.is_independent_of(before, confined))
        })
    };
    1 + (1..footprints.len()).take_while(fits).count()
}

/// Returns true for a command that starts a single program, which only reads the project.
fn is_read_only_command(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = match skip_launcher(&words) {
        // As `npx --no-install eslint .` and `php vendor/bin/phpstan analyse`.
        ["npx", "--no-install", started @ ..]
        | ["pnpm", "exec", started @ ..]
        | ["php" | "node", started @ ..]
            if started.first().is_some_and(|word| !word.starts_with('-')) =>
        {
            started
        }
        words => words,
    };
    let [program, rest @ ..] = words else { return false };
    let Some(program) = Path::new(program).file_name().and_then(|name| name.to_str()) else { return false };
    let (program, rest) = match rest {
        ["-m", module, rest @ ..] if program.starts_with("python") => (*module, rest),
        rest => (program, rest),
    };
    let has = |word: &str| rest.contains(&word);
    if program == "php-cs-fixer" {
        return has("--dry-run");
    }
    if rest.iter().any(|word| REPAIR_WORDS.contains(word)) {
        return false;
    }
    match program {
        "py_compile" => true,
        "black" => has("--check"),
        "tsc" => has("--noEmit"),
        // Without the option a project's configuration may have it repair.
        "ruff" => {
            rest.first() == Some(&"check") && has("--no-fix")
                || rest.first() == Some(&"format") && has("--check")
        }
        "biome" => matches!(rest.first(), Some(&("check" | "lint" | "ci"))),
        "go" => rest.first() == Some(&"vet"),
        "mix" => rest.first() == Some(&"format") && has("--check-formatted"),
        "ruby" => rest.first() == Some(&"-wc"),
        "php" => rest.first() == Some(&"-l"),
        "semgrep" => rest.first() == Some(&"scan"),
        program => READ_ONLY_PROGRAMS.contains(&program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(kind: CheckKind, directory: Option<&str>, command: &str) -> WriteFootprint {
        let directory = directory.map(|path| RelPath::parse(path).unwrap());
        WriteFootprint::of_check(&Check::new(kind, "any", command, "").with_directory(directory.as_ref()))
    }

    #[test]
    fn tools_that_only_read_are_known_by_their_words() {
        for command in [
            "mypy .",
            ".venv/bin/mypy",
            "python3 -m py_compile a.py b.py",
            "uv run ruff check --no-fix --output-format=concise .",
            "ruff format --check .",
            "black --check --quiet .",
            "npx --no-install tsc --noEmit",
            "../node_modules/.bin/tsc --noEmit",
            "npx --no-install biome check .",
            "bundle exec rubocop --format emacs",
            "php vendor/bin/phpstan analyse --no-progress",
            "vendor/bin/php-cs-fixer fix --dry-run --diff",
            "go vet ./...",
            "php -l src/a.php",
        ] {
            assert_eq!(footprint(CheckKind::Lint, None, command), WriteFootprint::Reads, "{command}");
        }
        for command in [
            "npm run lint",
            "tsc",
            "ruff check --fix .",
            "ruff check .",
            "golangci-lint run",
            "ruff format .",
            "black .",
            "rubocop -a",
            "vendor/bin/php-cs-fixer fix",
            "cargo clippy --all-targets",
            "mypy . && touch x",
            "mypy . > report",
            "php artisan test",
            "node test.js",
            "make lint",
        ] {
            assert_eq!(footprint(CheckKind::Lint, None, command), WriteFootprint::Writes(None), "{command}");
        }
        assert_eq!(footprint(CheckKind::Custom, None, "mypy ."), WriteFootprint::Exclusive);
    }

    #[test]
    fn a_wave_ends_before_the_first_check_that_disturbs_one_in_it() {
        let read = || footprint(CheckKind::Types, None, "mypy .");
        let test = |directory| footprint(CheckKind::Test, directory, "make test");
        let named = || footprint(CheckKind::Custom, None, "true");
        let cases = [
            (vec![read(), read(), test(None)], 3),
            (vec![read(), test(None), read(), test(None)], 3),
            (vec![test(Some("a")), test(Some("b")), test(Some("a/c"))], 2),
            (vec![test(None), test(Some("a"))], 1),
            (vec![test(Some("a")), test(Some("ab"))], 2),
            (vec![named(), named()], 1),
            (vec![named(), read()], 1),
        ];
        for (footprints, expected) in cases {
            assert_eq!(count_leading_independent(&footprints, true), expected, "{footprints:?}");
        }
        let unconfined = [test(Some("a")), test(Some("b"))];
        assert_eq!(count_leading_independent(&unconfined, false), 1, "they share ports and /tmp");
    }
}
