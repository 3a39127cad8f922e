//! Trees and indexes of tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use journeyman_index::source::WorkTree;
use journeyman_index::store::{IndexReport, RefreshOptions};
use journeyman_index::{Index, Snapshot};
use journeyman_protocol::RelPath;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Options with two threads, without cancellation.
pub(crate) fn options() -> RefreshOptions<'static> {
    RefreshOptions { threads: NonZero::new(2).unwrap(), wait: true, progress: &|_| {}, stop: &NEVER }
}

pub(crate) fn refresh(index: &Index, tree: &Path) -> IndexReport {
    index.refresh(&WorkTree::new(tree, 2), options()).unwrap()
}

pub(crate) fn update(index: &Index, tree: &Path, paths: &[&str]) -> IndexReport {
    let paths: Vec<RelPath> = paths.iter().map(|path| RelPath::parse(path).unwrap()).collect();
    index.update_files(&WorkTree::new(tree, 2), &paths, options()).unwrap()
}

pub(crate) fn put(tree: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = tree.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn paths(snapshot: &Snapshot) -> Vec<String> {
    let mut paths: Vec<String> = snapshot.files().map(|(_, file)| file.path().unwrap().to_string()).collect();
    paths.sort();
    paths
}

/// Renders everything that an index knows, without internal numbers: two indexes of the same files
/// are equal.
pub(crate) fn everything(snapshot: &Snapshot, words: &[&str]) -> String {
    let mut all = String::new();
    let name = |number| snapshot.file(number).unwrap().path().unwrap().to_string();
    let by_path: BTreeMap<String, _> = snapshot.files().map(|(number, file)| (name(number), file)).collect();
    for (path, file) in &by_path {
        let record = file.record;
        writeln!(
            all,
            "{path} {:?} {:?} {:?} {} {:?}",
            record.content, record.flags, record.language, record.lines, record.hash
        )
        .unwrap();
        for chunk in 0..record.chunks {
            let chunk = snapshot.chunk(file.first_chunk() + chunk).unwrap();
            assert_eq!(&name(chunk.file), path);
            writeln!(all, "  {}+{} {}", chunk.first_line, chunk.lines, chunk.length).unwrap();
        }
        for symbol in 0..record.symbols {
            let (own, symbol) = snapshot.symbol(file.first_symbol() + symbol).unwrap();
            assert_eq!(&name(own), path);
            let scope = file.scope(&symbol);
            writeln!(
                all,
                "  {} {scope} {:?} {} {}",
                symbol.name, symbol.kind, symbol.first_line, symbol.signature
            )
            .unwrap();
        }
        writeln!(
            all,
            "  {:?}\n  {:?}\n  {:?}",
            file.segment().used_names(&record),
            file.segment().details(&record).imports(),
            file.segment().details(&record).sections()
        )
        .unwrap();
    }
    for word in words {
        let mut found: Vec<(String, u32, u32)> = Vec::new();
        snapshot.visit_chunks_with_term(word, |chunk, times| {
            let chunk = snapshot.chunk(chunk).unwrap();
            found.push((name(chunk.file), chunk.first_line, times));
        });
        found.sort();
        let mut defined: Vec<(String, u32)> = Vec::new();
        snapshot.visit_definitions(word, |symbol| {
            let (file, symbol) = snapshot.symbol(symbol).unwrap();
            defined.push((name(file), symbol.first_line));
        });
        defined.sort();
        let mut used: Vec<(String, u32)> = Vec::new();
        snapshot.visit_references(word, |file, line| used.push((name(file), line)));
        used.sort();
        let candidates = journeyman_index::pattern::candidate_files(snapshot, word, true).unwrap();
        let candidates: Vec<String> = candidates.files.into_iter().map(name).collect();
        writeln!(all, "{word}: {found:?} {defined:?} {used:?} {candidates:?}").unwrap();
    }
    writeln!(all, "{:?}", snapshot.totals()).unwrap();
    all
}
