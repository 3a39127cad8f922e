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
    let [package] = packages.iter().collect::<Vec<_>>()[..] else {
        return Some(format!("{base}{named}"));
    };
    let targets: Option<BTreeSet<String>> =
        sources().map(|path| target_options(path, package, place)).collect();
    // A file that belongs to no known target may be part of any.
    let targets = targets.map(|targets| targets.into_iter().collect::<String>()).unwrap_or_default();
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

/// Returns the options that select the target of a file; `None` if its target isn't known.
fn target_options(path: &str, package: &AffectedPackage<'_>, place: &CheckDirectory<'_>) -> Option<String> {
    let within = match package.directory {
        "" => path,
        directory => path.strip_prefix(directory)?.strip_prefix('/')?,
    };
    let at = |file: &str| match package.directory {
        "" => file.to_owned(),
        directory => format!("{directory}/{file}"),
    };
    match within.split('/').collect::<Vec<_>>()[..] {
        ["src", ..] => {
            let has = |file: &str| place.read_file(&at(file)).is_some();
            match (has("src/lib.rs"), has("src/main.rs")) {
                (true, false) => Some(" --lib".to_owned()),
                (false, true) => Some(" --bins".to_owned()),
                (true, true) => Some(" --lib --bins".to_owned()),
                (false, false) => None,
            }
        }
        ["tests", file] => Some(format!(" --test {}", quote_word(file.strip_suffix(".rs")?))),
        ["tests", directory, ..] => place
            .read_file(&at(&format!("tests/{directory}/main.rs")))
            .map(|_| format!(" --test {}", quote_word(directory))),
        _ => None,
    }
}
