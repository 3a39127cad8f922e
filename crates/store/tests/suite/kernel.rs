//! What the kernel refuses: flushes, room, access. Each in a process that the refusal is made for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::child::{again, given, in_namespace};
use crate::support::{block_on, content, entry, filled, session};
use journeyman_protocol::{Seq, UnixMillis};
use journeyman_store::{Blobs, MemoryStore, SqliteStore, Store, StoreError, export_file};
use journeyman_testkit::{skip, test_path};

/// From now on every flush by any thread of this process fails with `EIO`; false where that can't
/// be had.
#[allow(unsafe_code)]
fn break_flushes() -> bool {
    let step = |code: u32, jt, jf, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let answer = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let is = |number: libc::c_long, then| {
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, 0, u32::try_from(number).unwrap())
    };
    let mut filter = [
        // The number of the system call is what a filter sees first.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        is(libc::SYS_fsync, 2),
        is(libc::SYS_fdatasync, 1),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
    ];
    let program = libc::sock_fprog { len: 5, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid during the call, and what it refuses is all that changes.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            ) == 0
    }
}

#[test]
fn an_append_whose_flush_failed_is_uncertain_and_tried_again_it_is_there_once() {
    let test = "an_append_whose_flush_failed_is_uncertain_and_tried_again_it_is_there_once";
    if let Some(path) = given() {
        let store = SqliteStore::open(&path).unwrap();
        block_on(async {
            store.append(&session(1), Seq(3), vec![entry(b"good")]).await.unwrap();
            if !break_flushes() {
                return println!("no filter");
            }
            let append = async || store.append(&session(1), Seq(4), vec![entry(b"mine")]).await;
            let error = append().await.unwrap_err();
            assert!(error.is_uncertain(), "{error:?}");
            assert!(error.to_string().contains("sessions.db"), "{error}");
            for _ in 0..3 {
                append().await.unwrap_err();
            }
            assert_eq!(store.read(&session(1), Seq::START, 4).await.unwrap().len(), 4);
            println!("broken");
        });
        // It ends as by a crash: nothing is tidied up.
        std::process::exit(0);
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    filled(&path, 3);
    let output = again(test_path!(test), &path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    if text.contains("no filter") {
        skip("no seccomp filter to be had");
        return;
    }
    assert!(text.contains("broken"), "{text}");
    // The disk is sound for another process.
    let store = SqliteStore::open(&path).unwrap();
    block_on(async {
        match store.append(&session(1), Seq(4), vec![entry(b"mine")]).await {
            Ok(last) => assert_eq!(last, Seq(5)),
            Err(StoreError::Conflict { found, .. }) => assert_eq!(found, Seq(5)),
            Err(other) => panic!("{other:?}"),
        }
        let entries = store.read(&session(1), Seq(3), 99).await.unwrap();
        assert!(entries.iter().map(|entry| &entry.payload[..]).eq([&b"good"[..], b"mine"]));
        assert_eq!(store.append(&session(1), Seq(5), vec![entry(b"on")]).await.unwrap(), Seq(6));
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_new_log_whose_flush_fails_is_not_made() {
    let test = "a_new_log_whose_flush_fails_is_not_made";
    if let Some(path) = given() {
        if !break_flushes() {
            return println!("no filter");
        }
        let store = SqliteStore::open(&path).unwrap();
        let error = block_on(store.create(&session(1), "/p", "t", UnixMillis(1))).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
        let memory = MemoryStore::new();
        block_on(memory.create(&session(1), "/p", "t", UnixMillis(1))).unwrap();
        let file = path.with_file_name("session.jsonl");
        block_on(export_file(&memory, &session(1), &[], &file)).unwrap_err();
        assert!(!file.exists());
        return println!("broken");
    }
    let home = tempfile::tempdir().unwrap();
    let output = again(test_path!(test), &home.path().join("sessions.db")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    if text.contains("no filter") {
        skip("no seccomp filter to be had");
        return;
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_read_only_directory_is_named_and_nothing_changes() {
    let test = "a_read_only_directory_is_named_and_nothing_changes";
    if let Some(dir) = given() {
        let denied = |error: StoreError| {
            assert!(matches!(error, StoreError::NoAccess { .. }), "{error:?}");
            assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
        };
        block_on(async {
            let store = SqliteStore::open(&dir.join("sessions.db")).unwrap();
            denied(store.append(&session(1), Seq(3), vec![entry(b"x")]).await.unwrap_err());
            denied(store.read(&session(1), Seq::START, 9).await.unwrap_err());
            denied(store.acquire_lease(&session(1), "me", UnixMillis(1), 9).await.unwrap_err());
            let fresh = SqliteStore::open(&dir.join("new.db")).unwrap();
            denied(fresh.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap_err());
            let below = SqliteStore::open(&dir.join("below/new.db")).unwrap();
            denied(below.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap_err());
            denied(Blobs::open(&dir.join("blobs"), 99).unwrap().put(b"x").unwrap_err());
        });
        return println!("denied");
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state");
    fs::create_dir(&dir).unwrap();
    filled(&dir.join("sessions.db"), 3);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o500)).unwrap();
    let before = fs::read(dir.join("sessions.db")).unwrap();
    // In a user namespace without a mapping even root has to obey modes.
    let said = in_namespace(&["--user"], "! touch \"$1/x\" 2>&-", test_path!(test), &dir);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    match said {
        Ok(text) => assert!(text.contains("denied"), "{text}"),
        Err(missing) => {
            skip(format_args!("no user namespace to be had: {missing}"));
            return;
        }
    }
    assert_eq!(fs::read(dir.join("sessions.db")).unwrap(), before);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

/// Fills a small disk, makes room, fills it again, and makes it read-only.
fn exhaust(disk: &std::path::Path) {
    let path = disk.join("sessions.db");
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![1; 60_000]).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let full = |error: &StoreError| {
        assert!(matches!(error, StoreError::DiskFull { .. }) && !error.is_uncertain(), "{error:?}");
        assert!(error.to_string().contains("sessions.db"), "{error}");
    };
    block_on(async {
        store.create(&session(1), "/p", "t", UnixMillis(1)).await.unwrap();
        let mut last = Seq::START;
        let fill = async |mut last: Seq| loop {
            match store.append(&session(1), last, vec![entry(&content(last.0 + 1)); 8]).await {
                Ok(seq) => last = seq,
                Err(error) => {
                    full(&error);
                    return last;
                }
            }
        };
        last = fill(last).await;
        assert!(last > Seq(40), "{last}");
        // Room is made, and the same store goes on where it stopped.
        fs::remove_file(&ballast).unwrap();
        let further = fill(last).await;
        assert!(further > last, "{further} {last}");
        let entries = store.read(&session(1), Seq::START, usize::MAX).await.unwrap();
        assert_eq!(entries.len() as u64, further.0);
        full(&store.fork(&session(1), further, &session(2), "t", UnixMillis(1)).await.unwrap_err());
        assert_eq!(store.find_sessions("").await.unwrap().len(), 1);
        export_file(&store, &session(1), &[], &disk.join("session.jsonl")).await.unwrap_err();
        assert!(!disk.join("session.jsonl").exists());
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    });
    println!("exhausted");
}

#[test]
fn on_a_full_disk_nothing_is_lost_and_with_room_it_goes_on() {
    let test = "on_a_full_disk_nothing_is_lost_and_with_room_it_goes_on";
    if let Some(disk) = given() {
        return exhaust(&disk);
    }
    let home = tempfile::tempdir().unwrap();
    let flags = ["--user", "--map-root-user", "--mount"];
    match in_namespace(&flags, "mount -t tmpfs -o size=400k disk \"$1\"", test_path!(test), home.path()) {
        Ok(text) => assert!(text.contains("exhausted"), "{text}"),
        Err(missing) => skip(format_args!("no small disk to be had: {missing}")),
    }
}
