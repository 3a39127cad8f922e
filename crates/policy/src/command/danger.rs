//! Searches a command for effects outside the project and for destruction.
//!
//! The text is split roughly: quotes and backslashes are removed, and separators separate inside
//! quotes too. So `bash -c "sudo rm"`, `r\m` and `x=$(git push)` are found, and sometimes a
//! harmless text is. A false alarm costs a question; a miss costs no more than the sandbox allows.

use std::borrow::Cow;

use names::{HARMLESS_DEVICES, Judged, MACHINES, PACKAGES, SYSTEM, SYSTEM_PLACES};

use journeyman_protocol::Level;

use super::options::{has_cluster, has_option};
use super::part::{Part, Word};
use crate::protect::{Protection, protection_of_text};

mod effects;
mod git;
mod names;
mod statements;

pub(super) use effects::Danger;
pub(super) use statements::statements;

/// Maximum number of words of a command in a reason.
const NAMED: usize = 4;
/// Maximum number of characters of such a word.
const NAMED_CHARACTERS: usize = 60;

/// Maximum number of words that are scanned again as arguments of a program. More occur only in
/// commands made to be slow; ordinary commands have a few hundred.
const MAX_SCANNED_WORDS: usize = 20_000;

/// Scans the text of a command.
pub(super) fn scan(command: &str) -> Danger {
    let mut danger = Danger::default();
    let mut words_left = MAX_SCANNED_WORDS;
    let text = rough(command);
    for segment in text.split('\n') {
        let words: Vec<&str> = segment.split(' ').filter(|word| !word.is_empty()).collect();
        scan_segment(&words, &mut danger, &mut words_left);
    }
    // Splitting loses unknown values, which could be anything.
    danger.beyond_undo |= danger.destroys.is_some() && command.contains(['$', '`', '[']);
    redirections(command, &mut danger);
    statements(command, &mut danger);
    danger
}

/// Checks a program with its arguments. Unless the arguments are only data, they are scanned like
/// the text of a command that was not parsed: one of them may be a program or contain one.
pub(super) fn part(words: &[&str], data: bool, danger: &mut Danger) {
    let Some((program, arguments)) = words.split_first() else { return };
    let name = base_name(program);
    if let Some(what) = names::outside(name, true) {
        danger.outside(|| format!("`{name}` {what}"));
    }
    if data {
        by_arguments(name, arguments, danger);
        return;
    }
    let mut words_left = MAX_SCANNED_WORDS;
    scan_segment(words, danger, &mut words_left);
    for text in arguments
        .iter()
        .filter(|text| text.contains([' ', '\t', '\n', ';', '|', '&', '(', '`', '<', '>', '=']))
    {
        for segment in rough(text).split('\n') {
            let words: Vec<&str> = segment.split(' ').filter(|word| !word.is_empty()).collect();
            scan_segment(&words, danger, &mut words_left);
        }
        redirections(text, danger);
    }
    let all = words.join(" ");
    statements(&all, danger);
}

/// Returns true if a program takes its arguments as data (names, numbers, messages) and never as a
/// program. Programs with argument rules are checked by these anyway.
pub(super) fn takes_data(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "basename", "cat", "cd", "chgrp", "chmod", "chown", "cp", "cut", "date", "df", "diff", "du", "echo",
        "false", "file", "git", "grep", "head", "install", "jq", "kill", "ln", "ls", "make", "mkdir",
        "mktemp", "mv", "npm", "pnpm", "printf", "pwd", "read", "readlink", "realpath", "rg", "rm", "rmdir",
        "seq", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "tree", "true", "truncate",
        "uniq", "unzip", "wait", "wc", "which", "yarn", "zip", "export", "unset", "cargo", "go", "pip",
        "pip3", "pytest", "tsc", "eslint", "prettier", "rustfmt", "gcc", "cc",
    ];
    NAMES.contains(&name)
}

/// Splits a text that was not parsed into parts: each may be a program with its arguments. For
/// rules that deny.
pub(super) fn rough_parts(command: &str) -> Vec<Part> {
    /// Maximum number of parts, and of words in a part. The command asks in any case.
    const MOST: usize = 200;
    rough(command)
        .split('\n')
        .map(|segment| segment.split(' ').filter(|word| !word.is_empty()).take(MOST))
        .map(|words| words.map(|word| Word { text: word.to_owned(), known: true }).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .take(MOST)
        .map(|words| Part {
            words,
            level: Level::Shell,
            reason: "it may be run by a command that isn't understood".to_owned(),
            ..Part::default()
        })
        .collect()
}

/// Returns the command without quotes and backslashes, with one rough command per line.
fn rough(command: &str) -> String {
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
    let wrapped = words.iter().any(|word| names::is_wrapper(base_name(word)));
    let mut may_be_program = true;
    for (index, word) in words.iter().enumerate() {
        let name = base_name(word);
        let arguments = words.get(index + 1..).unwrap_or_default();
        if let Some(what) = names::outside(name, may_be_program || wrapped) {
            danger.outside(|| format!("`{name}` {what}"));
        }
        if by_arguments(name, arguments, danger) {
            *words_left = words_left.saturating_sub(arguments.len());
            if *words_left == 0 {
                danger.outside(|| "it repeats itself too often to be judged".to_owned());
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
fn by_arguments(name: &str, arguments: &[&str], danger: &mut Danger) -> bool {
    if let Some(command) = super::unwrap_tools::git_program(name) {
        let words: Vec<&str> = std::iter::once(command).chain(arguments.iter().copied()).collect();
        git::git(&words, danger);
        return true;
    }
    let Some(judged) = names::judged(name) else { return false };
    match judged {
        Judged::Git => git::git(arguments, danger),
        Judged::NodePackages => node_packages(name, arguments, danger),
        Judged::Publishing => publishing(name, arguments, danger),
        Judged::Removing => {
            let recursive =
                name == "rmtree" || has_option(arguments, 'r', "--recursive") || has_cluster(arguments, 'R');
            danger.removes(|| format!("files removed: {}", named(arguments)));
            danger.beyond_undo |= !are_plain_files(arguments, recursive);
            system_places(name, arguments, danger);
        }
        Judged::Truncating => {
            danger.removes(|| format!("the content of {}", named(arguments)));
            danger.beyond_undo |= !are_plain_files(arguments, false);
            system_places(name, arguments, danger);
        }
        Judged::Copying => {
            if let Some(target) = arguments.iter().find_map(|argument| argument.strip_prefix("of=")) {
                danger.destroys(|| format!("what {} holds now", short(target)));
                system_places(name, &[target], danger);
                self::target(target, danger);
            }
        }
        Judged::Modes => {
            if has_option(arguments, 'R', "--recursive") {
                // The journal has modes, and owners can't be changed in the sandbox.
                danger.removes(|| format!("modes or owners of everything in {}", named(arguments)));
            }
            system_places(name, arguments, danger);
        }
        Judged::Moving | Judged::Writing => {
            if judged == Judged::Moving && has_cluster(arguments, 'f') {
                let last = arguments.get(arguments.len().saturating_sub(1)..).unwrap_or_default();
                danger.removes(|| format!("what was there before: {}", named(last)));
            }
            system_places(name, arguments, danger);
            targets(name, arguments, danger);
        }
        Judged::Finding if arguments.contains(&"-delete") => {
            danger.destroys(|| "the files that it finds".to_owned());
        }
        Judged::Finding => return false,
        Judged::Synchronizing => rsync(arguments, danger),
        Judged::Planning => terraform(name, arguments, danger),
        Judged::Service => removing(name, arguments, danger),
        Judged::Database => danger.destroys(|| format!("the database {}", named(arguments))),
        Judged::Format => {
            danger.outside(|| format!("`{name}` {SYSTEM}"));
            danger.destroys(|| format!("everything on {}", named(arguments)));
        }
        Judged::Deploying => deploying(name, arguments, danger),
    }
    true
}

/// Checks clients of services for commands that remove data there.
fn removing(name: &str, arguments: &[&str], danger: &mut Danger) {
    const REMOVING: &[&str] = &[
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
    if let Some(verb) = arguments.iter().find(|argument| REMOVING.contains(argument)) {
        danger.destroys(|| format!("what `{name} {verb}` removes"));
    }
}

/// Returns true if undo has everything that the operands name: plain files of the project, or
/// directories that tools create again. Names that begin with a dot (`.env` is rarely backed up)
/// and patterns are not accepted.
fn are_plain_files(arguments: &[&str], recursive: bool) -> bool {
    /// Caches that tools create beside the sources.
    const CACHES: &[&str] = &[
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
        _ if name.starts_with('.') => CACHES.contains(&name),
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

fn node_packages(name: &str, arguments: &[&str], danger: &mut Danger) {
    deploying(name, arguments, danger);
    const PUBLISHING: &[&str] = &[
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
    const ABBREVIATED: &[(&str, usize)] =
        &[("publish", 2), ("unpublish", 4), ("deprecate", 3), ("adduser", 4)];
    const OTHERS: &[&str] = &["run", "run-script", "test", "exec", "x", "install", "i", "ci", "add"];
    let short = arguments.iter().take_while(|argument| !OTHERS.contains(argument)).find(|argument| {
        ABBREVIATED.iter().any(|(verb, least)| argument.len() >= *least && verb.starts_with(**argument))
    });
    if let Some(verb) = short.filter(|_| name == "npm") {
        danger.outside(|| format!("`{name} {verb}` {MACHINES}"));
        if verb.starts_with("unp") {
            danger.destroys(|| "a published version".to_owned());
        }
    }
    if let Some(verb) = arguments.iter().find(|argument| PUBLISHING.contains(argument)) {
        danger.outside(|| format!("`{name} {verb}` {MACHINES}"));
        if *verb == "unpublish" {
            danger.destroys(|| "a published version".to_owned());
        }
    }
    let global = arguments.iter().any(|argument| {
        matches!(*argument, "-g" | "--global" | "global" | "--location=global")
            || "--global".starts_with(argument) && argument.len() > 4
    });
    if global {
        danger.outside(|| format!("`{name}` {PACKAGES}"));
    }
}

fn deploying(name: &str, arguments: &[&str], danger: &mut Danger) {
    let verb = arguments.iter().find(|argument| {
        ["deploy", "publish"].iter().any(|verb| {
            argument
                .strip_prefix(verb)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '_']))
        })
    });
    if let Some(verb) = verb {
        danger.outside(|| format!("`{name} {}` {MACHINES}", short(verb)));
    }
}

fn publishing(name: &str, arguments: &[&str], danger: &mut Danger) {
    let verbs: &[&str] = match name {
        "cargo" => &["publish", "yank", "owner", "login", "install", "uninstall"],
        "gem" => &["push", "yank", "owner", "signin", "install"],
        "twine" => &["upload", "register"],
        "mvn" => &["deploy", "release:perform"],
        "gradle" => &["publish", "uploadArchives", "publishToMavenCentral"],
        "dotnet" => &["push"],
        _ => &["publish"],
    };
    if let Some(verb) = arguments.iter().find(|argument| verbs.contains(argument)) {
        let what = if verb.ends_with("install") { PACKAGES } else { MACHINES };
        danger.outside(|| format!("`{name} {verb}` {what}"));
    }
}

fn rsync(arguments: &[&str], danger: &mut Danger) {
    if arguments.iter().any(|argument| argument.contains(':')) {
        danger.outside(|| format!("`rsync` {MACHINES}"));
    }
    if arguments
        .iter()
        .any(|argument| argument.starts_with("--del") || argument.starts_with("--remove-source"))
    {
        danger.destroys(|| format!("files that only one side has: {}", named(arguments)));
    }
    system_places("rsync", arguments, danger);
}

fn terraform(name: &str, arguments: &[&str], danger: &mut Danger) {
    const LOCAL: &[&str] = &["fmt", "validate", "version"];
    match arguments.iter().find(|argument| !argument.starts_with('-')) {
        Some(verb) if LOCAL.contains(verb) => {}
        _ => danger.outside(|| format!("`{name}` {MACHINES}")),
    }
    if arguments.contains(&"destroy") || arguments.contains(&"-destroy") {
        danger.destroys(|| "everything that this configuration runs".to_owned());
    }
}

/// Sets level 3 if an argument is or is in a directory of the system, or is the whole disk or home
/// directory.
fn system_places(name: &str, arguments: &[&str], danger: &mut Danger) {
    const WHOLE: &[&str] = &["/", "/*", "~", "~/", "~/*", "HOME", "/home", "/root", "/var", "/Users"];
    let found = arguments
        .iter()
        .find(|argument| WHOLE.contains(argument) || is_system_place(argument))
        .or_else(|| {
            arguments.iter().find(|argument| argument.starts_with("~/.") || argument.starts_with("HOME/."))
        });
    if let Some(place) = found {
        danger.outside(|| format!("`{name}` on {} {SYSTEM}", short(place)));
    }
}

fn is_system_place(path: &str) -> bool {
    let within =
        |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    SYSTEM_PLACES.iter().any(|place| within(place)) && !HARMLESS_DEVICES.iter().any(|device| within(device))
}

/// Checks redirections into protected paths.
fn redirections(command: &str, danger: &mut Danger) {
    for place in command.split('>').skip(1) {
        let place = place.trim_start_matches(['>', '|', '&', ' ', '\t', '\'', '"']);
        let end = place.find([' ', '\t', '\n', ';', '&', '|', ')', '\'', '"']).unwrap_or(place.len());
        target(place.get(..end).unwrap_or_default(), danger);
    }
}

/// Checks a file that a redirection writes.
pub(super) fn target(target: &str, danger: &mut Danger) {
    if is_system_place(target) {
        danger.outside(|| format!("writing {} {SYSTEM}", short(target)));
    }
    match protection_of_text(target) {
        Protection::None => {}
        Protection::Guarded(why) => danger.outside(|| format!("it writes {}: {why}", short(target))),
        Protection::Forbidden => {
            danger.outside(|| format!("it writes {}, which belongs to git", short(target)));
        }
    }
}

/// Checks files that a program writes and names in its arguments.
fn targets(name: &str, arguments: &[&str], danger: &mut Danger) {
    let operands: Vec<&str> =
        arguments.iter().copied().filter(|argument| !argument.starts_with('-')).collect();
    match name {
        "sed" if !has_option(arguments, 'i', "--in-place") => {}
        "tee" | "touch" | "mkdir" | "mv" | "sed" => {
            operands.iter().for_each(|operand| target(operand, danger))
        }
        _ => {
            // `-t` puts the directory first.
            for option in arguments.iter().filter_map(|argument| argument.strip_prefix("--target-directory="))
            {
                target(option, danger);
            }
            if has_option(arguments, 't', "--target-directory") {
                operands.first().into_iter().for_each(|operand| target(operand, danger));
            }
            operands.last().into_iter().for_each(|operand| target(operand, danger));
        }
    }
    let Some((last, sources)) = operands.split_last() else { return };
    if matches!(name, "cp" | "mv" | "ln" | "install") && (last.ends_with('/') || matches!(*last, "." | ".."))
    {
        for source in sources {
            let named = source.rsplit('/').next().unwrap_or(source);
            target(&format!("{}/{named}", last.trim_end_matches('/')), danger);
        }
    }
}

/// Formats the first few operands for people.
fn named(arguments: &[&str]) -> String {
    let mut operands = arguments.iter().filter(|argument| !argument.starts_with('-'));
    let mut text =
        operands.by_ref().take(NAMED).map(|argument| short(argument)).collect::<Vec<_>>().join(", ");
    if operands.next().is_some() {
        text.push_str(" and more");
    }
    if text.is_empty() { "what it is given".to_owned() } else { text }
}

fn short(word: &str) -> String {
    let mut text: String = word.chars().filter(|c| !c.is_control()).take(NAMED_CHARACTERS).collect();
    if word.chars().nth(NAMED_CHARACTERS).is_some() {
        text.push('…');
    }
    text
}
