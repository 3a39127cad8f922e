//! Images that a project describes.

use std::sync::{Arc, Mutex};

use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{ContainerImage, Progress, RecipeSource, Sandbox, read_container_recipe};

use crate::common::block_on;
use crate::container::support::{Place, place, run, text};

/// Runs a command in the image that the project describes; what it said, and what was told
/// meanwhile.
fn in_image(place: &Place, source: &RecipeSource, command: &str) -> (Result<String, String>, Vec<String>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut settings = place.settings();
    let container = settings.container.as_mut().unwrap();
    container.image = ContainerImage::Built(Box::new(read_container_recipe(&place.root(), source).unwrap()));
    let listener = Arc::clone(&told);
    container.progress = Some(Progress::new(move |line| listener.lock().unwrap().push(line.to_owned())));
    let sandbox = Sandbox::new(settings);
    let said = block_on(async {
        match sandbox.enforcement(&SandboxNeeds::ALL).await {
            Ok(_) => Ok(text(run(&sandbox, place.request(command)).await)),
            Err(error) => Err(error.to_string()),
        }
    });
    let told = told.lock().unwrap().clone();
    (said, told)
}

/// Tells this test's image from any that was built before.
fn unique() -> String {
    format!("{}-{:?}", std::process::id(), std::time::SystemTime::now())
}

#[test]
fn an_image_is_built_once_for_each_version_of_its_recipe() {
    let Some(place) = place() else { return };
    std::fs::create_dir(place.root().join(".devcontainer")).unwrap();
    std::fs::write(place.root().join("part"), unique()).unwrap();
    let dockerfile = format!(
        "ARG BASE\nFROM $BASE\nARG WORD\nCOPY part /etc/part\nRUN echo \"building $WORD\"; echo $WORD >/etc/word\n\
         RUN test ! -e /etc/.env && env >/etc/environment\nVOLUME /var/volume\n# {}\n",
        unique()
    );
    std::fs::write(place.root().join(".devcontainer/Dockerfile"), dockerfile).unwrap();
    let json = format!(
        "{{ // what commands run in\n \"build\": {{\"dockerfile\": \"Dockerfile\", \"context\": \"..\", \
         \"args\": {{\"BASE\": \"{}\", \"WORD\": \"here\"}},}},\n}}",
        place.image
    );
    std::fs::write(place.root().join(".devcontainer/devcontainer.json"), json).unwrap();
    let command = "cat /etc/word; ls -A /var/volume; (echo x >/var/volume/x) 2>/dev/null && echo wrote; \
                   cmp /etc/part part && grep -c SECRET /etc/environment; true";
    let (said, told) = in_image(&place, &RecipeSource::Devcontainer, command);
    assert_eq!(said.unwrap(), "here\n0\n", "{told:?}");
    assert!(told.iter().any(|line| line == "building here"), "{told:?}");
    let (said, told) = in_image(&place, &RecipeSource::Devcontainer, command);
    assert_eq!((said.unwrap().as_str(), told), ("here\n0\n", Vec::new()));
    std::fs::write(place.root().join("part"), unique()).unwrap();
    let (said, told) = in_image(&place, &RecipeSource::Devcontainer, command);
    assert!(said.is_ok() && !told.is_empty());
}

#[test]
fn a_build_fetches_nothing_and_says_why_it_failed() {
    let Some(place) = place() else { return };
    let dockerfile = place.root().join("Dockerfile");
    std::fs::write(&dockerfile, "FROM no/such-base:1\n").unwrap();
    let (said, _) = in_image(&place, &RecipeSource::Dockerfile(None), "true");
    assert!(said.unwrap_err().contains("docker pull no/such-base:1"));
    let text = format!("FROM {}\nRUN echo some reason; exit 3\n", place.image);
    std::fs::write(&dockerfile, text).unwrap();
    let (said, _) = in_image(&place, &RecipeSource::Dockerfile(None), "true");
    let said = said.unwrap_err();
    assert!(said.contains("can't be built") && said.contains("some reason"), "{said}");
}
