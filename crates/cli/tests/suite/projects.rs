//! `jm check` on the projects under `tests/projects`: the checks that are found, the verdict and
//! the diagnostics of a passing, a failing and a flaky state.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use serde_json::{Value, json};

use crate::support::{House, Ran, Server, call, needs, needs_sandbox, say};

/// What a project has to show.
struct Project {
    name: &'static str,
    programs: &'static [&'static str],
    /// The arguments of `jm check`.
    arguments: &'static [&'static str],
    /// Kind, beginning of the command and directory of each check.
    checks: &'static [(&'static str, &'static str, &'static str)],
    /// File, line and a part of the message or of the code, of one diagnostic of the failing state.
    /// Runners name the line of the test or that of the assertion in it.
    found: (&'static str, RangeInclusive<u64>, &'static str),
}

const PROJECTS: [Project; 12] = [
    Project {
        name: "rust",
        programs: &["cargo"],
        arguments: &[],
        checks: &[("test", "cargo test", "")],
        found: ("tests/slug.rs", 5..=5, "left == right"),
    },
    Project {
        name: "javascript",
        programs: &["npm", "node"],
        arguments: &[],
        checks: &[("test", "npm test", "")],
        found: ("cart.test.js", 5..=6, "counts each line"),
    },
    Project {
        name: "typescript",
        programs: &["npm", "node", "tsc"],
        arguments: &[],
        checks: &[("types", "npm run typecheck", ""), ("test", "npm test", "")],
        found: ("src/clock.ts", 3..=3, "not assignable"),
    },
    Project {
        name: "python",
        programs: &["python3"],
        arguments: &[],
        checks: &[("test", "python3 -m ", "")],
        found: ("tests/test_roman.py", 8..=8, "16 != 14"),
    },
    Project {
        name: "java",
        programs: &["make", "javac"],
        arguments: &[],
        checks: &[("test", "make test", "")],
        found: ("src/Stack.java", 12..=12, "incompatible types"),
    },
    Project {
        name: "c",
        programs: &["make", "cc"],
        arguments: &[],
        checks: &[("test", "make check", "")],
        found: ("words_test.c", 8..=8, "counted 4 words"),
    },
    Project {
        name: "cpp",
        programs: &["make", "c++"],
        arguments: &[],
        checks: &[("test", "make test", "")],
        found: ("ring.hpp", 9..=9, "latest"),
    },
    Project {
        name: "go",
        programs: &["go"],
        arguments: &[],
        checks: &[("types", "go vet ./...", ""), ("test", "go test ./...", "")],
        found: ("money_test.go", 7..=7, "not 12.05"),
    },
    Project {
        name: "ruby",
        programs: &["ruby"],
        arguments: &[],
        checks: &[("test", "ruby -Ilib -Itest", "")],
        found: ("test/greeting_test.rb", 6..=6, ""),
    },
    Project {
        name: "php",
        programs: &["php", "phpunit"],
        arguments: &[],
        checks: &[("test", "phpunit", "")],
        found: ("tests/GradeTest.php", 9..=9, ""),
    },
    Project {
        name: "make",
        programs: &["make"],
        arguments: &[],
        checks: &[("test", "make check", "")],
        found: ("backup.sh", 3..=3, "monday-home.tar"),
    },
    Project {
        name: "monorepo",
        programs: &["npm", "node"],
        arguments: &["packages/prices/index.js"],
        checks: &[("test", "npm test", "packages/prices"), ("test", "npm test", "packages/web")],
        found: ("packages/prices/index.test.js", 5..=6, "adds the tax"),
    },
];

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_files(&source, &target);
        } else {
            std::fs::copy(source, target).unwrap();
        }
    }
}

/// A house with one state of a project, as a user's repository.
fn house_with(project: &Project, state: &str) -> House {
    let all = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/projects").join(project.name);
    let house = House::new();
    copy_files(&all.join("passing"), &house.project());
    if state != "passing" {
        copy_files(&all.join(state), &house.project());
    }
    house
}

/// Go's build cache with the standard library as `go vet` and `go test` need it, which take two
/// seconds for it. Kept from one run of the tests to the next.
fn go_cache() -> &'static Path {
    const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/go-build");
    static FILLED: Once = Once::new();
    FILLED.call_once(|| {
        let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/projects/go/passing");
        for check in ["vet", "test"] {
            let mut go = Command::new("go");
            let ran = go.args([check, "./..."]).current_dir(project).env("GOCACHE", CACHE).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
    });
    Path::new(CACHE)
}

fn run_checks(house: &House, project: &Project, state: &str) -> (Ran, Value) {
    let arguments = [&["check", "-C", ".", "--json"], project.arguments].concat();
    // The toolchains of this machine may lie in its own home, which the house hides.
    let mut jm = house.jm(&arguments);
    for (name, directory) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")]
    {
        let default = Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(directory);
        jm = jm.env(name, std::env::var_os(name).unwrap_or_else(|| default.into_os_string()));
    }
    // The passing state is checked as on a machine where Go never ran.
    if project.programs.contains(&"go") && state != "passing" {
        jm = jm.env("GOCACHE", go_cache());
    }
    let ran = jm.run();
    let answer = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{}: {error}\n{}\n{}", project.name, ran.stdout, ran.stderr));
    (ran, answer)
}

/// The checks that ran, or were to: kind, command, directory.
fn checks_of(answer: &Value) -> Vec<(String, String, String)> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = answer["evidence"].as_array().unwrap();
    all.iter().map(|one| (text(one, "kind"), text(one, "command"), text(one, "directory"))).collect()
}

fn assert_passes(project: &Project) {
    let house = house_with(project, "passing");
    let (ran, answer) = run_checks(&house, project, "passing");
    let name = project.name;
    let checks = checks_of(&answer);
    let expected = |(found, wanted): (&(String, String, String), &(&str, &str, &str))| {
        found.0 == wanted.0 && found.1.starts_with(wanted.1) && found.2 == wanted.2
    };
    assert!(
        checks.len() == project.checks.len() && checks.iter().zip(project.checks).all(expected),
        "{name}: {checks:?}"
    );
    assert_eq!(
        (ran.status.code(), answer["verdict"].as_str()),
        (Some(0), Some("passed")),
        "{name}: {answer:#}"
    );
}

fn assert_fails(project: &Project) {
    let (ran, answer) = run_checks(&house_with(project, "failing"), project, "failing");
    let (path, lines, part) = &project.found;
    assert_eq!(ran.status.code(), Some(3), "{}: {answer:#}", project.name);
    assert_eq!(answer["verdict"], "failed");
    let evidence = answer["evidence"].as_array().unwrap().iter();
    let mut diagnostics = evidence.flat_map(|one| one["diagnostics"].as_array().unwrap());
    let is_it = |one: &Value| {
        one["path"] == *path
            && one["line"].as_u64().is_some_and(|line| lines.contains(&line))
            && one.to_string().contains(part)
    };
    assert!(diagnostics.any(is_it), "{}: {answer:#}", project.name);
}

/// A test that fails only the first time never makes a verified project fail twice.
fn assert_is_flaky(project: &Project) {
    let house = house_with(project, "flaky");
    let (first, answer) = run_checks(&house, project, "flaky");
    if first.status.code() != Some(0) {
        assert!(answer.to_string().contains("the cache was cold"), "{}: {answer:#}", project.name);
    }
    let (second, answer) = run_checks(&house, project, "flaky");
    assert_eq!(second.status.code(), Some(0), "{}: {answer:#}", project.name);
}

#[test]
fn a_session_names_the_flaky_test_and_is_verified() {
    if !needs_sandbox() || !needs(&["npm", "node"]) {
        return;
    }
    let project = PROJECTS.iter().find(|one| one.name == "javascript").unwrap();
    let house = house_with(project, "flaky");
    let clearer = json!({ "path": "cart.js", "search": "in cents", "replace": "in whole cents" });
    let server = Server::chat([call("edit_file", clearer), say("Done.")]);
    let report = server.run(&house, &["--json", "say that cents are whole"]).run().expect(0).report();
    let flaky: Vec<&String> = report.evidence.iter().flat_map(|one| &one.flaky).collect();
    assert!(matches!(flaky[..], [one] if one.contains("counts each line")), "{report:#?}");
    assert!(report.summary.contains("flaky: "), "{}", report.summary);
}

/// One test for each project, so that they run beside each other.
macro_rules! project_tests {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            let project = PROJECTS.iter().find(|one| one.name == stringify!($name)).unwrap();
            if needs(project.programs) {
                assert_passes(project);
                assert_fails(project);
                assert_is_flaky(project);
            }
        })*
    };
}

project_tests!(rust, javascript, typescript, python, java, c, cpp, go, ruby, php, make, monorepo);
