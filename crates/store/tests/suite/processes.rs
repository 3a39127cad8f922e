//! Several processes on one log: who may write, who is told, what is left by one that was killed.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::child::{Running, again, given};
use crate::support::{block_on, entry, filled, follow, session};
use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_protocol::{Seq, UnixMillis};
use journeyman_store::{SqliteStore, Store, StoreError};
use journeyman_testkit::test_path;

/// As long as no test runs.
const LONG: u64 = 1_000_000_000;

fn lease(store: &SqliteStore, holder: &str, now: u64) -> Result<(), StoreError> {
    block_on(store.acquire_lease(&session(1), holder, UnixMillis(now), LONG))
}

fn refused_by(result: Result<(), StoreError>) -> String {
    match result {
        Err(StoreError::Leased { holder, .. }) => holder,
        other => panic!("{other:?}"),
    }
}

/// Names beside the log that have something to do with leases.
fn holder_files(path: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(path.parent().unwrap()).unwrap().map(|found| found.unwrap().path());
    found.filter(|path| path.to_str().unwrap().contains("-holder-")).collect()
}

/// Waits until the other side lets it go on.
fn wait() {
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn the_second_process_on_a_session_is_refused_with_who_holds_it_until_that_is_gone() {
    let test = "the_second_process_on_a_session_is_refused_with_who_holds_it_until_that_is_gone";
    if let Some(path) = given() {
        let store = SqliteStore::open(&path).unwrap();
        lease(&store, &format!("pid {}", std::process::id()), 5_000).unwrap();
        println!("held");
        return wait();
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let store = SqliteStore::open(&path).unwrap();
    for way in ["killed", "ended"] {
        let mut child = Running::start(again(test_path!(test), &path));
        child.says("held");
        let who = format!("pid {}", child.id());
        assert_eq!(refused_by(lease(&store, "me", 5_001)), who);
        // Numbers of processes repeat; the same words from elsewhere are somebody else.
        assert_eq!(refused_by(lease(&store, &who, 5_001)), who);
        block_on(store.release_lease(&session(1), &who)).unwrap();
        assert_eq!(refused_by(lease(&store, "me", 5_001)), who);
        let holder = || block_on(store.lease_holder(&session(1), UnixMillis(5_001))).unwrap();
        assert_eq!(holder(), Some(who));
        match way {
            "killed" => child.kill(),
            _ => child.finish(),
        }
        assert_eq!(holder(), None);
        // Whatever the clock says.
        lease(&store, "me", 17).unwrap();
        block_on(store.release_lease(&session(1), "me")).unwrap();
    }
    assert_eq!(holder_files(&path).len(), 1, "its own; what the killed one left is gone");
    drop(store);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn what_a_killed_holder_started_does_not_hold_its_lease() {
    let test = "what_a_killed_holder_started_does_not_hold_its_lease";
    if let Some(path) = given() {
        let store = SqliteStore::open(&path).unwrap();
        lease(&store, "child", 5_000).unwrap();
        // It lives as long as the test keeps the pipe open.
        let mut orphan = Command::new("cat").stdout(Stdio::null()).spawn().unwrap();
        println!("started {}", orphan.id());
        return assert!(orphan.wait().unwrap().success());
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let (keep_open, pipe) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
    let mut command = again(test_path!(test), &path);
    let mut child = command.stdin(pipe).stdout(Stdio::piped()).spawn().unwrap();
    drop(command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let orphan = lines.find_map(|line| line.unwrap().split_once("started ").map(|(_, id)| id.to_owned()));
    let orphan = PathBuf::from(format!("/proc/{}", orphan.unwrap()));
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(refused_by(lease(&store, "me", 5_001)), "child");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(orphan.exists());
    lease(&store, "me", 5_001).unwrap();
    drop(keep_open);
}

#[test]
fn a_lease_ends_with_the_store_it_was_taken_through() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let (one, two) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    lease(&one, "me", 5).unwrap();
    lease(&one, "me", 6).unwrap();
    assert_eq!(refused_by(lease(&two, "you", 7)), "me");
    drop(one);
    lease(&two, "you", 8).unwrap();
}

#[test]
fn all_leases_of_a_store_share_one_private_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let open_files = || fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default();
    block_on(async {
        let mut first = None;
        for number in 0..100 {
            store.create(&session(number), "/p", "t", UnixMillis(1)).await.unwrap();
            store.acquire_lease(&session(number), "me", UnixMillis(1), 10).await.unwrap();
            if number == 10 {
                first = Some(open_files());
            }
        }
        // Other tests of this process open some at the same time; none of theirs are a hundred.
        assert!(open_files() < first.unwrap() + 60);
    });
    let files = holder_files(&path);
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_lease_that_names_no_file_of_ours_runs_until_its_time() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let precious = home.path().join("precious");
    fs::write(&precious, "").unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    for name in ["NULL", "''", "'/../../precious'", "'../precious'"] {
        let sql = format!(
            "UPDATE sessions SET holder = 'it', held_until = 50, held_for = 40, holder_file = {name}"
        );
        connection.execute(&sql, []).unwrap();
        assert_eq!(refused_by(lease(&store, "me", 49)), "it", "{name}");
        lease(&store, "me", 50).unwrap();
    }
    assert!(precious.exists());
}

#[test]
fn a_tail_sees_what_another_process_appends() {
    let test = "a_tail_sees_what_another_process_appends";
    if let Some(path) = given() {
        wait();
        let store = SqliteStore::open(&path).unwrap();
        for seq in 3..6 {
            block_on(store.append(&session(1), Seq(seq), vec![entry(b"from elsewhere")])).unwrap();
        }
        return block_on(store.delete(&session(1))).unwrap();
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let store = SqliteStore::open(&path).unwrap();
    let child = Running::start(again(test_path!(test), &path));
    block_on(async {
        let mut tail = follow(&store, &session(1), Seq(2));
        assert_eq!(tail.next().await.unwrap().unwrap().seq, Seq(3));
        let mut waiting = Box::pin(tail.next());
        assert!(waiting.as_mut().now_or_never().is_none());
        child.finish();
        // It may be deleted before all of it was read; it ends then.
        let mut next = waiting.await.unwrap();
        let mut expected = Seq(4);
        while let Ok(found) = next {
            assert_eq!((found.seq, &found.payload[..]), (expected, &b"from elsewhere"[..]));
            expected = expected.next();
            next = tail.next().await.unwrap();
        }
        assert!(matches!(next, Err(StoreError::UnknownSession { .. })), "{next:?}");
    });
}

#[test]
fn of_two_processes_that_write_one_session_each_entry_has_one_author() {
    let test = "of_two_processes_that_write_one_session_each_entry_has_one_author";
    /// Appends 40 entries with what the writer says, stepping behind the other's each time.
    fn write(path: &Path, says: &str) {
        let store = SqliteStore::open(path).unwrap();
        block_on(async {
            let (mut last, mut written) = (Seq::START, 0);
            while written < 40 {
                let payload = format!("{says} {written}").into_bytes();
                match store.append(&session(1), last, vec![entry(&payload)]).await {
                    Ok(seq) => (last, written) = (seq, written + 1),
                    Err(StoreError::Conflict { found, .. }) => last = found,
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
    }
    if let Some(path) = given() {
        println!("ready");
        wait();
        return write(&path, "child");
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    block_on(SqliteStore::open(&path).unwrap().create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
    let mut child = Running::start(again(test_path!(test), &path));
    child.says("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| write(&path, "parent"));
        child.finish();
    });
    let store = SqliteStore::open(&path).unwrap();
    let entries = block_on(store.read(&session(1), Seq::START, 999)).unwrap();
    assert_eq!(entries.len(), 80);
    for says in ["child", "parent"] {
        let own: Vec<_> = entries.iter().filter(|entry| entry.payload.starts_with(says.as_bytes())).collect();
        let expected: Vec<_> = (0..40).map(|number| format!("{says} {number}").into_bytes()).collect();
        assert!(own.iter().map(|entry| &entry.payload).eq(&expected));
    }
}
