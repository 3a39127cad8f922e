//! Detection of test files that a test runner accepts, by their path.

use journeyman_syntax::language::Language;

use super::purpose::has_test_mark;

/// Names of directories with data, sample programs, benchmarks and checks of types: files there are
/// named as tests without being any.
const DATA_DIRECTORIES: [&str; 18] = [
    "__fixtures__",
    "__mocks__",
    "__snapshots__",
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "fixture",
    "fixtures",
    "mocks",
    "snapshots",
    "stubs",
    "test-data",
    "test_apps",
    "test_data",
    "testdata",
    "type_check",
    "typing",
];
/// Names of directories with helpers of tests, where they lie in a directory of tests. Elsewhere
/// they are parts of the product as any other.
const HELPER_DIRECTORIES: [&str; 9] =
    ["assets", "common", "data", "helper", "helpers", "resources", "support", "util", "utils"];
/// Names of directories in which each program is a test.
const TEST_DIRECTORIES: [&str; 8] =
    ["test", "tests", "__tests__", "spec", "specs", "e2e", "cypress", "testing"];
/// Names of helpers among tests.
const HELPER_NAMES: [&str; 11] = [
    "__init__", "common", "conftest", "fixtures", "helper", "helpers", "mod", "setup", "support", "util",
    "utils",
];

/// Returns true for a test file that a test runner can be given: no helper, data, sample or
/// benchmark beside the tests.
///
/// Runners take files by their names in languages that have a convention; in the others each
/// program in a directory of tests is one.
pub(crate) fn is_test_program(path: &str, language: Language) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = directories.to_ascii_lowercase();
    let within = |names: &[&str]| lower.split('/').any(|part| names.contains(&part));
    // A directory of sample programs may lie below one of tests, and the other way round.
    if within(&DATA_DIRECTORIES) {
        return false;
    }
    let (stem, end) = name.split_once('.').unwrap_or((name, ""));
    let lower_stem = stem.to_ascii_lowercase();
    let is_among_tests = || {
        within(&TEST_DIRECTORIES)
            && !within(&HELPER_DIRECTORIES)
            && !HELPER_NAMES.contains(&lower_stem.as_str())
    };
    let ends = |endings: &[&str]| endings.iter().any(|ending| stem.ends_with(ending));
    match language {
        Language::Python => {
            lower_stem.starts_with("test_")
                || lower_stem.ends_with("_test")
                || matches!(lower_stem.as_str(), "test" | "tests")
        }
        Language::Go => stem.ends_with("_test"),
        Language::Java | Language::Kotlin | Language::Scala | Language::CSharp | Language::Swift => {
            // `UnitTest1` is a template's name.
            let class = stem.trim_end_matches(|c: char| c.is_ascii_digit());
            ["Test", "Tests", "TestCase", "IT", "Spec", "Suite"].iter().any(|ending| class.ends_with(ending))
                || stem.strip_prefix("Test").is_some_and(|rest| rest.starts_with(char::is_uppercase))
        }
        Language::Php => ends(&["Test", "Tests"]),
        Language::Ruby => ends(&["_spec", "_test"]) || stem.starts_with("test_"),
        // A header is no program.
        Language::C | Language::Cpp if name.ends_with(".h") || name.ends_with(".hpp") => false,
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            let is_declaration = || end.split('.').any(|part| part == "d" || part.ends_with("-d"));
            has_test_mark(end) || !is_declaration() && is_among_tests()
        }
        Language::Rust | Language::C | Language::Cpp | Language::Lua | Language::Bash => {
            let is_named = ["test", "tests"].contains(&lower_stem.as_str())
                || ["_test", "_tests", "-test"].iter().any(|ending| lower_stem.ends_with(ending))
                || ["test_", "test-"].iter().any(|beginning| lower_stem.starts_with(beginning));
            is_named && !within(&TEST_DIRECTORIES) || is_among_tests()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_samples_and_data_are_no_tests() {
        let is_test =
            |path: &str| is_test_program(path, Language::from_path(path).unwrap_or_else(|| panic!("{path}")));
        for path in [
            "tests/test_basic.py",
            "shop/tests.py",
            "pkg/x_test.go",
            "src/__tests__/a.ts",
            "test/app.router.js",
            "src/a.spec.tsx",
            "src/user.service.spec.ts",
            "src/utils.test.ts",
            "src/common/format.test.ts",
            "test/res.send.js",
            "pkg/util/text_test.go",
            "tests/utils/test_text.py",
            "src/test/java/shop/data/CartTest.java",
            "src/util/tests.rs",
            "Shop.Tests/UnitTest1.cs",
            "tokio/tests/sync_mutex.rs",
            "src/parser/tests.rs",
            "src/main/java/UserTest.java",
            "tests/Unit/ShopTest.php",
            "spec/models/user_spec.rb",
            "test/test-fs.c",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "tests/conftest.py",
            "tests/test_apps/cliapp/app.py",
            "tests/type_check/typing_route.py",
            "tests/static/config.py",
            "tests/__init__.py",
            "test/fixtures/a.js",
            "test/support/utils.js",
            "test-d/types.test-d.ts",
            "test/types.d.ts",
            "test/types.test-d.ts",
            "tests/common/mod.rs",
            "tests/util.rs",
            "tests/common/test_help.rs",
            "tests/__fixtures__/a.test.js",
            "benches/test_speed.rs",
            "src/test/java/Fixture.java",
            "test/test.hpp",
            "tests/TestCase.php",
            "spec/spec_helper.rb",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
