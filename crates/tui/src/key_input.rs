//! Keys: the part of the conversation that each goes to.

use std::time::{Duration, Instant};

use crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use journeyman_agent::workspace::CheckpointId;
use journeyman_host::approvals::AnsweredRequest;
use journeyman_host::format::printable;
use journeyman_host::images::is_image_name;
use journeyman_host::slash_commands::SlashCommands;
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::SessionId;
use journeyman_terminal::Style;

use crate::app::{App, JobResult, LoopFlow, QueuedText, RecalledPart};
use crate::blocks::{Block, BlockEntry};
use crate::commands::{COMMANDS, ParsedCommand, parse_command};
use crate::completion::{CompletableWord, Completion, KnownNames, word_at_cursor};
use crate::composer::ComposerEffect;
use crate::conversation_state::RewindPoint;
use crate::picker::PickerEffect;
use crate::presentation::{Overlay, PickerPurpose};
use crate::questions::QuestionEffect;
use crate::review::ReviewEffect;
use crate::session_actions::RewindTarget;
use crate::viewer::{Viewer, ViewerEffect};

/// The longest time between the two keys of Esc Esc.
const DOUBLE_KEY_TIME: Duration = Duration::from_millis(700);

/// The choice of a list, with the things that it leads to.
pub(crate) enum PickedItem {
    Nothing,
    Session(SessionId),
    Turning(RewindPoint, RewindTarget),
    Checkpoint(u64),
}

impl App {
    /// Handles an event of the terminal.
    pub(crate) async fn handle_terminal_event(
        &mut self,
        event: TerminalEvent,
    ) -> Result<LoopFlow, HostError> {
        let flow = match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(key).await?,
            TerminalEvent::Paste(text) => {
                if let Some(overlay) = self.presentation.overlay() {
                    overlay.paste(&text);
                    return Ok(LoopFlow::Continue);
                }
                let is_of_note = self.questions.takes_keys(&self.composer)
                    && self.questions.paste_into_note(&text, Instant::now());
                if !is_of_note && !self.attach_pasted_image(&text) {
                    self.composer.paste(&text);
                }
                self.offer_completions();
                LoopFlow::Continue
            }
            TerminalEvent::FocusGained | TerminalEvent::FocusLost => {
                self.preferences.attention.set_focus(event == TerminalEvent::FocusGained);
                LoopFlow::Continue
            }
            TerminalEvent::Resize(..) => {
                self.presentation.resize().context("the terminal")?;
                LoopFlow::Continue
            }
            _ => return Ok(LoopFlow::Continue),
        };
        Ok(flow)
    }

    async fn handle_key(&mut self, key: KeyEvent) -> Result<LoopFlow, HostError> {
        let was_at_rest = self.composer.is_at_rest();
        let flow = self.route_key(key).await;
        if !was_at_rest && self.composer.is_at_rest() {
            self.questions.delay_keys(Instant::now());
        }
        flow
    }

    async fn route_key(&mut self, key: KeyEvent) -> Result<LoopFlow, HostError> {
        self.notice = None;
        let key = self.preferences.keymap.translate(key);
        if self.presentation.overlay().is_some() {
            return self.handle_overlay_key(key).await;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let escaped = self.escaped_at.take();
        match key.code {
            KeyCode::Char('c') if control && !self.composer.is_searching() => {
                return Ok(self.handle_control_c());
            }
            KeyCode::Char('d') if control && self.composer.is_at_rest() => return Ok(LoopFlow::Quit),
            KeyCode::Char('z') if control => {
                self.with_keys_released(|app| app.presentation.suspend_process())?.context("the terminal")?;
            }
            KeyCode::Char('t') if control => {
                let viewer = Viewer::new("transcript", self.presentation.marker_display(), true);
                self.open_overlay(Overlay::Transcript(viewer))?;
                self.start_reading_results();
            }
            KeyCode::Char('l') if control => self.presentation.redraw().context("the terminal")?,
            KeyCode::Char('g') if control && !self.composer.is_searching() => {
                self.edit_in_external_editor()?
            }
            _ if self.questions.takes_keys(&self.composer) && self.handle_question_key(key)? => {}
            KeyCode::Tab if self.questions.is_open() && self.completion.is_none() => {
                self.questions.toggle_focus();
            }
            _ if self.handle_completion_key(key) => {}
            KeyCode::Esc if !self.composer.is_searching() && !self.composer.uses_escape() => {
                self.handle_escape(escaped)?
            }
            _ if self.composer.is_searching() => return self.handle_composer_key(key).await,
            KeyCode::Char('?') if self.composer.text().is_empty() => self.show_help()?,
            KeyCode::Up if self.composer.text().is_empty() && self.withdraw_newest_message() => {}
            _ => return self.handle_composer_key(key).await,
        }
        Ok(LoopFlow::Continue)
    }

    fn handle_control_c(&mut self) -> LoopFlow {
        if !self.composer.is_blank() {
            self.composer.clear();
            self.completion = None;
        } else if self.can_interrupt() {
            self.interrupt();
        } else {
            self.notice = Some("Ctrl-D ends the conversation; you can resume the session later".to_owned());
        }
        LoopFlow::Continue
    }

    fn handle_escape(&mut self, escaped: Option<Instant>) -> Result<(), HostError> {
        if self.landing.is_some() {
            self.stop_landing();
        } else if self.can_interrupt() {
            self.interrupt();
        } else if escaped.is_some_and(|before| before.elapsed() <= DOUBLE_KEY_TIME) {
            match self.composer.is_blank() {
                true => self.choose_rewind_point()?,
                false => self.composer.clear(),
            }
        } else {
            self.escaped_at = Some(Instant::now());
            let text = if self.composer.is_blank() {
                "Esc again goes back to an earlier message"
            } else {
                "Esc again clears"
            };
            self.notice = Some(text.to_owned());
        }
        Ok(())
    }

    /// Returns true while something is done that can be stopped.
    pub(crate) fn can_interrupt(&self) -> bool {
        self.is_session_busy() || self.running_commands.0 > 0
    }

    fn is_session_busy(&self) -> bool {
        self.conversation.is_working() || self.is_compacting
    }

    pub(crate) fn interrupt(&mut self) {
        if !self.is_session_busy() {
            self.notice = Some("stopping…".to_owned());
            return std::mem::take(&mut self.running_commands.1).cancel();
        }
        if self.refuse_if_watched() {
            return;
        }
        let Some(session) = self.open_session.as_ref().map(|open| open.session.clone()) else { return };
        self.notice = Some("stopping…".to_owned());
        let waiting: Vec<QueuedText> =
            self.queued.iter().filter(|queued| queued.id.is_some()).cloned().collect();
        if waiting.is_empty() || self.plain.is_some() {
            return session.interrupt();
        }
        // What waits comes back to be edited; otherwise the session would go on with it at once.
        self.jobs.push(Box::pin(async move {
            let mut withdrawn = Vec::new();
            for queued in waiting {
                let Some(id) = queued.id else { continue };
                if session.withdraw_message(id).await.is_ok_and(|is_withdrawn| is_withdrawn) {
                    withdrawn.push(queued);
                }
            }
            session.interrupt();
            JobResult::Stopped { withdrawn }
        }));
    }

    fn handle_question_key(&mut self, key: KeyEvent) -> Result<bool, HostError> {
        match self.questions.handle_key(key, Instant::now()) {
            QuestionEffect::Ignored => return Ok(false),
            QuestionEffect::Changed => {}
            QuestionEffect::Answered(answered) => self.send_answer(*answered),
            QuestionEffect::ShowWhole(lines) => {
                let entry = BlockEntry { block: Block::Lines(lines), has_gap: false };
                let viewer = Viewer::new("the whole call", self.presentation.marker_display(), false);
                self.open_overlay(Overlay::Document(viewer, vec![entry]))?;
            }
        }
        Ok(true)
    }

    /// Passes an answer on to the session.
    pub(crate) fn send_answer(&mut self, answered: AnsweredRequest) {
        if let Some(open) = &self.open_session {
            open.session.decide(&answered.call, answered.answer);
        }
        match answered.rule_file {
            Some(Ok(path)) => self.show_note(Style::Dim, &format!("the rule is in {}", path.display())),
            Some(Err(error)) => {
                self.show_note(Style::Warning, &format!("the rule holds in this session only: {error}"))
            }
            None => {}
        }
        self.questions.show_next_question(Instant::now());
    }

    fn handle_completion_key(&mut self, key: KeyEvent) -> bool {
        let Some(list) = &mut self.completion else { return false };
        match key.code {
            KeyCode::Down => list.select(true),
            KeyCode::Up => list.select(false),
            KeyCode::BackTab => list.select(false),
            KeyCode::Esc => self.completion = None,
            KeyCode::Tab => {
                self.accept_completion();
            }
            KeyCode::Enter if key.modifiers.is_empty() && list.enter_keeps_word() => {
                self.completion = None;
                return false;
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                // A command that needs nothing more is done at once.
                let is_done = self.composer.before_cursor().starts_with('/') && self.accept_completion();
                if is_done {
                    return false;
                }
                self.accept_completion();
            }
            _ => return false,
        }
        true
    }

    /// Puts the selected completion into the text. Returns true if the text is a command that
    /// takes no argument.
    fn accept_completion(&mut self) -> bool {
        let Some(list) = self.completion.take() else { return false };
        if let Some(candidate) = list.selected() {
            let path = self.setup.root.join(candidate.insert.trim_end());
            let is_image = list.start > 0 || !candidate.insert.starts_with('/');
            if is_image && is_image_name(&path) {
                self.composer.complete(list.start, "");
                self.attach_image(&path);
            } else {
                self.composer.complete(list.start, &candidate.insert);
            }
        }
        let text = self.composer.text();
        let is_command =
            COMMANDS.iter().any(|info| text.strip_prefix('/') == Some(info.name) && info.argument.is_empty());
        let has_argument = text.starts_with('/') && text.contains(' ') && !text.ends_with(' ');
        is_command || has_argument
    }

    async fn handle_composer_key(&mut self, key: KeyEvent) -> Result<LoopFlow, HostError> {
        let width = self.presentation.size().columns;
        match self.composer.handle_key(key, width) {
            ComposerEffect::Ignored => {}
            ComposerEffect::Changed => self.offer_completions(),
            ComposerEffect::Submitted(message) => {
                self.completion = None;
                return self.submit(message).await;
            }
        }
        Ok(LoopFlow::Continue)
    }

    /// Offers completions for the word before the cursor.
    pub(crate) fn offer_completions(&mut self) {
        let before = self.composer.before_cursor();
        if before.contains('@') && self.files.is_none() {
            self.start_listing_files();
        }
        if matches!(
            word_at_cursor(self.composer.before_cursor()),
            Some((_, CompletableWord::Argument("model", _)))
        ) {
            self.start_listing_models();
        }
        let files = self.files.as_deref().unwrap_or_default();
        let models = &self.models.names;
        let names = KnownNames { files, symbols: &self.symbols, sessions: &self.sessions, models };
        self.completion = Completion::find(self.composer.before_cursor(), names);
    }

    pub(crate) async fn submit(&mut self, message: String) -> Result<LoopFlow, HostError> {
        if let Some(command) = message.strip_prefix('!') {
            self.run_shell_command(command.trim());
            return Ok(LoopFlow::Continue);
        }
        match parse_command(&message) {
            Some(ParsedCommand::Known(command, argument)) => self.run_slash_command(command, &argument).await,
            Some(ParsedCommand::Excess(name)) => {
                self.notice = Some(format!("/{name} takes nothing behind it"));
                self.composer.set_text(&message);
                Ok(LoopFlow::Continue)
            }
            other => {
                // A file of the user's or the project's may be the command.
                let (environment, root) = (&self.setup.environment, &self.setup.root);
                match SlashCommands::expand_task(environment, root, message.clone()) {
                    Ok(expanded) => self.send_message(expanded).await,
                    Err(error) => {
                        self.notice = Some(match other {
                            Some(ParsedCommand::Unknown(name, Some(nearest))) => {
                                format!("there is no command /{name}; did you mean /{nearest}?")
                            }
                            Some(ParsedCommand::Unknown(name, None)) => {
                                format!("there is no command /{name}; /help lists them")
                            }
                            _ => printable(&error),
                        });
                        self.composer.set_text(&message);
                    }
                }
                Ok(LoopFlow::Continue)
            }
        }
    }

    pub(crate) fn open_overlay(&mut self, overlay: Overlay) -> Result<(), HostError> {
        if self.plain.is_some() {
            self.write_overlay(overlay);
            return Ok(());
        }
        self.presentation.open_overlay(overlay).context("the terminal")
    }

    pub(crate) fn close_overlay(&mut self) -> Result<(), HostError> {
        self.copy_review = None;
        self.questions.delay_keys(Instant::now());
        self.presentation.close_overlay().context("the terminal")?;
        Ok(())
    }

    async fn handle_overlay_key(&mut self, key: KeyEvent) -> Result<LoopFlow, HostError> {
        let entries = self.conversation.entries();
        let (mut is_lacking, mut reviewed) = (false, ReviewEffect::Stay);
        let (is_over, chosen) = match self.presentation.overlay() {
            None => (true, PickedItem::Nothing),
            Some(Overlay::Transcript(viewer)) => {
                let effect = viewer.handle_key(key, entries);
                // A call that has ended since the results were read.
                is_lacking = key.code == KeyCode::Enter && viewer.needs_results(entries);
                (effect == ViewerEffect::Close, PickedItem::Nothing)
            }
            Some(Overlay::Document(viewer, own)) => {
                (viewer.handle_key(key, own) == ViewerEffect::Close, PickedItem::Nothing)
            }
            Some(Overlay::Review(review)) => {
                reviewed = review.handle_key(key);
                (matches!(reviewed, ReviewEffect::Close), PickedItem::Nothing)
            }
            Some(Overlay::Picker(picker, choice)) => match picker.handle_key(key) {
                PickerEffect::Stay => (false, PickedItem::Nothing),
                PickerEffect::Close => (true, PickedItem::Nothing),
                PickerEffect::Chosen(place, way) => (true, choice.item_at(place, way)),
            },
        };
        if is_over {
            self.close_overlay()?;
        } else if is_lacking {
            self.start_reading_results();
        }
        self.apply_review_effect(reviewed).await;
        match chosen {
            PickedItem::Nothing if is_over && self.has_no_session() => self.open_new_session().await,
            chosen => self.apply_choice(chosen).await,
        }
        Ok(LoopFlow::Continue)
    }

    /// Does what was chosen from a list.
    pub(crate) async fn apply_choice(&mut self, chosen: PickedItem) {
        match chosen {
            PickedItem::Nothing => {}
            PickedItem::Session(id) => self.open_session(&id, RecalledPart::Tail).await,
            PickedItem::Turning(turning, what) => self.rewind_to(&turning, what).await,
            PickedItem::Checkpoint(id) => {
                let session = self.logged_id();
                self.close_session().await;
                let restored = match self.is_in_copy() {
                    true => self.restore_copy(CheckpointId(id)).await,
                    false => self.restore_checkpoint(id).await,
                };
                match session {
                    Some(session) => self.reopen_closed_session(&session).await,
                    None => self.open_new_session().await,
                }
                self.report_undo(restored.map(Some), "taken back");
            }
        }
    }
}

impl PickerPurpose {
    /// Returns the choice of an item in the way at another place.
    pub(crate) fn item_at(&self, place: usize, way: usize) -> PickedItem {
        let chosen = match self {
            Self::Session(ids) => ids.get(place).cloned().map(PickedItem::Session),
            Self::Turning(turnings, is_in_copy) => {
                let what = RewindTarget::targets(*is_in_copy).get(way).map(|(what, _)| *what);
                turnings
                    .get(place)
                    .cloned()
                    .zip(what)
                    .map(|(turning, what)| PickedItem::Turning(turning, what))
            }
            Self::Checkpoint(ids) => ids.get(place).copied().map(PickedItem::Checkpoint),
        };
        chosen.unwrap_or(PickedItem::Nothing)
    }
}
