//! Tests of what projects need and lack.

use super::*;
use crate::check_discovery::tests::sketch;

fn plan_of(files: &[(&str, &str)], programs: &[&str]) -> SetupPlan {
    plan_setup(&sketch(files, programs, &[]))
}

/// `command (in directory) from registries`, with `?` where nothing tells if it is needed.
fn steps(files: &[(&str, &str)], programs: &[&str]) -> Vec<String> {
    let line = |step: &SetupStep| {
        let place = step.directory.as_ref().map_or(String::new(), |path| format!(" (in {path})"));
        let unknown = if step.is_needed { "" } else { "?" };
        format!("{}{place} from {}{unknown}", step.command, step.network.join(", "))
    };
    plan_of(files, programs).steps.iter().map(line).collect()
}

#[test]
fn each_ecosystem_has_its_step() {
    let node = r#"{"scripts":{"test":"jest"},"devDependencies":{"jest":"29"}}"#;
    let test = ("tests/test_a.py", "import pytest\n");
    let pip = "python3 -m venv .venv && .venv/bin/python -m pip install --quiet";
    let or_remove = "|| { rm -rf .venv; false; }";
    let lock = "[[package]]\nname = \"serde\"\nsource = \"registry+https://x\"\n";
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let rows: &[Row<'_>] = &[
        (&[("package.json", node)], &["npm"], &["npm install --no-audit --no-fund from npm"]),
        (
            &[("package.json", node), ("package-lock.json", "")],
            &["npm"],
            &["npm ci --no-audit --no-fund from npm"],
        ),
        (
            &[("package.json", node), ("pnpm-lock.yaml", "")],
            &["pnpm"],
            &["pnpm install --frozen-lockfile from npm"],
        ),
        (&[("package.json", node), ("pnpm-lock.yaml", "")], &["npm"], &[]),
        (&[("package.json", node), ("node_modules/x", "")], &["npm"], &[]),
        (&[test], &["python3"], &[&format!("{pip} pytest {or_remove} from pypi")]),
        (&[test, (".venv/pyvenv.cfg", ""), (".venv/bin/pytest", "")], &["python3"], &[]),
        (
            &[test, (".venv/pyvenv.cfg", "")],
            &["python3"],
            &[".venv/bin/python -m pip install --quiet pytest from pypi"],
        ),
        (
            &[test, ("requirements.txt", "x"), ("requirements-dev.txt", "pytest")],
            &["python3"],
            &[&format!("{pip} -r requirements.txt -r requirements-dev.txt pytest {or_remove} from pypi")],
        ),
        (
            &[("tests/test_a.py", "import unittest"), ("requirements.txt", "x")],
            &["python3"],
            &[&format!("{pip} -r requirements.txt {or_remove} from pypi?")],
        ),
        (
            &[
                test,
                ("pyproject.toml", "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest']\n"),
            ],
            &["python3"],
            &[&format!("{pip} -e '.[test]' pytest {or_remove} from pypi")],
        ),
        (
            &[test, ("pyproject.toml", ""), ("uv.lock", "")],
            &["uv", "python3"],
            &["uv sync --frozen from pypi"],
        ),
        (&[("Cargo.toml", ""), ("Cargo.lock", lock)], &["cargo"], &["cargo fetch --locked from crates?"]),
        (&[("Cargo.toml", ""), ("Cargo.lock", "[[package]]\nname = \"own\"\n")], &["cargo"], &[]),
        (&[("go.mod", ""), ("go.sum", "x v1 h1:=\n")], &["go"], &["go mod download from go?"]),
        (
            &[("composer.json", r#"{"require":{"a/b":"1"}}"#), ("phpunit.xml", "")],
            &["php", "composer"],
            &[
                "composer install --no-interaction --no-progress from packagist, api.github.com, codeload.github.com",
            ],
        ),
        (&[("mix.exs", "{:a"), ("mix.lock", "")], &["mix"], &["mix deps.get from hex"]),
    ];
    for (files, programs, expected) in rows {
        assert_eq!(steps(files, programs), *expected, "{files:?}");
    }
}

#[test]
fn members_of_a_workspace_share_one_step() {
    let member = r#"{"scripts":{"test":"jest"},"devDependencies":{"jest":"29"}}"#;
    let files = [("package-lock.json", ""), ("a/package.json", member), ("b/package.json", member)];
    assert_eq!(steps(&files, &["npm"]), ["npm ci --no-audit --no-fund from npm"]);
}

#[test]
fn programs_that_nobody_can_fetch_are_named() {
    let plan = plan_of(&[("go.mod", ""), ("Cargo.toml", "")], &[]);
    let lacks: Vec<(&str, usize)> =
        plan.lacks.iter().map(|lack| (lack.reason.as_str(), lack.checks.len())).collect();
    assert_eq!(
        lacks,
        [
            ("cargo is not installed; https://rustup.rs installs it", 1),
            ("go is not installed; https://go.dev/dl has it", 2)
        ]
    );
    let solved = plan_of(&[("tests/test_a.py", "import pytest\n")], &["python3"]);
    assert_eq!(solved.lacks, []);
}

#[test]
fn sources_that_are_not_checked_out_are_named() {
    let modules = "[submodule \"fmt\"]\n\tpath = extern/fmt\n\turl = https://x\n[submodule \"t\"]\n\tpath = docs/theme\n";
    let cmake = ("CMakeLists.txt", "project(x)\nenable_testing()\nadd_subdirectory(extern/fmt)\n");
    let lacks = |files: &[(&str, &str)]| -> Vec<String> {
        let plan = plan_of(files, &["cmake", "ctest", "make", "python3"]);
        plan.lacks.iter().map(|lack| format!("{} ({})", lack.reason, lack.checks.len())).collect()
    };
    assert_eq!(
        lacks(&[(".gitmodules", modules), cmake]),
        ["not checked out: submodule `extern/fmt`; `git submodule update --init --recursive` fetches it (1)"]
    );
    // One that is there, in either form, one that no build names, and other ecosystems.
    let test = ("tests/test_a.py", "import unittest\n");
    let complete: [&[(&str, &str)]; 4] = [
        &[(".gitmodules", modules), cmake, ("extern/fmt/.git", "gitdir: x")],
        &[(".gitmodules", modules), cmake, ("extern/fmt/CMakeLists.txt", "")],
        &[(".gitmodules", modules), ("CMakeLists.txt", "project(x)\nenable_testing()")],
        &[(".gitmodules", modules), test],
    ];
    for files in complete {
        assert_eq!(lacks(files), Vec::<String>::new(), "{files:?}");
    }
}

#[test]
fn the_key_changes_with_the_lock_file() {
    let node = r#"{"devDependencies":{"jest":"29"},"scripts":{"test":"jest"}}"#;
    let key =
        |lock: &str| plan_of(&[("package.json", node), ("package-lock.json", lock)], &["npm"]).steps[0].key;
    assert_eq!(key("a"), key("a"));
    assert_ne!(key("a"), key("b"));
}
