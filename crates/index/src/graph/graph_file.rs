//! The graph's file: the resolution of each file, so that only changed files are resolved again.
//!
//! `JMGRAPH`, a version, the BLAKE3 hash of the rest; then the files by path with their edges,
//! packages and looked-up places, the packages' names, and the definers of names. It is replaced as
//! a whole.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::Edge;
use super::edge::ContentIdentity;
use super::name_dependencies::{self, DefinitionRow};
use super::resolved_graph::ResolvedGraph;
use crate::IndexError;
use crate::segment::{ByteCursor, format_version, map_file, put_bytes, put_number};
use crate::write_lock::WriteLock;

/// The magic bytes. The version follows them.
const MAGIC: &[u8; 8] = b"JMGRAPH\x01";
const CHECKSUM_BYTES: usize = 32;
/// Incremented with each change of the results: how imports are resolved, which names count.
const RESULTS_VERSION: u64 = 10;
/// Bytes of a row: the numbers of a name and a file.
const ROW_BYTES: usize = 12;
pub(super) const FILE_NAME: &str = "graph";
const NEW_FILE_NAME: &str = "graph.new";
/// Locked by the writing process.
const LOCK_FILE_NAME: &str = "graph.lock";

/// The graph as last saved.
#[derive(Debug)]
pub(super) struct SavedGraph {
    map: Arc<Mmap>,
    pub(super) files: Vec<SavedFile>,
    pub(super) packages: Vec<Box<str>>,
    rows: Range<usize>,
}

#[derive(Debug)]
pub(super) struct SavedFile {
    pub(super) path: Box<str>,
    pub(super) mark: ContentIdentity,
    /// Numbers of languages; 0 for none.
    pub(super) family: u8,
    /// To files by their position here.
    pub(super) edges: Box<[Edge]>,
    pub(super) packages: Box<[u32]>,
    pub(super) brought: Box<[u64]>,
    /// Position of the keys of looked-up places.
    looked: Range<usize>,
}

impl SavedGraph {
    /// Loads the graph in a directory; `None` where there is no usable one.
    pub(super) fn load(directory: &Path) -> Option<Self> {
        let map = Arc::new(map_file(&File::open(directory.join(FILE_NAME)).ok()?).ok()?);
        let rest = map.strip_prefix(MAGIC)?;
        let (told, rest) = rest.split_first_chunk::<8>()?;
        let (sum, body) = rest.split_first_chunk::<CHECKSUM_BYTES>()?;
        if u64::from_le_bytes(*told) != format_version().wrapping_add(RESULTS_VERSION)
            || blake3::hash(body).as_bytes() != sum
        {
            return None;
        }
        let at = map.len() - body.len();
        let mut cursor = ByteCursor::new(body);
        let place = |cursor: &ByteCursor<'_>| at + body.len() - cursor.unread_bytes().len();
        let mut files: Vec<SavedFile> = Vec::new();
        for _ in 0..cursor.read_number() {
            if cursor.is_empty() {
                return None;
            }
            let shared = usize::try_from(cursor.read_number()).ok()?;
            let mut path = files.last().map_or("", |file| &*file.path).get(..shared)?.to_owned();
            path.push_str(cursor.read_text());
            let mark = cursor.read_array();
            let family = cursor.read_u8();
            let edges = read_edges(&mut cursor);
            let packages = read_numbers(&mut cursor);
            let brought = (0..cursor.read_number())
                .map_while(|_| (!cursor.is_empty()).then(|| cursor.read_u64()))
                .collect();
            let looked = cursor.read_bytes();
            let end = place(&cursor);
            let looked = end - looked.len()..end;
            files.push(SavedFile { path: path.into(), mark, family, edges, packages, brought, looked });
        }
        let packages =
            (0..cursor.read_number()).map_while(|_| (!cursor.is_empty()).then(|| cursor.read_text().into()));
        let packages = packages.collect();
        let rows = place(&cursor)..map.len();
        Some(Self { files, packages, rows, map })
    }

    /// Returns the sorted keys of the places in which a file's imports were looked up.
    pub(super) fn looked_up_keys(&self, file: &SavedFile) -> Vec<u32> {
        let mut cursor = ByteCursor::new(self.map.get(file.looked.clone()).unwrap_or_default());
        let (mut places, mut last) = (Vec::new(), 0_u32);
        while !cursor.is_empty() {
            last = last.wrapping_add(cursor.read_small_number());
            places.push(last);
        }
        places
    }

    /// Returns the sorted definers of names.
    pub(super) fn definition_rows(&self) -> impl Iterator<Item = DefinitionRow> {
        let bytes = self.map.get(self.rows.clone()).unwrap_or_default();
        bytes.chunks_exact(ROW_BYTES).map(|row| {
            let mut cursor = ByteCursor::new(row);
            (cursor.read_u64(), cursor.read_u32())
        })
    }

    /// Saves the graph in a directory, atomically. Does nothing where another process is saving.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub(super) fn save(found: &ResolvedGraph, directory: &Path) -> Result<(), IndexError> {
        let Some(_lock) = WriteLock::take(&directory.join(LOCK_FILE_NAME), false)? else { return Ok(()) };
        let body = encode_body(found);
        let path = directory.join(NEW_FILE_NAME);
        // Without waiting for the disk: after a power failure a broken file fails its checksum, and
        // is rebuilt.
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(MAGIC)?;
            file.write_all(&format_version().wrapping_add(RESULTS_VERSION).to_le_bytes())?;
            file.write_all(blake3::hash(&body).as_bytes())?;
            file.write_all(&body)?;
            std::fs::rename(&path, directory.join(FILE_NAME))
        };
        write().map_err(IndexError::io("writing", &path))
    }
}

fn encode_body(found: &ResolvedGraph) -> Vec<u8> {
    let mut body = Vec::new();
    put_number(&mut body, found.nodes.len() as u64);
    let mut before = "";
    for (node, file) in found.nodes.iter().zip(&found.files) {
        let mut shared =
            before.bytes().zip(node.path.bytes()).take_while(|(one, other)| one == other).count();
        while !node.path.is_char_boundary(shared) {
            shared -= 1;
        }
        put_number(&mut body, shared as u64);
        put_bytes(&mut body, node.path.get(shared..).unwrap_or_default().as_bytes());
        body.extend_from_slice(&node.mark);
        body.push(name_dependencies::language_family(node.language).unwrap_or(0));
        put_edges(&mut body, &file.edges);
        put_numbers(&mut body, &file.packages);
        put_number(&mut body, file.brought.len() as u64);
        file.brought.iter().for_each(|name| body.extend_from_slice(&name.to_le_bytes()));
        let mut looked = Vec::new();
        let mut last = 0;
        for place in &file.looked {
            put_number(&mut looked, u64::from(place - last));
            last = *place;
        }
        put_bytes(&mut body, &looked);
        before = &node.path;
    }
    put_number(&mut body, found.packages.len() as u64);
    found.packages.iter().for_each(|name| put_bytes(&mut body, name.as_bytes()));
    for (name, file) in &found.rows {
        body.extend_from_slice(&name.to_le_bytes());
        body.extend_from_slice(&file.to_le_bytes());
    }
    body
}

fn put_edges(out: &mut Vec<u8>, edges: &[Edge]) {
    put_number(out, edges.len() as u64);
    let mut last = 0;
    for edge in edges {
        put_number(out, u64::from(edge.to - last));
        put_number(out, u64::from(edge.line) << 1 | u64::from(edge.part));
        put_number(out, u64::from(edge.names));
        last = edge.to;
    }
}

fn read_edges(cursor: &mut ByteCursor<'_>) -> Box<[Edge]> {
    let (mut edges, mut to) = (Vec::new(), 0_u32);
    for _ in 0..cursor.read_number() {
        if cursor.is_empty() {
            break;
        }
        to = to.wrapping_add(cursor.read_small_number());
        let line = cursor.read_number();
        let (line, part) = (u32::try_from(line >> 1).unwrap_or(u32::MAX), line & 1 == 1);
        edges.push(Edge { to, line, part, names: cursor.read_small_number() });
    }
    edges.into()
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    put_number(out, numbers.len() as u64);
    numbers.iter().for_each(|number| put_number(out, u64::from(*number)));
}

fn read_numbers(cursor: &mut ByteCursor<'_>) -> Box<[u32]> {
    (0..cursor.read_number())
        .map_while(|_| (!cursor.is_empty()).then(|| cursor.read_small_number()))
        .collect()
}
