//! The copy that a session works in: reviewed, landed, dropped, and named where it is left.

use std::time::Instant;

use journeyman_agent::isolation::{LandContext, LandRequest, discard_copy, finish_copy};
use journeyman_host::copy_review::{CopyReview, LandingPreview};
use journeyman_host::format::printable;
use journeyman_host::landing::{into_usage_error, land_work};
use journeyman_host::report_text::format_work_location;
use journeyman_host::{Context as _, HostError, WorkLocation};
use journeyman_protocol::{CopyReport, CopyState, Envelope, Seq, SessionId};
use journeyman_terminal::{Paint, Style, StyledLine};
use tokio_util::sync::CancellationToken;

use crate::app::{App, JobResult};
use crate::copy_decision::{CopyDecision, LAND_WORDS, SettledCopy};
use crate::open_session::{ClosedSession, OpenSession};
use crate::presentation::Overlay;
use crate::questions::Questions;
use crate::review::{LANDING_HINT, Review};

impl App {
    /// Returns true if the session works in a copy.
    pub(crate) fn is_in_copy(&self) -> bool {
        match (&self.open_session, &self.closed_session) {
            (Some(open), _) => open.template.delivery.work_location() != WorkLocation::Project,
            (None, Some(closed)) => closed.is_in_copy,
            (None, None) => false,
        }
    }

    /// Closes the session for what needs it closed. Work in the project is delivered as the person
    /// asked when they began; a copy stays as it is.
    pub(crate) async fn close_session(&mut self) {
        let is_in_copy = self.is_in_copy();
        let Some(open) = &self.open_session else { return };
        open.session.close().await;
        // The end of a run may have come meanwhile.
        while let Some(open) = &mut self.open_session
            && let Ok(Some(envelope)) = open.events.next().await
        {
            self.apply_event(&envelope, Instant::now());
        }
        let Some(open) = self.open_session.take() else { return };
        if is_in_copy {
            self.closed_session = open.into_closed(is_in_copy);
            return;
        }
        let OpenSession { template, session, has_ended_run, .. } = open;
        drop(session);
        // What earlier openings have done was delivered by them.
        let report =
            self.conversation.last_report().filter(|report| has_ended_run && !report.changes.is_empty());
        let Some(report) = report else { return };
        let report = std::sync::Arc::new(report.clone());
        match template.deliver(&report, None, &CancellationToken::new()).await {
            Ok(delivered) => {
                let now = Instant::now();
                delivered.events.iter().for_each(|envelope| self.conversation.apply(envelope, now));
            }
            Err(error) => self.explain_failure(&error),
        }
    }

    /// Forgets the session that has ended by itself, until the next message opens it again.
    pub(crate) fn rest_ended_session(&mut self, now: Instant) {
        let is_in_copy = self.is_in_copy();
        let Some(open) = self.open_session.take() else { return };
        self.closed_session = open.into_closed(is_in_copy);
        self.questions = Questions::default();
        // What was sent is in the log, and goes on with the session.
        self.queued.retain(|queued| queued.id.is_none());
        self.conversation.end_work(now);
    }

    /// Leaves the session for another one, or for good. Returns what is to be said about work that
    /// stays in a copy.
    pub(crate) async fn leave_session(&mut self) -> Option<String> {
        self.copy_review = None;
        self.close_session().await;
        let settled = self.keep_or_remove_copy().await;
        let id = self.closed_session.take().filter(|closed| closed.is_in_copy)?.id;
        match settled {
            Ok(None) => None,
            Ok(Some(copy)) => Some(format_work_location(&id, Some(&copy), None, "", Paint::PLAIN)),
            Err(error) => Some(format!("the copy of session {id} stays: {error}")),
        }
        .filter(|text| !text.is_empty())
    }

    /// Keeps the copy of the session that rests, or removes one in which nothing was changed.
    /// Returns the place of the work; `None` where there is no copy (any more).
    pub(crate) async fn keep_or_remove_copy(&mut self) -> Result<Option<CopyReport>, HostError> {
        let Some(ClosedSession { id, template: Some(template), has_ended_run, known_end, .. }) =
            &mut self.closed_session
        else {
            return Ok(None);
        };
        let copies = template.project.workspace.copies().list().context("looking for its copy")?;
        let Some(kept) = copies.into_iter().find(|copy| copy.session == *id) else { return Ok(None) };
        let report = self.conversation.last_report().filter(|report| report.copy.is_some() && *has_ended_run);
        let Some(mut report) = report.cloned() else {
            let (tier, state) = (kept.tier.to_string(), CopyState::Kept);
            return Ok(Some(CopyReport { tier, state, merged: Vec::new(), conflicts: Vec::new() }));
        };
        let context = template.land_context();
        let events = finish_copy(&context, &mut report, None, &CancellationToken::new()).await?;
        *known_end = newest_seq(&events).or(*known_end);
        Ok(report.copy)
    }

    /// Shows the changes of the session's copy, to be landed or dropped.
    pub(crate) async fn review_copy(&mut self) -> Result<(), HostError> {
        if self.conversation.is_working() {
            self.notice = Some("the session works; Esc stops it first".to_owned());
            return Ok(());
        }
        self.close_session().await;
        match self.open_copy_review().await {
            Ok(Some((copy, preview))) if !preview.files.is_empty() => {
                self.note_known_end(preview.known_end);
                let review = Review::of_copy(preview, self.conversation.last_report().cloned());
                // Lines are read once, and nothing is held for them.
                self.copy_review = self.plain.is_none().then_some(copy);
                self.open_overlay(Overlay::Review(Box::new(review)))?;
            }
            Ok(_) => self.notice = Some("nothing is different in the copy".to_owned()),
            Err(error) => self.notice = Some(printable(&error)),
        }
        Ok(())
    }

    /// Notes the end of the log of the session that rests, as the person sees it now.
    fn note_known_end(&mut self, known_end: Option<Seq>) {
        if let Some(closed) = &mut self.closed_session {
            closed.known_end = known_end.or(closed.known_end);
        }
    }

    async fn open_copy_review(&self) -> Result<Option<(CopyReview, LandingPreview)>, HostError> {
        let Some(copy) = self.open_resting_copy().await? else { return Ok(None) };
        let preview = copy.preview().await?;
        Ok(Some((copy, preview)))
    }

    /// Lands the copy as a word says, or drops it.
    pub(crate) async fn land_or_discard_copy(&mut self, word: &str, is_dropped: bool) {
        let request = match (is_dropped, CopyDecision::parse_land_request(word)) {
            (true, _) if word == "all" => None,
            (true, _) => {
                self.notice = Some("/discard all drops every change of the copy for good".to_owned());
                return;
            }
            (false, Some(request)) => Some(request),
            (false, None) => {
                self.notice = Some(format!("/land takes nothing, or one of {}", LAND_WORDS.join(", ")));
                return;
            }
        };
        if !self.is_in_copy() {
            self.notice = Some("the session works in your files; there is no copy to land".to_owned());
            return;
        }
        self.close_session().await;
        self.start_landing_or_discard(request);
    }

    /// Begins to land the copy of the session that rests, or to drop it.
    pub(crate) fn start_landing_or_discard(&mut self, request: Option<LandRequest>) {
        let copy = self.copy_review.take();
        let Some(ClosedSession { id, template: Some(template), known_end, .. }) = &self.closed_session else {
            self.notice = Some("nothing was changed in the copy yet".to_owned());
            return;
        };
        // What the person asked for when they began, such as a commit, holds here too.
        let commit = template.delivery.land_request().and_then(|landing| landing.commit.clone());
        let (project, id, stop) = (template.project.clone(), id.clone(), CancellationToken::new());
        let mut context = template.land_context();
        context.known_end = *known_end;
        let (is_reviewed, stopped) = (copy.is_some(), stop.clone());
        // It is opened again by who lands it.
        drop(copy);
        self.jobs.push(Box::pin(async move {
            let settled = match request {
                Some(request) => {
                    let request = LandRequest { commit, ..request };
                    let landed = land_work(&context, &id, &request, &stopped).await;
                    landed.map(|report| SettledCopy::Landed(Box::new(report)))
                }
                None => drop_copy(&context, &id).await,
            };
            let again = match is_reviewed && !settled.as_ref().is_ok_and(SettledCopy::is_copy_gone) {
                true => open_review(&project, &id).await.ok(),
                false => None,
            };
            JobResult::CopySettled(settled, again.map(Box::new))
        }));
        if let Some(Overlay::Review(review)) = self.presentation.overlay() {
            (review.is_settling, review.notice) = (true, Some(LANDING_HINT.to_owned()));
        } else {
            self.notice = Some(LANDING_HINT.to_owned());
        }
        self.landing = Some(stop);
    }

    /// Returns true, and says so, while the copy is landed or dropped.
    pub(crate) fn refuse_while_landing(&mut self) -> bool {
        if self.landing.is_some() {
            self.notice = Some(LANDING_HINT.to_owned());
        }
        self.landing.is_some()
    }

    /// Stops what is being done to the copy, as far as it can be stopped.
    pub(crate) fn stop_landing(&mut self) {
        if let Some(stop) = &self.landing {
            stop.cancel();
        }
    }

    /// Handles the result of landing or dropping the copy.
    pub(crate) fn finish_landing(
        &mut self,
        settled: Result<SettledCopy, HostError>,
        again: Option<(CopyReview, LandingPreview)>,
    ) -> Result<(), HostError> {
        (self.landing, self.notice) = (None, None);
        self.note_known_end(settled.as_ref().ok().and_then(|settled| match settled {
            SettledCopy::Landed(report) => newest_seq(&report.events),
            SettledCopy::Dropped { known_end, .. } => *known_end,
        }));
        self.note_known_end(again.as_ref().and_then(|(_, preview)| preview.known_end));
        let is_over = settled.as_ref().is_ok_and(SettledCopy::is_copy_gone);
        let (style, lines) = match &settled {
            Ok(settled) => (if is_over { Style::Strong } else { Style::Warning }, settled.to_lines()),
            Err(error) => (Style::Bad, vec![printable(error)]),
        };
        let is_reviewed = matches!(self.presentation.overlay(), Some(Overlay::Review(_)));
        if is_over && is_reviewed {
            self.close_overlay()?;
        }
        if let (Some(Overlay::Review(review)), Some((copy, preview))) = (self.presentation.overlay(), again) {
            review.is_settling = false;
            review.set_preview(preview);
            review.notice = Some(lines.join("; "));
            self.copy_review = Some(copy);
            return Ok(());
        }
        if is_reviewed && !is_over {
            self.close_overlay()?;
        }
        self.conversation.push_note(lines.iter().map(|line| StyledLine::new(style, line)).collect());
        self.presentation.invalidate();
        Ok(())
    }
}

/// Returns the newest entry of the log among events.
fn newest_seq(events: &[Envelope]) -> Option<Seq> {
    events.iter().filter_map(|envelope| envelope.seq).max()
}

async fn drop_copy(context: &LandContext, id: &SessionId) -> Result<SettledCopy, HostError> {
    let files = discard_copy(context, id).await.map_err(into_usage_error)?;
    let found = context.store.find_sessions(id.as_str()).await.context("the session log")?;
    let known_end = found.into_iter().find(|found| found.id == *id).map(|found| found.last);
    Ok(SettledCopy::Dropped { files, known_end })
}

async fn open_review(
    project: &journeyman_host::ProjectContext,
    id: &SessionId,
) -> Result<(CopyReview, LandingPreview), HostError> {
    let copy = CopyReview::open(project, id).await?;
    let preview = copy.preview().await?;
    Ok((copy, preview))
}
