//! `jm show`.

use std::time::Duration;

use anyhow::Context as _;
use journeyman_agent::events;
use journeyman_host::config::Environment;
use journeyman_protocol::{Envelope, Event, RunReport, Seq};
use journeyman_sandbox::clean;
use journeyman_store::{SessionSummary, Store as _};

use crate::args::ShowArgs;
use crate::color;
use crate::edge::{Failure, House, now};
use crate::render::Renderer;
use crate::sessions::{CUT_OFF, RUNNING, find, state};
use crate::stdout::{self, say};
use crate::summary::{self, Seen};

/// Events read at once.
const PAGE: usize = 500;
/// How often it is looked whether anybody still works on the session that is followed.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn show(environment: &Environment, args: &ShowArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let session = find(&house, environment, &args.session).await?;
    let mut screen = Screen::new(args.json);
    let after = screen.show_all(&house, &session, Seq::START).await?;
    if args.follow {
        follow(&house, &session, &mut screen, after).await?;
    }
    screen.end(&house, &session).await?;
    Ok(0)
}

/// Shows what is added until nobody has the session any more.
async fn follow(
    house: &House,
    session: &SessionSummary,
    screen: &mut Screen,
    mut after: Seq,
) -> Result<(), Failure> {
    loop {
        // Looked at before the entries are: whoever gives the session back has written all of them.
        let held = house.store.holder(&session.id, now()).await.context("the session log")?.is_some();
        after = screen.show_all(house, session, after).await?;
        if !held {
            return Ok(());
        }
        tokio::select! {
            biased;
            // What is there may be a record, which isn't shown.
            last = house.store.changed(&session.id, after) => after = screen
                .show_all(house, session, after)
                .await?
                .max(last.context("the session log")?),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Where events are shown, one after the other.
struct Screen {
    json: bool,
    renderer: Renderer,
    ended: bool,
}

impl Screen {
    fn new(json: bool) -> Self {
        Self { json, renderer: Renderer::to_stdout(color::stdout()), ended: false }
    }

    /// Shows all events after a place; gives the place of the last.
    async fn show_all(
        &mut self,
        house: &House,
        session: &SessionSummary,
        mut after: Seq,
    ) -> Result<Seq, Failure> {
        loop {
            let page = events(&*house.store, &session.id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(after) };
            after = last.seq.unwrap_or(after);
            for envelope in &page {
                self.show(envelope)?;
            }
        }
    }

    fn show(&mut self, envelope: &Envelope) -> Result<(), Failure> {
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
                let text = summary::text(&report, Seen::Yes, color::stdout());
                stdout::write(&format!("\n{text}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Says why there is no end where there is none.
    async fn end(&mut self, house: &House, session: &SessionSummary) -> Result<(), Failure> {
        self.renderer.end();
        if self.json || self.ended {
            return Ok(());
        }
        let (status, holder) = state(house, session).await?;
        match (status.as_str(), holder) {
            (RUNNING, Some(holder)) => {
                let holder = clean(holder.as_bytes());
                say!(
                    "\nthe session is running ({holder}); jm show --follow {} goes on showing it",
                    session.id
                );
            }
            (CUT_OFF, _) => {
                say!("\nthe session was cut off; jm resume {} finishes its task", session.id);
            }
            _ => {}
        }
        Ok(())
    }
}
