//! Files that were cut off or overwritten: said, never silently empty, and saved as far as they can
//! be read.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::child::{Running, again, given};
use crate::support::{beside, block_on, content, entry, filled, quick_dir, session};
use futures_util::FutureExt as _;
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use journeyman_store::{
    Entry, NewEntry, SalvageReport, SalvagedSession, SqliteStore, Store, StoreError, repair, salvage,
};
use journeyman_testkit::test_path;
use proptest::prelude::*;

fn read(path: &Path, id: &SessionId) -> Result<Vec<Entry>, StoreError> {
    block_on(SqliteStore::open(path).unwrap().read(id, Seq::START, usize::MAX))
}

/// Salvages into a fresh file and checks what holds for every damage: what was kept is right, in a
/// log that is whole and can be gone on with, and the damaged file was left alone.
fn saved(path: &Path) -> Result<(SalvageReport, PathBuf), StoreError> {
    let before = fs::read(path).ok();
    let into = beside(path, "-into");
    for name in [into.clone(), beside(&into, "-apart.jsonl")] {
        drop(fs::remove_file(name));
    }
    let salvaged = block_on(salvage(path, &into));
    assert_eq!(fs::read(path).ok(), before);
    let salvaged = match salvaged {
        Ok(salvaged) => salvaged,
        Err(error) => {
            assert!(!into.exists() && !beside(&into, "-apart.jsonl").exists());
            return Err(error);
        }
    };
    let store = SqliteStore::open(&into).unwrap();
    block_on(async {
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        assert_eq!(store.find_sessions("").await.unwrap().len(), salvaged.sessions.len());
        for session in &salvaged.sessions {
            let entries = store.read(&session.id, Seq::START, usize::MAX).await.unwrap();
            assert_eq!(entries.len() as u64, session.kept);
            let accounted = session.kept - session.blank + session.apart + session.lost_entry_count();
            assert_eq!(accounted, session.had, "{session:?}");
            store.append(&session.id, Seq(session.kept), vec![entry(b"on")]).await.unwrap();
        }
    });
    let apart: u64 = salvaged.sessions.iter().map(|session| session.apart).sum();
    let lines = salvaged.apart.as_ref().map(|path| fs::read_to_string(path).unwrap().lines().count() as u64);
    assert_eq!(lines.unwrap_or_default(), apart);
    Ok((salvaged, into))
}

/// That the one session of [`filled`] was saved rightly as far as it was.
fn right(into: &Path, salvaged: &SalvageReport) {
    let [SalvagedSession { id, kept, blank, .. }] = salvaged.sessions.as_slice() else {
        panic!("{salvaged:?}")
    };
    let all = read(into, id).unwrap();
    let (lost, whole): (Vec<&Entry>, _) = all.iter().take(*kept as usize).partition(|one| one.kind == "lost");
    assert_eq!(lost.len() as u64, *blank);
    for entry in whole {
        assert_eq!(entry.payload, content(entry.seq.0));
    }
}

#[test]
fn cut_off_anywhere_a_log_is_whole_or_damaged_and_what_is_there_is_saved() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    filled(&path, 120);
    let whole = fs::read(&path).unwrap();
    let mut most = 0;
    for length in (0..whole.len()).step_by(512) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = read(&path, &session(1)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "cut to {length} bytes: {error:?}");
        let store = SqliteStore::open(&path).unwrap();
        for error in [
            block_on(store.sessions(None, 9)).unwrap_err(),
            block_on(store.create(&session(2), "/p", "t", UnixMillis(1))).unwrap_err(),
            block_on(store.append(&session(1), Seq(120), vec![entry(b"x")])).unwrap_err(),
        ] {
            assert!(matches!(error, StoreError::Damaged { .. }), "cut to {length} bytes: {error:?}");
        }
        drop(store);
        assert_eq!(fs::read(&path).unwrap(), whole[..length], "left as it is");
        match saved(&path) {
            Ok((salvaged, into)) => {
                right(&into, &salvaged);
                most = most.max(salvaged.sessions[0].kept + salvaged.sessions[0].apart);
            }
            Err(error) => assert!(length < 16_384, "cut to {length} bytes: {error}"),
        }
    }
    assert!(most > 110, "{most}");
}

#[test]
fn a_page_that_was_overwritten_costs_no_more_than_its_entries() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    filled(&path, 120);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole).unwrap();
    let (salvaged, into) = saved(&path).unwrap();
    let all = SalvagedSession { id: session(1), title: "t".into(), had: 120, kept: 120, blank: 0, apart: 0 };
    assert_eq!(salvaged, SalvageReport { sessions: vec![all], apart: None });
    right(&into, &salvaged);
    let (mut partial, mut nameless) = (0, 0);
    for fill in [0x00, 0xFF, 0x0D] {
        for page in 0..whole.len() / 4096 {
            let mut bad = whole.clone();
            bad[page * 4096..(page + 1) * 4096].fill(fill);
            fs::write(&path, &bad).unwrap();
            match block_on(SqliteStore::open(&path).unwrap().sessions(None, 9)) {
                Ok(found) => assert_eq!(found.len(), 1, "page {page}, {fill:#x}"),
                Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "page {page}: {error:?}"),
            }
            match read(&path, &session(1)) {
                Ok(entries) => assert_eq!(entries.len(), 120, "page {page}, {fill:#x}"),
                Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "page {page}: {error:?}"),
            }
            let (salvaged, into) = saved(&path).unwrap();
            right(&into, &salvaged);
            let [one] = salvaged.sessions.as_slice() else { panic!("{salvaged:?}") };
            // The id is on two pages, so it is never lost here.
            assert_eq!(one.id, session(1));
            nameless += usize::from(one.title != "t");
            partial += usize::from(one.lost_entry_count() > 0);
            assert!(one.lost_entry_count() <= 10, "page {page}: {one:?}");
            if let Some(apart) = &salvaged.apart {
                let lines = fs::read_to_string(apart).unwrap();
                let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
                assert_eq!(first["session"], session(1).as_str());
                let seq = first["seq"].as_u64().unwrap();
                assert!(seq > one.kept + 1, "{first}");
                assert_eq!(first["text"].as_str().unwrap().as_bytes(), content(seq));
                assert_eq!(fs::metadata(apart).unwrap().permissions().mode() & 0o7777, 0o600);
                let text = salvaged.to_string();
                assert!(text.contains("set apart") && text.contains(apart.to_str().unwrap()), "{text}");
            }
        }
    }
    assert!(partial > 30 && nameless == 3, "{partial} {nameless}");
}

/// A log with several sessions, entries over many pages, channels, and changes that are in the
/// write-ahead log only. The files are copied while it is open.
fn busy(home: &Path) -> (PathBuf, Vec<(SessionId, Vec<Entry>)>) {
    let live = home.join("live.db");
    let path = home.join("sessions.db");
    let store = SqliteStore::open(&live).unwrap();
    block_on(async {
        // What was deleted is not found again. It also moves what there is to the main file.
        store.create(&session(2), "/p", "deleted", UnixMillis(1)).await.unwrap();
        store.append(&session(2), Seq::START, vec![entry(&content(1)); 50]).await.unwrap();
        store.delete(&session(2)).await.unwrap();
        for number in [1, 3] {
            let id = session(number);
            store.create(&id, "/p «x»", &format!("title {number}"), UnixMillis(number)).await.unwrap();
            let mut last = Seq::START;
            for size in [0, 10, 5_000, 100, 70_000, 3_000, 4_050, 9_000, 1] {
                let channel = (size % 3 == 0).then_some(Channel::Monitor);
                let at = UnixMillis(size as u64);
                let payload = vec![number as u8; size];
                let entry = NewEntry { channel, kind: format!("kind {size}"), at, payload };
                last = store.append(&id, last, vec![entry]).await.unwrap();
            }
        }
        store.set_status(&session(3), "done", UnixMillis(100_000)).await.unwrap();
    });
    for suffix in ["", "-wal"] {
        fs::copy(beside(&live, suffix), beside(&path, suffix)).unwrap();
    }
    let all = [1, 3].map(|number| {
        let id = session(number);
        let entries = block_on(store.read(&id, Seq::START, usize::MAX)).unwrap();
        (id, entries)
    });
    (path, all.into())
}

#[test]
fn the_write_ahead_log_is_saved_too_even_without_its_main_file() {
    let home = quick_dir();
    let (path, all) = busy(home.path());
    let main = fs::read(&path).unwrap();
    for main in [Some(main.clone()), Some(Vec::new()), Some(main[..700].to_vec()), None] {
        match main {
            Some(main) => fs::write(&path, main).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let (salvaged, into) = saved(&path).unwrap();
        assert_eq!(
            salvaged.sessions.iter().map(|session| &session.id).collect::<Vec<_>>(),
            [&session(1), &session(3)]
        );
        for (id, entries) in &all {
            assert_eq!(read(&into, id).unwrap()[..9], *entries);
        }
        let done =
            block_on(SqliteStore::open(&into).unwrap().find_sessions(session(3).as_str())).unwrap().remove(0);
        assert_eq!((done.title.as_str(), done.status.as_str(), &*done.root), ("title 3", "done", "/p «x»"));
        assert_eq!((done.created, done.updated), (UnixMillis(3), UnixMillis(100_000)));
    }
}

#[test]
fn a_long_entry_that_lost_a_part_is_lost_whole() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        let entries = vec![entry(b"a"), entry(&[7; 50_000]), entry(b"c")];
        store.append(&session(1), Seq::START, entries).await.unwrap();
    });
    drop(store);
    let whole = fs::read(&path).unwrap();
    // A page in the midst of the long one.
    let page = whole.chunks(4096).position(|page| page[4..].iter().all(|byte| *byte == 7)).unwrap();
    let mut bad = whole.clone();
    bad[page * 4096..(page + 1) * 4096].fill(0);
    fs::write(&path, bad).unwrap();
    let (salvaged, _) = saved(&path).unwrap();
    let one = &salvaged.sessions[0];
    assert_eq!((one.had, one.kept, one.apart, one.lost_entry_count()), (3, 1, 1, 1));
}

#[test]
fn a_check_counts_entries_and_compares_the_index_of_records() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    let lose = "DELETE FROM entries WHERE place & 1023 = 7";
    let hide = "PRAGMA writable_schema = ON; CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'records';
                DELETE FROM sqlite_schema WHERE name = 'records'";
    let show = "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM kept";
    for (steps, said) in [
        (vec![lose], "9 of its 10 entries"),
        (vec![hide, lose, show], "9 records, of which its index has 10"),
    ] {
        drop(fs::remove_file(&path));
        filled(&path, 10);
        assert_eq!(block_on(SqliteStore::open(&path).unwrap().check()).unwrap(), Vec::<String>::new());
        for step in steps {
            rusqlite::Connection::open(&path).unwrap().execute_batch(step).unwrap();
        }
        let found = block_on(SqliteStore::open(&path).unwrap().check()).unwrap();
        assert!(found.iter().any(|line| line.contains(said)), "{found:?}");
        block_on(SqliteStore::open(&path).unwrap().read_records(&session(1), Seq::START, 99)).unwrap_err();
        let (salvaged, _) = saved(&path).unwrap();
        assert_eq!(salvaged.sessions[0].lost_entry_count(), 1);
    }
}

#[test]
fn a_changed_byte_of_an_entry_or_of_its_session_is_noticed() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    for (damage, said) in [
        (
            "UPDATE entries SET payload = CAST(replace(payload, 'abc', 'abd') AS BLOB) WHERE place & 1023 = 7",
            "entry 7",
        ),
        ("UPDATE entries SET kind = 'nite' WHERE place & 1023 = 7", "entry 7"),
        ("UPDATE entries SET channel = 1 WHERE place & 1023 = 7", "entry 7"),
        ("UPDATE entries SET at = at + 1 WHERE place & 1023 = 7", "entry 7"),
        ("UPDATE sessions SET last = 9", "ends at 9, and has entry 10"),
        ("UPDATE sessions SET last = 11", "missing"),
    ] {
        drop(fs::remove_file(&path));
        filled(&path, 10);
        rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let error = read(&path, &session(1)).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }) && error.to_string().contains(said), "{error}");
        let (salvaged, into) = saved(&path).unwrap();
        right(&into, &salvaged);
        let one = &salvaged.sessions[0];
        assert_eq!(one.kept - one.blank + one.apart, if said.starts_with("entry") { 9 } else { 10 });
    }
}

#[test]
fn a_check_names_every_session_with_an_entry_that_is_not_as_it_was_written() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    for number in [1, 2, 3] {
        let store = SqliteStore::open(&path).unwrap();
        block_on(async {
            store.create(&session(number), "/p", "t", UnixMillis(1)).await.unwrap();
            let entries = (1..=10).map(|seq| entry(&content(seq))).collect();
            store.append(&session(number), Seq::START, entries).await.unwrap();
        });
    }
    let spoil = "UPDATE entries SET payload = CAST(substr(payload, 2) AS BLOB) WHERE place >> 40 = 2 AND place & 1023 IN (4, 7);
                 UPDATE entries SET kind = CAST(x'ff' AS TEXT) WHERE place >> 40 = 3 AND place & 1023 = 9";
    rusqlite::Connection::open(&path).unwrap().execute_batch(spoil).unwrap();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = std::sync::Arc::clone(&told);
    let store = SqliteStore::open(&path).unwrap();
    let lines =
        block_on(store.check_with_progress(move |done, total| tell.lock().unwrap().push((done, total))))
            .unwrap();
    drop(store);
    let [two, three] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(two.starts_with(&format!("session {}: entry 4 and 1 more", session(2))), "{two}");
    assert!(three.starts_with(&format!("session {}: entry 9 ", session(3))), "{three}");
    assert!(told.lock().unwrap().is_empty(), "thirty entries are quick");
    let repaired = block_on(repair(&path)).unwrap();
    assert_eq!(block_on(SqliteStore::open(&path).unwrap().check()).unwrap(), Vec::<String>::new());
    assert_eq!(repaired.salvage.sessions.iter().map(|one| one.kept).collect::<Vec<_>>(), [10, 3, 8]);
    assert_eq!(read(&path, &session(1)).unwrap().len(), 10);
}

#[test]
fn a_write_ahead_log_that_is_damaged_in_the_middle_is_not_taken_for_one_that_a_crash_tore() {
    let home = quick_dir();
    let (path, _) = busy(home.path());
    let wal = beside(&path, "-wal");
    let (main, whole) = (fs::read(&path).unwrap(), fs::read(&wal).unwrap());
    let frame = |number: usize| 32 + number * (24 + 4096);
    let check = || block_on(SqliteStore::open(&path).unwrap().check()).unwrap();
    // A crash tears the last transaction, anywhere.
    for cut in [whole.len(), whole.len() - 1, whole.len() - 5000] {
        fs::write(&path, &main).unwrap();
        fs::write(&wal, &whole[..cut]).unwrap();
        assert_eq!(check(), Vec::<String>::new(), "cut to {cut}");
    }
    for at in [frame(2) + 4, frame(2) + 100, frame(4) + 20] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&path, &main).unwrap();
        fs::write(&wal, &bad).unwrap();
        let lines = check();
        assert!(lines.len() == 1 && lines[0].contains("write-ahead log is damaged"), "{at}: {lines:?}");
        assert_eq!(fs::read(&wal).unwrap(), bad, "left as it is");
        let repaired = block_on(repair(&path)).unwrap();
        assert_eq!(fs::read(beside(&repaired.aside, "-wal")).unwrap(), bad);
        assert_eq!(check(), Vec::<String>::new());
    }
}

#[test]
fn a_lost_event_costs_itself_alone_and_a_lost_record_what_follows_it() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    // Which entry is damaged; how many are kept, stand for a lost one, are set apart.
    for (at, expected, status) in [(4, (9, 1, 0), "done"), (9, (9, 1, 0), "done"), (5, (4, 0, 4), "ready")] {
        drop(fs::remove_file(&path));
        let store = SqliteStore::open(&path).unwrap();
        block_on(async {
            store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
            let entry = |seq| NewEntry {
                channel: (seq != 1 && seq != 5).then_some(Channel::Progress),
                ..entry(&content(seq))
            };
            store.append(&session(1), Seq::START, (1..=9).map(entry).collect()).await.unwrap();
            store.set_status(&session(1), "done", UnixMillis(9)).await.unwrap();
        });
        drop(store);
        let spoil = format!("UPDATE entries SET at = at + 1 WHERE place & 1023 = {at}");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&spoil).unwrap();
        let (salvaged, into) = saved(&path).unwrap();
        let one = &salvaged.sessions[0];
        assert_eq!((one.kept, one.blank, one.apart), expected, "entry {at}");
        right(&into, &salvaged);
        let only_events = salvaged.to_string().contains("nothing of the conversation");
        assert_eq!(only_events, at != 5, "{salvaged}");
        let found = block_on(SqliteStore::open(&into).unwrap().find_sessions("")).unwrap().remove(0);
        assert_eq!(found.status, status);
    }
}

#[test]
fn where_nothing_can_be_read_an_empty_log_is_begun_and_the_file_set_aside() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    for other in [Vec::new(), vec![0; 8192], b"# Notes\n".repeat(2_000)] {
        fs::write(&path, &other).unwrap();
        let repaired = block_on(repair(&path)).unwrap();
        assert_eq!(fs::read(&repaired.aside).unwrap(), other);
        assert!(repaired.salvage.sessions.is_empty());
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(block_on(store.check()).unwrap(), Vec::<String>::new());
        block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
    }
}

#[test]
fn what_is_no_log_gives_nothing_and_is_said() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    assert!(matches!(saved(&path), Err(StoreError::Damaged { .. })), "there is none");
    for other in [Vec::new(), vec![0; 8192], b"# Notes\n".repeat(2_000), vec![0x0D; 40_960]] {
        fs::write(&path, other).unwrap();
        let error = saved(&path).unwrap_err();
        assert!(error.to_string().contains("no session and no entry"), "{error}");
    }
    filled(&home.path().join("good.db"), 3);
    let error = block_on(salvage(&path, &home.path().join("good.db"))).unwrap_err();
    assert!(error.to_string().contains("good.db"), "{error}");
    assert_eq!(read(&home.path().join("good.db"), &session(1)).unwrap().len(), 3);
}

#[test]
fn a_log_that_another_process_has_open_is_left_to_it() {
    let test = "a_log_that_another_process_has_open_is_left_to_it";
    if let Some(path) = given() {
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(block_on(store.find_sessions("")).unwrap().len(), 1);
        println!("open");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let mut child = Running::start(again(test_path!(test), &path));
    child.says("open");
    assert!(matches!(saved(&path), Err(StoreError::Busy { .. })));
    assert!(matches!(block_on(repair(&path)), Err(StoreError::Busy { .. })));
    child.finish();
    saved(&path).unwrap();
}

/// A log with a lost page, so that a repair sets entries apart.
fn with_a_lost_page(path: &Path) {
    filled(path, 120);
    let mut bad = fs::read(path).unwrap();
    let page = bad.chunks(4096).position(|page| page.windows(4).any(|text| text == b"60:a")).unwrap();
    bad[page * 4096..(page + 1) * 4096].fill(0xEE);
    fs::write(path, &bad).unwrap();
}

#[test]
fn a_repair_that_was_killed_while_it_set_entries_apart_is_begun_afresh() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    with_a_lost_page(&path);
    fs::write(beside(&path, "-saved-apart.jsonl"), "{}\n").unwrap();
    let repaired = block_on(repair(&path)).unwrap().salvage;
    assert!(repaired.sessions[0].apart > 0);
    let lines = fs::read_to_string(repaired.apart.unwrap()).unwrap();
    assert_eq!(lines.lines().count() as u64, repaired.sessions[0].apart);
}

#[test]
fn a_repair_that_was_killed_as_it_put_the_new_log_in_its_place_is_completed() {
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    with_a_lost_page(&path);
    let damaged = fs::read(&path).unwrap();
    let first = block_on(repair(&path)).unwrap();
    let kept = read(&path, &session(1)).unwrap();
    assert!(!kept.is_empty());
    // As it is before the last names are given: the new log is complete, the old one is aside, and
    // its write-ahead log is not yet.
    fs::rename(&path, beside(&path, "-saved")).unwrap();
    fs::rename(first.salvage.apart.unwrap(), beside(&path, "-saved-apart.jsonl")).unwrap();
    fs::write(&path, "").unwrap();
    fs::write(beside(&path, "-wal"), b"the old one's").unwrap();
    assert!(matches!(read(&path, &session(1)), Err(StoreError::Damaged { .. })));
    let repaired = block_on(repair(&path)).unwrap();
    assert_eq!(read(&path, &session(1)).unwrap(), kept);
    assert_eq!(repaired.salvage.sessions[0].kept, kept.len() as u64);
    assert!(fs::metadata(repaired.salvage.apart.unwrap()).unwrap().len() > 0);
    assert_eq!(fs::read(&first.aside).unwrap(), damaged);
    assert_eq!(fs::read(beside(&repaired.aside, "-wal")).unwrap(), b"the old one's");
}

#[test]
fn what_is_stored_while_a_log_is_repaired_is_not_left_behind() {
    let test = "what_is_stored_while_a_log_is_repaired_is_not_left_behind";
    if let Some(path) = given() {
        let store = SqliteStore::open(&path).unwrap();
        let stored = block_on(store.append(&session(1), Seq(120), vec![entry(b"late")]));
        println!("stored: {}", stored.is_ok());
        return;
    }
    let home = quick_dir();
    let path = home.path().join("sessions.db");
    filled(&path, 120);
    let stored = block_on(async {
        let mut repairing = repair(&path).boxed();
        // The log is read, and the new one is being written.
        assert!((&mut repairing).now_or_never().is_none());
        let stored = Running::start(again(test_path!(test), &path)).says("stored: ");
        repairing.await.unwrap();
        stored
    });
    let kept = read(&path, &session(1)).unwrap().len();
    assert_eq!(kept, if stored == "true" { 121 } else { 120 });
}

#[test]
fn a_log_that_takes_the_place_of_another_while_that_is_opened_is_the_one_that_is_used() {
    let home = quick_dir();
    let (path, other) = (home.path().join("sessions.db"), home.path().join("other.db"));
    filled(&path, 3);
    filled(&other, 5);
    // It keeps everybody out who wants to read the file.
    let held = rusqlite::Connection::open(&path).unwrap();
    held.execute_batch("PRAGMA locking_mode = EXCLUSIVE; SELECT count(*) FROM sessions;").unwrap();
    let open_files = || {
        let open = fs::read_dir("/proc/self/fd").unwrap().map(|one| fs::read_link(one.unwrap().path()));
        open.filter(|file| file.as_ref().is_ok_and(|file| *file == path)).count()
    };
    assert_eq!(open_files(), 1);
    let store = SqliteStore::open(&path).unwrap();
    let listed = store.sessions(None, 9);
    while open_files() < 2 {
        std::thread::yield_now();
    }
    fs::rename(&other, &path).unwrap();
    drop(held);
    assert_eq!(block_on(listed).unwrap()[0].last, Seq(5));
    block_on(store.append(&session(1), Seq(5), vec![entry(b"on")])).unwrap();
    drop(store);
    assert_eq!(read(&path, &session(1)).unwrap()[5].payload, b"on");
}

#[test]
fn a_repaired_log_is_gone_on_with_and_the_damaged_one_is_beside_it() {
    let home = quick_dir();
    let (path, all) = busy(home.path());
    fs::remove_file(home.path().join("live.db")).unwrap();
    let mut bad = fs::read(&path).unwrap();
    bad.truncate(700);
    fs::write(&path, &bad).unwrap();
    let wal = fs::read(beside(&path, "-wal")).unwrap();
    let repaired = block_on(repair(&path)).unwrap();
    assert_eq!(fs::read(&repaired.aside).unwrap(), bad);
    assert_eq!(fs::read(beside(&repaired.aside, "-wal")).unwrap(), wal);
    assert_eq!(repaired.salvage.apart, None);
    for (id, entries) in &all {
        assert_eq!(read(&path, id).unwrap(), *entries);
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.append(&session(1), Seq(9), vec![entry(b"on")])).unwrap();
    drop(store);
    // Another time, with entries set apart.
    let mut bad = fs::read(&path).unwrap();
    let page = bad.chunks(4096).position(|page| page[4..].iter().all(|byte| *byte == 1)).unwrap();
    bad[page * 4096..(page + 1) * 4096].fill(0xEE);
    fs::write(&path, &bad).unwrap();
    let again = block_on(repair(&path)).unwrap();
    assert_ne!(again.aside, repaired.aside);
    assert!(again.salvage.sessions[0].apart > 0);
    assert!(fs::metadata(again.salvage.apart.unwrap()).unwrap().len() > 0);
    assert_eq!(read(&path, &session(3)).unwrap(), all[1].1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_it_panic_or_lie(
        spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1_usize..600), 1..12),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
        in_wal in any::<bool>(),
    ) {
        let home = quick_dir();
        let (path, all) = busy(home.path());
        let victim = if in_wal { beside(&path, "-wal") } else { path.clone() };
        let mut bytes = fs::read(&victim).unwrap();
        for (at, value, length) in spots {
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + length);
            bytes[at..end].fill(value);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&victim, bytes).unwrap();
        if let Ok((salvaged, into)) = saved(&path) {
            for (id, entries) in &all {
                let Some(one) = salvaged.sessions.iter().find(|one| one.id == *id) else { continue };
                let found = read(&into, id).unwrap();
                for (found, entry) in found.iter().zip(entries).take(one.kept as usize) {
                    prop_assert!(found == entry || (found.kind == "lost" && entry.channel.is_some()));
                }
            }
        }
        for (id, entries) in &all {
            // A write-ahead log that was cut off is as if what it had were never written.
            if let Ok(found) = read(&path, id) {
                prop_assert!(found == entries[..found.len()] && (in_wal || found.len() == entries.len()));
            }
        }
        if !in_wal
            && let Ok(found) = block_on(SqliteStore::open(&path).unwrap().find_sessions(""))
            && found.is_empty()
        {
            let said = block_on(SqliteStore::open(&path).unwrap().check());
            prop_assert!(!matches!(&said, Ok(lines) if lines.is_empty()));
        }
    }
}
