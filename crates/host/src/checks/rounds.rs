//! Rounds of checks: one for chosen files, or one after the other as files change.

use std::collections::BTreeSet;

use journeyman_agent::verify::{Check, Progress};
use journeyman_index::watch::WatchEvent;
use journeyman_protocol::{Evidence, RelPath};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{CheckAnswer, CheckSelection, CheckVerdict, ProjectCheckRunner, RoundResult, SelectedChecks};
use crate::HostError;
use crate::config::Environment;
use crate::index::{follow_files, open_index};

/// A round of checks that has ended.
#[derive(Debug)]
pub struct CheckRound {
    /// The results.
    pub result: RoundResult,
    /// The checks that were chosen, and the others.
    pub selected: SelectedChecks,
    /// True if the round was about no file at all.
    pub is_about_nothing: bool,
}

/// Shows rounds of checks.
pub trait RoundView: Send {
    /// Shows the progress of the round that runs.
    fn show_progress(&mut self, step: Progress);

    /// Shows a round that has ended.
    ///
    /// # Errors
    /// The result can't be written.
    fn show_round(&mut self, round: &CheckRound) -> Result<(), HostError>;

    /// Shows that the next round waits for a change.
    fn show_waiting(&mut self);

    /// Shows the changed files that the next round is about.
    fn show_changed_files(&mut self, files: &[RelPath]);
}

/// A change of the project's files.
#[derive(Debug, PartialEq, Eq)]
enum FileChanges {
    /// These files.
    Some(Vec<RelPath>),
    /// Unknown files.
    Unknown,
}

impl CheckRound {
    /// Returns the combined result.
    #[must_use]
    pub fn verdict(&self) -> CheckVerdict {
        self.result.overall_result()
    }

    /// Returns the round as an answer.
    #[must_use]
    pub fn to_answer(&self) -> CheckAnswer {
        self.result.to_answer(&self.selected)
    }

    /// Returns true if a check failed that has a command which repairs what it finds.
    #[must_use]
    pub fn has_fixable_failure(&self) -> bool {
        let is_same = |check: &Check, evidence: &Evidence| {
            check.command == evidence.command && check.directory == evidence.directory
        };
        let check_of =
            |evidence: &Evidence| self.selected.chosen.iter().find(|check| is_same(check, evidence));
        let is_fixable = |evidence: &Evidence| check_of(evidence).is_some_and(|check| check.fix.is_some());
        self.result.evidence.iter().any(|evidence| evidence.outcome.has_failed() && is_fixable(evidence))
    }
}

impl ProjectCheckRunner {
    /// Finds and runs the checks that `files` affect; all checks for `None`. `view` shows the
    /// progress and the end.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be listed, files can't be tracked around a
    /// check, or the view fails.
    pub async fn run_round_of(
        &self,
        selection: &CheckSelection,
        files: Option<Vec<RelPath>>,
        view: &mut dyn RoundView,
        stop: &CancellationToken,
    ) -> Result<CheckRound, HostError> {
        let is_about_nothing = files.as_ref().is_some_and(Vec::is_empty);
        let found = match is_about_nothing {
            true => Vec::new(),
            false => self.find_affected_checks(files.unwrap_or_default()).await?,
        };
        let selected = selection.select(found);
        let mut observer = |step| view.show_progress(step);
        let result = self.run(&selected.chosen, selection.fix, stop, &mut observer).await?;
        let round = CheckRound { result, selected, is_about_nothing };
        view.show_round(&round)?;
        Ok(round)
    }

    /// Runs the checks for `files`, or all, then those that each change affects, until `stop` ends.
    /// Returns the verdict of the newest round. `note` gets sentences about how the files are
    /// followed.
    ///
    /// # Errors
    /// As [`ProjectCheckRunner::run_round_of`], and where the files can't be followed.
    pub async fn watch(
        &self,
        environment: &Environment,
        selection: &CheckSelection,
        files: Option<Vec<RelPath>>,
        view: &mut dyn RoundView,
        note: fn(&str),
        stop: &CancellationToken,
    ) -> Result<CheckVerdict, HostError> {
        let index = open_index(environment, Some(self.root()), note)?;
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
                    note(&format!("looking at all files now and then: {why}"));
                    None
                }
                WatchEvent::Failed(error) => {
                    note(&format!("the files can't be followed at the moment: {error}"));
                    None
                }
            };
            // The receiver is gone once the watching ends.
            change.into_iter().for_each(|change| drop(sender.send(change)));
        };
        let mut following = std::pin::pin!(follow_files(index, stop.clone().cancelled_owned(), on_event));
        let mut rounds = std::pin::pin!(self.run_rounds(selection, files, view, &mut changes, stop));
        tokio::select! {
            verdict = &mut rounds => verdict,
            ended = &mut following => {
                ended?;
                stop.cancel();
                rounds.await
            }
        }
    }

    async fn run_rounds(
        &self,
        selection: &CheckSelection,
        files: Option<Vec<RelPath>>,
        view: &mut dyn RoundView,
        changes: &mut mpsc::UnboundedReceiver<FileChanges>,
        stop: &CancellationToken,
    ) -> Result<CheckVerdict, HostError> {
        let mut files = files.filter(|files| !files.is_empty());
        loop {
            let round = self.run_round_of(selection, files, view, stop).await?;
            if stop.is_cancelled() {
                return Ok(round.verdict());
            }
            view.show_waiting();
            let own: BTreeSet<&RelPath> = round.result.changed.iter().map(|change| &change.path).collect();
            let next = tokio::select! {
                () = stop.cancelled() => None,
                next = next_change(changes, &own) => next,
            };
            files = match next {
                None => return Ok(round.verdict()),
                Some(FileChanges::Unknown) => None,
                Some(FileChanges::Some(changed)) => {
                    view.show_changed_files(&changed);
                    Some(changed)
                }
            };
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> RelPath {
        RelPath::parse(name).unwrap()
    }

    #[tokio::test]
    async fn a_change_that_a_check_caused_begins_no_round() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let own = path("made.txt");
        let own = BTreeSet::from([&own]);
        for files in [vec![path("made.txt")], vec![path("b"), path("made.txt")], vec![path("a"), path("b")]] {
            sender.send(FileChanges::Some(files)).unwrap();
        }
        let expected = FileChanges::Some(vec![path("a"), path("b")]);
        assert_eq!(next_change(&mut changes, &own).await, Some(expected));
        sender.send(FileChanges::Unknown).unwrap();
        assert_eq!(next_change(&mut changes, &own).await, Some(FileChanges::Unknown));
        drop(sender);
        assert_eq!(next_change(&mut changes, &own).await, None);
    }
}
