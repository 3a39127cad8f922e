//! `jm classify`: the risk of a task.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::input::read_argument;
use journeyman_host::root::find_project;
use journeyman_host::task_input::MAX_TASK_BYTES;
use journeyman_host::task_risk::{assess_task, describe_risk_reason, risk_exit_code};
use journeyman_policy::Risk;
use journeyman_terminal::stdout_paint;

use crate::args::AnswerArgs;
use crate::output::print_json_line;

#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// The file or directory that the result goes to
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) async fn classify(environment: &Environment, args: &ClassifyArgs) -> Result<u8, HostError> {
    let text = read_argument("task", &args.text, MAX_TASK_BYTES)?;
    let root = find_project(environment, args.answer.project.directory.as_deref())?;
    let target = args.path.as_ref().map(|path| environment.cwd.join(path));
    let found = assess_task(root.as_deref(), &environment.cwd, &text, target.as_deref()).await?;
    if args.answer.json {
        print_json_line(&found)?;
    } else {
        let paint = stdout_paint();
        let (risk, advice) = match found.risk {
            Risk::Low => (paint.green("low "), "it can run directly, in a fresh directory"),
            Risk::High => (paint.red("high"), "it belongs in a sandbox, with a copy of the project"),
        };
        reportln!("{risk} {}", printable(&describe_risk_reason(&found)));
        reportln!("     {}", paint.dim(&format!("{advice} (word lists {})", found.word_lists)));
    }
    Ok(risk_exit_code(found.risk))
}
