//! The proxy: it takes connections on a listener that was made inside the sandbox, and opens those
//! that the rules allow, outside.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::NetworkRules;
use super::address;
use super::connection_log::{ConnectionLog, OpenConnection};
use super::http_head::{self, BodyLength, ChunkedBodyScanner, HeadScan, RequestHead, RequestRoute};
use super::socks::{self, ParsedMessage, ReplyCode};
use super::target::{HTTP_PORT, Refusal, Target, display_target};
use super::tls_hello::{self, ClientHello};
use super::upstream::{SystemUpstream, Upstream};

/// Bytes of one read. A connection costs two such buffers.
const BUFFER_BYTES: usize = 16 * 1024;
/// Addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;
/// Maximum bytes that a client may still send after a refusal, so that it reads the answer.
const MAX_LINGER_BYTES: usize = 256 * 1024;
/// The pause after the system ran out of descriptors.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The limits of a proxy.
#[derive(Debug, Clone, Copy)]
struct ProxyLimits {
    /// Connections at once; more wait.
    clients: usize,
    /// Until it is said where to go.
    asking: Duration,
    /// Until a name is resolved.
    resolving: Duration,
    /// Until an address answers.
    connecting: Duration,
    /// Until the first bytes come through a tunnel.
    first: Duration,
    /// Without a byte either way.
    idle: Duration,
    /// Until a client has read why it was refused.
    lingering: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            // Package managers open some twenty. Each takes two descriptors of the program that
            // runs the sandbox.
            clients: 64,
            asking: Duration::from_secs(10),
            resolving: Duration::from_secs(15),
            connecting: Duration::from_secs(10),
            first: Duration::from_secs(30),
            // A server may think for minutes before it answers.
            idle: Duration::from_secs(300),
            lingering: Duration::from_secs(1),
        }
    }
}

/// The settings of a proxy, before there is a listener.
#[derive(Debug)]
pub(crate) struct Proxy {
    rules: Arc<NetworkRules>,
    upstream: Arc<dyn Upstream>,
    bounds: ProxyLimits,
}

impl Proxy {
    /// Creates a proxy with these rules, which reaches the world by `upstream` or the system's
    /// means.
    pub(super) fn new(rules: Arc<NetworkRules>, upstream: Option<Arc<dyn Upstream>>) -> Self {
        Self {
            rules,
            upstream: upstream.unwrap_or_else(|| Arc::new(SystemUpstream::new())),
            bounds: ProxyLimits::default(),
        }
    }

    /// Takes connections until `stop` is cancelled.
    pub(super) async fn accept_connections(
        self,
        listener: TcpListener,
        journal: ConnectionLog,
        stop: CancellationToken,
    ) {
        let Self { rules, upstream, bounds } = self;
        accept_connections(Arc::new(ProxyState { rules, upstream, bounds, journal }), listener, stop).await;
    }
}

async fn accept_connections(state: Arc<ProxyState>, listener: TcpListener, stop: CancellationToken) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept(), if clients.len() < state.bounds.clients => match accepted {
                Ok((client, _)) => {
                    let state = state.clone();
                    // Both ends see a broken connection themselves.
                    clients.spawn(async move { state.serve_client(client).await.ok() });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    clients.shutdown().await;
}

/// The state that all connections share.
struct ProxyState {
    rules: Arc<NetworkRules>,
    upstream: Arc<dyn Upstream>,
    bounds: ProxyLimits,
    journal: ConnectionLog,
}

/// The reason why there is no connection, for the client.
struct ConnectFailure {
    status: u16,
    code: ReplyCode,
    why: String,
}

impl ConnectFailure {
    fn from_refusal(refusal: Refusal) -> Self {
        let (status, code) = match refusal {
            Refusal::Malformed(_) => (400, ReplyCode::NotAllowed),
            Refusal::Denied(_) => (403, ReplyCode::NotAllowed),
        };
        Self { status, code, why: refusal.reason().to_owned() }
    }

    fn from_error(why: &str) -> Self {
        Self { status: 502, code: ReplyCode::Unreachable, why: why.to_owned() }
    }

    /// Returns the answer. The reason stands in the status line, too: most programs show nothing
    /// else of an answer to `CONNECT`.
    fn to_response(&self) -> Vec<u8> {
        let Self { status, why, .. } = self;
        let word = match status {
            400 => "Bad request",
            403 => "Denied by the sandbox",
            _ => "Not reached",
        };
        let body = format!("{word}: {why}\n");
        let length = body.len();
        format!(
            "HTTP/1.1 {status} {word}: {why}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// A client, with the bytes that were read and not used.
struct ProxyClient {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl ProxyClient {
    /// Reads more bytes; returns false at the end.
    async fn read_more(&mut self) -> io::Result<bool> {
        let before = self.unread.len();
        self.unread.reserve(BUFFER_BYTES);
        let count = (&mut self.stream).take(BUFFER_BYTES as u64).read_buf(&mut self.unread).await?;
        debug_assert_eq!(self.unread.len(), before + count);
        Ok(count > 0)
    }

    /// Writes the final response, and lets the client read it: closing a socket with something
    /// unread in it throws away what the other side hasn't read.
    async fn send_final_response(mut self, last: &[u8], lingering: Duration) -> io::Result<()> {
        let reading = async {
            self.stream.write_all(last).await?;
            self.stream.shutdown().await?;
            let mut left = MAX_LINGER_BYTES;
            let mut buffer = vec![0; BUFFER_BYTES];
            while left > 0 {
                let count = self.stream.read(&mut buffer).await?;
                if count == 0 {
                    break;
                }
                left = left.saturating_sub(count);
            }
            io::Result::Ok(())
        };
        timeout(lingering, reading).await.unwrap_or(Ok(()))
    }
}

/// A client's request.
enum ClientRequest {
    Http(RequestHead),
    Socks(Target),
    /// It was told why not, or left.
    Nothing,
}

impl ProxyState {
    async fn serve_client(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut client = ProxyClient { stream, unread: Vec::new() };
        // A client that sends nothing in time gets no answer.
        match timeout(self.bounds.asking, self.read_request(&mut client))
            .await
            .unwrap_or(Ok(Ok(ClientRequest::Nothing)))?
        {
            Ok(ClientRequest::Http(RequestHead::Connect(target))) => {
                match self.open_connection(&target).await {
                    Ok((entry, server)) => {
                        client.stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                        self.run_tunnel(client, server, &entry, &target).await
                    }
                    Err(trouble) => {
                        client.send_final_response(&trouble.to_response(), self.bounds.lingering).await
                    }
                }
            }
            Ok(ClientRequest::Http(RequestHead::Request { target, rewritten, body })) => {
                match self.open_connection(&target).await {
                    Ok((entry, server)) => {
                        self.exchange_request(client, server, &entry, &rewritten, body).await
                    }
                    Err(trouble) => {
                        client.send_final_response(&trouble.to_response(), self.bounds.lingering).await
                    }
                }
            }
            Ok(ClientRequest::Socks(target)) => match self.open_connection(&target).await {
                Ok((entry, server)) => {
                    client.stream.write_all(&socks::encode_answer(ReplyCode::Succeeded)).await?;
                    self.run_tunnel(client, server, &entry, &target).await
                }
                Err(trouble) => {
                    client
                        .send_final_response(&socks::encode_answer(trouble.code), self.bounds.lingering)
                        .await
                }
            },
            Ok(ClientRequest::Nothing) => Ok(()),
            Err(answer) => client.send_final_response(&answer, self.bounds.lingering).await,
        }
    }

    /// Reads the client's request, or returns the answer to a request that is refused.
    async fn read_request(&self, client: &mut ProxyClient) -> io::Result<Result<ClientRequest, Vec<u8>>> {
        if !client.read_more().await? {
            return Ok(Ok(ClientRequest::Nothing));
        }
        match client.unread.first() {
            Some(&socks::SOCKS_VERSION) => self.handle_socks_greeting(client).await,
            Some(b'A'..=b'Z') => Ok(match self.read_head(client, RequestRoute::Proxy).await? {
                Ok(Some(head)) => Ok(ClientRequest::Http(head)),
                Ok(None) => Ok(ClientRequest::Nothing),
                Err(trouble) => Err(trouble.to_response()),
            }),
            _ => {
                self.journal.record_denied(
                    display_target(b""),
                    0,
                    "neither HTTP nor SOCKS 5 was spoken to the proxy",
                );
                Ok(Err(Vec::new()))
            }
        }
    }

    /// Reads a head; `None` if the client left.
    async fn read_head(
        &self,
        client: &mut ProxyClient,
        place: RequestRoute<'_>,
    ) -> io::Result<Result<Option<RequestHead>, ConnectFailure>> {
        let length = loop {
            match http_head::find_head_end(&client.unread) {
                Ok(HeadScan::End(length)) => break length,
                Ok(HeadScan::More) => {}
                Err(refusal) => {
                    let line = client.unread.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
                    let target = line.split(|b| *b == b' ').nth(1).unwrap_or_default();
                    self.journal.record_denied(display_target(target), 0, refusal.reason());
                    return Ok(Err(ConnectFailure::from_refusal(refusal)));
                }
            }
            if !client.read_more().await? {
                return Ok(Ok(None));
            }
        };
        let head: Vec<u8> = client.unread.drain(..length).collect();
        Ok(http_head::parse_head(&head, place).map(Some).map_err(|(host, port, refusal)| {
            self.journal.record_denied(host, port, refusal.reason());
            ConnectFailure::from_refusal(refusal)
        }))
    }

    async fn handle_socks_greeting(
        &self,
        client: &mut ProxyClient,
    ) -> io::Result<Result<ClientRequest, Vec<u8>>> {
        let refuse = |refusal: Refusal| {
            self.journal.record_denied(display_target(b""), 0, refusal.reason());
            Ok(Err(socks::NO_METHOD_ANSWER.to_vec()))
        };
        loop {
            match socks::parse_greeting(&client.unread) {
                Ok(ParsedMessage::Whole(true, length)) => {
                    client.unread.drain(..length);
                    break;
                }
                Ok(ParsedMessage::Whole(false, _)) => {
                    return refuse(Refusal::Malformed("the proxy takes no user names"));
                }
                Ok(ParsedMessage::More) => {}
                Err(refusal) => return refuse(refusal),
            }
            if !client.read_more().await? {
                return Ok(Ok(ClientRequest::Nothing));
            }
        }
        client.stream.write_all(&socks::GREETING_ANSWER).await?;
        loop {
            match socks::parse_request(&client.unread) {
                Ok(ParsedMessage::Whole(target, length)) => {
                    client.unread.drain(..length);
                    return Ok(Ok(ClientRequest::Socks(target)));
                }
                Ok(ParsedMessage::More) => {}
                Err((host, port, code, refusal)) => {
                    self.journal.record_denied(host, port, refusal.reason());
                    return Ok(Err(socks::encode_answer(code).to_vec()));
                }
            }
            if client.unread.len() >= socks::MAX_MESSAGE_BYTES || !client.read_more().await? {
                return Ok(Ok(ClientRequest::Nothing));
            }
        }
    }

    /// Opens a connection, if the rules let it through: the name is judged before anything is
    /// resolved; it is resolved once, and the connection goes to what was judged then.
    async fn open_connection(&self, target: &Target) -> Result<(OpenConnection, TcpStream), ConnectFailure> {
        let Target { host, port } = target;
        target.check_rules(&self.rules).map_err(|refusal| {
            self.journal.record_denied(host.clone(), *port, refusal.reason());
            ConnectFailure::from_refusal(refusal)
        })?;
        let resolved = timeout(self.bounds.resolving, self.upstream.resolve(host)).await;
        let failed = |why| {
            self.journal.record_allowed(host, *port).record_failed(why);
            ConnectFailure::from_error(why)
        };
        let addresses = match resolved {
            Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
            Ok(_) => return Err(failed("this host's name isn't known")),
            Err(_) => return Err(failed("this host's name wasn't resolved in time")),
        };
        // One is enough: who answers with public and private addresses at once is trying which one
        // is taken.
        if let Some(what) = addresses.iter().find_map(|address| address::reason_to_refuse(*address)) {
            let why = format!("this host's name leads to {what}, and only public ones are let through");
            self.journal.record_denied(host.clone(), *port, &why);
            return Err(ConnectFailure { status: 403, code: ReplyCode::NotAllowed, why });
        }
        let entry = self.journal.record_allowed(host, *port);
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let connecting = self.upstream.connect(SocketAddr::new(address, *port));
            if let Ok(Ok(server)) = timeout(self.bounds.connecting, connecting).await {
                server.set_nodelay(true).ok();
                return Ok((entry, server));
            }
        }
        let why = "this host doesn't answer";
        entry.record_failed(why);
        Err(ConnectFailure::from_error(why))
    }

    /// Copies bytes both ways. The first ones are inspected for the name of the host that they are
    /// for.
    async fn run_tunnel(
        &self,
        mut client: ProxyClient,
        server: TcpStream,
        entry: &OpenConnection,
        target: &Target,
    ) -> io::Result<()> {
        let first = self.bounds.first;
        if target.port == HTTP_PORT {
            let head = timeout(first, self.read_head(&mut client, RequestRoute::Tunnel(target))).await;
            return match head.unwrap_or(Ok(Ok(None)))? {
                Ok(Some(RequestHead::Request { rewritten, body, .. })) => {
                    self.exchange_request(client, server, entry, &rewritten, body).await
                }
                Ok(_) => Ok(()),
                Err(trouble) => {
                    client.send_final_response(&trouble.to_response(), self.bounds.lingering).await
                }
            };
        }
        let hello = async {
            loop {
                match tls_hello::read_client_hello(&client.unread) {
                    ClientHello::More if client.read_more().await? => {}
                    hello => break io::Result::Ok(hello),
                }
            }
        };
        match timeout(first, hello).await {
            Err(_) => {
                entry.record_failed("nothing was sent through the tunnel");
                return Ok(());
            }
            Ok(hello) => match hello? {
                ClientHello::Named(name) if name.eq_ignore_ascii_case(&target.host) => {}
                ClientHello::Unnamed => {}
                ClientHello::Named(_) => {
                    entry.record_denied("TLS named another host than the one that was asked for");
                    return Ok(());
                }
                ClientHello::Broken => {
                    entry.record_denied("only TLS goes through port 443");
                    return Ok(());
                }
                // The client left before it sent anything.
                ClientHello::More => return Ok(()),
            },
        }
        let ProxyClient { mut stream, unread } = client;
        let (mut from_client, mut to_client) = stream.split();
        let (mut from_server, mut to_server) = server.into_split();
        let out = async {
            write_counted(&mut to_server, &unread, &entry.sent).await?;
            copy_counted(&mut from_client, &mut to_server, &entry.sent).await
        };
        let back = copy_counted(&mut from_server, &mut to_client, &entry.received);
        tokio::select! {
            ended = async { tokio::try_join!(out, back) } => ended.map(drop),
            () = self.wait_for_idle(entry) => Ok(()),
        }
    }

    /// Sends one request and returns its answer to the client.
    async fn exchange_request(
        &self,
        client: ProxyClient,
        server: TcpStream,
        entry: &OpenConnection,
        head: &[u8],
        body: BodyLength,
    ) -> io::Result<()> {
        let ProxyClient { mut stream, unread } = client;
        let (mut from_client, mut to_client) = stream.split();
        let (mut from_server, mut to_server) = server.into_split();
        let out = async {
            write_counted(&mut to_server, head, &entry.sent).await?;
            let sent = send_body(&mut from_client, unread, &mut to_server, &entry.sent, body).await?;
            if let Err(refusal) = sent {
                entry.record_denied(refusal.reason());
                return Err(io::ErrorKind::InvalidData.into());
            }
            // The end of the answer ends the exchange.
            std::future::pending::<io::Result<()>>().await
        };
        let back = copy_counted(&mut from_server, &mut to_client, &entry.received);
        tokio::select! {
            ended = back => ended?,
            failed = out => failed?,
            () = self.wait_for_idle(entry) => return Ok(()),
        }
        ProxyClient { stream, unread: Vec::new() }.send_final_response(b"", self.bounds.lingering).await
    }

    /// Ends when nothing passed for a while.
    async fn wait_for_idle(&self, entry: &OpenConnection) {
        let mut before = entry.total_bytes();
        loop {
            tokio::time::sleep(self.bounds.idle).await;
            let now = entry.total_bytes();
            if now == before {
                entry.record_failed("nothing passed for too long");
                return;
            }
            before = now;
        }
    }
}

/// Writes all of it; what was written is counted at once.
async fn write_counted(
    to: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    count: &AtomicU64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = to.write(bytes).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        count.fetch_add(written as u64, Ordering::Relaxed);
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Copies everything, the end of the stream included.
pub(super) async fn copy_counted(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        write_counted(to, buffer.get(..read).unwrap_or_default(), count).await?;
    }
}

/// Passes on as much as belongs to the body, and not a byte of what comes after it.
async fn send_body(
    from: &mut (impl AsyncRead + Unpin),
    unread: Vec<u8>,
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
    body: BodyLength,
) -> io::Result<Result<(), Refusal>> {
    let mut chunks = ChunkedBodyScanner::default();
    let mut left = match body {
        BodyLength::Length(length) => length,
        BodyLength::Chunked => u64::MAX,
    };
    let mut piece = unread;
    while left > 0 {
        let usable = match body {
            BodyLength::Length(_) => piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
            BodyLength::Chunked => match chunks.accept_bytes(&piece) {
                Ok(usable) => usable,
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        write_counted(to, piece.get(..usable).unwrap_or_default(), count).await?;
        match body {
            BodyLength::Length(_) => left -= usable as u64,
            BodyLength::Chunked if chunks.is_done() => break,
            BodyLength::Chunked => {}
        }
        if left == 0 {
            break;
        }
        piece.resize(BUFFER_BYTES, 0);
        let read = from.read(&mut piece).await?;
        if read == 0 {
            // The body is cut, and the server has to see that.
            return to.shutdown().await.map(Ok);
        }
        piece.truncate(read);
    }
    Ok(Ok(()))
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
