//! Agents from Markdown files: the built-in ones, the user's, and the project's.

mod definition_file;
mod file_error;
mod foreign_fields;
mod front_matter;
mod group;
mod json;
mod loader;
mod run;
mod tools;
mod tree;

pub use file_error::AgentFileError;
pub use group::{build_group, check_group, read_group_file};
pub use json::sampling_fields;
pub use loader::{AgentSource, AgentTrust, LoadedAgent, LoadedAgents, load_agents};
pub use run::{AgentRun, parse_inputs};
pub use tools::{describe_edit_scope, describe_limits, describe_tools};
pub use tree::{AgentTree, load_agent_tree};
