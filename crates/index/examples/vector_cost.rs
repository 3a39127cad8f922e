//! Costs of comparing vectors: `vector_cost [CHUNKS] [DIMENSIONS]`, a million and 256 by default.
//!
//! Builds an index of that many chunks in a temporary directory, gives each a random vector, and
//! measures opening the vectors and searching the nearest ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use journeyman_index::Index;
use journeyman_index::source::WorkTree;
use journeyman_index::vectors::{
    Deadline, EmbedError, Embedder, EmbeddingOptions, EmbeddingPurpose, VectorStore,
};

/// Lines of a chunk, and chunks of a file.
const LINES: usize = 40;
const CHUNKS: usize = 200;

struct Random {
    dimensions: usize,
    seed: AtomicU64,
}

impl Embedder for Random {
    fn name(&self) -> &str {
        "random"
    }
    fn identity(&self) -> [u8; 32] {
        [7; 32]
    }
    fn dimensions(&self) -> Option<usize> {
        Some(self.dimensions)
    }
    fn batch_size(&self) -> usize {
        256
    }
    fn embed(
        &self,
        texts: &[&str],
        _: EmbeddingPurpose,
        _: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut random = fastrand::Rng::with_seed(self.seed.fetch_add(1, Ordering::Relaxed));
        Ok(texts.iter().map(|_| (0..self.dimensions).map(|_| random.f32() - 0.5).collect()).collect())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let chunks = arguments.next().unwrap_or(1_000_000);
    let dimensions = arguments.next().unwrap_or(256);
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    for file in 0..chunks.div_ceil(CHUNKS) {
        let lines = CHUNKS.min(chunks - file * CHUNKS) * LINES;
        let text: String = (0..lines).map(|line| format!("{file} {line}\n")).collect();
        let directory = tree.join((file / 1_000).to_string());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("{file}.py")), text).unwrap();
    }
    let never = AtomicBool::new(false);
    let threads = NonZero::new(2).unwrap();
    let source = WorkTree::new(&tree, 2);
    let index = Index::open(&kept.path().join("index")).unwrap();
    let options =
        journeyman_index::store::RefreshOptions { threads, wait: true, progress: &|_| {}, stop: &never };
    index.refresh(&source, options).unwrap();
    let snapshot = index.snapshot();
    let model = Random { dimensions, seed: AtomicU64::new(1) };
    let time = |what: &str, start: Instant| println!("{what}: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    let start = Instant::now();
    let vectors = VectorStore::open(index.directory(), &model).unwrap();
    let redactor = journeyman_policy::secrets::Redactor::default();
    let options = EmbeddingOptions { threads, progress: &|_| {}, stop: &never, redactor: &redactor };
    let report = vectors.embed_snapshot(&snapshot, &source, &model, options).unwrap();
    assert_eq!(report.failed, None);
    time(&format!("keeping {} vectors", report.embedded), start);
    let start = Instant::now();
    let report = vectors.embed_snapshot(&snapshot, &source, &model, options).unwrap();
    assert_eq!(report.embedded, 0);
    time("following without a change", start);
    let start = Instant::now();
    let vectors = VectorStore::open(index.directory(), &model).unwrap();
    let view = vectors.view(&snapshot);
    time(&format!("opening {} of them", view.chunk_count()), start);
    let stats = vectors.stats(&snapshot);
    println!("{} bytes, {:.0} a vector", stats.bytes, stats.bytes as f64 / stats.kept as f64);

    let mut random = fastrand::Rng::with_seed(99);
    let mut times = Vec::new();
    for _ in 0..40 {
        let query: Vec<f32> = (0..dimensions).map(|_| random.f32() - 0.5).collect();
        let start = Instant::now();
        let found = view.nearest_chunks(&query, 1_000);
        times.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(found.chunks.len(), 1_000.min(view.chunk_count()));
    }
    times.sort_by(f64::total_cmp);
    println!("nearest 1,000: median {:.1} ms, best {:.1} ms, worst {:.1} ms", times[20], times[0], times[39]);
}
