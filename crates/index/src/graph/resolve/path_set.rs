//! The paths of a project, and keys of looked-up places.

use std::collections::{BTreeMap, BTreeSet};

/// The paths of a project, without a leading `/`.
pub trait Paths {
    /// Returns true if there is such a file.
    fn has_file(&self, path: &str) -> bool;
    /// Returns true if a folder has files at any depth.
    fn has_files_beneath(&self, folder: &str) -> bool;
    /// Calls `visit` with each file right in a folder; the root is empty.
    fn visit_files_in(&self, folder: &str, visit: &mut dyn FnMut(&str));
    /// Calls `visit` with each file of a name.
    fn visit_files_named(&self, name: &str, visit: &mut dyn FnMut(&str));
    /// Calls `visit` with each folder of a name that has files right in it.
    fn visit_folders_named(&self, name: &str, visit: &mut dyn FnMut(&str));
}

/// The key of a looked-up place: a stable number that may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupKey(pub u64);

impl LookupKey {
    pub(super) fn of_path(path: &str) -> Self {
        Self::hash_key(b'p', path)
    }

    pub(super) fn of_folder(path: &str) -> Self {
        Self::hash_key(b'f', path)
    }

    /// A folder without files at any depth.
    pub(super) fn of_empty_folder(path: &str) -> Self {
        Self::hash_key(b'b', path)
    }

    pub(super) fn of_name(name: &str) -> Self {
        Self::hash_key(b'n', name)
    }

    pub(super) fn of_folder_name(name: &str) -> Self {
        Self::hash_key(b'd', name)
    }

    /// FNV-1a of 64 bits. A collision only costs a needless resolution.
    fn hash_key(sort: u8, text: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(text.bytes().fold(step(0xcbf2_9ce4_8422_2325, sort), step))
    }
}

/// Returns the keys of the places that a file's appearance or disappearance changes.
pub fn keys_changed_by(path: &str) -> impl Iterator<Item = LookupKey> {
    let folder = super::parent(path);
    let own = [
        LookupKey::of_path(path),
        LookupKey::of_name(super::last_part(path)),
        LookupKey::of_folder(folder),
        LookupKey::of_folder_name(super::last_part(folder)),
    ];
    own.into_iter().chain(super::folder_and_ancestors(folder).map(LookupKey::of_empty_folder))
}

/// Paths in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSet {
    folders: BTreeMap<String, BTreeSet<String>>,
    /// By file name, its folders.
    names: BTreeMap<String, BTreeSet<String>>,
    /// By a folder's name, the folders.
    folder_names: BTreeMap<String, BTreeSet<String>>,
}

impl PathSet {
    /// Creates the set of these paths.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known = Self::default();
        paths.into_iter().for_each(|path| known.add(path));
        known
    }

    /// Adds a file.
    pub fn add(&mut self, path: &str) {
        let (folder, name) = (super::parent(path).to_owned(), super::last_part(path).to_owned());
        self.names.entry(name.clone()).or_default().insert(folder.clone());
        self.folder_names.entry(super::last_part(&folder).to_owned()).or_default().insert(folder.clone());
        self.folders.entry(folder).or_default().insert(name);
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        let (folder, name) = (super::parent(path), super::last_part(path));
        remove_value(&mut self.names, name, folder);
        remove_value(&mut self.folders, folder, name);
        if !self.folders.contains_key(folder) {
            remove_value(&mut self.folder_names, super::last_part(folder), folder);
        }
    }
}

fn remove_value(map: &mut BTreeMap<String, BTreeSet<String>>, key: &str, value: &str) {
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
}

fn join_name(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Paths for PathSet {
    fn has_file(&self, path: &str) -> bool {
        self.folders.get(super::parent(path)).is_some_and(|names| names.contains(super::last_part(path)))
    }

    fn has_files_beneath(&self, folder: &str) -> bool {
        let first = format!("{folder}/");
        let deeper =
            || self.folders.range(first.clone()..).next().is_some_and(|(path, _)| path.starts_with(&first));
        folder.is_empty() || self.folders.contains_key(folder) || deeper()
    }

    fn visit_files_in(&self, folder: &str, visit: &mut dyn FnMut(&str)) {
        self.folders.get(folder).into_iter().flatten().for_each(|name| visit(&join_name(folder, name)));
    }

    fn visit_files_named(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.names.get(name).into_iter().flatten().for_each(|folder| visit(&join_name(folder, name)));
    }

    fn visit_folders_named(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.folder_names.get(name).into_iter().flatten().for_each(|folder| visit(folder));
    }
}
