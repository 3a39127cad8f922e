use crate::*; use crate::turn::{Worker, End}; use crate::finished::Finished; use journeyman_protocol::ToolUse;
impl Worker {
 pub(crate) async fn look_around(&mut self) -> Result<Option<End>, AgentError> { Ok(None) }
 pub(crate) fn observe(&mut self, _: &ToolUse, _: bool, _: &Finished) {}
 pub(crate) fn note_todos(&mut self) {} pub(crate) fn note_seen(&mut self) {} pub(crate) fn remind_at_start(&mut self) {}
 pub(crate) async fn stop_background(&mut self) {}
}
