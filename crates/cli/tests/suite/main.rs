//! What `jm` promises, held against the real binary: run as a user runs it, in a house of its own,
//! against a model server on the loopback that speaks the real wire protocols. Each case looks at
//! the exit code, both outputs, the files on disk and the requests that the server saw.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

mod advice;
mod agents;
mod apply;
mod bad_input;
mod candidates;
mod carry;
mod checkpoints;
mod checks;
mod classify;
mod commit;
mod concurrent;
mod config;
mod conformance;
mod context;
mod conversation;
mod conversation_copies;
mod conversation_messages;
mod conversation_processes;
mod cut_off;
mod damage;
mod delegate;
mod delegate_real;
mod demo;
mod ending;
mod exec;
mod export;
mod first_request;
mod follow;
mod graph;
mod history;
mod inform;
mod interrupt;
mod isolate;
mod model_errors;
mod obstacles;
mod output;
mod own_repository;
mod permission;
mod plans;
mod policy;
mod project_root;
mod projects;
mod record;
mod report;
mod resume;
mod search;
mod soak;
mod support;
mod task_input;
mod terminal;
mod text_protocol;
mod tiers;
mod undo;
mod vectors;
mod wires;
