//! Projects with a `configure` script, by Autoconf or of their own kind.

use journeyman_protocol::CheckKind;

use super::project::{ProjectDirectory, file_name};
use crate::Check;
use crate::makefile::{MAKEFILE_NAMES, parse_rules};

/// The name in evidence.
const ECOSYSTEM: &str = "autotools";
/// Goes to a new copy of the sources: many projects can't be built outside of them, and a check
/// leaves none of its products in them. The times of files stay, by which Automake tells what to
/// make anew.
const COPY_COMMAND: &str = "build=$(mktemp -d) && tar -cf - . | tar -xof - -C \"$build\" && cd \"$build\"";
/// The place from which to get make.
const MAKE_SOURCE: &str = "a package `make`";
/// Maximum number of Makefiles that are read to find out whether there are tests.
const MAX_PROBED_FILES: usize = 50;

/// Finds a check that configures and builds a copy of the sources, and the tests where the project
/// has some. Sources that are configured have a Makefile, whose targets are checks of their own.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    if place.has_any(&MAKEFILE_NAMES) {
        return Vec::new();
    }
    let script = place.has_file("configure");
    let source = ["configure.ac", "configure.in"].into_iter().find(|name| place.has_file(name));
    let Some(why) = source.or((script && place.has_file("Makefile.in")).then_some("configure")) else {
        return Vec::new();
    };
    let (generate, programs): (_, &[(&str, &str)]) = match script {
        true => ("", &[("make", MAKE_SOURCE)]),
        false => (" && autoreconf -i", &[("autoreconf", "a package `autoconf`"), ("make", MAKE_SOURCE)]),
    };
    let build = format!("{COPY_COMMAND}{generate} && ./configure && make");
    let check = match find_test_target(place) {
        // Automake then shows what failed tests print.
        Some("check") => place.new_check(CheckKind::Test, ECOSYSTEM, format!("{build} check VERBOSE=1"), why),
        Some(target) => place.new_check(CheckKind::Test, ECOSYSTEM, format!("{build} {target}"), why),
        None => place.new_check(CheckKind::Build, ECOSYSTEM, build, why),
    };
    let blocked =
        programs.iter().fold(check, |check, (name, from)| place.block_without_program(name, from, check));
    vec![blocked]
}

/// Returns the target that runs the tests: `check`, which Automake has where there are any, or the
/// one of a template of a Makefile.
fn find_test_target(place: &ProjectDirectory<'_>) -> Option<&'static str> {
    let is_template = |path: &&[u8]| matches!(file_name(path), b"Makefile.am" | b"Makefile.in");
    let templates: Vec<&[u8]> = place.files().filter(is_template).take(MAX_PROBED_FILES).collect();
    let read = |path: &[u8]| place.read(std::str::from_utf8(path).ok()?);
    let texts: Vec<String> = templates.into_iter().filter_map(read).collect();
    let has_rule = |names: &[&str]| {
        let rules = texts.iter().flat_map(|text| parse_rules(text));
        rules.flat_map(|rule| rule.targets).any(|target| names.contains(&target.as_str()))
    };
    let lists_tests = texts.iter().flat_map(|text| text.lines()).any(|line| {
        let name = line.split(['=', '+', ' ', '\t']).next().unwrap_or_default();
        line.contains('=') && matches!(name, "TESTS" | "check_PROGRAMS" | "check_SCRIPTS")
    });
    if lists_tests || has_rule(&["check", "check-local"]) {
        return Some("check");
    }
    has_rule(&["test"]).then_some("test")
}
