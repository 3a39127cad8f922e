//! Symbols that a text defines, with their names, positions and parents.
//!
//! A query in `queries/` describes the definitions of each language: the capture named like a
//! [`SymbolKind`] is the definition, `@name` its name, and `@parent` the type that it belongs to
//! where that type doesn't enclose it.
//!
//! ```
//! use journeyman_syntax::{language::Language, outline::outline, parse::parse};
//!
//! # if Language::Rust.is_built_in() {
//! let text =
//!     "/// Adds.\nfn add(a: u8) -> u8 {\n    a\n}\n\nimpl Shop {\n    fn open(&self) {}\n}\n";
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
use crate::sections::DocPosition;
use crate::walk::{Definition, LeadingNode, WalkScope};
use crate::{doc_comments, visibility, walk};

pub use crate::node_kinds::{is_attribute, is_comment};
pub use crate::symbol::{MAX_SIGNATURE_BYTES, MAX_SYMBOLS, Symbol, SymbolKind, Visibility};

/// Maximum bytes of a name. Longer ones are keys and selectors that nobody refers to.
const MAX_NAME_BYTES: usize = 200;
/// Maximum bytes between a definition's beginning and its name that are searched for visibility
/// keywords.
const MAX_BYTES_BEFORE_NAME: usize = 2_000;

/// Maximum bytes of a definition's beginning that are searched for its signature.
const MAX_UNWRAPPED_SIGNATURE_BYTES: usize = 4 * MAX_SIGNATURE_BYTES;

/// The member of JavaScript's `module` that holds a file's exports.
const EXPORTS_MEMBER: &str = "exports";

/// Keywords of C, sorted.
const C_KEYWORDS: [&str; 32] = [
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "while",
];

/// Checks a language's query, for tests.
///
/// # Errors
/// A description of the fault.
#[doc(hidden)]
pub fn check_query(language: Language) -> Result<(), String> {
    walk::check_query(language)
}

/// Returns the symbols of a text in text order, outer ones before inner ones. Of a text with
/// errors, the parts that parse are included.
#[must_use]
pub fn outline(tree: &Tree, text: &str) -> Vec<Symbol> {
    walk::walk_tree(tree.language(), tree.root(), text, WalkScope::Symbols)
        .map(|walked| build_symbols(tree.language(), walked.found, &walked.leading, &walked.markers, text).0)
        .unwrap_or_default()
}

/// Builds the symbols in text order from the definitions of a walk, and the positions of their doc
/// comments.
pub(crate) fn build_symbols(
    language: Language,
    mut found: Vec<Definition<'_>>,
    leading: &[LeadingNode],
    markers: &[Node<'_>],
    text: &str,
) -> (Vec<Symbol>, Vec<DocPosition>) {
    found.sort_by_key(|found| {
        (found.node.start_byte(), std::cmp::Reverse(found.node.end_byte()), found.pattern)
    });
    found.dedup_by_key(|found| (found.node.id(), found.name.id()));
    let mut reader = SymbolBuilder {
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
        // Several names of one declaration aren't nested, and a struct isn't nested in its
        // `typedef`.
        while open.last().and_then(|(at, other)| Some((reader.symbols.get(*at)?, *other))).is_some_and(
            |(outer, other)| {
                let typedef = outer.kind == SymbolKind::Type && one.kind.is_type();
                outer.definition.end < end || other == node || typedef
            },
        ) {
            open.pop();
        }
        if let Some(symbol) = reader.build_symbol(one, open.last().map(|(at, _)| *at)) {
            open.push((reader.symbols.len(), node));
            reader.symbols.push(symbol);
        }
    }
    let (mut symbols, said) = (reader.symbols, reader.said);
    visibility::apply_markers(language, markers, text, &mut symbols);
    (symbols, said)
}

/// Builds symbols from definitions.
struct SymbolBuilder<'a> {
    language: Language,
    text: &'a str,
    /// Byte offsets of line starts.
    starts: Vec<usize>,
    leading: &'a [LeadingNode],
    symbols: Vec<Symbol>,
    said: Vec<DocPosition>,
}

impl SymbolBuilder<'_> {
    fn line_of(&self, at: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn line_start(&self, at: usize) -> usize {
        let line = self.starts.partition_point(|start| *start <= at);
        line.checked_sub(1).and_then(|line| self.starts.get(line)).copied().unwrap_or_default()
    }

    /// Returns true if only blanks stand before a position in its line.
    fn is_at_line_start(&self, at: usize) -> bool {
        let line = self.text.get(self.line_start(at)..at).unwrap_or_default();
        line.trim_start_matches('\u{feff}').trim_start().is_empty()
    }

    fn build_symbol(&mut self, found: &Definition<'_>, inside: Option<usize>) -> Option<Symbol> {
        let text = self.text;
        let outer = inside.and_then(|at| self.symbols.get(at));
        let written = text.get(found.name.byte_range())?;
        let name_range = unqualified_name(self.language, written, found.name.start_byte());
        let name = text.get(name_range.clone())?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\n') {
            return None;
        }
        let whole = found.whole;
        let definition = trim_range(text, whole.start_byte()..end_after_semicolon(whole, text));
        let near = text.floor_char_boundary(name_range.start.min(definition.start + MAX_BYTES_BEFORE_NAME));
        let before_name = text.get(definition.start..near).unwrap_or_default();
        let reaches = is_exposed(self.language, before_name, outer);
        let mut parents: Vec<String> = outer
            .map(|outer| {
                let mut parents = outer.parents.clone();
                // A method that assigns to `this` defines a member of its type.
                if !reaches || (outer.kind == SymbolKind::Function && outer.name != EXPORTS_MEMBER) {
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
                without_template_arguments(scope)
                    .split("::")
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned),
            );
        }
        let belongs = outer.is_some_and(|outer| outer.kind.is_type()) || scoped;
        let kind =
            if found.kind == SymbolKind::Function && belongs { SymbolKind::Method } else { found.kind };
        let kind = refine_kind(self.language, kind, before_name, name);
        if is_c_keyword(self.language, name) || is_macro_use(self.language, found.node, name, outer) {
            return None;
        }
        let body = body_of(found.node);
        let (first, comments) = self.leading_before(definition.start);
        let said = doc_comments::doc_range(self.language, comments, body, text);
        let said = said.map(|range| DocPosition {
            symbol: Some(self.symbols.len()),
            line: self.line_of(range.start),
            range,
        });
        let own = if reaches {
            Visibility::Public
        } else {
            visibility::visibility_of(self.language, kind, before_name, name, outer)
        };
        let symbol = Symbol {
            kind,
            name: name.to_owned(),
            parents,
            lines: self.line_of(first)
                ..self.line_of(definition.end.saturating_sub(1).max(first)).saturating_add(1),
            name_line: self.line_of(name_range.start),
            signature: signature_of(kind, body, whole, text, self.comments_within(whole.byte_range())),
            doc: doc_comments::doc_summary(self.language, comments, body, text),
            visibility: own,
            local: outer.is_some_and(|outer| outer.local || outer.kind.hides_definitions() && !reaches),
            full: first..definition.end,
            definition,
            name_range,
            inside,
        };
        self.said.extend(said);
        Some(symbol)
    }

    /// Returns the comments and attributes within a range.
    fn comments_within(&self, range: Range<usize>) -> &[LeadingNode] {
        let first = self.leading.partition_point(|leading| leading.start < range.start);
        let end = self.leading.partition_point(|leading| leading.start < range.end);
        self.leading.get(first..end).unwrap_or_default()
    }

    /// Returns the start and all of the comments and attributes that stand right before a position.
    fn leading_before(&self, place: usize) -> (usize, &[LeadingNode]) {
        let text = self.text;
        let end = self.leading.partition_point(|leading| leading.start < place);
        let (mut first, mut at) = (place, end);
        let mut column = None;
        while let Some(before) = at.checked_sub(1).and_then(|at| self.leading.get(at)) {
            if before.end > first {
                break;
            }
            let between = text.get(before.end..first).unwrap_or_default();
            // A comment's node may include its line break.
            let ends = text.get(before.start..before.end).is_some_and(|own| own.ends_with('\n'));
            let shebang = before.start == 0 && text.starts_with("#!");
            let breaks = between.matches('\n').count() + usize::from(ends);
            if shebang || breaks > 1 || !between.trim().is_empty() || !self.is_at_line_start(before.start) {
                break;
            }
            // In languages with significant indentation, a deeper comment belongs to what precedes
            // it.
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

/// Returns true if a function inside another one is visible from outside: in JavaScript a member of
/// `this`, or any member within the exports of a module (`module.exports = function (Posts) {
/// Posts.create = … }`).
fn is_exposed(language: Language, before_name: &str, outer: Option<&Symbol>) -> bool {
    let script = matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx);
    let Some(outer) = outer.filter(|outer| script && outer.kind.hides_definitions()) else { return false };
    let member = before_name.trim_end().ends_with('.') && !before_name.contains(['{', '\n']);
    member && (before_name.starts_with("this.") || (outer.name == EXPORTS_MEMBER && outer.parents.is_empty()))
}

/// Refines a kind by the keywords before the name, or by the name: constants among variables, and
/// Kotlin's interfaces and enumerations, which its grammar calls classes.
fn refine_kind(language: Language, kind: SymbolKind, before_name: &str, name: &str) -> SymbolKind {
    let word = |wanted: &str| {
        before_name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|word| word == wanted)
    };
    if kind == SymbolKind::Class && language == Language::Kotlin {
        return if word("interface") {
            SymbolKind::Interface
        } else if word("enum") {
            SymbolKind::Enum
        } else {
            kind
        };
    }
    if !matches!(kind, SymbolKind::Variable | SymbolKind::Field) {
        return kind;
    }
    let loud = is_upper_case(name);
    let constant = match language {
        Language::Python => loud,
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            loud && (word("const") || word("readonly") || word("static"))
        }
        Language::Java => word("static") && word("final"),
        Language::Kotlin => word("const"),
        Language::CSharp => word("const") || (word("static") && word("readonly")),
        Language::C | Language::Cpp => word("constexpr") || (word("const") && !before_name.contains('*')),
        Language::Swift => word("let") && (kind == SymbolKind::Variable || word("static")),
        Language::Scala => word("val") && name.starts_with(char::is_uppercase),
        Language::Bash => word("readonly") || word("-r") || word("-rx") || word("-xr"),
        _ => false,
    };
    if constant { SymbolKind::Constant } else { kind }
}

/// Returns true if a name has no lower-case letters.
fn is_upper_case(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_uppercase() || c == '_')
        && name.chars().all(|c| c.is_uppercase() || c.is_numeric() || c == '_')
        && name.contains(char::is_uppercase)
}

/// Returns true for keywords that the grammars of C and C++ take for names in code that they can't
/// parse, such as the branches of an `#if` inside of a statement.
fn is_c_keyword(language: Language, name: &str) -> bool {
    matches!(language, Language::C | Language::Cpp) && C_KEYWORDS.binary_search(&name).is_ok()
}

/// Returns true if a C++ declaration without a type, which only a constructor may be, is a macro
/// call: `MOCK_METHOD(…);`.
fn is_macro_use(language: Language, node: Node<'_>, name: &str, outer: Option<&Symbol>) -> bool {
    language == Language::Cpp
        && node.kind() == "declaration"
        && is_upper_case(name)
        && node.child_by_field_name("type").is_none()
        && outer.is_none_or(|outer| outer.name != name)
}

/// Returns `n::A::` for `n::A<x::T>::`.
fn without_template_arguments(scope: &str) -> String {
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

/// Returns the range of a name without its quotes, its scope, and the template arguments of C++.
fn unqualified_name(language: Language, written: &str, at: usize) -> Range<usize> {
    let quotes: &[char] = match language {
        // The colon of a Ruby symbol.
        Language::Ruby => &['"', '\'', '`', ':'],
        // A heading's text may have blanks around it.
        Language::Html => &['"', '\'', ' ', '\n', '\r', '\t'],
        _ => &['"', '\'', '`'],
    };
    let bare = written.trim_matches(quotes);
    let lead = written.len() - written.trim_start_matches(quotes).len();
    if language == Language::Cpp {
        let (first, last) = cpp_name_range(bare);
        return at + lead + first..at + lead + last;
    }
    let last = bare.rfind("::").map_or(0, |scope| scope + 2);
    at + lead + last..at + lead + bare.len()
}

/// Finds `f` in `n::A<x::T>::f<U>`; an operator is kept whole: `operator int` of `A::operator int()
/// const`.
fn cpp_name_range(written: &str) -> (usize, usize) {
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

/// Returns the end of a node, including a closing sign right after it.
fn end_after_semicolon(node: Node<'_>, text: &str) -> usize {
    let end = node.end_byte();
    end + usize::from(text.as_bytes().get(end) == Some(&b';'))
}

/// Returns a range without trailing blanks: some grammars include the line break.
fn trim_range(text: &str, range: Range<usize>) -> Range<usize> {
    let len = text.get(range.clone()).unwrap_or_default().trim_end().len();
    range.start..range.start + len
}

/// Returns the part of a definition that its signature omits.
fn body_of(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("body").or_else(|| {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).find(|child| {
            child.kind().ends_with("_body")
                || child.kind().ends_with("block")
                || child.kind() == "body_statement"
        })
    })
}

/// Returns a definition's beginning, up to its body, on one line and without comments.
fn signature_of(
    kind: SymbolKind,
    body: Option<Node<'_>>,
    whole: Node<'_>,
    text: &str,
    inner: &[LeadingNode],
) -> String {
    let (start, end) = (whole.start_byte(), body.map_or(whole.end_byte(), |body| body.start_byte()));
    let mut own = String::new();
    let mut at = start;
    // Comments beyond what is shown need not be looked at.
    for comment in inner.iter().filter(|inner| inner.comment).take_while(|inner| inner.end <= end) {
        own.push_str(text.get(at..comment.start).unwrap_or_default());
        // Some grammars count the line break as a part of the comment.
        own.push_str(if text.get(comment.start..comment.end).is_some_and(|own| own.ends_with('\n')) {
            "\n"
        } else {
            " "
        });
        at = comment.end.max(at);
        if own.len() > MAX_UNWRAPPED_SIGNATURE_BYTES {
            break;
        }
    }
    own.push_str(text.get(at..end).unwrap_or_default());
    let own = if body.is_none() { signature_lines(kind, &own) } else { &own };
    let mut line = String::new();
    for word in own.split_whitespace() {
        if line.len() + word.len() >= MAX_SIGNATURE_BYTES {
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

/// Returns the first line of a definition without a body; of functions and types all lines of their
/// parameters.
fn signature_lines(kind: SymbolKind, own: &str) -> &str {
    let has_parameters = kind.hides_definitions() || kind == SymbolKind::Type;
    let (mut depth, mut end) = (0_usize, 0);
    for line in own.split_inclusive('\n') {
        for byte in line.bytes() {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        end += line.len();
        if !has_parameters || depth == 0 || end > MAX_UNWRAPPED_SIGNATURE_BYTES {
            break;
        }
    }
    own.get(..end).unwrap_or(own).trim_end()
}
