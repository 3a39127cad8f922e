//! Imports, and the collector that they are added to.

use tree_sitter::Node;

/// Maximum imports of one file. Files with more are generated.
pub const MAX_IMPORTS: usize = 20_000;
/// Maximum bytes of an import's target.
const MAX_TARGET_BYTES: usize = 1_000;
/// Maximum names listed by one import.
const MAX_NAMES_PER_IMPORT: usize = 2_000;

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

/// Collects the imports of a text.
pub(crate) struct ImportCollector<'a> {
    pub(super) text: &'a str,
    pub(super) out: &'a mut Vec<Import>,
    /// The line of the file, 0-based, in which the text begins.
    pub(super) first_row: usize,
    /// The number of macros that the text lies in.
    pub(super) macro_depth: usize,
}

impl<'a> ImportCollector<'a> {
    pub(super) fn text_of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn field_text(&self, node: Node<'_>, name: &str) -> &'a str {
        node.child_by_field_name(name).map_or("", |child| self.text_of(child))
    }

    /// Adds an import, unless there are too many or its target is empty.
    pub(super) fn push_import(&mut self, node: Node<'_>, mut import: Import) {
        let nothing = import.target.is_empty() && !import.relative;
        if nothing || import.target.len() > MAX_TARGET_BYTES || self.out.len() >= MAX_IMPORTS {
            return;
        }
        import.names.truncate(MAX_NAMES_PER_IMPORT);
        import.line =
            u32::try_from(self.first_row + node.start_position().row).unwrap_or(u32::MAX).saturating_add(1);
        self.out.push(import);
    }

    /// Adds a file whose path is relative to the importing file.
    pub(super) fn add_file(&mut self, node: Node<'_>, target: &str) {
        self.push_import(node, Import { target: target.to_owned(), relative: true, ..Import::default() });
    }

    /// Adds a package, a module or a file that is searched for in known directories.
    pub(super) fn add_package(&mut self, node: Node<'_>, target: &str, names: Vec<String>) {
        self.push_import(node, Import { target: target.to_owned(), names, ..Import::default() });
    }
}

/// Returns the content of a string literal without its quotes, if it is one line without
/// interpolation.
pub(super) fn string_literal(written: &str) -> Option<&str> {
    let quote = written.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
    let plain =
        !inner.is_empty() && !inner.contains(['\n', quote]) && !inner.contains("${") && !inner.contains("#{");
    plain.then_some(inner)
}

/// Joins words without the blanks and comments between them: `a . b` is `a.b`.
pub(super) fn without_blanks(written: &str) -> String {
    written.split_whitespace().collect()
}
