//! Settings of builds by which tests no longer run, or something else runs in their place. The
//! original tests don't show that: a build file stays as the change left it.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::report::HonestyReport;
use super::setting_entries::{SettingEntry, read_settings};
use super::special_cases::quote_line;
use crate::test_files::{file_name, is_test_file};
use crate::unfailing_checks::UNFAILING_PROGRAMS;

/// Calls of Gradle that leave tests out, in lower case without blanks.
const GRADLE_SIGNS: [&str; 5] =
    ["excludetags", "excludetestsmatching", "includetestsmatching", "onlyif{false", "isenabled=false"];
/// Properties by which CTest takes a failure for a success.
const CTEST_PROPERTIES: [&str; 3] =
    ["pass_regular_expression", "skip_return_code", "skip_regular_expression"];

/// Reports new lines of a build file that deselect tests which were there before.
pub(super) fn report_deselected_tests(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let name = path.to_string().to_ascii_lowercase();
    let sign: fn(&str, &str) -> Option<&'static str> = match file_name(&name) {
        name if name.ends_with(".gradle") || name.ends_with(".gradle.kts") => find_gradle_sign,
        name if name == "cmakelists.txt" || name.ends_with(".cmake") => find_ctest_sign,
        name if name.ends_with("proj") || name.ends_with(".props") => find_dotnet_sign,
        "pom.xml" => find_maven_sign,
        "config" | "config.toml" if name.contains(".cargo/") => {
            return report_cargo_runs(path, old, new, report);
        }
        _ => return,
    };
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line.trim())) {
        let Some(sign) = sign(&line.to_ascii_lowercase(), old) else { continue };
        let message = format!("`{}`: `{sign}` leaves tests out", quote_line(line));
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, number, message);
    }
}

fn find_gradle_sign(line: &str, _old: &str) -> Option<&'static str> {
    let squeezed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    GRADLE_SIGNS.into_iter().find(|sign| !squeezed.starts_with("//") && squeezed.contains(sign))
}

fn find_maven_sign(line: &str, old: &str) -> Option<&'static str> {
    let sign = "<testSourceDirectory>";
    (line.contains("<testsourcedirectory>") && !old.contains(sign)).then_some(sign)
}

fn find_dotnet_sign(line: &str, _old: &str) -> Option<&'static str> {
    if line.contains("<istestproject>false") {
        return Some("IsTestProject");
    }
    let removed = line.split_once("<compile remove=\"")?.1.split('"').next()?.replace('\\', "/");
    let stem = removed.strip_suffix(".cs").unwrap_or(&removed);
    (is_test_file(&removed) || stem.ends_with("test") || stem.ends_with("tests")).then_some("Compile Remove")
}

/// Finds a property of a test that was there before, or a command that can't fail in its place.
fn find_ctest_sign(line: &str, old: &str) -> Option<&'static str> {
    let (call, arguments) = line.trim().split_once('(')?;
    let words: Vec<&str> =
        arguments.split([' ', '\t', ')']).filter(|word| !word.is_empty() && *word != "test").collect();
    let is_known = |name: &str| {
        old.lines().map(str::to_ascii_lowercase).any(|line| {
            line.trim().starts_with("add_test") && line.split([' ', '(', ')']).any(|word| word == name)
        })
    };
    match call.trim() {
        "set_tests_properties" | "set_property" if words.first().is_some_and(|name| is_known(name)) => {
            CTEST_PROPERTIES.into_iter().find(|property| words.contains(property))
        }
        "add_test" => {
            let at = words.iter().position(|word| *word == "command").map_or(1, |at| at + 1);
            let name = words.iter().find(|word| **word != "name")?;
            let program = file_name(words.get(at)?);
            UNFAILING_PROGRAMS.into_iter().find(|it| *it == program && is_known(name))
        }
        _ => None,
    }
}

/// Reports a program that Cargo starts in the place of the tests' programs, or of `cargo test`.
fn report_cargo_runs(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let entries = |text: &str| read_settings("config.toml", text);
    let before = entries(old);
    let is_new = |entry: &&SettingEntry| {
        before.iter().all(|known| known.key != entry.key || known.values != entry.values)
    };
    for entry in entries(new).iter().filter(is_new).filter(|entry| replaces_cargo_tests(entry)) {
        let message = format!("`{}` is what runs in the place of the tests", entry.key);
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, entry.line, message);
    }
}

/// Returns true for the alias `test`, and for a `runner` unless it is for another kind of machine.
fn replaces_cargo_tests(entry: &SettingEntry) -> bool {
    let target = entry.key.strip_prefix("target.").unwrap_or_default();
    let is_foreign = !target.starts_with("runner")
        && !target.is_empty()
        && !target.contains("cfg(")
        && !target.contains(std::env::consts::ARCH);
    matches!(entry.key.as_str(), "alias.test" | "alias.t") || entry.name() == "runner" && !is_foreign
}
