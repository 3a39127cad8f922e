//! The project's files, as the edit engine reads them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use journeyman_edit::{FileProblem, Files, MAX_FILE_BYTES};
use journeyman_protocol::RelPath;
use journeyman_workspace::{FileContent, ListOptions, Workspace, WorkspaceError};

/// Maximum number of files searched for a text that isn't in the named file.
const MAX_SEARCHED_FILES: usize = 20_000;

/// The files of a project, each read at most once.
pub struct ProjectFiles<'a> {
    workspace: &'a Workspace,
    read: RefCell<HashMap<RelPath, Option<FileContent>>>,
}

impl<'a> ProjectFiles<'a> {
    /// Creates the view of a project without reading any file.
    #[must_use]
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, read: RefCell::default() }
    }

    /// Returns the content of a file; `None` where there is no such file.
    ///
    /// # Errors
    /// An error of the workspace if the path exists and can't be read.
    pub fn content(&self, path: &RelPath) -> Result<Option<FileContent>, WorkspaceError> {
        if let Some(known) = self.read.borrow().get(path) {
            return Ok(known.clone());
        }
        let content = match self.workspace.read(path, MAX_FILE_BYTES as u64) {
            Ok(content) => Some(content),
            Err(WorkspaceError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        self.read.borrow_mut().insert(path.clone(), content.clone());
        Ok(content)
    }
}

impl Files for ProjectFiles<'_> {
    fn text(&self, path: &RelPath) -> Result<Option<Cow<'_, str>>, FileProblem> {
        match self.content(path) {
            Ok(None) => Ok(None),
            Ok(Some(content)) => match content.text() {
                Some(text) => Ok(Some(Cow::Owned(text.to_owned()))),
                None => Err(FileProblem::Binary),
            },
            Err(error) => Err(FileProblem::Unreadable(error.to_string())),
        }
    }

    fn other_paths(&self) -> Vec<RelPath> {
        let options = ListOptions { limit: MAX_SEARCHED_FILES, ..ListOptions::default() };
        // Only used for a more helpful message.
        self.workspace.list(options).map(|listing| listing.paths).unwrap_or_default()
    }
}
