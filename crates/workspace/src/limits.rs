//! Every bound of this crate, with its reason, and the options a workspace is opened with.

use std::time::Duration;

/// Ignored files that a command changes or deletes, of which the smallest are kept for an undo:
/// settings, keys and small data are fewer; a build's directory has more.
pub const KEPT_IGNORED_FILES: usize = 1_000;
/// And so many bytes of them.
pub const KEPT_IGNORED_BYTES: u64 = 64 * 1024 * 1024;
/// Ignored files that are looked at before a command, besides what tools make again: a
/// millisecond's work or two.
pub const MAX_IGNORED_FILES: usize = 4_000;

/// Files larger than this are recorded by their stat signature only, so that a checkpoint doesn't
/// copy disk images: 16 MiB is beyond any source file.
pub const KEPT_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum length of a change's description in the journal, in bytes: a few sentences.
pub const DESCRIPTION_BYTES: usize = 1_000;
/// Maximum number of descriptions that a checkpoint lists: more aren't read beside it.
pub const MAX_DESCRIPTIONS: usize = 20;
/// Maximum size of the contents that one project's snapshot keeps; later files are recorded by stat
/// only. 1 GiB is the quota of a project's blobs.
pub const KEPT_PROJECT_BYTES: u64 = 1024 * 1024 * 1024;
/// Maximum disk use of a project's checkpoints and changes, packed, before the oldest are
/// dropped: hundreds of runs on an ordinary project, and little enough to go unnoticed on any disk
/// (decision 7).
pub const PROJECT_BYTES: u64 = 1024 * 1024 * 1024;
/// The time that a change waits for another process that changes the same tree.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The most files that a walk looks at: five times the largest repository the bounds of speed are
/// stated for.
pub const MAX_FILES: usize = 400_000;
/// Directories nested deeper than this aren't entered.
pub const MAX_DEPTH: usize = journeyman_ignore_rules::walk::MAX_DEPTH;
/// The most changes of one set. A model's edit has a few; an undo may have as many as a command
/// changed.
pub const MAX_CHANGES: usize = 10_000;
/// The interval at which a running command's heartbeat is renewed. What changed later than that
/// after the last sign was changed by somebody else: short enough for a person at the keyboard, and
/// a touch costs microseconds.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// A sign of life may be late by so many periods on a busy machine.
pub(crate) const LATE_BEATS: u32 = 4;
/// Signs of life of commands that were cut off and never recovered; beyond this the oldest give
/// way.
pub(crate) const MAX_BEATS: usize = 256;
/// A sign of life that names more files which differ from its checkpoint gets a tree of its own.
pub(crate) const BEAT_FILES: usize = 512;
/// A file of signs of life is longer only if somebody else wrote it: so many paths of the longest
/// kind.
pub(crate) const BEAT_BYTES: u64 = 8 * 1024 * 1024;
/// So many fingerprints are remembered beside the newest snapshot; as many files as a session may
/// have seen.
pub(crate) const MAX_PRINTS: usize = 4_096;
/// The journal is cut to its newer half when it passes this.
pub const JOURNAL_BYTES: u64 = 32 * 1024 * 1024;
/// So many sessions are remembered whose changes were dropped from the journal: as many as anybody
/// asks about, and few enough for one short line.
pub(crate) const MAX_DROPPED_SESSIONS: usize = 64;
/// An ignore file larger than this is not read: the largest published collections have 20 KiB.
pub const IGNORE_FILE_BYTES: u64 = journeyman_ignore_rules::MAX_RULE_BYTES;
/// As many links are followed on one path as the kernel follows.
pub(crate) const MAX_LINKS: usize = 40;
/// A file larger than this isn't compared line by line in a diff: it would be neither read nor
/// useful.
pub const DIFF_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Files of a copy that are too large for the blobs are kept beside it until it is landed, so many
/// bytes of them in all: as much as the blobs of a project may have.
pub(crate) const LARGE_BYTES: u64 = 1024 * 1024 * 1024;
/// A glob may have so many bytes. The matcher turns each into an expression that it takes apart by
/// recursion, so that what it may hold is bounded before it sees it; a path name's usual bound is
/// 255.
pub const GLOB_BYTES: usize = 1_000;
/// And so many `{`, each of which nests or multiplies what follows.
pub const GLOB_BRACES: usize = 32;
/// And so many `*`, each of which multiplies the states of the matcher.
pub const GLOB_STARS: usize = 64;
/// So many names are looked at for trouble on other systems; a command may add a million files.
pub const NAMES_LOOKED_AT: usize = 10_000;
/// And so many of them are told of: who has more has seen enough.
pub const NAME_TROUBLES: usize = 20;
/// A checkpoint's label is cut to this many bytes.
pub const LABEL_BYTES: usize = 200;

/// The record of a copy is longer only if somebody else wrote it: it has some three hundred bytes.
pub(crate) const RECORD_BYTES: u64 = 16 * 1024;
/// Ignored directories that commands in a copied directory see; each is a mount. Repositories of
/// many packages have a hundred.
pub(crate) const MAX_CACHES: usize = 256;

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
            kept_file_bytes: KEPT_FILE_BYTES,
            kept_project_bytes: KEPT_PROJECT_BYTES,
            project_bytes: PROJECT_BYTES,
            lock_wait: LOCK_WAIT,
            max_files: MAX_FILES,
            journal_bytes: JOURNAL_BYTES,
            heartbeat: HEARTBEAT_INTERVAL,
        }
    }
}
