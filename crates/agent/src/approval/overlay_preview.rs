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

use journeyman_tools::{Registry, Seen};

use super::approvals::Approvals;
use super::authorization::{ApprovedCall, JudgedCall, PermissionQuestion};
use crate::AgentError;
use crate::approval::destructive_changes::{
    describe_lost, describe_recoverable, list_changed_files, list_reasons,
};
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::session::context::Context;
use crate::transcript::running::CallChange;

/// Maximum bytes of the diff shown with the question.
const MAX_DIFF_BYTES: usize = 16 * 1024;

/// The session's experience with mounting layers. The first attempt decides.
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

/// The end of a command's layer.
enum LayerEnd {
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
        cx: &Context,
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
            registry.get(&asked.name).is_ok_and(|tool| tool.tries_out(&workspace, &asked.input))
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
    async fn layer_support(&mut self, cx: &Context) -> &LayerSupport {
        if matches!(self.layer_support, LayerSupport::Untested) {
            let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
            let session = cx.session.clone();
            let tried =
                run_blocking("mounting a layer", move || workspace.previews().can_start(&session, &sandbox))
                    .await;
            self.layer_support = match tried.and_then(|tried| tried.map_err(AgentError::from)) {
                Ok(()) => LayerSupport::Supported,
                Err(error) => LayerSupport::Unsupported(error.to_string()),
            };
        }
        &self.layer_support
    }

    /// Mounts the layer of a call that is about to run. The error is a text for the model.
    pub(crate) async fn mount_layer(&mut self, cx: &Context) -> Result<OverlayRun, String> {
        let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
        let session = cx.session.clone();
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
    cx: &mut Context,
    approvals: &mut Approvals,
    seen: &Arc<Seen>,
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
        note_nothing_landed(&mut finished, &list_reasons(&tried.refusals()));
        return Ok(Some((ready, finished)));
    }
    if tried.is_empty() {
        discard_layer(trial).await;
        return Ok(Some((ready, finished)));
    }
    let fate = decide_landing(cx, approvals, &mut ready, &tried, stop).await;
    match fate {
        Ok(LayerEnd::Land) => {}
        Ok(LayerEnd::Drop(refused)) => {
            discard_layer(trial).await;
            return Ok(Some((ready, *refused)));
        }
        Ok(LayerEnd::Settled) => {
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
    cx: &mut Context,
    approvals: &mut Approvals,
    ready: &mut ApprovedCall,
    tried: &OverlayChanges,
    stop: &CancellationToken,
) -> Result<LayerEnd, AgentError> {
    let Some(contained) = ready.preview.take() else { return Ok(LayerEnd::Land) };
    let losses = tried.destructive_changes();
    let lost = describe_lost(&losses);
    if lost.is_none() && contained.verdict.decision == Decision::Allow {
        return Ok(LayerEnd::Land);
    }
    let recoverable = describe_recoverable(&losses).filter(|_| lost.is_none());
    let reason = format!(
        "{}. It was tried out, and nothing of it is in place yet.{}{}",
        contained.verdict.reason,
        list_changed_files(&tried.changes())
            .map(|files| format!(" It would change {files}."))
            .unwrap_or_default(),
        recoverable.map(|files| format!(" {files}")).unwrap_or_default()
    );
    let mut rules = contained.verdict.rules.clone();
    rules.extend(lost.is_some().then(|| RULE_LOSS.to_owned()));
    let JudgedCall { verdict, mode, sandbox } = *contained;
    let verdict = Verdict { decision: Decision::Ask, reason, destroys: lost.clone(), rules, ..verdict };
    if !cx.can_ask() {
        return Ok(LayerEnd::Drop(Box::new(refuse_unanswered(cx, approvals, ready, verdict))));
    }
    let diff = diff_layer(cx, tried).await;
    // A lasting rule would skip later previews, so none is offered for destructive changes.
    let effects = Effects { previewed: true, ..ready.effects.clone() };
    let call =
        Call { tool: &ready.call.name, agent: None, mode, effects: &effects, sandbox: sandbox.as_ref() };
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
            Ok(LayerEnd::Land)
        }
        Some(Err(refused)) if cx.transcript.state().is_open(&ready.call.id) => {
            Ok(LayerEnd::Drop(Box::new(refused.finished)))
        }
        Some(Err(_)) => Ok(LayerEnd::Settled),
        None => Ok(LayerEnd::Drop(Box::new(FinishedCall::interrupted()))),
    }
}

fn refuse_unanswered(
    cx: &Context,
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
    approvals.refuse_unanswered(cx, &ready.call, verdict, text)
}

/// Returns the diff of the layer, for the question.
async fn diff_layer(cx: &Context, tried: &OverlayChanges) -> Option<String> {
    let (workspace, changes) = (Arc::clone(&cx.workspace), tried.copy_changes().clone());
    let diff = move || workspace.landings().diff(&changes, MAX_DIFF_BYTES);
    let diff = run_blocking("comparing a layer", diff).await.ok()?.ok()?;
    (!diff.text.is_empty()).then(|| cx.redactor.redact(&diff.text).into_owned())
}

async fn land_layer(
    cx: &Context,
    seen: &Arc<Seen>,
    ready: &ApprovedCall,
    trial: OverlayRun,
    tried: OverlayChanges,
    finished: &mut FinishedCall,
) -> Result<(), AgentError> {
    let (workspace, session) = (Arc::clone(&cx.workspace), cx.session.clone());
    let call = ready.call.id.clone();
    let seen = Arc::clone(seen);
    let land = move || -> Result<(OverlayLanding, OverlayChanges), WorkspaceError> {
        let landing = trial.land(&workspace, &tried, &session, &call)?;
        seen.left_by(&workspace, &landing.changes);
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
            list_reasons(&landing.left)
        );
        note_nothing_landed(finished, &why);
        return Ok(());
    }
    finished.changes = landing.changes;
    if let Some(lost) = describe_lost(&tried.destructive_changes()) {
        finished.parts.push(text_part(&format!("[landed after approval: it {lost}]")));
    }
    if !landing.left.is_empty() {
        finished.parts.push(text_part(&format!("[not landed: {}]", list_reasons(&landing.left))));
    }
    if !tried.left_out().is_empty() {
        let names: Vec<_> = tried
            .left_out()
            .iter()
            .map(|path| (path.clone(), "neither a file nor a link".to_owned()))
            .collect();
        finished.parts.push(text_part(&format!("[not landed: {}]", list_reasons(&names))));
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
