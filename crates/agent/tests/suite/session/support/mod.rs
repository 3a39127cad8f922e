//! A project, a model that does as told, a log that is watched, and a harness that re-executes.

pub(crate) mod bench;
pub(crate) mod invariants;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod processes;
pub(crate) mod schema;
pub(crate) mod tools;
pub(crate) mod transcript;
