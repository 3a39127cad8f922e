//! Looking up files, with a record of every looked-up place.

use hashbrown::HashSet;

use super::path::{MAX_PATH_BYTES, join_path, last_part, parent};
use super::path_set::{LookupKey, Paths};

/// Maximum files of one import: a longer list of a package's files is useless.
pub(super) const MAX_IMPORTED_FILES: usize = 200;
/// Maximum places in which one file's imports are looked up. Only hostile input needs more.
const MAX_LOOKUPS: usize = 200_000;

/// The files of a project, and the record of looked-up places.
pub(super) struct PathLookup<'a> {
    paths: &'a dyn Paths,
    looked: HashSet<LookupKey>,
}

impl<'a> PathLookup<'a> {
    pub(super) fn new(paths: &'a dyn Paths) -> Self {
        Self { paths, looked: HashSet::new() }
    }

    /// Returns the sorted keys of the looked-up places.
    pub(super) fn into_keys(self) -> Vec<LookupKey> {
        let mut keys: Vec<LookupKey> = self.looked.into_iter().collect();
        keys.sort_unstable();
        keys
    }

    /// Records the key of a place; false beyond the maximum of look-ups.
    fn record_lookup(&mut self, key: LookupKey) -> bool {
        if self.looked.len() >= MAX_LOOKUPS {
            return false;
        }
        self.looked.insert(key);
        true
    }

    /// Returns the path, if there is such a file.
    pub(super) fn existing_file(&mut self, path: String) -> Option<String> {
        let there = !path.is_empty()
            && path.len() <= MAX_PATH_BYTES
            && self.has_files_beneath(parent(&path))
            && self.record_lookup(LookupKey::of_path(&path))
            && self.paths.has_file(&path);
        there.then_some(path)
    }

    /// Returns true if a folder has files at any depth. All look-ups in an empty folder share one
    /// key.
    pub(super) fn has_files_beneath(&mut self, folder: &str) -> bool {
        self.paths.has_files_beneath(folder) || {
            self.record_lookup(LookupKey::of_empty_folder(folder));
            false
        }
    }

    /// Returns the first existing file of some, relative to a folder.
    pub(super) fn first_existing<'s>(
        &mut self,
        folder: &str,
        files: impl IntoIterator<Item = &'s str>,
    ) -> Option<String> {
        files.into_iter().find_map(|file| join_path(folder, file).and_then(|path| self.existing_file(path)))
    }

    /// Returns a folder's own files with one of these endings.
    pub(super) fn files_in_folder(&mut self, folder: &str, endings: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        if self.record_lookup(LookupKey::of_folder(folder)) {
            self.paths.visit_files_in(folder, &mut |path| {
                if found.len() < MAX_IMPORTED_FILES && endings.iter().any(|ending| path.ends_with(ending)) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }

    /// Returns the files whose path ends with these whole parts.
    pub(super) fn files_ending_with(&mut self, end: &str) -> Vec<String> {
        let mut found = Vec::new();
        let end = end.trim_start_matches('/');
        if !end.is_empty() && self.record_lookup(LookupKey::of_name(last_part(end))) {
            self.paths.visit_files_named(last_part(end), &mut |path| {
                if found.len() < MAX_IMPORTED_FILES && ends_with_parts(path, end) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }

    /// Returns the folders with files whose path ends with these parts.
    pub(super) fn folders_ending_with(&mut self, end: &str) -> Vec<String> {
        let mut found = Vec::new();
        if !end.is_empty() && self.record_lookup(LookupKey::of_folder_name(last_part(end))) {
            self.paths.visit_folders_named(last_part(end), &mut |path| {
                if found.len() < MAX_IMPORTED_FILES && ends_with_parts(path, end) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }
}

fn ends_with_parts(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}
