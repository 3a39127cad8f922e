//! What a text defines: its symbols with their names, places and parents.
//!
//! Each language's definitions are named by a query in `queries/`: the capture that is called like a [`Kind`] is the
//! definition, `@name` its name, and `@parent` the type that it belongs to where that doesn't enclose it.
//!
//! ```
//! use journeyman_syntax::{language::Language, outline::outline, parse::parse};
//!
//! # if Language::Rust.is_built_in() {
//! let text = "/// Adds.\nfn add(a: u8) -> u8 {\n    a\n}\n\nimpl Shop {\n    fn open(&self) {}\n}\n";
//! let tree = parse(Language::Rust, text).unwrap();
//! let symbols = outline(&tree, text);
//! assert_eq!(symbols[0].path(), "add");
//! assert_eq!(symbols[0].lines, 1..5);
//! assert_eq!(symbols[0].signature, "fn add(a: u8) -> u8");
//! assert_eq!(symbols[2].path(), "Shop.open");
//! # }
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use tree_sitter::{Node, Query, QueryCursor, StreamingIterator as _};

use crate::language::Language;
use crate::parse::Tree;

/// Symbols of one text: what has more is generated.
pub const MAX_SYMBOLS: usize = 50_000;
/// Bytes of a signature: it is shown on a line or two.
pub const MAX_SIGNATURE: usize = 240;
/// Bytes of a name. Longer ones are keys and selectors that nobody refers to.
const MAX_NAME: usize = 200;
/// Matches that a query may have in the making at once.
const MAX_MATCHES: u32 = 1024;

/// What a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A function that belongs to no type.
    Function,
    /// A function that belongs to a type.
    Method,
    /// A method that makes a value.
    Constructor,
    /// A class, a record or an object.
    Class,
    /// A struct or a union.
    Struct,
    /// An enumeration.
    Enum,
    /// One of an enumeration's values.
    Variant,
    /// An interface or a protocol.
    Interface,
    /// A trait.
    Trait,
    /// What is implemented for a type: the name is the type's.
    Impl,
    /// A module or a namespace.
    Module,
    /// A name for a type.
    Type,
    /// A constant.
    Constant,
    /// A variable of the whole text.
    Variable,
    /// A field of a type.
    Field,
    /// A property with code of its own.
    Property,
    /// A macro.
    Macro,
    /// A key of a document.
    Key,
    /// A table of a document.
    Table,
    /// An element with an id.
    Element,
    /// A rule of a style sheet.
    Rule,
}

impl Kind {
    const NAMES: &[(&str, Self)] = &[
        ("function", Self::Function),
        ("method", Self::Method),
        ("constructor", Self::Constructor),
        ("class", Self::Class),
        ("struct", Self::Struct),
        ("enum", Self::Enum),
        ("variant", Self::Variant),
        ("interface", Self::Interface),
        ("trait", Self::Trait),
        ("impl", Self::Impl),
        ("module", Self::Module),
        ("type", Self::Type),
        ("constant", Self::Constant),
        ("variable", Self::Variable),
        ("field", Self::Field),
        ("property", Self::Property),
        ("macro", Self::Macro),
        ("key", Self::Key),
        ("table", Self::Table),
        ("element", Self::Element),
        ("rule", Self::Rule),
    ];

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    fn of(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether what is defined in it belongs to it.
    fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Struct | Self::Enum | Self::Interface | Self::Trait | Self::Impl)
    }

    /// Whether names that are defined in it are seen from outside at all.
    fn hides(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor)
    }
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// What it is.
    pub kind: Kind,
    /// Its name as it is written, without quotes.
    pub name: String,
    /// Names of what it lies in or belongs to, from the outside in.
    pub parents: Vec<String>,
    /// Its bytes, with its doc comment, attributes, decorators and `export`, without the line break after it.
    pub full: Range<usize>,
    /// Its bytes without the comments and attributes that stand before it.
    pub definition: Range<usize>,
    /// The bytes of its name.
    pub name_range: Range<usize>,
    /// The 1-based lines of `full`, up to the first line after it.
    pub lines: Range<u32>,
    /// Its beginning up to its body, on one line.
    pub signature: String,
    /// It lies in a function.
    pub local: bool,
    /// Where in the outline the symbol is that it lies in.
    pub inside: Option<usize>,
}

impl Symbol {
    /// Names of its parents and its own, with dots between them.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = self.parents.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path + &self.name
    }
}

thread_local! {
    /// Compiled queries, which takes milliseconds for some grammars.
    static QUERIES: RefCell<BTreeMap<Language, Option<Rc<Query>>>> = const { RefCell::new(BTreeMap::new()) };
}

fn query(language: Language) -> Option<Rc<Query>> {
    QUERIES.with(|queries| {
        let mut queries = queries.try_borrow_mut().ok()?;
        let made = || Query::new(&language.grammar()?(), language.outline_query()).ok().map(Rc::new);
        queries.entry(language).or_insert_with(made).clone()
    })
}

/// What a language's query is faulty in, for tests.
///
/// # Errors
/// The fault in words.
#[doc(hidden)]
pub fn check_query(language: Language) -> Result<(), String> {
    let Some(grammar) = language.grammar() else { return Ok(()) };
    let query = Query::new(&grammar(), language.outline_query()).map_err(|error| error.to_string())?;
    let known = |name: &&&str| {
        Kind::of(name).is_none() && **name != "name" && **name != "parent" && !name.starts_with('_')
    };
    match query.capture_names().iter().find(known) {
        Some(name) => Err(format!("no kind is called {name}")),
        None => Ok(()),
    }
}

/// A definition as the query finds it.
struct Found<'tree> {
    kind: Kind,
    node: Node<'tree>,
    name: Node<'tree>,
    parent: Option<Node<'tree>>,
    /// Which pattern of the query found it: the first one counts.
    pattern: usize,
}

/// A text's symbols, in the order of the text, outer ones before inner ones. What of a broken text parses is there.
#[must_use]
pub fn outline(tree: &Tree, text: &str) -> Vec<Symbol> {
    let Some(query) = query(tree.language()) else { return Vec::new() };
    let mut found = definitions(&query, tree, text);
    found.sort_by_key(|found| {
        (found.node.start_byte(), std::cmp::Reverse(found.node.end_byte()), found.pattern)
    });
    found.dedup_by_key(|found| (found.node.id(), found.name.id()));
    let starts = line_starts(text);
    let mut symbols: Vec<Symbol> = Vec::with_capacity(found.len());
    let mut open: Vec<usize> = Vec::new();
    for one in &found {
        let end = one.node.end_byte();
        while open.last().and_then(|at| symbols.get(*at)).is_some_and(|outer| outer.definition.end < end) {
            open.pop();
        }
        let inside = open.last().copied();
        let outer = inside.and_then(|at| symbols.get(at));
        if let Some(symbol) = symbol(one, outer, inside, text, &starts) {
            open.push(symbols.len());
            symbols.push(symbol);
        }
    }
    symbols
}

fn definitions<'tree>(query: &Query, tree: &'tree Tree, text: &str) -> Vec<Found<'tree>> {
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MAX_MATCHES);
    let names = query.capture_names();
    let mut found = Vec::new();
    let mut matches = cursor.matches(query, tree.root(), text.as_bytes());
    while let Some(one) = matches.next() {
        let (mut node, mut name, mut parent) = (None, None, None);
        for capture in one.captures() {
            match names.get(capture.index as usize).copied() {
                Some("name") => name = name.or(Some(capture.node)),
                Some("parent") => parent = parent.or(Some(capture.node)),
                Some(other) => node = Kind::of(other).map(|kind| (kind, capture.node)).or(node),
                None => {}
            }
        }
        if let (Some((kind, node)), Some(name)) = (node, name) {
            found.push(Found { kind, node, name, parent, pattern: one.pattern_index });
        }
        if found.len() >= MAX_SYMBOLS {
            break;
        }
    }
    found
}

fn symbol(
    found: &Found<'_>,
    outer: Option<&Symbol>,
    inside: Option<usize>,
    text: &str,
    starts: &[usize],
) -> Option<Symbol> {
    let written = text.get(found.name.byte_range())?;
    let name_range = inner_name(written, found.name.start_byte());
    let name = text.get(name_range.clone())?;
    if name.is_empty() || name.len() > MAX_NAME || name.contains('\n') {
        return None;
    }
    let mut parents: Vec<String> = outer
        .map(|outer| {
            let mut parents = outer.parents.clone();
            parents.push(outer.name.clone());
            parents
        })
        .unwrap_or_default();
    parents.extend(found.parent.and_then(|parent| text.get(parent.byte_range())).map(str::to_owned));
    // `void Shop::open()` belongs to `Shop`.
    let scope = written.get(..name_range.start - found.name.start_byte()).unwrap_or_default();
    if scope.ends_with("::") {
        parents.extend(scope.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
    }
    let belongs =
        outer.is_some_and(|outer| outer.kind.is_type()) || !scope.is_empty() && scope.ends_with("::");
    let kind = if found.kind == Kind::Function && belongs { Kind::Method } else { found.kind };
    let whole = wrapped(found.node);
    let definition = trimmed(text, whole.start_byte()..closed(whole));
    let full = leading(whole, text).min(definition.start)..definition.end;
    let line = |at: usize| u32::try_from(starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX);
    Some(Symbol {
        kind,
        name: name.to_owned(),
        parents,
        lines: line(full.start)..line(full.end.saturating_sub(1).max(full.start)).saturating_add(1),
        signature: signature(found.node, whole, text),
        local: outer.is_some_and(|outer| outer.local || outer.kind.hides()),
        full,
        definition,
        name_range,
        inside,
    })
}

/// A name without its quotes or what it is scoped by.
fn inner_name(written: &str, at: usize) -> Range<usize> {
    let bare = written.trim_matches(['"', '\'', '`']);
    let lead = written.len() - written.trim_start_matches(['"', '\'', '`']).len();
    let last = bare.rfind("::").map_or(0, |scope| scope + 2);
    at + lead + last..at + lead + bare.len()
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0)
        .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1))
        .collect()
}

/// What adds only words to the one definition in it.
const WRAPPERS: [&str; 14] = [
    "ambient_declaration",
    "assignment_expression",
    "const_declaration",
    "decorated_definition",
    "declaration",
    "export_statement",
    "expression_statement",
    "field_declaration",
    "lexical_declaration",
    "template_declaration",
    "type_declaration",
    "type_definition",
    "var_declaration",
    "variable_declaration",
];

/// The node with `export`, `template<…>`, decorators and the like around it.
#[must_use]
pub fn wrapped(node: Node<'_>) -> Node<'_> {
    let mut whole = node;
    while let Some(parent) = whole.parent() {
        let alone = || {
            let mut cursor = parent.walk();
            parent.named_children(&mut cursor).filter(|child| child.kind() == whole.kind()).count() == 1
        };
        if !WRAPPERS.contains(&parent.kind()) || !alone() {
            break;
        }
        whole = parent;
    }
    whole
}

/// Where a node ends with the sign that closes it, if that stands right after it.
fn closed(node: Node<'_>) -> usize {
    match node.next_sibling() {
        Some(next) if next.kind() == ";" && next.start_byte() == node.end_byte() => next.end_byte(),
        _ => node.end_byte(),
    }
}

/// A range without blanks at its end: some grammars take the line break in.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let len = text.get(range.clone()).unwrap_or_default().trim_end().len();
    range.start..range.start + len
}

/// Whether a node is a comment.
#[must_use]
pub fn is_comment(node: Node<'_>) -> bool {
    node.kind().contains("comment")
}

/// Whether a node says something about the definition that follows it.
#[must_use]
pub fn is_attribute(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "attribute_item"
            | "attribute"
            | "decorator"
            | "annotation"
            | "attribute_list"
            | "attribute_declaration"
    )
}

/// Where the comments and attributes begin that stand right before a node.
fn leading(node: Node<'_>, text: &str) -> usize {
    let mut first = node;
    while let Some(before) = first.prev_sibling() {
        if !is_comment(before) && !is_attribute(before) {
            break;
        }
        let between = text.get(before.end_byte()..first.start_byte()).unwrap_or_default();
        // A comment's node may have its line break in it.
        let ends = text.get(before.byte_range()).is_some_and(|own| own.ends_with('\n'));
        let shebang = before.start_byte() == 0 && text.starts_with("#!");
        let breaks = between.matches('\n').count() + usize::from(ends);
        if shebang || breaks > 1 || !between.trim().is_empty() || !opens_line(text, before.start_byte()) {
            break;
        }
        first = before;
    }
    first.start_byte()
}

/// Whether only blanks stand before a place in its line.
fn opens_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rfind('\n').map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    line.trim_start_matches('\u{feff}').trim().is_empty()
}

/// A definition's beginning, up to its body, on one line.
fn signature(node: Node<'_>, whole: Node<'_>, text: &str) -> String {
    let body = node.child_by_field_name("body").or_else(|| {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).find(|child| {
            child.kind().ends_with("_body")
                || child.kind().ends_with("block")
                || child.kind() == "body_statement"
        })
    });
    let end = body.map_or(whole.end_byte(), |body| body.start_byte());
    let own = text.get(whole.start_byte()..end).unwrap_or_default();
    let own = if body.is_none() { own.lines().next().unwrap_or_default() } else { own };
    let mut line = String::new();
    for word in own.split_whitespace() {
        if line.len() + word.len() >= MAX_SIGNATURE {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.truncate(line.trim_end_matches(['{', ':', ' ', '=']).len());
    line
}
