//! Paths that make a task one of high risk.

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

use super::normalize::is_han;
use crate::protected_paths::{PathProtection, protection_of_text};

/// The paths of a project, as far as a pure function has to be told of them.
#[derive(Clone, Copy)]
pub struct ProjectPaths<'a> {
    /// The project's root: absolute, free of links; empty without a project.
    pub root: &'a str,
    /// Returns true if git tracks something under a name. The argument is an absolute path, or a
    /// path or a file name as a text has it (`src/main.rs`, `main.rs`), with `/` between names.
    pub is_tracked: &'a dyn Fn(&str) -> bool,
}

impl fmt::Debug for ProjectPaths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectPaths").field("root", &self.root).finish_non_exhaustive()
    }
}

const IN_PROJECT_REASON: &str = "the path is in the project";
const HOLDS_PROJECT_REASON: &str = "the path holds the project";
const TRACKED_REASON: &str = "git tracks the path";
const PROTECTED_REASON: &str = "the path is protected";
const HIDDEN_REASON: &str = "the path is hidden: settings and credentials are";
const SYSTEM_REASON: &str = "the path belongs to the system";
const HOME_REASON: &str = "the path is a whole home directory";
const UNRESOLVED_REASON: &str = "the path begins with a home directory that nobody looked up";
const LEAVES_DIRECTORY_REASON: &str = "the path leaves its directory";
const ELSEWHERE_REASON: &str = "the text names a place outside of a fresh directory";

/// Directories at the root of a file system, in lower case, whose content isn't a user's own.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "applications",
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "library",
    "nix",
    "opt",
    "proc",
    "program files",
    "program files (x86)",
    "programdata",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "system",
    "usr",
    "volumes",
    "windows",
];
/// Directories that hold home directories, in lower case.
const HOME_PARENTS: &[&str] = &["home", "users"];

impl ProjectPaths<'_> {
    /// Returns the reason why a task that writes to `path` is of high risk; `None` if the path
    /// doesn't say so.
    pub(super) fn judge_target(&self, path: &str) -> Option<&'static str> {
        let names = split_names(path);
        let root = split_names(self.root);
        let is_share = path.starts_with("\\\\");
        let begins_with = |names: &[String], front: &[String]| {
            names.len() >= front.len() && names.iter().zip(front).all(|(one, other)| is_same_name(one, other))
        };
        if let Some(reason) = judge_names(&names) {
            return Some(reason);
        }
        let has_project = !self.root.is_empty();
        if !is_absolute(path) || has_project && begins_with(&names, &root) {
            return Some(IN_PROJECT_REASON);
        }
        if has_project && begins_with(&root, &names) {
            return Some(HOLDS_PROJECT_REASON);
        }
        if (self.is_tracked)(path) {
            return Some(TRACKED_REASON);
        }
        // Drive letters name a root, as `/` does.
        let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let below = lower.iter().skip(usize::from(has_drive(path))).map(String::as_str).collect::<Vec<_>>();
        match below.as_slice() {
            [] => Some(SYSTEM_REASON),
            _ if is_share => Some(SYSTEM_REASON),
            [first, ..] if first.starts_with('~') => Some(UNRESOLVED_REASON),
            ["var", "tmp", _, ..] => None,
            ["var", ..] => Some(SYSTEM_REASON),
            [first, ..] if SYSTEM_DIRECTORIES.contains(first) => Some(SYSTEM_REASON),
            [first] | [first, _] if HOME_PARENTS.contains(first) => Some(HOME_REASON),
            _ => None,
        }
    }

    /// Returns the first path in `text` that makes the task one of high risk, with the reason.
    pub(super) fn find_in_text(&self, text: &str) -> Option<(String, &'static str)> {
        let text: String = text.nfkc().collect();
        text.split(ends_path).find_map(|token| {
            // A path may have Chinese names, and a Chinese sentence has no spaces around a path.
            let parts = token.split(is_han).filter(|part| part.len() < token.len());
            std::iter::once(token).chain(parts).find_map(|one| self.judge_token(one))
        })
    }

    fn judge_token(&self, token: &str) -> Option<(String, &'static str)> {
        let token = token.trim_end_matches(['.', ':', '!', '?']);
        if !token.contains(['.', '/', '\\', '~', '$', '%']) || token.contains("://") {
            return None;
        }
        let path = token.replace('\\', "/");
        let path = path.strip_prefix("./").unwrap_or(&path);
        let names = split_names(path);
        let reason = if names.is_empty() {
            None
        } else if let Some(reason) = judge_names(&names) {
            Some(reason)
        } else if is_absolute(path) || has_variable(path) {
            Some(ELSEWHERE_REASON)
        } else {
            (self.is_tracked)(path).then_some(TRACKED_REASON)
        };
        reason.map(|reason| (token.to_owned(), reason))
    }
}

/// Returns the reason that the names of a path give by themselves.
fn judge_names(names: &[String]) -> Option<&'static str> {
    let is_hidden = |name: &String| name.starts_with('.') && name.chars().any(char::is_alphanumeric);
    if names.iter().any(|name| name == "..") {
        Some(LEAVES_DIRECTORY_REASON)
    } else if names.iter().any(|name| protection_of_text(name) != PathProtection::None) {
        Some(PROTECTED_REASON)
    } else if names.iter().any(is_hidden) {
        Some(HIDDEN_REASON)
    } else {
        None
    }
}

/// Returns the names of a path, without empty ones and `.`, in one Unicode form.
fn split_names(path: &str) -> Vec<String> {
    let is_name = |name: &&str| !matches!(*name, "" | ".");
    path.split(['/', '\\']).filter(is_name).map(|name| name.nfkc().collect()).collect()
}

/// Compares names as the most lenient file system does.
fn is_same_name(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn is_absolute(path: &str) -> bool {
    // A share (`\\server`) begins with the separator, too.
    path.starts_with(['/', '\\', '~']) || has_drive(path)
}

/// Returns true if an environment variable decides where the path leads.
fn has_variable(path: &str) -> bool {
    path.split('/').any(|name| {
        let unquoted = name.strip_prefix(['$', '%']).map(|name| name.trim_start_matches('{'));
        unquoted.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
    })
}

/// Returns true for characters that end a path in a sentence.
fn ends_path(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '<' | '>' | '[' | ']' | '|' | '=' | '&'
        )
        || matches!(character, '\u{3000}'..='\u{303f}' | '\u{2018}'..='\u{201f}')
}
