//! A daemon, an image, a project that a user owns, and the daemon's own word on what runs.

use journeyman_testkit::skip;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use journeyman_protocol::SandboxTier;
use journeyman_sandbox::{
    CompletedCommand, ContainerImage, ContainerSettings, Outcome, Request, Sandbox, SandboxSettings,
};
use tokio_util::sync::CancellationToken;

use crate::common::block_on;

/// Who owns the tests' projects where they are run by root.
pub(crate) const OWNER: u32 = 12_345;

/// The daemon's socket and the image's name; says so where there are none.
pub(crate) struct Place {
    pub(crate) socket: PathBuf,
    pub(crate) image: String,
    pub(crate) directory: tempfile::TempDir,
}

pub(crate) fn place() -> Option<Place> {
    let socket = std::env::var_os("JM_TEST_DOCKER_SOCKET").map(PathBuf::from);
    let image = std::env::var("JM_TEST_IMAGE").ok();
    let (Some(socket), Some(image)) = (socket, image) else {
        skip("JM_TEST_DOCKER_SOCKET and JM_TEST_IMAGE aren't set; `.ci/docker_image.sh start DIR` says how");
        return None;
    };
    let directory = tempfile::Builder::new().prefix("jm-container-").tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let place = Place { socket, image, directory };
    let root = place.root();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join(".git/config"), "[core]\n").unwrap();
    fs::write(root.join("file"), "content\n").unwrap();
    fs::write(root.join(".env"), "SECRET=1\n").unwrap();
    fs::create_dir(root.join("keys")).unwrap();
    fs::write(root.join("keys/key"), "secret\n").unwrap();
    give(&root);
    Some(place)
}

/// Gives a tree to the projects' owner, where that can be.
pub(crate) fn give(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    chown(path, Some(OWNER), Some(OWNER)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

impl Place {
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    pub(crate) fn settings(&self) -> SandboxSettings {
        let container = ContainerSettings {
            socket: Some(self.socket.clone()),
            image: ContainerImage::Named(self.image.clone()),
            ..ContainerSettings::default()
        };
        SandboxSettings {
            allow: vec![SandboxTier::Container],
            allow_root: true,
            container: Some(container),
            ..SandboxSettings::default()
        }
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::new(self.settings())
    }

    pub(crate) fn request(&self, command: &str) -> Request {
        Request::for_shell_command(&self.root(), command)
    }

    pub(crate) fn run(&self, command: &str) -> CompletedCommand {
        self.run_request(self.request(command))
    }

    pub(crate) fn run_request(&self, request: Request) -> CompletedCommand {
        let sandbox = self.sandbox();
        block_on(run(&sandbox, request))
    }

    /// The output of a command that must succeed.
    pub(crate) fn text(&self, command: &str) -> String {
        text(self.run(command))
    }

    /// Docker's own client, about this daemon.
    pub(crate) fn docker(&self, arguments: &[&str]) -> String {
        let output = Command::new("/usr/bin/docker")
            .arg("--host")
            .arg(format!("unix://{}", self.socket.display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The containers that show this place's project, whether or not they run.
    pub(crate) fn containers(&self) -> Vec<String> {
        let own = self.directory.path().display().to_string();
        let all =
            self.docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", "label=journeyman.owner"]);
        let shows = |id: &&str| {
            // One that is gone meanwhile shows nothing.
            let output = Command::new("/usr/bin/docker")
                .arg("--host")
                .arg(format!("unix://{}", self.socket.display()))
                .args(["inspect", "--format", "{{json .HostConfig.Mounts}}", id])
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).contains(&own)
        };
        all.lines().filter(shows).map(str::to_owned).collect()
    }
}

pub(crate) async fn run(sandbox: &Sandbox, request: Request) -> CompletedCommand {
    sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
}

pub(crate) fn text(completed: CompletedCommand) -> String {
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    completed.combined.text
}
