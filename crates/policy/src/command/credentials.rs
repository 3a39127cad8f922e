//! Recognizes commands that read credentials.
//!
//! The sandbox hides credentials. Such commands are still not level 0, because credentials are not
//! a part of the project.

use crate::secrets::is_secret_name;

/// Names of files and directories in a home directory that hold credentials.
const CREDENTIAL_NAMES: &[&str] = &[
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
/// Programs that describe a file without showing its content.
const NON_READING_PROGRAMS: &[&str] = &[
    ":", "[", "[[", "basename", "cd", "dirname", "du", "echo", "file", "ls", "printf", "readlink",
    "realpath", "stat", "test", "which",
];

/// Returns true if a program with these words reads credentials: files outside the project that
/// hold credentials, or a variable with a secret name.
pub(super) fn reads_credentials<'a>(program: &str, words: impl Iterator<Item = &'a str>) -> bool {
    !NON_READING_PROGRAMS.contains(&program) && { words }
        .any(|word| is_credential_path(word) || program == "printenv" && is_secret_name(word))
}

fn is_credential_path(word: &str) -> bool {
    // `--file=/x`
    let path = word.split_once('=').map_or(word, |(_, value)| value).trim_start_matches(['"', '\'']);
    let outside = path.starts_with(['/', '~', '$']) || path.split('/').any(|name| name == "..");
    let environment = path.starts_with("/proc/") && path.ends_with("/environ");
    outside
        && (environment || path.split('/').any(|name| CREDENTIAL_NAMES.contains(&name.trim_end_matches('"'))))
}
