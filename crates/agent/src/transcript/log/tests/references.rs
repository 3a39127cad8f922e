//! Text is on disk once, and whole for whoever reads it.

use std::path::Path;

use journeyman_protocol::{Block, CallId, Message, Role, RunOutcome, RunReport, StopReason, ToolUse, Usage};
use serde_json::{Value, json};

use super::store::Fault;
use super::*;

/// A message as a model writes it.
struct Reply {
    text: String,
    thinking: String,
    input: Value,
}

impl Reply {
    fn long() -> Self {
        Self {
            text: "a line of text, \"quoted\"\n".repeat(40),
            thinking: "a thought. ".repeat(50),
            input: json!({"path": "a.rs", "content": "fn main() {}\n".repeat(400)}),
        }
    }

    fn message(&self) -> LogEntry {
        let call = ToolUse {
            id: CallId::new("c1"),
            name: "write_file".into(),
            input: self.input.clone(),
            malformed: None,
            signature: None,
        };
        let content = vec![
            Block::Thinking { text: self.thinking.clone(), signature: Some("proof".into()) },
            Block::text(self.text.clone()),
            Block::ToolUse(call),
        ];
        Record::message(Message { role: Role::Assistant, content }).into()
    }

    fn turn(&self) -> LogEntry {
        let event = Event::TurnFinished {
            turn: 1,
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            text: self.text.clone(),
            thinking: self.thinking.clone(),
        };
        event.into()
    }

    fn call(&self) -> LogEntry {
        let (tool, summary) = ("write_file".to_owned(), "write_file a.rs".to_owned());
        Event::ToolStart { call: CallId::new("c1"), tool, input: self.input.clone(), summary }.into()
    }

    fn done(&self) -> LogEntry {
        let report = RunReport {
            session: session(),
            outcome: RunOutcome::Unverified,
            exit_code: 4,
            summary: "done".into(),
            context_exceeded: false,
            text: self.text.clone(),
            changes: Vec::new(),
            diff: String::new(),
            diffstat: Vec::new(),
            violations: Vec::new(),
            findings: Vec::new(),
            strength: None,
            evidence: Vec::new(),
            tree: None,
            iterations: 0,
            turns: 1,
            usage: Usage::default(),
            cost_usd: None,
            model: "test/model".into(),
            undo: None,
            copy: None,
            commit: None,
            agent: None,
            plan: None,
            candidates: Vec::new(),
            duration_ms: 1,
        };
        Event::Done { report: Box::new(report) }.into()
    }
}

fn event_of(item: LogEntry) -> Event {
    match item {
        LogEntry::Event(event) => *event,
        LogEntry::Record(record) => panic!("{record:?}"),
    }
}

/// Returns the number of times that a text is in the store.
fn times(entries: &[Entry], text: &str) -> usize {
    let text = serde_json::to_string(text).unwrap();
    let text = text.trim_matches('"');
    entries.iter().map(|entry| String::from_utf8_lossy(&entry.payload).matches(text).count()).sum()
}

/// Asserts what subscribers get, live and from the store.
async fn everybody_gets(bench: &Bench, live: &mut Subscription, expected: Vec<Event>) {
    let events = |shown: Vec<Arc<Envelope>>| -> Vec<Event> {
        shown.iter().map(|envelope| envelope.event.clone()).collect()
    };
    assert_eq!(events(drain(live).await), expected, "live");
    assert_eq!(events(drain(&mut bench.subscribe(Since::Seq(Seq::START))).await), expected, "from the store");
    let read = crate::load_events(&*bench.store, &session(), Seq::START, 10_000).await.unwrap();
    assert_eq!(read.into_iter().map(|envelope| envelope.event).collect::<Vec<_>>(), expected, "read");
}

#[tokio::test]
async fn a_long_text_is_written_once_wherever_its_message_is() {
    let reply = Reply::long();
    let events = || vec![reply.turn(), reply.call(), reply.done()];
    let batches: [Vec<Vec<LogEntry>>; 3] = [
        vec![std::iter::once(reply.message()).chain(events()).collect()],
        vec![events().into_iter().chain([reply.message()]).collect()],
        vec![vec![reply.message()], (0..1_000).map(|_| keeps("between")).collect(), events()],
    ];
    for batches in batches {
        let bench = Bench::new().await;
        let mut live = bench.subscribe(Since::Now);
        for batch in batches {
            bench.log.push_and_flush(batch).await.unwrap();
        }
        let entries = bench.entries().await;
        assert_eq!(times(&entries, &reply.text), 1);
        assert_eq!(times(&entries, &reply.thinking), 1);
        assert_eq!(times(&entries, reply.input["content"].as_str().unwrap()), 1);
        everybody_gets(&bench, &mut live, events().into_iter().map(event_of).collect()).await;
    }
}

#[tokio::test]
async fn what_differs_from_the_message_is_written_whole() {
    let reply = Reply::long();
    let mut amended = Reply::long();
    amended.input["path"] = json!("b.rs");
    amended.text.push('!');
    let short = Reply { text: "short".into(), thinking: String::new(), input: json!({"path": "a"}) };
    let bench = Bench::new().await;
    let mut live = bench.subscribe(Since::Now);
    bench.log.push_and_flush(vec![reply.message(), amended.turn(), amended.call()]).await.unwrap();
    bench.log.push_and_flush(vec![short.message(), short.turn(), short.call(), short.done()]).await.unwrap();
    let stored = bench.entries().await.into_iter().filter(|entry| entry.channel.is_some());
    let whole: Vec<bool> =
        stored.map(|entry| !String::from_utf8_lossy(&entry.payload).contains("$from")).collect();
    assert_eq!(whole, [false, true, true, true, true], "only the thinking is the same");
    let expected = [amended.turn(), amended.call(), short.turn(), short.call(), short.done()];
    everybody_gets(&bench, &mut live, expected.into_iter().map(event_of).collect()).await;
}

#[tokio::test]
async fn the_calls_of_the_text_protocol_are_found_too() {
    let reply = Reply::long();
    let LogEntry::Record(message) = reply.message() else { panic!() };
    let Record::Message { mut message, .. } = *message else { panic!() };
    let calls = message.tool_uses().cloned().collect();
    message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
    let record = Record::Message { message, taken: Vec::new(), stop: None, calls };
    let bench = Bench::new().await;
    let mut live = bench.subscribe(Since::Now);
    bench.log.push_and_flush(vec![record.into(), reply.call()]).await.unwrap();
    assert_eq!(times(&bench.entries().await, reply.input["content"].as_str().unwrap()), 1);
    everybody_gets(&bench, &mut live, vec![event_of(reply.call())]).await;
}

#[tokio::test]
async fn a_secret_in_a_long_text_is_masked_wherever_it_is_read() {
    let mut reply = Reply::long();
    reply.text.push_str(SECRET);
    let bench = Bench::new().await;
    bench.log.push_and_flush(vec![reply.message(), reply.turn()]).await.unwrap();
    let shown = drain(&mut bench.subscribe(Since::Seq(Seq::START))).await;
    let Event::TurnFinished { text, .. } = &shown[0].event else { panic!("{shown:?}") };
    assert!(text.starts_with("a line of text") && !text.contains(SECRET) && text.len() > 900);
    assert!(String::from_utf8_lossy(&bench.entries().await[1].payload).contains("$from"));
}

#[tokio::test]
async fn an_offer_that_is_taken_out_takes_no_reference_along() {
    let reply = Reply::long();
    let bench = Bench::new().await;
    let mut live = bench.subscribe(Since::Now);
    bench.store.fail([Fault::Refused]);
    let mut offer = Box::pin(bench.log.write_or_remove(vec![keeps("offered")]));
    assert!(offer.as_mut().now_or_never().is_none());
    bench.log.push(vec![reply.message(), reply.turn()]);
    assert!(offer.await.is_err());
    bench.log.flush().await.unwrap();
    let failed = drain(&mut live).await;
    assert_eq!(words(&failed[0].event), "storage failure, 2 wait");
    assert_eq!(failed.len(), 2);
    let mut again = bench.subscribe(Since::Seq(Seq::START));
    everybody_gets(&bench, &mut again, vec![event_of(reply.turn())]).await;
}

#[tokio::test]
async fn what_was_tried_without_its_message_stays_as_it_was_tried() {
    let reply = Reply::long();
    let bench = Bench::new().await;
    let mut live = bench.subscribe(Since::Now);
    bench.store.fail([Fault::After]);
    bench.store.failing_reads.store(1, std::sync::atomic::Ordering::SeqCst);
    assert!(bench.log.push_and_flush(vec![reply.turn()]).await.is_err());
    // Now it could be shortened, but the store may have it as it was.
    bench.log.push_and_flush(vec![reply.message()]).await.unwrap();
    assert_eq!(bench.entries().await.len(), 2);
    assert_eq!(words(&drain(&mut live).await[0].event), "storage failure, 1 wait");
    let mut again = bench.subscribe(Since::Seq(Seq::START));
    everybody_gets(&bench, &mut again, vec![event_of(reply.turn())]).await;
}

#[tokio::test]
async fn a_reference_to_what_is_not_there_says_so() {
    let reply = Reply::long();
    let bench = Bench::new().await;
    bench.log.push_and_flush(vec![reply.turn(), reply.message()]).await.unwrap();
    // A fork that ends between the two, and goes on.
    let fork = MemoryStore::new();
    fork.create(&session(), "/", "", UnixMillis(1)).await.unwrap();
    let Entry { channel, kind, at, payload, .. } = bench.entries().await[0].clone();
    fork.append(&session(), Seq::START, vec![NewEntry { channel, kind, at, payload }]).await.unwrap();
    for others in [None, Some(Reply { text: "else".repeat(100), ..Reply::long() })] {
        if let Some(other) = others {
            let log = log_over(Arc::new(MemoryStore::new()), Seq(1), SubscriberBufferLimits::default());
            log.push(vec![other.message()]);
            let LogEntry::Record(record) = other.message() else { panic!() };
            let payload = serde_json::to_vec(&record).unwrap();
            let entry = NewEntry { channel: None, kind: "message".into(), at: UnixMillis(1), payload };
            fork.append(&session(), Seq(1), vec![entry]).await.unwrap();
        }
        let read = crate::load_events(&fork, &session(), Seq::START, 10).await.unwrap();
        let Event::TurnFinished { text, .. } = &read[0].event else { panic!("{read:?}") };
        assert_eq!(text, "(kept in entry 2 of the log, which doesn't have it)");
    }
}

#[tokio::test]
async fn events_of_a_newer_version_are_passed_over() {
    let bench = Bench::new().await;
    let entry = |kind: &str, payload: &str| NewEntry {
        channel: Some(Channel::Progress),
        kind: kind.to_owned(),
        at: UnixMillis(1),
        payload: payload.as_bytes().to_vec(),
    };
    let foreign = vec![
        entry("dreamt", r#"{"event":"dreamt","of":"sheep"}"#),
        entry("tool_start", r#"{"event":"tool_start","$from":{"/inputs":{"blob":"b3"}}}"#),
        entry("done", r#"{"event":"done","$from":7}"#),
        entry("turn_started", "not JSON"),
        entry("turn_started", r#"{"event":"turn_started","turn":1,"mood":"good"}"#),
    ];
    bench.store.inner.append(&session(), Seq::START, foreign).await.unwrap();
    let log = log_over(Arc::clone(&bench.store) as _, Seq(5), SubscriberBufferLimits::default());
    let mut events = log.subscribe(EventFilter::all(), Since::Seq(Seq::START));
    log.push_and_flush(vec![says("ours")]).await.unwrap();
    assert_eq!(drained(&mut events).await, ["turn_started", "ours"]);
    assert_eq!(crate::load_events(&*bench.store, &session(), Seq::START, 10).await.unwrap().len(), 2);
}

fn bytes_on_disk(directory: &Path) -> u64 {
    std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// A megabyte of a model's text, streamed word by word, in one message or in many.
#[tokio::test]
async fn a_megabyte_of_streamed_text_takes_at_most_three_on_disk() {
    const MEGABYTE: usize = 1_000_000;
    for messages in [1, 40] {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&directory.path().join("log.db")).unwrap());
        store.create(&session(), "/", "", UnixMillis(1)).await.unwrap();
        let log = log_over(Arc::clone(&store) as _, Seq::START, SubscriberBufferLimits::default());
        let mut live = log.subscribe(EventFilter::all(), Since::Now);
        let line = "The parser reads one token ahead, and says `why` where it can't go on.\n";
        let text = line.repeat(MEGABYTE / messages / line.len() + 1);
        for turn in 1..=messages as u32 {
            log.push_and_flush(vec![Event::TurnStarted { turn }.into()]).await.unwrap();
            log.emit(Event::TextStart { block: 0 });
            let mut offset = 0;
            for word in text.split_inclusive(' ') {
                log.emit(delta(0, offset, word));
                offset += word.len() as u64;
            }
            log.emit(Event::TextEnd { block: 0, text: text.clone() });
            let reply = Reply { text: text.clone(), thinking: String::new(), input: Value::Null };
            log.push_and_flush(vec![reply.message(), reply.turn()]).await.unwrap();
        }
        let reply = Reply { text: text.clone(), thinking: String::new(), input: Value::Null };
        log.push_and_flush(vec![reply.done()]).await.unwrap();
        let open = bytes_on_disk(directory.path());
        let shown = crate::load_events(&*store, &session(), Seq::START, usize::MAX).await.unwrap();
        let texts: Vec<&String> = shown
            .iter()
            .filter_map(|envelope| match &envelope.event {
                Event::TurnFinished { text, .. } => Some(text),
                Event::Done { report } => Some(&report.text),
                _ => None,
            })
            .collect();
        assert_eq!(texts, vec![&text; messages + 1]);
        while live.next().await.unwrap().is_some_and(|envelope| envelope.event.kind() != "done") {}
        drop((log, live));
        drop(Arc::into_inner(store));
        let closed = bytes_on_disk(directory.path());
        println!("{messages} messages: {open} bytes while open, {closed} afterwards");
        assert!(open <= 3 * MEGABYTE as u64 && closed <= 3 * MEGABYTE as u64, "{open}, {closed}");
    }
}
