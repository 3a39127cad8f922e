//! A session as the conversation holds it: opened new, opened again, closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::{CutOffPolicy, EventFilter, SessionHandle, Since, Subscription};
use journeyman_host::config::Environment;
use journeyman_host::events::read_events;
use journeyman_host::known_models::KnownModels;
use journeyman_host::resume::{Resumption, find_resumable};
use journeyman_host::sessions::{SessionClaim, new_session_id};
use journeyman_host::state::StateDirs;
use journeyman_host::{
    Confirmations, Delivery, DeliveryOptions, HostError, PreparedRun, RunOptions, SessionTemplate,
    WorkLocation, configured_model_limits,
};
use journeyman_protocol::{Envelope, Seq, SessionId};

use crate::live_area::StatusLineContext;

/// The name under which this program holds a session, shown by others that find it held.
const LOCK_HOLDER: &str = "chat";

/// Everything that sessions of a conversation are opened with.
pub struct ConversationSetup {
    /// The variables, the home and the current directory.
    pub environment: Environment,
    /// The state directories.
    pub state: Arc<StateDirs>,
    /// The project's root.
    pub root: PathBuf,
    /// The user's options; commands of the conversation change them.
    pub options: RunOptions,
    /// The user's options about where a session works.
    pub delivery: DeliveryOptions,
    /// True to write lines and to draw nothing.
    pub is_plain: bool,
    /// Questions before a session, asked on the terminal as it was.
    pub prompts: &'static dyn Confirmations,
}

/// An open session.
pub(crate) struct OpenSession {
    /// The project and the settings of the session.
    pub(crate) template: SessionTemplate,
    /// The session.
    pub(crate) session: SessionHandle,
    /// The session's events.
    pub(crate) events: Subscription,
    /// Facts for the status line.
    pub(crate) surroundings: StatusLineContext,
    /// Models that the session could go on with.
    pub(crate) models: KnownModels,
    /// True if the log has the session.
    pub(crate) has_log: bool,
    /// True if a run has ended since the session was opened.
    pub(crate) has_ended_run: bool,
    /// Warnings and notes for the person.
    pub(crate) notes: Vec<String>,
}

/// A session that is closed for now, and that the next message opens again.
pub(crate) struct ClosedSession {
    /// The session.
    pub(crate) id: SessionId,
    /// The project and the settings that it had; `None` for one that only was watched.
    pub(crate) template: Option<SessionTemplate>,
    /// True if it works in a copy of the project, also after an earlier one was landed.
    pub(crate) is_in_copy: bool,
    /// True if a run has ended since it was opened.
    pub(crate) has_ended_run: bool,
    /// The last entry of the session's log that the person knows of: what another process adds to
    /// it is neither landed nor dropped unseen.
    pub(crate) known_end: Option<Seq>,
}

impl OpenSession {
    /// Closes what is held of the session, which has ended; `None` for one without a log.
    pub(crate) fn into_closed(self, is_in_copy: bool) -> Option<ClosedSession> {
        let Self { template, session, has_ended_run, has_log, .. } = self;
        let (id, known_end) = (session.id().clone(), Some(session.last_position()));
        let template = Some(template);
        has_log.then_some(ClosedSession { id, template, is_in_copy, has_ended_run, known_end })
    }
}

impl ClosedSession {
    /// Makes a session of which nothing is known but its log.
    pub(crate) fn of_log(id: SessionId, is_in_copy: bool) -> Self {
        Self { id, template: None, is_in_copy, has_ended_run: false, known_end: None }
    }
}

impl ConversationSetup {
    /// Opens a new session. Nothing is written before its first message.
    ///
    /// # Errors
    /// [`HostError`] naming what is missing, such as a model.
    pub(crate) async fn open_new(&self, prompts: &dyn Confirmations) -> Result<OpenSession, HostError> {
        let prepared = PreparedRun::new(&self.environment, &self.root, &self.options, None, Some(prompts))?;
        // In a conversation a person looks on and can take everything back.
        let workplace = match prepared.settings.asked.isolate.or(prepared.settings.config.isolate) {
            Some(true) => WorkLocation::Copy,
            _ => WorkLocation::Project,
        };
        let delivery = Delivery::new(&self.delivery, workplace)?;
        let (surroundings, models, notes) = self.describe_run(&prepared);
        let mut template =
            prepared.into_template(&self.environment, &self.state, &self.root, LOCK_HOLDER, delivery)?;
        let session = template.start(new_session_id()).await?;
        let events = session.subscribe(EventFilter::all(), Since::Now);
        Ok(OpenSession {
            template,
            session,
            events,
            surroundings,
            models,
            has_log: false,
            has_ended_run: false,
            notes,
        })
    }

    /// Reads the events of a session, and opens it again. A task that was cut off goes on.
    ///
    /// # Errors
    /// [`HostError`] where another process has the session, or it can't be opened.
    pub(crate) async fn reopen(
        &mut self,
        id: &SessionId,
        prompts: &dyn Confirmations,
        show: &mut dyn FnMut(&Envelope),
    ) -> Result<OpenSession, HostError> {
        let summary = find_resumable(&self.state, &self.environment, id.as_str(), None).await?;
        let state = Arc::clone(&self.state);
        let claim = SessionClaim::take(&state, &summary.id, LOCK_HOLDER).await?;
        let opened = self.open_claimed(&summary, prompts, show).await;
        // An open session holds itself, under the name of the claim.
        if opened.is_err() {
            claim.release().await;
        }
        opened
    }

    async fn open_claimed(
        &mut self,
        summary: &journeyman_agent::store::SessionSummary,
        prompts: &dyn Confirmations,
        show: &mut dyn FnMut(&Envelope),
    ) -> Result<OpenSession, HostError> {
        let resumption = Resumption::load(&self.environment, &self.state, summary, None).await?;
        let earlier = resumption.earlier.as_ref();
        let prepared =
            PreparedRun::new(&self.environment, &resumption.root, &self.options, earlier, Some(prompts))?;
        let mut delivery_options = self.delivery.clone();
        if !resumption.has_copy && delivery_options.isolate.is_none() {
            delivery_options.isolate = Some(false);
        }
        let delivery = resumption.plan_delivery(&delivery_options, &prepared.settings, false)?;
        let (surroundings, models, notes) = self.describe_run(&prepared);
        self.root.clone_from(&resumption.root);
        let mut last = Seq::START;
        read_events(&self.state, &resumption.session, Seq::START, &mut |envelope| {
            last = envelope.seq.unwrap_or(last);
            show(envelope);
            Ok(())
        })
        .await?;
        let mut template = prepared.into_template(
            &self.environment,
            &self.state,
            &resumption.root,
            LOCK_HOLDER,
            delivery,
        )?;
        let session =
            template.resume(resumption.session.clone(), resumption.state, CutOffPolicy::Continue).await?;
        let events = session.subscribe(EventFilter::all(), Since::Seq(last));
        Ok(OpenSession {
            template,
            session,
            events,
            surroundings,
            models,
            has_log: true,
            has_ended_run: false,
            notes,
        })
    }

    fn describe_run(&self, prepared: &PreparedRun) -> (StatusLineContext, KnownModels, Vec<String>) {
        let config = &prepared.settings.config;
        let limits = configured_model_limits(config, &self.environment).ok().flatten();
        let model = limits.as_ref().map(|(name, _)| name.clone()).or_else(|| config.model.clone());
        let mode = config.mode.map_or("edit", |mode| mode.name());
        let surroundings = StatusLineContext {
            model: model.unwrap_or_default(),
            mode: mode.to_owned(),
            branch: None,
            window: limits.map(|(_, limits)| limits.window),
            is_isolated: false,
            is_watched: false,
            extra: None,
        };
        let models = KnownModels::from_config(config, &self.environment);
        (surroundings, models, prepared.settings.warnings.clone())
    }

    /// Returns the project's root as people read it.
    #[must_use]
    pub(crate) fn shown_root(&self) -> String {
        let home = self.environment.home.as_deref();
        match home.and_then(|home| self.root.strip_prefix(home).ok()) {
            Some(rest) => Path::new("~").join(rest).display().to_string(),
            None => self.root.display().to_string(),
        }
    }
}
