//! Builds requests to the model: the first context, the offered tools, and the text protocol for
//! models without tool calling.

use std::sync::Arc;

use journeyman_context::gathering::GatheredContext;
use journeyman_context::{
    FirstRequestInputs, LineCommit, SystemText, UncommittedFile, WindowBudget, pack_first_request,
    system_prompt,
};
use journeyman_model::{ModelRequest, SystemPart};
use journeyman_policy::secrets::unmasked_files;
use journeyman_protocol::{Event, Evidence, RelPath, Tokens, ToolSpec};
use journeyman_tools::Registry;
use journeyman_workspace::Listing;

use super::offered_tools::{LastSelection, SelectionInputs, select_offered};
use crate::AgentError;
use crate::agents::complete_task::COMPLETE_TASK;
use crate::session::context::SessionContext;
use crate::transcript::calls_as_text::has_calls;
use crate::transcript::record::{Record, RecordedSettings};

/// The tool that gives a task to another CLI.
const DELEGATE_TASK_TOOL: &str = "delegate_task";

/// Builds every request of a session.
pub(crate) struct RequestBuilder {
    registry: Arc<Registry>,
    /// False if the model uses the text protocol.
    tool_calling: bool,
    selection: LastSelection,
    /// Names of the tools whose results are reports of agents or of other CLIs.
    reporting: Vec<String>,
}

/// The findings for a task before its first request.
#[derive(Debug, Default)]
pub(crate) struct TaskFindings {
    /// The index's results.
    pub(crate) gathered: Option<GatheredContext>,
    /// The commits that last changed the lines that the task is about.
    pub(crate) line_commits: Vec<LineCommit>,
    /// The files with uncommitted changes.
    pub(crate) uncommitted: Vec<UncommittedFile>,
    /// The checks that failed before the task, on the files as they are.
    pub(crate) failures: Vec<Evidence>,
}

impl RequestBuilder {
    pub(crate) fn new(registry: Arc<Registry>, tool_calling: bool) -> Self {
        let reports = |name: &String| {
            name == DELEGATE_TASK_TOOL || registry.get(name).is_ok_and(|tool| tool.starts_agents())
        };
        let reporting = registry.specs().into_iter().map(|spec| spec.name).filter(reports).collect();
        Self { registry, tool_calling, selection: LastSelection::default(), reporting }
    }

    /// Returns false if the model uses the text protocol.
    pub(crate) fn tool_calling(&self) -> bool {
        self.tool_calling
    }

    /// Builds the next request. It takes the transcript's messages, which must be given back with
    /// `Transcript::return_messages`.
    pub(crate) fn build(&self, cx: &mut SessionContext) -> ModelRequest {
        // Providers cache prefixes by this name, and a fork shares the prefix of its oldest
        // ancestor.
        let name = cx.transcript.state().lineage.first().unwrap_or(&cx.session).to_string();
        // Providers refuse a limit beyond the model's own.
        let limit = cx.meter.limits().max_output.unwrap_or(Tokens(u64::MAX));
        ModelRequest {
            model: String::new(),
            system: cx.transcript.state().system.clone(),
            messages: cx.transcript.lend_messages(),
            tools: self.tools_for_request(cx),
            max_output: cx.settings.max_output.map(|most| most.min(limit)),
            temperature: cx.settings.temperature,
            top_p: cx.settings.top_p,
            thinking: cx.settings.thinking,
            session: Some(name),
        }
    }

    /// Packs the first context: records the system parts and returns the first message. `checks`
    /// are the command lines of the project's checks.
    pub(crate) fn pack_first_context(
        &self,
        cx: &mut SessionContext,
        task: &str,
        listing: &Listing,
        checks: &[String],
        found: &TaskFindings,
        may_show: &dyn Fn(&RelPath) -> bool,
    ) -> Result<String, AgentError> {
        cx.meter.start_limits_query(&cx.model);
        let tools = self.offered_tools(cx);
        let packed = pack_first_request(&FirstRequestInputs {
            prompts: &cx.settings.prompts,
            task,
            role: cx.role().map(|role| role.system.as_str()),
            workspace: &cx.workspace,
            listing,
            // A sub-agent has a task of its own.
            open: if cx.role().is_some() { &[] } else { &cx.settings.open_files },
            found: found.gathered.as_ref(),
            line_commits: &found.line_commits,
            uncommitted: &found.uncommitted,
            failures: &found.failures,
            may_show: &unmasked_files(may_show),
            checks,
            mode: cx.settings.mode,
            goal: cx.settings.read_only_goal,
            user_instructions: cx.settings.instructions.as_deref(),
            project_instructions: cx.settings.project_instructions.as_deref(),
            notes: &cx.settings.notes,
            text_protocol: !self.tool_calling,
            tools: &tools,
            today: &cx.settings.today,
            platform: &cx.settings.platform,
            budget: window_budget(cx).first_context(cx.settings.context_budget, task),
        })?;
        let system = system_parts(cx, packed.system);
        let message = cx.redactor.redact(&packed.message).into_owned();
        cx.transcript.record(Record::Context { system });
        let counter = cx.meter.counter();
        let tools: Tokens = self.tools_for_request(cx).iter().map(|tool| counter.count_tool(tool)).sum();
        let shares = window_budget(cx).divide(packed.report.shares, tools);
        cx.transcript.emit(Event::ContextPacked {
            tokens: packed.report.tokens,
            shares,
            files_listed: packed.report.files_listed,
            instructions: packed.report.instructions,
            files: packed.report.files,
        });
        Ok(message)
    }

    /// Returns the session's current settings record.
    pub(crate) fn current_setting(&self, cx: &SessionContext) -> RecordedSettings {
        RecordedSettings {
            model: cx.model.name(),
            mode: cx.settings.mode,
            tool_calling: self.tool_calling,
            asked: cx.settings.asked.clone(),
        }
    }

    /// Switches to the text protocol silently: an earlier run found that the model takes no tools.
    pub(crate) fn use_text_protocol(&mut self) {
        self.tool_calling = false;
    }

    /// Returns the tools of a request. In the text protocol the prompt describes them.
    pub(crate) fn tools_for_request(&self, cx: &SessionContext) -> Arc<[ToolSpec]> {
        if self.tool_calling { self.offered_tools(cx) } else { Arc::default() }
    }

    /// Returns the names of the tools whose results are reports of agents or of other CLIs.
    pub(crate) fn reporting_tools(&self) -> Vec<String> {
        self.reporting.clone()
    }

    /// Returns the tools that are offered.
    pub(crate) fn offered_tools(&self, cx: &SessionContext) -> Arc<[ToolSpec]> {
        let inputs = SelectionInputs {
            last_turn: cx.transcript.state().last_turn.is_some(),
            mode: cx.settings.mode,
            window: cx.meter.limits().window,
            withheld: cx.settings.withheld_tools.clone(),
        };
        let (last_turn, window) = (inputs.last_turn, inputs.window);
        self.selection.get(inputs, || {
            let mut specs = self.registry.specs();
            if last_turn {
                specs.retain(|spec| spec.name == COMPLETE_TASK);
                return specs;
            }
            let reads = |name: &str| self.registry.get(name).is_ok_and(|tool| tool.is_read_only());
            select_offered(specs, &cx.settings, window, reads)
        })
    }

    /// Switches to the text protocol with a warning, because the model takes no tools.
    pub(crate) fn fall_back_to_text(&mut self, cx: &mut SessionContext) {
        self.tool_calling = false;
        let message =
            format!("{} does not take tool calls; going on with the text protocol", cx.model.name());
        cx.transcript.emit(Event::Warning { message });
        let setting = self.current_setting(cx);
        self.record_setting(cx, setting);
    }

    /// Records a new setting. If the mode or protocol changed, also records a new system prompt.
    pub(crate) fn record_setting(&self, cx: &mut SessionContext, setting: RecordedSettings) {
        let same =
            |was: &RecordedSettings| (was.mode, was.tool_calling) == (setting.mode, setting.tool_calling);
        let same = cx.transcript.state().setting.as_ref().is_some_and(same);
        let mut records = vec![Record::Setting(setting)];
        if !same && !cx.transcript.state().system.is_empty() {
            let tools = self.offered_tools(cx);
            let in_text = (!self.tool_calling).then_some(&*tools);
            let role = cx.role().map(|role| role.system.as_str());
            let prompts = &cx.settings.prompts;
            let mode = (cx.settings.mode, cx.settings.read_only_goal);
            let system = system_parts(cx, system_prompt(role, prompts, mode, in_text));
            records.push(Record::Context { system });
        }
        cx.transcript.record_together(records);
    }

    /// Rewrites tool calls and results in the transcript as text, for a model without tool calling.
    pub(crate) fn rewrite_calls_as_text(&self, cx: &mut SessionContext) {
        if self.tool_calling || !cx.transcript.state().messages.iter().any(has_calls) {
            return;
        }
        cx.transcript.record(Record::RewrittenAsText);
    }
}

fn window_budget(cx: &SessionContext) -> WindowBudget {
    WindowBudget::new(cx.meter.limits(), cx.settings.max_output)
}

fn system_parts(cx: &SessionContext, texts: Vec<SystemText>) -> Vec<SystemPart> {
    let part = |part: SystemText| SystemPart {
        text: cx.redactor.redact(&part.text).into_owned(),
        cache: part.cache,
    };
    texts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{Block, Mode, SessionId, UnixMillis};
    use serde_json::json;

    use super::*;
    use crate::request::apply_edit;
    use crate::request::offered_tools::{ESSENTIAL_TOOLS, count_specs};
    use crate::test_context::{TestContext, call};

    fn builder(test: &TestContext) -> RequestBuilder {
        let mut registry = Registry::with_builtin_at(&test.root);
        registry.add(Box::new(apply_edit::ApplyEditTool));
        RequestBuilder::new(Arc::new(registry), true)
    }

    fn names(specs: &[ToolSpec]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[tokio::test]
    async fn plan_mode_offers_no_tool_that_writes_except_commands() {
        let mut test = TestContext::new(&[]).await;
        let requests = builder(&test);
        let edit = requests.offered_tools(&test.cx);
        test.cx.settings.mode = Mode::Plan;
        let plan = requests.offered_tools(&test.cx);
        let missing: Vec<&str> =
            names(&edit).into_iter().filter(|name| !names(&plan).contains(name)).collect();
        let writing = ["edit_file", "write_file", "apply_patch", "edit_symbol", "delete_file", "move_file"];
        assert_eq!(missing, [writing.as_slice(), &["stop_command"]].concat());
        assert!(!names(&edit).contains(&apply_edit::TOOL_NAME), "only the text protocol has this tool");
    }

    #[tokio::test]
    async fn a_withheld_tool_is_not_offered() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.withheld_tools = vec!["apply_patch".to_owned()];
        let specs = builder(&test).offered_tools(&test.cx);
        assert!(!names(&specs).contains(&"apply_patch") && names(&specs).contains(&"edit_file"));
    }

    #[tokio::test]
    async fn a_window_is_offered_the_tools_that_fit_it() {
        let mut test = TestContext::new(&[]).await;
        let requests = builder(&test);
        let all = requests.offered_tools(&test.cx);
        let mut before: Vec<String> = Vec::new();
        for window in [2_000, 4_096, 8_000, 8_192, 12_000, 16_384, 24_000, 32_000] {
            test.cx.meter.set_refused_window(Tokens(window));
            let offered = requests.offered_tools(&test.cx);
            let now: Vec<String> = offered.iter().map(|spec| spec.name.clone()).collect();
            assert!(before.iter().all(|name| now.contains(name)), "{window}: a larger window has no less");
            assert!(ESSENTIAL_TOOLS.iter().all(|name| now.iter().any(|it| it == name)), "{window}: {now:?}");
            let tokens = count_specs(&offered);
            assert!(
                now.len() == ESSENTIAL_TOOLS.len() || tokens.0 <= window * 15 / 100,
                "{window}: {tokens}"
            );
            assert_eq!(names(&offered), names(&requests.offered_tools(&test.cx)));
            before = now;
        }
        assert_eq!(before, names(&all));
    }

    #[tokio::test]
    async fn a_model_of_patches_with_a_small_window_is_offered_patches() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.withheld_tools = vec!["edit_file".to_owned()];
        test.cx.meter.set_refused_window(Tokens(2_000));
        let offered = builder(&test).offered_tools(&test.cx);
        assert!(names(&offered).contains(&"apply_patch"), "{:?}", names(&offered));
    }

    #[tokio::test]
    async fn a_request_lends_the_transcript_and_is_named_after_the_oldest_ancestor() {
        let mut test = TestContext::new(&[]).await;
        let oldest = SessionId::new(UnixMillis(5), 5);
        test.cx.transcript.record(Record::Forked { parent: oldest.clone(), at: journeyman_protocol::Seq(3) });
        test.cx.transcript.add_user_text("do it");
        let request = builder(&test).build(&mut test.cx);
        assert_eq!(request.session, Some(oldest.to_string()));
        assert_eq!((request.messages.len(), test.cx.transcript.state().messages.len()), (1, 0));
        test.cx.transcript.return_messages(request.messages);
        assert_eq!(test.last_text(), "do it");
    }

    #[tokio::test]
    async fn a_model_without_tools_gets_them_and_earlier_calls_as_text() {
        let mut test = TestContext::new(&[("a.rs", "fn main() {}\n")]).await;
        let mut requests = builder(&test);
        let listing = test.cx.workspace.list(journeyman_workspace::ListOptions::default()).unwrap();
        requests
            .pack_first_context(&mut test.cx, "do it", &listing, &[], &TaskFindings::default(), &|_| true)
            .unwrap();
        test.record_reply(&[call("c1", "read_file", json!({ "path": "a.rs" }))]);
        test.cx.transcript.close_calls("not run");
        requests.fall_back_to_text(&mut test.cx);
        requests.rewrite_calls_as_text(&mut test.cx);
        let request = requests.build(&mut test.cx);
        assert!(request.tools.is_empty());
        let system: String = request.system.iter().map(|part| part.text.as_str()).collect();
        assert!(system.contains("read_file"), "the prompt describes the tools: {system}");
        let content: Vec<Block> = request.messages.iter().flat_map(|it| it.content.clone()).collect();
        assert!(content.iter().all(|block| matches!(block, Block::Text { .. })), "{content:?}");
        test.cx.transcript.return_messages(request.messages);
        assert!(!test.reloaded_state().await.tool_calling(), "the change is on record");
    }
}
