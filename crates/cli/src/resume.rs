//! `jm resume`.

use std::path::Path;

use anyhow::Context as _;
use journeyman_agent::{
    AgentError, CutOff, Filter, SessionHandle, Since, State, Subscription, candidates, resume as open,
};
use journeyman_host::config::Environment;
use journeyman_protocol::{Event, MessageKind, RunOutcome, SessionId};
use journeyman_sandbox::clean;
use journeyman_store::{SessionSummary, Store as _};

use crate::args::ResumeArgs;
use crate::candidates::refuse as candidates_of;
use crate::color;
use crate::deliver::{Delivery, Place};
use crate::edge::{Failure, House, root};
use crate::question::Questions;
use crate::render::Renderer;
use crate::run::{Output, Prepared, Shown, stand_by, words};
use crate::sessions::{Claim, STATUS_IMPORTED, find};
use crate::settings::Before;

/// What is resumed, and what for.
struct Request {
    session: String,
    message: Option<String>,
}

pub(crate) async fn resume(environment: &Environment, args: Box<ResumeArgs>) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let request = request(&args)?;
    let summary = meant(&house, &request, find_in(&house, environment, &args, &request).await?).await?;
    // Nobody else may go on with it between the look at its state and its opening.
    let claim = Claim::take(&house, &summary.id, "resume").await?;
    let resumed = go_on(environment, &house, &args, request.message, &summary).await;
    // The session has given it back if it was opened.
    claim.give_back().await;
    resumed
}

/// Tells the session from the message. Standard input is only read for `-`.
fn request(args: &ResumeArgs) -> Result<Request, Failure> {
    let (session, message) = match (args.last, &args.session, &args.message) {
        (true, Some(_), Some(_)) => {
            return Err(Failure::usage(
                "--last stands for the session: give one message and no other session",
            ));
        }
        (true, message, None) | (true, None, message) => ("last".to_owned(), message),
        (false, session, message) => (session.clone().unwrap_or_else(|| "last".to_owned()), message),
    };
    if message.is_none() && session.contains(char::is_whitespace) {
        return Err(Failure::usage(format_args!(
            "«{session}» is no session's id; to say that to this directory's newest session: \
             jm resume --last \"MESSAGE\""
        )));
    }
    let message = message.as_deref().map(|message| words("message", message)).transpose()?;
    if message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; leave it out to finish what was cut off"));
    }
    Ok(Request { session, message })
}

/// The session; `last` is the newest of the directory that is given or of the current one.
async fn find_in(
    house: &House,
    environment: &Environment,
    args: &ResumeArgs,
    request: &Request,
) -> Result<SessionSummary, Failure> {
    match &args.options.directory {
        Some(dir) if request.session == "last" => {
            let place = Environment { cwd: root(environment, Some(dir))?, ..environment.clone() };
            find(house, &place, &request.session).await
        }
        _ => find(house, environment, &request.session).await,
    }
}

/// The session that a person means by the one that was found: who names none means the run, not the one of its
/// candidates that happens to be the newest.
async fn meant(house: &House, request: &Request, found: SessionSummary) -> Result<SessionSummary, Failure> {
    if request.session != "last" {
        return Ok(found);
    }
    let Some(run) = candidates::run_of(&*house.store, &found.id).await? else { return Ok(found) };
    let parent = house.store.find(run.parent.as_str()).await.context("the session log")?;
    Ok(parent.into_iter().find(|session| session.id == run.parent).unwrap_or(found))
}

async fn go_on(
    environment: &Environment,
    house: &House,
    args: &ResumeArgs,
    message: Option<String>,
    summary: &SessionSummary,
) -> Result<u8, Failure> {
    let options = &args.options;
    let id = &summary.id;
    let run = candidates::run_of(&*house.store, id).await?;
    let is_parent = run.as_ref().is_some_and(|run| run.parent == *id);
    if is_parent && !(args.close && message.is_none()) {
        return Err(candidates_of(environment, house, summary).await?);
    }
    let state = State::load(&*house.store, id).await?;
    // Messages that a task had not begun with go with it, those behind it don't.
    let opened = state.task.as_ref().is_some_and(|task| task.opened);
    let waits = state.queue.iter().any(|queued| queued.kind == MessageKind::User);
    let root = match &options.directory {
        Some(dir) => root(environment, Some(dir))?,
        None => root(environment, Some(Path::new(&summary.root)))?,
    };
    let kept = house.workspace(&root)?.copies().context("looking for its copy")?;
    let kept = kept.iter().any(|copy| copy.session == *id);
    if state.task.is_none() && !waits && message.is_none() {
        return Err(nothing_to_finish(id, &state, kept));
    }
    // What comes from elsewhere says nothing about what may be done here, or where it may be sent.
    let ours = summary.status != STATUS_IMPORTED;
    if let Some(setting) = state.setting.as_ref().filter(|_| !ours && !options.quiet) {
        let model = clean(setting.model.as_bytes());
        tell!(
            "the session was imported: elsewhere it ran with {model} in mode {}, and here it runs as you configure it",
            setting.mode.name()
        );
    }
    let before = state.setting.as_ref().filter(|_| ours).map(|setting| Before {
        model: setting.model.clone(),
        mode: setting.mode,
        asked: setting.asked.clone(),
    });
    let candidate_of = run.filter(|_| ours && !is_parent).map(|run| run.parent);
    let prepared = Prepared::new(environment, &root, options, before.as_ref())?;
    let asked = before.map(|before| before.asked).unwrap_or_default();
    let keeps = asked.keep || candidate_of.is_some();
    let place = if kept || candidate_of.is_some() { Place::Copy } else { prepared.place() };
    let mut delivery = Delivery::again(&options.delivery, place, &asked, keeps, args.land)?;
    if kept && delivery.place() == Place::Project {
        return Err(Failure::usage(format_args!(
            "the work of session {id} is in a copy of the project; land it (jm land {id}) or discard it \
             (jm discard {id}) before it goes on in the project itself"
        )));
    }
    let wired = prepared.wire(environment, house, &root, "resume")?;
    let parts = delivery.parts(&wired, id).await?;
    let mut settings = wired.settings.clone();
    delivery.put_on_record(&mut settings.asked);
    let cut_off = if args.close { CutOff::Close } else { CutOff::Continue };
    let session = open(parts, settings, id.clone(), cut_off).await?;
    // Before anything else is awaited: nothing that the session says is missed.
    let events = session.subscribe(Filter::all(), Since::Now);
    let shown = Shown::of(options);
    match message {
        Some(message) => {
            session.send(message).await?;
        }
        None if args.close && (!waits || !opened) => return close(&session, events, options.quiet).await,
        None => {}
    }
    let questions = Questions::new(wired.config_dir.clone());
    let report = stand_by(&session, events, questions, &wired.ground, shown).await?;
    drop(session);
    let report = delivery.settle(&wired, &report, shown).await?;
    let code = shown.print(&report)?;
    if let Some(parent) = candidate_of.filter(|_| shown.output == Output::Text) {
        tell!("it is a candidate: compare it with the others by jm candidates {parent}");
    }
    Ok(code)
}

/// Why a session can't go on without a message, and what can be done with it.
fn nothing_to_finish(id: &SessionId, state: &State, kept: bool) -> Failure {
    let ended = ended(state.outcome);
    let copy = match kept {
        true => format!(
            " Its copy is still there: jm land {id} brings what your files don't have yet into them, jm discard {id} \
             drops it."
        ),
        false => String::new(),
    };
    Failure::usage(format_args!(
        "session {id} has nothing to finish: {ended}.{copy} To go on with it, say how: jm resume {id} \"MESSAGE\""
    ))
}

/// Waits until what was cut off is closed, and leaves it at that.
async fn close(session: &SessionHandle, mut events: Subscription, quiet: bool) -> Result<u8, Failure> {
    let mut renderer = Renderer::new(color::stderr(), quiet);
    let closed = loop {
        match events.next().await {
            Ok(Some(envelope)) => {
                renderer.show(&envelope.event);
                if matches!(envelope.event, Event::AgentResumed { .. }) {
                    break Ok(());
                }
            }
            Ok(None) => break Err(AgentError::Ended),
            Err(error) => break Err(error),
        }
    };
    session.close().await;
    closed?;
    renderer.note(&format!(
        "its task is closed; to go on with the session: jm resume {} \"MESSAGE\"",
        session.id()
    ));
    Ok(0)
}

/// How the last task ended, for people.
fn ended(outcome: Option<RunOutcome>) -> String {
    let word = outcome.and_then(|outcome| serde_json::to_value(outcome).ok());
    match word.as_ref().and_then(|word| word.as_str()) {
        Some(word) => format!("its last task ended ({})", word.replace('_', " ")),
        None => "no task of its was begun".to_owned(),
    }
}
