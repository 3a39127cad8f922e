//! Imports of a file as written: imports, includes, modules, linked files.
//!
//! Only literal paths count; a path that is computed at run time is unknown. This module has no
//! file system: the index finds the file or package that an import means.

mod markup;
pub(crate) use markup::local_file;
mod named;
mod rust;
mod script;

use tree_sitter::Node;

use crate::language::Language;

/// Maximum imports of one file. Files with more are generated.
pub const MAX_IMPORTS: usize = 20_000;
/// Maximum bytes of an import's target.
const MAX_TARGET: usize = 1_000;
/// Maximum names listed by one import.
const MAX_NAMES: usize = 2_000;

/// An import as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    /// The imported path of modules, file or package, in the form of the language.
    pub target: String,
    /// The imported names, where they are listed; `*` for all.
    pub names: Vec<String>,
    /// The line, 1-based.
    pub line: u32,
    /// Number of directories or modules that a relative import goes up (Python's dots less one,
    /// `super`).
    pub up: u32,
    /// True if the import is relative to the file's own position.
    pub relative: bool,
}

/// Returns true if a node of this kind may be an import.
pub(crate) fn may_import(language: Language, kind: &str) -> bool {
    let kinds: &[&str] = match language {
        Language::Rust => &["use_declaration", "mod_item", "extern_crate_declaration", "macro_invocation"],
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
        ],
        Language::Lua => &["function_call"],
        Language::Bash => &["command"],
        Language::Css => &["import_statement"],
        Language::Html => &["attribute"],
        _ => &[],
    };
    kinds.contains(&kind)
}

/// Collects the imports of a text.
pub(crate) struct ImportCollector<'a> {
    text: &'a str,
    out: &'a mut Vec<Import>,
}

impl<'a> ImportCollector<'a> {
    fn text_of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field_text(&self, node: Node<'_>, name: &str) -> &'a str {
        node.child_by_field_name(name).map_or("", |child| self.text_of(child))
    }

    /// Adds an import, unless there are too many or its target is empty.
    fn add(&mut self, node: Node<'_>, mut import: Import) {
        let nothing = import.target.is_empty() && !import.relative;
        if nothing || import.target.len() > MAX_TARGET || self.out.len() >= MAX_IMPORTS {
            return;
        }
        import.names.truncate(MAX_NAMES);
        import.line = u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1);
        self.out.push(import);
    }

    /// Adds a file whose path is relative to the importing file.
    fn add_file(&mut self, node: Node<'_>, target: &str) {
        self.add(node, Import { target: target.to_owned(), relative: true, ..Import::default() });
    }

    /// Adds a package, a module or a file that is searched for in known directories.
    fn add_package(&mut self, node: Node<'_>, target: &str, names: Vec<String>) {
        self.add(node, Import { target: target.to_owned(), names, ..Import::default() });
    }
}

/// Adds the imports of a node, if it has any.
pub(crate) fn collect(
    language: Language,
    node: Node<'_>,
    ancestors: &[Node<'_>],
    text: &str,
    out: &mut Vec<Import>,
) {
    let mut into = ImportCollector { text, out };
    match language {
        Language::Rust => rust::collect(node, ancestors, &mut into),
        Language::Python => script::python(node, &mut into),
        Language::JavaScript | Language::TypeScript | Language::Tsx => script::javascript(node, &mut into),
        Language::Ruby => script::ruby(node, &mut into),
        Language::Php => script::php(node, &mut into),
        Language::Lua => script::lua(node, &mut into),
        Language::Bash => script::bash(node, &mut into),
        Language::Go => named::go(node, &mut into),
        Language::Java => named::java(node, &mut into),
        Language::Kotlin => named::kotlin(node, &mut into),
        Language::Scala => named::scala(node, &mut into),
        Language::CSharp => named::csharp(node, &mut into),
        Language::Swift => named::swift(node, &mut into),
        Language::C | Language::Cpp => named::include(node, &mut into),
        Language::Css => markup::css(node, &mut into),
        Language::Html => markup::html(node, &mut into),
        _ => {}
    }
}

/// Returns the content of a string literal without its quotes, if it is one line without
/// interpolation.
fn string_literal(written: &str) -> Option<&str> {
    let quote = written.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
    let plain =
        !inner.is_empty() && !inner.contains(['\n', quote]) && !inner.contains("${") && !inner.contains("#{");
    plain.then_some(inner)
}

/// Joins words without the blanks and comments between them: `a . b` is `a.b`.
fn without_blanks(written: &str) -> String {
    written.split_whitespace().collect()
}
