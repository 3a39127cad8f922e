//! Finds the programs that git runs because of settings on its command line or options.

use journeyman_syntax::shell::Word;

use super::unwrap_result::{InnerCommand, UnwrapResult, option_values, skip_options, unwrap_joined_words};

/// Returns true for git settings that name a program.
fn is_program_setting(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let ends = [
        ".textconv",
        ".command",
        ".cmd",
        ".clean",
        ".smudge",
        ".process",
        ".driver",
        ".program",
        ".helper",
        ".vcs",
        "pager",
        "editor",
        "sshcommand",
        "askpass",
        "gitproxy",
        "fsmonitor",
        "external",
        "difffilter",
        "uploadpack",
        "receivepack",
        "hookspath",
        "alternaterefscommand",
        "packobjectshook",
    ];
    key.starts_with("alias.") || key.starts_with("pager.") || ends.iter().any(|end| key.ends_with(end))
}

/// Returns the programs that git with these arguments runs besides itself.
pub(super) fn unwrap_git(arguments: &[Word]) -> Option<UnwrapResult> {
    let mut wrapped = UnwrapResult::default();
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        let text = first.text.as_str();
        let setting = match text {
            "-c" => {
                rest = after.get(1..).unwrap_or_default();
                after.first().map(|word| word.text.as_str())
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" => {
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            "--config-env" | "--exec-path" => {
                wrapped.unclear = Some("it brings its own settings along");
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path=") => {
                wrapped.unclear = Some("it brings its own settings along");
                rest = after;
                continue;
            }
            _ if text.starts_with("-c") => {
                rest = after;
                text.strip_prefix("-c")
            }
            _ if text.starts_with('-') => {
                rest = after;
                continue;
            }
            _ => break,
        };
        if let Some((key, value)) = setting.and_then(|setting| setting.split_once('=')) {
            add_setting_command(key, value, &mut wrapped);
        }
    }
    add_exec_commands(rest, &mut wrapped);
    (!wrapped.inner.is_empty() || wrapped.unclear.is_some()).then_some(wrapped)
}

/// Adds the programs that the arguments of a git command name, such as `rebase --exec`.
fn add_exec_commands(words: &[Word], wrapped: &mut UnwrapResult) {
    let Some((command, rest)) = words.split_first() else { return };
    let words = |at: usize| InnerCommand::Words(rest.get(at..).unwrap_or_default().to_vec());
    let at = |name: &str| rest.iter().position(|word| word.text == name);
    match command.text.as_str() {
        "bisect" if rest.first().is_some_and(|word| word.text == "run") => wrapped.inner.push(words(1)),
        "submodule" => {
            if let Some(at) = at("foreach") {
                let inner = skip_options(rest.get(at + 1..).unwrap_or_default(), "", &[]);
                let there = unwrap_joined_words(inner);
                wrapped.inner.extend(there.inner);
                wrapped.unclear = wrapped.unclear.or(there.unclear);
            }
        }
        "config" => {
            let operands: Vec<&Word> = rest.iter().filter(|word| !word.text.starts_with('-')).collect();
            let operands = match operands.as_slice() {
                [first, rest @ ..] if first.text == "set" => rest,
                all => all,
            };
            if let [key, value, ..] = operands {
                add_setting_command(&key.text, &value.text, wrapped);
            }
        }
        _ => {}
    }
    let options = [
        "-x",
        "--exec",
        "--extcmd",
        "--upload-pack",
        "--receive-pack",
        "-u",
        "--tree-filter",
        "--index-filter",
        "--env-filter",
        "--msg-filter",
        "--commit-filter",
        "--parent-filter",
        "--tag-name-filter",
        "--open-files-in-pager",
    ];
    let listed: &[&str] = match command.text.as_str() {
        "grep" => &["-O", "--open-files-in-pager"],
        "rebase" | "difftool" | "filter-branch" | "fetch" | "pull" | "push" | "clone" | "ls-remote"
        | "fetch-pack" | "send-pack" | "archive" => &options,
        _ => &[],
    };
    // For `push`, `-u` means `--set-upstream`.
    let listed =
        listed.iter().copied().filter(|option| *option != "-u" || matches!(command.text.as_str(), "clone"));
    let listed: Vec<&str> = listed.collect();
    wrapped.inner.extend(option_values(rest, &listed).map(InnerCommand::Script));
}

fn add_setting_command(key: &str, value: &str, wrapped: &mut UnwrapResult) {
    if !is_program_setting(key) {
        return;
    }
    match (key.to_ascii_lowercase().starts_with("alias."), value.strip_prefix('!')) {
        (_, Some(script)) => wrapped.inner.push(InnerCommand::Script(script.to_owned())),
        // The alias is another git command.
        (true, None) => wrapped.inner.push(InnerCommand::Script(format!("git {value}"))),
        (false, None) => wrapped.inner.push(InnerCommand::Script(value.to_owned())),
    }
    wrapped.unclear = Some("it tells git what to run");
}
