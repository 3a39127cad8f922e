//! File cycles: files of a crate that use each other, directly or through others.
//!
//! A file uses another one of its crate if it names an item that the other defines: in a `use`
//! item, a type or an expression, also through modules that only pass the name on. Declaring a
//! module and re-exporting from it is no use. Method calls are not followed: a type's methods
//! belong to the file of the type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// Maximum number of re-exports that a name is followed through. More is a cycle of re-exports,
/// which the compiler refuses.
const MAX_HOPS: usize = 16;

/// Each crate with files in cycles, with its cycles.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut broken = Vec::new();
    for (name, cycles) in cycles(root)? {
        let files: usize = cycles.iter().map(|cycle| cycle.files.len()).sum();
        let shown: Vec<String> = cycles.iter().map(Cycle::to_string).collect();
        broken.push(format!(
            "crate {name} has {files} files that use each other in a cycle:\n{}",
            shown.join("\n")
        ));
    }
    Ok(broken)
}

/// Prints the cycles of one crate or all.
pub(crate) fn print(root: &Path, only: Option<&str>) -> anyhow::Result<()> {
    let all = cycles(root)?;
    for (name, cycles) in all.into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)) {
        let files: usize = cycles.iter().map(|cycle| cycle.files.len()).sum();
        println!("{name}: {files} files in {} cycles", cycles.len());
        for cycle in cycles {
            println!("{cycle}");
        }
    }
    Ok(())
}

/// Files that use each other, directly or through others of them.
#[derive(Debug, PartialEq, Eq)]
struct Cycle {
    files: BTreeSet<String>,
    /// The uses between these files: user, used, and the first name with its line.
    uses: Vec<(String, String, String)>,
}

impl std::fmt::Display for Cycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "    cycle of {} files", self.files.len())?;
        for (user, used, name) in &self.uses {
            writeln!(f, "      {user} uses {used} ({name})")?;
        }
        Ok(())
    }
}

/// The cycles of each crate, by the crate's name.
fn cycles(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<Cycle>>> {
    let mut all: BTreeMap<String, Vec<Cycle>> = BTreeMap::new();
    let crates = root.join("crates");
    for entry in std::fs::read_dir(&crates).with_context(|| crates.display().to_string())? {
        let directory = entry?.path();
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for top in ["lib.rs", "main.rs"] {
            let file = directory.join("src").join(top);
            if file.is_file() {
                let modules = Modules::read(&directory.join("src"), &file)?;
                all.entry(name.clone()).or_default().extend(find_cycles(&modules.uses()));
            }
        }
    }
    all.retain(|_, cycles| !cycles.is_empty());
    Ok(all)
}

/// One use of an item: by which file, of which file, and `name at line`.
type Uses = BTreeMap<(String, String), String>;

/// A module of a crate, in a file of its own or within one.
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
    /// Names that `use` items bring in, with their full paths.
    imported: BTreeMap<String, Import>,
    /// Modules that `use path::*` takes names from.
    globs: Vec<Vec<String>>,
    /// Paths in types and expressions, with their lines.
    paths: Vec<(Vec<String>, usize)>,
}

struct Import {
    path: Vec<String>,
    line: usize,
    public: bool,
}

/// All modules of a crate but its tests'; the first is the root.
struct Modules(Vec<Module>);

impl Modules {
    fn read(source: &Path, top: &Path) -> anyhow::Result<Self> {
        let mut modules = Self(Vec::new());
        let directory = top.parent().unwrap_or(source).to_owned();
        modules.read_file(source, top, &directory, None)?;
        Ok(modules)
    }

    /// Reads the module in `path`, whose children lie in `directory`.
    fn read_file(
        &mut self,
        source: &Path,
        path: &Path,
        directory: &Path,
        parent: Option<usize>,
    ) -> anyhow::Result<usize> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(source).unwrap_or(path).display().to_string();
        self.add(&shown, &file.items, source, directory, parent)
    }

    fn add(
        &mut self,
        file: &str,
        items: &[syn::Item],
        source: &Path,
        directory: &Path,
        parent: Option<usize>,
    ) -> anyhow::Result<usize> {
        let place = self.0.len();
        let mut reader = Reader::default();
        for item in items {
            reader.visit_item(item);
        }
        let Reader { defined, imported, globs, paths, modules } = reader;
        let children = BTreeMap::new();
        self.0.push(Module { file: file.to_owned(), parent, children, defined, imported, globs, paths });
        for child in modules {
            let name = child.ident.to_string();
            let within = directory.join(&name);
            let added = match &child.content {
                Some((_, items)) => self.add(file, items, source, &within, Some(place))?,
                None => {
                    let plain = directory.join(format!("{name}.rs"));
                    let path: PathBuf = if plain.is_file() { plain } else { within.join("mod.rs") };
                    self.read_file(source, &path, &within, Some(place))?
                }
            };
            if let Some(module) = self.0.get_mut(place) {
                module.children.insert(name, added);
            }
        }
        Ok(place)
    }

    /// Which file uses which, with the first name and its line.
    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (place, module) in self.0.iter().enumerate() {
            let spoken: BTreeSet<&String> =
                module.paths.iter().filter_map(|(path, _)| path.first()).collect();
            let imported = module.imported.iter();
            // Passing a name on is no use of it.
            let used = imported.filter(|(name, import)| !import.public || spoken.contains(name));
            let imported = used.map(|(_, import)| (&import.path, import.line));
            let paths = module.paths.iter().map(|(path, line)| (path, *line));
            for (path, line) in imported.chain(paths) {
                if let Some(owner) = self.owner(place, path, MAX_HOPS)
                    && let Some(owner) = self.0.get(owner)
                    && owner.file != module.file
                {
                    let name = format!("{} in line {line}", path.join("::"));
                    uses.entry((module.file.clone(), owner.file.clone())).or_insert(name);
                }
            }
        }
        uses
    }

    /// The module that defines what a path in the module `from` names; `None` for other crates'
    /// items and for modules.
    fn owner(&self, from: usize, path: &[String], hops: usize) -> Option<usize> {
        let hops = hops.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.owner_within(0, rest, hops),
            "self" => self.owner_within(from, rest, hops),
            "super" => {
                let mut parent = self.0.get(from)?.parent?;
                let mut rest = rest;
                while let Some((next, others)) = rest.split_first()
                    && next == "super"
                {
                    parent = self.0.get(parent)?.parent?;
                    rest = others;
                }
                self.owner_within(parent, rest, hops)
            }
            _ => self.owner_within(from, path, hops),
        }
    }

    fn owner_within(&self, place: usize, path: &[String], hops: usize) -> Option<usize> {
        let module = self.0.get(place)?;
        let (first, rest) = path.split_first()?;
        if let Some(child) = module.children.get(first) {
            return self.owner_within(*child, rest, hops);
        }
        if module.defined.contains(first) {
            return Some(place);
        }
        if let Some(import) = module.imported.get(first) {
            // `use name;` of another crate would be followed for ever.
            if import.path.first() == Some(first) && !module.children.contains_key(first) {
                return None;
            }
            let full: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return self.owner(place, &full, hops);
        }
        module.globs.iter().find_map(|glob| {
            let full: Vec<String> = glob.iter().chain(path).cloned().collect();
            self.owner(place, &full, hops)
        })
    }
}

/// Collects what the items of one module define and name.
#[derive(Default)]
struct Reader<'ast> {
    defined: BTreeSet<String>,
    imported: BTreeMap<String, Import>,
    globs: Vec<Vec<String>>,
    paths: Vec<(Vec<String>, usize)>,
    modules: Vec<&'ast syn::ItemMod>,
}

impl Reader<'_> {
    fn import(&mut self, tree: &syn::UseTree, before: &[String], public: bool) {
        let joined = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &joined(&path.ident), public),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, public);
                }
            }
            syn::UseTree::Glob(_) => self.globs.push(before.to_vec()),
            syn::UseTree::Name(name) => self.bring(&name.ident, &name.ident, before, public),
            syn::UseTree::Rename(rename) => self.bring(&rename.ident, &rename.rename, before, public),
        }
    }

    fn bring(&mut self, name: &syn::Ident, known: &syn::Ident, before: &[String], public: bool) {
        let line = name.span().start().line;
        let mut path = before.to_vec();
        let known = if name == "self" && known == "self" {
            path.last().cloned().unwrap_or_default()
        } else {
            known.to_string()
        };
        if name != "self" {
            path.push(name.to_string());
        }
        self.imported.insert(known, Import { path, line, public });
    }

    /// Paths in the arguments of macros, which have no grammar of their own.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                other => {
                    self.end(&mut path, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.paths.push((path, line));
        }
    }

    fn define(&mut self, name: &syn::Ident) {
        self.defined.insert(name.to_string());
    }
}

impl<'ast> Visit<'ast> for Reader<'ast> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(item) {
            return;
        }
        match item {
            syn::Item::Mod(module) => return self.modules.push(module),
            syn::Item::Use(item) => {
                let public = !matches!(item.vis, syn::Visibility::Inherited);
                return self.import(&item.tree, &[], public);
            }
            syn::Item::Struct(item) => self.define(&item.ident),
            syn::Item::Enum(item) => self.define(&item.ident),
            syn::Item::Union(item) => self.define(&item.ident),
            syn::Item::Trait(item) => self.define(&item.ident),
            syn::Item::Type(item) => self.define(&item.ident),
            syn::Item::Fn(item) => self.define(&item.sig.ident),
            syn::Item::Const(item) => self.define(&item.ident),
            syn::Item::Static(item) => self.define(&item.ident),
            syn::Item::Macro(item) => item.ident.iter().for_each(|name| self.define(name)),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.paths.push((segments, line));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }
}

/// Returns true for an item that is compiled for tests alone.
fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The largest sets of files that all reach each other, of two files at least.
fn find_cycles(uses: &Uses) -> Vec<Cycle> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (user, other) in uses.keys() {
        used.entry(user).or_default().insert(other);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        used.keys().map(|file| (*file, reachable(&used, file))).collect();
    let reaches = |a: &str, b: &str| reached.get(a).is_some_and(|others| others.contains(b));
    let mut cycles = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for file in reached.keys() {
        if done.contains(file) || !reaches(file, file) {
            continue;
        }
        let files: BTreeSet<&str> =
            reached.keys().filter(|other| reaches(file, other) && reaches(other, file)).copied().collect();
        let inside = |(user, other): &&(String, String)| {
            files.contains(user.as_str()) && files.contains(other.as_str())
        };
        let inner = uses.iter().filter(|(pair, _)| inside(pair));
        let inner = inner.map(|((user, other), name)| (user.clone(), other.clone(), name.clone())).collect();
        done.extend(&files);
        cycles.push(Cycle { files: files.iter().map(|file| (*file).to_owned()).collect(), uses: inner });
    }
    cycles
}

fn reachable<'a>(used: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = used.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(used.get(file).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of a crate with these files, each as its files' names.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let modules = Modules::read(directory.path(), &directory.path().join("lib.rs")).unwrap();
        let cycles = find_cycles(&modules.uses());
        cycles.into_iter().map(|cycle| cycle.files.into_iter().collect()).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn make() { super::a::A; }"),
        ];
        assert_eq!(cycles_of(&files), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn longer_ways_and_macros_count() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b; pub fn a() { b::b() }"),
            ("b.rs", "pub fn b() { println!(\"{}\", crate::c::c()) }"),
            ("c.rs", "pub fn c() { use crate::a::a; a() }"),
        ];
        assert_eq!(cycles_of(&files), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn a_child_that_uses_its_parents_items_is_a_cycle_only_if_the_parent_uses_the_child() {
        let child = ("a/child.rs", "pub struct Child(super::Shared);");
        let root = ("lib.rs", "mod a;");
        let passes_on = ("a/mod.rs", "mod child; pub use child::Child; pub struct Shared;");
        assert_eq!(cycles_of(&[root, passes_on, child]), Vec::<Vec<String>>::new());
        let uses = ("a/mod.rs", "mod child; pub use child::Child; pub struct Shared; fn f(child: Child) {}");
        assert_eq!(cycles_of(&[root, uses, child]), [["a/child.rs", "a/mod.rs"]]);
    }

    #[test]
    fn a_name_is_followed_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "mod a; pub use a::first::First;"),
            ("a/mod.rs", "pub mod first; mod second; pub use second::*;"),
            ("a/first.rs", "use super::Second; pub struct First(Second);"),
            ("a/second.rs", "pub struct Second; fn f() -> Option<crate::First> { None }"),
        ];
        assert_eq!(cycles_of(&files), [["a/first.rs", "a/second.rs"]]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use std::b; use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
    }
}
