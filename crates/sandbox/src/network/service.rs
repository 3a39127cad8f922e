//! The services of a command's listeners: the proxy, and ports that lead to one address.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection_log::ConnectionLog;
use super::forward;
use super::proxy::Proxy;
use super::proxy_environment::PROXY_PORT;
use super::{Network, PortForward, ProxyConnection, Upstream};
use crate::SandboxError;
use crate::denial::Denial;

/// A service on the sandbox's own loopback, before there is a listener.
#[derive(Debug)]
pub(crate) enum Service {
    /// The proxy, for hosts by their names.
    Proxy(Proxy),
    /// A port that leads to one address.
    Forward(PortForward),
}

/// Returns the services that a network needs, the proxy first.
///
/// # Errors
/// [`SandboxError::Refused`] for two services with one port.
pub(crate) fn create_services(
    network: &Network,
    upstream: Option<&Arc<dyn Upstream>>,
) -> Result<Vec<Service>, SandboxError> {
    let Network::Filtered(rules) = network else { return Ok(Vec::new()) };
    let mut services = vec![Service::Proxy(Proxy::new(Arc::clone(rules), upstream.cloned()))];
    for forward in &rules.forwards {
        if forward.port == 0 || services.iter().any(|other| other.port() == forward.port) {
            let PortForward { port, to } = forward;
            return Err(SandboxError::Refused(format!(
                "{to} can't be reached at port {port} of the sandbox's loopback, which is taken or no port"
            )));
        }
        services.push(Service::Forward(*forward));
    }
    Ok(services)
}

impl Service {
    /// Returns the port of the listener.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Proxy(_) => PROXY_PORT,
            Self::Forward(forward) => forward.port,
        }
    }

    /// Serves a listening TCP socket, which may be of another network namespace, until the result
    /// is dropped. Must be called within a Tokio runtime.
    pub(crate) fn serve(self, listener: OwnedFd) -> io::Result<RunningService> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (journal, stop) = (ConnectionLog::default(), CancellationToken::new());
        let task = match self {
            Self::Proxy(proxy) => {
                tokio::spawn(proxy.accept_connections(listener, journal.clone(), stop.clone()))
            }
            Self::Forward(to) => {
                tokio::spawn(forward::accept_connections(to, listener, journal.clone(), stop.clone()))
            }
        };
        Ok(RunningService { journal, stop: stop.drop_guard(), task })
    }
}

/// A running service. Dropped, the service and all its connections end.
#[derive(Debug)]
pub(crate) struct RunningService {
    journal: ConnectionLog,
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl RunningService {
    /// Stops the service, and returns its connections and denials.
    pub(crate) async fn finish(self) -> (Vec<ProxyConnection>, Vec<Denial>) {
        drop(self.stop);
        // The task returns nothing, and its log is complete even if it was aborted.
        self.task.await.ok();
        self.journal.snapshot()
    }
}
