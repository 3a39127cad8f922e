//! Imports of languages that name packages, namespaces or headers.

use tree_sitter::Node;

use super::collector::{Import, ImportCollector, string_literal, without_blanks};

/// Adds `import name "path"`.
pub(super) fn add_go_import(node: Node<'_>, into: &mut ImportCollector<'_>) {
    if let Some(path) = string_literal(into.field_text(node, "path")) {
        let relative = path.starts_with("./") || path.starts_with("../");
        into.push_import(node, Import { target: path.to_owned(), relative, ..Import::default() });
    }
}

/// Returns the path between the keywords and the semicolon of `import static a.b.C.*;`.
fn dotted_path(written: &str, words: &[&str]) -> String {
    let mut rest = written.trim().trim_end_matches(';').trim_end();
    for word in words {
        if let Some(after) = rest.strip_prefix(word).filter(|after| after.starts_with(char::is_whitespace)) {
            rest = after.trim_start();
        }
    }
    rest.to_owned()
}

/// Adds a path whose last part is the imported name: `a.b.C` is `C` of `a.b`.
fn add_path_import(node: Node<'_>, path: &str, into: &mut ImportCollector<'_>) {
    match path.rsplit_once('.') {
        Some((package, name)) => into.add_package(node, package, vec![name.to_owned()]),
        None => into.add_package(node, path, Vec::new()),
    }
}

/// Adds `import static a.b.C.d;`: the parts after the first capitalised one are members of a type.
pub(super) fn add_java_import(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let path = without_blanks(&dotted_path(into.text_of(node), &["import", "static", "module"]));
    add_path_import(node, &path, into);
}

/// Adds `import a.b.c as d`.
pub(super) fn add_kotlin_import(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = dotted_path(into.text_of(node), &["import"]);
    let path = written.split_whitespace().next().unwrap_or_default().replace('`', "");
    add_path_import(node, &path, into);
}

/// Adds `import a.b.{c, d => e}, f.g._`.
pub(super) fn add_scala_imports(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = dotted_path(into.text_of(node), &["import"]);
    let mut rest = written.as_str();
    while !rest.is_empty() {
        let open = rest.find('{');
        let comma = rest.find(',').unwrap_or(rest.len());
        match open.filter(|open| *open < comma) {
            Some(open) => {
                let end = rest.find('}').unwrap_or(rest.len());
                let names = rest
                    .get(open + 1..end)
                    .unwrap_or_default()
                    .split(',')
                    .filter_map(|name| name.split_whitespace().next())
                    .map(|name| if matches!(name, "_" | "given") { "*" } else { name })
                    .map(str::to_owned)
                    .collect();
                let package = without_blanks(rest.get(..open).unwrap_or_default());
                into.add_package(node, package.trim_end_matches('.'), names);
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            None => {
                let one = rest.get(..comma).unwrap_or_default();
                let path = without_blanks(one.split(" as ").next().unwrap_or_default());
                match path.strip_suffix("._") {
                    Some(package) => into.add_package(node, package, vec!["*".to_owned()]),
                    None => add_path_import(node, &path, into),
                }
                rest = rest.get(comma + 1..).unwrap_or_default();
            }
        }
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
}

/// Adds `using A.B;`, `using static A.B;`, `using X = A.B;`.
pub(super) fn add_csharp_using(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = dotted_path(into.text_of(node), &["global", "using", "static", "unsafe"]);
    let path = written.rsplit('=').next().unwrap_or_default();
    into.add_package(node, without_blanks(path).trim_start_matches("global::"), Vec::new());
}

/// Adds `@testable import struct A.B`.
pub(super) fn add_swift_import(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let path = written.split_whitespace().last().unwrap_or_default();
    match path.split_once('.') {
        Some((module, name)) => into.add_package(node, module, vec![name.to_owned()]),
        None => into.add_package(node, path, Vec::new()),
    }
}

/// Adds `#include "x"` and `#include <x>`, and `#import` alike.
pub(super) fn add_include(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node).trim_start_matches(['#', ' ', '\t']);
    let Some(rest) = written
        .strip_prefix("include_next")
        .or_else(|| written.strip_prefix("include"))
        .or_else(|| written.strip_prefix("import"))
    else {
        return;
    };
    let rest = rest.trim_start();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split(['"', '\n']).next());
    let angled = rest.strip_prefix('<').and_then(|rest| rest.split(['>', '\n']).next());
    match (quoted, angled) {
        (Some(path), _) => into.add_file(node, path.trim()),
        (_, Some(path)) => into.add_package(node, path.trim(), Vec::new()),
        _ => {}
    }
}
