//! Errors: each says what failed, on which file, and what can be done about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use journeyman_protocol::{ContentHash, RelPath, SessionId};
use journeyman_store::StoreError;
use rustix::io::Errno;

use crate::change::CheckpointId;
use crate::failpoint::TransactionStep;

/// The kind of something that isn't a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAFile {
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// A kind of file that this program doesn't know.
    Other,
}

impl std::fmt::Display for NotAFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "not a file",
        })
    }
}

/// The state found where another was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActualState {
    /// Nothing.
    Nothing,
    /// A file with this content.
    Content {
        /// The content's hash.
        hash: ContentHash,
        /// The size in bytes.
        size: u64,
    },
    /// A symbolic link, or something else that has no content of its own.
    Other,
}

impl std::fmt::Display for ActualState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("it is not there"),
            Self::Content { size, hash } => {
                let hash = hash.to_string();
                write!(f, "it has {size} bytes with the hash {}…", hash.get(..12).unwrap_or(&hash))
            }
            Self::Other => f.write_str("it is a link or another kind of file"),
        }
    }
}

/// An error of the workspace. A refused or failed change leaves the tree as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The project's root can't be opened, or is gone.
    #[error("the project's root {} can't be used ({source}); check that it exists and is a directory you may enter", .path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A link leads out of the project.
    #[error(
        "`{path}` leads out of the project through a link; only files beneath the project's root can be used"
    )]
    Outside {
        /// The path as given.
        path: RelPath,
    },
    /// The path is in git's own directory, which is never touched.
    #[error("`{path}` belongs to git; the workspace never touches it. Use git itself for that")]
    Protected {
        /// The path as given.
        path: RelPath,
    },
    /// The path is part of the program's own data: sessions, contents for an undo, copies.
    #[error(
        "`{path}` is Journeyman's own; nothing is written there. Work in another directory, or keep its state elsewhere (XDG_STATE_HOME)"
    )]
    Own {
        /// The path as given.
        path: RelPath,
    },
    /// Only what is named `.git` is taken out of the tree, and never the project's own.
    #[error("`{path}` isn't taken away: {reason}")]
    NotRemoved {
        /// The path as given.
        path: RelPath,
        /// The reason.
        reason: &'static str,
    },
    /// There is no such file.
    #[error("`{path}` doesn't exist; list the directory to see what does")]
    NotFound {
        /// The path as given.
        path: RelPath,
    },
    /// The path exists, but has no content to read or replace.
    #[error("`{path}` is {kind}; only regular files can be read or written")]
    NotAFile {
        /// The path as given.
        path: RelPath,
        /// The kind of the file.
        kind: NotAFile,
    },
    /// The file has more bytes than the caller accepts. Nothing was read.
    #[error(
        "`{path}` has {size} bytes; at most {limit} are read. Read a part of it with a command, or raise the limit"
    )]
    TooLarge {
        /// The path as given.
        path: RelPath,
        /// The file's size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file isn't what the change was made for. Nothing was changed.
    #[error("`{path}` has changed: {found}. Nothing was written; read it again and redo the change")]
    Conflict {
        /// The file.
        path: RelPath,
        /// The content that the change was made for; `None` when it was to be absent.
        expected: Option<ContentHash>,
        /// The state found.
        found: ActualState,
    },
    /// A directory on the way was replaced by a link while the change ran. Nothing was changed.
    #[error("the directories above `{path}` changed while it was written; nothing was changed, try again")]
    Raced {
        /// The file.
        path: RelPath,
    },
    /// The disk, or the user's quota on it, is full.
    #[error("no space left: can't {action} `{path}`. The tree is as it was; free some space and try again")]
    NoSpace {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: RelPath,
    },
    /// The file system can't be written.
    #[error("`{path}` is on a read-only file system: can't {action}. Mount it writable, or work on a copy")]
    ReadOnly {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: RelPath,
    },
    /// No permission.
    #[error("no permission to {action} `{path}`; check its owner and mode, and those of its directory")]
    Denied {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: RelPath,
    },
    /// A command took away the permission to look into a directory, and it can't be given back.
    #[error(
        "a command made the directory `{path}` unreadable; what it did in there is unknown and can't be undone. Give its permissions back with chmod"
    )]
    MadeUnreadable {
        /// The directory.
        path: RelPath,
    },
    /// Any other failure of the file system in the tree.
    #[error("can't {action} `{path}`: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: RelPath,
        /// The system's words.
        source: io::Error,
    },
    /// A failure in the state directory: the journal, the lock or the cache.
    #[error("can't {action} {}: {source}. Check that the state directory is writable and has room", .path.display())]
    State {
        /// The action that failed.
        action: &'static str,
        /// The file in the state directory.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Another process changes this tree and didn't finish in time.
    #[error(
        "another process ({holder}) is changing this project; waited {waited:?}. Try again when it is done"
    )]
    Busy {
        /// The process that holds the lock, such as `pid 123`.
        holder: String,
        /// The time waited.
        waited: Duration,
    },
    /// A change set asks for more than is taken at once.
    #[error("the change set has {given} changes; at most {limit} are taken at once. Split it")]
    TooManyChanges {
        /// The number given.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// Two changes of one set can't both hold, such as a file and a file beneath it.
    #[error("the changes contradict each other at `{path}`: {reason}")]
    Contradiction {
        /// The path at which the changes contradict each other.
        path: RelPath,
        /// In which way.
        reason: &'static str,
    },
    /// The tree has more files than are looked at.
    #[error(
        "the project has more than {limit} files that aren't ignored; add the generated ones to .gitignore"
    )]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// More paths are guarded than can be protected from a command.
    #[error(
        "the project has more than {limit} files and directories that programs outside the sandbox obey (such as \
         `.envrc` or `.vscode`), too many to protect them from a command; delete those that nobody needs"
    )]
    TooManyGuarded {
        /// The limit.
        limit: usize,
    },
    /// The tree has more directories than can be looked at for what a command plants.
    #[error(
        "the project has more than {limit} directories, ignored ones included, too many to find what a command would \
         plant in them; delete those that nobody needs"
    )]
    TooManyDirectories {
        /// The limit.
        limit: usize,
    },
    /// The content of a guarded path wasn't kept.
    #[error("{path} is too large for a copy of it to be kept")]
    NotKept {
        /// The path.
        path: RelPath,
    },
    /// No checkpoint has this id (any more).
    #[error(
        "there is no checkpoint {id}; `jm checkpoints` lists those that are kept, and `jm doctor` tells if the journal \
         is damaged"
    )]
    UnknownCheckpoint {
        /// The id.
        id: CheckpointId,
    },
    /// Nothing is left to take back.
    #[error("{}", match .session { Some(id) => format!("session {id} has no changes to take back"), None => "no run has changes to take back in this project".to_owned() })]
    NothingToUndo {
        /// The session asked for; `None` for the newest run of any.
        session: Option<SessionId>,
    },
    /// Changes that could have been taken back may be missing from the journal.
    #[error("{} can be taken back: older changes aren't kept any more, because the project's stored history passed its bound. They stay; what git knows, git can bring back", match .session { Some(id) => format!("nothing of session {id}"), None => "nothing more".to_owned() })]
    HistoryDropped {
        /// The session asked for; `None` for the newest run of any.
        session: Option<SessionId>,
    },
    /// The lines that may have recorded what is to be taken back are damaged.
    #[error("{}", match .session {
        Some(id) => format!("lines of the project's journal are damaged, and nothing else of session {id} can be taken back; `jm doctor` names them"),
        None => "lines of the project's journal are damaged, so that the newest changes aren't known; `jm doctor` names them. To take back what is known of a session: `jm undo ID`".to_owned(),
    })]
    HistoryDamaged {
        /// The session asked for; `None` for the newest run of any, or all since a checkpoint.
        session: Option<SessionId>,
    },
    /// The tree is as the journal says it was at this checkpoint.
    #[error(
        "nothing was changed since checkpoint {checkpoint}, as far as it was journaled; `jm diff {checkpoint}` shows what differs all the same"
    )]
    NothingSince {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// The first changes after a checkpoint aren't kept any more.
    #[error(
        "can't go back to checkpoint {checkpoint}: changes after it aren't kept any more, because the project's stored history passed its bound. A later checkpoint may do: `jm checkpoints` lists them"
    )]
    SinceDropped {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// No undo can be redone, or something was changed since.
    #[error("{}", match .session { Some(id) => format!("no undo has taken back changes of session {id}"), None => "there is nothing to do again: nothing was undone, or something was changed since; `jm redo ID` does again what an undo took back of that session, in the files that weren't changed since".to_owned() })]
    NothingToRedo {
        /// The session whose changes were to be made again; without one, those of the newest undo.
        session: Option<SessionId>,
    },
    /// No way of copying the tree works here.
    #[error("the project can't be copied: {}", join_reasons(.reasons))]
    NoCopy {
        /// Each way, with the reason.
        reasons: Vec<(crate::copies::tier::IsolationTier, String)>,
    },
    /// The session has a copy already.
    #[error("session {session} has a copy of the project already; land or discard it first")]
    CopyExists {
        /// The session.
        session: SessionId,
    },
    /// The session's work is in the tree already.
    #[error("the work of session {session} is landed already; to take it back: `jm undo {session}`")]
    AlreadyLanded {
        /// The session.
        session: SessionId,
    },
    /// The session has no copy (any more).
    #[error("session {session} has no copy of the project; it may have been landed or discarded")]
    UnknownCopy {
        /// The session.
        session: SessionId,
    },
    /// A content that a checkpoint or a change needs is missing or damaged in the blob store.
    #[error("the stored state of {what} is gone or damaged; it can't be compared or restored")]
    Lost {
        /// The checkpoint or file whose content is missing.
        what: String,
    },
    /// The blob store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A pattern is not a glob.
    #[error("`{pattern}` is not a valid glob: {reason}")]
    Glob {
        /// The pattern as given.
        pattern: String,
        /// The reason.
        reason: String,
    },
    /// A test's failpoint cut the operation off here.
    #[error("cut off at step {0:?} by a failpoint")]
    CutOff(TransactionStep),
}

impl WorkspaceError {
    /// Converts a failure in the tree into the variant that says what to do.
    pub(crate) fn from_errno(action: &'static str, path: &RelPath, errno: Errno) -> Self {
        let path = path.clone();
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound { path },
            Errno::XDEV => Self::Outside { path },
            Errno::LOOP | Errno::AGAIN => Self::Raced { path },
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace { action, path },
            Errno::ROFS => Self::ReadOnly { action, path },
            Errno::ACCESS | Errno::PERM => Self::Denied { action, path },
            Errno::ISDIR => Self::NotAFile { path, kind: NotAFile::Directory },
            Errno::NXIO => Self::NotAFile { path, kind: NotAFile::Socket },
            other => Self::Io { action, path, source: other.into() },
        }
    }

    /// Returns true if a test's failpoint stands for a crash here: nothing may be cleaned up.
    pub(crate) fn is_cut_off(&self) -> bool {
        matches!(self, Self::CutOff(_))
    }
}

/// Returns true if what failed may work in a while: a full disk, a want of memory or descriptors, a
/// flaw of the medium. Permissions and what is in use are for people to change, and nothing waits
/// for that.
pub(crate) fn is_transient_errno(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSPC
            | Errno::DQUOT
            | Errno::IO
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
            | Errno::INTR
            | Errno::AGAIN
    )
}

/// The reason why an edited text can't be written in the file's own encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The file is binary.
    #[error("the file is binary; it has no text to replace")]
    Binary,
    /// A character has no place in the file's encoding.
    #[error(
        "line {line}: the character {character:?} can't be written in the file's encoding ({encoding}); use another one, or convert the file first"
    )]
    Unrepresentable {
        /// The character.
        character: char,
        /// The character's line, from 1.
        line: usize,
        /// The encoding's name.
        encoding: &'static str,
    },
}

fn join_reasons(reasons: &[(crate::copies::tier::IsolationTier, String)]) -> String {
    let each: Vec<String> = reasons.iter().map(|(tier, reason)| format!("{tier}: {reason}")).collect();
    each.join("; ")
}

pub(crate) fn io_error(action: &'static str, path: &RelPath, source: std::io::Error) -> WorkspaceError {
    WorkspaceError::Io { action, path: path.clone(), source }
}
