//! The plan of a landing, made before anything is changed.
//!
//! Each changed file is looked at where the user has it now, and judged by itself. What is to
//! happen in the end is then looked at as a whole: a file whose way is blocked, such as by a
//! directory that still holds something, is a conflict as well, and so is what depended on it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_text_diff::merge::ConflictLabels;
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::contents::store::BlobStore;
use crate::error::io_error;
use crate::error::{NotAFile, WorkspaceError};
use crate::files::root_dir::{LinkPolicy, RootDir, read_up_to};
use crate::files::stat::FileStat;
use crate::journal::record::DirRecord;
use crate::landing::changes::{CopyChange, CopyChanges, LandOptions, OnConflict};
use crate::landing::large_files::LargeFiles;
use crate::landing::merge::{
    ContentSource, CurrentFile, FileMerger, LandingConflict, MergeOutcome, MergeSides, is_beyond_undo,
};
use crate::limits::MAX_DEPTH;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::transaction::operation::Operation;
use crate::workspace::Workspace;
use journeyman_ignore_rules::is_git_directory_name;

/// Bytes that the journal takes for one file of a change besides its names: two states with a hash
/// each.
const JOURNAL_BYTES_PER_FILE: u64 = 400;
/// Number of times that the journal stores a file's name: itself, its sibling's, each as base 64
/// where need be.
const JOURNAL_NAMES_PER_FILE: u64 = 3;

/// The plan of a landing, and the report of it.
#[derive(Debug, Default)]
pub(crate) struct LandingPlan {
    pub(crate) operations: Vec<Operation>,
    pub(crate) make: Vec<DirRecord>,
    pub(crate) remove: Vec<DirRecord>,
    pub(crate) merged: Vec<RelPath>,
    pub(crate) conflicts: Vec<(RelPath, String)>,
    pub(crate) already: Vec<RelPath>,
    pub(crate) left: Vec<(RelPath, String)>,
}

/// The outcome of one change of the copy.
#[derive(Debug)]
struct ChangeOutcome {
    path: RelPath,
    operations: Vec<Operation>,
    merged: bool,
    already: bool,
    conflict: Option<String>,
    /// True if [`LandOptions::on_conflict`] couldn't resolve it.
    left: bool,
}

/// The files that are to be gone and to be there.
struct TargetPaths<'o> {
    removed: HashSet<&'o RelPath>,
    placed: BTreeSet<&'o [u8]>,
    /// Directories that go as well.
    dirs: HashSet<&'o RelPath>,
}

pub(crate) struct LandingPlanner<'a> {
    root_dir: &'a RootDir,
    contents: ContentStores<'a>,
    changes: &'a CopyChanges,
    moved: &'a HashMap<RelPath, RelPath>,
    options: &'a LandOptions,
    /// Other operations of the same transaction.
    besides: &'a ExtraOperations,
    label: String,
    kept_file_bytes: u64,
    journal_bytes: u64,
}

impl<'a> LandingPlanner<'a> {
    pub(crate) fn new(
        workspace: &'a Workspace,
        changes: &'a CopyChanges,
        moved: &'a HashMap<RelPath, RelPath>,
        options: &'a LandOptions,
        besides: &'a ExtraOperations,
    ) -> Self {
        let limits = workspace.project.limits();
        Self {
            root_dir: &workspace.project.root_dir,
            contents: ContentStores {
                root_dir: &workspace.project.root_dir,
                blob_store: &workspace.project.blob_store,
                large: LargeFiles::of(&workspace.project.copy_dir(&changes.session)),
            },
            changes,
            moved,
            options,
            besides,
            label: format!("session {}", changes.session),
            kept_file_bytes: limits.kept_file_bytes,
            journal_bytes: limits.journal_bytes,
        }
    }

    pub(crate) fn plan(&self) -> Result<LandingPlan, WorkspaceError> {
        let mut outcomes = self.judge_changes()?;
        while self.block_obstructed(&mut outcomes)? {}
        let mut plan = LandingPlan::default();
        for outcome in outcomes {
            let ChangeOutcome { path, operations, merged, already, conflict, left } = outcome;
            if left {
                plan.left.extend(conflict.clone().map(|reason| (path.clone(), reason)));
            }
            if merged && !operations.is_empty() {
                plan.merged.push(path.clone());
            }
            if already {
                plan.already.push(path.clone());
            }
            plan.conflicts.extend(conflict.map(|reason| (path, reason)));
            plan.operations.extend(operations);
        }
        plan.merged.sort_unstable();
        plan.already.sort_unstable();
        plan.conflicts.sort_unstable();
        plan.left.sort_unstable();
        if self.options.on_conflict == OnConflict::Refuse && !plan.conflicts.is_empty() {
            (plan.operations, plan.merged) = (Vec::new(), Vec::new());
            return Ok(plan);
        }
        plan.operations.sort_by(|one, other| one.path.cmp(&other.path));
        self.check_journal_size(&plan.operations)?;
        (plan.make, plan.remove) = self.plan_directories(&plan.operations)?;
        Ok(plan)
    }

    /// Refuses a change that the journal can't hold, or would lose when it is cut to its newer
    /// half, because it couldn't be undone.
    fn check_journal_size(&self, operations: &[Operation]) -> Result<(), WorkspaceError> {
        let names: u64 = operations.iter().map(|operation| operation.path.as_bytes().len() as u64).sum();
        let count = operations.len() as u64;
        let size = count * JOURNAL_BYTES_PER_FILE + names * JOURNAL_NAMES_PER_FILE;
        let most = self.journal_bytes / 2;
        if size <= most {
            return Ok(());
        }
        let limit = u128::from(count) * u128::from(most) / u128::from(size.max(1));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Err(WorkspaceError::TooManyChanges { given: operations.len(), limit })
    }

    /// Judges each change by itself.
    fn judge_changes(&self) -> Result<Vec<ChangeOutcome>, WorkspaceError> {
        let gone: HashMap<&RelPath, &CopyChange> = self
            .changes
            .files
            .iter()
            .filter(|file| file.after.is_none())
            .map(|file| (&file.path, file))
            .collect();
        // What is written down beside a copy may say anything: a name is given away once.
        let mut sources: HashMap<&RelPath, &RelPath> = HashMap::new();
        for file in self.changes.files.iter().filter(|file| file.before.is_none() && file.after.is_some()) {
            if let Some(from) = file.from.as_ref().filter(|from| gone.contains_key(from)) {
                sources.entry(from).or_insert(&file.path);
            }
        }
        let objections: HashMap<&RelPath, &String> =
            self.changes.objections.iter().map(|(path, why)| (path, why)).collect();
        let mut outcomes = Vec::with_capacity(self.changes.files.len());
        for file in &self.changes.files {
            if sources.contains_key(&file.path) && file.after.is_none() {
                continue;
            }
            if let Some(why) = objections.get(&file.path) {
                outcomes.push(self.refused_outcome(&file.path, why));
                continue;
            }
            let source = file.from.as_ref().filter(|from| sources.get(from) == Some(&&file.path));
            let source = source.and_then(|from| gone.get(from).copied());
            let (path, verdict) = match source {
                Some(source) => (file.path.clone(), self.judge_renamed(source, file)?),
                None => self.judge_file(file)?,
            };
            outcomes.push(self.make_outcome(path, verdict));
        }
        Ok(outcomes)
    }

    /// Returns the outcome for a change that is never landed.
    fn refused_outcome(&self, path: &RelPath, why: &str) -> ChangeOutcome {
        let (path, conflict) = (path.clone(), Some(why.to_owned()));
        let left = matches!(self.options.on_conflict, OnConflict::Markers | OnConflict::Theirs);
        ChangeOutcome { path, operations: Vec::new(), merged: false, already: false, conflict, left }
    }

    fn merger(&self) -> FileMerger<'_, ContentStores<'a>> {
        let labels = ConflictLabels { ours: "here", base: None, theirs: &self.label };
        FileMerger { contents: &self.contents, labels, kept_file_bytes: self.kept_file_bytes }
    }

    /// Judges a file that kept its name in the copy. Returns its path in the user's tree, too.
    fn judge_file(&self, file: &CopyChange) -> Result<(RelPath, MergeOutcome), WorkspaceError> {
        let path = self.moved.get(&file.path).unwrap_or(&file.path);
        let here = current_file(self.root_dir, path)?;
        let sides = MergeSides { base: file.before.as_ref(), here: &here, copy: file.after.as_ref() };
        if *path != file.path && file.after.is_none() {
            let reason = format!("it was given the name `{path}` here, and deleted in the copy");
            return Ok((
                file.path.clone(),
                MergeOutcome::Conflict(LandingConflict { reason, theirs: None, marked: None }),
            ));
        }
        Ok((path.clone(), self.merger().merge_file(path, sides)?))
    }

    fn judge_renamed(&self, source: &CopyChange, file: &CopyChange) -> Result<MergeOutcome, WorkspaceError> {
        let (from, to) = (&source.path, &file.path);
        if let Some(elsewhere) = self.moved.get(from).filter(|elsewhere| *elsewhere != to) {
            let reason = format!("`{from}` was given this name in the copy, and the name `{elsewhere}` here");
            return Ok(MergeOutcome::Conflict(LandingConflict { reason, theirs: None, marked: None }));
        }
        let (at_from, at_to) = (current_file(self.root_dir, from)?, current_file(self.root_dir, to)?);
        let sides = MergeSides { base: source.before.as_ref(), here: &at_to, copy: file.after.as_ref() };
        self.merger().merge_renamed((from, &at_from), to, sides)
    }

    fn make_outcome(&self, path: RelPath, verdict: MergeOutcome) -> ChangeOutcome {
        let nothing = ChangeOutcome {
            path,
            operations: Vec::new(),
            merged: false,
            already: false,
            conflict: None,
            left: false,
        };
        match verdict {
            MergeOutcome::Land { merged: true, .. } if self.options.as_checked => {
                ChangeOutcome { conflict: Some("both changed it".to_owned()), ..nothing }
            }
            MergeOutcome::Already => ChangeOutcome { already: true, ..nothing },
            MergeOutcome::Land { operations, merged } => ChangeOutcome { operations, merged, ..nothing },
            MergeOutcome::Conflict(LandingConflict { reason, theirs: Some(operations), .. })
                if self.options.beyond_undo && is_beyond_undo(&reason) =>
            {
                ChangeOutcome { operations, ..nothing }
            }
            MergeOutcome::Conflict(LandingConflict { reason, theirs, marked }) => {
                let (operations, left) = match self.options.on_conflict {
                    OnConflict::Refuse | OnConflict::Mine => (None, false),
                    OnConflict::Markers => (marked, true),
                    OnConflict::Theirs => (theirs, true),
                };
                let left = left && operations.is_none();
                let operations = operations.unwrap_or_default();
                ChangeOutcome { operations, conflict: Some(reason), left, ..nothing }
            }
        }
    }

    /// Removes blocked changes from the plan. Returns true if there were any, because others may be
    /// blocked now.
    fn block_obstructed(&self, outcomes: &mut [ChangeOutcome]) -> Result<bool, WorkspaceError> {
        let mut blocked: BTreeMap<usize, String> = BTreeMap::new();
        let aims = TargetPaths::of(outcomes, &self.changes.removed).with(self.besides);
        let mut taken: HashMap<&RelPath, usize> = HashMap::new();
        for (index, outcome) in outcomes.iter().enumerate() {
            for operation in &outcome.operations {
                if taken.insert(&operation.path, index).is_some_and(|other| other != index) {
                    blocked.insert(index, format!("`{}` would be changed twice", operation.path));
                }
                if operation.after.is_some()
                    && let Some(reason) = self.find_obstruction(operation, &aims)?
                {
                    blocked.insert(index, reason);
                }
            }
        }
        let any = !blocked.is_empty();
        for (index, reason) in blocked {
            if let Some(outcome) = outcomes.get_mut(index) {
                outcome.operations.clear();
                outcome.conflict.get_or_insert(reason);
                outcome.left = matches!(self.options.on_conflict, OnConflict::Markers | OnConflict::Theirs);
            }
        }
        Ok(any)
    }

    /// Returns the reason why a file can't be there, if there is one.
    fn find_obstruction(
        &self,
        operation: &Operation,
        aims: &TargetPaths<'_>,
    ) -> Result<Option<String>, WorkspaceError> {
        let path = &operation.path;
        if let Some(above) = directories_above(path).find(|above| aims.placed.contains(above.as_bytes())) {
            return Ok(Some(format!("`{above}` is to be a file")));
        }
        if operation.before.is_some() {
            return Ok(None);
        }
        let failed = |errno| self.root_dir.error_for("look at", path, errno);
        match self.root_dir.find_obstacle(path) {
            Err(Errno::ACCESS) => return Ok(Some("its directory can't be entered".to_owned())),
            Err(errno) => return Err(failed(errno)),
            Ok(Some((at, seen))) if !aims.removed.contains(&at) => {
                let what = if seen.is_link() { "a link" } else { "no directory" };
                return Ok(Some(format!("`{at}` is {what} here, and stands in its way")));
            }
            // It goes, and nothing can be beneath it.
            Ok(Some(_)) => return Ok(None),
            Ok(None) => {}
        }
        let stands = self.root_dir.stat(path).map_err(failed)?;
        if stands.is_some_and(|seen| seen.is_dir()) && !self.is_emptied(path, aims, 0)? {
            return Ok(Some("a directory that holds other files stands in its way".to_owned()));
        }
        Ok(None)
    }

    /// Returns true if nothing is left in a directory once all is done.
    fn is_emptied(
        &self,
        dir: &RelPath,
        aims: &TargetPaths<'_>,
        depth: usize,
    ) -> Result<bool, WorkspaceError> {
        let failed = |errno| self.root_dir.error_for("look at", dir, errno);
        if depth > MAX_DEPTH {
            return Ok(false);
        }
        let mut holds = false;
        for name in names_in(self.root_dir, dir).map_err(failed)? {
            let Ok(path) = dir.join(name) else { return Ok(false) };
            holds = true;
            if aims.removed.contains(&path) {
                continue;
            }
            let is_dir = self.root_dir.stat(&path).map_err(failed)?.is_some_and(|seen| seen.is_dir());
            if !is_dir || !self.is_emptied(&path, aims, depth + 1)? {
                return Ok(false);
            }
        }
        // The top one makes room itself; of those in it, an empty one goes if the copy hasn't got
        // it either.
        Ok(holds || depth == 0 || aims.dirs.contains(dir))
    }

    /// Returns the directories to make besides those that files need, and those to remove if they
    /// are empty in the end.
    fn plan_directories(
        &self,
        operations: &[Operation],
    ) -> Result<(Vec<DirRecord>, Vec<DirRecord>), WorkspaceError> {
        let aims = TargetPaths::of_all(operations.iter(), &[]).with(self.besides);
        let files: BTreeSet<&[u8]> = self
            .changes
            .files
            .iter()
            .filter(|file| file.after.is_some())
            .map(|file| file.path.as_bytes())
            .collect();
        let is_ours = |dir: &&DirRecord| !dir.path.components().any(is_git_directory_name);
        let look = |path: &RelPath| -> Result<Option<FileStat>, WorkspaceError> {
            match self.root_dir.stat(path) {
                Err(Errno::ACCESS) => Ok(None),
                other => other.map_err(|errno| self.root_dir.error_for("look at", path, errno)),
            }
        };
        let mut make = Vec::new();
        for dir in self.changes.made.iter().filter(is_ours) {
            let in_the_way = match look(&dir.path)? {
                Some(seen) if seen.is_dir() => continue,
                Some(_) => Some(dir.path.clone()),
                None => self.root_dir.find_obstacle(&dir.path).ok().flatten().map(|(at, _)| at),
            };
            let is_free = in_the_way.is_none_or(|at| aims.removed.contains(&at));
            let to_be_file = |path: &RelPath| aims.placed.contains(path.as_bytes());
            // What was to be in it, and isn't landed, takes it along.
            let left_out = has_beneath(&files, &dir.path) && !has_beneath(&aims.placed, &dir.path);
            if is_free
                && !left_out
                && !to_be_file(&dir.path)
                && !directories_above(&dir.path).any(|path| to_be_file(&path))
            {
                make.push(dir.clone());
            }
        }
        let mut remove = Vec::new();
        for dir in self.changes.removed.iter().filter(is_ours) {
            if look(&dir.path)?.is_some_and(|seen| seen.is_dir()) {
                remove.push(dir.clone());
            }
        }
        Ok((make, remove))
    }
}

impl<'o> TargetPaths<'o> {
    fn with(mut self, besides: &'o ExtraOperations) -> Self {
        let gone = besides.operations.iter().filter(|operation| operation.after.is_none());
        self.removed.extend(gone.map(|operation| &operation.path));
        self.dirs.extend(besides.remove.iter().map(|dir| &dir.path));
        self
    }

    fn of(outcomes: &'o [ChangeOutcome], dirs: &'o [DirRecord]) -> Self {
        Self::of_all(outcomes.iter().flat_map(|outcome| &outcome.operations), dirs)
    }

    fn of_all(operations: impl Iterator<Item = &'o Operation>, dirs: &'o [DirRecord]) -> Self {
        let mut aims = Self {
            removed: HashSet::new(),
            placed: BTreeSet::new(),
            dirs: dirs.iter().map(|dir| &dir.path).collect(),
        };
        for operation in operations {
            match operation.after {
                Some(_) => drop(aims.placed.insert(operation.path.as_bytes())),
                None => drop(aims.removed.insert(&operation.path)),
            }
        }
        aims
    }
}

/// Returns the directories above a path, the nearest first.
fn directories_above(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

fn has_beneath(paths: &BTreeSet<&[u8]>, dir: &RelPath) -> bool {
    let prefix = [dir.as_bytes(), b"/"].concat();
    paths.range(prefix.as_slice()..).next().is_some_and(|path| path.starts_with(&prefix))
}

fn names_in(root_dir: &RootDir, dir: &RelPath) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(root_dir.open_directory(Some(dir))?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// Returns the state of the user's tree there.
fn current_file(root_dir: &RootDir, path: &RelPath) -> Result<CurrentFile, WorkspaceError> {
    match observe_file(root_dir, path) {
        Ok(None) | Err(WorkspaceError::NotFound { .. }) => Ok(CurrentFile::Nothing),
        Ok(Some((state, seen))) => Ok(CurrentFile::File(state, seen)),
        Err(WorkspaceError::NotAFile { kind: NotAFile::Directory, .. }) => Ok(CurrentFile::Directory),
        Err(WorkspaceError::NotAFile { kind, .. }) => Ok(CurrentFile::Other(kind.to_string())),
        Err(WorkspaceError::Denied { .. }) => Ok(CurrentFile::Other("a file that can't be read".to_owned())),
        Err(other) => Err(other),
    }
}

/// The contents of the user's tree, and those that are kept.
struct ContentStores<'a> {
    root_dir: &'a RootDir,
    blob_store: &'a BlobStore,
    large: LargeFiles,
}

impl ContentSource for ContentStores<'_> {
    fn kept_content(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.blob_store.get(hash)
    }

    fn is_kept(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        self.blob_store.contains(hash)
    }

    fn large_file(&self, hash: &ContentHash, size: u64) -> Option<PathBuf> {
        self.large.kept_path(hash, size)
    }

    fn read_current(&self, path: &RelPath, state: &FileState) -> Result<Vec<u8>, WorkspaceError> {
        let raced = || WorkspaceError::Raced { path: path.clone() };
        let bytes = match state.kind {
            FileKind::Link => {
                self.root_dir.read_link(path).map_err(|errno| self.root_dir.error_for("read", path, errno))?
            }
            FileKind::File => {
                let (file, seen) = self.root_dir.open_file(path, LinkPolicy::Refuse)?;
                let read = read_up_to(&file, seen.size, state.size);
                read.map_err(|source| io_error("read", path, source))?.ok_or_else(raced)?
            }
        };
        if Some(ContentHash::of(&bytes)) == state.hash { Ok(bytes) } else { Err(raced()) }
    }
}

/// Other operations of a landing's transaction.
#[derive(Debug, Default)]
pub(crate) struct ExtraOperations {
    /// Of other files than the copy's changes.
    pub(crate) operations: Vec<Operation>,
    /// Directories to make, besides those that files need.
    pub(crate) make: Vec<DirRecord>,
    /// Directories to remove at the end if they are empty.
    pub(crate) remove: Vec<DirRecord>,
}
