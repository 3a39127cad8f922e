//! Asks a person to confirm actions before or after a session.

use std::io;
use std::path::Path;

use journeyman_git::CommitRefusal;
use journeyman_protocol::{ContentHash, SessionId};
use journeyman_store::SessionSummary;

use crate::config::TrustStore;
use crate::{Context as _, HostError};

/// Asks the user of a surface for confirmation. A surface without a user has no `Confirmations`,
/// and all questions count as refused. Questions about tool calls are events instead, see
/// [`Surface`](crate::Surface).
pub trait Confirmations {
    /// Returns true if the person trusts this version of a project's file, whose `keys` run code or
    /// send data. Each key has its value at the same place in `values`.
    ///
    /// # Errors
    /// The person can't be reached.
    fn confirm_trust(&self, path: &Path, keys: &[String], values: &[String]) -> io::Result<bool>;

    /// Returns true if the person has seen what a commit would run outside of the sandbox, and the
    /// change, and allows it.
    ///
    /// # Errors
    /// The person can't be reached.
    fn confirm_commit(&self, refusal: &CommitRefusal, diff: &str) -> io::Result<bool>;

    /// Returns true if the person wants to take back the changes of `older`, although the session
    /// `newest` ran after it, and changed nothing.
    ///
    /// # Errors
    /// The person can't be reached.
    fn confirm_older_undo(&self, newest: &SessionSummary, older: &SessionSummary) -> io::Result<bool>;

    /// Returns true if the person wants the work of a session to be landed although nothing
    /// verified it.
    ///
    /// # Errors
    /// The person can't be reached.
    fn confirm_unverified(&self, session: &SessionId) -> io::Result<bool>;
}

/// Asks the person to trust this version of a project's file, and records the consent. Returns true
/// if the version is trusted.
pub(crate) fn ask_for_trust(
    prompts: &dyn Confirmations,
    store: &TrustStore,
    path: &Path,
    hash: &ContentHash,
    asked: (&[String], &[String]),
) -> Result<bool, HostError> {
    let (keys, values) = asked;
    let trusted = prompts.confirm_trust(path, keys, values).context("asking for trust")?;
    if trusted {
        store.remember(path, hash).context("remembering the trust")?;
    }
    Ok(trusted)
}
