//! Hard rules of the project's instructions, as rules of a policy and as checks.
//!
//! "Never touch `vendor/`" in an `AGENTS.md` is a request to a model. As a rule it holds for the
//! tools that write, and for commands that name what they write. Reading stays allowed, and so do
//! builds and generators that write the files without naming them.

use std::path::{Path, PathBuf};

use journeyman_policy::{RuleLayer, Rules};
use journeyman_protocol::RelPath;
use journeyman_workspace::{FileBody, ListOptions, StatKind, Workspace};

use super::query::list_check_commands;
use crate::checks::MAX_SEARCHED_FILES;
use crate::config::{Environment, insert_config_line, save_project_rules};
use crate::state::StateDirs;
use crate::{Context as _, HostError, load_assuming_trust};

/// The instruction files that are read.
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Maximum bytes of such a file.
const MAX_INSTRUCTION_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of such files that are read.
const MAX_INSTRUCTION_FILES: usize = 40;
/// Maximum rules of all files together.
const MAX_HARD_RULES: usize = 50;
/// Words that forbid, and verbs of what they forbid.
const FORBIDDING_WORDS: [&str; 9] = [
    "never",
    "do not",
    "don't",
    "must not",
    "mustn't",
    "must never",
    "should not",
    "should never",
    "may not",
];
const CHANGING_VERBS: [&str; 9] =
    ["touch", "edit", "modify", "change", "write to", "write", "delete", "remove", "alter"];
const RUNNING_VERBS: [&str; 5] = ["run", "execute", "invoke", "call", "use"];
/// Phrases that forbid changes of the paths named in the line.
const PROTECTING_PHRASES: [&str; 10] = [
    "not be touched",
    "not be edited",
    "not be modified",
    "not be changed",
    "not be deleted",
    "not be removed",
    "never be changed",
    "read-only",
    "hands off",
    "keep out of",
];
/// Words that allow the change after a question.
const CONDITIONAL_PHRASES: [&str; 5] =
    ["without asking", "unless", "ask before", "ask first", "without permission"];
/// Words of a condition that no rule can have: "without tests", "when it is released".
const CONDITIONS: [&str; 5] = [" without tests", " without a ", " without an ", " when ", " while "];
/// Ends of clauses.
const CLAUSE_ENDS: [&str; 5] = ["; ", " instead", " but ", " rather ", ". "];
/// Words that begin a clause of its own after a comma.
const CLAUSE_VERBS: [&str; 14] = [
    "change",
    "use",
    "edit",
    "put",
    "add",
    "make",
    "write",
    "run",
    "call",
    "regenerate",
    "prefer",
    "see",
    "but",
    "instead",
];
/// Words that demand a command.
const DEMANDING_PHRASES: [&str; 3] = ["always run", "must run", "always execute"];
/// Words after "before" that mean the end of a task.
const TASK_END_PHRASES: [&str; 9] =
    ["you ", "finish", "commit", "submit", "push", "stop", "opening", "done", "complet"];

/// A hard rule that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardRule {
    /// The file that has it.
    pub file: String,
    /// Its line, 1-based.
    pub line: usize,
    /// Its demand.
    pub demand: RuleDemand,
}

/// The demand of a hard rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleDemand {
    /// These paths may not be changed, or a person is asked.
    Protect {
        /// The patterns of the paths.
        paths: Vec<String>,
        /// True if the rule allows it to whoever asks.
        asks: bool,
    },
    /// The command that begins with these words may not run.
    Forbid(Vec<String>),
    /// This command verifies every change.
    Check(String),
}

impl HardRule {
    /// Returns the rule as a `[[rule]]` of a `policy.toml`; `None` for a check.
    #[must_use]
    pub fn to_toml(&self) -> Option<String> {
        let list = |texts: &[String]| {
            texts.iter().map(|text| quote_toml_string(text)).collect::<Vec<_>>().join(", ")
        };
        let reason = quote_toml_string(&format!("{}:{} forbids it", self.file, self.line));
        match &self.demand {
            RuleDemand::Protect { paths, asks } => {
                let decision = if *asks { "ask" } else { "deny" };
                Some(format!(
                    "[[rule]]\nwrites = [{}]\ndecision = \"{decision}\"\nreason = {reason}\n",
                    list(paths)
                ))
            }
            RuleDemand::Forbid(words) => {
                let words = list(words);
                Some(format!("[[rule]]\ncommand = [{words}]\ndecision = \"deny\"\nreason = {reason}\n"))
            }
            RuleDemand::Check(_) => None,
        }
    }
}

fn quote_toml_string(text: &str) -> String {
    let escaped: String = text
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("\"{escaped}\"")
}

/// A line with a demand that no rule can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpromotedLine {
    /// The file that has it.
    pub file: String,
    /// Its line, 1-based.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// The reason.
    pub reason: &'static str,
}

const NO_PATH: &str = "it names no path (in backticks, or as in `vendor/`) or has a condition";
const ONE_DIRECTORY: &str =
    "a command is forbidden or run for the whole project, and this file is of one directory";

/// Finds the hard rules of a text, and the lines with demands that no rule can be made of. The text
/// holds beneath `directory`, which is empty for the root. `find` returns `None` for a missing
/// path, else true for a directory.
fn find_hard_rules(
    (file, directory): (&str, &str),
    text: &str,
    find: &dyn Fn(&str) -> Option<bool>,
) -> (Vec<HardRule>, Vec<UnpromotedLine>) {
    let (mut rules, mut unpromoted) = (Vec::new(), Vec::new());
    let beneath = |path: &str| format!("{directory}/{path}");
    let find_from_directory = |path: &str| match directory {
        "" => find(path),
        _ => find(&beneath(path)).or_else(|| find(path)),
    };
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if in_code || fence {
            continue;
        }
        let reason = match parse_demand(line, &find_from_directory) {
            None => continue,
            Some(RuleDemand::Protect { paths, .. }) if paths.is_empty() => NO_PATH,
            Some(RuleDemand::Protect { paths, asks }) => {
                let paths = paths.into_iter().map(|path| from_root(directory, path, find)).collect();
                let demand = RuleDemand::Protect { paths, asks };
                rules.push(HardRule { file: file.to_owned(), line: number + 1, demand });
                continue;
            }
            Some(_) if !directory.is_empty() => ONE_DIRECTORY,
            Some(demand) => {
                rules.push(HardRule { file: file.to_owned(), line: number + 1, demand });
                continue;
            }
        };
        if unpromoted.len() < MAX_HARD_RULES {
            let text = line.trim().to_owned();
            unpromoted.push(UnpromotedLine { file: file.to_owned(), line: number + 1, text, reason });
        }
    }
    (rules, unpromoted)
}

/// Returns a pattern of instructions of a directory from the root on. It is from there already if
/// only the root has such a path.
fn from_root(directory: &str, pattern: String, find: &dyn Fn(&str) -> Option<bool>) -> String {
    let path = pattern.trim_end_matches("/**");
    // `web/dist/` in a file of `web` needn't be there yet.
    let names_own = path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let is_of_root = || {
        path.contains('/')
            && find(&format!("{directory}/{path}")).is_none()
            && (names_own || find(path).is_some())
    };
    if directory.is_empty() || is_of_root() { pattern } else { format!("{directory}/{pattern}") }
}

/// Returns the demand of a line, if it has one. A protection may be without paths.
fn parse_demand(line: &str, find: &dyn Fn(&str) -> Option<bool>) -> Option<RuleDemand> {
    let simple = |text: &str| text.to_lowercase().replace('\u{2019}', "'");
    let forbids = |clause: &&str| {
        let lower = simple(clause);
        let is_left_alone = lower.contains("leave ") && lower.contains(" alone");
        has_prohibition(&lower, &CHANGING_VERBS)
            || is_left_alone
            || PROTECTING_PHRASES.iter().any(|words| lower.contains(words))
    };
    let lower = simple(line);
    let quoted = find_quoted_parts(line);
    let clauses = split_clauses(line);
    if clauses.iter().any(forbids) {
        return Some(parse_protection(line, &clauses, &forbids, find));
    }
    let command = *quoted.first().filter(|command| command.contains(char::is_alphabetic))?;
    if has_prohibition(&lower, &RUNNING_VERBS) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let is_command = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        // "Never use `unwrap`" speaks of code.
        let runs = words.len() > 1 || !lower.contains("use ") && !lower.contains("call ");
        return (runs && is_command(words.first()?)).then_some(RuleDemand::Forbid(words));
    }
    has_command_demand(&lower).then(|| RuleDemand::Check(command.to_owned()))
}

/// Returns what the clauses that forbid changes protect: no path if one of them names none, or has
/// a condition that no rule can have.
fn parse_protection(
    line: &str,
    clauses: &[&str],
    forbids: &dyn Fn(&&str) -> bool,
    find: &dyn Fn(&str) -> Option<bool>,
) -> RuleDemand {
    let line = line.to_lowercase();
    let asks = CONDITIONAL_PHRASES.iter().any(|words| line.contains(words));
    let (mut paths, mut before) = (Vec::new(), "");
    for clause in clauses {
        if forbids(clause) {
            // "Generated: `a.rs`. Do not edit it." names its path before.
            let part = if names_path(clause, find) { clause } else { before };
            let lower = part.to_lowercase();
            let quoted = find_quoted_parts(part);
            let own: Vec<String> = match quoted.is_empty() {
                true => {
                    part.split_whitespace().filter_map(|word| unquoted_path_pattern(word, find)).collect()
                }
                false => quoted.iter().filter_map(|part| quoted_path_pattern(part, &lower, find)).collect(),
            };
            let has_condition = CONDITIONS.iter().any(|words| clause.to_lowercase().contains(words));
            if own.is_empty() || has_condition {
                return RuleDemand::Protect { paths: Vec::new(), asks: false };
            }
            paths.extend(own);
        }
        before = clause;
    }
    RuleDemand::Protect { paths, asks }
}

/// Splits a line where it stops to speak of the same: "never edit `dist/`; change `src/` instead".
fn split_clauses(line: &str) -> Vec<&str> {
    let mut ends: Vec<usize> =
        CLAUSE_ENDS.iter().flat_map(|end| line.match_indices(end).map(|(at, end)| at + end.len())).collect();
    // A comma parts clauses where something else is to be done.
    ends.extend(line.match_indices(", ").filter_map(|(at, comma)| {
        let next = line.get(at + comma.len()..)?.split_whitespace().next()?.to_lowercase();
        CLAUSE_VERBS.contains(&next.as_str()).then_some(at + comma.len())
    }));
    ends.sort_unstable();
    ends.dedup();
    let mut clauses = Vec::new();
    let mut start = 0;
    for end in ends.into_iter().chain([line.len()]) {
        clauses.extend(line.get(start..end).filter(|clause| !clause.trim().is_empty()));
        start = end;
    }
    clauses
}

/// Returns true if a clause names a path, in backticks or without.
fn names_path(clause: &str, find: &dyn Fn(&str) -> Option<bool>) -> bool {
    !find_quoted_parts(clause).is_empty()
        || clause.split_whitespace().any(|word| unquoted_path_pattern(word, find).is_some())
}

/// Returns true if a line demands that a command is run, or that it passes.
fn has_command_demand(lower: &str) -> bool {
    let at_the_end = || {
        let mut before = lower.match_indices("before ").filter_map(|(at, word)| lower.get(at + word.len()..));
        before.any(|after| TASK_END_PHRASES.iter().any(|end| after.starts_with(end)))
    };
    let after_changes =
        || ["after every", "after each", "after any"].iter().any(|words| lower.contains(words));
    DEMANDING_PHRASES.iter().any(|words| lower.contains(words))
        || lower.contains("run `") && (at_the_end() || after_changes())
        || lower.contains("` passes")
        || lower.contains("` must pass")
}

fn has_prohibition(lower: &str, verbs: &[&str]) -> bool {
    FORBIDDING_WORDS.iter().any(|no| {
        lower.match_indices(no).any(|(at, _)| {
            let after = lower.get(at + no.len()..).unwrap_or_default().trim_start();
            let after = after.strip_prefix("ever ").unwrap_or(after);
            verbs.iter().any(|verb| after.strip_prefix(verb).is_some_and(|rest| rest.starts_with([' ', ':'])))
        })
    })
}

/// Returns the parts of a line in backticks.
fn find_quoted_parts(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns the pattern of a path in backticks: of a directory with everything beneath it, of a name
/// alone in every directory; `None` for what is no path.
fn quoted_path_pattern(text: &str, lower: &str, find: &dyn Fn(&str) -> Option<bool>) -> Option<String> {
    let text = text.trim_start_matches("./");
    let found = find(text.trim_end_matches('/'));
    let looks = (text.contains(['/', '.', '*']) || found.is_some())
        && !text.contains(char::is_whitespace)
        && !text.starts_with(['/', '~'])
        && !text.contains("..");
    if !looks {
        return None;
    }
    let is_ending = text.starts_with('.') && found.is_none() && lower.contains(" ending");
    Some(match text.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None if found == Some(true) => format!("{text}/**"),
        None if is_ending => format!("**/*{text}"),
        None if !text.contains('/') => format!("**/{text}"),
        None => text.to_owned(),
    })
}

/// Returns the pattern of a path that is written without backticks: one that is there, or that ends
/// like a directory.
fn unquoted_path_pattern(word: &str, find: &dyn Fn(&str) -> Option<bool>) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_'));
    let path = word.trim_end_matches('.').trim_start_matches("./");
    let is_path =
        path.ends_with('/') || path.contains(['/', '.']) && find(path.trim_end_matches('/')).is_some();
    is_path.then(|| quoted_path_pattern(path, "", find)).flatten()
}

/// The hard rules of a project's instruction files, ready to be written as policy rules and checks.
#[derive(Debug)]
pub struct Promotion {
    root: PathBuf,
    /// The rules, in the order of the files.
    pub rules: Vec<HardRule>,
    /// The lines with demands that are no rules.
    pub unpromoted: Vec<UnpromotedLine>,
    /// Further files and rules that are left out, each with the reason.
    pub left_out: Vec<String>,
    /// The checks of the project as it is.
    checks: Vec<String>,
    /// True if the project's configuration names checks already.
    has_own_checks: bool,
}

impl Promotion {
    /// Finds the hard rules of the instructions of the project at `root`.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be opened.
    pub fn from_instructions(
        environment: &Environment,
        state: &StateDirs,
        root: &Path,
    ) -> Result<Self, HostError> {
        let workspace = state.open_workspace(root)?;
        let find = |path: &str| {
            let found = workspace.stat(&RelPath::parse(path).ok()?).ok().flatten()?;
            Some(found.kind == StatKind::Directory)
        };
        let (mut rules, mut unpromoted) = (Vec::new(), Vec::new());
        let (files, mut left_out) = instruction_files(&workspace)?;
        for path in files {
            let file = path.to_string();
            let text = match workspace.read(&path, MAX_INSTRUCTION_FILE_BYTES).map(|content| content.body) {
                Ok(FileBody::Text(text)) => text.text,
                Ok(_) => {
                    left_out.push(format!("{file} is no text, or too long"));
                    continue;
                }
                Err(error) => {
                    left_out.push(format!("{file} can't be read: {error}"));
                    continue;
                }
            };
            let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
            let (found, left) = find_hard_rules((&file, directory), &text, &find);
            rules.extend(found);
            unpromoted.extend(left);
        }
        if let Some(more) = rules.len().checked_sub(MAX_HARD_RULES).filter(|more| *more > 0) {
            left_out.push(format!("{more} more rules: at most {MAX_HARD_RULES} are made"));
            rules.truncate(MAX_HARD_RULES);
        }
        let config = load_assuming_trust(environment, root)?;
        let has_own_checks = config.checks.is_some();
        let checks = list_check_commands(environment, state, root, &config)?;
        Ok(Self { root: root.to_owned(), rules, unpromoted, left_out, checks, has_own_checks })
    }

    /// Returns the rules for the project's `policy.toml`.
    #[must_use]
    pub fn policy_text(&self) -> String {
        self.rules.iter().filter_map(HardRule::to_toml).collect::<Vec<_>>().join("\n")
    }

    /// Returns the line of the project's `config.toml` with its checks and those that the
    /// instructions demand; `None` if they demand no further one.
    #[must_use]
    pub fn checks_line(&self) -> Option<String> {
        let mut checks = self.checks.clone();
        for rule in &self.rules {
            if let RuleDemand::Check(command) = &rule.demand
                && !checks.contains(command)
            {
                checks.push(command.clone());
            }
        }
        let texts: Vec<String> = checks.iter().map(|check| quote_toml_string(check)).collect();
        (checks.len() > self.checks.len()).then(|| format!("checks = [{}]", texts.join(", ")))
    }

    /// Writes the rules into the project's `policy.toml`, and the checks into its `config.toml`
    /// unless that names checks already. Returns the files that have them.
    ///
    /// # Errors
    /// [`HostError`] where a file can't be read or written.
    pub fn write_files(&self) -> Result<Vec<PathBuf>, HostError> {
        let mut written = Vec::new();
        let text = self.policy_text();
        if !text.is_empty() {
            let rules = Rules::parse(&text, RuleLayer::Project, "instructions").map_err(HostError::usage)?;
            written.push(save_project_rules(&self.root, &rules)?);
        }
        if let Some(line) = self.checks_line().filter(|_| !self.has_own_checks) {
            written.push(insert_config_line(&self.root, &line)?);
        }
        Ok(written)
    }
}

/// Returns the instruction files of a project, the root's first, and a line for each that is left
/// out, because a pattern can't name its directory, or because there are too many.
fn instruction_files(workspace: &Workspace) -> Result<(Vec<RelPath>, Vec<String>), HostError> {
    let options = ListOptions { limit: MAX_SEARCHED_FILES, ..ListOptions::default() };
    let listing = workspace.list(options).context("the project's files can't be listed")?;
    let has_instructions = |path: &RelPath| {
        path.parent().is_some() && INSTRUCTION_FILES.iter().any(|name| path.file_name() == name.as_bytes())
    };
    let has_pattern_mark = |path: &RelPath| {
        path.parent()
            .is_some_and(|parent| parent.to_string().contains(['*', '?', '[', ']', '{', '}', '!', '\\']))
    };
    let (unnameable, nested): (Vec<_>, Vec<_>) =
        listing.paths.into_iter().filter(has_instructions).partition(has_pattern_mark);
    // Git may ignore one at the root.
    let at_root = INSTRUCTION_FILES.iter().filter_map(|name| RelPath::parse(name).ok());
    let at_root = at_root.filter(|path| workspace.stat(path).ok().flatten().is_some());
    let mut left_out: Vec<String> =
        unnameable.iter().map(|path| format!("{path}: a pattern can't name its directory")).collect();
    let mut files: Vec<RelPath> = at_root.chain(nested).collect();
    if let Some(more) = files.len().checked_sub(MAX_INSTRUCTION_FILES).filter(|more| *more > 0) {
        left_out.push(format!("{more} more instruction files: at most {MAX_INSTRUCTION_FILES} are read"));
        files.truncate(MAX_INSTRUCTION_FILES);
    }
    Ok((files, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Option<bool> {
        match path {
            "third_party" | "data/fixtures" | "migrations" | "infra/prod" => Some(true),
            "package-lock.json" => Some(false),
            _ => None,
        }
    }

    #[test]
    fn hard_rules_are_told_from_advice() {
        let protect = |paths: &[&str]| RuleDemand::Protect {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            asks: false,
        };
        let check = |command: &str| RuleDemand::Check(command.to_owned());
        let forbid = |command: &str| RuleDemand::Forbid(command.split(' ').map(str::to_owned).collect());
        let cases = [
            ("- Never touch `vendor/` or `schema.sql`.", Some(protect(&["vendor/**", "**/schema.sql"]))),
            ("- You must not modify `src/*.gen.rs`!", Some(protect(&["src/*.gen.rs"]))),
            ("Don\u{2019}t edit `data/fixtures`.", Some(protect(&["data/fixtures/**"]))),
            ("The directory `dist/` must not be changed.", Some(protect(&["dist/**"]))),
            ("`legacy/` is read-only.", Some(protect(&["legacy/**"]))),
            ("Please leave the `third_party` folder alone.", Some(protect(&["third_party/**"]))),
            ("Files ending in `.pb.go` are generated; do not edit them.", Some(protect(&["**/*.pb.go"]))),
            ("Do not edit files in migrations/.", Some(protect(&["migrations/**"]))),
            ("Hands off package-lock.json!", Some(protect(&["**/package-lock.json"]))),
            (
                "Don't touch anything in infra/prod without asking.",
                Some(RuleDemand::Protect { paths: vec!["infra/prod/**".to_owned()], asks: true }),
            ),
            ("- Always run `make lint` before you stop.", Some(check("make lint"))),
            ("Run `npm test` before committing.", Some(check("npm test"))),
            ("After every change, run `cargo fmt --check`.", Some(check("cargo fmt --check"))),
            ("Make sure `pytest -q` passes.", Some(check("pytest -q"))),
            ("Never run `git push --force`.", Some(forbid("git push --force"))),
            ("Do not use `rm -rf`.", Some(forbid("rm -rf"))),
            ("You must not call `terraform apply`.", Some(forbid("terraform apply"))),
            ("Never touch vendored/, whatever happens.", Some(protect(&["vendored/**"]))),
            ("Never edit `dist/`; change `src/` instead.", Some(protect(&["dist/**"]))),
            ("Never edit `dist/`, change `src/` instead.", Some(protect(&["dist/**"]))),
            ("Don't touch `dist/` but `src/`.", Some(protect(&["dist/**"]))),
            ("Never edit `a/`, `b/` or `c/`.", Some(protect(&["a/**", "b/**", "c/**"]))),
            ("Never edit `dist/`; never touch `gen/`.", Some(protect(&["dist/**", "gen/**"]))),
            (
                "Never edit `dist/`, the `gen/` folder or `x.lock`.",
                Some(protect(&["dist/**", "gen/**", "**/x.lock"])),
            ),
            ("Generated: `gen/`. Do not edit it.", Some(protect(&["gen/**"]))),
            ("Never use `unwrap`.", None),
            ("- Don't edit generated code.", None),
            ("- Prefer small changes to `src/lib.rs`.", None),
            ("Run `make db` before starting the server.", None),
            ("Never touch user data in and/or of a request.", None),
            ("- never change `/etc/passwd` or `../other`", None),
        ];
        for (line, demand) in cases {
            let text = format!("```\nNever touch `a/b`\n```\n{line}\n");
            let (found, _) = find_hard_rules(("AGENTS.md", ""), &text, &find);
            let rule = |demand| HardRule { file: "AGENTS.md".to_owned(), line: 4, demand };
            assert_eq!(found, demand.map(rule).into_iter().collect::<Vec<_>>(), "{line}");
        }
    }

    #[test]
    fn a_line_that_forbids_without_a_path_is_told() {
        let text = "# Rules\nNever touch the vendored code.\nPrefer small changes.\nNever use `unwrap`.\n\
                    Never change `src/api.rs` without tests in `tests/`.\n\
                    Do not edit generated code; change `src/` instead.\n";
        let (rules, unpromoted) = find_hard_rules(("AGENTS.md", ""), text, &find);
        assert_eq!(rules, []);
        let [first, second, third] = unpromoted.as_slice() else { panic!("{unpromoted:?}") };
        assert_eq!((first.line, first.text.as_str()), (2, "Never touch the vendored code."));
        assert_eq!((second.line, third.line), (5, 6));
    }

    #[test]
    fn rules_of_a_directory_hold_beneath_it() {
        let find = |path: &str| match path {
            "web/dist" | "data/fixtures" => Some(true),
            "web/yarn.lock" | "yarn.lock" => Some(false),
            _ => None,
        };
        let text = "Never edit `dist`, `yarn.lock` or `gen/`.\nNever touch `data/fixtures` or `web/out/`.\nAlways run `npm test`.\n";
        let (rules, unpromoted) = find_hard_rules(("web/AGENTS.md", "web"), text, &find);
        let protected: Vec<_> = rules.iter().map(|rule| (rule.line, rule.demand.clone())).collect();
        let protect = |paths: &[&str]| RuleDemand::Protect {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            asks: false,
        };
        let own = protect(&["web/dist/**", "web/**/yarn.lock", "web/gen/**"]);
        assert_eq!(protected, [(1, own), (2, protect(&["data/fixtures/**", "web/out/**"]))]);
        let left: Vec<_> = unpromoted.iter().map(|line| (line.line, line.reason)).collect();
        assert_eq!(left, [(3, ONE_DIRECTORY)]);
    }

    #[test]
    fn a_rule_is_one_that_policy_reads() {
        for line in ["Never edit `a\"b\\/c.rs`.", "Never run `git push --force`.", "`x/` is read-only"] {
            let (rules, _) = find_hard_rules(("AGENTS.md", ""), line, &find);
            let text = rules[0].to_toml().unwrap();
            assert!(Rules::parse(&text, RuleLayer::Project, "x").is_ok(), "{text}");
        }
    }
}
