//! `jm run --candidates` and `jm candidates`.

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::candidates::{self, Finish, Heard, Race};
use journeyman_agent::copies::{LandEnd, LandWish};
use journeyman_host::config::{Config, Environment};
use journeyman_protocol::{CandidateReport, CopyState, Envelope, RunOutcome, RunReport, SessionId};
use journeyman_sandbox::clean;
use journeyman_store::{SessionSummary, Store as _};
use tokio_util::sync::CancellationToken;

use crate::args::CandidatesArgs;
use crate::deliver::{Delivery, stoppable, tell};
use crate::edge::{Failure, House, now, root};
use crate::land::land_as;
use crate::render::Renderer;
use crate::run::{Output, Shown, line};
use crate::sessions::find;
use crate::stdout::say;
use crate::wire::{Ground, Wired};
use crate::{color, prompt, summary};

/// Sessions among which the newest with candidates is looked for.
const LOOKED_AT: usize = 50;

/// Runs the candidates of a task, and offers the best.
pub(crate) async fn run(
    wired: Wired,
    task: &str,
    count: u32,
    land: bool,
    delivery: &Delivery,
    shown: Shown,
) -> Result<u8, Failure> {
    let context = wired.land_context();
    let mut settings = wired.settings.clone();
    delivery.put_on_record(&mut settings.asked);
    // Each in a copy of its own, where it stays until somebody takes it.
    (settings.asked.isolate, settings.asked.keep) = (Some(true), true);
    let new_id = || SessionId::new(now(), fastrand::u64(..));
    let race = Race {
        context: &context,
        parts: &|| wired.parts(),
        settings,
        parent: new_id(),
        candidates: (0..count).map(|_| new_id()).collect(),
        land,
    };
    let stop = CancellationToken::new();
    let mut screen = Screen::new(shown, count);
    let ran = stoppable(race.run(task, &stop, |heard| screen.show(&heard)), &stop).await?;
    screen.failed.map_or(Ok(()), Err)?;
    let Finish { parent, candidates, mut report } = ran?;
    let wish = delivery.wish();
    let picked = match (&wish, pick(&candidates, land, shown)?) {
        (Some(wish), Some(picked)) => Some((picked, LandWish { ..wish.clone() })),
        _ => None,
    };
    if let Some((picked, wish)) = picked {
        let landed = land_as(&context, &picked, &wish).await?;
        tell(&landed.events, shown)?;
        if picked != report.session {
            let theirs = journeyman_agent::copies::last_report(&*context.store, &picked).await?;
            report = theirs
                .map_or(report.clone(), |theirs| RunReport { candidates: candidates.clone(), ..theirs });
        }
        landed.amend(&mut report);
        for candidate in report.candidates.iter_mut().filter(|candidate| candidate.session == picked) {
            candidate.state = landed.copy.state;
        }
        let others = report.candidates.iter().any(|candidate| candidate.state == CopyState::Kept);
        if landed.end == LandEnd::Landed && others && shown.output == Output::Text {
            tell!("the others are kept; remove them with: jm discard --all {parent}");
        }
    } else if shown.output == Output::Text {
        tell!("take one with: jm land SESSION; remove them all with: jm discard --all {parent}");
    }
    shown.print(&report)
}

/// Which one is landed now: the best where a flag says so, or whichever the person at the terminal picks.
fn pick(candidates: &[CandidateReport], land: bool, shown: Shown) -> Result<Option<SessionId>, Failure> {
    let best = candidates.first().filter(|best| best.outcome == Some(RunOutcome::Verified));
    if land {
        return Ok(best.map(|best| best.session.clone()));
    }
    let kept: Vec<&CandidateReport> =
        candidates.iter().filter(|candidate| candidate.state == CopyState::Kept).collect();
    let asks = shown.is_interactive() && std::io::stdin().is_terminal();
    let (Some(first), true) = (kept.first(), asks) else { return Ok(None) };
    let paint = color::stderr();
    tell_part!("\n{}", summary::candidates(candidates, paint));
    let verified = kept.iter().filter(|candidate| candidate.outcome == Some(RunOutcome::Verified));
    let numbers: Vec<String> = verified.map(|candidate| candidate.number.to_string()).collect();
    if numbers.is_empty() {
        return Ok(None);
    }
    let question = format!("Land candidate {}? [y]es, [n]o, or another one's number: ", first.number);
    loop {
        let answer = prompt::ask(&question).context("asking")?;
        match answer.trim() {
            "y" | "Y" | "yes" => return Ok(Some(first.session.clone())),
            "" | "n" | "N" | "no" => return Ok(None),
            other if numbers.iter().any(|number| number == other) => {
                let picked = kept.iter().find(|candidate| candidate.number.to_string() == other);
                return Ok(picked.map(|picked| picked.session.clone()));
            }
            _ => tell!("there are: y, n, {}", numbers.join(", ")),
        }
    }
}

/// Shows what several sessions do, each line with its number.
struct Screen {
    shown: Shown,
    parent: Renderer,
    renderers: Vec<Renderer>,
    failed: Option<Failure>,
}

impl Screen {
    fn new(shown: Shown, count: u32) -> Self {
        let paint = color::stderr();
        let quiet = shown.is_quiet();
        let renderers = (1..=count).map(|number| Renderer::numbered(paint, quiet, number)).collect();
        Self { shown, parent: Renderer::new(paint, quiet), renderers, failed: None }
    }

    fn show(&mut self, heard: &Heard) {
        let envelope: &Arc<Envelope> = match heard {
            Heard::Parent(envelope) | Heard::Candidate(_, envelope) => envelope,
        };
        if self.shown.output == Output::StreamJson {
            let written = serde_json::to_string(&**envelope).context("an event").map_err(Failure::from);
            if let Err(error) = written.and_then(|text| line(&text)) {
                self.failed.get_or_insert(error);
            }
        }
        let renderer = match heard {
            Heard::Parent(_) => Some(&mut self.parent),
            Heard::Candidate(number, _) => {
                usize::try_from(number.saturating_sub(1)).ok().and_then(|place| self.renderers.get_mut(place))
            }
        };
        if let Some(renderer) = renderer {
            renderer.show(&envelope.event);
        }
    }
}

/// `jm candidates`.
pub(crate) async fn list(environment: &Environment, args: &CandidatesArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let session = match &args.session {
        Some(word) => find(&house, environment, word).await?,
        None => newest(&house, environment).await?,
    };
    let place = root(environment, Some(std::path::Path::new(&session.root)))?;
    let ground = Ground::new(environment, &house, &place, &Config::default(), Vec::new(), "candidates")?;
    let race = candidates::compare(&*house.store, &ground.isolation(), &session.id).await?;
    let (parent, all) =
        race.ok_or_else(|| Failure::usage(format_args!("session {} has no candidates", session.id)))?;
    if all.is_empty() {
        return Err(none_begun(&parent));
    }
    if args.json {
        say!("{}", serde_json::json!({ "parent": parent, "candidates": all }));
        return Ok(0);
    }
    let title = clean(session.title.as_bytes());
    say!("{}", color::stdout().bold(&title));
    crate::stdout::write(&summary::candidates(&all, color::stdout()));
    if all.iter().any(|candidate| candidate.state == CopyState::Kept) {
        say!("take one with: jm land SESSION; remove them all with: jm discard --all {parent}");
    }
    Ok(0)
}

/// What can be done with a task whose candidates never began.
fn none_begun(parent: &SessionId) -> Failure {
    Failure::usage(format_args!(
        "session {parent} was cut off before any of its candidates began; give the task again with jm run \
         --candidates, and remove this one with: jm delete {parent}"
    ))
}

/// Says of a session whose task was given to candidates what they are and what can be done with them: it has nothing
/// of its own to go on with.
pub(crate) async fn refuse(
    environment: &Environment,
    house: &House,
    session: &SessionSummary,
) -> Result<Failure, Failure> {
    let place = root(environment, Some(std::path::Path::new(&session.root)))?;
    let ground = Ground::new(environment, house, &place, &Config::default(), Vec::new(), "resume")?;
    let compared = candidates::compare(&*house.store, &ground.isolation(), &session.id).await?;
    let Some((parent, all)) = compared.filter(|(_, all)| !all.is_empty()) else {
        return Ok(none_begun(&session.id));
    };
    Ok(Failure::usage(format_args!(
        "the task of session {parent} was given to candidates, so there is nothing of its own to go on with:\n{}\
         finish one that was cut off, or go on with one: jm resume SESSION; take one: jm land SESSION; remove them \
         all: jm discard --all {parent}",
        summary::candidates(&all, color::stderr())
    )))
}

/// This directory's newest session whose task was given to candidates.
async fn newest(house: &House, environment: &Environment) -> Result<SessionSummary, Failure> {
    let here = root(environment, None)?.display().to_string();
    let sessions = house.store.sessions(Some(&here), LOOKED_AT).await.context("the session log")?;
    for session in sessions {
        if candidates::started(&*house.store, &session.id).await?.is_some() {
            return Ok(session);
        }
    }
    Err(Failure::usage(
        "no task of this directory was given to candidates; jm run --candidates N \"TASK\" does",
    ))
}
