//! An index in memory: for tests, and for trees that are searched once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::corpus::{
    ChunkEntry, Corpus, Field, FieldTotals, FileEntry, LiveFile, NameCondition, PostingLists, SymbolEntry,
};
use super::document::Posting;
use crate::analysis::{FileAnalysis, IndexedSymbol, TermCount};

/// An index of some files in memory. Files keep the order in which they were added.
#[derive(Debug, Default)]
pub struct MemoryCorpus {
    files: Vec<Arc<FileAnalysis>>,
    chunks: Vec<ChunkEntry>,
    terms: HashMap<Box<str>, u32>,
    chunk_field: Postings,
    path_field: Postings,
    symbol_field: Postings,
    paths: HashMap<Box<[u8]>, u32>,
    /// File and position of each symbol.
    symbols: Vec<(u32, u32)>,
    names: BTreeMap<String, Vec<u32>>,
    basenames: HashMap<Box<[u8]>, Vec<u32>>,
}

/// The postings of one field.
#[derive(Debug, Default)]
struct Postings {
    by_term: HashMap<u32, Vec<(u32, u32)>>,
    lengths: Vec<u32>,
    total: u64,
}

impl Postings {
    fn push(&mut self, numbers: &[u32], counts: &[TermCount]) {
        let document = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let mut length = 0_u32;
        for TermCount { term, times } in counts {
            let Some(number) = numbers.get(*term as usize) else { continue };
            self.by_term.entry(*number).or_default().push((document, *times));
            length = length.saturating_add(*times);
        }
        self.lengths.push(length);
        self.total += u64::from(length);
    }
}

impl MemoryCorpus {
    /// Creates an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. A path is added once.
    pub fn add_file(&mut self, facts: impl Into<Arc<FileAnalysis>>) {
        let facts = facts.into();
        let file = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let mut numbers = Vec::with_capacity(facts.terms.len());
        for term in facts.terms.iter() {
            let next = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
            let number = match self.terms.get(term) {
                Some(number) => *number,
                None => *self.terms.entry(term.into()).or_insert(next),
            };
            numbers.push(number);
        }
        for chunk in &facts.chunks {
            self.chunk_field.push(&numbers, &chunk.counts);
            self.chunks.push(ChunkEntry { file, first_line: chunk.first_line, lines: chunk.lines });
        }
        self.path_field.push(&numbers, &facts.path_counts);
        self.symbol_field.push(&numbers, &facts.symbol_counts);
        for (number, symbol) in (0..).zip(&facts.symbols) {
            let own = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX);
            self.names.entry(symbol.name.to_lowercase()).or_default().push(own);
            self.symbols.push((file, number));
        }
        let path = facts.path.as_bytes();
        self.paths.insert(path.into(), file);
        self.basenames.entry(lowercase_basename(path)).or_default().push(file);
        self.files.push(facts);
    }

    fn postings_of(&self, field: Field) -> &Postings {
        match field {
            Field::Chunk => &self.chunk_field,
            Field::Path => &self.path_field,
            Field::Symbol => &self.symbol_field,
        }
    }

    fn posting_list(&self, field: Field, lists: &PostingLists) -> &[(u32, u32)] {
        let list = lists.0.first().and_then(|[term, ..]| self.postings_of(field).by_term.get(term));
        list.map(Vec::as_slice).unwrap_or_default()
    }
}

fn lowercase_basename(path: &[u8]) -> Box<[u8]> {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_ascii_lowercase().into()
}

fn to_symbol_entry(file: u32, symbol: &IndexedSymbol) -> SymbolEntry<'_> {
    SymbolEntry {
        file,
        name: &symbol.name,
        kind: symbol.kind,
        scope: &symbol.scope,
        first_line: symbol.first_line,
        lines: symbol.lines,
        name_line: symbol.name_line,
        signature: &symbol.signature,
        visibility: symbol.visibility,
        local: symbol.local,
    }
}

impl Corpus for MemoryCorpus {
    fn file_bound(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    fn chunk_bound(&self) -> u32 {
        u32::try_from(self.chunks.len()).unwrap_or(u32::MAX)
    }

    fn totals(&self, field: Field) -> FieldTotals {
        let field = self.postings_of(field);
        FieldTotals { documents: field.lengths.len() as u64, length: field.total }
    }

    fn find_posting_lists(&self, _: Field, term: &str) -> PostingLists {
        PostingLists(self.terms.get(term).map(|number| [*number, 0, 0]).into_iter().collect())
    }

    fn document_count(&self, field: Field, lists: &PostingLists) -> u64 {
        self.posting_list(field, lists).len() as u64
    }

    fn document_ranges(&self, field: Field) -> Vec<Range<u32>> {
        let all = 0..u32::try_from(self.postings_of(field).lengths.len()).unwrap_or(u32::MAX);
        std::iter::once(all).collect()
    }

    fn visit_postings(
        &self,
        field: Field,
        lists: &PostingLists,
        _: Range<u32>,
        visit: &mut dyn FnMut(&[Posting]),
    ) {
        let lengths = &self.postings_of(field).lengths;
        for (document, times) in self.posting_list(field, lists) {
            let length = lengths.get(*document as usize).copied().unwrap_or(0);
            visit(&[Posting { document: *document, times: *times, length }]);
        }
    }

    fn file(&self, file: u32) -> Option<FileEntry<'_>> {
        let facts = self.files.get(file as usize)?;
        let FileAnalysis { path, content, flags, language, lines, .. } = &**facts;
        let path = path.as_bytes();
        Some(FileEntry { path, content: *content, flags: *flags, language: *language, lines: *lines })
    }

    fn chunk(&self, chunk: u32) -> Option<ChunkEntry> {
        self.chunks.get(chunk as usize).copied()
    }

    fn visit_live_files(&self, visit: &mut dyn FnMut(LiveFile)) {
        for file in 0..self.file_bound() {
            let Some(purpose) = self.purpose(file) else { continue };
            visit(LiveFile { file, chunks: self.chunks_of(file), purpose });
        }
    }

    fn chunks_of(&self, file: u32) -> Range<u32> {
        let start = self.chunks.partition_point(|chunk| chunk.file < file);
        let of_file = self.chunks.get(start..).unwrap_or_default();
        let count = of_file.partition_point(|chunk| chunk.file == file);
        start as u32..(start + count) as u32
    }

    fn file_at(&self, path: &[u8]) -> Option<u32> {
        self.paths.get(path).copied()
    }

    fn visit_files_named(&self, name: &[u8], visit: &mut dyn FnMut(u32)) {
        if let Some(files) = self.basenames.get(name) {
            files.iter().for_each(|file| visit(*file));
        }
    }

    fn visit_symbols_named(&self, name: &str, visit: &mut dyn FnMut(u32, u32)) {
        for number in self.names.get(name).into_iter().flatten() {
            if let Some((file, _)) = self.symbols.get(*number as usize) {
                visit(*file, *number);
            }
        }
    }

    fn visit_symbol(&self, symbol: u32, show: &mut dyn FnMut(SymbolEntry<'_>)) {
        let Some((file, own)) = self.symbols.get(symbol as usize) else { return };
        let facts = self.files.get(*file as usize);
        if let Some(symbol) = facts.and_then(|facts| facts.symbols.get(*own as usize)) {
            show(to_symbol_entry(*file, symbol));
        }
    }

    fn visit_matching_names(&self, like: NameCondition<'_>, limit: usize, visit: &mut dyn FnMut(&str)) {
        self.names.keys().filter(|name| like.accepts(name)).take(limit).for_each(|name| visit(name));
    }

    fn visit_symbol_names_of(&self, file: u32, limit: usize, visit: &mut dyn FnMut(&str)) {
        let symbols = self.files.get(file as usize).into_iter().flat_map(|facts| &facts.symbols);
        let names = symbols.take(limit).filter(|symbol| !symbol.local).map(|symbol| symbol.name.as_str());
        names.for_each(visit);
    }

    fn visit_symbols_of(&self, file: u32, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let Some(facts) = self.files.get(file as usize) else { return };
        let mut symbols: Vec<&IndexedSymbol> = facts.symbols.iter().collect();
        symbols.sort_by_key(|symbol| symbol.first_line);
        symbols.into_iter().for_each(|symbol| visit(to_symbol_entry(file, symbol)));
    }
}
