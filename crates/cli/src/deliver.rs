//! Where a run works, and what becomes of its work: a copy that is landed, the project itself, a commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::copies::{self, CommitWish, LandWish};
use journeyman_agent::{AgentError, Parts};
use journeyman_git::GitError;
use journeyman_protocol::{CopyState, Envelope, RelPath, RunReport, SessionId};
use journeyman_sandbox::clean;
use tokio_util::sync::CancellationToken;

use crate::args::DeliveryArgs;
use crate::color;
use crate::edge::Failure;
use crate::render::Renderer;
use crate::run::{Output, Shown, Signals, line};
use crate::wire::Wired;

/// Where the work goes, as flags and configuration say.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    place: Place,
    /// `None` keeps the work in its copy.
    wish: Option<LandWish>,
    commit: Option<CommitWish>,
    /// What was uncommitted when the run began.
    before: BTreeSet<RelPath>,
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
        if args.commit_message.is_some() && !args.commit && args.branch.is_none() {
            return Err(Failure::usage("--message is a commit's; it goes with --commit or --branch"));
        }
        if args.no_land && (args.commit || args.branch.is_some()) {
            return Err(Failure::usage(
                "--no-land leaves the work in its copy, where nothing is committed; `jm land --commit` does both later",
            ));
        }
        let commit = (args.commit || args.branch.is_some())
            .then(|| CommitWish { branch: args.branch.clone(), message: args.commit_message.clone() });
        let wish = (!args.no_land).then(|| LandWish { commit: commit.clone(), ..LandWish::default() });
        Ok(Self { place, wish, commit, before: BTreeSet::new() })
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
        if self.commit.is_some() {
            // Asked also where a copy is landed: a commit that can't be made is known before anything is done.
            self.before = copies::uncommitted(&wired.ground.git).await.map_err(AgentError::from)?;
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
        let stop = CancellationToken::new();
        let told = {
            let settling = async {
                match (self.place, &self.commit) {
                    (Place::Copy, _) => {
                        copies::settle(&context, &mut report, self.wish.as_ref(), &stop).await
                    }
                    (Place::Project, Some(wish)) => {
                        copies::commit_run(&context, &mut report, wish, &self.before, &stop).await
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
                report.outcome = journeyman_protocol::Outcome::Error;
                report.exit_code = report.outcome.exit_code();
                report.summary = format!("{}; not landed: {error}", report.summary);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(report)
    }
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
