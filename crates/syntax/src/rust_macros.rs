//! Rust's macros around items: `cfg_rt! { pub fn spawn() {} }`.
//!
//! The grammar reads what stands in a macro's braces as tokens, and the definitions would be lost.
//! Macros that only add an attribute to their items, or read their fields, are recognised by their
//! names and their lines, and blanked before parsing. Only bytes of the macros change, so positions
//! stay the same.

use std::ops::Range;

/// Prefixes of the names of macros that compile their items for some targets or features only.
const CONDITIONAL_MACRO_PREFIXES: [&str; 2] = ["cfg_", "if_"];
/// The macro whose braces have conditions between items, not items.
const CFG_IF_MACRO: &str = "cfg_if";
/// Other macros with items in their braces.
const ITEM_MACROS: [&str; 1] = ["pin_project"];
/// Keywords that items begin with.
const ITEM_KEYWORDS: [&str; 13] = [
    "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "struct", "trait", "type", "unsafe",
    "use",
];
/// Maximum nesting of such macros.
const MAX_DEPTH: usize = 8;

/// A macro whose end isn't found yet.
struct OpenMacro<'a> {
    /// The blanks before it.
    indent: &'a str,
    head: Range<usize>,
    /// True once its first item was seen.
    has_items: bool,
}

/// Returns the ranges of the macros' names with the opening braces, and of their closing braces, in
/// text order.
pub(crate) fn macros_around_items(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open) = (Vec::new(), Vec::<OpenMacro<'_>>::new());
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let word = line.trim();
        let start = at + (line.len() - line.trim_start().len());
        let indent = text.get(at..start).unwrap_or_default();
        at += line.len();
        if open.last().is_some_and(|last| word == "}" && last.indent == indent) {
            if let Some(last) = open.pop().filter(|last| last.has_items) {
                found.extend([last.head, start..start + 1]);
            }
            continue;
        }
        let is_macro = is_item_macro(word);
        let Some(last) = open.last_mut() else {
            if is_macro && indent.is_empty() {
                open.push(OpenMacro { indent, head: start..start + word.len(), has_items: false });
            }
            continue;
        };
        if !last.has_items && !word.is_empty() && !word.starts_with(['/', '#', '*']) {
            last.has_items = is_macro || ITEM_KEYWORDS.contains(&first_word(word));
            if !last.has_items {
                open.pop();
                continue;
            }
        }
        if is_macro && last.indent.len() < indent.len() && open.len() < MAX_DEPTH {
            open.push(OpenMacro { indent, head: start..start + word.len(), has_items: false });
        }
    }
    found.sort_unstable_by_key(|range| range.start);
    found
}

/// Returns true for the line `name! {` of a macro whose braces have items.
fn is_item_macro(line: &str) -> bool {
    let name = line.strip_suffix('{').and_then(|head| head.trim_end().strip_suffix('!'));
    name.is_some_and(|name| {
        ITEM_MACROS.contains(&name)
            || name != CFG_IF_MACRO
                && CONDITIONAL_MACRO_PREFIXES.iter().any(|start| name.starts_with(start))
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_told_by_name_and_lines() {
        let found = |text: &'static str| -> Vec<&str> {
            macros_around_items(text).into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(
            found("cfg_rt! {\n    /// It.\n    #[cold]\n    pub fn f() {\n    }\n}\n"),
            ["cfg_rt! {", "}"]
        );
        assert_eq!(
            found("cfg_rt! {\n    cfg_net! {\n        fn f() {}\n    }\n    fn g() {}\n}\nfn h() {}\n"),
            ["cfg_rt! {", "cfg_net! {", "}", "}"]
        );
        assert_eq!(found("pin_project! {\r\n    struct A {}\r\n}\r\n"), ["pin_project! {", "}"]);
        for text in [
            "cfg_if! {\n    if #[cfg(x)] {\n    }\n}\n",
            "fn f() {\n    cfg_rt! {\n        use a;\n    }\n}\n",
            "cfg_rt! {\n    1 + 1\n}\n",
            "cfg_rt! {\n    fn f() {}\n",
            "bitflags! {\n    pub struct A: u32 {}\n}\n",
            "cfg_rt! {}\n",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
