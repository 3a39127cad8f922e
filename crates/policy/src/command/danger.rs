//! Searches a command for effects outside the project and for destruction.
//!
//! The text is split roughly: quotes and backslashes are removed, and separators separate inside
//! quotes too. So `bash -c "sudo rm"`, `r\m` and `x=$(git push)` are found, and sometimes a
//! harmless text is. A false alarm costs a question; a miss costs no more than the sandbox allows.

use std::borrow::Cow;

use program_table::{
    ArgumentRule, CHANGES_SYSTEM, HARMLESS_DEVICES, INSTALLS_PACKAGES, REACHES_MACHINES, SYSTEM_DIRECTORIES,
};

use journeyman_protocol::Level;

use super::options::{has_option, has_short_option};
use super::part::{CommandPart, CommandWord};
use crate::protected_paths::{PathProtection, protection_of_text};

mod destructive_statements;
mod effects;
mod git;
mod program_table;

pub(super) use destructive_statements::check_statements;
pub(super) use effects::Danger;

/// Maximum number of words of a command in a reason.
const MAX_WORDS_SHOWN: usize = 4;
/// Maximum number of characters of such a word.
const MAX_CHARACTERS_SHOWN: usize = 60;

/// Maximum number of words that are scanned again as arguments of a program. More occur only in
/// commands made to be slow; ordinary commands have a few hundred.
const MAX_SCANNED_WORDS: usize = 20_000;

/// Scans the text of a command.
pub(super) fn scan_danger(command: &str) -> Danger {
    let mut danger = Danger::default();
    let mut words_left = MAX_SCANNED_WORDS;
    let text = split_unquoted(command);
    for segment in text.split('\n') {
        let words: Vec<&str> = segment.split(' ').filter(|word| !word.is_empty()).collect();
        scan_segment(&words, &mut danger, &mut words_left);
    }
    // Splitting loses unknown values, which could be anything.
    danger.beyond_undo |= danger.destroys.is_some() && command.contains(['$', '`', '[']);
    check_redirections(command, &mut danger);
    check_statements(command, &mut danger);
    danger
}

/// Checks a program with its arguments. Unless the arguments are only data, they are scanned like
/// the text of a command that was not parsed: one of them may be a program or contain one.
pub(super) fn scan_program(words: &[&str], data: bool, danger: &mut Danger) {
    let Some((program, arguments)) = words.split_first() else { return };
    let name = base_name(program);
    if let Some(what) = program_table::level_3_effect(name, true) {
        danger.add_outside_effect(|| format!("`{name}` {what}"));
    }
    if data {
        check_by_arguments(name, arguments, danger);
        return;
    }
    let mut words_left = MAX_SCANNED_WORDS;
    scan_segment(words, danger, &mut words_left);
    for text in arguments
        .iter()
        .filter(|text| text.contains([' ', '\t', '\n', ';', '|', '&', '(', '`', '<', '>', '=']))
    {
        for segment in split_unquoted(text).split('\n') {
            let words: Vec<&str> = segment.split(' ').filter(|word| !word.is_empty()).collect();
            scan_segment(&words, danger, &mut words_left);
        }
        check_redirections(text, danger);
    }
    let all = words.join(" ");
    check_statements(&all, danger);
}

/// Scans a program again with its operands as paths outside of the project, if `cd` led there.
pub(super) fn scan_outside_operands<'a>(
    words: &[&'a str],
    places: impl Iterator<Item = &'a str>,
    data: bool,
    danger: &mut Danger,
) {
    let mut places = places.peekable();
    if places.peek().is_some() {
        let options = words.iter().skip(1).copied().filter(|word| word.starts_with('-'));
        let again: Vec<&str> = words.first().copied().into_iter().chain(options).chain(places).collect();
        scan_program(&again, data, danger);
    }
}

/// Returns true if a program takes its arguments as data (names, numbers, messages) and never as a
/// program. Programs with argument rules are checked by these anyway.
pub(super) fn takes_only_data(name: &str) -> bool {
    const DATA_PROGRAMS: &[&str] = &[
        "basename", "cat", "cd", "chgrp", "chmod", "chown", "cp", "cut", "date", "df", "diff", "du", "echo",
        "false", "file", "git", "grep", "head", "install", "jq", "kill", "ln", "ls", "make", "mkdir",
        "mktemp", "mv", "npm", "pnpm", "printf", "pwd", "read", "readlink", "realpath", "rg", "rm", "rmdir",
        "seq", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "tree", "true", "truncate",
        "uniq", "unzip", "wait", "wc", "which", "yarn", "zip", "export", "unset", "cargo", "go", "pip",
        "pip3", "pytest", "tsc", "eslint", "prettier", "rustfmt", "gcc", "cc",
    ];
    DATA_PROGRAMS.contains(&name)
}

/// Splits a text that was not parsed into parts: each may be a program with its arguments. For
/// rules that deny.
pub(super) fn split_roughly(command: &str) -> Vec<CommandPart> {
    /// Maximum number of parts, and of words in a part. The command asks in any case.
    const MAX_PARTS: usize = 200;
    split_unquoted(command)
        .split('\n')
        .map(|segment| segment.split(' ').filter(|word| !word.is_empty()).take(MAX_PARTS))
        .map(|words| words.map(|word| CommandWord { text: word.to_owned(), known: true }).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .take(MAX_PARTS)
        .map(|words| CommandPart {
            words,
            level: Level::Shell,
            reason: "it may be run by a command that isn't understood".to_owned(),
            ..CommandPart::default()
        })
        .collect()
}

/// Returns the command without quotes and backslashes, with one rough command per line.
fn split_unquoted(command: &str) -> String {
    let command: Cow<'_, str> = match memchr::memmem::find(command.as_bytes(), b"IFS") {
        Some(_) => command.replace("${IFS}", " ").replace("$IFS", " ").into(),
        None => command.into(),
    };
    let mut text = String::with_capacity(command.len());
    for character in command.chars() {
        match character {
            '\'' | '"' | '\\' => {}
            ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`' | '\n' | '\r' | '<' | '>' => text.push('\n'),
            '$' | ',' | '[' | ']' => text.push(' '),
            blank if blank.is_whitespace() => text.push(' '),
            other => text.push(other),
        }
    }
    text
}

fn scan_segment(words: &[&str], danger: &mut Danger, words_left: &mut usize) {
    let wrapped = words.iter().any(|word| program_table::is_wrapper(base_name(word)));
    let mut may_be_program = true;
    for (index, word) in words.iter().enumerate() {
        let name = base_name(word);
        let arguments = words.get(index + 1..).unwrap_or_default();
        if let Some(what) = program_table::level_3_effect(name, may_be_program || wrapped) {
            danger.add_outside_effect(|| format!("`{name}` {what}"));
        }
        if check_by_arguments(name, arguments, danger) {
            *words_left = words_left.saturating_sub(arguments.len());
            if *words_left == 0 {
                danger.add_outside_effect(|| "it repeats itself too often to be judged".to_owned());
                return;
            }
        }
        // Assignments may precede the program.
        may_be_program = may_be_program && word.contains('=');
    }
}

/// Returns the name of a program in a directory of programs; other paths are files.
pub(super) fn base_name(word: &str) -> &str {
    match word.rsplit_once('/') {
        Some((place, name)) if place == "." || place.ends_with("bin") => name,
        _ => word,
    }
}

/// Checks programs whose effect depends on their arguments, wherever they occur; returns false for
/// all others.
fn check_by_arguments(name: &str, arguments: &[&str], danger: &mut Danger) -> bool {
    if let Some(command) = super::unwrap_tools::parse_git_program(name) {
        let words: Vec<&str> = std::iter::once(command).chain(arguments.iter().copied()).collect();
        git::check_git(&words, danger);
        return true;
    }
    let Some(judged) = program_table::find_argument_rule(name) else { return false };
    match judged {
        ArgumentRule::Git => git::check_git(arguments, danger),
        ArgumentRule::NodePackages => check_node_packages(name, arguments, danger),
        ArgumentRule::Publishing => check_publication(name, arguments, danger),
        ArgumentRule::Removing => {
            let recursive = name == "rmtree"
                || has_option(arguments, 'r', "--recursive")
                || has_short_option(arguments, 'R');
            danger.add_restorable_destruction(|| format!("files removed: {}", join_operands(arguments)));
            danger.beyond_undo |= !are_restorable_files(arguments, recursive);
            check_system_paths(name, arguments, danger);
        }
        ArgumentRule::Truncating => {
            danger.add_restorable_destruction(|| format!("the content of {}", join_operands(arguments)));
            danger.beyond_undo |= !are_restorable_files(arguments, false);
            check_system_paths(name, arguments, danger);
        }
        ArgumentRule::Copying => {
            if let Some(target) = arguments.iter().find_map(|argument| argument.strip_prefix("of=")) {
                danger.add_destruction(|| format!("what {} holds now", shorten_word(target)));
                check_system_paths(name, &[target], danger);
                self::check_written_file(target, danger);
            }
        }
        ArgumentRule::Modes => {
            if has_option(arguments, 'R', "--recursive") {
                // The journal has modes, and owners can't be changed in the sandbox.
                danger.add_restorable_destruction(|| {
                    format!("modes or owners of everything in {}", join_operands(arguments))
                });
            }
            check_system_paths(name, arguments, danger);
        }
        ArgumentRule::Moving | ArgumentRule::Writing => {
            if judged == ArgumentRule::Moving && has_short_option(arguments, 'f') {
                let last = arguments.get(arguments.len().saturating_sub(1)..).unwrap_or_default();
                danger
                    .add_restorable_destruction(|| format!("what was there before: {}", join_operands(last)));
            }
            check_system_paths(name, arguments, danger);
            check_written_files(name, arguments, danger);
        }
        ArgumentRule::Finding if arguments.contains(&"-delete") => {
            danger.add_destruction(|| "the files that it finds".to_owned());
        }
        ArgumentRule::Finding => return false,
        ArgumentRule::Synchronizing => check_rsync(arguments, danger),
        ArgumentRule::Planning => check_terraform(name, arguments, danger),
        ArgumentRule::Service => check_service_removal(name, arguments, danger),
        ArgumentRule::Database => {
            danger.add_destruction(|| format!("the database {}", join_operands(arguments)))
        }
        ArgumentRule::Format => {
            danger.add_outside_effect(|| format!("`{name}` {CHANGES_SYSTEM}"));
            danger.add_destruction(|| format!("everything on {}", join_operands(arguments)));
        }
        ArgumentRule::Deploying => check_deployment(name, arguments, danger),
    }
    true
}

/// Checks clients of services for commands that remove data there.
fn check_service_removal(name: &str, arguments: &[&str], danger: &mut Danger) {
    const REMOVING_WORDS: &[&str] = &[
        "delete",
        "rm",
        "rmi",
        "prune",
        "uninstall",
        "rb",
        "drain",
        "down",
        "kill",
        "remove",
        "destroy",
        "delete-stack",
        "terminate-instances",
    ];
    if let Some(verb) = arguments.iter().find(|argument| REMOVING_WORDS.contains(argument)) {
        danger.add_destruction(|| format!("what `{name} {verb}` removes"));
    }
}

/// Returns true if undo can restore everything that the operands name: plain files of the project,
/// or directories that tools create again. Names that begin with a dot (`.env` is rarely backed up)
/// and patterns are not accepted.
fn are_restorable_files(arguments: &[&str], recursive: bool) -> bool {
    /// Caches that tools create beside the sources.
    const CACHE_DIRECTORIES: &[&str] = &[
        ".cache",
        ".coverage",
        ".eslintcache",
        ".gradle",
        ".mypy_cache",
        ".next",
        ".nuxt",
        ".nyc_output",
        ".parcel-cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svelte-kit",
        ".tox",
        ".turbo",
    ];
    let plain = |name: &str| match name {
        "" | "." => true,
        _ if name.starts_with('.') => CACHE_DIRECTORIES.contains(&name),
        _ => !name.contains(['*', '?']) || (!recursive && name.contains(char::is_alphanumeric)),
    };
    let mut operands = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
    operands.peek().is_some()
        && operands.all(|operand| {
            // `/tmp` is the sandbox's own.
            let path = operand.strip_prefix("/tmp/").unwrap_or(operand);
            let some = path.split('/').any(|name| !matches!(name, "" | "."));
            some && !path.starts_with(['/', '~']) && path.split('/').all(plain)
        })
}

fn check_node_packages(name: &str, arguments: &[&str], danger: &mut Danger) {
    check_deployment(name, arguments, danger);
    const PUBLISHING_SUBCOMMANDS: &[&str] = &[
        "publish",
        "unpublish",
        "deprecate",
        "dist-tag",
        "owner",
        "access",
        "login",
        "adduser",
        "token",
        "team",
        "org",
    ];
    // npm accepts abbreviated commands.
    const ABBREVIATED_SUBCOMMANDS: &[(&str, usize)] =
        &[("publish", 2), ("unpublish", 4), ("deprecate", 3), ("adduser", 4)];
    const RUN_OR_INSTALL_SUBCOMMANDS: &[&str] =
        &["run", "run-script", "test", "exec", "x", "install", "i", "ci", "add"];
    let short = arguments.iter().take_while(|argument| !RUN_OR_INSTALL_SUBCOMMANDS.contains(argument)).find(
        |argument| {
            ABBREVIATED_SUBCOMMANDS
                .iter()
                .any(|(verb, least)| argument.len() >= *least && verb.starts_with(**argument))
        },
    );
    if let Some(verb) = short.filter(|_| name == "npm") {
        danger.add_outside_effect(|| format!("`{name} {verb}` {REACHES_MACHINES}"));
        if verb.starts_with("unp") {
            danger.add_destruction(|| "a published version".to_owned());
        }
    }
    if let Some(verb) = arguments.iter().find(|argument| PUBLISHING_SUBCOMMANDS.contains(argument)) {
        danger.add_outside_effect(|| format!("`{name} {verb}` {REACHES_MACHINES}"));
        if *verb == "unpublish" {
            danger.add_destruction(|| "a published version".to_owned());
        }
    }
    let global = arguments.iter().any(|argument| {
        matches!(*argument, "-g" | "--global" | "global" | "--location=global")
            || "--global".starts_with(argument) && argument.len() > 4
    });
    if global {
        danger.add_outside_effect(|| format!("`{name}` {INSTALLS_PACKAGES}"));
    }
}

fn check_deployment(name: &str, arguments: &[&str], danger: &mut Danger) {
    let verb = arguments.iter().find(|argument| {
        ["deploy", "publish"].iter().any(|verb| {
            argument
                .strip_prefix(verb)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '_']))
        })
    });
    if let Some(verb) = verb {
        danger.add_outside_effect(|| format!("`{name} {}` {REACHES_MACHINES}", shorten_word(verb)));
    }
}

fn check_publication(name: &str, arguments: &[&str], danger: &mut Danger) {
    let verbs: &[&str] = match name {
        "cargo" => &["publish", "yank", "owner", "login", "install", "uninstall"],
        "gem" => &["push", "yank", "owner", "signin", "install"],
        "twine" => &["upload", "register"],
        "mvn" | "mvnw" => &["deploy", "release:perform"],
        "gradle" | "gradlew" => &["publish", "uploadArchives", "publishToMavenCentral"],
        "dotnet" => &["push"],
        _ => &["publish"],
    };
    if let Some(verb) = arguments.iter().find(|argument| verbs.contains(argument)) {
        let what = if verb.ends_with("install") { INSTALLS_PACKAGES } else { REACHES_MACHINES };
        danger.add_outside_effect(|| format!("`{name} {verb}` {what}"));
    }
}

fn check_rsync(arguments: &[&str], danger: &mut Danger) {
    if arguments.iter().any(|argument| argument.contains(':')) {
        danger.add_outside_effect(|| format!("`rsync` {REACHES_MACHINES}"));
    }
    if arguments
        .iter()
        .any(|argument| argument.starts_with("--del") || argument.starts_with("--remove-source"))
    {
        danger.add_destruction(|| format!("files that only one side has: {}", join_operands(arguments)));
    }
    check_system_paths("rsync", arguments, danger);
}

fn check_terraform(name: &str, arguments: &[&str], danger: &mut Danger) {
    const LOCAL_SUBCOMMANDS: &[&str] = &["fmt", "validate", "version"];
    match arguments.iter().find(|argument| !argument.starts_with('-')) {
        Some(verb) if LOCAL_SUBCOMMANDS.contains(verb) => {}
        _ => danger.add_outside_effect(|| format!("`{name}` {REACHES_MACHINES}")),
    }
    if arguments.contains(&"destroy") || arguments.contains(&"-destroy") {
        danger.add_destruction(|| "everything that this configuration runs".to_owned());
    }
}

/// Sets level 3 if an argument is or is in a directory of the system, or is the whole disk or home
/// directory.
fn check_system_paths(name: &str, arguments: &[&str], danger: &mut Danger) {
    const WHOLE_TREES: &[&str] = &["/", "/*", "~", "~/", "~/*", "HOME", "/home", "/root", "/var", "/Users"];
    let found = arguments
        .iter()
        .find(|argument| WHOLE_TREES.contains(argument) || is_system_path(argument))
        .or_else(|| {
            arguments.iter().find(|argument| argument.starts_with("~/.") || argument.starts_with("HOME/."))
        });
    if let Some(place) = found {
        danger.add_outside_effect(|| format!("`{name}` on {} {CHANGES_SYSTEM}", shorten_word(place)));
    }
}

fn is_system_path(path: &str) -> bool {
    let within =
        |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    SYSTEM_DIRECTORIES.iter().any(|place| within(place))
        && !HARMLESS_DEVICES.iter().any(|device| within(device))
}

/// Checks redirections into protected paths.
fn check_redirections(command: &str, danger: &mut Danger) {
    for place in command.split('>').skip(1) {
        let place = place.trim_start_matches(['>', '|', '&', ' ', '\t', '\'', '"']);
        let end = place.find([' ', '\t', '\n', ';', '&', '|', ')', '\'', '"']).unwrap_or(place.len());
        check_written_file(place.get(..end).unwrap_or_default(), danger);
    }
}

/// Checks a file that a redirection writes.
pub(super) fn check_written_file(target: &str, danger: &mut Danger) {
    if is_system_path(target) {
        danger.add_outside_effect(|| format!("writing {} {CHANGES_SYSTEM}", shorten_word(target)));
    }
    match protection_of_text(target) {
        PathProtection::None => {}
        PathProtection::Guarded(why) => {
            danger.add_outside_effect(|| format!("it writes {}: {why}", shorten_word(target)))
        }
        PathProtection::Forbidden => {
            danger.add_outside_effect(|| format!("it writes {}, which belongs to git", shorten_word(target)));
        }
    }
}

/// Checks files that a program writes and names in its arguments.
fn check_written_files(name: &str, arguments: &[&str], danger: &mut Danger) {
    let operands: Vec<&str> =
        arguments.iter().copied().filter(|argument| !argument.starts_with('-')).collect();
    match name {
        "sed" if !has_option(arguments, 'i', "--in-place") => {}
        "tee" | "touch" | "mkdir" | "mv" | "sed" => {
            operands.iter().for_each(|operand| check_written_file(operand, danger))
        }
        _ => {
            // `-t` puts the directory first.
            for option in arguments.iter().filter_map(|argument| argument.strip_prefix("--target-directory="))
            {
                check_written_file(option, danger);
            }
            if has_option(arguments, 't', "--target-directory") {
                operands.first().into_iter().for_each(|operand| check_written_file(operand, danger));
            }
            operands.last().into_iter().for_each(|operand| check_written_file(operand, danger));
        }
    }
    let Some((last, sources)) = operands.split_last() else { return };
    if matches!(name, "cp" | "mv" | "ln" | "install") && (last.ends_with('/') || matches!(*last, "." | ".."))
    {
        for source in sources {
            let named = source.rsplit('/').next().unwrap_or(source);
            check_written_file(&format!("{}/{named}", last.trim_end_matches('/')), danger);
        }
    }
}

/// Formats the first few operands for people.
fn join_operands(arguments: &[&str]) -> String {
    let mut operands = arguments.iter().filter(|argument| !argument.starts_with('-'));
    let mut text = operands
        .by_ref()
        .take(MAX_WORDS_SHOWN)
        .map(|argument| shorten_word(argument))
        .collect::<Vec<_>>()
        .join(", ");
    if operands.next().is_some() {
        text.push_str(" and more");
    }
    if text.is_empty() { "what it is given".to_owned() } else { text }
}

fn shorten_word(word: &str) -> String {
    let mut text: String = word.chars().filter(|c| !c.is_control()).take(MAX_CHARACTERS_SHOWN).collect();
    if word.chars().nth(MAX_CHARACTERS_SHOWN).is_some() {
        text.push('…');
    }
    text
}
