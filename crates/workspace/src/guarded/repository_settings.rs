//! Detects repositories whose settings or hooks make git run something.
//!
//! Builds clone dependencies into ignored directories, and tests make repositories there. Git does
//! nothing in such a one but read and write files, unless its settings name a program or its hooks
//! are there. So the settings are held against a list of what `git clone`, `git init` and `git
//! submodule` write; all else counts as running something.

use journeyman_protocol::{ContentHash, RelPath};

use crate::files::directory::entry_names;
use crate::files::root_dir::RootDir;
use crate::guarded::kept_paths::read_small;

/// Maximum size of settings that are read, in bytes; larger ones count as running something.
const MAX_SETTINGS_BYTES: u64 = 256 * 1024;
/// Maximum number of pointers from a `.git` file to the next that are followed.
const MAX_GITFILE_HOPS: usize = 4;

/// Sections of a plain clone's settings, and their keys, in lower case.
const HARMLESS_SETTINGS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "worktree",
            "autocrlf",
            "eol",
            "safecrlf",
            "longpaths",
            "sparsecheckout",
            "sparsecheckoutcone",
            "compression",
            "commitgraph",
            "multipackindex",
            "untrackedcache",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "sharedrepository",
            "quotepath",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "tagopt", "mirror", "promisor", "partialclonefilter", "prune"]),
    ("branch", &["remote", "merge", "rebase", "description"]),
    ("submodule", &["url", "active", "branch", "path"]),
    ("extensions", &["objectformat", "compatobjectformat", "refstorage", "partialclone", "preciousobjects"]),
    ("gc", &["auto", "autodetach", "autopacklimit"]),
    ("maintenance", &["auto", "strategy"]),
    ("advice", &["detachedhead"]),
    ("init", &["defaultbranch"]),
    ("fetch", &["prune", "recursesubmodules"]),
    ("pack", &["threads", "windowmemory"]),
    ("index", &["version", "threads", "sparse"]),
    ("receive", &["denynonfastforwards", "denycurrentbranch"]),
    ("lfs", &["repositoryformatversion"]),
    ("user", &["name", "email"]),
    ("commit", &["gpgsign"]),
    ("tag", &["gpgsign"]),
];

/// Returns a hash of the settings and hooks of the repository at `path`, a `.git` or a bare one, if
/// git runs something because of them; `None` if it runs nothing. Another hash means that git may
/// run something else by now.
pub(crate) fn hash_executing_settings(root_dir: &RootDir, path: &RelPath) -> Option<ContentHash> {
    let mut dir = path.clone();
    for _ in 0..MAX_GITFILE_HOPS {
        match root_dir.stat(&dir) {
            Ok(Some(seen)) if seen.is_dir() => return hash_settings(root_dir, &dir),
            Ok(Some(seen)) if seen.is_file() => {}
            Ok(None) => return None,
            // Links, and what can't be looked at.
            _ => return Some(ContentHash::of(dir.as_bytes())),
        }
        let text = read_small(root_dir, &dir, MAX_SETTINGS_BYTES).unwrap_or_default();
        match gitfile_target(&dir, &text) {
            Some(target) => dir = target,
            None => return Some(ContentHash::of(&text)),
        }
    }
    Some(ContentHash::of(dir.as_bytes()))
}

/// Returns the target of a `.git` file, if that is in the tree, by its text alone.
fn gitfile_target(file: &RelPath, text: &[u8]) -> Option<RelPath> {
    let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
    if target.starts_with(b"/") {
        return None;
    }
    let mut parts: Vec<&[u8]> = file.components().collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    RelPath::parse(parts.join(&b'/')).ok()
}

fn hash_settings(root_dir: &RootDir, dir: &RelPath) -> Option<ContentHash> {
    let mut text = Vec::new();
    let mut runs = false;
    let Ok(open) = root_dir.open_directory(Some(dir)) else { return Some(ContentHash::of(dir.as_bytes())) };
    let names = entry_names(&open).unwrap_or_default();
    let is = |name: &[u8], other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    for name in &names {
        if is(name, "config") {
            let settings =
                dir.join(name).ok().and_then(|path| read_small(root_dir, &path, MAX_SETTINGS_BYTES));
            runs |= settings.as_ref().is_none_or(|settings| !has_only_harmless_settings(settings));
            text.extend(settings.unwrap_or_default());
        } else if is(name, "config.worktree") || is(name, "commondir") {
            runs = true;
            let other = dir.join(name).ok().and_then(|path| read_small(root_dir, &path, MAX_SETTINGS_BYTES));
            text.extend(other.unwrap_or_default());
        } else if is(name, "hooks") {
            runs |= add_hooks(root_dir, dir, name, &mut text);
        }
    }
    runs.then(|| ContentHash::of(&text))
}

/// Returns true if there are hooks; adds their names and metadata to `text`.
fn add_hooks(root_dir: &RootDir, dir: &RelPath, name: &[u8], text: &mut Vec<u8>) -> bool {
    let Ok(dir) = dir.join(name) else { return true };
    let Ok(open) = root_dir.open_directory(Some(&dir)) else { return true };
    let Ok(mut names) = entry_names(&open) else { return true };
    names.retain(|name| !name.ends_with(b".sample"));
    names.sort_unstable();
    for name in &names {
        let seen = dir.join(name).ok().and_then(|path| root_dir.stat(&path).ok().flatten());
        text.extend_from_slice(name);
        text.extend_from_slice(format!("{seen:?}").as_bytes());
    }
    !names.is_empty()
}

/// Returns true if settings are of the listed kind, line by line. What isn't understood isn't
/// plain.
fn has_only_harmless_settings(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut keys: &[&str] = &[];
    text.split('\n').all(|line| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        // A line that goes on, and what could hide an end of line from us.
        if line.ends_with('\\') || line.contains(['\0', '\r']) {
            return false;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']') else { return false };
            let (name, rest) = header.split_once(' ').unwrap_or((header, ""));
            let quoted = rest.is_empty()
                || rest
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'))
                    .is_some_and(|name| !name.contains(['"', '\\', ']', '[']));
            let section = HARMLESS_SETTINGS.iter().find(|(section, _)| name.eq_ignore_ascii_case(section));
            keys = section.map_or(&[], |(_, keys)| keys);
            return quoted && section.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim();
        // `helper::address` starts the program `git-remote-helper`.
        let names_helper = key.to_ascii_lowercase().ends_with("url") && value.contains("::");
        !names_helper && keys.iter().any(|known| key.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_clones_are_plain_and_those_that_name_programs_are_not() {
        let plain = [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "# words\n[submodule \"lib/a\"]\n\tactive = true\n\turl = ../a.git\n",
            "[CORE]\nWORKTREE = ../../x\n",
        ];
        for text in plain {
            assert!(has_only_harmless_settings(text.as_bytes()), "{text}");
        }
        let others = [
            "[core]\n\tfsmonitor = ./evil\n",
            "[core] fsmonitor = ./evil\n",
            "[core]\nbare = false \\\nfsmonitor = x\n",
            "[core]\r[core]\nhooksPath = x\n",
            "[include]\n\tpath = ../evil\n",
            "[remote \"o\"]\nurl = ext::sh -c evil\n",
            "[remote \"o\"]\nuploadpack = evil\n",
            "[remote \"a\\\"]\nurl = x\n",
            "[submodule \"a\"]\nupdate = !evil\n",
            "[filter \"x\"]\nsmudge = evil\n",
            "[alias]\nst = !evil\n",
            "[core.x]\nbare = true\n",
            "sshCommand = evil\n",
        ];
        for text in others {
            assert!(!has_only_harmless_settings(text.as_bytes()), "{text}");
        }
        assert!(!has_only_harmless_settings(b"\xff"));
    }

    #[test]
    fn pointers_lead_no_further_than_the_tree() {
        let at = RelPath::parse("build/dep/.git").unwrap();
        let to = |text: &str| gitfile_target(&at, text.as_bytes()).map(|path| path.to_string());
        assert_eq!(to("gitdir: ../store/dep\n"), Some("build/store/dep".to_owned()));
        assert_eq!(to("gitdir: ../../../x"), None);
        assert_eq!(to("gitdir: /tmp/x"), None);
        assert_eq!(to("x"), None);
    }
}
