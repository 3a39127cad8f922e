//! A snapshot as a corpus for ranking.

use std::num::NonZero;
use std::ops::Range;

use journeyman_protocol::RelPath;

use super::{LiveSegment, Snapshot};
use crate::query::{
    ChunkEntry, Corpus, Field, FieldTotals, FileEntry, LiveFile, NameCondition, Posting, PostingLists,
    Purpose, SymbolEntry,
};
use crate::segment::{
    DictionaryKind, DocumentId, count_list_len, decode_counts, letter_set, may_contain,
    may_differ_by_one_letter,
};

/// Maximum threads that score posting lists: memory is soon the limit.
const MAX_SCORING_THREADS: usize = 4;

fn dictionary_of_field(field: Field) -> DictionaryKind {
    match field {
        Field::Chunk => DictionaryKind::Chunks,
        Field::Path => DictionaryKind::Paths,
        Field::Symbol => DictionaryKind::Symbols,
    }
}

impl LiveSegment {
    fn is_dead(&self, field: Field, document: DocumentId) -> bool {
        if field == Field::Chunk { self.dead_chunks.contains(document) } else { self.dead.contains(document) }
    }

    fn first_document(&self, field: Field) -> u32 {
        if field == Field::Chunk { self.first_chunk } else { self.first_file }
    }

    /// Returns the snapshot's numbers of a file's chunks.
    fn chunks_of(&self, file: DocumentId) -> Range<u32> {
        let own = self.segment.chunks_of(file);
        self.first_chunk.saturating_add(own.start)..self.first_chunk.saturating_add(own.end)
    }

    fn visit_symbol(&self, symbol: DocumentId, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let file = self.segment.file_of_symbol(symbol);
        let Some(record) = self.segment.symbol(symbol).filter(|_| !self.dead.contains(file)) else { return };
        let scope = self.segment.scope(file, &record);
        visit(SymbolEntry {
            file: self.snapshot_number(file),
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

    /// Returns true if a name belongs to a living symbol.
    fn has_live_symbol(&self, name: &str) -> bool {
        if self.dead.is_empty() {
            return true;
        }
        let mut lives = false;
        self.segment.inverted_index().visit_definitions(name, |symbol| {
            lives |= !self.dead.contains(self.segment.file_of_symbol(symbol));
        });
        lives
    }

    /// Calls `visit` with the names of living symbols, at most `limit`.
    fn visit_matching_names(&self, like: NameCondition<'_>, limit: usize, visit: &mut dyn FnMut(&str)) {
        let mut left = limit;
        let mut take = |key: &[u8]| {
            let fits = |name: &&str| like.accepts(name) && self.has_live_symbol(name);
            if let Some(name) = std::str::from_utf8(key).ok().filter(fits) {
                visit(name);
                left = left.saturating_sub(1);
            }
            left > 0
        };
        match like {
            NameCondition::Prefix(prefix) => {
                if let Some(words) = self.segment.inverted_index().dictionary(DictionaryKind::Defined) {
                    words.visit_with_prefix(prefix.as_bytes(), take);
                }
            }
            NameCondition::Subsequence(name) => {
                let wanted = letter_set(name.as_bytes());
                self.segment
                    .inverted_index()
                    .visit_names_with_letters(|own| may_contain(own, wanted), &mut take);
            }
            NameCondition::Typo(name) => {
                let wanted = letter_set(name.as_bytes());
                self.segment
                    .inverted_index()
                    .visit_names_with_letters(|own| may_differ_by_one_letter(own, wanted), &mut take);
            }
        }
    }
}

impl Snapshot {
    /// Returns posting lists with the dead documents of their segments.
    fn live_posting_lists<'a>(
        &'a self,
        field: Field,
        lists: &'a PostingLists,
    ) -> impl Iterator<Item = (&'a LiveSegment, &'a [u8])> {
        lists.0.iter().filter_map(move |[number, start, end]| {
            let one = self.living.get(*number as usize)?;
            Some((
                one,
                one.segment.inverted_index().dictionary(dictionary_of_field(field))?.list(*start..*end),
            ))
        })
    }
}

impl Corpus for Snapshot {
    fn file_bound(&self) -> u32 {
        self.file_number_bound()
    }

    fn chunk_bound(&self) -> u32 {
        self.chunk_number_bound()
    }

    fn totals(&self, field: Field) -> FieldTotals {
        let sums = self.totals;
        let (documents, length) = match field {
            Field::Chunk => (sums.chunks, sums.chunk_terms),
            Field::Path => (sums.files, sums.path_terms),
            Field::Symbol => (sums.files, sums.symbol_terms),
        };
        FieldTotals { documents, length }
    }

    fn find_posting_lists(&self, field: Field, term: &str) -> PostingLists {
        let found = (0..).zip(&self.living).filter_map(|(number, one)| {
            let list = one
                .segment
                .inverted_index()
                .dictionary(dictionary_of_field(field))?
                .list_range(term.as_bytes())?;
            Some([number, list.start, list.end])
        });
        PostingLists(found.collect())
    }

    fn document_count(&self, field: Field, lists: &PostingLists) -> u64 {
        let of_one = |(one, list): (&LiveSegment, &[u8])| {
            if one.dead.is_empty() {
                return u64::from(count_list_len(list));
            }
            let mut documents = 0;
            decode_counts(list, |document, _| documents += u64::from(!one.is_dead(field, document)));
            documents
        };
        self.live_posting_lists(field, lists).map(of_one).sum()
    }

    fn document_ranges(&self, field: Field) -> Vec<Range<u32>> {
        let bound = if field == Field::Chunk { self.chunk_number_bound() } else { self.file_number_bound() };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_SCORING_THREADS);
        let enough = bound.div_ceil(threads as u32);
        let mut parts = Vec::new();
        let mut start = 0;
        for next in self.living.iter().skip(1).map(|one| one.first_document(field)) {
            if next - start >= enough {
                parts.push(start..next);
                start = next;
            }
        }
        parts.push(start..bound);
        parts
    }

    fn visit_postings(
        &self,
        field: Field,
        lists: &PostingLists,
        part: Range<u32>,
        visit: &mut dyn FnMut(&[Posting]),
    ) {
        for (one, list) in self.live_posting_lists(field, lists) {
            if part.contains(&one.first_document(field)) {
                one.segment.inverted_index().visit_postings(
                    dictionary_of_field(field),
                    list,
                    one.first_document(field),
                    visit,
                );
            }
        }
    }

    fn visit_live_files(&self, visit: &mut dyn FnMut(LiveFile)) {
        for one in &self.living {
            for file in (0..one.segment.file_count()).filter(|file| !one.dead.contains(*file)) {
                let Some(purpose) = one.segment.purpose(file) else { continue };
                visit(LiveFile { file: one.snapshot_number(file), chunks: one.chunks_of(file), purpose });
            }
        }
    }

    fn chunks_of(&self, file: u32) -> Range<u32> {
        let found = self.live_segment_at(file, |one| one.first_file);
        found.filter(|(one, own)| !one.dead.contains(*own)).map_or(0..0, |(one, own)| one.chunks_of(own))
    }

    fn purpose(&self, file: u32) -> Option<Purpose> {
        let (one, own) = self.live_segment_at(file, |one| one.first_file)?;
        if one.dead.contains(own) { None } else { one.segment.purpose(own) }
    }

    fn file(&self, file: u32) -> Option<FileEntry<'_>> {
        let (one, own) = self.live_segment_at(file, |one| one.first_file)?;
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
        let (one, own) = self.live_segment_at(chunk, |one| one.first_chunk)?;
        let lines = one.segment.chunk(own).filter(|_| !one.dead_chunks.contains(own))?;
        let file = one.snapshot_number(one.segment.file_of_chunk(own));
        Some(ChunkEntry { file, first_line: lines.start, lines: lines.len() as u32 })
    }

    fn file_at(&self, path: &[u8]) -> Option<u32> {
        self.find_file(&RelPath::parse(path).ok()?)
    }

    fn visit_files_named(&self, name: &[u8], visit: &mut dyn FnMut(u32)) {
        let name = name.to_ascii_lowercase();
        for one in &self.living {
            one.segment.inverted_index().visit_files_named(&name, |file| {
                if !one.dead.contains(file) {
                    visit(one.snapshot_number(file));
                }
            });
        }
    }

    fn visit_symbols_named(&self, name: &str, visit: &mut dyn FnMut(u32, u32)) {
        for one in &self.living {
            one.segment.inverted_index().visit_definitions(name, |symbol| {
                let file = one.segment.file_of_symbol(symbol);
                if !one.dead.contains(file) {
                    visit(one.snapshot_number(file), one.first_symbol.saturating_add(symbol));
                }
            });
        }
    }

    fn visit_symbol(&self, symbol: u32, show: &mut dyn FnMut(SymbolEntry<'_>)) {
        if let Some((one, own)) = self.live_segment_at(symbol, |one| one.first_symbol) {
            one.visit_symbol(own, show);
        }
    }

    fn visit_matching_names(&self, like: NameCondition<'_>, limit: usize, visit: &mut dyn FnMut(&str)) {
        // The best of each segment: the best of all are among them.
        let mut names: Vec<String> = Vec::new();
        for one in &self.living {
            one.visit_matching_names(like, limit, &mut |name| names.push(name.to_owned()));
        }
        names.sort_unstable();
        names.dedup();
        names.iter().take(limit).for_each(|name| visit(name));
    }

    fn visit_symbol_names_of(&self, file: u32, limit: usize, visit: &mut dyn FnMut(&str)) {
        let found = self.live_segment_at(file, |one| one.first_file);
        let Some((one, own)) = found.filter(|(one, own)| !one.dead.contains(*own)) else { return };
        one.segment
            .symbols_of(own)
            .take(limit)
            .for_each(|symbol| one.segment.visit_outer_name(symbol, visit));
    }

    fn visit_symbols_of(&self, file: u32, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let Some((one, own)) = self.live_segment_at(file, |one| one.first_file) else { return };
        one.segment.symbols_of(own).for_each(|symbol| one.visit_symbol(symbol, visit));
    }
}
