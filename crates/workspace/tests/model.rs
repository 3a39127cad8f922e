//! Random edits, commands, outside changes, undo and crashes, against a model of plain maps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_workspace::limits::{Failpoint, Fault};
use journeyman_workspace::{Change, Expected, UndoTarget, Workspace, WorkspaceError};
use proptest::prelude::*;
use support::{Node, Project, rel, session, set};

type Files = BTreeMap<String, String>;

/// Few names, so that they meet; among them files where others have directories.
const NAMES: [&str; 7] = ["a", "b", "dir/a", "dir/b", "dir/sub/c", "other/d", "b/e"];

#[derive(Debug, Clone)]
enum Act {
    Edit(u64, Vec<(usize, Option<u8>)>),
    Command(u64, Vec<(usize, Option<u8>)>),
    Outside(Vec<(usize, Option<u8>)>),
    UndoLast,
    UndoSession(u64),
    Reopen,
    CrashedEdit(u64, Vec<(usize, Option<u8>)>, usize),
    CrashedUndo(usize),
}

fn writes() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    prop::collection::vec((0..NAMES.len(), prop::option::weighted(0.7, 0..4_u8)), 1..4)
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_u64, writes()).prop_map(|(s, w)| Act::Edit(s, w)),
        4 => (0..3_u64, writes()).prop_map(|(s, w)| Act::Command(s, w)),
        2 => writes().prop_map(Act::Outside),
        3 => Just(Act::UndoLast),
        2 => (0..3_u64).prop_map(Act::UndoSession),
        1 => Just(Act::Reopen),
        2 => (0..3_u64, writes(), 0..20_usize).prop_map(|(s, w, n)| Act::CrashedEdit(s, w, n)),
        1 => (0..20_usize).prop_map(Act::CrashedUndo),
    ]
}

/// One journaled change: each file's content before and after.
#[derive(Debug, Clone)]
struct Step {
    session: u64,
    files: BTreeMap<String, (Option<String>, Option<String>)>,
}

#[derive(Default)]
struct Model {
    files: Files,
    steps: Vec<Step>,
}

impl Model {
    /// What writing does on a disk: a file in the way of a directory goes, and the other way round.
    fn put(files: &mut Files, name: &str, content: Option<String>) {
        match content {
            None => {
                files.remove(name);
            }
            Some(content) => {
                let beneath = format!("{name}/");
                files.retain(|other, _| {
                    !other.starts_with(&beneath) && !name.starts_with(&format!("{other}/"))
                });
                files.insert(name.to_owned(), content);
            }
        }
    }

    fn journal(&mut self, session: u64, new: Files) {
        let names = self.files.keys().chain(new.keys()).cloned();
        let files: BTreeMap<_, _> = names
            .map(|name| (name.clone(), (self.files.get(&name).cloned(), new.get(&name).cloned())))
            .filter(|(_, (before, after))| before != after)
            .collect();
        if !files.is_empty() {
            self.steps.push(Step { session, files });
        }
        self.files = new;
    }

    /// The tree after an undo, and how many conflicts; `None` when there is nothing to undo. What was restored
    /// leaves the steps.
    fn undo(&mut self, session: Option<u64>) -> Option<usize> {
        let session = match session {
            Some(session) => session,
            None => self.steps.last()?.session,
        };
        if !self.steps.iter().any(|step| step.session == session) {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for step in self.steps.iter().filter(|step| step.session == session) {
            names.extend(step.files.keys().cloned());
        }
        names.sort();
        names.dedup();
        let mut conflicts = Vec::new();
        let mut target = self.files.clone();
        for name in &names {
            let mut at = self.files.get(name).cloned();
            for step in self.steps.iter().rev().filter(|step| step.session == session) {
                let Some((before, after)) = step.files.get(name) else { continue };
                if at == *after {
                    at.clone_from(before);
                } else if at != *before {
                    conflicts.push(name.clone());
                    break;
                }
            }
            match at {
                Some(content) => target.insert(name.clone(), content),
                None => target.remove(name),
            };
        }
        // A file that stays where a directory is needed keeps what is to be beneath it from coming back.
        let stays: Vec<String> =
            self.files.keys().filter(|name| target.contains_key(*name)).cloned().collect();
        for name in &names {
            let in_the_way = stays.iter().any(|other| name.starts_with(&format!("{other}/")));
            if in_the_way && target.remove(name).is_some() && !conflicts.contains(name) {
                conflicts.push(name.clone());
            }
        }
        // Nothing restored and nothing but conflicts: it isn't journaled, and can be tried again.
        if target == self.files && !conflicts.is_empty() {
            return Some(conflicts.len());
        }
        for step in self.steps.iter_mut().filter(|step| step.session == session) {
            step.files.retain(|name, _| conflicts.contains(name));
        }
        self.steps.retain(|step| !step.files.is_empty());
        self.files = target;
        Some(conflicts.len())
    }
}

fn changes(project: &Project, files: &Files, writes: &[(usize, Option<u8>)]) -> (Vec<Change>, Files) {
    let mut new = files.clone();
    let mut changes = Vec::new();
    for (name, content) in writes {
        let name = NAMES[*name];
        let in_the_way =
            |other: &String| other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"));
        match content {
            // An edit doesn't turn directories into files.
            Some(_) if project.root().join(name).is_dir() => {}
            Some(_) if files.keys().chain(new.keys()).any(in_the_way) => {}
            Some(content) => {
                let content = format!("{content}\n");
                new.insert(name.to_owned(), content.clone());
                let content = content.into_bytes();
                changes.push(Change::Write { path: rel(name), content, expected: Expected::Anything });
            }
            None if new.remove(name).is_some() => {
                changes.push(Change::Delete { path: rel(name), expected: Expected::Anything });
            }
            None => {}
        }
    }
    (changes, new)
}

fn outside(project: &Project, files: &Files, writes: &[(usize, Option<u8>)]) -> Files {
    let mut new = files.clone();
    for (name, content) in writes {
        Model::put(&mut new, NAMES[*name], content.map(|content| format!("{content}\n")));
    }
    for name in files.keys().filter(|name| !new.contains_key(*name)) {
        fs::remove_file(project.root().join(name)).unwrap();
    }
    // Directories without files stay, unless they are in the way.
    for (name, content) in new.iter().filter(|(name, content)| files.get(*name) != Some(content)) {
        let path = project.root().join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        }
        project.write(name, content);
    }
    new
}

fn on_disk(project: &Project) -> Files {
    let files = project.tree().into_iter().filter_map(|(path, node)| match node {
        Node::File(_, content) => {
            Some((String::from_utf8(path).unwrap(), String::from_utf8(content).unwrap()))
        }
        _ => None,
    });
    files.collect()
}

fn cutting(project: &Project, steps: usize) -> Workspace {
    let seen = Arc::new(AtomicUsize::new(0));
    let hook = move |_| if seen.fetch_add(1, Ordering::Relaxed) == steps { Fault::Cut } else { Fault::Go };
    project.open_failing(Failpoint::new(hook))
}

fn undo(workspace: &Workspace, session_number: Option<u64>) -> Result<Option<usize>, WorkspaceError> {
    let target = session_number.map_or(UndoTarget::LastRun, |number| UndoTarget::Session(session(number)));
    match workspace.undo(target) {
        Ok(report) => Ok(Some(report.conflicts.len())),
        Err(WorkspaceError::NothingToUndo { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Whether the undo would need a file where a directory that holds others stands, or both in one place: then it
/// is refused whole, and the tree stays.
fn is_contradiction(files: &Files) -> bool {
    files.keys().any(|name| files.keys().any(|other| other.starts_with(&format!("{name}/"))))
}

fn run(acts: &[Act]) {
    let project = Project::in_memory();
    let mut model = Model::default();
    let mut workspace = project.open();
    for (place, act) in acts.iter().enumerate() {
        match act {
            Act::Edit(number, writes) => {
                let (changes, new) = changes(&project, &model.files, writes);
                workspace.apply(set(*number, changes)).unwrap();
                model.journal(*number, new);
            }
            Act::Command(number, writes) => {
                let begun = workspace.command_begin().unwrap();
                let new = outside(&project, &model.files, writes);
                workspace.command_end(begun, &session(*number), None).unwrap();
                model.journal(*number, new);
            }
            Act::Outside(writes) => model.files = outside(&project, &model.files, writes),
            Act::UndoLast | Act::UndoSession(_) => {
                let number = if let Act::UndoSession(number) = act { Some(*number) } else { None };
                let (files, steps) = (model.files.clone(), model.steps.clone());
                let expected = model.undo(number);
                let found = undo(&workspace, number);
                if is_contradiction(&model.files) {
                    let refused = matches!(
                        found,
                        Err(WorkspaceError::Contradiction { .. } | WorkspaceError::NotAFile { .. })
                    );
                    assert!(refused, "{place}: {found:?}");
                    (model.files, model.steps) = (files, steps);
                } else {
                    assert_eq!(found.unwrap(), expected, "{place}: {act:?}");
                }
            }
            Act::Reopen => workspace = project.open(),
            Act::CrashedEdit(number, writes, steps) => {
                let (changes, new) = changes(&project, &model.files, writes);
                let result = cutting(&project, *steps).apply(set(*number, changes));
                workspace = project.open();
                if result.is_ok() || on_disk(&project) == new {
                    model.journal(*number, new);
                }
            }
            Act::CrashedUndo(steps) => {
                let (files, saved) = (model.files.clone(), model.steps.clone());
                model.undo(None);
                let result = undo(&cutting(&project, *steps), None);
                workspace = project.open();
                if result.is_err() && on_disk(&project) == files && model.files != files {
                    (model.files, model.steps) = (files, saved);
                } else if result.is_err() && model.files == files {
                    // Nothing on the disk tells whether the undo of nothing was journaled.
                    return;
                }
            }
        }
        assert_eq!(on_disk(&project), model.files, "after {place}: {act:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_is_what_the_model_says(acts in prop::collection::vec(act(), 1..14)) {
        run(&acts);
    }
}
