//! Many sessions, and messages between them.

use journeyman_agent::channel::AgentChannel;
use journeyman_agent::session_registry::SessionRegistry;
use journeyman_agent::{AgentError, ChecksSetting, CutOffPolicy, RunSettings, SessionHandle, start};
use journeyman_protocol::{MessageKind, SessionId};

use crate::session::support::bench::{Bench, NOW, auto};
use crate::session::support::model::{Told, says};

cases![case_32_a_pool_is_bounded_and_a_room_reaches_whom_it_names];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

fn session(number: u64) -> SessionId {
    SessionId::new(NOW, number)
}

async fn ask(handle: &SessionHandle, text: &str) -> String {
    handle.send(text).await.unwrap();
    handle.wait_until_finished().await.unwrap().text.clone()
}

async fn case_32_a_pool_is_bounded_and_a_room_reaches_whom_it_names() {
    let bench = Bench::new(&[]);
    let make = |number: u64, told: &std::sync::Arc<Told>| {
        let handle = start(bench.parts(told), settings(), session(number));
        async move { Ok::<_, AgentError>(handle) }
    };
    let [one, two, three] =
        [Told::new([says("1"), says("1 again")]), Told::new([says("2")]), Told::new([says("3")])];
    let pool = SessionRegistry::new(2);
    let first = pool.create("one", || make(1, &one)).await.unwrap();
    let second = pool.create("two", || make(2, &two)).await.unwrap();
    let full = pool.create("three", || make(3, &three)).await.unwrap_err();
    assert!(full.to_string().starts_with("Pool is full"), "{full}");
    assert_eq!(ask(&first, "first").await, "1");

    let room = AgentChannel::new(MessageKind::User);
    room.join("one", first.clone()).unwrap();
    room.join("Zoë", second.clone()).unwrap();
    assert!(room.join("one", second.clone()).is_err());
    assert_eq!(
        room.send_message("one", "hello all").await.unwrap().to,
        ["Zoë"],
        "the sender gets no broadcast"
    );
    assert_eq!(second.wait_until_finished().await.unwrap().text, "2");
    let heard = two.requests()[0].messages.last().unwrap().text();
    assert!(heard.contains("[from:one] hello all"), "{heard}");
    assert_eq!(room.send_message("Zoë", "@one what now?").await.unwrap().to, ["one"]);
    assert_eq!(first.wait_until_finished().await.unwrap().text, "1 again");
    assert_eq!(one.requests()[1].messages.last().unwrap().text(), "[from:Zoë] @one what now?");
    assert!(room.leave("Zoë"));
    assert_eq!(room.send_message("one", "anybody?").await.unwrap().to, Vec::<String>::new());

    // Removing one ends it, and makes channel.
    drop((first, second));
    pool.remove("one").await.unwrap();
    assert_eq!(pool.list(""), ["two"]);
    pool.create("three", || make(3, &three)).await.unwrap();
    // Another registry opens it again, with its history.
    let told = Told::new([says("still here")]);
    let other: SessionRegistry<SessionHandle> = SessionRegistry::new(1);
    let parts = bench.parts(&told);
    let resumed = other
        .resume("one", || journeyman_agent::resume(parts, settings(), session(1), CutOffPolicy::Continue))
        .await
        .unwrap();
    assert_eq!(ask(&resumed, "and?").await, "still here");
    let said: Vec<String> = told.requests()[0].messages.iter().map(|message| message.text()).collect();
    assert!(said[0].contains("first") && said[1] == "1", "{said:?}");
}
