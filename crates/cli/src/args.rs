//! The definition of the command line.

mod agents;
mod help;
mod numbers;
mod options;
mod policy;
mod project;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use journeyman_host::candidates::CandidateList;
use journeyman_host::delegates::AUTO_CLI;
use journeyman_host::export::ExportFormat;
use journeyman_host::new_task::TaskRequest;
use journeyman_host::renderer::ProgressDetail;
use journeyman_host::task_input::TaskArguments;
use journeyman_terminal::ColorChoice;
use journeyman_terminal::wrap::wrap_entries;

pub(crate) use agents::{AgentsArgs, AgentsCommand, GroupArgs, ListingArgs};
pub(crate) use numbers::{allow_negative_numbers, parse_checkpoint, parse_count, parse_named};
pub(crate) use options::{DeliveryArgs, LimitArgs, ModelArgs, OutputArgs, RunOptions};
pub(crate) use policy::{PolicyArgs, PolicyCheckArgs, PolicyCommand, PolicyPromoteArgs, PolicyTestArgs};
pub(crate) use project::{AnswerArgs, ProjectArgs};

/// The commands of `jm --help`, by what they are for.
pub(crate) const COMMAND_GROUPS: [(&str, &[&str]); 6] = [
    (
        "Work",
        &[
            "chat",
            "run",
            "plan",
            "delegate",
            "ask",
            "resume",
            "land",
            "discard",
            "candidates",
            "apply",
            "exec",
            "demo",
        ],
    ),
    ("Checks", &["check", "checks", "setup", "report"]),
    ("Sessions", &["sessions", "show", "compact", "fork", "snapshot", "export", "import", "delete"]),
    ("Changes", &["diff", "undo", "redo", "checkpoints"]),
    ("Code", &["search", "symbols", "refs", "deps", "impact", "map", "context", "why", "index"]),
    ("System", &["agents", "doctor", "config", "policy", "classify", "memory", "completions", "man", "help"]),
];

/// A coding agent that runs your tests before it says it's done.
#[derive(Debug, Parser)]
#[command(name = "jm", version, about, arg_required_else_help = true, max_term_width = help::MAX_COLUMNS)]
pub(crate) struct Cli {
    /// When to use colour: auto (only on a terminal), always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work with the agent in a conversation; `jm` alone does the same
    #[command(after_help = include_str!("../help/chat.txt"))]
    Chat(Box<ChatArgs>),
    /// Carry out a task and verify the change
    #[command(after_help = include_str!("../help/run.txt"))]
    Run(Box<RunArgs>),
    /// Plan a task, show or edit a plan; `jm run --plan` carries it out
    #[command(after_help = include_str!("../help/plan.txt"), args_conflicts_with_subcommands = true)]
    Plan(Box<PlanArgs>),
    /// Carry out a task with another coding CLI (claude, codex, gemini, opencode), and verify it
    #[command(after_help = include_str!("../help/delegate.txt"))]
    Delegate(Box<DelegateArgs>),
    /// Ask a question about this project; nothing is changed
    #[command(after_help = include_str!("../help/ask.txt"))]
    Ask(Box<AskArgs>),
    /// Finish a task that was cut off, or give a session a further message
    #[command(after_help = include_str!("../help/resume.txt"))]
    Resume(Box<ResumeArgs>),
    /// Apply the edits in a model's reply (standard input) to the files here
    #[command(after_help = include_str!("../help/apply.txt"))]
    Apply(crate::apply::ApplyArgs),
    /// Bring the index of this project up to date
    #[command(after_help = include_str!("../help/index.txt"))]
    Index(crate::index::IndexArgs),
    /// Find files, symbols or lines for a question, a name or an issue
    #[command(after_help = include_str!("../help/search.txt"))]
    Search(crate::index::SearchArgs),
    /// Show what a file defines
    #[command(after_help = include_str!("../help/symbols.txt"))]
    Symbols(crate::index::SymbolsArgs),
    /// Show where a name is defined and used
    #[command(after_help = include_str!("../help/refs.txt"))]
    Refs(crate::index::RefsArgs),
    /// Show what a file depends on, or what depends on it
    #[command(after_help = include_str!("../help/deps.txt"))]
    Deps(crate::index::DepsArgs),
    /// Show what a change could affect, and which tests to run
    #[command(after_help = include_str!("../help/impact.txt"))]
    Impact(crate::index::ImpactArgs),
    /// Show what matters most, within a budget of tokens
    #[command(after_help = include_str!("../help/map.txt"))]
    Map(crate::index::MapArgs),
    /// Show what the first request for a task would have, and why
    #[command(after_help = include_str!("../help/context.txt"))]
    Context(crate::index::ContextArgs),
    /// Explain the rank of a file for a query
    #[command(after_help = include_str!("../help/why.txt"))]
    Why(crate::index::WhyArgs),
    /// Run this project's own checks in the sandbox; no model is needed
    #[command(after_help = include_str!("../help/check.txt"))]
    Check(Box<crate::check::CheckArgs>),
    /// List this project's checks, and say why each was found or is left out
    #[command(after_help = include_str!("../help/checks.txt"))]
    Checks(AnswerArgs),
    /// Fetch what this project's checks need: packages, a virtual environment
    #[command(after_help = include_str!("../help/setup.txt"))]
    Setup(crate::setup::SetupArgs),
    /// Run a command in the sandbox
    #[command(after_help = include_str!("../help/exec.txt"))]
    Exec(Box<crate::exec::ExecArgs>),
    /// Watch a whole run on a built-in project, offline, with a scripted model
    Demo(DemoArgs),
    /// Check this machine: sandboxes, keys that are set, stored state
    #[command(after_help = include_str!("../help/doctor.txt"))]
    Doctor(DoctorArgs),
    /// List sessions, newest first
    #[command(after_help = include_str!("../help/sessions.txt"))]
    Sessions(SessionsArgs),
    /// Show what happened in a session
    #[command(after_help = include_str!("../help/show.txt"))]
    Show(ShowArgs),
    /// Write the report of a session's last task, for a pull request or for tools
    #[command(after_help = include_str!("../help/report.txt"))]
    Report(ReportArgs),
    /// Shorten the conversation of a session, or take that back
    #[command(after_help = include_str!("../help/compact.txt"))]
    Compact(Box<CompactArgs>),
    /// Undo the changes of a session
    #[command(after_help = include_str!("../help/undo.txt"))]
    Undo(UndoArgs),
    /// Reapply what the newest undo took back
    #[command(after_help = include_str!("../help/redo.txt"))]
    Redo(RedoArgs),
    /// List the checkpoints that `jm undo --to` can go back to
    #[command(after_help = include_str!("../help/checkpoints.txt"))]
    Checkpoints(CheckpointsArgs),
    /// Show what changed since a checkpoint, or between two
    #[command(after_help = include_str!("../help/diff.txt"))]
    Diff(DiffArgs),
    /// Bring the work in a session's copy into the project, in one step
    #[command(after_help = include_str!("../help/land.txt"))]
    Land(LandArgs),
    /// Remove the copy that a session worked in, with the work
    #[command(after_help = include_str!("../help/discard.txt"))]
    Discard(DiscardArgs),
    /// Compare the sessions that `jm run --candidates` gave one task to
    Candidates(CandidatesArgs),
    /// Make a new session from the beginning of another one
    #[command(after_help = include_str!("../help/fork.txt"))]
    Fork(ForkArgs),
    /// Name the current point of a session, to fork from it later
    #[command(after_help = include_str!("../help/snapshot.txt"))]
    Snapshot(SnapshotArgs),
    /// Write a session out: whole, for another program, or to be read
    #[command(after_help = include_str!("../help/export.txt"))]
    Export(ExportArgs),
    /// Import a session written by `jm export`
    #[command(after_help = include_str!("../help/import.txt"))]
    Import(ImportArgs),
    /// Remove sessions for good
    #[command(after_help = include_str!("../help/delete.txt"))]
    Delete(DeleteArgs),
    /// List the agents that a session may give tasks to, or show one
    #[command(after_help = include_str!("../help/agents.txt"), args_conflicts_with_subcommands = true)]
    Agents(Box<AgentsArgs>),
    /// Notes for later sessions: list, add, accept, remove
    #[command(after_help = include_str!("../help/memory.txt"))]
    Memory(crate::memory::MemoryArgs),
    /// Say what is allowed, asked about and denied, and why
    #[command(after_help = include_str!("../help/policy.txt"))]
    Policy(PolicyArgs),
    /// Classify a task as low or high risk, and why
    #[command(after_help = include_str!("../help/classify.txt"))]
    Classify(crate::classify::ClassifyArgs),
    /// Print the configuration and where each value comes from
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or that of a command: jm man run | man -l -
    Man {
        /// The command
        command: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// The first message, in quotes
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    /// Write lines and draw nothing again, as for a screen reader; without a terminal it is so
    /// anyway
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The task, in quotes; `-`, or nothing and a pipe, reads it from standard input. Data that is
    /// piped beside a task is attached to it
    #[arg(value_name = "TASK", conflicts_with = "file")]
    pub(crate) task: Option<String>,
    /// `-` waits for piped data, even if it starts late
    #[arg(value_name = "-", value_parser = parse_dash)]
    pub(crate) data: Option<()>,
    /// Read the task from a file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Run this agent instead of a session that takes any task; the task is its first input
    #[arg(long, value_name = "NAME", conflicts_with_all = ["candidates", "file", "data"])]
    pub(crate) agent: Option<String>,
    /// An input of the agent (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "agent")]
    pub(crate) input: Vec<String>,
    /// Carry out the newest plan of this directory, or that of this session; without a task, the
    /// plan's own
    #[arg(
        long,
        value_name = "SESSION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["agent", "file", "data", "candidates"]
    )]
    pub(crate) plan: Option<String>,
    /// True for a question, which no plan answers.
    #[arg(skip)]
    pub(crate) asks: bool,
    /// Give the task to this coding CLI: claude, codex, gemini, opencode, one of your
    /// configuration, or auto for the first one installed; the same as jm delegate. --model is the
    /// CLI's own then
    #[arg(long, value_name = "NAME", conflicts_with_all = ["agent", "base_url"])]
    pub(crate) with: Option<String>,
    /// Run the task N times in parallel, or by each of these CLIs (`own` is your model), each
    /// in its own copy; the smallest verified change is offered
    #[arg(long, value_name = "N|NAMES", conflicts_with = "with")]
    pub(crate) candidates: Option<CandidateList>,
    /// An image that goes with the task: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "with", "candidates"])]
    pub(crate) image: Vec<PathBuf>,
    /// A file that you have open, as an editor knows: it is shown like one that the task names
    /// (repeatable, the likeliest first)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "with"])]
    pub(crate) open: Vec<PathBuf>,
    /// Land the best candidate without asking, if it is verified
    #[arg(long, requires = "candidates", conflicts_with = "no_land")]
    pub(crate) land: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl RunArgs {
    /// Returns the request for the task.
    pub(crate) fn into_request(self) -> TaskRequest {
        TaskRequest {
            run: journeyman_host::RunOptions {
                agent: self.agent,
                open_files: self.open,
                ..self.options.to_options()
            },
            delivery: self.options.delivery.to_options(),
            directory: self.options.directory,
            task: TaskArguments { task: self.task, file: self.file, wants_data: self.data.is_some() },
            inputs: self.input,
            plan: self.plan,
            asks: self.asks,
            cli: self.with,
            candidates: self.candidates,
            images: self.image,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PlanCommand>,
    /// The task, in quotes; `-`, or nothing and a pipe, reads it from standard input
    #[arg(value_name = "TASK")]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DelegateArgs {
    /// The task, in quotes; `-`, or nothing and a pipe, reads it from standard input
    #[arg(value_name = "TASK", conflicts_with = "file")]
    pub(crate) task: Option<String>,
    /// `-` waits for piped data, even if it starts late
    #[arg(value_name = "-", value_parser = parse_dash)]
    pub(crate) data: Option<()>,
    /// Read the task from a file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// The CLI: claude, codex, gemini, opencode, or one of your configuration; auto is the first
    /// one installed that has a login
    #[arg(long, value_name = "NAME", default_value = AUTO_CLI)]
    pub(crate) to: String,
    /// Run it without confinement and checks, in a fresh directory or in that of -C;
    /// only for a task of low risk
    #[arg(long)]
    pub(crate) direct: bool,
    /// List the CLIs: installed, version, login, and what they may reach
    #[arg(long, conflicts_with_all = ["task", "direct", "file"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Print a plan
    Show {
        /// The session that has it; without one, this directory's newest plan
        session: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Print the TOML that `jm plan edit --stdin` takes
        #[arg(long, conflicts_with = "json")]
        toml: bool,
        #[command(flatten)]
        project: ProjectArgs,
    },
    /// Change a plan in $EDITOR, as TOML
    Edit {
        /// The session that has it; without one, this directory's newest plan
        session: Option<String>,
        /// Read the changed plan, as `jm plan show --toml` prints it, from standard input instead
        #[arg(long)]
        stdin: bool,
        #[command(flatten)]
        project: ProjectArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// The question, in quotes; `-`, or nothing and a pipe, reads it from standard input. Data that
    /// is piped beside a question is attached to it
    #[arg(value_name = "QUESTION")]
    question: Option<String>,
    /// `-` waits for piped data, even if it starts late
    #[arg(value_name = "-", value_parser = parse_dash)]
    data: Option<()>,
    /// An image that goes with the question: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// A file that you have open: it is shown like one that the question names (repeatable)
    #[arg(long, value_name = "FILE")]
    open: Vec<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Let the project's own configuration run code and send data, this once
    #[arg(long)]
    trust_project: bool,
}

impl AskArgs {
    /// Returns the run in plan mode that answers the question.
    pub(crate) fn into_run(self) -> RunArgs {
        let Self { question, data, image, open, limits, output, directory, model, trust_project } = self;
        let delivery = DeliveryArgs { in_place: true, ..DeliveryArgs::default() };
        let mode = Some("plan".to_owned());
        let options = RunOptions {
            directory,
            model,
            mode,
            limits,
            output,
            trust_project,
            delivery,
            ..RunOptions::default()
        };
        RunArgs { task: question, data, image, open, asks: true, options, ..RunArgs::default() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session's id, or its beginning; without one, this directory's newest
    pub(crate) session: Option<String>,
    /// The message for the session; `-` reads it from standard input
    pub(crate) message: Option<String>,
    /// An image that goes with the message: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// This directory's newest session; what follows is the message
    #[arg(long)]
    pub(crate) last: bool,
    /// Give up the task that was cut off instead of finishing it
    #[arg(long)]
    pub(crate) close: bool,
    /// Land the work once it is verified, even if the run used --no-land or --candidates
    #[arg(long, conflicts_with_all = ["no_land", "in_place"])]
    pub(crate) land: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl ResumeArgs {
    /// Returns true if nothing says what is to be done in the session: the person will.
    pub(crate) fn is_conversation(&self) -> bool {
        let output = &self.options.output;
        let is_result = output.json || output.stream_json || output.detail() != ProgressDetail::Normal;
        let is_plain = !(self.close || self.land || is_result);
        // A task that was cut off is finished by `jm resume ID`, as before.
        is_plain && !self.last && self.session.is_none() && self.message.is_none() && self.image.is_empty()
    }
}

/// Parses the argument that stands for standard input.
pub(crate) fn parse_dash(argument: &str) -> Result<(), String> {
    if argument == "-" { Ok(()) } else { Err("only `-` can follow, which stands for piped data".to_owned()) }
}

#[derive(Debug, Args)]
pub(crate) struct LandArgs {
    /// The session's id, or its beginning; default: this directory's only session with kept work
    pub(crate) session: Option<String>,
    /// The resolution of files that both you and the session changed
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OnConflictArg::Refuse)]
    pub(crate) on_conflict: OnConflictArg,
    /// Only show what would be landed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Commit it, with your git and signing, and your hooks in the sandbox
    #[arg(long)]
    pub(crate) commit: bool,
    /// Commit it on this new branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// The commit's message [built-in: from the task, the model's words and the checks]
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Commit without running hooks
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Land it although nothing verified it, or what came of merging it with your changes
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Let the project's own configuration say which checks run, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The resolution of files that both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnConflictArg {
    /// Nothing at all is landed
    Refuse,
    /// They get conflict markers
    Markers,
    /// They stay as you have them
    Mine,
    /// They become as the session has them
    Theirs,
}

#[derive(Debug, Args)]
pub(crate) struct DiscardArgs {
    /// The session's id, or its beginning; default: this directory's only session with kept work
    pub(crate) session: Option<String>,
    /// All candidates of this session's task whose work is still kept
    #[arg(long, value_name = "SESSION", conflicts_with = "session")]
    pub(crate) all: Option<String>,
    /// Don't ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CandidatesArgs {
    /// The session whose task it is, or one of its candidates; without one, this directory's newest
    /// with candidates
    pub(crate) session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the project that the demo works on, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Mend what can be mended of damaged state, and say what is lost; damaged files are kept under
    /// another name
    #[arg(long, conflicts_with = "json")]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// As root, look as `jm run --allow-root` would
    #[arg(long)]
    pub(crate) allow_root: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Those of every project, not only of this directory
    #[arg(long)]
    pub(crate) all: bool,
    /// Maximum number that is listed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count::<usize>)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    #[arg(default_value = "last")]
    pub(crate) session: String,
    /// Print every event as one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on showing what happens for as long as another process works on it
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the conversation as the model saw it before it was shortened last, as Markdown
    #[arg(long, conflicts_with_all = ["json", "follow"])]
    pub(crate) before_compaction: bool,
    /// List the checks of every round, with the tree that each ran on, and say if the proof holds
    #[arg(long, conflicts_with_all = ["follow", "before_compaction"])]
    pub(crate) evidence: bool,
    /// List the session's agents and their own agents, with how each ended
    #[arg(long, conflicts_with_all = ["follow", "before_compaction", "evidence"])]
    pub(crate) tree: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    #[arg(default_value = "last")]
    pub(crate) session: String,
    /// Write SARIF 2.1.0 of the diagnostics and findings that are left, instead of Markdown
    #[arg(long)]
    pub(crate) sarif: bool,
    /// A new file for it [built-in: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    #[arg(default_value = "last")]
    pub(crate) session: String,
    /// Take the newest compaction back
    #[arg(long)]
    pub(crate) undo: bool,
    /// The session's directory instead of its own, or of the current one for `last`
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Let the project's own configuration run code and send data, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    pub(crate) session: String,
    /// Where the new one begins: the number of an entry, or a snapshot's name [built-in: the end]
    #[arg(long, value_name = "SEQ|NAME")]
    pub(crate) at: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    pub(crate) session: String,
    /// The name, such as before-the-rewrite. One that is there already moves here
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    pub(crate) session: String,
    /// The format of the file
    #[arg(long, value_parser = parse_named(&ExportFormat::NAMED), default_value = "jsonl", hide_possible_values = true)]
    pub(crate) format: ExportFormat,
    /// A new file for it, readable by you alone [built-in: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file that `jm export` wrote; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Under a new id, also where the session is here already
    #[arg(long)]
    pub(crate) copy: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The sessions' ids, or their beginnings
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// Don't ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The session's id, or its beginning; without one, the newest that changed something here
    pub(crate) session: Option<String>,
    /// Take back everything since this checkpoint, whichever session changed it
    #[arg(long, value_name = "CHECKPOINT", value_parser = parse_checkpoint, conflicts_with = "session")]
    pub(crate) to: Option<u64>,
    /// Work in this directory instead of the session's own
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// The session's id, or its beginning; without one, what the newest undo took back
    pub(crate) session: Option<String>,
    /// Work in this directory instead of the session's own, or the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    /// Maximum number that is listed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count::<usize>)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The checkpoint to compare with [built-in: the one before the newest run]
    #[arg(value_name = "A", value_parser = parse_checkpoint)]
    pub(crate) from: Option<u64>,
    /// A later checkpoint [built-in: the files as they are]
    #[arg(value_name = "B", value_parser = parse_checkpoint)]
    pub(crate) to: Option<u64>,
    /// Only how much, a line a file
    #[arg(long)]
    pub(crate) stat: bool,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArgs,
    /// Every key there is, with what it takes and who may set it
    #[arg(long)]
    pub(crate) keys: bool,
}

/// Returns the command line's definition.
pub(crate) fn define_command() -> clap::Command {
    allow_negative_numbers(Cli::command())
}

/// Returns the same with its help laid out: commands in groups, and texts as wide as the terminal.
pub(crate) fn command_with_grouped_help() -> clap::Command {
    let columns = help::help_columns();
    let mut command = Cli::command();
    // The definition has its `help` command only once it is built.
    command.build();
    let mut groups = String::new();
    for (title, names) in COMMAND_GROUPS {
        groups.push_str(&format!("\n{title}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    let begin = wrap_entries(include_str!("../help/begin.txt"), columns);
    let groups = wrap_entries(&groups, columns);
    help::wrap_after_help(define_command(), columns).help_template(format!(
        "{{about}}\n\n{begin}\n\n{{usage-heading}} {{usage}}\n{groups}\n\nOptions:\n{{options}}\n"
    ))
}

/// Prints a completion script.
pub(crate) fn print_completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jm", &mut script);
    crate::output::write_stdout(&String::from_utf8_lossy(&script));
}
