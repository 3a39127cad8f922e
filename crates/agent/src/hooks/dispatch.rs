//! Where hooks come in on a session's way.

use std::sync::Arc;

use journeyman_model::ModelRequest;
use journeyman_policy::GUARDS;
use journeyman_protocol::{
    CallId, ErrorPhase, Event, FileChange, Message, MessageKind, RelPath, Role, RunOutcome,
};
use journeyman_workspace::{Aftermath, Guarded, TreeSnapshot, WorkspaceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::calls::finished::Finished;
use crate::calls::runner::Ready;
use crate::hooks::{
    GateSaid, HookContext, HookEvent, HookNotes, HookResult, HookSandbox, PreTool, StartedBy, TurnEnd,
};
use crate::session::turn::{End, MAX_SENT_BACK, Worker, blocking};
use crate::transcript::record::Queued;

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

impl Worker {
    /// Where the hooks of an event run. Asks about what keeps one of them from running outside of the sandbox, where
    /// `asks` says that this can be done now.
    async fn hook_context(
        &mut self,
        event: HookEvent,
        cancel: &CancellationToken,
        asks: Option<&CancellationToken>,
    ) -> HookContext {
        let unseen = self.unseen(event, asks).await;
        let workspace = &self.parts.workspace;
        HookContext {
            session: self.session.clone(),
            root: workspace.root().to_owned(),
            mode: self.settings.mode,
            transcript: None,
            cancel: cancel.clone(),
            sandbox: Some(HookSandbox {
                sandbox: Arc::clone(&self.parts.sandbox),
                toolchains: Arc::clone(&self.parts.toolchains),
                needs: self.settings.needs,
                base: workspace.base(),
                reach: workspace.reach(),
                protected: None,
            }),
            unseen,
        }
    }

    /// Passes on what hooks say beside a decision; gives what is for the model.
    fn heed(&mut self, notes: HookNotes) -> Vec<String> {
        for warning in notes.warnings {
            self.warn(ErrorPhase::System, warning);
        }
        for message in notes.notices {
            self.log.emit(Event::Warning { message });
        }
        if notes.stop.is_some() {
            self.stopped_by_hook = notes.stop;
        }
        // A program of the user's own may print what is in its environment.
        let clean = |text: String| self.parts.redactor.redact(&text).into_owned();
        notes.context.into_iter().map(clean).collect()
    }

    fn gate(&mut self, event: HookEvent, said: GateSaid) -> Result<Vec<String>, AgentError> {
        let context = self.heed(said.notes);
        match said.denied {
            Some(reason) => Err(AgentError::HookDenied { event, reason }),
            None => Ok(context),
        }
    }

    /// Ends the task if a hook wants that.
    pub(crate) fn hooks_end(&self) -> Option<End> {
        let why = self.stopped_by_hook.as_ref()?;
        Some(End::new(RunOutcome::Interrupted, format!("a hook stopped the run: {why}")))
    }

    /// Before a call runs.
    pub(crate) async fn pre_tool(&mut self, ready: &Ready, stop: &CancellationToken) -> Looked {
        if self.parts.hooks.is_empty(HookEvent::PreTool) {
            return Looked { context: Vec::new(), input: None, decision: PreTool::Go };
        }
        let at = self.hook_context(HookEvent::PreTool, stop, Some(stop)).await;
        let said = self.parts.hooks.pre_tool(&at, &ready.call, &ready.effects).await;
        let context = self.heed(said.notes);
        Looked { context, input: said.input, decision: said.decision }
    }

    /// When a call has its result, which hooks may change; gives what else the model is told.
    pub(crate) async fn post_tool(
        &mut self,
        ready: &Ready,
        finished: &mut Finished,
        stop: &CancellationToken,
    ) -> Vec<String> {
        if self.parts.hooks.is_empty(HookEvent::PostTool) {
            return Vec::new();
        }
        let closing = self.shared.closing.clone();
        let mut at = self.hook_context(HookEvent::PostTool, &closing, Some(stop)).await;
        let watched = if ready.read_only { None } else { self.watch_tree().await };
        at.guard(watched.as_ref());
        let is_error = finished.is_error();
        let mut result = HookResult { parts: std::mem::take(&mut finished.parts), is_error };
        let notes = self.parts.hooks.post_tool(&at, &ready.call, &ready.effects, &mut result).await;
        finished.parts = result.parts;
        if result.is_error != is_error {
            finished.mark(result.is_error);
        }
        let mut context = self.heed(notes);
        let (touched, told) = self.hooks_changes(Some(&ready.call.id), watched).await;
        context.extend(told);
        finished.changes.extend(touched);
        context
    }

    /// Looks at the tree before hooks run that may change it, such as a formatter after an edit: what they do is
    /// undone with the session.
    async fn watch_tree(&mut self) -> Option<(TreeSnapshot, Guarded)> {
        let workspace = Arc::clone(&self.parts.workspace);
        let begun = blocking("looking at the tree", move || {
            let before = workspace.command_begin()?;
            let guard = Guarded::before(&workspace, GUARDS)?;
            Ok((before, guard))
        });
        match begun.await.and_then(|begun| begun.map_err(|error: WorkspaceError| AgentError::from(error))) {
            Ok(watched) => Some(watched),
            Err(error) => {
                self.warn(ErrorPhase::System, error.to_string());
                None
            }
        }
    }

    /// Journals what hooks changed, for the call they ran after, and takes away what they may not leave behind. Gives
    /// what the model is told of it, too.
    async fn hooks_changes(
        &mut self,
        call: Option<&CallId>,
        watched: Option<(TreeSnapshot, Guarded)>,
    ) -> (Vec<FileChange>, Vec<String>) {
        let Some((before, guard)) = watched else { return (Vec::new(), Vec::new()) };
        let workspace = Arc::clone(&self.parts.workspace);
        let (session, call) = (self.session.clone(), call.cloned());
        let ended = blocking("looking at the tree", move || {
            // Hooks may have run outside of the sandbox, where nothing kept them from guarded files.
            let end = || workspace.command_end(before, &session, call.as_ref());
            let (changes, aftermath) = guard.end(&workspace, false, end);
            changes.map(|changes| (changes, aftermath))
        });
        match ended.await.and_then(|ended| ended.map_err(|error: WorkspaceError| AgentError::from(error))) {
            Ok((changes, Aftermath { violations, problem })) => {
                self.seen.left_by(&self.parts.workspace, &changes);
                if let Some(message) = problem {
                    self.log.emit(Event::Warning { message });
                }
                self.note_violations(None, violations);
                let files = listed(changes.iter().map(|change| &change.path));
                let told = (!changes.is_empty())
                    .then(|| format!("[a hook changed {files}; read it again before you edit it]"));
                (changes, told.into_iter().collect())
            }
            Err(error) => {
                self.warn(ErrorPhase::System, error.to_string());
                (Vec::new(), Vec::new())
            }
        }
    }

    /// Before the model is asked. Gives the transcript as it was, where hooks may have changed what is sent.
    pub(crate) async fn pre_model(
        &mut self,
        request: &mut ModelRequest,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<Message>>, AgentError> {
        if self.parts.hooks.is_empty(HookEvent::PreModel) {
            return Ok(None);
        }
        let said = request.messages.clone();
        let at = self.hook_context(HookEvent::PreModel, stop, None).await;
        let gate = self.parts.hooks.pre_model(&at, request).await;
        match self.gate(HookEvent::PreModel, gate) {
            Ok(context) => {
                match request.messages.last_mut() {
                    Some(last) if last.role == Role::User => {
                        last.content.extend(context.into_iter().map(journeyman_protocol::Block::text));
                    }
                    // The model goes on with its own words: nothing can be put between.
                    _ => self.hook_context_waiting.extend(context),
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
    pub(crate) async fn post_model(&mut self, reply: &mut Message) {
        if self.parts.hooks.is_empty(HookEvent::PostModel) {
            return;
        }
        let closing = self.shared.closing.clone();
        let at = self.hook_context(HookEvent::PostModel, &closing, None).await;
        let notes = self.parts.hooks.post_model(&at, reply).await;
        // A reply is no place to add to: what hooks have to say goes along with the next request.
        let context = self.heed(notes);
        self.hook_context_waiting.extend(context);
    }

    /// When a reply has been added to the transcript.
    pub(crate) async fn post_append(&mut self) {
        if self.parts.hooks.is_empty(HookEvent::PostAppend) {
            return;
        }
        let closing = self.shared.closing.clone();
        let at = self.hook_context(HookEvent::PostAppend, &closing, None).await;
        let added: Vec<Message> = self.state.messages.last().cloned().into_iter().collect();
        let notes = self.parts.hooks.post_append(&at, &added).await;
        let context = self.heed(notes);
        self.hook_context_waiting.extend(context);
    }

    /// Whether a hook sends the model back to work although it has nothing left to do.
    pub(crate) async fn sent_back(&mut self, stop: &CancellationToken) -> bool {
        if self.parts.hooks.is_empty(HookEvent::TurnEnd) {
            return false;
        }
        let mut at = self.hook_context(HookEvent::TurnEnd, stop, Some(stop)).await;
        let watched =
            if self.parts.hooks.has_commands(HookEvent::TurnEnd) { self.watch_tree().await } else { None };
        at.guard(watched.as_ref());
        let (round, text) = (self.tally.sent_back, self.tally.last_text.clone());
        let said = self.parts.hooks.turn_end(&at, &text, round).await;
        let mut context = self.heed(said.notes);
        let (touched, told) = self.hooks_changes(None, watched).await;
        self.parts.index.changed(touched.iter().map(|change| &change.path));
        context.extend(told);
        self.hook_context_waiting.extend(context);
        match said.decision {
            TurnEnd::Stop => false,
            TurnEnd::GoOn { reason } if round >= MAX_SENT_BACK => {
                let message = format!(
                    "a hook wanted the model to go on for the {round}th time and was not heard: {reason}"
                );
                self.log.emit(Event::Warning { message });
                false
            }
            TurnEnd::GoOn { reason } => {
                self.tally.sent_back += 1;
                self.say(reason);
                true
            }
        }
    }

    /// When the session begins or is opened again, once; gives what the model is told.
    pub(crate) async fn session_start(&mut self) -> Vec<String> {
        let Some(by) = self.starting.take() else { return Vec::new() };
        if self.parts.hooks.is_empty(HookEvent::SessionStart) {
            return Vec::new();
        }
        let closing = self.shared.closing.clone();
        let at = self.hook_context(HookEvent::SessionStart, &closing, None).await;
        let notes = self.parts.hooks.session_start(&at, by).await;
        self.heed(notes)
    }

    /// When the session ends.
    pub(crate) async fn session_end(&mut self) {
        if self.parts.hooks.is_empty(HookEvent::SessionEnd) {
            return;
        }
        // The session's own switch is off already.
        let at = self.hook_context(HookEvent::SessionEnd, &CancellationToken::new(), None).await;
        let notes = self.parts.hooks.session_end(&at, "other").await;
        self.heed(notes);
    }

    /// Shows hooks what a person says before it is taken. What they refuse is left out, and the reason is given;
    /// what they add goes along.
    pub(crate) async fn screen(
        &mut self,
        waiting: Vec<Queued>,
    ) -> (Vec<Queued>, Vec<String>, Option<AgentError>) {
        if self.parts.hooks.is_empty(HookEvent::Prompt) {
            return (waiting, Vec::new(), None);
        }
        let (mut kept, mut context, mut denied) = (Vec::new(), Vec::new(), None);
        for queued in waiting {
            if queued.kind != MessageKind::User {
                kept.push(queued);
                continue;
            }
            let closing = self.shared.closing.clone();
            let at = self.hook_context(HookEvent::Prompt, &closing, None).await;
            let said = self.parts.hooks.prompt(&at, &queued.text).await;
            match self.gate(HookEvent::Prompt, said) {
                Ok(more) => {
                    context.extend(more);
                    kept.push(queued);
                }
                Err(error) => {
                    self.warn(ErrorPhase::System, error.to_string());
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
