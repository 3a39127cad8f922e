//! The review of a session's changes: opened, and what its keys do to the files.

use journeyman_agent::workspace::{CheckpointId, Workspace};
use journeyman_host::checkpoints::Comparison;
use journeyman_host::format::printable;
use journeyman_host::hunks::find_hunks;
use journeyman_host::{HostError, Workplace};
use journeyman_protocol::SessionId;

use crate::app::App;
use crate::facts::Proof;
use crate::presentation::Overlay;
use crate::review::{Review, ReviewEffect};

impl App {
    /// Shows what changed since the newest run began.
    pub(crate) fn show_diff(&mut self) -> Result<(), HostError> {
        let Some(link) = &self.link else { return Ok(()) };
        if link.template.delivery.workplace() != Workplace::Project {
            let id = link.session.id();
            let text = format!(
                "the work is in a copy, which is landed at the end if it is verified; jm land --dry-run {id} shows it"
            );
            self.notice = Some(text);
            return Ok(());
        }
        let workspace = &link.template.project.workspace;
        let found = Comparison::new(workspace, None, None)
            .and_then(|compared| Ok((compared.from, find_hunks(workspace, &compared.from)?)));
        match found {
            Ok((_, files)) if files.is_empty() => {
                self.notice = Some("nothing is different from when the newest run began".to_owned());
                Ok(())
            }
            Ok((since, files)) => {
                let report = self.conversation.last_report().cloned();
                self.open_overlay(Overlay::Review(Box::new(Review::new(since, files, report))))
            }
            Err(error) => {
                self.notice = Some(error.to_string());
                Ok(())
            }
        }
    }

    /// Does to the files what a key of the review asks for.
    pub(crate) fn change_reviewed(&mut self, effect: ReviewEffect) {
        let is_working = self.conversation.is_working();
        let Some(link) = &self.link else { return };
        let (workspace, session) = (&*link.template.project.workspace, link.session.id());
        let Some(Overlay::Review(review)) = self.presentation.overlay() else { return };
        let changed = match effect {
            ReviewEffect::Stay | ReviewEffect::Close => return,
            _ if is_working => {
                Err(HostError::failed("the session works; Esc in the conversation stops it first"))
            }
            ReviewEffect::TakeBack(file, hunk) => take_back(review, file, hunk, workspace, session),
            ReviewEffect::GiveBack => give_back(review, workspace, session),
        };
        match changed {
            Ok(what) => {
                review.notice = Some(what.to_owned());
                // No check has seen the files as they are now.
                self.conversation.note_proof(Proof::Unverified);
            }
            Err(error) => review.notice = Some(printable(&error)),
        }
    }
}

fn take_back(
    review: &mut Review,
    file: usize,
    hunk: usize,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<&'static str, HostError> {
    let Some((file, hunk)) = review.hunk(file, hunk) else { return Ok("there is no such hunk any more") };
    let taken = file.take_back(hunk, workspace, session)?;
    review.taken_back.push(taken);
    refresh(review, workspace)?;
    Ok("taken back; u gives it back")
}

fn give_back(
    review: &mut Review,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<&'static str, HostError> {
    let Some(taken) = review.taken_back.pop() else { return Ok("nothing was taken back here") };
    taken.give_back(workspace, session)?;
    refresh(review, workspace)?;
    Ok("as it was before the newest x")
}

fn refresh(review: &mut Review, workspace: &Workspace) -> Result<(), HostError> {
    let since: CheckpointId = review.since;
    review.set_files(find_hunks(workspace, &since)?);
    Ok(())
}
