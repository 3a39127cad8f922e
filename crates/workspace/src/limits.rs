//! Every bound of this crate, with its reason, and the options a workspace is opened with.

use std::time::Duration;

/// Ignored files that a command changes or deletes, of which the smallest are kept for an undo:
/// settings, keys and small data are fewer; a build's directory has more.
pub const MAX_KEPT_IGNORED_FILES: usize = 1_000;
/// Maximum bytes of the ignored files that are kept for an undo.
pub const MAX_KEPT_IGNORED_BYTES: u64 = 64 * 1024 * 1024;
/// Ignored files that are looked at before a command, besides what tools make again: a
/// millisecond's work or two.
pub const MAX_IGNORED_FILES: usize = 4_000;

/// Files larger than this are recorded by their stat signature only, so that a checkpoint doesn't
/// copy disk images: 16 MiB is beyond any source file.
pub const DEFAULT_KEPT_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum length of a change's description in the journal, in bytes: a few sentences.
pub const MAX_DESCRIPTION_BYTES: usize = 1_000;
/// Maximum number of descriptions that a checkpoint lists: more aren't read beside it.
pub const MAX_DESCRIPTIONS: usize = 20;
/// Maximum size of the contents that one project's snapshot keeps; later files are recorded by stat
/// only. 1 GiB is the quota of a project's blobs.
pub const DEFAULT_KEPT_PROJECT_BYTES: u64 = 1024 * 1024 * 1024;
/// Maximum disk use of a project's checkpoints and changes, packed, before the oldest are
/// dropped: hundreds of runs on an ordinary project, and little enough to go unnoticed on any disk
/// (decision 7).
pub const DEFAULT_QUOTA_BYTES: u64 = 1024 * 1024 * 1024;
/// The time that a change waits for another process that changes the same tree.
pub const DEFAULT_LOCK_WAIT: Duration = Duration::from_secs(10);
/// The most files that a walk looks at: five times the largest repository the bounds of speed are
/// stated for.
pub const MAX_WALKED_FILES: usize = 400_000;
/// Directories nested deeper than this aren't entered.
pub const MAX_DEPTH: usize = journeyman_ignore_rules::walk::MAX_DEPTH;
/// The most changes of one set. A model's edit has a few; an undo may have as many as a command
/// changed.
pub const MAX_CHANGES: usize = 10_000;
/// The interval at which a running command's heartbeat is renewed. Changes later than that after
/// the last heartbeat aren't the command's: short enough for a person at the keyboard, and a touch
/// costs microseconds.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of intervals by which a heartbeat may be late. A virtual machine may stand still
/// for more than a second, and its program be killed before it touches the heartbeat again. What a
/// person changes in these seconds is put back too, with a checkpoint that a redo restores.
pub(crate) const MAX_LATE_INTERVALS: u32 = 12;
/// Maximum number of heartbeats of commands that were cut off and never recovered; beyond this the
/// oldest are removed.
pub(crate) const MAX_STALE_HEARTBEATS: usize = 256;
/// Maximum number of files that a heartbeat lists as different from its checkpoint; with more, a
/// new tree is stored for it.
pub(crate) const MAX_HEARTBEAT_DIFFERENCES: usize = 512;
/// Maximum bytes read of a heartbeat: the longest paths that one may list. A longer file is
/// foreign.
pub(crate) const MAX_HEARTBEAT_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum number of fingerprints cached beside the newest snapshot: as many files as a session may
/// have seen.
pub(crate) const MAX_CACHED_FINGERPRINTS: usize = 4_096;
/// Size of the journal beyond which it is cut to its newer half.
pub const DEFAULT_JOURNAL_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum number of sessions remembered whose changes were dropped from the journal: as many as a
/// user asks about, and few enough for one short line.
pub(crate) const MAX_DROPPED_SESSIONS: usize = 64;
/// An ignore file larger than this is not read: the largest published collections have 20 KiB.
pub const MAX_IGNORE_FILE_BYTES: u64 = journeyman_ignore_rules::MAX_RULE_FILE_BYTES;
/// Maximum number of links followed on one path: the kernel's own bound.
pub(crate) const MAX_LINKS_FOLLOWED: usize = 40;
/// A file larger than this isn't compared line by line in a diff: it would be neither read nor
/// useful.
pub const MAX_DIFF_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of all files of a copy that are too large for the blobs and kept beside it until
/// it is landed: as much as the blobs of a project may have.
pub(crate) const MAX_LARGE_FILES_BYTES: u64 = 1024 * 1024 * 1024;
/// Maximum bytes of a glob. The matcher turns each into an expression that it parses by recursion,
/// so the size is bounded first; a path name's usual bound is 255.
pub const MAX_GLOB_BYTES: usize = 1_000;
/// Maximum number of `{` in a glob, each of which nests or multiplies what follows.
pub const MAX_GLOB_BRACES: usize = 32;
/// Maximum number of `*` in a glob, each of which multiplies the states of the matcher.
pub const MAX_GLOB_STARS: usize = 64;
/// Maximum number of names checked for portability; a command may add a million files.
pub const MAX_NAMES_CHECKED: usize = 10_000;
/// Maximum number of portability problems reported.
pub const MAX_NAME_TROUBLES: usize = 20;
/// Maximum bytes of a checkpoint's label; longer ones are cut.
pub const MAX_LABEL_BYTES: usize = 200;

/// Maximum bytes read of a copy's record, which has some three hundred bytes. A longer file is
/// foreign.
pub(crate) const MAX_COPY_RECORD_BYTES: u64 = 16 * 1024;
/// Maximum number of ignored directories that commands in a copied directory see; each is a mount.
/// Repositories of many packages have a hundred.
pub(crate) const MAX_CACHE_DIRECTORIES: usize = 256;

/// The limits of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest file whose content a snapshot keeps, in bytes.
    pub kept_file_bytes: u64,
    /// Most bytes of content that one snapshot keeps in all.
    pub kept_project_bytes: u64,
    /// Bytes of disk that the project's checkpoints and changes may take, packed; also a bound of
    /// what one snapshot keeps, so that the newest one always fits.
    pub project_bytes: u64,
    /// The time to wait for another process that changes the same tree.
    pub lock_wait: Duration,
    /// Most files that are looked at.
    pub max_files: usize,
    /// Size of the journal, in bytes, beyond which its older half is dropped.
    pub journal_bytes: u64,
    /// The interval at which a running command's heartbeat is renewed.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            kept_file_bytes: DEFAULT_KEPT_FILE_BYTES,
            kept_project_bytes: DEFAULT_KEPT_PROJECT_BYTES,
            project_bytes: DEFAULT_QUOTA_BYTES,
            lock_wait: DEFAULT_LOCK_WAIT,
            max_files: MAX_WALKED_FILES,
            journal_bytes: DEFAULT_JOURNAL_BYTES,
            heartbeat: HEARTBEAT_INTERVAL,
        }
    }
}
