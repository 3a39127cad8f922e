//! `jm demo`: a whole run on a project inside the binary, offline, with a script in place of a
//! model.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::demo::{DEMO_TASK, DemoProject, find_demo_obstacle};
use journeyman_host::renderer::ProgressDetail;
use journeyman_terminal::stderr_paint;

use crate::args::DemoArgs;
use crate::display::{Display, OutputFormat};
use crate::run::run_task;
use crate::runtime::open_state;

pub(crate) async fn demo(environment: &Environment, args: DemoArgs) -> Result<u8, HostError> {
    let paint = stderr_paint();
    let dirs = open_state(environment)?;
    if let Some(obstacle) = find_demo_obstacle(environment, &dirs).await? {
        errln!("{}", paint.red(&obstacle.to_string()));
        return Ok(obstacle.exit_code());
    }
    let project = DemoProject::create(args.keep)?;
    let root = project.root().display();
    let opening = "A demo of `jm run`. No model is asked: a script that ships with jm plays its part.";
    errln!("{}", paint.bold(opening));
    errln!("Everything else is real: the edits, the checks, the sandbox, the session, the undo.");
    errln!("  project: {root}");
    errln!("  task:    {DEMO_TASK}\n");
    let display = Display { output: OutputFormat::Text, detail: ProgressDetail::Normal };
    let template = project.template(environment, &dirs)?;
    let report = run_task(template, DEMO_TASK.to_owned(), display).await?;
    errln!();
    display.print_report(&report)?;
    if args.keep {
        errln!("the project is in {root}");
    } else {
        errln!("(the project was a temporary copy; `jm demo --keep` leaves it, to try the undo)");
    }
    Ok(report.exit_code)
}
