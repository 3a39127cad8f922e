//! `cargo test` of some packages or targets.

use std::collections::BTreeSet;

use super::command::{CheckDirectory, MAX_NAMED_TESTS};
use crate::check_discovery::quote_word;

/// A package: its directory, relative to the check's, and its name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct AffectedPackage<'p> {
    directory: &'p str,
    name: String,
}

/// Narrows the command to the packages of the files; if that is one package, also to its targets.
pub(super) fn narrow_command(command: &str, files: &[&str], place: &CheckDirectory<'_>) -> Option<String> {
    let sources = || files.iter().copied().filter(|path| path.ends_with(".rs"));
    let packages: Option<BTreeSet<AffectedPackage<'_>>> =
        sources().map(|path| find_package(path, place)).collect();
    let packages = packages.filter(|packages| !packages.is_empty() && packages.len() <= MAX_NAMED_TESTS)?;
    let base = command.replace(" --workspace", "").replace(" --all ", " ");
    let named: String = packages.iter().map(|package| format!(" -p {}", quote_word(&package.name))).collect();
    if !packages.iter().all(|package| is_member(package, place)) {
        return None;
    }
    let [package] = packages.iter().collect::<Vec<_>>()[..] else {
        return Some(format!("{base}{named}"));
    };
    let targets: Option<Vec<Vec<String>>> =
        sources().map(|path| target_options(path, package, place)).collect();
    // A file that belongs to no known target may be part of any.
    let targets: BTreeSet<String> = targets.into_iter().flatten().flatten().collect();
    let targets: String = targets.into_iter().collect();
    // The root package alone, without targets, is the command's default.
    if targets.is_empty() && base == command && package.directory.is_empty() {
        return None;
    }
    Some(format!("{base}{named}{targets}"))
}

/// Returns the package whose manifest is the nearest above the file.
fn find_package<'p>(path: &'p str, place: &CheckDirectory<'_>) -> Option<AffectedPackage<'p>> {
    let mut directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    loop {
        let manifest = match directory {
            "" => place.read_file("Cargo.toml"),
            directory => place.read_file(&format!("{directory}/Cargo.toml")),
        };
        let name = manifest.and_then(|text| {
            let table: toml::Table = text.parse().ok()?;
            Some(table.get("package")?.get("name")?.as_str()?.to_owned())
        });
        if let Some(name) = name {
            return Some(AffectedPackage { directory, name });
        }
        if directory.is_empty() {
            return None;
        }
        directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

/// Returns false for a package that `-p` doesn't find from the check's directory: one with a
/// workspace of its own, as those of fuzzing have, or outside of the workspace.
fn is_member(package: &AffectedPackage<'_>, place: &CheckDirectory<'_>) -> bool {
    if package.directory.is_empty() {
        return true;
    }
    let workspace_of = |manifest: &str| -> Option<toml::Value> {
        place.read_file(manifest)?.parse::<toml::Table>().ok()?.get("workspace").cloned()
    };
    let Some(workspace) = workspace_of("Cargo.toml") else { return false };
    let excluded = workspace.get("exclude").and_then(toml::Value::as_array);
    let is_above = |name: &str| {
        let rest = package.directory.strip_prefix(name.trim_start_matches("./").trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !excluded.into_iter().flatten().filter_map(toml::Value::as_str).any(is_above)
        && workspace_of(&format!("{}/Cargo.toml", package.directory)).is_none()
}

/// Returns the options that select the targets whose tests a file can affect; `None` if these
/// aren't known.
fn target_options(
    path: &str,
    package: &AffectedPackage<'_>,
    place: &CheckDirectory<'_>,
) -> Option<Vec<String>> {
    let within = match package.directory {
        "" => path,
        directory => path.strip_prefix(directory)?.strip_prefix('/')?,
    };
    let read = |file: &str| match package.directory {
        "" => place.read_file(file),
        directory => place.read_file(&format!("{directory}/{file}")),
    };
    let test = |name: &str| vec![format!(" --test {}", quote_word(name))];
    let bins = || " --bins".to_owned();
    match within.split('/').collect::<Vec<_>>()[..] {
        ["src", "bin", ..] => Some(vec![bins()]),
        ["src", ..] => {
            let library = read("src/lib.rs");
            // No option selects tests in documentation together with others.
            let texts = [&library, &read(within)];
            let has_doc_tests = library.is_some() && texts.into_iter().flatten().any(|it| it.contains("```"));
            match library {
                _ if has_doc_tests => None,
                // Programs of the package use its library.
                Some(_) => Some(vec![" --lib".to_owned(), bins()]),
                None => read("src/main.rs").map(|_| vec![bins()]),
            }
        }
        ["tests", file] => Some(test(file.strip_suffix(".rs")?)),
        ["tests", directory, ..] => read(&format!("tests/{directory}/main.rs")).map(|_| test(directory)),
        _ => None,
    }
}
