//! Runs a command: opens the state directory, and drives its future.

use std::sync::Arc;

use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::state::{StateDirs, find_missing_home};
use journeyman_host::{Context as _, HostError};
use journeyman_sandbox::Progress;

/// Threads for file work: the tree is walked while the model is asked. More would only cost memory.
const MAX_BLOCKING_THREADS: usize = 3;
/// Opens the state directory; images of containers report their progress to standard error.
pub(crate) fn open_state(environment: &Environment) -> Result<Arc<StateDirs>, HostError> {
    let progress = Progress::new(|line| errln!("  {line}"));
    let missing_home = find_missing_home(environment);
    let dirs = StateDirs::open(environment)?;
    if let Some(home) = missing_home {
        let (home, dir) = (printable(&home.display()), printable(&dirs.dir.display()));
        errln!("the home directory {home} did not exist; it was made for jm's state in {dir}");
    }
    Ok(Arc::new(dirs.with_progress(progress)))
}

/// Runs a command's future on one thread, and does not wait for blocking tasks that it leaves
/// behind.
pub(crate) fn block_on(work: impl Future<Output = Result<u8, HostError>>) -> Result<u8, HostError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("the runtime could not start")?;
    let result = runtime.block_on(work);
    // A read of the terminal can't be cancelled; the process ends without it.
    runtime.shutdown_background();
    result
}
