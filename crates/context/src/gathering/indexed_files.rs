//! Texts of indexed files, each read once.

use std::collections::HashMap;

use journeyman_index::query::{Corpus as _, SymbolEntry};
use journeyman_protocol::RelPath;

use super::sources::ContextSources;
use crate::packing::{FileText, Texts};

/// Maximum files that are read.
const MAX_FILES: usize = 80;
/// Maximum bytes of all files together.
const MAX_TOTAL_BYTES: usize = 8 << 20;

/// Reads indexed files once, within bounds.
pub(super) struct IndexedFileReader<'a> {
    sources: &'a ContextSources<'a>,
    /// The path of each file that was asked for; `None` if it can't be shown.
    known: HashMap<u32, Option<RelPath>>,
    bytes: usize,
    pub(super) texts: Texts,
}

impl<'a> IndexedFileReader<'a> {
    pub(super) fn new(sources: &'a ContextSources<'a>) -> Self {
        Self { sources, known: HashMap::new(), bytes: 0, texts: Texts::new() }
    }

    /// Returns a file's path if its text is there.
    pub(super) fn load_file(&mut self, file: u32) -> Option<RelPath> {
        if let Some(known) = self.known.get(&file) {
            return known.clone();
        }
        let opened = self.read_file(file);
        self.known.insert(file, opened.clone());
        opened
    }

    fn read_file(&mut self, file: u32) -> Option<RelPath> {
        if self.texts.len() >= MAX_FILES || self.bytes >= MAX_TOTAL_BYTES {
            return None;
        }
        let ContextSources { snapshot, may_show, read, .. } = self.sources;
        let path = snapshot.file(file)?.path().filter(|path| may_show(path))?;
        let text = read(file, &path)?;
        self.bytes += text.len();
        let mut definitions = Vec::new();
        snapshot.visit_symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
            if !symbol.local && !symbol.signature.is_empty() {
                definitions.push((symbol.name_line, symbol.name.to_owned()));
            }
        });
        self.texts.insert(path.clone(), FileText::new(text, definitions));
        Some(path)
    }
}
