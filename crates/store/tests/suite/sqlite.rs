//! What the durable log promises beyond what every store does: files, processes, damage, power.

use std::fs;
use std::future::Future;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{
    Blobs, MAX_ENTRY_BYTES, MemoryStore, NewEntry, NewSession, SESSION_STATUS_READY, SessionOrigin,
    SqliteStore, Store, StoreError,
};
use journeyman_testkit::{skip, test_arguments, test_path};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000 + number), number)
}

fn entry(payload: &[u8]) -> NewEntry {
    NewEntry { channel: None, kind: "note".into(), at: UnixMillis(1), payload: payload.to_vec() }
}

/// What entry `seq` of a test log holds: enough that the logs of these tests have many pages.
fn content(seq: u64) -> Vec<u8> {
    format!("{seq}:{}", "abcdefgh".repeat(60)).into_bytes()
}

/// A log of one session with `count` entries, closed.
fn filled(path: &Path, count: u64) {
    let store = SqliteStore::open(path).unwrap();
    let entries = (1..=count).map(|seq| entry(&content(seq))).collect();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        store.append(&session(1), Seq::START, entries).await.unwrap();
    });
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn opening_touches_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/journeyman/sessions.db");
    drop(SqliteStore::open(&path).unwrap());
    assert!(!home.path().join("state").exists());
}

#[test]
fn files_are_private_whatever_they_were() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state/journeyman");
    let path = dir.join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
    let all = [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")];
    assert_eq!(all.each_ref().map(|file| mode(file)), [0o600; 3]);
    assert_eq!([&dir, &home.path().join("state")].map(|dir| mode(dir)), [0o700; 2]);
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.create(&session(2), "/p", "t", UnixMillis(1))).unwrap();
    assert_eq!(all.each_ref().map(|file| mode(file)), [0o600; 3]);
}

#[test]
fn dropping_finishes_the_calls_under_way_and_leaves_one_whole_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    drop(store.create(&session(1), "/p", "t", UnixMillis(1)));
    for seq in 0..20 {
        drop(store.append(&session(1), Seq(seq), vec![entry(&content(seq + 1))]));
    }
    drop(store);
    let names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|found| found.unwrap().file_name()).collect();
    assert_eq!(names, ["sessions.db"]);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(block_on(store.read(&session(1), Seq::START, 99)).unwrap().len(), 20);
}

#[test]
fn what_a_line_of_appends_writes_does_not_grow_with_the_log() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        store.create(&session(2), "/p", "t", UnixMillis(1)).await.unwrap();
        // Pages that 100 appends of one entry write, seen by how much the write-ahead log grows.
        let cost = async |from: u64| {
            let before = fs::metadata(beside(&path, "-wal")).unwrap().len();
            for seq in from..from + 100 {
                store.append(&session(1), Seq(seq), vec![entry(b"a short note")]).await.unwrap();
            }
            fs::metadata(beside(&path, "-wal")).unwrap().len() - before
        };
        let small = cost(0).await;
        let mut last = Seq(100);
        while last < Seq(100_000) {
            last = store.append(&session(1), last, vec![entry(b"a short note"); 4_995]).await.unwrap();
        }
        // A reader keeps the write-ahead log from being started over, so that its growth can be
        // seen.
        let reader = rusqlite::Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM sessions", [], |row| row.get::<_, i64>(0)).unwrap();
        let large = cost(last.0).await;
        assert!(small > 0 && large > 0);
        assert!(large <= small * 2, "{large} bytes for 100 appends at the end, {small} at the beginning");
        assert_eq!(store.read(&session(1), Seq(99_990), 5).await.unwrap()[4].seq, Seq(99_995));
    });
}

#[test]
fn the_write_ahead_log_stays_bounded() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        let mut last = Seq::START;
        for _ in 0..64 {
            last = store.append(&session(1), last, vec![entry(&vec![7; 500_000])]).await.unwrap();
        }
    });
    let wal = fs::metadata(beside(&path, "-wal")).unwrap().len();
    assert!(wal < 8 << 20, "{wal} bytes after 32 MB of entries");
}

#[test]
fn of_two_handles_that_append_at_once_one_wins_and_the_other_is_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let handles = [SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap()];
    block_on(handles[0].create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
    let conflicts = std::thread::scope(|scope| {
        let writers = handles.each_ref().map(|store| {
            scope.spawn(move || {
                block_on(async {
                    let (mut last, mut written, mut conflicts) = (Seq::START, 0, 0);
                    while written < 100 {
                        match store.append(&session(1), last, vec![entry(b"x")]).await {
                            Ok(seq) => (last, written) = (seq, written + 1),
                            Err(StoreError::Conflict { found, .. }) => {
                                (last, conflicts) = (found, conflicts + 1)
                            }
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    conflicts
                })
            })
        });
        writers.into_iter().map(|writer| writer.join().unwrap()).sum::<u32>()
    });
    let entries = block_on(handles[0].read(&session(1), Seq::START, 999)).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
    println!("{conflicts} conflicts");
}

#[test]
fn many_handles_may_create_the_file_at_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/sessions.db");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = SqliteStore::open(path).unwrap();
                block_on(store.create(&session(number), "/p", "t", UnixMillis(1))).unwrap();
            });
        }
    });
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(block_on(store.sessions(None, 99)).unwrap().len(), 8);
    drop(store);
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 1);
}

#[test]
fn one_handle_closing_does_not_disturb_another_in_the_same_process() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let one = SqliteStore::open(&path).unwrap();
    block_on(one.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
    for seq in 0..20 {
        let two = SqliteStore::open(&path).unwrap();
        let writer = if seq % 2 == 0 { &one } else { &two };
        block_on(writer.append(&session(1), Seq(seq), vec![entry(&content(seq + 1))])).unwrap();
    }
    assert_eq!(block_on(one.read(&session(1), Seq::START, 99)).unwrap().len(), 20);
    assert_eq!(block_on(one.check()).unwrap(), Vec::<String>::new());
}

/// Every answer of a damaged log: the right entries, or an error that names the file.
fn answers_or_names_the_damage(path: &Path, count: u64) -> Result<(), String> {
    let store = SqliteStore::open(path).unwrap();
    match block_on(store.read(&session(1), Seq::START, usize::MAX)) {
        Ok(entries) => {
            assert_eq!(entries.len() as u64, count);
            for entry in entries {
                assert_eq!(entry.payload, content(entry.seq.0));
            }
            Ok(())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("Nothing was changed") && text.contains("To go on"), "{text}");
            Err(text)
        }
    }
}

#[test]
fn a_truncated_log_is_never_silently_empty_or_short() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 200);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 20 * 4096);
    let lengths =
        [0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, 8192, 12288, whole.len() - 4096, whole.len() - 1];
    for length in lengths {
        fs::write(&path, &whole[..length]).unwrap();
        answers_or_names_the_damage(&path, 200).expect_err(&format!("cut to {length} bytes"));
        assert_eq!(fs::read(&path).unwrap(), whole[..length], "left as it is");
    }
    fs::write(&path, &whole).unwrap();
    answers_or_names_the_damage(&path, 200).unwrap();
}

#[test]
fn pages_of_rubbish_are_noticed_by_the_read_that_meets_them() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 200);
    let whole = fs::read(&path).unwrap();
    for fill in [0x00, 0xFF, 0x5A] {
        for page in 0..whole.len() / 4096 {
            let mut bad = whole.clone();
            bad[page * 4096..(page + 1) * 4096].fill(fill);
            fs::write(&path, &bad).unwrap();
            // The table of sessions on a page of zeros reads as empty or as damaged; both are said.
            let store = SqliteStore::open(&path).unwrap();
            match block_on(store.read(&session(1), Seq::START, usize::MAX)) {
                Ok(entries) => assert_eq!(entries.len(), 200, "page {page} filled with {fill:#x}"),
                Err(StoreError::Damaged { .. } | StoreError::UnknownSession { .. }) => {
                    let found = block_on(store.check());
                    assert!(!matches!(&found, Ok(lines) if lines.is_empty()), "page {page}, {fill:#x}");
                }
                Err(other) => panic!("page {page} filled with {fill:#x}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_no_log_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let others: Vec<Vec<u8>> = vec![b"# Notes\n".repeat(2_000), vec![0; 8192], {
        let other = home.path().join("other.db");
        rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
        fs::read(&other).unwrap()
    }];
    for other in others {
        fs::write(&path, &other).unwrap();
        let error = block_on(SqliteStore::open(&path).unwrap().sessions(None, 9)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), other);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = block_on(SqliteStore::open(&path).unwrap().sessions(None, 9)).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
}

#[test]
fn a_missing_file_with_changes_left_beside_it_is_a_loss_and_said() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    fs::write(beside(&path, "-wal"), "frames").unwrap();
    let error = block_on(SqliteStore::open(&path).unwrap().sessions(None, 9)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(!path.exists());
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 3).unwrap();
    let error = block_on(SqliteStore::open(&path).unwrap().sessions(None, 9)).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 3, known: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("newer version"), "{error}");
}

#[test]
fn an_entry_that_vanished_is_damage_not_a_shorter_log() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    for lost in [1, 5, 10] {
        drop(fs::remove_file(&path));
        filled(&path, 10);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute("DELETE FROM entries WHERE place & 1023 = ?1", [lost]).unwrap();
        drop(connection);
        let error =
            block_on(SqliteStore::open(&path).unwrap().read(&session(1), Seq::START, 99)).unwrap_err();
        assert!(error.to_string().contains(&format!("entry {lost} of session")), "{error}");
    }
}

#[test]
fn the_store_recovers_when_the_obstacle_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    fs::write(&path, "").unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert!(block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).is_err());
    fs::remove_file(&path).unwrap();
    block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    let store = SqliteStore::open(&file.join("below/sessions.db")).unwrap();
    let error = block_on(store.sessions(None, 9)).unwrap_err();
    assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn a_lock_held_too_long_is_said_and_nothing_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let store = SqliteStore::open(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Readers go on while another process writes.
    assert_eq!(block_on(store.read(&session(1), Seq::START, 9)).unwrap().len(), 3);
    // The append gives up after five seconds.
    let error = block_on(store.append(&session(1), Seq(3), vec![entry(b"x")])).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(block_on(store.append(&session(1), Seq(3), vec![entry(b"x")])).unwrap(), Seq(4));
}

#[test]
fn deleted_text_is_not_left_in_the_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        for number in [1, 2] {
            store.create(&session(number), "/p", "t", UnixMillis(1)).await.unwrap();
            store
                .append(&session(number), Seq::START, vec![entry(&b"shibboleth".repeat(900))])
                .await
                .unwrap();
        }
        for number in [1, 2] {
            store.delete(&session(number)).await.unwrap();
        }
    });
    drop(store);
    let file = fs::read(&path).unwrap();
    assert!(!file.windows(10).any(|window| window == b"shibboleth"));
}

/// Set in the environment of this test binary when a test runs it again as a process of its own.
const CHILD: &str = "JM_STORE_TEST_CHILD";

fn child_of(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(test_arguments(test_path!(test))).env(CHILD, path);
    command
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if let Some(path) = std::env::var_os(CHILD) {
        let store = SqliteStore::open(Path::new(&path)).unwrap();
        block_on(async {
            store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
            let mut last = Seq::START;
            loop {
                let next = entry(&content(last.0 + 1));
                last = store.append(&session(1), last, vec![next]).await.unwrap();
                println!("stored {last}");
            }
        });
    }
    let home = tempfile::tempdir().unwrap();
    for kill_after in [1, 7, 30] {
        let path = home.path().join(format!("{kill_after}.db"));
        let mut child = child_of("what_was_acknowledged_survives_kill_9", &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let acknowledged = lines
            .filter_map(|line| line.split("stored ").nth(1).and_then(|seq| seq.parse::<u64>().ok()))
            .find(|&seq| seq >= kill_after)
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = SqliteStore::open(&path).unwrap();
        let entries = block_on(store.read(&session(1), Seq::START, usize::MAX)).unwrap();
        assert!(entries.len() as u64 >= acknowledged, "{} of {acknowledged}", entries.len());
        for (entry, seq) in entries.iter().zip(1..) {
            assert_eq!((entry.seq, &entry.payload), (Seq(seq), &content(seq)));
        }
        let last = Seq(entries.len() as u64);
        assert_eq!(block_on(store.append(&session(1), last, vec![entry(b"on")])).unwrap(), last.next());
    }
}

#[test]
fn a_write_ahead_log_cut_off_anywhere_leaves_whole_appends() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        for seq in [0, 3, 6, 9] {
            let entries = (1..=3).map(|step| entry(&content(seq + step))).collect();
            store.append(&session(1), Seq(seq), entries).await.unwrap();
        }
    });
    let (main, wal) = (fs::read(&path).unwrap(), fs::read(beside(&path, "-wal")).unwrap());
    for cut in (0..=wal.len()).step_by(997) {
        let copy = home.path().join(format!("{cut}.db"));
        fs::write(&copy, &main).unwrap();
        fs::write(beside(&copy, "-wal"), &wal[..cut]).unwrap();
        let store = SqliteStore::open(&copy).unwrap();
        match block_on(store.read(&session(1), Seq::START, 99)) {
            Ok(entries) => {
                assert_eq!(entries.len() % 3, 0, "cut at {cut}");
                for entry in &entries {
                    assert_eq!(entry.payload, content(entry.seq.0));
                }
            }
            Err(StoreError::UnknownSession { .. }) => assert!(cut < wal.len() / 2, "cut at {cut}"),
            Err(other) => panic!("cut at {cut}: {other:?}"),
        }
    }
}

/// Fills the disk at the path in the environment, then makes it read-only, and checks what is said.
fn exhaust(disk: &Path) {
    let path = disk.join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let blobs = Blobs::open(&disk.join("blobs"), u64::MAX).unwrap();
    let kept = blobs.put(b"kept").unwrap();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        let mut last = Seq::START;
        let error = loop {
            match store.append(&session(1), last, vec![entry(&[7; 8000])]).await {
                Ok(seq) => last = seq,
                Err(error) => break error,
            }
        };
        assert!(last > Seq(5), "{last}");
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert_eq!(store.read(&session(1), Seq::START, 999).await.unwrap().len() as u64, last.0);
        let error = blobs.put(&[1; 900_000]).unwrap_err();
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
        assert_eq!(blobs.get(&kept).unwrap().unwrap(), b"kept");
        assert!(fs::read_dir(disk.join("blobs")).unwrap().count() <= 2);

        drop(store);
        assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(disk).status().unwrap().success());
        let store = SqliteStore::open(&path).unwrap();
        let error = store.append(&session(1), last, vec![entry(b"x")]).await.unwrap_err();
        assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        let error = blobs.put(b"new").unwrap_err();
        assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
        let absent = SqliteStore::open(&disk.join("new.db")).unwrap();
        let error = absent.sessions(None, 1).await.unwrap_err();
        assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
    });
    println!("exhausted");
}

#[test]
fn a_full_or_read_only_disk_is_named_and_what_was_stored_is_kept() {
    if let Some(disk) = std::env::var_os(CHILD) {
        return exhaust(Path::new(&disk));
    }
    let home = tempfile::tempdir().unwrap();
    let test = "a_full_or_read_only_disk_is_named_and_what_was_stored_is_kept";
    // A small disk of its own, in a mount namespace, so that nothing outside sees it.
    let script = "mount -t tmpfs -o size=400k disk \"$1\" || exit 77; shift; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(home.path())
        .arg(std::env::current_exe().unwrap())
        .args(test_arguments(test_path!(test)))
        .env(CHILD, home.path())
        .output();
    let missing = match &output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            return assert!(text.contains("exhausted"), "{text}");
        }
        Ok(output) if output.status.code() == Some(101) => panic!("{output:?}"),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skip(format_args!("no small disk to be had with unshare and mount: {missing}"));
}

#[test]
fn a_log_that_is_taken_away_while_it_is_in_use_takes_nothing_more() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/sessions.db");
    for replaced in [false, true] {
        let store = SqliteStore::open(&path).unwrap();
        block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
        fs::remove_dir_all(home.path().join("state")).unwrap();
        if replaced {
            filled(&path, 3);
        }
        let there = fs::read(&path).ok();
        let entry = NewEntry { channel: None, kind: "note".into(), at: UnixMillis(2), payload: vec![1] };
        for _ in 0..2 {
            let error = block_on(store.append(&session(1), Seq::START, vec![entry.clone()])).unwrap_err();
            assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
        }
        let error = block_on(store.find_sessions("")).unwrap_err();
        assert!(error.to_string().contains("was removed or replaced while it was in use"), "{error}");
        assert_eq!(fs::read(&path).ok(), there, "nothing is made in its place");
        drop(store);
        drop(fs::remove_dir_all(home.path().join("state")));
    }
}

/// Runs a case over a durable store and over one in memory, which has to behave the same.
fn over_each(case: impl AsyncFn(&dyn Store)) {
    let home = tempfile::tempdir().unwrap();
    let durable = SqliteStore::open(&home.path().join("sessions.db")).unwrap();
    block_on(async {
        case(&durable).await;
        case(&MemoryStore::new()).await;
    });
}

fn note(payload: &str, at: u64) -> NewEntry {
    NewEntry { at: UnixMillis(at), ..entry(payload.as_bytes()) }
}

#[test]
fn a_session_begins_with_its_entries_its_status_and_its_holder() {
    over_each(async |store| {
        let new = |id: &SessionId, origin, entries| NewSession {
            id: id.clone(),
            origin,
            title: "t".into(),
            now: UnixMillis(5),
            status: "forked".into(),
            lease: Some(("me".into(), 1_000)),
            entries,
        };
        let (parent, child) = (session(1), session(2));
        let root = || SessionOrigin::Root("/p".into());
        let last =
            store.create_with_entries(new(&parent, root(), vec![note("a", 7), note("b", 6)])).await.unwrap();
        assert_eq!(last, Seq(2));
        let found = store.find_sessions(parent.as_str()).await.unwrap().remove(0);
        assert_eq!((found.status.as_str(), found.last, found.root.as_str()), ("forked", Seq(2), "/p"));
        let held = store.acquire_lease(&parent, "you", UnixMillis(6), 1_000).await.unwrap_err();
        assert!(matches!(held, StoreError::Leased { .. }), "{held:?}");
        // The same once more is a conflict, and leaves nothing of it.
        let again = store.create_with_entries(new(&parent, root(), vec![note("c", 8)])).await.unwrap_err();
        assert!(matches!(again, StoreError::Conflict { found: Seq(2), .. }), "{again:?}");
        assert_eq!(store.read(&parent, Seq::START, 9).await.unwrap().len(), 2);
        // An attempt that got no further than the session's name is gone on with.
        store.create(&session(3), "/p", "t", UnixMillis(5)).await.unwrap();
        assert_eq!(
            store.create_with_entries(new(&session(3), root(), vec![note("a", 7)])).await.unwrap(),
            Seq(1)
        );
        let fork = || SessionOrigin::Fork { parent: parent.clone(), at: Seq(1) };
        assert_eq!(store.create_with_entries(new(&child, fork(), vec![note("d", 9)])).await.unwrap(), Seq(2));
        let payloads: Vec<Vec<u8>> =
            store.read(&child, Seq::START, 9).await.unwrap().into_iter().map(|e| e.payload).collect();
        assert_eq!(payloads, [b"a".to_vec(), b"d".to_vec()]);
        let taken = store.create_with_entries(new(&child, fork(), vec![])).await.unwrap_err();
        assert!(matches!(taken, StoreError::SessionExists { .. }), "{taken:?}");
    });
}

#[test]
fn what_can_not_begin_whole_does_not_begin() {
    over_each(async |store| {
        let big = note(&"x".repeat(MAX_ENTRY_BYTES + 1), 1);
        let new = NewSession {
            id: session(1),
            origin: SessionOrigin::Root("/p".into()),
            title: String::new(),
            now: UnixMillis(5),
            status: SESSION_STATUS_READY.into(),
            lease: None,
            entries: vec![note("a", 1), big],
        };
        let error = store.create_with_entries(new).await.unwrap_err();
        assert!(matches!(error, StoreError::EntryTooLarge { .. }), "{error:?}");
        assert_eq!(store.sessions(None, 9).await.unwrap(), []);
    });
}

#[test]
fn an_append_sets_the_status_with_its_entries_or_not_at_all() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        assert_eq!(
            store.append_and_set_status(&id, Seq::START, vec![note("a", 7)], "done").await.unwrap(),
            Seq(1)
        );
        let status = async || store.find_sessions(id.as_str()).await.unwrap().remove(0).status;
        assert_eq!(status().await, "done");
        let error =
            store.append_and_set_status(&id, Seq::START, vec![note("b", 8)], "other").await.unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error:?}");
        assert_eq!(status().await, "done");
    });
}
