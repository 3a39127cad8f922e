//! Tests of the checks that each kind of project gets.

mod ecosystems;
mod monorepos;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::shell::quote_word;
use super::*;

/// The content that stands for a link out of the project.
const LINK: &str = "\0link";

/// A project of nothing but words.
#[derive(Default)]
pub(crate) struct Sketch {
    files: BTreeMap<String, String>,
    listed: Vec<RelPath>,
    programs: BTreeSet<String>,
    changed: Vec<RelPath>,
}

impl Project for Sketch {
    fn has_file(&self, path: &RelPath) -> bool {
        self.files.contains_key(&path.to_string())
    }

    fn has_directory(&self, path: &RelPath) -> bool {
        let prefix = format!("{path}/");
        self.files.keys().any(|file| file.starts_with(&prefix))
    }

    fn has_link(&self, path: &RelPath) -> bool {
        self.files.get(&path.to_string()).is_some_and(|text| text == LINK)
    }

    fn read(&self, path: &RelPath) -> Option<String> {
        self.files.get(&path.to_string()).cloned()
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        let file = |program: &String| match program.starts_with('/') {
            true => PathBuf::from(program),
            false => Path::new("/usr/bin").join(program),
        };
        let named = |path: &PathBuf| path.ends_with(name);
        self.programs.iter().map(file).find(named)
    }

    fn files(&self) -> &[RelPath] {
        &self.listed
    }

    fn changed_files(&self) -> &[RelPath] {
        &self.changed
    }
}

pub(crate) fn sketch(files: &[(&str, &str)], programs: &[&str], changed: &[&str]) -> Sketch {
    let path = |text: &str| RelPath::parse(text).unwrap();
    let mut listed: Vec<RelPath> = files.iter().map(|(name, _)| path(name)).collect();
    listed.sort();
    Sketch {
        files: files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        listed,
        programs: programs.iter().map(|name| (*name).to_owned()).collect(),
        changed: changed.iter().map(|name| path(name)).collect(),
    }
}

/// `kind: command (in directory) [why not]`, one line a check that runs unasked.
fn found(files: &[(&str, &str)], programs: &[&str], changed: &[&str]) -> Vec<String> {
    let checks = find_in_project(&sketch(files, programs, changed));
    checks.iter().filter(|check| check.unasked.is_none()).map(line_of).collect()
}

/// The same with the checks that are only listed, each with the reason.
fn listed(files: &[(&str, &str)], programs: &[&str]) -> Vec<String> {
    let checks = find_in_project(&sketch(files, programs, &[]));
    let line = |check: &Check| match &check.unasked {
        Some(reason) => format!("{} {{{reason}}}", line_of(check)),
        None => line_of(check),
    };
    checks.iter().map(line).collect()
}

fn line_of(check: &Check) -> String {
    let place = check.directory.as_ref().map_or(String::new(), |path| format!(" (in {path})"));
    let blocked = check.blocked.as_ref().map_or(String::new(), |why| format!(" [{why}]"));
    format!("{}: {}{place}{blocked}", check.kind, check.command)
}

const ALL: &[&str] = &["cargo", "cargo-clippy", "npm", "python3", "go", "make"];

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!(found(&[("README.md", "hi")], ALL, &[]), Vec::<String>::new());
}

#[test]
fn cargo_projects() {
    let package = "[package]\nname = \"x\"\n";
    assert_eq!(found(&[("Cargo.toml", package)], ALL, &[]), ["tests: cargo test"]);
    assert_eq!(
        found(
            &[("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n[workspace.lints.clippy]\nx = \"warn\"")],
            ALL,
            &[]
        ),
        ["lint: cargo clippy --workspace --all-targets", "tests: cargo test --workspace"]
    );
    assert_eq!(
        found(&[("Cargo.toml", package), ("clippy.toml", "")], &["cargo"], &[]),
        [
            "lint: cargo clippy --all-targets [cargo-clippy is not installed; `rustup component add clippy` installs it]",
            "tests: cargo test"
        ]
    );
    assert_eq!(
        found(&[("Cargo.toml", "not toml [")], &[], &[]),
        ["tests: cargo test [cargo is not installed; https://rustup.rs installs it]"]
    );
}

#[test]
fn a_workspace_member_is_checked_with_its_workspace() {
    let files = [
        ("Cargo.toml", "[workspace]\nexclude = [\"tools/own\"]\n"),
        ("crates/a/Cargo.toml", "[package]\n"),
        ("tools/own/Cargo.toml", "[package]\n"),
    ];
    assert_eq!(found(&files, ALL, &["crates/a/src/lib.rs"]), ["tests: cargo test --workspace"]);
    assert_eq!(
        found(&files, ALL, &["tools/own/src/lib.rs"]),
        ["tests: cargo test --workspace", "tests: cargo test (in tools/own)"]
    );
}

#[test]
fn node_scripts() {
    let scripts = r#"{"scripts":{"typecheck":"tsc --noEmit","lint":"eslint .","test":"jest"}}"#;
    assert_eq!(
        found(&[("package.json", scripts)], ALL, &[]),
        ["types: npm run typecheck", "lint: npm run lint", "tests: npm test"]
    );
    let placeholder = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
    assert_eq!(found(&[("package.json", placeholder)], ALL, &[]), Vec::<String>::new());
    for nonsense in ["", "[]", "{\"scripts\":[1]}", "{\"scripts\":{\"test\":5}}", "nul"] {
        assert_eq!(found(&[("package.json", nonsense)], ALL, &[]), Vec::<String>::new(), "{nonsense}");
    }
}

#[test]
fn node_package_managers_and_missing_modules() {
    let needs = r#"{"scripts":{"test":"vitest run"},"devDependencies":{"vitest":"1"}}"#;
    let cases: &[(&[&str], &[&str], &str)] = &[
        (
            &["package-lock.json"],
            ALL,
            "tests: npm test [its dependencies are not installed; `npm ci` installs them]",
        ),
        (&[], ALL, "tests: npm test [its dependencies are not installed; `npm install` installs them]"),
        (&["node_modules/vitest/x", "pnpm-lock.yaml"], &["pnpm"], "tests: pnpm run test"),
        (&["node_modules/vitest/x", "yarn.lock"], &["npm"], "tests: npm test"),
        (&[".pnp.cjs", "yarn.lock"], &["yarn"], "tests: yarn run test"),
        (&["node_modules/vitest/x", "bun.lock"], &["bun"], "tests: bun run test"),
        (
            &["node_modules/vitest/x", "bun.lock"],
            &[],
            "tests: npm test [bun is not installed; https://nodejs.org has npm]",
        ),
    ];
    for (further, programs, expected) in cases {
        let mut files = vec![("package.json", needs)];
        files.extend(further.iter().map(|name| (*name, "")));
        assert_eq!(found(&files, programs, &[]), [*expected]);
    }
}

#[test]
fn linked_node_modules_count_as_installed() {
    let needs = r#"{"scripts":{"test":"vitest run"},"devDependencies":{"vitest":"1"}}"#;
    assert_eq!(found(&[("package.json", needs), ("node_modules", LINK)], ALL, &[]), ["tests: npm test"]);
}

#[test]
fn cmake_projects() {
    let build = r#"build=$(mktemp -d) && cmake -S . -B "$build" && cmake --build "$build""#;
    let tests = format!(r#"tests: {build} && ctest --test-dir "$build" --output-on-failure"#);
    let programs = &["cmake", "ctest"];
    for lists in ["project(x)\nenable_testing()\n", "PROJECT (x)\n  include( CTest )\n"] {
        assert_eq!(found(&[("CMakeLists.txt", lists)], programs, &[]), [tests.as_str()]);
    }
    let untested = [("CMakeLists.txt", "project(x)\n# enable_testing()\n")];
    assert_eq!(found(&untested, programs, &[]), [format!("build: {build}")]);
    assert_eq!(found(&[("CMakeLists.txt", "add_library(x x.c)\n")], programs, &[]), Vec::<String>::new());
    let missing = found(&untested, &[], &[]);
    assert!(missing[0].ends_with("[cmake is not installed; https://cmake.org has it]"), "{missing:?}");
}

#[test]
fn java_projects() {
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&["pom.xml"], &["java", "mvn"], "tests: mvn -B -q -o test"),
        (&["pom.xml", "mvnw", "build.gradle"], &["java"], "tests: sh ./mvnw -B -q -o test"),
        (&["pom.xml"], &["java"], "tests: mvn -B -q -o test [mvn is not installed]"),
        (
            &["build.gradle.kts"],
            &["java", "gradle"],
            "tests: gradle --offline --no-daemon --console=plain test",
        ),
        (
            &["settings.gradle", "gradlew"],
            &["java"],
            "tests: sh ./gradlew --offline --no-daemon --console=plain test",
        ),
        (
            &["build.gradle", "gradlew"],
            &[],
            "tests: sh ./gradlew --offline --no-daemon --console=plain test [java is not installed]",
        ),
    ];
    for (names, programs, expected) in cases {
        let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        assert_eq!(found(&files, programs, &[]), [*expected]);
    }
}

#[test]
fn typescript_without_a_script() {
    let manifest = r#"{"devDependencies":{"typescript":"5"}}"#;
    let root = [("package.json", manifest), ("tsconfig.json", "{}"), ("node_modules/.bin/tsc", "")];
    assert_eq!(found(&root, ALL, &[]), ["types: ./node_modules/.bin/tsc --noEmit"]);
    let nested =
        [("web/app/package.json", manifest), ("web/app/tsconfig.json", "{}"), ("node_modules/.bin/tsc", "")];
    assert_eq!(
        found(&nested, ALL, &["web/app/src/a.ts"]),
        ["types: ../../node_modules/.bin/tsc --noEmit (in web/app)"]
    );
}

#[test]
fn python_runners() {
    let unittest = "import unittest\nclass T(unittest.TestCase): pass\n";
    /// Files with their texts, programs, checks.
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let cases: &[Row<'_>] = &[
        (&[("test_a.py", unittest)], &["python3"], &["tests: python3 -m unittest discover"]),
        (&[("tests/test_a.py", unittest)], &["python3"], &["tests: python3 -m unittest discover -s tests"]),
        (
            &[
                ("test_a.py", unittest),
                ("tests/test_b.py", unittest),
                ("tests/a b/c/test_c.py", unittest),
                ("tests/a b/c/__init__.py", ""),
                ("examples/test_no.py", unittest),
                ("tests/fixtures/p/test_no.py", unittest),
                ("tests/data/test_no.py", unittest),
            ],
            &["python3"],
            &[
                "tests: python3 -m unittest discover",
                "tests: python3 -m unittest discover -s tests",
                "tests: python3 -m unittest discover -s 'tests/a b'",
            ],
        ),
        (
            &[("tests/test_a.py", unittest), ("tests/__init__.py", "")],
            &["python3"],
            &["tests: python3 -m unittest discover"],
        ),
        (
            &[("a_test.py", unittest), ("a.py", "")],
            &["python3"],
            &["tests: python3 -m unittest discover -p '*_test.py'"],
        ),
        (
            &[("tests/a_test.py", unittest), ("tests/test_b.py", unittest)],
            &["python3"],
            &["tests: python3 -m unittest discover -s tests -p '*test*.py'"],
        ),
        (&[("tests/test_a.py", unittest)], &["python3", "pytest"], &["tests: python3 -m pytest -q"]),
        (
            &[("tests/test_a.py", "def test_x(): assert 1\n")],
            &["python3"],
            &[
                "tests: python3 -m pytest -q [pytest is not installed; `python3 -m pip install pytest` installs it]",
            ],
        ),
        (
            &[("tests/test_a.py", unittest), (".venv/pyvenv.cfg", ""), (".venv/bin/pytest", "")],
            &["python3"],
            &["tests: .venv/bin/python -m pytest -q"],
        ),
        (
            &[("pyproject.toml", "[tool.mypy]\nfiles = \"src\"\n[tool.ruff]\n")],
            &["python3", "ruff"],
            &[
                "types: mypy [mypy is not installed; `python3 -m pip install mypy` installs it]",
                "lint: ruff check --no-fix --output-format=concise .",
            ],
        ),
        (&[("setup.cfg", "[mypy]\nstrict = true\n")], &["python3", "mypy"], &["types: mypy ."]),
        (&[("src/deep/test_a.py", unittest)], &["python3"], &[]),
        (
            &[("test_a.py", unittest)],
            &[],
            &["tests: python3 -m unittest discover [python3 is not installed]"],
        ),
    ];
    for (files, programs, expected) in cases {
        assert_eq!(found(files, programs, &[]), *expected, "{files:?}");
    }
}

#[test]
fn the_interpreter_that_has_pytest_runs_it() {
    let unittest = "import unittest\nclass T(unittest.TestCase): pass\n";
    /// Files with their texts, programs, check.
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let cases: &[Row<'_>] = &[
        // pytest of another installation than the first interpreter's, needed and not; a launcher.
        (
            &[("tests/test_a.py", "def test_x(): assert 1\n")],
            &["/home/u/bin/python3", "/usr/bin/python3", "/usr/bin/pytest"],
            &["tests: /usr/bin/python3 -m pytest -q"],
        ),
        (
            &[("tests/test_a.py", unittest)],
            &["/home/u/bin/python3", "/usr/bin/python3", "/usr/bin/pytest"],
            &["tests: python3 -m unittest discover -s tests"],
        ),
        (
            &[("tests/test_a.py", "def test_x(): assert 1\n")],
            &["/home/u/bin/pytest", "/usr/bin/python3"],
            &["tests: python3 -m pytest -q"],
        ),
        // An environment of its own doesn't see what is outside, unless it says so.
        (
            &[("tests/test_a.py", unittest), (".venv/pyvenv.cfg", "home = /usr/bin\n")],
            &["python3", "pytest"],
            &["tests: .venv/bin/python -m unittest discover -s tests"],
        ),
        (
            &[("tests/test_a.py", unittest), (".venv/pyvenv.cfg", "include-system-site-packages = true\n")],
            &["python3", "pytest"],
            &["tests: .venv/bin/python -m pytest -q"],
        ),
    ];
    for (files, programs, expected) in cases {
        assert_eq!(found(files, programs, &[]), *expected, "{files:?}");
    }
}

#[test]
fn changed_python_files_are_compiled_before_the_tests() {
    let files = [("tests/test_a.py", "import unittest"), ("a b.py", ""), ("-x.py", "")];
    assert_eq!(
        found(&files, &["python3"], &["a b.py", "-x.py", "gone.py", "x.txt"]),
        ["types: python3 -m py_compile 'a b.py' './-x.py'", "tests: python3 -m unittest discover -s tests"]
    );
    assert_eq!(found(&[("pyproject.toml", ""), ("a.py", "")], &["python3"], &["a.py"]), Vec::<String>::new());
}

#[test]
fn go_modules() {
    assert_eq!(found(&[("go.mod", "module x\n")], ALL, &[]), ["types: go vet ./...", "tests: go test ./..."]);
    assert_eq!(found(&[("go.mod", "")], &[], &[]).len(), 2);
}

#[test]
fn makefiles() {
    let cases: &[(&str, &[&str])] = &[
        ("test:\n\t./t\n", &["tests: make test"]),
        ("check:\n\t./t\n", &["tests: make check"]),
        ("check: lint test\ntest:\n", &["tests: make check"]),
        ("check:\n\t./c\ntest: check\n", &["tests: make test"]),
        ("check:\n\tx\ntest:\n\ty\n", &["lint: make check", "tests: make test"]),
        ("all:\n", &[]),
    ];
    for (makefile, expected) in cases {
        assert_eq!(found(&[("Makefile", makefile)], ALL, &[]), *expected, "{makefile}");
    }
    let beside_cargo = [("Makefile", "test:\n\tcargo test\n"), ("Cargo.toml", "")];
    assert_eq!(found(&beside_cargo, ALL, &[]), ["tests: cargo test"]);
}

#[test]
fn several_projects_root_first_and_bounded() {
    let files: Vec<(String, &str)> =
        ["", "a/", "b/", "c/", "d/", "e/"].iter().map(|at| (format!("{at}go.mod"), "")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let changed = ["a/x.go", "b/y/z.go", "c/x.go", "d/x.go", "e/x.go"];
    let checks = found(&files, ALL, &changed);
    assert_eq!(
        checks[..3],
        ["types: go vet ./...", "types: go vet ./... (in a)", "types: go vet ./... (in b)"]
    );
    assert_eq!(
        checks.iter().filter(|check| check.contains("[only 4 projects")).cloned().collect::<Vec<_>>(),
        [
            "types: go vet ./... (in e) [only 4 projects beneath the root are checked at a time]",
            "tests: go test ./... (in e) [only 4 projects beneath the root are checked at a time]"
        ]
    );
}

#[test]
fn a_root_without_checks_leads_to_the_projects_beneath() {
    let files = [
        ("README.md", ""),
        ("api/go.mod", ""),
        ("api/sub/go.mod", ""),
        ("web/package.json", r#"{"scripts":{"test":"x"}}"#),
        ("web/node_modules/x/package.json", r#"{"scripts":{"test":"x"}}"#),
        ("a/b/c/d/go.mod", ""),
    ];
    assert_eq!(
        found(&files, ALL, &[]),
        ["types: go vet ./... (in api)", "tests: go test ./... (in api)", "tests: npm test (in web)"]
    );
    assert_eq!(
        found(&[("tests/fixtures/x/go.mod", "")], ALL, &["tests/fixtures/x/a.go"]),
        Vec::<String>::new()
    );
}

#[test]
fn words_are_quoted_for_the_shell() {
    let cases =
        [("a.py", "a.py"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("-rf", "'./-rf'"), ("$(x)", "'$(x)'")];
    for (given, expected) in cases {
        assert_eq!(quote_word(given), expected);
    }
}
