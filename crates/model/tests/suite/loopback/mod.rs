//! A server on the loopback that does to a client what servers and networks do.

pub(crate) mod tls;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use journeyman_model::{Delta, Endpoint, HttpModel, Model, ModelError, ModelRequest, Reply, Wire};
use journeyman_protocol::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One thing that the server does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Closes the connection in order.
    Close,
    /// Ends the connection with a reset.
    Reset,
    /// Says nothing more until the client goes away.
    Hang,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: serde_json::Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Server {
    pub address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    gone: Arc<Notify>,
}

impl Server {
    /// Answers the n-th request with the n-th script; later ones with the last.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            gone: Arc::default(),
        };
        let (seen, connections, gone) =
            (server.seen.clone(), server.connections.clone(), server.gone.clone());
        let scripts = Arc::new(scripts);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                // A piece is on its way when it is written, not when the next one follows.
                socket.set_nodelay(true).unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, scripts.clone(), seen.clone(), gone.clone()));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until a client has closed a connection on which the server [`Act::Hang`]s.
    pub(crate) async fn client_gone(&self) {
        tokio::time::timeout(Duration::from_secs(30), self.gone.notified()).await.expect("the client stays");
    }

    /// An endpoint at this server that speaks the chat protocol and waits little between attempts.
    pub(crate) fn endpoint(&self) -> Endpoint {
        let mut endpoint = Endpoint::new("test", Wire::Chat, self.url());
        endpoint.key = Some(journeyman_model::Secret::new(KEY));
        endpoint.key_env = vec!["TEST_API_KEY".to_owned()];
        endpoint.retry.base_wait = Duration::from_millis(2);
        endpoint.retry.max_wait = Duration::from_millis(4);
        endpoint
    }

    pub(crate) fn model(&self) -> HttpModel {
        journeyman_model::connect(self.endpoint(), "tiny").unwrap()
    }
}

pub(crate) const KEY: &str = "sk-very-secret-0123456789";

async fn serve(
    mut socket: TcpStream,
    scripts: Arc<Vec<Vec<Act>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    gone: Arc<Notify>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        for act in &scripts[number.min(scripts.len() - 1)] {
            match act {
                // The client may have gone away; that is its right.
                Act::Send(bytes) => {
                    if socket.write_all(bytes).await.is_err() {
                        return;
                    }
                }
                Act::Pause(time) => tokio::time::sleep(*time).await,
                Act::Close => return,
                Act::Reset => {
                    socket.set_zero_linger().unwrap();
                    return;
                }
                Act::Hang => {
                    let mut byte = [0];
                    while matches!(socket.read(&mut byte).await, Ok(1..)) {}
                    gone.notify_one();
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer.drain(..end + 4).take(end).collect()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while buffer.len() < length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body: Vec<u8> = buffer.drain(..length).collect();
    let body = serde_json::from_slice(&body).unwrap_or(serde_json::Value::Null);
    Some(Seen { line, headers, body })
}

/// The head of a stream in chunked encoding.
pub(crate) fn stream_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
    )
}

/// A piece of a chunked body.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Act {
    let bytes = bytes.as_ref();
    Act::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// The end of a chunked body.
pub(crate) fn end() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}

pub(crate) const FIRST: &str = "data: {\"id\":\"1\",\"model\":\"tiny-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"}}]}\n\n";
pub(crate) const REST: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" wörld\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);

/// A whole answer that says `Hello wörld`.
pub(crate) fn hello() -> Vec<Act> {
    vec![stream_head(), chunk(FIRST), chunk(REST), end()]
}

/// An answer with a status, headers (each with its line end) and a body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    vec![Act::Send(text.into_bytes())]
}

/// An error as OpenAI's API and its imitators report it.
pub(crate) fn error_body(message: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": "test"}}).to_string()
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "tiny".to_owned(),
        messages: vec![Message::user_text("Say hello.")],
        ..ModelRequest::default()
    }
}

/// Everything a stream gives.
pub(crate) async fn drain(model: &dyn Model) -> (Vec<Delta>, Option<ModelError>) {
    drain_request(model, &request(), CancellationToken::new()).await
}

pub(crate) async fn drain_request(
    model: &dyn Model,
    request: &ModelRequest,
    cancel: CancellationToken,
) -> (Vec<Delta>, Option<ModelError>) {
    let mut stream = model.stream(request, cancel);
    let mut deltas = Vec::new();
    let mut error = None;
    while let Some(item) = stream.next().await {
        assert!(error.is_none(), "nothing follows an error");
        assert!(!matches!(deltas.last(), Some(Delta::Done(_))), "nothing follows the end");
        match item {
            Ok(delta) => deltas.push(delta),
            Err(found) => error = Some(found),
        }
    }
    assert_eq!(
        error.is_none(),
        matches!(deltas.last(), Some(Delta::Done(_))),
        "one end: {deltas:?} {error:?}"
    );
    (deltas, error)
}

pub(crate) async fn reply(model: &dyn Model) -> Reply {
    let (mut deltas, error) = drain(model).await;
    assert_eq!(error, None);
    match deltas.pop() {
        Some(Delta::Done(reply)) => *reply,
        other => panic!("no reply: {other:?}"),
    }
}

pub(crate) async fn failure(model: &dyn Model) -> ModelError {
    drain(model).await.1.expect("an error")
}

/// The reasons of the restarts, in order.
pub(crate) fn restarts(deltas: &[Delta]) -> Vec<String> {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Restart { reason, .. } => Some(reason.clone()),
            _ => None,
        })
        .collect()
}
