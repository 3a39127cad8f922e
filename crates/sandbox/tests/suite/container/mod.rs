//! Commands in containers of a real daemon, which `.ci/docker_image.sh` starts. Without one, each
//! test says that it is skipped, and fails where nothing may be.

mod support;

mod ends;
mod hardening;
mod image;
mod project;
mod running;
