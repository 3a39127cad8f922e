//! Analysis of one file.
//!
//! A pure function of a path and bytes that finds the content type of a file, its words in chunks,
//! its trigrams, and its symbols, references and imports. Hostile input costs bounded time and
//! space: lengths are bounded here and in [`journeyman_syntax`].

mod chunks;
mod content;
mod purpose;
mod test_program;
mod trigrams;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use journeyman_syntax::analysis::analyse;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::{Symbol, SymbolKind};

pub use content::MAX_FILE_BYTES;
pub(crate) use content::decode_utf16;
pub(crate) use purpose::purpose_of_file;
pub(crate) use test_program::is_test_program;

use crate::analysis::{
    Chunk, ContentType, FileAnalysis, FileStamp, IndexedSymbol, PurposeFlags, Reference, TermCount, Terms,
    UseKind,
};
use crate::texts::{Interner, Texts};
use crate::tokens::Tokenizer;
use trigrams::TrigramCollector;

/// Weight of the words of a file's name in each chunk; the words of its directories count once.
const FILE_NAME_WEIGHT: u32 = 2;
/// Maximum symbols of a file. Files with more are data.
const MAX_SYMBOLS: usize = 20_000;
/// Maximum bytes of a text that is parsed. Longer ones are data or generated; only their words are
/// indexed.
pub const MAX_PARSED_BYTES: usize = 2 << 20;
/// Maximum references of a file.
const MAX_REFERENCES: usize = 100_000;
/// Maximum imports of a file, and paths that it uses without one.
const MAX_IMPORTS: usize = 10_000;
/// Maximum sections of a document.
const MAX_SECTIONS: usize = 10_000;
/// Languages without references.
const LANGUAGES_WITHOUT_REFERENCES: [Language; 4] =
    [Language::Json, Language::Yaml, Language::Toml, Language::Html];
/// Kinds of symbols whose names aren't names of code: keys of a document.
const DOCUMENT_KEY_KINDS: [SymbolKind; 4] =
    [SymbolKind::Key, SymbolKind::Table, SymbolKind::Element, SymbolKind::Rule];

/// Analyses files. Used by one thread: it caches words, and reuses its tables.
#[derive(Debug, Default)]
pub struct Analyser {
    tokenizer: Tokenizer,
    trigrams: TrigramCollector,
    redactor: Arc<Redactor>,
}

impl Analyser {
    /// Creates an analyser with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an analyser that also leaves out the secrets of this redactor. Texts with the shape
    /// of a secret are always left out.
    #[must_use]
    pub fn with_redactor(redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..Self::default() }
    }

    /// Returns the analysis of a file whose content wasn't read: only its path has words.
    #[must_use]
    pub fn analyse_path_only(
        &mut self,
        path: &RelPath,
        stamp: FileStamp,
        content: ContentType,
    ) -> FileAnalysis {
        let mut facts = empty_analysis(path, stamp, content);
        facts.flags = purpose_of_file(&path.to_string(), "");
        self.tokenizer.begin_file();
        facts.path_counts = self.count_path_words(path);
        facts.terms = self.tokenizer.file_terms();
        facts
    }

    /// Analyses a file.
    #[must_use]
    pub fn analyse(&mut self, path: &RelPath, stamp: FileStamp, bytes: &[u8]) -> FileAnalysis {
        self.analyse_bytes(path, stamp, bytes, true)
    }

    /// Analyses a file without parsing it, in a fraction of the time.
    #[must_use]
    pub fn analyse_without_parsing(
        &mut self,
        path: &RelPath,
        stamp: FileStamp,
        bytes: &[u8],
    ) -> FileAnalysis {
        self.analyse_bytes(path, stamp, bytes, false)
    }

    fn analyse_bytes(
        &mut self,
        path: &RelPath,
        stamp: FileStamp,
        bytes: &[u8],
        parsed: bool,
    ) -> FileAnalysis {
        let (mut content, text) = content::decode_content(bytes);
        let (text, veiled) = blank_secrets(text, &self.redactor);
        let name = path.to_string();
        // Many people write a paragraph as one line.
        if content == ContentType::Minified && purpose::is_document(&name) && content::is_prose(&text) {
            content = ContentType::Text;
        }
        if !matches!(content, ContentType::Text | ContentType::Minified) {
            return self.analyse_path_only(path, stamp, content);
        }
        let mut facts = empty_analysis(path, stamp, content);
        facts.hash = *blake3::hash(bytes).as_bytes();
        facts.flags = PurposeFlags { veiled, ..purpose_of_file(&name, &text) };
        facts.language = Language::detect(&name, &text);
        let lines = LineStarts::of_text(&text);
        facts.lines = lines.line_count();
        self.tokenizer.begin_file();
        facts.path_counts = self.count_path_words(path);
        if content == ContentType::Text {
            facts.trigrams = self.trigrams.collect_trigrams(text.as_bytes());
            if parsed {
                add_syntax(&mut facts, &text);
            } else {
                facts.shallow = facts.language.is_some();
            }
            facts.symbol_counts = self.count_symbol_words(&facts.symbols);
            facts.chunks = self.chunks(path, &text, &lines, &facts);
        }
        facts.terms = self.tokenizer.file_terms();
        facts
    }

    fn count_path_words(&mut self, path: &RelPath) -> Vec<TermCount> {
        self.tokenizer.add_text(&path.to_string(), 1);
        self.tokenizer.finish_document()
    }

    fn count_symbol_words(&mut self, symbols: &[IndexedSymbol]) -> Vec<TermCount> {
        let named =
            symbols.iter().filter(|symbol| !symbol.local && !DOCUMENT_KEY_KINDS.contains(&symbol.kind));
        named.for_each(|symbol| self.tokenizer.add_text(&symbol.name, 1));
        self.tokenizer.finish_document()
    }

    fn chunks(&mut self, path: &RelPath, text: &str, lines: &LineStarts, facts: &FileAnalysis) -> Vec<Chunk> {
        let outer = facts.symbols.iter().filter(|symbol| !symbol.local && symbol.lines > 2);
        let starts: Vec<u32> = outer.map(|symbol| symbol.first_line).collect();
        let path = path.to_string();
        self.tokenizer.add_text(&path, 1);
        self.tokenizer.add_text(path.rsplit('/').next().unwrap_or_default(), FILE_NAME_WEIGHT);
        let common = self.tokenizer.finish_document();
        let mut chunks = Vec::new();
        for range in chunks::cut_at_symbols(facts.lines, &starts) {
            self.tokenizer.add_text(lines.text_of_lines(text, range.clone()), 1);
            self.tokenizer.add_counts(&common);
            let (first_line, lines) = (range.start, range.end - range.start);
            chunks.push(Chunk { first_line, lines, counts: self.tokenizer.finish_document() });
        }
        if chunks.is_empty() {
            self.tokenizer.add_counts(&common);
            chunks.push(Chunk { first_line: 1, lines: 0, counts: self.tokenizer.finish_document() });
        }
        chunks
    }
}

/// Blanks out the secrets of a text; returns true if the result isn't the whole text of the file.
/// Lines and columns stay the same; nothing of a secret becomes a term, a signature, or a trigram.
fn blank_secrets<'a>(text: Cow<'a, str>, redactor: &Redactor) -> (Cow<'a, str>, bool) {
    let secrets = redactor.find_secrets(&text);
    if secrets.is_empty() {
        let replaced = matches!(text, Cow::Owned(_)) && text.contains(char::REPLACEMENT_CHARACTER);
        return (text, replaced);
    }
    let mut bytes = text.into_owned().into_bytes();
    for secret in secrets {
        for byte in bytes.get_mut(secret).into_iter().flatten() {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    // Secrets begin and end between characters. If not, the whole text would be dropped.
    (Cow::Owned(String::from_utf8(bytes).unwrap_or_default()), true)
}

fn empty_analysis(path: &RelPath, stamp: FileStamp, content: ContentType) -> FileAnalysis {
    FileAnalysis {
        path: path.clone(),
        stamp,
        hash: [0; 32],
        content,
        flags: crate::analysis::PurposeFlags::default(),
        language: Language::from_path(&path.to_string()),
        shallow: false,
        lines: 0,
        terms: Terms::default(),
        chunks: Vec::new(),
        path_counts: Vec::new(),
        symbol_counts: Vec::new(),
        trigrams: Vec::new(),
        symbols: Vec::new(),
        names: Texts::default(),
        references: Vec::new(),
        imports: Vec::new(),
        path_uses: Vec::new(),
        sections: Vec::new(),
    }
}

fn add_syntax(facts: &mut FileAnalysis, text: &str) {
    let Some(language) = facts.language.filter(|_| text.len() <= MAX_PARSED_BYTES) else { return };
    let Ok(mut found) = analyse(language, text) else { return };
    found.symbols.truncate(MAX_SYMBOLS);
    let known = |inside: Option<u32>| inside.filter(|inside| (*inside as usize) < MAX_SYMBOLS);
    let mut used = ReferenceCollector::default();
    // The keys and words of a document aren't references.
    if !LANGUAGES_WITHOUT_REFERENCES.contains(&language) {
        for one in found.references.iter().take(MAX_REFERENCES) {
            used.add(one.name(text), one.line, known(one.inside), one.kind);
        }
    }
    facts.symbols = found.symbols.into_iter().map(to_indexed_symbol).collect();
    facts.imports = found.imports;
    facts.imports.truncate(MAX_IMPORTS);
    facts.path_uses = found.path_uses;
    facts.path_uses.truncate(MAX_IMPORTS);
    facts.sections = found.sections;
    facts.sections.truncate(MAX_SECTIONS);
    let room = MAX_REFERENCES.saturating_sub(used.references.len());
    let named = facts.sections.iter().flat_map(crate::docs::mention_references).take(room);
    named.for_each(|(name, line)| used.add(&name, line, None, UseKind::Annotation));
    (facts.names, facts.references) = (used.names.into_texts(), used.references);
}

/// Collects references, each name stored once.
#[derive(Default)]
struct ReferenceCollector {
    names: Interner,
    references: Vec<Reference>,
}

impl ReferenceCollector {
    fn add(&mut self, name: &str, line: u32, inside: Option<u32>, kind: UseKind) {
        self.references.push(Reference { name: self.names.intern(name), line, inside, kind });
    }
}

fn to_indexed_symbol(symbol: Symbol) -> IndexedSymbol {
    // The signature of a field, a key or a value is its line, which is read from the file.
    let told = matches!(symbol.kind, SymbolKind::Field | SymbolKind::Variant | SymbolKind::Variable)
        || DOCUMENT_KEY_KINDS.contains(&symbol.kind);
    IndexedSymbol {
        scope: symbol.parents.join("."),
        kind: symbol.kind,
        first_line: symbol.lines.start,
        lines: symbol.lines.end.saturating_sub(symbol.lines.start),
        name_line: symbol.name_line,
        signature: if told { String::new() } else { symbol.signature },
        doc: symbol.doc,
        visibility: symbol.visibility,
        local: symbol.local,
        inside: symbol.inside.and_then(|inside| u32::try_from(inside).ok()),
        name: symbol.name,
    }
}

/// Returns the text that chunks are cut from, without its secrets.
pub(crate) fn text_without_secrets<'a>(bytes: &'a [u8], redactor: &Redactor) -> Cow<'a, str> {
    blank_secrets(content::decode_content(bytes).1, redactor).0
}

/// The line starts of a text.
pub(crate) struct LineStarts {
    starts: Vec<usize>,
    end: usize,
}

impl LineStarts {
    pub(crate) fn of_text(text: &str) -> Self {
        let mut starts: Vec<usize> =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
        // No line follows the last line break.
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Self { starts, end: text.len() }
    }

    fn line_count(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the text of a range of lines, 1-based.
    pub(crate) fn text_of_lines<'a>(&self, text: &'a str, lines: Range<u32>) -> &'a str {
        let at = |line: u32| {
            let line = line.saturating_sub(1) as usize;
            self.starts.get(line).copied().unwrap_or(self.end)
        };
        text.get(at(lines.start)..at(lines.end)).unwrap_or_default()
    }
}
