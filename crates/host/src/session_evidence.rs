//! The evidence of a session: all checks of all rounds, and if the verified tree is still the
//! project's.

use std::path::Path;

use journeyman_protocol::{
    CheckOutcome, ContentHash, CopyState, Envelope, Event, Evidence, HonestyFinding, RunOutcome, RunReport,
    Seq, SessionId,
};
use journeyman_store::SessionSummary;
use journeyman_terminal::Paint;
use serde::Serialize;

use crate::HostError;
use crate::events::read_events;
use crate::format::{format_seconds, preview, printable};
use crate::state::{StateDirs, format_minute};

/// Digits of a tree's hash that people see.
const SHORT_HASH_DIGITS: usize = 10;

/// All checks of a session.
#[derive(Debug, Clone, Serialize)]
pub struct SessionEvidence {
    /// The session.
    pub session: SessionId,
    /// The tasks in order, of which the last one's result holds.
    pub tasks: Vec<TaskEvidence>,
    /// The tree as it is where the session worked, and if the proof holds for it.
    pub proof: ProofState,
}

/// The checks of one task.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TaskEvidence {
    /// The task as given.
    pub task: String,
    /// The rounds in order.
    pub rounds: Vec<EvidenceRound>,
    /// The end; absent while the task runs.
    #[serde(skip)]
    pub report: Option<Box<RunReport>>,
}

/// One round of checks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EvidenceRound {
    /// The number of the round in its task.
    pub round: u32,
    /// True if all checks that ran passed, once that is known.
    pub passed: Option<bool>,
    /// True if the failures went back to the model.
    pub fed_back: bool,
    /// True for the last round, which decides.
    pub is_final: bool,
    /// Where the change makes tests or checks say less.
    pub findings: Vec<HonestyFinding>,
    /// The checks.
    pub checks: Vec<CheckEvidence>,
}

/// One check, and the place of its result in the session's log.
#[derive(Debug, Clone, Serialize)]
pub struct CheckEvidence {
    /// The entry of the log.
    pub seq: Option<Seq>,
    /// The evidence.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Compares the tree that a session verified with the present tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProofState {
    /// The session verified nothing.
    None,
    /// The tree is the one that was verified.
    Holds {
        /// The tree.
        tree: ContentHash,
    },
    /// The tree has changed since, so the proof says nothing of it.
    TreeChanged {
        /// The tree that was verified.
        verified: ContentHash,
        /// The tree as it is.
        now: ContentHash,
    },
    /// The work is in the session's own copy, or the tree can't be looked at.
    Unknown,
}

/// Describes the project at `root` if it differs from the tree that a report's checks verified.
#[must_use]
pub fn describe_changed_tree(report: &RunReport, state: &StateDirs, root: &Path) -> Option<String> {
    let proof = ProofState::compare_to_project(report, state, root);
    proof.describe().filter(|_| matches!(proof, ProofState::TreeChanged { .. }))
}

impl ProofState {
    /// Compares the verified tree of a report with the project at `root`.
    #[must_use]
    pub fn compare_to_project(report: &RunReport, state: &StateDirs, root: &Path) -> Self {
        if report.outcome != RunOutcome::Verified {
            return Self::None;
        }
        let is_kept = report.copy.as_ref().is_some_and(|copy| copy.state == CopyState::Kept);
        let Some(verified) = report.tree.filter(|_| !is_kept) else { return Self::Unknown };
        let workspace = state.open_workspace(root).ok();
        match workspace.and_then(|workspace| workspace.history().tree_hash().ok()) {
            Some(now) if now == verified => Self::Holds { tree: now },
            Some(now) => Self::TreeChanged { verified, now },
            None => Self::Unknown,
        }
    }

    /// Returns a sentence for people; `None` where nothing was verified.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Holds { tree } => {
                Some(format!("verified, and the files are as they were then (tree {})", short_hash(tree)))
            }
            Self::TreeChanged { verified, now } => Some(format!(
                "verified, but the tree has changed since (tree {} then, {} now); run the checks again to know",
                short_hash(verified),
                short_hash(now)
            )),
            Self::Unknown => {
                Some("verified; the files of now were not compared with those of then".to_owned())
            }
        }
    }
}

impl SessionEvidence {
    /// Reads the checks of a session from its log.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the log can't be read.
    pub async fn read(state: &StateDirs, session: &SessionSummary) -> Result<Self, HostError> {
        let mut tasks: Vec<TaskEvidence> = Vec::new();
        let mut add = |envelope: &Envelope| {
            apply_event(&mut tasks, envelope);
            Ok(())
        };
        read_events(state, &session.id, Seq::START, &mut add).await?;
        for task in &mut tasks {
            if let Some(last) = task.rounds.last_mut() {
                last.is_final = true;
            }
        }
        // A task that runs or was cut off has proved nothing yet.
        let report = tasks.iter().rev().find_map(|task| task.report.as_deref());
        let proof = report.map_or(ProofState::None, |report| {
            ProofState::compare_to_project(report, state, Path::new(&session.root))
        });
        Ok(Self { session: session.id.clone(), tasks, proof })
    }

    /// Returns the report of the last task that ended.
    #[must_use]
    pub fn last_report(&self) -> Option<(&TaskEvidence, &RunReport)> {
        self.tasks.iter().rev().find_map(|task| Some((task, task.report.as_deref()?)))
    }

    /// Formats the checks as a table, a line each.
    #[must_use]
    pub fn to_table(&self, paint: Paint) -> String {
        let mut out = String::new();
        for task in self.tasks.iter().filter(|task| !task.rounds.is_empty()) {
            push_line(&mut out, &paint.bold(&format!("task: {}", preview(&task.task))));
            for round in &task.rounds {
                let end = match (round.is_final, round.fed_back) {
                    (_, true) => ", its failures went back to the model",
                    (true, false) => ", the final one",
                    (false, false) => "",
                };
                push_line(&mut out, &format!("round {}{end}", round.round));
                for entry in &round.checks {
                    push_line(&mut out, &format!("  {}", format_entry(entry, paint)));
                }
                for finding in &round.findings {
                    push_line(&mut out, &format!("  {} {}", paint.yellow("finding"), printable(finding)));
                }
            }
        }
        if out.is_empty() {
            push_line(&mut out, "no check ran in this session");
        }
        if let Some(proof) = self.proof.describe() {
            push_line(&mut out, &proof);
        }
        if self.tasks.iter().any(|task| !task.rounds.is_empty()) {
            push_line(&mut out, &paint.dim(&format!("outputs: jm show {} --evidence --json", self.session)));
        }
        out
    }
}

fn apply_event(tasks: &mut Vec<TaskEvidence>, envelope: &Envelope) {
    if let Event::RunStarted { task, .. } = &envelope.event {
        tasks.push(TaskEvidence { task: task.clone(), ..TaskEvidence::default() });
        return;
    }
    if tasks.is_empty() {
        tasks.push(TaskEvidence::default());
    }
    let Some(task) = tasks.last_mut() else { return };
    match &envelope.event {
        Event::VerifyStarted { round, .. } => {
            task.rounds.push(EvidenceRound { round: *round, ..EvidenceRound::default() });
        }
        Event::CheckResult { evidence } => {
            if task.rounds.is_empty() {
                task.rounds.push(EvidenceRound::default());
            }
            if let Some(round) = task.rounds.last_mut() {
                // A result whose failures were looked at again comes in the place of the first.
                let is_same = |entry: &CheckEvidence| {
                    let known = &entry.evidence;
                    known.started.is_some()
                        && known.started == evidence.started
                        && (&known.command, &known.directory) == (&evidence.command, &evidence.directory)
                };
                round.checks.retain(|entry| !is_same(entry));
                round.checks.push(CheckEvidence { seq: envelope.seq, evidence: evidence.clone() });
            }
        }
        Event::HonestyChecked { findings } => {
            if let Some(round) = task.rounds.last_mut() {
                round.findings.clone_from(findings);
            }
        }
        Event::VerifyFinished { passed, fed_back, .. } => {
            if let Some(round) = task.rounds.last_mut() {
                (round.passed, round.fed_back) = (Some(*passed), *fed_back);
            }
        }
        Event::Done { report } => task.report = Some(report.clone()),
        event => {
            if let Some(report) = &mut task.report {
                apply_landing(report, event);
            }
        }
    }
}

/// Updates a report with the landing of its work, which follows the end of the task.
pub fn apply_landing(report: &mut RunReport, event: &Event) {
    if let Event::Landed { copy: Some(copy), changes } = event {
        report.copy = Some(copy.clone());
        if report.undo.is_none() && !changes.is_empty() {
            report.undo = Some(format!("jm undo {}", report.session));
        }
    }
}

/// Returns the beginning of a hash.
pub(crate) fn short_hash(hash: &ContentHash) -> String {
    hash.to_string().chars().take(SHORT_HASH_DIGITS).collect()
}

fn format_entry(entry: &CheckEvidence, paint: Paint) -> String {
    let one = &entry.evidence;
    let result = match &one.outcome {
        CheckOutcome::Passed => paint.green("passed "),
        CheckOutcome::Failed { .. } => paint.red("failed "),
        CheckOutcome::NotRun { .. } => paint.yellow("not run"),
    };
    let mut out = format!("{result}  {:<8}  {}", one.kind.to_string(), printable(&one.command));
    if let Some(directory) = &one.directory {
        out.push_str(&format!(" (in {directory})"));
    }
    let mut notes = Vec::new();
    match &one.outcome {
        CheckOutcome::Failed { reason, .. } | CheckOutcome::NotRun { reason } => {
            notes.push(printable(reason))
        }
        CheckOutcome::Passed => {}
    }
    if let Some(tests) = one.tests {
        notes.push(describe_tests(tests));
    }
    if !matches!(one.outcome, CheckOutcome::NotRun { .. }) {
        notes.push(format_seconds(one.duration_ms));
    }
    notes.extend(one.started.map(format_minute));
    notes.extend(one.tree.map(|tree| format!("tree {}", short_hash(&tree))));
    if one.original_tests {
        notes.push("with the original tests".to_owned());
    }
    if one.affected_only {
        notes.push("affected tests only".to_owned());
    }
    if !one.flaky.is_empty() {
        notes.push(format!("flaky: {}", printable(&one.flaky.join(", "))));
    }
    notes.extend(entry.seq.map(|seq| format!("entry {}", seq.0)));
    format!("{out}  {}", paint.dim(&notes.join(", ")))
}

/// Says how many tests ran.
pub(crate) fn describe_tests(tests: journeyman_protocol::TestCounts) -> String {
    let journeyman_protocol::TestCounts { passed, failed, skipped } = tests;
    let mut parts = vec![format!("{passed} passed")];
    for (count, word) in [(failed, "failed"), (skipped, "skipped")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}
