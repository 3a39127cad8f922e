//! Messages for the model about forbidden changes by a command.

use journeyman_workspace::ForbiddenChanges;

/// Maximum number of paths named in a message.
const MAX_NAMED_PATHS: usize = 20;

/// Returns the message about forbidden changes by a command; `None` if there were none.
pub(crate) fn violation_message(aftermath: &ForbiddenChanges) -> Option<String> {
    let mut text = String::new();
    for violation in aftermath.violations.iter().take(MAX_NAMED_PATHS) {
        text.push_str(&format!("error: {violation}.\n"));
    }
    let more = aftermath.violations.len().saturating_sub(MAX_NAMED_PATHS);
    if more > 0 {
        text.push_str(&format!("[and {more} more]\n"));
    }
    if let Some(problem) = &aftermath.problem {
        text.push_str(&format!("error: {problem}.\n"));
    }
    if aftermath.violations.iter().any(|one| one.problem.is_some()) {
        text.push_str(
            "Tell the person, who must not use git or open an editor there before looking at it.\n",
        );
    }
    if !text.is_empty() {
        text.push_str(
            "A command may not create repositories, or change files that programs outside the sandbox run or obey. \
             Don't try again: say what you would change, and the person may do it.\n",
        );
    }
    (!text.is_empty()).then_some(text)
}
