//! Rules of Makefiles that run tests, and whether make ignores the failures of their commands.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::commands::begins_with_check_words;
use super::report::HonestyReport;
use crate::makefile::{MakeRule, TEST_RULES, parse_rules, parse_variables};
use crate::test_files::file_name;
use crate::unfailing_checks::UNFAILING_PROGRAMS;

/// Returns true for a Makefile.
pub(super) fn is_makefile(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    matches!(name.as_str(), "makefile" | "gnumakefile" | "bsdmakefile") || name.ends_with(".mk")
}

/// Reports rules that run tests and can no longer fail, and flags that make ignores failures by.
pub(super) fn compare_makefiles(path: &RelPath, old: &str, new: &str, report: &mut HonestyReport) {
    let (rules_before, rules_after) = (parse_rules(old), parse_rules(new));
    for name in TEST_RULES {
        let (Some(before), Some(after)) = (find_rule(&rules_before, name), find_rule(&rules_after, name))
        else {
            continue;
        };
        let could_fail = before.commands.iter().any(|command| can_fail(command));
        let ignored = after.commands.iter().find(|command| {
            let bare = strip_command_prefix(command);
            is_failure_ignored(command)
                && before
                    .commands
                    .iter()
                    .any(|it| !is_failure_ignored(it) && self::strip_command_prefix(it) == bare)
        });
        if let Some(command) = ignored {
            let message = format!("make ignores the failure of `{}`", command.trim());
            report.add_blocking(HonestyKind::FailureSwallowed, path, after.line, message);
        } else if could_fail
            && after.needs == before.needs
            && !after.commands.iter().any(|command| can_fail(command))
        {
            let message = format!("the rule `{name}` has no command any more that can fail");
            report.add_blocking(HonestyKind::ConfigurationLoosened, path, after.line, message);
        }
    }
    report_lost_tests(path, (&rules_before, &rules_after), report);
    let (words_before, words_after) = (parse_variables(old), parse_variables(new));
    let known: BTreeSet<&str> = old.lines().collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line)) {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let variable = line.split(['=', ' ', '+', ':', '?']).next().unwrap_or_default();
        let flags = line.split_once('=').map_or("", |(_, flags)| flags);
        let ignores = flags
            .split_whitespace()
            .any(|flag| matches!(flag, "-i" | "--ignore-errors" | "i" | "-n" | "-t" | "-q"));
        if variable == "MAKEFLAGS" && ignores {
            let message = format!("`{}`: make ignores all failures", line.trim());
            report.add_blocking(HonestyKind::FailureSwallowed, path, number, message);
        } else if line.starts_with('\t') {
            continue;
        } else if variable == "SHELL" && !flags.trim().is_empty() && !flags.trim().ends_with("sh")
            || variable == ".SHELLFLAGS" && flags.split_whitespace().any(|flag| flag == "-n")
        {
            let message = format!("`{}`: no command of a rule runs", line.trim());
            report.add_blocking(HonestyKind::FailureSwallowed, path, number, message);
        } else if cannot_fail(&words_after.words_of_variable(variable))
            && !cannot_fail(&words_before.words_of_variable(variable))
            && !words_before.words_of_variable(variable).is_empty()
        {
            let message = format!("`{}`: what the rules call can't fail", line.trim());
            report.add_blocking(HonestyKind::FailureSwallowed, path, number, message);
        }
    }
}

/// Reports rules of tests that no longer need another rule which is still there and runs tests.
fn report_lost_tests(
    path: &RelPath,
    (before, after): (&[MakeRule], &[MakeRule]),
    report: &mut HonestyReport,
) {
    let runs_tests = |rule: &&MakeRule| {
        rule.commands.iter().any(|command| can_fail(command) && begins_with_check_words(command))
            || TEST_RULES.contains(&rule.targets.first().map_or("", String::as_str))
    };
    let needs = |rules: &[MakeRule], name: &str| -> Vec<String> {
        let named = rules.iter().filter(|rule| rule.targets.iter().any(|target| target == name));
        named.flat_map(|rule| rule.needs.iter().cloned()).collect()
    };
    for name in TEST_RULES {
        let now = needs(after, name);
        for lost in needs(before, name).into_iter().filter(|need| !now.contains(need)) {
            let rule = after.iter().find(|rule| rule.targets.contains(&lost)).filter(runs_tests);
            let is_named = |text: &String| {
                text.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).any(|word| word == lost)
            };
            let others = after.iter().filter(|rule| !rule.targets.contains(&lost));
            let is_elsewhere = others
                .into_iter()
                .any(|rule| rule.needs.contains(&lost) || rule.commands.iter().any(is_named));
            if let Some(rule) = rule.filter(|_| !is_elsewhere) {
                let message = format!("the rule `{name}` no longer runs `{lost}`");
                report.add_blocking(HonestyKind::ConfigurationLoosened, path, rule.line, message);
            }
        }
    }
}

/// Returns true if these are the words of a program that succeeds whatever its arguments are.
fn cannot_fail(words: &[String]) -> bool {
    words.first().is_some_and(|program| UNFAILING_PROGRAMS.contains(&program.as_str()))
}

/// Returns the rule with this name that has commands.
fn find_rule<'r>(rules: &'r [MakeRule], name: &str) -> Option<&'r MakeRule> {
    let rule = rules.iter().find(|rule| rule.targets.iter().any(|target| target == name))?;
    (!rule.commands.is_empty()).then_some(rule)
}

fn strip_command_prefix(command: &str) -> &str {
    command.trim_start_matches(['@', '-', '+', ' '])
}

/// Returns true for a command whose failure make ignores.
fn is_failure_ignored(command: &str) -> bool {
    let signs = command.len() - command.trim_start_matches(['@', '-', '+', ' ']).len();
    command.get(..signs).is_some_and(|signs| signs.contains('-'))
}

fn can_fail(command: &str) -> bool {
    let program = strip_command_prefix(command).split_whitespace().next().unwrap_or(":");
    !is_failure_ignored(command) && !program.starts_with('#') && !UNFAILING_PROGRAMS.contains(&program)
}
