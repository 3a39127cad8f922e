//! An image of the project's own, built once for each version of what it is made of.

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures_util::StreamExt as _;

use super::client::{Daemon, http_status, missing_image_error, setup_error, to_one_line};
use super::recipe::{BuildInputs, ImageOrigin, Recipe};
use crate::Progress;
use crate::SandboxError;

/// The images' name; the tag is a digest.
const IMAGE_REPOSITORY: &str = "journeyman-project";
/// Lines of a build that failed which go into the error.
const MAX_ERROR_LINES: usize = 5;

/// Returns the name of the recipe's image. Builds the image if it doesn't exist.
pub(super) async fn ensure_image(
    daemon: &Daemon,
    recipe: &Recipe,
    progress: Option<&Progress>,
) -> Result<String, SandboxError> {
    let build = match &recipe.make {
        ImageOrigin::Named(name) => return Ok(name.clone()),
        ImageOrigin::Built(build) => build,
    };
    let digest = recipe.digest().to_string();
    let digest: String = digest.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    let name = format!("{IMAGE_REPOSITORY}:{digest}");
    if image_exists(daemon, &name).await? {
        return Ok(name);
    }
    for base in &build.bases {
        if !image_exists(daemon, base).await? {
            return Err(missing_image_error(daemon, base));
        }
    }
    let tell = |line: &str| {
        if let Some(progress) = progress {
            progress.show(line);
        }
    };
    tell(&format!("building the image that {} describes", recipe.file()));
    build_image(daemon, build, &name, tell).await?;
    Ok(name)
}

async fn image_exists(daemon: &Daemon, name: &str) -> Result<bool, SandboxError> {
    match daemon.docker.inspect_image(name).await {
        Ok(_) => Ok(true),
        Err(error) if http_status(&error) == Some(404) => Ok(false),
        Err(error) => Err(setup_error("looking for an image", &error)),
    }
}

/// Builds the image. The build is given the archive, the arguments, and nothing of this program's
/// or the user's.
async fn build_image(
    daemon: &Daemon,
    build: &BuildInputs,
    name: &str,
    tell: impl Fn(&str),
) -> Result<(), SandboxError> {
    let options = BuildImageOptionsBuilder::default()
        .dockerfile(&build.dockerfile)
        .t(name)
        .rm(true)
        .forcerm(true)
        .buildargs(&build.arguments.clone().into_iter().collect())
        .target(&build.target)
        .build();
    let archive = bollard::body_full(build.archive.as_ref().clone().into());
    let mut steps = std::pin::pin!(daemon.docker.build_image(options, None, Some(archive)));
    let mut last: Vec<String> = Vec::new();
    while let Some(step) = steps.next().await {
        let step = match step {
            Ok(step) => step,
            Err(error) => return Err(build_error(&last, &super::client::error_text(&error))),
        };
        if let Some(detail) = step.error_detail {
            return Err(build_error(&last, &to_one_line(&detail.message.unwrap_or_default())));
        }
        for line in step.stream.iter().flat_map(|text| text.lines()) {
            let line = to_one_line(line);
            if !line.is_empty() {
                tell(&line);
                last.push(line);
                if last.len() > MAX_ERROR_LINES {
                    last.remove(0);
                }
            }
        }
    }
    Ok(())
}

fn build_error(last: &[String], message: &str) -> SandboxError {
    SandboxError::Unavailable {
        reason: format!("the project's image can't be built: {message} (after: {})", last.join(" | ")),
        fix: "Mend its Dockerfile, or name an image in sandbox.container.image".to_owned(),
    }
}
