//! One way through a tree for all that is asked of it.
//!
//! Walking a tree costs a good part of what parsing it cost, and so does a query that is run over all of it. So there is
//! one walk: a table says for each kind of node what it may be, and the language's query is only run on single nodes,
//! those that one of its patterns begins with.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tree_sitter::Node;

use crate::imports::{self, Import};
use crate::language::Language;
use crate::outline::{Kind, MAX_SYMBOLS, is_attribute_kind, is_comment_kind};
use crate::parse::MAX_DEPTH;
use crate::pattern::{Matcher, Patterns, Role};
use crate::references::MAX_REFERENCES;

/// A pattern of the outline's query may begin with it.
const DEFINITION: u8 = 1;
/// A name.
const NAME: u8 = 1 << 1;
/// It may bring something in.
const IMPORT: u8 = 1 << 2;
/// A comment, or an attribute of what follows.
const LEADING: u8 = 1 << 3;
/// Nothing in it is looked at.
const CLOSED: u8 = 1 << 4;
/// It may say who may use others than what it stands at.
const MARK: u8 = 1 << 5;
/// What lies in it counts as lying in what is around it: `#if`, `extern "C"`.
const THIN: u8 = 1 << 6;

/// The kind of nodes that hold what doesn't parse, in every grammar.
const ERROR: u16 = u16::MAX;

/// What is asked of a walk.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// What is defined.
    Symbols,
    /// Names that are used and what is brought in as well.
    All,
}

/// A definition as the query finds it.
pub(crate) struct Found<'tree> {
    pub(crate) kind: Kind,
    pub(crate) node: Node<'tree>,
    pub(crate) name: Node<'tree>,
    pub(crate) parent: Option<Node<'tree>>,
    /// The node with what adds only words to it.
    pub(crate) whole: Node<'tree>,
    /// Which pattern of the query found it: the first one counts.
    pub(crate) pattern: usize,
}

/// A comment or an attribute.
pub(crate) struct Leading {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) column: usize,
    pub(crate) comment: bool,
}

/// A name where it stands.
pub(crate) struct Name {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) row: u32,
}

/// What a walk found, each in the order of the text.
#[derive(Default)]
pub(crate) struct Walked<'tree> {
    pub(crate) found: Vec<Found<'tree>>,
    pub(crate) leading: Vec<Leading>,
    pub(crate) names: Vec<Name>,
    pub(crate) imports: Vec<Import>,
    /// Nodes that may say who may use others.
    pub(crate) marks: Vec<Node<'tree>>,
}

/// What a walk has to know of a language.
struct Table {
    /// By a kind's number.
    flags: Vec<u8>,
    query: Patterns,
    /// By a kind's number, the patterns that begin with it.
    patterns: BTreeMap<u16, Vec<usize>>,
}

/// Tables, by the language's place among all.
static TABLES: [OnceLock<Option<Table>>; Language::ALL.len()] =
    [const { OnceLock::new() }; Language::ALL.len()];

fn table(language: Language) -> Option<&'static Table> {
    let place = TABLES.get(language as usize)?;
    place.get_or_init(|| Table::new(language).ok()).as_ref()
}

/// What a language's query is faulty in, by tree-sitter's judgement too: that knows what a grammar can't give.
pub(crate) fn check(language: Language) -> Result<(), String> {
    let Some(grammar) = language.grammar() else { return Ok(()) };
    crate::memory::prepare();
    let query = tree_sitter::Query::new(&grammar(), language.outline_query());
    query.map_err(|error| error.to_string())?;
    Table::new(language).map(drop)
}

impl Table {
    fn new(language: Language) -> Result<Self, String> {
        let grammar = language.grammar().ok_or("no grammar")?();
        let query = Patterns::read(&grammar, language.outline_query())?;
        let kinds = || 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let mut patterns: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (number, pattern) in query.all().iter().enumerate() {
            let kind = pattern.kind().ok_or("a pattern begins with any kind")?;
            patterns.entry(kind).or_default().push(number);
        }
        let flags = kinds()
            .map(|id| {
                if !grammar.node_kind_is_named(id) {
                    return CLOSED;
                }
                let kind = grammar.node_kind_for_id(id).unwrap_or_default();
                flags(language, kind) | if patterns.contains_key(&id) { DEFINITION } else { 0 }
            })
            .collect();
        Ok(Self { flags, query, patterns })
    }

    fn flags(&self, kind: u16) -> u8 {
        self.flags.get(usize::from(kind)).copied().unwrap_or_default()
    }

    /// Whether what lies in these nodes is where the pattern looks for it.
    fn fits(&self, pattern: usize, ancestors: &[Node<'_>]) -> bool {
        let Some(pattern) = self.query.pattern(pattern) else { return false };
        let places = &pattern.places;
        places.is_empty()
            || places.iter().any(|path| {
                let mut around =
                    ancestors.iter().rev().map(Node::kind_id).filter(|kind| self.flags(*kind) & THIN == 0);
                // Where a text is broken, what is around something isn't told: the outermost kind may be missing.
                let broken = |nth: usize, kind: u16| nth + 1 == path.len() && kind == ERROR;
                path.iter().rev().enumerate().all(|(nth, kinds)| {
                    around.next().is_some_and(|kind| kinds.contains(&kind) || broken(nth, kind))
                })
            })
    }
}

/// What a kind of node may be, but for definitions.
fn flags(language: Language, kind: &str) -> u8 {
    let name = kind.ends_with("identifier") || kind.ends_with("identifier_pattern");
    let unnamed = matches!(
        kind,
        // Labels and operators; and what only holds a name.
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
    let mut flags = if (name && !unnamed) || other { NAME } else { 0 };
    if is_comment_kind(kind) {
        flags |= LEADING | CLOSED;
    } else if is_attribute_kind(kind) {
        flags |= LEADING;
    }
    if imports::may_import(language, kind) {
        flags |= IMPORT;
    }
    let marks = match language {
        Language::Cpp => kind == "access_specifier",
        Language::Ruby => matches!(kind, "identifier" | "call"),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            matches!(kind, "export_specifier" | "export_statement")
        }
        _ => false,
    };
    if marks {
        flags |= MARK;
    }
    if ["preproc_if", "preproc_el", "linkage_specification"].iter().any(|thin| kind.starts_with(thin)) {
        flags |= THIN;
    }
    flags
}

/// Walks a tree. Nothing where parts lie in one another deeper than [`MAX_DEPTH`].
pub(crate) fn walk<'tree>(
    language: Language,
    root: Node<'tree>,
    text: &str,
    wanted: Wanted,
) -> Option<Walked<'tree>> {
    let table = table(language)?;
    let looked_at = match wanted {
        Wanted::Symbols => !(NAME | IMPORT),
        Wanted::All => !0,
    };
    let matcher = Matcher::new(root);
    let mut walk = Walk { language, table, text, matcher, walked: Walked::default() };
    let mut ancestors: Vec<Node<'tree>> = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let flags = table.flags(node.kind_id()) & looked_at;
        if flags & !(THIN | CLOSED) != 0 {
            walk.node(node, flags, &ancestors);
        }
        if flags & CLOSED == 0 && cursor.goto_first_child() {
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
    table: &'a Table,
    text: &'a str,
    matcher: Matcher<'tree>,
    walked: Walked<'tree>,
}

impl<'tree> Walk<'_, 'tree> {
    fn node(&mut self, node: Node<'tree>, flags: u8, ancestors: &[Node<'tree>]) {
        if flags & NAME != 0 && self.walked.names.len() < MAX_REFERENCES {
            let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            self.walked.names.push(Name {
                start: small(node.start_byte()),
                end: small(node.end_byte()),
                row: small(node.start_position().row),
            });
        }
        if flags & DEFINITION != 0 {
            self.definition(node, ancestors);
        }
        if flags & IMPORT != 0 {
            imports::collect(self.language, node, ancestors, self.text, &mut self.walked.imports);
        }
        // Some attributes have others in them.
        let nested = || self.walked.leading.last().is_some_and(|last| node.start_byte() < last.end);
        if flags & LEADING != 0 && !nested() {
            self.walked.leading.push(Leading {
                start: node.start_byte(),
                end: node.end_byte(),
                column: node.start_position().column,
                comment: flags & CLOSED != 0,
            });
        }
        if flags & MARK != 0 && crate::visibility::is_mark(self.language, node, self.text) {
            self.walked.marks.push(node);
        }
    }

    fn definition(&mut self, node: Node<'tree>, ancestors: &[Node<'tree>]) {
        let Self { table, text, matcher, walked: Walked { found: all, .. }, .. } = self;
        let Some(patterns) = table.patterns.get(&node.kind_id()) else { return };
        let mut fitting = patterns.iter().copied().filter(|number| table.fits(*number, ancestors)).peekable();
        if fitting.peek().is_none() {
            return;
        }
        table.query.matches(fitting, node, text, matcher, &mut |pattern, captured| {
            let (mut definition, mut name, mut parent) = (None, None, None);
            for (role, node) in captured {
                match role {
                    Role::Name => name = name.or(Some(*node)),
                    Role::Parent => parent = parent.or(Some(*node)),
                    Role::Definition(kind) => definition = Some((*kind, *node)),
                    Role::Other => {}
                }
            }
            if let (Some((kind, found)), Some(name)) = (definition, name)
                && all.len() < MAX_SYMBOLS
            {
                let whole = if found == node { whole(node, ancestors) } else { found };
                all.push(Found { kind, node: found, name, parent, whole, pattern });
            }
        });
    }
}

/// The node with what of its ancestors adds only words to it.
fn whole<'tree>(node: Node<'tree>, ancestors: &[Node<'tree>]) -> Node<'tree> {
    let mut whole = node;
    for parent in ancestors.iter().rev() {
        if !crate::outline::is_wrapper(*parent, whole) {
            break;
        }
        whole = *parent;
    }
    whole
}
