//! Bounds, each with its reason.

use std::time::Duration;

/// Output of one reading command, in bytes: the status of a million changed files.
pub(crate) const MAX_OUTPUT: usize = 128 * 1024 * 1024;
/// A short answer: an id, a name, a handful of settings.
pub(crate) const MAX_ANSWER: usize = 256 * 1024;
/// Maximum bytes that are kept of git's messages.
pub(crate) const MAX_WORDS: usize = 16 * 1024;
/// Wall time of a read that somebody at a prompt waits for.
pub(crate) const READ_WALL: Duration = Duration::from_secs(20);
/// Wall time of a read of a whole work tree, or of a file's whole history. A status of 500,000 files on a cold disk
/// takes a minute.
pub(crate) const LONG_READ_WALL: Duration = Duration::from_secs(90);
/// Wall time of filling a directory.
pub(crate) const CHECK_OUT_WALL: Duration = Duration::from_secs(1800);
/// A `.git` file is one line with a path, which has at most 4,095 bytes.
pub(crate) const MAX_POINTER: u64 = 8 * 1024;
/// A repository's settings, or its list of borrowed object stores, as far as they are read here.
pub(crate) const MAX_SETTINGS: u64 = 4 * 1024 * 1024;
/// Object stores that a repository may borrow from, one through the other: git itself stops at 5 levels.
pub(crate) const MAX_BORROWED: usize = 32;
/// Maximum wait for git's orderly end before it is killed.
pub(crate) const END_WAIT: Duration = Duration::from_secs(3);
/// Maximum wait for output after git's end: a background process of a hook's may hold the pipes for
/// ever.
pub(crate) const LINGER: Duration = Duration::from_millis(250);
/// The number of tries to take a lock that somebody else holds, and the pause between two: editors
/// and prompts hold one for some milliseconds.
pub(crate) const LOCK_TRIES: u32 = 20;
/// See [`LOCK_TRIES`].
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(100);
/// A commit's message, in bytes: a page, many times over.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024;
/// Commits of one listing: a year of a large project.
pub(crate) const MAX_COMMITS: usize = 10_000;
/// Filter drivers that are switched off by name; more are no real repository's.
pub(crate) const MAX_FILTERS: usize = 256;
/// Commits whose changes are asked for at once, so that [`MAX_OUTPUT`] holds what they changed.
pub(crate) const COMMITS_AT_ONCE: usize = 1_000;
/// Bytes of contents that are asked for at once.
pub(crate) const CONTENTS_AT_ONCE: u64 = 64 * 1024 * 1024;
/// Wall time of a commit's hooks: some run a whole test suite.
pub(crate) const HOOK_WALL: Duration = Duration::from_secs(3600);
/// Output of hooks, in bytes, above which they are ended: a test suite's is far below.
pub(crate) const HOOK_FLOOD: u64 = 64 * 1024 * 1024;
/// Files of a commit that hooks may change or add: each of them costs a call of git's.
pub(crate) const MAX_HOOK_CHANGES: usize = 5_000;
/// Bytes of one file that a hook changes or adds, and of the list of all.
pub(crate) const MAX_HOOK_BLOB: usize = 64 * 1024 * 1024;
/// Lines of one blame: a page that somebody reads.
pub(crate) const MAX_BLAME: u32 = 5_000;
