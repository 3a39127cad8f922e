//! Files of named commands, read as text: Makefiles, justfiles and Taskfiles. Nothing is executed
//! to learn the names.

use std::collections::BTreeMap;

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;
use crate::makefile::{DEFAULT_TARGET, MAKEFILE_NAMES, MakeRule, parse_rules, parse_variables};

/// Endings of C and C++ sources, whose build is a check where there are no tests.
const COMPILED_ENDINGS: [&[u8]; 5] = [b".c", b".cc", b".cpp", b".cxx", b".C"];

/// A program that runs named commands of a file.
struct TargetRunner {
    /// The program, which is also the ecosystem's name in evidence.
    program: &'static str,
    /// The file, in words.
    file: &'static str,
    /// The place from which to get the program.
    source: &'static str,
}

const MAKE_RUNNER: TargetRunner =
    TargetRunner { program: "make", file: "Makefile", source: "a package `make`" };
const JUST_RUNNER: TargetRunner =
    TargetRunner { program: "just", file: "justfile", source: "https://just.systems" };
const TASK_RUNNER: TargetRunner =
    TargetRunner { program: "task", file: "Taskfile", source: "https://taskfile.dev" };

/// The names that Task looks for, in its order.
const TASKFILE_NAMES: [&str; 8] = [
    "Taskfile.yml",
    "taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yaml",
    "Taskfile.dist.yml",
    "taskfile.dist.yml",
    "Taskfile.dist.yaml",
    "taskfile.dist.yaml",
];

/// Commands by their names, each with the names of the commands that it runs first.
type Targets = BTreeMap<String, Vec<String>>;

/// Finds the checks of the first of these files that has any. Beside another build system such a
/// file mostly calls that system, so with `tested` the checks are listed and not run.
pub(super) fn find_checks(place: &ProjectDirectory<'_>, tested: bool) -> Vec<Check> {
    let read = |names: &[&str]| names.iter().find_map(|name| place.read(name));
    let files: [(TargetRunner, Option<Targets>); 3] = [
        (MAKE_RUNNER, read(&MAKEFILE_NAMES).map(|text| targets_of_makefile(place, &text))),
        (JUST_RUNNER, read(&["justfile", "Justfile", ".justfile"]).map(|text| parse_justfile(&text))),
        (TASK_RUNNER, read(&TASKFILE_NAMES).map(|text| parse_taskfile(&text))),
    ];
    let mut tested = tested;
    let mut checks = Vec::new();
    for (runner, targets) in files {
        let Some(targets) = targets else { continue };
        let found = checks_of_targets(place, &runner, &targets);
        checks.extend(found.into_iter().map(|check| match tested {
            true => check.with_unasked("another runner tests this directory, which this mostly calls"),
            false => check,
        }));
        tested |= checks.iter().any(|check: &Check| check.kind == CheckKind::Test);
    }
    checks
}

/// Returns the checks of `check`, which GNU reserves for a project's self-tests, and `test`; only
/// one of them if it runs the other. Without them, returns the build of C and C++ sources.
fn checks_of_targets(place: &ProjectDirectory<'_>, runner: &TargetRunner, targets: &Targets) -> Vec<Check> {
    let TargetRunner { program, file, source } = runner;
    let check_of = |target: &str, kind| {
        let why = format!("the {file} has a target `{target}`");
        place.new_check(kind, program, format!("{program} {target}"), why)
    };
    let get = |name: &str| targets.get(name);
    let runs = |needs: &[String], target: &str| needs.iter().any(|name| name == target);
    let lint = get("lint").map(|_| check_of("lint", CheckKind::Lint));
    let mut checks = match (
        get("check"),
        get("test").map(|needs| ("test", needs)).or(get("tests").map(|needs| ("tests", needs))),
    ) {
        (Some(check), Some((test, _))) if runs(check, test) => vec![check_of("check", CheckKind::Test)],
        (Some(_), Some((test, needs))) if runs(needs, "check") => vec![check_of(test, CheckKind::Test)],
        (Some(_), Some((test, _))) => {
            vec![check_of("check", CheckKind::Lint), check_of(test, CheckKind::Test)]
        }
        (Some(_), None) => vec![check_of("check", CheckKind::Test)],
        (None, Some((test, _))) => vec![check_of(test, CheckKind::Test)],
        (None, None) => Vec::new(),
    };
    let covered =
        |name: &str| ["check", "test", "tests"].into_iter().filter_map(get).any(|needs| runs(needs, name));
    if !covered("lint") && *program != MAKE_RUNNER.program {
        checks.extend(lint);
    }
    let compiled = |path: &[u8]| COMPILED_ENDINGS.iter().any(|ending| path.ends_with(ending));
    if checks.is_empty()
        && *program == MAKE_RUNNER.program
        && !targets.is_empty()
        && place.files().any(compiled)
    {
        let why = format!("the {file} builds C or C++ and has no target for tests");
        checks.push(place.new_check(CheckKind::Build, program, *program, why));
    }
    checks.into_iter().map(|check| place.block_without_program(program, source, check)).collect()
}

/// Returns the rules of a Makefile with their prerequisites, and those of the Makefiles in other
/// directories to which it passes on what it has no rule for.
fn targets_of_makefile(place: &ProjectDirectory<'_>, makefile: &str) -> Targets {
    let rules = parse_rules(makefile);
    let mut found = targets_of_rules(&rules);
    let defaults = rules.iter().filter(|rule| rule.targets.iter().any(|target| target == DEFAULT_TARGET));
    let passes_on = |command: &&String| command.contains("$@") && command.to_lowercase().contains("make");
    let commands: Vec<&String> = defaults.flat_map(|rule| &rule.commands).filter(passes_on).collect();
    let variables = (!commands.is_empty()).then(|| parse_variables(makefile));
    for word in variables.iter().flat_map(|it| commands.iter().flat_map(|line| it.expand_words(line))) {
        let directory = word.trim_end_matches([';', '/']);
        let texts = MAKEFILE_NAMES.iter().find_map(|name| place.read(&format!("{directory}/{name}")));
        for (target, needs) in texts.iter().flat_map(|text| targets_of_rules(&parse_rules(text))) {
            found.entry(target).or_insert(needs);
        }
    }
    found
}

/// Returns the targets of rules with their prerequisites.
fn targets_of_rules(rules: &[MakeRule]) -> Targets {
    let mut found = Targets::new();
    for rule in rules {
        for target in &rule.targets {
            found.entry(target.clone()).or_default().extend(rule.needs.iter().cloned());
        }
    }
    found
}

/// Returns the recipes of a justfile that can be called without arguments, with their dependencies.
fn parse_justfile(justfile: &str) -> Targets {
    let mut found = Targets::new();
    for line in justfile.lines().filter(|line| !line.starts_with(['\t', '#', ' ', '['])) {
        let Some((head, rest)) = line.split_once(':') else { continue };
        if rest.starts_with('=') {
            continue;
        }
        let mut words = head.split_whitespace();
        let Some(name) = words.next().map(|name| name.trim_start_matches('@')) else { continue };
        // A parameter without a default needs an argument; a variadic one needs none.
        let callable = words.all(|word| word.contains('=') || word.starts_with('*'));
        if callable && !["set", "alias", "export", "import", "mod"].contains(&name) {
            let rest = rest.split('#').next().unwrap_or_default();
            let names = rest.split_whitespace().filter(|word| *word != "&&").map(str::to_owned);
            found.insert(name.to_owned(), names.collect());
        }
    }
    found
}

/// Returns the tasks of a Taskfile with the tasks that they depend on. A line by line reading of
/// its YAML: a task is a key one level beneath `tasks`.
fn parse_taskfile(taskfile: &str) -> Targets {
    let mut found = Targets::new();
    let mut lines = taskfile
        .lines()
        .skip_while(|line| line.split('#').next().unwrap_or(line).trim_end() != "tasks:")
        .skip(1)
        .peekable();
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let is_text = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut level = None;
    let mut current: Option<String> = None;
    let mut in_dependencies = false;
    while let Some(line) = lines.next_if(|line| !is_text(line) || indent_of(line) > 0) {
        if !is_text(line) {
            continue;
        }
        let level = *level.get_or_insert(indent_of(line));
        let text = line.trim();
        if indent_of(line) == level {
            let Some((name, _)) = text.split_once(':') else { continue };
            let name = name.trim_matches(['"', '\'']).to_owned();
            found.entry(name.clone()).or_default();
            (current, in_dependencies) = (Some(name), false);
            continue;
        }
        let Some(needs) = current.as_ref().and_then(|name| found.get_mut(name)) else { continue };
        if let Some(rest) = text.strip_prefix("deps:") {
            in_dependencies = true;
            let names = rest.trim().trim_matches(['[', ']']).split(',').map(str::trim);
            needs.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
        } else if let Some(item) = text.strip_prefix("- ").filter(|_| in_dependencies) {
            needs.push(item.trim_start_matches("task:").trim().to_owned());
        } else if let Some(task) = text.strip_prefix("- task:") {
            needs.push(task.trim().to_owned());
        } else if !text.starts_with('-') {
            in_dependencies = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(targets: &Targets, name: &str) -> Option<String> {
        targets.get(name).map(|names| names.join(" "))
    }

    #[test]
    fn rules_are_told_from_what_looks_like_them() {
        let makefile =
            "test := 1\ncheck: lint test # all\n.PHONY: test\nall test2:\n\ttest: no\nfoo=test:1\n";
        let rules = targets_of_rules(&parse_rules(makefile));
        let cases = [
            ("check", Some("lint test")),
            ("test", None),
            ("all", Some("")),
            ("test2", Some("")),
            ("foo", None),
        ];
        for (target, expected) in cases {
            assert_eq!(needs(&rules, target).as_deref(), expected, "{target}");
        }
        assert_eq!(needs(&targets_of_rules(&parse_rules("test::\n\tx\n")), "test").as_deref(), Some(""));
    }

    #[test]
    fn recipes_are_told_from_settings() {
        let justfile = "set shell := ['sh']\nx := 'test: a'\nalias t := test\n# a: comment\n[private]\n@test *args: build\n    cargo test\ncheck name:\n    x {{name}}\nlint level='1': fmt && done # why\n";
        let recipes = parse_justfile(justfile);
        let cases =
            [("test", Some("build")), ("check", None), ("lint", Some("fmt done")), ("t", None), ("x", None)];
        for (name, expected) in cases {
            assert_eq!(needs(&recipes, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn tasks_are_keys_beneath_tasks() {
        let taskfile = "version: '3'\n\nvars:\n  test: no\n\ntasks: # why\n  # all\n  check:\n    deps: [lint, test]\n  'test':\n    cmds:\n      - go test ./...\n      - task: after\n  lint:\n    deps:\n      - task: one\n      - two\n    cmds:\n      - three\n\nother:\n  no: 1\n";
        let found = parse_taskfile(taskfile);
        let cases = [
            ("check", Some("lint test")),
            ("test", Some("after")),
            ("lint", Some("one two")),
            ("deps", None),
            ("no", None),
        ];
        for (name, expected) in cases {
            assert_eq!(needs(&found, name).as_deref(), expected, "{name}: {found:?}");
        }
    }
}
