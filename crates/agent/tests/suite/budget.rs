//! What every request costs before it says anything: the system prompt and the tools.

use std::sync::Arc;

use journeyman_context::{Estimate, Inputs, first};
use journeyman_protocol::{Mode, TokenCounter as _, Tokens};
use journeyman_store::Blobs;
use journeyman_tools::Registry;
use journeyman_workspace::{ListOptions, Options, Workspace};

blocking_cases![the_system_prompt_and_the_tools_are_small];

/// What ten tools and the system prompt may cost together.
const ASKED: u64 = 2_500;
/// So many tools that figure is meant for.
const TOOLS: u64 = 10;

fn the_system_prompt_and_the_tools_are_small() {
    let place = tempfile::tempdir().unwrap();
    let blobs = Arc::new(Blobs::open(&place.path().join("blobs"), 1 << 20).unwrap());
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let options = Options::new(place.path().join("state"), blobs);
    let workspace = Workspace::open(&project, options).unwrap();
    let listing = workspace.list(ListOptions::default()).unwrap();
    let specs = Registry::with_builtin().specs();
    for mode in Mode::ALL {
        let packed = first(&Inputs {
            role: None,
            task: "a task",
            workspace: &workspace,
            listing: &listing,
            found: None,
            checks: &[],
            mode,
            user_instructions: None,
            project_instructions: None,
            notes: &[],
            text_protocol: false,
            tools: &specs,
            today: "2026-01-31",
            platform: "linux",
            budget: Tokens(20_000),
        })
        .unwrap();
        let system: Tokens = packed.system.iter().map(|part| Estimate.count(&part.text)).sum();
        let tools = Estimate.count(&serde_json::to_string(&specs).unwrap());
        // Ten tools of the size of these.
        let count = u64::try_from(specs.len()).unwrap();
        let ten = tools.0 * TOOLS / count;
        println!("{mode}: system {system}, {count} tools {tools}, ten such tools {ten}");
        assert!(system.0 + ten <= ASKED, "{mode}: {system} + {ten} tokens are more than {ASKED}");
    }
}
