//! Sessions carried from one store to another.

use std::fs;
use std::future::ready;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryStreamExt as _};
use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use journeyman_store::{
    Entry, ImportAs, ImportedSessions, MemoryStore, NewEntry, NewSession, SESSION_STATUS_IMPORTING,
    SqliteStore, Store, StoreError, export, export_file, import,
};
use journeyman_testkit::forward_store_methods;
use support::{block_on, entry, session};

use crate::support;

/// Payloads of every sort, and what becomes of each in its line.
fn payloads() -> Vec<(Vec<u8>, &'static str)> {
    vec![
        (b"{\"a\":1,\"a\":2.50,\"b\":[true,null]}".to_vec(), r#""payload":{"a":1,"a":2.50,"b":[true,null]}"#),
        (b"{ \"a\" : 1e3 }".to_vec(), r#""payload":{ "a" : 1e3 }"#),
        (b"null".to_vec(), r#""payload":null"#),
        (b"17".to_vec(), r#""payload":17"#),
        (b"\"\\u00e9\"".to_vec(), r#""payload":"\u00e9""#),
        (b"{\n}".to_vec(), r#""text":"{\n}""#),
        (b" {}".to_vec(), r#""text":" {}""#),
        (b"not json".to_vec(), r#""text":"not json""#),
        (Vec::new(), r#""text":"""#),
        ("ein Wört\0 \u{2028}".as_bytes().to_vec(), "\"text\":\"ein Wört\\u0000 \u{2028}\""),
        (vec![0, 255, 10], r#""base64":"AP8K""#),
    ]
}

async fn fill(store: &dyn Store) -> Vec<Entry> {
    store.create(&session(1), "/home/me/«p»", "fix \"it\"", UnixMillis(5)).await.unwrap();
    let channels = [None, Some(Channel::Progress), Some(Channel::Control), Some(Channel::Monitor)];
    let entries = payloads().into_iter().zip(channels.into_iter().cycle()).zip(1..);
    let entries = entries.map(|(((payload, _), channel), at)| NewEntry {
        channel,
        kind: "some_kind".into(),
        at: UnixMillis(at),
        payload,
    });
    store.append(&session(1), Seq::START, entries.collect()).await.unwrap();
    store.set_status(&session(1), "done", UnixMillis(77)).await.unwrap();
    store.read(&session(1), Seq::START, 99).await.unwrap()
}

async fn text_of(store: &dyn Store, id: &SessionId) -> String {
    let items: Vec<Vec<u8>> = export(store, id, &[]).try_collect().await.unwrap();
    String::from_utf8(items.concat()).unwrap()
}

async fn import_text(store: &dyn Store, text: &str, name: ImportAs) -> Result<SessionId, StoreError> {
    let imported = import_with_members(store, text, name).await?;
    assert_eq!(imported.members, []);
    Ok(imported.session)
}

async fn import_with_members(
    store: &dyn Store,
    text: &str,
    name: ImportAs,
) -> Result<ImportedSessions, StoreError> {
    import(store, &mut text.as_bytes(), name, None, UnixMillis(1_000)).await
}

fn over_each(case: impl AsyncFn(&dyn Store)) {
    block_on(async {
        case(&MemoryStore::new()).await;
        let home = tempfile::tempdir().unwrap();
        case(&SqliteStore::open(&home.path().join("sessions.db")).unwrap()).await;
    });
}

#[test]
fn each_line_is_as_documented() {
    over_each(async |store| {
        fill(store).await;
        let text = text_of(store, &session(1)).await;
        let lines: Vec<&str> = text.lines().collect();
        let id = session(1);
        assert_eq!(
            lines[0],
            format!(
                r#"{{"format":"journeyman-session","version":1,"id":"{id}","root":"/home/me/«p»","title":"fix \"it\"","created":5,"updated":77,"status":"done","last":11}}"#
            )
        );
        let channels = ["", r#""channel":"progress","#, r#""channel":"control","#, r#""channel":"monitor","#];
        for (((_, payload), channel), seq) in payloads().iter().zip(channels.iter().cycle()).zip(1_usize..) {
            let expected = format!(r#"{{"seq":{seq},{channel}"kind":"some_kind","at":{seq},{payload}}}"#);
            assert_eq!(lines[seq], expected);
        }
        assert_eq!(lines.len(), 12);
        for line in lines {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    });
}

#[test]
fn what_is_exported_comes_back_byte_for_byte() {
    over_each(async |store| {
        let entries = fill(store).await;
        let before = store.find_sessions("").await.unwrap();
        let text = text_of(store, &session(1)).await;
        let copy = import_text(store, &text, ImportAs::Copy(session(2))).await.unwrap();
        assert_eq!(copy, session(2));
        assert_eq!(store.read(&copy, Seq::START, 99).await.unwrap(), entries);
        let records: Vec<_> = entries.iter().filter(|entry| entry.channel.is_none()).cloned().collect();
        assert_eq!(store.read_records(&copy, Seq::START, 99).await.unwrap(), records);
        store.delete(&session(1)).await.unwrap();
        store.delete(&session(2)).await.unwrap();
        assert_eq!(import_text(store, &text, ImportAs::Itself).await.unwrap(), session(1));
        assert_eq!(store.find_sessions("").await.unwrap(), before);
        assert_eq!(text_of(store, &session(1)).await, text);
        // Nobody holds it.
        store.acquire_lease(&session(1), "me", UnixMillis(1), 10).await.unwrap();
        assert!(matches!(
            import_text(store, &text, ImportAs::Itself).await,
            Err(StoreError::SessionExists { .. })
        ));
    });
}

#[test]
fn an_empty_and_a_long_session_go_through_too() {
    over_each(async |store| {
        store.create(&session(1), "/p", "t", UnixMillis(5)).await.unwrap();
        let text = text_of(store, &session(1)).await;
        assert_eq!(text.lines().count(), 1);
        import_text(store, &text, ImportAs::Copy(session(2))).await.unwrap();
        let mut last = Seq::START;
        for _ in 0..30 {
            last = store.append(&session(1), last, vec![entry(&[b'x'; 9_000]); 11]).await.unwrap();
        }
        let items: Vec<Vec<u8>> = export(store, &session(1), &[]).try_collect().await.unwrap();
        assert!(items.len() > 5 && items.iter().all(|item| item.len() < 300_000));
        let text = String::from_utf8(items.concat()).unwrap();
        import_text(store, &text, ImportAs::Copy(session(3))).await.unwrap();
        let all = store.read(&session(1), Seq::START, 999).await.unwrap();
        assert_eq!(store.read(&session(3), Seq::START, 999).await.unwrap(), all);
    });
}

#[test]
fn what_is_no_whole_export_is_refused_by_its_line_and_leaves_nothing() {
    over_each(async |store| {
        fill(store).await;
        let text = text_of(store, &session(1)).await;
        store.delete(&session(1)).await.unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let with = |number: usize, line: &str| {
            let mut lines = lines.clone();
            lines[number] = line;
            lines.join("\n")
        };
        let cases: Vec<(String, u64, &str)> = vec![
            (String::new(), 1, "nothing in it"),
            ("\n\n{".into(), 3, "EOF"),
            ("# Notes".into(), 1, "expected"),
            (with(0, r#"{"format":"tar","version":1}"#), 1, "should be journeyman-session"),
            (with(0, r#"{"format":"journeyman-session","version":3}"#), 1, "use a newer one"),
            (with(0, r#"{"format":"journeyman-session","version":1}"#), 1, "missing field"),
            (with(0, &lines[0].replace(session(1).as_str(), "../../etc/passwd00")), 1, "not a session id"),
            (with(3, ""), 5, "it is entry 4, and entry 3 should be here"),
            (with(3, lines[2]), 4, "it is entry 2, and entry 3"),
            (with(4, &lines[4][..20]), 5, "EOF"),
            (with(4, r#"{"seq":4,"kind":"k","at":1}"#), 5, "one of `payload`, `text` and `base64`"),
            (with(4, r#"{"seq":4,"kind":"k","at":1,"text":"","payload":1}"#), 5, "one of"),
            (with(4, r#"{"seq":4,"kind":"k","at":1,"base64":"?"}"#), 5, "Invalid"),
            (with(4, r#"{"seq":4,"kind":"k","at":1,"channel":"loud","text":""}"#), 5, "unknown variant"),
            (lines[..5].join("\n"), 6, "entries end with 4, and the first line says 11"),
            (
                format!("{text}{}", lines[11].replace("\"seq\":11", "\"seq\":12")),
                13,
                "more than the first line says",
            ),
        ];
        for (text, line, part) in cases {
            match import_text(store, &text, ImportAs::Itself).await.unwrap_err() {
                StoreError::BadExport { line: said, detail } => {
                    assert!(said == line && detail.contains(part), "{said}: {detail}, not {line}: {part}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(store.find_sessions("").await.unwrap(), []);
        }
        // Blank lines and fields of later versions don't matter.
        let text = with(4, &format!("\n{}", lines[4].replace("\"at\"", "\"new\":[1],\"at\"")));
        import_text(store, &text, ImportAs::Itself).await.unwrap();
    });
}

#[test]
fn an_import_that_was_killed_is_begun_afresh() {
    over_each(async |store| {
        fill(store).await;
        let text = text_of(store, &session(1)).await;
        store.delete(&session(1)).await.unwrap();
        store.create(&session(1), "/p", "t", UnixMillis(5)).await.unwrap();
        store.append(&session(1), Seq::START, vec![entry(b"half")]).await.unwrap();
        store.set_status(&session(1), SESSION_STATUS_IMPORTING, UnixMillis(5)).await.unwrap();
        // While the other import lives it is left alone.
        store.acquire_lease(&session(1), "an import", UnixMillis(999), 10).await.unwrap();
        let error = import_text(store, &text, ImportAs::Itself).await.unwrap_err();
        assert!(matches!(error, StoreError::Leased { .. }), "{error:?}");
        store.release_lease(&session(1), "an import").await.unwrap();
        import_text(store, &text, ImportAs::Itself).await.unwrap();
        assert_eq!(text_of(store, &session(1)).await, text);
    });
}

/// A store with something that happens right before a call, as by another process.
struct Interposed<'a> {
    inner: &'a dyn Store,
    before_lease: Mutex<Option<BoxFuture<'a, Result<(), StoreError>>>>,
    before_append: Mutex<Option<BoxFuture<'a, ()>>>,
    /// The statuses that are set before it ends.
    statuses: Mutex<usize>,
    deletes: bool,
}

impl<'a> Interposed<'a> {
    fn new(inner: &'a dyn Store) -> Self {
        let (before_lease, before_append) = (Mutex::default(), Mutex::default());
        Self { inner, before_lease, before_append, statuses: Mutex::new(usize::MAX), deletes: true }
    }
}

impl Store for Interposed<'_> {
    forward_store_methods!(inner: create, fork, read, read_records, read_chunk, wait_for_entry, sessions, find_sessions, release_lease);

    fn create_with_entries(&self, new: NewSession) -> BoxFuture<'_, Result<Seq, StoreError>> {
        self.inner.create_with_entries(new)
    }

    fn append(
        &self,
        session: &SessionId,
        expected: Seq,
        entries: Vec<NewEntry>,
    ) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let (before, session) = (self.before_append.lock().unwrap().take(), session.clone());
        async move {
            if let Some(before) = before {
                before.await;
            }
            self.inner.append(&session, expected, entries).await
        }
        .boxed()
    }

    fn acquire_lease(
        &self,
        session: &SessionId,
        holder: &str,
        now: UnixMillis,
        ttl_ms: u64,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let before = self.before_lease.lock().unwrap().take();
        let (session, holder) = (session.clone(), holder.to_owned());
        async move {
            if let Some(before) = before {
                before.await?;
            }
            self.inner.acquire_lease(&session, &holder, now, ttl_ms).await
        }
        .boxed()
    }

    fn set_status(
        &self,
        session: &SessionId,
        status: &str,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut left = self.statuses.lock().unwrap();
        let Some(less) = left.checked_sub(1) else { return ready(Err(ended())).boxed() };
        *left = less;
        self.inner.set_status(session, status, now)
    }

    fn lease_holder(
        &self,
        session: &SessionId,
        now: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        self.inner.lease_holder(session, now)
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.deletes { self.inner.delete(session) } else { ready(Err(ended())).boxed() }
    }
}

/// What a call gets after the end of everything.
fn ended() -> StoreError {
    StoreError::Closed { path: "sessions.db".into(), detail: "it was killed".to_owned() }
}

#[test]
fn an_import_that_was_killed_at_its_beginning_is_begun_afresh() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    block_on(async {
        let store = SqliteStore::open(&path).unwrap();
        fill(&store).await;
        let text = text_of(&store, &session(1)).await;
        store.delete(&session(1)).await.unwrap();
        let killed = Interposed { deletes: false, ..Interposed::new(&store) };
        *killed.before_lease.lock().unwrap() = Some(ready(Err(ended())).boxed());
        import_text(&killed, &text, ImportAs::Itself).await.unwrap_err();
        drop(killed);
        // Its lease ends with its process.
        drop(store);
        let store = SqliteStore::open(&path).unwrap();
        import_text(&store, &text, ImportAs::Itself).await.unwrap();
        assert_eq!(text_of(&store, &session(1)).await, text);
    });
}

#[test]
fn a_session_whose_import_ends_meanwhile_is_not_replaced() {
    over_each(async |store| {
        fill(store).await;
        let text = text_of(store, &session(1)).await;
        store.set_status(&session(1), SESSION_STATUS_IMPORTING, UnixMillis(5)).await.unwrap();
        let late = Interposed::new(store);
        let ends = async { store.set_status(&session(1), "done", UnixMillis(77)).await };
        *late.before_lease.lock().unwrap() = Some(ends.boxed());
        let cut_off = text.lines().take(3).collect::<Vec<_>>().join("\n");
        let error = import_text(&late, &cut_off, ImportAs::Itself).await.unwrap_err();
        assert!(matches!(error, StoreError::SessionExists { .. }), "{error:?}");
        assert_eq!(text_of(store, &session(1)).await, text);
        assert_eq!(store.lease_holder(&session(1), UnixMillis(1_000)).await.unwrap(), None);
    });
}

#[test]
fn an_import_whose_time_was_over_leaves_alone_what_another_put_in_its_place() {
    over_each(async |store| {
        fill(store).await;
        let text = text_of(store, &session(1)).await;
        store.delete(&session(1)).await.unwrap();
        let slow = Interposed::new(store);
        let other = async {
            let hours_later = UnixMillis(10_000_000);
            import(store, &mut text.as_bytes(), ImportAs::Itself, None, hours_later).await.unwrap();
        };
        *slow.before_append.lock().unwrap() = Some(other.boxed());
        let error = import_text(&slow, &text, ImportAs::Itself).await.unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error:?}");
        assert_eq!(text_of(store, &session(1)).await, text);
    });
}

#[test]
fn a_session_that_is_replaced_while_it_is_exported_is_not_exported_in_part() {
    over_each(async |store| {
        fill(store).await;
        let mut items = export(store, &session(1), &[]);
        assert!(items.try_next().await.unwrap().is_some(), "the first line");
        // As by another process that deletes it, and is about to import it.
        store.delete(&session(1)).await.unwrap();
        store.create(&session(1), "/p", "t", UnixMillis(5)).await.unwrap();
        let rest: Result<Vec<Vec<u8>>, StoreError> = items.try_collect().await;
        assert!(matches!(rest, Err(StoreError::NoSuchEntry { .. })), "{rest:?}");
    });
}

#[test]
fn an_exported_file_is_private_whole_and_never_replaces_another() {
    over_each(async |store| {
        fill(store).await;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("session.jsonl");
        let error = export_file(store, &session(9), &[], &path).await.unwrap_err();
        assert!(matches!(error, StoreError::UnknownSession { .. }), "{error:?}");
        export_file(store, &session(1), &[], &path).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text_of(store, &session(1)).await);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let error = export_file(store, &session(1), &[], &path).await.unwrap_err();
        assert!(error.to_string().contains("exists"), "{error}");
        let error = export_file(store, &session(1), &[], &home.path().join("no/such")).await.unwrap_err();
        assert!(error.to_string().contains("no/such"), "{error}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    });
}

/// Two sessions whose entries name each other.
async fn fill_pair(store: &dyn Store) {
    for (id, other) in [(1, 2), (2, 1)] {
        store.create(&session(id), "/p", "t", UnixMillis(5)).await.unwrap();
        let payload = format!("{{\"other\":\"{}\",\"own\":\"{}\"}}", session(other), session(id));
        store.append(&session(id), Seq::START, vec![entry(payload.as_bytes()); 2]).await.unwrap();
    }
}

async fn pair_text(store: &dyn Store) -> String {
    let items: Vec<Vec<u8>> = export(store, &session(1), &[session(2)]).try_collect().await.unwrap();
    String::from_utf8(items.concat()).unwrap()
}

#[test]
fn a_session_takes_along_those_that_belong_to_it() {
    over_each(async |store| {
        fill_pair(store).await;
        let text = pair_text(store).await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6);
        let begin = r#"{"format":"journeyman-session","version":2,"#;
        let members = format!(r#""members":["{}"]}}"#, session(2));
        assert!(lines[0].starts_with(begin) && lines[0].ends_with(&members), "{}", lines[0]);
        let copy = import_with_members(store, &text, ImportAs::Copy(session(3))).await.unwrap();
        let [member] = &copy.members[..] else { panic!("{copy:?}") };
        for (id, other) in [(&copy.session, member), (member, &copy.session)] {
            let entries = store.read(id, Seq::START, 9).await.unwrap();
            let payload = format!("{{\"other\":\"{other}\",\"own\":\"{id}\"}}");
            assert_eq!(entries.len(), 2);
            assert!(entries.iter().all(|entry| entry.payload == payload.as_bytes()), "{entries:?}");
        }
        for id in [1, 2] {
            store.delete(&session(id)).await.unwrap();
        }
        let own = import_with_members(store, &text, ImportAs::Itself).await.unwrap();
        assert_eq!(own, ImportedSessions { session: session(1), members: vec![session(2)] });
        assert_eq!(pair_text(store).await, text);
    });
}

#[test]
fn a_session_without_one_that_belongs_to_it_is_refused_and_leaves_nothing() {
    over_each(async |store| {
        fill_pair(store).await;
        let text = pair_text(store).await;
        let lines: Vec<&str> = text.lines().collect();
        for id in [1, 2] {
            store.delete(&session(id)).await.unwrap();
        }
        let (first, second) = (session(1), session(2));
        let cases = [
            (lines[..3].join("\n"), 4, format!("session {second} is missing")),
            (lines[..5].join("\n"), 6, "entries end with 1".to_owned()),
            (
                text.replacen(&format!("[\"{second}\"]"), &format!("[\"{}\"]", session(3)), 1),
                4,
                "should be here".to_owned(),
            ),
            (
                text.replacen(&format!("[\"{second}\"]"), &format!("[\"{first}\"]"), 1),
                1,
                "a session twice".to_owned(),
            ),
            (text.replacen(&format!(",\"members\":[\"{second}\"]"), "", 1), 4, "more than".to_owned()),
        ];
        for (text, line, part) in cases {
            match import_with_members(store, &text, ImportAs::Itself).await.unwrap_err() {
                StoreError::BadExport { line: said, detail } => {
                    assert!(said == line && detail.contains(&part), "{said}: {detail}, not {line}: {part}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(store.find_sessions("").await.unwrap(), []);
        }
    });
}

#[test]
fn an_import_that_was_killed_at_its_end_is_begun_afresh_with_what_belongs_to_it() {
    over_each(async |store| {
        fill_pair(store).await;
        let text = pair_text(store).await;
        for completed in 0..2 {
            for id in [1, 2] {
                store.delete(&session(id)).await.unwrap();
            }
            let killed =
                Interposed { statuses: Mutex::new(completed), deletes: false, ..Interposed::new(store) };
            import_with_members(&killed, &text, ImportAs::Itself).await.unwrap_err();
            // The leases end with the process.
            for id in [1, 2] {
                let holder = store.lease_holder(&session(id), UnixMillis(1_000)).await.unwrap().unwrap();
                store.release_lease(&session(id), &holder).await.unwrap();
            }
            import_with_members(store, &text, ImportAs::Itself).await.unwrap();
            assert_eq!(pair_text(store).await, text);
        }
        // A member that went its own way meanwhile is no part of it.
        store.append(&session(2), Seq(2), vec![entry(b"more")]).await.unwrap();
        store.set_status(&session(1), SESSION_STATUS_IMPORTING, UnixMillis(5)).await.unwrap();
        let error = import_with_members(store, &text, ImportAs::Itself).await.unwrap_err();
        assert!(matches!(error, StoreError::SessionExists { .. }), "{error:?}");
        assert_eq!(store.read(&session(2), Seq::START, 9).await.unwrap().len(), 3);
    });
}
