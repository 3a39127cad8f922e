//! A commit of exactly these files, by the user's git.
//!
//! It is made from an index of its own: a copy of the user's, put back to what `HEAD` has, with the files as they are in
//! the work tree. Hooks, signing and messages are those of any `git commit`, but that hooks run in the sandbox; what the
//! user has staged isn't in it. The
//! user's own index is touched once, after the commit, and only for the files that the commit changed: so whatever
//! fails before, a hook included, leaves it as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use journeyman_protocol::RelPath;
use journeyman_sandbox::clean;
use tokio_util::sync::CancellationToken;

use crate::hooks::{CommitHooks, HookRun, HookRunner};
use crate::limits::{LOCK_TRIES, LOCK_WAIT, MAX_MESSAGE};
use crate::place::Place;
use crate::read::Reader;
use crate::status::{Change, Entry};
use crate::tracked::records;
use crate::user::{Call, Own, Said};
use crate::{Git, GitError, Refusal, UserGit, programs, state};

/// Begins the names of the indexes that commits are made from; the process's number follows.
const OWN_INDEX: &str = "journeyman-index-";

/// Begins a path that is read from the work tree's top, and otherwise as it stands.
const TOP: &[u8] = b":(top)";

/// A commit to make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// The files, as they are in the work tree: added, edited, made executable, or gone. Nothing else is committed. Of
    /// a rename both names are needed.
    pub paths: Vec<RelPath>,
    /// Why, in the user's words or the task's. Hooks may change it.
    pub message: String,
    /// Files that held changes of the user's from before, as [`Git::dirty_before`] told then. If one of `paths` is
    /// among them, nothing is committed.
    pub mixed: Vec<RelPath>,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDone {
    /// Its id, as hexadecimal digits.
    pub id: String,
    /// The branch it is on; `None` where `HEAD` is detached: nothing else names the commit then.
    pub branch: Option<String>,
    /// The changed paths within the project.
    pub paths: Vec<RelPath>,
    /// Those among them that weren't asked for: a hook added them.
    pub added_by_hooks: Vec<RelPath>,
    /// The messages of git and the hooks, made safe to show.
    pub words: String,
    /// The reason why the user's index doesn't have the commit yet; `git reset` updates it. The
    /// commit stands.
    pub index_behind: Option<String>,
}

impl Git {
    /// Those of `paths` that have uncommitted changes now, are new to git, have a merge to be settled, or are such as
    /// the user told git not to watch: whoever changes them next can't commit them without the user's own changes. To
    /// be asked before a task lands.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn dirty_before(&self, paths: &[RelPath]) -> Result<Vec<RelPath>, GitError> {
        let reader = Reader::open(self).await?;
        let (status, tracked) = tokio::join!(reader.status(), reader.tracked());
        let mut dirty: BTreeSet<RelPath> = status?.entries.into_iter().map(|entry| entry.path).collect();
        let is_there = |path: &RelPath| fs::symlink_metadata(self.root.join(path.as_path())).is_ok();
        let unwatched = tracked?.into_iter().filter(|file| file.unwatched && is_there(&file.path));
        dirty.extend(unwatched.map(|file| file.path));
        Ok(paths.iter().filter(|path| dirty.contains(path)).cloned().collect())
    }
}

impl UserGit {
    /// Commits these files on the branch that is checked out, and nothing else. What is staged stays staged. Cancelling
    /// ends git and its hooks; a commit that is made by then stands.
    ///
    /// # Errors
    /// [`GitError::Unfit`] when it can't be made as things stand, or a person has to see something first
    /// ([`GitError::needs_person`]); [`GitError::Failed`] with what git or a hook said.
    /// The index and `HEAD` are as they were then; files that a hook changed are as the hook left them.
    pub async fn commit(&self, commit: &Commit, cancel: &CancellationToken) -> Result<CommitDone, GitError> {
        let reader = Reader::open(&self.git).await?;
        let own = self.at(&reader.place, cancel)?;
        let work = Work { place: &reader.place, own };
        work.check(commit)?;
        self.check_programs(&work.own, work.place, &commit.paths).await?;
        let unwatched = check_index(&reader, commit).await?;
        work.check_with_git(commit).await?;
        let before = work.head().await?;
        let found = CommitHooks::find(&work.own, &reader.place).await?;
        let index = OwnIndex::make(&reader.place)?;
        let place = index.directory.join("hooks");
        let hooks = HookRunner::new(&reader, &self.git, &self.confinement, found, cancel, place).await?;
        work.fill(&index.path, commit, &unwatched, before.as_deref()).await?;
        let (message, words) = hooks.before(&work.own, &index.path, commit).await?;
        let said = work.make(&index.path, message, self.confinement.run).await?;
        let mut done = work.finish(commit, &index.path, before, said).await?;
        let after = hooks.after().await;
        let all = [words.as_str(), done.words.as_str(), after.trim()];
        done.words = all.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n");
        Ok(done)
    }

    /// Tells ahead what would keep a commit of these files from being made before a person has looked.
    ///
    /// # Errors
    /// [`GitError`]; where [`GitError::needs_person`] says so, a person may allow it with [`HookRun::Outside`].
    pub async fn check_commit(&self, paths: &[RelPath], cancel: &CancellationToken) -> Result<(), GitError> {
        let reader = Reader::open(&self.git).await?;
        let own = self.at(&reader.place, cancel)?;
        self.check_programs(&own, &reader.place, paths).await?;
        let found = CommitHooks::find(&own, &reader.place).await?;
        let place = reader.place.git_dir.clone();
        HookRunner::new(&reader, &self.git, &self.confinement, found, cancel, place).await.map(drop)
    }

    pub(crate) async fn check_programs(
        &self,
        own: &Own<'_>,
        place: &Place,
        changed: &[RelPath],
    ) -> Result<(), GitError> {
        let confinement = &self.confinement;
        programs::ProgramCheck { own, place, confinement, changed }.run().await
    }
}

/// A commit under way.
struct Work<'a> {
    place: &'a Place,
    own: Own<'a>,
}

/// The state of a file in the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    There,
    Gone,
}

impl Work<'_> {
    /// Checks the facts that can be known without running anything.
    fn check(&self, commit: &Commit) -> Result<(), Refusal> {
        if let Some(operation) = state::operation(self.place) {
            return Err(Refusal::InProgress(operation));
        }
        let lock = self.place.git_dir.join("index.lock");
        if fs::symlink_metadata(&lock).is_ok() {
            return Err(Refusal::Locked(lock));
        }
        let message = clean(commit.message.as_bytes());
        if message.trim().is_empty() || message.len() > MAX_MESSAGE {
            return Err(Refusal::Message(message.trim().len()));
        }
        if commit.paths.is_empty() {
            return Err(Refusal::Nothing);
        }
        let mixed: BTreeSet<&RelPath> = commit.mixed.iter().collect();
        let mixed = listed(commit, |path| mixed.contains(path));
        if !mixed.is_empty() {
            return Err(Refusal::Mixed(mixed));
        }
        let elsewhere = listed(commit, |path| is_elsewhere(&self.place.root, path));
        if !elsewhere.is_empty() {
            return Err(Refusal::Elsewhere(elsewhere));
        }
        Ok(())
    }

    async fn check_with_git(&self, commit: &Commit) -> Result<(), GitError> {
        let found = self.own.ask("rev-parse", ["rev-parse", "--absolute-git-dir"]).await?;
        let found = Path::new(OsStr::from_bytes(found.trim_ascii_end())).canonicalize();
        if !found.is_ok_and(|found| found == self.place.git_dir) {
            let reason = "git finds another repository here".to_owned();
            return Err(GitError::Broken { path: self.place.root.clone(), reason });
        }
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let said = self.own.run(Call::new(["var", who])).await?;
            if !said.is_done() && !said.cancelled {
                let last = said.words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(Refusal::NoIdentity(last.to_owned()).into());
            }
        }
        // A file that is gone isn't ignored any more; what git knows never is. Behind this magic no other is read.
        let there = commit.paths.iter().filter(|path| self.stands(path) == Standing::There);
        let asked = there.flat_map(|path| [TOP, self.full(path).as_slice(), b"\0"].concat()).collect();
        let said = self.own.run(Call::new(["check-ignore", "-z", "--stdin"]).stdin(asked)).await?;
        if said.code == Some(0) {
            let named: BTreeSet<&[u8]> =
                records(&said.bytes).filter_map(|name| name.strip_prefix(TOP)).collect();
            let ignored = listed(commit, |path| named.contains(self.full(path).as_slice()));
            return Err(Refusal::Ignored(ignored).into());
        }
        if said.code == Some(1) { Ok(()) } else { Err(said.failed("check-ignore")) }
    }

    /// Puts the files into the index, as they are in the work tree; what else is in it is what `HEAD` has.
    async fn fill(
        &self,
        index: &Path,
        commit: &Commit,
        unwatched: &BTreeSet<RelPath>,
        head: Option<&str>,
    ) -> Result<(), GitError> {
        let action = "read-tree";
        // From a copy, so that what git knows of unchanged files, and which of them are checked out, stays.
        let call = match head {
            Some(head) => Call::new(["read-tree", "--reset", head]),
            None => Call::new(["read-tree", "--empty"]),
        };
        self.own.run(call.index(index)).await?.done(action)?;
        let action = "update-index";
        // A file that git was told not to watch would stay as it is; taken out first, it is a new one.
        let out = |path: &RelPath| self.stands(path) == Standing::Gone || unwatched.contains(path);
        let out = self.nul_ended(commit, out);
        let there = self.nul_ended(commit, |path| self.stands(path) == Standing::There);
        let passes: [(Vec<u8>, &[&str]); 2] = [(out, &["--force-remove"]), (there, &["--add", "--replace"])];
        for (paths, how) in passes.into_iter().filter(|(paths, _)| !paths.is_empty()) {
            let args = std::iter::once(&action).chain(how).chain(&["-z", "--stdin"]);
            let call = Call::new(args).stdin(paths).index(index);
            self.own.run(call).await?.done(action)?;
        }
        let listed = match head {
            Some(head) => {
                let call = Call::new(["diff-index", "--cached", "--quiet", "--ignore-submodules=none", head]);
                let said = self.own.run(call.index(index)).await?;
                match said.code {
                    Some(0) => false,
                    Some(1) => true,
                    _ => return Err(said.failed("diff-index")),
                }
            }
            None => {
                !self.own.run(Call::new(["ls-files", "-z"]).index(index)).await?.done("ls-files")?.is_empty()
            }
        };
        if listed { Ok(()) } else { Err(Refusal::Nothing.into()) }
    }

    async fn make(&self, index: &Path, message: Vec<u8>, hooks: HookRun) -> Result<Said, GitError> {
        let call = Call::new(["commit", "--quiet", "--file=-"]).stdin(message).index(index);
        self.own.run(if hooks == HookRun::Outside { call.with_hooks() } else { call }).await
    }

    /// Looks at what git did, and brings the user's index up to it.
    async fn finish(
        &self,
        commit: &Commit,
        index: &Path,
        before: Option<String>,
        said: Said,
    ) -> Result<CommitDone, GitError> {
        // What was cancelled is still to be looked at.
        let calm = Work { place: self.place, own: self.own.calm() };
        let made = calm.next(before.as_deref()).await?;
        let Some(id) = made else {
            return Err(if said.is_done() {
                GitError::Failed { action: "commit", words: "it made no commit".to_owned() }
            } else {
                said.failed("commit")
            });
        };
        // Ended after the commit was made, or somebody else was faster?
        let is_ours = said.is_done() || (said.code.is_none() && calm.is_of(&id, index).await?);
        if !is_ours {
            return Err(said.failed("commit"));
        }
        let changed = calm.changed(&id).await?;
        let asked: BTreeSet<Vec<u8>> = commit.paths.iter().map(|path| self.full(path)).collect();
        let index_behind = calm.bring_up(&changed, &asked, before.as_deref()).await.err();
        let inside = |full: &Vec<u8>| {
            full.strip_prefix(self.place.prefix.as_slice()).and_then(|path| RelPath::parse(path).ok())
        };
        let branch = calm.own.run(Call::new(["symbolic-ref", "--quiet", "--short", "HEAD"])).await?;
        let branch = String::from_utf8_lossy(&branch.bytes).trim_end().to_owned();
        Ok(CommitDone {
            id,
            branch: (!branch.is_empty()).then_some(branch),
            paths: changed.keys().filter_map(inside).collect(),
            added_by_hooks: changed.keys().filter(|full| !asked.contains(*full)).filter_map(inside).collect(),
            words: said.words.trim().to_owned(),
            index_behind: index_behind.map(|error| error.to_string()),
        })
    }

    /// The commit that is checked out; `None` before the first one.
    async fn head(&self) -> Result<Option<String>, GitError> {
        let said = self.own.run(Call::new(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])).await?;
        match said.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&said.bytes).trim_end().to_owned())),
            Some(1) => Ok(None),
            _ => Err(said.failed("rev-parse")),
        }
    }

    /// The commit that came next: the user, or a hook, may have made others since.
    async fn next(&self, before: Option<&str>) -> Result<Option<String>, GitError> {
        let action = "rev-list";
        let Some(head) = self.head().await? else { return Ok(None) };
        let Some(before) = before else { return Ok(Some(head)) };
        let range = format!("{before}..{head}");
        let args = [action, "--reverse", "--first-parent", "--ancestry-path", &range];
        let listed = self.own.ask(action, args).await?;
        Ok(String::from_utf8_lossy(&listed).lines().next().map(str::to_owned))
    }

    /// Returns true if a commit has exactly the content of an index.
    async fn is_of(&self, id: &str, index: &Path) -> Result<bool, GitError> {
        let tree = self.own.run(Call::new(["write-tree"]).index(index)).await?.done("write-tree")?;
        let its = self.own.ask("rev-parse", ["rev-parse", "--verify", &format!("{id}^{{tree}}")]).await?;
        Ok(tree == its)
    }

    /// Returns the changes of a commit: the mode and the object of each path, in the form that the
    /// index takes.
    async fn changed(&self, id: &str) -> Result<BTreeMap<Vec<u8>, String>, GitError> {
        let action = "diff-tree";
        let fixed = [action, "--root", "--raw", "--no-commit-id", "--no-renames", "--no-abbrev", "-r", "-z"];
        let bytes = self.own.ask(action, fixed.into_iter().chain([id])).await?;
        raw(&bytes).ok_or(GitError::Malformed { action, what: "an entry" })
    }

    /// Gives the user's index what the commit has: the files that were asked for, and those that a hook added unless
    /// the user has something else of them staged.
    async fn bring_up(
        &self,
        changed: &BTreeMap<Vec<u8>, String>,
        asked: &BTreeSet<Vec<u8>>,
        before: Option<&str>,
    ) -> Result<(), GitError> {
        let staged = match before {
            Some(before) => {
                let args = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", before];
                let staged = self.own.ask("diff-index", args).await?;
                raw(&staged).ok_or(GitError::Malformed { action: "diff-index", what: "an entry" })?
            }
            None => BTreeMap::new(),
        };
        let mut lines = Vec::new();
        for (path, entry) in changed {
            if asked.contains(path) || (before.is_some() && !staged.contains_key(path)) {
                lines.extend_from_slice(entry.as_bytes());
                lines.push(b'\t');
                lines.extend_from_slice(path);
                lines.push(0);
            }
        }
        let mut tries = LOCK_TRIES;
        loop {
            let call = Call::new(["update-index", "-z", "--index-info"]).stdin(lines.clone());
            let said = self.own.run(call).await?;
            let locked = fs::symlink_metadata(self.place.git_dir.join("index.lock")).is_ok();
            if said.is_done() {
                break;
            }
            tries = tries.saturating_sub(1);
            if !locked || tries == 0 {
                return Err(said.failed("update-index"));
            }
            tokio::time::sleep(LOCK_WAIT).await;
        }
        // Its times; that some other file differs is no failure.
        self.own.run(Call::new(["update-index", "-q", "--refresh"])).await.map(|_| ())
    }

    fn full(&self, path: &RelPath) -> Vec<u8> {
        [&self.place.prefix, path.as_bytes()].concat()
    }

    fn stands(&self, path: &RelPath) -> Standing {
        standing_of(&self.place.root, path)
    }

    /// Some of the files, each ended by NUL.
    fn nul_ended(&self, commit: &Commit, is: impl Fn(&RelPath) -> bool) -> Vec<u8> {
        let mut all = Vec::new();
        for path in commit.paths.iter().filter(|path| is(path)) {
            all.extend_from_slice(&self.full(path));
            all.push(0);
        }
        all
    }
}

/// Nothing that is asked for may be staged one way and stand another way: the staged one would be lost. Nor may it be
/// a repository that git doesn't know as a submodule. Gives the files that git was told not to watch.
async fn check_index(reader: &Reader<'_>, commit: &Commit) -> Result<BTreeSet<RelPath>, GitError> {
    let (status, tracked) = tokio::join!(reader.status(), reader.tracked());
    let (status, tracked) = (status?, tracked?);
    let known: BTreeSet<&RelPath> = tracked.iter().map(|file| &file.path).collect();
    let is_dir = |path: &RelPath| {
        let at = reader.place.root.join(path.as_path());
        fs::symlink_metadata(at.join(".git")).is_ok() && !known.contains(path)
    };
    let nested = listed(commit, is_dir);
    if !nested.is_empty() {
        return Err(Refusal::Elsewhere(nested).into());
    }
    let twofold: BTreeSet<RelPath> = status
        .entries
        .into_iter()
        .filter(|found| match found.entry {
            Entry::Tracked { staged, unstaged, .. } => staged != Change::None && unstaged != Change::None,
            Entry::Unmerged => true,
            Entry::Untracked { .. } | Entry::Ignored => false,
        })
        .map(|found| found.path)
        .collect();
    let staged = listed(commit, |path| twofold.contains(path));
    if !staged.is_empty() {
        return Err(Refusal::Staged(staged).into());
    }
    Ok(tracked.into_iter().filter(|file| file.unwatched).map(|file| file.path).collect())
}

fn listed(commit: &Commit, is: impl Fn(&RelPath) -> bool) -> Vec<RelPath> {
    commit.paths.iter().filter(|path| is(path)).cloned().collect()
}

/// The directories between the top and a path.
fn above(path: &RelPath) -> Vec<RelPath> {
    let mut all: Vec<RelPath> = std::iter::successors(path.parent(), RelPath::parent).collect();
    all.reverse();
    all
}

/// Returns true if a path lies in a repository within the project. The directory of such a
/// repository itself doesn't: it is committed as a submodule.
fn is_elsewhere(root: &Path, path: &RelPath) -> bool {
    path.components().any(|name| name.eq_ignore_ascii_case(b".git"))
        || above(path)
            .iter()
            .any(|directory| fs::symlink_metadata(root.join(directory.as_path()).join(".git")).is_ok())
}

/// A directory is no file, and what lies beyond a link isn't git's: such paths are gone. Only a repository's own
/// directory is committed as what it is.
fn standing_of(root: &Path, path: &RelPath) -> Standing {
    let is_link = |directory: &RelPath| {
        fs::symlink_metadata(root.join(directory.as_path())).map_or(true, |found| !found.is_dir())
    };
    let at = root.join(path.as_path());
    let is_there = fs::symlink_metadata(&at)
        .is_ok_and(|found| !found.is_dir() || fs::symlink_metadata(at.join(".git")).is_ok());
    if is_there && !above(path).iter().any(is_link) { Standing::There } else { Standing::Gone }
}

/// Reads raw differences: by path, the new mode and object. `None` where they aren't in the format.
pub(crate) fn raw(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, String>> {
    let mut found = BTreeMap::new();
    let mut records = records(bytes);
    while let Some(meta) = records.next() {
        let mut words = std::str::from_utf8(meta).ok()?.strip_prefix(':')?.split(' ');
        let (_, mode, _, id) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let path = records.next().filter(|path| !path.is_empty())?;
        // Mode 0 takes an entry out.
        let mode = if mode == "000000" { "0" } else { mode };
        found.insert(path.to_vec(), format!("{mode} {id}"));
    }
    Some(found)
}

/// The index that a commit is made from, in a directory of its own; removed when dropped, with all that is in there.
struct OwnIndex {
    directory: PathBuf,
    path: PathBuf,
}

impl OwnIndex {
    /// A copy of the user's.
    fn make(place: &Place) -> Result<Self, GitError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        sweep(&place.git_dir);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = place.git_dir.join(format!("{OWN_INDEX}{}.{number}", std::process::id()));
        fs::create_dir(&directory).map_err(GitError::io("making", &directory))?;
        let made = Self { path: directory.join("index"), directory };
        match copy(&place.git_dir.join("index"), &made.path) {
            Ok(()) => Ok(made),
            // Nothing was ever staged.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(made),
            Err(source) => {
                Err(GitError::Io { what: "copying the index to", path: made.path.clone(), source })
            }
        }
    }
}

/// With its time: a file as new as the index may have changed since, and git looks into those.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let mut to = fs::File::create_new(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(from.metadata()?.modified()?)
}

impl Drop for OwnIndex {
    fn drop(&mut self) {
        // What stays is swept by the next commit.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Removes what processes that are gone have left.
fn sweep(git_dir: &Path) {
    let Ok(entries) = fs::read_dir(git_dir) else { return };
    for entry in entries.flatten() {
        let name: OsString = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(OWN_INDEX)) else { continue };
        let pid = rest.split('.').next().and_then(|pid| pid.parse::<i32>().ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_alive = pid.is_some_and(|pid| {
            !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
        });
        if !is_alive {
            // Somebody else may have been faster.
            fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path())).ok();
        }
    }
}
