//! A proxy for requests of this program's own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::proxy::Proxy;
use super::service::{RunningService, Service};
use super::{NetworkRules, ProxyConnection};
use crate::Sandbox;

/// A proxy on the loopback, which leads to the hosts of its rules and nowhere else, as the proxy of
/// a command does. Dropped, it and all its connections end.
#[derive(Debug)]
pub struct HostProxy {
    address: SocketAddr,
    serving: RunningService,
}

impl HostProxy {
    /// Returns the address at which the proxy accepts HTTP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the proxy, and returns the connections that were requested.
    pub async fn finish(self) -> Vec<ProxyConnection> {
        self.serving.finish().await.0
    }
}

impl Sandbox {
    /// Opens a proxy for a request that this program itself makes for a model: names and addresses
    /// are judged as those of a command's connections are. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// A failure to listen on the loopback.
    pub fn open_proxy(&self, rules: NetworkRules) -> io::Result<HostProxy> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let proxy = Service::Proxy(Proxy::new(Arc::new(rules), self.upstream().cloned()));
        Ok(HostProxy { address, serving: proxy.serve(OwnedFd::from(listener))? })
    }
}
