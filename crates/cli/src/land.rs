//! `jm land` and `jm discard`.

use std::io::IsTerminal as _;

use journeyman_agent::isolation::{LandOutcome, LandReport, LandRequest, UnverifiedPolicy};
use journeyman_host::candidates::find_all_discardable;
use journeyman_host::config::Environment;
use journeyman_host::format::{format_count, printable};
use journeyman_host::landing::{
    DiscardResult, discard_work, find_kept_work, flags_to_land, land_report_to_json, land_with_prompts,
    open_land_context,
};
use journeyman_host::report_text;
use journeyman_host::{Confirmations, DeliveryOptions, HostError};
use journeyman_terminal::stdout_paint;
use journeyman_tui::line_prompts::{TerminalPrompts, confirm_removal};
use journeyman_tui::stop_signals::run_until_stopped;
use journeyman_workspace::OnConflict;
use tokio_util::sync::CancellationToken;

use crate::args::{DiscardArgs, LandArgs, OnConflictArg};
use crate::output;
use crate::runtime::open_state;

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
    let prompts = TerminalPrompts::if_attended();
    let context = open_land_context(environment, &dirs, &work, args.trust_project, "land", prompts).await?;
    let request = LandRequest {
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
    let session = &work.session;
    let stop = CancellationToken::new();
    let is_asked = !args.json && std::io::stdin().is_terminal();
    let prompts = is_asked.then_some(&TerminalPrompts as &dyn Confirmations);
    let landing = land_with_prompts(&context, session, request, prompts, &stop);
    let Some(report) = run_until_stopped(landing, &stop).await?? else {
        errln!("nothing was landed");
        return Ok(1);
    };
    if args.json {
        outln!("{}", land_report_to_json(&report)?);
    } else {
        print_report(&report);
    }
    Ok(report.exit_code())
}

/// Prints the result of landing.
fn print_report(report: &LandReport) {
    let paint = stdout_paint();
    if !report.diff.is_empty() {
        output::write_diff(&report.diff);
        output::write_stdout("\n");
    }
    output::write_stdout(&report_text::list_executed_files(
        report.changes.iter().map(|change| &change.path),
        paint,
    ));
    for evidence in &report.evidence {
        output::write_report(&format!("{}\n", report_text::format_evidence(evidence, paint)));
    }
    let line = printable(&report.summary);
    let line = match report.end {
        LandOutcome::Landed | LandOutcome::Nothing => paint.green(&line),
        LandOutcome::WouldLand => line,
        _ => paint.yellow(&line),
    };
    outln!("{}", paint.bold(&line));
    output::write_report(&report_text::format_work_location(
        &report.session,
        Some(&report.copy),
        report.commit.as_ref(),
        flags_to_land(report),
        paint,
    ));
    if let Some(reason) = &report.not_committed {
        outln!("{} {}", paint.red("not committed:"), printable(&reason));
    }
    if let Some(undo) = &report.undo {
        outln!("take it back with: {undo}");
    }
}

pub(crate) async fn discard(environment: &Environment, args: &DiscardArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let (session, all) = (args.session.as_deref(), args.all.as_deref());
    let all = find_all_discardable(environment, &dirs, session, all).await?;
    if all.is_empty() {
        outln!("nothing is kept any more");
        return Ok(0);
    }
    if !args.yes {
        let named: Vec<&str> = all.iter().map(|work| work.session.as_str()).collect();
        let question =
            format!("Discard what was changed by {}? It can't be brought back. [y/N] ", named.join(", "));
        if !confirm_removal(&question, "discards", "discarded")? {
            return Ok(1);
        }
    }
    for work in all {
        let session = &work.session;
        match discard_work(environment, &dirs, &work).await? {
            DiscardResult::Orphan => outln!("discarded the copy of {session}, a session that is gone"),
            DiscardResult::Files(files) => {
                outln!("discarded {} of session {session}", format_count(files, "changed file"));
            }
        }
    }
    Ok(0)
}
