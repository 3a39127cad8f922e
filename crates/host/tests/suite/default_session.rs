//! What each request of a session costs before it says anything: the system prompt and the tools.

use std::sync::{Arc, Mutex};

use futures_util::stream;
use journeyman_agent::RunSettings;
use journeyman_host::config::Environment;
use journeyman_host::{ConnectedModel, SessionBuilder};
use journeyman_model::{DeltaStream, Model, ModelError, ModelRequest};
use journeyman_protocol::{Mode, ModelLimits, TokenCounter as _, Tokenizer, Tokens};
use tokio_util::sync::CancellationToken;

/// Maximum tokens of the system prompt and the tools of a default session.
const MAX_TOKENS: Tokens = Tokens(2_500);

/// Keeps the first request.
struct Keeping {
    name: String,
    kept: Arc<Mutex<Option<ModelRequest>>>,
}

impl Model for Keeping {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, _: CancellationToken) -> DeltaStream<'a> {
        let copy = ModelRequest { messages: Vec::new(), ..request.clone() };
        self.kept.lock().unwrap().get_or_insert(copy);
        Box::pin(stream::iter([Err(ModelError::Script("kept".to_owned()))]))
    }
}

/// Returns the first request of a session with a model of this name.
async fn first_request(model: &str, adjust: fn(&mut RunSettings)) -> ModelRequest {
    first_request_in(&[], model, adjust).await
}

/// The same in a project with these files.
async fn first_request_in(files: &[(&str, &str)], model: &str, adjust: fn(&mut RunSettings)) -> ModelRequest {
    let place = tempfile::tempdir().unwrap();
    let (root, state) = (place.path().join("project"), place.path().join("state"));
    std::fs::create_dir(&root).unwrap();
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let kept = Arc::new(Mutex::new(None));
    let keeping = Arc::new(Keeping { name: model.to_owned(), kept: Arc::clone(&kept) });
    let environment =
        Environment { home: Some(place.path().join("home")), cwd: root.clone(), vars: Default::default() };
    let builder = SessionBuilder::new(&root)
        .environment(environment)
        .state_dir(state)
        .connected(ConnectedModel::from_model(keeping, model.to_owned()))
        .adjust_settings(adjust);
    builder.run("a task", &mut |_: &_| ()).await.unwrap();
    let request = kept.lock().unwrap().take();
    request.expect("a request was sent")
}

#[tokio::test]
async fn system_prompt_and_tools_of_a_default_session_are_small() {
    let limits = ModelLimits { tokenizer: Tokenizer::O200k, ..ModelLimits::conservative_default(false) };
    let counter = journeyman_context::counting::Counter::new(&limits);
    for model in ["anthropic/claude-sonnet-4-5", "openai/gpt-5", "custom/tiny"] {
        for mode in Mode::ALL {
            let request = match mode {
                Mode::Plan => first_request(model, |settings| settings.mode = Mode::Plan).await,
                Mode::Ask => first_request(model, |settings| settings.mode = Mode::Ask).await,
                Mode::Edit => first_request(model, |settings| settings.mode = Mode::Edit).await,
                Mode::Auto => first_request(model, |settings| settings.mode = Mode::Auto).await,
            };
            let system: Tokens = request.system.iter().map(|part| counter.count(&part.text)).sum();
            let tools: Tokens = request.tools.iter().map(|tool| counter.count_tool(tool)).sum();
            let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            println!("{model}, {mode}: system {system}, {} tools {tools}", names.len());
            assert!(system + tools <= MAX_TOKENS, "{model}, {mode}: {system} + {tools}: {names:?}");
        }
    }
}

#[tokio::test]
async fn skills_of_the_project_are_listed_and_nothing_without_them() {
    let without = first_request("custom/tiny", |_| ()).await;
    assert!(without.tools.iter().all(|tool| tool.name != "skill" && !tool.name.starts_with("web_")));
    let skill = "---\nname: release\ndescription: Cuts a release.\n---\nTag it.\n";
    let files = [(".claude/skills/release/SKILL.md", skill)];
    let with = first_request_in(&files, "custom/tiny", |_| ()).await;
    let told = with.tools.iter().find(|tool| tool.name == "skill").expect("the tool is offered");
    assert!(told.description.ends_with("- release: Cuts a release."), "{}", told.description);
    assert!(!told.description.contains("Tag it."), "its text is loaded on use");
}

#[tokio::test]
async fn a_model_is_offered_the_editing_tools_that_it_knows() {
    for (model, patches) in [("anthropic/claude-sonnet-4-5", false), ("openai/gpt-5", true)] {
        let request = first_request(model, |_| ()).await;
        let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        assert_eq!((has("apply_patch"), has("edit_file")), (patches, !patches), "{model}");
        assert!(has("edit_symbol") && has("delete_file") && has("move_file"), "{model}");
    }
}
