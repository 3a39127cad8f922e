//! How a task begins: what waits is taken, the first context is packed.

use std::sync::Arc;

use journeyman_context::{Inputs, SystemText, first, system_prompt};
use journeyman_model::SystemPart;
use journeyman_protocol::{AgentState, Block, Event, MessageKind, Mode, ToolSpec};
use journeyman_verify::Check;
use journeyman_workspace::{ListOptions, Listing};

use crate::AgentError;
use crate::isolation::checkpoints::Before;
use crate::request::apply_edit;
use crate::request::text_protocol::{has_calls, in_words};
use crate::session::handle;
use crate::session::settings::Checks;
use crate::session::turn::{Worker, blocking};
use crate::transcript::record::{MessageId, Queued, Record, Setting};

/// Files that the map is drawn from. A path is some 50 bytes; 20,000 keep the walk of a huge tree bounded.
const MAP_FILES: usize = 20_000;

impl Worker {
    /// Takes what waits, and begins a task with it.
    pub(crate) async fn open(&mut self) -> Result<(), AgentError> {
        let waiting = self.shared.waiting();
        let mut taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        let task = words(&waiting);
        self.before = Before::Unrecorded;
        self.note(Record::Began);
        let setting = self.setting();
        if self.state.setting.as_ref() != Some(&setting) {
            self.set(setting);
        }
        // Asked early: it is remembered, and what can't be confined is known before anything is tried.
        let enforcement = self.parts.sandbox.enforcement(&self.settings.needs).await.ok();
        self.log.emit(Event::RunStarted {
            task,
            root: self.parts.workspace.root().display().to_string(),
            model: self.parts.model.name(),
            mode: self.settings.mode,
            enforcement,
        });
        self.tell_of_copy();
        // After that: a task's first event says what it is.
        self.become_(AgentState::Working);
        // What the handle changed before there was a log.
        self.note_todos();
        let First { content, waits, refused } = self.first_words(waiting).await;
        taken.retain(|id| !waits.contains(id));
        // Whatever came of it: a task that can't begin must not be begun again and again.
        self.take(content, taken);
        refused.map_or(Ok(()), Err)
    }

    /// What the model is told first: the packed context at the session's first task, and what waits.
    async fn first_words(&mut self, waiting: Vec<Queued>) -> First {
        let mut context = self.session_start().await;
        context.append(&mut self.hook_context_waiting);
        let (kept, more, denied) = self.screen(waiting).await;
        context.extend(more);
        if denied.is_some() && !kept.iter().any(|queued| queued.kind == MessageKind::User) {
            // What others said is for the next task, as is what hooks had to say.
            self.hook_context_waiting = context;
            let waits = kept.into_iter().map(|queued| queued.id).collect();
            return First { waits, refused: denied, ..First::default() };
        }
        let mut first = First::default();
        let mut said: Vec<String> = Vec::new();
        // A transcript without a beginning is one that was cut off between the two.
        if self.state.system.is_empty() || self.state.messages.is_empty() {
            let task = words(&kept);
            let packed = self.pack(&task).await;
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

    /// How the session is set now.
    pub(crate) fn setting(&self) -> Setting {
        handle::setting(&self.parts, &self.settings)
    }

    /// Packs the first context: the system parts are kept, the first message is returned.
    async fn pack(&mut self, task: &str) -> Result<String, AgentError> {
        let found = self.settings.index_patience.map(|patience| (self.look_up(task), patience));
        let listing = self.listing().await?;
        self.checks = self.find_checks(&listing);
        let commands: Vec<String> = self.checks.iter().map(|check| check.command.clone()).collect();
        self.know_checks(commands.clone());
        let tools = self.tools();
        // It was begun before the tree was listed; who isn't done soon isn't waited for.
        let found = match found {
            Some((looked_up, patience)) => tokio::time::timeout(patience, looked_up).await.ok(),
            None => None,
        };
        let found = found.and_then(Result::ok).flatten();
        let packed = first(&Inputs {
            task,
            workspace: &self.parts.workspace,
            listing: &listing,
            found: found.as_ref(),
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
        let system = self.system_parts(packed.system);
        let message = self.parts.redactor.redact(&packed.message).into_owned();
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
        self.know_checks(commands);
        Ok(())
    }

    /// Tells policy which commands are the project's own checks.
    pub(crate) fn know_checks(&mut self, commands: Vec<String>) {
        self.parts.policy = std::mem::take(&mut self.parts.policy).with_checks(commands);
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

    /// The model takes no tools: the session goes on in the text protocol.
    pub(crate) fn fall_back_to_text(&mut self) {
        self.settings.tool_calling = false;
        let message =
            format!("{} does not take tool calls; going on with the text protocol", self.parts.model.name());
        self.log.emit(Event::Warning { message });
        let setting = self.setting();
        self.set(setting);
    }

    /// Takes a setting other than before: what every request begins with says how the model works now.
    pub(crate) fn set(&mut self, setting: Setting) {
        let same = |was: &Setting| (was.mode, was.tool_calling) == (setting.mode, setting.tool_calling);
        let same = self.state.setting.as_ref().is_some_and(same);
        let mut records = vec![Record::Setting(setting)];
        if !same && !self.state.system.is_empty() {
            let tools = self.tools();
            let in_text = (!self.settings.tool_calling).then_some(tools.as_slice());
            let system = self.system_parts(system_prompt(self.settings.mode, in_text));
            records.push(Record::Context { system });
        }
        self.note_together(records);
    }

    fn system_parts(&self, texts: Vec<SystemText>) -> Vec<SystemPart> {
        let part = |part: SystemText| SystemPart {
            text: self.parts.redactor.redact(&part.text).into_owned(),
            cache: part.cache,
        };
        texts.into_iter().map(part).collect()
    }

    /// Says in text what the transcript has as calls and results, for a model that takes none.
    pub(crate) fn put_in_words(&mut self) {
        if self.settings.tool_calling || !self.state.messages.iter().any(has_calls) {
            return;
        }
        let said = self.state.messages.iter().map(in_words).map(Record::message);
        let records = std::iter::once(Record::Cleared).chain(said).collect();
        self.note_together(records);
    }
}

/// A task's first words.
#[derive(Default)]
struct First {
    content: Vec<Block>,
    /// Messages that are left for the next task.
    waits: Vec<MessageId>,
    /// Why the task ends before the model is asked, where it does.
    refused: Option<AgentError>,
}

/// Texts as a message has them. No provider takes an empty one.
pub(crate) fn blocks(texts: impl IntoIterator<Item = String>) -> Vec<Block> {
    texts.into_iter().filter(|text| !text.trim().is_empty()).map(Block::text).collect()
}

/// What a person asked for: the words of all that waits from them.
fn words(waiting: &[Queued]) -> String {
    let spoken = waiting.iter().filter(|queued| queued.kind == MessageKind::User);
    let spoken: Vec<&str> = spoken.map(|queued| queued.text.as_str()).collect();
    spoken.join("\n\n")
}
