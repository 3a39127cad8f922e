//! The role of a session that is an agent: the part of the definition that its log stores.

use std::time::Duration;

use journeyman_policy::CallingAgent;
use journeyman_protocol::{CallId, Mode, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::input::format_value;
use super::schema::{SchemaError, find_violations};

/// Default maximum number of an agent's requests to the model.
pub const DEFAULT_MAX_AGENT_TURNS: u32 = 30;
/// Default maximum wall time of an agent.
pub const DEFAULT_MAX_AGENT_TIME: Duration = Duration::from_secs(10 * 60);
/// Default time of the last turn after a limit: one reply of a slow model.
pub const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(60);

/// The limits of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// Maximum number of requests to the model.
    pub turns: u32,
    /// Maximum wall time, without the time in which a person is asked.
    pub time: Duration,
    /// Time of the last turn, after a limit was reached.
    pub grace: Duration,
    /// Maximum tokens of all requests and replies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost limit in US dollars, where the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            turns: DEFAULT_MAX_AGENT_TURNS,
            time: DEFAULT_MAX_AGENT_TIME,
            grace: DEFAULT_GRACE_PERIOD,
            tokens: None,
            usd: None,
        }
    }
}

/// The name, meaning and schema of the output that an agent has to give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOutputSpec {
    /// The name of the argument of `complete_task` that takes the output.
    pub name: String,
    /// The meaning of the output, for the model.
    pub description: String,
    /// The JSON Schema of the output.
    pub schema: Value,
}

impl Default for AgentOutputSpec {
    fn default() -> Self {
        Self {
            name: "result".to_owned(),
            description: "Your findings, or what you did and what remains, in full.".to_owned(),
            schema: json!({ "type": "string", "minLength": 1 }),
        }
    }
}

impl AgentOutputSpec {
    /// Returns the output from the arguments of `complete_task`, or a description of the error. A
    /// blank output counts as missing.
    pub(crate) fn output_from_arguments(&self, arguments: &Value) -> Result<Value, String> {
        let name = &self.name;
        let output = arguments.get(name).filter(|output| !output.is_null());
        let is_blank = |output: &Value| output.as_str().is_some_and(|text| text.trim().is_empty());
        let Some(output) = output.filter(|output| !is_blank(output)) else {
            return Err(format!("the argument `{name}` is missing: it has to hold your output"));
        };
        match find_violations(&self.schema, output) {
            Ok(wrong) if wrong.is_empty() => Ok(output.clone()),
            Ok(wrong) => Err(format!("`{name}` is not as its schema says: {}", wrong.join("; "))),
            Err(SchemaError(why)) => Err(why),
        }
    }

    /// Returns an output as text for people and models.
    #[must_use]
    pub fn format_output(output: &Value) -> String {
        format_value(output)
    }
}

/// The files that an agent's edit tools may change, in order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditScope {
    /// All files that the permissions allow.
    #[default]
    All,
    /// Only files of tests.
    TestFiles,
}

/// The session that started an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentParent {
    /// The session.
    pub session: SessionId,
    /// The call that gave the task.
    pub call: CallId,
    /// The session that a person started; changes of files are journaled for it.
    pub root: SessionId,
}

/// A definition with its inputs, as one session works by it. It is the first entry of that
/// session's log, so that a session that is opened again needs no definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRole {
    /// The name of the definition.
    pub name: String,
    /// The name of the definition, if a group gave the agent another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The names of the agents from the root session's agent down to this one; empty for an agent
    /// that a person started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The session that gave the task; absent for an agent that a person started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentParent>,
    /// The inputs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// The system prompt, with the inputs in it.
    pub system: String,
    /// The output.
    pub output: AgentOutputSpec,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// The widest permission mode.
    pub mode: Mode,
    /// The files that tools may change.
    #[serde(default)]
    pub edits: EditScope,
    /// The limits.
    pub limits: AgentLimits,
    /// Sampling temperature; absent to use that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Nucleus sampling; absent to use that of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Maximum thinking tokens; absent to use the setting of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
}

impl AgentRole {
    /// Returns the task as it was given: the first input.
    pub(crate) fn task(&self) -> String {
        self.inputs.values().next().map(format_value).unwrap_or_default()
    }

    /// Returns the names by which permission rules match the agent.
    pub(crate) fn calling_agent(&self) -> CallingAgent<'_> {
        match &self.definition {
            Some(definition) => CallingAgent { definition, member: Some(&self.name) },
            None => self.name.as_str().into(),
        }
    }

    /// Returns a prefix that keeps the ids of this session's calls apart from those of its parents,
    /// whose subscribers see both.
    pub(crate) fn call_id_prefix<'a>(&self, session: &'a SessionId) -> Option<&'a str> {
        self.parent.as_ref()?;
        let id = session.as_str();
        // The random part of the id.
        id.get(id.len().saturating_sub(CALL_ID_PREFIX_CHARS)..)
    }
}

/// Characters of a session id in the ids of an agent's calls: 30 bits of randomness.
const CALL_ID_PREFIX_CHARS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_held_against_its_schema() {
        let schema =
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } });
        let typed = AgentOutputSpec { name: "report".to_owned(), description: String::new(), schema };
        assert_eq!(typed.output_from_arguments(&json!({ "report": { "a": "x" } })), Ok(json!({ "a": "x" })));
        for (arguments, named) in [
            (json!({}), "`report` is missing"),
            (json!({ "report": null }), "`report` is missing"),
            (json!({ "report": { "a": 1 } }), "`/a`"),
            (json!({ "report": {} }), "\"a\""),
        ] {
            let wrong = typed.output_from_arguments(&arguments).unwrap_err();
            assert!(wrong.contains(named), "{wrong}");
        }
        let untyped = AgentOutputSpec::default();
        assert_eq!(untyped.output_from_arguments(&json!({ "result": "found" })), Ok(json!("found")));
        assert!(untyped.output_from_arguments(&json!({ "result": "  " })).is_err());
    }
}
