//! A closed session, leased to land, keep or discard its copy.

use std::sync::Arc;

use journeyman_git::GitError;
use journeyman_protocol::{
    CommitReport, ContentHash, CopyState, Envelope, Event, Evidence, FileChange, FileConflict, RelPath,
    RunOutcome, RunReport, SessionId,
};
use journeyman_store::SessionSummary;
use journeyman_verify::OverallOutcome;
use journeyman_workspace::{
    CopyChanges, DiffStat, IsolationTier, LandOptions, LandingReport, OnConflict, WorkspaceError,
};
use tokio_util::sync::CancellationToken;

use super::commit::{BranchOutcome, CommitPlan, Committer};
use super::landing_reports::{
    conflict_report, conflicts_of, describe_file_count, list_paths, unproven_report,
};
use super::{
    CommitOptions, Isolation, LandContext, LandOutcome, LandReport, LandRequest, UnverifiedPolicy, WorkCopy,
    commit, copy_report, load_last_report,
};
use crate::AgentError;
use crate::blocking::run_blocking;
use crate::recovery::lease::Lease;
use crate::transcript::log::{Log, SubscriberBufferLimits, load_events};
use crate::transcript::record::status_of;
use crate::verification::check_changes::CheckChanges;

/// Maximum bytes of diff in a report, as in the report of a run.
const MAX_DIFF_BYTES: usize = 256 * 1024;
/// Number of entries read at once.
const PAGE_ENTRIES: usize = 500;
/// Maximum number of times that a merged result is verified because the user's tree changed during
/// the verification.
const MAX_VERIFICATION_ROUNDS: usize = 3;
/// Maximum wait for a copy that this process is still releasing, such as after a comparison of its
/// files.
const MAX_BUSY_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// Interval between two attempts to open a busy copy.
const BUSY_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// A session whose copy is landed, with its lease.
pub(super) struct LandingSession<'a> {
    context: &'a LandContext,
    session: &'a SessionId,
    lease: Lease,
    summary: SessionSummary,
}

impl<'a> LandingSession<'a> {
    pub(super) async fn open(context: &'a LandContext, session: &'a SessionId) -> Result<Self, AgentError> {
        let LandContext { store, clock, holder, .. } = context;
        let lease = Lease::new(Arc::clone(store), session.clone(), holder.clone(), clock.clone());
        lease.acquire().await?;
        let found = store.find_sessions(session.as_str()).await;
        match found.and_then(|found| context.select_session(session, found)) {
            Ok(summary) => Ok(Self { context, session, lease, summary }),
            Err(error) => {
                lease.release().await;
                Err(error.into())
            }
        }
    }

    pub(super) async fn close(self) {
        self.lease.release().await;
    }

    pub(super) async fn land(
        &self,
        request: &LandRequest,
        report: Option<&RunReport>,
        stop: &CancellationToken,
    ) -> Result<LandReport, AgentError> {
        let copy = Arc::new(open_copy(&self.context.isolation, self.session).await?);
        let tier = copy.tier();
        let changes = read_changes(&copy).await?;
        if changes.is_empty() {
            drop(copy);
            return self.finish_without_changes(tier).await;
        }
        let verified = match report.is_some() || is_verified_status(&self.summary.status) {
            true => VerifiedState::Verified { tree: self.verified_tree(report).await? },
            false => VerifiedState::Unverified,
        };
        let (changes, evidence) = match self.prepare(&copy, changes, request, verified, stop).await? {
            PreparedLanding::Ready { changes, evidence } => (changes, evidence),
            PreparedLanding::Over(over) => return self.log_kept_copy(*over).await,
        };
        if let Some(CommitOptions { branch: Some(name), .. }) = &request.commit {
            drop(copy);
            return self.commit_on_branch(tier, &changes, name, request, report, stop).await;
        }
        let mixed = self.uncommitted_changes(request, &changes).await?;
        if !mixed.is_empty() {
            let summary = format!(
                "not landed: a commit would take your own uncommitted changes along, in {}. Commit or stash them \
                 first, or land it without --commit",
                list_paths(&mixed)
            );
            return self
                .log_kept_copy(LandReport::new(self.session, LandOutcome::Mixed, summary, copy.kept_report()))
                .await;
        }
        // An overlay is closed before the tree beneath it changes.
        drop(copy);
        // Only the verified state is landed: changes that the user saved after the checks are not
        // merged unverified.
        let as_checked =
            request.unverified == UnverifiedPolicy::Keep && request.on_conflict == OnConflict::Refuse;
        let options = LandOptions { on_conflict: request.on_conflict, as_checked, ..LandOptions::default() };
        let landing = self.apply(&changes, options).await?;
        if was_refused(&landing, request) {
            return self.log_kept_copy(conflict_report(self.session, tier, &landing)).await;
        }
        if !landing.left.is_empty() {
            return self.finish_partial_landing(tier, landing).await;
        }
        self.finish_landing(tier, landing, evidence, request, report, stop).await
    }

    /// Determines the effects of landing, and verifies a merged result first.
    async fn prepare(
        &self,
        copy: &Arc<WorkCopy>,
        mut changes: CopyChanges,
        request: &LandRequest,
        verified: VerifiedState,
        stop: &CancellationToken,
    ) -> Result<PreparedLanding, AgentError> {
        let mut proven = Vec::new();
        // The copy may hold a merged result that failed, or whose checks were cut off, or what a
        // command in the background wrote after the checks.
        let mut is_doubtful =
            self.summary.status == status_of(RunOutcome::Conflict) || verified.is_changed(copy).await?;
        let verified = verified != VerifiedState::Unverified;
        let (mut by_checks, mut rewritten) = (CheckChanges::default(), Vec::new());
        for round in 0.. {
            let options =
                LandOptions { on_conflict: request.on_conflict, dry_run: true, ..LandOptions::default() };
            let looked = self.apply(&changes, options).await?;
            if request.dry_run {
                return Ok(PreparedLanding::not_landed(
                    self.report_dry_run(copy, changes, looked, verified).await?,
                ));
            }
            if !verified && request.unverified == UnverifiedPolicy::Keep {
                let summary = "not landed: nothing verified it";
                let over =
                    LandReport::new(self.session, LandOutcome::Unverified, summary, copy.kept_report());
                return Ok(PreparedLanding::not_landed(over));
            }
            if was_refused(&looked, request) {
                return Ok(PreparedLanding::not_landed(conflict_report(self.session, copy.tier(), &looked)));
            }
            // Where the user settles conflicts by a word, they say what is to be in their tree.
            let settled = request.unverified == UnverifiedPolicy::Land || !looked.conflicts.is_empty();
            let apart = Arc::clone(copy);
            let as_checked = looked.merged.is_empty()
                && !is_doubtful
                && !run_blocking("comparing the project", move || apart.is_outdated()).await??;
            if as_checked || settled {
                return Ok(PreparedLanding::Ready { changes, evidence: proven });
            }
            if round >= MAX_VERIFICATION_ROUNDS {
                let summary = match rewritten.is_empty() {
                    true => {
                        "not landed: your files changed again and again while the merged result was checked"
                            .to_owned()
                    }
                    false => format!(
                        "not landed: checks pass and change {} whenever they run",
                        list_paths(&rewritten)
                    ),
                };
                let mut over =
                    LandReport::new(self.session, LandOutcome::Unproven, summary, copy.kept_report());
                over.copy.merged = looked.merged;
                return Ok(PreparedLanding::not_landed(over));
            }
            // Until the merged result has passed: a process that is killed leaves it in the copy.
            self.set_status(RunOutcome::Conflict).await?;
            let (verdict, evidence) = self.verify_merged(copy, &changes, &mut by_checks, stop).await?;
            if verdict != OverallOutcome::Passed {
                return Ok(PreparedLanding::not_landed(unproven_report(
                    self.session,
                    copy,
                    looked.merged,
                    verdict,
                    evidence,
                )));
            }
            proven = evidence;
            rewritten = by_checks.take_rewritten();
            is_doubtful = !rewritten.is_empty();
            if !is_doubtful {
                self.set_status(RunOutcome::Verified).await?;
            }
            changes = read_changes(copy).await?;
        }
        Err(AgentError::Ended)
    }

    /// Returns the tree that the session's last checks passed on, as far as that is known.
    async fn verified_tree(&self, report: Option<&RunReport>) -> Result<Option<ContentHash>, AgentError> {
        match report {
            Some(report) => Ok(report.tree),
            None => {
                Ok(load_last_report(&*self.context.store, self.session).await?.and_then(|last| last.tree))
            }
        }
    }

    /// Merges the user's changes into the copy, and runs the checks there.
    async fn verify_merged(
        &self,
        copy: &Arc<WorkCopy>,
        changes: &CopyChanges,
        by_checks: &mut CheckChanges,
        stop: &CancellationToken,
    ) -> Result<(OverallOutcome, Vec<Evidence>), AgentError> {
        let taking = Arc::clone(copy);
        run_blocking("taking over what changed in the project", move || taking.refresh()).await??;
        let changed = changes.files().into_iter().map(|change| change.path).collect();
        self.context.proof.run(&copy.workspace(), self.session, changed, by_checks, stop).await
    }

    /// Returns the report of a dry run.
    async fn report_dry_run(
        &self,
        copy: &Arc<WorkCopy>,
        changes: CopyChanges,
        looked: LandingReport,
        verified: bool,
    ) -> Result<LandReport, AgentError> {
        let comparing = Arc::clone(copy);
        let (files, diff) = run_blocking("comparing the copy", move || {
            comparing.diff(&changes, MAX_DIFF_BYTES).map(|diff| (changes.files(), diff))
        })
        .await??;
        let verified = if verified { "" } else { "; nothing verified it" };
        let landing = looked.applied.changes.len();
        let summary = match looked.conflicts.len() {
            0 if landing == 0 => "your files have it all already".to_owned(),
            0 => format!("{} would be landed{verified}", describe_file_count(landing)),
            some if landing == 0 => {
                format!(
                    "nothing would be landed: {some} of {} in conflict{verified}",
                    describe_file_count(files.len())
                )
            }
            some => format!("{} would be landed; {some} in conflict{verified}", describe_file_count(landing)),
        };
        let mut would = LandReport::new(self.session, LandOutcome::WouldLand, summary, copy.kept_report());
        would.copy.merged.clone_from(&looked.merged);
        would.copy.conflicts = conflicts_of(&looked);
        would.changes = files;
        let cut = if diff.truncated { "\n… the diff is cut here\n" } else { "" };
        would.diff = format!("{}{cut}", self.context.redactor.redact(&diff.text));
        Ok(would)
    }

    async fn apply(&self, changes: &CopyChanges, options: LandOptions) -> Result<LandingReport, AgentError> {
        let (origin, changes) = (Arc::clone(&self.context.isolation.origin), changes.clone());
        Ok(run_blocking("landing the change", move || origin.land(&changes, &options)).await??)
    }

    /// Returns the files of the change that have uncommitted changes of the user.
    async fn uncommitted_changes(
        &self,
        request: &LandRequest,
        changes: &CopyChanges,
    ) -> Result<Vec<RelPath>, AgentError> {
        if request.commit.is_none() {
            return Ok(Vec::new());
        }
        let git = self.context.isolation.git.as_ref().ok_or(GitError::Missing)?;
        Ok(git.find_dirty_paths(&paths_of(&changes.files())).await?)
    }

    /// Reports a change of which only a part could be landed. The copy stays, because it holds the
    /// rest.
    async fn finish_partial_landing(
        &self,
        tier: IsolationTier,
        landing: LandingReport,
    ) -> Result<LandReport, AgentError> {
        let left: Vec<RelPath> = landing.left.iter().map(|(path, _)| path.clone()).collect();
        let mut copy = copy_report(tier, CopyState::Kept);
        copy.merged = landing.merged;
        copy.conflicts =
            landing.left.into_iter().map(|(path, reason)| FileConflict { path, reason }).collect();
        let changes = landing.applied.changes;
        let done = match changes.len() {
            0 => "nothing was landed".to_owned(),
            some => format!("landed: {}", describe_file_count(some)),
        };
        let summary = format!("{done}; not landed: {}; the copy is kept", list_paths(&left));
        let mut over = LandReport::new(self.session, LandOutcome::Conflicts, summary, copy.clone());
        over.undo = (!changes.is_empty()).then(|| format!("jm undo {}", self.session));
        if !changes.is_empty() {
            self.append_events(vec![Event::Landed { changes: changes.clone(), copy: Some(copy) }]).await?;
        }
        over.changes = changes;
        self.log_kept_copy(over).await
    }

    /// Finishes a landed change: removes the copy, makes the requested commit, and writes the log.
    async fn finish_landing(
        &self,
        tier: IsolationTier,
        landing: LandingReport,
        evidence: Vec<Evidence>,
        request: &LandRequest,
        report: Option<&RunReport>,
        stop: &CancellationToken,
    ) -> Result<LandReport, AgentError> {
        let kept_on = self.remove_landed_copy().await;
        let mut conflicts = conflicts_of(&landing);
        for conflict in &mut conflicts {
            conflict.reason.push_str(match request.on_conflict {
                OnConflict::Refuse => "",
                OnConflict::Markers => "; it has conflict markers now",
                OnConflict::Mine => "; it stays as you have it",
                OnConflict::Theirs => "; it is as the session has it now",
            });
        }
        let changes = landing.applied.changes;
        let mut copy = copy_report(tier, CopyState::Landed);
        (copy.merged, copy.conflicts) = (landing.merged, conflicts);
        let summary = match changes.len() {
            0 => "your files have it all already".to_owned(),
            some => format!("landed: {}", describe_file_count(some)),
        };
        let summary = format!("{summary}{kept_on}");
        let mut landed = LandReport::new(self.session, LandOutcome::Landed, summary, copy.clone());
        landed.undo = (!changes.is_empty()).then(|| format!("jm undo {}", self.session));
        landed.evidence = evidence;
        let mut told = vec![Event::Landed { changes: changes.clone(), copy: Some(copy) }];
        if let Some(request) = request.commit.as_ref().filter(|_| !changes.is_empty()) {
            match self.commit(request, &changes, &landed.evidence, report, stop).await {
                Ok((commit, notes)) => {
                    told.extend(notes);
                    told.push(Event::Committed { commit: commit.clone() });
                    landed.commit = Some(commit);
                }
                Err(error) => {
                    landed.needs_person = matches!(&error, AgentError::Git(error) if error.needs_person());
                    landed.not_committed = Some(error.to_string());
                }
            }
        }
        landed.changes = changes;
        landed.events = self.append_events(told).await?;
        Ok(landed)
    }

    async fn commit(
        &self,
        request: &CommitOptions,
        changes: &[FileChange],
        evidence: &[Evidence],
        report: Option<&RunReport>,
        stop: &CancellationToken,
    ) -> Result<(CommitReport, Vec<Event>), AgentError> {
        let message = self.commit_message(request, evidence, report).await?;
        self.committer()?
            .commit_files(self.plan_commit(request, message, None), paths_of(changes), Vec::new(), stop)
            .await
    }

    fn plan_commit(
        &self,
        request: &CommitOptions,
        message: String,
        verified: Option<ContentHash>,
    ) -> CommitPlan<'_> {
        let tree = &self.context.isolation.origin;
        CommitPlan { message, hooks: request.hooks, tree, session: self.session, verified }
    }

    fn committer(&self) -> Result<&Committer, AgentError> {
        Ok(self.context.committer.as_ref().ok_or(GitError::Missing)?)
    }

    /// Writes a commit's message.
    async fn commit_message(
        &self,
        request: &CommitOptions,
        evidence: &[Evidence],
        report: Option<&RunReport>,
    ) -> Result<String, AgentError> {
        let earlier = match report {
            Some(_) => None,
            None => load_last_report(&*self.context.store, self.session).await?,
        };
        let report = report.or(earlier.as_ref());
        let message = request.message.clone().unwrap_or_else(|| {
            let closing = report.map(|report| report.text.as_str()).unwrap_or_default();
            let proof = report.map(|report| report.evidence.as_slice()).filter(|_| evidence.is_empty());
            commit::commit_message(&self.summary.title, closing, proof.unwrap_or(evidence))
        });
        Ok(self.context.redactor.redact(&message).into_owned())
    }

    /// Commits the change on a new branch. The user's tree and its checked-out branch stay
    /// unchanged.
    async fn commit_on_branch(
        &self,
        tier: IsolationTier,
        changes: &CopyChanges,
        name: &str,
        request: &LandRequest,
        report: Option<&RunReport>,
        stop: &CancellationToken,
    ) -> Result<LandReport, AgentError> {
        let commit = request.commit.clone().unwrap_or_default();
        let message = self.commit_message(&commit, &[], report).await?;
        let message = (message, commit.hooks);
        let branched =
            self.committer()?.commit_on_branch(name, changes, message, request.unverified, stop).await?;
        let kept = copy_report(tier, CopyState::Kept);
        let over = |end, summary| LandReport::new(self.session, end, summary, kept.clone());
        let (commit, files) = match branched {
            BranchOutcome::Done { commit, changes } => (commit, changes),
            BranchOutcome::Conflicts(paths) => {
                let summary = format!(
                    "not landed: it builds on changes of yours in {} that aren't committed; commit those first",
                    list_paths(&paths)
                );
                return self.log_kept_copy(over(LandOutcome::Mixed, summary)).await;
            }
            BranchOutcome::Refused(error) => {
                let mut over = over(LandOutcome::NotCommitted, "not landed: no commit was made".to_owned());
                over.needs_person = error.needs_person();
                over.not_committed = Some(error.to_string());
                return self.log_kept_copy(over).await;
            }
        };
        let kept_on = self.remove_landed_copy().await;
        let copy = copy_report(tier, CopyState::Landed);
        let summary = format!("landed on branch {name}: {}{kept_on}", describe_file_count(files.len()));
        let mut landed = LandReport::new(self.session, LandOutcome::Landed, summary, copy.clone());
        landed.commit = Some(commit.clone());
        let told =
            vec![Event::Landed { changes: files.clone(), copy: Some(copy) }, Event::Committed { commit }];
        landed.changes = files;
        landed.events = self.append_events(told).await?;
        Ok(landed)
    }

    /// Commits the changes that a run made in the user's own tree.
    pub(super) async fn commit_run(
        &self,
        request: &CommitOptions,
        report: &RunReport,
        before: Vec<RelPath>,
        stop: &CancellationToken,
    ) -> Result<(CommitReport, Vec<Envelope>), AgentError> {
        let message = self.commit_message(request, &[], Some(report)).await?;
        let plan = self.plan_commit(request, message, report.tree);
        let (commit, mut told) =
            self.committer()?.commit_files(plan, paths_of(&report.changes), before, stop).await?;
        told.push(Event::Committed { commit: commit.clone() });
        let told = self.append_events(told).await?;
        Ok((commit, told))
    }

    /// Removes a copy without changes.
    async fn finish_without_changes(&self, tier: IsolationTier) -> Result<LandReport, AgentError> {
        self.remove_copy().await?;
        let copy = copy_report(tier, CopyState::Discarded);
        let mut nothing = LandReport::new(self.session, LandOutcome::Nothing, "nothing was changed", copy);
        nothing.events = self.append_events(vec![Event::CopyDiscarded { files: 0 }]).await?;
        Ok(nothing)
    }

    /// Keeps the copy and logs the reason. A dry run and a pending question are not logged.
    async fn log_kept_copy(&self, mut over: LandReport) -> Result<LandReport, AgentError> {
        if matches!(over.end, LandOutcome::WouldLand | LandOutcome::Unverified) {
            return Ok(over);
        }
        let (reason, conflicts) = (over.summary.clone(), over.copy.conflicts.clone());
        over.events = self.append_events(vec![Event::CopyKept { reason, conflicts }]).await?;
        if is_verified_status(&self.summary.status) {
            self.set_status(RunOutcome::Conflict).await?;
        }
        Ok(over)
    }

    /// Sets the status of the session in lists, by which the next landing knows what is verified.
    async fn set_status(&self, outcome: RunOutcome) -> Result<(), AgentError> {
        let now = self.context.clock.now();
        Ok(self.context.store.set_status(self.session, &status_of(outcome), now).await?)
    }

    /// Keeps the copy of a run that changed something.
    pub(super) async fn keep_copy(
        &self,
        report: &mut RunReport,
    ) -> Result<(DiffStat, Vec<Envelope>), AgentError> {
        let copy = open_copy(&self.context.isolation, self.session).await?;
        let tier = copy.tier();
        let compare = move || {
            let changes = copy.changes()?;
            Ok::<_, WorkspaceError>((copy.stat(&changes)?, changes.is_empty()))
        };
        let (extent, nothing) = run_blocking("comparing the copy", compare).await??;
        if nothing {
            let nothing = self.finish_without_changes(tier).await?;
            report.copy = Some(nothing.copy);
            return Ok((extent, nothing.events));
        }
        report.copy = Some(copy_report(tier, CopyState::Kept));
        let told = vec![Event::CopyKept { reason: report.summary.clone(), conflicts: Vec::new() }];
        Ok((extent, self.append_events(told).await?))
    }

    pub(super) async fn discard_copy(&self) -> Result<u64, AgentError> {
        // One that can't be opened any more goes all the same.
        let files = match open_copy(&self.context.isolation, self.session).await {
            Ok(copy) => {
                read_changes(&Arc::new(copy)).await.map(|changes| changes.files().len()).unwrap_or_default()
            }
            Err(
                error @ AgentError::Workspace(
                    WorkspaceError::UnknownCopy { .. }
                    | WorkspaceError::AlreadyLanded { .. }
                    | WorkspaceError::Busy { .. },
                ),
            ) => {
                return Err(error);
            }
            Err(_) => 0,
        };
        self.remove_copy().await?;
        let files = files as u64;
        self.append_events(vec![Event::CopyDiscarded { files }]).await?;
        Ok(files)
    }

    /// Removes a copy whose work is landed. Returns the text to report; a failure doesn't affect
    /// the landing.
    async fn remove_landed_copy(&self) -> String {
        match self.remove_copy().await {
            // Another process may have swept it away: it sees that it is landed.
            Ok(()) | Err(AgentError::Workspace(WorkspaceError::UnknownCopy { .. })) => String::new(),
            Err(error) => format!("; its copy couldn't be removed: {error}"),
        }
    }

    /// Removes the copy, and waits a short time while it is busy.
    async fn remove_copy(&self) -> Result<(), AgentError> {
        let (origin, session) = (Arc::clone(&self.context.isolation.origin), self.session.clone());
        retry_while_busy("removing the copy", move || Ok(origin.copies().discard(&session)?)).await
    }

    /// Writes events into the session's log.
    async fn append_events(&self, told: Vec<Event>) -> Result<Vec<Envelope>, AgentError> {
        let LandContext { store, clock, redactor, .. } = self.context;
        let sessions = store.find_sessions(self.session.as_str()).await?;
        let found = sessions.into_iter().find(|found| found.id == *self.session);
        let last = found.map_or(self.summary.last, |found| found.last);
        let bounds = SubscriberBufferLimits::default();
        let log = Log::new(
            Arc::clone(store),
            self.session.clone(),
            last,
            clock.clone(),
            Arc::clone(redactor),
            bounds,
        );
        told.into_iter().for_each(|event| log.emit(event));
        log.flush().await?;
        log.stop_writing().await;
        load_events(&**store, self.session, last, PAGE_ENTRIES).await
    }
}

/// The verification of a copy before it is landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerifiedState {
    Unverified,
    /// Checks passed on this tree, if it is known.
    Verified {
        tree: Option<ContentHash>,
    },
}

impl VerifiedState {
    /// Returns true if the copy isn't the verified tree any more.
    async fn is_changed(self, copy: &WorkCopy) -> Result<bool, AgentError> {
        let Self::Verified { tree: Some(verified) } = self else { return Ok(false) };
        let copy = copy.workspace();
        let now = run_blocking("looking at the copy", move || copy.history().tree_hash()).await??;
        Ok(now != verified)
    }
}

/// The result of preparing a landing.
enum PreparedLanding {
    /// The change can be landed.
    Ready { changes: CopyChanges, evidence: Vec<Evidence> },
    /// The change isn't landed.
    Over(Box<LandReport>),
}

impl PreparedLanding {
    fn not_landed(report: LandReport) -> Self {
        Self::Over(Box::new(report))
    }
}

async fn read_changes(copy: &Arc<WorkCopy>) -> Result<CopyChanges, AgentError> {
    let copy = Arc::clone(copy);
    Ok(run_blocking("comparing the copy", move || copy.changes()).await??)
}

fn was_refused(landing: &LandingReport, request: &LandRequest) -> bool {
    request.on_conflict == OnConflict::Refuse && !landing.conflicts.is_empty()
}

/// Returns true if a session with this status in the log has work that checks passed on.
#[must_use]
pub fn is_verified_status(status: &str) -> bool {
    [RunOutcome::Verified, RunOutcome::Conflict].into_iter().any(|outcome| status_of(outcome) == status)
}

/// Opens the copy of a session, and waits a short time if this process is still releasing it.
///
/// # Errors
/// As [`Isolation::open`], and [`WorkspaceError::AlreadyLanded`].
pub async fn open_copy(isolation: &Isolation, session: &SessionId) -> Result<WorkCopy, AgentError> {
    let (isolation, session) = (isolation.clone(), session.clone());
    retry_while_busy("opening the copy", move || match isolation.open(&session) {
        Err(AgentError::Workspace(WorkspaceError::UnknownCopy { session }))
            if isolation.origin.copies().is_landed(&session)? =>
        {
            Err(WorkspaceError::AlreadyLanded { session }.into())
        }
        opened => opened,
    })
    .await
}

/// Moves the copy of a session to another session, such as a fork, with its files, its journal and
/// its checkpoints. Returns false if the session has no copy.
///
/// # Errors
/// [`WorkspaceError::Busy`] where a process has the copy open, and failures of the disk.
pub async fn hand_over_copy(
    isolation: &Isolation,
    from: &SessionId,
    to: &SessionId,
) -> Result<bool, AgentError> {
    let (origin, from, to) = (Arc::clone(&isolation.origin), from.clone(), to.clone());
    retry_while_busy("handing the copy over", move || match origin.copies().hand_over(&from, &to) {
        Ok(()) => Ok(true),
        Err(WorkspaceError::UnknownCopy { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    })
    .await
}

/// Retries an operation for a short time while the copy is busy.
async fn retry_while_busy<T: Send + 'static>(
    what: &'static str,
    attempt: impl Fn() -> Result<T, AgentError> + Clone + Send + 'static,
) -> Result<T, AgentError> {
    let begin = tokio::time::Instant::now();
    loop {
        match run_blocking(what, attempt.clone()).await? {
            Err(AgentError::Workspace(WorkspaceError::Busy { .. })) if begin.elapsed() < MAX_BUSY_WAIT => {
                tokio::time::sleep(BUSY_POLL_INTERVAL).await;
            }
            tried => return tried,
        }
    }
}

fn paths_of(changes: &[FileChange]) -> Vec<RelPath> {
    changes.iter().map(|change| change.path.clone()).collect()
}
