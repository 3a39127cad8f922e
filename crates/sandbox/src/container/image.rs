//! The image that commands run in, as the daemon describes it.

use std::ffi::OsString;

use super::client::{Daemon, http_status, missing_image_error, setup_error};
use super::plan::to_utf8;
use super::{ContainerImage, ContainerSettings, build_image};
use crate::SandboxError;
use crate::request::Request;

/// Variables that a runtime sets if neither the image nor the request does.
const RUNTIME_VARIABLES: [&str; 3] = ["PATH", "HOSTNAME", "TERM"];

/// The properties of an image that commands depend on.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// By content: a name may come to stand for another image.
    pub(super) id: String,
    /// Directories that would become volumes.
    pub(super) volumes: Vec<String>,
    /// Its own environment: name and value.
    env: Vec<(String, String)>,
    /// True if the image's environment holds where the request sets nothing.
    keep_env: bool,
}

fn no_image_error() -> SandboxError {
    SandboxError::Unavailable {
        reason: "no image is named for containers".to_owned(),
        fix: "Name one that is on this machine in sandbox.container.image, such as `debian:12`".to_owned(),
    }
}

impl Image {
    /// Checks that the settings name an image.
    pub(super) fn check_configured(settings: &ContainerSettings) -> Result<(), SandboxError> {
        if matches!(settings.image, ContainerImage::None) { Err(no_image_error()) } else { Ok(()) }
    }

    /// Finds the image that the settings name, or builds it. Nothing is fetched.
    pub(super) async fn find(daemon: &Daemon, settings: &ContainerSettings) -> Result<Self, SandboxError> {
        let name = match &settings.image {
            ContainerImage::None => return Err(no_image_error()),
            ContainerImage::Named(name) => name.clone(),
            ContainerImage::Built(recipe) => {
                build_image::ensure_image(daemon, recipe, settings.progress.as_ref()).await?
            }
        };
        let found = daemon.docker.inspect_image(&name).await;
        let found = match found {
            Ok(found) => found,
            Err(error) if http_status(&error) == Some(404) => return Err(missing_image_error(daemon, &name)),
            Err(error) => return Err(setup_error("looking for the image", &error)),
        };
        let config = found.config.unwrap_or_default();
        let pair =
            |line: String| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self {
            id: found.id.unwrap_or(name),
            volumes: config.volumes.unwrap_or_default(),
            env: config.env.unwrap_or_default().into_iter().filter_map(pair).collect(),
            keep_env: settings.image_environment,
        })
    }

    /// Returns the environment of a command, for the daemon: the request's, and nothing of the
    /// image's unless that is wanted.
    pub(super) fn environment(&self, request: &Request) -> Result<Vec<String>, SandboxError> {
        let mut all = Vec::with_capacity(request.env.len() + self.env.len());
        for (name, value) in &request.env {
            let (name, mut value) = (to_utf8("variable", name)?, to_utf8("variable's value", value)?);
            if name.is_empty() || name.contains('=') {
                return Err(SandboxError::Refused(format!("`{name}` can't name a variable")));
            }
            if self.keep_env && name == "PATH" {
                value = self.search_path(&value);
            }
            all.push(format!("{name}={value}"));
        }
        let names = self.env.iter().map(|(name, _)| name.as_str()).filter(|_| !self.keep_env);
        let mut unset: Vec<&str> = names.chain(RUNTIME_VARIABLES).collect();
        unset.sort_unstable();
        unset.dedup();
        let said = |name: &&str| !request.env.contains_key(&OsString::from(*name));
        // A name alone takes the variable away.
        all.extend(
            unset.into_iter().filter(said).filter(|name| !self.sets_variable(name)).map(str::to_owned),
        );
        Ok(all)
    }

    fn sets_variable(&self, name: &str) -> bool {
        self.keep_env && self.env.iter().any(|(own, _)| own == name)
    }

    /// Returns the request's directories, then those of the image that aren't among them.
    fn search_path(&self, given: &str) -> String {
        let own = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
        let mut all: Vec<&str> = given.split(':').collect();
        for directory in own.unwrap_or_default().split(':').filter(|directory| !directory.is_empty()) {
            if !all.contains(&directory) {
                all.push(directory);
            }
        }
        all.join(":")
    }
}
