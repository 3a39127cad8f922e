//! Many files at once, and disk use: figures worth knowing, without bounds.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use journeyman_protocol::RelPath;
use journeyman_workspace::{Change, ChangeSet, ExpectedState, UndoTarget, Workspace};

use crate::figures::{Contender, Contest, time};
use crate::place::{Numbers, Place, checkpoint, session, text};

const ROUNDS: usize = 7;
const CHECKPOINTS: u64 = 100;

static SEED: AtomicU64 = AtomicU64::new(1_000);

pub(crate) fn run(place: &Place) {
    first(place);
    for count in [10, 1_000] {
        many(place, count);
    }
    disk(place);
}

/// Everything is read: the first checkpoint of a project, beside the first `git add` of a
/// repository.
fn first(place: &Place) {
    println!("  everything read, packed and kept:");
    let mut number = 0;
    let mut empty = |name: &str| {
        number += 1;
        let dir = place.beside(&format!("{name}{number}"));
        fs::create_dir_all(dir.join("objects")).unwrap();
        dir
    };
    let ours = std::cell::RefCell::new(&mut empty);
    Contest::run(
        3,
        vec![
            Contender::new("git add -A, fresh index and objects", || {
                let dir = ours.borrow_mut()("git");
                let mut command = place.git_command(&["add", "-A"]);
                command.env("GIT_INDEX_FILE", dir.join("index"));
                command.env("GIT_OBJECT_DIRECTORY", dir.join("objects"));
                let took = time(|| assert!(command.status().unwrap().success()));
                fs::remove_dir_all(dir).unwrap();
                took
            }),
            Contender::new("first checkpoint, on the disk at its end", || {
                let dir = ours.borrow_mut()("first");
                std::os::unix::fs::symlink(place.root(), dir.join("tree")).unwrap();
                let workspace = crate::place::open(&dir);
                let took = time(|| checkpoint(&workspace));
                drop(workspace);
                fs::remove_dir_all(dir).unwrap();
                took
            }),
        ],
    );
}

fn changes(place: &Place, count: usize) -> Vec<Change> {
    let mut numbers = Numbers::from(SEED.fetch_add(1, Ordering::Relaxed));
    let step = place.files.len() / count;
    let chosen = place.files.iter().step_by(step).take(count);
    chosen
        .map(|path| Change::Write {
            path: RelPath::parse(path).unwrap(),
            content: text(&mut numbers).into_bytes(),
            expected: ExpectedState::Anything,
        })
        .collect()
}

fn apply(workspace: &Workspace, number: u64, changes: Vec<Change>) {
    workspace.apply(ChangeSet { call: None, session: session(number), description: None, changes }).unwrap();
}

/// A change set over many files, as a landing is one, and taking it back.
fn many(place: &Place, count: usize) {
    println!("  {count} files at once:");
    let workspace = place.open();
    workspace.checkpoint(&session(1), "warm").unwrap();
    let patch = place.beside("patch");
    place.change(count, 5);
    let made = place.git_command(&["diff", "--binary"]).stdout(Stdio::piped()).output().unwrap();
    fs::write(&patch, made.stdout).unwrap();
    let copies = place.beside("copies");
    for path in place.files.iter().step_by(place.files.len() / count).take(count) {
        let to = copies.join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(place.root().join(path), to).unwrap();
    }
    let reset = || place.git(&["checkout", "-q", "."]);
    let mut last = 100;
    Contest::run(
        ROUNDS,
        vec![
            Contender::new("git apply, nothing synced", || {
                reset();
                place.time_git(&["apply", patch.to_str().unwrap()])
            }),
            Contender::new("cp -r, nothing synced", || {
                let mut command = copy(&copies, &place.root());
                time(|| assert!(command.status().unwrap().success()))
            }),
            Contender::new("cp -r, then sync -f", || {
                let (mut command, root) = (copy(&copies, &place.root()), place.root());
                time(|| {
                    assert!(command.status().unwrap().success());
                    assert!(Command::new("sync").arg("-f").arg(&root).status().unwrap().success());
                })
            }),
            Contender::new("one change set, on the disk at its end", || {
                reset();
                let changes = changes(place, count);
                time(|| apply(&workspace, 2, changes))
            }),
            Contender::new("undo of one change set", || {
                reset();
                last += 1;
                apply(&workspace, last, changes(place, count));
                time(|| drop(workspace.undo(UndoTarget::Session(session(last))).unwrap()))
            }),
        ],
    );
    reset();
    fs::remove_dir_all(copies).unwrap();
}

fn copy(from: &Path, to: &Path) -> Command {
    let mut command = Command::new("cp");
    command.arg("-r").arg(from.join(".")).arg(to);
    command
}

/// What a long session's checkpoints take.
fn disk(place: &Place) {
    let workspace = place.open();
    workspace.checkpoint(&session(1), "warm").unwrap();
    drop(workspace);
    let before = used(&place.beside("blobs")) + used(&place.beside("state"));
    let workspace = place.open();
    let mut changed = 0;
    for number in 0..CHECKPOINTS {
        place.change(10, 10_000 + number);
        changed += place
            .files
            .iter()
            .step_by(place.files.len() / 10)
            .take(10)
            .map(|path| fs::metadata(place.root().join(path)).unwrap().len())
            .sum::<u64>();
        workspace.checkpoint(&session(1), "one of many").unwrap();
    }
    drop(workspace);
    let after = used(&place.beside("blobs")) + used(&place.beside("state"));
    println!(
        "  {CHECKPOINTS} checkpoints with 10 changed files each: {} KiB of disk ({} KiB of changed content)",
        (after - before) / 1024,
        changed / 1024
    );
    place.git(&["checkout", "-q", "."]);
}

fn used(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        if found.is_dir() { used(&entry.path()) } else { found.blocks() * 512 }
    });
    sizes.sum()
}
