//! A model server on the loopback: answers from a script, and remembers what it was asked.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::wires::{self, Wire};
use super::{House, Jm, Reply};

/// The key that runs are given. It looks like one, so that a leak anywhere is found.
pub const KEY: &str = "sk-planted-5f2e8c1b7a9d4036e1";

/// The longest that a test waits for a request that has to come.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Answers.
    Say(Reply),
    /// Refuses: status, further headers, body.
    Refuse(u16, Vec<(&'static str, &'static str)>, String),
    /// Breaks the connection off in the middle of the answer.
    Cut(Reply),
    /// Begins the answer, and says nothing more until the client goes away.
    Begin(Reply),
    /// Takes the request and says nothing until the client goes away.
    Stall,
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::Say(reply)
    }
}

/// Refuses with a message in the protocol's form.
pub fn refuse(wire: Wire, status: u16, kind: &str, message: &str) -> Step {
    Step::Refuse(status, Vec::new(), wire.error(status, kind, message))
}

/// A request for a reply, as it came in.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// What it says since the model's own last words.
    pub fn newest(&self) -> String {
        wires::newest(&self.body)
    }

    /// The tools it offers.
    pub fn tools(&self) -> Vec<String> {
        wires::tools(&self.body)
    }
}

/// What answers a request that no script foresees: the request's number, from 1, and the request.
type Answering = dyn Fn(usize, &Seen) -> Step + Send + Sync;

#[derive(Default)]
struct Shared {
    steps: Mutex<VecDeque<Step>>,
    answering: Option<Box<Answering>>,
    seen: Mutex<Vec<Seen>>,
    arrived: Condvar,
    models: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

/// The server. Dropping it stops it.
pub struct Server {
    pub wire: Wire,
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers the n-th request with the n-th step, and refuses what comes after the last.
    pub fn start<S: Into<Step>>(wire: Wire, steps: impl IntoIterator<Item = S>) -> Self {
        Self::with(wire, steps.into_iter().map(Into::into).collect(), None)
    }

    fn with(wire: Wire, steps: VecDeque<Step>, answering: Option<Box<Answering>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { steps: Mutex::new(steps), answering, ..Shared::default() });
        let theirs = Arc::clone(&shared);
        let listening = std::thread::spawn(move || {
            for socket in listener.incoming() {
                if theirs.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (socket, shared) = (socket.unwrap(), Arc::clone(&theirs));
                std::thread::spawn(move || serve(socket, wire, &shared));
            }
        });
        Self { wire, address, shared, listening: Some(listening) }
    }

    /// Speaks Chat Completions, as most cases want no particular protocol.
    pub fn chat<S: Into<Step>>(steps: impl IntoIterator<Item = S>) -> Self {
        Self::start(Wire::Chat, steps)
    }

    /// Answers each request by what it says, for sessions that ask at the same time.
    pub fn answering(answering: impl Fn(usize, &Seen) -> Step + Send + Sync + 'static) -> Self {
        Self::with(Wire::Chat, VecDeque::new(), Some(Box::new(answering)))
    }

    /// Lists these models when asked.
    pub fn listing(self, names: &[&str]) -> Self {
        *self.shared.models.lock().unwrap() = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `jm run` against this server, in the test's project, with the key set.
    pub fn run(&self, house: &House, arguments: &[&str]) -> Jm {
        let url = self.url();
        let mut all = vec!["run", "--base-url", &url, "--wire", self.wire.name(), "--model", "tiny"];
        all.extend(arguments);
        house.jm(&all).env("JM_API_KEY", KEY)
    }

    /// Another command line against this server: `arguments` follow `command`, then the flags.
    pub fn command(&self, house: &House, command: &[&str], arguments: &[&str]) -> Jm {
        let url = self.url();
        let flags = ["--base-url", &url, "--wire", self.wire.name(), "--model", "tiny"];
        house.jm(&[command, arguments, &flags].concat()).env("JM_API_KEY", KEY)
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Waits until that many requests have come.
    pub fn wait_for(&self, count: usize) {
        let seen = self.shared.seen.lock().unwrap();
        let waited =
            self.shared.arrived.wait_timeout_while(seen, TIMEOUT, |seen| seen.len() < count).unwrap();
        assert!(!waited.1.timed_out(), "request {count} never came");
    }

    /// Stops listening; later connections are refused.
    pub fn stop(&mut self) {
        if let Some(listening) = self.listening.take() {
            self.shared.stopped.store(true, Ordering::SeqCst);
            // Wakes the listener, which then sees the flag.
            drop(TcpStream::connect(self.address));
            listening.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(mut socket: TcpStream, wire: Wire, shared: &Shared) {
    socket.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some((method, seen)) = read_request(&mut socket, &mut buffer) {
        if method == "GET" {
            let list = wire.models(&shared.models.lock().unwrap()).to_string();
            if write_whole(&mut socket, 200, &[], &list).is_err() {
                return;
            }
            continue;
        }
        let nth = {
            let mut all = shared.seen.lock().unwrap();
            all.push(seen.clone());
            shared.arrived.notify_all();
            all.len()
        };
        let step = match &shared.answering {
            Some(answering) => Some(answering(nth, &seen)),
            None => shared.steps.lock().unwrap().pop_front(),
        };
        let step =
            step.unwrap_or_else(|| refuse(wire, 400, "test", "the test's script has no further reply"));
        // A client that went away is within its rights.
        let going_on = match step {
            Step::Say(reply) => write_stream(&mut socket, &wire.events(&reply, nth), true),
            Step::Cut(reply) => {
                let events = wire.events(&reply, nth);
                write_stream(&mut socket, &events[..events.len().div_ceil(2)], false).ok();
                socket.shutdown(Shutdown::Both).ok();
                return;
            }
            Step::Begin(reply) => {
                let events = wire.events(&reply, nth);
                write_stream(&mut socket, &events[..events.len().div_ceil(2)], false).ok();
                wait_for_end(&mut socket);
                return;
            }
            Step::Refuse(status, headers, body) => write_whole(&mut socket, status, &headers, &body),
            Step::Stall => {
                wait_for_end(&mut socket);
                return;
            }
        };
        if going_on.is_err() {
            return;
        }
    }
}

/// Waits until the client goes away.
fn wait_for_end(socket: &mut TcpStream) {
    let mut byte = [0];
    while matches!(socket.read(&mut byte), Ok(1..)) {}
}

fn write_whole(
    socket: &mut TcpStream,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{head}\r\n{body}").as_bytes())
}

fn write_stream(socket: &mut TcpStream, events: &[String], whole: bool) -> std::io::Result<()> {
    socket.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    for event in events {
        socket.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    if whole { socket.write_all(b"0\r\n\r\n") } else { Ok(()) }
}

fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Seen)> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        read_some(socket, buffer)?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap().split(' ');
    let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while buffer.len() < length {
        read_some(socket, buffer)?;
    }
    let body: Vec<u8> = buffer.drain(..length).collect();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some((method, Seen { path, headers, body }))
}

fn read_some(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 * 1024];
    let count = socket.read(&mut piece).ok().filter(|count| *count > 0)?;
    buffer.extend_from_slice(&piece[..count]);
    Some(())
}
