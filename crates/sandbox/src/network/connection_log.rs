//! The log of a command's requests to the proxy: bounded memory, exact sums.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ProxyConnection;
use crate::denial::{Denial, DenialKind};

/// Entries for connections that were let through, and as many for others: more hosts than any build
/// has.
const MAX_ENTRIES: usize = 256;
/// Maximum number of denials that are reported.
const MAX_DENIALS: usize = 32;
/// Stands for hosts that no entry was left for.
const OTHER_HOSTS_LABEL: &str = "(others)";

/// All connections of one command.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionLog(Arc<Mutex<ConnectionLogState>>);

#[derive(Debug, Default)]
struct ConnectionLogState {
    through: Vec<ProxyConnection>,
    denied: Vec<ProxyConnection>,
}

impl ConnectionLog {
    /// Records a refused request.
    pub(super) fn record_denied(&self, host: String, port: u16, why: &str) {
        self.add_connection(ProxyConnection {
            host,
            port,
            times: 1,
            sent: 0,
            received: 0,
            denied: Some(why.to_owned()),
            failed: None,
        });
    }

    /// Records a connection that is let through, when the result is dropped.
    pub(super) fn record_allowed(&self, host: &str, port: u16) -> OpenConnection {
        OpenConnection {
            journal: self.clone(),
            host: host.to_owned(),
            port,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            end: Mutex::new(ConnectionEnd::Open),
        }
    }

    fn add_connection(&self, new: ProxyConnection) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let list = if new.denied.is_some() { &mut book.denied } else { &mut book.through };
        let same = |old: &ProxyConnection| {
            (&old.host, old.port, &old.denied, &old.failed) == (&new.host, new.port, &new.denied, &new.failed)
        };
        if let Some(old) = list.iter_mut().find(|old| same(old)) {
            old.merge(&new);
            return;
        }
        if list.len() < MAX_ENTRIES {
            list.push(new);
            return;
        }
        match list.iter_mut().find(|old| old.host == OTHER_HOSTS_LABEL) {
            Some(others) => others.merge(&new),
            None => list.push(ProxyConnection {
                host: OTHER_HOSTS_LABEL.to_owned(),
                port: 0,
                failed: None,
                ..new
            }),
        }
    }

    /// Returns the connections, those that were let through first, and the denials.
    pub(super) fn snapshot(&self) -> (Vec<ProxyConnection>, Vec<Denial>) {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let denials = book.denied.iter().take(MAX_DENIALS).map(connection_denial).collect();
        (book.through.iter().chain(&book.denied).cloned().collect(), denials)
    }
}

impl ProxyConnection {
    fn merge(&mut self, other: &Self) {
        self.times = self.times.saturating_add(other.times);
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
    }
}

fn connection_denial(connection: &ProxyConnection) -> Denial {
    let why = connection.denied.as_deref().unwrap_or_default();
    let what = match connection.port {
        0 => format!("a connection to {}: {why}", connection.host),
        port => format!("a connection to {}:{port}: {why}", connection.host),
    };
    let hint = "if the command must reach it, allow the host by its name; only HTTPS to named public hosts is let \
                through";
    Denial { kind: DenialKind::Network, what, certain: true, hint: hint.to_owned() }
}

/// The end of a connection.
#[derive(Debug)]
enum ConnectionEnd {
    Open,
    Failed(&'static str),
    Denied(&'static str),
}

/// An open connection. Its bytes are counted when they have been passed on.
#[derive(Debug)]
pub(super) struct OpenConnection {
    journal: ConnectionLog,
    host: String,
    port: u16,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    end: Mutex<ConnectionEnd>,
}

impl OpenConnection {
    /// Records that the connection failed.
    pub(super) fn record_failed(&self, why: &'static str) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = ConnectionEnd::Failed(why);
    }

    /// Records that the connection's data was refused.
    pub(super) fn record_denied(&self, why: &'static str) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = ConnectionEnd::Denied(why);
    }

    /// Returns the bytes of all connections so far.
    pub(super) fn total_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed).wrapping_add(self.received.load(Ordering::Relaxed))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let end = std::mem::replace(
            self.end.get_mut().unwrap_or_else(PoisonError::into_inner),
            ConnectionEnd::Open,
        );
        let (failed, denied) = match end {
            ConnectionEnd::Open => (None, None),
            ConnectionEnd::Failed(why) => (Some(why.to_owned()), None),
            ConnectionEnd::Denied(why) => (None, Some(why.to_owned())),
        };
        self.journal.add_connection(ProxyConnection {
            host: std::mem::take(&mut self.host),
            port: self.port,
            times: 1,
            sent: *self.sent.get_mut(),
            received: *self.received.get_mut(),
            denied,
            failed,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_fill_no_memory_and_hide_no_bytes() {
        let journal = ConnectionLog::default();
        for index in 0..1000 {
            journal.record_denied(format!("host{index}.test"), 443, "no");
            let entry = journal.record_allowed(&format!("sub{index}.allowed.test"), 443);
            entry.sent.fetch_add(3, Ordering::Relaxed);
            entry.received.fetch_add(4, Ordering::Relaxed);
        }
        let (connections, denials) = journal.snapshot();
        assert_eq!((connections.len(), denials.len()), (2 * (MAX_ENTRIES + 1), MAX_DENIALS));
        let sums = connections.iter().fold((0, 0, 0), |(times, sent, received), entry| {
            (times + entry.times, sent + entry.sent, received + entry.received)
        });
        assert_eq!(sums, (2000, 3000, 4000));
        assert!(denials.iter().all(|denial| denial.certain && denial.kind == DenialKind::Network));
    }

    #[test]
    fn the_same_again_is_counted() {
        let journal = ConnectionLog::default();
        for _ in 0..5 {
            journal.record_denied("a.test".into(), 22, "no");
        }
        let entry = journal.record_allowed("b.test", 443);
        entry.record_failed("gone");
        drop(entry);
        let entry = journal.record_allowed("b.test", 443);
        entry.record_denied("another name");
        drop(entry);
        let (connections, denials) = journal.snapshot();
        let seen: Vec<_> =
            connections.iter().map(|c| (c.host.as_str(), c.times, c.failed.is_some())).collect();
        assert_eq!(seen, [("b.test", 1, true), ("a.test", 5, false), ("b.test", 1, false)]);
        assert_eq!(denials.len(), 2);
        assert_eq!(denials[0].what, "a connection to a.test:22: no");
    }
}
