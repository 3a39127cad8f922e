//! The model: plain maps of what is in the tree, and of what each change did to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::acts::{Deed, Target, Wish};

/// A file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) link: bool,
    /// 0 where nobody knows, which is the journal's word on a new file.
    pub(crate) mode: u32,
    /// Or where it points to.
    pub(crate) content: String,
}

impl State {
    fn same_content(&self, other: &Self) -> bool {
        self.link == other.link && self.content == other.content
    }

    fn with_mode(&self, mode: u32) -> Self {
        Self { mode, ..self.clone() }
    }
}

/// `None` is a directory.
pub(crate) type Tree = BTreeMap<String, Option<State>>;
/// A file before and after a change.
pub(crate) type Both = (Option<State>, Option<State>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An edit, or a command.
    Own,
    /// Checks.
    Check,
    Undo,
    Redo,
    /// Taking back what was cut off: nobody's wish, so that it can be had again at any time.
    Sealing,
}

impl Cause {
    fn takes_back(self) -> bool {
        matches!(self, Self::Undo | Self::Redo | Self::Sealing)
    }
}

/// Changes to take back, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) ids: Vec<usize>,
    /// Whether it is all since some moment, undone or not.
    replay: bool,
    session: u64,
    cause: Cause,
}

/// One change in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) session: u64,
    pub(crate) cause: Cause,
    pub(crate) files: BTreeMap<String, Both>,
    pub(crate) made: BTreeSet<String>,
    pub(crate) removed: BTreeSet<String>,
    pub(crate) undoes: Vec<usize>,
    pub(crate) left: BTreeSet<String>,
    /// Another session whose command ran at the same time.
    pub(crate) beside: Option<u64>,
}

impl Entry {
    fn new(session: u64, cause: Cause) -> Self {
        let (files, made, removed) = Default::default();
        Self { session, cause, files, made, removed, undoes: Vec::new(), left: BTreeSet::new(), beside: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.made.is_empty() && self.removed.is_empty()
    }
}

/// What an undo is to say and do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undone {
    pub(crate) restored: BTreeMap<String, (bool, bool)>,
    pub(crate) conflicts: BTreeSet<String>,
    pub(crate) tree: Tree,
    pub(crate) entry: Option<Entry>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) tree: Tree,
    /// Oldest first.
    pub(crate) journal: Vec<Entry>,
    /// The mode of a new file.
    pub(crate) new_mode: u32,
}

pub(crate) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

fn parent(path: &str) -> Option<&str> {
    path.rfind('/').map(|at| &path[..at])
}

pub(crate) fn is_beneath(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

fn beneath<'a>(tree: &'a Tree, dir: &'a str) -> impl Iterator<Item = &'a String> {
    tree.keys().filter(move |path| is_beneath(path, dir))
}

fn state(tree: &Tree, path: &str) -> Option<State> {
    tree.get(path).cloned().flatten()
}

fn is_dir(tree: &Tree, path: &str) -> bool {
    tree.get(path) == Some(&None)
}

/// The outermost thing above the path that is no directory.
fn obstacle<'a>(tree: &Tree, path: &'a str) -> Option<&'a str> {
    parents(path).find(|dir| !is_dir(tree, dir)).filter(|dir| tree.contains_key(*dir))
}

fn executable(mode: u32, executable: bool) -> u32 {
    if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
}

/// All files and links that differ between two trees, but for the modes of links.
pub(crate) fn differences(before: &Tree, after: &Tree) -> BTreeMap<String, Both> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = paths.into_iter().map(|path| (path.clone(), (state(before, path), state(after, path))));
    both.filter(|(_, (before, after))| before != after).collect()
}

fn directories_only_in(tree: &Tree, other: &Tree) -> BTreeSet<String> {
    let dirs = tree.iter().filter(|(path, state)| state.is_none() && !is_dir(other, path));
    dirs.map(|(path, _)| path.clone()).collect()
}

/// A file of a change set that is being put together.
#[derive(Clone)]
struct Draft {
    before: Option<State>,
    now: Option<State>,
    mode: Option<u32>,
    executable: bool,
    touched: bool,
}

impl World {
    /// Does what a command does; where it can't be done, nothing. Says whether it was done.
    pub(crate) fn act(&mut self, deed: &Deed) -> bool {
        let new_mode = self.new_mode;
        let tree = &mut self.tree;
        match deed {
            Deed::Write(path, content) => {
                let mode = state(tree, path).filter(|old| !old.link).map_or(new_mode, |old| old.mode);
                clear(tree, path);
                tree.insert((*path).to_owned(), Some(State { link: false, mode, content: content.clone() }));
            }
            Deed::Link(path, target) => {
                clear(tree, path);
                let link = State { link: true, mode: 0o777, content: (*target).to_owned() };
                tree.insert((*path).to_owned(), Some(link));
            }
            Deed::Remove(path) => {
                if state(tree, path).is_none() {
                    return false;
                }
                tree.remove(*path);
            }
            Deed::RemoveAll(path) => {
                if !is_dir(tree, path) {
                    return false;
                }
                tree.retain(|other, _| other != path && !is_beneath(other, path));
            }
            Deed::Mode(path, mode) => match tree.get_mut(*path) {
                Some(Some(state)) if !state.link => state.mode = *mode,
                _ => return false,
            },
            Deed::Directory(path) => {
                if tree.contains_key(*path) || obstacle(tree, path).is_some() {
                    return false;
                }
                for dir in parents(path).chain([*path]) {
                    tree.insert(dir.to_owned(), None);
                }
            }
            Deed::Move(from, to) => {
                if !tree.contains_key(*from) || from == to || is_beneath(from, to) || is_beneath(to, from) {
                    return false;
                }
                clear(tree, to);
                let moved: Vec<(String, Option<State>)> = tree
                    .iter()
                    .filter(|(path, _)| path == from || is_beneath(path, from))
                    .map(|(path, state)| (path.replacen(from, to, 1), state.clone()))
                    .collect();
                tree.retain(|path, _| path != from && !is_beneath(path, from));
                tree.extend(moved);
            }
        }
        true
    }

    /// What a change set does: the tree after it, and its change; `None` when it is refused.
    pub(crate) fn edited(&self, session: u64, wishes: &[Wish]) -> Option<(Tree, Entry)> {
        let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
        for wish in wishes {
            self.wish(&mut drafts, wish)?;
        }
        let there = || drafts.iter().filter(|(_, draft)| draft.now.is_some()).map(|(path, _)| path);
        if there().any(|path| there().any(|above| is_beneath(path, above))) {
            return None;
        }
        let mut entry = Entry::new(session, Cause::Own);
        let mut tree = self.tree.clone();
        let changed = drafts.iter().filter(|(_, draft)| draft.touched && draft.before != draft.now);
        let changed: Vec<(&String, &Draft)> = changed.collect();
        for (path, _) in changed.iter().filter(|(_, draft)| draft.now.is_none()) {
            tree.remove(*path);
        }
        for (path, draft) in &changed {
            let Some(now) = &draft.now else { continue };
            for dir in parents(path) {
                match tree.get(dir) {
                    Some(Some(_)) => return None,
                    Some(None) => {}
                    None => {
                        entry.made.insert(dir.to_owned());
                        tree.insert(dir.to_owned(), None);
                    }
                }
            }
            let made = if draft.executable { executable(self.new_mode, true) } else { self.new_mode };
            let mode = draft.mode.unwrap_or(made);
            tree.insert((*path).clone(), Some(now.with_mode(mode)));
        }
        entry.files = changed
            .into_iter()
            .map(|(path, draft)| (path.clone(), (draft.before.clone(), draft.now.clone())))
            .collect();
        Some((tree, entry))
    }

    /// Whether a wish has to do with a link, which this model has edits keep away from.
    pub(crate) fn is_about_links(&self, wish: &Wish) -> bool {
        let paths: &[&str] = match wish {
            Wish::Write(path, _) | Wish::Executable(path, _) => &[path],
            Wish::Delete(path) => return self.link_above(path),
            Wish::Rename(from, to) => &[from, to],
        };
        let is_link = |path: &str| state(&self.tree, path).is_some_and(|state| state.link);
        paths.iter().any(|path| is_link(path) || self.link_above(path))
    }

    fn link_above(&self, path: &str) -> bool {
        parents(path).any(|dir| state(&self.tree, dir).is_some_and(|state| state.link))
    }

    fn draft<'a>(&self, drafts: &'a mut BTreeMap<String, Draft>, path: &str) -> Option<&'a mut Draft> {
        if is_dir(&self.tree, path) {
            return None;
        }
        let before = state(&self.tree, path);
        let (mode, now) = (before.as_ref().map(|state| state.mode), before.clone());
        let draft = Draft { before, now, mode, executable: false, touched: false };
        Some(drafts.entry(path.to_owned()).or_insert(draft))
    }

    fn wish(&self, drafts: &mut BTreeMap<String, Draft>, wish: &Wish) -> Option<()> {
        match wish {
            Wish::Write(path, content) => {
                let draft = self.draft(drafts, path)?;
                if draft.now.as_ref().is_some_and(|now| !now.link && now.content == *content) {
                    return Some(());
                }
                if draft.now.is_none() {
                    (draft.mode, draft.executable) = (draft.before.as_ref().map(|state| state.mode), false);
                }
                let mode = draft.mode.unwrap_or_default();
                draft.now = Some(State { link: false, mode, content: content.clone() });
                draft.touched = true;
            }
            Wish::Delete(path) => {
                let draft = self.draft(drafts, path)?;
                draft.now.take()?;
                draft.touched = true;
            }
            Wish::Executable(path, flag) => {
                let draft = self.draft(drafts, path)?;
                let now = draft.now.as_mut()?;
                draft.executable = *flag;
                draft.mode = draft.mode.map(|mode| executable(mode, *flag));
                now.mode = draft.mode.unwrap_or_default();
                draft.touched = true;
            }
            Wish::Rename(from, to) => {
                let source = self.draft(drafts, from)?;
                let now = source.now.take()?;
                source.touched = true;
                let (mode, flag) = (source.mode, source.executable && source.mode.is_none());
                let draft = self.draft(drafts, to)?;
                if draft.now.is_some() {
                    return None;
                }
                // A new file that takes the place of a deleted one gets its mode, as a written one
                // does.
                let taken = draft.before.as_ref().filter(|old| !old.link);
                let taken = taken.map(|old| if flag { executable(old.mode, true) } else { old.mode });
                draft.mode = mode.or(taken);
                draft.executable = flag;
                draft.now = Some(now.with_mode(draft.mode.unwrap_or_default()));
                draft.touched = true;
            }
        }
        Some(())
    }

    /// Journals what is different since `before`, and isn't journaled since, as one change.
    pub(crate) fn found(&mut self, session: u64, cause: Cause, before: &Tree, since: usize) {
        let mut entry = Entry::new(session, cause);
        entry.files = differences(before, &self.tree);
        for other in &self.journal[since..] {
            for (path, (_, left)) in &other.files {
                let Some((before, after)) = entry.files.get_mut(path) else { continue };
                *before = left.as_ref().map(|left| match after {
                    Some(after) if left.mode == 0 && !left.link => left.with_mode(after.mode),
                    _ => left.clone(),
                });
            }
        }
        entry.files.retain(|_, (before, after)| before != after);
        let mut others: BTreeMap<&String, bool> = BTreeMap::new();
        for other in &self.journal[since..] {
            others.extend(other.removed.iter().map(|dir| (dir, false)));
            others.extend(other.made.iter().map(|dir| (dir, true)));
        }
        entry.made = directories_only_in(&self.tree, before);
        entry.made.retain(|dir| others.get(dir) != Some(&true));
        entry.removed = directories_only_in(before, &self.tree);
        entry.removed.retain(|dir| others.get(dir) != Some(&false));
        if !entry.is_empty() {
            self.journal.push(entry);
        }
    }

    /// Journals what a running command did to files that an edit is about to change.
    pub(crate) fn meanwhile(&mut self, session: u64, before: &Tree, since: usize, edit: &Entry) {
        let mut entry = Entry::new(session, Cause::Own);
        for path in edit.files.keys() {
            let mut then = state(before, path);
            for other in &self.journal[since..] {
                if let Some((_, left)) = other.files.get(path) {
                    then.clone_from(left);
                }
            }
            let now = state(&self.tree, path);
            let same = match (&then, &now) {
                (None, None) => true,
                (Some(then), Some(now)) => {
                    then.same_content(now) && (then.mode == now.mode || then.mode == 0 || now.link)
                }
                _ => false,
            };
            if !same {
                entry.files.insert(path.clone(), (then, now));
            }
        }
        if !entry.is_empty() {
            self.journal.push(entry);
        }
    }

    /// The changes that were taken back by something that is in effect itself, as far as this file
    /// is concerned.
    fn undone_at(&self, path: Option<&str>) -> BTreeSet<usize> {
        let mut undone = BTreeSet::new();
        for (id, entry) in self.journal.iter().enumerate().rev() {
            if !undone.contains(&id) && !path.is_some_and(|path| entry.left.contains(path)) {
                undone.extend(&entry.undoes);
            }
        }
        undone
    }

    fn is_undone(&self, id: usize, path: Option<&str>) -> bool {
        self.undone_at(path).contains(&id)
    }

    fn is_in_effect(&self, id: usize) -> bool {
        let entry = &self.journal[id];
        if entry.files.is_empty() {
            !self.is_undone(id, None)
        } else {
            entry.files.keys().any(|path| !self.is_undone(id, Some(path)))
        }
    }

    /// The changes that an undo takes back, newest first; `None` when there are none. `since` is
    /// how many changes there were before the checkpoint.
    pub(crate) fn selected(&self, target: &Target, since: usize) -> Option<Selected> {
        let is_undoable = |id: &usize| !self.journal[*id].cause.takes_back() && self.is_in_effect(*id);
        let undoable: Vec<usize> = (0..self.journal.len()).rev().filter(is_undoable).collect();
        let session = match target {
            Target::LastRun => self.journal[*undoable.first()?].session,
            Target::Session(session) => *session,
            Target::To(_) => {
                let ids: Vec<usize> = (since..self.journal.len()).rev().collect();
                let newest = ids.iter().find(|id| {
                    let entry = &self.journal[**id];
                    let beyond = !entry.cause.takes_back() || entry.undoes.iter().any(|id| *id < since);
                    beyond && self.is_in_effect(**id)
                });
                let session = self.journal[*newest?].session;
                return Some(Selected { ids, replay: true, session, cause: Cause::Undo });
            }
        };
        let is_of = |id: &usize| {
            let entry = &self.journal[*id];
            entry.session == session || entry.beside == Some(session)
        };
        let ids: Vec<usize> = undoable.into_iter().filter(is_of).collect();
        let selected = Selected { ids, replay: false, session, cause: Cause::Undo };
        (!selected.ids.is_empty()).then_some(selected)
    }

    /// The undos that can be taken back, newest first.
    pub(crate) fn redoable(&self) -> Vec<Selected> {
        let newest_first = || (0..self.journal.len()).rev();
        let asked = newest_first()
            .take_while(|id| matches!(self.journal[*id].cause, Cause::Undo | Cause::Redo))
            .filter(|id| self.journal[*id].cause == Cause::Undo);
        let unasked = newest_first().filter(|id| self.journal[*id].cause == Cause::Sealing);
        let undos = asked.chain(unasked).filter(|id| self.is_in_effect(*id));
        let selected = undos.map(|id| {
            let session = self.journal[id].session;
            Selected { ids: vec![id], replay: false, session, cause: Cause::Redo }
        });
        selected.collect()
    }

    /// What was cut off just now.
    pub(crate) fn cut_off(&self) -> Selected {
        let id = self.journal.len() - 1;
        let session = self.journal[id].session;
        Selected { ids: vec![id], replay: false, session, cause: Cause::Sealing }
    }

    /// What taking these changes back comes to; `None` when the tree doesn't let it.
    pub(crate) fn undone(&self, selected: &Selected) -> Option<Undone> {
        let ids = &selected.ids;
        let mut steps: BTreeMap<&String, Vec<(usize, &Both)>> = BTreeMap::new();
        for id in ids {
            for (path, both) in &self.journal[*id].files {
                if selected.replay || !self.is_undone(*id, Some(path)) {
                    steps.entry(path).or_default().push((*id, both));
                }
            }
        }
        let is_shared = |id: usize| !selected.replay && self.journal[id].beside.is_some();
        let is_ours = |steps: &Vec<(usize, &Both)>| {
            steps.iter().any(|(id, _)| self.journal[*id].cause != Cause::Check || is_shared(*id))
                || steps.last().is_some_and(|(_, (before, _))| before.is_none())
        };
        let (mut goals, mut left) = (BTreeMap::new(), BTreeSet::new());
        let mut obstructed = Vec::new();
        for (path, steps) in steps.iter().filter(|(_, steps)| is_ours(steps)) {
            let current = state(&self.tree, path);
            let nothing = selected.replay && come_to_nothing(steps) && !is_left(&current, steps);
            let (goal, conflict) =
                if nothing { (current.clone(), false) } else { way_back(&current, steps, is_shared) };
            if current.is_none()
                && let Some(at) = obstacle(&self.tree, path)
            {
                obstructed.push((*path, at, state(&self.tree, at).is_some_and(|state| state.link)));
            }
            let changes = match (&current, &goal) {
                (None, None) => false,
                (Some(now), Some(goal)) if now.same_content(goal) => now.mode != goal.mode && !now.link,
                _ => true,
            };
            if changes {
                goals.insert((*path).clone(), (current, goal));
            }
            if conflict {
                left.insert((*path).clone());
            }
        }
        let is_removed = |path: &str| goals.get(path).is_some_and(|(_, goal)| goal.is_none());
        let stuck: Vec<_> = obstructed.into_iter().filter(|(_, at, _)| !is_removed(at)).collect();
        for (path, _, is_link) in stuck {
            if goals.remove(path).is_some() || is_link {
                left.insert(path.clone());
            }
        }
        let others = steps.iter().filter(|(_, steps)| !is_ours(steps)).map(|(path, _)| (*path).clone());
        let conflicts = left.iter().cloned().chain(others).collect();
        let mut entry = Entry::new(selected.session, selected.cause);
        let (make, remove) = self.directories(selected, &goals);
        let tree = self.carried_out(&goals, &make, &remove, &mut entry)?;
        entry.undoes.clone_from(ids);
        entry.files.clone_from(&goals);
        let restored =
            goals.iter().map(|(path, (now, goal))| (path.clone(), (now.is_some(), goal.is_some())));
        let restored: BTreeMap<_, _> = restored.collect();
        let journaled = left.is_empty() || !restored.is_empty();
        entry.left = left;
        let tree = if journaled { tree } else { self.tree.clone() };
        Some(Undone { restored, conflicts, tree, entry: journaled.then_some(entry) })
    }

    /// Directories to make, and those to remove where they are empty in the end.
    fn directories(
        &self,
        selected: &Selected,
        goals: &BTreeMap<String, Both>,
    ) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut make, mut remove) = (BTreeSet::new(), BTreeSet::new());
        let gone =
            |dir: &String| goals.iter().any(|(path, (_, goal))| goal.is_none() && is_beneath(path, dir));
        for id in &selected.ids {
            let entry = &self.journal[*id];
            let check = entry.cause == Cause::Check || !selected.replay && entry.beside.is_some();
            for dir in entry.made.iter().filter(|dir| !check || gone(dir)) {
                make.remove(dir);
                remove.insert(dir.clone());
            }
            for dir in entry.removed.iter().filter(|_| !check) {
                remove.remove(dir);
                make.insert(dir.clone());
            }
        }
        make.retain(|dir| {
            let in_the_way =
                if self.tree.contains_key(dir) { Some(dir.as_str()) } else { obstacle(&self.tree, dir) };
            in_the_way.is_none_or(|at| goals.get(at).is_some_and(|(_, goal)| goal.is_none()))
        });
        remove.retain(|dir| is_dir(&self.tree, dir));
        (make, remove)
    }

    /// The tree afterwards; `None` when something is in the way.
    fn carried_out(
        &self,
        goals: &BTreeMap<String, Both>,
        make: &BTreeSet<String>,
        remove: &BTreeSet<String>,
        entry: &mut Entry,
    ) -> Option<Tree> {
        let mut tree = self.tree.clone();
        entry.removed.clone_from(remove);
        let (gone, placed): (Vec<_>, Vec<_>) = goals.iter().partition(|(_, (_, goal))| goal.is_none());
        for (path, _) in &gone {
            tree.remove(*path);
        }
        for (path, _) in placed.iter().filter(|(path, (now, _))| now.is_none() && is_dir(&self.tree, path)) {
            let emptied = |dir: &str| gone.iter().any(|(gone, _)| is_beneath(gone, dir));
            if beneath(&tree, path).any(|inner| !is_dir(&tree, inner) || !emptied(inner)) {
                return None;
            }
            let dirs = tree.keys().filter(|other| *other == *path || is_beneath(other, path)).cloned();
            entry.removed.extend(dirs);
            tree.retain(|other, _| other != *path && !is_beneath(other, path));
        }
        let needed =
            placed.iter().filter_map(|(path, _)| parent(path)).chain(make.iter().map(String::as_str));
        for path in needed {
            for dir in parents(path).chain([path]) {
                if !tree.contains_key(dir) {
                    entry.made.insert(dir.to_owned());
                }
                if tree.entry(dir.to_owned()).or_insert(None).is_some() {
                    return None;
                }
            }
        }
        for (path, (now, goal)) in placed {
            if now.is_none() && tree.contains_key(path) {
                return None;
            }
            tree.insert(path.clone(), goal.clone());
        }
        for dir in remove.iter().rev() {
            if is_dir(&tree, dir) && beneath(&tree, dir).next().is_none() {
                tree.remove(dir);
            }
        }
        Some(tree)
    }
}

/// Makes room for a file: what is in its way goes, what has to be above it comes.
fn clear(tree: &mut Tree, path: &str) {
    for dir in parents(path) {
        if !is_dir(tree, dir) {
            tree.insert(dir.to_owned(), None);
        }
    }
    tree.retain(|other, _| other != path && !is_beneath(other, path));
}

/// Whether a file is as a change left it.
fn is_left_by(now: &Option<State>, before: &Option<State>, after: &Option<State>) -> bool {
    match (now, before, after) {
        (None, _, None) => true,
        (Some(now), Some(before), Some(after)) if after.mode != before.mode && !now.link => {
            now.same_content(after) && now.mode == after.mode
        }
        (Some(now), _, Some(after)) => now.same_content(after),
        _ => false,
    }
}

fn is_left(now: &Option<State>, steps: &[(usize, &Both)]) -> bool {
    now.is_some() && steps.first().is_some_and(|(_, (before, after))| is_left_by(now, before, after))
}

/// Whether the newest step left the file as the oldest found it, with nothing of anybody else in
/// between.
fn come_to_nothing(steps: &[(usize, &Both)]) -> bool {
    let is_chain = steps.windows(2).all(|pair| match (&pair[0].1.0, &pair[1].1.1) {
        (Some(found), Some(left)) => found.same_content(left),
        (found, left) => found.is_none() && left.is_none(),
    });
    is_chain
        && match (steps.last().map(|(_, both)| &both.0), steps.first().map(|(_, both)| &both.1)) {
            (Some(Some(before)), Some(Some(after))) => {
                before.same_content(after) && before.mode == after.mode
            }
            (Some(before), Some(after)) => before.is_none() && after.is_none(),
            _ => true,
        }
}

/// Where a file goes back to, and whether somebody else's change stands in the way.
fn way_back(
    current: &Option<State>,
    steps: &[(usize, &Both)],
    is_shared: impl Fn(usize) -> bool,
) -> (Option<State>, bool) {
    let mut at = current.clone();
    for (id, (before, after)) in steps {
        let is_left_by = is_left_by(&at, before, after);
        let is_as_before = match (&at, before) {
            (None, None) => true,
            (Some(now), Some(before)) => now.same_content(before),
            _ => false,
        };
        if is_left_by && is_shared(*id) {
            return (at, true);
        } else if is_left_by {
            at = before.as_ref().map(|before| match (&at, after) {
                (Some(now), Some(after)) if after.mode == before.mode => before.with_mode(now.mode),
                _ => before.clone(),
            });
        } else if !is_as_before {
            return (at, true);
        }
    }
    (at, false)
}
