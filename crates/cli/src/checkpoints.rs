//! `jm checkpoints` and `jm diff`: list and compare the checkpoints of this project.

use journeyman_host::checkpoints::{CheckpointDiff, MAX_DIFF_BYTES, checkpoint_to_json};
use journeyman_host::config::Environment;
use journeyman_host::format::{format_binary_size, format_count, preview, printable};
use journeyman_host::report_text;
use journeyman_host::root::project_root;
use journeyman_host::state::format_minute;
use journeyman_host::{Context as _, HostError};
use journeyman_terminal::{FileStat, Paint, stat_lines, stderr_paint, stdout_paint};
use journeyman_workspace::{CheckpointId, CheckpointInfo, Diff, StorageUsage};

use crate::args::{CheckpointsArgs, DiffArgs};
use crate::output;
use crate::runtime::open_state;

pub(crate) fn list_checkpoints(environment: &Environment, args: &CheckpointsArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let workspace = dirs.open_workspace(&project_root(environment, args.project.directory.as_deref())?)?;
    let checkpoints = workspace.checkpoints().context("the checkpoints")?;
    if checkpoints.is_empty() && !args.json {
        errln!("no checkpoints yet in this directory; `jm run` makes one before it changes anything");
    }
    let paint = stdout_paint();
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
        some => format!("{} since", format_count(some, "change")),
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
    let paint = stdout_paint();
    if args.stat {
        output::write_stdout(&format_stat(&diff, paint));
    } else {
        output::page_diff(&diff.text);
    }
    let changed = diff.files.iter().map(|file| &file.path);
    err!("{}", report_text::list_executed_files(changed, stderr_paint()));
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
    let files = diff.files.iter().map(|file| FileStat {
        name: file.path.to_string(),
        kind: file.kind,
        added: file.added,
        removed: file.removed,
        is_opaque: file.opaque,
    });
    let mut out = String::new();
    for line in stat_lines(&files.collect::<Vec<_>>()) {
        out.push_str(&format!("{}\n", paint.paint_line(&line)));
    }
    let count = diff.files.len();
    let files = if count == 1 { "file differs" } else { "files differ" };
    let (added, removed) = (format_count(diff.added, "line"), diff.removed);
    out.push_str(&format!(" {count} {files}, {added} added, {removed} removed\n"));
    out
}
