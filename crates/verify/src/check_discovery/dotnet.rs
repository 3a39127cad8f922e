//! .NET projects and solutions.

use journeyman_protocol::{CheckKind, RelPath};

use super::project::{Project, ProjectDirectory};
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "dotnet";
/// Endings of the files that `dotnet` builds.
const BUILD_FILE_ENDINGS: [&[u8]; 5] = [b".sln", b".slnx", b".csproj", b".fsproj", b".vbproj"];
/// The package that every test project depends on.
const TEST_SDK: &str = "Microsoft.NET.Test.Sdk";
/// Maximum number of project files that are read to find out whether there are tests.
const MAX_PROBED_FILES: usize = 50;

/// Finds the tests of a solution or a project, or its build if it has none.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let own: Vec<&[u8]> = place.files().filter(|path| !path.contains(&b'/') && is_buildable(path)).collect();
    let Some(file) = own.iter().find(|path| is_solution(path)).or(own.first()) else { return Vec::new() };
    let file = String::from_utf8_lossy(file).into_owned();
    let projects =
        place.files().filter(|path| is_buildable(path) && !is_solution(path)).take(MAX_PROBED_FILES);
    let texts = projects.filter_map(|path| place.read(std::str::from_utf8(path).ok()?));
    let tested = texts.into_iter().any(|text| text.contains(TEST_SDK));
    let check = match tested {
        true => place.new_check(
            CheckKind::Test,
            ECOSYSTEM,
            "dotnet test --nologo",
            format!("{file}, with a test project"),
        ),
        false => place.new_check(CheckKind::Build, ECOSYSTEM, "dotnet build --nologo", file),
    };
    vec![place.block_without_program("dotnet", "https://dot.net", check)]
}

/// Returns true if `directory` has a file that `dotnet` builds.
pub(super) fn is_project(project: &dyn Project, directory: &RelPath) -> bool {
    ProjectDirectory { project, directory: Some(directory) }
        .files()
        .any(|path| !path.contains(&b'/') && is_buildable(path))
}

fn is_buildable(path: &[u8]) -> bool {
    BUILD_FILE_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

fn is_solution(path: &[u8]) -> bool {
    path.ends_with(b".sln") || path.ends_with(b".slnx")
}
