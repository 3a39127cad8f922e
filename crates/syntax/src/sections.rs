//! Documents: their sections, the names in these that look like code, and the files that they link
//! to.
//!
//! Markdown, reStructuredText and AsciiDoc are read line by line, without a grammar: a heading is
//! recognised by a line and the one after it.

mod asciidoc;
mod comments;
mod markdown;
mod mentions;
mod rst;

use std::ops::Range;

use crate::analysis::SyntaxAnalysis;
use crate::imports::{Import, MAX_IMPORTS, local_file};
use crate::language::Language;
use crate::outline::{MAX_SIGNATURE, Symbol, SymbolKind, Visibility};

pub(crate) use comments::{DocPosition, read as of_comments};

/// Maximum sections of one document. Documents with more are generated.
pub const MAX_SECTIONS: usize = 20_000;
/// Maximum mentions of one section.
pub const MAX_MENTIONS: usize = 200;
/// Maximum bytes of a line that are searched for names and links. Nobody writes longer lines.
const MAX_LINE: usize = 4_000;
/// Maximum bytes of a heading.
const MAX_HEADING: usize = 300;

/// A section of a document under its heading, or the doc comment of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// The heading's text; for a comment, the path of the documented symbol, or empty for the
    /// file's own comment.
    pub heading: String,
    /// Level of the heading; 1 is the outermost.
    pub level: u8,
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines, with subsections.
    pub lines: u32,
    /// Names that look like code, in the heading and in the section's own text, without its
    /// subsections. The parts of a qualified name are joined by dots, whatever the text has.
    pub mentions: Vec<String>,
}

/// A heading and its position.
struct Heading {
    level: u8,
    /// Byte range of its text.
    words: Range<usize>,
    /// Byte offset of its first line, which may be an overline.
    start: usize,
    /// Line of `start`, 0-based.
    line: usize,
    /// Line of its text, 0-based.
    words_line: usize,
}

/// A line of a document.
#[derive(Clone, Copy)]
struct Line<'t> {
    /// Byte offset of its beginning.
    start: usize,
    /// Its text without the line break.
    text: &'t str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|whole| {
            let line = Line { start, text: whole.trim_end_matches(['\n', '\r']) };
            start += whole.len();
            line
        })
        .collect()
}

/// Result of reading a document format.
struct Headings {
    headings: Vec<Heading>,
    /// For each line, true if it is code.
    code: Vec<bool>,
}

/// Analyses a document or a text of SQL; `None` for languages with a grammar.
pub(crate) fn analyse(language: Language, text: &str) -> Option<SyntaxAnalysis> {
    let lines = match language {
        Language::Markdown | Language::Rst | Language::AsciiDoc => lines(text),
        Language::Sql => return Some(crate::sql::analyse(text)),
        _ => return None,
    };
    let outline = match language {
        Language::Rst => rst::read(&lines),
        Language::AsciiDoc => asciidoc::read(&lines),
        _ => markdown::read(&lines),
    };
    let (sections, symbols) = sections_and_symbols(text, &lines, &outline);
    let imports = links(language, &lines, &outline.code);
    Some(SyntaxAnalysis { sections, symbols, imports, ..SyntaxAnalysis::default() })
}

/// Returns the sections, and the same as symbols.
fn sections_and_symbols(text: &str, lines: &[Line<'_>], outline: &Headings) -> (Vec<Section>, Vec<Symbol>) {
    let headings = &outline.headings;
    let mut sections = Vec::with_capacity(headings.len() + 1);
    let mut symbols: Vec<Symbol> = Vec::with_capacity(headings.len());
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let first = headings.first().map_or(lines.len(), |heading| heading.line);
    let own = |from: usize, to: usize| mentions::find_mentions(lines, &outline.code, from..to);
    // The text before the first heading.
    if lines.iter().take(first).any(|line| !line.text.trim().is_empty()) {
        sections.push(Section {
            heading: String::new(),
            level: 1,
            first_line: 1,
            lines: number(first),
            mentions: own(0, first),
        });
    }
    let mut open: Vec<(u8, usize)> = Vec::new();
    let ends = section_ends(headings, lines.len());
    for (at, heading) in headings.iter().enumerate() {
        let (Some(words), Some(end)) = (text.get(heading.words.clone()), ends.get(at).copied()) else {
            continue;
        };
        let next = headings.get(at + 1).map_or(lines.len(), |next| next.line);
        sections.push(Section {
            heading: words.to_owned(),
            level: heading.level,
            first_line: number(heading.line + 1),
            lines: number(end - heading.line),
            mentions: own(heading.words_line, next),
        });
        while open.last().is_some_and(|(level, _)| *level >= heading.level) {
            open.pop();
        }
        let inside = open.last().map(|(_, symbol)| *symbol);
        let outer = inside.and_then(|at| symbols.get(at));
        let end_byte = lines.get(end).map_or(text.len(), |line| line.start);
        let range = heading.start
            ..heading.start + text.get(heading.start..end_byte).unwrap_or_default().trim_end().len();
        open.push((heading.level, symbols.len()));
        symbols.push(Symbol {
            kind: SymbolKind::Heading,
            name: words.to_owned(),
            parents: outer
                .map(|outer| outer.parents.iter().chain([&outer.name]).cloned().collect())
                .unwrap_or_default(),
            lines: number(heading.line + 1)
                ..number(heading.line + 1 + text.get(range.clone()).unwrap_or_default().lines().count()),
            name_line: number(heading.words_line + 1),
            signature: words.get(..words.floor_char_boundary(MAX_SIGNATURE)).unwrap_or_default().to_owned(),
            doc: String::new(),
            visibility: Visibility::Unknown,
            local: false,
            full: range.clone(),
            definition: range,
            name_range: heading.words.clone(),
            inside,
        });
    }
    (sections, symbols)
}

/// Returns the end of each section: the line of the next heading that is no deeper.
fn section_ends(headings: &[Heading], last: usize) -> Vec<usize> {
    let mut ends = vec![last; headings.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, heading) in headings.iter().enumerate() {
        while let Some(before) = open.last().copied() {
            if headings.get(before).is_some_and(|before| before.level < heading.level) {
                break;
            }
            open.pop();
            if let Some(end) = ends.get_mut(before) {
                *end = heading.line;
            }
        }
        open.push(at);
    }
    ends
}

impl Headings {
    fn new(lines: usize) -> Self {
        Self { headings: Vec::new(), code: vec![false; lines] }
    }

    fn is_code(&mut self, line: usize) {
        if let Some(code) = self.code.get_mut(line) {
            *code = true;
        }
    }

    /// Adds a heading whose text is a part of a line.
    fn add(&mut self, level: usize, lines: &[Line<'_>], first: usize, words_line: usize, words: &str) {
        let (Some(line), Some(top)) = (lines.get(words_line), lines.get(first)) else { return };
        let words = words.get(..words.floor_char_boundary(MAX_HEADING)).unwrap_or(words).trim();
        let Some(lead) = line.text.find(words).filter(|_| !words.is_empty()) else { return };
        if self.headings.len() < MAX_SECTIONS {
            self.headings.push(Heading {
                level: u8::try_from(level).unwrap_or(u8::MAX),
                words: line.start + lead..line.start + lead + words.len(),
                start: top.start,
                line: first,
                words_line,
            });
        }
    }
}

/// Returns the files that a document links to or includes.
fn links(language: Language, lines: &[Line<'_>], code: &[bool]) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if code.get(at).copied().unwrap_or_default() {
            continue;
        }
        let mut add = |target: &str| {
            let target = local_file(target).filter(|_| found.len() < MAX_IMPORTS);
            found.extend(target.map(|target| Import {
                target: target.to_owned(),
                line: u32::try_from(at + 1).unwrap_or(u32::MAX),
                relative: true,
                ..Import::default()
            }));
        };
        let line = line.text.get(..line.text.floor_char_boundary(MAX_LINE)).unwrap_or_default();
        match language {
            Language::Rst => rst::links(line, &mut add),
            Language::AsciiDoc => asciidoc::links(line, &mut add),
            _ => markdown::links(line, &mut add),
        }
    }
    found
}
