//! `jm resume`.

use std::sync::Arc;

use journeyman_agent::{CutOffPolicy, EventFilter, Since, UserMessage};
use journeyman_host::HostError;
use journeyman_host::candidates::candidates_resume_error;
use journeyman_host::config::Environment;
use journeyman_host::images::read_images;
use journeyman_host::resume::{ReopenOptions, Resumption, find_resumable};
use journeyman_host::sessions::SessionClaim;
use journeyman_host::state::StateDirs;
use journeyman_host::task_input::{PipedData, TaskSource, read_task};
use journeyman_store::SessionSummary;
use journeyman_terminal::stderr_paint;
use journeyman_tui::watch_task_close_by_lines;

use crate::args::ResumeArgs;
use crate::display::{Display, OutputFormat};
use crate::run::{print_warnings, terminal_confirmations, watch_and_deliver};
use crate::runtime::open_state;

/// The name of the command, which other processes that want the session are told.
const COMMAND: &str = "resume";

pub(crate) async fn resume(environment: &Environment, args: Box<ResumeArgs>) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let (session, message) = parse_session_and_message(&args)?;
    let directory = args.options.directory.as_deref();
    let summary = find_resumable(&dirs, environment, &session, directory).await?;
    // No other process may resume the session between the look at its state and its opening.
    let resumed = resume_claimed(environment, &dirs, &args, message, &summary);
    SessionClaim::hold(&dirs, &summary.id, COMMAND, resumed).await
}

/// Splits the arguments into session and message. Reads standard input only for `-`.
fn parse_session_and_message(args: &ResumeArgs) -> Result<(String, Option<String>), HostError> {
    let (session, message) = match (args.last, &args.session, &args.message) {
        (true, Some(_), Some(_)) => {
            return Err(HostError::usage(
                "--last stands for the session: give one message and no other session",
            ));
        }
        (true, message, None) | (true, None, message) => ("last".to_owned(), message),
        (false, session, message) => (session.clone().unwrap_or_else(|| "last".to_owned()), message),
    };
    if message.is_none() && session.contains(char::is_whitespace) {
        return Err(HostError::usage(format_args!(
            "`{session}` is no session's id; to say that to this directory's newest session: \
             jm resume --last \"MESSAGE\""
        )));
    }
    let Some(message) = message else { return Ok((session, None)) };
    if message.trim().is_empty() {
        return Err(HostError::usage("the message is empty; leave it out to finish what was cut off"));
    }
    let message = read_task("message", TaskSource::Argument(message), PipedData::IfAny)?;
    message.note.iter().for_each(|note| errln!("{}", stderr_paint().dim(note)));
    Ok((session, Some(message.text)))
}

async fn resume_claimed(
    environment: &Environment,
    dirs: &Arc<StateDirs>,
    args: &ResumeArgs,
    message: Option<String>,
    summary: &SessionSummary,
) -> Result<u8, HostError> {
    let options = &args.options;
    let images = read_images(environment, &args.image)?;
    if message.is_none() && !images.is_empty() {
        return Err(HostError::usage("an image goes with a message: say what to do with it"));
    }
    let resumption = Resumption::load(environment, dirs, summary, options.directory.as_deref()).await?;
    if resumption.is_candidates_parent && !(args.close && message.is_none()) {
        return Err(candidates_resume_error(environment, dirs, summary, stderr_paint()).await?);
    }
    resumption.check_has_work(message.is_some())?;
    if let Some(notice) = resumption.describe_import().filter(|_| !options.output.quiet) {
        errln!("{notice}");
    }
    let options = ReopenOptions {
        run: &args.options.to_options(),
        delivery: &args.options.delivery.to_options(),
        land: args.land,
        cut_off: if args.close { CutOffPolicy::Close } else { CutOffPolicy::Continue },
        command: COMMAND,
    };
    let prompts = terminal_confirmations(&args.options);
    let closes_task = args.close && (!resumption.has_waiting_message || !resumption.is_task_open);
    let candidate_of = resumption.candidate_of.clone();
    let (template, session) = resumption.open(environment, dirs, &options, prompts, print_warnings).await?;
    // Before anything else is awaited, so that no event is missed.
    let events = session.subscribe(EventFilter::all(), Since::Now);
    match message {
        Some(message) => {
            session.send(UserMessage { text: message, images }).await?;
        }
        None if closes_task => {
            watch_task_close_by_lines(&session, events, args.options.output.detail()).await?;
            return Ok(0);
        }
        None => {}
    }
    let display = Display::from_options(&args.options.output);
    let report = watch_and_deliver(&template, session, events, display).await?;
    let code = display.print_report(&report)?;
    if let Some(parent) = candidate_of.filter(|_| display.output == OutputFormat::Text) {
        errln!("it is a candidate: compare it with the others by jm candidates {parent}");
    }
    Ok(code)
}
