//! The shape of `jm setup`.

use clap::Args;

use crate::args::ProjectArgs;

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Only show what would be run, and from where it would fetch
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Don't ask
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// As root, let the step also run in sandboxes other than the strongest
    #[arg(long)]
    pub(super) allow_root: bool,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
}
