//! `run_command`: a shell command in the sandbox.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_policy::secrets::{is_settings_file, mask_settings};
use journeyman_policy::{CommandAnalysis, CommandPart, analyse_command, format_in_directory, registry};
use journeyman_protocol::{Effects, FileChange, Level, RelPath, ToolSpec};
use journeyman_sandbox::{
    CompletedCommand, DenialKind, HostPatternError, Limits, Network, NetworkRules, Outcome, Request,
    RunningCommand, StdioMode, WriteMode, clean_output,
};
use journeyman_workspace::{ForbiddenChanges, StatKind, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::background::{BackgroundEnd, Job};
use crate::excerpt::{middle_to_omit, to_one_line};
use crate::read_file::OUTPUT_PREFIX;
use crate::recording::{
    CommandRecording, RecordedKind, journaled_changes, lost_files_note, push_changes, was_guard_enforced,
};
use crate::tool::{describe_problem_names, run_blocking};
use crate::tool_interface::{ToolInterface, not_found};
use crate::violations::violation_message;
use crate::{DEFAULT_CALL_TIME, Tool, ToolContext, ToolError, ToolLimits, ToolOutput};

/// Maximum bytes of a command; a longer one belongs in a file. The kernel refuses single arguments
/// over 128 KiB.
const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Maximum bytes of live output of one command; the result has its head and tail.
const MAX_LIVE_BYTES: usize = 256 * 1024;
/// Maximum number of registries and hosts in one call: a build has a handful.
const MAX_HOSTS: usize = 16;
/// Maximum number of hosts named in a summary, and of denials listed in a result.
const MAX_NAMED_HOSTS: usize = 8;
/// Maximum number of words of a command that are looked up in the tree, for each way of splitting
/// it; ordinary commands have a dozen.
const MAX_LOOKED_UP_WORDS: usize = 256;
/// Maximum number of directories in which a command's words are looked up: those that it changes
/// to; ordinary commands have one.
const MAX_LOOKUP_DIRECTORIES: usize = 4;
/// Maximum bytes of a command in a summary.
const MAX_SUMMARY_BYTES: usize = 200;
/// Maximum duration of a background command: a working day and the following night.
const MAX_BACKGROUND_TIME: Duration = Duration::from_secs(24 * 3_600);
/// Maximum bytes of a background command's output that the sandbox keeps, because none of them are
/// read.
const MAX_KEPT_BACKGROUND_BYTES: usize = 4 * 1024;
/// Maximum bytes that a background command may write: ten million requests of 100 bytes in a
/// server's log.
const MAX_BACKGROUND_OUTPUT_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct RunCommandArguments {
    command: String,
    /// Default 120, at most 600
    timeout_s: Option<u64>,
    directory: Option<String>,
    /// Returns an id at once: for servers, watchers
    background: Option<bool>,
    /// Registries (npm, pypi, crates, go, maven …) or hosts that it has to reach
    network: Option<Vec<String>>,
}

/// The `run_command` tool.
pub(crate) struct RunCommand {
    shape: ToolInterface,
}

/// A call with its arguments checked.
struct CommandRequest {
    command: String,
    directory: Option<RelPath>,
    seconds: Option<u64>,
    background: bool,
    /// The hosts that the command may reach.
    network: NetworkRules,
}

impl CommandRequest {
    /// Returns the command that policy judges, with its directory, whose name may be anything.
    fn command_for_policy(&self) -> String {
        match &self.directory {
            Some(directory) => format_in_directory(&directory.to_string(), &self.command),
            None => self.command.clone(),
        }
    }

    /// Returns true if the command names a settings file, whose content it may print.
    fn has_settings_path(&self) -> bool {
        named_words(&self.command, &analyse_command(&self.command_for_policy(), &[]))
            .iter()
            .any(|word| is_settings_file(word))
    }

    /// Returns true if the command is known to only read; the sandbox then prevents all writes.
    fn only_reads(&self) -> bool {
        analyse_command(&self.command_for_policy(), &[]).level == Level::ReadOnly
    }
}

impl RunCommand {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Runs a shell command in the project, in a sandbox without network but for `network`: fetch \
                           dependencies in a call of its own with that, then build without. Nothing outlives it; \
                           there is no terminal. Don't use it to read or edit files.";
        Self { shape: ToolInterface::for_arguments::<RunCommandArguments>("run_command", description, root) }
    }

    fn parse_request(&self, input: &Value) -> Result<CommandRequest, ToolError> {
        let arguments: RunCommandArguments = self.shape.read_arguments(input)?;
        let directory = self.shape.parse_directory("directory", arguments.directory.as_deref())?;
        let command = arguments.command;
        if command.trim().is_empty() {
            return Err(self.shape.argument_error("`command` is empty"));
        }
        if command.contains('\0') {
            return Err(self
                .shape
                .argument_error("`command` has a NUL character, which no command can hold"));
        }
        if command.len() > MAX_COMMAND_BYTES {
            let problem = format!(
                "`command` has {} bytes, at most {MAX_COMMAND_BYTES}; write a script file",
                command.len()
            );
            return Err(self.shape.argument_error(problem));
        }
        let seconds = arguments.timeout_s.filter(|seconds| *seconds > 0);
        let network = self.resolve_network(&arguments.network.unwrap_or_default())?;
        Ok(CommandRequest {
            command,
            directory,
            seconds,
            background: arguments.background.unwrap_or(false),
            network,
        })
    }

    /// Returns the hosts of the registries and host names.
    fn resolve_network(&self, wanted: &[String]) -> Result<NetworkRules, ToolError> {
        let refuse = |why: String| self.shape.argument_error(format!("`network`: {why}"));
        if wanted.len() > MAX_HOSTS {
            return Err(refuse(format!("at most {MAX_HOSTS} of them")));
        }
        let mut rules = NetworkRules::default();
        for text in wanted {
            let preset = registry::find_preset(text);
            rules.plain_http |= preset.is_some_and(|preset| preset.plain_http);
            for host in registry::resolve_hosts(text).map_err(|error| refuse(error.to_string()))? {
                let pattern = host.parse().map_err(|error: HostPatternError| refuse(error.to_string()))?;
                if !rules.hosts.contains(&pattern) {
                    rules.hosts.push(pattern);
                }
            }
        }
        Ok(rules)
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let command = self.parse_request(&input)?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        if command.background {
            return start_in_background(context, command).await;
        }
        let limits = &context.limits;
        let seconds = command.seconds.unwrap_or(limits.command_seconds).min(limits.command_most_seconds);
        let (request, before_command) =
            prepare_command(context, &command, Duration::from_secs(seconds)).await?;
        let unkept = before_command.paths_not_undoable();
        let settings = command.has_settings_path();
        let mut ended = run_confined(context, request, settings).await;
        if settings
            && let Ok(completed) = &mut ended
            && let Cow::Owned(masked) = mask_settings(&completed.combined.text)
        {
            completed.combined.text = masked;
        }
        let kept = was_guard_enforced(&ended);
        let (changes, aftermath) = before_command.close(kept).await?;
        if aftermath.is_clean() {
            let (completed, changes) = (ended?, changes?);
            let is_error = completed.outcome != Outcome::Exited(0);
            let output_lines = Some(count_lines(&completed));
            let mut text = command_report(context, completed, seconds, &changes);
            text.extend(lost_files_note(&changes, &unkept));
            return Ok(ToolOutput { changes, is_error, output_lines, ..ToolOutput::text(text) });
        }
        // Forbidden changes are reported whatever else failed.
        let (changes, unrecorded) = journaled_changes(changes);
        let output_lines = ended.as_ref().ok().map(count_lines);
        let mut text = match ended {
            Ok(completed) => command_report(context, completed, seconds, &changes),
            Err(error) => format!("error: {error}\n"),
        };
        text.extend(unrecorded);
        text.extend(lost_files_note(&changes, &unkept));
        text.extend(violation_message(&aftermath));
        let violations = aftermath.violations;
        Ok(ToolOutput { changes, is_error: true, violations, output_lines, ..ToolOutput::text(text) })
    }
}

/// Returns true if a command may destroy what an undo can't restore: policy says so, or it names a
/// path that no checkpoint covers, such as an ignored file. Directories, programs and generated
/// files count only for commands that edit or destroy files, because any build may name them.
fn may_destroy(workspace: &Workspace, command: &CommandRequest) -> bool {
    let analysis = analyse_command(&command.command_for_policy(), &[]);
    if !matches!(analysis.level, Level::Edit | Level::Shell) {
        return false;
    }
    let changes = |part: &CommandPart| part.level == Level::Edit && !part.builds;
    let edits = analysis.level == Level::Edit;
    let destroys = edits && analysis.parts.iter().any(changes) || analysis.destroys.is_some();
    // Patterns, patches and prefixes don't name the files that they affect.
    let says = |part: &CommandPart, words: &[&str]| {
        part.words.iter().map(|word| word.text.as_str()).take(words.len()).eq(words.iter().copied())
    };
    let open = |part: &CommandPart| {
        changes(part)
            && (part.words.iter().any(|word| !word.known)
                || says(part, &["git", "apply"])
                || says(part, &["patch"])
                || says(part, &["split"]))
    };
    analysis.beyond_undo
        || edits && analysis.parts.iter().any(open)
        || named_paths(command, &analysis).any(|path| match workspace.previews().uncovered_path(&path) {
            Some(it) => destroys || !(it.directory || it.executable || it.remade),
            None => false,
        })
}

/// Returns true if a command may write to files with hard links outside the project, and is meant
/// to: in a layer they are copied first. Other commands find files that package managers linked
/// read-only.
fn may_write_hard_links(workspace: &Workspace, command: &CommandRequest) -> bool {
    if command.only_reads() {
        return false;
    }
    let Ok(links) = workspace.command_observer().hard_links() else { return false };
    !links.files.is_empty() || (!links.dependencies.is_empty() && may_install(command))
}

/// Returns true if a command fetches packages, or names a package manager and a subcommand that
/// changes packages.
fn may_install(command: &CommandRequest) -> bool {
    const PACKAGE_MANAGERS: [&str; 12] =
        ["npm", "pnpm", "yarn", "bun", "corepack", "uv", "pip", "pip3", "poetry", "pdm", "pipenv", "conda"];
    const CHANGING_SUBCOMMANDS: [&str; 20] = [
        "install",
        "i",
        "ci",
        "add",
        "remove",
        "rm",
        "uninstall",
        "un",
        "update",
        "up",
        "upgrade",
        "sync",
        "link",
        "unlink",
        "dedupe",
        "prune",
        "rebuild",
        "import",
        "lock",
        "venv",
    ];
    let words = || command.command.split(|c: char| c.is_whitespace() || "'\"`;&|()<>".contains(c));
    let names = |list: &[&str]| words().any(|word| list.contains(&word.rsplit('/').next().unwrap_or(word)));
    !command.network.hosts.is_empty()
        || (names(&PACKAGE_MANAGERS) && names(&CHANGING_SUBCOMMANDS))
        || words().any(|word| matches!(word, "yarn" | "bun"))
        || ["node_modules", "venv"].iter().any(|name| command.command.contains(name))
}

/// Returns the paths that a command may name, relative to its directory and to those it changes to.
fn named_paths(command: &CommandRequest, analysis: &CommandAnalysis) -> impl Iterator<Item = RelPath> {
    let goes = analysis.parts.iter().filter_map(|part| match part.words.as_slice() {
        [program, .., to] if program.text == "cd" => Some(to.text.clone()),
        _ => None,
    });
    let directories: Vec<Option<RelPath>> = std::iter::once(command.directory.clone())
        .chain(goes.take(MAX_LOOKUP_DIRECTORIES).map(|to| resolve_word(command.directory.as_ref(), &to)))
        .collect();
    // The command's own directory counts as a `cd` before it.
    named_words(&command.command, analysis).into_iter().flat_map(move |word| {
        directories.iter().filter_map(|directory| resolve_word(directory.as_ref(), &word)).collect::<Vec<_>>()
    })
}

fn resolve_word(directory: Option<&RelPath>, word: &str) -> Option<RelPath> {
    match directory {
        Some(directory) => directory.join(word.trim_start_matches("./")).ok(),
        None => RelPath::parse(word).ok(),
    }
}

/// Returns the words of a command, and the parts between punctuation, because shells and other
/// languages put signs around names (`open(\".env\")`, `${x:-.env}`, `a=[.env]`). The splitting is
/// rough: a word too many only costs a layer.
fn named_words(command: &str, analysis: &CommandAnalysis) -> BTreeSet<String> {
    let shell = |c: char| c.is_whitespace() || "'\"`;&|()<>={},".contains(c);
    let sign = |c: char| !(c.is_alphanumeric() || "_-./~+@% ".contains(c));
    let parts =
        analysis.parts.iter().flat_map(|part| part.words.iter().chain(&part.writes).chain(&part.reads));
    let known = parts.map(|word| word.text.as_str()).take(MAX_LOOKED_UP_WORDS);
    let rough = command.split(shell).filter(|word| !word.is_empty()).take(MAX_LOOKED_UP_WORDS);
    let fine = command.split(|c| shell(c) || sign(c)).map(|word| word.trim_start_matches('-'));
    let fine = fine.filter(|word| !word.is_empty()).take(MAX_LOOKED_UP_WORDS);
    known.chain(rough).chain(fine).map(str::to_owned).collect()
}

/// Records the tree, and builds the request for the sandbox.
async fn prepare_command(
    context: &ToolContext,
    command: &CommandRequest,
    wall: Duration,
) -> Result<(Request, CommandRecording), ToolError> {
    let kind = RecordedKind { background: command.background, only_reads: command.only_reads() };
    if let Some(directory) = &command.directory {
        check_directory(context, directory.clone()).await?;
    }
    let recording = CommandRecording::begin_as(context, kind).await?;
    let mut request = sandbox_request(context, command, wall);
    request.write = if kind.only_reads { WriteMode::ReadOnly } else { WriteMode::Direct };
    recording.restrict_request(&mut request);
    Ok((request, recording))
}

/// Checks that a directory exists.
async fn check_directory(context: &ToolContext, directory: RelPath) -> Result<(), ToolError> {
    let workspace = Arc::clone(&context.workspace);
    run_blocking(move || match workspace.stat(&directory)? {
        Some(stat) if stat.kind == StatKind::Directory => Ok(()),
        _ => Err(not_found(&workspace, directory)),
    })
    .await
}

/// Starts a command that goes on running after its call.
async fn start_in_background(
    context: &ToolContext,
    command: CommandRequest,
) -> Result<ToolOutput, ToolError> {
    let job = context.background.add_job(&context.call, &command.command)?;
    let begun = begin_command(context, &command, &job).await;
    let (running, before_command) = begun.inspect_err(|_| context.background.remove_job(&job))?;
    let text = format!("{} started\n", job.id);
    tokio::spawn(watch_background(job, running, before_command));
    Ok(ToolOutput::text(text))
}

async fn begin_command(
    context: &ToolContext,
    command: &CommandRequest,
    job: &Job,
) -> Result<(RunningCommand, CommandRecording), ToolError> {
    let wall = command
        .seconds
        .map_or(MAX_BACKGROUND_TIME, |seconds| Duration::from_secs(seconds).min(MAX_BACKGROUND_TIME));
    let (mut request, before_command) = prepare_command(context, command, wall).await?;
    // The job keeps the unread output; what the sandbox keeps beside it is thrown away.
    request.limits.output_bytes = MAX_KEPT_BACKGROUND_BYTES;
    request.limits.flood_bytes = Some(MAX_BACKGROUND_OUTPUT_BYTES);
    before_command.watch_guarded_files(job);
    match context.sandbox.spawn(request, job.cancel.clone()).await {
        Ok(running) => Ok((running, before_command)),
        Err(error) => {
            before_command.close(true).await?.0?;
            Err(error.into())
        }
    }
}

/// Monitors a background command until it ends.
async fn watch_background(job: Arc<Job>, mut running: RunningCommand, before_command: CommandRecording) {
    let watched = FinishOnDrop(job);
    let job = &watched.0;
    while let Some(chunk) = running.next_chunk().await {
        job.push_output(chunk.at, &chunk.bytes);
    }
    let completed = running.wait().await;
    let (changes, aftermath) = match before_command.close(was_guard_enforced(&completed)).await {
        Ok((changes, aftermath)) => (journaled_changes(changes), aftermath),
        Err(error) => ((Vec::new(), Some(format!("error: {error}\n"))), ForbiddenChanges::default()),
    };
    let (changes, unrecorded) = changes;
    let problem = unrecorded.into_iter().chain(violation_message(&aftermath));
    let (outcome, failed) = match completed {
        Ok(completed) => {
            job.push_output(completed.combined.total_bytes, &[]);
            (completed.outcome, None)
        }
        Err(error) => (Outcome::Cancelled, Some(format!("error: {error}\n"))),
    };
    let problems: Vec<String> = failed.into_iter().chain(problem).collect();
    let problem = (!problems.is_empty()).then(|| problems.concat());
    job.finish(BackgroundEnd { outcome, changes, problem, violations: aftermath.violations });
}

/// Marks a job as ended when dropped, so that waiting calls return even if the monitoring task is
/// aborted.
struct FinishOnDrop(Arc<Job>);

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        let problem = Some("error: the watch over it was lost\n".to_owned());
        let (outcome, changes, violations) = (Outcome::Cancelled, Vec::new(), Vec::new());
        self.0.finish(BackgroundEnd { outcome, changes, problem, violations });
    }
}

/// Builds the sandbox's request for a command.
fn sandbox_request(context: &ToolContext, command: &CommandRequest, wall: Duration) -> Request {
    let root = context.workspace.root();
    let mut request = Request::for_shell_command(root, &command.command);
    if !command.network.hosts.is_empty() {
        request.network = Network::Filtered(Arc::new(command.network.clone()));
    }
    // Toolchains are set offline depending on the network.
    request = request.with_toolchains(&context.toolchains);
    if let Some(directory) = &command.directory {
        request.cwd = root.join(directory.as_path());
    }
    request.base = context.workspace.project_copy();
    request.needs = context.needs;
    request.streams = StdioMode::Merged;
    request.limits = Limits { wall, output_bytes: context.limits.output_bytes, ..Limits::default() };
    request
}

/// Runs the command and shows its output as it comes, unless the output may have secrets that only
/// whole lines reveal.
async fn run_confined(
    context: &ToolContext,
    request: Request,
    settings: bool,
) -> Result<CompletedCommand, ToolError> {
    let mut running = context.sandbox.spawn(request, context.cancel.clone()).await?;
    let mut room = MAX_LIVE_BYTES;
    while let Some(chunk) = running.next_chunk().await {
        let Some(left) = room.checked_sub(chunk.bytes.len()) else { break };
        room = left;
        if !settings {
            (context.output)(clean_output(&chunk.bytes));
        }
    }
    Ok(running.wait().await?)
}

/// Describes the end of a command in words.
pub(crate) fn describe_end(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Signaled(signal) => format!("killed by signal {signal}"),
        Outcome::TimedOut => "killed at its time limit".to_owned(),
        Outcome::Cancelled => "stopped".to_owned(),
        excess @ (Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
            format!("killed for {}", excess.exceeded_limit().unwrap_or_default())
        }
        Outcome::SetupFailed(reason) => format!("the command did not run: {reason}"),
    }
}

/// Returns the number of lines that a command printed.
fn count_lines(completed: &CompletedCommand) -> u64 {
    u64::try_from(completed.combined.text.lines().count()).unwrap_or(u64::MAX)
}

/// Returns the text of a result: outcome, output and changes. It has no times, so that a recorded
/// session replays identically.
fn command_report(
    context: &ToolContext,
    completed: CompletedCommand,
    seconds: u64,
    changes: &[FileChange],
) -> String {
    let mut report = match &completed.outcome {
        Outcome::TimedOut => format!(
            "killed at its time limit of {seconds} s (timeout_s may be up to {})",
            context.limits.command_most_seconds
        ),
        Outcome::Cancelled => "interrupted".to_owned(),
        other => describe_end(other),
    };
    let denied = denials_note(&completed);
    let output = completed.combined.text;
    if output.trim().is_empty() {
        report.push_str(", no output\n");
    } else {
        report.push('\n');
        push_output(&mut report, context, output);
    }
    report.push_str(&denied);
    push_changes(&mut report, changes);
    report.push_str(&describe_problem_names(&context.workspace, changes));
    report
}

/// Returns a line for each denial by the sandbox, with the remedy.
fn denials_note(completed: &CompletedCommand) -> String {
    let mut lines: Vec<String> = Vec::new();
    let refused = completed.connections.iter().filter_map(|it| {
        let why = it.denied.as_ref()?;
        Some(format!(
            "[{}:{} was not reached: {why}; name what the command needs in `network`]\n",
            it.host, it.port
        ))
    });
    let others = completed.denials.iter().filter(|it| {
        // The denial of the host itself is reported already.
        it.kind != DenialKind::Network || completed.connections.iter().all(|it| it.denied.is_none())
    });
    for line in refused.chain(others.map(|denial| format!("[{denial}]\n"))) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(MAX_NAMED_HOSTS);
    lines.truncate(MAX_NAMED_HOSTS);
    if more > 0 {
        lines.push(format!("[and {more} more denials]\n"));
    }
    lines.concat()
}

/// Appends the output, or its head and tail; the whole output can then be read by the call's id.
fn push_output(report: &mut String, context: &ToolContext, output: String) {
    let Some(cut) = middle_to_omit(&output, context.limits.result_bytes) else {
        report.push_str(&output);
        if !output.ends_with('\n') {
            report.push('\n');
        }
        return;
    };
    let (head, tail) =
        (output.get(..cut.start).unwrap_or_default(), output.get(cut.end..).unwrap_or_default());
    let left_out = output.get(cut.clone()).unwrap_or_default();
    let first = head.lines().count() + usize::from(head.ends_with('\n'));
    report.push_str(head);
    report.push_str(&format!(
        "\n[{} bytes left out, about {} lines; read_file with path {OUTPUT_PREFIX}{} and offset {} has them]\n",
        left_out.len(),
        left_out.lines().count(),
        context.call,
        first.max(1),
    ));
    report.push_str(tail);
    if !tail.ends_with('\n') {
        report.push('\n');
    }
    context.outputs.store_output(&context.call, output);
}

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let command = self.parse_request(input)?;
        let hosts = command.network.hosts.iter().map(ToString::to_string).collect();
        Ok(Effects { command: Some(command.command_for_policy()), hosts, ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(command) = self.parse_request(input) else { return "run a command".to_owned() };
        let place = command.directory.map(|directory| format!("in {directory}"));
        let how = command.background.then(|| "in the background".to_owned());
        let hosts: Vec<String> =
            command.network.hosts.iter().take(MAX_NAMED_HOSTS).map(ToString::to_string).collect();
        let reaching = (!hosts.is_empty()).then(|| format!("reaching {}", hosts.join(", ")));
        let details: Vec<String> = place.into_iter().chain(how).chain(reaching).collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        format!("run {}{details}", to_one_line(command.command.trim(), MAX_SUMMARY_BYTES))
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn needs_preview(&self, workspace: &Workspace, input: &Value) -> bool {
        let tried = |command: &CommandRequest| {
            may_destroy(workspace, command) || may_write_hard_links(workspace, command)
        };
        self.parse_request(input).is_ok_and(|command| !command.background && tried(&command))
    }

    fn time_limit(&self) -> Option<Duration> {
        // The sandbox ends the command at its limit; its changes have to be journaled after that.
        Some(Duration::from_secs(ToolLimits::default().command_most_seconds) + DEFAULT_CALL_TIME)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
