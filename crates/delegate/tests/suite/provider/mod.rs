//! A provider of models on the loopback: speaks the four wire protocols and plays a script.
//!
//! A script says what the model does ([`Action`]); which tool of the CLI that is, and what its
//! input looks like, is taken from the tools that the CLI's request offers.

mod tools;
mod wires;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use self::tools::Offer;
use self::wires::Wire;

/// One thing that the model does with the CLI's tools.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Writes a new file in the working directory.
    Write(&'static str, &'static str),
    /// Runs a command in a shell.
    Run(&'static str),
}

/// The answer of the model to one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A text and the use of tools.
    Act(&'static str, Vec<Action>),
    /// A last text.
    Say(&'static str),
    /// An error with this status.
    Refuse(u16),
    /// The beginning of a text, then the end of the connection.
    CutOff,
    /// Nothing, for as long as the client waits.
    Hang,
}

/// The provider. Its threads end with the test program.
pub(crate) struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Vec<Reply>,
    /// The directory that the CLI works in, for tools that take whole paths.
    directory: PathBuf,
    /// Bodies of the requests that had tools: those of the task itself.
    requests: Mutex<Vec<Value>>,
}

impl Provider {
    /// Answers the n-th request of a task in a directory with the n-th reply, later ones with the
    /// last.
    pub(crate) fn start(script: Vec<Reply>, directory: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { script, directory: directory.to_owned(), requests: Mutex::default() });
        let served = shared.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let served = served.clone();
                // A client may go away at any time: that ends its thread and nothing else.
                std::thread::spawn(move || serve(socket.unwrap(), &served));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of the task's requests.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }
}

/// Serves one connection until the client closes it or a reply ends it.
fn serve(socket: TcpStream, shared: &Shared) -> Option<()> {
    socket.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut socket = socket;
    loop {
        let (line, body) = read_request(&mut reader)?;
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let wire = line.starts_with("POST ").then(|| Wire::of_path(&path)).flatten();
        let Some(wire) = wire else {
            // A request for WebSockets is refused in the way that makes clients fall back at once.
            send(&mut socket, if line.starts_with("GET ") { 426 } else { 404 }, &json!({}))?;
            continue;
        };
        let streamed = wire.is_streamed(&path, &body);
        let offer = Offer::of(&body);
        if !offer.can_work() {
            // Titles, choices of a model and the like, which CLIs ask for besides.
            wire.answer(&mut socket, streamed, wires::SIDE_ANSWER, &[])?;
            continue;
        }
        let number = {
            let mut requests = shared.requests.lock().unwrap();
            requests.push(body);
            requests.len() - 1
        };
        match &shared.script[number.min(shared.script.len() - 1)] {
            Reply::Act(text, actions) => {
                let calls: Vec<_> =
                    actions.iter().map(|action| offer.call(action, &shared.directory)).collect();
                wire.answer(&mut socket, streamed, text, &calls)?;
            }
            Reply::Say(text) => wire.answer(&mut socket, streamed, text, &[])?,
            Reply::Refuse(status) => send(&mut socket, *status, &wires::refusal(*status))?,
            Reply::CutOff => {
                wire.begin(&mut socket, "half of ")?;
                socket.shutdown(Shutdown::Both).ok()?;
                return None;
            }
            Reply::Hang => {
                // Ends when the client goes away.
                reader.read_to_end(&mut Vec::new()).ok()?;
                return None;
            }
        }
    }
}

/// Reads the request line and the body.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Sends a whole answer.
fn send(socket: &mut TcpStream, status: u16, body: &Value) -> Option<()> {
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    socket.write_all([head, body].concat().as_bytes()).ok()
}
