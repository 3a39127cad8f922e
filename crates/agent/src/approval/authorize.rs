//! Authorization: validates and judges a call, passes it to hooks, and decides to run, ask or
//! refuse.

use std::sync::Arc;
use std::time::Duration;

use journeyman_policy::is_by_rule;
use journeyman_protocol::{CallState, Decision, Effects, Level, RelPath, ToolUse, Verdict};
use journeyman_tools::{CALL_TIME, Registry};
use tokio_util::sync::CancellationToken;

use super::ask::{Approvals, HOOK, tell_decision};
use super::judgement::{ApprovedCall, Authorization, JudgedCall};
use super::overlay_preview::{OverlayPreviews, PreviewPlan};
use crate::calls::finished::FinishedCall;
use crate::hooks::PreToolDecision;
use crate::hooks::dispatch::HookDispatch;
use crate::hooks::unseen::ChangeReview;
use crate::isolation::checkpoints::Checkpoints;
use crate::session::context::Context;
use crate::transcript::running::CallChange;

/// The stages that decide about a call.
pub(crate) struct Authorizer<'a> {
    pub(crate) registry: Arc<Registry>,
    pub(crate) approvals: &'a mut Approvals,
    pub(crate) previews: &'a mut OverlayPreviews,
    pub(crate) hooks: &'a mut HookDispatch,
    pub(crate) checkpoints: &'a mut Checkpoints,
}

impl Authorizer<'_> {
    /// Validates and judges a call.
    pub(crate) async fn authorize(
        &mut self,
        cx: &mut Context,
        call: &ToolUse,
        stop: &CancellationToken,
    ) -> Authorization {
        if stop.is_cancelled() {
            return Authorization::Done(FinishedCall::interrupted());
        }
        if let Some(why) = &call.malformed {
            let text =
                format!("not run: the arguments are not valid JSON ({why}). Send the call again, whole.");
            return Authorization::Done(FinishedCall::refused(CallState::Failed, text));
        }
        match self.judged(cx, call).await {
            Ok((ready, judged)) => self.ask_hooks(cx, ready, judged, stop).await,
            Err(refused) => Authorization::Done(refused),
        }
    }

    /// Returns the call with its effects, and policy's verdict.
    async fn judged(
        &mut self,
        cx: &mut Context,
        call: &ToolUse,
    ) -> Result<(ApprovedCall, JudgedCall), FinishedCall> {
        let failed =
            |error: journeyman_tools::ToolError| FinishedCall::refused(CallState::Failed, error.to_string());
        let tool = self.registry.get(&call.name).map_err(failed)?;
        let effects = tool.effects(&call.input).map_err(failed)?;
        let read_only = tool.is_read_only();
        let effects = follow_links(cx, effects);
        let mut judged = self.approvals.judge(cx, &call.name, &effects, read_only).await;
        let limit = match tool.limit() {
            // The default of tools that set no limit of their own.
            Some(CALL_TIME) => cx.settings.tool_timeout,
            Some(own) => own,
            None => Duration::MAX,
        };
        let trial = match self.previews.plan(cx, self.approvals, call, &effects, &judged.verdict).await {
            PreviewPlan::First(contained) => Some(contained),
            PreviewPlan::No => None,
            PreviewPlan::Cannot(why) => {
                judged.verdict.reason.push_str(&format!("; it can't be tried out first: {why}"));
                None
            }
        };
        let (call, context) = (call.clone(), Vec::new());
        Ok((ApprovedCall { call, effects, read_only, limit, context, trial, layer: None }, judged))
    }

    /// Passes a call that policy doesn't deny to the hooks. Changed input is judged again.
    async fn ask_hooks(
        &mut self,
        cx: &mut Context,
        mut ready: ApprovedCall,
        mut judged: JudgedCall,
        stop: &CancellationToken,
    ) -> Authorization {
        if judged.verdict.decision == Decision::Deny {
            return self.approvals.admit(cx, ready, judged);
        }
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let looked = self.hooks.pre_tool(cx, review, &ready, stop).await;
        ready.context = looked.context;
        if let Some(input) = looked.input {
            let amended = ToolUse { input, ..ready.call.clone() };
            match self.judged(cx, &amended).await {
                Ok((again, anew)) => {
                    ready = ApprovedCall { context: ready.context, ..again };
                    judged = anew;
                }
                Err(refused) => return Authorization::Done(refused),
            }
        }
        match looked.decision {
            PreToolDecision::Go => {}
            PreToolDecision::Approve { .. } if is_a_hooks_to_approve(&judged.verdict) => {
                ready.trial = None;
                let change = CallChange { note: None, by: Some(HOOK), verdict: Some(judged.verdict) };
                cx.transcript.change_call(&ready.call, CallState::Approved, change);
                return Authorization::Run(ready);
            }
            PreToolDecision::Approve { .. } => {}
            PreToolDecision::Ask { reason } => {
                ready.trial = None;
                let verdict = &mut judged.verdict;
                if verdict.decision == Decision::Allow {
                    (verdict.decision, verdict.reason) = (Decision::Ask, reason);
                }
            }
            PreToolDecision::Deny { reason } => {
                let text = format!("denied by a hook: {reason}");
                tell_decision(cx, &ready.call, false, HOOK, Some(reason));
                return Authorization::Done(FinishedCall::denied(text, HOOK).saying(ready.context));
            }
            PreToolDecision::Result { text, is_error } => {
                let state = if is_error { CallState::Failed } else { CallState::Completed };
                return Authorization::Done(FinishedCall::refused(state, text).saying(ready.context));
            }
        }
        self.approvals.admit(cx, ready, judged)
    }
}

/// Adds the real paths behind links to the written files: a link to a guarded file is guarded too.
fn follow_links(cx: &Context, mut effects: Effects) -> Effects {
    let real: Vec<RelPath> = effects
        .writes
        .iter()
        .filter_map(|path| cx.workspace.canonical(path).ok())
        .filter(|path| !effects.writes.contains(path))
        .collect();
    effects.writes.extend(real);
    effects
}

/// Returns true if a hook may approve the call in place of a person: only if the mode asks, and no
/// rule does.
fn is_a_hooks_to_approve(verdict: &Verdict) -> bool {
    verdict.decision == Decision::Ask && verdict.level < Level::System && !is_by_rule(verdict)
}
