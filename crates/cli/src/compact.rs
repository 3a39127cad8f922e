//! `jm compact`.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::resume::{compact_session, find_resumable};
use journeyman_host::session_commands::{describe_undone_compaction, undo_session_compaction};
use journeyman_protocol::group_digits;

use crate::args::{CompactArgs, RunOptions};
use crate::run::{print_warnings, terminal_confirmations};
use crate::runtime::open_state;

pub(crate) async fn compact(environment: &Environment, args: Box<CompactArgs>) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let CompactArgs { session, undo, directory, model, trust_project } = *args;
    let directory = directory.as_deref();
    let summary = find_resumable(&dirs, environment, &session, directory).await?;
    if undo {
        let undone = undo_session_compaction(&dirs, &summary.id).await?;
        outln!("{}", describe_undone_compaction(&undone, &summary.id));
        return Ok(0);
    }
    let options = RunOptions { model, trust_project, ..RunOptions::default() };
    let (run, prompts) = (options.to_options(), terminal_confirmations(&options));
    let shortened = compact_session(environment, &dirs, &summary, directory, &run, prompts, print_warnings);
    let (before, after) = shortened.await?;
    outln!(
        "the next request of session {id} has about {} tokens; before, it would have had {}. jm show \
         --before-compaction {id} shows what the model no longer sees, jm compact --undo {id} brings it back",
        group_digits(after.0),
        group_digits(before.0),
        id = summary.id
    );
    Ok(0)
}
