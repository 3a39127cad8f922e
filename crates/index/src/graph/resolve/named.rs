//! Go, PHP and Ruby: names that lead to folders by settings or by convention.

use journeyman_syntax::imports::Import;

use super::{ImportTarget, Look, around, found, join, or_package};

impl Look<'_> {
    /// A package is a folder: all of its files except tests.
    pub(super) fn go(&mut self, import: &Import) -> ImportTarget {
        let path = import.target.as_str();
        if import.relative {
            let folder = join(self.folder, path).unwrap_or_default();
            return found(self.go_files(&folder)).unwrap_or_default();
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
            let own = under(&module.name).and_then(|rest| Some((module.name.len(), join(folder, &rest)?)));
            folders.extend(own);
            for (name, target) in &module.replaced {
                let replaced = under(name).and_then(|rest| join(&join(folder, target)?, &rest));
                folders.extend(replaced.map(|replaced| (name.len(), replaced)));
            }
        }
        // The module with the longest fitting name.
        folders.sort_by_key(|(long, _)| std::cmp::Reverse(*long));
        folders.push((0, format!("vendor/{path}")));
        for (_, folder) in folders {
            let files = self.go_files(&folder);
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

    fn go_files(&mut self, folder: &str) -> Vec<String> {
        let mut files = self.inside(folder, &[".go"]);
        files.retain(|file| !file.ends_with("_test.go"));
        files
    }

    pub(super) fn php(&mut self, import: &Import) -> ImportTarget {
        if import.relative {
            return self.linked(import);
        }
        let name = import.target.trim_matches('\\');
        let composers = &self.settings.composers;
        for folder in around(self.folder) {
            for (prefix, target) in composers.get(folder).into_iter().flatten() {
                let Some(rest) = name.strip_prefix(prefix.as_str()) else { continue };
                let file = join(folder, target)
                    .and_then(|root| join(&root, &format!("{}.php", rest.replace('\\', "/"))))
                    .and_then(|path| self.file(path));
                if let Some(file) = file {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        let parts: Vec<&str> = name.split('\\').collect();
        // Without settings: as much of the name as fits one file, but never the class alone.
        for from in 0..parts.len().saturating_sub(1) {
            let end = parts.get(from..).unwrap_or_default().join("/");
            let files = self.ending(&format!("{end}.php"));
            if !files.is_empty() {
                return ImportTarget::Files(self.nearest(files));
            }
        }
        or_package(Vec::new(), parts.first().copied().unwrap_or_default())
    }

    pub(super) fn ruby(&mut self, import: &Import) -> ImportTarget {
        let names = [format!("{}.rb", import.target), import.target.clone()];
        let names = || names.iter().map(String::as_str);
        if import.relative {
            return found(self.first(self.folder, names()).into_iter().collect()).unwrap_or_default();
        }
        for folder in around(self.folder).map(str::to_owned).collect::<Vec<_>>() {
            for root in ["lib", "app", ""] {
                let Some(root) = join(&folder, root) else { continue };
                if let Some(file) = self.first(&root, names()) {
                    return ImportTarget::Files(vec![file]);
                }
            }
        }
        let files = self.ending(&format!("lib/{}.rb", import.target));
        or_package(self.nearest(files), import.target.split('/').next().unwrap_or_default())
    }
}
