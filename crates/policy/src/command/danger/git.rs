//! Recognizes git commands that send data or lose it.

use super::effects::Danger;
use super::program_table::REACHES_NETWORK;
use crate::command::options::{has_option, has_short_option};

/// Checks the words after `git`.
pub(super) fn check_git(arguments: &[&str], danger: &mut Danger) {
    const REMOTE_COMMANDS: &[&str] = &[
        "push",
        "fetch",
        "pull",
        "clone",
        "ls-remote",
        "send-email",
        "fetch-pack",
        "send-pack",
        "imap-send",
        "svn",
        "request-pull",
        "archive-remote",
    ];
    // Settings on the command line can make any word an alias for any command.
    let configured = arguments.iter().any(|argument| {
        argument.starts_with("-c") || argument.starts_with("--config-env") || argument.contains("alias.")
    });
    let hidden =
        REMOTE_COMMANDS.iter().find(|verb| arguments.iter().any(|argument| argument.contains(**verb)));
    if let (true, Some(verb)) = (configured, hidden) {
        danger.add_outside_effect(|| format!("`git {verb}` {REACHES_NETWORK}"));
    }
    let mut rest = arguments;
    let command = loop {
        match rest {
            [
                "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--exec-path",
                _,
                after @ ..,
            ] => {
                rest = after;
            }
            [option, after @ ..] if option.starts_with('-') => rest = after,
            [command, after @ ..] => {
                rest = after;
                break *command;
            }
            [] => return,
        }
    };
    if REMOTE_COMMANDS.contains(&command) {
        danger.add_outside_effect(|| format!("`git {command}` {REACHES_NETWORK}"));
    }
    let remote_part = match command {
        "remote" => rest.iter().any(|word| matches!(*word, "update" | "show" | "prune" | "set-head")),
        "submodule" => rest.iter().any(|word| matches!(*word, "update" | "add" | "init")),
        "subtree" => rest.iter().any(|word| matches!(*word, "push" | "pull" | "add")),
        "archive" => rest.iter().any(|word| word.starts_with("--rem") || word.starts_with("--exec")),
        "lfs" => rest.iter().any(|word| matches!(*word, "push" | "pull" | "fetch")),
        _ => false,
    };
    if remote_part {
        danger.add_outside_effect(|| format!("`git {command}` {REACHES_NETWORK}"));
    }
    if command.starts_with("credential") {
        danger.add_outside_effect(|| format!("`git {command}` handles what git signs in with"));
    }
    if let Some(lost) = find_git_loss(command, rest) {
        // A stash is kept by git, and unchanged tracked files are in the checkpoints.
        let kept = match command {
            "stash" => {
                !rest.iter().any(|word| {
                    matches!(*word, "drop" | "clear" | "pop" | "apply" | "branch" | "store")
                        || word.len() > 2 && "--all".starts_with(word)
                }) && !has_short_option(rest, 'a')
            }
            "rm" => !has_option(rest, 'f', "--force") && !has_short_option(rest, 'r'),
            _ => false,
        };
        match kept {
            true => danger.add_restorable_destruction(|| lost.to_owned()),
            false => danger.add_destruction(|| lost.to_owned()),
        }
    }
}

fn find_git_loss(command: &str, rest: &[&str]) -> Option<&'static str> {
    let has = |word: &str| rest.contains(&word);
    let force = || has_option(rest, 'f', "--force");
    let lost = match command {
        "clean" if !has_option(rest, 'n', "--dry-run") => "files that git doesn't track",
        "reset"
            if rest.iter().any(|word| "--hard".starts_with(word) && word.len() > 3 || *word == "--merge") =>
        {
            "changes that aren't committed"
        }
        "checkout" if has("--") || has(".") || force() || has("--ours") || has("--theirs") => {
            "changes that aren't committed"
        }
        "checkout" if rest.iter().any(|word| word.contains('/') && word.contains('.')) => {
            "changes that aren't committed"
        }
        "restore" if !has_option(rest, 'S', "--staged") || has_option(rest, 'W', "--worktree") => {
            "changes that aren't committed"
        }
        "switch" if force() || has("--discard-changes") => "changes that aren't committed",
        "branch" if has_short_option(rest, 'D') || (force() && has_option(rest, 'd', "--delete")) => {
            "commits that only this branch holds"
        }
        "push"
            if force()
                || has_option(rest, 'd', "--delete")
                || has("--mirror")
                || has("--prune")
                || rest.iter().any(|word| {
                    word.starts_with("--force") || word.starts_with('+') || word.starts_with(':')
                }) =>
        {
            "commits on the remote's branch"
        }
        "stash" if has("drop") || has("clear") => "stashed changes",
        "reflog" if has("expire") || has("delete") => "the way back to lost commits",
        "gc" | "prune" if command == "prune" || rest.iter().any(|word| word.starts_with("--prune")) => {
            "objects that nothing refers to"
        }
        "filter-branch" | "filter-repo" => "the history as it is",
        "update-ref" if has_option(rest, 'd', "--delete") => "a reference",
        "tag" if has_option(rest, 'd', "--delete") => "a tag",
        "stash" if !has("list") && !has("show") && !has("create") => {
            "changes that aren't committed, put aside"
        }
        "worktree" if has("remove") => "a work tree",
        "rm" if !has("--cached") => "files from the work tree",
        _ => return None,
    };
    Some(lost)
}
