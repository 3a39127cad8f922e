//! Who may use a symbol, as far as its own file tells.
//!
//! Most languages say it in words before the name, so that is where it is read, on broken text as well. A few say it with a
//! sign in the name (Go, Python), or once for all that follows (C++, Ruby) or apart from the definition (`export { a }`).

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::language::Language;
use crate::outline::{Kind, Symbol, Visibility};

use Visibility::{Private, Public, Restricted, Unknown};

/// Definitions before a mark that may be named by it.
const MAX_BACK: usize = 1_000;
/// Bytes before a place that are looked at for the beginning of its line.
const MAX_LINE_BEFORE: usize = 200;

/// Who may use it, by the words before its name, the name and what it lies in.
pub(crate) fn of(
    language: Language,
    kind: Kind,
    before_name: &str,
    name: &str,
    outer: Option<&Symbol>,
) -> Visibility {
    if outer.is_some_and(|outer| outer.local || outer.kind.hides()) {
        return Private;
    }
    // Values of an enumeration, and what an interface asks for, are seen wherever that is.
    let inherited = outer
        .filter(|outer| {
            let asked_for = matches!(outer.kind, Kind::Interface | Kind::Trait);
            kind == Kind::Variant || asked_for || (language == Language::Rust && outer.kind == Kind::Variant)
        })
        .map(|outer| outer.visibility);
    let said = said(before_name);
    match language {
        Language::Rust => rust(kind, before_name, outer).or(inherited).unwrap_or(Private),
        Language::Python => python(name),
        Language::Go => {
            let public = name.chars().next().is_some_and(char::is_uppercase);
            if public { Public } else { Restricted }
        }
        Language::Java => said.or(inherited).unwrap_or(Restricted),
        Language::CSharp => {
            let silent = if outer.is_some_and(|outer| outer.kind.is_type()) { Private } else { Restricted };
            said.or(inherited).unwrap_or(if kind == Kind::Module { Public } else { silent })
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
                || outer.is_some_and(|outer| outer.kind == Kind::Module && outer.visibility == Public);
            if exported { Public } else { Private }
        }
        Language::C | Language::Cpp => {
            let hidden = words(before_name).any(|word| word == "static")
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

/// Words of a definition's beginning that lie in no brackets: not what annotations are given.
fn words(before_name: &str) -> impl Iterator<Item = &str> {
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

/// By a word that most languages share. The strictest counts: `protected internal`, `private(set)`.
fn said(before_name: &str) -> Option<Visibility> {
    words(before_name)
        .filter_map(|word| match word {
            "public" | "open" | "export" => Some(Public),
            "protected" | "internal" | "package" => Some(Restricted),
            "private" | "fileprivate" | "file" => Some(Private),
            _ => None,
        })
        .next()
}

fn rust(kind: Kind, before_name: &str, outer: Option<&Symbol>) -> Option<Visibility> {
    let word = before_name.trim_start();
    if let Some(rest) = word.strip_prefix("pub") {
        if rest.starts_with('(') {
            return Some(Restricted);
        }
        if rest.starts_with(char::is_whitespace) {
            return Some(Public);
        }
    }
    // What a trait asks for is as public as the trait.
    let of_trait = outer.is_some_and(|outer| {
        outer.kind == Kind::Impl && (outer.signature.contains(" for ") || outer.signature.ends_with(" for"))
    });
    match kind {
        Kind::Impl => Some(Unknown),
        _ if of_trait => Some(Public),
        _ => None,
    }
}

fn python(name: &str) -> Visibility {
    let special = name.starts_with("__") && name.ends_with("__");
    if name.starts_with('_') && !special { Private } else { Public }
}

/// Whether a node says who may use others than what it stands at.
pub(crate) fn is_mark(language: Language, node: Node<'_>, text: &str) -> bool {
    match language {
        Language::Ruby => {
            let written = text.get(node.byte_range()).unwrap_or_default();
            ruby_word(written).is_some()
        }
        _ => true,
    }
}

/// The word that a mark of Ruby begins with, and what it says.
fn ruby_word(written: &str) -> Option<(Visibility, &str)> {
    let word = written.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let said = match word {
        "private" | "private_class_method" | "private_constant" => Private,
        "protected" => Restricted,
        "public" => Public,
        _ => return None,
    };
    Some((said, written.get(word.len()..).unwrap_or_default().trim_start_matches('(').trim()))
}

/// Who may use what the marks speak of.
pub(crate) fn apply(language: Language, marks: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    match language {
        Language::Cpp | Language::Ruby => by_place(language, marks, text, symbols),
        Language::JavaScript | Language::TypeScript | Language::Tsx => exported(marks, text, symbols),
        _ => {}
    }
}

/// A type whose end hasn't come yet, and who may use what is defined in it from here on.
struct Open {
    symbol: usize,
    end: usize,
    now: Visibility,
}

/// Marks that hold for what follows them in the same type.
fn by_place(language: Language, marks: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    let mut open: Vec<Open> = Vec::new();
    // What the file itself says, outside of any type.
    let mut outside = Public;
    let mut marks = marks.iter().peekable();
    for at in 0..symbols.len() {
        let Some((start, end, kind, inside)) = symbols
            .get(at)
            .map(|symbol| (symbol.definition.start, symbol.definition.end, symbol.kind, symbol.inside))
        else {
            return;
        };
        while let Some(mark) = marks.next_if(|mark| mark.start_byte() < start) {
            open.retain(|one| one.end > mark.start_byte());
            let (before, inside) = (at, open.last().map(|one| one.symbol));
            if let Some(said) = says(language, *mark, text, symbols, before, inside) {
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
        let taking = kind != Kind::Variant && (language == Language::Cpp || kind == Kind::Method);
        if let (Some(symbol), Some(own), true) = (symbols.get_mut(at), own, taking) {
            symbol.visibility = own;
        }
        if kind.is_type() || kind == Kind::Module {
            let now = if language == Language::Cpp && kind == Kind::Class { Private } else { Public };
            open.push(Open { symbol: at, end, now });
        }
    }
    // Marks after the last definition name what came before them; those around one speak of it.
    for mark in marks {
        open.retain(|one| one.end > mark.start_byte());
        says(language, *mark, text, symbols, symbols.len(), open.last().map(|one| one.symbol));
    }
    if language == Language::Ruby {
        around(text, symbols);
    }
}

/// What a mark says of all that follows; or else what it says of the symbols that it names is written down.
fn says(
    language: Language,
    mark: Node<'_>,
    text: &str,
    symbols: &mut [Symbol],
    before: usize,
    inside: Option<usize>,
) -> Option<Visibility> {
    let written = text.get(mark.byte_range()).unwrap_or_default();
    if language == Language::Cpp {
        return said(written);
    }
    let (said, rest) = ruby_word(written)?;
    if rest.is_empty() {
        // A name alone in its line, not one of a call's.
        let alone = mark.kind() == "identifier" && is_alone(text, mark);
        return alone.then_some(said);
    }
    let names: BTreeSet<&str> = rest
        .split(|c: char| c == ',' || c.is_whitespace() || c == ')')
        .filter_map(|name| name.strip_prefix(':').or_else(|| name.strip_prefix('"')))
        .map(|name| name.trim_end_matches('"'))
        .collect();
    if !names.is_empty() {
        let earlier = symbols.get_mut(..before).unwrap_or_default().iter_mut().rev().take(MAX_BACK);
        for symbol in earlier.filter(|symbol| symbol.inside == inside) {
            if names.contains(symbol.name.as_str()) {
                symbol.visibility = said;
            }
        }
    }
    None
}

fn is_alone(text: &str, node: Node<'_>) -> bool {
    let after = text.get(node.end_byte()..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
    line_before(text, node.start_byte()).is_some_and(str::is_empty)
        && (after.is_empty() || after.starts_with(['\n', '#']))
}

/// What stands before a place in its line, without blanks around it. Nothing where that is far more than a word.
fn line_before(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(MAX_LINE_BEFORE));
    let near = text.get(start..at)?;
    let line = near.rfind('\n').and_then(|end| near.get(end + 1..));
    line.or_else(|| (start == 0).then_some(near)).map(str::trim)
}

/// `private def a`.
fn around(text: &str, symbols: &mut [Symbol]) {
    for symbol in symbols.iter_mut().filter(|symbol| symbol.kind == Kind::Method) {
        let line = line_before(text, symbol.definition.start).unwrap_or_default();
        if let Some((said, "")) = ruby_word(line) {
            symbol.visibility = said;
        }
    }
}

/// Names that are exported apart from their definition; and nothing is private in a text that exports nothing that way:
/// it isn't a module.
fn exported(marks: &[Node<'_>], text: &str, symbols: &mut [Symbol]) {
    let names: BTreeSet<&str> = marks
        .iter()
        .map(|mark| {
            let written = text.get(mark.byte_range()).unwrap_or_default();
            let whole = match mark.kind() {
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
        if marks.is_empty() {
            symbol.visibility = Unknown;
        } else if names.contains(symbol.name.as_str()) {
            symbol.visibility = Public;
        }
    }
}
