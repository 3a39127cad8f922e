//! Distinguishes test files and test configuration by their paths, by the conventions of the
//! ecosystems.

/// Directories whose files belong to the tests, whatever their kind.
const TEST_DIRECTORIES: [&str; 18] = [
    "test",
    "tests",
    "__tests__",
    "__test__",
    "__mocks__",
    "__fixtures__",
    "__snapshots__",
    "testdata",
    "test_data",
    "test-data",
    "testcases",
    "e2e",
    "cypress",
    "androidtest",
    "unittests",
    "integration_tests",
    "integration-tests",
    "testfixtures",
];
/// Directories whose programs are tests; their other files may be specifications of another kind.
const SPEC_DIRECTORIES: [&str; 2] = ["spec", "specs"];
/// Extensions of languages whose tests are named specs.
const SPEC_EXTENSIONS: [&str; 16] = [
    "rb", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "coffee", "php", "lua", "cr", "hs", "scala",
    "groovy",
];
/// Extensions of languages whose test classes carry `Test` or `Spec` in their names.
const TEST_CLASS_EXTENSIONS: [&str; 10] =
    ["java", "kt", "kts", "groovy", "scala", "cs", "fs", "vb", "php", "swift"];
/// Endings of the names of test classes.
const TEST_CLASS_ENDINGS: [&str; 7] = ["Test", "Tests", "TestCase", "TestCases", "IT", "Spec", "Specs"];
/// Extensions of files whose stem may say that they are tests, in any other language.
const PROGRAM_EXTENSIONS: [&str; 47] = [
    "py", "pyi", "rs", "go", "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "m", "mm", "rb", "js",
    "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "coffee", "ex", "exs", "erl", "clj", "cljs", "cljc",
    "dart", "lua", "sh", "bash", "bats", "t", "pl", "hs", "ml", "jl", "nim", "zig", "d", "r", "cr", "el",
];
/// Names of files that tests of an ecosystem share.
const SHARED_TEST_FILE_NAMES: [&str; 7] = [
    "conftest.py",
    "spec_helper.rb",
    "rails_helper.rb",
    "test_helper.rb",
    "test_helper.exs",
    "setuptests.js",
    "setuptests.ts",
];
/// Names of files that configure nothing but the running of tests, in lower case.
const RUNNER_CONFIG_NAMES: [&str; 34] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    ".coveragerc",
    ".rspec",
    "karma.conf.js",
    "karma.conf.ts",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpunit.dist.xml",
    "pest.php",
    "codeception.yml",
    "codeception.yaml",
    "testng.xml",
    "junit-platform.properties",
    "ctestconfig.cmake",
    "ctestcustom.cmake",
    "nextest.toml",
    "tarpaulin.toml",
    "xunit.runner.json",
    "test_helper.exs",
    "spec_helper.rb",
    "rails_helper.rb",
    ".simplecov",
    "codecov.yml",
    ".codecov.yml",
    "bunfig.toml",
    "maven.config",
    ".proverc",
];
/// Beginnings of names of runners' configuration: `jest.config.ts`, `.mocharc.yml`.
const RUNNER_CONFIG_PREFIXES: [&str; 16] = [
    "jest.config.",
    "jest.setup.",
    "vitest.config.",
    "vitest.setup.",
    "vitest.workspace.",
    ".mocharc",
    "playwright.config.",
    "cypress.config.",
    "ava.config.",
    "wdio.conf.",
    "nightwatch.conf.",
    ".nycrc",
    ".c8rc",
    ".taprc",
    "web-test-runner.config.",
    "stryker.conf",
];
/// Endings of names of runners' configuration.
const RUNNER_CONFIG_ENDINGS: [&str; 2] = [".runsettings", ".testsettings"];
/// Names of manifests and build files that say, among other things, which tests run and how; in
/// lower case.
const BUILD_FILE_NAMES: [&str; 40] = [
    "package.json",
    "deno.json",
    "deno.jsonc",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "cargo.toml",
    "go.mod",
    "makefile",
    "gnumakefile",
    "bsdmakefile",
    "cmakelists.txt",
    "cmakepresets.json",
    "meson.build",
    "meson_options.txt",
    "meson.options",
    "sconstruct",
    "build.bazel",
    "build.ninja",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradle.properties",
    "build.sbt",
    "build.xml",
    "rakefile",
    "gemfile",
    "composer.json",
    "mix.exs",
    "directory.build.props",
    "directory.build.targets",
    "justfile",
    ".justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "vite.config.ts",
    "vite.config.js",
    "package.swift",
];
/// Endings of names of manifests and build files that say which tests run and how.
const BUILD_FILE_ENDINGS: [&str; 4] = [".csproj", ".fsproj", ".vbproj", ".mk"];
/// Beginnings of paths of CI configuration, which decides how the tests run.
const PIPELINE_PATH_PREFIXES: [&str; 9] = [
    ".github/workflows/",
    ".gitlab-ci",
    ".circleci/",
    ".travis.yml",
    "azure-pipelines",
    "bitbucket-pipelines",
    ".buildkite/",
    "jenkinsfile",
    ".drone.yml",
];

/// Returns true for a file that belongs to the tests by its path: a test program, a helper of
/// tests, or their data and snapshots.
///
/// The path is relative to the project, with `/` between components.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = directories.to_ascii_lowercase();
    let within = |names: &[&str]| lower.split('/').any(|part| names.contains(&part));
    within(&TEST_DIRECTORIES)
        || lower.split('/').any(is_test_project)
        || within(&SPEC_DIRECTORIES) && SPEC_EXTENSIONS.contains(&extension(name))
        || SHARED_TEST_FILE_NAMES.contains(&name.to_ascii_lowercase().as_str())
        || is_test_program_name(name)
        || is_snapshot(path)
}

/// Returns true for a file that says which tests run and how: the configuration of a runner or of
/// CI, or a manifest or build file with such settings.
///
/// The path is relative to the project, with `/` between components.
#[must_use]
pub fn is_test_configuration(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = file_name(&lower);
    is_runner_configuration(path)
        || BUILD_FILE_NAMES.contains(&name)
        || BUILD_FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns true for a file that configures nothing but the running of tests.
#[must_use]
pub fn is_runner_configuration(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = file_name(&lower);
    RUNNER_CONFIG_NAMES.contains(&name)
        || RUNNER_CONFIG_PREFIXES.iter().any(|beginning| name.starts_with(beginning))
        || RUNNER_CONFIG_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || is_pipeline(&lower)
}

/// Returns true for the CI configuration of a project's tests; the path is in lower case.
pub(crate) fn is_pipeline(path: &str) -> bool {
    PIPELINE_PATH_PREFIXES.iter().any(|beginning| path.starts_with(beginning))
}

/// Returns true for a file whose contents a runner writes and compares with.
pub(crate) fn is_snapshot(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = file_name(&lower);
    let within = |directory: &str| lower.split('/').rev().skip(1).any(|part| part == directory);
    [".snap", ".snap.new", ".ambr", ".golden", ".approved.txt", ".verified.txt", ".snapshot"]
        .iter()
        .any(|ending| name.ends_with(ending))
        || name.contains(".approved.")
        || name.contains(".verified.")
        || within("__snapshots__")
        || within("__image_snapshots__")
}

/// Returns true for a name that a test runner takes for a test program, wherever it lies.
pub(crate) fn is_test_program_name(name: &str) -> bool {
    let end = extension(name);
    let Some((stem, _)) = name.rsplit_once('.') else { return false };
    let lower = stem.to_ascii_lowercase();
    if TEST_CLASS_EXTENSIONS.contains(&end) {
        let class = stem.rsplit_once('.').map_or(stem, |(_, last)| last);
        return TEST_CLASS_ENDINGS.iter().any(|ending| class.ends_with(ending))
            || class.strip_prefix("Test").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    }
    if !PROGRAM_EXTENSIONS.contains(&end) {
        return false;
    }
    end == "bats"
        || end == "t"
        || matches!(lower.as_str(), "test" | "tests")
        || ["test_", "test-", "tests_"].iter().any(|beginning| lower.starts_with(beginning))
        || ["_test", "_tests", "_spec", "-test", "-tests", "-spec", ".test", ".tests", ".spec", ".e2e", ".cy"]
            .iter()
            .any(|ending| lower.ends_with(ending))
        || lower.ends_with("_suite") && end == "erl"
}

/// Returns true for the directory of a test project beside the projects that it tests, as in .NET:
/// `Shop.Tests`.
fn is_test_project(directory: &str) -> bool {
    [".tests", ".test", ".unittests", ".integrationtests"]
        .iter()
        .any(|ending| directory.strip_suffix(ending).is_some_and(|project| !project.is_empty()))
}

/// Returns the last component of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_follow_the_conventions_of_each_ecosystem() {
        for path in [
            // pytest, unittest, Django
            "test_shop.py",
            "shop/test_basket.py",
            "shop/basket_test.py",
            "shop/tests.py",
            "tests/conftest.py",
            "conftest.py",
            "tests/data/orders.json",
            // Cargo
            "tests/cli.rs",
            "tests/common/mod.rs",
            "src/parser/tests.rs",
            "crates/a/tests/suite/main.rs",
            // Go
            "pkg/basket_test.go",
            "pkg/testdata/in.golden",
            // Jest, Vitest, Mocha, Playwright, Cypress
            "src/basket.test.ts",
            "src/basket.spec.tsx",
            "src/__tests__/basket.js",
            "src/__snapshots__/basket.test.js.snap",
            "test/basket.js",
            "e2e/login.ts",
            "cypress/integration/a.js",
            "basket.cy.ts",
            "basket-test.mjs",
            // JUnit, Spock, ScalaTest
            "src/test/java/shop/Helper.java",
            "BasketTest.java",
            "TestBasket.java",
            "BasketIT.java",
            "BasketSpec.scala",
            "src/test/resources/expected.xml",
            // RSpec, minitest
            "spec/models/basket_spec.rb",
            "spec/spec_helper.rb",
            "spec/support/shared.rb",
            "test/basket_test.rb",
            // PHPUnit
            "tests/Unit/BasketTest.php",
            // .NET
            "Shop.Tests/BasketTests.cs",
            "src/Shop.Tests/Builders.cs",
            // Elixir
            "test/basket_test.exs",
            "apps/shop/test/test_helper.exs",
            // C and C++
            "tests/test_basket.c",
            "basket_test.cc",
            "test-fs.c",
            // Shell and Perl
            "basket.bats",
            "t/basket.t",
        ] {
            assert!(is_test_file(path), "{path}");
        }
    }

    #[test]
    fn product_files_are_no_test_files() {
        for path in [
            "src/attest.py",
            "src/latest.ts",
            "src/contest.go",
            "testing.py",
            "src/testing/mod.rs",
            "Contest.java",
            "Tester.java",
            "Testament.cs",
            "Latest.cs",
            "src/main/java/shop/Basket.java",
            "spec/openapi.yaml",
            "specs/basket.md",
            "docs/test_plan.md",
            "src/inspect.rb",
            "lib/spectrum.rb",
            "package.json",
            "README.md",
            "test",
            "src/protest/a.rs",
            "",
        ] {
            assert!(!is_test_file(path), "{path}");
        }
    }

    #[test]
    fn test_configuration_follows_the_conventions_of_each_ecosystem() {
        for path in [
            "pytest.ini",
            "tox.ini",
            "noxfile.py",
            "setup.cfg",
            "pyproject.toml",
            "tests/conftest.py",
            ".coveragerc",
            "package.json",
            "web/package.json",
            "jest.config.mjs",
            "vitest.config.ts",
            ".mocharc.cjs",
            "playwright.config.ts",
            ".nycrc.json",
            "Cargo.toml",
            ".config/nextest.toml",
            "pom.xml",
            "build.gradle.kts",
            ".rspec",
            "Rakefile",
            "phpunit.xml.dist",
            "composer.json",
            "Shop.Tests/Shop.Tests.csproj",
            "local.runsettings",
            "mix.exs",
            "Makefile",
            "GNUmakefile",
            "rules.mk",
            "CMakeLists.txt",
            "meson.build",
            "justfile",
            "Taskfile.yml",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
        ] {
            assert!(is_test_configuration(path), "{path}");
        }
        for path in [
            "src/package.rs",
            "src/lib.rs",
            "docs/makefile.md",
            "jest.md",
            "tests/cli.rs",
            ".github/CODEOWNERS",
            "src/.github/workflows/ci.yml",
            "tsconfig.json",
            "",
        ] {
            assert!(!is_test_configuration(path), "{path}");
        }
    }

    #[test]
    fn snapshots_are_told_from_other_files() {
        for path in ["a/__snapshots__/x.txt", "tests/snapshots/a.snap", "out.approved.json", "t.golden"] {
            assert!(is_snapshot(path), "{path}");
        }
        for path in ["src/snapshot.rs", "snapshots/a.rs", "golden.txt", "approved.txt"] {
            assert!(!is_snapshot(path), "{path}");
        }
    }
}
