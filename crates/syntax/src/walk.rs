//! A single walk of a syntax tree for everything that is extracted from it.
//!
//! Walking a tree costs a good part of what parsing costs, and so does running a query over all of
//! it. So there is one walk: a table has the flags of each kind of node, and the language's query
//! is only matched against nodes that one of its patterns begins with.

use std::ops::Range;
use std::sync::OnceLock;

use tree_sitter::{Node, QueryCursor};

use crate::imports::{self, Import};
use crate::language::Language;
use crate::node_kinds::{is_attribute_kind, is_comment_kind, is_wrapper};
use crate::outline_query::{CaptureKind, OutlineQuery};
use crate::parse::MAX_DEPTH;
use crate::references::local_names::{self, LocalName};
use crate::references::{MAX_REFERENCES, NameNode, UseKind, kind_by_text_before};
use crate::symbol::{MAX_SYMBOLS, SymbolKind};

/// Flag: a pattern of the outline query may begin with the node.
const DEFINITION_FLAG: u8 = 1;
/// Flag: the node is a name.
const NAME_FLAG: u8 = 1 << 1;
/// Flag: the node may be an import.
const IMPORT_FLAG: u8 = 1 << 2;
/// Flag: the node is a comment, or an attribute of the following definition.
const LEADING_FLAG: u8 = 1 << 3;
/// Flag: the children of the node are not visited.
const OPAQUE_FLAG: u8 = 1 << 4;
/// Flag: the node may set the visibility of other symbols.
const MARKER_FLAG: u8 = 1 << 5;
/// Flag: the children of the node count as children of its parent: `#if`, `extern "C"`.
const TRANSPARENT_FLAG: u8 = 1 << 6;

/// Flag: the names in the node are types.
const TYPE_FLAG: u8 = 1 << 7;

/// The kind of nodes for text that doesn't parse, in every grammar.
const ERROR_KIND: u16 = u16::MAX;

/// The parts that a walk collects.
#[derive(Clone, Copy)]
pub(crate) enum WalkScope {
    /// Definitions only.
    Symbols,
    /// References and imports as well.
    All,
}

/// A definition that the query found.
pub(crate) struct Definition<'tree> {
    pub(crate) kind: SymbolKind,
    pub(crate) node: Node<'tree>,
    pub(crate) name: Node<'tree>,
    pub(crate) parent: Option<Node<'tree>>,
    /// The node with wrappers that only add keywords.
    pub(crate) whole: Node<'tree>,
    /// The number of the matching pattern; the first one counts.
    pub(crate) pattern: usize,
}

/// A comment or an attribute.
pub(crate) struct LeadingNode {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) column: usize,
    pub(crate) comment: bool,
}

/// Results of a walk, each in text order.
#[derive(Default)]
pub(crate) struct WalkResult<'tree> {
    pub(crate) found: Vec<Definition<'tree>>,
    pub(crate) leading: Vec<LeadingNode>,
    pub(crate) names: Vec<NameNode>,
    pub(crate) imports: Vec<Import>,
    /// See [`SyntaxAnalysis`](crate::syntax_analysis::SyntaxAnalysis).
    pub(crate) path_uses: Vec<Import>,
    /// Nodes that may set the visibility of other symbols.
    pub(crate) markers: Vec<Node<'tree>>,
    /// The names in Python's imports.
    pub(crate) imported: Vec<Range<usize>>,
    /// The names that Python's functions bind.
    pub(crate) locals: Vec<LocalName>,
}

/// Everything that a walk needs to know of a language.
struct LanguageTable {
    /// Flags by a kind's number.
    flags: Vec<u8>,
    query: OutlineQuery,
}

/// Tables, in the order of [`Language::ALL`].
static LANGUAGE_TABLES: [OnceLock<Option<LanguageTable>>; Language::ALL.len()] =
    [const { OnceLock::new() }; Language::ALL.len()];

fn language_table(language: Language) -> Option<&'static LanguageTable> {
    let place = LANGUAGE_TABLES.get(language as usize)?;
    place.get_or_init(|| LanguageTable::new(language).ok()).as_ref()
}

/// Checks a language's query.
pub(crate) fn check_query(language: Language) -> Result<(), String> {
    if language.grammar().is_none() { Ok(()) } else { LanguageTable::new(language).map(drop) }
}

impl LanguageTable {
    fn new(language: Language) -> Result<Self, String> {
        let grammar = language.grammar().ok_or("no grammar")?();
        let query = OutlineQuery::compile(&grammar, language.outline_query())?;
        let kinds = 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let flags = kinds
            .map(|id| {
                if !grammar.node_kind_is_named(id) {
                    return OPAQUE_FLAG;
                }
                let kind = grammar.node_kind_for_id(id).unwrap_or_default();
                flags_of_kind(language, kind)
                    | if query.patterns_of(id).is_empty() { 0 } else { DEFINITION_FLAG }
            })
            .collect();
        Ok(Self { flags, query })
    }

    fn flags_of(&self, kind: u16) -> u8 {
        self.flags.get(usize::from(kind)).copied().unwrap_or_default()
    }

    /// Returns true if a pattern allows a node with these ancestors.
    fn allows_ancestors(&self, pattern: usize, ancestors: &[Node<'_>]) -> bool {
        let places = self.query.allowed_ancestors(pattern);
        places.is_empty()
            || places.iter().any(|path| {
                let mut around = ancestors
                    .iter()
                    .rev()
                    .map(Node::kind_id)
                    .filter(|kind| self.flags_of(*kind) & TRANSPARENT_FLAG == 0);
                // In broken code the outermost ancestor may be missing.
                let broken = |nth: usize, kind: u16| nth + 1 == path.len() && kind == ERROR_KIND;
                path.iter().rev().enumerate().all(|(nth, kinds)| {
                    around.next().is_some_and(|kind| kinds.contains(&kind) || broken(nth, kind))
                })
            })
    }
}

/// Returns the flags of a kind of node, except for definitions.
fn flags_of_kind(language: Language, kind: &str) -> u8 {
    let name = kind.ends_with("identifier") || kind.ends_with("identifier_pattern");
    let unnamed = matches!(
        kind,
        // Labels and operators; and nodes that only wrap a name.
        "statement_identifier"
            | "operator_identifier"
            | "qualified_identifier"
            | "scoped_identifier"
            | "scoped_type_identifier"
            | "nested_identifier"
            | "nested_type_identifier"
            | "stable_identifier"
            | "stable_type_identifier"
            | "dotted_identifier"
    );
    let other = match language {
        Language::Ruby => {
            matches!(kind, "constant" | "instance_variable" | "class_variable" | "global_variable")
        }
        Language::Php => kind == "name",
        Language::Bash => matches!(kind, "variable_name" | "command_name"),
        _ => false,
    };
    let mut flags = if (name && !unnamed) || other { NAME_FLAG } else { 0 };
    if is_comment_kind(kind) {
        flags |= LEADING_FLAG | OPAQUE_FLAG;
    } else if is_attribute_kind(kind) {
        flags |= LEADING_FLAG;
    }
    if imports::may_import(language, kind) {
        flags |= IMPORT_FLAG;
    }
    let markers = match language {
        Language::Cpp => kind == "access_specifier",
        Language::Ruby => matches!(kind, "identifier" | "call"),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            matches!(kind, "export_specifier" | "export_statement")
        }
        _ => false,
    };
    if markers {
        flags |= MARKER_FLAG;
    }
    if ["preproc_if", "preproc_el", "linkage_specification"].iter().any(|thin| kind.starts_with(thin)) {
        flags |= TRANSPARENT_FLAG;
    }
    if language == Language::Python && matches!(kind, "type" | "call") {
        flags |= TYPE_FLAG;
    }
    flags
}

/// Walks a tree; `None` if it is deeper than [`MAX_DEPTH`].
pub(crate) fn walk_tree<'tree>(
    language: Language,
    root: Node<'tree>,
    text: &str,
    wanted: WalkScope,
) -> Option<WalkResult<'tree>> {
    let table = language_table(language)?;
    let looked_at = match wanted {
        WalkScope::Symbols => !(NAME_FLAG | IMPORT_FLAG | TYPE_FLAG),
        WalkScope::All => !TYPE_FLAG,
    };
    let mut walk =
        Walk { language, table, text, cursor: OutlineQuery::new_cursor(), walked: WalkResult::default() };
    let mut ancestors: Vec<Node<'tree>> = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let flags = table.flags_of(node.kind_id()) & looked_at;
        if flags & !(TRANSPARENT_FLAG | OPAQUE_FLAG) != 0 {
            walk.visit_node(node, flags, &ancestors);
        }
        if flags & OPAQUE_FLAG == 0 && cursor.goto_first_child() {
            ancestors.push(node);
            if ancestors.len() > MAX_DEPTH {
                return None;
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(walk.walked);
            }
            ancestors.pop();
        }
    }
}

struct Walk<'a, 'tree> {
    language: Language,
    table: &'a LanguageTable,
    text: &'a str,
    cursor: QueryCursor,
    walked: WalkResult<'tree>,
}

impl<'tree> Walk<'_, 'tree> {
    fn visit_node(&mut self, node: Node<'tree>, flags: u8, ancestors: &[Node<'tree>]) {
        if flags & NAME_FLAG != 0 && self.walked.names.len() < MAX_REFERENCES {
            let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let kind = self.kind_of_use(node, ancestors);
            self.walked.names.push(NameNode {
                start: small(node.start_byte()),
                end: small(node.end_byte()),
                row: small(node.start_position().row),
                kind,
            });
        }
        if flags & DEFINITION_FLAG != 0 {
            self.visit_definition(node, ancestors);
        }
        if flags & IMPORT_FLAG != 0 {
            let WalkResult { imports, path_uses, .. } = &mut self.walked;
            imports::collect_imports(self.language, node, ancestors, self.text, imports, path_uses);
        }
        // Some attributes contain others.
        let nested = || self.walked.leading.last().is_some_and(|last| node.start_byte() < last.end);
        if flags & LEADING_FLAG != 0 && !nested() {
            self.walked.leading.push(LeadingNode {
                start: node.start_byte(),
                end: node.end_byte(),
                column: node.start_position().column,
                comment: flags & OPAQUE_FLAG != 0,
            });
        }
        if flags & MARKER_FLAG != 0 && crate::visibility::is_marker(self.language, node, self.text) {
            self.walked.markers.push(node);
        }
    }

    fn kind_of_use(&mut self, name: Node<'_>, ancestors: &[Node<'_>]) -> UseKind {
        let mut around = ancestors.iter().rev().map(|around| (around, self.table.flags_of(around.kind_id())));
        let around = around.find(|(_, flags)| flags & (TYPE_FLAG | DEFINITION_FLAG | IMPORT_FLAG) != 0);
        if self.language == Language::Python {
            let is_import = around.is_some_and(|(_, flags)| flags & IMPORT_FLAG != 0);
            let locals = &mut self.walked.locals;
            if local_names::collect_local_name(name, ancestors, is_import, self.text, locals) {
                return UseKind::Annotation;
            }
            if is_import {
                self.walked.imported.push(name.byte_range());
                return UseKind::Plain;
            }
        }
        let is_annotation = around.is_some_and(|(node, flags)| {
            flags & TYPE_FLAG != 0 && (node.kind() == "type" || is_isinstance_type(*node, name, self.text))
        });
        if is_annotation { UseKind::Annotation } else { kind_by_text_before(self.text, name.start_byte()) }
    }

    fn visit_definition(&mut self, node: Node<'tree>, ancestors: &[Node<'tree>]) {
        let Self { table, text, cursor, walked: WalkResult { found: all, .. }, .. } = self;
        let query = &table.query;
        if !query
            .patterns_of(node.kind_id())
            .iter()
            .any(|pattern| table.allows_ancestors(*pattern, ancestors))
        {
            return;
        }
        query.visit_matches(cursor, node, text, |pattern, captures| {
            if !table.allows_ancestors(pattern, ancestors) {
                return;
            }
            let (mut definition, mut name, mut parent) = (None, None, None);
            for capture in captures {
                match query.capture_kind_of(capture) {
                    CaptureKind::Name => name = name.or(Some(capture.node)),
                    CaptureKind::Parent => parent = parent.or(Some(capture.node)),
                    CaptureKind::Definition(kind) => definition = Some((kind, capture.node)),
                    CaptureKind::Other => {}
                }
            }
            if let (Some((kind, found)), Some(name)) = (definition, name)
                && all.len() < MAX_SYMBOLS
            {
                let whole = if found == node { with_keyword_wrappers(node, ancestors) } else { found };
                all.push(Definition { kind, node: found, name, parent, whole, pattern });
            }
        });
    }
}

/// Returns true for a name in the second argument of Python's `isinstance` and the like.
fn is_isinstance_type(call: Node<'_>, name: Node<'_>, text: &str) -> bool {
    let function = call.child_by_field_name("function").and_then(|function| text.get(function.byte_range()));
    let first = call.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0));
    function.is_some_and(|function| matches!(function, "isinstance" | "issubclass"))
        && first.is_some_and(|first| first.end_byte() <= name.start_byte())
}

/// Returns the node with those ancestors that only add keywords.
fn with_keyword_wrappers<'tree>(node: Node<'tree>, ancestors: &[Node<'tree>]) -> Node<'tree> {
    let mut whole = node;
    for parent in ancestors.iter().rev() {
        if !is_wrapper(*parent, whole) {
            break;
        }
        whole = *parent;
    }
    whole
}
