//! Settings of containers for commands, and trust in the image that a project describes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use journeyman_sandbox::{ContainerImage, ContainerSettings, Progress, RecipeSource, read_container_recipe};

use crate::config::{Config, Environment, ProjectImage, TrustStore};
use crate::confirmations::ask_for_trust;
use crate::{Confirmations, HostError};

/// Reads the recipe of the project's image if the user wants commands to run in that image. Asks
/// for trust in the recipe: building the image runs the project's code outside of the sandbox.
///
/// # Errors
/// [`HostError::Usage`] where the recipe can't be read, or nobody trusts this version of it.
pub(crate) fn load_image_recipe(
    config: &mut Config,
    environment: &Environment,
    root: &Path,
    trusted_this_run: bool,
    prompts: Option<&dyn Confirmations>,
) -> Result<(), HostError> {
    let allowed = is_container_allowed(config);
    let Some(project) = config.container.project.as_ref().filter(|_| allowed) else { return Ok(()) };
    let source = match project {
        ProjectImage::Devcontainer => RecipeSource::Devcontainer,
        ProjectImage::Dockerfile(path) => RecipeSource::Dockerfile(path.clone()),
    };
    let recipe = read_container_recipe(root, &source)
        .map_err(|error| HostError::usage(format_args!("sandbox.container.project: {error}")))?;
    let (path, hash) = (root.join(recipe.file()), recipe.digest());
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let known = store.as_ref().is_some_and(|store| store.is_trusted(&path, &hash));
    if !trusted_this_run && !known {
        let refused = || {
            HostError::usage(format_args!(
                "{} says how the image is made that commands run in, and you haven't trusted this version of it; run \
                 once in a terminal, or with --trust-project",
                path.display()
            ))
        };
        let (Some(store), Some(prompts)) = (store, prompts) else { return Err(refused()) };
        let (names, values): (Vec<String>, Vec<String>) = recipe.describe().into_iter().unzip();
        if !ask_for_trust(prompts, &store, &path, &hash, (&names, &values))? {
            return Err(refused());
        }
    }
    config.container.recipe = Some(Box::new(recipe));
    Ok(())
}

fn is_container_allowed(config: &Config) -> bool {
    config.sandbox_allow.iter().any(|name| name == "container")
}

/// Returns the settings of containers; `None` where the user doesn't allow them.
pub(crate) fn container_settings(
    config: &Config,
    docker_host: Option<&OsStr>,
    progress: Option<Progress>,
) -> Result<Option<ContainerSettings>, HostError> {
    if !is_container_allowed(config) {
        return Ok(None);
    }
    let config = &config.container;
    let image = match (&config.recipe, &config.image) {
        (Some(recipe), _) => ContainerImage::Built(recipe.clone()),
        (None, Some(name)) => ContainerImage::Named(name.clone()),
        (None, None) => ContainerImage::None,
    };
    let socket = match (&config.socket, docker_host.filter(|host| !host.is_empty())) {
        (Some(socket), _) => Some(socket.clone()),
        (None, Some(host)) => Some(parse_local_socket(host)?),
        (None, None) => None,
    };
    Ok(Some(ContainerSettings {
        socket,
        image,
        image_environment: config.image_environment,
        cpus: config.cpus,
        progress,
    }))
}

/// Returns the socket that `DOCKER_HOST` names. A daemon on another machine doesn't have the
/// project's files.
fn parse_local_socket(host: &OsStr) -> Result<PathBuf, HostError> {
    let path = host.to_str().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
    path.filter(|path| path.is_absolute()).ok_or_else(|| {
        HostError::usage(format_args!(
            "DOCKER_HOST is `{}`; commands run in containers of this machine alone: set it to unix:///…, or name the \
             socket in sandbox.container.socket",
            host.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_of_this_machine_are_used() {
        let socket = |host: &str| parse_local_socket(host.as_ref()).ok();
        assert_eq!(socket("unix:///run/user/1000/docker.sock"), Some("/run/user/1000/docker.sock".into()));
        for host in
            ["tcp://127.0.0.1:2375", "ssh://me@there", "unix://relative", "/run/docker.sock", "npipe:////./x"]
        {
            assert_eq!(socket(host), None, "{host}");
        }
        let mut config = Config::default();
        config.container.socket = Some("/own".into());
        assert!(container_settings(&config, Some("tcp://elsewhere".as_ref()), None).unwrap().is_none());
        config.sandbox_allow = vec!["container".to_owned()];
        let made = container_settings(&config, Some("tcp://elsewhere".as_ref()), None).unwrap().unwrap();
        assert_eq!(made.socket, Some("/own".into()));
        config.container.socket = None;
        assert!(container_settings(&config, Some("tcp://elsewhere".as_ref()), None).is_err());
    }
}
