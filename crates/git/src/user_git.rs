//! Runs the user's git outside the sandbox, with the user's environment, signing and
//! identity, and without other programs that a repository's settings name.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use journeyman_sandbox::clean_output;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::limits::{MAX_ERROR_OUTPUT_BYTES, MAX_OUTPUT_BYTES, PIPE_DRAIN_TIMEOUT, TERMINATION_TIMEOUT};
use crate::reader::find_git_program;
use crate::repository_paths::RepositoryPaths;
use crate::{Git, GitError, HookConfinement};

/// Variables that would lead git to another repository, index or object store, such as a hook that
/// started this program has set.
const REDIRECTING_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
];

/// Variables that change how git reads paths on its command line.
const PATHSPEC_VARIABLES: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

/// Settings that override all others, so that no unrequested program runs.
const OVERRIDING_SETTINGS: [&str; 5] = [
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
];
/// Disables hooks, which run in the sandbox instead.
const NO_HOOKS_SETTING: &str = "core.hooksPath=/dev/null";

/// Bytes of one read from a pipe.
const READ_CHUNK_BYTES: usize = 16 * 1024;

/// The user's git with the user's environment, for operations that the user asked for.
#[derive(Debug, Clone)]
pub struct UserGit {
    pub(crate) git: Git,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) confinement: HookConfinement,
}

impl Git {
    /// Returns the same git with the user's environment, for commits and branches. Uses the git
    /// that the user's `PATH` finds.
    #[must_use]
    pub fn for_user(&self, env: impl IntoIterator<Item = (OsString, OsString)>) -> UserGit {
        let mut env: BTreeMap<OsString, OsString> = env.into_iter().collect();
        for name in REDIRECTING_VARIABLES.iter().chain(&PATHSPEC_VARIABLES) {
            env.remove(OsStr::new(name));
        }
        let path = env.get(OsStr::new("PATH")).unwrap_or(&self.path);
        let git = self.clone().with_path(path_without_project(path, &self.root));
        UserGit { git, env, confinement: HookConfinement::default() }
    }
}

impl UserGit {
    /// Sets the rules for hooks and other programs.
    #[must_use]
    pub fn with_confinement(self, confinement: HookConfinement) -> Self {
        Self { confinement, ..self }
    }

    /// Returns the rules for hooks and other programs.
    #[must_use]
    pub fn confinement(&self) -> &HookConfinement {
        &self.confinement
    }
}

/// A command of the user's git.
#[derive(Debug, Default)]
pub(crate) struct UserCommand<'a> {
    pub(crate) args: Vec<OsString>,
    pub(crate) stdin: Vec<u8>,
    /// An index other than the repository's.
    pub(crate) index: Option<&'a Path>,
    /// True if git runs hooks itself.
    pub(crate) hooks: bool,
}

impl<'a> UserCommand<'a> {
    pub(crate) fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            args: args.into_iter().map(|argument| argument.as_ref().to_owned()).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn with_stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    pub(crate) fn with_hooks(mut self) -> Self {
        self.hooks = true;
        self
    }

    pub(crate) fn with_index(mut self, file: &'a Path) -> Self {
        self.index = Some(file);
        self
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    /// The exit code; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) bytes: Vec<u8>,
    /// The error output, without control characters.
    pub(crate) words: String,
    pub(crate) cancelled: bool,
}

impl CommandOutcome {
    pub(crate) fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    pub(crate) fn into_error(self, action: &'static str) -> GitError {
        if self.cancelled {
            return GitError::Cancelled { action };
        }
        let words = match (self.words.trim(), self.code) {
            ("", Some(code)) => format!("it ended with code {code}"),
            ("", None) => "it was ended by a signal".to_owned(),
            (words, _) => words.to_owned(),
        };
        GitError::Failed { action, words }
    }

    pub(crate) fn into_output(self, action: &'static str) -> Result<Vec<u8>, GitError> {
        if self.is_success() { Ok(self.bytes) } else { Err(self.into_error(action)) }
    }
}

/// Runs the user's git in one directory.
#[derive(Debug)]
pub(crate) struct UserGitRunner<'a> {
    env: &'a BTreeMap<OsString, OsString>,
    /// The search path for programs, without the work tree.
    path: OsString,
    program: PathBuf,
    directory: PathBuf,
    cancel: CancellationToken,
}

impl UserGit {
    /// Creates a runner at the top of the project's work tree.
    pub(crate) fn runner_at(
        &self,
        place: &RepositoryPaths,
        cancel: &CancellationToken,
    ) -> Result<UserGitRunner<'_>, GitError> {
        let program = find_git_program(&self.git.path, &place.root).ok_or(GitError::Missing)?;
        let directory = place.work_tree()?.to_owned();
        let path = path_without_project(&self.git.path, &directory);
        Ok(UserGitRunner { env: &self.env, path, program, directory, cancel: cancel.clone() })
    }
}

impl UserGitRunner<'_> {
    /// Returns a runner that ignores cancellation.
    pub(crate) fn without_cancellation(&self) -> Self {
        let (program, directory) = (self.program.clone(), self.directory.clone());
        Self { env: self.env, path: self.path.clone(), program, directory, cancel: CancellationToken::new() }
    }

    /// Runs a command to its end. Cancellation ends the command and all its processes.
    pub(crate) async fn run(&self, call: UserCommand<'_>) -> Result<CommandOutcome, GitError> {
        let mut command = Command::new(&self.program);
        let hooks = if call.hooks { None } else { Some(NO_HOOKS_SETTING) };
        command.args(OVERRIDING_SETTINGS.into_iter().chain(hooks).flat_map(|setting| ["-c", setting]));
        command
            .args(&call.args)
            .env_clear()
            .envs(self.env)
            .env("PATH", &self.path)
            .current_dir(&self.directory);
        if let Some(index) = call.index {
            command.env("GIT_INDEX_FILE", index);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own, so that hooks end with it, and so that they can't prompt on
        // this terminal.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => GitError::Io { what: "starting", path: self.program.clone(), source },
        })?;
        let group = ProcessGroup(child.id());
        let out = Mutex::new(BoundedOutput::unabridged());
        let err = Mutex::new(BoundedOutput::head_and_tail());
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let talk = async {
            let give = async {
                if let Some(mut pipe) = pipes.0 {
                    // A program that does not read its input breaks the pipe when it ends.
                    pipe.write_all(&call.stdin).await.ok();
                }
            };
            tokio::join!(give, drain_pipe(pipes.1, &out), drain_pipe(pipes.2, &err));
        };
        tokio::pin!(talk);
        let (status, cancelled, all) = self.wait(&mut child, &group, talk.as_mut()).await?;
        if !all {
            tokio::time::timeout(PIPE_DRAIN_TIMEOUT, talk).await.ok();
        }
        let taken = |kept: &Mutex<BoundedOutput>| kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (bytes, words) = (taken(&out), clean_output(&taken(&err)));
        if bytes.len() > MAX_OUTPUT_BYTES {
            return Err(GitError::OutputTooLarge { action: "output", limit: MAX_OUTPUT_BYTES });
        }
        Ok(CommandOutcome { code: status.code(), bytes, words, cancelled })
    }

    /// Waits for the program's end; also returns whether it was ended by us, and whether its pipes
    /// were closed.
    async fn wait(
        &self,
        child: &mut Child,
        group: &ProcessGroup,
        mut talk: std::pin::Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(std::process::ExitStatus, bool, bool), GitError> {
        let (mut all, mut told) = (false, None);
        loop {
            let deadline = async {
                match told {
                    Some(when) => tokio::time::sleep_until(when).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                status = child.wait() => {
                    let status = status.map_err(GitError::io("waiting for", &self.program))?;
                    return Ok((status, told.is_some(), all));
                }
                () = talk.as_mut(), if !all => all = true,
                () = self.cancel.cancelled(), if told.is_none() => {
                    // After this signal git removes its locks.
                    group.send_signal(rustix::process::Signal::TERM);
                    told = Some(tokio::time::Instant::now() + TERMINATION_TIMEOUT);
                }
                () = deadline => {
                    group.send_signal(rustix::process::Signal::KILL);
                    told = Some(tokio::time::Instant::now() + TERMINATION_TIMEOUT);
                }
            }
        }
    }

    pub(crate) fn environment_variable(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the output of a command that must succeed.
    pub(crate) async fn run_for_output<A: AsRef<OsStr>>(
        &self,
        action: &'static str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, GitError> {
        self.run(UserCommand::new(args)).await?.into_output(action)
    }
}

/// Returns the directories of a `PATH` outside `root` under any name: programs in the project are
/// not trusted.
fn path_without_project(path: &OsStr, root: &Path) -> OsString {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let outside = |directory: &PathBuf| {
        let found = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        directory.is_absolute() && !directory.starts_with(root) && !found.starts_with(&real)
    };
    std::env::join_paths(std::env::split_paths(path).filter(outside))
        .unwrap_or_else(|_| crate::git::DEFAULT_PATH.into())
}

/// The process group of a running command, which is ended in every case.
struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    fn send_signal(&self, signal: rustix::process::Signal) {
        let group = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            // Fails only if the group has ended already.
            rustix::process::kill_process_group(group, signal).ok();
        }
    }
}

async fn drain_pipe(pipe: Option<impl AsyncRead + Unpin>, kept: &Mutex<BoundedOutput>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = vec![0; READ_CHUNK_BYTES];
    while let Ok(count) = pipe.read(&mut piece).await {
        if count == 0 {
            return;
        }
        let bytes = piece.get(..count).unwrap_or_default();
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

/// Output in bounded memory: everything, or its beginning and its end.
struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most: usize,
    end: usize,
    dropped: bool,
}

impl BoundedOutput {
    /// Creates a buffer for a whole output. One byte above the limit shows that there was more.
    fn unabridged() -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), most: MAX_OUTPUT_BYTES + 1, end: 0, dropped: false }
    }

    /// Creates a buffer for the two ends of an output: the end of a hook's output has its error.
    fn head_and_tail() -> Self {
        let most = MAX_ERROR_OUTPUT_BYTES / 4;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            most,
            end: MAX_ERROR_OUTPUT_BYTES - most,
            dropped: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.end);
        self.dropped |= excess > 0;
        self.tail.drain(..excess);
    }

    fn take(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.head);
        if self.dropped && self.end > 0 {
            all.extend_from_slice("\n[…]\n".as_bytes());
        }
        all.extend(std::mem::take(&mut self.tail));
        all
    }
}
