//! `jm check --watch`: the checks run again as files change.

use std::collections::BTreeSet;

use journeyman_host::index::{follow_files, open_index};
use journeyman_host::{Context as _, HostError};
use journeyman_index::watch::WatchEvent;
use journeyman_protocol::RelPath;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::round::CheckRound;
use crate::output::print_json_line;
use crate::runtime::Signals;

/// A change of the project's files.
enum FileChanges {
    /// These files.
    Some(Vec<RelPath>),
    /// Unknown files.
    Unknown,
}

/// Runs the checks for `files`, or all, then those that each change affects, until Ctrl-C. Returns
/// the exit code of the newest round.
pub(super) async fn watch(round: &CheckRound<'_>, files: Option<Vec<RelPath>>) -> Result<u8, HostError> {
    let index = open_index(round.environment, Some(round.project.root()), |note| errln!("{note}"))?;
    let (sender, mut changes) = mpsc::unbounded_channel();
    let mut is_beginning = true;
    let on_event = move |event: WatchEvent<'_>| {
        let change = match event {
            WatchEvent::Updated(paths, _) => Some(FileChanges::Some(paths.to_vec())),
            WatchEvent::Refreshed(..) if std::mem::take(&mut is_beginning) => None,
            WatchEvent::Refreshed(_, report) if report.read > 0 || report.gone > 0 => {
                Some(FileChanges::Unknown)
            }
            WatchEvent::Refreshed(..) | WatchEvent::Watching(_) => None,
            WatchEvent::Polling(why) => {
                errln!("looking at all files now and then: {why}");
                None
            }
            WatchEvent::Failed(error) => {
                errln!("the files can't be followed at the moment: {error}");
                None
            }
        };
        // The receiver is gone once the watching ends.
        change.into_iter().for_each(|change| drop(sender.send(change)));
    };
    let stop = CancellationToken::new();
    let following = follow_files(index, stop.clone().cancelled_owned(), on_event);
    let mut following = std::pin::pin!(following);
    let mut signals = Signals::listen()?;
    let mut rounds = std::pin::pin!(run_rounds(round, files, &mut changes, &stop));
    let code = loop {
        tokio::select! {
            () = signals.next() => stop.cancel(),
            code = &mut rounds => break code?,
            ended = &mut following => {
                ended?;
                stop.cancel();
                break rounds.await?;
            }
        }
    };
    Ok(code)
}

async fn run_rounds(
    round: &CheckRound<'_>,
    files: Option<Vec<RelPath>>,
    changes: &mut mpsc::UnboundedReceiver<FileChanges>,
    stop: &CancellationToken,
) -> Result<u8, HostError> {
    let mut files = files.filter(|files| !files.is_empty());
    loop {
        let (result, selected) = round.run(files, stop).await?;
        if round.args.json {
            print_json_line(&result.to_answer(&selected)).context("the answer")?;
        }
        if stop.is_cancelled() {
            return Ok(result.overall_result().exit_code());
        }
        if !round.args.json && !round.args.quiet {
            errln!("waiting for changes; Ctrl-C ends it");
        }
        let own: BTreeSet<&RelPath> = result.changed.iter().map(|change| &change.path).collect();
        let next = tokio::select! {
            () = stop.cancelled() => None,
            next = next_change(changes, &own) => next,
        };
        let Some(next) = next else { return Ok(result.overall_result().exit_code()) };
        files = match next {
            FileChanges::Unknown => None,
            FileChanges::Some(changed) => {
                if !round.args.json {
                    errln!();
                    errln!("changed: {}", describe_files(&changed));
                }
                Some(changed)
            }
        };
    }
}

/// Waits for a change that no check caused, and merges the changes that are already queued.
async fn next_change(
    changes: &mut mpsc::UnboundedReceiver<FileChanges>,
    own: &BTreeSet<&RelPath>,
) -> Option<FileChanges> {
    loop {
        let mut all = BTreeSet::new();
        let mut next = Some(changes.recv().await?);
        while let Some(change) = next {
            match change {
                FileChanges::Unknown => return Some(FileChanges::Unknown),
                FileChanges::Some(paths) => all.extend(paths.into_iter().filter(|path| !own.contains(path))),
            }
            next = changes.try_recv().ok();
        }
        if !all.is_empty() {
            return Some(FileChanges::Some(all.into_iter().collect()));
        }
    }
}

fn describe_files(files: &[RelPath]) -> String {
    const MAX_NAMED: usize = 5;
    let names: Vec<String> = files.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = files.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
