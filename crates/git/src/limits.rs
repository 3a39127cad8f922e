//! Limits, with their reasons.

use std::time::Duration;

/// Maximum output of one reading command: the status of a million changed files.
pub(crate) const MAX_OUTPUT_BYTES: usize = 128 * 1024 * 1024;
/// Maximum size of a short output: a hash, a name, a few settings.
pub(crate) const MAX_SHORT_OUTPUT_BYTES: usize = 256 * 1024;
/// Maximum error output of git that is kept.
pub(crate) const MAX_ERROR_OUTPUT_BYTES: usize = 16 * 1024;
/// Timeout of a read that a person waits for.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of a read of a whole work tree, or of a file's whole history. A status of 500,000 files
/// on a cold disk takes a minute.
pub(crate) const LONG_READ_TIMEOUT: Duration = Duration::from_secs(90);
/// Timeout of a check-out into a directory.
pub(crate) const CHECK_OUT_TIMEOUT: Duration = Duration::from_secs(1800);
/// Maximum size of a `.git` file: one line with a path, which has at most 4,095 bytes.
pub(crate) const MAX_GIT_FILE_BYTES: u64 = 8 * 1024;
/// Maximum size of the list of packed references that is read here: a hundred thousand of them.
pub(crate) const MAX_PACKED_REFS_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of symbolic references that are followed, as many as git follows.
pub(crate) const MAX_SYMBOLIC_REFS: usize = 5;
/// Maximum size of a repository's settings or its list of alternates that is read here.
pub(crate) const MAX_SETTINGS_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of alternate object stores of a repository, including nested ones: git itself
/// stops at 5 levels.
pub(crate) const MAX_ALTERNATES: usize = 32;
/// Time for git to end by itself after a signal, before it is killed.
pub(crate) const TERMINATION_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to wait for output after git ended: a hook's background process may keep the pipes open.
pub(crate) const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum number of attempts to take a lock that another process holds: editors and prompts hold
/// it for some milliseconds.
pub(crate) const MAX_LOCK_ATTEMPTS: u32 = 20;
/// Wait between the attempts of [`MAX_LOCK_ATTEMPTS`].
pub(crate) const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum size of a commit message: many pages.
pub(crate) const MAX_COMMIT_MESSAGE_BYTES: usize = 64 * 1024;
/// Maximum number of commits in one listing: a year of a large project.
pub(crate) const MAX_COMMITS: usize = 10_000;
/// Maximum number of filter drivers that are disabled by name; no real repository has more.
pub(crate) const MAX_FILTERS: usize = 256;
/// Number of commits whose changes are requested at once, so that [`MAX_OUTPUT_BYTES`] is enough.
pub(crate) const COMMITS_PER_REQUEST: usize = 1_000;
/// Bytes of contents that are requested at once.
pub(crate) const CONTENT_BYTES_PER_REQUEST: u64 = 64 * 1024 * 1024;
/// Timeout of a commit's hooks: some run a whole test suite.
pub(crate) const HOOK_TIMEOUT: Duration = Duration::from_secs(3600);
/// Maximum output of hooks before they are ended: a test suite's is far below.
pub(crate) const MAX_HOOK_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum number of files that hooks may change or add in a commit: each costs a git process.
pub(crate) const MAX_HOOK_CHANGES: usize = 5_000;
/// Maximum size of one file that a hook changes or adds, and of the list of all files.
pub(crate) const MAX_HOOK_BLOB_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of lines of one blame: several pages.
pub(crate) const MAX_BLAME_LINES: u32 = 5_000;
