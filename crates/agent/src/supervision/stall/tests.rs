//! Tests of loop detection: repetitions that count as a loop, and those that don't.

use journeyman_protocol::{
    CallId, CheckKind, CheckOutcome, Diagnostic, Evidence, ImageData, ResultPart, SessionId, Severity,
    ToolUse, UnixMillis,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A call with its result.
fn call(tool: &str, input: Value, result: &str, is_error: bool, read_only: bool) -> CallFingerprint {
    let call =
        ToolUse { id: CallId::new("x"), name: tool.to_owned(), input, malformed: None, signature: None };
    CallFingerprint::new(&call, &[ResultPart::Text { text: result.to_owned() }], is_error, read_only)
}

fn read(path: &str, text: &str) -> CallFingerprint {
    call("read_file", json!({ "path": path }), text, false, true)
}

fn run(command: &str, result: &str) -> CallFingerprint {
    call("run_command", json!({ "command": command }), result, !result.starts_with("exit code 0"), false)
}

fn edit(path: &str, search: &str, replace: &str) -> CallFingerprint {
    let input = json!({ "path": path, "search": search, "replace": replace });
    call("edit_file", input, &format!("Edited {path}\n7 | let it = {replace};"), false, false).mark_changing()
}

fn failed_edit(search: &str, error: &str) -> CallFingerprint {
    call("edit_file", json!({ "path": "a.rs", "search": search, "replace": "x" }), error, true, false)
}

fn step(calls: Vec<CallFingerprint>) -> StepFacts {
    StepFacts { calls, ..StepFacts::default() }
}

/// A step that leaves files with these contents.
fn leaving(call: CallFingerprint, files: &[(&str, &str)]) -> StepFacts {
    let changes = files.iter().map(|(path, text)| {
        (RelPath::parse(path).unwrap(), (!text.is_empty()).then(|| ContentHash::of(text.as_bytes())))
    });
    StepFacts { changes: changes.collect(), ..step(vec![call]) }
}

/// The steps, from 1, at which the guard warned once and twice and stopped the run; it runs until
/// the stop.
fn spoke(steps: impl IntoIterator<Item = StepFacts>) -> Vec<usize> {
    let mut guard = StallDetector::default();
    let mut at = Vec::new();
    for (nth, step) in (1..).zip(steps) {
        match guard.observe(&step) {
            StallGuidance::Fine => {}
            StallGuidance::Warn(_) => at.push(nth),
            StallGuidance::Stop(_) => {
                at.push(nth);
                break;
            }
        }
    }
    at
}

/// So many steps, by number from 0.
fn steps(count: usize, make: impl Fn(usize) -> StepFacts) -> Vec<StepFacts> {
    (0..count).map(make).collect()
}

const QUIET: [usize; 0] = [];

#[test]
fn what_advances_is_no_loop() {
    let table: Vec<(&str, Vec<StepFacts>)> = vec![
        (
            "200 similar reads of different files",
            steps(200, |n| step(vec![read(&format!("src/f{n}.rs"), &format!("fn f{n}() {{}}"))])),
        ),
        (
            "200 pages of one file, all alike but for their numbers",
            steps(200, |n| {
                let input = json!({ "path": "data.csv", "offset": n * 100 });
                step(vec![call("read_file", input, &format!("{}; 0; 0", n * 100), false, true)])
            }),
        ),
        (
            "200 files written",
            steps(200, |n| {
                leaving(
                    run(&format!("gen {n}"), "exit code 0, no output").mark_changing(),
                    &[(&format!("f{n}"), "same text")],
                )
            }),
        ),
        (
            "200 edits of one file",
            steps(200, |n| {
                leaving(edit("a.rs", &format!("v{n}"), &format!("v{}", n + 1)), &[("a.rs", &format!("v{n}"))])
            }),
        ),
        (
            "an edit and the same failing test, 100 times over",
            steps(200, |n| match n % 2 {
                0 => leaving(
                    edit("a.rs", &format!("v{n}"), &format!("v{}", n + 1)),
                    &[("a.rs", &format!("v{n}"))],
                ),
                _ => step(vec![run("cargo test", "exit code 101\ntest it ... FAILED")]),
            }),
        ),
    ];
    quiet(table);
}

#[test]
fn the_same_task_for_a_new_agent_again_and_again_is_a_loop() {
    let id = |n: usize| SessionId::new(UnixMillis(1_700_000_000_000 + n as u64), n as u64 * 7_919);
    let given = |n: usize| {
        let input = json!({ "agent": "investigator", "prompt": "x", "background": true });
        let result = format!("The agent `investigator` works in the background as task {}. Go on.", id(n));
        call("task", input, &result, false, true)
    };
    let ended = |n: usize, found: &str| {
        let text = format!("The background task {} has ended. It completed its task:\n{found}", id(n));
        StepFacts { notices: vec![text], ..step(vec![given(n)]) }
    };
    assert_eq!(spoke(steps(100, |n| step(vec![given(n)]))).last(), Some(&12));
    assert_eq!(spoke(steps(100, |n| ended(n, "nothing"))).last(), Some(&12));
    assert_eq!(spoke(steps(99, |n| ended(n, &format!("found {}", letters(n))))), QUIET);
}

/// Each a new step of a list, though its result says nothing new. The limit on turns is for those.
#[test]
fn a_long_list_of_similar_calls_is_no_loop() {
    let words = ["apple", "pear", "plum", "fig", "lime", "date", "kiwi"];
    let table: Vec<(&str, Vec<StepFacts>)> = vec![
        (
            "a counter in a command that does nothing",
            steps(99, |n| {
                step(vec![run(&format!("echo {}; true", n + 1), &format!("exit code 0\n{}\n", n + 1))])
            }),
        ),
        (
            "a word in a command that does nothing",
            steps(99, |n| {
                let word = format!("{}{}", words[n % 7], letters(n));
                step(vec![run(&format!("echo '{word}'"), &format!("exit code 0\n{word}\n"))])
            }),
        ),
        (
            "a comment behind a command that does nothing",
            steps(99, |n| step(vec![run(&format!("true # {}", letters(n)), "exit code 0, no output")])),
        ),
        (
            "searches without a hit",
            steps(99, |n| {
                step(vec![call("search_text", json!({"pattern": letters(n)}), "no matches", false, true)])
            }),
        ),
    ];
    quiet(table);
}

#[test]
fn what_people_do_is_no_loop() {
    let table: Vec<(&str, Vec<StepFacts>)> = vec![
        ("the same file three times", steps(3, |_| step(vec![read("a.rs", "fn a() {}")]))),
        (
            "a failing test, run three times to be sure",
            steps(3, |_| step(vec![run("cargo test", "exit code 101\nFAILED")])),
        ),
        (
            "a command in the background that prints",
            steps(200, |n| {
                step(vec![
                    call("command_output", json!({"id": "1"}), &format!("Compiling {n}/200"), false, true)
                        .mark_waiting(),
                ])
            }),
        ),
        (
            "a hundred commands that look around",
            steps(100, |n| {
                step(vec![run(
                    &format!("sed -n {n}p list"),
                    &format!("exit code 0\nname{} of{}", letters(n), letters(n + 7)),
                )])
            }),
        ),
        (
            "a dozen silent commands",
            steps(12, |n| step(vec![run(&format!("git add dir{n}"), "exit code 0, no output")])),
        ),
        (
            "checks that find something else each time",
            steps(100, |n| StepFacts { checks: Some(n as u64), ..StepFacts::default() }),
        ),
        (
            "somebody who says the same again and again",
            steps(100, |_| StepFacts { user_message: true, ..step(vec![read("a.rs", "fn a() {}")]) }),
        ),
        (
            "notices that differ",
            steps(100, |n| StepFacts {
                notices: vec![format!("command {n} ended")],
                ..step(vec![read("a.rs", "fn a() {}")])
            }),
        ),
        (
            "one repeated call beside one that is new",
            steps(100, |n| step(vec![read("a.rs", "fn a() {}"), read(&format!("{n}"), &letters(n))])),
        ),
    ];
    quiet(table);
}

fn quiet(table: Vec<(&str, Vec<StepFacts>)>) {
    for (name, steps) in table {
        assert_eq!(spoke(steps), QUIET, "{name}");
    }
}

/// A number in letters, so that results differ in more than their numbers.
fn letters(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit + 49)).collect()
}

#[test]
fn what_goes_in_circles_is_warned_of_twice_and_stopped() {
    let [first, next] = [FIRST_WARNING_COST, NEXT_WARNING_COST].map(|cost| (cost / NO_VALUE_COST) as usize);
    // After the steps that were new: three places, with the costs of nothing.
    let after = |new: usize| vec![new + first, new + first + next, new + first + 2 * next];
    let ping_pong = |n: usize| match n % 2 {
        0 => leaving(edit("a.rs", "one", "two"), &[("a.rs", "two")]),
        _ => leaving(edit("a.rs", "two", "one"), &[("a.rs", "one")]),
    };
    let table: Vec<(&str, Vec<usize>, Vec<StepFacts>)> = vec![
        ("the same read", after(1), steps(99, |_| step(vec![read("a.rs", "fn a() {}")]))),
        (
            "the same read, its arguments in another order",
            after(1),
            steps(99, |n| {
                let input = if n % 2 == 0 {
                    json!({"path": "a", "limit": 5})
                } else {
                    json!({"limit": 5, "path": "a"})
                };
                step(vec![call("read_file", input, "text", false, true)])
            }),
        ),
        (
            "the same failing edit",
            after(1),
            steps(99, |_| step(vec![failed_edit("let x", "no such text in a.rs")])),
        ),
        (
            "two failing calls in turns",
            after(2),
            steps(99, |n| match n % 2 {
                0 => step(vec![failed_edit("let x", "no such text in a.rs")]),
                _ => step(vec![run("cargo test", "exit code 101\nerror: no target")]),
            }),
        ),
        ("six calls in turns", after(6), steps(99, |n| step(vec![read(&letters(n % 6), &letters(n % 6))]))),
        ("an edit and its undoing", after(2), steps(99, ping_pong)),
        (
            "an edit and its undoing, with the failing test after each",
            after(4),
            steps(99, |n| match n % 4 {
                0 => ping_pong(0),
                2 => ping_pong(1),
                1 => step(vec![run("cargo test", "exit code 101\n1 failed, took 0.31s")]),
                _ => step(vec![run("cargo test", "exit code 101\n2 failed, took 0.28s")]),
            }),
        ),
        (
            "a test that only takes another time",
            after(1),
            steps(99, |n| {
                step(vec![run(
                    "cargo test",
                    &format!("exit code 101\n1 failed; finished in 0.{n}s at 12:00:{n}"),
                )])
            }),
        ),
        ("replies without calls", after(0), steps(99, |_| StepFacts::default())),
        (
            "checks that find the same, and nothing done",
            after(1),
            steps(99, |_| StepFacts { checks: Some(7), ..StepFacts::default() }),
        ),
        (
            "the same notice",
            after(1),
            steps(99, |_| StepFacts { notices: vec!["look".to_owned()], ..StepFacts::default() }),
        ),
        (
            "a denied call",
            after(1),
            steps(99, |_| {
                step(vec![call("run_command", json!({"command": "rm -rf x"}), "denied: no", true, false)])
            }),
        ),
    ];
    for (name, expected, steps) in table {
        assert_eq!(spoke(steps), expected, "{name}");
    }
}

/// Differing steps that carry no state take three times as long to be stopped.
#[test]
fn little_is_not_enough_for_ever() {
    let (first, next) =
        ((FIRST_WARNING_COST / LITTLE_VALUE_COST) as usize, (NEXT_WARNING_COST / LITTLE_VALUE_COST) as usize);
    let after = |new: usize| vec![new + first, new + first + next, new + first + 2 * next];
    let table: Vec<(&str, usize, Vec<StepFacts>)> = vec![
        (
            "random numbers",
            1,
            steps(99, |n| step(vec![run("echo $RANDOM", &format!("exit code 0\n{}\n", n * 7919 % 10_007))])),
        ),
        (
            "files that don't exist",
            1,
            steps(99, |n| {
                let name = format!("{}.rs", letters(n));
                step(vec![call(
                    "read_file",
                    json!({ "path": name }),
                    &format!("`{name}` doesn't exist"),
                    true,
                    true,
                )])
            }),
        ),
        (
            "a silent command in the background",
            1,
            steps(99, |_| {
                step(vec![
                    call("command_output", json!({"id": "1"}), "no new output; it still runs", false, true)
                        .mark_waiting(),
                ])
            }),
        ),
        (
            "a failing edit of another place each time",
            1,
            steps(99, |n| step(vec![failed_edit(&letters(n), "no such text in a.rs")])),
        ),
    ];
    for (name, new, steps) in table {
        assert_eq!(spoke(steps), after(new), "{name}");
    }
    // The file is new once; then the same command makes it longer and longer.
    let append = steps(99, |n| {
        leaving(run("date >> log", "exit code 0, no output").mark_changing(), &[("log", &"x".repeat(n + 1))])
    });
    assert_eq!(spoke(append), after(1), "the same command that appends");
}

#[test]
fn news_between_the_warnings_begins_the_count_anew_and_keeps_the_warnings() {
    let mut guard = StallDetector::default();
    let again = || step(vec![read("a.rs", "fn a() {}")]);
    let new = |n: usize| step(vec![read(&format!("{n}.rs"), &letters(n))]);
    let mut until = |steps: &mut dyn Iterator<Item = StepFacts>| {
        steps.map(|step| guard.observe(&step)).find(|guidance| *guidance != StallGuidance::Fine)
    };
    assert!(matches!(until(&mut steps(6, |_| again()).into_iter()), Some(StallGuidance::Warn(_))));
    assert_eq!(until(&mut [new(1), again(), again(), new(2)].into_iter()), None);
    assert!(
        matches!(until(&mut steps(3, |_| again()).into_iter()), Some(StallGuidance::Warn(_))),
        "the second"
    );
    // So many steps with news, and it is forgotten.
    assert_eq!(until(&mut steps(STEPS_TO_FORGIVE as usize, |n| new(n + 10)).into_iter()), None);
    assert!(
        matches!(until(&mut steps(5, |_| again()).into_iter()), Some(StallGuidance::Warn(_))),
        "a first again"
    );
    // A new state of the tree is enough at once.
    assert_eq!(until(&mut [leaving(edit("a.rs", "one", "two"), &[("a.rs", "two")])].into_iter()), None);
    assert_eq!(until(&mut steps(4, |_| again()).into_iter()), None);
    assert!(matches!(until(&mut steps(4, |_| again()).into_iter()), Some(StallGuidance::Warn(_))));
    assert!(matches!(until(&mut steps(6, |_| again()).into_iter()), Some(StallGuidance::Warn(_))));
    assert!(matches!(until(&mut steps(6, |_| again()).into_iter()), Some(StallGuidance::Stop(_))));
    // A person's word undoes even that.
    let asked = StepFacts { user_message: true, ..again() };
    assert_eq!(until(&mut [asked, again(), again(), again(), again()].into_iter()), None);
}

/// A loop that feeds itself one new file a round isn't free of the warnings.
#[test]
fn one_new_file_a_round_does_not_hide_a_loop() {
    let at = spoke(steps(200, |n| match n % 6 {
        0 => step(vec![read(&format!("{n}.rs"), &letters(n))]),
        _ => step(vec![read("a.rs", "fn a() {}")]),
    }));
    assert_eq!(at.len(), 3, "{at:?}");
}

#[test]
fn the_words_name_what_was_repeated() {
    let mut guard = StallDetector::default();
    let mut words = Vec::new();
    for _ in 0..20 {
        match guard.observe(&step(vec![failed_edit("let x", "no such text"), read("a", "b")])) {
            StallGuidance::Fine => {}
            StallGuidance::Warn(text) | StallGuidance::Stop(text) => words.push(text),
        }
    }
    assert_eq!(
        words.first().map(String::as_str),
        Some(
            "Your last 5 steps changed nothing and told you nothing new (the same read_file 5 times). What do you still \
             need to know? Go another way, or say what is in the way and end."
        )
    );
    assert!(words[1].contains("8 steps") && words[2].contains("11 steps"), "{words:?}");
    let mut guard = StallDetector::default();
    let warned = steps(9, |_| step(vec![failed_edit("let x", "no such text")]))
        .iter()
        .map(|step| guard.observe(step))
        .find(|guidance| *guidance != StallGuidance::Fine);
    assert!(
        matches!(warned, Some(StallGuidance::Warn(text)) if text.contains("(edit_file failed 5 times in the same way)"))
    );
}

#[test]
fn a_shortened_transcript_makes_old_reads_new() {
    let mut guard = StallDetector::default();
    for _ in 0..50 {
        for _ in 0..3 {
            assert_eq!(guard.observe(&step(vec![read("a.rs", "fn a() {}")])), StallGuidance::Fine);
        }
        guard.forget_results();
    }
}

#[test]
fn a_file_that_is_read_after_it_changed_is_news() {
    let read_again = steps(40, |n| match n % 4 {
        0 => StepFacts {
            changes: leaving(read("x", ""), &[("a.rs", &letters(n))]).changes,
            ..StepFacts::default()
        },
        _ => step(vec![read("a.rs", &letters(n / 4))]),
    });
    assert_eq!(spoke(read_again), QUIET);
}

#[test]
fn what_others_change_is_neither_progress_nor_a_loop() {
    // A build in the background writes all the time; the model still only reads the same file.
    let watched = steps(99, |n| StepFacts {
        changes: leaving(read("x", ""), &[("out.txt", &letters(n))]).changes,
        ..step(vec![read("a.rs", "fn a() {}")])
    });
    assert_eq!(spoke(watched).len(), 3);
}

#[test]
fn what_counts_as_the_same_result() {
    let fact = |text: &str| run("make", text);
    let table = [
        ("done in 0.53s", "done in 12.9s", true),
        ("took 12 ms", "took 9 ms", true),
        ("took 12 seconds.", "took 13 seconds.", true),
        ("[2026-03-01T12:30:05Z] ok", "[2026-03-02T02:31:07Z] ok", true),
        ("at 12:30:05.123 ok", "at 12:30:07.001 ok", true),
        ("1m3s", "2m", true),
        ("a  b\nc", "a b c", true),
        ("12 passed", "13 passed", false),
        ("src/a.rs:12:30: error", "src/a.rs:12:31: error", false),
        ("12:30: error", "12:31: error", false),
        ("version 1.2.3", "version 1.2.4", false),
        ("3 items", "4 items", false),
        ("45%", "46%", false),
    ];
    for (one, other, same) in table {
        assert_eq!(fact(one).whole == fact(other).whole, same, "{one:?} {other:?}");
    }
    let image = |data: &str| {
        let part = ResultPart::Image(ImageData { media_type: "image/png".to_owned(), data: data.to_owned() });
        let call = ToolUse {
            id: CallId::new("x"),
            name: "look".to_owned(),
            input: json!({}),
            malformed: None,
            signature: None,
        };
        CallFingerprint::new(&call, &[part], false, true)
    };
    assert_eq!(image("a"), image("a"));
    assert_ne!(image("a").whole, image("b").whole);
}

#[test]
fn checks_are_the_same_by_what_they_find() {
    let evidence = |outcome: CheckOutcome, message: &str, duration_ms: u64| Evidence {
        duration_ms,
        diagnostics: vec![Diagnostic { line: Some(3), ..Diagnostic::new(Severity::Error, message) }],
        output: format!("took {duration_ms}"),
        ..Evidence::new(CheckKind::Test, "cargo test", outcome)
    };
    let failed = || CheckOutcome::Failed { exit_code: Some(101), reason: String::new() };
    let key = |outcome, message, ms| hash_checks(&[evidence(outcome, message, ms)]);
    assert_eq!(key(failed(), "a", 1), key(failed(), "a", 2));
    assert_ne!(key(failed(), "a", 1), key(failed(), "b", 1));
    assert_ne!(key(failed(), "a", 1), key(CheckOutcome::Passed, "a", 1));
    assert_ne!(hash_checks(&[]), key(failed(), "a", 1));
}

#[derive(Debug, Clone)]
enum Any {
    Read(u8, u8),
    Run(u8, u8),
    Edit(u8, u8),
    Nothing,
}

fn any_step() -> impl Strategy<Value = Any> {
    prop_oneof![
        (0_u8..4, 0_u8..4).prop_map(|(path, text)| Any::Read(path, text)),
        (0_u8..4, 0_u8..4).prop_map(|(command, result)| Any::Run(command, result)),
        (0_u8..3, 0_u8..4).prop_map(|(path, text)| Any::Edit(path, text)),
        Just(Any::Nothing),
    ]
}

fn facts(any: &Any) -> StepFacts {
    match any {
        Any::Read(path, text) => step(vec![read(&letters((*path).into()), &letters((*text).into()))]),
        Any::Run(command, result) => step(vec![run(&letters((*command).into()), &letters((*result).into()))]),
        Any::Edit(path, text) => leaving(
            edit(&letters((*path).into()), "a", &letters((*text).into())),
            &[(&letters((*path).into()), &letters((*text).into()))],
        ),
        Any::Nothing => StepFacts::default(),
    }
}

proptest! {
    /// Whatever a run does, a guard speaks in order: two warnings, then the stop, with the steps
    /// between them.
    #[test]
    fn no_stop_without_two_warnings(any in prop::collection::vec(any_step(), 0..120)) {
        let mut guard = StallDetector::default();
        let (mut warned, mut since) = (0, u32::MAX);
        for any in &any {
            since = since.saturating_add(1);
            match guard.observe(&facts(any)) {
                StallGuidance::Fine => {}
                StallGuidance::Warn(_) => {
                    prop_assert!(since >= NEXT_WARNING_COST / NO_VALUE_COST);
                    warned += 1;
                    since = 0;
                }
                StallGuidance::Stop(_) => {
                    prop_assert!(warned >= 2 && since >= NEXT_WARNING_COST / NO_VALUE_COST);
                    break;
                }
            }
        }
    }

    /// A world of a few things ends: any run in it that goes on and on is stopped.
    #[test]
    fn any_run_of_a_closed_world_is_stopped(any in prop::collection::vec(any_step(), 1..12)) {
        let endless = any.iter().map(facts).collect::<Vec<_>>().into_iter().cycle().take(2_000);
        prop_assert_eq!(spoke(endless).len() >= 3, true);
    }

    /// Any text is read without a panic, and the same text is the same.
    #[test]
    fn any_result_can_be_compared(text in "(\\PC|[ \n0-9.:smh-]){0,60}") {
        prop_assert_eq!(run("x", &text), run("x", &text));
    }

    /// Something new in every step, and nothing is ever said.
    #[test]
    fn whoever_reads_on_is_left_alone(repeated in prop::collection::vec(any_step(), 0..5)) {
        let steps = steps(100, |n| {
            let mut facts = step(vec![read(&format!("new{n}"), &letters(n))]);
            facts.calls.extend(repeated.iter().flat_map(|any| super::tests::facts(any).calls));
            facts
        });
        prop_assert_eq!(spoke(steps), QUIET);
    }
}
