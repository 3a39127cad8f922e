//! Tokens of code by their meaning, for surfaces that show code in colours.

use std::ops::Range;

use tree_sitter::Node;

use crate::language::Language;
use crate::node_kinds::is_comment_kind;
use crate::parse::parse;

/// Maximum bytes of a highlighted text: more code than a person reads at once.
pub const MAX_BYTES: usize = 256 << 10;
/// Maximum nodes between a call's function and its name, such as `a::b.c`.
const MAX_CALLEE_NAME_DEPTH: usize = 6;

/// The meaning of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenMeaning {
    /// A word of the language, or a constant such as `true`.
    Keyword,
    /// A text or a character.
    Text,
    /// A number.
    Number,
    /// A comment.
    Comment,
    /// A type.
    Type,
    /// A function that is defined or called, or the key of a value.
    Name,
}

/// Returns the tokens of a text that have a meaning, in order and without overlaps. A text that
/// isn't parsed has none.
#[must_use]
pub fn find_tokens(language: Language, text: &str) -> Vec<(Range<usize>, TokenMeaning)> {
    if text.len() > MAX_BYTES {
        return Vec::new();
    }
    let Ok(tree) = parse(language, text) else { return Vec::new() };
    // Inner nodes are painted over outer ones, such as an expression over the text that it is in.
    let mut painted: Vec<Option<TokenMeaning>> = vec![None; text.len()];
    let mut paint = |range: Range<usize>, kind| {
        if let Some(bytes) = painted.get_mut(range) {
            bytes.fill(kind);
        }
    };
    let mut cursor = tree.root().walk();
    loop {
        let node = cursor.node();
        let class = classify(node, cursor.field_name(), text);
        let is_whole = matches!(class, NodeClass::Whole(_));
        match class {
            NodeClass::Whole(kind) | NodeClass::Outer(kind) => paint(node.byte_range(), kind),
            NodeClass::Callee(name) => paint(name, Some(TokenMeaning::Name)),
            NodeClass::None => {}
        }
        if !is_whole && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return merge_equal_bytes(&painted);
            }
        }
    }
}

/// The classification of a node for highlighting.
enum NodeClass {
    /// Nothing of its own.
    None,
    /// The node with everything inside.
    Whole(Option<TokenMeaning>),
    /// The node but for what has a meaning inside.
    Outer(Option<TokenMeaning>),
    /// The function of a call, whose name is at this place.
    Callee(Range<usize>),
}

fn classify(node: Node<'_>, field: Option<&str>, text: &str) -> NodeClass {
    use TokenMeaning::{Comment, Keyword, Name, Number, Text, Type};
    let kind = node.kind();
    let is_leaf = node.child_count() == 0;
    if !node.is_named() {
        let word = text.get(node.byte_range()).unwrap_or_default();
        let is_word = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        return if is_leaf && is_word { NodeClass::Whole(Some(Keyword)) } else { NodeClass::None };
    }
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let parent = || node.parent().map_or("", |parent| parent.kind());
    if is_comment_kind(kind) {
        return NodeClass::Whole(Some(Comment));
    }
    if has(&["interpolation", "substitution", "expansion"]) {
        return NodeClass::Outer(None);
    }
    match (kind, field) {
        (_, Some("key")) | ("bare_key" | "quoted_key" | "property_name" | "attribute_name", _) => {
            return NodeClass::Whole(Some(Name));
        }
        ("command_name", _) => return NodeClass::Outer(Some(Name)),
        (
            "true" | "false" | "null" | "none" | "nil" | "self" | "this" | "super" | "crate" | "tag_name"
            | "boolean" | "undefined" | "mutable_specifier",
            _,
        ) => return NodeClass::Whole(Some(Keyword)),
        ("type_identifier" | "primitive_type" | "predefined_type" | "integral_type", _)
        | ("floating_point_type" | "void_type" | "boolean_type", _) => return NodeClass::Whole(Some(Type)),
        (_, Some("function" | "macro")) => {
            if let Some(name) = find_callee_name(node) {
                return NodeClass::Callee(name);
            }
        }
        (_, Some("name")) if is_leaf && kind.ends_with("identifier") => {
            let parent = parent();
            if ["function", "method", "constructor", "macro"].iter().any(|word| parent.contains(word)) {
                return NodeClass::Whole(Some(Name));
            }
        }
        // A definition whose end hasn't arrived has no node of its own.
        _ if is_leaf && kind.ends_with("identifier") && parent() == "ERROR" => {
            let before = node.prev_sibling().map_or("", |before| before.kind());
            if matches!(before, "fn" | "def" | "func" | "fun" | "function") {
                return NodeClass::Whole(Some(Name));
            }
        }
        _ => {}
    }
    if has(&["boolean_", "null_"]) && is_leaf {
        return NodeClass::Whole(Some(Keyword));
    }
    if has(&["string", "quote_scalar", "block_scalar", "regex", "heredoc_body", "attribute_value"])
        || matches!(kind, "char_literal" | "character_literal" | "rune_literal" | "simple_symbol")
    {
        return NodeClass::Outer(Some(Text));
    }
    let is_number = has(&["integer", "float", "number", "numeric"]) || kind == "int_literal";
    if is_number && !kind.ends_with("_type") { NodeClass::Outer(Some(Number)) } else { NodeClass::None }
}

/// Finds the name at the end of a call's function.
fn find_callee_name(function: Node<'_>) -> Option<Range<usize>> {
    let mut node = function;
    for _ in 0..MAX_CALLEE_NAME_DEPTH {
        let last = u32::try_from(node.named_child_count().saturating_sub(1)).ok()?;
        match node.named_child(last) {
            Some(child) => node = child,
            None => return node.kind().ends_with("identifier").then(|| node.byte_range()),
        }
    }
    None
}

/// Merges neighbouring bytes of the same meaning into tokens.
fn merge_equal_bytes(painted: &[Option<TokenMeaning>]) -> Vec<(Range<usize>, TokenMeaning)> {
    let mut tokens: Vec<(Range<usize>, TokenMeaning)> = Vec::new();
    for (at, kind) in painted.iter().enumerate().filter_map(|(at, kind)| Some((at, (*kind)?))) {
        match tokens.last_mut() {
            Some((range, last)) if range.end == at && *last == kind => range.end = at + 1,
            _ => tokens.push((at..at + 1, kind)),
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of a text with a letter for each meaning.
    fn shown(language: Language, text: &str) -> String {
        let letter = |kind| match kind {
            TokenMeaning::Keyword => 'k',
            TokenMeaning::Text => 't',
            TokenMeaning::Number => 'n',
            TokenMeaning::Comment => 'c',
            TokenMeaning::Type => 'T',
            TokenMeaning::Name => 'f',
        };
        let mut shown: Vec<char> = vec![' '; text.len()];
        for (range, kind) in find_tokens(language, text) {
            shown[range].fill(letter(kind));
        }
        shown.into_iter().collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn tokens_have_their_meanings() {
        for (language, text, expected) in [
            (
                Language::Rust,
                "pub fn one(a: u8) -> Shop { a.open(\"x\", 12) } // no",
                "kkk kk fff    TT     TTTT     ffff ttt  nn    ccccc",
            ),
            (Language::Rust, "pub fn one(a: u8) -> Shop {", "kkk kk fff    TT     TTTT"),
            (Language::Rust, "let s = format!(\"{}\", true);", "kkk     ffffff  tttt  kkkk"),
            (Language::Python, "def f(a):\n  return f\"a{b()}c\"", "kkk f       kkkkkk ttt f   tt"),
            (Language::JavaScript, "const a = `x${b}y`;", "kkkkk     tt    tt"),
            (Language::Go, "func (s *Shop) Open() int { return 1 }", "kkkk     TTTT  ffff   TTT   kkkkkk n"),
            (Language::Json, "{\"a\": [1, true, \"x\"]}", " fff   n  kkkk  ttt"),
            (Language::Toml, "a = \"b\"", "f   ttt"),
            (Language::Bash, "if true; then echo \"a $b\"; fi", "kk ffff  kkkk ffff ttt  t  kk"),
        ] {
            if language.is_built_in() {
                assert_eq!(shown(language, text), expected, "{text}");
            }
        }
        assert_eq!(find_tokens(Language::Markdown, "# a"), [], "there is no grammar");
        assert_eq!(find_tokens(Language::Rust, &"a ".repeat(MAX_BYTES)), [], "it is too long");
    }
}
