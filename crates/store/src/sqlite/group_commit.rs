//! Group commit: changes that wait at the same time share one transaction, and with it one wait for
//! the disk.

use std::path::PathBuf;

use journeyman_protocol::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::lease_holder::HolderFile;
use super::rows::StatementError;
use crate::StoreError;

/// The synchronisation with the disk at the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncMode {
    /// Waits for the disk: the change is durable.
    Full,
    /// Doesn't wait: the next full synchronisation makes the change durable.
    Relaxed,
}

/// State that statements need besides the connection.
#[derive(Debug)]
pub(super) struct StatementContext {
    /// The database file.
    pub(super) path: PathBuf,
    holder: Option<Option<HolderFile>>,
}

impl StatementContext {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, holder: None }
    }

    /// Returns the name of this store's holder file, which its leases refer to, and creates the
    /// file if need be; `None` if the file system has no locks.
    pub(super) fn ensure_holder(&mut self) -> Result<Option<&str>, StoreError> {
        let holder = match &mut self.holder {
            Some(holder) => holder,
            none => none.insert(HolderFile::claim(&self.path)?),
        };
        Ok(holder.as_ref().map(HolderFile::name))
    }

    /// Returns the name of this store's holder file, if it has been created.
    pub(super) fn existing_holder(&self) -> Option<&str> {
        self.holder.as_ref()?.as_ref().map(HolderFile::name)
    }
}

/// The size of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSize {
    /// This many bytes of payload.
    Payload(u64),
    /// All entries of a session.
    WholeSession,
}

/// The properties of a change that are known before it runs.
#[derive(Debug)]
pub(super) struct ChangeInfo {
    /// The action, for errors.
    pub(super) action: &'static str,
    pub(super) sync: SyncMode,
    pub(super) weight: ChangeSize,
    /// The session whose watchers are notified of the change.
    pub(super) tell: Option<SessionId>,
}

/// A change that waits for a transaction.
pub(super) trait Change: Send {
    fn info(&self) -> &ChangeInfo;
    /// Runs the statements, and keeps their result.
    fn run(&mut self, connection: &Connection, context: &mut StatementContext) -> Result<(), StatementError>;
    /// Sends the result of the statements to the caller.
    fn deliver_result(self: Box<Self>);
    /// Sends the error to the caller.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A change as its statements, with the channel for its result.
pub(super) struct ChangeRequest<T, F> {
    pub(super) info: ChangeInfo,
    pub(super) statements: F,
    pub(super) value: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Change for ChangeRequest<T, F>
where
    T: Send,
    F: FnMut(&Connection, &mut StatementContext) -> Result<T, StatementError> + Send,
{
    fn info(&self) -> &ChangeInfo {
        &self.info
    }

    fn run(&mut self, connection: &Connection, context: &mut StatementContext) -> Result<(), StatementError> {
        self.value = Some((self.statements)(connection, context)?);
        Ok(())
    }

    fn deliver_result(self: Box<Self>) {
        if let Some(value) = self.value {
            // The caller may be gone.
            drop(self.reply.send(Ok(value)));
        }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        drop(self.reply.send(Err(error)));
    }
}

/// The step at which a transaction failed.
pub(super) enum TransactionError {
    /// Before its begin: other transactions would fail too.
    Begin(rusqlite::Error),
    /// At a statement of a change: nothing is stored, and each change may be tried alone.
    Statement(rusqlite::Error),
    /// At its commit: it may be stored.
    Commit(rusqlite::Error),
}

/// Runs changes in order as one transaction, and returns a result for each: a refused change
/// doesn't affect the others.
pub(super) fn run_transaction(
    connection: &mut Connection,
    context: &mut StatementContext,
    group: &mut [Box<dyn Change>],
) -> Result<Vec<Result<(), StoreError>>, TransactionError> {
    let relaxed = group.iter().all(|change| change.info().sync == SyncMode::Relaxed);
    if relaxed {
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(TransactionError::Begin)?;
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(TransactionError::Begin)?;
    let results = run_changes(&transaction, context, group).map_err(TransactionError::Statement)?;
    if results.iter().any(Result::is_ok) {
        transaction.commit().map_err(TransactionError::Commit)?;
    } else {
        transaction.rollback().map_err(TransactionError::Statement)?;
    }
    if relaxed {
        // A failure closes the connection: a connection that doesn't wait for the disk isn't used
        // again.
        connection.pragma_update(None, "synchronous", "FULL").map_err(TransactionError::Commit)?;
    }
    Ok(results)
}

fn run_changes(
    transaction: &Transaction<'_>,
    context: &mut StatementContext,
    group: &mut [Box<dyn Change>],
) -> rusqlite::Result<Vec<Result<(), StoreError>>> {
    let simple = |sql| transaction.prepare_cached(sql)?.execute([]).map(drop);
    // A single change is undone with the whole transaction.
    let several = group.len() > 1;
    let mut results = Vec::with_capacity(group.len());
    for change in group {
        if several {
            simple("SAVEPOINT one")?;
        }
        match change.run(transaction, context) {
            Ok(()) => results.push(Ok(())),
            Err(StatementError::Ours(error)) => {
                results.push(Err(error));
                if several {
                    simple("ROLLBACK TO one")?;
                }
            }
            Err(StatementError::Sqlite(error)) => return Err(error),
        }
        if several {
            simple("RELEASE one")?;
        }
    }
    Ok(results)
}
