//! How the proxy gets out: the one place that resolves names and opens connections.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use tokio::net::TcpStream;

/// A future of [`Outside`].
pub type Reaching<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Resolves names and opens connections for the proxy of [`Network::Filtered`](super::Network::Filtered): the system's
/// resolver and sockets, unless [`SandboxSettings::outside`](crate::SandboxSettings::outside) has another one.
///
/// It decides nothing: names are checked before [`resolve`](Self::resolve), addresses before
/// [`connect`](Self::connect). No configuration and no variable leads here; it is for tests, which have no network, and
/// for programs that reach the world in a way of their own.
pub trait Outside: fmt::Debug + Send + Sync {
    /// The addresses of a host.
    fn resolve<'a>(&'a self, host: &'a str) -> Reaching<'a, Vec<IpAddr>>;

    /// A connection to an address that [`resolve`](Self::resolve) gave and that is a public one.
    fn connect(&self, address: SocketAddr) -> Reaching<'_, TcpStream>;
}

/// The system's.
#[derive(Debug)]
pub(super) struct System;

impl Outside for System {
    fn resolve<'a>(&'a self, host: &'a str) -> Reaching<'a, Vec<IpAddr>> {
        Box::pin(async move {
            // The dot keeps the resolver from trying the host's own domains after the name.
            let found = tokio::net::lookup_host((format!("{host}."), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn connect(&self, address: SocketAddr) -> Reaching<'_, TcpStream> {
        Box::pin(TcpStream::connect(address))
    }
}
