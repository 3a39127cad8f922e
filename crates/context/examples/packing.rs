//! Measures what the packed context has of the lines that a fix changes: `packing rows ROWS MIRROR
//! [--limit N] [--half tuning|other]`, and how fast packing is: `packing speed`.
//!
//! `rows` reads real issues and commits with the lines that their fixes replace (`gold_ranges`),
//! writes each base commit's files into a temporary directory, indexes them, gathers candidates and
//! packs them into windows of several sizes, of which a fifth is kept for the reply. It prints, by
//! window, the share of rows with every file of the fix in the context, the share of changed ranges
//! and lines that are in it verbatim, and the tokens; beside two baselines with the same ranking:
//! whole files by rank until the next doesn't fit, and files cut to head and tail. For the same
//! share of ranges it compares the tokens of packing and of whole files, both as means of what is
//! used: of all that is packed, which has tests and documents too, and of code alone, which is all
//! that the baselines have. Repositories that the mirror lacks are left out, and said.
//!
//! Every second repository by name is the `tuning` half, by which constants were chosen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_precision_loss)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use journeyman_context::gathering::{ContextSources, GatheredContext, gather};
use journeyman_context::packing::{
    CandidateReason, ContextCandidate, FileText, SelectionBudget, Texts, select,
};
use journeyman_context::{TokenEstimator, cut_to_budget};
use journeyman_git::Git;
use journeyman_index::ProjectIndex;
use journeyman_index::history::History;
use journeyman_index::query::{Query, QueryContext, Searcher};
use journeyman_index::store::RefreshOptions;
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{ContextCategory, RelPath, SandboxTier, TokenCounter as _, Tokens};
use journeyman_sandbox::{Sandbox, SandboxSettings, run_helper_if_asked};
use serde_json::Value;

/// Maximum bytes of a file: no row's are longer.
const MAX_BYTES: u64 = 1_000_000;
/// Windows in tokens, and the part of each that the context gets: a fifth is for the reply, and
/// system prompt and tools take this many tokens.
const WINDOWS: [u64; 4] = [8_000, 32_000, 128_000, 200_000];
const FIXED: u64 = 4_000;
/// Rooms, in tokens, for the question how many reach the other's recall: from the first to the last,
/// each by this factor larger than the one before.
const ROOMS: (f64, f64, f64) = (700.0, 260_000.0, 1.15);
/// Tokens of a file in the second baseline.
const HEAD_AND_TAIL: Tokens = Tokens(1_000);
/// The part of the tokens of whole files that packed code may take for the same ranges.
const MAX_TIMES: f64 = 0.5;
/// Maximum time of packing 2,000 candidates, in milliseconds.
const MAX_PACKING_MS: f64 = 15.0;
/// Files of a baseline's ranking.
const RANKED: usize = 300;

fn main() {
    run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rows", rows, mirror, ref options @ ..] => {
            let (mut limit, mut half) = (usize::MAX, None);
            for option in options.chunks(2) {
                match *option {
                    ["--limit", most] => limit = most.parse().expect("--limit N"),
                    ["--half", "tuning"] => half = Some(0),
                    ["--half", "other"] => half = Some(1),
                    _ => panic!("packing rows ROWS MIRROR [--limit N] [--half tuning|other]"),
                }
            }
            measure_rows(Path::new(rows), Path::new(mirror), limit, half);
        }
        ["speed"] => measure_speed(),
        _ => panic!("packing rows ROWS MIRROR [--limit N] [--half tuning|other] | packing speed"),
    }
}

/// Returns the rooms of [`ROOMS`].
fn rooms() -> impl Iterator<Item = u64> {
    let (first, last, factor) = ROOMS;
    std::iter::successors(Some(first), move |room| Some(room * factor).filter(|next| *next <= last))
        .map(|room| room as u64)
}

/// Sums over rows.
#[derive(Default)]
struct Score {
    rows: usize,
    whole: usize,
    ranges: f64,
    lines: f64,
    tokens: u64,
}

impl Score {
    /// Adds a row: `shown` has the lines of each file in the context.
    fn add(&mut self, row: &Value, shown: &BTreeMap<String, BTreeSet<u32>>, tokens: Tokens) {
        let gold = row["gold_files"].as_array().unwrap();
        let in_context = |file: &&Value| shown.get(file.as_str().unwrap()).is_some_and(|it| !it.is_empty());
        self.rows += 1;
        self.whole += usize::from(gold.iter().filter(in_context).count() == gold.len());
        let (mut ranges, mut covered, mut lines, mut shown_lines) = (0_u32, 0_u32, 0_u32, 0_u32);
        for (path, list) in row["gold_ranges"].as_object().unwrap() {
            for range in list.as_array().unwrap() {
                let [first, last] = [0, 1].map(|at| range[at].as_u64().unwrap() as u32);
                let count = (first..=last.max(first)).count() as u32;
                let own = shown.get(path);
                let there = (first..=last.max(first)).filter(|line| own.is_some_and(|it| it.contains(line)));
                let there = there.count() as u32;
                (ranges, lines, shown_lines) = (ranges + 1, lines + count, shown_lines + there);
                covered += u32::from(there == count);
            }
        }
        self.ranges += f64::from(covered) / f64::from(ranges.max(1));
        self.lines += f64::from(shown_lines) / f64::from(lines.max(1));
        self.tokens += tokens.0;
    }

    fn print(&self, window: u64, name: &str) {
        let part = |value: f64| 100.0 * value / self.rows.max(1) as f64;
        println!(
            "{window:>7} {name:<14} all files {:5.1} %  ranges {:5.1} %  lines {:5.1} %  {:>7} tokens",
            part(self.whole as f64),
            part(self.ranges),
            part(self.lines),
            self.tokens / self.rows.max(1) as u64
        );
    }
}

fn measure_rows(rows: &Path, mirror: &Path, limit: usize, half: Option<usize>) {
    let rows = std::fs::read_to_string(rows).expect("the rows can't be read");
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let step = rows.len().div_ceil(limit.clamp(1, rows.len().max(1)));
    let mut by_repo: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows.into_iter().step_by(step) {
        by_repo.entry(row["repo"].as_str().unwrap().to_owned()).or_default().push(row);
    }
    let settings = SandboxSettings {
        allow: vec![SandboxTier::Namespaces, SandboxTier::Unconfined],
        allow_root: true,
        ..Default::default()
    };
    let sandbox = Arc::new(Sandbox::new(settings));
    let mut scores: BTreeMap<(u64, &str), Score> = BTreeMap::new();
    let (mut missing, mut gathering, mut packing) = (Vec::new(), Vec::new(), Vec::new());
    let wanted = |number: &usize| half.is_none_or(|half| number % 2 == half);
    for (_, (repo, rows)) in (0..).zip(by_repo).filter(|(number, _)| wanted(number)) {
        let Some(place) = place_of(mirror, &repo) else {
            missing.push(repo);
            continue;
        };
        let git = Git::new(&place, Arc::clone(&sandbox));
        measure_repository(&git, rows, &mut scores, &mut gathering, &mut packing);
        eprintln!("{repo} is done");
    }
    if !missing.is_empty() {
        println!("the mirror lacks {} repositories: {}", missing.len(), missing.join(", "));
    }
    for ((window, name), score) in scores.iter().filter(|((_, name), _)| !name.ends_with("by room")) {
        score.print(*window, name);
    }
    let times = compare_tokens(&scores);
    let rows = scores.values().next().map_or(0, |score| score.rows);
    for (name, times) in [("gathering", &mut gathering), ("packing into 128k", &mut packing)] {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
        println!("{name}: p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    }
    println!("{rows} rows");
    let packed = scores.get(&(32_000, "packed")).expect("there are no rows");
    let part = |value: f64| value / packed.rows.max(1) as f64;
    assert!(part(packed.whole as f64) >= 0.75 && part(packed.ranges) >= 0.6, "a bound is missed at 32k");
    assert!(times <= MAX_TIMES, "packed code takes {times:.2} times the tokens of whole files");
}

/// Prints the tokens of packing and of whole files for the same share of ranges. Returns how many
/// times the tokens of whole files packed code takes, at most.
fn compare_tokens(scores: &BTreeMap<(u64, &str), Score>) -> f64 {
    let mean = |score: &Score| {
        let rows = score.rows.max(1) as f64;
        (score.ranges / rows, score.tokens as f64 / rows)
    };
    let curve = |name: &str| -> Vec<(f64, f64)> {
        scores.iter().filter(|((_, own), _)| *own == name).map(|(_, score)| mean(score)).collect()
    };
    let mut most = 0.0_f64;
    for (name, other, by_room) in [
        ("packed", "whole files", "whole by room"),
        ("whole files", "packing", "packed by room"),
        ("packed code", "whole files", "whole by room"),
        ("whole files", "packing code", "code by room"),
    ] {
        for window in WINDOWS {
            let Some(score) = scores.get(&(window, name)) else { continue };
            let (recall, tokens) = mean(score);
            let said = match tokens_for(recall, &curve(by_room)) {
                Some(others) => {
                    let times = if name == "whole files" { others / tokens } else { tokens / others };
                    most = if name == "packed code" { most.max(times) } else { most };
                    format!("takes {others:.0} by {other}: {times:.2} times")
                }
                None => format!("isn't reached by {other} in any room"),
            };
            println!("{name} in {window}: {:.1} % with {tokens:.0} tokens, which {said}", recall * 100.0);
        }
    }
    most
}

fn measure_repository(
    git: &Git,
    mut rows: Vec<Value>,
    scores: &mut BTreeMap<(u64, &'static str), Score>,
    gathering: &mut Vec<f64>,
    packing: &mut Vec<f64>,
) {
    rows.sort_by_key(|row| row["date"].as_str().unwrap_or_default().to_owned());
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("tree");
    std::fs::create_dir_all(&root).unwrap();
    let project = ProjectIndex::open(&root, &work.path().join("index"), 2).unwrap();
    let (mut known, mut history) = (HashMap::new(), None);
    for row in rows {
        let (base, task) = (row["base_commit"].as_str().unwrap(), row["query"].as_str().unwrap());
        check_out(git, base, &root, &mut known);
        let options = RefreshOptions {
            threads: NonZero::new(2).unwrap(),
            wait: true,
            progress: &|_| {},
            stop: &AtomicBool::new(false),
        };
        project.refresh(options).unwrap();
        let snapshot = project.index().snapshot();
        history = Git::run_blocking(History::read(git, base, history.take())).unwrap();
        let graph = project.graph(&snapshot);
        let read = |path: &RelPath| std::fs::read_to_string(root.join(path.to_string())).ok();
        let began = Instant::now();
        let sources = ContextSources {
            snapshot: &snapshot,
            graph: Some(&graph),
            history: history.as_ref(),
            may_show: &|_| true,
            read: &|_, path| read(path),
        };
        let found = gather(task, &sources).unwrap_or_default();
        gathering.push(began.elapsed().as_secs_f64() * 1e3);
        let ranked = rank(&snapshot, history.as_ref(), task);
        let measured = measure_files(&ranked, &read);
        let mut code = found.clone();
        code.candidates.retain(|candidate| candidate.category == ContextCategory::RelatedCode);
        for room in rooms() {
            let (shown, tokens) = pack(&found, Tokens(room));
            scores.entry((room, "packed by room")).or_default().add(&row, &shown, tokens);
            let (shown, tokens) = pack(&code, Tokens(room));
            scores.entry((room, "code by room")).or_default().add(&row, &shown, tokens);
            let (shown, tokens) = whole_files(&measured, Tokens(room));
            scores.entry((room, "whole by room")).or_default().add(&row, &shown, tokens);
        }
        for window in WINDOWS {
            let room = Tokens((window * 4 / 5).saturating_sub(FIXED.min(window / 5)));
            let began = Instant::now();
            let (shown, tokens) = pack(&found, room);
            if window == 128_000 {
                packing.push(began.elapsed().as_secs_f64() * 1e3);
            }
            scores.entry((window, "packed")).or_default().add(&row, &shown, tokens);
            let (shown, tokens) = pack(&code, room);
            scores.entry((window, "packed code")).or_default().add(&row, &shown, tokens);
            let (shown, tokens) = whole_files(&measured, room);
            scores.entry((window, "whole files")).or_default().add(&row, &shown, tokens);
            let (shown, tokens) = heads_and_tails(&ranked, &read, room);
            scores.entry((window, "head and tail")).or_default().add(&row, &shown, tokens);
        }
    }
}

/// Returns the tokens at which a curve of recalls and tokens reaches a recall.
fn tokens_for(recall: f64, curve: &[(f64, f64)]) -> Option<f64> {
    let after = curve.iter().position(|(reached, _)| *reached >= recall)?;
    let (above, more) = curve[after];
    let Some((below, less)) = after.checked_sub(1).map(|before| curve[before]) else { return Some(more) };
    Some(less + (more - less) * (recall - below) / (above - below).max(f64::MIN_POSITIVE))
}

/// Source files by rank, without tests, documents and third-party code.
fn rank(snapshot: &journeyman_index::Snapshot, history: Option<&History>, task: &str) -> Vec<RelPath> {
    let query = Query::new(task, &mut Tokenizer::new());
    let answer = Searcher::new().search(snapshot, history, &query, QueryContext::default(), RANKED);
    let is_source = |file: u32| {
        let flags = snapshot.file(file).unwrap().record.flags;
        !flags.test && !flags.doc && !flags.vendored && !flags.generated
    };
    let hits = answer.files.iter().filter(|hit| is_source(hit.file));
    hits.filter_map(|hit| RelPath::parse(&hit.path).ok()).collect()
}

fn pack(found: &GatheredContext, room: Tokens) -> (BTreeMap<String, BTreeSet<u32>>, Tokens) {
    let selection = select(&found.candidates, &found.texts, &SelectionBudget::for_found(room));
    let lines = selection.excerpts.iter().map(|excerpt| {
        (excerpt.path.to_string(), excerpt.lines.iter().cloned().flatten().collect::<BTreeSet<u32>>())
    });
    (lines.collect(), selection.tokens)
}

/// Returns the files of a ranking with their tokens and lines, as many as fit any room.
fn measure_files(ranked: &[RelPath], read: &dyn Fn(&RelPath) -> Option<String>) -> Vec<(String, u64, u32)> {
    let most = rooms().chain(WINDOWS).max().unwrap_or(0);
    let mut spent = 0;
    let measured = ranked.iter().filter_map(|path| {
        let text = read(path)?;
        Some((path.to_string(), TokenEstimator.count(&text).0, text.lines().count() as u32))
    });
    let fits = |(_, cost, _): &(String, u64, u32)| {
        let before = spent;
        spent += cost;
        before <= most
    };
    measured.take_while(fits).collect()
}

fn whole_files(measured: &[(String, u64, u32)], room: Tokens) -> (BTreeMap<String, BTreeSet<u32>>, Tokens) {
    let (mut shown, mut spent) = (BTreeMap::new(), 0);
    for (path, cost, lines) in measured {
        if spent + cost > room.0 {
            break;
        }
        spent += cost;
        shown.insert(path.clone(), (1..=*lines).collect());
    }
    (shown, Tokens(spent))
}

fn heads_and_tails(
    ranked: &[RelPath],
    read: &dyn Fn(&RelPath) -> Option<String>,
    room: Tokens,
) -> (BTreeMap<String, BTreeSet<u32>>, Tokens) {
    let (mut shown, mut spent) = (BTreeMap::new(), 0);
    for path in ranked {
        let Some(text) = read(path) else { continue };
        let kept = cut_to_budget(&text, HEAD_AND_TAIL, None).text;
        let cost = TokenEstimator.count(&kept).0;
        if spent + cost > room.0 {
            break;
        }
        spent += cost;
        let (all, kept): (Vec<&str>, Vec<&str>) = (text.lines().collect(), kept.lines().collect());
        let gap = kept.iter().position(|line| line.ends_with(" lines left out]")).unwrap_or(kept.len());
        let tail = kept.len().saturating_sub(gap + 1);
        let lines = (1..=gap).chain(all.len() - tail + 1..=all.len());
        shown.insert(path.to_string(), lines.map(|line| line as u32).collect());
    }
    (shown, Tokens(spent))
}

/// Packs 2,000 candidates of 500 tokens into 128,000 tokens.
fn measure_speed() {
    let mut texts = Texts::new();
    let mut candidates = Vec::new();
    for file in 0..200 {
        let path = RelPath::parse(format!("src/module_{file}.rs")).unwrap();
        let lines = (0..400)
            .map(|line| format!("    let value_{line} = compute_{file}(context, {line}, &options)?;\n"));
        texts.insert(path.clone(), FileText::new(lines.collect::<String>(), Vec::new()));
        for part in 0..10_u32 {
            candidates.push(ContextCandidate {
                category: ContextCategory::RelatedCode,
                path: path.clone(),
                lines: 1 + part * 40..41 + part * 40,
                relevance: f64::from(1_000 - (file * 7 + part * 13) % 900) / 1_000.0,
                reason: CandidateReason::Found,
            });
        }
    }
    let mut times = Vec::new();
    for _ in 0..30 {
        let began = Instant::now();
        let selection = select(&candidates, &texts, &SelectionBudget::for_found(Tokens(128_000)));
        times.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(selection.tokens.0 > 100_000 && selection.tokens.0 <= 128_000, "{}", selection.tokens);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "packing {} candidates into 128k: p50 {:.1} ms, worst {:.1} ms",
        candidates.len(),
        times[15],
        times[29]
    );
    assert!(times[15] <= MAX_PACKING_MS, "packing takes longer than {MAX_PACKING_MS} ms");
}

/// Finds `owner+name/repo` in the folder, in any case.
fn place_of(mirror: &Path, repo: &str) -> Option<PathBuf> {
    let wanted = repo.replace('/', "+").to_lowercase();
    let entries = std::fs::read_dir(mirror).ok()?.flatten();
    let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().to_lowercase() == wanted);
    found.next().map(|entry| entry.path().join("repo")).filter(|place| place.is_dir())
}

/// Writes a commit's files, those that differ from the ones that are there.
fn check_out(git: &Git, commit: &str, root: &Path, known: &mut HashMap<RelPath, String>) {
    let tree = Git::run_blocking(git.list_tree(commit)).unwrap().expect("the base commit isn't there");
    let wanted: HashMap<RelPath, (String, u64)> = tree
        .into_iter()
        .filter(|file| !file.link && file.size.is_some_and(|size| size <= MAX_BYTES))
        .map(|file| (file.path, (file.blob, file.size.unwrap_or(0))))
        .collect();
    known.retain(|path, _| {
        let stays = wanted.contains_key(path);
        if !stays {
            let _gone = std::fs::remove_file(root.join(path.to_string()));
        }
        stays
    });
    let missing: Vec<_> = wanted.iter().filter(|(path, (blob, _))| known.get(path) != Some(blob)).collect();
    for part in missing.chunks(500) {
        let blobs: Vec<(&str, u64)> = part.iter().map(|(_, (blob, size))| (blob.as_str(), *size)).collect();
        let contents = Git::run_blocking(git.read_blobs(&blobs)).unwrap();
        for ((path, (blob, _)), content) in part.iter().zip(contents) {
            let Some(content) = content else { continue };
            let place = root.join(path.to_string());
            std::fs::create_dir_all(place.parent().unwrap()).ok();
            // A file in a directory's place, or the other way round, is left out.
            if std::fs::write(&place, content).is_ok() {
                known.insert((*path).clone(), blob.clone());
            }
        }
    }
}
