//! `jm undo` and `jm redo`.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::format_count;
use journeyman_host::undo::{self, UndoResult};
use journeyman_protocol::FileChangeKind;
use journeyman_terminal::stdout_paint;
use journeyman_tui::line_prompts::TerminalPrompts;
use journeyman_workspace::CheckpointId;

use crate::args::{RedoArgs, UndoArgs};
use crate::output::write_report;
use crate::runtime::open_state;

/// Maximum number of files that are named; the last line counts all.
const MAX_LISTED_FILES: usize = 20;

pub(crate) async fn undo(environment: &Environment, args: &UndoArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let directory = args.directory.as_deref();
    if let Some(number) = args.to {
        let checkpoint = CheckpointId(number);
        let undone = undo::undo_to_checkpoint(environment, &dirs, checkpoint, directory).await?;
        return Ok(print_undone(&undone, UndoCommand::UndoTo(checkpoint)));
    }
    let prompts = TerminalPrompts::if_attended();
    let undone = undo::undo_session(environment, &dirs, args.session.as_deref(), directory, prompts).await?;
    let Some(undone) = undone else {
        errln!("nothing was taken back");
        return Ok(1);
    };
    Ok(print_undone(&undone, UndoCommand::Undo))
}

pub(crate) async fn redo(environment: &Environment, args: &RedoArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let redone = undo::redo(environment, &dirs, args.session.as_deref(), args.directory.as_deref()).await?;
    Ok(print_undone(&redone, UndoCommand::Redo))
}

/// The command whose result is printed.
#[derive(Debug, Clone, Copy)]
enum UndoCommand {
    Undo,
    UndoTo(CheckpointId),
    Redo,
}

fn print_undone(undone: &UndoResult, kind: UndoCommand) -> u8 {
    let UndoResult { report, steps, violations, .. } = undone;
    let paint = stdout_paint();
    for violation in violations {
        outln!("a command that was cut off did what it may not: {violation}");
    }
    for change in report.restored.iter().take(MAX_LISTED_FILES) {
        let what = match (change.kind, kind) {
            (FileChangeKind::Added, UndoCommand::Undo | UndoCommand::UndoTo(_)) => "brought back",
            (FileChangeKind::Modified, UndoCommand::Undo | UndoCommand::UndoTo(_)) => "restored",
            (FileChangeKind::Deleted, _) => "removed",
            (FileChangeKind::Added, UndoCommand::Redo) => "added",
            (FileChangeKind::Modified, UndoCommand::Redo) => "changed",
        };
        outln!("{what} {}", change.path);
    }
    if let Some(more) = report.restored.len().checked_sub(MAX_LISTED_FILES).filter(|more| *more > 0) {
        outln!("… and {}", format_count(more, "more file"));
    }
    let kept = paint.yellow("kept");
    for (path, reason) in &report.conflicts {
        outln!("{kept} {path}: {reason}");
    }
    if report.dropped {
        outln!("{kept} older changes of this session: their earlier contents aren't stored any more");
    }
    if report.damaged {
        outln!(
            "{kept} what damaged lines of the journal may have recorded: the undo is incomplete; see: jm doctor"
        );
    }
    undone.commit_notes().for_each(|note| write_report(&format!("{note}\n")));
    let whose = undone.describe_sessions();
    let files = format_count(report.restored.len(), "file");
    let done = match kind {
        UndoCommand::Undo => "taken back".to_owned(),
        UndoCommand::UndoTo(checkpoint) => format!("taken back to checkpoint {checkpoint}"),
        UndoCommand::Redo => "done again".to_owned(),
    };
    write_report(&format!("{whose}: {files} {done}\n"));
    if !report.restored.is_empty() {
        let other = if matches!(kind, UndoCommand::Redo) { "undo" } else { "redo" };
        let times = if *steps > 1 { format!(", {steps} times") } else { String::new() };
        outln!("{}", paint.dim(&format!("take that back with: jm {other}{times}")));
    }
    u8::from(undone.is_incomplete())
}
