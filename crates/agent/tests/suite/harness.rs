//! Runs the cases with `libtest-mimic`, and looks afterwards at what all of them did.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

use crate::session::support::{bench, schema};

/// A case's name, and what it does.
pub(crate) type Case = (&'static str, fn());

/// Cases that run at once: they mostly wait for processes and disks.
const AT_ONCE: usize = 4;
/// A case that hasn't ended by then never will. Only so that a hang has a name.
const HANGS: Duration = Duration::from_secs(120);

/// Runs the cases that the command line names, all without one. After all of them, where commands
/// can be confined, every kind of event must have been seen.
pub(crate) fn run(cases: Vec<Case>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let confined = !arguments.list && block_on(bench::confined());
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let trials = cases.into_iter().map(|(name, case)| {
        let path = name.split_once("::").map_or(name, |(_, path)| path);
        let trial = Trial::test(path, move || {
            case();
            Ok(())
        });
        // The crash cases look at a process that works in the sandbox.
        trial.with_ignored_flag(path.starts_with("crash::") && !confined && !arguments.list)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    crate::crash::parent::clean_up();
    let unseen = if is_whole && confined { schema::unseen() } else { Vec::new() };
    if !unseen.is_empty() {
        eprintln!("no test emits {unseen:?}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Runs an asynchronous case on a runtime like the program's.
pub(crate) fn block_on<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(HANGS, case).await.expect("the case hangs") })
}
