//! The JSON of answers from the index: `docs/index.schema.json` is generated from these types.

use journeyman_protocol::{ContextCategory, ContextShare, Tokens};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer of `jm search`, by the kind of results.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SearchAnswer {
    /// `--kind file` and `--kind symbol`.
    Ranked {
        /// Definitions of the name, where the query is a name; the best first.
        definitions: Vec<FoundDefinition>,
        /// Files, the best first; none with `--kind symbol`.
        files: Vec<FoundFile>,
        /// True if the limit left results out.
        more: bool,
        /// True if some files haven't been indexed yet.
        partial: bool,
    },
    /// `--kind doc`.
    Sections {
        /// Sections of documents and comments, the best first.
        sections: Vec<FoundSection>,
        /// True if the limit left results out.
        more: bool,
        /// True if some files haven't been indexed yet.
        partial: bool,
    },
    /// `--kind text`.
    Lines {
        /// Lines that match the pattern, by path and line.
        lines: Vec<FoundLine>,
        /// True if the limit left results out.
        more: bool,
        /// True if some files haven't been indexed yet.
        partial: bool,
    },
}

/// A definition that a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundDefinition {
    /// The file.
    pub path: String,
    /// The 1-based line of the name.
    pub line: u32,
    /// The kind, such as `function` or `class`.
    pub kind: &'static str,
    /// The name with the names of the enclosing symbols before it, joined by dots.
    pub name: String,
    /// The beginning of the definition up to its body, on one line; may be empty.
    pub signature: String,
    /// The way in which the name matches the query: `exact`, `but for case`, `beginning`,
    /// `first letters`, `one letter off` or `letters in order`.
    #[serde(rename = "match")]
    pub matched: &'static str,
}

/// A file that a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundFile {
    /// The file.
    pub path: String,
    /// The score, comparable within one answer.
    pub score: f32,
    /// The signals that count for the file, the strongest first.
    pub why: Vec<CountedSignal>,
    /// The passages that match, the best first.
    pub passages: Vec<FoundPassage>,
}

/// A signal that counts for a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CountedSignal {
    /// The signal's name.
    pub signal: &'static str,
    /// The strength, relative to the source file where the signal is strongest.
    pub strength: f32,
    /// The share of the score; all shares of a file add up to 1.
    pub share: f32,
}

/// A passage of a file that a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundPassage {
    /// The first line, 1-based.
    pub first_line: u32,
    /// The number of lines.
    pub lines: u32,
    /// The qualified name of the symbol around the passage.
    pub symbol: Option<String>,
    /// The score of the passage's words; 0 where the query mentions the line.
    pub score: f32,
    /// The lines that match best, in the order of the file.
    pub best: Vec<TextLine>,
}

/// A line of a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TextLine {
    /// The line, 1-based.
    pub line: u32,
    /// The text without white space around it, cut at 240 bytes.
    pub text: String,
}

/// A section that a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundSection {
    /// The section.
    #[serde(flatten)]
    pub place: SectionLines,
    /// True if the section names the symbol that the query is.
    pub names_it: bool,
    /// The score of the section's words, comparable within one answer; null if `names_it`.
    pub score: Option<f32>,
}

/// A section of a document, or a comment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectionLines {
    /// The file.
    pub path: String,
    /// The first line, 1-based.
    pub line: u32,
    /// The number of lines.
    pub lines: u32,
    /// The headings from the outermost to the section's own; for a comment, the name of the
    /// documented symbol.
    pub headings: Vec<String>,
}

/// A line that matches a pattern.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundLine {
    /// The file.
    pub path: String,
    /// The line, 1-based.
    pub line: u32,
    /// The text, cut at 400 bytes.
    pub text: String,
}

/// The answer of `jm refs`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RefsAnswer {
    /// The definitions of the name that lie in what stands before it, by path and line.
    pub definitions: Vec<NamedDefinition>,
    /// False if no definition lies in what stands before the name; then `definitions` has all of
    /// the name.
    pub qualifier_found: bool,
    /// The uses of the name, by path and line; other things of the name are among them.
    pub uses: Vec<NameUse>,
    /// The sections of documents and comments that name the definitions.
    pub documentation: Vec<SectionLines>,
    /// True if the limit left uses or sections out.
    pub more: bool,
    /// The number of uses and sections that the limit left out.
    pub left_out: usize,
}

/// A definition of a name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NamedDefinition {
    /// The file.
    pub path: String,
    /// The 1-based line of the name.
    pub line: u32,
    /// The kind, such as `function` or `class`.
    pub kind: &'static str,
    /// The names of the enclosing symbols, joined by dots; empty outside of any.
    pub scope: String,
    /// The text of the line; empty where the file can't be read.
    pub text: String,
}

/// A use of a name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NameUse {
    /// The file.
    pub path: String,
    /// The line, 1-based.
    pub line: u32,
    /// The qualified name of the symbol around the use.
    pub inside: Option<String>,
    /// The text of the line; empty where the file can't be read.
    pub text: String,
}

/// The answer of `jm symbols`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SymbolsAnswer {
    /// The file.
    pub path: String,
    /// The symbols, in the order of the file.
    pub symbols: Vec<FileSymbolEntry>,
}

/// A symbol of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileSymbolEntry {
    /// The name; of a section, the heading.
    pub name: String,
    /// The kind, such as `function` or `class`.
    pub kind: &'static str,
    /// The names of the enclosing symbols, joined by dots; empty outside of any.
    pub scope: String,
    /// The 1-based line of the name.
    pub line: u32,
    /// The first line with the symbol's comment, 1-based.
    pub first_line: u32,
    /// The number of lines.
    pub lines: u32,
    /// The beginning up to the body, on one line; may be empty.
    pub signature: String,
    /// True if the symbol is defined inside a function.
    pub local: bool,
    /// The sections that describe the symbol; absent in documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation: Option<Vec<LinkedSection>>,
    /// The symbols that the section names; only in documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<LinkedSymbol>>,
}

/// A section that describes a symbol.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinkedSection {
    /// The file.
    pub path: String,
    /// The first line, 1-based.
    pub line: u32,
    /// The headings from the outermost to the section's own; for a comment, the name of the
    /// documented symbol.
    pub headings: Vec<String>,
}

/// A symbol that a section names.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinkedSymbol {
    /// The name with the names of the enclosing symbols before it, joined by dots.
    pub name: String,
    /// The file.
    pub path: String,
    /// The 1-based line of the name.
    pub line: u32,
}

/// The answer of `jm deps`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DepsAnswer {
    /// The neighbours of a file.
    Files {
        /// The file.
        path: String,
        /// `dependencies`, or with `--reverse` `dependents`.
        direction: &'static str,
        /// The neighbours, nearest first.
        files: Vec<NeighbourFile>,
        /// The packages that the file uses; empty with `--reverse`.
        packages: Vec<String>,
        /// True if the limit left files out.
        more: bool,
        /// The number of files that the limit left out.
        left_out: usize,
        /// True if the graph has more files than were followed.
        cut: bool,
    },
    /// `--path-to`.
    Path {
        /// True if one of the files depends on the other.
        found: bool,
        /// True if the second file depends on the first one.
        reversed: bool,
        /// The steps of the shortest path; null if there is none.
        steps: Option<Vec<PathStep>>,
    },
    /// `--cycles`.
    Cycles {
        /// The cycles.
        cycles: Vec<FoundCycle>,
        /// True if the limit left cycles out.
        more: bool,
        /// The number of cycles that the limit left out.
        left_out: usize,
    },
}

/// A neighbour in the dependency graph.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeighbourFile {
    /// The file.
    pub path: String,
    /// The number of steps.
    pub distance: u32,
    /// The file from which the last step came.
    pub from: String,
    /// The reason of the last step.
    pub why: EdgeReason,
}

/// The reason why one file depends on another one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EdgeReason {
    /// The 1-based line of the import; null if names alone tie the files.
    pub line: Option<u32>,
    /// True if the file is a part of the other one, as a module of its parent.
    pub part: bool,
    /// The weight of names that only the other file defines: 1 is one such name.
    pub weight: f64,
    /// Names that the file uses and the other one defines.
    pub names: Vec<String>,
}

/// A step of a path in the dependency graph.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PathStep {
    /// The file that depends.
    pub from: String,
    /// The file that it depends on.
    pub to: String,
    /// The reason.
    pub why: EdgeReason,
}

/// Files that import each other in a circle.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundCycle {
    /// All files of the cycle.
    pub files: Vec<String>,
    /// The shortest circle among them; the first file is the last one too.
    pub round: Vec<String>,
}

/// The answer of `jm impact`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImpactAnswer {
    /// The changed files that exist.
    pub changed: Vec<String>,
    /// The changed files that are gone.
    pub gone: Vec<String>,
    /// The files that the change reaches, nearest first.
    pub affected: Vec<AffectedFile>,
    /// True if the limit left affected files out; tests are all in `tests`.
    pub more: bool,
    /// The number of affected files that the limit left out.
    pub left_out: usize,
    /// True if the graph has more files than were followed.
    pub cut: bool,
    /// True if the change was followed from file to file, because too much depends on it to go from
    /// symbol to symbol.
    pub by_files: bool,
    /// The test files that reach a changed file.
    pub tests: Vec<String>,
}

/// A file that a change reaches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AffectedFile {
    /// The file.
    pub path: String,
    /// The number of steps from a changed file.
    pub distance: u32,
    /// The files from a changed one to this one.
    pub way: Vec<String>,
    /// True for a test that is to be run.
    pub test: bool,
}

/// The answer of `jm map`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MapAnswer {
    /// The map.
    pub map: String,
    /// The estimated cost of the map, in tokens.
    pub tokens: u64,
    /// The number of files in the map.
    pub shown: usize,
    /// The number of files of the project.
    pub files: usize,
}

/// The answer of `jm context`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContextAnswer {
    /// The model, as `provider/name`; null if none is configured.
    pub model: Option<String>,
    /// The tokens of its window.
    pub window: Tokens,
    /// Estimated tokens of system prompt and first message.
    pub tokens: Tokens,
    /// The share of each category in the window.
    pub shares: Vec<ContextShare>,
    /// Everything that was weighed, in and out, by category.
    pub items: Vec<ContextPlanItem>,
    /// The first message.
    pub message: String,
}

/// Something that was weighed for the first request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContextPlanItem {
    /// Its category.
    pub category: ContextCategory,
    /// Its name: a path, with its first and last line where it is a part of a file.
    pub name: String,
    /// Its estimated cost in tokens; 0 if it wasn't counted.
    pub tokens: Tokens,
    /// The order in which its category gets room; 0 for what is always in.
    pub priority: u8,
    /// The likelihood that the task needs it, 0 to 1; null for what is always in.
    pub relevance: Option<f64>,
    /// The reason why it was weighed.
    pub why: String,
    /// `included`, `covered` (in already), `duplicate`, `no_room`, `too_little`, `unlikely` or
    /// `unreadable`.
    pub outcome: &'static str,
}

/// The answer of `jm why`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WhyAnswer {
    /// The file.
    pub path: String,
    /// The 1-based rank of the file; null if the query doesn't find it.
    pub rank: Option<usize>,
    /// The number of files that the query finds, at most 1,000.
    pub of: usize,
    /// The score, comparable within one answer; null if the query doesn't find the file.
    pub score: Option<f32>,
    /// All signals.
    pub signals: Vec<MeasuredSignal>,
    /// The passages that match, the best first.
    pub passages: Vec<FoundPassage>,
}

/// A signal of a file, whether it counts or not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MeasuredSignal {
    /// The signal's name.
    pub signal: &'static str,
    /// The strength as it was measured.
    pub raw: f32,
    /// The strength, relative to the source file where the signal is strongest; 0 if it doesn't
    /// count.
    pub strength: f32,
    /// The share of the score; all shares of a file add up to 1.
    pub share: f32,
}
