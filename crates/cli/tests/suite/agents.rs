//! Agents on the command line.

use journeyman_protocol::{Event, RunOutcome, Termination};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::own_repository::clone_of_this_project;
use crate::support::{House, KEY, Person, Server, Step, Wire, call, needs, say};

const NAMER: &str = "---\ndescription: Names things.\ninputs: {what: string, count: integer}\nmax_cost: 0.5\n---\nYou name things.\n";

#[test]
fn agents_are_listed_and_shown_and_a_wrong_file_is_named() {
    let house = House::new();
    house.write(".journeyman/agents/namer.md", NAMER);
    house.write(".journeyman/agents/broken.md", "---\ndescription: x\ncolour: red\n---\nx\n");
    let listed = house.jm(&["agents"]).run().expect(0);
    listed.prints(&["investigator", "planner", "reviewer", "tester", "generalist", "built in"]);
    listed.says(&["broken.md: front matter: there is no field `colour`", "the agent `namer` is left out"]);
    assert!(!listed.stdout.contains("Names things."), "{}", listed.stdout);
    let trusted = house.jm(&["agents", "--trust-project", "--json"]).run().expect(0);
    let all: Value = serde_json::from_str(&trusted.stdout).unwrap();
    assert_eq!(all["agents"][0]["name"], "namer");
    for directory in [".journeyman", ".claude"] {
        house.write(&format!("{directory}/agents/planner.md"), "---\ndescription: Plans.\n---\nYou plan.\n");
    }
    house.jm(&["agents", "--trust-project"]).run().expect(0).prints(&["planner.md and the built-in one"]);
    let shown = house.jm(&["agents", "show", "planner"]).run().expect(0);
    shown.prints(&[
        "input   task",
        "output  plan",
        "mode plan at most",
        "30 turns, 600 s, 60 s for the last turn",
    ]);
    let tester = house.jm(&["agents", "show", "tester"]).run().expect(0);
    tester.prints(&["edits   files of tests alone"]);
    let front = "description: x\ntemperature: 0.1\ntop_p: 0.9\nthinking_budget: 2000";
    house.write(".journeyman/agents/namer.md", format!("---\n{front}\n---\nName ${{query}}.\n"));
    house.write(".claude/agents/other.md", "---\ndescription: x\n---\nUse ${HOME} here.\n");
    let show = |name: &str, more: &[&str]| {
        house.jm(&[&["agents", "show", name, "--trust-project"], more].concat()).run().expect(0)
    };
    show("namer", &[]).prints(&["temperature 0.1\ntop_p 0.9\nthinking_budget 2000\n", "Name ${query}."]);
    show("other", &[]).prints(&["\nUse ${HOME} here."]);
    let shown: Value = serde_json::from_str(&show("namer", &["--json"]).stdout).unwrap();
    assert_eq!(
        (&shown["temperature"], &shown["top_p"], &shown["thinking_budget"], &shown["edits"]),
        (&json!(0.1), &json!(0.9), &json!(2_000), &json!("all"))
    );
    house.jm(&["agents", "show", "planer"]).run().expect(2).says(&["there is no agent `planer`", "planner"]);
}

#[test]
fn wrong_inputs_end_in_2_before_anything_is_asked() {
    let house = House::new();
    house.write(".journeyman/agents/namer.md", NAMER);
    let server = Server::chat([say("never said")]);
    for (arguments, said) in [
        (&["--agent", "nobody", "x"][..], "there is no agent `nobody`"),
        (&["--agent", "namer", "--input", "count=2"], "missing inputs: what; available inputs: count"),
        (&["--agent", "namer", "--input", "count=two", "x"], "--input count"),
        (&["--agent", "namer", "--input", "size=2", "x"], "has no input `size`; there are: what, count"),
        (
            &["--agent", "namer", "--input", "count=2", "x"],
            "max_cost of the agent `namer` needs the price of",
        ),
    ] {
        let arguments = [&["--trust-project"], arguments].concat();
        server.run(&house, &arguments).run().expect(2).says(&[said]);
    }
    assert_eq!(server.seen().len(), 0);
}

/// The report of an investigation of this project.
fn found() -> Value {
    json!({ "report": {
        "findings": "The exit codes are in `RunOutcome::exit_code`.",
        "trace": ["searched for exit_code", "read run_outcome.rs"],
        "locations": [{
            "path": "crates/protocol/src/run_outcome.rs",
            "reason": "every outcome has its code here",
            "symbols": ["RunOutcome", "exit_code"],
        }],
    } })
}

#[test]
fn an_investigation_of_this_project_goes_on_after_a_kill() {
    let house = House::new();
    let Some(clone) = clone_of_this_project(&house) else { return };
    let look =
        || say("").and("search_text", json!({ "pattern": "fn exit_code", "path": "crates/protocol/src" }));
    let server = Server::start(
        Wire::ALL[0],
        [
            Step::from(look()),
            Step::Begin(say("I look at it, and at what is around it, and at all of it.".repeat(20))),
            Step::from(call("complete_task", json!({ "report": { "findings": "half" } }))),
            Step::from(call("complete_task", found())),
        ],
    );
    let arguments = ["--agent", "investigator", "where are the exit codes?"];
    let running = server.run(&house, &arguments).dir(&clone).start();
    server.wait_for(2);
    running.signal(Signal::KILL);
    running.gone();
    let resumed =
        house.jm(&["resume", "--last", "--json"]).dir(&clone).env("JM_API_KEY", KEY).run().expect(0);
    let report = resumed.report();
    let agent = report.agent.clone().unwrap();
    assert_eq!((report.outcome, agent.termination), (RunOutcome::Answered, Termination::Goal));
    assert_eq!(agent.output, Some(found()["report"].clone()));
    assert_eq!(report.changes, []);
    let path = agent.output.as_ref().unwrap()["locations"][0]["path"].as_str().unwrap().to_owned();
    assert!(clone.join(&path).is_file(), "{path}");
    let seen = server.seen();
    assert!(seen.iter().all(|request| !request.tools().contains(&"write_file".to_owned())));
    assert!(
        seen.last().unwrap().newest().contains("is not as its schema says"),
        "{}",
        seen.last().unwrap().newest()
    );
    assert!(seen[1].newest().contains("run_outcome.rs"), "the search found the place");
}

#[test]
fn a_session_and_its_agent_are_a_tree_and_lists_have_the_session_alone() {
    let house = House::with_greeter();
    let server = Server::answering(|_, seen| {
        let is_agent = seen.body.to_string().contains("You investigate a code base");
        let has_result = seen.newest().contains("completed its task");
        Step::from(match (is_agent, has_result) {
            (true, _) => call("complete_task", found()),
            (false, false) => {
                call("task", json!({ "agent": "investigator", "prompt": "Where is the greeting?" }))
            }
            (false, true) => say("It is in greet.sh."),
        })
    });
    let ran = server.run(&house, &["--stream-json", "look for the greeting"]).run().expect(4);
    let agents: Vec<_> = ran.events().into_iter().filter(|envelope| !envelope.agent.is_empty()).collect();
    assert!(agents.iter().any(|envelope| matches!(envelope.event, Event::ToolStart { .. })), "{agents:?}");
    assert!(agents.iter().all(|envelope| envelope.agent == ["investigator"]));
    let tree = house.jm(&["show", "--tree"]).run().expect(0);
    tree.prints(&["look for the greeting", "└─ investigator ", "GOAL, 1 turn", "Find out:"]);
    assert_eq!(house.sessions().len(), 1, "an agent is no session of a person's");
    let child = agents[0].session.to_string();
    house.jm(&["show", &child]).run().expect(0).prints(&["complete the task", "RunOutcome::exit_code"]);
    house.jm(&["show", "last"]).run().expect(0).prints(&["investigator: Find out:", "GOAL"]);
}

#[test]
fn several_agents_work_at_once_and_are_one_tree() {
    let house = House::with_greeter();
    let before = house.tree();
    let server = Server::answering(|_, seen| match seen.newest().contains("Mind the clock.") {
        true => call("complete_task", found()).into(),
        // The reminder comes with the next step.
        false => call("read_file", json!({ "path": "greet.sh" })).into(),
    });
    house.write(
        "team.toml",
        "[[member]]\nname = 'ada'\nagent = 'investigator'\ntask = 'Where is it?'\n[[member]]\nname = 'bob'\nagent = \
         'investigator'\ntask = 'And where is that?'\n[[reminder]]\nto = 'ada'\ntext = 'Mind the clock.'\nevery_steps = \
         1\n[[reminder]]\nto = 'bob'\ntext = 'Mind the clock.'\nevery_steps = 1\n",
    );
    let ran = server.command(&house, &["agents", "run"], &["--group", "team.toml"]).run().expect(0);
    ran.prints(&["## ada", "## bob", "The exit codes are in"]);
    let tree = house.jm(&["show", "--tree"]).run().expect(0);
    tree.prints(&["ada", "bob", "GOAL"]);
    let tools = server.seen()[0].tools();
    assert!(
        tools.contains(&"send_message".to_owned()) && !tools.contains(&"write_file".to_owned()),
        "{tools:?}"
    );
    std::fs::remove_file(house.project().join("team.toml")).unwrap();
    assert_eq!(house.tree(), before);
}

#[test]
fn a_group_whose_members_fail_says_so_and_what_it_used() {
    let house = House::with_greeter();
    let server = Server::answering(|_, _| say("I am done.").into());
    let arguments = ["a=investigator", "b=investigator", "--task", "Where is <group>?", "--json"];
    let ran = server.command(&house, &["agents", "run"], &arguments).run().expect(1);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["outcome"], &report["exit_code"]), (&json!("error"), &json!(1)), "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert_eq!(summary, "the members a, b of the group did not complete their tasks");
    let tokens = report["usage"]["input"].as_u64().unwrap();
    assert!(tokens > 0 && report["cost_usd"].is_null(), "{report}");
}

#[test]
fn a_wrong_group_ends_in_2_before_anything_is_asked() {
    let house = House::with_greeter();
    let server = Server::chat([say("never said")]);
    house.write("team.toml", "[[member]]\nname = 'ada'\nagent = 'investigator'\n");
    for (arguments, said) in [
        (&["nobody", "--task", "x"][..], "there is no agent `nobody`"),
        (&["planner", "planner", "--task", "x"], "two members are named `planner`"),
        (&["planner", "--task", " "], "no task"),
        (&["a=planner", "b=planner", "c=planner", "d=planner", "e=planner", "--task", "x"], "1 to 4 members"),
        (&["--group", "team.toml"], "missing field `task`"),
        (&["--group", "none.toml"], "none.toml"),
        (&["planner"], "--task"),
        (&["\u{1b}[2Ja=planner", "--task", "x"], "`\\u{1b}[2Ja` can't be a member's name"),
        (&["=planner", "--task", "x"], "`` can't be a member's name"),
        (&["tester=generalist", "--task", "x"], "can't have the name of another agent"),
        (&["main=generalist", "--task", "x"], "can't have the name of another agent"),
    ] {
        server.command(&house, &["agents", "run"], arguments).run().expect(2).says(&[said]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn only_plan_mode_is_told_to_answer_with_a_plan() {
    let house = House::with_greeter();
    let server = Server::answering(|_, seen| match seen.tools().contains(&"complete_task".to_owned()) {
        true => call("complete_task", found()).into(),
        false => say("It is in greet.sh.").into(),
    });
    for arguments in [&["--agent", "investigator", "look"][..], &["--mode", "plan", "where is it?"]] {
        server.run(&house, arguments).run().expect(0);
    }
    server.command(&house, &["ask"], &["describe the greeting"]).run().expect(0);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        let body = request.body.to_string();
        assert!(body.contains("You can only read: whatever would change something is refused."), "{body}");
        assert!(!body.contains("answer with a plan"), "{body}");
    }
}

#[test]
fn a_call_of_an_agent_that_was_denied_or_failed_is_shown_as_such() {
    let house = House::with_greeter();
    let server = Server::answering(|_, seen| match seen.newest() {
        newest if newest.contains("nowhere.txt") => {
            call("complete_task", json!({ "response": "none" })).into()
        }
        newest if newest.contains("completed its task") => say("Nothing.").into(),
        newest if newest.contains("Look around.") => Step::from(
            call("run_command", json!({ "command": "git push" }))
                .and("read_file", json!({ "path": "nowhere.txt" })),
        ),
        _ => call("task", json!({ "agent": "generalist", "prompt": "Look around." })).into(),
    });
    let ran = server.run(&house, &["look"]).run().expect(6);
    ran.says(&["generalist │ ● run git push", "generalist │   denied", "generalist │   failed"]);
}

#[test]
fn a_question_names_its_agent_and_nothing_is_written_over_it() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let (asked, question) = std::sync::mpsc::channel();
    let question = std::sync::Mutex::new(question);
    let server = Server::answering(move |_, seen| {
        let newest = seen.newest();
        let task = |name: &str| json!({ "agent": "generalist", "prompt": format!("Make {name}.") });
        Step::from(match () {
            () if newest.contains("completed its task") => say("Made."),
            () if newest.contains("doesn't exist") => {
                call("run_command", json!({ "command": "touch -f bob" }))
            }
            () if newest.contains("exit code") => call("complete_task", json!({ "response": "made" })),
            () if newest.contains("Make ada.") => call("run_command", json!({ "command": "touch -f ada" })),
            () if newest.contains("Make bob.") => {
                // Its call comes when the other one's question is on the screen.
                question.lock().unwrap().recv().unwrap();
                call("read_file", json!({ "path": "missing.txt" }))
            }
            () => call("task", task("ada")).and("task", task("bob")),
        })
    });
    let command = server.command(&house, &["run"], &["--mode", "ask", "--no-check", "make both"]);
    let mut person = Person::start(command.env("NO_COLOR", "1").command());
    person.sees("The agent asks: generalist (Make ada.)");
    person.sees("say what to do instead:");
    asked.send(()).unwrap();
    // Bob was told that there is no such file, and asks for the second time.
    server.wait_for(4);
    person.types("y\n");
    person.sees("The agent asks: generalist (Make bob.)");
    person.sees("say what to do instead:");
    person.types("y\n");
    let (_, screen) = person.ends();
    for question in screen.split("say what to do instead:").skip(1) {
        // The echo of the answer comes right behind.
        assert!(question.trim_start_matches(' ').starts_with("y\r\n"), "{screen:?}");
    }
    assert!(screen.contains("generalist │ ● read missing.txt"), "{screen}");
}

#[test]
fn a_tool_that_a_session_does_not_have_is_left_out_with_a_warning() {
    let house = House::with_greeter();
    let front = "description: Helps. When: \"asked\".\ntools: Read, AskUserQuestion, WebSearch, Bash(git:*)\nhooks: {}";
    house.write(".claude/agents/helper.md", format!("---\n{front}\n---\nHelp with ${{this}}.\n"));
    let listed = house.jm(&["agents", "--trust-project"]).run().expect(0);
    listed.says(&["helper.md: no effect here: `hooks`, the tool `Bash(git:*)`"]);
    let server = Server::answering(|_, seen| match seen.newest() {
        newest if newest.contains("completed its task") => say("Helped.").into(),
        newest if newest.contains("Help me.") => call("complete_task", json!({ "result": "done" })).into(),
        _ => call("task", json!({ "agent": "helper", "prompt": "Help me." })).into(),
    });
    let ran = server.run(&house, &["--trust-project", "look"]).run().expect(4);
    let warning = "the agent `helper` works without `ask_user`, `web_search`";
    ran.says(&["1 agent of another product is used in part", warning, "GOAL"]);
    let seen = server.seen();
    let agent = seen.iter().find(|seen| seen.body.to_string().contains("Help with ${this}.")).unwrap();
    assert_eq!(agent.tools(), ["read_file", "complete_task"]);
    let alone = server.run(&house, &["--trust-project", "--agent", "helper", "Help me."]).run().expect(0);
    alone.says(&["no effect here: `hooks`", warning]);
}
