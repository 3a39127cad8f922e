//! The cost of a CLI as a call of a session over running it bare: isolated copy, confinement,
//! events, and collecting what changed, on a repository of 5,000 files. `cargo xtask bench
//! delegate` runs it; the figures are in `docs/benchmarks.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_delegate::{
    CliDefinition, CliOutputFormat, ConfiguredCli, DelegateSettings, DelegateTool, Delegates, JsonPaths,
};
use journeyman_protocol::{CallId, SandboxNeeds, SessionId, UnixMillis};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains, run_helper_if_asked};
use journeyman_store::Blobs;
use journeyman_tools::{
    BackgroundCommands, Outputs, SeenFiles, SharedIndex, Tool as _, ToolContext, ToolLimits,
};
use journeyman_workspace::{CopyTools, IsolationTier, Options, Workspace};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const FILES: usize = 5_000;
const RUNS: u64 = 21;
/// Edits two files and tells of it in 200 lines.
const SCRIPT: &str = "#!/bin/sh\necho two > dir1/file1.txt\necho new > new.txt\n\
                      i=0; while [ $i -lt 200 ]; do echo '{\"text\":\"a line of text\"}'; i=$((i+1)); done\n\
                      echo '{\"message\":\"done\"}'\n";

fn main() {
    run_helper_if_asked();
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let root = base.join("project");
    write_project(&root);
    std::fs::create_dir_all(base.join("bin")).unwrap();
    let program = base.join("bin/tiny");
    std::fs::write(&program, SCRIPT).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
    runtime.block_on(sandbox.enforcement(&SandboxNeeds::ALL)).expect("a sandbox");
    let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
    let origin = Arc::new(Workspace::open(&root, Options::new(base.join("state"), blobs)).unwrap());
    let before = memory("VmRSS:");
    let (mut bare, mut called, mut copied) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=RUNS {
        let begun = Instant::now();
        let ended = Command::new(&program).current_dir(&root).stdout(Stdio::null()).status().unwrap();
        bare.push(begun.elapsed());
        assert!(ended.success());
        std::fs::remove_file(root.join("new.txt")).unwrap();
        std::fs::write(root.join("dir1/file1.txt"), "one\n").unwrap();
        let begun = Instant::now();
        let session = SessionId::new(UnixMillis(run), run);
        let means = CopyTools {
            sandbox: &sandbox,
            git: None,
            tiers: &[IsolationTier::Overlay, IsolationTier::Reflink],
            max_copied_files: 10_000,
        };
        let copy = origin.copies().create(&session, &means).expect("a cheap copy");
        copied.push(begun.elapsed());
        let workspace = Arc::clone(copy.workspace());
        let output = runtime.block_on(call(&base, &sandbox, workspace, session));
        called.push(begun.elapsed());
        assert_eq!(output, 2, "two files changed");
        drop(copy);
    }
    let (bare, called, copied) = (median(bare), median(called), median(copied));
    println!("bare                    {:>7.1} ms", milliseconds(bare));
    println!(
        "as a call of a session  {:>7.1} ms, {:.1} ms of it the copy",
        milliseconds(called),
        milliseconds(copied)
    );
    println!("overhead                {:>7.1} ms (at most 150)", milliseconds(called.saturating_sub(bare)));
    println!(
        "memory                  {:>7.1} MiB (at most 20)",
        memory("VmHWM:").saturating_sub(before) as f64 / 1024.0
    );
}

/// Makes one call; the number of files that it changed.
async fn call(base: &Path, sandbox: &Arc<Sandbox>, workspace: Arc<Workspace>, session: SessionId) -> usize {
    let path = format!("{}:/usr/bin:/bin", base.join("bin").display());
    let vars: BTreeMap<_, _> = [("PATH".into(), path.into())].into();
    let host = HostEnvironment { vars, home: Some(base.join("home")) };
    let definition = CliDefinition {
        name: "tiny".to_owned(),
        command: vec!["tiny".to_owned()],
        output: CliOutputFormat::JsonLines(JsonPaths {
            text: Some("text".to_owned()),
            message: Some("message".to_owned()),
            ..JsonPaths::default()
        }),
        hosts: vec!["api.tiny.test".to_owned()],
        ..CliDefinition::default()
    };
    let cli = ConfiguredCli::new(definition).unwrap();
    let root = workspace.root().to_owned();
    let context = ToolContext {
        index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::default(), None)),
        sandbox: Arc::clone(sandbox),
        toolchains: Arc::new(find_toolchains(&host, &root)),
        workspace,
        session,
        call: CallId::new("call_1"),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| ()),
        emit: Arc::new(|_, _| ()),
        limits: ToolLimits::default(),
        seen: Arc::new(SeenFiles::default()),
        may_show: Arc::new(|_| true),
        outputs: Arc::new(Outputs::default()),
        background: Arc::new(BackgroundCommands::default()),
        needs: SandboxNeeds::ALL,
    };
    let delegates = Delegates::new(vec![DelegateSettings::new(Arc::new(cli))], host, Some(&root));
    let tool = DelegateTool::new(delegates, base.join("homes"));
    let output = tool.call(&context, json!({ "to": "tiny", "prompt": "do it" })).await.unwrap();
    assert!(!output.is_error, "{:?}", output.parts);
    output.changes.len()
}

fn write_project(root: &Path) {
    for file in 0..FILES {
        let directory = root.join(format!("dir{}", file / 50));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("file{file}.txt")), "a line of text\n".repeat(40)).unwrap();
    }
    std::fs::write(root.join("dir1/file1.txt"), "one\n").unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Returns a figure of this process's memory, in KiB.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
