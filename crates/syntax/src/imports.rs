//! Imports of a file as written: imports, includes, modules, linked files.
//!
//! Only literal paths count; a path that is computed at run time is unknown. This module has no
//! file system: the index finds the file or package that an import means.

mod collector;
mod markup;
pub(crate) use markup::local_file;
mod package_imports;
mod path_uses;
mod rust;
mod scripting_languages;

use collector::ImportCollector;
pub use collector::{Import, MAX_IMPORTS};
pub(crate) use path_uses::finish_path_uses;

use tree_sitter::Node;

use crate::language::Language;

/// Returns true if a node of this kind may be an import.
pub(crate) fn may_import(language: Language, kind: &str) -> bool {
    let kinds: &[&str] = match language {
        Language::Rust => &[
            "use_declaration",
            "mod_item",
            "extern_crate_declaration",
            "macro_invocation",
            // The first part of a path.
            "identifier",
            "crate",
            "self",
            "super",
        ],
        Language::Python => &["import_statement", "import_from_statement"],
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            &["import_statement", "export_statement", "call_expression", "import_require_clause"]
        }
        Language::Go => &["import_spec"],
        Language::Java | Language::Scala | Language::Swift => &["import_declaration"],
        Language::Kotlin => &["import", "import_header"],
        Language::C | Language::Cpp => &["preproc_include", "preproc_call"],
        Language::CSharp => &["using_directive"],
        Language::Ruby => &["call"],
        Language::Php => &[
            "namespace_use_declaration",
            "require_expression",
            "require_once_expression",
            "include_expression",
            "include_once_expression",
            "qualified_name",
        ],
        Language::Lua => &["function_call"],
        Language::Bash => &["command"],
        Language::Css => &["import_statement"],
        Language::Html => &["attribute"],
        _ => &[],
    };
    kinds.contains(&kind)
}

/// Adds the imports of a node, or its use of a path, if it has any.
pub(crate) fn collect_imports(
    language: Language,
    node: Node<'_>,
    ancestors: &[Node<'_>],
    text: &str,
    out: &mut Vec<Import>,
    path_uses: &mut Vec<Import>,
) {
    let mut paths = ImportCollector { text, out: path_uses, first_row: 0, macro_depth: 0 };
    match node.kind() {
        "identifier" | "crate" | "self" | "super" => {
            return path_uses::add_rust_path(node, ancestors, &mut paths);
        }
        "qualified_name" => return path_uses::add_php_path(node, ancestors, &mut paths),
        _ => {}
    }
    let mut into = ImportCollector { text, out, first_row: 0, macro_depth: 0 };
    match language {
        Language::Rust => rust::collect_rust_imports(node, ancestors, &mut into),
        Language::Python => scripting_languages::add_python_imports(node, &mut into),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            scripting_languages::add_javascript_imports(node, &mut into)
        }
        Language::Ruby => scripting_languages::add_ruby_require(node, &mut into),
        Language::Php => scripting_languages::add_php_imports(node, &mut into),
        Language::Lua => scripting_languages::add_lua_require(node, &mut into),
        Language::Bash => scripting_languages::add_bash_source(node, &mut into),
        Language::Go => package_imports::add_go_import(node, &mut into),
        Language::Java => package_imports::add_java_import(node, &mut into),
        Language::Kotlin => package_imports::add_kotlin_import(node, &mut into),
        Language::Scala => package_imports::add_scala_imports(node, &mut into),
        Language::CSharp => package_imports::add_csharp_using(node, &mut into),
        Language::Swift => package_imports::add_swift_import(node, &mut into),
        Language::C | Language::Cpp => package_imports::add_include(node, &mut into),
        Language::Css => markup::add_css_import(node, &mut into),
        Language::Html => markup::add_html_links(node, &mut into),
        _ => {}
    }
}
