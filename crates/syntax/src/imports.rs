//! What a file brings in from elsewhere, as it is written: imports, includes, modules, linked files.
//!
//! Only what is written out counts: a path that is put together when the program runs is nobody's to know. What an import
//! means, which file or package, is for others to find out: here is no file system.

mod markup;
pub(crate) use markup::local_file;
mod named;
mod rust;
mod script;

use tree_sitter::Node;

use crate::language::Language;

/// Imports of one file: what has more is generated.
pub const MAX_IMPORTS: usize = 20_000;
/// Bytes of what an import names.
const MAX_TARGET: usize = 1_000;
/// Names that one import lists.
const MAX_NAMES: usize = 2_000;

/// Something that a file brings in from elsewhere, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    /// What is named: a path of modules, a file, a package. Its form is the language's.
    pub target: String,
    /// The names that are brought in, where they are listed; `*` for all.
    pub names: Vec<String>,
    /// The line, counted from 1.
    pub line: u32,
    /// Steps upwards from the file's own place that a relative import begins with (Python's dots less one, `super`).
    pub up: u32,
    /// It is relative to the file's own place.
    pub relative: bool,
}

/// Whether a node of the kind may bring something in.
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

/// Where imports are put.
pub(crate) struct Into<'a> {
    text: &'a str,
    out: &'a mut Vec<Import>,
}

impl<'a> Into<'a> {
    fn of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field(&self, node: Node<'_>, name: &str) -> &'a str {
        node.child_by_field_name(name).map_or("", |child| self.of(child))
    }

    /// Adds one, unless there are too many or it names nothing.
    fn add(&mut self, node: Node<'_>, mut import: Import) {
        let nothing = import.target.is_empty() && !import.relative;
        if nothing || import.target.len() > MAX_TARGET || self.out.len() >= MAX_IMPORTS {
            return;
        }
        import.names.truncate(MAX_NAMES);
        import.line = u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1);
        self.out.push(import);
    }

    /// Adds a file that is named from where the importing one lies.
    fn file(&mut self, node: Node<'_>, target: &str) {
        self.add(node, Import { target: target.to_owned(), relative: true, ..Import::default() });
    }

    /// Adds a package, a module or a file that is looked for in known places.
    fn known(&mut self, node: Node<'_>, target: &str, names: Vec<String>) {
        self.add(node, Import { target: target.to_owned(), names, ..Import::default() });
    }
}

/// Adds what a node brings in, if it does.
pub(crate) fn collect(
    language: Language,
    node: Node<'_>,
    ancestors: &[Node<'_>],
    text: &str,
    out: &mut Vec<Import>,
) {
    let mut into = Into { text, out };
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

/// The content of a literal without what opens and closes it, if it is written out: one line, nothing put in.
fn literal(written: &str) -> Option<&str> {
    let quote = written.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
    let plain =
        !inner.is_empty() && !inner.contains(['\n', quote]) && !inner.contains("${") && !inner.contains("#{");
    plain.then_some(inner)
}

/// Words without the blanks and comments between them: `a . b` is `a.b`.
fn joined(written: &str) -> String {
    written.split_whitespace().collect()
}
