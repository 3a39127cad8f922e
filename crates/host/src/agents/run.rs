//! Running an agent for a person.

use journeyman_agent::SessionHandle;
use journeyman_agent::agents::{AgentDefinition, AgentRole};
use journeyman_protocol::SessionId;
use serde_json::{Map, Value};

use crate::{HostError, SessionTemplate};

/// An agent with its inputs, ready to be started.
pub struct AgentRun {
    role: AgentRole,
    /// The first message.
    query: String,
    /// A sentence about tools that the definition names and the session doesn't offer.
    pub left_out: Option<String>,
}

impl AgentRun {
    /// Checks an agent's inputs, and that its tools exist.
    ///
    /// # Errors
    /// [`HostError::Usage`] for inputs that don't fit, and for a limit of cost where the price of
    /// the model isn't known.
    pub fn new(
        definition: &AgentDefinition,
        inputs: &Map<String, Value>,
        template: &SessionTemplate,
    ) -> Result<Self, HostError> {
        let tools = template.session_parts().registry;
        let (role, query) = definition.build_role(inputs, &tools).map_err(HostError::usage)?;
        if role.limits.usd.is_some() && template.settings.price.is_none() {
            let limit = format!("max_cost of the agent `{}`", role.name);
            return Err(HostError::unknown_price(&limit, &template.model.name()));
        }
        Ok(Self { role, query, left_out: definition.describe_left_out_tools(&tools) })
    }

    /// Starts the agent's session, and sends the first message.
    ///
    /// # Errors
    /// [`HostError`] where the session can't be started.
    pub async fn start(
        self,
        template: &mut SessionTemplate,
        id: SessionId,
    ) -> Result<SessionHandle, HostError> {
        let session = template.start_with_role(id, Some(self.role)).await?;
        session.send(self.query).await?;
        Ok(session)
    }
}

/// Parses inputs given as `name=value`; the task is the first input.
///
/// # Errors
/// [`HostError::Usage`] naming the input.
pub fn parse_inputs(
    definition: &AgentDefinition,
    task: Option<&str>,
    given: &[String],
) -> Result<Map<String, Value>, HostError> {
    let mut inputs = Map::new();
    for pair in given {
        let (name, text) = pair
            .split_once('=')
            .ok_or_else(|| HostError::usage(format_args!("--input `{pair}` has to be NAME=VALUE")))?;
        let Some(input) = definition.inputs.iter().find(|input| input.name == name) else {
            let known: Vec<&str> = definition.inputs.iter().map(|input| input.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(HostError::usage(format_args!(
                "the agent `{}` has no input `{name}`; there are: {known}",
                definition.name
            )));
        };
        let value = input.kind.parse_text(text);
        let value = value.map_err(|why| HostError::usage(format_args!("--input {name}: {why}")))?;
        if inputs.insert(name.to_owned(), value).is_some() {
            return Err(HostError::usage(format_args!("--input {name} is given twice")));
        }
    }
    if let (Some(task), Some(first)) = (task, definition.inputs.first()) {
        if inputs.contains_key(&first.name) {
            return Err(HostError::usage(format_args!(
                "the task is the input `{}`, which --input gives too",
                first.name
            )));
        }
        let value = first.kind.parse_text(task);
        let value = value.map_err(|why| HostError::usage(format_args!("the task: {why}")))?;
        inputs.insert(first.name.clone(), value);
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use journeyman_agent::agents::InputKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_task_is_the_first_input_and_others_are_named() {
        let agent = AgentDefinition::new("a", "b").input("what", InputKind::String, "").optional_input(
            "depth",
            InputKind::Integer,
            "",
        );
        let read = |task: Option<&str>, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|&pair| pair.to_owned()).collect();
            parse_inputs(&agent, task, &given).map(Value::Object).map_err(|error| error.to_string())
        };
        assert_eq!(read(Some("x=y"), &["depth=2"]), Ok(json!({ "depth": 2, "what": "x=y" })));
        assert_eq!(read(None, &["what=a=b"]), Ok(json!({ "what": "a=b" })));
        for (task, given, named) in [
            (None, ["what"], "NAME=VALUE"),
            (None, ["other=1"], "has no input `other`; there are: what, depth"),
            (None, ["depth=deep"], "--input depth"),
            (Some("x"), ["what=y"], "the task is the input `what`"),
        ] {
            let error = read(task, &given).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
