//! An index that follows the files of its project.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use journeyman_index::ProjectIndex;
use journeyman_index::store::{IndexReport, RefreshOptions};
use journeyman_index::watch::{WatchEvent, follow_project};
use serde_json::{Value, json};

use super::open::index_threads;
use crate::format::list_first;
use crate::{Context as _, HostError};

/// Maximum number of paths of an update that are named.
const MAX_NAMED_PATHS: usize = 5;

/// Brings the index up to date whenever files change, until `stop` ends. What is under way then is
/// stored first, so that no file is read again.
///
/// # Errors
/// [`HostError::Failed`] where the files can't be followed or the index can't be written.
pub async fn follow_files(
    project: ProjectIndex,
    stop: impl Future<Output = ()>,
    mut on_event: impl FnMut(WatchEvent<'_>) + Send + 'static,
) -> Result<(), HostError> {
    let flag = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&flag);
    let mut following = tokio::task::spawn_blocking(move || {
        let options =
            RefreshOptions { threads: index_threads(), wait: false, progress: &|_| {}, stop: &stopped };
        follow_project(&project, options, &mut on_event)
    });
    let ended = tokio::select! {
        ended = &mut following => ended,
        () = stop => {
            flag.store(true, Ordering::Relaxed);
            following.await
        }
    };
    ended.context("following the files")?.context("the index")
}

/// Returns an event as JSON.
#[must_use]
pub fn watch_event_to_json(event: &WatchEvent<'_>) -> Value {
    let with = |mut object: Value, report: &IndexReport| {
        let counts = [("read", report.read), ("same", report.same), ("gone", report.gone)];
        if let Some(object) = object.as_object_mut() {
            object.extend(counts.map(|(name, count)| (name.to_owned(), count.into())));
        }
        object
    };
    match event {
        WatchEvent::Watching(directories) => json!({"event": "watching", "directories": directories}),
        WatchEvent::Polling(why) => json!({"event": "polling", "why": why}),
        WatchEvent::Updated(paths, report) => with(json!({"event": "updated", "paths": paths}), report),
        WatchEvent::Refreshed(why, report) => with(json!({"event": "refreshed", "why": why}), report),
        WatchEvent::Failed(error) => json!({"event": "failed", "error": error.to_string()}),
    }
}

/// Describes an event in one line.
#[must_use]
pub fn describe_watch_event(event: &WatchEvent<'_>) -> String {
    let did = |report: &IndexReport| format!("{} read, {} gone", report.read, report.gone);
    match event {
        WatchEvent::Watching(directories) => format!("watching {directories} directories; Ctrl-C ends it"),
        WatchEvent::Polling(why) => format!("looking at all files now and then: {why}; Ctrl-C ends it"),
        WatchEvent::Updated(paths, report) => {
            format!("{}: {}", list_first(paths, MAX_NAMED_PATHS), did(report))
        }
        WatchEvent::Refreshed(why, report) => format!("all files, because of {why}: {}", did(report)),
        WatchEvent::Failed(error) => format!("failed, and is tried again: {error}"),
    }
}
