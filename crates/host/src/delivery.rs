//! Decides if a run works in the project or in an isolated copy, and if its changes are landed,
//! kept or committed.

use std::collections::BTreeSet;

use journeyman_agent::isolation::{CommitOptions, LandRequest};
use journeyman_agent::{AgentError, StartOptions};
use journeyman_git::{GitError, HookRunMode};
use journeyman_protocol::{Envelope, Mode, RelPath, RunReport};

use crate::settings::ResolvedSettings;
use crate::{Confirmations, Context as _, HostError};

/// Maximum number of recorded uncommitted files. With more, a resumed session that was cut off
/// attributes all uncommitted files to the user.
const MAX_RECORDED_FILES: usize = 10_000;

/// The tree that a session works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkLocation {
    /// In the project itself.
    Project,
    /// In an isolated copy.
    Copy,
    /// In an isolated copy if that is cheap (an overlay, or shared blocks of a small tree), else in
    /// the project itself.
    CheapCopy,
}

impl WorkLocation {
    /// Returns the default location for these settings.
    #[must_use]
    pub fn from_settings(settings: &ResolvedSettings) -> Self {
        match settings.asked.isolate.or(settings.config.isolate) {
            Some(true) => Self::Copy,
            Some(false) => Self::Project,
            // A session that changes nothing needs no copy.
            None if settings.config.mode == Some(Mode::Plan) => Self::Project,
            None => Self::CheapCopy,
        }
    }
}

/// A user's options for the isolated copy, landing and committing.
#[derive(Debug, Clone, Default)]
pub struct DeliveryOptions {
    /// Work in a copy (true) or in the project (false); overrides the configuration.
    pub isolate: Option<bool>,
    /// Leave the work in its copy, also when it is verified.
    pub no_land: bool,
    /// Commit the change when it is verified.
    pub commit: bool,
    /// Commit on this new branch.
    pub branch: Option<String>,
    /// The commit's message.
    pub message: Option<String>,
    /// Commit without running hooks.
    pub no_verify: bool,
}

impl DeliveryOptions {
    /// Returns the requested commit.
    ///
    /// # Errors
    /// [`HostError::Usage`] for options of a commit without a commit.
    pub fn requested_commit(&self) -> Result<Option<CommitOptions>, HostError> {
        if !self.commit && self.branch.is_none() {
            if self.message.is_some() {
                return Err(HostError::usage("--message is a commit's; it goes with --commit or --branch"));
            }
            if self.no_verify {
                return Err(HostError::usage("--no-verify is a commit's; it goes with --commit or --branch"));
            }
            return Ok(None);
        }
        let hooks = if self.no_verify { HookRunMode::Skipped } else { HookRunMode::Confined };
        Ok(Some(CommitOptions { branch: self.branch.clone(), message: self.message.clone(), hooks }))
    }
}

/// The delivery of a session's work: landed, kept in its copy, or committed.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub(crate) workplace: WorkLocation,
    /// `None` keeps the work in its copy.
    pub(crate) landing: Option<LandRequest>,
    pub(crate) commit: Option<CommitOptions>,
    /// Files that were uncommitted when the session began; known if the session is to commit.
    pub(crate) uncommitted: Option<BTreeSet<RelPath>>,
}

/// A delivered run.
#[derive(Debug)]
pub struct DeliveredRun {
    /// The report, including the result of the delivery.
    pub report: RunReport,
    /// Events that were written into the session's log after its end.
    pub events: Vec<Envelope>,
    /// Why the work could not be landed; it is kept in its copy then.
    pub failure: Option<AgentError>,
}

impl Delivery {
    /// Makes the delivery of a new session. Options override `workplace`.
    ///
    /// # Errors
    /// [`HostError::Usage`] for options that contradict each other.
    pub fn new(options: &DeliveryOptions, workplace: WorkLocation) -> Result<Self, HostError> {
        let workplace = match options.isolate {
            Some(true) => WorkLocation::Copy,
            Some(false) => WorkLocation::Project,
            None => workplace,
        };
        // Work for a new branch never touches the user's files.
        let workplace = match &options.branch {
            Some(_) if options.isolate == Some(false) => {
                return Err(HostError::usage(
                    "--branch works in a copy, so that your files stay as they are; it doesn't go with --in-place",
                ));
            }
            Some(_) => WorkLocation::Copy,
            None if options.no_land && workplace == WorkLocation::CheapCopy => WorkLocation::Copy,
            None => workplace,
        };
        if options.no_land && workplace == WorkLocation::Project {
            return Err(HostError::usage(
                "--no-land keeps the work in a copy; it doesn't go with --in-place or `isolate = false`",
            ));
        }
        if options.no_land && (options.commit || options.branch.is_some()) {
            return Err(HostError::usage(
                "--no-land leaves the work in its copy, where nothing is committed; `jm land --commit` does both later",
            ));
        }
        let commit = options.requested_commit()?;
        let landing =
            (!options.no_land).then(|| LandRequest { commit: commit.clone(), ..LandRequest::default() });
        Ok(Self { workplace, landing, commit, uncommitted: None })
    }

    /// Creates the delivery of a resumed session. Options override those that the session was
    /// started with. If the session `keeps` its work in the copy, as a candidate does, only `land`
    /// lands the work.
    ///
    /// # Errors
    /// [`HostError::Usage`] for options that contradict each other or the earlier ones.
    pub fn for_resumed(
        options: &DeliveryOptions,
        workplace: WorkLocation,
        asked: &StartOptions,
        keeps: bool,
        land: bool,
    ) -> Result<Self, HostError> {
        let keeps = keeps && !land;
        let commits = options.commit || options.branch.is_some();
        if keeps && (commits || options.isolate == Some(false)) {
            return Err(HostError::usage(
                "the work of this session was to stay in its copy; with --land it is landed, and committed where you \
                 say so",
            ));
        }
        let mut options = DeliveryOptions { no_land: options.no_land || keeps, ..options.clone() };
        let earlier = asked.commit.as_ref().filter(|_| !commits && !options.no_land);
        if let Some(CommitOptions { branch, message, hooks }) = earlier {
            let branch = branch.clone().filter(|_| options.isolate != Some(false));
            (options.commit, options.branch) = (true, branch);
            options.no_verify |= *hooks == HookRunMode::Skipped;
            options.message = options.message.or_else(|| message.clone());
        }
        let mut delivery = Self::new(&options, workplace)?;
        delivery.uncommitted = asked.uncommitted.as_ref().map(|paths| paths.iter().cloned().collect());
        Ok(delivery)
    }

    /// Records the delivery in `asked`, so that a resumed session uses it again.
    pub(crate) fn record_in_options(&self, asked: &mut StartOptions) {
        asked.isolate = Some(self.workplace != WorkLocation::Project);
        asked.keep = self.landing.is_none();
        asked.commit.clone_from(&self.commit);
        let recorded = self.uncommitted.as_ref().filter(|paths| paths.len() <= MAX_RECORDED_FILES);
        asked.uncommitted = recorded.map(|paths| paths.iter().cloned().collect());
    }

    /// Returns the request for landing the work; `None` if the work stays in its copy.
    #[must_use]
    pub fn land_request(&self) -> Option<&LandRequest> {
        self.landing.as_ref()
    }

    /// Returns the tree that the session works in.
    #[must_use]
    pub fn work_location(&self) -> WorkLocation {
        self.workplace
    }
}

/// Asks the person about hooks that a commit would run outside of the sandbox. Without consent, the
/// commit is refused with the reason.
pub(crate) fn confirm_unsandboxed_hooks(
    commit: &CommitOptions,
    checked: Result<(), GitError>,
    diff: &str,
    prompts: &dyn Confirmations,
) -> Result<CommitOptions, HostError> {
    let mut commit = commit.clone();
    if let Err(error) = checked
        && let GitError::CommitRefused(refusal) = &error
        && refusal.needs_person()
        && prompts.confirm_commit(refusal, diff).context("asking")?
    {
        commit.hooks = HookRunMode::Outside;
    }
    Ok(commit)
}
