//! The review of a session's changes: opened, and what its keys do to the files.

use journeyman_agent::workspace::Workspace;
use journeyman_host::HostError;
use journeyman_host::checkpoints::CheckpointDiff;
use journeyman_host::format::printable;
use journeyman_host::hunks::find_hunks;
use journeyman_protocol::SessionId;

use crate::app::App;
use crate::presentation::Overlay;
use crate::review::{Review, ReviewEffect};
use crate::status_facts::VerificationState;

impl App {
    /// Shows what changed since the newest run began.
    pub(crate) async fn show_diff(&mut self) -> Result<(), HostError> {
        if self.is_in_copy() {
            return self.review_copy().await;
        }
        let Some(open) = &self.open_session else {
            self.notice = Some("no session is open; the next message opens one".to_owned());
            return Ok(());
        };
        let workspace = &open.template.project.workspace;
        let found = CheckpointDiff::new(workspace, None, None)
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

    /// Does what a key of the review asks for.
    pub(crate) async fn apply_review_effect(&mut self, effect: ReviewEffect) {
        match effect {
            ReviewEffect::Stay | ReviewEffect::Close => {}
            ReviewEffect::Land(request) => self.start_landing_or_discard(Some(request)),
            ReviewEffect::Drop => self.start_landing_or_discard(None),
            ReviewEffect::StopSettling => self.stop_landing(),
            ReviewEffect::TakeBack(..) | ReviewEffect::GiveBack if self.copy_review.is_some() => {
                self.revert_hunk_in_copy(&effect).await;
            }
            ReviewEffect::TakeBack(..) | ReviewEffect::GiveBack => self.revert_hunk_in_project(&effect),
        }
    }

    fn revert_hunk_in_project(&mut self, effect: &ReviewEffect) {
        let is_working = self.conversation.is_working();
        let Some(open) = &self.open_session else { return };
        let (workspace, session) = (&*open.template.project.workspace, open.session.id());
        let Some(Overlay::Review(review)) = self.presentation.overlay() else { return };
        let changed = match is_working {
            true => Err(HostError::failed("the session works; Esc in the conversation stops it first")),
            false => revert_or_restore_hunk(review, effect, workspace, session),
        };
        let changed = changed.and_then(|what| {
            let since = review.checkpoint().map(|since| find_hunks(workspace, &since));
            since.transpose()?.into_iter().for_each(|files| review.set_files(files));
            Ok(what)
        });
        self.report_hunk_change(changed);
    }

    async fn revert_hunk_in_copy(&mut self, effect: &ReviewEffect) {
        let (Some(copy), Some(closed)) = (&self.copy_review, &self.closed_session) else { return };
        let Some(Overlay::Review(review)) = self.presentation.overlay() else { return };
        let changed = async {
            let what = revert_or_restore_hunk(review, effect, &copy.workspace(), &closed.id)?;
            copy.record_unverified().await?;
            review.set_preview(copy.preview().await?);
            Ok(what)
        };
        let changed = changed.await;
        self.report_hunk_change(changed);
    }

    fn report_hunk_change(&mut self, changed: Result<&'static str, HostError>) {
        let Some(Overlay::Review(review)) = self.presentation.overlay() else { return };
        match changed {
            Ok(what) => {
                review.notice = Some(what.to_owned());
                // No check has seen the files as they are now.
                self.conversation.note_verification(VerificationState::Unverified);
            }
            Err(error) => review.notice = Some(printable(&error)),
        }
    }
}

/// Reverts a hunk, or restores the newest one that was reverted.
fn revert_or_restore_hunk(
    review: &mut Review,
    effect: &ReviewEffect,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<&'static str, HostError> {
    if let ReviewEffect::TakeBack(file, hunk) = effect {
        let Some((file, hunk)) = review.hunk(*file, *hunk) else {
            return Ok("there is no such hunk any more");
        };
        let taken = file.revert_hunk(hunk, workspace, session)?;
        review.taken_back.push(taken);
        return Ok("taken back; u gives it back");
    }
    let Some(taken) = review.taken_back.last() else { return Ok("nothing was taken back here") };
    taken.clone().reapply(workspace, session)?;
    // One that can't be given back now may be later.
    review.taken_back.pop();
    Ok("as it was before the newest x")
}
