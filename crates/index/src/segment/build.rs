//! Making a segment of what was found in files.

use std::collections::BTreeMap;
use std::path::Path;

use hashbrown::HashMap;

use super::codec::{CountList, PlainList, UseList, put, put_bytes};
use super::data::DataWriter;
use super::dictionary::{DictionaryBuilder, Made};
use super::layout::{ChunkRecord, FileRecord, Span, SymbolRecord, Words};
use super::write::Contents;
use crate::IndexError;
use crate::facts::{Count, FileFacts, Import, Section};

/// Bytes that a list in the making needs besides its own, about.
const LIST: usize = 64;

/// Gathers files for a segment.
#[derive(Debug, Default)]
pub struct Builder {
    files: Vec<FileRecord>,
    chunks: Vec<u8>,
    chunk_count: u32,
    symbols: Vec<u8>,
    symbol_count: u32,
    data: DataWriter,
    path_bytes: Vec<u8>,
    /// The names that each file uses, by their place in `used`.
    names: Vec<Vec<u32>>,
    /// Each file's imports and sections.
    rest: Vec<Vec<u8>>,
    terms: HashMap<String, Lists>,
    trigrams: HashMap<u32, PlainList>,
    defined: HashMap<String, PlainList>,
    used: HashMap<String, (u32, UseList)>,
    paths: Vec<(Vec<u8>, u32)>,
    weight: usize,
}

/// A term's lists in three kinds of documents.
#[derive(Debug, Default)]
struct Lists {
    chunks: CountList,
    paths: CountList,
    symbols: CountList,
}

impl Builder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many files it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether it has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// About how many bytes of memory it holds.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight + self.chunks.len() + self.symbols.len() + self.data.weight()
    }

    /// Adds what was found in a file.
    ///
    /// # Errors
    /// [`IndexError::TooMuch`] when the segment would become larger than its format allows.
    pub fn add(&mut self, facts: &FileFacts) -> Result<(), IndexError> {
        let file = u32::try_from(self.files.len()).map_err(|_| IndexError::TooMuch("files"))?;
        let (first_chunk, first_symbol) = (self.chunk_count, self.symbol_count);
        self.add_terms(file, facts);
        self.add_symbols(facts)?;
        let names = self.add_references(file, facts);
        for trigram in &facts.trigrams {
            self.trigrams.entry(*trigram).or_default().push(file);
        }
        self.weight += facts.trigrams.len() * 2 + names.len() * 4;
        let mut rest = Vec::new();
        put_imports(&mut rest, &facts.imports);
        put_sections(&mut rest, &facts.sections);
        self.weight += rest.len();
        let path = append_path(&mut self.path_bytes, facts.path.as_bytes())?;
        let length = |counts: &[Count]| counts.iter().map(|count| count.times).sum();
        self.files.push(FileRecord {
            path,
            stamp: facts.stamp,
            hash: facts.hash,
            content: facts.content,
            flags: facts.flags,
            language: facts.language,
            lines: facts.lines,
            first_chunk,
            chunks: self.chunk_count - first_chunk,
            first_symbol,
            symbols: self.symbol_count - first_symbol,
            path_length: length(&facts.path_counts),
            symbol_length: length(&facts.symbol_counts),
            details: Span::default(),
        });
        self.paths.push((facts.path.as_bytes().to_vec(), file));
        self.names.push(names);
        self.rest.push(rest);
        Ok(())
    }

    fn add_terms(&mut self, file: u32, facts: &FileFacts) {
        // Each of the file's terms by place: which documents of the file have it. One look into the map a term.
        let mut places: Vec<(u32, u32, u32)> = Vec::new();
        for (at, chunk) in facts.chunks.iter().enumerate() {
            let number = self.chunk_count + at as u32;
            places.extend(chunk.counts.iter().map(|count| (count.term, number, count.times)));
            let length = chunk.counts.iter().map(|count| count.times).sum();
            let record = ChunkRecord { file, first_line: chunk.first_line, lines: chunk.lines, length };
            record.put(&mut self.chunks);
        }
        self.chunk_count += facts.chunks.len() as u32;
        places.sort_unstable();
        let mut paths: Vec<Count> = facts.path_counts.clone();
        let mut symbols: Vec<Count> = facts.symbol_counts.clone();
        paths.sort_unstable();
        symbols.sort_unstable();
        let (mut paths, mut symbols) = (paths.iter().peekable(), symbols.iter().peekable());
        let mut places = places.iter().peekable();
        let before = self.terms.len();
        for (number, term) in facts.terms.iter().enumerate() {
            let number = number as u32;
            let lists = self.terms.entry_ref(&**term).or_default();
            while let Some((_, chunk, times)) = places.next_if(|place| place.0 == number) {
                lists.chunks.push(*chunk, *times);
                self.weight += 2;
            }
            while let Some(count) = paths.next_if(|count| count.term == number) {
                lists.paths.push(file, count.times);
            }
            while let Some(count) = symbols.next_if(|count| count.term == number) {
                lists.symbols.push(file, count.times);
            }
        }
        self.weight += (self.terms.len() - before) * 4 * LIST;
    }

    fn add_symbols(&mut self, facts: &FileFacts) -> Result<(), IndexError> {
        for symbol in &facts.symbols {
            let enclosing = enclosing(facts, symbol.inside);
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
            let span = self.data.append(|data| record.put(data))?;
            self.symbols.extend_from_slice(&span.at.to_le_bytes());
            let name = symbol.name.to_lowercase();
            self.defined.entry_ref(name.as_str()).or_default().push(self.symbol_count);
            self.weight += LIST / 2;
            self.symbol_count += 1;
        }
        Ok(())
    }

    fn add_references(&mut self, file: u32, facts: &FileFacts) -> Vec<u32> {
        let mut sorted: Vec<&crate::facts::Reference> = facts.references.iter().collect();
        sorted.sort_by(|one, other| (&one.name, one.line).cmp(&(&other.name, other.line)));
        let mut names = Vec::new();
        for reference in sorted {
            let next = self.used.len() as u32;
            let (number, list) =
                self.used.entry_ref(&*reference.name).or_insert_with(|| (next, UseList::default()));
            list.push(file, reference.line);
            if names.last() != Some(number) {
                names.push(*number);
            }
            self.weight += 3 + if *number == next { LIST + reference.name.len() } else { 0 };
        }
        names
    }

    /// Writes the segment to `path`, which must not be there yet; where `durable`, it is on the disk afterwards.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn finish(mut self, path: &Path, durable: bool) -> Result<(), IndexError> {
        let mut used: Vec<(String, (u32, UseList))> = std::mem::take(&mut self.used).into_iter().collect();
        used.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut rank = vec![0_u32; used.len()];
        for (at, (_, (number, _))) in used.iter().enumerate() {
            if let Some(place) = rank.get_mut(*number as usize) {
                *place = at as u32;
            }
        }
        self.add_details(&rank)?;
        let mut files = Vec::with_capacity(self.files.len() * super::layout::FILE);
        self.files.iter().for_each(|file| file.put(&mut files));
        let [chunks, paths, symbols] = term_dictionaries(std::mem::take(&mut self.terms))?;
        let mut trigrams: Vec<_> = std::mem::take(&mut self.trigrams).into_iter().collect();
        trigrams.sort_unstable_by_key(|(trigram, _)| *trigram);
        let trigram_key = |trigram: u32| {
            let [_, one, two, three] = trigram.to_be_bytes();
            [one, two, three]
        };
        let mut defined: Vec<_> = std::mem::take(&mut self.defined).into_iter().collect();
        defined.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        self.paths.sort_unstable();
        let words = [
            chunks,
            paths,
            symbols,
            dictionary(
                trigrams.iter().map(|(trigram, list)| (trigram_key(*trigram), list.bytes.as_slice())),
            )?,
            dictionary(defined.iter().map(|(name, list)| (name.as_bytes(), list.bytes.as_slice())))?,
            dictionary(used.iter().map(|(name, (_, list))| (name.as_bytes(), list.bytes.as_slice())))?,
            dictionary(self.paths.iter().map(|(path, file)| {
                let mut list = PlainList::default();
                list.push(*file);
                (path.as_slice(), list.bytes)
            }))?,
            dictionary(by_name(&self.paths).into_iter().map(|(name, list)| (name, list.bytes)))?,
        ];
        debug_assert_eq!(Words::ALL.len(), words.len());
        let (data, blocks) = self.data.finish()?;
        let parts = [files, self.chunks, self.symbols, self.path_bytes, data, blocks];
        Contents { parts, words }.write(path, durable)
    }

    /// Writes down each file's names, by their place among the sorted ones, and the rest.
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
pub(crate) fn append_path(paths: &mut Vec<u8>, path: &[u8]) -> Result<Span, IndexError> {
    let too_much = |_| IndexError::TooMuch("a segment's paths");
    let at = u32::try_from(paths.len()).map_err(too_much)?;
    paths.extend_from_slice(path);
    Ok(Span { at, len: u32::try_from(path.len()).map_err(too_much)? })
}

/// A file's names by number, then its imports and sections as they were put.
pub(crate) fn put_details(out: &mut Vec<u8>, mut names: Vec<u32>, rest: &[u8]) {
    names.sort_unstable();
    let mut list = PlainList::default();
    names.iter().for_each(|name| list.push(*name));
    put_bytes(out, &list.bytes);
    out.extend_from_slice(rest);
}

/// The scope of what lies in a symbol.
fn enclosing(facts: &FileFacts, inside: Option<u32>) -> String {
    let outer = inside.and_then(|inside| facts.symbols.get(inside as usize));
    match outer {
        Some(outer) if outer.scope.is_empty() => outer.name.clone(),
        Some(outer) => format!("{}.{}", outer.scope, outer.name),
        None => String::new(),
    }
}

/// Files by the last part of their path, in ASCII lower case.
fn by_name(paths: &[(Vec<u8>, u32)]) -> BTreeMap<Vec<u8>, PlainList> {
    let mut files: Vec<(u32, &[u8])> = paths.iter().map(|(path, file)| (*file, path.as_slice())).collect();
    files.sort_unstable();
    let mut names: BTreeMap<Vec<u8>, PlainList> = BTreeMap::new();
    for (file, path) in files {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        names.entry(name.to_ascii_lowercase()).or_default().push(file);
    }
    names
}

fn term_dictionaries(terms: HashMap<String, Lists>) -> Result<[Made; 3], IndexError> {
    let mut terms: Vec<_> = terms.into_iter().collect();
    terms.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let of = |pick: fn(&Lists) -> &CountList| {
        let some = terms.iter().map(|(term, lists)| (term, pick(lists)));
        dictionary(some.filter(|(_, list)| !list.is_empty()).map(|(term, list)| {
            let mut bytes = Vec::new();
            list.finish(&mut bytes);
            (term.as_bytes(), bytes)
        }))
    };
    Ok([of(|lists| &lists.chunks)?, of(|lists| &lists.paths)?, of(|lists| &lists.symbols)?])
}

fn dictionary<K: AsRef<[u8]>, L: AsRef<[u8]>>(
    sorted: impl Iterator<Item = (K, L)>,
) -> Result<Made, IndexError> {
    let mut builder = DictionaryBuilder::new();
    for (key, list) in sorted {
        builder.add(key.as_ref(), list.as_ref())?;
    }
    builder.finish()
}

fn put_imports(out: &mut Vec<u8>, imports: &[Import]) {
    put(out, imports.len() as u64);
    for import in imports {
        put_bytes(out, import.target.as_bytes());
        put(out, u64::from(import.line));
        put(out, (u64::from(import.up) << 1) | u64::from(import.relative));
        put(out, import.names.len() as u64);
        import.names.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    }
}

fn put_sections(out: &mut Vec<u8>, sections: &[Section]) {
    put(out, sections.len() as u64);
    for section in sections {
        put_bytes(out, section.heading.as_bytes());
        put(out, u64::from(section.level));
        put(out, u64::from(section.first_line));
        put(out, u64::from(section.lines));
        put(out, section.mentions.len() as u64);
        section.mentions.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    }
}
