//! Changes that wait at the same time share one transaction, and with it one wait for the disk.

use std::path::PathBuf;

use journeyman_protocol::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::holder::Holder;
use super::rows::Stop;
use crate::StoreError;

/// The treatment of the disk at the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// It does: what was said to be stored is.
    Full,
    /// It doesn't: the next full one carries it along.
    Relaxed,
}

/// The state that statements need beside the connection.
#[derive(Debug)]
pub(super) struct StatementContext {
    /// The database file.
    pub(super) path: PathBuf,
    holder: Option<Option<Holder>>,
}

impl StatementContext {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, holder: None }
    }

    /// Returns the name that leases of this store have; `None` where the file system has no locks.
    pub(super) fn holder(&mut self) -> Result<Option<&str>, StoreError> {
        let holder = match &mut self.holder {
            Some(holder) => holder,
            none => none.insert(Holder::claim(&self.path)?),
        };
        Ok(holder.as_ref().map(Holder::name))
    }

    /// The same, if there have been leases.
    pub(super) fn own_holder(&self) -> Option<&str> {
        self.holder.as_ref()?.as_ref().map(Holder::name)
    }
}

/// The size of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// So many bytes of payload.
    Payload(u64),
    /// All that a session has.
    WholeSession,
}

/// The facts that are known of a change before it runs.
#[derive(Debug)]
pub(super) struct ChangeInfo {
    /// The action, for errors.
    pub(super) action: &'static str,
    pub(super) sync: Sync,
    pub(super) weight: Weight,
    /// The session whose watchers want to hear of it.
    pub(super) tell: Option<SessionId>,
}

/// A change that waits for its turn.
pub(super) trait Change: Send {
    fn info(&self) -> &ChangeInfo;
    /// Runs the statements, and keeps what they gave.
    fn run(&mut self, connection: &Connection, context: &mut StatementContext) -> Result<(), Stop>;
    /// Tells the caller what the statements gave.
    fn deliver_result(self: Box<Self>);
    /// Tells the caller why it is not done.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A change as its statements, with the way back to its caller.
pub(super) struct Call<T, F> {
    pub(super) info: ChangeInfo,
    pub(super) statements: F,
    pub(super) value: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Change for Call<T, F>
where
    T: Send,
    F: FnMut(&Connection, &mut StatementContext) -> Result<T, Stop> + Send,
{
    fn info(&self) -> &ChangeInfo {
        &self.info
    }

    fn run(&mut self, connection: &Connection, context: &mut StatementContext) -> Result<(), Stop> {
        self.value = Some((self.statements)(connection, context)?);
        Ok(())
    }

    fn deliver_result(self: Box<Self>) {
        if let Some(value) = self.value {
            // A caller that went away doesn't want the answer.
            drop(self.reply.send(Ok(value)));
        }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        drop(self.reply.send(Err(error)));
    }
}

/// The place where a transaction broke off.
pub(super) enum Broken {
    /// Before it began: other transactions would fare no better.
    Begin(rusqlite::Error),
    /// At a statement of one of the changes: nothing is stored, and the others may be tried alone.
    Statement(rusqlite::Error),
    /// At its end: it may be stored.
    Commit(rusqlite::Error),
}

/// Runs changes in order as one transaction, and gives each its own result: one that is refused
/// takes nothing away from the others.
pub(super) fn transact(
    connection: &mut Connection,
    context: &mut StatementContext,
    group: &mut [Box<dyn Change>],
) -> Result<Vec<Result<(), StoreError>>, Broken> {
    let relaxed = group.iter().all(|change| change.info().sync == Sync::Relaxed);
    if relaxed {
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(Broken::Begin)?;
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Broken::Begin)?;
    let results = run_each(&transaction, context, group).map_err(Broken::Statement)?;
    if results.iter().any(Result::is_ok) {
        transaction.commit().map_err(Broken::Commit)?;
    } else {
        transaction.rollback().map_err(Broken::Statement)?;
    }
    if relaxed {
        // A failure closes the connection: never go on with one that doesn't wait for the disk.
        connection.pragma_update(None, "synchronous", "FULL").map_err(Broken::Commit)?;
    }
    Ok(results)
}

fn run_each(
    transaction: &Transaction<'_>,
    context: &mut StatementContext,
    group: &mut [Box<dyn Change>],
) -> rusqlite::Result<Vec<Result<(), StoreError>>> {
    let simple = |sql| transaction.prepare_cached(sql)?.execute([]).map(drop);
    // Of a single change the whole transaction is taken back.
    let several = group.len() > 1;
    let mut results = Vec::with_capacity(group.len());
    for change in group {
        if several {
            simple("SAVEPOINT one")?;
        }
        match change.run(transaction, context) {
            Ok(()) => results.push(Ok(())),
            Err(Stop::Ours(error)) => {
                results.push(Err(error));
                if several {
                    simple("ROLLBACK TO one")?;
                }
            }
            Err(Stop::Sqlite(error)) => return Err(error),
        }
        if several {
            simple("RELEASE one")?;
        }
    }
    Ok(results)
}
