//! The whole agent as a library: `cargo run -p journeyman-host --example library`
use journeyman_host::agent::{model::ScriptedModel, protocol::Event, sandbox::run_helper_if_asked};
use journeyman_host::{SessionBuilder, agent::ChecksSetting};

const SCRIPT: &str = r#"{"replies": [
    {"calls": [{"name": "write_file", "input": {"path": "greeting.txt", "content": "Good morning.\n"}}]},
    {"text": "The greeting is written."}]}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run_helper_if_asked(); // Comes first: the sandbox starts this program anew to set itself up.
    let place = tempfile::tempdir()?;
    std::fs::create_dir(place.path().join("project"))?;
    let session = SessionBuilder::new(place.path().join("project"))
        .state_dir(place.path().join("state"))
        .model(ScriptedModel::parse(SCRIPT)?)
        .checks(ChecksSetting::Custom(vec!["grep -q morning greeting.txt".to_owned()]));
    let mut show = |event: &Event| println!("{event:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(session.run("write a greeting", &mut show))?;
    println!("{}\n{}", report.summary, report.diff);
    Ok(())
}
