//! Runs git to read a repository: confined, and with every setting disabled that could
//! run a program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_protocol::{SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Limits, Outcome, Request, SandboxError, Stdin, StdioMode, WriteMode, clean_output};
use tokio_util::sync::CancellationToken;

use crate::limits::{
    LONG_READ_TIMEOUT, MAX_ERROR_OUTPUT_BYTES, MAX_FILTERS, MAX_OUTPUT_BYTES, MAX_SHORT_OUTPUT_BYTES,
    READ_TIMEOUT,
};
use crate::repository_paths::RepositoryPaths;
use crate::{Git, GitError, overrides};

/// The oldest git that accepts settings from numbered environment variables and a named global
/// settings file.
const MIN_VERSION: (u32, u32) = (2, 32);
const MIN_VERSION_TEXT: &str = "2.32";

/// The exit code of git, and of a shell, for a command that can't run at all.
const NOT_FOUND_EXIT_CODE: i32 = 127;

/// Runs reading commands in one repository.
#[derive(Debug)]
pub(crate) struct GitReader<'a> {
    git: &'a Git,
    pub(crate) place: RepositoryPaths,
    program: PathBuf,
    env: BTreeMap<OsString, OsString>,
    outside: Vec<PathBuf>,
    needs: SandboxNeeds,
}

/// A reading command.
#[derive(Debug)]
pub(crate) struct ReadCommand<'a> {
    /// The operation, as a person would name it.
    pub(crate) action: &'static str,
    /// The arguments of the program, or of the script if there is one.
    pub(crate) args: Vec<OsString>,
    /// A shell script with the git program as `$1`, followed by the arguments.
    pub(crate) script: Option<&'static str>,
    /// Additional variables.
    pub(crate) env: Vec<(&'static str, OsString)>,
    pub(crate) stdin: Option<Vec<u8>>,
    /// The working directory, which the command may write to, if it is not the project.
    pub(crate) into: Option<&'a Path>,
    /// Maximum output in bytes.
    pub(crate) limit: usize,
    pub(crate) wall: Duration,
}

impl ReadCommand<'_> {
    pub(crate) fn new<A: AsRef<OsStr>>(action: &'static str, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let (script, env, stdin, into) = (None, Vec::new(), None, None);
        Self { action, args, script, env, stdin, into, limit: MAX_SHORT_OUTPUT_BYTES, wall: READ_TIMEOUT }
    }

    pub(crate) fn with_output_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Raises the limits for an output as large as the work tree.
    pub(crate) fn with_large_limits(self) -> Self {
        Self { wall: LONG_READ_TIMEOUT, ..self.with_output_limit(MAX_OUTPUT_BYTES) }
    }
}

/// The output of a reading command.
#[derive(Debug)]
pub(crate) struct ReadOutput {
    pub(crate) code: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) words: String,
}

impl ReadOutput {
    /// Returns the output if the command succeeded.
    pub(crate) fn into_output(self, action: &'static str) -> Result<Vec<u8>, GitError> {
        if self.code == 0 { Ok(self.bytes) } else { Err(self.into_error(action)) }
    }

    pub(crate) fn into_error(self, action: &'static str) -> GitError {
        if self.code == NOT_FOUND_EXIT_CODE {
            return GitError::Missing;
        }
        let words = self.words.trim();
        let words =
            if words.is_empty() { format!("it ended with code {}", self.code) } else { words.to_owned() };
        GitError::Failed { action, words }
    }
}

impl<'a> GitReader<'a> {
    /// Finds the repository and the settings to disable.
    pub(crate) async fn open(git: &'a Git) -> Result<Self, GitError> {
        let place = RepositoryPaths::find(&git.root)?;
        let program = find_git_program(&git.path, &place.root).ok_or(GitError::Missing)?;
        // The sandbox enforces all that it can; these are the needs without which no read runs.
        let needs = SandboxNeeds {
            writes_confined: true,
            reads_confined: true,
            network_off: true,
            ..SandboxNeeds::NONE
        };
        let enforcement = git.sandbox.enforcement(&needs).await?;
        let confined = enforcement.tier != SandboxTier::Unconfined;
        let needs = if confined { needs } else { SandboxNeeds::NONE };
        let outside = place.outside_paths();
        let mut reader =
            Self { git, program, env: overrides::reader_environment(&[]), outside, needs, place };
        if !confined {
            reader.check_version().await?;
        }
        if overrides::may_have_filters(reader.place.read_settings().as_deref()) {
            let names = reader.list_filters().await?;
            reader.env = overrides::reader_environment(&names);
        }
        Ok(reader)
    }

    async fn list_filters(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let action = "config";
        // With names only, a setting without a value looks like one with a value.
        let list = ReadCommand::new(action, ["config", "-z", "--includes", "--name-only", "--list"]);
        let listed = self.run(list).await?.into_output(action)?;
        let names = overrides::parse_filter_names(&listed);
        if names.len() > MAX_FILTERS {
            return Err(GitError::InvalidRequest(format!("the repository names {} filters", names.len())));
        }
        Ok(names)
    }

    async fn check_version(&self) -> Result<(), GitError> {
        let action = "version";
        let text = self.run(ReadCommand::new(action, ["version"])).await?.into_output(action)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let found = text.split_whitespace().nth(2).unwrap_or_default();
        let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= MIN_VERSION {
            return Ok(());
        }
        Err(GitError::TooOld { found: clean_output(found.as_bytes()), least: MIN_VERSION_TEXT })
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, ask: ReadCommand<'_>) -> Result<ReadOutput, GitError> {
        let (action, limit) = (ask.action, ask.limit);
        let request = self.sandbox_request(ask);
        let running = self.git.sandbox.spawn(request, CancellationToken::new()).await;
        let running = running.map_err(|error| match error {
            SandboxError::Start { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                GitError::Missing
            }
            other => GitError::Sandbox(other),
        })?;
        let completed = running.wait().await?;
        let words = completed.stderr.text;
        match completed.outcome {
            Outcome::Exited(_) if completed.exact.len() > limit => {
                Err(GitError::OutputTooLarge { action, limit })
            }
            Outcome::Exited(code) => Ok(ReadOutput { code, bytes: completed.exact, words }),
            Outcome::OutputLimit => Err(GitError::OutputTooLarge { action, limit }),
            Outcome::TimedOut => Err(GitError::TimedOut { action }),
            Outcome::Cancelled => Err(GitError::Cancelled { action }),
            Outcome::Signaled(signal) => {
                Err(GitError::Failed { action, words: format!("it was ended by signal {signal}") })
            }
            excess @ (Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
                let words = format!("it was killed for {}", excess.exceeded_limit().unwrap_or_default());
                Err(GitError::Failed { action, words })
            }
            Outcome::SetupFailed(failure) => Err(GitError::Failed { action, words: failure.reason }),
        }
    }

    fn sandbox_request(&self, ask: ReadCommand<'_>) -> Request {
        let mut argv = match ask.script {
            Some(script) => ["/bin/sh", "-c", script, "sh"].map(OsString::from).to_vec(),
            None => Vec::new(),
        };
        argv.push(self.program.clone().into_os_string());
        argv.extend(ask.args);
        let mut request = Request::for_program(&self.place.root, argv);
        request.env = self.env.clone();
        request.env.insert("PATH".into(), self.git.path.clone());
        // With both named, git searches for neither, so that no other repository can be used.
        request.env.insert("GIT_DIR".into(), self.place.git_dir.clone().into_os_string());
        if let Some(top) = &self.place.top {
            request.env.insert("GIT_WORK_TREE".into(), top.clone().into_os_string());
        }
        request.env.extend(ask.env.into_iter().map(|(name, value)| (name.into(), value)));
        request.write = WriteMode::ReadOnly;
        request.read_only.clone_from(&self.outside);
        request.read_only.extend(program_directories(&self.program));
        if let Some(into) = ask.into {
            into.clone_into(&mut request.cwd);
            request.writable.push(into.to_owned());
        }
        request.stdin = ask.stdin.map_or(Stdin::Null, Stdin::Bytes);
        request.streams = StdioMode::Exact;
        // Only a part of the error output is kept: git may print a line for every file.
        request.limits = Limits {
            wall: ask.wall,
            output_bytes: ask.limit.max(MAX_ERROR_OUTPUT_BYTES),
            file_bytes: u64::MAX,
            ..Limits::default()
        };
        request.needs = self.needs;
        request
    }
}

/// Returns the program that `path` finds, except in the project.
pub(crate) fn find_git_program(path: &OsStr, root: &Path) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join("git")).find(|file| {
        !file.starts_with(root)
            && file.canonicalize().is_ok_and(|real| real.is_file() && !real.starts_with(root))
    })
}

/// Directories that every sandbox shows.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/usr", "/bin", "/opt", "/nix"];

/// Returns the directories of a program outside the system directories, under each of their names.
fn program_directories(program: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let program_directories = [program, &real].map(|file| file.parent().unwrap_or(file).to_owned());
    program_directories
        .into_iter()
        .filter(|home| !SYSTEM_DIRECTORIES.iter().any(|system| home.starts_with(system)))
        .collect()
}
