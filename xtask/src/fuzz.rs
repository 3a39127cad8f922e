//! `cargo xtask fuzz`: the readers of models' text and the placer, fed with anything.
//!
//! The targets are a crate of their own, `fuzz/`, that `cargo fuzz` builds: on stable Rust, without
//! a sanitizer, for there is no unsafe code to watch. Finds are kept outside of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Default run time of a target, in minutes.
const DEFAULT_MINUTES: u64 = 5;
/// Seconds after which an input counts as hung. This is wall time, and a busy machine may leave a
/// target waiting; the targets themselves compare the processor time with the input's size, and
/// allow far less.
const MAX_INPUT_SECONDS: u32 = 300;
/// Maximum bytes of an input. Longer inputs are seldom worth their time, because the targets repeat
/// theirs.
const MAX_INPUT_BYTES: u32 = 8 << 10;
/// Maximum memory of a target, in MiB.
const MAX_MEMORY_MIB: u32 = 2 << 10;

/// Runs a target by name, or all of them, one after the other, for some minutes each.
pub(crate) fn run(name: &str, minutes: Option<&str>) -> anyhow::Result<()> {
    let minutes = match minutes.map(str::parse::<u64>) {
        None => DEFAULT_MINUTES,
        Some(Ok(minutes)) if minutes > 0 => minutes,
        Some(_) => bail!("the minutes are a whole number above 0"),
    };
    let known = targets()?;
    let chosen: Vec<&String> = known.iter().filter(|target| name == "all" || *target == name).collect();
    if chosen.is_empty() {
        bail!("there is no target `{name}`; there are {}, all", known.join(", "));
    }
    let found = Command::new(cargo()).args(["fuzz", "--version"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        bail!("`cargo fuzz` isn't there: install it with `cargo install cargo-fuzz`");
    }
    let finds = finds()?;
    eprintln!("what is found is kept in {}", finds.display());
    let mut crashed = Vec::new();
    for target in chosen {
        crate::step(&format!("fuzz {target}, {minutes} min"));
        if !fuzz(target, minutes, &finds)? {
            crashed.push(target.as_str());
        }
    }
    if crashed.is_empty() { Ok(()) } else { bail!("inputs were found that break {}", crashed.join(", ")) }
}

/// The targets, by their files.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = crate::root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|end| end == "rs")) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Where inputs are kept from one run to the next: the user's cache, never the repository.
fn finds() -> anyhow::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("journeyman-fuzz"))
}

/// Runs a target; whether nothing broke it.
fn fuzz(target: &str, minutes: u64, finds: &Path) -> anyhow::Result<bool> {
    let corpus = finds.join(target).join("corpus");
    let crashes = finds.join(target).join("crashes");
    for folder in [&corpus, &crashes] {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let root = crate::root();
    let folder = root.join("fuzz");
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let build = |command: &str| {
        let mut cargo = Command::new(cargo());
        cargo.args(["fuzz", command, "--sanitizer", "none", "--fuzz-dir"]).arg(&folder);
        cargo.arg("--target-dir").arg(built.join("fuzz")).current_dir(&folder);
        cargo
    };
    let status = build("build").arg(target).status().context("cargo fuzz could not be started")?;
    if !status.success() {
        bail!("the target {target} doesn't build ({status})");
    }
    let words = root.join("fuzz/words.dict");
    // Inputs to begin with; what is found is only written to the first folder.
    let seeds = match target {
        "plan" => "read",
        other if other.starts_with("read_") => "read",
        other => other,
    };
    let status = build("run")
        .arg(target)
        .args([&corpus, &folder.join("seeds").join(seeds)])
        .arg("--")
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg(format!("-dict={}", words.display()))
        .arg(format!("-max_total_time={}", minutes * 60))
        .args([format!("-timeout={MAX_INPUT_SECONDS}"), format!("-max_len={MAX_INPUT_BYTES}")])
        .args([format!("-rss_limit_mb={MAX_MEMORY_MIB}"), "-print_final_stats=1".to_owned()])
        .status()
        .context("cargo fuzz could not be started")?;
    if !status.success() {
        eprintln!(
            "{target} broke ({status}). The input is in {}; to see it again: cargo fuzz run --sanitizer none --fuzz-dir \
             fuzz {target} FILE",
            crashes.display()
        );
    }
    Ok(status.success())
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
