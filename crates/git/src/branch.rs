//! A new branch with a commit on it, made without touching what is checked out.
//!
//! It is made in a linked worktree of its own that lasts as long as a [`Branching`]: work tree, index and `HEAD` of the
//! user's are another's.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use journeyman_root_fs::read_path;
use tokio_util::sync::CancellationToken;

use crate::limits::MAX_POINTER;
use crate::place::Place;
use crate::user::{Call, Own};
use crate::{Commit, CommitDone, Git, GitError, Refusal, UserGit};

/// Ends the name of a file beside the worktree that says which branch is made for it, and where that begins.
const RECORD: &str = ".branch";

/// A branch that is being made. When it is dropped or finished, its worktree goes, and the branch too if nothing was
/// committed on it.
#[derive(Debug)]
pub struct Branching {
    user: UserGit,
    name: String,
    base: String,
    /// The worktree's top.
    top: PathBuf,
    /// The project in it.
    root: PathBuf,
    done: bool,
}

impl UserGit {
    /// Checks that a branch of this name can be begun now.
    ///
    /// # Errors
    /// [`GitError::Unfit`] with the reason where not; as [`UserGit::begin_branch`].
    pub async fn check_branch(&self, name: &str, cancel: &CancellationToken) -> Result<(), GitError> {
        let place = Place::find(&self.git.root)?;
        check(&self.at(&place, cancel)?, name).await.map(drop)
    }

    /// Begins a branch at `HEAD`, in a new worktree at `dir`, which must not exist, outside of the project. Beside it
    /// lies a file of the same name with `.branch` at its end, for as long.
    ///
    /// # Errors
    /// [`GitError::Unfit`] where the name can't be a branch's or is one's already, or there is no commit yet;
    /// [`GitError::Failed`] with what git or a hook said. Nothing is left then.
    pub async fn begin_branch(
        &self,
        name: &str,
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<Branching, GitError> {
        let place = Place::find(&self.git.root)?;
        let own = self.at(&place, cancel)?;
        let base = check(&own, name).await?;
        // Checking files out runs filters.
        self.check_programs(&own, &place, &[]).await?;
        if fs::symlink_metadata(dir).is_ok() {
            return Err(GitError::Refused(format!("{} exists", dir.display())));
        }
        if dir.starts_with(&place.root) || dir.starts_with(place.work_tree()?) {
            return Err(GitError::Refused(format!("{} lies in the project", dir.display())));
        }
        let root = dir.join(OsStr::from_bytes(&place.prefix));
        let (user, name, top) = (self.clone(), name.to_owned(), dir.to_owned());
        let mut begun = Branching { user, name, base, top, root, done: true };
        // Before anything is made: a crash at any later instant finds it.
        let record = record(&begun.top);
        let text = format!("{}\n{}\n", begun.base, begun.name);
        fs::write(&record, text).map_err(GitError::io("writing", &record))?;
        let said = own.run(Call::new(begun.adding())).await?;
        // A hook may have failed after all was made; what somebody else made meanwhile isn't ours.
        begun.done = !said.is_done() && !is_ours(&own, &begun).await;
        if begun.done {
            if !said.is_done() {
                // Git makes the branch before the worktree.
                drop_untouched(&own, &begun.name, &begun.base).await;
            }
            fs::remove_file(&record).map_err(GitError::io("removing", &record))?;
        }
        said.done("worktree add")?;
        fs::create_dir_all(&begun.root).map_err(GitError::io("making", &begun.root))?;
        Ok(begun)
    }

    /// Takes away what a crash left in `dir`: worktrees beneath it that were made for branches, their registration,
    /// and those of the branches on which nothing was committed. Nobody may be making a branch there.
    ///
    /// # Errors
    /// [`GitError`]; what could be taken away is.
    pub async fn sweep(&self, dir: &Path) -> Result<(), GitError> {
        let place = Place::find(&self.git.root)?;
        let own = self.at(&place, &CancellationToken::new())?;
        let entries = match fs::read_dir(place.common_dir.join("worktrees")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(GitError::Io { what: "reading", path: place.common_dir, source }),
        };
        let mut result = Ok(());
        for admin in entries.flatten().map(|entry| entry.path()) {
            let pointer = bounded(&admin.join("gitdir"));
            let top = Path::new(OsStr::from_bytes(pointer.trim_ascii_end())).parent();
            let Some(top) = top.filter(|top| lies_in(top, dir)) else { continue };
            let text = String::from_utf8_lossy(&bounded(&record(top))).into_owned();
            let mut lines = text.lines();
            let made = (lines.next(), lines.next());
            let head = String::from_utf8_lossy(&bounded(&admin.join("HEAD"))).into_owned();
            let removed = remove(&own, top).await;
            // A branch that is checked out there is nobody else's.
            if let ((Some(base), Some(name)), Ok(())) = (made, &removed)
                && head.trim_end().strip_prefix("ref: refs/heads/") == Some(name)
            {
                drop_untouched(&own, name, base).await;
            }
            result = result.and(removed);
        }
        result.and(remove_records(dir))
    }
}

impl Branching {
    /// The project in the new worktree: whoever changes it changes nothing of the user's.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit it began at.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Commits these files on the new branch, as [`UserGit::commit`] does.
    ///
    /// # Errors
    /// As there.
    pub async fn commit(&self, commit: &Commit, cancel: &CancellationToken) -> Result<CommitDone, GitError> {
        let git = Git { root: self.root.clone(), ..self.user.git.clone() };
        UserGit { git, ..self.user.clone() }.commit(commit, cancel).await
    }

    /// Takes the worktree away; the branch stays if something was committed on it.
    ///
    /// # Errors
    /// [`GitError`] when something had to be left; [`UserGit::sweep`] takes that away later.
    pub async fn finish(mut self) -> Result<(), GitError> {
        self.done = true;
        self.end().await
    }

    async fn end(&self) -> Result<(), GitError> {
        let place = Place::find(&self.user.git.root)?;
        let own = self.user.at(&place, &CancellationToken::new())?;
        let removed = remove(&own, &self.top).await;
        drop_untouched(&own, &self.name, &self.base).await;
        let record = record(&self.top);
        removed.and(fs::remove_file(&record).map_err(GitError::io("removing", &record)))
    }

    fn adding(&self) -> Vec<&OsStr> {
        let fixed = ["worktree", "add", "--quiet", "--no-track", "-b", &self.name].map(OsStr::new);
        fixed.into_iter().chain([OsStr::new("--"), self.top.as_os_str(), OsStr::new(&self.base)]).collect()
    }
}

impl Drop for Branching {
    fn drop(&mut self) {
        if !self.done {
            // What fails is left to the next sweep.
            Git::blocking(self.end()).ok();
        }
    }
}

/// Checks that the name can be a new branch's, and returns the commit to begin at.
async fn check(own: &Own<'_>, name: &str) -> Result<String, GitError> {
    let bad = || Refusal::BranchName(journeyman_sandbox::clean(name.as_bytes()));
    // A name such as HEAD, or one that repeats where branches lie, is taken by git and read by nobody as meant.
    if name.starts_with('-') || name.contains('\0') || name == "HEAD" || name.starts_with("refs/") {
        return Err(bad().into());
    }
    let said = own.run(Call::new(["check-ref-format", "--branch", name])).await?;
    // It also reads «the branch before», which isn't a name.
    if !said.is_done() || said.bytes.trim_ascii_end() != name.as_bytes() {
        return Err(bad().into());
    }
    if tip(own, name).await.is_some() {
        return Err(Refusal::BranchExists(name.to_owned()).into());
    }
    let said = own.run(Call::new(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])).await?;
    if !said.is_done() {
        return Err(Refusal::NoCommit.into());
    }
    Ok(String::from_utf8_lossy(&said.bytes).trim_end().to_owned())
}

/// The commit that a branch is at.
async fn tip(own: &Own<'_>, name: &str) -> Option<String> {
    let reference = format!("refs/heads/{name}");
    let said = own.run(Call::new(["show-ref", "--verify", "--hash", &reference])).await.ok()?;
    said.is_done().then(|| String::from_utf8_lossy(&said.bytes).trim_end().to_owned())
}

/// Returns true if a failed attempt got as far as making the worktree.
async fn is_ours(own: &Own<'_>, begun: &Branching) -> bool {
    let Ok(place) = Place::find(&begun.top) else { return false };
    let head = bounded(&place.git_dir.join("HEAD"));
    let expected = format!("ref: refs/heads/{}\n", begun.name);
    place.top.as_deref() == begun.top.canonicalize().ok().as_deref()
        && head == expected.as_bytes()
        && tip(own, &begun.name).await.as_deref() == Some(&begun.base)
}

/// Takes a worktree and its registration away, whatever is in it: it is ours.
async fn remove(own: &Own<'_>, top: &Path) -> Result<(), GitError> {
    let action = "worktree remove";
    let args =
        [OsStr::new("worktree"), "remove".as_ref(), "--force".as_ref(), "--".as_ref(), top.as_os_str()];
    let said = own.run(Call::new(args)).await?;
    match fs::remove_dir_all(top) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::Io { what: "removing", path: top.to_owned(), source })
        }
        _ => said.done(action).map(|_| ()),
    }
}

/// Takes a branch away on which nothing was committed. Git compares and removes in one step.
async fn drop_untouched(own: &Own<'_>, name: &str, base: &str) {
    let reference = format!("refs/heads/{name}");
    if tip(own, name).await.as_deref() == Some(base) {
        // Somebody moved it meanwhile: then it is theirs.
        own.run(Call::new(["update-ref", "-d", &reference, base])).await.ok();
    }
}

fn record(top: &Path) -> PathBuf {
    let mut name = top.as_os_str().to_owned();
    name.push(RECORD);
    name.into()
}

/// Removes the records in a directory: the worktrees that they stood beside are gone.
fn remove_records(dir: &Path) -> Result<(), GitError> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    let names = entries.flatten().map(|entry| entry.path());
    for file in
        names.filter(|file| file.as_os_str().as_bytes().ends_with(RECORD.as_bytes()) && file.is_file())
    {
        let top = file.as_os_str().as_bytes();
        let top = top.strip_suffix(RECORD.as_bytes()).unwrap_or(top);
        if fs::symlink_metadata(OsStr::from_bytes(top)).is_err() {
            fs::remove_file(&file).map_err(GitError::io("removing", &file))?;
        }
    }
    Ok(())
}

fn bounded(file: &Path) -> Vec<u8> {
    read_path(file, MAX_POINTER).ok().flatten().unwrap_or_default()
}

/// Returns true if a path lies beneath a directory, which may be known by another name.
fn lies_in(path: &Path, dir: &Path) -> bool {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let is_plain = path.components().all(|part| part != std::path::Component::ParentDir);
    is_plain && [dir, &real].iter().any(|dir| path.starts_with(dir) && path != *dir)
}
