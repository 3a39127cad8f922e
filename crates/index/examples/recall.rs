//! Ranking for real issues: `recall ROWS MIRROR OUT [--go-on] [--limit N] [--signals FILE]
//! [--source] [--vectors MODEL --weight W]`.
//!
//! Reads each row's base commit from its git directory, without checking it out, indexes its files
//! in memory, searches with the text and writes the ranking in the format of `score.py`.
//! Analyses are reused for the next rows of the repository. With `--go-on`, an interrupted run
//! continues: only for the same program and options. `--signals` writes every signal of every file
//! for experiments with weights; `--source` leaves out other files than source, which is faster and
//! finds a little more. `--vectors` names the directory of a model2vec model, whose vectors then
//! have weight W.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use journeyman_git::Git;
use journeyman_index::analyser::Analyser;
use journeyman_index::analysis::{FileAnalysis, FileStamp};
use journeyman_index::history::History;
use journeyman_index::query::{Corpus as _, MemoryCorpus, Query, QueryContext, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::vectors::{
    Deadline, Embedder as _, EmbeddingPurpose, Model2Vec, SimilarChunks, embedded_part,
};
use journeyman_protocol::{RelPath, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxSettings, run_helper_if_asked};
use serde_json::{Value, json};

/// Maximum bytes of a file: no row's are longer.
const MAX_BYTES: u64 = 1_000_000;
/// Maximum chunks similar to a query.
const LIKE: usize = 1_000;
/// Maximum files of a written ranking.
const RANKED: usize = 300;

/// Data that is reused between the rows of a repository.
#[derive(Default)]
struct Known {
    facts: HashMap<(RelPath, String), Arc<FileAnalysis>>,
    history: Option<History>,
    /// By file: a normalised vector of each chunk.
    vectors: HashMap<(RelPath, String), Arc<Vec<Vec<f32>>>>,
    model: Option<Arc<Model2Vec>>,
}

struct Options {
    rows: Vec<Value>,
    mirror: PathBuf,
    out: File,
    signals: Option<BufWriter<File>>,
    only_source: bool,
    model: Option<Arc<Model2Vec>>,
    weight: f32,
}

fn main() {
    run_helper_if_asked();
    let mut options = options();
    let mut by_repo: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in std::mem::take(&mut options.rows) {
        by_repo.entry(row["repo"].as_str().unwrap().to_owned()).or_default().push(row);
    }
    let settings = SandboxSettings {
        allow: vec![SandboxTier::Namespaces, SandboxTier::Unconfined],
        allow_root: true,
        ..Default::default()
    };
    let sandbox = Arc::new(Sandbox::new(settings));
    let (mut analyst, mut searcher, mut tokenizer) = (Analyser::new(), Searcher::new(), Tokenizer::new());
    let places = places(&options.mirror, by_repo.keys());
    let (total, mut ranked_rows, began) = (by_repo.values().map(Vec::len).sum::<usize>(), 0, Instant::now());
    let mut times = Vec::new();
    for ((repo, mut rows), place) in by_repo.into_iter().zip(places) {
        let started = Instant::now();
        let git = Git::new(&place, Arc::clone(&sandbox));
        rows.sort_by_key(|row| row["date"].as_str().unwrap_or_default().to_owned());
        let mut known = Known { model: options.model.clone(), ..Known::default() };
        let count = rows.len();
        for row in rows {
            let base = row["base_commit"].as_str().unwrap();
            let (corpus, vectors) = corpus(&git, base, &mut known, &mut analyst, options.only_source);
            known.history = Git::run_blocking(History::read(&git, base, known.history.take())).unwrap();
            let asked = Instant::now();
            let query = Query::new(row["query"].as_str().unwrap(), &mut tokenizer);
            let history = known.history.as_ref();
            let similar = options.model.as_ref().map(|model| {
                let wanted = embed(model, &[row["query"].as_str().unwrap()]).remove(0);
                let cosine = |one: &Vec<f32>| one.iter().zip(&wanted).map(|(a, b)| a * b).sum();
                let all = (0..).zip(vectors.iter().flat_map(|file| file.iter()).map(cosine));
                SimilarChunks::most_similar(all.collect(), LIKE)
            });
            let vectors = similar.as_ref().map(|similar| (similar, options.weight));
            let context = QueryContext { vectors, ..QueryContext::default() };
            let answer = searcher.search(&corpus, history, &query, context, RANKED);
            times.push(asked.elapsed().as_secs_f64() * 1e3);
            let ranked: Vec<_> = answer.files.iter().map(|hit| String::from_utf8_lossy(&hit.path)).collect();
            writeln!(options.out, "{}", json!({ "id": row["id"], "ranked": ranked })).unwrap();
            if let Some(out) = &mut options.signals {
                let raw = searcher.raw_signals(&corpus, history, &query);
                let files: Vec<_> =
                    raw.iter().map(|(file, signals)| json!([path(&corpus, *file), signals])).collect();
                writeln!(out, "{}", json!({ "id": row["id"], "files": files })).unwrap();
            }
        }
        ranked_rows += count;
        let (here, all) = (started.elapsed().as_secs_f64(), began.elapsed().as_secs_f64());
        eprintln!("{repo}: {count} rows in {here:.1} s ({ranked_rows} of {total} in {all:.0} s)");
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    println!("query: p50 {:.2} ms, p99 {:.2} ms, {} queries", at(0.5), at(0.99), times.len());
}

fn options() -> Options {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next();
    let [rows, mirror, out] =
        [(); 3].map(|()| PathBuf::from(next().expect("recall ROWS MIRROR OUT [--limit N]")));
    let text = std::fs::read_to_string(rows).expect("the rows can't be read");
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = out;
    let out = File::options().create(true).append(true).open(&place).expect("OUT can't be written");
    let mut options = Options {
        rows: Vec::new(),
        mirror,
        out,
        signals: None,
        only_source: false,
        model: None,
        weight: 0.0,
    };
    let mut done = None;
    while let Some(option) = next() {
        match option.as_str() {
            "--go-on" => done = Some(ranked(&place)),
            "--limit" => {
                let count: usize = next().and_then(|count| count.parse().ok()).expect("--limit N");
                // Spread over all repositories.
                let step = rows.len().div_ceil(count.max(1));
                rows = rows.into_iter().step_by(step.max(1)).collect();
            }
            "--signals" => {
                let file = File::create(next().expect("--signals FILE")).unwrap();
                options.signals = Some(BufWriter::new(file));
            }
            "--source" => options.only_source = true,
            "--vectors" => {
                let directory = PathBuf::from(next().expect("--vectors MODEL"));
                options.model = Some(Arc::new(Model2Vec::load(&directory).unwrap()));
            }
            "--weight" => {
                options.weight = next().and_then(|weight| weight.parse().ok()).expect("--weight W");
            }
            other => panic!("there is no option {other}"),
        }
    }
    let (done, whole) = done.unwrap_or_default();
    options.out.set_len(whole).unwrap();
    rows.retain(|row| !done.contains(row["id"].as_str().unwrap()));
    Options { rows, ..options }
}

/// Reads the finished rows of a ranking, and their length: its last line may be incomplete.
fn ranked(out: &Path) -> (HashSet<String>, u64) {
    let before = std::fs::read(out).unwrap();
    let whole = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let lines = before[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let row = |line: &[u8]| serde_json::from_slice::<Value>(line).expect("OUT has lines that are no ranking");
    let done: HashSet<String> = lines.map(|line| row(line)["id"].as_str().unwrap().to_owned()).collect();
    if !done.is_empty() {
        eprintln!("{} rows were ranked before", done.len());
    }
    (done, whole as u64)
}

/// Finds each repository; fails at once if any is missing.
fn places<'a>(mirror: &Path, repos: impl Iterator<Item = &'a String>) -> Vec<PathBuf> {
    let (mut places, mut missing) = (Vec::new(), Vec::new());
    for repo in repos {
        match place_of(mirror, repo) {
            Some(place) => places.push(place),
            None => missing.push(repo.as_str()),
        }
    }
    if !missing.is_empty() {
        eprintln!(
            "no git directory OWNER+NAME/repo beneath {} for: {}",
            mirror.display(),
            missing.join(", ")
        );
        std::process::exit(1);
    }
    places
}

/// Finds `owner+name/repo` in the folder, in any case.
fn place_of(mirror: &Path, repo: &str) -> Option<PathBuf> {
    let wanted = repo.replace('/', "+").to_lowercase();
    let entries = std::fs::read_dir(mirror).ok()?.flatten();
    let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().to_lowercase() == wanted);
    found.next().map(|entry| entry.path().join("repo")).filter(|place| place.is_dir())
}

fn path(corpus: &MemoryCorpus, file: u32) -> String {
    corpus.file(file).map(|entry| String::from_utf8_lossy(entry.path).into_owned()).unwrap_or_default()
}

/// Analyses a commit's files.
fn corpus(
    git: &Git,
    commit: &str,
    known: &mut Known,
    analyst: &mut Analyser,
    only_source: bool,
) -> (MemoryCorpus, Vec<Arc<Vec<Vec<f32>>>>) {
    let tree = Git::run_blocking(git.list_tree(commit)).unwrap().expect("the base commit isn't there");
    let wanted: Vec<_> = tree
        .into_iter()
        .filter(|file| !file.link && file.size.is_some_and(|size| size <= MAX_BYTES))
        .filter(|file| !only_source || journeyman_index::history::is_source(file.path.as_bytes()))
        .collect();
    let unknown: Vec<_> = wanted
        .iter()
        .filter(|file| !known.facts.contains_key(&(file.path.clone(), file.blob.clone())))
        .collect();
    for files in unknown.chunks(500) {
        let blobs: Vec<(&str, u64)> =
            files.iter().map(|file| (file.blob.as_str(), file.size.unwrap_or(0))).collect();
        let contents = Git::run_blocking(git.read_blobs(&blobs)).unwrap();
        for (file, content) in files.iter().zip(contents) {
            let Some(content) = content else { continue };
            let mut facts = analyst.analyse(&file.path, FileStamp::default(), &content);
            if let Some(model) = &known.model {
                let text = String::from_utf8_lossy(&content);
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let chunks = facts.chunks.iter().map(|chunk| {
                    let first = chunk.first_line as usize - 1;
                    lines.iter().skip(first).take(chunk.lines as usize).copied().collect::<String>()
                });
                let chunks: Vec<String> = chunks.collect();
                let texts: Vec<&str> = chunks.iter().map(|text| embedded_part(text)).collect();
                let key = (file.path.clone(), file.blob.clone());
                known.vectors.insert(key, Arc::new(embed(model, &texts)));
            }
            // Thousands of versions are kept, and this part isn't used.
            (facts.trigrams, facts.references) = (Vec::new(), Vec::new());
            known.facts.insert((file.path.clone(), file.blob.clone()), Arc::new(facts));
        }
    }
    let (mut corpus, mut vectors) = (MemoryCorpus::new(), Vec::new());
    for file in wanted {
        let key = (file.path, file.blob);
        if let Some(facts) = known.facts.get(&key) {
            corpus.add_file(Arc::clone(facts));
            vectors.extend(known.vectors.get(&key).cloned());
        }
    }
    (corpus, vectors)
}

/// Returns normalised vectors of texts.
fn embed(model: &Model2Vec, texts: &[&str]) -> Vec<Vec<f32>> {
    let deadline = Deadline { stop: &AtomicBool::new(false), until: None };
    let mut vectors = model.embed(texts, EmbeddingPurpose::Document, deadline).unwrap();
    for vector in &mut vectors {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vectors
}
