//! The tools of a session, as the configuration wants them.

use std::path::PathBuf;
use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_tools::web::{SearchEngine, WebFetch, WebSearch};
use journeyman_tools::{CommandTool, Registry};

use crate::config::{Config, Environment};
use crate::delegates::offered_tool;
use crate::memory::{Memory, Remember};
use crate::skills::{SkillTool, Skills};
use crate::template::MakeTools;

/// The parts of a session that its tools work with.
pub(crate) struct ToolParts {
    pub(crate) root: PathBuf,
    /// The project's state directory.
    pub(crate) project_state: PathBuf,
    pub(crate) memory: Memory,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) engine: Option<SearchEngine>,
    pub(crate) skills: Arc<Skills>,
}

/// Returns what makes the tools of each session: the built-in ones, those that the configuration
/// defines, and the skills there are.
pub(crate) fn session_tools(config: &Config, environment: &Environment, parts: ToolParts) -> MakeTools {
    let commands = config.command_tools.clone();
    let delegate_tool = offered_tool(config, environment, &parts.root, &parts.project_state);
    Arc::new(move || {
        let mut registry = Registry::with_builtin_at(&parts.root);
        registry.add(Box::new(Remember::new(parts.memory.clone(), Arc::clone(&parts.redactor))));
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
