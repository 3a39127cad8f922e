//! The shape of `jm check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use journeyman_host::RunOptions;
use journeyman_host::checks::CheckSelection;
use journeyman_protocol::CheckKind;

use crate::args::ProjectArgs;

/// A kind of check, as people name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckKindArg {
    /// Types and syntax
    Types,
    /// Style and likely mistakes
    Lint,
    /// The build
    Build,
    /// Tests
    #[value(alias = "test")]
    Tests,
    /// Known vulnerabilities, and secrets
    Security,
}

impl CheckKindArg {
    const fn to_kind(self) -> CheckKind {
        match self {
            Self::Types => CheckKind::Types,
            Self::Lint => CheckKind::Lint,
            Self::Build => CheckKind::Build,
            Self::Tests => CheckKind::Test,
            Self::Security => CheckKind::Security,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Only the checks that matter for these files and directories
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only checks of these kinds, separated by commas
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kind: Vec<CheckKindArg>,
    /// A shell command in place of the checks that are found (repeatable)
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// Only the checks that matter for files that differ from the last commit
    #[arg(long)]
    pub(crate) changed: bool,
    /// First let linters and formatters repair what they can; `jm undo` takes it back
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also look for known vulnerabilities, on the network of the registries alone
    #[arg(long)]
    pub(crate) security: bool,
    /// Also run checks that `jm checks` lists as not run, such as tests in a browser
    #[arg(long)]
    pub(crate) all: bool,
    /// Run again what a change affects, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print one JSON object; with --watch one a line for every round
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no notes, only results
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Let the project's own configuration say which checks run, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// As root, let checks also run in sandboxes other than the strongest
    #[arg(long)]
    pub(crate) allow_root: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}

impl CheckArgs {
    pub(super) fn to_selection(&self) -> CheckSelection {
        CheckSelection {
            kinds: self.kind.iter().map(|kind| kind.to_kind()).collect(),
            commands: self.check.clone(),
            security: self.security,
            all: self.all,
            changed: self.changed,
            paths: self.paths.clone(),
            fix: self.fix,
        }
    }

    pub(super) fn to_options(&self) -> RunOptions {
        // Commands on the line are the user's own: nothing of the project's has a say in them.
        let trust_project = self.trust_project || !self.check.is_empty();
        RunOptions { trust_project, allow_root: self.allow_root, ..RunOptions::default() }
    }
}
