//! `jm index --watch`: keeps the index up to date until Ctrl-C.

use journeyman_host::HostError;
use journeyman_host::index::{describe_watch_event, follow_files, watch_event_to_json};
use journeyman_index::ProjectIndex;
use journeyman_index::watch::WatchEvent;
use journeyman_tui::stop_signals::StopSignals;
use serde_json::json;

use crate::runtime::block_on;

/// Follows a project's files until Ctrl-C, or until a program is asked to end.
pub(super) fn follow_project_files(project: ProjectIndex, json: bool) -> Result<u8, HostError> {
    block_on(async move {
        let mut signals = StopSignals::listen()?;
        let print = move |event: WatchEvent<'_>| match json {
            true => outln!("{}", watch_event_to_json(&event)),
            false => outln!("{}", describe_watch_event(&event)),
        };
        follow_files(project, signals.next(), print).await?;
        match json {
            true => outln!("{}", json!({"event": "stopped"})),
            false => outln!("stopped"),
        }
        Ok(0)
    })
}
