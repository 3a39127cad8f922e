//! `delegate_task`: gives a task to another coding CLI, as one call of a session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ResultPart, ToolSpec};
use journeyman_sandbox::{Limits, LiveOutputMode, Network, Request, Stdin, StdioMode};
use journeyman_tools::{
    CommandRecording, DEFAULT_CALL_TIME, ForeignUsage, RecordedChanges, Tool, ToolContext, ToolError,
    ToolOutput, TypedTool,
};
use journeyman_workspace::Workspace;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::access::CliAccess;
use crate::bounds::MAX_RUN_OUTPUT_BYTES;
use crate::cli_input::{CliInput, open_input};
use crate::display::{EventSink, describe_end, shorten};
use crate::homes::{CliHome, CliHomes};
use crate::program::visible_paths;
use crate::run_reader::{RunEnd, read_to_end};
use crate::settings::{DEFAULT_CONFINED_TIME, DelegateSettings, Delegates};
use crate::{CommandLine, CommandRequest, FailureKind, Outcome, TokensAndCost};

/// The name of the tool.
pub const DELEGATE_TOOL: &str = "delegate_task";
/// Instructions for a CLI, in addition to the task and its context.
pub(crate) const CLI_INSTRUCTIONS: &str = "You work in the project in the current directory: its files are the ones named below. Make the \
                     change; don't only describe it, and don't commit it. When you stop, the project's checks run, \
                     and you get the results if one fails. Sum up at the end what you changed and why.\n\n";
/// The beginning of the error for a CLI's session that is no longer kept.
pub(crate) const SESSION_GONE_PREFIX: &str = "this session of the CLI is not kept any more";
/// The beginning of the line with the id of the CLI's session.
pub(crate) const SESSION_LINE_PREFIX: &str = "[session: ";
/// Sets the home directory for the CLI alone: the sandbox uses the variable to find the user's own,
/// which it hides.
const ENV_PROGRAM: &str = "/usr/bin/env";
/// Maximum bytes of a prompt: beyond any model's window.
const MAX_PROMPT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of output that the sandbox keeps: the lines have been read as they came.
const MAX_KEPT_OUTPUT_BYTES: usize = 16 * 1024;
/// Maximum bytes of a prompt in a summary.
const MAX_SUMMARY_BYTES: usize = 160;
/// The prompt in the command that policy judges and rules name, because the real one may be
/// anything.
const PLACEHOLDER_PROMPT: &str = "TASK";

/// The arguments of a call.
#[derive(Debug, Deserialize, JsonSchema)]
struct DelegateArguments {
    /// The CLI
    to: String,
    /// The task with all that the CLI has to know
    prompt: String,
    /// The id of its session, to go on with that
    resume: Option<String>,
}

/// The `delegate_task` tool. Each session has its own, which keeps the homes of the CLIs until it
/// is dropped.
pub struct DelegateTool {
    inner: TypedTool<DelegateArguments>,
    limit: Duration,
}

/// The state that the calls of a session share.
struct SharedState {
    delegates: Delegates,
    /// The directory for the homes of all sessions.
    state: PathBuf,
    kept: Mutex<KeptSessions>,
}

#[derive(Default)]
struct KeptSessions {
    homes: Option<CliHomes>,
    /// Tokens and cost of the sessions in these homes, by CLI name and session id.
    sessions: BTreeMap<(String, String), TokensAndCost>,
}

impl DelegateTool {
    /// Creates the tool of one session. `state` is a directory for the CLIs' homes, outside the
    /// project.
    #[must_use]
    pub fn new(delegates: Delegates, state: PathBuf) -> Self {
        let limits = delegates.all().iter().map(time_limit);
        let limit = limits.max().unwrap_or(DEFAULT_CONFINED_TIME) + DEFAULT_CALL_TIME;
        let description = format!(
            "Gives a task to another coding agent, a CLI that works in this project by itself: {}. Its changes are \
             recorded as yours. It knows nothing of this conversation.",
            delegates.names().join(", ")
        );
        let shared = Arc::new(SharedState { delegates, state, kept: Mutex::default() });
        let (judged, runs) = (Arc::clone(&shared), shared);
        let run = move |arguments: DelegateArguments, context: ToolContext| {
            let shared = Arc::clone(&runs);
            async move { shared.run(&arguments, &context).await }
        };
        let inner = TypedTool::new(DELEGATE_TOOL, description, run)
            .with_effects(move |arguments| judged.effects(arguments))
            .with_time_limit(Some(limit));
        Self { inner, limit }
    }
}

/// Returns the time limit of one run.
fn time_limit(settings: &DelegateSettings) -> Duration {
    settings.time_limit.unwrap_or(DEFAULT_CONFINED_TIME)
}

impl Tool for DelegateTool {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        self.inner.effects(input)
    }

    fn summary(&self, input: &Value) -> String {
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let to = shorten(text("to"), MAX_SUMMARY_BYTES);
        format!("give {to} a task: {}", shorten(extract_task(text("prompt")), MAX_SUMMARY_BYTES))
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn needs_preview(&self, _workspace: &Workspace, _input: &Value) -> bool {
        // The effects of the run can't be known.
        true
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.limit)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.inner.call(context, input).boxed()
    }
}

impl SharedState {
    /// Returns the effects of a call: the CLI's command, and the hosts of its provider. A call that
    /// can't be made has no effects.
    fn effects(&self, arguments: &DelegateArguments) -> Effects {
        let Ok(settings) = self.delegates.find(&arguments.to) else { return Effects::default() };
        let adapter = settings.adapter.as_ref();
        let request = CommandRequest {
            prompt: PLACEHOLDER_PROMPT,
            directory: Path::new("."),
            resume: None,
            spent: TokensAndCost::default(),
            model: settings.model.as_deref(),
            base_url: None,
            confined: true,
            trusted: false,
            arguments: &settings.arguments,
        };
        let words = adapter.build_command(&request).argv;
        let quoted: Vec<String> = words.iter().map(|word| quote_for_shell(&word.to_string_lossy())).collect();
        let access = CliAccess::from_environment(settings, self.delegates.host_environment(), true)
            .unwrap_or_default();
        Effects { command: Some(quoted.join(" ")), hosts: access.hosts(), ..Effects::default() }
    }

    async fn run(
        &self,
        arguments: &DelegateArguments,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let DelegateArguments { to, prompt, resume } = arguments;
        let settings = match self.delegates.find(to) {
            Ok(settings) => settings,
            Err(error) => return Ok(ToolOutput::failure(error.to_string())),
        };
        if prompt.trim().is_empty() || prompt.contains('\0') || prompt.len() > MAX_PROMPT_BYTES {
            let problem =
                format!("`prompt` is empty, has a NUL character or more than {MAX_PROMPT_BYTES} bytes");
            return Ok(ToolOutput::failure(problem));
        }
        let program = match self.delegates.find_program(settings) {
            Ok(program) => program,
            Err(error) => return Ok(ToolOutput::failure(error.to_string())),
        };
        let access = match CliAccess::from_environment(settings, self.delegates.host_environment(), true) {
            Ok(access) => access,
            Err(error) => return Ok(ToolOutput::failure(error.to_string())),
        };
        if self.state.starts_with(context.workspace.root()) {
            return Ok(ToolOutput::failure(
                "the state directory lies in the project, where no CLI can have a home",
            ));
        }
        let home = match self.open_home(to, resume.as_deref(), &access) {
            Ok(Some(home)) => home,
            Ok(None) => {
                let text = format!("{SESSION_GONE_PREFIX}; give the whole task again, without `resume`");
                return Ok(ToolOutput::failure(text));
            }
            Err(error) => return Ok(ToolOutput::failure(format!("the home of {to} can't be made: {error}"))),
        };
        if context.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let spent = resume.as_ref().and_then(|id| self.session_spending(to, id)).unwrap_or_default();
        let run = CliRun { settings, program, access, home, prompt, resume: resume.as_deref(), spent };
        let recording = CommandRecording::begin(context).await?;
        let ended =
            run.run_to_end(context, &recording, self.delegates.host_environment().home.as_deref()).await;
        let changes = recording.end(ended.as_ref().ok().map(|end| &end.completed)).await?;
        match ended {
            Ok(end) => {
                self.remember_session(to, spent, &end.outcome);
                Ok(report(to, context, end, changes))
            }
            Err(error) => {
                let notes = changes.describe(&context.workspace);
                let text = format!("{to} could not be run: {error}\n{notes}");
                let RecordedChanges { changes, violations, .. } = changes;
                Ok(ToolOutput { changes, violations, ..ToolOutput::failure(text) })
            }
        }
    }

    /// Opens the home of a CLI; `None` if the session to resume isn't in a kept home.
    fn open_home(
        &self,
        name: &str,
        resume: Option<&str>,
        access: &CliAccess,
    ) -> std::io::Result<Option<CliHome>> {
        if resume.is_some_and(|id| self.session_spending(name, id).is_none()) {
            return Ok(None);
        }
        let mut kept = self.lock();
        let homes = match kept.homes.take() {
            Some(homes) => homes,
            None => CliHomes::create(&self.state, fastrand::u64(..))?,
        };
        let opened = homes.open(name, access, self.delegates.host_environment().home.as_deref());
        kept.homes = Some(homes);
        opened.map(Some)
    }

    /// Returns the tokens and cost of a CLI's session; `None` if the session isn't kept.
    fn session_spending(&self, name: &str, id: &str) -> Option<TokensAndCost> {
        self.lock().sessions.get(&(name.to_owned(), id.to_owned())).copied()
    }

    /// Records the session of a run, and its total tokens and cost.
    fn remember_session(&self, name: &str, before: TokensAndCost, outcome: &Outcome) {
        let Some(id) = &outcome.session else { return };
        let mut spent = before;
        spent.usage += outcome.usage;
        spent.cost = match (before.cost, outcome.cost) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or_default() + now.unwrap_or_default()),
        };
        self.lock().sessions.insert((name.to_owned(), id.clone()), spent);
    }

    fn lock(&self) -> MutexGuard<'_, KeptSessions> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run, with its program, home and access resolved.
struct CliRun<'a> {
    settings: &'a DelegateSettings,
    program: PathBuf,
    access: CliAccess,
    home: CliHome,
    prompt: &'a str,
    resume: Option<&'a str>,
    /// Tokens and cost of the resumed session so far.
    spent: TokensAndCost,
}

impl CliRun<'_> {
    /// Returns the request from which the adapter builds the command.
    fn command_request<'a>(&'a self, context: &'a ToolContext) -> CommandRequest<'a> {
        CommandRequest {
            prompt: self.prompt,
            directory: context.workspace.root(),
            resume: self.resume,
            spent: self.spent,
            model: self.settings.model.as_deref(),
            base_url: self.access.base_url.as_deref(),
            confined: true,
            trusted: false,
            arguments: &self.settings.arguments,
        }
    }

    /// Returns the sandbox's request for the command: with the CLI's own home, its provider's key
    /// and hosts, and nothing else of the user's.
    fn sandbox_request(
        &self,
        context: &ToolContext,
        user_home: Option<&Path>,
        command: CommandLine,
        input: Option<&CliInput>,
    ) -> Request {
        let mut home = OsString::from("HOME=");
        home.push(&self.home.path);
        let mut argv: Vec<OsString> = vec![ENV_PROGRAM.into(), home, self.program.clone().into_os_string()];
        argv.extend(command.argv.into_iter().skip(1));
        let argv = input.map_or_else(|| argv.clone(), |input| input.wrap_command(argv.clone()));
        let mut request = Request::for_program(context.workspace.root(), argv);
        // Toolchains are set offline depending on the network.
        request.network = Network::Filtered(Arc::new(self.access.network.clone()));
        request = request.with_toolchains(&context.toolchains);
        request.env.extend(self.access.environment.clone());
        request.env.extend(command.environment.into_iter().map(|(name, value)| (name.into(), value.into())));
        request.read_only.extend(visible_paths(&self.program, user_home));
        request
            .read_only
            .extend(self.access.credentials.iter().filter_map(|path| Some(user_home?.join(path))));
        request.writable.push(self.home.path.clone());
        request.base = context.workspace.project_copy();
        request.needs = context.needs;
        request.stdin = if command.stdin.is_empty() { Stdin::Null } else { Stdin::Bytes(command.stdin) };
        request.streams = StdioMode::Separate;
        request.live = LiveOutputMode::Whole;
        request.limits = Limits {
            wall: time_limit(self.settings),
            output_bytes: MAX_KEPT_OUTPUT_BYTES,
            flood_bytes: Some(MAX_RUN_OUTPUT_BYTES),
            ..Limits::default()
        };
        request
    }

    /// Runs the command, and shows its events as they come.
    async fn run_to_end(
        &self,
        context: &ToolContext,
        recording: &CommandRecording,
        user_home: Option<&Path>,
    ) -> Result<RunEnd, ToolError> {
        let adapter = self.settings.adapter.as_ref();
        let mut command = adapter.build_command(&self.command_request(context));
        let input = open_input(&mut command, &self.home.path)
            .map_err(|error| ToolError::Stopped(format!("its input can't be made: {error}")))?;
        let mut request = self.sandbox_request(context, user_home, command, input.as_ref());
        recording.restrict_request(&mut request);
        let conversation = adapter.start_conversation(&self.command_request(context));
        let cancel = context.cancel.child_token();
        let running = context.sandbox.spawn(request, cancel.clone()).await?;
        let mut sink = EventSink::new(adapter.name(), &context.emit, &context.output);
        Ok(read_to_end(running, cancel, input, conversation, &mut |event| sink.show(event)).await?)
    }
}

/// Returns the result of a run: the CLI's message, then known facts about the run.
fn report(to: &str, context: &ToolContext, end: RunEnd, changes: RecordedChanges) -> ToolOutput {
    let RunEnd { outcome, completed } = end;
    let Outcome { message, session, usage, cost, failure } = outcome;
    let mut message = if message.trim().is_empty() { format!("{to} said nothing.") } else { message };
    if let Some(failure) = &failure {
        message = format!("{to} failed: {}{}\n\n{message}", failure.message, advise(to, failure.kind));
    }
    if failure.is_none() && changes.is_error {
        message = format!("{to} did what it may not do:\n{}\n{message}", changes.notes);
    }
    let most = context.limits.result_bytes;
    if message.len() > most {
        message = format!("{}\n[… cut]", clip_text(&message, most));
    }
    let mut notes = format!("[{to} ended: {}]\n", describe_end(&completed.outcome));
    notes.push_str(&changes.describe(&context.workspace));
    for refused in completed.connections.iter().filter(|it| it.denied.is_some()) {
        notes.push_str(&format!("[{}:{} was not reached]\n", refused.host, refused.port));
    }
    if let Some(session) = session {
        notes.push_str(&format!("{SESSION_LINE_PREFIX}{session}]\n"));
    }
    let parts = [message, notes].map(|text| ResultPart::Text { text }).to_vec();
    let RecordedChanges { changes, violations, is_error, .. } = changes;
    ToolOutput {
        parts,
        changes,
        violations,
        is_error: is_error || failure.is_some(),
        foreign_usage: Some(ForeignUsage { usage, usd: cost }),
        ..ToolOutput::text("")
    }
}

/// Returns advice for a kind of failure; empty if there is none.
fn advise(to: &str, kind: FailureKind) -> String {
    match kind {
        FailureKind::NotAuthenticated => {
            format!(
                ". Log in by running it once, or set its key; jm delegate --list says what is found of {to}"
            )
        }
        FailureKind::UnknownFlag => {
            ". Its version may be another one than was tested; docs/delegates.md names those".to_owned()
        }
        FailureKind::Provider | FailureKind::CutOff | FailureKind::Reported => String::new(),
    }
}

/// Returns the person's task in a prompt, which may be surrounded by instructions and project
/// context.
fn extract_task(prompt: &str) -> &str {
    let Some(rest) = prompt.strip_prefix(CLI_INSTRUCTIONS) else { return prompt };
    let fenced = rest.strip_prefix("<task").and_then(|rest| rest.split_once(">\n"));
    fenced.map_or(rest, |(_, rest)| rest.split("\n</task").next().unwrap_or(rest))
}

/// Returns the beginning of a text, at most `most` bytes long.
fn clip_text(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_words_of_a_person() {
        let context = format!("{CLI_INSTRUCTIONS}<task>\nfix it\nnow\n</task>\n\n<files>\na\n</files>");
        assert_eq!(extract_task(&context), "fix it\nnow");
        let numbered = format!("{CLI_INSTRUCTIONS}<task-2>\nwhat is <task>?\n</task-2>\nmore");
        assert_eq!(extract_task(&numbered), "what is <task>?");
        assert_eq!(extract_task(&format!("{CLI_INSTRUCTIONS}plain words")), "plain words");
        assert_eq!(extract_task("<task>\nof a model's"), "<task>\nof a model's");
    }
}
