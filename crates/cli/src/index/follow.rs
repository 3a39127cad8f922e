//! `jm index --watch`: the index follows the files until somebody says that it is enough.

use journeyman_host::HostError;
use journeyman_host::index::{follow_files, watch_event_to_json};
use journeyman_index::Project;
use journeyman_index::store::Report;
use journeyman_index::watch::WatchEvent;
use journeyman_protocol::RelPath;
use serde_json::json;

use crate::runtime::{Signals, block_on};

/// Maximum number of paths of an update that are named.
const MAX_NAMED_PATHS: usize = 5;

/// Follows a project's files until Ctrl-C, or until a program is asked to end.
pub(super) fn follow(project: Project, json: bool) -> Result<u8, HostError> {
    block_on(async move {
        let mut signals = Signals::listen()?;
        let print = move |event: WatchEvent<'_>| match json {
            true => outln!("{}", watch_event_to_json(&event)),
            false => outln!("{}", describe_event(&event)),
        };
        follow_files(project, signals.next(), print).await?;
        match json {
            true => outln!("{}", json!({"event": "stopped"})),
            false => outln!("stopped"),
        }
        Ok(0)
    })
}

fn describe_event(event: &WatchEvent<'_>) -> String {
    let did = |report: &Report| format!("{} read, {} gone", report.read, report.gone);
    match event {
        WatchEvent::Watching(directories) => format!("watching {directories} directories; Ctrl-C ends it"),
        WatchEvent::Polling(why) => format!("looking at all files now and then: {why}; Ctrl-C ends it"),
        WatchEvent::Updated(paths, report) => format!("{}: {}", list_paths(paths), did(report)),
        WatchEvent::Refreshed(why, report) => format!("all files, because of {why}: {}", did(report)),
        WatchEvent::Failed(error) => format!("failed, and is tried again: {error}"),
    }
}

fn list_paths(paths: &[RelPath]) -> String {
    let names: Vec<String> = paths.iter().take(MAX_NAMED_PATHS).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
