//! Resolving imports to files of the project.
//!
//! Pure: the input is the set of paths ([`Paths`]) and the project's own settings
//! ([`ImportSettings`]). Each language has its rule; where that leaves the meaning open (search
//! paths of headers, source roots), the only fitting file is taken, or the nearest of several.
//!
//! Every place that was looked up is returned as a [`LookupKey`], found or not. So when a file
//! appears or disappears, only the files with one of its changed keys ([`keys_changed_by`]) have to
//! be resolved again; and when a settings file changes, those of the languages that it concerns
//! ([`ImportSettings::languages_of`]).
//!
//! ```
//! use journeyman_index::graph::resolve::{PathSet, ImportSettings, ImportTarget, resolve_imports};
//! use journeyman_syntax::{analysis::analyse, language::Language};
//!
//! let paths = PathSet::new(["app/main.py", "app/shop.py"]);
//! let text = "from .shop import Shop\nimport requests\n";
//! let imports = analyse(Language::Python, text).unwrap().imports;
//! let settings = ImportSettings::default();
//! let edges = resolve_imports("app/main.py", Language::Python, &imports, &paths, &settings);
//! assert_eq!(edges.meant[0], ImportTarget::Files(vec!["app/shop.py".to_owned()]));
//! assert_eq!(edges.meant[1], ImportTarget::Package("requests".to_owned()));
//! ```

mod go_php_ruby;
mod import_settings;
mod javascript;
mod jvm_csharp_swift;
mod lookup;
mod path;
mod path_imports;
mod path_set;
mod python_lua;
mod rust;

use std::collections::BTreeSet;
use std::rc::Rc;

use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;

pub use import_settings::ImportSettings;
use lookup::{MAX_IMPORTED_FILES, PathLookup};
use path::{folder_and_ancestors, join_path};
pub(super) use path::{last_part, parent};
pub use path_set::{LookupKey, PathSet, Paths, keys_changed_by};

/// The meaning of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ImportTarget {
    /// Files of the project, in their order: several for a package or several modules.
    Files(Vec<String>),
    /// A third-party package, by its name.
    Package(String),
    /// Nothing was found.
    #[default]
    Nothing,
}

/// The resolution of a file's imports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedImports {
    /// The meaning of each import, in their order.
    pub meant: Vec<ImportTarget>,
    /// Keys of the places that were looked up, sorted and unique.
    pub looked: Vec<LookupKey>,
}

impl ResolvedImports {
    /// Returns all files that are meant, in their order, each once.
    #[must_use]
    pub fn files(&self) -> Vec<&str> {
        let files = self.meant.iter().flat_map(|meant| match meant {
            ImportTarget::Files(files) => files.as_slice(),
            ImportTarget::Package(_) | ImportTarget::Nothing => &[],
        });
        files.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Resolves the imports of the file at `path`. The result never has the file itself.
#[must_use]
pub fn resolve_imports(
    path: &str,
    language: Language,
    imports: &[Import],
    paths: &dyn Paths,
    settings: &ImportSettings,
) -> ResolvedImports {
    let lookup = PathLookup::new(paths);
    let mut resolver = FileResolver { path, folder: parent(path), lookup, settings, roots: None };
    let meant = imports
        .iter()
        .map(|import| match resolver.resolve_import(language, import) {
            ImportTarget::Files(mut files) => {
                files.retain(|file| file != path);
                files.sort_unstable();
                files.dedup();
                files.truncate(MAX_IMPORTED_FILES);
                if files.is_empty() { ImportTarget::Nothing } else { ImportTarget::Files(files) }
            }
            other => other,
        })
        .collect();
    ResolvedImports { meant, looked: resolver.lookup.into_keys() }
}

/// The resolution of one file in progress.
struct FileResolver<'a> {
    path: &'a str,
    folder: &'a str,
    lookup: PathLookup<'a>,
    settings: &'a ImportSettings,
    /// Possible roots of Python's absolute imports, once they were determined.
    roots: Option<Rc<[String]>>,
}

impl FileResolver<'_> {
    fn resolve_import(&mut self, language: Language, import: &Import) -> ImportTarget {
        match language {
            Language::Rust => self.resolve_rust(import),
            Language::Python => self.resolve_python(import),
            Language::JavaScript | Language::TypeScript | Language::Tsx => self.resolve_javascript(import),
            Language::Java | Language::Kotlin | Language::Scala => self.resolve_jvm(language, import),
            Language::Go => self.resolve_go(import),
            Language::CSharp => self.resolve_csharp(import),
            Language::Swift => self.resolve_swift(import),
            Language::Php => self.resolve_php(import),
            Language::Ruby => self.resolve_ruby(import),
            Language::Lua => self.resolve_lua(import),
            Language::C | Language::Cpp => self.resolve_include(import),
            _ => self.resolve_link(import),
        }
    }
}

/// Returns the nearest of several files: those that share most folders with
/// `folder`.
fn nearest_files(folder: &str, files: Vec<String>) -> Vec<String> {
    let common = |file: &String| {
        folder.split('/').zip(parent(file).split('/')).take_while(|(one, other)| one == other).count()
    };
    let Some(most) = files.iter().map(common).max() else { return files };
    files.into_iter().filter(|file| common(file) == most).collect()
}

/// Returns the files as a meaning, if there are any.
fn to_files_target(files: Vec<String>) -> Option<ImportTarget> {
    (!files.is_empty()).then_some(ImportTarget::Files(files))
}

/// Returns the files as a meaning, or else the package.
fn files_or_package(files: Vec<String>, package: &str) -> ImportTarget {
    match to_files_target(files) {
        Some(meant) => meant,
        None if package.is_empty() => ImportTarget::Nothing,
        None => ImportTarget::Package(package.to_owned()),
    }
}
