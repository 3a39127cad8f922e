//! Meson projects.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "meson";
/// Configures a new build directory each time, as for CMake.
const BUILD_COMMAND: &str = "build=$(mktemp -d) && meson setup \"$build\"";
/// Maximum number of Meson files that are read to find out whether there are tests.
const MAX_PROBED_FILES: usize = 50;

/// Finds a check that builds outside of the sources, and the tests where the project has some.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(root) = place.read("meson.build") else { return Vec::new() };
    // A directory of a larger build has no project of its own.
    if !has_call(&root, "project") {
        return Vec::new();
    }
    let files = place.files().filter(|path| path.ends_with(b"/meson.build")).take(MAX_PROBED_FILES);
    let further = files.filter_map(|path| place.read(std::str::from_utf8(path).ok()?));
    let tested = has_call(&root, "test") || further.into_iter().any(|text| has_call(&text, "test"));
    let check = if tested {
        let command = format!("{BUILD_COMMAND} && meson test -C \"$build\" --print-errorlogs");
        place.new_check(CheckKind::Test, ECOSYSTEM, command, "meson.build defines tests")
    } else {
        let command = format!("{BUILD_COMMAND} && meson compile -C \"$build\"");
        place.new_check(CheckKind::Build, ECOSYSTEM, command, "meson.build")
    };
    vec![place.block_without_program("meson", "https://mesonbuild.com", check)]
}

/// Returns true if a line calls `function`.
fn has_call(text: &str, function: &str) -> bool {
    text.lines().any(|line| {
        let rest = line.trim_start().strip_prefix(function);
        rest.is_some_and(|rest| rest.trim_start().starts_with('('))
    })
}
