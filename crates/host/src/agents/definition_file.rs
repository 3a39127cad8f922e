//! Parses an agent's definition from a Markdown file: fields in front matter, then the system
//! prompt.

use std::time::Duration;

use journeyman_agent::agents::{
    AgentDefinition, AgentInput, AgentOutputSpec, AgentTools, EditScope, InputKind,
};
use journeyman_protocol::Mode;
use serde_json::Value;

use super::file_error::AgentFileError;
use super::foreign_fields::{DISALLOWED_TOOLS_FIELD, PERMISSION_MODE_FIELD, translate_fields};
use super::front_matter::{Fields, split_front_matter};
use super::tools::{read_disallowed_tools, read_tools};
use crate::config::parse_duration;
use crate::text_files::MarkdownFile;

/// The fields that a definition may have.
const KNOWN_FIELDS: [&str; 17] = [
    "name",
    "description",
    "inputs",
    "output",
    "query",
    "tools",
    "mode",
    "edits",
    "model",
    "temperature",
    "top_p",
    "thinking_budget",
    "max_turns",
    "timeout",
    "grace",
    "max_tokens",
    "max_cost",
];
/// Fields of other products that change nothing here.
const IGNORED_FIELDS: [&str; 2] = ["color", "display_name"];
/// Fields of other products that are supported here, under this name or under one of ours.
const SUPPORTED_FOREIGN_FIELDS: [&str; 3] = ["kind", "timeout_mins", DISALLOWED_TOOLS_FIELD];
/// The name for the model of the session.
const INHERIT_MODEL: &str = "inherit";
/// Maximum minutes of an agent, as in the configuration: a year.
const MAX_MINUTES: f64 = 525_600.0;

/// The product that a definition is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefinitionDialect {
    /// This one.
    Own,
    /// Another one: without tools it has all, and `${…}` in its prompt is text.
    Other,
}

/// Reads and checks a definition. A definition without a name gets the file's stem. Parts of
/// another product's file that have no effect here are named in `ignored`; in ours they are errors.
pub(super) fn read_definition(
    text: &str,
    stem: &str,
    dialect: DefinitionDialect,
    ignored: &mut Vec<String>,
) -> Result<AgentDefinition, AgentFileError> {
    let definition = read_unchecked_definition(text, stem, dialect, ignored)?;
    definition.check().map_err(|error| match error {
        journeyman_agent::agents::DefinitionError::Field { field, reason, .. } => {
            AgentFileError::new(field, reason)
        }
        other => AgentFileError::new("definition", other.to_string()),
    })?;
    Ok(definition)
}

/// Reads a definition without checking what its fields say together: a built-in one is right, and
/// its JSON Schema would be compiled at each start.
pub(super) fn read_unchecked_definition(
    text: &str,
    stem: &str,
    dialect: DefinitionDialect,
    ignored: &mut Vec<String>,
) -> Result<AgentDefinition, AgentFileError> {
    let (mut fields, body) = match dialect {
        DefinitionDialect::Own => split_front_matter(text, MarkdownFile::parse)?,
        DefinitionDialect::Other => split_front_matter(text, MarkdownFile::parse_loosely)?,
    };
    if dialect == DefinitionDialect::Other {
        let known: Vec<&str> =
            KNOWN_FIELDS.into_iter().chain(IGNORED_FIELDS).chain(SUPPORTED_FOREIGN_FIELDS).collect();
        ignored.extend(translate_fields(&mut fields, &known)?);
    }
    let name = fields.take_string("name")?.unwrap_or_else(|| stem.to_owned());
    let description = fields.take_string("description")?;
    let description = description.ok_or_else(|| AgentFileError::new("description", "it is missing"))?;
    let mut definition = AgentDefinition::new(name, description);
    read_inputs_and_prompts(&mut definition, &mut fields, &body, dialect)?;
    read_permissions(&mut definition, &mut fields, dialect, ignored)?;
    read_model(&mut definition, &mut fields)?;
    read_limits(&mut definition, &mut fields)?;
    for name in IGNORED_FIELDS {
        fields.take(name);
    }
    if fields.take_string("kind")?.is_some_and(|kind| kind != "local") {
        return Err(AgentFileError::new("kind", "only local agents can be run"));
    }
    fields.reject_unknown(&KNOWN_FIELDS)?;
    Ok(definition)
}

fn read_inputs_and_prompts(
    definition: &mut AgentDefinition,
    fields: &mut Fields,
    body: &str,
    dialect: DefinitionDialect,
) -> Result<(), AgentFileError> {
    let body = body.trim();
    definition.system = match dialect {
        DefinitionDialect::Own => body.to_owned(),
        DefinitionDialect::Other => body.replace("${", "$${"),
    };
    definition.inputs = match fields.take("inputs") {
        None => {
            let description = "The task, in full.".to_owned();
            let (name, kind) = ("query".to_owned(), InputKind::String);
            vec![AgentInput { name, kind, description, required: true }]
        }
        Some(Value::Object(inputs)) => {
            inputs.into_iter().map(|(name, value)| read_input(name, value)).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(AgentFileError::new("inputs", "it has to be a list of `name: type`")),
    };
    if let Some(output) = fields.take("output") {
        definition.output = read_output(output)?;
    }
    definition.query = match (fields.take_string("query")?, definition.inputs.first()) {
        (Some(query), _) => query,
        (None, Some(first)) => format!("${{{}}}", first.name),
        (None, None) => "Begin.".to_owned(),
    };
    Ok(())
}

/// Reads an input: the name of a type, or an object with `type` or `schema`.
fn read_input(name: String, value: Value) -> Result<AgentInput, AgentFileError> {
    let wrong = |why: String| AgentFileError::new("inputs", format!("`{name}`: {why}"));
    let kind_of = |text: &str| text.parse::<InputKind>().map_err(|error| wrong(error.to_string()));
    let mut input = AgentInput {
        name: name.clone(),
        kind: InputKind::String,
        description: String::new(),
        required: true,
    };
    let mut object = match value {
        Value::String(kind) => return Ok(AgentInput { kind: kind_of(&kind)?, ..input }),
        Value::Object(object) => object,
        _ => return Err(wrong("it has to be a type, or an object with `type`".to_owned())),
    };
    input.kind = match (object.remove("type"), object.remove("schema")) {
        (Some(Value::String(kind)), None) => kind_of(&kind)?,
        (None, Some(schema)) => InputKind::Schema(schema),
        _ => return Err(wrong("it has to have `type`, the name of one, or `schema`".to_owned())),
    };
    match object.remove("description") {
        None => {}
        Some(Value::String(text)) => input.description = text,
        Some(_) => return Err(wrong("description has to be a text".to_owned())),
    }
    match object.remove("required") {
        None => {}
        Some(Value::Bool(required)) => input.required = required,
        Some(_) => return Err(wrong("required has to be true or false".to_owned())),
    }
    match object.keys().next() {
        None => Ok(input),
        Some(unknown) => Err(wrong(format!("there is no field `{unknown}`"))),
    }
}

fn read_output(value: Value) -> Result<AgentOutputSpec, AgentFileError> {
    let wrong = |why: &str| AgentFileError::new("output", why);
    let Value::Object(mut object) = value else { return Err(wrong("it has to have `name` and `schema`")) };
    let mut output = AgentOutputSpec::default();
    match object.remove("name") {
        Some(Value::String(name)) => output.name = name,
        None => {}
        Some(_) => return Err(wrong("name has to be a text")),
    }
    output.description = match object.remove("description") {
        Some(Value::String(text)) => text,
        None => String::new(),
        Some(_) => return Err(wrong("description has to be a text")),
    };
    if let Some(schema) = object.remove("schema") {
        output.schema = schema;
    }
    match object.keys().next() {
        None => Ok(output),
        Some(unknown) => Err(wrong(&format!("there is no field `{unknown}`"))),
    }
}

fn read_permissions(
    definition: &mut AgentDefinition,
    fields: &mut Fields,
    dialect: DefinitionDialect,
    ignored: &mut Vec<String>,
) -> Result<(), AgentFileError> {
    // A tool with restrictions that can't be expressed here is left out: the whole tool would be
    // too much.
    let left_out = (dialect == DefinitionDialect::Other).then_some(&mut *ignored);
    let tools = read_tools(fields.take("tools"), left_out)?;
    if dialect == DefinitionDialect::Other {
        definition.withheld_tools = read_disallowed_tools(fields.take(DISALLOWED_TOOLS_FIELD), ignored)?;
    }
    let mode = match fields.take_string("mode")? {
        Some(mode) => {
            let mode = mode.parse::<Mode>();
            Some(mode.map_err(|error| AgentFileError::new("mode", error.to_string()))?)
        }
        None => None,
    };
    // In Claude Code a wider mode grants permissions; here a definition can't.
    let mode = match fields.take_string(PERMISSION_MODE_FIELD)?.as_deref() {
        Some("plan") => Some(Mode::Plan),
        _ => mode,
    };
    definition.edits = match fields.take_string("edits")?.as_deref() {
        None | Some("all") => EditScope::All,
        Some("test_files") => EditScope::TestFiles,
        Some(_) => return Err(AgentFileError::new("edits", "it has to be all or test_files")),
    };
    let (tools, standard) = match (tools, dialect) {
        (Some(AgentTools::ReadOnly), _) | (None, DefinitionDialect::Own) => {
            (AgentTools::ReadOnly, Mode::Plan)
        }
        (Some(tools), _) => (tools, Mode::Auto),
        (None, DefinitionDialect::Other) => (AgentTools::All, Mode::Auto),
    };
    (definition.tools, definition.mode) = (tools, mode.unwrap_or(standard));
    Ok(())
}

fn read_model(definition: &mut AgentDefinition, fields: &mut Fields) -> Result<(), AgentFileError> {
    #[expect(clippy::cast_possible_truncation, reason = "sampling settings have two digits")]
    let narrow = |number: Option<f64>| number.map(|number| number as f32);
    definition.model = fields.take_string("model")?.filter(|model| model != INHERIT_MODEL);
    definition.temperature = narrow(fields.take_number("temperature", 0.0, 2.0)?);
    definition.top_p = narrow(fields.take_number("top_p", 0.0, 1.0)?);
    let budget = fields.take_count("thinking_budget")?;
    definition.thinking_budget = budget.map(|budget| u32::try_from(budget).unwrap_or(u32::MAX));
    Ok(())
}

fn read_limits(definition: &mut AgentDefinition, fields: &mut Fields) -> Result<(), AgentFileError> {
    let limits = &mut definition.limits;
    if let Some(turns) = fields.take_count("max_turns")? {
        limits.turns = u32::try_from(turns).unwrap_or(u32::MAX);
    }
    if let Some(time) = read_duration(fields, "timeout")? {
        limits.time = time;
    }
    if let Some(minutes) = fields.take_number("timeout_mins", 0.01, MAX_MINUTES)? {
        limits.time = Duration::from_secs_f64(minutes * 60.0);
    }
    if let Some(grace) = read_duration(fields, "grace")? {
        limits.grace = grace;
    }
    limits.tokens = fields.take_count("max_tokens")?;
    limits.usd = fields.take_number("max_cost", 0.000_001, 1_000_000.0)?;
    Ok(())
}

fn read_duration(fields: &mut Fields, name: &'static str) -> Result<Option<Duration>, AgentFileError> {
    let text = match fields.take(name) {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Number(seconds)) => seconds.to_string(),
        Some(_) => String::new(),
    };
    let wrong = || AgentFileError::new(name, "it has to be a time such as 90s, 10m or 1h");
    parse_duration(&text).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use journeyman_agent::tools::Registry;
    use serde_json::json;

    use super::*;

    fn own(front: &str) -> Result<AgentDefinition, AgentFileError> {
        read_definition(
            &format!("---\n{front}\n---\nYou help.\n"),
            "helper",
            DefinitionDialect::Own,
            &mut Vec::new(),
        )
    }

    #[test]
    fn a_whole_definition_is_read() {
        let front = "name: finder\ndescription: Finds.\ninputs:\n  what: string\n  where: {type: 'string[]', required: false, \
                     description: Places.}\n  how: {schema: {enum: [fast, slow]}}\noutput: {name: found, schema: {type: array}}\n\
                     query: 'Find ${what}.'\ntools: [read_file, Grep]\nmode: plan\ntemperature: 0.1\ntop_p: 0.9\n\
                     thinking_budget: 2000\nmax_turns: 5\ntimeout: 2m\ngrace: 30s\nmax_tokens: 1000\nmax_cost: 0.5";
        let read = own(front).unwrap();
        assert_eq!(
            (read.name.as_str(), read.query.as_str(), read.system.as_str()),
            ("finder", "Find ${what}.", "You help.")
        );
        assert_eq!(read.tools, AgentTools::Named(vec!["read_file".to_owned(), "search_text".to_owned()]));
        let kinds: Vec<&InputKind> = read.inputs.iter().map(|input| &input.kind).collect();
        assert_eq!(
            kinds,
            [
                &InputKind::String,
                &InputKind::Strings,
                &InputKind::Schema(json!({ "enum": ["fast", "slow"] }))
            ]
        );
        assert!(read.inputs[0].required && !read.inputs[1].required);
        assert_eq!((read.output.name.as_str(), &read.output.schema), ("found", &json!({ "type": "array" })));
        let limits = &read.limits;
        assert_eq!((limits.turns, limits.time.as_secs(), limits.grace.as_secs()), (5, 120, 30));
        assert_eq!((limits.tokens, limits.usd, read.thinking_budget), (Some(1_000), Some(0.5), Some(2_000)));
    }

    #[test]
    fn a_wrong_field_is_named() {
        own("description: Helps.").unwrap();
        for (front, field, reason) in [
            ("name: helper", "description", "missing"),
            ("description: x\nname: Big Name", "name", "lower-case"),
            ("description: x\ncolour: red", "front matter", "no field `colour`"),
            ("description: x\ntools: [launch]", "tools", "there is no tool `launch`"),
            ("description: x\ntools: 7", "tools", "read_only, all"),
            ("description: x\nmode: wild", "mode", "`wild` is not a mode"),
            ("description: x\nedits: some", "edits", "test_files"),
            ("description: x\ninputs: {when: date}", "inputs", "`date` is no type"),
            ("description: x\ninputs: {when: {type: string, requird: true}}", "inputs", "no field `requird`"),
            ("description: x\nquery: '${other}'", "query", "which is no input"),
            ("description: x\noutput: {schema: {type: date}}", "output", "no JSON Schema"),
            ("description: x\nmax_turns: 0", "max_turns", "above zero"),
            ("description: x\ntimeout: soon", "timeout", "such as 90s"),
            ("description: x\ntemperature: 9", "temperature", "from 0 to 2"),
            ("description: x\nkind: remote", "kind", "local"),
            ("description: [", "front matter", ""),
            ("description: x\ndescription: y", "front matter", ""),
            ("just text", "front matter", ""),
        ] {
            let error = own(front).unwrap_err();
            assert_eq!(error.field, field, "{front}: {error}");
            assert!(error.reason.contains(reason), "{front}: {error}");
        }
        for text in ["", "no front matter", "---\nname: x\n", "---"] {
            assert_eq!(
                read_definition(text, "x", DefinitionDialect::Own, &mut Vec::new()).unwrap_err().field,
                "front matter",
                "{text:?}"
            );
        }
    }

    #[test]
    fn hostile_front_matter_is_refused_in_time() {
        let deep = format!("description: {}x{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(own(&deep).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]";
        assert!(own(bomb).is_err());
        let long = format!("description: {}", "x".repeat(100_000));
        assert!(own(&long).unwrap_err().reason.contains("more than"));
    }

    #[test]
    fn agents_of_other_products_keep_their_prompts_and_have_all_tools() {
        let text = "---\nname: reviewer\ndescription: Reviews.\nmodel: sonnet\ncolor: blue\ntools: Read, Grep, Bash\n---\n\
                    Use ${HOME} and ${query}.";
        let read = read_definition(text, "x", DefinitionDialect::Other, &mut Vec::new()).unwrap();
        let named = ["read_file", "search_text", "run_command"].map(str::to_owned).to_vec();
        assert_eq!((&read.tools, read.mode, &read.model), (&AgentTools::Named(named), Mode::Auto, &None));
        let inputs = json!({ "query": "this" });
        let (role, query) = read.build_role(inputs.as_object().unwrap(), &Registry::with_builtin()).unwrap();
        assert!(role.system.starts_with("Use ${HOME} and ${query}."), "{}", role.system);
        assert_eq!(query, "this");
        let bare = read_definition(
            "---\ndescription: Helps.\ntimeout_mins: 3\n---\nHelp.",
            "helper",
            DefinitionDialect::Other,
            &mut Vec::new(),
        )
        .unwrap();
        assert_eq!(
            (bare.name.as_str(), &bare.tools, bare.limits.time.as_secs()),
            ("helper", &AgentTools::All, 180)
        );
    }

    /// A file as the `/agents` command of Claude Code writes it, with all that it may have.
    const CLAUDE: &str = "---\nname: code-reviewer\ndescription: Use this agent when code was written. Examples: \\n\\n\
                          <example>\\nContext: The user wrote a function.\\nuser: \"Is this right?\"\\nassistant: \"I'll \
                          ask.\"\\n</example>\ntools: Bash(git add:*, Read, x), Read, Edit, NotebookEdit, mcp_docs_find, \
                          TodoWrite\ndisallowedTools: Write, Bash(rm:*), NotebookEdit\nmodel: sonnet\nmaxTurns: 7\nskills: \
                          [a]\nmemory: user\nhooks: {PreToolUse: []}\neffort: high\ncolor: red\npermissionMode: \
                          acceptEdits\n---\nReview.";

    #[test]
    fn a_file_of_another_product_is_taken_as_far_as_it_holds_and_the_rest_is_named() {
        let mut ignored = Vec::new();
        let read = read_definition(CLAUDE, "x", DefinitionDialect::Other, &mut ignored).unwrap();
        assert!(
            read.description.starts_with("Use this agent when code was written. Examples: \n\n<example>\n")
        );
        assert!(read.description.ends_with("assistant: \"I'll ask.\"\n</example>"), "{}", read.description);
        assert_eq!((read.limits.turns, &read.model), (7, &None));
        assert_eq!(
            read.tools,
            AgentTools::Named(["read_file", "edit_file", "todo_write"].map(str::to_owned).to_vec()),
            "a part of a tool is not the whole"
        );
        for withheld in
            ["write_file", "apply_patch", "delete_file", "move_file", "run_command", "delegate_task"]
        {
            assert!(
                read.withheld_tools.iter().any(|tool| tool == withheld),
                "{withheld}: {:?}",
                read.withheld_tools
            );
        }
        assert!(!read.withheld_tools.contains(&"edit_file".to_owned()));
        assert_eq!(
            ignored,
            [
                "`permissionMode`",
                "`effort`",
                "`hooks`",
                "`memory`",
                "`skills`",
                "the tool `Bash(git add:*, Read, x)`",
                "the tool `NotebookEdit`",
                "the tool `mcp_docs_find`",
                "the pattern of `Bash(rm:*)` (the whole tool is withheld)",
            ]
        );
        let strict = read_definition(CLAUDE, "x", DefinitionDialect::Own, &mut Vec::new()).unwrap_err();
        assert!(strict.reason.contains("put the text of `description` in quotes"), "{strict}");
    }

    #[test]
    fn a_long_description_of_another_product_loses_its_examples() {
        let mut ignored = Vec::new();
        let examples = "<example>x</example> ".repeat(80);
        let text = format!("---\ndescription: Helps. {examples}\nmodel: some-model\n---\nHelp.");
        let read = read_definition(&text, "x", DefinitionDialect::Other, &mut ignored).unwrap();
        assert_eq!(read.description, "Helps.");
        assert_eq!(ignored, ["the end of `description`", "`model`"]);
        let text = format!("---\ndescription: {}\n---\nHelp.", "word ".repeat(400));
        let read = read_definition(&text, "x", DefinitionDialect::Other, &mut ignored).unwrap();
        assert!(
            read.description.len() <= 1_000 && read.description.ends_with("word"),
            "{}",
            read.description
        );
    }

    #[test]
    fn what_another_products_agent_may_not_use_it_does_not_get() {
        let text = "---\ndescription: Helps.\ndisallowedTools: Edit, Write, Bash\n---\nHelp.";
        let read = read_definition(text, "x", DefinitionDialect::Other, &mut Vec::new()).unwrap();
        let inputs = json!({ "query": "this" });
        let (role, _) = read.build_role(inputs.as_object().unwrap(), &Registry::with_builtin()).unwrap();
        let registry = Registry::with_builtin();
        assert!(role.tools.contains(&"read_file".to_owned()));
        for tool in &role.tools {
            assert!(
                registry.get(tool).unwrap().is_read_only() || tool == "stop_command",
                "{tool} changes something"
            );
        }
    }
}
