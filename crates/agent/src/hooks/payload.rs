//! The JSON on a command's standard input.

use journeyman_protocol::Mode;
use serde_json::{Map, Value, json};

use super::HookContext;
use super::configured::HookCommand;
use super::event::Dialect;

/// What every event's JSON begins with; `more` is an object with what is the event's own.
pub(super) fn payload(at: &HookContext, hook: &HookCommand, more: Value) -> Vec<u8> {
    let transcript = at.transcript.as_deref().map(|path| path.to_string_lossy().into_owned());
    let mut fields = Map::new();
    for (name, value) in [
        ("session_id", at.session.as_str().to_owned()),
        ("transcript_path", transcript.unwrap_or_default()),
        ("cwd", at.root.to_string_lossy().into_owned()),
        ("permission_mode", mode_in(hook.dialect, at.mode).to_owned()),
        ("hook_event_name", hook.event.name_in(hook.dialect, hook.results).to_owned()),
    ] {
        fields.insert(name.to_owned(), Value::String(value));
    }
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    // A line, so that `read line` in a script gets the whole.
    let mut bytes = json!(fields).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// Our modes in Claude Code's words. `auto` isn't its `bypassPermissions`: level 3 asks here in every mode.
fn mode_in(dialect: Dialect, mode: Mode) -> &'static str {
    match (dialect, mode) {
        (Dialect::Own, mode) => mode.name(),
        (Dialect::ClaudeCode, Mode::Plan) => "plan",
        (Dialect::ClaudeCode, Mode::Ask) => "default",
        (Dialect::ClaudeCode, Mode::Edit) => "acceptEdits",
        (Dialect::ClaudeCode, Mode::Auto) => "auto",
    }
}
