//! A session's access to the index.
//!
//! [`SharedIndex`] is cheap to make: the index is opened when it is first asked, and brought up to
//! date by a thread of its own. [`SharedIndex::snapshot`] gives what there is: it waits a little
//! for that thread, never for all of a long build, and sees to it that what the session itself has
//! changed is in. A session that works in a copy has an index of the copy's files, which begins as
//! the project's.

mod background_graph;
mod idle_merge;
mod vectors;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use journeyman_git::Git;
use journeyman_index::history::History;
use journeyman_index::store::{IndexReport, RefreshOptions, RefreshProgress};
use journeyman_index::vectors::SimilarChunks;
use journeyman_index::{Index, ProjectIndex, Snapshot};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use journeyman_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::ToolError;
use background_graph::BackgroundGraph;
pub use vectors::LoadEmbedder;
use vectors::VectorSearch;

/// Maximum number of threads that read files: the session's commands need the machine, too.
const MAX_THREADS: usize = 4;
/// Maximum time that a query waits for an existing index: a scan of 80,000 files takes less.
const MAX_REFRESH_WAIT: Duration = Duration::from_millis(500);
/// Maximum time that a query waits for the first index: a tree of some megabytes takes less.
const MAX_FIRST_INDEX_WAIT: Duration = Duration::from_secs(4);
/// Maximum time that a query waits after the session changed more files than are refreshed one by
/// one.
const MAX_OWN_CHANGES_WAIT: Duration = Duration::from_secs(20);
/// Maximum time for a cancelled refresh to save its work.
const MAX_STOP_WAIT: Duration = Duration::from_secs(10);
/// Maximum time to wait for another process's write before an answer names the missing files.
const MAX_OTHER_WRITER_WAIT: Duration = Duration::from_secs(2);
/// Interval of checks for an interrupted call.
const CANCEL_POLL: Duration = Duration::from_millis(20);
/// Minimum time between scans for changes made outside the session.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// The idle time before the index is compacted.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// The part of the time that scans may take: one in this many.
const MAX_SCAN_TIME_FRACTION: u32 = 20;
/// Maximum number of files changed by the session that are refreshed one by one; for more the whole
/// tree is scanned.
const MAX_OWN_CHANGES: usize = 500;
/// Maximum time to wait for commits. A history that isn't read yet takes longer, and is available
/// to a later query.
const MAX_COMMITS_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of unindexed files listed in an answer.
const MAX_NAMED_MISSING_FILES: usize = 5;
/// Names of files that exclude others from the index.
const IGNORE_FILES: [&[u8]; 3] = [b".gitignore", b".ignore", b".journeymanignore"];

/// A session's index. Dropping this value stops its background work.
pub struct SharedIndex {
    core: Arc<IndexCore>,
}

impl std::fmt::Debug for SharedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedIndex").field("directory", &self.core.directory).finish_non_exhaustive()
    }
}

/// A snapshot of the index for one query.
#[derive(Debug, Clone)]
pub struct QuerySnapshot {
    /// The index, for its history and for reading files.
    pub project: Arc<ProjectIndex>,
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// Lines for the model about files that the answer may lack; empty if none.
    pub note: String,
    /// Files that the session has changed and that are in the index as they were before.
    pub lacks: Vec<RelPath>,
    /// True if any other file may be in the index as it was before the session changed it.
    pub outdated: bool,
}

struct IndexCore {
    workspace: Arc<Workspace>,
    directory: PathBuf,
    /// The directory of the index that this one is copied from, if the session works in a copy.
    seed: Option<PathBuf>,
    redactor: Arc<Redactor>,
    git: Option<Git>,
    /// True if a refresh ahead of the first query was requested and has not begun.
    ahead: AtomicBool,
    /// Held while a query is prepared: two at once would each wait for the other's changes.
    turn: Mutex<()>,
    state: Mutex<IndexState>,
    news: Condvar,
    history: Mutex<Option<Arc<History>>>,
    links: Arc<BackgroundGraph>,
    vectors: Option<VectorSearch>,
    /// The idle time after which the index is compacted.
    idle_time: Duration,
}

#[derive(Default)]
struct IndexState {
    opened: Option<Arc<ProjectIndex>>,
    /// Stops the running refresh.
    running: Option<Arc<AtomicBool>>,
    progress: Option<RefreshProgress>,
    /// The end and the duration of the last scan.
    looked: Option<(Instant, Duration)>,
    /// Files that the session has changed since the last refresh.
    own: BTreeSet<RelPath>,
    /// True if any file may have changed.
    doubt: bool,
    /// True if any file may have changed before the running refresh, which is to see it.
    doubt_at_begin: bool,
    /// True if another process is writing the index.
    elsewhere: bool,
    cut: bool,
    failed: Option<String>,
    closed: bool,
    /// The time of the last query or write.
    used: Option<Instant>,
    /// True if a thread waits for idle time to merge segments.
    resting: bool,
    /// True while segments are being merged.
    tidying: bool,
}

impl Drop for SharedIndex {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.closed = true;
        if let Some(stop) = &state.running {
            stop.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.core.news.notify_all();
    }
}

impl SharedIndex {
    /// Creates the index of a tree without opening it. Secrets that `redactor` recognizes are
    /// neither indexed nor shown; `git` gives the project's history.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>, redactor: Arc<Redactor>, git: Option<Git>) -> Self {
        let directory = workspace.state_dir().join("index");
        Self { core: Arc::new(IndexCore::new(workspace, directory, None, redactor, git, false)) }
    }

    /// Adds search by vectors with the model that `find` returns, if the user configured one.
    /// `find` is called for the first search.
    #[must_use]
    pub fn with_vectors(mut self, find: Arc<LoadEmbedder>) -> Self {
        let directory = self.core.directory.clone();
        if let Some(core) = Arc::get_mut(&mut self.core) {
            core.vectors = Some(VectorSearch::new(find, directory));
        }
        self
    }

    /// Lets [`SharedIndex::refresh_early`] refresh the index during the first request to the model,
    /// so that the first query finds it ready.
    #[must_use]
    pub fn with_early_refresh(self) -> Self {
        self.core.ahead.store(true, Ordering::Relaxed);
        self
    }

    /// Returns an index for a copy of the tree. It begins with the contents of this one, and
    /// follows the copy's files.
    #[must_use]
    pub fn for_copy(&self, workspace: Arc<Workspace>) -> Self {
        let directory = workspace.state_dir().join("index");
        let (seed, git) = (Some(self.core.directory.clone()), self.core.git.clone());
        let (redactor, ahead) = (Arc::clone(&self.core.redactor), self.core.ahead.load(Ordering::Relaxed));
        let mut core = IndexCore::new(workspace, directory, seed, redactor, git, ahead);
        core.vectors = self.core.vectors.as_ref().map(VectorSearch::for_copy);
        core.idle_time = self.core.idle_time;
        Self { core: Arc::new(core) }
    }

    /// Returns true if there is an index already, also one that isn't opened yet.
    #[must_use]
    pub fn exists(&self) -> bool {
        let core = &self.core;
        core.lock().opened.is_some() || Index::exists_in(core.seed.as_ref().unwrap_or(&core.directory))
    }

    /// Returns the last snapshot, if there is one, without building or refreshing it. For callers
    /// that can't wait.
    #[must_use]
    pub fn last_snapshot(&self) -> Option<(Arc<ProjectIndex>, Arc<Snapshot>)> {
        if !self.exists() {
            return None;
        }
        let project = self.core.open_project().ok()?;
        let snapshot = project.index().snapshot();
        (snapshot.totals().files > 0).then_some((project, snapshot))
    }

    /// Returns the files at most two steps from `files` in the dependency graph, as file numbers of
    /// the snapshot with their steps. The graph is built in the background: it may be of an earlier
    /// snapshot, and the result is empty if it isn't ready in time.
    #[must_use]
    pub fn near_files(&self, asked: &QuerySnapshot, files: &[RelPath]) -> Vec<(u32, u32)> {
        self.core.links.near_files(&asked.project, &asked.snapshot, files)
    }

    /// Returns the results similar to a query by vectors with their weight, and a note if they are
    /// unavailable this time. Waits for the model as long as the user's configuration says.
    #[must_use]
    pub fn similar_files(
        &self,
        asked: &QuerySnapshot,
        query: &str,
    ) -> (Option<(SimilarChunks, f32)>, Option<String>) {
        let vectors = self.core.vectors.as_ref();
        vectors.map_or((None, None), |one| one.similar_files(&asked.snapshot, query, &self.core.redactor))
    }

    /// Returns the redactor that keeps secrets out of the index and of results.
    #[must_use]
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.core.redactor
    }

    /// Returns the project's git repository, if it is known.
    #[must_use]
    pub fn git(&self) -> Option<&Git> {
        self.core.git.as_ref()
    }

    /// Starts refreshing the index if [`SharedIndex::with_early_refresh`] requested it. Doesn't
    /// block.
    pub fn refresh_early(&self) {
        if self.core.ahead.swap(false, Ordering::Relaxed) {
            self.core.begin_refresh(&mut self.core.lock());
        }
    }

    /// Notes files that the session has changed, so that the next query sees the changes.
    pub fn note_changed<'a>(&self, paths: impl IntoIterator<Item = &'a RelPath>) {
        let mut state = self.core.lock();
        for path in paths {
            // A changed ignore file affects other files, so the whole tree is scanned.
            state.doubt |= IGNORE_FILES.contains(&path.file_name());
            state.own.insert(path.clone());
        }
        if state.own.len() > MAX_OWN_CHANGES {
            state.own.clear();
            state.doubt = true;
        }
    }

    /// Notes that any file may have changed, so that the next query scans all files first.
    pub fn note_unknown_changes(&self) {
        self.core.lock().doubt = true;
    }

    /// Returns a snapshot to answer from. Blocks shortly while the index is refreshed, longer while
    /// it is built; files that an answer may lack are named by [`QuerySnapshot::note`].
    ///
    /// # Errors
    /// [`ToolError::Index`] where there is none and none can be made; [`ToolError::Cancelled`].
    pub fn snapshot(&self, cancel: &CancellationToken) -> Result<QuerySnapshot, ToolError> {
        let core = &self.core;
        let _turn = core.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let project = core.open_project()?;
        // Twice: a refresh that began before a change was noted doesn't cover it.
        for _ in 0..2 {
            let timeout = {
                let mut state = core.lock();
                if !state.is_scan_due() {
                    break;
                }
                let timeout = match (state.doubt, project.index().snapshot().is_partial()) {
                    (true, _) => MAX_OWN_CHANGES_WAIT,
                    (false, true) => MAX_FIRST_INDEX_WAIT,
                    (false, false) => MAX_REFRESH_WAIT,
                };
                core.begin_refresh(&mut state);
                timeout
            };
            core.wait_for_refresh(timeout, cancel)?;
        }
        let halted = core.halt_refresh_if_needed(&project, cancel)?;
        let lacks = core.refresh_own_changes(&project, cancel)?;
        if let Err(error) = project.index().reload() {
            core.lock().failed = Some(error.to_string());
        }
        let mut state = core.lock();
        if halted {
            core.begin_refresh(&mut state);
        }
        let snapshot = project.index().snapshot();
        if let (Some(why), true) = (&state.failed, snapshot.totals().files == 0) {
            return Err(ToolError::Index(why.clone()));
        }
        let note = state.missing_files_note(&snapshot, &lacks);
        let outdated = state.is_outdated();
        core.schedule_segment_merge(&mut state);
        drop(state);
        Ok(QuerySnapshot { project: core.with_current_root(&project), snapshot, note, lacks, outdated })
    }

    /// Returns the project's history; `None` if there are no commits, or if they can't be read in
    /// time.
    pub async fn history(&self) -> Option<Arc<History>> {
        let core = Arc::clone(&self.core);
        let git = core.git.clone()?;
        let reading = tokio::spawn(async move {
            let newest = git.head().await.ok()??;
            let known = core.history.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(known) = known.filter(|known| known.revision() == newest) {
                return Some(known);
            }
            let project = core.open_project().ok()?;
            let history = Arc::new(project.load_history(&git).await.ok()??);
            *core.history.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&history));
            Some(history)
        });
        // A longer reading goes on, and its result is there for a later query.
        tokio::time::timeout(MAX_COMMITS_WAIT, reading).await.ok()?.ok()?
    }
}

impl IndexCore {
    fn new(
        workspace: Arc<Workspace>,
        directory: PathBuf,
        seed: Option<PathBuf>,
        redactor: Arc<Redactor>,
        git: Option<Git>,
        ahead: bool,
    ) -> Self {
        Self {
            workspace,
            directory,
            seed,
            redactor,
            git,
            ahead: AtomicBool::new(ahead),
            turn: Mutex::default(),
            state: Mutex::default(),
            news: Condvar::new(),
            history: Mutex::default(),
            links: Arc::default(),
            vectors: None,
            idle_time: IDLE_TIME,
        }
    }

    fn lock(&self) -> MutexGuard<'_, IndexState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index, and opens it if necessary.
    fn open_project(&self) -> Result<Arc<ProjectIndex>, ToolError> {
        let mut state = self.lock();
        if let Some(project) = &state.opened {
            return Ok(Arc::clone(project));
        }
        if let Some(seed) = &self.seed {
            // If copying fails, the index is built from scratch.
            Index::copy_from(&self.directory, seed).ok();
        }
        let (root, redactor) = (self.workspace.access_path(), Arc::clone(&self.redactor));
        let project =
            ProjectIndex::open_with_redactor(&root, &self.directory, thread_count().get(), redactor);
        let project = Arc::new(project.map_err(|error| ToolError::Index(error.to_string()))?);
        state.opened = Some(Arc::clone(&project));
        Ok(project)
    }

    /// Returns the project with its present root: a copy that is mounted again has another path.
    fn with_current_root(&self, project: &Arc<ProjectIndex>) -> Arc<ProjectIndex> {
        Arc::new(project.with_root(&self.workspace.access_path(), thread_count().get()))
    }

    /// Starts a refresh, unless one is running.
    fn begin_refresh(self: &Arc<Self>, state: &mut IndexState) {
        if state.running.is_some() || state.closed {
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        state.doubt_at_begin = std::mem::take(&mut state.doubt);
        (state.progress, state.failed) = (None, None);
        let (core, flag) = (Arc::clone(self), Arc::clone(&stop));
        let started = std::thread::Builder::new().name("index".to_owned()).spawn(move || {
            let mut run = RefreshRun { core: &core, begun: Instant::now(), report: None };
            run.report = Some(core.refresh(&flag));
        });
        match started {
            Ok(_) => state.running = Some(stop),
            Err(error) => {
                state.failed = Some(error.to_string());
                state.end_refresh(false);
            }
        }
    }

    fn refresh(&self, stop: &AtomicBool) -> Result<IndexReport, String> {
        let project = self.open_project().map_err(|error| error.to_string())?;
        self.wait_for_segment_merge(&CancellationToken::new()).map_err(|error| error.to_string())?;
        let project = self.with_current_root(&project);
        let progress = |progress| self.lock().progress = Some(progress);
        let options = RefreshOptions { threads: thread_count(), wait: false, progress: &progress, stop };
        if project.index().snapshot().totals().files == 0 {
            // Words first: they take a fraction of the time.
            let report = project.refresh_without_parsing(options).map_err(|error| error.to_string())?;
            if report.left_to_another || report.stopped {
                return Ok(report);
            }
        }
        let report = project.refresh(options).map_err(|error| error.to_string())?;
        if let Some(seed) = self.seed.as_ref().filter(|_| !report.left_to_another && !report.stopped) {
            // Otherwise a project whose sessions all work in copies would never have an index to
            // copy.
            Index::copy_from(seed, &self.directory).ok();
        }
        Ok(report)
    }

    /// Waits for the running refresh, if any, for at most `timeout`.
    fn wait_for_refresh(&self, timeout: Duration, cancel: &CancellationToken) -> Result<(), ToolError> {
        let end = Instant::now() + timeout;
        let mut state = self.lock();
        while state.running.is_some() {
            if cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self
                .news
                .wait_timeout(state, left.min(CANCEL_POLL))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(())
    }

    /// Stops a long refresh if own changes have to be indexed or nothing is readable yet: what it
    /// has indexed becomes readable, and others may write.
    fn halt_refresh_if_needed(
        &self,
        project: &ProjectIndex,
        cancel: &CancellationToken,
    ) -> Result<bool, ToolError> {
        {
            let state = self.lock();
            let Some(stop) = &state.running else { return Ok(false) };
            if state.own.is_empty() && !project.index().snapshot().is_partial() {
                return Ok(false);
            }
            stop.store(true, Ordering::Relaxed);
        }
        self.wait_for_refresh(MAX_STOP_WAIT, cancel)?;
        Ok(true)
    }

    /// Refreshes the files that the session changed. Returns those that could not be refreshed.
    fn refresh_own_changes(
        &self,
        project: &Arc<ProjectIndex>,
        cancel: &CancellationToken,
    ) -> Result<Vec<RelPath>, ToolError> {
        // Taken out first, so that a file that changes meanwhile is noted again.
        let own: Vec<RelPath> = std::mem::take(&mut self.lock().own).into_iter().collect();
        let lacks = self.refresh_files(project, &own, cancel);
        if !matches!(&lacks, Ok(lacks) if lacks.is_empty()) {
            self.lock().own.extend(own);
        }
        lacks
    }

    /// Refreshes some files. Returns those that could not be refreshed.
    fn refresh_files(
        &self,
        project: &Arc<ProjectIndex>,
        own: &[RelPath],
        cancel: &CancellationToken,
    ) -> Result<Vec<RelPath>, ToolError> {
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let project = self.with_current_root(project);
        self.wait_for_segment_merge(cancel)?;
        let end = Instant::now() + MAX_OTHER_WRITER_WAIT;
        let never = AtomicBool::new(false);
        loop {
            if cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let options = RefreshOptions {
                threads: NonZero::<usize>::MIN,
                wait: false,
                progress: &|_| {},
                stop: &never,
            };
            match project.update_files(own, options) {
                Ok(report) if report.left_to_another && Instant::now() < end => {
                    std::thread::sleep(CANCEL_POLL)
                }
                Ok(report) if report.left_to_another => return Ok(own.to_vec()),
                Ok(_) => return Ok(Vec::new()),
                Err(error) => {
                    self.lock().failed = Some(error.to_string());
                    return Ok(own.to_vec());
                }
            }
        }
    }
}

/// A running refresh; dropping this value reports its end, even after a panic.
struct RefreshRun<'a> {
    core: &'a IndexCore,
    begun: Instant,
    report: Option<Result<IndexReport, String>>,
}

impl Drop for RefreshRun<'_> {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        let whole = matches!(&self.report, Some(Ok(report)) if !report.left_to_another && !report.stopped);
        state.end_refresh(whole);
        match self.report.take() {
            Some(Ok(report)) => {
                state.elsewhere = report.left_to_another;
                state.cut = report.cut;
                state.looked = whole.then(|| (Instant::now(), self.begun.elapsed()));
            }
            Some(Err(why)) => state.failed = Some(why),
            None => state.failed = Some("it was cut off".to_owned()),
        }
        drop(state);
        self.core.news.notify_all();
    }
}

impl IndexState {
    /// Returns true if all files should be scanned again.
    fn is_scan_due(&self) -> bool {
        let rested = |(at, took): (Instant, Duration)| {
            at.elapsed() > MIN_SCAN_INTERVAL.max(took.saturating_mul(MAX_SCAN_TIME_FRACTION))
        };
        self.doubt || self.looked.is_none_or(rested)
    }

    /// Ends the running refresh. One that isn't whole leaves any file in doubt that was before.
    fn end_refresh(&mut self, whole: bool) {
        self.running = None;
        self.doubt |= std::mem::take(&mut self.doubt_at_begin) && !whole;
    }

    /// Returns true if any file may be in the index as it was before the session changed it.
    fn is_outdated(&self) -> bool {
        self.doubt || self.doubt_at_begin
    }

    /// Returns the note on files that an answer may lack.
    fn missing_files_note(&self, snapshot: &Snapshot, lacks: &[RelPath]) -> String {
        let mut notes = Vec::new();
        if snapshot.is_partial() {
            let far = self.progress.map_or(String::new(), |RefreshProgress { done, of, .. }| {
                format!(" ({done} of {of} files read in this run)")
            });
            let who = if self.elsewhere { " by another process" } else { "" };
            notes.push(format!("the index is still being made{who}{far}: what isn't read yet isn't found"));
        } else if self.running.is_some() {
            notes.push("changes that others made in the last moments may not be seen yet".to_owned());
        } else if let Some(why) = &self.failed {
            notes.push(format!("the index couldn't be brought up to date: {why}"));
        } else if self.is_outdated() {
            let who = if self.elsewhere { "another process is writing the index: " } else { "" };
            notes.push(format!("{who}changes of the last moments may not be seen yet"));
        }
        if !lacks.is_empty() {
            let named: Vec<String> =
                lacks.iter().take(MAX_NAMED_MISSING_FILES).map(ToString::to_string).collect();
            let more = if lacks.len() > MAX_NAMED_MISSING_FILES { ", …" } else { "" };
            notes.push(format!("your changes of {}{more} aren't in the index yet", named.join(", ")));
        }
        if self.cut {
            notes.push("the project has more files than the index takes".to_owned());
        }
        notes.iter().map(|note| format!("[note: {note}]\n")).collect()
    }
}

fn thread_count() -> NonZero<usize> {
    let most = NonZero::new(MAX_THREADS).unwrap_or(NonZero::<usize>::MIN);
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).min(most)
}
