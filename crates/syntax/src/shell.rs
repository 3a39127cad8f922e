//! What a shell command consists of: its grammar (bash's, which reads what POSIX shells read) by tree-sitter, and from
//! its tree a form of our own, with quotes taken away and with what can't be known before it runs marked as such.
//!
//! A parser that recovers from errors may take a text for something else than a shell does, and the shell that
//! will run it may be bash or a plain POSIX one. So every token of the tree is held against the text: words are read
//! once more here by the shell's own rules, and between two tokens there may be nothing but blanks. Whatever doesn't
//! fit, an error of the grammar, what this form has no place for, and what shells read differently in a way that
//! matters makes the [`Script`] [`unclear`](Script::unclear), and says why.
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

use std::fmt;

mod braces;
mod convert;
mod document;
mod expansion;
mod grammar;
mod plain;
mod scan;

/// Longer texts are not parsed: no command that anybody reads is that long.
pub const MAX_BYTES: usize = 32 * 1024;
/// How deep statements and substitutions may lie in one another. People's commands stay below ten.
const MAX_DEPTH: usize = 60;
/// Signs of pipelines in one text. The grammar's work on them grows with their square where the last one is cut off.
const MAX_PIPES: usize = 400;

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// What it runs, in order; not all of it when it is unclear.
    pub statements: Vec<Statement>,
    /// Why that is not all there is to it, if so.
    pub unclear: Option<Unclear>,
    /// Names of the variables that `$((…))` in it computes with. bash takes their values for arithmetic too, in which
    /// a subscript runs commands: it is no more than this text only where these are numbers.
    pub computed: Vec<String>,
    /// How much work the parser had, in its own units; for tests of how that grows.
    pub steps: usize,
}

/// Why a text isn't understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclear {
    /// It is longer than [`MAX_BYTES`].
    Long,
    /// The grammar has no reading of it, or too many.
    Grammar,
    /// The grammar's reading isn't the shell's.
    Reading,
    /// A character that isn't seen, or looks like another.
    Character(char),
    /// Its parts lie in one another too deep.
    Depth,
    /// It has something that shells read differently.
    Dialect(&'static str),
    /// It has something that isn't taken apart.
    Form(&'static str),
    /// A quote isn't closed.
    Quote,
    /// There is nothing in it.
    Empty,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "it is longer than {MAX_BYTES} bytes"),
            Self::Grammar => f.write_str("it is not what a shell's grammar expects"),
            Self::Reading => f.write_str("shells may read it in more than one way"),
            Self::Character(character) if character.is_control() => {
                write!(f, "it has a control character, {}", character.escape_default())
            }
            Self::Character(character) => {
                write!(f, "it has a character that isn't what it seems, {}", character.escape_unicode())
            }
            Self::Depth => f.write_str("its parts lie in one another too deep"),
            Self::Dialect(what) => write!(f, "shells differ about {what} in it"),
            Self::Form(what) => write!(f, "{what} in it can do anything"),
            Self::Quote => f.write_str("a quote in it is not closed"),
            Self::Empty => f.write_str("a command in it is empty"),
        }
    }
}

/// A command, or several under one roof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// A program with its arguments; or assignments or redirections alone.
    Simple(Simple),
    /// Commands of which each reads what the one before it writes.
    Pipeline(Vec<Statement>),
    /// A subshell, a group, a loop, a condition.
    Compound(Compound),
    /// A function is given a name.
    Function {
        /// The name.
        name: String,
        /// What runs when it is called.
        body: Vec<Statement>,
    },
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simple {
    /// What stands before the program; for the whole shell where there is no program.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Where its input comes from and its output goes.
    pub redirects: Vec<Redirect>,
}

/// What a [`Compound`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompoundKind {
    /// `( … )`
    Subshell,
    /// `{ … }`
    Group,
    /// `for x in …; do …; done`, and `select`.
    For,
    /// `while …; do …; done`, and `until`.
    While,
    /// `if …; then …; fi`
    If,
    /// `case … in …) …;; esac`
    Case,
}

/// Statements under one roof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    /// What it is.
    pub kind: CompoundKind,
    /// The variable of a `for`.
    pub variable: Option<String>,
    /// What a `for` goes through; what a `case` looks at, and its patterns.
    pub words: Vec<Word>,
    /// Conditions and bodies, in order.
    pub body: Vec<Statement>,
    /// Where the input of all comes from and the output of all goes.
    pub redirects: Vec<Redirect>,
}

/// `name=value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Word,
}

/// What a [`Redirect`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`: reads a file.
    Input,
    /// `>`, `>>`, `>|`, `&>`, `&>>`: writes a file.
    Output,
    /// `<&`, `>&`: another name for a descriptor; a file where the target isn't a number or `-`.
    Duplicate,
    /// `<<`: reads the text that follows.
    Document,
    /// `<<<`: reads a word.
    Text,
}

/// Where input comes from or output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// What it does.
    pub kind: RedirectKind,
    /// The file, the descriptor or the text.
    pub target: Word,
}

/// One word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// What it is, quotes and escapes taken away; where it isn't known before it runs, how it is written.
    pub text: String,
    /// Whether it is known: no variable, substitution or pattern in it.
    pub known: bool,
    /// Whether it is exactly one word however it turns out: what isn't known of it is quoted.
    pub single: bool,
    /// Whether it may fall apart at blanks, or into none: an unquoted `$x` or substitution, `$@` and `"$@"`. A pattern
    /// becomes several words too, but each begins as the pattern does.
    pub splits: bool,
    /// Whether some shells read it differently: `$'…'`, and braces, which are expanded here.
    pub dialect: bool,
    /// Of a word that isn't known, what it is known to begin with.
    pub start: String,
    /// What its substitutions run.
    pub inner: Vec<Statement>,
}

impl Word {
    /// A word that is known.
    #[must_use]
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), known: true, single: true, ..Self::default() }
    }

    /// A word that isn't known before it runs.
    #[must_use]
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Takes a command or a script apart. Total for any text, in time linear in its length.
#[must_use]
pub fn parse(text: &str) -> Script {
    if text.len() > MAX_BYTES {
        return Script { unclear: Some(Unclear::Long), ..Script::default() };
    }
    if text.bytes().filter(|byte| *byte == b'|').count() > MAX_PIPES {
        return Script { unclear: Some(Unclear::Grammar), ..Script::default() };
    }
    if !grammar::has_plain_documents(text) {
        return Script { unclear: Some(Unclear::Form("a here-document")), ..Script::default() };
    }
    plain::script(text).unwrap_or_else(|| by_grammar(text))
}

/// The form of a text by the grammar, for any text within the bounds of [`parse`].
fn by_grammar(text: &str) -> Script {
    let mut steps = 0;
    let Some(tree) = grammar::tree(text, &mut steps) else {
        return Script { unclear: Some(Unclear::Grammar), steps, ..Script::default() };
    };
    Script { steps, ..convert::script(text, &tree) }
}
