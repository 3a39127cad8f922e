//! Messages about forbidden changes by a check.

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use journeyman_workspace::ForbiddenChanges;

/// Maximum number of warnings of one check.
const MAX_WARNINGS: usize = 20;

/// Returns warnings about guarded files that a check made or changed, which only a person may do.
pub(crate) fn forbidden_change_warnings(aftermath: &ForbiddenChanges) -> Vec<Diagnostic> {
    let violations = aftermath.violations.iter().take(MAX_WARNINGS).map(|one| {
        let message =
            format!("programs outside the sandbox obey it, and no check may make or change it: {one}");
        new_warning(Some(one.path.clone()), message)
    });
    violations.chain(aftermath.problem.iter().map(|problem| new_warning(None, problem.clone()))).collect()
}

fn new_warning(path: Option<RelPath>, message: String) -> Diagnostic {
    Diagnostic { path, ..Diagnostic::new(Severity::Warning, message) }
}
