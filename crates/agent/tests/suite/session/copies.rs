//! Checkpoints before steps, sessions in copies of the project, candidates.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_agent::candidates::{CandidateEvent, CandidateOptions, compare_candidates};
use journeyman_agent::git::Git;
use journeyman_agent::isolation::{
    CheckRunner, CommitOptions, Committer, Isolation, LandContext, LandOutcome, LandRequest,
    UnverifiedPolicy, WorkCopy, commit_run, discard_copy, finish_copy, land_copy, open_copy,
};
use journeyman_agent::{AgentError, ChecksSetting, RunSettings, start};
use journeyman_model::ModelRequest;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{CopyState, Event, RunOutcome, RunReport, SessionId};
use journeyman_store::{Blobs, Store};
use journeyman_workspace::{CheckpointId, IsolationTier, OnConflict, UndoTarget, WorkspaceError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::session::support::bench::{Bench, NOW, auto, confined, id};
use crate::session::support::model::{Step, Told, calls, says};

cases![
    steps_that_change_something_have_a_checkpoint,
    verified_work_is_landed_when_the_session_is_over,
    what_the_user_changes_is_in_the_copy_before_it_is_verified,
    a_merged_result_that_failed_is_not_landed_by_asking_again,
    a_merged_result_that_checks_rewrite_is_checked_as_they_left_it,
    unverified_work_is_kept_until_somebody_says_so,
    a_copy_is_held_while_its_session_lives,
    a_copy_in_which_no_session_began_does_not_stay,
    candidates_begin_with_the_same_bytes,
    an_interrupt_ends_all_candidates,
    what_is_landed_can_be_committed,
    what_was_saved_since_is_not_committed,
    what_was_saved_during_a_commit_is_not_undone,
    what_is_written_in_the_copy_after_the_checks_is_checked_before_it_lands,
    changed_tests_verify_nothing_in_a_copy,
    no_check_that_a_rule_forbids_runs_at_landing,
];

fn write(id: &'static str, path: &str, content: &str) -> Step {
    calls([(id, "write_file", json!({ "path": path, "content": content }))])
}

fn context(bench: &Bench, checks: ChecksSetting) -> LandContext {
    let parts = bench.parts(&Told::new([]));
    LandContext {
        store: Arc::clone(&bench.log) as Arc<dyn Store>,
        clock: journeyman_agent::Clock::new(|| NOW),
        redactor: Arc::new(Redactor::default()),
        holder: "the test's other hand".to_owned(),
        isolation: Isolation {
            origin: Arc::clone(&bench.workspace),
            sandbox: Arc::clone(&bench.sandbox),
            git: None,
            tiers: vec![IsolationTier::Overlay, IsolationTier::Reflink, IsolationTier::Copy],
            max_copied_files: usize::MAX,
        },
        proof: CheckRunner {
            checks,
            policy: parts.policy,
            sandbox: Arc::clone(&bench.sandbox),
            needs: auto().needs,
            toolchains: parts.toolchains,
            programs: parts.programs,
        },
        committer: None,
        known_end: None,
    }
}

/// Runs one task in a copy, and closes its session.
async fn isolated(
    bench: &mut Bench,
    context: &LandContext,
    told: &Arc<Told>,
    settings: RunSettings,
) -> RunReport {
    let copy = context.isolation.open_or_create(&id()).unwrap();
    let session = bench.shown_by(start(bench.parts(told).move_into_copy(copy), settings, id()));
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    (*report).clone()
}

async fn steps_that_change_something_have_a_checkpoint() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let read = || calls([("r1", "read_file", json!({ "path": "a.txt" }))]);
    let told = Told::new([
        read(),
        write("c1", "b.txt", "b\n"),
        read(),
        write("c2", "c.txt", "c\n"),
        write("c3", "c.txt", "c\n"),
        says("done"),
    ]);
    bench.run(&told, RunSettings { checks: ChecksSetting::Off, ..auto() }).await;
    let checkpoints: Vec<(u64, String, Option<u64>)> = bench
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Checkpoint { id, label, step } => Some((id, label, step)),
            _ => None,
        })
        .collect();
    let told: Vec<(&str, Option<u64>)> =
        checkpoints.iter().map(|(_, label, step)| (label.as_str(), *step)).collect();
    assert_eq!(
        told,
        [("before the run", None), ("step 4: write c.txt", Some(4)), ("step 5: write c.txt", Some(5)),],
        "steps 1 and 3 only read, and step 2 found what was on record"
    );
    bench.workspace.undo(UndoTarget::To(CheckpointId(checkpoints[1].0))).unwrap();
    assert_eq!((bench.file("b.txt").as_deref(), bench.file("c.txt")), (Some("b\n"), None));
}

async fn verified_work_is_landed_when_the_session_is_over() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let context = context(&bench, ChecksSetting::Custom(vec!["test -e b.txt".to_owned()]));
    let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut report = isolated(&mut bench, &context, &told, settings).await;
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    assert_eq!(
        (report.copy.as_ref().map(|copy| copy.state), report.undo.clone()),
        (Some(CopyState::Kept), None)
    );
    assert_eq!(bench.file("b.txt"), None);

    let stop = CancellationToken::new();
    let told = finish_copy(&context, &mut report, Some(&LandRequest::default()), &stop).await.unwrap();
    assert!(matches!(told[0].event, Event::Landed { copy: Some(_), .. }), "{told:?}");
    assert_eq!(report.copy.map(|copy| copy.state), Some(CopyState::Landed));
    assert_eq!(bench.file("b.txt").as_deref(), Some("b\n"));
    assert!(context.isolation.find(&id()).unwrap().is_none());
    assert_eq!(bench.undo().unwrap(), ["b.txt"]);
}

async fn changed_tests_verify_nothing_in_a_copy() {
    if !confined().await {
        return;
    }
    let tests = "set -e\n. ./calc.sh\ntest \"$(add 2 2)\" = 4\n";
    let run_tests = "for one in tests/*.sh; do sh \"$one\" || exit 1; done";
    let mut bench = Bench::new(&[("calc.sh", "add() { echo $(($1 + $2)); }\n"), ("tests/sums.sh", tests)]);
    let context = context(&bench, ChecksSetting::Custom(vec![run_tests.to_owned()]));
    let told = Told::new([
        calls([
            ("r1", "read_file", json!({ "path": "calc.sh" })),
            ("r2", "read_file", json!({ "path": "tests/sums.sh" })),
        ]),
        write("c1", "calc.sh", "add() { echo $(($1 - $2)); }\n"),
        write("c2", "tests/sums.sh", &tests.replace("= 4", "= 0")),
        write("c3", "tests/new.sh", "true\n"),
        says("done"),
    ]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut report = isolated(&mut bench, &context, &told, settings).await;
    assert_eq!(report.outcome, RunOutcome::Unverified, "{}", report.summary);
    let expected = "finished, but not verified: with tests/sums.sh as before the change, `for one in tests";
    assert!(report.summary.starts_with(expected), "{}", report.summary);
    let outcomes: Vec<(bool, bool)> =
        report.evidence.iter().map(|one| (one.original_tests, one.outcome.has_passed())).collect();
    assert_eq!(outcomes, [(false, true), (true, false)]);
    assert_eq!(context.isolation.origin.copies().list().unwrap().len(), 1, "only the session's own copy");
    let stop = CancellationToken::new();
    finish_copy(&context, &mut report, Some(&LandRequest::default()), &stop).await.unwrap();
    assert_eq!(report.copy.map(|copy| copy.state), Some(CopyState::Kept));
    assert_eq!(bench.file("tests/sums.sh").as_deref(), Some(tests));
}

async fn what_the_user_changes_is_in_the_copy_before_it_is_verified() {
    if !confined().await {
        return;
    }
    let bench = Bench::new(&[("a.txt", "a\n")]);
    // It passes only on both together.
    let check = "grep -q mine a.txt && grep -q b b.txt".to_owned();
    let context = context(&bench, ChecksSetting::Custom(vec![check]));
    let copy = context.isolation.open_or_create(&id()).unwrap();
    let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut session = bench.shown_by(start(bench.parts(&told).move_into_copy(copy), settings, id()));
    // As editors save: nobody ever sees half of it.
    std::fs::write(bench.outside.join("mine"), "mine\n").unwrap();
    std::fs::rename(bench.outside.join("mine"), bench.root.join("a.txt")).unwrap();
    session.handle.send("do it").await.unwrap();
    let report = session.done().await;
    session.handle.close().await;
    let taken = bench.log.events().into_iter().find_map(|event| match event {
        Event::CopyRefreshed { taken, .. } if !taken.is_empty() => {
            Some(taken.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(taken, Some(vec!["a.txt".to_owned()]));
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    let changed: Vec<String> = report.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(changed, ["b.txt"], "what the user did isn't the session's");
}

async fn a_merged_result_that_failed_is_not_landed_by_asking_again() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let context = context(&bench, ChecksSetting::Custom(vec!["! grep -q bad a.txt".to_owned()]));
    let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut report = isolated(&mut bench, &context, &told, settings).await;
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    std::fs::write(bench.root.join("a.txt"), "bad\n").unwrap();
    let (stop, wish) = (CancellationToken::new(), LandRequest::default());
    finish_copy(&context, &mut report, Some(&wish), &stop).await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Conflict, "{}", report.summary);
    let again = land_copy(&context, &id(), &wish, &stop).await.unwrap();
    assert_eq!((again.end, bench.file("b.txt")), (LandOutcome::ChecksFail, None), "{}", again.summary);
    std::fs::write(bench.root.join("a.txt"), "good\n").unwrap();
    let landed = land_copy(&context, &id(), &wish, &stop).await.unwrap();
    assert_eq!((landed.end, bench.file("b.txt").as_deref()), (LandOutcome::Landed, Some("b\n")));
}

async fn a_merged_result_that_checks_rewrite_is_checked_as_they_left_it() {
    if !confined().await {
        return;
    }
    for (rewrite, end) in
        [("echo formatted >", LandOutcome::Landed), ("echo again >>", LandOutcome::Unproven)]
    {
        let mut bench = Bench::new(&[("a.txt", "a\n"), ("log", "0\n")]);
        // It rewrites a file of the merged result alone.
        let check = format!("if grep -q mine a.txt; then {rewrite} log; fi");
        let context = context(&bench, ChecksSetting::Custom(vec![check]));
        let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
        let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
        let report = isolated(&mut bench, &context, &told, settings).await;
        assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
        std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
        let (stop, wish) = (CancellationToken::new(), LandRequest::default());
        let landed = land_copy(&context, &id(), &wish, &stop).await.unwrap();
        assert_eq!(landed.end, end, "{rewrite}: {}", landed.summary);
        let landed_log = if end == LandOutcome::Landed { "formatted\n" } else { "0\n" };
        assert_eq!(bench.file("log").as_deref(), Some(landed_log), "{rewrite}");
    }
}

async fn unverified_work_is_kept_until_somebody_says_so() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let context = context(&bench, ChecksSetting::Off);
    let read = calls([("r1", "read_file", json!({ "path": "a.txt" }))]);
    let told = Told::new([read, write("c1", "a.txt", "other\n"), says("done")]);
    let mut report =
        isolated(&mut bench, &context, &told, RunSettings { checks: ChecksSetting::Off, ..auto() }).await;
    let stop = CancellationToken::new();
    let wish = LandRequest::default();
    finish_copy(&context, &mut report, Some(&wish), &stop).await.unwrap();
    assert_eq!((report.outcome, report.exit_code), (RunOutcome::Unverified, 4));
    let refused = land_copy(&context, &id(), &wish, &stop).await.unwrap();
    assert_eq!(
        (refused.end, refused.copy.state, refused.exit_code()),
        (LandOutcome::Unverified, CopyState::Kept, 6)
    );

    std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
    let wish = LandRequest { unverified: UnverifiedPolicy::Land, ..wish };
    let refused = land_copy(&context, &id(), &wish, &stop).await.unwrap();
    assert_eq!((refused.end, refused.exit_code()), (LandOutcome::Conflicts, 9));
    assert_eq!(bench.file("a.txt").as_deref(), Some("mine\n"));
    let wish = LandRequest { on_conflict: OnConflict::Theirs, ..wish };
    let landed = land_copy(&context, &id(), &wish, &stop).await.unwrap();
    assert_eq!((landed.end, landed.copy.state), (LandOutcome::Landed, CopyState::Landed));
    assert_eq!(bench.file("a.txt").as_deref(), Some("other\n"));
    let gone = discard_copy(&context, &id()).await;
    assert!(matches!(gone, Err(AgentError::Workspace(WorkspaceError::AlreadyLanded { .. }))), "{gone:?}");
}

async fn a_copy_is_held_while_its_session_lives() {
    let bench = Bench::new(&[]);
    let context = context(&bench, ChecksSetting::Off);
    let copy = context.isolation.open_or_create(&id()).unwrap();
    let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..auto() };
    let session = bench.shown_by(start(bench.parts(&told).move_into_copy(copy), settings, id()));
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let held = context.isolation.open(&id()).map(|copy: WorkCopy| copy.was_reopened());
    assert!(matches!(held, Err(AgentError::Workspace(WorkspaceError::Busy { .. }))), "{held:?}");
    session.handle.close().await;
    assert_eq!(discard_copy(&context, &id()).await.unwrap(), 1);
    assert_eq!(bench.file("b.txt"), None);
}

/// As after a kill before the session's first append.
async fn a_copy_in_which_no_session_began_does_not_stay() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let context = context(&bench, ChecksSetting::Off);
    let copies = || context.isolation.origin.copies().list().unwrap().len();
    drop(context.isolation.open_or_create(&id()).unwrap());
    assert_eq!(copies(), 0);
    let told = Told::new([says("nothing to do")]);
    isolated(&mut bench, &context, &told, RunSettings { checks: ChecksSetting::Off, ..auto() }).await;
    assert_eq!(copies(), 1);
}

async fn candidates_begin_with_the_same_bytes() {
    if !confined().await {
        return;
    }
    let bench = Bench::new(&[("a.txt", "a\n")]);
    let checks = ChecksSetting::Custom(vec!["test -e b.txt".to_owned()]);
    let context = context(&bench, checks.clone());
    let first = |request: &ModelRequest| request.messages.len() == 1;
    let begun = AtomicUsize::new(0);
    let told = Told::by(move |request| match first(request) {
        true if begun.fetch_add(1, Ordering::SeqCst) == 0 => write("c1", "b.txt", "b\n"),
        true => write("c1", "b.txt", "b\nand more\n"),
        false => says("done"),
    });
    let candidates = vec![SessionId::new(NOW, 21), SessionId::new(NOW, 22)];
    let race = CandidateOptions {
        context: &context,
        parts: &|_| bench.parts(&told),
        settings: RunSettings { checks, ..auto() },
        adjust_settings: &|_, settings| settings,
        parent: id(),
        candidates: candidates.clone(),
        land: false,
    };
    let mut heard = Vec::new();
    let stop = CancellationToken::new();
    let finish = race.run("do it", &stop, |one| {
        if let CandidateEvent::Candidate(number, envelope) = one {
            heard.push((number, envelope.event.kind()));
        }
    });
    let finish = finish.await.unwrap();
    assert_eq!(bench.file("b.txt"), None);
    let requests: Vec<ModelRequest> = told.requests().into_iter().filter(first).collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1], "their prefix is one, and the name that providers keep it by");

    let lines: Vec<(u64, Option<RunOutcome>)> =
        finish.candidates.iter().map(|one| (one.added, one.outcome)).collect();
    assert_eq!(lines, [(1, Some(RunOutcome::Verified)), (2, Some(RunOutcome::Verified))]);
    for number in [1, 2] {
        assert!(heard.contains(&(number, "isolated")) && heard.contains(&(number, "done")), "{heard:?}");
    }
    let (parent, later) =
        compare_candidates(&*bench.log, &context.isolation, &candidates[1]).await.unwrap().unwrap();
    assert_eq!((parent, later), (id(), finish.candidates.clone()));
    let best = finish.candidates[0].session.clone();
    land_copy(&context, &best, &LandRequest::default(), &stop).await.unwrap();
    assert_eq!(bench.file("b.txt").as_deref(), Some("b\n"));
    for candidate in &finish.candidates[1..] {
        discard_copy(&context, &candidate.session).await.unwrap();
    }
    let (_, later) = compare_candidates(&*bench.log, &context.isolation, &id()).await.unwrap().unwrap();
    let states: Vec<CopyState> = later.iter().map(|one| one.state).collect();
    assert_eq!(states, [CopyState::Landed, CopyState::Discarded]);
}

async fn an_interrupt_ends_all_candidates() {
    let bench = Bench::new(&[("a.txt", "a\n")]);
    let context = context(&bench, ChecksSetting::Off);
    let told =
        Told::new([crate::session::support::model::stalls(), crate::session::support::model::stalls()]);
    let race = CandidateOptions {
        context: &context,
        parts: &|_| bench.parts(&told),
        settings: RunSettings { checks: ChecksSetting::Off, ..auto() },
        adjust_settings: &|_, settings| settings,
        parent: id(),
        candidates: vec![SessionId::new(NOW, 21), SessionId::new(NOW, 22)],
        land: false,
    };
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    let asked = Arc::clone(&told);
    let (finish, ()) = tokio::join!(race.run("do it", &stop, |_| {}), async move {
        asked.asked(2).await;
        stopper.cancel();
    });
    let finish = finish.unwrap();
    assert_eq!(finish.report.outcome, RunOutcome::Interrupted);
    let ended: Vec<(Option<RunOutcome>, CopyState)> =
        finish.candidates.iter().map(|one| (one.outcome, one.state)).collect();
    assert_eq!(
        ended,
        [(Some(RunOutcome::Interrupted), CopyState::Discarded); 2],
        "nothing was changed in them"
    );
    assert!(context.isolation.origin.copies().list().unwrap().is_empty());
}

/// Makes the project a repository, in which the session's work can be committed. Git and `save`, a
/// script, run where git first reads the index for a commit.
fn commits(bench: &Bench, context: &mut LandContext, save: &str) {
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
        git(bench, arguments);
    }
    let reader = Git::new(&bench.root, Arc::clone(&bench.sandbox));
    let named = ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"];
    let named = named.map(|name| (format!("GIT_{name}").into(), "jo@example.org".into()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&path);
    let real = programs.find(|dir| dir.join("git").is_file()).unwrap().join("git");
    let wrapped = bench.outside.join("wrapped");
    std::fs::create_dir(&wrapped).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *\" read-tree \"*) {save};; esac\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(wrapped.join("git"), script).unwrap();
    std::fs::set_permissions(wrapped.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(std::iter::once(wrapped).chain(std::env::split_paths(&path))).unwrap();
    let env = std::env::vars_os().chain(named).chain([("PATH".into(), path)]);
    context.committer = Some(Committer {
        git: reader.for_user(env),
        blobs: Arc::new(Blobs::open(&bench.outside.join("blobs"), 1 << 30).unwrap()),
        scratch: bench.outside.join("branches"),
    });
    context.isolation.git = Some(reader);
}

fn git(bench: &Bench, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments);
    let ran = command.current_dir(&bench.root).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

async fn what_is_landed_can_be_committed() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let mut context = context(&bench, ChecksSetting::Custom(vec!["true".to_owned()]));
    commits(&bench, &mut context, ":");
    let before = git(&bench, &["rev-parse", "HEAD"]);
    let told = Told::new([write("c1", "b.txt", "b\n"), says("b is there now")]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut report = isolated(&mut bench, &context, &told, settings).await;
    let wish = LandRequest { commit: Some(CommitOptions::default()), ..LandRequest::default() };
    finish_copy(&context, &mut report, Some(&wish), &CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    let commit = report.commit.unwrap();
    assert_ne!(commit.id, before.trim());
    let shown = git(&bench, &["log", "-1", "--format=%H %B", "--name-only"]);
    assert_eq!(shown, format!("{} Do it\n\nb is there now\n\nPassed: true\n\n\nb.txt\n", commit.id));
}

/// As with an editor that saves while git begins the commit, for a session in a copy and for one in
/// the project.
async fn what_was_saved_since_is_not_committed() {
    if !confined().await {
        return;
    }
    for in_copy in [true, false] {
        for (saved, is_committed) in [("b.txt", false), ("mine.txt", true)] {
            let mut bench = Bench::new(&[("a.txt", "a\n")]);
            let mut context = context(&bench, ChecksSetting::Custom(vec!["true".to_owned()]));
            commits(&bench, &mut context, &format!("echo mine > {}", bench.root.join(saved).display()));
            let before = git(&bench, &["rev-parse", "HEAD"]);
            let told = Told::new([write("c1", "b.txt", "b\n"), says("b is there now")]);
            let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
            let (stop, commit) = (CancellationToken::new(), CommitOptions::default());
            let mut report;
            if in_copy {
                report = isolated(&mut bench, &context, &told, settings).await;
                let wish = LandRequest { commit: Some(commit), ..LandRequest::default() };
                finish_copy(&context, &mut report, Some(&wish), &stop).await.unwrap();
            } else {
                let session = bench.start(&told, settings);
                session.handle.send("do it").await.unwrap();
                report = (*session.handle.wait_until_finished().await.unwrap()).clone();
                session.handle.close().await;
                commit_run(&context, &mut report, &commit, &BTreeSet::new(), &stop).await.unwrap();
            }
            assert_eq!(bench.file(saved).as_deref(), Some("mine\n"));
            assert_eq!(report.commit.is_some(), is_committed, "{in_copy}, {saved}: {}", report.summary);
            if is_committed {
                assert_eq!(git(&bench, &["show", "HEAD:b.txt"]), "b\n");
            } else {
                assert_eq!(git(&bench, &["rev-parse", "HEAD"]), before);
                assert_eq!(report.outcome, RunOutcome::Error);
                let expected = "not committed: b.txt is not any more as verified: look at what changed, and commit by \
                                yourself";
                assert!(report.summary.ends_with(expected), "{}", report.summary);
            }
        }
    }
}

/// As by a command in the background, which runs until the session is closed.
async fn what_is_written_in_the_copy_after_the_checks_is_checked_before_it_lands() {
    if !confined().await {
        return;
    }
    let check = "echo > left.txt; ! grep -q bad b.txt";
    for (late, check_at_landing, outcome) in [
        (Some("bad\n"), check, RunOutcome::Conflict),
        (Some("good\n"), check, RunOutcome::Verified),
        // What the checks left needs no other check.
        (None, "false", RunOutcome::Verified),
    ] {
        let mut bench = Bench::new(&[("a.txt", "a\n")]);
        let mut context = context(&bench, ChecksSetting::Custom(vec![check.to_owned()]));
        let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
        let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
        let mut report = isolated(&mut bench, &context, &told, settings).await;
        assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
        // The session's own hold ends on this thread, which opening must not block.
        let copy = open_copy(&context.isolation, &id()).await.unwrap();
        if let Some(late) = late {
            std::fs::write(copy.workspace().access_path().join("b.txt"), late).unwrap();
        }
        drop(copy);
        context.proof.checks = ChecksSetting::Custom(vec![check_at_landing.to_owned()]);
        let (stop, wish) = (CancellationToken::new(), LandRequest::default());
        finish_copy(&context, &mut report, Some(&wish), &stop).await.unwrap();
        assert_eq!(report.outcome, outcome, "{late:?}: {}", report.summary);
        let landed = (outcome == RunOutcome::Verified).then_some(late.unwrap_or("b\n"));
        assert_eq!(bench.file("b.txt").as_deref(), landed);
    }
}

async fn no_check_that_a_rule_forbids_runs_at_landing() {
    if !confined().await {
        return;
    }
    let rules = [
        ("", LandOutcome::Landed),
        ("[[rule]]\ncommand = ['touch']\ndecision = 'deny'\n", LandOutcome::Unproven),
        ("[[rule]]\ncommand = ['touch']\ndecision = 'ask'\n", LandOutcome::Unproven),
    ];
    for (rules, end) in rules {
        let mut bench = Bench::new(&[("a.txt", "a\n")]).with_rules(rules);
        let mut context = context(&bench, ChecksSetting::Custom(vec!["test -e b.txt".to_owned()]));
        let told = Told::new([write("c1", "b.txt", "b\n"), says("done")]);
        let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
        let report = isolated(&mut bench, &context, &told, settings).await;
        assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
        std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
        context.proof.checks = ChecksSetting::Custom(vec!["true".to_owned(), "touch two".to_owned()]);
        let (stop, wish) = (CancellationToken::new(), LandRequest::default());
        let landed = land_copy(&context, &id(), &wish, &stop).await.unwrap();
        let ran = landed.evidence.iter().filter(|one| one.outcome.has_passed()).count();
        assert_eq!((landed.end, ran), (end, if rules.is_empty() { 2 } else { 1 }), "{}", landed.summary);
    }
}

/// Hooks may run for minutes, in which a person goes on working.
async fn what_was_saved_during_a_commit_is_not_undone() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let mut context = context(&bench, ChecksSetting::Custom(vec!["true".to_owned()]));
    commits(&bench, &mut context, &format!("echo mine > {}", bench.root.join("a.txt").display()));
    let told = Told::new([write("c1", "b.txt", "b\n"), says("b is there now")]);
    let settings = RunSettings { checks: context.proof.checks.clone(), ..auto() };
    let mut report = isolated(&mut bench, &context, &told, settings).await;
    let wish = LandRequest { commit: Some(CommitOptions::default()), ..LandRequest::default() };
    finish_copy(&context, &mut report, Some(&wish), &CancellationToken::new()).await.unwrap();
    assert!(report.commit.is_some(), "{}", report.summary);
    assert_eq!(bench.undo().unwrap(), ["b.txt"]);
    assert_eq!(bench.file("a.txt").as_deref(), Some("mine\n"));
}
