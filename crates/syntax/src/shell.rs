//! Parsing of shell commands: tree-sitter's grammar of bash, which also reads POSIX shells, and a
//! form of our own made from its tree, without quotes and with everything unknown before the run
//! marked as such.
//!
//! A parser that recovers from errors may read a text differently than a shell does, and the shell
//! that will run it may be bash or a plain POSIX one. So every token of the tree is checked against
//! the text: words are read once more by the shell's own rules, and between two tokens only blanks
//! are allowed. Errors of the grammar, constructs that this form can't hold, and constructs on
//! which shells differ in a way that matters make the [`Script`] [`unclear`](Script::unclear), with
//! the reason.
//!
//! ```
//! use journeyman_syntax::shell::{Statement, parse};
//!
//! let script = parse("ls 'a b' | head -5");
//! assert_eq!(script.unclear, None);
//! let [Statement::Pipeline(commands)] = script.statements.as_slice() else { panic!() };
//! let Statement::Simple(first) = &commands[0] else { panic!() };
//! assert_eq!(first.words[1].text, "a b");
//! assert!(parse("ls 'a").unclear.is_some());
//! ```

mod bash_grammar;
mod braces;
mod convert;
mod expansion;
mod heredocs;
mod plain_script;
mod script;
mod tokens;
mod word_scanner;

pub use script::{
    Assignment, CompoundCommand, CompoundKind, MAX_BYTES, Redirect, RedirectKind, Script, SimpleCommand,
    Statement, UnclearReason, Word,
};

/// Maximum pipeline operators in one text. The grammar's work grows with their square where the
/// last one is cut off.
const MAX_PIPES: usize = 400;

/// Parses a command or a script. Total for any text, in time linear in its length.
#[must_use]
pub fn parse(text: &str) -> Script {
    if text.len() > MAX_BYTES {
        return Script { unclear: Some(UnclearReason::Long), ..Script::default() };
    }
    if text.bytes().filter(|byte| *byte == b'|').count() > MAX_PIPES {
        return Script { unclear: Some(UnclearReason::Grammar), ..Script::default() };
    }
    if !bash_grammar::has_plain_delimiters(text) {
        return Script { unclear: Some(UnclearReason::Form("a here-document")), ..Script::default() };
    }
    plain_script::parse_plain_script(text).unwrap_or_else(|| parse_by_grammar(text))
}

/// Parses any text within the bounds of [`parse`] by the grammar.
fn parse_by_grammar(text: &str) -> Script {
    let mut steps = 0;
    let Some(tree) = bash_grammar::parse_tree(text, &mut steps) else {
        return Script { unclear: Some(UnclearReason::Grammar), steps, ..Script::default() };
    };
    Script { steps, ..convert::convert_tree(text, &tree) }
}
