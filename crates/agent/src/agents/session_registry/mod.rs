//! Registry of sessions by name, for programs that run several, such as a server or a group of
//! agents.
//!
//! A [`SessionRegistry`] holds handles and creates none itself: callers pass in how to create,
//! resume or fork a session. A name is reserved before the first `await`, so two creators of one
//! name never both get a session. A creator that fails or is dropped releases the name.
//! [`RegisteredSession`] is the interface of a session that a registry and a
//! [`AgentChannel`](crate::agents::channel::AgentChannel) use.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, join_all};
use journeyman_protocol::MessageKind;
use tokio::sync::watch;

use crate::AgentError;

/// Default maximum number of sessions in a registry.
pub const DEFAULT_CAPACITY: usize = 50;

/// The interface of a session to its registry and its channels. Clones are the same session.
pub trait RegisteredSession: Clone + Send + Sync + 'static {
    /// The type that [`RegisteredSession::status`] returns.
    type Status: Send;

    /// Queues a message. The message is stored durably when this function returns; no turn is
    /// awaited.
    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Returns the state of the session.
    fn status(&self) -> BoxFuture<'_, Self::Status>;

    /// Ends the session and everything that it runs.
    fn close(&self) -> BoxFuture<'_, Result<(), AgentError>>;
}

/// The reason why a registry refused a request.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry has as many sessions as it may hold.
    #[error("Pool is full: it holds {capacity} sessions; remove one first")]
    Full {
        /// The maximum number of sessions.
        capacity: usize,
    },
    /// The name is taken.
    #[error("the registry already has a session `{0}`")]
    Taken(String),
    /// No session has this name.
    #[error("the registry has no session `{0}`")]
    Unknown(String),
    /// The session could not be created, or failed while ending.
    #[error(transparent)]
    Session(#[from] AgentError),
}

/// Sessions by name. Clones are the same registry.
pub struct SessionRegistry<M> {
    shared: Arc<RegistryState<M>>,
}

struct RegistryState<M> {
    capacity: usize,
    slots: Mutex<BTreeMap<String, Slot<M>>>,
}

enum Slot<M> {
    Live(M),
    /// The session is being created or ended. The sender is dropped when that is over.
    Busy(watch::Receiver<()>),
}

impl<M> Clone for SessionRegistry<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M: RegisteredSession> Default for SessionRegistry<M> {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

impl<M: RegisteredSession> SessionRegistry<M> {
    /// Creates an empty registry for at most `capacity` sessions.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { shared: Arc::new(RegistryState { capacity, slots: Mutex::new(BTreeMap::new()) }) }
    }

    /// Creates a session under a free name.
    ///
    /// # Errors
    /// [`RegistryError::Taken`], [`RegistryError::Full`], or the error of `make`.
    pub async fn create<Fut>(
        &self,
        name: impl Into<String>,
        make: impl FnOnce() -> Fut,
    ) -> Result<M, RegistryError>
    where
        Fut: Future<Output = Result<M, AgentError>>,
    {
        let place = self.reserve(name.into()).map_err(|refused| match refused {
            ReserveError::Live(name, _) | ReserveError::Busy(name, _) => RegistryError::Taken(name),
            ReserveError::Full => self.full_error(),
        })?;
        Ok(place.fill_with_session(make().await?))
    }

    /// Returns the live session of this name, or opens the session again with `open`. Concurrent
    /// calls for one name get the same session.
    ///
    /// # Errors
    /// [`RegistryError::Full`], or the error of `open`.
    pub async fn resume<Fut>(
        &self,
        name: impl Into<String>,
        open: impl FnOnce() -> Fut,
    ) -> Result<M, RegistryError>
    where
        Fut: Future<Output = Result<M, AgentError>>,
    {
        let mut name = name.into();
        loop {
            match self.reserve(name) {
                Ok(place) => return Ok(place.fill_with_session(open().await?)),
                Err(ReserveError::Live(_, live)) => return Ok(live),
                Err(ReserveError::Full) => return Err(self.full_error()),
                Err(ReserveError::Busy(same, until)) => {
                    wait_until_free(until).await;
                    name = same;
                }
            }
        }
    }

    /// Opens many sessions again, one after another, and continues after a failure. Returns the
    /// names that failed with their errors.
    pub async fn resume_all<Fut>(
        &self,
        names: impl IntoIterator<Item = String>,
        open: impl Fn(&str) -> Fut,
    ) -> Vec<(String, RegistryError)>
    where
        Fut: Future<Output = Result<M, AgentError>>,
    {
        let mut failed = Vec::new();
        for name in names {
            if let Err(error) = self.resume(name.clone(), || open(&name)).await {
                failed.push((name, error));
            }
        }
        failed
    }

    /// Creates a session under the name `child` from the session `parent`, which continues
    /// unchanged.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] without a parent, and as [`SessionRegistry::create`].
    pub async fn fork<Fut>(
        &self,
        parent: &str,
        child: impl Into<String>,
        fork: impl FnOnce(M) -> Fut,
    ) -> Result<M, RegistryError>
    where
        Fut: Future<Output = Result<M, AgentError>>,
    {
        let parent = self.get(parent).ok_or_else(|| RegistryError::Unknown(parent.to_owned()))?;
        self.create(child, || fork(parent)).await
    }

    /// Returns the session of this name, if its creation is complete.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<M> {
        match self.lock().get(name) {
            Some(Slot::Live(member)) => Some(member.clone()),
            Some(Slot::Busy(_)) | None => None,
        }
    }

    /// Returns the names of the live sessions that begin with `prefix`, in order.
    #[must_use]
    pub fn list(&self, prefix: &str) -> Vec<String> {
        let slots = self.lock();
        let live =
            slots.iter().filter(|(name, slot)| name.starts_with(prefix) && matches!(slot, Slot::Live(_)));
        live.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the state of the session of this name.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if no session has this name.
    pub async fn status(&self, name: &str) -> Result<M::Status, RegistryError> {
        let member = self.get(name).ok_or_else(|| RegistryError::Unknown(name.to_owned()))?;
        Ok(member.status().await)
    }

    /// Returns the number of sessions, including those that are being created or ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if the registry has no sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the session of this name and removes it from the registry. A session that is still
    /// being created is created first. The name is free when this function returns. The session's
    /// log stays.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if no session has this name, or the error of ending the session,
    /// which is out of the registry all the same.
    pub async fn remove(&self, name: &str) -> Result<(), RegistryError> {
        let (member, _place) = loop {
            let until = {
                let mut slots = self.lock();
                match slots.get(name) {
                    None => return Err(RegistryError::Unknown(name.to_owned())),
                    Some(Slot::Busy(until)) => until.clone(),
                    Some(Slot::Live(member)) => {
                        let member = member.clone();
                        let (place, busy) = self.insert_reservation(name.to_owned());
                        slots.insert(name.to_owned(), Slot::Busy(busy));
                        break (member, place);
                    }
                }
            };
            wait_until_free(until).await;
        };
        // The name stays reserved until the first session is over, so that no second one is
        // created.
        member.close().await?;
        Ok(())
    }

    /// Ends every session, all at once, and returns the failures. The registry is empty then and
    /// can be used again.
    pub async fn close_all(&self) -> Vec<(String, RegistryError)> {
        let names: Vec<String> = self.lock().keys().cloned().collect();
        let ended = join_all(names.iter().map(|name| self.remove(name))).await;
        let failed =
            names.into_iter().zip(ended).filter_map(|(name, ended)| ended.err().map(|error| (name, error)));
        // Another caller may have removed the session in the meantime.
        failed.filter(|(_, error)| !matches!(error, RegistryError::Unknown(_))).collect()
    }

    fn reserve(&self, name: String) -> Result<Reservation<M>, ReserveError<M>> {
        let mut slots = self.lock();
        match slots.get(&name) {
            Some(Slot::Live(member)) => return Err(ReserveError::Live(name, member.clone())),
            Some(Slot::Busy(until)) => return Err(ReserveError::Busy(name, until.clone())),
            None if slots.len() >= self.shared.capacity => return Err(ReserveError::Full),
            None => {}
        }
        let (place, busy) = self.insert_reservation(name.clone());
        slots.insert(name, Slot::Busy(busy));
        Ok(place)
    }

    fn insert_reservation(&self, name: String) -> (Reservation<M>, watch::Receiver<()>) {
        let (over, busy) = watch::channel(());
        (Reservation { shared: Arc::clone(&self.shared), name, filled: false, _over: over }, busy)
    }

    fn full_error(&self) -> RegistryError {
        RegistryError::Full { capacity: self.shared.capacity }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Slot<M>>> {
        self.shared.lock()
    }
}

impl<M> RegistryState<M> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Slot<M>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a name is no longer busy.
async fn wait_until_free(mut until: watch::Receiver<()>) {
    // No value is ever sent: the wait ends when the sender is dropped.
    while until.changed().await.is_ok() {}
}

/// The reason why a name can't be reserved.
enum ReserveError<M> {
    Live(String, M),
    Busy(String, watch::Receiver<()>),
    Full,
}

/// A name that is reserved while its session is created or ended. Dropping it unfilled frees the
/// name.
struct Reservation<M> {
    shared: Arc<RegistryState<M>>,
    name: String,
    filled: bool,
    _over: watch::Sender<()>,
}

impl<M: RegisteredSession> Reservation<M> {
    fn fill_with_session(mut self, member: M) -> M {
        self.shared.lock().insert(self.name.clone(), Slot::Live(member.clone()));
        self.filled = true;
        member
    }
}

impl<M> Drop for Reservation<M> {
    fn drop(&mut self) {
        if !self.filled {
            self.shared.lock().remove(&self.name);
        }
    }
}
