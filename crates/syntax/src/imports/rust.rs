//! Rust: `use` with its tree taken apart, `mod`, `extern crate` and files that macros take in.

use tree_sitter::Node;

use super::{Import, Into};

/// How deep lists of a `use` may lie in one another.
const MAX_NESTING: usize = 20;
/// Bytes before a `mod` that its attributes may take.
const MAX_ATTRIBUTES: usize = 300;

/// What a node brings in. Modules that are written out in the file are steps downwards from the file's own place.
pub(super) fn collect(node: Node<'_>, ancestors: &[Node<'_>], into: &mut Into<'_>) {
    match node.kind() {
        "use_declaration" => {
            if let Some(tree) = node.child_by_field_name("argument") {
                let inner = inner_modules(ancestors, into);
                tree_of(tree, "", &inner, 0, into);
            }
        }
        "mod_item" if node.child_by_field_name("body").is_none() => module(node, ancestors, into),
        "extern_crate_declaration" => {
            let name = into.field(node, "name");
            into.known(node, name, Vec::new());
        }
        "macro_invocation" => included(node, into),
        _ => {}
    }
}

/// Names of the modules around a node that are written out in the file, from the outside in.
fn inner_modules(ancestors: &[Node<'_>], into: &Into<'_>) -> Vec<String> {
    ancestors
        .iter()
        .filter(|node| node.kind() == "mod_item")
        .map(|node| into.field(*node, "name").to_owned())
        .collect()
}

/// `mod name;`, with the file that an attribute names.
fn module(node: Node<'_>, ancestors: &[Node<'_>], into: &mut Into<'_>) {
    let name = into.field(node, "name").trim_start_matches("r#");
    // Looking at what is beside a node costs as much as there is: only where an attribute may be.
    let near = into.text.ceil_char_boundary(node.start_byte().saturating_sub(MAX_ATTRIBUTES));
    let named = into.text.get(near..node.start_byte()).is_some_and(|near| near.contains("path"));
    let mut before = if named { node.prev_sibling() } else { None };
    while let Some(attribute) =
        before.filter(|before| matches!(before.kind(), "attribute_item" | "line_comment"))
    {
        let written = into.of(attribute);
        if let Some(path) = written
            .strip_prefix("#[path")
            .and_then(|rest| rest.trim_start().strip_prefix('='))
            .and_then(|rest| rest.trim().strip_prefix('"'))
            .and_then(|rest| rest.split('"').next())
        {
            into.file(node, &format!("./{}", path.trim_start_matches("./")));
            return;
        }
        before = attribute.prev_sibling();
    }
    let mut target = inner_modules(ancestors, into);
    target.push(name.to_owned());
    into.file(node, &target.join("::"));
}

/// `include!("x")` and its like.
fn included(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let Some(rest) = written.strip_prefix("include") else { return };
    let rest = rest.trim_start_matches("_str").trim_start_matches("_bytes");
    let inside = rest.strip_prefix('!').map(|rest| rest.trim_matches(|c: char| "()[]{}, \n\t".contains(c)));
    if let Some(path) = inside.and_then(super::literal) {
        into.file(node, &format!("./{}", path.trim_start_matches("./")));
    }
}

/// One part of a `use`: what is listed in one place is one import.
fn tree_of(node: Node<'_>, prefix: &str, inner: &[String], depth: usize, into: &mut Into<'_>) {
    let path = |node: Option<Node<'_>>, into: &Into<'_>| {
        let own = node.map(|node| super::joined(into.of(node))).unwrap_or_default();
        join(prefix, &own)
    };
    if depth > MAX_NESTING {
        return;
    }
    match node.kind() {
        "use_list" => list(node, prefix, inner, depth, into),
        "scoped_use_list" => {
            let prefix = path(node.child_by_field_name("path"), into);
            if let Some(inside) = node.child_by_field_name("list") {
                list(inside, &prefix, inner, depth + 1, into);
            }
        }
        "use_wildcard" => {
            let target = path(node.named_child(0), into);
            add(node, &target, vec!["*".to_owned()], inner, into);
        }
        "use_as_clause" => {
            let whole = path(node.child_by_field_name("path"), into);
            leaf(node, &whole, inner, into);
        }
        _ => {
            let whole = path(Some(node), into);
            leaf(node, &whole, inner, into);
        }
    }
}

/// A list: its plain names together, what goes deeper each for itself.
fn list(node: Node<'_>, prefix: &str, inner: &[String], depth: usize, into: &mut Into<'_>) {
    let mut names = Vec::new();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "line_comment" | "block_comment" => {}
            "self" => names.push("self".to_owned()),
            "use_wildcard" if child.named_child_count() == 0 => names.push("*".to_owned()),
            "identifier" if !prefix.is_empty() => {
                names.push(into.of(child).trim_start_matches("r#").to_owned())
            }
            "use_as_clause"
                if child.child_by_field_name("path").is_some_and(|path| path.kind() == "identifier") =>
            {
                if prefix.is_empty() {
                    tree_of(child, prefix, inner, depth + 1, into);
                } else {
                    names.push(into.field(child, "path").to_owned());
                }
            }
            _ => tree_of(child, prefix, inner, depth + 1, into),
        }
    }
    if !names.is_empty() {
        add(node, prefix, names, inner, into);
    }
}

/// A path whose last part is the name that is brought in.
fn leaf(node: Node<'_>, whole: &str, inner: &[String], into: &mut Into<'_>) {
    match whole.rsplit_once("::") {
        Some((path, name)) if !path.is_empty() => add(node, path, vec![name.to_owned()], inner, into),
        _ => add(node, whole, Vec::new(), inner, into),
    }
}

fn join(prefix: &str, own: &str) -> String {
    match (prefix.is_empty(), own.is_empty()) {
        (true, _) => own.to_owned(),
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}::{own}"),
    }
}

fn add(node: Node<'_>, target: &str, names: Vec<String>, inner: &[String], into: &mut Into<'_>) {
    let mut parts: Vec<&str> = target
        .split("::")
        .map(|part| part.trim_start_matches("r#"))
        .filter(|part| !part.is_empty())
        .collect();
    let relative = matches!(parts.first(), Some(&("self" | "super")));
    let mut inner = inner;
    let mut up = 0;
    if relative {
        while let Some(step @ ("self" | "super")) = parts.first().copied() {
            parts.remove(0);
            if step == "super" {
                match inner.split_last() {
                    Some((_, outer)) => inner = outer,
                    None => up += 1,
                }
            }
        }
        parts.splice(0..0, inner.iter().map(String::as_str));
    }
    into.add(node, Import { target: parts.join("::"), names, relative, up, line: 0 });
}
