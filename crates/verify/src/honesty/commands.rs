//! Commands that run checks: in scripts, Makefiles, pipelines and manifests.

use std::collections::{BTreeMap, BTreeSet};

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};

use super::loosened_settings::MAX_RETRIES;
use super::report::HonestyReport;
use crate::test_files::{file_name, is_runner_configuration, is_test_file};

/// Maximum number of added or removed lines that are compared with each other.
const MAX_CHANGED_LINES: usize = 300;
/// Words of commands that check a project.
const CHECK_WORDS: [&str; 67] = [
    "set_tests_properties",
    "add_test",
    "enable_testing",
    "gtest_discover_tests",
    "catch_discover_tests",
    "test",
    "tests",
    "check",
    "checks",
    "lint",
    "verify",
    "pytest",
    "unittest",
    "tox",
    "nox",
    "mypy",
    "pyright",
    "ruff",
    "flake8",
    "pylint",
    "black",
    "isort",
    "bandit",
    "coverage",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "karma",
    "playwright",
    "cypress",
    "eslint",
    "tsc",
    "biome",
    "prettier",
    "stylelint",
    "clippy",
    "nextest",
    "cargo",
    "rustfmt",
    "fmt",
    "go",
    "golangci-lint",
    "staticcheck",
    "vet",
    "ctest",
    "mvn",
    "gradle",
    "gradlew",
    "rspec",
    "rubocop",
    "rake",
    "minitest",
    "phpunit",
    "phpstan",
    "psalm",
    "pest",
    "dotnet",
    "bats",
    "shellcheck",
    "make",
    "build",
    "typecheck",
    "audit",
    "mvnw",
    "spec",
];
/// Programs that only clean up or print, so that their failure may be ignored.
const CLEANUP_PROGRAMS: [&str; 19] = [
    "rm", "rmdir", "mkdir", "kill", "pkill", "killall", "umount", "grep", "which", "command", "type",
    "unset", "cp", "mv", "ln", "diff", "read", "wait", "test",
];
/// Endings of a command that hide its failure.
const FAILURE_SWALLOWING_ENDINGS: [&str; 8] =
    ["|| true", "|| :", "|| exit 0", "; true", "; exit 0", "|| echo", "||true", "; :"];
/// Flags that make runners and linters check less.
const LOOSENING_FLAGS: [&str; 68] = [
    "will_fail",
    "disabled",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "--exclude",
    "--exclude-dir",
    "--skip",
    "-skip",
    "--passwithnotests",
    "--pass-with-no-tests",
    "--testpathignorepatterns",
    "--no-verify",
    "-dskiptests",
    "-dmaven.test.skip",
    "-dmaven.test.failure.ignore",
    "--exit-zero",
    "--collect-only",
    "--co",
    "--no-run",
    "--list",
    "--list-tests",
    "--dry-run",
    "--lib",
    "--bins",
    "--no-fail",
    "--fail-never",
    "-fn",
    "--continue",
    "-short",
    "--short",
    "--cap-lints",
    "--disable-warnings",
    "--no-strict",
    "--skiplibcheck",
    "--update-snapshot",
    "--updatesnapshot",
    "--snapshot-update",
    "-u",
    "--update",
    "-update",
    "--inline-snapshot=fix",
    "--force-regen",
    "--accept",
    "--ci=false",
    "-run",
    "--grep",
    "--invert",
    "--testnamepattern",
    "-t",
    "--quiet-errors",
    "--allow-no-tests",
    "--no-error-on-unmatched-pattern",
    "--disable-error-code",
    "--ignore-missing-imports",
    "--exclude-group",
    "--exclude-task",
    "-x-test",
    "--filter",
    "--exclude-testsuite",
    "--tag",
    "--no-coverage",
    "-w",
    "--allow",
    "--exclude-path",
    "--disable",
    "-k",
    "-m",
];
/// Flags and settings whose absence makes runners and linters check less.
const STRICT_FLAGS: [&str; 25] = [
    "./...",
    "-werror",
    "-wall",
    "-wextra",
    "-d warnings",
    "-dwarnings",
    "--strict",
    "--max-warnings",
    "--strict-markers",
    "-race",
    "--all-targets",
    "--workspace",
    "--all-features",
    "--all",
    "--forbid-only",
    "--forbidonly",
    "--ci",
    "-pedantic",
    "-we",
    "--warnings-as-errors",
    "-warnaserror",
    "--error-on-warnings",
    "--noemit",
    "--check",
    "pipefail",
];
/// Beginnings of flags and settings that no new command has for a good reason.
const ALWAYS_LOOSENING_FLAGS: [&str; 13] = [
    "will_fail",
    "disabled",
    "--passwithnotests",
    "--pass-with-no-tests",
    "--exit-zero",
    "-dskiptests",
    "-dmaven.test",
    "--fail-never",
    "--update",
    "-u",
    "--snapshot-update",
    "update_",
    "insta_update",
];
/// Runners that can repeat failing tests.
const RETRYING_RUNNERS: [&str; 13] = [
    "pytest",
    "jest",
    "vitest",
    "mocha",
    "playwright",
    "cypress",
    "nextest",
    "mvn",
    "mvnw",
    "gradle",
    "rspec",
    "phpunit",
    "ctest",
];
/// Variables that make runners overwrite the snapshots that they compare with.
const SNAPSHOT_UPDATE_VARIABLES: [&str; 6] = [
    "update_snapshots=",
    "insta_update=",
    "update_golden",
    "update_goldens=",
    "update_expect=",
    "snapshot_update=",
];

/// A line that is a command or a part of a command.
struct CommandLine {
    number: u32,
    text: String,
}

/// Compares the commands of a file, line by line.
///
/// `elsewhere` has the commands of other changed files: a command that moved there is not removed.
pub(super) fn compare_commands(
    path: &RelPath,
    old: &str,
    new: &str,
    elsewhere: &BTreeSet<String>,
    report: &mut HonestyReport,
) {
    let (before, after) = (command_lines(old), command_lines(new));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &before {
        *counts.entry(&line.text).or_insert(0) += 1;
    }
    let mut came = Vec::new();
    for line in &after {
        match counts.get_mut(line.text.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => came.push(line),
        }
    }
    let mut gone: Vec<&CommandLine> = Vec::new();
    for line in before.iter().rev() {
        if let Some(count) = counts.get_mut(line.text.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            gone.push(line);
        }
    }
    gone.reverse();
    came.truncate(MAX_CHANGED_LINES);
    gone.truncate(MAX_CHANGED_LINES);
    for line in &came {
        let partner = find_replaced_line(line, &gone);
        let old_text = partner.and_then(|at| gone.get(at)).map(|line| line.text.clone()).unwrap_or_default();
        compare_command(path, &old_text, line, new, report);
        if let Some(at) = partner.filter(|_| is_check_command(&line.text) || !is_check_command(&old_text)) {
            gone.remove(at);
        }
    }
    let is_gone = |line: &&&CommandLine| {
        is_check_command(&line.text) && is_command(&line.text) && !elsewhere.contains(&line.text)
    };
    for line in gone.iter().filter(is_gone) {
        let checked = check_words_of_command(&line.text);
        let still = after.iter().any(|other| checked.is_subset(&check_words_of_command(&other.text)));
        let severity = if still { HonestySeverity::Notice } else { HonestySeverity::Blocking };
        let message = format!("`{}` no longer runs", line.text);
        report.add(severity, HonestyKind::ConfigurationLoosened, path, line.number, message);
    }
    if let Some(at) = old.lines().position(|line| is_errexit_option(line.trim()))
        && !new.lines().any(|line| is_errexit_option(line.trim()))
        && !came.iter().any(|line| line.text.starts_with("set +e"))
        && new.lines().any(is_check_command)
    {
        let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let message = "the script no longer stops at the first failure".to_owned();
        report.add_blocking(HonestyKind::FailureSwallowed, path, line, message);
    }
}

/// Returns true for a shell option that ends a script at the first failure.
fn is_errexit_option(line: &str) -> bool {
    line.starts_with("set -") && line.split_whitespace().nth(1).is_some_and(|flags| flags.contains('e'))
        || line.contains("errexit")
}

/// Returns the commands of a text.
pub(super) fn split_commands(text: &str) -> impl Iterator<Item = String> {
    command_lines(text).into_iter().map(|line| line.text)
}

fn command_lines(text: &str) -> Vec<CommandLine> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        // A manifest in JSON names its commands.
        let named = trimmed.strip_prefix('"').and_then(|rest| rest.split_once("\": "));
        let bare = named.map_or(trimmed, |(_, command)| command);
        let bare =
            bare.trim_start_matches("- ").trim_start_matches("run:").trim_start_matches("script:").trim();
        if bare.is_empty() || bare.starts_with('#') || bare.starts_with("//") {
            continue;
        }
        lines.push(CommandLine { number: u32::try_from(at + 1).unwrap_or(u32::MAX), text: bare.to_owned() });
    }
    lines
}

/// Returns the removed line that a new line most likely replaces.
fn find_replaced_line(line: &CommandLine, gone: &[&CommandLine]) -> Option<usize> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '/'))
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let own = words(&line.text);
    let common = |other: &CommandLine| words(&other.text).iter().filter(|word| own.contains(word)).count();
    let scored =
        gone.iter().enumerate().map(|(at, other)| (common(other), at)).filter(|(common, _)| *common > 0);
    scored.max_by_key(|(common, at)| (*common, std::cmp::Reverse(*at))).map(|(_, at)| at)
}

fn compare_command(path: &RelPath, old: &str, line: &CommandLine, whole: &str, report: &mut HonestyReport) {
    let new = &line.text;
    if is_coverage_lowered(old, new) {
        let message = format!("`{old}` became `{new}`: the threshold is lower");
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, line.number, message);
        return;
    }
    let kept_status = whole.contains("$?") || whole.contains("PIPESTATUS");
    if let Some(how) = find_failure_swallowing(new).filter(|how| find_failure_swallowing(old) != Some(*how)) {
        if is_cleanup_command(new) {
            return;
        }
        let kept = kept_status && how == "set +e";
        let severity = if kept { HonestySeverity::Notice } else { HonestySeverity::Blocking };
        let message = format!("`{new}`: `{how}` takes a failure away");
        report.add(severity, HonestyKind::FailureSwallowed, path, line.number, message);
        return;
    }
    if new.trim_start().to_ascii_lowercase().starts_with("exclude") && !old.starts_with("exclude") {
        let message = format!("`{new}` leaves something out");
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, line.number, message);
        return;
    }
    if !(is_check_command(new) || is_flags_line(new) || is_flags_line(old)) {
        return;
    }
    if let Some(flag) = find_excessive_retries(new).filter(|_| find_excessive_retries(old).is_none()) {
        let message = format!("`{new}`: with `{flag}` a test may fail many times");
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, line.number, message);
        return;
    }
    if let Some(flag) = find_loosening_flags(old, new).into_iter().next() {
        let message = match old.is_empty() {
            true => format!("`{new}` has `{flag}`, which checks less"),
            false => format!("`{old}` became `{new}`: `{flag}` checks less"),
        };
        let name = flag.to_ascii_lowercase();
        // A runner applies its own options in each run.
        let leaves_out =
            ["--deselect", "--ignore", "--ignore-glob", "-k"].iter().any(|it| name.starts_with(it));
        let is_obeyed = is_flags_line(new)
            && leaves_out
            && path.as_str().is_some_and(is_pytest_options_file)
            && is_test_exclusion(new, &flag);
        let is_certain = is_obeyed || ALWAYS_LOOSENING_FLAGS.iter().any(|it| name.starts_with(it));
        let further = old.is_empty() && !new.starts_with("--") && !is_certain;
        let severity = if further { HonestySeverity::Notice } else { HonestySeverity::Blocking };
        report.add(severity, HonestyKind::ConfigurationLoosened, path, line.number, message);
        return;
    }
    let whole = whole.to_ascii_lowercase();
    let lost = STRICT_FLAGS.iter().find(|flag| has_flag(old, flag) && !has_flag(new, flag));
    if let Some(flag) = lost.filter(|flag| !whole.contains(**flag)) {
        let message = format!("`{old}` became `{new}`: without `{flag}` less is checked");
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, line.number, message);
        return;
    }
    if !old.is_empty() && begins_with_check_words(old) && !is_check_command(new) {
        let message = format!("`{old}` became `{new}`, which checks nothing");
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, line.number, message);
    }
}

/// Returns a flag that makes a runner repeat failing tests more often than flakiness justifies.
fn find_excessive_retries(command: &str) -> Option<&str> {
    let words: Vec<&str> =
        command.split_whitespace().map(|word| word.trim_matches(['"', '\'', ',', '[', ']'])).collect();
    let runs_tests =
        is_flags_line(command) || words.iter().any(|word| RETRYING_RUNNERS.contains(&file_name(word)));
    if !runs_tests || words.contains(&"install") {
        return None;
    }
    words.iter().enumerate().find_map(|(at, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None => (*word, words.get(at + 1).copied().unwrap_or_default()),
        };
        let lower = name.to_ascii_lowercase();
        let repeats = name.starts_with('-')
            && ["--retr", "--rerun", "-dsurefire.rerun"].iter().any(|part| lower.starts_with(part));
        (repeats && value.parse::<f64>().is_ok_and(|count| count > MAX_RETRIES)).then_some(*word)
    })
}

/// Returns true for a file whose options pytest reads.
fn is_pytest_options_file(path: &str) -> bool {
    let name = file_name(path);
    is_runner_configuration(path) || matches!(name, "setup.cfg" | "pyproject.toml")
}

/// Returns true if a flag excludes tests by their names or files, and not a directory of another
/// kind.
fn is_test_exclusion(line: &str, flag: &str) -> bool {
    let file = flag.split_once('=').map_or("", |(_, value)| value).split("::").next().unwrap_or_default();
    flag.starts_with("-k")
        || flag.contains("::")
        || line.contains("::")
        || is_test_file(file.trim_start_matches("./"))
        || line.split_whitespace().any(|word| is_test_file(word) && word.contains('.'))
}

/// Returns the way in which a command's failure is hidden.
pub(super) fn find_failure_swallowing(command: &str) -> Option<&'static str> {
    let lower = command.to_ascii_lowercase();
    let lower = lower.trim_end_matches(['"', ',', '\'', ' ']);
    if lower.starts_with("set +e") || lower.starts_with("set +o errexit") {
        return Some("set +e");
    }
    if let Some(how) = FAILURE_SWALLOWING_ENDINGS.iter().find(|how| match **how {
        "|| echo" => lower.contains("|| echo") && !lower.contains("exit 1"),
        "; exit 0" | "; true" | "; :" => lower.ends_with(**how),
        how => lower.contains(how),
    }) {
        return Some(how);
    }
    if command.starts_with(".IGNORE") {
        return Some(".IGNORE");
    }
    if command.contains("= - ") {
        return Some("= -");
    }
    if command.starts_with('-')
        && command.chars().nth(1).is_some_and(|c| c.is_alphabetic() || c == '.' || c == '$')
        && !command.starts_with("--")
        && is_check_command(command.get(1..)?)
    {
        return Some("-");
    }
    let settings = [
        "continue-on-error: true",
        "allow_failure: true",
        "ignoreerrors: true",
        "continueonerror: true",
        "ignorefailures = true",
        "ignorefailures=true",
        "check=false",
    ];
    settings.iter().find(|setting| lower.contains(**setting)).copied()
}

/// Returns the flags that make a new command check less than the old one.
fn find_loosening_flags(old: &str, new: &str) -> Vec<String> {
    let narrows = |word: &str| {
        let path = word.trim_start_matches("./");
        is_test_file(path) && path.contains('.') && !path.contains('=')
    };
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace().map(|word| word.trim_matches(['"', '\'', ',', '[', ']']).to_owned()).collect()
    };
    let known = words(old);
    let now = words(new);
    // Python's own `-m` starts a module, such as pytest.
    let starts_module = |at: usize| {
        at.checked_sub(1).and_then(|at| now.get(at)).is_some_and(|it| file_name(it).starts_with("python"))
    };
    let mut found: Vec<String> = now
        .iter()
        .enumerate()
        .filter(|(_, word)| !known.contains(word))
        .filter(|(at, word)| *word != "-m" || !starts_module(*at))
        .map(|(_, word)| word.clone())
        .filter(|word| {
            // Flags of one letter mean something else in the other case.
            let lower = if word.len() > 2 { word.to_ascii_lowercase() } else { word.clone() };
            let name = lower.split('=').next().unwrap_or_default();
            narrows(word) && !old.is_empty() && !known.iter().any(|word| narrows(word))
                || LOOSENING_FLAGS.contains(&name)
                || LOOSENING_FLAGS.contains(&lower.as_str())
                || lower.starts_with("-wno-")
                || lower.starts_with("-p:no")
                || ["-n", "--name"].contains(&name)
                    && ["ruby", "rake", "rails"].iter().any(|it| new.contains(it))
        })
        .collect();
    let lower = new.to_ascii_lowercase();
    found.extend(
        SNAPSHOT_UPDATE_VARIABLES
            .iter()
            .filter(|name| lower.contains(**name) && !old.to_ascii_lowercase().contains(**name))
            .map(|it| (*it).to_owned()),
    );
    found
}

fn has_flag(command: &str, flag: &str) -> bool {
    let lower = command.to_ascii_lowercase();
    lower.match_indices(flag).any(|(at, _)| {
        let after = lower.get(at + flag.len()..).and_then(|rest| rest.chars().next());
        after.is_none_or(|c| !c.is_alphanumeric() && c != '-')
    })
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).filter(|word| !word.is_empty())
}

/// Returns true for a command that checks the project, as far as its words show.
pub(super) fn is_check_command(command: &str) -> bool {
    let lower = command.to_ascii_lowercase();
    // It installs or pins packages, of tests too.
    if program_of(&lower).starts_with("pip") {
        return false;
    }
    split_words(&lower).any(|word| CHECK_WORDS.contains(&word))
}

/// Returns true if the command's first words check the project, and not only a file has such a
/// name.
pub(super) fn begins_with_check_words(command: &str) -> bool {
    let lower = command.to_ascii_lowercase();
    lower
        .split_whitespace()
        .take(4)
        .any(|word| CHECK_WORDS.contains(&word.trim_matches(['"', '\'', ',', '@', '.', '/'])))
}

/// Returns true if two lines differ in a coverage threshold that is lower now.
fn is_coverage_lowered(old: &str, new: &str) -> bool {
    let lower = new.to_ascii_lowercase();
    if !["coverage", "fail_under", "fail-under", "threshold"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    let numbers = |text: &str| -> Vec<f64> {
        let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        parts.filter_map(|part| part.trim_matches('.').parse().ok()).collect()
    };
    let without = |text: &str| text.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect::<String>();
    let pairs = numbers(old).into_iter().zip(numbers(new));
    without(old) == without(new) && pairs.into_iter().any(|(was, is)| is < was)
}

/// Returns true for a command that only cleans up or prints, so that its failure may be ignored.
fn is_cleanup_command(command: &str) -> bool {
    let program = program_of(command);
    let containers = ["docker", "docker-compose", "podman", "kubectl", "git"];
    let clears = |word: &str| {
        ["rm", "rmi", "stop", "kill", "down", "prune", "network", "volume", "delete", "remove", "tag", "logs"]
            .contains(&word)
    };
    CLEANUP_PROGRAMS.contains(&program.as_str())
        || containers.contains(&program.as_str()) && command.split_whitespace().skip(1).take(3).any(clears)
}

/// Returns the words of a command that check something.
fn check_words_of_command(command: &str) -> BTreeSet<String> {
    let lower = command.to_ascii_lowercase();
    split_words(&lower).filter(|word| CHECK_WORDS.contains(word)).map(str::to_owned).collect()
}

/// Returns true for a line of flags: `CFLAGS = -Wall`, `addopts = -q`.
fn is_flags_line(line: &str) -> bool {
    let name =
        line.split(['=', ':']).next().unwrap_or_default().trim().trim_matches('"').to_ascii_lowercase();
    line.starts_with("--")
        || line.starts_with("set -")
        || name.ends_with("flags")
        || matches!(name.as_str(), "addopts" | "args" | "options" | "commands" | "opts")
        || name.ends_with("_opts")
        || name.starts_with("ci_")
}

/// Returns true for a line that is a command and not a key of a settings file.
fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    !first.ends_with(':')
        && !line.ends_with(['{', '[', '}', ']', ':'])
        && !first.starts_with('"')
        && line.split_whitespace().nth(1) != Some("=")
}

fn program_of(command: &str) -> String {
    let words = command.split_whitespace().filter(|word| !word.contains('=') && *word != "sudo");
    words
        .map(|word| word.trim_start_matches(['-', '@', '"', '\'']))
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_owned()
}
