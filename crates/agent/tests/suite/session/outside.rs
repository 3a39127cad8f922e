//! Nothing that a session changed runs outside of the sandbox before a person has seen that very
//! content: configured hooks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use journeyman_agent::hooks::{HookCommand, HookEvent, HooksBuilder};
use journeyman_agent::{Approver, ChecksSetting, PermissionAnswer, RunSettings};
use journeyman_protocol::{Event, Mode, RunOutcome};
use serde_json::json;

use crate::session::support::bench::{Bench, Session, assert_settled, confined, in_mode};
use crate::session::support::model::{Told, calls, result, says};

cases![
    a_formatter_runs_what_the_model_wrote_and_harms_nothing,
    a_formatter_works_and_is_undone,
    a_hook_plants_nothing,
    a_command_that_still_runs_in_the_background_plants_nothing,
    a_guard_finds_its_rules_in_the_home,
    a_guard_that_the_sandbox_hinders_denies,
    a_guard_changes_nothing_of_the_project,
    a_hook_gets_no_network_unless_it_is_configured,
    outside_nothing_runs_that_the_session_decides_about,
    every_event_outside_of_the_sandbox_heeds_what_changed,
    a_person_sees_what_decides_and_is_asked_anew_when_it_changes,
    programs_that_commands_may_have_changed_keep_hooks_in,
];

fn settings(approver: Approver) -> RunSettings {
    RunSettings { approver, checks: ChecksSetting::Off, todos: None, ..in_mode(Mode::Auto) }
}

fn write(id: &'static str, path: &str, content: &str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "write_file", json!({ "path": path, "content": content }))
}

/// A project beside a home with a private key.
struct Place {
    bench: Bench,
    home: PathBuf,
}

impl Place {
    fn new(files: &[(&str, &str)], hooks: &[HookCommand]) -> Self {
        let bench = Bench::new(files);
        let home = bench.outside.join("home");
        for (name, text) in [(".ssh/id_test", "a private key\n"), (".closed", "secret.txt\n")] {
            std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            std::fs::write(home.join(name), text).unwrap();
        }
        let mut variables: BTreeMap<OsString, OsString> =
            std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
        variables.insert("HOME".into(), home.clone().into());
        variables.insert("DEPLOY_TOKEN".into(), "a token".into());
        let hooks = HooksBuilder::new().commands(hooks.iter().cloned()).variables(variables);
        let hooks = hooks.pin_scripts(&bench.root).build();
        Self { bench: bench.with_hooks(hooks), home }
    }
}

/// Reads the key, and writes beside the project.
const ATTACK: &str = "cat \"$HOME/.ssh/id_test\" /*/*/*/home/.ssh/id_test ../home/.ssh/id_test > stolen 2>/dev/null\n\
                      echo \"$DEPLOY_TOKEN\" >> stolen\n(echo x > ../escaped) 2>/dev/null\necho x > ran\n";

/// Runs every settings file of the project, as formatters do.
fn formatter() -> HookCommand {
    HookCommand::new(HookEvent::PostTool, "cat > /dev/null; for f in *.conf; do . \"./$f\"; done")
}

async fn a_formatter_runs_what_the_model_wrote_and_harms_nothing() {
    if !confined().await {
        return;
    }
    let mut place = Place::new(&[], &[formatter()]);
    let told = Told::new([calls([write("c1", "fmt.conf", ATTACK)]), says("done")]);
    place.bench.run(&told, settings(Approver::Nobody)).await;
    assert_eq!(place.bench.file("ran").as_deref(), Some("x\n"), "{}", told.heard());
    assert_eq!(place.bench.file("stolen").as_deref(), Some("\n"));
    assert!(!place.bench.outside.join("escaped").exists());
    assert_eq!(std::fs::read_to_string(place.home.join(".ssh/id_test")).unwrap(), "a private key\n");
}

async fn a_formatter_works_and_is_undone() {
    if !confined().await {
        return;
    }
    let command = "path=$(sed 's/.*\"path\":\"\\([^\"]*\\)\".*/\\1/'); printf 'formatted\\n' >> \"$path\"";
    let mut place = Place::new(&[("a.txt", "old\n")], &[HookCommand::new(HookEvent::PostTool, command)]);
    let edit = ("c1", "edit_file", json!({"path": "a.txt", "search": "old\n", "replace": "new\n"}));
    let told = Told::new([calls([edit]), says("done")]);
    place.bench.run(&told, settings(Approver::Nobody)).await;
    assert_eq!(place.bench.file("a.txt").as_deref(), Some("new\nformatted\n"));
    assert!(result(&told.requests()[1], "c1").contains("a hook changed a.txt"));
    place.bench.undo().unwrap();
    assert_eq!(place.bench.file("a.txt").as_deref(), Some("old\n"));
    assert_settled(&place.bench);
}

async fn a_hook_plants_nothing() {
    if !confined().await {
        return;
    }
    let script =
        "mkdir -p x/.git/objects x/.git/refs; echo 'ref: x' > x/.git/HEAD; echo evil >> .envrc 2>/dev/null\n";
    let mut place = Place::new(&[(".envrc", "mine\n")], &[formatter()]);
    let told = Told::new([calls([write("c1", "fmt.conf", script)]), says("done")]);
    let mut session = place.bench.start(&told, settings(Approver::Nobody));
    session.handle.send("do it").await.unwrap();
    let told = session.until(|event| matches!(event, Event::GuardViolated { .. } | Event::Done { .. })).await;
    let Event::GuardViolated { violations, .. } = told else { panic!("{told:?}") };
    let paths: Vec<String> = violations.iter().map(|violation| violation.path.to_string()).collect();
    assert_eq!(paths, ["x/.git"]);
    session.handle.wait_until_finished().await.unwrap();
    assert!(!place.bench.root.join("x/.git").exists());
    assert_eq!(place.bench.file(".envrc").as_deref(), Some("mine\n"));
}

async fn a_command_that_still_runs_in_the_background_plants_nothing() {
    if !confined().await {
        return;
    }
    let script = "mkdir .vscode; echo evil > .vscode/settings.json; echo planted; sleep 600\n";
    let mut bench = Bench::new(&[("serve.sh", script)]);
    let told = Told::new([
        calls([("c1", "run_command", json!({ "command": "sh serve.sh", "background": true }))]),
        calls([("c2", "command_output", json!({ "id": "b2", "wait_s": 60 }))]),
        says("done"),
    ]);
    let mut session = bench.start(&told, settings(Approver::Nobody));
    session.handle.send("do it").await.unwrap();
    let done = session.until(|event| matches!(event, Event::Done { .. })).await;
    let Event::Done { report } = done else { panic!("{done:?}") };
    assert!(told.heard().contains("planted"), "{}", told.heard());
    let paths: Vec<String> = report.violations.iter().map(|violation| violation.path.to_string()).collect();
    assert_eq!((paths, report.outcome), (vec![".vscode".to_owned()], RunOutcome::Unverified));
    assert!(!bench.root.join(".vscode").exists());
}

/// Forbids what a list in the home names.
const GUARD: &str =
    "cat > /dev/null; grep -q secret.txt \"$HOME/.closed\" && { echo closed >&2; exit 2; }; exit 0";

async fn a_guard_finds_its_rules_in_the_home() {
    if !confined().await {
        return;
    }
    let mut place = Place::new(&[], &[HookCommand::new(HookEvent::PreTool, GUARD)]);
    let told = Told::new([calls([write("c1", "secret.txt", "x")]), says("done")]);
    place.bench.run(&told, settings(Approver::Nobody)).await;
    assert_eq!(result(&told.requests()[1], "c1"), "denied by a hook: closed");
    assert_eq!(place.bench.file("secret.txt"), None);
}

async fn a_guard_that_the_sandbox_hinders_denies() {
    if !confined().await {
        return;
    }
    for command in [
        // Not shown: it isn't even started.
        "grep -q x ~/.ssh/id_test",
        // Not writable: it ends with neither 0 nor 2.
        "echo asked >> \"$HOME/.closed\" || exit 3",
    ] {
        let mut place = Place::new(&[], &[HookCommand::new(HookEvent::PreTool, command)]);
        let told = Told::new([calls([write("c1", "a.txt", "x")]), says("done")]);
        place.bench.run(&told, settings(Approver::Nobody)).await;
        let heard = result(&told.requests()[1], "c1");
        assert!(heard.starts_with("denied by a hook: the hook `"), "{command}: {heard}");
        assert!(heard.contains("sandbox"), "{command}: {heard}");
        assert_eq!(place.bench.file("a.txt"), None);
    }
    // With leave it works.
    let mut hook = HookCommand::new(HookEvent::PreTool, "echo asked >> \"$HOME/logs/log\" || exit 3");
    hook.write = vec!["~/logs".into()];
    let mut place = Place::new(&[], &[hook]);
    std::fs::create_dir(place.home.join("logs")).unwrap();
    let told = Told::new([calls([write("c1", "a.txt", "x")]), says("done")]);
    place.bench.run(&told, settings(Approver::Nobody)).await;
    assert_eq!(place.bench.file("a.txt").as_deref(), Some("x"), "{}", told.heard());
    assert_eq!(std::fs::read_to_string(place.home.join("logs/log")).unwrap(), "asked\n");
}

async fn a_guard_changes_nothing_of_the_project() {
    if !confined().await {
        return;
    }
    let command = "echo x > planted; exit 0";
    for event in HookEvent::ALL.into_iter().filter(|event| !event.may_write()) {
        let mut place = Place::new(&[], &[HookCommand::new(event, command)]);
        let told = Told::new([calls([write("c1", "a.txt", "x")]), says("done")]);
        let session = place.bench.start(&told, settings(Approver::Nobody));
        session.handle.send("do it").await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        session.handle.close().await;
        assert_eq!(place.bench.file("planted"), None, "{event}");
    }
}

async fn a_hook_gets_no_network_unless_it_is_configured() {
    if !confined().await {
        return;
    }
    // The names of the interfaces that are up tell.
    let command = "test \"$(grep -vc ' lo:' /proc/net/dev)\" -gt 2 && { echo net >&2; exit 2; }; exit 0";
    for network in [journeyman_sandbox::Network::Off, journeyman_sandbox::Network::Host] {
        let host = network == journeyman_sandbox::Network::Host;
        let others = std::fs::read_to_string("/proc/net/dev").unwrap().lines().count() > 3;
        let mut hook = HookCommand::new(HookEvent::PreTool, command);
        hook.network = network;
        let mut place = Place::new(&[], &[hook]);
        let told = Told::new([calls([write("c1", "a.txt", "x")]), says("done")]);
        place.bench.run(&told, settings(Approver::Nobody)).await;
        assert_eq!(place.bench.file("a.txt").is_none(), host && others, "{}", told.heard());
    }
}

fn outside(event: HookEvent, command: &str) -> HookCommand {
    HookCommand { sandbox: false, ..HookCommand::new(event, command) }
}

async fn outside_nothing_runs_that_the_session_decides_about() {
    for (changed, text) in [
        // Obeyed by what programs do, named by a script that the hook names, and harmless.
        ("package.json", "{}"),
        ("tools/lint.sh", "echo x > ../../escaped"),
        ("notes.txt", "x"),
    ] {
        let log = "echo \"$PATH\" >> ../ran";
        let hook = outside(HookEvent::PreTool, &format!("{log}; sh hooks/guard.sh"));
        let files = [("hooks/guard.sh", "test -e tools/lint.sh && sh ./tools/lint.sh\nexit 0\n")];
        let mut place = Place::new(&files, &[hook]);
        let step = |id, name| calls([write(id, name, text)]);
        let told = Told::new([step("c1", changed), step("c2", "b.txt"), says("done")]);
        place.bench.run(&told, settings(Approver::Nobody)).await;
        let heard = result(&told.requests()[2], "c2");
        let ran = std::fs::read_to_string(place.bench.outside.join("ran")).unwrap();
        if changed == "notes.txt" {
            assert_eq!(
                (ran.lines().count(), place.bench.file("b.txt").as_deref()),
                (2, Some("x")),
                "{heard}"
            );
        } else {
            assert!(
                heard.contains("was not run outside of the sandbox") && heard.contains(changed),
                "{heard}"
            );
            assert_eq!((ran.lines().count(), place.bench.file("b.txt")), (1, None));
        }
        assert!(!place.bench.outside.join("escaped").exists());
    }
}

async fn every_event_outside_of_the_sandbox_heeds_what_changed() {
    for event in HookEvent::ALL {
        // The first task changes what programs obey; whatever runs after that is the second one's.
        let mut place = Place::new(&[], &[outside(event, &format!("echo {event} >> ../ran"))]);
        let told = Told::new([
            calls([write("c1", "Makefile", "all:\n\techo evil\n")]),
            says("done"),
            calls([write("c2", "b.txt", "x")]),
            says("done"),
        ]);
        let session = place.bench.start(&told, settings(Approver::Nobody));
        session.handle.send("do it").await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        let ran = || std::fs::read_to_string(place.bench.outside.join("ran")).unwrap_or_default();
        let before = ran();
        session.handle.send("go on").await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        session.handle.close().await;
        assert_eq!(ran(), before, "{event}");
        assert!(place.bench.root.join("Makefile").exists());
    }
}

/// Waits for the question about a hook, and gives what it shows.
async fn asked(session: &mut Session) -> (journeyman_protocol::CallId, serde_json::Value) {
    let event =
        session.until(|event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. })).await;
    let Event::PermissionRequired { call, tool, input, .. } = event else { panic!("{event:?}") };
    assert_eq!(tool, "hook");
    (call, input)
}

async fn a_person_sees_what_decides_and_is_asked_anew_when_it_changes() {
    let mut place = Place::new(&[], &[outside(HookEvent::PreTool, "echo x >> ../ran")]);
    let told = Told::new([
        calls([write("c1", "Makefile", "one:\n")]),
        calls([write("c2", "b.txt", "x")]),
        calls([write("c3", "c.txt", "x")]),
        calls([("c4", "edit_file", json!({"path": "Makefile", "search": "one:", "replace": "two:"}))]),
        calls([write("c5", "d.txt", "x")]),
        says("done"),
    ]);
    let mut session = place.bench.start(&told, settings(Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let (call, shown) = asked(&mut session).await;
    assert_eq!((&shown["Makefile"], &shown["event"]), (&json!("one:\n"), &json!("pre_tool")));
    assert!(session.handle.decide(&call, PermissionAnswer::allow()));
    let (call, shown) = asked(&mut session).await;
    assert_eq!(shown["Makefile"], json!("two:\n"));
    assert!(session.handle.decide(&call, PermissionAnswer::deny()));
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(std::fs::read_to_string(place.bench.outside.join("ran")).unwrap(), "x\n".repeat(4));
    let files = ["b.txt", "c.txt", "d.txt"].map(|name| place.bench.file(name).is_some());
    assert_eq!(files, [true, true, false], "{}", told.heard());
}

async fn programs_that_commands_may_have_changed_keep_hooks_in() {
    if !confined().await {
        return;
    }
    let files = [(".gitignore", "node_modules/\n"), ("node_modules/.bin/eslint", "exit 0\n")];
    let mut place = Place::new(&files, &[outside(HookEvent::PreTool, "echo x >> ../ran")]);
    let command = ("c1", "run_command", json!({"command": "echo evil > node_modules/x.js"}));
    let told = Told::new([calls([command]), calls([write("c2", "b.txt", "x")]), says("done")]);
    place.bench.run(&told, settings(Approver::Nobody)).await;
    let heard = result(&told.requests()[2], "c2");
    assert!(heard.contains("node_modules"), "{heard}");
    assert_eq!(std::fs::read_to_string(place.bench.outside.join("ran")).unwrap(), "x\n");
}
