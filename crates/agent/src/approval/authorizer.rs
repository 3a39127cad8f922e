//! Authorization: validates and judges a call, passes it to hooks, and decides to run, ask or
//! refuse.

use std::sync::Arc;
use std::time::Duration;

use journeyman_policy::is_decided_by_rule;
use journeyman_protocol::{CallState, Decision, Effects, Level, RelPath, ToolUse, Verdict};
use journeyman_tools::{DEFAULT_CALL_TIME, Registry};
use tokio_util::sync::CancellationToken;

use super::approvals::{AGENT_AUTHOR, Approvals, HOOK_AUTHOR};
use super::authorization::{ApprovedCall, Authorization, JudgedCall};
use super::decision_record::emit_decision;
use super::overlay_preview::{OverlayPreviews, PreviewPlan};
use crate::agents::complete_task::COMPLETE_TASK;
use crate::agents::definition::TASK_TOOL;
use crate::agents::role::EditScope;
use crate::calls::finished_call::FinishedCall;
use crate::hooks::PreToolDecision;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::request::apply_edit;
use crate::session::context::SessionContext;
use crate::transcript::running_transcript::CallChange;

/// Maximum characters of a tool's name that a refusal repeats.
const MAX_SHOWN_TOOL_NAME_CHARS: usize = 80;

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
        cx: &mut SessionContext,
        call: &ToolUse,
        stop: &CancellationToken,
    ) -> Authorization {
        if stop.is_cancelled() {
            return Authorization::Done(FinishedCall::interrupted());
        }
        if let Some(why) = &call.malformed {
            let text = match call.name.as_str() {
                apply_edit::TOOL_NAME => format!("not applied: {why}"),
                _ => {
                    format!("not run: the arguments are not valid JSON ({why}). Send the call again, whole.")
                }
            };
            return Authorization::Done(FinishedCall::without_output(CallState::Failed, text));
        }
        self.approvals.take_lasting_answers(cx);
        if let Some(refused) = self.refuse_agent_call(cx, call) {
            return Authorization::Done(refused);
        }
        match self.judge_call(cx, call).await {
            Ok((ready, judged)) => self.consult_hooks(cx, ready, judged, stop).await,
            Err(refused) => Authorization::Done(refused),
        }
    }

    /// Refuses a call of a tool that an agent doesn't have, or that it may not make in its last
    /// turn.
    fn refuse_agent_call(&self, cx: &SessionContext, call: &ToolUse) -> Option<FinishedCall> {
        let role = cx.role()?;
        let name = &call.name;
        let text = if cx.transcript.state().last_turn.is_some() && name != COMPLETE_TASK {
            format!("not run: this is the last turn, in which only {COMPLETE_TASK} is taken")
        } else if self.registry.get(name).is_err() {
            let has = self.registry.specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
            let name: String = name.chars().take(MAX_SHOWN_TOOL_NAME_CHARS).collect();
            format!("denied: the agent `{}` has no tool `{name}`. It has {has}", role.name)
        } else if role.edits == EditScope::TestFiles && runs_in_background(call) {
            "denied: this agent may change files of tests alone, so its commands don't run in the background"
                .to_owned()
        } else {
            return None;
        };
        emit_decision(cx, call, false, AGENT_AUTHOR, None);
        Some(FinishedCall::denied(text, AGENT_AUTHOR))
    }

    /// Returns the call with its effects, and policy's verdict.
    async fn judge_call(
        &mut self,
        cx: &mut SessionContext,
        call: &ToolUse,
    ) -> Result<(ApprovedCall, JudgedCall), FinishedCall> {
        let failed = |error: journeyman_tools::ToolError| {
            FinishedCall::without_output(CallState::Failed, error.to_string())
        };
        let tool = self.registry.get(&call.name).map_err(failed)?;
        let effects = tool.effects(&call.input).map_err(failed)?;
        let (read_only, starts_agents) = (tool.is_read_only(), tool.starts_agents());
        let effects = add_link_targets(cx, effects);
        let effects = Effects { previewed: effects.previewed || cx.is_isolated(), ..effects };
        let mut judged = self.approvals.judge_call(cx, &call.name, &effects, read_only).await;
        let limit = match tool.time_limit() {
            // The default of tools that set no limit of their own.
            Some(DEFAULT_CALL_TIME) => cx.settings.tool_timeout,
            Some(own) => own,
            None => Duration::MAX,
        };
        let trial =
            match self.previews.plan_preview(cx, self.approvals, call, &effects, &judged.verdict).await {
                PreviewPlan::First(contained) => Some(contained),
                PreviewPlan::No => None,
                PreviewPlan::Cannot(why) => {
                    judged.verdict.reason.push_str(&format!("; it can't be tried out first: {why}"));
                    None
                }
            };
        let (call, context) = (call.clone(), Vec::new());
        Ok((
            ApprovedCall {
                call,
                effects,
                read_only,
                starts_agents,
                time_limit: limit,
                context,
                preview: trial,
                layer: None,
            },
            judged,
        ))
    }

    /// Passes a call that policy doesn't deny to the hooks. Changed input is judged again.
    async fn consult_hooks(
        &mut self,
        cx: &mut SessionContext,
        mut ready: ApprovedCall,
        mut judged: JudgedCall,
        stop: &CancellationToken,
    ) -> Authorization {
        if judged.verdict.decision == Decision::Deny {
            return self.approvals.apply_verdict(cx, ready, judged);
        }
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let looked = self.hooks.run_pre_tool(cx, review, &ready, stop).await;
        ready.context = looked.context;
        if let Some(input) = looked.input {
            let amended = ToolUse { input, ..ready.call.clone() };
            match self.judge_call(cx, &amended).await {
                Ok((again, anew)) => {
                    ready = ApprovedCall { context: ready.context, ..again };
                    judged = anew;
                }
                Err(refused) => return Authorization::Done(refused),
            }
        }
        match looked.decision {
            PreToolDecision::Go => {}
            PreToolDecision::Approve { .. } if may_hook_approve(&judged.verdict) => {
                ready.preview = None;
                let change = CallChange { note: None, by: Some(HOOK_AUTHOR), verdict: Some(judged.verdict) };
                cx.transcript.change_call(&ready.call, CallState::Approved, change);
                return Authorization::Run(ready);
            }
            PreToolDecision::Approve { .. } => {}
            PreToolDecision::Ask { reason } => {
                ready.preview = None;
                let verdict = &mut judged.verdict;
                if verdict.decision == Decision::Allow {
                    (verdict.decision, verdict.reason) = (Decision::Ask, reason);
                }
            }
            PreToolDecision::Deny { reason } => {
                let text = format!("denied by a hook: {reason}");
                emit_decision(cx, &ready.call, false, HOOK_AUTHOR, Some(reason));
                return Authorization::Done(
                    FinishedCall::denied(text, HOOK_AUTHOR).with_notes(ready.context),
                );
            }
            PreToolDecision::Result { text, is_error } => {
                let state = if is_error { CallState::Failed } else { CallState::Completed };
                return Authorization::Done(
                    FinishedCall::without_output(state, text).with_notes(ready.context),
                );
            }
        }
        self.approvals.apply_verdict(cx, ready, judged)
    }
}

/// Returns true if the call starts a background command.
fn runs_in_background(call: &ToolUse) -> bool {
    call.name != TASK_TOOL && call.input.get("background").and_then(serde_json::Value::as_bool) == Some(true)
}

/// Adds the real paths behind links to the read and written files: a link to a guarded or hidden
/// file is guarded or hidden too.
fn add_link_targets(cx: &SessionContext, mut effects: Effects) -> Effects {
    effects.reads.extend(find_link_targets(cx, &effects.reads));
    effects.writes.extend(find_link_targets(cx, &effects.writes));
    effects
}

/// Returns the real paths behind links that are not among `paths`.
fn find_link_targets(cx: &SessionContext, paths: &[RelPath]) -> Vec<RelPath> {
    let real = paths.iter().filter_map(|path| cx.workspace.canonicalize(path).ok());
    real.filter(|path| !paths.contains(path)).collect()
}

/// Returns a file that an approved call would reach through a link and that it wasn't judged for,
/// because the link was made since.
pub(crate) fn find_unjudged_target(cx: &SessionContext, ready: &ApprovedCall) -> Option<RelPath> {
    let Effects { reads, writes, .. } = &ready.effects;
    find_link_targets(cx, reads).into_iter().chain(find_link_targets(cx, writes)).next()
}

/// Returns true if a hook may approve the call in place of a person: only if the mode asks, and no
/// rule does.
fn may_hook_approve(verdict: &Verdict) -> bool {
    verdict.decision == Decision::Ask && verdict.level < Level::System && !is_decided_by_rule(verdict)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::hooks::{HooksBuilder, PreToolAnswer};
    use crate::test_context::{TestContext, call};

    /// Authorizes a call in a context with these rules and hooks.
    async fn authorize(rules: &str, hooks: HooksBuilder, call: &ToolUse) -> (TestContext, Authorization) {
        let mut test = TestContext::new(&[]).await;
        test.set_rules(rules);
        let authorized = authorize_in(&mut test, hooks, call).await;
        (test, authorized)
    }

    /// Authorizes a call in a context.
    async fn authorize_in(test: &mut TestContext, hooks: HooksBuilder, call: &ToolUse) -> Authorization {
        let registry = Arc::new(Registry::with_builtin_at(&test.root));
        let mut hooks = HookDispatch::new(hooks.build());
        let mut previews = OverlayPreviews::new(Arc::clone(&registry));
        let mut authorizer = Authorizer {
            registry,
            approvals: &mut test.approvals,
            previews: &mut previews,
            hooks: &mut hooks,
            checkpoints: &mut test.checkpoints,
        };
        authorizer.authorize(&mut test.cx, call, &CancellationToken::new()).await
    }

    fn write(path: &str) -> ToolUse {
        call("c1", "write_file", json!({ "path": path, "content": "x" }))
    }

    fn refusal(authorized: Authorization) -> FinishedCall {
        match authorized {
            Authorization::Done(refused) => refused,
            Authorization::Run(_) | Authorization::Ask(..) => panic!("the call is to be refused"),
        }
    }

    const DENY_SECRETS: &str = "[[rule]]\ndecision = \"deny\"\npaths = [\"secrets/**\"]\nreason = \"no\"\n";
    const ASK_SECRETS: &str = "[[rule]]\ndecision = \"ask\"\npaths = [\"secrets/**\"]\nreason = \"look\"\n";

    #[tokio::test]
    async fn malformed_arguments_are_refused_before_policy_and_hooks() {
        let asked = HooksBuilder::new().on_pre_tool(|_, _, _| -> PreToolDecision { panic!("not asked") });
        let malformed = ToolUse { malformed: Some("cut off".to_owned()), ..write("a") };
        let refused = refusal(authorize("", asked, &malformed).await.1);
        assert_eq!(refused.state, CallState::Failed);
        let unknown = call("c1", "write_fiel", Value::Null);
        let refused = refusal(authorize("", HooksBuilder::new(), &unknown).await.1);
        assert!(refused.text().contains("write_file"), "a near name is suggested: {}", refused.text());
    }

    #[tokio::test]
    async fn a_hook_may_deny_what_policy_allows_but_not_allow_what_policy_denies() {
        let denies = HooksBuilder::new()
            .on_pre_tool(|_, _, _| PreToolDecision::Deny { reason: "not today".to_owned() });
        let refused = refusal(authorize("", denies, &write("a")).await.1);
        assert_eq!(
            (refused.text(), refused.by.as_deref()),
            ("denied by a hook: not today".to_owned(), Some(HOOK_AUTHOR))
        );
        let approves =
            HooksBuilder::new().on_pre_tool(|_, _, _| PreToolDecision::Approve { reason: "mine".to_owned() });
        let refused = refusal(authorize(DENY_SECRETS, approves, &write("secrets/key")).await.1);
        assert_eq!((refused.state, refused.by.as_deref()), (CallState::Denied, Some("policy")));
    }

    #[tokio::test]
    async fn a_hook_does_not_answer_the_question_of_a_rule() {
        let approves =
            HooksBuilder::new().on_pre_tool(|_, _, _| PreToolDecision::Approve { reason: "mine".to_owned() });
        let refused = refusal(authorize(ASK_SECRETS, approves, &write("secrets/key")).await.1);
        assert_eq!(refused.by.as_deref(), Some("headless"), "a person is to decide, and nobody is there");
    }

    #[tokio::test]
    async fn amended_arguments_are_judged_again() {
        let amends = HooksBuilder::new().on_pre_tool(|_, _, _| PreToolAnswer {
            input: Some(json!({ "path": "secrets/key", "content": "x" })),
            context: vec!["amended".to_owned()],
            ..PreToolAnswer::default()
        });
        let refused = refusal(authorize(DENY_SECRETS, amends, &write("a")).await.1);
        assert_eq!((refused.state, refused.by.as_deref()), (CallState::Denied, Some("policy")));
    }

    #[tokio::test]
    async fn reading_through_a_link_is_judged_by_the_real_path() {
        for rules in [DENY_SECRETS, ASK_SECRETS] {
            let mut test = TestContext::new(&[]).await;
            test.set_rules(rules);
            std::fs::create_dir(test.root.join("secrets")).unwrap();
            test.write("secrets/key", "x");
            for (target, link) in [("secrets/key", "notes.md"), ("secrets", "docs")] {
                std::os::unix::fs::symlink(target, test.root.join(link)).unwrap();
            }
            for path in ["notes.md", "docs/key"] {
                let read = call("1", "read_file", json!({ "path": path }));
                let refused = refusal(authorize_in(&mut test, HooksBuilder::new(), &read).await);
                assert_eq!(refused.state, CallState::Denied, "{path}");
            }
            let may_show = test.approvals.visible_file_filter(&test.cx);
            let shown = ["notes.md", "docs/key", "secrets/key", "a"]
                .map(|path| may_show(&RelPath::parse(path).unwrap()));
            assert_eq!(shown, [false, false, false, true]);
        }
    }

    #[tokio::test]
    async fn settings_are_not_shown_under_the_name_of_a_link() {
        let test = TestContext::new(&[]).await;
        test.write(".env", "A_TOKEN=x");
        std::os::unix::fs::symlink(".env", test.root.join("notes.md")).unwrap();
        let may_show = test.approvals.visible_file_filter(&test.cx);
        let shown = [".env", "notes.md"].map(|path| may_show(&RelPath::parse(path).unwrap()));
        assert_eq!(shown, [true, false], "what reads it under its own name masks its values");
    }

    #[tokio::test]
    async fn writing_through_a_link_is_judged_by_the_real_path() {
        let mut test = TestContext::new(&[]).await;
        std::fs::create_dir(test.root.join("secrets")).unwrap();
        test.write("secrets/key", "x");
        std::os::unix::fs::symlink("secrets/key", test.root.join("link")).unwrap();
        let effects = Effects { writes: vec![RelPath::parse("link").unwrap()], ..Effects::default() };
        let followed = add_link_targets(&test.cx, effects).writes;
        assert_eq!(followed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["link", "secrets/key"]);
        test.set_rules(DENY_SECRETS);
        let effects = Effects { writes: followed, ..Effects::default() };
        let judged = test.approvals.judge_call(&test.cx, "write_file", &effects, false).await;
        assert_eq!(judged.verdict.decision, Decision::Deny);
    }
}
