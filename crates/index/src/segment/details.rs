//! The part of a file's data that few queries read: used names, imports, paths and sections.

use super::codec::{ByteCursor, decode_plain};
use crate::analysis::{Import, Section};

/// A file's used names, imports, paths and sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDetails {
    /// The used names, by their numbers in the segment's dictionary.
    pub(crate) used_names: Vec<u32>,
    /// The encoded imports, paths and sections.
    pub(super) imports_and_sections: Vec<u8>,
}

impl FileDetails {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut cursor = ByteCursor::new(bytes);
        let mut used_names = Vec::new();
        decode_plain(cursor.read_bytes(), |name| used_names.push(name));
        Self { used_names, imports_and_sections: cursor.unread_bytes().to_vec() }
    }

    /// Returns the file's imports.
    #[must_use]
    pub fn imports(&self) -> Vec<Import> {
        read_imports(&mut ByteCursor::new(&self.imports_and_sections))
    }

    /// Returns the paths by which the file names something of another module without an import.
    #[must_use]
    pub fn path_uses(&self) -> Vec<Import> {
        let mut cursor = ByteCursor::new(&self.imports_and_sections);
        read_imports(&mut cursor);
        read_imports(&mut cursor)
    }

    /// Returns the sections of a document, or of a file's comments.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let mut cursor = ByteCursor::new(&self.imports_and_sections);
        read_imports(&mut cursor);
        read_imports(&mut cursor);
        let mut sections = Vec::new();
        for _ in 0..cursor.read_number() {
            if cursor.is_empty() {
                break;
            }
            sections.push(Section {
                heading: cursor.read_text().to_owned(),
                level: u8::try_from(cursor.read_number()).unwrap_or(u8::MAX),
                first_line: cursor.read_small_number(),
                lines: cursor.read_small_number(),
                mentions: read_texts(&mut cursor),
            });
        }
        sections
    }
}

fn read_imports(cursor: &mut ByteCursor<'_>) -> Vec<Import> {
    let mut imports = Vec::new();
    for _ in 0..cursor.read_number() {
        if cursor.is_empty() {
            break;
        }
        let target = cursor.read_text().to_owned();
        let (line, up) = (cursor.read_small_number(), cursor.read_number());
        let (up, relative) = (u32::try_from(up >> 1).unwrap_or(u32::MAX), up & 1 != 0);
        imports.push(Import { target, line, up, relative, names: read_texts(cursor) });
    }
    imports
}

fn read_texts(cursor: &mut ByteCursor<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..cursor.read_number() {
        if cursor.is_empty() {
            break;
        }
        texts.push(cursor.read_text().to_owned());
    }
    texts
}
