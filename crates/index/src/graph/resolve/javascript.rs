//! JavaScript and TypeScript: paths without extensions, aliases, packages of the same repository.

use journeyman_syntax::imports::Import;

use super::import_settings::NpmPackage;
use super::{FileResolver, ImportTarget, files_or_package, folder_and_ancestors, join_path, to_files_target};

/// Extensions that may be left out, the likeliest first.
const IMPLIED_EXTENSIONS: [&str; 13] = [
    ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts", ".json", ".vue", ".svelte", ".css",
];
/// Source extensions for a written extension: TypeScript imports by the compiled name.
const SOURCE_EXTENSIONS: [(&str, &[&str]); 4] =
    [(".js", &[".ts", ".tsx", ".jsx"]), (".jsx", &[".tsx"]), (".mjs", &[".mts"]), (".cjs", &[".cts"])];
/// Folders of build output and of their sources.
const BUILD_FOLDERS: [&str; 5] = ["dist", "lib", "build", "out", "esm"];

impl FileResolver<'_> {
    pub(super) fn resolve_javascript(&mut self, import: &Import) -> ImportTarget {
        let target =
            import.target.split(['?', '#']).next().filter(|bare| !bare.is_empty()).unwrap_or(&import.target);
        if import.relative || target.starts_with('/') {
            let file = match target.strip_prefix('/') {
                Some(rooted) => folder_and_ancestors(self.folder)
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .find_map(|folder| {
                        let public = join_path(&folder, "public").unwrap_or_default();
                        self.javascript_file(&folder, rooted)
                            .or_else(|| self.javascript_file(&public, rooted))
                    }),
                None => self.javascript_file(self.folder, target),
            };
            return to_files_target(file.into_iter().collect()).unwrap_or_default();
        }
        if let Some(builtin) = target.strip_prefix("node:") {
            return ImportTarget::Package(format!("node:{}", builtin.split('/').next().unwrap_or_default()));
        }
        let file = self
            .resolve_alias(target)
            .or_else(|| self.resolve_workspace_package(target))
            .or_else(|| self.resolve_bundler_alias(target));
        let mut parts = target.split('/');
        let long = if target.starts_with('@') { 2 } else { 1 };
        let package = parts.by_ref().take(long).collect::<Vec<_>>().join("/");
        files_or_package(file.into_iter().collect(), &package)
    }

    /// Resolves by the aliases of the nearest `tsconfig.json`.
    fn resolve_alias(&mut self, target: &str) -> Option<String> {
        let aliases = self.settings.aliases_in(self.folder);
        let mut fitting: Vec<(usize, Vec<String>)> = Vec::new();
        for (pattern, places) in &aliases.aliases {
            let Some((before, after)) = pattern.split_once('*') else {
                if pattern == target {
                    fitting.push((usize::MAX, places.clone()));
                }
                continue;
            };
            let inside = target.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            if let Some(inside) = inside {
                fitting.push((
                    before.len(),
                    places.iter().map(|place| place.replacen('*', inside, 1)).collect(),
                ));
            }
        }
        // The longest prefix counts.
        fitting.sort_by_key(|(long, _)| std::cmp::Reverse(*long));
        let mut places = fitting.into_iter().flat_map(|(_, places)| places);
        places
            .find_map(|place| self.javascript_file("", &place))
            .or_else(|| aliases.base.and_then(|base| self.javascript_file(&base, target)))
    }

    /// Resolves a package of the same repository, a `#` import of the own package, and a package by
    /// its own name.
    fn resolve_workspace_package(&mut self, target: &str) -> Option<String> {
        let settings = self.settings;
        if target.starts_with('#') {
            let (folder, package) = folder_and_ancestors(self.folder)
                .find_map(|folder| settings.packages.get(folder).map(|package| (folder, package)))?;
            return self.resolve_exported(folder, package, target);
        }
        let named = |package: &NpmPackage| {
            let rest = target.strip_prefix(package.name.as_str())?;
            (!package.name.is_empty() && (rest.is_empty() || rest.starts_with('/')))
                .then(|| format!(".{rest}"))
        };
        // The nearest of those with the longest name.
        let common = |folder: &str| {
            self.folder.split('/').zip(folder.split('/')).take_while(|(one, other)| one == other).count()
        };
        let (folder, package, inside) = settings
            .packages
            .iter()
            .filter_map(|(folder, package)| Some((folder, package, named(package)?)))
            .max_by_key(|(folder, package, _)| (package.name.len(), common(folder)))?;
        if let Some(file) = self.resolve_exported(folder, package, &inside) {
            return Some(file);
        }
        if inside == "." {
            return package
                .entries
                .iter()
                .find_map(|entry| self.file_or_source(folder, entry))
                .or_else(|| self.javascript_file(folder, "src/index"))
                .or_else(|| self.javascript_file(folder, "index"));
        }
        let source = join_path("src", &inside)?;
        self.javascript_file(folder, &inside).or_else(|| self.javascript_file(folder, &source))
    }

    /// Resolves by a package's exports.
    fn resolve_exported(&mut self, folder: &str, package: &NpmPackage, name: &str) -> Option<String> {
        for (pattern, targets) in &package.exports {
            let inside = match pattern.split_once('*') {
                Some((before, after)) => name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)),
                None => (pattern == name).then_some(""),
            };
            let Some(inside) = inside else { continue };
            let file =
                targets.iter().find_map(|target| self.file_or_source(folder, &target.replace('*', inside)));
            if file.is_some() {
                return file;
            }
        }
        None
    }

    /// Returns a file of a package, or its source.
    fn file_or_source(&mut self, folder: &str, entry: &str) -> Option<String> {
        if let Some(file) = self.javascript_file(folder, entry) {
            return Some(file);
        }
        let plain = entry.trim_start_matches("./");
        let (first, rest) = plain.split_once('/')?;
        if !BUILD_FOLDERS.contains(&first) {
            return None;
        }
        let mut stem = rest;
        for ending in [".d.ts", ".d.mts", ".js", ".mjs", ".cjs", ".esm"] {
            stem = stem.strip_suffix(ending).unwrap_or(stem);
        }
        self.javascript_file(folder, &format!("src/{stem}")).or_else(|| self.javascript_file(folder, stem))
    }

    /// Resolves `@/x` and `~/x`, aliases that only bundlers know.
    fn resolve_bundler_alias(&mut self, target: &str) -> Option<String> {
        let inside = target.strip_prefix("@/").or_else(|| target.strip_prefix("~/"))?;
        let settings = self.settings;
        let folder = folder_and_ancestors(self.folder)
            .find(|folder| settings.packages.contains_key(*folder))
            .unwrap_or_default();
        let source = join_path("src", inside)?;
        self.javascript_file(folder, &source).or_else(|| self.javascript_file(folder, inside))
    }

    /// Returns a file whose extension may be left out, or a folder's index file.
    fn javascript_file(&mut self, folder: &str, target: &str) -> Option<String> {
        let path = join_path(folder, target)?;
        if let Some(file) = self.lookup.existing_file(path.clone()) {
            return Some(file);
        }
        for (written, others) in SOURCE_EXTENSIONS {
            if let Some(stem) = path.strip_suffix(written)
                && let Some(file) =
                    others.iter().find_map(|other| self.lookup.existing_file(format!("{stem}{other}")))
            {
                return Some(file);
            }
        }
        if let Some(file) =
            IMPLIED_EXTENSIONS.iter().find_map(|ending| self.lookup.existing_file(format!("{path}{ending}")))
        {
            return Some(file);
        }
        let index = |ending: &str| {
            if path.is_empty() { format!("index{ending}") } else { format!("{path}/index{ending}") }
        };
        if let Some(file) =
            IMPLIED_EXTENSIONS.into_iter().find_map(|ending| self.lookup.existing_file(index(ending)))
        {
            return Some(file);
        }
        let package = self.settings.packages.get(&path)?;
        package.entries.iter().find_map(|entry| {
            let entry = join_path(&path, entry)?;
            self.lookup
                .existing_file(entry.clone())
                .or_else(|| self.lookup.existing_file(format!("{entry}.js")))
        })
    }
}
