//! The state of a run, and its outcome.

use std::fmt;

use journeyman_protocol::{Usage, clip_to_bytes};

use serde_json::Value;

use crate::bounds::{MAX_TEXT_BYTES, clip, one_line, parse_session_id};
use crate::json_line::{ParsedLine, parse_line};
use crate::{DelegateEvent, Failure, FailureKind, Outcome};

/// Phrases about a missing or refused key, in lower case.
const NOT_AUTHENTICATED_PHRASES: &[&str] = &[
    "401 unauthorized",
    "api key not valid",
    "api key is missing",
    "api_key_invalid",
    "authentication_error",
    "authentication_failed",
    "authentication required",
    "invalid api key",
    "invalid authentication",
    "invalid x-api-key",
    "incorrect api key",
    "missing api key",
    "missing bearer",
    "no api key",
    "not authenticated",
    "not logged in",
    "please run /login",
    "please set an auth method",
    "status code: 401",
    "unauthenticated",
];
/// Phrases of argument parsers about an unknown flag, in lower case.
const UNKNOWN_FLAG_PHRASES: &[&str] = &[
    "unexpected argument",
    "unknown argument",
    "unknown flag",
    "unknown option",
    "unrecognized argument",
    "unrecognized option",
    "unrecognized subcommand",
];
/// Phrases about a provider that refuses requests or can't be reached, in lower case.
const PROVIDER_FAILURE_PHRASES: &[&str] = &[
    "429",
    "api error",
    "connection error",
    "connection refused",
    "connection reset",
    "econnrefused",
    "econnreset",
    "enotfound",
    "fetch failed",
    "error sending request",
    "overloaded",
    "quota",
    "rate limit",
    "rate_limit",
    "resource_exhausted",
    "retry limit",
    "socket connection was closed",
    "stream closed",
    "stream disconnected",
    "terminated",
    "unexpected status",
];

/// The state of one run of a CLI.
#[derive(Debug, Default)]
pub(crate) struct RunProgress {
    /// The name of the CLI, for messages.
    pub cli: String,
    /// The last message.
    pub message: String,
    /// The id of the CLI's session.
    pub session: Option<String>,
    /// Tokens so far.
    pub usage: Usage,
    /// Cost so far, in US dollars.
    pub cost: Option<f64>,
    /// The reason for a failure.
    pub failure: Option<Failure>,
    /// The last problem after which the CLI went on, for a run that is cut off.
    pub last_problem: Option<String>,
    /// True if the CLI reported the end of the run.
    pub finished: bool,
    /// True if the last object can't be parsed, so that its meaning is unknown.
    pub unreadable: bool,
}

impl RunProgress {
    /// Creates the state of a run of this CLI.
    pub(crate) fn new(cli: impl Into<String>) -> Self {
        Self { cli: cli.into(), ..Self::default() }
    }

    /// Parses a line; `None` if it isn't an object or can't be parsed.
    pub(crate) fn parse(&mut self, line: &[u8]) -> Option<Value> {
        let (value, unreadable) = match parse_line(line) {
            ParsedLine::Object(value) => (Some(value), false),
            ParsedLine::Unreadable => (None, true),
            ParsedLine::Other => return None,
        };
        self.unreadable = unreadable;
        value
    }

    /// Sets the session id, and returns its event the first time.
    pub(crate) fn set_session(&mut self, id: &str) -> Option<DelegateEvent> {
        let id = parse_session_id(id)?;
        if self.session.as_ref() == Some(&id) {
            return None;
        }
        self.session = Some(id.clone());
        Some(DelegateEvent::Session(id))
    }

    /// Replaces the message.
    pub(crate) fn set_message(&mut self, text: &str) {
        self.message = clip(text, MAX_TEXT_BYTES);
    }

    /// Appends a piece to the message.
    pub(crate) fn append_message(&mut self, text: &str) {
        self.message.push_str(clip_to_bytes(text, MAX_TEXT_BYTES.saturating_sub(self.message.len())));
    }

    /// Returns the event of the usage so far.
    pub(crate) fn usage_event(&self) -> DelegateEvent {
        DelegateEvent::Usage { usage: self.usage, cost: self.cost }
    }

    /// Records a problem after which the CLI goes on, and returns its event.
    pub(crate) fn warn(&mut self, problem: impl fmt::Display) -> DelegateEvent {
        let problem = one_line(&problem.to_string());
        self.last_problem = Some(problem.clone());
        DelegateEvent::Warning(problem)
    }

    /// Records a failure with the CLI's message. Only the first one counts.
    pub(crate) fn fail(&mut self, kind: FailureKind, message: &str) {
        let message = one_line(message);
        let message =
            if message.is_empty() { format!("{} failed without saying why", self.cli) } else { message };
        self.failure.get_or_insert(Failure { kind, message });
    }

    /// Ends the run, and returns its outcome.
    pub(crate) fn end(mut self, exit: Option<i32>, stderr: &str) -> Outcome {
        if self.failure.is_none() {
            self.failure = self.failure_of_exit(exit, stderr);
        }
        Outcome {
            message: self.message,
            session: self.session,
            usage: self.usage,
            cost: self.cost,
            failure: self.failure,
        }
    }

    fn failure_of_exit(&self, exit: Option<i32>, stderr: &str) -> Option<Failure> {
        let cli = &self.cli;
        let code = match (self.finished, exit) {
            // The CLI was ended from outside after it had reported the end.
            (true, None | Some(0)) => return None,
            // Only the last line can't be parsed, and the exit code is that of success.
            (false, Some(0)) if self.unreadable && self.session.is_some() => return None,
            (_, code) => code,
        };
        let failed = code.is_some_and(|code| code != 0);
        // A run that never opened a session reports the reason on standard error.
        let began = self.session.is_some() || self.finished;
        let kind = match failure_kind_of_stderr(stderr) {
            Some(FailureKind::UnknownFlag) if failed && !began => FailureKind::UnknownFlag,
            Some(FailureKind::NotAuthenticated) if failed => FailureKind::NotAuthenticated,
            _ if failed && !began => FailureKind::Reported,
            _ => FailureKind::CutOff,
        };
        let reason = find_reason_line(stderr, kind);
        let problem = self.last_problem.as_deref().unwrap_or(&reason);
        let sentence = match (kind, code) {
            (FailureKind::UnknownFlag, _) => {
                format!("{cli} doesn't understand its arguments; its version may be too old or too new")
            }
            (FailureKind::NotAuthenticated, _) => format!("{cli} is not logged in, or its key is refused"),
            (_, None) => format!("{cli} was ended before it was done"),
            (_, Some(code)) => format!("{cli} ended with exit code {code} before it was done"),
        };
        let message = if problem.is_empty() { sentence } else { format!("{sentence}: {problem}") };
        Some(Failure { kind, message })
    }
}

/// Returns the kind of failure that standard error of a failed command indicates.
fn failure_kind_of_stderr(stderr: &str) -> Option<FailureKind> {
    // Some programs only print their usage.
    let is_usage = stderr.lines().any(|line| line.trim_end() == "Options:");
    failure_kind_of(stderr).or(is_usage.then_some(FailureKind::UnknownFlag))
}

/// Returns the line that describes a failure best: the first that indicates its kind, or the last.
fn find_reason_line(stderr: &str, kind: FailureKind) -> String {
    let telling = stderr.lines().find(|line| failure_kind_of(line) == Some(kind)).map(one_line);
    telling.or_else(|| stderr.lines().rev().map(one_line).find(|line| !line.is_empty())).unwrap_or_default()
}

/// Returns the kind of failure that a text indicates, if it is a known one.
pub(crate) fn failure_kind_of(text: &str) -> Option<FailureKind> {
    let text = text.to_lowercase();
    let tells = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    if tells(UNKNOWN_FLAG_PHRASES) {
        Some(FailureKind::UnknownFlag)
    } else if tells(NOT_AUTHENTICATED_PHRASES) {
        Some(FailureKind::NotAuthenticated)
    } else if tells(PROVIDER_FAILURE_PHRASES) {
        Some(FailureKind::Provider)
    } else {
        None
    }
}

/// Returns the kind of failure that an HTTP status indicates.
pub(crate) fn failure_kind_of_status(status: u64) -> FailureKind {
    match status {
        401 | 403 => FailureKind::NotAuthenticated,
        _ => FailureKind::Provider,
    }
}
