//! `jm show`.

use crate::runtime::open_state;
use std::time::Duration;

use journeyman_agent::events;
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_host::sessions::{STATE_CUT_OFF, STATE_RUNNING, SessionState, find_session, session_state};
use journeyman_protocol::{Envelope, Event, RunReport, Seq};
use journeyman_sandbox::clean;
use journeyman_store::{SessionSummary, Store as _};

use crate::args::ShowArgs;
use crate::color;
use crate::render::Renderer;
use crate::stdout::{self, say};
use crate::summary::{self, Streamed};
use journeyman_host::HostError;
use journeyman_host::state::{StateDirs, now};

/// Maximum number of events read at once.
const PAGE_SIZE: usize = 500;
/// Time between two looks for a process that works on the followed session.
const HOLDER_POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn show(environment: &Environment, args: &ShowArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let mut screen = EventPrinter::new(args.json);
    let after = screen.show_all(&dirs, &session, Seq::START).await?;
    if args.follow {
        follow(&dirs, &session, &mut screen, after).await?;
    }
    screen.end(&dirs, &session).await?;
    Ok(0)
}

/// Shows what is added until nobody has the session any more.
async fn follow(
    dirs: &StateDirs,
    session: &SessionSummary,
    screen: &mut EventPrinter,
    mut after: Seq,
) -> Result<(), HostError> {
    loop {
        // Looked at before the entries are: whoever gives the session back has written all of them.
        let held = dirs.store.holder(&session.id, now()).await.context("the session log")?.is_some();
        after = screen.show_all(dirs, session, after).await?;
        if !held {
            return Ok(());
        }
        tokio::select! {
            biased;
            // What is there may be a record, which isn't shown.
            last = dirs.store.changed(&session.id, after) => after = screen
                .show_all(dirs, session, after)
                .await?
                .max(last.context("the session log")?),
            () = tokio::time::sleep(HOLDER_POLL_INTERVAL) => {}
        }
    }
}

/// Where events are shown, one after the other.
struct EventPrinter {
    json: bool,
    renderer: Renderer,
    ended: bool,
}

impl EventPrinter {
    fn new(json: bool) -> Self {
        Self { json, renderer: Renderer::to_stdout(color::stdout()), ended: false }
    }

    /// Shows all events after a place; gives the place of the last.
    async fn show_all(
        &mut self,
        dirs: &StateDirs,
        session: &SessionSummary,
        mut after: Seq,
    ) -> Result<Seq, HostError> {
        loop {
            let page = events(&*dirs.store, &session.id, after, PAGE_SIZE).await?;
            let Some(last) = page.last() else { return Ok(after) };
            after = last.seq.unwrap_or(after);
            for envelope in &page {
                self.show(envelope)?;
            }
        }
    }

    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        if self.json {
            say!("{}", serde_json::to_string(envelope).context("an event")?);
            return Ok(());
        }
        self.renderer.show(&envelope.event);
        match &envelope.event {
            Event::RunStarted { task, .. } => {
                self.ended = false;
                self.renderer.note(&clean(format!("task: {task}").as_bytes()));
            }
            Event::AgentResumed { .. } => self.ended = false,
            Event::Done { report } => {
                self.ended = true;
                self.renderer.end();
                // Where its work is now is said by what follows.
                let report = RunReport { copy: None, ..(**report).clone() };
                let text = summary::text(&report, Streamed::Yes, color::stdout());
                stdout::write(&format!("\n{text}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Says why there is no end where there is none.
    async fn end(&mut self, dirs: &StateDirs, session: &SessionSummary) -> Result<(), HostError> {
        self.renderer.end();
        if self.json || self.ended {
            return Ok(());
        }
        let SessionState { status, holder } = session_state(dirs, session).await?;
        match (status.as_str(), holder) {
            (STATE_RUNNING, Some(holder)) => {
                let holder = clean(holder.as_bytes());
                say!(
                    "\nthe session is running ({holder}); jm show --follow {} goes on showing it",
                    session.id
                );
            }
            (STATE_CUT_OFF, _) => {
                say!("\nthe session was cut off; jm resume {} finishes its task", session.id);
            }
            _ => {}
        }
        Ok(())
    }
}
