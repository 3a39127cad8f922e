//! CLIs that a configuration describes.

use std::path::PathBuf;

use serde::Deserialize;

use crate::acp::AcpConversation;
use crate::bounds::MAX_ARGUMENT_BYTES;
use crate::generic_output::{JsonLinesConversation, TextConversation};
use crate::output_format::CliOutputFormat;
use crate::{Adapter, Capabilities, CommandLine, CommandRequest, Conversation, Provider, Requirements};

/// Placeholder for the prompt. Without it the prompt is written to standard input.
const PROMPT_PLACEHOLDER: &str = "{prompt}";
/// Placeholder for the optional arguments. Without it they follow the command.
const OPTIONS_PLACEHOLDER: &str = "{options}";
/// Placeholder for the session id, in `resume`.
const SESSION_PLACEHOLDER: &str = "{session}";
/// Placeholder for the model, in `model`.
const MODEL_PLACEHOLDER: &str = "{model}";
/// Placeholder for the working directory.
const DIRECTORY_PLACEHOLDER: &str = "{directory}";

/// The description of a CLI in a configuration.
///
/// ```
/// let definition: journeyman_delegate::CliDefinition = toml::from_str(
///     r#"
///     name = "mine"
///     command = ["mine", "--json", "{options}", "--", "{prompt}"]
///     model = ["--model", "{model}"]
///     output = { json_lines = { text = "delta.text", session = "/session/id" } }
///     keys = ["MINE_API_KEY"]
///     hosts = ["api.mine.example"]
///     "#,
/// )?;
/// let adapter = journeyman_delegate::ConfiguredCli::new(definition)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CliDefinition {
    /// The CLI's name for people.
    pub name: String,
    /// The program and its arguments. `{prompt}` stands for the prompt, `{directory}` for the
    /// working directory, `{options}` for the optional arguments below.
    pub command: Vec<String>,
    /// Arguments that choose a model, with `{model}`.
    #[serde(default)]
    pub model: Vec<String>,
    /// Arguments that resume a session, with `{session}`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// Arguments for runs in our sandbox, which turn off the CLI's own prompts and sandbox.
    #[serde(default)]
    pub confined: Vec<String>,
    /// Arguments for runs outside our sandbox.
    #[serde(default)]
    pub unconfined: Vec<String>,
    /// The format of the CLI's output.
    #[serde(default)]
    pub output: CliOutputFormat,
    /// A command that installs the CLI.
    #[serde(default)]
    pub install: String,
    /// The variables with the provider's key.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The variables with the provider's base URL; a configured one is set in the first.
    #[serde(default)]
    pub base_urls: Vec<String>,
    /// The provider's hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Files beneath the user's home with the CLI's credentials.
    #[serde(default)]
    pub credentials: Vec<PathBuf>,
    /// Directories beneath the CLI's own home with its sessions.
    #[serde(default)]
    pub state: Vec<PathBuf>,
    /// Further variables that are passed on if they are set.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables that are always set, as `NAME=value`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// The reason why a definition can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The name has characters other than letters, digits, `-` and `_`.
    #[error("`{0}` can't be the name of a CLI: a name has letters, digits, `-` and `_`")]
    Name(String),
    /// The command is empty.
    #[error("the CLI `{0}` has no command: name its program and arguments")]
    NoCommand(String),
    /// A text of the command has a NUL character.
    #[error("the command of the CLI `{0}` has a NUL character")]
    Nul(String),
    /// A variable in `set` has no name.
    #[error("`{1}` of the CLI `{0}` isn't of the form NAME=value")]
    Assignment(String, String),
    /// Optional arguments lack the placeholder for their value.
    #[error("`{1}` of the CLI `{0}` lacks `{2}`")]
    NoValue(String, &'static str, &'static str),
    /// An ACP agent gets its prompt through the protocol, not through an argument.
    #[error("the CLI `{0}` speaks ACP, so its command can't have `{{prompt}}`")]
    AcpPrompt(String),
}

/// The adapter of a CLI that a configuration describes.
#[derive(Debug, Clone)]
pub struct ConfiguredCli {
    definition: CliDefinition,
    set: Vec<(String, String)>,
}

impl ConfiguredCli {
    /// Checks a definition.
    ///
    /// # Errors
    ///
    /// The first fault of the definition.
    pub fn new(definition: CliDefinition) -> Result<Self, DefinitionError> {
        let name = definition.name.clone();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(DefinitionError::Name(name));
        }
        if definition.command.first().is_none_or(String::is_empty) {
            return Err(DefinitionError::NoCommand(name));
        }
        let CliDefinition { command, model, resume, confined, unconfined, .. } = &definition;
        let parts = [command, model, resume, confined, unconfined];
        if parts.iter().any(|part| has_word(part, "\0")) {
            return Err(DefinitionError::Nul(name));
        }
        for (key, arguments, value) in
            [("model", model, MODEL_PLACEHOLDER), ("resume", resume, SESSION_PLACEHOLDER)]
        {
            if !arguments.is_empty() && !arguments.iter().any(|argument| argument.contains(value)) {
                return Err(DefinitionError::NoValue(name, key, value));
            }
        }
        if matches!(definition.output, CliOutputFormat::Acp(_)) && has_word(command, PROMPT_PLACEHOLDER) {
            return Err(DefinitionError::AcpPrompt(name));
        }
        let mut set = Vec::new();
        for assignment in &definition.set {
            match assignment.split_once('=') {
                Some((variable, value)) if !variable.is_empty() && !assignment.contains('\0') => {
                    set.push((variable.to_owned(), value.to_owned()));
                }
                _ => return Err(DefinitionError::Assignment(name, assignment.clone())),
            }
        }
        Ok(Self { definition, set })
    }

    /// Returns the optional arguments of a request.
    fn options(&self, request: &CommandRequest<'_>) -> Vec<String> {
        let CliDefinition { model, resume, confined, unconfined, .. } = &self.definition;
        let mut options = if request.confined { confined.clone() } else { unconfined.clone() };
        for (arguments, word, value) in
            [(model, MODEL_PLACEHOLDER, request.model), (resume, SESSION_PLACEHOLDER, request.resume)]
        {
            if let Some(value) = value {
                options.extend(arguments.iter().map(|argument| argument.replace(word, value)));
            }
        }
        options.extend_from_slice(request.arguments);
        options
    }
}

fn has_word(arguments: &[String], word: &str) -> bool {
    arguments.iter().any(|argument| argument.contains(word))
}

impl Adapter for ConfiguredCli {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn program(&self) -> &str {
        self.definition.command.first().map_or("", String::as_str)
    }

    fn install_hint(&self) -> &str {
        &self.definition.install
    }

    fn capabilities(&self) -> Capabilities {
        let is_acp = matches!(self.definition.output, CliOutputFormat::Acp(_));
        Capabilities {
            needs_workspace: true,
            streaming: self.definition.output != CliOutputFormat::Text,
            resume: is_acp || !self.definition.resume.is_empty(),
            model: is_acp || !self.definition.model.is_empty(),
            own_sandbox: false,
            cost: matches!(&self.definition.output, CliOutputFormat::JsonLines(paths) if paths.cost.is_some()),
        }
    }

    fn requirements(&self) -> Requirements {
        let CliDefinition { keys, base_urls, hosts, credentials, state, environment, .. } =
            self.definition.clone();
        let provider = Provider { keys, base_urls, hosts, ..Provider::default() };
        let set = self.set.clone();
        Requirements { providers: vec![provider], environment, credentials, state, set }
    }

    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine {
        let definition = &self.definition;
        let by_argument = has_word(&definition.command, PROMPT_PLACEHOLDER);
        let fits = request.prompt.len() <= MAX_ARGUMENT_BYTES;
        let directory = request.directory.to_string_lossy();
        let mut options = Some(self.options(request));
        let mut command = CommandLine::default();
        for argument in &definition.command {
            if argument == OPTIONS_PLACEHOLDER {
                command.add_arguments(&options.take().unwrap_or_default());
                continue;
            }
            // A prompt that is too long for an argument is written to standard input.
            if argument.contains(PROMPT_PLACEHOLDER) && !fits {
                continue;
            }
            let place = argument.replace(DIRECTORY_PLACEHOLDER, &directory);
            // Keeps a prompt from being read as a flag.
            let guard =
                if place == PROMPT_PLACEHOLDER && request.prompt.starts_with('-') { "\n" } else { "" };
            command
                .add_arguments(&[place.replace(PROMPT_PLACEHOLDER, &format!("{guard}{}", request.prompt))]);
        }
        command.add_arguments(&options.unwrap_or_default());
        if let (Some(address), Some(variable)) = (request.base_url, definition.base_urls.first()) {
            command.set_variable(variable, address);
        }
        if let CliOutputFormat::Acp(_) = definition.output {
            command.interactive = true;
            command.stdin = AcpConversation::initialize_message();
        } else if !by_argument || !fits {
            command.stdin = request.prompt.as_bytes().to_vec();
        }
        command
    }

    fn start_conversation(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation> {
        let name = self.name();
        match &self.definition.output {
            CliOutputFormat::Text => Box::new(TextConversation::new(name)),
            CliOutputFormat::JsonLines(paths) => Box::new(JsonLinesConversation::new(name, paths)),
            CliOutputFormat::Acp(options) => {
                let model = request.model.filter(|_| self.definition.model.is_empty());
                Box::new(AcpConversation::new(name, options, request, model))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AcpOptions;
    use crate::sample::{arguments, request};

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn definition(command: &[&str]) -> CliDefinition {
        CliDefinition {
            name: "mine".to_owned(),
            command: strings(command),
            model: strings(&["--model", "{model}"]),
            resume: strings(&["--session={session}"]),
            confined: strings(&["--yes"]),
            unconfined: strings(&["--ask"]),
            base_urls: strings(&["MINE_URL"]),
            ..CliDefinition::default()
        }
    }

    #[test]
    fn words_stand_for_their_values() -> Result<(), DefinitionError> {
        let more = strings(&["--more"]);
        for (command, prompt, expected, stdin) in [
            (
                vec!["mine", "{options}", "--", "in {directory}: {prompt}"],
                "it's $(x)",
                vec!["mine", "--yes", "--model", "m", "--session=s", "--more", "--", "in /work: it's $(x)"],
                "",
            ),
            (
                vec!["mine", "run"],
                "--help",
                vec!["mine", "run", "--yes", "--model", "m", "--session=s", "--more"],
                "--help",
            ),
            (
                vec!["mine", "{options}", "{prompt}"],
                "--help",
                vec!["mine", "--yes", "--model", "m", "--session=s", "--more", "\n--help"],
                "",
            ),
        ] {
            let cli = ConfiguredCli::new(definition(&command))?;
            let mut request = request(prompt);
            (request.model, request.resume, request.arguments) = (Some("m"), Some("s"), &more);
            request.base_url = Some("http://host");
            assert_eq!(arguments(&cli, &request), expected);
            let command = cli.build_command(&request);
            assert_eq!(command.stdin, stdin.as_bytes());
            assert_eq!(command.environment, [("MINE_URL".to_owned(), "http://host".to_owned())]);
        }
        Ok(())
    }

    #[test]
    fn a_long_prompt_goes_to_standard_input() -> Result<(), DefinitionError> {
        let prompt = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        let cli = ConfiguredCli::new(definition(&["mine", "{prompt}"]))?;
        let mut request = request(&prompt);
        request.confined = false;
        assert_eq!(arguments(&cli, &request), ["mine", "--ask"]);
        assert_eq!(cli.build_command(&request).stdin, prompt.as_bytes());
        Ok(())
    }

    #[test]
    fn a_definition_that_cannot_work_is_refused() {
        let refused = |change: fn(&mut CliDefinition)| {
            let mut definition = definition(&["mine"]);
            change(&mut definition);
            ConfiguredCli::new(definition).err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (message, expected) in [
            (refused(|mine| mine.name = "../mine".to_owned()), "`../mine` can't be the name of a CLI"),
            (refused(|mine| mine.command.clear()), "has no command"),
            (refused(|mine| mine.confined.push("\0".to_owned())), "has a NUL character"),
            (refused(|mine| mine.model = vec!["-m".to_owned()]), "`model` of the CLI `mine` lacks `{model}`"),
            (refused(|mine| mine.set = vec!["=1".to_owned()]), "isn't of the form NAME=value"),
            (
                refused(|mine| {
                    mine.command.push("{prompt}".to_owned());
                    mine.output = CliOutputFormat::Acp(AcpOptions::default());
                }),
                "can't have `{prompt}`",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }
}
