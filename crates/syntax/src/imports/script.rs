//! Scripting languages: much of it is calls of functions whose names are known.

use tree_sitter::Node;

use super::{Import, Into, joined, literal};

/// `import a.b as c, d` and `from ..a import b`.
pub(super) fn python(node: Node<'_>, into: &mut Into<'_>) {
    let mut cursor = node.walk();
    if node.kind() == "import_statement" {
        for child in node.children_by_field_name("name", &mut cursor) {
            let name = joined(into.of(bare(child)));
            into.known(child, &name, Vec::new());
        }
        return;
    }
    let written = joined(into.field(node, "module_name"));
    let target = written.trim_start_matches('.');
    let dots = u32::try_from(written.len() - target.len()).unwrap_or(u32::MAX);
    let mut names: Vec<String> =
        node.children_by_field_name("name", &mut cursor).map(|child| joined(into.of(bare(child)))).collect();
    if names.is_empty() && node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
        names.push("*".to_owned());
    }
    into.add(
        node,
        Import { target: target.to_owned(), names, line: 0, up: dots.saturating_sub(1), relative: dots > 0 },
    );
}

/// What is brought in without the name that it gets here.
fn bare(child: Node<'_>) -> Node<'_> {
    match child.kind() {
        "aliased_import" => child.child_by_field_name("name").unwrap_or(child),
        _ => child,
    }
}

/// Modules of JavaScript and TypeScript, in each of the ways that there are.
pub(super) fn javascript(node: Node<'_>, into: &mut Into<'_>) {
    if node.kind() == "call_expression" {
        let written = into.of(node);
        let called =
            ["require(", "import(", "require.resolve("].iter().find_map(|name| written.strip_prefix(name));
        let inside = called.and_then(|rest| rest.strip_suffix(')')).map(str::trim);
        if let Some(target) = inside.and_then(literal) {
            module(node, target, Vec::new(), into);
        }
        return;
    }
    let Some(source) = node.child_by_field_name("source") else { return };
    let Some(target) = literal(into.of(source)) else { return };
    let mut names = Vec::new();
    let mut cursor = node.walk();
    for clause in node.children(&mut cursor) {
        match clause.kind() {
            "import_clause" | "export_clause" => listed(clause, into, &mut names),
            "*" | "namespace_export" => names.push("*".to_owned()),
            _ => {}
        }
    }
    module(node, target, names, into);
}

/// Names of `a, { b as c }` and `* as d`. What a module gives by default is called `default`.
fn listed(clause: Node<'_>, into: &Into<'_>, names: &mut Vec<String>) {
    let mut cursor = clause.walk();
    for child in clause.named_children(&mut cursor) {
        match child.kind() {
            "identifier" => names.push("default".to_owned()),
            "namespace_import" => names.push("*".to_owned()),
            "named_imports" => {
                let mut inner = child.walk();
                for one in child.named_children(&mut inner) {
                    names.push(into.field(one, "name").to_owned());
                }
            }
            "export_specifier" => names.push(into.field(child, "name").to_owned()),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
}

fn module(node: Node<'_>, target: &str, names: Vec<String>, into: &mut Into<'_>) {
    let relative = matches!(target, "." | "..") || target.starts_with("./") || target.starts_with("../");
    into.add(node, Import { target: target.to_owned(), names, relative, ..Import::default() });
}

/// `require`, `require_relative`, `load` and `autoload`.
pub(super) fn ruby(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let word = written.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    if !matches!(word, "require" | "require_relative" | "load" | "autoload") {
        return;
    }
    let Some(arguments) = node.child_by_field_name("arguments") else { return };
    let mut cursor = arguments.walk();
    let last = arguments.named_children(&mut cursor).last();
    let Some(target) = last.and_then(|last| literal(into.of(last))) else { return };
    let name = match word {
        "autoload" => arguments.named_child(0).map(|name| into.of(name).trim_start_matches(':').to_owned()),
        _ => None,
    };
    let relative = word == "require_relative" || target.starts_with("./") || target.starts_with("../");
    into.add(
        node,
        Import {
            target: target.to_owned(),
            names: name.into_iter().collect(),
            relative,
            ..Import::default()
        },
    );
}

/// `use A\{B, C as D}`, `require __DIR__ . '/x.php'`.
pub(super) fn php(node: Node<'_>, into: &mut Into<'_>) {
    if node.kind() != "namespace_use_declaration" {
        let written = into.of(node);
        let rest = written.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_');
        let rest = rest.trim_matches(|c: char| c.is_whitespace() || "();".contains(c));
        let here = rest.strip_prefix("__DIR__").or_else(|| rest.strip_prefix("dirname(__FILE__)"));
        let path = here.map_or(rest, |rest| rest.trim_start().trim_start_matches('.').trim_start());
        if let Some(path) = literal(path) {
            into.file(node, path.trim_start_matches('/'));
        }
        return;
    }
    let mut cursor = node.walk();
    let mut prefix = String::new();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "namespace_name" => prefix = joined(into.of(child)),
            "namespace_use_clause" => clause(child, "", into),
            "namespace_use_group" => {
                let mut inner = child.walk();
                for one in child.named_children(&mut inner) {
                    clause(one, &prefix, into);
                }
            }
            _ => {}
        }
    }
}

/// One name of a `use`. The class is the last part.
fn clause(node: Node<'_>, prefix: &str, into: &mut Into<'_>) {
    let written = into.of(node);
    let named = written.split(" as ").next().unwrap_or_default().trim();
    let named = named.strip_prefix("function ").or_else(|| named.strip_prefix("const ")).unwrap_or(named);
    let whole = match prefix {
        "" => named.trim_start_matches('\\').to_owned(),
        _ => format!("{}\\{named}", prefix.trim_matches('\\')),
    };
    into.known(node, &whole, Vec::new());
}

/// `require "a.b"` and `dofile("x.lua")`.
pub(super) fn lua(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let (rest, file) = match (written.strip_prefix("require"), written.strip_prefix("dofile")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return,
    };
    let Some(target) = literal(rest.trim_matches(|c: char| c.is_whitespace() || c == '(' || c == ')')) else {
        return;
    };
    if file { into.file(node, target) } else { into.known(node, target, Vec::new()) }
}

/// `source FILE` and `. FILE`. A beginning that is the script's own folder, however it is found out, is left out.
pub(super) fn bash(node: Node<'_>, into: &mut Into<'_>) {
    let written = into.of(node);
    let Some(rest) = written.strip_prefix("source ").or_else(|| written.strip_prefix(". ")) else { return };
    let rest = rest.trim();
    let word = match literal_of_shell(rest) {
        Some(inside) => inside,
        None => rest.split_whitespace().next().unwrap_or_default(),
    };
    let word = word.trim_matches('"');
    let path = match word.rfind(['}', ')', '$']) {
        // "$DIR/x" and "$(dirname "$0")/x".
        Some(_) => {
            let end = word.rfind(['}', ')']).map_or(0, |end| end + 1);
            let rest = word.get(end..).unwrap_or_default();
            let rest =
                if rest.contains('$') { rest.split_once('/').map_or("", |(_, rest)| rest) } else { rest };
            rest.trim_start_matches(['/', '"'])
        }
        None => word,
    };
    if !path.is_empty() && !path.contains(['$', '`', '*']) {
        into.file(node, path);
    }
}

/// What stands between the first double quote and the last one.
fn literal_of_shell(written: &str) -> Option<&str> {
    let inner = written.strip_prefix('"').or_else(|| written.strip_prefix('\''))?;
    inner.rfind(['"', '\'']).and_then(|end| inner.get(..end))
}
