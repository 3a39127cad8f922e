//! A network of some hosts alone, with real clients in the real sandbox. The world outside is servers on loopback,
//! which the tests' own resolver and connector lead to: no test needs a network, or reaches one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use common::{block_on, has, project, settings};
use journeyman_protocol::Needs;
use journeyman_sandbox::{
    Completed, Connection, DenialKind, Network, NetworkRules, Outcome, Outside, Reaching, Request, Sandbox,
    SandboxSettings, WriteMode,
};
use tokio_util::sync::CancellationToken;

const PYTHON: &str = "/usr/bin/python3";
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4));
const PAGE: &str = "a page of the allowed host\n";
const REFS: &str = "1111111111111111111111111111111111111111\trefs/heads/main\n";

/// What the proxy finds outside: names, and a server for each port.
#[derive(Debug, Default)]
struct World {
    names: BTreeMap<&'static str, Vec<Vec<IpAddr>>>,
    servers: BTreeMap<u16, SocketAddr>,
    resolved: Mutex<Vec<String>>,
    connected: Mutex<Vec<SocketAddr>>,
}

impl World {
    fn new() -> Self {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let names = BTreeMap::from([
            ("allowed.test", vec![vec![PUBLIC]]),
            ("private.test", vec![vec![at("10.1.2.3")]]),
            ("metadata.test", vec![vec![at("169.254.169.254")]]),
            ("mapped.test", vec![vec![at("::ffff:127.0.0.1")]]),
            ("mixed.test", vec![vec![PUBLIC, at("192.168.0.1")]]),
            // The first answer is what it should be, the next ones aren't.
            ("rebinding.test", vec![vec![PUBLIC], vec![at("127.0.0.1")]]),
        ]);
        Self { names, ..Self::default() }
    }

    fn serving(mut self, port: u16, server: SocketAddr) -> Self {
        self.servers.insert(port, server);
        self
    }

    fn connected(&self) -> Vec<SocketAddr> {
        self.connected.lock().unwrap().clone()
    }
}

impl Outside for World {
    fn resolve<'a>(&'a self, host: &'a str) -> Reaching<'a, Vec<IpAddr>> {
        let mut resolved = self.resolved.lock().unwrap();
        let before = resolved.iter().filter(|name| *name == host).count();
        resolved.push(host.to_owned());
        let answers = self.names.get(host);
        let answer = answers.and_then(|answers| answers.get(before).or(answers.last()));
        let answer = answer.cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into());
        Box::pin(async move { answer })
    }

    fn connect(&self, address: SocketAddr) -> Reaching<'_, tokio::net::TcpStream> {
        self.connected.lock().unwrap().push(address);
        let server = self.servers.get(&address.port()).copied();
        Box::pin(async move {
            let server = server.ok_or(std::io::ErrorKind::ConnectionRefused)?;
            tokio::net::TcpStream::connect(server).await
        })
    }
}

fn rules() -> Arc<NetworkRules> {
    let hosts = ["allowed", "private", "metadata", "mapped", "mixed", "rebinding"];
    let hosts = hosts.map(|name| format!("{name}.test").parse().unwrap()).to_vec();
    Arc::new(NetworkRules { hosts, plain_http: true })
}

fn request(root: &Path, command: &str) -> Request {
    let mut request = Request::shell(root, command);
    request.network = Network::Filtered(rules());
    request
}

fn sandbox(world: &Arc<World>) -> Sandbox {
    Sandbox::new(SandboxSettings { outside: Some(world.clone()), ..settings() })
}

fn run(world: &Arc<World>, request: Request) -> Completed {
    block_on(async {
        let running = sandbox(world).spawn(request, CancellationToken::new()).await.unwrap();
        running.wait().await.unwrap()
    })
}

/// A web server for as long as the tests run.
fn web() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|client| page(client).unwrap_or(())));
    address
}

fn page(mut client: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut field = String::new();
    while reader.read_line(&mut field)? > 2 {
        field.clear();
    }
    let body = match line.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/repo.git/info/refs") => REFS,
        "/repo.git/HEAD" => "ref: refs/heads/main\n",
        _ => PAGE,
    };
    let length = body.len();
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// A server that sends back what it gets, and tells what it got when a connection ends.
fn echo() -> (SocketAddr, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (ended, ends) = mpsc::channel();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let ended = ended.clone();
            std::thread::spawn(move || {
                let (mut buffer, mut total) = (vec![0; 65536], 0);
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    total += count;
                    if client.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                ended.send(total).ok();
            });
        }
    });
    (address, ends)
}

/// OpenSSL's own server with a certificate for `allowed.test`, which is left in the directory.
struct Tls {
    server: Child,
    address: SocketAddr,
}

impl Tls {
    fn new(directory: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=allowed.test", "-addext", "subjectAltName=DNS:allowed.test", "-days", "2"])
            .args(["-keyout", "/dev/stdout", "-out", "/dev/stdout"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::write(directory.join("certificate.pem"), made.stdout).unwrap();
        let server = Command::new("openssl")
            .args(["s_server", "-quiet", "-www", "-accept", &address.to_string()])
            .args(["-cert".as_ref(), directory.join("certificate.pem").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        common::eventually("the TLS server", || TcpStream::connect(address).is_ok());
        Self { server, address }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

/// The entries of a host, by whether they were let through.
fn of<'a>(completed: &'a Completed, host: &str) -> Vec<&'a Connection> {
    completed.connections.iter().filter(|entry| entry.host == host).collect()
}

#[test]
fn it_is_enforced_and_the_rest_of_the_network_is_off() {
    let enforced = block_on(sandbox(&Arc::new(World::new())).enforcement(&Needs::ALL)).unwrap();
    assert!(enforced.network_filtered && enforced.network_off, "{enforced:?}");
}

#[test]
fn usual_clients_reach_the_allowed_host_and_no_other() {
    if !(has("curl") && has("openssl") && has(PYTHON)) {
        return;
    }
    let project = project();
    let tls = Tls::new(project.path());
    let world = Arc::new(World::new().serving(80, web()).serving(443, tls.address));
    let status = "curl -s -m 20 -o /dev/null -w '%{http_code} %{http_connect}\\n' --cacert certificate.pem";
    let script = format!(
        "{status} http://allowed.test/x\n\
         {status} https://allowed.test/\n\
         {status} http://other.test/\n\
         {status} https://other.test/\n\
         {status} --socks5-hostname 127.0.0.1:3128 https://allowed.test/\n\
         {status} --socks5 127.0.0.1:3128 https://1.2.3.4/\n\
         {status} -p http://allowed.test/\n\
         {status} https://allowed.test:22/\n\
         python3 -c 'import urllib.request, ssl\n\
context = ssl.create_default_context(cafile=\"certificate.pem\")\n\
print(urllib.request.urlopen(\"http://allowed.test/x\").read())\n\
print(b\"s_server\" in urllib.request.urlopen(\"https://allowed.test/\", context=context).read())\n\
try: urllib.request.urlopen(\"https://other.test/\")\n\
except OSError as error: print(error)'\n",
    );
    let mut request = request(project.path(), &script);
    request.env.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let completed = run(&world, request);
    let lines: Vec<&str> = completed.stdout.text.lines().collect();
    let expected = [
        "200 000",
        "200 200",
        "403 000",
        "000 403",
        "200 000",
        "000 000",
        "200 200",
        "000 403",
        "b'a page of the allowed host\\n'",
        "True",
    ];
    assert_eq!(lines[..10], expected, "{}", completed.combined.text);
    assert!(lines[10].contains("403") && lines[10].contains("isn't among those"), "{}", lines[10]);
    assert!(world.connected().iter().all(|address| address.ip() == PUBLIC));
    assert!(!world.resolved.lock().unwrap().iter().any(|name| name != "allowed.test"));
    let refused: Vec<_> = completed.denials.iter().map(|denial| (denial.kind, denial.certain)).collect();
    assert_eq!(refused.len(), 4, "{:?}", completed.denials);
    assert!(refused.iter().all(|denial| *denial == (DenialKind::Network, true)));
    assert!(completed.denials.iter().any(|denial| denial.what.contains("other.test:443")));
    assert!(completed.denials.iter().any(|denial| denial.what.contains("1.2.3.4:443")));
    assert_eq!(of(&completed, "allowed.test").iter().filter(|entry| entry.denied.is_none()).count(), 2);
}

#[test]
fn git_fetches_from_the_allowed_host_alone() {
    if !has("git") {
        return;
    }
    let project = project();
    let world = Arc::new(World::new().serving(80, web()));
    let script =
        "cd /tmp; git ls-remote http://allowed.test/repo.git; git ls-remote http://other.test/repo.git";
    let mut request = request(project.path(), script);
    request.env.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let completed = run(&world, request);
    let text = &completed.combined.text;
    assert!(completed.stdout.text.contains("1111111111111111111111111111111111111111"), "{text}");
    assert!(completed.outcome != Outcome::Exited(0) && text.contains("403"), "{text}");
}

/// Asks the proxy in the words given, and prints the first line of the answer.
const ASK: &str = r#"
import socket, sys
for ask in eval(sys.stdin.read()):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(20)
    s.sendall(ask)
    try: s.shutdown(socket.SHUT_WR)
    except OSError: pass
    answer = b""
    while True:
        try: more = s.recv(4096)
        except OSError: more = b""
        if not more: break
        answer += more
    print(answer.split(b"\r\n")[0])
"#;

#[test]
fn no_trick_gets_past_the_names() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, _) = echo();
    let world = Arc::new(World::new().serving(80, server).serving(443, server));
    let mut asks: Vec<String> = [
        "other.test:443",
        "127.0.0.1:443",
        "169.254.169.254:80",
        "[::1]:443",
        "[::ffff:169.254.169.254]:443",
        "2130706433:443",
        "0177.0.0.1:443",
        "0x7f000001:443",
        "127.1:443",
        "0:443",
        "allowed.test:22",
        "allowed.test:8443",
        "allowed.test.:443",
        "all\u{43e}wed.test:443",
        "allowed\u{3002}test:443",
        "\u{24d0}llowed.test:443",
        "user@allowed.test:443",
        "allowed.test@other.test:443",
        "allowed.test#@x:443",
        "allowed.test%2eother.test:443",
        "other.test\\.allowed.test:443",
        "localhost:443",
        "other.test/allowed.test:443",
        "xallowed.test:443",
        "sub.allowed.test:443",
        "private.test:443",
        "metadata.test:443",
        "mapped.test:443",
        "mixed.test:443",
        "169.254.169.254",
        "metadata.test:80",
    ]
    .iter()
    .map(|target| format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
    .collect();
    asks.extend(
        [
            // More than one line, or one that others read in another way.
            "CONNECT allowed.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n",
            "CONNECT allowed.test\r\nHost: other.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT other.test:443\tallowed.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT other.test:443\0allowed.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT allowed.test:443 HTTP/1.1\n\n",
            "GET http://other.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "GET http://allowed.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
            "GET http://allowed.test@other.test/ HTTP/1.1\r\n\r\n",
            "GET http://other.test#@allowed.test/ HTTP/1.1\r\n\r\n",
            "GET http://other.test\\@allowed.test/ HTTP/1.1\r\n\r\n",
            "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\n\r\n",
            "GET http://metadata.test/latest/meta-data/ HTTP/1.1\r\n\r\n",
            "GET https://allowed.test/ HTTP/1.1\r\n\r\n",
            "GET //other.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "GET http://allowed.test:22/ HTTP/1.1\r\n\r\n",
            "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST http://allowed.test/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            "GET http://allowed.test/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
            "GET http://allowed.test/ HTTP/1.1\r\nX: a\rHost: other.test\r\n\r\n",
        ]
        .map(str::to_owned),
    );
    let count = asks.len();
    let listed: Vec<String> = asks.iter().map(|ask| format!("bytes({:?})", ask.as_bytes())).collect();
    let mut request = Request::program(project.path(), [PYTHON, "-c", ASK].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    request.stdin = journeyman_sandbox::Stdin::Bytes(format!("[{}]", listed.join(",")).into_bytes());
    let completed = run(&world, request);
    let lines: Vec<&str> = completed.stdout.text.lines().collect();
    assert_eq!(lines.len(), count, "{}", completed.combined.text);
    for (ask, line) in asks.iter().zip(lines) {
        assert!(line.starts_with("b'HTTP/1.1 40") || line.starts_with("b\"HTTP/1.1 40"), "{ask:?}: {line}");
    }
    assert_eq!(world.connected(), []);
    let times: u64 = completed.connections.iter().map(|entry| entry.times).sum();
    assert_eq!(times, count as u64);
    assert!(completed.connections.iter().all(|entry| entry.denied.is_some()));
}

/// A tunnel to a host, with what TLS says first.
const TUNNEL: &str = r#"
import socket, ssl, sys
def tunnel(host, port=443):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(20)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        more = s.recv(1)
        if not more: raise OSError(answer)
        answer += more
    if not answer.startswith(b"HTTP/1.1 200"): raise OSError(answer)
    return s
def hello(name):
    out = ssl.MemoryBIO(); context = ssl._create_unverified_context()
    try: context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def whole(s, count):
    got = b""
    while len(got) < count:
        more = s.recv(65536)
        if not more: raise OSError("cut")
        got += more
    return got
"#;

#[test]
fn every_byte_is_counted() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, ends) = echo();
    let world = Arc::new(World::new().serving(443, server));
    let code = format!(
        "{TUNNEL}
s = tunnel('allowed.test'); first = hello('allowed.test'); s.sendall(first)
assert whole(s, len(first)) == first
for _ in range(50): s.sendall(b'x' * 7919); whole(s, 7919)
print(len(first) + 50 * 7919)"
    );
    let mut request = Request::program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    let bytes: u64 =
        completed.stdout.text.trim().parse().unwrap_or_else(|_| panic!("{}", completed.combined.text));
    let entry = of(&completed, "allowed.test")[0];
    assert_eq!((entry.sent, entry.received, entry.times), (bytes, bytes, 1));
    assert_eq!(ends.recv().unwrap() as u64, bytes);
}

#[test]
fn another_name_within_tls_is_cut() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, ends) = echo();
    let world = Arc::new(World::new().serving(443, server));
    let code = format!(
        "{TUNNEL}
for name in ['other.test', None]:
    s = tunnel('allowed.test'); first = hello(name); s.sendall(first)
    try: whole(s, len(first)); print('through')
    except OSError: print('cut')
s = tunnel('allowed.test'); s.sendall(b'not TLS at all')
try: whole(s, 1); print('through')
except OSError: print('cut')"
    );
    let mut request = Request::program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    assert_eq!(completed.stdout.text, "cut\nthrough\ncut\n", "{}", completed.combined.text);
    let got: Vec<usize> = ends.iter().take(3).collect();
    assert_eq!(got.iter().filter(|count| **count == 0).count(), 2, "{got:?}");
    assert!(completed.denials.iter().any(|denial| denial.what.contains("TLS named another host")));
}

#[test]
fn a_name_is_resolved_once_for_each_connection_and_judged_each_time() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, _) = echo();
    let world = Arc::new(World::new().serving(443, server));
    let code = format!(
        "{TUNNEL}
s = tunnel('rebinding.test'); first = hello('rebinding.test'); s.sendall(first); whole(s, len(first)); print('first')
try: tunnel('rebinding.test'); print('second')
except OSError as error: print(error)"
    );
    let mut request = Request::program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    let text = &completed.stdout.text;
    assert!(text.starts_with("first\n") && text.contains("403") && text.contains("loopback"), "{text}");
    assert_eq!(world.connected(), [SocketAddr::new(PUBLIC, 443)]);
    assert_eq!(*world.resolved.lock().unwrap(), ["rebinding.test"; 2]);
}

#[test]
fn there_is_no_other_way_out() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, _) = echo();
    let host_tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let host_udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    host_udp.set_nonblocking(true).unwrap();
    host_tcp.set_nonblocking(true).unwrap();
    let world = Arc::new(World::new().serving(443, server));
    let code = format!(
        "import socket, threading
def attempt(name, what):
    try: what(); print(name, 'worked')
    except OSError: print(name, 'failed')
def connect(family, address, kind=socket.SOCK_STREAM):
    def f():
        s = socket.socket(family, kind); s.settimeout(2); s.connect(address); s.send(b'leak')
    return f
attempt('tcp', connect(socket.AF_INET, ('1.2.3.4', 443)))
attempt('host', connect(socket.AF_INET, ('127.0.0.1', {tcp})))
attempt('udp', connect(socket.AF_INET, ('8.8.8.8', 53), socket.SOCK_DGRAM))
attempt('ipv6', connect(socket.AF_INET6, ('2606:4700::1111', 443)))
attempt('vsock', connect(40, (2, 1024)))
attempt('dns', lambda: socket.getaddrinfo('allowed.test', 443))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
attempt('hostudp', lambda: s.sendto(b'leak', ('127.0.0.1', {udp})))
def loopback():
    server = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b'hi')).start()
    import urllib.request
    s = socket.create_connection(server.getsockname()); assert s.recv(2) == b'hi'
attempt('loopback', loopback)",
        tcp = host_tcp.local_addr().unwrap().port(),
        udp = host_udp.local_addr().unwrap().port(),
    );
    let mut request = Request::program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    let expected = "tcp failed\nhost failed\nudp failed\nipv6 failed\nvsock failed\ndns failed\nraw failed\n";
    // A datagram to nobody is taken by the sandbox's own loopback; it gets nowhere.
    let text = completed.stdout.text.replace("hostudp worked\n", "").replace("hostudp failed\n", "");
    assert_eq!(text, format!("{expected}loopback worked\n"), "{}", completed.combined.text);
    assert!(host_tcp.accept().is_err());
    assert!(host_udp.recv(&mut [0; 8]).is_err());
    assert_eq!(world.connected(), []);
}

#[test]
fn without_rules_there_is_no_proxy() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let code = "import socket, os
print([name for name in os.environ if 'proxy' in name.lower()])
socket.create_connection(('127.0.0.1', 3128))";
    let request = Request::program(project.path(), [PYTHON, "-c", code].map(Into::into).to_vec());
    let completed = run(&Arc::new(World::new()), request);
    assert_eq!(completed.stdout.text, "[]\n");
    assert!(completed.stderr.text.contains("ConnectionRefusedError"), "{}", completed.stderr.text);
    assert_eq!((completed.connections, completed.denials), (vec![], vec![]));
}

#[test]
fn programs_are_told_where_the_proxy_is_unless_the_caller_told_them() {
    let project = project();
    let mut request = request(project.path(), "echo $http_proxy $HTTPS_PROXY $no_proxy $CARGO_HTTP_PROXY");
    request.env.insert("HTTPS_PROXY".into(), "own".into());
    request.write = WriteMode::ReadOnly;
    let completed = run(&Arc::new(World::new()), request);
    assert_eq!(
        completed.stdout.text,
        "http://127.0.0.1:3128 own localhost,127.0.0.1,::1 http://127.0.0.1:3128\n"
    );
}

#[test]
fn every_connection_ends_with_the_command() {
    if !has(PYTHON) {
        return;
    }
    let project = project();
    let (server, ends) = echo();
    let world = Arc::new(World::new().serving(443, server));
    let code = format!(
        "{TUNNEL}
s = tunnel('allowed.test'); first = hello('allowed.test'); s.sendall(first); whole(s, len(first))
print('open', flush=True)
s.recv(1)"
    );
    let open = |wall: Option<std::time::Duration>| {
        let mut request = Request::program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
        request.network = Network::Filtered(rules());
        if let Some(wall) = wall {
            request.limits.wall = wall;
        }
        request
    };
    block_on(async {
        let sandbox = sandbox(&world);
        // Cancelled.
        let cancel = CancellationToken::new();
        let mut running = sandbox.spawn(open(None), cancel.clone()).await.unwrap();
        assert!(running.next().await.is_some());
        cancel.cancel();
        let completed = running.wait().await.unwrap();
        assert_eq!(completed.outcome, Outcome::Cancelled);
        assert_eq!(of(&completed, "allowed.test")[0].sent, ends.recv().unwrap() as u64);
        // Dropped.
        let mut running = sandbox.spawn(open(None), CancellationToken::new()).await.unwrap();
        assert!(running.next().await.is_some());
        drop(running);
        while ends.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        // Out of time.
        let wall = std::time::Duration::from_secs(2);
        let running = sandbox.spawn(open(Some(wall)), CancellationToken::new()).await.unwrap();
        assert_eq!(running.wait().await.unwrap().outcome, Outcome::TimedOut);
    });
    assert!(ends.recv().unwrap() > 0);
}

#[test]
fn unprivileged() {
    common::again_unprivileged();
}
