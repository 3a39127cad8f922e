//! A command to run, and its bounds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_protocol::{RelPath, SandboxNeeds};

use crate::{Network, ProjectCopy, Toolchains};

/// Long enough for most builds, short enough that a hung command doesn't end the day.
const DEFAULT_WALL_TIME: Duration = Duration::from_secs(120);
/// Two screens' worth of errors from any compiler fit many times; three captures of it stay below 1
/// MiB.
const DEFAULT_OUTPUT_BYTES: usize = 256 * 1024;
/// Threads count too: a JVM or a linker on a large machine starts hundreds, a fork bomb millions.
const DEFAULT_PROCESSES: u64 = 1024;
/// Above any object file or test database, far below a disk.
const DEFAULT_FILE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Four times the usual soft limit: JVMs and bundlers keep many files open.
const DEFAULT_OPEN_FILES: u64 = 4096;
/// `/tmp`, `/dev/shm`, the private home and the throw-away layers together; it is memory.
const DEFAULT_SCRATCH_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// The default of `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command's access to the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The root is read-only.
    ReadOnly,
    /// Changes land in the root at once, but for its protected paths.
    Direct,
}

/// The command's standard input. It is never a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// These bytes, then the end of the file.
    Bytes(Vec<u8>),
}

/// The treatment of standard output and standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StdioMode {
    /// Each through a pipe of its own. Their order among each other is only about right.
    #[default]
    Separate,
    /// Both through one pipe, so that their order is the command's own. All of it counts as
    /// standard output.
    Merged,
    /// Each through a pipe of its own, and standard output is for a program, not for a reader: it
    /// comes back byte for byte in [`Completed::exact`](crate::CompletedCommand::exact) and nowhere
    /// else. A command that writes more than [`Limits::output_bytes`] of it is killed.
    Exact,
    /// Standard input, output and error are a pseudo-terminal of the command's own, of this size,
    /// whose session it leads; what is written to it counts as standard output. [`Stdin::Bytes`]
    /// are typed into it, and then the end of the file; what is typed comes back as output, and of
    /// a line longer than 4,095 bytes the rest is lost, as with any terminal.
    /// [`SandboxTier::Unconfined`](journeyman_protocol::SandboxTier::Unconfined) has none.
    Terminal {
        /// Characters a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
}

/// The treatment of a slow reader of live output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveOutputMode {
    /// The command is never slowed: a reader who lags misses pieces.
    #[default]
    Lossy,
    /// The command waits for the reader, as with a pipe:
    /// [`Running::next`](crate::RunningCommand::next_chunk) gives every byte.
    Whole,
}

/// A file that takes a command's whole output, in the order it came, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    /// The path of a file that doesn't exist yet. Never a path that the command sees.
    pub path: PathBuf,
    /// Maximum bytes of the file; output beyond it is only counted.
    pub bytes: u64,
}

/// Upper bounds of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Wall time; then the whole tree is killed.
    pub wall: Duration,
    /// Bytes of output kept of each stream, half from its beginning and half from its end.
    pub output_bytes: usize,
    /// A command that writes more output than this is killed; by default 64 times what is kept.
    pub flood_bytes: Option<u64>,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of the largest file it may write.
    pub file_bytes: u64,
    /// Open descriptors a process; never above the agent's own hard limit.
    pub open_files: u64,
    /// Processor time of all its processes together; a single one is besides stopped by the kernel
    /// at this time rounded up to seconds.
    pub cpu: Option<Duration>,
    /// Bytes of memory that all its processes hold together; above it the tree is killed. By
    /// default three quarters of the machine's.
    pub memory: Option<u64>,
    /// Bytes of address space a process. Off by default: JVMs, Go and sanitizers reserve far more
    /// than they use.
    pub address_space: Option<u64>,
    /// Bytes that the writable paths may grow by on disk; above it the tree is killed. By default a
    /// quarter of what is free there when it starts.
    pub disk_bytes: Option<u64>,
    /// Bytes that `/tmp`, `/dev/shm`, the private home and the throw-away layers may hold together.
    pub scratch_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: DEFAULT_WALL_TIME,
            output_bytes: DEFAULT_OUTPUT_BYTES,
            flood_bytes: None,
            processes: DEFAULT_PROCESSES,
            file_bytes: DEFAULT_FILE_BYTES,
            open_files: DEFAULT_OPEN_FILES,
            cpu: None,
            memory: None,
            address_space: None,
            disk_bytes: None,
            scratch_bytes: DEFAULT_SCRATCH_BYTES,
        }
    }
}

/// One command and all it may see.
///
/// Paths are those of the host, absolute; every one is mounted at its own place, so that compilers
/// print paths the caller knows. A listed path that doesn't exist is left out, except the root and
/// the directory.
#[derive(Debug, Clone)]
pub struct Request {
    /// Program and arguments. Without a `/`, the program is looked up in `PATH` of `env`, inside
    /// the sandbox.
    pub argv: Vec<OsString>,
    /// The working directory: beneath the root or a listed path.
    pub cwd: PathBuf,
    /// The exact environment; nothing is inherited. `HOME`, if set, becomes a private empty
    /// directory.
    pub env: BTreeMap<OsString, OsString>,
    /// The project. Refused: `/`, a system directory, the home directory or one above it.
    pub root: PathBuf,
    /// The tree at the root inside, in place of the host's.
    pub base: Option<ProjectCopy>,
    /// The access to the root.
    pub write: WriteMode,
    /// Further paths, readable.
    pub read_only: Vec<PathBuf>,
    /// Further paths, writable. Refused as the root is.
    pub writable: Vec<PathBuf>,
    /// Directories that read as the real ones and take writes into a layer that is thrown away.
    /// Where the kernel can't do that, they are read-only.
    pub layered: Vec<PathBuf>,
    /// Paths beneath the root that stay read-only. One that doesn't exist is not created, so the
    /// command can create it; one that is a symbolic link is refused.
    pub protected: Vec<RelPath>,
    /// Paths beneath the root with files that have other names outside of it (hard links), which a
    /// command that writes to them would change there. They stay read-only, as protected ones do; a
    /// back-end that can't see to that refuses a command that may write. Of no account where
    /// [`Request::base`] is a copy, whose files are its own.
    pub linked: Vec<RelPath>,
    /// Files and directories that look empty.
    pub masked: Vec<PathBuf>,
    /// Standard input.
    pub stdin: Stdin,
    /// The treatment of the output streams.
    pub streams: StdioMode,
    /// The treatment of a slow reader of live output.
    pub live: LiveOutputMode,
    /// The file that additionally takes the whole output.
    pub spill: Option<SpillFile>,
    /// The network.
    pub network: Network,
    /// Bounds.
    pub limits: Limits,
    /// The guarantees without which the command doesn't run.
    pub needs: SandboxNeeds,
    /// A file that is locked (`flock`, shared) for as long as any process of the command lives,
    /// also when this program is killed: whoever gets it exclusively knows that the command is
    /// gone. Where the file isn't there any more, or somebody has it exclusively, the command
    /// doesn't run. Unconfined ones take no notice of it.
    pub witness: Option<PathBuf>,
}

impl Request {
    /// Creates a request for `command` by `/bin/sh -c` in `root`, with everything confined, `.git`
    /// and `.journeyman` protected, and a minimal environment.
    #[must_use]
    pub fn for_shell_command(root: &Path, command: &str) -> Self {
        let argv = ["/bin/sh", "-c", command].map(OsString::from).to_vec();
        Self::for_program(root, argv)
    }

    /// Creates the same request for a program and its arguments, without a shell.
    #[must_use]
    pub fn for_program(root: &Path, argv: Vec<OsString>) -> Self {
        let env = [("PATH", DEFAULT_PATH), ("LANG", "C.UTF-8"), ("TERM", "dumb"), ("TMPDIR", "/tmp")];
        Self {
            argv,
            cwd: root.to_owned(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            root: root.to_owned(),
            base: None,
            write: WriteMode::Direct,
            read_only: Vec::new(),
            writable: Vec::new(),
            layered: Vec::new(),
            protected: [".git", ".journeyman"].iter().filter_map(|name| RelPath::parse(name).ok()).collect(),
            linked: Vec::new(),
            masked: Vec::new(),
            stdin: Stdin::Null,
            streams: StdioMode::Separate,
            live: LiveOutputMode::Lossy,
            spill: None,
            network: Network::Off,
            limits: Limits::default(),
            needs: SandboxNeeds::ALL,
            witness: None,
        }
    }

    /// Makes the host's toolchains visible and sets their environment. Variables set before by the
    /// caller give way, so add own ones after. The offline settings apply only while the network is
    /// off.
    #[must_use]
    pub fn with_toolchains(mut self, toolchains: &Toolchains) -> Self {
        self.read_only.extend(toolchains.read_only.iter().cloned());
        self.layered.extend(toolchains.layered.iter().cloned());
        self.masked.extend(toolchains.masked.iter().cloned());
        self.env.extend(toolchains.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        if !matches!(self.network, Network::Filtered(_) | Network::Host) {
            let offline = toolchains.offline.iter();
            self.env.extend(offline.map(|(name, value)| (name.clone(), value.clone())));
        }
        self
    }

    pub(crate) fn env_variable(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str)
    }
}
