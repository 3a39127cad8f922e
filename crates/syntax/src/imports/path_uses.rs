//! Paths in code that lead to other modules without an import: `shop::till::open()` and
//! `crate::till::Till` in Rust, `\Shop\Till` in PHP.

use std::collections::HashSet;

use tree_sitter::Node;

use super::collector::{Import, ImportCollector, MAX_IMPORTS, without_blanks};
use super::rust::{add_import, inner_modules};

/// Maximum parts of a path that are read.
const MAX_PARTS: usize = 16;
/// First parts of paths that lead out of the project, or into the language.
const OUTSIDE: [&str; 24] = [
    "alloc",
    "bool",
    "char",
    "core",
    "f32",
    "f64",
    "i128",
    "i16",
    "i32",
    "i64",
    "i8",
    "isize",
    "proc_macro",
    "std",
    "str",
    "test",
    "u128",
    "u16",
    "u32",
    "u64",
    "u8",
    "usize",
    "clippy",
    "rustfmt",
];

/// Adds the path that begins with a node, in the form of an import: the modules, and the item.
pub(super) fn add_rust_path(node: Node<'_>, ancestors: &[Node<'_>], into: &mut ImportCollector<'_>) {
    let (before, rest) = into.text.split_at_checked(node.start_byte()).unwrap_or_default();
    // Most names have no path; only the first part of one begins it.
    if !rest.get(node.byte_range().len()..).is_some_and(|after| after.starts_with("::"))
        || before.ends_with("::")
        || before.ends_with('$')
        || into.out.len() >= MAX_IMPORTS
        || ancestors.iter().any(|outer| matches!(outer.kind(), "use_declaration" | "visibility_modifier"))
    {
        return;
    }
    let parts = path_parts(rest);
    let is_item = |part: &&str| part.starts_with(char::is_uppercase);
    let Some(first) = parts.first().filter(|first| !is_item(first) && !OUTSIDE.contains(first)) else {
        return;
    };
    let item = parts.iter().position(is_item).unwrap_or(parts.len() - 1);
    let (Some(name), Some(modules)) = (parts.get(item), parts.get(..item)) else { return };
    if modules.is_empty() || matches!(*name, "self" | "super" | "crate") {
        return;
    }
    let inner = if matches!(*first, "self" | "super") { inner_modules(ancestors, into) } else { Vec::new() };
    add_import(node, &modules.join("::"), vec![(*name).to_owned()], &inner, into);
}

/// Adds a name of PHP with its whole namespace.
pub(super) fn add_php_path(node: Node<'_>, ancestors: &[Node<'_>], into: &mut ImportCollector<'_>) {
    let name = into.text_of(node).strip_prefix('\\').filter(|name| name.contains('\\'));
    if let Some(name) = name.filter(|_| !ancestors.iter().any(|outer| outer.kind() == "namespace_use_clause"))
    {
        into.add_package(node, &without_blanks(name), Vec::new());
    }
}

/// Returns the parts of the path at the beginning of a text, without arguments of types.
fn path_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest.filter(|_| parts.len() < MAX_PARTS) {
        let text = text.strip_prefix("r#").unwrap_or(text);
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let Some((part, after)) = text.split_at_checked(end).filter(|(part, _)| !part.is_empty()) else {
            break;
        };
        parts.push(part);
        rest = after.strip_prefix("::");
    }
    parts
}

/// Returns each path once, without those whose first part is a name that an import brings in: it
/// leads where the import does.
pub(crate) fn finish_path_uses(mut uses: Vec<Import>, imports: &[Import]) -> Vec<Import> {
    let listed = |import: &Import| {
        let last = import.target.rsplit("::").next().filter(|_| import.names.is_empty());
        last.map(str::to_owned).into_iter().chain(import.names.iter().cloned()).collect::<Vec<_>>()
    };
    let brought: HashSet<String> = imports.iter().flat_map(listed).collect();
    let mut seen = HashSet::new();
    uses.retain(|path| {
        let first = path.target.split("::").next().unwrap_or_default();
        (path.relative || !brought.contains(first))
            && seen.insert((path.target.clone(), path.names.clone(), path.relative, path.up))
    });
    uses
}
