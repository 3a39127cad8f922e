//! Gathering candidates.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use journeyman_index::Snapshot;
use journeyman_index::history::History;
use journeyman_index::overview::{self, MAX_FOUND_FILES};
use journeyman_index::query::{FileHit, Query, QueryContext, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{ContextCategory, RelPath};

use super::indexed_files::IndexedFileReader;
use super::likelihood::{
    DEFINITION_COEFFICIENT, FileFeatures, PassageFeatures, USE_COEFFICIENT, pairs_factor,
};
use super::names::code_names;
use super::sources::ContextSources;
use super::task_terms::{FoundTerms, TaskTerms, TermRarity, code_bytes};
use crate::line_commits::short_id;
use crate::outlines::{FileOutline, Signature};
use crate::packing::{CandidateReason, ContextCandidate, Texts};

/// Words of a later message from which it is worth a search.
const MIN_TERMS: usize = 5;
/// Files that score a smaller share of the best one's are no candidates.
const MIN_SCORE_SHARE: f64 = 0.15;
/// Maximum number of outlined files.
const MAX_OUTLINED_FILES: usize = 16;
/// Factor for tests and documents beside source. Measured: 0.2 takes 4 % more tokens for the same
/// lines of fixes.
const SECONDARY_FACTOR: f64 = 0.1;
/// Factor for other files than code.
const NON_CODE_FACTOR: f64 = 0.2;
/// Maximum definitions that a name may mean, and maximum uses of each distance.
const MAX_DEFINITIONS: usize = 5;
const MAX_USES: usize = 12;
/// Maximum references to a name that are looked at.
const MAX_REFERENCES: usize = 400;
/// Files of the search whose dependencies and tests are candidates, and how many of each.
const MAX_CENTRAL_FILES: usize = 3;
const MAX_NEAR_FILES: usize = 6;
const MAX_TEST_FILES: usize = 4;
/// Shares of the best score that stand for being at distance 1 and 2 of such a file.
const NEAR_FACTORS: [f64; 2] = [0.4, 0.2];
/// Factor for the tests of a file beside that file.
const TEST_FACTOR: f64 = 0.075;
/// Maximum commits, of so many of the best files, so many of each.
const MAX_COMMITS: usize = 8;
const MAX_FILES_WITH_COMMITS: usize = 5;
const MAX_COMMITS_OF_FILE: usize = 2;

/// Data of an index for a task.
#[derive(Debug, Clone, Default)]
pub struct GatheredContext {
    /// Files with how much is for them, 0 to 1, the best first.
    pub files: Vec<(RelPath, f64)>,
    /// Outlines of the best files, best first.
    pub outlines: Vec<FileOutline>,
    /// Candidates for excerpts.
    pub candidates: Vec<ContextCandidate>,
    /// The texts of their files.
    pub texts: Texts,
    /// Commits that changed the best files, newest first for each.
    pub commits: Vec<CommitNote>,
}

impl GatheredContext {
    /// Replaces the subjects of commits, such as by ones without secrets. They are cut afterwards:
    /// half a secret is one too.
    #[must_use]
    pub fn map_subjects(mut self, replace: impl Fn(&str) -> Cow<'_, str>) -> Self {
        for commit in &mut self.commits {
            commit.subject = replace(&commit.subject).into_owned();
        }
        self
    }
}

/// A commit, as the context names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitNote {
    /// The beginning of its id.
    pub id: String,
    /// Author time, in milliseconds since 1970.
    pub time: u64,
    /// The first line of its message.
    pub subject: String,
    /// The file for which it was found.
    pub path: RelPath,
}

/// Returns true if a message says enough for a search: a name of code, or more than a few words.
/// "Yes, go on" would find anything.
#[must_use]
pub fn is_worth_gathering(message: &str) -> bool {
    Query::new(message, &mut Tokenizer::new()).terms.len() >= MIN_TERMS || !code_names(message).is_empty()
}

/// Gathers candidates for a task. Returns `None` if the search finds nothing.
#[must_use]
pub fn gather(task: &str, sources: &ContextSources<'_>) -> Option<GatheredContext> {
    let query = Query::new(task, &mut Tokenizer::new());
    let mut searcher = Searcher::new();
    let answer =
        searcher.search(sources.snapshot, sources.history, &query, QueryContext::default(), MAX_FOUND_FILES);
    let asked = overview::score_shares(&answer);
    if asked.is_empty() {
        return None;
    }
    let mut gathering = Gatherer {
        sources,
        searcher,
        reader: IndexedFileReader::new(sources),
        names: BTreeMap::new(),
        files: Vec::new(),
        candidates: Vec::new(),
    };
    gathering.find_name_places(task);
    gathering.weigh_found(task, &answer.files, &asked);
    gathering.weigh_neighbours(&asked);
    gathering.weigh_named(asked.len());
    gathering.add_candidates(task);
    let (files, outlines) = gathering.outline_best_files(task, &asked);
    let commits_of = |history| commits_of_hits(history, &answer.files, sources.may_show);
    let commits = sources.history.map(commits_of).unwrap_or_default();
    let Gatherer { candidates, reader, .. } = gathering;
    Some(GatheredContext { files, outlines, candidates, texts: reader.texts, commits })
}

struct Gatherer<'a> {
    sources: &'a ContextSources<'a>,
    searcher: Searcher,
    reader: IndexedFileReader<'a>,
    /// Places of the task's names, by file.
    names: BTreeMap<u32, Vec<NamePlace>>,
    /// Files whose passages are candidates, each once.
    files: Vec<WeighedFile>,
    candidates: Vec<ContextCandidate>,
}

/// A place of a name that the task has.
struct NamePlace {
    lines: Range<u32>,
    reason: CandidateReason,
}

impl NamePlace {
    /// Returns its coefficient in the weight of a passage.
    fn coefficient(&self) -> f64 {
        match self.reason {
            CandidateReason::Defines { .. } => DEFINITION_COEFFICIENT,
            CandidateReason::Uses { distance: 1, .. } => USE_COEFFICIENT,
            _ => 0.0,
        }
    }
}

/// A file whose passages are candidates.
struct WeighedFile {
    file: u32,
    category: ContextCategory,
    /// Its weight among all files, without what its text has of the task.
    weight: f64,
    /// The reason for passages without a name of the task; `None` if those are no candidates.
    reason: Option<CandidateReason>,
}

/// A passage of a file, with what it has of the task.
struct Passage {
    lines: Range<u32>,
    /// Signs of it; pairs once it is known how rare each is.
    features: PassageFeatures,
    found: FoundTerms,
    /// The best reason of the names in it.
    reason: Option<CandidateReason>,
}

/// A file whose passages were read.
struct ReadFile {
    path: RelPath,
    from: WeighedFile,
    passages: Vec<Passage>,
}

impl ReadFile {
    /// Returns the greatest rarity of a passage's pairs.
    fn best_pairs(&self) -> f64 {
        self.passages.iter().map(|passage| passage.features.pairs).fold(0.0, f64::max)
    }
}

impl Gatherer<'_> {
    /// Weighs the files that the search found.
    fn weigh_found(&mut self, task: &str, hits: &[FileHit], asked: &[(u32, f64)]) {
        let mut place = 0;
        for (hit, (file, share)) in hits.iter().zip(asked) {
            if *share < MIN_SCORE_SHARE {
                break;
            }
            let Some((category, factor)) = self.purpose(*file) else { continue };
            let name = hit.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let features = FileFeatures {
                hit: Some(hit),
                share: *share,
                place,
                defines: self.defines_name(*file),
                named: std::str::from_utf8(name).is_ok_and(|name| has_file_name(task, name)),
            };
            let weight = factor * features.weight();
            self.files.push(WeighedFile {
                file: *file,
                category,
                weight,
                reason: Some(CandidateReason::Found),
            });
            place += usize::from(category == ContextCategory::RelatedCode);
        }
    }

    /// Returns true if a file defines a name that the task has.
    fn defines_name(&self, file: u32) -> bool {
        let places = self.names.get(&file).map(Vec::as_slice).unwrap_or_default();
        places.iter().any(|place| matches!(place.reason, CandidateReason::Defines { .. }))
    }

    /// Weighs the other files that have names of the task. Only the passages with them are
    /// candidates.
    fn weigh_named(&mut self, place: usize) {
        let known: HashSet<u32> = self.files.iter().map(|one| one.file).collect();
        let others: Vec<u32> = self.names.keys().copied().filter(|file| !known.contains(file)).collect();
        for file in others {
            let Some((category, factor)) = self.purpose(file) else { continue };
            let features =
                FileFeatures { place, defines: self.defines_name(file), ..FileFeatures::default() };
            let weight = factor * features.weight();
            self.files.push(WeighedFile { file, category, weight, reason: None });
        }
    }

    /// Makes candidates of the passages, those of the likeliest files first.
    fn add_candidates(&mut self, task: &str) {
        let mut files = std::mem::take(&mut self.files);
        let by_weight = |one: &WeighedFile, other: &WeighedFile| {
            other.weight.total_cmp(&one.weight).then(one.file.cmp(&other.file))
        };
        files.sort_by(by_weight);
        let terms = TaskTerms::new(task);
        let mut files: Vec<ReadFile> =
            files.into_iter().filter_map(|from| self.read_passages(from, &terms)).collect();
        let mut rarity = TermRarity::default();
        files.iter().flat_map(|file| &file.passages).for_each(|passage| rarity.add(&passage.found));
        for passage in files.iter_mut().flat_map(|file| &mut file.passages) {
            passage.features.pairs = rarity.of_pairs(&passage.found);
        }
        let best = files.iter().map(ReadFile::best_pairs).fold(f64::MIN_POSITIVE, f64::max);
        for file in &mut files {
            file.from.weight *= pairs_factor(file.best_pairs() / best);
        }
        files.sort_by(|one, other| by_weight(&one.from, &other.from));
        let code = files.iter().filter(|one| one.from.category == ContextCategory::RelatedCode);
        let of_code: f64 = code.map(|one| one.from.weight).sum();
        // Tests and documents take nothing from code, unless there is none.
        let total = if of_code > 0.0 { of_code } else { files.iter().map(|one| one.from.weight).sum() };
        for file in files {
            let likelihood = file.from.weight / total.max(f64::MIN_POSITIVE);
            self.add_passages(file, likelihood);
        }
    }

    /// Reads the passages of a file. `None` if its text can't be shown.
    fn read_passages(&mut self, from: WeighedFile, terms: &TaskTerms) -> Option<ReadFile> {
        let path = self.reader.load_file(from.file)?;
        let text = self.reader.texts.get(&path)?;
        let scores = self.searcher.chunk_scores(self.sources.snapshot, from.file);
        let best = scores.iter().map(|(_, score)| f64::from(*score)).fold(0.0, f64::max);
        let share = |at: Option<usize>| {
            let score = at.and_then(|at| scores.get(at)).map_or(0.0, |(_, score)| f64::from(*score));
            if best > 0.0 { score / best } else { 0.0 }
        };
        let places = self.names.get(&from.file).map(Vec::as_slice).unwrap_or_default();
        // The likelihood was fitted to code: pairs in tests and documents say nothing of it.
        let is_code = from.category == ContextCategory::RelatedCode;
        let mut passages = Vec::with_capacity(scores.len());
        for (at, (chunk, _)) in scores.iter().enumerate() {
            let Some(view) = Snapshot::chunk(self.sources.snapshot, *chunk) else { continue };
            let lines = view.first_line..view.first_line.saturating_add(view.lines);
            let inside = |place: &&NamePlace| place.lines.start < lines.end && lines.start < place.lines.end;
            let of_place =
                |one: &&NamePlace, other: &&NamePlace| one.coefficient().total_cmp(&other.coefficient());
            let name = places.iter().filter(inside).rev().max_by(of_place);
            let slice = text.slice(&lines);
            let features = PassageFeatures {
                words: share(Some(at)),
                beside: share(at.checked_sub(1)).max(share(at.checked_add(1))),
                names: name.map_or(0.0, NamePlace::coefficient),
                code_bytes: code_bytes(slice),
                ..PassageFeatures::default()
            };
            passages.push(Passage {
                features,
                found: if is_code { terms.find_in(slice) } else { FoundTerms::default() },
                reason: name.map(|name| name.reason.clone()),
                lines,
            });
        }
        Some(ReadFile { path, from, passages })
    }

    /// Adds the passages of a file with that likelihood.
    fn add_passages(&mut self, file: ReadFile, likelihood: f64) {
        let ReadFile { path, from, passages } = file;
        let weights: Vec<f64> = passages.iter().map(|passage| passage.features.weight()).collect();
        let total: f64 = weights.iter().sum();
        for (Passage { lines, reason, .. }, weight) in passages.into_iter().zip(weights) {
            let Some(reason) = reason.or_else(|| from.reason.clone()) else { continue };
            let relevance = (likelihood * weight / total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            self.candidates.push(ContextCandidate {
                category: from.category,
                path: path.clone(),
                lines,
                relevance,
                reason,
            });
        }
    }

    /// Returns a file's category and the factor for its purpose; `None` for files that nobody
    /// changes by hand.
    fn purpose(&self, file: u32) -> Option<(ContextCategory, f64)> {
        let record = self.sources.snapshot.file(file)?.record;
        let flags = record.flags;
        if flags.vendored || flags.generated {
            return None;
        }
        let code = if record.language.is_some() { 1.0 } else { NON_CODE_FACTOR };
        Some(if flags.test {
            (ContextCategory::Tests, SECONDARY_FACTOR * code)
        } else if flags.doc {
            (ContextCategory::Docs, SECONDARY_FACTOR * code)
        } else {
            (ContextCategory::RelatedCode, code)
        })
    }

    /// Finds the definitions of the task's names, what uses them, and what uses that.
    fn find_name_places(&mut self, task: &str) {
        for name in code_names(task) {
            let mut definitions = Vec::new();
            self.sources.snapshot.visit_definitions(&name, |id| definitions.push(id));
            let exact = |id: &u32| self.sources.snapshot.symbol(*id).is_some_and(|(_, it)| it.name == name);
            definitions.retain(exact);
            if definitions.is_empty() || definitions.len() > MAX_DEFINITIONS {
                continue;
            }
            for id in definitions {
                let Some((file, symbol)) = self.sources.snapshot.symbol(id) else { continue };
                let lines = symbol.first_line..symbol.first_line.saturating_add(symbol.lines);
                let reason = CandidateReason::Defines { name: name.clone() };
                self.names.entry(file).or_default().push(NamePlace { lines, reason });
            }
            for user in self.find_uses(&name, 1).into_iter().filter(|user| *user != name) {
                self.find_uses(&user, 2);
            }
        }
    }

    /// Finds what uses a name, and returns the names of that.
    fn find_uses(&mut self, name: &str, distance: u32) -> Vec<String> {
        let mut places = Vec::new();
        self.sources.snapshot.visit_references(name, |file, line| {
            if places.len() < MAX_REFERENCES {
                places.push((file, line));
            }
        });
        let mut users = Vec::new();
        for (file, line) in places {
            if users.len() >= MAX_USES {
                break;
            }
            let Some(view) = self.sources.snapshot.file(file) else { continue };
            let inside = view.segment().innermost_symbol_at(&view.record, line);
            let number = inside.map(|inside| view.first_symbol().saturating_add(inside));
            let Some((_, symbol)) = number.and_then(|number| self.sources.snapshot.symbol(number)) else {
                continue;
            };
            if symbol.name == name || users.contains(&symbol.name) {
                continue;
            }
            let reason = CandidateReason::Uses { name: name.to_owned(), distance };
            self.names
                .entry(file)
                .or_default()
                .push(NamePlace { lines: line..line.saturating_add(1), reason });
            users.push(symbol.name);
        }
        users
    }

    /// Weighs the tests of the best files, what is near to them in the dependency graph, and the
    /// other way round what the best tests use.
    fn weigh_neighbours(&mut self, asked: &[(u32, f64)]) {
        let Some(graph) = self.sources.graph else { return };
        let mut known: HashSet<u32> = self.files.iter().map(|one| one.file).collect();
        for (file, _) in asked.iter().take(MAX_CENTRAL_FILES) {
            let Some(view) = self.sources.snapshot.file(*file) else { continue };
            let Some(path) = view.path() else { continue };
            let Some(node) = graph.find_file(&path.to_string()) else { continue };
            let own = self.files.iter().find(|one| one.file == *file).map_or(0.0, |one| one.weight);
            let tests = graph.affected_tests(&[], &graph.dependents(&[node], 1));
            for test in tests.iter().take(MAX_TEST_FILES).filter_map(|test| graph.node(*test)) {
                if known.insert(test.file) {
                    self.files.push(WeighedFile {
                        file: test.file,
                        category: ContextCategory::Tests,
                        weight: own * TEST_FACTOR,
                        reason: Some(CandidateReason::Tests { of: path.clone() }),
                    });
                }
            }
            for (near, distance) in graph.nearby_nodes(node).into_iter().take(MAX_NEAR_FILES) {
                let Some(near) = graph.node(near).map(|near| near.file) else { continue };
                let Some((category, factor)) = self.purpose(near) else { continue };
                let share =
                    NEAR_FACTORS.get(distance.saturating_sub(1) as usize).copied().unwrap_or_default();
                let place = asked.len();
                let features = FileFeatures {
                    share,
                    place,
                    defines: self.defines_name(near),
                    ..FileFeatures::default()
                };
                let weight = factor * features.weight();
                if known.insert(near) {
                    let reason = Some(CandidateReason::Depends { on: path.clone() });
                    self.files.push(WeighedFile { file: near, category, weight, reason });
                }
            }
        }
    }

    /// Returns the files that the map shows first, and the outlines of the best ones.
    fn outline_best_files(
        &mut self,
        task: &str,
        asked: &[(u32, f64)],
    ) -> (Vec<(RelPath, f64)>, Vec<FileOutline>) {
        let snapshot = self.sources.snapshot;
        let order = overview::rank_files(snapshot, self.sources.graph, asked);
        let best = order.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
        let (mut files, mut outlines) = (Vec::new(), Vec::new());
        for (file, score) in order.iter().take(MAX_FOUND_FILES) {
            let Some(path) = Snapshot::file(snapshot, *file).and_then(|view| view.path()) else { continue };
            if outlines.len() < MAX_OUTLINED_FILES && (self.sources.may_show)(&path) {
                // File names appear in any listing, but signatures need permission to read.
                let told = match self.reader.load_file(*file) {
                    Some(_) => overview::signatures(snapshot, *file, task),
                    None => Vec::new(),
                };
                let wanted = asked.iter().any(|(asked, _)| asked == file);
                let signatures: Vec<Signature> = told
                    .into_iter()
                    .map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth })
                    .collect();
                if wanted || !signatures.is_empty() {
                    outlines.push(FileOutline { path: path.to_string(), signatures });
                }
            }
            files.push((path, score / best));
        }
        (files, outlines)
    }
}

/// Returns true if a task has a file name as a word.
fn has_file_name(task: &str, name: &str) -> bool {
    let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    !name.is_empty()
        && task.match_indices(name).any(|(at, name)| {
            let (before, after) = (task.get(..at), task.get(at + name.len()..));
            is_apart(before.and_then(|before| before.chars().next_back()))
                && is_apart(after.and_then(|after| after.chars().next()))
        })
}

/// Returns the commits of the best files that may be shown.
fn commits_of_hits(
    history: &History,
    hits: &[FileHit],
    may_show: &dyn Fn(&RelPath) -> bool,
) -> Vec<CommitNote> {
    let mut notes: Vec<CommitNote> = Vec::new();
    for hit in hits.iter().take(MAX_FILES_WITH_COMMITS) {
        let Some(path) = RelPath::parse(&hit.path).ok().filter(may_show) else { continue };
        for commit in history.commits_of(&hit.path).take(MAX_COMMITS_OF_FILE) {
            let id = short_id(&commit.id).to_owned();
            if notes.len() < MAX_COMMITS && notes.iter().all(|note| note.id != id) {
                let subject = commit.message.lines().next().unwrap_or_default().trim().to_owned();
                notes.push(CommitNote { id, time: commit.time, subject, path: path.clone() });
            }
        }
    }
    notes
}
