//! Several sessions for one task in parallel, each in a copy of its own; the best result is offered
//! first.
//!
//! The task is opened once: a parent session packs and logs the first context, and every candidate
//! is a fork of the parent that begins with the first model request. So the candidates' first
//! requests are the same, byte for byte, and a provider with a prompt cache reads them once.
//! Candidates share a budget and a time limit, ask nobody, and don't change the user's files:
//! [`land_copy`](crate::isolation::land_copy) lands one of them.

use std::cmp::Reverse;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use journeyman_protocol::{
    CandidateReport, CopyState, Envelope, Event, MessageKind, ReminderCategory, RunOutcome, RunReport, Seq,
    SessionId,
};
use journeyman_store::{Store, StoreError};
use journeyman_workspace::{DiffStat, WorkspaceError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;
use crate::isolation::{Isolation, LandContext, keep_copy, load_last_report};
use crate::recovery::lease::Lease;
use crate::session::assemble::{AssembledSession, assemble_session};
use crate::session::budget::SharedBudget;
use crate::session::handle::SessionHandle;
use crate::session::running_session::Session;
use crate::session::settings::Approver;
use crate::transcript::fork;
use crate::transcript::log::{EventFilter, Since, load_events};
use crate::transcript::record::{CandidateRun, Record, record_of};
use crate::transcript::state::State;
use crate::{AgentError, CutOffPolicy, RunSettings, SessionParts, resume};

/// Maximum number of candidates of one task: more copies than a person compares, and as many
/// concurrent requests as the smallest plans of providers allow.
pub const MAX_CANDIDATES: u32 = 8;
/// Number of entries read to find the candidates, which are among a session's first entries.
const PAGE_ENTRIES: usize = 200;

/// Settings of a run of several candidates.
pub struct CandidateOptions<'a> {
    /// The means of landing and of making copies.
    pub context: &'a LandContext,
    /// Gives the parts of the candidate with a number, or of the parent, which has the number 0;
    /// the workspace is the user's tree.
    pub parts: &'a dyn Fn(u32) -> SessionParts,
    /// The settings of all candidates. Nobody is asked, and the budget is one for all.
    pub settings: RunSettings,
    /// Changes the settings, such as the model, for the candidate with a number.
    pub adjust_settings: &'a dyn Fn(u32, RunSettings) -> RunSettings,
    /// The session that the others are forks of.
    pub parent: SessionId,
    /// The candidates, numbered from 1.
    pub candidates: Vec<SessionId>,
    /// True if the caller lands the best candidate without a question. The log keeps this value.
    pub land: bool,
}

/// Progress of the candidates.
#[derive(Debug, Clone)]
pub enum CandidateEvent {
    /// An event of the candidate with this number.
    Candidate(u32, Arc<Envelope>),
    /// An event of the parent.
    Parent(Arc<Envelope>),
}

/// The end of a run of candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateRunEnd {
    /// Its parent.
    pub parent: SessionId,
    /// The candidates, the best first.
    pub candidates: Vec<CandidateReport>,
    /// The best one's report, with all candidates in it.
    pub report: RunReport,
}

/// The end of one candidate; without a report if it failed.
type CandidateResult = (CandidateReport, Option<RunReport>);

impl CandidateOptions<'_> {
    /// Runs all candidates to their ends. Copies with changes are kept. `stop` ends all candidates
    /// cleanly.
    ///
    /// # Errors
    /// Errors of packing the first context, of making copies, and of the parent's log. The failure
    /// of a single candidate is in its report.
    pub async fn run(
        self,
        task: &str,
        stop: &CancellationToken,
        heard: impl FnMut(CandidateEvent) + Send,
    ) -> Result<CandidateRunEnd, AgentError> {
        let settings = RunSettings {
            approver: Approver::Nobody,
            shared_budget: Some(Arc::new(SharedBudget::default())),
            ..self.settings.clone()
        };
        let run =
            CandidateRun { parent: self.parent.clone(), sessions: self.candidates.clone(), land: self.land };
        let mut parent = ParentSession::begin((self.parts)(0), settings.clone(), run, task).await?;
        let ran = self.run_all(&mut parent, &settings, stop, heard).await;
        parent.finish(ran).await
    }

    async fn run_all(
        &self,
        parent: &mut ParentSession,
        settings: &RunSettings,
        stop: &CancellationToken,
        mut heard: impl FnMut(CandidateEvent) + Send,
    ) -> Result<Vec<CandidateResult>, AgentError> {
        let at = parent.fork_position();
        let store = &*self.context.store;
        for (number, child) in (1..).zip(&self.candidates) {
            fork::fork_candidate(store, &self.parent, at, child, number, &self.context.clock).await?;
        }
        parent.session.cx.transcript.emit(Event::CandidatesStarted { sessions: self.candidates.clone() });
        parent.session.cx.transcript.flush().await?;
        let (sender, mut told) = mpsc::unbounded_channel();
        let mut running = FuturesUnordered::new();
        for (number, child) in (1..).zip(&self.candidates) {
            let parts = (self.parts)(number);
            let settings = (self.adjust_settings)(number, settings.clone());
            let one = self.run_candidate(number, child.clone(), parts, settings, stop, sender.clone());
            running.push(async move { (number, child, one.await) });
        }
        drop(sender);
        for envelope in load_events(store, &self.parent, Seq::START, PAGE_ENTRIES).await? {
            heard(CandidateEvent::Parent(Arc::new(envelope)));
        }
        let mut ended: Vec<CandidateResult> = Vec::new();
        let mut trouble = None;
        loop {
            tokio::select! {
                biased;
                Some((number, envelope)) = told.recv() => heard(CandidateEvent::Candidate(number, envelope)),
                lost = parent.lease.renew_until_lost() => return Err(lost.into()),
                one = running.next() => match one {
                    Some((_, _, Ok((candidate, report)))) => ended.push((candidate, Some(report))),
                    Some((number, child, Err(error))) => {
                        // The other candidates continue. The log and the copy of this one have its
                        // work.
                        ended.push((failed_candidate_report(number, child, &error), None));
                        trouble.get_or_insert(error);
                    }
                    None => break,
                },
            }
        }
        match trouble {
            Some(error) if ended.iter().all(|(_, report)| report.is_none()) => return Err(error),
            _ => {}
        }
        ended.sort_by_key(|(candidate, _)| rank_key(candidate));
        Ok(ended)
    }

    /// Runs one candidate in a copy of its own.
    async fn run_candidate(
        &self,
        number: u32,
        child: SessionId,
        parts: SessionParts,
        settings: RunSettings,
        stop: &CancellationToken,
        told: mpsc::UnboundedSender<(u32, Arc<Envelope>)>,
    ) -> Result<(CandidateReport, RunReport), AgentError> {
        let (isolation, session) = (self.context.isolation.clone(), child.clone());
        let copy = run_blocking("copying the project", move || isolation.open_or_create(&session)).await??;
        let session =
            resume(parts.move_into_copy(copy), settings, child.clone(), CutOffPolicy::Continue).await?;
        let mut report = forward_events(&session, number, stop, &told).await?;
        session.close().await;
        drop(session);
        let (extent, after) = keep_copy(self.context, &mut report).await?;
        for envelope in after {
            told.send((number, Arc::new(envelope))).ok();
        }
        Ok((finished_candidate_report(number, &report, extent), report))
    }
}

/// Forwards a session's events until its task has ended.
async fn forward_events(
    session: &SessionHandle,
    number: u32,
    stop: &CancellationToken,
    told: &mpsc::UnboundedSender<(u32, Arc<Envelope>)>,
) -> Result<RunReport, AgentError> {
    let mut shown = session.subscribe(EventFilter::all(), Since::Now);
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                session.interrupt();
            }
            envelope = shown.next() => {
                let Some(envelope) = envelope? else { return Err(AgentError::Ended) };
                // The receiver may have been dropped.
                told.send((number, Arc::clone(&envelope))).ok();
                if let Event::Done { report } = &envelope.event {
                    return Ok((**report).clone());
                }
            }
        }
    }
}

fn finished_candidate_report(number: u32, report: &RunReport, extent: DiffStat) -> CandidateReport {
    CandidateReport {
        number,
        session: report.session.clone(),
        outcome: Some(report.outcome),
        summary: report.summary.clone(),
        files: extent.files as u64,
        added: extent.added as u64,
        removed: extent.removed as u64,
        turns: report.turns,
        cost_usd: report.cost_usd,
        state: report.copy.as_ref().map_or(CopyState::Discarded, |copy| copy.state),
    }
}

/// Orders candidates, best first: verified, then the smallest change by lines,
/// then by files, then the cheapest; one that changed nothing comes after those that changed
/// something.
fn rank_key(candidate: &CandidateReport) -> impl Ord + use<> {
    let verified = candidate.outcome == Some(RunOutcome::Verified);
    let lines = candidate.added.saturating_add(candidate.removed);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "costs are small and positive"
    )]
    let cost = candidate.cost_usd.map_or(u64::MAX, |usd| (usd * 1e9) as u64);
    (Reverse(verified), candidate.files == 0, lines, candidate.files, cost, candidate.number)
}

/// The session that received the task, while its candidates run.
struct ParentSession {
    session: Session,
    lease: Arc<Lease>,
}

impl ParentSession {
    /// Logs the task and packs its first context.
    async fn begin(
        parts: SessionParts,
        settings: RunSettings,
        run: CandidateRun,
        task: &str,
    ) -> Result<Self, AgentError> {
        let id = run.parent.clone();
        let lease =
            Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), parts.clock.clone());
        let first = vec![Record::Candidates(run)];
        let AssembledSession { session, lease, .. } =
            assemble_session(parts, settings, id, State::default(), lease, first);
        let mut parent = Self { session, lease };
        let opened = parent.open_task(task).await;
        if opened.is_err() {
            parent.end_task(RunOutcome::Error).await;
        }
        opened.map(|()| parent)
    }

    async fn open_task(&mut self, task: &str) -> Result<(), AgentError> {
        let inbox = Arc::clone(&self.session.inbox);
        inbox.accept(MessageKind::User, ReminderCategory::General, task.to_owned()).await?;
        self.session.task_opening().run(&CancellationToken::new()).await?;
        self.session.cx.transcript.flush().await
    }

    /// Returns the log position at which the candidates begin.
    fn fork_position(&self) -> Seq {
        self.session.cx.transcript.state().safe
    }

    /// Logs the comparison of the candidates and ends the task.
    async fn finish(
        mut self,
        ran: Result<Vec<CandidateResult>, AgentError>,
    ) -> Result<CandidateRunEnd, AgentError> {
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.end_task(RunOutcome::Error).await;
                return Err(error);
            }
        };
        let candidates: Vec<CandidateReport> = ran.iter().map(|(candidate, _)| candidate.clone()).collect();
        let Some(best) = ran.into_iter().find_map(|(_, report)| report) else {
            self.end_task(RunOutcome::Error).await;
            return Err(AgentError::Ended);
        };
        let report = RunReport { candidates: candidates.clone(), ..best };
        self.session.cx.transcript.emit(Event::CandidatesCompared { candidates: candidates.clone() });
        let parent = self.session.cx.session.clone();
        self.end_task(report.outcome).await;
        Ok(CandidateRunEnd { parent, candidates, report })
    }

    /// Ends the task and releases the session. A failed write is ignored, because the candidates'
    /// logs hold the results.
    async fn end_task(&mut self, outcome: RunOutcome) {
        let transcript = &mut self.session.cx.transcript;
        transcript.record(Record::Ended { outcome, unverified: None });
        transcript.flush().await.ok();
        transcript.log().stop_writing().await;
        self.lease.release().await;
    }
}

/// Returns the candidates of a task in their present state, best first. `session` is the session
/// that received the task, or one of the candidates. Returns `None` for any other session.
///
/// # Errors
/// Errors of the store and of listing copies.
pub async fn compare_candidates(
    store: &dyn Store,
    isolation: &Isolation,
    session: &SessionId,
) -> Result<Option<(SessionId, Vec<CandidateReport>)>, AgentError> {
    let Some(CandidateRun { parent, sessions, .. }) = find_candidate_run(store, session).await? else {
        return Ok(None);
    };
    let (origin, mut candidates) = (Arc::clone(&isolation.origin), Vec::new());
    let looked_for = sessions.clone();
    let (copies, landed) = run_blocking("looking for copies", move || {
        let copies = origin.copies().list()?;
        let mut landed = Vec::new();
        for session in looked_for {
            if origin.copies().is_landed(&session)? {
                landed.push(session);
            }
        }
        Ok::<_, WorkspaceError>((copies, landed))
    })
    .await??;
    let known = read_last_comparison(store, &parent).await?;
    for (number, session) in (1..).zip(sessions) {
        let known = known.iter().find(|candidate| candidate.session == session);
        let kept = copies.iter().any(|copy| copy.session == session);
        let mut candidate = match known {
            Some(known) => known.clone(),
            None => match unfinished_candidate_report(store, number, &session).await {
                // It was never begun, or was deleted.
                Err(AgentError::Store(StoreError::UnknownSession { .. })) => continue,
                found => found?,
            },
        };
        candidate.state = match (kept, landed.contains(&session)) {
            (true, _) => CopyState::Kept,
            (_, true) => CopyState::Landed,
            _ => read_logged_copy_state(store, &session).await?,
        };
        candidates.push(candidate);
    }
    candidates.sort_by_key(rank_key);
    Ok(Some((parent, candidates)))
}

/// Returns the candidate run that a session started or belongs to, or `None` for any other session.
///
/// # Errors
/// Errors of the store.
pub async fn find_candidate_run(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<CandidateRun>, AgentError> {
    let first = store.read_records(session, Seq::START, 1).await?;
    let run = match first.first().and_then(record_of) {
        Some(Record::Candidates(run)) => run,
        _ => return Ok(None),
    };
    // Any other fork of these sessions begins with the same entry.
    let is_of_it = run.parent == *session || run.sessions.contains(session);
    Ok(is_of_it.then_some(run))
}

/// Returns the sessions of the candidates that a session started.
///
/// # Errors
/// Errors of the store.
pub async fn list_started_candidates(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<Vec<SessionId>>, AgentError> {
    let run = find_candidate_run(store, session).await?;
    Ok(run.filter(|run| run.parent == *session).map(|run| run.sessions))
}

async fn read_last_comparison(
    store: &dyn Store,
    parent: &SessionId,
) -> Result<Vec<CandidateReport>, AgentError> {
    let first = match load_events(store, parent, Seq::START, PAGE_ENTRIES).await {
        // It was deleted.
        Err(AgentError::Store(StoreError::UnknownSession { .. })) => return Ok(Vec::new()),
        found => found?,
    };
    let compared = first.into_iter().rev().find_map(|envelope| match envelope.event {
        Event::CandidatesCompared { candidates } => Some(candidates),
        _ => None,
    });
    Ok(compared.unwrap_or_default())
}

/// Returns the report of a candidate that failed.
fn failed_candidate_report(number: u32, session: &SessionId, error: &AgentError) -> CandidateReport {
    CandidateReport {
        number,
        session: session.clone(),
        outcome: Some(RunOutcome::Error),
        summary: error.to_string(),
        files: 0,
        added: 0,
        removed: 0,
        turns: 0,
        cost_usd: None,
        state: CopyState::Kept,
    }
}

/// Returns the report of a candidate that was cut off, from its own log.
async fn unfinished_candidate_report(
    store: &dyn Store,
    number: u32,
    session: &SessionId,
) -> Result<CandidateReport, AgentError> {
    let report = load_last_report(store, session).await?;
    let summary = match &report {
        Some(report) => report.summary.clone(),
        None => format!("cut off; finish it with: jm resume {session}"),
    };
    let diff = report.as_ref().map(|report| report.diff.as_str()).unwrap_or_default();
    let count = |sign: char, head: &str| {
        let lines = diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head));
        lines.count() as u64
    };
    Ok(CandidateReport {
        number,
        session: session.clone(),
        outcome: report.as_ref().map(|report| report.outcome),
        summary,
        files: report.as_ref().map_or(0, |report| report.changes.len() as u64),
        added: count('+', "+++"),
        removed: count('-', "---"),
        turns: report.as_ref().map_or(0, |report| report.turns),
        cost_usd: report.as_ref().and_then(|report| report.cost_usd),
        state: CopyState::Kept,
    })
}

/// Returns the state of the work of a session without a copy.
async fn read_logged_copy_state(store: &dyn Store, session: &SessionId) -> Result<CopyState, AgentError> {
    let (mut after, mut state) = (Seq::START, CopyState::Discarded);
    loop {
        let page = match load_events(store, session, after, PAGE_ENTRIES).await {
            Err(AgentError::Store(StoreError::UnknownSession { .. })) => return Ok(state),
            page => page?,
        };
        let Some(last) = page.last().and_then(|envelope| envelope.seq) else { return Ok(state) };
        after = last;
        for envelope in page {
            match envelope.event {
                Event::Landed { copy: Some(_), .. } => state = CopyState::Landed,
                Event::CopyDiscarded { .. } => state = CopyState::Discarded,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::UnixMillis;

    use super::*;

    fn candidate(
        number: u32,
        outcome: RunOutcome,
        files: u64,
        added: u64,
        cost: Option<f64>,
    ) -> CandidateReport {
        CandidateReport {
            number,
            session: SessionId::new(UnixMillis(0), u64::from(number)),
            outcome: Some(outcome),
            summary: String::new(),
            files,
            added,
            removed: 1,
            turns: 1,
            cost_usd: cost,
            state: CopyState::Kept,
        }
    }

    #[test]
    fn verified_comes_first_then_the_smallest_then_the_cheapest() {
        let mut all = [
            candidate(1, RunOutcome::ChecksFail, 1, 1, Some(0.1)),
            candidate(2, RunOutcome::Verified, 2, 30, Some(0.1)),
            candidate(3, RunOutcome::Verified, 1, 30, None),
            candidate(4, RunOutcome::Verified, 1, 30, Some(0.2)),
            candidate(5, RunOutcome::Verified, 9, 3, Some(0.9)),
            candidate(6, RunOutcome::Unverified, 0, 0, Some(0.0)),
            candidate(7, RunOutcome::Verified, 1, 30, Some(0.2)),
        ];
        all.sort_by_key(rank_key);
        let order: Vec<u32> = all.iter().map(|one| one.number).collect();
        assert_eq!(order, [5, 4, 7, 3, 2, 1, 6]);
    }
}
