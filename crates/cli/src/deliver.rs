//! Where a run works, and what becomes of its work: a copy that is landed, the project itself, a commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::copies::{self, CommitWish, LandWish};
use journeyman_agent::{AgentError, Asked, Parts};
use journeyman_git::{GitError, HookRun};
use journeyman_protocol::{CopyState, Envelope, RelPath, RunOutcome, RunReport, SessionId};
use journeyman_sandbox::clean;
use tokio_util::sync::CancellationToken;

use crate::args::DeliveryArgs;
use crate::edge::Failure;
use crate::render::Renderer;
use crate::run::{Output, Shown, Signals, line};
use crate::wire::Wired;
use crate::{color, prompt};

/// The maximum number of uncommitted files that are kept on record. With more, a session that was cut off takes all
/// that is uncommitted when it goes on for the user's.
const MAX_RECORDED: usize = 10_000;

/// Where the work goes, as flags and configuration say.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    place: Place,
    /// `None` keeps the work in its copy.
    wish: Option<LandWish>,
    commit: Option<CommitWish>,
    /// What was uncommitted when the session began; known where it is to commit.
    before: Option<BTreeSet<RelPath>>,
}

/// Where a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the project itself.
    Project,
    /// In a copy of its own.
    Copy,
}

impl Delivery {
    /// `place` is where the session works unless a flag says otherwise.
    pub(crate) fn new(args: &DeliveryArgs, place: Place) -> Result<Self, Failure> {
        let place = match (args.isolate, args.no_isolate) {
            (true, _) => Place::Copy,
            (_, true) => Place::Project,
            _ => place,
        };
        // What goes onto a branch of its own never was in the user's files.
        let place = match &args.branch {
            Some(_) if args.no_isolate => {
                return Err(Failure::usage("--branch works in a copy, so that your files stay as they are"));
            }
            Some(_) => Place::Copy,
            None => place,
        };
        if args.no_land && place == Place::Project {
            return Err(Failure::usage("--no-land keeps the work in a copy; it goes with --isolate"));
        }
        if args.no_land && (args.commit || args.branch.is_some()) {
            return Err(Failure::usage(
                "--no-land leaves the work in its copy, where nothing is committed; `jm land --commit` does both later",
            ));
        }
        let commit =
            commit_wish(args.commit, args.branch.as_ref(), args.commit_message.as_ref(), args.no_verify)?;
        let wish = (!args.no_land).then(|| LandWish { commit: commit.clone(), ..LandWish::default() });
        Ok(Self { place, wish, commit, before: None })
    }

    /// As a session was started with: what was asked for then holds where no flag says otherwise. The work of one
    /// that was to keep it, such as a candidate, is landed only where `land` says so.
    pub(crate) fn again(
        args: &DeliveryArgs,
        place: Place,
        asked: &Asked,
        keeps: bool,
        land: bool,
    ) -> Result<Self, Failure> {
        let keeps = keeps && !land;
        let commits = args.commit || args.branch.is_some();
        if keeps && (commits || args.no_isolate) {
            return Err(Failure::usage(
                "the work of this session was to stay in its copy; with --land it is landed, and committed where you \
                 say so",
            ));
        }
        let mut args = DeliveryArgs { no_land: args.no_land || keeps, ..args.clone() };
        let earlier = asked.commit.as_ref().filter(|_| !commits && !args.no_land);
        if let Some(CommitWish { branch, message, hooks }) = earlier {
            (args.commit, args.branch) = (true, branch.clone().filter(|_| !args.no_isolate));
            args.no_verify |= *hooks == HookRun::Skipped;
            args.commit_message = args.commit_message.or_else(|| message.clone());
        }
        let mut delivery = Self::new(&args, place)?;
        delivery.before = asked.uncommitted.as_ref().map(|paths| paths.iter().cloned().collect());
        Ok(delivery)
    }

    /// Puts on record what is asked for, so that it holds when the session is opened again.
    pub(crate) fn put_on_record(&self, asked: &mut Asked) {
        asked.isolate = Some(self.place == Place::Copy);
        asked.keep = self.wish.is_none();
        asked.commit.clone_from(&self.commit);
        let few = self.before.as_ref().filter(|paths| paths.len() <= MAX_RECORDED);
        asked.uncommitted = few.map(|paths| paths.iter().cloned().collect());
    }

    /// How the work is landed; `None` where it is to stay in its copy.
    pub(crate) fn wish(&self) -> Option<LandWish> {
        self.wish.clone()
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The parts of the session that begins or goes on now, in the copy where it has one.
    pub(crate) async fn parts(&mut self, wired: &Wired, session: &SessionId) -> Result<Parts, Failure> {
        if self.commit.is_some() && self.before.is_none() {
            // Asked also where a copy is landed: a commit that can't be made is known before anything is done.
            self.before = Some(copies::uncommitted(&wired.ground.git).await.map_err(AgentError::from)?);
        }
        if let Some(wish) = self.commit.as_ref().filter(|_| !wired.asks()) {
            let checked = wired.ground.committer.check(wish, &[], &CancellationToken::new()).await;
            checked.map_err(|error| match error.needs_person() {
                true => Failure::needs_person(error),
                false => AgentError::from(error).into(),
            })?;
        }
        if let Some(CommitWish { branch: Some(name), .. }) = &self.commit {
            let may_be = wired.ground.committer.git.check_branch(name, &CancellationToken::new()).await;
            may_be.map_err(|error| match error {
                GitError::Unfit(reason) => Failure::usage(reason),
                other => AgentError::from(other).into(),
            })?;
        }
        match self.place {
            Place::Project => Ok(wired.parts()),
            Place::Copy => {
                let (isolation, session) = (wired.ground.isolation(), session.clone());
                let entered = tokio::task::spawn_blocking(move || isolation.enter(&session)).await;
                Ok(wired.parts().within(entered.context("copying the project")??))
            }
        }
    }

    /// Lands, keeps or commits what a run did, once its session is closed.
    pub(crate) async fn settle(
        &self,
        wired: &Wired,
        report: &Arc<RunReport>,
        shown: Shown,
    ) -> Result<RunReport, Failure> {
        let mut report = (**report).clone();
        let context = wired.land_context();
        let nothing = BTreeSet::new();
        let before = self.before.as_ref().unwrap_or(&nothing);
        let stop = CancellationToken::new();
        let commit = self.asked(wired, &report, &stop).await?;
        let wish = self.wish.as_ref().map(|wish| LandWish { commit: commit.clone(), ..wish.clone() });
        let told = {
            let settling = async {
                match (self.place, &commit) {
                    (Place::Copy, _) => copies::settle(&context, &mut report, wish.as_ref(), &stop).await,
                    (Place::Project, Some(wish)) => {
                        copies::commit_run(&context, &mut report, wish, before, &stop).await
                    }
                    (Place::Project, None) => Ok(Vec::new()),
                }
            };
            stoppable(settling, &stop).await?
        };
        match told {
            Ok(told) => tell(&told, shown)?,
            // The run is over and its work is in the copy: that is what has to be said.
            Err(error) if report.copy.as_ref().is_some_and(|copy| copy.state == CopyState::Kept) => {
                if shown.output == Output::StreamJson {
                    tell!(
                        "{} not landed: {}",
                        color::stderr().red("error:"),
                        clean(error.to_string().as_bytes())
                    );
                }
                report.outcome = journeyman_protocol::RunOutcome::Error;
                report.exit_code = report.outcome.exit_code();
                report.summary = format!("{}; not landed: {error}", report.summary);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(report)
    }
}

impl Delivery {
    /// The commit as it is wished, after a person has seen what would run for it outside of the sandbox.
    async fn asked(
        &self,
        wired: &Wired,
        report: &RunReport,
        stop: &CancellationToken,
    ) -> Result<Option<CommitWish>, Failure> {
        let Some(wish) = &self.commit else { return Ok(None) };
        if report.outcome != RunOutcome::Verified || report.changes.is_empty() || !wired.asks() {
            return Ok(Some(wish.clone()));
        }
        let paths: Vec<RelPath> = report.changes.iter().map(|change| change.path.clone()).collect();
        let checked = wired.ground.committer.check(wish, &paths, stop).await;
        Ok(Some(allowed(wish, checked, &report.diff)?))
    }
}

/// The commit that the flags ask for.
pub(crate) fn commit_wish(
    commit: bool,
    branch: Option<&String>,
    message: Option<&String>,
    no_verify: bool,
) -> Result<Option<CommitWish>, Failure> {
    if !commit && branch.is_none() {
        if message.is_some() {
            return Err(Failure::usage("--message is a commit's; it goes with --commit or --branch"));
        }
        if no_verify {
            return Err(Failure::usage("--no-verify is a commit's; it goes with --commit or --branch"));
        }
        return Ok(None);
    }
    let hooks = if no_verify { HookRun::Skipped } else { HookRun::Confined };
    Ok(Some(CommitWish { branch: branch.cloned(), message: message.cloned(), hooks }))
}

/// Asks about what would run outside of the sandbox for a commit, showing all of it. What is refused, or longer than
/// anybody reads, stays refused: the commit says why.
pub(crate) fn allowed(
    wish: &CommitWish,
    checked: Result<(), GitError>,
    diff: &str,
) -> Result<CommitWish, Failure> {
    let mut wish = wish.clone();
    if let Err(error) = checked
        && let GitError::Unfit(refusal) = &error
        && refusal.needs_person()
        && prompt::commit(color::stderr(), refusal, diff).context("asking")?
    {
        wish.hooks = HookRun::Outside;
    }
    Ok(wish)
}

/// Waits for what can be stopped: the first Ctrl-C stops cleanly, the second at once.
pub(crate) async fn stoppable<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
) -> Result<T, Failure> {
    let mut signals = Signals::listen()?;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = signals.heard() => {
                if stop.is_cancelled() {
                    std::process::exit(130);
                }
                stop.cancel();
            }
            done = &mut work => return Ok(done),
        }
    }
}

/// Shows what was written into a session's log after its end.
pub(crate) fn tell(told: &[Envelope], shown: Shown) -> Result<(), Failure> {
    let mut renderer = Renderer::new(color::stderr(), shown.is_quiet());
    for envelope in told {
        if shown.output == Output::StreamJson {
            line(&serde_json::to_string(envelope).context("an event")?)?;
        }
        renderer.show(&envelope.event);
    }
    Ok(())
}
