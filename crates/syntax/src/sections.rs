//! Documents: their sections, the names in these that look like code, and the files that they link
//! to.
//!
//! Markdown, reStructuredText and AsciiDoc are read line by line, without a grammar: a heading is
//! recognised by a line and the one after it.

mod asciidoc;
mod comments;
mod headings;
mod markdown;
mod mentions;
mod rst;

use crate::imports::{Import, MAX_IMPORTS, local_file};
use crate::language::Language;
use crate::symbol::{MAX_SIGNATURE_BYTES, Symbol, SymbolKind, Visibility};
use crate::syntax_analysis::SyntaxAnalysis;

use headings::{Heading, Headings, Line, MAX_LINE_BYTES, split_lines};
pub use headings::{MAX_MENTIONS, MAX_SECTIONS, Section};

pub(crate) use comments::{DocPosition, read_doc_sections as of_comments};

/// Analyses a document or a text of SQL; `None` for languages with a grammar.
pub(crate) fn analyse(language: Language, text: &str) -> Option<SyntaxAnalysis> {
    let lines = match language {
        Language::Markdown | Language::Rst | Language::AsciiDoc => split_lines(text),
        Language::Sql => return Some(crate::sql::analyse(text)),
        _ => return None,
    };
    let outline = match language {
        Language::Rst => rst::read_headings(&lines),
        Language::AsciiDoc => asciidoc::read_headings(&lines),
        _ => markdown::read_headings(&lines),
    };
    let (sections, symbols) = sections_and_symbols(text, &lines, &outline);
    let imports = find_links(language, &lines, &outline.code);
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
            signature: words
                .get(..words.floor_char_boundary(MAX_SIGNATURE_BYTES))
                .unwrap_or_default()
                .to_owned(),
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

/// Returns the files that a document links to or includes.
fn find_links(language: Language, lines: &[Line<'_>], code: &[bool]) -> Vec<Import> {
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
        let line = line.text.get(..line.text.floor_char_boundary(MAX_LINE_BYTES)).unwrap_or_default();
        match language {
            Language::Rst => rst::visit_links(line, &mut add),
            Language::AsciiDoc => asciidoc::visit_links(line, &mut add),
            _ => markdown::visit_links(line, &mut add),
        }
    }
    found
}
