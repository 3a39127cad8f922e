//! The agent: a process of its own with a secret, a key, a terminal and descriptors that somebody
//! forgot to close. It runs the attacker as one command in the sandbox and says what came of it.

use std::path::PathBuf;

use journeyman_protocol::{RelPath, SandboxTier};
use journeyman_sandbox::{
    Network, NetworkRules, Outcome, OverlayPlan, PortForward, ProjectCopy, Request, Sandbox, SandboxError,
    SandboxSettings,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::attempt::processes::{add_key, find_key};
use crate::delegated;
use crate::scene::{ATTEMPT, SCENE, Said, Scene};
use crate::sys;

/// The variable with the [`Order`].
pub(crate) const ORDER: &str = "JM_ORDER";

/// What stands at the project's root for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stand {
    /// The project.
    Project,
    /// An overlay of it.
    Mount,
    /// A copied directory, with a cache of the project's.
    Directory,
    /// An overlay of it, with a home and a network as another coding CLI has them: one host and one
    /// address.
    Delegate,
    /// The project, for a CLI that `delegate_task` runs.
    Tool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) scene: Scene,
    pub(crate) tier: SandboxTier,
    pub(crate) stand: Stand,
    pub(crate) layers: PathBuf,
    pub(crate) cache: PathBuf,
    /// The socket of a container service, and an image.
    pub(crate) service: Option<(PathBuf, String)>,
}

pub(crate) fn run() {
    let mut order: Order = serde_json::from_str(&std::env::var(ORDER).unwrap()).unwrap();
    // A session keyring of its own (`KEYCTL_JOIN_SESSION_KEYRING`), so that nobody else's is
    // touched.
    let has_keys = sys::call(libc::SYS_keyctl, [1, 0, 0, 0, 0]).and_then(|_| add_key(c"jm-canary")).is_ok();
    let secret = String::from("in memory");
    order.scene.agent = std::process::id().cast_signed();
    order.scene.address = secret.as_ptr().addr();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(command(&order, has_keys));
    drop(secret);
    println!("{}", serde_json::to_string(&said).unwrap());
}

fn request(order: &Order, sandbox: &Sandbox) -> Result<Request, SandboxError> {
    let scene = &order.scene;
    let argv = vec![scene.program.clone().into(), ATTEMPT.into()];
    let mut request = Request::for_program(&scene.root, argv);
    request.env.insert(SCENE.into(), serde_json::to_string(scene).unwrap().into());
    request.env.insert("HOME".into(), scene.home.clone().into());
    request.read_only = vec![scene.shown.clone(), scene.program.parent().unwrap().to_owned()];
    request.needs = order.tier.max_needs();
    request.base = match order.stand {
        Stand::Project | Stand::Tool => None,
        Stand::Mount | Stand::Delegate => {
            let [upper, work] = ["upper", "work"].map(|name| order.layers.join(name));
            let plan = OverlayPlan { lower: scene.root.clone(), upper, work };
            Some(ProjectCopy::Mounted(sandbox.mount_overlay(&plan)?.into()))
        }
        Stand::Directory => {
            let caches = RelPath::parse("cache").into_iter().collect();
            let [path, layers] = ["copy", "caches"].map(|name| order.layers.join(name));
            Some(ProjectCopy::Directory { path, caches, layers })
        }
    };
    if order.stand == Stand::Delegate {
        let home = order.layers.with_file_name("cli-home");
        std::fs::create_dir_all(&home).unwrap();
        let words = ["/usr/bin/env".into(), format!("HOME={}", home.display()).into()];
        request.argv.splice(0..0, words);
        request.writable.push(home);
        // Somebody listens there as long as this process lives.
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let forwards = vec![PortForward { port: 11_434, to: listener.local_addr().unwrap() }];
        std::mem::forget(listener);
        let hosts = vec!["api.example.com".parse().unwrap()];
        let rules = NetworkRules { hosts, forwards, ..NetworkRules::default() };
        request.network = Network::Filtered(rules.into());
    }
    Ok(request)
}

fn settings(order: &Order) -> SandboxSettings {
    #[cfg_attr(not(feature = "containers"), allow(unused_mut))]
    let mut settings = SandboxSettings {
        allow: vec![order.tier],
        cache: Some(order.cache.clone()),
        allow_root: true,
        ..SandboxSettings::default()
    };
    #[cfg(feature = "containers")]
    {
        use journeyman_sandbox::{ContainerImage, ContainerSettings};
        settings.container = order.service.clone().map(|(socket, image)| ContainerSettings {
            socket: Some(socket),
            image: ContainerImage::Named(image),
            ..ContainerSettings::default()
        });
    }
    settings
}

async fn command(order: &Order, has_keys: bool) -> Said {
    if order.tier == SandboxTier::Container && order.service.is_none() {
        return Said::Unavailable("JM_TEST_DOCKER_SOCKET and JM_TEST_IMAGE aren't set".to_owned());
    }
    let settings = settings(order);
    let sandbox = Sandbox::new(settings);
    if order.stand == Stand::Tool {
        if let Err(error) = sandbox.enforcement(&order.tier.max_needs()).await {
            return of_error(error);
        }
        let planted_key = || has_keys && find_key(c"jm-planted").is_ok();
        return delegated::run(&order.scene, &order.layers, sandbox, planted_key).await;
    }
    let request = match request(order, &sandbox) {
        Ok(request) => request,
        Err(error) => return of_error(error),
    };
    let completed = match sandbox.spawn(request, CancellationToken::new()).await {
        Ok(running) => running.wait().await,
        Err(error) => return of_error(error),
    };
    let completed = match completed {
        Ok(completed) => completed,
        Err(error) => return of_error(error),
    };
    assert_eq!(completed.enforcement.tier, order.tier);
    let text = completed.combined.text;
    Said::Ran {
        outcome: format!("{:?}", completed.outcome),
        signal: if let Outcome::Signaled(signal) = completed.outcome { Some(signal) } else { None },
        verdict: text.lines().last().and_then(|line| serde_json::from_str(line).ok()),
        text,
        planted_key: has_keys && find_key(c"jm-planted").is_ok(),
    }
}

fn of_error(error: SandboxError) -> Said {
    match error {
        SandboxError::Unavailable { .. } => Said::Unavailable(error.to_string()),
        error => Said::Refused(error.to_string()),
    }
}
