//! Copies of the tree that a task works in, so that nothing reaches the user's files before it is
//! to.
//!
//! A copy is an overlay where the system has them, or else a directory. Its record names it; the
//! contents it is made of lie among the project's. What is in it is compared with the checkpoint it
//! was made from.

use std::sync::Arc;

use journeyman_protocol::{RelPath, SessionId, UnixMillis};
use journeyman_sandbox::ProjectCopy;

use crate::copies::info::{CopyInfo, CopyTools};
use crate::copies::isolated::IsolatedCopy;
use crate::copies::location::CopyLocation;
use crate::copies::record::{CopyRecord, CopyRecordState};
use crate::copies::tier::IsolationTier;
use crate::copies::tiers::copy_request::CopyRequest;
use crate::error::WorkspaceError;
use crate::options::Options;
use crate::workspace::{Workspace, open_project_copy};

pub(crate) mod info;
pub(crate) mod isolated;
pub(crate) mod location;
pub(crate) mod record;
pub(crate) mod refresh;
pub(crate) mod repair;
pub(crate) mod tier;
pub(crate) mod tiers;

/// The label of the checkpoint that a copy is made from.
const BASE_LABEL: &str = "before the isolated run";
/// The label of the checkpoint that a scratch copy is made from.
const SCRATCH_LABEL: &str = "before something is tried out in a copy";

/// A copy that was just made.
struct NewCopy {
    workspace: Arc<Workspace>,
    record: CopyRecord,
    unavailable_tiers: Vec<(IsolationTier, String)>,
    left_out: Vec<(RelPath, String)>,
}

impl Workspace {
    /// Returns access to the copies of this tree.
    #[must_use]
    pub fn copies(&self) -> Copies<'_> {
        Copies { workspace: self }
    }
}

/// Makes, opens, lists and discards copies of a tree.
#[derive(Debug)]
pub struct Copies<'a> {
    pub(crate) workspace: &'a Workspace,
}

impl Copies<'_> {
    /// Makes a copy of this tree for a session, by the first tier that works here. It outlives what
    /// comes back only if that is [kept](IsolatedCopy::keep). A checkpoint of the tree is made
    /// first. Links are copied as links; pipes, sockets and devices are left out. The overlay shows
    /// ignored files as they are; the other tiers leave them out, and commands see ignored
    /// directories as the tree has them.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with each tier's reason; [`WorkspaceError::CopyExists`];
    /// [`WorkspaceError::Busy`] when one is being made right now; as [`Workspace::checkpoint`].
    pub fn create(&self, session: &SessionId, means: &CopyTools<'_>) -> Result<IsolatedCopy, WorkspaceError> {
        self.create_with_checkpoint(session, (session, BASE_LABEL), means)
    }

    /// Makes a copy that isn't a session's place of work, for something that `owner` tries out. The
    /// checkpoint is the owner's.
    ///
    /// # Errors
    /// As [`Copies::create`].
    pub fn create_scratch(
        &self,
        name: &SessionId,
        owner: &SessionId,
        means: &CopyTools<'_>,
    ) -> Result<IsolatedCopy, WorkspaceError> {
        self.create_with_checkpoint(name, (owner, SCRATCH_LABEL), means)
    }

    fn create_with_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: (&SessionId, &str),
        means: &CopyTools<'_>,
    ) -> Result<IsolatedCopy, WorkspaceError> {
        location::sweep_copies(self.workspace);
        let place = CopyLocation::of(self.workspace, session);
        let held = place.acquire()?;
        match place.read_record()? {
            CopyRecordState::Nothing => place.clear()?,
            CopyRecordState::Damaged(_) | CopyRecordState::Record(_) => {
                return Err(WorkspaceError::CopyExists { session: session.clone() });
            }
        }
        let made = self.make_copy(session, checkpoint, means, &place);
        let NewCopy { workspace, record, unavailable_tiers, left_out } = made.inspect_err(|_| {
            // The next call sweeps what can't be taken away now.
            let _next_time = place.remove();
        })?;
        let info = record.info.clone();
        Ok(IsolatedCopy { workspace, info, unavailable_tiers, left_out, record, place, _held: held })
    }

    fn make_copy(
        &self,
        session: &SessionId,
        (owner, label): (&SessionId, &str),
        means: &CopyTools<'_>,
        place: &CopyLocation,
    ) -> Result<NewCopy, WorkspaceError> {
        let (base, tree) = self.workspace.checkpoint_with_tree(owner, label)?;
        let making = CopyRequest { workspace: self.workspace, tree: &tree, place, means };
        let mut unavailable_tiers = Vec::new();
        for tier in means.tiers {
            let made = match tiers::make_copy(making, *tier) {
                Ok(made) => made,
                Err(reason) => {
                    unavailable_tiers.push((*tier, reason.0));
                    place.clear()?;
                    continue;
                }
            };
            let created = self
                .workspace
                .project
                .options
                .clock
                .as_ref()
                .map_or(UnixMillis(0), journeyman_protocol::Clock::now);
            let info = CopyInfo { session: session.clone(), tier: *tier, created, base, holder: None };
            let record = CopyRecord::new(info, made.beside);
            let opened = self.open_copy_workspace(made.base.clone(), place)?;
            opened.snapshots.seed_with(Arc::clone(&made.seed))?;
            record.write(place.dir())?;
            let (workspace, left_out) = (Arc::new(opened), made.left_out);
            return Ok(NewCopy { workspace, record, unavailable_tiers, left_out });
        }
        Err(WorkspaceError::NoCopy { reasons: unavailable_tiers })
    }

    pub(crate) fn open_copy_workspace(
        &self,
        base: ProjectCopy,
        place: &CopyLocation,
    ) -> Result<Workspace, WorkspaceError> {
        // The copy's own directory of state goes with the copy.
        let removed_dir = Some(self.workspace.project.options.removed_dir_path());
        let options =
            Options { state_dir: place.state_dir(), removed_dir, ..self.workspace.project.options.clone() };
        open_project_copy(self.workspace.root(), base, self.workspace.project.blob_store.dir(), options)
    }

    /// Opens a session's copy again, such as after a restart.
    ///
    /// # Errors [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when another process has
    /// it open; [`WorkspaceError::NoCopy`] when it can't be mounted any more;
    /// [`WorkspaceError::State`] when its record is damaged.
    pub fn open(&self, session: &SessionId, means: &CopyTools<'_>) -> Result<IsolatedCopy, WorkspaceError> {
        let unknown = || WorkspaceError::UnknownCopy { session: session.clone() };
        let place = CopyLocation::of(self.workspace, session);
        let held = place.acquire_existing()?.ok_or_else(unknown)?;
        let mut record = match place.read_record()? {
            CopyRecordState::Record(record) => *record,
            CopyRecordState::Nothing => {
                place.remove()?;
                return Err(unknown());
            }
            CopyRecordState::Damaged(reason) => return Err(damaged_error(&place, reason)),
        };
        place.finish_hand_over(&mut record)?;
        let history = self.workspace.project.history()?;
        if location::is_copy_landed(&record, &history) {
            place.remove()?;
            return Err(unknown());
        }
        if let Some((landing, _)) = history.landing_of(session)
            && landing > record.opened_after
        {
            record.opened_after = landing;
            record.write(place.dir())?;
        }
        let refused = |reason: crate::copies::info::UnavailableReason| WorkspaceError::NoCopy {
            reasons: vec![(record.info.tier, reason.0)],
        };
        let base = tiers::reopen_copy(self.workspace, &record, &place, means).map_err(refused)?;
        refresh::recover_refresh(self.workspace, base.clone(), &place.refresh_dir())?;
        let workspace = Arc::new(self.open_copy_workspace(base, &place)?);
        if !record.is_of_this_boot() && record.info.tier != IsolationTier::Overlay {
            repair::repair_torn_files(&workspace).map_err(refused)?;
            record.note_boot();
            record.write(place.dir())?;
        }
        // What was written down of it isn't so any more once it is worked in.
        self.workspace.landings().forget_changes(session)?;
        let info = record.info.clone();
        let (unavailable_tiers, left_out) = (Vec::new(), Vec::new());
        Ok(IsolatedCopy { workspace, info, unavailable_tiers, left_out, record, place, _held: held })
    }

    /// Makes the copy of a session another one's, with its files, its journal and its checkpoints.
    /// The first session has none then. A crash leaves it with one of both.
    ///
    /// # Errors [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::CopyExists`] when the other
    /// session has one; [`WorkspaceError::Busy`] when another process has it open;
    /// [`WorkspaceError::State`] when it can't be renamed or its record is damaged.
    pub fn hand_over(&self, from: &SessionId, to: &SessionId) -> Result<(), WorkspaceError> {
        let unknown = || WorkspaceError::UnknownCopy { session: from.clone() };
        let (place, other) = (CopyLocation::of(self.workspace, from), CopyLocation::of(self.workspace, to));
        if !matches!(other.read_record()?, CopyRecordState::Nothing) {
            return Err(WorkspaceError::CopyExists { session: to.clone() });
        }
        let _held = place.acquire_existing()?.ok_or_else(unknown)?;
        let mut record = match place.read_record()? {
            CopyRecordState::Record(record) => *record,
            CopyRecordState::Nothing => return Err(unknown()),
            CopyRecordState::Damaged(reason) => return Err(damaged_error(&place, reason)),
        };
        place.finish_hand_over(&mut record)?;
        if location::is_copy_landed(&record, &self.workspace.project.history()?) {
            return Err(unknown());
        }
        place.hand_over(&other, record)
    }

    /// Returns the copies of this tree, oldest first. Removes copies that a crash left half made.
    ///
    /// # Errors
    /// [`WorkspaceError::State`].
    pub fn list(&self) -> Result<Vec<CopyInfo>, WorkspaceError> {
        location::sweep_copies(self.workspace);
        let mut found = Vec::new();
        for place in location::all_locations(self.workspace)? {
            if let CopyRecordState::Record(record) = place.read_record()? {
                found.push(CopyInfo { holder: place.holder(), ..record.info });
            }
        }
        found.sort_by(|one, other| (one.created, &one.session).cmp(&(other.created, &other.session)));
        Ok(found)
    }

    /// Returns true if all that a session did in its copy is in this tree, as the journal says:
    /// whatever is left of the copy isn't needed any more.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the journal can't be read.
    pub fn is_landed(&self, session: &SessionId) -> Result<bool, WorkspaceError> {
        let is_kept = self.list()?.iter().any(|copy| copy.session == *session);
        let landing = self.workspace.project.history()?.landing_of(session);
        Ok(!is_kept && landing.is_some_and(|(_, in_effect)| in_effect))
    }

    /// Removes a copy with all that was changed in it.
    ///
    /// # Errors [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when another process has
    /// it open; failures of the disk.
    pub fn discard(&self, session: &SessionId) -> Result<(), WorkspaceError> {
        let unknown = || WorkspaceError::UnknownCopy { session: session.clone() };
        let place = CopyLocation::of(self.workspace, session);
        let _held = place.acquire_existing()?.ok_or_else(unknown)?;
        let was_there = !matches!(place.read_record()?, CopyRecordState::Nothing);
        place.remove()?;
        if was_there { Ok(()) } else { Err(unknown()) }
    }
}

fn damaged_error(place: &CopyLocation, reason: &'static str) -> WorkspaceError {
    crate::state::lock::state_error("read the record in", place.dir(), std::io::Error::other(reason))
}
