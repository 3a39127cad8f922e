//! The shape of `jm policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::project::{AnswerArgs, ProjectArgs};

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Judge a command, or a call of a tool, in every mode
    #[command(after_help = include_str!("../../help/policy-check.txt"))]
    Check(PolicyCheckArgs),
    /// Show the rules that hold here, file by file, and what each mode does
    Explain(AnswerArgs),
    /// Check the examples of all rules, and files of cases
    #[command(after_help = include_str!("../../help/policy-test.txt"))]
    Test(PolicyTestArgs),
    /// Turn prohibitions in AGENTS.md and similar files into rules and checks
    #[command(after_help = include_str!("../../help/policy-promote.txt"))]
    Promote(PolicyPromoteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyPromoteArgs {
    /// Write them into the project's .journeyman/policy.toml and config.toml
    #[arg(long)]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// The shell command
    #[arg(value_name = "CMD", allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) words: Vec<String>,
    /// Judge it in this mode alone
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// The tool that is called [built-in: run_command]
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// A file that it writes, from the project's root (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Vec<String>,
    /// A host that it reaches (repeatable)
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// The sub-agent that calls it
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTestArgs {
    /// Files of cases
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}
