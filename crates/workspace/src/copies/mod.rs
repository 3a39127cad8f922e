//! Copies of the tree that a task works in, so that nothing reaches the user's files before it is to.
//!
//! A copy is an overlay where the system has them, or else a directory. Its record names it; the contents it is made
//! of lie among the project's. What is in it is compared with the checkpoint it was made from.

use std::fmt;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_protocol::{RelPath, SessionId, UnixMillis};
use journeyman_sandbox::{Base, Sandbox};
use serde::{Deserialize, Serialize};

use crate::error::WorkspaceError;
use crate::journal::history::History;
use crate::limits::Options;
use crate::state::lock::Holding;
use crate::workspace::Workspace;

use crate::copies::location::Place;
use crate::copies::record::{Found, Record};
use crate::copies::tiers::Making;

pub(crate) mod location;
pub(crate) mod mend;
pub(crate) mod record;
pub(crate) mod refresh;
pub(crate) mod tiers;

/// The label of the checkpoint that a copy is made from.
const BASE_LABEL: &str = "before the isolated run";

/// How a copy is made, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// An overlay: nothing is copied, changes lie in a layer of their own. Ignored files are seen too.
    Overlay,
    /// Files that share their blocks with the tree's.
    Reflink,
    /// What git has, checked out, and what differs from it copied.
    Worktree,
    /// Every file that isn't ignored, copied.
    Copy,
}

impl Tier {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Overlay, Self::Reflink, Self::Worktree, Self::Copy];
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlay => "overlay",
            Self::Reflink => "reflink",
            Self::Worktree => "worktree",
            Self::Copy => "copy",
        })
    }
}

/// What making a copy needs.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// It mounts overlays.
    pub sandbox: &'a Sandbox,
    /// The user's git; without it there is no worktree tier.
    pub git: Option<&'a Git>,
    /// The tiers to try, in this order.
    pub tiers: &'a [Tier],
}

/// A copy of the tree, open. While it lives, nobody else can open, land or discard it.
#[derive(Debug)]
pub struct Isolated {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) info: CopyInfo,
    unavailable_tiers: Vec<(Tier, String)>,
    left_out: Vec<(RelPath, String)>,
    record: Record,
    place: Place,
    _held: Holding,
}

/// A copy that was just made.
struct Fresh {
    workspace: Arc<Workspace>,
    record: Record,
    unavailable_tiers: Vec<(Tier, String)>,
    left_out: Vec<(RelPath, String)>,
}

/// What is known of a copy without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyInfo {
    /// The session whose copy it is; it names it.
    pub session: SessionId,
    /// How it was made.
    pub tier: Tier,
    /// When.
    pub created: UnixMillis,
    /// The checkpoint of the user's tree that it was made from.
    pub base: crate::change::CheckpointId,
    /// Who has it open, such as `pid 123`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// What [`Isolated::refresh`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refreshed {
    /// Files that were changed in the user's tree meanwhile, and are so in the copy now.
    pub taken: Vec<RelPath>,
    /// Files that both changed, and that were merged.
    pub merged: Vec<RelPath>,
    /// Files that both changed in ways that don't go together; the copy has its own version of them, and landing it
    /// asks again.
    pub conflicts: Vec<RelPath>,
}

impl Isolated {
    /// The copy as a workspace: its root is the user's, its files are its own.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// What is known of it.
    #[must_use]
    pub fn info(&self) -> &CopyInfo {
        &self.info
    }

    /// The better tiers that couldn't be had, each with the reason.
    #[must_use]
    pub fn unavailable_tiers(&self) -> &[(Tier, String)] {
        &self.unavailable_tiers
    }

    /// What the copy hasn't as the tree has it, such as a file that nobody may read, each with the reason. Known
    /// after [`Workspace::isolate`] only.
    #[must_use]
    pub fn left_out(&self) -> &[(RelPath, String)] {
        &self.left_out
    }
}

impl Workspace {
    /// Makes a copy of this tree for a session, by the first tier that works here. A checkpoint of the tree is made
    /// first. Links are copied as links; pipes, sockets and devices are left out. The overlay shows ignored files
    /// as they are; the other tiers leave them out, and commands see ignored directories as the tree has them.
    ///
    /// # Errors
    /// [`WorkspaceError::NoCopy`] with each tier's reason; [`WorkspaceError::CopyExists`];
    /// [`WorkspaceError::Busy`] when one is being made right now; as [`Workspace::checkpoint`].
    pub fn isolate(&self, session: &SessionId, means: &Means<'_>) -> Result<Isolated, WorkspaceError> {
        location::sweep(self);
        let place = Place::of(self, session);
        let held = place.hold()?;
        match place.record()? {
            Found::Nothing => place.clear()?,
            Found::Damaged(_) | Found::Record(_) => {
                return Err(WorkspaceError::CopyExists { session: session.clone() });
            }
        }
        let made = self.make_copy(session, means, &place);
        let Fresh { workspace, record, unavailable_tiers, left_out } = made.inspect_err(|_| {
            // The next call sweeps what can't be taken away now.
            let _next_time = place.remove();
        })?;
        let info = record.info.clone();
        Ok(Isolated { workspace, info, unavailable_tiers, left_out, record, place, _held: held })
    }

    fn make_copy(
        &self,
        session: &SessionId,
        means: &Means<'_>,
        place: &Place,
    ) -> Result<Fresh, WorkspaceError> {
        let base = self.checkpoint(session, BASE_LABEL)?;
        let tree = self.newest_tree().unwrap_or_default();
        let making = Making { workspace: self, tree: &tree, place, means };
        let mut unavailable_tiers = Vec::new();
        for tier in means.tiers {
            let made = match making.attempt(*tier) {
                Ok(made) => made,
                Err(reason) => {
                    unavailable_tiers.push((*tier, reason.0));
                    place.clear()?;
                    continue;
                }
            };
            let created = self.options.clock.as_ref().map_or(UnixMillis(0), crate::limits::Clock::now);
            let info = CopyInfo { session: session.clone(), tier: *tier, created, base, holder: None };
            let record = Record::new(info, made.beside);
            let opened = self.open_as_copy(made.base.clone(), place)?;
            opened.seed(Arc::clone(&made.seed))?;
            record.write(place.dir())?;
            let (workspace, left_out) = (Arc::new(opened), made.left_out);
            return Ok(Fresh { workspace, record, unavailable_tiers, left_out });
        }
        Err(WorkspaceError::NoCopy { reasons: unavailable_tiers })
    }

    pub(crate) fn open_as_copy(&self, base: Base, place: &Place) -> Result<Self, WorkspaceError> {
        // The copy's own directory of state goes with the copy.
        let removed_dir = Some(self.options.removed());
        let options = Options { state_dir: place.state(), removed_dir, ..self.options.clone() };
        Self::open_base(self.root(), base, self.vault.dir(), options)
    }

    /// Opens a session's copy again, such as after a restart.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when somebody has it open;
    /// [`WorkspaceError::NoCopy`] when it can't be mounted any more; [`WorkspaceError::State`] when its record is
    /// damaged.
    pub fn open_copy(&self, session: &SessionId, means: &Means<'_>) -> Result<Isolated, WorkspaceError> {
        let unknown = || WorkspaceError::UnknownCopy { session: session.clone() };
        let place = Place::of(self, session);
        let held = place.hold_existing()?.ok_or_else(unknown)?;
        let mut record = match place.record()? {
            Found::Record(record) => *record,
            Found::Nothing => {
                place.remove()?;
                return Err(unknown());
            }
            Found::Damaged(reason) => {
                let source = std::io::Error::other(reason);
                return Err(crate::state::lock::state_error("read the record in", place.dir(), source));
            }
        };
        let history = self.history()?;
        if location::is_settled(&record, &history) {
            place.remove()?;
            return Err(unknown());
        }
        if let Some((landing, _)) = history.landing_of(session)
            && landing > record.opened_after
        {
            record.opened_after = landing;
            record.write(place.dir())?;
        }
        let refused =
            |reason: tiers::Reason| WorkspaceError::NoCopy { reasons: vec![(record.info.tier, reason.0)] };
        let base = tiers::reopen(self, &record, &place, means).map_err(refused)?;
        refresh::finish(self, base.clone(), &place.refreshing())?;
        let workspace = Arc::new(self.open_as_copy(base, &place)?);
        if !record.is_of_this_boot() && record.info.tier != Tier::Overlay {
            mend::heal(&workspace).map_err(refused)?;
            record.note_boot();
            record.write(place.dir())?;
        }
        // What was written down of it isn't so any more once it is worked in.
        self.forget_changes(session)?;
        let info = record.info.clone();
        let (unavailable_tiers, left_out) = (Vec::new(), Vec::new());
        Ok(Isolated { workspace, info, unavailable_tiers, left_out, record, place, _held: held })
    }

    /// The copies of this tree, oldest first. What a crash left half made is taken away on the way.
    ///
    /// # Errors
    /// [`WorkspaceError::State`].
    pub fn copies(&self) -> Result<Vec<CopyInfo>, WorkspaceError> {
        location::sweep(self);
        let mut found = Vec::new();
        for place in location::all(self)? {
            if let Found::Record(record) = place.record()? {
                found.push(CopyInfo { holder: place.holder(), ..record.info });
            }
        }
        found.sort_by(|one, other| (one.created, &one.session).cmp(&(other.created, &other.session)));
        Ok(found)
    }

    /// Whether all that a session did in its copy is in this tree, as the journal says: whatever is left of the copy
    /// isn't needed any more.
    ///
    /// # Errors
    /// [`WorkspaceError::State`] when the journal can't be read.
    pub fn is_landed(&self, session: &SessionId) -> Result<bool, WorkspaceError> {
        let is_kept = self.copies()?.iter().any(|copy| copy.session == *session);
        let landing = self.history()?.landing_of(session);
        Ok(!is_kept && landing.is_some_and(|(_, in_effect)| in_effect))
    }

    pub(crate) fn history(&self) -> Result<History, WorkspaceError> {
        Ok(History::new(self.journal().lines()?))
    }

    /// Removes a copy with all that was changed in it.
    ///
    /// # Errors
    /// [`WorkspaceError::UnknownCopy`]; [`WorkspaceError::Busy`] when somebody has it open; failures of the disk.
    pub fn discard_copy(&self, session: &SessionId) -> Result<(), WorkspaceError> {
        let unknown = || WorkspaceError::UnknownCopy { session: session.clone() };
        let place = Place::of(self, session);
        let _held = place.hold_existing()?.ok_or_else(unknown)?;
        let was_there = !matches!(place.record()?, Found::Nothing);
        place.remove()?;
        if was_there { Ok(()) } else { Err(unknown()) }
    }
}
