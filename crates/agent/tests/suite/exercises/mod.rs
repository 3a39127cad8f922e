//! Sixty small projects with a failing test, repaired by a scripted weak model: first a wrong edit
//! in a damaged format, then the right one in another format. With tools and without, each run
//! ends verified, by the right content alone, and undo gives back what was there.

mod language;
mod reply;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_protocol::{Message, RunOutcome};
use journeyman_testkit::{is_installed, skip};

use crate::harness::{Case, block_on};
use crate::session::support::bench::{Bench, auto, confined};
use crate::session::support::model::{Told, says};
use language::{LANGUAGES, Language};
use reply::{DAMAGED, FORMATS, FileEdit};

/// Two cases a language: more runs than these might take longer than a case may.
macro_rules! exercises {
    ($($language:literal),*) => {
        &[$(
            (concat!(module_path!(), "::", $language, "_with_tools"), || block_on(all_of($language, true))),
            (concat!(module_path!(), "::", $language, "_in_text"), || block_on(all_of($language, false))),
        )*]
    };
}

pub(crate) const CASES: &[Case] = exercises!["python", "javascript", "c", "cpp", "rust", "java"];

const EXERCISES: &str = include_str!("exercises.txt");
/// The exercises of all languages.
const COUNT: usize = 60;
/// Replies after which the model gives up.
const MAX_REPLIES: usize = 6;

/// A line of the table.
struct Exercise {
    signature: &'static str,
    at_first: &'static str,
    wrong: &'static str,
    right: &'static str,
    test: &'static str,
}

/// The exercises by language.
fn table() -> BTreeMap<&'static str, Vec<Exercise>> {
    let mut all: BTreeMap<&str, Vec<Exercise>> = BTreeMap::new();
    let mut language = "";
    for line in EXERCISES.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            language = name;
            continue;
        }
        let fields: Vec<&str> = line.split(" | ").collect();
        let &[signature, at_first, wrong, right, test] = &fields[..] else { panic!("{line}") };
        all.entry(language).or_default().push(Exercise { signature, at_first, wrong, right, test });
    }
    all
}

async fn all_of(name: &str, tool_calling: bool) {
    let table = table();
    assert_eq!(table.values().map(Vec::len).sum::<usize>(), COUNT);
    let language = LANGUAGES.iter().find(|language| language.name == name).unwrap();
    if let Some(program) = language.needs.iter().find(|program| !is_installed(program)) {
        return skip(format_args!("{program} is not installed"));
    }
    if !confined().await {
        return;
    }
    for (number, exercise) in table[name].iter().enumerate() {
        run(language, exercise, number, tool_calling).await;
    }
}

async fn run(language: &'static Language, exercise: &Exercise, number: usize, tool_calling: bool) {
    let source = |body: &str| (language.source)(exercise.signature, body);
    let (before, wrong, right) = (source(exercise.at_first), source(exercise.wrong), source(exercise.right));
    let test = (language.test)(exercise.test);
    let mut files = vec![(language.file, before.as_str()), (language.test_file, test.as_str())];
    files.extend_from_slice(language.others);
    let mut bench = Bench::new(&files);
    let untouched = tree(&bench.root);
    // Each exercise meets another pair of formats, and the same one never twice.
    let shift = number + usize::from(tool_calling);
    let (damaged, format) =
        (DAMAGED[shift % DAMAGED.len()], FORMATS[(shift + number / 5 + 1) % FORMATS.len()]);
    let edit = |after| FileEdit { path: language.file, before: &before, after };
    let first = (damaged.write)(&edit(&wrong));
    let (root, fixed, asked) = (bench.root.clone(), right.clone(), AtomicUsize::new(0));
    let model = Told::by(move |request| {
        let heard = request.messages.last().map(Message::text).unwrap_or_default();
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => says(&first),
            // It is content with any edit that was made, right or wrong.
            1..MAX_REPLIES if !heard.contains("\nChanged ") => {
                let now = std::fs::read_to_string(root.join(language.file)).unwrap();
                says(&(format.write)(&FileEdit { path: language.file, before: &now, after: &fixed }))
            }
            _ => says("Done."),
        }
    });
    let label = format!("{}: {} ({} -> {})", language.name, exercise.signature, damaged.name, format.name);
    let settings = RunSettings {
        tool_calling,
        checks: ChecksSetting::Custom(vec![language.check.to_owned()]),
        ..auto()
    };
    let task = format!("Fix {}: the test fails.", language.file);
    let report = bench.run_task(&task, &model, settings).await;
    let heard = model.heard();
    assert_eq!(
        report.outcome,
        RunOutcome::Verified,
        "{label}, tools {tool_calling}: {}\n{heard}",
        report.summary
    );
    assert_eq!(bench.file(language.file).as_deref(), Some(right.as_str()), "{label}");
    assert_eq!(bench.file(language.test_file).as_deref(), Some(test.as_str()), "{label}");
    assert!(!heard.contains("touch their cause"), "{label}: two edits that were made never fail alike");
    bench.undo().unwrap();
    assert_eq!(tree(&bench.root), untouched, "{label}: undo");
}

/// All files of a project but what builds left.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == "target" => {}
                true => open.push(path),
                false => drop(all.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
            }
        }
    }
    all
}
