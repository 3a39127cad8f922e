//! What becomes of a copy when its session is over: landed, kept, or discarded.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{
    CommitReport, CopyReport, CopyState, Envelope, Event, Evidence, FileChange, FileConflict, Outcome,
    RelPath, RunReport, Seq, SessionId,
};
use journeyman_store::{SessionSummary, Store, StoreError};
use journeyman_verify::Verdict;
use journeyman_workspace::{CopyChanges, LandOptions, Landing, OnConflict, Tier, WorkspaceError};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{CommitWish, Isolation, Proof, WorkCopy, delivery, report_of};
use crate::lease::Lease;
use crate::log::{Log, LogBounds, events};
use crate::turn::blocking;
use crate::{AgentError, Clock};

/// Bytes of diff that a report shows, as a run's.
const MAX_DIFF: usize = 256 * 1024;
/// Events read at once.
const PAGE: usize = 500;
/// How often a merged result is proven anew because the user's tree moved on meanwhile.
const MAX_ROUNDS: usize = 3;
/// How long a copy that this process is still giving up is waited for. What holds it is a look at its files.
const GIVING_UP: std::time::Duration = std::time::Duration::from_secs(10);
/// How often it is looked whether it is free.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// What landing works with.
#[derive(Clone)]
pub struct LandContext {
    /// Where the logs are kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What must never be shown or kept.
    pub redactor: Arc<Redactor>,
    /// Who lands, for people, such as `jm land, process 123`.
    pub holder: String,
    /// What copies are made of and with.
    pub isolation: Isolation,
    /// How merged results are proven.
    pub proof: Proof,
}

/// What happens to work that nothing verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unverified {
    /// It is kept.
    #[default]
    Keep,
    /// It is landed all the same: the user says so.
    Land,
}

/// How a copy is to be landed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LandWish {
    /// Files that both changed in ways that don't go together.
    pub on_conflict: OnConflict,
    /// Only tell what would happen.
    pub dry_run: bool,
    /// Work, and results of merging, that nothing verified.
    pub unverified: Unverified,
    /// Whether a commit is made of it.
    pub commit: Option<CommitWish>,
}

/// How landing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LandEnd {
    /// The change is in the user's tree.
    Landed,
    /// It would be: a dry run.
    WouldLand,
    /// There was nothing to land; the copy is gone.
    Nothing,
    /// Both changed the same lines.
    Conflicts,
    /// What came of merging fails the checks.
    ChecksFail,
    /// What came of merging couldn't be checked.
    Unproven,
    /// Nothing verified the work.
    Unverified,
    /// Files of it have uncommitted changes of the user, which a commit would take along.
    Mixed,
}

/// What landing did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LandReport {
    /// Whose copy.
    pub session: SessionId,
    /// How it ended.
    pub end: LandEnd,
    /// One line a person understands.
    pub summary: String,
    /// Where the work is.
    pub copy: CopyReport,
    /// What changed in the user's tree, or would.
    pub changes: Vec<FileChange>,
    /// What a dry run would change, as a bounded unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// Checks of a merged result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The commit that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReport>,
    /// Why no commit was made, though one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_committed: Option<String>,
    /// How to take it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What the session's log got of it.
    #[serde(skip)]
    pub events: Vec<Envelope>,
}

impl LandReport {
    fn new(session: &SessionId, end: LandEnd, summary: impl Into<String>, copy: CopyReport) -> Self {
        Self {
            session: session.clone(),
            end,
            summary: summary.into(),
            copy,
            changes: Vec::new(),
            diff: String::new(),
            evidence: Vec::new(),
            commit: None,
            not_committed: None,
            undo: None,
            events: Vec::new(),
        }
    }

    /// The exit code of a command that was to land something.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.end {
            _ if self.not_committed.is_some() => Outcome::Error.exit_code(),
            LandEnd::Landed | LandEnd::WouldLand | LandEnd::Nothing => Outcome::Verified.exit_code(),
            LandEnd::Conflicts | LandEnd::ChecksFail | LandEnd::Unproven => Outcome::Conflict.exit_code(),
            LandEnd::Unverified => Outcome::PermissionNeeded.exit_code(),
            LandEnd::Mixed => Outcome::Error.exit_code(),
        }
    }

    /// Puts into a run's report where its work is now.
    pub fn amend(&self, report: &mut RunReport) {
        report.copy = Some(self.copy.clone());
        report.commit.clone_from(&self.commit);
        report.undo.clone_from(&self.undo);
        match self.end {
            LandEnd::Landed => {
                report.changes.clone_from(&self.changes);
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::Conflicts | LandEnd::ChecksFail | LandEnd::Unproven => {
                report.outcome = Outcome::Conflict;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::Mixed => {
                report.outcome = Outcome::Error;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::WouldLand | LandEnd::Nothing | LandEnd::Unverified => {}
        }
        if let Some(reason) = &self.not_committed {
            report.outcome = Outcome::Error;
            report.summary = format!("{}; not committed: {reason}", report.summary);
        }
        report.exit_code = report.outcome.exit_code();
    }
}

/// Brings the end of a run that worked in a copy about, once its session is closed: verified work is landed as `wish`
/// says, all else is kept, and a copy in which nothing was changed goes. With no `wish` everything is kept. Puts into
/// the report where the work is; gives what was written into the session's log.
///
/// # Errors
/// The store's; [`WorkspaceError::Busy`]; failures of the trees. The copy is kept then.
pub async fn settle(
    context: &LandContext,
    report: &mut RunReport,
    wish: Option<&LandWish>,
    stop: &CancellationToken,
) -> Result<Vec<Envelope>, AgentError> {
    if report.copy.is_none() {
        return Ok(Vec::new());
    }
    let session = report.session.clone();
    let desk = Desk::open(context, &session).await?;
    let settled = match wish {
        Some(wish) if report.outcome == Outcome::Verified => {
            desk.land(wish, Some(report), stop).await.map(|landed| {
                landed.amend(report);
                landed.events
            })
        }
        _ => desk.keep(report).await.map(|(_, told)| told),
    };
    desk.close().await;
    settled
}

/// Lands the copy of a session that nobody has open, and removes it. What the user changed meanwhile stays: where
/// files had to be merged, the checks pass on the merged copy first.
///
/// # Errors
/// As [`settle`]; [`WorkspaceError::UnknownCopy`].
pub async fn land(
    context: &LandContext,
    session: &SessionId,
    wish: &LandWish,
    stop: &CancellationToken,
) -> Result<LandReport, AgentError> {
    let desk = Desk::open(context, session).await?;
    let landed = desk.land(wish, None, stop).await;
    desk.close().await;
    landed
}

/// How much a session changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Files.
    pub files: u64,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
}

/// As [`settle`] with no wish, for a session whose change is to be compared with others.
pub(crate) async fn keep(
    context: &LandContext,
    report: &mut RunReport,
) -> Result<(Extent, Vec<Envelope>), AgentError> {
    let session = report.session.clone();
    let desk = Desk::open(context, &session).await?;
    let kept = desk.keep(report).await;
    desk.close().await;
    kept
}

/// Removes a session's copy with all that was changed in it; gives how many files that were.
///
/// # Errors
/// As [`land`].
pub async fn discard(context: &LandContext, session: &SessionId) -> Result<u64, AgentError> {
    let desk = Desk::open(context, session).await?;
    let discarded = desk.discard().await;
    desk.close().await;
    discarded
}

/// The newest report of a session's runs; `None` where none has ended.
///
/// # Errors
/// The store's.
pub async fn last_report(store: &dyn Store, session: &SessionId) -> Result<Option<RunReport>, AgentError> {
    let (mut after, mut newest) = (Seq::START, None);
    loop {
        let page = events(store, session, after, PAGE).await?;
        let Some(last) = page.last().and_then(|envelope| envelope.seq) else { return Ok(newest) };
        after = last;
        for envelope in page {
            if let Event::Done { report } = envelope.event {
                newest = Some(*report);
            }
        }
    }
}

/// A session taken, for what is decided about its copy.
pub(super) struct Desk<'a> {
    context: &'a LandContext,
    session: &'a SessionId,
    lease: Lease,
    summary: SessionSummary,
}

impl<'a> Desk<'a> {
    pub(super) async fn open(context: &'a LandContext, session: &'a SessionId) -> Result<Self, AgentError> {
        let LandContext { store, clock, holder, .. } = context;
        let lease = Lease::new(Arc::clone(store), session.clone(), holder.clone(), Arc::clone(clock));
        lease.take().await?;
        let found = store.find(session.as_str()).await.map_err(AgentError::from);
        let summary = found.map(|found| found.into_iter().find(|found| found.id == *session));
        match summary {
            Ok(Some(summary)) => Ok(Self { context, session, lease, summary }),
            Ok(None) => {
                lease.give_back().await;
                Err(StoreError::UnknownSession { session: session.clone() }.into())
            }
            Err(error) => {
                lease.give_back().await;
                Err(error)
            }
        }
    }

    pub(super) async fn close(self) {
        self.lease.give_back().await;
    }

    /// Opens the copy, and waits a little where this process is still giving it up.
    async fn copy(&self) -> Result<WorkCopy, AgentError> {
        let begin = tokio::time::Instant::now();
        loop {
            let (isolation, session) = (self.context.isolation.clone(), self.session.clone());
            match blocking("opening the copy", move || isolation.open(&session)).await? {
                Err(AgentError::Workspace(WorkspaceError::Busy { .. })) if begin.elapsed() < GIVING_UP => {
                    tokio::time::sleep(LOOK).await;
                }
                opened => return opened,
            }
        }
    }

    async fn land(
        &self,
        wish: &LandWish,
        report: Option<&RunReport>,
        stop: &CancellationToken,
    ) -> Result<LandReport, AgentError> {
        let copy = Arc::new(self.copy().await?);
        let tier = copy.tier();
        let changes = changes_of(&copy).await?;
        if changes.is_empty() {
            drop(copy);
            return self.nothing(tier).await;
        }
        let verified = report.is_some() || self.is_verified();
        let (changes, evidence) = match self.prepare(&copy, changes, wish, verified, stop).await? {
            Prepared::Ready { changes, evidence } => (changes, evidence),
            Prepared::Over(over) => return self.stays(*over).await,
        };
        let mixed = self.mixed(wish, &changes).await?;
        if !mixed.is_empty() {
            let summary = format!(
                "not landed: a commit would take your own uncommitted changes along, in {}. Commit or stash them \
                 first, or land it without --commit",
                names(&mixed)
            );
            return self.stays(LandReport::new(self.session, LandEnd::Mixed, summary, copy.kept())).await;
        }
        // An overlay is closed before the tree beneath it changes.
        drop(copy);
        let landing = self.apply(&changes, wish, false).await?;
        if refused(&landing, wish) {
            return self.stays(conflicting(self.session, tier, &landing)).await;
        }
        self.landed(tier, landing, evidence, wish, report).await
    }

    /// Whether the newest run of the session ended verified.
    fn is_verified(&self) -> bool {
        let word = |outcome: Outcome| {
            serde_json::to_value(outcome).is_ok_and(|word| word == self.summary.status.as_str())
        };
        word(Outcome::Verified) || word(Outcome::Conflict)
    }

    /// Looks at what landing would do, and has merged results proven first.
    async fn prepare(
        &self,
        copy: &Arc<WorkCopy>,
        mut changes: CopyChanges,
        wish: &LandWish,
        verified: bool,
        stop: &CancellationToken,
    ) -> Result<Prepared, AgentError> {
        let mut proven = Vec::new();
        for round in 0.. {
            let looked = self.apply(&changes, wish, true).await?;
            if wish.dry_run {
                return Ok(Prepared::over(self.would(copy, changes, looked, verified).await?));
            }
            if !verified && wish.unverified == Unverified::Keep {
                let summary = "not landed: nothing verified it";
                let over = LandReport::new(self.session, LandEnd::Unverified, summary, copy.kept());
                return Ok(Prepared::over(over));
            }
            if refused(&looked, wish) {
                return Ok(Prepared::over(conflicting(self.session, copy.tier(), &looked)));
            }
            // Where the user settles conflicts by a word, they say what is to be in their tree.
            let settled = wish.unverified == Unverified::Land || !looked.conflicts.is_empty();
            if looked.merged.is_empty() || settled {
                return Ok(Prepared::Ready { changes, evidence: proven });
            }
            if round >= MAX_ROUNDS {
                let summary =
                    "not landed: your files changed again and again while the merged result was checked";
                let mut over = LandReport::new(self.session, LandEnd::Unproven, summary, copy.kept());
                over.copy.merged = looked.merged;
                return Ok(Prepared::over(over));
            }
            let (verdict, evidence) = self.prove(copy, &changes, stop).await?;
            if verdict != Verdict::Passed {
                return Ok(Prepared::over(unproven(self.session, copy, looked.merged, verdict, evidence)));
            }
            proven = evidence;
            changes = changes_of(copy).await?;
        }
        Err(AgentError::Ended)
    }

    /// Brings what the user changed into the copy, and runs the checks there.
    async fn prove(
        &self,
        copy: &Arc<WorkCopy>,
        changes: &CopyChanges,
        stop: &CancellationToken,
    ) -> Result<(Verdict, Vec<Evidence>), AgentError> {
        let taking = Arc::clone(copy);
        blocking("taking over what changed in the project", move || taking.refresh()).await??;
        let changed = changes.files().into_iter().map(|change| change.path).collect();
        self.context.proof.run(&copy.workspace(), self.session, changed, stop).await
    }

    /// What a dry run tells.
    async fn would(
        &self,
        copy: &Arc<WorkCopy>,
        changes: CopyChanges,
        looked: Landing,
        verified: bool,
    ) -> Result<LandReport, AgentError> {
        let comparing = Arc::clone(copy);
        let (files, diff) = blocking("comparing the copy", move || {
            comparing.diff(&changes, MAX_DIFF).map(|diff| (changes.files(), diff))
        })
        .await??;
        let verified = if verified { "" } else { "; nothing verified it" };
        let summary = match looked.conflicts.len() {
            0 => format!("{} would be landed{verified}", counted(files.len())),
            some => format!("{} would be landed but for conflicts in {some}{verified}", counted(files.len())),
        };
        let mut would = LandReport::new(self.session, LandEnd::WouldLand, summary, copy.kept());
        would.copy.merged.clone_from(&looked.merged);
        would.copy.conflicts = conflicts_of(&looked);
        would.changes = files;
        let cut = if diff.truncated { "\n… the diff is cut here\n" } else { "" };
        would.diff = format!("{}{cut}", self.context.redactor.redact(&diff.text));
        Ok(would)
    }

    async fn apply(
        &self,
        changes: &CopyChanges,
        wish: &LandWish,
        dry_run: bool,
    ) -> Result<Landing, AgentError> {
        let (origin, changes) = (Arc::clone(&self.context.isolation.origin), changes.clone());
        let options = LandOptions { on_conflict: wish.on_conflict, dry_run };
        Ok(blocking("landing the change", move || origin.land(&changes, &options)).await??)
    }

    /// Files of the change that the user has changed since the last commit.
    async fn mixed(&self, wish: &LandWish, changes: &CopyChanges) -> Result<Vec<RelPath>, AgentError> {
        let (Some(_), Some(git)) = (&wish.commit, &self.context.isolation.git) else { return Ok(Vec::new()) };
        let theirs = delivery::uncommitted(git).await?;
        let paths = changes.files().into_iter().map(|change| change.path);
        Ok(paths.filter(|path| theirs.contains(path)).collect())
    }

    /// The change is in the tree: the copy goes, a commit is made where one is wanted, and the log is told.
    async fn landed(
        &self,
        tier: Tier,
        landing: Landing,
        evidence: Vec<Evidence>,
        wish: &LandWish,
        report: Option<&RunReport>,
    ) -> Result<LandReport, AgentError> {
        self.drop_copy().await?;
        let conflicts = conflicts_of(&landing);
        let changes = landing.applied.changes;
        let mut copy = report_of(tier, CopyState::Landed);
        (copy.merged, copy.conflicts) = (landing.merged, conflicts);
        let summary = match changes.len() {
            0 => "your files have it all already".to_owned(),
            some => format!("landed: {}", counted(some)),
        };
        let mut landed = LandReport::new(self.session, LandEnd::Landed, summary, copy.clone());
        landed.undo = (!changes.is_empty()).then(|| format!("jm undo {}", self.session));
        landed.evidence = evidence;
        let mut told = vec![Event::Landed { changes: changes.clone(), copy: Some(copy) }];
        if let Some(wish) = wish.commit.as_ref().filter(|_| !changes.is_empty()) {
            match self.commit(wish, &changes, &landed.evidence, report).await {
                Ok(commit) => {
                    told.push(Event::Committed { commit: commit.clone() });
                    landed.commit = Some(commit);
                }
                Err(error) => landed.not_committed = Some(error.to_string()),
            }
        }
        landed.changes = changes;
        landed.events = self.tell(told).await?;
        Ok(landed)
    }

    async fn commit(
        &self,
        wish: &CommitWish,
        changes: &[FileChange],
        evidence: &[Evidence],
        report: Option<&RunReport>,
    ) -> Result<CommitReport, AgentError> {
        let git = self.context.isolation.git.as_ref().ok_or(journeyman_git::GitError::Missing)?;
        let earlier = match report {
            Some(_) => None,
            None => last_report(&*self.context.store, self.session).await?,
        };
        let report = report.or(earlier.as_ref());
        let message = wish.message.clone().unwrap_or_else(|| {
            let closing = report.map(|report| report.text.as_str()).unwrap_or_default();
            let proof = report.map(|report| report.evidence.as_slice()).filter(|_| evidence.is_empty());
            delivery::commit_message(&self.summary.title, closing, proof.unwrap_or(evidence))
        });
        let message = self.context.redactor.redact(&message).into_owned();
        let paths: Vec<RelPath> = changes.iter().map(|change| change.path.clone()).collect();
        Ok(delivery::commit(git, &paths, wish, &message).await?)
    }

    /// Commits what a run changed in the user's own tree.
    pub(super) async fn commit_run(
        &self,
        wish: &CommitWish,
        report: &RunReport,
    ) -> Result<(CommitReport, Vec<Envelope>), AgentError> {
        let commit = self.commit(wish, &report.changes, &[], Some(report)).await?;
        let told = self.tell(vec![Event::Committed { commit: commit.clone() }]).await?;
        Ok((commit, told))
    }

    /// Nothing was changed in the copy: it goes without a word to keep it by.
    async fn nothing(&self, tier: Tier) -> Result<LandReport, AgentError> {
        self.drop_copy().await?;
        let copy = report_of(tier, CopyState::Discarded);
        let mut nothing = LandReport::new(self.session, LandEnd::Nothing, "nothing was changed", copy);
        nothing.events = self.tell(vec![Event::Discarded { files: 0 }]).await?;
        Ok(nothing)
    }

    /// The copy stays as it is, and the log says why. A dry run leaves no trace, nor does what somebody is asked about.
    async fn stays(&self, mut over: LandReport) -> Result<LandReport, AgentError> {
        if matches!(over.end, LandEnd::WouldLand | LandEnd::Unverified) {
            return Ok(over);
        }
        let (reason, conflicts) = (over.summary.clone(), over.copy.conflicts.clone());
        over.events = self.tell(vec![Event::Kept { reason, conflicts }]).await?;
        if self.is_verified() {
            let word = serde_json::to_value(Outcome::Conflict).ok();
            let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
            self.context.store.set_status(self.session, word, self.context.clock.now()).await?;
        }
        Ok(over)
    }

    /// Keeps what a run did, unless it did nothing.
    async fn keep(&self, report: &mut RunReport) -> Result<(Extent, Vec<Envelope>), AgentError> {
        let copy = self.copy().await?;
        let tier = copy.tier();
        let compare = move || {
            let changes = copy.changes()?;
            // Only how much it is.
            let diff = copy.diff(&changes, 0)?;
            let (added, removed) = (diff.added as u64, diff.removed as u64);
            Ok::<_, WorkspaceError>(Extent { files: changes.files().len() as u64, added, removed })
        };
        let extent = blocking("comparing the copy", compare).await??;
        if extent.files == 0 {
            let nothing = self.nothing(tier).await?;
            report.copy = Some(nothing.copy);
            return Ok((extent, nothing.events));
        }
        report.copy = Some(report_of(tier, CopyState::Kept));
        let told = vec![Event::Kept { reason: report.summary.clone(), conflicts: Vec::new() }];
        Ok((extent, self.tell(told).await?))
    }

    async fn discard(&self) -> Result<u64, AgentError> {
        // One that can't be opened any more goes all the same.
        let files = match self.copy().await {
            Ok(copy) => {
                changes_of(&Arc::new(copy)).await.map(|changes| changes.files().len()).unwrap_or_default()
            }
            Err(
                error @ AgentError::Workspace(
                    WorkspaceError::UnknownCopy { .. } | WorkspaceError::Busy { .. },
                ),
            ) => {
                return Err(error);
            }
            Err(_) => 0,
        };
        self.drop_copy().await?;
        let files = files as u64;
        self.tell(vec![Event::Discarded { files }]).await?;
        Ok(files)
    }

    async fn drop_copy(&self) -> Result<(), AgentError> {
        let (origin, session) = (Arc::clone(&self.context.isolation.origin), self.session.clone());
        Ok(blocking("removing the copy", move || origin.discard_copy(&session)).await??)
    }

    /// Writes events into the session's log.
    async fn tell(&self, told: Vec<Event>) -> Result<Vec<Envelope>, AgentError> {
        let LandContext { store, clock, redactor, .. } = self.context;
        let found =
            store.find(self.session.as_str()).await?.into_iter().find(|found| found.id == *self.session);
        let last = found.map_or(self.summary.last, |found| found.last);
        let bounds = LogBounds::default();
        let log = Log::new(
            Arc::clone(store),
            self.session.clone(),
            last,
            Arc::clone(clock),
            Arc::clone(redactor),
            bounds,
        );
        told.into_iter().for_each(|event| log.emit(event));
        log.flush().await?;
        log.end().await;
        events(&**store, self.session, last, PAGE).await
    }
}

/// What a look before landing comes to.
enum Prepared {
    /// It can be landed.
    Ready { changes: CopyChanges, evidence: Vec<Evidence> },
    /// It isn't going to be.
    Over(Box<LandReport>),
}

impl Prepared {
    fn over(report: LandReport) -> Self {
        Self::Over(Box::new(report))
    }
}

async fn changes_of(copy: &Arc<WorkCopy>) -> Result<CopyChanges, AgentError> {
    let copy = Arc::clone(copy);
    Ok(blocking("comparing the copy", move || copy.changes()).await??)
}

fn refused(landing: &Landing, wish: &LandWish) -> bool {
    wish.on_conflict == OnConflict::Refuse && !landing.conflicts.is_empty()
}

fn conflicts_of(landing: &Landing) -> Vec<FileConflict> {
    let each = landing.conflicts.iter();
    each.map(|(path, reason)| FileConflict { path: path.clone(), reason: reason.clone() }).collect()
}

fn conflicting(session: &SessionId, tier: Tier, landing: &Landing) -> LandReport {
    let paths: Vec<RelPath> = landing.conflicts.iter().map(|(path, _)| path.clone()).collect();
    let summary = format!("not landed: you changed {} too, in ways that don't go together", names(&paths));
    let mut copy = report_of(tier, CopyState::Kept);
    copy.conflicts = conflicts_of(landing);
    LandReport::new(session, LandEnd::Conflicts, summary, copy)
}

fn unproven(
    session: &SessionId,
    copy: &WorkCopy,
    merged: Vec<RelPath>,
    verdict: Verdict,
    evidence: Vec<Evidence>,
) -> LandReport {
    let (end, how) = match verdict {
        Verdict::Failed => (LandEnd::ChecksFail, "fails the checks"),
        Verdict::NothingRan | Verdict::Passed => (LandEnd::Unproven, "could not be checked"),
    };
    let summary = format!("not landed: you changed {} too, and what came of merging {how}", names(&merged));
    let mut over = LandReport::new(session, end, summary, copy.kept());
    (over.copy.merged, over.evidence) = (merged, evidence);
    over
}

/// A few files by name, the rest by number.
pub(super) fn names(paths: &[RelPath]) -> String {
    const NAMED: usize = 5;
    let named: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    match paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", named.join(", ")),
        None => named.join(", "),
    }
}

fn counted(files: usize) -> String {
    format!("{files} file{}", if files == 1 { "" } else { "s" })
}
