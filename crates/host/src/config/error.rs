//! Errors of loading a configuration.

use std::path::PathBuf;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The project's directory could not be read or entered.
    #[error("cannot read the project {}: {source}; run jm as the user who may, or give another directory with -C", path.display())]
    UnreadableProject {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the configuration {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A rule file contains an invalid rule.
    #[error(transparent)]
    Rules(#[from] journeyman_policy::RuleError),
    /// The file is larger than a configuration can be.
    #[error("the configuration {} has {size} bytes; at most {limit} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The text is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// The file or variable.
        origin: String,
        /// The error of the parser, with the line.
        message: String,
    },
    /// A key that doesn't exist.
    #[error("{origin}: unknown key `{key}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// The file and line.
        origin: String,
        /// The key as written.
        key: String,
        /// The nearest known key.
        nearest: Option<String>,
    },
    /// A value of the wrong kind or out of its range.
    #[error("{origin}: `{key}` {problem}")]
    Value {
        /// The file and line, variable or flag.
        origin: String,
        /// The key.
        key: String,
        /// The mistake, and the values that are right.
        problem: String,
    },
    /// A project's file sets a value wider than the user allows.
    #[error(
        "{origin}: a project may narrow permissions, never widen them: `{key} = {given}` is wider than `{allowed}`"
    )]
    Widens {
        /// The file and line.
        origin: String,
        /// The key.
        key: String,
        /// The value that the project asks for.
        given: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A project's file sets a key that only the user may set.
    #[error("{origin}: `{key}` can only be set in your own configuration, not by a project")]
    UserOnly {
        /// The file and line.
        origin: String,
        /// The key.
        key: String,
    },
    /// A project's file runs code or sends data, and the user doesn't trust it.
    #[error(
        "{path} sets {keys}, which run code or send data. Read the file, then trust this version of it with \
         `--trust-project` (asked again when it changes)", path = path.display(), keys = keys.join(", ")
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The keys that need trust.
        keys: Vec<String>,
        /// The value of each key.
        values: Vec<String>,
        /// Identifies this version of the file.
        hash: journeyman_protocol::ContentHash,
    },
    /// The model's name doesn't lead anywhere.
    #[error("{0}")]
    Model(String),
}
