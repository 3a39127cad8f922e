//! How a task begins: what waits is taken, the first context is packed.

use std::sync::Arc;

use journeyman_protocol::{AgentState, Event, MessageKind};
use journeyman_workspace::{ListOptions, Listing};

use super::context::Context;
use super::first_message::{FirstMessage, blocks, words};
use super::stages::Session;
use crate::AgentError;
use crate::blocking::blocking;
use crate::hooks::unseen::ChangeReview;
use crate::request::lookup::look_up;
use crate::transcript::record::{MessageId, Queued, Record};

/// Files that the map is drawn from. A path is some 50 bytes; 20,000 keep the walk of a huge tree bounded.
const MAP_FILES: usize = 20_000;

impl Session {
    /// Takes what waits, and begins a task with it.
    pub(crate) async fn open(&mut self) -> Result<(), AgentError> {
        let waiting = self.cx.shared.waiting();
        let mut taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        let task = words(&waiting);
        self.checkpoints.begin_task();
        self.cx.transcript.note(Record::Began);
        let setting = self.requests.setting(&self.cx);
        if self.cx.transcript.state().setting.as_ref() != Some(&setting) {
            self.requests.set(&mut self.cx, setting);
        }
        // Asked early: it is remembered, and what can't be confined is known before anything is tried.
        let enforcement = self.cx.sandbox.enforcement(&self.cx.settings.needs).await.ok();
        self.cx.transcript.emit(Event::RunStarted {
            task,
            root: self.cx.workspace.root().display().to_string(),
            model: self.cx.model.name(),
            mode: self.cx.settings.mode,
            enforcement,
        });
        self.copy_updates.announce(&self.cx);
        // After that: a task's first event says what it is.
        self.cx.transcript.set_state(AgentState::Working);
        // What the handle changed before there was a log.
        self.supervision.note_todos(&mut self.cx);
        let FirstMessage { content, waits, refused } = self.first_words(waiting).await;
        taken.retain(|id| !waits.contains(id));
        // Whatever came of it: a task that can't begin must not be begun again and again.
        self.cx.transcript.take(content, taken);
        refused.map_or(Ok(()), Err)
    }

    /// What the model is told first: the packed context at the session's first task, and what waits.
    async fn first_words(&mut self, waiting: Vec<Queued>) -> FirstMessage {
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let mut context = self.hooks.session_start(&mut self.cx, review).await;
        context.append(&mut self.hooks.take_context());
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let (kept, more, denied) = self.hooks.screen(&mut self.cx, review, waiting).await;
        context.extend(more);
        if denied.is_some() && !kept.iter().any(|queued| queued.kind == MessageKind::User) {
            // What others said is for the next task, as is what hooks had to say.
            self.hooks.keep_context(context);
            let waits = kept.into_iter().map(|queued| queued.id).collect();
            return FirstMessage { waits, refused: denied, ..FirstMessage::default() };
        }
        let mut first = FirstMessage::default();
        let mut said: Vec<String> = Vec::new();
        // A transcript without a beginning is one that was cut off between the two.
        if self.cx.transcript.state().system.is_empty() || self.cx.transcript.state().messages.is_empty() {
            let task = words(&kept);
            let packed = self.pack_first(&task).await;
            // The next message is answered with this one in mind.
            said.push(packed.unwrap_or_else(|error| {
                first.refused = Some(error);
                task
            }));
            let others = kept.into_iter().filter(|queued| queued.kind != MessageKind::User);
            said.extend(others.map(|queued| queued.text));
        } else {
            said.extend(kept.into_iter().map(|queued| queued.text));
        }
        said.extend(context);
        first.content = blocks(said);
        first
    }

    async fn pack_first(&mut self, task: &str) -> Result<String, AgentError> {
        let may_show = self.approvals.may_show(self.cx.settings.mode);
        let found =
            self.cx.settings.index_patience.map(|patience| (look_up(&self.cx, may_show, task), patience));
        let listing = list_files(&self.cx).await?;
        let checks = self.verification.find(&self.cx, &mut self.approvals, &listing);
        // It was begun before the tree was listed; who isn't done soon isn't waited for.
        let found = match found {
            Some((looked_up, patience)) => tokio::time::timeout(patience, looked_up).await.ok(),
            None => None,
        };
        let found = found.and_then(Result::ok).flatten();
        self.requests.pack_first(&mut self.cx, task, &listing, &checks, found.as_ref())
    }
}

/// Lists the files that the map and the checks are found in.
pub(super) async fn list_files(cx: &Context) -> Result<Listing, AgentError> {
    let workspace = Arc::clone(&cx.workspace);
    let options = ListOptions { limit: MAP_FILES, ..ListOptions::default() };
    Ok(blocking("listing the project", move || workspace.list(options)).await??)
}
