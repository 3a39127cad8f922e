//! `jm show`.

use std::path::Path;

use journeyman_host::HostError;
use journeyman_host::agents::load_agent_tree;
use journeyman_host::config::Environment;
use journeyman_host::events::{follow_events, read_events};
use journeyman_host::export::conversation_before_compaction;
use journeyman_host::format::printable;
use journeyman_host::renderer::Renderer;
use journeyman_host::session_evidence::{SessionEvidence, apply_landing, describe_changed_tree};
use journeyman_host::sessions::{
    SESSION_STATE_CUT_OFF, SESSION_STATE_RUNNING, SessionState, find_session, session_state,
};
use journeyman_protocol::{Envelope, Event, RunReport, Seq, SessionId};
use journeyman_terminal::stdout_paint;

use crate::args::ShowArgs;
use crate::display::{ReplyStreamed, print_text_report};
use crate::output::{self, print_json_line};
use crate::runtime::open_state;

pub(crate) async fn show_session(environment: &Environment, args: &ShowArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    if args.before_compaction {
        output::write_stdout(&conversation_before_compaction(&dirs, &session).await?);
        return Ok(0);
    }
    if args.evidence {
        let ledger = SessionEvidence::read(&dirs, &session).await?;
        match args.json {
            true => print_json_line(&ledger)?,
            false => output::write_stdout(&ledger.to_table(stdout_paint())),
        }
        return Ok(0);
    }
    if args.tree {
        let tree = load_agent_tree(&dirs, &session.id).await?;
        match args.json {
            true => print_json_line(&tree)?,
            false => tree.to_lines().iter().for_each(|line| outln!("{line}")),
        }
        return Ok(0);
    }
    let mut printer = EventPrinter::new(args.json);
    let mut show = |envelope: &Envelope| printer.print_event(envelope);
    if args.follow {
        follow_events(&dirs, &session.id, Seq::START, &mut show).await?;
    } else {
        read_events(&dirs, &session.id, Seq::START, &mut show).await?;
    }
    printer.renderer.end_line();
    if !printer.json && !printer.has_ended {
        print_unfinished_state(&session.id, session_state(&dirs, &session).await?);
    }
    if let Some(report) = printer.report.filter(|_| !args.json)
        && let Some(said) = describe_changed_tree(&report, &dirs, Path::new(&session.root))
    {
        outln!("{said}");
    }
    Ok(0)
}

/// Prints events, one after the other.
struct EventPrinter {
    json: bool,
    renderer: Renderer,
    has_ended: bool,
    /// The end of the last task.
    report: Option<Box<RunReport>>,
}

impl EventPrinter {
    fn new(json: bool) -> Self {
        Self { json, renderer: Renderer::for_stdout(), has_ended: false, report: None }
    }

    fn print_event(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        if self.json {
            return print_json_line(envelope);
        }
        self.renderer.show_envelope(envelope);
        match &envelope.event {
            Event::RunStarted { task, .. } => {
                self.has_ended = false;
                self.renderer.show_note(&printable(&format_args!("task: {task}")));
            }
            Event::AgentResumed { .. } => self.has_ended = false,
            Event::Done { report } => {
                self.has_ended = true;
                self.report = Some(report.clone());
                self.renderer.end_line();
                // The following lines show the location of its work.
                let report = RunReport { copy: None, ..(**report).clone() };
                output::write_stdout("\n");
                print_text_report(&report, ReplyStreamed::Yes);
            }
            event => {
                if let Some(report) = &mut self.report {
                    apply_landing(report, event);
                }
            }
        }
        Ok(())
    }
}

/// Prints why a session has not ended.
fn print_unfinished_state(session: &SessionId, SessionState { status, holder }: SessionState) {
    match (status.as_str(), holder) {
        (SESSION_STATE_RUNNING, Some(holder)) => {
            let holder = printable(&holder);
            outln!("\nthe session is running ({holder}); jm show --follow {session} goes on showing it");
        }
        (SESSION_STATE_CUT_OFF, _) => {
            outln!("\nthe session was cut off; jm resume {session} finishes its task")
        }
        _ => {}
    }
}
