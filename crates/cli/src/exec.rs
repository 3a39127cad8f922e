//! `jm exec`: one command in the sandbox, as a check would run, for the person who types it.
//!
//! What the command may do is what was typed; nobody else is asked. So this is also how to see what the sandbox does.

mod args;
mod ground;
mod output;
mod report;

use journeyman_host::load_trusted;
use journeyman_host::sandboxes;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_host::Context as _;
use journeyman_host::config::{Environment, duration};
use journeyman_policy::registry;
use journeyman_sandbox::{
    Completed, HostEnvironment, HostPattern, Limits, Live, Network, NetworkRules, Outcome, Request, Running,
    Sandbox, SandboxError, Stdin, Streams, WriteMode, toolchains,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(crate) use args::{ExecArgs, HELP};

use crate::run::Signals;
use crate::stdout::say;
use crate::{color, open_state};
use ground::Ground;
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

/// Exit codes besides the command's own, as `timeout` and shells use them.
const LIMIT: u8 = 123;
const TIMED_OUT: u8 = 124;
const DID_NOT_RUN: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_THERE: u8 = 127;
const INTERRUPTED: u8 = 130;
/// As a shell has it for a program that writes to nobody.
const UNREAD: u8 = 141;
const SIGNALLED: u8 = 128;

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
    let network = network(args)?;
    let mut needs = sandboxes::required_needs(&config)?;
    needs.network_off &= network != Network::Host;
    let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
    let mut request = Request::program(&root, args.command.clone());
    request.network = network;
    let mut request = request.with_toolchains(&toolchains(&host, &root));
    request.needs = needs;
    request.cwd = if environment.cwd.starts_with(&root) { environment.cwd.clone() } else { root.clone() };
    request.write = if args.read_only { WriteMode::ReadOnly } else { WriteMode::Direct };
    request.writable = paths(environment, "--rw", &args.rw)?;
    request.read_only.extend(paths(environment, "--ro", &args.ro)?);
    for variable in &args.env {
        let (name, value) = self::variable(environment, variable)?;
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
    let how = (args.overlay, args.read_only);
    let ground = Ground::open(&dirs, &root, &sandbox, how, &config.isolation)?;
    request.base = ground.base();
    request.protected.extend(ground.protected().iter().cloned());
    request.linked = ground.linked().to_vec();
    let network = request.network.clone();
    if !args.quiet {
        for note in sandboxes::sandbox_notes(&sandbox, &request.needs).await {
            tell!("{} {note}", color::stderr().yellow("jm exec:"));
        }
    }
    let (completed, read) = see_through(&sandbox, request, args).await?;
    let ended = ground.close(completed.enforcement.protected_kept)?;
    let code = if read { exit_code(&completed.outcome) } else { UNREAD };
    let report = Report { completed: &completed, network: &network, root: &root, args, ended, code };
    report.print()?;
    Ok(code)
}

/// Runs it, showing what it writes as it comes; and whether that was read to the end. The first Ctrl-C ends the command,
/// the second this program.
async fn see_through(
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

/// Why it wasn't begun. Where that is about a path that a flag names, it is for who typed it to change.
fn refusal(error: SandboxError, root: &Path, writable: &[PathBuf], args: &ExecArgs) -> HostError {
    if let SandboxError::Refused(reason) = &error {
        let is_of = |path: &Path| reason.ends_with(&format!("(«{}»)", path.display()));
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

/// The command's own code, or what it came to otherwise.
fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Exited(code) => u8::try_from(*code & 0xff).unwrap_or(1),
        Outcome::Signaled(signal) => SIGNALLED.saturating_add(u8::try_from(*signal).unwrap_or(0)),
        Outcome::TimedOut => TIMED_OUT,
        Outcome::Cancelled => INTERRUPTED,
        Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit => LIMIT,
        Outcome::SetupFailed(reason) if !reason.starts_with("executing ") => DID_NOT_RUN,
        Outcome::SetupFailed(reason) if reason.contains("No such file") => NOT_THERE,
        Outcome::SetupFailed(_) => NOT_EXECUTABLE,
    }
}

/// The network that `--net` asks for.
fn network(args: &ExecArgs) -> Result<Network, HostError> {
    let words: Vec<&str> = args.net.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] | ["off"] => return Ok(Network::Off),
        ["on"] => return Ok(Network::Host),
        words if words.contains(&"on") || words.contains(&"off") => {
            return Err(HostError::usage("--net is off, on, or hosts and registries; not both"));
        }
        _ => {}
    }
    let mut hosts = Vec::new();
    for word in words {
        for host in registry::hosts(word).map_err(|error| HostError::usage(format_args!("--net: {error}")))? {
            let host: HostPattern =
                host.parse().map_err(|error| HostError::usage(format_args!("--net: {error}")))?;
            hosts.push(host);
        }
    }
    hosts.sort();
    hosts.dedup();
    Ok(Network::Filtered(Arc::new(NetworkRules { hosts, plain_http: args.plain_http })))
}

/// Paths that are there, links followed: what is mounted is what they lead to now.
fn paths(environment: &Environment, flag: &str, given: &[PathBuf]) -> Result<Vec<PathBuf>, HostError> {
    let real = |path: &PathBuf| {
        let whole = environment.cwd.join(path);
        std::fs::canonicalize(&whole)
            .map_err(|error| HostError::usage(format_args!("{flag} {}: {error}", path.display())))
    };
    given.iter().map(real).collect()
}

fn variable(environment: &Environment, given: &str) -> Result<(OsString, OsString), HostError> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, OsString::from(value)),
        None => match environment.vars.get(Path::new(given).as_os_str()) {
            Some(value) => (given, value.clone()),
            None => return Err(HostError::usage(format_args!("--env {given}: you have no such variable"))),
        },
    };
    if name.is_empty() {
        return Err(HostError::usage(format_args!("--env «{given}» names no variable")));
    }
    Ok((name.into(), value))
}

fn limits(args: &ExecArgs) -> Result<Limits, HostError> {
    let mut limits = Limits { wall: USUAL_WALL, output_bytes: KEPT_OUTPUT, ..Limits::default() };
    if !args.json {
        // Who reads it says how much is enough.
        limits.flood_bytes = Some(u64::MAX);
    }
    if let Some(text) = &args.timeout {
        limits.wall = duration(text).ok_or_else(|| {
            HostError::usage(format_args!("--timeout «{text}» is no time; say 90s, 10m or 2h"))
        })?;
    }
    if let Some(text) = &args.memory {
        let size = size(text)
            .ok_or_else(|| HostError::usage(format_args!("--memory «{text}» is no size; say 512M or 4G")))?;
        if size < LEAST_MEMORY {
            return Err(HostError::usage(format_args!("--memory «{text}» is too little; at least 4M")));
        }
        limits.memory = Some(size);
    }
    if let Some(processes) = args.processes {
        limits.processes = processes.max(1);
    }
    Ok(limits)
}

/// Reads `512M`, `4G`, `4GiB` or a number of bytes; at least one.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("1", 1), ("512M", 512 << 20), ("4GiB", 4 << 30), (" 2 k ", 2048), ("3tb", 3 << 40)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "M", "-1", "1.5G", "1x", "99999999999T"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn codes_tell_what_became_of_it() {
        for (outcome, code) in [
            (Outcome::Exited(0), 0),
            (Outcome::Exited(255), 255),
            (Outcome::Signaled(15), 143),
            (Outcome::TimedOut, 124),
            (Outcome::MemoryLimit, 123),
            (Outcome::Cancelled, 130),
            (Outcome::SetupFailed("mounting /x: Permission denied (os error 13)".into()), 125),
        ] {
            assert_eq!(exit_code(&outcome), code, "{outcome:?}");
        }
    }
}
