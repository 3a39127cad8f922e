//! Orders mutations, and derives the report from their outcomes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use journeyman_protocol::{MutationKind, Strength, StrengthReport, UntestedLine};

use super::mutant::{ChangedStatement, FileMutants, Mutant};

/// Minimum share of the mutations that tests have to notice, in per cent. Some mutations change
/// nothing that a test could see, and no rule finds all of these.
const MIN_NOTICED_PERCENT: u32 = 90;
/// Maximum number of survivors, and of untested lines, in a report.
const MAX_REPORTED: usize = 20;

/// The outcome of the tests on a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOutcome {
    /// A test failed, or hung.
    Noticed,
    /// All tests passed.
    Survived,
    /// The mutation doesn't build, so no test ran.
    Invalid,
}

/// A changed file of the product with its mutations.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    /// The text after the change.
    pub text: String,
    /// Its changed statements and mutations.
    pub found: FileMutants,
}

/// The execution of a statement by tests, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementCoverage {
    Unknown,
    Run,
    NotRun,
    /// No statement can be put before it, so that it can't be known.
    Unknowable,
}

/// A mutation that waits for its trial, or is being tried.
#[derive(Debug, Clone)]
pub struct PlannedMutant {
    file: usize,
    statement: Option<usize>,
    /// The index of the survivor that this mutation is a probe of.
    probe_of: Option<usize>,
    /// The mutation.
    pub mutant: Mutant,
}

/// The mutations of a change in the order in which they are tried. Mutations of statements that no
/// test runs are left out. If the first mutation of a statement survives, the plan finds out
/// whether any test runs that statement.
#[derive(Debug)]
pub struct MutationPlan {
    files: Vec<PlannedFile>,
    queue: VecDeque<PlannedMutant>,
    coverage: Vec<Vec<StatementCoverage>>,
    stops_queued: Vec<Vec<bool>>,
    survivors: Vec<PlannedMutant>,
    /// The indices of survivors that tests reach without any difference.
    indifferent: BTreeSet<usize>,
    /// The byte ranges of mutations that tests noticed, by file.
    noticed: Vec<(usize, Range<usize>)>,
    report: StrengthReport,
}

impl MutationPlan {
    /// Orders the mutations of all files.
    #[must_use]
    pub fn new(files: Vec<PlannedFile>) -> Self {
        let known = |statement: &ChangedStatement| match statement.stop {
            Some(_) => StatementCoverage::Unknown,
            None => StatementCoverage::Unknowable,
        };
        let coverage: Vec<Vec<StatementCoverage>> =
            files.iter().map(|file| file.found.statements.iter().map(known).collect()).collect();
        let stops_queued = coverage.iter().map(|all| vec![false; all.len()]).collect();
        let statements = coverage.iter().map(Vec::len).sum::<usize>();
        let report = StrengthReport { statements: to_u32(statements), ..StrengthReport::default() };
        let queue = order_mutants(&files);
        let mut plan = Self {
            files,
            queue,
            coverage,
            stops_queued,
            survivors: Vec::new(),
            indifferent: BTreeSet::new(),
            noticed: Vec::new(),
            report,
        };
        // Last, when most statements are known to run.
        for (file, statement) in plan.statements_without_mutants() {
            plan.queue_reachability_probe(file, statement, false);
        }
        plan
    }

    /// Returns true if there is nothing to try.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the next mutation to try, with the text that it changes.
    pub fn next_mutant(&mut self) -> Option<(PlannedMutant, &str)> {
        loop {
            let planned = self.queue.pop_front()?;
            let coverage = planned.statement.map(|statement| self.coverage_of(planned.file, statement));
            let stops = planned.mutant.kind == MutationKind::Stop;
            let probes = planned.probe_of.is_some();
            match coverage {
                Some(StatementCoverage::NotRun) if !stops => self.report.left_out += 1,
                Some(StatementCoverage::NotRun) => {}
                Some(StatementCoverage::Run) if stops && !probes => {}
                _ => {
                    let text = self.files.get(planned.file).map_or("", |file| file.text.as_str());
                    return Some((planned, text));
                }
            }
        }
    }

    /// Records the outcome of the tests on a mutation.
    pub fn record_outcome(&mut self, planned: PlannedMutant, outcome: TrialOutcome) {
        if let Some(survivor) = planned.probe_of {
            if outcome == TrialOutcome::Noticed {
                self.indifferent.insert(survivor);
            }
            return;
        }
        let (file, statement) = (planned.file, planned.statement);
        let stops = planned.mutant.kind == MutationKind::Stop;
        if let (false, TrialOutcome::Survived, Some(probe)) = (stops, outcome, &planned.mutant.probe) {
            let (mutant, probe_of) = (probe.as_ref().clone(), Some(self.survivors.len()));
            self.queue.push_front(PlannedMutant { file, statement, probe_of, mutant });
        }
        match (stops, outcome, statement) {
            (true, TrialOutcome::Survived, Some(statement)) => {
                self.set_coverage(file, statement, StatementCoverage::NotRun)
            }
            (true, TrialOutcome::Invalid, Some(statement)) => {
                self.set_coverage(file, statement, StatementCoverage::Unknowable)
            }
            (_, TrialOutcome::Noticed, Some(statement)) => {
                self.set_coverage(file, statement, StatementCoverage::Run)
            }
            (false, TrialOutcome::Survived, Some(statement)) => {
                self.queue_reachability_probe(file, statement, true)
            }
            _ => {}
        }
        if stops {
            return;
        }
        self.report.tried += 1;
        match outcome {
            TrialOutcome::Noticed => {
                self.report.noticed += 1;
                self.noticed.push((file, planned.mutant.range));
            }
            TrialOutcome::Invalid => self.report.invalid += 1,
            TrialOutcome::Survived => self.survivors.push(planned),
        }
    }

    /// Returns the report when no more mutations are tried. `limit` is the reason why not all were
    /// tried.
    ///
    /// If tests run the body of a guard clause and notice its mutations, and the guard may as well
    /// never be true, the code after it has the same effect: mutations of its bounds change
    /// nothing, and don't count. Neither does a survivor that a test reaches where it could make a
    /// difference.
    #[must_use]
    pub fn into_report(mut self, limit: Option<String>) -> StrengthReport {
        let left = self.queue.iter().filter(|planned| planned.mutant.kind != MutationKind::Stop);
        self.report.left_out = self.report.left_out.saturating_add(to_u32(left.count()));
        let all = || self.coverage.iter().flatten();
        self.report.run_statements = to_u32(all().filter(|it| **it == StatementCoverage::Run).count());
        let survivors = self.survivors.len();
        let indifferent = std::mem::take(&mut self.indifferent);
        let mut numbers = 0..;
        self.survivors.retain(|_| numbers.next().is_none_or(|number| !indifferent.contains(&number)));
        self.leave_out_redundant_guards();
        let left_out = to_u32(survivors - self.survivors.len());
        self.report.tried = self.report.tried.saturating_sub(left_out);
        self.report.left_out = self.report.left_out.saturating_add(left_out);
        let all = || self.coverage.iter().flatten();
        let covered = all().all(|it| matches!(it, StatementCoverage::Run | StatementCoverage::Unknowable));
        self.report.untested = self.untested_lines();
        let noticed = self.report.noticed;
        let valid = self.report.tried.saturating_sub(self.report.invalid);
        let notices = noticed > 0 && noticed.saturating_mul(100) >= valid.saturating_mul(MIN_NOTICED_PERCENT);
        self.report.strength = match (covered, notices) {
            (true, true) => Strength::Notices,
            (true, false) if self.report.run_statements > 0 => Strength::Covers,
            _ => Strength::Ran,
        };
        // A survivor that no test runs is reported by its line alone.
        let survivors = self.survivors.iter().filter(|planned| {
            planned.statement.is_none_or(|it| self.coverage_of(planned.file, it) != StatementCoverage::NotRun)
        });
        let shown = survivors.filter_map(|planned| {
            let text = &self.files.get(planned.file)?.text;
            Some(planned.mutant.to_survivor(text))
        });
        self.report.survivors = shown.take(MAX_REPORTED).collect();
        self.report.limit = limit;
        self.report
    }

    /// Removes the survivors in the conditions of guard clauses that make no difference.
    fn leave_out_redundant_guards(&mut self) {
        let is_noticed = |file: usize, body: &Range<usize>| {
            self.noticed.iter().any(|(of, at)| *of == file && body.start <= at.start && at.end <= body.end)
        };
        let redundant: Vec<(usize, Range<usize>)> = self
            .survivors
            .iter()
            .filter_map(|planned| {
                Some((planned.file, planned.mutant.range.clone(), planned.mutant.disables.as_ref()?))
            })
            .filter(|(file, _, body)| is_noticed(*file, body))
            .map(|(file, condition, _)| (file, condition))
            .collect();
        let is_within = |planned: &PlannedMutant| {
            let at = &planned.mutant.range;
            let widens = planned.mutant.kind == MutationKind::Condition && planned.mutant.disables.is_none();
            let mut conditions = redundant.iter().filter(|(file, _)| *file == planned.file);
            !widens && conditions.any(|(_, condition)| condition.start <= at.start && at.end <= condition.end)
        };
        self.survivors.retain(|planned| !is_within(planned));
    }

    /// Returns the mutations that no test noticed, the most telling first.
    pub fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        self.survivors.iter().map(|planned| &planned.mutant)
    }

    fn coverage_of(&self, file: usize, statement: usize) -> StatementCoverage {
        let known = self.coverage.get(file).and_then(|all| all.get(statement));
        known.copied().unwrap_or(StatementCoverage::Unknowable)
    }

    fn statement(&self, file: usize, statement: usize) -> Option<&ChangedStatement> {
        self.files.get(file)?.found.statements.get(statement)
    }

    fn statements_without_mutants(&self) -> Vec<(usize, usize)> {
        let has_mutants = |file: usize, statement: usize| {
            self.queue.iter().any(|planned| planned.file == file && planned.statement == Some(statement))
        };
        let all =
            self.coverage.iter().enumerate().flat_map(|(file, all)| (0..all.len()).map(move |it| (file, it)));
        // From the last one on: those before it in its block run too.
        all.filter(|(file, statement)| !has_mutants(*file, *statement)).rev().collect()
    }

    /// Queues the mutation that finds out whether a test runs a statement, once, unless that is
    /// known.
    fn queue_reachability_probe(&mut self, file: usize, statement: usize, first: bool) {
        if self.coverage_of(file, statement) != StatementCoverage::Unknown {
            return;
        }
        let asked = self.stops_queued.get_mut(file).and_then(|all| all.get_mut(statement));
        if asked.is_none_or(|asked| std::mem::replace(asked, true)) {
            return;
        }
        let Some(mutant) = self.statement(file, statement).and_then(|it| it.stop.clone()) else { return };
        let planned = PlannedMutant { file, statement: Some(statement), probe_of: None, mutant };
        if first { self.queue.push_front(planned) } else { self.queue.push_back(planned) }
    }

    /// Records whether a statement runs, and what follows for others: the statements around it and
    /// those before it in its block run too; if it doesn't run, neither do those in it and after
    /// it.
    fn set_coverage(&mut self, file: usize, statement: usize, coverage: StatementCoverage) {
        if let Some(known) = self.coverage.get_mut(file).and_then(|all| all.get_mut(statement)) {
            *known = coverage;
        }
        let Some(this) = self.statement(file, statement) else { return };
        let (block, around) = (this.block, this.around);
        let Some(found) = self.files.get(file).map(|file| &file.found.statements) else { return };
        let mut implied: Vec<usize> = Vec::new();
        for (at, other) in found.iter().enumerate() {
            let implies = match coverage {
                StatementCoverage::Run => other.block == block && at < statement || Some(at) == around,
                StatementCoverage::NotRun => {
                    other.block == block && at > statement || other.around == Some(statement)
                }
                StatementCoverage::Unknown | StatementCoverage::Unknowable => false,
            };
            if implies && self.coverage_of(file, at) == StatementCoverage::Unknown {
                implied.push(at);
            }
        }
        for at in implied {
            self.set_coverage(file, at, coverage);
        }
    }

    fn untested_lines(&self) -> Vec<UntestedLine> {
        let mut untested = Vec::new();
        for (planned, known) in self.files.iter().zip(&self.coverage) {
            let not_run = planned.found.statements.iter().zip(known);
            for (statement, _) in not_run.filter(|(_, known)| **known == StatementCoverage::NotRun) {
                let Some(path) = statement.stop.as_ref().map(|stop| stop.path.clone()) else { continue };
                let line = UntestedLine { path, line: statement.line, function: statement.function.clone() };
                if untested.len() < MAX_REPORTED && untested.last() != Some(&line) {
                    untested.push(line);
                }
            }
        }
        untested
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the rank in which kinds are tried: first the kinds that a weak test most often misses.
fn kind_rank(kind: MutationKind) -> u8 {
    match kind {
        MutationKind::Boundary => 0,
        MutationKind::Logic => 1,
        MutationKind::Condition | MutationKind::Range | MutationKind::Call => 2,
        MutationKind::Constant | MutationKind::Arithmetic => 3,
        MutationKind::ErrorHandling | MutationKind::Removal => 4,
        MutationKind::Return | MutationKind::Text => 5,
        MutationKind::Branch | MutationKind::Arguments => 6,
        MutationKind::Stop => 7,
    }
}

/// Orders the mutations in rounds: in each, every statement contributes its next most telling one.
/// Within a round the first statement of each function comes before the second of any.
fn order_mutants(files: &[PlannedFile]) -> VecDeque<PlannedMutant> {
    let mut keyed = Vec::new();
    for (file, planned) in files.iter().enumerate() {
        let mut in_function: BTreeMap<Option<&str>, Vec<Option<usize>>> = BTreeMap::new();
        let mut of_statement: BTreeMap<Option<usize>, Vec<(u8, usize)>> = BTreeMap::new();
        for (at, mutant) in planned.found.mutants.iter().enumerate() {
            of_statement.entry(mutant.statement).or_default().push((kind_rank(mutant.kind), at));
            let known = in_function.entry(mutant.function.as_deref()).or_default();
            if !known.contains(&mutant.statement) {
                known.push(mutant.statement);
            }
        }
        for ranked in of_statement.values_mut() {
            ranked.sort_unstable();
            for (round, (_, at)) in ranked.iter().enumerate() {
                let Some(mutant) = planned.found.mutants.get(*at) else { continue };
                let siblings = in_function.get(&mutant.function.as_deref());
                let place = siblings.and_then(|all| all.iter().position(|it| *it == mutant.statement));
                let job = PlannedMutant {
                    file,
                    statement: mutant.statement,
                    probe_of: None,
                    mutant: mutant.clone(),
                };
                keyed.push(((round, place.unwrap_or(0), file, *at), job));
            }
        }
    }
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, job)| job).collect()
}
