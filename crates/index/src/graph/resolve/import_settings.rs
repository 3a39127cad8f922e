//! Settings of the project that define names: crates, packages, aliases.
//!
//! The files come from the project, so they are untrusted: they are read as data, within bounds,
//! and unreadable ones are ignored.

use std::collections::BTreeMap;

use journeyman_syntax::language::Language;
use serde_json::Value;

/// Maximum bytes of a settings file.
const MAX_SETTINGS_BYTES: usize = 1 << 20;
/// Maximum entries of one kind in a file.
const MAX_ENTRIES: usize = 1_000;
/// Maximum length of a chain of extended configurations.
const MAX_EXTENDS: usize = 8;

/// The known settings files, by path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportSettings {
    /// By folder.
    pub(super) crates: BTreeMap<String, RustCrate>,
    /// By folder: names of renamed crates, and the packages that they mean.
    pub(super) renamed_crates: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) packages: BTreeMap<String, NpmPackage>,
    pub(super) modules: BTreeMap<String, GoModule>,
    pub(super) composers: BTreeMap<String, Vec<(String, String)>>,
    /// By path.
    scripts: BTreeMap<String, TsConfig>,
}

/// A crate of Rust.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RustCrate {
    /// Its name in code.
    pub(super) name: String,
    /// The name of its package, as code would have it.
    pub(super) package: String,
    /// The root file of its library, from the crate's folder.
    pub(super) library: Option<String>,
    /// Root files that the manifest names, from the crate's folder.
    pub(super) roots: Vec<String>,
}

/// A package of JavaScript.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NpmPackage {
    pub(super) name: String,
    /// Candidates for its entry file, the likeliest first.
    pub(super) entries: Vec<String>,
    /// Its exports, beginning with `.`, and its internal imports, beginning with `#`.
    pub(super) exports: Vec<(String, Vec<String>)>,
}

/// A module of Go.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GoModule {
    pub(super) name: String,
    /// Modules that are replaced by a folder.
    pub(super) replaced: Vec<(String, String)>,
}

/// The content of a `tsconfig.json`.
#[derive(Debug, Clone, Default, PartialEq)]
struct TsConfig {
    base: Option<String>,
    aliases: Option<Vec<(String, Vec<String>)>>,
    extends: Vec<String>,
}

/// The effective settings under a `tsconfig.json`, including those it extends.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PathAliases {
    /// The base folder of names.
    pub(super) base: Option<String>,
    /// Patterns with at most one `*`, and their targets, from the root of the project.
    pub(super) aliases: Vec<(String, Vec<String>)>,
}

impl ImportSettings {
    /// Returns the languages that a settings file concerns; none for other files.
    #[must_use]
    pub fn languages_of(path: &str) -> &'static [Language] {
        match super::last_part(path) {
            "Cargo.toml" => &[Language::Rust],
            "package.json" => &[Language::JavaScript, Language::TypeScript, Language::Tsx],
            "go.mod" => &[Language::Go],
            "composer.json" => &[Language::Php],
            name if is_tsconfig(name) => &[Language::JavaScript, Language::TypeScript, Language::Tsx],
            _ => &[],
        }
    }

    /// Reads a file and replaces its earlier settings. Unreadable ones are ignored.
    pub fn read_settings(&mut self, path: &str, text: &str) {
        self.remove_settings(path);
        if text.len() > MAX_SETTINGS_BYTES {
            return;
        }
        let folder = super::parent(path).to_owned();
        let json = || serde_json::from_str::<Value>(&strip_json_extensions(text)).ok();
        match super::last_part(path) {
            "Cargo.toml" => {
                let Ok(table) = toml::from_str(text) else { return };
                self.renamed_crates.insert(folder.clone(), parse_renamed_crates(&table));
                if let Some(found) = parse_cargo(&table) {
                    self.crates.insert(folder, found);
                }
            }
            "package.json" => {
                if let Some(value) = json() {
                    self.packages.insert(folder, parse_package_json(&value));
                }
            }
            "go.mod" => {
                self.modules.insert(folder, parse_go_module(text));
            }
            "composer.json" => {
                if let Some(value) = json() {
                    self.composers.insert(folder, parse_composer(&value));
                }
            }
            name if is_tsconfig(name) => {
                if let Some(value) = json() {
                    self.scripts.insert(path.to_owned(), parse_tsconfig(&value, &folder));
                }
            }
            _ => {}
        }
    }

    /// Removes a file's settings.
    pub fn remove_settings(&mut self, path: &str) {
        let folder = super::parent(path);
        match super::last_part(path) {
            "Cargo.toml" => {
                self.crates.remove(folder);
                self.renamed_crates.remove(folder);
            }
            "package.json" => drop(self.packages.remove(folder)),
            "go.mod" => drop(self.modules.remove(folder)),
            "composer.json" => drop(self.composers.remove(folder)),
            _ => drop(self.scripts.remove(path)),
        }
    }

    /// Returns the effective settings for the scripts in a folder: the nearest configuration,
    /// including those it extends.
    pub(super) fn aliases_in(&self, folder: &str) -> PathAliases {
        let mut aliases = PathAliases::default();
        let nearest = super::folder_and_ancestors(folder).find_map(|folder| {
            ["tsconfig.json", "jsconfig.json"].iter().find_map(|name| {
                super::join_path(folder, name).filter(|path| self.scripts.contains_key(path))
            })
        });
        let mut open: Vec<String> = nearest.into_iter().collect();
        let mut seen = 0;
        while let Some(path) = open.pop() {
            seen += 1;
            let Some(script) = self.scripts.get(&path).filter(|_| seen <= MAX_EXTENDS) else { continue };
            aliases.base = aliases.base.or_else(|| script.base.clone());
            if aliases.aliases.is_empty() {
                aliases.aliases = script.aliases.clone().unwrap_or_default();
            }
            let folder = super::parent(&path);
            // The first in the list is the weakest.
            for name in &script.extends {
                let Some(base) = super::join_path(folder, name) else { continue };
                open.extend([format!("{base}.json"), format!("{base}/tsconfig.json"), base]);
            }
        }
        aliases
    }
}

fn is_tsconfig(name: &str) -> bool {
    (name.starts_with("tsconfig") || name.starts_with("jsconfig")) && name.ends_with(".json")
}

fn parse_cargo(table: &toml::Table) -> Option<RustCrate> {
    let text = |value: Option<&toml::Value>, key: &str| Some(value?.get(key)?.as_str()?.to_owned());
    let package = text(table.get("package"), "name");
    let name = text(table.get("lib"), "name").or_else(|| package.clone())?;
    let library = text(table.get("lib"), "path");
    let targets = ["bin", "test", "bench", "example"].iter().filter_map(|kind| table.get(*kind)?.as_array());
    let paths = targets.flat_map(|targets| targets.iter().take(MAX_ENTRIES));
    let roots = paths.filter_map(|target| text(Some(target), "path")).chain(library.clone()).collect();
    Some(RustCrate { name: code_name(&name), package: code_name(&package.unwrap_or(name)), library, roots })
}

/// Returns the name of a crate as code has it.
fn code_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the names of dependencies under which code knows another package: also those of a
/// workspace, and of some targets only.
fn parse_renamed_crates(table: &toml::Table) -> BTreeMap<String, String> {
    let targets = table.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let places = targets.take(MAX_ENTRIES).map(|(_, target)| target).chain(table.get("workspace"));
    let tables = std::iter::once(table).chain(places.filter_map(toml::Value::as_table));
    let sections = tables.flat_map(|table| {
        let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
        sections.into_iter().filter_map(|section| table.get(section)?.as_table())
    });
    let entries = sections.flat_map(|section| section.iter().take(MAX_ENTRIES));
    let renamed = entries
        .filter_map(|(name, value)| Some((code_name(name), code_name(value.get("package")?.as_str()?))));
    renamed.collect()
}

fn parse_package_json(value: &Value) -> NpmPackage {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut exports = Vec::new();
    for key in ["exports", "imports"] {
        match value.get(key) {
            Some(Value::Object(map)) if map.keys().any(|key| key.starts_with(['.', '#'])) => {
                for (name, target) in map.iter().take(MAX_ENTRIES) {
                    exports.push((name.clone(), export_targets(target)));
                }
            }
            Some(other) => exports.push((".".to_owned(), export_targets(other))),
            None => {}
        }
    }
    NpmPackage {
        name: text("name").unwrap_or_default(),
        entries: ["source", "module", "main", "types", "typings", "browser"]
            .iter()
            .filter_map(|key| text(key))
            .collect(),
        exports,
    }
}

/// Returns all files that conditions may lead to.
fn export_targets(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(target) if found.len() < MAX_ENTRIES => found.push(target.clone()),
            Value::Array(values) => open.extend(values.iter().rev()),
            Value::Object(map) => open.extend(map.values().rev()),
            _ => {}
        }
    }
    found
}

fn parse_go_module(text: &str) -> GoModule {
    let mut module = GoModule::default();
    let mut block = "";
    for line in text.lines().take(MAX_ENTRIES) {
        let line = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["module", name] => name.trim_matches('"').clone_into(&mut module.name),
            [word, "("] => block = word,
            [")"] => block = "",
            ["replace", rest @ ..] => parse_go_replacement(rest, &mut module),
            rest if block == "replace" => parse_go_replacement(rest, &mut module),
            _ => {}
        }
    }
    module
}

fn parse_go_replacement(words: &[&str], module: &mut GoModule) {
    if let [name, "=>", target, ..] | [name, _, "=>", target, ..] = words
        && target.starts_with('.')
    {
        module.replaced.push(((*name).to_owned(), (*target).to_owned()));
    }
}

fn parse_composer(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in ["autoload", "autoload-dev"] {
        let map = value.get(section).and_then(|section| section.get("psr-4")).and_then(Value::as_object);
        for (prefix, target) in map.into_iter().flatten().take(MAX_ENTRIES) {
            found.extend(export_targets(target).into_iter().map(|target| (prefix.clone(), target)));
        }
    }
    // The longest prefix first.
    found.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    found
}

fn parse_tsconfig(value: &Value, folder: &str) -> TsConfig {
    let options = value.get("compilerOptions");
    let base = options.and_then(|options| options.get("baseUrl")).and_then(Value::as_str);
    let base = base.and_then(|base| super::join_path(folder, base));
    let from = base.clone().unwrap_or_else(|| folder.to_owned());
    let aliases = options.and_then(|options| options.get("paths")).and_then(Value::as_object).map(|map| {
        map.iter()
            .take(MAX_ENTRIES)
            .map(|(pattern, value)| {
                let targets = export_targets(value)
                    .iter()
                    .filter_map(|target| super::join_path(&from, target))
                    .collect();
                (pattern.clone(), targets)
            })
            .collect()
    });
    let extends = match value.get("extends") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).map(str::to_owned).take(MAX_EXTENDS).collect()
        }
        _ => Vec::new(),
    };
    TsConfig { base, aliases, extends: extends.into_iter().filter(|name| name.starts_with('.')).collect() }
}

/// Parses JSON without comments and trailing commas, which these files may have.
fn strip_json_extensions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(next) = rest.chars().next() {
        let end = match next {
            '"' => string_end(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").and_then(|end| rest.get(end + 2..)).unwrap_or_default();
                continue;
            }
            _ => next.len_utf8(),
        };
        if matches!(next, '}' | ']') && out.trim_end().ends_with(',') {
            out.truncate(out.trim_end().len() - 1);
        }
        let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        out.push_str(piece);
        rest = after;
    }
    out
}

fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
