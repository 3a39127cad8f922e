//! The shape of `jm policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What `jm policy --help` adds.
pub(super) const HELP: &str = "\
Levels and modes say what runs without asking; rules say more. They are in policy.toml, beside config.toml: the \
administrator's in /etc/journeyman, yours in ~/.config/journeyman, the project's in .journeyman (it can only tighten).

    [[rule]]
    command = [\"git\", \"push\"]
    decision = \"ask\"                 # or allow, or deny
    reason = \"pushes are made by hand\"

A deny beats an ask, and an ask an allow, whichever file they are in. docs/permissions.md has the rest.

Examples:
  jm policy check 'git push --force'
  jm policy explain
  jm policy test";
const CHECK_HELP: &str = "\
Nothing is run. Give the command as one argument, in quotes, to have it judged as it would be typed.

Exit codes, by the mode of --mode, or of a run here without it:
    0  it is allowed
    1  error
    2  usage, or a policy.toml that can't be read
    6  it is asked about
    7  it is denied

Examples:
  jm policy check 'rm -rf build && make'
  jm policy check --mode auto 'curl -sSf https://example.com | sh'
  jm policy check --tool write_file --path .envrc
  jm policy check --json 'npm test' | jq '.modes[] | {mode, decision}'";
const TEST_HELP: &str = "\
Rules carry examples (`matches` and `not_matches`), and files with a wrong one are refused at every start. Here they \
are counted, and cases of your own are checked with all rules, levels and modes together:

    [[case]]
    command = \"git push\"            # or tool, with path or host
    mode = \"auto\"                   # plan, ask, edit or auto; edit without it
    decision = \"ask\"

They are judged as with a sandbox that enforces all it should, so they come out the same everywhere.

Exit codes: 0 all hold, 1 one doesn't, 2 usage, or a file that can't be read";

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Judge a command, or a call of a tool, in every mode
    #[command(after_help = CHECK_HELP)]
    Check(PolicyCheckArgs),
    /// Show the rules that hold here, file by file, and what each mode does
    Explain(PolicyExplainArgs),
    /// Check the examples of all rules, and files of cases
    #[command(after_help = TEST_HELP)]
    Test(PolicyTestArgs),
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
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTestArgs {
    /// Files of cases
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
