//! Vectors: new texts are embedded once, damaged parts are made again, unused vectors are dropped.

use crate::common;

use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{put, refresh};
use journeyman_index::query::{Query, QueryContext, Searcher, Signal};
use journeyman_index::source::WorkTree;
use journeyman_index::tokens::Tokenizer;
use journeyman_index::vectors::{
    Deadline, EmbedError, Embedder, EmbeddingOptions, EmbeddingPurpose, EmbeddingReport, VectorStore,
};
use journeyman_index::{Index, IndexError};

static NEVER: AtomicBool = AtomicBool::new(false);
const DIMENSIONS: usize = 48;

/// An embedder that counts words by the sum of their bytes, and records its texts.
struct Words {
    identity: u8,
    dimensions: usize,
    asked: Mutex<Vec<String>>,
    /// Fails from this number of texts on.
    max_texts: usize,
    spoil: fn(&mut Vec<Vec<f32>>),
}

impl Words {
    fn new() -> Self {
        Self {
            identity: 1,
            dimensions: DIMENSIONS,
            asked: Mutex::default(),
            max_texts: usize::MAX,
            spoil: |_| {},
        }
    }

    fn asked(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap()).len()
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.dimensions];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
            let sum: usize = word.bytes().enumerate().map(|(at, byte)| (at + 1) * usize::from(byte)).sum();
            vector[sum % self.dimensions] += 1.0;
        }
        vector
    }
}

impl Embedder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn identity(&self) -> [u8; 32] {
        [self.identity; 32]
    }

    fn dimensions(&self) -> Option<usize> {
        None
    }

    fn batch_size(&self) -> usize {
        4
    }

    fn max_concurrency(&self) -> usize {
        2
    }

    fn embed(
        &self,
        texts: &[&str],
        _: EmbeddingPurpose,
        deadline: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        deadline.check()?;
        let mut asked = self.asked.lock().unwrap();
        if asked.len() + texts.len() > self.max_texts {
            return Err(EmbedError::Failed { model: "words".to_owned(), what: "tired".to_owned() });
        }
        asked.extend(texts.iter().map(|text| (*text).to_owned()));
        let mut vectors = texts.iter().map(|text| self.vector(text)).collect();
        (self.spoil)(&mut vectors);
        Ok(vectors)
    }
}

struct House {
    kept: tempfile::TempDir,
    index: Index,
}

impl House {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let index = Index::open(&kept.path().join("index")).unwrap();
        std::fs::create_dir(kept.path().join("tree")).unwrap();
        Self { kept, index }
    }

    fn tree(&self) -> std::path::PathBuf {
        self.kept.path().join("tree")
    }

    fn open(&self, embedder: &dyn Embedder) -> VectorStore {
        VectorStore::open(self.index.directory(), embedder).unwrap()
    }

    fn follow_with(&self, embedder: &dyn Embedder, stop: &AtomicBool) -> EmbeddingReport {
        refresh(&self.index, &self.tree());
        let redactor = journeyman_policy::secrets::Redactor::default();
        let options = EmbeddingOptions {
            threads: NonZero::new(2).unwrap(),
            progress: &|_| {},
            stop,
            redactor: &redactor,
        };
        let source = WorkTree::new(&self.tree(), 1);
        self.open(embedder).embed_snapshot(&self.index.snapshot(), &source, embedder, options).unwrap()
    }

    /// Embeds what is new. A process that another test is starting keeps a copy of the lock until
    /// it runs its program.
    fn follow(&self, embedder: &dyn Embedder) -> EmbeddingReport {
        for _ in 0..2_000 {
            let report = self.follow_with(embedder, &NEVER);
            if !report.left_to_another {
                return report;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the lock stays taken");
    }

    fn parts(&self) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(self.index.directory().join("vectors")).unwrap();
        let mut parts: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        parts.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("part-"));
        parts.sort();
        parts
    }

    /// Returns files by similarity to a text, with the similarity.
    fn nearest(&self, words: &Words, text: &str) -> Vec<(String, f32)> {
        let snapshot = self.index.snapshot();
        let similar = self.open(words).view(&snapshot).nearest_chunks(&words.vector(text), 1_000);
        let mut found: Vec<(String, f32)> = similar
            .chunks
            .iter()
            .map(|(chunk, score)| {
                let file = snapshot.chunk(*chunk).unwrap().file;
                (snapshot.file(file).unwrap().path().unwrap().to_string(), *score)
            })
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }
}

/// Returns forty lines, which are one chunk.
fn block(word: &str) -> String {
    (0..40).map(|line| format!("{word}{line} = {word}\n")).collect()
}

fn fill(tree: &Path) {
    put(tree, "apples.py", block("apple"));
    put(tree, "pears.py", format!("{}{}", block("pear"), block("quince")));
    put(tree, "again.py", block("apple"));
}

#[test]
fn only_new_texts_are_embedded() {
    let house = House::new();
    let words = Words::new();
    fill(&house.tree());
    let report = house.follow(&words);
    assert_eq!((report.embedded, report.reused, report.files), (3, 1, 3), "a text is embedded once");
    assert_eq!(words.asked(), 3);
    assert_eq!(house.follow(&words), EmbeddingReport::default());

    // One of two chunks changed.
    put(&house.tree(), "pears.py", format!("{}{}", block("pear"), block("plum")));
    let report = house.follow(&words);
    assert_eq!((report.embedded, report.reused, report.files), (1, 1, 1));
    assert_eq!(*words.asked.lock().unwrap(), [block("plum")]);
    words.asked();

    // As when another branch is checked out, and then the first one again.
    put(&house.tree(), "pears.py", format!("{}{}", block("pear"), block("quince")));
    std::fs::rename(house.tree().join("apples.py"), house.tree().join("fruit.py")).unwrap();
    let report = house.follow(&words);
    assert_eq!((report.embedded, words.asked()), (0, 0), "{report:?}");

    let snapshot = house.index.snapshot();
    let stats = house.open(&words).stats(&snapshot);
    assert_eq!((stats.embedded, stats.chunks, stats.dimensions), (4, 4, Some(DIMENSIONS)));
    assert!(stats.bytes > 0 && stats.kept >= 4);
}

#[test]
fn results_equal_exhaustive_comparison() {
    let house = House::new();
    let words = Words::new();
    let mut random = fastrand::Rng::with_seed(3);
    let text = |random: &mut fastrand::Rng| -> String {
        (0..40).map(|_| format!("word{} name{}\n", random.u32(..50), random.u32(..50))).collect()
    };
    for number in 0..60 {
        put(&house.tree(), &format!("{number}.py"), text(&mut random));
    }
    house.follow(&words);
    for _ in 0..10 {
        let query = text(&mut random);
        let wanted = words.vector(&query);
        let length = |vector: &[f32]| vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let found = house.nearest(&words, &query);
        assert_eq!(found.len(), 60);
        for (path, score) in found {
            let own = words.vector(&std::fs::read_to_string(house.tree().join(path)).unwrap());
            let dot: f32 = own.iter().zip(&wanted).map(|(a, b)| a * b).sum();
            let cosine = dot / (length(&own) * length(&wanted));
            assert!((score - cosine).abs() < 0.02, "{score} {cosine}");
        }
        // The best ten of sixty, above the eleventh.
        let snapshot = house.index.snapshot();
        let view = house.open(&words).view(&snapshot);
        let (all, ten) = (view.nearest_chunks(&wanted, 60), view.nearest_chunks(&wanted, 10));
        let mut scores: Vec<f32> = all.chunks.iter().map(|(_, score)| *score).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        assert!(ten.chunks.len() <= 10 && !ten.chunks.is_empty());
        for (chunk, score) in ten.chunks {
            let before = all.chunks.iter().find(|(one, _)| *one == chunk).unwrap().1;
            assert!((before - score - scores[10]).abs() < 1e-5);
        }
        assert!(
            view.nearest_chunks(&[1.0, 0.0], 10).chunks.is_empty(),
            "a vector of another length is like nothing"
        );
    }
}

#[test]
fn an_updated_index_finds_the_same_as_a_new_one() {
    let (house, other) = (House::new(), House::new());
    let words = Words::new();
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..30 {
        for _ in 0..4 {
            let path = format!("{}.py", random.u32(..12));
            if random.u8(..4) == 0 {
                std::fs::remove_file(house.tree().join(&path)).ok();
            } else {
                let text: String =
                    (0..random.usize(1..4)).map(|_| block(&format!("w{}", random.u32(..30)))).collect();
                put(&house.tree(), &path, text);
            }
        }
        house.follow(&words);
        if round % 10 == 9 {
            for entry in std::fs::read_dir(house.tree()).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), other.tree().join(entry.file_name())).unwrap();
            }
            for entry in std::fs::read_dir(other.tree()).unwrap() {
                let path = entry.unwrap().path();
                if !house.tree().join(path.file_name().unwrap()).exists() {
                    std::fs::remove_file(path).unwrap();
                }
            }
            VectorStore::remove_all(other.index.directory()).unwrap();
            other.follow(&words);
            let asked = block("w7") + &block("w9");
            assert_eq!(house.nearest(&words, &asked), other.nearest(&words, &asked));
        }
    }
    // Many small parts were merged into few.
    assert!(house.parts().len() < 10, "{:?}", house.parts());
}

#[test]
fn damaged_parts_are_made_again() {
    let house = House::new();
    let words = Words::new();
    fill(&house.tree());
    house.follow(&words);
    let before = house.nearest(&words, "pear quince");
    let part = house.parts().remove(0);
    let whole = std::fs::read(&part).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..40 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(random.usize(..whole.len())),
            1 => bytes[random.usize(..whole.len())] ^= 1 << random.u8(..8),
            _ => bytes.extend_from_slice(b"more"),
        }
        // Another file under the same name: a mapped file isn't changed.
        let new = part.with_extension("damaged");
        std::fs::write(&new, &bytes).unwrap();
        std::fs::rename(&new, &part).unwrap();
        let vectors = house.open(&words);
        // A query doesn't panic, whatever it finds.
        let found = vectors.view(&house.index.snapshot()).nearest_chunks(&words.vector("apple"), 10);
        assert!(found.chunks.len() <= 4);
        let found = vectors.damage_report().is_some();
        let verified = vectors.verify();
        assert!(found || matches!(verified, Err(IndexError::Damaged { .. })), "round {round}: {verified:?}");
        words.asked();
        assert_eq!(house.follow(&words).embedded, 3);
        assert_eq!(house.nearest(&words, "pear quince"), before);
        std::fs::write(&part, &whole).unwrap();
        house
            .parts()
            .into_iter()
            .filter(|path| *path != part)
            .for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

#[test]
fn a_crash_does_not_block_later_runs() {
    let house = House::new();
    let words = Words::new();
    fill(&house.tree());
    std::fs::create_dir_all(house.index.directory().join("vectors")).unwrap();
    let half = house.index.directory().join("vectors/new");
    std::fs::write(&half, b"JMVECTOR half").unwrap();
    assert_eq!(house.follow(&words).embedded, 3);
    assert!(!half.exists());
    assert_eq!(house.nearest(&words, "apple").len(), 4);
}

#[test]
fn each_model_has_its_own_vectors() {
    let house = House::new();
    let (one, other) = (Words::new(), Words { identity: 2, dimensions: 100, ..Words::new() });
    fill(&house.tree());
    house.follow(&one);
    assert!(house.nearest(&other, "apple").is_empty());
    let tired = Words { identity: 2, dimensions: 100, max_texts: 0, ..Words::new() };
    assert!(house.follow(&tired).failed.is_some());
    assert_eq!(house.nearest(&one, "apple").len(), 4, "the old model's stay until the new one's are whole");
    assert_eq!(house.follow(&other).embedded, 3);
    assert_eq!(house.nearest(&other, "apple")[0].0, "again.py");
    assert!(house.nearest(&one, "apple").is_empty(), "then they go");
}

#[test]
fn invalid_answers_are_refused() {
    type Case = (fn(&mut Vec<Vec<f32>>), &'static str);
    let cases: [Case; 5] = [
        (|vectors| vectors.truncate(1), "for 4 texts"),
        (|vectors| vectors[0][0] = f32::NAN, "infinite or none"),
        (|vectors| vectors[1][0] = f32::INFINITY, "infinite or none"),
        (|vectors| vectors[1].truncate(3), "of 3 numbers"),
        (|vectors| vectors.iter_mut().for_each(Vec::clear), "of 0 numbers"),
    ];
    for (spoil, said) in cases {
        let house = House::new();
        let words = Words { spoil, ..Words::new() };
        for number in 0..4 {
            put(&house.tree(), &format!("{number}.py"), block(&format!("w{number}")));
        }
        let report = house.follow(&words);
        let told = report.failed.unwrap().to_string();
        assert!(told.contains(said), "{told}");
        assert_eq!(report.embedded, 0);
    }
}

#[test]
fn a_replaced_model_is_noticed() {
    let house = House::new();
    fill(&house.tree());
    house.follow(&Words::new());
    put(&house.tree(), "new.py", block("kiwi"));
    let report = house.follow(&Words { dimensions: 30, ..Words::new() });
    let told = report.failed.unwrap();
    assert!(matches!(told, EmbedError::Dimensions { expected: DIMENSIONS, got: 30, .. }), "{told}");
    assert!(told.to_string().contains("--rebuild"));
    assert_eq!(house.nearest(&Words::new(), "apple").len(), 4, "what there was is still there");
    VectorStore::remove_all(house.index.directory()).unwrap();
    assert_eq!(house.follow(&Words { dimensions: 30, ..Words::new() }).embedded, 4);
}

#[test]
fn work_before_a_stop_or_failure_is_kept() {
    let house = House::new();
    for number in 0..80 {
        put(&house.tree(), &format!("{number:02}.py"), block(&format!("w{number}")));
    }
    let tired = Words { max_texts: 50, ..Words::new() };
    let report = house.follow(&tired);
    assert_eq!(report.failed.unwrap().to_string(), "`words` can't be asked: tired");
    assert!((30..=50).contains(&report.embedded), "{}", report.embedded);
    let stop = AtomicBool::new(true);
    let stopped = house.follow_with(&Words::new(), &stop);
    assert_eq!((stopped.embedded, stopped.failed), (0, Some(EmbedError::Stopped)));
    stop.store(false, Ordering::Relaxed);
    let words = Words::new();
    assert_eq!(house.follow_with(&words, &stop).embedded, 80 - report.embedded);
    assert_eq!(words.asked(), 80 - report.embedded);
}

#[test]
fn there_is_one_writer_at_a_time() {
    let house = House::new();
    fill(&house.tree());
    let words = Words::new();
    house.follow(&words);
    let lock = std::fs::File::open(house.index.directory().join("vectors/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    put(&house.tree(), "new.py", block("kiwi"));
    assert!(house.follow_with(&words, &NEVER).left_to_another);
    drop(lock);
    assert_eq!(house.follow(&words).embedded, 1);
}

#[test]
fn unused_vectors_are_dropped_when_they_outnumber_the_others() {
    let house = House::new();
    let words = Words::new();
    let many = |word: &str, count: usize| -> String {
        (0..count).map(|at| block(&format!("{word}{at}x"))).collect()
    };
    // Above the number that is always kept: 4,096.
    put(&house.tree(), "few.txt", many("few", 10));
    for file in 0..9 {
        put(&house.tree(), &format!("{file}.txt"), many(&format!("m{file}n"), 500));
    }
    let report = house.follow(&words);
    assert_eq!(report.embedded, 4_510);
    (0..9).for_each(|file| std::fs::remove_file(house.tree().join(format!("{file}.txt"))).unwrap());
    let report = house.follow(&words);
    assert_eq!((report.dropped, report.embedded), (4_500, 0));
    let stats = house.open(&words).stats(&house.index.snapshot());
    assert_eq!((stats.kept, stats.embedded), (10, 10));
}

#[test]
fn vectors_have_the_requested_weight() {
    let house = House::new();
    let words = Words::new();
    fill(&house.tree());
    put(&house.tree(), "empty.py", "");
    house.follow(&words);
    let snapshot = house.index.snapshot();
    let view = house.open(&words).view(&snapshot);
    let similar = view.nearest_chunks(&words.vector("quince"), 100);
    let query = Query::new("where is the fruit", &mut Tokenizer::new());
    let ask = |context: QueryContext<'_>| Searcher::new().search(&*snapshot, None, &query, context, 10);
    assert!(ask(QueryContext::default()).files.is_empty(), "no word of the query is anywhere");
    let nothing = ask(QueryContext { vectors: Some((&similar, 0.0)), ..QueryContext::default() });
    assert!(nothing.files.is_empty());
    let found = ask(QueryContext { vectors: Some((&similar, 0.2)), ..QueryContext::default() });
    let best = &found.files[0];
    assert_eq!(best.path, b"pears.py");
    assert_eq!((best.why[0].signal, best.why[0].share), (Signal::Vectors, 1.0));
    assert_eq!(best.passages[0].first_line, 41, "the chunk that is like it is shown: {:?}", best.passages);
}
