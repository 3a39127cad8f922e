//! Java, Kotlin and Scala: a type is a file in the folder of its package, under any root.

use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;

use super::lookup::PathLookup;
use super::nearest_files;
use super::{FileResolver, ImportTarget, files_or_package, join_path};
use crate::analyser::purpose_of_file;

const JVM_EXTENSIONS: [&str; 3] = [".java", ".kt", ".scala"];
/// Maximum parts of a namespace in the name of one folder or project.
const MAX_PROJECT_NAME_PARTS: usize = 6;
/// Maximum parts of a name that are tried as nested types and members.
const MAX_NESTED_PARTS: usize = 3;

impl FileResolver<'_> {
    pub(super) fn resolve_jvm(&mut self, language: Language, import: &Import) -> ImportTarget {
        let parts: Vec<&str> = import.target.split('.').filter(|part| !part.is_empty()).collect();
        let package = parts.get(..parts.len().min(2)).unwrap_or_default().join(".");
        let mut files = Vec::new();
        let mut others = import.names.is_empty();
        for name in &import.names {
            let own = if name == "*" { Vec::new() } else { self.files_of_type(&parts, Some(name)) };
            others |= own.is_empty();
            files.extend(own);
        }
        if others {
            // A member of a type, or of a package.
            for long in (1..=parts.len()).rev().take(MAX_NESTED_PARTS) {
                let outer = parts.get(..long).unwrap_or_default();
                let is_type = outer.last().is_some_and(|last| last.starts_with(char::is_uppercase));
                let own = if is_type { self.files_of_type(outer, None) } else { Vec::new() };
                if !own.is_empty() {
                    files.extend(own);
                    return ImportTarget::Files(files);
                }
            }
            let named = import.names.iter().any(|name| name != "*" && name.starts_with(char::is_uppercase));
            if files.is_empty() && !(named && language == Language::Java) {
                let mut members = files_of_package(&mut self.lookup, &parts);
                // Tests lie in the same package under another root, which only tests see.
                if !purpose_of_file(self.path, "").test {
                    members.retain(|member| !purpose_of_file(member, "").test);
                }
                files.extend(members);
            }
        }
        files_or_package(files, &package)
    }

    /// Returns the file of a type: `name` in a package, or the last part of a path.
    fn files_of_type(&mut self, parts: &[&str], name: Option<&str>) -> Vec<String> {
        let path: Vec<&str> = parts.iter().copied().chain(name).collect();
        if path.len() < 2 {
            return Vec::new();
        }
        let path = path.join("/");
        let found: Vec<String> = JVM_EXTENSIONS
            .iter()
            .flat_map(|ending| self.lookup.files_ending_with(&format!("{path}{ending}")))
            .collect();
        nearest_files(self.folder, found)
    }

    /// Resolves `using A.B`: the folders whose path, with dots for slashes, ends so.
    pub(super) fn resolve_csharp(&mut self, import: &Import) -> ImportTarget {
        let name = import.target.as_str();
        let parts: Vec<&str> = name.split('.').collect();
        let mut folders = Vec::new();
        // A folder's name may have several parts.
        for long in 1..=parts.len().min(MAX_PROJECT_NAME_PARTS) {
            let end = parts.get(parts.len() - long..).unwrap_or_default().join(".");
            folders.extend(self.lookup.folders_ending_with(&end));
        }
        let fits = |folder: &String| {
            let dotted = folder.replace('/', ".");
            dotted.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        folders.retain(fits);
        let mut files: Vec<String> =
            folders.iter().flat_map(|folder| self.lookup.files_in_folder(folder, &[".cs"])).collect();
        if files.is_empty() {
            let folders = self.project_folders_of_namespace(&parts);
            files = folders.iter().flat_map(|folder| self.lookup.files_in_folder(folder, &[".cs"])).collect();
        }
        // A type qualified by its namespace.
        if files.is_empty()
            && let Some((last, outer)) = parts.split_last().filter(|(_, outer)| !outer.is_empty())
        {
            let dotted = outer.join(".");
            files = self.lookup.files_ending_with(&format!("{last}.cs"));
            files.retain(|file| {
                let folder = super::parent(file).replace('/', ".");
                folder.strip_suffix(&dotted).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            });
            if files.is_empty() {
                let paths = self.project_folders_of_namespace(outer).into_iter();
                let paths = paths.filter_map(|folder| join_path(&folder, &format!("{last}.cs")));
                files = paths.filter_map(|path| self.lookup.existing_file(path)).collect();
            }
        }
        files_or_package(files, parts.first().copied().unwrap_or_default())
    }

    /// Returns the folders of a namespace that begins with the name of a project file: `Models`
    /// beside `Shop.csproj` is `Shop.Models`, whatever the project's folder is called.
    fn project_folders_of_namespace(&mut self, parts: &[&str]) -> Vec<String> {
        let mut folders = Vec::new();
        for long in 1..=parts.len().min(MAX_PROJECT_NAME_PARTS) {
            let Some((project, inner)) = parts.split_at_checked(long) else { break };
            for file in self.lookup.files_ending_with(&format!("{}.csproj", project.join("."))) {
                folders.extend(join_path(super::parent(&file), &inner.join("/")));
            }
        }
        folders
    }

    /// Resolves Swift's `import A`: the folder of a target.
    pub(super) fn resolve_swift(&mut self, import: &Import) -> ImportTarget {
        let mut files = Vec::new();
        for folder in self.lookup.folders_ending_with(&import.target) {
            if super::last_part(super::parent(&folder)) == "Sources" || super::parent(&folder).is_empty() {
                files.extend(self.lookup.files_in_folder(&folder, &[".swift"]));
            }
        }
        if files.is_empty() {
            let sources = join_path("Sources", &import.target).unwrap_or_default();
            files = self.lookup.files_in_folder(&sources, &[".swift"]);
        }
        files_or_package(files, &import.target)
    }
}

fn files_of_package(lookup: &mut PathLookup<'_>, parts: &[&str]) -> Vec<String> {
    if parts.len() < 2 {
        return Vec::new();
    }
    let folders = lookup.folders_ending_with(&parts.join("/"));
    folders.iter().flat_map(|folder| lookup.files_in_folder(folder, &JVM_EXTENSIONS)).collect()
}
