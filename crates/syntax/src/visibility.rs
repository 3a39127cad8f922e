//! Visibility of symbols, as far as their own file determines it.
//!
//! Most languages have keywords before the name, which are read as text, so that they are found in
//! broken code as well. A few use the form of the name (Go, Python), a section for all that follows
//! (C++, Ruby), or a statement apart from the definition (`export { a }`).

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::language::Language;
use crate::symbol::{Symbol, SymbolKind, Visibility};

use Visibility::{Private, Public, Restricted, Unknown};

/// Maximum definitions before a marker that it may name.
const MAX_DEFINITIONS_BEFORE_MARKER: usize = 1_000;
/// Maximum bytes before a position that are searched for the beginning of its line.
const MAX_LINE_PREFIX_BYTES: usize = 200;

/// Returns the visibility by the keywords before the name, the name and the enclosing symbol.
pub(crate) fn visibility_of(
    language: Language,
    kind: SymbolKind,
    before_name: &str,
    name: &str,
    outer: Option<&Symbol>,
) -> Visibility {
    if outer.is_some_and(|outer| outer.local || outer.kind.hides_definitions()) {
        return Private;
    }
    // Enum values and interface members are as visible as their type.
    let inherited = outer
        .filter(|outer| {
            let asked_for = matches!(outer.kind, SymbolKind::Interface | SymbolKind::Trait);
            kind == SymbolKind::Variant
                || asked_for
                || (language == Language::Rust && outer.kind == SymbolKind::Variant)
        })
        .map(|outer| outer.visibility);
    let said = visibility_by_keyword(before_name);
    match language {
        Language::Rust => rust_visibility(kind, before_name, outer).or(inherited).unwrap_or(Private),
        Language::Python => python_visibility(name),
        Language::Go => {
            let public = name.chars().next().is_some_and(char::is_uppercase);
            if public { Public } else { Restricted }
        }
        Language::Java => said.or(inherited).unwrap_or(Restricted),
        Language::CSharp => {
            let silent = if outer.is_some_and(|outer| outer.kind.is_type()) { Private } else { Restricted };
            said.or(inherited).unwrap_or(if kind == SymbolKind::Module { Public } else { silent })
        }
        Language::Kotlin | Language::Scala | Language::Php => said.or(inherited).unwrap_or(Public),
        Language::Swift => said.or(inherited).unwrap_or(Restricted),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            if outer.is_some_and(|outer| outer.kind.is_type()) {
                let marked = name.starts_with('#').then_some(Private);
                return marked.or(said).or(inherited).unwrap_or(Public);
            }
            let exported = before_name.starts_with("export")
                || ["exports.", "module."].iter().any(|start| before_name.starts_with(start))
                || outer.is_some_and(|outer| outer.kind == SymbolKind::Module && outer.visibility == Public);
            if exported { Public } else { Private }
        }
        Language::C | Language::Cpp => {
            let hidden = keywords_outside_brackets(before_name).any(|word| word == "static")
                && outer.is_none_or(|outer| !outer.kind.is_type());
            if hidden { Private } else { Public }
        }
        Language::Lua => {
            if before_name.starts_with("local") {
                Private
            } else {
                Public
            }
        }
        Language::Ruby | Language::Bash => Public,
        _ => Unknown,
    }
}

/// Returns the keywords at a definition's beginning outside of brackets, so without the arguments
/// of annotations.
fn keywords_outside_brackets(before_name: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    before_name
        .split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
        .filter_map(move |piece| {
            let at = depth;
            match piece.chars().last() {
                Some('(' | '[' | '{' | '<') => depth += 1,
                Some(')' | ']' | '}' | '>') => depth = depth.saturating_sub(1),
                _ => {}
            }
            (at == 0).then(|| piece.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_'))
        })
        .filter(|word| !word.is_empty())
}

/// Returns the visibility by a keyword common to most languages. The strictest counts: `protected
/// internal`, `private(set)`.
fn visibility_by_keyword(before_name: &str) -> Option<Visibility> {
    keywords_outside_brackets(before_name)
        .filter_map(|word| match word {
            "public" | "open" | "export" => Some(Public),
            "protected" | "internal" | "package" => Some(Restricted),
            "private" | "fileprivate" | "file" => Some(Private),
            _ => None,
        })
        .next()
}

fn rust_visibility(kind: SymbolKind, before_name: &str, outer: Option<&Symbol>) -> Option<Visibility> {
    let word = before_name.trim_start();
    if let Some(rest) = word.strip_prefix("pub") {
        if rest.starts_with('(') {
            return Some(Restricted);
        }
        if rest.starts_with(char::is_whitespace) {
            return Some(Public);
        }
    }
    // A trait's items are as public as the trait.
    let of_trait = outer.is_some_and(|outer| {
        outer.kind == SymbolKind::Impl
            && (outer.signature.contains(" for ") || outer.signature.ends_with(" for"))
    });
    match kind {
        SymbolKind::Impl => Some(Unknown),
        _ if of_trait => Some(Public),
        _ => None,
    }
}

fn python_visibility(name: &str) -> Visibility {
    let special = name.starts_with("__") && name.ends_with("__");
    if name.starts_with('_') && !special { Private } else { Public }
}

/// Returns true if a node sets the visibility of other symbols.
pub(crate) fn is_marker(language: Language, node: Node<'_>, text: &str) -> bool {
    match language {
        Language::Ruby => {
            let written = text.get(node.byte_range()).unwrap_or_default();
            parse_ruby_marker(written).is_some()
        }
        _ => true,
    }
}

/// Returns the visibility that a marker of Ruby begins with, and the rest of its text.
fn parse_ruby_marker(written: &str) -> Option<(Visibility, &str)> {
    let word = written.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let said = match word {
        "private" | "private_class_method" | "private_constant" => Private,
        "protected" => Restricted,
        "public" => Public,
        _ => return None,
    };
    Some((said, written.get(word.len()..).unwrap_or_default().trim_start_matches('(').trim()))
}

/// Applies the markers to the symbols.
pub(crate) fn apply_markers(language: Language, markers: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    match language {
        Language::Cpp | Language::Ruby => apply_section_markers(language, markers, text, symbols),
        Language::JavaScript | Language::TypeScript | Language::Tsx => apply_exports(markers, text, symbols),
        _ => {}
    }
}

/// An enclosing type, and the visibility of its members from here on.
struct OpenType {
    symbol: usize,
    end: usize,
    now: Visibility,
}

/// Applies markers that hold for the following members of the same type.
fn apply_section_markers(language: Language, markers: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    let mut open: Vec<OpenType> = Vec::new();
    // The visibility of symbols outside of any type.
    let mut outside = Public;
    let mut markers = markers.iter().peekable();
    for at in 0..symbols.len() {
        let Some((start, end, kind, inside)) = symbols
            .get(at)
            .map(|symbol| (symbol.definition.start, symbol.definition.end, symbol.kind, symbol.inside))
        else {
            return;
        };
        while let Some(marker) = markers.next_if(|marker| marker.start_byte() < start) {
            open.retain(|one| one.end > marker.start_byte());
            let (before, inside) = (at, open.last().map(|one| one.symbol));
            if let Some(said) = apply_marker(language, *marker, text, symbols, before, inside) {
                match open.last_mut() {
                    Some(last) => last.now = said,
                    None => outside = said,
                }
            }
        }
        open.retain(|one| one.end > start);
        let own = match open.last() {
            Some(last) => (inside == Some(last.symbol)).then_some(last.now),
            None if language == Language::Ruby && inside.is_none() => Some(outside),
            None => None,
        };
        let taking = kind != SymbolKind::Variant && (language == Language::Cpp || kind == SymbolKind::Method);
        if let (Some(symbol), Some(own), true) = (symbols.get_mut(at), own, taking) {
            symbol.visibility = own;
        }
        if kind.is_type() || kind == SymbolKind::Module {
            let now = if language == Language::Cpp && kind == SymbolKind::Class { Private } else { Public };
            open.push(OpenType { symbol: at, end, now });
        }
    }
    // Markers after the last definition name earlier symbols; those around a definition apply to
    // it.
    for marker in markers {
        open.retain(|one| one.end > marker.start_byte());
        apply_marker(language, *marker, text, symbols, symbols.len(), open.last().map(|one| one.symbol));
    }
    if language == Language::Ruby {
        apply_wrapping_markers(text, symbols);
    }
}

/// Returns the visibility that a marker sets for all that follows, or applies it to the symbols
/// that it names.
fn apply_marker(
    language: Language,
    marker: Node<'_>,
    text: &str,
    symbols: &mut [Symbol],
    before: usize,
    inside: Option<usize>,
) -> Option<Visibility> {
    let written = text.get(marker.byte_range()).unwrap_or_default();
    if language == Language::Cpp {
        return visibility_by_keyword(written);
    }
    let (said, rest) = parse_ruby_marker(written)?;
    if rest.is_empty() {
        // Only a name alone in its line, not one of a call.
        let alone = marker.kind() == "identifier" && is_alone_on_line(text, marker);
        return alone.then_some(said);
    }
    let names: BTreeSet<&str> = rest
        .split(|c: char| c == ',' || c.is_whitespace() || c == ')')
        .filter_map(|name| name.strip_prefix(':').or_else(|| name.strip_prefix('"')))
        .map(|name| name.trim_end_matches('"'))
        .collect();
    if !names.is_empty() {
        let earlier = symbols
            .get_mut(..before)
            .unwrap_or_default()
            .iter_mut()
            .rev()
            .take(MAX_DEFINITIONS_BEFORE_MARKER);
        for symbol in earlier.filter(|symbol| symbol.inside == inside) {
            if names.contains(symbol.name.as_str()) {
                symbol.visibility = said;
            }
        }
    }
    None
}

fn is_alone_on_line(text: &str, node: Node<'_>) -> bool {
    let after = text.get(node.end_byte()..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
    line_before(text, node.start_byte()).is_some_and(str::is_empty)
        && (after.is_empty() || after.starts_with(['\n', '#']))
}

/// Returns the text before a position in its line, trimmed; `None` if that is far more than a
/// keyword.
fn line_before(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(MAX_LINE_PREFIX_BYTES));
    let near = text.get(start..at)?;
    let line = near.rfind('\n').and_then(|end| near.get(end + 1..));
    line.or_else(|| (start == 0).then_some(near)).map(str::trim)
}

/// Applies `private def a`.
fn apply_wrapping_markers(text: &str, symbols: &mut [Symbol]) {
    for symbol in symbols.iter_mut().filter(|symbol| symbol.kind == SymbolKind::Method) {
        let line = line_before(text, symbol.definition.start).unwrap_or_default();
        if let Some((said, "")) = parse_ruby_marker(line) {
            symbol.visibility = said;
        }
    }
}

/// Applies exports apart from their definitions. In a text without any, nothing is private, because
/// it isn't a module.
fn apply_exports(markers: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    let names: BTreeSet<&str> = markers
        .iter()
        .map(|marker| {
            let written = text.get(marker.byte_range()).unwrap_or_default();
            let whole = match marker.kind() {
                "export_statement" => {
                    let rest = written.strip_prefix("export").unwrap_or_default().trim_start();
                    rest.strip_prefix("default").or_else(|| rest.strip_prefix('=')).unwrap_or_default()
                }
                _ => written.split_whitespace().next().unwrap_or_default(),
            };
            whole.trim_matches(|c: char| c.is_whitespace() || c == ';')
        })
        .collect();
    for symbol in symbols.iter_mut().filter(|symbol| symbol.inside.is_none() && symbol.visibility == Private)
    {
        if markers.is_empty() {
            symbol.visibility = Unknown;
        } else if names.contains(symbol.name.as_str()) {
            symbol.visibility = Public;
        }
    }
}
