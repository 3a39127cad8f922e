//! Preparing a run: its settings and its model are known before anything is opened.

use std::path::Path;
use std::sync::Arc;

use journeyman_agent::Approver;

use crate::config::Environment;
use crate::models::{Cassette, ConnectedModel, connect};
use crate::sessions::holder_name;
use crate::settings::{EarlierRun, ResolvedSettings, RunOptions, resolve_settings};
use crate::state::{StateDirs, now};
use crate::{Delivery, HostError, Prompts, SessionBuilder, SessionTemplate};

/// The settings and the model of a run.
pub struct PreparedRun {
    /// The merged configuration.
    pub settings: ResolvedSettings,
    /// The person or program that answers questions about tool calls.
    pub approver: Approver,
    connected: ConnectedModel,
}

impl PreparedRun {
    /// Resolves the settings and connects the model. A person answers questions if there are
    /// `prompts`.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong option or configuration.
    pub fn new(
        environment: &Environment,
        root: &Path,
        options: &RunOptions,
        earlier: Option<&EarlierRun>,
        prompts: Option<&dyn Prompts>,
    ) -> Result<Self, HostError> {
        let settings = resolve_settings(environment, root, options, earlier, prompts)?;
        let cassette =
            Cassette { record: options.record.clone(), replay: options.replay.clone(), day: now().to_date() };
        let connected = connect(&settings.config, environment, &cassette, journeyman_agent::Clock::new(now))?;
        let approver = if prompts.is_some() { Approver::Handle } else { Approver::Nobody };
        Ok(Self { settings, approver, connected })
    }

    /// Opens the project. `command` names who holds its sessions.
    ///
    /// # Errors
    /// [`HostError`] naming the part that can't be made.
    pub fn into_template(
        self,
        environment: &Environment,
        state: &Arc<StateDirs>,
        root: &Path,
        command: &str,
        delivery: Delivery,
    ) -> Result<SessionTemplate, HostError> {
        SessionBuilder::new(root)
            .environment(environment.clone())
            .state(Arc::clone(state))
            .settings(self.settings)
            .connected(self.connected)
            .approver(self.approver)
            .delivery(delivery)
            .holder(holder_name(command))
            .build()
    }
}
