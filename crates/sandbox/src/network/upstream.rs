//! The proxy's outgoing side: the only place that resolves names and opens connections.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use tokio::net::TcpStream;

/// A future of [`Upstream`].
pub type UpstreamFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Resolves names and opens connections for the proxy of
/// [`Network::Filtered`](super::Network::Filtered): the system's resolver and sockets, unless
/// [`SandboxSettings::upstream`](crate::SandboxSettings::upstream) has another one.
///
/// It decides nothing: names are checked before [`resolve`](Self::resolve), addresses before
/// [`connect`](Self::connect). No configuration and no variable leads here; it is for tests, which
/// have no network, and for programs that reach the world in a way of their own.
pub trait Upstream: fmt::Debug + Send + Sync {
    /// Resolves the addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str) -> UpstreamFuture<'a, Vec<IpAddr>>;

    /// Connects to an address that [`resolve`](Self::resolve) gave and that is a public one.
    fn connect(&self, address: SocketAddr) -> UpstreamFuture<'_, TcpStream>;
}

/// Names that are resolved at once for one command. The system's resolver can't be stopped and
/// takes a thread, which mustn't be one of those that the caller's files are read on.
const MAX_CONCURRENT_RESOLUTIONS: usize = 8;

/// The system's resolver and sockets.
#[derive(Debug)]
pub(super) struct SystemUpstream {
    turns: std::sync::Arc<tokio::sync::Semaphore>,
}

impl SystemUpstream {
    pub(super) fn new() -> Self {
        Self { turns: std::sync::Arc::new(tokio::sync::Semaphore::new(MAX_CONCURRENT_RESOLUTIONS)) }
    }
}

impl Upstream for SystemUpstream {
    fn resolve<'a>(&'a self, host: &'a str) -> UpstreamFuture<'a, Vec<IpAddr>> {
        use std::net::ToSocketAddrs as _;
        Box::pin(async move {
            let turn = self.turns.clone().acquire_owned().await.map_err(io::Error::other)?;
            let (tell, told) = tokio::sync::oneshot::channel();
            // The dot keeps the resolver from trying the host's own domains after the name.
            let name = format!("{host}.");
            std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
                let found = (name.as_str(), 0).to_socket_addrs();
                // If this took too long, no caller waits any more.
                tell.send(found.map(|found| found.map(|address| address.ip()).collect())).ok();
                drop(turn);
            })?;
            told.await.map_err(io::Error::other)?
        })
    }

    fn connect(&self, address: SocketAddr) -> UpstreamFuture<'_, TcpStream> {
        Box::pin(TcpStream::connect(address))
    }
}
