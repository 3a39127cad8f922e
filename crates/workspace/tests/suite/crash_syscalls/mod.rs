//! Killed inside every system call, failed in every system call: the tree is as before or as after,
//! never between.
//!
//! The test runs itself once more under `ptrace`, as a program that opens a project and does one
//! thing. A first run counts the system calls that this takes, of all threads. Then, for each of
//! them, a fresh project is made, and the program is killed before that call happens, or right
//! after; or the call fails with an error of the disk. The suite takes a few of the calls;
//! `JM_CRASH_ALL=1`, as `cargo xtask soak workspace` has it, takes all.

mod tasks;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Model, Node, session, set, write};
use crate::tracer::{self, Plan, Trace, trace};
use journeyman_testkit::rerun_test;
use journeyman_workspace::{UndoTarget, Workspace};
use tasks::{Now, Place, TASKS, Task, task};

/// So many of a task's calls are tried in the suite, of each kind of trouble.
const SOME: usize = 12;
const TASK: &str = "JM_CRASH_TASK";
const DIRECTORY: &str = "JM_CRASH_DIRECTORY";
/// Set where only the calls of the workspace are to fail, and not those of what stands for a
/// command.
const SPARED: &str = "JM_CRASH_SPARED";

/// The program that is traced; nothing when the suite runs it.
#[test]
fn program() {
    let (Some(name), Some(dir)) = (std::env::var_os(TASK), std::env::var_os(DIRECTORY)) else { return };
    let spared = std::env::var_os(SPARED).is_some();
    let place = Place::new(Path::new(&dir));
    let mark = |now| match now {
        Now::Begins => tracer::begin(),
        Now::Ends => tracer::end(),
        Now::Command if spared => tracer::end(),
        Now::CommandIsOver if spared => tracer::begin(),
        Now::Command | Now::CommandIsOver => {}
    };
    let result = (task(name.to_str().unwrap()).work)(&place, &mark);
    tracer::end();
    let outcome = match result {
        Ok(()) => "ok".to_owned(),
        Err(error) => format!("{error:?}\n{error}"),
    };
    fs::write(place.dir.join("outcome"), outcome).unwrap();
}

/// One try: a project, and what became of the program in it.
struct Try {
    dir: tempfile::TempDir,
    place: Place,
    trace: Trace,
}

impl Try {
    fn new(task: &Task, plan: Plan) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let place = Place::new(dir.path());
        (task.prepare)(&place);
        let mut program = rerun_test!("program");
        program.env(TASK, task.name).env(DIRECTORY, dir.path());
        if matches!(plan, Plan::Fail(..) | Plan::FailFrom(..)) {
            program.env(SPARED, "1");
        }
        program.stdout(std::process::Stdio::null());
        let trace = trace(&mut program, plan).unwrap();
        Self { dir, place, trace }
    }

    fn outcome(&self) -> String {
        fs::read_to_string(self.dir.path().join("outcome")).unwrap()
    }
}

/// What a task is to come to, and how many calls it makes.
struct Known {
    before: Model,
    done: Model,
    calls: Vec<i64>,
}

impl Known {
    fn of(task: &Task, failing: bool) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let place = Place::new(dir.path());
        (task.prepare)(&place);
        let before = place.tree();
        // One that fails nothing counts the calls that may be failed.
        let plan = if failing { Plan::Fail(usize::MAX, libc::EIO, is_of_the_disk) } else { Plan::Watch };
        let whole = Try::new(task, plan);
        assert_eq!((whole.trace.code, whole.outcome().as_str()), (Some(0), "ok"), "{}", task.name);
        let done = whole.place.tree();
        Self { before: clean(before, &done), done, calls: whole.trace.calls }
    }
}

/// Where a crash is what a task begins with, `before` is the tree after going back or forth, and
/// there is one.
fn clean(before: Model, done: &Model) -> Model {
    let torn = before.keys().any(|path| path.windows(4).any(|part| part == b".jm-"));
    if torn { done.clone() } else { before }
}

/// Every call in full, a few of them in the suite; never the same few of two kinds of trouble.
fn places(calls: usize, shift: usize) -> Vec<usize> {
    if std::env::var_os("JM_CRASH_ALL").is_some() {
        return (0..calls).collect();
    }
    let stride = (calls / SOME).max(1);
    (shift % stride..calls).step_by(stride).collect()
}

/// The tree is before or after; the workspace is as good as new; nothing lies around.
fn verify(task: &Task, tried: &Try, known: &Known, what: &str) -> bool {
    let place = &tried.place;
    let workspace = place.open().unwrap_or_else(|error| panic!("{what}: can't be opened: {error}"));
    if let Some(settle) = task.settle {
        settle(place, &workspace);
    }
    let tree = place.tree();
    let is_done = tree == known.done;
    assert!(is_done || tree == known.before, "{what}: between:{}", between(&tree, known));
    drop(place.open().unwrap());
    assert_eq!(place.tree(), tree, "{what}: opened once more");
    still_works(&workspace, place, &tree, what);
    nothing_left(&place.state(), what);
    if is_done && known.before != known.done {
        if let Some(back) = task.back {
            back(&workspace);
            assert_eq!(place.tree(), known.before, "{what}: taken back");
        }
    } else if known.before != known.done && task.name != "a_redo" {
        // The further edit was the newest to be undone, so that a redo would be of that.
        drop(workspace);
        (task.work)(place, &|_| {}).unwrap_or_else(|error| panic!("{what}: again: {error}"));
        assert_eq!(place.tree(), known.done, "{what}: done again");
    }
    is_done
}

fn still_works(workspace: &Workspace, place: &Place, tree: &Model, what: &str) {
    let changes = vec![write("earlier", "changed"), write("after/the/crash", "a")];
    workspace.apply(set(9, changes)).unwrap_or_else(|error| panic!("{what}: a further edit: {error}"));
    assert_ne!(place.tree(), *tree);
    let report = workspace.undo(UndoTarget::Session(session(9)));
    let report = report.unwrap_or_else(|error| panic!("{what}: a further undo: {error}"));
    assert_eq!(report.conflicts, vec![], "{what}");
    assert_eq!(place.tree(), *tree, "{what}: a further edit and its undo");
    workspace.checkpoint(&session(9), "further").unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// What is in the state directory belongs there.
fn nothing_left(state: &Path, what: &str) {
    // A new journal, book or cache that wasn't finished is written anew by the next one.
    let own = ["journal", "ledger", "lock", "packs", "running", "stat-cache"];
    let known = [own.as_slice(), &["ledger.new", "log.new", "packs.new", "stat-cache.new"]].concat();
    let mut names: Vec<String> = fs::read_dir(state)
        .unwrap()
        .chain(fs::read_dir(state.join("journal")).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| !known.contains(&name.as_str()) && name != "log");
    assert_eq!(names, Vec::<String>::new(), "{what}: left in the state directory");
}

/// The tree without what goes when it is opened the next time: the old files and empty directories
/// that couldn't be removed just then.
fn files_of(tree: &Model, before: &Model) -> Model {
    let mut files = tree.clone();
    files.retain(|path, _| !path.windows(4).any(|part| part == b".jm-"));
    files.retain(|path, node| *node != Node::Dir || !before.contains_key(path));
    files
}

fn between(tree: &Model, known: &Known) -> String {
    let mut text = String::new();
    let paths = tree.keys().chain(known.before.keys()).chain(known.done.keys());
    for path in paths.collect::<std::collections::BTreeSet<_>>() {
        let (now, before, done) = (tree.get(path), known.before.get(path), known.done.get(path));
        if now != before || now != done {
            let name = String::from_utf8_lossy(path);
            text.push_str(&format!("\n  {name}: {now:?}, before {before:?}, after {done:?}"));
        }
    }
    text
}

/// Calls that a process makes on its way out, when all is done.
const LAST_CALLS: usize = 8;

/// Calls that may last as long as the process.
const WAITING_CALLS: [i64; 4] = [libc::SYS_futex, libc::SYS_clock_nanosleep, libc::SYS_ppoll, libc::SYS_poll];

fn killed(task: &Task) {
    let known = Known::of(task, false);
    let mut ends = [0, 0];
    for (shift, plan) in [(0, Plan::KillBefore as fn(usize) -> Plan), (1, Plan::KillAfter)] {
        for at in places(known.calls.len(), shift) {
            let tried = Try::new(task, plan(at));
            // A thread of its own may have made fewer calls this time.
            let reached = tried.trace.calls.len() > at;
            let what =
                format!("{}: {:?} of {}, call {:?}", task.name, plan(at), known.calls.len(), known.calls[at]);
            // Where the last calls come from two threads, one can end the process while the other's
            // call is being killed.
            let is_last = at + LAST_CALLS >= tried.trace.calls.len();
            // A call of another thread that waits until the process ends has no moment after it.
            let waits =
                shift == 1 && tried.trace.calls.get(at).is_some_and(|call| WAITING_CALLS.contains(call));
            let ending = tried.trace.code == Some(0) && (is_last || waits);
            assert!(tried.trace.code.is_none() || !reached || ending, "{what}: {:?}", tried.trace.code);
            ends[usize::from(verify(task, &tried, &known, &what))] += 1;
        }
    }
    println!("{}: {} calls, {} before, {} after", task.name, known.calls.len(), ends[0], ends[1]);
}

/// Calls that a disk can fail: those that name or hold files.
fn is_of_the_disk(call: i64) -> bool {
    const CALLS: &[i64] = &[
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_open,
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_getdents64,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_syncfs,
        libc::SYS_ftruncate,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_unlink,
        libc::SYS_unlinkat,
        libc::SYS_mkdir,
        libc::SYS_mkdirat,
        libc::SYS_rmdir,
        libc::SYS_symlinkat,
        libc::SYS_linkat,
        libc::SYS_readlink,
        libc::SYS_readlinkat,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_chmod,
        libc::SYS_fchown,
        libc::SYS_utimensat,
        libc::SYS_flock,
        libc::SYS_flistxattr,
        libc::SYS_fgetxattr,
        libc::SYS_fsetxattr,
    ];
    CALLS.contains(&call)
}

/// Calls that need room.
fn needs_room(call: i64) -> bool {
    const CALLS: &[i64] = &[
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_mkdir,
        libc::SYS_mkdirat,
        libc::SYS_symlinkat,
        libc::SYS_linkat,
    ];
    CALLS.contains(&call)
}

fn failed(task: &Task) {
    let known = Known::of(task, true);
    let disk: Vec<usize> = (0..known.calls.len()).filter(|at| is_of_the_disk(known.calls[*at])).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (shift, errno) in [libc::ENOSPC, libc::EIO, libc::EACCES].into_iter().enumerate() {
        for at in places(disk.len(), 5 * shift) {
            for plan in
                [Plan::Fail(disk[at], errno, is_of_the_disk), Plan::FailFrom(disk[at], errno, needs_room)]
            {
                if matches!(plan, Plan::FailFrom(..)) && errno != libc::ENOSPC {
                    continue;
                }
                if errno == libc::EACCES && !may_be_denied(task, &known, disk[at]) {
                    continue;
                }
                let what = format!(
                    "{}: {plan:?} of {}, call {}",
                    task.name,
                    known.calls.len(),
                    known.calls[disk[at]]
                );
                *seen.entry(check_failed(task, &known, plan, &what)).or_default() += 1;
            }
        }
    }
    println!("{}: {} calls of {}: {seen:?}", task.name, disk.len(), known.calls.len());
}

/// Permissions that are missing once and then aren't tell nothing of an undo, which leaves alone
/// what it may not read, nor of cleaning up, which isn't tried again where it was denied.
fn may_be_denied(task: &Task, known: &Known, at: usize) -> bool {
    let last_move = known.calls.iter().rposition(|call| *call == libc::SYS_renameat2);
    task.settle.is_none() && task.back.is_some() && last_move.is_some_and(|last| at <= last)
}

/// Fails one call and looks at what became of it; gives the error's variant.
fn check_failed(task: &Task, known: &Known, plan: Plan, what: &str) -> String {
    let tried = Try::new(task, plan);
    assert_eq!(tried.trace.code, Some(0), "{what}: a panic");
    let outcome = tried.outcome();
    let tree = tried.place.tree();
    let variant: String = outcome.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let is_ok = outcome == "ok";
    let typed = ["NoSpace", "Denied", "Io", "State", "Store", "Root"].contains(&variant.as_str());
    assert!(is_ok || typed, "{what}: {outcome}");
    let what = format!("{what}: {outcome}");
    // What failed was tried again in the same process; that the tree was as before then was looked
    // at there.
    if known.before != known.done && (is_ok || task.settle.is_none()) {
        let files = |tree: &Model| files_of(tree, &known.before);
        let tree = files(&tree);
        assert!(tree == files(&known.done), "{what}: not done:{}", between(&tree, known));
    }
    let is_done = verify(task, &tried, known, &what);
    assert!(is_done || !is_ok, "{what}: said to be done, and wasn't");
    variant
}

macro_rules! tasks {
    ($($name:ident)*) => {
        mod killed_in {
            $(#[test] fn $name() { super::killed(super::task(stringify!($name))); })*
        }
        mod failed_in {
            $(#[test] fn $name() { super::failed(super::task(stringify!($name))); })*
        }
        #[test]
        fn every_task_is_tried() {
            let names: Vec<&str> = TASKS.iter().map(|task| task.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

tasks! {
    one_edit a_change_set a_directory_becomes_a_file a_file_becomes_a_directory many_files
    an_edit_that_cuts_the_journal an_undo an_undo_to_a_checkpoint a_redo a_checkpoint the_end_of_a_command going_back_early going_back_late finishing
}
