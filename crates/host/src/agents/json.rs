//! Agents as JSON, for programs.

use journeyman_agent::agents::AgentDefinition;
use serde_json::{Map, Value, json};

use super::loader::{LoadedAgent, LoadedAgents};
use super::tools::describe_tools;

impl LoadedAgents {
    /// Returns a short entry for each agent, and the files that were left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let agents: Vec<Value> = self.agents.iter().map(|agent| short_entry(agent).into()).collect();
        json!({ "agents": agents, "problems": self.problems })
    }
}

impl LoadedAgent {
    /// Returns the whole definition with its source.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let definition = &self.definition;
        let (output, limits) = (&definition.output, &definition.limits);
        let mut entry = short_entry(self);
        let mut add = |name: &str, value: Value| drop(entry.insert(name.to_owned(), value));
        add("inputs", definition.arguments_schema());
        add("output", json!({ "name": output.name, "schema": output.schema }));
        add("tools", json!(describe_tools(definition)));
        add("mode", json!(definition.mode));
        add("edits", json!(definition.edits));
        for (name, value) in sampling_fields(definition) {
            add(name, value);
        }
        add("model", json!(definition.model));
        add(
            "limits",
            json!({
                "turns": limits.turns,
                "seconds": limits.time.as_secs(),
                "grace_seconds": limits.grace.as_secs(),
                "tokens": limits.tokens,
                "usd": limits.usd,
            }),
        );
        add("system", json!(definition.system_for_display()));
        add("query", json!(definition.query));
        entry.into()
    }
}

fn short_entry(agent: &LoadedAgent) -> Map<String, Value> {
    let definition = &agent.definition;
    let fields = [
        ("name", json!(definition.name)),
        ("description", json!(definition.description)),
        ("source", json!(agent.source.to_string())),
        ("replaces", agent.replaces.iter().map(ToString::to_string).collect()),
        ("ignored", json!(agent.ignored)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the sampling fields that a definition sets, by name.
#[must_use]
pub fn sampling_fields(definition: &AgentDefinition) -> Vec<(&'static str, Value)> {
    // Through text, because 0.1 is no number of 64 bits.
    let number = |value: Option<f32>| value.and_then(|value| value.to_string().parse::<Value>().ok());
    let fields = [
        ("temperature", number(definition.temperature)),
        ("top_p", number(definition.top_p)),
        ("thinking_budget", definition.thinking_budget.map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
