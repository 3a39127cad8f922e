//! Crashes, damage, other versions and concurrent processes leave a valid index, or one that is
//! rebuilt.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use common::{everything, options, paths, put, refresh};
use journeyman_index::Index;
use journeyman_index::source::WorkTree;
use journeyman_testkit::rerun_test;

/// Set for the child process of a test: the directory of the tree and the index.
const CHILD: &str = "JM_INDEX_TEST_CHILD";
const WORDS: [&str; 3] = ["alpha", "beta", "close"];

fn fill(tree: &Path, seed: u64, files: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0..files {
        let words = (0..60).map(|_| format!("fn {}() {{}}\n", WORDS[random.usize(..3)]));
        put(tree, &format!("src/{number}.rs"), words.collect::<String>());
    }
}

fn anew(kept: &Path, tree: &Path) -> String {
    let directory = tempfile::tempdir_in(kept).unwrap();
    let index = Index::open(directory.path()).unwrap();
    refresh(&index, tree);
    everything(&index.snapshot(), &WORDS)
}

/// The child process: refreshes until it is killed, or once.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Some(kept) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let index = Index::open(&kept.join("index")).unwrap();
    index.refresh(&WorkTree::new(&kept.join("tree"), 2), options()).unwrap();
}

fn start(kept: &Path) -> Child {
    rerun_test!("child").env(CHILD, kept).stdout(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn a_refresh_repairs_the_index_after_any_crash() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..15 {
        fill(&tree, round, 40);
        let mut child = start(kept.path());
        std::thread::sleep(Duration::from_micros(random.u64(0..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        // The index is readable whatever its state.
        let index = Index::open(&kept.path().join("index")).unwrap();
        assert_eq!(index.damage_report(), None, "round {round}");
        index.verify().unwrap();
        everything(&index.snapshot(), &WORDS);
        refresh(&index, &tree);
        assert_eq!(everything(&index.snapshot(), &WORDS), anew(kept.path(), &tree), "round {round}");
    }
    let left = std::fs::read_dir(kept.path().join("index")).unwrap().count();
    assert!(left < 20, "{left} files are left of crashes");
}

#[test]
fn concurrent_processes_build_the_same_index() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    let index = Index::open(&kept.path().join("index")).unwrap();
    for round in 0..6 {
        fill(&tree, round, 60);
        let mut children: Vec<Child> = (0..3).map(|_| start(kept.path())).collect();
        while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
            index.reload().unwrap();
            everything(&index.snapshot(), &WORDS);
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        index.reload().unwrap();
        assert_eq!(everything(&index.snapshot(), &WORDS), anew(kept.path(), &tree), "round {round}");
    }
}

#[test]
fn an_index_that_another_process_rebuilds_is_loaded_anew() {
    let kept = tempfile::tempdir().unwrap();
    let (tree, directory) = (kept.path().join("tree"), kept.path().join("index"));
    fill(&tree, 1, 20);
    let (index, second) = (Index::open(&directory).unwrap(), Index::open(&directory).unwrap());
    refresh(&index, &tree);
    second.reload().unwrap();
    fill(&tree, 2, 20);
    let other = Index::open(&directory).unwrap();
    other.clear().unwrap();
    // It takes as many steps as the first one.
    refresh(&other, &tree);
    index.reload().unwrap();
    assert_eq!(refresh(&second, &tree).read, 0);
    let right = anew(kept.path(), &tree);
    for there in [&index, &second] {
        assert_eq!(everything(&there.snapshot(), &WORDS), right);
    }
}

#[test]
fn a_damaged_index_is_noticed_and_rebuilt() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    fill(&tree, 1, 20);
    let directory = kept.path().join("index");
    let right = anew(kept.path(), &tree);
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..60 {
        refresh(&Index::open(&directory).unwrap(), &tree);
        let files: Vec<PathBuf> =
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        let chosen = files[random.usize(..files.len())].clone();
        let mut bytes = std::fs::read(&chosen).unwrap();
        match random.u8(..4) {
            0 => drop(std::fs::remove_file(&chosen)),
            1 => {
                bytes.truncate(random.usize(..=bytes.len()));
                std::fs::write(&chosen, &bytes).unwrap();
            }
            _ if bytes.is_empty() => {}
            _ => {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u8(..8);
                // Not in place: a mapped file must not change.
                std::fs::remove_file(&chosen).unwrap();
                std::fs::write(&chosen, &bytes).unwrap();
            }
        }
        let index = Index::open(&directory).unwrap();
        // Before checksums are verified, results may be wrong, but nothing panics.
        let said = std::panic::catch_unwind(|| paths(&index.snapshot()));
        drop(said);
        drop(index.verify());
        refresh(&index, &tree);
        assert_eq!(everything(&index.snapshot(), &WORDS), right, "round {round}, {}", chosen.display());
    }
}

#[test]
fn an_index_of_another_version_is_rebuilt() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    fill(&tree, 1, 3);
    let directory = kept.path().join("index");
    refresh(&Index::open(&directory).unwrap(), &tree);
    let manifest = directory.join("manifest");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let told = text.split_once('\n').unwrap().1.replacen("\"version\":", "\"version\":1", 1);
    std::fs::write(&manifest, format!("{}\n{told}", blake3::hash(told.as_bytes()).to_hex())).unwrap();
    let index = Index::open(&directory).unwrap();
    assert!(index.damage_report().unwrap().contains("another version"));
    assert_eq!(refresh(&index, &tree).read, 3);
}

#[test]
fn hostile_files_are_bounded() {
    let kept = tempfile::tempdir().unwrap();
    let tree = kept.path().join("tree");
    put(&tree, "line.js", "x".repeat(3 << 20));
    put(&tree, "words.js", "var a=1;".repeat(400_000));
    put(&tree, "huge.json", "[1,\n".repeat(2 << 20));
    put(&tree, "deep.rs", "(".repeat(100_000));
    put(&tree, "deep.json", format!("{}{}", "[\n".repeat(100_000), "]".repeat(100_000)));
    put(&tree, "latin.py", b"# caf\xe9\nname = 1\n");
    put(
        &tree,
        "wide.txt",
        [0xff, 0xfe]
            .into_iter()
            .chain("hello wide".encode_utf16().flat_map(u16::to_le_bytes))
            .collect::<Vec<_>>(),
    );
    put(&tree, "empty.rs", "");
    put(&tree, "nul.rs", b"fn a() {}\0");
    put(&tree, "new\nline.rs", "fn alpha() {}\n");
    use std::os::unix::ffi::OsStringExt as _;
    let odd = std::ffi::OsString::from_vec(b"odd\xff.rs".to_vec());
    std::fs::write(tree.join(&odd), "fn beta() {}\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", tree.join("outside")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, tree.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let index = Index::open(&kept.path().join("index")).unwrap();
    let report = refresh(&index, &tree);
    assert_eq!(report.read, 11);
    let snapshot = index.snapshot();
    let mut found = Vec::new();
    for word in ["alpha", "beta"] {
        snapshot
            .visit_definitions(word, |symbol| found.push(snapshot.symbol(symbol).unwrap().1.name.to_owned()));
    }
    assert_eq!(found, ["alpha", "beta"]);
    let mut hits = 0;
    for word in ["wide", "name", "caf"] {
        snapshot.visit_chunks_with_term(word, |_, _| hits += 1);
    }
    assert_eq!(hits, 3);
}
