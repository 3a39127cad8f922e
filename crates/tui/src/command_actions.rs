//! Messages, commands and their results.

use std::path::Path;
use std::time::Instant;

use journeyman_agent::workspace::{CheckpointInfo, UndoTarget};
use journeyman_agent::{AgentError, UserMessage};
use journeyman_host::editor::{edit_text, find_editor};
use journeyman_host::exec::{CommandAccess, CommandOptions, CommandRequest};
use journeyman_host::export::{ConversationFormat, ExportFormat, export_session};
use journeyman_host::format::{describe_usage, format_count, preview, printable};
use journeyman_host::session_commands::fork_session;
use journeyman_host::sessions::find_session;
use journeyman_host::state::format_minute;
use journeyman_host::undo::{UndoResult, redo, undo_session};
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::{Envelope, Event, Mode, group_digits};
use journeyman_terminal::{Style, StyledLine};

use crate::app::{App, JobResult, LoopFlow, QueuedText, open_event_stream};
use crate::blocks::{Block, BlockEntry};
use crate::commands::{COMMANDS, Command};
use crate::picker::{Picker, PickerItem};
use crate::presentation::{Overlay, PickerPurpose};
use crate::theme::{Theme, ThemeChoice};
use crate::viewer::Viewer;

/// Keys that no setting changes, for the page of help.
const FIXED_KEYS: &[(&str, &str)] = &[
    ("@", "files and symbols of the project, earlier sessions"),
    ("!COMMAND", "run it in the sandbox, for the next message"),
    ("Ctrl-A E B F K U W Y", "as in a shell"),
    ("?", "this page"),
];

impl App {
    /// Sends a message to the session, which is opened if it isn't.
    pub(crate) async fn send_message(&mut self, message: String) {
        if self.refuse_if_watched() || self.refuse_while_landing() {
            self.composer.set_text(&message);
            return;
        }
        self.open_resting_session().await;
        // A session that can't be opened just now isn't left for a new one.
        if self.closed_session.is_some() || self.refuse_if_watched() {
            return self.composer.set_text(&message);
        }
        if self.open_session.is_none() {
            self.open_new_session().await;
        }
        let accounts = match self.recap_referenced_sessions(&message).await {
            Ok(accounts) => accounts,
            Err(error) => {
                self.notice = Some(printable(&error));
                return self.composer.set_text(&message);
            }
        };
        let Some(open) = &self.open_session else {
            self.composer.set_text(&message);
            return;
        };
        if let Err(error) = open.template.check_task_size(&message) {
            self.notice = Some(error.to_string());
            self.composer.set_text(&message);
            return;
        }
        let attached = std::mem::take(&mut self.attachments).into_iter().chain(accounts);
        let text = std::iter::once(message.clone()).chain(attached).collect::<Vec<_>>().join("\n\n");
        let mut images = self.composer.images_in(&message);
        images.extend(self.plain.iter_mut().flat_map(|plain| std::mem::take(&mut plain.images)));
        self.queued.push(QueuedText { id: None, text: message.clone(), is_of_run: false });
        let session = open.session.clone();
        self.jobs.push(Box::pin(async move {
            let sent = session.send(UserMessage { text: text.clone(), images }).await;
            JobResult::Sent { message, text, sent }
        }));
        self.presentation.invalidate();
    }

    /// Withdraws the newest queued message into the composer, if the session hasn't read it.
    pub(crate) fn withdraw_newest_message(&mut self) -> bool {
        let Some(session) = self.open_session.as_ref().map(|open| open.session.clone()) else { return false };
        let Some((queued, id)) = self.queued.last().and_then(|queued| Some((queued.clone(), queued.id?)))
        else {
            return false;
        };
        self.jobs.push(Box::pin(async move {
            let withdrawn = session.withdraw_message(id).await;
            JobResult::Withdrawn { queued, withdrawn }
        }));
        true
    }

    /// Handles the result of a background job.
    pub(crate) fn finish_job(&mut self, end: JobResult) -> Result<LoopFlow, HostError> {
        self.presentation.invalidate();
        if matches!(end, JobResult::CommandRan { .. } | JobResult::Compacted(_)) {
            self.notice = None;
        }
        match end {
            JobResult::Sent { message, sent: Ok(id), .. } => {
                let sent = |queued: &&mut QueuedText| queued.id.is_none() && queued.text == message;
                if let Some(queued) = self.queued.iter_mut().find(sent) {
                    queued.id = Some(id);
                }
            }
            JobResult::Sent { sent: Err(AgentError::InDoubt { .. }), .. } => {}
            JobResult::Withdrawn { queued, withdrawn: Ok(true) } => {
                self.restore_withdrawn_messages(&[queued]);
            }
            JobResult::Stopped { withdrawn } => self.restore_withdrawn_messages(&withdrawn),
            JobResult::Withdrawn { .. } => self.notice = Some("the session has read it already".to_owned()),
            JobResult::Sent { message, text, sent: Err(error) } => {
                self.queued.retain(|queued| queued.id.is_some() || queued.text != message);
                self.put_before_message(vec![text]);
                self.show_note(Style::Bad, &format!("the message was not sent: {error}"));
            }
            JobResult::Compacted(shortened) => {
                self.is_compacting = false;
                if let Err(error) = shortened {
                    self.show_note(Style::Warning, &error.to_string());
                }
            }
            JobResult::CommandRan { command, output } => {
                self.running_commands.0 = self.running_commands.0.saturating_sub(1);
                match output {
                    Ok((output, code)) => self.attach_output(&command, &output, code),
                    Err(error) => self.show_note(Style::Bad, &format!("$ {command} didn't run: {error}")),
                }
            }
            JobResult::FilesListed(files, symbols, sessions) => {
                (self.files, self.symbols, self.sessions) = (Some(files), symbols, sessions);
                self.offer_completions();
            }
            JobResult::ModelsListed(listed) => {
                if let Some(listed) = listed {
                    self.models.add_listed(listed);
                    self.offer_completions();
                }
            }
            JobResult::Explained(lines) => self.conversation.push_note(lines),
            JobResult::ResultsRead(results) => {
                if let Some(Overlay::Transcript(viewer)) = self.presentation.overlay() {
                    viewer.set_results(results);
                }
            }
            JobResult::WatchEnded { session, ended } => self.handle_watch_end(&session, ended),
            JobResult::StatusRead(extra) => self.surroundings.extra = extra,
            JobResult::BranchRead(branch) => self.surroundings.branch = branch,
            JobResult::TreeRead(tree) => {
                tree.into_iter().for_each(|tree| self.conversation.compare_tree(tree))
            }
            JobResult::CopySettled(settled, again) => {
                self.finish_landing(settled, again.map(|again| *again))?
            }
        }
        Ok(LoopFlow::Continue)
    }

    /// Forgets the queued messages that the run has taken whose event this is. The events don't say
    /// which: their texts are redacted, and hooks may refuse some. The session may be further on: a
    /// message that the next run has taken stays until that run begins here.
    pub(crate) fn forget_taken_messages(&mut self, envelope: &Envelope) {
        let Some(open) = self.open_session.as_ref().filter(|_| !self.queued.is_empty()) else { return };
        let is_over = matches!(envelope.event, Event::Done { .. });
        if is_over || self.conversation.is_working() {
            let waiting = open.session.waiting_messages();
            let is_taken = |queued: &QueuedText| queued.id.is_some_and(|id| !waiting.contains(&id));
            self.queued.retain(|queued| !is_taken(queued) || is_over && !queued.is_of_run);
        }
    }

    /// Puts messages that the session hasn't taken before the text that is being written.
    fn restore_withdrawn_messages(&mut self, withdrawn: &[QueuedText]) {
        self.queued.retain(|queued| !withdrawn.iter().any(|one| one.id == queued.id));
        self.put_before_message(withdrawn.iter().map(|queued| queued.text.clone()).collect());
    }

    /// Puts texts before the message that is being written.
    pub(crate) fn put_before_message(&mut self, mut texts: Vec<String>) {
        if !texts.is_empty() {
            texts.extend(Some(self.composer.expanded_text()).filter(|text| !text.trim().is_empty()));
            self.composer.set_text(&texts.join("\n\n"));
        }
    }
}

/// Commands, and what they show.
impl App {
    /// Runs a command of the person's in the sandbox.
    pub(crate) fn run_shell_command(&mut self, command: &str) {
        if command.is_empty() {
            self.notice = Some("! takes a command, such as !git status".to_owned());
            return;
        }
        let options = CommandOptions {
            command: ["sh", "-c", command].map(Into::into).to_vec(),
            root: Some(self.setup.root.clone()),
            access: CommandAccess::Direct,
            net: Vec::new(),
            plain_http: false,
            writable: Vec::new(),
            readable: Vec::new(),
            variables: Vec::new(),
            timeout: None,
            memory: None,
            processes: None,
            stdin: None,
            terminal: None,
            captures_output: true,
            allow_root: self.setup.options.allow_root,
        };
        let (environment, state) = (self.setup.environment.clone(), std::sync::Arc::clone(&self.setup.state));
        let command = command.to_owned();
        self.running_commands.0 += 1;
        let stop = self.running_commands.1.clone();
        self.jobs.push(Box::pin(async move {
            let output = async {
                let open = CommandRequest::new(&environment, options)?.open(&state)?;
                let report = open.run(&stop, async |_| Ok(())).await?;
                if let Some(error) = report.error() {
                    return Err(HostError::failed(error));
                }
                Ok((report.completed.combined.text, report.code))
            };
            let output = output.await;
            JobResult::CommandRan { command, output }
        }));
        self.notice = Some("the command runs… · Esc stops".to_owned());
    }

    /// Prepares the session for a command. Returns false, and says why, if the command can't run
    /// now.
    async fn prepare_for_command(&mut self, command: Command) -> bool {
        let needs_rest = matches!(
            command,
            Command::Model
                | Command::Mode
                | Command::New
                | Command::Resume
                | Command::Fork
                | Command::Back
                | Command::Undo
                | Command::Redo
                | Command::Checkpoints
                | Command::Land
                | Command::Discard
                | Command::Isolate
        );
        let is_of_session = !matches!(command, Command::New | Command::Resume);
        if needs_rest && is_of_session && self.refuse_if_watched() {
            return false;
        }
        if needs_rest && self.watch.is_none() && self.conversation.is_working() {
            self.notice = Some("the session works; Esc stops it first".to_owned());
            return false;
        }
        if needs_rest && self.refuse_while_landing() {
            return false;
        }
        let needs_session = matches!(
            command,
            Command::Model
                | Command::Mode
                | Command::Fork
                | Command::Back
                | Command::Redo
                | Command::Compact
                | Command::Pin
                | Command::Unpin
        );
        let needs_work = matches!(
            command,
            Command::Diff | Command::Land | Command::Discard | Command::Undo | Command::Checkpoints
        );
        if needs_session {
            self.open_resting_session().await;
            if self.refuse_if_watched() {
                return false;
            }
        }
        !needs_work || self.open_unread_session().await
    }

    /// Obeys a command.
    pub(crate) async fn run_slash_command(
        &mut self,
        command: Command,
        argument: &str,
    ) -> Result<LoopFlow, HostError> {
        if !self.prepare_for_command(command).await {
            return Ok(LoopFlow::Continue);
        }
        match command {
            Command::Quit => return Ok(LoopFlow::Quit),
            Command::Help => self.show_help()?,
            Command::Model => self.change_model(argument).await,
            Command::Mode => self.change_mode(argument).await,
            Command::New => {
                self.open_new_session().await;
                self.show_note(Style::Dim, "a new session");
            }
            Command::Resume => self.choose_session().await?,
            Command::Fork => self.fork_session().await,
            Command::Back => self.choose_rewind_point()?,
            Command::Diff => self.show_diff().await?,
            Command::Land => self.land_or_discard_copy(argument, false).await,
            Command::Discard => self.land_or_discard_copy(argument, true).await,
            Command::Undo => self.undo().await,
            Command::Redo => self.redo().await,
            Command::Checkpoints => self.choose_checkpoint().await?,
            Command::Context => self.show_context(),
            Command::Cost => {
                let facts = self.conversation.facts();
                let text = describe_usage(&facts.usage(), facts.cost_usd());
                self.show_note(Style::Plain, &text);
            }
            Command::Compact => self.compact(),
            Command::Pin | Command::Unpin => self.change_pins(command, argument).await,
            Command::Permissions => self.show_permissions()?,
            Command::Agents => self.show_agents()?,
            Command::Plan => self.show_plan().await?,
            Command::Isolate => self.set_isolation(argument).await,
            Command::Image => self.attach_named_image(argument),
            Command::Theme => self.change_theme(argument)?,
            Command::Export => self.export(argument).await,
        }
        Ok(LoopFlow::Continue)
    }

    async fn change_model(&mut self, name: &str) {
        if name.is_empty() {
            let model = self.surroundings.model.clone();
            self.notice = Some(format!("the model is {model}; another one: /model PROVIDER/NAME"));
            return;
        }
        let before = self.setup.options.model.replace(name.to_owned());
        let (base_url, wire) = (self.setup.options.base_url.take(), self.setup.options.wire.take());
        if let Some(address) = self.models.address_of(name) {
            self.setup.options.base_url = Some(address.base_url.clone());
            self.setup.options.wire = Some(address.wire.clone());
        }
        match self.reopen_session().await {
            Ok(()) if self.watch.is_some() => {}
            Ok(()) => self.notice = Some(format!("from here on with {name}")),
            Err(error) => {
                self.setup.options.model = before;
                (self.setup.options.base_url, self.setup.options.wire) = (base_url, wire);
                let reopened = self.reopen_session().await;
                self.explain_failed(reopened);
                self.explain_failure(&error);
            }
        }
    }

    async fn change_mode(&mut self, name: &str) {
        match name.parse::<Mode>() {
            Ok(mode) => {
                self.setup.options.mode = Some(mode.name().to_owned());
                let reopened = self.reopen_session().await;
                self.explain_failed(reopened);
                self.notice = Some(format!("from here on in mode {mode}"));
            }
            Err(error) if !name.is_empty() => self.notice = Some(error.to_string()),
            Err(_) => {
                let text = format!(
                    "the mode is {}; another one: /mode plan, ask, edit or auto",
                    self.surroundings.mode
                );
                self.notice = Some(text);
            }
        }
    }

    /// Lets the sessions that begin from here on work in a copy, or in the project itself.
    async fn set_isolation(&mut self, argument: &str) {
        let is_copy = match argument {
            "" | "on" => true,
            "off" => false,
            _ => {
                self.notice = Some("/isolate takes on or off".to_owned());
                return;
            }
        };
        self.setup.delivery.isolate = Some(is_copy);
        let place = if is_copy { "in a copy, which /diff lands or drops" } else { "in your files" };
        match self.logged_id().is_some() {
            // A session that has begun stays where its work is.
            true => self.notice = Some(format!("the next session (/new) works {place}")),
            false => {
                self.open_new_session().await;
                self.notice = Some(format!("works {place}"));
            }
        }
    }

    fn change_theme(&mut self, name: &str) -> Result<(), HostError> {
        let Some(choice) = ThemeChoice::parse(name) else {
            let names = ThemeChoice::NAMES.join(", ");
            self.notice = Some(format!("/theme takes one of {names}; conversation.theme keeps it"));
            return Ok(());
        };
        if self.plain.is_none() {
            let theme = Theme::from_variables(|name| self.setup.environment.var(name));
            self.presentation.set_theme(theme.with_choice(choice));
            self.query_background()?;
        }
        self.notice = Some(format!("from here on in the colours `{name}`"));
        Ok(())
    }

    /// Returns the session's id, if its log exists.
    pub(crate) fn require_logged_id(&mut self) -> Option<journeyman_protocol::SessionId> {
        let id = self.logged_id();
        if id.is_none() {
            self.notice = Some("nothing was said yet".to_owned());
        }
        id
    }

    async fn fork_session(&mut self) {
        let Some(id) = self.require_logged_id() else { return };
        match fork_session(&self.setup.environment, &self.setup.state, id.as_str(), None).await {
            Ok(forked) => {
                let is_in_copy = self.is_in_copy();
                let opened = self.open_session_in_copy(&forked.id, is_in_copy).await;
                self.explain_failed(opened);
                self.note_new_copy(is_in_copy);
                self.show_note(
                    Style::Dim,
                    &format!("a copy of the session: {}; the one before is {id}", forked.id),
                );
            }
            Err(error) => self.show_note(Style::Bad, &error.to_string()),
        }
    }

    async fn undo(&mut self) {
        let Some(id) = self.require_logged_id() else { return };
        self.close_session().await;
        // A copy without changes is in nobody's way.
        if let Err(error) = self.keep_or_remove_copy().await {
            return self.explain_failure(&error);
        }
        let (environment, state) = (&self.setup.environment, &self.setup.state);
        let undone = match self.undo_in_copy(UndoTarget::Session(id.clone())).await {
            Ok(None) => undo_session(environment, state, Some(id.as_str()), None, None).await,
            undone => undone,
        };
        self.reopen_closed_session(&id).await;
        self.report_undo(undone, "taken back");
    }

    async fn redo(&mut self) {
        let id = self.logged_id();
        self.close_session().await;
        match self.redo_in_copy().await {
            Ok(None) => {}
            redone => {
                if let Some(id) = id {
                    self.reopen_closed_session(&id).await;
                }
                return self.report_undo(redone, "changed again");
            }
        }
        let root = self.setup.root.clone();
        let redone = redo(&self.setup.environment, &self.setup.state, None, Some(&root)).await;
        match id {
            Some(id) => self.reopen_closed_session(&id).await,
            None => self.open_new_session().await,
        }
        self.report_undo(redone.map(Some), "changed again");
    }

    pub(crate) fn show_document(&mut self, title: &str, lines: Vec<StyledLine>) -> Result<(), HostError> {
        let viewer = Viewer::new(title, self.presentation.marker_display(), false);
        let entry = BlockEntry { block: Block::Lines(lines), has_gap: false };
        self.open_overlay(Overlay::Document(viewer, vec![entry]))
    }

    /// Changes again what the newest undo in the session's copy took back; `None` without a copy,
    /// or without an undo in it.
    async fn redo_in_copy(&self) -> Result<Option<UndoResult>, HostError> {
        match self.open_resting_copy().await? {
            Some(copy) => copy.redo().await,
            None => Ok(None),
        }
    }

    /// Lists the checkpoints of the session's copy, or of the project.
    async fn list_checkpoints(&mut self) -> Result<Vec<CheckpointInfo>, HostError> {
        if self.is_in_copy() {
            self.close_session().await;
            return match self.open_resting_copy().await? {
                Some(copy) => copy.checkpoints().await,
                None => Ok(Vec::new()),
            };
        }
        self.open_resting_session().await;
        let Some(open) = &self.open_session else { return Ok(Vec::new()) };
        open.template.project.workspace.checkpoints().context("the checkpoints")
    }

    async fn choose_checkpoint(&mut self) -> Result<(), HostError> {
        let checkpoints = match self.list_checkpoints().await {
            Ok(checkpoints) => checkpoints,
            Err(error) => {
                self.notice = Some(printable(&error));
                return Ok(());
            }
        };
        if checkpoints.is_empty() {
            self.notice =
                Some("there are no checkpoints yet; a task makes one before it changes anything".to_owned());
            return Ok(());
        }
        let place = if self.is_in_copy() { "the copy" } else { "the files" };
        let item = |checkpoint: &CheckpointInfo| PickerItem {
            label: preview(&checkpoint.label),
            note: format!("{:>4}  {}", checkpoint.id, checkpoint.at.map(format_minute).unwrap_or_default()),
            details: vec![
                format!("{} since", format_count(checkpoint.changes, "change")),
                match (checkpoint.readable, checkpoint.whole) {
                    (true, true) => format!("Enter takes {place} back to this state; /redo undoes that"),
                    (true, false) => "some of its contents aren't kept any more".to_owned(),
                    (false, _) => "its list of files can't be read any more".to_owned(),
                },
            ],
        };
        let items = checkpoints.iter().rev().map(item).collect();
        let ids = checkpoints.iter().rev().map(|checkpoint| checkpoint.id.0).collect();
        let picker = Picker::new(format!("Take {place} back to a checkpoint"), items, Vec::new());
        self.open_overlay(Overlay::Picker(picker, PickerPurpose::Checkpoint(ids)))
    }

    fn show_context(&mut self) {
        let facts = self.conversation.facts();
        let shares = facts.shares.iter().filter(|share| !share.tokens.is_zero());
        let mut lines: Vec<StyledLine> = shares
            .map(|share| {
                StyledLine::new(
                    Style::Plain,
                    format!("  {:>9}  {}", group_digits(share.tokens.0), share.category.name()),
                )
            })
            .collect();
        let window = self
            .surroundings
            .window
            .map(|window| format!(" of {}", group_digits(window.0)))
            .unwrap_or_default();
        let head = format!(
            "the last request had {}{window} tokens; the first had, estimated:",
            group_digits(facts.context.0)
        );
        lines.insert(0, StyledLine::new(Style::Strong, head));
        if lines.len() == 1 {
            self.notice = Some("nothing was sent yet".to_owned());
            return;
        }
        self.conversation.push_note(lines);
    }

    fn compact(&mut self) {
        if self.require_logged_id().is_none() {
            return;
        }
        if let Some(open) = &self.open_session {
            self.notice = Some("shortening the conversation… · Esc stops".to_owned());
            if std::mem::replace(&mut self.is_compacting, true) {
                return;
            }
            let session = open.session.clone();
            self.jobs.push(Box::pin(async move { JobResult::Compacted(session.compact().await) }));
        }
    }

    async fn export(&mut self, argument: &str) {
        if argument.is_empty() {
            self.notice = Some("/export takes a new file, such as /export session.md".to_owned());
            return;
        }
        let Some(id) = self.shown_id() else {
            self.notice = Some("nothing was said yet".to_owned());
            return;
        };
        let path = self.setup.environment.cwd.join(Path::new(argument));
        let format = ExportFormat::Conversation(ConversationFormat::Markdown);
        let exported = async {
            let summary = find_session(&self.setup.state, &self.setup.environment, id.as_str()).await?;
            export_session(&self.setup.state, &summary, format, Some(&path), |_| ()).await
        };
        match exported.await {
            Ok(()) => self.show_note(Style::Dim, &format!("written to {}", path.display())),
            Err(error) => self.notice = Some(error.to_string()),
        }
    }

    /// Shows keys and commands.
    pub(crate) fn show_help(&mut self) -> Result<(), HostError> {
        let row = |left: &str, right: &str| {
            StyledLine::new(Style::Code, format!("  {left:<26}")).with_text(format!(" {right}"))
        };
        let mut lines = Vec::new();
        if self.plain.is_none() {
            lines.push(StyledLine::new(Style::Strong, "Keys"));
            let keys = self.preferences.keymap.describe();
            lines.extend(
                keys.iter().map(|(key, name, does)| row(key, does).with(Style::Dim, format!("  [{name}]"))),
            );
            lines.extend(FIXED_KEYS.iter().map(|(key, does)| row(key, does)));
            let advice =
                "  another key: [conversation.keys] in your config.toml, such as transcript = \"ctrl-o\"";
            lines.extend([StyledLine::new(Style::Dim, advice), StyledLine::default()]);
        }
        lines.push(StyledLine::new(Style::Strong, "Commands"));
        lines
            .extend(COMMANDS.iter().map(|info| row(&format!("/{} {}", info.name, info.argument), info.help)));
        self.show_document("help", lines)
    }

    /// Lets something else have the keys and the terminal for a while.
    pub(crate) fn with_keys_released<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, HostError> {
        // The key reader would consume input that is meant for the child program.
        drop(self.keys.take());
        let done = work(self);
        self.keys = Some(open_event_stream());
        self.questions.delay_keys(Instant::now());
        Ok(done)
    }

    /// Lets the person write the message in their editor.
    pub(crate) fn edit_in_external_editor(&mut self) -> Result<(), HostError> {
        let text = self.composer.expanded_text();
        let editor = find_editor(&self.setup.environment);
        let edited = self.with_keys_released(|app| {
            app.presentation.with_terminal_restored(|| edit_text(&editor, &text, ".md"))
        })?;
        match edited.context("the terminal")? {
            Ok(text) => self.composer.set_text(text.trim_end()),
            Err(error) => self.notice = Some(format!("{editor}: {error}")),
        }
        Ok(())
    }

    /// Says where the conversation is.
    pub(crate) fn show_greeting(&mut self) {
        let root = self.setup.shown_root();
        let help = if self.plain.is_some() { "/help" } else { "?" };
        let line = StyledLine::new(Style::Strong, "journeyman")
            .with(Style::Dim, format!("  {}  {help} for help", printable(&root)));
        self.conversation.push_note(vec![line]);
    }
}
