//! A running session by lines: its events as they come, questions about its calls, and Ctrl-C.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use journeyman_agent::{SessionHandle, Subscription};
use journeyman_host::format::printable;
use journeyman_host::renderer::{ProgressDetail, Renderer};
use journeyman_host::resume::wait_until_reopened;
use journeyman_host::{HostError, SessionTemplate, Surface, SurfaceInput, watch_session};
use journeyman_protocol::{Envelope, Event, RunReport};

use crate::approval_prompter::ApprovalPrompter;
use crate::stop_signals::{StopSignals, exit_interrupted};

/// Shows a session on standard error until all of its tasks have ended, and closes the session.
/// `on_event` gets each event before it is shown.
///
/// # Errors
/// [`HostError`] where the session's log or `on_event` fails.
pub async fn watch_by_lines(
    template: &SessionTemplate,
    session: SessionHandle,
    mut events: Subscription,
    detail: ProgressDetail,
    on_event: impl FnMut(&Envelope) -> Result<(), HostError>,
) -> Result<Arc<RunReport>, HostError> {
    let mut surface = LineSurface {
        on_event,
        renderer: Renderer::new(detail),
        approvals: ApprovalPrompter::new(template.config_dir.clone()),
        signals: StopSignals::listen()?,
        is_stopping: false,
    };
    // First of all: probing the sandbox for the notes may take a moment.
    template.project.sandbox_notes().await.iter().for_each(|note| surface.renderer.show_note(note));
    if let Some(reason) = &template.no_copy_reason {
        let reason = printable(reason);
        surface.renderer.show_note(&format!("works in your files: no copy is cheap here ({reason})"));
    }
    let watched = watch_session(&session, &mut events, &mut surface).await;
    surface.renderer.set_events_held(false);
    surface.renderer.end_line();
    tokio::select! {
        biased;
        // Also after a failure: background commands end, and other processes may have the session.
        () = session.close() => {}
        () = surface.signals.next() => exit_interrupted(),
    }
    watched
}

/// Shows a reopened session on standard error until the task that was cut off is closed, and closes
/// the session.
///
/// # Errors
/// [`HostError`] where the session ends before that, or the session's log fails.
pub async fn watch_task_close_by_lines(
    session: &SessionHandle,
    mut events: Subscription,
    detail: ProgressDetail,
) -> Result<(), HostError> {
    let mut renderer = Renderer::new(detail);
    let closed = wait_until_reopened(&mut events, &mut |event: &Event| renderer.show_event(event)).await;
    session.close().await;
    closed?;
    renderer.show_note(&format!(
        "its task is closed; to go on with the session: jm resume {} \"MESSAGE\"",
        session.id()
    ));
    Ok(())
}

/// The terminal, written line by line, as a surface of a session.
struct LineSurface<F> {
    on_event: F,
    renderer: Renderer,
    approvals: ApprovalPrompter,
    signals: StopSignals,
    is_stopping: bool,
}

impl<F: FnMut(&Envelope) -> Result<(), HostError>> Surface for LineSurface<F> {
    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        (self.on_event)(envelope)?;
        self.renderer.show_envelope(envelope);
        self.approvals.handle_event(envelope);
        self.renderer.set_events_held(self.approvals.is_asking());
        Ok(())
    }

    fn next_input(&mut self) -> Pin<Box<dyn Future<Output = SurfaceInput> + '_>> {
        Box::pin(async move {
            loop {
                self.approvals.show_next();
                self.renderer.set_events_held(self.approvals.is_asking());
                tokio::select! {
                    biased;
                    () = self.signals.next() => {
                        // The first signal stops cleanly, the second at once: the kernel then kills
                        // sandboxed processes.
                        if self.is_stopping {
                            exit_interrupted();
                        }
                        self.is_stopping = true;
                        self.renderer.show_note("stopping… (Ctrl-C again stops at once)");
                        return SurfaceInput::Interrupt;
                    }
                    (call, answer) = self.approvals.next_answer() => return SurfaceInput::Answer(call, answer),
                    () = self.renderer.redraw_progress() => {}
                }
            }
        })
    }
}
