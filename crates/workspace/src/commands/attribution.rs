//! Looking at the tree at a moment at which no change is half done, and telling whose commands ran
//! then.
//!
//! What a command did is told from two looks at the tree and from what the journal has between
//! them. So a look and its place in the journal have to belong together: a change of somebody else
//! that is in the one and not in the other would be taken for the command's.

use std::sync::Arc;

use journeyman_protocol::{RelPath, SessionId};

use crate::commands::heartbeat::{Span, spans};
use crate::error::WorkspaceError;
use crate::failpoint::Step;
use crate::journal::Mark;
use crate::mutex::lock;
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;

impl Workspace {
    /// Looks at the tree while no change is open, and gives the journal's mark of that moment. Only
    /// where somebody else is changing the tree right then does it wait for the project's lock.
    pub(crate) fn look(
        &self,
        take: impl Fn() -> Result<Arc<Tree>, WorkspaceError>,
    ) -> Result<(Arc<Tree>, Mark), WorkspaceError> {
        if let Some(before) = self.mark_at_rest()? {
            let tree = take()?;
            self.hands().step(Step::Look, None)?;
            if self.mark_at_rest()? == Some(before) {
                return Ok((tree, before));
            }
        }
        self.writing(|writer, _| Ok((take()?, writer.journal.mark()?)))
    }

    pub(crate) fn mark_at_rest(&self) -> Result<Option<Mark>, WorkspaceError> {
        lock(&self.writer).journal.mark_at_rest()
    }

    /// Returns when calls of other sessions ran, or may have, since a command of this one began. Of
    /// those that ended since by themselves, the journal tells.
    pub(crate) fn others_at_work(
        &self,
        session: &SessionId,
        began: i64,
    ) -> Result<Vec<Span>, WorkspaceError> {
        let mut spans = spans(&self.options.state_dir, began)?;
        spans.retain(|span| span.session != *session);
        Ok(spans)
    }

    /// Returns the sessions among these that may have made what is at the path, or removed it.
    pub(crate) fn may_be_of(&self, path: &RelPath, is_there: bool, others: &[Span]) -> Vec<SessionId> {
        if others.is_empty() {
            return Vec::new();
        }
        let touched = match is_there {
            true => self.door.look(path).ok().flatten().map(|seen| seen.ctime),
            // The directory may have lost something else since.
            false => self.emptied_at(path),
        };
        let touched = touched.unwrap_or(i64::MAX);
        let may_be = |span: &&Span| span.began <= touched && !(is_there && touched > span.until);
        let may_be = others.iter().filter(may_be);
        let mut sessions: Vec<SessionId> = may_be.map(|span| span.session.clone()).collect();
        sessions.sort();
        sessions.dedup();
        sessions
    }

    /// Returns when the nearest directory above the path that is there lost or got its last name.
    pub(crate) fn emptied_at(&self, path: &RelPath) -> Option<i64> {
        let mut above = path.parent();
        while let Some(dir) = above {
            match self.door.look(&dir) {
                Ok(Some(seen)) if seen.is_dir() => return Some(seen.mtime),
                // What stands in its place took it.
                Ok(Some(seen)) => return Some(seen.ctime),
                Ok(None) => above = dir.parent(),
                Err(_) => return None,
            }
        }
        self.door.look_at_root().ok().flatten().map(|root| root.mtime)
    }
}
