//! The paths of a snapshot, for resolving: built when needed, and dropped afterwards.

use hashbrown::{HashMap, HashSet};

use super::resolve::{Paths, last_part, parent};

/// Sorted paths, and look-ups by their parts.
pub(super) struct PathTree<'a> {
    paths: HashMap<&'a str, u32>,
    /// All folders that contain files at any depth, except the root.
    around: HashSet<&'a str>,
    /// By folder, its own files.
    folders: HashMap<&'a str, Vec<&'a str>>,
    /// By file name, the files.
    names: HashMap<&'a str, Vec<&'a str>>,
    /// By a folder's name, the folders.
    folder_names: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> PathTree<'a> {
    /// Sorted unique paths, numbered in this order.
    pub(super) fn new(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut tree = Self {
            paths: HashMap::new(),
            around: HashSet::new(),
            folders: HashMap::new(),
            names: HashMap::new(),
            folder_names: HashMap::new(),
        };
        for (number, path) in (0..).zip(paths) {
            let folder = parent(path);
            tree.paths.insert(path, number);
            tree.names.entry(last_part(path)).or_default().push(path);
            let (folder_names, around) = (&mut tree.folder_names, &mut tree.around);
            let inside = tree.folders.entry(folder).or_insert_with(|| {
                folder_names.entry(last_part(folder)).or_default().push(folder);
                let mut outer = folder;
                while !outer.is_empty() && around.insert(outer) {
                    outer = parent(outer);
                }
                Vec::new()
            });
            inside.push(path);
        }
        tree
    }

    /// Returns a path's number.
    pub(super) fn number_of_path(&self, path: &str) -> Option<u32> {
        self.paths.get(path).copied()
    }
}

impl Paths for PathTree<'_> {
    fn has_file(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    fn has_files_beneath(&self, folder: &str) -> bool {
        folder.is_empty() || self.around.contains(folder)
    }

    fn visit_files_in(&self, folder: &str, visit: &mut dyn FnMut(&str)) {
        self.folders.get(folder).into_iter().flatten().for_each(|path| visit(path));
    }

    fn visit_files_named(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.names.get(name).into_iter().flatten().for_each(|path| visit(path));
    }

    fn visit_folders_named(&self, name: &str, visit: &mut dyn FnMut(&str)) {
        self.folder_names.get(name).into_iter().flatten().for_each(|folder| visit(folder));
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::PathSet;
    use super::*;

    /// Calls `visit` with paths.
    type Visit<'a> = &'a dyn Fn(&mut dyn FnMut(&str));

    #[test]
    fn look_ups_equal_those_of_the_path_set() {
        let paths = ["a.rs", "a/a.rs", "a/b/a.rs", "a/b/c.rs", "b/b/x.rs", "c-d/e/f/x.rs"];
        let (tree, known) = (PathTree::new(paths.into_iter()), PathSet::new(paths));
        let all = |visit: Visit<'_>| {
            let mut found = Vec::new();
            visit(&mut |path| found.push(path.to_owned()));
            found.sort();
            found
        };
        for name in [
            "",
            "a",
            "b",
            "c",
            "c-d",
            "c-d/e",
            "c-d/e/f",
            "c-d/e/f/x",
            "a/b",
            "b/b",
            "a.rs",
            "a/a.rs",
            "c.rs",
            "none",
        ] {
            assert_eq!(tree.has_file(name), known.has_file(name), "{name}");
            assert_eq!(tree.has_files_beneath(name), known.has_files_beneath(name), "{name}");
            assert_eq!(
                all(&|visit| tree.visit_files_in(name, visit)),
                all(&|visit| known.visit_files_in(name, visit))
            );
            assert_eq!(
                all(&|visit| tree.visit_files_named(name, visit)),
                all(&|visit| known.visit_files_named(name, visit))
            );
            assert_eq!(
                all(&|visit| tree.visit_folders_named(name, visit)),
                all(&|visit| known.visit_folders_named(name, visit))
            );
        }
        assert_eq!(tree.number_of_path("a/b/c.rs"), Some(3));
    }
}
