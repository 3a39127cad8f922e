//! `jm land` and `jm discard`.

use std::io::IsTerminal as _;
use std::sync::Arc;

use journeyman_agent::isolation::{LandOutcome, LandReport, LandRequest, UnverifiedPolicy};
use journeyman_host::candidates::find_kept_candidates;
use journeyman_host::config::Environment;
use journeyman_host::landing::{
    Discarded, check_copies_exist, confirm_commit, discard_work, find_kept_work, find_orphaned_copy,
    land_work, open_land_context,
};
use journeyman_host::state::project_root;
use journeyman_host::{Context as _, DeliveryOptions, HostError, Prompts};
use journeyman_protocol::SessionId;
use journeyman_sandbox::clean;
use journeyman_workspace::OnConflict;
use tokio_util::sync::CancellationToken;

use crate::args::{DiscardArgs, LandArgs, OnConflictArg};
use crate::display::is_attended;
use crate::prompt::{self, TerminalPrompts};
use crate::runtime::open_state;
use crate::runtime::stoppable;
use crate::stdout::say;
use crate::{color, stdout, summary};

pub(crate) async fn land(environment: &Environment, args: &LandArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let commit = DeliveryOptions {
        commit: args.commit,
        branch: args.branch.clone(),
        message: args.message.clone(),
        no_verify: args.no_verify,
        ..DeliveryOptions::default()
    };
    let commit = commit.requested_commit()?;
    let work = find_kept_work(&dirs, environment, args.session.as_deref()).await?;
    let prompts = is_attended().then_some(&TerminalPrompts as &dyn Prompts);
    let context = open_land_context(environment, &dirs, &work, args.trust_project, "land", prompts).await?;
    let mut wish = LandRequest {
        on_conflict: match args.on_conflict {
            OnConflictArg::Refuse => OnConflict::Refuse,
            OnConflictArg::Markers => OnConflict::Markers,
            OnConflictArg::Mine => OnConflict::Mine,
            OnConflictArg::Theirs => OnConflict::Theirs,
        },
        dry_run: args.dry_run,
        unverified: if args.unverified { UnverifiedPolicy::Land } else { UnverifiedPolicy::Keep },
        commit,
    };
    let asks = !args.json && std::io::stdin().is_terminal();
    let session = &work.session;
    let stop = CancellationToken::new();
    if asks && !args.dry_run {
        let confirming = confirm_commit(&context, session, &wish, &TerminalPrompts, &stop);
        wish.commit = stoppable(confirming, &stop).await??;
    }
    let mut report = stoppable(land_work(&context, session, &wish, &stop), &stop).await??;
    if report.end == LandOutcome::Unverified && asks {
        let question = format!("Nothing verified what session {session} did. Land it all the same? [y/N] ");
        if !prompt::confirm(&question).context("asking")? {
            tell!("nothing was landed");
            return Ok(1);
        }
        wish.unverified = UnverifiedPolicy::Land;
        report = stoppable(land_work(&context, session, &wish, &stop), &stop).await??;
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

/// Says how landing ended.
fn print(report: &LandReport) {
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
        LandOutcome::Landed | LandOutcome::Nothing => paint.green(&line),
        LandOutcome::WouldLand => line,
        _ => paint.yellow(&line),
    };
    say!("{}", paint.bold(&line));
    stdout::write(&summary::whereabouts(&report.session, Some(&report.copy), report.commit.as_ref(), paint));
    match report.end {
        LandOutcome::Unverified => say!("land it all the same with: jm land {} --unverified", report.session),
        LandOutcome::Conflicts => {
            say!("say how: jm land {} --on-conflict markers|mine|theirs", report.session)
        }
        _ => {}
    }
    if let Some(reason) = &report.not_committed {
        say!("{} {}", paint.red("not committed:"), clean(reason.as_bytes()));
    }
    if let Some(undo) = &report.undo {
        say!("take it back with: {undo}");
    }
}

pub(crate) async fn discard(environment: &Environment, args: &DiscardArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let all = match &args.all {
        Some(word) => find_kept_candidates(environment, &dirs, word).await?,
        None => match find_kept_work(&dirs, environment, args.session.as_deref()).await {
            Err(unknown) => match find_orphaned_copy(environment, &dirs, args.session.as_deref())? {
                Some(work) => vec![work],
                None => return Err(unknown),
            },
            work => vec![work?],
        },
    };
    let Some(first) = all.first() else {
        say!("nothing is kept any more");
        return Ok(0);
    };
    let workspace = Arc::new(dirs.open_workspace(&project_root(environment, Some(&first.root))?)?);
    let sessions: Vec<SessionId> = all.iter().map(|work| work.session.clone()).collect();
    check_copies_exist(&workspace, &sessions)?;
    if !args.yes {
        let named: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
        let question =
            format!("Discard what was changed by {}? It can't be brought back. [y/N] ", named.join(", "));
        if !prompt::confirm_removal(&question, "discards", "discarded")? {
            return Ok(1);
        }
    }
    let prompts = is_attended().then_some(&TerminalPrompts as &dyn Prompts);
    for work in all {
        let session = &work.session;
        let context = open_land_context(environment, &dirs, &work, false, "discard", prompts).await?;
        match discard_work(&context, &workspace, session).await? {
            Discarded::Orphan => say!("discarded the copy of {session}, a session that is gone"),
            Discarded::Files(files) => {
                let plural = if files == 1 { "" } else { "s" };
                say!("discarded {files} changed file{plural} of session {session}");
            }
        }
    }
    Ok(0)
}
