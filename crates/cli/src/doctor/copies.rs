//! Which ways of copying a project work here, and which copies there are.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_host::Context as _;
use journeyman_host::config::{Config, Environment};
use journeyman_protocol::SessionId;
use journeyman_workspace::{Means, Options, Tier, Workspace, WorkspaceError, landed_copies};
use serde_json::{Value, json};

use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::{StateDirs, now};

/// Files whose size is added up in one copy; larger ones are said to be at least so large.
const MAX_SIZED: usize = 200_000;

/// Tries each way on a project of one file beside the state directory's own files, where copies lie.
pub(super) fn tiers(
    environment: &Environment,
    dirs: &StateDirs,
    config: &Config,
) -> Result<Vec<Value>, HostError> {
    let place = dirs.dir.join(format!("copy-probe-{}", std::process::id()));
    let probed = probe(environment, dirs, config, &place);
    // What is left of it says so by its name.
    std::fs::remove_dir_all(&place).ok();
    probed
}

fn probe(
    environment: &Environment,
    dirs: &StateDirs,
    config: &Config,
    place: &Path,
) -> Result<Vec<Value>, HostError> {
    let root = place.join("project");
    DirBuilder::new().recursive(true).mode(0o700).create(&root).context("trying copies")?;
    std::fs::write(root.join("file"), b"probe\n").context("trying copies")?;
    let options = Options::new(place.join("state"), Arc::clone(&dirs.blobs));
    let workspace = Workspace::open(&root, options).context("trying copies")?;
    let sandbox = Arc::new(dirs.sandbox(config)?);
    let git = environment.has_program("git").then(|| Git::new(&root, Arc::clone(&sandbox)));
    let mut tiers = Vec::new();
    for tier in Tier::ALL {
        let session = SessionId::new(now(), fastrand::u64(..));
        let means = Means { sandbox: &sandbox, git: git.as_ref(), tiers: &[tier] };
        let problem = match workspace.isolate(&session, &means) {
            Ok(copy) => {
                drop(copy);
                workspace.discard_copy(&session).err().map(|error| error.to_string())
            }
            Err(WorkspaceError::NoCopy { reasons }) => {
                Some(reasons.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>().join("; "))
            }
            Err(error) => Some(error.to_string()),
        };
        // A project that isn't in a repository has nothing to check out; elsewhere it may well work.
        let problem = problem.filter(|_| tier != Tier::Worktree || git.is_none());
        tiers.push(json!({ "tier": tier.to_string(), "works": problem.is_none(), "problem": problem }));
    }
    Ok(tiers)
}

/// The copies of all projects, with the bytes that each takes on the disk.
pub(super) fn kept(state_dir: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for project in directories(&state_dir.join("projects")) {
        // What can't be looked at is told as damage.
        let landed = landed_copies(&project).unwrap_or_default();
        for copy in directories(&project.join("work")) {
            let session = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let landed = landed.iter().any(|landed| landed.as_str() == session);
            let (directory, bytes) = (copy.display().to_string(), size(&copy));
            all.push(json!({ "session": session, "directory": directory, "bytes": bytes, "landed": landed }));
        }
    }
    all
}

fn directories(of: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(of) else { return Vec::new() };
    let directories =
        entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<_> = directories.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Blocks on the disk, as `du` counts them; links are not followed.
fn size(dir: &Path) -> u64 {
    let (mut bytes, mut seen, mut waiting) = (0, 0, vec![dir.to_owned()]);
    while let Some(next) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            if seen > MAX_SIZED {
                return bytes;
            }
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * 512;
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    bytes
}

pub(super) fn print(copies: &Value) {
    let paint = color::stdout();
    let list = |key: &str| copies.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(problem) = copies.get("problem").and_then(Value::as_str) {
        say!("  {} {problem}", paint.red("✗"));
    }
    for tier in list("tiers") {
        let name = text(&tier, "tier");
        match tier.get("problem").and_then(Value::as_str) {
            Some(problem) => say!("  {} {name:<9} {}", paint.yellow("–"), paint.dim(problem)),
            None => say!("  {} {name}", paint.green("✓")),
        }
    }
    for copy in list("kept") {
        let bytes = copy.get("bytes").and_then(Value::as_u64).unwrap_or_default();
        let what = match copy.get("landed").and_then(Value::as_bool) {
            Some(true) => "landed, to be removed by the next command:",
            _ => "kept:",
        };
        say!(
            "  {what} session {} ({} KiB in {})",
            text(&copy, "session"),
            bytes / 1024,
            text(&copy, "directory")
        );
    }
}
