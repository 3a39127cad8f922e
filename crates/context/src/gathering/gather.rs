//! Gathering candidates.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use journeyman_index::Snapshot;
use journeyman_index::history::History;
use journeyman_index::overview::{self, MAX_FOUND_FILES};
use journeyman_index::query::{Context, FileHit, Query, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{ContextCategory, RelPath};

use super::names::code_names;
use super::reader::Reader;
use super::sources::Sources;
use crate::line_commits::short_id;
use crate::outlines::{Outlined, Signature};
use crate::packing::{Candidate, Reason, Texts};

/// Maximum files of the search of which passages are candidates.
const MAX_SEARCHED_FILES: usize = 40;
/// Words of a later message from which it is worth a search.
const LEAST_TERMS: usize = 5;
/// Files that score a smaller share of the best one's are no candidates.
const LEAST_SHARE: f64 = 0.15;
/// Maximum number of outlined files.
const MAX_OUTLINED_FILES: usize = 16;
/// Relevance of a passage of the best file that has none of the task's words.
const WORDLESS: f64 = 0.15;
/// Share of a passage's score that its neighbours have at least.
const NEIGHBOUR_SHARE: f64 = 0.5;
/// Factor for tests and documents beside source, and for other files than code.
const SECONDARY: f64 = 0.4;
/// Relevance of the definition of a name that the task has, of its uses and of their uses.
const DEFINITION: f64 = 0.8;
const USE: f64 = 0.35;
const USE_OF_USE: f64 = 0.12;
/// Maximum definitions that a name may mean, and maximum uses of each distance.
const MAX_DEFINITIONS: usize = 5;
const MAX_USES: usize = 12;
/// Maximum references to a name that are looked at.
const MAX_REFERENCES: usize = 400;
/// Maximum lines of a definition as one candidate, and lines around a use in a longer one.
const MAX_BODY_LINES: u32 = 100;
const USE_LINES: u32 = 10;
/// Files of the search whose dependencies and tests are candidates, and how many of each.
const MAX_CENTRAL_FILES: usize = 3;
const MAX_NEAR_FILES: usize = 6;
const MAX_TEST_FILES: usize = 4;
/// Relevance of files at distance 1 and 2, and of tests, beside that of the file.
const NEAR: [f64; 2] = [0.2, 0.08];
const TESTED: f64 = 0.3;
/// Maximum commits, of so many of the best files, so many of each.
const MAX_COMMITS: usize = 8;
const MAX_COMMITTED_FILES: usize = 5;
const MAX_COMMITS_OF_FILE: usize = 2;

/// Data of an index for a task.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Files with how much is for them, 0 to 1, the best first.
    pub files: Vec<(RelPath, f64)>,
    /// Outlines of the best files, best first.
    pub outlines: Vec<Outlined>,
    /// Candidates for excerpts.
    pub candidates: Vec<Candidate>,
    /// The texts of their files.
    pub texts: Texts,
    /// Commits that changed the best files, newest first for each.
    pub commits: Vec<CommitNote>,
}

impl Gathered {
    /// Replaces the subjects of commits, such as by ones without secrets. They are cut afterwards:
    /// half a secret is one too.
    #[must_use]
    pub fn with_subjects(mut self, replace: impl Fn(&str) -> Cow<'_, str>) -> Self {
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
    Query::new(message, &mut Tokenizer::new()).terms.len() >= LEAST_TERMS || !code_names(message).is_empty()
}

/// Gathers candidates for a task. Returns `None` if the search finds nothing.
#[must_use]
pub fn gather(task: &str, sources: &Sources<'_>) -> Option<Gathered> {
    let query = Query::new(task, &mut Tokenizer::new());
    let mut searcher = Searcher::new();
    let answer =
        searcher.search(sources.snapshot, sources.history, &query, Context::default(), MAX_FOUND_FILES);
    let asked = overview::score_shares(&answer);
    if asked.is_empty() {
        return None;
    }
    let mut gathering = Gathering {
        sources,
        searcher,
        reader: Reader::new(sources),
        candidates: Vec::new(),
        weighed: HashSet::new(),
    };
    gathering.add_passages(&asked);
    gathering.add_names(task);
    gathering.add_neighbours(&asked);
    let (files, outlines) = gathering.outline(task, &asked);
    let commits = sources.history.map(|history| commits(history, &answer.files)).unwrap_or_default();
    let Gathering { candidates, reader, .. } = gathering;
    Some(Gathered { files, outlines, candidates, texts: reader.texts, commits })
}

struct Gathering<'a> {
    sources: &'a Sources<'a>,
    searcher: Searcher,
    reader: Reader<'a>,
    candidates: Vec<Candidate>,
    /// Files of which all passages are candidates.
    weighed: HashSet<u32>,
}

impl Gathering<'_> {
    /// Adds the passages of the files that the search found.
    fn add_passages(&mut self, asked: &[(u32, f64)]) {
        for (file, share) in asked.iter().take(MAX_SEARCHED_FILES) {
            if *share < LEAST_SHARE {
                break;
            }
            let Some((category, factor)) = self.purpose(*file) else { continue };
            self.add_file(*file, category, share * factor, WORDLESS, &Reason::Found);
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
        let code = if record.language.is_some() { 1.0 } else { SECONDARY };
        Some(if flags.test {
            (ContextCategory::Tests, SECONDARY * code)
        } else if flags.doc {
            (ContextCategory::Docs, SECONDARY * code)
        } else {
            (ContextCategory::RelatedCode, code)
        })
    }

    /// Adds all passages of a file. `relevance` is that of a passage with the most of the task's
    /// words, `wordless` the share of it for one without any.
    fn add_file(
        &mut self,
        file: u32,
        category: ContextCategory,
        relevance: f64,
        wordless: f64,
        reason: &Reason,
    ) {
        if !self.weighed.insert(file) {
            return;
        }
        let Some(path) = self.reader.open(file) else { return };
        let scores = self.searcher.chunk_scores(self.sources.snapshot, file);
        let best = scores.iter().map(|(_, score)| f64::from(*score)).fold(0.0, f64::max);
        let share = |at: Option<usize>| {
            let score = at.and_then(|at| scores.get(at)).map_or(0.0, |(_, score)| f64::from(*score));
            if best > 0.0 { score / best } else { 0.0 }
        };
        for (at, (chunk, _)) in scores.iter().enumerate() {
            let Some(view) = Snapshot::chunk(self.sources.snapshot, *chunk) else { continue };
            let beside = share(at.checked_sub(1)).max(share(at.checked_add(1)));
            let words = share(Some(at)).max(beside * NEIGHBOUR_SHARE);
            self.candidates.push(Candidate {
                category,
                path: path.clone(),
                lines: view.first_line..view.first_line.saturating_add(view.lines),
                relevance: (relevance * (wordless + (1.0 - wordless) * words)).clamp(0.0, 1.0),
                reason: reason.clone(),
            });
        }
    }

    /// Adds the definitions of the task's names, what uses them, and what uses that.
    fn add_names(&mut self, task: &str) {
        for name in code_names(task) {
            let mut definitions = Vec::new();
            self.sources.snapshot.visit_definitions(&name, |id| definitions.push(id));
            let exact = |id: &u32| self.sources.snapshot.symbol(*id).is_some_and(|(_, it)| it.name == name);
            definitions.retain(exact);
            if definitions.is_empty() || definitions.len() > MAX_DEFINITIONS {
                continue;
            }
            #[allow(clippy::cast_precision_loss)]
            let relevance = DEFINITION / (definitions.len() as f64).sqrt();
            for id in definitions {
                let Some((file, symbol)) = self.sources.snapshot.symbol(id) else { continue };
                let end = symbol.first_line.saturating_add(symbol.lines.min(MAX_BODY_LINES));
                let reason = Reason::Defines { name: name.clone() };
                self.add_lines(file, symbol.first_line..end, relevance, reason);
            }
            let users = self.add_uses(&name, USE, 1);
            for user in users.into_iter().filter(|user| *user != name) {
                self.add_uses(&user, USE_OF_USE, 2);
            }
        }
    }

    /// Adds what uses a name, and returns the names of that.
    fn add_uses(&mut self, name: &str, relevance: f64, distance: u32) -> Vec<String> {
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
            let lines = if symbol.lines <= MAX_BODY_LINES {
                symbol.first_line..symbol.first_line.saturating_add(symbol.lines)
            } else {
                line.saturating_sub(USE_LINES).max(1)..line.saturating_add(USE_LINES)
            };
            self.add_lines(file, lines, relevance, Reason::Uses { name: name.to_owned(), distance });
            users.push(symbol.name);
        }
        users
    }

    fn add_lines(&mut self, file: u32, lines: Range<u32>, relevance: f64, reason: Reason) {
        let Some((category, factor)) = self.purpose(file) else { return };
        let Some(path) = self.reader.open(file) else { return };
        self.candidates.push(Candidate { category, path, lines, relevance: relevance * factor, reason });
    }

    /// Adds the tests of the best files, what is near to them in the dependency graph, and the
    /// other way round what the best tests use.
    fn add_neighbours(&mut self, asked: &[(u32, f64)]) {
        let Some(graph) = self.sources.graph else { return };
        let central: Vec<(u32, f64)> = asked.iter().take(MAX_CENTRAL_FILES).copied().collect();
        for (file, share) in central {
            let Some(view) = self.sources.snapshot.file(file) else { continue };
            let Some(path) = view.path() else { continue };
            let Some(node) = graph.find_file(&path.to_string()) else { continue };
            let tests = graph.affected_tests(&[], &graph.dependents(&[node], 1));
            let numbers = tests.iter().take(MAX_TEST_FILES).filter_map(|test| graph.node(*test));
            let numbers: Vec<u32> = numbers.map(|node| node.file).collect();
            for test in numbers {
                let reason = Reason::Tests { of: path.clone() };
                self.add_file(test, ContextCategory::Tests, share * TESTED, WORDLESS, &reason);
            }
            for (near, distance) in graph.nearby_nodes(node).into_iter().take(MAX_NEAR_FILES) {
                let Some(near) = graph.node(near) else { continue };
                let factor = NEAR.get(distance.saturating_sub(1) as usize).copied().unwrap_or_default();
                let Some((category, purpose)) = self.purpose(near.file) else { continue };
                let reason = Reason::Depends { on: path.clone() };
                self.add_file(near.file, category, share * factor * purpose, WORDLESS, &reason);
            }
        }
    }

    /// Returns the files that the map shows first, and the outlines of the best ones.
    fn outline(&mut self, task: &str, asked: &[(u32, f64)]) -> (Vec<(RelPath, f64)>, Vec<Outlined>) {
        let snapshot = self.sources.snapshot;
        let order = overview::rank_files(snapshot, self.sources.graph, asked);
        let best = order.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
        let (mut files, mut outlines) = (Vec::new(), Vec::new());
        for (file, score) in order.iter().take(MAX_FOUND_FILES) {
            let Some(path) = Snapshot::file(snapshot, *file).and_then(|view| view.path()) else { continue };
            if outlines.len() < MAX_OUTLINED_FILES && (self.sources.may_show)(&path) {
                // File names appear in any listing, but signatures need permission to read.
                let told = match self.reader.open(*file) {
                    Some(_) => overview::signatures(snapshot, *file, task),
                    None => Vec::new(),
                };
                let wanted = asked.iter().any(|(asked, _)| asked == file);
                let signatures: Vec<Signature> = told
                    .into_iter()
                    .map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth })
                    .collect();
                if wanted || !signatures.is_empty() {
                    outlines.push(Outlined { path: path.to_string(), signatures });
                }
            }
            files.push((path, score / best));
        }
        (files, outlines)
    }
}

fn commits(history: &History, hits: &[FileHit]) -> Vec<CommitNote> {
    let mut notes: Vec<CommitNote> = Vec::new();
    for hit in hits.iter().take(MAX_COMMITTED_FILES) {
        let Ok(path) = RelPath::parse(&hit.path) else { continue };
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
