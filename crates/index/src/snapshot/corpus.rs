//! A snapshot, as ranking sees it.

use fst::Automaton;
use fst::automaton::{AlwaysMatch, Subsequence};
use journeyman_protocol::RelPath;

use super::{Living, Snapshot};
use crate::query::{ChunkEntry, Corpus, Field, FileEntry, Like, Posting, Purpose, SymbolEntry, Totals};
use crate::segment::{Id, Words};

/// Names that are longer than this have no typo looked for: nobody typed them.
const LONGEST_TYPED: usize = 100;

fn words(field: Field) -> Words {
    match field {
        Field::Chunk => Words::Chunks,
        Field::Path => Words::Paths,
        Field::Symbol => Words::Symbols,
    }
}

impl Living {
    fn is_dead(&self, field: Field, document: Id) -> bool {
        if field == Field::Chunk { self.dead_chunks.contains(document) } else { self.dead.contains(document) }
    }

    fn first(&self, field: Field) -> u32 {
        if field == Field::Chunk { self.first_chunk } else { self.first_file }
    }

    fn show(&self, symbol: Id, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let file = self.segment.file_of_symbol(symbol);
        let Some(record) = self.segment.symbol(symbol).filter(|_| !self.dead.contains(file)) else { return };
        let scope = self.segment.scope(file, &record);
        visit(SymbolEntry {
            file: self.number_of(file),
            name: &record.name,
            kind: record.kind,
            scope: &scope,
            first_line: record.first_line,
            lines: record.lines,
            name_line: record.name_line,
            signature: &record.signature,
            visibility: record.visibility,
            local: record.local,
        });
    }

    /// Whether a name belongs to a symbol that lives.
    fn has(&self, name: &str) -> bool {
        if self.dead.is_empty() {
            return true;
        }
        let mut lives = false;
        self.segment.defined(name, |symbol| {
            lives |= !self.dead.contains(self.segment.file_of_symbol(symbol));
        });
        lives
    }

    fn names(&self, prefix: &str, automaton: &impl Automaton, limit: usize, visit: &mut dyn FnMut(&str)) {
        let Some(words) = self.segment.words(Words::Defined) else { return };
        let mut left = limit;
        words.search(prefix.as_bytes(), automaton, |key, _| {
            if let Some(name) = std::str::from_utf8(key).ok().filter(|name| self.has(name)) {
                visit(name);
                left = left.saturating_sub(1);
            }
            left > 0
        });
    }
}

impl Corpus for Snapshot {
    fn file_bound(&self) -> u32 {
        self.file_numbers()
    }

    fn chunk_bound(&self) -> u32 {
        self.chunk_numbers()
    }

    fn totals(&self, field: Field) -> Totals {
        let sums = self.totals;
        let (documents, length) = match field {
            Field::Chunk => (sums.chunks, sums.chunk_terms),
            Field::Path => (sums.files, sums.path_terms),
            Field::Symbol => (sums.files, sums.symbol_terms),
        };
        Totals { documents, length }
    }

    fn documents_with(&self, field: Field, term: &str) -> u64 {
        let mut documents = 0;
        for one in &self.living {
            if one.dead.is_empty() {
                documents += u64::from(one.segment.with_term(words(field), term));
            } else {
                one.segment.counted(words(field), term, |document, _| {
                    documents += u64::from(!one.is_dead(field, document));
                });
            }
        }
        documents
    }

    fn postings(&self, field: Field, term: &str, visit: &mut dyn FnMut(u32, u32)) {
        for one in &self.living {
            let first = one.first(field);
            if one.dead.is_empty() {
                one.segment.counted(words(field), term, |document, times| visit(first + document, times));
            } else {
                one.segment.counted(words(field), term, |document, times| {
                    if !one.is_dead(field, document) {
                        visit(first + document, times);
                    }
                });
            }
        }
    }

    fn each(&self, field: Field, term: &str, visit: &mut dyn FnMut(Posting)) {
        for one in &self.living {
            let (first, first_file, all_live) = (one.first(field), one.first_file, one.dead.is_empty());
            one.segment.each(words(field), term, |own| {
                if all_live || !one.is_dead(field, own.document) {
                    let (document, file) = (first + own.document, first_file.saturating_add(own.file));
                    visit(Posting { document, file, ..own });
                }
            });
        }
    }

    fn purpose(&self, file: u32) -> Option<Purpose> {
        let (one, own) = self.at(file, |one| one.first_file)?;
        if one.dead.contains(own) { None } else { one.segment.purpose(own) }
    }

    fn length(&self, field: Field, document: u32) -> u32 {
        let Some((one, own)) = self.at(document, |one| one.first(field)) else { return 0 };
        if one.is_dead(field, own) {
            return 0;
        }
        match field {
            Field::Chunk => one.segment.chunk_length(own),
            Field::Path => one.segment.path_length(own),
            Field::Symbol => one.segment.symbol_length(own),
        }
    }

    fn file(&self, file: u32) -> Option<FileEntry<'_>> {
        let (one, own) = self.at(file, |one| one.first_file)?;
        if one.dead.contains(own) {
            return None;
        }
        let view = Self::file(self, file)?;
        let record = view.record;
        Some(FileEntry {
            path: view.path_bytes(),
            content: record.content,
            flags: record.flags,
            language: record.language,
            lines: record.lines,
        })
    }

    fn chunk(&self, chunk: u32) -> Option<ChunkEntry> {
        let (one, own) = self.at(chunk, |one| one.first_chunk)?;
        let record = one.segment.chunk(own).filter(|_| !one.dead_chunks.contains(own))?;
        let file = one.number_of(record.file);
        Some(ChunkEntry { file, first_line: record.first_line, lines: record.lines })
    }

    fn file_of_chunk(&self, chunk: u32) -> u32 {
        self.at(chunk, |one| one.first_chunk)
            .map_or(0, |(one, own)| one.number_of(one.segment.file_of_chunk(own)))
    }

    fn file_at(&self, path: &[u8]) -> Option<u32> {
        self.find(&RelPath::parse(path).ok()?)
    }

    fn files_called(&self, name: &[u8], visit: &mut dyn FnMut(u32)) {
        let name = name.to_ascii_lowercase();
        for one in &self.living {
            one.segment.called(&name, |file| {
                if !one.dead.contains(file) {
                    visit(one.number_of(file));
                }
            });
        }
    }

    fn symbols_called(&self, name: &str, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        for one in &self.living {
            one.segment.defined(name, |symbol| one.show(symbol, visit));
        }
    }

    fn names_like(&self, like: Like<'_>, limit: usize, visit: &mut dyn FnMut(&str)) {
        // Each segment's first ones: the first ones of all are among them.
        let mut names: Vec<String> = Vec::new();
        for one in &self.living {
            let mut keep = |name: &str| names.push(name.to_owned());
            match like {
                Like::Prefix(prefix) => one.names(prefix, &AlwaysMatch, limit, &mut keep),
                Like::Subsequence(of) => one.names("", &Subsequence::new(of), limit, &mut keep),
                Like::Typo(name) if name.len() <= LONGEST_TYPED => {
                    one.names("", &Typo { name }, limit, &mut keep);
                }
                Like::Typo(_) => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        names.iter().take(limit).for_each(|name| visit(name));
    }

    fn symbols_of(&self, file: u32, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let Some((one, own)) = self.at(file, |one| one.first_file) else { return };
        let Some(record) = one.segment.file(own) else { return };
        for symbol in record.first_symbol..record.first_symbol.saturating_add(record.symbols) {
            one.show(symbol, visit);
        }
    }
}

/// Accepts what one inserted, deleted or replaced byte makes of a name, and the name.
struct Typo<'a> {
    name: &'a str,
}

/// How far a text has come along the name: without a change, and at which places with one.
#[derive(Clone, Copy)]
struct Along {
    exact: Option<usize>,
    changed: u128,
}

impl Automaton for Typo<'_> {
    type State = Along;

    fn start(&self) -> Along {
        Along { exact: Some(0), changed: 0 }
    }

    fn is_match(&self, state: &Along) -> bool {
        let len = self.name.len();
        let deleted = state.exact.is_some_and(|at| at == len || at + 1 == len);
        deleted || state.changed & (1 << len) != 0
    }

    fn can_match(&self, state: &Along) -> bool {
        state.exact.is_some() || state.changed != 0
    }

    fn accept(&self, state: &Along, byte: u8) -> Along {
        let name = self.name.as_bytes();
        let is = |at: usize| name.get(at) == Some(&byte);
        let mut next = Along { exact: None, changed: 0 };
        for at in (0..name.len()).filter(|at| state.changed & (1 << at) != 0 && is(*at)) {
            next.changed |= 1 << (at + 1);
        }
        if let Some(at) = state.exact {
            // One more, another one, one less.
            next.changed |= 1 << at;
            if at < name.len() {
                next.changed |= 1 << (at + 1);
            }
            if is(at + 1) {
                next.changed |= 1 << (at + 2);
            }
            next.exact = Some(at + 1).filter(|_| is(at));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_typo_is_found_and_two_are_not() {
        let accepts = |name, text: &str| {
            let typo = Typo { name };
            let end = text.bytes().fold(typo.start(), |state, byte| typo.accept(&state, byte));
            typo.is_match(&end)
        };
        for text in ["parse", "parsee", "pars", "arse", "pbrse", "xparse", "pase"] {
            assert!(accepts("parse", text), "{text}");
        }
        for text in ["", "par", "sparsee", "pasre", "parsing", "p"] {
            assert!(!accepts("parse", text), "{text}");
        }
    }
}
