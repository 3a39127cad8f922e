//! Runs the hooks at the events of a session and applies their answers.

use std::sync::Arc;

use journeyman_model::ModelRequest;
use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{
    CallId, ErrorPhase, Event, FileChange, Message, MessageKind, RelPath, Role, RunOutcome,
};
use journeyman_tools::SeenFiles;
use journeyman_workspace::{ForbiddenChanges, GuardedState, TreeSnapshot, WorkspaceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::change_review::{ChangeReview, ShownFiles};
use crate::AgentError;
use crate::approval::authorization::ApprovedCall;
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::hooks::{
    GateResult, HookCallResult, HookContext, HookEvent, HookNotes, HookSandbox, Hooks, PreToolDecision,
    SessionStartKind, TurnEndDecision,
};
use crate::session::context::SessionContext;
use crate::session::task_end::TaskEnd;
use crate::transcript::pins::pinned_text;
use crate::transcript::record::{QueuedMessage, Record};

/// Maximum extra turns that `turn_end` hooks may force in one task.
const MAX_FORCED_TURNS: u32 = 5;

/// The combined answer of the hooks before a call.
pub(crate) struct PreToolOutcome {
    pub(crate) context: Vec<String>,
    pub(crate) input: Option<Value>,
    pub(crate) decision: PreToolDecision,
}

impl HookContext {
    /// Protects the guarded paths of the tree from hooks. If the guarded paths are unknown, hooks
    /// may change nothing.
    fn protect_guarded_paths(&mut self, watched: Option<&(TreeSnapshot, GuardedState)>) {
        if let Some(place) = &mut self.sandbox {
            place.protected = watched.map(|(_, guard)| guard.protected_paths().to_vec());
        }
    }
}

fn list_paths<'a>(paths: impl Iterator<Item = &'a RelPath>) -> String {
    paths.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The hooks of a session, and their answers that are still to be applied.
pub(crate) struct HookDispatch {
    hooks: Hooks,
    /// The way in which the session began, until its `session_start` hooks have run.
    unannounced_start: Option<SessionStartKind>,
    /// The reason why a hook wants the task to end.
    stop_reason: Option<String>,
    /// Hooks' context for the next request to the model.
    waiting_context: Vec<String>,
    /// Extra turns that hooks have forced in this task.
    forced_turns: u32,
    /// The files that a person reviewed and allowed hooks to run with.
    reviewed_files: ShownFiles,
}

impl HookDispatch {
    pub(crate) fn new(hooks: Hooks) -> Self {
        Self {
            hooks,
            unannounced_start: Some(SessionStartKind::Startup),
            stop_reason: None,
            waiting_context: Vec::new(),
            forced_turns: 0,
            reviewed_files: ShownFiles::default(),
        }
    }

    /// Returns true if hooks may run before the model's reply to the first request.
    pub(crate) fn can_run_before_reply(&self) -> bool {
        let events = [HookEvent::SessionStart, HookEvent::Prompt, HookEvent::PreModel];
        events.into_iter().any(|event| !self.hooks.has_no_hook_at(event))
    }

    /// Resets the stop request and the forced turns of the last task.
    pub(crate) fn begin_task(&mut self) {
        self.stop_reason = None;
        self.forced_turns = 0;
    }

    /// Takes the hooks' context for the model.
    pub(crate) fn take_context(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting_context)
    }

    /// Stores context for the next request to the model.
    pub(crate) fn keep_context(&mut self, context: Vec<String>) {
        self.waiting_context = context;
    }

    /// Returns the context of an event's hooks. With `asks`, a person is asked about unseen changes
    /// that keep a hook from running outside the sandbox.
    async fn hook_context(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        event: HookEvent,
        cancel: &CancellationToken,
        asks: Option<&CancellationToken>,
    ) -> HookContext {
        let unseen = self.reviewed_files.find_unseen(cx, review, &self.hooks, event, asks).await;
        let workspace = &cx.workspace;
        HookContext {
            session: cx.session.clone(),
            root: workspace.root().to_owned(),
            mode: cx.settings.mode,
            transcript: None,
            cancel: cancel.clone(),
            sandbox: Some(HookSandbox {
                sandbox: Arc::clone(&cx.sandbox),
                toolchains: Arc::clone(&cx.toolchains),
                needs: cx.settings.needs,
                base: workspace.project_copy(),
                reach: workspace.access_path(),
                protected: None,
            }),
            unseen,
        }
    }

    /// Reports the hooks' warnings and notices, and returns their context for the model.
    fn apply_notes(&mut self, cx: &mut SessionContext, notes: HookNotes) -> Vec<String> {
        for warning in notes.warnings {
            cx.transcript.emit_nonfatal_error(ErrorPhase::System, warning);
        }
        for message in notes.notices {
            cx.transcript.emit(Event::Warning { message });
        }
        if notes.stop.is_some() {
            self.stop_reason = notes.stop;
        }
        // A program of the user may print secrets from its environment.
        let clean = |text: String| cx.redactor.redact(&text).into_owned();
        notes.context.into_iter().map(clean).collect()
    }

    fn apply_gate_result(
        &mut self,
        cx: &mut SessionContext,
        event: HookEvent,
        said: GateResult,
    ) -> Result<Vec<String>, AgentError> {
        let context = self.apply_notes(cx, said.notes);
        match said.denied {
            Some(reason) => Err(AgentError::HookDenied { event, reason }),
            None => Ok(context),
        }
    }

    /// Returns the end of the task if a hook wants to stop it.
    pub(crate) fn requested_end(&self) -> Option<TaskEnd> {
        let why = self.stop_reason.as_ref()?;
        Some(TaskEnd::new(RunOutcome::Interrupted, format!("a hook stopped the run: {why}")))
    }

    /// Runs the hooks before a call.
    pub(crate) async fn run_pre_tool(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        ready: &ApprovedCall,
        stop: &CancellationToken,
    ) -> PreToolOutcome {
        if self.hooks.has_no_hook_at(HookEvent::PreTool) {
            return PreToolOutcome { context: Vec::new(), input: None, decision: PreToolDecision::Go };
        }
        let at = self.hook_context(cx, review, HookEvent::PreTool, stop, Some(stop)).await;
        let said = self.hooks.run_pre_tool(&at, &ready.call, &ready.effects).await;
        let context = self.apply_notes(cx, said.notes);
        PreToolOutcome { context, input: said.input, decision: said.decision }
    }

    /// Runs the hooks after a call, which may change its result. Returns their context for the
    /// model.
    pub(crate) async fn run_post_tool(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        seen: &SeenFiles,
        ready: &ApprovedCall,
        finished: &mut FinishedCall,
        stop: &CancellationToken,
    ) -> Vec<String> {
        if self.hooks.has_no_hook_at(HookEvent::PostTool) {
            return Vec::new();
        }
        let closing = cx.shared.closing.clone();
        let mut at = self.hook_context(cx, review, HookEvent::PostTool, &closing, Some(stop)).await;
        let watched = if ready.read_only { None } else { snapshot_tree(cx).await };
        at.protect_guarded_paths(watched.as_ref());
        let is_error = finished.is_error();
        let mut result = HookCallResult { parts: std::mem::take(&mut finished.parts), is_error };
        let notes = self.hooks.run_post_tool(&at, &ready.call, &ready.effects, &mut result).await;
        finished.parts = result.parts;
        if result.is_error != is_error {
            finished.set_error(result.is_error);
        }
        let mut context = self.apply_notes(cx, notes);
        let (touched, told) = record_changes(cx, seen, Some(&ready.call.id), watched).await;
        context.extend(told);
        finished.changes.extend(touched);
        context
    }

    /// Runs the hooks before a request to the model. Returns the messages as they were, if hooks
    /// ran and may have changed the request.
    pub(crate) async fn run_pre_model(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        request: &mut ModelRequest,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<Message>>, AgentError> {
        if self.hooks.has_no_hook_at(HookEvent::PreModel) {
            return Ok(None);
        }
        let said = request.messages.clone();
        let at = self.hook_context(cx, review, HookEvent::PreModel, stop, None).await;
        let gate = self.hooks.run_pre_model(&at, request).await;
        match self.apply_gate_result(cx, HookEvent::PreModel, gate) {
            Ok(context) => {
                match request.messages.last_mut() {
                    Some(last) if last.role == Role::User => {
                        last.content.extend(context.into_iter().map(journeyman_protocol::Block::text));
                    }
                    // The model continues its own message, so nothing can be inserted before the
                    // reply.
                    _ => self.waiting_context.extend(context),
                }
                Ok(Some(said))
            }
            Err(denied) => {
                request.messages = said;
                Err(denied)
            }
        }
    }

    /// Runs the hooks after the model's reply, which they may change.
    pub(crate) async fn run_post_model(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        reply: &mut Message,
    ) {
        if self.hooks.has_no_hook_at(HookEvent::PostModel) {
            return;
        }
        let closing = cx.shared.closing.clone();
        let at = self.hook_context(cx, review, HookEvent::PostModel, &closing, None).await;
        let notes = self.hooks.run_post_model(&at, reply).await;
        // Nothing can be added to a reply, so the hooks' context goes along with the next request.
        let context = self.apply_notes(cx, notes);
        self.waiting_context.extend(context);
    }

    /// Runs the hooks after a reply was added to the transcript.
    pub(crate) async fn run_post_append(&mut self, cx: &mut SessionContext, review: ChangeReview<'_>) {
        if self.hooks.has_no_hook_at(HookEvent::PostAppend) {
            return;
        }
        let closing = cx.shared.closing.clone();
        let at = self.hook_context(cx, review, HookEvent::PostAppend, &closing, None).await;
        let added: Vec<Message> = cx.transcript.state().messages.last().cloned().into_iter().collect();
        let notes = self.hooks.run_post_append(&at, &added).await;
        let context = self.apply_notes(cx, notes);
        self.waiting_context.extend(context);
    }

    /// Runs the hooks at the end of a turn. Returns true if a hook makes the model continue.
    pub(crate) async fn run_turn_end(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        seen: &SeenFiles,
        last_text: &str,
        stop: &CancellationToken,
    ) -> bool {
        if self.hooks.has_no_hook_at(HookEvent::TurnEnd) {
            return false;
        }
        let mut at = self.hook_context(cx, review, HookEvent::TurnEnd, stop, Some(stop)).await;
        let watched =
            if self.hooks.has_commands(HookEvent::TurnEnd) { snapshot_tree(cx).await } else { None };
        at.protect_guarded_paths(watched.as_ref());
        let round = self.forced_turns;
        let said = self.hooks.run_turn_end(&at, last_text, round).await;
        let mut context = self.apply_notes(cx, said.notes);
        let (touched, told) = record_changes(cx, seen, None, watched).await;
        cx.index.note_changed(touched.iter().map(|change| &change.path));
        context.extend(told);
        self.waiting_context.extend(context);
        match said.decision {
            TurnEndDecision::Stop => false,
            TurnEndDecision::GoOn { reason } if round >= MAX_FORCED_TURNS => {
                let message = format!(
                    "a hook wanted the model to go on for the {round}th time and was not heard: {reason}"
                );
                cx.transcript.emit(Event::Warning { message });
                false
            }
            TurnEndDecision::GoOn { reason } => {
                self.forced_turns += 1;
                cx.transcript.add_user_text(reason);
                true
            }
        }
    }

    /// Runs the hooks at the start of a session, once, and returns their context for the model.
    pub(crate) async fn run_session_start(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
    ) -> Vec<String> {
        let Some(by) = self.unannounced_start.take() else { return Vec::new() };
        if self.hooks.has_no_hook_at(HookEvent::SessionStart) {
            return Vec::new();
        }
        let closing = cx.shared.closing.clone();
        let at = self.hook_context(cx, review, HookEvent::SessionStart, &closing, None).await;
        let notes = self.hooks.run_session_start(&at, by).await;
        self.apply_notes(cx, notes)
    }

    /// Runs the hooks at the end of a session.
    pub(crate) async fn run_session_end(&mut self, cx: &mut SessionContext, review: ChangeReview<'_>) {
        if self.hooks.has_no_hook_at(HookEvent::SessionEnd) {
            return;
        }
        // The session's own token is cancelled already.
        let at = self.hook_context(cx, review, HookEvent::SessionEnd, &CancellationToken::new(), None).await;
        let notes = self.hooks.run_session_end(&at, "other").await;
        self.apply_notes(cx, notes);
    }

    /// Runs the hooks on a person's messages and pinned texts before the session takes them.
    /// Returns the accepted messages, the hooks' context, and the error of the last refused
    /// message; `None` if the session closes meanwhile, so that the messages have to stay queued.
    pub(crate) async fn screen_messages(
        &mut self,
        cx: &mut SessionContext,
        mut review: ChangeReview<'_>,
        waiting: Vec<QueuedMessage>,
    ) -> Option<(Vec<QueuedMessage>, Vec<String>, Option<AgentError>)> {
        if self.hooks.has_no_hook_at(HookEvent::Prompt) {
            return Some((waiting, Vec::new(), None));
        }
        let (mut kept, mut context, mut denied) = (Vec::new(), Vec::new(), None);
        for queued in waiting {
            let pinned = pinned_text(&queued);
            if queued.kind != MessageKind::User && pinned.is_none() {
                kept.push(queued);
                continue;
            }
            let closing = cx.shared.closing.clone();
            let at = self.hook_context(cx, review.reborrow(), HookEvent::Prompt, &closing, None).await;
            let said = self.hooks.run_prompt(&at, pinned.unwrap_or(&queued.text)).await;
            match self.apply_gate_result(cx, HookEvent::Prompt, said) {
                Ok(more) => {
                    context.extend(more);
                    kept.push(queued);
                }
                // The hook was cut off, and has refused nothing.
                Err(_) if closing.is_cancelled() => return None,
                Err(error) => {
                    cx.transcript.record(Record::Withdrawn { id: queued.id });
                    cx.transcript.emit_nonfatal_error(ErrorPhase::System, error.to_string());
                    if pinned.is_none() {
                        denied = Some(error);
                    }
                }
            }
        }
        Some((kept, context, denied))
    }

    /// Runs the hooks before the transcript is shortened. Returns the texts that they want to keep.
    pub(crate) async fn run_pre_compact(
        &mut self,
        cx: &mut SessionContext,
        review: ChangeReview<'_>,
        trigger: &str,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, AgentError> {
        if self.hooks.has_no_hook_at(HookEvent::PreCompact) {
            return Ok(Vec::new());
        }
        let at = self.hook_context(cx, review, HookEvent::PreCompact, stop, None).await;
        let said = self.hooks.run_pre_compact(&at, &cx.transcript.state().messages, trigger).await;
        self.apply_gate_result(cx, HookEvent::PreCompact, said)
    }

    /// Records the way in which the session begins.
    pub(crate) fn set_start_kind(&mut self, by: SessionStartKind) {
        self.unannounced_start = Some(by);
    }
}

/// Takes a snapshot of the tree before hooks that may change it, such as a formatter after an edit,
/// so that undoing the session undoes their changes.
async fn snapshot_tree(cx: &mut SessionContext) -> Option<(TreeSnapshot, GuardedState)> {
    let workspace = Arc::clone(&cx.workspace);
    let begun = run_blocking("looking at the tree", move || {
        let before = workspace.command_observer().begin()?;
        let guard = GuardedState::capture(&workspace, GUARD_RULES)?;
        Ok((before, guard))
    });
    match begun.await.and_then(|begun| begun.map_err(|error: WorkspaceError| AgentError::from(error))) {
        Ok(watched) => Some(watched),
        Err(error) => {
            cx.transcript.emit_nonfatal_error(ErrorPhase::System, error.to_string());
            None
        }
    }
}

/// Journals the changes that hooks made, for the call that they followed, and reverts changes of
/// guarded paths. Returns the changes and a note for the model.
async fn record_changes(
    cx: &mut SessionContext,
    seen: &SeenFiles,
    call: Option<&CallId>,
    watched: Option<(TreeSnapshot, GuardedState)>,
) -> (Vec<FileChange>, Vec<String>) {
    let Some((before, guard)) = watched else { return (Vec::new(), Vec::new()) };
    let workspace = Arc::clone(&cx.workspace);
    let (session, call) = (cx.session.clone(), call.cloned());
    let ended = run_blocking("looking at the tree", move || {
        // Hooks may have run outside the sandbox, where guarded files are not protected.
        let end = || workspace.command_observer().end(before, &session, call.as_ref());
        let (changes, aftermath) = guard.revert_and_journal(&workspace, false, end);
        changes.map(|changes| (changes, aftermath))
    });
    match ended.await.and_then(|ended| ended.map_err(|error: WorkspaceError| AgentError::from(error))) {
        Ok((changes, ForbiddenChanges { violations, problem })) => {
            seen.note_changes(&cx.workspace, &changes);
            if let Some(message) = problem {
                cx.transcript.emit(Event::Warning { message });
            }
            cx.transcript.record_violations(None, violations);
            let files = list_paths(changes.iter().map(|change| &change.path));
            let told = (!changes.is_empty())
                .then(|| format!("[a hook changed {files}; read it again before you edit it]"));
            (changes, told.into_iter().collect())
        }
        Err(error) => {
            cx.transcript.emit_nonfatal_error(ErrorPhase::System, error.to_string());
            (Vec::new(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use journeyman_protocol::{CallState, ResultPart};
    use journeyman_tools::Registry;
    use serde_json::json;

    use super::*;
    use crate::hooks::{GateDecision, HooksBuilder};
    use crate::request::builder::RequestBuilder;
    use crate::test_context::{SECRET, TestContext, approved, call, user_message};
    use crate::transcript::pins::pinned_message;

    fn request(test: &mut TestContext) -> ModelRequest {
        RequestBuilder::new(Arc::new(Registry::default()), true).build(&mut test.cx)
    }

    #[tokio::test]
    async fn a_hook_changes_the_request_but_not_the_transcript() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.add_user_text("do it");
        let hooks = HooksBuilder::new().on_pre_model(|_, request| {
            request.temperature = Some(0.5);
            GateDecision::Go { context: vec!["be brief".to_owned()] }
        });
        let mut hooks = HookDispatch::new(hooks.build());
        let mut request = request(&mut test);
        let (cx, review) = test.review();
        let before = hooks.run_pre_model(cx, review, &mut request, &CancellationToken::new()).await.unwrap();
        assert_eq!(before.unwrap(), [Message::user_text("do it")]);
        assert_eq!(request.temperature, Some(0.5));
        assert!(request.messages[0].text().contains("be brief"), "{:?}", request.messages);
    }

    #[tokio::test]
    async fn a_denied_request_keeps_its_messages() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.add_user_text("do it");
        let hooks = HooksBuilder::new().on_pre_model(|_, request| {
            request.messages.clear();
            GateDecision::Deny { reason: "over budget".to_owned() }
        });
        let mut hooks = HookDispatch::new(hooks.build());
        let mut request = request(&mut test);
        let (cx, review) = test.review();
        let denied = hooks.run_pre_model(cx, review, &mut request, &CancellationToken::new()).await;
        assert!(
            matches!(denied, Err(AgentError::HookDenied { event: HookEvent::PreModel, .. })),
            "{denied:?}"
        );
        assert_eq!(request.messages, [Message::user_text("do it")]);
    }

    #[tokio::test]
    async fn hooks_send_the_model_back_a_bounded_number_of_times() {
        let mut test = TestContext::new(&[]).await;
        let hooks = HooksBuilder::new()
            .on_turn_end(|_, _| TurnEndDecision::GoOn { reason: "the changelog is missing".to_owned() });
        let mut hooks = HookDispatch::new(hooks.build());
        let (seen, stop) = (SeenFiles::default(), CancellationToken::new());
        let mut sent_back = 0;
        loop {
            let (cx, review) = test.review();
            if !hooks.run_turn_end(cx, review, &seen, "done", &stop).await {
                break;
            }
            sent_back += 1;
        }
        assert_eq!(sent_back, MAX_FORCED_TURNS);
        assert!(matches!(test.events().await[..], [Event::Warning { .. }]), "the refusal is reported");
        hooks.begin_task();
        let (cx, review) = test.review();
        assert!(hooks.run_turn_end(cx, review, &seen, "done", &stop).await, "a task counts anew");
    }

    #[tokio::test]
    async fn a_hook_may_change_a_result_and_its_context_is_redacted() {
        let mut test = TestContext::new(&[]).await;
        let hooks = HooksBuilder::new().on_post_tool(|_, _, result| {
            result.set_text("shortened");
            result.is_error = true;
            vec![format!("the token is {SECRET}")]
        });
        let mut hooks = HookDispatch::new(hooks.build());
        let ready = approved(call("c1", "read_file", json!({})), &[]);
        let parts = vec![ResultPart::Text { text: "long".to_owned() }];
        let mut finished = FinishedCall::with_output(CallState::Completed, parts, Vec::new());
        let (seen, stop) = (SeenFiles::default(), CancellationToken::new());
        let (cx, review) = test.review();
        let context = hooks.run_post_tool(cx, review, &seen, &ready, &mut finished, &stop).await;
        assert_eq!((finished.text(), finished.state), ("shortened".to_owned(), CallState::Failed));
        assert!(context.len() == 1 && !context[0].contains(SECRET), "{context:?}");
    }

    #[tokio::test]
    async fn a_refused_message_is_dropped_and_the_others_are_kept() {
        let mut test = TestContext::new(&[]).await;
        let hooks = HooksBuilder::new().on_prompt(|_, text| match text {
            "bad" => GateDecision::Deny { reason: "no".to_owned() },
            _ => GateDecision::GO_WITHOUT_CONTEXT,
        });
        let mut hooks = HookDispatch::new(hooks.build());
        let notice = QueuedMessage { kind: MessageKind::System, ..user_message(3, "bad") };
        let pinned = |id, text: &str| {
            let message = user_message(id, &pinned_message(text, &[]).unwrap());
            QueuedMessage {
                kind: MessageKind::System,
                category: journeyman_protocol::ReminderCategory::Pinned,
                ..message
            }
        };
        let waiting = vec![
            user_message(1, "good"),
            user_message(2, "bad"),
            notice,
            pinned(4, "bad"),
            pinned(5, "good"),
        ];
        let (cx, review) = test.review();
        let (kept, _, denied) = hooks.screen_messages(cx, review, waiting).await.unwrap();
        let kept: Vec<u64> = kept.iter().map(|queued| queued.id.0).collect();
        assert_eq!(kept, [1, 3, 5], "messages and pins of a person are screened");
        assert!(matches!(denied, Some(AgentError::HookDenied { event: HookEvent::Prompt, .. })));
    }

    #[tokio::test]
    async fn session_start_hooks_run_once() {
        let mut test = TestContext::new(&[]).await;
        let begun = Arc::new(Mutex::new(0));
        let count = Arc::clone(&begun);
        let hooks = HooksBuilder::new().on_session_start(move |_| {
            *count.lock().unwrap() += 1;
            vec!["read NOTES.md first".to_owned()]
        });
        let mut hooks = HookDispatch::new(hooks.build());
        let (cx, review) = test.review();
        assert_eq!(hooks.run_session_start(cx, review).await, ["read NOTES.md first"]);
        let (cx, review) = test.review();
        assert_eq!(hooks.run_session_start(cx, review).await, Vec::<String>::new());
        assert_eq!(*begun.lock().unwrap(), 1);
    }
}
