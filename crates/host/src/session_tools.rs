//! Makes the configured tools of a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_delegate::DelegateTool;
use journeyman_policy::secrets::Redactor;
use journeyman_tools::web::{SearchEngine, WebFetch, WebSearch};
use journeyman_tools::{CommandTool, Registry};

use crate::config::{Config, Environment};
use crate::delegates::{find_delegates, parse_model_name};
use crate::memory::{NoteFile, RememberTool};
use crate::skills::{SkillTool, Skills};
use crate::template::MakeTools;

/// The directory with the CLIs' home directories, in a project's state directory.
const CLI_HOMES_DIRECTORY: &str = "delegates";

/// The parts of a session that its tools work with.
pub(crate) struct ToolParts {
    pub(crate) root: PathBuf,
    /// The project's state directory.
    pub(crate) project_state: PathBuf,
    pub(crate) memory: NoteFile,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) engine: Option<SearchEngine>,
    pub(crate) skills: Arc<Skills>,
}

/// Returns a factory of a session's tools: for a model that is a CLI only the delegate tool, else
/// built-in tools, command tools and skills.
pub(crate) fn session_tools(
    config: &Config,
    environment: &Environment,
    model: &str,
    parts: ToolParts,
) -> MakeTools {
    if let Some(cli) = parse_model_name(model) {
        return delegate_only_tools(config, environment, &parts.root, &parts.project_state, cli);
    }
    let commands = config.command_tools.clone();
    let delegate_tool = delegate_tool_factory(config, environment, &parts.root, &parts.project_state);
    Arc::new(move || {
        let mut registry = Registry::with_builtin_at(&parts.root);
        registry.add(Box::new(RememberTool::new(parts.memory.clone(), Arc::clone(&parts.redactor))));
        for definition in &commands {
            // The configuration has been checked with the same definitions.
            if let Ok(tool) = CommandTool::new(definition.clone(), &parts.root) {
                registry.add(Box::new(tool));
            }
        }
        if let Some(tool) = SkillTool::new(Arc::clone(&parts.skills)) {
            registry.add(Box::new(tool));
        }
        if let Some(make) = &delegate_tool {
            registry.add(Box::new(make()));
        }
        registry.add(Box::new(WebFetch::default()));
        if let Some(engine) = &parts.engine {
            registry.add(Box::new(WebSearch::new(engine.clone())));
        }
        registry
    })
}

/// Returns a factory of the only tool of a session that delegates everything to a CLI.
pub(crate) fn delegate_only_tools(
    config: &Config,
    environment: &Environment,
    root: &Path,
    project_state: &Path,
    (cli, model): (&str, Option<&str>),
) -> MakeTools {
    let delegates = find_delegates(config, environment, Some(root));
    let own_model = model.map(str::to_owned);
    let delegates = delegates.retain_named(&[cli.to_owned()]).with_model(own_model);
    let homes = cli_homes_directory(project_state);
    Arc::new(move || {
        let mut registry = Registry::default();
        registry.add(Box::new(DelegateTool::new(delegates.clone(), homes.clone())));
        registry
    })
}

/// Returns a factory of the delegate tool, if the configuration offers a CLI to other models.
fn delegate_tool_factory(
    config: &Config,
    environment: &Environment,
    root: &Path,
    project_state: &Path,
) -> Option<impl Fn() -> DelegateTool + Send + Sync + 'static> {
    if config.delegate_tool.is_empty() {
        return None;
    }
    let delegates = find_delegates(config, environment, Some(root)).retain_named(&config.delegate_tool);
    let homes = cli_homes_directory(project_state);
    Some(move || DelegateTool::new(delegates.clone(), homes.clone()))
}

fn cli_homes_directory(project_state: &Path) -> PathBuf {
    project_state.join(CLI_HOMES_DIRECTORY)
}
