//! Sessions of a conversation: opened, left, gone back in.

use std::time::Instant;

use journeyman_agent::isolation::hand_over_copy;
use journeyman_agent::protocol::{Envelope, SessionId};
use journeyman_agent::store::SessionSummary;
use journeyman_agent::workspace::{CheckpointId, ListOptions, UndoTarget, WorkspaceError};
use journeyman_host::copy_review::CopyReview;
use journeyman_host::format::{describe_age, format_count, preview, printable};
use journeyman_host::session_commands::fork_session;
use journeyman_host::sessions::{ListedSession, list_sessions, list_user_sessions};
use journeyman_host::state::{find_session_log, now};
use journeyman_host::undo::{UndoResult, undo_to_checkpoint};
use journeyman_host::{HostError, WorkLocation};
use journeyman_terminal::{Style, StyledLine};

use crate::app::{App, JobResult, RecalledPart};
use crate::attachments::split_attachments;
use crate::completion::NamedSession;
use crate::conversation_state::{Conversation, RewindCheckpoint, RewindPoint};
use crate::first_start::{explain_first_start, is_first_start};
use crate::hyperlinks::Linker;
use crate::open_session::ClosedSession;
use crate::picker::{Picker, PickerItem};
use crate::presentation::{Overlay, PickerPurpose};
use crate::questions::Questions;
use crate::released_prompts::ReleasedPrompts;
use crate::status_command::run_status_command;
use crate::status_facts::VerificationState;

/// Maximum sessions of a list.
const MAX_LISTED_SESSIONS: usize = 200;
/// Maximum blocks of an earlier session that go into the scrollback when it is opened; Ctrl-T
/// shows all.
const MAX_RECALLED_BLOCKS: usize = 60;
/// Maximum bytes of results that the transcript holds; of older calls it shows the ends.
const MAX_TRANSCRIPT_RESULT_BYTES: usize = 16 << 20;
/// Maximum symbols that are offered for completion.
const MAX_COMPLETION_SYMBOLS: usize = 100_000;
/// Maximum files that are offered for completion.
const MAX_COMPLETION_FILES: usize = 50_000;

/// The things that go back to an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindTarget {
    Both,
    Conversation,
    Files,
}

/// The copy that a session works in which goes on from an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForkCopy {
    /// None: it works in the project.
    None,
    /// That of the session before.
    Same,
    /// A new one.
    New,
}

impl RewindTarget {
    /// The ways to go back, with the words for them.
    const TARGETS: &'static [(Self, &'static str)] = &[
        (Self::Both, "conversation and files"),
        (Self::Conversation, "conversation"),
        (Self::Files, "files"),
    ];
    /// The ways in a session that works in a copy, whose files they are. The copy goes along with
    /// the conversation if both go back.
    const TARGETS_IN_COPY: &'static [(Self, &'static str)] = &[
        (Self::Both, "conversation and files"),
        (Self::Conversation, "conversation, in a new copy"),
        (Self::Files, "files"),
    ];

    /// Returns the ways to go back in a session, the usual one first.
    pub(crate) fn targets(is_in_copy: bool) -> &'static [(Self, &'static str)] {
        if is_in_copy { Self::TARGETS_IN_COPY } else { Self::TARGETS }
    }
}

impl App {
    /// Opens a new session in place of the one before. Says why not, if it can't.
    pub(crate) async fn open_new_session(&mut self) {
        let opened = self.try_open_new_session().await;
        self.explain_failed(opened);
    }

    async fn try_open_new_session(&mut self) -> Result<(), HostError> {
        let left = self.leave_session().await;
        self.reset_conversation(Conversation::new(Instant::now()));
        let prompts = ReleasedPrompts::new(self.setup.prompts, &mut self.presentation, &mut self.keys);
        let opened = self.setup.open_new(&prompts).await;
        let opened = opened.map(|open| self.adopt_session(open));
        left.iter().for_each(|text| self.show_note(Style::Warning, text));
        opened
    }

    /// Opens an earlier session in place of the one before. Says why not, if it can't.
    pub(crate) async fn open_session(&mut self, id: &SessionId, recall: RecalledPart) {
        let opened = self.try_open_session(id, recall).await;
        self.explain_failed(opened);
    }

    /// Opens an earlier session in place of the one before, or watches it where another process
    /// works on it. If neither can be done, the one before goes on with the next message; without
    /// one, that message tries to open this one again.
    async fn try_open_session(&mut self, id: &SessionId, recall: RecalledPart) -> Result<(), HostError> {
        let (before, was_in_copy) = (self.logged_id(), self.is_in_copy());
        let left = match self.session_id() {
            Some(same) if same == *id => None,
            _ => self.leave_session().await,
        };
        self.close_session().await;
        let (mut conversation, started) = (Conversation::new(Instant::now()), Instant::now());
        let prompts = ReleasedPrompts::new(self.setup.prompts, &mut self.presentation, &mut self.keys);
        let mut show = |envelope: &Envelope| conversation.apply(envelope, started);
        let opened = self.setup.reopen(id, &prompts, &mut show).await;
        let opened = match opened {
            Ok(open) => {
                self.show_recalled(conversation, recall);
                self.adopt_session(open);
                Ok(())
            }
            Err(error) => match self.watch_session(id).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(error),
                Err(error) => Err(error),
            },
        };
        if opened.is_err() && self.closed_session.is_none() {
            let next = before.unwrap_or_else(|| id.clone());
            self.closed_session = Some(ClosedSession::of_log(next, was_in_copy));
        }
        left.iter().for_each(|text| self.show_note(Style::Warning, text));
        opened
    }

    /// Opens an earlier session, in a copy of the project if it has none of its own but is to work
    /// in one.
    ///
    /// # Errors
    /// It can be neither opened nor watched.
    pub(crate) async fn open_session_in_copy(
        &mut self,
        id: &SessionId,
        is_in_copy: bool,
    ) -> Result<(), HostError> {
        let asked = self.setup.delivery.isolate;
        if is_in_copy {
            self.setup.delivery.isolate = Some(true);
        }
        let opened = self.try_open_session(id, RecalledPart::Nothing).await;
        self.setup.delivery.isolate = asked;
        opened
    }

    /// Says that the session which goes on begins a copy of its own.
    pub(crate) fn note_new_copy(&mut self, is_in_copy: bool) {
        if is_in_copy {
            let text =
                "its copy begins as your files are; the work so far stays in the copy of the session before";
            self.show_note(Style::Dim, text);
        }
    }

    /// Opens the session again that was closed for something, unless it rests until the next
    /// message.
    pub(crate) async fn reopen_closed_session(&mut self, id: &SessionId) {
        if self.closed_session.is_none() {
            self.open_session(id, RecalledPart::Nothing).await;
        }
    }

    /// Returns the session that is open or rests.
    pub(crate) fn session_id(&self) -> Option<SessionId> {
        let open = self.open_session.as_ref().map(|open| open.session.id().clone());
        open.or_else(|| self.closed_session.as_ref().map(|closed| closed.id.clone()))
    }

    /// Returns the session that is open or rests, if its log exists.
    pub(crate) fn logged_id(&self) -> Option<SessionId> {
        match &self.open_session {
            Some(open) => open.has_log.then(|| open.session.id().clone()),
            None => self.session_id(),
        }
    }

    /// Shows a session as its log tells it, in place of the one before.
    pub(crate) fn show_recalled(&mut self, conversation: Conversation, recall: RecalledPart) {
        let all = conversation.entries().len();
        self.reset_conversation(conversation);
        let left_out = match recall {
            RecalledPart::Tail => all.saturating_sub(MAX_RECALLED_BLOCKS),
            RecalledPart::Nothing => all,
        };
        self.presentation.mark_blocks_shown(left_out);
        if recall == RecalledPart::Tail && left_out > 0 {
            let text = format!("{} before are in the transcript (Ctrl-T)", format_count(left_out, "block"));
            self.show_note(Style::Dim, &text);
        }
    }

    fn reset_conversation(&mut self, conversation: Conversation) {
        self.conversation = conversation;
        (self.watch, self.closed_session, self.surroundings.is_watched) = (None, None, false);
        self.queued.clear();
        self.presentation.mark_blocks_shown(0);
    }

    fn adopt_session(&mut self, mut open: crate::open_session::OpenSession) {
        self.questions = Questions::new(open.template.config_dir.clone());
        let (branch, extra) = (self.surroundings.branch.take(), self.surroundings.extra.take());
        if self.presentation.has_links() {
            self.presentation
                .set_links(Linker::new(&self.setup.root, |name| self.setup.environment.var(name)));
        }
        let is_isolated = open.template.delivery.work_location() != WorkLocation::Project;
        self.surroundings =
            crate::live_area::StatusLineContext { branch, extra, is_isolated, ..open.surroundings.clone() };
        // The settings decide about what comes, whatever the newest run had.
        self.conversation.note_mode(open.template.settings.mode);
        let notes = std::mem::take(&mut open.notes);
        self.models = std::mem::take(&mut open.models);
        self.open_session = Some(open);
        notes.iter().for_each(|note| self.show_note(Style::Warning, note));
        self.start_status_command();
        self.start_reading_branch();
        self.start_tree_hash();
        self.presentation.invalidate();
    }

    /// Says why something failed, if it did.
    pub(crate) fn explain_failed(&mut self, done: Result<(), HostError>) {
        if let Err(error) = done {
            self.explain_failure(&error);
        }
    }

    pub(crate) fn explain_failure(&mut self, error: &HostError) {
        if is_first_start(error) {
            let environment = self.setup.environment.clone();
            self.jobs
                .push(Box::pin(async move { JobResult::Explained(explain_first_start(&environment).await) }));
        } else {
            self.show_note(Style::Bad, &error.to_string());
        }
    }

    /// Closes the session for work that needs it closed, and opens it again.
    ///
    /// # Errors
    /// It can be neither opened nor watched.
    pub(crate) async fn reopen_session(&mut self) -> Result<(), HostError> {
        if let Some(ClosedSession { id, is_in_copy, .. }) = &self.closed_session {
            let (id, is_in_copy) = (id.clone(), *is_in_copy);
            return self.open_session_in_copy(&id, is_in_copy).await;
        }
        match self.logged_id() {
            Some(id) => self.try_open_session(&id, RecalledPart::Nothing).await,
            // Nothing is lost: it has no message yet.
            None => self.try_open_new_session().await,
        }
    }

    /// Opens the list of sessions.
    pub(crate) async fn choose_session(&mut self) -> Result<(), HostError> {
        // A query would create an empty log.
        let sessions = match find_session_log(&self.setup.state.dir) {
            Some(_) => list_sessions(&self.setup.state, None, MAX_LISTED_SESSIONS).await?,
            None => Vec::new(),
        };
        let own = self.open_session.as_ref().map(|open| open.session.id().clone());
        let root = self.setup.root.display().to_string();
        let mut sessions: Vec<ListedSession> =
            sessions.into_iter().filter(|session| Some(&session.id) != own.as_ref()).collect();
        // Those of this project come first, each group with the newest first.
        sessions.sort_by_key(|session| session.root != root);
        if sessions.is_empty() {
            self.show_note(Style::Dim, "there is no earlier session to go on with");
            if self.open_session.is_none() {
                self.open_new_session().await;
            }
            return Ok(());
        }
        let item = |session: &ListedSession| PickerItem {
            label: preview(&session.title),
            note: format!(
                "{:>11}  {:<12}",
                describe_age(now(), session.updated),
                session.status.replace('_', " ")
            ),
            details: vec![
                printable(&session.title),
                printable(&session.root),
                format!("session {}, {} entries", session.id, session.last),
            ],
        };
        let items = sessions.iter().map(item).collect();
        let ids = sessions.into_iter().map(|session| session.id).collect();
        let picker = Picker::new("Go on with a session", items, Vec::new());
        self.open_overlay(Overlay::Picker(picker, PickerPurpose::Session(ids)))
    }
}

/// Going back to an earlier message.
impl App {
    /// Opens the list of messages to go back to.
    pub(crate) fn choose_rewind_point(&mut self) -> Result<(), HostError> {
        if self.refuse_if_watched() {
            return Ok(());
        }
        let turnings: Vec<RewindPoint> = self.conversation.rewind_points().iter().rev().cloned().collect();
        if turnings.is_empty() {
            self.show_note(Style::Dim, "there is no message to go back to");
            return Ok(());
        }
        let item = |turning: &RewindPoint| {
            let (own, _) = split_attachments(&turning.message);
            let details = printable(own).lines().take(4).map(str::to_owned).collect();
            PickerItem { label: preview(own), note: String::new(), details }
        };
        let items = turnings.iter().map(item).collect();
        let is_in_copy = self.is_in_copy();
        let ways = RewindTarget::targets(is_in_copy).iter().map(|(_, words)| *words).collect();
        let picker = Picker::new("Go back to before a message", items, ways);
        self.open_overlay(Overlay::Picker(picker, PickerPurpose::Turning(turnings, is_in_copy)))
    }

    /// Goes back to before a message. Its text is in the composer then.
    pub(crate) async fn rewind_to(&mut self, turning: &RewindPoint, what: RewindTarget) {
        let Some(id) = self.logged_id() else { return };
        let is_in_copy = self.is_in_copy();
        // Before the first message the copy was as the files are, and a new session's is that too:
        // the work stays with the session that did it.
        let what = match what {
            RewindTarget::Both if is_in_copy && self.is_first_message(turning) => RewindTarget::Conversation,
            what => what,
        };
        self.close_session().await;
        let restored = match (what, self.conversation.checkpoint_before(turning)) {
            (RewindTarget::Conversation, _) => None,
            (_, RewindCheckpoint::At(id)) if is_in_copy => Some(self.restore_copy(CheckpointId(id)).await),
            (_, RewindCheckpoint::At(id)) => Some(self.restore_checkpoint(id).await),
            (_, RewindCheckpoint::NothingSince) => {
                self.show_note(Style::Dim, "the session has changed no file since that message");
                None
            }
            (_, RewindCheckpoint::OtherTree) => Some(Err(HostError::failed(
                "the session worked in another copy then, so that the files stay as they are",
            ))),
        };
        if what == RewindTarget::Files {
            self.reopen_closed_session(&id).await;
        } else {
            let copy = match (is_in_copy, what) {
                (false, _) => ForkCopy::None,
                (true, RewindTarget::Both) => ForkCopy::Same,
                (true, _) => ForkCopy::New,
            };
            self.fork_session_before(&id, turning, copy).await;
        }
        if let Some(restored) = restored {
            self.report_undo(restored.map(Some), "taken back");
        }
    }

    /// Opens a session that has everything before a message, whose text is in the composer then.
    async fn fork_session_before(&mut self, id: &SessionId, turning: &RewindPoint, copy: ForkCopy) {
        if self.is_first_message(turning) {
            self.open_new_session().await;
            self.note_new_copy(copy == ForkCopy::New);
        } else {
            let before = turning.seq.0.saturating_sub(1).to_string();
            let (environment, state) = (&self.setup.environment, &self.setup.state);
            match fork_session(environment, state, id.as_str(), Some(&before)).await {
                Ok(forked) => {
                    let is_same = copy == ForkCopy::Same && self.hand_over_copy(id, &forked.id).await;
                    let opened = self.open_session_in_copy(&forked.id, copy != ForkCopy::None).await;
                    self.explain_failed(opened);
                    self.note_new_copy(copy != ForkCopy::None && !is_same);
                }
                Err(error) => {
                    self.reopen_closed_session(id).await;
                    return self.explain_failure(&error);
                }
            }
        }
        let (own, attached) = split_attachments(&turning.message);
        self.composer.set_text(own);
        self.attachments.extend((!attached.is_empty()).then(|| attached.to_owned()));
        self.show_note(Style::Dim, &format!("back to before: {}", preview(own)));
    }

    /// Returns true if a message is the first one.
    fn is_first_message(&self, turning: &RewindPoint) -> bool {
        self.conversation.rewind_points().first().is_some_and(|first| first.seq == turning.seq)
    }

    /// Lets a session that was forked go on in the copy of the one before. Returns false where it
    /// needs a copy of its own.
    async fn hand_over_copy(&mut self, from: &SessionId, to: &SessionId) -> bool {
        let closed = self.closed_session.as_ref().and_then(|closed| closed.template.as_ref());
        let Some(isolation) = closed.map(|template| template.project.isolation()) else { return false };
        match hand_over_copy(&isolation, from, to).await {
            Ok(is_handed_over) => is_handed_over,
            Err(error) => {
                self.explain_failure(&error.into());
                false
            }
        }
    }

    /// Opens the copy of the session that rests.
    ///
    /// # Errors
    /// The copy can't be opened. `None` where there is none.
    pub(crate) async fn open_resting_copy(&self) -> Result<Option<CopyReview>, HostError> {
        let Some(ClosedSession { id, template: Some(template), .. }) = &self.closed_session else {
            return Ok(None);
        };
        let copies = template.project.workspace.copies().list();
        if copies.is_ok_and(|copies| copies.iter().all(|copy| copy.session != *id)) {
            return Ok(None);
        }
        CopyReview::open(&template.project, id).await.map(Some)
    }

    /// Reverts changes in the copy of the session that rests; `None` if there is none.
    ///
    /// # Errors
    /// As [`CopyReview::undo`].
    pub(crate) async fn undo_in_copy(&self, target: UndoTarget) -> Result<Option<UndoResult>, HostError> {
        match self.open_resting_copy().await? {
            Some(copy) => copy.undo(target).await.map(Some),
            None => Ok(None),
        }
    }

    /// Restores the copy to one of its checkpoints.
    ///
    /// # Errors
    /// As [`CopyReview::undo`], and where there is no copy.
    pub(crate) async fn restore_copy(&self, checkpoint: CheckpointId) -> Result<UndoResult, HostError> {
        let restored = self.undo_in_copy(UndoTarget::To(checkpoint)).await?;
        restored.ok_or_else(|| HostError::failed("nothing was changed in the copy yet"))
    }

    /// Restores the files to a checkpoint. No session may be open.
    pub(crate) async fn restore_checkpoint(&mut self, checkpoint: u64) -> Result<UndoResult, HostError> {
        let (environment, state, root) = (&self.setup.environment, &self.setup.state, &self.setup.root);
        undo_to_checkpoint(environment, state, CheckpointId(checkpoint), Some(root)).await
    }

    /// Says which files were taken back or changed again.
    pub(crate) fn report_undo(&mut self, undone: Result<Option<UndoResult>, HostError>, how: &str) {
        match undone {
            Ok(Some(result)) => {
                let mut lines = vec![StyledLine::new(
                    Style::Strong,
                    format!("{how}: {}", format_count(result.report.restored.len(), "file")),
                )];
                let files = result.report.restored.iter();
                lines.extend(files.map(|change| {
                    StyledLine::new(Style::Plain, format!("  {}", crate::blocks::describe_change(change)))
                }));
                let conflicts = result.report.conflicts.iter();
                lines.extend(conflicts.map(|(path, reason)| {
                    StyledLine::new(
                        Style::Warning,
                        format!("  {} stays: {}", printable(path), printable(reason)),
                    )
                }));
                lines.extend(
                    result.commit_notes().map(|note| StyledLine::new(Style::Warning, format!("  {note}"))),
                );
                self.conversation.push_note(lines);
                // No check has seen the files as they are now, unless they are those of before.
                self.conversation.note_verification(VerificationState::Unverified);
                self.start_tree_hash();
            }
            Ok(None) => self.show_note(Style::Dim, "nothing was changed"),
            Err(HostError::Failed { source, .. }) if is_nothing_changed(&*source) => {
                self.show_note(Style::Dim, "the files are as they were then already");
            }
            Err(error) => self.explain_failure(&error),
        }
        self.presentation.invalidate();
    }
}

/// Work in the background.
impl App {
    /// Begins to list the project's files, symbols and sessions, for completion.
    pub(crate) fn start_listing_files(&mut self) {
        let closed = self.closed_session.as_ref().and_then(|closed| closed.template.as_ref());
        let Some(template) = self.open_session.as_ref().map(|open| &open.template).or(closed) else {
            return;
        };
        let workspace = std::sync::Arc::clone(&template.project.workspace);
        let list_symbols = template.symbol_lister(MAX_COMPLETION_SYMBOLS);
        self.files = Some(Vec::new());
        let (state, own) = (std::sync::Arc::clone(&self.setup.state), self.session_id());
        let root = self.setup.root.display().to_string();
        let listing = tokio::task::spawn_blocking(move || {
            let files = workspace.list(ListOptions { limit: MAX_COMPLETION_FILES, ..ListOptions::default() });
            (files.unwrap_or_default(), list_symbols())
        });
        self.jobs.push(Box::pin(async move {
            let (files, symbols) = listing.await.unwrap_or_default();
            let sessions = list_user_sessions(&state, Some(&root), MAX_LISTED_SESSIONS).await;
            let named = |session: SessionSummary| NamedSession {
                title: preview(&session.title),
                age: describe_age(now(), session.updated),
                id: session.id,
            };
            let others = sessions.unwrap_or_default().into_iter().filter(|one| Some(&one.id) != own.as_ref());
            JobResult::FilesListed(
                files.paths.iter().map(printable).collect(),
                symbols,
                others.map(named).collect(),
            )
        }));
    }

    /// Begins to ask the server of the session's model for its models, for completion. It is asked
    /// once, and not at all in place of a recording.
    pub(crate) fn start_listing_models(&mut self) {
        let options = &self.setup.options;
        if options.record.is_some() || options.replay.is_some() {
            return;
        }
        if let Some(server) = self.models.take_server() {
            self.jobs.push(Box::pin(async move { JobResult::ModelsListed(server.list().await) }));
        }
    }

    /// Begins to run the person's status command.
    pub(crate) fn start_status_command(&mut self) {
        let Some(command) = self.preferences.status_command.clone().filter(|_| self.plain.is_none()) else {
            return;
        };
        let facts = self.conversation.facts();
        let usage = facts.usage();
        let mode = facts.mode.map_or(self.surroundings.mode.as_str(), |mode| mode.name());
        let facts = serde_json::json!({
            "session": self.open_session.as_ref().map(|open| open.session.id().to_string()),
            "root": self.setup.root.display().to_string(),
            "model": if facts.model.is_empty() { &self.surroundings.model } else { &facts.model },
            "mode": mode, "branch": self.surroundings.branch, "sandbox": facts.sandbox,
            "context_tokens": facts.context.0, "window_tokens": self.surroundings.window.map(|window| window.0),
            "input_tokens": usage.total_input().0, "output_tokens": usage.output.0, "cost_usd": facts.cost_usd(),
            "changes": facts.proof.name(),
        });
        let home = self.setup.environment.home.clone();
        self.jobs.push(Box::pin(async move {
            JobResult::StatusRead(run_status_command(command, home, facts.to_string()).await)
        }));
    }

    /// Begins to read the whole results of the session's calls, for the transcript.
    pub(crate) fn start_reading_results(&mut self) {
        let Some(id) = self.shown_id() else { return };
        let state = std::sync::Arc::clone(&self.setup.state);
        self.jobs.push(Box::pin(async move {
            let read =
                journeyman_agent::read_result_texts(&*state.store, &id, MAX_TRANSCRIPT_RESULT_BYTES).await;
            JobResult::ResultsRead(read.unwrap_or_default())
        }));
    }

    /// Begins to look at the project's files, if checks passed on them: the person may have changed
    /// them since, or taken the change back. A copy is the session's alone.
    pub(crate) fn start_tree_hash(&mut self) {
        let is_verified = self.conversation.facts().verified_tree.is_some();
        let closed = self.closed_session.as_ref().and_then(|closed| closed.template.as_ref());
        let template = self.open_session.as_ref().map(|open| &open.template).or(closed);
        let Some(template) = template.filter(|_| is_verified && !self.is_in_copy()) else { return };
        let workspace = std::sync::Arc::clone(&template.project.workspace);
        let looking = tokio::task::spawn_blocking(move || workspace.history().tree_hash());
        self.jobs.push(Box::pin(async move { JobResult::TreeRead(looking.await.ok().and_then(Result::ok)) }));
    }

    /// Begins to read the branch, for the status line.
    pub(crate) fn start_reading_branch(&mut self) {
        let Some(git) = self.open_session.as_ref().map(|open| open.template.project.git.clone()) else {
            return;
        };
        self.jobs.push(Box::pin(async move {
            let state = git.state().await.ok();
            JobResult::BranchRead(state.and_then(|state| state.head.branch).map(|branch| printable(&branch)))
        }));
    }
}

/// Returns true if nothing was changed since the checkpoint that was asked for.
fn is_nothing_changed(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref::<WorkspaceError>(), Some(WorkspaceError::NothingSince { .. }))
}
