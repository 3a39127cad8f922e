//! Commands in containers: what the configuration and `DOCKER_HOST` say, and the trust in a project's image.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use journeyman_host::config::{Config, Environment, ProjectImage, TrustStore};
use journeyman_sandbox::{ContainerImage, ContainerSettings, Progress, RecipeSource, container_recipe};

use crate::edge::Failure;
use crate::{color, prompt};

/// Reads how the project's image is made, where the user wants that one, and asks for trust in it where a person can be
/// asked: building it runs the project's code outside of any sandbox of ours.
pub(crate) fn read_recipe(
    config: &mut Config,
    environment: &Environment,
    root: &Path,
    trusted_this_run: bool,
    interactive: bool,
) -> Result<(), Failure> {
    let wanted = is_wanted(config);
    let Some(project) = config.container.project.as_ref().filter(|_| wanted) else { return Ok(()) };
    let source = match project {
        ProjectImage::Devcontainer => RecipeSource::Devcontainer,
        ProjectImage::Dockerfile(path) => RecipeSource::Dockerfile(path.clone()),
    };
    let recipe = container_recipe(root, &source)
        .map_err(|error| Failure::usage(format_args!("sandbox.container.project: {error}")))?;
    let (path, hash) = (root.join(recipe.file()), recipe.digest());
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let known = store.as_ref().is_some_and(|store| store.has(&path, &hash));
    if !trusted_this_run && !known {
        let refused = || {
            Failure::usage(format_args!(
                "{} says how the image is made that commands run in, and you haven't trusted this version of it; run \
                 once in a terminal, or with --trust-project",
                path.display()
            ))
        };
        let Some(store) = store.filter(|_| interactive) else { return Err(refused()) };
        let (names, values): (Vec<String>, Vec<String>) = recipe.described().into_iter().unzip();
        if !prompt::trust(color::stderr(), &path, &names, &values).context("asking for trust")? {
            return Err(refused());
        }
        store.add(&path, &hash).context("remembering the trust")?;
    }
    config.container.recipe = Some(Box::new(recipe));
    Ok(())
}

fn is_wanted(config: &Config) -> bool {
    config.sandbox_allow.iter().any(|name| name == "container")
}

/// How containers are made, where the user allows them.
pub(crate) fn settings(
    config: &Config,
    docker_host: Option<&OsStr>,
) -> Result<Option<ContainerSettings>, Failure> {
    if !is_wanted(config) {
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
        (None, Some(host)) => Some(socket_of(host)?),
        (None, None) => None,
    };
    Ok(Some(ContainerSettings {
        socket,
        image,
        image_environment: config.image_environment,
        cpus: config.cpus,
        progress: Some(Progress::new(|line| tell!("  {line}"))),
    }))
}

/// The socket that `DOCKER_HOST` names. One on another machine has other files.
fn socket_of(host: &OsStr) -> Result<PathBuf, Failure> {
    let path = host.to_str().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
    path.filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::usage(format_args!(
            "DOCKER_HOST is «{}»; commands run in containers of this machine alone: set it to unix:///…, or name the \
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
        let socket = |host: &str| socket_of(host.as_ref()).ok();
        assert_eq!(socket("unix:///run/user/1000/docker.sock"), Some("/run/user/1000/docker.sock".into()));
        for host in
            ["tcp://127.0.0.1:2375", "ssh://me@there", "unix://relative", "/run/docker.sock", "npipe:////./x"]
        {
            assert_eq!(socket(host), None, "{host}");
        }
        let mut config = Config::default();
        config.container.socket = Some("/own".into());
        assert!(settings(&config, Some("tcp://elsewhere".as_ref())).unwrap().is_none());
        config.sandbox_allow = vec!["container".to_owned()];
        let made = settings(&config, Some("tcp://elsewhere".as_ref())).unwrap().unwrap();
        assert_eq!(made.socket, Some("/own".into()));
        config.container.socket = None;
        assert!(settings(&config, Some("tcp://elsewhere".as_ref())).is_err());
    }
}
