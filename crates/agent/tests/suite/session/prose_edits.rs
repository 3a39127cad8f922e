//! Edits in the text of a reply, beside tool calling and in its place.

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_protocol::{Block, Message, Mode};

use crate::session::support::bench::{Bench, auto, in_mode};
use crate::session::support::model::{Told, says};

cases![
    an_edit_in_prose_is_applied_with_tools_too,
    the_model_is_told_of_an_edit_that_does_not_fit_before_any_check_runs,
    a_question_and_plan_mode_never_edit,
    a_block_that_has_little_of_the_file_does_not_replace_it,
];

const OLD: &str = "one\nold\nthree\nfour\nfive\n";
const DIFF: &str =
    "I fix it.\n```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-old\n+new\n three\n```\n";

fn whole(content: &str) -> String {
    format!("a.txt\n```text\n{content}```\n")
}

fn settings(tool_calling: bool) -> RunSettings {
    RunSettings { tool_calling, checks: ChecksSetting::Off, ..auto() }
}

/// Runs a task in a project with `a.txt`. Returns the file, and what the model heard at last.
async fn run(task: &str, replies: &[&str], settings: RunSettings) -> (String, String) {
    let mut bench = Bench::new(&[("a.txt", OLD)]);
    let told = Told::new(replies.iter().map(|reply| says(reply)).collect::<Vec<_>>());
    bench.run_task(task, &told, settings).await;
    let heard = told.requests().last().and_then(|it| it.messages.last().map(Message::text));
    for request in told.requests() {
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        assert!(blocks.into_iter().all(|block| matches!(block, Block::Text { .. })), "no call was made up");
    }
    (bench.file("a.txt").unwrap(), heard.unwrap_or_default())
}

async fn an_edit_in_prose_is_applied_with_tools_too() {
    for tool_calling in [true, false] {
        for reply in [DIFF, &whole(&OLD.replace("old", "new"))] {
            let (file, heard) = run("Fix a.txt.", &[reply, "done"], settings(tool_calling)).await;
            assert_eq!(file, OLD.replace("old", "new"), "{heard}");
            assert!(heard.contains("Changed a.txt."), "{heard}");
        }
    }
}

async fn the_model_is_told_of_an_edit_that_does_not_fit_before_any_check_runs() {
    let wrong = DIFF.replace("-old", "-nowhere to be found");
    for tool_calling in [true, false] {
        let mut bench = Bench::new(&[("a.txt", OLD)]);
        let told = Told::new([says(&wrong), says(DIFF), says("done")]);
        let checks = ChecksSetting::Custom(vec!["grep -q new a.txt".to_owned()]);
        let report = bench.run(&told, RunSettings { checks, ..settings(tool_calling) }).await;
        let heard = told.requests()[1].messages.last().unwrap().text();
        assert!(heard.contains("Nothing was changed"), "{heard}");
        assert_eq!(heard.contains("call `edit_file`"), tool_calling, "{heard}");
        assert_eq!(bench.file("a.txt").unwrap(), OLD.replace("old", "new"));
        assert_eq!(report.turns, 3, "no round of checks came between");
    }
}

async fn a_question_and_plan_mode_never_edit() {
    let replies = [DIFF, "done"];
    for tool_calling in [true, false] {
        let (file, _) = run("What is wrong with a.txt?", &replies, settings(tool_calling)).await;
        assert_eq!(file, OLD);
        let plan = RunSettings { tool_calling, ..in_mode(Mode::Plan) };
        assert_eq!(run("Fix a.txt.", &replies, plan).await.0, OLD);
    }
}

async fn a_block_that_has_little_of_the_file_does_not_replace_it() {
    let (file, heard) = run("Fix it.", &[&whole("one\nnew\nfor example\n"), "done"], settings(true)).await;
    assert_eq!(file, OLD);
    assert!(heard.contains("a part of the file or an example"), "{heard}");
}
