//! Unwraps language tools that run programs in an environment of their own, and tools that measure
//! programs.

use journeyman_syntax::shell::Word;

use super::unwrap_result::{InnerCommand, UnwrapResult, skip_options, unwrap_joined_words};

/// Returns the program that such a tool runs.
pub(super) fn unwrap_tool(program: &str, arguments: &[Word]) -> Option<UnwrapResult> {
    const LONG_VALUED: &[&str] = &[
        "--directory",
        "--project",
        "--python",
        "--with",
        "--extra",
        "--group",
        "--package",
        "--env-file",
        "--index",
        "--index-url",
        "--event",
        "--output",
        "--repeat",
        "--gemfile",
    ];
    if program == "hyperfine" {
        return unwrap_hyperfine(arguments);
    }
    if let Some(command) = parse_git_program(program) {
        let words = [Word::literal("git"), Word::literal(command)];
        return Some(UnwrapResult::from_words(
            &words.into_iter().chain(arguments.iter().cloned()).collect::<Vec<_>>(),
        ));
    }
    let verbs: &[&str] = match program {
        "uv" | "poetry" | "pdm" | "hatch" | "pipenv" | "rye" | "conda" => &["run"],
        "bundle" | "rbenv" | "pyenv" | "nodenv" | "asdf" => &["exec"],
        "nix" => &["-c", "--command"],
        "guix" => &["--"],
        "mise" | "rtx" => &["exec", "x"],
        "perf" => &["stat", "record", "trace", "mem", "sched", "lock"],
        _ => return None,
    };
    let at = arguments.iter().position(|word| verbs.contains(&word.text.as_str()))?;
    let rest = arguments.get(at + 1..)?;
    let words = match (program, rest.iter().position(|word| word.text == "--")) {
        // Tools with their versions precede the program.
        ("mise" | "rtx", Some(end)) => rest.get(end + 1..)?,
        _ => skip_options(rest, "eoprCntwG", LONG_VALUED),
    };
    (!words.is_empty()).then(|| UnwrapResult::from_words(words))
}

/// Returns the git command of a program such as `git-push`, with or without its directory.
pub(super) fn parse_git_program(program: &str) -> Option<&str> {
    // A fast path for nearly all words.
    if !program.starts_with("git-") && !program.contains('/') {
        return None;
    }
    let name = program.rsplit_once("git-core/").map_or(program, |(_, name)| name);
    name.strip_prefix("git-").filter(|command| !command.is_empty() && !command.contains('/'))
}

/// Unwraps `hyperfine`: every argument, and the value of some options, is a text for a shell.
fn unwrap_hyperfine(arguments: &[Word]) -> Option<UnwrapResult> {
    let mut wrapped = UnwrapResult::default();
    for word in arguments {
        let text = match word.text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => value,
            _ if word.text.starts_with('-') => continue,
            _ => word.text.as_str(),
        };
        // A number of runs.
        if word.known && text.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let value = Word { text: text.to_owned(), ..word.clone() };
        let there = unwrap_joined_words(std::slice::from_ref(&value));
        wrapped.inner.extend(there.inner);
        wrapped.unclear = wrapped.unclear.or(there.unclear);
    }
    wrapped.inner.iter().any(|inner| matches!(inner, InnerCommand::Script(_))).then_some(wrapped)
}
