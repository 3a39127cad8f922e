//! The tools that give tasks to agents.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_policy::suggest_tool;
use journeyman_protocol::{Effects, SessionId, Termination, ToolSpec, clip_to_bytes};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value, json};

use super::definition::{AgentDefinition, TASK_TOOL};
use super::delegation::{AgentEnd, AgentToolKind, Agents, BackgroundTask, DelegatedTask, DelegatingSession};
use super::role::AgentOutputSpec;

/// Maximum bytes of an agent's line in the description of the tool that names all agents, and of
/// all lines.
const MAX_AGENT_LINE_BYTES: usize = 400;
const MAX_AGENT_LIST_BYTES: usize = 4_000;
/// Maximum characters of a task in a summary.
const MAX_TASK_SUMMARY_CHARS: usize = 80;

/// Returns the tools that give tasks to agents: one for all, or one for each.
pub(crate) fn agent_tools(parent: &Arc<DelegatingSession>) -> Vec<Box<dyn Tool>> {
    let tool = |only| -> Box<dyn Tool> { Box::new(AgentTool { parent: Arc::clone(parent), only }) };
    match parent.agents.definitions() {
        [] => Vec::new(),
        definitions if parent.agents.offered == AgentToolKind::Tools => {
            definitions.iter().map(|one| tool(Some(one.clone()))).collect()
        }
        _ => vec![tool(None)],
    }
}

/// Gives a task to an agent.
struct AgentTool {
    parent: Arc<DelegatingSession>,
    /// The only agent, whose inputs are the arguments; without it an argument names the agent.
    only: Option<AgentDefinition>,
}

impl AgentTool {
    fn find_definition(&self, input: &Value) -> Result<&AgentDefinition, String> {
        let name = input.get("agent").and_then(Value::as_str).unwrap_or_default();
        self.parent.agents.get(name).ok_or_else(|| {
            let names = || self.parent.agents.definitions().iter().map(|it| it.name.as_str());
            let nearest = suggest_tool(name, names());
            let hint = nearest.map_or_else(|| ".".to_owned(), |name| format!("; did you mean `{name}`?"));
            let all = names().collect::<Vec<_>>().join(", ");
            format!("there is no such agent{hint} There are: {all}")
        })
    }

    /// Returns the agent that a call names, and its inputs.
    fn parse_call(&self, input: &Value) -> Result<(&AgentDefinition, Map<String, Value>), String> {
        let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(definition) = &self.only {
            return Ok((definition, fields(Some(input))));
        }
        let definition = self.find_definition(input)?;
        let prompt = input.get("prompt").and_then(Value::as_str);
        Ok((definition, definition.arguments(prompt, fields(input.get("inputs")))))
    }

    /// Returns true if the call asks for an agent in the background.
    fn is_for_background(&self, input: &Value) -> bool {
        self.only.is_none() && input.get("background").and_then(Value::as_bool).unwrap_or_default()
    }
}

/// Returns the specifications of the tools that give tasks to some agents.
pub(crate) fn agent_tool_specs(agents: &Agents) -> Vec<ToolSpec> {
    match agents.definitions() {
        [] => Vec::new(),
        definitions if agents.offered == AgentToolKind::Tools => {
            definitions.iter().map(agent_tool_spec).collect()
        }
        definitions => vec![task_tool_spec(definitions)],
    }
}

/// Returns the specification of the tool for one agent.
fn agent_tool_spec(agent: &AgentDefinition) -> ToolSpec {
    ToolSpec {
        name: agent.name.clone(),
        description: agent.description.clone(),
        input_schema: agent.arguments_schema(),
    }
}

/// Returns the specification of the tool for all agents.
fn task_tool_spec(agents: &[AgentDefinition]) -> ToolSpec {
    let mut description = String::from(
        "Gives a task to an agent that sees nothing else. Several run in parallel; `background` ones \
         report later. Agents:",
    );
    // Many agents share the space, so that the description lists each of them.
    let share = (MAX_AGENT_LIST_BYTES / agents.len().max(1)).min(MAX_AGENT_LINE_BYTES);
    for agent in agents {
        let line = format!("{}: {}", agent.name, agent.description.trim());
        description.push_str("\n- ");
        description.push_str(clip_to_bytes(&line, share.max(agent.name.len())));
    }
    let names: Vec<&str> = agents.iter().map(|it| it.name.as_str()).collect();
    ToolSpec {
        name: TASK_TOOL.to_owned(),
        description,
        input_schema: json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": names },
                "prompt": { "type": "string" },
                "inputs": { "type": "object" },
                "background": { "type": "boolean" },
            },
            "required": ["agent", "prompt"],
        }),
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> ToolSpec {
        match &self.only {
            Some(agent) => agent_tool_spec(agent),
            None => task_tool_spec(self.parent.agents.definitions()),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        // Giving a task has none: each call of the agent is judged for itself.
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        match &self.only {
            Some(agent) => {
                let texts = input.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
                format!("{}: {}", agent.name, first_line(&texts.collect::<Vec<_>>().join(", ")))
            }
            None => {
                let text = |key| input.get(key).and_then(Value::as_str).unwrap_or_default();
                format!("{TASK_TOOL} {}: {}", text("agent"), first_line(text("prompt")))
            }
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn starts_agents(&self) -> bool {
        true
    }

    fn time_limit(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let not_started = |why: String| Ok(ToolOutput::failure(format!("not started: {why}")));
            let (definition, inputs) = match self.parse_call(&input) {
                Ok(read) => read,
                Err(why) => return not_started(why),
            };
            let (parent, context) = (&self.parent, context.into());
            let delegate = &parent.agents.delegate;
            let result = if self.is_for_background(&input) {
                let task = BackgroundTask { definition: definition.clone(), inputs, context };
                let started = delegate.start(parent, task).await;
                started.map(|id| ToolOutput::text(describe_background_start(definition, &id)))
            } else {
                let task = DelegatedTask { parent, definition, inputs, context, membership: None };
                delegate.run(task).await.map(|end| describe_end(&end))
            };
            result.or_else(not_started)
        }
        .boxed()
    }
}

fn describe_background_start(definition: &AgentDefinition, id: &SessionId) -> String {
    format!(
        "The agent `{}` works in the background as task {id}. Its result comes by itself with a later step. Go \
         on with other work, or end your turn without a call to wait for it.",
        definition.name
    )
}

/// Returns the end of an agent in the background as a notice for its parent's model.
pub(super) fn describe_background_end(end: &AgentEnd) -> String {
    let result = agent_result_text(end).unwrap_or_else(|failure| failure);
    format!("The background task {} has ended. {result}", end.session)
}

/// Returns the end of an agent as the result of the call that started it.
pub(super) fn describe_end(end: &AgentEnd) -> ToolOutput {
    match agent_result_text(end) {
        Ok(text) => ToolOutput::text(text),
        Err(text) => ToolOutput::failure(text),
    }
}

/// Returns the result of an agent, or the reason why there is none.
fn agent_result_text(end: &AgentEnd) -> Result<String, String> {
    let AgentEnd { session, report, summary } = end;
    let name = &report.name;
    let Some(output) = report.output.as_ref().filter(|_| report.termination == Termination::Goal) else {
        return Err(format!(
            "The agent `{name}` did not complete its task: {} ({summary}; session {session})",
            report.termination
        ));
    };
    let recovered = report.recovered.map(|reason| {
        format!("\n[it was interrupted ({reason}) and gave this in its last turn; it may be incomplete]")
    });
    let text = AgentOutputSpec::format_output(output);
    Ok(format!("The agent `{name}` completed its task{}:\n{text}", recovered.unwrap_or_default()))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(MAX_TASK_SUMMARY_CHARS).collect()
}
