//! Applying parsed edits: planned for all files, written in one step.

use std::collections::BTreeSet;

use journeyman_edit::{AppliedOp, ApplyOptions, Edit, EditOp, EditPlan, FileChange, Strategy, plan_edits};
use journeyman_policy::secrets::SECRET_MASK;
use journeyman_protocol::{ContentHash, Effects, RelPath, clip_to_bytes};
use journeyman_workspace::{Change, ChangeSet, ExpectedState, Workspace, unified_diff};

use crate::excerpt::to_one_line;
use crate::project_files::ProjectFiles;
use crate::stale::refuse_stale;
use crate::{SeenStatus, ToolContext, ToolError, ToolOutput};

/// Maximum bytes of a note on one edit, and of the problems of one call.
const MAX_NOTE_BYTES: usize = 2_400;
/// Maximum number of files that a summary names.
const MAX_NAMED_FILES: usize = 3;
/// Maximum bytes of a path, and of a description, in a summary.
const MAX_SUMMARY_BYTES: usize = 120;

/// Returns the effects of edits: the files that they read and write.
pub(crate) fn edit_effects(edits: &[Edit]) -> Effects {
    let mut writes = BTreeSet::new();
    for edit in edits {
        writes.insert(edit.path.clone());
        let targets = edit.ops.iter().filter_map(|op| match op {
            EditOp::Rename { to } => Some(to.clone()),
            _ => None,
        });
        writes.extend(targets);
    }
    let writes: Vec<RelPath> = writes.into_iter().collect();
    Effects { reads: writes.clone(), writes, ..Effects::default() }
}

/// Applies edits of any number of files, all of them or none.
///
/// # Errors
/// [`ToolError::Plan`] where an edit has no place, and the errors of [`refuse_stale`] and of the
/// workspace.
pub(crate) fn apply_edits(
    context: &ToolContext,
    edits: &[Edit],
    description: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let files = ProjectFiles::new(&context.workspace);
    let mut known = BTreeSet::new();
    for path in edits.iter().map(|edit| &edit.path).collect::<BTreeSet<_>>() {
        let Some(content) = files.content(path)? else { continue };
        refuse_stale(context, path, &content)?;
        if context.seen.compare(path, &content.hash) == SeenStatus::Current {
            known.insert(path.clone());
        }
    }
    let plan = plan_edits(edits, &ApplyOptions::default(), &files);
    if !plan.failed.is_empty() {
        return Err(ToolError::Plan { problems: describe_failures(&plan) });
    }
    if plan.changes.is_empty() {
        return Ok(ToolOutput::text(describe_plan(&plan)));
    }
    for change in &plan.changes {
        let has_mask = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains(SECRET_MASK));
        if has_mask(&change.after) && !has_mask(&change.before) {
            return Err(ToolError::Masked { path: change.path.clone() });
        }
    }
    let changes = files.changes_of(&plan)?;
    let written: Vec<(RelPath, ContentHash)> = changes.iter().filter_map(written_content).collect();
    let applied = context.workspace.apply(ChangeSet {
        call: Some(context.call.clone()),
        session: context.session.clone(),
        description,
        changes,
    })?;
    context.seen.note_changes(&context.workspace, &applied.changes);
    for change in &plan.changes {
        let Some(after) = &change.after else { continue };
        let hash = written.iter().find(|(path, _)| *path == change.path).map(|(_, hash)| *hash);
        let hash = match hash {
            Some(hash) => hash,
            None => match files.content(&change.path)? {
                Some(old) => old.hash,
                None => continue,
            },
        };
        if change.before.is_none() || known.contains(&change.path) {
            let path = change.to.as_ref().unwrap_or(&change.path);
            context.seen.record_text(path.clone(), hash, after);
        }
    }
    Ok(ToolOutput::text(describe_plan(&plan)).with_changes(&context.workspace, applied.changes))
}

fn written_content(change: &Change) -> Option<(RelPath, ContentHash)> {
    match change {
        Change::Write { path, content, .. } => Some((path.clone(), ContentHash::of(content))),
        _ => None,
    }
}

/// Returns the changes that edits would make, as a unified diff; `None` where they make none.
///
/// # Errors
/// [`ToolError::Plan`] where an edit has no place.
pub(crate) fn diff_edits(workspace: &Workspace, edits: &[Edit]) -> Result<Option<String>, ToolError> {
    let plan = plan_edits(edits, &ApplyOptions::default(), &ProjectFiles::new(workspace));
    if !plan.failed.is_empty() {
        return Err(ToolError::Plan { problems: describe_failures(&plan) });
    }
    if plan.changes.is_empty() {
        return Ok(None);
    }
    let diff = |change: &FileChange| {
        let (before, after) =
            (change.before.as_deref().map(str::as_bytes), change.after.as_deref().map(str::as_bytes));
        let moved = change.to.as_ref().map(|to| format!("rename from {}\nrename to {to}\n", change.path));
        format!("{}{}", moved.unwrap_or_default(), unified_diff(&change.path, before, after))
    };
    Ok(Some(plan.changes.iter().map(diff).collect()))
}

fn describe_failures(plan: &EditPlan) -> String {
    let messages: Vec<&str> = plan.failed.iter().map(|failure| failure.message.as_str()).collect();
    clip_to_bytes(&messages.join("\n"), MAX_NOTE_BYTES).to_owned()
}

/// Describes the outcome for each file, and differences from the model's text.
fn describe_plan(plan: &EditPlan) -> String {
    let mut report = String::new();
    for change in &plan.changes {
        let path = &change.path;
        report.push_str(&match (&change.before, &change.after, &change.to) {
            (_, None, _) => format!("Deleted {path}\n"),
            (None, Some(_), _) => format!("Created {path}\n"),
            (Some(old), Some(new), Some(to)) if old == new => format!("Moved {path} to {to}\n"),
            (_, _, Some(to)) => format!("Edited {path}, now {to}\n"),
            _ => format!("Edited {path}\n"),
        });
        let placed = change.notes.iter().filter(|note| note.strategy.is_some()).count();
        for note in placement_notes(&change.notes, placed > 1) {
            report.push_str(&format!("{note}\n"));
        }
        if let Some(broken) = &change.broken {
            report.push_str(&broken_syntax_note(broken.line, &broken.message));
        }
    }
    for same in &plan.unchanged {
        report.push_str(&format!("{} is unchanged: {}\n", same.path, same.reason));
    }
    report
}

/// Returns a note that a change broke a file's syntax.
pub(crate) fn broken_syntax_note(line: u32, message: &str) -> String {
    let message = clip_to_bytes(message, MAX_NOTE_BYTES);
    format!("careful: the file parsed before and doesn't now: line {line}: {message}\n")
}

/// Returns a note for each edit that wasn't placed exactly, or had nothing to do.
pub(crate) fn placement_notes(placed: &[AppliedOp], several: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for AppliedOp { op, strategy, line, count, note } in placed {
        let which = if several { format!("edit {}: ", op + 1) } else { String::new() };
        let said = note
            .as_deref()
            .map_or(String::new(), |note| format!(": {}", clip_to_bytes(note, MAX_NOTE_BYTES)));
        match strategy {
            None if *count == 0 => notes.push(format!("{which}unchanged{said}")),
            Some(Strategy::Symbol) => notes.push(format!("{which}line {line}{said}")),
            Some(strategy) if *strategy != Strategy::Exact => {
                notes.push(format!("{which}line {line} didn't match exactly; placed by {strategy}{said}"));
            }
            _ => {}
        }
        if *count > 1 {
            notes.push(format!("{which}{count} places"));
        }
    }
    notes
}

impl ProjectFiles<'_> {
    /// Returns a plan's changes for the workspace, in the file's own encoding. Each expects the
    /// content that was planned with. Deletions come first, so that a path may be used again.
    ///
    /// # Errors
    /// [`ToolError::Encode`] for a character that a file's encoding lacks, and errors of reading.
    pub fn changes_of(&self, plan: &EditPlan) -> Result<Vec<Change>, ToolError> {
        let (mut deleted, mut changes) = (Vec::new(), Vec::new());
        for change in plan.changes_to_write() {
            let old = self.content(&change.path)?;
            let expected = old.as_ref().map_or(ExpectedState::Absent, |old| ExpectedState::Hash(old.hash));
            let path = change.path.clone();
            let Some(after) = &change.after else {
                deleted.push(Change::Delete { path, expected });
                continue;
            };
            if change.before.as_ref() != Some(after) {
                let content = match &old {
                    Some(old) => old
                        .encode(after)
                        .map_err(|source| ToolError::Encode { path: path.clone(), source })?,
                    None => after.clone().into_bytes(),
                };
                changes.push(Change::Write { path: path.clone(), content, expected });
            }
            if let Some(to) = &change.to {
                changes.push(Change::Rename { from: path, to: to.clone() });
            }
        }
        deleted.append(&mut changes);
        Ok(deleted)
    }
}

/// Returns one line about a call for people: the files, and the reason if one was given.
#[must_use]
pub fn summarize_files(verb: &str, paths: &[String], why: Option<&str>) -> String {
    let mut named: Vec<String> =
        paths.iter().take(MAX_NAMED_FILES).map(|path| to_one_line(path, MAX_SUMMARY_BYTES)).collect();
    if paths.len() > MAX_NAMED_FILES {
        named.push(format!("{} more", paths.len() - MAX_NAMED_FILES));
    }
    let why = why.map(str::trim).filter(|why| !why.is_empty());
    let why = why.map_or(String::new(), |why| format!(": {}", to_one_line(why, MAX_SUMMARY_BYTES)));
    format!("{verb} {}{why}", named.join(", "))
}
