//! What goes wrong with hooks.

use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use journeyman_agent::hooks::{MAX_HOOK_OUTPUT_BYTES, MAX_HOOK_TEXT_CHARS, PreToolDecision, PreToolResult};
use rustix::fs::OFlags;

use super::support::{Project, bash, before, configured, denied, pipe, reason_of};

#[tokio::test]
async fn a_hook_that_hangs_denies_the_call_and_its_processes_end() {
    let project = Project::new();
    let path = pipe(&project, "alive");
    // Without waiting for a writer: on a busy machine the hook may be stopped before it has become
    // one.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    let mut alive = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap();
    let hooks = project.hooks(&configured(
        "PreToolUse",
        "",
        "exec 3> alive; echo started >&3; sleep 100000 & sleep 100000",
        ", timeout = 0.5",
    ));
    let said = before(&project, &hooks, bash("ls")).await;
    assert!(reason_of(&said.decision).contains("did not end within 0.5 s"), "{said:?}");
    // The pipe ends when the last process that holds it has.
    rustix::fs::fcntl_setfl(&alive, OFlags::empty()).unwrap();
    tokio::task::spawn_blocking(move || alive.read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_interrupt_and_a_dropped_session_end_a_hooks_processes() {
    let project = Project::new();
    let path = pipe(&project, "alive");
    for by_token in [true, false] {
        let path = path.clone();
        let (began, begun) = tokio::sync::oneshot::channel();
        let end = tokio::task::spawn_blocking(move || {
            let mut file = std::fs::File::open(path).unwrap();
            let mut first = [0; 8];
            file.read_exact(&mut first).unwrap();
            began.send(()).unwrap();
            let mut rest = Vec::new();
            file.read_to_end(&mut rest).unwrap();
        });
        let hooks =
            project.hook("PreToolUse", "exec 3> alive; echo started >&3; sleep 100000 & sleep 100000");
        let at = project.at();
        let (call, effects) = bash("ls");
        if by_token {
            let stop = async {
                begun.await.unwrap();
                at.cancel.cancel();
            };
            let (said, ()) = tokio::join!(hooks.run_pre_tool(&at, &call, &effects), stop);
            assert_eq!(said.decision, denied("interrupted"));
        } else {
            tokio::select! {
                said = hooks.run_pre_tool(&at, &call, &effects) => panic!("{said:?}"),
                begun = begun => begun.unwrap(),
            }
        }
        end.await.unwrap();
    }
}

#[tokio::test]
async fn a_hook_that_dies_or_cannot_start_denies_and_one_that_merely_fails_warns() {
    let project =
        Project::new().script("dies.sh", "#!/bin/sh\nkill -9 $$\n").script("plain", "not a program");
    std::fs::set_permissions(project.root().join("plain"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for (command, part) in [
        ("kill -9 $$", "was killed by signal 9"),
        ("./dies.sh; exit $?", "was killed by signal 9"),
        ("./dies.sh", "was killed by signal 9"),
        ("no-such-program-here --guard", "could not be started"),
        ("./hooks/gone.sh", "could not be started"),
        ("./plain", "could not be started"),
    ] {
        let hooks = project.hook("PreToolUse", command);
        let said = before(&project, &hooks, bash("ls")).await;
        assert!(matches!(said.decision, PreToolDecision::Deny { .. }), "{command}: {said:?}");
        assert!(reason_of(&said.decision).contains(part), "{command}: {said:?}");
    }
    let hooks = project.hook("PreToolUse", "echo oops >&2; exit 1");
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!(said.decision, PreToolDecision::Go);
    assert_eq!(said.notes.warnings, ["the hook `echo oops >&2; exit 1` ended with exit code 1: oops"]);
    // Without its directory nothing can be started at all.
    let mut at = project.at();
    at.root = project.root().join("gone");
    let (call, effects) = bash("ls");
    let said = hooks.run_pre_tool(&at, &call, &effects).await;
    assert!(reason_of(&said.decision).contains("could not be started"), "{said:?}");
}

#[tokio::test]
async fn output_is_bounded_and_a_cut_json_answer_counts_as_a_failure() {
    let project = Project::new();
    let much = "head -c 10000000 /dev/zero | tr '\\0' x";
    let hooks = project.hook("PreToolUse", much);
    let said = before(&project, &hooks, bash("ls")).await;
    let length = said.notes.context[0].chars().count();
    assert!((MAX_HOOK_TEXT_CHARS..MAX_HOOK_TEXT_CHARS + 100).contains(&length), "{length}");
    assert_eq!(said.decision, PreToolDecision::Go);

    let hooks = project.hook("PreToolUse", &format!("{{ {much}; }} >&2; exit 2"));
    let said = before(&project, &hooks, bash("ls")).await;
    assert!(
        reason_of(&said.decision).len() < MAX_HOOK_TEXT_CHARS + 100
            && reason_of(&said.decision).starts_with("xxx")
    );

    let hooks = project
        .hook("PreToolUse", &format!("printf '{{\"decision\":\"block\",\"reason\":\"'; {much}; echo '\"}}'"));
    let said = before(&project, &hooks, bash("ls")).await;
    assert!(reason_of(&said.decision).contains(&MAX_HOOK_OUTPUT_BYTES.to_string()), "{said:?}");
}

#[tokio::test]
async fn input_that_nobody_reads_and_input_that_is_large_are_no_trouble() {
    let project = Project::new();
    let large = bash(&"x".repeat(2_000_000));
    let hooks = project.hook("PreToolUse", "exit 0");
    assert_eq!(before(&project, &hooks, large.clone()).await, PreToolResult::default());
    let hooks = project.hook("PreToolUse", "exec <&-; echo ok");
    assert_eq!(before(&project, &hooks, large.clone()).await.notes.context, ["ok"]);
    let hooks = project.hook("PreToolUse", "test $(wc -c) -gt 2000000 && echo all");
    assert_eq!(before(&project, &hooks, large).await.notes.context, ["all"]);
}

#[tokio::test]
async fn what_is_neither_json_nor_text_breaks_nothing() {
    let project = Project::new();
    let hooks = project.hook("PreToolUse", "echo '{\"decision\": deny}'");
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!(
        (said.decision, said.notes.context.len(), said.notes.warnings.len()),
        (PreToolDecision::Go, 0, 1)
    );

    let hooks = project.hook("PreToolUse", r"printf '\377\376 bad \033[2J' >&2; exit 2");
    assert_eq!(before(&project, &hooks, bash("ls")).await.decision, denied("\u{fffd}\u{fffd} bad [2J"));

    for quiet in ["echo '[1,2]' > /dev/null", "printf ''", "echo; echo"] {
        let hooks = project.hook("PreToolUse", quiet);
        assert_eq!(before(&project, &hooks, bash("ls")).await, PreToolResult::default(), "{quiet}");
    }
    let hooks = project.hook("PreToolUse", r#"echo '{"hookSpecificOutput":{"updatedInput":"rm"}}'"#);
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!((said.input, said.notes.warnings.len()), (None, 1));
}

#[tokio::test]
async fn a_child_that_lives_on_and_holds_the_pipes_does_not_hold_up_the_call() {
    let project = Project::new();
    let up = pipe(&project, "up");
    let leave = pipe(&project, "leave");
    // Both ends, so that nobody waits for the other one to open it.
    let leave = std::fs::OpenOptions::new().read(true).write(true).open(leave).unwrap();
    // What stays behind holds all of the hook's pipes until `leave` is closed.
    for (command, stays) in [
        (
            "setsid sh stay & echo '{\"decision\":\"block\",\"reason\":\"no\"}'",
            "exec 3< leave; echo up > up; cat <&3",
        ),
        ("sh stay & echo no >&2; exit 2", "exec 3< leave; echo up > up; cat <&3"),
    ] {
        std::fs::write(project.root().join("stay"), stays).unwrap();
        let hooks = project.hook("PreToolUse", command);
        let up = up.clone();
        let is_up = tokio::task::spawn_blocking(move || std::fs::read_to_string(up).unwrap());
        assert_eq!(before(&project, &hooks, bash("ls")).await.decision, denied("no"));
        assert_eq!(is_up.await.unwrap(), "up\n");
    }
    drop(leave);
}

#[tokio::test]
async fn a_script_that_changes_while_the_session_runs_is_not_started_any_more() {
    let project = Project::new().script("guard.sh", "#!/bin/sh\necho no >&2; exit 2\n");
    let hooks = project.hook("PreToolUse", "./guard.sh");
    assert_eq!(before(&project, &hooks, bash("ls")).await.decision, denied("no"));
    let project = project.script("guard.sh", "#!/bin/sh\ntouch ran; exit 0\n");
    let said = before(&project, &hooks, bash("ls")).await;
    assert!(reason_of(&said.decision).contains("guard.sh has changed since the session began"), "{said:?}");
    assert!(!project.root().join("ran").exists());
}
