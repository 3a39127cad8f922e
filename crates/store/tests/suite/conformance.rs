//! What every store promises, asked of each of them.

use std::future::Future;

use crate::support::follow;
use futures_util::StreamExt as _;
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use journeyman_store::{
    Entry, MAX_ENTRY_BYTES, MemoryStore, NewEntry, SESSION_STATUS_READY, SessionSummary, SqliteStore, Store,
    StoreError,
};
use proptest::prelude::*;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Runs a case over a fresh store of each kind.
fn over_each(case: impl AsyncFn(&dyn Store)) {
    block_on(async {
        case(&MemoryStore::new()).await;
        let home = tempfile::tempdir().unwrap();
        case(&SqliteStore::open(&home.path().join("sessions.db")).unwrap()).await;
    });
}

fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000 + number), number)
}

fn note(text: &str, at: u64) -> NewEntry {
    NewEntry { channel: None, kind: "note".into(), at: UnixMillis(at), payload: text.into() }
}

#[test]
fn entries_come_back_as_they_went_in_with_places_without_gaps() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        assert_eq!(store.read(&id, Seq::START, 10).await.unwrap(), []);
        let entries = vec![
            NewEntry { channel: None, kind: "message".into(), at: UnixMillis(1), payload: vec![0, 255, 10] },
            NewEntry {
                channel: Some(Channel::Progress),
                kind: String::new(),
                at: UnixMillis(0),
                payload: vec![],
            },
            NewEntry {
                channel: Some(Channel::Control),
                kind: "wörter «\0»".into(),
                at: UnixMillis(9),
                payload: b"x".to_vec(),
            },
            NewEntry {
                channel: Some(Channel::Monitor),
                kind: "k".into(),
                at: UnixMillis(3),
                payload: vec![7; 70_000],
            },
        ];
        assert_eq!(store.append(&id, Seq::START, entries[..1].to_vec()).await.unwrap(), Seq(1));
        assert_eq!(store.append(&id, Seq(1), entries[1..].to_vec()).await.unwrap(), Seq(4));
        let expected: Vec<Entry> = entries
            .into_iter()
            .zip(1..)
            .map(|(NewEntry { channel, kind, at, payload }, seq)| Entry {
                seq: Seq(seq),
                channel,
                kind,
                at,
                payload,
            })
            .collect();
        assert_eq!(store.read(&id, Seq::START, usize::MAX).await.unwrap(), expected);
        assert_eq!(store.read(&id, Seq(1), 2).await.unwrap(), expected[1..3]);
        assert_eq!(store.read(&id, Seq(3), 0).await.unwrap(), []);
        assert_eq!(store.read(&id, Seq(4), 10).await.unwrap(), []);
        assert_eq!(store.read(&id, Seq(u64::MAX), 10).await.unwrap(), []);
        assert_eq!(store.sessions(None, 9).await.unwrap()[0].updated, UnixMillis(9));
    });
}

#[test]
fn an_append_that_missed_something_is_refused_and_changes_nothing() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        store.append(&id, Seq::START, vec![note("a", 1), note("b", 2)]).await.unwrap();
        for expected in [Seq(0), Seq(1), Seq(3), Seq(u64::MAX)] {
            for entries in [vec![note("c", 99)], vec![]] {
                match store.append(&id, expected, entries).await.unwrap_err() {
                    StoreError::Conflict { session, expected: said, found } => {
                        assert_eq!((session, said, found), (id.clone(), expected, Seq(2)));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(store.append(&id, Seq(2), vec![]).await.unwrap(), Seq(2));
        assert_eq!(store.read(&id, Seq::START, 10).await.unwrap().len(), 2);
        assert_eq!(store.sessions(None, 9).await.unwrap()[0].updated, UnixMillis(5));
    });
}

#[test]
fn an_append_with_one_entry_too_large_stores_none() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let mut large = note("", 1);
        large.payload = vec![0; MAX_ENTRY_BYTES];
        let error = store.append(&id, Seq::START, vec![note("a", 1), large]).await.unwrap_err();
        assert!(matches!(&error, StoreError::EntryTooLarge { kind, .. } if kind == "note"), "{error:?}");
        assert_eq!(store.read(&id, Seq::START, 10).await.unwrap(), []);
        assert_eq!(store.append(&id, Seq::START, vec![note("a", 1)]).await.unwrap(), Seq(1));
    });
}

#[test]
fn an_unknown_session_is_named_by_every_call_but_delete() {
    over_each(async |store| {
        let id = session(1);
        store.create(&session(2), "/p", "t", UnixMillis(5)).await.unwrap();
        let errors = [
            store.append(&id, Seq::START, vec![]).await.unwrap_err(),
            store.append(&id, Seq(3), vec![note("x", 1)]).await.unwrap_err(),
            store.read(&id, Seq::START, 1).await.unwrap_err(),
            store.read_records(&id, Seq::START, 1).await.unwrap_err(),
            store.read_chunk(&id, Seq::START, 1).await.unwrap_err(),
            store.wait_for_entry(&id, Seq::START).await.unwrap_err(),
            store.fork(&id, Seq::START, &session(3), "t", UnixMillis(1)).await.unwrap_err(),
            store.set_status(&id, "done", UnixMillis(1)).await.unwrap_err(),
            store.acquire_lease(&id, "me", UnixMillis(1), 1).await.unwrap_err(),
            store.release_lease(&id, "me").await.unwrap_err(),
            store.lease_holder(&id, UnixMillis(1)).await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(&error, StoreError::UnknownSession { session } if *session == id), "{error:?}");
            assert!(error.to_string().contains(id.as_str()));
        }
        store.delete(&id).await.unwrap();
    });
}

#[test]
fn a_session_is_created_once() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "first", UnixMillis(5)).await.unwrap();
        store.append(&id, Seq::START, vec![note("a", 1)]).await.unwrap();
        let error = store.create(&id, "/q", "second", UnixMillis(6)).await.unwrap_err();
        assert!(matches!(error, StoreError::SessionExists { .. }), "{error:?}");
        let expected = SessionSummary {
            id: id.clone(),
            root: "/p".into(),
            title: "first".into(),
            created: UnixMillis(5),
            updated: UnixMillis(5),
            last: Seq(1),
            status: SESSION_STATUS_READY.into(),
        };
        assert_eq!(store.sessions(None, 9).await.unwrap(), [expected]);
    });
}

#[test]
fn lists_are_newest_first_bounded_and_by_root() {
    over_each(async |store| {
        for (number, root, at) in
            [(1, "/a", 10), (2, "/b", 30), (3, "/a", 20), (4, "/a'; DROP TABLE sessions; --", 5)]
        {
            store.create(&session(number), root, "t", UnixMillis(at)).await.unwrap();
        }
        let ids = async |root, limit| -> Vec<SessionId> {
            store.sessions(root, limit).await.unwrap().into_iter().map(|summary| summary.id).collect()
        };
        assert_eq!(ids(None, 9).await, [session(2), session(3), session(1), session(4)]);
        assert_eq!(ids(None, 2).await, [session(2), session(3)]);
        assert_eq!(ids(None, 0).await, []);
        assert_eq!(ids(Some("/a"), 9).await, [session(3), session(1)]);
        assert_eq!(ids(Some("/A"), 9).await, []);
        assert_eq!(ids(Some("/a'; DROP TABLE sessions; --"), 9).await, [session(4)]);
        // Entries and statuses bring a session to the front.
        store.append(&session(1), Seq::START, vec![note("x", 40)]).await.unwrap();
        store.set_status(&session(4), "done", UnixMillis(50)).await.unwrap();
        assert_eq!(ids(None, 9).await, [session(4), session(1), session(2), session(3)]);
        assert_eq!(store.sessions(None, 1).await.unwrap()[0].status, "done");
        // Of two updated at the same time the one created later is first.
        store.set_status(&session(2), "done", UnixMillis(50)).await.unwrap();
        assert_eq!(ids(None, 2).await, [session(4), session(2)]);
    });
}

#[test]
fn sessions_are_found_by_the_beginning_of_their_id() {
    over_each(async |store| {
        let ids: Vec<SessionId> = ["0aaaaaaaaaaaaaaaaa", "0aaaaaaaaaaaaaaaab", "0zzzzzzzzzzzzzzzzz"]
            .map(|id| id.parse().unwrap())
            .into();
        for (id, at) in ids.iter().zip(1..) {
            store.create(id, "/p", "t", UnixMillis(at)).await.unwrap();
        }
        let cases: &[(&str, &[usize])] = &[
            ("", &[2, 1, 0]),
            ("0", &[2, 1, 0]),
            ("0a", &[1, 0]),
            ("0aaaaaaaaaaaaaaaab", &[1]),
            ("0aaaaaaaaaaaaaaaabc", &[]),
            ("0z", &[2]),
            ("1", &[]),
            ("%", &[]),
            ("0_", &[]),
            ("0A", &[]),
            ("0á", &[]),
            ("\u{10ffff}", &[]),
        ];
        for (prefix, expected) in cases {
            let found: Vec<_> =
                store.find_sessions(prefix).await.unwrap().into_iter().map(|found| found.id).collect();
            let expected: Vec<_> = expected.iter().map(|&index| ids[index].clone()).collect();
            assert_eq!(found, expected, "{prefix:?}");
        }
    });
}

#[test]
fn one_writer_a_session_until_it_gives_up_or_its_time_is_over() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let lease = async |holder, now, ttl| store.acquire_lease(&id, holder, UnixMillis(now), ttl).await;
        lease("pid 1", 100, 50).await.unwrap();
        let refused = lease("pid 2", 149, 50).await.unwrap_err();
        match &refused {
            StoreError::Leased { session, holder, until } => {
                assert_eq!((session, holder.as_str(), *until), (&id, "pid 1", UnixMillis(150)));
            }
            other => panic!("{other:?}"),
        }
        assert!(refused.to_string().contains("pid 1"), "{refused}");
        lease("pid 1", 140, 50).await.unwrap();
        assert!(lease("pid 2", 160, 50).await.is_err(), "a renewal counts from its own time");
        lease("pid 2", 190, 50).await.unwrap();
        store.release_lease(&id, "pid 1").await.unwrap();
        assert!(lease("pid 1", 200, 50).await.is_err(), "only the holder gives it back");
        store.release_lease(&id, "pid 2").await.unwrap();
        lease("pid 1", 200, u64::MAX).await.unwrap();
        assert!(lease("pid 2", 1 << 60, 50).await.is_err());
        let holder = async |now| store.lease_holder(&id, UnixMillis(now)).await.unwrap();
        assert_eq!(holder(1 << 60).await.as_deref(), Some("pid 1"));
        store.release_lease(&id, "pid 1").await.unwrap();
        assert_eq!(holder(200).await, None);
        lease("pid 3", 200, 50).await.unwrap();
        assert_eq!((holder(249).await.as_deref(), holder(250).await), (Some("pid 3"), None));
        // A lease is no entry and no news.
        assert_eq!(store.sessions(None, 1).await.unwrap()[0].updated, UnixMillis(5));
    });
}

#[test]
fn a_deleted_session_is_gone_with_its_entries_and_no_other() {
    over_each(async |store| {
        for number in 1..=3 {
            store.create(&session(number), "/p", "t", UnixMillis(5)).await.unwrap();
            store.append(&session(number), Seq::START, vec![note("a", 1), note("b", 1)]).await.unwrap();
        }
        store.delete(&session(2)).await.unwrap();
        assert!(store.read(&session(2), Seq::START, 9).await.is_err());
        for number in [1, 3] {
            assert_eq!(store.read(&session(number), Seq::START, 9).await.unwrap().len(), 2);
        }
        store.create(&session(2), "/p", "again", UnixMillis(6)).await.unwrap();
        assert_eq!(store.read(&session(2), Seq::START, 9).await.unwrap(), []);
        store.acquire_lease(&session(2), "me", UnixMillis(1), 1).await.unwrap();
    });
}

#[test]
fn calls_take_effect_in_the_order_they_are_made() {
    over_each(async |store| {
        let id = session(1);
        let created = store.create(&id, "/p", "t", UnixMillis(5));
        let first = store.append(&id, Seq::START, vec![note("a", 1)]);
        drop(store.append(&id, Seq(1), vec![note("b", 1)]));
        let read = store.read(&id, Seq::START, 9);
        assert_eq!(read.await.unwrap().len(), 2);
        assert_eq!(first.await.unwrap(), Seq(1));
        created.await.unwrap();
    });
}

#[test]
fn times_beyond_what_can_be_stored_come_back_as_the_last_one() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(u64::MAX)).await.unwrap();
        store.append(&id, Seq::START, vec![note("a", u64::MAX)]).await.unwrap();
        let last = UnixMillis(i64::MAX as u64);
        assert_eq!(store.read(&id, Seq::START, 1).await.unwrap()[0].at, last);
        assert_eq!(store.sessions(None, 1).await.unwrap()[0].created, last);
    });
}

/// An event, that is an entry with a channel.
fn event(text: &str, at: u64) -> NewEntry {
    NewEntry { channel: Some(Channel::Progress), ..note(text, at) }
}

#[test]
fn records_are_the_entries_without_a_channel() {
    over_each(async |store| {
        let id = session(1);
        for number in [1, 2] {
            store.create(&session(number), "/p", "t", UnixMillis(5)).await.unwrap();
        }
        assert_eq!(store.read_records(&id, Seq::START, 9).await.unwrap(), []);
        let entries = vec![event("a", 1), note("b", 1), event("c", 1), event("d", 1), note("e", 1)];
        store.append(&id, Seq::START, entries).await.unwrap();
        store.append(&session(2), Seq::START, vec![note("other", 1)]).await.unwrap();
        store.append(&id, Seq(5), vec![note("f", 1), event("g", 1)]).await.unwrap();
        let seqs = async |after, limit| -> Vec<u64> {
            let records = store.read_records(&id, Seq(after), limit).await.unwrap();
            let all = store.read(&id, Seq::START, 99).await.unwrap();
            assert!(records.iter().all(|record| all.contains(record) && record.channel.is_none()));
            records.iter().map(|record| record.seq.0).collect()
        };
        assert_eq!(seqs(0, 9).await, [2, 5, 6]);
        assert_eq!(seqs(0, 3).await, [2, 5, 6]);
        assert_eq!(seqs(0, 2).await, [2, 5]);
        assert_eq!(seqs(2, 9).await, [5, 6]);
        assert_eq!(seqs(3, 1).await, [5]);
        assert_eq!(seqs(0, 0).await, [0_u64; 0]);
        for after in [6, 7, 8, u64::MAX] {
            assert_eq!(seqs(after, usize::MAX).await, [0_u64; 0]);
        }
    });
}

#[test]
fn chunks_hold_what_fits_and_at_least_one_entry() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let sizes = [10, 1_000, 3_000, 10, 10];
        let entries = sizes.iter().map(|&size| note(&"x".repeat(size), 1)).collect();
        store.append(&id, Seq::START, entries).await.unwrap();
        let seqs = async |after, bytes| -> Vec<u64> {
            let chunk = store.read_chunk(&id, Seq(after), bytes).await.unwrap();
            chunk.iter().map(|entry| entry.seq.0).collect()
        };
        assert_eq!(seqs(0, usize::MAX).await, [1, 2, 3, 4, 5]);
        assert_eq!(seqs(0, 0).await, [1]);
        assert_eq!(seqs(0, 2_000).await, [1, 2]);
        assert_eq!(seqs(2, 2_000).await, [3]);
        assert_eq!(seqs(3, 2_000).await, [4, 5]);
        assert_eq!(seqs(5, 2_000).await, [0_u64; 0]);
    });
}

#[test]
fn a_fork_has_the_entries_so_far_and_goes_its_own_way() {
    over_each(async |store| {
        let (parent, child) = (session(1), session(2));
        store.create(&parent, "/p", "first", UnixMillis(5)).await.unwrap();
        let entries = vec![note("a", 30), event("b", 20), note("c", 90)];
        store.append(&parent, Seq::START, entries).await.unwrap();
        store.acquire_lease(&parent, "me", UnixMillis(5), 1_000).await.unwrap();
        store.set_status(&parent, "done", UnixMillis(6)).await.unwrap();
        store.fork(&parent, Seq(2), &child, "second", UnixMillis(10)).await.unwrap();
        let expected = SessionSummary {
            id: child.clone(),
            root: "/p".into(),
            title: "second".into(),
            created: UnixMillis(10),
            updated: UnixMillis(30),
            last: Seq(2),
            status: SESSION_STATUS_READY.into(),
        };
        assert_eq!(store.find_sessions(child.as_str()).await.unwrap(), [expected]);
        let whole = store.read(&parent, Seq::START, 9).await.unwrap();
        assert_eq!(store.read(&child, Seq::START, 9).await.unwrap(), whole[..2]);
        assert_eq!(store.read_records(&child, Seq::START, 9).await.unwrap(), whole[..1]);
        // Neither sees what the other gets, and nobody holds the child.
        store.append(&child, Seq(2), vec![note("d", 1)]).await.unwrap();
        store.append(&parent, Seq(3), vec![note("e", 1)]).await.unwrap();
        assert_eq!(store.read(&child, Seq(2), 9).await.unwrap()[0].payload, b"d");
        assert_eq!(store.read(&parent, Seq(2), 9).await.unwrap(), {
            let mut rest = whole[2..].to_vec();
            rest.extend(store.read(&parent, Seq(3), 9).await.unwrap());
            rest
        });
        store.acquire_lease(&child, "you", UnixMillis(5), 1_000).await.unwrap();
        store.delete(&parent).await.unwrap();
        assert_eq!(store.read(&child, Seq::START, 9).await.unwrap().len(), 3);
    });
}

#[test]
fn a_fork_of_nothing_is_empty_and_one_beyond_the_end_is_refused() {
    over_each(async |store| {
        let fork = async |parent, at, child| {
            store.fork(&session(parent), Seq(at), &session(child), "t", UnixMillis(7)).await
        };
        assert!(
            matches!(fork(1, 0, 2).await, Err(StoreError::UnknownSession { session: id }) if id == session(1))
        );
        store.create(&session(1), "/p", "t", UnixMillis(5)).await.unwrap();
        store.append(&session(1), Seq::START, vec![note("a", 1)]).await.unwrap();
        for at in [2, u64::MAX] {
            match fork(1, at, 2).await.unwrap_err() {
                StoreError::NoSuchEntry { session: id, asked, last } => {
                    assert_eq!((id, asked, last), (session(1), Seq(at), Seq(1)));
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(fork(1, 1, 1).await, Err(StoreError::SessionExists { .. })));
        assert_eq!(store.find_sessions("").await.unwrap().len(), 1);
        fork(1, 0, 2).await.unwrap();
        assert_eq!(store.read(&session(2), Seq::START, 9).await.unwrap(), []);
        store.append(&session(2), Seq::START, vec![note("b", 1)]).await.unwrap();
    });
}

#[test]
fn a_clock_that_is_set_back_locks_nobody_out_for_longer_than_the_lease() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let lease = async |holder, now, ttl| store.acquire_lease(&id, holder, UnixMillis(now), ttl).await;
        lease("pid 1", 1_000_000, 50).await.unwrap();
        match lease("pid 2", 100, 10).await.unwrap_err() {
            StoreError::Leased { until, .. } => assert_eq!(until, UnixMillis(150)),
            other => panic!("{other:?}"),
        }
        assert!(lease("pid 2", 149, 10).await.is_err(), "counted from the first refusal, not from each");
        lease("pid 2", 150, 10).await.unwrap();
        assert!(lease("pid 1", 151, 50).await.is_err());
    });
}

#[test]
fn who_holds_a_session_is_told_for_as_long_as_it_is_held() {
    over_each(async |store| {
        let id = session(1);
        assert!(matches!(
            store.lease_holder(&id, UnixMillis(5)).await.unwrap_err(),
            StoreError::UnknownSession { .. }
        ));
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let holder = async |now| store.lease_holder(&id, UnixMillis(now)).await.unwrap();
        assert_eq!(holder(5).await, None);
        store.acquire_lease(&id, "pid 1", UnixMillis(100), 50).await.unwrap();
        assert_eq!(holder(149).await.as_deref(), Some("pid 1"));
        assert_eq!(holder(150).await, None, "it has run out");
        store.acquire_lease(&id, "pid 2", UnixMillis(150), 50).await.unwrap();
        assert_eq!(holder(150).await.as_deref(), Some("pid 2"), "looking takes nothing");
        store.release_lease(&id, "pid 2").await.unwrap();
        assert_eq!(holder(151).await, None);
    });
}

#[test]
fn a_tail_gives_what_is_there_then_what_comes_in_order_once() {
    over_each(async |store| {
        let id = session(1);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        store.append(&id, Seq::START, vec![note("1", 1), event("2", 1), note("3", 1)]).await.unwrap();
        let follower = async {
            let seen: Vec<u64> =
                follow(store, &id, Seq(1)).take(500).map(|entry| entry.unwrap().seq.0).collect().await;
            assert_eq!(seen, (2..=501).collect::<Vec<_>>());
        };
        let early = async {
            let mut tail = follow(store, &id, Seq(400));
            assert_eq!(tail.next().await.unwrap().unwrap().seq, Seq(401));
        };
        let writer = async {
            let mut last = Seq(3);
            while last < Seq(501) {
                let entries = vec![note("x", 1); (last.0 % 5 + 1) as usize];
                last = store.append(&id, last, entries).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(follower, early, writer);
    });
}

#[test]
fn a_tail_of_a_session_that_is_not_or_no_longer_there_ends_with_an_error() {
    over_each(async |store| {
        let id = session(1);
        let unknown = |found: Option<Result<Entry, StoreError>>| {
            assert!(matches!(found, Some(Err(StoreError::UnknownSession { .. }))), "{found:?}");
        };
        unknown(follow(store, &id, Seq::START).next().await);
        store.create(&id, "/p", "t", UnixMillis(5)).await.unwrap();
        let mut tail = follow(store, &id, Seq::START);
        let (found, deleted) = tokio::join!(tail.next(), store.delete(&id));
        deleted.unwrap();
        unknown(found);
        assert!(tail.next().await.is_none());
    });
}

#[test]
fn of_many_changes_at_once_each_has_its_own_result() {
    over_each(async |store| {
        for number in 0..50 {
            store.create(&session(number), "/p", "t", UnixMillis(5)).await.unwrap();
        }
        let calls: Vec<_> = (0..200)
            .map(|call| {
                // Every fourth is behind, every seventh of a session that isn't there.
                let id = session(if call % 7 == 3 { 900 } else { call % 50 });
                let expected = Seq(if call % 4 == 1 { 99 } else { call / 50 });
                store.append(&id, expected, vec![note(&call.to_string(), 1)])
            })
            .collect();
        let results = futures_util::future::join_all(calls).await;
        let mut lasts = [0; 50];
        for (call, result) in (0..200).zip(results) {
            let last = &mut lasts[(call % 50) as usize];
            match result {
                Err(StoreError::UnknownSession { .. }) => assert_eq!(call % 7, 3),
                Err(StoreError::Conflict { found, .. }) => {
                    assert_eq!(found, Seq(*last));
                    assert!(call % 4 == 1 || *last != call / 50);
                }
                Ok(seq) => {
                    *last += 1;
                    assert_eq!(seq, Seq(*last));
                    let entries = store.read(&session(call % 50), Seq(seq.0 - 1), 1).await.unwrap();
                    assert_eq!(entries[0].payload, call.to_string().into_bytes());
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        for (number, last) in (0..).zip(lasts) {
            assert_eq!(store.read(&session(number), Seq::START, 99).await.unwrap().len() as u64, last);
        }
    });
}

#[derive(Debug, Clone)]
enum Call {
    Fork(u64, u64, u64, u64),
    ReadRecords(u64, u64, usize),
    ReadChunk(u64, u64, usize),
    Create(u64, u64),
    Append(u64, u64, Vec<(u8, u64)>),
    Read(u64, u64, usize),
    Sessions(Option<u64>, usize),
    Find(usize),
    SetStatus(u64, u64),
    Lease(u64, u8, u64, u64),
    Release(u64, u8),
    Delete(u64),
}

fn a_call() -> impl Strategy<Value = Call> {
    let id = 0_u64..3;
    prop_oneof![
        3 => (id.clone(), 0_u64..9).prop_map(|(id, at)| Call::Create(id, at)),
        6 => (id.clone(), 0_u64..6, prop::collection::vec((any::<u8>(), 0_u64..20), 0..3))
            .prop_map(|(id, expected, entries)| Call::Append(id, expected, entries)),
        2 => (id.clone(), 0_u64..6, 0_usize..5).prop_map(|(id, after, limit)| Call::Read(id, after, limit)),
        2 => (id.clone(), 0_u64..6, 0_usize..5).prop_map(|(id, after, limit)| Call::ReadRecords(id, after, limit)),
        1 => (id.clone(), 0_u64..6, 0_usize..300).prop_map(|(id, after, bytes)| Call::ReadChunk(id, after, bytes)),
        2 => (id.clone(), 0_u64..6, id.clone(), 0_u64..30)
            .prop_map(|(parent, at, child, now)| Call::Fork(parent, at, child, now)),
        1 => (prop::option::of(0_u64..3), 0_usize..4).prop_map(|(root, limit)| Call::Sessions(root, limit)),
        1 => (0_usize..18).prop_map(Call::Find),
        1 => (id.clone(), 0_u64..30).prop_map(|(id, at)| Call::SetStatus(id, at)),
        3 => (id.clone(), 0_u8..2, 0_u64..30, 0_u64..20)
            .prop_map(|(id, holder, now, ttl)| Call::Lease(id, holder, now, ttl)),
        1 => (id.clone(), 0_u8..2).prop_map(|(id, holder)| Call::Release(id, holder)),
        1 => id.prop_map(Call::Delete),
    ]
}

/// What a call says, values and errors alike, as one comparable text.
async fn answer(store: &dyn Store, call: &Call) -> String {
    match call.clone() {
        Call::Create(id, at) => {
            let root = format!("/{}", id % 2);
            format!("{:?}", store.create(&session(id), &root, "t", UnixMillis(at)).await)
        }
        Call::Append(id, expected, entries) => {
            let entry = |byte: u8| if byte.is_multiple_of(2) { note } else { event };
            let entries = entries.into_iter().map(|(byte, at)| entry(byte)(&byte.to_string(), at)).collect();
            format!("{:?}", store.append(&session(id), Seq(expected), entries).await)
        }
        Call::Fork(parent, at, child, now) => {
            let fork = store.fork(&session(parent), Seq(at), &session(child), "f", UnixMillis(now));
            format!("{:?}", fork.await)
        }
        Call::ReadRecords(id, after, limit) => {
            format!("{:?}", store.read_records(&session(id), Seq(after), limit).await)
        }
        Call::ReadChunk(id, after, bytes) => {
            format!("{:?}", store.read_chunk(&session(id), Seq(after), bytes).await)
        }
        Call::Read(id, after, limit) => format!("{:?}", store.read(&session(id), Seq(after), limit).await),
        Call::Sessions(root, limit) => {
            let root = root.map(|root| format!("/{root}"));
            format!("{:?}", store.sessions(root.as_deref(), limit).await)
        }
        Call::Find(length) => format!("{:?}", store.find_sessions(&session(1).as_str()[..length]).await),
        Call::SetStatus(id, at) => format!("{:?}", store.set_status(&session(id), "s", UnixMillis(at)).await),
        Call::Lease(id, holder, now, ttl) => {
            format!(
                "{:?}",
                store.acquire_lease(&session(id), &holder.to_string(), UnixMillis(now), ttl).await
            )
        }
        Call::Release(id, holder) => {
            format!("{:?}", store.release_lease(&session(id), &holder.to_string()).await)
        }
        Call::Delete(id) => format!("{:?}", store.delete(&session(id)).await),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_answer_every_sequence_of_calls_alike(calls in prop::collection::vec(a_call(), 1..40)) {
        block_on(async {
            let memory = MemoryStore::new();
            let home = tempfile::tempdir().unwrap();
            let sqlite = SqliteStore::open(&home.path().join("sessions.db")).unwrap();
            for call in &calls {
                assert_eq!(answer(&sqlite, call).await, answer(&memory, call).await, "{call:?} of {calls:?}");
            }
        });
    }
}
