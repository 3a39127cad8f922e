//! The options that a workspace is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use journeyman_protocol::{Clock, GuardRules};
use journeyman_store::Blobs;

use crate::limits::Limits;

/// The options that a workspace is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The project's directory of state, such as `projects/<hash of root>/`; made when first
    /// needed.
    pub state_dir: PathBuf,
    /// The store for contents.
    pub blobs: Arc<Blobs>,
    /// The bounds.
    pub limits: Limits,
    /// The time, for what people read; `None` leaves it out.
    pub clock: Option<Clock>,
    /// A directory that holds these and more of the program's own. Where it lies in the tree, it is
    /// as invisible as git's own, and nothing is written there.
    pub own_dir: Option<PathBuf>,
    /// Files that the program itself writes while it works, such as one that its output goes to.
    /// Where they lie in the tree they are no part of it: nobody's change, and nothing is written
    /// there.
    pub own_files: Vec<PathBuf>,
    /// Which paths nobody but the person changes: no copy and no command's layer lands them, except
    /// what an edit in the copy wrote, which was judged by itself. Without it nothing that comes
    /// out of them is looked at for what it is.
    pub guarded: Option<GuardRules>,
    /// The directory to which repositories and guarded files are moved that a command made;
    /// `removed` in the state directory without it.
    pub removed_dir: Option<PathBuf>,
}

impl Options {
    /// Returns options with the default limits and no clock.
    #[must_use]
    pub fn new(state_dir: PathBuf, blobs: Arc<Blobs>) -> Self {
        Self {
            state_dir,
            blobs,
            limits: Limits::default(),
            clock: None,
            own_dir: None,
            own_files: Vec::new(),
            guarded: None,
            removed_dir: None,
        }
    }
}

impl Options {
    /// Returns the directory to which things that a command made are moved.
    pub(crate) fn removed_dir_path(&self) -> PathBuf {
        self.removed_dir.clone().unwrap_or_else(|| self.state_dir.join("removed"))
    }
}
