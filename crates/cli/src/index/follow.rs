//! `jm index --watch`: the index follows the files until somebody says that it is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use journeyman_host::Context as _;
use journeyman_index::Project;
use journeyman_index::store::{Options, Report};
use journeyman_index::watch::{WatchEvent, follow as follow_files};
use journeyman_protocol::RelPath;
use serde_json::json;

use crate::runtime::Signals;
use crate::runtime::block_on;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::index::{index_threads, watch_event_to_json};

/// Paths that are named of an update.
const MOST_NAMED: usize = 5;

/// Follows a project's files until Ctrl-C, or until a program is asked to end.
pub(super) fn follow(project: Project, json: bool) -> Result<u8, HostError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    block_on(async move {
        let mut signals = Signals::listen()?;
        let mut following = tokio::task::spawn_blocking(move || {
            let options = Options { threads: index_threads(), wait: false, progress: &|_| {}, stop: &flag };
            let mut tell = |told: WatchEvent<'_>| {
                if json { say!("{}", watch_event_to_json(&told)) } else { say!("{}", line(&told)) }
            };
            follow_files(&project, options, &mut tell)
        });
        let ended = tokio::select! {
            ended = &mut following => ended,
            () = signals.next() => {
                stop.store(true, Ordering::Relaxed);
                // What is under way is put away first: what was read isn't read again.
                following.await
            }
        };
        ended.context("following the files")?.context("the index")?;
        if json {
            say!("{}", json!({"event": "stopped"}));
        } else {
            say!("stopped");
        }
        Ok(0)
    })
}

fn line(told: &WatchEvent<'_>) -> String {
    let did = |report: &Report| format!("{} read, {} gone", report.read, report.gone);
    match told {
        WatchEvent::Watching(directories) => format!("watching {directories} directories; Ctrl-C ends it"),
        WatchEvent::Polling(why) => format!("looking at all files now and then: {why}; Ctrl-C ends it"),
        WatchEvent::Updated(paths, report) => format!("{}: {}", named(paths), did(report)),
        WatchEvent::Refreshed(why, report) => format!("all files, because of {why}: {}", did(report)),
        WatchEvent::Failed(error) => format!("failed, and is tried again: {error}"),
    }
}

fn named(paths: &[RelPath]) -> String {
    let names: Vec<String> = paths.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
