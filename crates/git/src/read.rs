//! Running git to look at something: confined, and with everything off that a repository could make it run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_protocol::{SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Limits, Outcome, Request, SandboxError, Stdin, Streams, WriteMode, clean};
use tokio_util::sync::CancellationToken;

use crate::limits::{LONG_READ_WALL, MAX_ANSWER, MAX_FILTERS, MAX_OUTPUT, MAX_WORDS, READ_WALL};
use crate::place::Place;
use crate::{Git, GitError, shield};

/// The oldest git that takes settings from the environment by number and lets the global ones be named.
const LEAST: (u32, u32) = (2, 32);
const LEAST_TEXT: &str = "2.32";

/// The exit code of git, and of a shell, for what can't be done at all.
const NO_PROGRAM: i32 = 127;

/// A reader of one repository, as it is now.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    git: &'a Git,
    pub(crate) place: Place,
    program: PathBuf,
    env: BTreeMap<OsString, OsString>,
    outside: Vec<PathBuf>,
    needs: SandboxNeeds,
}

/// One reading command.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    /// The action, as a person would name it.
    pub(crate) action: &'static str,
    /// The program's arguments; where there is a script, its.
    pub(crate) args: Vec<OsString>,
    /// A script for the shell, with the git program as `$1`; its arguments come after.
    pub(crate) script: Option<&'static str>,
    /// Variables besides.
    pub(crate) env: Vec<(&'static str, OsString)>,
    pub(crate) stdin: Option<Vec<u8>>,
    /// The working directory, if not the project; the command may write there.
    pub(crate) into: Option<&'a Path>,
    /// Bytes it may give.
    pub(crate) limit: usize,
    pub(crate) wall: Duration,
}

impl Ask<'_> {
    pub(crate) fn new<A: AsRef<OsStr>>(action: &'static str, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let (script, env, stdin, into) = (None, Vec::new(), None, None);
        Self { action, args, script, env, stdin, into, limit: MAX_ANSWER, wall: READ_WALL }
    }

    pub(crate) fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// For an answer as large as the work tree, or that takes as long.
    pub(crate) fn large(self) -> Self {
        Self { wall: LONG_READ_WALL, ..self.limit(MAX_OUTPUT) }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) words: String,
}

impl Answer {
    /// The output, if the command did what it was to do.
    pub(crate) fn done(self, action: &'static str) -> Result<Vec<u8>, GitError> {
        if self.code == 0 { Ok(self.bytes) } else { Err(self.failed(action)) }
    }

    pub(crate) fn failed(self, action: &'static str) -> GitError {
        if self.code == NO_PROGRAM {
            return GitError::Missing;
        }
        let words = self.words.trim();
        let words =
            if words.is_empty() { format!("it ended with code {}", self.code) } else { words.to_owned() };
        GitError::Failed { action, words }
    }
}

impl<'a> Reader<'a> {
    /// Finds the repository, and what of its settings has to be switched off.
    pub(crate) async fn open(git: &'a Git) -> Result<Self, GitError> {
        let place = Place::find(&git.root)?;
        let program = program(&git.path, &place.root).ok_or(GitError::Missing)?;
        // The whole of what the tier has is enforced anyway; this is what a read can't do without.
        let needs = SandboxNeeds {
            writes_confined: true,
            reads_confined: true,
            network_off: true,
            ..SandboxNeeds::NONE
        };
        let enforcement = git.sandbox.enforcement(&needs).await?;
        let confined = enforcement.tier != SandboxTier::Unconfined;
        let needs = if confined { needs } else { SandboxNeeds::NONE };
        let outside = place.outside();
        let mut reader = Self { git, program, env: shield::environment(&[]), outside, needs, place };
        if !confined {
            reader.is_new_enough().await?;
        }
        if shield::may_have_filters(reader.place.settings().as_deref()) {
            let names = reader.filters().await?;
            reader.env = shield::environment(&names);
        }
        Ok(reader)
    }

    async fn filters(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let action = "config";
        // A setting of no value and one of a value look alike with names only.
        let list = Ask::new(action, ["config", "-z", "--includes", "--name-only", "--list"]);
        let listed = self.run(list).await?.done(action)?;
        let names = shield::filters(&listed);
        if names.len() > MAX_FILTERS {
            return Err(GitError::Refused(format!("the repository names {} filters", names.len())));
        }
        Ok(names)
    }

    async fn is_new_enough(&self) -> Result<(), GitError> {
        let action = "version";
        let text = self.run(Ask::new(action, ["version"])).await?.done(action)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let found = text.split_whitespace().nth(2).unwrap_or_default();
        let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= LEAST {
            return Ok(());
        }
        Err(GitError::TooOld { found: clean(found.as_bytes()), least: LEAST_TEXT })
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self, ask: Ask<'_>) -> Result<Answer, GitError> {
        let (action, limit) = (ask.action, ask.limit);
        let request = self.request(ask);
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
            Outcome::Exited(_) if completed.exact.len() > limit => Err(GitError::TooMuch { action, limit }),
            Outcome::Exited(code) => Ok(Answer { code, bytes: completed.exact, words }),
            Outcome::OutputLimit => Err(GitError::TooMuch { action, limit }),
            Outcome::TimedOut => Err(GitError::TimedOut { action }),
            Outcome::Cancelled => Err(GitError::Cancelled { action }),
            Outcome::Signaled(signal) => {
                Err(GitError::Failed { action, words: format!("it was ended by signal {signal}") })
            }
            excess @ (Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
                let words = format!("it was killed for {}", excess.excess().unwrap_or_default());
                Err(GitError::Failed { action, words })
            }
            Outcome::SetupFailed(words) => Err(GitError::Failed { action, words }),
        }
    }

    fn request(&self, ask: Ask<'_>) -> Request {
        let mut argv = match ask.script {
            Some(script) => ["/bin/sh", "-c", script, "sh"].map(OsString::from).to_vec(),
            None => Vec::new(),
        };
        argv.push(self.program.clone().into_os_string());
        argv.extend(ask.args);
        let mut request = Request::program(&self.place.root, argv);
        request.env = self.env.clone();
        request.env.insert("PATH".into(), self.git.path.clone());
        // Named, neither is looked for: no other repository can come in between.
        request.env.insert("GIT_DIR".into(), self.place.git_dir.clone().into_os_string());
        if let Some(top) = &self.place.top {
            request.env.insert("GIT_WORK_TREE".into(), top.clone().into_os_string());
        }
        request.env.extend(ask.env.into_iter().map(|(name, value)| (name.into(), value)));
        request.write = WriteMode::ReadOnly;
        request.read_only.clone_from(&self.outside);
        request.read_only.extend(homes(&self.program));
        if let Some(into) = ask.into {
            into.clone_into(&mut request.cwd);
            request.writable.push(into.to_owned());
        }
        request.stdin = ask.stdin.map_or(Stdin::Null, Stdin::Bytes);
        request.streams = Streams::Exact;
        // What git says besides is kept in part, and floods nothing: it may have a line for every file.
        request.limits = Limits {
            wall: ask.wall,
            output_bytes: ask.limit.max(MAX_WORDS),
            file_bytes: u64::MAX,
            ..Limits::default()
        };
        request.needs = self.needs;
        request
    }
}

/// The program as `path` has it, but never one that lies in the project.
pub(crate) fn program(path: &OsStr, root: &Path) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join("git")).find(|file| {
        !file.starts_with(root)
            && file.canonicalize().is_ok_and(|real| real.is_file() && !real.starts_with(root))
    })
}

/// The system directories that every sandbox needs.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/opt", "/nix"];

/// The directories that a program elsewhere lies in, under each of its names.
fn homes(program: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let homes = [program, &real].map(|file| file.parent().unwrap_or(file).to_owned());
    homes.into_iter().filter(|home| !SYSTEM.iter().any(|system| home.starts_with(system))).collect()
}
