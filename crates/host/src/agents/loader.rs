//! Loads agent definitions: built-in ones, and those in the user's and the project's files.

use std::path::{Path, PathBuf};

use journeyman_agent::agents::{AgentDefinition, Agents};
use journeyman_protocol::ContentHash;

use super::definition_file::{DefinitionDialect, read_definition, read_unchecked_definition};
use super::tools::{describe_edit_scope, describe_tools};
use crate::config::{Environment, TrustStore};
use crate::confirmations::ask_for_trust;
use crate::format::printable;
use crate::text_files::TextDirectory;
use crate::{Confirmations, HostError};

/// The built-in agents.
const BUILT_IN_AGENTS: [(&str, &str); 5] = [
    ("investigator", include_str!("../../agents/investigator.md")),
    ("planner", include_str!("../../agents/planner.md")),
    ("reviewer", include_str!("../../agents/reviewer.md")),
    ("tester", include_str!("../../agents/tester.md")),
    ("generalist", include_str!("../../agents/generalist.md")),
];
/// Directories of agents in a project and in a home, the first of a name counts.
const AGENT_DIRECTORY_PARENTS: [(&str, DefinitionDialect); 3] = [
    (".journeyman", DefinitionDialect::Own),
    (".claude", DefinitionDialect::Other),
    (".gemini", DefinitionDialect::Other),
];
/// The directory of agents in each of these.
const AGENTS_DIRECTORY: &str = "agents";

/// Maximum number of agents read from files. Every request to a model describes all agents.
const MAX_AGENTS: usize = 40;

/// The place of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSource {
    /// Part of the program.
    BuiltIn,
    /// A file of the user's.
    User(PathBuf),
    /// A file of the project's.
    Project(PathBuf),
}

impl std::fmt::Display for AgentSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::User(path) | Self::Project(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A definition with its place.
#[derive(Debug, Clone)]
pub struct LoadedAgent {
    /// The definition.
    pub definition: AgentDefinition,
    /// Its place.
    pub source: AgentSource,
    /// The places of other definitions of this name, which don't count.
    pub replaces: Vec<AgentSource>,
    /// The parts of another product's file that have no effect here.
    pub ignored: Vec<String>,
}

impl LoadedAgent {
    /// Describes the source of the definition, and the sources that it overrides, in one line.
    #[must_use]
    pub fn describe_source(&self) -> String {
        let replaced = self.replaces.iter().map(|source| match source {
            AgentSource::BuiltIn => "the built-in one".to_owned(),
            file => file.to_string(),
        });
        match replaced.collect::<Vec<_>>().join(" and ") {
            nothing if nothing.is_empty() => self.source.to_string(),
            others => format!("{}, in the place of {others}", self.source),
        }
    }

    /// Returns a sentence about the parts of the file that have no effect.
    #[must_use]
    pub fn ignored_fields_notice(&self) -> Option<String> {
        let parts = self.ignored.join(", ");
        (!self.ignored.is_empty()).then(|| format!("{}: no effect here: {parts}", self.source))
    }
}

/// All definitions, and the files that were left out.
#[derive(Debug, Clone, Default)]
pub struct LoadedAgents {
    /// The definitions by name: the project's, then the user's, then the built-in ones.
    pub agents: Vec<LoadedAgent>,
    /// A sentence about each file that was left out.
    pub problems: Vec<String>,
}

impl LoadedAgents {
    /// Returns the agent named `name`.
    ///
    /// # Errors
    /// [`HostError::Usage`] listing the known names.
    pub fn find(&self, name: &str) -> Result<&LoadedAgent, HostError> {
        self.agents.iter().find(|agent| agent.definition.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.definition.name.as_str()).collect();
            let problem = self.problems.iter().find(|problem| problem.contains(name));
            let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
            HostError::usage(format_args!(
                "there is no agent `{}`{problem}; there are {}",
                printable(&name),
                names.join(", ")
            ))
        })
    }

    /// Returns the agents that a session may give tasks to.
    #[must_use]
    pub fn to_agents(&self) -> Agents {
        Agents::new(self.agents.iter().map(|agent| agent.definition.clone()).collect())
    }

    /// Returns a sentence about each file that has parts without an effect.
    pub fn ignored_fields_notices(&self) -> impl Iterator<Item = String> {
        self.agents.iter().filter_map(LoadedAgent::ignored_fields_notice)
    }

    /// Reads a definition. A file that can't be read is reported, and a file beyond the limit is
    /// skipped.
    fn read(
        &mut self,
        directory: &TextDirectory,
        name: &str,
        dialect: DefinitionDialect,
        left_out: &mut SkippedFiles,
    ) -> Option<ParsedAgent> {
        let path = directory.display_path(name);
        if self.agents.len() >= MAX_AGENTS {
            left_out.add(path);
            return None;
        }
        let text = directory.read(name).map_err(|why| {
            self.problems.push(format!("{}: {why}; it is left out", printable(&path.display())));
        });
        let text = text.ok()?;
        let (definition, ignored) = parse_definition(&path, &text, dialect, &mut self.problems)?;
        Some(ParsedAgent { path, text, definition, ignored })
    }

    fn add(&mut self, definition: AgentDefinition, ignored: Vec<String>, source: AgentSource) {
        match self.agents.iter_mut().find(|known| known.definition.name == definition.name) {
            Some(known) => known.replaces.push(source),
            None => self.agents.push(LoadedAgent { definition, source, replaces: Vec::new(), ignored }),
        }
    }
}

/// The user's trust in a project's agents. Untrusted agents are not loaded.
#[derive(Default)]
pub struct AgentTrust<'a> {
    /// True to trust all of them, this once.
    pub this_run: bool,
    /// Asks a person about each version of a file once; without, a new version is left out.
    pub prompts: Option<&'a dyn Confirmations>,
}

/// Reads all definitions. A file that can't be used is left out, with a sentence that names the
/// field.
///
/// # Errors
/// [`HostError::Failed`] where a person can't be asked, or the answer can't be kept.
pub fn load_agents(
    environment: &Environment,
    root: &Path,
    trust: &AgentTrust<'_>,
) -> Result<LoadedAgents, HostError> {
    let mut loaded = LoadedAgents::default();
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let mut left_out = SkippedFiles::default();
    for (directory, dialect) in AGENT_DIRECTORY_PARENTS {
        let path = format!("{directory}/{AGENTS_DIRECTORY}");
        let Some(files) = TextDirectory::open_in_project(root, &path) else { continue };
        for name in list_definition_files(&files, &mut loaded.problems) {
            let Some(read) = loaded.read(&files, &name, dialect, &mut left_out) else { continue };
            let ParsedAgent { path, text, definition, ignored } = read;
            let hash = ContentHash::of(text.as_bytes());
            if obtain_agent_trust(trust, store.as_ref(), &path, &hash, &definition)? {
                loaded.add(definition, ignored, AgentSource::Project(path));
            } else {
                loaded.problems.push(format!(
                    "{}: the agent `{}` is left out, because nobody trusts this version of the file (run jm in a \
                     terminal once, or with --trust-project)",
                    printable(&path.display()),
                    definition.name
                ));
            }
        }
    }
    let own = environment.config_dir().map(|dir| (dir.join(AGENTS_DIRECTORY), DefinitionDialect::Own));
    let home = environment.home.iter().flat_map(|home| {
        let others =
            AGENT_DIRECTORY_PARENTS.into_iter().filter(|(_, dialect)| *dialect == DefinitionDialect::Other);
        others.map(|(directory, dialect)| (home.join(directory).join(AGENTS_DIRECTORY), dialect))
    });
    for (at, dialect) in own.into_iter().chain(home) {
        let Some(files) = TextDirectory::open_for_user(&at) else { continue };
        for name in list_definition_files(&files, &mut loaded.problems) {
            if let Some(read) = loaded.read(&files, &name, dialect, &mut left_out) {
                loaded.add(read.definition, read.ignored, AgentSource::User(read.path));
            }
        }
    }
    loaded.problems.extend(left_out.describe());
    for (name, text) in BUILT_IN_AGENTS {
        match read_unchecked_definition(text, name, DefinitionDialect::Own, &mut Vec::new()) {
            Ok(definition) => loaded.add(definition, Vec::new(), AgentSource::BuiltIn),
            Err(error) => loaded.problems.push(format!("the built-in agent `{name}`: {error}")),
        }
    }
    Ok(loaded)
}

/// A parsed definition with the text of its file.
struct ParsedAgent {
    path: PathBuf,
    text: String,
    definition: AgentDefinition,
    ignored: Vec<String>,
}

/// Parses a definition, and returns the names of fields without an effect. Adds an error to
/// `problems`.
fn parse_definition(
    path: &Path,
    text: &str,
    dialect: DefinitionDialect,
    problems: &mut Vec<String>,
) -> Option<(AgentDefinition, Vec<String>)> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut ignored = Vec::new();
    match read_definition(text, stem, dialect, &mut ignored) {
        Ok(definition) => Some((definition, ignored)),
        Err(why) => {
            problems.push(format!("{}: {}; it is left out", printable(&path.display()), printable(&why)));
            None
        }
    }
}

/// Returns true if a person trusts this version of a project's agent. Asks once where a person is.
fn obtain_agent_trust(
    trust: &AgentTrust<'_>,
    store: Option<&TrustStore>,
    path: &Path,
    hash: &ContentHash,
    definition: &AgentDefinition,
) -> Result<bool, HostError> {
    if trust.this_run || store.is_some_and(|store| store.is_trusted(path, hash)) {
        return Ok(true);
    }
    let (Some(prompts), Some(store)) = (trust.prompts, store) else { return Ok(false) };
    let (keys, values): (Vec<String>, Vec<String>) = describe_permissions(definition).into_iter().unzip();
    ask_for_trust(prompts, store, path, hash, (&keys, &values))
}

/// Describes an agent's tools, model and edits for the question if the project's agent is trusted.
fn describe_permissions(definition: &AgentDefinition) -> Vec<(String, String)> {
    let AgentDefinition { name, description, mode, edits, model, .. } = definition;
    let replaces = match BUILT_IN_AGENTS.iter().any(|(built_in, _)| built_in == name) {
        true => ", in the place of the built-in one",
        false => "",
    };
    vec![
        (format!("the agent {name}{replaces}"), description.clone()),
        ("tools".to_owned(), format!("{}; in mode {mode} at most", describe_tools(definition))),
        ("model".to_owned(), model.clone().unwrap_or_else(|| "that of the session".to_owned())),
        ("edits".to_owned(), describe_edit_scope(*edits).to_owned()),
    ]
}

/// Returns the names of a directory's Markdown files in their order. One that begins with `_` is a
/// draft, as in Gemini CLI.
fn list_definition_files(directory: &TextDirectory, problems: &mut Vec<String>) -> Vec<String> {
    let mut names = directory.list_names("");
    if names.is_cut {
        problems.push(directory.describe_truncation(""));
    }
    names.files.retain(|name| name.ends_with(".md") && !name.starts_with('_'));
    names.files
}

/// The files skipped because there are too many agents.
#[derive(Default)]
struct SkippedFiles {
    first: Option<PathBuf>,
    more: usize,
}

impl SkippedFiles {
    fn add(&mut self, path: PathBuf) {
        match self.first {
            None => self.first = Some(path),
            Some(_) => self.more += 1,
        }
    }

    fn describe(self) -> Option<String> {
        let more = match self.more {
            0 => String::new(),
            more => format!(", as are {more} other files after it"),
        };
        let path = self.first?;
        Some(format!(
            "{}: it is left out{more}, because at most {MAX_AGENTS} agents are read from files",
            printable(&path.display())
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use journeyman_agent::agents::EditScope;
    use journeyman_agent::tools::Registry;
    use journeyman_git::CommitRefusal;
    use journeyman_protocol::{Mode, SessionId};
    use journeyman_store::SessionSummary;
    use serde_json::json;

    use super::*;

    struct Place {
        _dir: tempfile::TempDir,
        root: PathBuf,
        environment: Environment,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (root, home) = (dir.path().join("project"), dir.path().join("home"));
            std::fs::create_dir_all(&root).unwrap();
            std::fs::create_dir_all(&home).unwrap();
            let environment =
                Environment { vars: std::collections::BTreeMap::new(), home: Some(home), cwd: root.clone() };
            Self { _dir: dir, root, environment }
        }

        fn write(&self, path: &Path, text: &str) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn project(&self, directory: &str, name: &str, text: &str) {
            self.write(&self.root.join(directory).join("agents").join(name), text);
        }

        fn home(&self, directory: &str, name: &str, text: &str) {
            let home = self.environment.home.clone().unwrap();
            self.write(&home.join(directory).join("agents").join(name), text);
        }

        fn load(&self, this_run: bool) -> LoadedAgents {
            load_agents(&self.environment, &self.root, &AgentTrust { this_run, prompts: None }).unwrap()
        }
    }

    const HELPER: &str = "---\ndescription: Helps.\n---\nYou help.\n";

    #[test]
    fn the_built_in_agents_are_what_they_say() {
        let place = Place::new();
        let loaded = place.load(false);
        assert_eq!(loaded.problems, Vec::<String>::new());
        for agent in &loaded.agents {
            agent.definition.check().unwrap();
        }
        let names: Vec<&str> = loaded.agents.iter().map(|agent| agent.definition.name.as_str()).collect();
        assert_eq!(names, ["investigator", "planner", "reviewer", "tester", "generalist"]);
        for agent in &loaded.agents {
            // A comma in a text without quotes begins a field without a value.
            let schema = agent.definition.output.schema.to_string();
            assert!(!schema.contains(":null"), "{}: {schema}", agent.definition.name);
        }
        for name in ["investigator", "planner", "reviewer"] {
            let definition = &loaded.find(name).unwrap().definition;
            let inputs = json!({ definition.inputs[0].name.as_str(): "x" });
            let (role, _) =
                definition.build_role(inputs.as_object().unwrap(), &Registry::with_builtin()).unwrap();
            assert_eq!(role.mode, Mode::Plan, "{name}");
            assert!(!role.tools.iter().any(|tool| tool == "write_file" || tool == "run_command"), "{name}");
        }
        let tester = &loaded.find("tester").unwrap().definition;
        assert_eq!((tester.edits, tester.mode), (EditScope::TestFiles, Mode::Edit));
        let inputs = json!({ "task": "x" });
        tester.build_role(inputs.as_object().unwrap(), &Registry::with_builtin()).unwrap();
    }

    #[test]
    fn the_projects_own_come_first_and_a_wrong_file_is_left_out_by_name() {
        let place = Place::new();
        place.project(".journeyman", "planner.md", HELPER);
        place.project(".claude", "planner.md", HELPER);
        place.project(".gemini", "other.md", HELPER);
        place.project(".journeyman", "bad.md", "---\ndescription: x\ntools: [launch]\n---\nx\n");
        place.project(".gemini", "main.md", HELPER);
        place.project(".journeyman", "_draft.md", "nothing");
        place.project(".journeyman", "notes.txt", "nothing");
        place.home(".claude", "other.md", HELPER);
        place.home(".claude", "mine.md", HELPER);
        let loaded = place.load(true);
        let source = |name: &str| loaded.find(name).unwrap().source.clone();
        let at = |directory: &str, name: &str| {
            AgentSource::Project(place.root.join(directory).join("agents").join(name))
        };
        assert_eq!(
            source("planner"),
            at(".journeyman", "planner.md"),
            "a project may replace a built-in one"
        );
        assert_eq!(source("other"), at(".gemini", "other.md"));
        let planner = loaded.find("planner").unwrap();
        assert_eq!(planner.replaces, [at(".claude", "planner.md"), AgentSource::BuiltIn]);
        let said = planner.describe_source();
        assert!(said.ends_with(".claude/agents/planner.md and the built-in one"), "{said}");
        assert!(matches!(source("mine"), AgentSource::User(_)));
        assert_eq!(loaded.problems.len(), 2, "{:?}", loaded.problems);
        assert!(loaded.problems[1].contains("rules call the session itself `main`"), "{:?}", loaded.problems);
        assert!(
            loaded.problems[0].contains("bad.md: tools: there is no tool `launch`"),
            "{:?}",
            loaded.problems
        );
        let missing = loaded.find("bad").unwrap_err().to_string();
        assert!(missing.contains("bad.md: tools") && missing.contains("there are planner"), "{missing}");
    }

    /// Says yes, and notes what was asked.
    #[derive(Default)]
    struct Yes(RefCell<Vec<String>>);

    impl Confirmations for Yes {
        fn confirm_trust(&self, path: &Path, keys: &[String], _: &[String]) -> std::io::Result<bool> {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            self.0.borrow_mut().push(format!("{name}: {}", keys.join(", ")));
            Ok(true)
        }

        fn confirm_commit(&self, _: &CommitRefusal, _: &str) -> std::io::Result<bool> {
            Ok(false)
        }

        fn confirm_older_undo(&self, _: &SessionSummary, _: &SessionSummary) -> std::io::Result<bool> {
            Ok(false)
        }

        fn confirm_unverified(&self, _: &SessionId) -> std::io::Result<bool> {
            Ok(false)
        }
    }

    #[test]
    fn the_question_about_a_projects_agent_names_its_tools_in_words() {
        let text = "---\ndescription: Helps.\ntools: [read_file, task]\n---\nHelp.";
        let definition = read_definition(text, "helper", DefinitionDialect::Own, &mut Vec::new()).unwrap();
        let powers = describe_permissions(&definition);
        assert_eq!(powers[1], ("tools".to_owned(), "read_file, task; in mode auto at most".to_owned()));
    }

    #[test]
    fn a_projects_agent_is_asked_about_once_for_each_version() {
        let place = Place::new();
        place.project(".journeyman", "helper.md", HELPER);
        let untrusted = place.load(false);
        assert!(untrusted.find("helper").is_err());
        assert!(untrusted.problems[0].contains("--trust-project"), "{:?}", untrusted.problems);
        let yes = Yes::default();
        let ask = || {
            let trust = AgentTrust { this_run: false, prompts: Some(&yes) };
            load_agents(&place.environment, &place.root, &trust).unwrap()
        };
        for _ in 0..2 {
            assert!(ask().find("helper").is_ok());
        }
        assert!(place.load(false).find("helper").is_ok(), "also where nobody can be asked");
        place.project(".journeyman", "helper.md", &HELPER.replace("You help", "You do as I say"));
        assert!(place.load(false).find("helper").is_err());
        assert!(ask().find("helper").is_ok());
        assert_eq!(*yes.0.borrow(), ["helper.md: the agent helper, tools, model, edits"; 2]);
    }

    #[test]
    fn hostile_files_are_left_out() {
        let place = Place::new();
        place.project(".journeyman", "good.md", HELPER);
        let agents = place.root.join(".journeyman/agents");
        std::os::unix::fs::symlink("/etc/hostname", agents.join("link.md")).unwrap();
        std::fs::create_dir(agents.join("directory.md")).unwrap();
        std::fs::write(agents.join("large.md"), vec![b'x'; 300_000]).unwrap();
        std::fs::write(agents.join("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            agents.join("fifo.md"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink(&agents, place.root.join(".claude")).unwrap();
        let loaded = place.load(true);
        let project = |agent: &&LoadedAgent| matches!(agent.source, AgentSource::Project(_));
        let names: Vec<&str> =
            loaded.agents.iter().filter(project).map(|agent| agent.definition.name.as_str()).collect();
        assert_eq!(names, ["good"]);
        let told = |name: &str| loaded.problems.iter().any(|problem| problem.contains(name));
        assert!(["link.md", "large.md", "binary.md"].into_iter().all(told), "{:?}", loaded.problems);
    }

    #[test]
    fn of_too_many_agents_the_first_by_name_are_offered_in_bounds() {
        let place = Place::new();
        for number in (0..900).rev() {
            let long = "words ".repeat(80);
            let text = format!("---\ndescription: {number} {long}\n---\nYou help.\n");
            place.home(".claude", &format!("helper{number:03}.md"), &text);
        }
        let loaded = place.load(false);
        assert_eq!(loaded.agents.len(), MAX_AGENTS + BUILT_IN_AGENTS.len());
        assert!(loaded.find("helper000").is_ok() && loaded.find("helper039").is_ok());
        assert!(loaded.find("helper040").is_err() && loaded.find("tester").is_ok());
        let [cut, left_out] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
        assert!(cut.contains("more than 500 names; the first by name count"), "{cut}");
        assert!(
            left_out.contains("helper040.md: it is left out, as are 459 other files after it"),
            "{left_out}"
        );
        let settings = journeyman_agent::RunSettings::default();
        let window = journeyman_protocol::Tokens(1_000_000);
        let tools = journeyman_agent::offered_tools(
            Registry::default(),
            &settings,
            Some(&loaded.to_agents()),
            window,
        );
        let task = tools.iter().find(|tool| tool.name == "task").unwrap();
        let size = serde_json::to_string(task).unwrap().len();
        assert!(size < 6_000 && task.description.contains("\n- tester: "), "{size}: {}", task.description);
    }
}
