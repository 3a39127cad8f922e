//! Python: modules are files, packages are folders, and source roots are guessed.

use std::rc::Rc;

use journeyman_syntax::imports::Import;

use super::lookup::PathLookup;
use super::nearest_files;
use super::{
    FileResolver, ImportTarget, files_or_package, folder_and_ancestors, join_path, parent, to_files_target,
};
use crate::analyser::purpose_of_file;

/// Names of common source folders.
const SOURCE_FOLDERS: [&str; 4] = ["", "src", "lib", "python"];

impl FileResolver<'_> {
    pub(super) fn resolve_python(&mut self, import: &Import) -> ImportTarget {
        let parts: Vec<&str> = import.target.split('.').filter(|part| !part.is_empty()).collect();
        if import.relative {
            let mut folder = self.folder.to_owned();
            for _ in 0..import.up.min(64) {
                folder = parent(&folder).to_owned();
            }
            let files = files_of_module(&mut self.lookup, &folder, &parts, &import.names);
            return to_files_target(files).unwrap_or_default();
        }
        let Some(first) = parts.first().copied() else { return ImportTarget::Nothing };
        for root in self.import_roots().iter() {
            let mut files = files_of_module(&mut self.lookup, root, &parts, &import.names);
            if !files.is_empty() {
                if import.names.is_empty() {
                    // `import a.b` imports `a` as well, and brings in its name.
                    files.extend(enclosing_packages(&mut self.lookup, root, &parts));
                }
                return ImportTarget::Files(files);
            }
        }
        // An unknown root: the only place where the whole path fits.
        if parts.len() > 1 {
            let whole = parts.join("/");
            let mut files = self.lookup.files_ending_with(&format!("{whole}.py"));
            files.extend(self.lookup.files_ending_with(&format!("{whole}/__init__.py")));
            if let [only] = files.as_slice() {
                return ImportTarget::Files(vec![only.clone()]);
            }
        }
        if let Some(module) = self.sample_module(first).filter(|_| parts.len() == 1) {
            return ImportTarget::Files(vec![module]);
        }
        ImportTarget::Package(first.to_owned())
    }

    /// Returns the only module of a name in a folder beside a test: tests add such sample folders
    /// to the path.
    fn sample_module(&mut self, name: &str) -> Option<String> {
        if self.folder.is_empty() || !purpose_of_file(self.path, "").test {
            return None;
        }
        let inner = format!("{}/", self.folder);
        let is_beside = |file: &String, parts: usize| {
            file.strip_prefix(&inner).is_some_and(|rest| rest.split('/').count() == parts)
        };
        let mut files = self.lookup.files_ending_with(&format!("{name}.py"));
        files.retain(|file| is_beside(file, 2));
        let mut packages = self.lookup.files_ending_with(&format!("{name}/__init__.py"));
        packages.retain(|file| is_beside(file, 3));
        files.append(&mut packages);
        <[String; 1]>::try_from(files).ok().map(|[only]| only)
    }

    /// Returns possible roots of absolute imports, the nearest first.
    fn import_roots(&mut self) -> Rc<[String]> {
        if let Some(roots) = &self.roots {
            return Rc::clone(roots);
        }
        let mut roots = Vec::new();
        // The folder around the file's outermost package.
        let inner: Vec<String> = folder_and_ancestors(self.folder).map(str::to_owned).collect();
        let outside = inner
            .iter()
            .find(|folder| self.lookup.first_existing(folder, ["__init__.py", "__init__.pyi"]).is_none());
        roots.extend(outside.cloned());
        roots.push(self.folder.to_owned());
        for folder in &inner {
            roots.extend(SOURCE_FOLDERS.iter().filter_map(|root| join_path(folder, root)));
        }
        let mut seen = std::collections::BTreeSet::new();
        roots.retain(|root| seen.insert(root.clone()));
        let roots: Rc<[String]> = roots.into();
        self.roots = Some(Rc::clone(&roots));
        roots
    }

    pub(super) fn resolve_lua(&mut self, import: &Import) -> ImportTarget {
        let path = if import.relative { import.target.clone() } else { import.target.replace('.', "/") };
        let names = [path.clone(), format!("{path}.lua"), format!("{path}/init.lua")];
        for folder in folder_and_ancestors(self.folder).map(str::to_owned).collect::<Vec<_>>() {
            for root in ["", "lua", "src", "lib"] {
                let Some(root) = join_path(&folder, root) else { continue };
                if let Some(file) = self.lookup.first_existing(&root, names.iter().map(String::as_str)) {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        let files = self.lookup.files_ending_with(&format!("{path}.lua"));
        files_or_package(
            nearest_files(self.folder, files),
            import.target.split('.').next().unwrap_or_default(),
        )
    }
}

/// Returns the files of a module and of the modules imported from it. At least its first part
/// must exist.
fn files_of_module(lookup: &mut PathLookup<'_>, root: &str, parts: &[&str], names: &[String]) -> Vec<String> {
    let Some(folder) = join_path(root, &parts.join("/")) else { return Vec::new() };
    let mut files = Vec::new();
    let there = names.is_empty() || lookup.has_files_beneath(&folder);
    let mut others = names.is_empty() || !there;
    for name in names.iter().filter(|_| there) {
        match python_file(lookup, &folder, name) {
            Some(file) => files.push(file),
            None => others = true,
        }
    }
    if !others {
        return files;
    }
    // A path may continue into a module's definitions.
    for long in (1..=parts.len()).rev() {
        let (Some((name, outer)), true) =
            (parts.get(..long).and_then(<[_]>::split_last), long + 1 >= parts.len())
        else {
            break;
        };
        let own = join_path(root, &outer.join("/")).and_then(|folder| python_file(lookup, &folder, name));
        if own.is_some() {
            files.extend(own);
            return files;
        }
    }
    if parts.is_empty() {
        files.extend(lookup.first_existing(root, ["__init__.py", "__init__.pyi"]));
    }
    files
}

/// Returns the files of the packages that enclose a module.
fn enclosing_packages(lookup: &mut PathLookup<'_>, root: &str, parts: &[&str]) -> Vec<String> {
    let enclosing = (1..parts.len()).filter_map(|long| join_path(root, &parts.get(..long)?.join("/")));
    let file = |folder: String| lookup.first_existing(&folder, ["__init__.py", "__init__.pyi"]);
    enclosing.filter_map(file).collect()
}

fn python_file(lookup: &mut PathLookup<'_>, folder: &str, name: &str) -> Option<String> {
    let [module, package, stub, native] =
        [format!("{name}.py"), format!("{name}/__init__.py"), format!("{name}.pyi"), format!("{name}.pyx")];
    lookup.first_existing(folder, [package.as_str(), &module, &stub, &native])
}
