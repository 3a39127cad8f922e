//! Runs a configured command in the sandbox.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use journeyman_policy::is_secret_name;
use journeyman_sandbox::{
    CapturedOutput, CompletedCommand, DenialKind, Limits, Network, Outcome, Request, Stdin, StdioMode,
    WriteMode,
};

use super::command::{CommandEnd, ExitKind, KeptOutput, MAX_HOOK_OUTPUT_BYTES};
use super::hook_command::HookCommand;
use super::{HookContext, HookSandbox, home_directory};

/// Maximum output of a hook in bytes, above which the hook is killed. Output beyond
/// [`MAX_HOOK_OUTPUT_BYTES`] is dropped.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Runs a command with `input` on its standard input. Dropping the future kills all its processes.
pub(super) async fn run_confined(
    at: &HookContext,
    place: &HookSandbox,
    hook: &HookCommand,
    variables: &BTreeMap<OsString, OsString>,
    input: Vec<u8>,
) -> CommandEnd {
    let request = match sandbox_request(at, place, hook, variables, input) {
        Ok(request) => request,
        Err(why) => return CommandEnd::NotStarted(why),
    };
    let running = match place.sandbox.spawn(request, at.cancel.clone()).await {
        Ok(running) => running,
        Err(error) => return CommandEnd::NotStarted(error.to_string()),
    };
    match running.wait().await {
        Ok(completed) => command_end_of(completed),
        Err(error) => CommandEnd::NotStarted(error.to_string()),
    }
}

fn sandbox_request(
    at: &HookContext,
    place: &HookSandbox,
    hook: &HookCommand,
    variables: &BTreeMap<OsString, OsString>,
    input: Vec<u8>,
) -> Result<Request, String> {
    let writes = hook.event.may_write();
    let mut request = Request::for_shell_command(&at.root, &hook.command);
    request.network = hook.network.clone();
    // A hook that may change the project may run the project's own program, so it sees no secret
    // variables, as with commands of the model.
    let shown = variables.iter().filter(|(name, _)| !writes || !is_secret_name(&name.to_string_lossy()));
    request.env.extend(shown.map(|(name, value)| (name.clone(), value.clone())));
    let mut request = request.with_toolchains(&place.toolchains);
    let home = variables.get(OsStr::new("HOME"));
    request.env.extend(home.map(|home| ("HOME".into(), home.clone())));
    for name in ["JOURNEYMAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
        request.env.insert(name.into(), at.root.clone().into());
    }
    request.base = place.base.clone();
    let protected = place.protected.as_ref().filter(|_| writes);
    request.write = if protected.is_some() { WriteMode::Direct } else { WriteMode::ReadOnly };
    request.protected.extend(protected.into_iter().flatten().cloned());
    home_directory::add_visible_paths(&mut request, hook, home.map(Path::new))?;
    request.stdin = Stdin::Bytes(input);
    request.streams = StdioMode::Separate;
    request.limits = Limits {
        wall: hook.timeout,
        // The sandbox keeps half of the limit as the head of the output, and only the head is used.
        output_bytes: 2 * MAX_HOOK_OUTPUT_BYTES,
        flood_bytes: Some(MAX_OUTPUT_BYTES),
        ..Limits::default()
    };
    request.needs = place.needs;
    // A back end that doesn't confine reads and writes isn't the sandbox that the hook was
    // configured for.
    (request.needs.writes_confined, request.needs.reads_confined) = (true, true);
    request.needs.network_off &= hook.network != Network::Host;
    Ok(request)
}

fn command_end_of(completed: CompletedCommand) -> CommandEnd {
    let status = match completed.outcome {
        Outcome::Exited(code) => ExitKind::from(code),
        Outcome::Signaled(signal) => ExitKind::Signal(signal),
        Outcome::TimedOut => return CommandEnd::TimedOut,
        Outcome::Cancelled => return CommandEnd::Cancelled,
        Outcome::SetupFailed(why) => return CommandEnd::NotStarted(why.reason),
        other => return CommandEnd::Killed(other.exceeded_limit().unwrap_or_default()),
    };
    let denial = completed.denials.iter().find(|denial| denial.kind != DenialKind::Breach);
    let denial = denial.map(ToString::to_string);
    let kept =
        |stream: CapturedOutput| KeptOutput::from_bytes(stream.text.as_bytes(), stream.dropped_bytes > 0);
    CommandEnd::Exited { status, stdout: kept(completed.stdout), stderr: kept(completed.stderr), denial }
}
