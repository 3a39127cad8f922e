//! The public cases by their own scorer, through the library and through `jm apply`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::{Map, Value, json};

use super::{Profile, example};

/// Bounds of the formats, in per cent: the scorer's names of a format, the least share of cases
/// that passes, and the largest share that writes a wrong text.
const ASKED: [(&str, &[&str], f64, f64); 4] = [
    ("search/replace", &["search_replace"], 93.0, 0.5),
    ("V4A patch", &["apply_patch"], 93.0, 1.5),
    ("unified diff", &["udiff"], 86.0, 2.5),
    ("whole and lazy", &["whole", "lazy"], 90.0, 100.0),
];
/// Time after which a case counts as hung.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The directory of the project in the folder of a case.
const TREE: &str = "tree";

/// The number of a format's cases by their outcome.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    all: f64,
    passed: f64,
    refused: f64,
    wrong: f64,
    nothing: f64,
    hung: f64,
}

/// Runs the cases both ways, and compares each result with the bounds.
pub(crate) fn run(folder: &Path, keep: &Path, profile: Profile) -> anyhow::Result<()> {
    let exported = keep.join("cases.jsonl");
    let mut export = scorer(folder)?;
    let status = export.arg("export").stdout(File::create(&exported)?).status().context("python3")?;
    ensure!(status.success(), "score.py export ended with {status}");

    let program = example(profile, "score")?;
    let results = keep.join("results-library.jsonl");
    let status = Command::new(&program)
        .stdin(File::open(&exported)?)
        .stdout(File::create(&results)?)
        .status()
        .context("score")?;
    // What it didn't come to counts as a hang.
    if !status.success() {
        println!("the engine ended with {status} before its last case");
    }
    let mut missed = judge("through the library", folder, &results)?;

    // With the workspace, as the tests have built it: by itself it has other features of its
    // dependencies.
    let jm = profile.build(&["--workspace"], &["--bin", "jm"], "jm")?;
    let results = keep.join("results-jm.jsonl");
    through_program(&jm, &program, &exported, &results)?;
    missed.extend(judge("through `jm apply`", folder, &results)?);
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

fn scorer(folder: &Path) -> anyhow::Result<Command> {
    let script = folder.join("score.py");
    ensure!(script.is_file(), "{} has no score.py", folder.display());
    let mut command = Command::new("python3");
    command.arg(script).env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Prints the scorer's figures beside the bounds; what misses them is given back.
fn judge(title: &str, folder: &Path, results: &Path) -> anyhow::Result<Vec<String>> {
    let graded = scorer(folder)?.arg("grade").arg(results).stderr(Stdio::inherit()).output()?;
    ensure!(graded.status.success(), "score.py grade ended with {}", graded.status);
    let said = String::from_utf8(graded.stdout)?;
    println!("\n| {title} | cases | passed | asked | wrong | asked | refused | no-op | hung |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (name, formats, least, most) in ASKED {
        let counts =
            counts(&said, formats).with_context(|| format!("score.py says nothing of {formats:?}"))?;
        let Counts { all, passed, refused, wrong, nothing, hung } = counts;
        let (passes, wrongs) = (100.0 * passed / all, 100.0 * wrong / all);
        println!(
            "| {name} | {all} | {passes:.1} % | ≥ {least} % | {wrong} ({wrongs:.2} %) | {} | {refused} | {nothing} | {hung} |",
            if most < 100.0 { format!("≤ {most} %") } else { "–".to_owned() }
        );
        if passes < least || wrongs > most || nothing > 0.0 || hung > 0.0 {
            missed.push(format!(
                "{name} {title}: {passes:.1} % pass, {wrong} wrong, {nothing} no-ops, {hung} hung"
            ));
        }
    }
    for status in ["wrong_apply", "silent_noop", "hang", "refused"] {
        let listed = scorer(folder)?.args(["grade", "--list", status]).arg(results).output()?;
        let listed = String::from_utf8(listed.stdout)?;
        let ids: Vec<&str> = listed.lines().skip_while(|line| !line.starts_with("TOTAL")).skip(1).collect();
        std::fs::write(results.with_extension(format!("{status}.txt")), ids.join("\n"))?;
    }
    Ok(missed)
}

/// The scorer's lines of some formats, added up: `NAME N ok N P% pass_eol N refused N wrong_apply N
/// …`.
fn counts(said: &str, formats: &[&str]) -> Option<Counts> {
    let mut sum = Counts::default();
    for line in said.lines().filter(|line| !line.starts_with(' ')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.first().is_some_and(|name| formats.contains(name)) {
            continue;
        }
        let after = |name: &str| -> Option<f64> {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse().ok()
        };
        sum.all += words.get(1)?.parse::<f64>().ok()?;
        sum.passed += after("ok")?;
        sum.refused += after("refused")?;
        sum.wrong += after("wrong_apply")?;
        sum.nothing += after("silent_noop")?;
        sum.hung += after("hang")?;
    }
    (sum.all > 0.0).then_some(sum)
}

/// Every case in a project of its own, by the program that users run.
fn through_program(jm: &Path, score: &Path, exported: &Path, results: &Path) -> anyhow::Result<()> {
    let asked = Command::new(score).arg("--requests").stdin(File::open(exported)?).output()?;
    ensure!(asked.status.success(), "score --requests ended with {}", asked.status);
    let (lines, out) = (Mutex::new(asked.stdout.as_slice().lines()), Mutex::new(File::create(results)?));
    let panicked = || anyhow!("another thread has panicked");
    let work = || {
        loop {
            let Some(line) = lines.lock().map_err(|_| panicked())?.next() else { return Ok(()) };
            let request: Value = serde_json::from_str(&line?)?;
            let id = request.get("id").cloned().unwrap_or_default();
            let result = match request.get("error") {
                Some(error) => Some(json!({"id": id, "error": error})),
                None => apply(jm, &request).with_context(|| format!("case {id}"))?,
            };
            if let Some(result) = result {
                writeln!(out.lock().map_err(|_| panicked())?, "{result}")?;
            }
        }
    };
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(panicked())))
    })
}

/// Returns the program's answer to a case, or `None` if the program hangs or dies.
fn apply(jm: &Path, request: &Value) -> anyhow::Result<Option<Value>> {
    let place = tempfile::tempdir()?;
    let tree = place.path().join(TREE);
    std::fs::create_dir(&tree)?;
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    for (path, content) in request.get("files").and_then(Value::as_object).into_iter().flatten() {
        let file = tree.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().context("its directory")?)?;
        std::fs::write(file, content.as_str().unwrap_or_default())?;
    }
    let mut command = Command::new(jm);
    command.args(["apply", "--json", "--format", text("format").unwrap_or("auto"), "-C"]).arg(&tree);
    if let Some(path) = text("path") {
        command.args(["--path", path.trim_start_matches('/')]);
    }
    // Its own settings and state, none of the user's.
    for (name, folder) in [("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")] {
        let folder = place.path().join(folder);
        std::fs::create_dir(&folder)?;
        command.env(name, folder);
    }
    let reply = place.path().join("reply");
    std::fs::write(&reply, text("reply").unwrap_or_default())?;
    let (said, errors) = (place.path().join("said"), place.path().join("errors"));
    let mut child = command
        .stdin(File::open(&reply)?)
        .stdout(File::create(&said)?)
        .stderr(File::create(&errors)?)
        .spawn()
        .context("jm apply")?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let id = request.get("id");
    let said: Value = serde_json::from_reader(BufReader::new(File::open(&said)?)).unwrap_or_default();
    let list = |name: &str| said.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(match status.code() {
        // Called well, and said aloud why there was nothing to do.
        Some(0) if list("applied").is_empty() && !list("unchanged").is_empty() => {
            Some(json!({"id": id, "error": list("unchanged")}))
        }
        Some(0) => Some(json!({"id": id, "files": files(&tree, &tree)?})),
        Some(1) => {
            let files = files(&tree, &tree)?;
            let asked = request.get("files").and_then(Value::as_object).cloned().unwrap_or_default();
            let same = asked.iter().all(|(path, text)| files.get(path.trim_start_matches('/')) == Some(text));
            ensure!(same && asked.len() == files.len(), "jm apply refused and wrote");
            Some(json!({"id": id, "error": list("failed")}))
        }
        Some(2) => Some(json!({"id": id, "error": std::fs::read_to_string(&errors)?})),
        other => bail!("jm apply ended with {other:?}: {}", std::fs::read_to_string(&errors)?),
    })
}

/// Every file of a project.
fn files(root: &Path, directory: &Path) -> anyhow::Result<Map<String, Value>> {
    let mut found = Map::new();
    for entry in std::fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            found.extend(files(root, &path)?);
        } else {
            let name = path.strip_prefix(root)?.display().to_string();
            found.insert(name, Value::String(String::from_utf8_lossy(&std::fs::read(&path)?).into_owned()));
        }
    }
    Ok(found)
}
