//! What a check may not leave behind, in words for whoever reads what checks found.

use journeyman_policy::is_guarded;
use journeyman_protocol::{Diagnostic, FileChange, RelPath, Severity};
use journeyman_workspace::Trespass;

/// Warnings of one check; who meets more has seen enough.
const MOST_WARNINGS: usize = 20;

/// Warnings of what a check made or changed that is a person's to make or change.
pub(crate) fn warnings(trespass: Trespass, changes: &[FileChange]) -> Vec<Diagnostic> {
    let guarded = trespass.guarded(changes, is_guarded).into_iter().take(MOST_WARNINGS).map(|path| {
        let message = format!(
            "the check changed {path}, which programs outside the sandbox run or obey; look at it, or undo the run"
        );
        warning(path, message)
    });
    let planted = trespass.planted.into_iter().take(MOST_WARNINGS);
    let warnings = planted.map(|(path, place)| {
        let message = match place {
            Ok(place) => {
                format!("a check may not create a repository here: {path} was moved to {}", place.display())
            }
            Err(error) => format!(
                "a check may not create a repository here, and {path} could not be moved away: {error}; don't use \
                 git there"
            ),
        };
        warning(path, message)
    });
    warnings.chain(guarded).collect()
}

fn warning(path: RelPath, message: String) -> Diagnostic {
    Diagnostic {
        path: Some(path),
        line: None,
        column: None,
        severity: Severity::Warning,
        code: None,
        message,
    }
}
