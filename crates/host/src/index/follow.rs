//! Events of an index that follows the files, as JSON.

use journeyman_index::store::Report;
use journeyman_index::watch::WatchEvent;
use serde_json::{Value, json};

/// Returns an event as JSON.
#[must_use]
pub fn watch_event_to_json(event: &WatchEvent<'_>) -> Value {
    let with = |mut object: Value, report: &Report| {
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
