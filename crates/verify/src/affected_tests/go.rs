//! `go test` of some packages.

use std::collections::BTreeMap;

use super::command::CheckDirectory;
use crate::test_files::file_name;

/// Systems and architectures of which a file's name ends with one if it is built for that alone.
const TARGET_NAMES: [&str; 24] = [
    "aix",
    "android",
    "darwin",
    "dragonfly",
    "freebsd",
    "illumos",
    "ios",
    "js",
    "linux",
    "netbsd",
    "openbsd",
    "plan9",
    "solaris",
    "wasip1",
    "windows",
    "386",
    "amd64",
    "arm",
    "arm64",
    "ppc64le",
    "riscv64",
    "s390x",
    "unix",
    "wasm",
];

/// Returns the packages of Go files, as arguments of `go test`. Named alone, a package without any
/// file for this system fails, as does one of another module or one that is gone; `None` if any
/// package may be one.
pub(super) fn packages_of(files: &[&str], place: &CheckDirectory<'_>) -> Option<Vec<String>> {
    let mut packages: BTreeMap<String, bool> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".go")) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let is_ignored = |name: &str| name.starts_with(['_', '.']) || name == "testdata" || name == "vendor";
        if directory.split('/').any(is_ignored) || is_in_nested_module(directory, place) {
            continue;
        }
        let is_built = place.read_file(path).is_some_and(|text| is_built_everywhere(path, &text));
        let package = if directory.is_empty() { ".".to_owned() } else { format!("./{directory}") };
        *packages.entry(package).or_default() |= is_built;
    }
    packages.into_iter().map(|(package, is_built)| is_built.then_some(package)).collect()
}

fn is_in_nested_module(directory: &str, place: &CheckDirectory<'_>) -> bool {
    let ends = directory.match_indices('/').map(|(at, _)| at).chain([directory.len()]);
    let above = ends.filter_map(|end| directory.get(..end)).filter(|above| !above.is_empty());
    above.into_iter().any(|above| place.read_file(&format!("{above}/go.mod")).is_some())
}

/// Returns true if neither the name of a file nor a line above its package limits it to some
/// builds.
fn is_built_everywhere(path: &str, text: &str) -> bool {
    let stem = file_name(path).trim_end_matches(".go").trim_end_matches("_test");
    let is_limited = stem.rsplit_once('_').is_some_and(|(_, last)| TARGET_NAMES.contains(&last));
    let mut head = text.lines().take_while(|line| !line.starts_with("package "));
    !is_limited && !head.any(|line| line.starts_with("//go:build") || line.starts_with("// +build"))
}
