//! Packages of one repository that depend on each other.

use super::{ALL, find_in_project, found, sketch};

#[test]
fn packages_that_depend_on_a_changed_one_are_checked_after_it() {
    let package = |name: &str, needs: &str| {
        format!(r#"{{"name":"@x/{name}","scripts":{{"test":"node --test"}},"dependencies":{{{needs}}}}}"#)
    };
    let (core, api, web, other) = (
        package("core", ""),
        package("api", r#""@x/core":"workspace:*""#),
        package("web", r#""@x/api":"*""#),
        package("other", ""),
    );
    let files = [
        ("package.json", r#"{"workspaces":["packages/*"]}"#),
        ("package-lock.json", ""),
        ("node_modules/x", ""),
        ("packages/api/package.json", api.as_str()),
        ("packages/core/package.json", core.as_str()),
        ("packages/other/package.json", other.as_str()),
        ("packages/web/package.json", web.as_str()),
    ];
    assert_eq!(
        found(&files, &["npm"], &["packages/core/src/a.js"]),
        [
            "tests: npm test (in packages/core)",
            "tests: npm test (in packages/api)",
            "tests: npm test (in packages/web)"
        ]
    );
    let why: Vec<String> = find_in_project(&sketch(&files, &["npm"], &["packages/core/src/a.js"]))
        .into_iter()
        .filter(|check| check.unasked.is_none())
        .map(|check| check.why)
        .collect();
    assert_eq!(why[1], "package.json has a script `test`; depends on packages/core, which changed");
    assert_eq!(why[2], "package.json has a script `test`; depends on packages/api, which changed");
}

#[test]
fn dependencies_are_read_from_each_kind_of_manifest() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (
            &[
                ("a/go.mod", "module x.y/a\n"),
                ("b/go.mod", "module x.y/b\nrequire (\n\tx.y/a v1.0.0 // why\n)\n"),
            ],
            "a/a.go",
            "tests: go test ./... (in b)",
        ),
        (
            &[("a/go.mod", "module old\n"), ("b/go.mod", "module b\nreplace new => ../a\n")],
            "a/a.go",
            "tests: go test ./... (in b)",
        ),
        (
            &[
                ("a/Cargo.toml", "[package]\n"),
                ("b/Cargo.toml", "[target.'cfg(unix)'.dependencies]\na = { path = \"../a\" }\n"),
            ],
            "a/src/lib.rs",
            "tests: cargo test (in b)",
        ),
        (
            &[
                ("a/pyproject.toml", "[project]\nname = \"My_Lib\"\n"),
                ("b/pyproject.toml", "[project]\ndependencies = [\"my-lib>=1\"]\n"),
                ("a/tests/test_a.py", "import unittest"),
                ("b/tests/test_b.py", "import unittest"),
            ],
            "a/lib.py",
            "tests: python3 -m unittest discover -s tests (in b)",
        ),
        (
            &[
                ("a/package.json", r#"{"scripts":{"test":"x"}}"#),
                ("b/package.json", r#"{"scripts":{"test":"x"},"dependencies":{"a":"file:../a"}}"#),
                ("node_modules/x", ""),
            ],
            "a/i.js",
            "tests: npm test (in b)",
        ),
    ];
    for (files, changed, expected) in cases {
        let checks = found(files, ALL, &[changed]);
        assert!(checks.iter().any(|check| check == expected), "{files:?}: {checks:?}");
    }
}

#[test]
fn tests_of_a_member_are_not_the_roots() {
    let files = [
        ("package.json", r#"{"workspaces":["a"]}"#),
        ("a/package.json", r#"{"scripts":{"test":"node --test"}}"#),
        ("a/a.test.js", "require('node:test')"),
    ];
    assert_eq!(found(&files, &["npm", "node"], &["a/a.js"]), ["tests: npm test (in a)"]);
}

#[test]
fn circles_and_paths_out_of_the_repository_end() {
    let files = [
        ("a/Cargo.toml", "[dependencies]\nb = { path = \"../b\" }\nx = { path = \"../../../x\" }\n"),
        ("b/Cargo.toml", "[dependencies]\na = { path = \"../a/./\" }\nb = { path = \".\" }\n"),
    ];
    assert_eq!(
        found(&files, ALL, &["a/src/lib.rs"]),
        ["tests: cargo test (in a)", "tests: cargo test (in b)"]
    );
}

#[test]
fn a_directory_of_a_larger_build_is_no_project_of_its_own() {
    let files = [
        ("app/CMakeLists.txt", "project(x)\nenable_testing()\n"),
        ("app/src/CMakeLists.txt", "add_library(x x.c)\n"),
        ("app/src/x.c", ""),
    ];
    let checks = found(&files, &["cmake", "ctest"], &["app/src/x.c"]);
    assert!(matches!(&checks[..], [one] if one.ends_with("(in app)")), "{checks:?}");
}
