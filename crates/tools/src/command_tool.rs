//! Tools that the user defines as commands: a template whose placeholders are filled with typed
//! arguments.
//!
//! No shell reads an argument: each element of the template stays one element of the command,
//! whatever it is filled with. The command is judged, confined and recorded as one of `run_command`
//! is.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use journeyman_workspace::Workspace;
use serde_json::{Map, Value, json};

use crate::arguments::fit_to_schema;
use crate::excerpt::to_one_line;
use crate::run_command::RunCommand;
use crate::schema::type_signature;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Bounds of a definition: a model reads all of it with every request.
const MAX_ARGUMENTS: usize = 16;
const MAX_TEMPLATE_ELEMENTS: usize = 64;
const MAX_DEFINITION_TEXT_BYTES: usize = 500;
/// Maximum bytes of one filled element, and maximum number of elements that one list fills.
const MAX_VALUE_BYTES: usize = 16 * 1024;
const MAX_LIST_ITEMS: usize = 200;
/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 40;
/// Maximum bytes of the command in a summary.
const MAX_SUMMARY_BYTES: usize = 160;

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    /// Text.
    Text,
    /// A whole number, 0 or more.
    Integer,
    /// True or false.
    Boolean,
    /// A file of the project that the command reads.
    ReadPath,
    /// A file of the project that the command writes.
    WritePath,
    /// A list of texts, each of which fills an element of its own.
    TextList,
}

/// An argument of a command tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArgument {
    /// Its type.
    pub kind: ArgumentType,
    /// Its meaning for the model; may be empty.
    pub description: String,
    /// True if a call may omit the argument, together with the elements that it fills.
    pub optional: bool,
}

/// A command tool, as a configuration defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDefinition {
    /// The name that models call: lower-case letters, digits and `_`.
    pub name: String,
    /// The description, for the model.
    pub description: String,
    /// The program and its arguments; `{name}` stands for an argument of the call.
    pub run: Vec<String>,
    /// The arguments by name.
    pub arguments: BTreeMap<String, CommandArgument>,
    /// Maximum duration of a call; that of `run_command` if unset.
    pub timeout: Option<Duration>,
    /// Registries and hosts that the command may reach.
    pub network: Vec<String>,
}

/// A part of one element of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Argument(String),
}

/// A tool that runs a command of the user's.
pub struct CommandTool {
    definition: CommandDefinition,
    template: Vec<Vec<TemplatePiece>>,
    schema: Value,
    inner: RunCommand,
}

/// Returns true if a tool or an argument may have this name.
fn is_valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

impl CommandTool {
    /// Checks a definition for the project at `root`.
    ///
    /// # Errors
    /// The field that is wrong, and the remedy.
    pub fn new(definition: CommandDefinition, root: &Path) -> Result<Self, String> {
        let CommandDefinition { name, description, run, arguments, .. } = &definition;
        if !is_valid_name(name) || journeyman_policy::builtin_tool(name).is_some() {
            return Err(format!(
                "`{}` is no name for a tool: it takes at most {MAX_NAME_BYTES} lower-case letters, digits and _, and \
                 no built-in tool's name",
                to_one_line(name, MAX_NAME_BYTES)
            ));
        }
        if description.trim().is_empty() || description.len() > MAX_DEFINITION_TEXT_BYTES {
            return Err(format!("`description` has to have 1 to {MAX_DEFINITION_TEXT_BYTES} bytes"));
        }
        if run.first().is_none_or(|program| program.is_empty() || program.contains(['{', '}'])) {
            return Err("`run` has to begin with the name of a program".to_owned());
        }
        if run.len() > MAX_TEMPLATE_ELEMENTS || arguments.len() > MAX_ARGUMENTS {
            return Err(format!(
                "at most {MAX_TEMPLATE_ELEMENTS} elements in `run` and {MAX_ARGUMENTS} arguments"
            ));
        }
        for (name, argument) in arguments {
            if !is_valid_name(name) || argument.description.len() > MAX_DEFINITION_TEXT_BYTES {
                return Err(format!(
                    "the argument `{}` has a name or a `description` that is wrong or too long",
                    to_one_line(name, MAX_NAME_BYTES)
                ));
            }
        }
        let template: Vec<Vec<TemplatePiece>> =
            run.iter().map(|element| parse_element(element)).collect::<Result<_, _>>()?;
        for piece in template.iter().flatten() {
            if let TemplatePiece::Argument(used) = piece
                && !arguments.contains_key(used)
            {
                return Err(format!("`run` has {{{used}}}, and there is no such argument"));
            }
        }
        for (name, argument) in arguments {
            let place = TemplatePiece::Argument(name.clone());
            let uses: Vec<&Vec<TemplatePiece>> =
                template.iter().filter(|element| element.contains(&place)).collect();
            if uses.is_empty() {
                return Err(format!("`run` has no place {{{name}}} for the argument"));
            }
            if argument.kind == ArgumentType::TextList && uses.iter().any(|element| element.len() > 1) {
                return Err(format!("{{{name}}} is a list and has to be an element of its own"));
            }
        }
        let schema = arguments_schema(arguments);
        let inner = RunCommand::new(Some(root));
        let tool = Self { definition, template, schema, inner };
        // Host names are checked as `run_command` does.
        tool.inner.effects(&tool.input_for_command("true".to_owned())).map_err(|error| error.to_string())?;
        Ok(tool)
    }

    fn argument_error(&self, problems: String) -> ToolError {
        ToolError::Arguments {
            tool: self.definition.name.clone().into(),
            problems,
            signature: type_signature(&self.schema),
        }
    }

    fn read_arguments(&self, input: &Value) -> Result<Map<String, Value>, ToolError> {
        let fitted =
            fit_to_schema(&self.schema, input.clone()).map_err(|problems| self.argument_error(problems))?;
        Ok(fitted.as_object().cloned().unwrap_or_default())
    }

    /// Returns the words of the command, with the arguments filled in.
    fn command_words(&self, input: &Value) -> Result<Vec<String>, ToolError> {
        let given = self.read_arguments(input)?;
        let mut words = Vec::new();
        for element in &self.template {
            if let [TemplatePiece::Argument(name)] = element.as_slice()
                && let Some(Value::Array(items)) = given.get(name)
            {
                if items.len() > MAX_LIST_ITEMS {
                    return Err(self.argument_error(format!(
                        "`{name}` has {} entries; at most {MAX_LIST_ITEMS}",
                        items.len()
                    )));
                }
                for item in items {
                    words.push(self.check_operand(name, argument_text(item), &words)?);
                }
                continue;
            }
            let mut word = String::new();
            let mut left_out = false;
            let begins_with = match element.first() {
                Some(TemplatePiece::Argument(name)) => Some(name),
                _ => None,
            };
            for piece in element {
                match piece {
                    TemplatePiece::Text(text) => word.push_str(text),
                    TemplatePiece::Argument(name) => match given.get(name) {
                        Some(value) => word.push_str(&argument_text(value)),
                        None => left_out = true,
                    },
                }
            }
            if !left_out {
                let word = match begins_with {
                    Some(name) => self.check_operand(name, word, &words)?,
                    None => word,
                };
                words.push(word);
            }
        }
        if let Some(long) = words.iter().find(|word| word.len() > MAX_VALUE_BYTES || word.contains('\0')) {
            return Err(self.argument_error(format!(
                "an argument of {} bytes is too long, at most {MAX_VALUE_BYTES}, or has a NUL character",
                long.len()
            )));
        }
        Ok(words)
    }

    /// Checks a word that begins with an argument: refuses one that the program would take for an
    /// option, unless `--` comes before it, and prefixes a path with `./`.
    fn check_operand(&self, name: &str, word: String, before: &[String]) -> Result<String, ToolError> {
        let kind = self.definition.arguments.get(name).map(|argument| argument.kind);
        if !word.starts_with('-') || before.iter().any(|word| word == "--") {
            return Ok(word);
        }
        if matches!(kind, Some(ArgumentType::ReadPath | ArgumentType::WritePath)) {
            return Ok(format!("./{word}"));
        }
        Err(self
            .argument_error(format!("`{name}` begins with `-`, which the program would take for an option")))
    }

    fn argument_paths(&self, input: &Value, kind: ArgumentType) -> Result<Vec<RelPath>, ToolError> {
        let given = self.read_arguments(input)?;
        let of_kind = self.definition.arguments.iter().filter(|(_, argument)| argument.kind == kind);
        let texts = of_kind.filter_map(|(name, _)| Some((name, given.get(name)?.as_str()?)));
        let parse = |(name, text): (&String, &str)| {
            RelPath::parse(text).map_err(|error| self.argument_error(format!("`{name}`: {error}")))
        };
        texts.map(parse).collect()
    }

    /// Returns the input of `run_command` that runs the command.
    fn input_for_command(&self, command: String) -> Value {
        let mut input = json!({ "command": command, "network": self.definition.network });
        if let (Some(limit), Some(fields)) = (self.definition.timeout, input.as_object_mut()) {
            fields.insert("timeout_s".to_owned(), limit.as_secs().max(1).into());
        }
        input
    }

    fn run_command_input(&self, input: &Value) -> Result<Value, ToolError> {
        let words: Vec<String> =
            self.command_words(input)?.iter().map(|word| quote_for_shell(word)).collect();
        Ok(self.input_for_command(words.join(" ")))
    }
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) && !word.starts_with('=') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn argument_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Parses an element of a template. `{{` and `}}` stand for braces.
fn parse_element(element: &str) -> Result<Vec<TemplatePiece>, String> {
    let unclosed = || format!("`{}` in `run` has a brace without its partner", to_one_line(element, 80));
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), element);
    while let Some(place) = rest.find(['{', '}']) {
        text.push_str(rest.get(..place).unwrap_or_default());
        rest = rest.get(place..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix("{{") {
            text.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            text.push('}');
            rest = after;
        } else {
            let (name, after) =
                rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).ok_or_else(unclosed)?;
            if !text.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut text)));
            }
            pieces.push(TemplatePiece::Argument(name.to_owned()));
            rest = after;
        }
    }
    text.push_str(rest);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(TemplatePiece::Text(text));
    }
    Ok(pieces)
}

fn arguments_schema(arguments: &BTreeMap<String, CommandArgument>) -> Value {
    let mut properties = Map::new();
    for (name, argument) in arguments {
        let mut field = match argument.kind {
            ArgumentType::Text | ArgumentType::ReadPath | ArgumentType::WritePath => {
                json!({ "type": "string" })
            }
            ArgumentType::Integer => json!({ "type": "integer" }),
            ArgumentType::Boolean => json!({ "type": "boolean" }),
            ArgumentType::TextList => json!({ "type": "array", "items": { "type": "string" } }),
        };
        if let Some(field) = field.as_object_mut().filter(|_| !argument.description.is_empty()) {
            field.insert("description".to_owned(), argument.description.clone().into());
        }
        properties.insert(name.clone(), field);
    }
    let required: Vec<&String> =
        arguments.iter().filter(|(_, argument)| !argument.optional).map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

impl Tool for CommandTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.definition.name.clone(),
            description: self.definition.description.clone(),
            input_schema: self.schema.clone(),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let mut effects = self.inner.effects(&self.run_command_input(input)?)?;
        effects.reads.extend(self.argument_paths(input, ArgumentType::ReadPath)?);
        effects.writes.extend(self.argument_paths(input, ArgumentType::WritePath)?);
        Ok(effects)
    }

    fn summary(&self, input: &Value) -> String {
        let name = &self.definition.name;
        self.command_words(input).map_or_else(
            |_| name.clone(),
            |words| {
                let quoted: Vec<String> = words.iter().map(|word| quote_for_shell(word)).collect();
                format!("{name}: {}", to_one_line(&quoted.join(" "), MAX_SUMMARY_BYTES))
            },
        )
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn needs_preview(&self, workspace: &Workspace, input: &Value) -> bool {
        self.run_command_input(input).is_ok_and(|input| self.inner.needs_preview(workspace, &input))
    }

    fn time_limit(&self) -> Option<Duration> {
        self.inner.time_limit()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match self.run_command_input(&input) {
            Ok(input) => self.inner.call(context, input),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(kind: ArgumentType, optional: bool) -> CommandArgument {
        CommandArgument { kind, description: String::new(), optional }
    }

    fn definition(run: &[&str], arguments: &[(&str, CommandArgument)]) -> CommandDefinition {
        CommandDefinition {
            name: "my_query".to_owned(),
            description: "Queries.".to_owned(),
            run: run.iter().map(|&element| element.to_owned()).collect(),
            arguments: arguments.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect(),
            timeout: None,
            network: Vec::new(),
        }
    }

    fn tool(run: &[&str], arguments: &[(&str, CommandArgument)]) -> Result<CommandTool, String> {
        CommandTool::new(definition(run, arguments), "/srv/project".as_ref())
    }

    #[test]
    fn an_argument_stays_one_element_whatever_it_is() {
        let text = argument(ArgumentType::Text, false);
        let tool = tool(
            &["grep", "-e{pattern}", "--", "{files}", "{{x}}"],
            &[("pattern", text), ("files", argument(ArgumentType::TextList, true))],
        )
        .unwrap();
        let cases = [
            (json!({"pattern": "a b"}), "grep '-ea b' -- '{x}'"),
            (
                json!({"pattern": "$(rm -rf ~); `id` 'x' \n"}),
                "grep '-e$(rm -rf ~); `id` '\\''x'\\'' \n' -- '{x}'",
            ),
            (
                json!({"pattern": "{files}", "files": ["a", "b c", "", "-x"]}),
                "grep '-e{files}' -- a 'b c' '' -x '{x}'",
            ),
        ];
        for (input, expected) in cases {
            let command = tool.effects(&input).unwrap().command.unwrap();
            assert_eq!(command, expected, "{input}");
        }
        for (input, expected) in [
            (json!({}), "`pattern` is missing"),
            (json!({"pattern": "a\0"}), "NUL"),
            (json!({"pattern": "x".repeat(20_000)}), "too long"),
            (json!({"pattern": "a", "files": vec!["a"; 300]}), "at most 200"),
            (json!({"pattern": "a", "other": 1}), "there is no argument `other`"),
        ] {
            let error = tool.effects(&input).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn no_argument_becomes_an_option() {
        let (list, path) = (argument(ArgumentType::TextList, true), argument(ArgumentType::ReadPath, true));
        let tool = tool(
            &["psql", "-c{sql}", "{words}", "{file}", "{to}=x"],
            &[
                ("sql", argument(ArgumentType::Text, false)),
                ("words", list),
                ("file", path),
                ("to", argument(ArgumentType::Text, true)),
            ],
        )
        .unwrap();
        let command = tool.effects(&json!({"sql": "-1", "file": "-rf"})).unwrap().command.unwrap();
        assert_eq!(command, "psql -c-1 ./-rf");
        for input in [json!({"sql": "1", "words": ["a", "-hother"]}), json!({"sql": "1", "to": "--file"})] {
            let error = tool.effects(&input).unwrap_err().to_string();
            assert!(error.contains("begins with `-`"), "{error}");
        }
    }

    #[test]
    fn paths_are_effects_and_stay_inside() {
        let arguments = [
            ("from", argument(ArgumentType::ReadPath, false)),
            ("to", argument(ArgumentType::WritePath, true)),
        ];
        let tool = tool(&["convert", "{from}", "--to={to}"], &arguments).unwrap();
        let effects = tool.effects(&json!({"from": "a/b", "to": "c"})).unwrap();
        assert_eq!(
            (effects.reads[0].to_string(), effects.writes[0].to_string()),
            ("a/b".to_owned(), "c".to_owned())
        );
        assert_eq!(
            tool.summary(&json!({"from": "a"})),
            "my_query: convert a",
            "an option without its value is left out"
        );
        assert!(tool.effects(&json!({"from": "../x"})).is_err());
    }

    #[test]
    fn a_wrong_definition_names_its_field() {
        let text = argument(ArgumentType::Text, false);
        let list = argument(ArgumentType::TextList, false);
        let cases: Vec<(Result<CommandTool, String>, &str)> = vec![
            (tool(&[], &[]), "`run` has to begin with the name of a program"),
            (tool(&["{x}"], &[("x", text.clone())]), "`run` has to begin"),
            (tool(&["a", "{x}"], &[]), "there is no such argument"),
            (tool(&["a"], &[("x", text.clone())]), "no place {x}"),
            (tool(&["a", "{x"], &[("x", text.clone())]), "without its partner"),
            (tool(&["a", "-{x}"], &[("x", list)]), "an element of its own"),
            (tool(&["a", "{X}"], &[("X", text)]), "has a name"),
        ];
        for (made, expected) in cases {
            let problem = made.err().unwrap_or_default();
            assert!(problem.contains(expected), "{expected}: {problem}");
        }
        for name in ["read_file", "Upper", "", "a b"] {
            let wrong = CommandDefinition { name: name.to_owned(), ..definition(&["a"], &[]) };
            assert!(CommandTool::new(wrong, "/p".as_ref()).is_err(), "{name}");
        }
        let host = CommandDefinition { network: vec!["10.0.0.1".to_owned()], ..definition(&["a"], &[]) };
        assert!(CommandTool::new(host, "/p".as_ref()).is_err());
    }
}
