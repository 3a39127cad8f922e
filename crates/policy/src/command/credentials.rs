//! Reading what signs somebody in.
//!
//! The sandbox shows none of it. It isn't level 0 all the same: what is looked for there is no part of the project.

use crate::secrets::is_secret_name;

/// Names of files and directories of a home that hold credentials.
const HOLDERS: &[&str] = &[
    ".aws",
    ".azure",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
    "credentials",
    "credentials.toml",
    "gcloud",
    "gshadow",
    "hosts.yml",
    "keyrings",
    "shadow",
];
/// Programs that tell of a file without showing what is in it.
const ABOUT: &[&str] = &[
    ":", "[", "[[", "basename", "cd", "dirname", "du", "echo", "file", "ls", "printf", "readlink",
    "realpath", "stat", "test", "which",
];

/// Whether a program with these words reads credentials: files that hold them, outside of the project, or a variable
/// whose name says so.
pub(super) fn are_read<'a>(program: &str, words: impl Iterator<Item = &'a str>) -> bool {
    !ABOUT.contains(&program) && { words }
        .any(|word| is_holder(word) || program == "printenv" && is_secret_name(word))
}

fn is_holder(word: &str) -> bool {
    // `--file=/x`
    let path = word.split_once('=').map_or(word, |(_, value)| value).trim_start_matches(['"', '\'']);
    let outside = path.starts_with(['/', '~', '$']) || path.split('/').any(|name| name == "..");
    let environment = path.starts_with("/proc/") && path.ends_with("/environ");
    outside && (environment || path.split('/').any(|name| HOLDERS.contains(&name.trim_end_matches('"'))))
}
