//! The attacker as another coding CLI: in the confinement that `delegate_task` itself gives one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_delegate::{
    CliDefinition, CliOutputFormat, ConfiguredCli, DELEGATE_TOOL, DelegateSettings, DelegateTool, Delegates,
};
use journeyman_protocol::{CallId, ResultPart, SessionId, UnixMillis};
use journeyman_sandbox::{HostEnvironment, Sandbox, find_toolchains};
use journeyman_store::Blobs;
use journeyman_tools::{
    BackgroundCommands, Outputs, SeenFiles, SharedIndex, Tool as _, ToolContext, ToolLimits, ToolOutput,
};
use journeyman_workspace::{Options, Workspace};
use tokio_util::sync::CancellationToken;

use crate::scene::{ATTEMPT, SCENE, Said, Scene};

/// The name of the attacker as a CLI.
const NAME: &str = "attacker";

/// Gives the attacker a task, and says what came of it.
pub(crate) async fn run(
    scene: &Scene,
    layers: &Path,
    sandbox: Sandbox,
    planted_key: impl Fn() -> bool,
) -> Said {
    let scene_text = serde_json::to_string(scene).unwrap();
    let vars: BTreeMap<_, _> = [
        (SCENE, scene_text),
        ("HOME", scene.home.display().to_string()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    let host = HostEnvironment { vars, home: Some(scene.home.clone()) };
    // Somebody listens there as long as this process lives.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let definition = CliDefinition {
        name: NAME.to_owned(),
        command: vec![scene.program.display().to_string(), ATTEMPT.to_owned()],
        environment: vec![SCENE.to_owned()],
        hosts: vec!["api.example.com".to_owned()],
        output: CliOutputFormat::Text,
        ..CliDefinition::default()
    };
    let settings = DelegateSettings {
        network: vec![listener.local_addr().unwrap().to_string()],
        ..DelegateSettings::new(Arc::new(ConfiguredCli::new(definition).unwrap()))
    };
    let delegates = Delegates::new(vec![settings], host.clone(), Some(&scene.root));
    let tool = DelegateTool::new(delegates, beside(layers).join("delegates"));
    let context = context(scene, layers, sandbox, &host);
    let input = serde_json::json!({ "to": NAME, "prompt": "Break out." });
    match tool.call(&context, input).await {
        Ok(output) => told(&output, planted_key()),
        Err(error) => Said::Refused(error.to_string()),
    }
}

/// The directory of all state of the tool: not among the layers, which the attacker must not find.
fn beside(layers: &Path) -> PathBuf {
    layers.with_file_name("tool")
}

fn context(scene: &Scene, layers: &Path, sandbox: Sandbox, host: &HostEnvironment) -> ToolContext {
    let at = |name: &str| beside(layers).join(name);
    let root: &Path = &scene.root;
    let blobs = Arc::new(Blobs::open(&at("blobs"), 1 << 30).unwrap());
    let workspace = Arc::new(Workspace::open(root, Options::new(at("state"), blobs)).unwrap());
    ToolContext {
        index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::default(), None)),
        workspace,
        sandbox: Arc::new(sandbox),
        toolchains: Arc::new(find_toolchains(host, root)),
        session: SessionId::new(UnixMillis(1), 1),
        call: CallId::new("call_1"),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| ()),
        emit: Arc::new(|_, _| ()),
        limits: ToolLimits::default(),
        seen: Arc::new(SeenFiles::default()),
        may_show: Arc::new(|_| true),
        outputs: Arc::new(Outputs::default()),
        background: Arc::new(BackgroundCommands::default()),
        needs: scene.tier.max_needs(),
    }
}

/// Reads the call's result: the attacker's last line, and how it ended.
fn told(output: &ToolOutput, planted_key: bool) -> Said {
    let mut parts = output.parts.iter().map(|part| match part {
        ResultPart::Text { text } => text.as_str(),
        ResultPart::Image(_) => "",
    });
    let (message, notes) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let start = format!("[{NAME} ended: ");
    let end = notes.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(']'));
    let Some(end) = end else { return Said::Refused(format!("{DELEGATE_TOOL}: {message}")) };
    Said::Ran {
        outcome: end.to_owned(),
        signal: end.strip_prefix("killed by signal ").and_then(|signal| signal.parse().ok()),
        verdict: message.lines().rev().find_map(|line| serde_json::from_str(line).ok()),
        text: message.to_owned(),
        planted_key,
    }
}
