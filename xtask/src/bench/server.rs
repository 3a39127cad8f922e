//! A loopback model that answers at once: as many calls as asked, then a last word.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

/// Maximum time that a benchmark waits for a request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that speaks Chat Completions.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    arrivals: Receiver<Instant>,
}

impl Server {
    /// Listens on a free port. Each conversation makes these calls, one a turn.
    pub(crate) fn start(calls: Vec<Call>) -> anyhow::Result<Self> {
        let calls = Arc::new(calls);
        let listener = TcpListener::bind("127.0.0.1:0").context("a loopback port")?;
        let address = listener.local_addr()?;
        let (sender, arrivals) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, calls) = (sender.clone(), Arc::clone(&calls));
                std::thread::spawn(move || serve(stream, &calls, &sender));
            }
        });
        Ok(Self { address, arrivals })
    }

    /// When the next request was whole.
    pub(crate) fn arrival(&self) -> anyhow::Result<Instant> {
        self.arrivals.recv_timeout(TIMEOUT).context("no request arrived")
    }
}

fn serve(stream: TcpStream, calls: &[Call], arrivals: &Sender<Instant>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let body = request(&mut reader)?;
        arrivals.send(Instant::now()).ok()?;
        let done = body.get("messages").and_then(Value::as_array).map_or(0, |messages| {
            messages.iter().filter(|message| message.get("role").is_some_and(|role| role == "tool")).count()
        });
        let events = calls.get(done).map_or_else(last_word, |call| call.events(done));
        let body: String =
            events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        write!(writer, "{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).ok()?;
        writer.flush().ok()?;
    }
}

/// Reads one request; `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0, "model": "bench",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn usage() -> Value {
    json!({ "id": "chatcmpl-bench", "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020 } })
}

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

impl Call {
    /// Returns `count` shell calls.
    pub(crate) fn shell(count: usize) -> Vec<Self> {
        let call = |number| Self {
            tool: "run_command",
            arguments: json!({ "command": format!("echo turn {number}") }),
        };
        (0..count).map(call).collect()
    }

    fn events(&self, number: usize) -> Vec<Value> {
        let call = json!([{ "index": 0, "id": format!("call_{number}"), "type": "function",
            "function": { "name": self.tool, "arguments": self.arguments.to_string() } }]);
        vec![
            chunk(&json!({ "role": "assistant", "tool_calls": call }), None),
            chunk(&json!({}), Some("tool_calls")),
            usage(),
        ]
    }
}

fn last_word() -> Vec<Value> {
    vec![
        chunk(&json!({ "role": "assistant", "content": "Done." }), None),
        chunk(&json!({}), Some("stop")),
        usage(),
    ]
}
