//! Errors that a surface shows to its user.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use journeyman_agent::AgentError;
use journeyman_sandbox::clean_output;
use journeyman_store::StoreError;

use crate::config::ConfigError;

/// The reason why a command of a surface failed.
#[derive(Debug)]
pub enum HostError {
    /// The user has to change a flag, the configuration, or the order of their commands.
    Usage(String),
    /// A person has to allow something, and nobody can be asked.
    NeedsPerson(String),
    /// A step failed.
    Failed {
        /// The step or the file; `None` where the cause says it.
        what: Option<Cow<'static, str>>,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl HostError {
    /// Makes an error that tells the user what to change.
    #[must_use]
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Makes the error for a limit of cost where the price of a model isn't known.
    pub(crate) fn unknown_price(limit: &str, model: &str) -> Self {
        Self::usage(format_args!(
            "{limit} needs the price of {model}, which isn't known; set providers.PROVIDER.models.\"NAME\".input and \
             .output (US dollars for a million tokens) in your configuration"
        ))
    }

    /// Makes an error for a step that only a person can allow.
    #[must_use]
    pub fn needs_person(message: impl fmt::Display) -> Self {
        Self::NeedsPerson(message.to_string())
    }

    /// Returns the exit code of a program that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NeedsPerson(_) => 6,
            Self::Failed { .. } => 1,
        }
    }

    /// Makes an error from a message alone.
    #[must_use]
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::Failed { what: None, source: message.to_string().into() }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, source) = match self {
            Self::Usage(message) | Self::NeedsPerson(message) => return f.write_str(message),
            Self::Failed { what, source } => (what, source),
        };
        let mut text = what.as_deref().unwrap_or_default().to_owned();
        let mut next: Option<&(dyn Error + 'static)> = Some(&**source);
        while let Some(cause) = next {
            // Some errors repeat their cause in their own text.
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                let separator = if text.is_empty() { "" } else { ": " };
                text = format!("{text}{separator}{cause_text}");
            }
            next = cause.source();
        }
        f.write_str(&text)
    }
}

impl Error for HostError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Usage(_) | Self::NeedsPerson(_) => None,
            Self::Failed { source, .. } => Some(&**source),
        }
    }
}

impl From<AgentError> for HostError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Store(error @ StoreError::Leased { .. }) => error.into(),
            other => Self::Failed { what: None, source: other.into() },
        }
    }
}

impl From<ConfigError> for HostError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Leased { session, holder, .. } => Self::usage(format_args!(
                "session {session} is still running: {holder}, has it. Stop it first (Ctrl-C where it runs), or follow \
                 it with `jm show --follow {session}`",
                holder = clean_output(holder.as_bytes())
            )),
            other => Self::Failed { what: Some("the session log".into()), source: other.into() },
        }
    }
}

/// Names the step that an error ended.
pub trait Context<T> {
    /// Turns the error into a [`HostError`] that names the step.
    ///
    /// # Errors
    /// [`HostError::Failed`] where `self` is an error.
    fn context(self, what: impl Into<Cow<'static, str>>) -> Result<T, HostError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<Cow<'static, str>>) -> Result<T, HostError> {
        self.map_err(|error| HostError::Failed { what: Some(what.into()), source: error.into() })
    }
}
