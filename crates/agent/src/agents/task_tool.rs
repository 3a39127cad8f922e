//! The tools that give tasks to agents.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_policy::suggest_tool;
use journeyman_protocol::{Effects, Termination, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value, json};

use super::definition::{AgentDefinition, TASK};
use super::delegate::{AgentEnd, Agents, DelegatedTask, DelegatingSession};
use super::role::AgentOutput;

/// Maximum characters of a task in a summary.
const MAX_SUMMARY_CHARS: usize = 80;

/// Returns the tools that give tasks to agents.
pub(crate) fn agent_tools(agents: &Agents, parent: &Arc<DelegatingSession>) -> Vec<Box<dyn Tool>> {
    if agents.definitions().is_empty() {
        return Vec::new();
    }
    if !agents.as_tools {
        return vec![Box::new(TaskTool { agents: agents.clone(), parent: Arc::clone(parent) })];
    }
    let tool = |place: usize| AgentTool { agents: agents.clone(), parent: Arc::clone(parent), place };
    (0..agents.definitions().len()).map(|place| Box::new(tool(place)) as Box<dyn Tool>).collect()
}

/// Gives a task to an agent by its name.
struct TaskTool {
    agents: Agents,
    parent: Arc<DelegatingSession>,
}

impl TaskTool {
    fn find(&self, input: &Value) -> Result<&AgentDefinition, String> {
        let name = input.get("agent").and_then(Value::as_str).unwrap_or_default();
        self.agents.get(name).ok_or_else(|| {
            let names = || self.agents.definitions().iter().map(|it| it.name.as_str());
            let nearest = suggest_tool(name, names());
            let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            let all = names().collect::<Vec<_>>().join(", ");
            format!("there is no such agent{hint} There are: {all}")
        })
    }
}

impl Tool for TaskTool {
    fn spec(&self) -> ToolSpec {
        let mut description = String::from(
            "Gives a task to an agent that sees nothing of this conversation. Several at once run in parallel. \
             Agents:",
        );
        for agent in self.agents.definitions() {
            description.push_str(&format!("\n- {}: {}", agent.name, agent.description.trim()));
        }
        let names: Vec<&str> = self.agents.definitions().iter().map(|it| it.name.as_str()).collect();
        ToolSpec {
            name: TASK.to_owned(),
            description,
            input_schema: json!({
                "type": "object",
                "properties": {
                    "agent": { "type": "string", "enum": names },
                    "prompt": { "type": "string" },
                    "inputs": { "type": "object" },
                },
                "required": ["agent", "prompt"],
            }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        // Giving a task has none: each call of the agent is judged for itself.
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        let text = |key| input.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("{TASK} {}: {}", text("agent"), first_line(text("prompt")))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn starts_agents(&self) -> bool {
        true
    }

    fn limit(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let definition = match self.find(&input) {
                Ok(definition) => definition,
                Err(why) => return Ok(ToolOutput::failure(format!("not started: {why}"))),
            };
            let more = input.get("inputs").and_then(Value::as_object).cloned().unwrap_or_default();
            let inputs = definition.arguments(input.get("prompt").and_then(Value::as_str), more);
            Ok(delegate(&self.agents, &self.parent, definition, inputs, context).await)
        }
        .boxed()
    }
}

/// Gives a task to one agent, whose inputs are the arguments.
struct AgentTool {
    agents: Agents,
    parent: Arc<DelegatingSession>,
    place: usize,
}

impl AgentTool {
    fn definition(&self) -> Option<&AgentDefinition> {
        self.agents.definitions().get(self.place)
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> ToolSpec {
        let (name, description, input_schema) = match self.definition() {
            Some(agent) => (agent.name.clone(), agent.description.clone(), agent.arguments_schema()),
            None => (String::new(), String::new(), json!({ "type": "object" })),
        };
        ToolSpec { name, description, input_schema }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        let name = self.definition().map(|agent| agent.name.as_str()).unwrap_or_default();
        let texts = input.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
        format!("{name}: {}", first_line(&texts.collect::<Vec<_>>().join(", ")))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn starts_agents(&self) -> bool {
        true
    }

    fn limit(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Some(definition) = self.definition() else { return Err(ToolError::Cancelled) };
            let inputs = input.as_object().cloned().unwrap_or_default();
            Ok(delegate(&self.agents, &self.parent, definition, inputs, context).await)
        }
        .boxed()
    }
}

async fn delegate(
    agents: &Agents,
    parent: &DelegatingSession,
    definition: &AgentDefinition,
    inputs: Map<String, Value>,
    context: &ToolContext,
) -> ToolOutput {
    match agents.delegate.run(DelegatedTask { parent, agents, definition, inputs, context }).await {
        Ok(end) => describe_end(&end),
        Err(why) => ToolOutput::failure(format!("not started: {why}")),
    }
}

/// Returns the end of an agent as the result of the call that started it.
fn describe_end(end: &AgentEnd) -> ToolOutput {
    let AgentEnd { session, report, summary } = end;
    let name = &report.name;
    let Some(output) = report.output.as_ref().filter(|_| report.termination == Termination::Goal) else {
        return ToolOutput::failure(format!(
            "The agent `{name}` did not complete its task: {} ({summary}; session {session})",
            report.termination
        ));
    };
    let recovered = report.recovered.map(|reason| {
        format!("\n[it was interrupted ({reason}) and gave this in its last turn; it may be incomplete]")
    });
    let text = AgentOutput::to_text(output);
    ToolOutput::text(format!(
        "The agent `{name}` completed its task{}:\n{text}",
        recovered.unwrap_or_default()
    ))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(MAX_SUMMARY_CHARS).collect()
}
