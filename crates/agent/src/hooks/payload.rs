//! The JSON on a command's standard input.

use journeyman_protocol::Mode;
use serde_json::{Map, Value, json};

use super::HookContext;
use super::event::Dialect;
use super::hook_command::HookCommand;

/// Returns the JSON of an event: the fields common to all events, then the event's own fields in
/// the object `more`.
pub(super) fn build_payload(at: &HookContext, hook: &HookCommand, more: Value) -> Vec<u8> {
    let transcript = at.transcript.as_deref().map(|path| path.to_string_lossy().into_owned());
    let mut fields = Map::new();
    for (name, value) in [
        ("session_id", at.session.as_str().to_owned()),
        ("transcript_path", transcript.unwrap_or_default()),
        ("cwd", at.root.to_string_lossy().into_owned()),
        ("permission_mode", mode_name_in(hook.dialect, at.mode).to_owned()),
        ("hook_event_name", hook.event.name_in(hook.dialect, hook.results).to_owned()),
    ] {
        fields.insert(name.to_owned(), Value::String(value));
    }
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    // The JSON is one line, so that `read line` in a script gets all of it.
    let mut bytes = json!(fields).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// Returns the mode's name in the dialect. `auto` isn't Claude Code's `bypassPermissions`: level 3
/// asks in every mode.
fn mode_name_in(dialect: Dialect, mode: Mode) -> &'static str {
    match (dialect, mode) {
        (Dialect::Own, mode) => mode.name(),
        (Dialect::ClaudeCode, Mode::Plan) => "plan",
        (Dialect::ClaudeCode, Mode::Ask) => "default",
        (Dialect::ClaudeCode, Mode::Edit) => "acceptEdits",
        (Dialect::ClaudeCode, Mode::Auto) => "auto",
    }
}
