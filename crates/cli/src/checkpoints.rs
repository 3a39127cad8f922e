//! `jm checkpoints` and `jm diff`: list and compare the checkpoints of this project.

use journeyman_host::checkpoints::{CheckpointDiff, MAX_DIFF_BYTES, checkpoint_to_json};
use journeyman_host::config::Environment;
use journeyman_host::format::{format_binary_size, preview, printable};
use journeyman_host::report_text;
use journeyman_host::root::project_root;
use journeyman_host::state::format_minute;
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::FileChangeKind;
use journeyman_workspace::{CheckpointId, CheckpointInfo, Diff, DiffFileStat, StorageUsage};

use crate::args::{CheckpointsArgs, DiffArgs};
use crate::color::{self, Paint};
use crate::output;
use crate::runtime::open_state;

/// Columns of `+` and `-` for the file with the most changed lines.
const MAX_BAR_COLUMNS: usize = 40;

pub(crate) fn list_checkpoints(environment: &Environment, args: &CheckpointsArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&project_root(environment, args.project.directory.as_deref())?)?;
    let checkpoints = workspace.checkpoints().context("the checkpoints")?;
    if checkpoints.is_empty() && !args.json {
        errln!("no checkpoints yet in this directory; `jm run` makes one before it changes anything");
    }
    let paint = color::stdout_paint();
    let width = checkpoints.last().map_or(0, |newest| newest.id.to_string().len());
    for checkpoint in checkpoints.iter().rev().take(args.limit) {
        if args.json {
            outln!("{}", checkpoint_to_json(checkpoint));
        } else {
            outln!("{}", format_checkpoint(checkpoint, width, paint));
        }
    }
    if !args.json && !checkpoints.is_empty() {
        let storage = workspace.history().storage_usage().context("what is kept")?;
        outln!("{}", paint.dim(&format_storage(storage, args.limit, checkpoints.len())));
    }
    Ok(0)
}

fn format_checkpoint(checkpoint: &CheckpointInfo, width: usize, paint: Paint) -> String {
    let CheckpointInfo { id, session, label, at, changes, descriptions, whole, readable } = checkpoint;
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
    let label = printable(&label).replace(['\n', '\t'], " ");
    let mut text = format!("{number}  {at}  {session}  {changes:<17}  {label}{lost}");
    for why in descriptions {
        text.push_str(&format!("\n{:>width$}  {}", "", paint.dim(&preview(why))));
    }
    text
}

/// Formats the disk space of kept contents, and a hint for the rest of the list.
fn format_storage(storage: StorageUsage, limit: usize, count: usize) -> String {
    let StorageUsage { bytes, limit_bytes } = storage;
    let more =
        if count > limit { format!("; {} older ones with --limit", count - limit) } else { String::new() };
    let over = if bytes > limit_bytes { ": the newest alone take more than that" } else { "" };
    format!("kept for undo: {} of {}{over}{more}", format_binary_size(bytes), format_binary_size(limit_bytes))
}

pub(crate) async fn diff(environment: &Environment, args: &DiffArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let workspace =
        dirs.open_workspace(&project_root(environment, args.answer.project.directory.as_deref())?)?;
    let compared = CheckpointDiff::new(&workspace, args.from.map(CheckpointId), args.to.map(CheckpointId))?;
    if args.answer.json {
        outln!("{}", compared.to_json(!args.stat));
        return Ok(0);
    }
    let diff = compared.diff;
    let paint = color::stdout_paint();
    if args.stat {
        output::write_stdout(&format_stat(&diff, paint));
    } else {
        output::page_diff(&diff.text);
    }
    let changed = diff.files.iter().map(|file| &file.path);
    err!("{}", report_text::list_executed_files(changed, color::stderr_paint()));
    for path in &diff.lost {
        errln!("{path}: a content of it isn't kept any more or is damaged, so that it is only named");
    }
    if diff.truncated && !args.stat {
        errln!("the diff is longer than {MAX_DIFF_BYTES} bytes and was cut; --stat names every file");
    }
    Ok(0)
}

/// Formats one line per file like `git diff --stat`, and a total.
fn format_stat(diff: &Diff, paint: Paint) -> String {
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
            let (added, removed) = format_bar(file, most);
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

/// Formats the `+` and `-` signs for a file, scaled to `most` lines.
fn format_bar(file: &DiffFileStat, most: usize) -> (String, String) {
    let scaled = |lines: usize| match lines {
        0 => 0,
        _ if most <= MAX_BAR_COLUMNS => lines,
        _ => (lines * MAX_BAR_COLUMNS / most).max(1),
    };
    ("+".repeat(scaled(file.added)), "-".repeat(scaled(file.removed)))
}
