//! Rules of Makefiles that run tests, and whether make ignores the failures of their commands.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::report::HonestyReport;
use crate::makefile::{MakeRule, TEST_RULES, parse_rules};
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
        }
    }
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
