//! Where hooks come in on a session's way.

use std::sync::Arc;

use journeyman_model::ModelRequest;
use journeyman_policy::GUARDS;
use journeyman_protocol::{
    CallId, ErrorPhase, Event, FileChange, Message, MessageKind, RelPath, Role, RunOutcome,
};
use journeyman_tools::Seen;
use journeyman_workspace::{Aftermath, Guarded, TreeSnapshot, WorkspaceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::unseen::{ChangeReview, ShownFiles};
use crate::AgentError;
use crate::approval::judgement::Ready;
use crate::blocking::blocking;
use crate::calls::finished::Finished;
use crate::hooks::{
    GateSaid, HookContext, HookEvent, HookNotes, HookResult, HookSandbox, Hooks, PreTool, StartedBy, TurnEnd,
};
use crate::session::context::Context;
use crate::session::task_end::TaskEnd;
use crate::transcript::record::Queued;

/// Maximum extra turns that `turn_end` hooks may force in one task.
const MAX_SENT_BACK: u32 = 5;

/// What hooks say before a call.
pub(crate) struct Looked {
    pub(crate) context: Vec<String>,
    pub(crate) input: Option<Value>,
    pub(crate) decision: PreTool,
}

impl HookContext {
    /// Hooks may not change what is guarded in the tree; where that isn't known, they may change nothing.
    fn guard(&mut self, watched: Option<&(TreeSnapshot, Guarded)>) {
        if let Some(place) = &mut self.sandbox {
            place.protected = watched.map(|(_, guard)| guard.protected().to_vec());
        }
    }
}

fn listed<'a>(paths: impl Iterator<Item = &'a RelPath>) -> String {
    paths.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The hooks of a session, and what they left to be told or done.
pub(crate) struct HookDispatch {
    hooks: Hooks,
    /// How the session began, until its hooks have heard of it.
    starting: Option<StartedBy>,
    /// Why a hook wants the task to end.
    stop_reason: Option<String>,
    /// What hooks have for the model, until it is asked next.
    waiting_context: Vec<String>,
    /// Extra turns that hooks have forced in this task.
    sent_back: u32,
    /// The files that a person saw and let hooks run with.
    shown: ShownFiles,
}

impl HookDispatch {
    pub(crate) fn new(hooks: Hooks) -> Self {
        Self {
            hooks,
            starting: Some(StartedBy::Startup),
            stop_reason: None,
            waiting_context: Vec::new(),
            sent_back: 0,
            shown: ShownFiles::default(),
        }
    }

    /// Forgets what hooks wanted of the last task.
    pub(crate) fn begin_task(&mut self) {
        self.stop_reason = None;
        self.sent_back = 0;
    }

    /// Takes what hooks have for the model.
    pub(crate) fn take_context(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting_context)
    }

    /// Keeps what the model is to be told with the next request.
    pub(crate) fn keep_context(&mut self, context: Vec<String>) {
        self.waiting_context = context;
    }

    /// Where the hooks of an event run. Asks about what keeps one of them from running outside of the sandbox, where
    /// `asks` says that this can be done now.
    async fn context(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        event: HookEvent,
        cancel: &CancellationToken,
        asks: Option<&CancellationToken>,
    ) -> HookContext {
        let unseen = self.shown.find_unseen(cx, review, &self.hooks, event, asks).await;
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
                base: workspace.base(),
                reach: workspace.reach(),
                protected: None,
            }),
            unseen,
        }
    }

    /// Passes on what hooks say beside a decision; gives what is for the model.
    fn heed(&mut self, cx: &mut Context, notes: HookNotes) -> Vec<String> {
        for warning in notes.warnings {
            cx.transcript.warn(ErrorPhase::System, warning);
        }
        for message in notes.notices {
            cx.transcript.emit(Event::Warning { message });
        }
        if notes.stop.is_some() {
            self.stop_reason = notes.stop;
        }
        // A program of the user's own may print what is in its environment.
        let clean = |text: String| cx.redactor.redact(&text).into_owned();
        notes.context.into_iter().map(clean).collect()
    }

    fn gate(
        &mut self,
        cx: &mut Context,
        event: HookEvent,
        said: GateSaid,
    ) -> Result<Vec<String>, AgentError> {
        let context = self.heed(cx, said.notes);
        match said.denied {
            Some(reason) => Err(AgentError::HookDenied { event, reason }),
            None => Ok(context),
        }
    }

    /// Ends the task if a hook wants that.
    pub(crate) fn stop(&self) -> Option<TaskEnd> {
        let why = self.stop_reason.as_ref()?;
        Some(TaskEnd::new(RunOutcome::Interrupted, format!("a hook stopped the run: {why}")))
    }

    /// Before a call runs.
    pub(crate) async fn pre_tool(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        ready: &Ready,
        stop: &CancellationToken,
    ) -> Looked {
        if self.hooks.is_empty(HookEvent::PreTool) {
            return Looked { context: Vec::new(), input: None, decision: PreTool::Go };
        }
        let at = self.context(cx, review, HookEvent::PreTool, stop, Some(stop)).await;
        let said = self.hooks.pre_tool(&at, &ready.call, &ready.effects).await;
        let context = self.heed(cx, said.notes);
        Looked { context, input: said.input, decision: said.decision }
    }

    /// When a call has its result, which hooks may change; gives what else the model is told.
    pub(crate) async fn post_tool(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        seen: &Seen,
        ready: &Ready,
        finished: &mut Finished,
        stop: &CancellationToken,
    ) -> Vec<String> {
        if self.hooks.is_empty(HookEvent::PostTool) {
            return Vec::new();
        }
        let closing = cx.shared.closing.clone();
        let mut at = self.context(cx, review, HookEvent::PostTool, &closing, Some(stop)).await;
        let watched = if ready.read_only { None } else { watch_tree(cx).await };
        at.guard(watched.as_ref());
        let is_error = finished.is_error();
        let mut result = HookResult { parts: std::mem::take(&mut finished.parts), is_error };
        let notes = self.hooks.post_tool(&at, &ready.call, &ready.effects, &mut result).await;
        finished.parts = result.parts;
        if result.is_error != is_error {
            finished.mark(result.is_error);
        }
        let mut context = self.heed(cx, notes);
        let (touched, told) = record_changes(cx, seen, Some(&ready.call.id), watched).await;
        context.extend(told);
        finished.changes.extend(touched);
        context
    }

    /// Before the model is asked. Gives the transcript as it was, where hooks may have changed what is sent.
    pub(crate) async fn pre_model(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        request: &mut ModelRequest,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<Message>>, AgentError> {
        if self.hooks.is_empty(HookEvent::PreModel) {
            return Ok(None);
        }
        let said = request.messages.clone();
        let at = self.context(cx, review, HookEvent::PreModel, stop, None).await;
        let gate = self.hooks.pre_model(&at, request).await;
        match self.gate(cx, HookEvent::PreModel, gate) {
            Ok(context) => {
                match request.messages.last_mut() {
                    Some(last) if last.role == Role::User => {
                        last.content.extend(context.into_iter().map(journeyman_protocol::Block::text));
                    }
                    // The model goes on with its own words: nothing can be put between.
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

    /// When the model has replied; hooks may change the reply.
    pub(crate) async fn post_model(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        reply: &mut Message,
    ) {
        if self.hooks.is_empty(HookEvent::PostModel) {
            return;
        }
        let closing = cx.shared.closing.clone();
        let at = self.context(cx, review, HookEvent::PostModel, &closing, None).await;
        let notes = self.hooks.post_model(&at, reply).await;
        // A reply is no place to add to: what hooks have to say goes along with the next request.
        let context = self.heed(cx, notes);
        self.waiting_context.extend(context);
    }

    /// When a reply has been added to the transcript.
    pub(crate) async fn post_append(&mut self, cx: &mut Context, review: ChangeReview<'_>) {
        if self.hooks.is_empty(HookEvent::PostAppend) {
            return;
        }
        let closing = cx.shared.closing.clone();
        let at = self.context(cx, review, HookEvent::PostAppend, &closing, None).await;
        let added: Vec<Message> = cx.transcript.state().messages.last().cloned().into_iter().collect();
        let notes = self.hooks.post_append(&at, &added).await;
        let context = self.heed(cx, notes);
        self.waiting_context.extend(context);
    }

    /// Whether a hook sends the model back to work although it has nothing left to do.
    pub(crate) async fn sends_back(
        &mut self,
        cx: &mut Context,
        review: ChangeReview<'_>,
        seen: &Seen,
        last_text: &str,
        stop: &CancellationToken,
    ) -> bool {
        if self.hooks.is_empty(HookEvent::TurnEnd) {
            return false;
        }
        let mut at = self.context(cx, review, HookEvent::TurnEnd, stop, Some(stop)).await;
        let watched = if self.hooks.has_commands(HookEvent::TurnEnd) { watch_tree(cx).await } else { None };
        at.guard(watched.as_ref());
        let round = self.sent_back;
        let said = self.hooks.turn_end(&at, last_text, round).await;
        let mut context = self.heed(cx, said.notes);
        let (touched, told) = record_changes(cx, seen, None, watched).await;
        cx.index.changed(touched.iter().map(|change| &change.path));
        context.extend(told);
        self.waiting_context.extend(context);
        match said.decision {
            TurnEnd::Stop => false,
            TurnEnd::GoOn { reason } if round >= MAX_SENT_BACK => {
                let message = format!(
                    "a hook wanted the model to go on for the {round}th time and was not heard: {reason}"
                );
                cx.transcript.emit(Event::Warning { message });
                false
            }
            TurnEnd::GoOn { reason } => {
                self.sent_back += 1;
                cx.transcript.say(reason);
                true
            }
        }
    }

    /// When the session begins or is opened again, once; gives what the model is told.
    pub(crate) async fn session_start(&mut self, cx: &mut Context, review: ChangeReview<'_>) -> Vec<String> {
        let Some(by) = self.starting.take() else { return Vec::new() };
        if self.hooks.is_empty(HookEvent::SessionStart) {
            return Vec::new();
        }
        let closing = cx.shared.closing.clone();
        let at = self.context(cx, review, HookEvent::SessionStart, &closing, None).await;
        let notes = self.hooks.session_start(&at, by).await;
        self.heed(cx, notes)
    }

    /// When the session ends.
    pub(crate) async fn session_end(&mut self, cx: &mut Context, review: ChangeReview<'_>) {
        if self.hooks.is_empty(HookEvent::SessionEnd) {
            return;
        }
        // The session's own switch is off already.
        let at = self.context(cx, review, HookEvent::SessionEnd, &CancellationToken::new(), None).await;
        let notes = self.hooks.session_end(&at, "other").await;
        self.heed(cx, notes);
    }

    /// Shows hooks what a person says before it is taken. What they refuse is left out, and the reason is given;
    /// what they add goes along.
    pub(crate) async fn screen(
        &mut self,
        cx: &mut Context,
        mut review: ChangeReview<'_>,
        waiting: Vec<Queued>,
    ) -> (Vec<Queued>, Vec<String>, Option<AgentError>) {
        if self.hooks.is_empty(HookEvent::Prompt) {
            return (waiting, Vec::new(), None);
        }
        let (mut kept, mut context, mut denied) = (Vec::new(), Vec::new(), None);
        for queued in waiting {
            if queued.kind != MessageKind::User {
                kept.push(queued);
                continue;
            }
            let closing = cx.shared.closing.clone();
            let at = self.context(cx, review.reborrow(), HookEvent::Prompt, &closing, None).await;
            let said = self.hooks.prompt(&at, &queued.text).await;
            match self.gate(cx, HookEvent::Prompt, said) {
                Ok(more) => {
                    context.extend(more);
                    kept.push(queued);
                }
                Err(error) => {
                    cx.transcript.warn(ErrorPhase::System, error.to_string());
                    denied = Some(error);
                }
            }
        }
        (kept, context, denied)
    }

    /// How the session begins.
    pub(crate) fn starts(&mut self, by: StartedBy) {
        self.starting = Some(by);
    }
}

/// Looks at the tree before hooks run that may change it, such as a formatter after an edit: what they do is
/// undone with the session.
async fn watch_tree(cx: &mut Context) -> Option<(TreeSnapshot, Guarded)> {
    let workspace = Arc::clone(&cx.workspace);
    let begun = blocking("looking at the tree", move || {
        let before = workspace.command_begin()?;
        let guard = Guarded::before(&workspace, GUARDS)?;
        Ok((before, guard))
    });
    match begun.await.and_then(|begun| begun.map_err(|error: WorkspaceError| AgentError::from(error))) {
        Ok(watched) => Some(watched),
        Err(error) => {
            cx.transcript.warn(ErrorPhase::System, error.to_string());
            None
        }
    }
}

/// Journals what hooks changed, for the call they ran after, and takes away what they may not leave behind. Gives
/// what the model is told of it, too.
async fn record_changes(
    cx: &mut Context,
    seen: &Seen,
    call: Option<&CallId>,
    watched: Option<(TreeSnapshot, Guarded)>,
) -> (Vec<FileChange>, Vec<String>) {
    let Some((before, guard)) = watched else { return (Vec::new(), Vec::new()) };
    let workspace = Arc::clone(&cx.workspace);
    let (session, call) = (cx.session.clone(), call.cloned());
    let ended = blocking("looking at the tree", move || {
        // Hooks may have run outside of the sandbox, where nothing kept them from guarded files.
        let end = || workspace.command_end(before, &session, call.as_ref());
        let (changes, aftermath) = guard.end(&workspace, false, end);
        changes.map(|changes| (changes, aftermath))
    });
    match ended.await.and_then(|ended| ended.map_err(|error: WorkspaceError| AgentError::from(error))) {
        Ok((changes, Aftermath { violations, problem })) => {
            seen.left_by(&cx.workspace, &changes);
            if let Some(message) = problem {
                cx.transcript.emit(Event::Warning { message });
            }
            cx.transcript.note_violations(None, violations);
            let files = listed(changes.iter().map(|change| &change.path));
            let told = (!changes.is_empty())
                .then(|| format!("[a hook changed {files}; read it again before you edit it]"));
            (changes, told.into_iter().collect())
        }
        Err(error) => {
            cx.transcript.warn(ErrorPhase::System, error.to_string());
            (Vec::new(), Vec::new())
        }
    }
}
