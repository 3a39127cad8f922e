//! Updates: after any changes an index equals one built from scratch.

use crate::common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{everything, options, paths, put, refresh, update};
use journeyman_index::analysis::FileStamp;
use journeyman_index::query::Corpus as _;
use journeyman_index::source::{FileSource, Listing, SourceContent, WorkTree};
use journeyman_index::store::RefreshOptions;
use journeyman_index::{Index, IndexError};
use journeyman_protocol::RelPath;

/// Words that random files are made of.
const WORDS: [&str; 12] = [
    "alpha",
    "beta",
    "gammaRay",
    "delta_one",
    "parse",
    "render",
    "Shop",
    "open",
    "close",
    "HttpServer",
    "übung",
    "値段",
];

fn text(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    for _ in 0..random.usize(0..90) {
        let word = |random: &mut fastrand::Rng| WORDS[random.usize(..WORDS.len())];
        let (one, other) = (word(random), word(random));
        match random.u8(..5) {
            0 => text += &format!("fn {one}() {{ {other}(); }}\n"),
            1 => text += &format!("struct {one} {{ {other}: u8 }}\n"),
            2 => text += &format!("use crate::{one}::{other};\n"),
            3 => text += &format!("// {one} {other}\n"),
            _ => text.push('\n'),
        }
    }
    text
}

fn path(random: &mut fastrand::Rng) -> String {
    let directory = ["", "src/", "src/deep/er/", "tests/", "docs/"][random.usize(..5)];
    let end = ["rs", "py", "md", "txt", "bin"][random.usize(..5)];
    format!("{directory}f{}.{end}", random.u8(..12))
}

/// Applies a random change to a tree.
fn change_randomly(tree: &Path, random: &mut fastrand::Rng) {
    let path = path(random);
    match random.u8(..10) {
        0..5 => put(tree, &path, text(random)),
        5 => put(tree, &path, [b"\0\x01".as_slice(), text(random).as_bytes()].concat()),
        6 | 7 => drop(std::fs::remove_file(tree.join(&path))),
        8 => {
            let to = self::path(random);
            if tree.join(&path).exists() {
                std::fs::create_dir_all(tree.join(&to).parent().unwrap()).unwrap();
                std::fs::rename(tree.join(&path), tree.join(&to)).unwrap();
            }
        }
        _ => put(tree, ".gitignore", ["", "docs/\n", "*.txt\n"][random.usize(..3)]),
    }
}

#[test]
fn names_of_a_file_are_its_symbols_outside_of_functions() {
    let (tree, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(tree.path(), "a.rs", "fn alpha() {\n    fn inner() {}\n}\nstruct Shop;\n\nfn beta() {}\n");
    let index = Index::open(&kept.path().join("index")).unwrap();
    refresh(&index, tree.path());
    let snapshot = index.snapshot();
    let names = |path: &str, limit: usize| {
        let mut names = Vec::new();
        let file = snapshot.file_at(path.as_bytes()).unwrap();
        snapshot.visit_symbol_names_of(file, limit, &mut |name| names.push(name.to_owned()));
        names
    };
    assert_eq!(names("a.rs", 9), ["alpha", "Shop", "beta"]);
    assert_eq!(names("a.rs", 1), ["alpha"]);
}

#[test]
fn any_changes_give_the_same_as_a_rebuild() {
    for seed in 0..5 {
        let mut random = fastrand::Rng::with_seed(seed);
        let kept = tempfile::tempdir().unwrap();
        let tree = kept.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let index = Index::open(&kept.path().join("index")).unwrap();
        for step in 0..12 {
            for _ in 0..random.usize(1..12) {
                change_randomly(&tree, &mut random);
            }
            refresh(&index, &tree);
            let anew = Index::open(&kept.path().join(format!("anew-{step}"))).unwrap();
            refresh(&anew, &tree);
            let (one, other) = (index.snapshot(), anew.snapshot());
            assert_eq!(everything(&one, &WORDS), everything(&other, &WORDS), "seed {seed}, step {step}");
            let again = Index::open(index.directory()).unwrap();
            assert_eq!(everything(&again.snapshot(), &WORDS), everything(&one, &WORDS));
        }
        index.verify().unwrap();
    }
}

#[test]
fn a_single_file_can_be_updated() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    put(&tree, "a.rs", "fn alpha() {}\n");
    put(&tree, "b.rs", "fn beta() {}\n");
    let index = Index::open(&kept.path().join("index")).unwrap();
    assert_eq!(refresh(&index, &tree).read, 2);
    put(&tree, "a.rs", "fn parse() {}\n");
    put(&tree, "b.rs", "fn close() {}\n");
    let report = update(&index, &tree, &["a.rs", "no-such-file"]);
    assert_eq!((report.read, report.gone), (1, 0));
    let count = |name: &str| {
        let mut count = 0;
        index.snapshot().visit_definitions(name, |_| count += 1);
        count
    };
    assert_eq!([count("alpha"), count("parse"), count("beta"), count("close")], [0, 1, 1, 0]);
    std::fs::remove_file(tree.join("b.rs")).unwrap();
    assert_eq!(update(&index, &tree, &["b.rs"]).gone, 1);
    assert_eq!(paths(&index.snapshot()), ["a.rs"]);
}

#[test]
fn a_text_only_index_can_be_completed() {
    let mut random = fastrand::Rng::with_seed(3);
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    (0..30)
        .for_each(|number| put(&tree, &format!("src/f{number}.rs"), text(&mut random) + "fn alpha() {}\n"));
    let index = Index::open(&kept.path().join("index")).unwrap();
    let source = WorkTree::new(&tree, 2);
    assert_eq!(index.refresh_without_parsing(&source, options()).unwrap().read, 30);
    let first = index.snapshot();
    let mut found = 0;
    first.visit_chunks_with_term("alpha", |_, _| found += 1);
    assert!(first.is_partial() && found >= 30 && first.totals().symbols == 0, "{found}");
    // A text-only analysis isn't repeated as such, and isn't taken for a complete one.
    assert_eq!(index.refresh_without_parsing(&source, options()).unwrap().read, 0);
    assert!(index.snapshot().is_partial());
    assert_eq!(refresh(&index, &tree).read, 30);
    let anew = Index::open(&kept.path().join("anew")).unwrap();
    refresh(&anew, &tree);
    assert!(!index.snapshot().is_partial());
    assert_eq!(everything(&index.snapshot(), &WORDS), everything(&anew.snapshot(), &WORDS));
    assert_eq!(refresh(&index, &tree).read, 0);
}

#[test]
fn an_update_of_some_files_completes_no_index() {
    let mut random = fastrand::Rng::with_seed(6);
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    (0..30).for_each(|number| put(&tree, &format!("f{number}.rs"), text(&mut random)));
    let index = Index::open(&kept.path().join("index")).unwrap();
    let stop = AtomicBool::new(false);
    let progress = |_| stop.store(true, Ordering::Relaxed);
    let options = RefreshOptions { progress: &progress, stop: &stop, ..options() };
    assert!(index.refresh(&WorkTree::new(&tree, 1), options).unwrap().stopped);
    for path in ["f7.rs", "none.rs"] {
        update(&index, &tree, &[path]);
        assert!(index.snapshot().is_partial() && index.snapshot().totals().files < 30, "{path}");
    }
    // The folder may be deleted at any time.
    std::fs::remove_dir_all(index.directory()).unwrap();
    assert_eq!(update(&index, &tree, &["f7.rs"]).read, 1);
    assert!(index.snapshot().is_partial());
    assert_eq!(refresh(&index, &tree).read, 29);
    assert!(!index.snapshot().is_partial());
}

#[test]
fn many_updates_and_merges_keep_results() {
    let mut random = fastrand::Rng::with_seed(5);
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    (0..80).for_each(|number| put(&tree, &format!("f{number}.rs"), text(&mut random)));
    let index = Index::open(&kept.path().join("index")).unwrap();
    refresh(&index, &tree);
    for round in 0..90 {
        let path = format!("f{}.rs", random.u8(..80));
        put(&tree, &path, text(&mut random) + &format!("// {round}\n"));
        assert_eq!(update(&index, &tree, &[&path]).read, 1);
    }
    let segments = || {
        let names = std::fs::read_dir(index.directory()).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("segment-")).count()
    };
    let before = everything(&index.snapshot(), &WORDS);
    assert!((2..=24).contains(&segments()), "{}", segments());
    index.merge_small_segments().unwrap();
    assert!(segments() < 8, "{}", segments());
    assert_eq!(everything(&index.snapshot(), &WORDS), before);
    let anew = Index::open(&kept.path().join("anew")).unwrap();
    refresh(&anew, &tree);
    assert_eq!(everything(&anew.snapshot(), &WORDS), before);
}

#[test]
fn a_change_right_after_reading_is_noticed() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    put(&tree, "a.rs", "fn aa() {}\n");
    let index = Index::open(&kept.path().join("index")).unwrap();
    for round in 0..20 {
        refresh(&index, &tree);
        // The same length, and within the same tick of the clock.
        put(&tree, "a.rs", format!("fn a{}() {{}}\n", char::from(b'a' + round)));
        refresh(&index, &tree);
        let mut found = 0;
        index.snapshot().visit_definitions(&format!("a{}", char::from(b'a' + round)), |_| found += 1);
        assert_eq!(found, 1, "round {round}");
    }
}

/// A tree that something happens to before each file is read, which may fail.
struct Eventful<'a> {
    tree: WorkTree,
    before_read: &'a (dyn Fn() -> std::io::Result<()> + Sync),
}

impl FileSource for Eventful<'_> {
    fn list(&self) -> Result<Listing, IndexError> {
        self.tree.list()
    }

    fn stamp(&self, path: &RelPath) -> Option<FileStamp> {
        self.tree.stamp(path)
    }

    fn read(&self, path: &RelPath) -> std::io::Result<(SourceContent, FileStamp)> {
        (self.before_read)()?;
        self.tree.read(path)
    }
}

/// Refreshes the index of a tree of one file, to which this happens before it is read; then of the
/// tree as it is. The file's time is long before both.
fn refresh_eventful(kept: &Path, before_read: &(dyn Fn() -> std::io::Result<()> + Sync)) -> Index {
    let tree = kept.join("tree");
    put(&tree, "src/a.rs", "fn alpha() {}\n");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let index = Index::open(&kept.join("index")).unwrap();
    index.refresh(&Eventful { tree: WorkTree::new(&tree, 1), before_read }, options()).unwrap();
    index
}

#[test]
fn a_directory_that_is_moved_away_and_back_during_an_update_is_read_anew() {
    let kept = tempfile::tempdir().unwrap();
    put(kept.path(), "other/a.rs", "fn beta() {}\n");
    let [src, away, other] = ["tree/src", "away", "other"].map(|path| kept.path().join(path));
    let index = refresh_eventful(kept.path(), &|| {
        std::fs::rename(&src, &away)?;
        std::fs::rename(&other, &src)
    });
    std::fs::rename(&src, &other).unwrap();
    std::fs::rename(&away, &src).unwrap();
    refresh(&index, &kept.path().join("tree"));
    let mut found = 0;
    index.snapshot().visit_definitions("alpha", |_| found += 1);
    index.snapshot().visit_definitions("beta", |_| found += 10);
    assert_eq!(found, 1);
}

#[test]
fn a_file_that_could_not_be_read_for_a_moment_is_read_the_next_time() {
    let kept = tempfile::tempdir().unwrap();
    let too_many_open = || Err(rustix::io::Errno::MFILE.into());
    let index = refresh_eventful(kept.path(), &too_many_open);
    let tree = kept.path().join("tree");
    // Not a second time for the same.
    let source = Eventful { tree: WorkTree::new(&tree, 1), before_read: &too_many_open };
    let report = index.refresh(&source, options()).unwrap();
    assert_eq!((report.read, report.same, report.unreadable), (0, 1, 1));
    assert_eq!(refresh(&index, &tree).read, 1);
    let mut found = 0;
    index.snapshot().visit_definitions("alpha", |_| found += 1);
    assert_eq!((found, refresh(&index, &tree).read), (1, 0));
}

#[test]
fn ignored_files_are_not_indexed() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    put(&tree, "a.rs", "");
    put(&tree, "build/b.rs", "");
    put(&tree, "data/c.rs", "");
    put(&tree, ".git/config", "");
    put(&tree, ".github/ci.yml", "on: push\n");
    put(&tree, ".gitignore", "build/\n");
    put(&tree, ".journeymanignore", "data/\n");
    std::os::unix::fs::symlink(".", tree.join("loop")).unwrap();
    let index = Index::open(&kept.path().join("index")).unwrap();
    refresh(&index, &tree);
    assert_eq!(paths(&index.snapshot()), [".github/ci.yml", ".gitignore", ".journeymanignore", "a.rs"]);
    assert_eq!(update(&index, &tree, &["build/b.rs", "data/c.rs", "loop/a.rs"]).read, 0);
}
