//! `jm exec`: one command in the sandbox, as a check would run, for the person who types it.
//!
//! What the command may do is what was typed; nobody else is asked. So this is also how to see what
//! the sandbox does.

mod args;
mod output;
mod report;

use journeyman_host::load_trusted;
use journeyman_host::sandboxes;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_host::Context as _;
use journeyman_host::config::{Environment, parse_duration};
use journeyman_host::exec::{
    CommandAccess, CommandProject, DID_NOT_RUN, INTERRUPTED, UNREAD, exit_code, parse_network, parse_size,
    parse_variable, resolve_paths,
};
use journeyman_sandbox::{
    Completed, HostEnvironment, Limits, Live, Network, Request, Running, Sandbox, SandboxError, Stdin,
    Streams, WriteMode, toolchains,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(crate) use args::ExecArgs;

use crate::run::Signals;
use crate::stdout::say;
use crate::{color, open_state};
use journeyman_host::HostError;
use journeyman_host::state::project_root;
use output::Output;
use report::Report;

/// A person who types a command waits for it; this only ends what was forgotten.
const USUAL_WALL: Duration = Duration::from_secs(24 * 3600);
/// The largest standard input that is taken, in bytes: it is held in memory.
const MAX_INPUT: u64 = 256 * 1024 * 1024;
/// What `--json` keeps of each stream, in bytes, half from its beginning and half from its end.
const KEPT_OUTPUT: usize = 256 * 1024;
/// With less than this, in bytes, no program begins.
const LEAST_MEMORY: u64 = 4 * 1024 * 1024;
/// Where nobody knows how large the terminal is.
const USUAL_TERMINAL: (u16, u16) = (80, 24);

pub(crate) async fn exec(environment: &Environment, args: Box<ExecArgs>) -> Result<u8, HostError> {
    match run(environment, &args).await {
        // 1 is what many commands end with by themselves.
        Err(failure @ HostError::Failed { .. }) => {
            if args.json {
                let error = crate::shown_error(&failure);
                say!("{}", json!({ "exit_code": DID_NOT_RUN, "outcome": "setup_failed", "error": error }));
            }
            crate::print_error(&failure);
            Ok(DID_NOT_RUN)
        }
        other => other,
    }
}

async fn run(environment: &Environment, args: &ExecArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.root.as_deref())?;
    if root.parent().is_none() {
        // Refused anyway; before all files of the machine are looked at.
        return Err(HostError::usage(
            "-C: refused: the file system's root is no project; name a directory beneath it",
        ));
    }
    let mut config = load_trusted(environment, &root)?;
    config.sandbox_allow_root |= args.allow_root;
    let network = parse_network(&args.net, args.plain_http)?;
    let mut needs = sandboxes::required_needs(&config)?;
    needs.network_off &= network != Network::Host;
    let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
    let mut request = Request::program(&root, args.command.clone());
    request.network = network;
    let mut request = request.with_toolchains(&toolchains(&host, &root));
    request.needs = needs;
    request.cwd = if environment.cwd.starts_with(&root) { environment.cwd.clone() } else { root.clone() };
    request.write = if args.read_only { WriteMode::ReadOnly } else { WriteMode::Direct };
    request.writable = resolve_paths(environment, "--rw", &args.rw)?;
    request.read_only.extend(resolve_paths(environment, "--ro", &args.ro)?);
    for variable in &args.env {
        let (name, value) = parse_variable(environment, variable)?;
        request.env.insert(name, value);
    }
    request.limits = limits(args)?;
    request.stdin = if args.stdin { Stdin::Bytes(input()?) } else { Stdin::Null };
    request.live = if args.json { Live::Lossy } else { Live::Whole };
    if args.tty {
        let (columns, rows) = terminal();
        request.streams = Streams::Terminal { columns, rows };
    }
    let dirs = open_state(environment)?;
    let sandbox = Arc::new(dirs.sandbox(&config)?);
    let access = match (args.overlay, args.read_only) {
        (true, _) => CommandAccess::Overlay,
        (_, true) => CommandAccess::ReadOnly,
        _ => CommandAccess::Direct,
    };
    let project = CommandProject::open(&dirs, &root, &sandbox, access, &config.isolation)?;
    request.base = project.base();
    request.protected.extend(project.protected().iter().cloned());
    request.linked = project.linked().to_vec();
    let network = request.network.clone();
    if !args.quiet {
        for note in sandboxes::sandbox_notes(&sandbox, &request.needs).await {
            tell!("{} {note}", color::stderr().yellow("jm exec:"));
        }
    }
    let (completed, read) = run_and_show(&sandbox, request, args).await?;
    let effect = project.close(completed.enforcement.protected_kept)?;
    let code = if read { exit_code(&completed.outcome) } else { UNREAD };
    let report = Report { completed: &completed, network: &network, root: &root, args, effect, code };
    report.print()?;
    Ok(code)
}

/// Runs it, showing what it writes as it comes; and whether that was read to the end. The first
/// Ctrl-C ends the command, the second this program.
async fn run_and_show(
    sandbox: &Sandbox,
    request: Request,
    args: &ExecArgs,
) -> Result<(Completed, bool), HostError> {
    let mut signals = Signals::listen()?;
    let cancel = CancellationToken::new();
    let asked = (request.root.clone(), request.writable.clone());
    let begun = sandbox.spawn(request, cancel.clone()).await;
    let mut running: Running = begun.map_err(|error| refusal(error, &asked.0, &asked.1, args))?;
    let mut output = Output::new(args);
    let mut read = true;
    loop {
        let step = async {
            match running.next().await {
                Some(chunk) => output.take(chunk).await.map(|()| true),
                None => Ok(false),
            }
        };
        tokio::select! {
            biased;
            () = signals.next() => interrupt(&cancel),
            more = step => match more {
                Ok(true) => {}
                Ok(false) => break,
                // Nobody reads any more, so nobody needs the rest.
                Err(_) => {
                    cancel.cancel();
                    read = false;
                    break;
                }
            },
        }
    }
    output.end().await.ok();
    let mut end = std::pin::pin!(running.wait());
    loop {
        tokio::select! {
            biased;
            () = signals.next() => interrupt(&cancel),
            completed = &mut end => return Ok((completed.context("the sandbox")?, read)),
        }
    }
}

/// Why it wasn't begun. Where that is about a path that a flag names, it is for who typed it to
/// change.
fn refusal(error: SandboxError, root: &Path, writable: &[PathBuf], args: &ExecArgs) -> HostError {
    if let SandboxError::Refused(reason) = &error {
        let is_of = |path: &Path| reason.ends_with(&format!("(`{}`)", path.display()));
        let flag = if is_of(root) {
            Some("-C")
        } else if writable.iter().any(|path| is_of(path)) {
            Some("--rw")
        } else {
            (!args.ro.is_empty() && reason.contains("a read-only path")).then_some("--ro")
        };
        if let Some(flag) = flag {
            return HostError::usage(format_args!("{flag}: {error}"));
        }
    }
    HostError::Failed { what: Some("the sandbox".into()), source: error.into() }
}

fn interrupt(cancel: &CancellationToken) {
    if cancel.is_cancelled() {
        std::process::exit(i32::from(INTERRUPTED));
    }
    cancel.cancel();
}

fn limits(args: &ExecArgs) -> Result<Limits, HostError> {
    let mut limits = Limits { wall: USUAL_WALL, output_bytes: KEPT_OUTPUT, ..Limits::default() };
    if !args.json {
        // Who reads it says how much is enough.
        limits.flood_bytes = Some(u64::MAX);
    }
    if let Some(text) = &args.timeout {
        limits.wall = parse_duration(text).ok_or_else(|| {
            HostError::usage(format_args!("--timeout `{text}` is no time; say 90s, 10m or 2h"))
        })?;
    }
    if let Some(text) = &args.memory {
        let size = parse_size(text)
            .ok_or_else(|| HostError::usage(format_args!("--memory `{text}` is no size; say 512M or 4G")))?;
        if size < LEAST_MEMORY {
            return Err(HostError::usage(format_args!("--memory `{text}` is too little; at least 4M")));
        }
        limits.memory = Some(size);
    }
    if let Some(processes) = args.processes {
        limits.processes = processes.max(1);
    }
    Ok(limits)
}

fn input() -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    std::io::stdin().take(MAX_INPUT + 1).read_to_end(&mut bytes).context("standard input")?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(HostError::usage(format_args!(
            "standard input has more than {MAX_INPUT} bytes; give the command a file instead"
        )));
    }
    Ok(bytes)
}

/// Columns and rows of the terminal that this program writes to.
fn terminal() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => USUAL_TERMINAL,
    }
}
