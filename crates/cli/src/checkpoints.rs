//! `jm checkpoints` and `jm diff`: what the journal of this project knows.

use crate::runtime::open_state;
use journeyman_agent::BEFORE_THE_RUN;
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_protocol::FileChangeKind;
use journeyman_sandbox::clean;
use journeyman_workspace::{CheckpointId, CheckpointInfo, Diff, DiffFile, Storage};

use crate::args::{CheckpointsArgs, DiffArgs};
use crate::color::{self, Paint};
use crate::stdout::{self, say};
use crate::summary;
use journeyman_host::HostError;
use journeyman_host::state::{format_minute, project_root};

/// Bytes of diff that are printed. More isn't read by anybody, and a narrower question can be
/// asked.
const MAX_DIFF: usize = 16 * 1024 * 1024;
/// Columns of `+` and `-` for the file with the most changed lines.
const BAR: usize = 40;

pub(crate) fn list(environment: &Environment, args: &CheckpointsArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&project_root(environment, args.directory.as_deref())?)?;
    let checkpoints = workspace.checkpoints().context("the checkpoints")?;
    if checkpoints.is_empty() && !args.json {
        tell!("no checkpoints yet in this directory; `jm run` makes one before it changes anything");
    }
    let paint = color::stdout();
    let width = checkpoints.last().map_or(0, |newest| newest.id.to_string().len());
    for checkpoint in checkpoints.iter().rev().take(args.limit) {
        if args.json {
            let CheckpointInfo { id, session, label, at, changes, whole, readable } = checkpoint;
            let object = serde_json::json!({
                "id": id, "session": session, "label": label, "at": at, "changes": changes, "whole": whole,
                "readable": readable,
            });
            say!("{object}");
        } else {
            say!("{}", line(checkpoint, width, paint));
        }
    }
    if !args.json && !checkpoints.is_empty() {
        let storage = workspace.history().storage().context("what is kept")?;
        say!("{}", paint.dim(&kept(storage, args.limit, checkpoints.len())));
    }
    Ok(0)
}

fn line(checkpoint: &CheckpointInfo, width: usize, paint: Paint) -> String {
    let CheckpointInfo { id, session, label, at, changes, whole, readable } = checkpoint;
    let number = paint.bold(&format!("{id:>width$}"));
    // As wide as a time is.
    let at = paint.dim(&at.map_or_else(|| format!("{:<16}", "-"), format_minute));
    let changes = match changes {
        0 => "no changes since".to_owned(),
        1 => "1 change since".to_owned(),
        many => format!("{many} changes since"),
    };
    let lost = match (readable, whole) {
        (true, true) => String::new(),
        (true, false) => paint.yellow("  (contents missing)"),
        (false, _) => paint.yellow("  (damaged: its list of files can't be read)"),
    };
    // One line, whatever it says.
    let label = clean(label.as_bytes()).replace(['\n', '\t'], " ");
    format!("{number}  {at}  {session}  {changes:<17}  {label}{lost}")
}

/// Says how much disk space the kept contents take, and where the rest of the list is.
fn kept(storage: Storage, limit: usize, count: usize) -> String {
    let Storage { bytes, limit_bytes } = storage;
    let more =
        if count > limit { format!("; {} older ones with --limit", count - limit) } else { String::new() };
    let over = if bytes > limit_bytes { ": the newest alone take more than that" } else { "" };
    format!("kept for undo: {} of {}{over}{more}", size(bytes), size(limit_bytes))
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            return format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
        }
    }
    format!("{bytes} bytes")
}

pub(crate) fn diff(environment: &Environment, args: &DiffArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&project_root(environment, args.directory.as_deref())?)?;
    let from = match args.from {
        Some(number) => CheckpointId(number),
        None => before_newest_run(&workspace.checkpoints().context("the checkpoints")?)?,
    };
    let to = args.to.map(CheckpointId);
    let diff = workspace.history().diff_between(&from, to.as_ref(), MAX_DIFF).context("diff")?;
    if args.json {
        say!("{}", json(from, to, &diff, args.stat));
        return Ok(0);
    }
    let paint = color::stdout();
    if args.stat {
        stdout::write(&stat(&diff, paint));
    } else {
        for line in clean(diff.text.as_bytes()).lines() {
            say!("{}", summary::colored(line, paint));
        }
    }
    let changed = diff.files.iter().map(|file| &file.path);
    tell_part!("{}", summary::runs_code(changed, color::stderr()));
    for path in &diff.lost {
        tell!("{path}: a content of it isn't kept any more or is damaged, so that it is only named");
    }
    if diff.truncated && !args.stat {
        tell!("the diff is longer than {MAX_DIFF} bytes and was cut; --stat names every file");
    }
    Ok(0)
}

/// The first checkpoint of the newest run.
fn before_newest_run(checkpoints: &[CheckpointInfo]) -> Result<CheckpointId, HostError> {
    let newest = checkpoints.last().map(|newest| &newest.session);
    let ours = || checkpoints.iter().filter(|checkpoint| Some(&checkpoint.session) == newest);
    // A session that was gone on with has several runs.
    let first = ours().rev().find(|checkpoint| checkpoint.label == BEFORE_THE_RUN).or_else(|| ours().next());
    let missing = "there is no checkpoint in this directory to compare with; `jm run` makes one before it changes \
                   anything";
    first.map(|first| first.id).ok_or_else(|| HostError::failed(missing))
}

fn json(from: CheckpointId, to: Option<CheckpointId>, diff: &Diff, stat: bool) -> serde_json::Value {
    let files = diff.files.iter().map(|file| {
        serde_json::json!({
            "path": file.path, "kind": file.kind, "added": file.added, "removed": file.removed, "binary": file.opaque,
        })
    });
    let mut object = serde_json::json!({
        "from": from, "to": to, "added": diff.added, "removed": diff.removed, "lost": diff.lost,
        "files": files.collect::<Vec<_>>(),
    });
    if let Some(object) = object.as_object_mut().filter(|_| !stat) {
        object.insert("truncated".to_owned(), diff.truncated.into());
        object.insert("diff".to_owned(), diff.text.clone().into());
    }
    object
}

/// A line a file, as `git diff --stat` has it, and the sum.
fn stat(diff: &Diff, paint: Paint) -> String {
    let names: Vec<String> = diff.files.iter().map(|file| file.path.to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let most = diff.files.iter().map(|file| file.added + file.removed).max().unwrap_or_default();
    let digits = most.to_string().len().max(3);
    let mut out = String::new();
    for (file, name) in diff.files.iter().zip(&names) {
        let what = match file.kind {
            FileChangeKind::Added => " (new)",
            FileChangeKind::Deleted => " (gone)",
            FileChangeKind::Modified => "",
        };
        let lines = if file.opaque {
            format!("{:>digits$}", "bin")
        } else {
            let (added, removed) = bar(file, most);
            format!("{:>digits$} {}{}", file.added + file.removed, paint.green(&added), paint.red(&removed))
        };
        let padding = " ".repeat(width - name.chars().count().min(width));
        out.push_str(&format!(" {name}{padding} | {lines}{}\n", paint.dim(what)));
    }
    let count = diff.files.len();
    let files = if count == 1 { "file differs" } else { "files differ" };
    let lines = if diff.added == 1 { "line" } else { "lines" };
    out.push_str(&format!(" {count} {files}, {} {lines} added, {} removed\n", diff.added, diff.removed));
    out
}

/// Signs for a file's lines, scaled to the longest.
fn bar(file: &DiffFile, most: usize) -> (String, String) {
    let scaled = |lines: usize| match lines {
        0 => 0,
        _ if most <= BAR => lines,
        _ => (lines * BAR / most).max(1),
    };
    ("+".repeat(scaled(file.added)), "-".repeat(scaled(file.removed)))
}
