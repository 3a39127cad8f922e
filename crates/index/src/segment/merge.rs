//! Merging segments into one, without their dead files.

use std::path::Path;

use super::DocumentId;
use super::build::{append_path, put_details};
use super::codec::{
    CountList, PlainList, UseList, decode_counts, decode_dense, decode_plain, decode_uses, put_dense,
};
use super::dictionary::{Dictionary, DictionaryBuilder, DictionaryScan, EncodedDictionary};
use super::layout::{DictionaryKind, FileRecord, SegmentParts};
use super::mapped_segment::Segment;
use super::record_blocks::RecordWriter;
use super::write::SegmentContents;
use crate::IndexError;
use crate::analysis::FileStamp;

/// Marker for dead items.
const DEAD_ITEM: u32 = u32::MAX;

/// Old and new numbers of a segment's items.
struct ItemNumbers {
    files: Vec<u32>,
    chunks: Vec<u32>,
    symbols: Vec<u32>,
    names: Vec<u32>,
}

/// Merges the living files of several segments, in their order, into `path`, which must not exist.
/// `lives` returns true for a living file, given by the segment's position and its number; `stamps`
/// returns its newest stamp.
///
/// # Errors
/// [`IndexError`].
pub fn merge_segments(
    segments: &[&Segment],
    lives: impl Fn(usize, DocumentId) -> bool,
    stamps: impl Fn(usize, DocumentId, &FileRecord) -> FileStamp,
    path: &Path,
    durable: bool,
) -> Result<(), IndexError> {
    let mut numbers = assign_item_numbers(segments, lives);
    let words = merge_dictionaries(segments, &mut numbers)?;
    let parts = merge_records(segments, &numbers, stamps)?;
    SegmentContents::new(parts, words).write(path, durable)
}

fn assign_item_numbers(segments: &[&Segment], lives: impl Fn(usize, DocumentId) -> bool) -> Vec<ItemNumbers> {
    let (mut files, mut chunks, mut symbols) = (0_u32, 0_u32, 0_u32);
    let mut numbers = Vec::with_capacity(segments.len());
    for (place, segment) in segments.iter().enumerate() {
        let dead = |count: u32| vec![DEAD_ITEM; count as usize];
        let mut one = ItemNumbers {
            files: dead(segment.file_count()),
            chunks: dead(segment.chunk_count()),
            symbols: dead(segment.symbol_count()),
            names: dead(
                segment
                    .inverted_index()
                    .dictionary(DictionaryKind::Used)
                    .map_or(0, |words| words.len() as u32),
            ),
        };
        for file in 0..segment.file_count() {
            let Some(record) = segment.file(file).filter(|_| lives(place, file)) else { continue };
            assign_numbers(&mut one.files, file, 1, &mut files);
            assign_numbers(&mut one.chunks, record.first_chunk, record.chunks, &mut chunks);
            assign_numbers(&mut one.symbols, record.first_symbol, record.symbols, &mut symbols);
        }
        numbers.push(one);
    }
    numbers
}

/// Assigns the next numbers to consecutive items.
fn assign_numbers(map: &mut [u32], first: u32, count: u32, next: &mut u32) {
    let range = first as usize..first.saturating_add(count) as usize;
    for place in map.get_mut(range).unwrap_or_default() {
        *place = *next;
        *next += 1;
    }
}

fn map_number(map: &[u32], old: u32) -> Option<u32> {
    map.get(old as usize).copied().filter(|new| *new != DEAD_ITEM)
}

fn merge_dictionaries(
    segments: &[&Segment],
    numbers: &mut [ItemNumbers],
) -> Result<[EncodedDictionary; DictionaryKind::ALL.len()], IndexError> {
    let counted = |numbers: &[ItemNumbers], words: DictionaryKind, pick: fn(&ItemNumbers) -> &[u32]| {
        merge_keys(segments, words, |found, out| {
            let mut list = CountList::default();
            for (place, _, bytes) in found {
                let Some(map) = numbers.get(*place).map(pick) else { continue };
                decode_counts(bytes, |old, times| {
                    if let Some(new) = map_number(map, old) {
                        list.push(new, times);
                    }
                });
            }
            if !list.is_empty() {
                list.write_to(out);
            }
        })
    };
    let listed = |numbers: &[ItemNumbers], words: DictionaryKind, pick: fn(&ItemNumbers) -> &[u32]| {
        merge_keys(segments, words, |found, out| {
            let mut list = PlainList::default();
            for (place, _, bytes) in found {
                let Some(map) = numbers.get(*place).map(pick) else { continue };
                decode_plain(bytes, |old| {
                    if let Some(new) = map_number(map, old) {
                        list.push(new);
                    }
                });
            }
            *out = list.bytes;
        })
    };
    let chunks = counted(numbers, DictionaryKind::Chunks, |numbers| &numbers.chunks)?;
    let paths = counted(numbers, DictionaryKind::Paths, |numbers| &numbers.files)?;
    let symbols = counted(numbers, DictionaryKind::Symbols, |numbers| &numbers.files)?;
    let trigrams = merge_keys(segments, DictionaryKind::Trigrams, |found, out| {
        let mut files = Vec::new();
        for (place, _, bytes) in found {
            let Some(map) = numbers.get(*place).map(|numbers| numbers.files.as_slice()) else { continue };
            decode_dense(bytes, |old| files.extend(map_number(map, old)));
        }
        put_dense(out, files.into_iter());
    })?;
    let defined = listed(numbers, DictionaryKind::Defined, |numbers| &numbers.symbols)?;
    let files = listed(numbers, DictionaryKind::Files, |numbers| &numbers.files)?;
    let names = listed(numbers, DictionaryKind::Names, |numbers| &numbers.files)?;
    let used = merge_used_names(segments, numbers)?;
    Ok([chunks, paths, symbols, trigrams, defined, used, files, names])
}

/// Merges the used names, and records each segment's new numbers of them.
fn merge_used_names(
    segments: &[&Segment],
    numbers: &mut [ItemNumbers],
) -> Result<EncodedDictionary, IndexError> {
    let mut next = 0_u32;
    merge_keys(segments, DictionaryKind::Used, |found, out| {
        let mut list = UseList::default();
        for (place, _, bytes) in found {
            let Some(map) = numbers.get(*place).map(|numbers| numbers.files.as_slice()) else { continue };
            decode_uses(bytes, |old, packed| {
                if let Some(new) = map_number(map, old) {
                    list.push(new, packed);
                }
            });
        }
        if !list.bytes.is_empty() {
            for (place, old, _) in found {
                let names = numbers.get_mut(*place).map(|numbers| &mut numbers.names);
                if let Some(name) = names.and_then(|names| names.get_mut(*old as usize)) {
                    *name = next;
                }
            }
            next += 1;
        }
        *out = list.bytes;
    })
}

/// A key's lists: by segment and number in it.
type KeyLists<'a> = [(usize, u32, &'a [u8])];

/// Visits the keys of all segments, in order; `merged` merges a key's lists. Keys with an empty
/// list are dropped.
fn merge_keys(
    segments: &[&Segment],
    words: DictionaryKind,
    mut merged: impl FnMut(&KeyLists<'_>, &mut Vec<u8>),
) -> Result<EncodedDictionary, IndexError> {
    let entries =
        segments.iter().map(|segment| segment.inverted_index().dictionary(words).map(Dictionary::entries));
    let mut entries: Vec<DictionaryScan<'_>> = entries.flatten().collect();
    // The next key of each dictionary, with its number and its list.
    let mut heads: Vec<Option<(u32, &[u8])>> = entries.iter_mut().map(DictionaryScan::advance).collect();
    let mut builder = DictionaryBuilder::new();
    let (mut found, mut list, mut key) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let next = entries.iter().zip(&heads).filter(|(_, head)| head.is_some());
        let Some(least) = next.map(|(entries, _)| entries.key()).min() else { break };
        key.clear();
        key.extend_from_slice(least);
        found.clear();
        for (place, (entries, head)) in entries.iter_mut().zip(&mut heads).enumerate() {
            if let Some((number, list)) = *head
                && entries.key() == key
            {
                found.push((place, number, list));
                *head = entries.advance();
            }
        }
        list.clear();
        merged(&found, &mut list);
        if !list.is_empty() {
            builder.add(&key, &list)?;
        }
    }
    Ok(builder.finish())
}

fn merge_records(
    segments: &[&Segment],
    numbers: &[ItemNumbers],
    stamps: impl Fn(usize, DocumentId, &FileRecord) -> FileStamp,
) -> Result<SegmentParts, IndexError> {
    let mut parts = SegmentParts::default();
    let mut data = RecordWriter::default();
    for (place, (segment, numbers)) in segments.iter().zip(numbers).enumerate() {
        for old in 0..segment.file_count() {
            let Some(mut record) = map_number(&numbers.files, old).and_then(|_| segment.file(old)) else {
                continue;
            };
            record.stamp = stamps(place, old, &record);
            let details = segment.details(&record);
            let names =
                details.used_names.iter().filter_map(|name| map_number(&numbers.names, *name)).collect();
            let path = segment.path_of(&record);
            record.path = append_path(&mut parts.paths, path)?;
            let (first_chunk, first_symbol) = (parts.chunk_count(), parts.symbol_count());
            for symbol in record.first_symbol..record.first_symbol.saturating_add(record.symbols) {
                let Some(symbol) = segment.symbol(symbol) else { break };
                let span = data.append(|data| symbol.write_to(data))?;
                parts.symbols.extend_from_slice(&span.at.to_le_bytes());
            }
            record.details = data.append(|data| put_details(data, names, &details.imports_and_sections))?;
            for chunk in record.first_chunk..record.first_chunk.saturating_add(record.chunks) {
                let Some(lines) = segment.chunk(chunk) else { break };
                parts.push_chunk(
                    lines.start,
                    lines.len() as u32,
                    segment.inverted_index().document_lengths(DictionaryKind::Chunks).get(chunk),
                );
            }
            (record.first_chunk, record.first_symbol) = (first_chunk, first_symbol);
            let [path_length, symbol_length] = [DictionaryKind::Paths, DictionaryKind::Symbols]
                .map(|which| segment.inverted_index().document_lengths(which).get(old));
            parts.columns.push(&record, path, path_length, symbol_length);
            record.write_to(&mut parts.files);
        }
    }
    (parts.data, parts.blocks) = data.finish()?;
    Ok(parts)
}
