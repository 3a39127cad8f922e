//! `docs/events.md`, `docs/events.schema.json` and `docs/report.schema.json` are generated from the
//! types. `UPDATE_DOCS=1 cargo test -p journeyman-protocol --test docs` writes them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{Channel, Envelope, Event, RunReport};
use serde_json::Value;

/// Names that other agents use for the same kinds.
const ALSO_KNOWN_AS: [(&str, &str); 10] = [
    ("text_start", "text_chunk_start"),
    ("text_delta", "text_chunk"),
    ("text_end", "text_chunk_end"),
    ("thinking_start", "think_chunk_start"),
    ("thinking_delta", "think_chunk"),
    ("thinking_end", "think_chunk_end"),
    ("tool_start", "tool:start"),
    ("tool_end", "tool:end"),
    ("tool_error", "tool:error"),
    ("turn_phase_changed", "breakpoint_changed"),
];

/// The version of both schemas.
const SCHEMA_VERSION: u32 = 1;

const HEAD: &str = "\
# Events

A session emits events on three channels: **progress** for a person who watches, **control** for decisions of a person,
**monitor** for an operator who audits. `jm run --stream-json`, `jm show --json` and `SessionHandle::subscribe` deliver
each event as one JSON object:

```json
{\"session\":\"01h9…\",\"seq\":17,\"at\":1790000000000,\"channel\":\"progress\",\"event\":\"turn_started\",\"turn\":1}
```

`seq` is the event's position in the session's log. It increases strictly, also across restarts, and serves as a
bookmark: a subscriber that starts after a `seq` gets every later event once, in order, from the log and then live.
Numbers are missing where the log holds records that are not events. An event without `seq` is *live*: it is streamed
and not logged, because the event that ends its block, call or check has the whole text. A subscriber that starts within
a block gets the text so far as one delta. A subscriber that falls too far behind gets one `lagged` event, and then
everything that it missed except live events.

This page and [`events.schema.json`](events.schema.json), the JSON Schema of the object above, are generated from the
types. The tests validate every event that a session emits against the schema.
";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page(schema: &Value) -> String {
    let mut page = HEAD.to_owned();
    for (channel, title) in
        [(Channel::Progress, "Progress"), (Channel::Control, "Control"), (Channel::Monitor, "Monitor")]
    {
        write!(page, "\n## {title}\n\n| event | meaning | fields |\n|---|---|---|\n").unwrap();
        for kind in Event::KINDS.iter().filter(|kind| kind.channel == channel) {
            let variant = variant(schema, kind.name);
            let meaning = variant["description"].as_str().unwrap_or_default().replace('\n', " ");
            let live = if kind.live_only { " *live*" } else { "" };
            let known = ALSO_KNOWN_AS.iter().find(|(ours, _)| *ours == kind.name);
            let known = known.map(|(_, theirs)| format!(" (`{theirs}`)")).unwrap_or_default();
            let required = variant["required"].as_array().unwrap();
            let field = |name: &String| {
                let mark = if required.iter().any(|one| one == name) { "" } else { "?" };
                format!("`{name}`{mark}")
            };
            let names = variant["properties"].as_object().unwrap().keys();
            let fields: Vec<String> = names.filter(|name| *name != "event").map(field).collect();
            writeln!(page, "| `{}`{known}{live} | {meaning} | {} |", kind.name, fields.join(", ")).unwrap();
        }
    }
    page
}

fn variant<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let variants = schema["oneOf"].as_array().unwrap();
    variants.iter().find(|one| one["properties"]["event"]["const"] == name).unwrap()
}

fn check_or_update(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "{} is out of date; UPDATE_DOCS=1 cargo test -p journeyman-protocol --test docs writes it",
        path.display()
    );
}

#[test]
fn the_documentation_of_events_is_up_to_date() {
    let schema = named(schemars::schema_for!(Envelope), "events");
    check_or_update(&docs().join("events.schema.json"), &to_text(&schema));
    check_or_update(&docs().join("events.md"), &page(&schema));
}

#[test]
fn the_schema_of_the_result_is_up_to_date_and_its_page_names_every_field() {
    let schema = named(schemars::schema_for!(RunReport), "report");
    check_or_update(&docs().join("report.schema.json"), &to_text(&schema));
    let page = std::fs::read_to_string(docs().join("json.md")).unwrap();
    for field in schema["properties"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{field}`")), "docs/json.md doesn't name {field}");
    }
}

/// The schema with its identity. The version goes up when a field is removed or changes its type.
fn named(schema: schemars::Schema, name: &str) -> Value {
    let mut schema = schema.to_value();
    schema["$id"] = format!("urn:journeyman:{name}:{SCHEMA_VERSION}").into();
    schema["version"] = SCHEMA_VERSION.into();
    schema
}

fn to_text(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}
