use journeyman_protocol::{CheckKind, CheckOutcome, Diagnostic, Evidence, RelPath, Severity, TestCounts};

use super::{narrow_to_failed_tests, narrow_to_files};
use crate::Check;

/// The content that stands for a file that is gone.
const GONE: &str = "\0gone";

/// Narrows a command at the root to files of a project with these contents.
fn narrowed(command: &str, project: &[(&str, &str)], files: &[&str]) -> Option<String> {
    narrowed_in(None, command, project, files)
}

fn narrowed_in(
    directory: Option<&str>,
    command: &str,
    project: &[(&str, &str)],
    files: &[&str],
) -> Option<String> {
    let directory = directory.map(|path| RelPath::parse(path).unwrap());
    let check = Check::new(CheckKind::Test, "any", command, "it is there").with_directory(directory.as_ref());
    let files: Vec<RelPath> = files.iter().map(|path| RelPath::parse(*path).unwrap()).collect();
    let read = |path: &RelPath| {
        let known = project.iter().find(|(name, _)| path.to_string() == *name).map(|(_, text)| *text);
        let text = known.or_else(|| files.contains(path).then_some("")).filter(|text| *text != GONE)?;
        Some(text.to_owned())
    };
    narrow_to_files(&check, &files, &read).map(|check| check.command)
}

#[test]
fn runners_that_take_files_and_names_get_them() {
    let files = ["src/a.py", "tests/test_a.py", "tests/b_test.py", "tests/conftest.py"];
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        ("python3 -m pytest -q", &files, Some("python3 -m pytest -q tests/b_test.py tests/test_a.py")),
        ("uv run pytest", &files, Some("uv run pytest tests/b_test.py tests/test_a.py")),
        (
            ".venv/bin/python -m pytest",
            &["tests/test_a b.py"],
            Some(".venv/bin/python -m pytest 'tests/test_a b.py'"),
        ),
        ("pytest tests/unit", &files, None),
        ("pytest -k slow", &files, None),
        ("pytest; true", &files, None),
        ("pytest $X", &files, None),
        ("pytest -q", &["src/a.py"], None),
        (
            "python3 -m unittest discover -s tests",
            // Discovery doesn't enter what is no package.
            &["tests/test_a.py", "tests/test_b.py", "tests/deep/test_c.py", "test_d.py", "src/a.py"],
            Some(
                "failed=0; python3 -m unittest discover -s tests -p test_a.py || failed=1; \
                 python3 -m unittest discover -s tests -p test_b.py || failed=1; exit $failed",
            ),
        ),
        ("python3 -m unittest discover -s tests", &["tests/deep/test_c.py"], None),
        ("python3 -m unittest discover", &["test_d.py"], Some("python3 -m unittest discover -p test_d.py")),
        ("python3 -m unittest discover -p 'x*.py'", &files, None),
        ("go test ./a", &["a/x_test.go"], None),
        ("bundle exec rspec", &["spec/a_spec.rb", "lib/a.rb"], Some("bundle exec rspec spec/a_spec.rb")),
        ("mix test", &["test/a_test.exs"], Some("mix test test/a_test.exs")),
        (
            "vendor/bin/phpunit",
            &["tests/UserTest.php", "src/User.php", "tests/AccountTest.php"],
            Some(r"vendor/bin/phpunit --filter '/\b(AccountTest|UserTest)::/'"),
        ),
        (
            "mvn -B -q -o test",
            &["src/test/java/a/UserTest.java", "src/main/java/a/User.java"],
            Some(
                "mvn -B -q -o test -Dtest=UserTest -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false",
            ),
        ),
        (
            "sh ./gradlew --offline test",
            &["src/test/kotlin/a/UserTest.kt", "src/test/java/a/AccountTest.java"],
            Some("sh ./gradlew --offline test --tests '*AccountTest' --tests '*UserTest'"),
        ),
        ("dotnet test", &["tests/UserTests.cs"], Some("dotnet test --filter 'FullyQualifiedName~UserTests'")),
        ("make test", &files, None),
        ("ctest", &["tests/a.c"], None),
        ("npx --no-install jest", &["a.test.ts"], Some("npx --no-install jest a.test.ts")),
        ("node --test", &["test/a.js", "b.test.mjs", "c.js"], Some("node --test b.test.mjs test/a.js")),
        ("node --test test/", &["test/a.js"], None),
    ];
    for (command, files, expected) in cases {
        assert_eq!(narrowed(command, &[], files).as_deref(), *expected, "{command}");
    }
}

#[test]
fn go_tests_are_narrowed_to_packages_that_surely_build() {
    let code = "// Package a.\npackage a\n";
    let project = [
        ("main.go", code),
        ("a/x.go", code),
        ("a/x_test.go", code),
        ("a/x_linux.go", code),
        ("win/w_windows.go", code),
        ("win/w_windows_amd64_test.go", code),
        ("gen/gen.go", "//go:build ignore\n\npackage main\n"),
        ("nested/go.mod", "module n\n"),
        ("nested/deep/n.go", code),
        ("a/testdata/t.go", code),
        ("gone/x.go", GONE),
        ("a/gone.go", GONE),
    ];
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        ("go test ./...", &["a/x.go", "a/x_test.go", "main.go"], Some("go test . ./a")),
        ("go test -race ./...", &["a/x_test.go"], Some("go test -race ./a")),
        // Another file of the package is built.
        ("go test ./...", &["a/x_linux.go", "a/x.go"], Some("go test ./a")),
        ("go test ./...", &["a/x.go", "nested/deep/n.go", "a/testdata/t.go"], Some("go test ./a")),
        ("go test ./...", &["nested/deep/n.go"], None),
        ("go test ./...", &["a/x.go", "win/w_windows.go"], None),
        ("go test ./...", &["a/x.go", "win/w_windows_amd64_test.go"], None),
        ("go test ./...", &["a/x.go", "gen/gen.go"], None),
        ("go test ./...", &["a/x.go", "a/gone.go", "gone/x.go"], Some("go test ./a")),
        ("go test ./...", &["gone/x.go"], None),
        ("go test ./a", &["a/x_test.go"], None),
    ];
    for (command, files, expected) in cases {
        assert_eq!(narrowed(command, &project, files).as_deref(), *expected, "{files:?}");
    }
}

#[test]
fn files_that_are_gone_are_not_named() {
    let project = [("tests/test_gone.py", GONE), ("tests/test_a.py", "")];
    let files = ["tests/test_a.py", "tests/test_gone.py"];
    assert_eq!(narrowed("pytest -q", &project, &files).as_deref(), Some("pytest -q tests/test_a.py"));
    assert_eq!(narrowed("pytest -q", &project, &files[1..]), None);
}

#[test]
fn cargo_tests_of_packages_outside_of_the_workspace_are_not_named() {
    let one = "[package]\nname = 'one'\n";
    let fuzz = ("fuzz/Cargo.toml", "[package]\nname = 'one-fuzz'\n[workspace]\n");
    let files = ["src/lib.rs", "fuzz/src/a.rs"];
    let workspace = format!("{one}[workspace]\nexclude = ['./tools/']\n");
    let tool = ("tools/x/Cargo.toml", "[package]\nname = 'x'\n");
    for (manifest, other, files) in [
        (one, fuzz, files),
        (&*workspace, fuzz, files),
        (&*workspace, tool, ["src/lib.rs", "tools/x/src/lib.rs"]),
        // Without a workspace the root is the only package.
        (one, ("sub/Cargo.toml", "[package]\nname = 'sub'\n"), ["src/lib.rs", "sub/src/lib.rs"]),
    ] {
        let project = [("Cargo.toml", manifest), other, ("src/lib.rs", "")];
        assert_eq!(narrowed("cargo test", &project, &files), None, "{other:?}");
    }
}

#[test]
fn scripts_pass_files_on_to_a_runner_that_takes_them() {
    let files = ["src/__tests__/a.ts", "src/b.spec.js", "src/b.js"];
    let both = "src/__tests__/a.ts src/b.spec.js";
    let cases: &[(&str, &str, Option<String>)] = &[
        ("npm test", "jest", Some(format!("npm test -- {both}"))),
        ("pnpm run test", "vitest run --coverage", Some(format!("pnpm run test {both}"))),
        (
            "yarn run test",
            "cross-env NODE_ENV=test jest --config jest.json",
            Some(format!("yarn run test {both}")),
        ),
        ("npm test", "mocha --recursive", Some(format!("npm test -- {both}"))),
        ("npm test", "node --test", Some(format!("npm test -- {both}"))),
        ("npm test", "jest src/unit", None),
        ("npm test", "jest --watch", None),
        ("npm test", "tsc && jest", None),
        ("npm test", "node test.js", None),
        ("npm run other", "jest", None),
    ];
    for (command, script, expected) in cases {
        let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
        assert_eq!(
            narrowed(command, &[("package.json", &manifest)], &files),
            *expected,
            "{command}: {script}"
        );
    }
    let mocha = [("package.json", r#"{"scripts":{"test":"mocha"}}"#), (".mocharc.json", "{}")];
    assert_eq!(narrowed("npm test", &mocha, &files), None);
}

#[test]
fn cargo_tests_are_narrowed_to_packages_and_to_targets_of_one() {
    let single = [("Cargo.toml", "[package]\nname = 'one'\n"), ("src/lib.rs", "")];
    let two = [
        ("Cargo.toml", "[workspace]\nmembers = ['a', 'b']\n"),
        ("a/Cargo.toml", "[package]\nname = 'first'\n"),
        ("b/Cargo.toml", "[package]\nname = 'second'\n"),
        ("b/src/main.rs", ""),
        ("b/tests/suite/main.rs", ""),
    ];
    let programs = [
        ("Cargo.toml", "[package]\nname = 'one'\n"),
        ("src/lib.rs", "pub mod a;\n"),
        ("src/a.rs", ""),
        ("src/bin/tool.rs", ""),
    ];
    let documented = [
        ("Cargo.toml", "[package]\nname = 'one'\n"),
        ("src/lib.rs", "//! ```\n//! one::a();\n//! ```\n"),
        ("src/a.rs", "/// ```\n/// one::a();\n/// ```\npub fn a() {}\n"),
        ("src/b.rs", ""),
    ];
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(Files<'_>, &str, &[&str], Option<&str>)] = &[
        (&single, "cargo test", &["src/deep/a.rs"], Some("cargo test -p one --bins --lib")),
        (
            &single,
            "cargo test",
            &["src/a.rs", "tests/it.rs"],
            Some("cargo test -p one --bins --lib --test it"),
        ),
        (&single, "cargo test", &["build.rs"], None),
        (&single, "cargo test", &["README.md"], None),
        (&single, "cargo test it_works", &["src/a.rs"], None),
        (
            &two,
            "cargo test --workspace",
            &["a/src/x.rs", "b/src/y.rs"],
            Some("cargo test -p first -p second"),
        ),
        (
            &two,
            "cargo test --workspace",
            &["b/src/y.rs", "b/tests/suite/z.rs"],
            Some("cargo test -p second --bins --test suite"),
        ),
        // The tests of a program, and those in documentation, are in no library's tests.
        (&programs, "cargo test", &["src/bin/tool.rs"], Some("cargo test -p one --bins")),
        (&programs, "cargo test", &["src/a.rs"], Some("cargo test -p one --bins --lib")),
        (&documented, "cargo test", &["src/a.rs"], None),
        (&documented, "cargo test", &["src/b.rs"], None),
        (&documented, "cargo test", &["tests/it.rs"], Some("cargo test -p one --test it")),
        (&two, "cargo test --workspace", &["a/benches/x.rs"], Some("cargo test -p first")),
        (&two, "cargo test --workspace", &["xtask/src/x.rs"], None),
    ];
    for (project, command, files, expected) in cases {
        assert_eq!(narrowed(command, project, files).as_deref(), *expected, "{command} {files:?}");
    }
}

#[test]
fn files_are_named_as_the_checks_directory_has_them() {
    let files = ["web/tests/test_a.py", "tests/test_b.py", "website/test_c.py"];
    let expected = Some("pytest tests/test_a.py".to_owned());
    assert_eq!(narrowed_in(Some("web"), "pytest", &[], &files), expected);
    assert_eq!(narrowed_in(Some("api"), "pytest", &[], &files), None);
}

#[test]
fn a_command_does_not_name_hundreds_of_tests() {
    let files: Vec<String> = (0..101).map(|n| format!("test_{n}.py")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(narrowed("pytest", &[], &files), None);
    assert!(narrowed("pytest", &[], &files[1..]).is_some());
}

#[test]
fn a_test_that_fails_in_the_products_code_may_be_in_any_file() {
    let failed = |path: Option<&str>, test: Option<&str>| Diagnostic {
        path: path.and_then(|path| RelPath::parse(path).ok()),
        test: test.map(str::to_owned),
        ..Diagnostic::new(Severity::Error, "it fails")
    };
    let (a, b) = (failed(Some("tests/test_a.py"), Some("a")), failed(Some("tests/test_b.py"), Some("b")));
    let project = [("Cargo.toml", "[package]\nname = 'one'\n"), ("src/lib.rs", "")];
    let read = |path: &RelPath| {
        let known = project.iter().find(|(name, _)| path.to_string() == *name);
        Some(known.map_or("", |(_, text)| text).to_owned())
    };
    let cases: &[(&str, Vec<Diagnostic>, Option<&str>)] = &[
        ("pytest", vec![a.clone(), b], Some("pytest tests/test_a.py tests/test_b.py")),
        ("pytest", vec![a.clone(), failed(Some("src/calc.py"), Some("c"))], None),
        ("pytest", vec![a.clone(), failed(Some("tests/conftest.py"), Some("c"))], None),
        ("pytest", vec![a.clone(), failed(None, Some("c"))], None),
        // A file of tests that doesn't load.
        ("pytest", vec![a.clone(), failed(Some("tests/test_c.py"), None)], None),
        ("pytest", vec![a.clone(); 50], None),
        ("cargo test", vec![failed(Some("tests/it.rs"), Some("it"))], Some("cargo test -p one --test it")),
        ("cargo test", vec![failed(Some("src/lib.rs"), Some("it"))], None),
    ];
    for (command, failures, expected) in cases {
        let check = Check::new(CheckKind::Test, "any", *command, "it is there");
        let outcome = CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".to_owned() };
        let mut failed = Evidence::new(CheckKind::Test, *command, outcome);
        failed.diagnostics.clone_from(failures);
        let narrowed = narrow_to_failed_tests(&check, &failed, &read);
        assert_eq!(narrowed.map(|check| check.command).as_deref(), *expected, "{command} {failures:?}");
        // One more, which nothing names, may fail again.
        let count = u64::try_from(failures.len()).unwrap() + 1;
        failed.tests = Some(TestCounts { failed: count, ..TestCounts::default() });
        assert!(narrow_to_failed_tests(&check, &failed, &read).is_none(), "{command} {failures:?}");
    }
}
