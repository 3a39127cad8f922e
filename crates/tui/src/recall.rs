//! Sessions of a conversation: opened, left, gone back in.

use std::time::Instant;

use journeyman_agent::protocol::SessionId;
use journeyman_agent::workspace::{CheckpointId, ListOptions};
use journeyman_host::HostError;
use journeyman_host::format::{describe_age, preview, printable, quantity};
use journeyman_host::session_commands::fork_session;
use journeyman_host::sessions::{ListedSession, list_sessions};
use journeyman_host::state::{find_session_log, now};
use journeyman_host::undo::{UndoResult, undo_to_checkpoint};
use journeyman_terminal::{Style, StyledLine};
use tokio_util::sync::CancellationToken;

use crate::app::{App, JobEnd, Recall};
use crate::facts::Proof;
use crate::first_start::{explain_first_start, is_first_start};
use crate::fold::{Conversation, Turning};
use crate::picker::{Item, Picker};
use crate::presentation::{Choice, Overlay};
use crate::questions::Questions;
use crate::status_command::run_status_command;

/// Maximum sessions of a list.
const MAX_LISTED_SESSIONS: usize = 200;
/// Maximum blocks of an earlier session that go into the scrollback when it is opened; Ctrl-T
/// shows all.
const MAX_RECALLED_BLOCKS: usize = 60;
/// Maximum bytes of results that the transcript holds; of older calls it shows the ends.
const MAX_RESULT_BYTES: usize = 16 << 20;
/// Maximum symbols that are offered for completion.
const MAX_SYMBOLS: usize = 100_000;
/// Maximum files that are offered for completion.
const MAX_FILES: usize = 50_000;

/// The things that go back to an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoBack {
    Both,
    Conversation,
    Files,
}

impl App {
    /// Opens a new session in place of the one before. Says why not, if it can't.
    pub(crate) async fn open_new_session(&mut self) {
        self.close_link().await;
        self.reset(Conversation::new(Instant::now()));
        match self.setup.open_new().await {
            Ok(link) => self.take_link(link),
            Err(error) => self.explain_failure(&error),
        }
    }

    /// Opens an earlier session in place of the one before. Says why not, if it can't.
    pub(crate) async fn open_session(&mut self, id: &SessionId, recall: Recall) {
        self.close_link().await;
        let (mut conversation, started) = (Conversation::new(Instant::now()), Instant::now());
        let opened = self.setup.open_again(id, &mut |envelope| conversation.apply(envelope, started)).await;
        match opened {
            Ok(link) => {
                self.show_recalled(conversation, recall);
                self.take_link(link);
            }
            Err(error) => match self.watch_session(id).await {
                Ok(true) => {}
                Ok(false) => self.explain_failure(&error),
                Err(error) => self.explain_failure(&error),
            },
        }
    }

    /// Shows a session as its log tells it, in place of the one before.
    pub(crate) fn show_recalled(&mut self, conversation: Conversation, recall: Recall) {
        let all = conversation.entries().len();
        self.reset(conversation);
        let left_out = match recall {
            Recall::Tail => all.saturating_sub(MAX_RECALLED_BLOCKS),
            Recall::Nothing => all,
        };
        self.presentation.skip_to(left_out);
        if recall == Recall::Tail && left_out > 0 {
            let text = format!("{} before are in the transcript (Ctrl-T)", quantity(left_out, "block"));
            self.say(Style::Dim, &text);
        }
    }

    fn reset(&mut self, conversation: Conversation) {
        self.conversation = conversation;
        (self.watch, self.resumable, self.surroundings.is_watched) = (None, None, false);
        self.queued.clear();
        self.presentation.skip_to(0);
    }

    fn take_link(&mut self, mut link: crate::link::Link) {
        self.questions = Questions::new(link.template.config_dir.clone());
        let (branch, extra) = (self.surroundings.branch.take(), self.surroundings.extra.take());
        self.surroundings = crate::view::Surroundings { branch, extra, ..link.surroundings.clone() };
        // The settings decide about what comes, whatever the newest run had.
        self.conversation.note_mode(link.template.settings.mode);
        let notes = std::mem::take(&mut link.notes);
        self.link = Some(link);
        notes.iter().for_each(|note| self.say(Style::Warning, note));
        self.read_status();
        self.presentation.invalidate();
    }

    fn explain_failure(&mut self, error: &HostError) {
        if is_first_start(error) {
            let environment = self.setup.environment.clone();
            self.jobs
                .push(Box::pin(async move { JobEnd::Explained(explain_first_start(&environment).await) }));
        } else {
            self.say(Style::Bad, &error.to_string());
        }
    }

    /// Ends the session, and delivers its work as the person asked when they began.
    pub(crate) async fn close_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        link.session.close().await;
        let crate::link::Link { template, session, has_ended_run, .. } = link;
        drop(session);
        // What earlier openings have done was delivered by them.
        let report =
            self.conversation.last_report().filter(|report| has_ended_run && !report.changes.is_empty());
        let Some(report) = report else { return };
        let report = std::sync::Arc::new(report.clone());
        match template.deliver(&report, None, &CancellationToken::new()).await {
            Ok(delivered) => {
                let now = Instant::now();
                delivered.events.iter().for_each(|envelope| self.conversation.apply(envelope, now));
            }
            Err(error) => self.explain_failure(&error),
        }
    }

    /// Closes the session for work that needs it closed, and opens it again.
    pub(crate) async fn reopen(&mut self) {
        let Some(link) = &self.link else { return self.open_new_session().await };
        let (id, has_log) = (link.session.id().clone(), link.has_log);
        match has_log {
            true => self.open_session(&id, Recall::Nothing).await,
            // Nothing is lost: it has no message yet.
            false => self.open_new_session().await,
        }
    }

    /// Opens the list of sessions.
    pub(crate) async fn choose_session(&mut self) -> Result<(), HostError> {
        // A query would create an empty log.
        let sessions = match find_session_log(&self.setup.state.dir) {
            Some(_) => list_sessions(&self.setup.state, None, MAX_LISTED_SESSIONS).await?,
            None => Vec::new(),
        };
        let own = self.link.as_ref().map(|link| link.session.id().clone());
        let root = self.setup.root.display().to_string();
        let mut sessions: Vec<ListedSession> =
            sessions.into_iter().filter(|session| Some(&session.id) != own.as_ref()).collect();
        // Those of this project come first, each group with the newest first.
        sessions.sort_by_key(|session| session.root != root);
        if sessions.is_empty() {
            self.say(Style::Dim, "there is no earlier session to go on with");
            if self.link.is_none() {
                self.open_new_session().await;
            }
            return Ok(());
        }
        let item = |session: &ListedSession| Item {
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
        self.open_overlay(Overlay::Picker(picker, Choice::Session(ids)))
    }

    /// Opens the list of messages to go back to.
    pub(crate) fn choose_turning(&mut self) -> Result<(), HostError> {
        let turnings: Vec<Turning> = self.conversation.turnings().iter().rev().cloned().collect();
        if turnings.is_empty() {
            self.say(Style::Dim, "there is no message to go back to");
            return Ok(());
        }
        let item = |turning: &Turning| Item {
            label: preview(&turning.message),
            note: String::new(),
            details: printable(&turning.message).lines().take(4).map(str::to_owned).collect(),
        };
        let items = turnings.iter().map(item).collect();
        let ways = vec![('c', "the conversation alone"), ('f', "the files alone")];
        let picker = Picker::new("Go back to before a message: conversation and files", items, ways);
        self.open_overlay(Overlay::Picker(picker, Choice::Turning(turnings)))
    }

    /// Goes back to before a message. Its text is in the composer then.
    pub(crate) async fn go_back(&mut self, turning: &Turning, what: GoBack) {
        let Some(id) = self.link.as_ref().map(|link| link.session.id().clone()) else { return };
        self.close_link().await;
        let restored = match (what, turning.checkpoint) {
            (GoBack::Conversation, _) => None,
            (_, Some(checkpoint)) => Some(self.restore_checkpoint(checkpoint).await),
            (_, None) => Some(Err(HostError::failed(
                "no checkpoint is known before this message, so that the files stay as they are",
            ))),
        };
        if what == GoBack::Files {
            self.open_session(&id, Recall::Nothing).await;
        } else {
            self.open_before(&id, turning).await;
        }
        if let Some(restored) = restored {
            self.report_undo(restored.map(Some), "taken back");
        }
    }

    /// Opens a session that has everything before a message, whose text is in the composer then.
    async fn open_before(&mut self, id: &SessionId, turning: &Turning) {
        let is_first = self.conversation.turnings().first().is_some_and(|first| first.seq == turning.seq);
        if is_first {
            self.open_new_session().await;
        } else {
            let before = turning.seq.0.saturating_sub(1).to_string();
            let (environment, state) = (&self.setup.environment, &self.setup.state);
            match fork_session(environment, state, id.as_str(), Some(&before)).await {
                Ok(forked) => self.open_session(&forked.id, Recall::Nothing).await,
                Err(error) => {
                    self.open_session(id, Recall::Nothing).await;
                    return self.explain_failure(&error);
                }
            }
        }
        self.composer.set_text(&turning.message);
        self.say(Style::Dim, &format!("back to before: {}", preview(&turning.message)));
    }

    /// Takes the files back to a checkpoint. No session may be open.
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
                    format!("{how}: {}", quantity(result.report.restored.len(), "file")),
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
                self.conversation.push_note(lines);
                // No check has seen the files as they are now.
                self.conversation.note_proof(Proof::Unverified);
            }
            Ok(None) => self.say(Style::Dim, "nothing was changed"),
            Err(error) => self.explain_failure(&error),
        }
        self.presentation.invalidate();
    }

    /// Begins to list the project's files and symbols, for completion.
    pub(crate) fn list_files(&mut self) {
        let Some(workspace) =
            self.link.as_ref().map(|link| std::sync::Arc::clone(&link.template.project.workspace))
        else {
            return;
        };
        let Some(list_symbols) = self.link.as_ref().map(|link| link.template.symbol_lister(MAX_SYMBOLS))
        else {
            return;
        };
        self.files = Some(Vec::new());
        let listing = tokio::task::spawn_blocking(move || {
            let files = workspace.list(ListOptions { limit: MAX_FILES, ..ListOptions::default() });
            (files.unwrap_or_default(), list_symbols())
        });
        self.jobs.push(Box::pin(async move {
            let (files, symbols) = listing.await.unwrap_or_default();
            JobEnd::FilesListed(files.paths.iter().map(printable).collect(), symbols)
        }));
    }

    /// Begins to run the person's status command.
    pub(crate) fn read_status(&mut self) {
        let Some(command) = self.preferences.status_command.clone().filter(|_| self.plain.is_none()) else {
            return;
        };
        let facts = self.conversation.facts();
        let usage = facts.usage();
        let mode = facts.mode.map_or(self.surroundings.mode.as_str(), |mode| mode.name());
        let facts = serde_json::json!({
            "session": self.link.as_ref().map(|link| link.session.id().to_string()),
            "root": self.setup.root.display().to_string(),
            "model": if facts.model.is_empty() { &self.surroundings.model } else { &facts.model },
            "mode": mode, "branch": self.surroundings.branch, "sandbox": facts.sandbox,
            "context_tokens": facts.context.0, "window_tokens": self.surroundings.window.map(|window| window.0),
            "input_tokens": usage.total_input().0, "output_tokens": usage.output.0, "cost_usd": facts.cost_usd(),
            "changes": facts.proof.name(),
        });
        let home = self.setup.environment.home.clone();
        self.jobs.push(Box::pin(async move {
            JobEnd::StatusRead(run_status_command(command, home, facts.to_string()).await)
        }));
    }

    /// Begins to read the whole results of the session's calls, for the transcript.
    pub(crate) fn read_results(&mut self) {
        let Some(id) = self.link.as_ref().filter(|link| link.has_log).map(|link| link.session.id().clone())
        else {
            return;
        };
        let state = std::sync::Arc::clone(&self.setup.state);
        self.jobs.push(Box::pin(async move {
            let read = journeyman_agent::result_texts(&*state.store, &id, MAX_RESULT_BYTES).await;
            JobEnd::ResultsRead(read.unwrap_or_default())
        }));
    }

    /// Begins to read the branch, for the status line.
    pub(crate) fn read_branch(&mut self) {
        let Some(git) = self.link.as_ref().map(|link| link.template.project.git.clone()) else { return };
        self.jobs.push(Box::pin(async move {
            let state = git.state().await.ok();
            JobEnd::BranchRead(state.and_then(|state| state.head.branch).map(|branch| printable(&branch)))
        }));
    }
}
