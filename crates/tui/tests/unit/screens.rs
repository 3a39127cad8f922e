//! Screens of scripted sessions, held against `tests/screens`. `UPDATE_SCREENS=1` writes them anew,
//! to be read before they are committed.

use std::path::Path;

use crossterm::event::{KeyCode, KeyModifiers};
use journeyman_protocol::{
    CallId, CallState, CompressionMethod, CompressionPhase, CompressionReason, Envelope, ErrorPhase,
    ErrorSeverity, Event, RunOutcome, Seq, StopReason, Termination, Todo, TodoStatus, Tokens, UnixMillis,
    Usage,
};
use journeyman_terminal::{Style, StyledLine};
use serde_json::json;

use crate::alt_screen::AltScreen;
use crate::screen::{Frame, Reflow, Screen, Size};
use crate::theme::{BackgroundBrightness, ColorDepth, Theme};

use super::player::{
    Player, agent_finished, agent_started, asked, call_ended, call_started, checked, command, decided, done,
    edited, finished, of_agent, started, streamed, task_started, tokens_used,
};

/// The sizes of terminals: the smallest that is supported, the usual one, a large one.
const SIZES: [(usize, usize); 3] = [(40, 10), (80, 24), (200, 60)];

const TABLE: &str = "Three ways:\n\n| way | cost | verdict |\n|:--|--:|---|\n| hash the whole file again and again | high | no |\n| keep the size and the time | low | **yes** |\n";

fn todo(title: &str, status: TodoStatus) -> Todo {
    let (created, updated) = (UnixMillis(0), UnixMillis(0));
    Todo {
        id: title.to_owned(),
        title: title.to_owned(),
        status,
        assignee: None,
        notes: None,
        created,
        updated,
    }
}

fn unfinished(text: &str) -> Vec<Event> {
    let mut events = streamed(text, 6);
    events.truncate(events.len() - 2);
    events
}

fn edit(state: CallState) -> Vec<Event> {
    let input = json!({"path": "src/lib.rs", "search": "fn one() -> u32 {\n    1\n}", "replace": "fn one() -> u32 {\n    // Counted from zero.\n    0\n}"});
    vec![
        call_started("e1", "edit_file", input, "edit src/lib.rs"),
        edited("e1", "src/lib.rs"),
        call_ended(
            "e1",
            "edit_file",
            state,
            "edited src/lib.rs\n 10  fn one() -> u32 {\n 11      // Counted from zero.",
            None,
        ),
    ]
}

/// A named session: its events, and the keys that are pressed afterwards.
fn sessions() -> Vec<(&'static str, Vec<Event>, &'static str)> {
    let task = || vec![started("make the counter begin at zero")];
    let long: String = (0..40)
        .map(|place| format!("Paragraph {place} has some words that fill a line or two of it.\n\n"))
        .collect();
    let cut = Event::TurnFinished {
        turn: 1,
        stop: StopReason::Cancelled,
        usage: Usage::default(),
        text: "I was about to say something that".to_owned(),
        thinking: String::new(),
    };
    let many: String = (1..=10_000).map(|line| format!("line {line} of the output\n")).collect();
    vec![
        ("nothing-yet", vec![], ""),
        ("a-message-is-written", vec![], "fix the counter, which begins at one although everything else in this project counts from zero"),
        ("streaming", [task(), unfinished("I'll look at the counter first, because the *tests* say")].concat(), ""),
        ("a-long-reply", [task(), streamed(&long, 50)].concat(), ""),
        ("a-table", [task(), streamed(TABLE, 11)].concat(), ""),
        ("code-and-lists", [task(), streamed("## How\n\n1. Read it.\n2. Change `one`:\n\n```rust\nfn one() -> u32 {\n    0\n}\n```\n\n> quoted\n\n- [x] done", 7)].concat(), ""),
        ("wide-characters", [task(), streamed("漢字と絵文字 👍 が混ざった文章。終わり。\n\n- ключ 🔑\n- ёлка", 3)].concat(), "漢字👍"),
        ("thinking", [task(), vec![Event::ThinkingStart { block: 0 }, Event::ThinkingDelta { block: 0, offset: 0, text: "The counter begins at one. Everything else counts from zero, so the change is small, but its users have to be looked at too.\nThen the tests.".to_owned() }]].concat(), ""),
        ("an-edit", [task(), edit(CallState::Completed)].concat(), ""),
        ("a-failed-edit", [task(), vec![call_started("e1", "edit_file", json!({"path": "a.rs", "search": "x", "replace": "y"}), "edit a.rs"), call_ended("e1", "edit_file", CallState::Failed, "`x` occurs 3 times in a.rs; give more of its lines", None)]].concat(), ""),
        ("a-command-runs", [task(), vec![call_started("c1", "run_command", json!({"command": "cargo test"}), "run cargo test"), Event::ToolOutput { call: CallId::new("c1"), text: "running 12 tests\ntest one ... ok\ntest two ... ok\ntest three ... ".to_owned() }]].concat(), ""),
        ("much-output", [task(), command("c1", "seq 10000", &many)].concat(), ""),
        ("a-question", [task(), vec![asked("c1", "rm -rf build", Some("build: 3 files that nothing can bring back"))]].concat(), ""),
        ("several-questions", [task(), vec![asked("c1", "npm install left-pad", None), asked("c2", "git push", None), asked("c3", "docker compose up", None)]].concat(), ""),
        ("a-refusal-with-a-note", [task(), vec![asked("c1", "npm install left-pad", None)]].concat(), "nwrite it yourself"),
        ("a-decided-question", [task(), vec![call_started("c1", "run_command", json!({"command": "git push"}), "run git push"), asked("c1", "git push", None), decided("c1", false), call_ended("c1", "run_command", CallState::Denied, "denied by the user: not today; don't try it again another way without asking", None)]].concat(), ""),
        ("failing-checks", [task(), edit(CallState::Completed), checked("cargo test", Some("running 3 tests\nthread 'counts' panicked at tests/counts.rs:4:5:\nassertion `left == right` failed\n  left: 1\n right: 0\n"))].concat(), ""),
        ("verified", [task(), edit(CallState::Completed), streamed("It counts from zero now.", 5), checked("cargo test", None), done(RunOutcome::Verified, "verified by `cargo test`")].concat(), ""),
        ("todos", [task(), vec![Event::TodoChanged { previous: vec![], current: vec![todo("read the counter", TodoStatus::Completed), todo("change it", TodoStatus::InProgress), todo("look at its users", TodoStatus::Pending), todo("run the tests", TodoStatus::Pending)] }], unfinished("Now the change.")].concat(), ""),
        ("interrupted", [task(), vec![Event::TurnStarted { turn: 1 }, Event::TextDelta { block: 0, offset: 0, text: "I was about to say".to_owned() }, cut], done(RunOutcome::Interrupted, "interrupted")].concat(), ""),
        ("a-lagging-log", [task(), vec![Event::TurnStarted { turn: 1 }, Event::TextDelta { block: 0, offset: 0, text: "The first words".to_owned() }, Event::Lagged { after: Seq(3) }, Event::StorageFailure { message: "the disk is full".to_owned(), waiting: 4 }, finished("The first words, and the rest of the reply.")]].concat(), ""),
        ("shortened-and-failed", [task(), vec![
            Event::ContextCompression { phase: CompressionPhase::Start, reason: CompressionReason::Threshold, before: Tokens(90_000), after: None, method: None, summary: None, failure: None },
            Event::ContextCompression { phase: CompressionPhase::End, reason: CompressionReason::Threshold, before: Tokens(90_000), after: Some(Tokens(12_000)), method: Some(CompressionMethod::State), summary: None, failure: None },
            Event::Retry { attempt: 2, of: 3, wait_ms: 1_500, reason: "the server is overloaded (529)".to_owned() },
            Event::Error { severity: ErrorSeverity::Error, phase: ErrorPhase::Model, message: "the server refused the key (401); set ANTHROPIC_API_KEY".to_owned() },
        ], done(RunOutcome::Error, "the model could not be asked")].concat(), ""),
    ]
}

/// Sessions whose agents work, ask, and have ended.
fn agents_at_work() -> Vec<(&'static str, Vec<Envelope>, &'static str)> {
    let own = |event| of_agent(&[], 7, event);
    let begun = vec![
        own(started("bound every retry")),
        own(task_started("t1", "investigator")),
        own(task_started("t2", "reviewer")),
        own(agent_started("t1", 11, "investigator")),
        own(agent_started("t2", 12, "reviewer")),
        of_agent(&["investigator"], 11, agent_started("n1", 13, "planner")),
        of_agent(&["investigator"], 11, tokens_used(12_345)),
        of_agent(
            &["investigator", "planner"],
            13,
            call_started("p1", "read_file", json!({"path": "src/retry.rs"}), "read src/retry.rs"),
        ),
        of_agent(
            &["reviewer"],
            12,
            call_started("r1", "run_command", json!({"command": "cargo test"}), "run cargo test"),
        ),
    ];
    let ended = [
        of_agent(&["investigator"], 11, agent_finished("n1", 13, "planner", Termination::Goal)),
        own(agent_finished("t1", 11, "investigator", Termination::Goal)),
        own(call_ended(
            "t1",
            "task",
            CallState::Completed,
            "The agent `investigator` completed its task:\nIt is bounded.",
            None,
        )),
        own(agent_finished("t2", 12, "reviewer", Termination::MaxTurns)),
        own(call_ended(
            "t2",
            "task",
            CallState::Failed,
            "The agent `reviewer` did not complete its task",
            None,
        )),
    ];
    let question = of_agent(&["reviewer"], 12, asked("r1", "cargo publish", None));
    vec![
        ("agents-at-work", begun.clone(), ""),
        ("an-agent-asks", [begun.clone(), vec![question]].concat(), ""),
        ("agents-have-ended", [begun, ended.to_vec()].concat(), ""),
    ]
}

/// Plays a session at one size, and returns the screen between marks.
fn draw(events: &[Envelope], keys: &str, (columns, rows): (usize, usize)) -> String {
    let mut player = Player::new(columns, rows);
    player.play_envelopes(events.iter().cloned());
    player.wait();
    for key in keys.chars() {
        player.press(KeyCode::Char(key), KeyModifiers::NONE);
    }
    let screen = player.screen().join("\n");
    format!("──── {columns}×{rows}\n{screen}\n")
}

#[test]
fn screens_are_as_they_were_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let updates = std::env::var_os("UPDATE_SCREENS").is_some();
    let own = |(name, events, keys): (&'static str, Vec<Event>, &'static str)| {
        let number = |(place, event): (u64, Event)| {
            let seq = (!event.is_live_only()).then_some(Seq(place));
            Envelope { seq, ..of_agent(&[], 7, event) }
        };
        (name, (1..).zip(events).map(number).collect(), keys)
    };
    for (name, events, keys) in sessions().into_iter().map(own).chain(agents_at_work()) {
        let shown: String = SIZES.iter().map(|size| draw(&events, keys, *size)).collect();
        let path = directory.join(format!("{name}.txt"));
        if updates {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&path, &shown).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(shown, expected, "{name}; UPDATE_SCREENS=1 writes what is shown now");
    }
}

#[test]
fn a_streamed_reply_costs_at_most_three_times_its_text() {
    let words: String =
        (0..1_200).map(|word| format!("word{word} {}", if word % 60 == 59 { "\n\n" } else { "" })).collect();
    let mut player = Player::new(80, 24);
    player.play([started("go on")]);
    let before = player.written;
    // A frame has the words of a twenty-fifth of a second, at 200 tokens a second.
    player.play(streamed(&words, 32));
    let cost = player.written - before;
    assert!(cost <= 3 * words.len(), "{cost} bytes for {}", words.len());
}

#[test]
fn no_row_commands_the_terminal() {
    let theme = Theme::new(ColorDepth::None, BackgroundBrightness::Unknown);
    let size = Size { columns: 20, rows: 6 };
    let row = StyledLine::new(Style::Plain, "a\tb\x1b[2J\u{9b}31mc\nd\x07");
    let expected = "a    b[2J31mc d";
    let frame = Frame { finished: vec![row.clone()], live: vec![row.clone()], cursor: (0, 0) };
    let drawn = Screen::new(theme, Reflow::Cuts, size).draw(&frame);
    assert_eq!(drawn.matches(expected).count(), 2, "{drawn:?}");
    let page = AltScreen::enter(theme, None, size).0.draw(&[row], None);
    assert!(page.contains(expected), "{page:?}");
}
