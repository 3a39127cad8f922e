//! The settings of containers.

use std::path::PathBuf;

use super::Recipe;
use crate::Progress;

/// The settings of containers.
#[derive(Debug, Clone, Default)]
pub struct ContainerSettings {
    /// The daemon's socket; by default `/var/run/docker.sock`, else the user's own of Docker or
    /// Podman.
    pub socket: Option<PathBuf>,
    /// The image that commands run in.
    pub image: ContainerImage,
    /// True if variables that the image sets hold where a request sets none, and the directories of
    /// its `PATH` come after the request's. Otherwise the environment is the request's alone.
    pub image_environment: bool,
    /// Processors that the commands of one container may use together; by default all.
    pub cpus: Option<f64>,
    /// Receives the progress of building an image, a line at a time.
    pub progress: Option<Progress>,
}

/// The image that commands run in. It needs `/bin/sh`, `ls` and `cat`.
#[derive(Debug, Clone, Default)]
pub enum ContainerImage {
    /// No image is named; containers are unavailable.
    #[default]
    None,
    /// An image that is on this machine, by its name.
    Named(String),
    /// An image that is built as the project says. Building runs the project's code, with the
    /// network and the rights of a build: only where the user trusts this version of it
    /// ([`Recipe::digest`]).
    Built(Box<Recipe>),
}
