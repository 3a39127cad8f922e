//! Commands that build, check and test the project with a known tool.
//!
//! They are level 1, as the project's own checks are: like these they run code of the project,
//! confined and without network, and by convention they write what they can make again. A program
//! that is run for itself (`./x`, `python3 x.py`, `cargo run`) is not among them, because nothing
//! says what it does to files that undo does not cover.
//!
//! As in `readers`, an option that is not listed makes a command unknown. Options that name a
//! program, a configuration or a package to load are omitted on purpose, and so are tasks that
//! clean, install or publish.

use journeyman_syntax::shell::Word;

use super::build_table::{
    BUILD_TASK_WORDS, BUILD_TOOLS, BuildOperands, BuildTool, LAUNCHERS, Launcher, NON_BUILD_TASK_WORDS,
    TOOL_DIRECTORIES, VERBOSITY_VARIABLES,
};
use super::edits::{self, is_accepted_word, is_ordinary_path};
use super::options::operands_if_known;
use super::part::shorten_command;
use super::readers::base_name;

/// Maximum number of words of a program that are checked.
const MAX_CHECKED_WORDS: usize = 512;
/// Maximum number of tools that run each other (`poetry run python -m pytest`).
const MAX_LAUNCHERS: usize = 3;

/// Returns one line on the effect of a program with its arguments, if it is known to be level 1.
pub(super) fn describe_edit_or_build(words: &[Word]) -> Option<String> {
    edits::describe_edit(words).or_else(|| {
        let name = words.first().map(|word| base_name(&word.text)).unwrap_or_default();
        is_build(words).then(|| format!("`{}` builds or tests the project", shorten_command(name)))
    })
}

/// Returns true if a program with its arguments builds, checks or tests the project.
pub(super) fn is_build(words: &[Word]) -> bool {
    is_build_behind_launchers(words, MAX_LAUNCHERS)
}

fn is_build_behind_launchers(words: &[Word], runners_left: usize) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    if words.len() > MAX_CHECKED_WORDS
        || !program.known
        || program.dialect
        || !arguments.iter().all(|word| is_accepted_word(word) && names_ordinary_paths(&word.text))
    {
        return false;
    }
    let name = tool_name(&program.text);
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    if BUILD_TOOLS.iter().any(|tool| tool.names.contains(&name) && is_accepted_call(tool, &texts)) {
        return true;
    }
    let runs_tool = |runner: &Launcher| {
        let before = runner.words.len();
        runner.names.contains(&name)
            && texts.get(..before) == Some(runner.words)
            && words.get(before + 1..).is_some_and(|inner| {
                inner.first().is_some_and(|tool| tool.known && !tool.text.contains('/'))
                    && (is_build_behind_launchers(inner, runners_left.saturating_sub(1))
                        || edits::is_query_or_formatter(inner))
            })
    };
    runners_left > 0 && LAUNCHERS.iter().any(runs_tool)
}

/// Returns the name of a tool, also of one that a package manager installed into the project.
fn tool_name(path: &str) -> &str {
    TOOL_DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory)).unwrap_or(base_name(path))
}

/// Returns true if a word, or the value in an option, names nothing outside the project and no file
/// that programs outside the sandbox obey.
fn names_ordinary_paths(word: &str) -> bool {
    let value = match word.strip_prefix('-') {
        Some(option) => match option.split_once('=') {
            Some((_, value)) => Some(value),
            // The value may follow its letter: `-j4`.
            None => option.get(option.chars().next().map_or(0, char::len_utf8)..),
        },
        None => Some(word.split_once('=').map_or(word, |(_, value)| value)),
    };
    value.is_some_and(|value| value.is_empty() || (is_ordinary_path(value) && !value.contains(":/")))
}

fn is_accepted_call(tool: &BuildTool, texts: &[&str]) -> bool {
    let Some((head, rest)) = texts.split_at_checked(tool.words.len()) else { return false };
    if head != tool.words {
        return false;
    }
    let rest: Vec<&str> = rest.iter().copied().filter(|word| !is_job_count(word)).collect();
    let own = match tool.operands {
        BuildOperands::PassedOn => &[],
        BuildOperands::ScriptFirst => {
            let first = rest.iter().position(|word| !word.starts_with('-'));
            rest.get(..first.map_or(0, |task| task + 1)).unwrap_or_default()
        }
        _ => rest.as_slice(),
    };
    let operands = match tool.single_dash {
        true => single_dash_operands(own, tool.long),
        false => operands_if_known(own, tool.flags, tool.valued, &[tool.long]),
    };
    let Some(operands) = operands else { return false };
    match tool.operands {
        BuildOperands::Names | BuildOperands::PassedOn => true,
        BuildOperands::Tasks => operands.iter().all(|operand| is_build_task(operand)),
        BuildOperands::OneOrMoreTasks => {
            !operands.is_empty() && operands.iter().all(|operand| is_build_task(operand))
        }
        BuildOperands::Script | BuildOperands::ScriptFirst => {
            operands.first().is_some_and(|task| is_build_task(task))
        }
    }
}

/// Returns true for `-j4`: the number of jobs, which many tools also take without.
fn is_job_count(word: &str) -> bool {
    word.strip_prefix("-j").is_some_and(|count| !count.is_empty() && is_number(count))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the operands of a program whose long options have one dash. A value of an option counts
/// as an operand.
fn single_dash_operands<'a>(words: &[&'a str], options: &[&str]) -> Option<Vec<&'a str>> {
    let (given, operands): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let is_listed = |option: &&str| options.contains(&option.split('=').next().unwrap_or(option));
    given.iter().all(is_listed).then_some(operands)
}

/// Returns true if a task of a project builds, checks or tests by its name: `build:web`,
/// `test-unit`, `:app:compileJava`; or if it is a definition such as `VERBOSE=1` or a number of
/// jobs.
fn is_build_task(name: &str) -> bool {
    if !name.is_empty() && is_number(name) {
        return true;
    }
    if let Some((variable, value)) = name.split_once('=') {
        return VERBOSITY_VARIABLES.contains(&variable)
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    }
    let words = split_task_name(name);
    let mut known =
        words.iter().map(String::as_str).skip_while(|word| !BUILD_TASK_WORDS.contains(word)).peekable();
    // Of a task in a part of the project (`:app:test`, `web/build`) the last name counts.
    let in_part = name.rsplit_once([':', '/']).is_some_and(|(_, task)| {
        split_task_name(task).first().is_some_and(|first| BUILD_TASK_WORDS.contains(&first.as_str()))
    });
    let begins = words.first().is_some_and(|first| BUILD_TASK_WORDS.contains(&first.as_str()));
    known.peek().is_some()
        && (begins || in_part)
        && !words.iter().any(|word| NON_BUILD_TASK_WORDS.contains(&word.as_str()))
}

/// Returns the words of a name in lower case, whichever way they are joined.
fn split_task_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut follows_lowercase = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && follows_lowercase) {
            words.push(String::new());
        }
        follows_lowercase = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_by_its_words() {
        for task in
            ["test", "build:web", "test-unit", ":app:compileJava", "lint_fix", "testDebugUnitTest", "V=1"]
        {
            assert!(is_build_task(task), "{task}");
        }
        for task in
            ["", "-f", "deploy", "build-and-push", "clean", "db:test:reset", "attest", "CC=x", "V=./x"]
        {
            assert!(!is_build_task(task), "{task}");
        }
    }

    #[test]
    fn words_name_nothing_outside_the_project() {
        for word in ["src", "-j4", "--features=a", "tests/a.py::b", "./...", "--nocapture", "-"] {
            assert!(names_ordinary_paths(word), "{word}");
        }
        for word in
            ["..", "/srv", "-C..", "-C/srv", "--x=/srv", "x=../y", "~/x", ".envrc", "html:/x", "--o=.git/x"]
        {
            assert!(!names_ordinary_paths(word), "{word}");
        }
    }
}
