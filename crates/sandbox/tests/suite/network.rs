//! A network of some hosts alone, with real clients in the real sandbox. The world outside is
//! servers on loopback, which the tests' own resolver and connector lead to: no test needs a
//! network, or reaches one.

use crate::common;
use journeyman_testkit::has_program_or_skip;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use crate::common::world::{PUBLIC, Tls, World, echo, logging_web, web};
use crate::common::{block_on, project, settings};
use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{
    CompletedCommand, DenialKind, Network, NetworkRules, Outcome, ProxyConnection, Request, Sandbox,
    SandboxSettings, WriteMode,
};
use tokio_util::sync::CancellationToken;

const PYTHON: &str = "/usr/bin/python3";

fn rules() -> Arc<NetworkRules> {
    let hosts = ["allowed", "private", "metadata", "mapped", "mixed", "rebinding"];
    let hosts = hosts.map(|name| format!("{name}.test").parse().unwrap()).to_vec();
    Arc::new(NetworkRules { hosts, plain_http: true, forwards: Vec::new() })
}

fn request(root: &Path, command: &str) -> Request {
    let mut request = Request::for_shell_command(root, command);
    request.network = Network::Filtered(rules());
    request
}

fn sandbox(world: &Arc<World>) -> Sandbox {
    Sandbox::new(SandboxSettings { upstream: Some(world.clone()), ..settings() })
}

fn run(world: &Arc<World>, request: Request) -> CompletedCommand {
    block_on(async {
        let running = sandbox(world).spawn(request, CancellationToken::new()).await.unwrap();
        running.wait().await.unwrap()
    })
}

/// The entries of a host, by whether they were let through.
fn of<'a>(completed: &'a CompletedCommand, host: &str) -> Vec<&'a ProxyConnection> {
    completed.connections.iter().filter(|entry| entry.host == host).collect()
}

#[test]
fn it_is_enforced_and_the_rest_of_the_network_is_off() {
    let enforced = block_on(sandbox(&Arc::new(World::new())).enforcement(&SandboxNeeds::ALL)).unwrap();
    assert!(enforced.network_filtered && enforced.network_off, "{enforced:?}");
}

#[test]
fn usual_clients_reach_the_allowed_host_and_no_other() {
    if !(has_program_or_skip("curl") && has_program_or_skip("openssl") && has_program_or_skip(PYTHON)) {
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
    if !has_program_or_skip("git") {
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

#[test]
fn package_managers_find_the_proxy_by_themselves() {
    let project = project();
    let config = "[source.crates-io]\nreplace-with = 'here'\n[source.here]\nregistry = 'sparse+http://allowed.test/cargo/'\n";
    std::fs::create_dir_all(project.path().join("rust/.cargo")).unwrap();
    std::fs::create_dir_all(project.path().join("rust/src")).unwrap();
    std::fs::write(project.path().join("rust/.cargo/config.toml"), config).unwrap();
    let manifest = "[package]\nname = 'a'\nversion = '0.1.0'\n[dependencies]\nsome-crate = '1'\n";
    std::fs::write(project.path().join("rust/Cargo.toml"), manifest).unwrap();
    std::fs::write(project.path().join("rust/src/lib.rs"), "").unwrap();
    let java = "import java.net.*; public class Ask { public static void main(String[] a) throws Exception {
        new URL(\"http://allowed.test/java/x\").openStream().readAllBytes(); } }";
    std::fs::write(project.path().join("Ask.java"), java).unwrap();
    let tools = [
        ("npm", "npm view --registry http://allowed.test/npm/ some-package", "GET /npm/some-package"),
        (
            "pip3",
            "/usr/bin/python3 -m pip download --retries 0 --trusted-host allowed.test -i http://allowed.test/pip/simple some-package",
            "GET /pip/simple/some-package/",
        ),
        ("cargo", "cd rust && cargo fetch", "GET /cargo/"),
        // As the scripts of Maven, Gradle and sbt start it.
        ("java", "java $MAVEN_OPTS Ask.java", "GET /java/x"),
        ("wget", "wget -q -O - http://allowed.test/wget/x", "GET /wget/x"),
    ];
    for (tool, line, expected) in tools {
        // On some systems python comes without pip; the others say that they are missing.
        if !has_program_or_skip(tool) {
            continue;
        }
        let (server, asked) = logging_web();
        let world = Arc::new(World::new().serving(80, server));
        let mut request =
            request(project.path(), line).with_toolchains(&common::host_toolchains(project.path()));
        request.limits.processes = 4096;
        let completed = run(&world, request);
        let requests: Vec<String> = asked.try_iter().collect();
        assert!(
            requests.iter().any(|line| line.starts_with(expected)),
            "{tool}: {requests:?}\n{}",
            completed.combined.text
        );
        assert_eq!(of(&completed, "allowed.test")[0].denied, None, "{tool}");
    }
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

/// What a client may try to get elsewhere, each in its own words.
fn tricks() -> Vec<String> {
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
    asks
}

#[test]
fn no_trick_gets_past_the_names() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let project = project();
    let (server, _) = echo();
    let world = Arc::new(World::new().serving(80, server).serving(443, server));
    let asks = tricks();
    let count = asks.len();
    let listed: Vec<String> = asks.iter().map(|ask| format!("bytes({:?})", ask.as_bytes())).collect();
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", ASK].map(Into::into).to_vec());
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
    if !has_program_or_skip(PYTHON) {
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
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
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
    if !has_program_or_skip(PYTHON) {
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
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    assert_eq!(completed.stdout.text, "cut\nthrough\ncut\n", "{}", completed.combined.text);
    let got: Vec<usize> = ends.iter().take(3).collect();
    assert_eq!(got.iter().filter(|count| **count == 0).count(), 2, "{got:?}");
    assert!(completed.denials.iter().any(|denial| denial.what.contains("TLS named another host")));
}

#[test]
fn a_name_is_resolved_once_for_each_connection_and_judged_each_time() {
    if !has_program_or_skip(PYTHON) {
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
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
    request.network = Network::Filtered(rules());
    let completed = run(&world, request);
    let text = &completed.stdout.text;
    assert!(text.starts_with("first\n") && text.contains("403") && text.contains("loopback"), "{text}");
    assert_eq!(world.connected(), [SocketAddr::new(PUBLIC, 443)]);
    assert_eq!(*world.resolved.lock().unwrap(), ["rebinding.test"; 2]);
}

#[test]
fn there_is_no_other_way_out() {
    if !has_program_or_skip(PYTHON) {
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
    let mut request = Request::for_program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
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
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let project = project();
    let code = "import socket, os
print([name for name in os.environ if 'proxy' in name.lower()])
socket.create_connection(('127.0.0.1', 3128))";
    let request = Request::for_program(project.path(), [PYTHON, "-c", code].map(Into::into).to_vec());
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
    if !has_program_or_skip(PYTHON) {
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
        let mut request =
            Request::for_program(project.path(), [PYTHON, "-c", &code].map(Into::into).to_vec());
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
        assert!(running.next_chunk().await.is_some());
        cancel.cancel();
        let completed = running.wait().await.unwrap();
        assert_eq!(completed.outcome, Outcome::Cancelled);
        assert_eq!(of(&completed, "allowed.test")[0].sent, ends.recv().unwrap() as u64);
        // Dropped.
        let mut running = sandbox.spawn(open(None), CancellationToken::new()).await.unwrap();
        assert!(running.next_chunk().await.is_some());
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
    common::again_unprivileged(module_path!());
}
