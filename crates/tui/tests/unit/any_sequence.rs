//! Any sequence of events and keys, at any size: no panic, every finished block in the scrollback
//! once, nothing below it but the live area.

use crossterm::event::{KeyCode, KeyModifiers};
use journeyman_protocol::{
    CallState, Envelope, Event, RunOutcome, Termination, Todo, TodoStatus, UnixMillis,
};
use proptest::prelude::*;
use serde_json::json;

use super::player::{
    Player, agent_finished, agent_started, asked, call_ended, call_started, checked, command, decided, done,
    edited, finished, of_agent, started, streamed, tokens_used,
};

#[derive(Debug, Clone)]
enum Step {
    Events(Vec<Event>),
    Agents(Vec<Envelope>),
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Width(usize),
}

fn text() -> impl Strategy<Value = String> {
    "([a-z漢👍*`_|#>]{1,9}[ \n]|\n|- |1\\. |# |> |```\n|```rust\n|```diff\n|\\| a \\| b \\|\n){0,30}"
}

fn todos(titles: Vec<String>) -> Vec<Event> {
    let todo = |(place, title): (usize, String)| Todo {
        id: place.to_string(),
        title,
        status: [TodoStatus::Completed, TodoStatus::InProgress, TodoStatus::Pending][place % 3],
        assignee: None,
        notes: None,
        created: UnixMillis(0),
        updated: UnixMillis(0),
    };
    let current = titles.into_iter().enumerate().map(todo).collect();
    vec![Event::TodoChanged { previous: Vec::new(), current }]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let call = (0..4_u8).prop_map(|call| format!("c{call}"));
    let state = prop::sample::select(vec![
        CallState::Completed,
        CallState::Failed,
        CallState::Denied,
        CallState::Interrupted,
    ]);
    prop_oneof![
        text().prop_map(|text| vec![started(&text)]),
        (text(), 1..20_usize).prop_map(|(text, size)| streamed(&text, size)),
        (text(), 1..20_usize, 0..30_usize).prop_map(|(text, size, kept)| {
            let mut events = streamed(&text, size);
            events.truncate(kept);
            events
        }),
        (text(), 0..90_u64).prop_map(|(text, offset)| vec![Event::TextDelta { block: 0, offset, text }]),
        text().prop_map(|text| vec![Event::ThinkingDelta { block: 0, offset: 0, text }]),
        text().prop_map(|text| vec![Event::ThinkingEnd { block: 0, text }]),
        text().prop_map(|text| vec![finished(&text)]),
        (call.clone(), text()).prop_map(|(call, text)| command(&call, "make", &text)),
        (call.clone(), text()).prop_map(|(call, text)| {
            vec![
                call_started(
                    &call,
                    "edit_file",
                    json!({"path": "a.rs", "search": text, "replace": "b\n"}),
                    "edit a.rs",
                ),
                edited(&call, "a.rs"),
            ]
        }),
        (call.clone(), state, text()).prop_map(|(call, state, text)| vec![call_ended(
            &call,
            "edit_file",
            state,
            &text,
            None
        )]),
        (call.clone(), text()).prop_map(|(call, lost)| vec![asked(&call, "rm -rf build", Some(&lost))]),
        (call, any::<bool>()).prop_map(|(call, allowed)| vec![decided(&call, allowed)]),
        prop::option::of(text()).prop_map(|failure| checked("cargo test", failure.as_deref())),
        prop::collection::vec(text(), 0..9).prop_map(todos),
        text().prop_map(|message| vec![Event::Warning { message }]),
        text().prop_map(|text| vec![Event::MessageJoined { text }]),
        text().prop_map(|summary| done(RunOutcome::Unverified, &summary)),
    ]
}

/// Events of agents in any order: also of agents that nobody has seen begin.
fn agents() -> impl Strategy<Value = Vec<Envelope>> {
    let termination =
        prop::sample::select(vec![Termination::Goal, Termination::Error, Termination::MaxTurns]);
    let one = (0..4_u64, 0..4_u64, 0..4_u8, 0..8_u8, text(), termination).prop_map(
        |(session, child, call, kind, text, termination)| {
            let call = format!("c{call}");
            let event = match kind {
                0 | 1 => agent_started(&call, child, &text),
                2 => agent_finished(&call, child, &text, termination),
                3 => call_started(&call, "read_file", json!({"path": "a.rs"}), &text),
                4 => call_ended(&call, "read_file", CallState::Completed, &text, None),
                5 => asked(&call, "make", Some(&text)),
                6 => decided(&call, true),
                _ => tokens_used(session * 1_000),
            };
            let path = if session == 0 { &[][..] } else { &["scout"] };
            of_agent(path, session, event)
        },
    );
    prop::collection::vec(one, 1..12)
}

fn step() -> impl Strategy<Value = Step> {
    let code = prop_oneof![
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Esc,
            KeyCode::Tab,
        ]),
        prop::sample::select("ynsrdabefkuwyrg漢👍 ".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char),
    ];
    let modifiers = prop::sample::select(vec![KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT]);
    prop_oneof![
        4 => events().prop_map(Step::Events),
        2 => agents().prop_map(Step::Agents),
        2 => (code, modifiers).prop_map(|(code, modifiers)| Step::Key(code, modifiers)),
        1 => "[a-z\n漢]{0,60}".prop_map(Step::Paste),
        1 => (12..100_usize).prop_map(Step::Width),
    ]
}

fn take(player: &mut Player, step: Step, rows: usize) {
    match step {
        Step::Events(events) => {
            player.play(events);
        }
        Step::Agents(envelopes) => player.play_envelopes(envelopes),
        Step::Key(code, modifiers) => player.press(code, modifiers),
        Step::Paste(text) => {
            player.composer.paste(&text);
            player.draw();
        }
        Step::Width(columns) => player.resize(columns, rows),
    }
}

/// The rows without their spaces: a terminal that was narrow for a while has cut some.
fn cut(rows: &[String], width: usize) -> Vec<String> {
    rows.iter()
        .map(|row| {
            journeyman_terminal::wrap::cut_line(
                &journeyman_terminal::StyledLine::new(journeyman_terminal::Style::Plain, row.as_str()),
                usize::MAX,
            )
            .to_text()
            .chars()
            .scan(0, |columns, character| {
                *columns += journeyman_terminal::wrap::char_width(character);
                (*columns < width).then_some(character)
            })
            .collect::<String>()
            .trim_end()
            .to_owned()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_finished_block_is_in_the_scrollback_once(
        steps in prop::collection::vec(step(), 1..24),
        columns in 12..120_usize,
        rows in prop_oneof![1 => 1..4_usize, 4 => 4..40_usize],
    ) {
        let mut player = Player::new(columns, rows);
        let mut narrowest = columns;
        for step in steps {
            if let Step::Width(columns) = &step {
                narrowest = narrowest.min(*columns);
            }
            take(&mut player, step, rows);
            let finished = cut(&player.finished, narrowest);
            let all = cut(&player.all_rows(), narrowest);
            prop_assert!(
                all.len() >= finished.len() || finished[all.len()..].iter().all(String::is_empty),
                "rows are lost\n{all:#?}\n{finished:#?}"
            );
            let shared = finished.len().min(all.len());
            prop_assert_eq!(&all[..shared], &finished[..shared]);
            prop_assert!(all.len() - shared < rows.max(2), "the live area has more rows than the terminal");
        }
    }
}
