//! The packages of one repository, by their manifests: which of them depend on which.

use std::collections::{BTreeMap, BTreeSet};

use journeyman_protocol::RelPath;
use serde_json::Value;

use super::node::package_json::PackageJson;
use super::project::{Project, is_foreign};

/// Maximum number of manifests that are read; a repository with more is checked by its root.
const MAX_MANIFESTS: usize = 2_000;

/// A package: its directory, its names and its dependencies.
#[derive(Default)]
struct PackageDependencies {
    /// The names by which other packages depend on this one, each with its ecosystem's prefix.
    names: Vec<String>,
    /// The names of the packages that this one depends on.
    needs: Vec<String>,
    /// The directories that the package depends on.
    paths: Vec<RelPath>,
}

/// Returns the packages that depend on one of `changed`, directly or through others, each with one
/// package that it depends on, in the order of their distance. The packages of `changed` are not
/// among them.
pub(super) fn find_dependents(project: &dyn Project, changed: &BTreeSet<RelPath>) -> Vec<(RelPath, RelPath)> {
    let packages = read_packages(project);
    let mut by_name: BTreeMap<&str, &RelPath> = BTreeMap::new();
    for (directory, package) in &packages {
        by_name.extend(package.names.iter().map(|name| (name.as_str(), directory)));
    }
    let mut users: BTreeMap<&RelPath, BTreeSet<&RelPath>> = BTreeMap::new();
    for (directory, package) in &packages {
        let named = package.needs.iter().filter_map(|name| by_name.get(name.as_str()).copied());
        for needed in named.chain(&package.paths).filter(|needed| *needed != directory) {
            users.entry(needed).or_default().insert(directory);
        }
    }
    let mut seen = changed.clone();
    let mut found: Vec<(RelPath, RelPath)> = Vec::new();
    let mut layer: Vec<RelPath> = changed.iter().cloned().collect();
    while !layer.is_empty() {
        let mut next = Vec::new();
        for needed in layer {
            for user in users.get(&needed).into_iter().flatten() {
                if seen.insert((*user).clone()) {
                    found.push(((*user).clone(), needed.clone()));
                    next.push((*user).clone());
                }
            }
        }
        layer = next;
    }
    found
}

fn read_packages(project: &dyn Project) -> BTreeMap<RelPath, PackageDependencies> {
    let mut packages: BTreeMap<RelPath, PackageDependencies> = BTreeMap::new();
    let is_manifest = |path: &&RelPath| {
        let names: [&[u8]; 5] =
            [b"package.json", b"Cargo.toml", b"go.mod", b"pyproject.toml", b"composer.json"];
        names.contains(&path.file_name()) && !is_foreign(path)
    };
    for path in project.files().iter().filter(is_manifest).take(MAX_MANIFESTS) {
        let (Some(directory), Some(text)) = (path.parent(), project.read(path)) else { continue };
        let package = packages.entry(directory.clone()).or_default();
        match path.file_name() {
            b"package.json" => read_package_json(package, &directory, &text),
            b"Cargo.toml" => read_cargo_toml(package, &directory, &text),
            b"go.mod" => read_go_mod(package, &directory, &text),
            b"pyproject.toml" => read_pyproject(package, &directory, &text),
            _ => read_composer_json(package, &text),
        }
    }
    packages
}

/// Returns the directory that `path` names from `directory`, with `..` resolved within the
/// repository.
fn resolve_path(directory: &RelPath, path: &str) -> Option<RelPath> {
    let mut parts: Vec<&str> = directory.as_str()?.split('/').collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    RelPath::parse(parts.join("/")).ok()
}

fn read_package_json(package: &mut PackageDependencies, directory: &RelPath, text: &str) {
    let manifest = PackageJson::parse(text);
    package.names.extend(manifest.name.map(|name| format!("npm {name}")));
    package.needs.extend(manifest.dependencies.into_iter().map(|name| format!("npm {name}")));
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let tables = ["dependencies", "devDependencies", "peerDependencies"]
        .iter()
        .filter_map(|name| value.get(name)?.as_object());
    for (name, version) in tables.flatten() {
        package.needs.push(format!("npm {name}"));
        let path =
            version.as_str().and_then(|text| text.strip_prefix("file:").or(text.strip_prefix("link:")));
        package.paths.extend(path.and_then(|path| resolve_path(directory, path)));
    }
}

fn read_cargo_toml(package: &mut PackageDependencies, directory: &RelPath, text: &str) {
    let table: toml::Table = text.parse().unwrap_or_default();
    collect_paths(&toml::Value::Table(table), directory, &mut package.paths);
}

/// Adds the directories of all dependencies with a `path`, in any table.
fn collect_paths(value: &toml::Value, directory: &RelPath, found: &mut Vec<RelPath>) {
    let Some(table) = value.as_table() else { return };
    for (key, value) in table {
        if let (true, Some(dependencies)) = (key.ends_with("dependencies"), value.as_table()) {
            let paths = dependencies.values().filter_map(|one| one.get("path")?.as_str());
            found.extend(paths.filter_map(|path| resolve_path(directory, path)));
        } else {
            collect_paths(value, directory, found);
        }
    }
}

fn read_go_mod(package: &mut PackageDependencies, directory: &RelPath, text: &str) {
    let mut block = "";
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        match (first, second) {
            ("module", Some(name)) => package.names.push(format!("go {name}")),
            (")", _) => block = "",
            (word @ ("require" | "replace"), Some("(")) => {
                block = if word == "require" { "require" } else { "replace" }
            }
            ("require", Some(name)) => package.needs.push(format!("go {name}")),
            (name, Some(_)) if block == "require" => package.needs.push(format!("go {name}")),
            _ if block == "replace" || first == "replace" => {
                let path = line.split_once("=>").and_then(|(_, to)| to.split_whitespace().next());
                let path = path.filter(|path| path.starts_with('.'));
                package.paths.extend(path.and_then(|path| resolve_path(directory, path)));
            }
            _ => {}
        }
    }
}

fn read_pyproject(package: &mut PackageDependencies, directory: &RelPath, text: &str) {
    let table: toml::Table = text.parse().unwrap_or_default();
    let get = |keys: &[&str]| {
        keys.iter().try_fold(None, |at: Option<&toml::Value>, key| {
            Some(Some(match at {
                None => table.get(*key)?,
                Some(value) => value.get(key)?,
            }))
        })?
    };
    let names = [get(&["project", "name"]), get(&["tool", "poetry", "name"])];
    package
        .names
        .extend(names.into_iter().flatten().filter_map(toml::Value::as_str).map(normalize_python_name));
    let listed = get(&["project", "dependencies"]).and_then(toml::Value::as_array);
    package
        .needs
        .extend(listed.into_iter().flatten().filter_map(toml::Value::as_str).map(normalize_python_name));
    for sources in [get(&["tool", "uv", "sources"]), get(&["tool", "poetry", "dependencies"])] {
        let Some(sources) = sources.and_then(toml::Value::as_table) else { continue };
        package.needs.extend(sources.keys().map(|name| normalize_python_name(name)));
        let paths = sources.values().filter_map(|one| one.get("path")?.as_str());
        package.paths.extend(paths.filter_map(|path| resolve_path(directory, path)));
    }
}

/// Returns the normalized name of a requirement, which is the same for all its spellings.
fn normalize_python_name(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    let name = requirement.get(..end.unwrap_or(requirement.len())).unwrap_or_default();
    format!("pypi {}", name.to_ascii_lowercase().replace(['_', '.'], "-"))
}

fn read_composer_json(package: &mut PackageDependencies, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    package.names.extend(value.get("name").and_then(Value::as_str).map(|name| format!("composer {name}")));
    let tables = ["require", "require-dev"].iter().filter_map(|name| value.get(name)?.as_object());
    package.needs.extend(tables.flat_map(|table| table.keys()).map(|name| format!("composer {name}")));
}
