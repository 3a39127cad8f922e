//! The flags of commands that are about one project.

use std::path::PathBuf;

use clap::Args;

/// The flag of commands that work on a project.
#[derive(Debug, Args)]
pub(crate) struct ProjectArgs {
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// The flags of commands that answer a question about a project.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}
