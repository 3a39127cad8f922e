//! Finds checks that pass whatever the files hold, as far as their text shows.

use journeyman_syntax::shell::{self, SimpleCommand, Statement};

use crate::makefile::{MAKEFILE_NAMES, parse_rules};

/// Programs that succeed whatever their arguments are.
pub(crate) const UNFAILING_PROGRAMS: [&str; 7] = ["true", ":", "echo", "printf", "pwd", "date", "sleep"];
/// Programs that pass their input on, and succeed whatever the input is: as the last program of a
/// pipeline they hide the failure of the others.
const PASS_THROUGH_PROGRAMS: [&str; 4] = ["tee", "cat", "head", "tail"];
/// Maximum number of rules and scripts that are followed from one to the next.
const MAX_SCRIPT_DEPTH: usize = 4;

/// Returns true if the command can't fail. `read` reads a file of the command's directory, for the
/// rule or the script that the command names.
pub(crate) fn cannot_fail(command: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    cannot_fail_within(command, read, MAX_SCRIPT_DEPTH)
}

fn cannot_fail_within(command: &str, read: &dyn Fn(&str) -> Option<String>, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    // The shell's result is that of the last command; what comes before `&&` can still fail.
    let separator =
        [";", "||", "\n"].iter().filter_map(|it| command.trim_end().rfind(it).map(|at| at + it.len())).max();
    if let Some(last) = separator.and_then(|at| command.get(at..)).filter(|last| !last.trim().is_empty())
        && cannot_fail_within(last, read, depth)
    {
        return true;
    }
    let script = shell::parse(command);
    script.unclear.is_none()
        && separator.is_none()
        && !script.statements.is_empty()
        && script.statements.iter().all(|statement| statement_cannot_fail(statement, read, depth))
}

fn statement_cannot_fail(statement: &Statement, read: &dyn Fn(&str) -> Option<String>, depth: usize) -> bool {
    match statement {
        Statement::Simple(simple) => simple_cannot_fail(simple, read, depth),
        Statement::Pipeline(parts) => match parts.last() {
            Some(Statement::Simple(last)) => {
                program_of(last).is_some_and(|name| PASS_THROUGH_PROGRAMS.contains(&name))
                    || simple_cannot_fail(last, read, depth)
            }
            _ => false,
        },
        Statement::Compound(_) | Statement::Function { .. } => false,
    }
}

fn program_of(simple: &SimpleCommand) -> Option<&str> {
    simple.words.first().filter(|word| word.known).map(|word| word.text.as_str())
}

fn simple_cannot_fail(simple: &SimpleCommand, read: &dyn Fn(&str) -> Option<String>, depth: usize) -> bool {
    let words: Option<Vec<&str>> =
        simple.words.iter().map(|word| word.known.then_some(word.text.as_str())).collect();
    match (program_of(simple), words.as_deref()) {
        (Some(program), _) if UNFAILING_PROGRAMS.contains(&program) => simple.redirects.is_empty(),
        (_, Some(["exit", "0"])) => true,
        (_, Some(["make", target])) => make_cannot_fail(target, read, depth),
        (_, Some(["npm" | "pnpm" | "yarn" | "bun", "run", script] | ["npm" | "pnpm" | "yarn", script])) => {
            script_cannot_fail(script, read, depth)
        }
        _ => false,
    }
}

/// Returns true if the rule of `target` has commands, none of which can fail, and no prerequisites.
fn make_cannot_fail(target: &str, read: &dyn Fn(&str) -> Option<String>, depth: usize) -> bool {
    let Some(makefile) = MAKEFILE_NAMES.iter().find_map(|name| read(name)) else { return false };
    let rules = parse_rules(&makefile);
    let mut named = rules.iter().filter(|rule| rule.targets.iter().any(|name| name == target)).peekable();
    named.peek().is_some()
        && named.all(|rule| {
            rule.needs.is_empty()
                && !rule.commands.is_empty()
                && rule.commands.iter().all(|command| {
                    let command = command.trim_start_matches(['@', '+']);
                    // make ignores the failure of a command after `-`; its variables are make's
                    // own.
                    command.starts_with('-')
                        || (!command.contains('$') && cannot_fail_within(command, read, depth))
                })
        })
}

fn script_cannot_fail(name: &str, read: &dyn Fn(&str) -> Option<String>, depth: usize) -> bool {
    let manifest =
        read("package.json").and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let script = manifest.as_ref().and_then(|manifest| manifest.get("scripts")?.get(name)?.as_str());
    script.is_some_and(|script| cannot_fail_within(script, read, depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_always_passes_is_told_from_one_that_can_fail() {
        let read = |name: &str| {
            match name {
            "Makefile" => Some(
                "all: test\n\ttrue\ntest:\n\t@echo ok\nignored:\n\t-cargo test\nreal:\n\t@echo x\n\tsh t.sh\nempty:\n"
                    .to_owned(),
            ),
            "package.json" => Some(
                "{\"scripts\": {\"test\": \"echo none && exit 0\", \"lint\": \"eslint .\", \"no\": \"echo x && exit 1\"}}"
                    .to_owned(),
            ),
            _ => None,
        }
        };
        for command in [
            "true",
            ":",
            "echo done",
            "exit 0",
            "make check || true",
            "pytest; true",
            "cargo test | tee log",
            "make test",
            "make ignored",
            "npm test",
            "npm run test",
            "true && echo ok",
            "pytest || echo failed",
        ] {
            assert!(cannot_fail(command, &read), "{command}");
        }
        for command in [
            "false",
            "cargo test",
            "make real",
            "make all",
            "make empty",
            "make missing",
            "npm run lint",
            "npm run no",
            "true && cargo test",
            "cargo test && true",
            "exit 1",
            "sh -c 'true'",
            "true | grep x",
            "echo x > /proc/1/mem",
            "test -f a; pytest",
            "$CHECK",
            "true || cargo test; cargo test",
            "",
        ] {
            assert!(!cannot_fail(command, &read), "{command}");
        }
    }
}
