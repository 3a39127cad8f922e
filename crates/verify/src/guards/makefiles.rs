//! Rules of Makefiles that run tests, by what make does with their commands.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};

use super::report::Report;
use crate::test_files::is_test_file;
use crate::unfailing::UNFAILING_PROGRAMS;

/// Names of rules that run tests.
const TEST_RULES: [&str; 8] = ["test", "tests", "check", "verify", "ci", "unit", "unittest", "run-tests"];
/// Variables whose flags reach each compiler.
const COMPILER_FLAGS: [&str; 4] = ["CFLAGS", "CPPFLAGS", "CXXFLAGS", "CDEFS"];

/// Returns true for a Makefile.
pub(super) fn is_makefile(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name).to_ascii_lowercase();
    matches!(name.as_str(), "makefile" | "gnumakefile" | "bsdmakefile") || name.ends_with(".mk")
}

/// A rule of a Makefile.
struct Rule<'t> {
    line: u32,
    needs: &'t str,
    commands: Vec<&'t str>,
}

/// Reports rules that run tests and can't fail any more, and assertions that are compiled away.
pub(super) fn compare_makefiles(path: &RelPath, old: &str, new: &str, report: &mut Report) {
    for name in TEST_RULES {
        let (Some(before), Some(after)) = (rule(old, name), rule(new, name)) else { continue };
        let could_fail = before.commands.iter().any(|command| can_fail(command));
        let ignored = after.commands.iter().find(|command| {
            let bare = bare(command);
            is_ignored(command) && before.commands.iter().any(|it| !is_ignored(it) && self::bare(it) == bare)
        });
        if let Some(command) = ignored {
            let message = format!("make ignores the failure of `{}`", command.trim());
            report.block(HonestyKind::FailureSwallowed, path, after.line, message);
        } else if could_fail
            && after.needs == before.needs
            && !after.commands.iter().any(|command| can_fail(command))
        {
            let message = format!("the rule `{name}` has no command any more that can fail");
            report.block(HonestyKind::ConfigurationLoosened, path, after.line, message);
        }
    }
    let known: BTreeSet<&str> = old.lines().collect();
    for (at, line) in new.lines().enumerate().filter(|(_, line)| !known.contains(line)) {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let variable = line.split(['=', ' ', '+', ':', '?']).next().unwrap_or_default();
        let builds_tests = COMPILER_FLAGS.contains(&variable)
            || line.split_whitespace().any(|word| word.contains('.') && is_test_file(word));
        if line.contains("-DNDEBUG") && !old.contains("NDEBUG") && builds_tests {
            let message = format!("`{}` compiles assertions away", line.trim());
            report.block(HonestyKind::ConfigurationLoosened, path, number, message);
        }
        let flags = line.split_once('=').map_or("", |(_, flags)| flags);
        let ignores = flags
            .split_whitespace()
            .any(|flag| matches!(flag, "-i" | "--ignore-errors" | "i" | "-n" | "-t" | "-q"));
        if variable == "MAKEFLAGS" && ignores {
            let message = format!("`{}`: make ignores all failures", line.trim());
            report.block(HonestyKind::FailureSwallowed, path, number, message);
        }
    }
}

/// Returns the rule with this name and commands of its own.
fn rule<'t>(text: &'t str, name: &str) -> Option<Rule<'t>> {
    let mut lines = text.lines().enumerate();
    let (at, needs) = lines.find_map(|(at, line)| {
        let (targets, needs) = line.split_once(':')?;
        let is_named = !line.starts_with(['\t', '.']) && targets.split_whitespace().any(|it| it == name);
        (is_named && !needs.contains('=')).then_some((at, needs.trim()))
    })?;
    let commands: Vec<&str> =
        lines.map(|(_, line)| line).take_while(|line| line.starts_with('\t')).map(str::trim).collect();
    let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
    (!commands.is_empty()).then_some(Rule { line, needs, commands })
}

fn bare(command: &str) -> &str {
    command.trim_start_matches(['@', '-', '+', ' '])
}

/// Returns true for a command whose failure make ignores.
fn is_ignored(command: &str) -> bool {
    let signs = command.len() - command.trim_start_matches(['@', '-', '+', ' ']).len();
    command.get(..signs).is_some_and(|signs| signs.contains('-'))
}

fn can_fail(command: &str) -> bool {
    let program = bare(command).split_whitespace().next().unwrap_or(":");
    !is_ignored(command) && !program.starts_with('#') && !UNFAILING_PROGRAMS.contains(&program)
}
