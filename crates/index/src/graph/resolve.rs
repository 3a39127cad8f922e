//! Which files of the project an import means.
//!
//! Pure: it is told which paths there are ([`Paths`]) and what the project's own configuration says of names
//! ([`Settings`]), and looks at nothing else. Each language has its rule; where that leaves open what is meant (where headers
//! are looked for, which folder is a source root), the only file that fits is taken, or the nearest of several.
//!
//! Every place that was looked at comes back as a [`Key`], found or not. So when a file comes or goes, only the files
//! with one of its [`touched`] keys have to be resolved again; and when a file of settings changes, those of
//! the languages that it speaks of ([`Settings::concerns`]).
//!
//! ```
//! use journeyman_index::graph::resolve::{Known, Meant, Settings, resolve};
//! use journeyman_syntax::{facts::read, language::Language};
//!
//! let paths = Known::new(["app/main.py", "app/shop.py"]);
//! let facts = read(Language::Python, "from .shop import Shop\nimport requests\n").unwrap();
//! let edges = resolve("app/main.py", Language::Python, &facts.imports, &paths, &Settings::default());
//! assert_eq!(edges.meant[0], Meant::Files(vec!["app/shop.py".to_owned()]));
//! assert_eq!(edges.meant[1], Meant::Package("requests".to_owned()));
//! ```

mod jvm;
mod known;
mod named;
mod nearby;
mod python;
mod rust;
mod script;
mod settings;

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::HashSet;
use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;

pub use known::{Key, Known, Paths, touched};
pub use settings::Settings;

/// Files that one import may mean: a package of more isn't understood by listing them.
const MAX_FILES: usize = 200;
/// Bytes of a path that is looked for.
const MAX_PATH: usize = 4096;
/// Places that one file's imports are looked for in. What asks for more was made to.
const MAX_LOOKS: usize = 200_000;

/// What an import means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Meant {
    /// Files of the project, in their order: several where a package or several modules are meant.
    Files(Vec<String>),
    /// A package that isn't a part of the project, by its name.
    Package(String),
    /// Nothing that was found.
    #[default]
    Nothing,
}

/// What a file's imports mean.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    /// What each import means, in their order.
    pub meant: Vec<Meant>,
    /// Where was looked, sorted, each once.
    pub looked: Vec<Key>,
}

impl Edges {
    /// All files that are meant, in their order, each once.
    #[must_use]
    pub fn files(&self) -> Vec<&str> {
        let files = self.meant.iter().flat_map(|meant| match meant {
            Meant::Files(files) => files.as_slice(),
            Meant::Package(_) | Meant::Nothing => &[],
        });
        files.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// What the imports of the file at `path` mean. Never the file itself.
#[must_use]
pub fn resolve(
    path: &str,
    language: Language,
    imports: &[Import],
    paths: &dyn Paths,
    settings: &Settings,
) -> Edges {
    let mut look = Look { path, folder: parent(path), paths, settings, looked: HashSet::new(), roots: None };
    let meant = imports
        .iter()
        .map(|import| match look.one(language, import) {
            Meant::Files(mut files) => {
                files.retain(|file| file != path);
                files.sort_unstable();
                files.dedup();
                files.truncate(MAX_FILES);
                if files.is_empty() { Meant::Nothing } else { Meant::Files(files) }
            }
            other => other,
        })
        .collect();
    let mut looked: Vec<Key> = look.looked.into_iter().collect();
    looked.sort_unstable();
    Edges { meant, looked }
}

/// The folder of a path, without a slash at its end; empty for the root.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The last part of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// A path from a folder, with its `.` and `..` taken out. Nothing where it leaves the project.
fn join(folder: &str, relative: &str) -> Option<String> {
    if folder.len() + relative.len() > MAX_PATH {
        return None;
    }
    // Most have nothing to be taken out; folders of the project never have.
    let plain = |path: &str| !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if plain(relative) && (folder.is_empty() || plain(folder)) {
        let slash = if folder.is_empty() { "" } else { "/" };
        return Some([folder, slash, relative].concat());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The folder itself and those around it, from the inside out, the root last.
fn around(folder: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(folder);
    std::iter::from_fn(move || {
        let here = next?;
        next = (!here.is_empty()).then(|| parent(here));
        Some(here)
    })
}

/// One file's look around.
struct Look<'a> {
    path: &'a str,
    folder: &'a str,
    paths: &'a dyn Paths,
    settings: &'a Settings,
    looked: HashSet<Key>,
    /// Folders that Python's absolute imports may begin at, once they were looked for.
    roots: Option<Rc<[String]>>,
}

impl Look<'_> {
    fn one(&mut self, language: Language, import: &Import) -> Meant {
        match language {
            Language::Rust => self.rust(import),
            Language::Python => self.python(import),
            Language::JavaScript | Language::TypeScript | Language::Tsx => self.script(import),
            Language::Java | Language::Kotlin | Language::Scala => self.jvm(language, import),
            Language::Go => self.go(import),
            Language::CSharp => self.csharp(import),
            Language::Swift => self.swift(import),
            Language::Php => self.php(import),
            Language::Ruby => self.ruby(import),
            Language::Lua => self.lua(import),
            Language::C | Language::Cpp => self.include(import),
            _ => self.linked(import),
        }
    }

    fn note(&mut self, key: Key) -> bool {
        if self.looked.len() >= MAX_LOOKS {
            return false;
        }
        self.looked.insert(key);
        true
    }

    /// The path, if there is such a file.
    fn file(&mut self, path: String) -> Option<String> {
        let there = !path.is_empty()
            && path.len() <= MAX_PATH
            && self.any_beneath(parent(&path))
            && self.note(Key::path(&path))
            && self.paths.has(&path);
        there.then_some(path)
    }

    /// Whether anything lies in a folder. What is looked for in one where nothing does has one key for all of it.
    fn any_beneath(&mut self, folder: &str) -> bool {
        self.paths.any_beneath(folder) || {
            self.note(Key::beneath(folder));
            false
        }
    }

    /// The first of some files that is there, from a folder.
    fn first<'s>(&mut self, folder: &str, files: impl IntoIterator<Item = &'s str>) -> Option<String> {
        files.into_iter().find_map(|file| join(folder, file).and_then(|path| self.file(path)))
    }

    /// Files right in a folder whose names end in one of these ways.
    fn inside(&mut self, folder: &str, endings: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        if self.note(Key::folder(folder)) {
            self.paths.inside(folder, &mut |path| {
                if found.len() < MAX_FILES && endings.iter().any(|ending| path.ends_with(ending)) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }

    /// Files whose path ends so, the whole of a part at least.
    fn ending(&mut self, end: &str) -> Vec<String> {
        let mut found = Vec::new();
        let end = end.trim_start_matches('/');
        if !end.is_empty() && self.note(Key::name(last(end))) {
            self.paths.named(last(end), &mut |path| {
                if found.len() < MAX_FILES && ends_with_parts(path, end) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }

    /// Folders with files in them whose path ends so.
    fn folders(&mut self, end: &str) -> Vec<String> {
        let mut found = Vec::new();
        if !end.is_empty() && self.note(Key::folder_name(last(end))) {
            self.paths.folders(last(end), &mut |path| {
                if found.len() < MAX_FILES && ends_with_parts(path, end) {
                    found.push(path.to_owned());
                }
            });
        }
        found
    }

    /// Of several files the nearest: those that have most folders in common with the importing one.
    fn nearest(&self, files: Vec<String>) -> Vec<String> {
        let common = |file: &String| {
            self.folder
                .split('/')
                .zip(parent(file).split('/'))
                .take_while(|(one, other)| one == other)
                .count()
        };
        let Some(most) = files.iter().map(common).max() else { return files };
        files.into_iter().filter(|file| common(file) == most).collect()
    }
}

fn ends_with_parts(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// What was found, if anything was.
fn found(files: Vec<String>) -> Option<Meant> {
    (!files.is_empty()).then_some(Meant::Files(files))
}

/// What was found, or else the package.
fn or_package(files: Vec<String>, package: &str) -> Meant {
    match found(files) {
        Some(meant) => meant,
        None if package.is_empty() => Meant::Nothing,
        None => Meant::Package(package.to_owned()),
    }
}
