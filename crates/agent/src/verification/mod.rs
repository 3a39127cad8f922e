//! When the model stops: the project's own checks, and what becomes of their result.

use std::sync::Arc;

use journeyman_context::Feedback;
use journeyman_protocol::{
    CallId, CheckOutcome, Decision, Effects, Event, Evidence, FileChange, Mode, RunOutcome, SandboxNeeds,
    ToolUse,
};
use journeyman_verify::{Check, Progress, RunContext, RunLimits, Verdict, verdict};
use journeyman_workspace::{CheckpointId, IgnoredChange, ListOptions, WorkspaceError};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::isolation::Copy;
use crate::isolation::checkpoints::Before;
use crate::session::settings::Checks;
use crate::session::turn::{End, Worker, blocking};
use crate::transcript::record::{Books, Record};

/// The tool that checks are judged as: rules name it so.
const CHECK: &str = "check";
/// Files that the search for checks looks at after a change.
const CHECK_FILES: usize = 20_000;
/// Edits that the feedback recalls; older ones no longer explain a failure.
const RECALLED_EDITS: usize = 20;
/// How often checks that passed are run again because the user's tree moved on meanwhile. Landing looks once more.
const MAX_MOVED_ON: usize = 2;

impl Worker {
    /// Verifies what changed. `Some` ends the task; `None` means that failures went back to the model, or that
    /// the user stopped it.
    pub(crate) async fn verify(&mut self, stop: &CancellationToken) -> Result<Option<End>, AgentError> {
        self.refresh_copy().await?;
        let changes = self.unverified_changes().await?;
        if changes.is_empty() {
            return Ok(Some(self.nothing_changed().await));
        }
        if self.settings.checks == Checks::Off {
            if self.changes().await?.is_empty() {
                return Ok(Some(self.nothing_changed().await));
            }
            return Ok(Some(End::new(RunOutcome::Unverified, "finished; no check was run (--no-check)")));
        }
        self.refresh_checks(&changes).await?;
        if self.checks.is_empty() {
            if self.changes().await?.is_empty() {
                return Ok(Some(self.nothing_changed().await));
            }
            let why =
                "finished; no check was found in the project, so nothing verified it (name one with --check)";
            return Ok(Some(End::new(RunOutcome::Unverified, why)));
        }
        let Some((evidence, previous)) = self.prove(stop).await? else { return Ok(None) };
        let verdict = verdict(&evidence);
        let (passed, failed) = (verdict == Verdict::Passed, verdict == Verdict::Failed);
        let feeds_back = failed && self.state.books.iterations < self.settings.max_iterations;
        self.log.emit(Event::VerifyFinished { round: self.state.books.rounds, passed, fed_back: feeds_back });
        if feeds_back {
            self.feed_back(&evidence, &previous);
            self.flush().await?;
            return Ok(None);
        }
        self.flush().await?;
        Ok(Some(judged(verdict, &evidence, self.state.books.iterations)))
    }

    /// Runs the checks, again where the user's tree moved on under what had just passed: what is verified is to be
    /// what would be landed. Gives what they found, and what those of the round before had; `None` when the user
    /// stopped them.
    async fn prove(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<Option<(Vec<Evidence>, Vec<Evidence>)>, AgentError> {
        for again in 0.. {
            let rounds = self.state.books.rounds.saturating_add(1);
            self.note(Record::Books(Books { rounds, ..self.state.books }));
            let evidence = self.run_checks(stop).await?;
            if stop.is_cancelled() {
                break;
            }
            let previous = std::mem::replace(&mut self.tally.evidence, evidence.clone());
            self.observe_checks(&evidence);
            let passed = verdict(&evidence) == Verdict::Passed;
            if !passed || again >= MAX_MOVED_ON || self.refresh_copy().await? == Copy::AsItWas {
                return Ok(Some((evidence, previous)));
            }
            self.log.emit(Event::VerifyFinished { round: rounds, passed, fed_back: false });
        }
        self.flush().await?;
        Ok(None)
    }

    /// What differs from the tree as it was before the task; in a copy, from the user's.
    pub(crate) async fn changes(&mut self) -> Result<Vec<FileChange>, AgentError> {
        if let Some(copy) = self.parts.copy.clone() {
            return self.copy_changes(&copy).await;
        }
        if matches!(self.before, Before::Unrecorded) {
            return Ok(Vec::new());
        }
        let id = self.recorded().await?;
        self.tally.compared = Some(id);
        self.changes_since(id).await
    }

    /// As [`Worker::changes`], and what earlier tasks of the session left behind that nothing has verified, such as
    /// one that was interrupted before its checks had run.
    pub(crate) async fn unverified_changes(&mut self) -> Result<Vec<FileChange>, AgentError> {
        // A plan changes nothing, so it is nothing that has to be proven.
        let earlier = self.state.unverified.filter(|_| self.settings.mode != Mode::Plan).map(CheckpointId);
        let (Some(earlier), None) = (earlier, &self.parts.copy) else { return self.changes().await };
        match self.changes_since(earlier).await {
            Ok(changes) => {
                self.tally.compared = Some(earlier);
                Ok(changes)
            }
            // It was dropped to keep the journal small, and what it would tell is not known any more.
            Err(AgentError::Workspace(
                WorkspaceError::UnknownCheckpoint { .. } | WorkspaceError::Lost { .. },
            )) => self.changes().await,
            Err(error) => Err(error),
        }
    }

    async fn changes_since(&self, id: CheckpointId) -> Result<Vec<FileChange>, AgentError> {
        let workspace = Arc::clone(&self.parts.workspace);
        Ok(blocking("comparing the tree", move || workspace.changes_since(&id)).await??)
    }

    /// Lists the ignored files that commands of this run changed or deleted, or may have. Empty where the journal can't
    /// be read.
    pub(crate) async fn ignored_changes(&mut self) -> Vec<IgnoredChange> {
        let Before::Recorded(id) = self.before else { return Vec::new() };
        if self.parts.copy.is_some() {
            return Vec::new();
        }
        let (workspace, session) = (Arc::clone(&self.parts.workspace), self.session.clone());
        let asked = blocking("reading the journal", move || workspace.ignored_changes_since(&id, &session));
        let asked = asked.await;
        asked.map(Result::unwrap_or_default).unwrap_or_default()
    }

    async fn nothing_changed(&mut self) -> End {
        if self.tally.unanswered > 0 {
            let why = "a permission was needed and there was nobody to ask; nothing was changed";
            return End::new(RunOutcome::PermissionNeeded, why);
        }
        let only_ignored = !self.ignored_changes().await.is_empty();
        let why = match self.settings.mode {
            Mode::Plan => "finished; plan mode changes nothing, so there was nothing to verify",
            _ if only_ignored => "finished; only ignored files changed, so there was nothing to verify",
            _ => "finished; no file changed, so there was nothing to verify",
        };
        End::new(RunOutcome::Unverified, why)
    }

    /// Looks for checks again: the change may have brought the first one.
    async fn refresh_checks(&mut self, changes: &[FileChange]) -> Result<(), AgentError> {
        if self.settings.checks != Checks::Found {
            return Ok(());
        }
        let workspace = Arc::clone(&self.parts.workspace);
        let programs = Arc::clone(&self.parts.programs);
        let changed: Vec<_> = changes.iter().map(|change| change.path.clone()).collect();
        self.checks = blocking("finding the project's checks", move || {
            let listing = workspace.list(ListOptions { limit: CHECK_FILES, ..ListOptions::default() });
            listing.map(|listing| journeyman_verify::find_for(&workspace, &listing, &changed, &*programs))
        })
        .await??;
        Ok(())
    }

    async fn run_checks(&mut self, stop: &CancellationToken) -> Result<Vec<Evidence>, AgentError> {
        let (checks, mut evidence) = self.permitted_checks(stop).await?;
        let round = self.state.books.rounds;
        let commands = checks.iter().map(|check| check.command.clone()).collect();
        self.log.emit(Event::VerifyStarted { checks: commands, round });
        for refused in &evidence {
            self.log.emit(Event::CheckResult { evidence: refused.clone() });
        }
        self.note(Record::Checking { running: true });
        self.flush().await?;
        let context = RunContext {
            workspace: Arc::clone(&self.parts.workspace),
            sandbox: Arc::clone(&self.parts.sandbox),
            toolchains: Arc::clone(&self.parts.toolchains),
            session: self.session.clone(),
            needs: self.settings.needs,
            limits: RunLimits::default(),
        };
        let (sender, mut progress) = mpsc::unbounded_channel();
        let mut observer = move |step| {
            // The receiver lives until the checks have ended.
            sender.send(step).ok();
        };
        let running = journeyman_verify::run(&checks, &context, stop.clone(), &mut observer);
        tokio::pin!(running);
        let ran = loop {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => self.show_step(step).await?,
                ran = &mut running => break ran?,
            }
        };
        while let Ok(step) = progress.try_recv() {
            self.show_step(step).await?;
        }
        self.note(Record::Checking { running: false });
        evidence.extend(ran);
        Ok(evidence)
    }

    /// The checks that may run, and proof of not running for those that may not.
    async fn permitted_checks(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<(Vec<Check>, Vec<Evidence>), AgentError> {
        let commands = self.checks.iter().map(|check| check.command.clone()).collect();
        self.know_checks(commands);
        let enforcement = self.parts.sandbox.enforcement(&self.settings.needs).await.ok();
        let confined = enforcement.as_ref().is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        let mut permitted = Vec::new();
        let mut refused = Vec::new();
        for (place, check) in self.checks.clone().into_iter().enumerate() {
            let effects = Effects { command: Some(check.command.clone()), ..Effects::default() };
            let mut judged = self.judge_in(CHECK, &effects, self.settings.mode, enforcement.clone());
            if judged.verdict.decision == Decision::Ask && confined && judged.verdict.rules.is_empty() {
                // The mode `ask` is about what the model does; a confined check is what the user gave the task
                // for. An unconfined one asks: what it runs is the project's, and the model has changed that. So
                // does one that a rule wants to be asked about.
                judged.verdict.decision = Decision::Allow;
            }
            let call = ToolUse {
                id: CallId::new(format!("check-{}-{place}", self.state.books.rounds)),
                name: CHECK.to_owned(),
                input: json!({ "command": check.command }),
                malformed: None,
                signature: None,
            };
            match self.permit_check(call, effects, judged, stop).await? {
                None => permitted.push(check),
                Some(reason) => {
                    refused.push(journeyman_verify::refused(&check, reason, enforcement.as_ref()));
                }
            }
        }
        Ok((permitted, refused))
    }

    async fn show_step(&mut self, step: Progress) -> Result<(), AgentError> {
        match step {
            Progress::Started { check, .. } => {
                self.log.emit(Event::CheckStarted { kind: check.kind, command: check.command });
            }
            Progress::Finished { evidence, .. } => self.log.emit(Event::CheckResult { evidence }),
            Progress::GuardViolated { check, violations, .. } => {
                self.note_violations(Some(check.command), violations);
            }
            // The diff and the report show what checks changed; their output is in the evidence.
            Progress::Output { .. } | Progress::Changed { .. } => return Ok(()),
        }
        self.flush().await
    }

    /// Tells the model what failed, as one structured message.
    fn feed_back(&mut self, evidence: &[Evidence], previous: &[Evidence]) {
        let iterations = self.state.books.iterations.saturating_add(1);
        self.note(Record::Books(Books { iterations, ..self.state.books }));
        let skip = self.tally.edits.len().saturating_sub(RECALLED_EDITS);
        let edits: Vec<&str> = self.tally.edits.iter().skip(skip).map(String::as_str).collect();
        let text = Feedback {
            evidence,
            previous: (!previous.is_empty()).then_some(previous),
            attempt: self.state.books.iterations,
            of: self.settings.max_iterations,
            edits_summary: &edits.join("\n"),
        }
        .message();
        self.say(text);
    }
}

fn judged(verdict: Verdict, evidence: &[Evidence], iterations: u32) -> End {
    if verdict == Verdict::Failed {
        let rounds = match iterations {
            0 => String::new(),
            1 => " after a round of feedback".to_owned(),
            n => format!(" after {n} rounds of feedback"),
        };
        return End::new(RunOutcome::ChecksFail, format!("finished, but checks fail{rounds}"));
    }
    if verdict == Verdict::Passed {
        let count = evidence.iter().filter(|one| one.outcome.has_passed()).count();
        let skipped = evidence.len() - count;
        let also = if skipped == 0 { String::new() } else { format!(", {skipped} not run") };
        return End::new(
            RunOutcome::Verified,
            format!("verified: {count} of {} checks passed{also}", evidence.len()),
        );
    }
    let reason = evidence
        .iter()
        .find_map(|one| match &one.outcome {
            CheckOutcome::NotRun { reason } => Some(format!(" ({reason})")),
            _ => None,
        })
        .unwrap_or_default();
    End::new(RunOutcome::Unverified, format!("finished; what would prove the change could not run{reason}"))
}
