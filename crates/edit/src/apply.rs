//! A whole reply: read, placed in all of its files, and all of it or nothing.

use std::collections::BTreeMap;

use journeyman_protocol::RelPath;

use crate::change::{FileOps, OpsOutcome, apply_ops, to_ops};
use crate::edit::{Edit, EditOp, OpContext};
use crate::feedback::describe_failure;
use crate::files::{FileProblem, Files, exists};
use crate::formats::block::BlockProblem;
use crate::formats::{Format, ParsedReply, ReplySource, read_reply};
use crate::outcome::OtherEditsFate;
use crate::placement::AllowedDifferences;
use crate::plan::{ChangeKind, EditFailure, EditPlan, FileChange, UnchangedFile};

/// Options for applying a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// The format; `None` to tell it from the reply.
    pub format: Option<Format>,
    /// The file that is meant where the reply names none, or names one that isn't there while this
    /// one is.
    pub path: Option<RelPath>,
    /// Keep what can be done where not everything can.
    pub partial: bool,
    /// The reply was cut off: a block that isn't closed is never taken.
    pub cut_off: bool,
    /// Differences that are refused unless allowed here.
    pub allow: AllowedDifferences,
}

/// Reads a reply and places its edits. Nothing is written: that is the caller's.
#[must_use]
pub fn plan(reply: &str, options: &ApplyOptions, files: &dyn Files) -> EditPlan {
    let source = ReplySource { reply, path: options.path.as_ref(), finished: !options.cut_off, files };
    let ParsedReply { format, edits, problems, prose } = read_reply(&source, options.format);
    let mut plan = plan_edits(&edits, options, files);
    plan.format = format;
    plan.prose = prose;
    plan.failed.extend(problems.iter().map(to_failure));
    if plan.changes.is_empty() && plan.unchanged.is_empty() && plan.failed.is_empty() {
        let message = match options.format {
            Some(format) => format!("the reply has no edit in the format `{format}`"),
            None => "the reply has no edit in any format that is known".to_owned(),
        };
        plan.failed.push(EditFailure { path: None, kind: "no_edit", message, nearest: None });
    }
    plan
}

fn to_failure(problem: &BlockProblem) -> EditFailure {
    let path = problem.subject.as_ref().and_then(|subject| RelPath::parse(subject).ok());
    EditFailure { path, kind: "malformed", message: problem.to_string(), nearest: None }
}

/// Places edits that were read before.
#[must_use]
pub fn plan_edits(edits: &[Edit], options: &ApplyOptions, files: &dyn Files) -> EditPlan {
    let mut plan = EditPlan { partial: options.partial, ..EditPlan::default() };
    let resolved: Vec<Edit> = edits.iter().map(|edit| resolve_path(edit, options, files)).collect();
    let exchanged = find_exchanged_names(&resolved, files);
    for file in to_ops(&resolved) {
        match exchanged.iter().find(|(from, _)| *from == file.path) {
            Some((from, to)) => plan.failed.push(exchanged_name_failure(from, to)),
            None => plan_file(&file, options, files, &mut plan),
        }
    }
    refuse_collisions(&mut plan, files);
    plan.changes.sort_by_key(|change| match change.kind {
        ChangeKind::Create => 0,
        ChangeKind::Modify => 1,
        ChangeKind::Rename => 2,
        ChangeKind::Delete => 3,
    });
    plan
}

/// The edit for the file that it means: the caller's, where the one that it names isn't there and
/// would have to be.
fn resolve_path(edit: &Edit, options: &ApplyOptions, files: &dyn Files) -> Edit {
    let creates = edit.ops.iter().all(|op| matches!(op, EditOp::Rewrite { .. } | EditOp::Create { .. }));
    // Nothing of another file's content says that this one is to go.
    let deletes = edit.ops.iter().any(|op| matches!(op, EditOp::Delete));
    match &options.path {
        Some(path) if !creates && !deletes && !exists(files, &edit.path) && exists(files, path) => {
            Edit { path: path.clone(), ..edit.clone() }
        }
        _ => edit.clone(),
    }
}

/// Renames to the path of a file that is there until a later edit, which names it: each as the old
/// and the new path. The later edit may mean either file.
fn find_exchanged_names(edits: &[Edit], files: &dyn Files) -> Vec<(RelPath, RelPath)> {
    let mut gone: Vec<&RelPath> = Vec::new();
    let mut found = Vec::new();
    for (nth, edit) in edits.iter().enumerate() {
        for op in &edit.ops {
            if let EditOp::Rename { to } = op
                && *to != edit.path
                && exists(files, to)
                && !gone.contains(&to)
                && edits.iter().skip(nth + 1).any(|later| later.path == *to)
            {
                found.push((edit.path.clone(), to.clone()));
            }
            if matches!(op, EditOp::Delete | EditOp::Rename { .. }) {
                gone.push(&edit.path);
            }
        }
    }
    found
}

fn exchanged_name_failure(from: &RelPath, to: &RelPath) -> EditFailure {
    let message = format!(
        "{from}: it is renamed to {to}, a file that is there and that a later edit names. Nothing was changed. Send the edit \
         that takes {to} away first; to exchange two files, rename one to a new name in a reply of its own"
    );
    EditFailure { path: Some(from.clone()), kind: "exists", message, nearest: None }
}

fn plan_file(file: &FileOps, options: &ApplyOptions, files: &dyn Files, plan: &mut EditPlan) {
    let text = match files.text(&file.path) {
        Ok(text) => text,
        // Files that aren't text can be deleted and renamed.
        Err(FileProblem::Binary) if file.ops.iter().all(|op| matches!(op, EditOp::Delete)) => Some("".into()),
        Err(problem) => {
            let message = format!("{}: {problem}. Nothing was changed.", file.path);
            plan.failed.push(EditFailure {
                path: Some(file.path.clone()),
                kind: "unreadable",
                message,
                nearest: None,
            });
            return;
        }
    };
    let shown = files.last_shown_text(&file.path);
    let context = OpContext { path: &file.path, shown: shown.as_deref(), allow: options.allow };
    let outcome = apply_ops(text.as_deref(), &file.ops, &context);
    let fate = if options.partial { OtherEditsFate::Others } else { OtherEditsFate::Nothing };
    let failed =
        outcome.failed.iter().map(|error| describe_failure(file, text.as_deref(), error, files, fate));
    plan.failed.extend(failed);
    if outcome.is_unchanged() {
        let reason = outcome.notes.iter().find_map(|note| note.note.clone());
        let reason = reason.unwrap_or_else(|| "nothing to change".to_owned());
        plan.unchanged.push(UnchangedFile { path: file.path.clone(), reason });
        return;
    }
    let has_failed = !outcome.failed.is_empty();
    match to_file_change(file, text.as_deref(), outcome) {
        Some(change) => plan.changes.push(change),
        None if has_failed => {}
        None => {
            let reason = "its edits together leave it as it was".to_owned();
            plan.unchanged.push(UnchangedFile { path: file.path.clone(), reason });
        }
    }
}

fn to_file_change(file: &FileOps, before: Option<&str>, outcome: OpsOutcome) -> Option<FileChange> {
    let OpsOutcome { content, rename, notes, broken, .. } = outcome;
    let to = rename.filter(|to| *to != file.path);
    let kind = match (before, &content, &to) {
        (None, None, _) => return None,
        (Some(before), Some(after), None) if before == after => return None,
        (Some(_), None, _) => ChangeKind::Delete,
        (None, Some(_), _) => ChangeKind::Create,
        (Some(_), Some(_), Some(_)) => ChangeKind::Rename,
        (Some(_), Some(_), None) => ChangeKind::Modify,
    };
    let before = before.map(str::to_owned);
    Some(FileChange { path: file.path.clone(), to, kind, before, after: content, notes, broken })
}

/// Two files can't come to lie at one path, and none may land on one that stays.
fn refuse_collisions(plan: &mut EditPlan, files: &dyn Files) {
    let leaves = |change: &FileChange| change.kind == ChangeKind::Delete || change.to.is_some();
    let gone: Vec<RelPath> =
        plan.changes.iter().filter(|change| leaves(change)).map(|change| change.path.clone()).collect();
    let mut taken: BTreeMap<RelPath, RelPath> = BTreeMap::new();
    let mut failed = Vec::new();
    for change in plan.changes.iter().filter(|change| change.after.is_some()) {
        let target = change.to.as_ref().unwrap_or(&change.path);
        let message = if let Some(other) = taken.insert(target.clone(), change.path.clone()) {
            format!("{target}: both {other} and {} would lie there. Nothing was changed.", change.path)
        } else if change.to.is_some() && exists(files, target) && !gone.contains(target) {
            format!(
                "{target}: {} can't be renamed to it: there is a file already. Nothing was changed.",
                change.path
            )
        } else {
            continue;
        };
        failed.push(EditFailure { path: Some(target.clone()), kind: "exists", message, nearest: None });
    }
    // What is written to a path that is renamed away would go along.
    for change in plan.changes.iter().filter(|change| change.to.is_some()) {
        let (path, to) = (&change.path, change.to.as_ref().unwrap_or(&change.path));
        if plan.changes.iter().filter(|other| other.path == *path).count() > 1 {
            let message = format!(
                "{path}: it is renamed to {to} by one edit and changed by another. Nothing was changed. To change it, name it \
                 {to} after the rename; to write a new {path}, send that in a reply of its own"
            );
            failed.push(EditFailure { path: Some(path.clone()), kind: "exists", message, nearest: None });
        }
    }
    let refused: Vec<&RelPath> = failed.iter().filter_map(|failure| failure.path.as_ref()).collect();
    plan.changes.retain(|change| {
        ![Some(&change.path), change.to.as_ref()].into_iter().flatten().any(|path| refused.contains(&path))
    });
    plan.failed.extend(failed);
}
