//! CMake projects, tested by CTest.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "cmake";
/// Configures and builds. The directory is a new one each time: CMake refuses one that was made for
/// other sources, and not every sandbox has a `/tmp` of its own.
const BUILD_COMMAND: &str = "build=$(mktemp -d) && cmake -S . -B \"$build\" && cmake --build \"$build\"";

/// Finds a check that builds outside of the sources, and the tests where the project has some.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(lists) = place.read("CMakeLists.txt") else { return Vec::new() };
    // A directory of a larger build has no project of its own.
    if !has_call(&lists, "project") {
        return Vec::new();
    }
    let tested = has_call(&lists, "enable_testing") || includes_ctest(&lists);
    let check = match tested {
        true => {
            let command = format!("{BUILD_COMMAND} && ctest --test-dir \"$build\" --output-on-failure");
            place.new_check(CheckKind::Test, ECOSYSTEM, command, "CMakeLists.txt enables tests")
        }
        false => place.new_check(CheckKind::Build, ECOSYSTEM, BUILD_COMMAND, "CMakeLists.txt"),
    };
    vec![match ["cmake", "ctest"].into_iter().find(|program| !place.has_program(program)) {
        Some(program) => check.with_blocked(format!("{program} is not installed; https://cmake.org has it")),
        None => check,
    }]
}

/// Returns true if a line calls `command`; its name has no case.
fn has_call(lists: &str, command: &str) -> bool {
    arguments_of(lists, command).next().is_some()
}

fn includes_ctest(lists: &str) -> bool {
    arguments_of(lists, "include").any(|rest| rest.trim_start().starts_with("CTest"))
}

/// Returns the text after the bracket of each call of `command` that begins a line.
fn arguments_of<'t>(lists: &'t str, command: &str) -> impl Iterator<Item = &'t str> {
    lists.lines().filter_map(move |line| {
        let line = line.trim_start();
        let (name, rest) = line.split_at_checked(command.len())?;
        let rest = rest.trim_start().strip_prefix('(')?;
        name.eq_ignore_ascii_case(command).then_some(rest)
    })
}
