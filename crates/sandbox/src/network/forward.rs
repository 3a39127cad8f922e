//! Ports on the sandbox's own loopback, each of which leads to one address outside.
//!
//! The proxy lets only names of public hosts through. A server on this machine or on a network of
//! its own (a local model, a test) is reached by a listener of its own: every connection to it goes
//! to that one address, whatever is sent.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::PortForward;
use super::connection_log::ConnectionLog;
use super::proxy::{ACCEPT_PAUSE, copy_counted};

/// Connections at once; more wait. An agent has a handful of requests under way.
const MAX_CLIENTS: usize = 64;
/// Maximum wait for the server to take a connection.
const MAX_CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Takes connections until `stop` is cancelled.
pub(super) async fn accept_connections(
    forward: PortForward,
    listener: TcpListener,
    journal: ConnectionLog,
    stop: CancellationToken,
) {
    let (journal, mut clients) = (Arc::new(journal), JoinSet::new());
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept(), if clients.len() < MAX_CLIENTS => match accepted {
                Ok((client, _)) => {
                    let journal = Arc::clone(&journal);
                    // Both ends see a broken connection themselves.
                    clients.spawn(async move { forward_connection(forward.to, client, &journal).await.ok() });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    clients.shutdown().await;
}

/// Connects a client to the address, and copies both ways until both have ended.
async fn forward_connection(
    to: SocketAddr,
    mut client: TcpStream,
    journal: &ConnectionLog,
) -> io::Result<()> {
    let entry = journal.record_allowed(&to.ip().to_string(), to.port());
    let Ok(Ok(mut server)) = timeout(MAX_CONNECT_WAIT, TcpStream::connect(to)).await else {
        entry.record_failed("this address doesn't answer");
        return Ok(());
    };
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let out = copy_counted(&mut from_client, &mut to_server, &entry.sent);
    let back = copy_counted(&mut from_server, &mut to_client, &entry.received);
    tokio::try_join!(out, back).map(drop)
}
