//! The parsed form of a command or a script.

use std::fmt;

/// Maximum bytes of a text that is parsed. Nobody reads a longer command.
pub const MAX_BYTES: usize = 32 * 1024;

/// A parsed shell command or script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The statements in order; incomplete if the script is unclear.
    pub statements: Vec<Statement>,
    /// The reason why the statements may not be all that the script runs.
    pub unclear: Option<UnclearReason>,
    /// Names of the variables that `$((…))` computes with. bash evaluates their values as
    /// arithmetic too, where a subscript can run commands: the script runs no more than its text
    /// only if these are numbers.
    pub computed: Vec<String>,
    /// Work of the parser, in progress calls; for tests of its growth.
    pub steps: usize,
}

/// A reason why a text isn't understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclearReason {
    /// The text is longer than [`MAX_BYTES`].
    Long,
    /// The grammar has no reading of the text, or too many.
    Grammar,
    /// The grammar's reading isn't the shell's.
    Reading,
    /// A character that is invisible or looks like another.
    Character(char),
    /// Its parts are nested too deeply.
    Depth,
    /// A construct on which shells differ.
    Dialect(&'static str),
    /// A construct that isn't analysed.
    Form(&'static str),
    /// A quote isn't closed.
    Quote,
    /// An empty text.
    Empty,
}

impl fmt::Display for UnclearReason {
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

/// A simple command, a pipeline, or a compound command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// A program with its arguments; or only assignments or redirections.
    Simple(SimpleCommand),
    /// Commands, each of which reads the output of the one before it.
    Pipeline(Vec<Statement>),
    /// A subshell, a group, a loop, a condition.
    Compound(CompoundCommand),
    /// A function definition.
    Function {
        /// The name of the function.
        name: String,
        /// The statements that run when it is called.
        body: Vec<Statement>,
    },
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Assignments before the program; for the whole shell where there is no program.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Redirections of its input and output.
    pub redirects: Vec<Redirect>,
}

/// The kind of a [`CompoundCommand`].
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

/// A compound command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundCommand {
    /// The kind of the compound.
    pub kind: CompoundKind,
    /// The variable of a `for`.
    pub variable: Option<String>,
    /// The items of a `for`; the subject of a `case`, and its patterns.
    pub words: Vec<Word>,
    /// Conditions and bodies, in order.
    pub body: Vec<Statement>,
    /// Redirections of the input and output of the whole.
    pub redirects: Vec<Redirect>,
}

/// An assignment `name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The assigned value.
    pub value: Word,
}

/// The kind of a [`Redirect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`: reads a file.
    Input,
    /// `>`, `>>`, `>|`, `&>`, `&>>`: writes a file.
    Output,
    /// `<&`, `>&`: duplicates a descriptor; a file where the target isn't a number or `-`.
    Duplicate,
    /// `<<`: reads the text that follows.
    Document,
    /// `<<<`: reads a word.
    Text,
}

/// A redirection of input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The kind of the redirection.
    pub kind: RedirectKind,
    /// The file, the descriptor or the text.
    pub target: Word,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// Its text without quotes and escapes; as written where it isn't known before the run.
    pub text: String,
    /// True if the text is known: it has no variable, substitution or pattern.
    pub known: bool,
    /// True if it is exactly one word whatever its unknown parts stand for: they are quoted.
    pub single: bool,
    /// True if it may be split at blanks, or vanish: an unquoted `$x` or substitution, `$@` and
    /// `"$@"`. A pattern becomes several words too, but each begins as the pattern does.
    pub splits: bool,
    /// True if some shells read it differently: `$'…'`, and braces, which are expanded here.
    pub dialect: bool,
    /// For an unknown word, its known beginning.
    pub start: String,
    /// Statements that its substitutions run.
    pub inner: Vec<Statement>,
}

impl Word {
    /// Creates a known word.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), known: true, single: true, ..Self::default() }
    }

    /// Creates a word that isn't known before the run.
    #[must_use]
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
