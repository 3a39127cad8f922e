//! `jm plan`.

use clap::Subcommand as _;
use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::editor::{edit_text, find_editor, keep_edited_text};
use journeyman_host::format::printable;
use journeyman_host::plans::{FoundPlan, find_plan, plan_to_toml, read_piped_plan, replace_edited_plan};
use journeyman_terminal::stdout_paint;
use journeyman_tui::line_prompts::is_attended;
use serde_json::json;

use crate::args::{PlanArgs, PlanCommand, ProjectArgs, RunArgs, RunOptions};
use crate::output::{self, print_json_line};
use crate::run::run;
use crate::runtime::open_state;

pub(crate) async fn run_plan_command(environment: &Environment, args: PlanArgs) -> Result<u8, HostError> {
    match args.command {
        Some(PlanCommand::Show { session, json, toml, project }) => {
            let dirs = open_state(environment)?;
            let directory = project.directory.as_deref();
            let FoundPlan { session, plan } =
                find_plan(environment, &dirs, directory, session.as_deref()).await?;
            if json {
                print_json_line(&json!({ "session": session, "plan": plan }))?;
            } else if toml {
                output::write_stdout(&plan_to_toml(&plan)?);
            } else {
                outln!("{}\n\n{}", stdout_paint().bold(&printable(&plan.task)), printable(&plan));
                errln!("\ncarry it out with: jm run --plan={session}");
            }
            Ok(0)
        }
        Some(PlanCommand::Edit { session, stdin, project }) => {
            edit_plan(environment, &project, session.as_deref(), stdin).await
        }
        None => {
            // Behind a flag, the parser takes a command for the task.
            if let Some(word) = args.task.as_deref().filter(|word| PlanCommand::has_subcommand(word)) {
                return Err(HostError::usage(format_args!(
                    "`{word}` comes before its flags: jm plan {word} …"
                )));
            }
            let options = RunOptions { mode: Some("plan".to_owned()), ..args.options };
            run(environment, RunArgs { task: args.task, options, ..RunArgs::default() }).await
        }
    }
}

/// Edits a plan in an editor, or replaces it from standard input.
async fn edit_plan(
    environment: &Environment,
    project: &ProjectArgs,
    session: Option<&str>,
    is_piped: bool,
) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let found = find_plan(environment, &dirs, project.directory.as_deref(), session).await?;
    let text = if is_piped {
        read_piped_plan()?
    } else if is_attended() {
        let text = plan_to_toml(&found.plan)?;
        edit_text(&find_editor(environment), &text, ".toml").map_err(HostError::failed)?
    } else {
        return Err(HostError::usage(
            "there is no terminal for an editor; `jm plan edit --stdin` reads the changed plan, in the form of `jm plan \
             show --toml`, from standard input",
        ));
    };
    let session = &found.session;
    let replaced = replace_edited_plan(&dirs, &found, &text).await;
    if replaced.is_err() && !is_piped {
        // Else what was written in the editor would be gone.
        match keep_edited_text(&text, ".toml") {
            Ok(path) => errln!("what you wrote is in {}", printable(&path.display())),
            Err(error) => errln!("what you wrote couldn't be kept ({error}):\n{}", printable(&text)),
        }
    }
    match replaced? {
        true => outln!("changed the plan of session {session}; carry it out with: jm run --plan={session}"),
        false => outln!("the plan of session {session} stays as it was"),
    }
    Ok(0)
}
