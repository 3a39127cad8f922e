//! Credentials in settings that a command may read otherwise: addresses with a password, and keys
//! named for a secret.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use journeyman_protocol::RelPath;

use crate::host_files::HostFiles;

/// Maximum bytes of settings that are searched: longer settings are hidden whole.
const MAX_SETTINGS_BYTES: u64 = 256 * 1024;
/// Submodules of a directory whose settings are looked at; a project has a handful.
const MAX_SUBMODULES: usize = 64;
/// Directories of one repository that are searched for submodules.
const MAX_SEARCHED_DIRECTORIES: usize = 256;
/// A key or variable with one of these in its name has a secret for a value.
const SECRET_KEY_WORDS: [&str; 4] = ["extraheader", "pass", "secret", "token"];
/// Schemes in whose addresses the name of a user is as good as a password: code hosts take tokens
/// there.
const TOKEN_SCHEMES: [&[u8]; 4] = [b"http", b"https", b"ftp", b"ftps"];
/// The text in place of a credential.
const SECRET_PLACEHOLDER: &[u8] = b"***";
/// The text in place of settings that are hidden whole.
const HIDDEN_SETTINGS_TEXT: &[u8] = b"# hidden from commands: longer than can be searched for credentials\n";

/// Returns the git settings beneath the root's protected paths that hold credentials, each with its
/// text without them.
pub(crate) fn blank_git_settings(
    protected: &[RelPath],
    root: &Path,
    view: &HostFiles,
) -> Vec<(PathBuf, CString)> {
    let is_git = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
            || view.metadata(&path.join("HEAD")).is_ok()
    };
    let protected = protected.iter().map(|path| root.join(path.as_path()));
    let mut all = Vec::new();
    for directory in protected.filter(|path| view.is_dir(path) && is_git(path)) {
        all.extend(repository_directories(directory, view).into_iter().filter_map(|of| {
            let file = of.join("config");
            // The target of a link is shown or hidden under its own name.
            let text = view
                .metadata(&file)
                .ok()
                .filter(fs::Metadata::is_file)
                .and_then(|_| read_settings(&view.host_path(&file)))?;
            let text = if text.len() as u64 > MAX_SETTINGS_BYTES {
                HIDDEN_SETTINGS_TEXT.to_vec()
            } else {
                blank_credentials(&text)?
            };
            Some((file, CString::new(text).or_else(|_| CString::new(HIDDEN_SETTINGS_TEXT)).ok()?))
        }));
    }
    all
}

/// Returns a repository's own directory and those of its submodules, which have submodules too. A
/// submodule's name may have slashes.
fn repository_directories(top: PathBuf, view: &HostFiles) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![top]);
    for _ in 0..MAX_SEARCHED_DIRECTORIES {
        let Some(mut directory) = pending.pop() else { break };
        if found.is_empty() || view.metadata(&directory.join("config")).is_ok() {
            found.push(directory.clone());
            directory.push("modules");
        }
        let entries = fs::read_dir(view.host_path(&directory)).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        pending.extend(directories.take(MAX_SUBMODULES).map(|entry| directory.join(entry.file_name())));
    }
    found
}

/// Returns true if a file can't be read, or holds what may be a credential.
pub(crate) fn holds_credentials(file: &Path) -> bool {
    // Opening a pipe would wait for a writer.
    if !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return true;
    }
    let Some(text) = read_settings(file) else { return true };
    let lower = text.to_ascii_lowercase();
    let names = |word: &str| lower.windows(word.len()).any(|window| window == word.as_bytes());
    // Libraries take a proxy without a scheme.
    let proxy = |line: &[u8]| line.contains(&b'@') && line.windows(5).any(|window| window == b"proxy");
    text.len() as u64 > MAX_SETTINGS_BYTES
        || ["token", "password", "secret"].into_iter().any(names)
        || lower.split(|byte| *byte == b'\n').any(proxy)
        || blank_credentials(&text).is_some()
}

/// Reads a file up to one byte more than is searched.
fn read_settings(file: &Path) -> Option<Vec<u8>> {
    let read = || {
        let mut text = Vec::new();
        File::open(file)?.take(MAX_SETTINGS_BYTES + 1).read_to_end(&mut text)?;
        Ok::<_, io::Error>(text)
    };
    read().ok()
}

/// Returns the text with its credentials blanked; `None` where it has none.
fn blank_credentials(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut found, mut goes_on) = (false, false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = line.trim_ascii_end();
        let was_secret = goes_on;
        let value = if was_secret { Some(0) } else { find_secret_value(end) };
        // A backslash at the end continues the value on the next line.
        goes_on = value.is_some() && end.last() == Some(&b'\\');
        match value {
            Some(at) => {
                found = true;
                if !was_secret {
                    out.extend_from_slice(end.get(..at).unwrap_or_default());
                    out.push(b' ');
                    out.extend_from_slice(SECRET_PLACEHOLDER);
                    out.push(b'\n');
                }
            }
            None => found |= blank_url_passwords(line, &mut out),
        }
    }
    found.then_some(out)
}

/// Returns the start in a line of the value of a key that is named for a secret.
fn find_secret_value(line: &[u8]) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    SECRET_KEY_WORDS.iter().find_map(|key| {
        let mut starts = lower.windows(key.len()).enumerate().filter(|(_, window)| *window == key.as_bytes());
        starts.find_map(|(at, _)| {
            let rest = lower.get(at + key.len()..)?;
            let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
            let blanks = rest.get(name..)?.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let equals = at + key.len() + name + blanks;
            (lower.get(equals) == Some(&b'=') && equals + 1 < lower.len()).then_some(equals + 1)
        })
    })
}

/// Copies a line, without passwords in its addresses; returns true if there was one.
fn blank_url_passwords(line: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut rest, mut found) = (line, false);
    while let Some(at) = rest.windows(3).position(|window| window == b"://") {
        let (before, after) = rest.split_at(at + 3);
        let scheme = before.get(..at).unwrap_or_default();
        let letters = scheme.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let scheme = scheme.get(at - letters..).unwrap_or_default().to_ascii_lowercase();
        out.extend_from_slice(before);
        rest = after;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>".contains(byte);
        let authority = after.get(..after.iter().position(ends).unwrap_or(after.len())).unwrap_or_default();
        let Some(user) = authority.iter().rposition(|byte| *byte == b'@').filter(|end| *end > 0) else {
            continue;
        };
        let info = after.get(..user).unwrap_or_default();
        let kept = match info.iter().position(|byte| *byte == b':') {
            _ if TOKEN_SCHEMES.contains(&scheme.as_slice()) => 0,
            Some(colon) => colon + 1,
            None => continue,
        };
        found = true;
        out.extend_from_slice(info.get(..kept).unwrap_or_default());
        out.extend_from_slice(SECRET_PLACEHOLDER);
        rest = after.get(user..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    found
}

/// Returns the files right in a directory, or none.
pub(crate) fn list_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_SUBMODULES);
    entries.map(|entry| entry.path()).filter(|path| !path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_blanked_and_all_else_stays() {
        let cases = [
            ("\turl = https://bob:pw@host.org/a.git\n", Some("\turl = https://***@host.org/a.git\n")),
            ("\turl = https://ghp_abc@github.com/a\n", Some("\turl = https://***@github.com/a\n")),
            ("\turl = HTTPS://bob:p@w@host/a\n", Some("\turl = HTTPS://***@host/a\n")),
            ("\turl = ssh://git@host/a\n", None),
            ("\turl = ssh://git:pw@host/a\n", Some("\turl = ssh://git:***@host/a\n")),
            ("\turl = git@host:a.git\n", None),
            ("\turl = https://host/a@b\n", None),
            (
                "[url \"https://t0ken@h/\"]\n\tinsteadOf = h:\n",
                Some("[url \"https://***@h/\"]\n\tinsteadOf = h:\n"),
            ),
            ("\textraheader = AUTHORIZATION: basic eDp5\n", Some("\textraheader = ***\n")),
            ("[http] extraHeader=a\\\n  b\n\tx = 1\n", Some("[http] extraHeader= ***\n\tx = 1\n")),
            ("\tsmtpPass = abc\n", Some("\tsmtpPass = ***\n")),
            ("\thelper = !f() { echo password=abc; }; f\n", Some("\thelper = !f() { echo password= ***\n")),
            ("[core]\n\tbare = false\n", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = blank_credentials(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
