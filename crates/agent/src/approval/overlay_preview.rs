//! Commands that may destroy what undoing can't bring back: tried out in a layer over the tree first, then asked about
//! with what they would really take away, then landed or dropped.
//!
//! While such a command runs, and while somebody thinks about it, nothing of it is in place: a crash drops the layer.
//! Its landing is one transaction of the call, begun when the log says that it executes.

use std::sync::Arc;

use journeyman_policy::{Call, RULE_LOSS};
use journeyman_protocol::{CallState, Decision, Effects, Event, Level, ResultPart, ToolUse, Verdict};
use journeyman_workspace::{Trial, TrialLanding, Tried, WorkspaceError};
use tokio_util::sync::CancellationToken;

use journeyman_tools::{Registry, Seen};

use super::ask::Approvals;
use super::judgement::{Judged, Question, Ready};
use crate::AgentError;
use crate::approval::destructive_changes::{changed, lost, reasons, recoverable};
use crate::blocking::blocking;
use crate::calls::finished::Finished;
use crate::session::context::Context;
use crate::transcript::running::CallChange;

/// Bytes of the diff that people are shown with the question.
const SHOWN_DIFF: usize = 16 * 1024;

/// What is known of layers in a session: the first that was wanted tells.
#[derive(Debug, Default)]
pub(crate) enum Layers {
    #[default]
    Untried,
    Work,
    /// Why none can be mounted here.
    Fail(String),
}

/// Whether a call is tried out.
pub(crate) enum Trying {
    /// It runs as every call does, or is asked about before.
    No,
    /// It is; what would be said of it if nothing were lost.
    First(Box<Judged>),
    /// It would be, but for this.
    Cannot(String),
}

/// What becomes of a command's layer.
enum Fate {
    Land,
    /// It goes, and the call has this result.
    Drop(Box<Finished>),
    /// It goes, and the call has its result already.
    Settled,
}

/// The overlay previews of a session.
pub(crate) struct OverlayPreviews {
    registry: Arc<Registry>,
    layers: Layers,
}

impl OverlayPreviews {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, layers: Layers::Untried }
    }

    /// Whether a call that was judged is to be tried out first.
    pub(crate) async fn plan(
        &mut self,
        cx: &Context,
        approvals: &Approvals,
        call: &ToolUse,
        effects: &Effects,
        verdict: &Verdict,
    ) -> Trying {
        let ordinary = match verdict.decision {
            // What a rule allows by name runs as it is.
            Decision::Allow => verdict.rules.is_empty(),
            // What anybody else's rule wants asked is asked before.
            Decision::Ask => verdict.rules.iter().all(|rule| rule == RULE_LOSS),
            Decision::Deny => false,
        };
        // A session in a copy has its layer already.
        let in_place = cx.copy.is_none() && cx.workspace.base().is_none();
        let reaches = matches!(verdict.level, Level::Edit | Level::Shell);
        if !(ordinary && in_place && reaches && effects.command.is_some()) {
            return Trying::No;
        }
        let (registry, workspace) = (Arc::clone(&self.registry), Arc::clone(&cx.workspace));
        let asked = call.clone();
        let wanted = blocking("looking at what a command names", move || {
            registry.get(&asked.name).is_ok_and(|tool| tool.tries_out(&workspace, &asked.input))
        });
        if !wanted.await.unwrap_or(false) {
            return Trying::No;
        }
        let contained = Effects { previewed: true, ..effects.clone() };
        let judged = approvals.judge(cx, &call.name, &contained, false).await;
        let allowed = judged.verdict.decision == Decision::Allow;
        // Where nobody can be asked in the end, or what it sends can't be taken back, there is nothing to be won.
        if judged.verdict.decision == Decision::Deny
            || !(allowed || (cx.can_ask() && effects.hosts.is_empty()))
        {
            return Trying::No;
        }
        match self.layers(cx).await {
            Layers::Fail(why) => Trying::Cannot(why.clone()),
            Layers::Untried | Layers::Work => Trying::First(Box::new(judged)),
        }
    }

    /// Whether layers can be mounted over this tree; found out once a session.
    async fn layers(&mut self, cx: &Context) -> &Layers {
        if matches!(self.layers, Layers::Untried) {
            let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
            let session = cx.session.clone();
            let tried = blocking("mounting a layer", move || workspace.can_try_out(&session, &sandbox)).await;
            self.layers = match tried.and_then(|tried| tried.map_err(AgentError::from)) {
                Ok(()) => Layers::Work,
                Err(error) => Layers::Fail(error.to_string()),
            };
        }
        &self.layers
    }

    /// Mounts the layer of a call that is about to run; why not, for the model, where that can't be done.
    pub(crate) async fn mount(&mut self, cx: &Context) -> Result<Trial, String> {
        let (workspace, sandbox) = (Arc::clone(&cx.workspace), Arc::clone(&cx.sandbox));
        let session = cx.session.clone();
        let made = blocking("mounting a layer", move || workspace.try_out(&session, &sandbox)).await;
        made.and_then(|made| made.map_err(AgentError::from)).map_err(|error| {
            let why = error.to_string();
            // The next one is asked about before it runs.
            self.layers = Layers::Fail(why.clone());
            format!(
                "not run: it was to be tried out first, and that can't be done: {why}. Make the call again."
            )
        })
    }
}

/// Brings what a command did in its layer to an end: landed, asked about first where that is needed, or dropped.
/// `None` where the call has its result by then.
pub(crate) async fn finish_preview(
    cx: &mut Context,
    approvals: &mut Approvals,
    seen: &Arc<Seen>,
    mut ready: Ready,
    trial: Trial,
    mut finished: Finished,
    stop: &CancellationToken,
) -> Result<Option<(Ready, Finished)>, AgentError> {
    // What the tool tells was in the layer.
    finished.changes.clear();
    if finished.abandoned || finished.state == CallState::Interrupted {
        discard(trial).await;
        finished.parts.push(text("nothing of what it did was landed"));
        return Ok(Some((ready, finished)));
    }
    let workspace = Arc::clone(&cx.workspace);
    let looked = move || {
        let tried = trial.examine(&workspace);
        (trial, tried)
    };
    let (trial, tried) = blocking("looking at what a command did", looked).await?;
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => {
            discard(trial).await;
            refuse(&mut finished, &format!("what it did can't be told: {error}"));
            return Ok(Some((ready, finished)));
        }
    };
    if !tried.objections().is_empty() {
        discard(trial).await;
        refuse(&mut finished, &reasons(&tried.objections()));
        return Ok(Some((ready, finished)));
    }
    if tried.is_empty() {
        discard(trial).await;
        return Ok(Some((ready, finished)));
    }
    let fate = decide_landing(cx, approvals, &mut ready, &tried, stop).await;
    match fate {
        Ok(Fate::Land) => {}
        Ok(Fate::Drop(refused)) => {
            discard(trial).await;
            return Ok(Some((ready, *refused)));
        }
        Ok(Fate::Settled) => {
            discard(trial).await;
            return Ok(None);
        }
        Err(error) => {
            discard(trial).await;
            return Err(error);
        }
    }
    land_layer(cx, seen, &ready, trial, tried, &mut finished).await?;
    Ok(Some((ready, finished)))
}

/// Whether what a command did is landed; asks where somebody has to decide.
async fn decide_landing(
    cx: &mut Context,
    approvals: &mut Approvals,
    ready: &mut Ready,
    tried: &Tried,
    stop: &CancellationToken,
) -> Result<Fate, AgentError> {
    let Some(contained) = ready.trial.take() else { return Ok(Fate::Land) };
    let losses = tried.losses();
    let lost = lost(&losses);
    if lost.is_none() && contained.verdict.decision == Decision::Allow {
        return Ok(Fate::Land);
    }
    let mut reason = format!(
        "{}. It was tried out, and nothing of it is in place yet; it changes {}",
        contained.verdict.reason,
        changed(&tried.changes())
    );
    if let Some(kept) = recoverable(&losses).filter(|_| lost.is_none()) {
        reason.push_str(&format!(", and removes or replaces {kept}"));
    }
    let mut rules = contained.verdict.rules.clone();
    rules.extend(lost.is_some().then(|| RULE_LOSS.to_owned()));
    let Judged { verdict, mode, sandbox } = *contained;
    let verdict = Verdict { decision: Decision::Ask, reason, destroys: lost.clone(), rules, ..verdict };
    if !cx.can_ask() {
        return Ok(Fate::Drop(Box::new(refuse_unanswered(cx, approvals, ready, verdict))));
    }
    show_diff(cx, ready, tried).await;
    // What «from now on» covers is never tried out again: not offered for what is lost.
    let effects = Effects { previewed: true, ..ready.effects.clone() };
    let call =
        Call { tool: &ready.call.name, agent: None, mode, effects: &effects, sandbox: sandbox.as_ref() };
    let rules = lost.is_none().then(|| approvals.propose(&call)).flatten();
    let judged = Judged { verdict, mode, sandbox };
    let asked = Ready { context: std::mem::take(&mut ready.context), ..ready.again() };
    let mut answers = approvals.ask_all(cx, vec![(asked, Question { judged, rules })], stop).await?;
    match answers.pop() {
        Some(Ok(allowed)) => {
            ready.context = allowed.context;
            cx.transcript.change_call(&ready.call, CallState::Executing, CallChange::default());
            cx.transcript.flush().await?;
            Ok(Fate::Land)
        }
        Some(Err(refused)) if cx.transcript.state().is_open(&ready.call.id) => {
            Ok(Fate::Drop(Box::new(refused.finished)))
        }
        Some(Err(_)) => Ok(Fate::Settled),
        None => Ok(Fate::Drop(Box::new(Finished::interrupted()))),
    }
}

fn refuse_unanswered(cx: &Context, approvals: &mut Approvals, ready: &Ready, verdict: Verdict) -> Finished {
    let what = verdict.destroys.as_deref().unwrap_or(&verdict.reason);
    let text = format!(
        "denied: {} was tried out and dropped, nothing of it was landed. It {what}. That needs a person's \
         permission, and nobody can be asked here. Go on without it if you can.",
        ready.call.name
    );
    approvals.refuse_unanswered(cx, &ready.call, verdict, text)
}

/// Shows people what would be landed, as the call's output.
async fn show_diff(cx: &Context, ready: &Ready, tried: &Tried) {
    let (workspace, changes) = (Arc::clone(&cx.workspace), tried.copy_changes().clone());
    let diff = move || workspace.copy_diff(&changes, SHOWN_DIFF);
    if let Ok(Ok(diff)) = blocking("comparing a layer", diff).await
        && !diff.text.is_empty()
    {
        let text = cx.redactor.redact(&diff.text).into_owned();
        cx.transcript.log().live_sink().send(Event::ToolOutput { call: ready.call.id.clone(), text });
    }
}

async fn land_layer(
    cx: &Context,
    seen: &Arc<Seen>,
    ready: &Ready,
    trial: Trial,
    tried: Tried,
    finished: &mut Finished,
) -> Result<(), AgentError> {
    let (workspace, session) = (Arc::clone(&cx.workspace), cx.session.clone());
    let call = ready.call.id.clone();
    let seen = Arc::clone(seen);
    let land = move || -> Result<(TrialLanding, Tried), WorkspaceError> {
        let landing = trial.land(&workspace, &tried, &session, &call)?;
        seen.left_by(&workspace, &landing.changes);
        Ok((landing, tried))
    };
    let (landing, tried) = match blocking("landing what a command did", land).await? {
        Ok(done) => done,
        Err(error) => {
            refuse(finished, &error.to_string());
            return Ok(());
        }
    };
    if !landing.landed {
        let why =
            format!("{}. Look at the files, and do it again if it still makes sense", reasons(&landing.left));
        refuse(finished, &why);
        return Ok(());
    }
    finished.changes = landing.changes;
    if let Some(lost) = lost(&tried.losses()) {
        finished.parts.push(text(&format!("[landed after approval: it {lost}]")));
    }
    if !landing.left.is_empty() {
        finished.parts.push(text(&format!("[not landed: {}]", reasons(&landing.left))));
    }
    if !tried.left_out().is_empty() {
        let names: Vec<_> = tried
            .left_out()
            .iter()
            .map(|path| (path.clone(), "neither a file nor a link".to_owned()))
            .collect();
        finished.parts.push(text(&format!("[not landed: {}]", reasons(&names))));
    }
    Ok(())
}

/// Says that nothing was landed.
fn refuse(finished: &mut Finished, why: &str) {
    finished.parts.push(text(&format!("error: nothing of what it did was landed: {why}")));
    finished.mark(true);
}

fn text(text: &str) -> ResultPart {
    ResultPart::Text { text: text.to_owned() }
}

/// Removes a layer beside the session's other work: it may hold gigabytes.
async fn discard(trial: Trial) {
    // What can't be removed now is swept by the next one.
    blocking("removing a layer", move || trial.discard()).await.ok();
}
