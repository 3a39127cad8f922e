//! Agents from Markdown files: the built-in ones, the user's, and the project's.

mod file;
mod file_error;
mod foreign;
mod front_matter;
mod group;
mod levels;
mod run;
mod tools;
mod tree;

pub use file_error::AgentFileError;
pub use group::{check_group, group_of, read_group};
pub use levels::{AgentSource, AgentTrust, LoadedAgent, LoadedAgents, load_agents};
pub use run::{AgentRun, parse_inputs};
pub use tools::{describe_edits, describe_tools};
pub use tree::{AgentTree, agent_tree};
