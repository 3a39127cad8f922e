//! `jm context`: the contents of the first request for a task, and the omitted items, with reasons.

use std::path::PathBuf;

use clap::Args;
use journeyman_agent::Approver;
use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{ContextPlan, PlannedTask};
use journeyman_protocol::{ContextShare, Tokens, group_digits};
use journeyman_tui::line_prompts::is_attended;

use super::open::open_index;
use crate::args::{AnswerArgs, parse_count};

/// Width of a bar, in columns.
const BAR_COLUMNS: usize = 24;
/// Maximum number of omitted items that are listed.
const MAX_EXCLUDED_ITEMS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// The task
    task: String,
    /// Window of the model, in tokens [built-in: that of the configured model]
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>)]
    window: Option<u64>,
    /// A file that you have open (repeatable)
    #[arg(long, value_name = "FILE")]
    open: Vec<PathBuf>,
    /// Print the message instead of the plan
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// List everything that was weighed and left out
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn show_context(environment: &Environment, args: &ContextArgs) -> Result<u8, HostError> {
    let index = open_index(environment, &args.answer)?;
    let directory = args.answer.project.directory.as_deref();
    // As `jm run` does here.
    let approver = if is_attended() { Approver::Handle } else { Approver::Nobody };
    let window = args.window.map(Tokens);
    let task = PlannedTask { text: &args.task, open: &args.open };
    let plan = ContextPlan::build(environment, directory, &index, &task, window, approver)?;
    if args.answer.json {
        outln!("{}", serde_json::json!(plan.into_answer()));
    } else if args.text {
        outln!("{}", printable(&plan.message));
    } else {
        print_plan(&plan, args.all);
    }
    Ok(0)
}

fn print_plan(plan: &ContextPlan, all: bool) {
    let model = plan.model.as_deref().unwrap_or("no model is configured");
    outln!("window of {} tokens ({model})", group_digits(plan.window.0));
    outln!("");
    for share in &plan.shares {
        outln!("{}", format_share(share, plan.window));
    }
    reportln!(
        "not known before a session: what its hooks add, and another window that the model's server tells"
    );
    outln!("");
    outln!(
        "in the first request, about {} tokens (category, tokens, priority, relevance):",
        group_digits(plan.tokens.0)
    );
    let (inside, outside): (Vec<_>, Vec<_>) = plan.items.iter().partition(|item| item.outcome.is_included());
    for item in inside {
        let relevance = format_relevance(item.relevance);
        let tokens = group_digits(item.tokens.0);
        let (category, priority) = (item.category.name(), format_priority(item.category.priority()));
        outln!("  {category:<16} {tokens:>7}  {priority:<8}  {relevance}  {}  ({})", item.name, item.why);
    }
    if outside.is_empty() {
        return;
    }
    outln!("");
    outln!("weighed and left out:");
    let shown = if all { outside.len() } else { MAX_EXCLUDED_ITEMS };
    for item in outside.iter().take(shown) {
        let (relevance, category) = (format_relevance(item.relevance), item.category.name());
        let outcome = item.outcome.description();
        let priority = format_priority(item.category.priority());
        outln!("  {category:<16} {priority:<8}  {relevance}  {}  ({}): {outcome}", item.name, item.why);
    }
    let more = outside.len().saturating_sub(shown);
    if more > 0 {
        outln!("  and {more} more; --all lists them");
    }
}

fn format_priority(priority: u8) -> String {
    if priority == 0 { "required".to_owned() } else { format!("{priority}") }
}

fn format_relevance(relevance: Option<u8>) -> String {
    relevance.map_or_else(|| "   –".to_owned(), |percent| format!("{percent:3}%"))
}

fn format_share(share: &ContextShare, window: Tokens) -> String {
    let filled = |tokens: Tokens| {
        let columns = tokens.0.saturating_mul(BAR_COLUMNS as u64).div_ceil(window.0.max(1));
        usize::try_from(columns).unwrap_or(BAR_COLUMNS).min(BAR_COLUMNS)
    };
    let used = filled(share.tokens);
    let budget = filled(share.budget).max(used);
    let bar = "█".repeat(used) + &"░".repeat(budget - used) + &" ".repeat(BAR_COLUMNS - budget);
    let (tokens, of) = (group_digits(share.tokens.0), group_digits(share.budget.0));
    format!("  {:<18} {bar} {tokens:>8} of {of:>8}", share.category.name())
}
