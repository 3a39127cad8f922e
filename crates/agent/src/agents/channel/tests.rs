//! Tests of delivery: which sessions of a channel get which message.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proptest::prelude::*;

use super::mentions::{Mentions, find_mentions};
use super::*;

/// A member that keeps what it is sent, or is gone.
#[derive(Clone, Default)]
struct MemberDouble {
    heard: Arc<Mutex<Vec<(MessageKind, String)>>>,
    gone: bool,
    /// Its queue never takes a message.
    stuck: bool,
}

impl RegisteredSession for MemberDouble {
    type Status = ();

    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            if self.stuck {
                std::future::pending::<()>().await;
            }
            if self.gone {
                return Err(AgentError::Ended);
            }
            self.heard.lock().unwrap().push((kind, text));
            Ok(())
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async { Ok(()) }.boxed()
    }
}

impl MemberDouble {
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(_, text)| text.clone()).collect()
    }
}

fn room(names: &[&str]) -> (AgentChannel<MemberDouble>, Vec<MemberDouble>) {
    let room = AgentChannel::new(MessageKind::User);
    let doubles: Vec<MemberDouble> = names.iter().map(|_| MemberDouble::default()).collect();
    for (name, double) in names.iter().zip(&doubles) {
        room.join(*name, double.clone()).unwrap();
    }
    (room, doubles)
}

async fn said(room: &AgentChannel<MemberDouble>, from: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let delivery = room.send_message(from, text).await.unwrap();
    (delivery.to, delivery.unknown)
}

/// Case 32: the sender gets no broadcast, a mention reaches only whom it names, and who leaves
/// hears nothing.
#[tokio::test]
async fn case_32_broadcast_mention_and_leave() {
    let (room, doubles) = room(&["ann", "bob", "eve"]);
    assert_eq!(said(&room, "ann", "hello all").await.0, ["bob", "eve"]);
    assert_eq!(said(&room, "ann", "@bob only you").await.0, ["bob"]);
    assert!(room.leave("eve"));
    assert!(!room.leave("eve"));
    assert_eq!(said(&room, "bob", "who is here?").await.0, ["ann"]);
    assert_eq!(room.member_names(), ["ann", "bob"]);
    assert_eq!(doubles[0].heard(), ["[from:bob] who is here?"]);
    assert_eq!(doubles[1].heard(), ["[from:ann] hello all", "[from:ann] @bob only you"]);
    assert_eq!(doubles[2].heard(), ["[from:ann] hello all"]);
    assert!(doubles[0].heard.lock().unwrap().iter().all(|(kind, _)| *kind == MessageKind::User));
}

#[tokio::test]
async fn a_mention_of_nobody_is_reported_and_not_told_to_all() {
    let (room, doubles) = room(&["ann", "bob"]);
    assert_eq!(said(&room, "ann", "@bobby, a secret").await, (vec![], vec!["bobby".to_owned()]));
    assert_eq!(doubles[1].heard(), [""; 0]);
    assert_eq!(said(&room, "ann", "@bob and @eve").await, (vec!["bob".to_owned()], vec!["eve".to_owned()]));
}

#[tokio::test]
async fn a_person_who_is_no_member_speaks_to_all_or_to_some() {
    let (room, _) = room(&["ann", "bob"]);
    assert_eq!(said(&room, "user", "hello").await.0, ["ann", "bob"]);
    assert_eq!(said(&room, "user", "@ann hello").await.0, ["ann"]);
    assert_eq!(
        said(&room, "ann", "this is @ann, hello").await.0,
        ["bob"],
        "one's own name counts for nothing"
    );
}

#[tokio::test]
async fn one_who_cannot_be_reached_keeps_nothing_from_the_others() {
    let (room, doubles) = room(&["ann", "bob"]);
    room.join("eve", MemberDouble { gone: true, ..MemberDouble::default() }).unwrap();
    let delivery = room.send_message("ann", "hello").await.unwrap();
    assert_eq!(delivery.to, ["bob"]);
    assert!(matches!(&delivery.failed[..], [(name, AgentError::Ended)] if name == "eve"));
    // One whose queue hangs holds up whoever spoke, not the others.
    room.join("max", MemberDouble { stuck: true, ..MemberDouble::default() }).unwrap();
    assert!(room.send_message("ann", "again").now_or_never().is_none());
    assert_eq!(doubles[1].heard(), ["[from:ann] hello", "[from:ann] again"]);
    assert!(room.send_message("bob", "@ann still there?").now_or_never().is_some());
}

#[test]
fn names_that_could_pass_for_another_or_not_be_mentioned_are_refused() {
    let long = "x".repeat(101);
    for name in ["", " ", " ann", "ann ", "a@b", "ann] [from:bob", "a\nb", "a\u{7}", &long] {
        let refused = AgentChannel::new(MessageKind::User).join(name, MemberDouble::default());
        assert_eq!(refused, Err(ChannelError::Name(name.to_owned())), "{name:?}");
    }
    let (room, _) = room(&["ann"]);
    assert_eq!(room.join("ann", MemberDouble::default()), Err(ChannelError::Taken("ann".to_owned())));
    for name in ["Ann", "小明", "Dr. Müller", "rust-dev", "🦊", "Ирина", "a.b"] {
        assert_eq!(room.join(name, MemberDouble::default()), Ok(()), "{name}");
    }
}

#[test]
fn mentions_table() {
    let names =
        ["bob", "bobby", "bob-2", "小明", "小明明", "Dr. Müller", "Dr.", "철수", "🦊", "Ирина", "ann"];
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("hello", &[], &[]),
        ("@bob", &["bob"], &[]),
        ("@bob @bob", &["bob"], &[]),
        ("(@bob), \"@ann\"!", &["bob", "ann"], &[]),
        ("@bob.", &["bob"], &[]),
        ("@bob's", &["bob"], &[]),
        ("Well.@bob", &["bob"], &[]),
        // The longest that fits.
        ("@bobby", &["bobby"], &[]),
        ("@bob-2: go", &["bob-2"], &[]),
        ("@Dr. Müller, please", &["Dr. Müller"], &[]),
        ("@Dr. Who", &["Dr."], &[]),
        // Unicode, with blanks and without.
        ("请@小明看一下", &["小明"], &[]),
        ("@小明明和@小明", &["小明明", "小明"], &[]),
        ("@bob看一下", &["bob"], &[]),
        ("@철수는 뭐 해?", &["철수"], &[]),
        ("@Ирина, привет", &["Ирина"], &[]),
        ("@🦊 hi", &["🦊"], &[]),
        // Nobody.
        ("@bobb", &[], &["bobb"]),
        ("@bob-3", &[], &["bob-3"]),
        ("@bob.org", &[], &["bob.org"]),
        ("@Bob", &[], &["Bob"]),
        ("@小红,在吗", &[], &["小红"]),
        ("@🐙 hi", &[], &["🐙"]),
        ("@eve. @eve, @ann", &["ann"], &["eve"]),
        // No mentions.
        ("mail bob@ann.org", &[], &[]),
        ("josé@bob", &[], &[]),
        ("a_@bob b+@bob", &[], &[]),
        ("https://example.org/@bob", &[], &[]),
        ("@ bob @, @", &[], &[]),
        ("`@bob` and ``x`@ann``", &[], &[]),
        ("```java\n@Override\n``` @bob", &["bob"], &[]),
        ("a lone ` and @bob", &["bob"], &[]),
    ];
    for (text, known, unknown) in cases {
        let expected = Mentions {
            known: known.iter().map(|name| (*name).to_owned()).collect(),
            unknown: unknown.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(find_mentions(text, names.into_iter()), expected, "{text:?}");
    }
}

/// A text of the worst kind is read in time that grows with its length.
#[test]
fn a_text_full_of_mentions_and_code_is_no_trap() {
    let text: String = (0..100_000).map(|number| format!("`@x{number}` @y{number} ")).collect();
    let found = find_mentions(&text, ["ann"].into_iter());
    assert_eq!((found.known.len(), found.unknown.len()), (0, 100));
}

proptest! {
    /// Whatever names there are, a mention that stands alone reaches exactly the one it names.
    #[test]
    fn every_allowed_name_can_be_mentioned(names in prop::collection::hash_set("\\PC{1,12}", 1..6), pick in any::<prop::sample::Index>()) {
        let names: Vec<String> = names.into_iter().filter(|name| check_name(name).is_ok() && !name.contains('`')).collect();
        prop_assume!(!names.is_empty());
        let name = &names[pick.index(names.len())];
        let found = find_mentions(&format!("so, @{name}"), names.iter().map(String::as_str));
        prop_assert_eq!(found, Mentions { known: vec![name.clone()], unknown: vec![] });
    }

    /// Any text is read without a panic, and what is known is somebody's name.
    #[test]
    fn any_text_can_be_read(text in "([@`a-c小 .\\-]|\\PC){0,60}") {
        let names = ["a", "ab", "小", "a b"];
        let found = find_mentions(&text, names.into_iter());
        prop_assert!(found.known.iter().all(|name| names.contains(&name.as_str())));
        let written = found.unknown.iter().all(|name| text.contains(&["@", name].concat()));
        prop_assert!(written);
    }
}
