//! Go, PHP and Ruby: names that lead to folders by settings or by convention.

use journeyman_syntax::imports::Import;

use super::lookup::PathLookup;
use super::nearest_files;
use super::{FileResolver, ImportTarget, files_or_package, folder_and_ancestors, join_path, to_files_target};

impl FileResolver<'_> {
    /// A package is a folder: all of its files except tests.
    pub(super) fn resolve_go(&mut self, import: &Import) -> ImportTarget {
        let path = import.target.as_str();
        if import.relative {
            let folder = join_path(self.folder, path).unwrap_or_default();
            return to_files_target(go_files(&mut self.lookup, &folder)).unwrap_or_default();
        }
        let under = |name: &str| {
            (!name.is_empty())
                .then(|| path.strip_prefix(name))
                .flatten()
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
                .map(|rest| rest.trim_start_matches('/').to_owned())
        };
        let mut folders: Vec<(usize, String)> = Vec::new();
        for (folder, module) in &self.settings.modules {
            let own =
                under(&module.name).and_then(|rest| Some((module.name.len(), join_path(folder, &rest)?)));
            folders.extend(own);
            for (name, target) in &module.replaced {
                let replaced = under(name).and_then(|rest| join_path(&join_path(folder, target)?, &rest));
                folders.extend(replaced.map(|replaced| (name.len(), replaced)));
            }
        }
        // The module with the longest fitting name.
        folders.sort_by_key(|(long, _)| std::cmp::Reverse(*long));
        folders.push((0, format!("vendor/{path}")));
        for (_, folder) in folders {
            let files = go_files(&mut self.lookup, &folder);
            if !files.is_empty() {
                return ImportTarget::Files(files);
            }
        }
        let mut parts = path.split('/');
        let host = path.split('/').next().is_some_and(|first| first.contains('.'));
        let package =
            if host { parts.by_ref().take(3).collect::<Vec<_>>().join("/") } else { path.to_owned() };
        ImportTarget::Package(package)
    }

    pub(super) fn resolve_php(&mut self, import: &Import) -> ImportTarget {
        if import.relative {
            return self.resolve_link(import);
        }
        let name = import.target.trim_matches('\\');
        let composers = &self.settings.composers;
        for folder in folder_and_ancestors(self.folder) {
            for (prefix, target) in composers.get(folder).into_iter().flatten() {
                let Some(rest) = name.strip_prefix(prefix.as_str()) else { continue };
                let file = join_path(folder, target)
                    .and_then(|root| join_path(&root, &format!("{}.php", rest.replace('\\', "/"))))
                    .and_then(|path| self.lookup.existing_file(path));
                if let Some(file) = file {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        let parts: Vec<&str> = name.split('\\').collect();
        // Without settings: as much of the name as fits one file, but never the class alone.
        for from in 0..parts.len().saturating_sub(1) {
            let end = parts.get(from..).unwrap_or_default().join("/");
            let files = self.lookup.files_ending_with(&format!("{end}.php"));
            if !files.is_empty() {
                return ImportTarget::Files(nearest_files(self.folder, files));
            }
        }
        files_or_package(Vec::new(), parts.first().copied().unwrap_or_default())
    }

    pub(super) fn resolve_ruby(&mut self, import: &Import) -> ImportTarget {
        let names = [format!("{}.rb", import.target), import.target.clone()];
        let names = || names.iter().map(String::as_str);
        if import.relative {
            return to_files_target(self.lookup.first_existing(self.folder, names()).into_iter().collect())
                .unwrap_or_default();
        }
        for folder in folder_and_ancestors(self.folder).map(str::to_owned).collect::<Vec<_>>() {
            for root in ["lib", "app", ""] {
                let Some(root) = join_path(&folder, root) else { continue };
                if let Some(file) = self.lookup.first_existing(&root, names()) {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        let files = self.lookup.files_ending_with(&format!("lib/{}.rb", import.target));
        files_or_package(
            nearest_files(self.folder, files),
            import.target.split('/').next().unwrap_or_default(),
        )
    }
}

fn go_files(lookup: &mut PathLookup<'_>, folder: &str) -> Vec<String> {
    let mut files = lookup.files_in_folder(folder, &[".go"]);
    files.retain(|file| !file.ends_with("_test.go"));
    files
}
