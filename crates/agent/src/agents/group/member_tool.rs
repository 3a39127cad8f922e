//! The tool that starts a member of a group.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RunOutcome, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::channel::GroupChannel;
use super::membership::Membership;
use super::spec::{GroupMember, GroupReminder};
use crate::agents::delegation::{DelegatedTask, DelegatingSession};
use crate::agents::task_tool::describe_end;

/// The name of the tool.
pub(super) const GROUP_MEMBER: &str = "group_member";

/// Starts a member of a group and waits for its end. Only a
/// [`GroupDirector`](super::GroupDirector) calls it.
pub(crate) struct GroupMemberTool {
    parent: Arc<DelegatingSession>,
    channel: GroupChannel,
}

#[derive(Deserialize)]
struct MemberArguments {
    name: String,
    agent: String,
    task: String,
    #[serde(default)]
    reminders: Vec<GroupReminder>,
}

impl GroupMemberTool {
    pub(crate) fn new(parent: &Arc<DelegatingSession>) -> Self {
        Self { parent: Arc::clone(parent), channel: GroupChannel::default() }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, String> {
        let arguments = serde_json::from_value(input);
        let MemberArguments { name, agent, task, reminders } =
            arguments.map_err(|error: serde_json::Error| error.to_string())?;
        let member = GroupMember { name, agent, task };
        let agents = &self.parent.agents;
        let known = || agents.definitions().iter().map(|it| it.name.as_str());
        let definition = agents.get(&member.agent).ok_or_else(|| {
            format!(
                "there is no agent `{}`; there are {}",
                member.agent,
                known().collect::<Vec<_>>().join(", ")
            )
        })?;
        member.check_name_unique(known())?;
        let inputs = definition.arguments(Some(&member.task), Map::new());
        let membership = Membership::new(&self.channel, member.name, reminders);
        let task = DelegatedTask {
            parent: &self.parent,
            definition,
            inputs,
            context: context.into(),
            membership: Some(membership),
        };
        let end = self.parent.agents.delegate.run(task).await?;
        Ok(describe_end(&end))
    }
}

impl Tool for GroupMemberTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: GROUP_MEMBER.to_owned(),
            description: "Starts a member of a group of agents.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "agent": { "type": "string" },
                    "task": { "type": "string" },
                    "reminders": { "type": "array", "items": { "type": "object" } },
                },
                "required": ["name", "agent", "task"],
            }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        // Each call of the agent is judged for itself.
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        let text = |key| input.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("{} ({})", text("name"), text("agent"))
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
            let ran = self.run(context, input).await;
            Ok(ran.unwrap_or_else(|why| {
                self.parent.shared.delegated.add_failure(RunOutcome::Error);
                ToolOutput::failure(format!("not started: {why}"))
            }))
        }
        .boxed()
    }
}
