//! `jm exec`: one command in the sandbox, as a check would run, for the person who types it.
//!
//! The command line alone decides what the command may do; nobody else is asked. So this is also
//! how to see what the sandbox does.

mod args;
mod output;
mod report;

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::exec::{
    CommandAccess, CommandOptions, CommandRequest, EXIT_DID_NOT_RUN, setup_failure_to_json,
};
use journeyman_host::input::read_bytes;
use journeyman_terminal::{Size, stderr_paint};
use journeyman_tui::stop_signals::run_until_stopped;
use tokio_util::sync::CancellationToken;

use crate::output::{format_error, print_error};
use crate::runtime::open_state;
use output::CommandOutput;

pub(crate) use args::ExecArgs;

/// Maximum size of the standard input, in bytes: it is held in memory.
const MAX_INPUT_BYTES: u64 = 256 * 1024 * 1024;

pub(crate) async fn exec(environment: &Environment, args: Box<ExecArgs>) -> Result<u8, HostError> {
    match run_command(environment, &args).await {
        // 1 is what many commands end with by themselves.
        Err(failure @ HostError::Failed { .. }) => {
            if args.json {
                outln!("{}", setup_failure_to_json(&format_error(&failure)));
            }
            print_error(&failure);
            Ok(EXIT_DID_NOT_RUN)
        }
        other => other,
    }
}

async fn run_command(environment: &Environment, args: &ExecArgs) -> Result<u8, HostError> {
    let request = CommandRequest::new(environment, command_options(args)?)?;
    let command = request.open(&*open_state(environment)?)?;
    if !args.quiet {
        for note in command.sandbox_notes().await {
            errln!("{} {note}", stderr_paint().yellow("jm exec:"));
        }
    }
    let stop = CancellationToken::new();
    let mut output = CommandOutput::new(args);
    let running = command.run(&stop, async |chunk| output.write_chunk(chunk).await);
    let report = run_until_stopped(running, &stop).await??;
    output.finish().await.ok();
    report::print_report(&report, args)?;
    Ok(report.code)
}

fn command_options(args: &ExecArgs) -> Result<CommandOptions, HostError> {
    let stdin = match args.stdin {
        true => Some(read_bytes("input", std::io::stdin(), "standard input", MAX_INPUT_BYTES)?),
        false => None,
    };
    Ok(CommandOptions {
        command: args.command.clone(),
        root: args.root.clone(),
        access: match (args.overlay, args.read_only) {
            (true, _) => CommandAccess::Overlay,
            (_, true) => CommandAccess::ReadOnly,
            _ => CommandAccess::Direct,
        },
        net: args.net.clone(),
        plain_http: args.plain_http,
        writable: args.rw.clone(),
        readable: args.ro.clone(),
        variables: args.env.clone(),
        timeout: args.timeout.clone(),
        memory: args.memory.clone(),
        processes: args.processes,
        stdin,
        terminal: args.tty.then(terminal_size),
        captures_output: args.json,
        allow_root: args.allow_root,
    })
}

/// Returns the columns and rows of the terminal that this program writes to.
fn terminal_size() -> (u16, u16) {
    let Size { columns, rows } = Size::of_terminal(std::io::stdout());
    (u16::try_from(columns).unwrap_or(u16::MAX), u16::try_from(rows).unwrap_or(u16::MAX))
}
