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

use std::ops::Range;

use tree_sitter::Node;

use crate::language::Language;
use crate::parse::Tree;
use crate::sections::Said;
use crate::walk::{Found, Leading, Wanted};
use crate::{doc, visibility, walk};

/// Symbols of one text: what has more is generated.
pub const MAX_SYMBOLS: usize = 50_000;
/// Bytes of a signature: it is shown on a line or two.
pub const MAX_SIGNATURE: usize = 240;
/// Bytes of a name. Longer ones are keys and selectors that nobody refers to.
const MAX_NAME: usize = 200;
/// Bytes of a definition before its name that are read for who may use it.
const MAX_BEFORE_NAME: usize = 2_000;

/// The member of JavaScript's `module` that a file gives to others.
const EXPORTS: &str = "exports";

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
    /// A heading of a document.
    Heading,
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
        ("heading", Self::Heading),
    ];

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether what is defined in it belongs to it.
    pub(crate) fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Struct | Self::Enum | Self::Interface | Self::Trait | Self::Impl)
    }

    /// Whether names that are defined in it are seen from outside at all.
    pub(crate) fn hides(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor)
    }
}

/// Who may use a symbol, as far as its own text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Visibility {
    /// The language says nothing, or it wasn't looked for.
    #[default]
    Unknown = 0,
    /// Everybody.
    Public = 1,
    /// The package, the crate, the module, or those that derive from it.
    Restricted = 2,
    /// The file or the type.
    Private = 3,
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
    /// The 1-based line of its name.
    pub name_line: u32,
    /// Its beginning up to its body, on one line.
    pub signature: String,
    /// Its comment's first sentence, or nothing.
    pub doc: String,
    /// Who may use it.
    pub visibility: Visibility,
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

/// What a language's query is faulty in, for tests.
///
/// # Errors
/// The fault in words.
#[doc(hidden)]
pub fn check_query(language: Language) -> Result<(), String> {
    walk::check(language)
}

/// A text's symbols, in the order of the text, outer ones before inner ones. What of a broken text parses is there.
#[must_use]
pub fn outline(tree: &Tree, text: &str) -> Vec<Symbol> {
    walk::walk(tree.language(), tree.root(), text, Wanted::Symbols)
        .map(|walked| symbols(tree.language(), walked.found, &walked.leading, &walked.marks, text).0)
        .unwrap_or_default()
}

/// What a walk found, put in order, and where something is said of it.
pub(crate) fn symbols(
    language: Language,
    mut found: Vec<Found<'_>>,
    leading: &[Leading],
    marks: &[Node<'_>],
    text: &str,
) -> (Vec<Symbol>, Vec<Said>) {
    found.sort_by_key(|found| {
        (found.node.start_byte(), std::cmp::Reverse(found.node.end_byte()), found.pattern)
    });
    found.dedup_by_key(|found| (found.node.id(), found.name.id()));
    let mut reader = Reader {
        language,
        text,
        starts: line_starts(text),
        leading,
        symbols: Vec::with_capacity(found.len()),
        said: Vec::new(),
    };
    let mut open: Vec<(usize, usize)> = Vec::new();
    for one in &found {
        let (end, node) = (one.node.end_byte(), one.node.id());
        // Several names of one declaration don't lie in one another, and a struct doesn't lie in what `typedef` calls it.
        while open.last().and_then(|(at, other)| Some((reader.symbols.get(*at)?, *other))).is_some_and(
            |(outer, other)| {
                let typedef = outer.kind == Kind::Type && one.kind.is_type();
                outer.definition.end < end || other == node || typedef
            },
        ) {
            open.pop();
        }
        if let Some(symbol) = reader.symbol(one, open.last().map(|(at, _)| *at)) {
            open.push((reader.symbols.len(), node));
            reader.symbols.push(symbol);
        }
    }
    let (mut symbols, said) = (reader.symbols, reader.said);
    visibility::apply(language, marks, text, &mut symbols);
    (symbols, said)
}

/// What makes symbols of what was found.
struct Reader<'a> {
    language: Language,
    text: &'a str,
    /// Where lines begin.
    starts: Vec<usize>,
    leading: &'a [Leading],
    symbols: Vec<Symbol>,
    said: Vec<Said>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn line_start(&self, at: usize) -> usize {
        let line = self.starts.partition_point(|start| *start <= at);
        line.checked_sub(1).and_then(|line| self.starts.get(line)).copied().unwrap_or_default()
    }

    /// Whether only blanks stand before a place in its line.
    fn opens_line(&self, at: usize) -> bool {
        let line = self.text.get(self.line_start(at)..at).unwrap_or_default();
        line.trim_start_matches('\u{feff}').trim_start().is_empty()
    }

    fn symbol(&mut self, found: &Found<'_>, inside: Option<usize>) -> Option<Symbol> {
        let text = self.text;
        let outer = inside.and_then(|at| self.symbols.get(at));
        let written = text.get(found.name.byte_range())?;
        let name_range = inner_name(self.language, written, found.name.start_byte());
        let name = text.get(name_range.clone())?;
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\n') {
            return None;
        }
        let whole = found.whole;
        let definition = trimmed(text, whole.start_byte()..closed(whole, text));
        let near = text.floor_char_boundary(name_range.start.min(definition.start + MAX_BEFORE_NAME));
        let before_name = text.get(definition.start..near).unwrap_or_default();
        let reaches = reaches_out(self.language, before_name, outer);
        let mut parents: Vec<String> = outer
            .map(|outer| {
                let mut parents = outer.parents.clone();
                // A method puts what it puts on `this` into its type.
                if !reaches || (outer.kind == Kind::Function && outer.name != EXPORTS) {
                    parents.push(outer.name.clone());
                }
                parents
            })
            .unwrap_or_default();
        parents.extend(found.parent.and_then(|parent| text.get(parent.byte_range())).map(str::to_owned));
        // `void Shop::open()` belongs to `Shop`.
        let scope = written.get(..name_range.start - found.name.start_byte()).unwrap_or_default();
        let scoped = scope.ends_with("::");
        if scoped {
            parents.extend(
                without_arguments(scope).split("::").filter(|part| !part.is_empty()).map(str::to_owned),
            );
        }
        let belongs = outer.is_some_and(|outer| outer.kind.is_type()) || scoped;
        let kind = if found.kind == Kind::Function && belongs { Kind::Method } else { found.kind };
        let kind = refined(self.language, kind, before_name, name);
        if is_macro_use(self.language, found.node, name, outer) {
            return None;
        }
        let body = body(found.node);
        let (first, comments) = self.before(definition.start);
        let said = doc::place(self.language, comments, body, text);
        let said =
            said.map(|range| Said { symbol: Some(self.symbols.len()), line: self.line(range.start), range });
        let own = if reaches {
            Visibility::Public
        } else {
            visibility::of(self.language, kind, before_name, name, outer)
        };
        let symbol = Symbol {
            kind,
            name: name.to_owned(),
            parents,
            lines: self.line(first)..self.line(definition.end.saturating_sub(1).max(first)).saturating_add(1),
            name_line: self.line(name_range.start),
            signature: signature(body, whole, text),
            doc: doc::of(self.language, comments, body, text),
            visibility: own,
            local: outer.is_some_and(|outer| outer.local || outer.kind.hides() && !reaches),
            full: first..definition.end,
            definition,
            name_range,
            inside,
        };
        self.said.extend(said);
        Some(symbol)
    }

    /// Where the comments and attributes begin that stand right before a place, and all of them.
    fn before(&self, place: usize) -> (usize, &[Leading]) {
        let text = self.text;
        let end = self.leading.partition_point(|leading| leading.start < place);
        let (mut first, mut at) = (place, end);
        let mut column = None;
        while let Some(before) = at.checked_sub(1).and_then(|at| self.leading.get(at)) {
            if before.end > first {
                break;
            }
            let between = text.get(before.end..first).unwrap_or_default();
            // A comment's node may have its line break in it.
            let ends = text.get(before.start..before.end).is_some_and(|own| own.ends_with('\n'));
            let shebang = before.start == 0 && text.starts_with("#!");
            let breaks = between.matches('\n').count() + usize::from(ends);
            if shebang || breaks > 1 || !between.trim().is_empty() || !self.opens_line(before.start) {
                break;
            }
            // Where columns say what belongs together, a comment that lies deeper belongs to what is before it.
            if matches!(self.language, Language::Python | Language::Yaml)
                && before.column != *column.get_or_insert_with(|| place - self.line_start(place))
            {
                break;
            }
            first = before.start;
            at -= 1;
        }
        (first, self.leading.get(at..end).unwrap_or_default())
    }
}

/// Whether a function that stands in another one is seen from outside all the same: in JavaScript what is put on `this`,
/// or on anything within what a module exports (`module.exports = function (Posts) { Posts.create = … }`).
fn reaches_out(language: Language, before_name: &str, outer: Option<&Symbol>) -> bool {
    let script = matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx);
    let Some(outer) = outer.filter(|outer| script && outer.kind.hides()) else { return false };
    let member = before_name.trim_end().ends_with('.') && !before_name.contains(['{', '\n']);
    member && (before_name.starts_with("this.") || (outer.name == EXPORTS && outer.parents.is_empty()))
}

/// What a kind is by the words before the name, or by the name: constants among variables, and Kotlin's interfaces and
/// enumerations, which are classes to its grammar.
fn refined(language: Language, kind: Kind, before_name: &str, name: &str) -> Kind {
    let word = |wanted: &str| {
        before_name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|word| word == wanted)
    };
    if kind == Kind::Class && language == Language::Kotlin {
        return if word("interface") {
            Kind::Interface
        } else if word("enum") {
            Kind::Enum
        } else {
            kind
        };
    }
    if !matches!(kind, Kind::Variable | Kind::Field) {
        return kind;
    }
    let loud = is_loud(name);
    let constant = match language {
        Language::Python => loud,
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            loud && (word("const") || word("readonly") || word("static"))
        }
        Language::Java => word("static") && word("final"),
        Language::Kotlin => word("const"),
        Language::CSharp => word("const") || (word("static") && word("readonly")),
        Language::C | Language::Cpp => word("constexpr") || (word("const") && !before_name.contains('*')),
        Language::Swift => word("let") && (kind == Kind::Variable || word("static")),
        Language::Scala => word("val") && name.starts_with(char::is_uppercase),
        Language::Bash => word("readonly") || word("-r") || word("-rx") || word("-xr"),
        _ => false,
    };
    if constant { Kind::Constant } else { kind }
}

/// Whether a name is written without small letters.
fn is_loud(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_uppercase() || c == '_')
        && name.chars().all(|c| c.is_uppercase() || c.is_numeric() || c == '_')
        && name.contains(char::is_uppercase)
}

/// Whether a declaration of C++ without a type, which only a constructor is, is the use of a macro: `MOCK_METHOD(…);`.
fn is_macro_use(language: Language, node: Node<'_>, name: &str, outer: Option<&Symbol>) -> bool {
    language == Language::Cpp
        && node.kind() == "declaration"
        && is_loud(name)
        && node.child_by_field_name("type").is_none()
        && outer.is_none_or(|outer| outer.name != name)
}

/// `n::A::` of `n::A<x::T>::`.
fn without_arguments(scope: &str) -> String {
    let mut depth = 0_usize;
    let kept = scope.chars().filter(|c| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    kept.collect()
}

/// A name without its quotes, what it is scoped by, and in C++ what its template is given.
fn inner_name(language: Language, written: &str, at: usize) -> Range<usize> {
    let quotes: &[char] = match language {
        // A symbol's colon.
        Language::Ruby => &['"', '\'', '`', ':'],
        // A heading's text may have blanks around it.
        Language::Html => &['"', '\'', ' ', '\n', '\r', '\t'],
        _ => &['"', '\'', '`'],
    };
    let bare = written.trim_matches(quotes);
    let lead = written.len() - written.trim_start_matches(quotes).len();
    if language == Language::Cpp {
        let (first, last) = name_of_cpp(bare);
        return at + lead + first..at + lead + last;
    }
    let last = bare.rfind("::").map_or(0, |scope| scope + 2);
    at + lead + last..at + lead + bare.len()
}

/// `f` of `n::A<x::T>::f<U>`, and an operator whole: `operator int` of `A::operator int() const`.
fn name_of_cpp(written: &str) -> (usize, usize) {
    let (mut depth, mut first) = (0_usize, 0);
    for (at, byte) in written.bytes().enumerate() {
        let rest = written.get(at..).unwrap_or_default();
        let fresh = at == first && depth == 0;
        if fresh
            && rest
                .strip_prefix("operator")
                .is_some_and(|rest| !rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()))
        {
            let signs = rest.get("operator".len()..).unwrap_or_default();
            let called = usize::from(signs.trim_start().starts_with("()")) * 2;
            let long = rest
                .char_indices()
                .skip("operator".len())
                .filter(|(_, c)| *c == '(')
                .map(|(at, _)| at)
                .nth(called / 2);
            let end = long.unwrap_or(rest.len());
            return (first, at + rest.get(..end).unwrap_or(rest).trim_end().len());
        }
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && rest.starts_with("::") => first = at + 2,
            _ => {}
        }
    }
    let name = written.get(first..).unwrap_or_default();
    let end = name.find('<').unwrap_or(name.len());
    (first, first + name.get(..end).unwrap_or_default().trim_end().len())
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
    while let Some(parent) = whole.parent().filter(|parent| is_wrapper(*parent, whole)) {
        whole = parent;
    }
    whole
}

/// Whether a node adds only words to the one definition in it.
pub(crate) fn is_wrapper(parent: Node<'_>, inner: Node<'_>) -> bool {
    let alone = || {
        let mut cursor = parent.walk();
        parent.named_children(&mut cursor).filter(|child| child.kind_id() == inner.kind_id()).nth(1).is_none()
    };
    WRAPPERS.contains(&parent.kind()) && alone()
}

/// Where a node ends with the sign that closes it, if that stands right after it.
fn closed(node: Node<'_>, text: &str) -> usize {
    let end = node.end_byte();
    end + usize::from(text.as_bytes().get(end) == Some(&b';'))
}

/// A range without blanks at its end: some grammars take the line break in.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let len = text.get(range.clone()).unwrap_or_default().trim_end().len();
    range.start..range.start + len
}

/// Whether a node is a comment.
#[must_use]
pub fn is_comment(node: Node<'_>) -> bool {
    is_comment_kind(node.kind())
}

pub(crate) fn is_comment_kind(kind: &str) -> bool {
    kind.contains("comment")
}

/// Whether a node says something about the definition that follows it.
#[must_use]
pub fn is_attribute(node: Node<'_>) -> bool {
    is_attribute_kind(node.kind())
}

pub(crate) fn is_attribute_kind(kind: &str) -> bool {
    matches!(
        kind,
        "attribute_item"
            | "attribute"
            | "decorator"
            | "annotation"
            | "attribute_list"
            | "attribute_declaration"
    )
}

/// The part of a definition that its signature doesn't show.
fn body(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("body").or_else(|| {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).find(|child| {
            child.kind().ends_with("_body")
                || child.kind().ends_with("block")
                || child.kind() == "body_statement"
        })
    })
}

/// A definition's beginning, up to its body, on one line.
fn signature(body: Option<Node<'_>>, whole: Node<'_>, text: &str) -> String {
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
