//! `jm checks`: the checks of a project, and why each was found or is left out.

use journeyman_host::checks::{CheckSelection, ChecksAnswer, ProjectCheckRunner, describe_check};
use journeyman_host::config::Environment;
use journeyman_host::{HostError, RunOptions};

use crate::args::AnswerArgs;
use crate::output::{print_json_line, write_screen};
use crate::runtime::open_state;

pub(crate) async fn list_checks(environment: &Environment, args: &AnswerArgs) -> Result<u8, HostError> {
    let state = open_state(environment)?;
    // Nothing is run, so nothing of the project's configuration needs trust.
    let options = RunOptions { trust_project: true, ..RunOptions::default() };
    let directory = args.project.directory.as_deref();
    let project = ProjectCheckRunner::open(environment, &state, directory, &options, None)?;
    let selected = CheckSelection::default().select(project.find_affected_checks(Vec::new()).await?);
    let is_empty = selected.chosen.is_empty();
    if args.json {
        print_json_line(&ChecksAnswer::new(&selected))?;
        return Ok(u8::from(is_empty));
    }
    write_screen(|screen| {
        let chosen = selected.chosen.iter().map(|check| describe_check(check, None));
        let others = selected.left_out.iter().map(|(check, reason)| describe_check(check, Some(reason)));
        chosen.chain(others).flatten().for_each(|line| screen.write_line(&line));
    });
    if is_empty && selected.left_out.is_empty() {
        errln!("no check was found in {}; name one with: jm check --check COMMAND", project.root().display());
    }
    Ok(u8::from(is_empty))
}
