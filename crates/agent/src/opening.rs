//! How a task begins: what waits is taken, the first context is packed.

use std::sync::Arc;

use journeyman_context::{Inputs, first};
use journeyman_model::SystemPart;
use journeyman_policy::Policy;
use journeyman_protocol::{AgentState, Block, Event, Message, MessageKind, Mode, ToolSpec};
use journeyman_store::STATUS_NEW;
use journeyman_verify::Check;
use journeyman_workspace::{ListOptions, Listing};

use crate::record::{MessageId, Queued, Record, Setting};
use crate::settings::Checks;
use crate::turn::{Before, Worker, blocking};
use crate::{AgentError, apply_edit};

/// Files that the map is drawn from. A path is some 50 bytes; 20,000 keep the walk of a huge tree bounded.
const MAP_FILES: usize = 20_000;

impl Worker {
    /// Takes what waits, and begins a task with it.
    pub(crate) async fn open(&mut self) -> Result<(), AgentError> {
        let waiting = self.shared.waiting();
        let taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        let task = words(&waiting);
        self.before = Before::Unrecorded;
        self.tally.task.clone_from(&task);
        self.list_as_begun().await;
        self.note(Record::Began);
        let setting = self.setting();
        if self.state.setting.as_ref() != Some(&setting) {
            self.note(Record::Setting(setting));
        }
        // Asked early: it is remembered, and what can't be confined is known before anything is tried.
        let enforcement = self.parts.sandbox.enforcement().await.ok();
        self.log.emit(Event::RunStarted {
            task,
            root: self.parts.workspace.root().display().to_string(),
            model: self.parts.model.name(),
            mode: self.settings.mode,
            enforcement,
        });
        // After that: a task's first event says what it is.
        self.become_(AgentState::Working);
        // What the handle changed before there was a log.
        self.note_todos();
        let began = self.first_words(waiting).await;
        // Whatever came of it: a task that can't begin must not be begun again and again.
        let content = match &began {
            Ok(content) => content.clone(),
            Err(AgentError::HookDenied { .. }) => Vec::new(),
            // The next message is answered with this one in mind.
            Err(_) => vec![Block::text(self.tally.task.clone())],
        };
        self.take(content, taken);
        began.map(|_| ())
    }

    /// Lists say of a session with a task that it has no end, so that one which is cut off is told from the task
    /// before it.
    async fn list_as_begun(&mut self) {
        if self.state.outcome.is_some() {
            let now = self.parts.clock.now();
            // Only lists show it. A store that fails is told of when the task is written down.
            self.parts.store.set_status(&self.session, STATUS_NEW, now).await.ok();
        }
    }

    /// What the model is told first: the packed context at the session's first task, and what waits.
    async fn first_words(&mut self, waiting: Vec<Queued>) -> Result<Vec<Block>, AgentError> {
        let mut context = self.session_start().await;
        context.append(&mut self.hook_context_waiting);
        let (kept, more, denied) = self.screen(waiting).await;
        context.extend(more);
        if let Some(denied) = denied
            && !kept.iter().any(|queued| queued.kind == MessageKind::User)
        {
            return Err(denied);
        }
        let mut content = Vec::new();
        if self.state.system.is_empty() {
            content.push(Block::text(self.pack(&words(&kept)).await?));
            let others = kept.into_iter().filter(|queued| queued.kind != MessageKind::User);
            content.extend(others.map(|queued| Block::text(queued.text)));
        } else {
            content.extend(kept.into_iter().map(|queued| Block::text(queued.text)));
        }
        content.extend(context.into_iter().map(Block::text));
        Ok(content)
    }

    /// How the session is set now.
    pub(crate) fn setting(&self) -> Setting {
        Setting {
            model: self.parts.model.name(),
            mode: self.settings.mode,
            tool_calling: self.settings.tool_calling,
            asked: self.settings.asked.clone(),
        }
    }

    /// Packs the first context: the system parts are kept, the first message is returned.
    async fn pack(&mut self, task: &str) -> Result<String, AgentError> {
        let listing = self.listing().await?;
        self.checks = self.find_checks(&listing);
        let commands: Vec<String> = self.checks.iter().map(|check| check.command.clone()).collect();
        self.parts.policy = Policy::with_checks(commands.clone());
        let tools = self.tools();
        let packed = first(&Inputs {
            task,
            workspace: &self.parts.workspace,
            listing: &listing,
            checks: &commands,
            mode: self.settings.mode,
            user_instructions: self.settings.instructions.as_deref(),
            project_instructions: self.settings.project_instructions.as_deref(),
            text_protocol: !self.settings.tool_calling,
            tools: &tools,
            today: &self.settings.today,
            platform: &self.settings.platform,
            budget: self.settings.context_budget,
        })?;
        let redactor = &self.parts.redactor;
        let part = |part: journeyman_context::SystemText| SystemPart {
            text: redactor.redact(&part.text).into_owned(),
            cache: part.cache,
        };
        let system = packed.system.into_iter().map(part).collect();
        let message = redactor.redact(&packed.message).into_owned();
        self.note(Record::Context { system });
        self.log.emit(Event::ContextPacked {
            tokens: packed.report.tokens,
            files_listed: packed.report.files_listed,
            instructions: packed.report.instructions,
            files: packed.report.files,
        });
        Ok(message)
    }

    async fn listing(&self) -> Result<Listing, AgentError> {
        let workspace = Arc::clone(&self.parts.workspace);
        let options = ListOptions { limit: MAP_FILES, ..ListOptions::default() };
        Ok(blocking("listing the project", move || workspace.list(options)).await??)
    }

    /// Finds the project's checks again after a restart: policy knows them by name.
    pub(crate) async fn find_checks_again(&mut self) -> Result<(), AgentError> {
        let listing = self.listing().await?;
        self.checks = self.find_checks(&listing);
        let commands = self.checks.iter().map(|check| check.command.clone()).collect();
        self.parts.policy = Policy::with_checks(commands);
        Ok(())
    }

    fn find_checks(&self, listing: &Listing) -> Vec<Check> {
        match &self.settings.checks {
            Checks::Off => Vec::new(),
            Checks::Custom(commands) => journeyman_verify::custom(commands),
            Checks::Found => journeyman_verify::find(&self.parts.workspace, listing, &*self.parts.programs),
        }
    }

    /// The tools this mode offers: in plan mode those that only write are not even shown.
    pub(crate) fn tools(&self) -> Vec<ToolSpec> {
        let plan = self.settings.mode == Mode::Plan;
        let offered = |name: &str| {
            let reads = || self.registry.get(name).is_ok_and(|tool| tool.is_read_only());
            // A command may well only read; policy judges it by its words.
            name != apply_edit::NAME && (!plan || name == "run_command" || reads())
        };
        let mut specs = self.registry.specs();
        specs.retain(|spec| offered(&spec.name));
        specs
    }

    /// The model takes no tools: the session starts over in the text protocol.
    pub(crate) async fn fall_back_to_text(&mut self) -> Result<(), AgentError> {
        self.settings.tool_calling = false;
        let message =
            format!("{} does not take tool calls; going on with the text protocol", self.parts.model.name());
        self.log.emit(Event::Warning { message });
        let task = std::mem::take(&mut self.tally.task);
        let text = self.pack(&task).await?;
        self.tally.task = task;
        self.note(Record::Setting(self.setting()));
        self.note(Record::Cleared);
        self.note(Record::message(Message::user_text(text)));
        Ok(())
    }
}

/// What a person asked for: the words of all that waits from them.
fn words(waiting: &[Queued]) -> String {
    let spoken = waiting.iter().filter(|queued| queued.kind == MessageKind::User);
    let spoken: Vec<&str> = spoken.map(|queued| queued.text.as_str()).collect();
    spoken.join("\n\n")
}
