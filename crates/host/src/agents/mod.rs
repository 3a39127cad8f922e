//! Agents from Markdown files: the built-in ones, the user's, and the project's.

mod file;
mod file_error;
mod front_matter;
mod levels;
mod run;
mod tools;
mod tree;

pub use file_error::AgentFileError;
pub use levels::{AgentSource, AgentTrust, LoadedAgent, LoadedAgents, load_agents};
pub use run::{AgentRun, parse_inputs};
pub use tree::{AgentTree, agent_tree};
