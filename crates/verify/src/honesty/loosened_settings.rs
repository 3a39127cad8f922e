//! Settings that make runners, compilers and linters check less than before.

use std::collections::{BTreeMap, BTreeSet};

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};

use super::report::HonestyReport;
use super::setting_entries::{SettingEntry, read_settings};
use crate::test_files::{file_name, is_pipeline, is_runner_configuration, is_test_configuration};

/// Names of lists that exclude something from checks.
const EXCLUSION_LISTS: [&str; 18] = [
    "ignoreerrors",
    "ignore",
    "exclude",
    "omit",
    "skip",
    "deselect",
    "norecursedirs",
    "disable",
    "blacklist",
    "suppress",
    "collect_ignore",
    "nowarn",
    "allowlist",
    "baseline",
    "except",
    "exempt",
    "whitelist",
    "exclusions",
];
/// Names of lists that say what is checked.
const INCLUSION_LISTS: [&str; 21] = [
    "select",
    "extend-select",
    "include",
    "testpaths",
    "testmatch",
    "testregex",
    "roots",
    "enable",
    "extends",
    "python_files",
    "python_classes",
    "python_functions",
    "specs",
    "spec",
    "projects",
    "files",
    "testsuite",
    "checkers",
    "testdir",
    "members",
    "module",
];
/// Beginnings of names of switches that make a tool stricter.
const STRICT_SWITCHES: [&str; 26] = [
    "strict",
    "noimplicit",
    "nounused",
    "nounchecked",
    "nofallthrough",
    "disallow",
    "warn_",
    "treatwarningsaserrors",
    "warningsaserrors",
    "warnaserror",
    "check_untyped",
    "checkjs",
    "xfail_strict",
    "failon",
    "fail_on",
    "fail-on",
    "forbid",
    "exactoptional",
    "useunknown",
    "no_implicit",
    "enforce",
    "stopon",
    "bestrictabout",
    "werror",
    "noemitonerror",
    "alwaysstrict",
];
/// Beginnings of names of switches that make a tool more lenient.
const LENIENT_SWITCHES: [&str; 22] = [
    "passwithnotests",
    "ignore",
    "skip",
    "allow",
    "continue-on-error",
    "testfailureignore",
    "failureignore",
    "silent",
    "disable",
    "bypass",
    "maven.test",
    "nofail",
    "no_fail",
    "suppress",
    "exit-zero",
    "exit_zero",
    "continueonerror",
    "permissive",
    "quiet",
    "noverify",
    "nocheck",
    "will_fail",
];
/// Parts of the names of switches that are about getting and delivering packages, not about checks.
const PACKAGING_WORDS: [&str; 6] = ["install", "prerelease", "sdist", "download", "upload", "publish"];
/// Names of minimum values: the smaller, the less is checked.
const MINIMUM_SETTINGS: [&str; 8] =
    ["fail_under", "fail-under", "minimum_coverage", "mincoverage", "minmsi", "level", "score", "threshold"];
/// Names of maximum values: the larger, the less is checked.
const MAXIMUM_SETTINGS: [&str; 10] = [
    "max-warnings",
    "maxwarnings",
    "max-complexity",
    "errorlevel",
    "retries",
    "retry",
    "reruns",
    "flaky",
    "too-many",
    "cognitive",
];

/// Maximum number of retries of a test for external reasons: more of them hide a failure.
pub(super) const MAX_RETRIES: f64 = 3.0;
/// Maximum number of values of one setting at a time.
const MAX_VALUES: usize = 300;

/// Compares the settings of a file.
///
/// `elsewhere` has the settings of other changed files: a setting that moved there is not removed.
pub(super) fn compare_settings(
    path: &RelPath,
    old: &str,
    new: &str,
    elsewhere: &BTreeSet<(String, Vec<String>)>,
    report: &mut HonestyReport,
) {
    let Some(name) = path.as_str() else { return };
    if !is_check_settings_file(name) {
        return;
    }
    let before = group_by_key(read_settings(name, old));
    let after = group_by_key(read_settings(name, new));
    for (key, entry) in &after {
        match before.get(key) {
            Some(earlier) if earlier.values != entry.values => {
                compare_entry(path, Some(earlier), Some(entry), report)
            }
            Some(_) => {}
            None => compare_entry(path, None, Some(entry), report),
        }
    }
    for (key, entry) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
        // A key that moved is not removed.
        let moved = after.values().any(|other| other.values == entry.values && other.name() == entry.name());
        let moved = moved || elsewhere.contains(&(entry.name().to_owned(), entry.values.clone()));
        if !moved && !key.is_empty() {
            compare_entry(path, Some(entry), None, report);
        }
    }
}

/// Returns the settings of a file, by their last names.
pub(super) fn setting_values(path: &str, text: &str) -> Vec<(String, Vec<String>)> {
    let entries = if is_check_settings_file(path) { read_settings(path, text) } else { Vec::new() };
    entries.into_iter().map(|entry| (entry.name().to_owned(), entry.values)).collect()
}

/// Returns true if a manifest has another version of the product, or of a dependency.
pub(super) fn has_version_change(path: &str, old: &str, new: &str) -> bool {
    let entries = |text: &str| -> Vec<SettingEntry> {
        let settings = if is_test_configuration(path) { read_settings(path, text) } else { Vec::new() };
        let product = settings.into_iter().filter(|entry| {
            entry.name() == "version" || entry.key.contains("dependencies") || entry.key.contains("require")
        });
        product.map(|entry| SettingEntry { line: 0, ..entry }).collect()
    };
    old != new && entries(old) != entries(new)
}

/// Returns true for files that configure what is checked.
pub(super) fn is_check_settings_file(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = file_name(&lower);
    let linters = [
        ".eslintrc",
        "eslint.config.",
        "tsconfig",
        "biome.json",
        "mypy.ini",
        ".mypy.ini",
        "ruff.toml",
        ".ruff.toml",
        "pyrightconfig.json",
        ".pylintrc",
        "pylintrc",
        ".flake8",
        "clippy.toml",
        ".clippy.toml",
        ".golangci",
        ".rubocop",
        "phpstan",
        "psalm.xml",
        "phpcs.xml",
        "checkstyle",
        ".clang-tidy",
        ".pre-commit-config",
        "sonar-project",
        "detekt",
        ".swiftlint",
        ".credo",
        "codecov",
        ".codecov",
        "tslint",
        ".stylelintrc",
        ".coveragerc",
        "deny.toml",
        ".editorconfig",
        "analysis_options",
        ".bandit",
        "lefthook",
        ".nycrc",
        "stryker",
        "jsconfig",
        ".eslintignore",
        ".cargo/config",
        ".config/nextest",
        "knip",
        ".oxlintrc",
        "pmd",
        "spotbugs",
        "infection.json",
    ];
    is_test_configuration(path) && !name.starts_with("conftest") && !name.ends_with(".py")
        || is_runner_configuration(path) && !name.ends_with(".py")
        || linters.iter().any(|it| name.starts_with(it) || lower.contains(it) && it.contains('/'))
}

fn group_by_key(entries: Vec<SettingEntry>) -> BTreeMap<String, SettingEntry> {
    let mut map: BTreeMap<String, SettingEntry> = BTreeMap::new();
    for mut entry in entries {
        entry.values.truncate(MAX_VALUES);
        match map.get_mut(&entry.key) {
            Some(known) => known.values.extend(entry.values.into_iter().take(MAX_VALUES)),
            None => {
                map.insert(entry.key.clone(), entry);
            }
        }
    }
    map
}

fn compare_entry(
    path: &RelPath,
    old: Option<&SettingEntry>,
    new: Option<&SettingEntry>,
    report: &mut HonestyReport,
) {
    let Some(entry) = new.or(old) else { return };
    let lists_hooks = entry.name() == "id" && path.as_str().is_some_and(|path| path.contains("pre-commit"));
    let values = |entry: Option<&SettingEntry>| entry.map(|entry| entry.values.clone()).unwrap_or_default();
    let (before, after) = (values(old), values(new));
    let hook_gone =
        lists_hooks && before.iter().any(|hook| !after.contains(hook)) && after.len() < before.len();
    let judged = match hook_gone {
        true => Some((HonestySeverity::Blocking, "a hook is gone")),
        false => {
            let configures_runner =
                path.as_str().is_some_and(|it| is_runner_configuration(it) && !is_pipeline(it));
            judge_setting(entry, &before, &after)
                .or_else(|| judge_retries(entry, &before, &after).filter(|_| configures_runner))
        }
    };
    let Some((severity, why)) = judged else { return };
    let shown = |values: &[String]| match values {
        [] => "nothing".to_owned(),
        values => values.join(", ").chars().take(80).collect(),
    };
    let message = format!("`{}` went from `{}` to `{}`: {why}", entry.key, shown(&before), shown(&after));
    report.add(severity, HonestyKind::ConfigurationLoosened, path, entry.line, message);
}

/// Judges a changed setting; `None` if it makes a tool check no less.
fn judge_setting(
    entry: &SettingEntry,
    before: &[String],
    after: &[String],
) -> Option<(HonestySeverity, &'static str)> {
    // Benchmarks prove nothing, and names of packages aren't settings.
    if entry.key.starts_with("bench") || entry.key.contains("dependencies.") {
        return None;
    }
    let name = entry.name();
    let plain: String = name.chars().filter(|c| *c != '@').collect();
    let begins = |names: &[&str]| names.iter().any(|it| plain.starts_with(it));
    let blocking = |why| Some((HonestySeverity::Blocking, why));
    let (one, other) = (before.first().map(String::as_str), after.first().map(String::as_str));
    if let (Some(one), Some(other)) = (one, other)
        && let (Some(was), Some(is)) = (rule_level(one), rule_level(other))
        && is_linter_rule(entry)
    {
        return if is < was { blocking("a rule is laxer") } else { None };
    }
    if let Some(why) = judge_switch(&plain, one, other) {
        return blocking(why);
    }
    if let Some(why) = judge_image_tolerance(entry, one, other) {
        return blocking(why);
    }
    if let (Some(was), Some(is)) = (parse_number(one), parse_number(other)) {
        let least = !is_image_tolerance(entry) && begins(&MINIMUM_SETTINGS)
            || entry.key.contains("coverage")
            || entry.key.contains("codecov");
        let greatest = begins(&MAXIMUM_SETTINGS)
            || plain.contains("complexity")
            || is_linter_rule(entry) && plain.contains("max");
        if is < was && least && !greatest {
            return blocking("the threshold is lower");
        }
        if is > was && greatest {
            let retries = ["retr", "rerun", "flak"].iter().any(|it| plain.contains(it));
            let severity = if retries && is <= MAX_RETRIES {
                HonestySeverity::Notice
            } else {
                HonestySeverity::Blocking
            };
            return Some((severity, "the limit is higher"));
        }
        return None;
    }
    if entry.key.contains("scripts.") || matches!(plain.as_str(), "run" | "script") {
        return None;
    }
    let added = after.iter().filter(|item| !before.contains(item)).count();
    let removed = before.iter().filter(|item| !after.contains(item)).count();
    let leaves_out = EXCLUSION_LISTS.iter().any(|it| plain.contains(it))
        || entry
            .key
            .split('.')
            .any(|part| EXCLUSION_LISTS.iter().any(|it| part.ends_with(it)) && part != "ignore_errors");
    if leaves_out && added > 0 && !are_all_booleans(after) {
        // Generated files are commonly excluded.
        let derived = after.iter().filter(|item| !before.contains(item)).all(|item| is_generated(item));
        let severity = if derived { HonestySeverity::Notice } else { HonestySeverity::Blocking };
        return Some((severity, "more is left out"));
    }
    if removed > 0 && after.len() <= before.len() && lists_what_is_checked(entry) {
        return blocking("less is taken in");
    }
    if plain == "if" && other == Some("false") {
        return blocking("it never runs");
    }
    if ["filter", "grep", "testnamepattern", "testpathpattern"].iter().any(|it| plain.ends_with(it))
        && added > 0
    {
        return blocking("only some tests run");
    }
    if plain == "filterwarnings"
        && before.iter().any(|it| it == "error")
        && !after.iter().any(|it| it == "error")
    {
        return blocking("warnings are no errors any more");
    }
    None
}

/// Returns true for a list of what a tool checks.
fn lists_what_is_checked(entry: &SettingEntry) -> bool {
    let plain: String = entry.name().chars().filter(|c| *c != '@').collect();
    // mypy names modules to check them less.
    INCLUSION_LISTS.contains(&plain.as_str()) && !entry.key.contains("mypy.overrides")
}

/// Judges how far recorded images may differ.
fn judge_image_tolerance(
    entry: &SettingEntry,
    one: Option<&str>,
    other: Option<&str>,
) -> Option<&'static str> {
    /// A new tolerance from which on most images are accepted.
    const MIN_LOOSE_TOLERANCE: f64 = 0.5;
    if !is_image_tolerance(entry) {
        return None;
    }
    let is = parse_number(other)?;
    let looser = parse_number(one).map_or(is >= MIN_LOOSE_TOLERANCE, |was| is > was);
    looser.then_some("images may differ more")
}

/// Returns true for a limit of the differences between recorded images.
fn is_image_tolerance(entry: &SettingEntry) -> bool {
    let is_of_images = ["screenshot", "snapshot", "visual", "image"].iter().any(|it| entry.key.contains(it));
    entry.name().contains("maxdiff")
        || is_of_images && ["threshold", "mismatch", "tolerance"].iter().any(|it| entry.name().contains(it))
}

/// Judges a new setting that makes a runner repeat failing tests.
fn judge_retries(
    entry: &SettingEntry,
    before: &[String],
    after: &[String],
) -> Option<(HonestySeverity, &'static str)> {
    let name = entry.name();
    let repeats = name.starts_with("retr") || name.starts_with("rerun");
    let count = parse_number(after.first().map(String::as_str)).filter(|_| before.is_empty() && repeats);
    count
        .filter(|count| *count > MAX_RETRIES)
        .map(|_| (HonestySeverity::Blocking, "a test may fail many times"))
}

/// Judges a changed switch; `None` if it is no switch, or makes a tool check no less.
fn judge_switch(name: &str, one: Option<&str>, other: Option<&str>) -> Option<&'static str> {
    let begins = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
    let truth = |value: Option<&str>| {
        value.map(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on"))
    };
    let is_truth = |value: Option<&str>| {
        value.is_none_or(|value| {
            matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | "yes" | "no" | "on" | "off")
        })
    };
    if is_truth(one) && is_truth(other) && (one.is_some() || other.is_some()) {
        if begins(&STRICT_SWITCHES) && truth(one) == Some(true) && truth(other) != Some(true) {
            return Some("a check is off");
        }
        let is_of_packages = PACKAGING_WORDS.iter().any(|word| name.contains(word));
        if (begins(&LENIENT_SWITCHES) && !is_of_packages || name.contains("failureignore"))
            && truth(other) == Some(true)
            && truth(one) != Some(true)
        {
            return Some("failures are let through");
        }
        if matches!(
            name,
            "test" | "harness" | "autotests" | "enabled" | "doctest" | "processisolation" | "typecheck"
        ) && truth(other) == Some(false)
        {
            return Some("it is off");
        }
    }
    None
}

fn are_all_booleans(values: &[String]) -> bool {
    values.iter().all(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "false"))
}

/// Returns true for generated files, which need no checks.
pub(super) fn is_generated(item: &str) -> bool {
    [
        "node_modules",
        "dist",
        "build",
        "target",
        ".venv",
        "vendor",
        "generated",
        "coverage",
        ".git",
        "__pycache__",
        "migrations",
        ".next",
        "out",
    ]
    .iter()
    .any(|name| item.contains(name))
}

/// Returns true for a rule of a linter.
fn is_linter_rule(entry: &SettingEntry) -> bool {
    ["rules", "lints", "lint", "linters", "severity"]
        .iter()
        .any(|part| entry.key.split('.').any(|it| it == *part))
        || entry.key.contains("lints.")
}

/// Returns the rank of a rule's level: the higher, the stricter.
fn rule_level(value: &str) -> Option<u8> {
    Some(match value.to_ascii_lowercase().as_str() {
        "forbid" => 4,
        "error" | "deny" | "2" | "fatal" => 3,
        "warn" | "warning" | "1" => 2,
        "info" | "suggestion" | "hint" | "information" => 1,
        "off" | "allow" | "0" | "ignore" | "none" | "silent" | "disabled" => 0,
        _ => return None,
    })
}

fn parse_number(value: Option<&str>) -> Option<f64> {
    value?.trim_end_matches('%').parse().ok()
}
