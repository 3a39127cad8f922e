//! Models without tool calling: edits and calls as blocks of text.

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_model::ModelError;
use journeyman_protocol::{Block, CallState, Event, Mode, RunOutcome, StopReason};
use serde_json::json;

use crate::session::support::bench::{Bench, auto, confined, in_mode};
use crate::session::support::model::{Told, call, fails, says, stopped};

cases![
    each_kind_of_block,
    a_block_that_is_refused_changes_nothing,
    blocks_and_calls_run_in_order,
    a_model_that_takes_no_tools_is_spoken_to_in_text,
    plan_mode_holds_in_text_too,
    a_call_that_comes_all_the_same_is_answered_in_text,
];

fn in_text(checks: &str) -> RunSettings {
    RunSettings { tool_calling: false, checks: ChecksSetting::Custom(vec![checks.to_owned()]), ..auto() }
}

fn edit(path: &str, body: &str) -> String {
    format!("<edit>\n<file>{path}</file>\n{body}\n</edit>\n")
}

const SEARCH: &str = "<search>\nold\n</search>\n<replace>\nnew\n</replace>";

/// A project of two files, a reply, and the three files after it.
async fn after(reply: &str) -> ([Option<String>; 3], String) {
    let mut bench = Bench::new(&[("a.txt", "one\nold\nthree\n"), ("b.txt", "b\n")]);
    let told = Told::new([says(reply), says("done")]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..in_text("") };
    let report = bench.run(&told, settings).await;
    assert_eq!(report.text, "done", "{}", report.summary);
    let request = &told.requests()[1];
    assert!(request.tools.is_empty());
    let heard = request.messages.last().unwrap().text();
    assert!(!bench.outside.join("escaped.txt").exists());
    (["a.txt", "b.txt", "c.txt"].map(|name| bench.file(name)), heard)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

async fn each_kind_of_block() {
    let (a, b) = (some("one\nold\nthree\n"), some("b\n"));
    let edited = some("one\nnew\nthree\n");
    let two = format!("{SEARCH}\n<search>\none\n</search>\n<replace/>");
    let rows = [
        (edit("c.txt", "<replace>\nc\n</replace>"), [a.clone(), b.clone(), some("c\n")], "Changed c.txt."),
        (edit("b.txt", "<replace>\nB\n</replace>"), [a.clone(), some("B\n"), None], "Changed b.txt."),
        (edit("a.txt", SEARCH), [edited.clone(), b.clone(), None], "Changed a.txt."),
        (edit("a.txt", &two), [some("new\nthree\n"), b.clone(), None], "Changed a.txt."),
        (edit("b.txt", "<delete/>"), [a.clone(), None, None], "Deleted b.txt."),
        (edit("a.txt", "<rename>c.txt</rename>"), [None, b.clone(), a.clone()], "Changed a.txt, now c.txt."),
        (
            edit("a.txt", &format!("<rename>c.txt</rename>\n{SEARCH}")),
            [None, b.clone(), edited.clone()],
            "Changed a.txt, now c.txt.",
        ),
    ];
    for (reply, files, words) in rows {
        let (found, heard) = after(&format!("Here it is.\n\n{reply}\nThat is all.")).await;
        assert_eq!(found, files, "{reply}\n{heard}");
        assert!(heard.starts_with("<result of=\"apply_edit\""), "{heard}");
        assert!(heard.contains(words), "{reply}\n{heard}");
    }
}

async fn a_block_that_is_refused_changes_nothing() {
    let untouched = [some("one\nold\nthree\n"), some("b\n"), None];
    let missing = "<search>\nnowhere to be found\n</search>\n<replace>\nx\n</replace>";
    let replaced = "<replace>\nx\n</replace>";
    let rows = [
        edit("a.txt", missing),
        edit("a.txt", &format!("{SEARCH}\n{missing}")),
        edit("absent.txt", SEARCH),
        edit("absent.txt", "<delete/>"),
        edit("a.txt", "<rename>b.txt</rename>"),
        edit("../escaped.txt", replaced),
        edit("/tmp/../escaped.txt", replaced),
        edit("a.txt", "<rename>../escaped.txt</rename>"),
        edit("x/../../escaped.txt", replaced),
        edit(".git/config", replaced),
        edit("a.txt", "<rename>.git/hooks/pre-commit</rename>"),
        edit("a.txt/c.txt", replaced),
        edit("", replaced),
        // The output limit cut it off.
        "<edit>\n<file>a.txt</file>\n<search>\nold\n</search>\n<replace>\nne".to_owned(),
        "<call tool=\"run_command\">{\"command\": \"touch c.t".to_owned(),
        "<call tool=\"write_file\">not json</call>".to_owned(),
        "<call tool=\"no_such_tool\">{}</call>".to_owned(),
    ];
    for reply in rows {
        let (found, heard) = after(&reply).await;
        assert_eq!(found, untouched, "{reply}\n{heard}");
        assert!(heard.starts_with("<result of=\""), "{reply}\n{heard}");
        assert!(!heard.contains("\nChanged "), "{reply}\n{heard}");
    }
}

async fn blocks_and_calls_run_in_order() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "old\n")]);
    let reply = format!(
        "{}<call tool=\"run_command\">{{\"command\": \"cat a.txt > seen.txt\"}}</call>\n{}<call tool=\"read_file\">{{\"path\": \"seen.txt\"}}</call>",
        edit("a.txt", SEARCH),
        edit("b.txt", "<replace>\nb\n</replace>"),
    );
    let told = Told::new([says(&reply), says("done")]);
    let report = bench.run(&told, in_text("test -f b.txt")).await;
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    assert_eq!(bench.file("seen.txt").as_deref(), Some("new\n"));
    let heard = told.requests()[1].messages.last().unwrap().text();
    let heads: Vec<&str> = heard.lines().filter(|line| line.starts_with("<result of=")).collect();
    assert_eq!(
        heads,
        [
            "<result of=\"apply_edit\" id=\"text-1-0\">",
            "<result of=\"run_command\" id=\"text-1-1\">",
            "<result of=\"apply_edit\" id=\"text-1-2\">",
            "<result of=\"read_file\" id=\"text-1-3\">"
        ]
    );
    for call in ["text-1-0", "text-1-1", "text-1-2", "text-1-3"] {
        assert_eq!(bench.log.states(call).last(), Some(&CallState::Completed), "{call}");
    }
}

async fn a_model_that_takes_no_tools_is_spoken_to_in_text() {
    let mut bench = Bench::new(&[("a.txt", "old\n")]);
    let refused = ModelError::ToolsUnsupported { message: "no tools here".to_owned() };
    let told = Told::new([fails(refused), says(&edit("a.txt", SEARCH)), says("done")]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..auto() };
    let report = bench.run(&told, settings).await;
    assert_eq!(
        (report.outcome, report.text.as_str()),
        (RunOutcome::Unverified, "done"),
        "{}",
        report.summary
    );
    assert_eq!(bench.file("a.txt").as_deref(), Some("new\n"));
    let requests = told.requests();
    assert!(!requests[0].tools.is_empty() && requests[1].tools.is_empty());
    let system = |request: usize| -> String {
        requests[request].system.iter().map(|part| part.text.as_str()).collect()
    };
    assert!(!system(0).contains("<edit>") && system(1).contains("<edit>"));
    // It begins anew: one message, the task once.
    assert_eq!(requests[1].messages.len(), 1);
    assert_eq!(requests[1].messages[0].content.len(), 1);
    assert!(bench.log.events().iter().any(|event| matches!(event, Event::Warning { .. })));
    // Whoever says it twice is in error, and is not asked for ever.
    let refused = || fails(ModelError::ToolsUnsupported { message: "no tools here".to_owned() });
    let told = Told::new([refused(), refused(), says("never said")]);
    let report = Bench::new(&[]).run(&told, auto()).await;
    assert_eq!((report.outcome, told.requests().len()), (RunOutcome::Error, 2));
}

async fn plan_mode_holds_in_text_too() {
    let mut bench = Bench::new(&[("a.txt", "old\n")]);
    let told = Told::new([says(&edit("a.txt", SEARCH)), says("done")]);
    let settings = RunSettings { tool_calling: false, ..in_mode(Mode::Plan) };
    bench.run(&told, settings).await;
    assert_eq!(bench.file("a.txt").as_deref(), Some("old\n"));
    assert_eq!(bench.log.states("text-1-0"), [CallState::Pending, CallState::Denied]);
}

/// Nobody offered it tools. Its call runs, and no request ever has a call without its result.
async fn a_call_that_comes_all_the_same_is_answered_in_text() {
    let mut bench = Bench::new(&[("a.txt", "right\n")]);
    let read = Block::ToolUse(call("c1", "read_file", json!({ "path": "a.txt" })));
    let told = Told::new([
        stopped(vec![Block::text("I look."), read.clone()], StopReason::ToolUse),
        stopped(vec![read], StopReason::ToolUse),
        says("done"),
    ]);
    let report = bench.run(&told, in_text("true")).await;
    assert_eq!(report.text, "done", "{}", report.summary);
    for request in &told.requests()[1..] {
        assert!(request.messages.iter().all(|message| message.tool_uses().next().is_none()));
        let heard = request.messages.last().unwrap().text();
        assert!(heard.starts_with("<result of=\"read_file\"") && heard.contains("right"), "{heard}");
    }
}
