//! The rank of the files that an issue's fix changes: real issues and commits, ranked by the index
//! and scored by the data's own `score.py`.
//!
//! Data that a clone lacks is named by an option or its variable: the data (`--data`,
//! `JM_RECALL_DATA`: `public.jsonl` and `score.py`) and clones of its repositories (`--mirror`,
//! `RB_MIRROR`). `score.py` needs Python with numpy (`--python`, `JM_RECALL_PYTHON`). Without data
//! or clones it is skipped and says so; with `JM_REQUIRE_ALL=1` that fails. `--limit N` ranks about
//! N rows of all repositories. A run that was broken off goes on where it was.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

/// The bounds, in per cent over all rows: R@1, R@5, MRR.
const BOUNDS: [(&str, usize, f64); 3] = [("R@1", 0, 60.0), ("R@5", 1, 86.0), ("MRR", 5, 76.0)];
/// The least MRR of each language, as a share of the mean.
const LEAST_OF_MEAN: f64 = 0.8;

/// Fails where a bound is missed.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (mut data, mut mirror, mut limit) = (named("JM_RECALL_DATA"), named("RB_MIRROR"), None);
    let mut python = named("JM_RECALL_PYTHON").unwrap_or_else(|| "python3".into());
    for pair in options.chunks(2) {
        let [option, value] = pair else { bail!("{} needs a value", pair.join(" ")) };
        match *option {
            "--data" => data = Some(std::path::absolute(value)?),
            "--mirror" => mirror = Some(std::path::absolute(value)?),
            "--python" => python = value.into(),
            "--limit" => limit = Some(value.parse::<usize>().context("--limit takes a number of rows")?),
            other => bail!("there is no option {other}; there are --data, --mirror, --python, --limit"),
        }
    }
    let (Some(data), Some(mirror)) = (data, mirror) else {
        ensure!(
            std::env::var_os("JM_REQUIRE_ALL").is_none_or(|all| all != "1"),
            "it needs --data DIR and --mirror DIR"
        );
        println!("skipped: it needs --data DIR and --mirror DIR (see `xtask/src/bench/recall.rs`)");
        return Ok(());
    };
    check_scorer(&python, &data)?;
    let package = ["--package", "journeyman-index", "--example", "recall"];
    let words: Vec<&str> = ["build", "--release", "--locked"].into_iter().chain(package).collect();
    crate::cargo(&words, &[])?;
    let ranked = rank(&data.join("public.jsonl"), &mirror, limit)?;
    let scored = Command::new(&python)
        .arg(data.join("score.py"))
        .arg(&ranked)
        .env("RB_MIRROR", &mirror)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .with_context(|| format!("{} could not be started", python.display()))?;
    let text = String::from_utf8_lossy(&scored.stdout);
    print!("{text}");
    ensure!(scored.status.success(), "score.py failed: {}", String::from_utf8_lossy(&scored.stderr));
    judge(&text, limit.is_some())
}

/// Checks that the scorer can run, before rows are ranked for half an hour.
fn check_scorer(python: &Path, data: &Path) -> anyhow::Result<()> {
    for name in ["public.jsonl", "score.py"] {
        ensure!(data.join(name).is_file(), "there is no {name} in {}", data.display());
    }
    let numpy = Command::new(python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    let numpy = numpy.with_context(|| format!("{} could not be started", python.display()))?;
    ensure!(numpy.success(), "{} has no numpy: name one that has it with --python", python.display());
    Ok(())
}

/// Ranks the rows, and gives the ranking's file. What a run that was broken off has ranked is kept,
/// while the program, the rows and the mirror are the same.
fn rank(rows: &Path, mirror: &Path, limit: Option<usize>) -> anyhow::Result<PathBuf> {
    let program = super::target().join("release/examples/recall");
    let mut key = DefaultHasher::new();
    for part in [&program, rows] {
        std::fs::read(part).with_context(|| part.display().to_string())?.hash(&mut key);
    }
    (mirror, limit).hash(&mut key);
    let keep = super::target().join("bench-recall");
    std::fs::create_dir_all(&keep)?;
    let part = keep.join(format!("{:016x}.part", key.finish()));
    let mut command = Command::new(&program);
    command.arg(rows).arg(mirror).arg(&part).arg("--go-on");
    if let Some(limit) = limit {
        command.args(["--limit", &limit.to_string()]);
    }
    ensure!(command.status().context("recall")?.success(), "the rows could not be ranked");
    let ranked = keep.join("ranked.jsonl");
    std::fs::rename(&part, &ranked)?;
    println!("the ranking is in {}", ranked.display());
    Ok(ranked)
}

/// Holds what `score.py` prints against the bounds; of a part of the rows only those that were
/// answered.
fn judge(text: &str, part: bool) -> anyhow::Result<()> {
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let figures = line.split("n=").nth(1)?.split_whitespace().skip_while(|word| !word.contains('.'));
        Some(figures.filter_map(|word| word.parse().ok()).collect::<Vec<f64>>())
    };
    let all = row(if part { "answered only" } else { "all " }).context("score.py printed no row for all")?;
    let mut missed = Vec::new();
    for (name, place, least) in BOUNDS {
        let reached = *all.get(place).with_context(|| format!("score.py printed no {name}"))?;
        if reached < least {
            missed.push(format!("{name} is {reached}, not {least}"));
        }
    }
    let mean = *all.get(5).context("score.py printed no MRR")?;
    let (mut weakest, mut least) = ("", f64::INFINITY);
    let languages = text.lines().filter_map(|line| line.split_whitespace().next()?.strip_prefix("lang="));
    for language in languages.filter(|_| !part) {
        let figures = row(&format!("lang={language} ")).context("a language's row")?;
        let reached = *figures.get(5).with_context(|| format!("score.py printed no MRR of {language}"))?;
        if reached < mean * LEAST_OF_MEAN {
            missed.push(format!("{language} is under {:.0} % of the mean", LEAST_OF_MEAN * 100.0));
        }
        if reached < least {
            (weakest, least) = (language, reached);
        }
    }
    if !weakest.is_empty() {
        println!("weakest: {weakest}, with {:.1} % of the mean MRR", least / mean * 100.0);
    }
    ensure!(missed.is_empty(), "bounds are missed: {}", missed.join("; "));
    println!(
        "the bounds are held: {}",
        BOUNDS.map(|(name, _, least)| format!("{name} ≥ {least}")).join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "== public: 2 rows, 2 predicted    R@1 R@5\n";

    #[test]
    fn figures_are_held_against_bounds() {
        let good = format!(
            "{HEAD}all                          n=  2   60.5   86.5   90.0   80.0   85.0   76.5\n\
             lang=c                       n=  1   60.5   86.5   90.0   80.0   85.0   70.5\n"
        );
        assert!(judge(&good, false).is_ok());
        let low = judge(&good.replace("60.5   86.5", "60.5   85.5"), false).unwrap_err().to_string();
        assert!(low.contains("R@5 is 85.5"), "{low}");
        let weak = judge(&good.replace("70.5", "40.5"), false).unwrap_err().to_string();
        assert!(weak.contains("c is under 80 %"), "{weak}");
        assert!(judge(HEAD, false).is_err());
    }
}
