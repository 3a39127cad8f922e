//! Refusing to change files that differ from what the model saw.

use journeyman_protocol::RelPath;
use journeyman_workspace::FileContent;

use crate::{SeenStatus, ToolContext, ToolError};

/// Refuses to edit `path` if its content `now` changed outside the session since the model saw it.
/// Changes by the session's own commands are allowed, because a quoted search text has to be there
/// anyway.
///
/// # Errors
/// [`ToolError::ChangedSince`] with the changes. If these are complete, the file counts as seen,
/// and the next attempt is not refused.
pub fn refuse_stale(context: &ToolContext, path: &RelPath, now: &FileContent) -> Result<(), ToolError> {
    match context.seen.compare(path, &now.hash) {
        SeenStatus::Changed => Err(stale_error(context, path.clone(), now)),
        SeenStatus::Never | SeenStatus::ChangedByUs | SeenStatus::Current => Ok(()),
    }
}

/// Returns the error for a file that differs from what the model saw. If the error shows all
/// changes, the file counts as seen.
pub(crate) fn stale_error(context: &ToolContext, path: RelPath, now: &FileContent) -> ToolError {
    let by_us = context.seen.compare(&path, &now.hash) == SeenStatus::ChangedByUs;
    let difference = context.seen.difference_since(&context.workspace, &path, now);
    let whole = difference.as_ref().is_some_and(|difference| difference.whole);
    if whole && let Some(text) = now.text() {
        context.seen.record_text(path.clone(), now.hash, text);
    }
    ToolError::ChangedSince { path, by_us, difference: difference.map(|difference| difference.text), whole }
}
