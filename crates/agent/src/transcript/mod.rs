//! The transcript: what a session said and did, as records of one durable log.

pub(crate) mod fork;
pub(crate) mod log;
pub(crate) mod record;
pub(crate) mod reminder;
pub(crate) mod running;
pub(crate) mod state;
pub(crate) mod stream_redactor;
