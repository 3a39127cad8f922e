//! Building a segment from analyses of files.

use std::collections::BTreeMap;
use std::path::Path;

use super::block_list::BlockList;
use super::codec::{CountList, PlainList, UseList, pack_use, put_bytes, put_number};
use super::dictionary::{DictionaryBuilder, EncodedDictionary};
use super::invert::{DocumentOccurrence, MAX_SEGMENT_FILES, SortedTexts, WordPosting, trigram_dictionary};
use super::layout::{ByteSpan, DictionaryKind, FileRecord, SegmentParts, SymbolRecord};
use super::record_blocks::RecordWriter;
use super::write::SegmentContents;
use crate::IndexError;
use crate::analysis::{FileAnalysis, Import, Section, TermCount, Terms};
use crate::texts::Interner;

/// Collects files for a segment.
///
/// Data is collected in the order of the files, with a number for each word, and sorted by word at
/// the end: only each file's words are looked up in memory that isn't near, once each.
#[derive(Debug, Default)]
pub struct SegmentBuilder {
    files: Vec<FileRecord>,
    /// The parts, without the files' records, which are complete only at the end.
    parts: SegmentParts,
    data: RecordWriter,
    /// The names that each file uses, by number.
    names: Vec<Vec<u32>>,
    /// Each file's imports and sections.
    rest: Vec<Vec<u8>>,
    terms: Interner,
    /// By a cache's number of a term: its number here plus 1, or 0; and the identity of the cache.
    remembered: (u64, Vec<u32>),
    in_chunks: BlockList<WordPosting>,
    in_paths: BlockList<WordPosting>,
    in_symbols: BlockList<WordPosting>,
    /// Each file's trigrams, one file after the other, and where each file's end.
    trigrams: BlockList<u32>,
    trigram_ends: Vec<usize>,
    defined: Interner,
    definitions: BlockList<WordPosting>,
    used: Interner,
    uses: BlockList<WordPosting>,
    paths: Vec<(Vec<u8>, u32)>,
    weight: usize,
}

impl SegmentBuilder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns true if there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let postings = [&self.in_chunks, &self.in_paths, &self.in_symbols, &self.definitions, &self.uses];
        let postings: usize = postings.iter().map(|postings| postings.len()).sum();
        let interned = self.terms.memory_bytes() + self.defined.memory_bytes() + self.used.memory_bytes();
        let own = self.parts.memory_bytes()
            + self.data.memory_bytes()
            + self.weight
            + self.remembered.1.len() * size_of::<u32>();
        own + interned + postings * size_of::<WordPosting>() + self.trigrams.len() * size_of::<u32>()
    }

    /// Adds the analysis of a file.
    ///
    /// # Errors
    /// [`IndexError::TooMuch`] if the segment would exceed the limits of its format.
    pub fn add(&mut self, facts: &FileAnalysis) -> Result<(), IndexError> {
        let fits = u32::try_from(self.files.len()).ok().filter(|file| (*file as usize) < MAX_SEGMENT_FILES);
        let file = fits.ok_or(IndexError::TooMuch("files"))?;
        let (first_chunk, first_symbol) = (self.parts.chunk_count(), self.parts.symbol_count());
        self.add_terms(file, facts);
        self.add_symbols(facts)?;
        let names = self.add_references(file, facts);
        self.trigrams.extend_from_slice(&facts.trigrams);
        self.trigram_ends.push(self.trigrams.len());
        self.weight += names.len() * size_of::<u32>() + size_of::<FileRecord>();
        let mut rest = Vec::new();
        put_imports(&mut rest, &facts.imports);
        put_imports(&mut rest, &facts.path_uses);
        put_sections(&mut rest, &facts.sections);
        self.weight += rest.len();
        let path = append_path(&mut self.parts.paths, facts.path.as_bytes())?;
        let length = |counts: &[TermCount]| counts.iter().map(|count| count.times).sum();
        let record = FileRecord {
            path,
            stamp: facts.stamp,
            hash: facts.hash,
            content: facts.content,
            flags: facts.flags,
            language: facts.language,
            shallow: facts.shallow,
            lines: facts.lines,
            first_chunk,
            chunks: self.parts.chunk_count() - first_chunk,
            first_symbol,
            symbols: self.parts.symbol_count() - first_symbol,
            details: ByteSpan::default(),
        };
        let (path_length, symbol_length) = (length(&facts.path_counts), length(&facts.symbol_counts));
        self.parts.columns.push(&record, facts.path.as_bytes(), path_length, symbol_length);
        self.files.push(record);
        self.paths.push((facts.path.as_bytes().to_vec(), file));
        self.names.push(names);
        self.rest.push(rest);
        Ok(())
    }

    fn add_terms(&mut self, file: u32, facts: &FileAnalysis) {
        // The file's terms by their numbers here.
        let numbers = self.term_numbers(&facts.terms);
        let put = |into: &mut BlockList<WordPosting>, document: u32, counts: &[TermCount]| {
            let known = |count: &TermCount| Some((*numbers.get(count.term as usize)?, count.times));
            let some = counts.iter().filter_map(known);
            into.extend(some.map(|(key, more)| WordPosting::new(key, document, more)));
        };
        for chunk in &facts.chunks {
            put(&mut self.in_chunks, self.parts.chunk_count(), &chunk.counts);
            let length = chunk.counts.iter().map(|count| count.times).sum();
            self.parts.push_chunk(chunk.first_line, chunk.lines, length);
        }
        put(&mut self.in_paths, file, &facts.path_counts);
        put(&mut self.in_symbols, file, &facts.symbol_counts);
    }

    /// Returns the numbers of a file's terms. A term that comes from the same cache as before isn't
    /// looked up by its text again.
    fn term_numbers(&mut self, terms: &Terms) -> Vec<u32> {
        let (memory, own) = terms.cache_numbers();
        if self.remembered.0 != memory {
            self.remembered = (memory, Vec::new());
        }
        let known = &mut self.remembered.1;
        let most = own.iter().max().map_or(0, |most| *most as usize + 1);
        if known.len() < most {
            known.resize(most, 0);
        }
        let mut numbers = Vec::with_capacity(terms.len());
        for (term, own) in terms.iter().zip(own) {
            let Some(known) = known.get_mut(*own as usize) else { continue };
            if *known == 0 {
                *known = self.terms.intern(term) + 1;
            }
            numbers.push(*known - 1);
        }
        numbers
    }

    fn add_symbols(&mut self, facts: &FileAnalysis) -> Result<(), IndexError> {
        for symbol in &facts.symbols {
            let enclosing = enclosing_scope(facts, symbol.inside);
            let record = SymbolRecord {
                name: symbol.name.clone(),
                own_scope: if enclosing == symbol.scope { String::new() } else { symbol.scope.clone() },
                kind: symbol.kind,
                visibility: symbol.visibility,
                local: symbol.local,
                first_line: symbol.first_line,
                lines: symbol.lines,
                name_line: symbol.name_line,
                inside: symbol.inside,
                signature: symbol.signature.clone(),
                doc: symbol.doc.clone(),
            };
            let span = self.data.append(|data| record.write_to(data))?;
            let name = symbol.name.to_lowercase();
            let key = self.defined.intern(&name);
            self.definitions.push(WordPosting::new(key, self.parts.symbol_count(), 0));
            self.parts.symbols.extend_from_slice(&span.at.to_le_bytes());
        }
        Ok(())
    }

    fn add_references(&mut self, file: u32, facts: &FileAnalysis) -> Vec<u32> {
        let mut names: Vec<u32> = facts.names.iter().map(|name| self.used.intern(name)).collect();
        for reference in &facts.references {
            let Some(key) = names.get(reference.name as usize) else { continue };
            self.uses.push(WordPosting::new(*key, file, pack_use(reference.line, reference.kind)));
        }
        names.sort_unstable();
        names
    }

    /// Writes the segment to `path`, which must not exist; if `durable`, it is on disk afterwards.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn finish(mut self, path: &Path, durable: bool) -> Result<(), IndexError> {
        let used = SortedTexts::sort_texts(std::mem::take(&mut self.used).into_texts());
        self.add_details(&used.ranks)?;
        let Self { files, parts, .. } = &mut self;
        files.iter().for_each(|file| file.write_to(&mut parts.files));
        let terms = SortedTexts::sort_texts(std::mem::take(&mut self.terms).into_texts());
        let counted = |postings: BlockList<WordPosting>| {
            terms.build_dictionary(postings, |list, out| {
                let mut counts = CountList::default();
                list.iter().for_each(|one| counts.push(one.document, one.more));
                counts.write_to(out);
            })
        };
        let listed = |list: &[DocumentOccurrence], out: &mut Vec<u8>| {
            let mut plain = PlainList::with_buffer(std::mem::take(out));
            list.iter().for_each(|one| plain.push(one.document));
            *out = plain.bytes;
        };
        let chunks = counted(std::mem::take(&mut self.in_chunks))?;
        let paths = counted(std::mem::take(&mut self.in_paths))?;
        let symbols = counted(std::mem::take(&mut self.in_symbols))?;
        drop(terms);
        let trigrams = trigram_dictionary(std::mem::take(&mut self.trigrams), &self.trigram_ends)?;
        let defined = SortedTexts::sort_texts(std::mem::take(&mut self.defined).into_texts())
            .build_dictionary(std::mem::take(&mut self.definitions), listed)?;
        // A file's references are in the order of its lines.
        let used = used.build_dictionary(std::mem::take(&mut self.uses), |list, out| {
            let mut uses = UseList::with_buffer(std::mem::take(out));
            list.iter().for_each(|one| uses.push(one.document, one.more));
            *out = uses.bytes;
        })?;
        self.paths.sort_unstable();
        let words = [
            chunks,
            paths,
            symbols,
            trigrams,
            defined,
            used,
            build_dictionary(self.paths.iter().map(|(path, file)| {
                let mut list = PlainList::default();
                list.push(*file);
                (path.as_slice(), list.bytes)
            }))?,
            build_dictionary(group_by_name(&self.paths).into_iter().map(|(name, list)| (name, list.bytes)))?,
        ];
        debug_assert_eq!(DictionaryKind::ALL.len(), words.len());
        let mut parts = self.parts;
        (parts.data, parts.blocks) = self.data.finish()?;
        SegmentContents::new(parts, words).write(path, durable)
    }

    /// Writes each file's names, by their sorted positions, and the rest of its details.
    fn add_details(&mut self, rank: &[u32]) -> Result<(), IndexError> {
        let (names, rest) = (std::mem::take(&mut self.names), std::mem::take(&mut self.rest));
        for (at, (names, rest)) in names.into_iter().zip(rest).enumerate() {
            let ranked = names.iter().filter_map(|name| rank.get(*name as usize).copied()).collect();
            let span = self.data.append(|data| put_details(data, ranked, &rest))?;
            if let Some(file) = self.files.get_mut(at) {
                file.details = span;
            }
        }
        Ok(())
    }
}

/// Appends a path to the others.
pub(crate) fn append_path(paths: &mut Vec<u8>, path: &[u8]) -> Result<ByteSpan, IndexError> {
    let too_much = |_| IndexError::TooMuch("a segment's paths");
    let at = u32::try_from(paths.len()).map_err(too_much)?;
    paths.extend_from_slice(path);
    Ok(ByteSpan { at, len: u32::try_from(path.len()).map_err(too_much)? })
}

/// Writes a file's names by number, then its encoded imports and sections.
pub(crate) fn put_details(out: &mut Vec<u8>, mut names: Vec<u32>, rest: &[u8]) {
    names.sort_unstable();
    let mut list = PlainList::default();
    names.iter().for_each(|name| list.push(*name));
    put_bytes(out, &list.bytes);
    out.extend_from_slice(rest);
}

/// Returns the scope of symbols inside a symbol.
fn enclosing_scope(facts: &FileAnalysis, inside: Option<u32>) -> String {
    let outer = inside.and_then(|inside| facts.symbols.get(inside as usize));
    match outer {
        Some(outer) if outer.scope.is_empty() => outer.name.clone(),
        Some(outer) => format!("{}.{}", outer.scope, outer.name),
        None => String::new(),
    }
}

/// Groups files by the last part of their path, in ASCII lower case.
fn group_by_name(paths: &[(Vec<u8>, u32)]) -> BTreeMap<Vec<u8>, PlainList> {
    let mut files: Vec<(u32, &[u8])> = paths.iter().map(|(path, file)| (*file, path.as_slice())).collect();
    files.sort_unstable();
    let mut names: BTreeMap<Vec<u8>, PlainList> = BTreeMap::new();
    for (file, path) in files {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        names.entry(name.to_ascii_lowercase()).or_default().push(file);
    }
    names
}

fn build_dictionary<K: AsRef<[u8]>, L: AsRef<[u8]>>(
    sorted: impl Iterator<Item = (K, L)>,
) -> Result<EncodedDictionary, IndexError> {
    let mut builder = DictionaryBuilder::new();
    for (key, list) in sorted {
        builder.add(key.as_ref(), list.as_ref())?;
    }
    Ok(builder.finish())
}

fn put_imports(out: &mut Vec<u8>, imports: &[Import]) {
    put_number(out, imports.len() as u64);
    for import in imports {
        put_bytes(out, import.target.as_bytes());
        put_number(out, u64::from(import.line));
        put_number(out, (u64::from(import.up) << 1) | u64::from(import.relative));
        put_number(out, import.names.len() as u64);
        import.names.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    }
}

fn put_sections(out: &mut Vec<u8>, sections: &[Section]) {
    put_number(out, sections.len() as u64);
    for section in sections {
        put_bytes(out, section.heading.as_bytes());
        put_number(out, u64::from(section.level));
        put_number(out, u64::from(section.first_line));
        put_number(out, u64::from(section.lines));
        put_number(out, section.mentions.len() as u64);
        section.mentions.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    }
}
