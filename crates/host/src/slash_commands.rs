//! Slash commands: prompts in files, in the formats of Claude Code (Markdown) and Gemini CLI
//! (TOML).
//!
//! A command is a text with places for arguments. It is used only when a person names it, runs
//! nothing and permits nothing: the tools that a file wants to be allowed are not.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::HostError;
use crate::config::Environment;
use crate::format::printable;
use crate::text_files::{DirectoryNames, FileOwner, MarkdownFile, TextDirectory};

/// The directories of commands, in a project and in the user's home, and their format.
const COMMAND_DIRECTORIES: [(&str, CommandFormat); 3] = [
    (".journeyman/commands", CommandFormat::Markdown),
    (".claude/commands", CommandFormat::Markdown),
    (".gemini/commands", CommandFormat::Toml),
];
/// Maximum number of commands, and directories that lie in each other.
const MAX_COMMANDS: usize = 200;
const MAX_DIRECTORY_DEPTH: usize = 3;
/// Maximum length of a name.
const MAX_COMMAND_NAME_BYTES: usize = 80;
/// Maximum bytes of an expanded command, as of a task.
const MAX_EXPANDED_BYTES: usize = 1024 * 1024;
/// Maximum number of commands that an error names.
const MAX_LISTED_COMMANDS: usize = 12;

/// The format of a command's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandFormat {
    /// Claude Code's: front matter and a text with `$ARGUMENTS` and `$1`.
    Markdown,
    /// Gemini CLI's: `description` and a `prompt` with `{{args}}`.
    Toml,
}

/// A command that a person may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// The name without its slash. Directories are set apart by `:`.
    pub name: String,
    /// The description, for people; may be empty.
    pub description: String,
    /// The names of its arguments, for people; may be empty.
    pub hint: String,
    /// The owner of its file.
    pub owner: FileOwner,
    /// Its file.
    pub path: PathBuf,
    format: CommandFormat,
    prompt: String,
}

/// The commands of a project and its user, and the problems of invalid commands.
#[derive(Debug, Default)]
pub struct SlashCommands {
    /// The commands, sorted by name. The user's command overrides the project's of the same name,
    /// so that no project can replace it.
    pub commands: Vec<SlashCommand>,
    /// One line for each file that is left out.
    pub problems: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlCommand {
    prompt: String,
    #[serde(default)]
    description: String,
}

impl SlashCommands {
    /// Finds the commands for the project at `root`.
    #[must_use]
    pub fn load(environment: &Environment, root: &Path) -> Self {
        let mut found = Self::default();
        let own = environment.config_dir().map(|dir| (dir.join("commands"), CommandFormat::Markdown));
        let home = COMMAND_DIRECTORIES
            .iter()
            .filter_map(|(path, format)| Some((environment.home.as_ref()?.join(path), *format)));
        for (path, format) in own.into_iter().chain(home) {
            if let Some(directory) = TextDirectory::open_for_user(&path) {
                found.read_directory(&directory, "", 0, FileOwner::User, format);
            }
        }
        for (path, format) in COMMAND_DIRECTORIES {
            if let Some(directory) = TextDirectory::open_in_project(root, path) {
                found.read_directory(&directory, "", 0, FileOwner::Project, format);
            }
        }
        found.commands.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Returns the command of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&SlashCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    fn read_directory(
        &mut self,
        directory: &TextDirectory,
        below: &str,
        depth: usize,
        owner: FileOwner,
        format: CommandFormat,
    ) {
        let DirectoryNames { directories: folders, files, is_cut } = directory.list_names(below);
        if is_cut {
            self.problems.push(directory.describe_truncation(below));
        }
        let inside = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        let ending = if format == CommandFormat::Markdown { ".md" } else { ".toml" };
        for file in files.iter().filter(|file| file.ends_with(ending)) {
            let place = inside(file);
            let path = directory.display_path(&place);
            if self.commands.len() >= MAX_COMMANDS {
                self.problems
                    .push(format!("{}: more than {MAX_COMMANDS} commands", printable(&path.display())));
                return;
            }
            let name = place.strip_suffix(ending).unwrap_or(&place).replace('/', ":");
            let read = directory.read(&place).and_then(|text| SlashCommand::parse(&name, &text, format));
            match read {
                Ok(command) if self.get(&command.name).is_none() => {
                    self.commands.push(SlashCommand { owner, path, ..command });
                }
                Ok(_) => {}
                Err(problem) => self.problems.push(format!("{}: {problem}", printable(&path.display()))),
            }
        }
        if depth < MAX_DIRECTORY_DEPTH {
            for folder in folders {
                self.read_directory(directory, &inside(&folder), depth + 1, owner, format);
            }
        }
    }

    /// Returns the text of a task that names a command: `/name arguments`. Other tasks are returned
    /// unchanged.
    ///
    /// # Errors
    /// [`HostError::Usage`] where there is no such command, listing the known commands and the
    /// problem of its file.
    pub fn expand_task(environment: &Environment, root: &Path, task: String) -> Result<String, HostError> {
        match parse_invocation(&task) {
            Some((name, arguments)) => Self::load(environment, root).expand(name, arguments),
            None => Ok(task),
        }
    }

    fn expand(&self, name: &str, arguments: &str) -> Result<String, HostError> {
        let Some(command) = self.get(name) else {
            let names: Vec<String> = self
                .commands
                .iter()
                .take(MAX_LISTED_COMMANDS)
                .map(|command| format!("/{}", command.name))
                .collect();
            let known = match names.as_slice() {
                [] => "there are none here; a file .claude/commands/NAME.md makes one".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            let problem = self.problems.iter().find(|problem| problem.contains(name));
            let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
            return Err(HostError::usage(format_args!(
                "there is no command /{name}{problem}; {known}. For a task that begins with a slash, put a word before it"
            )));
        };
        command.expand(arguments).map_err(HostError::usage)
    }
}

/// Returns the name of a command and its arguments, if a text has the form of one. A path is none.
fn parse_invocation(task: &str) -> Option<(&str, &str)> {
    let task = task.trim();
    let rest = task.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    is_command_name(name).then_some((name, arguments.trim()))
}

fn is_command_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_COMMAND_NAME_BYTES
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':' | b'.'))
}

impl SlashCommand {
    fn parse(name: &str, text: &str, format: CommandFormat) -> Result<Self, String> {
        if !is_command_name(name) {
            return Err(format!(
                "its name takes at most {MAX_COMMAND_NAME_BYTES} letters, digits, hyphens, underscores and dots"
            ));
        }
        let (prompt, description, hint) = match format {
            CommandFormat::Markdown => {
                let file = MarkdownFile::parse(text)?;
                let field = |name| file.text_field(name).unwrap_or_default();
                let (description, hint) = (field("description"), field("argument-hint"));
                (file.text, description, hint)
            }
            CommandFormat::Toml => {
                // The error quotes the file, which may be anything.
                let command: TomlCommand =
                    toml::from_str(text).map_err(|error| format!("it is no command: {}", error.message()))?;
                (command.prompt, command.description, String::new())
            }
        };
        if prompt.trim().is_empty() {
            return Err("it has no text".to_owned());
        }
        let runs = match format {
            CommandFormat::Markdown => prompt.contains("!`"),
            CommandFormat::Toml => prompt.contains("!{"),
        };
        if runs {
            return Err(
                "it has a command to run in its text (`!`), which is not done here; let the model run it"
                    .to_owned(),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            description: printable(&description),
            hint: printable(&hint),
            owner: FileOwner::User,
            path: PathBuf::new(),
            format,
            prompt,
        })
    }

    /// Returns the command's text with the placeholders replaced by the arguments. Placeholders
    /// within arguments are not expanded. Arguments without a placeholder are appended.
    ///
    /// # Errors
    /// A text that gets too long.
    pub fn expand(&self, arguments: &str) -> Result<String, String> {
        let arguments = arguments.trim();
        let (text, used) = match self.format {
            CommandFormat::Markdown => fill_markdown_arguments(&self.prompt, arguments),
            CommandFormat::Toml => fill_placeholders(&self.prompt, |rest| {
                rest.strip_prefix("{{args}}").map(|_| ("{{args}}".len(), arguments))
            }),
        };
        let mut text = text?;
        if !used && !arguments.is_empty() {
            text.push_str(&format!("\n\n{arguments}"));
        }
        Ok(text.trim().to_owned())
    }
}

/// Fills `$ARGUMENTS` and `$1` to `$9`.
fn fill_markdown_arguments(prompt: &str, arguments: &str) -> (Result<String, String>, bool) {
    let words = split_words(arguments);
    fill_placeholders(prompt, |rest| {
        if rest.starts_with("$ARGUMENTS") {
            return Some(("$ARGUMENTS".len(), arguments));
        }
        let digit = rest.strip_prefix('$')?.bytes().next().filter(|b| (b'1'..=b'9').contains(b))?;
        // `$12` is no place: a price, most likely.
        if rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        let word = words.get(usize::from(digit - b'1')).map_or("", String::as_str);
        Some((2, word))
    })
}

/// Replaces placeholders in one pass. `place` matches a placeholder at the beginning of the
/// remaining text. The flag is true if any was replaced.
fn fill_placeholders<'v>(
    prompt: &str,
    place: impl Fn(&str) -> Option<(usize, &'v str)>,
) -> (Result<String, String>, bool) {
    let (mut text, mut rest, mut used) = (String::with_capacity(prompt.len()), prompt, false);
    while let Some(start) = rest.find(['$', '{']) {
        let (before, at) = rest.split_at(start);
        text.push_str(before);
        let length = match place(at) {
            Some((length, value)) => {
                used = true;
                text.push_str(value);
                length
            }
            None => {
                text.push_str(at.get(..1).unwrap_or_default());
                1
            }
        };
        rest = at.get(length..).unwrap_or_default();
        if text.len() > MAX_EXPANDED_BYTES {
            return (Err(format!("the command comes to more than {MAX_EXPANDED_BYTES} bytes")), used);
        }
    }
    text.push_str(rest);
    (Ok(text), used)
}

/// Splits arguments at blanks; quoted ones stay together.
fn split_words(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for letter in arguments.chars() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '"' | '\'') => (quote, open) = (Some(letter), true),
            (None, letter) if letter.is_whitespace() => {
                if open {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (_, letter) => {
                word.push(letter);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(text: &str) -> Result<SlashCommand, String> {
        SlashCommand::parse("fix", text, CommandFormat::Markdown)
    }

    #[test]
    fn arguments_get_their_places_once() {
        let cases = [
            ("Fix $ARGUMENTS now", "a b", "Fix a b now"),
            ("Fix $1, then $2", "\"a b\" c d", "Fix a b, then c"),
            ("Fix $1$2.", "a", "Fix a."),
            ("Costs $12 or $x", "", "Costs $12 or $x"),
            ("Fix it", "the parser", "Fix it\n\nthe parser"),
            ("Fix it", " ", "Fix it"),
            ("A $ARGUMENTS B", "$1 $ARGUMENTS {{args}}", "A $1 $ARGUMENTS {{args}} B"),
            ("$$1", "x", "$x"),
        ];
        for (prompt, arguments, expected) in cases {
            assert_eq!(markdown(prompt).unwrap().expand(arguments).unwrap(), expected, "{prompt}");
        }
        let toml = "description = 'd'\nprompt = \"\"\"\nReview {{args}} and {{args}}; $1 {x}\n\"\"\"\n";
        let command = SlashCommand::parse("git:review", toml, CommandFormat::Toml).unwrap();
        assert_eq!(command.expand("{{args}} $1").unwrap(), "Review {{args}} $1 and {{args}} $1; $1 {x}");
        let many = markdown(&"$ARGUMENTS".repeat(2_000)).unwrap();
        assert!(many.expand(&"x".repeat(1_000)).unwrap_err().contains("more than"));
    }

    #[test]
    fn wrong_files_say_what_is_wrong() {
        for (text, expected) in [
            ("", "it has no text"),
            ("---\ndescription: x\n---\n  \n", "it has no text"),
            ("Status: !`git status`", "is not done here"),
            ("---\ndescription: x", "has no end"),
        ] {
            assert!(markdown(text).unwrap_err().contains(expected), "{text}");
        }
        for (text, expected) in [
            ("prompt = 1", "it is no command"),
            ("description = 'x'", "missing field"),
            ("prompt = 'x'\nshell = 'y'", "unknown field"),
            ("prompt = '!{rm}'", "is not done here"),
        ] {
            let problem = SlashCommand::parse("a", text, CommandFormat::Toml).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn commands_are_found_and_named() {
        let place = tempfile::tempdir().unwrap();
        let (home, root) = (place.path().join("home"), place.path().join("project"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            root.join(".claude/commands/fix.md"),
            "---\ndescription: Fixes.\nargument-hint: ISSUE\n---\nFix #$1",
        );
        write(root.join(".claude/commands/front/new.md"), "New");
        write(root.join(".gemini/commands/git/commit.toml"), "prompt = 'Commit {{args}}'");
        write(root.join(".claude/commands/bad name.md"), "x");
        write(root.join(".claude/commands/review.md"), "the project's");
        write(home.join(".claude/commands/review.md"), "the user's");
        let environment = Environment { vars: Default::default(), home: Some(home), cwd: root.clone() };
        let found = SlashCommands::load(&environment, &root);
        let names: Vec<&str> = found.commands.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["fix", "front:new", "git:commit", "review"]);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        let fix = found.get("fix").unwrap();
        assert_eq!(
            (fix.description.as_str(), fix.hint.as_str(), fix.owner),
            ("Fixes.", "ISSUE", FileOwner::Project)
        );
        let expand = |task: &str| {
            let expanded = SlashCommands::expand_task(&environment, &root, task.to_owned());
            expanded.map_err(|error| error.to_string())
        };
        assert_eq!(expand(" /fix 12 "), Ok("Fix #12".to_owned()));
        assert_eq!(expand("/git:commit all\nof it"), Ok("Commit all\nof it".to_owned()));
        assert_eq!(expand("/review"), Ok("the user's".to_owned()));
        for other in ["fix it", "/usr/bin is gone", "/", "see /fix"] {
            assert_eq!(expand(other), Ok(other.to_owned()), "{other}");
        }
        let unknown = expand("/fxi it").unwrap_err();
        assert!(unknown.contains("there is no command /fxi; there are /fix, /front:new"), "{unknown}");
    }
}
