//! Folders whose files see each other's names without an import.

use journeyman_syntax::language::Language;

use super::resolve::last_part;

/// Name of the folder with the source sets of a module in languages of the JVM.
const JVM_ROOTS: [&str; 1] = ["src"];
/// Names of folders with a source set where none is beneath `src`.
const OLD_JVM_ROOTS: [&str; 3] = ["test", "tests", "app"];
/// Names of folders with the code of one language or purpose beneath such a root.
const JVM_SETS: [&str; 6] = ["java", "kotlin", "scala", "groovy", "main", "test"];
/// Names of folders with the targets of a Swift package.
const SWIFT_ROOTS: [&str; 2] = ["Sources", "Tests"];
/// Endings of the names of targets with the tests of another one.
const SWIFT_TEST_ENDINGS: [&str; 2] = ["UITests", "Tests"];

/// Returns true if the files of one folder see each other's names without an import.
pub(super) fn is_folder_a_scope(language: Option<Language>) -> bool {
    !matches!(
        language,
        None | Some(
            Language::Rust | Language::Python | Language::JavaScript | Language::TypeScript | Language::Tsx
        )
    )
}

/// Returns true if the files of a folder see the names of another folder without an import: those
/// of the same package under another root, of an enclosing namespace, or of the same target.
pub(super) fn sees_other_folder(language: Language, folder: &str, other: &str) -> bool {
    match language {
        Language::Java | Language::Kotlin | Language::Scala => {
            // Most folders differ in their names already.
            last_part(folder) == last_part(other)
                && jvm_package(folder).is_some_and(|package| jvm_package(other) == Some(package))
        }
        Language::CSharp => is_enclosing_namespace(other, folder),
        Language::Swift => swift_target(folder).is_some_and(|target| swift_target(other) == Some(target)),
        _ => false,
    }
}

/// Returns the package of a folder, as a path: `shop/till` of `src/test/java/shop/till`. `None` for
/// the package without a name.
fn jvm_package(folder: &str) -> Option<&str> {
    let source = path_after(folder, &JVM_ROOTS).or_else(|| path_after(folder, &OLD_JVM_ROOTS))?;
    // `main/java`, `androidTest/kotlin`, `java`.
    let (first, inner) = split_first_part(source)?;
    let package = match split_first_part(inner) {
        Some((second, package)) if is_jvm_set(second) => package,
        _ if is_jvm_set(first) => inner,
        _ => source,
    };
    (!package.is_empty()).then_some(package)
}

/// Returns the path after the first part that is one of some names.
fn path_after<'a>(path: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut rest = path;
    while let Some((part, inner)) = split_first_part(rest) {
        if names.contains(&part) {
            return Some(inner);
        }
        rest = inner;
    }
    None
}

/// Returns true for a folder of one language, also of one version of it: `scala-2.13`.
fn is_jvm_set(part: &str) -> bool {
    JVM_SETS.contains(&part.split('-').next().unwrap_or_default())
}

fn split_first_part(path: &str) -> Option<(&str, &str)> {
    (!path.is_empty()).then(|| path.split_once('/').unwrap_or((path, "")))
}

/// Returns true if the namespace of one folder of C# encloses that of another one: a folder above
/// it, or the project `Shop` of `Shop.Tests`.
fn is_enclosing_namespace(outer: &str, folder: &str) -> bool {
    let name = last_part(outer);
    let begins = |part: &str| part.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    !name.is_empty()
        && (folder.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
            || folder.split('/').any(begins))
}

/// Returns the name of the target of a folder of Swift, without the ending of its tests.
fn swift_target(folder: &str) -> Option<&str> {
    let (target, _) = split_first_part(path_after(folder, &SWIFT_ROOTS).unwrap_or(folder))?;
    let code = SWIFT_TEST_ENDINGS.iter().find_map(|ending| target.strip_suffix(ending));
    Some(code.filter(|code| !code.is_empty()).unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_namespaces_and_targets_are_seen_without_an_import() {
        for (language, folder, other, is_seen) in [
            (Language::Java, "src/test/java/shop/till", "src/main/java/shop/till", true),
            (Language::Java, "core/src/test/java/shop", "core/src/main/java/shop", true),
            (Language::Kotlin, "app/src/androidTest/kotlin/shop", "app/src/main/java/shop", true),
            (Language::Scala, "src/test/scala/shop", "src/main/scala-2.13/shop", true),
            (Language::Java, "test/shop", "src/shop", true),
            (Language::Scala, "test/controllers", "app/controllers", true),
            (Language::Java, "src/test/java/shop", "src/main/java/shop/till", false),
            (Language::Java, "src/test/java", "src/main/java", false),
            (Language::CSharp, "tests/Shop.Tests/Till", "src/Shop", true),
            (Language::CSharp, "src/Shop/Till", "src/Shop", true),
            (Language::CSharp, "tests/Shop.Tests", "src/Shop/Till", false),
            (Language::CSharp, "tests/Shops", "src/Shop", false),
            (Language::Swift, "Tests/ShopTests", "Sources/Shop/Till", true),
            (Language::Swift, "Sources/Shop/Door", "Sources/Shop/Till", true),
            (Language::Swift, "ShopTests", "Shop/Till", true),
            (Language::Swift, "Sources/Door", "Sources/Shop", false),
            (Language::Go, "a", "b", false),
        ] {
            assert_eq!(sees_other_folder(language, folder, other), is_seen, "{folder} {other}");
        }
    }
}
