//! Commands in containers of a real daemon, which `.ci/docker_image.sh` starts. Without one, each test says that it is
//! skipped, and fails where nothing may be.
#![cfg(all(target_os = "linux", feature = "container"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod support;

mod ends;
mod hardening;
mod image;
mod project;
mod running;
