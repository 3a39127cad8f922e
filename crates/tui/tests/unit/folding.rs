//! The same events give the same blocks, whoever watches and from where.

use journeyman_protocol::{
    CallId, CallState, ContentHash, EditDiff, ErrorPhase, ErrorSeverity, Event, FileChange, FileChangeKind,
    RelPath, RunOutcome, RunReport, Seq, StopReason, Usage,
};
use serde_json::json;

use super::player::{Player, command, done, finished, started, streamed};
use crate::blocks::{Block, BlockEntry};
use crate::conversation_state::RewindCheckpoint;
use crate::status_facts::VerificationState;

const REPLY: &str = "# A title\n\nSome *words* in a paragraph\nof two lines.\n\n- one\n- two\n\n```rust\nfn a() {}\n\n```\nThe end.";

fn entries(events: impl IntoIterator<Item = Event>) -> Vec<BlockEntry> {
    let mut player = Player::new(80, 24);
    events.into_iter().for_each(|event| player.take(event));
    player.conversation.entries().to_vec()
}

fn session(reply: Vec<Event>) -> Vec<Event> {
    [
        vec![started("go on")],
        reply,
        command("c1", "make", "one\ntwo\n"),
        done(journeyman_protocol::RunOutcome::Verified, "verified"),
    ]
    .concat()
}

#[test]
fn a_watched_session_and_its_log_are_the_same_blocks() {
    for size in [1, 7, 1_000] {
        let live = session(streamed(REPLY, size));
        let logged: Vec<Event> = live.iter().filter(|event| !event.is_live_only()).cloned().collect();
        assert_eq!(entries(live), entries(logged), "in pieces of {size}");
    }
}

#[test]
fn whoever_comes_in_the_middle_of_a_reply_gets_it_whole() {
    let live = streamed(REPLY, 5);
    let late = [
        // The text so far comes in one piece, then what follows.
        vec![started("go on"), Event::TextDelta { block: 0, offset: 0, text: REPLY[..40].to_owned() }],
        vec![Event::TextDelta { block: 0, offset: 40, text: REPLY[40..].to_owned() }, finished(REPLY)],
    ];
    assert_eq!(entries(late.concat()), entries([vec![started("go on")], live].concat()));
}

#[test]
fn a_reply_that_lost_pieces_is_shown_whole() {
    let text = "first paragraph\n\nsecond paragraph\n\nthird";
    let delta = |offset: usize, end: usize| Event::TextDelta {
        block: 0,
        offset: offset as u64,
        text: text[offset..end].to_owned(),
    };
    let shown = |events: Vec<Event>| -> Vec<String> {
        let of_entry = |entry: BlockEntry| match entry.block {
            Block::Prose(block) => Some(block.source.trim().to_owned()),
            Block::Lines(_) => Some("(note)".to_owned()),
            _ => None,
        };
        entries(events).into_iter().filter_map(of_entry).collect()
    };
    let whole = ["first paragraph", "second paragraph", "third"].map(str::to_owned).to_vec();
    let lost_end =
        vec![Event::TurnStarted { turn: 1 }, delta(0, 17), Event::Lagged { after: Seq(1) }, finished(text)];
    assert_eq!(shown(lost_end), whole, "what is missing is added");
    let lost_all = vec![Event::TurnStarted { turn: 1 }, finished(text)];
    assert_eq!(shown(lost_all), whole);
    let lost_middle = vec![Event::TurnStarted { turn: 1 }, delta(0, 17), delta(35, 40), finished(text)];
    assert_eq!(shown(lost_middle), whole);
}

#[test]
fn a_reply_that_begins_again_is_not_mixed_with_the_first() {
    let retry = Event::Retry { attempt: 2, of: 3, wait_ms: 10, reason: "the connection broke".to_owned() };
    let broken = vec![
        Event::TurnStarted { turn: 1 },
        Event::TextDelta { block: 0, offset: 0, text: "half a wo".to_owned() },
        retry,
    ];
    let again = streamed("the whole reply", 4).split_off(1);
    let texts: Vec<String> = entries([broken, again].concat())
        .into_iter()
        .map(|entry| match entry.block {
            Block::Prose(block) => block.source.trim().to_owned(),
            _ => "(the retry)".to_owned(),
        })
        .collect();
    assert_eq!(texts, ["half a wo", "(the retry)", "the whole reply"]);
}

#[test]
fn a_reply_that_was_cut_off_keeps_what_was_shown() {
    let cut = Event::TurnFinished {
        turn: 1,
        stop: StopReason::Cancelled,
        usage: Usage::default(),
        text: "a reply that".to_owned(),
        thinking: String::new(),
    };
    let events = vec![
        Event::TurnStarted { turn: 1 },
        Event::TextDelta { block: 0, offset: 0, text: "a reply that was".to_owned() },
        cut,
    ];
    let prose = entries(events).into_iter().filter(|entry| matches!(entry.block, Block::Prose(_))).count();
    assert_eq!(prose, 1);
}

/// The end of a run with this report.
fn ended(outcome: RunOutcome, summary: &str, change: impl Fn(&mut RunReport)) -> Vec<Event> {
    let mut events = done(outcome, summary);
    for event in &mut events {
        if let Event::Done { report } = event {
            change(report);
        }
    }
    events
}

#[test]
fn what_checks_proved_holds_for_no_other_tree() {
    let (checked, other) = (ContentHash::of(b"checked"), ContentHash::of(b"other"));
    let mut player = Player::new(80, 24);
    let kind = FileChangeKind::Modified;
    let verified = ended(RunOutcome::Verified, "verified", |report| {
        report.changes = vec![FileChange { path: RelPath::parse("a.txt").unwrap(), kind }];
        report.tree = Some(checked);
    });
    player.play([vec![started("go on")], verified].concat());
    let proof = |player: &Player| player.conversation.facts().proof;
    assert_eq!(proof(&player), VerificationState::Verified);
    for (now, expected) in [(other, VerificationState::Unverified), (checked, VerificationState::Verified)] {
        player.conversation.compare_tree(now);
        assert_eq!(proof(&player), expected);
    }
    player.take(started("more"));
    player.conversation.compare_tree(other);
    assert_eq!(proof(&player), VerificationState::Verified, "a run that goes on changes files itself");
}

#[test]
fn the_error_that_ended_a_run_is_told_once() {
    let (severity, phase) = (ErrorSeverity::Error, ErrorPhase::Model);
    let error = |message: &str| Event::Error { severity, phase, message: message.to_owned() };
    let told = |last: &str| {
        let end = ended(RunOutcome::Error, "no connection", |_| {});
        let reports = entries([vec![started("go on"), error(last)], end].concat());
        reports.into_iter().find_map(|entry| match entry.block {
            Block::Report(report) => Some(report.summary),
            _ => None,
        })
    };
    assert_eq!(told("no connection").as_deref(), Some(""));
    assert_eq!(told("another one").as_deref(), Some("no connection"));
}

#[test]
fn an_empty_answer_is_not_passed_over() {
    let has_report = |text: &str| {
        let end = ended(RunOutcome::Unverified, "nothing changed", |report| report.text = text.to_owned());
        let blocks = entries([vec![started("go on")], end].concat());
        blocks.iter().any(|entry| matches!(entry.block, Block::Report(_)))
    };
    assert!(has_report(""));
    assert!(!has_report("It is so."));
}

#[test]
fn messages_that_join_a_run_stand_where_they_were_read() {
    let joined = Event::MessageJoined { text: "and the tests".to_owned() };
    let events = [vec![started("go on")], streamed("one", 1), vec![joined], streamed("two", 1)].concat();
    let kinds: Vec<&str> = entries(events)
        .iter()
        .map(|entry| match entry.block {
            Block::Message(_) => "message",
            Block::Prose(_) => "prose",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["message", "prose", "message", "prose"]);
}

#[test]
fn a_file_that_is_written_again_is_its_difference() {
    let call = CallId::new("c1");
    let input = json!({"path": "a.txt", "content": "one\ntwo\nTHREE\n"});
    let write = |kind: FileChangeKind, diff: Option<EditDiff>| {
        let change = FileChange { path: RelPath::parse("a.txt").unwrap(), kind };
        let mut player = Player::new(80, 24);
        player.play([
            started("go on"),
            Event::ToolStart {
                call: call.clone(),
                tool: "write_file".to_owned(),
                input: input.clone(),
                summary: "write a.txt".to_owned(),
            },
            Event::FileEdited { call: call.clone(), change, diff },
            Event::ToolEnd {
                call: call.clone(),
                tool: "write_file".to_owned(),
                state: CallState::Completed,
                preview: String::new(),
                duration_ms: 1,
                output_lines: None,
            },
        ]);
        let rows = player.finished.iter().skip_while(|row| !row.contains("write a.txt"));
        rows.cloned().collect::<Vec<_>>()
    };
    let text = "--- a/a.txt\n+++ b/a.txt\n@@ -2,2 +2,2 @@\n two\n-three\n+THREE\n".to_owned();
    let difference = EditDiff { added: 1, removed: 1, text };
    assert_eq!(
        write(FileChangeKind::Modified, Some(difference)),
        ["● write a.txt  +1 −1", "  2  two", "  3 -three", "  3 +THREE"]
    );
    // A log of an earlier version doesn't say what was there.
    assert_eq!(write(FileChangeKind::Modified, None), ["● write a.txt", "    ~ a.txt"]);
    assert_eq!(
        write(FileChangeKind::Added, None),
        ["● write a.txt  +3 −0", "     1 +one", "     2 +two", "     3 +THREE"]
    );
}

#[test]
fn the_checkpoint_before_a_message_is_the_next_of_its_tree() {
    let mut player = Player::new(80, 24);
    let isolated = Event::Isolated { tier: "overlay".to_owned(), unavailable: Vec::new(), reopened: false };
    let checkpoint = |id| Event::Checkpoint { id, label: "before the run".to_owned(), step: None };
    player.play([
        started("a change"),
        isolated.clone(),
        checkpoint(4),
        started("a change in the next copy"),
        isolated,
        checkpoint(2),
        started("a question"),
        started("another change"),
        checkpoint(7),
        started("another question"),
    ]);
    let found: Vec<RewindCheckpoint> = player
        .conversation
        .rewind_points()
        .iter()
        .map(|turning| player.conversation.checkpoint_before(turning))
        .collect();
    use RewindCheckpoint::{At, NothingSince, OtherTree};
    assert_eq!(found, [OtherTree, At(2), At(7), At(7), NothingSince]);
}
