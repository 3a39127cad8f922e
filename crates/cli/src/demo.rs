//! `jm demo`: a whole run on a project inside the binary, offline, with a script in place of a
//! model.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::demo::{DEMO_TASK, DemoObstacle, DemoProject, find_demo_obstacle};

use crate::args::DemoArgs;
use crate::color;
use crate::display::{Display, OutputFormat};
use crate::run::run_task;
use crate::runtime::open_state;

/// The demo's exit code where no sandbox works, so that a script can tell it from a failed demo.
const EXIT_NO_SANDBOX: u8 = 7;
/// The demo's exit code where there is no Cargo to check with.
const EXIT_NO_CARGO: u8 = 8;

pub(crate) async fn demo(environment: &Environment, args: DemoArgs) -> Result<u8, HostError> {
    let paint = color::stderr();
    let dirs = open_state(environment)?;
    match find_demo_obstacle(environment, &dirs).await? {
        Some(DemoObstacle::NoSandbox(reason)) => {
            errln!("{} {reason}", paint.red("no sandbox works here, so the demo would run nothing:"));
            return Ok(EXIT_NO_SANDBOX);
        }
        Some(DemoObstacle::NoCargo) => {
            let text = "the demo's project is in Rust and there is no cargo on the PATH to check it with";
            errln!("{}", paint.red(text));
            return Ok(EXIT_NO_CARGO);
        }
        None => {}
    }
    let project = DemoProject::create(args.keep)?;
    let root = project.root().display();
    let opening = "A demo of `jm run`. No model is asked: a script that ships with jm plays its part.";
    errln!("{}", paint.bold(opening));
    errln!("Everything else is real: the edits, the checks, the sandbox, the session, the undo.");
    errln!("  project: {root}");
    errln!("  task:    {DEMO_TASK}\n");
    let display = Display { output: OutputFormat::Text, is_quiet: false };
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
