//! The workspace itself: one project tree, its journal and its snapshots.

use crate::mutex::lock;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use journeyman_protocol::{ContentHash, FileChange, RelPath, SessionId};
use journeyman_sandbox::Base;

use crate::change::{Applied, ChangeId, ChangeSet, CheckpointId};
use crate::commands::heartbeat::Beat;
use crate::contents::quota::looked_over;
use crate::contents::store::Vault;
use crate::error::WorkspaceError;
use crate::error::io_error;
use crate::failpoint::{Failpoint, Step};
use crate::files::content::FileContent;
use crate::files::hashes::Prints;
use crate::files::listing::{ListOptions, Listing, Stat, StatKind};
use crate::files::root_dir::{Door, Last, Links, read_up_to};
use crate::files::stat::Seen;
use crate::hard_links::HardLinks;
use crate::ignored::Ignored;
use crate::journal::record::{Cause, CheckpointRecord, Line};
use crate::journal::{End, Journal, Sync};
use crate::limits::{DIFF_FILE_BYTES, LABEL_BYTES, Limits, MAX_FILES};
use crate::options::Options;
use crate::rules::RuleCache;
use crate::snapshot::capture::{Capture, Keep};
use crate::snapshot::compare::filtered;
use crate::snapshot::differences::{Difference, differences, kind_of};
use crate::snapshot::entry::WalkedDir;
use crate::snapshot::entry::{FileState, Kind};
use crate::snapshot::stored::{cache_bytes, load_tree, read_cache, store_tree};
use crate::snapshot::tree::Tree;
use crate::state::lock::{Lock, make_private_dir};
use crate::transaction::operation::{Hands, Intent};
use crate::walk::names::repositories_in;
use crate::walk::plan::{Listed, Plan};
use crate::walk::walk;

/// The stat cache is saved when one file in so many was read: writing it down costs as much as
/// reading those again.
const SAVE_ONE_IN: usize = 128;

/// The newest snapshot.
#[derive(Default)]
struct Newest {
    tree: Option<Arc<Tree>>,
    /// A tree, and the signatures of its directories as the walk gave them.
    listed: Option<(Arc<Tree>, Vec<Option<Listed>>)>,
    /// The newest that lies among the blobs.
    stored: Option<Arc<Tree>>,
    /// Files read since the stat cache was saved.
    unsaved: usize,
    /// How often blobs had been removed when it was looked over last.
    removals: Option<u64>,
    /// Snapshots that were given out.
    given: Vec<Weak<Tree>>,
    /// Every directory that a snapshot of this process had, at most [`MAX_FILES`] of them.
    dirs: HashSet<Vec<u8>>,
}

/// What writing needs.
pub(crate) struct Writer {
    pub(crate) journal: Journal,
    pub(crate) lock: Option<Lock>,
    /// How often blobs had been removed when `base` was known to be there.
    removals: u64,
    last_checkpoint: Option<LastCheckpoint>,
    /// The newest tree among the blobs, that signs of life differ little from.
    pub(crate) base: Option<(ContentHash, Arc<Tree>)>,
}

struct LastCheckpoint {
    record: CheckpointRecord,
    tree: Arc<Tree>,
    end: End,
}

/// One project tree. See the crate's page for what it offers.
///
/// All methods block on the disk; call them from a thread that may. It may be shared between
/// threads: reads go on side by side, changes one after the other, also between processes.
pub struct Workspace {
    pub(crate) door: Door,
    root: PathBuf,
    base: Mutex<Option<Base>>,
    pub(crate) options: Options,
    failpoint: Option<Failpoint>,
    pub(crate) rules: RuleCache,
    /// What at the root was named `.git` when the workspace was opened.
    pub(crate) own_repositories: Vec<Vec<u8>>,
    newest: Mutex<Newest>,
    pub(crate) ignored: Mutex<crate::ignored::Memory>,
    pub(crate) hard_links: Mutex<crate::hard_links::Memory>,
    pub(crate) prints: Mutex<Prints>,
    pub(crate) guard_memory: Mutex<crate::guarded::Memory>,
    /// The commands that run in this process, oldest first.
    pub(crate) running: Mutex<Vec<Weak<Beat>>>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) vault: Vault,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Opens the tree beneath `root`. A change that a crash left open is closed now, unless another
    /// process holds the lock; apart from that nothing is written, neither in the tree nor in the
    /// state directory.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`] when the root isn't a directory that can be read; failures of going
    /// back.
    pub fn open(root: &Path, options: Options) -> Result<Self, WorkspaceError> {
        Self::open_with(root, options, None)
    }

    /// Opens a copy that stands for the tree at `root`: paths and messages are the tree's, files
    /// the copy's. It has a state directory of its own. Packed contents are found where `project`,
    /// the tree's state directory, says.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    pub(crate) fn open_base(
        root: &Path,
        base: Base,
        project: &Path,
        options: Options,
    ) -> Result<Self, WorkspaceError> {
        let vault = Vault::new(options.blobs.clone(), project);
        Self::open_at(Door::open_base(root, &base)?, root, Some(base), vault, options, None)
    }

    /// As [`Workspace::open`], with a hook by which a test cuts transactions off.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    #[doc(hidden)]
    pub fn open_with(
        root: &Path,
        options: Options,
        failpoint: Option<Failpoint>,
    ) -> Result<Self, WorkspaceError> {
        let vault = Vault::new(options.blobs.clone(), &options.state_dir);
        Self::open_at(Door::open(root)?, root, None, vault, options, failpoint)
    }

    fn open_at(
        door: Door,
        root: &Path,
        base: Option<Base>,
        vault: Vault,
        options: Options,
        failpoint: Option<Failpoint>,
    ) -> Result<Self, WorkspaceError> {
        let journal =
            Journal::new(&options.state_dir, options.limits.journal_bytes).with_clock(options.clock.clone());
        let own_repositories = repositories_in(door.root())
            .map_err(|errno| WorkspaceError::Root { path: root.to_owned(), source: errno.into() })?;
        let own = [Some(options.state_dir.as_path()), Some(options.blobs.dir()), options.own_dir.as_deref()];
        let rules = RuleCache::with_own(root, own.into_iter().flatten());
        let workspace = Self {
            door,
            root: root.to_owned(),
            base: Mutex::new(base),
            options,
            failpoint,
            rules,
            own_repositories,
            newest: Mutex::default(),
            ignored: Mutex::default(),
            hard_links: Mutex::default(),
            prints: Mutex::default(),
            guard_memory: Mutex::default(),
            running: Mutex::default(),
            writer: Mutex::new(Writer {
                journal,
                lock: None,
                removals: 0,
                last_checkpoint: None,
                base: None,
            }),
            vault,
        };
        workspace.recover_if_idle()?;
        Ok(workspace)
    }

    /// The root as it was given; for a copy that of the tree it stands for, where commands see it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where what is known of the tree is kept. A copy has a directory of its own, which goes when
    /// the copy does.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.options.state_dir
    }

    /// A path by which this process reaches the files: the root, or where a copy of it is. It is
    /// good for as long as the workspace lives, and may mean nothing to other processes.
    #[must_use]
    pub fn reach(&self) -> PathBuf {
        match &*lock(&self.base) {
            None => self.root.clone(),
            Some(Base::Directory { path: copy, .. }) => copy.clone(),
            Some(Base::Mounted(_)) => self.door.by_descriptor(),
        }
    }

    /// Directories of the program's own that lie in the tree: no command may write there.
    #[must_use]
    pub fn own_directories(&self) -> Vec<RelPath> {
        self.rules.own().to_vec()
    }

    /// What commands are to see at the root, where that is a copy.
    #[must_use]
    pub fn base(&self) -> Option<Base> {
        lock(&self.base).clone()
    }

    /// Puts another copy in the place of the one that this workspace reaches, in one step.
    pub(crate) fn replace_base(&self, base: Base) -> Result<(), WorkspaceError> {
        self.door.replace(&Door::open_base(&self.root, &base)?)?;
        *lock(&self.base) = Some(base);
        Ok(())
    }

    /// Lets go of the mount that this workspace reaches: nothing of the tree is found by it any
    /// more.
    pub(crate) fn close_base(&self) -> Result<(), WorkspaceError> {
        let path = self.options.state_dir.clone();
        self.door.replace(&Door::open(&path)?)?;
        *lock(&self.base) = Some(Base::Directory { layers: path.clone(), path, caches: Vec::new() });
        Ok(())
    }

    /// Reads a file of at most `max_bytes` bytes. Links that stay inside are followed. Never waits:
    /// pipes, sockets and devices are refused.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], [`WorkspaceError::Outside`], [`WorkspaceError::NotAFile`],
    /// [`WorkspaceError::TooLarge`] (before anything is read), failures of the file system.
    pub fn read(&self, path: &RelPath, max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        let (file, seen) = self.open_file(path)?;
        let too_large = |size| WorkspaceError::TooLarge { path: path.clone(), size, limit: max_bytes };
        if seen.size > max_bytes {
            return Err(too_large(seen.size));
        }
        let bytes =
            read_up_to(&file, seen.size, max_bytes).map_err(|source| io_error("read", path, source))?;
        let bytes = bytes.ok_or_else(|| too_large(max_bytes.saturating_add(1)))?;
        Ok(FileContent::from_bytes(bytes, seen.mode & 0o100 != 0))
    }

    fn open_file(&self, path: &RelPath) -> Result<(std::os::fd::OwnedFd, Seen), WorkspaceError> {
        match self.door.read_file(path, Links::Follow) {
            // Where the kernel can't confine links, and for a better word than «changed» on a loop
            // of links.
            Err(WorkspaceError::Raced { .. }) => {
                let path = self.door.canonical(path, Last::Follow)?;
                self.door.read_file(&path, Links::Refuse)
            }
            other => other,
        }
    }

    /// Lists files and links, sorted by the bytes of their paths. Links are listed and never
    /// entered.
    ///
    /// `.gitignore` and `.ignore` files hold whether or not there is a git repository, and so does
    /// `.git/info/exclude`; hidden files are listed, `.git` never. Directories that tools make and
    /// can make again (`node_modules`, `.venv`, `__pycache__` and their like) are skipped unless a
    /// rule says `!` to them, and so is any directory with a valid `CACHEDIR.TAG`.
    ///
    /// # Errors
    /// [`WorkspaceError::Glob`]; [`WorkspaceError::NotFound`] and its like for `under`; the root
    /// vanished.
    // By value, so that a caller can say `ListOptions { glob, ..ListOptions::default() }` in the
    // call.
    #[allow(clippy::needless_pass_by_value)]
    pub fn list(&self, options: ListOptions) -> Result<Listing, WorkspaceError> {
        let end = self.journal().end();
        let siblings = || self.open_siblings(end);
        crate::files::listing::list(&self.door, &self.rules, self.limits().max_files, &siblings, &options)
    }

    /// What is known of a path without reading it; `None` when there is nothing.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] when a link leads out; failures of the file system.
    pub fn stat(&self, path: &RelPath) -> Result<Option<Stat>, WorkspaceError> {
        let kept = self.door.canonical(path, Last::Keep)?;
        let failed = |errno| self.door.fail("look at", path, errno);
        let Some(own) = self.door.look(&kept).map_err(failed)? else { return Ok(None) };
        let link = own.is_link();
        let seen = if link {
            let target = self.door.canonical(path, Last::Follow);
            let target = match target {
                Ok(target) => self.door.look(&target).map_err(failed)?,
                // A link to the root itself.
                Err(WorkspaceError::NotAFile { .. }) => self.door.look_at_root().map_err(failed)?,
                Err(other) => return Err(other),
            };
            target.unwrap_or(own)
        } else {
            own
        };
        let kind = if seen.is_file() {
            StatKind::File
        } else if seen.is_dir() {
            StatKind::Directory
        } else {
            StatKind::Other
        };
        let (size, executable) = (seen.size, seen.mode & 0o100 != 0);
        Ok(Some(Stat { kind, size, executable, link, modified_ns: i128::from(seen.mtime) }))
    }

    /// Carries out all changes of the set, or none. Each file is replaced atomically and is on the
    /// disk when this returns, with its earlier content kept for an undo (but for files over
    /// [`kept_file_bytes`](Limits::kept_file_bytes), which can't be undone). A file that had
    /// several names keeps the others with the old content.
    ///
    /// # Errors
    /// [`WorkspaceError::Conflict`] when a file isn't what a change expects;
    /// [`WorkspaceError::Contradiction`], [`WorkspaceError::Protected`],
    /// [`WorkspaceError::Outside`], [`WorkspaceError::NotFound`] for wishes that make no sense;
    /// [`WorkspaceError::Busy`]; failures of the file system. In each case the tree is as it was.
    pub fn apply(&self, changes: ChangeSet) -> Result<Applied, WorkspaceError> {
        let ChangeSet { call, session, changes } = changes;
        if changes.is_empty() {
            return Ok(Applied { id: ChangeId::NONE, changes: Vec::new() });
        }
        self.door.check_alive()?;
        let applied = self.writing(|writer, hands| {
            let operations = crate::transaction::plan::plan(&self.door, self.limits(), changes)?;
            if let Some(own) = operations.iter().find(|operation| self.rules.holds(&operation.path)) {
                return Err(WorkspaceError::Own { path: own.path.clone() });
            }
            if operations.is_empty() {
                return Ok(Applied { id: ChangeId::NONE, changes: Vec::new() });
            }
            let intent = Intent {
                session,
                call,
                cause: Cause::Edit,
                undoes: Vec::new(),
                left: Vec::new(),
                modes: Vec::new(),
                make: Vec::new(),
                remove: Vec::new(),
                settles_copy: false,
            };
            self.journal_meanwhile(writer, &operations)?;
            let id = hands.execute(&mut writer.journal, intent, &operations)?;
            let changes = operations.iter().map(|operation| FileChange {
                path: operation.path.clone(),
                kind: kind_of(operation.before.is_some(), operation.after.is_some()),
            });
            Ok(Applied { id, changes: changes.collect() })
        })?;
        self.keep_to_quota()?;
        Ok(applied)
    }

    /// Records the tree, so that differences to it can be told later: every file that isn't
    /// ignored, tracked by git or not. Contents that aren't kept yet are put among the blobs. Where
    /// nothing happened since the session's last checkpoint, it is that one. `label` is cut to
    /// [`LABEL_BYTES`].
    ///
    /// # Errors
    /// [`WorkspaceError::TooManyFiles`], [`WorkspaceError::Busy`], failures of the file system or
    /// the blobs.
    pub fn checkpoint(&self, session: &SessionId, label: &str) -> Result<CheckpointId, WorkspaceError> {
        let using = self.vault.blobs().using()?;
        let seen = self.mark_at_rest()?;
        let mut tree = self.snapshot(Keep::Contents, None)?;
        self.hands().step(Step::Look, None)?;
        let known = {
            let writer = lock(&self.writer);
            let end = writer.journal.end();
            let last = writer.last_checkpoint.as_ref().filter(|last| last.end == end);
            last.filter(|last| last.record.session == *session && last.tree.is_same(&tree))
                .map(|last| last.record.id)
        };
        if let Some(id) = known {
            self.vault.sync()?;
            return Ok(id);
        }
        let near = lock(&self.newest).stored.clone();
        let mut hash = store_tree(&tree, near.as_deref(), &self.vault)?;
        let id = self.writing(|writer, _| {
            // What somebody changed meanwhile comes before the checkpoint, so that it has to be in
            // its tree.
            if seen != Some(writer.journal.mark()?) {
                let near = std::mem::replace(&mut tree, self.snapshot(Keep::Contents, None)?);
                hash = store_tree(&tree, Some(&near), &self.vault)?;
            }
            let known = writer.journal.last_checkpoint();
            // Another process of the session may have made it.
            let known = known.filter(|known| known.session == *session && known.tree == hash);
            let record = match known {
                Some(record) => record,
                None => {
                    let id = CheckpointId(writer.journal.next_id());
                    let cut = label.floor_char_boundary(LABEL_BYTES);
                    let label = label.get(..cut).unwrap_or_default().to_owned();
                    let at = writer.journal.now();
                    let record = CheckpointRecord { id, session: session.clone(), label, at, tree: hash };
                    // Where nothing was put, what would be lost with it is no more than that
                    // nothing had changed.
                    writer.journal.append(&[Line::Checkpoint(record.clone())], Sync::Later)?;
                    if self.vault.is_unsynced() && !self.vault.shares_disk(&self.options.state_dir) {
                        writer.journal.flush()?;
                    }
                    record
                }
            };
            let (id, end) = (record.id, writer.journal.end());
            writer.base = Some((hash, tree.clone()));
            writer.last_checkpoint = Some(LastCheckpoint { record, tree: tree.clone(), end });
            Ok(id)
        })?;
        // One wait for the contents, the tree and the journal's line. Not under the lock: it may be
        // long where others write much.
        self.vault.sync()?;
        self.save_cache(1)?;
        drop(using);
        self.keep_to_quota()?;
        Ok(id)
    }

    /// What differs from a checkpoint, sorted, whoever changed it.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCheckpoint`], [`WorkspaceError::Lost`] when its blobs are gone, and
    /// those of looking at the tree.
    pub fn changes_since(&self, checkpoint: &CheckpointId) -> Result<Vec<FileChange>, WorkspaceError> {
        Ok(self.differences_since(checkpoint)?.iter().map(Difference::file_change).collect())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Runs `work` with the project's lock, after closing what a crash left open.
    pub(crate) fn writing<T>(
        &self,
        work: impl FnOnce(&mut Writer, &Hands<'_>) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let _using = self.vault.blobs().using()?;
        let mut writer = lock(&self.writer);
        self.notice_removals(&mut writer);
        let lock = match writer.lock.take() {
            Some(lock) => lock,
            None => Lock::open(&self.options.state_dir)?,
        };
        let result = lock.take(self.limits().lock_wait).and_then(|_held| {
            let hands = self.hands();
            if let Some(open) = writer.journal.prepare()? {
                hands.recover(&mut writer.journal, &open)?;
            }
            work(&mut writer, &hands)
        });
        writer.lock = Some(lock);
        result
    }

    /// Where blobs were removed since, what was known to be among them may not be any more. The
    /// right to [use](journeyman_store::Blobs::using) them is held.
    pub(crate) fn notice_removals(&self, writer: &mut Writer) {
        let removals = self.vault.blobs().removals();
        if writer.removals != removals {
            self.vault.forget();
            writer.base = None;
            writer.removals = removals;
        }
    }

    /// The trees that this process relies on.
    pub(crate) fn trees_in_use(&self) -> Vec<Arc<Tree>> {
        let newest = lock(&self.newest);
        newest.given.iter().filter_map(Weak::upgrade).chain(newest.tree.clone()).collect()
    }

    /// Notes that a snapshot was given out.
    pub(crate) fn gives(&self, tree: &Arc<Tree>) {
        let mut newest = lock(&self.newest);
        newest.given.retain(|given| given.strong_count() > 0);
        newest.given.push(Arc::downgrade(tree));
    }

    pub(crate) fn hands(&self) -> Hands<'_> {
        Hands {
            door: &self.door,
            vault: &self.vault,
            limits: self.limits(),
            failpoint: self.failpoint.as_ref(),
        }
    }

    fn recover_if_idle(&self) -> Result<(), WorkspaceError> {
        let mut writer = lock(&self.writer);
        if writer.journal.is_at_rest() {
            return Ok(());
        }
        let lock = Lock::open(&self.options.state_dir)?;
        if let Some(_held) = lock.try_take()?
            && let Some(open) = writer.journal.prepare()?
        {
            self.hands().recover(&mut writer.journal, &open)?;
        }
        writer.lock = Some(lock);
        Ok(())
    }

    /// Looks at the tree; what is in the directories of `before` is looked at whatever tags they
    /// carry now.
    pub(crate) fn snapshot(&self, keep: Keep, before: Option<&Tree>) -> Result<Arc<Tree>, WorkspaceError> {
        let _using = match keep {
            Keep::Contents => Some(self.vault.blobs().using()?),
            Keep::Hashes => None,
        };
        let mut newest = lock(&self.newest);
        let removals = self.vault.blobs().removals();
        if newest.removals.is_some_and(|known| known != removals)
            && let Some(tree) = newest.tree.take()
        {
            self.vault.forget();
            newest.tree = Some(looked_over(&self.vault, tree)?);
        }
        newest.removals = Some(removals);
        // What this process has looked into stays in sight from one command to the next.
        let known = [before, newest.tree.as_deref()].map(|tree| tree.map_or(&[][..], |tree| &tree.dirs));
        let end = self.journal().end();
        let siblings = || self.open_siblings(end);
        let last = match &newest.tree {
            Some(tree) => tree.clone(),
            None => Arc::new(self.saved_tree().unwrap_or_default()),
        };
        let listed = newest.listed.as_ref().filter(|(tree, _)| Arc::ptr_eq(tree, &last));
        let listed = listed.map_or(&[][..], |(_, listed)| listed);
        let max_files = self.limits().max_files;
        let under = Vec::new();
        let plan = Plan {
            door: &self.door,
            rules: &self.rules,
            under,
            include_ignored: false,
            stat: true,
            max_files,
            known: &known,
            last: Some(&last),
            listed,
            may_be_same: last.is_steady(self.limits()),
            siblings: &siblings,
        };
        let mut walked = walk(&plan)
            .map_err(|errno| WorkspaceError::Root { path: self.root.clone(), source: errno.into() })?;
        // What isn't seen would count as made by a command, or couldn't be undone: better nothing
        // begins.
        if let Some((dir, errno)) = &walked.failed {
            return Err(match RelPath::parse(dir) {
                Ok(dir) => self.door.fail("list", &dir, *errno),
                Err(_) => WorkspaceError::Root { path: self.root.clone(), source: (*errno).into() },
            });
        }
        if walked.unreadable.first().is_some_and(Vec::is_empty) {
            let source = rustix::io::Errno::ACCESS.into();
            return Err(WorkspaceError::Root { path: self.root.clone(), source });
        }
        if walked.files.is_empty() && (!walked.same || last.entries.is_empty()) {
            self.door.check_alive()?;
        }
        let capture = Capture { door: &self.door, vault: &self.vault, limits: self.limits(), keep };
        let listed = std::mem::take(&mut walked.listed);
        let captured = capture.take(walked, &last)?;
        newest.listed = Some((captured.tree.clone(), listed));
        newest.unsaved += captured.read;
        if last.stored.get().is_some() {
            newest.stored = Some(last.clone());
        }
        let is_new = newest.tree.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &captured.tree));
        if is_new && newest.dirs.len() < MAX_FILES {
            for dir in &captured.tree.dirs {
                if !newest.dirs.contains(&dir.path) {
                    newest.dirs.insert(dir.path.clone());
                }
            }
        }
        newest.tree = Some(captured.tree.clone());
        Ok(captured.tree)
    }

    /// Looks at the ignored files beside `tree`, which is the newest snapshot, and keeps small ones
    /// where `keep` says so; and at links that lead out. A copy's ignored files aren't the user's,
    /// and its links its own.
    pub(crate) fn look_beside(
        &self,
        tree: &Arc<Tree>,
        keep: bool,
    ) -> Result<(Ignored, HardLinks), WorkspaceError> {
        if self.base().is_some() {
            return Ok(<_>::default());
        }
        let newest = lock(&self.newest);
        let listed = newest.listed.as_ref().filter(|(of, _)| Arc::ptr_eq(of, tree));
        let listed = listed.map(|(_, listed)| listed.clone()).unwrap_or_default();
        drop(newest);
        let ignored = self.look_at_ignored(tree, &listed, keep)?;
        Ok((ignored, self.hard_links_of(tree)))
    }

    /// The newest snapshot of this process.
    pub(crate) fn newest_tree(&self) -> Option<Arc<Tree>> {
        lock(&self.newest).tree.clone()
    }

    /// The directories that snapshots of this process had, without those of `walked`.
    pub(crate) fn other_directories(&self, walked: &[WalkedDir]) -> Vec<Vec<u8>> {
        let walked: HashSet<&[u8]> = walked.iter().map(|dir| dir.path.as_slice()).collect();
        let newest = lock(&self.newest);
        newest.dirs.iter().filter(|dir| !walked.contains(dir.as_slice())).cloned().collect()
    }

    /// Takes `tree` for the newest snapshot, whose signatures hold here too, and saves it: what is
    /// as it says isn't read again.
    pub(crate) fn seed(&self, tree: Arc<Tree>) -> Result<(), WorkspaceError> {
        {
            let mut newest = lock(&self.newest);
            newest.tree = Some(tree);
            newest.unsaved = 1;
        }
        self.save_cache(1)
    }

    /// The newest snapshot that was saved; `None` when it isn't there or can't be believed.
    pub(crate) fn saved_tree(&self) -> Option<Tree> {
        read_cache(&self.cache_path(), &self.vault)
    }

    fn cache_path(&self) -> PathBuf {
        self.options.state_dir.join("stat-cache")
    }

    /// Saves the stat cache if at least so many files were read since it was, and enough of all to
    /// be worth it. It need not survive a power failure: it is checked when it is read.
    pub(crate) fn save_cache(&self, at_least: usize) -> Result<(), WorkspaceError> {
        let mut newest = lock(&self.newest);
        let unsaved = newest.unsaved;
        let worth = |tree: &Arc<Tree>| unsaved >= at_least.max(tree.entries.len() / SAVE_ONE_IN);
        let Some(tree) = newest.tree.clone().filter(worth) else { return Ok(()) };
        make_private_dir(&self.options.state_dir)?;
        let path = self.cache_path();
        // One name for all processes, so that those that are killed here leave one file at most.
        // Where another run in this project saves at the same moment, its cache is as good as ours.
        let new = path.with_extension("new");
        let saved = crate::state::lock::replace(&new, &path, &cache_bytes(&tree, !self.vault.is_unsynced()));
        saved.map_err(|source| crate::state::lock::state_error("save", &path, source))?;
        newest.unsaved = 0;
        Ok(())
    }

    pub(crate) fn inputs(&self) -> crate::snapshot::compare::Inputs<'_> {
        crate::snapshot::compare::Inputs { door: &self.door, vault: &self.vault, rules: &self.rules }
    }

    pub(crate) fn checkpoint_tree(&self, id: &CheckpointId) -> Result<Arc<Tree>, WorkspaceError> {
        let writer = lock(&self.writer);
        if let Some(last) = writer.last_checkpoint.as_ref().filter(|last| last.record.id == *id) {
            return Ok(last.tree.clone());
        }
        let lines = writer.journal.lines()?;
        drop(writer);
        let tree = lines.into_iter().rev().find_map(|line| match line {
            Line::Checkpoint(record) if record.id == *id => Some(record.tree),
            _ => None,
        });
        let hash = tree.ok_or(WorkspaceError::UnknownCheckpoint { id: *id })?;
        match load_tree(&hash, self.vault.blobs()) {
            Err(WorkspaceError::Lost { .. }) => {
                Err(WorkspaceError::Lost { what: format!("checkpoint {id}") })
            }
            tree => Ok(tree?.into_tree()),
        }
    }

    pub(crate) fn differences_since(
        &self,
        checkpoint: &CheckpointId,
    ) -> Result<Vec<Difference>, WorkspaceError> {
        let before = self.checkpoint_tree(checkpoint)?;
        let after = self.snapshot(Keep::Hashes, Some(&before))?;
        filtered(self.inputs(), &before, differences(&before, &after))
    }

    pub(crate) fn kept_bytes(&self, state: &FileState) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match &state.hash {
            Some(hash) if state.size <= DIFF_FILE_BYTES as u64 => self.vault.get(hash),
            _ => Ok(None),
        }
    }

    pub(crate) fn current_bytes(
        &self,
        path: &RelPath,
        state: &FileState,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if state.kind == Kind::Link {
            return self.door.read_link(path).map(Some).map_err(|errno| self.door.fail("read", path, errno));
        }
        let (file, seen) = match self.door.read_file(path, Links::Refuse) {
            // It differs, and that is all that can be told: no reason to tell nothing of the
            // others.
            Err(WorkspaceError::Denied { .. }) => return Ok(None),
            other => other?,
        };
        read_up_to(&file, seen.size, DIFF_FILE_BYTES as u64).map_err(|source| io_error("read", path, source))
    }
}
