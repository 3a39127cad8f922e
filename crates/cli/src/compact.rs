//! `jm compact`.

use std::sync::Arc;

use journeyman_agent::{CutOffPolicy, UndoneCompaction};
use journeyman_host::config::Environment;
use journeyman_host::resume::{Resumption, find_resumable};
use journeyman_host::session_commands::undo_session_compaction;
use journeyman_host::sessions::SessionClaim;
use journeyman_host::state::StateDirs;
use journeyman_host::{HostError, PreparedRun};
use journeyman_protocol::{SessionId, group_digits};
use journeyman_store::SessionSummary;

use crate::args::{CompactArgs, RunOptions};
use crate::run::{print_warnings, terminal_confirmations};
use crate::runtime::open_state;

pub(crate) async fn compact(environment: &Environment, args: Box<CompactArgs>) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let directory = args.directory.as_deref();
    let summary = find_resumable(&dirs, environment, &args.session, directory).await?;
    if args.undo {
        let undone = undo_session_compaction(&dirs, &summary.id).await?;
        outln!("{}", describe_undone_compaction(&undone, &summary.id));
        return Ok(0);
    }
    let claim = SessionClaim::take(&dirs, &summary.id, "compact").await?;
    let shortened = compact_session(environment, &dirs, &args, &summary).await;
    // An opened session has released the claim already.
    claim.release().await;
    let (before, after) = shortened?;
    outln!(
        "the next request of session {id} has about {} tokens; before, it would have had {}. jm show \
         --before-compaction {id} shows what the model no longer sees, jm compact --undo {id} brings it back",
        group_digits(after),
        group_digits(before),
        id = summary.id
    );
    Ok(0)
}

/// Describes which messages an undone compaction restored, and which not.
fn describe_undone_compaction(undone: &UndoneCompaction, id: &SessionId) -> String {
    let UndoneCompaction { at, earlier } = undone;
    let hold = match earlier {
        0 => {
            return format!(
                "the conversation of session {id} is whole again: what entry {at} had left out is back"
            );
        }
        1 => "an earlier compaction still holds".to_owned(),
        many => format!("{many} earlier compactions still hold"),
    };
    format!(
        "what entry {at} had left out of the conversation of session {id} is back; {hold}. jm compact --undo {id} takes \
         the newest one back"
    )
}

/// Opens the session and shortens its conversation. Returns the tokens of the next request before
/// and after.
async fn compact_session(
    environment: &Environment,
    dirs: &Arc<StateDirs>,
    args: &CompactArgs,
    summary: &SessionSummary,
) -> Result<(u64, u64), HostError> {
    let resumption = Resumption::load(environment, dirs, summary, args.directory.as_deref()).await?;
    resumption.check_idle()?;
    let options =
        RunOptions { directory: args.directory.clone(), model: args.model.clone(), ..RunOptions::default() };
    let earlier = resumption.earlier.as_ref();
    let prepared = PreparedRun::new(
        environment,
        &resumption.root,
        &options.to_options(),
        earlier,
        terminal_confirmations(&options),
    )?;
    let delivery = resumption.plan_delivery(&options.delivery.to_options(), &prepared.settings, false)?;
    print_warnings(&prepared);
    let mut template = prepared.into_template(environment, dirs, &resumption.root, "compact", delivery)?;
    let session = template.resume(resumption.session.clone(), resumption.state, CutOffPolicy::Close).await?;
    let shortened = session.compact().await;
    session.close().await;
    let (before, after) = shortened?;
    Ok((before.0, after.0))
}
