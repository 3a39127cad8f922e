//! Java and Kotlin projects: Maven and Gradle.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The names in evidence.
const MAVEN: &str = "maven";
const GRADLE: &str = "gradle";

/// Files of which one makes a directory a Gradle build.
const GRADLE_FILES: [&str; 4] =
    ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];

/// Finds the project's tests, offline, run by its wrapper if it has one. A project with both build
/// files counts as Maven's: Gradle's files beside a `pom.xml` are mostly for publishing.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    if place.has_file("pom.xml") {
        let arguments = "-B -q -o test";
        return vec![new_check(place, MAVEN, "mvn", "mvnw", arguments, "pom.xml")];
    }
    let Some(file) = GRADLE_FILES.into_iter().find(|name| place.has_file(name)) else { return Vec::new() };
    let arguments = "--offline --no-daemon --console=plain test";
    vec![new_check(place, GRADLE, "gradle", "gradlew", arguments, file)]
}

fn new_check(
    place: &ProjectDirectory<'_>,
    ecosystem: &'static str,
    program: &str,
    wrapper: &str,
    arguments: &str,
    why: &str,
) -> Check {
    let own = place.has_file(wrapper);
    // The wrapper's file mode may be lost; the shell needs none.
    let runner = if own { format!("sh ./{wrapper}") } else { program.to_owned() };
    let check = place.new_check(CheckKind::Test, ecosystem, format!("{runner} {arguments}"), why);
    if !place.has_program("java") {
        return check.with_blocked("java is not installed");
    }
    if !own && !place.has_program(program) {
        return check.with_blocked(format!("{program} is not installed"));
    }
    check
}
