//! Files that the session looked at, and vectors if turned on, affect the ranking of code search.

use crate::bench;

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench::Bench;
use journeyman_index::vectors::{
    Deadline, EmbedError, Embedder, EmbeddingOptions, EmbeddingPurpose, QueryEmbedder, VectorStore,
};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use journeyman_tools::SharedIndex;
use serde_json::json;

const NUMBERS: usize = 16;
const SECRET: &str = "hunter2hunter2";

/// Counts words by their first letter; clients and customers are the same to it.
#[derive(Default)]
struct Letters {
    asked: Mutex<Vec<String>>,
    fails: AtomicBool,
}

impl Embedder for Letters {
    fn name(&self) -> &str {
        "test/letters"
    }

    fn identity(&self) -> [u8; 32] {
        [7; 32]
    }

    fn dimensions(&self) -> Option<usize> {
        Some(NUMBERS)
    }

    fn batch_size(&self) -> usize {
        8
    }

    fn embed(
        &self,
        texts: &[&str],
        _: EmbeddingPurpose,
        _: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.asked.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        if self.fails.load(Ordering::Relaxed) {
            return Err(EmbedError::TooLate);
        }
        let vector = |text: &&str| {
            let mut vector = vec![0.0; NUMBERS];
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
                let word = if word == "client" { "customer" } else { word };
                vector[usize::from(word.as_bytes()[0]) % NUMBERS] += 1.0;
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// A project whose bell is for customers, and its index with vectors.
fn shop(model: &Arc<Letters>) -> Bench {
    let door = format!("def open_door():\n    key = '{SECRET}'\n    return 2\n");
    let mut bench = Bench::new(&[
        ("src/bell.py", b"def ring_bell():\n    # customer customer customer\n    return 1\n"),
        ("src/door.py", door.as_bytes()),
    ]);
    let redactor = Arc::new(Redactor::new([SECRET.to_owned()]));
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), redactor, None);
    let embedder: Arc<dyn Embedder> = Arc::clone(model) as Arc<dyn Embedder>;
    let vectorer = QueryEmbedder { embedder, weight: 0.2, timeout: Duration::from_secs(60) };
    bench.context.index = Arc::new(index.with_vectors(Arc::new(move || Ok(Some(vectorer.clone())))));
    let asked = bench.context.index.snapshot(&bench.context.cancel).unwrap();
    let vectors = VectorStore::open(asked.project.index().directory(), &**model).unwrap();
    let stop = AtomicBool::new(false);
    let redactor = asked.project.index().redactor();
    let options =
        EmbeddingOptions { threads: NonZero::<usize>::MIN, progress: &|_| {}, stop: &stop, redactor };
    let report =
        vectors.embed_snapshot(&asked.snapshot, asked.project.work_tree(), &**model, options).unwrap();
    assert_eq!((report.embedded, report.failed), (2, None));
    bench
}

#[test]
fn vectors_find_what_has_other_words() {
    let model = Arc::new(Letters::default());
    let bench = shop(&model);
    let said = bench.say("search_code", json!({"query": "client client"}));
    assert!(said.starts_with("src/bell.py  (vectors 100%)"), "{said}");
    // A copy's files have the same contents.
    let copy =
        Bench::new(&[("src/bell.py", b"def ring_bell():\n    # customer customer customer\n    return 1\n")]);
    let mut context = copy.context.clone();
    context.index = Arc::new(bench.context.index.for_copy(Arc::clone(&context.workspace)));
    let asked = context.index.snapshot(&context.cancel).unwrap();
    let (found, note) = context.index.similar_files(&asked, "client");
    assert_eq!((found.unwrap().0.chunks.len(), note), (1, None));
}

#[test]
fn no_secret_is_sent_to_a_model_of_vectors() {
    let model = Arc::new(Letters::default());
    let bench = shop(&model);
    bench.say("search_code", json!({"query": format!("customer {SECRET}")}));
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|text| !text.contains(SECRET)), "{asked:?}");
    assert!(asked[2].starts_with("customer "), "{asked:?}");
}

#[test]
fn a_model_that_fails_is_said_once_and_left_alone_for_a_while() {
    let model = Arc::new(Letters::default());
    let bench = shop(&model);
    model.fails.store(true, Ordering::Relaxed);
    let said = bench.say("search_code", json!({"query": "bell"}));
    assert!(said.starts_with("[note: vectors don't count this time: the embedding model didn't"), "{said}");
    assert!(said.contains("\nsrc/bell.py  ("), "{said}");
    let asked = model.asked.lock().unwrap().len();
    let said = bench.say("search_code", json!({"query": "bell"}));
    assert!(said.starts_with("src/bell.py  ("), "{said}");
    assert_eq!(model.asked.lock().unwrap().len(), asked);
}

#[test]
fn a_model_is_looked_for_when_somebody_searches_and_only_once() {
    let looked = Arc::new(AtomicUsize::new(0));
    let mut bench = Bench::new(&[("src/bell.py", b"def ring_bell():\n    pass\n")]);
    let count = Arc::clone(&looked);
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), None);
    bench.context.index = Arc::new(index.with_vectors(Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Err("there is no such model".to_owned())
    })));
    bench.say("get_symbols", json!({"name": "ring_bell"}));
    assert_eq!(looked.load(Ordering::Relaxed), 0);
    let said = bench.say("search_code", json!({"query": "bell"}));
    assert!(said.starts_with("[note: vectors don't count this time: there is no such model]\n"), "{said}");
    let said = bench.say("search_code", json!({"query": "bell"}));
    assert!(said.starts_with("src/bell.py"), "{said}");
    assert_eq!(looked.load(Ordering::Relaxed), 1);
}

#[test]
fn what_is_near_to_what_was_looked_at_counts() {
    let bench = Bench::new(&[
        ("a/one.py", b"def ring_bell():\n    return 'loud'\n"),
        ("b/two.py", b"def ring_bell():\n    return 'loud'\n"),
        ("app/main.py", b"from b.two import ring_bell\n\nring_bell()\n"),
        ("app/other.py", b"x = 1\n"),
    ]);
    let search = || bench.say("search_code", json!({"query": "is the bell loud"}));
    assert!(search().starts_with("a/one.py  ("), "{}", search());
    bench.say("read_file", json!({"path": "app/main.py"}));
    bench.say("read_file", json!({"path": "app/other.py"}));
    let said = search();
    assert!(said.starts_with("b/two.py  (") && said.lines().next().unwrap().contains("near "), "{said}");
    // As the files are now, once that is known: what was near is near no more.
    std::fs::write(bench.root.join("app/main.py"), "from a.one import ring_bell\n\nring_bell()\n").unwrap();
    bench.context.index.note_changed([&RelPath::parse("app/main.py").unwrap()]);
    while !search().starts_with("a/one.py  (") {
        std::thread::yield_now();
    }
    assert!(search().lines().next().unwrap().contains("near "));
}
