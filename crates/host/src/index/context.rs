//! Shows how the first request of a session for a task would be packed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use journeyman_agent::{
    Approver, ChecksSetting, FailedChecks, RunSettings, find_line_commit, find_uncommitted, offered_tools,
};
use journeyman_context::counting::Counter;
use journeyman_context::gathering::{ContextSources, GatheredContext, gather};
use journeyman_context::packing::{ContextCandidate, PackingOutcome};
use journeyman_context::{
    FirstRequestInputs, LineCommit, WeighedItem, WindowBudget, candidates_at_named_lines, likeliest_passage,
    lookup_text, pack_first_request,
};
use journeyman_git::Git;
use journeyman_model::ScriptedModel;
use journeyman_policy::builtin_tool;
use journeyman_policy::secrets::{Redactor, unmasked_files};
use journeyman_protocol::{
    ContextCategory, ContextShare, LimitSource, Mode, ModelLimits, RelPath, Tokens, ToolSpec,
};
use journeyman_tools::Registry;
use journeyman_workspace::{FileBody, ListOptions, Workspace};

use super::answers::{ContextAnswer, ContextPlanItem};
use super::open::CodeIndex;
use crate::agents::{AgentTrust, load_agents};
use crate::builder::run_settings;
use crate::config::{Config, Environment, load_policy};
use crate::memory::{NoteFile, load_notes};
use crate::models::{ConnectedModel, can_call_tools, configured_model_limits};
use crate::policy_check::list_check_commands;
use crate::prompt_files::load_prompts;
use crate::root::project_root;
use crate::session_tools::{ToolParts, session_tools};
use crate::settings::{ADMIN_POLICY, find_open_files};
use crate::skills::Skills;
use crate::state::{StateDirs, now};
use crate::web::search_engine;
use crate::{Context as _, HostError, configured_secrets, load_assuming_trust};

/// An empty script for the model, which gets no request.
const EMPTY_SCRIPT: &str = r#"{"replies": []}"#;
/// Built-in tools whose descriptions name files of the user and of the project.
const PROJECT_SPECIFIC_TOOLS: [&str; 3] = ["task", "skill", "delegate_task"];
/// Maximum bytes of a file that is shown.
const MAX_CANDIDATE_FILE_BYTES: u64 = 2 << 20;
/// Maximum number of files that are listed.
const MAX_LISTED_FILES: usize = 20_000;

/// The plan of a first request.
#[derive(Debug)]
pub struct ContextPlan {
    /// The model, as `provider/name`, if one is configured.
    pub model: Option<String>,
    /// Its window.
    pub window: Tokens,
    /// Estimated tokens of system prompt and first message.
    pub tokens: Tokens,
    /// The share of each category in the window.
    pub shares: Vec<ContextShare>,
    /// Everything that was weighed, in and out.
    pub items: Vec<WeighedItem>,
    /// The first message.
    pub message: String,
}

/// A task, and the files that the user has open, from the current directory.
#[derive(Debug, Clone, Copy)]
pub struct PlannedTask<'a> {
    /// The task's text.
    pub text: &'a str,
    /// The open files, the likeliest first.
    pub open: &'a [PathBuf],
}

impl ContextPlan {
    /// Packs the first request for a task into `window`, or into the configured model's window.
    /// `approver` would answer the session's questions.
    ///
    /// # Errors
    /// [`HostError`] where the configuration or the project can't be read, or the task is empty or
    /// too long.
    pub fn build(
        environment: &Environment,
        directory: Option<&Path>,
        index: &CodeIndex,
        task: &PlannedTask<'_>,
        window: Option<Tokens>,
        approver: Approver,
    ) -> Result<Self, HostError> {
        let root = project_root(environment, directory)?;
        let open = find_open_files(environment, &root, task.open)?;
        let task = task.text;
        let state = StateDirs::open(environment)?;
        let config = load_assuming_trust(environment, &root)?;
        let (model, limits) = planned_limits(environment, &config, window)?;
        let name = model.clone().or_else(|| config.model.clone()).unwrap_or_default();
        let settings = session_settings(&config, &name, approver)?;
        let budget = WindowBudget::new(&limits, settings.max_output);
        let workspace = Arc::new(state.open_workspace(&root)?);
        let options = ListOptions { limit: MAX_LISTED_FILES, ..ListOptions::default() };
        let listing = workspace.list(options).context("the project")?;
        let checks = list_check_commands(environment, &state, &root, &config)?;
        let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
        let registry = make_tool_registry(environment, &state, &root, &config, &name, &redactor);
        let agents = load_agents(environment, &root, &AgentTrust::default())?.to_agents();
        let tools = offered_tools(registry, &settings, Some(&agents), limits.window);
        let notes = load_notes(&state, &root)?;
        let visible = visible_files(environment, &root, &config, settings.mode)?;
        let may_show = unmasked_files(&visible);
        let failures = FailedChecks::in_directory(workspace.state_dir()).load(&workspace, &may_show);
        let about = lookup_text(task, &failures);
        let found = gather_candidates(index, &workspace, &redactor, (&about, &may_show));
        let mut lines = candidates_at_named_lines(&about, &listing, workspace.root());
        lines.retain(|lines| visible(&lines.path));
        if lines.is_empty() {
            lines.extend(found.iter().filter_map(|found| likeliest_passage(&found.candidates)));
        }
        let git = index.git();
        let line_commits = find_line_commits(&git, &workspace, &redactor, lines);
        let mut uncommitted =
            Git::run_blocking(async { Ok(find_uncommitted(&git).await) }).unwrap_or_default();
        uncommitted.retain(|file| visible(&file.path));
        let packed = pack_first_request(&FirstRequestInputs {
            role: None,
            prompts: &load_prompts(environment)?,
            task,
            workspace: &workspace,
            listing: &listing,
            open: &open,
            found: found.as_ref(),
            line_commits: &line_commits,
            uncommitted: &uncommitted,
            failures: &failures,
            may_show: &may_show,
            checks: &checks,
            mode: settings.mode,
            goal: settings.read_only_goal,
            user_instructions: config.instructions.as_deref(),
            project_instructions: config.project_instructions.as_deref(),
            notes: &notes,
            text_protocol: !settings.tool_calling,
            tools: &tools,
            today: &now().to_date(),
            platform: &settings.platform,
            budget: budget.first_context(settings.context_budget, task),
        })
        .map_err(HostError::usage)?;
        let counter = Counter::new(&limits);
        // The text protocol describes them in the system prompt.
        let sent = if settings.tool_calling { tools.as_slice() } else { &[] };
        let mut items = packed.report.items;
        items.extend(pack_tool_items(sent, |tool| counter.count_tool(tool)));
        items.sort_by_key(|item| item.category);
        let tools = sent.iter().map(|tool| counter.count_tool(tool)).sum();
        let shares = budget.divide(packed.report.shares, tools);
        Ok(Self {
            model,
            window: limits.window,
            tokens: packed.report.tokens,
            shares,
            items,
            message: packed.message,
        })
    }

    /// Returns the plan for `--json`.
    #[must_use]
    pub fn into_answer(self) -> ContextAnswer {
        let item = |item: WeighedItem| ContextPlanItem {
            category: item.category,
            name: item.name,
            tokens: item.tokens,
            priority: item.category.priority(),
            relevance: item.relevance.map(|percent| f64::from(percent) / 100.0),
            why: item.why,
            outcome: item.outcome.name(),
        };
        ContextAnswer {
            model: self.model,
            window: self.window,
            tokens: self.tokens,
            shares: self.shares,
            items: self.items.into_iter().map(item).collect(),
            message: self.message,
        }
    }
}

/// Returns the configured model with its limits, or those of `window`.
fn planned_limits(
    environment: &Environment,
    config: &Config,
    window: Option<Tokens>,
) -> Result<(Option<String>, ModelLimits), HostError> {
    // Without a model there is nothing to ask; a wrong one is told.
    let configured = match config.model {
        Some(_) => configured_model_limits(config, environment)?,
        None => configured_model_limits(config, environment).ok().flatten(),
    };
    let (model, mut limits) = match configured {
        Some((name, limits)) => (Some(name), limits),
        None => (None, ModelLimits::conservative_default(false)),
    };
    if let Some(window) = window {
        limits.set_window(window, LimitSource::Configured);
        if limits.window != window {
            let (least, most) = (ModelLimits::MIN_WINDOW, ModelLimits::MAX_WINDOW);
            let message =
                format!("a window of {window} tokens: no model has one under {least} or over {most}");
            return Err(HostError::usage(message));
        }
    }
    Ok((model, limits))
}

/// Returns a filter of the files that a session in this mode may read without asking.
fn visible_files(
    environment: &Environment,
    root: &Path,
    config: &Config,
    mode: Mode,
) -> Result<impl Fn(&RelPath) -> bool + use<>, HostError> {
    let own: Vec<&str> = config.command_tools.iter().map(|tool| tool.name.as_str()).collect();
    let policy = load_policy(environment, root, Some(Path::new(ADMIN_POLICY)), &own)?.policy;
    Ok(move |path: &RelPath| policy.allows_reading(path, mode, None))
}

/// Returns the commits that last changed the lines, as far as git can tell.
fn find_line_commits(
    git: &Git,
    workspace: &Arc<Workspace>,
    redactor: &Redactor,
    lines: Vec<ContextCandidate>,
) -> Vec<LineCommit> {
    let found = lines.into_iter().map(|lines| find_line_commit(git, workspace, redactor, lines));
    let found = Git::run_blocking(async { Ok(join_all(found).await) }).unwrap_or_default();
    found.into_iter().flatten().collect()
}

/// Returns the settings of a session of a model; its client isn't needed.
fn session_settings(config: &Config, model: &str, approver: Approver) -> Result<RunSettings, HostError> {
    let script = ScriptedModel::parse(EMPTY_SCRIPT).map_err(HostError::usage)?;
    let tool_calling = can_call_tools(config, model);
    let client = ConnectedModel::from_model(Arc::new(script), model.to_owned());
    // The price that a budget needs decides about no request.
    let config = Config { budget_usd: None, ..config.clone() };
    run_settings(&config, &ConnectedModel { tool_calling, ..client }, approver, ChecksSetting::default())
}

/// Returns the tools of a session with this model, without the session's internal tools.
fn make_tool_registry(
    environment: &Environment,
    state: &StateDirs,
    root: &Path,
    config: &Config,
    model: &str,
    redactor: &Arc<Redactor>,
) -> Registry {
    let project_state = state.project_dir(root);
    // A wrong setting of the search is reported by the commands that search.
    let engine = search_engine(&config.web, environment).ok().flatten().map(|(engine, _)| engine);
    let parts = ToolParts {
        root: root.to_owned(),
        memory: NoteFile::in_directory(&project_state),
        project_state,
        redactor: Arc::clone(redactor),
        engine,
        skills: Arc::new(Skills::load(environment, root)),
    };
    session_tools(config, environment, model, parts)()
}

/// Returns the items of tools: the built-in ones together, and each that depends on the user's and
/// the project's files.
fn pack_tool_items(tools: &[ToolSpec], count: impl Fn(&ToolSpec) -> Tokens) -> Vec<WeighedItem> {
    let is_own = |tool: &&ToolSpec| {
        builtin_tool(&tool.name).is_none() || PROJECT_SPECIFIC_TOOLS.contains(&tool.name.as_str())
    };
    let (own, builtin): (Vec<&ToolSpec>, Vec<&ToolSpec>) = tools.iter().partition(is_own);
    let item = |name: String, tokens, why: &str| WeighedItem {
        category: ContextCategory::Tools,
        name,
        tokens,
        relevance: None,
        why: why.to_owned(),
        outcome: PackingOutcome::Included,
    };
    let mut items = Vec::new();
    if !builtin.is_empty() {
        let tokens = builtin.iter().map(|tool| count(tool)).sum();
        items.push(item(format!("{} built-in tools", builtin.len()), tokens, "every request has them"));
    }
    let why = "your configuration and files decide about it";
    items.extend(own.into_iter().map(|tool| item(tool.name.clone(), count(tool), why)));
    items
}

/// Gathers what the index has for a task. Subjects of commits are without secrets.
fn gather_candidates(
    index: &CodeIndex,
    workspace: &Workspace,
    redactor: &Redactor,
    (task, may_show): (&str, &dyn Fn(&RelPath) -> bool),
) -> Option<GatheredContext> {
    let graph = index.project.graph(&index.snapshot);
    let history = index.read_history();
    let read = |file: u32, path: &RelPath| {
        index.snapshot.file(file).filter(|view| !view.record.flags.veiled)?;
        match workspace.read(path, MAX_CANDIDATE_FILE_BYTES).ok()?.body {
            FileBody::Text(text) => Some(text.text),
            FileBody::Binary => None,
        }
    };
    let sources = ContextSources {
        snapshot: &index.snapshot,
        graph: Some(&graph),
        history: history.as_ref(),
        may_show,
        read: &read,
    };
    gather(task, &sources).map(|found| found.map_subjects(|text| redactor.redact(text)))
}
