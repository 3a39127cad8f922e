//! Imports of Rust: `use` trees, `mod`, `extern crate` and files that macros include.

use tree_sitter::Node;

use super::collector::{Import, ImportCollector};
use crate::language::Language;
use crate::parse::parse;

/// Maximum nesting of the lists of a `use`.
const MAX_USE_NESTING: usize = 20;
/// Maximum nesting of macros with imports among their items.
const MAX_MACRO_DEPTH: usize = 3;
/// Maximum bytes before a `mod` that are searched for its attributes.
const MAX_ATTRIBUTE_BYTES: usize = 300;

/// Adds the imports of a node. Inline modules are steps downwards from the file's own position.
pub(super) fn collect_rust_imports(node: Node<'_>, ancestors: &[Node<'_>], into: &mut ImportCollector<'_>) {
    match node.kind() {
        "use_declaration" => {
            if let Some(tree) = node.child_by_field_name("argument") {
                let inner = inner_modules(ancestors, into);
                add_use_tree(tree, "", &inner, 0, into);
            }
        }
        "mod_item" if node.child_by_field_name("body").is_none() => add_module(node, ancestors, into),
        "extern_crate_declaration" => {
            let name = into.field_text(node, "name");
            into.add_package(node, name, Vec::new());
        }
        "macro_invocation" => {
            add_included_file(node, into);
            add_imports_in_macro(node, ancestors, into);
        }
        _ => {}
    }
}

/// Returns the names of the inline modules around a node, from the outside in.
pub(super) fn inner_modules(ancestors: &[Node<'_>], into: &ImportCollector<'_>) -> Vec<String> {
    ancestors
        .iter()
        .filter(|node| node.kind() == "mod_item")
        .map(|node| into.field_text(*node, "name").to_owned())
        .collect()
}

/// Adds `mod name;`, with the file that a `path` attribute names.
fn add_module(node: Node<'_>, ancestors: &[Node<'_>], into: &mut ImportCollector<'_>) {
    let name = into.field_text(node, "name").trim_start_matches("r#");
    // Finding a node's siblings costs as much as there are, so only where an attribute may stand.
    let near = into.text.ceil_char_boundary(node.start_byte().saturating_sub(MAX_ATTRIBUTE_BYTES));
    let named = into.text.get(near..node.start_byte()).is_some_and(|near| near.contains("path"));
    let mut before = if named { node.prev_sibling() } else { None };
    while let Some(attribute) =
        before.filter(|before| matches!(before.kind(), "attribute_item" | "line_comment"))
    {
        let written = into.text_of(attribute);
        if let Some(path) = written
            .strip_prefix("#[path")
            .and_then(|rest| rest.trim_start().strip_prefix('='))
            .and_then(|rest| rest.trim().strip_prefix('"'))
            .and_then(|rest| rest.split('"').next())
        {
            into.add_file(node, &format!("./{}", path.trim_start_matches("./")));
            return;
        }
        before = attribute.prev_sibling();
    }
    let mut target = inner_modules(ancestors, into);
    target.push(name.to_owned());
    into.add_file(node, &target.join("::"));
}

/// Adds `include!("x")` and the like.
fn add_included_file(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let Some(rest) = written.strip_prefix("include") else { return };
    let rest = rest.trim_start_matches("_str").trim_start_matches("_bytes");
    let inside = rest.strip_prefix('!').map(|rest| rest.trim_matches(|c: char| "()[]{}, \n\t".contains(c)));
    if let Some(path) = inside.and_then(super::collector::string_literal) {
        into.add_file(node, &format!("./{}", path.trim_start_matches("./")));
    }
}

/// Adds the imports among the items of a macro at file level: `cfg_rt! { use crate::task; }`. The
/// grammar has tokens there, so the text in the braces is parsed again.
fn add_imports_in_macro(node: Node<'_>, ancestors: &[Node<'_>], into: &mut ImportCollector<'_>) {
    let at_file_level =
        ancestors.iter().all(|outer| matches!(outer.kind(), "source_file" | "expression_statement"));
    let tokens = node.named_child(1).filter(|tokens| at_file_level && tokens.kind() == "token_tree");
    let Some(tokens) = tokens else { return };
    let inside = into.text_of(tokens).strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let begins = |line: &str| ["use ", "pub ", "pub(", "mod "].iter().any(|word| line.starts_with(word));
    let has_imports = |inside: &&str| inside.lines().any(|line| begins(line.trim_start()));
    let Some(inside) = inside.filter(has_imports) else { return };
    if into.macro_depth == MAX_MACRO_DEPTH {
        return;
    }
    let Ok(tree) = parse(Language::Rust, inside) else { return };
    let first_row = into.first_row + tokens.start_position().row;
    let mut items =
        ImportCollector { text: inside, out: &mut *into.out, first_row, macro_depth: into.macro_depth + 1 };
    let mut cursor = tree.root().walk();
    for item in tree.root().named_children(&mut cursor) {
        let item = item.named_child(0).filter(|_| item.kind() == "expression_statement").unwrap_or(item);
        collect_rust_imports(item, &[], &mut items);
    }
}

/// Adds one part of a `use`; the names of one list are one import.
fn add_use_tree(
    node: Node<'_>,
    prefix: &str,
    inner: &[String],
    depth: usize,
    into: &mut ImportCollector<'_>,
) {
    let path = |node: Option<Node<'_>>, into: &ImportCollector<'_>| {
        let own = node.map(|node| super::collector::without_blanks(into.text_of(node))).unwrap_or_default();
        join_path(prefix, &own)
    };
    if depth > MAX_USE_NESTING {
        return;
    }
    match node.kind() {
        "use_list" => add_use_list(node, prefix, inner, depth, into),
        "scoped_use_list" => {
            let prefix = path(node.child_by_field_name("path"), into);
            if let Some(inside) = node.child_by_field_name("list") {
                add_use_list(inside, &prefix, inner, depth + 1, into);
            }
        }
        "use_wildcard" => {
            let target = path(node.named_child(0), into);
            add_import(node, &target, vec!["*".to_owned()], inner, into);
        }
        "use_as_clause" => {
            let whole = path(node.child_by_field_name("path"), into);
            add_use_leaf(node, &whole, inner, into);
        }
        _ => {
            let whole = path(Some(node), into);
            add_use_leaf(node, &whole, inner, into);
        }
    }
}

/// Adds a list: its plain names as one import, each nested path as its own.
fn add_use_list(
    node: Node<'_>,
    prefix: &str,
    inner: &[String],
    depth: usize,
    into: &mut ImportCollector<'_>,
) {
    let mut names = Vec::new();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "line_comment" | "block_comment" => {}
            "self" => names.push("self".to_owned()),
            "use_wildcard" if child.named_child_count() == 0 => names.push("*".to_owned()),
            "identifier" if !prefix.is_empty() => {
                names.push(into.text_of(child).trim_start_matches("r#").to_owned())
            }
            "use_as_clause"
                if child.child_by_field_name("path").is_some_and(|path| path.kind() == "identifier") =>
            {
                if prefix.is_empty() {
                    add_use_tree(child, prefix, inner, depth + 1, into);
                } else {
                    names.push(into.field_text(child, "path").to_owned());
                }
            }
            _ => add_use_tree(child, prefix, inner, depth + 1, into),
        }
    }
    if !names.is_empty() {
        add_import(node, prefix, names, inner, into);
    }
}

/// Adds a path whose last part is the imported name.
fn add_use_leaf(node: Node<'_>, whole: &str, inner: &[String], into: &mut ImportCollector<'_>) {
    match whole.rsplit_once("::") {
        Some((path, name)) if !path.is_empty() => add_import(node, path, vec![name.to_owned()], inner, into),
        _ => add_import(node, whole, Vec::new(), inner, into),
    }
}

fn join_path(prefix: &str, own: &str) -> String {
    match (prefix.is_empty(), own.is_empty()) {
        (true, _) => own.to_owned(),
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}::{own}"),
    }
}

pub(super) fn add_import(
    node: Node<'_>,
    target: &str,
    names: Vec<String>,
    inner: &[String],
    into: &mut ImportCollector<'_>,
) {
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
    into.push_import(node, Import { target: parts.join("::"), names, relative, up, line: 0 });
}
