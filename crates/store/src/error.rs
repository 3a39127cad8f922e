//! The errors of a store, with advice.

use std::io;
use std::path::{Path, PathBuf};

use journeyman_protocol::{ContentHash, Seq, SessionId, UnixMillis};

/// The error of a store. In every case, everything that was stored before is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The log has entries that the caller hasn't read: another process writes this session.
    #[error(
        "session {session} is at entry {found}, not {expected}: another process wrote to it; read it again first"
    )]
    Conflict {
        /// The session.
        session: SessionId,
        /// The last entry that the caller expected.
        expected: Seq,
        /// The last entry.
        found: Seq,
    },
    /// No session has this id.
    #[error("there is no session {session}; `jm sessions` lists them")]
    UnknownSession {
        /// The id.
        session: SessionId,
    },
    /// A session with this id exists already.
    #[error("session {session} exists already; sessions are never overwritten")]
    SessionExists {
        /// The id.
        session: SessionId,
    },
    /// The session's log has no such entry.
    #[error("session {session} has no entry {asked}; its last one is {last}")]
    NoSuchEntry {
        /// The session.
        session: SessionId,
        /// The requested sequence number.
        asked: Seq,
        /// The sequence number of its last entry.
        last: Seq,
    },
    /// Another writer holds the session.
    #[error("session {session} is in use by {holder}; end that, or wait until it ends")]
    Leased {
        /// The session.
        session: SessionId,
        /// The holder, in its own words, such as `pid 123`.
        holder: String,
        /// The end of the lease, if it isn't renewed.
        until: UnixMillis,
    },
    /// An entry is larger than the log takes.
    #[error(
        "an entry of kind `{kind}` has {bytes} bytes; the log takes at most {limit}; store the payload as a blob"
    )]
    EntryTooLarge {
        /// The entry's kind, shortened.
        kind: String,
        /// Its size in bytes, kind and payload together.
        bytes: u64,
        /// The maximum.
        limit: u64,
    },
    /// The log's file is damaged.
    #[error(
        "the session log {} is damaged ({detail}). Nothing was changed, moved or deleted. To go on with what can be \
         read: `jm doctor --repair`, which keeps the damaged file beside the new one. To go on with an empty log: \
         move the file, and the ones beside it ending in -wal and -shm, elsewhere", .path.display()
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// A description of the damage.
        detail: String,
    },
    /// The log's file was moved or removed after it was opened.
    #[error(
        "the session log {} was removed or replaced while it was in use", .path.display()
    )]
    Gone {
        /// The database file.
        path: PathBuf,
    },
    /// The log was written by a newer version of this program.
    #[error(
        "the session log {} has format {found}, and this version knows formats up to {known}; nothing was changed. \
         Use the newer version, or another state directory", .path.display()
    )]
    NewerFormat {
        /// The database file.
        path: PathBuf,
        /// The format it has.
        found: i64,
        /// The newest format that this version reads.
        known: i64,
    },
    /// The data to import isn't an exported session.
    #[error("line {line} of the exported session is not as it should be: {detail}. Nothing was imported")]
    BadExport {
        /// The line, from 1.
        line: u64,
        /// The fault.
        detail: String,
    },
    /// Another process held the log for longer than the time-out.
    #[error("the session log {} is locked by another process; try again when it is done", .path.display())]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// The device is full, or the user's disk quota is used up.
    #[error("the disk is full: can't {action} {} ({detail}). What was stored before is kept; free some space and try again", .path.display())]
    DiskFull {
        /// The action that failed.
        action: &'static str,
        /// The path of the failed action.
        path: PathBuf,
        /// The system's error.
        detail: String,
    },
    /// The device failed while entries were made durable.
    #[error(
        "the disk failed while entries were written to the session log {} ({detail}): whether they are stored is \
         not known until it is tried again; what was stored before is kept. Check the disk", .path.display()
    )]
    Uncertain {
        /// The database file.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// The file or directory can't be opened or written.
    #[error("no access: can't {action} {} ({detail}). Check its owner and mode, or choose another state directory with XDG_STATE_HOME", .path.display())]
    NoAccess {
        /// The action that failed.
        action: &'static str,
        /// The path of the failed action.
        path: PathBuf,
        /// The system's error.
        detail: String,
    },
    /// Any other failure of the file system.
    #[error("can't {action} {}: {source}", .path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The path of the failed action.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other failure of the database.
    #[error("the session log {}: can't {action}: {detail}", .path.display())]
    Database {
        /// The action that failed.
        action: &'static str,
        /// The database file.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// The thread that owns the database could not be started or is gone.
    #[error("the session log {} is closed ({detail}); open it again", .path.display())]
    Closed {
        /// The database file.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// A blob's bytes don't have the hash in its name.
    #[error("blob {hash} is damaged ({detail}): {} is kept as it is; what it held can't be restored from here", .path.display())]
    BlobDamaged {
        /// The blob.
        hash: ContentHash,
        /// Its file.
        path: PathBuf,
        /// A description of the damage.
        detail: String,
    },
    /// A blob is larger than can be stored.
    #[error("{bytes} bytes are too many for one blob; at most {limit} can be stored")]
    BlobTooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The maximum.
        limit: u64,
    },
    /// The quota is used up by blobs that may not be removed.
    #[error(
        "the blobs in {} use {used} of {quota} bytes, all of them pinned or recent, and {needed} more are needed; \
         delete old sessions or raise the quota", .dir.display()
    )]
    QuotaFull {
        /// The directory of the blobs.
        dir: PathBuf,
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        quota: u64,
        /// Bytes asked for.
        needed: u64,
    },
}

impl StoreError {
    /// Returns true if a change that ended with this error may have been stored all the same. See
    /// [`Store::append`](crate::Store::append) for the consequences.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Uncertain { .. } | Self::Closed { .. })
    }

    /// Returns true if the medium refused a write.
    #[must_use]
    pub fn is_refused_write(&self) -> bool {
        // Actions that only read.
        let looks = |action: &str| {
            ["read", "list", "look", "check", "watch", "open"].iter().any(|verb| action.starts_with(verb))
        };
        match self {
            Self::DiskFull { action, .. }
            | Self::NoAccess { action, .. }
            | Self::Io { action, .. }
            | Self::Database { action, .. } => !looks(action),
            Self::Conflict { .. } | Self::EntryTooLarge { .. } | Self::Gone { .. } => true,
            _ => self.is_uncertain(),
        }
    }

    /// Returns a copy of the error for another call of the same failed group. Only failures of the
    /// medium affect several calls.
    pub(crate) fn clone_for_call(&self, log: &Path) -> Self {
        let (log, text) = (log.to_owned(), self.to_string());
        match self {
            Self::Damaged { path, detail } => Self::Damaged { path: path.clone(), detail: detail.clone() },
            Self::NewerFormat { path, found, known } => {
                Self::NewerFormat { path: path.clone(), found: *found, known: *known }
            }
            Self::Gone { path } => Self::Gone { path: path.clone() },
            Self::Busy { path } => Self::Busy { path: path.clone() },
            Self::DiskFull { action, path, detail } => {
                Self::DiskFull { action, path: path.clone(), detail: detail.clone() }
            }
            Self::Uncertain { path, detail } => {
                Self::Uncertain { path: path.clone(), detail: detail.clone() }
            }
            Self::NoAccess { action, path, detail } => {
                Self::NoAccess { action, path: path.clone(), detail: detail.clone() }
            }
            Self::Io { action, path, source } => {
                let source = match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(source.kind(), source.to_string()),
                };
                Self::Io { action, path: path.clone(), source }
            }
            Self::Database { action, path, detail } => {
                Self::Database { action, path: path.clone(), detail: detail.clone() }
            }
            Self::Closed { path, detail } => Self::Closed { path: path.clone(), detail: detail.clone() },
            _ => Self::Database { action: "write to", path: log, detail: text },
        }
    }

    /// Converts an error of the file system to the variant with the matching advice.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { action, path, detail: source.to_string() }
            }
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory => Self::NoAccess { action, path, detail: source.to_string() },
            _ => Self::Io { action, path, source },
        }
    }
}
