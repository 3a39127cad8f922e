//! Settings of builds by which tests no longer run, or something else runs in their place. The
//! original tests don't show that: a build file stays as the change left it.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::commands::{begins_with_check_words, is_check_command};
use super::report::HonestyReport;
use super::setting_entries::{SettingEntry, read_settings};
use super::special_cases::quote_line;
use super::test_vocabulary::without_blanks;
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
    let sign: fn(&str, (&str, &str)) -> Option<&'static str> = match file_name(&name) {
        name if name.ends_with(".gradle") || name.ends_with(".gradle.kts") => find_gradle_sign,
        name if name == "cmakelists.txt" || name.ends_with(".cmake") => find_ctest_sign,
        name if name.ends_with("proj") || name.ends_with(".props") => find_dotnet_sign,
        "pom.xml" => find_maven_sign,
        name if name.ends_with(".sbt") => find_sbt_sign,
        "mix.exs" => find_mix_sign,
        "package.json" | "composer.json" | "deno.json" => find_script_sign,
        "rakefile" => find_rake_sign,
        name if name.ends_with(".rake") => find_rake_sign,
        "config" | "config.toml" if name.contains(".cargo/") => {
            return report_cargo_runs(path, old, new, report);
        }
        _ => return,
    };
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line.trim())) {
        let Some(sign) = sign(&line.to_ascii_lowercase(), (old, new)) else { continue };
        let message = format!("`{}`: `{sign}` leaves tests out", quote_line(line));
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        report.add_blocking(HonestyKind::ConfigurationLoosened, path, number, message);
    }
}

fn find_gradle_sign(line: &str, (_, new): (&str, &str)) -> Option<&'static str> {
    let squeezed = without_blanks(line);
    // Another task that `check` needs runs what this one leaves out.
    let tags =
        squeezed.split_once("excludetags(").and_then(|(_, rest)| rest.split_once(')')).map(|(tags, _)| tags);
    let whole = without_blanks(&new.to_ascii_lowercase());
    let needed = whole.split_once("tasks.check{").or_else(|| whole.split_once("check.dependson"));
    let runs_elsewhere = tags.is_some_and(|tags| whole.contains(&format!("includetags({tags})")))
        && needed.is_some_and(|(_, rest)| rest.starts_with('(') || rest.starts_with("dependson"));
    if runs_elsewhere {
        return None;
    }
    if ["tasks.test.enabled=false", "test.enabled=false", "test{enabled=false", "test{enabled(false"]
        .iter()
        .any(|sign| squeezed.contains(sign))
    {
        return Some("enabled = false");
    }
    GRADLE_SIGNS.into_iter().find(|sign| !squeezed.starts_with("//") && squeezed.contains(sign))
}

/// Finds a setting of sbt that gives a task of tests another meaning.
fn find_sbt_sign(line: &str, _: (&str, &str)) -> Option<&'static str> {
    let squeezed = without_blanks(line);
    let signs = [
        "test/test:=",
        "test/testonly:=",
        "test/skip:=true",
        "testin(test):=",
        "test:=",
        "testoptions",
        "unmanagedsourcedirectories:=nil",
        "sources:=nil",
    ];
    let sign = signs.into_iter().find(|sign| squeezed.contains(sign))?;
    let leaves_out = sign != "testoptions" || ["filter(", "exclude("].iter().any(|it| squeezed.contains(it));
    (leaves_out && !squeezed.starts_with("//")).then_some(sign)
}

/// Finds an alias of Mix that no longer runs the tests.
fn find_mix_sign(line: &str, _: (&str, &str)) -> Option<&'static str> {
    let squeezed = without_blanks(line);
    let (name, tasks) = squeezed.split_once(':')?;
    let runs = tasks.split(['"', ',', '[', ']']).any(|task| task == "test" || task.starts_with("test--"))
        || tasks.contains("\"test ");
    (name == "test" && tasks.starts_with(['[', '"', '&', 'f']) && !tasks.ends_with('[') && !runs)
        .then_some("test")
}

/// Finds a script that checks nothing in the place of the tests.
fn find_script_sign(line: &str, (old, _): (&str, &str)) -> Option<&'static str> {
    let script = |line: &str| -> Option<String> {
        let (name, command) = line.trim().strip_prefix('"')?.split_once("\":")?;
        (name == "test").then(|| command.trim().trim_matches([',', '"', '[', ']']).to_owned())
    };
    let command = script(line)?;
    let ran = old.lines().filter_map(script).any(|command| begins_with_check_words(&command));
    // A program of the project's own may run them.
    let inner = command.strip_prefix("@php").unwrap_or(&command);
    let delegates = inner.contains(['/', '.', '@'])
        || inner.contains("test")
        || inner.split_whitespace().any(|word| word == "run");
    (ran && !command.is_empty() && !delegates && !is_check_command(&command)).then_some("test")
}

/// Finds a task of Rake that replaces the tests.
fn find_rake_sign(line: &str, (old, _): (&str, &str)) -> Option<&'static str> {
    let squeezed = without_blanks(line);
    let clears =
        ["task['test']", "task[\"test\"]", "task[:test]", "task['spec']", "task[\"spec\"]", "task[:spec]"]
            .iter()
            .any(|task| squeezed.contains(&format!("{task}.clear")));
    let empties = ["task:testdo", "task:specdo", "task(:test){", "task(:test)do"]
        .iter()
        .any(|it| squeezed.starts_with(it));
    let had = ["TestTask", "RSpec::Core::RakeTask"].iter().any(|it| old.contains(it));
    (clears || empties && had).then_some("task :test")
}

fn find_maven_sign(line: &str, (old, _): (&str, &str)) -> Option<&'static str> {
    let sign = "<testSourceDirectory>";
    (line.contains("<testsourcedirectory>") && !old.contains(sign)).then_some(sign)
}

fn find_dotnet_sign(line: &str, _: (&str, &str)) -> Option<&'static str> {
    if line.contains("<istestproject>false") {
        return Some("IsTestProject");
    }
    let removed = line.split_once("<compile remove=\"")?.1.split('"').next()?.replace('\\', "/");
    let stem = removed.strip_suffix(".cs").unwrap_or(&removed);
    (is_test_file(&removed) || stem.ends_with("test") || stem.ends_with("tests")).then_some("Compile Remove")
}

/// Finds a property of a test that was there before, or a command that can't fail in its place.
fn find_ctest_sign(line: &str, (old, _): (&str, &str)) -> Option<&'static str> {
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
