//! Changes of protected paths, found afterwards where nothing prevents a command from making them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::clean_output;
use crate::denial::{Denial, DenialKind};

/// Maximum files that are compared. For more, the comparison is reported as impossible.
const MAX_FILES: usize = 200_000;
/// Changes that are named one by one.
const MAX_NAMED_CHANGES: usize = 20;
/// Characters of a path that are shown.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// The identity and the state of a file. The kernel sets the time of change itself; forging it
/// takes setting the clock, which commands may not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProtectedFileState {
    inode: (u64, u64),
    mode: u32,
    owner: (u32, u32),
    /// Length and time of change; of a directory neither, for its entries speak for themselves.
    content: Option<(u64, i64, i64)>,
}

/// The files at one moment. `None` where there were too many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProtectedSnapshot(Option<BTreeMap<PathBuf, ProtectedFileState>>);

impl ProtectedSnapshot {
    /// Looks at these paths and all beneath them, following no link. Blocks.
    pub(super) fn take(paths: &[PathBuf]) -> Self {
        let mut found = BTreeMap::new();
        let mut pending = paths.to_vec();
        while let Some(path) = pending.pop() {
            let Ok(seen) = fs::symlink_metadata(&path) else { continue };
            if found.len() >= MAX_FILES {
                return Self(None);
            }
            if seen.is_dir() {
                // The entries of an unlistable directory are unknown; a change of the directory
                // shows in its mode.
                pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            let content = (!seen.is_dir()).then(|| (seen.len(), seen.ctime(), seen.ctime_nsec()));
            let signature = ProtectedFileState {
                inode: (seen.dev(), seen.ino()),
                mode: seen.mode(),
                owner: (seen.uid(), seen.gid()),
                content,
            };
            found.insert(path, signature);
        }
        Self(Some(found))
    }

    /// Returns the files that changed, came or went since, with names beneath the root.
    pub(super) fn find_changes(&self, later: &Self, root: &Path) -> Vec<Denial> {
        let (Some(before), Some(after)) = (&self.0, &later.0) else {
            return vec![breach_denial("protected paths have too many files to be compared".to_owned())];
        };
        let changed = before.iter().filter_map(|(path, was)| match after.get(path) {
            None => Some((path, "was removed")),
            Some(is) if is != was => Some((path, "was changed")),
            Some(_) => None,
        });
        let made = after.keys().filter(|path| !before.contains_key(*path)).map(|path| (path, "was made"));
        let mut all: Vec<(&PathBuf, &str)> = changed.chain(made).collect();
        // Many harmless changes must not hide a dangerous one.
        all.sort_by_key(|(path, _)| {
            let now = after.get(*path).or_else(|| before.get(*path));
            danger_rank(path, now.is_some_and(|file| file.mode & 0o111 != 0 && file.content.is_some()))
        });
        let mut denials: Vec<Denial> = all
            .iter()
            .take(MAX_NAMED_CHANGES)
            .map(|(path, what)| {
                let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
                let name: String = clean_output(name.as_bytes()).chars().take(MAX_SHOWN_CHARACTERS).collect();
                breach_denial(format!("`{name}` {what}"))
            })
            .collect();
        if all.len() > MAX_NAMED_CHANGES {
            denials.push(breach_denial(format!(
                "{} more protected files changed",
                all.len() - MAX_NAMED_CHANGES
            )));
        }
        denials
    }
}

/// Returns the rank of a change among those that are named: what is executed first, then what is
/// obeyed.
fn danger_rank(path: &Path, executable: bool) -> u8 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let in_hooks = path.parent().is_some_and(|dir| dir.ends_with("hooks"));
    match () {
        () if in_hooks && !name.ends_with(".sample") => 0,
        () if name == "hooks"
            || name.starts_with("config")
            || name == "commondir"
            || name == "attributes" =>
        {
            1
        }
        () if executable => 2,
        () if path.components().any(|part| part.as_os_str() == "objects") => 4,
        () => 3,
    }
}

fn breach_denial(what: String) -> Denial {
    Denial {
        kind: DenialKind::Breach,
        what,
        certain: true,
        hint: "Landlock alone can't protect it: look at it, and put it back, before anything runs that trusts it"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_named_and_reading_is_none() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at(".git/hooks")).unwrap();
        for name in [".git/config", ".git/HEAD", ".git/index", ".git/hooks/sample"] {
            fs::write(at(name), "old").unwrap();
        }
        let paths = [at(".git"), at(".journeyman")];
        let before = ProtectedSnapshot::take(&paths);
        fs::read(at(".git/config")).unwrap();
        assert_eq!(before.find_changes(&ProtectedSnapshot::take(&paths), place.path()), []);
        // The same length, and the time of the last write put back.
        let time = fs::metadata(at(".git/config")).unwrap().modified().unwrap();
        fs::write(at(".git/config"), "new").unwrap();
        fs::File::options().write(true).open(at(".git/config")).unwrap().set_modified(time).unwrap();
        fs::remove_file(at(".git/HEAD")).unwrap();
        fs::write(at(".git/hooks/pre-commit"), "x").unwrap();
        fs::create_dir(at(".journeyman")).unwrap();
        let changes = before.find_changes(&ProtectedSnapshot::take(&paths), place.path());
        let said: Vec<&str> = changes.iter().map(|denial| denial.what.as_str()).collect();
        assert_eq!(
            said,
            [
                "`.git/hooks/pre-commit` was made",
                "`.git/config` was changed",
                "`.git/HEAD` was removed",
                "`.journeyman` was made",
            ]
        );
        assert!(changes.iter().all(|denial| denial.certain && denial.kind == DenialKind::Breach));
    }

    #[test]
    fn what_is_run_or_obeyed_is_named_before_what_is_not() {
        let place = tempfile::tempdir().unwrap();
        let hooks = place.path().join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(place.path().join(".git/config"), "").unwrap();
        let paths = [place.path().join(".git")];
        let before = ProtectedSnapshot::take(&paths);
        for number in 0..2 * MAX_NAMED_CHANGES {
            fs::write(hooks.join(format!("a{number}.sample")), "").unwrap();
        }
        fs::write(hooks.join("pre-commit"), "evil").unwrap();
        fs::write(place.path().join(".git/config"), "evil").unwrap();
        let changes = before.find_changes(&ProtectedSnapshot::take(&paths), place.path());
        let first: Vec<&str> = changes.iter().take(2).map(|denial| denial.what.as_str()).collect();
        assert_eq!(first, ["`.git/hooks/pre-commit` was made", "`.git/config` was changed"]);
    }

    #[test]
    fn many_changes_are_counted() {
        let place = tempfile::tempdir().unwrap();
        let paths = [place.path().to_owned()];
        let before = ProtectedSnapshot::take(&paths);
        for number in 0..30 {
            fs::write(place.path().join(number.to_string()), "").unwrap();
        }
        let changes = before.find_changes(&ProtectedSnapshot::take(&paths), place.path());
        assert_eq!(changes.len(), MAX_NAMED_CHANGES + 1);
        assert!(changes.last().unwrap().what.starts_with("10 more"));
    }
}
