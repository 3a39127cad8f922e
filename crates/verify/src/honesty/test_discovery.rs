//! The names by which test runners find files.

use journeyman_syntax::language::Language;

use crate::test_files::is_test_program_name;

/// Returns true if the usual runner of the language takes tests from a file of this path.
pub(super) fn is_discovered_test_file(path: &str, language: Option<Language>) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let within = |names: &[&str]| directories.split('/').any(|part| names.contains(&part));
    match language {
        // Custom runners are programs; everything else of pytest and unittest goes by names.
        Some(Language::Python) => {
            is_test_program_name(name) || matches!(name, "run.py" | "runtests.py") || name.starts_with("test")
        }
        Some(Language::Go | Language::Ruby) => is_test_program_name(name),
        Some(Language::JavaScript | Language::TypeScript | Language::Tsx) => {
            is_test_program_name(name) || within(&["test", "tests", "__tests__", "spec", "specs", "e2e"])
        }
        Some(Language::Php) => is_test_program_name(name) || !name.starts_with(char::is_uppercase),
        _ => true,
    }
}
