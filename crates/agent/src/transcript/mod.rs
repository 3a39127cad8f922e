//! The transcript: a session's messages and actions, as records of one durable log.

pub(crate) mod calls_as_text;
pub(crate) mod fork;
pub(crate) mod log;
pub(crate) mod log_reader;
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod reminder;
pub(crate) mod running_transcript;
pub(crate) mod state;
pub(crate) mod stream_redactor;
