//! `jm show`.

use anyhow::Context as _;
use journeyman_agent::config::Environment;
use journeyman_agent::events;
use journeyman_protocol::{Envelope, Event, RunReport, Seq};
use journeyman_sandbox::clean;

use crate::args::ShowArgs;
use crate::color;
use crate::edge::{Failure, House};
use crate::render::Renderer;
use crate::sessions::find;
use crate::stdout::{self, say};
use crate::summary::{self, Seen};

/// Events read at once.
const PAGE: usize = 500;

pub(crate) async fn show(environment: &Environment, args: &ShowArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let session = find(&house, environment, &args.session).await?;
    let mut screen = Screen::new(args.json);
    let mut after = Seq::START;
    loop {
        let page = events(&*house.store, &session.id, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq.unwrap_or(after);
        for envelope in page {
            screen.show(envelope)?;
        }
    }
    screen.end();
    Ok(0)
}

/// Where events are shown, one after the other.
struct Screen {
    json: bool,
    renderer: Renderer,
    report: Option<Box<RunReport>>,
}

impl Screen {
    fn new(json: bool) -> Self {
        Self { json, renderer: Renderer::to_stdout(color::stdout()), report: None }
    }

    fn show(&mut self, envelope: Envelope) -> Result<(), Failure> {
        if self.json {
            say!("{}", serde_json::to_string(&envelope).context("an event")?);
            return Ok(());
        }
        if matches!(envelope.event, Event::RunStarted { .. }) {
            self.report();
        }
        self.renderer.show(&envelope.event);
        match envelope.event {
            Event::RunStarted { task, .. } => {
                self.renderer.note(&clean(format!("task: {task}").as_bytes()));
            }
            Event::Done { report } => self.report = Some(report),
            _ => {}
        }
        Ok(())
    }

    /// The report of the last task, before the next one begins or at the end.
    fn report(&mut self) -> bool {
        self.renderer.end();
        let Some(report) = self.report.take() else { return false };
        stdout::write(&format!("\n{}", summary::text(&report, Seen::Yes, color::stdout())));
        true
    }

    fn end(&mut self) {
        if !self.json && !self.report() {
            say!("\nthe session has no end: it is running, or was cut off");
        }
    }
}
