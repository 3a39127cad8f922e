//! `jm land`, `jm discard`: what becomes of work that was kept in its copy.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_agent::copies::{self, CommitWish, LandContext, LandEnd, LandReport, LandWish, Unverified};
use journeyman_agent::{AgentError, Checks, State, candidates};
use journeyman_host::config::Environment;
use journeyman_protocol::{CopyState, SessionId};
use journeyman_sandbox::clean;
use journeyman_store::StoreError;
use journeyman_workspace::{CopyInfo, OnConflict, WorkspaceError};
use tokio_util::sync::CancellationToken;

use crate::args::{DiscardArgs, LandArgs, OnConflictArg, RunOptions};
use crate::deliver::{allowed, commit_wish, stoppable};
use crate::edge::{Failure, House, root};
use crate::sessions::find;
use crate::stdout::say;
use crate::wire::Ground;
use crate::{color, prompt, settings, stdout, summary};

/// A session whose copy is spoken of.
struct Chosen {
    session: SessionId,
    root: PathBuf,
}

pub(crate) async fn land(environment: &Environment, args: &LandArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let commit = commit_wish(args.commit, args.branch.as_ref(), args.message.as_ref(), args.no_verify)?;
    let chosen = chosen(&house, environment, args.session.as_deref()).await?;
    let context = context(environment, &house, &chosen, args.trust_project, "land").await?;
    let mut wish = LandWish {
        on_conflict: match args.on_conflict {
            OnConflictArg::Refuse => OnConflict::Refuse,
            OnConflictArg::Markers => OnConflict::Markers,
            OnConflictArg::Mine => OnConflict::Mine,
            OnConflictArg::Theirs => OnConflict::Theirs,
        },
        dry_run: args.dry_run,
        unverified: if args.unverified { Unverified::Land } else { Unverified::Keep },
        commit,
    };
    let asks = !args.json && std::io::stdin().is_terminal();
    if asks && !args.dry_run {
        wish.commit = asked(&context, &chosen.session, &wish).await?;
    }
    let mut report = land_as(&context, &chosen.session, &wish).await?;
    if report.end == LandEnd::Unverified && asks {
        let question =
            format!("Nothing verified what session {} did. Land it all the same? [y/N] ", chosen.session);
        if !prompt::confirm(&question).context("asking")? {
            tell!("nothing was landed");
            return Ok(1);
        }
        wish.unverified = Unverified::Land;
        report = land_as(&context, &chosen.session, &wish).await?;
    }
    if args.json {
        let mut object = serde_json::to_value(&report).context("the report")?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("exit_code".to_owned(), report.exit_code().into());
        }
        say!("{object}");
    } else {
        print(&report);
    }
    Ok(report.exit_code())
}

/// The commit as it is wished, after a person has seen what would run for it outside of the sandbox.
async fn asked(
    context: &LandContext,
    session: &SessionId,
    wish: &LandWish,
) -> Result<Option<CommitWish>, Failure> {
    let (Some(commit), Some(committer)) = (&wish.commit, &context.committer) else { return Ok(None) };
    let dry = LandWish { dry_run: true, commit: None, ..wish.clone() };
    let would = land_as(context, session, &dry).await?;
    let paths: Vec<_> = would.changes.iter().map(|change| change.path.clone()).collect();
    let checked = committer.check(commit, &paths, &CancellationToken::new()).await;
    Ok(Some(allowed(commit, checked, &would.diff)?))
}

/// Lands one session's copy; Ctrl-C stops checks that run for it.
pub(crate) async fn land_as(
    context: &LandContext,
    session: &SessionId,
    wish: &LandWish,
) -> Result<LandReport, Failure> {
    let stop = CancellationToken::new();
    let landed = stoppable(copies::land(context, session, wish, &stop), &stop).await?;
    landed.map_err(missing)
}

/// A copy that isn't there is the caller's mistake.
fn missing(error: AgentError) -> Failure {
    match error {
        AgentError::Workspace(
            error @ (WorkspaceError::UnknownCopy { .. } | WorkspaceError::AlreadyLanded { .. }),
        ) => Failure::usage(error),
        other => other.into(),
    }
}

/// The session that is named, or the only one of this directory whose work is kept.
async fn chosen(house: &House, environment: &Environment, word: Option<&str>) -> Result<Chosen, Failure> {
    if let Some(word) = word {
        let found = find(house, environment, word).await?;
        if candidates::started(&*house.store, &found.id).await?.is_some() {
            return Err(Failure::usage(format_args!(
                "session {id} has no copy of its own, its candidates have: jm candidates {id} compares them, jm land \
                 and jm discard take one, jm discard --all {id} drops them all",
                id = found.id
            )));
        }
        return Ok(Chosen { session: found.id, root: PathBuf::from(found.root) });
    }
    let here = root(environment, None)?;
    let copies = house.workspace(&here)?.copies().context("looking for copies")?;
    match copies.as_slice() {
        [only] => Ok(Chosen { session: only.session.clone(), root: here }),
        [] => Err(Failure::usage("no session's work is kept in a copy of this directory")),
        several => Err(Failure::usage(format_args!(
            "the work of {} sessions is kept in copies of this directory; say which: {}",
            several.len(),
            several.iter().map(|copy| copy.session.to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// What landing works with, in the session's own project and with its own checks.
async fn context(
    environment: &Environment,
    house: &House,
    chosen: &Chosen,
    trust_project: bool,
    command: &str,
) -> Result<LandContext, Failure> {
    let place = root(environment, Some(&chosen.root))?;
    let options = RunOptions { trust_project, ..RunOptions::default() };
    let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let settled = settings::load(environment, &place, &options, None, interactive)?;
    let asked = match State::load(&*house.store, &chosen.session).await {
        Ok(state) => state.setting.and_then(|setting| setting.asked.checks),
        Err(AgentError::Store(StoreError::UnknownSession { .. })) => None,
        Err(error) => return Err(error.into()),
    };
    let checks = asked.or_else(|| settled.config.checks.clone().map(Checks::Custom)).unwrap_or_default();
    let ground = Ground::new(environment, house, &place, &settled.config, Vec::new(), command)?;
    Ok(ground.land_context(checks))
}

/// Says how landing ended.
pub(crate) fn print(report: &LandReport) {
    let paint = color::stdout();
    if !report.diff.is_empty() {
        stdout::write(&summary::diff(&report.diff, paint));
    }
    stdout::write(&summary::runs_code(report.changes.iter().map(|change| &change.path), paint));
    for evidence in &report.evidence {
        say!("{}", summary::evidence(evidence, paint));
    }
    let line = clean(report.summary.as_bytes());
    let line = match report.end {
        LandEnd::Landed | LandEnd::Nothing => paint.green(&line),
        LandEnd::WouldLand => line,
        _ => paint.yellow(&line),
    };
    say!("{}", paint.bold(&line));
    stdout::write(&summary::whereabouts(&report.session, Some(&report.copy), report.commit.as_ref(), paint));
    match report.end {
        LandEnd::Unverified => say!("land it all the same with: jm land {} --unverified", report.session),
        LandEnd::Conflicts => say!("say how: jm land {} --on-conflict markers|mine|theirs", report.session),
        _ => {}
    }
    if let Some(reason) = &report.not_committed {
        say!("{} {}", paint.red("not committed:"), clean(reason.as_bytes()));
    }
    if let Some(undo) = &report.undo {
        say!("take it back with: {undo}");
    }
}

pub(crate) async fn discard(environment: &Environment, args: &DiscardArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let (all, place) = match &args.all {
        Some(word) => all_of(environment, &house, word).await?,
        None => {
            let chosen = match chosen(&house, environment, args.session.as_deref()).await {
                Err(unknown) => match left_over(environment, &house, args.session.as_deref())? {
                    Some(chosen) => chosen,
                    None => return Err(unknown),
                },
                chosen => chosen?,
            };
            (vec![chosen.session], chosen.root)
        }
    };
    if all.is_empty() {
        say!("nothing is kept any more");
        return Ok(0);
    }
    let workspace = Arc::new(house.workspace(&root(environment, Some(&place))?)?);
    let copies = workspace.copies().context("looking for copies")?;
    if let Some(unknown) = all.iter().find(|id| copies.iter().all(|copy| copy.session != **id)) {
        let session = unknown.clone();
        return Err(Failure::usage(match workspace.is_landed(unknown).context("looking for copies")? {
            true => WorkspaceError::AlreadyLanded { session },
            false => WorkspaceError::UnknownCopy { session },
        }));
    }
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("nobody can be asked here; --yes discards without asking"));
        }
        let named: Vec<&str> = all.iter().map(SessionId::as_str).collect();
        let question =
            format!("Discard what was changed by {}? It can't be brought back. [y/N] ", named.join(", "));
        if !prompt::confirm(&question).context("asking")? {
            tell!("nothing was discarded");
            return Ok(1);
        }
    }
    for session in all {
        let chosen = Chosen { session, root: place.clone() };
        let context = context(environment, &house, &chosen, false, "discard").await?;
        match copies::discard(&context, &chosen.session).await {
            // A copy whose session was deleted.
            Err(AgentError::Store(StoreError::UnknownSession { .. })) => {
                workspace.discard_copy(&chosen.session).context("removing the copy")?;
                say!("discarded the copy of {}, a session that is gone", chosen.session);
            }
            discarded => {
                let files = discarded.map_err(missing)?;
                let plural = if files == 1 { "" } else { "s" };
                say!("discarded {files} changed file{plural} of session {}", chosen.session);
            }
        }
    }
    Ok(0)
}

/// The candidates of a task whose work is still kept.
async fn all_of(
    environment: &Environment,
    house: &House,
    word: &str,
) -> Result<(Vec<SessionId>, PathBuf), Failure> {
    let found = find(house, environment, word).await?;
    let place = PathBuf::from(&found.root);
    let chosen = Chosen { session: found.id.clone(), root: place.clone() };
    let context = context(environment, house, &chosen, false, "discard").await?;
    let race = candidates::compare(&*house.store, &context.isolation, &found.id).await?;
    let (_, all) =
        race.ok_or_else(|| Failure::usage(format_args!("session {} has no candidates", found.id)))?;
    let kept = all.into_iter().filter(|candidate| candidate.state == CopyState::Kept);
    Ok((kept.map(|candidate| candidate.session).collect(), place))
}

/// A copy of this directory whose session isn't in the log any more.
fn left_over(
    environment: &Environment,
    house: &House,
    word: Option<&str>,
) -> Result<Option<Chosen>, Failure> {
    let Some(word) = word else { return Ok(None) };
    let here = root(environment, None)?;
    let copies = house.workspace(&here)?.copies().context("looking for copies")?;
    let mut found = copies.into_iter().filter(|copy| copy.session.as_str().starts_with(word));
    Ok(match (found.next(), found.next()) {
        (Some(only), None) => Some(Chosen { session: only.session, root: here }),
        _ => None,
    })
}

/// The copies of a project, without opening it where it can't have any.
pub(crate) fn copies_of(house: &House, place: &Path) -> Vec<CopyInfo> {
    if !house.project_dir(place).join("work").is_dir() {
        return Vec::new();
    }
    // What can't be looked at is told by the commands that need it.
    let workspace = house.workspace(place).ok();
    workspace.and_then(|workspace| workspace.copies().ok()).unwrap_or_default()
}
