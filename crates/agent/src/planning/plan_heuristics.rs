//! Guesses from the text of a task if it changes more than one file and so needs a plan.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// Maximum words of an instruction. A longer text is a bug report; five in six of those change one
/// file, whichever files they name.
const MAX_INSTRUCTION_WORDS: usize = 150;

/// Words for changes that go through a code base.
static SWEEPING_CHANGE_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        \b(?:
            everywhere | throughout | across\ (?:the|all)
          | (?:all|every|each)\ (?:of\ )?(?:the\ )?(?:other\ )?
            (?:callers?|uses?|usages?|places?|files?|call\ sites?|modules?|crates?|packages?|commands?|handlers?|endpoints?)
          | rename\ \S+ | refactor | migrate
          | (?:replace|convert|port)\ all
          | split\ .{1,60}?\ (?:up|into|out)
          | (?:extract|move)\ .{1,80}?\ (?:to|into|out\ of)
        )\b
        | 重命名 | 重构 | 迁移 | 拆分 | 所有(?:的)?(?:调用|地方|文件|模块) | 全部替换 | 每(?:个|一处)(?:调用|地方|文件|模块)
        ",
    )
    .ok()
});

/// Returns true if a task is to be planned first: it is an instruction, and either names several
/// files of the project or asks for a change that goes through it.
pub(crate) fn needs_plan(task: &str, is_file: impl Fn(&str) -> bool) -> bool {
    let is_report = task.split_whitespace().count() > MAX_INSTRUCTION_WORDS || task.contains("```");
    if is_report {
        return false;
    }
    SWEEPING_CHANGE_PATTERN.as_ref().is_some_and(|sweeping| sweeping.is_match(task))
        || names_several_files(task, is_file)
}

/// Returns true if a text names two or more of the project's files.
fn names_several_files(text: &str, is_file: impl Fn(&str) -> bool) -> bool {
    let is_around = |c: char| !(c.is_alphanumeric() || "_/-.".contains(c));
    let named: BTreeSet<&str> = text
        .split(|c: char| c.is_whitespace() || "`'\"(),;:，。、".contains(c))
        .map(|word| word.trim_matches(is_around).trim_start_matches("./").trim_end_matches('.'))
        .filter(|word| word.contains('.') || word.contains('/'))
        .collect();
    named.into_iter().filter(|word| is_file(word)).take(2).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 4] = ["src/main.rs", "src/args.rs", "README.md", "Makefile"];

    fn needs(task: &str) -> bool {
        needs_plan(task, |word| FILES.contains(&word))
    }

    #[test]
    fn a_change_that_goes_through_the_code_is_planned() {
        for task in [
            "rename `parse` to `read_arguments`",
            "Use the new logger everywhere.",
            "Make all callers pass the timeout",
            "split src/main.rs into modules",
            "move the flags from src/main.rs to src/args.rs",
            "Add --json to src/args.rs and document it in README.md.",
            "重构配置模块",
            "把所有调用改成异步",
        ] {
            assert!(needs(task), "{task}");
        }
    }

    #[test]
    fn a_change_in_one_place_and_a_report_are_not() {
        let report = format!("It fails.\n{}", "see src/main.rs and src/args.rs ".repeat(40));
        for task in [
            "make the failing test pass",
            "fix the off-by-one in `clamp`",
            "Fix src/main.rs: it ignores --help.",
            "Fix src/main.rs. The file src/main.rs is wrong.",
            "Read other/a.rs and other/b.rs",
            "fix `rename_all` in the parser",
            report.as_str(),
            "rename x\n```\ntrace\n```",
            "",
        ] {
            assert!(!needs(task), "{task}");
        }
    }
}
