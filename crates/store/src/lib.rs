//! The durable session log and the content-addressed blobs.
//!
//! [`Store`] is the interface: one append-only log a session, whose entries are opaque bytes with a
//! channel and a kind. [`SqliteStore`] keeps all logs in one SQLite file that several processes may
//! use at once and whose commits survive a power failure; [`MemoryStore`] behaves the same in
//! memory only. [`Blobs`] keeps large payloads and the pre-images of files, each under the hash of
//! its bytes. [`export`] and [`import`] move sessions between stores; [`salvage`] and [`repair`]
//! recover the readable part of a damaged file.
//!
//! ```
//! use journeyman_protocol::{Seq, SessionId, UnixMillis};
//! use journeyman_store::{MemoryStore, NewEntry, Store, StoreError};
//!
//! # async fn example() -> Result<(), StoreError> {
//! let store = MemoryStore::new();
//! let id = SessionId::new(UnixMillis(1_700_000_000_000), 42);
//! store.create(&id, "/home/me/project", "fix the parser", UnixMillis(1)).await?;
//! let payload = b"{}".to_vec();
//! let entry = NewEntry { channel: None, kind: "message".into(), at: UnixMillis(2), payload };
//! let last = store.append(&id, Seq::START, vec![entry.clone()]).await?;
//! // A writer that missed this entry is told so instead of forking the log.
//! let again = store.append(&id, Seq::START, vec![entry]).await;
//! assert!(matches!(again, Err(StoreError::Conflict { .. })));
//! assert_eq!(store.read(&id, Seq::START, 10).await?.len(), 1);
//! # let _: Seq = last; Ok(())
//! # }
//! ```
//!
//! This crate doesn't interpret entries, reads no clock, and redacts nothing: callers remove
//! secrets first. A damaged file is reported and left unchanged, never replaced by an empty one.

mod blobs;
mod durability;
mod entry;
mod error;
mod export_import;
mod lease;
mod memory;
mod private_directories;
mod salvage;
mod sqlite;
mod watchers;

pub use blobs::{Blobs, MAX_BLOB_BYTES, PutOutcome, SweepLock, UseLock};
pub use durability::Durability;
pub use entry::{
    Entry, MAX_ENTRY_BYTES, MAX_FOUND_SESSIONS, NewEntry, NewSession, SESSION_STATUS_READY, SessionOrigin,
    SessionSummary, Store,
};
pub use error::StoreError;
pub use export_import::{
    EXPORT_VERSION, ImportAs, ImportedSessions, SESSION_STATUS_IMPORTING, export, export_file, import,
};
pub use memory::MemoryStore;
pub use salvage::{RepairReport, SalvageReport, SalvagedSession, repair, salvage};
pub use sqlite::SqliteStore;
