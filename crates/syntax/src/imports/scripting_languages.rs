//! Imports of scripting languages, many of which are calls of known functions.

use tree_sitter::Node;

use super::collector::{Import, ImportCollector, string_literal, without_blanks};

/// Adds `import a.b as c, d` and `from ..a import b`.
pub(super) fn add_python_imports(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let mut cursor = node.walk();
    if node.kind() == "import_statement" {
        for child in node.children_by_field_name("name", &mut cursor) {
            let name = without_blanks(into.text_of(without_alias(child)));
            into.add_package(child, &name, Vec::new());
        }
        return;
    }
    let written = without_blanks(into.field_text(node, "module_name"));
    let target = written.trim_start_matches('.');
    let dots = u32::try_from(written.len() - target.len()).unwrap_or(u32::MAX);
    let mut names: Vec<String> = node
        .children_by_field_name("name", &mut cursor)
        .map(|child| without_blanks(into.text_of(without_alias(child))))
        .collect();
    if names.is_empty() && node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
        names.push("*".to_owned());
    }
    into.push_import(
        node,
        Import { target: target.to_owned(), names, line: 0, up: dots.saturating_sub(1), relative: dots > 0 },
    );
}

/// Returns the imported name without its alias.
fn without_alias(child: Node<'_>) -> Node<'_> {
    match child.kind() {
        "aliased_import" => child.child_by_field_name("name").unwrap_or(child),
        _ => child,
    }
}

/// Adds the modules of JavaScript and TypeScript, in each of their import forms.
pub(super) fn add_javascript_imports(node: Node<'_>, into: &mut ImportCollector<'_>) {
    if node.kind() == "call_expression" {
        let written = into.text_of(node);
        let called =
            ["require(", "import(", "require.resolve("].iter().find_map(|name| written.strip_prefix(name));
        let inside = called.and_then(|rest| rest.strip_suffix(')')).map(str::trim);
        if let Some(target) = inside.and_then(string_literal) {
            add_module_import(node, target, Vec::new(), into);
        }
        return;
    }
    let Some(source) = node.child_by_field_name("source") else { return };
    let Some(target) = string_literal(into.text_of(source)) else { return };
    let mut names = Vec::new();
    let mut cursor = node.walk();
    for clause in node.children(&mut cursor) {
        match clause.kind() {
            "import_clause" | "export_clause" => collect_listed_names(clause, into, &mut names),
            "*" | "namespace_export" => names.push("*".to_owned()),
            _ => {}
        }
    }
    add_module_import(node, target, names, into);
}

/// Collects the names of `a, { b as c }` and `* as d`; a default import is named `default`.
fn collect_listed_names(clause: Node<'_>, into: &ImportCollector<'_>, names: &mut Vec<String>) {
    let mut cursor = clause.walk();
    for child in clause.named_children(&mut cursor) {
        match child.kind() {
            "identifier" => names.push("default".to_owned()),
            "namespace_import" => names.push("*".to_owned()),
            "named_imports" => {
                let mut inner = child.walk();
                for one in child.named_children(&mut inner) {
                    names.push(into.field_text(one, "name").to_owned());
                }
            }
            "export_specifier" => names.push(into.field_text(child, "name").to_owned()),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
}

fn add_module_import(node: Node<'_>, target: &str, names: Vec<String>, into: &mut ImportCollector<'_>) {
    let relative = matches!(target, "." | "..") || target.starts_with("./") || target.starts_with("../");
    into.push_import(node, Import { target: target.to_owned(), names, relative, ..Import::default() });
}

/// Adds `require`, `require_relative`, `load` and `autoload`.
pub(super) fn add_ruby_require(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let word = written.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    if !matches!(word, "require" | "require_relative" | "load" | "autoload") {
        return;
    }
    let Some(arguments) = node.child_by_field_name("arguments") else { return };
    let mut cursor = arguments.walk();
    let last = arguments.named_children(&mut cursor).last();
    let Some(target) = last.and_then(|last| string_literal(into.text_of(last))) else { return };
    let name = match word {
        "autoload" => {
            arguments.named_child(0).map(|name| into.text_of(name).trim_start_matches(':').to_owned())
        }
        _ => None,
    };
    let relative = word == "require_relative" || target.starts_with("./") || target.starts_with("../");
    into.push_import(
        node,
        Import {
            target: target.to_owned(),
            names: name.into_iter().collect(),
            relative,
            ..Import::default()
        },
    );
}

/// Adds `use A\{B, C as D}`, `require __DIR__ . '/x.php'`.
pub(super) fn add_php_imports(node: Node<'_>, into: &mut ImportCollector<'_>) {
    if node.kind() != "namespace_use_declaration" {
        let written = into.text_of(node);
        let rest = written.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_');
        let rest = rest.trim_matches(|c: char| c.is_whitespace() || "();".contains(c));
        let here = rest.strip_prefix("__DIR__").or_else(|| rest.strip_prefix("dirname(__FILE__)"));
        let path = here.map_or(rest, |rest| rest.trim_start().trim_start_matches('.').trim_start());
        if let Some(path) = string_literal(path) {
            into.add_file(node, path.trim_start_matches('/'));
        }
        return;
    }
    let mut cursor = node.walk();
    let mut prefix = String::new();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "namespace_name" => prefix = without_blanks(into.text_of(child)),
            "namespace_use_clause" => add_php_use_clause(child, "", into),
            "namespace_use_group" => {
                let mut inner = child.walk();
                for one in child.named_children(&mut inner) {
                    add_php_use_clause(one, &prefix, into);
                }
            }
            _ => {}
        }
    }
}

/// Adds one name of a `use`; the last part is the class.
fn add_php_use_clause(node: Node<'_>, prefix: &str, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let named = written.split(" as ").next().unwrap_or_default().trim();
    let named = named.strip_prefix("function ").or_else(|| named.strip_prefix("const ")).unwrap_or(named);
    let whole = match prefix {
        "" => named.trim_start_matches('\\').to_owned(),
        _ => format!("{}\\{named}", prefix.trim_matches('\\')),
    };
    into.add_package(node, &whole, Vec::new());
}

/// Adds `require "a.b"` and `dofile("x.lua")`.
pub(super) fn add_lua_require(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let (rest, file) = match (written.strip_prefix("require"), written.strip_prefix("dofile")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return,
    };
    let Some(target) = string_literal(rest.trim_matches(|c: char| c.is_whitespace() || c == '(' || c == ')'))
    else {
        return;
    };
    if file { into.add_file(node, target) } else { into.add_package(node, target, Vec::new()) }
}

/// Adds `source FILE` and `. FILE`, without a prefix that computes the script's own folder.
pub(super) fn add_bash_source(node: Node<'_>, into: &mut ImportCollector<'_>) {
    let written = into.text_of(node);
    let Some(rest) = written.strip_prefix("source ").or_else(|| written.strip_prefix(". ")) else { return };
    let rest = rest.trim();
    let word = match literal_shell_word(rest) {
        Some(inside) => inside,
        None => rest.split_whitespace().next().unwrap_or_default(),
    };
    let word = word.trim_matches('"');
    let path = match word.rfind(['}', ')', '$']) {
        // `"$DIR/x"` and `"$(dirname "$0")/x"`.
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
        into.add_file(node, path);
    }
}

/// Returns the text between the first double quote and the last one.
fn literal_shell_word(written: &str) -> Option<&str> {
    let inner = written.strip_prefix('"').or_else(|| written.strip_prefix('\''))?;
    inner.rfind(['"', '\'']).and_then(|end| inner.get(..end))
}
