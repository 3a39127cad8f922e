//! Refusing changes of files that are not what the model saw.

use journeyman_protocol::RelPath;
use journeyman_workspace::FileContent;

use crate::{Sight, ToolContext, ToolError};

/// Refuses to edit `path`, whose content is `now`, where somebody else changed it since the model
/// saw it. What a command of the session changed is no surprise, and a text that an edit quotes has
/// to be there anyway.
///
/// # Errors
/// [`ToolError::ChangedSince`], with what changed. Where that is all of it the model knows the file
/// again, and the next try is not refused.
pub fn refuse_stale(context: &ToolContext, path: &RelPath, now: &FileContent) -> Result<(), ToolError> {
    match context.seen.compare(path, &now.hash) {
        Sight::Changed => Err(stale_error(context, path.clone(), now)),
        Sight::Never | Sight::ChangedByUs | Sight::Current => Ok(()),
    }
}

/// The refusal of a change to a file that isn't what the model saw. Where that shows all of the
/// difference, the model knows the file again.
pub(crate) fn stale_error(context: &ToolContext, path: RelPath, now: &FileContent) -> ToolError {
    let by_us = context.seen.compare(&path, &now.hash) == Sight::ChangedByUs;
    let difference = context.seen.difference_since(&context.workspace, &path, now);
    let whole = difference.as_ref().is_some_and(|difference| difference.whole);
    if whole && let Some(text) = now.text() {
        context.seen.record_text(path.clone(), now.hash, text);
    }
    ToolError::ChangedSince { path, by_us, difference: difference.map(|difference| difference.text), whole }
}
