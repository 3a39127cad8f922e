//! The first request of a session for a task, as it would be packed.

use std::path::Path;

use futures_util::future::join_all;
use journeyman_agent::{RunSettings, find_line_commit};
use journeyman_context::counting::Counter;
use journeyman_context::gathering::{Sources, gather};
use journeyman_context::packing::Candidate;
use journeyman_context::{
    Inputs, LineCommit, PackedItem, WindowBudget, first, likeliest_passage, named_lines,
};
use journeyman_git::Git;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{ContextShare, LimitSource, Mode, ModelLimits, RelPath, Tokens};
use journeyman_tools::Registry;
use journeyman_workspace::{Body, ListOptions};

use super::answers::{ContextAnswer, WeighedItem};
use super::open::CodeIndex;
use crate::config::Environment;
use crate::memory::load_notes;
use crate::models::configured_limits;
use crate::policy_check::find_checks;
use crate::root::project_root;
use crate::state::{StateDirs, now};
use crate::{Context as _, HostError, configured_secrets, load_trusted};

/// Maximum bytes of a file that is shown.
const MAX_FILE_BYTES: u64 = 2 << 20;
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
    pub items: Vec<PackedItem>,
    /// The first message.
    pub message: String,
}

impl ContextPlan {
    /// Packs the first request for a task into a window; that of the configured model if none is
    /// given.
    ///
    /// # Errors
    /// [`HostError`] where the configuration or the project can't be read, or the task is empty or
    /// too long.
    pub fn draw(
        environment: &Environment,
        directory: Option<&Path>,
        index: &CodeIndex,
        task: &str,
        window: Option<Tokens>,
    ) -> Result<Self, HostError> {
        let root = project_root(environment, directory)?;
        let state = StateDirs::open(environment)?;
        let config = load_trusted(environment, &root)?;
        let configured = configured_limits(&config, environment).ok().flatten();
        let (model, mut limits) = match configured {
            Some((name, limits)) => (Some(name), limits),
            None => (None, ModelLimits::careful_default(false)),
        };
        if let Some(window) = window {
            limits.set_window(window, LimitSource::Configured);
        }
        let settings = RunSettings::default();
        let budget =
            WindowBudget::new(&limits, config.max_output_tokens.map(|tokens| Tokens(u64::from(tokens))));
        let configured =
            config.context_tokens.map_or(settings.context_budget, |tokens| Tokens(u64::from(tokens)));
        let workspace = state.open_workspace(&root)?;
        let options = ListOptions { limit: MAX_LISTED_FILES, ..ListOptions::default() };
        let listing = workspace.list(options).context("the project")?;
        let checks = find_checks(environment, &state, &root, &config)?;
        let tools = Registry::with_builtin_at(&root).specs();
        let graph = index.project.graph(&index.snapshot);
        let history = index.read_history();
        let read = |file: u32, path: &RelPath| {
            index.snapshot.file(file).filter(|view| !view.record.flags.veiled)?;
            match workspace.read(path, MAX_FILE_BYTES).ok()?.body {
                Body::Text(text) => Some(text.text),
                Body::Binary => None,
            }
        };
        let sources = Sources {
            snapshot: &index.snapshot,
            graph: Some(&graph),
            history: history.as_ref(),
            may_show: &|_| true,
            read: &read,
        };
        let notes = load_notes(&state, &root)?;
        let redactor = Redactor::new(configured_secrets(environment, &config));
        let found = gather(task, &sources).map(|found| found.with_subjects(|text| redactor.redact(text)));
        let lines = match named_lines(task, &listing, workspace.root()) {
            lines if lines.is_empty() => {
                found.iter().filter_map(|found| likeliest_passage(&found.candidates)).collect()
            }
            lines => lines,
        };
        let line_commits = find_line_commits(&index.git(), &redactor, lines);
        let packed = first(&Inputs {
            role: None,
            prompts: &journeyman_context::PromptTexts::default(),
            task,
            workspace: &workspace,
            listing: &listing,
            found: found.as_ref(),
            line_commits: &line_commits,
            checks: &checks,
            mode: config.mode_or(Mode::Edit),
            user_instructions: config.instructions.as_deref(),
            project_instructions: config.project_instructions.as_deref(),
            notes: &notes,
            text_protocol: false,
            tools: &tools,
            today: &now().to_date(),
            platform: &settings.platform,
            budget: budget.first_context(configured),
        })
        .map_err(HostError::usage)?;
        let counter = Counter::new(&limits);
        let tools: Tokens = tools.iter().map(|tool| counter.count_tool(tool)).sum();
        let shares = budget.divide(packed.report.shares, tools);
        Ok(Self {
            model,
            window: limits.window,
            tokens: packed.report.tokens,
            shares,
            items: packed.report.items,
            message: packed.message,
        })
    }

    /// Returns the plan for `--json`.
    #[must_use]
    pub fn into_answer(self) -> ContextAnswer {
        let item = |item: PackedItem| WeighedItem {
            category: item.category,
            name: item.name,
            tokens: item.tokens,
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

/// Returns the commits that last changed some lines, as far as git tells them.
fn find_line_commits(git: &Git, redactor: &Redactor, lines: Vec<Candidate>) -> Vec<LineCommit> {
    let found = lines.into_iter().map(|lines| find_line_commit(git, redactor, lines));
    let found = Git::blocking(async { Ok(join_all(found).await) }).unwrap_or_default();
    found.into_iter().flatten().collect()
}
