//! Rust: modules are files, by their position.

use journeyman_syntax::imports::Import;

use super::lookup::PathLookup;
use super::{
    FileResolver, ImportTarget, files_or_package, folder_and_ancestors, join_path, last_part, parent,
    to_files_target,
};

/// Root files of crate targets.
const CRATE_ROOT_FILES: [&str; 2] = ["lib.rs", "main.rs"];

impl FileResolver<'_> {
    pub(super) fn resolve_rust(&mut self, import: &Import) -> ImportTarget {
        if import.relative && import.target.contains(['/', '.']) {
            return to_files_target(
                self.lookup.first_existing(self.folder, [import.target.as_str()]).into_iter().collect(),
            )
            .unwrap_or_default();
        }
        let parts: Vec<&str> = import.target.split("::").filter(|part| !part.is_empty()).collect();
        if import.relative {
            let mut module = self.module_folder();
            for _ in 0..import.up.min(64) {
                module = parent(&module).to_owned();
            }
            let files = files_of_modules(&mut self.lookup, &module, &parts, &import.names);
            return to_files_target(self.or_named_root(files, &module)).unwrap_or_default();
        }
        match parts.split_first() {
            Some((&"crate", rest)) => {
                let root = self.crate_root();
                let files = files_of_modules(&mut self.lookup, &root, rest, &import.names);
                to_files_target(self.or_named_root(files, &root)).unwrap_or_default()
            }
            Some((first, rest)) => self.resolve_named_path(first, rest, import),
            None => ImportTarget::Nothing,
        }
    }

    /// Resolves a path that begins with a name: a sibling module, a crate of the project, or a
    /// third-party one.
    fn resolve_named_path(&mut self, first: &str, rest: &[&str], import: &Import) -> ImportTarget {
        let settings = self.settings;
        let renamed = folder_and_ancestors(self.folder)
            .find_map(|folder| settings.renamed_crates.get(folder)?.get(first))
            .map(String::as_str);
        let name = renamed.unwrap_or(first).to_owned();
        let known = settings.crates.iter().find(|(_, one)| match renamed {
            Some(package) => one.package == package,
            None => one.name == first,
        });
        if let Some((folder, one)) = known {
            let library = one.library.as_deref().unwrap_or("src/lib.rs");
            let root = join_path(folder, library).unwrap_or_default();
            let mut files = files_of_modules(&mut self.lookup, parent(&root), rest, &import.names);
            // A name that isn't a module is defined or re-exported at the crate's root.
            if files.is_empty() {
                files.extend(self.lookup.existing_file(root));
            }
            return files_or_package(files, &name);
        }
        let beside = self.module_folder();
        let all: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
        if let Some((step, _)) = find_submodule(&mut self.lookup, &beside, first) {
            let mut files = files_of_modules(&mut self.lookup, &beside, &all, &import.names);
            if files.is_empty() {
                files.push(step);
            }
            return ImportTarget::Files(files);
        }
        ImportTarget::Package(first.to_owned())
    }

    /// Returns the folder of the file's submodules.
    fn module_folder(&self) -> String {
        let stem = last_part(self.path).trim_end_matches(".rs");
        let begins = matches!(stem, "mod" | "lib" | "main" | "build")
            || self.is_crate_target()
            || self.named_roots().any(|root| root == self.path);
        if begins { self.folder.to_owned() } else { join_path(self.folder, stem).unwrap_or_default() }
    }

    /// Returns true if the file is a test, an example or a program of its own.
    fn is_crate_target(&self) -> bool {
        matches!(last_part(self.folder), "tests" | "examples" | "benches" | "bin")
            && (self.settings.crates.contains_key(parent(self.folder))
                || last_part(self.folder) == "bin" && last_part(parent(self.folder)) == "src")
    }

    /// Returns the root files that the manifest of the file's crate names.
    fn named_roots(&self) -> impl Iterator<Item = String> + use<'_> {
        let own = folder_and_ancestors(self.folder)
            .find_map(|folder| Some((folder, self.settings.crates.get(folder)?)));
        own.into_iter().flat_map(|(folder, own)| own.roots.iter().filter_map(|root| join_path(folder, root)))
    }

    /// Returns the files; or, where there are none, the named root file in a folder of modules.
    fn or_named_root(&mut self, files: Vec<String>, folder: &str) -> Vec<String> {
        if !files.is_empty() {
            return files;
        }
        let roots: Vec<String> = self.named_roots().filter(|root| parent(root) == folder).collect();
        roots.into_iter().find_map(|root| self.lookup.existing_file(root)).into_iter().collect()
    }

    /// Returns the folder of the modules of the file's crate.
    fn crate_root(&mut self) -> String {
        if self.is_crate_target() {
            return self.folder.to_owned();
        }
        let own = folder_and_ancestors(self.folder)
            .find(|folder| self.settings.crates.contains_key(*folder))
            .map(str::to_owned);
        if let Some(folder) = own {
            let library = self.settings.crates.get(&folder).and_then(|one| one.library.clone());
            // `tests/x/main.rs` is a crate of its own.
            let inside = self.path.get(folder.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
            match inside.split('/').collect::<Vec<_>>().as_slice() {
                [kind @ ("tests" | "examples" | "benches"), name, _, ..] => {
                    return join_path(&folder, &format!("{kind}/{name}")).unwrap_or_default();
                }
                ["src", "bin", name, _, ..] => {
                    return join_path(&folder, &format!("src/bin/{name}")).unwrap_or_default();
                }
                _ => {}
            }
            let library = library.as_deref().map_or("src", parent).to_owned();
            return join_path(&folder, &library).unwrap_or_default();
        }
        let roots: Vec<String> = folder_and_ancestors(self.folder).map(str::to_owned).collect();
        roots
            .into_iter()
            .find(|folder| self.lookup.first_existing(folder, CRATE_ROOT_FILES).is_some())
            .unwrap_or_else(|| self.folder.to_owned())
    }
}

/// Returns the file of a module in a folder, and the folder of its submodules.
fn find_submodule(lookup: &mut PathLookup<'_>, folder: &str, name: &str) -> Option<(String, String)> {
    let file =
        lookup.first_existing(folder, [format!("{name}.rs").as_str(), format!("{name}/mod.rs").as_str()])?;
    Some((file, join_path(folder, name)?))
}

/// Returns the files of the deepest modules that a path and its names lead to.
fn files_of_modules(
    lookup: &mut PathLookup<'_>,
    root: &str,
    parts: &[&str],
    names: &[String],
) -> Vec<String> {
    let (mut folder, mut file) = (root.to_owned(), None);
    for part in parts.iter().take(64) {
        let Some((next, inner)) = find_submodule(lookup, &folder, part) else {
            // The rest is an item, or an inline module.
            let own = file.or_else(|| module_file_of_folder(lookup, root));
            return own.into_iter().collect();
        };
        (file, folder) = (Some(next), inner);
    }
    let mut files = Vec::new();
    let mut others = names.is_empty();
    for name in names {
        match find_submodule(lookup, &folder, name) {
            Some((file, _)) => files.push(file),
            None => others = true,
        }
    }
    if others {
        files.extend(file.or_else(|| module_file_of_folder(lookup, root)));
    }
    files
}

/// Returns the file whose modules are in a folder.
fn module_file_of_folder(lookup: &mut PathLookup<'_>, folder: &str) -> Option<String> {
    let beside = format!("{folder}.rs");
    lookup.first_existing(folder, ["mod.rs", "lib.rs", "main.rs"]).or_else(|| lookup.existing_file(beside))
}
