//! The configuration of commands in containers.

use std::path::PathBuf;

use journeyman_protocol::RelPath;
use toml::Value;

/// The values of `sandbox.container.project`.
pub(super) const PROJECT_IMAGE_KINDS: &[&str] = &["devcontainer", "dockerfile"];

/// The image that commands run in, and its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerConfig {
    /// An image that is on this machine.
    pub image: Option<String>,
    /// The project's file that describes the image, instead.
    pub project: Option<ProjectImage>,
    /// The socket of Docker or Podman.
    pub socket: Option<PathBuf>,
    /// True if the image's own variables hold where a command sets none.
    pub image_environment: bool,
    /// Number of processors that the commands of one container may use together.
    pub cpus: Option<f64>,
    /// The recipe of the project's image, once the user trusts it.
    #[cfg(feature = "containers")]
    pub recipe: Option<Box<journeyman_sandbox::Recipe>>,
}

/// The file that describes a project's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectImage {
    /// Its `devcontainer.json`.
    Devcontainer,
    /// A Dockerfile: this one, or one of the usual names at the root.
    Dockerfile(Option<RelPath>),
}

impl ContainerConfig {
    /// Converts the settings beneath `sandbox.container`.
    ///
    /// # Errors
    /// The wrong key and its problem.
    pub(super) fn from_settings<'a>(
        get: impl Fn(&str) -> Option<&'a Value>,
    ) -> Result<Self, (&'static str, String)> {
        let text = |name: &str| get(name).and_then(Value::as_str);
        let dockerfile = text("sandbox.container.dockerfile").map(|path| {
            RelPath::parse(path).map_err(|error| ("sandbox.container.dockerfile", error.to_string()))
        });
        let project = match (text("sandbox.container.project"), dockerfile.transpose()?) {
            (Some("devcontainer"), None) => Some(ProjectImage::Devcontainer),
            (Some("devcontainer"), Some(_)) => {
                let problem = "goes with project = \"dockerfile\"; a devcontainer.json names its own";
                return Err(("sandbox.container.dockerfile", problem.to_owned()));
            }
            (None, None) => None,
            (_, path) => Some(ProjectImage::Dockerfile(path)),
        };
        let number = |value: &Value| match value {
            Value::Float(number) => Some(*number),
            Value::Integer(number) => u32::try_from(*number).ok().map(f64::from),
            _ => None,
        };
        let cpus = get("sandbox.container.cpus").and_then(number);
        if cpus.is_some_and(|cpus| cpus < 0.01) {
            return Err(("sandbox.container.cpus", "must be 0.01 or more".to_owned()));
        }
        Ok(Self {
            image: text("sandbox.container.image").map(str::to_owned),
            project,
            socket: text("sandbox.container.socket").map(PathBuf::from),
            image_environment: get("sandbox.container.image_environment")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            cpus,
            #[cfg(feature = "containers")]
            recipe: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, Value)]) -> Result<ContainerConfig, (&'static str, String)> {
        ContainerConfig::from_settings(|name| {
            let key = name.strip_prefix("sandbox.container.").unwrap();
            pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
        })
    }

    #[test]
    fn keys_become_settings() {
        assert_eq!(read(&[]).unwrap(), ContainerConfig::default());
        let text = |text: &str| Value::String(text.to_owned());
        let all = read(&[
            ("image", text("debian:12")),
            ("socket", text("/run/x.sock")),
            ("image_environment", Value::Boolean(true)),
            ("cpus", Value::Integer(2)),
        ]);
        let expected = ContainerConfig {
            image: Some("debian:12".to_owned()),
            socket: Some("/run/x.sock".into()),
            image_environment: true,
            cpus: Some(2.0),
            ..ContainerConfig::default()
        };
        assert_eq!(all.unwrap(), expected);
        let project = |pairs: &[(&str, Value)]| read(pairs).map(|config| config.project);
        let path = RelPath::parse("docker/Dev").ok();
        assert_eq!(project(&[("project", text("devcontainer"))]), Ok(Some(ProjectImage::Devcontainer)));
        assert_eq!(project(&[("project", text("dockerfile"))]), Ok(Some(ProjectImage::Dockerfile(None))));
        assert_eq!(project(&[("dockerfile", text("docker/Dev"))]), Ok(Some(ProjectImage::Dockerfile(path))));
        assert!(project(&[("dockerfile", text("../Dev"))]).is_err());
        assert!(project(&[("project", text("devcontainer")), ("dockerfile", text("x"))]).is_err());
        assert!(read(&[("cpus", Value::Float(0.0))]).is_err());
    }
}
