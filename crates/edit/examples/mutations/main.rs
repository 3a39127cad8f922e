//! Real hunks, damaged as models damage them: `cargo xtask bench edit` runs it.
//!
//! - `mutations cases N REST… < pairs` reads files before and after a commit, a JSON object a line
//!   (`repo`, `commit`, `path`, `before`, `after`), takes a hunk from each until it has N of a
//!   repository, damages it in every way, and writes a task a line.
//! - `mutations run WRONG < tasks` gives every task to this crate's engine in every format and
//!   prints the tables. Each wrong write is a JSON line of the file WRONG. It ends with 1 where
//!   there are more than the bound.
//! - `mutations again WRONG < tasks` sends the undamaged hunks to files that have them already, or
//!   half of them (`again.rs`).
//! - `mutations grade NAME TASKS WRONG < answers` holds another engine's answers against the tasks:
//!   for each task a line `{"id", "answers": [{"text"} | {"error"}]}`, an answer for each of the
//!   task's cases, `null` where it can't be asked.
//! - `mutations replies KEEP < pairs` makes whole replies of the pairs (`replies.rs`), gives them
//!   to this crate's engine and prints the table; what isn't right is a JSON line of the file KEEP.
//!   It ends with 1 where a bound is missed.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    unreachable_pub,
    reason = "a program that prints figures"
)]

mod again;
mod damage;
mod formats;
mod hunk;
mod replies;
mod summary;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use formats::{Answer, QUOTING_FORMATS};
use hunk::{Case, Pair, Task};
use serde::Deserialize;
use serde_json::json;
use similar::TextDiff;
use summary::{CUT_OFF, Summary, Verdict, verdict};

/// At most one in so many writes something else than the commit did.
const ONE_WRONG_IN: usize = 10_000;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cases", count] => cases(count.parse()?).map(|()| ExitCode::SUCCESS),
        ["run", wrong] => run(wrong),
        ["replies", keep] => {
            replies::run(keep).map(|holds| if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ["again", wrong] => again(wrong).map(|()| ExitCode::SUCCESS),
        ["grade", name, tasks, wrong] => grade(name, tasks, wrong).map(|()| ExitCode::SUCCESS),
        _ => {
            eprintln!(
                "usage: mutations cases N | run WRONG | again WRONG | replies KEEP | grade NAME TASKS WRONG"
            );
            Ok(ExitCode::from(2))
        }
    }
}

/// Chooses hunks and damages them.
fn cases(most: usize) -> Result<(), Error> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let pair: Pair = serde_json::from_str(&line?)?;
        let count = taken.entry(pair.repo.clone()).or_default();
        if *count >= most {
            continue;
        }
        let Some(hunk) = hunk::choose(&pair) else { continue };
        *count += 1;
        let cases = damage::cases(&hunk);
        let task = Task {
            before: hunk.before(),
            after: hunk.after(),
            id: hunk.id,
            commit: hunk.commit,
            path: hunk.path,
            cases,
        };
        writeln!(out, "{}", serde_json::to_string(&task)?)?;
    }
    out.flush()?;
    for (repo, count) in taken {
        eprintln!("  {count} hunks of {repo}");
    }
    Ok(())
}

fn run(wrong: &str) -> Result<ExitCode, Error> {
    let mut wrong = BufWriter::new(std::fs::File::create(wrong)?);
    let mut summary = Summary::default();
    let mut slowest = (Duration::ZERO, String::new());
    let mut panics = 0;
    std::panic::set_hook(Box::new(|_| {}));
    for line in std::io::stdin().lock().lines() {
        let task: Task = serde_json::from_str(&line?)?;
        for case in &task.cases {
            let before = case.files.as_ref().map_or(&task.before, |(before, _)| before);
            for format in QUOTING_FORMATS {
                let Some(reply) = formats::reply(format, &task.path, case) else { continue };
                let given = formats::ask(format, &task.path, before, &reply, false);
                let verdict = verdict(&task, case, &given.answer);
                summary.add(&case.damage, format.name(), verdict);
                panics += usize::from(given.answer == Answer::Panicked);
                if given.took > slowest.0 {
                    slowest = (given.took, format!("{}, {}, {format}", task.id, case.damage));
                }
                if matches!(verdict, Verdict::Wrong | Verdict::Nothing) {
                    let how = given.strategy.map(|strategy| strategy.to_string());
                    record(&mut wrong, &task, case, (format.name(), how), &given.answer, verdict)?;
                }
            }
        }
        cut_off(&task, &mut summary, &mut wrong)?;
    }
    wrong.flush()?;
    summary.print("jm");
    let total = summary.total();
    let (all, bad) = (total.all(), total.wrong);
    println!("\nslowest: {:.1} ms, {}; {panics} panics", slowest.0.as_secs_f64() * 1e3, slowest.1);
    println!("wrong: {bad} of {all}, one in {} (asked: at most one in {ONE_WRONG_IN})", all / bad.max(1));
    println!("json {}", summary.json());
    Ok(if bad * ONE_WRONG_IN <= all && panics == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What becomes of hunks that the file has already.
fn again(wrong: &str) -> Result<(), Error> {
    let mut wrong = BufWriter::new(std::fs::File::create(wrong)?);
    let mut summary = Summary::default();
    for line in std::io::stdin().lock().lines() {
        again::run(&serde_json::from_str(&line?)?, &mut summary, &mut wrong)?;
    }
    wrong.flush()?;
    summary.print("jm, sent again");
    println!("json {}", summary.json());
    Ok(())
}

/// A reply that the token limit ended writes nothing, whatever of it came.
fn cut_off(task: &Task, summary: &mut Summary, wrong: &mut impl Write) -> Result<(), Error> {
    let Some(case) = task.cases.iter().find(|case| case.damage == "none") else { return Ok(()) };
    for format in QUOTING_FORMATS {
        let Some(reply) = formats::cut_off(format, task, case) else { continue };
        let given = formats::ask(format, &task.path, &task.before, &reply, true);
        let verdict = match given.answer {
            Answer::Text(_) | Answer::Panicked => Verdict::Wrong,
            Answer::Refused(_) => Verdict::Refused,
            Answer::Unchanged(_) => Verdict::Nothing,
        };
        summary.add(CUT_OFF, format.name(), verdict);
        if verdict != Verdict::Refused {
            let cut = Case {
                damage: CUT_OFF.to_owned(),
                variant: reply,
                search: case.search.clone(),
                replace: case.replace.clone(),
                patch: None,
                files: None,
            };
            record(wrong, task, &cut, (format.name(), None), &given.answer, verdict)?;
        }
    }
    Ok(())
}

/// All that is needed to see why a write is wrong.
fn record(
    out: &mut impl Write,
    task: &Task,
    case: &Case,
    (format, how): (&str, Option<String>),
    answer: &Answer,
    verdict: Verdict,
) -> Result<(), Error> {
    let (before, after) = match &case.files {
        Some((before, after)) => (before, after),
        None => (&task.before, &task.after),
    };
    let difference =
        |old: &str, new: &str| TextDiff::from_lines(old, new).unified_diff().context_radius(2).to_string();
    let (got, said) = match answer {
        Answer::Text(text) => (difference(after, text), ""),
        Answer::Refused(said) | Answer::Unchanged(said) => (String::new(), said.as_str()),
        Answer::Panicked => (String::new(), "panicked"),
    };
    let line = json!({"id": task.id, "damage": case.damage, "variant": case.variant, "format": format, "placed": how,
        "verdict": format!("{verdict:?}").to_lowercase(), "search": case.search, "replace": case.replace,
        "said": said, "commit_did": difference(before, after), "written_beside_expected": got});
    writeln!(out, "{line}")?;
    Ok(())
}

/// Another engine's answers to one task.
#[derive(Deserialize)]
struct Answers {
    id: String,
    answers: Vec<Option<Other>>,
}

#[derive(Deserialize)]
struct Other {
    text: Option<String>,
    error: Option<String>,
}

fn grade(name: &str, tasks: &str, wrong: &str) -> Result<(), Error> {
    let mut wrong = BufWriter::new(std::fs::File::create(wrong)?);
    let mut summary = Summary::default();
    let mut answers = std::io::stdin().lock().lines();
    for line in BufReader::new(std::fs::File::open(tasks)?).lines() {
        let task: Task = serde_json::from_str(&line?)?;
        let given = answers.next().ok_or_else(|| format!("{name} ended before {}", task.id))??;
        let given: Answers = serde_json::from_str(&given)?;
        if given.id != task.id || given.answers.len() != task.cases.len() {
            return Err(format!("{name} answered {} where {} was asked", given.id, task.id).into());
        }
        for (case, other) in task.cases.iter().zip(given.answers) {
            let Some(Other { text, error }) = other else { continue };
            let answer = match (text, error) {
                (Some(text), None) => Answer::Text(text),
                (_, error) => Answer::Refused(error.unwrap_or_default()),
            };
            let verdict = verdict(&task, case, &answer);
            summary.add(&case.damage, name, verdict);
            if matches!(verdict, Verdict::Wrong | Verdict::Nothing) {
                record(&mut wrong, &task, case, (name, None), &answer, verdict)?;
            }
        }
    }
    wrong.flush()?;
    summary.print(name);
    println!("json {}", summary.json());
    Ok(())
}
