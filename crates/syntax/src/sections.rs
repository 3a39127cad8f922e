//! Documents: their parts under headings, the names in these that look like code, and the files that they link to.
//!
//! Markdown, reStructuredText and AsciiDoc are read line by line, without a grammar: a heading is told by a line and the
//! one after it, whatever stands between.

mod asciidoc;
mod comments;
mod markdown;
mod mentions;
mod rst;

use std::ops::Range;

use crate::facts::Facts;
use crate::imports::{Import, MAX_IMPORTS, local_file};
use crate::language::Language;
use crate::outline::{Kind, MAX_SIGNATURE, Symbol, Visibility};

pub(crate) use comments::{Said, read as of_comments};

/// Sections of one document: what has more is generated.
pub const MAX_SECTIONS: usize = 20_000;
/// Names in one section.
pub const MAX_MENTIONS: usize = 200;
/// Bytes of a line that are looked at for names and links: longer ones aren't written by people.
const MAX_LINE: usize = 4_000;
/// Bytes of a heading.
const MAX_HEADING: usize = 300;

/// A part of a document under its heading, or what a comment says of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// The heading's words; of a comment, the path of the symbol that it is about, or nothing for the whole file's.
    pub heading: String,
    /// 1 is the outermost.
    pub level: u8,
    /// Its first line, counted from 1.
    pub first_line: u32,
    /// How many lines it has, with what lies in it.
    pub lines: u32,
    /// Names that look like code, in its heading and its own words, not in those of the sections in it. Those of several
    /// parts have dots between them, whatever the text has.
    pub mentions: Vec<String>,
}

/// A heading where it stands.
struct Heading {
    level: u8,
    /// The bytes of its words.
    words: Range<usize>,
    /// Where its first line begins, which may be a line above its words.
    start: usize,
    /// The line of `start`, counted from 0.
    line: usize,
    /// The line of its words, counted from 0.
    words_line: usize,
}

/// A line of a document.
#[derive(Clone, Copy)]
struct Line<'t> {
    /// Where it begins.
    start: usize,
    /// Its text without the break.
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

/// What a format's reader found.
struct Outline {
    headings: Vec<Heading>,
    /// Lines that are code, by their number.
    code: Vec<bool>,
}

/// What a document or a text of SQL tells. Nothing for languages that have a grammar.
pub(crate) fn read(language: Language, text: &str) -> Option<Facts> {
    let lines = match language {
        Language::Markdown | Language::Rst | Language::AsciiDoc => lines(text),
        Language::Sql => return Some(crate::sql::read(text)),
        _ => return None,
    };
    let outline = match language {
        Language::Rst => rst::read(&lines),
        Language::AsciiDoc => asciidoc::read(&lines),
        _ => markdown::read(&lines),
    };
    let (sections, symbols) = parts(text, &lines, &outline);
    let imports = links(language, &lines, &outline.code);
    Some(Facts { sections, symbols, imports, ..Facts::default() })
}

/// Sections and the same as symbols.
fn parts(text: &str, lines: &[Line<'_>], outline: &Outline) -> (Vec<Section>, Vec<Symbol>) {
    let headings = &outline.headings;
    let mut sections = Vec::with_capacity(headings.len() + 1);
    let mut symbols: Vec<Symbol> = Vec::with_capacity(headings.len());
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let first = headings.first().map_or(lines.len(), |heading| heading.line);
    let own = |from: usize, to: usize| mentions::of(lines, &outline.code, from..to);
    // What stands before the first heading.
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
    let ends = ends(headings, lines.len());
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
            kind: Kind::Heading,
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

/// Where each section ends: the line of the next heading that is no deeper.
fn ends(headings: &[Heading], last: usize) -> Vec<usize> {
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

impl Outline {
    fn new(lines: usize) -> Self {
        Self { headings: Vec::new(), code: vec![false; lines] }
    }

    fn is_code(&mut self, line: usize) {
        if let Some(code) = self.code.get_mut(line) {
            *code = true;
        }
    }

    /// Adds a heading whose words are a part of a line.
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

/// Files that a document links to or takes in.
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
