//! The whole agent as a library, without a terminal: a project, a model, a session, its events.
//!
//! `cargo run -p journeyman-agent --example library`

use std::sync::Arc;

use journeyman_agent::hooks::Hooks;
use journeyman_agent::model::ScriptedModel;
use journeyman_agent::policy::{Policy, secrets::Redactor};
use journeyman_agent::protocol::{Event, Mode, RunOutcome, SessionId, UnixMillis};
use journeyman_agent::sandbox::{HostEnvironment, Sandbox, SandboxSettings, run_helper_if_asked, toolchains};
use journeyman_agent::store::{Blobs, MemoryStore};
use journeyman_agent::tools::{Registry, SharedIndex};
use journeyman_agent::workspace::{Options, Workspace};
use journeyman_agent::{Checks, Filter, Parts, RunSettings, Since, start};

/// Stands in for a live model; `connect` makes one of those.
const SCRIPT: &str = r#"{"replies": [
    {"text": "A greeting it is.", "calls": [
        {"name": "write_file", "input": {"path": "greeting.txt", "content": "Good morning.\n"}}]},
    {"text": "The greeting is written."}]}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The sandbox starts this program anew to build itself, so this comes first.
    run_helper_if_asked();
    let place = tempfile::tempdir()?;
    let root = place.path().join("project");
    std::fs::create_dir(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(session(&root, place.path()))?;
    println!("greeting.txt: {}", std::fs::read_to_string(root.join("greeting.txt"))?.trim_end());
    assert!(matches!(outcome, RunOutcome::Verified | RunOutcome::Unverified));
    Ok(())
}

async fn session(
    root: &std::path::Path,
    state: &std::path::Path,
) -> Result<RunOutcome, Box<dyn std::error::Error>> {
    let blobs = Arc::new(Blobs::open(&state.join("blobs"), 1 << 30)?);
    let options = Options::new(state.join("state"), blobs);
    let host = HostEnvironment { vars: std::env::vars_os().collect(), home: None };
    let workspace = Arc::new(Workspace::open(root, options)?);
    let redactor = Arc::new(Redactor::default());
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        model: Arc::new(ScriptedModel::parse(SCRIPT)?),
        index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::clone(&redactor), None)),
        workspace,
        copy: None,
        sandbox: Arc::new(Sandbox::new(SandboxSettings::default())),
        toolchains: Arc::new(toolchains(&host, root)),
        registry: Registry::rooted(root),
        policy: Policy::default(),
        redactor,
        hooks: Hooks::none(),
        clock: Arc::new(|| UnixMillis(1_700_000_000_000)),
        programs: Arc::new(|_: &str| false),
        holder: "an example".to_owned(),
    };
    let checks = Checks::Custom(vec!["grep -q morning greeting.txt".to_owned()]);
    let settings = RunSettings { mode: Mode::Edit, checks, ..RunSettings::default() };
    let session = start(parts, settings, SessionId::new(UnixMillis(1_700_000_000_000), 1));
    let mut events = session.subscribe(Filter::all(), Since::Now);
    session.send("write a greeting").await?;
    while let Some(envelope) = events.next().await? {
        match &envelope.event {
            Event::TextDelta { text, .. } => print!("{text}"),
            Event::ToolStart { summary, .. } => println!("\n→ {summary}"),
            Event::CheckResult { evidence } => println!("\n✓ {}: {:?}", evidence.command, evidence.outcome),
            Event::Done { report } => {
                println!("{}\n{}", report.summary, report.diff);
                break;
            }
            _ => {}
        }
    }
    Ok(session.finished().await?.outcome)
}
