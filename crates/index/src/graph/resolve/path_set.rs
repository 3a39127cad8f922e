//! The paths of a project, and keys of looked-up places.

use std::collections::{BTreeMap, BTreeSet};

/// The paths of a project, without a leading `/`.
pub trait Paths {
    /// Returns true if there is such a file.
    fn has(&self, path: &str) -> bool;
    /// Returns true if a folder has files at any depth.
    fn any_beneath(&self, folder: &str) -> bool;
    /// Calls `visit` with each file right in a folder; the root is empty.
    fn inside(&self, folder: &str, visit: &mut dyn FnMut(&str));
    /// Calls `visit` with each file of a name.
    fn named(&self, name: &str, visit: &mut dyn FnMut(&str));
    /// Calls `visit` with each folder of a name that has files right in it.
    fn folders(&self, name: &str, visit: &mut dyn FnMut(&str));
}

/// The key of a looked-up place: a stable number that may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceKey(pub u64);

impl PlaceKey {
    pub(super) fn path(path: &str) -> Self {
        Self::of(b'p', path)
    }

    pub(super) fn folder(path: &str) -> Self {
        Self::of(b'f', path)
    }

    /// A folder without files at any depth.
    pub(super) fn beneath(path: &str) -> Self {
        Self::of(b'b', path)
    }

    pub(super) fn name(name: &str) -> Self {
        Self::of(b'n', name)
    }

    pub(super) fn folder_name(name: &str) -> Self {
        Self::of(b'd', name)
    }

    /// FNV-1a of 64 bits. A collision only costs a needless resolution.
    fn of(sort: u8, text: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(text.bytes().fold(step(0xcbf2_9ce4_8422_2325, sort), step))
    }
}

/// Returns the keys of the places that a file's appearance or disappearance changes.
pub fn touched(path: &str) -> impl Iterator<Item = PlaceKey> {
    let folder = super::parent(path);
    let own = [
        PlaceKey::path(path),
        PlaceKey::name(super::last(path)),
        PlaceKey::folder(folder),
        PlaceKey::folder_name(super::last(folder)),
    ];
    own.into_iter().chain(super::around(folder).map(PlaceKey::beneath))
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
        let (folder, name) = (super::parent(path).to_owned(), super::last(path).to_owned());
        self.names.entry(name.clone()).or_default().insert(folder.clone());
        self.folder_names.entry(super::last(&folder).to_owned()).or_default().insert(folder.clone());
        self.folders.entry(folder).or_default().insert(name);
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        let (folder, name) = (super::parent(path), super::last(path));
        remove(&mut self.names, name, folder);
        remove(&mut self.folders, folder, name);
        if !self.folders.contains_key(folder) {
            remove(&mut self.folder_names, super::last(folder), folder);
        }
    }
}

fn remove(map: &mut BTreeMap<String, BTreeSet<String>>, key: &str, value: &str) {
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
}

fn whole(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Paths for PathSet {
    fn has(&self, path: &str) -> bool {
        self.folders.get(super::parent(path)).is_some_and(|names| names.contains(super::last(path)))
    }

    fn any_beneath(&self, folder: &str) -> bool {
        let first = format!("{folder}/");
        let deeper =
            || self.folders.range(first.clone()..).next().is_some_and(|(path, _)| path.starts_with(&first));
        folder.is_empty() || self.folders.contains_key(folder) || deeper()
    }

    fn inside(&self, folder: &str, visit: &mut dyn FnMut(&str)) {
        self.folders.get(folder).into_iter().flatten().for_each(|name| visit(&whole(folder, name)));
    }

    fn named(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.names.get(name).into_iter().flatten().for_each(|folder| visit(&whole(folder, name)));
    }

    fn folders(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.folder_names.get(name).into_iter().flatten().for_each(|folder| visit(folder));
    }
}
