//! The definition of an agent: its purpose, inputs, output, tools and limits.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use journeyman_policy::{MAIN_AGENT, check_tool_name};
use journeyman_protocol::Mode;
use journeyman_tools::Registry;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::input::{AgentInput, InputError, InputKind, check_input, object_schema, template_values};
use super::role::{AgentLimits, AgentOutputSpec, AgentRole, EditScope};
use super::schema::{SchemaError, check_schema};
use super::template;

/// The name of the agent that plans tasks.
pub const PLANNER: &str = "planner";
/// The name of the tool that gives a task to an agent by its name.
pub(crate) const TASK_TOOL: &str = "task";
/// The tools that a session adds to those that it is made with.
const SESSION_ADDED_TOOLS: [&str; 4] = [TASK_TOOL, "complete_task", "todo_read", "todo_write"];
/// The rules that end every agent's system prompt.
const AGENT_RULES: &str = include_str!("../../prompts/agent_rules.md");
/// The query of a definition without one.
const DEFAULT_QUERY: &str = "Begin.";
/// Maximum characters of a name, which is an argument of a tool.
const MAX_AGENT_NAME_CHARS: usize = 60;
/// Maximum characters of a description: every request of a session that may delegate has it.
pub const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Maximum number of inputs.
const MAX_INPUTS: usize = 32;

/// The tools of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AgentTools {
    /// The read-only tools of the session that ask no person.
    #[default]
    ReadOnly,
    /// All tools of the session that neither ask a person nor start agents.
    All,
    /// The named tools. A tool that the session doesn't offer to agents is left out; an unknown
    /// name is an error.
    Named(Vec<String>),
}

/// A definition that can't be used, or a call of an agent that doesn't fit its definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A field of the definition is wrong.
    #[error("agent `{agent}`: {field}: {reason}")]
    Field {
        /// The name of the agent, or a part of a wrong name.
        agent: String,
        /// The field.
        field: &'static str,
        /// The reason.
        reason: String,
    },
    /// The inputs don't fit.
    #[error("agent `{agent}`: {error}")]
    Inputs {
        /// The name of the agent.
        agent: String,
        /// The reason.
        error: InputError,
    },
    /// The session has no such tool.
    #[error("agent `{agent}`: tools: there is no tool `{tool}` here; there are {}", known.join(", "))]
    UnknownTool {
        /// The name of the agent.
        agent: String,
        /// The tool.
        tool: String,
        /// The tools that the session has.
        known: Vec<String>,
    },
}

/// An agent: a session with a prompt, inputs, an output and limits of its own.
///
/// ```
/// use journeyman_agent::agents::{AgentDefinition, InputKind};
///
/// let agent = AgentDefinition::new("counter", "Counts the files of a kind.")
///     .input("kind", InputKind::String, "The ending of their names.")
///     .system("You count files.")
///     .query("Count the files that end with ${kind}.")
///     .output::<u64>("count", "Their number.");
/// assert!(agent.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// The name: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// One or two sentences for the model that may delegate to the agent.
    pub description: String,
    /// The inputs, in order. The first takes the prompt of a `task` call.
    pub inputs: Vec<AgentInput>,
    /// The output.
    pub output: AgentOutputSpec,
    /// The template of the system prompt.
    pub system: String,
    /// The template of the first message.
    pub query: String,
    /// The model, as `provider/name`; absent to use that of the session.
    pub model: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// Maximum thinking tokens.
    pub thinking_budget: Option<u32>,
    /// The limits.
    pub limits: AgentLimits,
    /// The tools.
    pub tools: AgentTools,
    /// Tools that the agent doesn't get, whatever `tools` says.
    pub withheld_tools: Vec<String>,
    /// The widest permission mode; the session's own is another limit.
    pub mode: Mode,
    /// The files that tools may change.
    pub edits: EditScope,
}

impl AgentDefinition {
    /// Creates a definition of an agent with read-only tools and a text as output.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            inputs: Vec::new(),
            output: AgentOutputSpec::default(),
            system: String::new(),
            query: DEFAULT_QUERY.to_owned(),
            model: None,
            temperature: None,
            top_p: None,
            thinking_budget: None,
            limits: AgentLimits::default(),
            tools: AgentTools::default(),
            withheld_tools: Vec::new(),
            mode: Mode::Plan,
            edits: EditScope::All,
        }
    }

    /// Adds an input that has to be given.
    #[must_use]
    pub fn input(self, name: &str, kind: InputKind, description: &str) -> Self {
        self.with_input(name, kind, description, true)
    }

    /// Adds an input that may be left out; templates then have nothing in its place.
    #[must_use]
    pub fn optional_input(self, name: &str, kind: InputKind, description: &str) -> Self {
        self.with_input(name, kind, description, false)
    }

    fn with_input(mut self, name: &str, kind: InputKind, description: &str, required: bool) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.inputs.push(AgentInput { name, kind, description, required });
        self
    }

    /// Sets the template of the system prompt.
    #[must_use]
    pub fn system(mut self, template: impl Into<String>) -> Self {
        self.system = template.into();
        self
    }

    /// Sets the template of the first message.
    #[must_use]
    pub fn query(mut self, template: impl Into<String>) -> Self {
        self.query = template.into();
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the tools, and the widest permission mode of their calls.
    #[must_use]
    pub fn tools(mut self, tools: AgentTools, mode: Mode) -> Self {
        (self.tools, self.mode) = (tools, mode);
        self
    }

    /// Sets the output to a type; its schema is that of `T`.
    #[must_use]
    pub fn output<T: JsonSchema>(mut self, name: &str, description: &str) -> TypedAgent<T> {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        self.output = AgentOutputSpec { name: name.to_owned(), description: description.to_owned(), schema };
        TypedAgent { definition: self, output: PhantomData }
    }

    /// Checks that the definition can be used.
    ///
    /// # Errors
    /// [`DefinitionError::Field`] for the first wrong field.
    pub fn check(&self) -> Result<(), DefinitionError> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let count = self.name.chars().count();
        if count == 0 || count > MAX_AGENT_NAME_CHARS || !self.name.chars().all(is_name) {
            let what =
                format!("it needs 1 to {MAX_AGENT_NAME_CHARS} lower-case letters, digits, `-` and `_`");
            return Err(self.field_error("name", what));
        }
        if self.name == MAIN_AGENT {
            return Err(self.field_error("name", format!("rules call the session itself `{MAIN_AGENT}`")));
        }
        let description = self.description.trim().chars().count();
        if description == 0 || description > MAX_DESCRIPTION_CHARS {
            return Err(
                self.field_error("description", format!("it needs 1 to {MAX_DESCRIPTION_CHARS} characters"))
            );
        }
        if self.system.trim().is_empty() {
            return Err(self.field_error("system prompt", "it is empty".to_owned()));
        }
        if self.inputs.len() > MAX_INPUTS {
            return Err(self.field_error("inputs", format!("at most {MAX_INPUTS}")));
        }
        for (place, input) in self.inputs.iter().enumerate() {
            check_input(input).map_err(|why| self.field_error("inputs", why))?;
            if self.inputs.iter().take(place).any(|other| other.name == input.name) {
                return Err(self.field_error("inputs", format!("`{}` is there twice", input.name)));
            }
        }
        for (field, text) in [("system prompt", &self.system), ("query", &self.query)] {
            let unknown =
                template::placeholder_names(text).find(|name| self.inputs.iter().all(|it| it.name != **name));
            if let Some(name) = unknown {
                return Err(self.field_error(field, format!("it names `${{{name}}}`, which is no input")));
            }
        }
        if self.output.name.trim().is_empty() {
            return Err(self.field_error("output", "it has no name".to_owned()));
        }
        check_schema(&self.output.schema).map_err(|SchemaError(why)| self.field_error("output", why))?;
        let limits = &self.limits;
        if limits.turns == 0 || limits.time.is_zero() || limits.grace.is_zero() {
            return Err(self.field_error("limits", "turns, time and grace are more than zero".to_owned()));
        }
        if limits.usd.is_some_and(|usd| usd.is_nan() || usd <= 0.0) {
            return Err(self.field_error("limits", "usd is more than zero".to_owned()));
        }
        Ok(())
    }

    fn field_error(&self, field: &'static str, reason: String) -> DefinitionError {
        let agent =
            self.name.chars().take(MAX_AGENT_NAME_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c });
        DefinitionError::Field { agent: agent.collect(), field, reason }
    }

    /// Returns the JSON Schema of the arguments of the tool that the agent wraps into.
    #[must_use]
    pub fn arguments_schema(&self) -> Value {
        object_schema(&self.inputs)
    }

    /// Returns the arguments of the agent for a prompt, which is the first input, and further
    /// inputs.
    pub(crate) fn arguments(&self, prompt: Option<&str>, more: Map<String, Value>) -> Map<String, Value> {
        let mut arguments = more;
        if let (Some(prompt), Some(first)) = (prompt, self.inputs.first())
            && !arguments.contains_key(&first.name)
        {
            let prompt = match &first.kind {
                InputKind::String => Value::String(prompt.to_owned()),
                kind => kind.parse_text(prompt).unwrap_or_else(|_| Value::String(prompt.to_owned())),
            };
            arguments.insert(first.name.clone(), prompt);
        }
        arguments
    }

    /// Returns the role of a session that a person starts, and its first message.
    ///
    /// # Errors
    /// [`DefinitionError`] for inputs and tools that don't fit.
    pub fn build_role(
        &self,
        inputs: &Map<String, Value>,
        registry: &Registry,
    ) -> Result<(AgentRole, String), DefinitionError> {
        self.check()?;
        let values = template_values(&self.inputs, inputs).map_err(|error| self.inputs_error(error))?;
        let expand =
            |text: &str| template::expand(text, &values).map_err(|error| self.inputs_error(error.into()));
        let system = format!("{}\n\n{}", expand(&self.system)?.trim(), AGENT_RULES.trim());
        let query = expand(&self.query)?;
        let role = AgentRole {
            name: self.name.clone(),
            definition: None,
            path: Vec::new(),
            parent: None,
            inputs: inputs.clone(),
            system,
            output: self.output.clone(),
            tools: self.select_tools(registry)?,
            mode: self.mode,
            edits: self.edits,
            limits: self.limits.clone(),
            temperature: self.temperature,
            top_p: self.top_p,
            thinking_budget: self.thinking_budget,
        };
        Ok((role, query))
    }

    /// Returns the system prompt for people: expanded if it has no placeholders, else the template.
    #[must_use]
    pub fn system_for_display(&self) -> String {
        match template::placeholder_names(&self.system).next() {
            Some(_) => self.system.clone(),
            None => template::expand(&self.system, &BTreeMap::new()).unwrap_or_else(|_| self.system.clone()),
        }
    }

    fn inputs_error(&self, error: InputError) -> DefinitionError {
        DefinitionError::Inputs { agent: self.name.clone(), error }
    }

    /// Returns the names of the tools that the agent gets of a registry.
    fn select_tools(&self, registry: &Registry) -> Result<Vec<String>, DefinitionError> {
        let specs = registry.specs();
        let known = || specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>();
        let is_offered = |name: &String, read_only: bool| {
            registry.get(name).is_ok_and(|tool| {
                !tool.asks_person() && !tool.starts_agents() && (!read_only || tool.is_read_only())
            })
        };
        let mut selected: Vec<String> = match &self.tools {
            AgentTools::ReadOnly => known().into_iter().filter(|name| is_offered(name, true)).collect(),
            AgentTools::All => known().into_iter().filter(|name| is_offered(name, false)).collect(),
            AgentTools::Named(names) => {
                let is_unknown =
                    |name: &&String| check_tool_name(name, &|name| registry.get(name).is_ok()).is_err();
                if let Some(tool) = names.iter().find(is_unknown) {
                    let (agent, tool) = (self.name.clone(), tool.clone());
                    return Err(DefinitionError::UnknownTool { agent, tool, known: known() });
                }
                names.iter().filter(|name| is_selectable(name, registry)).cloned().collect()
            }
        };
        selected.retain(|name| !self.withheld_tools.contains(name));
        Ok(selected)
    }

    /// Says which of the named tools a session with these tools doesn't offer to agents; `None` if
    /// it offers all.
    #[must_use]
    pub fn describe_left_out_tools(&self, registry: &Registry) -> Option<String> {
        let AgentTools::Named(names) = &self.tools else { return None };
        let missing: Vec<String> = names
            .iter()
            .filter(|name| !is_selectable(name, registry))
            .map(|name| format!("`{name}`"))
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "the agent `{}` works without {}: this session doesn't offer that to agents",
                self.name,
                missing.join(", ")
            )
        })
    }
}

/// Returns true if an agent gets a tool that its definition names: a tool of the session that asks
/// no person, or one of [`SESSION_ADDED_TOOLS`].
fn is_selectable(name: &str, registry: &Registry) -> bool {
    SESSION_ADDED_TOOLS.contains(&name) || registry.get(name).is_ok_and(|tool| !tool.asks_person())
}

/// A definition whose output is of a type.
#[derive(Debug, Clone)]
pub struct TypedAgent<T> {
    definition: AgentDefinition,
    output: PhantomData<fn() -> T>,
}

impl<T> std::ops::Deref for TypedAgent<T> {
    type Target = AgentDefinition;

    fn deref(&self) -> &AgentDefinition {
        &self.definition
    }
}

impl<T: serde::de::DeserializeOwned> TypedAgent<T> {
    /// Returns the definition.
    #[must_use]
    pub fn into_definition(self) -> AgentDefinition {
        self.definition
    }

    /// Reads the output in the report of a session with this definition; `None` if it didn't reach
    /// its goal.
    ///
    /// # Errors
    /// The output has another form than `T` reads.
    pub fn read_output(
        &self,
        report: &journeyman_protocol::RunReport,
    ) -> Result<Option<T>, serde_json::Error> {
        let output = report.agent.as_ref().and_then(|agent| agent.output.clone());
        output.map(serde_json::from_value).transpose()
    }
}

/// Returns the schema of the arguments of `complete_task`.
pub(crate) fn complete_task_schema(output: &AgentOutputSpec) -> Value {
    let mut schema = output.schema.clone();
    if let Some(schema) = schema.as_object_mut()
        && !output.description.is_empty()
    {
        schema.insert("description".to_owned(), Value::String(output.description.clone()));
    }
    let name = output.name.clone();
    json!({ "type": "object", "properties": { name.clone(): schema }, "required": [name] })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn counter() -> AgentDefinition {
        AgentDefinition::new("counter", "Counts files.")
            .input("kind", InputKind::String, "The ending.")
            .optional_input("hint", InputKind::String, "")
            .system("You count ${kind} files. ${hint}")
            .query("Count ${kind}.")
    }

    #[test]
    fn a_wrong_definition_names_the_field() {
        counter().check().unwrap();
        let with = |change: &dyn Fn(&mut AgentDefinition)| {
            let mut definition = counter();
            change(&mut definition);
            definition.check().unwrap_err().to_string()
        };
        for (error, named) in [
            (with(&|it| it.name = "Count Er".to_owned()), ": name: "),
            (with(&|it| it.description = " ".to_owned()), ": description: "),
            (with(&|it| it.system = String::new()), ": system prompt: "),
            (with(&|it| it.query = "${other}".to_owned()), ": query: it names `${other}`"),
            (with(&|it| it.inputs.push(it.inputs[0].clone())), ": inputs: `kind` is there twice"),
            (with(&|it| it.output.schema = json!({ "type": "date" })), ": output: "),
            (with(&|it| it.limits.turns = 0), ": limits: "),
            (with(&|it| it.limits.usd = Some(f64::NAN)), ": limits: "),
        ] {
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_role_has_the_inputs_in_its_prompts_and_only_tools_that_read() {
        let inputs = json!({ "kind": "${hint}" });
        let registry = Registry::with_builtin();
        let (role, query) = counter().build_role(inputs.as_object().unwrap(), &registry).unwrap();
        assert!(role.system.starts_with("You count ${hint} files."), "{}", role.system);
        assert!(role.system.contains("complete_task"));
        assert_eq!(query, "Count ${hint}.");
        assert!(role.tools.contains(&"read_file".to_owned()));
        assert!(!role.tools.iter().any(|tool| ["write_file", "run_command"].contains(&tool.as_str())));
        let missing = counter().build_role(&Map::new(), &registry).unwrap_err().to_string();
        assert_eq!(missing, "agent `counter`: missing inputs: kind; available inputs: none");
    }

    #[test]
    fn a_tool_that_the_session_does_not_offer_is_left_out_and_an_unknown_one_is_an_error() {
        let inputs = json!({ "kind": "rs" });
        let registry = Registry::with_builtin();
        let elsewhere = ["read_file", "todo_write", "web_search", "ask_user", "mcp__docs__find"];
        let named = AgentTools::Named(elsewhere.map(str::to_owned).to_vec());
        let lenient = counter().tools(named, Mode::Plan);
        let (role, _) = lenient.build_role(inputs.as_object().unwrap(), &registry).unwrap();
        assert_eq!(role.tools, ["read_file", "todo_write"]);
        let said = lenient.describe_left_out_tools(&registry).unwrap();
        assert!(said.contains("works without `web_search`, `ask_user`, `mcp__docs__find`:"), "{said}");
        assert_eq!(counter().describe_left_out_tools(&registry), None);
        let named = AgentTools::Named(vec!["read_file".to_owned(), "launch".to_owned()]);
        let wrong = counter()
            .tools(named, Mode::Plan)
            .build_role(inputs.as_object().unwrap(), &Registry::with_builtin());
        assert!(matches!(wrong, Err(DefinitionError::UnknownTool { tool, .. }) if tool == "launch"));
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Count {
        /// The number of files.
        files: u64,
    }

    #[test]
    fn the_schema_of_a_typed_output_is_that_of_the_type() {
        let typed = counter().output::<Count>("count", "The count.");
        assert_eq!(
            typed.definition.output.output_from_arguments(&json!({ "count": { "files": 3 } })),
            Ok(json!({ "files": 3 }))
        );
        assert!(
            typed.definition.output.output_from_arguments(&json!({ "count": { "files": "x" } })).is_err()
        );
        let schema = complete_task_schema(&typed.definition.output);
        assert_eq!(schema["required"], json!(["count"]));
        assert_eq!(schema["properties"]["count"]["description"], "The count.");
    }
}
