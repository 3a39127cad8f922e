//! Overlay previews: a command that may destroy files beyond undo first runs in a layer over the
//! tree. A person is then asked about its real effects, and the layer is landed or discarded.
//!
//! The tree is unchanged until the layer lands, so a crash discards the layer. Landing is one
//! transaction of the call, begun once the log records the call as executing.

use std::sync::Arc;

use journeyman_policy::{Call, RULE_LOSS};
use journeyman_protocol::{CallState, Decision, Effects, Level, ResultPart, ToolUse, Verdict};
use journeyman_workspace::{OverlayChanges, OverlayLanding, OverlayRun, WorkspaceError};
use tokio_util::sync::CancellationToken;

use journeyman_tools::{Registry, SeenFiles};

use super::approvals::Approvals;
use super::authorization::{ApprovedCall, JudgedCall, PermissionQuestion};
use crate::AgentError;
use crate::approval::destructive_changes::{
    describe_changes, describe_lost, describe_recoverable, list_files_with_reasons,
};
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::session::context::SessionContext;
use crate::transcript::running_transcript::CallChange;

/// Maximum bytes of the diff shown with the question.
const MAX_DIFF_BYTES: usize = 16 * 1024;

/// The result of the session's first attempt to mount a layer.
#[derive(Debug, Default)]
pub(crate) enum LayerSupport {
    #[default]
    Untested,
    Supported,
    /// The reason why no layer can be mounted here.
    Unsupported(String),
}

/// The decision to preview a call.
pub(crate) enum PreviewPlan {
    /// No preview: the call runs directly, or a person is asked first.
    No,
    /// Preview the call. The verdict applies if nothing is destroyed.
    First(Box<JudgedCall>),
    /// A preview is needed but impossible, for this reason.
    Cannot(String),
}

/// The decision to land or discard a command's layer.
enum LayerDecision {
    Land,
    /// Discard the layer. The call gets this result.
    Drop(Box<FinishedCall>),
    /// Discard the layer. The call has its result already.
    Settled,
}

/// The overlay previews of a session.
pub(crate) struct OverlayPreviews {
    registry: Arc<Registry>,
    layer_support: LayerSupport,
}

impl OverlayPreviews {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, layer_support: LayerSupport::Untested }
    }

    /// Decides if a judged call needs a preview.
    pub(crate) async fn plan_preview(
        &mut self,
        cx: &SessionContext,
        approvals: &Approvals,
        call: &ToolUse,
        effects: &Effects,
        verdict: &Verdict,
    ) -> PreviewPlan {
        let ordinary = match verdict.decision {
            // A command that a rule allows by name runs directly.
            Decision::Allow => verdict.rules.is_empty(),
            // Questions of other rules are asked before the command runs.
            Decision::Ask => verdict.rules.iter().all(|rule| rule == RULE_LOSS),
            Decision::Deny => false,
        };
        let reaches = matches!(verdict.level, Level::Edit | Level::Shell);
        if !(ordinary && !cx.is_isolated() && reaches && effects.command.is_some()) {
            return PreviewPlan::No;
        }
        let (registry, workspace) = (Arc::clone(&self.registry), Arc::clone(&cx.workspace));
        let asked = call.clone();
        let wanted = run_blocking("looking at what a command names", move || {
            registry.get(&asked.name).is_ok_and(|tool| tool.needs_preview(&workspace, &asked.input))
        });
        if !wanted.await.unwrap_or(false) {
            return PreviewPlan::No;
        }
        let contained = Effects { previewed: true, ..effects.clone() };
        let judged = approvals.judge_call(cx, &call.name, &contained, false).await;
        let allowed = judged.verdict.decision == Decision::Allow;
        // A preview is no help if no one can be asked about its result, or if the command sends
        // data to other hosts.
        if judged.verdict.decision == Decision::Deny
            || !(allowed || (cx.can_ask() && effects.hosts.is_empty()))
        {
            return PreviewPlan::No;
        }
        match self.layer_support(cx).await {
            LayerSupport::Unsupported(why) => PreviewPlan::Cannot(why.clone()),
            LayerSupport::Untested | LayerSupport::Supported => PreviewPlan::First(Box::new(judged)),
        }
    }

    /// Tests once a session whether layers can be mounted over the tree.
    async fn layer_support(&mut self, cx: &SessionContext) -> &LayerSupport {
        if matches!(self.layer_support, LayerSupport::Untested) {
            let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
            let session = cx.journal_session().clone();
            let tried = run_blocking("mounting a layer", move || {
                workspace.previews().check_can_start(&session, &sandbox)
            })
            .await;
            self.layer_support = match tried.and_then(|tried| tried.map_err(AgentError::from)) {
                Ok(()) => LayerSupport::Supported,
                Err(error) => LayerSupport::Unsupported(error.to_string()),
            };
        }
        &self.layer_support
    }

    /// Mounts the layer of a call that is about to run. The error is a text for the model.
    pub(crate) async fn mount_layer(&mut self, cx: &SessionContext) -> Result<OverlayRun, String> {
        let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
        let session = cx.journal_session().clone();
        let made =
            run_blocking("mounting a layer", move || workspace.previews().start(&session, &sandbox)).await;
        made.and_then(|made| made.map_err(AgentError::from)).map_err(|error| {
            let why = error.to_string();
            // Later calls are asked about before they run.
            self.layer_support = LayerSupport::Unsupported(why.clone());
            format!(
                "not run: it was to be tried out first, and that can't be done: {why}. Make the call again."
            )
        })
    }
}

/// Ends a preview: lands the layer, after asking if needed, or discards it. Returns `None` if the
/// call has its result already.
pub(crate) async fn finish_preview(
    cx: &mut SessionContext,
    approvals: &mut Approvals,
    seen: &Arc<SeenFiles>,
    mut ready: ApprovedCall,
    trial: OverlayRun,
    mut finished: FinishedCall,
    stop: &CancellationToken,
) -> Result<Option<(ApprovedCall, FinishedCall)>, AgentError> {
    // The changes that the tool reported were made in the layer.
    finished.changes.clear();
    if finished.abandoned || finished.state == CallState::Interrupted {
        discard_layer(trial).await;
        finished.parts.push(text_part("nothing of what it did was landed"));
        return Ok(Some((ready, finished)));
    }
    let workspace = Arc::clone(&cx.workspace);
    let looked = move || {
        let tried = trial.examine(&workspace);
        (trial, tried)
    };
    let (trial, tried) = run_blocking("looking at what a command did", looked).await?;
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => {
            discard_layer(trial).await;
            note_nothing_landed(&mut finished, &format!("what it did can't be told: {error}"));
            return Ok(Some((ready, finished)));
        }
    };
    if !tried.refusals().is_empty() {
        discard_layer(trial).await;
        note_nothing_landed(&mut finished, &list_files_with_reasons(&tried.refusals()));
        return Ok(Some((ready, finished)));
    }
    if tried.is_empty() {
        discard_layer(trial).await;
        return Ok(Some((ready, finished)));
    }
    let fate = decide_landing(cx, approvals, &mut ready, &tried, stop).await;
    match fate {
        Ok(LayerDecision::Land) => {}
        Ok(LayerDecision::Drop(refused)) => {
            discard_layer(trial).await;
            return Ok(Some((ready, *refused)));
        }
        Ok(LayerDecision::Settled) => {
            discard_layer(trial).await;
            return Ok(None);
        }
        Err(error) => {
            discard_layer(trial).await;
            return Err(error);
        }
    }
    land_layer(cx, seen, &ready, trial, tried, &mut finished).await?;
    Ok(Some((ready, finished)))
}

/// Decides what happens to a command's changes, and asks a person if needed.
async fn decide_landing(
    cx: &mut SessionContext,
    approvals: &mut Approvals,
    ready: &mut ApprovedCall,
    tried: &OverlayChanges,
    stop: &CancellationToken,
) -> Result<LayerDecision, AgentError> {
    let Some(contained) = ready.preview.take() else { return Ok(LayerDecision::Land) };
    let losses = tried.destructive_changes();
    let lost = describe_lost(&losses);
    if lost.is_none() && contained.verdict.decision == Decision::Allow {
        return Ok(LayerDecision::Land);
    }
    let recoverable = describe_recoverable(&losses).filter(|_| lost.is_none());
    let reason = format!(
        "{}. It was tried out, and nothing of it is in place yet.{}{}",
        contained.verdict.reason,
        describe_changes(&tried.changes()).map(|what| format!(" It would {what}.")).unwrap_or_default(),
        recoverable.map(|files| format!(" {files}")).unwrap_or_default()
    );
    let mut rules = contained.verdict.rules.clone();
    rules.extend(lost.is_some().then(|| RULE_LOSS.to_owned()));
    let JudgedCall { verdict, mode, sandbox } = *contained;
    let verdict = Verdict { decision: Decision::Ask, reason, destroys: lost.clone(), rules, ..verdict };
    if !cx.can_ask() {
        return Ok(LayerDecision::Drop(Box::new(refuse_unanswerable(cx, approvals, ready, verdict))));
    }
    let diff = diff_layer(cx, tried).await;
    // A lasting rule would skip later previews, so none is offered for destructive changes.
    let effects = Effects { previewed: true, ..ready.effects.clone() };
    let (tool, agent) = (ready.call.name.as_str(), approvals.calling_agent());
    let call = Call { tool, agent, mode, effects: &effects, sandbox: sandbox.as_ref() };
    let rules = lost.is_none().then(|| approvals.propose_rules(&call)).flatten();
    let judged = JudgedCall { verdict, mode, sandbox };
    let asked = ApprovedCall { context: std::mem::take(&mut ready.context), ..ready.copy_for_question() };
    let question = PermissionQuestion { judged, rules, diff };
    let mut answers = approvals.ask_about_calls(cx, vec![(asked, question)], stop).await?;
    match answers.pop() {
        Some(Ok(allowed)) => {
            ready.context = allowed.context;
            cx.transcript.change_call(&ready.call, CallState::Executing, CallChange::default());
            cx.transcript.flush().await?;
            Ok(LayerDecision::Land)
        }
        Some(Err(refused)) if cx.transcript.state().is_open(&ready.call.id) => {
            Ok(LayerDecision::Drop(Box::new(refused.finished)))
        }
        Some(Err(_)) => Ok(LayerDecision::Settled),
        None => Ok(LayerDecision::Drop(Box::new(FinishedCall::interrupted()))),
    }
}

fn refuse_unanswerable(
    cx: &SessionContext,
    approvals: &mut Approvals,
    ready: &ApprovedCall,
    verdict: Verdict,
) -> FinishedCall {
    let what = verdict.destroys.as_deref().unwrap_or(&verdict.reason);
    let text = format!(
        "denied: {} was tried out and dropped, nothing of it was landed. It {what}. That needs a person's \
         permission, and nobody can be asked here. Go on without it if you can.",
        ready.call.name
    );
    approvals.refuse_unanswerable(cx, &ready.call, verdict, text)
}

/// Returns the diff of the layer, for the question.
async fn diff_layer(cx: &SessionContext, tried: &OverlayChanges) -> Option<String> {
    let (workspace, changes) = (Arc::clone(&cx.workspace), tried.copy_changes().clone());
    let diff = move || workspace.landings().diff(&changes, MAX_DIFF_BYTES);
    let diff = run_blocking("comparing a layer", diff).await.ok()?.ok()?;
    (!diff.text.is_empty()).then(|| cx.redactor.redact(&diff.text).into_owned())
}

async fn land_layer(
    cx: &SessionContext,
    seen: &Arc<SeenFiles>,
    ready: &ApprovedCall,
    trial: OverlayRun,
    tried: OverlayChanges,
    finished: &mut FinishedCall,
) -> Result<(), AgentError> {
    let (workspace, session) = (Arc::clone(&cx.workspace), cx.journal_session().clone());
    let call = ready.call.id.clone();
    let seen = Arc::clone(seen);
    let land = move || -> Result<(OverlayLanding, OverlayChanges), WorkspaceError> {
        let landing = trial.land(&workspace, &tried, &session, &call)?;
        seen.note_changes(&workspace, &landing.changes);
        Ok((landing, tried))
    };
    let (landing, tried) = match run_blocking("landing what a command did", land).await? {
        Ok(done) => done,
        Err(error) => {
            note_nothing_landed(finished, &error.to_string());
            return Ok(());
        }
    };
    if !landing.landed {
        let why = format!(
            "{}. Look at the files, and do it again if it still makes sense",
            list_files_with_reasons(&landing.left)
        );
        note_nothing_landed(finished, &why);
        return Ok(());
    }
    finished.changes = landing.changes;
    if let Some(lost) = describe_lost(&tried.destructive_changes()) {
        finished.parts.push(text_part(&format!("[landed after approval: it {lost}]")));
    }
    if !landing.left.is_empty() {
        finished.parts.push(text_part(&format!("[not landed: {}]", list_files_with_reasons(&landing.left))));
    }
    if !tried.left_out_paths().is_empty() {
        let names: Vec<_> = tried
            .left_out_paths()
            .iter()
            .map(|path| (path.clone(), "neither a file nor a link".to_owned()))
            .collect();
        finished.parts.push(text_part(&format!("[not landed: {}]", list_files_with_reasons(&names))));
    }
    Ok(())
}

/// Adds to the result that nothing was landed, and why.
fn note_nothing_landed(finished: &mut FinishedCall, why: &str) {
    finished.parts.push(text_part(&format!("error: nothing of what it did was landed: {why}")));
    finished.set_error(true);
}

fn text_part(text: &str) -> ResultPart {
    ResultPart::Text { text: text.to_owned() }
}

/// Removes a layer on a blocking thread, because it may hold gigabytes.
async fn discard_layer(trial: OverlayRun) {
    // The next preview removes layers that can't be removed now.
    run_blocking("removing a layer", move || trial.discard()).await.ok();
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallId, Mode, RelPath, SandboxNeeds, SandboxTier};
    use journeyman_sandbox::{Sandbox, SandboxSettings};
    use journeyman_store::Blobs;
    use journeyman_testkit::skip;
    use journeyman_workspace::{Change, ChangeSet, ExpectedState, Options, Workspace};
    use serde_json::json;

    use super::*;
    use crate::session::settings::Approver;
    use crate::session::shared_state::{AuthoredAnswer, PermissionAnswer};
    use crate::test_context::{TestContext, approved, call};

    /// Confines commands. Returns false where the system doesn't allow that.
    async fn confine(test: &mut TestContext) -> bool {
        test.cx.sandbox = Arc::new(Sandbox::new(SandboxSettings {
            allow: vec![SandboxTier::Namespaces],
            allow_root: true,
            ..SandboxSettings::default()
        }));
        test.cx.settings.needs = SandboxNeeds::ALL;
        let works = test.cx.sandbox.enforcement(&test.cx.settings.needs).await;
        works.inspect_err(|reason| skip(reason)).is_ok()
    }

    /// A call of a command that is judged as the session's policy judges it.
    async fn judged(test: &TestContext, command: &str) -> (ToolUse, Effects, Verdict) {
        let call = call("c1", "run_command", json!({ "command": command }));
        let registry = Registry::with_builtin_at(&test.root);
        let effects = registry.get("run_command").unwrap().effects(&call.input).unwrap();
        let verdict = test.approvals.judge_call(&test.cx, &call.name, &effects, false).await.verdict;
        (call, effects, verdict)
    }

    async fn plan(test: &TestContext, previews: &mut OverlayPreviews, command: &str) -> PreviewPlan {
        let (call, effects, verdict) = judged(test, command).await;
        previews.plan_preview(&test.cx, &test.approvals, &call, &effects, &verdict).await
    }

    fn previews(test: &TestContext) -> OverlayPreviews {
        OverlayPreviews::new(Arc::new(Registry::with_builtin_at(&test.root)))
    }

    #[tokio::test]
    async fn where_no_layer_can_be_mounted_a_preview_says_why() {
        let mut test =
            TestContext::new(&[("a", "1\n"), (".gitignore", "ignored\n"), ("ignored", "1\n")]).await;
        if !confine(&mut test).await {
            return;
        }
        test.cx.settings.approver = Approver::Handle;
        let state = test.root.join("state");
        let blobs = Arc::new(Blobs::open(&state.join("blobs"), 1 << 20).unwrap());
        test.cx.workspace = Arc::new(Workspace::open(&test.root, Options::new(state, blobs)).unwrap());
        let mut previews = previews(&test);
        let PreviewPlan::Cannot(reason) = plan(&test, &mut previews, "rm -rf ignored").await else {
            panic!("{:?}", judged(&test, "rm -rf ignored").await)
        };
        assert!(reason.contains("the state directory lies in the project itself"), "{reason}");
        assert!(matches!(&previews.layer_support, LayerSupport::Unsupported(known) if *known == reason));
        let error = previews.mount_layer(&test.cx).await.unwrap_err();
        assert!(error.starts_with("not run: ") && error.ends_with("Make the call again."), "{error}");
    }

    #[tokio::test]
    async fn only_commands_that_may_lose_something_are_tried_out() {
        let mut test = TestContext::new(&[(".gitignore", "ignored\n"), ("ignored", "1\n")]).await;
        test.cx.settings.approver = Approver::Handle;
        let mut previews = previews(&test);
        for command in ["ls", "cat ignored"] {
            assert!(matches!(plan(&test, &mut previews, command).await, PreviewPlan::No), "{command}");
        }
        test.set_rules("[[rule]]\ncommand = ['rm', '-rf', 'ignored']\ndecision = 'allow'\n");
        assert!(matches!(plan(&test, &mut previews, "rm -rf ignored").await, PreviewPlan::No));
        test.set_rules("[[rule]]\ncommand = ['rm']\ndecision = 'deny'\n");
        assert!(matches!(plan(&test, &mut previews, "rm -rf ignored").await, PreviewPlan::No));
        test.set_rules("");
        test.cx.settings.mode = Mode::Plan;
        assert!(matches!(plan(&test, &mut previews, "rm -rf ignored").await, PreviewPlan::No));
    }

    /// A context whose sandbox mounts layers, with a tracked and an ignored file; `None` where the
    /// system doesn't allow that.
    async fn with_layers() -> Option<(TestContext, OverlayRun)> {
        let mut test =
            TestContext::new(&[(".gitignore", "ignored\n"), ("a", "1\n"), ("ignored", "1\n")]).await;
        if !confine(&mut test).await {
            return None;
        }
        // More than is kept for an undo.
        std::fs::File::create(test.root.join("ignored")).unwrap().set_len(1 << 25).unwrap();
        test.record_reply(&[call("c1", "run_command", json!({ "command": "the command" }))]);
        let mounted = previews(&test).mount_layer(&test.cx).await;
        match mounted {
            Ok(layer) => Some((test, layer)),
            Err(reason) => {
                skip(reason);
                None
            }
        }
    }

    /// Ends the preview of a command that allowed work did, as its calls are judged.
    async fn finish(
        test: &mut TestContext,
        layer: OverlayRun,
        finished: FinishedCall,
    ) -> Option<(ApprovedCall, FinishedCall)> {
        let mut ready = approved(call("c1", "run_command", json!({ "command": "the command" })), &[]);
        ready.effects.command = Some("the command".to_owned());
        let judged = test.approvals.judge_call(&test.cx, "edit_file", &Effects::default(), true).await;
        ready.preview = Some(Box::new(judged));
        let (seen, stop) = (Arc::new(SeenFiles::default()), CancellationToken::new());
        finish_preview(&mut test.cx, &mut test.approvals, &seen, ready, layer, finished, &stop).await.unwrap()
    }

    /// Does in the layer what the command does.
    fn change(test: &TestContext, layer: &OverlayRun, change: Change) {
        let (call, session) = (Some(CallId::new("c1")), test.cx.session.clone());
        layer
            .workspace()
            .apply(ChangeSet { call, session, description: None, changes: vec![change] })
            .unwrap();
    }

    fn write(name: &str) -> Change {
        let (path, expected) = (RelPath::parse(name).unwrap(), ExpectedState::Anything);
        Change::Write { path, content: b"2\n".to_vec(), expected }
    }

    fn delete(name: &str) -> Change {
        Change::Delete { path: RelPath::parse(name).unwrap(), expected: ExpectedState::Anything }
    }

    fn done() -> FinishedCall {
        FinishedCall::without_output(CallState::Completed, "done")
    }

    fn content(test: &TestContext, name: &str) -> Option<String> {
        std::fs::read_to_string(test.root.join(name)).ok()
    }

    #[tokio::test]
    async fn what_nobody_has_to_be_asked_about_lands_as_one_change() {
        let Some((mut test, layer)) = with_layers().await else { return };
        change(&test, &layer, write("a"));
        assert_eq!(content(&test, "a").as_deref(), Some("1\n"), "nothing is in place before it lands");
        let (_, finished) = finish(&mut test, layer, done()).await.unwrap();
        let changes: Vec<String> = finished.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!((changes, finished.is_error()), (vec!["a".to_owned()], false), "{}", finished.text());
        assert_eq!(content(&test, "a").as_deref(), Some("2\n"));
    }

    #[tokio::test]
    async fn a_command_that_changed_nothing_keeps_its_result() {
        let Some((mut test, layer)) = with_layers().await else { return };
        let (_, finished) = finish(&mut test, layer, done()).await.unwrap();
        assert_eq!((finished.text(), finished.changes), ("done".to_owned(), Vec::new()));
    }

    #[tokio::test]
    async fn a_loss_is_dropped_where_nobody_can_be_asked() {
        let Some((mut test, layer)) = with_layers().await else { return };
        change(&test, &layer, delete("ignored"));
        let (_, refused) = finish(&mut test, layer, done()).await.unwrap();
        assert_eq!(refused.state, CallState::Denied);
        let text = refused.text();
        assert!(text.contains("was tried out and dropped") && text.contains("ignored"), "{text}");
        assert!(test.root.join("ignored").exists());
        assert_eq!(test.approvals.unanswered_count(), 1);
    }

    #[tokio::test]
    async fn a_loss_that_a_person_allows_lands_and_is_said() {
        let Some((mut test, layer)) = with_layers().await else { return };
        test.cx.settings.approver = Approver::Handle;
        change(&test, &layer, delete("ignored"));
        let shared = Arc::clone(&test.cx.shared);
        let answers = async {
            let mut status = shared.status.subscribe();
            status.wait_for(|status| status.asked == [CallId::new("c1")]).await.unwrap();
            let answer = PermissionAnswer::allow();
            assert!(
                shared.answer_question(&CallId::new("c1"), AuthoredAnswer { answer, by: "ada".to_owned() })
            );
        };
        let finished = {
            let mut finishing = std::pin::pin!(finish(&mut test, layer, done()));
            tokio::select! {
                ended = &mut finishing => panic!("nobody was asked: {:?}", ended.map(|(_, it)| it.text())),
                () = answers => finishing.await,
            }
        };
        let (_, finished) = finished.unwrap();
        assert!(finished.text().contains("[landed after approval: it"), "{}", finished.text());
        assert!(!test.root.join("ignored").exists());
    }

    #[tokio::test]
    async fn nothing_lands_of_a_command_that_was_interrupted() {
        let Some((mut test, layer)) = with_layers().await else { return };
        change(&test, &layer, write("a"));
        let (_, finished) = finish(&mut test, layer, FinishedCall::interrupted()).await.unwrap();
        assert!(finished.text().ends_with("nothing of what it did was landed"), "{}", finished.text());
        assert_eq!((content(&test, "a").as_deref(), finished.changes), (Some("1\n"), Vec::new()));
    }
}
