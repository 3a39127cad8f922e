//! What a command may not leave behind, in words for the model.

use journeyman_policy::is_guarded;
use journeyman_protocol::FileChange;
use journeyman_workspace::Trespass;

/// Paths named in a refusal.
const MOST_NAMED: usize = 20;

/// What to say of a trespass and of guarded files among the changes; `None` when there is nothing to say.
pub(crate) fn refusal(trespass: &Trespass, changes: &[FileChange]) -> Option<String> {
    let mut text = String::new();
    for (path, place) in trespass.planted.iter().take(MOST_NAMED) {
        text.push_str(&match place {
            Ok(place) => format!(
                "error: a command may not create a repository here: {path} was moved to {}. Only the person may \
                 make one.\n",
                place.display()
            ),
            Err(error) => format!(
                "error: a command may not create a repository here, and {path} could not be moved away: {error}. \
                 Tell the person, who must not use git there.\n"
            ),
        });
    }
    if trespass.planted.len() > MOST_NAMED {
        text.push_str(&format!("[and {} more]\n", trespass.planted.len() - MOST_NAMED));
    }
    let guarded = trespass.guarded(changes, is_guarded);
    if !guarded.is_empty() {
        let more = guarded.len().saturating_sub(MOST_NAMED);
        let named: Vec<String> = guarded.iter().take(MOST_NAMED).map(ToString::to_string).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!(
            "error: programs outside the sandbox run or obey {}{more}, so the person must make such changes. Take \
             yours back, and say what you would change.\n",
            named.join(", ")
        ));
    }
    (!text.is_empty()).then_some(text)
}
