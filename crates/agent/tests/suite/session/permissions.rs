//! Who may do what: every mode with every kind of call, and what a person's answer reaches.

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, Record, RunSettings};
use journeyman_model::ModelRequest;
use journeyman_protocol::{CallId, CallState, Decision, Event, Mode, RunOutcome};
use serde_json::{Value, json};

use crate::session::support::bench::{Bench, Session, auto, confined, in_mode, unconfined};
use crate::session::support::model::{Told, call, calls, calls_of, result, says};

cases![
    every_mode_and_every_kind_of_call,
    nobody_is_never_waited_for,
    nobody_is_asked_about_an_edit_that_cannot_be_made,
    an_answer_reaches_one_call,
    a_denial_reaches_the_model,
    allowed_for_the_session_is_the_same_call_only,
    what_reaches_outside_is_asked_every_time,
    an_answer_to_nothing_says_so,
    without_confinement_auto_is_edit,
    rules_deny_in_every_mode_also_where_checks_are_known,
    rules_allow_what_the_mode_would_ask_about,
    what_a_rule_asks_about_is_asked_every_time,
    always_holds_for_the_words_that_were_shown,
    a_log_that_was_taken_in_allows_nothing_that_reaches_outside,
    checks_are_judged_by_rules_too,
    a_link_that_a_call_of_the_same_reply_makes_leads_nowhere_new,
];

use Decision::{Allow, Ask, Deny};

/// A call of each kind, and what plan, ask, edit and auto say of it.
fn kinds() -> [(&'static str, &'static str, Value, [Decision; 4]); 6] {
    [
        ("read", "read_file", json!({ "path": "a.txt" }), [Allow, Allow, Allow, Allow]),
        ("look", "run_command", json!({ "command": "cat a.txt" }), [Allow, Allow, Allow, Allow]),
        ("edit", "write_file", json!({ "path": "b.txt", "content": "b\n" }), [Deny, Ask, Allow, Allow]),
        ("check", "run_command", json!({ "command": "test -f a.txt" }), [Deny, Ask, Allow, Allow]),
        ("other", "run_command", json!({ "command": "touch -f made" }), [Deny, Ask, Ask, Allow]),
        ("outside", "run_command", json!({ "command": "git push origin main" }), [Deny, Ask, Ask, Ask]),
    ]
}

fn settings(mode: Mode, approver: Approver) -> RunSettings {
    let checks = ChecksSetting::Custom(vec!["test -f a.txt".to_owned()]);
    RunSettings { approver, checks, ..in_mode(mode) }
}

/// Answers every question alike until the task ends; gives the calls that were asked about.
async fn answering(session: &mut Session, answer: &PermissionAnswer) -> Vec<CallId> {
    let mut asked = Vec::new();
    loop {
        let event = session
            .until(|event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. }))
            .await;
        let Event::PermissionRequired { call, .. } = event else { return asked };
        assert!(session.handle.decide(&call, answer.clone()));
        assert!(!session.handle.decide(&call, answer.clone()), "a second answer");
        asked.push(call);
    }
}

async fn every_mode_and_every_kind_of_call() {
    if !confined().await {
        return;
    }
    for (column, mode) in Mode::ALL.into_iter().enumerate() {
        for (name, tool, input, decisions) in kinds() {
            let row = format!("{mode} {name}");
            let mut bench = Bench::new(&[("a.txt", "a\n")]);
            let told = Told::new([calls([(name, tool, input)]), says("done")]);
            let mut session = bench.start(&told, settings(mode, Approver::Handle));
            session.handle.send("do it").await.unwrap();
            let asked = answering(&mut session, &PermissionAnswer::allow()).await;
            assert_eq!(!asked.is_empty(), decisions[column] == Ask, "{row}");
            let states = bench.log.states(name);
            assert_eq!(
                states.contains(&CallState::Executing),
                decisions[column] != Deny,
                "{row}: {states:?}"
            );
            assert_eq!(states.contains(&CallState::ApprovalRequired), decisions[column] == Ask, "{row}");
            let first_verdict = bench.log.records().into_iter().find_map(|record| match record {
                Record::Call(transition) => transition.verdict,
                _ => None,
            });
            assert_eq!(first_verdict.unwrap().decision, decisions[column], "{row}");
            if decisions[column] == Deny {
                let said = result(&told.requests()[1], name);
                assert!(said.starts_with("denied: plan mode only reads; "), "{row}: {said}");
                assert_eq!(states, [CallState::Pending, CallState::Denied], "{row}");
            }
        }
    }
}

async fn nobody_is_asked_about_an_edit_that_cannot_be_made() {
    let edit = |search: &str| json!({ "path": "a.txt", "search": search, "replace": "b" });
    let (wrong, right) = ("nowhere in it", "a");
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let told = Told::new([
        calls([("futile", "edit_file", edit(wrong))]),
        // The first of these may make the place of the second.
        calls([("good", "edit_file", edit(right)), ("after it", "edit_file", edit(wrong))]),
        says("done"),
    ]);
    let settings =
        RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, ..in_mode(Mode::Ask) };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    let asked = answering(&mut session, &PermissionAnswer::allow()).await;
    assert_eq!(asked, [CallId::new("good"), CallId::new("after it")]);
    assert_eq!(bench.log.states("futile"), [CallState::Pending, CallState::Failed]);
    let said = [result(&told.requests()[1], "futile"), result(&told.requests()[2], "after it")];
    assert!(said.iter().all(|said| said.starts_with("`a.txt`: ")), "{said:?}");
    assert_eq!(bench.file("a.txt").as_deref(), Some("b\n"));
}

async fn nobody_is_never_waited_for() {
    if !confined().await {
        return;
    }
    for (column, mode) in Mode::ALL.into_iter().enumerate() {
        for (name, tool, input, decisions) in kinds() {
            let row = format!("{mode} {name}");
            let mut bench = Bench::new(&[("a.txt", "a\n")]);
            let told = Told::new([calls([(name, tool, input)]), says("done")]);
            let report = bench.run(&told, settings(mode, Approver::Nobody)).await;
            let ran = bench.log.states(name).contains(&CallState::Executing);
            assert_eq!(ran, decisions[column] == Allow, "{row}");
            assert_eq!(report.outcome == RunOutcome::PermissionNeeded, decisions[column] == Ask, "{row}");
            if decisions[column] == Ask {
                let said = result(&told.requests()[1], name);
                assert!(said.contains("nobody can be asked here"), "{row}: {said}");
                assert_eq!([bench.file("b.txt"), bench.file("made")], [None, None], "{row}");
                let decided = bench.log.events().into_iter().find_map(|event| match event {
                    Event::PermissionDecided { allowed, by, .. } => Some((allowed, by)),
                    _ => None,
                });
                assert_eq!(decided, Some((false, "headless".to_owned())), "{row}");
            }
        }
    }
}

/// Runs these calls one a turn, answering every question alike; gives the ids of those that were
/// asked.
async fn asked_of(
    mode: Mode,
    inputs: &[(&str, &str, Value)],
    answer: PermissionAnswer,
) -> (Vec<String>, ModelRequest) {
    asked_with("", mode, inputs, answer).await
}

/// The same where the user has rules.
async fn asked_with(
    rules: &str,
    mode: Mode,
    inputs: &[(&str, &str, Value)],
    answer: PermissionAnswer,
) -> (Vec<String>, ModelRequest) {
    let mut bench = Bench::new(&[("a/x.txt", "x\n"), ("b/x.txt", "x\n")]).with_rules(rules);
    let steps = inputs.iter().map(|(id, tool, input)| calls_of(vec![call(id, tool, input.clone())]));
    let told = Told::new(steps.chain([says("done")]).collect::<Vec<_>>());
    let mut session = bench.start(&told, settings(mode, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let asked = answering(&mut session, &answer).await;
    (asked.iter().map(ToString::to_string).collect(), told.requests().pop().unwrap())
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

async fn an_answer_reaches_one_call() {
    let inputs = [("c1", "run_command", run("touch -f made")), ("c2", "run_command", run("touch -f made"))];
    let (asked, _) = asked_of(Mode::Edit, &inputs, PermissionAnswer::allow()).await;
    assert_eq!(asked, ["c1", "c2"]);
}

async fn a_denial_reaches_the_model() {
    let inputs = [("c1", "run_command", run("touch -f made"))];
    for (note, words) in [
        (Some("use make instead"), "denied by the user: use make instead"),
        (None, "denied by the user; don't try it again another way without asking"),
    ] {
        let answer = PermissionAnswer::Deny { note: note.map(str::to_owned) };
        let (asked, heard) = asked_of(Mode::Edit, &inputs, answer).await;
        assert_eq!((asked.as_slice(), result(&heard, "c1").as_str()), (&["c1".to_owned()][..], words));
    }
}

/// The same command in the same place; the same file. Nothing else rides on it.
async fn allowed_for_the_session_is_the_same_call_only() {
    let in_directory = |directory: &str| json!({ "command": "touch -f made", "directory": directory });
    let write = |path: &str, content: &str| json!({ "path": path, "content": content });
    let inputs = [
        ("first", "run_command", run("touch -f made")),
        ("same", "run_command", run("touch -f made")),
        ("longer", "run_command", run("touch -f made too")),
        ("elsewhere", "run_command", in_directory("a")),
        ("elsewhere again", "run_command", in_directory("a")),
        ("third place", "run_command", in_directory("b")),
        ("file", "write_file", write("c.txt", "1\n")),
        ("file again", "write_file", write("c.txt", "2\n")),
        ("other file", "write_file", write("d.txt", "1\n")),
        ("other tool", "edit_file", json!({ "path": "c.txt", "search": "2", "replace": "3" })),
    ];
    let (asked, _) = asked_of(Mode::Ask, &inputs, PermissionAnswer::allow_rule()).await;
    assert_eq!(asked, ["first", "longer", "elsewhere", "third place", "file", "other file", "other tool"]);
}

async fn what_reaches_outside_is_asked_every_time() {
    let push = || run("git push origin main");
    let inputs = [("c1", "run_command", push()), ("c2", "run_command", push())];
    let (asked, _) = asked_of(Mode::Auto, &inputs, PermissionAnswer::allow_rule()).await;
    assert_eq!(asked, ["c1", "c2"]);
}

async fn an_answer_to_nothing_says_so() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("done")]);
    let session = bench.start(&told, auto());
    assert!(!session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()));
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert!(!session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()));
}

/// A user who allowed unconfined commands by name gets no less in `auto` than in `edit`.
async fn without_confinement_auto_is_edit() {
    for mode in [Mode::Edit, Mode::Auto] {
        let mut bench = Bench::new(&[]).unconfined();
        let told = Told::new([
            calls([
                ("write", "write_file", json!({ "path": "a.txt", "content": "a\n" })),
                ("run", "run_command", run("touch -f made")),
            ]),
            says("done"),
        ]);
        let report = bench.run(&told, unconfined(in_mode(mode))).await;
        assert_eq!(bench.log.states("write").last(), Some(&CallState::Completed), "{mode}");
        assert_eq!(bench.log.states("run").last(), Some(&CallState::Denied), "{mode}");
        // Nor do checks run unasked: what they run is the project's.
        assert_eq!(report.outcome, RunOutcome::Unverified, "{mode}: {}", report.summary);
    }
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "new\n" })
}

/// The checks that are found when a task is opened don't take the rules away.
async fn rules_deny_in_every_mode_also_where_checks_are_known() {
    let rules = "[[rule]]\nname = 'no touch'\ncommand = ['touch']\ndecision = 'deny'\nreason = 'it is of no use'\n\
                 [[rule]]\npaths = ['kept/**']\ndecision = 'deny'";
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        let inputs = [
            ("plain", "run_command", run("touch -f made")),
            ("wrapped", "run_command", run("true && sh -c 'env touch -f made'")),
            ("file", "write_file", write("kept/x.txt")),
        ];
        let (asked, heard) = asked_with(rules, mode, &inputs, PermissionAnswer::allow()).await;
        assert!(asked.is_empty(), "{mode}: {asked:?}");
        let said = result(&heard, "plain");
        assert_eq!(said, "denied: your rule `no touch` forbids `touch -f made`: it is of no use", "{mode}");
        assert!(result(&heard, "wrapped").starts_with("denied: your rule `no touch` forbids"), "{mode}");
        assert!(
            result(&heard, "file")
                .starts_with("denied: your rule (on kept/**) forbids write_file kept/x.txt"),
            "{mode}: {}",
            result(&heard, "file")
        );
    }
}

async fn rules_allow_what_the_mode_would_ask_about() {
    let rules = "[[rule]]\ntools = ['write_file']\npaths = ['docs/**']\ndecision = 'allow'";
    let inputs = [("docs", "write_file", write("docs/a.md")), ("other", "write_file", write("b.md"))];
    let (asked, heard) = asked_with(rules, Mode::Ask, &inputs, PermissionAnswer::allow()).await;
    assert_eq!(asked, ["other"], "{}", result(&heard, "docs"));
}

async fn what_a_rule_asks_about_is_asked_every_time() {
    let mut bench = Bench::new(&[]).with_rules("[[rule]]\npaths = ['b.txt']\ndecision = 'ask'");
    let inputs = [("c1", "write_file", write("b.txt")), ("c2", "write_file", write("b.txt"))];
    let told = Told::new([calls(inputs), says("done")]);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    for _ in 0..2 {
        let event = session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
        let Event::PermissionRequired { call, rule, verdict, .. } = event else { unreachable!() };
        assert_eq!(rule, None, "`always` can't be said to it");
        assert_eq!(verdict.rules, ["user: policy.toml:1"]);
        assert!(session.handle.decide(&call, PermissionAnswer::allow_rule()));
    }
    session.handle.wait_until_finished().await.unwrap();
    assert!(bench.state().await.allowed.is_empty());
}

/// A program's words, whatever harmless stands beside it; no other words, and no other directory.
async fn always_holds_for_the_words_that_were_shown() {
    if !confined().await {
        return;
    }
    let inputs = [
        ("first", "run_command", run("touch -f made")),
        ("beside", "run_command", run("ls; touch -f made")),
        ("other", "run_command", run("touch -f made other")),
        ("both", "run_command", run("touch -f made && touch -f made other")),
        ("hidden", "run_command", run("touch -f $(echo made)")),
    ];
    let (asked, _) = asked_of(Mode::Edit, &inputs, PermissionAnswer::allow_rule()).await;
    assert_eq!(asked, ["first", "other", "hidden"]);
}

async fn a_log_that_was_taken_in_allows_nothing_that_reaches_outside() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([calls([("c1", "write_file", write("a.txt"))]), says("done")]);
    let session = bench.start(&told, settings(Mode::Ask, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    session.handle.close().await;
    let push = "[[rule]]\nexact = 'git push origin main'\ndecision = 'allow'";
    let note = "[[rule]]\npaths = ['b.txt']\ndecision = 'allow'";
    for rule in [push, note, "write_file on c.txt"] {
        bench.note(&Record::Allowed { rule: rule.to_owned() }).await;
    }
    let told = Told::new([
        calls([
            ("push", "run_command", run("git push origin main")),
            ("noted", "write_file", write("b.txt")),
            ("older", "write_file", write("c.txt")),
        ]),
        says("done"),
    ]);
    let mut session =
        bench.resume(&told, settings(Mode::Ask, Approver::Handle), CutOffPolicy::Close).await.unwrap();
    session.handle.send("go on").await.unwrap();
    let asked = answering(&mut session, &PermissionAnswer::deny()).await;
    assert_eq!(asked, [CallId::new("push"), CallId::new("older")]);
}

async fn checks_are_judged_by_rules_too() {
    if !confined().await {
        return;
    }
    for (decision, outcome) in
        [("deny", RunOutcome::Unverified), ("ask", RunOutcome::Unverified), ("allow", RunOutcome::Verified)]
    {
        let rule = format!(
            "[[rule]]\ntools = ['check']\ncommand = ['test', '-f', 'a.txt']\ndecision = '{decision}'"
        );
        let mut bench = Bench::new(&[("a.txt", "a\n")]).with_rules(&rule);
        let told = Told::new([calls([("c1", "write_file", write("b.txt"))]), says("done")]);
        let report = bench.run(&told, settings(Mode::Edit, Approver::Nobody)).await;
        assert_eq!(report.outcome, outcome, "{decision}: {}", report.summary);
    }
}

async fn a_link_that_a_call_of_the_same_reply_makes_leads_nowhere_new() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("secrets/key", "mine\n")])
        .with_rules("[[rule]]\ndecision = 'deny'\npaths = ['secrets/**']\n");
    // The rule doesn't see the name.
    let link = r#"ln -s .envrc env; ln -s "$(printf secr; printf ets)" open"#;
    let told = Told::new([
        calls([
            ("link", "run_command", json!({ "command": link })),
            ("write", "write_file", json!({ "path": "env", "content": "new\n" })),
            ("read", "read_file", json!({ "path": "open/key" })),
        ]),
        says("done"),
    ]);
    bench.run(&told, RunSettings { checks: ChecksSetting::Off, ..in_mode(Mode::Auto) }).await;
    assert_eq!(bench.file(".envrc"), None, "nobody has allowed it");
    for (id, target) in [("write", ".envrc"), ("read", "secrets/key")] {
        let said = result(&told.requests()[1], id);
        let expected = format!("its path has become a link to `{target}`; make the call again");
        assert!(said.ends_with(&expected), "{said}");
    }
}
