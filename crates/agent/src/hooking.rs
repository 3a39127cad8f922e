//! Where hooks come in on a session's way.

use std::sync::Arc;

use journeyman_model::ModelRequest;
use journeyman_protocol::{ErrorPhase, Event, FileChange, Message, MessageKind, Outcome, Role};
use journeyman_workspace::TreeSnapshot;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::finished::Finished;
use crate::hooks::{GateSaid, HookContext, HookEvent, HookNotes, HookResult, PreTool, StartedBy, TurnEnd};
use crate::record::Queued;
use crate::runner::Ready;
use crate::turn::{End, MAX_SENT_BACK, Worker, blocking};

/// What hooks say before a call.
pub(crate) struct Looked {
    pub(crate) context: Vec<String>,
    pub(crate) input: Option<Value>,
    pub(crate) decision: PreTool,
}

impl Worker {
    fn hook_context(&self, cancel: &CancellationToken) -> HookContext {
        HookContext {
            session: self.session.clone(),
            root: self.parts.workspace.root().to_owned(),
            mode: self.settings.mode,
            transcript: None,
            cancel: cancel.clone(),
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
        Some(End::new(Outcome::Interrupted, format!("a hook stopped the run: {why}")))
    }

    /// Before a call runs.
    pub(crate) async fn pre_tool(&mut self, ready: &Ready, stop: &CancellationToken) -> Looked {
        if self.parts.hooks.is_empty(HookEvent::PreTool) {
            return Looked { context: Vec::new(), input: None, decision: PreTool::Go };
        }
        let at = self.hook_context(stop);
        let said = self.parts.hooks.pre_tool(&at, &ready.call, &ready.effects).await;
        let context = self.heed(said.notes);
        Looked { context, input: said.input, decision: said.decision }
    }

    /// When a call has its result, which hooks may change; gives what else the model is told.
    pub(crate) async fn post_tool(&mut self, ready: &Ready, finished: &mut Finished) -> Vec<String> {
        if self.parts.hooks.is_empty(HookEvent::PostTool) {
            return Vec::new();
        }
        let watched = self.watch_tree(ready).await;
        let at = self.hook_context(&self.shared.closing);
        let is_error = finished.is_error();
        let mut result = HookResult { parts: std::mem::take(&mut finished.parts), is_error };
        let notes = self.parts.hooks.post_tool(&at, &ready.call, &ready.effects, &mut result).await;
        finished.parts = result.parts;
        if result.is_error != is_error {
            finished.mark(result.is_error);
        }
        let mut context = self.heed(notes);
        let touched = self.hooks_changes(ready, watched).await;
        if !touched.is_empty() {
            let files: Vec<String> = touched.iter().map(|change| change.path.to_string()).collect();
            context.push(format!("[a hook changed {}; read it again before you edit it]", files.join(", ")));
            finished.changes.extend(touched);
        }
        context
    }

    /// Looks at the tree before hooks run that may change it, such as a formatter after an edit: what they do is
    /// undone with the session.
    async fn watch_tree(&mut self, ready: &Ready) -> Option<TreeSnapshot> {
        if ready.read_only {
            return None;
        }
        let workspace = Arc::clone(&self.parts.workspace);
        let begun = blocking("looking at the tree", move || workspace.command_begin()).await;
        match begun.and_then(|begun| begun.map_err(AgentError::from)) {
            Ok(snapshot) => Some(snapshot),
            Err(error) => {
                self.warn(ErrorPhase::System, error.to_string());
                None
            }
        }
    }

    /// Journals what hooks changed for the call they ran after.
    async fn hooks_changes(&mut self, ready: &Ready, before: Option<TreeSnapshot>) -> Vec<FileChange> {
        let Some(before) = before else { return Vec::new() };
        let workspace = Arc::clone(&self.parts.workspace);
        let (session, call) = (self.session.clone(), ready.call.id.clone());
        let ended =
            blocking("looking at the tree", move || workspace.command_end(before, &session, Some(&call)))
                .await;
        match ended.and_then(|ended| ended.map_err(AgentError::from)) {
            Ok(changes) => {
                self.seen.left_by(&self.parts.workspace, &changes);
                changes
            }
            Err(error) => {
                self.warn(ErrorPhase::System, error.to_string());
                Vec::new()
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
        let at = self.hook_context(stop);
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
        let at = self.hook_context(&self.shared.closing);
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
        let at = self.hook_context(&self.shared.closing);
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
        let (at, round) = (self.hook_context(stop), self.tally.sent_back);
        let text = self.tally.last_text.clone();
        let said = self.parts.hooks.turn_end(&at, &text, round).await;
        let context = self.heed(said.notes);
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
        let at = self.hook_context(&self.shared.closing);
        let notes = self.parts.hooks.session_start(&at, by).await;
        self.heed(notes)
    }

    /// When the session ends.
    pub(crate) async fn session_end(&mut self) {
        if self.parts.hooks.is_empty(HookEvent::SessionEnd) {
            return;
        }
        // The session's own switch is off already.
        let at = self.hook_context(&CancellationToken::new());
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
            let at = self.hook_context(&self.shared.closing);
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
