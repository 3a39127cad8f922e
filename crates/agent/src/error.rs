//! Errors of a session.

use journeyman_context::ContextError;
use journeyman_model::ModelError;
use journeyman_protocol::{ErrorPhase, Seq, SessionId, Tokens};
use journeyman_store::StoreError;
use journeyman_verify::VerifyError;
use journeyman_workspace::WorkspaceError;

use crate::hooks::HookEvent;

/// Describes a failure of the log. Only a refused write says that nothing further was done.
fn describe_log_failure(error: &StoreError) -> String {
    match error.is_refused_write() {
        true => {
            let left = describe_file_state(error);
            format!("the session log could not be written, so nothing further was done{left}: {error}")
        }
        false => error.to_string(),
    }
}

/// The reason why a session could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The log can't be read, or refused an entry. A refused entry stops the turn before its
    /// effect.
    #[error("{}", describe_log_failure(.0))]
    Store(#[from] StoreError),
    /// The log failed during a write, so the entry may or may not be stored.
    #[error(
        "whether this is in the session log can't be told now; it is written, once, as soon as the log works again: \
         {reason}"
    )]
    InDoubt {
        /// The failure.
        reason: String,
    },
    /// Another process has written the session's log.
    #[error(
        "another process writes session {session}: nothing further was written here after entry {last}. Go on there, \
         or end it and `jm resume {session}`"
    )]
    LostSession {
        /// The session.
        session: SessionId,
        /// The last entry that this process wrote.
        last: Seq,
    },
    /// The model could not be reached or refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The project tree could not be read or changed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Git could not do what was asked of it.
    #[error(transparent)]
    Git(#[from] journeyman_git::GitError),
    /// The first context could not be packed.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The checks could not be run.
    #[error(transparent)]
    Verify(Box<VerifyError>),
    /// The log holds a record that this version doesn't know.
    #[error(
        "entry {seq} of session {session} is of a kind (`{kind}`) that this version doesn't know; use the newer \
         version that wrote it"
    )]
    NewerRecord {
        /// The session.
        session: SessionId,
        /// The entry.
        seq: Seq,
        /// Its kind.
        kind: String,
    },
    /// A hook forbids it.
    #[error("a hook ({event}) forbids it: {reason}")]
    HookDenied {
        /// The event that the hook forbids.
        event: HookEvent,
        /// The hook's reason.
        reason: String,
    },
    /// A message is larger than any model's window.
    #[error(
        "a message of {bytes} bytes is too long; at most {limit} are taken. Put it in a file and name that"
    )]
    MessageTooLong {
        /// Its size in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// A request is longer than the model's window, and nothing in it can be left out.
    #[error(
        "the request has about {tokens} tokens, {fixed} of them the system prompt and the tools, and the model's window \
         has {window}; a shorter message, fewer tools or a model with a larger window would help"
    )]
    RequestTooLong {
        /// Its tokens, estimated.
        tokens: Tokens,
        /// The part of the system prompt and the tools.
        fixed: Tokens,
        /// The model's window.
        window: Tokens,
    },
    /// More messages wait than can go to the model at once.
    #[error("{messages} messages of {bytes} bytes wait already; send this one when they have been taken")]
    QueueFull {
        /// Number of waiting messages.
        messages: usize,
        /// Their size in the log, in bytes.
        bytes: usize,
    },
    /// A snapshot's name is blank, too long, or has control characters.
    #[error("`{name}` can't name a snapshot: up to 100 bytes without control characters")]
    SnapshotName {
        /// The name as given, truncated.
        name: String,
    },
    /// No snapshot has this name.
    #[error("there is no snapshot `{name}`{}", list_names(known))]
    UnknownSnapshot {
        /// The name as given.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The session has no messages yet, at least not up to the given position.
    #[error("session {session} has nothing to fork there yet; give a later place")]
    NothingToFork {
        /// The session.
        session: SessionId,
    },
    /// The session has ended and takes no more messages.
    #[error("the session has ended; start a new one")]
    Ended,
    /// The conversation could not be shortened.
    #[error("the conversation was not shortened: {reason}")]
    NotShortened {
        /// The reason.
        reason: String,
    },
    /// A text could not be pinned.
    #[error("the text was not pinned: {reason}")]
    NotPinned {
        /// The reason.
        reason: String,
    },
    /// A background step died.
    #[error("{what} failed: {reason}")]
    Background {
        /// The step.
        what: &'static str,
        /// The reason.
        reason: String,
    },
}

impl From<VerifyError> for AgentError {
    fn from(error: VerifyError) -> Self {
        Self::Verify(Box::new(error))
    }
}

impl AgentError {
    /// Returns true if the request no longer fits the model's context, so that the same model would
    /// refuse the next one too.
    #[must_use]
    pub fn is_context_exceeded(&self) -> bool {
        matches!(self, Self::Model(error) if matches!(error.root_cause(), ModelError::ContextTooLong { .. }))
    }

    /// Returns the phase of the run that the error belongs to.
    #[must_use]
    pub fn phase(&self) -> ErrorPhase {
        match self {
            Self::Model(_) => ErrorPhase::Model,
            Self::Ended
            | Self::HookDenied { .. }
            | Self::NewerRecord { .. }
            | Self::MessageTooLong { .. }
            | Self::RequestTooLong { .. }
            | Self::QueueFull { .. }
            | Self::SnapshotName { .. }
            | Self::UnknownSnapshot { .. }
            | Self::NotShortened { .. }
            | Self::NotPinned { .. }
            | Self::NothingToFork { .. } => ErrorPhase::Lifecycle,
            Self::InDoubt { .. }
            | Self::Store(_)
            | Self::LostSession { .. }
            | Self::Workspace(_)
            | Self::Git(_)
            | Self::Context(_)
            | Self::Verify(_)
            | Self::Background { .. } => ErrorPhase::System,
        }
    }
}

/// Describes the state of the project's files after the loss of the log.
fn describe_file_state(error: &StoreError) -> &'static str {
    match error {
        StoreError::Gone { .. } => " and the project's files stay as they are now",
        _ => "",
    }
}

fn list_names(names: &[String]) -> String {
    if names.is_empty() { "; it has none".to_owned() } else { format!("; there are: {}", names.join(", ")) }
}
