//! A copy that is made while the model answers the first request.

use journeyman_protocol::SessionId;
use tokio::task::JoinHandle;

use super::{Isolation, WorkCopy};
use crate::AgentError;
use crate::blocking::{background_error, run_blocking};

const COPYING_LABEL: &str = "copying the project";

/// A copy that a session is to work in and that isn't made yet. The first request needs only the
/// list of files, which the project has too, so it doesn't wait for the copy.
#[derive(Debug)]
pub struct PlannedCopy {
    isolation: Isolation,
    is_required: bool,
    making: Option<JoinHandle<Result<WorkCopy, AgentError>>>,
}

impl PlannedCopy {
    /// Plans a copy. If the copy can't be made, a session ends with an error where it is required,
    /// and works in the project itself where it isn't.
    #[must_use]
    pub fn new(isolation: Isolation, is_required: bool) -> Self {
        Self { isolation, is_required, making: None }
    }

    /// Returns true if the session must not work in the project itself.
    pub(crate) fn is_required(&self) -> bool {
        self.is_required
    }

    /// Starts making the copy in the background, once.
    pub(crate) fn start(&mut self, session: &SessionId) {
        if self.making.is_none() {
            let (isolation, session) = (self.isolation.clone(), session.clone());
            self.making = Some(tokio::task::spawn_blocking(move || isolation.open_or_create(&session)));
        }
    }

    /// Returns the copy once it is made.
    pub(crate) async fn finish(&mut self, session: &SessionId) -> Result<WorkCopy, AgentError> {
        if let Some(making) = self.making.take() {
            return making.await.map_err(|died| background_error(COPYING_LABEL, &died))?;
        }
        let (isolation, session) = (self.isolation.clone(), session.clone());
        run_blocking(COPYING_LABEL, move || isolation.open_or_create(&session)).await?
    }
}
