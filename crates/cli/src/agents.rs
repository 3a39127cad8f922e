//! `jm agents`.

use journeyman_agent::agents::AgentInput;
use journeyman_host::agents::{
    AgentTrust, LoadedAgent, LoadedAgents, build_group, describe_edit_scope, describe_limits, describe_tools,
    load_agents, read_group_file, sampling_fields,
};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::root::project_root;
use journeyman_host::{HostError, PreparedRun};
use journeyman_terminal::stdout_paint;

use crate::args::{AgentsArgs, AgentsCommand, GroupArgs, ListingArgs};
use crate::display::Display;
use crate::output::print_json_line;
use crate::run::{print_warning, print_warnings, run_task, terminal_confirmations};
use crate::runtime::open_state;

pub(crate) async fn run_agents_command(environment: &Environment, args: AgentsArgs) -> Result<u8, HostError> {
    let load = |listing: &ListingArgs| {
        let root = project_root(environment, listing.project.directory.as_deref())?;
        // Listing runs nothing, so it needs no consent.
        load_agents(environment, &root, &AgentTrust { this_run: listing.trust_project, prompts: None })
    };
    match args.command {
        Some(AgentsCommand::Run(group)) => return run_group(environment, *group).await,
        Some(AgentsCommand::Show { name, listing }) => {
            let loaded = load(&listing)?;
            let agent = loaded.find(&name)?;
            if listing.json {
                print_json_line(&agent.to_json())?
            } else {
                show_agent(agent)
            }
            agent.ignored_fields_notice().iter().for_each(|notice| print_warning(notice));
        }
        None if args.listing.json => print_json_line(&load(&args.listing)?.to_json())?,
        None => list_agents(&load(&args.listing)?),
    }
    Ok(0)
}

/// Runs several agents at once.
async fn run_group(environment: &Environment, args: GroupArgs) -> Result<u8, HostError> {
    let group = match &args.group {
        Some(path) => read_group_file(&environment.cwd.join(path))?,
        None => build_group(&args.agents, args.task.as_deref().unwrap_or_default()),
    };
    let options = &args.options;
    let (root, dirs) = (project_root(environment, options.directory.as_deref())?, open_state(environment)?);
    let prompts = terminal_confirmations(options);
    let prepared = PreparedRun::for_group(environment, &root, &group, options.to_options(), prompts)?;
    let delivery = prepared.plan_delivery(&options.delivery.to_options())?;
    print_warnings(&prepared);
    let template = prepared.into_template(environment, &dirs, &root, "agents", delivery)?;
    let display = Display::from_options(&options.output);
    display.print_report(&run_task(template, group.to_message(), display).await?)
}

fn list_agents(loaded: &LoadedAgents) {
    let width = loaded.agents.iter().map(|agent| agent.definition.name.len()).max().unwrap_or_default();
    for agent in &loaded.agents {
        let definition = &agent.definition;
        let description = definition.description.lines().next().unwrap_or_default();
        reportln!("{:width$}  {}", definition.name, printable(&description));
        reportln!("{:width$}  {}", "", stdout_paint().dim(&printable(&agent.describe_source())));
    }
    loaded.problems.iter().for_each(|problem| print_warning(problem));
    loaded.ignored_fields_notices().for_each(|notice| print_warning(&notice));
}

fn show_agent(agent: &LoadedAgent) {
    let definition = &agent.definition;
    reportln!("{}  {}", definition.name, stdout_paint().dim(&printable(&agent.describe_source())));
    reportln!("{}\n", printable(&definition.description));
    for input in &definition.inputs {
        let AgentInput { name, description, required, .. } = input;
        let kind = input.kind.schema();
        let optional = if *required { "" } else { " (optional)" };
        reportln!("input   {name}: {kind}{optional} {}", printable(description));
    }
    reportln!("output  {}: {}", definition.output.name, definition.output.schema);
    reportln!("tools   {} (mode {} at most)", describe_tools(definition), definition.mode);
    reportln!("edits   {}", describe_edit_scope(definition.edits));
    reportln!("limits  {}", describe_limits(&definition.limits));
    reportln!("model   {}", definition.model.as_deref().unwrap_or("that of the session"));
    for (name, value) in sampling_fields(definition) {
        reportln!("{name} {value}");
    }
    outln!("\n{}\n\n{}", printable(&definition.system_for_display()), printable(&definition.query));
}
