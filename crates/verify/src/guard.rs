//! Messages about forbidden changes by a check.

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use journeyman_workspace::ForbiddenChanges;

/// Warnings of one check; who meets more has seen enough.
const MOST_WARNINGS: usize = 20;

/// Warnings of what a check made or changed that is a person's to make or change.
pub(crate) fn forbidden_change_warnings(aftermath: &ForbiddenChanges) -> Vec<Diagnostic> {
    let violations = aftermath.violations.iter().take(MOST_WARNINGS).map(|one| {
        let message =
            format!("programs outside the sandbox obey it, and no check may make or change it: {one}");
        new_warning(Some(one.path.clone()), message)
    });
    violations.chain(aftermath.problem.iter().map(|problem| new_warning(None, problem.clone()))).collect()
}

fn new_warning(path: Option<RelPath>, message: String) -> Diagnostic {
    Diagnostic { path, ..Diagnostic::new(Severity::Warning, message) }
}
