//! `jm agents`.

use clap::{Args, Subcommand};
use journeyman_agent::agents::{AgentInput, AgentTools};
use journeyman_host::HostError;
use journeyman_host::agents::{AgentTrust, LoadedAgent, LoadedAgents, load_agents};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::root::project_root;
use serde_json::{Value, json};

use crate::args::ProjectArgs;
use crate::color;
use crate::output::print_json_line;

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Also list the project's agents that nobody trusts yet
    #[arg(long, global = true)]
    trust_project: bool,
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Show what an agent takes, gives and may do, and its prompts
    Show {
        /// The agent's name
        name: String,
    },
}

pub(crate) fn agents(environment: &Environment, args: &AgentsArgs) -> Result<u8, HostError> {
    let root = project_root(environment, args.project.directory.as_deref())?;
    // Listing runs nothing, so nobody is asked.
    let loaded =
        load_agents(environment, &root, &AgentTrust { this_run: args.trust_project, prompts: None })?;
    match &args.command {
        Some(AgentsCommand::Show { name }) => {
            let agent = loaded.find(name)?;
            if args.json { print_json_line(&describe(agent, true))? } else { show(agent) }
        }
        None if args.json => {
            let agents: Vec<Value> = loaded.agents.iter().map(|agent| describe(agent, false)).collect();
            print_json_line(&json!({ "agents": agents, "problems": loaded.problems }))?;
        }
        None => list(&loaded),
    }
    Ok(0)
}

fn list(loaded: &LoadedAgents) {
    let width = loaded.agents.iter().map(|agent| agent.definition.name.len()).max().unwrap_or_default();
    for agent in &loaded.agents {
        let definition = &agent.definition;
        let description = definition.description.lines().next().unwrap_or_default();
        outln!("{:width$}  {}", definition.name, printable(&description));
        outln!("{:width$}  {}", "", color::stdout().dim(&printable(&agent.source)));
    }
    for problem in &loaded.problems {
        errln!("{} {}", color::stderr().yellow("warning:"), printable(&problem));
    }
}

fn show(agent: &LoadedAgent) {
    let definition = &agent.definition;
    let limits = &definition.limits;
    outln!("{}  {}", definition.name, color::stdout().dim(&printable(&agent.source)));
    outln!("{}\n", printable(&definition.description));
    for input in &definition.inputs {
        let AgentInput { name, description, required, .. } = input;
        let kind = input.kind.schema();
        let optional = if *required { "" } else { " (optional)" };
        outln!("input   {name}: {kind}{optional} {}", printable(description));
    }
    outln!("output  {}: {}", definition.output.name, definition.output.schema);
    outln!("tools   {} (mode {} at most)", tools_text(&definition.tools), definition.mode);
    let more =
        [limits.tokens.map(|tokens| format!(", {tokens} tokens")), limits.usd.map(|usd| format!(", ${usd}"))];
    let more: String = more.into_iter().flatten().collect();
    outln!(
        "limits  {} turns, {} s, {} s for the last turn{more}",
        limits.turns,
        limits.time.as_secs(),
        limits.grace.as_secs()
    );
    outln!("model   {}", definition.model.as_deref().unwrap_or("that of the session"));
    outln!("\n{}\n\n{}", printable(&definition.system), printable(&definition.query));
}

fn tools_text(tools: &AgentTools) -> String {
    match tools {
        AgentTools::ReadOnly => "those that only read".to_owned(),
        AgentTools::All => "all".to_owned(),
        AgentTools::Named(names) => names.join(", "),
    }
}

fn describe(agent: &LoadedAgent, is_whole: bool) -> Value {
    let definition = &agent.definition;
    let mut value = json!({
        "name": definition.name,
        "description": definition.description,
        "source": agent.source.to_string(),
    });
    if let (Some(object), true) = (value.as_object_mut(), is_whole) {
        let limits = &definition.limits;
        object.insert("inputs".to_owned(), definition.arguments_schema());
        object.insert(
            "output".to_owned(),
            json!({ "name": definition.output.name, "schema": definition.output.schema }),
        );
        object.insert("tools".to_owned(), json!(tools_text(&definition.tools)));
        object.insert("mode".to_owned(), json!(definition.mode));
        object.insert("model".to_owned(), json!(definition.model));
        object.insert(
            "limits".to_owned(),
            json!({
                "turns": limits.turns,
                "seconds": limits.time.as_secs(),
                "grace_seconds": limits.grace.as_secs(),
                "tokens": limits.tokens,
                "usd": limits.usd,
            }),
        );
        object.insert("system".to_owned(), json!(definition.system));
        object.insert("query".to_owned(), json!(definition.query));
    }
    value
}
