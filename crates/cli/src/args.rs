//! The command line's shape.

mod policy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use journeyman_host::DeliveryOptions;

pub(crate) use policy::{PolicyArgs, PolicyCheckArgs, PolicyCommand, PolicyExplainArgs, PolicyTestArgs};

/// What `jm run --help` and `jm resume --help` add about their end.
const EXIT_CODES: &str = "\
Exit codes:
    0  verified: every check that ran passed, and the change is in place (in its copy with --no-land, and
       where candidates are kept)
    1  error
    2  usage: a wrong flag, an unknown model, a missing key, a bad configuration
    3  finished, but checks fail
    4  finished, and nothing verified it (no check was found or could run, nothing changed, or a command did what
       it may not)
    5  a limit was reached: turns, time, budget, or a run that went in circles
    6  a permission was needed and there was nobody to ask
    9  verified in its copy, and not landed: you changed the same lines meanwhile, or what came of merging both
       is not verified
  130  interrupted
";
/// What `jm doctor --help` adds about its end.
const DOCTOR_HELP: &str = "\
Exit codes: 0 all is well, 1 no sandbox or state directory can be used, 2 usage, 8 something that is stored is damaged
";
const RUN_EXAMPLES: &str = "
Examples:
  jm run \"make the date parser accept ISO weeks\"
  jm run --isolate --commit \"speed up the index\"
  jm run --candidates 3 \"fix the flaky retry test\"
  jm run --check 'make test' --model openai/gpt-5 \"fix the flaky retry test\"
  jm run --base-url http://127.0.0.1:8080 --wire chat --model local \"explain src/lib.rs\"
  git diff main | jm run --json -

The result goes to stdout, progress to stderr.";
const RESUME_HELP: &str = "\
A run that was killed, or whose machine went down, goes on where it was. What it had done is not done again; the \
call that was running then is looked at first, and the model is told whether it took effect. Where no task was cut \
off, give a message: the session answers it with all that was said before in mind.

Model, mode, checks and the model's address are those that the session had, unless flags say otherwise. Limits come \
from your configuration and flags. The session works in its own directory, wherever you are (-C for another).

Examples:
  jm resume                            finish what was cut off in this directory
  jm resume --last \"now add a test\"    go on with this directory's newest session
  jm resume 01k3 --model openai/gpt-5  finish it with another model
  jm resume 01k3 --close               give the task up, keep the session

";
const SESSIONS_HELP: &str = "\
A session is running (some process has it), cut off (its process is gone; `jm resume` finishes it), forked or \
imported and not opened since, or it says how its last task ended: verified, checks fail, unverified, limit, \
permission needed, interrupted, error.";
const SHOW_HELP: &str = "\
Examples:
  jm show                 this directory's newest session
  jm show -f              watch one that runs elsewhere
  jm show 01k3 --json | jq 'select(.event == \"tool_end\")'";
const UNDO_HELP: &str = "\
What edits and commands changed goes back; what you changed since stays, and is named (exit code 1 then). A session \
that was cut off can be taken back too, one that runs can't. Files that git ignores, and everything of git's own, are \
left alone. `jm redo` takes an undo back.

With --to, everything that any session changed since the checkpoint goes back; `jm checkpoints` lists them.

Examples:
  jm undo                 the newest run in this directory
  jm undo 01k3            one session, wherever it worked
  jm undo --to 12         back to how the files were at checkpoint 12";
const REDO_HELP: &str = "\
As often as there were undos, the newest first, as long as nothing else was changed by a session since. What you \
changed since stays, and is named (exit code 1 then).

Examples:
  jm undo && jm redo      nothing has happened";
const CHECKPOINTS_HELP: &str = "\
A checkpoint says how all files were that git doesn't ignore; one is made before every run, and before every step of it that may change something. Newest first: its number, \
when it was made, by which session, how many changes came between it and the next one and weren't taken back.

What a project's checkpoints and changes need is kept up to 1 GiB, then the oldest go.

Examples:
  jm checkpoints --limit 5
  jm diff 12              what differs from checkpoint 12
  jm undo --to 12         back to it";
const DIFF_HELP: &str = "\
Without a number: what changed since the newest run began, whoever changed it. Git isn't asked: files \
that it doesn't track are in it too. `git apply` takes the result.

Examples:
  jm diff                 what the newest run and you changed since it began
  jm diff 12              from checkpoint 12 to the files as they are
  jm diff 12 15 --stat    between two checkpoints, a line a file
  jm diff --json | jq '.files[].path'";
const LAND_HELP: &str = "\
What you changed meanwhile stays. Files that both changed are merged line by line, and the checks pass on the merged \
copy before anything is landed. Where that can't be done, nothing is landed (exit code 9) and the files are named. \
What was landed can be taken back with `jm undo`.

Exit codes: 0 landed, 1 error, 2 usage, 6 nothing verified it and nobody could be asked, 9 conflict or failed checks

Examples:
  jm land 01k3 --dry-run               show what it would change
  jm land 01k3
  jm land 01k3 --branch fix-parser
  jm land 01k3 --on-conflict theirs";
const DISCARD_HELP: &str = "\
What a session changed in its copy is gone then. Its log stays.

Examples:
  jm discard 01k3
  jm discard --all 01k3 --yes          every candidate of a task that is still kept";
const FORK_HELP: &str = "\
The new session knows all that was said up to the place, and goes its own way from there; the old one and your files \
stay as they are. `jm resume` goes on with it.

A place is the number of an entry (`seq` in `jm show --json`) or a name that `jm snapshot` gave. The fork begins at \
the newest place up to there at which every call was answered.

Examples:
  jm fork last                          from its end
  jm fork 01k3 --at 240
  jm fork 01k3 --at before-the-rewrite";
const SNAPSHOT_HELP: &str = "\
It names a place in the session, not the state of your files: `jm undo` and git are for those.

Examples:
  jm snapshot last before-the-rewrite
  jm fork last --at before-the-rewrite";
const EXPORT_HELP: &str = "\
Formats:
  jsonl      the whole log, an entry a line, byte for byte; `jm import` takes it
  anthropic  what was said, as the Anthropic Messages API has it: model, system, messages
  openai     the same for OpenAI Chat Completions: model, messages
  markdown   what was said, to be read

Your keys and other known secrets are in none of them: they never got into the log. What the files and commands said \
that the model looked at is.

Examples:
  jm export last -o session.jsonl
  jm export 01k3 --format anthropic | jq '.messages | length'
  jm export last --format markdown > talk.md";
const IMPORT_HELP: &str = "\
All of it is taken in or nothing. Take in only what you trust: what was allowed in a session stays allowed in it. It \
is opened with your own model and mode, not with those it had.

Examples:
  jm import session.jsonl
  ssh elsewhere jm export 01k3 | jm import -";
const DELETE_HELP: &str = "\
What a session changed in your project stays as it is; take it back before with `jm undo`, if you want to.

Examples:
  jm delete 01k3
  jm delete --yes 01k3 01k4";

/// A coding agent that lands only verified change.
#[derive(Debug, Parser)]
#[command(name = "jm", version, about, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take a task to a verified change in this directory
    #[command(after_help = format!("{EXIT_CODES}{RUN_EXAMPLES}"))]
    Run(Box<RunArgs>),
    /// Go on with a session: finish a task that was cut off, or give it a further message
    #[command(after_help = format!("{RESUME_HELP}{EXIT_CODES}"))]
    Resume(Box<ResumeArgs>),
    /// Apply the edits in a model's reply, read from standard input, to the files here
    #[command(after_help = crate::apply::HELP)]
    Apply(crate::apply::ApplyArgs),
    /// Bring the index of this project up to date
    #[command(after_help = crate::index::HELP)]
    Index(crate::index::IndexArgs),
    /// Find the files, symbols or lines that a question, a name or an issue is about
    #[command(after_help = crate::index::SEARCH_HELP)]
    Search(crate::index::SearchArgs),
    /// Show what a file defines
    #[command(after_help = crate::index::SYMBOLS_HELP)]
    Symbols(crate::index::SymbolsArgs),
    /// Show where a name is defined and used
    #[command(after_help = crate::index::REFS_HELP)]
    Refs(crate::index::RefsArgs),
    /// Show what a file depends on, or what depends on it
    #[command(after_help = crate::index::DEPS_HELP)]
    Deps(crate::index::DepsArgs),
    /// Show what a change may matter for, and the tests to run
    #[command(after_help = crate::index::IMPACT_HELP)]
    Impact(crate::index::ImpactArgs),
    /// Show what matters most, within a budget of tokens
    #[command(after_help = crate::index::MAP_HELP)]
    Map(crate::index::MapArgs),
    /// Say what speaks for a file, for a query
    #[command(after_help = crate::index::WHY_HELP)]
    Why(crate::index::WhyArgs),
    /// Run a command in the sandbox
    #[command(after_help = crate::exec::HELP)]
    Exec(Box<crate::exec::ExecArgs>),
    /// Watch the whole way on a small built-in project, offline, with a scripted model
    Demo(DemoArgs),
    /// Say what is installed, what the sandbox enforces here, which keys are set, and whether anything stored is damaged
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// List sessions, newest first
    #[command(after_help = SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// Show what happened in a session
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// Take back what a session changed
    #[command(after_help = UNDO_HELP)]
    Undo(UndoArgs),
    /// Do again what the newest undo took back
    #[command(after_help = REDO_HELP)]
    Redo(RedoArgs),
    /// List the moments that can be gone back to
    #[command(after_help = CHECKPOINTS_HELP)]
    Checkpoints(CheckpointsArgs),
    /// Show what changed since a checkpoint, or between two
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Bring the work that a session left in its copy into the project, in one step
    #[command(after_help = LAND_HELP)]
    Land(LandArgs),
    /// Remove the copy that a session worked in, with the work
    #[command(after_help = DISCARD_HELP)]
    Discard(DiscardArgs),
    /// Compare the sessions that `jm run --candidates` gave one task to
    Candidates(CandidatesArgs),
    /// Make a new session from the beginning of another one
    #[command(after_help = FORK_HELP)]
    Fork(ForkArgs),
    /// Give the place where a session stands now a name, to fork from later
    #[command(after_help = SNAPSHOT_HELP)]
    Snapshot(SnapshotArgs),
    /// Write a session out: whole, for another program, or to be read
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Take in a session that `jm export` wrote
    #[command(after_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// Remove sessions for good
    #[command(after_help = DELETE_HELP)]
    Delete(DeleteArgs),
    /// Say what is allowed, asked about and denied, and why
    #[command(after_help = policy::HELP)]
    Policy(PolicyArgs),
    /// Print the effective configuration and where each value comes from
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// Where and with which model: shared by everything that starts a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, as provider/name (anthropic/…, openai/…, gemini/…, ollama/…, …)
    #[arg(long, short, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// An endpoint without any configuration; goes with --wire. Its key, if it wants one: $JM_API_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The protocol of --base-url: anthropic, responses, chat or gemini
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) wire: Option<String>,
    /// Write every exchange with the model to this file (keys are never in it)
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Play a recording back instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TASK", required_unless_present = "file", conflicts_with = "file")]
    pub(crate) task: Option<String>,
    /// Read the task from a file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// So many sessions do the task side by side, each in a copy of its own; the smallest verified change is offered
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=8))]
    pub(crate) candidates: Option<u32>,
    /// Land the best candidate without asking, if it is verified
    #[arg(long, requires = "candidates", conflicts_with = "no_land")]
    pub(crate) land: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session's id, or its beginning; without one, this directory's newest
    pub(crate) session: Option<String>,
    /// What to tell it; `-` reads it from standard input
    pub(crate) message: Option<String>,
    /// This directory's newest session; what follows is the message
    #[arg(long)]
    pub(crate) last: bool,
    /// Give up the task that was cut off instead of finishing it
    #[arg(long)]
    pub(crate) close: bool,
    /// Land the work once it is verified, although the run was to leave it in its copy (--no-land, --candidates)
    #[arg(long, conflicts_with_all = ["no_land", "no_isolate"])]
    pub(crate) land: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// What a run and a resumed one have in common.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOptions {
    /// Work in this directory instead of the current one, or the session's own
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What is allowed without asking: plan (read only), ask, edit (files), auto (files and sandboxed commands).
    /// Built-in: edit in a terminal, auto without one
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// A shell command that verifies the change, in place of the checks found in the project (repeatable)
    #[arg(long, value_name = "CMD", conflicts_with = "no_check")]
    pub(crate) check: Vec<String>,
    /// Verify nothing (the run then ends with code 4)
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Model requests before the run stops [built-in: 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Rounds of failed checks that go back to the model [built-in: 5]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// Wall time before the run stops, such as 90s, 10m or 2h [built-in: 2h]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// US dollars before the run stops; needs a model whose price is known
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<f64>,
    /// Print one JSON object at the end, on stdout
    #[arg(long, conflicts_with = "stream_json")]
    pub(crate) json: bool,
    /// Print one JSON event a line as it happens, on stdout
    #[arg(long)]
    pub(crate) stream_json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Let the project's own configuration run code and send data, this once
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// As root, let commands also run in sandboxes other than the strongest
    #[arg(long)]
    pub(crate) allow_root: bool,
    #[command(flatten)]
    pub(crate) delivery: DeliveryArgs,
}

impl RunOptions {
    pub(crate) fn to_options(&self) -> journeyman_host::RunOptions {
        let Self { model, mode, check, no_check, max_turns, max_iterations, timeout, budget, .. } =
            self.clone();
        let ModelArgs { model, base_url, wire, record, replay } = model;
        journeyman_host::RunOptions {
            model,
            base_url,
            wire,
            record,
            replay,
            mode,
            checks: check,
            no_checks: no_check,
            max_turns,
            max_iterations,
            timeout,
            budget,
            trust_project: self.trust_project,
            allow_root: self.allow_root,
        }
    }
}

/// Where a run works, and where its work goes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DeliveryArgs {
    /// Work in a copy of the project; what is verified is landed in one step, the rest is kept in the copy
    #[arg(long, conflicts_with = "no_isolate")]
    pub(crate) isolate: bool,
    /// Work in the project itself, whatever your configuration says
    #[arg(long)]
    pub(crate) no_isolate: bool,
    /// Leave the work in its copy, also when it is verified
    #[arg(long)]
    pub(crate) no_land: bool,
    /// Commit the change when it is verified, with your git and signing, and your hooks in the sandbox
    #[arg(long)]
    pub(crate) commit: bool,
    /// Commit it on this new branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// The commit's message [built-in: from the task, the model's words and the checks]
    #[arg(long = "message", value_name = "TEXT")]
    pub(crate) commit_message: Option<String>,
    /// Commit without running hooks
    #[arg(long)]
    pub(crate) no_verify: bool,
}

impl DeliveryArgs {
    pub(crate) fn to_options(&self) -> DeliveryOptions {
        DeliveryOptions {
            isolate: (self.isolate || self.no_isolate).then_some(self.isolate),
            no_land: self.no_land,
            commit: self.commit,
            branch: self.branch.clone(),
            message: self.commit_message.clone(),
            no_verify: self.no_verify,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LandArgs {
    /// The session's id, or its beginning; without one, this directory's only kept work
    pub(crate) session: Option<String>,
    /// What happens to files that you changed too, in ways that don't go together
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

/// What happens to files that both changed.
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
    /// The session's id, or its beginning; without one, this directory's only kept work
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
    /// The session whose task it is, or one of its candidates; without one, this directory's newest with candidates
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
    /// Mend what can be mended of damaged state, and say what is lost; damaged files are kept under another name
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
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
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

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Jsonl,
    Anthropic,
    Openai,
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session's id, or its beginning; `last` is this directory's newest
    pub(crate) session: String,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Jsonl, hide_possible_values = true)]
    pub(crate) format: Format,
    /// A new file for it, readable by you alone [built-in: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What `jm export` wrote; `-` reads standard input
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
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "session")]
    pub(crate) to: Option<u64>,
    /// Work in this directory instead of the session's own
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The checkpoint to compare with [built-in: the one before the newest run]
    #[arg(value_name = "A")]
    pub(crate) from: Option<u64>,
    /// A later checkpoint [built-in: the files as they are]
    #[arg(value_name = "B")]
    pub(crate) to: Option<u64>,
    /// Only how much, a line a file
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Every key there is, with what it takes and who may set it
    #[arg(long)]
    pub(crate) keys: bool,
}

/// Prints what clap has to say; a usage error is exit code 2, help and version are 0.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a closed stream here.
    error.print().ok();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jm", &mut script);
    crate::stdout::write(&String::from_utf8_lossy(&script));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
