//! Comparing the vectors of a snapshot's chunks with a query's.

use std::num::NonZero;
use std::sync::Arc;

use super::dot::{dot_products, row_bytes};
use super::quantise::quantise;
use super::vector_part::{VectorPart, text_key_from_hash};
use crate::Snapshot;
use crate::snapshot::FileView;

/// Minimum rows for a second thread: starting one costs as much as comparing so many.
const ROWS_PER_THREAD: usize = 50_000;
/// Maximum threads. Memory is soon the limit.
const MAX_THREADS: usize = 4;

/// Returns the files whose chunks should have vectors: hand-written ones.
pub(super) fn embeddable_files(snapshot: &Snapshot) -> impl Iterator<Item = (u32, FileView<'_>)> {
    snapshot.files().filter(|(_, file)| {
        let flags = file.record.flags;
        file.record.chunks > 0 && file.record.lines > 0 && !flags.vendored && !flags.generated
    })
}

/// The row of each chunk of a snapshot. It is valid for that snapshot only.
#[derive(Debug, Clone, Default)]
pub struct VectorView {
    parts: Arc<Vec<Arc<VectorPart>>>,
    /// By part: chunks, and their rows in it.
    rows: Vec<Vec<(u32, u32)>>,
}

/// Chunks similar to a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimilarChunks {
    /// Numbers of the chunks, and by how much their cosine exceeds that of the best chunk left out.
    /// In ascending order of the numbers.
    pub chunks: Vec<(u32, f32)>,
}

impl VectorView {
    pub(super) fn new(parts: Arc<Vec<Arc<VectorPart>>>, snapshot: &Snapshot) -> Self {
        let mut rows = vec![Vec::new(); parts.len()];
        for (_, file) in embeddable_files(snapshot) {
            let content = text_key_from_hash(&file.record.hash);
            let first = file.first_chunk();
            // The newest part with the content has all of it, unless its chunks have been cut
            // differently since.
            for (part, rows) in parts.iter().zip(&mut rows).rev() {
                let mut links = part.links_of(&content).peekable();
                if links.peek().is_none() {
                    continue;
                }
                let links: Vec<_> = links.collect();
                for number in first..first.saturating_add(file.record.chunks) {
                    let Some(chunk) = snapshot.chunk(number) else { continue };
                    let place = (chunk.first_line, chunk.lines);
                    if let Ok(at) = links.binary_search_by_key(&place, |link| (link.first_line, link.lines)) {
                        rows.extend(links.get(at).map(|link| (number, link.row)));
                    }
                }
                break;
            }
        }
        Self { parts, rows }
    }

    /// Returns the number of chunks with a vector.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Returns the chunks most similar to a vector, `most` at most. All are compared. Nothing is
    /// similar to a vector of another length.
    #[must_use]
    pub fn nearest_chunks(&self, vector: &[f32], most: usize) -> SimilarChunks {
        let query = quantise(vector);
        let mut padded = query.values;
        padded.resize(row_bytes(vector.len()), 0);
        let mut found: Vec<(u32, f32)> = Vec::with_capacity(self.chunk_count());
        for (part, rows) in self.parts.iter().zip(&self.rows) {
            if rows.is_empty() || part.dimensions() != vector.len() {
                continue;
            }
            let sums = dot_products_with_rows(&padded, part.rows());
            #[allow(clippy::cast_precision_loss)]
            found.extend(rows.iter().map(|(chunk, row)| {
                let sum = sums.get(*row as usize).copied().unwrap_or(0);
                (*chunk, sum as f32 * part.scale(*row) * query.scale)
            }));
        }
        SimilarChunks::most_similar(found, most)
    }
}

impl SimilarChunks {
    /// Returns those chunks with the greatest cosines, `most` at most.
    #[must_use]
    pub fn most_similar(mut found: Vec<(u32, f32)>, most: usize) -> Self {
        let floor = if found.len() > most {
            let (_, last, _) = found.select_nth_unstable_by(most, |a, b| b.1.total_cmp(&a.1));
            last.1.max(0.0)
        } else {
            0.0
        };
        found.truncate(most);
        found.iter_mut().for_each(|(_, score)| *score -= floor);
        found.retain(|(_, score)| *score > 0.0);
        found.sort_unstable_by_key(|(chunk, _)| *chunk);
        Self { chunks: found }
    }
}

/// Computes the dot product with each row, on several threads where there are many.
fn dot_products_with_rows(query: &[i8], rows: &[u8]) -> Vec<i32> {
    let count = rows.len() / query.len().max(1);
    let mut sums = vec![0; count];
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (count / ROWS_PER_THREAD).clamp(1, threads.min(MAX_THREADS));
    let each = count.div_ceil(threads).max(1);
    let mut pieces = sums.chunks_mut(each).zip(rows.chunks(each.saturating_mul(query.len()).max(1)));
    let own = pieces.next();
    std::thread::scope(|scope| {
        for (sums, rows) in pieces {
            scope.spawn(|| dot_products(query, rows, sums));
        }
        if let Some((sums, rows)) = own {
            dot_products(query, rows, sums);
        }
    });
    sums
}
