//! The arguments of `jm agents`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::RunOptions;
use super::project::ProjectArgs;

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
    #[command(flatten)]
    pub(crate) listing: ListingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListingArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Also list the project's agents that nobody trusts yet
    #[arg(long)]
    pub(crate) trust_project: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Show what an agent takes, gives and may do, and its prompts
    Show {
        /// The agent's name
        name: String,
        #[command(flatten)]
        listing: ListingArgs,
    },
    /// Run several agents at once, who send each other messages by name
    Run(Box<GroupArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// The agents, each by its name, or as NAME=AGENT to have another name in the group
    #[arg(value_name = "AGENT", required_unless_present = "group")]
    pub(crate) agents: Vec<String>,
    /// The task of all of them
    #[arg(long, short, value_name = "TASK", required_unless_present = "group", conflicts_with = "group")]
    pub(crate) task: Option<String>,
    /// Read the members, their tasks and reminders from a file
    #[arg(long, value_name = "FILE", conflicts_with = "agents")]
    pub(crate) group: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}
